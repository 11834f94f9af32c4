//! Newton's step by conjugate gradients: where a product with the Hessian costs far less than the Hessian, one of an
//! earlier place, factorised, serves as preconditioner.

use ndarray::{Array, Dimension};

use crate::error::Result;

/// Residuals at which conjugate gradients stop, in the norm of the preconditioner: on the way to a mode, and at the last
/// step.
pub(crate) const RESIDUAL: f64 = 1e-3;
pub(crate) const LAST_RESIDUAL: f64 = 1e-4;
/// Products at most, and those from which a new preconditioner is worth its making.
const MAX_PRODUCTS: usize = 200;
pub(crate) const MANY_PRODUCTS: usize = 12;

/// inv(H) `gradient`, and the products with H that it took; `precondition` is nearly inv(H).
pub(crate) fn step<D: Dimension>(
    gradient: &Array<f64, D>,
    residual: f64,
    precondition: impl Fn(&Array<f64, D>) -> Array<f64, D>,
    times: impl Fn(&Array<f64, D>) -> Result<Array<f64, D>>,
) -> Result<(Array<f64, D>, usize)> {
    let mut step = Array::zeros(gradient.raw_dim());
    let mut left = gradient.clone();
    let mut z = precondition(&left);
    let mut direction = z.clone();
    let first = (&left * &z).sum();
    let mut size = first;
    let mut products = 0;
    while size > residual * residual * first && products < MAX_PRODUCTS {
        let curved = times(&direction)?;
        products += 1;
        let length = size / (&direction * &curved).sum();
        if !length.is_finite() {
            break;
        }
        step.scaled_add(length, &direction);
        left.scaled_add(-length, &curved);
        z = precondition(&left);
        let next = (&left * &z).sum();
        direction = &z + &(&direction * (next / size));
        size = next;
    }
    Ok((step, products))
}
