//! Sums over rows of the log-likelihood of two classes at given weights, with its gradient and Hessian, (M13).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::bytes::{Reader, Writer};
use super::survey::Checked;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::{Bernoulli, LikelihoodFunction};
use crate::linalg;
use crate::report::Interrupt;

/// Number of rows of a block of the sums.
const BLOCK_ROWS: usize = 4096;
/// Number of rows of a tile of kernel values, which one thread computes.
const TILE_ROWS: usize = 64;

/// Kernel, centres and weights at which the log-likelihood is summed.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct ClassRequest {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    /// Centres, [M, D].
    pub centres: Array2<f64>,
    /// True if the first column of Phi, [N, P], is constant.
    pub bias: bool,
    /// Each separates one class from the others.
    pub trials: Vec<Trial>,
}

/// A class that is separated from the others, and weights to try, [S, P], S >= 1.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct Trial {
    pub class: usize,
    pub weights: Array2<f64>,
}

/// Sums over rows for one class against the others, which can be added.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct ClassSums {
    /// Log-likelihood at each of the weights, sum c log p, `[S]`.
    pub log_likelihood: Array1<f64>,
    /// Gradient of the log-likelihood at the first weights, Phi'c r, `[P]`.
    pub gradient: Array1<f64>,
    /// Lower triangle of the Hessian of the negative log-likelihood at the first weights, Phi'c B Phi, [P, P].
    pub hessian: Array2<f64>,
}

impl ClassRequest {
    /// Returns sums over no rows, one for each trial.
    pub fn nothing(&self) -> Vec<ClassSums> {
        let nothing = |trial: &Trial| {
            let (s, p) = trial.weights.dim();
            ClassSums { log_likelihood: Array1::zeros(s), gradient: Array1::zeros(p), hessian: Array2::zeros((p, p)) }
        };
        self.trials.iter().map(nothing).collect()
    }

    /// Adds rows `x`, [N, D], to the sums. The work runs on the current thread pool.
    ///
    /// # Errors
    /// Returns an error for another number of features, [`Error::Interrupted`] if the fit must stop or its deadline has
    /// passed, and [`Error::Overflow`] if a sum is not finite.
    pub fn add_rows(&self, x: ArrayView2<f64>, rows: &Checked, sums: &mut [ClassSums], interrupt: &Interrupt) -> Result<()> {
        let (classes, weights, _) = rows;
        if x.ncols() != self.centres.ncols() {
            let expected = format!("{} columns", self.centres.ncols());
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
        for rows in used.chunks(BLOCK_ROWS) {
            if interrupt.is_raised_by_hand() || interrupt.is_late() {
                return Err(Error::Interrupted);
            }
            let phi = self.phi(x.select(Axis(0), rows).view());
            let c: Array1<f64> = rows.iter().map(|n| weights[*n]).collect();
            for (trial, sums) in self.trials.iter().zip(sums.iter_mut()) {
                let is_own = |n: &usize| f64::from(u8::from(classes[[*n, 0]] == trial.class as f64));
                sums.add(phi.view(), &rows.iter().map(is_own).collect::<Vec<_>>(), c.view(), trial.weights.view());
            }
        }
        let finite = |sums: &ClassSums| sums.log_likelihood[0].is_finite() && sums.hessian.diag().iter().all(|v| v.is_finite());
        if !sums.iter().all(finite) {
            let what = format!("a sum over the values of the kernel {} for rows and centres", self.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    /// Returns Phi, [n, P], for rows `x`, [n, D].
    fn phi(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let mut phi = Array2::ones((x.nrows(), first + self.centres.nrows()));
        phi.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
            .into_par_iter()
            .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
            .for_each(|(mut phi, x)| fill(x, phi.slice_mut(s![.., first..])));
        phi
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let (m, d) = self.centres.dim();
        out.counts([m, d, self.trials.len()].map(|count| count as u64));
        out.numbers(&self.centres);
        for trial in &self.trials {
            out.counts([trial.class, trial.weights.nrows()].map(|count| count as u64));
            out.numbers(&trial.weights);
        }
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<ClassRequest> {
        let (m, d, count) = (from.size()?, from.size()?, from.size()?);
        let centres = from.matrix(m, d)?;
        let mut trials = vec![];
        for _ in 0..count {
            let (class, tried) = (from.count()? as usize, from.size()?);
            trials.push(Trial { class, weights: from.matrix(tried, m + usize::from(bias))? });
        }
        Ok(ClassRequest { kernel, centres, bias, trials })
    }
}

impl ClassSums {
    /// Adds rows: `phi`, [n, P], targets 0 or 1, `[n]`, and sample weights `c`, `[n]`, at weights `w`, [S, P].
    fn add(&mut self, phi: ArrayView2<f64>, t: &[f64], c: ArrayView1<f64>, w: ArrayView2<f64>) {
        let f = linalg::times(w, phi.t());
        for (tried, f) in f.outer_iter().enumerate() {
            let working = Bernoulli::default().working(t, f.as_slice().expect("rows of a fresh array are contiguous"));
            self.log_likelihood[tried] += c.dot(&Array1::from_vec(working.log_likelihood));
            if tried == 0 {
                self.gradient += &phi.t().dot(&(&c * &Array1::from_vec(working.residual)));
                let root = (&c * &Array1::from_vec(working.curvature)).mapv(f64::sqrt).insert_axis(Axis(1));
                linalg::add_gram((&phi * &root).view(), self.hessian.view_mut());
            }
        }
    }

    /// Adds the sums over other rows, at the same weights.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the shapes differ.
    pub fn add_all(own: &mut [ClassSums], other: &[ClassSums]) -> Result<()> {
        let shapes = |sums: &[ClassSums]| sums.iter().map(|s| (s.log_likelihood.len(), s.gradient.len())).collect::<Vec<_>>();
        let (a, b) = (shapes(own), shapes(other));
        if a != b {
            return Err(Error::Rows(format!("sums of shapes {b:?} cannot be added to sums of shapes {a:?}")));
        }
        for (own, other) in own.iter_mut().zip(other) {
            own.log_likelihood += &other.log_likelihood;
            own.gradient += &other.gradient;
            own.hessian += &other.hessian;
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.counts([self.log_likelihood.len(), self.gradient.len()].map(|count| count as u64));
        out.numbers(&self.log_likelihood);
        out.numbers(&self.gradient);
        out.triangle(self.hessian.view());
    }

    pub(super) fn read(from: &mut Reader) -> Result<ClassSums> {
        let (tried, p) = (from.size()?, from.size()?);
        // The log-likelihood of weights that are far too large may be infinite.
        let log_likelihood = Array1::from_vec(from.numbers(tried)?);
        let gradient = Array1::from_vec(from.finite(p)?);
        Ok(ClassSums { log_likelihood, gradient, hessian: from.triangle(p)? })
    }
}
