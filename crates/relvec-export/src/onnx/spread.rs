//! Functions and variances from the values of the basis functions.

use ndarray::{Array1, Array2, Axis, s};

use super::graph::{Graph, Value};
use super::kernel;
use crate::machine::{Basis, JointSpread, Machine, Prior, Spread};

/// Scaled rows, [N, D], and the basis functions there, [N, M]; `None` for a model with only an intercept.
#[derive(Clone, Copy)]
pub(super) struct Rows<'g> {
    pub graph: &'g Graph,
    pub z: Value<'g>,
    pub phi: Option<Value<'g>>,
}

impl<'g> Rows<'g> {
    /// Creates them from rows `x`, [N, D], in original units.
    pub fn new(graph: &'g Graph, x: Value<'g>, machine: &Machine, single: bool) -> Rows<'g> {
        let z = match &machine.model.scaling {
            Some(scaling) => (x - graph.row(&scaling.mean)) / graph.row(&scaling.scale),
            None => x,
        };
        let phi = (machine.len() > 0).then(|| match &machine.basis {
            Basis::Kernel { kernel, centres } => kernel::values(graph, z, kernel, centres, single),
            Basis::Columns(columns) => z.take(columns, 1),
        });
        Rows { graph, z, phi }
    }

    /// Returns f = phi W + w_0, [N, C].
    pub fn functions(self, machine: &Machine) -> Value<'g> {
        let expansion = &machine.model.expansion;
        self.map(expansion.weights.clone(), Array1::from(expansion.intercept.clone()))
    }

    /// Returns phi a + b, [N, Q], for a: [M, Q] and b: [Q].
    fn map(self, a: Array2<f64>, b: Array1<f64>) -> Value<'g> {
        let b = self.graph.table(&b);
        match self.phi {
            Some(phi) => phi.matmul(self.graph.table(&a)) + b,
            None => self.zero() + b,
        }
    }

    /// Returns a column of zeros, [N, 1].
    pub fn zero(self) -> Value<'g> {
        self.z.take(&[0], 1) * 0.0
    }

    /// Returns a (1, phi), [N, Q], for a: [Q, bias + M]. With `bias` the first column belongs to the 1.
    fn with_bias(self, a: &Array2<f64>, bias: bool) -> Value<'g> {
        let offset = if bias { a.column(0).to_owned() } else { Array1::zeros(a.nrows()) };
        self.map(a.slice(s![.., usize::from(bias)..]).t().to_owned(), offset)
    }

    /// Returns v, [N, 1].
    pub fn variance(self, machine: &Machine, spread: &Spread) -> Value<'g> {
        let half = inverse(&spread.factor) * &Array1::from(spread.scale.to_vec());
        let posterior = match half.nrows() {
            0 => self.zero(),
            _ => self.with_bias(&half, spread.bias).square().sum_kept(1),
        };
        let all = match &spread.prior {
            Some(prior) => posterior + self.residual(machine, prior),
            None => posterior,
        };
        if spread.times == 1.0 { all } else { all * spread.times }
    }

    /// Returns the variance of the prior that the centres do not span, a (k(z, z) - |inv(L) phi|^2), [N, 1].
    fn residual(self, machine: &Machine, prior: &Prior) -> Value<'g> {
        let Basis::Kernel { kernel, centres } = &machine.basis else { return self.zero() };
        let own = kernel::diagonal(self.graph, self.z, kernel, centres.ncols()).unwrap_or_else(|| self.zero() + 1.0);
        let spanned = match prior.factor.nrows() {
            0 => self.zero(),
            _ => self.with_bias(&inverse(&prior.factor), false).square().sum_kept(1),
        };
        (own - spanned).at_least(0.0) * prior.amplitude
    }

    /// Returns the covariances of the contrasts of classes, [N, R R].
    pub fn covariances(self, joint: &JointSpread) -> Value<'g> {
        let (half, first, active) = (inverse(&joint.factor), joint.first(), joint.scale.len());
        let (n, contrasts) = (half.nrows(), joint.present.len());
        // For contrast r: its columns of inv(L), at the active functions for which it has weights.
        let mut all = Array2::zeros((contrasts * n, active));
        for (r, present) in joint.present.iter().enumerate() {
            for (column, i) in present.iter().enumerate() {
                let own = &half.column(first[r] + column) * joint.scale[*i];
                all.slice_mut(s![r * n..(r + 1) * n, *i]).assign(&own);
            }
        }
        let halves = self.with_bias(&all, joint.bias).reshape(&[-1, contrasts as i64, n as i64]);
        let squares = (contrasts * contrasts) as i64;
        halves.matmul(halves.transpose(&[0, 2, 1])).reshape(&[-1, squares])
    }
}

/// Returns inv(L) of a lower triangle.
fn inverse(factor: &Array2<f64>) -> Array2<f64> {
    let n = factor.nrows();
    let mut out = Array2::<f64>::eye(n);
    for i in 0..n {
        for j in 0..i {
            let (done, mut row) = out.view_mut().split_at(Axis(0), i);
            row.row_mut(0).scaled_add(-factor[[i, j]], &done.row(j));
        }
        let pivot = factor[[i, i]];
        out.row_mut(i).mapv_inplace(|v| v / pivot);
    }
    out
}
