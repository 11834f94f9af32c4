//! The sections of a report on the model: the fit, its features, its vectors and its search.

use relvec::{FittedBasis, Model};

use super::html::{list, paragraph, section, table};
use super::page::Context;
use super::plot::{Mark, Plot, bars, number, thinned};
use crate::contents;
use crate::layout::Lines;
use crate::summary::{self, Summary};
use crate::terminal::Stream;
use crate::text::{count, cut, significant, thousands};

/// Most bars of relevant features, and most lines of the table of features.
const BARS: usize = 20;
const FEATURES_LISTED: usize = 60;
/// Least share of a feature with a bar.
const LEAST_SHARE: f64 = 5e-4;
/// Most vectors in the table, most functions with a column of weights, and most features with a column.
const VECTORS: usize = 30;
const FUNCTIONS: usize = 6;
const FEATURES_OF_VECTORS: usize = 5;
/// Significant digits of weights.
const DIGITS: usize = 4;
/// Most points of the trace of the evidence.
const TRACE_POINTS: usize = 400;
/// Shares of features that differ by less are equal, since they are sums of rounded numbers.
const SAME: f64 = 1e-9;

/// Returns named values of the model, without the bars of the terminal.
pub(super) fn facts(model: &Model) -> Vec<(String, String)> {
    let mut lines = Lines::new(Stream::Stdout);
    contents::describe(model, &Summary::of(model, None, None), &mut lines);
    lines.pairs.retain(|(name, _)| !name.is_empty() && name != "feature relevance" && !name.starts_with("gamma"));
    lines.pairs
}

pub(super) fn sections(model: &Model, context: &Context) -> String {
    let mut body = list(&facts(model));
    if let Some(seconds) = context.seconds {
        body += &format!("<p class=\"small\">The fit took {} s.</p>\n", significant(seconds, 3));
    }
    let mut out = section("model", "The model", &body);
    out += &section("features", "Features", &features(model));
    out += &section("vectors", heading(model), &vectors(model));
    out += &section("trace", "The search", &trace(&context.trace));
    if !context.settings.is_empty() {
        out += &section("settings", "Settings", &list(&context.settings));
    }
    out
}

/// Returns the heading for the centres of the model.
fn heading(model: &Model) -> &'static str {
    match (model.margins.is_some(), model.process.is_some() || model.labels.is_some() || model.learned_centres) {
        (true, _) => "Support vectors",
        (_, true) => "Centres",
        _ => "Relevance vectors",
    }
}

fn name(model: &Model, d: usize) -> String {
    model.features.get(d).map_or_else(|| format!("feature {d}"), |name| cut(name))
}

/// Returns the shares of the features, in their order, or `None` if all are equal.
fn relevance(model: &Model) -> Option<&[f64]> {
    let shares = model.feature_relevance.as_slice();
    let first = *shares.first()?;
    let one_width = shares.iter().all(|share| (share - first).abs() < SAME);
    (!one_width && !model.relevance.is_empty()).then_some(shares)
}

/// Returns the features, the most relevant first.
fn by_relevance(model: &Model) -> Vec<usize> {
    let mut order: Vec<usize> = (0..model.n_features).collect();
    if let Some(shares) = relevance(model) {
        order.sort_by(|d, e| shares[*e].total_cmp(&shares[*d]));
    }
    order
}

fn features(model: &Model) -> String {
    let order = by_relevance(model);
    let mut out = String::new();
    if let Some(shares) = relevance(model) {
        let shown: Vec<usize> = order.iter().copied().filter(|d| shares[*d] >= LEAST_SHARE).take(BARS).collect();
        let most = shown.first().map_or(1.0, |d| shares[*d]);
        let bar = |d: &usize| (name(model, *d), shares[*d] / most, format!("{:.1} %", 100.0 * shares[*d]));
        let rows: Vec<(String, f64, String)> = shown.iter().map(bar).collect();
        let listed: Vec<String> = rows.iter().map(|(name, _, share)| format!("{name} {share}")).collect();
        let others = order.len() - shown.len();
        let rest =
            if others > 0 { format!(" Not shown: {} with lower shares.", count(others, "feature")) } else { String::new() };
        out += &format!(
            "<figure class=\"wide\"><h3>Feature relevance</h3>\n{}<figcaption>{}</figcaption></figure>\n",
            bars(&format!("Feature relevance: {}", listed.join(", ")), &rows),
            paragraph(&format!(
                "Shares of what the features change in the kernel. A feature of share 0 has no effect on predictions.{rest}"
            ))
        );
    } else if model.n_features > 1 && !matches!(model.expansion.basis, FittedBasis::Given {}) {
        out += "<p>All features share one kernel width, or the kernel has none: the model does not rank them.</p>\n";
    }
    for (title, features) in summary::widths(model) {
        let rows: Vec<Vec<String>> = (features.iter().take(FEATURES_LISTED))
            .map(|(name, gamma, share)| vec![cut(name), number(*gamma), format!("{:.1} %", 100.0 * share)])
            .collect();
        let more = match features.len() {
            n if n > FEATURES_LISTED => format!(" {FEATURES_LISTED} of {} features are listed.", thousands(n)),
            _ => String::new(),
        };
        let caption = format!("{} of the kernel, and shares of what the features change between the centres.{more}", title);
        out += &table(&caption, &["feature", "gamma", "relevance"], &rows, &[0]);
    }
    // A single width of all features is shown with the kernel, not per feature.
    let gamma = model.kernel().and_then(|kernel| kernel.gamma()).filter(|_| relevance(model).is_some());
    let scaling = model.scaling.as_ref();
    if gamma.is_none() && scaling.is_none() && model.features.is_empty() {
        return out;
    }
    let mut head = vec!["feature"];
    head.extend(relevance(model).map(|_| "relevance"));
    head.extend(gamma.map(|_| "gamma"));
    head.extend(scaling.iter().flat_map(|_| ["mean", "standard deviation"]));
    let row = |d: &usize| {
        let d = *d;
        let mut cells = vec![name(model, d)];
        cells.extend(relevance(model).map(|shares| format!("{:.1} %", 100.0 * shares[d])));
        cells.extend(gamma.map(|gamma| number(gamma.at(d))));
        cells.extend(scaling.iter().flat_map(|own| [number(own.mean[d]), number(own.scale[d])]));
        cells
    };
    let rows: Vec<Vec<String>> = order.iter().take(FEATURES_LISTED).map(row).collect();
    let more = match order.len() > FEATURES_LISTED {
        true => format!(" {FEATURES_LISTED} of {} features are listed.", thousands(order.len())),
        false => String::new(),
    };
    let width = if gamma.is_some() { " Gamma is the inverse width of the kernel." } else { "" };
    let scaled = match scaling {
        Some(_) if gamma.is_some() => {
            " Gamma is in units of the standardised features; mean and standard deviation are of the training rows."
        }
        Some(_) => " Mean and standard deviation are of the training rows, by which the model standardises.",
        None => "",
    };
    out + &table(format!("{width}{scaled}{more}").trim_start(), &head, &rows, &[0])
}

/// Returns the table of the centres with their weights and features.
fn vectors(model: &Model) -> String {
    let m = model.relevance.len();
    if m == 0 {
        return "<p>There are none: the model predicts a constant.</p>\n".into();
    }
    let weights = &model.expansion.weights;
    let size = |i: usize| weights.row(i).iter().fold(0.0f64, |most, w| most.max(w.abs()));
    let mut shown: Vec<usize> = (0..m).collect();
    if m > VECTORS {
        shown.sort_by(|i, j| size(*j).total_cmp(&size(*i)));
        shown.truncate(VECTORS);
    }
    // Centres are stored in scaled units.
    let value = |i: usize, d: usize| {
        let scaled = match &model.expansion.basis {
            FittedBasis::Kernel { centres, .. } | FittedBasis::External { centres: Some(centres) } => centres[[i, d]],
            FittedBasis::Sparse { centres, .. } => centres.row(i).iter().find(|(column, _)| *column == d).map_or(0.0, |(_, v)| v),
            FittedBasis::External { centres: None } | FittedBasis::Given {} => f64::NAN,
        };
        model.scaling.as_ref().map_or(scaled, |own| scaled * own.scale[d] + own.mean[d])
    };
    let features: Vec<usize> = match &model.expansion.basis {
        FittedBasis::External { centres: None } | FittedBasis::Given {} => vec![],
        // Sparse rows have many features, and most of the first ones are 0.
        FittedBasis::Sparse { .. } if relevance(model).is_none() => vec![],
        _ => by_relevance(model).into_iter().take(FEATURES_OF_VECTORS).collect(),
    };
    let functions = contents::function_names(model);
    let functions_shown = functions.len().min(FUNCTIONS);
    let with_precision = !model.alpha.is_empty();
    let names: Vec<String> = features.iter().map(|d| name(model, *d)).collect();
    let first = if model.learned_centres { "centre" } else { "row" };
    let mut head = vec![first];
    head.extend(functions[..functions_shown].iter().map(String::as_str));
    head.extend(with_precision.then_some("precision"));
    head.extend(names.iter().map(String::as_str));
    let row = |i: &usize| {
        let i = *i;
        let mut cells = vec![model.relevance[i].to_string()];
        cells.extend(weights.row(i).iter().take(functions_shown).map(|w| significant(*w, DIGITS)));
        cells.extend(with_precision.then(|| model.alpha.get(i).map_or(String::new(), |alpha| significant(*alpha, DIGITS))));
        cells.extend(features.iter().map(|d| number(value(i, *d))));
        cells
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    if model.intercept_alpha.is_some() || model.posterior.is_none() {
        let mut cells = vec!["intercept".to_string()];
        cells.extend(model.expansion.intercept.iter().take(functions_shown).map(|w| significant(*w, DIGITS)));
        cells.extend(with_precision.then(|| model.intercept_alpha.map_or(String::new(), |alpha| significant(alpha, DIGITS))));
        cells.extend(features.iter().map(|_| String::new()));
        rows.push(cells);
    }
    let mut notes = vec![];
    if m > VECTORS {
        notes.push(format!("The {VECTORS} with the largest weights of {} are listed.", thousands(m)));
    }
    if functions.len() > functions_shown {
        notes.push(format!("Weights of {functions_shown} of {} functions are listed.", functions.len()));
    }
    if features.len() < model.n_features && !features.is_empty() {
        let which = if relevance(model).is_some() { "most relevant" } else { "first" };
        notes.push(format!("The {which} {} of {} are shown.", features.len(), count(model.n_features, "feature")));
    }
    let what = match model.learned_centres {
        true => "The learned centres of the basis functions, in units of the table.",
        false => "Rows of the training table, counted from 0, with their weights; features in units of that table.",
    };
    table(&format!("{what} {}", notes.join(" ")), &head, &rows, &[])
}

/// Draws the log evidence by iteration.
fn trace(evidence: &[f64]) -> String {
    let points: Vec<(f64, f64)> =
        evidence.iter().enumerate().map(|(i, v)| ((i + 1) as f64, *v)).filter(|p| p.1.is_finite()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    if points.len() < 3 {
        return String::new();
    }
    let of = |value: f64| significant(value, if value.abs() < 1e5 { 4 } else { 7 });
    let caption = format!("From {} to {} nats in {}.", of(first.1), of(last.1), count(evidence.len(), "iteration"));
    let label = format!("Log evidence by iteration. {caption}");
    let marks = vec![Mark::Line(thinned(&points, TRACE_POINTS), 0)];
    let plot = Plot { label: &label, x: "iteration", y: "log evidence, nats", x_range: None, y_range: None, marks };
    format!("<div class=\"figures\">{}</div>\n", plot.figure("Log evidence", &caption, &[]))
}
