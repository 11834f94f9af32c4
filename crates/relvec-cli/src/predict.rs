//! `relvec predict`: predicts the rows of a table in blocks.

use std::io;

use anyhow::{Context, Result, bail};
use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::SeedableRng;
use rand_distr::{ChiSquared, Distribution};
use rand_pcg::Pcg64;
use relvec::{Decision, Draws, FittedModel, Likelihood, Model, Moderation, Prediction, Rvm, Variance};

use crate::args::{PredictArgs, Task};
use crate::blocks::{Blocks, Wanted};
use crate::decision::{self, class_name};
use crate::model_file;
use crate::output::{self, Output};
use crate::progress::Pass;
use crate::sink::{self, CsvSink, Kind, ParquetSink, Sink};
use crate::summary::task;
use crate::training::Known;

/// Probability of the interval from lower to upper.
const LEVEL: f64 = 0.95;
/// Bytes of a draw in a row: the number, its text, its entries in lists, and the name of its column.
const DRAWN_BYTES: u64 = 128;

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    decision::check(&args.decision)?;
    output::apart("-o", args.output.as_deref(), &[&args.data, &args.model])?;
    let model = model_file::read(&args.model)?;
    let output = args.output.as_deref().map(Output::create).transpose()?;
    if args.level.is_some() && (task(&model) == Task::Classify || model.posterior.is_none()) {
        say!("note: --level is for regression by a relevance vector machine and has no effect on this model");
    }
    let outputs: Vec<Model> = match model.has_several_outputs() {
        true => (0..model.outputs()).map(|k| model.output(k)).collect::<relvec::Result<_>>()?,
        false => vec![],
    };
    let mut writer = PredictionWriter::new(&model, &outputs, args)?;
    let kinds = writer.kinds();
    match output {
        Some(mut file) if sink::is_parquet(args.output.as_deref()) => {
            stream(args, &mut writer, &mut ParquetSink::new(&mut file, kinds))?;
            file.finish()
        }
        Some(mut file) => {
            stream(args, &mut writer, &mut CsvSink::new(&mut file))?;
            file.finish()
        }
        None => stream(args, &mut writer, &mut CsvSink::new(&mut io::stdout().lock())),
    }
}

/// Predicts the table block by block.
fn stream(args: &PredictArgs, writer: &mut PredictionWriter, sink: &mut dyn Sink) -> Result<()> {
    let known = writer.known.map(|(_, column)| column);
    let named = writer.known.map(|(known, _)| format!("the {}", known.name()));
    let (rules, draws) = ((&args.rules, &args.reading), args.samples.unwrap_or(0));
    let wanted: Vec<Wanted> = known.zip(named.as_deref()).map(|(name, what)| Wanted::needed(name, what)).into_iter().collect();
    let (mut blocks, columns) = Blocks::open(&args.data, writer.model, &wanted, draws, rules)?;
    let known = writer.known.map(|(known, _)| known).zip(columns.into_iter().flatten().next());
    let mut of_rows = Vec::new();
    // A progress bar would disturb predictions on the screen.
    let pass = args.output.is_some().then(|| Pass::new("predictions"));
    let mut begun = false;
    while let Some(batch) = blocks.next(|table| {
        if let Some((known, column)) = known {
            of_rows.push(known.read(table, column)?);
        }
        Ok(())
    })? {
        // The header is written with the first rows, so that nothing is written for a table that cannot be read.
        if !std::mem::replace(&mut begun, true) {
            sink.begin(&writer.header)?;
        }
        // A row that is left out keeps its line with empty cells, so that predictions and rows correspond.
        let empty = vec![String::new(); writer.header.len()];
        let mut places = batch.kept.iter();
        let mut row = |cells: &[String]| {
            places.by_ref().take_while(|kept| !**kept).try_for_each(|_| sink.row(&empty))?;
            sink.row(cells)
        };
        writer.block(batch.x, &of_rows, &mut row)?;
        places.try_for_each(|_| sink.row(&empty))?;
        sink.end_block()?;
        of_rows.clear();
        if let Some(pass) = &pass {
            pass.at(blocks.table().row(), blocks.table().share());
        }
    }
    sink.finish()?;
    drop(pass);
    blocks.tell("have empty predictions");
    Ok(())
}

/// Function that writes a row of the output.
type RowWriter<'a> = dyn FnMut(&[String]) -> Result<()> + 'a;

/// Converts blocks of features to rows of the output.
struct PredictionWriter<'a> {
    model: &'a Model,
    /// Own thread pool: the global pool belongs to the program that embeds this library.
    pool: rayon::ThreadPool,
    header: Vec<String>,
    /// Decision rule, if one was given.
    decision: Option<Decision>,
    variance: Variance,
    /// Functions drawn from the posterior, for each output.
    draws: Vec<Draws<'a>>,
    /// Probability of the interval from lower to upper.
    level: f64,
    /// Probabilities of the requested quantiles.
    quantiles: Vec<f64>,
    /// `heavy` is true for Student-t noise. Otherwise `spread` is the standard deviation of a new value over the scale
    /// of its distribution.
    heavy: bool,
    spread: f64,
    /// With `--student-t`: factors on the distance of each drawn function from the mean; otherwise empty.
    stretch: Vec<f64>,
    /// Known noise variance or exposure of each row, and the name of its column.
    known: Option<(Known, &'a str)>,
}

impl<'a> PredictionWriter<'a> {
    /// Creates the writer. `outputs`: a model for each output, if there are several.
    fn new(model: &'a Model, outputs: &'a [Model], args: &'a PredictArgs) -> Result<PredictionWriter<'a>> {
        let mut header = vec!["prediction".to_string()];
        let decision = decision::resolve(&args.decision, model)?;
        match task(model) {
            Task::Regress if model.posterior.is_none() => {}
            Task::Regress => {
                header.extend(["std", "lower", "upper"].map(String::from));
                header.extend(args.quantiles.iter().map(|q| format!("quantile_{q}")));
            }
            Task::Classify if no_probabilities(model) => {}
            Task::Classify => {
                let classes = 0..model.n_classes().unwrap_or(2);
                header.extend(classes.map(|k| format!("probability_{}", class_name(model, k))));
                let (rejects, costs) = decision.as_ref().map_or((false, false), |d| (d.rejects(), d.costs.is_some()));
                header.extend(rejects.then(|| "rejected".to_string()));
                header.extend(costs.then(|| "expected_cost".to_string()));
            }
        }
        let regression = task(model) == Task::Regress && model.posterior.is_some();
        let asked = [
            ("--variance", args.variance.is_some()),
            ("--samples", args.samples.is_some()),
            ("--quantiles", !args.quantiles.is_empty()),
        ];
        for (flag, given) in asked {
            if given && !regression {
                bail!("{flag} is for regression by a relevance vector machine, and this model is not one");
            }
        }
        let variance = args.variance.as_deref().map_or(Ok(model.variance), Variance::from_name)?;
        if variance == Variance::Healed && regression && model.kept_rows.is_none() {
            // A prediction of no rows reports the library's errors before the header is written.
            model.predict_outputs_with(Array2::zeros((0, model.n_features)).view(), variance)?;
        }
        let each = if outputs.is_empty() { std::slice::from_ref(model) } else { outputs };
        // Given the noise precisions the outputs are independent, so each has its own seed. Draws that need more memory
        // than the limit are refused here, before any list of this length is created.
        let drawn = (args.samples.unwrap_or(0) as u64).saturating_mul(each.len() as u64);
        let (needed, limit) = (drawn.saturating_mul(DRAWN_BYTES), Rvm::default().memory_allowed());
        if needed > limit {
            return Err(relvec::Error::Memory { what: format!("rows of {drawn} draws (--samples)"), needed, limit }.into());
        }
        let draw = |(k, one): (usize, &'a Model), count| one.draws(count, args.seed.wrapping_add(k as u64), true);
        let draws = match args.samples {
            Some(count) => each.iter().enumerate().map(|one| draw(one, count)).collect::<relvec::Result<_>>()?,
            None => vec![],
        };
        header.extend((1..=args.samples.unwrap_or(0)).map(|k| format!("sample_{k}")));
        if !outputs.is_empty() {
            let of = |(k, one): (usize, &Model)| {
                let name = one.target.clone().unwrap_or_else(|| (k + 1).to_string());
                header.iter().map(|column| format!("{column}_{name}")).collect::<Vec<_>>()
            };
            header = outputs.iter().enumerate().flat_map(of).collect();
        }
        let level = args.level.unwrap_or(LEVEL);
        let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
        if args.student_t && !heavy && model.noise_degrees().is_none_or(|degrees| !(degrees > 2.0)) {
            bail!("--student-t is for regression by --inference variational, with the noise learned");
        }
        let pool = relvec::thread_pool(args.threads)?;
        let known = Known::of(model, args.exposure.as_deref(), args.noise_variance.as_deref())?;
        let spread = match (args.student_t, model.noise_degrees()) {
            (true, Some(degrees)) if degrees > 2.0 => (degrees / (degrees - 2.0)).sqrt(),
            _ => 1.0,
        };
        let stretch = match (args.student_t && !heavy, model.noise_degrees(), args.samples) {
            (true, Some(degrees), Some(count)) => stretch(degrees, count, args.seed)?,
            _ => vec![],
        };
        let quantiles = args.quantiles.clone();
        Ok(PredictionWriter { model, pool, header, decision, variance, draws, level, quantiles, heavy, spread, stretch, known })
    }

    /// Returns the types of the output columns.
    fn kinds(&self) -> Vec<Kind> {
        let classifies = task(self.model) == Task::Classify;
        let kind = |name: &String| match name.as_str() {
            "prediction" if classifies => Kind::Text,
            "rejected" if classifies => Kind::Boolean,
            _ => Kind::Number,
        };
        self.header.iter().map(kind).collect()
    }

    /// Writes the rows of the output for the rows of `x`, [B, D]. `known`, `[B]`: known noise variances or exposures,
    /// or empty.
    fn block(&mut self, x: ArrayView2<f64>, known: &[f64], write: &mut RowWriter) -> Result<()> {
        if x.nrows() == 0 {
            return Ok(());
        }
        if let Some(decision) = &self.decision {
            return self.decisions(x, decision, write);
        }
        match task(self.model) {
            Task::Regress if self.model.posterior.is_none() => {
                for value in self.pool.install(|| self.model.predict_mean(x))? {
                    write(&[number(value)])?;
                }
            }
            Task::Regress => {
                let (model, variance) = (self.model, self.variance);
                let predictions = self.pool.install(|| model.predict_outputs_with(x, variance))?;
                let of_rows = (!known.is_empty()).then(|| ArrayView1::from(known));
                let (level, quantiles) = (self.level, &self.quantiles);
                let ends = self.each(&predictions, |one| model.interval(one, level, of_rows))?;
                let quantiles = self.each(&predictions, |one| model.quantiles(one, quantiles, of_rows))?;
                if model.is_of_counts() {
                    let counts = predictions[0].counts(of_rows)?;
                    let (std, (lower, upper)) = (counts.std(), &ends[0]);
                    for n in 0..x.nrows() {
                        let cells = [counts.mean[n], std[n], lower[n], upper[n]].into_iter().chain(quantiles[0].row(n).to_vec());
                        write(&cells.map(number).collect::<Vec<_>>())?;
                    }
                    return Ok(());
                }
                let pool = &self.pool;
                let drawn =
                    self.draws.iter_mut().map(|draws| pool.install(|| draws.at(x))).collect::<relvec::Result<Vec<_>>>()?;
                let deviation = |prediction: &Prediction| match self.heavy {
                    true => prediction.deviation(),
                    false => prediction.std() * self.spread,
                };
                let deviations: Vec<_> = predictions.iter().map(deviation).collect();
                for n in 0..x.nrows() {
                    let mut cells = vec![];
                    for (k, (prediction, std)) in predictions.iter().zip(&deviations).enumerate() {
                        // With known noise the prediction describes the function. Function and noise are Gaussian, so
                        // their variances add up.
                        let wider = |std: f64| known.get(n).map_or(std, |v| (std * std + v).sqrt());
                        let (mean, (lower, upper)) = (prediction.mean[n], &ends[k]);
                        cells.extend([mean, wider(std[n]), lower[n], upper[n]]);
                        cells.extend(quantiles[k].row(n));
                        let by = |s: usize| self.stretch.get(s).copied();
                        let stretched = |(s, value): (usize, &f64)| by(s).map_or(*value, |by| mean + by * (value - mean));
                        cells.extend(drawn.get(k).iter().flat_map(|drawn| drawn.row(n).into_iter().enumerate().map(stretched)));
                    }
                    write(&cells.into_iter().map(number).collect::<Vec<_>>())?;
                }
            }
            Task::Classify if no_probabilities(self.model) => {
                for class in self.pool.install(|| self.model.predict_class(x))? {
                    write(&[class_name(self.model, class)])?;
                }
            }
            Task::Classify => {
                let probability = self.pool.install(|| self.model.predict_probability(x, Moderation::Posterior))?;
                // The class of a support vector machine is decided by votes, which can differ from the sigmoids.
                let votes = self.model.margins.as_ref().map(|_| self.model.predict_class(x)).transpose()?;
                for (n, p) in probability.outer_iter().enumerate() {
                    // Equal probabilities: the first class is chosen.
                    let likeliest = (0..p.len()).fold(0, |best, k| if p[k] > p[best] { k } else { best });
                    let class = votes.as_ref().map_or(likeliest, |votes| votes[n]);
                    let cells: Vec<String> =
                        std::iter::once(class_name(self.model, class)).chain(p.iter().map(|p| number(*p))).collect();
                    write(&cells)?;
                }
            }
        }
        Ok(())
    }

    fn decisions(&self, x: ArrayView2<f64>, decision: &Decision, write: &mut RowWriter) -> Result<()> {
        let decided = self.pool.install(|| self.model.decide(x, decision))?;
        for (n, p) in decided.probabilities.outer_iter().enumerate() {
            let mut cells = vec![class_name(self.model, decided.label[n])];
            cells.extend(p.iter().map(|p| number(*p)));
            cells.extend(decision.rejects().then(|| decided.rejected[n].to_string()));
            cells.extend(decided.expected_cost.as_ref().map(|cost| number(cost[n])));
            write(&cells)?;
        }
        Ok(())
    }

    /// Computes a result for each output, in the thread pool.
    fn each<T: Send>(
        &self,
        predictions: &[Prediction],
        of: impl Fn(&Prediction) -> relvec::Result<T> + Send,
    ) -> relvec::Result<Vec<T>> {
        self.pool.install(|| predictions.iter().map(of).collect())
    }
}

/// Returns factors, one per draw and equal at all rows. They turn normal draws about their mean into draws of a
/// multivariate Student-t distribution with the same scale.
fn stretch(degrees: f64, count: usize, seed: u64) -> Result<Vec<f64>> {
    // The random numbers must differ from those of the draws.
    let mut random = Pcg64::seed_from_u64(!seed);
    let square = ChiSquared::new(degrees).context("degrees of freedom")?;
    Ok((0..count).map(|_| (degrees / square.sample(&mut random)).sqrt()).collect())
}

/// True for a support vector classifier without probabilities.
fn no_probabilities(model: &Model) -> bool {
    model.margins.as_ref().is_some_and(|m| m.sigmoids.is_empty())
}

/// Returns a number with all digits, and with an exponent if it would have many zeros.
fn number(value: f64) -> String {
    format!("{value:?}")
}
