//! `relvec inspect`: what a model file holds.

use anyhow::{Context, Result};
use relvec::{FORMAT_VERSION, Missing, Model};

use crate::args::{InspectArgs, Task};
use crate::encoding;
use crate::interpolation;
use crate::layout::{self, Column, Lines};
use crate::model_file;
use crate::output;
use crate::summary::{self, Seen, Summary};
use crate::terminal::{self, Stream};
use crate::text::{count, list, significant, thousands};

/// Relevance vectors listed as text; JSON has them all.
const ROWS_SHOWN: usize = 20;
const NAMES_SHOWN: usize = 20;
/// Classes or targets with a column each; more are left to JSON.
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

/// The first line: what the file holds.
fn headline(model: &Model, file: &str) -> String {
    let machine = if model.margins.is_some() { "support vector machine" } else { "relevance vector machine" };
    let task = match summary::task(model) {
        Task::Regress => "regression",
        Task::Classify => "classification",
    };
    let of: Vec<String> = model.target.iter().chain(&model.targets).map(|name| format!("`{name}`")).collect();
    let of = if of.is_empty() { String::new() } else { format!(" of {}", list(&of, NAMES_SHOWN)) };
    format!("{file}: {machine}, {task}{of}")
}

fn describe(model: &Model, summary: &Summary, file: &str, bytes: u64) -> String {
    let mut lines = Lines::new(Stream::Stdout);
    if let [negative, positive] = model.classes.as_slice() {
        lines.line("classes", &format!("{negative}, {positive} (positive weights are evidence for {positive})"));
    } else if !model.classes.is_empty() {
        lines.line("classes", &list(&model.classes.iter().map(ToString::to_string).collect::<Vec<_>>(), NAMES_SHOWN));
    }
    let scaled = if model.scaling.is_some() { ", standardised by the model" } else { "" };
    let rows = thousands(model.n_rows);
    let columns = model.encoding.as_ref().map_or(String::new(), |own| format!(" of {}", count(own.columns.len(), "column")));
    lines.line("trained on", &format!("{rows} rows, {}{columns}{scaled}", count(model.n_features, "feature")));
    if let Some(encoding) = &model.encoding {
        if let Some(categories) = encoding::of_categories(encoding) {
            lines.line("categories", &categories);
        }
        let rule = match encoding.missing {
            Some(Missing::Drop) => "their rows are left out",
            Some(Missing::Mean) => "filled with the means of the training rows",
            Some(Missing::Indicator) => "filled with the means of the training rows, and told by features of their own",
            None => "refused",
        };
        lines.line("missing cells", rule);
    }
    summary.describe(&Seen::default(), &mut lines);
    let likelihood = model.likelihood.as_ref().map(|likelihood| format!("{} likelihood", likelihood.name()));
    let scheme = model.inference.as_ref().map(|name| format!("scheme {name}"));
    let formulation = model.margins.as_ref().map(|margins| format!("formulation {}", margins.formulation));
    let status = format!("{} after {}", model.status.name().replace('_', " "), count(model.iterations, "iteration"));
    let parts: Vec<String> = [Some(status), likelihood, scheme, formulation].into_iter().flatten().collect();
    lines.line("fit", &parts.join(", "));
    if model.interpolates {
        lines.line("interpolation", &interpolation::line(model));
    }
    lines.line("file", &format!("format {FORMAT_VERSION}, {}", size(bytes)));
    let mut text = terminal::headline(&headline(model, file), Stream::Stdout);
    text += &format!("\n{}", lines.text);
    text += &weights(model);
    if !model.features.is_empty() {
        let names = format!("Features: {}", list(&model.features, NAMES_SHOWN));
        text += &format!("\n{}\n", terminal::paragraph(&names, Stream::Stdout));
    }
    text
}

/// Bytes in a unit that leaves up to three digits before the point.
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

/// The relevance vectors with their weights, and the intercept below them.
fn weights(model: &Model) -> String {
    let outputs = model.outputs();
    // A committee has no precision of its own, a support vector machine and a process prior none at all.
    let with_precision = !model.alpha.is_empty();
    let names: Vec<String> = match outputs {
        1 => vec!["weight".into()],
        // The outputs of a committee and of several support vectors' functions are pairs of classes, not classes.
        _ if outputs == model.classes.len() => model.classes.iter().map(ToString::to_string).collect(),
        _ if outputs == model.targets.len() => model.targets.clone(),
        _ => (1..=outputs).map(|k| format!("function {k}")).collect(),
    };
    // The last columns go first where the table is too wide.
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
    // A bias of an RVM that was pruned, or switched off, has no precision.
    if model.intercept_alpha.is_some() || model.posterior.is_none() {
        let mut cells = vec!["intercept".to_string()];
        cells.extend(numbers(&model.expansion.intercept));
        cells.extend(with_precision.then(|| model.intercept_alpha.map_or(String::new(), |alpha| significant(alpha, DIGITS))));
        rows.push(cells);
    }
    let (table, dropped) = layout::table(&columns, &rows, terminal::table_width(Stream::Stdout));
    let mut text = format!("\n{table}");
    if model.relevance.len() > ROWS_SHOWN {
        text += &format!("{ROWS_SHOWN} of {} rows shown; --json has the rows of all\n", thousands(model.relevance.len()));
    }
    let left = outputs - shown + dropped.len();
    if left > 0 {
        text += &format!("weights of {left} more not shown; the model file has them\n");
    }
    text
}
