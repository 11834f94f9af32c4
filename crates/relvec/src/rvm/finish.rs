//! From the inner solution to the model in the user's units.

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut2, Axis, concatenate, s};

use super::gain::Noise;
use super::problem::Problem;
use super::solution::Solution;
use super::workspace::Workspace;
use crate::error::{Error, Result};
use crate::linalg;
use crate::model::{Expansion, FittedBasis, Learnt, Model, Posterior, PosteriorRule, Variance};
use crate::report::Status;

/// Where a pivot of the factor is below this share of its column's norm, the column is nearly spanned
/// by those before it, and the final posterior comes from QR, which does not square the condition.
const ILL_CONDITIONED: f64 = 1e-6;

/// Most bytes that QR may take: on longer tables the noise of the rows hides what it could mend.
const REFINE_BYTES: u64 = 1 << 27;

/// The model of a solution; its basis functions in the order of the user's rows.
pub(crate) fn model(
    work: &Workspace,
    solution: &Solution,
    log_evidence: f64,
    status: Status,
    iterations: usize,
) -> Result<Model> {
    let problem = work.problem;
    let first = usize::from(problem.has_bias);
    let row_of = |column: usize| problem.origin(column);
    let mut order: Vec<usize> = (0..solution.active.len()).collect();
    order.sort_by_key(|i| if solution.active[*i] < first { 0 } else { 1 + row_of(solution.active[*i]) });
    let mut ordered = work.reordered(solution, &order, &problem.table.noise)?;
    refine(work, &mut ordered);
    let (active, a) = (&ordered.active, &ordered.a);

    // Of several outputs the first stands for all.
    let (units, beta) = (&problem.table.units, solution.beta[0]);
    let scale = units[0].scale;
    let norm = |j: &usize| problem.design.norms()[*j];
    let weights = weights(problem, &ordered);
    let alpha: Vec<f64> = active.iter().zip(a).map(|(j, a)| a * beta / problem.alpha_in(*j)).collect();
    let learnt = problem.table.noise.iter().any(Noise::is_learnt) || problem.table.repairs.constant_target;
    let noise_variance = match &problem.table.rvm.likelihood.as_dyn().noise() {
        crate::likelihood::NoiseModel::None => None,
        // That of new rows is not.
        _ if problem.table.known_noise => Some(0.0),
        crate::likelihood::NoiseModel::Fixed(variance) if !learnt => Some(*variance),
        _ => Some(scale * scale / beta),
    };
    let lower = ordered.joint.as_ref().map_or(&ordered.lower, |joint| &joint.lower);
    // Rows and columns of weights that are not in the model are those of a unit matrix, and left out.
    let all = (0..lower.nrows()).collect();
    let present: Vec<usize> = ordered
        .by_class()
        .map_or(all, |own| own.alpha.iter().enumerate().filter(|(_, a)| a.is_finite()).map(|(i, _)| i).collect());
    let class_alpha = ordered.by_class().map_or(vec![], |own| {
        let outside = |(j, of_classes): (&usize, ArrayView1<f64>)| {
            of_classes.iter().map(|a| a.is_finite().then(|| a / problem.alpha_in(*j))).collect()
        };
        active.iter().zip(own.alpha.columns()).map(outside).collect()
    });
    let posterior = Posterior {
        factor: (0..present.len()).map(|i| (0..=i).map(|j| lower[[present[i], present[j]]]).collect()).collect(),
        scale: active.iter().map(|j| scale / (norm(j) * beta.sqrt())).collect(),
        noise_variance,
        noise_degrees: problem.table.rvm.noise_shape(problem.table).map(|shape| 2.0 * shape),
        variance_factor: None,
        averaged: false,
        variance_ratios: match solution.beta.len() {
            1 => vec![],
            _ => units.iter().zip(&solution.beta).map(|(u, b)| (u.scale / scale).powi(2) * (beta / b)).collect(),
        },
    };
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
    let mut model = Model {
        machine: "rvm".into(),
        likelihood: Some(problem.table.rvm.likelihood.clone()),
        inference: Some(problem.table.rvm.inference.name().into()),
        features: Vec::new(),
        target: None,
        targets: vec![],
        classes: Vec::new(),
        class_frequencies: Vec::new(),
        scaling: None,
        n_features: problem.table.rows.ncols(),
        n_rows: problem.table.n_rows,
        relevance,
        expansion: Expansion {
            basis,
            intercept: if has_intercept { weights.row(0).to_vec() } else { vec![problem.table.log_rate; weights.ncols()] },
            weights: weights.slice(s![skip.., ..]).to_owned(),
        },
        alpha: alpha[skip..].to_vec(),
        intercept_alpha: has_intercept.then(|| alpha[0]),
        class_alpha,
        feature_relevance: vec![],
        learned_centres: false,
        posterior: Some(posterior),
        log_evidence: Some(log_evidence),
        status,
        iterations,
        committee: None,
        margins: None,
        variance: Variance::Posterior,
        kept_rows: None,
        statistics: None,
    };
    match problem.table.rvm.posterior {
        PosteriorRule::Averaged if !problem.constant_curvature() => average_curvature(problem, &ordered, &mut model)?,
        PosteriorRule::Auto if problem.table.rvm.likelihood.as_dyn().counts() && status != Status::Stopped => {
            bound_counts(problem, &ordered, &mut model)?;
        }
        PosteriorRule::Auto if several_classes(problem) && status != Status::Stopped => {
            let laplace = model.posterior.clone();
            if problem.table.interrupt.in_time(|| average_curvature(problem, &ordered, &mut model))?.is_none() {
                model.posterior = laplace;
            }
        }
        _ => {}
    }
    Ok(model)
}

/// Whether one model has three classes or more.
fn several_classes(problem: &Problem) -> bool {
    problem.table.outputs > 1 && problem.table.rvm.likelihood.as_dyn().couples_classes()
}

/// Takes the posterior of the mean curvature for counts of which Laplace's expects too much; Laplace's stays where that has
/// no factor.
fn bound_counts(problem: &Problem, solution: &Solution, model: &mut Model) -> Result<()> {
    if !model.expects_too_much(&learnt(problem, solution, 1))? {
        return Ok(());
    }
    match average_curvature(problem, solution, model) {
        Err(Error::Singular { .. }) => Ok(()),
        other => other,
    }
}

/// Puts the posterior of the mean curvature in the place of that at the mode, (M65).
fn average_curvature(problem: &Problem, solution: &Solution, model: &mut Model) -> Result<()> {
    let outputs = model.outputs();
    if problem.table.rvm.likelihood.as_dyn().counts() {
        return model.average_counts(&learnt(problem, solution, outputs));
    }
    if problem.table.blocks.is_none() {
        // The functions at the rows are the same in each round.
        let rows = learnt(problem, solution, outputs);
        return model.average_curvature(|model, posterior| model.mean_curvature(posterior, &rows));
    }
    model.average_curvature(|model, posterior| {
        let of = |part: &Problem| model.mean_curvature(posterior, &learnt(part, solution, outputs));
        problem.sum_of_parts(of, |total, own| *total += &own)
    })
}

/// The rows of a problem, which are held, as a model of so many outputs has learnt from them.
fn learnt<'a>(
    problem: &'a Problem,
    solution: &'a Solution,
    outputs: usize,
) -> Learnt<'a, impl Fn(usize, ArrayViewMut2<f64>) + Sync + 'a> {
    let f = problem.fitted(solution).into_raw_vec_and_offset().0;
    let table = problem.table;
    let functions = match outputs {
        1 => Array2::from_shape_vec((f.len(), 1), f).expect("a number for each row"),
        classes => {
            let contrasts = solution.contrasts();
            let mut functions = Array2::zeros((table.weights.len(), classes));
            for (f, mut row) in f.chunks(contrasts.count()).zip(functions.outer_iter_mut()) {
                contrasts.classes(f, row.as_slice_mut().expect("rows are contiguous"));
            }
            functions
        }
    };
    let (likelihood, interrupt) = (table.rvm.likelihood.as_dyn(), &table.interrupt);
    Learnt { fill: problem.design.filler(&solution.active), functions, weights: &table.weights, likelihood, interrupt }
}

/// Weights in the user's units, [M, C]: one for each class where the outputs are their contrasts; of counts the bias with
/// the log of the mean rate.
pub(crate) fn weights(problem: &Problem, solution: &Solution) -> Array2<f64> {
    let (m, outputs) = (solution.active.len(), solution.outputs);
    let units = &problem.table.units;
    let unit = |i: usize, r: usize| units[r.min(units.len() - 1)].scale / problem.design.norms()[solution.active[i]];
    let own = |i: usize| -> Vec<f64> { (0..outputs).map(|r| solution.mean[r * m + i] * unit(i, r)).collect() };
    if !problem.table.rvm.likelihood.as_dyn().couples_classes() {
        let is_bias = |i: usize| problem.has_bias && solution.active[i] == 0;
        let shift = |i: usize| if is_bias(i) { problem.table.log_rate } else { 0.0 };
        return Array2::from_shape_fn((m, outputs), |(i, r)| own(i)[r] + shift(i));
    }
    let contrasts = solution.contrasts();
    let mut out = Array2::zeros((m, contrasts.n_classes()));
    for (i, mut row) in out.outer_iter_mut().enumerate() {
        contrasts.classes(&own(i), row.as_slice_mut().expect("rows are contiguous"));
    }
    out
}

/// Factor and mean by QR of [sqrt(B) Phi; sqrt(a)] where Cholesky's squared condition would tell, if
/// all rows of it fit into memory.
fn refine(work: &Workspace, solution: &mut Solution) {
    let problem = work.problem;
    let spanned = |(i, row): (usize, ArrayView1<f64>)| row[i] < ILL_CONDITIONED * row.dot(&row).sqrt();
    let (n, m) = (problem.design.n_rows() as u64, solution.active.len() as u64);
    let affordable = n > 0 && solution.outputs == 1 && !work.is_stand_in() && 8 * 4 * n * m <= problem.room().min(REFINE_BYTES);
    if !affordable || !solution.lower.outer_iter().enumerate().any(spanned) {
        return;
    }
    let f = problem.fitted(solution);
    let derivatives = problem.working(&f);
    let mut top = problem.design.select(&solution.active);
    let mut target = Array1::zeros(top.nrows());
    for (n, mut row) in top.outer_iter_mut().enumerate() {
        let root = (derivatives.curvature[n] * problem.table.weights[n]).sqrt();
        target[n] = root * (f[n] + derivatives.residual[n] / derivatives.curvature[n]);
        row *= root;
    }
    let roots: Array1<f64> = solution.a.iter().map(|a| a.sqrt()).collect();
    let stacked = concatenate![Axis(0), top, Array2::from_diag(&roots)];
    let mut prior = Array1::zeros(roots.len());
    // The targets are about their mean: the prior of the bias pulls towards minus the mean.
    let bias = problem.mean_bias(&solution.active);
    if let Some((p, means)) = &bias {
        prior[*p] = -roots[*p] * means[0];
    }
    let (mut mean, lower) = linalg::least_squares(&stacked, &concatenate![Axis(0), target, prior]);
    if !lower.iter().all(|v| v.is_finite()) || !lower.diag().iter().all(|v| *v > 0.0) {
        return;
    }
    if let Some((p, means)) = &bias {
        mean[*p] += means[0];
    }
    solution.lower = lower;
    // Where the curvature is not constant, Newton's mode is better than one step from it.
    if problem.constant_curvature() {
        solution.mean = mean.to_vec();
    }
}
