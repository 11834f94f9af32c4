//! Scales features by their spread before kernels are learned, so that the result does not depend on their units.

use ndarray::{Array2, ArrayView2, Axis};

use crate::design::name_largest;
use crate::error::{Error, Result};
use crate::kernel::{Form, Gamma, Kernel};
use crate::model::Model;
use crate::rvm::data::training_set::TrainingSet;

/// Largest effect of a deviation of a constant feature, relative to its magnitude.
const CONSTANT_EFFECT: f64 = 1e-14;

/// Weighted moments of each feature over all rows: mean, standard deviation and root mean square, `[D]`.
pub(in crate::rvm) struct Moments {
    pub mean: Vec<f64>,
    /// Standard deviation; 0 for a feature that is the same on every row.
    pub deviation: Vec<f64>,
    pub size: Vec<f64>,
}

/// Units in which a kernel sees the features.
pub(in crate::rvm) struct Frame<'a> {
    pub moments: &'a Moments,
    /// Features with an effect, ascending.
    pub live: Vec<usize>,
    /// Value that is subtracted from each feature, `[D]`, and the divisor, `[D]`.
    origin: Vec<f64>,
    unit: Vec<f64>,
    /// Power of the unit in gamma. It is 0 if the kernel sees features as they are, because it has no gamma to learn or
    /// is a sum.
    power: i32,
}

impl Moments {
    /// Returns the moments of rows `x`, [N, D], with positive weights, `[N]`.
    pub fn new(x: ArrayView2<f64>, weights: &[f64]) -> Moments {
        let total: f64 = weights.iter().sum();
        let (mut mean, mut deviation, mut size) = (vec![], vec![], vec![]);
        for column in x.columns() {
            // Entries are divided by the largest one, so that squares stay in range.
            let largest = column.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            let unit = if largest > 0.0 { largest } else { 1.0 };
            let sum = |f: &dyn Fn(f64) -> f64| column.iter().zip(weights).map(|(v, c)| c / total * f(v / unit)).sum::<f64>();
            let m = sum(&|v| v);
            let constant = column.iter().all(|v| *v == column[0]);
            mean.push(m * unit);
            deviation.push(if constant { 0.0 } else { unit * sum(&|v| (v - m).powi(2)).sqrt() });
            size.push(unit * sum(&|v| v * v).sqrt());
        }
        Moments { mean, deviation, size }
    }
}

/// Returns the share of each feature in the variation of the kernel of `model`, `[D]`, (M37). Shares sum to 1. The
/// result is empty unless each feature has its own gamma.
pub(in crate::rvm) fn feature_relevance(training: &TrainingSet, model: &Model) -> Vec<f64> {
    let Some((kernel, Gamma::PerFeature(gammas))) = model.kernel().and_then(|kernel| Some((kernel, kernel.form().gamma()?)))
    else {
        return vec![];
    };
    let moments = Moments::new(training.rows.view(), &training.sample_weights());
    let power = if matches!(kernel.form(), Form::Absolutes(_)) { 1 } else { 2 };
    let moved: Vec<f64> = gammas.iter().zip(&moments.deviation).map(|(gamma, s)| (gamma * s.powi(power)).min(f64::MAX)).collect();
    let largest = moved.iter().copied().fold(0.0, f64::max);
    let total: f64 = moved.iter().map(|v| v / largest).sum();
    moved.iter().map(|v| if largest > 0.0 { v / largest / total } else { 0.0 }).collect()
}

impl<'a> Frame<'a> {
    /// Returns the units for a kernel. Errors name the largest entry of `rows`, [N, D].
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if the spread of a feature requires a gamma that is out of the range of numbers.
    pub fn new(kernel: &Kernel, moments: &'a Moments, rows: ArrayView2<f64>) -> Result<Frame<'a>> {
        let products = matches!(kernel.form(), Form::Products(_));
        let spread = if products { &moments.size } else { &moments.deviation };
        let live: Vec<usize> = (0..spread.len()).filter(|d| spread[*d] > 0.0).collect();
        let is_sum = kernel.as_sum().is_some();
        let power = match kernel.form() {
            _ if kernel.learned_rule().is_none() || is_sum => 0,
            Form::Absolutes(_) => 1,
            _ => 2,
        };
        let (origin, unit) = match power {
            0 => (vec![0.0; spread.len()], vec![1.0; spread.len()]),
            _ => (if products { vec![0.0; spread.len()] } else { moments.mean.clone() }, spread.clone()),
        };
        let (units, most) = if is_sum { (spread, 2) } else { (&unit, power) };
        if !live.iter().all(|d| units[*d].is_normal() && units[*d].powi(most).is_normal()) {
            let error = Error::Overflow { what: "gamma for features of this spread, or its inverse,".into() };
            return Err(name_largest(error, rows));
        }
        Ok(Frame { moments, live, origin, unit, power })
    }

    /// Returns rows `x`, [n, D], in internal units, [n, features with an effect]. If no gamma is to be learned, all
    /// features are returned as they are.
    pub fn to_internal(&self, x: ArrayView2<f64>) -> Array2<f64> {
        if self.power == 0 {
            return x.to_owned();
        }
        let mut out = x.select(Axis(1), &self.live);
        for (mut column, d) in out.columns_mut().into_iter().zip(&self.live) {
            column.mapv_inplace(|v| (v - self.origin[*d]) / self.unit[*d]);
        }
        out
    }

    /// Returns the kernel in original units. Its gamma is one number, or one for each feature with an effect.
    ///
    /// # Errors
    /// Returns an error if a gamma is out of the range of numbers in original units.
    pub fn to_original(&self, kernel: &Kernel) -> Result<Kernel> {
        let features = self.unit.len();
        let Some(gamma) = kernel.gamma().filter(|_| self.power > 0) else { return Ok(kernel.clone()) };
        // The only known unit of a feature without effect is its own magnitude.
        let least = |d: usize| CONSTANT_EFFECT / self.moments.size[d].powi(self.power).max(1.0);
        let mut gammas: Vec<f64> = (0..features).map(least).collect();
        for (k, d) in self.live.iter().enumerate() {
            gammas[*d] = gamma.at(k) / self.unit[*d].powi(self.power);
        }
        let gamma: Gamma = if features == 1 { gammas[0].into() } else { gammas.into() };
        let kernel = kernel.with_gamma(gamma);
        kernel.check()?;
        Ok(kernel)
    }

    /// Returns the kernel to be learned, with the given gamma for each feature with an effect, or one for all.
    pub fn kernel(&self, kernel: &Kernel, gamma: f64, per_feature: bool) -> Kernel {
        match (self.power, per_feature) {
            (0, _) => kernel.clone(),
            (_, true) => kernel.with_gamma(vec![gamma; self.live.len()].into()),
            (_, false) => kernel.with_gamma(gamma.into()),
        }
    }
}
