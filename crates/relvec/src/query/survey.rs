//! Summary of all rows that a fit needs before it computes sums over them: moments, classes, and a sample.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::bytes::{Reader, Writer, unpack};
use super::moments::Moments;
use super::sample::{Sample, hash};
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::model::{Scaling, check_features};
use crate::targets::{Given, Targets, Values, check_labels};

/// Number of rows of each class in the sample, if the class has as many. Fewer rows would leave no choice of centres
/// for the class. The sample grows by at most this number times K.
const ROWS_OF_CLASS: usize = 20;

/// First bytes of a survey, with the version of the format.
const MAGIC: &[u8] = b"relvec survey 1\n";

/// Moments and a sample of rows that arrive in any blocks, in any order, from any number of machines.
///
/// The sample depends only on the values of the rows, and not on how they are divided into blocks. Equal rows are one
/// row of the sample.
///
/// ```
/// use ndarray::{Array2, s};
/// use relvec::Survey;
///
/// let x = Array2::from_shape_fn((1000, 2), |(i, k)| ((i + 1) as f64 * [0.618, 0.755][k]).fract());
/// let mut all = Survey::new(100, 0);
/// all.update(x.view(), None)?;
/// let (mut first, mut second) = (Survey::new(100, 0), Survey::new(100, 0));
/// first.update(x.slice(s![600.., ..]), None)?;
/// second.update(x.slice(s![..600, ..]), None)?;
/// first.merge(&second)?;
/// assert_eq!(first.sample(), all.sample());
/// assert_eq!(first.n_rows(), 1000);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    shape: Shape,
    /// Number of rows, and number of rows of positive weight.
    rows: u64,
    used: u64,
    features: Moments,
    /// Moments of the real targets.
    targets: Moments,
    /// Sum of the weights of each class, `[K]`.
    class_weights: Vec<f64>,
    sample: Sample,
    /// Sample of the rows of each class, `[K]`.
    of_class: Vec<Sample>,
}

/// Columns and settings of a survey. Surveys can be merged only if these agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Shape {
    /// Largest number of rows of the sample, and its seed.
    most: usize,
    seed: u64,
    /// Number K of classes; `None` for real targets.
    classes: Option<usize>,
    /// Number D of features, number R of real targets (0 for classes), and the further data of each row; `None` before
    /// the first row.
    columns: Option<(usize, usize, Further)>,
}

/// Further data of each row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Further {
    Nothing,
    NoiseVariance,
    Exposure,
}

/// The S different rows that a [`Survey`] has drawn, in the order of their positions.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledRows {
    /// Features, [S, D].
    pub x: Array2<f64>,
    /// Real targets, [S, R]; no columns for classes.
    pub t: Array2<f64>,
    /// Class labels, `[S]`; empty for real targets.
    pub labels: Vec<usize>,
    /// Number K of classes; 0 for real targets.
    pub classes: usize,
    /// Sum of the sample weights of all rows that equal each sampled row, `[S]`.
    pub weights: Array1<f64>,
    /// Noise variance of each row, `[S]`, if it is given.
    pub noise: Option<Array1<f64>>,
    /// Exposure of each count, `[S]`, if it is given.
    pub exposure: Option<Array1<f64>>,
    /// Position of the first row that equals each sampled row, `[S]`, ascending: number of its partition, and row
    /// within the partition. Rows of [`Survey::update`] belong to partition 0.
    pub positions: Vec<(u64, u64)>,
    /// True if the sample contains every different row of positive weight.
    pub whole: bool,
}

impl SampledRows {
    /// Returns the targets, with weights and with noise variances or exposures.
    pub fn targets(&self) -> Targets<'_> {
        let targets = match self.classes {
            0 if self.t.ncols() == 1 => Targets::real(self.t.column(0)),
            0 => Targets::outputs(self.t.view()),
            classes => Targets::classes(&self.labels, classes),
        };
        let targets = targets.with_weights(self.weights.view());
        match (&self.noise, &self.exposure) {
            (Some(noise), _) => targets.with_noise_variance(noise.view()),
            (_, Some(exposure)) => targets.with_exposure(exposure.view()),
            _ => targets,
        }
    }
}

impl Survey {
    /// Returns a survey of no rows, whose sample will have up to `most` different rows.
    pub fn new(most: usize, seed: u64) -> Survey {
        Survey::of(None, most, seed)
    }

    /// Returns a survey of no rows, for K = `classes` classes or for real targets (`None`).
    pub(super) fn of(classes: Option<usize>, most: usize, seed: u64) -> Survey {
        let k = classes.unwrap_or(0);
        Survey {
            shape: Shape { most, seed, classes, columns: None },
            rows: 0,
            used: 0,
            features: Moments::default(),
            targets: Moments::default(),
            class_weights: vec![0.0; k],
            sample: Sample::new(most),
            of_class: vec![Sample::new(ROWS_OF_CLASS); k],
        }
    }

    /// Adds rows `x`, [N, D], with sample weights, `[N]`, if they are given. After an error the survey is unchanged.
    ///
    /// # Errors
    /// Returns an error if shapes do not match, a value is not finite, or a weight is out of range.
    pub fn update(&mut self, x: ArrayView2<f64>, weights: Option<ArrayView1<f64>>) -> Result<()> {
        check_features("rows", x)?;
        let ones = Array1::ones(x.nrows());
        let weights = Targets::real(ones.view()).with_weights(weights.unwrap_or(ones.view())).checked_weights()?;
        let none = Array2::zeros((x.nrows(), 0));
        self.take((0, self.rows), x, none, &weights.expect("weights were given"), None).map(|_| ())
    }

    /// Adds rows `x`, [N, D], with real targets, and sample weights and noise variances or exposures if `targets` have
    /// them. After an error the survey is unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`Survey::update`], and an error if the rows differ from earlier ones in the number of
    /// targets or in whether noise variances or exposures are given.
    pub fn update_with_targets(&mut self, x: ArrayView2<f64>, targets: &Targets) -> Result<()> {
        self.see(0, self.rows, x, targets).map(|_| ())
    }

    /// Adds rows `x`, `[B, D]`, of a partition, whose first row has the number `from` there, and returns their
    /// checksum.
    pub(super) fn see(&mut self, part: u64, from: u64, x: ArrayView2<f64>, targets: &Targets) -> Result<u64> {
        if x.nrows() == 0 && targets.is_empty() {
            return Ok(0);
        }
        let (t, weights, further) = columns_of(x, targets, self.shape.classes, from)?;
        self.take((part, from), x, t, &weights, further.as_ref().map(|(kind, values)| (*kind, values.as_slice())))
    }

    fn take(
        &mut self,
        (part, from): (u64, u64),
        x: ArrayView2<f64>,
        t: Array2<f64>,
        weights: &[f64],
        further: Option<(Further, &[f64])>,
    ) -> Result<u64> {
        let outputs = if self.shape.classes.is_some() { 0 } else { t.ncols() };
        let (kind, further) = further.map_or((Further::Nothing, None), |(kind, values)| (kind, Some(values)));
        let columns = (x.ncols(), outputs, kind);
        self.agree(columns)?;
        self.shape.columns = Some(columns);
        let mut sum = 0u64;
        for (n, weight) in weights.iter().copied().enumerate() {
            let values = values_of(x, &t, further, n);
            let own = hash(0, values.iter().copied());
            sum = sum.wrapping_add(hash(own, [weight]));
            if weight > 0.0 {
                let position = (part, from + n as u64);
                self.sample.see(own, self.shape.seed, &values, weight, position);
                if self.shape.classes.is_some() {
                    let class = t[[n, 0]] as usize;
                    self.of_class[class].see(own, self.shape.seed, &values, weight, position);
                    self.class_weights[class] += weight;
                }
            }
        }
        let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
        let own: Vec<f64> = used.iter().map(|n| weights[*n]).collect();
        self.features.add(&Moments::of(x.select(Axis(0), &used).view(), &own));
        if outputs > 0 {
            self.targets.add(&Moments::of(t.select(Axis(0), &used).view(), &own));
        }
        self.rows += x.nrows() as u64;
        self.used += used.len() as u64;
        Ok(sum)
    }

    /// Checks the columns of new rows against those of earlier rows.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the numbers of columns differ, or if only some rows have noise variances or exposures.
    fn agree(&self, columns: (usize, usize, Further)) -> Result<()> {
        let Some((d, outputs, known)) = self.shape.columns else { return Ok(()) };
        let differ = |what: &str, found: usize, others: usize| {
            Err(Error::Rows(format!("rows have {found} {what}, and other rows have {others}: all rows need the same columns")))
        };
        match columns {
            (found, ..) if found != d => differ("features", found, d),
            (_, found, _) if found != outputs => differ("targets", found, outputs),
            (.., own) if own != known => {
                let what = if [own, known].contains(&Further::Exposure) { "exposures" } else { "noise variances" };
                Err(Error::Rows(format!("{what} are given for some rows only: give them for all rows or for none")))
            }
            _ => Ok(()),
        }
    }

    /// Adds the rows of another survey.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the surveys differ in the number of features, targets or classes, or in the size or
    /// seed of the sample.
    pub fn merge(&mut self, other: &Survey) -> Result<()> {
        let differs = |what: &str| Err(Error::Rows(format!("the two surveys have {what}")));
        if self.shape.most != other.shape.most || self.shape.seed != other.shape.seed {
            return differs("samples of different sizes or seeds");
        }
        if self.shape.classes != other.shape.classes {
            return differs("different numbers of classes");
        }
        if let Some(columns) = other.shape.columns {
            self.agree(columns)?;
            self.shape.columns = Some(columns);
        }
        self.rows += other.rows;
        self.used += other.used;
        self.features.add(&other.features);
        self.targets.add(&other.targets);
        self.class_weights.iter_mut().zip(&other.class_weights).for_each(|(sum, own)| *sum += own);
        self.sample.merge(&other.sample);
        self.of_class.iter_mut().zip(&other.of_class).for_each(|(own, other)| own.merge(other));
        Ok(())
    }

    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number of rows of positive weight.
    pub fn n_used(&self) -> usize {
        self.used as usize
    }

    /// Returns the number D of features; `None` before the first row.
    pub fn n_features(&self) -> Option<usize> {
        self.shape.columns.map(|(d, ..)| d)
    }

    /// Returns the sum of the sample weights.
    pub fn weight(&self) -> f64 {
        self.features.weight()
    }

    /// Returns the weighted mean and standard deviation of each feature. For features that are the same on every row
    /// the latter is 1.
    pub fn scaling(&self) -> Scaling {
        self.features.scaling()
    }

    /// Returns the scale for `gamma = "scale"`, for the features as they are or `standardized` by [`Survey::scaling`].
    pub fn data_scale(&self, standardized: bool) -> DataScale {
        match self.n_features() {
            // Standardised features have mean 0, and variance 1 unless they are the same on every row.
            Some(features) if standardized => {
                DataScale { features, variance: 1.0 - self.constant_features().len() as f64 / features as f64 }
            }
            _ => self.features.data_scale(),
        }
    }

    /// Returns the features that are the same on every row of positive weight, ascending.
    pub fn constant_features(&self) -> Vec<usize> {
        self.features.constant()
    }

    /// Returns the sum of the weights of each class, `[K]`.
    pub(super) fn class_weights(&self) -> &[f64] {
        &self.class_weights
    }

    /// Returns the features of the sampled rows, [S, D], in random order.
    pub fn sample(&self) -> Array2<f64> {
        let d = self.n_features().unwrap_or(0);
        let values: Vec<f64> = self.sample.rows().flat_map(|(values, _)| values.into_iter().take(d)).collect();
        Array2::from_shape_vec((self.sample.len(), d), values).expect("D values of each row")
    }

    /// Returns the sampled rows with their targets, weights, and noise variances or exposures. For classes that are rare in the
    /// sample, rows of the class sample replace them, with weights that sum to the share of the class.
    pub fn sampled_rows(&self) -> SampledRows {
        let (d, outputs, known) = self.shape.columns.unwrap_or((0, 0, Further::Nothing));
        let mut rows: Vec<_> = self.sample.rows().collect();
        if self.shape.classes.is_some() && !self.sample.is_whole() {
            let share = rows.iter().map(|(_, copies)| copies.weight).sum::<f64>() / self.class_weights.iter().sum::<f64>();
            for (class, own) in self.of_class.iter().enumerate() {
                let is_own = |values: &[f64]| values[d] == class as f64;
                if rows.iter().filter(|(values, _)| is_own(values)).count() >= own.len() {
                    continue;
                }
                rows.retain(|(values, _)| !is_own(values));
                let factor = share * self.class_weights[class] / own.rows().map(|(_, copies)| copies.weight).sum::<f64>();
                rows.extend(own.rows().map(|(values, mut copies)| {
                    copies.weight *= factor;
                    (values, copies)
                }));
            }
        }
        rows.sort_by_key(|(_, copies)| copies.first);
        let s = rows.len();
        let further = |kind: Further| (known == kind).then(|| rows.iter().map(|row| row.0[d + outputs]).collect());
        SampledRows {
            x: Array2::from_shape_fn((s, d), |(n, k)| rows[n].0[k]),
            t: Array2::from_shape_fn((s, outputs), |(n, k)| rows[n].0[d + k]),
            labels: if self.shape.classes.is_some() { rows.iter().map(|row| row.0[d] as usize).collect() } else { vec![] },
            classes: self.shape.classes.unwrap_or(0),
            weights: rows.iter().map(|row| row.1.weight).collect(),
            noise: further(Further::NoiseVariance),
            exposure: further(Further::Exposure),
            positions: rows.iter().map(|row| row.1.first).collect(),
            whole: self.sample.is_whole(),
        }
    }

    /// Returns the survey as bytes, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words = Writer::default();
        self.write(&mut words);
        words.pack(MAGIC, &self.shape)
    }

    /// Reads a survey from the bytes of [`Survey::to_bytes`].
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the bytes are not a survey, are of another version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Survey> {
        let (shape, mut from) = unpack(MAGIC, "survey", bytes)?;
        let survey = Survey::read(shape, &mut from)?;
        from.end()?;
        Ok(survey)
    }

    /// Appends the shape as JSON and then the numbers, as part of an answer.
    pub(super) fn write_whole(&self, out: &mut Writer) {
        let shape = serde_json::to_vec(&self.shape).expect("a shape is plain numbers");
        out.bytes(&shape);
        self.write(out);
    }

    pub(super) fn read_whole(from: &mut Reader) -> Result<Survey> {
        let shape = serde_json::from_slice(&from.bytes()?).map_err(|error| Error::Rows(format!("survey: {error}")))?;
        Survey::read(shape, from)
    }

    fn write(&self, out: &mut Writer) {
        out.counts([self.rows, self.used]);
        self.features.write(out);
        self.targets.write(out);
        out.numbers(&self.class_weights);
        std::iter::once(&self.sample).chain(&self.of_class).for_each(|sample| sample.write(out));
    }

    fn read(shape: Shape, from: &mut Reader) -> Result<Survey> {
        let k = shape.classes.unwrap_or(0);
        let (rows, used) = (from.count()?, from.count()?);
        let (features, targets) = (Moments::read(from)?, Moments::read(from)?);
        let class_weights = from.finite(k)?;
        let sample = Sample::read(from)?;
        let of_class = (0..k).map(|_| Sample::read(from)).collect::<Result<_>>()?;
        Ok(Survey { shape, rows, used, features, targets, class_weights, sample, of_class })
    }
}

/// Returns the values of row `n` of N: features, `[N, D]`, targets, `[N, K]`, and the further number of the row if it has
/// one.
fn values_of(x: ArrayView2<f64>, t: &Array2<f64>, further: Option<&[f64]>, n: usize) -> Vec<f64> {
    x.row(n).iter().chain(t.row(n)).chain(further.map(|values| &values[n])).copied().collect()
}

/// Returns the checksum of rows, `[N, D]`, with their targets and weights, which does not depend on their order.
pub(super) fn checksum(x: ArrayView2<f64>, (t, weights, further): &Checked) -> u64 {
    let values = further.as_ref().map(|(_, values)| values.as_slice());
    let of_row = |n: usize| hash(hash(0, values_of(x, t, values, n)), [weights[n]]);
    (0..x.nrows()).fold(0, |sum, n| sum.wrapping_add(of_row(n)))
}

/// Targets, [N, R] (for classes the labels, [N, 1]); sample weights, `[N]`; and the further numbers of the rows, `[N]`, if
/// they are given.
pub(crate) type Checked = (Array2<f64>, Vec<f64>, Option<(Further, Vec<f64>)>);

/// Checks rows `x`, `[N, D]`, and returns their targets, `[N, K]`, weights, and noise variances or exposures. `classes` is
/// the number of classes, `None` for real targets; `from` is the number of the first row, for messages.
///
/// # Errors
/// Returns an error if shapes do not match, a value is not finite, a weight is out of range, or classes are found
/// instead of real targets or the reverse.
pub(super) fn columns_of(x: ArrayView2<f64>, targets: &Targets, classes: Option<usize>, from: u64) -> Result<Checked> {
    targets.check_rows(x)?;
    check_features("rows to train on", x)?;
    let t = match (targets.values, classes) {
        (Values::Classes { labels, .. }, Some(count)) => {
            check_labels(labels, count, from as usize)?;
            Array2::from_shape_fn((labels.len(), 1), |(n, _)| labels[n] as f64)
        }
        (Values::Real(values), None) => values.insert_axis(Axis(1)).to_owned(),
        (Values::Outputs(values), None) => values.to_owned(),
        (Values::Classes { .. }, None) => return Err(Error::Targets("found classes where real targets are expected".into())),
        (_, Some(_)) => return Err(Error::Targets("found real targets where classes are expected".into())),
    };
    if let Some(((row, column), value)) = t.indexed_iter().find(|(_, v)| !v.is_finite()) {
        return Err(Error::NotFinite { what: "targets", row, column, value: *value });
    }
    if classes.is_some() {
        targets.refuse_given("a classifier")?;
    }
    let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.nrows()]);
    let kind = if matches!(targets.given, Some(Given::Exposure(_))) { Further::Exposure } else { Further::NoiseVariance };
    Ok((t, weights, targets.checked_given()?.map(|values| (kind, values))))
}
