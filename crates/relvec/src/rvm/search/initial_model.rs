//! The start: all columns under one shared precision, of which most leave as it settles.

use rand::SeedableRng;
use rand::seq::index;

use crate::error::{Error, Result};
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{MAX_HALVINGS, PrecisionUpdate, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::fixed_point;
use crate::rvm::settings::scheme::Hyperpriors;

/// Powers of 10 that the shared precision may have over 1 / N, and columns that the best is sought with at most: differences of
/// kernels that agree to three digits need weights a thousand times as large.
const FACTORS: std::ops::RangeInclusive<i32> = -8..=2;
const FEW: usize = 100;
/// Weights of all outputs at most where the curvature moves: each mode is sought again.
const MOST_WEIGHTS: usize = 500;
/// There the largest precision of so much of the highest rise: where classes are separable the evidence is flat towards small ones,
/// and no curvature is left to tell columns apart.
const ENOUGH: f64 = 0.95;
/// MacKay's fixed point, as a scheme of its own has it, but for its last digits: these are the search's.
const MACKAY: PrecisionUpdate = PrecisionUpdate {
    rules: &[UpdateRule::MacKay, UpdateRule::Em],
    hyperpriors: Hyperpriors::FLAT,
    clip: 50.0,
    gone: 1e-12,
    halvings: MAX_HALVINGS,
};
const STEPS: usize = 100;
const AT_REST: f64 = 0.1;
/// Columns of larger |cosine| are one. What lies between is what kernels far from the origin tell.
const SAME_COSINE: f64 = 1.0 - 1e-13;

/// The dense model under the shared precision (and noise) of highest evidence; of columns that are each other's copies it has one.
pub(super) fn dense(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let problem = solver.problem;
    let columns = match solver.curvature_moves() {
        true => thinned(affordable(solver), MOST_WEIGHTS / problem.training.outputs.max(1)),
        false => without_copies(solver, affordable(solver)),
    };
    let at = |columns: &[usize], factor: f64| {
        let a = problem.first_precisions(columns, factor / problem.training.count);
        solver.solve(columns, &a, noise, NoiseChoice::Best, None)
    };
    // Of fewer columns each weight is larger.
    let some = thinned(columns.clone(), FEW);
    let fewer = some.len() as f64 / columns.len().max(1) as f64;
    let mut tried = vec![];
    for factor in FACTORS.rev().map(|power| 10f64.powi(power)) {
        match at(&some, fewer * factor) {
            Ok(model) => tried.push((factor, solver.log_evidence(&model))),
            Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let highest = tried.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let least = match solver.curvature_moves() {
        true => highest - (1.0 - ENOUGH) * (highest - tried.first().map_or(highest, |(_, value)| *value)),
        false => highest,
    };
    at(&columns, tried.iter().find(|(_, value)| *value >= least).map_or(1.0, |(factor, _)| *factor))
}

/// Where MacKay's fixed point leads from all columns, each weight with a precision of its own from the first step on: of classes whose
/// evidence is flat in the shared precision that keeps what [`dense`] loses.
pub(super) fn fixed_point(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let columns = thinned(affordable(solver), MOST_WEIGHTS / solver.problem.training.outputs.max(1));
    // Those are as many as there is memory for.
    let (all, alpha, beta) = fixed_point::first_precisions(solver, None, None);
    let of = |j: &usize| alpha[all.binary_search(j).expect("usable columns are among all")] / typical(&beta);
    let a: Vec<f64> = columns.iter().map(of).collect();
    let mut now = solver.solve(&columns, &a, noise, NoiseChoice::Precision(&beta), None)?;
    for _ in 0..STEPS {
        let Some(step) = MACKAY.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < AT_REST {
            break;
        }
    }
    Ok(now)
}

/// All columns, or as many at random as there is memory for.
fn affordable(solver: &EvidenceSolver) -> Vec<usize> {
    let problem = solver.problem;
    let columns = problem.usable();
    let most = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize / problem.training.outputs.max(1);
    if columns.len() <= most {
        return columns;
    }
    let mut random = rand_pcg::Pcg64::seed_from_u64(problem.training.rvm.seed);
    let mut sample = index::sample(&mut random, columns.len(), most).into_vec();
    sample.sort_unstable();
    sample.into_iter().map(|k| columns[k]).collect()
}

/// Every so many of the columns, no more than `most`.
fn thinned(columns: Vec<usize>, most: usize) -> Vec<usize> {
    let every = columns.len().div_ceil(most.max(1)).max(1);
    columns.into_iter().step_by(every).collect()
}

/// The columns that are not, up to their scale, an earlier one.
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
