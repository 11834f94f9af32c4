//! The sections of a report on predicted classes: measures, confusions, curves, reliability.

use relvec::Model;

use super::evaluation::{Evaluation, Found};
use super::html::{paragraph, section, table};
use super::page::{Sections, measures_table};
use super::plot::{Mark, Plot, histogram, number, thinned};
use crate::decision::class_name;
use crate::measures::{Classes, Pair};
use crate::metrics::{self, Ranking};
use crate::text::{cut, share, thousands};

/// Most classes with curves, most classes in the confusion matrix, and most pairs listed if there are more classes.
const CLASSES_DRAWN: usize = 8;
const CLASSES_CROSSED: usize = 15;
const PAIRS: usize = 20;
/// Most classes for which the confusion matrix fits beside another table.
const CLASSES_BESIDE: usize = 4;
/// Most classes in the table of classes.
const CLASSES_LISTED: usize = 50;
/// Most points of a curve; more cannot be distinguished.
const CURVE_POINTS: usize = 300;
/// Bars of the histogram of probabilities.
const BINS: usize = 20;
/// Most mistakes that are listed.
const MISTAKES: usize = 10;

/// Returns the sections on classes, with their warnings.
pub(super) fn sections(model: &Model, own: &Evaluation) -> Sections {
    let Found::Classes(classes) = &own.found else { return Sections::default() };
    let mut out = Sections::default();
    let measures = classes.measures(None);
    let n = classes.truth.len();
    let mut sizes = vec![0usize; model.n_classes().unwrap_or(2)];
    classes.truth.iter().for_each(|k| sizes[*k] += 1);
    let largest = (0..sizes.len()).fold(0, |best, k| if sizes[k] > sizes[best] { k } else { best });
    let wrong = n - classes.truth.iter().zip(&classes.predicted).filter(|(k, l)| k == l).count();
    let mistaken = classes.mistakes(model);
    let stop = if mistaken.ends_with('.') { "" } else { "." };
    let verdict = format!(
        "{mistaken}{stop} Always predicting {}, the most frequent class, misclassifies {}.",
        class(model, largest),
        share(n - sizes[largest], n, "row")
    );
    out.verdict.push(verdict);
    let shown = measures.iter().filter(|own| matches!(own.key, "error_rate" | "log_loss"));
    out.measures.extend(shown.map(|own| (own.name.clone(), own.with_unit())));
    if wrong >= n - sizes[largest] {
        out.warnings.push(if sizes[largest] == n {
            "the rows are all of one class: they do not show whether the model distinguishes classes. Advice: use a table with rows of each \
             class."
                .into()
        } else {
            "the predictions are no better than always the most frequent class. Advice: check that the table is of the kind that the model \
             was trained on, and that the features carry information."
                .into()
        });
    }
    let mut body = measures_table(&measures, "class shares");
    body += &format!("<p class=\"small\">{}</p>\n", paragraph(note(classes)));
    let figures = curves(model, classes, &sizes) + &reliability(classes);
    if !figures.is_empty() {
        body += &format!("<div class=\"figures\">{figures}</div>\n");
    }
    // Tables stand side by side if there is room for both.
    let tables = [confusions(model, classes, &sizes), each_class(model, classes, &sizes), mistakes(model, classes, &own.rows)];
    match sizes.len() > CLASSES_BESIDE {
        true => body += &tables.concat(),
        false => body += &format!("<div class=\"figures\">{}</div>\n", tables.concat()),
    }
    out.html = section("predictions", "Predictions", &body);
    out
}

/// Returns the name of class `k`, cut if it is long.
fn class(model: &Model, k: usize) -> String {
    cut(&class_name(model, k))
}

fn note(own: &Classes) -> &'static str {
    match own.log.is_some() {
        true => {
            "\"Class shares\" predicts the frequencies of the classes among the rows of this table. Log loss is the mean of -ln p of the true \
             class; one nat is a factor of e in probability. The calibration error is the mean distance between probability and share that \
             is right."
        }
        false => {
            "\"Class shares\" predicts the most frequent class among the rows of this table. This support vector machine was trained without \
             probabilities."
        }
    }
}

/// Draws ROC curves and precision against recall.
fn curves(model: &Model, own: &Classes, sizes: &[usize]) -> String {
    let mut rankings = own.rankings();
    if rankings.is_empty() {
        return String::new();
    }
    let all = rankings.len();
    rankings.sort_by_key(|(k, _)| (std::cmp::Reverse(sizes[*k]), *k));
    rankings.truncate(CLASSES_DRAWN);
    let names: Vec<String> = rankings.iter().map(|(k, _)| class(model, *k)).collect();
    let few = match all > CLASSES_DRAWN {
        true => format!(" The {CLASSES_DRAWN} most frequent of {all} classes are drawn."),
        false => String::new(),
    };
    let lines = |points: fn(&Ranking) -> Vec<(f64, f64)>| -> Vec<Mark> {
        let line = |(i, (_, ranking)): (usize, &(usize, Ranking))| Mark::Line(thinned(&points(ranking), CURVE_POINTS), i);
        rankings.iter().enumerate().map(line).collect()
    };
    let by = |value: fn(&Ranking) -> f64| -> String {
        let one = |(name, (_, ranking)): (&String, &(usize, Ranking))| format!("{name}: {}", number(value(ranking)));
        names.iter().zip(&rankings).map(one).collect::<Vec<_>>().join(", ")
    };
    let unit = Some((0.0, 1.0));
    let mut marks = vec![Mark::Reference(vec![(0.0, 0.0), (1.0, 1.0)])];
    marks.extend(lines(Ranking::roc));
    let areas = by(Ranking::area);
    let label = format!("ROC curves. Area under the curve of {areas}");
    let (x, y) = ("share of the other classes", "share of the class");
    let roc = Plot { label: &label, x, y, x_range: unit, y_range: unit, marks };
    let caption = format!("Area under the curve of {areas}. On the dashed line the order of the rows is chance.{few}");
    let precision = by(Ranking::average_precision);
    let label = format!("Precision against recall. Average precision of {precision}");
    let marks = lines(Ranking::precision_recall);
    let recall = Plot { label: &label, x: "recall", y: "precision", x_range: unit, y_range: unit, marks };
    roc.figure("ROC curve", &caption, &names)
        + &recall.figure("Precision and recall", &format!("Average precision of {precision}.{few}"), &names)
}

/// Draws the probabilities of predicted classes against the shares of correct rows, and a histogram of these
/// probabilities.
fn reliability(own: &Classes) -> String {
    let Some((_, log)) = &own.log else { return String::new() };
    let bins = metrics::reliability(&own.truth, log.view());
    let points: Vec<(f64, f64)> = bins.iter().filter(|bin| bin.rows > 0).map(|bin| bin.point()).collect();
    let listed: Vec<String> = points.iter().map(|(p, right)| format!("{p:.2}: {right:.2}")).collect();
    let label = format!("Share that is right by probability of the predicted class. {}", listed.join(", "));
    let unit = Some((0.0, 1.0));
    let marks = vec![Mark::Reference(vec![(0.0, 0.0), (1.0, 1.0)]), Mark::Dotted(points)];
    let (x, y) = ("probability of the predicted class", "share that is right");
    let plot = Plot { label: &label, x, y, x_range: unit, y_range: unit, marks };
    let error = 100.0 * metrics::calibration_error(&own.truth, log.view());
    let caption = format!(
        "Calibration error {} %. Below the dashed line the model is overconfident, above it underconfident. Dots of few rows are chance.",
        number(error)
    );
    let top = log.outer_iter().map(|row| row.iter().fold(f64::NEG_INFINITY, |most, p| most.max(*p)).exp());
    let marks = vec![Mark::Bars(histogram(top.clone(), (0.0, 1.0), BINS))];
    let sure = top.filter(|p| *p > 0.9).count();
    let second = format!("{} have a probability above 0.9.", share(sure, own.truth.len(), "row"));
    let label = format!("Histogram of the probabilities of the predicted classes: {second}");
    let rows = Plot { label: &label, x, y: "rows", x_range: unit, y_range: None, marks };
    plot.figure("Reliability", &caption, &[]) + &rows.figure("Probabilities", &second, &[])
}

/// Returns the table of confusions.
fn confusions(model: &Model, own: &Classes, sizes: &[usize]) -> String {
    let names: Vec<String> = (0..sizes.len()).map(|k| class(model, k)).collect();
    let (pairs, _) = own.confusions();
    if sizes.len() > CLASSES_CROSSED {
        let row = |pair: &Pair| vec![names[pair.truth].clone(), names[pair.predicted].clone(), thousands(pair.rows)];
        let rows: Vec<Vec<String>> = pairs.iter().take(PAIRS).map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        return table("The most frequent confusions.", &["true class", "predicted", "rows"], &rows, &[0, 1]);
    }
    let mut counts = vec![vec![0usize; sizes.len()]; sizes.len()];
    own.truth.iter().zip(&own.predicted).for_each(|(k, l)| counts[*k][*l] += 1);
    let row = |(name, counts): (&String, &Vec<usize>)| {
        std::iter::once(name.clone()).chain(counts.iter().map(|n| thousands(*n))).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = names.iter().zip(&counts).map(row).collect();
    let head: Vec<&str> = std::iter::once("true class").chain(names.iter().map(String::as_str)).collect();
    table("Confusion matrix: rows of each true class by predicted class.", &head, &rows, &[0])
}

fn each_class(model: &Model, own: &Classes, sizes: &[usize]) -> String {
    let mut predicted = vec![0usize; sizes.len()];
    let mut right = vec![0usize; sizes.len()];
    for (k, l) in own.truth.iter().zip(&own.predicted) {
        predicted[*l] += 1;
        right[*k] += usize::from(k == l);
    }
    let percent = |part: usize, all: usize| match all {
        0 => "-".to_string(),
        _ => format!("{:.1} %", 100.0 * part as f64 / all as f64),
    };
    let trained = &model.class_frequencies;
    let row = |k: usize| {
        let mut cells = vec![class(model, k), thousands(sizes[k]), percent(sizes[k], own.truth.len())];
        cells.extend(trained.get(k).map(|share| format!("{:.1} %", 100.0 * share)));
        cells.extend([percent(right[k], sizes[k]), percent(right[k], predicted[k])]);
        cells
    };
    let rows: Vec<Vec<String>> = (0..sizes.len().min(CLASSES_LISTED)).map(row).collect();
    let mut head = vec!["class", "rows", "share here"];
    head.extend((!trained.is_empty()).then_some("share in training"));
    head.extend(["recall", "precision"]);
    let more = match sizes.len() > CLASSES_LISTED {
        true => format!(" The first {CLASSES_LISTED} of {} classes.", sizes.len()),
        false => String::new(),
    };
    let caption = format!(
        "Each class. Recall: rows of the class that are predicted so. Precision: rows predicted so that are of the class.{more}"
    );
    table(&caption, &head, &rows, &[0])
}

/// Returns the table of the mistakes with the highest predicted probability.
fn mistakes(model: &Model, own: &Classes, rows: &[usize]) -> String {
    let Some((_, log)) = &own.log else { return String::new() };
    let mut wrong: Vec<usize> = (0..rows.len()).filter(|i| own.truth[*i] != own.predicted[*i]).collect();
    let of = |i: usize| log[[i, own.predicted[i]]];
    wrong.sort_by(|i, j| of(*j).total_cmp(&of(*i)));
    let p = |i: usize, k: usize| number(log[[i, k]].exp());
    let row = |i: &usize| {
        let (truth, predicted) = (own.truth[*i], own.predicted[*i]);
        vec![rows[*i].to_string(), class(model, truth), p(*i, truth), class(model, predicted), p(*i, predicted)]
    };
    let cells: Vec<Vec<String>> = wrong.iter().take(MISTAKES).map(row).collect();
    if cells.is_empty() {
        return String::new();
    }
    let caption =
        "Mistakes of which the model was most certain, by rows counted from 0 in the table: worth a look for wrong labels.";
    table(caption, &["row", "true class", "probability", "predicted", "probability"], &cells, &[1, 3])
}
