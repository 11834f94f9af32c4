//! `relvec score`: evaluates a model on rows with known values or classes.

mod text;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{ArrayView1, ArrayView2};
use relvec::{Decision, FittedModel, Likelihood, Model, Moderation, Prediction, Targets};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{Format, ScoreArgs, Task};
use crate::blocks::{Blocks, Wanted, true_value};
use crate::decision::{self, class_name, true_class};
use crate::failure::usage;
use crate::figures::{self, Figure, Series};
use crate::live::Live;
use crate::measures::{Classes, Measure, Values, coverage_is_off, joined};
use crate::metrics::{self, Ranking};
use crate::model_file;
use crate::output;
use crate::summary::task;
use crate::text::{count, list, share, significant};
use crate::training::Known;

/// Probability of the interval whose coverage is shown.
const LEVEL: f64 = 0.95;
/// Significant digits of a level in percent.
const LEVEL_DIGITS: usize = 4;
/// Most outputs named in an error.
const NAMES_SHOWN: usize = 10;
/// Most points of a curve; more cannot be distinguished.
const CURVE_POINTS: usize = 1000;
/// Explanations of the constant prediction and the densities, below the table.
const OF_CLASSES: &str = "Class shares: always predicting the frequencies of the classes in these rows.";
const OF_VALUES: &str = "NLPD: mean of -ln p of the true value. For the mean, p is a normal distribution.";
const OF_COUNTS: &str = "Constant rate: the mean count of these rows per exposure. NLPD: mean of -ln p.";

/// The JSON object, with its keys in the order of the fields.
#[derive(Serialize)]
struct Json<'a> {
    model: String,
    data: String,
    target: &'a str,
    task: &'static str,
    rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
    measures: Map<String, Value>,
}

pub(crate) fn run(args: &ScoreArgs) -> Result<()> {
    decision::check(&args.decision)?;
    let model = model_file::read(&args.model)?;
    let decision = decision::resolve(&args.decision, &model)?;
    let model = if model.has_several_outputs() { one_output(&model, args.target.as_deref())? } else { model };
    let task = task(&model);
    if args.student_t && task == Task::Classify {
        bail!("--student-t is for regression, and this model is a classifier");
    }
    if args.leave_one_out && model.posterior.is_none() {
        if model.labels.is_some() {
            bail!(
                "--leave-one-out needs a posterior of the weights, which a classifier with the process prior does not have: fit with \
                 --weight-prior ard, or with --cv 5"
            );
        }
        bail!(
            "--leave-one-out is for a single relevance vector machine, and this model is a support vector machine or several models"
        );
    }
    let known = args.target.as_deref().or(model.target.as_deref());
    let target = known.ok_or_else(|| usage("--target NAME is needed: the model does not contain the name of its target"))?;
    output::apart("-o", args.output.as_deref(), &[&args.data, &args.model])?;
    args.output.as_deref().map_or(Ok(()), output::check)?;
    if args.level.is_some() && (task == Task::Classify || model.posterior.is_none()) {
        say!("note: --level is for regression by a relevance vector machine and has no effect on this model");
    }
    let pool = relvec::thread_pool(args.threads)?;
    let live = Live::new("predicting the rows");
    let (rows, measures, sentences) = match task {
        Task::Regress => {
            if args.figures.is_some() {
                return Err(anyhow!("--figures is for classifiers, and this is a regression model"));
            }
            let (rows, measures) = pool.install(|| of_values(args, &model, target))?;
            (rows, measures, note_on_values(&model))
        }
        Task::Classify => {
            let classes = pool.install(|| classes(args, &model, target, decision.as_ref()))?;
            if let Some(folder) = &args.figures {
                draw(folder, &model, &classes)?;
            }
            let measures = classes.measures(decision.as_ref());
            (classes.truth.len(), measures, vec![classes.mistakes(&model), OF_CLASSES.to_string()])
        }
    };
    drop(live);
    if !args.leave_one_out && rows == model.n_rows {
        say!(
            "note: the model was trained on {rows} rows too: if these are the same rows, the measures are optimistic; score it on others"
        );
    }
    let text = match args.format {
        Format::Text => {
            let from = format!("{} on {}", args.model.display(), args.data.display());
            let constant = match task {
                Task::Regress if model.is_of_counts() => "constant rate".into(),
                Task::Regress => format!("mean of `{target}`"),
                Task::Classify => "class shares".into(),
            };
            text::of(&format!("{from}: {}", count(rows, "row")), &constant, &measures, &sentences)
        }
        Format::Csv => to_csv(&measures)?,
        Format::Json => {
            let level = (task == Task::Regress && model.posterior.is_some()).then(|| args.level.unwrap_or(LEVEL));
            to_json(args, target, task, rows, level, &measures)?
        }
    };
    match &args.output {
        Some(path) => output::write(path, text.as_bytes()),
        None => output::print(&text),
    }
}

/// Returns the sentence below measures of values; none if the predictions have no distribution.
fn note_on_values(model: &Model) -> Vec<String> {
    let text = if model.is_of_counts() { OF_COUNTS } else { OF_VALUES };
    model.posterior.iter().map(|_| text.to_string()).collect()
}

/// Returns the model of the requested output.
fn one_output(model: &Model, target: Option<&str>) -> Result<Model> {
    let names = list(&model.targets, NAMES_SHOWN);
    let name = target.ok_or_else(|| usage(format!("--target NAME is needed: one of the model's outputs, {names}")))?;
    let place = model.targets.iter().position(|own| own == name);
    let place = place.ok_or_else(|| usage(format!("--target {name}: the model's outputs are {names}")))?;
    Ok(model.output(place)?)
}

fn of_values(args: &ScoreArgs, model: &Model, target: &str) -> Result<(usize, Vec<Measure>)> {
    let counts = model.is_of_counts();
    if counts && args.leave_one_out {
        bail!(
            "--leave-one-out is for values and classes, and this model predicts counts: score it on rows not used for training"
        );
    }
    let known = Known::of(model, args.exposure.as_deref(), None)?;
    if model.noise_variance() == Some(0.0) {
        bail!(
            "the model was trained with known noise variances (--noise-variance), which relvec score cannot read; \
             use relvec predict --noise-variance"
        );
    }
    // The densities of a variational model are normal unless --student-t is given, as is the std of `relvec predict`.
    let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
    if args.student_t && !heavy && model.noise_degrees().is_none() {
        bail!("--student-t is for regression by --inference variational, with the noise learned");
    }
    let heavy = model.noise_degrees().filter(|_| heavy || args.student_t);
    let (mut blocks, column, exposure) = open(args, model, target)?;
    let level = args.level.unwrap_or(LEVEL);
    let (mut truth, mut mean, mut density, mut exposures) = (vec![], vec![], vec![], vec![]);
    let (mut lower, mut upper) = (vec![], vec![]);
    let mut score = |x: ArrayView2<f64>, truth: &[f64], exposures: &[f64]| -> Result<()> {
        if model.posterior.is_none() {
            mean.extend(model.predict_mean(x)?);
            return Ok(());
        }
        let own = ArrayView1::from(&truth[mean.len()..]);
        let known = (!exposures.is_empty()).then(|| ArrayView1::from(&exposures[mean.len()..]));
        let prediction = match args.leave_one_out {
            true => model.leave_one_out(x, &Targets::real(own))?.prediction.context("values have predictions")?,
            false => model.predict(x)?,
        };
        let (low, high) = model.interval(&prediction, level, known)?;
        lower.extend(low);
        upper.extend(high);
        let prediction = Prediction { noise_degrees: heavy, ..prediction };
        density.extend(model.log_density(&prediction, own, known)?);
        mean.extend(if counts { prediction.counts(known)?.mean } else { prediction.mean });
        Ok(())
    };
    // Leaving out rows with equal inputs needs all rows together, wherever they are in the table.
    let together = args.leave_one_out && model.process.is_some();
    let mut rows: Vec<f64> = vec![];
    while let Some(batch) = blocks.next(|table| {
        if let Some(((known, _), column)) = known.zip(exposure) {
            exposures.push(known.read(table, column)?);
        }
        push(&mut truth, true_value(table, column))
    })? {
        match together {
            true => rows.extend(batch.x),
            false => score(batch.x, &truth, &exposures)?,
        }
    }
    tell_rows(&blocks, truth.len())?;
    if together {
        score(ArrayView2::from_shape((truth.len(), model.n_features), &rows)?, &truth, &[])?;
    }
    check_trained_on(args, model, truth.len())?;
    let coverage = (!density.is_empty()).then(|| (level, metrics::coverage(&truth, &lower, &upper)));
    // Intervals of counts end at whole numbers, so they cover more than their probability.
    if let Some((level, covered)) = coverage.filter(|(level, covered)| !(counts && covered > level)) {
        warn_of_coverage(model, covered, level, truth.len());
    }
    let values = Values { target, truth: &truth, mean: &mean, log_density: &density, coverage };
    let measures = if counts { values.of_counts(&exposures) } else { values.measures() };
    Ok((truth.len(), measures))
}

/// Warns of intervals that cover far more or far fewer rows than expected.
fn warn_of_coverage(model: &Model, coverage: f64, level: f64, rows: usize) {
    if !coverage_is_off(coverage, level, rows) {
        return;
    }
    let percent = significant(100.0 * level, LEVEL_DIGITS);
    let covered = share((coverage * rows as f64).round() as usize, rows, "row");
    match coverage < level {
        true => {
            // A process prior is the default, so that the options which replace it were not given.
            let defaults = if model.process.is_some() { "" } else { "without --gamma, --weight-prior and --sparsity, or " };
            say!(
                "warning: the {percent} % interval covers {covered}: the intervals of this model are too narrow. Fit again \
                 {defaults}with --calibrate; if the rows differ from those of the fit, fit to rows like these"
            );
        }
        false => say!(
            "warning: the {percent} % interval covers {covered}: the intervals of this model are too wide. Outliers in the training \
             table have this effect: try --likelihood student_t"
        ),
    }
}

/// Opens the rows. Returns also the indices of the columns of the target and of the exposures.
fn open(args: &ScoreArgs, model: &Model, target: &str) -> Result<(Blocks, usize, Option<usize>)> {
    let exposure = args.exposure.iter().map(|name| Wanted::needed(name, "--exposure"));
    let wanted: Vec<Wanted> = [Wanted::needed(target, "--target")].into_iter().chain(exposure).collect();
    let (blocks, columns) = Blocks::open(&args.data, model, &wanted, 0, (&args.rules, &args.reading))?;
    Ok((blocks, columns[0].context("the target was found")?, columns.get(1).copied().flatten()))
}

/// Predicts the classes of all rows.
fn classes(args: &ScoreArgs, model: &Model, target: &str, decision: Option<&Decision>) -> Result<Classes> {
    let probabilities = model.margins.as_ref().is_none_or(|margins| !margins.sigmoids.is_empty());
    Known::of(model, args.exposure.as_deref(), None)?;
    let (mut blocks, column, _) = open(args, model, target)?;
    let mut known = HashMap::new();
    let (mut truth, mut predicted, mut logs, mut function) = (vec![], vec![], vec![], vec![]);
    while let Some(batch) = blocks.next(|table| push(&mut truth, true_class(table, column, model, &mut known)))? {
        let x = batch.x;
        if args.leave_one_out {
            let own = &truth[predicted.len()..];
            let count = model.n_classes().context("it is a classifier")?;
            let left = model.leave_one_out(x, &Targets::classes(own, count))?.log_probability;
            let left = left.context("classes have probabilities")?;
            let top = |row: ArrayView1<f64>| (1..count).fold(0, |best, k| if row[k] > row[best] { k } else { best });
            predicted.extend(left.outer_iter().map(top));
            logs.push(left);
            continue;
        }
        // Without a decision rule the classes are those of `predict`, which are votes for a support vector machine.
        predicted.extend(model.predict_class(x)?);
        match probabilities {
            true => logs.push(model.predict_log_probability(x, Moderation::Posterior)?),
            false if model.outputs() == 1 => function.extend(model.decision_function(x)?.column(0)),
            false => {}
        }
    }
    tell_rows(&blocks, truth.len())?;
    check_trained_on(args, model, truth.len())?;
    let (mut decided, mut both) = (None, None);
    if let Some(log) = joined(&logs) {
        let shifted = match decision.and_then(|d| d.prior.as_ref()) {
            Some(prior) => model.shift_prior(log.clone(), prior)?,
            None => log.clone(),
        };
        decided = decision.map(|decision| model.decide_by(log.clone(), decision)).transpose()?;
        both = Some((log, shifted));
    }
    if let Some(decided) = &decided {
        predicted.clone_from(&decided.label);
    }
    let function = (!function.is_empty()).then_some(function);
    Ok(Classes { truth, predicted, log: both, function, decided })
}

/// Prints the notes on the table.
///
/// # Errors
/// There is no row to score.
fn tell_rows(blocks: &Blocks, scored: usize) -> Result<()> {
    blocks.tell("left out");
    if scored == 0 {
        bail!("every row has a missing cell, and such rows are left out; --missing mean fills them");
    }
    Ok(())
}

/// Returns an error if rows are to be left out that differ in number from the training rows.
fn check_trained_on(args: &ScoreArgs, model: &Model, rows: usize) -> Result<()> {
    if args.leave_one_out && rows != model.n_rows {
        bail!("--leave-one-out: the model was trained on {}, the table has {rows}", count(model.n_rows, "row"));
    }
    Ok(())
}

/// Appends a value that could be read.
fn push<T>(list: &mut Vec<T>, read: Result<T>) -> Result<()> {
    list.push(read?);
    Ok(())
}

fn to_csv(measures: &[Measure]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(measures.iter().map(|measure| measure.key))?;
    writer.write_record(measures.iter().map(|measure| measure.value.map_or(String::new(), |value| value.to_string())))?;
    let bytes = writer.into_inner().map_err(|e| e.into_error()).context("cannot write the measures")?;
    Ok(String::from_utf8(bytes)?)
}

fn to_json(args: &ScoreArgs, target: &str, task: Task, rows: usize, level: Option<f64>, measures: &[Measure]) -> Result<String> {
    let json = Json {
        model: args.model.display().to_string(),
        data: args.data.display().to_string(),
        target,
        task: task.name(),
        rows,
        level,
        measures: measures.iter().map(|m| (m.key.to_string(), serde_json::json!(m.value))).collect(),
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

/// Writes the figures for which there are data.
fn draw(folder: &Path, model: &Model, own: &Classes) -> Result<()> {
    let rankings = own.rankings();
    if rankings.is_empty() && own.log.is_none() {
        bail!("--figures: this support vector machine was trained without probabilities, and has more than two classes");
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
    if rankings.is_empty() {
        say!("note: all rows are of one class, so there is no ROC curve and no precision-recall curve");
    } else {
        let curves = |points: fn(&Ranking) -> Vec<(f64, f64)>| -> Vec<(String, Vec<(f64, f64)>)> {
            rankings.iter().map(|(k, ranking)| (class_name(model, *k), thinned(points(ranking)))).collect()
        };
        let mut roc = curves(Ranking::roc);
        roc.push(("chance".into(), vec![(0.0, 0.0), (1.0, 1.0)]));
        save(folder, "roc", &lines("share of the other classes", "share of the class", &roc)?)?;
        save(folder, "precision_recall", &lines("recall", "precision", &curves(Ranking::precision_recall))?)?;
    }
    if let Some((_, log)) = &own.log {
        let bins = metrics::reliability(&own.truth, log.view());
        let points = bins.iter().filter(|bin| bin.rows > 0).map(|bin| bin.point()).collect();
        let both = [("predictions".into(), points), ("perfect".into(), vec![(0.0, 0.0), (1.0, 1.0)])];
        save(folder, "reliability", &lines("probability of the predicted class", "share that is right", &both)?)?;
    }
    Ok(())
}

fn lines(x_label: &str, y_label: &str, curves: &[(String, Vec<(f64, f64)>)]) -> Result<Figure> {
    let series: Vec<Series> = curves.iter().map(|(name, points)| Series { name, points: points.clone() }).collect();
    figures::lines(x_label, y_label, &series)
}

/// Returns evenly chosen points, including both ends.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let last = points.len() - 1;
    if last < CURVE_POINTS {
        return points;
    }
    (0..=CURVE_POINTS).map(|i| points[i * last / CURVE_POINTS]).collect()
}

fn save(folder: &Path, name: &str, figure: &Figure) -> Result<()> {
    for (extension, bytes) in [("svg", figure.svg.as_bytes()), ("png", &figure.png)] {
        let path = folder.join(format!("{name}.{extension}"));
        output::write(&path, bytes)?;
        say!("wrote {}", path.display());
    }
    Ok(())
}
