//! `relvec report`: describes a model and its predictions on one page that needs neither of them.

mod classes;
mod evaluation;
mod html;
mod machine;
mod page;
mod plot;
mod values;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use ndarray::ArrayView2;
use relvec::Model;

pub use self::evaluation::{Evaluation, Truth};
pub use self::page::Context;
use crate::args::ReportArgs;
use crate::blocks::{Blocks, Wanted, true_value};
use crate::decision::true_class;
use crate::live::Live;
use crate::model_file;
use crate::output;
use crate::text::{list, share};
use crate::training::Known;

/// Most names of a list that are shown.
const NAMES_SHOWN: usize = 10;

/// Returns a report as an HTML page without scripts and without links to other files. Without an `evaluation`, or
/// without rows in it, the report describes only the model.
///
/// # Errors
/// The intervals of counts exceed the range of numbers.
pub fn report_html(model: &Model, evaluation: Option<Evaluation>, context: &Context) -> relvec::Result<String> {
    let mut evaluation = evaluation.filter(|own| !own.is_empty());
    if let Some(own) = &mut evaluation {
        own.finish()?;
    }
    Ok(page::page(model, evaluation.as_ref(), context))
}

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let inputs: Vec<_> = args.data.iter().chain([&args.model]).map(|path| path.as_path()).collect();
    output::apart("-o", Some(&args.output), &inputs)?;
    output::check(&args.output)?;
    let model = model_file::read(&args.model)?;
    let mut context = Context { model: file_name(&args.model), ..Context::default() };
    let pool = relvec::thread_pool(args.threads)?;
    let evaluation = match &args.data {
        Some(path) => {
            context.table = Some(file_name(path));
            let _live = Live::new("predicting the rows");
            pool.install(|| evaluate(args, path, &model, &mut context.notes))?
        }
        None => None,
    };
    let html = pool.install(|| report_html(&model, evaluation, &context))?;
    output::write(&args.output, html.as_bytes())?;
    say!("wrote {}", args.output.display());
    Ok(())
}

/// Returns the name of a file without its folder, which means nothing to other readers of the page.
fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Returns the index and the column name of each target to evaluate.
fn targets<'a>(args: &'a ReportArgs, model: &'a Model) -> Result<Vec<(usize, &'a str)>> {
    let asked = args.target.as_deref();
    if !model.has_several_outputs() {
        return Ok(asked.or(model.target.as_deref()).map(|name| (0, name)).into_iter().collect());
    }
    let all = || model.targets.iter().map(String::as_str).enumerate();
    match asked {
        None => Ok(all().collect()),
        Some(name) => {
            let place = all().find(|(_, own)| *own == name);
            let expected = || anyhow!("--target {name}: the model's outputs are {}", list(&model.targets, NAMES_SHOWN));
            Ok(vec![place.ok_or_else(expected)?])
        }
    }
}

/// Predicts the rows of the table. Returns `None` if the table has none of the targets; `notes` then say so.
fn evaluate<'a>(args: &ReportArgs, path: &Path, model: &'a Model, notes: &mut Vec<String>) -> Result<Option<Evaluation<'a>>> {
    let known = Known::of(model, args.exposure.as_deref(), args.noise_variance.as_deref())?;
    let targets = targets(args, model)?;
    let mut wanted: Vec<Wanted> =
        targets.iter().map(|(_, name)| Wanted { name, what: "--target", needed: args.target.is_some() }).collect();
    let what = known.map(|(known, _)| format!("the {}", known.name()));
    wanted.extend(known.zip(what.as_deref()).map(|((_, name), what)| Wanted::needed(name, what)));
    let (mut blocks, columns) = Blocks::open(path, model, &wanted, 0, (&args.rules, &args.reading))?;
    let (of_targets, of_known) = columns.split_at(targets.len());
    let present: Vec<(usize, usize)> = targets.iter().zip(of_targets).filter_map(|((k, _), c)| c.map(|c| (*k, c))).collect();
    let missing = |c: &Option<usize>| c.is_none();
    let absent: Vec<&str> = targets.iter().zip(of_targets).filter(|(_, c)| missing(c)).map(|((_, name), _)| *name).collect();
    if targets.is_empty() {
        notes.push(
            "the model does not contain the name of its target, so the table is not used; name the column with --target NAME."
                .into(),
        );
    } else if !absent.is_empty() {
        let names = list(&absent, NAMES_SHOWN);
        notes.push(format!("the table has no column {names}, so predictions of it are not evaluated."));
    }
    for note in &*notes {
        say!("note: {note}");
    }
    if present.is_empty() {
        return Ok(None);
    }
    let outputs: Vec<usize> = present.iter().map(|(k, _)| *k).collect();
    let mut evaluation = Evaluation::new(model, &outputs)?;
    let classify = model.n_classes().is_some();
    let known = known.map(|(known, _)| known).zip(of_known.first().copied().flatten());
    let (mut values, mut labels, mut of_rows) = (vec![], vec![], vec![]);
    let mut names = HashMap::new();
    let mut row = 0;
    while let Some(batch) = blocks.next(|table| {
        match classify {
            true => labels.push(true_class(table, present[0].1, model, &mut names)?),
            false => present.iter().try_for_each(|(_, column)| true_value(table, *column).map(|value| values.push(value)))?,
        }
        if let Some((known, column)) = known {
            of_rows.push(known.read(table, column)?);
        }
        Ok(())
    })? {
        let rows: Vec<usize> = (row..).zip(batch.kept).filter(|(_, kept)| **kept).map(|(i, _)| i).collect();
        row += batch.kept.len();
        let truth = match classify {
            true => Truth::Classes(&labels),
            false => Truth::Values(ArrayView2::from_shape((rows.len(), present.len()), &values)?),
        };
        evaluation.push(batch.x, &rows, truth, &of_rows)?;
        values.clear();
        labels.clear();
        of_rows.clear();
    }
    blocks.tell("left out");
    if evaluation.is_empty() {
        bail!("every row has a missing cell, and such rows are left out; --missing mean fills them");
    }
    let dropped = row - evaluation.len();
    if dropped > 0 {
        notes.push(format!("{} with missing cells left out.", share(dropped, row, "row")));
    }
    if known.is_none() && model.noise_variance() == Some(0.0) {
        notes.push(
            "the model was trained with known noise variances, and those of these rows are not given: there are no intervals. \
             Name their column with --noise-variance NAME."
                .into(),
        );
    }
    Ok(Some(evaluation))
}
