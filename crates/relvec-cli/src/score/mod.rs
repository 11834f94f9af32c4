//! `relvec score`: how good the predictions of a model file are on rows whose values or classes are known.

mod text;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use relvec::{Decision, Decisions, FittedModel, Likelihood, Model, Moderation, Prediction, Targets};
use serde::Serialize;
use serde_json::{Map, Value};

use self::text::{Measure, measure};
use crate::args::{Format, ScoreArgs, Task};
use crate::blocks::Blocks;
use crate::decision::{self, class_cell, class_in, class_name};
use crate::failure::usage;
use crate::figures::{self, Figure, Series};
use crate::live::Live;
use crate::metrics::{self, Ranking};
use crate::model_file;
use crate::output;
use crate::summary::task;
use crate::table::{Cell, Table};
use crate::text::{count, list, share, significant};

/// Probability of the interval whose share of rows is told.
const LEVEL: f64 = 0.95;
/// Significant digits of a level in percent.
const LEVEL_DIGITS: usize = 4;
/// A coverage is worth a warning if it is so many standard errors of a binomial share from the level, which chance does not do,
/// and so far from it, which matters.
const COVERAGE_ERRORS: f64 = 4.0;
const COVERAGE_SHARE: f64 = 0.05;
/// Outputs named in an error.
const NAMES_SHOWN: usize = 10;
/// Points of a curve that are drawn: more cannot be seen.
const CURVE_POINTS: usize = 1000;

/// The JSON object; the order of the fields is that of the keys.
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

/// What is known and predicted of classes.
struct Classes {
    truth: Vec<usize>,
    predicted: Vec<usize>,
    /// Log probabilities as the model has them, and by the prior of the decision, [N, K]; not of a support vector machine
    /// without them.
    log: Option<(Array2<f64>, Array2<f64>)>,
    /// Values of the one function of two classes, where there are no probabilities.
    function: Option<Vec<f64>>,
    decided: Option<Decisions>,
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
                "--leave-one-out needs a posterior of the weights, and a classifier with the process prior has none: fit with \
                 --weight-prior ard, or with --cv 5"
            );
        }
        bail!(
            "--leave-one-out is for a single relevance vector machine, and this model is a support vector machine or several models"
        );
    }
    let known = args.target.as_deref().or(model.target.as_deref());
    let target = known.ok_or_else(|| usage("--target NAME is needed: the model does not say what its target is called"))?;
    output::apart("-o", args.output.as_deref(), &[&args.data, &args.model])?;
    args.output.as_deref().map_or(Ok(()), output::check)?;
    if args.level.is_some() && (task == Task::Classify || model.posterior.is_none()) {
        say!("note: --level is for regression by a relevance vector machine; the model is another");
    }
    let pool = relvec::thread_pool(args.threads)?;
    let live = Live::new("predicting the rows");
    let (rows, measures, sentences) = match task {
        Task::Regress => {
            if args.figures.is_some() {
                return Err(anyhow!("--figures is for classifiers, and this model is of regression"));
            }
            let (rows, measures) = pool.install(|| of_values(args, &model, target))?;
            (rows, measures, vec![])
        }
        Task::Classify => {
            let classes = pool.install(|| classes(args, &model, target, decision.as_ref()))?;
            if let Some(folder) = &args.figures {
                draw(folder, &model, &classes)?;
            }
            let measures = of_classes(&classes, decision.as_ref());
            (classes.truth.len(), measures, vec![text::confusions(&model, &classes)])
        }
    };
    drop(live);
    if !args.leave_one_out && rows == model.n_rows {
        say!("note: the model was trained on {rows} rows too: if these are the same, score it on others, which it has not seen");
    }
    let text = match args.format {
        Format::Text => {
            let from = format!("{} on {}", args.model.display(), args.data.display());
            let constant = if task == Task::Regress { format!("mean of `{target}`") } else { "class shares".into() };
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

/// The model of the output that is asked for.
fn one_output(model: &Model, target: Option<&str>) -> Result<Model> {
    let names = list(&model.targets, NAMES_SHOWN);
    let name = target.ok_or_else(|| usage(format!("--target NAME is needed: one of the model's outputs, {names}")))?;
    let place = model.targets.iter().position(|own| own == name);
    let place = place.ok_or_else(|| usage(format!("--target {name}: the model's outputs are {names}")))?;
    Ok(model.output(place)?)
}

fn of_values(args: &ScoreArgs, model: &Model, target: &str) -> Result<(usize, Vec<Measure>)> {
    let noisy = matches!(model.likelihood, None | Some(Likelihood::Gaussian(_) | Likelihood::StudentT(_)));
    if !noisy {
        bail!(
            "the model predicts counts, which relvec score does not measure: it is for classes and for values with learned noise; \
             relvec predict writes the expected counts"
        );
    }
    if model.noise_variance() == Some(0.0) {
        bail!(
            "the model was trained with the known noise of each row (--noise-variance), which relvec score does not know of these \
             rows; relvec predict takes it"
        );
    }
    // Of a variational model densities are normal unless it is said otherwise, as the std of `relvec predict` is.
    let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
    if args.student_t && !heavy && model.noise_degrees().is_none() {
        bail!("--student-t is for regression by --inference variational, with the noise learned");
    }
    let heavy = model.noise_degrees().filter(|_| heavy || args.student_t);
    let (mut blocks, column) = Blocks::open(&args.data, model, Some((target, "--target")), 0, (&args.rules, &args.reading))?;
    let column = column.context("the target was found")?;
    let level = args.level.unwrap_or(LEVEL);
    let (mut truth, mut mean, mut density) = (vec![], vec![], vec![]);
    let (mut lower, mut upper) = (vec![], vec![]);
    let mut score = |x: ArrayView2<f64>, truth: &[f64]| -> Result<()> {
        if model.posterior.is_none() {
            mean.extend(model.predict_mean(x)?);
            return Ok(());
        }
        let own = ArrayView1::from(&truth[mean.len()..]);
        let prediction = match args.leave_one_out {
            true => model.leave_one_out(x, &Targets::real(own))?.prediction.context("values have predictions")?,
            false => model.predict(x)?,
        };
        let (low, high) = model.interval(&prediction, level, None)?;
        lower.extend(low);
        upper.extend(high);
        let prediction = Prediction { noise_degrees: heavy, ..prediction };
        density.extend(model.log_density(&prediction, own, None)?);
        mean.extend(prediction.mean);
        Ok(())
    };
    // Rows of equal inputs are left out with an eye on each other, wherever they stand in the table.
    let together = args.leave_one_out && model.process.is_some();
    let mut rows: Vec<f64> = vec![];
    while let Some(batch) = blocks.next(|table| push(&mut truth, value(table, column)))? {
        match together {
            true => rows.extend(batch.x),
            false => score(batch.x, &truth)?,
        }
    }
    tell_rows(&blocks, truth.len())?;
    if together {
        score(ArrayView2::from_shape((truth.len(), model.n_features), &rows)?, &truth)?;
    }
    check_trained_on(args, model, truth.len())?;
    // What the mean of the scored rows, and a normal distribution with their variance, predict of these rows.
    let centre = vec![truth.iter().sum::<f64>() / truth.len() as f64; truth.len()];
    let spread = metrics::rmse(&truth, &centre);
    let unit = format!("units of `{target}`");
    let mut out = vec![
        measure("rmse", "RMSE", &unit, metrics::rmse(&truth, &mean)).beside(spread),
        measure("mae", "MAE", &unit, metrics::mae(&truth, &mean)).beside(metrics::mae(&truth, &centre)),
    ];
    if !density.is_empty() {
        let density: f64 = density.iter().sum::<f64>() / truth.len() as f64;
        let constant = metrics::negative_log_density(&truth, &centre, &vec![spread * spread; truth.len()]);
        let own = measure("negative_log_density", "NLPD", "nats", -density);
        // Of rows of one value that distribution has no density.
        out.push(if spread > 0.0 { own.beside(constant) } else { own });
        let coverage = metrics::coverage(&truth, &lower, &upper);
        let name = format!("{} % interval covers", significant(100.0 * level, LEVEL_DIGITS));
        warn_of_coverage(coverage, level, truth.len());
        out.push(measure("coverage", &name, "%", coverage));
    }
    Ok((truth.len(), out))
}

/// Warns of intervals that cover far more or fewer rows than they should.
fn warn_of_coverage(coverage: f64, level: f64, rows: usize) {
    let n = rows as f64;
    let error = (level * (1.0 - level) / n).sqrt();
    if (coverage - level).abs() <= (COVERAGE_ERRORS * error).max(COVERAGE_SHARE) {
        return;
    }
    let percent = significant(100.0 * level, LEVEL_DIGITS);
    let covered = share((coverage * n).round() as usize, rows, "row");
    match coverage < level {
        true => say!(
            "warning: the {percent} % interval covers {covered}: the intervals of this model are too narrow. Fit again without \
             --gamma, --weight-prior and --sparsity, or with --calibrate; if the rows differ from those of the fit, fit to rows like \
             these"
        ),
        false => say!(
            "warning: the {percent} % interval covers {covered}: the intervals of this model are too wide. Outliers in the training \
             table have this effect: try --likelihood student_t"
        ),
    }
}

/// Predicts the classes of all rows.
fn classes(args: &ScoreArgs, model: &Model, target: &str, decision: Option<&Decision>) -> Result<Classes> {
    let probabilities = model.margins.as_ref().is_none_or(|margins| !margins.sigmoids.is_empty());
    let (mut blocks, column) = Blocks::open(&args.data, model, Some((target, "--target")), 0, (&args.rules, &args.reading))?;
    let column = column.context("the target was found")?;
    let mut known = HashMap::new();
    let mut class = |table: &Table| -> Result<usize> {
        let name = class_cell(table, column)?;
        if let Some(k) = known.get(&name) {
            return Ok(*k);
        }
        let k = class_in(table, model, &name).map_err(|e| table.error(column, &e.to_string()))?;
        known.insert(name, k);
        Ok(k)
    };
    let (mut truth, mut predicted, mut logs, mut function) = (vec![], vec![], vec![], vec![]);
    while let Some(batch) = blocks.next(|table| push(&mut truth, class(table)))? {
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
        // Without a decision of one's own what `predict` says, which of a support vector machine are votes.
        predicted.extend(model.predict_class(x)?);
        match probabilities {
            true => logs.push(model.predict_log_probability(x, Moderation::Posterior)?),
            false if model.outputs() == 1 => function.extend(model.decision_function(x)?.column(0)),
            false => {}
        }
    }
    tell_rows(&blocks, truth.len())?;
    check_trained_on(args, model, truth.len())?;
    let log = match logs.is_empty() {
        true => None,
        false => Some(concatenate(Axis(0), &logs.iter().map(|log| log.view()).collect::<Vec<_>>())?),
    };
    let (mut decided, mut both) = (None, None);
    if let Some(log) = log {
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

/// The true value of the present row.
fn value(table: &Table, column: usize) -> Result<f64> {
    if table.cell(column) == Cell::Missing {
        return Err(table.error(column, &format!("{}; --missing drop leaves such rows out", table.missing_cell(column))));
    }
    table.number(column)
}

/// Says what was made of the table.
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

fn of_classes(own: &Classes, decision: Option<&Decision>) -> Vec<Measure> {
    // What predicts the shares of the classes among the scored rows, and the class of the largest.
    let n = own.truth.len() as f64;
    let mut sizes = vec![0usize; own.truth.iter().chain(&own.predicted).max().map_or(0, |k| k + 1)];
    own.truth.iter().for_each(|k| sizes[*k] += 1);
    let shares: Vec<f64> = sizes.iter().filter(|size| **size > 0).map(|size| *size as f64 / n).collect();
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let error = metrics::error_rate(&own.truth, &own.predicted);
    let name = match decision {
        Some(decision) if decision.rejects() => "error rate, rejected rows too",
        Some(_) => "error rate of the decisions",
        None => "error rate",
    };
    let mut out = vec![measure("error_rate", name, "%", error).beside(1.0 - largest)];
    if let Some((_, log)) = &own.log {
        let entropy = shares.iter().map(|p| -p * p.ln()).sum::<f64>();
        out.push(measure("log_loss", "log loss", "nats", metrics::log_loss(&own.truth, log.view())).beside(entropy));
        let constant = 1.0 - shares.iter().map(|p| p * p).sum::<f64>();
        out.push(measure("brier", "Brier score", "0 to 2", metrics::brier(&own.truth, log.view())).beside(constant));
    }
    if own.log.is_some() || own.function.is_some() {
        let rankings: Vec<Ranking> = rankings(own).into_iter().map(|(_, ranking)| ranking).collect();
        let mean = |value: fn(&Ranking) -> f64| {
            (!rankings.is_empty()).then(|| rankings.iter().map(value).sum::<f64>() / rankings.len() as f64)
        };
        out.push(measure("auc", "ROC AUC", "0 to 1", mean(Ranking::area)).beside(0.5).higher());
        out.push(measure("average_precision", "average precision", "0 to 1", mean(Ranking::average_precision)).higher());
    }
    if let Some((_, log)) = &own.log {
        out.push(measure("calibration_error", "calibration error", "%", metrics::calibration_error(&own.truth, log.view())));
    }
    let (Some(decision), Some(decided)) = (decision, &own.decided) else { return out };
    if let (Some(costs), Some(expected)) = (&decision.costs, &decided.expected_cost) {
        let paid = |i: usize| match (decided.rejected[i], decision.reject_cost) {
            (true, Some(cost)) => cost,
            _ => costs[[own.truth[i], decided.label[i]]],
        };
        out.push(measure("cost", "mean cost", "per row", (0..own.truth.len()).map(paid).sum::<f64>() / n));
        out.push(measure("expected_cost", "expected cost", "per row", expected.sum() / n));
    }
    if decision.rejects() {
        let kept: Vec<usize> = (0..own.truth.len()).filter(|i| !decided.rejected[*i]).collect();
        out.push(measure("rejected", "rejected rows", "%", (own.truth.len() - kept.len()) as f64 / n));
        let of = |labels: &[usize]| kept.iter().map(|i| labels[*i]).collect::<Vec<_>>();
        let error = (!kept.is_empty()).then(|| metrics::error_rate(&of(&own.truth), &of(&decided.label)));
        out.push(measure("error_rate_kept", "error of decided rows", "%", error));
    }
    out
}

/// Rankings of the rows: by the second of two classes, or by each class there is both a row of and a row not of, with
/// its number.
fn rankings(own: &Classes) -> Vec<(usize, Ranking)> {
    let by = |k: usize, score: &[f64]| {
        let positive: Vec<bool> = own.truth.iter().map(|truth| *truth == k).collect();
        Ranking::new(&positive, score).map(|ranking| (k, ranking))
    };
    match (&own.log, &own.function) {
        // A prior does not change the order, but digits are lost.
        (Some((log, _)), _) if log.ncols() == 2 => {
            let odds: Vec<f64> = log.outer_iter().map(|row| row[1] - row[0]).collect();
            by(1, &odds).into_iter().collect()
        }
        (Some((_, log)), _) => (0..log.ncols()).filter_map(|k| by(k, &log.column(k).to_vec())).collect(),
        (None, Some(function)) => by(1, function).into_iter().collect(),
        (None, None) => vec![],
    }
}

/// Refuses to leave out rows that the model was not trained on.
fn check_trained_on(args: &ScoreArgs, model: &Model, rows: usize) -> Result<()> {
    if args.leave_one_out && rows != model.n_rows {
        bail!("--leave-one-out: the model was trained on {}, the table has {rows}", count(model.n_rows, "row"));
    }
    Ok(())
}

/// Keeps what was read.
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

/// Writes the figures that there are.
fn draw(folder: &Path, model: &Model, own: &Classes) -> Result<()> {
    let rankings = rankings(own);
    if rankings.is_empty() && own.log.is_none() {
        bail!("--figures: this support vector machine was trained without probabilities, and has more than two classes");
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    if rankings.is_empty() {
        say!("note: the rows are of one class: there is no ROC curve, nor one of precision");
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

/// Evenly chosen points, the ends among them.
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
