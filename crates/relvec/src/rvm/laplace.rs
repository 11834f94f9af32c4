//! Likelihoods whose curvature is not constant: the posterior mode, the Laplace evidence, and the
//! quadratic form that stands for the likelihood at the mode, (M13) to (M15).

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::problem::{DENSE, Problem};
use super::slopes::{Phi, Slopes, Want};
use super::solution::Solution;
use super::workspace::Workspace;
use crate::design;
use crate::error::Result;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;
use crate::sums::Sums;

/// Newton steps at most; from zero it takes about ten.
const MAX_NEWTON: usize = 100;
/// Rows copied at a time.
const BLOCK: usize = 1024;
/// Columns of a model are kept for the length of Newton's method if they take at most this part of it; and of
/// so few rows always.
const NEWTON_SHARE: u64 = 2;
const LITTLE_ROWS: usize = 2048;
/// Columns of a model are kept for the next if they take at most this part of the memory left.
const KEPT_SHARE: u64 = 8;
/// Halvings of one step at most.
const MAX_HALVINGS: usize = 40;
/// From so many entries of Phi_A a curvature serves for more than one step, as long as each leaves less than this
/// share of what the one before had left to gain.
const FRUGAL_ENTRIES: usize = 1_000_000;
const SLOW: f64 = 0.05;
/// Where more than one column in so many is in the model, all of G costs less than its rows in passes of their own.
const CROWDED: usize = 3;
/// What is left to gain before the last step, relative to the objective, with a curvature of that place or not.
const DECREMENT: f64 = 1e-11;
const STALE_DECREMENT: f64 = 1e-16;

/// The mode of the weights at precisions `alpha`, by Newton's method (IRLS) with step halving, and
/// the Laplace evidence there. `warm` is where to start.
pub(crate) fn mode(problem: &Problem, active: &[usize], alpha: &[f64], warm: Option<&Solution>) -> Result<Solution> {
    let (phi, bytes) = phi(problem, active, warm);
    let mut w: Array1<f64> = active
        .iter()
        .map(|j| warm.and_then(|s| s.active.iter().position(|k| k == j).map(|p| s.mean[p])).unwrap_or(0.0))
        .collect();
    let alpha = ArrayView1::from(alpha);
    let objective =
        |slopes: &Slopes, w: &Array1<f64>| slopes.log_likelihood - 0.5 * w.iter().zip(alpha).map(|(w, a)| a * w * w).sum::<f64>();
    // On long tables a curvature costs as much as many slopes: one from near the mode will do on the way there.
    let frugal = problem.design.n_rows() * active.len() >= FRUGAL_ENTRIES;
    let known = warm.filter(|_| frugal).and_then(|s| s.gram_of(active));
    let want = if known.is_some() { Want::Slope } else { Want::Curvature };
    let mut slopes = phi.slopes(problem, w.view(), want)?;
    let mut value = objective(&slopes, &w);
    let mut gram = known.unwrap_or_else(|| symmetric(&mut slopes));
    let mut factor = Cholesky::of_sum(&gram, alpha)?;
    let mut stale = want == Want::Slope;
    let (mut last, mut before) = (false, f64::INFINITY);
    for _ in 0..MAX_NEWTON {
        let gradient = &slopes.slope - &(&alpha * &w);
        let mut step = gradient.clone().insert_axis(Axis(1));
        linalg::solve_lower(factor.lower.view(), step.view_mut());
        linalg::solve_lower_transposed(factor.lower.view(), step.view_mut());
        let step = step.remove_axis(Axis(1));
        // Half the Newton decrement is what is left to gain; below rounding, one full step ends it.
        let decrement = 0.5 * gradient.dot(&step);
        let enough = if stale { STALE_DECREMENT } else { DECREMENT };
        last = last || decrement <= enough * (1.0 + value.abs());
        if stale && !last && decrement > SLOW * before {
            slopes = phi.slopes(problem, w.view(), Want::Curvature)?;
            gram = symmetric(&mut slopes);
            factor = Cholesky::of_sum(&gram, alpha)?;
            (stale, before) = (false, f64::INFINITY);
            continue;
        }
        before = decrement;
        let mut length = 1.0;
        let mut moved = false;
        for halvings in 0..MAX_HALVINGS {
            let trial_w = &w + &(&step * length);
            // The first length is mostly right: what the next step needs comes along with the value.
            let want = match (halvings, frugal) {
                (0, false) => Want::Curvature,
                (0, true) => Want::Slope,
                _ => Want::Value,
            };
            let mut trial = phi.slopes(problem, trial_w.view(), want)?;
            let trial_value = objective(&trial, &trial_w);
            if trial_value >= value - 1e-14 * value.abs() {
                if want == Want::Value {
                    trial = phi.slopes(problem, trial_w.view(), Want::Curvature)?;
                }
                (w, slopes, value, moved) = (trial_w, trial, trial_value, true);
                stale = want == Want::Slope;
                if !stale {
                    gram = symmetric(&mut slopes);
                    factor = Cholesky::of_sum(&gram, alpha)?;
                }
                break;
            }
            length *= 0.5;
        }
        if last || !moved {
            break;
        }
    }
    if stale {
        slopes = phi.slopes(problem, w.view(), Want::Curvature)?;
        gram = symmetric(&mut slopes);
        factor = Cholesky::of_sum(&gram, alpha)?;
    }
    let log_evidence = value + 0.5 * alpha.iter().map(|a| a.ln()).sum::<f64>() - 0.5 * factor.log_det();
    let alpha = alpha.to_vec();
    // Several solutions are alive at a time.
    let kept = match phi {
        Phi::Kept(phi) if worth_keeping(problem, bytes) => Some(phi),
        _ => None,
    };
    let gram = frugal.then_some(gram);
    Ok(Solution::at_mode(active, &alpha, w.to_vec(), factor, log_evidence, gram, kept))
}

/// Phi_A for the length of Newton's method, and its bytes.
pub(crate) fn phi<'a>(problem: &'a Problem<'a>, active: &'a [usize], warm: Option<&Solution>) -> (Phi<'a>, u64) {
    // What is not worth keeping for later may be worth it for one Newton.
    let bytes = 8 * (problem.design.n_rows() * active.len()) as u64;
    let phi = match bytes <= problem.room() / NEWTON_SHARE || problem.design.n_rows() <= LITTLE_ROWS {
        true => Phi::Kept(columns(problem, active, warm)),
        false => Phi::Made { problem, columns: active.into() },
    };
    (phi, bytes)
}

/// Whether so many bytes of Phi_A are kept for the next solve.
pub(crate) fn worth_keeping(problem: &Problem, bytes: u64) -> bool {
    bytes <= problem.room() / KEPT_SHARE
}

/// Phi_A, [N, M]; columns of an earlier solution are taken from there, which is much cheaper than out of
/// all of Phi.
fn columns(problem: &Problem, active: &[usize], warm: Option<&Solution>) -> Rc<Array2<f64>> {
    let Some((known, phi)) = warm.and_then(|s| s.columns.as_ref().map(|phi| (&s.active, phi))) else {
        return Rc::new(problem.design.select(active));
    };
    if known == active {
        return phi.clone();
    }
    let missing: Vec<usize> = active.iter().copied().filter(|j| !known.contains(j)).collect();
    let made = problem.design.select(&missing);
    // For each column whether it is made, and where it is.
    let place = |list: &[usize], j: &usize| list.iter().position(|k| k == j);
    let source: Vec<(bool, usize)> = active
        .iter()
        .map(|j| place(&missing, j).map(|k| (true, k)).or_else(|| place(known, j).map(|k| (false, k))))
        .map(|found| found.expect("a column is known or missing"))
        .collect();
    let mut out = Array2::zeros((phi.nrows(), active.len()));
    let (phi, made) = (phi.view(), made.view());
    out.axis_chunks_iter_mut(Axis(0), BLOCK).into_par_iter().enumerate().for_each(|(k, mut out)| {
        let rows = s![k * BLOCK..k * BLOCK + out.nrows(), ..];
        for ((mut row, old), new) in out.outer_iter_mut().zip(phi.slice(rows).outer_iter()).zip(made.slice(rows).outer_iter()) {
            row.iter_mut().zip(&source).for_each(|(v, (is_made, k))| *v = if *is_made { new[*k] } else { old[*k] });
        }
    });
    Rc::new(out)
}

/// Phi'BPhi out of sums that have its lower triangle.
fn symmetric(slopes: &mut Slopes) -> Rc<Array2<f64>> {
    let mut gram = std::mem::take(&mut slopes.curvature);
    linalg::mirror(&mut gram);
    Rc::new(gram)
}

/// The likelihood near the mode of `solution` as Gaussian targets, over the active columns alone and without
/// another look at the rows: B held, f = Phi'(B Phi w + residual), and the residual's part is A w there.
pub(crate) fn frozen<'p>(problem: &'p Problem<'p>, solution: &Solution) -> Option<Workspace<'p>> {
    let gram = solution.gram_of(&solution.active)?;
    let w = ArrayView1::from(&solution.mean);
    let f: Vec<f64> = gram.dot(&w).iter().zip(&solution.a).zip(w).map(|((g, a), w)| g + a * w).collect();
    // Only differences matter: large enough that what is left of it is positive.
    let tt = 2.0 * f.iter().zip(w).map(|(f, w)| f * w).sum::<f64>().abs() + problem.table.count;
    let sums = Sums { gram: Array2::clone(&gram), f: vec![f], tt: vec![tt], count: problem.table.count };
    Some(Workspace::of(problem, Quadratic::stored(sums, None)))
}

/// The quadratic form that equals the log-likelihood at the mode to second order, over all columns:
/// B the curvature, f = Phi'(B Phi w + residual), so that no inverse of B is ever needed.
pub(crate) fn expand<'p>(problem: &'p Problem, solution: &Solution) -> Quadratic<'p> {
    let f = problem.fitted(solution);
    let work = problem.working(&f);
    let curvature: Vec<f64> = work.curvature.iter().zip(&problem.table.weights).map(|(b, c)| b * c).collect();
    let outputs = solution.outputs;
    let pull = |i: usize| problem.table.weights[i / outputs] * (work.curvature[i / outputs] * f[i] + work.residual[i]);
    let pull: Vec<f64> = (0..f.len()).map(pull).collect();
    let count = problem.table.weights.iter().sum();
    let (n, p) = (problem.design.n_rows(), problem.design.n_columns());
    let fits = 8 * (p * p) as u64 * (DENSE + 2) <= problem.room();
    if outputs == 1 && n * p >= FRUGAL_ENTRIES && CROWDED * solution.active.len() >= p && fits {
        let (mut sums, mut f) = (Sums::new(p, 1), vec![0.0; p]);
        let zeros = vec![0.0; n];
        problem.design.for_each_block(|rows, phi| {
            sums.accumulate(phi, &zeros[rows.clone()], &curvature[rows.clone()]);
            design::add_sums(&pull[rows], phi, &mut f);
        });
        let sums = Sums { f: vec![f], count, ..sums.finish() };
        return Quadratic::stored(sums, None);
    }
    let tt = 2.0 * f.iter().zip(&pull).map(|(f, p)| f * p).sum::<f64>().abs() + count;
    let pull = ArrayView2::from_shape((n, outputs), &pull).expect("[N, R]");
    Quadratic::on_demand(&problem.design, curvature, pull, vec![tt], count, None, &solution.active)
}
