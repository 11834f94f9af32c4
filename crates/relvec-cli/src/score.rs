//! `relvec score`: how good the predictions of a model file are on rows whose values or classes are known.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use relvec::{Decision, Decisions, FittedModel, Likelihood, Model, Moderation, Prediction, Targets};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{Format, ScoreArgs, Task};
use crate::blocks::Blocks;
use crate::decision::{self, class_cell, class_in, class_name};
use crate::failure::usage;
use crate::figures::{self, Figure, Series};
use crate::metrics::{self, Ranking};
use crate::model_file;
use crate::output;
use crate::summary::task;
use crate::table::Table;
use crate::terminal;
use crate::text::{count, list, significant};

/// Probability of the interval whose share of rows is told.
const LEVEL: f64 = 0.95;
/// Significant digits for the eye.
const DIGITS: usize = 4;
/// Outputs named in an error.
const NAMES_SHOWN: usize = 10;
/// Width of the names there.
const WIDTH: usize = 30;
/// Points of a curve that are drawn: more cannot be told apart.
const CURVE_POINTS: usize = 1000;

/// A number: its key in CSV and JSON, its name for the eye, and what it is multiplied by there.
struct Measure {
    key: &'static str,
    name: String,
    times: f64,
    /// `None` where the rows do not say: of one class only, or none that is kept.
    value: Option<f64>,
}

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
        bail!("--leave-one-out is for one relevance vector machine; the model is another");
    }
    let known = args.target.as_deref().or(model.target.as_deref());
    let target = known.ok_or_else(|| usage("--target NAME is needed: the model does not say what its target is called"))?;
    output::apart("-o", args.output.as_deref(), &[&args.data, &args.model])?;
    args.output.as_deref().map_or(Ok(()), output::check)?;
    if args.level.is_some() && (task == Task::Classify || model.posterior.is_none()) {
        say!("note: --level is for regression by a relevance vector machine; the model is another");
    }
    let pool = relvec::thread_pool(args.threads)?;
    let (rows, measures) = match task {
        Task::Regress => {
            if args.figures.is_some() {
                return Err(anyhow!("--figures is for classifiers, and this model is of regression"));
            }
            pool.install(|| of_values(args, &model, target))?
        }
        Task::Classify => {
            let classes = pool.install(|| classes(args, &model, target, decision.as_ref()))?;
            if let Some(folder) = &args.figures {
                draw(folder, &model, &classes)?;
            }
            (classes.truth.len(), of_classes(&classes, decision.as_ref()))
        }
    };
    let text = match args.format {
        Format::Text => terminal::escaped(&to_text(args, target, rows, &measures)).into_owned(),
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
    if !noisy || model.noise_variance() == Some(0.0) {
        bail!("relvec score is for noise learnt by the model, and for classes; the model is another");
    }
    // Of a variational model densities are normal unless it is said otherwise, as the std of `relvec predict` is.
    let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
    if args.student_t && !heavy && model.noise_degrees().is_none() {
        bail!("--student-t is for regression by --inference variational, with the noise learnt");
    }
    let heavy = model.noise_degrees().filter(|_| heavy || args.student_t);
    let (mut blocks, column) = Blocks::open(&args.data, model, Some((target, "--target")), 0)?;
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
    while let Some(x) = blocks.next(|table| push(&mut truth, table.number(column)))? {
        match together {
            true => rows.extend(x),
            false => score(x, &truth)?,
        }
    }
    if together {
        score(ArrayView2::from_shape((truth.len(), model.n_features), &rows)?, &truth)?;
    }
    check_trained_on(args, model, truth.len())?;
    let mut out =
        vec![measure("rmse", "RMSE", 1.0, metrics::rmse(&truth, &mean)), measure("mae", "MAE", 1.0, metrics::mae(&truth, &mean))];
    if !density.is_empty() {
        let density: f64 = density.iter().sum::<f64>() / truth.len() as f64;
        out.push(measure("negative_log_density", "NLPD [nats]", 1.0, -density));
        let coverage = metrics::coverage(&truth, &lower, &upper);
        out.push(measure("coverage", &format!("in {} % [%]", significant(100.0 * level, DIGITS)), 100.0, coverage));
    }
    Ok((truth.len(), out))
}

/// Predicts the classes of all rows.
fn classes(args: &ScoreArgs, model: &Model, target: &str, decision: Option<&Decision>) -> Result<Classes> {
    let probabilities = model.margins.as_ref().is_none_or(|margins| !margins.sigmoids.is_empty());
    let (mut blocks, column) = Blocks::open(&args.data, model, Some((target, "--target")), 0)?;
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
    while let Some(x) = blocks.next(|table| push(&mut truth, class(table)))? {
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

fn of_classes(own: &Classes, decision: Option<&Decision>) -> Vec<Measure> {
    let mut out = vec![measure("error_rate", "error [%]", 100.0, metrics::error_rate(&own.truth, &own.predicted))];
    if let Some((_, log)) = &own.log {
        out.push(measure("log_loss", "log loss [nats]", 1.0, metrics::log_loss(&own.truth, log.view())));
        out.push(measure("brier", "Brier", 1.0, metrics::brier(&own.truth, log.view())));
    }
    if own.log.is_some() || own.function.is_some() {
        let rankings: Vec<Ranking> = rankings(own).into_iter().map(|(_, ranking)| ranking).collect();
        let mean = |value: fn(&Ranking) -> f64| {
            (!rankings.is_empty()).then(|| rankings.iter().map(value).sum::<f64>() / rankings.len() as f64)
        };
        out.push(Measure { key: "auc", name: "AUC".into(), times: 1.0, value: mean(Ranking::area) });
        let precision = mean(Ranking::average_precision);
        out.push(Measure { key: "average_precision", name: "average precision".into(), times: 1.0, value: precision });
    }
    if let Some((_, log)) = &own.log {
        out.push(measure("calibration_error", "ECE [%]", 100.0, metrics::calibration_error(&own.truth, log.view())));
    }
    let (Some(decision), Some(decided)) = (decision, &own.decided) else { return out };
    let n = own.truth.len() as f64;
    if let (Some(costs), Some(expected)) = (&decision.costs, &decided.expected_cost) {
        let paid = |i: usize| match (decided.rejected[i], decision.reject_cost) {
            (true, Some(cost)) => cost,
            _ => costs[[own.truth[i], decided.label[i]]],
        };
        out.push(measure("cost", "cost", 1.0, (0..own.truth.len()).map(paid).sum::<f64>() / n));
        out.push(measure("expected_cost", "cost, expected", 1.0, expected.sum() / n));
    }
    if decision.rejects() {
        let kept: Vec<usize> = (0..own.truth.len()).filter(|i| !decided.rejected[*i]).collect();
        out.push(measure("rejected", "rejected [%]", 100.0, (own.truth.len() - kept.len()) as f64 / n));
        let of = |labels: &[usize]| kept.iter().map(|i| labels[*i]).collect::<Vec<_>>();
        let error = (!kept.is_empty()).then(|| metrics::error_rate(&of(&own.truth), &of(&decided.label)));
        out.push(Measure { key: "error_rate_kept", name: "error of the others [%]".into(), times: 100.0, value: error });
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

fn measure(key: &'static str, name: &str, times: f64, value: f64) -> Measure {
    Measure { key, name: name.into(), times, value: Some(value) }
}

fn to_text(args: &ScoreArgs, target: &str, rows: usize, measures: &[Measure]) -> String {
    let mut text = format!("{} on {}: `{target}`, {}\n", args.model.display(), args.data.display(), count(rows, "row"));
    for measure in measures {
        let value = measure.value.map_or("-".into(), |value| significant(value * measure.times, DIGITS));
        text += &format!("{:<WIDTH$}{value}\n", measure.name);
    }
    text
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
