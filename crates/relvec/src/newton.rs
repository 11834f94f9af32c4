//! Newton's method for the mode of the weights, (M13) and (M28), for one output and for several.
//!
//! A factor of the Hessian serves for more than one step. At the weights where it was computed it gives Newton's step.
//! Elsewhere the step is found by conjugate gradients with this factor as preconditioner.

use ndarray::Array2;

use crate::error::Result;
use crate::linalg::Cholesky;

/// Largest number of steps. From zero the mode takes about ten.
const MAX_STEPS: usize = 100;
/// Largest number of times that a step is halved. For large counts the first step is far too long: 1e18 needs 60
/// halvings.
const MAX_HALVINGS: usize = 80;
/// Remaining gain, relative to the objective, from which the next step is the last.
pub(crate) const DECREMENT: f64 = 1e-11;
/// Rounding of the objective, relative to it.
pub(crate) const ROUNDING: f64 = 1e-14;
/// Relative residual at which conjugate gradients stop, in the norm of the preconditioner.
const RESIDUAL: f64 = 1e-3;
/// Relative residual for the last step.
const LAST_RESIDUAL: f64 = 1e-4;
/// Largest number of products with the Hessian in one step.
const MAX_PRODUCTS: usize = 200;
/// Number of products in one step above which a new factor is computed.
const MANY_PRODUCTS: usize = 12;

/// The sum of a log-likelihood and a log prior of weights, [R, M], which is a concave function.
pub(crate) trait Objective {
    /// Quantities of the rows at given weights.
    type Rows;
    /// The Hessian of the negative log-likelihood, or matrices from which it is computed.
    type Gram;

    /// Returns the objective at weights `w`, [R, M].
    fn at(&self, w: Array2<f64>) -> Result<Iterate<Self::Rows>>;
    /// Returns the negative Hessian of the objective times `d`, [R, M].
    fn times(&self, iterate: &Iterate<Self::Rows>, d: &Array2<f64>) -> Result<Array2<f64>>;
    /// Returns the Hessian of the negative log-likelihood.
    fn gram(&self, iterate: &Iterate<Self::Rows>) -> Result<Self::Gram>;
    /// Returns the factor of the negative Hessian of the objective, [R M, R M].
    fn factor(&self, gram: &Self::Gram) -> Result<Cholesky>;
    /// Returns true if a new Hessian costs no more than a few products with it. Each step then has its own Hessian.
    fn is_cheap(&self) -> bool;
}

/// Weights, [R, M], and the objective at them.
#[derive(Debug)]
pub(crate) struct Iterate<T> {
    pub w: Array2<f64>,
    /// Log-likelihood plus log prior, in nats.
    pub value: f64,
    /// Gradient of the objective, [R, M].
    pub gradient: Array2<f64>,
    pub rows: T,
}

/// The mode, the Hessian at it, and its factor.
pub(crate) struct Mode<O: Objective + ?Sized> {
    pub iterate: Iterate<O::Rows>,
    pub gram: O::Gram,
    pub factor: Cholesky,
}

/// Finds the mode from `start`. `near` is the Hessian at weights nearby, if it is known.
///
/// # Errors
/// Returns the errors of the objective, among them [`Error::Singular`](crate::error::Error::Singular) if a Hessian
/// cannot be factorised.
pub(crate) fn mode<O: Objective>(objective: &O, start: Iterate<O::Rows>, near: Option<O::Gram>) -> Result<Mode<O>> {
    let (mut iterate, mut fresh, mut last) = (start, near.is_none(), false);
    let mut gram = near.map_or_else(|| objective.gram(&iterate), Ok)?;
    let mut factor = objective.factor(&gram)?;
    for _ in 0..MAX_STEPS {
        let newton = |residual: f64| match fresh {
            true => Ok((precondition(&factor, &iterate.gradient), 0)),
            false => by_conjugate_gradients(objective, &iterate, &factor, residual),
        };
        let (mut step, products) = newton(RESIDUAL)?;
        // Half the Newton decrement is the remaining gain. If it is below rounding, one full step is the last.
        if 0.5 * (&iterate.gradient * &step).sum() <= DECREMENT * (1.0 + iterate.value.abs()) {
            (last, step) = (true, newton(LAST_RESIDUAL)?.0);
        }
        let Some(next) = ascend(objective, &iterate, &step, last)? else { break };
        (iterate, fresh) = (next, false);
        if objective.is_cheap() || products > MANY_PRODUCTS {
            gram = objective.gram(&iterate)?;
            (factor, fresh) = (objective.factor(&gram)?, true);
        }
        if last {
            break;
        }
    }
    if !fresh {
        gram = objective.gram(&iterate)?;
        factor = objective.factor(&gram)?;
    }
    if !objective.is_cheap() {
        // With the factor at these weights another step, for the last digits, costs little.
        let polished = objective.at(&iterate.w + &precondition(&factor, &iterate.gradient))?;
        if polished.value >= iterate.value - ROUNDING * iterate.value.abs() {
            iterate = polished;
        }
    }
    Ok(Mode { iterate, gram, factor })
}

/// Returns the iterate after a step, `[R, M]`, which is halved until the objective does not fall. The `last` step is
/// not halved, because it changes the objective by no more than rounding.
fn ascend<O: Objective>(
    objective: &O,
    iterate: &Iterate<O::Rows>,
    step: &Array2<f64>,
    last: bool,
) -> Result<Option<Iterate<O::Rows>>> {
    let mut length = 1.0;
    for _ in 0..MAX_HALVINGS {
        let trial = objective.at(&iterate.w + &(step * length))?;
        if last || trial.value >= iterate.value - ROUNDING * iterate.value.abs() {
            return Ok(Some(trial));
        }
        length *= 0.5;
    }
    Ok(None)
}

/// Returns inv(H) times the gradient, `[R, M]`, and the number of products with H that it needed. `factor` is the
/// Cholesky factor of H at weights nearby.
fn by_conjugate_gradients<O: Objective>(
    objective: &O,
    iterate: &Iterate<O::Rows>,
    factor: &Cholesky,
    residual: f64,
) -> Result<(Array2<f64>, usize)> {
    let mut step = Array2::zeros(iterate.gradient.dim());
    let mut left = iterate.gradient.clone();
    let mut z = precondition(factor, &left);
    let mut direction = z.clone();
    let first = (&left * &z).sum();
    let (mut size, mut products) = (first, 0);
    while size > residual * residual * first && products < MAX_PRODUCTS {
        let curved = objective.times(iterate, &direction)?;
        products += 1;
        let length = size / (&direction * &curved).sum();
        if !length.is_finite() {
            break;
        }
        step.scaled_add(length, &direction);
        left.scaled_add(-length, &curved);
        z = precondition(factor, &left);
        let next = (&left * &z).sum();
        direction = &z + &(&direction * (next / size));
        size = next;
    }
    Ok((step, products))
}

/// Returns inv(H) g, [R, M], from the factor of H.
fn precondition(factor: &Cholesky, g: &Array2<f64>) -> Array2<f64> {
    let mut z = g.to_shape((g.len(), 1)).expect("a vector").to_owned();
    factor.solve(z.view_mut());
    z.into_shape_with_order(g.dim()).expect("as it was")
}
