//! `relvec inspect`: shows the contents of a model file.

use anyhow::{Context, Result};
use relvec::{FORMAT_VERSION, Model};

use crate::args::InspectArgs;
use crate::contents;
use crate::layout::{self, Column, Lines};
use crate::model_file;
use crate::output;
use crate::summary::Summary;
use crate::terminal::{self, Stream};
use crate::text::{list, significant, thousands};

/// Most relevance vectors listed as text. JSON contains all.
const ROWS_SHOWN: usize = 20;
const NAMES_SHOWN: usize = 20;
/// Most classes or targets with a column of weights. JSON contains all.
const OUTPUTS_SHOWN: usize = 8;
/// Significant digits of weights.
const DIGITS: usize = 4;

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let model = model_file::read(&args.model)?;
    let summary = Summary::of(&model, None, None);
    if args.json {
        return output::print(&(summary.to_json()? + "\n"));
    }
    let name = args.model.display();
    let bytes = std::fs::metadata(&args.model).with_context(|| format!("cannot read `{name}`"))?.len();
    output::print(&describe(&model, &summary, &name.to_string(), bytes))
}

fn describe(model: &Model, summary: &Summary, file: &str, bytes: u64) -> String {
    let mut lines = Lines::new(Stream::Stdout);
    contents::describe(model, summary, &mut lines);
    lines.line("file", &format!("format {FORMAT_VERSION}, {}", size(bytes)));
    let mut text = terminal::headline(&format!("{file}: {}", contents::headline(model)), Stream::Stdout);
    text += &format!("\n{}", lines.text);
    text += &weights(model);
    if !model.features.is_empty() {
        let names = format!("Features: {}", list(&model.features, NAMES_SHOWN));
        text += &format!("\n{}\n", terminal::paragraph(&names, Stream::Stdout));
    }
    text
}

/// Returns a file size in a unit with up to three digits before the point.
fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB"];
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", significant(value, 3), units[unit])
}

/// Returns a table of the relevance vectors with their weights, with the intercept below.
fn weights(model: &Model) -> String {
    let outputs = model.outputs();
    // Models that consist of binary models, support vector machines and process priors have no precisions of single
    // weights.
    let with_precision = !model.alpha.is_empty();
    let names = contents::function_names(model);
    // If the table is too wide, the last columns are dropped first.
    let mut columns = vec![Column::number("row", 0)];
    let shown = outputs.min(OUTPUTS_SHOWN);
    columns.extend(names.iter().take(shown).enumerate().map(|(k, name)| Column::number(&terminal::name(name), k)));
    if with_precision {
        columns.push(Column::number("precision", 0));
    }
    let numbers = |values: &[f64]| values.iter().take(shown).map(|v| significant(*v, DIGITS)).collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = vec![];
    for (i, (row, weights)) in model.relevance.iter().zip(model.expansion.weights.outer_iter()).take(ROWS_SHOWN).enumerate() {
        let mut cells = vec![row.to_string()];
        cells.extend(numbers(&weights.to_vec()));
        cells.extend(with_precision.then(|| model.alpha.get(i).map_or(String::new(), |alpha| significant(*alpha, DIGITS))));
        rows.push(cells);
    }
    // An intercept that was pruned or switched off has no precision and no line.
    if model.intercept_alpha.is_some() || model.posterior.is_none() {
        let mut cells = vec!["intercept".to_string()];
        cells.extend(numbers(&model.expansion.intercept));
        cells.extend(with_precision.then(|| model.intercept_alpha.map_or(String::new(), |alpha| significant(alpha, DIGITS))));
        rows.push(cells);
    }
    let (table, dropped) = layout::table(&columns, &rows, terminal::table_width(Stream::Stdout));
    let mut text = format!("\n{table}");
    if model.relevance.len() > ROWS_SHOWN {
        text += &format!("{ROWS_SHOWN} of {} rows shown; --json shows all rows\n", thousands(model.relevance.len()));
    }
    let left = outputs - shown + dropped.len();
    if left > 0 {
        text += &format!("weights of {left} more not shown; the model file contains them\n");
    }
    text
}
