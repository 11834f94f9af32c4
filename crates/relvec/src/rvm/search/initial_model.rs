//! Initial models of a search: all columns under one shared precision, and MacKay's fixed point from all columns. Most
//! columns are pruned when the search refits the model.
//!
//! Another start is tried if a model has learned nothing: if kernels are nearly constant over the rows, no single basis
//! function raises the evidence by much, and a search may end without any.

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::rvm::data::build::DENSE;
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::fixed_point;
use crate::rvm::settings::scheme::Hyperpriors;

/// Powers of 10 that are tried for the shared precision, as multiples of 1 / N. Differences of kernels that agree to
/// five digits need weights that are 100,000 times as large. All are tried: for wide kernels the evidence has one
/// maximum with linear functions of the features and another with curved ones. A product of two of three to five
/// features is then found at gamma 1e-3, at errors of 0.20 (of 0.91 with powers from -8 on). Smaller precisions leave
/// fewer kernels at gamma 1e-4, but rounding changes the predictions of sigmoid kernels in the seventh digit.
const FACTORS: std::ops::RangeInclusive<i32> = -10..=2;
/// Largest number of columns with which the shared precision is chosen.
const FEW: usize = 100;
/// Largest number of weights of all outputs if the Hessian depends on the weights, because the mode is then found for
/// each precision.
const MOST_WEIGHTS: usize = 500;
/// Share of the highest rise of the evidence that is enough if the Hessian depends on the weights. The largest
/// precision that reaches it is taken. For separable classes the evidence is flat towards small precisions, where the
/// Hessian vanishes and does not distinguish columns.
const ENOUGH: f64 = 0.95;
/// MacKay's fixed point like in the scheme `mackay`, but without its last digits, which are left to the search.
const MACKAY: PrecisionUpdate = PrecisionUpdate {
    rules: &[UpdateRule::MacKay, UpdateRule::Em],
    hyperpriors: Hyperpriors::FLAT,
    clip: 50.0,
    prune_below: 1e-12,
};
/// Largest number of updates of MacKay's fixed point, and of the precision of the bias, where a few are enough.
const STEPS: usize = 100;
/// Change of the log precisions below which MacKay's fixed point ends.
const CONVERGED: f64 = 0.1;
/// Columns of larger |cosine| are duplicates. Kernels whose centres are far from the origin differ by little more.
const SAME_COSINE: f64 = 1.0 - 1e-13;

/// Returns the dense model under the shared precision and noise of highest evidence. For duplicate columns it contains
/// the first one alone.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`]. Shared precisions whose model cannot be factorised are skipped.
pub(super) fn dense(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let problem = solver.problem;
    let columns = match solver.hessian_varies() {
        true => thinned(affordable(solver), MOST_WEIGHTS / problem.training.outputs.max(1)),
        false => without_copies(solver, affordable(solver)),
    };
    let at = |columns: &[usize], factor: f64, warm: Option<&ActivePosterior>| {
        let a = problem.first_precisions(columns, factor / problem.training.count);
        solver.solve(columns, &a, noise, NoiseChoice::Best, warm)
    };
    // With fewer columns the weights are larger, and so are their variances.
    let some = thinned(columns.clone(), FEW);
    let fewer = some.len() as f64 / columns.len().max(1) as f64;
    let (mut tried, mut last): (Vec<(f64, f64)>, Option<ActivePosterior>) = (vec![], None);
    for factor in FACTORS.rev().map(|power| 10f64.powi(power)) {
        match at(&some, fewer * factor, last.as_ref()) {
            Ok(model) => tried.push((factor, solver.log_evidence(last.insert(model)))),
            Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let highest = tried.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let least = match solver.hessian_varies() {
        true => highest - (1.0 - ENOUGH) * (highest - tried.first().map_or(highest, |(_, value)| *value)),
        false => highest,
    };
    at(&columns, tried.iter().find(|(_, value)| *value >= least).map_or(1.0, |(factor, _)| *factor), None)
}

/// Returns the model that MacKay's fixed point leads to from all columns, with one precision for each weight from the
/// first step on. If the evidence of classes is flat in the shared precision, it finds columns that [`dense`] loses.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(super) fn fixed_point(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let columns = thinned(affordable(solver), MOST_WEIGHTS / solver.problem.training.outputs.max(1));
    // `first_precisions` covers all columns; `columns` are as many as there is memory for.
    let (all, alpha, beta) = fixed_point::first_precisions(solver, None, None);
    let of = |j: &usize| alpha[all.binary_search(j).expect("usable columns are among all")] / typical(&beta);
    let a: Vec<f64> = columns.iter().map(of).collect();
    let mut now = solver.solve(&columns, &a, noise, NoiseChoice::Precision(&beta), None)?;
    for _ in 0..STEPS {
        let Some(step) = MACKAY.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < CONVERGED {
            break;
        }
    }
    Ok(now)
}

/// Returns all columns that are not zero, or a random sample of as many as there is memory for, ascending.
fn affordable(solver: &EvidenceSolver) -> Vec<usize> {
    let problem = solver.problem;
    let columns = problem.usable();
    let most = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize / problem.training.outputs.max(1);
    if columns.len() <= most {
        return columns;
    }
    random_subset(columns.len(), most, problem.training.rvm.seed).into_iter().map(|k| columns[k]).collect()
}

/// Returns evenly spaced columns, at most `most`.
fn thinned(columns: Vec<usize>, most: usize) -> Vec<usize> {
    let every = columns.len().div_ceil(most.max(1)).max(1);
    columns.into_iter().step_by(every).collect()
}

/// Returns the columns without duplicates, up to their scale. The first column of each group remains.
fn without_copies(solver: &EvidenceSolver, columns: Vec<usize>) -> Vec<usize> {
    let gram = solver.form().dense(&columns);
    let mut kept: Vec<usize> = vec![];
    for i in 0..columns.len() {
        let same = |k: &usize| gram[[i, *k]].abs() >= SAME_COSINE * (gram[[i, i]] * gram[[*k, *k]]).sqrt();
        if !kept.iter().any(same) {
            kept.push(i);
        }
    }
    kept.into_iter().map(|i| columns[i]).collect()
}

/// Rise of the log evidence over the empty model in nats up to which a model has learned nothing.
const WITHIN: f64 = 0.5;
/// Change of the log precision of the bias below which its re-estimation has converged.
const BIAS_CONVERGED: f64 = 1e-3;

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
    for _ in 0..STEPS {
        let Some(step) = BIAS.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < BIAS_CONVERGED {
            break;
        }
    }
    Ok(near(&now))
}
