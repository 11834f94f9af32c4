//! Predictions for the rows of a table with the true values, the basis of all figures and numbers of a report.

use std::borrow::Cow;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use relvec::{Error, FittedBasis, Model, Moderation, Prediction, Result};

use super::plot::thinned;
use crate::measures::{Classes, joined};

/// Probabilities of the intervals whose coverage is computed.
const LEVELS: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/// Most rows for the coverage of intervals of counts, evenly spaced in the table. 14 quantiles of a count take a
/// millisecond or more, and 5,000 rows determine a coverage to 0.6 percentage points.
const COUNTED: usize = 5000;

/// The true values or classes of rows.
#[derive(Debug, Clone, Copy)]
pub enum Truth<'a> {
    /// Values of the outputs that are evaluated, [N, K].
    Values(ArrayView2<'a, f64>),
    /// Numbers of the classes, `[N]`.
    Classes(&'a [usize]),
}

/// Rows of a table with their predictions.
#[derive(Debug)]
pub struct Evaluation<'a> {
    model: Cow<'a, Model>,
    /// The numbers of the rows in the table, counted from 0.
    pub(super) rows: Vec<usize>,
    /// The exposures of counts; empty if each is 1.
    pub(super) exposures: Vec<f64>,
    pub(super) found: Found,
    /// Log probabilities of the classes, of each block of rows.
    logs: Vec<Array2<f64>>,
}

/// True values and predictions of all rows.
#[derive(Debug)]
pub(super) enum Found {
    Values(Vec<Output>),
    Classes(Box<Classes>),
}

/// True values and predictions of one target.
#[derive(Debug)]
pub(super) struct Output {
    /// The model of this target alone.
    pub model: Model,
    /// Index of the target in the model.
    place: usize,
    pub truth: Vec<f64>,
    pub mean: Vec<f64>,
    /// Standard deviations of new values (for Student-t noise: scales); empty if predictions have no distribution.
    pub std: Vec<f64>,
    pub log_density: Vec<f64>,
    pub bands: Vec<Band>,
    /// Rows whose intervals are evaluated.
    pub banded: usize,
    /// Means and variances of the log rates of counts; otherwise empty.
    log_rates: (Vec<f64>, Vec<f64>),
}

/// Intervals of one probability.
#[derive(Debug, Clone)]
pub(super) struct Band {
    pub level: f64,
    /// Rows inside their intervals.
    pub covered: usize,
    /// Sum of the widths of the intervals.
    pub widths: f64,
}

impl<'a> Evaluation<'a> {
    /// Creates an evaluation without rows. `outputs`: indices of the evaluated targets; a model of one target has index
    /// 0.
    ///
    /// # Errors
    /// The model does not have one of the outputs.
    pub fn new(model: &'a Model, outputs: &[usize]) -> Result<Evaluation<'a>> {
        let one = |place: &usize| {
            let names = Model { targets: vec![], ..model.output(*place)? };
            let [truth, mean, std, log_density] = [const { vec![] }; 4];
            Ok(Output {
                model: names,
                place: *place,
                truth,
                mean,
                std,
                log_density,
                bands: vec![],
                banded: 0,
                log_rates: (vec![], vec![]),
            })
        };
        let found = match model.n_classes() {
            None => Found::Values(outputs.iter().map(one).collect::<Result<_>>()?),
            Some(_) => Found::Classes(Box::default()),
        };
        // If the caller computes the kernel, rows contain the values of the basis functions.
        let model = match model.expansion.basis {
            FittedBasis::External { .. } => Cow::Owned(model.on_basis()),
            _ => Cow::Borrowed(model),
        };
        Ok(Evaluation { model, rows: vec![], exposures: vec![], found, logs: vec![] })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Predicts the rows `x`, [B, D], whose row numbers in the table are `rows`, `[B]`. `known`, `[B]`, contains
    /// exposures of counts, or noise variances if the model was trained with them; it is empty if they are not known.
    ///
    /// # Errors
    /// The model refuses to predict the rows, counts are negative or not whole, or true values are not finite.
    pub fn push(&mut self, x: ArrayView2<f64>, rows: &[usize], truth: Truth, known: &[f64]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let known = (!known.is_empty()).then(|| ArrayView1::from(known));
        match (&mut self.found, truth) {
            (Found::Values(outputs), Truth::Values(values)) if values.ncols() == outputs.len() => {
                let wrong = |(place, value): ((usize, usize), &f64)| (!value.is_finite()).then_some((place, *value));
                if let Some(((row, column), value)) = values.indexed_iter().find_map(wrong) {
                    return Err(Error::NotFinite { what: "targets", row: rows[row], column, value });
                }
                if self.model.posterior.is_none() {
                    let mean = self.model.predict_output_means(x)?;
                    for (output, truth) in outputs.iter_mut().zip(values.columns()) {
                        output.mean.extend(mean.column(output.place));
                        output.truth.extend(truth);
                    }
                } else {
                    let predictions = self.model.predict_outputs(x)?;
                    for (output, truth) in outputs.iter_mut().zip(values.columns()) {
                        output.push(&predictions[output.place], truth, known)?;
                    }
                }
                if self.model.is_of_counts() {
                    self.exposures.extend(known.iter().flatten());
                }
            }
            (Found::Classes(classes), Truth::Classes(truth)) => predict_classes(&self.model, x, truth, classes, &mut self.logs)?,
            (Found::Values(outputs), _) => {
                return Err(Error::Targets(format!("expected values of {} targets", outputs.len())));
            }
            (Found::Classes(_), _) => return Err(Error::Targets("values, expected classes".into())),
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// Computes the coverage of counts after the last row.
    pub(super) fn finish(&mut self) -> Result<()> {
        match &mut self.found {
            Found::Values(outputs) => outputs.iter_mut().try_for_each(|output| output.band_counts(&self.exposures)),
            Found::Classes(classes) => {
                classes.log = joined(&std::mem::take(&mut self.logs)).map(|log| (log.clone(), log));
                Ok(())
            }
        }
    }
}

/// True if predictions have a distribution. Support vector machines have none, and neither do models trained with known
/// noise if the noise of the new rows is not known.
fn has_distribution(model: &Model, known: bool) -> bool {
    model.posterior.is_some() && (known || model.noise_variance() != Some(0.0))
}

impl Output {
    fn push(&mut self, prediction: &Prediction, truth: ArrayView1<f64>, known: Option<ArrayView1<f64>>) -> Result<()> {
        self.truth.extend(truth);
        let counts = self.model.is_of_counts().then(|| prediction.counts(known)).transpose()?;
        match &counts {
            Some(counts) => self.mean.extend(&counts.mean),
            None => self.mean.extend(&prediction.mean),
        }
        if !has_distribution(&self.model, known.is_some()) {
            return Ok(());
        }
        match (counts, known) {
            (Some(counts), _) => self.std.extend(counts.std()),
            (None, Some(noise)) => self.std.extend((&prediction.model_variance + &noise).mapv(f64::sqrt)),
            (None, None) => self.std.extend(prediction.std()),
        }
        self.log_density.extend(self.model.log_density(prediction, truth, known)?);
        if self.model.is_of_counts() {
            self.log_rates.0.extend(&prediction.mean);
            self.log_rates.1.extend(&prediction.model_variance);
            return Ok(());
        }
        self.band(prediction, truth, known)
    }

    /// Adds the coverage and widths of the intervals of rows.
    fn band(&mut self, prediction: &Prediction, truth: ArrayView1<f64>, known: Option<ArrayView1<f64>>) -> Result<()> {
        if self.bands.is_empty() {
            self.bands = LEVELS.map(|level| Band { level, covered: 0, widths: 0.0 }).to_vec();
        }
        for band in &mut self.bands {
            let (lower, upper) = self.model.interval(prediction, band.level, known)?;
            for ((t, lower), upper) in truth.iter().zip(&lower).zip(&upper) {
                band.covered += usize::from(lower <= t && t <= upper);
                band.widths += upper - lower;
            }
        }
        self.banded += truth.len();
        Ok(())
    }

    /// Computes the coverage and widths of the intervals of counts, on at most [`COUNTED`] rows.
    fn band_counts(&mut self, exposures: &[f64]) -> Result<()> {
        let rows: Vec<usize> = thinned(&(0..self.log_rates.0.len()).collect::<Vec<_>>(), COUNTED);
        if rows.is_empty() {
            return Ok(());
        }
        let some = |all: &[f64]| -> Array1<f64> { rows.iter().map(|i| all[*i]).collect() };
        let prediction = Prediction {
            mean: some(&self.log_rates.0),
            model_variance: some(&self.log_rates.1),
            noise_variance: 0.0,
            noise_degrees: None,
        };
        let (truth, known) = (some(&self.truth), (!exposures.is_empty()).then(|| some(exposures)));
        self.band(&prediction, truth.view(), known.as_ref().map(|known| known.view()))
    }

    /// Returns the probability `level` and the share of rows inside that interval.
    pub fn coverage(&self, level: f64) -> Option<(f64, f64)> {
        let band = self.bands.iter().find(|band| band.level == level)?;
        Some((level, band.covered as f64 / self.banded as f64))
    }
}

fn predict_classes(
    model: &Model,
    x: ArrayView2<f64>,
    truth: &[usize],
    classes: &mut Classes,
    logs: &mut Vec<Array2<f64>>,
) -> Result<()> {
    classes.truth.extend(truth);
    let Some(margins) = &model.margins else {
        let log = model.predict_log_probability(x, Moderation::Posterior)?;
        let top = |row: ArrayView1<f64>| (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        classes.predicted.extend(log.outer_iter().map(top));
        logs.push(log);
        return Ok(());
    };
    // The class of a support vector machine is decided by votes, which can differ from the sigmoids.
    let function = model.decision_function(x)?;
    classes.predicted.extend(model.vote(&function)?);
    match margins.sigmoids.is_empty() {
        false => logs.push(model.predict_log_probability(x, Moderation::Posterior)?),
        true if function.ncols() == 1 => classes.function.get_or_insert_default().extend(function.column(0)),
        true => {}
    }
    Ok(())
}
