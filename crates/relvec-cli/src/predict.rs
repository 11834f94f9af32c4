//! `relvec predict`: rows in, predictions out, a block at a time.

use std::io::{self, Write};

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{ArrayView1, ArrayView2};
use rayon::prelude::*;
use relvec::{Label, Likelihood, Model, Moderation, Prediction};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::args::{PredictArgs, Task};
use crate::model_file;
use crate::output::Output;
use crate::progress::Pass;
use crate::quantiles::CountDistribution;
use crate::summary::task;
use crate::table::{Table, positions};
use crate::text::{count, list};
use crate::training::Known;

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
    let writer = PredictionWriter::new(&model, args)?;
    match output {
        Some(mut file) => {
            stream(args, &writer, &mut file)?;
            file.finish()
        }
        None => stream(args, &writer, &mut io::stdout().lock()),
    }
}

/// Predicts the table block by block.
fn stream(args: &PredictArgs, writer: &PredictionWriter, sink: &mut dyn Write) -> Result<()> {
    let name = || format!("`{}`", args.data.display());
    let mut table = Table::open(&args.data)?;
    let known = match writer.known {
        Some((known, column)) => Some((known, table.find(column, &format!("the {}", known.name())).with_context(name)?)),
        None => None,
    };
    let columns = match_columns(writer.model, &table, known.map(|(_, column)| column)).with_context(name)?;
    table.only(&columns.iter().copied().chain(known.map(|(_, column)| column)).collect::<Vec<_>>());
    let most = BLOCK.min(BLOCK_NUMBERS / columns.len().max(1)).max(1);
    let (mut values, mut of_rows) = (Vec::with_capacity(most * columns.len()), Vec::new());
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
        of_rows.clear();
        let mut rows = 0;
        while more && rows < most {
            for column in &columns {
                values.push(table.number(*column).with_context(name)?);
            }
            if let Some((known, column)) = known {
                of_rows.push(known.read(&table, column).with_context(name)?);
            }
            rows += 1;
            more = table.advance().with_context(name)?;
        }
        let block = ArrayView2::from_shape((rows, columns.len()), &values)?;
        writer.block(block, &of_rows, &mut sink)?;
        if let Some(pass) = &pass {
            pass.at(table.row(), table.share());
        }
    }
    sink.flush().context("cannot write the predictions")
}

/// The columns of the table that hold the model's features, in the model's order; `known` is a column of another use.
fn match_columns(model: &Model, table: &Table, known: Option<usize>) -> Result<Vec<usize>> {
    let columns = table.columns();
    if model.features.is_empty() {
        // Trained by a library that had no names: by position then, and nothing may be left over.
        let places: Vec<usize> = (0..columns.len()).filter(|place| Some(*place) != known).collect();
        if places.len() != model.n_features {
            bail!("the model knows no feature names and expects {}, found {}", count(model.n_features, "column"), places.len());
        }
        return Ok(places);
    }
    let places = positions(table, &model.features, "the model")?;
    let extra: Vec<&String> = columns
        .iter()
        .enumerate()
        .filter(|(place, _)| !places.contains(place) && Some(*place) != known)
        .map(|(_, name)| name)
        .collect();
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
    /// Standard deviations from the mean to `upper`.
    quantile: f64,
    /// Whether they are those of Student's distribution.
    student: bool,
    /// The same as a probability.
    above: f64,
    /// What is known of each row, and the name of its column.
    known: Option<(Known, &'a str)>,
}

impl<'a> PredictionWriter<'a> {
    fn new(model: &'a Model, args: &'a PredictArgs) -> Result<PredictionWriter<'a>> {
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
        let above = 0.5 + args.level.unwrap_or(LEVEL) / 2.0;
        let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
        let quantile = match (args.student_t || heavy, model.noise_degrees()) {
            (false, _) => Normal::standard().inverse_cdf(above),
            (true, Some(degrees)) if heavy || degrees > 2.0 => StudentsT::new(0.0, 1.0, degrees)?.inverse_cdf(above),
            // The target was constant.
            (true, None) if heavy => Normal::standard().inverse_cdf(above),
            (true, _) => bail!("--student-t is for regression by --inference variational, with the noise learnt"),
        };
        // 0 threads means one per processor.
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build().context("cannot start threads")?;
        let known = known(model, args)?;
        Ok(PredictionWriter { model, pool, header, quantile, student: args.student_t || heavy, above, known })
    }

    /// `known`: what is known of each row, `[B]`, if anything is.
    fn block(&self, x: ArrayView2<f64>, known: &[f64], sink: &mut csv::Writer<&mut dyn Write>) -> Result<()> {
        match task(self.model) {
            Task::Regress if self.model.posterior.is_none() => {
                for value in self.pool.install(|| self.model.predict_mean(x))? {
                    write(sink, &[number(value)])?;
                }
            }
            Task::Regress => {
                let prediction = self.pool.install(|| self.model.predict(x))?;
                if self.model.is_of_counts() {
                    for row in self.counts(&prediction, known)? {
                        write(sink, &row.map(number))?;
                    }
                    return Ok(());
                }
                let deviation = if self.student { prediction.deviation() } else { prediction.std() };
                for (n, (mean, (scale, std))) in prediction.mean.iter().zip(prediction.std().iter().zip(deviation)).enumerate() {
                    // With known noise the prediction is that of the function; both are Gaussian.
                    let wider = |std: f64| known.get(n).map_or(std, |v| (std * std + v).sqrt());
                    let half = self.quantile * wider(*scale);
                    write(sink, &[*mean, wider(std), mean - half, mean + half].map(number))?;
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

    /// Expected counts, their standard deviations, and quantiles of new counts.
    fn counts(&self, prediction: &Prediction, exposures: &[f64]) -> Result<Vec<[f64; 4]>> {
        let exposed = (!exposures.is_empty()).then(|| ArrayView1::from(exposures));
        let counts = prediction.counts(exposed)?;
        let std = counts.std();
        let row = |n: usize| {
            let exposure = exposures.get(n).copied().unwrap_or(1.0);
            let new = CountDistribution::new(prediction.mean[n], prediction.model_variance[n], exposure);
            [counts.mean[n], std[n], new.quantile(1.0 - self.above), new.quantile(self.above)]
        };
        Ok(self.pool.install(|| (0..prediction.mean.len()).into_par_iter().map(row).collect()))
    }
}

/// The column that says more of each row, if the model has a use for it.
fn known<'a>(model: &Model, args: &'a PredictArgs) -> Result<Option<(Known, &'a str)>> {
    match (&args.exposure, &args.noise_variance) {
        (Some(_), _) if !model.is_of_counts() => bail!("--exposure is for models of counts (--likelihood poisson)"),
        (Some(column), _) => Ok(Some((Known::Exposure, column))),
        (None, Some(_)) if model.noise_variance() != Some(0.0) => {
            bail!("--noise-variance is for models that were trained with such a column")
        }
        (None, Some(column)) => Ok(Some((Known::Noise, column))),
        (None, None) => Ok(None),
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
