//! Training rows that are stored in the model for the healed variance, which does not shrink far from the data.

use ndarray::Axis;

use crate::canonical::{Fold, random_subset};
use crate::design::Basis;
use crate::error::{Result, require};
use crate::likelihood::Likelihood;
use crate::model::{KeptOutput, KeptRows, Model, Variance};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Variational;

/// Most rows that are stored if `keep_rows` is not given. A prediction evaluates the kernel at each of them.
const MOST_ROWS: usize = 2000;

impl Rvm {
    /// Returns the kind of predictive variance of a model whose rows are in memory.
    fn variance_of(&self, training: &TrainingSet, model: &Model) -> Variance {
        let learned = matches!(self.likelihood, Likelihood::Gaussian(_)) && !training.known_noise;
        // A model with statistics may be extended by rows whose residuals are unknown.
        let possible = learned && self.basis == Basis::Kernel && model.process.is_none() && !self.keep_statistics;
        let certain = training.adjustments.constant_target || self.inference.name() == Variational::NAME;
        self.variance.unwrap_or(if possible && !certain { Variance::Healed } else { Variance::Posterior })
    }

    /// Returns the model with its retained rows, chosen from the rows of `among` (`None`: from all rows).
    ///
    /// # Errors
    /// Returns an error if rows are to be retained and the noise variance of each row is given.
    pub(crate) fn with_kept_rows(&self, training: &TrainingSet, model: Model, among: Option<&Fold>) -> Result<Model> {
        let noises = model.output_noise_variances();
        let variance = self.variance_of(training, &model);
        if noises.is_empty() || !(self.keeps_rows() || variance == Variance::Healed) {
            return Ok(model);
        }
        let expected = "posterior, and no keep_rows: the noise variance is given for each row";
        require(!training.known_noise, || "variance".into(), variance.name(), expected)?;
        let whole = || training.weights.iter().copied().enumerate().collect();
        let all: Fold = among.map_or_else(whole, Fold::clone);
        let size = self.keep_rows.unwrap_or(MOST_ROWS).min(all.len());
        let complete = size == all.len();
        let some: Fold = match complete {
            true => all.clone(),
            false => random_subset(all.len(), size, self.seed).into_iter().map(|k| all[k]).collect(),
        };
        let targets = training.real_targets();
        let outputs = training.outputs;
        let target = |n: usize, k: usize| targets[n * outputs + k];
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        // The weights of a sample are scaled up to the weight of all rows.
        let share = total / some.iter().map(|(_, weight)| weight).sum::<f64>();
        let rows = training.rows.select(Axis(0), &some.iter().map(|(n, _)| *n).collect::<Vec<usize>>());
        let fitted = model.predict_output_means(rows.view())?;
        let of_output = |k: usize| {
            let mean = all.iter().map(|(n, weight)| weight * target(*n, k)).sum::<f64>() / total;
            let variance = all.iter().map(|(n, weight)| weight * (target(*n, k) - mean).powi(2)).sum::<f64>() / total;
            let residuals = some.iter().zip(fitted.column(k)).map(|((n, _), f)| target(*n, k) - f).collect();
            KeptOutput { residuals, prior_variance: (variance - noises[k]).max(0.0) }
        };
        let KeptOutput { residuals, prior_variance } = of_output(0);
        let kept = KeptRows {
            rows: rows.to_owned(),
            residuals,
            weights: some.iter().map(|(_, weight)| share * weight).collect(),
            prior_variance,
            further: (1..outputs).map(of_output).collect(),
            complete,
        };
        Ok(Model { variance, kept_rows: Some(kept), ..model })
    }
}
