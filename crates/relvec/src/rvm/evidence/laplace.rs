//! Laplace's approximation for likelihoods whose Hessian depends on the weights, (M13) to (M15): the posterior mode, the
//! evidence, and the quadratic form that equals the log-likelihood to second order at the mode.
//!
//! For several classes, (M28), (M29), the Hessian couples the contrasts. Newton's equations are solved by conjugate
//! gradients, whose products need two passes over Phi. The preconditioner is the Hessian at previous weights, if it is
//! known. The Hessian at the mode is computed once, for its determinant and the posterior, from one symmetric product for
//! each pair of classes.

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, CowArray, s};
use rayon::prelude::*;

use crate::design::TILE_ROWS;
use crate::error::Result;
use crate::likelihood::{ClassRows, Contrasts};
use crate::linalg::{self, Cholesky};
use crate::newton::{self, Iterate, Mode, Objective};
use crate::quadratic::Quadratic;
use crate::rvm::data::build::DENSE;
use crate::rvm::evidence::active_posterior::{ActivePosterior, CoupledPosterior, fitted, variances};
use crate::rvm::gram::likelihood_sums::{DerivativeOrder, LikelihoodSums, Phi};
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Phi of a model is stored, for Newton's method and for the next solve, if it takes at most the memory left divided by
/// this number. Several posteriors are in memory at a time.
const STORED_SHARE: u64 = 8;
/// Largest number of bytes of Phi that are stored. Beyond it new memory takes more time than the kernel values.
pub(super) const MOST_STORED: u64 = 1 << 26;
/// Number of columns up to which the Hessian costs no more than a few products with it.
const FEW_COLUMNS: usize = 64;

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
    let phi = phi(problem, active, warm);
    let objective = Laplace { problem, phi, alpha: ArrayView1::from(alpha) };
    let start = warm.map_or_else(|| Array1::zeros(active.len()), |warm| warm.mean_for(active));
    let near = warm.filter(|_| !objective.is_cheap()).and_then(|warm| warm.gram_of(active));
    let Mode { iterate, gram, factor } = newton::mode(&objective, objective.at(start.insert_axis(Axis(0)))?, near)?;
    let log_evidence = iterate.value + 0.5 * alpha.iter().map(|a| a.ln()).sum::<f64>() - 0.5 * factor.log_det();
    let mean = iterate.w.into_raw_vec_and_offset().0;
    Ok(ActivePosterior::at_mode(active, alpha, mean, factor, log_evidence, Some(gram), objective.phi.stored()))
}

/// Returns Phi of the active columns for Newton's method, stored or recomputed.
fn phi<'a>(problem: &'a ScaledProblem<'a>, active: &'a [usize], warm: Option<&ActivePosterior>) -> Phi<'a> {
    let bytes = 8 * (problem.n_rows() * active.len()) as u64;
    match bytes <= (problem.room() / STORED_SHARE).min(MOST_STORED) {
        true => Phi::Kept(columns(problem, active, warm)),
        false => Phi::Made { problem, columns: active.into() },
    }
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

/// Returns the quadratic form over all columns that equals the log-likelihood at the mode to second order. With
/// f = Phi'(B Phi w + r) no inverse of B is needed.
pub(crate) fn expand<'p>(problem: &'p ScaledProblem, solution: &ActivePosterior) -> Quadratic<'p> {
    let (p, outputs) = (problem.design.n_columns(), solution.outputs);
    let fits = 8 * (p * p) as u64 * (DENSE + 2) <= problem.room();
    let f = fitted(problem, solution);
    let derivatives = problem.working(&f);
    let (weights, count) = (&problem.training.weights, problem.training.weight());
    let curvature: Vec<f64> = derivatives.curvature.iter().zip(weights).map(|(b, c)| b * c).collect();
    // The weighted working response B Phi w + r.
    let response = |i: usize| weights[i / outputs] * (derivatives.curvature[i / outputs] * f[i] + derivatives.residual[i]);
    let response: Vec<f64> = (0..f.len()).map(response).collect();
    // Only differences of t'Bt matter. It is so large that E stays positive.
    let tt = 2.0 * f.iter().zip(&response).map(|(f, p)| f * p).sum::<f64>().abs() + weights.iter().sum::<f64>();
    let response = ArrayView2::from_shape((problem.n_rows(), outputs), &response).expect("[N, R]");
    Quadratic::on_demand(&problem.design, curvature, response, vec![tt], count, None, &solution.active).with_room(fits)
}

/// Class probabilities of the rows, [N, K].
type Probabilities = Array2<f64>;

/// Products of a previous model near the present one.
#[derive(Clone, Copy)]
struct CachedProducts<'a> {
    /// Products of its pairs of classes.
    pairs: &'a [Array2<f64>],
    /// Slots of the present columns in that model, `[M]`.
    slots: &'a [Option<usize>],
}

/// The log-likelihood of several classes plus the log prior, as a function of the weights of a model.
struct SoftmaxObjective<'a> {
    problem: &'a ScaledProblem<'a>,
    phi: Phi<'a>,
    contrasts: Contrasts,
    /// Precisions, which the contrasts share, `[M]`.
    alpha: &'a [f64],
}

/// Returns the posterior of the weights of several outputs at the mode for precisions `alpha`, `[M]`, which the outputs
/// share. Newton's method starts from the weights of `warm`, or from zero.
///
/// # Errors
/// Returns the errors of [`newton::mode`].
pub(crate) fn mode_of_classes(
    problem: &ScaledProblem,
    active: &[usize],
    alpha: &[f64],
    warm: Option<&ActivePosterior>,
) -> Result<ActivePosterior> {
    let (outputs, m) = (problem.training.outputs, active.len());
    let contrasts = Contrasts::new(outputs + 1);
    let phi = phi(problem, active, warm);
    // Slot of each column in the previous model.
    let slots: Vec<Option<usize>> = active.iter().map(|j| warm.and_then(|s| s.active.iter().position(|k| k == j))).collect();
    let before = warm.map(ActivePosterior::means);
    let start = Array2::from_shape_fn((outputs, m), |(r, i)| match (&before, slots[i]) {
        (Some(before), Some(p)) => before[[r, p]],
        _ => 0.0,
    });
    let objective = SoftmaxObjective { problem, phi, contrasts, alpha };
    let cached = warm.and_then(|s| s.joint.as_ref()).map(|j| CachedProducts { pairs: &j.pairs, slots: &slots });
    let start = objective.at(start)?;
    let near = cached.map(|cached| objective.pairs(&start, Some(cached))).transpose()?;
    let Mode { iterate, gram: pairs, factor } = newton::mode(&objective, start, near)?;
    let sum_log_alpha = outputs as f64 * alpha.iter().map(|a| a.ln()).sum::<f64>();
    let log_evidence = iterate.value + 0.5 * sum_log_alpha - 0.5 * factor.log_det();
    let mode = ClassMode { v: iterate.w, pairs, factor, log_evidence };
    mode.solution(active, alpha, &objective.contrasts, objective.phi.stored())
}

/// Returns a posterior with its columns in another order, the slots of `solution` in `order`, without a pass over the
/// rows.
///
/// # Errors
/// Returns [`Error::Singular`](crate::error::Error::Singular) if the Hessian cannot be factorised.
pub(crate) fn reordered_classes(
    solution: &ActivePosterior,
    joint: &CoupledPosterior,
    order: &[usize],
) -> Result<ActivePosterior> {
    let contrasts = solution.contrasts();
    let active: Vec<usize> = order.iter().map(|i| solution.active[*i]).collect();
    let alpha: Vec<f64> = order.iter().map(|i| solution.a[*i]).collect();
    let (m, v) = (order.len(), solution.means().select(Axis(1), order));
    let of_pair = |pair: &Array2<f64>| Array2::from_shape_fn((m, m), |(i, j)| pair[[order[i], order[j]]]);
    let pairs: Vec<_> = joint.pairs.iter().map(of_pair).collect();
    let factor = hessian(&contrasts, &alpha, &pairs)?;
    ClassMode { v, pairs, factor, log_evidence: solution.log_evidence }.solution(&active, &alpha, &contrasts, None)
}

/// A mode of the weights of several classes, with the Hessian at it.
struct ClassMode {
    /// Weights, [R, M].
    v: Array2<f64>,
    /// Products of the pairs of classes, [M, M] each.
    pairs: Vec<Array2<f64>>,
    /// Factor of the Hessian, [R M, R M].
    factor: Cholesky,
    log_evidence: f64,
}

impl ClassMode {
    /// Returns the posterior at precisions `alpha`, `[M]`, of the columns `active`, `[M]`.
    fn solution(
        self,
        active: &[usize],
        alpha: &[f64],
        contrasts: &Contrasts,
        kept: Option<Rc<Array2<f64>>>,
    ) -> Result<ActivePosterior> {
        let (outputs, m) = self.v.dim();
        let each = variances(&self.factor.inverse());
        let total = (0..m).map(|i| each.iter().skip(i).step_by(m).sum()).collect();
        // The factor of one output at the mean curvature, with which gains of single basis functions are predicted.
        let mut gram = Array2::zeros((m, m));
        self.pairs.iter().for_each(|pair| gram += pair);
        gram *= 2.0 / (contrasts.n_classes() - 1) as f64;
        let mean_factor = Cholesky::of_sum(&gram, alpha)?;
        let mean = self.v.iter().copied().collect();
        let (joint, jitter) = (CoupledPosterior { lower: self.factor.lower, pairs: self.pairs }, self.factor.jitter);
        let one = ActivePosterior::at_mode(active, alpha, mean, mean_factor, self.log_evidence, Some(Rc::new(gram)), kept);
        Ok(one.with_outputs(outputs, total, joint, jitter))
    }
}

impl SoftmaxObjective<'_> {
    /// Returns the precisions times `v`, [R, M].
    fn prior_times(&self, v: &Array2<f64>) -> Array2<f64> {
        v * &ArrayView1::from(self.alpha)
    }

    /// Adds the log-likelihood of the rows and its gradient, [R, M]. Returns the class
    /// probabilities, [N, K].
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
    fn add_rows(&self, v: &Array2<f64>, log_likelihood: &mut f64, gradient: &mut Array2<f64>) -> Result<Array2<f64>> {
        let (training, contrasts) = (self.problem.training, &self.contrasts);
        // Weights of the functions of the classes, which the likelihood of a row depends on.
        let functions = contrasts.expand(v.view());
        let groups = self.phi.by_groups(
            self.problem,
            || (0.0, Array2::<f64>::zeros(functions.dim()), Vec::<f64>::new()),
            |(log_likelihood, gradient, y), rows, phi| {
                let mut f = Array2::zeros((rows.len(), functions.nrows()));
                linalg::product_alone(false, phi, functions.t(), f.view_mut());
                let c = &training.weights[rows.clone()];
                let classes = ClassRows::at(&training.targets[rows], f);
                *log_likelihood += classes.log_likelihood.iter().zip(c).map(|(l, c)| c * l).sum::<f64>();
                let mut r = classes.residual_of_classes();
                r.outer_iter_mut().zip(c).for_each(|(mut r, c)| r *= *c);
                linalg::product_alone(true, r.t(), phi, gradient.view_mut());
                y.extend(&classes.y);
            },
        );
        training.interrupt.check()?;
        let mut y = Vec::new();
        for (l, of_classes, y_of_group) in groups {
            *log_likelihood += l;
            *gradient += &contrasts.reduce(of_classes.view());
            y.extend(y_of_group);
        }
        Ok(Array2::from_shape_vec((training.targets.len(), contrasts.n_classes()), y).expect("[N, K]"))
    }

    /// Adds to `total`, `[R, M]`, the product of the Hessian of the negative log-likelihood with `d`, `[R, M]`, at
    /// class probabilities `y`, `[N, K]`.
    fn add_hessian_times(&self, y: ArrayView2<f64>, d: &Array2<f64>, total: &mut Array2<f64>) -> Result<()> {
        let (training, contrasts) = (self.problem.training, &self.contrasts);
        let functions = contrasts.expand(d.view());
        let groups = self.phi.by_groups(
            self.problem,
            || Array2::<f64>::zeros(functions.dim()),
            |sums, rows, phi| {
                let mut f = Array2::zeros((rows.len(), functions.nrows()));
                linalg::product_alone(false, phi, functions.t(), f.view_mut());
                for (mut f, n) in f.outer_iter_mut().zip(rows) {
                    let y = y.row(n);
                    let mean = f.dot(&y);
                    f.zip_mut_with(&y, |f, y| *f = training.weights[n] * y * (*f - mean));
                }
                linalg::product_alone(true, f.t(), phi, sums.view_mut());
            },
        );
        training.interrupt.check()?;
        groups.into_iter().for_each(|part| *total += &contrasts.reduce(part.view()));
        Ok(())
    }

    /// Returns Phi'c y_k y_l Phi for each pair of classes k < l, [M, M]. Products of columns that `before` contains, at
    /// nearly the same probabilities, are copied from it.
    fn pairs(&self, iterate: &Iterate<Probabilities>, before: Option<CachedProducts>) -> Result<Vec<Array2<f64>>> {
        let m = self.phi.columns();
        let names: Vec<(usize, usize)> = self.contrasts.pairs().collect();
        let fresh: Vec<usize> = match before {
            Some(cached) => (0..m).filter(|i| cached.slots[*i].is_none()).collect(),
            None => vec![],
        };
        let height = if before.is_some() { fresh.len() } else { m };
        let mut made: Vec<Array2<f64>> = names.iter().map(|_| Array2::zeros((height, m))).collect();
        if height > 0 {
            let left = before.is_some().then_some(&fresh[..]);
            self.add_pairs(iterate.rows.view(), &names, left, &mut made)?;
        }
        let Some(cached) = before else {
            made.par_iter_mut().for_each(linalg::mirror);
            return Ok(made);
        };
        let kept: Vec<(usize, usize)> = cached.slots.iter().enumerate().filter_map(|(i, old)| Some((i, (*old)?))).collect();
        let all = made.par_iter().zip(cached.pairs).map(|(made, old)| {
            let mut out = Array2::zeros((m, m));
            for (i, column) in &kept {
                let (mut row, old) = (out.row_mut(*i), old.row(*column));
                let (row, old) = (row.as_slice_mut().expect("row-major"), old.to_slice().expect("row-major"));
                kept.iter().for_each(|(j, column)| row[*j] = old[*column]);
            }
            for (row, i) in made.outer_iter().zip(&fresh) {
                out.row_mut(*i).assign(&row);
                out.column_mut(*i).assign(&row);
            }
            out
        });
        Ok(all.collect())
    }

    /// Adds the products of pairs of classes over the rows at class probabilities `y`, `[N, K]`. They are the products
    /// of all M columns with all, `[M, M]`, or of the L columns `left` with all, `[L, M]`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
    fn add_pairs(
        &self,
        y: ArrayView2<f64>,
        names: &[(usize, usize)],
        left: Option<&[usize]>,
        made: &mut [Array2<f64>],
    ) -> Result<()> {
        let problem = self.problem;
        // Blocks of rows are processed one after another, so that there is one set of sums in memory. Pairs run in
        // parallel.
        self.phi.for_each_block(problem, |rows, phi| {
            let some = left.is_some();
            let left = left.map_or_else(|| CowArray::from(phi), |left| phi.select(Axis(1), left).into());
            made.par_iter_mut().zip(names).for_each(|(sums, (k, l))| {
                for start in (0..rows.len()).step_by(TILE_ROWS) {
                    let end = (start + TILE_ROWS).min(rows.len());
                    let (phi, left) = (phi.slice(s![start..end, ..]), left.slice(s![start..end, ..]));
                    let weight = |n: usize| problem.training.weights[n] * y[[n, *k]] * y[[n, *l]];
                    let mut weighted = Array2::zeros(left.dim());
                    for ((mut out, row), n) in weighted.outer_iter_mut().zip(left.outer_iter()).zip(rows.start + start..) {
                        let weight = if some { weight(n) } else { weight(n).sqrt() };
                        out.zip_mut_with(&row, |out, v| *out = weight * v);
                    }
                    match some {
                        true => linalg::product_alone(true, weighted.t(), phi, sums.view_mut()),
                        false => linalg::add_gram_alone(weighted.view(), sums.view_mut()),
                    }
                }
            });
        });
        problem.training.interrupt.check()
    }
}

impl Objective for SoftmaxObjective<'_> {
    type Rows = Probabilities;
    /// Products of all pairs of classes.
    type Gram = Vec<Array2<f64>>;

    fn at(&self, v: Array2<f64>) -> Result<Iterate<Probabilities>> {
        let prior = self.prior_times(&v);
        let (mut log_likelihood, mut gradient) = (0.0, -&prior);
        let y = self.add_rows(&v, &mut log_likelihood, &mut gradient)?;
        let value = log_likelihood - 0.5 * (&prior * &v).sum();
        Ok(Iterate { w: v, value, gradient, rows: y })
    }

    fn times(&self, iterate: &Iterate<Probabilities>, d: &Array2<f64>) -> Result<Array2<f64>> {
        let mut total = self.prior_times(d);
        self.add_hessian_times(iterate.rows.view(), d, &mut total)?;
        Ok(total)
    }

    fn gram(&self, iterate: &Iterate<Probabilities>) -> Result<Vec<Array2<f64>>> {
        self.pairs(iterate, None)
    }

    fn factor(&self, pairs: &Vec<Array2<f64>>) -> Result<Cholesky> {
        hessian(&self.contrasts, self.alpha, pairs)
    }

    fn is_cheap(&self) -> bool {
        false
    }
}

/// Returns the Cholesky factor of the negative Hessian of the objective, [R M, R M], from the products of pairs and the
/// precisions `alpha`, `[M]`.
fn hessian(contrasts: &Contrasts, alpha: &[f64], pairs: &[Array2<f64>]) -> Result<Cholesky> {
    let mut h = contrasts.curvature(pairs);
    let scale = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    h.diag_mut().iter_mut().zip(alpha.iter().cycle()).for_each(|(h, a)| *h += a);
    linalg::mirror(&mut h);
    Cholesky::new(h, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Softmax};
    use crate::report::Interrupt;
    use crate::rvm::data::noise::NoisePrecision;
    use crate::rvm::data::training_set::TrainingSet;
    use crate::rvm::evidence::active_posterior::NoiseChoice;
    use crate::rvm::evidence::solver::EvidenceSolver;
    use crate::rvm::settings::dictionary::Dictionary;
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    /// Calls `test` with a scaled problem of `n` rows in two classes that overlap, `size` of which are candidates.
    fn with_problem(n: usize, size: usize, test: impl Fn(&ScaledProblem)) {
        let x = Array2::from_shape_fn((n, 2), |(i, j)| f64::sin((7 * i + 3) as f64 * (1.3 + j as f64)));
        let labels: Vec<usize> =
            x.outer_iter().enumerate().map(|(i, r)| usize::from(r[0] * r[1] + 0.1 > 0.0) ^ usize::from(i % 7 == 0)).collect();
        let kernel = Rbf { gamma: 2.0.into() }.into();
        let rvm =
            Rvm { kernel, dictionary: Dictionary::Size(size), likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
        let targets = Targets::classes(&labels, 2);
        let training = TrainingSet::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
        test(&ScaledProblem::new(&training, training.dictionary()).unwrap().0);
    }

    /// Rows of G that are computed on demand equal those of all of G.
    #[test]
    fn rows_of_gram_on_demand_equal_those_of_all_gram() {
        with_problem(300, 300, |problem| {
            let n = problem.n_rows();
            let active: Vec<usize> = (0..n).step_by(40).collect();
            let solution = mode(problem, &active, &vec![1e-3; active.len()], None).unwrap();
            let many: Vec<usize> = (0..n / 2).collect();
            let (few, all) = (expand(problem, &solution).with_room(false), expand(problem, &solution).with_room(true));
            let (few, all) = (few.rows(&many), all.rows(&many));
            assert!(few.iter().zip(&all).all(|(f, a)| (f - a).abs() < 1e-12), "rows of G differ");
        });
    }

    /// The mode does not depend on the start of Newton's method: from zero, or from a larger model whose weights
    /// balance each other.
    #[test]
    fn mode_is_independent_of_the_start() {
        with_problem(300, 300, |problem| {
            let n = problem.n_rows();
            let near = |j: usize| [j, j + 1];
            let large: Vec<usize> = (0..n - 10).step_by(30).flat_map(near).collect();
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
        with_problem(4096, 90, |problem| {
            let active = problem.usable();
            assert!(active.len() > FEW_COLUMNS, "each step would have its own Hessian");
            let there = mode(problem, &active, &vec![1e-4; active.len()], None).unwrap();
            assert!(there.gram_of(&active).is_some(), "the Gram matrix is stored");
            let alpha: Vec<f64> = (0..active.len()).map(|i| [1e-2, 3.0, 1e-6][i % 3]).collect();
            let alone = mode(problem, &active, &alpha, None).unwrap();
            let warm = mode(problem, &active, &alpha, Some(&there)).unwrap();
            for found in [&alone, &warm] {
                assert!((found.log_evidence - alone.log_evidence).abs() < 1e-9 * alone.log_evidence.abs());
                let phi = phi(problem, &active, None);
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
        with_problem(8192, 60, |problem| {
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
        with_problem(300, 300, |problem| {
            let n = problem.n_rows();
            let active: Vec<usize> = (0..n).step_by(12).collect();
            let a = vec![1e-2; active.len()];
            let solution = mode(problem, &active, &a, None).unwrap();
            let frozen = EvidenceSolver::of(problem, expand(problem, &solution));
            let noise = [NoisePrecision::Fixed(1.0)];
            let solve = |active: &[usize]| frozen.solve(active, &a[..active.len()], &noise, NoiseChoice::Best, None).unwrap();
            let kept: Vec<usize> = active.iter().copied().filter(|j| j % 36 != 0).collect();
            let (found, without) = (solve(&active).mean_for(&kept), solve(&kept).mean);
            let largest = without.iter().fold(0.0f64, |l, w| l.max(w.abs()));
            assert!(found.iter().zip(&without).all(|(f, w)| (f - w).abs() < 1e-9 * largest), "{found} {without:?}");
        });
    }

    /// A posterior of classes with reordered columns, which needs no pass over the rows, equals the one that is solved in that
    /// order.
    #[test]
    fn reordered_posterior_of_classes_equals_the_solved_one() {
        let fraction = |i: usize, by: f64| ((i + 1) as f64 * by).fract();
        let x = Array2::from_shape_fn((200, 2), |(i, j)| 4.0 * fraction(i, [0.618_033_988_75, 0.754_877_666_25][j]));
        let labels: Vec<usize> = (0..200).map(|i| (x[[i, 0]] + 2.0 * fraction(i, 0.569_840_290_998)) as usize / 2).collect();
        let rvm = Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), likelihood: Softmax::default().into(), ..Rvm::tipping2001() };
        let interrupt = Interrupt::default();
        let training = TrainingSet::new(&rvm, x.view(), &Targets::classes(&labels, 3), &interrupt).unwrap();
        let problem = ScaledProblem::new(&training, training.dictionary()).unwrap().0;
        let active: Vec<usize> = (0..200).step_by(9).collect();
        let m = active.len();
        let alpha: Vec<f64> = (0..m).map(|i| [1e-2, 3.0, 0.4][i % 3]).collect();
        let there = mode_of_classes(&problem, &active, &alpha, None).unwrap();
        let order: Vec<usize> = (0..m).map(|i| (7 * i + 3) % m).collect();
        let solver = EvidenceSolver::new(&problem, None);
        let moved = solver.reordered(&there, &order, &[]).unwrap();
        let solved = mode_of_classes(&problem, &moved.active, &moved.a, None).unwrap();
        assert_eq!((&moved.a, moved.outputs), (&solved.a, solved.outputs));
        assert!((moved.log_evidence - solved.log_evidence).abs() < 1e-9 * solved.log_evidence.abs());
        let close = |what: &str, a: &[f64], b: &[f64]| {
            let largest = b.iter().fold(0.0f64, |l, v| l.max(v.abs()));
            assert_eq!(a.len(), b.len());
            let off = a.iter().zip(b).fold(0.0f64, |off, (a, b)| off.max((a - b).abs()));
            assert!(off < 1e-8 * largest, "{what}: {off} of {largest}");
        };
        close("means", &moved.mean, &solved.mean);
        close("variances", &moved.variance, &solved.variance);
        let lower = |s: &ActivePosterior| s.joint.as_ref().unwrap().lower.iter().copied().collect::<Vec<f64>>();
        close("posterior", &lower(&moved), &lower(&solved));
        let alone = |s: &ActivePosterior| s.lower.iter().copied().collect::<Vec<f64>>();
        close("that of one output", &alone(&moved), &alone(&solved));
    }
}
