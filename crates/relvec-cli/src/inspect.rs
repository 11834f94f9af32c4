//! `relvec inspect`: what a model file holds.

use std::io::Write;

use anyhow::Result;
use relvec::{FORMAT_VERSION, Model};

use crate::args::InspectArgs;
use crate::model_file;
use crate::summary::{self, Summary};
use crate::text::{list, significant};

/// Relevance vectors listed as text; JSON has them all.
const ROWS_SHOWN: usize = 20;
const NAMES_SHOWN: usize = 20;

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let model = model_file::read(&args.model)?;
    let summary = Summary::of(&model, None);
    let text = if args.json { summary.to_json()? + "\n" } else { describe(&model, &summary) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn describe(model: &Model, summary: &Summary) -> String {
    let mut text = format!(
        "{:<20}{}, {}, {} likelihood, {} inference, format version {FORMAT_VERSION}\n",
        "machine",
        model.machine,
        summary::task(model).name(),
        model.likelihood.name(),
        model.inference,
    );
    text += &summary.to_text();
    let mut line = |name: &str, value: String| text += &format!("{name:<20}{value}\n");
    if let Some(target) = &model.target {
        line("target", target.clone());
    }
    if !model.features.is_empty() {
        line("feature names", list(&model.features, NAMES_SHOWN));
    }
    line("standardised", if model.scaling.is_some() { "yes, by the model" } else { "no" }.into());
    let intercept = match model.intercept_alpha {
        Some(_) => significant(model.expansion.intercept, 6),
        None => "none".into(),
    };
    line("intercept", intercept);
    if !model.relevance.is_empty() {
        text += &format!("\n{:>12}{:>16}{:>16}\n", "row", "weight", "alpha");
        for ((row, weight), alpha) in model.relevance.iter().zip(&model.expansion.weights).zip(&model.alpha).take(ROWS_SHOWN) {
            text += &format!("{row:>12}{:>16}{:>16}\n", significant(*weight, 6), significant(*alpha, 6));
        }
        if model.relevance.len() > ROWS_SHOWN {
            text += &format!("{:>12}\n", format!("... {} in all", model.relevance.len()));
        }
    }
    text
}
