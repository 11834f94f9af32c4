//! Likelihoods whose curvature is not constant: the posterior mode, the Laplace evidence, and the
//! quadratic form that stands for the likelihood at the mode, (M13) to (M15).

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::design;
use crate::error::Result;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;
use crate::rvm::data::budget::DENSE;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::function_values::fitted;
use crate::rvm::evidence::newton::{self, Iterate, Mode, Objective};
use crate::rvm::gram::likelihood_sums::{DerivativeOrder, LikelihoodSums, Phi};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::sums::Sums;

/// Rows copied at a time.
const BLOCK: usize = 1024;
/// Columns of a model are kept for the length of Newton's method if they take at most this part of it; and of
/// so few rows always.
const NEWTON_SHARE: u64 = 2;
const LITTLE_ROWS: usize = 2048;
/// Columns of a model are kept for the next if they take at most this part of the memory left.
const KEPT_SHARE: u64 = 8;
/// More bytes of them are never kept: fresh memory takes longer to touch than kernels take to make.
const MOST_KEPT: u64 = 1 << 26;
/// Of so few columns the Hessian costs no more than a few products with it.
const FEW_COLUMNS: usize = 64;
/// Where more than one column in so many is in the model, all of G costs less than its rows in passes of their own.
const CROWDED: usize = 3;
/// The log-likelihood of one output and the log prior, by the columns of a model.
struct Laplace<'a> {
    problem: &'a ScaledProblem<'a>,
    phi: Phi<'a>,
    /// `[M]`.
    alpha: ArrayView1<'a, f64>,
}

impl Objective for Laplace<'_> {
    type Rows = LikelihoodSums;
    type Gram = Rc<Array2<f64>>;

    fn at(&self, w: Array2<f64>) -> Result<Iterate<LikelihoodSums>> {
        let want = if self.is_cheap() { DerivativeOrder::Curvature } else { DerivativeOrder::Slope };
        let rows = self.phi.slopes(self.problem, w.row(0), want)?;
        let prior = &w * &self.alpha;
        let value = rows.log_likelihood - 0.5 * (&prior * &w).sum();
        Ok(Iterate { value, gradient: &rows.slope - &prior, w, rows })
    }

    fn times(&self, iterate: &Iterate<LikelihoodSums>, d: &Array2<f64>) -> Result<Array2<f64>> {
        Ok(d * &self.alpha + self.phi.curvature_times(self.problem, &iterate.rows.row_curvature, d.row(0))?)
    }

    fn gram(&self, iterate: &Iterate<LikelihoodSums>) -> Result<Rc<Array2<f64>>> {
        let mut gram = match self.is_cheap() {
            true => iterate.rows.curvature.clone(),
            false => self.phi.slopes(self.problem, iterate.w.row(0), DerivativeOrder::Curvature)?.curvature,
        };
        linalg::mirror(&mut gram);
        Ok(Rc::new(gram))
    }

    fn factor(&self, gram: &Rc<Array2<f64>>) -> Result<Cholesky> {
        Cholesky::of_sum(gram, self.alpha)
    }

    /// A product with the Hessian of rows that are not held is a pass over them, as the Hessian is.
    fn is_cheap(&self) -> bool {
        self.phi.columns() <= FEW_COLUMNS || self.phi.made_in_blocks().is_some()
    }
}

/// The mode of the weights at precisions `alpha`, `[M]`, by Newton's method (IRLS) from near `warm`, and the Laplace evidence there.
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
    // Several solutions are alive at a time.
    let kept = match objective.phi {
        Phi::Kept(phi) if worth_keeping(problem, bytes) => Some(phi),
        _ => None,
    };
    let mean = iterate.w.into_raw_vec_and_offset().0;
    Ok(ActivePosterior::at_mode(active, alpha, mean, factor, log_evidence, Some(gram), kept))
}

/// Phi_A for the length of Newton's method, and its bytes.
pub(crate) fn phi<'a>(problem: &'a ScaledProblem<'a>, active: &'a [usize], warm: Option<&ActivePosterior>) -> (Phi<'a>, u64) {
    // What is not worth keeping for later may be worth it for one Newton.
    let (n, held) = (problem.n_rows(), problem.training.blocks.is_none());
    let bytes = 8 * (n * active.len()) as u64;
    let phi = match held && (bytes <= (problem.room() / NEWTON_SHARE).min(MOST_KEPT) || n <= LITTLE_ROWS) {
        true => Phi::Kept(columns(problem, active, warm)),
        false => Phi::Made { problem, columns: active.into() },
    };
    (phi, bytes)
}

/// Whether so many bytes of Phi_A are kept for the next solve.
pub(crate) fn worth_keeping(problem: &ScaledProblem, bytes: u64) -> bool {
    bytes <= (problem.room() / KEPT_SHARE).min(MOST_KEPT)
}

/// Phi_A, [N, M]; columns of an earlier solution are taken from there, which is much cheaper than out of
/// all of Phi.
fn columns(problem: &ScaledProblem, active: &[usize], warm: Option<&ActivePosterior>) -> Rc<Array2<f64>> {
    let Some((known, phi)) = warm.and_then(|s| s.columns.as_ref().map(|phi| (&s.active, phi))) else {
        return Rc::new(problem.design.select(active));
    };
    if known == active {
        return phi.clone();
    }
    let missing: Vec<usize> = active.iter().copied().filter(|j| !known.contains(j)).collect();
    let made = problem.design.select(&missing);
    // For each column whether it is made, and where it is.
    let iterate = |list: &[usize], j: &usize| list.iter().position(|k| k == j);
    let source: Vec<(bool, usize)> = active
        .iter()
        .map(|j| iterate(&missing, j).map(|k| (true, k)).or_else(|| iterate(known, j).map(|k| (false, k))))
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

/// The likelihood near the weights of a solution.
struct LocalExpansion {
    /// B, `[N]`.
    curvature: Vec<f64>,
    /// B Phi w + residual, [N, R] by rows, which Phi' makes f of.
    pull: Vec<f64>,
    /// t'Bt. Only differences matter: it is large enough that what is left of it is positive.
    tt: f64,
}

impl LocalExpansion {
    fn new(problem: &ScaledProblem, solution: &ActivePosterior) -> LocalExpansion {
        let f = fitted(problem, solution);
        let solver = problem.working(&f);
        let (weights, outputs) = (&problem.training.weights, solution.outputs);
        let curvature: Vec<f64> = solver.curvature.iter().zip(weights).map(|(b, c)| b * c).collect();
        let pull = |i: usize| weights[i / outputs] * (solver.curvature[i / outputs] * f[i] + solver.residual[i]);
        let pull: Vec<f64> = (0..f.len()).map(pull).collect();
        let tt = 2.0 * f.iter().zip(&pull).map(|(f, p)| f * p).sum::<f64>().abs() + weights.iter().sum::<f64>();
        LocalExpansion { curvature, pull, tt }
    }

    /// Adds the rows to G, and to f of each output.
    fn add_to(&self, problem: &ScaledProblem, sums: &mut Sums, f: &mut [Vec<f64>]) {
        let (zeros, outputs) = (vec![0.0; self.curvature.len()], f.len());
        problem.design.for_each_block(|rows, phi| {
            sums.accumulate(phi, &zeros[rows.clone()], &self.curvature[rows.clone()]);
            for (k, f) in f.iter_mut().enumerate() {
                let pull: Vec<f64> = rows.clone().map(|n| self.pull[n * outputs + k]).collect();
                design::add_sums(&pull, phi, f);
            }
        });
    }
}

/// The quadratic form that equals the log-likelihood at the mode to second order, over all columns:
/// B the curvature, f = Phi'(B Phi w + residual), so that no inverse of B is ever needed.
///
/// # Errors
/// Those of [`ScaledProblem::for_each_part`].
pub(crate) fn expand<'p>(problem: &'p ScaledProblem, solution: &ActivePosterior) -> Result<Quadratic<'p>> {
    let (p, outputs) = (problem.design.n_columns(), solution.outputs);
    let fits = 8 * (p * p) as u64 * (DENSE + 2) <= problem.room();
    let many = problem.has_many_entries();
    let crowded = outputs == 1 && many && CROWDED * solution.active.len() >= p && fits;
    if crowded || problem.training.blocks.is_some() {
        return whole(problem, solution);
    }
    let near = LocalExpansion::new(problem, solution);
    let (design, tt, count) = (&problem.design, near.tt, problem.training.weight());
    let pull = ArrayView2::from_shape((problem.n_rows(), outputs), &near.pull).expect("[N, R]");
    Ok(Quadratic::on_demand(design, near.curvature, pull, vec![tt], count, None, &solution.active).with_room(fits))
}

/// Quadratic form at the mode with all of G, from one pass over the rows.
fn whole<'p>(problem: &'p ScaledProblem, solution: &ActivePosterior) -> Result<Quadratic<'p>> {
    let p = problem.design.n_columns();
    if solution.outputs == 1 {
        let mut w = Array1::zeros(p);
        solution.active.iter().zip(&solution.mean).for_each(|(j, v)| w[*j] = *v);
        let phi = Phi::Made { problem, columns: (0..p).collect::<Vec<_>>().into() };
        let mut slopes = phi.slopes(problem, w.view(), DerivativeOrder::Curvature)?;
        linalg::mirror(&mut slopes.curvature);
        let f = slopes.curvature.dot(&w) + &slopes.slope;
        let tt = 2.0 * f.dot(&w).abs() + problem.training.count;
        let sums = Sums { gram: slopes.curvature, f: vec![f.to_vec()], tt: vec![tt], count: problem.training.weight() };
        return Ok(Quadratic::stored(sums, None));
    }
    let (mut sums, mut f, mut tt) = (Sums::new(p, 1), vec![vec![0.0; p]; solution.outputs], 0.0);
    problem.for_each_part(|part| {
        let near = LocalExpansion::new(part, solution);
        near.add_to(part, &mut sums, &mut f);
        tt += near.tt;
        Ok(())
    })?;
    let sums = Sums { f, tt: vec![tt], count: problem.training.weight(), ..sums.finish() };
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

    /// Calls `test` with a problem of two classes that overlap, of so many rows.
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

    /// Rows of G made as they are asked for are those of all of G at once.
    #[test]
    fn all_rows_at_once_are_those_made_one_by_one() {
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

    /// The mode does not depend on where Newton's method starts: at nothing, or near a larger model. Columns that balance each other
    /// are no exception.
    #[test]
    fn one_mode_from_anywhere() {
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

    /// A curvature from elsewhere leads to the mode, by conjugate gradients: no slope is left there.
    #[test]
    fn one_mode_with_a_curvature_of_elsewhere() {
        with_problem(4096, Dictionary::Size(90), |problem| {
            let active = problem.usable();
            assert!(active.len() > FEW_COLUMNS, "each step has a curvature of its own");
            let there = mode(problem, &active, &vec![1e-4; active.len()], None).unwrap();
            assert!(there.gram_of(&active).is_some(), "it is kept");
            let alpha: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let alone = mode(problem, &active, &alpha, None).unwrap();
            let warm = mode(problem, &active, &alpha, Some(&there)).unwrap();
            for found in [&alone, &warm] {
                assert!((found.log_evidence - alone.log_evidence).abs() < 1e-9 * alone.log_evidence.abs());
                let (phi, _) = phi(problem, &active, None);
                let w = Array1::from_vec(found.mean.clone());
                let slope =
                    phi.slopes(problem, w.view(), DerivativeOrder::Slope).unwrap().slope - &w * &Array1::from_vec(alpha.clone());
                // In units of the posterior it is less than a millionth of a standard deviation.
                let mut half = slope.insert_axis(Axis(1));
                linalg::solve_lower(found.lower.view(), half.view_mut());
                assert!(half.iter().map(|v| v * v).sum::<f64>() < 1e-12, "{half}");
            }
        });
    }

    /// Columns change places without another look at the rows.
    #[test]
    fn reordered_without_a_look() {
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

    /// With the curvature held, what is left of a posterior without some of its columns is the solution without them.
    #[test]
    fn means_without_columns() {
        with_problem(N, ALL, |problem| {
            let active: Vec<usize> = (0..N).step_by(12).collect();
            let a = vec![1e-2; active.len()];
            let solution = mode(problem, &active, &a, None).unwrap();
            let held = EvidenceSolver::new(problem, None).held(Rc::new(expand(problem, &solution).unwrap()));
            let noise = [NoisePrecision::Fixed(1.0)];
            let solve = |active: &[usize]| held.solve(active, &a[..active.len()], &noise, NoiseChoice::Best, None).unwrap();
            let kept: Vec<usize> = active.iter().copied().filter(|j| j % 36 != 0).collect();
            let (found, without) = (solve(&active).mean_for(&kept), solve(&kept).mean);
            let largest = without.iter().fold(0.0f64, |l, w| l.max(w.abs()));
            assert!(found.iter().zip(&without).all(|(f, w)| (f - w).abs() < 1e-9 * largest), "{found} {without:?}");
        });
    }
}
