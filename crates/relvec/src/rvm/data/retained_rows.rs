//! Training rows that go into the model, for a variance that does not shrink away from them.

use ndarray::Axis;

use crate::canonical::Fold;
use crate::design::Basis;
use crate::error::{Result, require};
use crate::likelihood::Likelihood;
use crate::model::{KeptOutput, KeptRows, Model, Variance};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::schemes::Variational;

/// Rows kept where no number is given, at most: a prediction costs as much as a kernel with each of them.
const MOST_ROWS: usize = 2000;

impl Rvm {
    /// The variance of predictions of a model, where its rows are in memory.
    fn variance_of(&self, training: &TrainingSet, model: &Model) -> Variance {
        let learned = matches!(self.likelihood, Likelihood::Gaussian(_)) && !training.known_noise;
        // Sums that grow know nothing of the residuals of new rows.
        let possible = learned && self.basis == Basis::Kernel && model.process.is_none() && !self.keep_statistics;
        let certain = training.repairs.constant_target || self.inference.name() == Variational::NAME;
        self.variance.unwrap_or(if possible && !certain { Variance::Healed } else { Variance::Posterior })
    }

    /// The model with the rows that it is to keep, out of those of some folds (`None`: of all).
    pub(crate) fn with_kept_rows(&self, training: &TrainingSet, model: Model, among: Option<&Fold>) -> Result<Model> {
        let noises = model.output_noise_variances();
        let variance = self.variance_of(training, &model);
        if noises.is_empty() || !(self.keeps_rows() || variance == Variance::Healed) {
            return Ok(model);
        }
        let expected = "posterior, and no rows to keep: the noise is given row by row";
        require(!training.known_noise, || "variance".into(), variance.name(), expected)?;
        let whole = || training.weights.iter().copied().enumerate().collect();
        let all: Fold = among.map_or_else(whole, Fold::clone);
        let size = self.keep_rows.unwrap_or(MOST_ROWS).min(all.len());
        let complete = size == all.len();
        let some: Fold = match complete {
            true => all.clone(),
            false => Landmarks::any(all.len(), size, self.seed).into_iter().map(|k| all[k]).collect(),
        };
        let targets = training.real_targets();
        let outputs = training.outputs;
        let target = |n: usize, k: usize| targets[n * outputs + k];
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        // Each row of a sample stands for others as well.
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
