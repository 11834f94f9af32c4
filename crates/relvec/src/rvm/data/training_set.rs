//! The training set: rows, targets, weights and candidates of one fit, in canonical order and internal units.
//!
//! Rows are sorted, equal rows are merged, and targets are scaled to unit variance. No result depends on units or on
//! the order of the user's rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2};

use crate::canonical::{Copies, all_variance};
use crate::design::Design;
use crate::kernel::{DataScale, Kernel};
use crate::model::{Expansion, Model};
use crate::process::Learned;
use crate::report::{Adjustments, Interrupt};
use crate::rvm::data::noise::{NoisePrecision, Units};
use crate::rvm::data::row_factors::{RowFactors, over};
use crate::rvm::settings::rvm::Rvm;
use crate::sums::Sums;

/// Rows, targets and candidates of one fit.
#[derive(Debug)]
pub(crate) struct TrainingSet<'a> {
    pub rvm: &'a Rvm,
    /// Rows in canonical order, [N, D]. Empty if only their sums are known.
    pub rows: ArcArray2<f64>,
    /// Targets in internal units, `[N]`. For several real outputs [N, R], row by row.
    pub targets: Vec<f64>,
    /// R, the number of functions that a target depends on: class contrasts or real outputs.
    pub outputs: usize,
    /// Multipliers of the log-likelihoods, `[N]`: sample weights times row factors.
    pub weights: Vec<f64>,
    /// User's rows that were merged into each row. Empty for a training set of some of the rows.
    pub copies: Arc<Copies>,
    /// Row factors (M48), if they are not all 1.
    pub factors: Option<RowFactors>,
    /// Smallest row factor, at most 1.
    pub(crate) least_factor: f64,
    /// Sum of the sample weights, N without weights.
    pub count: f64,
    /// For counts over exposures with a bias: log rate of one count per mean exposure, in the user's unit. Internal
    /// function values are relative to it. Otherwise 0.
    pub log_rate: f64,
    /// True if the noise variance of each row is given.
    pub known_noise: bool,
    /// Scaling of the targets, one entry per real output. One entry for classes and counts.
    pub units: Vec<Units>,
    /// Noise precision at the start, one entry per real output. One entry for classes and counts.
    pub noise: Vec<NoisePrecision>,
    pub adjustments: Adjustments,
    /// True if only the bias is fitted, because the target is constant.
    pub bias_only: bool,
    /// Number of the user's rows.
    pub n_rows: usize,
    /// User's row of each candidate. For given design matrices its column, for given landmarks its number.
    pub origin: Vec<usize>,
    /// Candidate of each of the user's rows. `None` for rows of weight 0.
    pub candidate_of: Vec<Option<usize>>,
    pub(crate) source: Source,
    /// Dense Gaussian process by which the kernel was learned. A training set of some rows keeps the process of all
    /// rows.
    pub learned: Option<Learned>,
    /// Bytes that the fit may use.
    pub memory_limit: u64,
    /// Bytes that the rows and the blocks of columns use.
    pub taken: u64,
    /// Bytes that suffice for the fit, as far as the sizes tell.
    pub least: u64,
    pub interrupt: Interrupt,
}

/// Source of the columns of candidates.
#[derive(Debug)]
pub(crate) enum Source {
    /// Distinct inputs. `rows` is the first row of each, `[L]`; rows of equal inputs are adjacent. `chosen` are the
    /// candidates that may enter the model, once they have been selected.
    Rows { kernel: Kernel, rows: Vec<usize>, chosen: OnceLock<Vec<usize>> },
    /// Given centres, [L, D].
    Centres { kernel: Kernel, centres: Array2<f64> },
    /// Columns of a given design matrix.
    Given,
}

impl<'a> TrainingSet<'a> {
    /// Returns the sum of the multipliers of the log-likelihoods.
    pub fn weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the kernel, with numbers for all parameters. For a given design matrix it has no meaning.
    pub fn kernel(&self) -> Kernel {
        match &self.source {
            Source::Rows { kernel, .. } | Source::Centres { kernel, .. } => kernel.clone(),
            Source::Given => self.rvm.kernel.clone(),
        }
    }

    /// Returns true if targets are numbers and not classes.
    pub fn is_real(&self) -> bool {
        !self.rvm.likelihood.as_dyn().classifies()
    }

    /// Returns the targets in original units, `[N]`. For several outputs [N, R], row by row.
    pub fn real_targets(&self) -> Vec<f64> {
        if self.rvm.likelihood.as_dyn().counts() {
            return (0..self.targets.len()).map(|row| self.real_target(row)).collect();
        }
        self.targets.iter().zip(self.units.iter().cycle()).map(|(t, units)| (t + units.mean) * units.scale).collect()
    }

    /// Returns the target of a row in original units, for one output.
    pub fn real_target(&self, row: usize) -> f64 {
        match self.rvm.likelihood.as_dyn().counts() {
            true => (self.targets[row] * self.factor(row)).round(),
            false => (self.targets[row] + self.units[0].mean) * self.units[0].scale,
        }
    }

    /// Returns the exposure of a count, in original units. Returns 1 if none was given.
    pub fn exposure(&self, row: usize) -> f64 {
        match self.log_rate {
            0.0 => self.factor(row),
            log_rate => (self.factor(row).ln() - log_rate).exp(),
        }
    }

    fn factor(&self, row: usize) -> f64 {
        self.factors.as_ref().map_or(1.0, |factors| factors.factor[row])
    }

    /// Returns the given noise variance of a row for output k, in original units. Returns 0 if it was not given.
    pub fn known_variance(&self, row: usize, k: usize) -> f64 {
        match (&self.factors, &self.noise[k]) {
            (Some(factors), NoisePrecision::Fixed(beta)) if self.known_noise => {
                self.units[k].scale * self.units[k].scale / beta / factors.factor[row]
            }
            _ => 0.0,
        }
    }

    /// Returns the number of features and their variance, which a rule for gamma needs.
    pub fn data_scale(&self) -> DataScale {
        DataScale { features: self.rows.ncols(), variance: all_variance(&self.rows.view(), &self.sample_weights()) }
    }

    /// Returns the sample weights, `[N]`, without row factors.
    pub fn sample_weights(&self) -> Cow<'_, [f64]> {
        over(&self.weights, self.factors.as_ref())
    }

    /// Returns the constant that row factors add to the log evidence of the weighted rows, (M48).
    pub fn log_constant(&self) -> f64 {
        self.units.len() as f64 * self.factors.as_ref().map_or(0.0, RowFactors::constant)
    }

    /// Returns a model of these rows that has an expansion, and defaults elsewhere.
    pub fn model_of(&self, expansion: Expansion) -> Model {
        Model {
            likelihood: Some(self.rvm.likelihood.clone()),
            inference: Some(self.rvm.inference.name().into()),
            ..Model::of_expansion("rvm", expansion, self.rows.ncols(), self.n_rows)
        }
    }

    /// Returns the sum of the sample weights of `rows`, and the constant that their factors add to the log evidence.
    pub fn count_of(&self, rows: &[usize]) -> (f64, f64) {
        match &self.factors {
            None => (rows.iter().map(|n| self.weights[*n]).sum(), 0.0),
            Some(f) => (rows.iter().map(|n| self.weights[*n] / f.factor[*n]).sum(), rows.iter().map(|n| f.constant[*n]).sum()),
        }
    }

    /// Converts the log evidence `inner` of `count` rows from internal to original units.
    pub fn log_evidence_out(&self, inner: f64, count: f64) -> f64 {
        inner - self.units.iter().map(|units| count * units.scale.ln()).sum::<f64>()
    }

    /// Returns G, f and t't of a design of these rows, with targets in internal units.
    pub fn sums(&self, design: &Design) -> Sums {
        let mut sums = Sums::new(design.n_columns(), self.outputs);
        let targets = |rows: &Range<usize>| &self.targets[rows.start * self.outputs..rows.end * self.outputs];
        design.for_each_block(|rows, phi| sums.accumulate(phi, targets(&rows), &self.weights[rows]));
        // The weights may contain row factors, and `count` must not.
        Sums { count: self.count, ..sums.finish() }
    }
}
