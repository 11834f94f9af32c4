//! Model assembly: converts the posterior in internal units to the model in original units.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, concatenate, s};

use crate::error::{Error, Result};
use crate::likelihood::NoiseModel;
use crate::linalg;
use crate::model::{Averaging as _, Expansion, FittedBasis, FittedRows, Model, Posterior, PosteriorRule};
use crate::quadratic::takes_up_mean;
use crate::report::{PrecisionPosterior, Status};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::{ActivePosterior, fitted};
use crate::rvm::evidence::laplace::MOST_STORED;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::likelihood_sums::Phi;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Inference;

/// Pivot of the factor, as a share of the norm of its row, below which the column is almost spanned by the columns
/// before it. The final posterior is then computed by QR, which does not square the condition number.
const ILL_CONDITIONED: f64 = 1e-6;

/// Largest number of multiplications of QR (about a quarter of a second) if refinement steps are accurate too.
const QR_PRODUCTS: u64 = 1_000_000_000;

/// Length of a refinement step, as a share of the previous one, from which it is rounding. A step leaves about the
/// rounding of sums times their condition number, usually less than 1e-4, so that about four steps follow.
const SHORTER: f64 = 0.5;

/// Returns the public posterior of `solution`. `ordered` has its columns in the order of the model.
fn posterior(problem: &ScaledProblem, ordered: &ActivePosterior, solution: &ActivePosterior) -> Posterior {
    // For several outputs the scale is that of the first.
    let (units, beta) = (&problem.training.units, solution.beta[0]);
    let scale = units[0].scale;
    let norm = |j: &usize| problem.design.norms()[*j];
    let learned = problem.training.noise.iter().any(NoisePrecision::is_learned) || problem.training.adjustments.constant_target;
    let noise_variance = match &problem.training.rvm.likelihood.as_dyn().noise() {
        crate::likelihood::NoiseModel::None => None,
        // The noise variances of the training rows were given. That of new rows is unknown, so that 0 is stored.
        _ if problem.training.known_noise => Some(0.0),
        crate::likelihood::NoiseModel::Fixed(variance) if !learned => Some(*variance),
        _ => Some(scale * scale / beta),
    };
    let lower = ordered.joint.as_ref().map_or(&ordered.lower, |joint| &joint.lower);
    Posterior {
        factor: (0..lower.nrows()).map(|i| (0..=i).map(|j| lower[[i, j]]).collect()).collect(),
        scale: ordered.active.iter().map(|j| scale / (norm(j) * beta.sqrt())).collect(),
        noise_variance,
        noise_degrees: noise_shape(problem.training.rvm, problem.training).map(|shape| 2.0 * shape),
        variance_factor: None,
        averaged: false,
        variance_ratios: match solution.beta.len() {
            1 => vec![],
            _ => units.iter().zip(&solution.beta).map(|(u, b)| (u.scale / scale).powi(2) * (beta / b)).collect(),
        },
    }
}

/// Returns the model of a posterior, with its basis functions in the order of the rows of the user's table.
/// `log_evidence` is in original units.
///
/// # Errors
/// Returns [`Error::Overflow`] if a number is not finite in original units, and the errors of
/// [`EvidenceSolver::reordered`] and of the averaged posterior.
pub(crate) fn model(
    solver: &EvidenceSolver,
    solution: &ActivePosterior,
    log_evidence: f64,
    status: Status,
    iterations: usize,
) -> Result<Model> {
    let problem = solver.problem;
    let first = usize::from(problem.has_bias);
    let row_of = |column: usize| problem.origin(column);
    let mut order: Vec<usize> = (0..solution.active.len()).collect();
    order.sort_by_key(|i| if solution.active[*i] < first { 0 } else { 1 + row_of(solution.active[*i]) });
    let mut ordered = solver.reordered(solution, &order, &problem.training.noise)?;
    refine(solver, &mut ordered);
    let (active, a) = (&ordered.active, &ordered.a);

    // For several outputs the precisions are those of the first.
    let beta = solution.beta[0];
    let weights = weights(problem, &ordered);
    let alpha: Vec<f64> = active.iter().zip(a).map(|(j, a)| a * beta / problem.alpha_in(*j)).collect();
    let posterior = posterior(problem, &ordered, solution);
    let has_intercept = active.first().is_some_and(|j| *j < first);
    let skip = usize::from(has_intercept);
    let relevance: Vec<usize> = active[skip..].iter().map(|j| row_of(*j)).collect();
    let basis = match problem.design.kernel() {
        None => FittedBasis::Given {},
        Some((kernel, centres)) => FittedBasis::Kernel {
            kernel: kernel.clone(),
            centres: centres.select(Axis(0), &active[skip..].iter().map(|j| j - first).collect::<Vec<_>>()),
        },
    };
    let numbers = weights.iter().chain(&alpha).chain(&posterior.scale).chain(&posterior.noise_variance);
    let numbers = numbers.chain(&posterior.variance_ratios);
    if let Some(bad) = numbers.chain(std::iter::once(&log_evidence)).find(|v| !v.is_finite()) {
        return Err(Error::Overflow { what: format!("a number of the trained model ({bad}) in the target's units") });
    }
    let expansion = Expansion {
        basis,
        intercept: if has_intercept { weights.row(0).to_vec() } else { vec![problem.training.log_rate; weights.ncols()] },
        weights: weights.slice(s![skip.., ..]).to_owned(),
    };
    let mut model = Model {
        relevance,
        alpha: alpha[skip..].to_vec(),
        intercept_alpha: has_intercept.then(|| alpha[0]),
        posterior: Some(posterior),
        log_evidence: Some(log_evidence),
        status,
        iterations,
        ..problem.training.model_of(expansion)
    };
    match problem.training.rvm.posterior {
        PosteriorRule::Averaged if !problem.constant_curvature() => average_curvature(problem, &ordered, &mut model)?,
        PosteriorRule::Auto if problem.training.rvm.likelihood.as_dyn().counts() && status != Status::Stopped => {
            bound_counts(problem, &ordered, &mut model)?;
        }
        // A joint model of three or more classes.
        PosteriorRule::Auto if solution.is_joint() && status != Status::Stopped => {
            let laplace = model.posterior.clone();
            if problem.training.interrupt.in_time(|| average_curvature(problem, &ordered, &mut model))?.is_none() {
                model.posterior = laplace;
            }
        }
        _ => {}
    }
    Ok(model)
}

/// Replaces the posterior of a count model by that of the mean curvature, (M65), if Laplace's approximation predicts
/// counts that are too large. If the new posterior cannot be factorised, Laplace's approximation remains.
fn bound_counts(problem: &ScaledProblem, solution: &ActivePosterior, model: &mut Model) -> Result<()> {
    if !model.expects_too_much(&learned(problem, solution, 1))? {
        return Ok(());
    }
    match average_curvature(problem, solution, model) {
        Err(Error::Singular { .. }) => Ok(()),
        other => other,
    }
}

/// Replaces the Laplace approximation by the posterior of the mean curvature, (M65).
fn average_curvature(problem: &ScaledProblem, solution: &ActivePosterior, model: &mut Model) -> Result<()> {
    let outputs = model.outputs();
    if problem.training.rvm.likelihood.as_dyn().counts() {
        return model.average_counts(&learned(problem, solution, outputs));
    }
    // The functions at the rows do not change, and are computed once.
    let rows = learned(problem, solution, outputs);
    model.average_curvature(|model, posterior| model.mean_curvature(posterior, &rows))
}

/// Returns the rows of a problem with the functions of the model at them. The closure fills a
/// block `[B, M]` of Phi that begins at a given row.
fn learned<'a>(
    problem: &'a ScaledProblem,
    solution: &'a ActivePosterior,
    outputs: usize,
) -> FittedRows<'a, impl Fn(usize, ArrayViewMut2<f64>) + Sync + 'a> {
    let f = fitted(problem, solution).into_raw_vec_and_offset().0;
    let training = problem.training;
    let functions = match outputs {
        1 => Array2::from_shape_vec((f.len(), 1), f).expect("a number for each row"),
        classes => {
            let contrasts = solution.contrasts();
            let mut functions = Array2::zeros((training.weights.len(), classes));
            for (f, mut row) in f.chunks(contrasts.count()).zip(functions.outer_iter_mut()) {
                contrasts.classes(f, row.as_slice_mut().expect("rows are contiguous"));
            }
            functions
        }
    };
    let (likelihood, interrupt) = (training.rvm.likelihood.as_dyn(), &training.interrupt);
    FittedRows { fill: problem.design.filler(&solution.active), functions, weights: &training.weights, likelihood, interrupt }
}

/// Returns the weights in original units, [M, C]: one column for each class if the outputs are contrasts of classes,
/// else one for each output. For counts the bias includes the log rate of one count at the mean exposure.
pub(crate) fn weights(problem: &ScaledProblem, solution: &ActivePosterior) -> Array2<f64> {
    let (m, outputs) = (solution.active.len(), solution.outputs);
    let units = &problem.training.units;
    let unit = |i: usize, r: usize| units[r.min(units.len() - 1)].scale / problem.design.norms()[solution.active[i]];
    let own = |i: usize| -> Vec<f64> { (0..outputs).map(|r| solution.mean[r * m + i] * unit(i, r)).collect() };
    if !problem.training.rvm.likelihood.as_dyn().couples_classes() {
        let is_bias = |i: usize| problem.has_bias && solution.active[i] == 0;
        let shift = |i: usize| if is_bias(i) { problem.training.log_rate } else { 0.0 };
        return Array2::from_shape_fn((m, outputs), |(i, r)| own(i)[r] + shift(i));
    }
    let contrasts = solution.contrasts();
    let mut out = Array2::zeros((m, contrasts.n_classes()));
    for (i, mut row) in out.outer_iter_mut().enumerate() {
        contrasts.classes(&own(i), row.as_slice_mut().expect("rows are contiguous"));
    }
    out
}

/// Computes means and factor from the rows instead of the sums over them, whose condition number is the square of that
/// of Phi.
///
/// It uses QR of [sqrt(B) Phi; sqrt(a)] if that fits into memory. Otherwise refinement steps improve the means alone,
/// which is as accurate if the columns are not almost dependent.
///
/// If the Hessian is not constant, the means at the mode remain. The factor alone is refined, if columns are almost
/// dependent.
fn refine(solver: &EvidenceSolver, solution: &mut ActivePosterior) {
    let problem = solver.problem;
    let spanned = |(i, row): (usize, ArrayView1<f64>)| row[i] < ILL_CONDITIONED * row.dot(&row).sqrt();
    let (n, m) = (problem.design.n_rows() as u64, solution.active.len() as u64);
    if n == 0 || m == 0 || solver.is_stand_in() || solution.is_joint() {
        return;
    }
    let bytes = 8 * n * (m + solution.outputs as u64);
    // QR takes about four copies of Phi and the targets.
    let fits = bytes <= (problem.room() / 4).min(MOST_STORED);
    let dependent = fits && solution.lower.outer_iter().enumerate().any(spanned);
    match problem.constant_curvature() {
        true if dependent || fits && n * m * m <= QR_PRODUCTS => {
            if let Some((mean, lower)) = by_qr(problem, solution) {
                (solution.mean, solution.lower) = (mean, lower);
            }
        }
        true => by_steps(problem, solution),
        false if dependent => {
            if let Some((_, lower)) = by_qr(problem, solution) {
                solution.lower = lower;
            }
        }
        false => {}
    }
}

/// Returns the slot of the bias and the means of the outputs as its weights, `[R]`, if these means are subtracted from
/// the targets, (M9). Otherwise it returns `None`, and the weights fit the targets with their means.
fn subtracted_means(problem: &ScaledProblem, solution: &ActivePosterior) -> Option<(usize, Vec<f64>)> {
    problem.mean_bias(&solution.active).filter(|(p, _)| takes_up_mean(solution.a[*p]))
}

/// Returns the means, `[R M]`, and the lower triangular factor of diag(a) + G, [M, M], by QR, or `None` if the columns
/// are dependent.
fn by_qr(problem: &ScaledProblem, solution: &ActivePosterior) -> Option<(Vec<f64>, Array2<f64>)> {
    let (m, outputs) = (solution.active.len(), solution.outputs);
    let apart = subtracted_means(problem, solution);
    let mut top = problem.design.select(&solution.active);
    let mut target = Array2::zeros((top.nrows(), outputs));
    if problem.constant_curvature() {
        for (n, (mut row, mut target)) in top.outer_iter_mut().zip(target.outer_iter_mut()).enumerate() {
            let root = problem.training.weights[n].sqrt();
            target.assign(&targets(problem, n, apart.is_some()));
            target *= root;
            row *= root;
        }
    } else {
        let f = fitted(problem, solution);
        let derivatives = problem.working(&f);
        for (n, mut row) in top.outer_iter_mut().enumerate() {
            let root = (derivatives.curvature[n] * problem.training.weights[n]).sqrt();
            target[[n, 0]] = root * (f[n] + derivatives.residual[n] / derivatives.curvature[n]);
            row *= root;
        }
    }
    let roots: Array1<f64> = solution.a.iter().map(|a| a.sqrt()).collect();
    let mut prior = Array2::zeros((m, outputs));
    // The means are subtracted from the targets, so that the prior mean of the bias is minus the mean of the targets.
    if let Some((p, means)) = &apart {
        means.iter().enumerate().for_each(|(k, mean)| prior[[*p, k]] = -roots[*p] * mean);
    }
    let stacked = concatenate![Axis(0), top, Array2::from_diag(&roots)];
    let (mut mean, lower) = linalg::least_squares(stacked.view(), concatenate![Axis(0), target, prior].view());
    if !lower.iter().chain(&mean).all(|v| v.is_finite()) || !lower.diag().iter().all(|v| *v > 0.0) {
        return None;
    }
    if let Some((p, means)) = &apart {
        means.iter().enumerate().for_each(|(k, own)| mean[[*p, k]] += own);
    }
    Some((mean.columns().into_iter().flatten().copied().collect(), lower))
}

/// Improves the posterior means by iterative refinement. Each step solves for the residual of the previous one with the
/// same factor, and needs one pass over the rows.
fn by_steps(problem: &ScaledProblem, solution: &mut ActivePosterior) {
    let (m, outputs) = (solution.active.len(), solution.outputs);
    let apart = subtracted_means(problem, solution);
    let mut offset = Array2::zeros((outputs, m));
    if let Some((p, means)) = &apart {
        means.iter().enumerate().for_each(|(k, mean)| offset[[k, *p]] = *mean);
    }
    let mut mean = Array2::from_shape_vec((outputs, m), solution.mean.clone()).expect("[R, M]") - &offset;
    let phi = Phi::Made { problem, columns: (&solution.active[..]).into() };
    let a = ArrayView1::from(&solution.a);
    let mut before = f64::INFINITY;
    loop {
        let add_residuals = |sum: &mut Array2<f64>, rows: Range<usize>, phi: ArrayView2<f64>| {
            let mut left = -phi.dot(&mean.t());
            for (n, mut left) in rows.zip(left.outer_iter_mut()) {
                left += &targets(problem, n, apart.is_some());
                left *= problem.training.weights[n];
            }
            *sum += &left.t().dot(&phi);
        };
        let parts = phi.by_groups(problem, || Array2::zeros((outputs, m)), add_residuals);
        // After an interrupt the sums are incomplete.
        if problem.training.interrupt.is_raised() {
            return;
        }
        let mut left = -(&(&mean + &offset) * &a);
        parts.iter().for_each(|part| left += part);
        let mut step = left.reversed_axes();
        linalg::solve_lower(solution.lower.view(), step.view_mut());
        let length = step.iter().map(|v| v * v).sum::<f64>();
        // A step that is hardly shorter than the previous one is rounding.
        if !(length < SHORTER * SHORTER * before) {
            return;
        }
        before = length;
        linalg::solve_lower_transposed(solution.lower.view(), step.view_mut());
        mean += &step.t();
        solution.mean = (&mean + &offset).iter().copied().collect();
    }
}

/// Returns the targets of a row in internal units, `[R]`, without or with their means. The row must be in memory.
fn targets(problem: &ScaledProblem, row: usize, less_means: bool) -> Array1<f64> {
    let (training, outputs) = (problem.training, problem.training.outputs);
    let own = training.targets[row * outputs..(row + 1) * outputs].iter().zip(&training.units);
    own.map(|(t, units)| if less_means { *t } else { t + units.mean }).collect()
}

/// Returns the shape of q(beta), or `None` if the noise precision is not a distribution.
fn noise_shape(rvm: &Rvm, training: &TrainingSet) -> Option<f64> {
    match (&rvm.inference, rvm.likelihood.as_dyn().noise()) {
        (Inference::Variational(scheme), NoiseModel::Learned) if !training.known_noise => {
            Some(scheme.hyperpriors.c + 0.5 * training.count)
        }
        _ => None,
    }
}

/// Returns the Gamma distributions of the precisions of a variational model, whose means are the precisions of the
/// model.
pub(crate) fn precisions(rvm: &Rvm, training: &TrainingSet, model: &Model) -> Option<PrecisionPosterior> {
    let Inference::Variational(scheme) = &rvm.inference else { return None };
    let shape = scheme.hyperpriors.a + 0.5;
    Some(PrecisionPosterior {
        shape,
        mean: model.alpha.clone(),
        rate: model.alpha.iter().map(|mean| shape / mean).collect(),
        intercept: model.intercept_alpha.map(|mean| (mean, shape / mean)),
        noise: noise_shape(rvm, training).zip(model.noise_variance()).map(|(shape, v)| (shape, shape * v)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::report::Interrupt;
    use crate::rvm::data::training_set::TrainingSet;
    use crate::rvm::evidence::active_posterior::NoiseChoice;
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    /// Refinement steps lead to the means of QR where means from the sums are less accurate. The cases have one or two
    /// outputs, and no bias, or a bias of small or large precision.
    #[test]
    fn refinement_steps_lead_to_the_means_of_qr() {
        let x = Array2::from_shape_fn((3000, 1), |(i, _)| (0.618_033_988_75 * i as f64).fract());
        let t = Array2::from_shape_fn((3000, 2), |(i, k)| {
            (3.0 * x[[i, 0]] + k as f64).sin() + 40.0 + 0.01 * (0.754_877_666_25 * i as f64).fract()
        });
        let weights = Array1::from_shape_fn(3000, |i| 0.5 + (i % 3) as f64);
        let rvm = Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..Rvm::tipping2001() };
        let one = Targets::real(t.column(0)).with_weights(weights.view());
        let two = Targets::outputs(t.view()).with_weights(weights.view());
        for (targets, of_bias) in [(&one, Some(1e-6)), (&one, Some(30.0)), (&one, None), (&two, Some(1e-6)), (&two, None)] {
            let training = TrainingSet::new(&rvm, x.view(), targets, &Interrupt::default()).unwrap();
            let (problem, sums) = ScaledProblem::new(&training, (0..3000).step_by(300).collect()).unwrap();
            let solver = EvidenceSolver::new(&problem, sums);
            let mut active: Vec<usize> = (1..problem.design.n_columns()).collect();
            let mut a = vec![1e-8; active.len()];
            if let Some(of_bias) = of_bias {
                active.insert(0, 0);
                a.insert(0, of_bias);
            }
            let beta = vec![1e4; training.noise.len()];
            let solved = solver.solve(&active, &a, &training.noise, NoiseChoice::Precision(&beta), None).unwrap();
            let (mut expected, mut stepped) = (solved.clone(), solved.clone());
            expected.mean = by_qr(&problem, &solved).unwrap().0;
            by_steps(&problem, &mut stepped);
            let off = |other: &ActivePosterior| {
                let pairs = fitted(&problem, other).into_iter().zip(fitted(&problem, &expected));
                pairs.fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()))
            };
            // In standard deviations of the target. The mean of the targets is 40 in their own units.
            assert!(off(&stepped) < 1e-9, "{of_bias:?}: {:e}", off(&stepped));
            assert!(off(&solved) > 3.0 * off(&stepped), "{of_bias:?}: {:e} was no test", off(&solved));
        }
    }
}
