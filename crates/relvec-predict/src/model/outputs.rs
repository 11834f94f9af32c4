//! Several outputs of one regression model, which share the basis functions. Each output has its own weights and noise.

use ndarray::{Array2, ArrayView2, Axis};

use super::{Model, Prediction, Variance, check_predicted};
use crate::error::{Error, Result};
use crate::prelude::*;

impl Model {
    /// Returns true if the model has several real outputs, not several classes.
    pub fn has_several_outputs(&self) -> bool {
        self.posterior.as_ref().is_some_and(|posterior| !posterior.variance_ratios.is_empty())
    }

    /// Predicts each output at the rows of `x`, [N, D]. The list is `[K]`, and has one entry for a model of one output.
    ///
    /// # Errors
    /// See [`Model::predict`].
    pub fn predict_outputs(&self, x: ArrayView2<f64>) -> Result<Vec<Prediction>> {
        self.predict_outputs_with(x, self.variance)
    }

    /// Predicts each output at rows `x`, `[N, D]`, with the kind of variance requested: a mean and a variance, `[N]`,
    /// per output. A healed variance is computed for each output separately.
    ///
    /// # Errors
    /// See [`Model::predict_with`].
    pub fn predict_outputs_with(&self, x: ArrayView2<f64>, variance: Variance) -> Result<Vec<Prediction>> {
        if !self.has_several_outputs() {
            return Ok(vec![self.predict_with(x, variance)?]);
        }
        if variance == Variance::Healed {
            return (0..self.outputs()).map(|k| self.output(k)?.predict_with(x, variance)).collect();
        }
        self.check_rows(x)?;
        let posterior = self.posterior()?;
        let (means, variance) = self.moments(x, self.maker())?;
        let (factor, noise) = (self.variance_factor(), posterior.noise_variance.unwrap_or(0.0));
        let one = |(k, ratio): (usize, &f64)| {
            let (mean, ratio) = (means.column(k).to_owned(), factor * ratio);
            let (model_variance, noise_variance) = (&variance * ratio, ratio * noise);
            check_predicted(mean.view(), Some((model_variance.view(), noise_variance)))?;
            Ok(Prediction { mean, model_variance, noise_variance, noise_degrees: None })
        };
        posterior.variance_ratios.iter().enumerate().map(one).collect()
    }

    /// Predicts the means alone, [N, K], at rows `x`, `[N, D]`, without the far more expensive variances.
    ///
    /// # Errors
    /// See [`Model::predict`].
    pub fn predict_output_means(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        match self.has_several_outputs() {
            true => self.function_means(x),
            false => Ok(self.predict_mean(x)?.insert_axis(Axis(1))),
        }
    }

    /// Returns the model of output k alone, with everything that a model of one output has except the log evidence,
    /// which belongs to all outputs together.
    ///
    /// # Errors
    /// Returns an error for a model of one output, unless k is 0, for a model of classes, and for an output k that does
    /// not exist.
    pub fn output(&self, k: usize) -> Result<Model> {
        if k == 0 && self.outputs() == 1 {
            return Ok(self.clone());
        }
        let ratio = self.posterior.as_ref().and_then(|posterior| posterior.variance_ratios.get(k).copied());
        let (Some(ratio), Some(posterior)) = (ratio, &self.posterior) else {
            let found = if self.has_several_outputs() { self.outputs() } else { 1 };
            return Err(Error::Targets(format!("output {k} of a model of {found}: expected an output from 0 to {}", found - 1)));
        };
        let mut one = self.clone();
        let mut own = posterior.clone();
        own.variance_ratios = vec![];
        own.noise_variance = own.noise_variance.map(|variance| variance * ratio);
        own.scale.iter_mut().for_each(|scale| *scale *= ratio.sqrt());
        one.posterior = Some(own);
        one.expansion.weights = self.expansion.weights.select(Axis(1), &[k]);
        one.expansion.intercept = vec![self.expansion.intercept[k]];
        one.alpha.iter_mut().for_each(|alpha| *alpha /= ratio);
        one.intercept_alpha = self.intercept_alpha.map(|alpha| alpha / ratio);
        one.process.iter_mut().for_each(|process| process.amplitude *= ratio);
        one.kept_rows = self.kept_rows.as_ref().map(|kept| kept.output(k));
        one.target = self.targets.get(k).cloned();
        one.targets = vec![];
        one.log_evidence = None;
        Ok(one)
    }

    /// Returns the precisions of the weights of each output, [M, K]: [`Model::alpha`] divided by the variance ratio of
    /// the output. One output has [M, 1]; under a process prior the shape is [0, K].
    pub fn output_alpha(&self) -> Array2<f64> {
        let ratios = self.posterior.as_ref().map_or(&[][..], |posterior| &posterior.variance_ratios);
        let ratio = |k: usize| ratios.get(k).copied().unwrap_or(1.0);
        Array2::from_shape_fn((self.alpha.len(), ratios.len().max(1)), |(m, k)| self.alpha[m] / ratio(k))
    }

    /// Returns the noise variance of each output, `[K]`, in squared units of its target; empty without noise.
    pub fn output_noise_variances(&self) -> Vec<f64> {
        let Some(posterior) = &self.posterior else { return vec![] };
        let Some(variance) = posterior.noise_variance else { return vec![] };
        match &posterior.variance_ratios[..] {
            [] => vec![variance],
            ratios => ratios.iter().map(|ratio| ratio * variance).collect(),
        }
    }
}
