//! Likelihoods whose curvature is not constant: the posterior mode, the Laplace evidence, and the
//! quadratic form that stands for the likelihood at the mode, (M13) to (M15).

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use crate::design;
use crate::error::Result;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;
use crate::rvm::data::budget::DENSE;
use crate::rvm::evidence::fitted::fitted;
use crate::rvm::evidence::lbfgs::Steps;
use crate::rvm::evidence::solution::Solution;
use crate::rvm::gram::problem::Problem;
use crate::rvm::gram::slopes::{Phi, Slopes, Want};
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
/// More bytes of them are never kept: fresh memory takes longer to touch than kernels take to make.
const MOST_KEPT: u64 = 1 << 26;
/// Halvings of one step at most: the first step towards counts of 1e14 is that long, and those of 1e18 take 60.
const MAX_HALVINGS: usize = 80;
/// From so many entries of Phi_A a curvature, and what the steps since tell of it, serves for more than one step, as long as each
/// leaves less than this share of what the one before had left to gain.
const FRUGAL_ENTRIES: usize = 20_000;
const SLOW: f64 = 0.5;
/// From so many entries of Phi looks at the rows cost more than all else.
const MANY_ENTRIES: usize = 1_000_000;
/// Where more than one column in so many is in the model, all of G costs less than its rows in passes of their own.
const CROWDED: usize = 3;
/// What is left to gain before the last step, relative to the objective. Of that a step with an earlier curvature leaves about
/// the share that the one before did, and this much of it may be left.
const DECREMENT: f64 = 1e-11;
const LEFT: f64 = 5e-7;

/// What a quadratic form near the mode makes of a model.
pub(crate) struct Guess {
    /// Of the weights, `[M]`.
    pub mean: Vec<f64>,
    /// Phi'BPhi, [M, M], if that is known.
    pub gram: Option<Rc<Array2<f64>>>,
}

/// The mode of the weights at precisions `alpha`, by Newton's method (IRLS) with step halving, and
/// the Laplace evidence there. It starts near `warm`, or at the weights of `guess` if these are better, or all there are.
pub(crate) fn mode(
    problem: &Problem,
    active: &[usize],
    alpha: &[f64],
    guess: Option<Guess>,
    warm: Option<&Solution>,
) -> Result<Solution> {
    let (phi, bytes) = phi(problem, active, warm);
    let mut w = match (warm, &guess) {
        (Some(warm), _) => warm.mean_for(active),
        (None, Some(guess)) => Array1::from(guess.mean.clone()),
        (None, None) => Array1::zeros(active.len()),
    };
    let alpha = ArrayView1::from(alpha);
    let objective =
        |slopes: &Slopes, w: &Array1<f64>| slopes.log_likelihood - 0.5 * w.iter().zip(alpha).map(|(w, a)| a * w * w).sum::<f64>();
    let gradient_of = |slopes: &Slopes, w: &Array1<f64>| &slopes.slope - &(&alpha * w);
    // On long tables a curvature costs as much as many slopes: one from near the mode will do on the way there.
    let frugal = problem.n_rows() * active.len() >= FRUGAL_ENTRIES;
    let of_guess = || guess.as_ref().and_then(|guess| guess.gram.clone());
    let known = frugal.then(|| warm.and_then(|s| s.gram_of(active)).or_else(of_guess)).flatten();
    let want = if known.is_some() { Want::Slope } else { Want::Curvature };
    let mut slopes = phi.slopes(problem, w.view(), want)?;
    let mut value = objective(&slopes, &w);
    if let Some(guess) = guess.filter(|_| warm.is_some()) {
        let other = Array1::from_vec(guess.mean);
        let there = phi.slopes(problem, other.view(), want)?;
        let value_there = objective(&there, &other);
        if value_there > value {
            (w, slopes, value) = (other, there, value_there);
        }
    }
    let mut gram = known.unwrap_or_else(|| symmetric(&mut slopes));
    let mut factor = Cholesky::of_sum(&gram, alpha)?;
    let mut stale = want == Want::Slope;
    // What the steps since then tell of the curvature.
    let mut steps = Steps::default();
    let (mut last, mut before) = (false, f64::INFINITY);
    let mut gradient = gradient_of(&slopes, &w);
    for _ in 0..MAX_NEWTON {
        let step = Array1::from_vec(steps.newton(&gradient.to_vec(), |q| factor.solve(column(q))));
        // Half the Newton decrement is what is left to gain; below rounding, one full step ends it.
        let decrement = 0.5 * gradient.dot(&step);
        let share = if before.is_finite() { decrement / before } else { 1.0 };
        let enough = if stale { DECREMENT * (LEFT / share).min(1.0) } else { DECREMENT };
        last = last || decrement <= enough * (1.0 + value.abs());
        if stale && !last && decrement > SLOW * before {
            slopes = phi.slopes(problem, w.view(), Want::Curvature)?;
            gram = symmetric(&mut slopes);
            factor = Cholesky::of_sum(&gram, alpha)?;
            steps.forget();
            (stale, before) = (false, f64::INFINITY);
            continue;
        }
        before = decrement;
        let mut length = 1.0;
        let mut moved = false;
        for halvings in 0..MAX_HALVINGS {
            let trial_w = &w + &(&step * length);
            // The first length is mostly right: what the next step, or the end, needs comes along with the value.
            let want = match (halvings, frugal && !last) {
                (0, false) => Want::Curvature,
                (0, true) => Want::Slope,
                _ => Want::Value,
            };
            let mut trial = phi.slopes(problem, trial_w.view(), want)?;
            let trial_value = objective(&trial, &trial_w);
            // Of the last step the value tells no more than rounding.
            if last || trial_value >= value - 1e-14 * value.abs() {
                if want == Want::Value {
                    trial = phi.slopes(problem, trial_w.view(), Want::Curvature)?;
                }
                let there = gradient_of(&trial, &trial_w);
                stale = want == Want::Slope;
                if stale {
                    steps.remember((&trial_w - &w).to_vec(), (&gradient - &there).to_vec());
                }
                (w, slopes, gradient, value, moved) = (trial_w, trial, there, trial_value, true);
                if !stale {
                    gram = symmetric(&mut slopes);
                    factor = Cholesky::of_sum(&gram, alpha)?;
                    steps.forget();
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
    Ok(Solution::at_mode(active, &alpha, w.to_vec(), factor, log_evidence, Some(gram), kept))
}

/// Phi_A for the length of Newton's method, and its bytes.
pub(crate) fn phi<'a>(problem: &'a Problem<'a>, active: &'a [usize], warm: Option<&Solution>) -> (Phi<'a>, u64) {
    // What is not worth keeping for later may be worth it for one Newton.
    let (n, held) = (problem.n_rows(), problem.table.blocks.is_none());
    let bytes = 8 * (n * active.len()) as u64;
    let phi = match held && (bytes <= (problem.room() / NEWTON_SHARE).min(MOST_KEPT) || n <= LITTLE_ROWS) {
        true => Phi::Kept(columns(problem, active, warm)),
        false => Phi::Made { problem, columns: active.into() },
    };
    (phi, bytes)
}

/// Whether so many bytes of Phi_A are kept for the next solve.
pub(crate) fn worth_keeping(problem: &Problem, bytes: u64) -> bool {
    bytes <= (problem.room() / KEPT_SHARE).min(MOST_KEPT)
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

/// A vector as a matrix of one column.
fn column(v: &mut [f64]) -> ArrayViewMut2<'_, f64> {
    ArrayViewMut2::from_shape((v.len(), 1), v).expect("as many entries")
}

/// Phi'BPhi out of sums that have its lower triangle.
fn symmetric(slopes: &mut Slopes) -> Rc<Array2<f64>> {
    let mut gram = std::mem::take(&mut slopes.curvature);
    linalg::mirror(&mut gram);
    Rc::new(gram)
}

/// The likelihood near the weights of a solution.
struct Near {
    /// B, `[N]`.
    curvature: Vec<f64>,
    /// B Phi w + residual, [N, R] by rows, which Phi' makes f of.
    pull: Vec<f64>,
    /// t'Bt. Only differences matter: it is large enough that what is left of it is positive.
    tt: f64,
}

impl Near {
    fn new(problem: &Problem, solution: &Solution) -> Near {
        let f = fitted(problem, solution);
        let work = problem.working(&f);
        let (weights, outputs) = (&problem.table.weights, solution.outputs);
        let curvature: Vec<f64> = work.curvature.iter().zip(weights).map(|(b, c)| b * c).collect();
        let pull = |i: usize| weights[i / outputs] * (work.curvature[i / outputs] * f[i] + work.residual[i]);
        let pull: Vec<f64> = (0..f.len()).map(pull).collect();
        let tt = 2.0 * f.iter().zip(&pull).map(|(f, p)| f * p).sum::<f64>().abs() + weights.iter().sum::<f64>();
        Near { curvature, pull, tt }
    }

    /// Adds the rows to G, and to f of each output.
    fn add_to(&self, problem: &Problem, sums: &mut Sums, f: &mut [Vec<f64>]) {
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
/// Those of [`Problem::for_each_part`].
pub(crate) fn expand<'p>(problem: &'p Problem, solution: &Solution) -> Result<Quadratic<'p>> {
    let (p, outputs) = (problem.design.n_columns(), solution.outputs);
    let fits = 8 * (p * p) as u64 * (DENSE + 2) <= problem.room();
    let many = problem.n_rows() * p >= MANY_ENTRIES;
    let crowded = outputs == 1 && many && CROWDED * solution.active.len() >= p && fits;
    if crowded || problem.table.blocks.is_some() {
        return whole(problem, solution);
    }
    let near = Near::new(problem, solution);
    let (design, tt, count) = (&problem.design, near.tt, problem.table.weight());
    let pull = ArrayView2::from_shape((problem.n_rows(), outputs), &near.pull).expect("[N, R]");
    Ok(Quadratic::on_demand(design, near.curvature, pull, vec![tt], count, None, &solution.active).with_room(fits))
}

/// Quadratic form at the mode with all of G, from one pass over the rows.
fn whole<'p>(problem: &'p Problem, solution: &Solution) -> Result<Quadratic<'p>> {
    let p = problem.design.n_columns();
    if solution.outputs == 1 {
        let mut w = Array1::zeros(p);
        solution.active.iter().zip(&solution.mean).for_each(|(j, v)| w[*j] = *v);
        let phi = Phi::Made { problem, columns: (0..p).collect::<Vec<_>>().into() };
        let mut slopes = phi.slopes(problem, w.view(), Want::Curvature)?;
        linalg::mirror(&mut slopes.curvature);
        let f = slopes.curvature.dot(&w) + &slopes.slope;
        let tt = 2.0 * f.dot(&w).abs() + problem.table.count;
        let sums = Sums { gram: slopes.curvature, f: vec![f.to_vec()], tt: vec![tt], count: problem.table.weight() };
        return Ok(Quadratic::stored(sums, None));
    }
    let (mut sums, mut f, mut tt) = (Sums::new(p, 1), vec![vec![0.0; p]; solution.outputs], 0.0);
    problem.for_each_part(|part| {
        let near = Near::new(part, solution);
        near.add_to(part, &mut sums, &mut f);
        tt += near.tt;
        Ok(())
    })?;
    let sums = Sums { f, tt: vec![tt], count: problem.table.weight(), ..sums.finish() };
    Ok(Quadratic::stored(sums, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::Bernoulli;
    use crate::report::Interrupt;
    use crate::rvm::data::noise::Noise;
    use crate::rvm::data::table::Table;
    use crate::rvm::evidence::solution::At;
    use crate::rvm::evidence::workspace::Workspace;
    use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule};
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    const N: usize = 300;
    const ALL: Dictionary = Dictionary::Rule(DictionaryRule::All);

    /// Calls `test` with a problem of two classes that overlap, of so many rows.
    fn with_problem(n: usize, dictionary: Dictionary, test: impl Fn(&Problem)) {
        let x = Array2::from_shape_fn((n, 2), |(i, j)| f64::sin((7 * i + 3) as f64 * (1.3 + j as f64)));
        let labels: Vec<usize> =
            x.outer_iter().enumerate().map(|(i, r)| usize::from(r[0] * r[1] + 0.1 > 0.0) ^ usize::from(i % 7 == 0)).collect();
        let kernel = Rbf { gamma: 2.0.into() }.into();
        let rvm = Rvm { kernel, dictionary, likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
        let targets = Targets::classes(&labels, 2);
        let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
        test(&Problem::new(&table, table.dictionary()).unwrap().0);
    }

    /// Rows of G made as they are asked for are those of all of G at once.
    #[test]
    fn all_rows_at_once_are_those_made_one_by_one() {
        with_problem(N, ALL, |problem| {
            let active: Vec<usize> = (0..N).step_by(40).collect();
            let solution = mode(problem, &active, &vec![1e-3; active.len()], None, None).unwrap();
            let many: Vec<usize> = (0..N / 2).collect();
            let (few, all) =
                (expand(problem, &solution).unwrap().with_room(false), expand(problem, &solution).unwrap().with_room(true));
            let (few, all) = (few.rows(&many), all.rows(&many));
            assert!(few.iter().zip(&all).all(|(f, a)| (f - a).abs() < 1e-12), "rows of G differ");
        });
    }

    /// The mode does not depend on where Newton's method starts: at nothing, near a larger model, or at what a quadratic
    /// form made of it. Columns that balance each other are no exception.
    #[test]
    fn one_mode_from_anywhere() {
        with_problem(N, ALL, |problem| {
            let near = |j: usize| [j, j + 1];
            let large: Vec<usize> = (0..N - 10).step_by(30).flat_map(near).collect();
            let alpha = vec![1e-9; large.len()];
            let before = mode(problem, &large, &alpha, None, None).unwrap();
            let kept: Vec<usize> = large.iter().copied().step_by(2).collect();
            let alpha = vec![1e-9; kept.len()];
            let alone = mode(problem, &kept, &alpha, None, None).unwrap();
            let mut gram = Array2::zeros((kept.len(), kept.len()));
            gram.diag_mut().fill(1.0);
            let guess = Guess { mean: before.mean_for(&kept).map(|w| 1.01 * w).to_vec(), gram: Some(Rc::new(gram)) };
            let warm = mode(problem, &kept, &alpha, None, Some(&before)).unwrap();
            let guessed = mode(problem, &kept, &alpha, Some(guess), Some(&before)).unwrap();
            for other in [warm, guessed] {
                assert!((other.log_evidence - alone.log_evidence).abs() < 1e-9, "{} {}", other.log_evidence, alone.log_evidence);
            }
        });
    }

    /// A curvature from elsewhere, and what the steps tell since, leads to the same mode: no slope is left there.
    #[test]
    fn one_mode_with_a_curvature_of_elsewhere() {
        with_problem(8192, Dictionary::Size(60), |problem| {
            let active = problem.usable();
            assert!(problem.design.n_rows() * active.len() >= FRUGAL_ENTRIES);
            let there = mode(problem, &active, &vec![1e-4; active.len()], None, None).unwrap();
            let gram = there.gram_of(&active);
            assert!(gram.is_some(), "it is kept");
            let alpha: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let alone = mode(problem, &active, &alpha, None, None).unwrap();
            let warm = mode(problem, &active, &alpha, None, Some(&there)).unwrap();
            let guessed = mode(problem, &active, &alpha, Some(Guess { mean: there.mean.clone(), gram }), None).unwrap();
            for found in [&alone, &warm, &guessed] {
                assert!((found.log_evidence - alone.log_evidence).abs() < 1e-9 * alone.log_evidence.abs());
                let (phi, _) = phi(problem, &active, None);
                let w = Array1::from_vec(found.mean.clone());
                let slope = phi.slopes(problem, w.view(), Want::Slope).unwrap().slope - &w * &Array1::from_vec(alpha.clone());
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
            let work = Workspace::new(problem, None);
            let (active, noise) = (problem.usable(), [Noise::Fixed(1.0)]);
            let a: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let there = work.solve(&active, &a, &noise, At::Best, None).unwrap();
            let order: Vec<usize> = (0..active.len()).map(|i| (7 * i + 3) % active.len()).collect();
            assert!(active.len() % 7 != 0, "{} columns", active.len());
            let moved = work.reordered(&there, &order, &noise).unwrap();
            let solved = work.solve(&moved.active, &moved.a, &noise, At::Best, None).unwrap();
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
            let solution = mode(problem, &active, &a, None, None).unwrap();
            let held = Workspace::new(problem, None).held(Rc::new(expand(problem, &solution).unwrap()));
            let noise = [Noise::Fixed(1.0)];
            let solve = |active: &[usize]| held.solve(active, &a[..active.len()], &noise, At::Best, None).unwrap();
            let kept: Vec<usize> = active.iter().copied().filter(|j| j % 36 != 0).collect();
            let (found, without) = (solve(&active).mean_for(&kept), solve(&kept).mean);
            let largest = without.iter().fold(0.0f64, |l, w| l.max(w.abs()));
            assert!(found.iter().zip(&without).all(|(f, w)| (f - w).abs() < 1e-9 * largest), "{found} {without:?}");
        });
    }
}
