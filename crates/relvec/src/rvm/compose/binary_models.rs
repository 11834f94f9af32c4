//! Several classes by binary models: one-vs-rest or one-vs-one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use crate::error::{Error, Result};
use crate::model::{Committee, Expansion, FittedBasis, Model};
use crate::report::{Actions, Adjustments, Certificate, Interrupt, Observer, Progress, Report, SmallWeights, Status};
use crate::rvm::compose::cross_validation;
use crate::rvm::compose::single_fit::judged;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::{MultiClass, Targets};

/// Training data of one binary model.
struct BinaryTask {
    /// User's rows that are used. `None` for all rows.
    rows: Option<Vec<usize>>,
    /// Label of each of these rows, 0 or 1.
    labels: Vec<usize>,
}

/// Rows, labels and sample weights of all classes.
pub(crate) struct Classes<'a> {
    /// Rows, [N, D].
    pub x: ArrayView2<'a, f64>,
    pub labels: &'a [usize],
    pub count: usize,
    pub weights: Option<Vec<f64>>,
}

/// Fits one binary model for each class (one-vs-rest) or for each pair of classes (one-vs-one).
pub(crate) fn fit(
    rvm: &Rvm,
    classes: &Classes,
    start: Instant,
    observer: &mut Observer,
    interrupt: &Interrupt,
) -> Result<(Model, Report)> {
    let (x, weights) = (classes.x, classes.weights.as_deref());
    let pool = rvm.pool()?;
    let tasks = binary_tasks(rvm.multi_class, classes.labels, classes.count);
    let (mut members, mut reports) = (Vec::new(), Vec::new());
    let (mut done, mut stopped) = (0, false);
    for (k, task) in tasks.iter().enumerate() {
        // The remaining time is divided equally among the remaining binary models. Each has at least a first model.
        let left = rvm.time_limit.map(|limit| ((limit - start.elapsed().as_secs_f64()) / (tasks.len() - k) as f64).max(1e-3));
        let iterations = if stopped { 1 } else { rvm.max_iterations };
        let own = Rvm { multi_class: MultiClass::Joint, time_limit: left, max_iterations: iterations, ..rvm.clone() };
        let mut observe = |progress: &Progress| {
            let overall = Progress { iteration: done + progress.iteration, elapsed: start.elapsed(), ..progress.clone() };
            // After the observer has stopped the fit, each remaining binary model gets one iteration, because the
            // classifier needs all of them.
            stopped = stopped || observer(&overall).is_break();
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let begin = Instant::now();
        let in_time = interrupt.for_one_fit(own.deadline(begin));
        let mut fit = |x: ArrayView2<f64>, targets: &Targets| {
            let fitted = pool.install(|| cross_validation::complete_fit(&own, x, targets, &mut observe, &in_time, begin))?;
            Ok::<_, Error>(judged(fitted, targets.unused()))
        };
        let (mut member, report) = match &task.rows {
            None => fit(x, &targets(&task.labels, weights))?,
            Some(rows) => {
                let weights: Option<Vec<f64>> = weights.map(|w| rows.iter().map(|n| w[*n]).collect());
                fit(x.select(Axis(0), rows).view(), &targets(&task.labels, weights.as_deref()))?
            }
        };
        if let (Some(rows), true) = (&task.rows, rvm.picks_rows()) {
            member.relevance.iter_mut().for_each(|row| *row = rows[*row]);
        }
        done += report.iterations;
        members.push(member);
        reports.push(report);
    }
    let (model, mut report) = united(rvm, x, members.into_iter().zip(reports).collect(), done, start.elapsed());
    // Small weights are judged over the rows of all classes, because one pair of classes may have little weight.
    let of_all = |w: &[f64]| SmallWeights::of(w.iter().sum(), w.iter().filter(|w| **w > 0.0).count());
    report.adjustments.small_weights = weights.and_then(of_all);
    Ok((model, report))
}

/// Returns the model and the report of all binary models of rows `x`, [N, D], after so many `iterations`.
pub(crate) fn united(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    fitted: Vec<(Model, Report)>,
    iterations: usize,
    elapsed: Duration,
) -> (Model, Report) {
    let (members, reports): (Vec<_>, Vec<_>) = fitted.into_iter().unzip();
    let status = reports.iter().map(|r| r.status).find(|s| *s != Status::Converged).unwrap_or(Status::Converged);
    (assemble(rvm, x, members, status, iterations), summary(reports, status, iterations, elapsed))
}

fn targets<'a>(labels: &'a [usize], weights: Option<&'a [f64]>) -> Targets<'a> {
    let targets = Targets::classes(labels, 2);
    match weights {
        Some(weights) => targets.with_weights(ArrayView1::from(weights)),
        None => targets,
    }
}

/// Returns the binary tasks of `count` classes: one per class, or one per pair of classes.
fn binary_tasks(rule: MultiClass, labels: &[usize], count: usize) -> Vec<BinaryTask> {
    if rule != MultiClass::OneVsOne {
        let against_all = |k: usize| BinaryTask { rows: None, labels: labels.iter().map(|l| usize::from(*l == k)).collect() };
        return (0..count).map(against_all).collect();
    }
    let pair = |k: usize, l: usize| {
        let rows: Vec<usize> = (0..labels.len()).filter(|n| labels[*n] == k || labels[*n] == l).collect();
        let labels = rows.iter().map(|n| usize::from(labels[*n] == l)).collect();
        BinaryTask { rows: Some(rows), labels }
    };
    (1..count).flat_map(|l| (0..l).map(move |k| (k, l))).map(|(k, l)| pair(k, l)).collect()
}

/// Combines binary models of the rows `x`, `[N, D]`, into one model. It has the relevance vectors of all binary models,
/// and one column of weights per binary model.
fn assemble(rvm: &Rvm, x: ArrayView2<f64>, members: Vec<Model>, status: Status, iterations: usize) -> Model {
    // Centre of each relevance vector, by its row.
    let mut centres: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for member in &members {
        for (m, row) in member.relevance.iter().enumerate() {
            centres.entry(*row).or_insert_with(|| match &member.expansion.basis {
                FittedBasis::Kernel { centres, .. } => centres.row(m).to_vec(),
                _ => vec![],
            });
        }
    }
    let relevance: Vec<usize> = centres.keys().copied().collect();
    let mut weights = Array2::zeros((relevance.len(), members.len()));
    for (k, member) in members.iter().enumerate() {
        for (row, w) in member.relevance.iter().zip(member.expansion.weights.column(0)) {
            weights[[relevance.binary_search(row).expect("all are listed"), k]] = *w;
        }
    }
    let basis = match members[0].kernel() {
        Some(kernel) => FittedBasis::Kernel {
            kernel: kernel.clone(),
            centres: Array2::from_shape_fn((relevance.len(), x.ncols()), |(i, d)| centres[&relevance[i]][d]),
        },
        None => FittedBasis::Given {},
    };
    let intercept = members.iter().map(|m| m.expansion.intercept[0]).collect();
    // Binary models may be fitted to different rows. The relevance of a feature is their mean.
    let share = |d: usize| members.iter().map(|m| m.feature_relevance[d]).sum::<f64>() / members.len() as f64;
    let feature_relevance = (0..members[0].feature_relevance.len()).map(share).collect();
    Model {
        n_rows: x.nrows(),
        relevance,
        expansion: Expansion { basis, weights, intercept },
        alpha: vec![],
        intercept_alpha: None,
        posterior: None,
        log_evidence: members.iter().map(|m| m.log_evidence).sum(),
        feature_relevance,
        status,
        iterations,
        committee: Some(Committee { rule: rvm.multi_class, members: members.clone() }),
        ..members.into_iter().next().expect("there are members")
    }
}

/// Returns the report of all binary models, of which `reports` are the single reports.
fn summary(reports: Vec<Report>, status: Status, iterations: usize, elapsed: Duration) -> Report {
    let (mut actions, mut adjustments) = (Actions::default(), Adjustments::default());
    let (mut largest_gain, mut largest_gradient, mut candidates): (Option<f64>, f64, usize) = (None, 0.0, 0);
    for report in &reports {
        actions.add(&report.actions);
        adjustments.jitter = adjustments.jitter.max(report.adjustments.jitter);
        adjustments.zero_columns = adjustments.zero_columns.max(report.adjustments.zero_columns);
        adjustments.merged_rows = adjustments.merged_rows.max(report.adjustments.merged_rows);
        adjustments.shared_columns = adjustments.shared_columns.max(report.adjustments.shared_columns);
        candidates = candidates.max(report.candidates);
        largest_gradient = largest_gradient.max(report.certificate.largest_gradient);
        largest_gain = largest_gain.into_iter().chain(report.certificate.largest_gain).reduce(f64::max);
    }
    // A feature is constant among all rows only if it is constant in every binary task.
    let all = |d: &usize| reports.iter().all(|r| r.adjustments.constant_features.contains(d));
    adjustments.constant_features = reports[0].adjustments.constant_features.iter().copied().filter(all).collect();
    let first = reports.iter().find(|r| r.status == status).map_or("", |r| r.certificate.reason.as_str());
    let reason = format!("{} binary models; the reason of the first with this status: {first}", reports.len());
    let certificate = Certificate { largest_gain, largest_gradient, reason };
    Report {
        iterations,
        nothing_found: reports.iter().all(|report| report.nothing_found),
        candidates,
        adjustments,
        actions,
        members: reports,
        ..Report::of_end(status, vec![], certificate, elapsed.as_secs_f64())
    }
}
