//! A Gaussian process on centres with FITC's diagonal, (M72): its log evidence, the exact gradient, and the posterior
//! of the weights (Snelson & Ghahramani 2006).
//!
//! Variances are relative to the noise variance s2 of an output. The outputs share rho = a / s2. With whitened features
//! phi_n of n rows, residual variances d_n = k(x, x) - |phi_n|^2, and noise variances s2 / c_n,
//!
//! ```text
//! lambda_n = rho d_n + 1 / c_n      F = [1 Phi]      A = F' inv(Lambda) F + diag(0, 1 / rho)
//! m = inv(A) F' inv(Lambda) t       alpha = inv(Lambda) (t - F m) = P t
//! quad = sum_n (t_n - F_n m)^2 / lambda_n + |m_phi|^2 / rho = t'P t
//! log p(t) = -1/2 [(n - 1) log(2 pi s2) + sum log lambda_n + log|A| + M log rho + quad / s2] + (rest)
//! d log p / d log rho = -1/2 [n - 1 - sum P_nn / c_n] + 1/2 [quad - sum alpha_n^2 / c_n] / s2
//! ```
//!
//! with S = rho (Phi Phi' + D) + diag(1 / c) and P = inv(S) minus its projection on the constant, whose flat prior has
//! been integrated out. Without a constant, n - 1 is n and F is Phi. quad is a sum of squares that is least at m, so
//! that rounding errors of m have a second-order effect on it. The rest is [`DistinctRows::rest`].

use std::f64::consts::PI;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};

use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::query::merged_rows::DistinctRows;

/// The rows, and the features of the centres at these rows.
pub(crate) struct Fitc<'a> {
    pub rows: &'a DistinctRows,
    /// Features phi, [M, n].
    pub features: ArrayView2<'a, f64>,
    /// Residual variances d, `[n]`, none negative.
    pub residual: &'a [f64],
    /// True if there is a constant, which has a flat prior.
    pub bias: bool,
}

/// The log evidence, summed over the outputs, and its derivatives.
pub(crate) struct Evidence {
    pub value: f64,
    /// Derivative in log rho.
    pub by_ratio: f64,
    /// Log noise variance of each output, log s2, `[R]`.
    pub log_noise: Vec<f64>,
    /// Derivative in log s2 of each output, `[R]`.
    pub by_noise: Vec<f64>,
    /// P_nn lambda_n, `[n]`: the share of a row that the other rows do not predict.
    own: Vec<f64>,
}

/// The response of the function at the rows to a change of log rho, with the log evidence and the posterior variances.
pub(crate) struct Response {
    pub evidence: Evidence,
    /// Derivative of the function values in log rho, `[n]`.
    pub response: Vec<f64>,
    /// Posterior variances of the function values, `[n]`, relative to s2.
    pub variance: Vec<f64>,
}

/// The posterior of the constant (if there is one) and the whitened weights.
pub(crate) struct Weights {
    /// Factor L of A = L L', [P, P]. The covariance is s2 inv(A).
    pub factor: Array2<f64>,
    /// Mean m, [P, R].
    pub mean: Array2<f64>,
}

/// Solution of the system of A at one rho.
struct Solved {
    lambda: Vec<f64>,
    /// F' / sqrt(lambda), [P, n].
    scaled: Array2<f64>,
    /// Factor L, [P, P].
    lower: Array2<f64>,
    mean: Array2<f64>,
    /// Residuals t - F m, [n, R].
    left: Array2<f64>,
}

impl Fitc<'_> {
    fn first(&self) -> usize {
        usize::from(self.bias)
    }

    /// Solves the system of A. Returns `None` if A has no factor in 64-bit numbers.
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
        let targets = &self.rows.t * &roots.insert_axis(Axis(1));
        let (mean, lower) = match Cholesky::new(a, 0.0) {
            Ok(factor) => {
                let mut mean = linalg::times(scaled.view(), targets.view());
                factor.solve(mean.view_mut());
                (mean, factor.lower)
            }
            // If A has no Cholesky factor in 64-bit numbers, QR of its root is used, whose condition number is the root
            // of that of A.
            Err(Error::Singular { .. }) => {
                let mut prior = Array2::zeros((m, p));
                prior.slice_mut(s![.., first..]).diag_mut().fill((1.0 / ratio).sqrt());
                let stacked = concatenate![Axis(0), scaled.t(), prior];
                let stacked_targets = concatenate![Axis(0), targets, Array2::zeros((m, targets.ncols()))];
                linalg::least_squares(stacked.view(), stacked_targets.view())
            }
            Err(error) => return Err(error),
        };
        if !lower.diag().iter().all(|v| v.is_finite() && *v > 0.0) {
            return Ok(None);
        }
        let left = self.left(&mean);
        Ok(Some(Solved { lambda, scaled, lower, mean, left }))
    }

    /// Returns the residuals t - F m, [n, R].
    fn left(&self, mean: &Array2<f64>) -> Array2<f64> {
        let mut left = self.rows.t.clone();
        linalg::product(true, -1.0, self.features.t(), mean.slice(s![self.first().., ..]), left.view_mut());
        if self.bias {
            left -= &mean.slice(s![..1, ..]);
        }
        left
    }

    /// Returns log evidence and gradient at rho = exp(`log_ratio`) and noise variances exp(`log_noise`), `[R]`; `None`
    /// if the evidence is not finite.
    pub fn evidence(&self, log_ratio: f64, log_noise: &[f64]) -> Result<Option<Evidence>> {
        self.evidence_with(log_ratio, |_| log_noise.to_vec())
    }

    /// Returns log evidence and gradient at rho = exp(`log_ratio`) and the log noise variances, `[R]`, that `log_noise`
    /// chooses; `None` if the evidence is not finite. Its argument is quad + S of each output, `[R]`: as a function of s2,
    /// the evidence is that of C - 1 (C without a constant) independent residuals with this sum of squares.
    pub fn evidence_with(&self, log_ratio: f64, log_noise: impl FnOnce(&[f64]) -> Vec<f64>) -> Result<Option<Evidence>> {
        let Some(solved) = self.solve(log_ratio.exp())? else { return Ok(None) };
        let found = self.evidence_of(solved, log_ratio, log_noise);
        Ok(found.value.is_finite().then_some(found))
    }

    /// Returns log evidence and gradient for a solved system, at the log noise variances that `log_noise` chooses.
    fn evidence_of(&self, solved: Solved, log_ratio: f64, log_noise: impl FnOnce(&[f64]) -> Vec<f64>) -> Evidence {
        let ratio = log_ratio.exp();
        let Solved { lambda, mut scaled, lower, mean, left } = solved;
        let (m, n) = self.features.dim();
        let free = (n - self.first()) as f64;
        let logs = lambda.iter().map(|v| v.ln()).sum::<f64>()
            + 2.0 * lower.diag().iter().map(|v| v.ln()).sum::<f64>()
            + m as f64 * log_ratio;
        // P_nn lambda_n = 1 - |inv(L) F_n|^2 / lambda_n.
        linalg::solve_lower(lower.view(), scaled.view_mut());
        let mut own = vec![1.0; n];
        scaled.outer_iter().for_each(|row| own.iter_mut().zip(row).for_each(|(own, v)| *own -= v * v));
        let noisy = |n: usize| 1.0 / (lambda[n] * self.rows.weights[n]);
        let trace: f64 = own.iter().enumerate().map(|(n, own)| own * noisy(n)).sum();
        let quad = |(left, mean): (ArrayView1<f64>, ArrayView1<f64>)| {
            let weights = mean.slice(s![self.first()..]);
            left.iter().zip(&lambda).map(|(r, v)| r * r / v).sum::<f64>() + weights.dot(&weights) / ratio
        };
        let quads: Vec<f64> = left.columns().into_iter().zip(mean.columns()).map(quad).collect();
        let log_noise = log_noise(&quads.iter().zip(&self.rows.scatter).map(|(q, s)| q + s).collect::<Vec<_>>());
        let mut out = Evidence { value: 0.0, by_ratio: 0.0, by_noise: vec![], log_noise, own };
        for (k, (left, quad)) in left.columns().into_iter().zip(quads).enumerate() {
            let (log_noise, noise) = (out.log_noise[k], out.log_noise[k].exp());
            let squares: f64 = left.iter().zip(&lambda).enumerate().map(|(n, (r, v))| r * r / v * noisy(n)).sum();
            let (rest, slope) = self.rows.rest(k, log_noise);
            out.value += -0.5 * (free * ((2.0 * PI).ln() + log_noise) + logs + quad / noise) + rest;
            out.by_ratio += 0.5 * (trace - free + (quad - squares) / noise);
            out.by_noise.push(0.5 * (quad / noise - free) + slope);
        }
        out
    }

    /// Returns alpha = P t for one output, `[n]`, at rho = `ratio`; `None` if A has no factor.
    pub fn dual(&self, ratio: f64) -> Result<Option<Vec<f64>>> {
        let solved = self.solve(ratio)?;
        Ok(solved.map(|solved| solved.left.iter().zip(&solved.lambda).map(|(left, lambda)| left / lambda).collect()))
    }

    /// Returns the response of the function values to log rho at s2 = 1, for one output whose alpha = P t is given, `[n]`.
    /// Returns `None` if A has no factor or the evidence is not finite.
    pub fn response(&self, log_ratio: f64, alpha: &[f64]) -> Result<Option<Response>> {
        let Some(solved) = self.solve(log_ratio.exp())? else { return Ok(None) };
        let Solved { lambda, scaled, lower, .. } = &solved;
        let c = &self.rows.weights;
        // P v of v = alpha / c.
        let v: Vec<f64> = alpha.iter().zip(c).map(|(a, c)| a / c).collect();
        let over = Array2::from_shape_fn((v.len(), 1), |(n, _)| v[n] / lambda[n].sqrt());
        let mut mean = linalg::times(scaled.view(), over.view());
        linalg::solve_lower(lower.view(), mean.view_mut());
        linalg::solve_lower_transposed(lower.view(), mean.view_mut());
        let fitted = linalg::times(scaled.t(), mean.view());
        let projected = |n: usize| (over[[n, 0]] - fitted[[n, 0]]) / lambda[n].sqrt();
        let response = (0..v.len()).map(|n| v[n] - projected(n) / c[n]).collect();
        let lambda = lambda.clone();
        let evidence = self.evidence_of(solved, log_ratio, |_| vec![0.0]);
        let variance = (0..v.len()).map(|n| ((1.0 - evidence.own[n] / (lambda[n] * c[n])) / c[n]).max(0.0)).collect();
        Ok(evidence.value.is_finite().then_some(Response { evidence, response, variance }))
    }

    /// Returns the posterior of the weights at rho = exp(`log_ratio`); `None` if A has no factor.
    pub fn weights(&self, log_ratio: f64) -> Result<Option<Weights>> {
        let ratio = log_ratio.exp();
        let Some(Solved { lambda, lower, mut mean, left, .. }) = self.solve(ratio)? else { return Ok(None) };
        // One Newton step from the residuals at the rows: the accuracy of the means is then that of the rows, and not
        // that of A.
        let first = self.first();
        let alpha = &left / &Array1::from_vec(lambda).insert_axis(Axis(1));
        let mut step = Array2::zeros(mean.dim());
        step.slice_mut(s![..first, ..]).assign(&alpha.sum_axis(Axis(0)).insert_axis(Axis(0)).slice(s![..first, ..]));
        linalg::product(false, 1.0, self.features, alpha.view(), step.slice_mut(s![first.., ..]));
        step.slice_mut(s![first.., ..]).scaled_add(-1.0 / ratio, &mean.slice(s![first.., ..]));
        linalg::solve_lower(lower.view(), step.view_mut());
        linalg::solve_lower_transposed(lower.view(), step.view_mut());
        mean += &step;
        Ok(Some(Weights { factor: lower, mean }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Linear, Poly, Rbf};
    use crate::process::pivoted_cholesky::Pivots;
    use crate::report::Interrupt;

    const COUNT: usize = 30;

    fn rows(outputs: usize) -> DistinctRows {
        let wave = |i: usize, k: usize| (0.618_033_988_75 * (i * (k + 1) + 3 * k) as f64).fract();
        let x = Array2::from_shape_fn((COUNT, 2), |(i, d)| 2.0 * wave(i, d) - 1.0);
        let t = Array2::from_shape_fn((COUNT, outputs), |(i, k)| (3.0 * x[[i, 0]] + k as f64).sin() + 0.3 * wave(i, k + 5) + 2.0);
        let weights: Vec<f64> = (0..COUNT).map(|i| 0.5 + wave(i, 7)).collect();
        let factors: Vec<f64> = (0..COUNT).map(|i| 0.7 + wave(i, 9)).collect();
        DistinctRows::new(x.view(), t.view(), &weights, &factors)
    }

    /// Returns the log evidence by N x N covariances of the process with FITC's diagonal, and P t.
    fn direct(
        rows: &DistinctRows,
        spanned: &Array2<f64>,
        d: &[f64],
        bias: bool,
        ratio: f64,
        noise: &[f64],
    ) -> (f64, Array2<f64>) {
        let mut s = spanned * ratio;
        s.diag_mut().iter_mut().zip(d).zip(&rows.weights).for_each(|((s, d), c)| *s += ratio * d + 1.0 / c);
        let factor = Cholesky::new(s, 0.0).unwrap();
        let mut inverse = Array2::eye(rows.len());
        factor.solve(inverse.view_mut());
        let ones = Array2::ones((rows.len(), 1));
        let solved = inverse.dot(&ones);
        let g = solved.sum();
        let p = if bias { &inverse - &solved.dot(&solved.t()) / g } else { inverse };
        let pt = p.dot(&rows.t);
        let free = rows.len() as f64 - f64::from(u8::from(bias));
        let value = noise.iter().enumerate().map(|(k, noise)| {
            let log = factor.log_det() + if bias { g.ln() } else { 0.0 };
            let quad = rows.t.column(k).dot(&pt.column(k));
            -0.5 * (free * (2.0 * PI * noise).ln() + log + quad / noise) + rows.rest(k, noise.ln()).0
        });
        (value.sum(), pt)
    }

    fn pivots<'a>(kernel: &'a Kernel, rows: &'a DistinctRows, most: usize) -> Pivots<'a> {
        let all: Vec<usize> = (0..rows.len()).collect();
        let mut pivots = Pivots::new(kernel, rows.x.view()).unwrap();
        pivots.complete(&[], &all, most, |_| false, &Interrupt::default()).unwrap();
        pivots
    }

    /// If all rows are centres, the model is the dense process. Few centres, one and none give the low-rank model. The
    /// kernels include some with k(x, x) other than 1.
    #[test]
    fn evidence_and_means_equal_those_of_n_by_n_matrices() {
        let kernels: [Kernel; 3] =
            [Rbf { gamma: 2.0.into() }.into(), Linear {}.into(), Poly { gamma: 1.0.into(), coef0: 1.0, degree: 3 }.into()];
        for ((kernel, bias), outputs) in kernels.iter().zip([true, false, true]).zip([1, 3, 2]) {
            let rows = rows(outputs);
            let mut k = Array2::zeros((COUNT, COUNT));
            kernel.block(rows.x.view(), rows.x.view(), k.view_mut());
            for most in [COUNT, 5, 1, 0] {
                let pivots = pivots(kernel, &rows, most);
                let fitc = Fitc { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias };
                let spanned = pivots.features().t().dot(&pivots.features());
                if most == COUNT {
                    assert!((&spanned - &k).iter().all(|d| d.abs() < 1e-12));
                }
                for (log_ratio, noise) in [(2.0, [0.1, 0.3, 0.02]), (8.0, [1e-4, 1e-3, 2.0])] {
                    let noise = &noise[..outputs];
                    let (expected, pt) = direct(&rows, &spanned, pivots.residual(), bias, f64::exp(log_ratio), noise);
                    let logs: Vec<f64> = noise.iter().map(|v| v.ln()).collect();
                    let found = fitc.evidence(log_ratio, &logs).unwrap().unwrap();
                    assert!(
                        (found.value - expected).abs() < 1e-10 * expected.abs().max(1.0),
                        "{most}: {} {expected}",
                        found.value
                    );
                    // inv(Lambda) (t - F m) = P t.
                    let Weights { mean, .. } = fitc.weights(log_ratio).unwrap().unwrap();
                    let lambda = pivots.residual().iter().zip(&rows.weights).map(|(d, c)| f64::exp(log_ratio) * d + 1.0 / c);
                    let own = fitc.left(&mean) / &lambda.collect::<Array1<f64>>().insert_axis(Axis(1));
                    let size = pt.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                    assert!((&own - &pt).iter().all(|d| d.abs() < 1e-9 * size), "{most}");
                }
            }
        }
    }

    #[test]
    fn gradient_equals_finite_differences() {
        let kernel: Kernel = Rbf { gamma: 3.0.into() }.into();
        let rows = rows(2);
        for (most, bias) in [(COUNT, true), (6, true), (6, false), (0, true)] {
            let pivots = pivots(&kernel, &rows, most);
            let fitc = Fitc { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias };
            for at in [[1.0, -2.0, -1.0], [9.0, -7.0, -4.0]] {
                let value = |k: usize, h: f64| {
                    let mut x = at;
                    x[k] += h;
                    fitc.evidence(x[0], &x[1..]).unwrap().unwrap().value
                };
                let exact = fitc.evidence(at[0], &at[1..]).unwrap().unwrap();
                let h = 1e-5;
                for (k, got) in [exact.by_ratio, exact.by_noise[0], exact.by_noise[1]].into_iter().enumerate() {
                    let expected = (value(k, h) - value(k, -h)) / (2.0 * h);
                    assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{most} {k}: {got} instead of {expected}");
                }
            }
        }
    }

    /// The noise is so small that A has no Cholesky factor. QR gives the value.
    #[test]
    fn evidence_has_a_value_for_tiny_noise() {
        let kernel: Kernel = Rbf { gamma: 0.1.into() }.into();
        let rows = rows(1);
        let pivots = pivots(&kernel, &rows, COUNT);
        let fitc = Fitc { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias: true };
        let values: Vec<f64> = (0..12).map(|k| fitc.evidence(15.0 + 3.0 * k as f64, &[-20.0]).unwrap().unwrap().value).collect();
        assert!(values.iter().all(|v| v.is_finite()), "{values:?}");
        // Noise of variance e^-20 does not explain the targets, so that any larger amplitude fits better.
        assert!(values.windows(2).all(|pair| pair[1] > pair[0]), "{values:?}");
        // The expected values were computed with 60 digits.
        for (value, expected) in values.iter().zip([-50225723.17338062, -44789987.35659919, -35266257.84693948]) {
            assert!((value - expected).abs() < 1e-4 * expected.abs(), "{value} instead of {expected}");
        }
    }
}
