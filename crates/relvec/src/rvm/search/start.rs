//! The start: all columns under one shared precision, of which most leave as it settles.

use rand::SeedableRng;
use rand::seq::index;

use crate::error::{Error, Result};
use crate::rvm::gain::Noise;
use crate::rvm::problem::{DENSE, Problem};
use crate::rvm::solution::{At, Solution, typical};
use crate::rvm::workspace::Workspace;

/// The noise precision at first, over the variance of the targets: a dense model of little noise loses columns as it settles,
/// one of much noise has lost what they tell.
const FIRST_NOISE: f64 = 100.0;
/// Powers of 10 that the shared precision may have over 1 / N, and columns that the best is sought with at most: differences of
/// kernels that agree to three digits need weights a thousand times as large.
const FACTORS: std::ops::RangeInclusive<i32> = -8..=2;
const FEW: usize = 100;
/// Columns of larger |cosine| are one.
const SAME_COSINE: f64 = 1.0 - 1e-10;

/// The dense model on a form of constant curvature, under the shared precision of highest evidence at that noise; of columns that
/// are each other's copies it has one.
pub(super) fn dense(form: &Workspace, noise: &[Noise]) -> Result<Solution> {
    let problem = form.problem;
    let columns = without_copies(form, affordable(problem));
    let first = |noise: &Noise| match *noise {
        Noise::Fixed(beta) => beta,
        Noise::Learnt { cap, .. } => FIRST_NOISE.min(cap),
    };
    let beta: Vec<f64> = noise.iter().map(first).collect();
    let unit = typical(&beta);
    let at = |columns: &[usize], factor: f64| {
        let alpha = problem.first_precisions(columns, factor / problem.table.count);
        let a: Vec<f64> = alpha.iter().map(|alpha| alpha / unit).collect();
        form.solve(columns, &a, noise, At::Precision(&beta), None)
    };
    // Of fewer columns each weight is larger.
    let some: Vec<usize> = columns.iter().copied().step_by(columns.len().div_ceil(FEW).max(1)).collect();
    let fewer = some.len() as f64 / columns.len().max(1) as f64;
    let mut best = (f64::NEG_INFINITY, 1.0);
    for power in FACTORS {
        let factor = 10f64.powi(power);
        match at(&some, fewer * factor) {
            Ok(model) if model.log_evidence > best.0 => best = (model.log_evidence, factor),
            Ok(_) | Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    at(&columns, best.1)
}

/// All columns, or as many at random as there is memory for.
fn affordable(problem: &Problem) -> Vec<usize> {
    let columns = problem.usable();
    let most = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize;
    if columns.len() <= most {
        return columns;
    }
    let mut random = rand_pcg::Pcg64::seed_from_u64(problem.table.rvm.seed);
    let mut sample = index::sample(&mut random, columns.len(), most).into_vec();
    sample.sort_unstable();
    sample.into_iter().map(|k| columns[k]).collect()
}

/// The columns that are not, up to their scale, an earlier one.
fn without_copies(form: &Workspace, columns: Vec<usize>) -> Vec<usize> {
    let gram = form.form().dense(&columns);
    let mut kept: Vec<usize> = vec![];
    for i in 0..columns.len() {
        let same = |k: &usize| gram[[i, *k]].abs() >= SAME_COSINE * (gram[[i, i]] * gram[[*k, *k]]).sqrt();
        if !kept.iter().any(same) {
            kept.push(i);
        }
    }
    kept.into_iter().map(|i| columns[i]).collect()
}
