//! Models that have learned nothing: of kernels that are nearly constant over the rows no single basis function raises the evidence
//! by much, and a search for the best one may end with none.

use crate::error::Result;
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{MAX_HALVINGS, PrecisionUpdate, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::scheme::Hyperpriors;

/// A model whose log evidence is within so many nats of that of the empty one has learned nothing.
const WITHIN: f64 = 0.5;
/// The bias of the empty model is at its best when its log precision moves by less; that takes a few steps.
const AT_BEST: f64 = 1e-3;
const BIAS_STEPS: usize = 30;

/// The bias of the empty model is re-estimated alone.
const BIAS: PrecisionUpdate = PrecisionUpdate {
    rules: &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
    hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
    clip: 4.0,
    gone: 0.0,
    halvings: MAX_HALVINGS,
};

/// Whether a model has learned nothing: its log evidence is that of the empty model, or next to it.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(crate) fn has_nothing(solver: &EvidenceSolver, model: &ActivePosterior) -> Result<bool> {
    let problem = solver.problem;
    if problem.training.repairs.constant_target || problem.training.bias_only {
        return Ok(false);
    }
    let kernels = model.active.iter().any(|j| *j > 0 || !problem.has_bias);
    // To look at rows that are read in blocks once more takes longer than it is worth, and a bound is no evidence.
    let known = problem.training.blocks.is_none() && !solver.is_stand_in();
    Ok(!kernels || known && is_near_nothing(solver, solver.log_evidence(model))?)
}

/// Whether a log evidence is next to that of the model without basis functions, with the bias or without.
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
    // Beyond the likelihood at the mode there is no evidence of such a model.
    let occam = now.outputs as f64 * (now.lower[[0, 0]] / now.a[0].sqrt()).ln() + 0.5 * now.a[0] * now.relative_square(0);
    if log_evidence > solver.log_evidence(&now) + occam + WITHIN {
        return Ok(false);
    }
    for _ in 0..BIAS_STEPS {
        let Some(step) = BIAS.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < AT_BEST {
            break;
        }
    }
    Ok(near(&now))
}
