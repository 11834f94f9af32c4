//! The user's table as every regime sees it.
//!
//! Rows are put into one order whatever theirs was, equal ones are merged, and targets are scaled to
//! unit variance, so that no result depends on units or on the order.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2};

use crate::canonical::{Copies, all_variance};
use crate::design::Design;
use crate::kernel::{DataScale, Kernel};
use crate::model::{Expansion, Model};
use crate::report::{Interrupt, Repairs};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::row_blocks::RowBlocks;
use crate::rvm::data::row_factors::{RowFactors, over};
use crate::rvm::data::units::Units;
use crate::rvm::settings::rvm::Rvm;
use crate::sums::Sums;

/// Rows, targets and candidates of one fit.
#[derive(Debug)]
pub(crate) struct TrainingSet<'a> {
    pub rvm: &'a Rvm,
    /// [N, D]; no rows where only their sums are known.
    pub rows: ArcArray2<f64>,
    /// Where the rows come from if they are not held; those above, targets and weights are empty then.
    pub blocks: Option<RowBlocks<'a>>,
    /// Targets in the inner units, `[N]`; of several real outputs [N, R] by rows.
    pub targets: Vec<f64>,
    /// R, the number of functions that a target depends on: contrasts of classes, or real outputs.
    pub outputs: usize,
    /// What multiplies the log-likelihoods, `[N]`: sample weights, times the factors of rows if there are any.
    pub weights: Vec<f64>,
    /// The user's rows behind each row; empty for a table of a part of the rows.
    pub copies: Arc<Copies>,
    /// Those, if they are not all 1.
    pub factors: Option<RowFactors>,
    /// The least of them, and 1.
    pub(crate) least_factor: f64,
    /// N, or the sum of the sample weights.
    pub count: f64,
    /// For counts over exposures, with a bias: the log of a rate of one count for the mean exposure, in the user's unit,
    /// which inner function values are relative to; else 0.
    pub log_rate: f64,
    /// Whether the noise of each row is known.
    pub known_noise: bool,
    /// Of each real output; else one for all.
    pub units: Vec<Units>,
    /// The noise at the start, of each real output; else one for all.
    pub noise: Vec<NoisePrecision>,
    pub repairs: Repairs,
    /// Whether the bias alone is to be fitted: the target is constant.
    pub bias_only: bool,
    /// Rows of the user's table.
    pub n_rows: usize,
    /// The user's row (column of a given design matrix, given landmark) behind each candidate.
    pub origin: Vec<usize>,
    /// The candidate that each of the user's rows stands for; `None` for rows of weight 0.
    pub candidate_of: Vec<Option<usize>>,
    pub(crate) source: Source,
    /// The dense process that the kernel was learnt from, if it was: that of all rows, also where these are some of them.
    pub learned: Option<Learned>,
    /// Bytes that the fit may take, and that the rows and blocks take.
    pub memory_limit: u64,
    pub taken: u64,
    /// Bytes that are enough for the fit, as far as that is known from the sizes.
    pub least: u64,
    pub interrupt: Interrupt,
}

/// Where the columns of candidates come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Each different input by the first of its rows, which stand side by side, `[L]`; and those candidates that may enter
    /// the model, once they are chosen.
    Rows { kernel: Kernel, rows: Vec<usize>, chosen: OnceLock<Vec<usize>> },
    /// Given centres, [L, D].
    Centres { kernel: Kernel, centres: Array2<f64> },
    /// The columns of the rows themselves.
    Given,
}

impl<'a> TrainingSet<'a> {
    /// N, of rows that are held or not; 0 where only their sums are known.
    pub fn height(&self) -> usize {
        self.blocks.map_or(self.rows.nrows(), |source| source.n_rows)
    }

    /// The sum of what multiplies the log-likelihoods.
    pub fn weight(&self) -> f64 {
        if self.blocks.is_some() { self.count } else { self.weights.iter().sum() }
    }

    /// The kernel, every parameter a number; of a given design matrix any.
    pub fn kernel(&self) -> Kernel {
        match &self.source {
            Source::Rows { kernel, .. } | Source::Centres { kernel, .. } => kernel.clone(),
            Source::Given => self.rvm.kernel.clone(),
        }
    }

    /// Whether targets are numbers and not classes.
    pub fn is_real(&self) -> bool {
        !self.rvm.likelihood.as_dyn().classifies()
    }

    /// Targets in the user's units, `[N]`; of several outputs [N, R] by rows.
    pub fn real_targets(&self) -> Vec<f64> {
        if self.rvm.likelihood.as_dyn().counts() {
            return (0..self.targets.len()).map(|row| self.real_target(row)).collect();
        }
        self.targets.iter().zip(self.units.iter().cycle()).map(|(t, units)| (t + units.mean) * units.scale).collect()
    }

    /// The target of a row of one output in the user's units.
    pub fn real_target(&self, row: usize) -> f64 {
        match self.rvm.likelihood.as_dyn().counts() {
            true => (self.targets[row] * self.factor(row)).round(),
            false => (self.targets[row] + self.units[0].mean) * self.units[0].scale,
        }
    }

    /// What a count was gathered over, in the user's units; 1 unless it was given.
    pub fn exposure(&self, row: usize) -> f64 {
        match self.log_rate {
            0.0 => self.factor(row),
            log_rate => (self.factor(row).ln() - log_rate).exp(),
        }
    }

    fn factor(&self, row: usize) -> f64 {
        self.factors.as_ref().map_or(1.0, |factors| factors.factor[row])
    }

    /// Variance of the noise of a row, for output k, in the user's units, where it is known; else 0.
    pub fn known_variance(&self, row: usize, k: usize) -> f64 {
        match (&self.factors, &self.noise[k]) {
            (Some(factors), NoisePrecision::Fixed(beta)) if self.known_noise => {
                self.units[k].scale * self.units[k].scale / beta / factors.factor[row]
            }
            _ => 0.0,
        }
    }

    /// What a rule for gamma needs to know of the rows.
    pub fn data_scale(&self) -> DataScale {
        DataScale { features: self.rows.ncols(), variance: all_variance(&self.rows.view(), &self.sample_weights()) }
    }

    /// Sample weights, `[N]`.
    pub fn sample_weights(&self) -> Cow<'_, [f64]> {
        over(&self.weights, self.factors.as_ref())
    }

    /// What the log evidence has beside that of the weighted rows.
    pub fn log_constant(&self) -> f64 {
        self.units.len() as f64 * self.factors.as_ref().map_or(0.0, RowFactors::constant)
    }

    /// A model of these rows that is an expansion and has nothing else yet.
    pub fn model_of(&self, expansion: Expansion) -> Model {
        Model {
            likelihood: Some(self.rvm.likelihood.clone()),
            inference: Some(self.rvm.inference.name().into()),
            ..Model::of_expansion("rvm", expansion, self.rows.ncols(), self.n_rows)
        }
    }

    /// Sum of the sample weights of some rows, and what their log evidence has beside that of the weighted rows.
    pub fn count_of(&self, rows: &[usize]) -> (f64, f64) {
        match &self.factors {
            None => (rows.iter().map(|n| self.weights[*n]).sum(), 0.0),
            Some(f) => (rows.iter().map(|n| self.weights[*n] / f.factor[*n]).sum(), rows.iter().map(|n| f.constant[*n]).sum()),
        }
    }

    /// Log evidence of `count` rows in the user's units.
    pub fn log_evidence_out(&self, inner: f64, count: f64) -> f64 {
        inner - self.units.iter().map(|units| count * units.scale.ln()).sum::<f64>()
    }

    /// G, f and t't of a design of these rows, targets in the inner units.
    pub fn sums(&self, design: &Design) -> Sums {
        let mut sums = Sums::new(design.n_columns(), self.outputs);
        let targets = |rows: &Range<usize>| &self.targets[rows.start * self.outputs..rows.end * self.outputs];
        design.for_each_block(|rows, phi| sums.accumulate(phi, targets(&rows), &self.weights[rows]));
        // The weights may hold factors.
        Sums { count: self.count, ..sums.finish() }
    }
}

/// What a process puts on the functions, beside the kernel; in the units of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hyper {
    pub log_amplitude: f64,
    pub log_noise: f64,
}

/// What a dense process has learnt.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    /// Every parameter a number, in the units of the user's features.
    pub kernel: Kernel,
    /// A copy of `kernel` that is no wider than a sparse search can use.
    pub for_search: Kernel,
    /// In the inner units of the targets.
    pub hyper: Hyper,
    /// Of the rows learnt from, in the inner units, without and with the log priors.
    pub log_evidence: f64,
    pub log_posterior: f64,
    /// Nats of the log posterior above the log evidence of a constant with noise.
    pub gain: f64,
    /// Whether the features tell anything of the targets.
    pub has_structure: bool,
    /// Whether the kernel has a width for each feature; else one, in units of their spread.
    pub per_feature: bool,
    pub evaluations: usize,
}
