//! `relvec predict`: rows in, predictions out, a block at a time.

use std::io::{self, Write};

use anyhow::{Context, Result, anyhow, bail};
use ndarray::ArrayView2;
use relvec::{Draws, Label, Model, Moderation, Variance};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::args::{PredictArgs, Task};
use crate::model_file;
use crate::output::Output;
use crate::progress::Pass;
use crate::summary::task;
use crate::table::{Table, positions};
use crate::text::{count, list};

/// Rows held at a time, and numbers.
const BLOCK: usize = 8192;
const BLOCK_NUMBERS: usize = 1 << 22;
/// Columns named in a message.
const NAMES_SHOWN: usize = 10;
/// Probability of the interval from lower to upper.
const LEVEL: f64 = 0.95;

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    let model = model_file::read(&args.model)?;
    let output = args.output.as_deref().map(Output::create).transpose()?;
    if args.level.is_some() && (task(&model) == Task::Classify || model.posterior.is_none()) {
        eprintln!("note: --level is for regression by a relevance vector machine; the model is another");
    }
    let mut writer = PredictionWriter::new(&model, args)?;
    match output {
        Some(mut file) => {
            stream(args, &mut writer, &mut file)?;
            file.finish()
        }
        None => stream(args, &mut writer, &mut io::stdout().lock()),
    }
}

/// Predicts the table block by block.
fn stream(args: &PredictArgs, writer: &mut PredictionWriter, sink: &mut dyn Write) -> Result<()> {
    let name = || format!("`{}`", args.data.display());
    let mut table = Table::open(&args.data)?;
    let columns = match_columns(writer.model, &table).with_context(name)?;
    table.only(&columns);
    let most = BLOCK.min(BLOCK_NUMBERS / columns.len().max(1)).max(1);
    let mut values = Vec::with_capacity(most * columns.len());
    // Beside predictions on the screen, a bar would be in the way.
    let pass = args.output.is_some().then(|| Pass::new("predictions"));
    let mut more = table.advance().with_context(name)?;
    if !more {
        return Err(anyhow!("there are no rows below the header")).with_context(name);
    }
    let mut sink = csv::Writer::from_writer(sink);
    write(&mut sink, &writer.header)?;
    while more {
        values.clear();
        let mut rows = 0;
        while more && rows < most {
            for column in &columns {
                values.push(table.number(*column).with_context(name)?);
            }
            rows += 1;
            more = table.advance().with_context(name)?;
        }
        let block = ArrayView2::from_shape((rows, columns.len()), &values)?;
        writer.block(block, &mut sink)?;
        if let Some(pass) = &pass {
            pass.at(table.row(), table.share());
        }
    }
    sink.flush().context("cannot write the predictions")
}

/// The columns of the table that hold the model's features, in the model's order.
fn match_columns(model: &Model, table: &Table) -> Result<Vec<usize>> {
    let columns = table.columns();
    if model.features.is_empty() {
        // Trained by a library that had no names: by position then, and nothing may be left over.
        if columns.len() != model.n_features {
            bail!("the model knows no feature names and expects {}, found {}", count(model.n_features, "column"), columns.len());
        }
        return Ok((0..columns.len()).collect());
    }
    let places = positions(table, &model.features, "the model")?;
    let extra: Vec<&String> =
        columns.iter().enumerate().filter(|(place, _)| !places.contains(place)).map(|(_, name)| name).collect();
    if !extra.is_empty() {
        eprintln!("note: ignored, since the model has no such feature: {}", list(&extra, NAMES_SHOWN));
    }
    Ok(places)
}

/// Turns blocks of features into rows of the output.
struct PredictionWriter<'a> {
    model: &'a Model,
    /// A pool of our own: the global one belongs to whoever embeds this library.
    pool: rayon::ThreadPool,
    header: Vec<String>,
    variance: Variance,
    /// Functions drawn from the posterior.
    draws: Option<Draws<'a>>,
    /// Standard deviations from the mean to `upper`.
    quantile: f64,
    /// The standard deviation of the distribution that the quantile is of, over the scale.
    spread: f64,
}

impl<'a> PredictionWriter<'a> {
    fn new(model: &'a Model, args: &PredictArgs) -> Result<PredictionWriter<'a>> {
        let mut header = vec!["prediction".to_string()];
        match task(model) {
            Task::Regress if model.posterior.is_none() => {}
            Task::Regress => header.extend(["std", "lower", "upper"].map(String::from)),
            Task::Classify if no_probabilities(model) => {}
            Task::Classify => {
                let classes = 0..model.n_classes().unwrap_or(2);
                header.extend(classes.map(|k| format!("probability_{}", class_name(model, k))));
            }
        }
        let regression = task(model) == Task::Regress && model.posterior.is_some();
        for (flag, given) in [("--variance", args.variance.is_some()), ("--samples", args.samples.is_some())] {
            if given && !regression {
                bail!("{flag} is for regression by a relevance vector machine; the model is another");
            }
        }
        let variance = args.variance.as_deref().map_or(Ok(model.variance), Variance::from_name)?;
        header.extend((1..=args.samples.unwrap_or(0)).map(|k| format!("sample_{k}")));
        let draws = args.samples.map(|count| model.draws(count, args.seed, true)).transpose()?;
        let above = 0.5 + args.level.unwrap_or(LEVEL) / 2.0;
        let (quantile, spread) = match (args.student_t, model.posterior.as_ref().and_then(|p| p.noise_degrees)) {
            (false, _) => (Normal::standard().inverse_cdf(above), 1.0),
            // With two rows or fewer there is no variance.
            (true, Some(degrees)) if degrees > 2.0 => {
                (StudentsT::new(0.0, 1.0, degrees)?.inverse_cdf(above), (degrees / (degrees - 2.0)).sqrt())
            }
            (true, _) => bail!("--student-t is for regression by --inference variational, with the noise learnt"),
        };
        // 0 threads means one per processor.
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build().context("cannot start threads")?;
        Ok(PredictionWriter { model, pool, header, variance, draws, quantile, spread })
    }

    fn block(&mut self, x: ArrayView2<f64>, sink: &mut csv::Writer<&mut dyn Write>) -> Result<()> {
        match task(self.model) {
            Task::Regress if self.model.posterior.is_none() => {
                for value in self.pool.install(|| self.model.predict_mean(x))? {
                    write(sink, &[number(value)])?;
                }
            }
            Task::Regress => {
                let (model, variance) = (self.model, self.variance);
                let prediction = self.pool.install(|| model.predict_with(x, variance))?;
                let pool = &self.pool;
                let drawn = self.draws.as_mut().map(|draws| pool.install(|| draws.at(x))).transpose()?;
                for (n, (mean, std)) in prediction.mean.iter().zip(prediction.std()).enumerate() {
                    let (half, std) = (self.quantile * std, self.spread * std);
                    let drawn = drawn.iter().flat_map(|drawn| drawn.row(n).to_vec());
                    let cells: Vec<String> = [*mean, std, mean - half, mean + half].into_iter().chain(drawn).map(number).collect();
                    write(sink, &cells)?;
                }
            }
            Task::Classify if no_probabilities(self.model) => {
                for class in self.pool.install(|| self.model.predict_class(x))? {
                    write(sink, &[class_name(self.model, class)])?;
                }
            }
            Task::Classify => {
                let probability = self.pool.install(|| self.model.predict_probability(x, Moderation::Posterior))?;
                // Of a support vector machine the votes decide, which sigmoids may disagree with.
                let votes = self.model.margins.as_ref().map(|_| self.model.predict_class(x)).transpose()?;
                for (n, p) in probability.outer_iter().enumerate() {
                    // The first of equals.
                    let likeliest = (0..p.len()).fold(0, |best, k| if p[k] > p[best] { k } else { best });
                    let class = votes.as_ref().map_or(likeliest, |votes| votes[n]);
                    let cells: Vec<String> =
                        std::iter::once(class_name(self.model, class)).chain(p.iter().map(|p| number(*p))).collect();
                    write(sink, &cells)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether it is a support vector classifier without sigmoids.
fn no_probabilities(model: &Model) -> bool {
    model.margins.as_ref().is_some_and(|m| m.sigmoids.is_empty())
}

/// The name of class `k`; its number where a library trained without names.
fn class_name(model: &Model, k: usize) -> String {
    model.classes.get(k).map_or_else(|| k.to_string(), Label::to_string)
}

/// Every digit, and an exponent where there would be rows of zeros.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn write(sink: &mut csv::Writer<&mut dyn Write>, row: &[String]) -> Result<()> {
    let written = sink.write_record(row).map_err(|e| match e.into_kind() {
        // Kept as it is: a closed pipe is told by its kind.
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    });
    written.context("cannot write the predictions")
}
