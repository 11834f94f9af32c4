//! Messages about a model that interpolates its training rows, with advice.

use relvec::{Interpolation, Model, Report, Rvm, Sparsity, WeightPrior};

/// Returns which part of the predictions is unreliable, and how.
fn consequence(model: &Model) -> (&'static str, &'static str) {
    if model.n_classes().is_some() { ("probabilities", "overconfident") } else { ("intervals", "too narrow") }
}

/// Returns the value of the line in the summary.
pub(crate) fn line(model: &Model) -> String {
    let (what, how) = consequence(model);
    format!("suspected: {what} may be {how}")
}

/// Returns a note if a tenth to a third of the rows are relevance vectors and no held-out rows were predicted.
///
/// Under a process prior the number of centres says nothing about the intervals.
pub(crate) fn note(model: &Model, report: &Report) -> Option<String> {
    let (vectors, rows) = (model.relevance.len(), model.n_rows);
    let selected = model.process.is_none() && model.labels.is_none() && report.validation.is_none();
    let (what, _) = consequence(model);
    (selected && 10 * vectors > rows && 3 * vectors <= rows).then(|| {
        let percent = 100.0 * vectors as f64 / rows as f64;
        format!("{percent:.0} % of the rows are relevance vectors ({vectors} of {rows}). Add --cv 5 to check the {what}.")
    })
}

/// Returns the warning: the signs, the consequence and the advice. `rows_at_hand`: true if the rows can be fitted
/// again.
pub(crate) fn warning(found: &Interpolation, model: &Model, report: &Report, rvm: &Rvm, rows_at_hand: bool) -> String {
    let Interpolation { vectors, rows, many_vectors, least_noise, .. } = found;
    let (what, how) = consequence(model);
    let many = format!("more than a third of the rows are relevance vectors ({vectors} of {rows})");
    let found = match (many_vectors, least_noise) {
        (true, true) => format!(
            "{many}, and the noise variance is at its lower limit. The model interpolates the training rows: {what} are far {how}"
        ),
        (true, false) => format!("{many}: {what} are probably {how}"),
        _ => format!("the noise variance is at its lower limit, as if the target had no noise. If it has, {what} are far {how}"),
    };
    let gamma = model.kernel().and_then(|kernel| kernel.gamma()).filter(|_| report.kernel_search.is_none());
    let options = [
        gamma.map(|_| "--gamma evidence (learns the kernel width)".to_string()),
        (rvm.weight_prior == WeightPrior::Ard).then(|| "--weight-prior auto (the prior of a Gaussian process)".into()),
        (rvm.sparsity == Sparsity::Nats(0.0)).then(|| "--sparsity auto (each relevance vector must gain 1 nat)".into()),
        (rows_at_hand && report.validation.is_none()).then(|| "--cv 5 (measures predictions of held-out rows)".into()),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    match options.len() {
        0 => format!("{found}. Check predictions of rows that the model has not seen (relvec score)."),
        _ => format!("{found}. Try {}.", options.join(", ")),
    }
}
