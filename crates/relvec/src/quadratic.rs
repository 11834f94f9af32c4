//! The subproblem of the sparse search: a quadratic form over the columns of a dictionary.
//!
//! It is the same for every likelihood: rows of G, f, and t't from any source.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::design::Design;
use crate::sums::Sums;

/// Inverse of the share of rows of G above which all of G, one symmetric product, costs less than the single rows.
const MANY: usize = 2;

/// G = Phi'BPhi ([P, P], by rows), f = Phi'Bt and t'Bt of each output, with the mean of t stored separately.
///
/// With a bias (column 0) and targets of mean m, the sums are about the mean: f is Phi'B(t - m), so that no digits are
/// lost for large m. [`Quadratic::target`] restores m, see (M9).
#[derive(Debug)]
pub(crate) struct Quadratic<'a> {
    /// diag(G), `[P]`.
    pub diag: Vec<f64>,
    /// Number of rows N, or the sum of the sample weights.
    pub count: f64,
    /// Phi'B(t - m) for each output.
    centred: Vec<Vec<f64>>,
    /// t'Bt about the mean for each output; a single number for outputs that share one noise precision.
    centred_tt: Vec<f64>,
    /// Mean of the targets of each output as a weight of the bias column, and row 0 of G.
    mean: Option<(Vec<f64>, Vec<f64>)>,
    source: Source<'a>,
}

#[derive(Debug)]
enum Source<'a> {
    Stored(Array2<f64>),
    Rows { design: &'a Design, weights: Vec<f64>, cache: RefCell<HashMap<usize, Rc<[f64]>>>, all_fit: bool },
}

/// Returns true if the mean of the targets is stored separately for a bias at relative precision `a` on a unit column,
/// (M9). A bias with a larger precision fits little of the mean. Sums about the mean would then cancel with a m^2.
pub(crate) fn takes_up_mean(a: f64) -> bool {
    a <= 1.0
}

/// One row of G, `[P]`.
pub(crate) enum Row<'q> {
    Stored(ArrayView1<'q, f64>),
    Made(Rc<[f64]>),
}

impl std::ops::Deref for Row<'_> {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        match self {
            Row::Stored(v) => v.to_slice().expect("rows of G are contiguous"),
            Row::Made(v) => v,
        }
    }
}

/// The vectors f over all columns and t't, given whether the bias is in the model.
pub(crate) struct Target {
    /// f for each output, `[P]`.
    pub f: Vec<Vec<f64>>,
    /// t't for each noise precision.
    pub tt: Vec<f64>,
    /// Number to add to the solved weight of the bias, for each output.
    pub bias_offset: Vec<f64>,
}

impl<'a> Quadratic<'a> {
    /// Returns the quadratic form from sums over rows of targets minus their means. `mean` contains these means as
    /// weights of the bias.
    pub fn stored(sums: Sums, mean: Option<Vec<f64>>) -> Self {
        let mean = mean.map(|m| (m, sums.gram.row(0).to_vec()));
        Quadratic {
            diag: sums.gram.diag().to_vec(),
            count: sums.count,
            centred: sums.f,
            centred_tt: sums.tt,
            mean,
            source: Source::Stored(sums.gram),
        }
    }

    /// Returns a quadratic form whose rows of G are computed on demand. B is diag(`weights`), `[N]`, f is Phi'`pull`
    /// with `pull`, [N, R] for R outputs, and `tt` is that of the stored form. The rows of `columns`, and with a mean
    /// that of the bias, are computed in the same pass as the other sums.
    pub fn on_demand(
        design: &'a Design,
        weights: Vec<f64>,
        pull: ArrayView2<f64>,
        tt: Vec<f64>,
        count: f64,
        mean: Option<Vec<f64>>,
        columns: &[usize],
    ) -> Self {
        let bias = mean.as_ref().filter(|_| !columns.contains(&0)).map(|_| 0);
        let made: Vec<usize> = bias.into_iter().chain(columns.iter().copied()).collect();
        let (diag, f, rows) = design.moments(&weights, pull, &made);
        let cache: HashMap<usize, Rc<[f64]>> =
            made.iter().zip(rows.outer_iter()).map(|(j, row)| (*j, row.iter().copied().collect())).collect();
        let mean = mean.map(|m| (m, cache[&0].to_vec()));
        let source = Source::Rows { design, weights, cache: RefCell::new(cache), all_fit: false };
        Quadratic { diag, count, centred: f, centred_tt: tt, mean, source }
    }

    /// Sets whether all rows of G fit into memory at once.
    pub fn with_room(mut self, enough: bool) -> Self {
        if let Source::Rows { all_fit, .. } = &mut self.source {
            *all_fit = enough;
        }
        self
    }

    /// Returns P, the number of columns.
    pub fn columns(&self) -> usize {
        self.diag.len()
    }

    /// Returns R, the number of outputs. Outputs are right-hand sides that share one G and have a weight each for every
    /// column.
    pub fn outputs(&self) -> usize {
        self.centred.len()
    }

    /// Returns true if column 0 is a bias whose mean is stored separately, so that its precision enters f.
    pub fn has_mean(&self) -> bool {
        self.mean.is_some()
    }

    /// Returns f and t't for a model with the bias at relative precision `bias`, or without it.
    pub fn target(&self, bias: Option<f64>) -> Target {
        let (mut f, mut tt) = (self.centred.clone(), self.centred_tt.clone());
        let mut bias_offset = vec![0.0; f.len()];
        let Some((means, row)) = &self.mean else {
            return Target { f, tt, bias_offset };
        };
        for (k, (m, f)) in means.iter().zip(&mut f).enumerate() {
            match bias {
                Some(a) if takes_up_mean(a) => {
                    f[0] -= a * m;
                    tt[k] += a * m * m;
                    bias_offset[k] = *m;
                }
                _ => {
                    tt[k] += 2.0 * m * f[0] + m * m * row[0];
                    f.iter_mut().zip(row).for_each(|(f, g)| *f += m * g);
                }
            }
        }
        Target { f, tt, bias_offset }
    }

    /// Returns row j of G.
    pub fn row(&self, j: usize) -> Row<'_> {
        match &self.source {
            Source::Stored(g) => Row::Stored(g.row(j)),
            Source::Rows { cache, .. } => {
                self.prepare(&[j]);
                Row::Made(cache.borrow()[&j].clone())
            }
        }
    }

    /// Computes the missing rows in one pass over the data.
    pub fn prepare(&self, columns: &[usize]) {
        if let Source::Rows { design, weights, cache, all_fit } = &self.source {
            let missing: Vec<usize> = columns.iter().copied().filter(|j| !cache.borrow().contains_key(j)).collect();
            let wanted = cache.borrow().len() + missing.len();
            if *all_fit && !missing.is_empty() && MANY * wanted > self.columns() {
                let mut sums = Sums::new(self.columns(), 0);
                design.for_each_block(|rows, phi| sums.accumulate(phi, &[], &weights[rows]));
                let rows = sums.finish().gram;
                cache.borrow_mut().extend(rows.outer_iter().enumerate().map(|(j, r)| (j, r.iter().copied().collect())));
            } else if !missing.is_empty() {
                let made = design.cross(weights, &missing);
                let rows = missing.iter().zip(made.outer_iter()).map(|(j, row)| (*j, row.iter().copied().collect()));
                cache.borrow_mut().extend(rows);
            }
        }
    }

    /// Returns the listed rows of G, [M, P].
    pub fn rows(&self, columns: &[usize]) -> Array2<f64> {
        self.prepare(columns);
        let mut out = Array2::zeros((columns.len(), self.columns()));
        for (mut target, j) in out.outer_iter_mut().zip(columns) {
            target.assign(&ArrayView1::from(&*self.row(*j)));
        }
        out
    }

    /// Returns the listed rows and columns of G, [M, M].
    pub fn dense(&self, columns: &[usize]) -> Array2<f64> {
        self.prepare(columns);
        let mut out = Array2::zeros((columns.len(), columns.len()));
        for (mut target, j) in out.outer_iter_mut().zip(columns) {
            let row = self.row(*j);
            target.iter_mut().zip(columns).for_each(|(t, k)| *t = row[*k]);
        }
        out
    }
}
