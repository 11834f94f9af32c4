//! `relvec compare`: models compared by cross-validation on one table.
//!
//! Every row is predicted once, by models that were fitted without it. Weights, settings (chosen by inner folds of the
//! training rows) and standardisation all depend on the training rows of the fold only.

mod grid;
mod machines;
mod table;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use relvec::{Gamma, GammaRule, Kernel, Rvm};

use self::grid::{Grid, Point};
use self::machines::{Data, Row, Workshop, has_gamma};
use self::table::{Comparison, Line};
use crate::args::{CompareArgs, Compared, Format, Task, standardizes};
use crate::failure::usage;
use crate::live::Live;
use crate::output;
use crate::settings;
use crate::target::Learned;
use crate::text::{count, significant};
use crate::training::{Roles, TrainingRows};
use crate::tuning::{self, Fold};

pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    let grid = Grid::parse(&args.grid)?;
    let kernel = |gamma, features| settings::kernel(&args.kernel, &args.data, &gamma, features, |e| usage(e.to_string()));
    check(args, &kernel(Gamma::default(), None)?)?;
    output::apart("-o", args.output.as_deref(), &[&args.data])?;
    args.output.as_deref().map_or(Ok(()), output::check)?;

    let roles = Roles {
        drop: &args.drop,
        values: asks_for_values(args),
        missing: args.missing,
        categories: &args.categories,
        ..Roles::of_target(&args.target, &args.reading)
    };
    let rows = TrainingRows::open(&args.data, roles)?;
    let target = rows.target().to_string();
    // Missing cells stay NaN here: each fit fills them with the means of its own training rows.
    let table = rows.collect(Rvm::default().memory_allowed(), true)?;
    let name = || format!("`{}`", args.data.display());
    let task = table.target.settle(args.task).with_context(name)?;
    let data = Data { x: table.x, target: table.target.learn(task).with_context(name)? }.in_order();
    check_folds(args, &data).with_context(name)?;

    let pool = relvec::thread_pool(args.threads)?;
    let learned = kernel(Gamma::Rule(GammaRule::Evidence), Some(&table.features))?;
    let kernel = kernel(Gamma::default(), Some(&table.features))?;
    let standardize = !args.no_standardize && standardizes(&args.kernel);
    let workshop = Workshop { kernel, learned, standardize, threads: args.threads, seed: args.seed, pool };
    let lines = compare(args, &grid, &workshop, &data)?;
    let comparison = Comparison {
        data: args.data.display().to_string(),
        target,
        task,
        rows: data.x.nrows(),
        features: data.x.ncols(),
        kernel: &args.kernel,
        cv: args.cv,
        inner_cv: args.inner_cv,
        seed: args.seed,
        standardized: workshop.standardize,
        grid,
        lines,
    };
    let text = match args.format {
        Format::Text => comparison.to_text(),
        Format::Csv => comparison.to_csv()?,
        Format::Json => comparison.to_json()?,
    };
    match &args.output {
        Some(path) => output::write(path, text.as_bytes()),
        None => output::print(&text),
    }
}

/// True if a grid is given for `epsilon`, which only regression has.
fn asks_for_values(args: &CompareArgs) -> bool {
    args.grid.iter().any(|argument| argument.trim_start().starts_with("epsilon"))
}

/// Reports errors that the arguments show without the table.
fn check(args: &CompareArgs, kernel: &Kernel) -> Result<()> {
    if args.drop.contains(&args.target) {
        return Err(usage(format!("--drop {}: this is the target", args.target)));
    }
    for argument in &args.grid {
        let name = argument.split('=').next().unwrap_or_default().trim();
        if name == "gamma" && !has_gamma(kernel) {
            return Err(usage(format!("--grid {argument}: the kernel {} has no gamma to choose", args.kernel)));
        }
        if name != "gamma" && !args.machines.contains(&Compared::Svm) {
            return Err(usage(format!("--grid {argument}: this is a parameter of the SVM, but --machines does not include svm")));
        }
        if name == "epsilon" && args.task == Some(Task::Classify) {
            return Err(usage(format!("--grid {argument}: epsilon is for --task regress")));
        }
    }
    Ok(())
}

/// Checks that every fold and every inner fold has rows on both sides; for classification, rows of each class.
fn check_folds(args: &CompareArgs, data: &Data) -> Result<()> {
    let (smallest, name, least) = match &data.target {
        Learned::Real(values) => (values.len(), "the table".to_string(), 2),
        Learned::Classes { labels, names } => {
            let sizes = (0..names.len()).map(|k| (labels.iter().filter(|label| **label == k).count(), k));
            let (size, k) = sizes.min().unwrap_or_default();
            (size, format!("the class `{}`", names[k]), 1)
        }
    };
    let (cv, inner) = (args.cv, args.inner_cv);
    let left = smallest - smallest.div_ceil(cv).min(smallest);
    if smallest < cv {
        bail!("{name} has {}, which is less than the {cv} folds; choose fewer with --cv N", count(smallest, "row"));
    }
    if left < inner || left - left.div_ceil(inner) < least {
        bail!(
            "{name} has {}, of which a fold leaves {left} for training: too few for the {inner} inner folds that choose settings; \
             choose other numbers with --cv N and --inner-cv N",
            count(smallest, "row")
        );
    }
    Ok(())
}

/// Fits and measures all models on all folds.
fn compare(args: &CompareArgs, grid: &Grid, workshop: &Workshop, data: &Data) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Row::of(&args.machines, workshop).into_iter().map(Line::new).collect();
    let all = tuning::folds(data.x.nrows(), data.labels(), args.cv, args.seed);
    let mut live = Live::new("reading");
    for (k, fold) in all.iter().enumerate() {
        let (train, test) = (data.part(&fold.train), data.part(&fold.test));
        let inner = tuning::folds(train.x.nrows(), train.labels(), args.inner_cv, args.seed);
        // The gamma chosen for the search is also used for the variational scheme.
        let mut of_rvm: Option<Choice> = None;
        for line in &mut lines {
            let name = || format!("{}, fold {} of {}", line.row.name(), k + 1, args.cv);
            live.now(name);
            let chosen = match (line.row, of_rvm) {
                (Row::RvmEvidence, _) => Choice::default(),
                (Row::Rvm | Row::Vrvm, Some(choice)) => choice,
                (row, _) => choose(grid, workshop, row, &train, &inner).with_context(name)?,
            };
            if matches!(line.row, Row::Rvm | Row::Vrvm) {
                of_rvm = Some(chosen);
            }
            let fitted = workshop.fit(line.row, chosen.point, &train, true).with_context(name)?;
            let (measures, predicting) = workshop.measure(&fitted, &test).with_context(name)?;
            let settings = chosen.point.to_text();
            let kernels = count(fitted.kernels(), "kernel");
            let comma = if settings.is_empty() { "" } else { ", " };
            live.say(|| format!("{}: {settings}{comma}{kernels}, {} s", name(), significant(chosen.seconds + fitted.seconds, 2)));
            line.add(chosen, measures, &fitted, predicting / test.x.nrows() as f64);
        }
    }
    Ok(lines)
}

/// Chosen settings and the seconds that the choice took.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    point: Point,
    seconds: f64,
}

/// Returns the settings with the least error over the inner folds of the training rows.
fn choose(grid: &Grid, workshop: &Workshop, row: Row, train: &Data, inner: &[Fold]) -> Result<Choice> {
    let start = Instant::now();
    let has_gamma = has_gamma(&workshop.kernel);
    let (row, points) = match row {
        Row::Svm => (Row::Svm, grid.of_svm(has_gamma, train.target.task() == Task::Regress)),
        _ => (Row::Rvm, grid.of_rvm(has_gamma)),
    };
    if let [only] = points.as_slice() {
        return Ok(Choice { point: *only, seconds: 0.0 });
    }
    let loss = |point: &Point, fold: &Fold| {
        let fitted = workshop.fit(row, *point, &train.part(&fold.train), false)?;
        workshop.loss(&fitted, &train.part(&fold.test))
    };
    let (place, _) = tuning::choose(&points, inner, loss)?;
    Ok(Choice { point: points[place], seconds: start.elapsed().as_secs_f64() })
}
