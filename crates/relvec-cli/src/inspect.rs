//! `relvec inspect`: what a model file holds.

use anyhow::Result;
use relvec::{FORMAT_VERSION, Model};

use crate::args::InspectArgs;
use crate::model_file;
use crate::output;
use crate::summary::{self, Summary};
use crate::terminal;
use crate::text::{list, significant};

/// Numbers of a line.
const NUMBERS_SHOWN: usize = 10;
/// Relevance vectors listed as text; JSON has them all.
const ROWS_SHOWN: usize = 20;
const NAMES_SHOWN: usize = 20;

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let model = model_file::read(&args.model)?;
    let summary = Summary::of(&model, None, None);
    let text = if args.json { summary.to_json()? + "\n" } else { terminal::escaped(&describe(&model, &summary)).into_owned() };
    output::print(&text)
}

fn describe(model: &Model, summary: &Summary) -> String {
    let kind = match (&model.likelihood, &model.inference, &model.margins) {
        (Some(likelihood), Some(inference), _) => format!("{} likelihood, {inference} inference", likelihood.name()),
        (.., Some(margins)) => format!("formulation {}", margins.formulation),
        _ => "of an unknown kind".into(),
    };
    let (machine, task) = (&model.machine, summary::task(model).name());
    let mut text = format!("{:<20}{machine}, {task}, {kind}, format version {FORMAT_VERSION}\n", "machine");
    text += &summary.to_text();
    let mut line = |name: &str, value: String| text += &format!("{name:<20}{value}\n");
    if let Some(target) = &model.target {
        line("target", terminal::name(target).into_owned());
    }
    if !model.features.is_empty() {
        line("feature names", list(&model.features, NAMES_SHOWN));
    }
    line("standardised", if model.scaling.is_some() { "yes, by the model" } else { "no" }.into());
    // A bias of an RVM that was pruned, or switched off, has no precision.
    let intercept = match (model.intercept_alpha, &model.posterior) {
        (None, Some(_)) => "none".into(),
        _ => numbers(&model.expansion.intercept),
    };
    line("intercept", intercept);
    if !model.relevance.is_empty() {
        text += &match (model.outputs(), &model.posterior) {
            (1, Some(_)) if model.process.is_none() => format!("\n{:>12}{:>16}{:>16}\n", "row", "weight", "alpha"),
            (1, _) => format!("\n{:>12}{:>16}\n", "row", "weight"),
            (_, Some(_)) => {
                let of = if model.has_several_outputs() { "outputs" } else { "classes" };
                let alpha = if model.process.is_none() { "alpha" } else { "" };
                format!("\n{:>12}{alpha:>16}    weights of the {of}\n", "row")
            }
            (_, None) => format!("\n{:>12}{:>16}    weights of the functions\n", "row", ""),
        };
        // A committee has no alpha of its own, a support vector machine and a process prior none at all.
        let alpha = model.alpha.iter().map(|a| significant(*a, 6)).chain(std::iter::repeat(String::new()));
        let rows = model.relevance.iter().zip(model.expansion.weights.outer_iter()).zip(alpha);
        for ((row, weights), alpha) in rows.take(ROWS_SHOWN) {
            let line = match weights.len() {
                1 => format!("{row:>12}{:>16}{alpha:>16}", numbers(&weights.to_vec())),
                _ => format!("{row:>12}{alpha:>16}    {}", numbers(&weights.to_vec())),
            };
            text += &format!("{}\n", line.trim_end());
        }
        if model.relevance.len() > ROWS_SHOWN {
            text += &format!("{:>12}\n", format!("... {} in all", model.relevance.len()));
        }
    }
    text
}

/// Some numbers of one line.
fn numbers(values: &[f64]) -> String {
    list(&values.iter().map(|v| significant(*v, 6)).collect::<Vec<_>>(), NUMBERS_SHOWN)
}
