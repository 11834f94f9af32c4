//! Training sets derived from another one: all or some of its rows, with other candidates, targets or row factors.

use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2, Axis};

use crate::canonical::Fold;
use crate::design::Columns;
use crate::kernel::Kernel;
use crate::process::Learned;
use crate::report::Adjustments;
use crate::rvm::data::row_factors::{RowFactors, over, times};
use crate::rvm::data::training_set::{Source, TrainingSet};
use crate::rvm::settings::rvm::Rvm;

/// Smallest noise variance of a search, as a share of the noise variance of the dense process. Of 0.25, 0.5 and 1 it
/// has the best held-out density.
const LEAST_NOISE_SHARE: f64 = 0.5;

impl<'a> TrainingSet<'a> {
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

    /// Returns the training set of `some` of the rows and some of the candidates, both ascending, for a fit in
    /// `memory_limit` bytes.
    pub fn sample(&self, candidates: &[usize], some: &[usize], memory_limit: u64) -> TrainingSet<'_> {
        let (rows, columns) = self.columns(candidates);
        let source = match columns {
            Columns::Kernel { kernel, centres } => Source::Centres { kernel, centres },
            Columns::Given => Source::Given,
        };
        TrainingSet {
            rows: rows.select(Axis(0), some).into_shared(),
            origin: candidates.iter().map(|k| self.origin[*k]).collect(),
            candidate_of: self.candidate_of.iter().map(|k| candidates.binary_search(&(*k)?).ok()).collect(),
            source,
            memory_limit,
            taken: 0,
            ..self.with(self.rvm, &self.kernel(), Some(some))
        }
    }

    /// Returns the training set of these rows with other row factors.
    pub fn with_factors<'b>(&self, rvm: &'b Rvm, factors: RowFactors) -> TrainingSet<'b> {
        let weights = times(&self.sample_weights(), Some(&factors));
        TrainingSet { weights, least_factor: factors.least(), factors: Some(factors), ..self.with(rvm, &self.kernel(), None) }
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
