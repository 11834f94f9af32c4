//! Growth of a model: adds the columns of largest exact gain, each conditional on the columns added before it.

use crate::error::Result;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::search::Policy;

/// Adds up to `most` columns, each of which gains more than `least` nats in the quadratic form at the mode of `now`.
///
/// If no addition gains so much, it takes the best re-estimation or deletion instead. Returns the model and the actions
/// taken, or `None` if no action gains more than `least`.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::quadratic`] and [`EvidenceSolver::solve`].
pub(super) fn grow(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    policy: &Policy,
    now: &ActivePosterior,
    (least, most): (f64, usize),
) -> Result<Option<(ActivePosterior, Vec<Action>)>> {
    let mut factor = ActiveFactor::new(solver.quadratic(now)?, now, noise, solver.prior);
    let mut taken: Vec<Action> = factor.add_best(most, least, policy.share).into_iter().map(|(action, _)| action).collect();
    if taken.is_empty() {
        let Some((action, _)) = factor.best_action(least, &[], true) else { return Ok(None) };
        factor.apply(action);
        taken.push(action);
    }
    let mut order: Vec<usize> = (0..factor.active().len()).collect();
    order.sort_by_key(|i| factor.active()[*i]);
    let active: Vec<usize> = order.iter().map(|i| factor.active()[*i]).collect();
    let a: Vec<f64> = order.iter().map(|i| factor.precisions()[*i]).collect();
    let solution = solver.solve(&active, &a, noise, NoiseChoice::Best, Some(now))?;
    Ok(Some((solution, taken)))
}
