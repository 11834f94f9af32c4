//! The log evidence of a dense Gaussian process and its exact gradient, (M67).
//!
//! The model is f ~ N(0, a K + v 1 1') and t ~ N(f, s2 diag(1 / c)), with the amplitude a, the prior variance v of a
//! constant, and the noise variance s2. With C = a K + v 1 1' + s2 diag(1 / c), alpha = inv(C) t and W = sum_k alpha_k
//! alpha_k' - R inv(C) over R outputs,
//!
//! ```text
//! log p(t) = sum_k -1/2 t_k' alpha_k - R/2 log|2 pi C| + (rest)       d log p / d theta = 1/2 tr(W dC/dtheta)
//! ```
//!
//! (Rasmussen & Williams 2006, eq. 5.8 and 5.9). The rest are the terms of rows of equal inputs,
//! [`DistinctRows::rest`].

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::kernel::{Fill, GradientSums, Kernel, SymmetricSums};
use crate::linalg::Cholesky;
use crate::process::Hyper;
use crate::query::merged_rows::DistinctRows;

/// Number of rows and columns of a tile of the kernel matrix. One thread computes a row of tiles, so that 1,000 rows
/// keep 8 threads busy. Preparing the rows of a tile takes a tenth of the time for its pairs.
const TILE: usize = 128;

/// The log evidence, and its derivatives by [`Hyper`] and by the logs of the kernel's parameters.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub value: f64,
    pub by_amplitude: f64,
    pub by_noise: f64,
    pub by_parameters: Vec<f64>,
}

/// The log evidence and the quantities from which its gradient is computed.
struct Solved {
    value: f64,
    factor: Cholesky,
    /// inv(C) t, [n, R].
    alpha: Array2<f64>,
    /// 1'inv(C) 1.
    ones: f64,
}

/// Solves the system of C. Returns `None` if C has no Cholesky factor in 64-bit numbers.
fn solve(rows: &DistinctRows, kernel: &Kernel, hyper: Hyper, constant: f64) -> Option<Solved> {
    let (n, outputs) = rows.t.dim();
    let (amplitude, noise) = (hyper.log_amplitude.exp(), hyper.log_noise.exp());
    let mut covariance = upper_of(kernel, rows.x.view(), |k| amplitude * k + constant);
    covariance.diag_mut().iter_mut().zip(&rows.weights).for_each(|(v, c)| *v += noise / c);
    let factor = Cholesky::of_upper(covariance)?;
    let mut alpha = Array2::ones((n, outputs + 1));
    alpha.slice_mut(s![.., ..outputs]).assign(&rows.t);
    factor.solve(alpha.view_mut());
    let ones = alpha.column(outputs).sum();
    let alpha = alpha.slice_move(s![.., ..outputs]);
    let logs = outputs as f64 * (factor.log_det() + n as f64 * (2.0 * PI).ln());
    let rest: f64 = (0..outputs).map(|k| rows.rest(k, hyper.log_noise).0).sum();
    let value = -0.5 * ((&rows.t * &alpha).sum() + logs) + rest;
    value.is_finite().then_some(Solved { value, factor, alpha, ones })
}

/// Returns the log evidence without its gradient. Arguments and result are as in [`evidence`].
pub(crate) fn log_evidence(rows: &DistinctRows, kernel: &Kernel, hyper: Hyper, constant: f64) -> Option<f64> {
    solve(rows, kernel, hyper, constant).map(|solved| solved.value)
}

/// Returns the log evidence and its gradient for a kernel whose parameters are all numbers. `constant` is the prior
/// variance v. The gradient in the kernel's parameters is computed only if `with_kernel`, and is empty otherwise.
/// Returns `None` if C has no Cholesky factor in 64-bit numbers.
pub(crate) fn evidence(rows: &DistinctRows, kernel: &Kernel, hyper: Hyper, constant: f64, with_kernel: bool) -> Option<Evidence> {
    let Solved { value, factor, alpha, ones } = solve(rows, kernel, hyper, constant)?;
    let (n, outputs) = rows.t.dim();
    let (amplitude, noise, r) = (hyper.log_amplitude.exp(), hyper.log_noise.exp(), outputs as f64);
    // Lower triangle of W.
    let mut w = factor.lower_of_inverse();
    for (i, mut row) in w.outer_iter_mut().enumerate() {
        let mut row = row.slice_mut(s![..=i]);
        row.mapv_inplace(|v| -r * v);
        for alpha in alpha.columns() {
            row.scaled_add(alpha[i], &alpha.slice(s![..=i]));
        }
    }
    let noise_trace: f64 = w.diag().iter().zip(&rows.weights).map(|(w, c)| w * noise / c).sum();
    let sum = alpha.columns().into_iter().map(|alpha| alpha.sum().powi(2)).sum::<f64>() - r * ones;
    // tr(W C) = t'alpha - R n. Subtracting the parts of noise and constant leaves the part of the amplitude.
    let by_amplitude = 0.5 * ((&rows.t * &alpha).sum() - r * n as f64 - noise_trace - constant * sum);
    let by_noise = 0.5 * noise_trace + (0..outputs).map(|k| rows.rest(k, hyper.log_noise).1).sum::<f64>();
    let by_parameters = if with_kernel { kernel_gradient(kernel, rows.x.view(), w, 0.5 * amplitude) } else { vec![] };
    Some(Evidence { value, by_amplitude, by_noise, by_parameters })
}

/// Returns f(k) of the kernel values k at all pairs of rows `x`, [n, D], as [n, n]. Only the upper triangle is defined.
pub(super) fn upper_of(kernel: &Kernel, x: ArrayView2<f64>, f: impl Fn(f64) -> f64 + Sync) -> Array2<f64> {
    let mut out = Array2::zeros((x.nrows(), x.nrows()));
    let chunks: Vec<ArrayView2<f64>> = x.axis_chunks_iter(Axis(0), TILE).collect();
    let fills: Vec<Fill> = chunks.iter().map(|rows| kernel.at(*rows)).collect();
    out.axis_chunks_iter_mut(Axis(0), TILE).into_par_iter().zip(&chunks).enumerate().for_each(|(k, (mut out, rows))| {
        let tiles = out.axis_chunks_iter_mut(Axis(1), TILE).zip(&fills).skip(k);
        tiles.for_each(|(mut tile, fill)| {
            fill(*rows, tile.view_mut());
            tile.outer_iter_mut().for_each(|mut row| row.mapv_inplace(&f));
        });
    });
    out
}

/// Returns `scale` sum_ij w_ij dk(x_i, x_j)/dlog theta for each parameter of the kernel. `w`, [n, n], is symmetric;
/// only its lower triangle is read.
pub(super) fn kernel_gradient(kernel: &Kernel, x: ArrayView2<f64>, mut w: Array2<f64>, scale: f64) -> Vec<f64> {
    let sums = SymmetricSums::new(kernel, x);
    let rows_of_tiles = w.axis_chunks_iter_mut(Axis(0), TILE).into_par_iter().enumerate();
    let parts: Vec<Vec<f64>> = rows_of_tiles
        .map(|(k, mut w)| {
            let first = k * TILE;
            // Each entry below the diagonal counts for its mirror image too.
            for (i, mut row) in w.outer_iter_mut().enumerate() {
                row.slice_mut(s![..first + i]).mapv_inplace(|w| 2.0 * w);
                row.slice_mut(s![first + i + 1..]).fill(0.0);
            }
            let until = first + w.nrows();
            sums.of_rows(first, w.slice_move(s![.., ..until]), TILE)
        })
        .collect();
    let mut total = vec![0.0; kernel.parameters().len()];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(sum, v)| *sum += scale * v);
    }
    total
}

/// Returns the kernel values of rows `a`, [n, D], and `b`, [m, D], as [n, m].
pub(super) fn kernel_block(kernel: &Kernel, a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.nrows()));
    let fill = kernel.at(b);
    let tiles = out.axis_chunks_iter_mut(Axis(0), TILE).into_par_iter();
    tiles.zip(a.axis_chunks_iter(Axis(0), TILE).into_par_iter()).for_each(|(out, a)| fill(a, out));
    out
}

/// Returns `scale` sum_ij w_ij dk(a_i, b_j)/dlog theta for each parameter of the kernel, for `w`, [n, m].
pub(super) fn cross_gradient(
    kernel: &Kernel,
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    mut w: Array2<f64>,
    scale: f64,
) -> Vec<f64> {
    let tiles = w.axis_chunks_iter_mut(Axis(0), TILE).into_par_iter();
    let parts: Vec<GradientSums> = tiles
        .zip(a.axis_chunks_iter(Axis(0), TILE).into_par_iter())
        .map(|(w, rows)| {
            let mut sums = GradientSums::new(kernel, b);
            sums.add(rows, w);
            sums
        })
        .collect();
    let mut total = GradientSums::new(kernel, b);
    parts.iter().for_each(|part| total.merge(part));
    total.finish().0.into_iter().map(|v| scale * v).collect()
}

/// Returns the log evidence of a constant with noise, at the best noise variance. If there is a constant, the targets
/// of `rows` must have mean 0.
pub(crate) fn constant_evidence(rows: &DistinctRows) -> f64 {
    let sums = rows.t.columns().into_iter().zip(&rows.scatter).enumerate();
    sums.map(|(k, (t, scatter))| {
        let sum: f64 = t.iter().zip(&rows.weights).map(|(t, c)| c * t * t).sum();
        let noise = ((sum + scatter) / rows.count).max(f64::MIN_POSITIVE);
        let logs: f64 = rows.weights.iter().map(|c| (2.0 * PI * noise / c).ln()).sum();
        -0.5 * (logs + sum / noise) + rows.rest(k, noise.ln()).0
    })
    .sum()
}

/// Returns the kernel matrix of rows `x`, [n, D], as [n, n].
#[cfg(test)]
pub(super) fn kernel_matrix(kernel: &Kernel, x: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((x.nrows(), x.nrows()));
    kernel.block(x, x, out.view_mut());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::DataScale;
    use ndarray::Array2;

    fn wave(n: usize, features: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((n, features), || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
    }

    fn rows(n: usize, features: usize, outputs: usize) -> DistinctRows {
        let x = wave(n, features, 1);
        let t = Array2::from_shape_fn((n, outputs), |(i, k)| (3.0 * x[[i, 0]] + k as f64).sin()) + &(wave(n, outputs, 2) * 0.3);
        let weights: Vec<f64> = wave(n, 1, 3).iter().map(|v| 1.5 + v).collect();
        let factors: Vec<f64> = wave(n, 1, 4).iter().map(|v| 1.2 + v).collect();
        DistinctRows::new(x.view(), t.view(), &weights, &factors)
    }

    /// Covers every kernel that is a covariance, one gamma and one per feature, one output and three.
    #[test]
    fn gradient_equals_finite_differences() {
        for (features, outputs) in [(1, 1), (3, 3), (7, 1)] {
            let data = rows(40, features, outputs);
            let per_feature: Vec<f64> = (0..features).map(|d| 0.2 + 0.3 * d as f64).collect();
            let names = Kernel::NAMES.iter().filter(|name| **name != "sigmoid");
            let all = names.map(|name| Kernel::from_name(name).unwrap().resolve(&DataScale { features, variance: 1.0 }).unwrap());
            for kernel in all.flat_map(|k| [k.with_gamma(0.4.into()), k.with_gamma(per_feature.clone().into())]) {
                let hyper = Hyper { log_amplitude: 0.3, log_noise: -1.5 };
                let logs: Vec<f64> = kernel.parameters().iter().map(|(_, v)| v.ln()).collect();
                let at = |hyper, shift: &dyn Fn(usize) -> f64| {
                    let values: Vec<f64> = logs.iter().enumerate().map(|(k, v)| (v + shift(k)).exp()).collect();
                    evidence(&data, &kernel.with_parameters(&values), hyper, 1.0, true).unwrap()
                };
                let exact = at(hyper, &|_| 0.0);
                let h = 1e-5;
                let close = |got: f64, ends: [Evidence; 2]| {
                    let expected = (ends[1].value - ends[0].value) / (2.0 * h);
                    let size = 1.0 + expected.abs();
                    assert!((got - expected).abs() < 2e-6 * size, "{kernel:?}: {got} instead of {expected}");
                };
                let amplitude = |h: f64| at(Hyper { log_amplitude: hyper.log_amplitude + h, ..hyper }, &|_| 0.0);
                let noise = |h: f64| at(Hyper { log_noise: hyper.log_noise + h, ..hyper }, &|_| 0.0);
                close(exact.by_amplitude, [-h, h].map(amplitude));
                close(exact.by_noise, [-h, h].map(noise));
                assert_eq!(exact.by_parameters.len(), logs.len());
                for (k, got) in exact.by_parameters.iter().enumerate() {
                    close(*got, [-h, h].map(|h| at(hyper, &|other| if other == k { h } else { 0.0 })));
                }
            }
        }
    }

    /// A row of weight two has the same evidence as the row twice.
    #[test]
    fn weights_are_repetitions() {
        let (x, t) = (wave(12, 2, 5), wave(12, 1, 6));
        let weights: Vec<f64> = (0..12).map(|i| 1.0 + (i % 3) as f64).collect();
        let repeated: Vec<usize> = (0..12).flat_map(|i| vec![i; 1 + i % 3]).collect();
        let kernel = Kernel::from_name("rbf").unwrap().with_gamma(0.7.into());
        let hyper = Hyper { log_amplitude: 0.5, log_noise: -1.0 };
        let one = DistinctRows::new(x.view(), t.view(), &weights, &[1.0; 12]);
        let (x, t) = (x.select(Axis(0), &repeated), t.select(Axis(0), &repeated));
        let other = DistinctRows::new(x.view(), t.view(), &[1.0; 24], &[1.0; 24]);
        let of = |rows: &DistinctRows| evidence(rows, &kernel, hyper, 1.0, false).unwrap();
        assert!((of(&one).value - of(&other).value).abs() < 1e-10);
        assert!((of(&one).by_noise - of(&other).by_noise).abs() < 1e-10);
        assert!((constant_evidence(&one) - constant_evidence(&other)).abs() < 1e-10);
        // The expected value comes from the N x N covariance of the unmerged rows.
        let mut covariance = kernel_matrix(&kernel, x.view()) * hyper.log_amplitude.exp() + 1.0;
        covariance.diag_mut().mapv_inplace(|v| v + hyper.log_noise.exp());
        let factor = Cholesky::new(covariance, 0.0).unwrap();
        let mut alpha = t.clone();
        factor.solve(alpha.view_mut());
        let direct = -0.5 * ((&t * &alpha).sum() + factor.log_det() + 24.0 * (2.0 * PI).ln());
        assert!((of(&one).value - direct).abs() < 1e-9, "{} instead of {direct}", of(&one).value);
    }
}
