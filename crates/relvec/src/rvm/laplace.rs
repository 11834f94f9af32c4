//! Likelihoods whose curvature is not constant: the posterior mode, the Laplace evidence, and the
//! quadratic form that stands for the likelihood at the mode, (M13) to (M15).

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, s};

use super::problem::Problem;
use super::solution::Solution;
use crate::error::Result;
use crate::likelihood::Working;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;

/// Newton steps at most; from zero it takes about ten.
const MAX_NEWTON: usize = 100;
/// Rows weighted at a time: no second copy of all.
const BLOCK: usize = 4096;
/// Columns of a model are kept for the next if they take at most this part of the memory left.
const KEPT_SHARE: u64 = 8;
/// Halvings of one step at most.
const MAX_HALVINGS: usize = 40;

/// The mode of the weights at precisions `alpha`, by Newton's method (IRLS) with step halving, and
/// the Laplace evidence there. `warm` is where to start.
pub(crate) fn mode(problem: &Problem, active: &[usize], alpha: &[f64], warm: Option<&Solution>) -> Result<Solution> {
    let phi = columns(problem, active, warm);
    let c = Array1::from_vec(problem.weights.clone());
    let mut w: Array1<f64> = active
        .iter()
        .map(|j| warm.and_then(|s| s.active.iter().position(|k| k == j).map(|p| s.mean[p])).unwrap_or(0.0))
        .collect();
    let alpha = ArrayView1::from(alpha);
    let objective = |work: &Working, w: &Array1<f64>| {
        let log_likelihood: f64 = work.log_likelihood.iter().zip(&c).map(|(l, c)| c * l).sum();
        log_likelihood - 0.5 * w.iter().zip(alpha).map(|(w, a)| a * w * w).sum::<f64>()
    };
    let mut f = phi.dot(&w);
    let mut work = problem.working(&f);
    let mut value = objective(&work, &w);
    let mut last = false;
    for _ in 0..MAX_NEWTON {
        problem.interrupt.check()?;
        let factor = hessian(&phi, &work, &c, alpha)?;
        let r: Array1<f64> = work.residual.iter().zip(&c).map(|(r, c)| c * r).collect();
        let gradient = phi.t().dot(&r) - &alpha * &w;
        let mut step = gradient.clone().insert_axis(ndarray::Axis(1));
        linalg::solve_lower(factor.lower.view(), step.view_mut());
        linalg::solve_lower_transposed(factor.lower.view(), step.view_mut());
        let step = step.remove_axis(ndarray::Axis(1));
        // Half the Newton decrement is what is left to gain; below rounding, one full step ends it.
        last = last || 0.5 * gradient.dot(&step) <= 1e-11 * (1.0 + value.abs());
        let along = phi.dot(&step);
        let mut length = 1.0;
        let mut moved = false;
        for _ in 0..MAX_HALVINGS {
            let trial_w = &w + &(&step * length);
            let trial_f = &f + &(&along * length);
            let trial = problem.working(&trial_f);
            let trial_value = objective(&trial, &trial_w);
            if trial_value >= value - 1e-14 * value.abs() {
                (w, f, work, value, moved) = (trial_w, trial_f, trial, trial_value, true);
                break;
            }
            length *= 0.5;
        }
        if last || !moved {
            break;
        }
    }
    let factor = hessian(&phi, &work, &c, alpha)?;
    let log_evidence = value + 0.5 * alpha.iter().map(|a| a.ln()).sum::<f64>() - 0.5 * factor.log_det();
    let alpha = alpha.to_vec();
    // Several solutions are alive at a time.
    let kept = (8 * phi.len() as u64 <= problem.room() / KEPT_SHARE).then_some(phi);
    Ok(Solution::at_mode(active, &alpha, w.to_vec(), factor, log_evidence, kept))
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
    for ((mut row, old), new) in out.outer_iter_mut().zip(phi.outer_iter()).zip(made.outer_iter()) {
        row.iter_mut().zip(&source).for_each(|(v, (is_made, k))| *v = if *is_made { new[*k] } else { old[*k] });
    }
    Rc::new(out)
}

/// Cholesky factor of diag(alpha) + Phi'BPhi.
fn hessian(phi: &Array2<f64>, work: &Working, c: &Array1<f64>, alpha: ArrayView1<f64>) -> Result<Cholesky> {
    let mut h = Array2::zeros((phi.ncols(), phi.ncols()));
    for start in (0..phi.nrows()).step_by(BLOCK) {
        let rows = start..(start + BLOCK).min(phi.nrows());
        let mut weighted = phi.slice(s![rows.clone(), ..]).to_owned();
        for (mut row, n) in weighted.outer_iter_mut().zip(rows) {
            row *= (work.curvature[n] * c[n]).sqrt();
        }
        linalg::add_gram(weighted.view(), h.view_mut());
    }
    linalg::mirror(&mut h);
    let scale = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    h.diag_mut().iter_mut().zip(alpha).for_each(|(h, a)| *h += a);
    Cholesky::new(h, scale)
}

/// The quadratic form that equals the log-likelihood at the mode to second order, over all columns:
/// B the curvature, f = Phi'(B Phi w + residual), so that no inverse of B is ever needed.
pub(crate) fn expand<'p>(problem: &'p Problem, solution: &Solution) -> Quadratic<'p> {
    let f = problem.fitted(solution);
    let work = problem.working(&f);
    let curvature: Vec<f64> = work.curvature.iter().zip(&problem.weights).map(|(b, c)| b * c).collect();
    let pull: Vec<f64> = (0..f.len()).map(|n| problem.weights[n] * (work.curvature[n] * f[n] + work.residual[n])).collect();
    let count = problem.weights.iter().sum();
    Quadratic::on_demand(&problem.design, curvature, &pull, 0.0, count, None, &solution.active)
}
