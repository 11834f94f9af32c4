//! Sums over rows that a Gaussian likelihood needs. They can be added over blocks of rows.

use ndarray::{Array2, ArrayView2, s};

use crate::{design, linalg};

/// Range of squared norms in which no digits are lost to underflow or overflow.
const SAFE: std::ops::Range<f64> = 1e-200..1e200;

/// Sums G = Phi'cPhi, f = Phi'ct and tt = t'ct for each of K outputs, and the sum of the weights c.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sums {
    /// G, [P, P]: its lower triangle while accumulating, symmetric after [`Sums::finish`].
    pub gram: Array2<f64>,
    /// f, `[K][P]`.
    pub f: Vec<Vec<f64>>,
    /// tt, `[K]`.
    pub tt: Vec<f64>,
    pub count: f64,
}

impl Sums {
    pub fn new(columns: usize, outputs: usize) -> Sums {
        let f = vec![vec![0.0; columns]; outputs];
        Sums { gram: Array2::zeros((columns, columns)), f, tt: vec![0.0; outputs], count: 0.0 }
    }

    /// Adds rows: `phi`, [B, P], targets `t`, [B, K] row by row, and weights `c`, `[B]`.
    pub fn accumulate(&mut self, phi: ArrayView2<f64>, t: &[f64], c: &[f64]) {
        // Before the first rows, the triangle is overwritten.
        let keep = self.count != 0.0;
        if c.iter().all(|c| *c == 1.0) {
            linalg::lower_gram(keep, phi, self.gram.view_mut());
        } else {
            let mut weighted = phi.to_owned();
            for (mut row, c) in weighted.outer_iter_mut().zip(c) {
                row *= c.sqrt();
            }
            linalg::lower_gram(keep, weighted.view(), self.gram.view_mut());
        }
        let outputs = self.f.len();
        for (k, (f, tt)) in self.f.iter_mut().zip(&mut self.tt).enumerate() {
            let t = t.iter().skip(k).step_by(outputs);
            let ct: Vec<f64> = c.iter().zip(t.clone()).map(|(c, t)| c * t).collect();
            design::add_sums(&ct, phi, f);
            *tt += ct.iter().zip(t).map(|(ct, t)| ct * t).sum::<f64>();
        }
        self.count += c.iter().sum::<f64>();
    }

    /// Makes G symmetric.
    pub fn finish(mut self) -> Sums {
        linalg::mirror(&mut self.gram);
        self
    }

    /// Returns the norms of the columns, `[P]`; `None` if one of them is 0, underflows or overflows.
    pub fn norms(&self) -> Option<Vec<f64>> {
        let diag = self.gram.diag();
        diag.iter().all(|d| SAFE.contains(d)).then(|| diag.iter().map(|d| d.sqrt()).collect())
    }

    /// Converts the sums to those of columns divided by `norms`; columns of norm 0 become zero.
    pub fn divide(&mut self, norms: &[f64]) {
        let scale: Vec<f64> = norms.iter().map(|n| if *n > 0.0 { 1.0 / n } else { 0.0 }).collect();
        for (mut row, own) in self.gram.outer_iter_mut().zip(&scale) {
            row.iter_mut().zip(&scale).for_each(|(g, s)| *g *= own * s);
        }
        for f in &mut self.f {
            f.iter_mut().zip(&scale).for_each(|(f, s)| *f *= s);
        }
    }

    /// Adds the sums over other rows; both must be symmetric.
    pub fn add(&mut self, other: &Sums) {
        self.gram += &other.gram;
        self.f.iter_mut().flatten().zip(other.f.iter().flatten()).for_each(|(f, o)| *f += o);
        self.tt.iter_mut().zip(&other.tt).for_each(|(tt, o)| *tt += o);
        self.count += other.count;
    }

    /// Converts the sums to those of targets that are larger by `by`, for a single output. Column 0 must be all ones.
    pub fn shift(&mut self, by: f64) {
        if by == 0.0 {
            return;
        }
        self.tt[0] += by * (2.0 * self.f[0][0] + by * self.count);
        self.f[0].iter_mut().zip(self.gram.row(0)).for_each(|(f, g)| *f += by * g);
    }

    /// Returns the sums without the first column.
    pub fn without_first(&self) -> Sums {
        let gram = self.gram.slice(s![1.., 1..]).to_owned();
        Sums { gram, f: self.f.iter().map(|f| f[1..].to_vec()).collect(), tt: self.tt.clone(), count: self.count }
    }
}
