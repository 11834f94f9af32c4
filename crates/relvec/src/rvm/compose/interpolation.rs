//! Detection of models that interpolate their training rows. Their intervals are too narrow and their probabilities
//! overconfident.

use crate::model::Model;
use crate::report::{Interpolation, Report};

/// Largest share of the rows that may be relevance vectors without a warning, for models with one precision per weight.
/// It was measured on Friedman's first function. With 86 of 200 rows, 95 % intervals cover 66 % of new targets; with 99
/// of 100 rows, they cover 0.4 %. At half of this share the coverage is still almost nominal, so that the warning would
/// be false. Twice this share would not detect the first model.
const MOST_VECTORS: f64 = 1.0 / 3.0;

/// Records in the model and in the report whether the model interpolates. `unused` is the number of rows of weight 0.
pub(crate) fn judged((model, report): (Model, Report), unused: usize) -> (Model, Report) {
    let interpolation = found(&model, &report, unused);
    (Model { interpolates: interpolation.is_some(), ..model }, Report { interpolation, ..report })
}

/// Returns the signs of interpolation, if there are any.
fn found(model: &Model, report: &Report, unused: usize) -> Option<Interpolation> {
    if !report.members.is_empty() {
        // For several binary models, the one with the largest share of relevance vectors is reported.
        let share = |own: &&Interpolation| own.vectors as f64 / own.rows as f64;
        let signs = report.members.iter().filter_map(|member| member.interpolation.as_ref());
        return signs.max_by(|a, b| share(a).total_cmp(&share(b))).copied();
    }
    if report.adjustments.constant_target {
        return None;
    }
    // If the fit used a sample, `n_rows` counts only its rows, which all have a positive weight.
    let unused = if report.adjustments.left_out_rows > 0 { 0 } else { unused };
    let rows = model.n_rows.saturating_sub(report.adjustments.merged_rows + unused);
    let many = |vectors: usize| vectors as f64 > MOST_VECTORS * rows as f64;
    let sequential = matches!(model.inference.as_deref(), Some("search" | "sequential"));
    // The other schemes also keep weights that the data do not determine. Counting them needs the covariance, so it is
    // done only if the number of stored weights is suspicious.
    let vectors = match model.relevance.len() {
        stored if sequential || !many(stored) => stored,
        _ => model.in_use().by_data,
    };
    // Repeated inputs with different targets determine the noise variance: each repetition is one degree of freedom.
    let noise_is_determined = report.adjustments.shared_columns >= vectors;
    // Under a process prior, additional centres do not overfit.
    let many_vectors = report.process.is_none() && many(vectors) && !noise_is_determined;
    let found = Interpolation { vectors, rows, many_vectors, least_noise: report.adjustments.noise_capped };
    (found.many_vectors || found.least_noise).then_some(found)
}
