//! Targets of a fit: real values or classes, with sample weights.

use ndarray::{ArrayView1, ArrayView2, Axis};

use crate::error::{Error, Result};

pub use relvec_predict::MultiClass;

/// Largest sample weight, 2^53. A weight w counts as w rows, and not all larger integers are exact. Sums over the rows
/// would lose other rows. Half or twice this value would serve as well.
const MOST_WEIGHT: f64 = 9_007_199_254_740_992.0;

/// Targets of a fit, one per row, with optional sample weights and further data of each row.
#[derive(Debug, Clone, Copy)]
pub struct Targets<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) weights: Option<ArrayView1<'a, f64>>,
    pub(crate) given: Option<Given<'a>>,
}

/// Data of each row beside its target, `[N]`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    /// Noise variance.
    Noise(ArrayView1<'a, f64>),
    /// Exposure, to which the expected count is proportional.
    Exposure(ArrayView1<'a, f64>),
}

impl Given<'_> {
    /// Returns the name of one of the values.
    pub fn name(&self) -> &'static str {
        match self {
            Given::Noise(_) => "noise variance",
            Given::Exposure(_) => "exposure",
        }
    }

    /// Returns a description of the likelihood that uses the values.
    pub fn serves(&self) -> &'static str {
        match self {
            Given::Noise(_) => "the gaussian likelihood whose own noise_variance is not given",
            Given::Exposure(_) => "the poisson likelihood",
        }
    }

    fn values(&self) -> ArrayView1<'_, f64> {
        match self {
            Given::Noise(values) | Given::Exposure(values) => values.view(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    Real(ArrayView1<'a, f64>),
    /// Several outputs, [N, K], with K of at least 2.
    Outputs(ArrayView2<'a, f64>),
    Classes {
        labels: &'a [usize],
        count: usize,
    },
}

impl<'a> Targets<'a> {
    /// Returns real targets, `[N]`.
    pub fn real(values: ArrayView1<'a, f64>) -> Self {
        Targets { values: Values::Real(values), weights: None, given: None }
    }

    /// Returns real targets of several outputs, [N, K], K >= 1, for the Gaussian likelihood, (M61). Each output has its
    /// own function. The functions share their basis functions, and the precisions of their weights relative to the
    /// noise precision of each output.
    pub fn outputs(values: ArrayView2<'a, f64>) -> Self {
        let values = match values.ncols() {
            1 => Values::Real(values.index_axis_move(Axis(1), 0)),
            _ => Values::Outputs(values),
        };
        Targets { values, weights: None, given: None }
    }

    /// Returns class labels 0..`count`-1, `[N]`. The caller keeps the names of the classes.
    pub fn classes(labels: &'a [usize], count: usize) -> Self {
        Targets { values: Values::Classes { labels, count }, weights: None, given: None }
    }

    /// Sets sample weights, `[N]`, from 0 to 2^53. They multiply the log-likelihoods of the rows, so that a weight of 2
    /// equals the row twice. Weights that sum to 1 count as one row, from which nothing can be learned: see
    /// [`SmallWeights`](crate::SmallWeights).
    pub fn with_weights(mut self, weights: ArrayView1<'a, f64>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Sets the noise variance of each row, `[N]`, positive, in squared units of the target. It is for the Gaussian
    /// likelihood, whose noise is then known, (M48).
    pub fn with_noise_variance(mut self, variances: ArrayView1<'a, f64>) -> Self {
        self.given = Some(Given::Noise(variances));
        self
    }

    /// Sets the exposure of each row, `[N]`, positive: the time, area or number of people that the count refers to. It
    /// is for the Poisson likelihood, whose rate is then that for an exposure of 1, (M49).
    pub fn with_exposure(mut self, exposures: ArrayView1<'a, f64>) -> Self {
        self.given = Some(Given::Exposure(exposures));
        self
    }

    /// Returns N, the number of rows.
    pub fn len(&self) -> usize {
        match self.values {
            Values::Real(v) => v.len(),
            Values::Outputs(v) => v.nrows(),
            Values::Classes { labels, .. } => labels.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that there is one target for each row of `x`, [N, D], and that rows have features.
    pub(crate) fn check_rows(&self, x: ArrayView2<f64>) -> Result<()> {
        self.check_shape(x.dim())
    }

    /// Checks that there is one target for each row of a matrix of shape (N, D), and that rows have features.
    pub(crate) fn check_shape(&self, (rows, columns): (usize, usize)) -> Result<()> {
        if self.len() != rows {
            let (expected, found) = (format!("{rows}, one per row"), self.len().to_string());
            return Err(Error::Shape { what: "targets", expected, found });
        }
        if let Values::Outputs(values) = self.values
            && values.ncols() == 0
        {
            return Err(Error::Shape { what: "targets", expected: "at least 1 column".into(), found: "0".into() });
        }
        if columns == 0 {
            return Err(Error::Shape { what: "rows to train on", expected: "at least 1 column".into(), found: "0".into() });
        }
        Ok(())
    }

    /// Returns the shares of the classes by sample weight, `[K]`, each > 0, for targets that were checked; empty for
    /// real values.
    pub(crate) fn class_frequencies(&self) -> Vec<f64> {
        let Values::Classes { labels, count } = self.values else { return vec![] };
        let largest = self.weights.map_or(1.0, |weights| weights.iter().fold(0.0f64, |m, w| m.max(*w)));
        let mut weights = vec![vec![]; count];
        labels.iter().enumerate().for_each(|(n, k)| weights[*k].push(self.weights.map_or(1.0, |w| w[n] / largest)));
        // Sorting the weights makes the shares independent of the order of the rows.
        weights.iter_mut().for_each(|own: &mut Vec<f64>| own.sort_unstable_by(f64::total_cmp));
        let sums: Vec<f64> = weights.iter().map(|own| own.iter().sum()).collect();
        let total: f64 = sums.iter().sum();
        sums.iter().map(|sum| (sum / total).max(f64::MIN_POSITIVE)).collect()
    }

    /// Returns the number of rows of weight 0, which have no effect on a fit.
    pub(crate) fn unused(&self) -> usize {
        self.weights.map_or(0, |weights| weights.iter().filter(|w| **w == 0.0).count())
    }

    /// Returns the sample weights, `[N]`, if there are any, after checking them.
    pub(crate) fn checked_weights(&self) -> Result<Option<Vec<f64>>> {
        let Some(weights) = self.weights else { return Ok(None) };
        if weights.len() != self.len() {
            let found = format!("{}", weights.len());
            return Err(Error::Shape { what: "sample weights", expected: format!("{}, one per row", self.len()), found });
        }
        if let Some((row, value)) = weights.iter().enumerate().find(|(_, w)| !(0.0..=MOST_WEIGHT).contains(*w)) {
            return Err(Error::Weight { row, value: *value });
        }
        Ok(Some(weights.to_vec()))
    }

    /// Returns the further data of each row, `[N]`, if there are any, after checking that they are positive.
    pub(crate) fn checked_given(&self) -> Result<Option<Vec<f64>>> {
        let Some(given) = self.given else { return Ok(None) };
        let (name, values) = (given.name(), given.values());
        if values.len() != self.len() {
            let (expected, found) = (format!("{}, one per row", self.len()), values.len().to_string());
            return Err(Error::Shape { what: name, expected, found });
        }
        if let Some((row, value)) = values.iter().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0)) {
            return Err(Error::Targets(format!("{name} of row {row} is {value}; it must be a positive, finite number")));
        }
        Ok(Some(values.to_vec()))
    }

    /// Returns an error if there are further data of each row, which `what` does not support.
    pub(crate) fn refuse_given(&self, what: &str) -> Result<()> {
        match self.given {
            Some(given) => Err(Error::Targets(format!("{} per row cannot be combined with {what}", given.name()))),
            None => Ok(()),
        }
    }
}

/// Checks that labels are below the number of classes. `from` is the number of the first row, for messages.
pub(crate) fn check_labels(labels: &[usize], count: usize, from: usize) -> Result<()> {
    let Some(row) = labels.iter().position(|label| *label >= count) else { return Ok(()) };
    let (label, last) = (labels[row], count.saturating_sub(1));
    Err(Error::Targets(format!("row {} has label {label}; labels of {count} classes are 0 to {last}", from + row)))
}

/// Checks labels of several classes: each class has a row of positive weight.
pub(crate) fn check_present(labels: &[usize], count: usize, weights: Option<&[f64]>) -> Result<()> {
    check_labels(labels, count, 0)?;
    let mut present = vec![false; count];
    labels.iter().enumerate().for_each(|(n, label)| present[*label] |= weights.is_none_or(|w| w[n] > 0.0));
    match present.iter().position(|found| !found) {
        Some(k) => Err(absent(k, count)),
        None => Ok(()),
    }
}

/// Returns the error for a class without rows.
pub(crate) fn absent(class: usize, count: usize) -> Error {
    Error::Targets(format!("class {class} of {count} has no row of positive weight; each class needs one"))
}
