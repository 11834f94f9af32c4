//! The contents of a model file as text, for `inspect` and for reports.

use relvec::{Missing, Model, MultiClass};

use crate::args::Task;
use crate::encoding;
use crate::interpolation;
use crate::layout::Lines;
use crate::summary::{self, Seen, Summary};
use crate::text::{count, list, thousands};

/// Most names of a list that are shown.
const NAMES_SHOWN: usize = 20;

/// Returns the kind of model, the task and the targets.
pub(crate) fn headline(model: &Model) -> String {
    let machine = if model.margins.is_some() { "support vector machine" } else { "relevance vector machine" };
    let task = match summary::task(model) {
        Task::Regress => "regression",
        Task::Classify => "classification",
    };
    let of: Vec<String> = model.target.iter().chain(&model.targets).map(|name| format!("`{name}`")).collect();
    let of = if of.is_empty() { String::new() } else { format!(" of {}", list(&of, NAMES_SHOWN)) };
    format!("{machine}, {task}{of}")
}

/// Adds lines on all parts of the model except the weights, the most important first.
pub(crate) fn describe(model: &Model, summary: &Summary, lines: &mut Lines) {
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
            Some(Missing::Drop) => "rows with missing cells are left out",
            Some(Missing::Mean) => "filled with the means of the training rows",
            Some(Missing::Indicator) => "filled with the means of the training rows, and marked by extra features",
            None => "refused",
        };
        lines.line("missing cells", rule);
    }
    summary.describe(&Seen::default(), lines);
    let likelihood = model.likelihood.as_ref().map(|likelihood| format!("{} likelihood", likelihood.name()));
    let scheme = model.inference.as_ref().map(|name| format!("scheme {name}"));
    let formulation = model.margins.as_ref().map(|margins| format!("formulation {}", margins.formulation));
    let status = format!("{} after {}", model.status.name().replace('_', " "), count(model.iterations, "iteration"));
    let parts: Vec<String> = [Some(status), likelihood, scheme, formulation].into_iter().flatten().collect();
    lines.line("fit", &parts.join(", "));
    if model.interpolates {
        lines.line("interpolation", &interpolation::line(model));
    }
}

/// Returns the names of the functions of the model.
pub(crate) fn function_names(model: &Model) -> Vec<String> {
    let (outputs, classes) = (model.outputs(), model.classes.len());
    match outputs {
        1 => vec!["weight".into()],
        // The function of a pair is positive for its second class; the pairs are ordered by the larger class index.
        n if model.multi_class() == Some(MultiClass::OneVsOne) && classes > 2 && n == classes * (classes - 1) / 2 => {
            let pair = |(l, k): (usize, usize)| format!("{}/{}", model.classes[l], model.classes[k]);
            (0..classes).flat_map(|l| (0..l).map(move |k| (l, k))).map(pair).collect()
        }
        n if n == classes => model.classes.iter().map(ToString::to_string).collect(),
        n if n == model.targets.len() => model.targets.clone(),
        n => (1..=n).map(|k| format!("function {k}")).collect(),
    }
}
