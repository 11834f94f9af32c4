//! Derivatives of kernel values in the sum over features that they are a function of, and in the logarithms of
//! parameters, (M20).

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use relvec_predict::internal::kernel::{Products, matern32, matern52, squared_distances};

use super::vector::{self, Pointwise};
use super::weighted::{weighted_absolutes, weighted_products, weighted_squares};
use super::{Form, Gamma, Kernel, Periodic, RationalQuadratic, Sum};

/// Derivatives of a kernel in its parameters.
pub trait KernelGradient {
    /// Returns sum_ij w_ij dk(a_i, b_j)/dlog theta for each of [`Kernel::parameters`], accurate to rounding, (M20).
    /// Shapes: `a` [n, D], `b` [m, D], `w` [n, m]. The kernel is resolved.
    fn gradient(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64>;
}

impl KernelGradient for Kernel {
    fn gradient(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64> {
        let mut s = w.to_owned();
        let rest = slope(self, a, b, s.view_mut());
        let mut all = match self.form() {
            Form::Squares(gamma) => per_parameter(gamma, weighted_squares(a, b, s.view(), gamma)),
            Form::Absolutes(gamma) => per_parameter(gamma, weighted_absolutes(a, b, s.view(), gamma)),
            Form::Products(Some(gamma)) => per_parameter(gamma, weighted_products(a, b, s.view(), gamma)),
            Form::Products(None) | Form::Other => vec![],
        };
        all.extend(rest);
        all
    }
}

/// Replaces each entry of `w`, [n, m], by w_ij dk(a_i, b_j)/dp, where p is the sum of [`Kernel::form`]. Returns sum_ij
/// w_ij dk/dlog theta for each parameter other than gamma, and for periodic kernels and sums for all parameters.
/// Shapes: `a` [n, D], `b` [m, D]. The kernel is resolved. A kernel without parameters leaves `w` unchanged, which is
/// correct for x.x'.
pub(super) fn slope(kernel: &Kernel, a: ArrayView2<f64>, b: ArrayView2<f64>, mut w: ArrayViewMut2<f64>) -> Vec<f64> {
    match kernel {
        Kernel::Rbf(_) | Kernel::Laplacian(_) => {
            // dk/dp = -k
            let mut k = Array2::zeros(w.dim());
            kernel.block(a, b, k.view_mut());
            vector::map_with(w, k.view(), |w, k| -k * w);
            vec![]
        }
        Kernel::Matern32(own) => {
            // dk/dd^2 = -3 exp(-s), which is finite at s = 0
            of_squares(a, b, &own.gamma, w, |w, d2| -3.0 * vector::decay(matern32::distance(d2)) * w)
        }
        Kernel::Matern52(own) => of_squares(a, b, &own.gamma, w, |w, d2| {
            // dk/dd^2 = -5/3 (1 + s) exp(-s), which is finite at s = 0
            let s = matern52::distance(d2);
            -5.0 / 3.0 * (1.0 + s) * vector::decay(s) * w
        }),
        Kernel::RationalQuadratic(own) => vec![of_rational_quadratic(own, a, b, w)],
        Kernel::Poly(own) => {
            // dk/dp = degree (..)^(degree - 1); coef0 is added to p
            let (degree, coef0) = (own.degree, own.coef0);
            let p = products(a, b, &own.gamma);
            w.zip_mut_with(&p, |w, p| *w *= f64::from(degree) * (p + coef0).powi(degree as i32 - 1));
            of_coef0(coef0, w.view())
        }
        Kernel::Sigmoid(own) => {
            // dk/dp = 1 / cosh^2(..); coef0 is added to p
            let p = products(a, b, &own.gamma);
            w.zip_mut_with(&p, |w, p| *w /= (p + own.coef0).cosh().powi(2));
            of_coef0(own.coef0, w.view())
        }
        Kernel::Periodic(own) => of_periodic(own, a, b, w.view()),
        Kernel::Sum(own) => of_sum(own, a, b, w.view()),
        Kernel::Linear(_) | Kernel::LinearSpline(_) => vec![],
    }
}

/// Replaces each w_ij of `w`, `[N, M]`, by `f` of it and of the squared distance d^2_ij of rows of `a`, `[N, D]`, and
/// `b`, `[M, D]`.
fn of_squares(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    gamma: &Gamma,
    w: ArrayViewMut2<f64>,
    f: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut d2 = Array2::zeros(w.dim());
    squared_distances(a, b, gamma, d2.view_mut());
    vector::map_with(w, d2.view(), f);
    vec![]
}

/// Replaces each w_ij of `w`, `[N, M]`, by w_ij dk/dd^2_ij, and returns sum_ij w_ij dk_ij/dlog shape; a: `[N, D]`, b:
/// `[M, D]`. With r = d^2 / shape: dk/dd^2 = -k / (1 + r), dk/dlog shape = k shape [r / (1 + r) - log(1 + r)].
fn of_rational_quadratic(own: &RationalQuadratic, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayViewMut2<f64>) -> f64 {
    let mut d2 = Array2::zeros(w.dim());
    squared_distances(a, b, &own.gamma, d2.view_mut());
    let mut shape = 0.0;
    vector::rows(w, |i, row| {
        for (w, d2) in row.iter_mut().zip(d2.row(i)) {
            let (r, k) = (own.ratio(*d2), own.value(*d2));
            shape += *w * k * own.shape * (r / (1.0 + r) - r.ln_1p());
            *w *= -k / (1.0 + r);
        }
    });
    shape
}

/// Returns the derivatives of sum_ij w_ij k(a_i, b_j), every gamma first, then the period; a: `[N, D]`, b: `[M, D]`, w:
/// `[N, M]`. With s_d = 4 sin^2(pi r_d / p), r = a - b: dk/dlog gamma_d = -k gamma_d s_d, dk/dlog p = k sum_d gamma_d 4
/// pi r_d / p sin(2 pi r_d / p).
fn of_periodic(own: &Periodic, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64> {
    let mut k = Array2::zeros(w.dim());
    Kernel::from(own.clone()).block(a, b, k.view_mut());
    k *= &w;
    let period = own.number();
    let (mut by_gamma, mut by_period) = (vec![0.0; a.ncols()], 0.0);
    for ((i, j), k) in k.indexed_iter() {
        for (d, by_gamma) in by_gamma.iter_mut().enumerate() {
            let (gamma, angle) = (own.gamma.at(d), PI * (a[[i, d]] - b[[j, d]]) / period);
            let (sin, cos) = angle.sin_cos();
            *by_gamma -= 4.0 * k * gamma * sin * sin;
            by_period += 8.0 * k * gamma * angle * sin * cos;
        }
    }
    let mut all = per_parameter(&own.gamma, by_gamma);
    all.push(by_period);
    all
}

/// Returns the derivatives of sum_ij w_ij k(a_i, b_j), for each term in its amplitude and in the parameters of its
/// factors. The other factors are weights of these derivatives. Shapes: a `[N, D]`, b `[M, D]`, w `[N, M]`.
fn of_sum(own: &Sum, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64> {
    let mut all = vec![];
    for term in &own.terms {
        let inputs: Vec<_> = term.factors.iter().map(|factor| (&factor.kernel, factor.inputs(a), factor.inputs(b))).collect();
        let weights = |but: Option<usize>| {
            let mut product = &w * term.amplitude.expect("the kernel is resolved");
            for (kernel, a, b) in inputs.iter().enumerate().filter(|(f, _)| Some(*f) != but).map(|(_, inputs)| inputs) {
                let mut k = Array2::zeros(w.dim());
                kernel.block(a.view(), b.view(), k.view_mut());
                product *= &k;
            }
            product
        };
        all.push(weights(None).sum());
        for (f, (kernel, a, b)) in inputs.iter().enumerate() {
            all.extend(kernel.gradient(a.view(), b.view(), weights(Some(f)).view()));
        }
    }
    all
}

/// Returns sum_d gamma_d a_id b_jd, [n, m].
fn products(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma) -> Array2<f64> {
    let mut p = Array2::zeros((a.nrows(), b.nrows()));
    Products::new(b, gamma).fill(a, p.view_mut());
    p
}

/// Returns the derivative in log coef0, which is a parameter if it is positive. `slopes` is w_ij dk/dp, [n, m].
fn of_coef0(coef0: f64, slopes: ArrayView2<f64>) -> Vec<f64> {
    if coef0 > 0.0 { vec![coef0 * slopes.sum()] } else { vec![] }
}

/// Sums a gradient per feature into one per parameter.
pub(super) fn per_parameter(gamma: &Gamma, per_feature: Vec<f64>) -> Vec<f64> {
    match gamma {
        Gamma::PerFeature(_) => per_feature,
        _ => vec![per_feature.iter().sum()],
    }
}
