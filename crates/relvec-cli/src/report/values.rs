//! The sections of a report on predicted values: measures, predictions, intervals, residuals.

use relvec::{Likelihood, Model};

use super::evaluation::{Evaluation, Found, Output};
use super::html::{paragraph, section, table};
use super::page::{Sections, VERDICTS, measures_table};
use super::plot::{Mark, Plot, histogram, number, thinned};

use crate::measures::{Measure, Values, coverage_is_off};
use crate::text::{cut, share, thousands};

/// Most targets with figures. Further targets have only measures.
const TARGETS_SHOWN: usize = 6;
/// Most rows drawn in all figures together. Each is drawn twice, and they are half of the largest file.
const ROWS_DRAWN: usize = 3000;
/// Bars of a histogram, and its range on either side in standard deviations.
const BINS: usize = 32;
const REACH: f64 = 4.0;
/// Most rows listed with the largest residuals.
const LARGEST: usize = 10;
/// Probability of the interval whose coverage is a measure.
const LEVEL: f64 = 0.95;

/// Returns the sections on values, with their warnings.
pub(super) fn sections(model: &Model, own: &Evaluation, python: bool) -> Sections {
    let Found::Values(outputs) = &own.found else { return Sections::default() };
    let mut out = Sections::default();
    let several = model.has_several_outputs();
    for (k, output) in outputs.iter().enumerate() {
        let target = name(model, output);
        let of = if several { format!(" of `{target}`") } else { String::new() };
        let measures = measures(output, &own.exposures, &target);
        let verdict = verdict(output, &measures, &target);
        out.verdict.push(if several { format!("`{target}`: {verdict}") } else { verdict.clone() });
        let shown = measures.iter().filter(|own| matches!(own.key, "rmse" | "coverage"));
        out.measures.extend(shown.map(|own| (format!("{}{of}", own.name), own.with_unit())));
        warn(output, &measures, &target, python, &mut out.warnings);
        let constant = if model.is_of_counts() { "constant rate".to_string() } else { format!("mean of `{target}`") };
        // The verdicts on the first targets are at the top of the page.
        let mut body = if k < VERDICTS { String::new() } else { format!("<p>{}</p>\n", paragraph(&verdict)) };
        body += &measures_table(&measures, &constant);
        body += &format!("<p class=\"small\">{}</p>\n", paragraph(note(model, output)));
        if k < TARGETS_SHOWN {
            let most = ROWS_DRAWN / outputs.len().min(TARGETS_SHOWN);
            body += &format!("<div class=\"figures\">{}</div>\n", figures(output, &target, most, model.is_of_counts()));
            body += &format!("<div class=\"figures\">{}{}</div>\n", coverage(output, &target), largest(output, &own.rows));
        }
        out.html += &section(&format!("predictions-{k}"), &format!("Predictions{of}"), &body);
    }
    if outputs.len() > TARGETS_SHOWN {
        out.notes.push(format!("figures of {TARGETS_SHOWN} of {} targets are shown", outputs.len()));
    }
    out
}

fn name(model: &Model, output: &Output) -> String {
    let names = [&output.model.target, &model.target];
    names.into_iter().flatten().next().map_or_else(|| "target".into(), |name| cut(name))
}

/// Returns an explanation of the constant prediction and the measures.
fn note(model: &Model, output: &Output) -> &'static str {
    if model.is_of_counts() {
        return "The constant rate is the counts of these rows over their exposures. The deviance is 2 (t ln(t / mean) - t + mean), averaged; \
                NLPD is the mean of -ln p of the true count. One nat is a factor of e in probability.";
    }
    match output.std.is_empty() {
        true => "The mean is that of the rows of this table. These predictions have no distribution, so there are no intervals.",
        false => {
            "The mean is that of the rows of this table, with a normal distribution of their variance. NLPD is the mean of -ln p of the \
             true value: it rewards predictions whose distributions are right. One nat is a factor of e in probability."
        }
    }
}

/// Returns the measures with those of a constant prediction.
fn measures(own: &Output, exposures: &[f64], target: &str) -> Vec<Measure> {
    let values =
        Values { target, truth: &own.truth, mean: &own.mean, log_density: &own.log_density, coverage: own.coverage(LEVEL) };
    if own.model.is_of_counts() { values.of_counts(exposures) } else { values.measures() }
}

/// Returns one or two sentences on the measures.
fn verdict(own: &Output, measures: &[Measure], target: &str) -> String {
    let rmse = &measures[0];
    let mut text = format!("RMSE {} ({})", rmse.own(), rmse.unit);
    if let (Some(value), Some(constant)) = (rmse.value, rmse.constant.filter(|constant| *constant > 0.0)) {
        let always = match own.model.is_of_counts() {
            true => "a constant rate".to_string(),
            false => format!("the mean of `{target}`"),
        };
        text += &match value / constant {
            ratio if ratio < 1.0 => format!(", {:.0} % below that of always predicting {always}", 100.0 * (1.0 - ratio)),
            _ => format!(", no better than always predicting {always}"),
        };
    }
    text += ".";
    if let Some((level, covered)) = own.coverage(LEVEL) {
        let rows = (covered * own.banded as f64).round() as usize;
        text += &format!(" The {:.0} % interval covers {}.", 100.0 * level, share(rows, own.banded, "row"));
    }
    text
}

fn warn(own: &Output, measures: &[Measure], target: &str, python: bool, out: &mut Vec<String>) {
    if let Some((level, covered)) = own.coverage(LEVEL)
        && coverage_is_off(covered, level, own.banded)
        // Intervals of counts end at whole numbers, so they cover more than their probability.
        && !(own.model.is_of_counts() && covered > level)
    {
        let rows = share((covered * own.banded as f64).round() as usize, own.banded, "row");
        let (how, advice) = match (covered < level, python) {
            (true, false) => (
                "narrow",
                "fit again without --gamma, --weight-prior and --sparsity, or with --calibrate; if these rows differ from those of the \
                 fit, fit to rows like these",
            ),
            (true, true) => (
                "narrow",
                "fit again with the default gamma, weight_prior and sparsity, or with calibrate=True; if these rows differ from those of \
                 the fit, fit to rows like these",
            ),
            (false, false) => {
                ("wide", "outliers in the training table have this effect: try --likelihood student_t, or --calibrate")
            }
            (false, true) => ("wide", "outliers in the training rows have this effect: try likelihood=\"student_t\""),
        };
        out.push(format!("the {:.0} % interval of `{target}` covers {rows}: it is too {how}. Advice: {advice}.", 100.0 * level));
    }
    if let (Some(value), Some(constant)) = (measures[0].value, measures[0].constant)
        && constant > 0.0
        && value >= constant
    {
        out.push(format!(
            "the predictions of `{target}` are no better than a constant. Advice: check that the table is of the kind that the model was \
             trained on, and that the features carry information."
        ));
    }
}

fn figures(own: &Output, target: &str, most: usize, counts: bool) -> String {
    let n = own.truth.len();
    let drawn = match n > most {
        true => format!(" {} of {} rows are drawn, evenly spaced in the table.", thousands(most), thousands(n)),
        false => String::new(),
    };
    let rows: Vec<usize> = thinned(&(0..n).collect::<Vec<_>>(), most);
    let (truth, mean) = (&own.truth, &own.mean);
    let all = || truth.iter().chain(mean).copied().filter(|v| v.is_finite());
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let diagonal = Mark::Reference(vec![(low, low), (high, high)]);
    let label = format!("Observed against predicted values of {target}: {}", agreement(own));
    let predicted = Plot {
        label: &label,
        x: &format!("predicted {target}"),
        y: &format!("observed {target}"),
        x_range: None,
        y_range: None,
        marks: vec![Mark::Points(rows.iter().map(|i| (mean[*i], truth[*i])).collect()), diagonal],
    };
    let mut out = predicted.figure(
        "Observed against predicted",
        &format!("{} On the dashed line they are equal.{drawn}", agreement(own)),
        &[],
    );
    let residuals: Vec<f64> = truth.iter().zip(mean).map(|(t, m)| t - m).collect();
    let (left, right) = mean.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let label = format!("Residuals of {target} against predicted values");
    let zero = Mark::Reference(vec![(left, 0.0), (right, 0.0)]);
    let plot = Plot {
        label: &label,
        x: &format!("predicted {target}"),
        y: "residual (observed - predicted)",
        x_range: None,
        y_range: None,
        marks: vec![Mark::Points(rows.iter().map(|i| (mean[*i], residuals[*i])).collect()), zero],
    };
    let bias = residuals.iter().sum::<f64>() / n as f64;
    let caption = format!("The mean residual is {}. A bend or a funnel is structure that the model misses.{drawn}", number(bias));
    out += &plot.figure("Residuals against predicted", &caption, &[]);
    out += &distribution(own, &residuals, counts);
    if !own.bands.is_empty() {
        out += &coverage_figure(own, target);
    }
    out
}

/// Returns a sentence on the agreement of predictions and values.
fn agreement(own: &Output) -> String {
    let n = own.truth.len() as f64;
    let centre = own.truth.iter().sum::<f64>() / n;
    let (mut error, mut spread) = (0.0, 0.0);
    for (t, m) in own.truth.iter().zip(&own.mean) {
        error += (t - m).powi(2);
        spread += (t - centre).powi(2);
    }
    match 1.0 - error / spread {
        r if r.is_finite() && r >= 0.0 => {
            format!("The predictions explain {:.0} % of the variance (R² {}).", 100.0 * r, number(r))
        }
        r if r.is_finite() => format!("The predictions are worse than the mean (R² {}).", number(r)),
        _ => "The observed values are all the same.".into(),
    }
}

/// Draws the histogram of residuals, divided by the predicted standard deviations if there are any.
fn distribution(own: &Output, residuals: &[f64], counts: bool) -> String {
    let n = own.truth.len();
    if own.std.is_empty() {
        let reach = residuals.iter().fold(0.0f64, |most, r| most.max(r.abs())).min(f64::MAX / 4.0);
        let reach = if reach > 0.0 { reach } else { 1.0 };
        let bars = histogram(residuals.iter().copied(), (-reach, reach), BINS);
        let marks = vec![Mark::Bars(bars)];
        let (x_range, x) = (Some((-reach, reach)), "residual (observed - predicted)");
        let plot = Plot { label: "Histogram of the residuals", x, y: "rows", x_range, y_range: None, marks };
        return plot.figure("Distribution of residuals", &format!("All {} rows.", thousands(n)), &[]);
    }
    let standard: Vec<f64> = residuals.iter().zip(&own.std).map(|(r, s)| r / s).collect();
    let bars = histogram(standard.iter().copied(), (-REACH, REACH), BINS);
    let student = matches!(own.model.likelihood, Some(Likelihood::StudentT(_)));
    let mut marks = vec![Mark::Bars(bars)];
    // Standardised counts and Student-t residuals are not normal.
    if !counts && !student {
        let height = 2.0 * REACH / BINS as f64 * n as f64 / (2.0 * std::f64::consts::PI).sqrt();
        let curve = |i: i32| {
            let z = REACH * f64::from(i) / 40.0;
            (z, height * (-0.5 * z * z).exp())
        };
        marks.push(Mark::Line((-40..=40).map(curve).collect(), 1));
    }
    let beyond = standard.iter().filter(|z| z.abs() > 2.0).count();
    let unit = if student { "scale" } else { "standard deviation" };
    let mut caption = format!("{} have a residual beyond 2 predicted {unit}s.", share(beyond, n, "row"));
    if !counts && !student {
        caption += " The line is the normal distribution, which has 4.6 % beyond.";
    }
    caption += &format!(" The outer bars hold all rows beyond ±{REACH}.");
    let label = format!("Histogram of residuals over their predicted {unit}s: {caption}");
    let x = format!("residual / predicted {unit}");
    let plot = Plot { label: &label, x: &x, y: "rows", x_range: Some((-REACH, REACH)), y_range: None, marks };
    plot.figure("Distribution of residuals", &caption, &[])
}

fn coverage_figure(own: &Output, target: &str) -> String {
    let n = own.banded as f64;
    let points = own.bands.iter().map(|band| (100.0 * band.level, 100.0 * band.covered as f64 / n)).collect::<Vec<_>>();
    let least = points.iter().fold(40.0f64, |least, p| least.min(p.1));
    let low = 10.0 * (least / 10.0).floor();
    let ideal = Mark::Reference(vec![(40.0, 40.0), (100.0, 100.0)]);
    let listed: Vec<String> = points.iter().map(|(level, covered)| format!("{level:.0} %: {covered:.1} %")).collect();
    let label = format!("Coverage of the intervals of {target}. {}", listed.join(", "));
    let plot = Plot {
        label: &label,
        x: "probability of the interval, %",
        y: "rows in the interval, %",
        x_range: Some((40.0, 100.0)),
        y_range: Some((low.max(0.0), 100.0)),
        marks: vec![ideal, Mark::Dotted(points)],
    };
    plot.figure("Coverage of intervals", "Below the dashed line intervals are too narrow, above it too wide.", &[])
}

/// Draws the coverage of the intervals.
fn coverage(own: &Output, target: &str) -> String {
    if own.bands.is_empty() {
        return String::new();
    }
    let n = own.banded;
    let rows: Vec<Vec<String>> = own
        .bands
        .iter()
        .map(|band| {
            let covered = 100.0 * band.covered as f64 / n as f64;
            let chance = 200.0 * (band.level * (1.0 - band.level) / n as f64).sqrt();
            vec![
                format!("{:.0} %", 100.0 * band.level),
                format!("{covered:.1} %"),
                format!("{} of {}", thousands(band.covered), thousands(n)),
                format!("{chance:.1}"),
                number(band.widths / n as f64),
            ]
        })
        .collect();
    let head = ["interval", "covers", "rows", "± by chance, points", &format!("mean width, units of `{target}`")];
    let mut notes = String::new();
    if own.model.is_of_counts() {
        notes += " Intervals of counts end at whole numbers and cover more than their probability.";
    }
    if n < own.truth.len() {
        notes += &format!(" Counted on {} of {} rows, evenly spaced.", thousands(n), thousands(own.truth.len()));
    }
    let caption = format!(
        "Coverage of intervals. Right intervals differ from their probability by less than \"± by chance\" (two standard errors) in 19 of \
         20 tables of this size.{notes}"
    );
    table(&caption, &head, &rows, &[])
}

/// Returns the table of rows with the largest residuals.
fn largest(own: &Output, rows: &[usize]) -> String {
    let size = |i: usize| {
        let residual = (own.truth[i] - own.mean[i]).abs();
        own.std.get(i).map_or(residual, |std| residual / std)
    };
    let mut order: Vec<usize> = (0..rows.len()).filter(|i| !size(*i).is_nan()).collect();
    order.sort_by(|i, j| size(*j).total_cmp(&size(*i)));
    let row = |i: &usize| {
        let i = *i;
        let mut cells = vec![rows[i].to_string(), number(own.truth[i]), number(own.mean[i]), number(own.truth[i] - own.mean[i])];
        cells.extend(own.std.get(i).map(|std| number((own.truth[i] - own.mean[i]) / std)));
        cells
    };
    let cells: Vec<Vec<String>> = order.iter().take(LARGEST).map(row).collect();
    let mut head = vec!["row", "observed", "predicted", "residual"];
    let student = matches!(own.model.likelihood, Some(Likelihood::StudentT(_)));
    head.extend((!own.std.is_empty()).then_some(if student { "in scales" } else { "in standard deviations" }));
    table(
        "Rows with the largest residuals, counted from 0 in the table: worth a look for mistakes in the data.",
        &head,
        &cells,
        &[],
    )
}
