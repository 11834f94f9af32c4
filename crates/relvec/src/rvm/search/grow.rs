//! Growing: the columns of largest exact gain come, each conditional on those before it.

use crate::error::Result;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::policy::Policy;

/// The model with up to `most` columns that each gain more than `least`, and what has come, by the quadratic form at its mode; where no
/// column gains so much, with the one action that does. `None` where none does; columns that are `tabu` are left alone.
pub(super) fn grow(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    policy: &Policy,
    now: &ActivePosterior,
    (least, most): (f64, usize),
    tabu: &[bool],
) -> Result<Option<(ActivePosterior, Vec<Action>)>> {
    let mut factor = ActiveFactor::new(solver.quadratic(now)?, now, noise, solver.prior);
    let mut taken: Vec<Action> = factor.add_best(most, least, policy.share, tabu).into_iter().map(|(action, _)| action).collect();
    if taken.is_empty() {
        let Some((action, _)) = factor.best_action(least, tabu, true) else { return Ok(None) };
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
