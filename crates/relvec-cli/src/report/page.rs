//! The page of a report: the main results first, then the predictions, then the model.

use relvec::{Model, Status};
use serde::Deserialize;

use super::evaluation::Evaluation;
use super::html::{paragraph, table, text};
use super::{classes, machine, values};
use crate::contents;
use crate::interpolation;
use crate::measures::Measure;
use crate::text::{count, thousands};

const STYLE: &str = include_str!("style.css");

/// Information in a report beside the model and its predictions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// Name of the model file or of the estimator.
    pub model: String,
    /// Name of the table, if it has one.
    pub table: Option<String>,
    /// True if advice names parameters in Python; otherwise it names options of the command.
    pub python: bool,
    /// Warnings on the fit; `None` for those that the model file contains.
    pub warnings: Option<Vec<String>>,
    /// Further remarks.
    pub notes: Vec<String>,
    /// Settings of the fit: names and values.
    pub settings: Vec<(String, String)>,
    /// Log evidence of each iteration, in nats; empty if unknown, since model files do not contain it.
    pub trace: Vec<f64>,
    /// Duration of the fit in seconds.
    pub seconds: Option<f64>,
}

/// Content of one half of the report.
#[derive(Default)]
pub(super) struct Sections {
    pub html: String,
    /// Sentences on the quality of the predictions.
    pub verdict: Vec<String>,
    /// Names and values of the most important measures.
    pub measures: Vec<(String, String)>,
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
}

/// Most targets whose verdict is at the top of the page.
pub(super) const VERDICTS: usize = 3;
/// Most measures at the top of the page.
const TILES: usize = 4;

/// Returns the report as an HTML page without scripts and without links to other files. `evaluation` has at least one
/// row.
pub(super) fn page(model: &Model, evaluation: Option<&Evaluation>, context: &Context) -> String {
    let found = match evaluation {
        Some(own) if model.n_classes().is_some() => classes::sections(model, own),
        Some(own) => values::sections(model, own, context.python),
        None => Sections::default(),
    };
    let mut warnings = context.warnings.clone().unwrap_or_else(|| of_model(model));
    warnings.extend(found.warnings);
    let mut notes = context.notes.clone();
    notes.extend(found.notes);
    if let Some(own) = evaluation
        && own.len() == model.n_rows
    {
        let rows = thousands(model.n_rows);
        notes.push(format!(
            "the model was trained on {rows} rows too. If these are the same rows, the measures are optimistic: use rows that were not \
             used for training."
        ));
    }
    let headline = contents::headline(model);
    let title = format!("{}: {headline}", context.model);
    let on = match evaluation {
        Some(own) => {
            let table = context.table.as_ref().map_or(String::new(), |name| format!(" of {name}"));
            format!("Evaluated on {} rows{table}.", thousands(own.len()))
        }
        None => "No table of rows was given, so the report describes only the model.".into(),
    };
    let summary = found.verdict.iter().take(VERDICTS).map(|text| format!("<p>{}</p>\n", paragraph(text))).collect::<String>();
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n";
    out += &format!("<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n", text(&title));
    out += &format!(
        "<h1>{}</h1>\n<p class=\"lead\">{}. {}</p>\n",
        text(&context.model),
        paragraph(&first_upper(&headline)),
        paragraph(&on)
    );
    out += &tiles(model, &found.measures);
    out += &format!("</header>\n<main>\n{summary}");
    out += &boxes(&warnings, "warning", "Warning");
    out += &boxes(&notes, "note", "Note");
    out += &found.html;
    out += &machine::sections(model, context);
    let version = env!("CARGO_PKG_VERSION");
    out + &format!("</main>\n<footer><p>Written by relvec {version}. Rows are counted from 0.</p></footer>\n</body>\n</html>\n")
}

/// Returns the warnings on the fit that the model file contains.
fn of_model(model: &Model) -> Vec<String> {
    let mut out = vec![];
    if !matches!(model.status, Status::Converged) {
        let how = model.status.name().replace('_', " ");
        out.push(format!(
            "the fit did not converge ({how} after {}). Advice: fit again with a higher limit (--set max_iterations=N, --set \
             time_limit=SECONDS).",
            count(model.iterations, "iteration")
        ));
    }
    if model.relevance.is_empty() && model.margins.is_none() {
        out.push(
            "the model has no relevance vector and predicts a constant. Advice: check that the features carry information, or use a wider \
             kernel (a smaller --gamma)."
                .into(),
        );
    }
    if model.interpolates {
        out.push(format!(
            "interpolation of the training rows, {}. Advice: fit with --cv 5, which measures predictions of held-out rows.",
            interpolation::line(model)
        ));
    }
    out
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the most important numbers as tiles.
fn tiles(model: &Model, measures: &[(String, String)]) -> String {
    let facts = machine::facts(model);
    let wanted = ["trained on", "relevance vectors", "support vectors", "centres", "noise", "log evidence", "log probability"];
    let own = wanted.iter().filter_map(|name| facts.iter().find(|(own, _)| own == name));
    // Tiles are brief; details follow below.
    let brief = |(name, value): &(String, String)| {
        let parts = if name == "trained on" { 2 } else { 1 };
        let shown = value.split("; ").next().unwrap_or(value).split(", ").take(if name == "noise" { usize::MAX } else { parts });
        (name.clone(), shown.collect::<Vec<_>>().join(", "))
    };
    let all = measures.iter().take(TILES).cloned().chain(own.map(brief));
    let one = |(name, value): (String, String)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text(&name), text(&value));
    format!("<dl class=\"tiles\">{}</dl>\n", all.map(one).collect::<String>())
}

fn boxes(texts: &[String], class: &str, word: &str) -> String {
    texts.iter().map(|text| format!("<p class=\"{class}\"><strong>{word}:</strong> {}</p>\n", paragraph(text))).collect()
}

/// Returns the measures as a table. `constant`: name of the constant prediction.
pub(super) fn measures_table(measures: &[Measure], constant: &str) -> String {
    let row = |own: &Measure| vec![format!("{} ({})", own.name, own.unit), own.own(), own.of_constant(), own.better().into()];
    let rows: Vec<Vec<String>> = measures.iter().map(row).collect();
    table("The model beside a constant prediction.", &["measure", "model", constant, "better is"], &rows, &[0, 3])
}
