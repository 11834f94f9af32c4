//! Derivatives of kernel values in the sum over features that they are a function of, and in the logarithms of parameters beside
//! gamma, (M20).

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use relvec_predict::internal::kernel::{Products, matern32, matern52, squared_distances};

use super::vector::{self, Pointwise};
use super::{Gamma, Kernel, RationalQuadratic};

/// Replaces each entry of `w`, [n, m], by w_ij dk(a_i, b_j)/dp, p the sum of [`Kernel::form`]; returns sum_ij w_ij dk/dlog theta for
/// each of the parameters behind gamma. `a`: [n, D], `b`: [m, D]; the kernel is resolved. A kernel that no parameter changes
/// leaves `w` as it is, which is right for x.x'.
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
            // dk/dd^2 = -3 exp(-s): finite at s = 0
            of_squares(a, b, &own.gamma, w, |w, d2| -3.0 * vector::decay(matern32::distance(d2)) * w)
        }
        Kernel::Matern52(own) => of_squares(a, b, &own.gamma, w, |w, d2| {
            // dk/dd^2 = -5/3 (1 + s) exp(-s): finite at s = 0
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
        Kernel::Linear(_) | Kernel::LinearSpline(_) => vec![],
    }
}

/// Replaces each w_ij by `f` of it and of d^2_ij.
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

/// With r = d^2 / shape: dk/dd^2 = -k / (1 + r), dk/dlog shape = k shape [r / (1 + r) - log(1 + r)].
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

/// sum_d gamma_d a_id b_jd, [n, m].
fn products(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma) -> Array2<f64> {
    let mut p = Array2::zeros((a.nrows(), b.nrows()));
    Products::new(b, gamma).fill(a, p.view_mut());
    p
}

/// The derivative in log coef0, which is a parameter where it is positive; `slopes`: w_ij dk/dp, [n, m].
fn of_coef0(coef0: f64, slopes: ArrayView2<f64>) -> Vec<f64> {
    if coef0 > 0.0 { vec![coef0 * slopes.sum()] } else { vec![] }
}
