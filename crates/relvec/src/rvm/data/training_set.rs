//! The training set: rows, targets, weights and candidates of one fit, in canonical order and internal units. Other
//! training sets are derived from it: all or some of its rows, with other candidates, targets or row factors.
//!
//! Rows are sorted, equal rows are merged, and targets are scaled to unit variance. No result depends on units or on
//! the order of the user's rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2, Axis, concatenate};

use crate::canonical::{Copies, Fold, all_variance, random_subset};
use crate::design::{Columns, Design};
use crate::kernel::{DataScale, Kernel};
use crate::model::{Expansion, Model};
use crate::process::Learned;
use crate::process::label_rows::Labels;
use crate::process::parameters::Moments;
use crate::process::pivoted_cholesky::Points;
use crate::query::merged_rows::DistinctRows;
use crate::report::{Adjustments, Interrupt};
use crate::rvm::data::noise::{NoisePrecision, RowFactors, Units, over, times};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;
use crate::sums::Sums;

/// Smallest noise variance of a search, as a share of the noise variance of the dense process. Of 0.25, 0.5 and 1 it
/// has the best held-out density.
const LEAST_NOISE_SHARE: f64 = 0.5;

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

    /// Returns the row factor of a row; 1 if there are none. For counts it is the exposure over the mean exposure.
    pub fn factor(&self, row: usize) -> f64 {
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

    /// Returns true if the distances between a row and all rows are known.
    pub fn has_distances(&self, row: usize) -> bool {
        !matches!(self.rvm.landmarks, Landmarks::OfCoordinates(_)) || self.rows.row(row).last().is_none_or(|v| *v == 0.0)
    }

    /// Draws at most `most` rows between which all distances are known, ascending.
    pub fn draw(&self, most: usize, seed: u64) -> Vec<usize> {
        let known: Vec<usize> = (0..self.rows.nrows()).filter(|row| self.has_distances(*row)).collect();
        random_subset(known.len(), most, seed).into_iter().map(|k| known[k]).collect()
    }

    /// Returns the moments of the features of the rows between which all distances are known.
    pub fn moments(&self) -> Moments {
        let weights = self.sample_weights();
        let known: Vec<usize> = (0..self.rows.nrows()).filter(|row| self.has_distances(*row)).collect();
        match known.len() == self.rows.nrows() {
            true => Moments::new(self.rows.view(), &weights),
            false => {
                let weights: Vec<f64> = known.iter().map(|row| weights[*row]).collect();
                Moments::new(self.rows.select(Axis(0), &known).view(), &weights)
            }
        }
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

    /// Returns the training set of these rows, or of `some` of them (ascending), for other settings and another kernel.
    /// The parameters of the kernel must be numbers.
    pub fn with<'b>(&self, rvm: &'b Rvm, kernel: &Kernel, some: Option<&[usize]>) -> TrainingSet<'b> {
        let pick = |v: &[f64]| some.map_or_else(|| v.to_vec(), |some| some.iter().map(|n| v[*n]).collect());
        let source = match &self.source {
            Source::Rows { kernel: own, rows, chosen } => {
                let choice = |rvm: &Rvm| (rvm.dictionary, rvm.landmarks.clone(), rvm.seed);
                let same = some.is_none() && kernel == own && choice(rvm) == choice(self.rvm);
                let chosen = if same { chosen.clone() } else { OnceLock::new() };
                let kept = |some| left_of(rows, some).into_iter().map(|(_, first)| first).collect();
                Source::Rows { kernel: kernel.clone(), rows: some.map_or_else(|| rows.clone(), kept), chosen }
            }
            Source::Centres { centres, .. } => Source::Centres { kernel: kernel.clone(), centres: centres.clone() },
            Source::Given => Source::Given,
        };
        let targets = match self.targets.len() / self.weights.len().max(1) {
            each if each > 1 => some.map_or_else(
                || self.targets.clone(),
                |some| some.iter().flat_map(|n| self.targets[n * each..(n + 1) * each].iter().copied()).collect(),
            ),
            _ => pick(&self.targets),
        };
        let weights = pick(&self.weights);
        let factors = self.factors.as_ref().map(|f| some.map_or_else(|| f.clone(), |some| f.pick(some)));
        let (mut origin, mut candidate_of) = (self.origin.clone(), self.candidate_of.clone());
        // For some of the rows, the relevance of a model refers to candidates, not to the user's rows.
        if let (Source::Rows { rows, .. }, Some(_)) = (&source, some) {
            (origin, candidate_of) = ((0..rows.len()).collect(), (0..rows.len()).map(Some).collect());
        }
        TrainingSet {
            rvm,
            rows: some.map_or_else(|| self.rows.clone(), |some| self.rows.select(Axis(0), some).into_shared()),
            targets,
            outputs: self.outputs,
            count: some.map_or(self.count, |_| over(&weights, factors.as_ref()).iter().sum()),
            weights,
            copies: if some.is_some() { Arc::default() } else { self.copies.clone() },
            least_factor: factors.as_ref().map_or(self.least_factor, RowFactors::least),
            factors,
            log_rate: self.log_rate,
            known_noise: self.known_noise,
            units: self.units.clone(),
            noise: self.noise.clone(),
            adjustments: self.adjustments.clone(),
            bias_only: self.bias_only,
            n_rows: some.map_or(self.n_rows, <[usize]>::len),
            origin,
            candidate_of,
            source,
            learned: self.learned.clone(),
            memory_limit: self.memory_limit,
            taken: self.taken,
            least: self.least,
            interrupt: self.interrupt.clone(),
        }
    }

    /// Returns the training set with the results of a dense Gaussian process. The noise variance is at least half of
    /// the process's noise variance, so that no sparse fit takes noise for signal. If the targets do not depend on the
    /// features, there are no candidates.
    pub fn with_learned<'b>(self, rvm: &'b Rvm, kernel: &Kernel, learned: Option<&Learned>) -> TrainingSet<'b>
    where
        'a: 'b,
    {
        let Some(learned) = learned.filter(|_| !self.adjustments.constant_target) else { return self };
        let most = 1.0 / (LEAST_NOISE_SHARE * learned.hyper.log_noise.exp());
        let noise = self.noise.iter().map(|noise| noise.capped(most)).collect();
        // Statistics keep their landmarks for rows that are added later.
        let training = match learned.has_structure || rvm.keep_statistics {
            true => self,
            false => self.with_centres(rvm, kernel, Array2::zeros((0, self.rows.ncols()))),
        };
        TrainingSet { noise, learned: Some(learned.clone()), ..training }
    }

    /// Returns the training set for targets whose means are 0, as they are in internal units. The prior of the bias is
    /// then about the means.
    pub fn centred(&self) -> TrainingSet<'a> {
        let units = self.units.iter().map(|units| Units { mean: 0.0, ..*units }).collect();
        TrainingSet { units, ..self.with(self.rvm, &self.kernel(), None) }
    }

    /// Returns the training set of these rows whose candidates are `centres`, [L, D], of a kernel. The relevance of a
    /// model then refers to these centres.
    pub fn with_centres<'b>(&self, rvm: &'b Rvm, kernel: &Kernel, centres: Array2<f64>) -> TrainingSet<'b> {
        let all = 0..centres.nrows();
        TrainingSet {
            origin: all.clone().collect(),
            candidate_of: all.map(Some).collect(),
            source: Source::Centres { kernel: kernel.clone(), centres },
            ..self.with(rvm, kernel, None)
        }
    }

    /// Returns a training set with the listed candidates of this one, for rows of which only sums are known. `count` is
    /// the weight of these rows.
    pub fn of_sums<'b>(&self, rvm: &'b Rvm, candidates: &[usize], count: f64) -> TrainingSet<'b> {
        let source = match self.columns(candidates).1 {
            Columns::Kernel { kernel, centres } => Source::Centres { kernel, centres },
            Columns::Given => Source::Given,
        };
        let none = ArcArray2::zeros((0, self.rows.ncols()));
        let all = 0..candidates.len();
        TrainingSet {
            rows: none,
            targets: vec![],
            weights: vec![],
            count,
            n_rows: self.rows_of_weight(count),
            origin: all.clone().collect(),
            candidate_of: all.map(Some).collect(),
            source,
            ..self.with(rvm, &self.kernel(), None)
        }
    }

    /// Returns the training set of `some` of the rows (ascending), with the candidates that have one of these rows.
    pub fn with_rows<'b>(&self, rvm: &'b Rvm, some: &[usize]) -> TrainingSet<'b> {
        let part = self.with(rvm, &self.kernel(), Some(some));
        let left_out_rows = self.rows.nrows() - some.len();
        let adjustments = Adjustments { merged_rows: 0, left_out_rows, ..part.adjustments.clone() };
        let Source::Rows { rows, .. } = &self.source else { return TrainingSet { adjustments, ..part } };
        let kept: Vec<usize> = left_of(rows, some).into_iter().map(|(candidate, _)| candidate).collect();
        let adjustments = Adjustments { shared_columns: some.len() - kept.len(), ..adjustments };
        let place = |k: &Option<usize>| k.and_then(|k| kept.binary_search(&k).ok());
        TrainingSet {
            adjustments,
            origin: kept.iter().map(|k| self.origin[*k]).collect(),
            candidate_of: self.candidate_of.iter().map(place).collect(),
            ..part
        }
    }

    /// Returns the training set of the rows `kept` outside one fold. Each row has the weight of those of its copies
    /// that are not in the fold.
    pub fn with_copies<'b>(&self, rvm: &'b Rvm, kept: &Fold) -> TrainingSet<'b> {
        let rows: Vec<usize> = kept.iter().map(|(row, _)| *row).collect();
        let mut part = self.with(rvm, &self.kernel(), Some(&rows));
        let all = self.sample_weights();
        for (k, (row, weight)) in kept.iter().enumerate() {
            let share = weight / all[*row];
            part.weights[k] = weight * self.factors.as_ref().map_or(1.0, |factors| factors.factor[*row]);
            part.factors.iter_mut().for_each(|factors| factors.constant[k] *= share);
        }
        let count = kept.iter().map(|(_, weight)| weight).sum();
        let n_rows = self.rows_of_weight(count);
        if self.log_rate == 0.0 || self.factors.is_none() {
            return TrainingSet { count, n_rows, ..part };
        }
        // Exposures are divided by the mean exposure of these rows, as in a fit to these rows alone.
        let of = |value: &dyn Fn(usize) -> f64| -> Vec<f64> { rows.iter().map(|row| value(*row)).collect() };
        let (exposures, mut targets) = (of(&|row| self.exposure(row)), of(&|row| self.real_target(row)));
        let mut weights: Vec<f64> = kept.iter().map(|(_, weight)| *weight).collect();
        match RowFactors::of_exposure_in_any_unit(&exposures, &targets, &weights) {
            Ok((factors, log_rate)) => {
                for (n, factor) in factors.iter().flat_map(|factors| factors.factor.iter().enumerate()) {
                    targets[n] /= factor;
                    weights[n] *= factor;
                }
                let least_factor = factors.as_ref().map_or(1.0, RowFactors::least);
                TrainingSet { targets, weights, least_factor, factors, log_rate, count, n_rows, ..part }
            }
            // The mean exposure of these rows is out of the range of numbers. The mean of all rows is not.
            Err(_) => TrainingSet { count, n_rows, ..part },
        }
    }

    /// Returns the number of the user's rows whose weight is `count` on average.
    pub fn rows_of_weight(&self, count: f64) -> usize {
        (self.n_rows as f64 * (count / self.count)).ceil() as usize
    }

    /// Returns the training set with only the listed candidates (ascending).
    pub fn with_candidates(self, candidates: &[usize]) -> TrainingSet<'a> {
        let (rows, columns) = self.columns(candidates);
        let source = match columns {
            Columns::Kernel { kernel, centres } => Source::Centres { kernel, centres },
            Columns::Given => Source::Given,
        };
        let origin = candidates.iter().map(|k| self.origin[*k]).collect();
        let candidate_of = self.candidate_of.iter().map(|k| candidates.binary_search(&(*k)?).ok()).collect();
        TrainingSet { rows, origin, candidate_of, source, ..self }
    }

    /// Returns the training set of these rows with other row factors.
    pub fn with_factors<'b>(&self, rvm: &'b Rvm, factors: RowFactors) -> TrainingSet<'b> {
        let weights = times(&self.sample_weights(), Some(&factors));
        TrainingSet { weights, least_factor: factors.least(), factors: Some(factors), ..self.with(rvm, &self.kernel(), None) }
    }

    /// Merges the rows `rows` (ascending) of a training set with real targets, in internal units.
    pub fn distinct_rows(&self, rows: &[usize]) -> DistinctRows {
        let (x, outputs) = (self.rows.select(Axis(0), rows), self.outputs);
        let t = Array2::from_shape_fn((rows.len(), outputs), |(n, k)| self.targets[rows[n] * outputs + k]);
        let factors: Vec<f64> = rows.iter().map(|n| self.factors.as_ref().map_or(1.0, |f| f.factor[*n])).collect();
        let sample_weights: Vec<f64> = rows.iter().zip(&factors).map(|(n, f)| self.weights[*n] / f).collect();
        DistinctRows::new(x.view(), t.view(), &sample_weights, &factors)
    }

    /// Returns the number of the user's rows at each different input of the rows `rows` (ascending), for
    /// [`DistinctRows::without_copies`]. The list is empty if the numbers are unknown.
    pub fn users_rows(&self, rows: &[usize]) -> Vec<usize> {
        let users = self.copies.users();
        if users.is_empty() {
            return vec![];
        }
        let groups = rows.chunk_by(|i, j| self.rows.row(*i) == self.rows.row(*j));
        groups.map(|group| group.iter().map(|n| users[*n]).sum()).collect()
    }

    /// Returns the labels of the rows `rows` (ascending) of a training set.
    pub fn labels_of(&self, rows: &[usize]) -> Labels {
        let x = self.rows.select(Axis(0), rows);
        let class: Vec<usize> = rows.iter().map(|n| self.targets[*n] as usize).collect();
        let weights: Vec<f64> = rows.iter().map(|n| self.weights[*n]).collect();
        Labels::new(x.view(), &class, self.outputs + 1, &weights)
    }

    /// Returns the points of a factorisation for a training set, of which `rows` are all rows.
    pub fn points_of(&self, rows: &DistinctRows) -> Points {
        let all: Vec<usize> = (0..self.origin.len()).collect();
        match (self.rows_of(&all), self.columns(&all).1) {
            (None, Columns::Kernel { centres, .. }) => Points { x: concatenate![Axis(0), rows.x, centres], first: rows.len() },
            _ => {
                assert_eq!(all.len(), rows.len(), "each different input is a candidate");
                Points { x: rows.x.clone(), first: 0 }
            }
        }
    }
}

/// Returns the candidates that have any of the rows `some` (ascending), each with the index in `some` of its first row.
/// `first` is the first row of each candidate among all rows.
fn left_of(first: &[usize], some: &[usize]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = vec![];
    for (place, row) in some.iter().enumerate() {
        let candidate = first.partition_point(|first| first <= row) - 1;
        if out.last().is_none_or(|(last, _)| *last != candidate) {
            out.push((candidate, place));
        }
    }
    out
}
