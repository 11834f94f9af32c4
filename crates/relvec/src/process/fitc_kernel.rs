//! FITC's log evidence and its exact gradient in the kernel's parameters. It learns the widths from more rows than a
//! dense process can use, at the cost of few centres.
//!
//! The model is f ~ N(0, a (Q + D) + v 1 1') and t ~ N(f, s2 diag(1 / c)) as in [`crate::process::evidence`]. For M
//! centres, L L' = K_mm, V = inv(L) K_mn, Q = V'V and D = diag(k(x_n, x_n) - Q_nn) (Snelson & Ghahramani 2006). With
//! Lambda = a D + s2 diag(1 / c), C = a Q + v 1 1' + Lambda, alpha_k = inv(C) t_k, G = 1/2 (sum_k alpha_k alpha_k' - R
//! inv(C)), H = G - diag(G) and P = inv(K_mm) K_mn,
//!
//! ```text
//! d log p / d theta = a [2 tr(P H dK_nm) - tr(P H P' dK_mm) + sum_n G_nn dk(x_n, x_n)]
//! ```
//!
//! Solves with C use U = inv(root Lambda) [root v; root a V] and A = 1 + U U', in O(n M^2).

use std::f64::consts::PI;

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate};

use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelGradient as _};
use crate::linalg::{self, Cholesky};
use crate::process::Hyper;
use crate::process::evidence::{Evidence, cross_gradient, kernel_block};
use crate::query::merged_rows::DistinctRows;

/// Added to the diagonal of `K_mm`, relative to it, because the matrix of a wide kernel has no Cholesky factor
/// otherwise. Rounding errors need M times 1e-16. What this adds to D is at most the smallest noise variance, e^-14, at
/// amplitude 1.
const JITTER: f64 = 1e-6;

/// Returns the log evidence and its gradient for a kernel whose parameters are all numbers, and centres, [M, D].
/// `constant` is the prior variance v of the constant. Returns `None` if a matrix has no Cholesky factor in 64-bit
/// numbers.
pub(super) fn evidence(
    rows: &DistinctRows,
    centres: ArrayView2<f64>,
    kernel: &Kernel,
    hyper: Hyper,
    constant: f64,
) -> Result<Option<Evidence>> {
    let (n, outputs) = rows.t.dim();
    let (amplitude, noise, r) = (hyper.log_amplitude.exp(), hyper.log_noise.exp(), outputs as f64);
    let mut own = kernel_block(kernel, centres, centres);
    own.diag_mut().mapv_inplace(|k| k * (1.0 + JITTER));
    let Some(Cholesky { lower, .. }) = factor(own)? else { return Ok(None) };
    let mut v = kernel_block(kernel, centres, rows.x.view());
    linalg::solve_lower(lower.view(), v.view_mut());
    let of_noise: Array1<f64> = rows.weights.iter().map(|c| noise / c).collect();
    let lambda = (kernel.diagonal(rows.x.view()) - squares(&v)).mapv(|d| amplitude * d.max(0.0)) + &of_noise;
    let roots = lambda.mapv(|lambda| lambda.sqrt().recip());
    let mut u =
        concatenate![Axis(0), Array2::from_elem((usize::from(constant > 0.0), n), constant.sqrt()), &v * amplitude.sqrt()];
    u *= &roots;
    let mut a = linalg::gram(u.t());
    a.diag_mut().mapv_inplace(|v| v + 1.0);
    let Some(a) = factor(a)? else { return Ok(None) };
    let by_row = roots.view().insert_axis(Axis(1));
    let mut alpha = &rows.t * &by_row;
    let mut mean = linalg::times(u.view(), alpha.view());
    a.solve(mean.view_mut());
    linalg::product(true, -1.0, u.t(), mean.view(), alpha.view_mut());
    let quad = alpha.iter().chain(&mean).map(|v| v * v).sum::<f64>();
    alpha *= &by_row;
    let logs = lambda.iter().map(|v| v.ln()).sum::<f64>() + a.log_det() + n as f64 * (2.0 * PI).ln();
    let (rest, rest_by_noise) =
        (0..outputs).map(|k| rows.rest(k, hyper.log_noise)).fold((0.0, 0.0), |sum, rest| (sum.0 + rest.0, sum.1 + rest.1));
    let value = rest - 0.5 * (quad + r * logs);
    if !value.is_finite() {
        return Ok(None);
    }
    linalg::solve_lower(a.lower.view(), u.view_mut());
    let diagonal = 0.5 * (squares(&alpha.t().to_owned()) - r * (1.0 - squares(&u)) / &lambda);
    let by_noise = diagonal.dot(&of_noise);
    let spread = u.dot(&roots);
    let of_ones = alpha.sum_axis(Axis(0)).mapv(|v| v * v).sum() - r * (roots.dot(&roots) - spread.dot(&spread));
    // tr(G C) is the sum over the parts of C.
    let by_amplitude = 0.5 * (quad - r * n as f64) - by_noise - 0.5 * constant * of_ones;
    // V H, using inv(C) V' = inv(root Lambda) [inv(A) U]' / root a.
    linalg::solve_lower_transposed(a.lower.view(), u.view_mut());
    let mut w = u.slice_move(ndarray::s![usize::from(constant > 0.0).., ..]);
    w *= &(roots * (-0.5 * r / amplitude.sqrt()));
    w.outer_iter_mut().zip(v.outer_iter()).for_each(|(mut w, v)| w -= &(&v * &diagonal));
    linalg::product(true, 0.5, linalg::times(v.view(), alpha.view()).view(), alpha.t(), w.view_mut());
    let mut inner = linalg::times(w.view(), v.t());
    linalg::solve_lower_transposed(lower.view(), inner.view_mut());
    let mut inner = inner.t().as_standard_layout().into_owned();
    linalg::solve_lower_transposed(lower.view(), inner.view_mut());
    inner.diag_mut().mapv_inplace(|w| w * (1.0 + JITTER));
    linalg::solve_lower_transposed(lower.view(), w.view_mut());
    let mut by_parameters = cross_gradient(kernel, centres, rows.x.view(), w, 2.0 * amplitude);
    let mut add = |part: Vec<f64>| by_parameters.iter_mut().zip(part).for_each(|(sum, v)| *sum += v);
    add(cross_gradient(kernel, centres, centres, inner, -amplitude));
    if !kernel.is_local() {
        for (x, g) in rows.x.outer_iter().zip(&diagonal) {
            let x = x.insert_axis(Axis(0));
            add(kernel.gradient(x, x, Array2::from_elem((1, 1), amplitude * g).view()));
        }
    }
    Ok(Some(Evidence { value, by_amplitude, by_noise: by_noise + rest_by_noise, by_parameters }))
}

fn factor(a: Array2<f64>) -> Result<Option<Cholesky>> {
    match Cholesky::new(a, 0.0) {
        Ok(factor) => Ok(Some(factor)),
        Err(Error::Singular { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the sums of squares of the columns of `a`, [m, n], as `[n]`.
fn squares(a: &Array2<f64>) -> Array1<f64> {
    let mut sums = Array1::zeros(a.ncols());
    a.outer_iter().for_each(|row| sums.zip_mut_with(&row, |sum: &mut f64, v| *sum += v * v));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::evidence;

    const COUNT: usize = 30;

    fn wave(n: usize, d: usize, seed: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, k)| 2.0 * (0.618_033_988_75 * (i * (k + 1) + 3 * k + seed) as f64).fract() - 1.0)
    }

    fn rows() -> DistinctRows {
        let x = wave(COUNT, 2, 0);
        let t = Array2::from_shape_fn((COUNT, 2), |(i, k)| (3.0 * x[[i, 0]] + k as f64).sin() + 0.3 * x[[i, 1]]);
        let weights: Vec<f64> = (0..COUNT).map(|i| 0.5 + (i % 4) as f64).collect();
        DistinctRows::new(x.view(), t.view(), &weights, &vec![0.7; COUNT])
    }

    fn kernels() -> Vec<Kernel> {
        let named = |name| Kernel::from_name(name).unwrap();
        let gamma: Vec<f64> = vec![0.8, 1.7];
        vec![
            named("rbf").with_gamma(gamma.clone().into()),
            named("matern32").with_gamma(gamma.clone().into()),
            named("rational_quadratic").with_gamma(0.9.into()),
            named("laplacian").with_gamma(gamma.into()),
            named("poly").with_gamma(0.6.into()),
            Kernel::parse("0.7*rbf(gamma=0.8)[1] + 0.4*periodic(gamma=0.5, period=1.3)[0]*linear", &Default::default()).unwrap(),
        ]
    }

    /// The expected value comes from the N x N covariance, with 7 of the rows as centres.
    #[test]
    fn evidence_equals_that_of_the_n_by_n_covariance() {
        let rows = rows();
        let centres = rows.x.slice(ndarray::s![..7, ..]).to_owned();
        for kernel in kernels() {
            for (constant, hyper) in
                [(1.0, Hyper { log_amplitude: 0.5, log_noise: -2.0 }), (0.0, Hyper { log_amplitude: 2.0, log_noise: -5.0 })]
            {
                let mut own = kernel_block(&kernel, centres.view(), centres.view());
                own.diag_mut().mapv_inplace(|k| k * (1.0 + JITTER));
                let cross = kernel_block(&kernel, centres.view(), rows.x.view());
                let mut solved = cross.clone();
                Cholesky::new(own, 0.0).unwrap().solve(solved.view_mut());
                let mut c = cross.t().dot(&solved);
                c.diag_mut().assign(&kernel.diagonal(rows.x.view()));
                let mut c = c * hyper.log_amplitude.exp() + constant;
                c.diag_mut().iter_mut().zip(&rows.weights).for_each(|(v, w)| *v += hyper.log_noise.exp() / w);
                let factor = Cholesky::new(c, 0.0).unwrap();
                let mut alpha = rows.t.clone();
                factor.solve(alpha.view_mut());
                let logs = 2.0 * (factor.log_det() + COUNT as f64 * (2.0 * PI).ln());
                let rest = rows.rest(0, hyper.log_noise).0 + rows.rest(1, hyper.log_noise).0;
                let expected = rest - 0.5 * ((&rows.t * &alpha).sum() + logs);
                let found = evidence(&rows, centres.view(), &kernel, hyper, constant).unwrap().unwrap().value;
                assert!((found - expected).abs() < 1e-8 * expected.abs(), "{kernel:?}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn evidence_with_all_rows_as_centres_is_that_of_the_dense_process() {
        let (rows, hyper) = (rows(), Hyper { log_amplitude: 0.5, log_noise: -2.0 });
        let kernel = &kernels()[0];
        let found = evidence(&rows, rows.x.view(), kernel, hyper, 1.0).unwrap().unwrap();
        let expected = evidence::evidence(&rows, kernel, hyper, 1.0, true).unwrap();
        assert!((found.value - expected.value).abs() < 1e-3, "{} instead of {}", found.value, expected.value);
        for (found, expected) in found.by_parameters.iter().zip(&expected.by_parameters) {
            assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{found} instead of {expected}");
        }
    }

    #[test]
    fn gradient_equals_finite_differences() {
        let (rows, h) = (rows(), 1e-5);
        for (kernel, constant) in kernels().into_iter().flat_map(|kernel| [(kernel.clone(), 1.0), (kernel, 0.0)]) {
            let logs: Vec<f64> = kernel.parameters().iter().map(|(_, v)| v.ln()).collect();
            let hyper = Hyper { log_amplitude: 0.3, log_noise: -2.0 };
            for centres in [wave(5, 2, 3), rows.x.slice(ndarray::s![..9, ..]).to_owned()] {
                let at = |hyper: Hyper, k: usize, h: f64| {
                    let values: Vec<f64> =
                        logs.iter().enumerate().map(|(j, log)| if j == k { (log + h).exp() } else { log.exp() }).collect();
                    evidence(&rows, centres.view(), &kernel.with_parameters(&values), hyper, constant).unwrap().unwrap()
                };
                let exact = at(hyper, 0, 0.0);
                let close = |got: f64, ends: [Evidence; 2]| {
                    let expected = (ends[1].value - ends[0].value) / (2.0 * h);
                    assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{kernel:?}: {got} instead of {expected}");
                };
                let amplitude = |h: f64| at(Hyper { log_amplitude: hyper.log_amplitude + h, ..hyper }, 0, 0.0);
                let noise = |h: f64| at(Hyper { log_noise: hyper.log_noise + h, ..hyper }, 0, 0.0);
                close(exact.by_amplitude, [-h, h].map(amplitude));
                close(exact.by_noise, [-h, h].map(noise));
                assert_eq!(exact.by_parameters.len(), logs.len());
                for (k, got) in exact.by_parameters.iter().enumerate() {
                    close(*got, [-h, h].map(|h| at(hyper, k, h)));
                }
            }
        }
    }
}
