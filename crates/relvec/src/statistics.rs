//! What a Gaussian likelihood needs to know of the rows: sums that add over blocks of rows.

use ndarray::{Array2, ArrayView2};

use crate::linalg;

/// G = Phi'cPhi, f = Phi'ct, tt = t'ct and the sum of the weights c.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// [P, P]; the lower triangle while accumulating, symmetric after `finish`.
    pub gram: Array2<f64>,
    /// `[P]`.
    pub f: Vec<f64>,
    pub tt: f64,
    pub count: f64,
}

impl Statistics {
    pub fn new(columns: usize) -> Statistics {
        Statistics { gram: Array2::zeros((columns, columns)), f: vec![0.0; columns], tt: 0.0, count: 0.0 }
    }

    /// Adds rows: `phi` [B, P], targets `t` `[B]`, weights `c` `[B]`.
    pub fn accumulate(&mut self, phi: ArrayView2<f64>, t: &[f64], c: &[f64]) {
        if c.iter().all(|c| *c == 1.0) {
            linalg::add_gram(phi, self.gram.view_mut());
        } else {
            let mut weighted = phi.to_owned();
            for (mut row, c) in weighted.outer_iter_mut().zip(c) {
                row *= c.sqrt();
            }
            linalg::add_gram(weighted.view(), self.gram.view_mut());
        }
        for ((row, t), c) in phi.outer_iter().zip(t).zip(c) {
            self.f.iter_mut().zip(row).for_each(|(f, v)| *f += c * t * v);
            self.tt += c * t * t;
            self.count += c;
        }
    }

    /// Makes G symmetric.
    pub fn finish(mut self) -> Statistics {
        linalg::mirror(&mut self.gram);
        self
    }
}
