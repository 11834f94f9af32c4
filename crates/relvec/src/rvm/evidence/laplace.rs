//! Laplace's approximation for one output whose Hessian depends on the weights, (M13) to (M15): the posterior mode, the
//! evidence, and the quadratic form that equals the log-likelihood to second order at the mode.

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::design::TILE_ROWS;
use crate::error::Result;
use crate::linalg::{self, Cholesky};
use crate::newton::{self, Iterate, Mode, Objective};
use crate::quadratic::Quadratic;
use crate::rvm::data::build::DENSE;
use crate::rvm::evidence::active_posterior::{ActivePosterior, fitted};
use crate::rvm::gram::likelihood_sums::{DerivativeOrder, LikelihoodSums, Phi};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::sums::Sums;

/// Phi of a model is stored during Newton's method if it takes at most the memory left divided by this number.
const NEWTON_SHARE: u64 = 2;
/// Number of rows up to which Phi of a model is always stored during Newton's method.
const LITTLE_ROWS: usize = 2048;
/// Phi of a model is stored for the next solve if it takes at most the memory left divided by this number.
const STORED_SHARE: u64 = 8;
/// Largest number of bytes of Phi that are stored. Beyond it new memory takes more time than the kernel values.
const MOST_STORED: u64 = 1 << 26;
/// Number of columns up to which the Hessian costs no more than a few products with it.
const FEW_COLUMNS: usize = 64;
/// Number of columns per active column up to which the model is saturated. All of G then costs less than its rows in
/// passes of their own.
const SATURATED: usize = 3;

/// The log-likelihood of one output plus the log prior, as a function of the weights of a model.
struct Laplace<'a> {
    problem: &'a ScaledProblem<'a>,
    phi: Phi<'a>,
    /// Precisions, `[M]`.
    alpha: ArrayView1<'a, f64>,
}

impl Objective for Laplace<'_> {
    type Rows = LikelihoodSums;
    type Gram = Rc<Array2<f64>>;

    fn at(&self, w: Array2<f64>) -> Result<Iterate<LikelihoodSums>> {
        let order = if self.is_cheap() { DerivativeOrder::Hessian } else { DerivativeOrder::Gradient };
        let rows = self.phi.sums(self.problem, w.row(0), order)?;
        let prior = &w * &self.alpha;
        let value = rows.log_likelihood - 0.5 * (&prior * &w).sum();
        Ok(Iterate { value, gradient: &rows.gradient - &prior, w, rows })
    }

    fn times(&self, iterate: &Iterate<LikelihoodSums>, d: &Array2<f64>) -> Result<Array2<f64>> {
        Ok(d * &self.alpha + self.phi.hessian_times(self.problem, &iterate.rows.row_curvature, d.row(0))?)
    }

    fn gram(&self, iterate: &Iterate<LikelihoodSums>) -> Result<Rc<Array2<f64>>> {
        let mut gram = match self.is_cheap() {
            true => iterate.rows.hessian.clone(),
            false => self.phi.sums(self.problem, iterate.w.row(0), DerivativeOrder::Hessian)?.hessian,
        };
        linalg::mirror(&mut gram);
        Ok(Rc::new(gram))
    }

    fn factor(&self, gram: &Rc<Array2<f64>>) -> Result<Cholesky> {
        Cholesky::of_sum(gram, self.alpha)
    }

    fn is_cheap(&self) -> bool {
        self.phi.columns() <= FEW_COLUMNS
    }
}

/// Returns the posterior at the mode of the weights for precisions `alpha`, `[M]`, and the Laplace evidence (M14).
/// Newton's method (IRLS) starts from the weights of `warm`, or from zero.
///
/// # Errors
/// Returns the errors of [`newton::mode`].
pub(crate) fn mode(
    problem: &ScaledProblem,
    active: &[usize],
    alpha: &[f64],
    warm: Option<&ActivePosterior>,
) -> Result<ActivePosterior> {
    let (phi, bytes) = phi(problem, active, warm);
    let objective = Laplace { problem, phi, alpha: ArrayView1::from(alpha) };
    let start = warm.map_or_else(|| Array1::zeros(active.len()), |warm| warm.mean_for(active));
    let near = warm.filter(|_| !objective.is_cheap()).and_then(|warm| warm.gram_of(active));
    let Mode { iterate, gram, factor } = newton::mode(&objective, objective.at(start.insert_axis(Axis(0)))?, near)?;
    let log_evidence = iterate.value + 0.5 * alpha.iter().map(|a| a.ln()).sum::<f64>() - 0.5 * factor.log_det();
    // Several posteriors are in memory at a time, so that Phi is stored only if it is small.
    let kept = match objective.phi {
        Phi::Kept(phi) if worth_storing(problem, bytes) => Some(phi),
        _ => None,
    };
    let mean = iterate.w.into_raw_vec_and_offset().0;
    Ok(ActivePosterior::at_mode(active, alpha, mean, factor, log_evidence, Some(gram), kept))
}

/// Returns Phi of the active columns for Newton's method, stored or recomputed, and its size in bytes.
pub(crate) fn phi<'a>(problem: &'a ScaledProblem<'a>, active: &'a [usize], warm: Option<&ActivePosterior>) -> (Phi<'a>, u64) {
    let n = problem.n_rows();
    let bytes = 8 * (n * active.len()) as u64;
    let phi = match bytes <= (problem.room() / NEWTON_SHARE).min(MOST_STORED) || n <= LITTLE_ROWS {
        true => Phi::Kept(columns(problem, active, warm)),
        false => Phi::Made { problem, columns: active.into() },
    };
    (phi, bytes)
}

/// Returns true if `bytes` of Phi are stored for the next solve.
pub(crate) fn worth_storing(problem: &ScaledProblem, bytes: u64) -> bool {
    bytes <= (problem.room() / STORED_SHARE).min(MOST_STORED)
}

/// Returns Phi of the active columns, [N, M]. Columns of the posterior `warm` are copied, which is much cheaper than to
/// compute them.
fn columns(problem: &ScaledProblem, active: &[usize], warm: Option<&ActivePosterior>) -> Rc<Array2<f64>> {
    let Some((known, phi)) = warm.and_then(|s| s.columns.as_ref().map(|phi| (&s.active, phi))) else {
        return Rc::new(problem.design.select(active));
    };
    if known == active {
        return phi.clone();
    }
    let missing: Vec<usize> = active.iter().copied().filter(|j| !known.contains(j)).collect();
    let made = problem.design.select(&missing);
    // For each column: true if it is computed, and its position among the computed or the known columns.
    let position = |list: &[usize], j: &usize| list.iter().position(|k| k == j);
    let source: Vec<(bool, usize)> = active
        .iter()
        .map(|j| position(&missing, j).map(|k| (true, k)).or_else(|| position(known, j).map(|k| (false, k))))
        .map(|found| found.expect("a column is known or missing"))
        .collect();
    let mut out = Array2::zeros((phi.nrows(), active.len()));
    let (phi, made) = (phi.view(), made.view());
    out.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().enumerate().for_each(|(k, mut out)| {
        let rows = s![k * TILE_ROWS..k * TILE_ROWS + out.nrows(), ..];
        for ((mut row, old), new) in out.outer_iter_mut().zip(phi.slice(rows).outer_iter()).zip(made.slice(rows).outer_iter()) {
            row.iter_mut().zip(&source).for_each(|(v, (is_made, k))| *v = if *is_made { new[*k] } else { old[*k] });
        }
    });
    Rc::new(out)
}

/// Expansion of the log-likelihood to second order at the weights of a posterior.
struct LocalExpansion {
    /// B of each row times the sample weights, `[N]`.
    curvature: Vec<f64>,
    /// The weighted working response B Phi w + r, [N, R], row by row; f is Phi' times it.
    response: Vec<f64>,
    /// t'Bt. Only differences matter, and it is so large that E stays positive.
    tt: f64,
}

impl LocalExpansion {
    fn new(problem: &ScaledProblem, solution: &ActivePosterior) -> LocalExpansion {
        let f = fitted(problem, solution);
        let derivatives = problem.working(&f);
        let (weights, outputs) = (&problem.training.weights, solution.outputs);
        let curvature: Vec<f64> = derivatives.curvature.iter().zip(weights).map(|(b, c)| b * c).collect();
        let response = |i: usize| weights[i / outputs] * (derivatives.curvature[i / outputs] * f[i] + derivatives.residual[i]);
        let response: Vec<f64> = (0..f.len()).map(response).collect();
        let tt = 2.0 * f.iter().zip(&response).map(|(f, p)| f * p).sum::<f64>().abs() + weights.iter().sum::<f64>();
        LocalExpansion { curvature, response, tt }
    }
}

/// Returns the quadratic form over all columns that equals the log-likelihood at the mode to second order. With
/// f = Phi'(B Phi w + r) no inverse of B is needed.
///
/// # Errors
/// Returns the errors of [`Phi::sums`].
pub(crate) fn expand<'p>(problem: &'p ScaledProblem, solution: &ActivePosterior) -> Result<Quadratic<'p>> {
    let (p, outputs) = (problem.design.n_columns(), solution.outputs);
    let fits = 8 * (p * p) as u64 * (DENSE + 2) <= problem.room();
    let many = problem.has_many_entries();
    let saturated = outputs == 1 && many && SATURATED * solution.active.len() >= p && fits;
    if saturated {
        return whole(problem, solution);
    }
    let near = LocalExpansion::new(problem, solution);
    let (design, tt, count) = (&problem.design, near.tt, problem.training.weight());
    let response = ArrayView2::from_shape((problem.n_rows(), outputs), &near.response).expect("[N, R]");
    Ok(Quadratic::on_demand(design, near.curvature, response, vec![tt], count, None, &solution.active).with_room(fits))
}

/// Returns the quadratic form at the mode of one output with all of G, from one pass over the rows.
///
/// # Errors
/// Returns the errors of [`Phi::sums`].
fn whole<'p>(problem: &'p ScaledProblem, solution: &ActivePosterior) -> Result<Quadratic<'p>> {
    let p = problem.design.n_columns();
    let mut w = Array1::zeros(p);
    solution.active.iter().zip(&solution.mean).for_each(|(j, v)| w[*j] = *v);
    let phi = Phi::Made { problem, columns: (0..p).collect::<Vec<_>>().into() };
    let mut sums = phi.sums(problem, w.view(), DerivativeOrder::Hessian)?;
    linalg::mirror(&mut sums.hessian);
    let f = sums.hessian.dot(&w) + &sums.gradient;
    let tt = 2.0 * f.dot(&w).abs() + problem.training.count;
    let sums = Sums { gram: sums.hessian, f: vec![f.to_vec()], tt: vec![tt], count: problem.training.weight() };
    Ok(Quadratic::stored(sums, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::Bernoulli;
    use crate::report::Interrupt;
    use crate::rvm::data::noise::NoisePrecision;
    use crate::rvm::data::training_set::TrainingSet;
    use crate::rvm::evidence::active_posterior::NoiseChoice;
    use crate::rvm::evidence::solver::EvidenceSolver;
    use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule};
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    const N: usize = 300;
    const ALL: Dictionary = Dictionary::Rule(DictionaryRule::All);

    /// Calls `test` with a scaled problem of `n` rows in two classes that overlap.
    fn with_problem(n: usize, dictionary: Dictionary, test: impl Fn(&ScaledProblem)) {
        let x = Array2::from_shape_fn((n, 2), |(i, j)| f64::sin((7 * i + 3) as f64 * (1.3 + j as f64)));
        let labels: Vec<usize> =
            x.outer_iter().enumerate().map(|(i, r)| usize::from(r[0] * r[1] + 0.1 > 0.0) ^ usize::from(i % 7 == 0)).collect();
        let kernel = Rbf { gamma: 2.0.into() }.into();
        let rvm = Rvm { kernel, dictionary, likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
        let targets = Targets::classes(&labels, 2);
        let training = TrainingSet::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
        test(&ScaledProblem::new(&training, training.dictionary()).unwrap().0);
    }

    /// Rows of G that are computed on demand equal those of all of G.
    #[test]
    fn rows_of_gram_on_demand_equal_those_of_all_gram() {
        with_problem(N, ALL, |problem| {
            let active: Vec<usize> = (0..N).step_by(40).collect();
            let solution = mode(problem, &active, &vec![1e-3; active.len()], None).unwrap();
            let many: Vec<usize> = (0..N / 2).collect();
            let (few, all) =
                (expand(problem, &solution).unwrap().with_room(false), expand(problem, &solution).unwrap().with_room(true));
            let (few, all) = (few.rows(&many), all.rows(&many));
            assert!(few.iter().zip(&all).all(|(f, a)| (f - a).abs() < 1e-12), "rows of G differ");
        });
    }

    /// The mode does not depend on the start of Newton's method: from zero, or from a larger model whose weights
    /// balance each other.
    #[test]
    fn mode_is_independent_of_the_start() {
        with_problem(N, ALL, |problem| {
            let near = |j: usize| [j, j + 1];
            let large: Vec<usize> = (0..N - 10).step_by(30).flat_map(near).collect();
            let alpha = vec![1e-9; large.len()];
            let before = mode(problem, &large, &alpha, None).unwrap();
            let kept: Vec<usize> = large.iter().copied().step_by(2).collect();
            let alpha = vec![1e-9; kept.len()];
            let alone = mode(problem, &kept, &alpha, None).unwrap();
            let warm = mode(problem, &kept, &alpha, Some(&before)).unwrap();
            assert!((warm.log_evidence - alone.log_evidence).abs() < 1e-9, "{} {}", warm.log_evidence, alone.log_evidence);
        });
    }

    /// With the Hessian at other precisions as preconditioner, conjugate gradients lead to the mode, where the gradient
    /// is 0.
    #[test]
    fn hessian_at_other_precisions_leads_to_the_same_mode() {
        with_problem(4096, Dictionary::Size(90), |problem| {
            let active = problem.usable();
            assert!(active.len() > FEW_COLUMNS, "each step would have its own Hessian");
            let there = mode(problem, &active, &vec![1e-4; active.len()], None).unwrap();
            assert!(there.gram_of(&active).is_some(), "the Gram matrix is stored");
            let alpha: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let alone = mode(problem, &active, &alpha, None).unwrap();
            let warm = mode(problem, &active, &alpha, Some(&there)).unwrap();
            for found in [&alone, &warm] {
                assert!((found.log_evidence - alone.log_evidence).abs() < 1e-9 * alone.log_evidence.abs());
                let (phi, _) = phi(problem, &active, None);
                let w = Array1::from_vec(found.mean.clone());
                let sums = phi.sums(problem, w.view(), DerivativeOrder::Gradient).unwrap();
                let gradient = sums.gradient - &w * &Array1::from_vec(alpha.clone());
                // The distance to the mode is less than a millionth of a posterior standard deviation.
                let mut half = gradient.insert_axis(Axis(1));
                linalg::solve_lower(found.lower.view(), half.view_mut());
                assert!(half.iter().map(|v| v * v).sum::<f64>() < 1e-12, "{half}");
            }
        });
    }

    /// A posterior with reordered columns, which needs no pass over the rows, equals the one that is solved in that
    /// order.
    #[test]
    fn reordered_posterior_equals_the_solved_one() {
        with_problem(8192, Dictionary::Size(60), |problem| {
            let solver = EvidenceSolver::new(problem, None);
            let (active, noise) = (problem.usable(), [NoisePrecision::Fixed(1.0)]);
            let a: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let there = solver.solve(&active, &a, &noise, NoiseChoice::Best, None).unwrap();
            let order: Vec<usize> = (0..active.len()).map(|i| (7 * i + 3) % active.len()).collect();
            assert!(active.len() % 7 != 0, "{} columns", active.len());
            let moved = solver.reordered(&there, &order, &noise).unwrap();
            let solved = solver.solve(&moved.active, &moved.a, &noise, NoiseChoice::Best, None).unwrap();
            let pick = |of: &[f64]| order.iter().map(|i| of[*i]).collect::<Vec<f64>>();
            assert_eq!((pick(&there.a), pick(&there.mean)), (moved.a.clone(), moved.mean.clone()));
            assert!((moved.log_evidence - solved.log_evidence).abs() < 1e-9 * solved.log_evidence.abs());
            let largest = solved.lower.iter().fold(0.0f64, |l, v| l.max(v.abs()));
            assert!(moved.lower.iter().zip(&solved.lower).all(|(m, s)| (m - s).abs() < 1e-8 * largest));
            assert!(moved.variance.iter().zip(&solved.variance).all(|(m, s)| (m - s).abs() < 1e-8 * s));
        });
    }

    /// With the Hessian frozen, the conditional means without some columns (M14b) equal those of the model without
    /// them.
    #[test]
    fn conditional_means_equal_those_of_the_smaller_model() {
        with_problem(N, ALL, |problem| {
            let active: Vec<usize> = (0..N).step_by(12).collect();
            let a = vec![1e-2; active.len()];
            let solution = mode(problem, &active, &a, None).unwrap();
            let frozen = EvidenceSolver::new(problem, None).with_form(Rc::new(expand(problem, &solution).unwrap()));
            let noise = [NoisePrecision::Fixed(1.0)];
            let solve = |active: &[usize]| frozen.solve(active, &a[..active.len()], &noise, NoiseChoice::Best, None).unwrap();
            let kept: Vec<usize> = active.iter().copied().filter(|j| j % 36 != 0).collect();
            let (found, without) = (solve(&active).mean_for(&kept), solve(&kept).mean);
            let largest = without.iter().fold(0.0f64, |l, w| l.max(w.abs()));
            assert!(found.iter().zip(&without).all(|(f, w)| (f - w).abs() < 1e-9 * largest), "{found} {without:?}");
        });
    }
}
