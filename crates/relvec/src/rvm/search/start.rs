//! The start: all columns under one shared precision, of which most leave as it settles.

use rand::SeedableRng;
use rand::seq::index;

use crate::error::Result;
use crate::rvm::gain::Noise;
use crate::rvm::problem::{DENSE, Problem};
use crate::rvm::solution::{At, Solution, typical};
use crate::rvm::workspace::Workspace;

/// The noise precision at first, over the variance of the targets: a dense model of little noise loses columns as it settles,
/// one of much noise has lost what they tell.
const FIRST_NOISE: f64 = 100.0;
/// Columns of larger |cosine| are one.
const SAME_COSINE: f64 = 1.0 - 1e-10;

/// The dense model on a form of constant curvature; of columns that are each other's copies it has one.
pub(super) fn dense(form: &Workspace, noise: &[Noise]) -> Result<Solution> {
    let problem = form.problem;
    let columns = without_copies(form, affordable(problem));
    let first = |noise: &Noise| match *noise {
        Noise::Fixed(beta) => beta,
        Noise::Learnt { cap, .. } => FIRST_NOISE.min(cap),
    };
    let beta: Vec<f64> = noise.iter().map(first).collect();
    let unit = typical(&beta);
    let a: Vec<f64> = problem.first_precisions(&columns, 1.0 / problem.table.count).iter().map(|alpha| alpha / unit).collect();
    form.solve(&columns, &a, noise, At::Precision(&beta), None)
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
