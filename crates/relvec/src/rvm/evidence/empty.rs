//! Detection of models that have learned nothing. If kernels are nearly constant over the rows, no single basis
//! function raises the evidence by much, and a search may end without any.

use crate::error::Result;
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::scheme::Hyperpriors;

/// Rise of the log evidence over the empty model in nats up to which a model has learned nothing.
const WITHIN: f64 = 0.5;
/// Change of the log precision of the bias below which its re-estimation has converged.
const CONVERGED: f64 = 1e-3;
/// Largest number of updates of the precision of the bias. A few are enough.
const BIAS_STEPS: usize = 30;

/// Update of the precision of the bias in the empty model.
const BIAS: PrecisionUpdate = PrecisionUpdate {
    rules: &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
    hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
    clip: 4.0,
    prune_below: 0.0,
};

/// Returns true if a model has learned nothing: it has no kernel, or its log evidence is at most [`WITHIN`] nats above
/// that of the empty model. Models of constant targets have not failed to learn, so that the result is false for them.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(crate) fn has_nothing(solver: &EvidenceSolver, model: &ActivePosterior) -> Result<bool> {
    let problem = solver.problem;
    if problem.training.adjustments.constant_target || problem.training.bias_only {
        return Ok(false);
    }
    let kernels = model.active.iter().any(|j| *j > 0 || !problem.has_bias);
    // A lower bound cannot be compared with the evidence.
    Ok(!kernels || !solver.is_stand_in() && is_near_nothing(solver, solver.log_evidence(model))?)
}

/// Returns true if a log evidence is at most [`WITHIN`] nats above that of the model without kernels, with or without
/// bias.
fn is_near_nothing(solver: &EvidenceSolver, log_evidence: f64) -> Result<bool> {
    let (problem, noise) = (solver.problem, &solver.problem.training.noise);
    let near = |empty: &ActivePosterior| log_evidence <= solver.log_evidence(empty) + WITHIN;
    if near(&solver.solve(&[], &[], noise, NoiseChoice::Best, None)?) {
        return Ok(true);
    }
    if !problem.has_bias || problem.design.norms()[0] == 0.0 {
        return Ok(false);
    }
    let unit = typical(&noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect::<Vec<f64>>());
    let first: Vec<f64> = problem.first_precisions(&[0], 1.0 / problem.training.count).iter().map(|alpha| alpha / unit).collect();
    let mut now = solver.solve(&[0], &first, noise, NoiseChoice::Best, None)?;
    // The evidence with the bias alone is at most the likelihood at its mode. If that is too low already, its precision
    // need not be re-estimated.
    let occam = now.outputs as f64 * (now.lower[[0, 0]] / now.a[0].sqrt()).ln() + 0.5 * now.a[0] * now.relative_square(0);
    if log_evidence > solver.log_evidence(&now) + occam + WITHIN {
        return Ok(false);
    }
    for _ in 0..BIAS_STEPS {
        let Some(step) = BIAS.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < CONVERGED {
            break;
        }
    }
    Ok(near(&now))
}
