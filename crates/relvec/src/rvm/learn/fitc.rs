//! A Gaussian process on centres with FITC's diagonal: its log evidence, the exact gradient, and the posterior of the weights.
//!
//! Snelson & Ghahramani (2006). Everything is in units of the noise variance s2 of an output, rho = a / s2 being shared by the
//! outputs. With whitened features phi_n of n rows, what they leave d_n = k(x, x) - |phi_n|^2, and the noise s2 / c_n,
//!
//! ```text
//! lambda_n = rho d_n + 1 / c_n      F = [1 Phi]      A = F' inv(Lambda) F + diag(0, 1 / rho)
//! m = inv(A) F' inv(Lambda) t       alpha = inv(Lambda) (t - F m) = P t
//! quad = sum_n (t_n - F_n m)^2 / lambda_n + |m_phi|^2 / rho = t'P t
//! log p(t) = -1/2 [(n - 1) log(2 pi s2) + sum log lambda_n + log|A| + M log rho + quad / s2] + (rest)
//! d log p / d log rho = -1/2 [n - 1 - sum P_nn / c_n] + 1/2 [quad - sum alpha_n^2 / c_n] / s2
//! ```
//!
//! with P = inv(S) less its projection on the constant, S = rho (Phi Phi' + D) + diag(1 / c), whose flat prior has been integrated
//! out; without a constant n - 1 is n and F is Phi. quad is a sum of squares that is least at m, so that the rounding of m enters it
//! squared. The rest is [`DistinctRows::rest`].

use std::f64::consts::PI;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::rows::DistinctRows;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};

/// Rows, and the features of the centres there.
pub(in crate::rvm) struct Fitc<'a> {
    pub rows: &'a DistinctRows,
    /// phi, [M, n].
    pub features: ArrayView2<'a, f64>,
    /// d, `[n]`, none negative.
    pub residual: &'a [f64],
    /// Whether there is a constant, of a flat prior.
    pub bias: bool,
}

/// The log evidence, summed over the outputs, and its derivatives.
pub(in crate::rvm) struct Evidence {
    pub value: f64,
    /// By log rho.
    pub by_ratio: f64,
    /// By log s2 of each output, `[R]`.
    pub by_noise: Vec<f64>,
}

/// The posterior of the constant (if there is one) and the whitened weights.
pub(in crate::rvm) struct Weights {
    /// L, L L' = A: the covariance is s2 inv(A), [P, P].
    pub factor: Array2<f64>,
    /// m, [P, R].
    pub mean: Array2<f64>,
}

/// All that A says at a ratio rho.
struct Solved {
    lambda: Vec<f64>,
    /// F' / sqrt(lambda), [P, n].
    scaled: Array2<f64>,
    factor: Cholesky,
    mean: Array2<f64>,
    /// t - F m, [n, R].
    left: Array2<f64>,
}

impl Fitc<'_> {
    fn first(&self) -> usize {
        usize::from(self.bias)
    }

    /// `None` where A has no Cholesky factor in 64-bit numbers.
    fn solve(&self, ratio: f64) -> Result<Option<Solved>> {
        let (m, n) = self.features.dim();
        let (first, p) = (self.first(), self.first() + m);
        let lambda: Vec<f64> = self.residual.iter().zip(&self.rows.weights).map(|(d, c)| ratio * d + 1.0 / c).collect();
        let roots: Array1<f64> = lambda.iter().map(|v| 1.0 / v.sqrt()).collect();
        let mut scaled = Array2::zeros((p, n));
        scaled.slice_mut(s![..first, ..]).fill(1.0);
        scaled.slice_mut(s![first.., ..]).assign(&self.features);
        scaled.outer_iter_mut().for_each(|mut row| row *= &roots);
        let mut a = linalg::gram(scaled.t());
        a.diag_mut().slice_mut(s![first..]).mapv_inplace(|v| v + 1.0 / ratio);
        let factor = match Cholesky::new(a, 0.0) {
            Ok(factor) => factor,
            Err(Error::Singular { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let targets = &self.rows.t * &roots.insert_axis(Axis(1));
        let mut mean = linalg::times(scaled.view(), targets.view());
        factor.solve(mean.view_mut());
        let left = self.left(&mean);
        Ok(Some(Solved { lambda, scaled, factor, mean, left }))
    }

    /// t - F m, [n, R].
    fn left(&self, mean: &Array2<f64>) -> Array2<f64> {
        let mut left = self.rows.t.clone();
        linalg::product(true, -1.0, self.features.t(), mean.slice(s![self.first().., ..]), left.view_mut());
        if self.bias {
            left -= &mean.slice(s![..1, ..]);
        }
        left
    }

    /// At rho = exp(`log_ratio`) and noise variances exp(`log_noise`), `[R]`; `None` where there is no value.
    pub fn evidence(&self, log_ratio: f64, log_noise: &[f64]) -> Result<Option<Evidence>> {
        let ratio = log_ratio.exp();
        let Some(Solved { lambda, mut scaled, factor, mean, left }) = self.solve(ratio)? else { return Ok(None) };
        let (m, n) = self.features.dim();
        let free = (n - self.first()) as f64;
        let logs = lambda.iter().map(|v| v.ln()).sum::<f64>() + factor.log_det() + m as f64 * log_ratio;
        // P_nn lambda_n = 1 - |inv(L) F_n|^2 / lambda_n.
        linalg::solve_lower(factor.lower.view(), scaled.view_mut());
        let mut own = vec![1.0; n];
        scaled.outer_iter().for_each(|row| own.iter_mut().zip(row).for_each(|(own, v)| *own -= v * v));
        let noisy = |n: usize| 1.0 / (lambda[n] * self.rows.weights[n]);
        let trace: f64 = own.iter().enumerate().map(|(n, own)| own * noisy(n)).sum();
        let mut out = Evidence { value: 0.0, by_ratio: 0.0, by_noise: vec![] };
        for (k, (left, mean)) in left.columns().into_iter().zip(mean.columns()).enumerate() {
            let (log_noise, noise) = (log_noise[k], log_noise[k].exp());
            let weights = mean.slice(s![self.first()..]);
            let quad = left.iter().zip(&lambda).map(|(r, v)| r * r / v).sum::<f64>() + weights.dot(&weights) / ratio;
            let squares: f64 = left.iter().zip(&lambda).enumerate().map(|(n, (r, v))| r * r / v * noisy(n)).sum();
            let (rest, slope) = self.rows.rest(k, log_noise);
            out.value += -0.5 * (free * ((2.0 * PI).ln() + log_noise) + logs + quad / noise) + rest;
            out.by_ratio += 0.5 * (trace - free + (quad - squares) / noise);
            out.by_noise.push(0.5 * (quad / noise - free) + slope);
        }
        Ok(out.value.is_finite().then_some(out))
    }

    /// At rho = exp(`log_ratio`); `None` where A has no factor.
    pub fn weights(&self, log_ratio: f64) -> Result<Option<Weights>> {
        let ratio = log_ratio.exp();
        let Some(Solved { lambda, factor, mut mean, left, .. }) = self.solve(ratio)? else { return Ok(None) };
        // One step from what the means leave: they have the digits of the rows then, not those of A.
        let first = self.first();
        let pull = &left / &Array1::from_vec(lambda).insert_axis(Axis(1));
        let mut step = Array2::zeros(mean.dim());
        step.slice_mut(s![..first, ..]).assign(&pull.sum_axis(Axis(0)).insert_axis(Axis(0)).slice(s![..first, ..]));
        linalg::product(false, 1.0, self.features, pull.view(), step.slice_mut(s![first.., ..]));
        step.slice_mut(s![first.., ..]).scaled_add(-1.0 / ratio, &mean.slice(s![first.., ..]));
        factor.solve(step.view_mut());
        mean += &step;
        Ok(Some(Weights { factor: factor.lower, mean }))
    }
}
