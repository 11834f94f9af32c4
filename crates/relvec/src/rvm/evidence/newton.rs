//! Newton's method to the mode of the weights, (M13) and (M28): one loop for one output and for several, on all rows and on samples.
//!
//! A factor of the Hessian serves for more than one step. At the place where it was made it gives Newton's step; elsewhere
//! that is found by conjugate gradients, which it preconditions.

use ndarray::Array2;

use crate::error::Result;
use crate::linalg::Cholesky;

/// Steps at most; from zero it takes about ten. Halvings of one at most: the first step towards counts of 1e14 is that long, and
/// those of 1e18 take 60.
const MAX_STEPS: usize = 100;
const MAX_HALVINGS: usize = 80;
/// What is left to gain before the last step, and rounding, relative to the objective.
const DECREMENT: f64 = 1e-11;
const ROUNDING: f64 = 1e-14;
/// Residuals at which conjugate gradients stop, in the norm of the preconditioner: on the way to a mode, and at the last
/// step.
const RESIDUAL: f64 = 1e-3;
const LAST_RESIDUAL: f64 = 1e-4;
/// Products at most, and those from which a new factor is worth its making.
const MAX_PRODUCTS: usize = 200;
const MANY_PRODUCTS: usize = 12;

/// A log-likelihood and a log prior of weights, [R, M]: a concave function.
pub(crate) trait Objective {
    /// What is known of the rows at some weights.
    type Rows;
    /// The Hessian of minus the log-likelihood, or what it is made of.
    type Gram;

    /// The objective at weights `w`, [R, M].
    fn at(&self, w: Array2<f64>) -> Result<Iterate<Self::Rows>>;
    /// Minus the Hessian of the objective times `d`, [R, M].
    fn times(&self, iterate: &Iterate<Self::Rows>, d: &Array2<f64>) -> Result<Array2<f64>>;
    /// The Hessian of minus the log-likelihood.
    fn gram(&self, iterate: &Iterate<Self::Rows>) -> Result<Self::Gram>;
    /// Factor of minus the Hessian of the objective, [R M, R M].
    fn factor(&self, gram: &Self::Gram) -> Result<Cholesky>;
    /// Whether a new Hessian costs no more than a few products with it: then each step has its own.
    fn is_cheap(&self) -> bool;
}

/// Weights, [R, M], and the objective there.
#[derive(Debug)]
pub(crate) struct Iterate<T> {
    pub w: Array2<f64>,
    /// Log-likelihood and log prior.
    pub value: f64,
    /// Slope of the objective, [R, M].
    pub gradient: Array2<f64>,
    pub rows: T,
}

/// The mode, the Hessian there, and its factor.
pub(crate) struct Mode<O: Objective + ?Sized> {
    pub iterate: Iterate<O::Rows>,
    pub gram: O::Gram,
    pub factor: Cholesky,
}

/// The mode, from `start`; `near`: the Hessian somewhere near.
///
/// # Errors
/// Those of the objective; [`Singular`](crate::Error::Singular) if a Hessian has no factor.
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
        // Half the Newton decrement is what is left to gain; below rounding, one full step ends it.
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
        // With the factor of this very place the last digits cost next to nothing.
        let polished = objective.at(&iterate.w + &precondition(&factor, &iterate.gradient))?;
        if polished.value >= iterate.value - ROUNDING * iterate.value.abs() {
            iterate = polished;
        }
    }
    Ok(Mode { iterate, gram, factor })
}

/// Returns the place after a step, `[R, M]`, halved until the objective does not fall. The value of the `last` step tells no more
/// than rounding.
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

/// Returns inv(H) times the gradient, `[R, M]`, and the number of products with H that it took; `factor` is the Cholesky factor
/// of an H nearby.
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

/// inv(H) g, [R, M], by the factor of H.
fn precondition(factor: &Cholesky, g: &Array2<f64>) -> Array2<f64> {
    let mut z = g.to_shape((g.len(), 1)).expect("a vector").to_owned();
    factor.solve(z.view_mut());
    z.into_shape_with_order(g.dim()).expect("as it was")
}
