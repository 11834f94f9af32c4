//! Signs that a model interpolates the rows it was trained on: its intervals are then too narrow, its probabilities extreme.

use crate::model::Model;
use crate::report::{Interpolation, Report};

/// Largest share of the rows that are relevance vectors of a sound fit with a precision for each weight. Measured on Friedman's
/// first function: of models with 86 of 200 rows, 95 % intervals cover 66 % of new targets; with 99 of 100 rows, 0.4 %. Half of
/// this share still covers nearly as asked, and a fit that is sound would warn; twice of it would let the first model pass.
const MOST_VECTORS: f64 = 1.0 / 3.0;

/// A fit, and in its model and its report whether it interpolates; `unused`: rows of weight 0.
pub(crate) fn judged((model, report): (Model, Report), unused: usize) -> (Model, Report) {
    let interpolation = found(&model, &report, unused);
    (Model { interpolates: interpolation.is_some(), ..model }, Report { interpolation, ..report })
}

fn found(model: &Model, report: &Report, unused: usize) -> Option<Interpolation> {
    if !report.members.is_empty() {
        // Of several models of two classes the one with the largest share of its rows.
        let share = |own: &&Interpolation| own.vectors as f64 / own.rows as f64;
        let signs = report.members.iter().filter_map(|member| member.interpolation.as_ref());
        return signs.max_by(|a, b| share(a).total_cmp(&share(b))).copied();
    }
    if report.repairs.constant_target {
        return None;
    }
    // A sample has rows of positive weight alone.
    let unused = if report.repairs.left_out_rows > 0 { 0 } else { unused };
    let rows = model.n_rows.saturating_sub(report.repairs.merged_rows + unused);
    let many = |vectors: usize| vectors as f64 > MOST_VECTORS * rows as f64;
    let sequential = matches!(model.inference.as_deref(), Some("search" | "sequential"));
    // The other schemes keep weights of no use as well; counting the others takes the covariance of all.
    let vectors = match model.relevance.len() {
        stored if sequential || !many(stored) => stored,
        _ => model.in_use().by_data,
    };
    // Targets that differ at one input tell the noise variance, with a degree of freedom for each row but the first.
    let told = report.repairs.shared_columns >= vectors;
    // Under the covariance of a process centres cost no evidence, and many do no harm.
    let many_vectors = report.process.is_none() && many(vectors) && !told;
    let found = Interpolation { vectors, rows, many_vectors, least_noise: report.repairs.noise_capped };
    (found.many_vectors || found.least_noise).then_some(found)
}
