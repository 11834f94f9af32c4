//! `relvec fit`: from a table to a model file.

use anyhow::{Context, Result};
use ndarray::{ArrayView1, ArrayView2};
use relvec::{Error, Model, Progress, Report, Rvm, Scaling, Status, Targets};

use crate::args::{FitArgs, Task};
use crate::failure::usage;
use crate::output;
use crate::progress::Reporter;
use crate::settings;
use crate::summary::Summary;
use crate::target::{Learnt, Target};
use crate::text::{count, list, significant};
use crate::training::{Roles, TrainingTable};

/// Features named in a warning.
const NAMES_SHOWN: usize = 10;
/// Rows of positive weight that a fit needs.
const LEAST_ROWS: usize = 2;

pub(crate) fn run(args: &FitArgs) -> Result<()> {
    let roles = roles(args)?;
    let (mut rvm, task) = settings::resolve(args)?;
    if let Some(path) = &args.output {
        output::check(path)?;
    }

    let TrainingTable { features, x, target, weights } = TrainingTable::read(&args.data, roles)?;
    check_rows(x.nrows(), weights.as_ref().map(|w| w.view()))?;
    let name = || format!("`{}`", args.data.display());
    let task = match task {
        Some(task) => task,
        None => {
            let task = announce(&target, &args.target).with_context(name)?;
            rvm.likelihood = settings::likelihood(task);
            task
        }
    };
    let learnt = target.learn(task).with_context(name)?;

    let scaling = (!args.no_standardize).then(|| Scaling::of(x.view(), weights.as_ref().and_then(|w| w.as_slice())));
    let scaled = scaling.as_ref().map(|s| s.apply(x.view()));
    let rows = scaled.as_ref().map_or(x.view(), |s| s.view());
    let (mut model, report) = train(&rvm, rows, &learnt, weights.as_ref().map(|w| w.view()))?;
    model.scaling = scaling;
    model.features = features;
    model.target = Some(args.target.clone());
    if let Learnt::Classes { names, .. } = learnt {
        model.classes = names;
    }

    if let Some(path) = &args.output {
        output::write(path, model.to_json()?.as_bytes())?;
    }
    warn(&model, &report, &rvm);
    let summary = Summary::of(&model, Some(report.seconds));
    eprint!("{}", summary.to_text());
    if let Some(path) = &args.output {
        eprintln!("{:<20}{}", "model", path.display());
    }
    if args.json {
        output::print(&(summary.to_json()? + "\n"))?;
    }
    Ok(())
}

/// The fit itself, with its progress on stderr.
fn train(rvm: &Rvm, x: ArrayView2<f64>, learnt: &Learnt, weights: Option<ArrayView1<f64>>) -> Result<(Model, Report)> {
    let targets = match learnt {
        Learnt::Real(values) => Targets::real(values.view()),
        Learnt::Classes { labels, names } => Targets::classes(labels, names.len()),
    };
    let mut reporter = Reporter::new();
    let observer = &mut |progress: &Progress| reporter.observe(progress);
    Ok(match weights {
        Some(weights) => rvm.fit(x, &targets.with_weights(weights), observer)?,
        None => rvm.fit(x, &targets, observer)?,
    })
}

/// The columns' roles; a column has one.
fn roles(args: &FitArgs) -> Result<Roles<'_>> {
    if args.drop.contains(&args.target) {
        return Err(usage(format!("--drop {}: this is the target", args.target)));
    }
    if let Some(weights) = &args.weights {
        if *weights == args.target {
            return Err(usage(format!("--weights {weights}: this is the target")));
        }
        if args.drop.contains(weights) {
            return Err(usage(format!("--drop {weights}: this is the column of weights")));
        }
    }
    Ok(Roles { target: &args.target, weights: args.weights.as_deref(), drop: &args.drop })
}

/// Before anything is worked out of the rows: a mean over none is no number.
fn check_rows(rows: usize, weights: Option<ArrayView1<f64>>) -> Result<()> {
    let found = weights.map_or(rows, |w| w.iter().filter(|w| **w > 0.0).count());
    if found < LEAST_ROWS {
        return Err(Error::TooFewRows { found, least: LEAST_ROWS }.into());
    }
    Ok(())
}

/// Settles the task by the target, and says so.
fn announce(target: &Target, name: &str) -> Result<Task> {
    let (task, reason) = target.guess_task()?;
    eprintln!("note: task {}, since the target `{name}` {reason} (--task decides otherwise)", task.name());
    Ok(task)
}

/// What the user should know of the data and of how the fit ended.
fn warn(model: &Model, report: &Report, rvm: &Rvm) {
    let repairs = &report.repairs;
    if !repairs.constant_features.is_empty() {
        let names: Vec<&str> =
            repairs.constant_features.iter().filter_map(|i| model.features.get(*i)).map(String::as_str).collect();
        eprintln!("warning: the same on every row, so of no use: {}", list(&names, NAMES_SHOWN));
    }
    if repairs.constant_target {
        eprintln!("warning: the target is constant; the model is that constant");
    }
    if repairs.noise_capped {
        eprintln!("warning: the target seems free of noise; the noise estimate was held at its lower bound");
    }
    if repairs.jitter > 0.0 {
        eprintln!("warning: nearly dependent basis functions; {} was added to the diagonal", significant(repairs.jitter, 2));
    }
    match report.status {
        Status::Converged => {}
        Status::IterationLimit => eprintln!(
            "warning: not converged after {}; --set max_iterations={} allows more",
            count(report.iterations, "iteration"),
            rvm.max_iterations.saturating_mul(10)
        ),
        _ => eprintln!("warning: not converged: {}", report.certificate.reason),
    }
    if report.candidates < model.n_rows - repairs.merged_rows - repairs.shared_columns {
        eprintln!("note: {} chosen as candidates; all of them with --dictionary all", count(report.candidates, "row"));
    }
    if repairs.merged_rows > 0 {
        eprintln!("note: {} equal to another and merged with it", count(repairs.merged_rows, "row"));
    }
    if repairs.zero_columns > 0 {
        eprintln!("note: {} zero on every row and left out", count(repairs.zero_columns, "basis function"));
    }
}
