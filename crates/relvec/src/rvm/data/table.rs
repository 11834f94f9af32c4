//! The user's table as every regime sees it.
//!
//! Rows are put into one order whatever theirs was, equal ones are merged, and targets are scaled to
//! unit variance, so that no result depends on units or on the order.

use crate::rvm::settings::hyperparameters::Hyperparameters;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2, ArrayView2, Axis};

use crate::canonical::{Canonical, Copies, Fold, all_variance};
use crate::design::{self, Basis, Columns, Design};
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::likelihood::NoiseModel;
use crate::memory::{self, afford};
use crate::model::{check_features, check_finite};
use crate::report::{Interrupt, Repairs, SmallWeights};
use crate::rvm::data::blocks::InBlocks;
use crate::rvm::data::budget::KEPT_SHARE;
use crate::rvm::data::budget::{DENSE, at_once};
use crate::rvm::data::factors::Factors;
use crate::rvm::data::learnt::Learnt;
use crate::rvm::data::noise::Noise;
use crate::rvm::settings::dictionary::{AUTO_LANDMARKS, Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::rvm::Rvm;
use crate::statistics::Statistics;
use crate::sums::Sums;
use crate::targets::{Given, Targets, Values, check_present};

/// The noise precision is at most this over var(t), under Student-t noise without outliers: a perfect fit must not divide
/// by zero.
pub(crate) const NOISE_CAP: f64 = 1e6;
/// A search leaves at least this share of a dense process's noise: of 0.25, 0.5 and 1 the best held-out density.
const LEAST_NOISE_SHARE: f64 = 0.5;
/// Least sum of squares of a column of a kernel that is 1 at its centre.
const LEAST_SQUARE: f64 = 0.5;
/// Standard deviations of Gaussian targets in their median distance from the median.
pub(crate) const DEVIATION: f64 = 1.4826;
/// For a constant target, over its square.
const CONSTANT_NOISE: f64 = 1e12;

/// Rows, targets and candidates of one fit.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub rvm: &'a Rvm,
    /// [N, D]; no rows where only their sums are known.
    pub rows: ArcArray2<f64>,
    /// Where the rows come from if they are not held; those above, targets and weights are empty then.
    pub blocks: Option<InBlocks<'a>>,
    /// Targets in the inner units, `[N]`; of several real outputs [N, R] by rows.
    pub targets: Vec<f64>,
    /// R, the number of functions that a target depends on: contrasts of classes, or real outputs.
    pub outputs: usize,
    /// What multiplies the log-likelihoods, `[N]`: sample weights, times the factors of rows if there are any.
    pub weights: Vec<f64>,
    /// The user's rows behind each row; empty for a table of a part of the rows.
    pub copies: Arc<Copies>,
    /// Those, if they are not all 1.
    pub factors: Option<Factors>,
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
    pub noise: Vec<Noise>,
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
    pub learnt: Option<Learnt>,
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

/// How inner and outer units differ.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Divides the targets.
    pub scale: f64,
    /// Subtracted from the scaled targets; 0 without bias.
    pub mean: f64,
}

impl<'a> Table<'a> {
    pub fn new(rvm: &'a Rvm, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<Table<'a>> {
        let n = x.nrows();
        targets.check_rows(x)?;
        match rvm.basis {
            Basis::Kernel => check_features("rows to train on", x)?,
            Basis::Given => check_finite("rows to train on", x, 0..x.ncols())?,
        }
        let likelihood = rvm.likelihood.as_dyn();
        let y = likelihood.targets(targets.values)?;
        if let Values::Classes { labels, count } = targets.values
            && count > 2
        {
            check_present(labels, count, targets.checked_weights()?.as_deref())?;
        }
        // Numbers of each row: one, or one for each of several real outputs.
        let each = y.len() / n.max(1);
        if let Some(at) = y.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "targets", row: at / each, column: at % each, value: y[at] });
        }
        if each > 1 {
            rvm.check_several_outputs(each)?;
        }
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; n]);
        let given = rvm.basis == Basis::Given;
        if let Some(given) = targets.given.as_ref().filter(|given| !likelihood.uses(given)) {
            return Err(Error::Targets(format!("{} per row is given: that is for {}", given.name(), given.serves())));
        }
        let known = targets.checked_given()?;
        let canonical = Canonical::new(x, &y, &weights, known.as_deref());
        let used = weights.iter().filter(|w| **w > 0.0).count();
        if used < 2 {
            return Err(Error::TooFewRows { found: used, least: 2 });
        }
        if let Values::Classes { .. } = targets.values {
            let first = canonical.targets[0];
            if canonical.targets.iter().all(|t| *t == first) {
                return Err(Error::Targets(format!(
                    "every row (of positive weight) is of class {first}; rows of two classes are needed"
                )));
            }
        }
        let mut repairs = Repairs { merged_rows: canonical.merged, ..Repairs::default() };
        repairs.constant_features =
            (0..x.ncols()).filter(|d| canonical.rows.column(*d).iter().all(|v| *v == canonical.rows[[0, *d]])).collect();
        if !given {
            repairs.shared_columns = canonical.shared;
        }

        let count = canonical.weights.iter().sum();
        repairs.small_weights = SmallWeights::of(count, used);
        let (mut factors, mut typical) = (None, None);
        let (mut inner, sample_weights) = (canonical.targets, canonical.weights);
        let mut log_rate = 0.0;
        match (&canonical.given, &targets.given) {
            (Some(known), Some(Given::Noise(_))) => {
                let (own, variance) = Factors::of_noise(known, &sample_weights)?;
                (factors, typical) = (Some(own), Some(variance));
            }
            (Some(exposures), Some(Given::Exposure(_))) => {
                (factors, log_rate) = match rvm.bias {
                    true => Factors::of_exposure_in_any_unit(exposures, &inner, &sample_weights)?,
                    false => (Some(Factors::of_exposure(exposures, &inner, &sample_weights)?), 0.0),
                };
                let own = factors.iter().flat_map(|factors| &factors.factor);
                inner.iter_mut().zip(own).for_each(|(t, e)| *t /= e);
            }
            _ => {}
        }
        let weights = times(&sample_weights, factors.as_ref());

        // Targets: about their mean, in standard deviations.
        let (mut units, mut constant) = (vec![Units { scale: 1.0, mean: 0.0 }], vec![false]);
        if likelihood.noise() != NoiseModel::None {
            (units, constant) = (vec![], vec![]);
            for k in 0..each {
                let t: Vec<f64> = inner.iter().skip(k).step_by(each).copied().collect();
                let same = t.iter().all(|v| *v == t[0]);
                let (m, spread) = match likelihood.scale_mixture() {
                    _ if same => (t[0], 0.0),
                    Some(_) => middle_and_spread(&t, &weights),
                    None => {
                        let m = mean(&t, &weights);
                        (m, deviation(&t, m, &weights))
                    }
                };
                let own = Units::new(rvm, m, spread)?;
                let shift = if rvm.bias { m } else { 0.0 };
                inner.iter_mut().skip(k).step_by(each).for_each(|t| *t = (*t - shift) / own.scale);
                units.push(own);
                constant.push(same);
            }
        }
        if likelihood.counts() {
            // Of all the same rate only that is to be learnt.
            constant = vec![inner.iter().all(|t| *t == inner[0])];
        }
        let all_constant = constant.iter().all(|same| *same);
        let noise_is_known = typical.is_some();
        repairs.constant_target = all_constant;
        repairs.constant_outputs = if each > 1 { (0..each).filter(|k| constant[*k]).collect() } else { vec![] };

        let memory_limit = memory::allowed(rvm.memory_limit);
        let (rows, d) = canonical.rows.dim();
        let most = match &rvm.landmarks {
            _ if given => d,
            Landmarks::Given(centres) => centres.0.nrows(),
            _ => rvm.dictionary.size(canonical.origin.len()),
        };
        let scheme = rvm.inference.as_dyn();
        let whole = scheme.most_columns(likelihood.constant_curvature()).is_none_or(|columns| most <= columns);
        let p = if whole { most } else { scheme.parts(likelihood.constant_curvature()).iter().copied().max().unwrap_or(most) };
        // Of several outputs some of the vectors are as many.
        let outputs = likelihood.outputs(targets.values);
        let vectors = 16 + 12 * outputs;
        let taken = |limit: u64| {
            let block = Design::block_rows(p + 1, limit).min(rows) * (p + 1);
            let kept = if whole { 0 } else { limit / KEPT_SHARE };
            8 * (rows * d + p * d + vectors * n + 16 * p + 2 * block) as u64 + kept
        };
        let bias_only =
            all_constant && rvm.bias && (likelihood.noise() == NoiseModel::Learnt && !noise_is_known || likelihood.counts());
        // Schemes that add columns end where there is no room for more; the others have all of them at once.
        let columns = (most + usize::from(rvm.bias)) as u64;
        let at_once = |limit: u64| match scheme.adds() || bias_only {
            true => 0,
            false => at_once(rvm, rows as u64, columns, outputs as u64, limit),
        };
        let least = memory::least(|limit| taken(limit) + at_once(limit));
        let mut what = "the rows, some vectors and two blocks of basis functions".to_string();
        if at_once(0) > 0 {
            what += &format!(", and re-estimating {columns} of these at once");
        }
        let taken = taken(memory_limit);
        // Columns that are zero on every row take nothing more: of those nobody knows yet.
        afford(&what, if taken > memory_limit { least } else { taken }, memory_limit)?;
        let (mut origin, mut candidate_of) = (canonical.origin, canonical.column_of);
        let source = if given {
            origin = (0..d).collect();
            candidate_of = (0..d).map(Some).collect();
            Source::Given
        } else {
            let kernel = design::resolve(&rvm.kernel, canonical.rows.view(), &sample_weights)?;
            match &rvm.landmarks {
                Landmarks::Given(centres) => {
                    let (centres, kept) = centres.distinct(d)?;
                    candidate_of = kept.iter().map(|k| Some(*k)).collect();
                    origin =
                        (0..centres.nrows()).map(|k| kept.iter().position(|c| *c == k).expect("each is kept once")).collect();
                    Source::Centres { kernel, centres }
                }
                _ => Source::Rows { kernel, rows: canonical.first, chosen: OnceLock::new() },
            }
        };
        Ok(Table {
            rvm,
            outputs: likelihood.outputs(targets.values),
            rows: canonical.rows.into_shared(),
            blocks: None,
            targets: inner,
            count,
            weights,
            copies: Arc::new(canonical.copies),
            least_factor: factors.as_ref().map_or(1.0, Factors::least),
            factors,
            noise: {
                // Beside others a constant output is held only where the bias takes it up.
                let held = |same: bool| same && (rvm.bias || all_constant);
                units
                    .iter()
                    .zip(&constant)
                    .map(|(units, same)| first_noise(rvm, units, held(*same), typical))
                    .collect::<Result<_>>()?
            },
            units,
            bias_only,
            log_rate,
            known_noise: noise_is_known,
            repairs,
            n_rows: n,
            origin,
            candidate_of,
            source,
            learnt: None,
            memory_limit,
            taken,
            least,
            interrupt: interrupt.clone(),
        })
    }

    /// A table of which only sums over its rows are known; and the sums in the inner units.
    pub fn of_statistics(rvm: &'a Rvm, statistics: &Statistics, interrupt: &Interrupt) -> Result<(Table<'a>, Sums)> {
        if rvm.likelihood.as_dyn().noise() == NoiseModel::None {
            return Err(Error::Parameter {
                name: "likelihood".into(),
                found: rvm.likelihood.name().into(),
                expected: "gaussian: sums over rows say all of a table only where the curvature is constant".into(),
            });
        }
        let typical = statistics.typical_noise();
        if typical.is_some() && rvm.likelihood.as_dyn().noise() != NoiseModel::Learnt {
            return Err(Error::Statistics(
                "the noise of each row is known; leave the likelihood's own noise_variance out".into(),
            ));
        }
        if statistics.n_rows() < 2 {
            return Err(Error::TooFewRows { found: statistics.n_rows(), least: 2 });
        }
        let l = statistics.centres().nrows();
        let memory_limit = memory::allowed(rvm.memory_limit);
        let taken = 8 * (2 * (l + 1) * (l + 1) + l * statistics.n_features()) as u64;
        let columns = (l + usize::from(rvm.bias)) as u64;
        let least = taken + if rvm.inference.as_dyn().adds() { 0 } else { 8 * DENSE * columns * columns };
        afford("the sums over the rows, twice", if taken > memory_limit { least } else { taken }, memory_limit)?;
        let moments = statistics.moments();
        let units = Units::new(rvm, moments.mean, moments.deviation)?;
        let sums = statistics.inner(rvm.bias, &moments, units.scale);
        let constant = moments.deviation == 0.0;
        let small_weights = SmallWeights::of(statistics.weight(), statistics.n_rows());
        let (centres, kernel) = (statistics.centres().to_owned(), statistics.kernel().clone());
        let table = Table {
            rvm,
            rows: ArcArray2::zeros((0, statistics.n_features())),
            blocks: None,
            targets: vec![],
            outputs: 1,
            weights: vec![],
            copies: Arc::default(),
            factors: None,
            least_factor: statistics.least_factor().min(1.0),
            count: sums.count,
            noise: vec![first_noise(rvm, &units, constant, typical)?],
            units: vec![units],
            bias_only: constant && rvm.bias && rvm.likelihood.as_dyn().noise() == NoiseModel::Learnt && typical.is_none(),
            log_rate: 0.0,
            known_noise: typical.is_some(),
            repairs: Repairs { constant_target: constant, small_weights, ..Repairs::default() },
            n_rows: statistics.n_rows(),
            origin: (0..l).collect(),
            candidate_of: (0..l).map(Some).collect(),
            source: Source::Centres { kernel, centres },
            learnt: None,
            memory_limit,
            taken,
            least,
            interrupt: interrupt.clone(),
        };
        Ok((table, sums))
    }

    /// The same rows, or some of them (ascending), for another machine with another kernel, every parameter a number.
    pub fn with<'b>(&self, rvm: &'b Rvm, kernel: &Kernel, some: Option<&[usize]>) -> Table<'b> {
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
        // Of some rows nobody asks which they are: the relevance of a model counts the candidates.
        if let (Source::Rows { rows, .. }, Some(_)) = (&source, some) {
            (origin, candidate_of) = ((0..rows.len()).collect(), (0..rows.len()).map(Some).collect());
        }
        Table {
            rvm,
            rows: some.map_or_else(|| self.rows.clone(), |some| self.rows.select(Axis(0), some).into_shared()),
            blocks: None,
            targets,
            outputs: self.outputs,
            count: some.map_or(self.count, |_| over(&weights, factors.as_ref()).iter().sum()),
            weights,
            copies: if some.is_some() { Arc::default() } else { self.copies.clone() },
            least_factor: factors.as_ref().map_or(self.least_factor, Factors::least),
            factors,
            log_rate: self.log_rate,
            known_noise: self.known_noise,
            units: self.units.clone(),
            noise: self.noise.clone(),
            repairs: self.repairs.clone(),
            bias_only: self.bias_only,
            n_rows: some.map_or(self.n_rows, <[usize]>::len),
            origin,
            candidate_of,
            source,
            learnt: self.learnt.clone(),
            memory_limit: self.memory_limit,
            taken: self.taken,
            least: self.least,
            interrupt: self.interrupt.clone(),
        }
    }

    /// The same rows as a dense process has shown them to be: the noise no less than half of its, so that no sparse fit takes all
    /// that is left for signal; and without candidates where the features tell nothing of the targets.
    pub fn with_learnt<'b>(self, rvm: &'b Rvm, kernel: &Kernel, learnt: Option<&Learnt>) -> Table<'b>
    where
        'a: 'b,
    {
        let Some(learnt) = learnt.filter(|_| !self.repairs.constant_target) else { return self };
        let most = 1.0 / (LEAST_NOISE_SHARE * learnt.hyper.log_noise.exp());
        let noise = self.noise.iter().map(|noise| noise.capped(most)).collect();
        // Sums that are kept have a place for rows to come.
        let table = match learnt.has_structure || rvm.keep_statistics {
            true => self,
            false => self.with_centres(rvm, kernel, Array2::zeros((0, self.rows.ncols()))),
        };
        Table { noise, learnt: Some(learnt.clone()), ..table }
    }

    /// The same rows for a machine of two classes: one of several, and all others.
    pub fn against_others<'b>(&self, rvm: &'b Rvm, class: usize, interrupt: Interrupt) -> Table<'b>
    where
        'a: 'b,
    {
        let targets = self.targets.iter().map(|t| if *t == class as f64 { 1.0 } else { 0.0 }).collect();
        let blocks = self.blocks.map(|blocks| blocks.against_others(class));
        Table { targets, blocks, outputs: 1, interrupt, ..self.with(rvm, &self.kernel(), None) }
    }

    /// The same rows with other candidates: centres, [L, D], of a kernel, which the relevance of a model counts.
    pub fn with_centres<'b>(&self, rvm: &'b Rvm, kernel: &Kernel, centres: Array2<f64>) -> Table<'b> {
        let all = 0..centres.nrows();
        Table {
            origin: all.clone().collect(),
            candidate_of: all.map(Some).collect(),
            source: Source::Centres { kernel: kernel.clone(), centres },
            ..self.with(rvm, kernel, None)
        }
    }

    /// A table with the candidates of this one, for rows of which only sums are known; `count`: their weight.
    pub fn of_sums<'b>(&self, rvm: &'b Rvm, places: &[usize], count: f64) -> Table<'b> {
        let source = match self.columns(places).1 {
            Columns::Kernel { kernel, centres } => Source::Centres { kernel, centres },
            Columns::Given => Source::Given,
        };
        let none = ArcArray2::zeros((0, self.rows.ncols()));
        let all = 0..places.len();
        Table {
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

    /// Some of the rows, ascending, and the candidates among them.
    pub fn with_rows<'b>(&self, rvm: &'b Rvm, some: &[usize]) -> Table<'b> {
        let part = self.with(rvm, &self.kernel(), Some(some));
        let left_out_rows = self.rows.nrows() - some.len();
        let repairs = Repairs { merged_rows: 0, left_out_rows, ..part.repairs.clone() };
        let Source::Rows { rows, .. } = &self.source else { return Table { repairs, ..part } };
        let kept: Vec<usize> = left_of(rows, some).into_iter().map(|(candidate, _)| candidate).collect();
        let repairs = Repairs { shared_columns: some.len() - kept.len(), ..repairs };
        let place = |k: &Option<usize>| k.and_then(|k| kept.binary_search(&k).ok());
        Table {
            repairs,
            origin: kept.iter().map(|k| self.origin[*k]).collect(),
            candidate_of: self.candidate_of.iter().map(place).collect(),
            ..part
        }
    }

    /// The rows of all folds but one, whose copies weigh less where others are in that fold.
    pub fn with_copies<'b>(&self, rvm: &'b Rvm, kept: &Fold) -> Table<'b> {
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
            return Table { count, n_rows, ..part };
        }
        // The mean exposure is that of these rows, as in a fit to them alone.
        let of = |value: &dyn Fn(usize) -> f64| -> Vec<f64> { rows.iter().map(|row| value(*row)).collect() };
        let (exposures, mut targets) = (of(&|row| self.exposure(row)), of(&|row| self.real_target(row)));
        let mut weights: Vec<f64> = kept.iter().map(|(_, weight)| *weight).collect();
        match Factors::of_exposure_in_any_unit(&exposures, &targets, &weights) {
            Ok((factors, log_rate)) => {
                for (n, factor) in factors.iter().flat_map(|factors| factors.factor.iter().enumerate()) {
                    targets[n] /= factor;
                    weights[n] *= factor;
                }
                let least_factor = factors.as_ref().map_or(1.0, Factors::least);
                Table { targets, weights, least_factor, factors, log_rate, count, n_rows, ..part }
            }
            // Out of the range of numbers, where the mean of all rows is not.
            Err(_) => Table { count, n_rows, ..part },
        }
    }

    /// As many of the user's rows as weigh `count` on average.
    pub fn rows_of_weight(&self, count: f64) -> usize {
        (self.n_rows as f64 * (count / self.count)).ceil() as usize
    }

    /// Some of the candidates, and some of the rows, both ascending, in so many bytes.
    ///
    /// # Errors
    /// Those of [`Table::for_each_part`].
    pub fn sample(&self, places: &[usize], some: &[usize], memory_limit: u64) -> Result<Table<'_>> {
        let (rows, columns) = self.columns(places);
        let source = match columns {
            Columns::Kernel { kernel, centres } => Source::Centres { kernel, centres },
            Columns::Given => Source::Given,
        };
        let (rows, part) = match self.gathered(some)? {
            Some(part) => (part.rows.clone(), part),
            None => (rows.select(Axis(0), some).into_shared(), self.with(self.rvm, &self.kernel(), Some(some))),
        };
        Ok(Table {
            rows,
            origin: places.iter().map(|k| self.origin[*k]).collect(),
            candidate_of: self.candidate_of.iter().map(|k| places.binary_search(&(*k)?).ok()).collect(),
            source,
            memory_limit,
            taken: 0,
            ..part
        })
    }

    /// The candidates that precisions name; what is wrong with them is said where they are used.
    pub fn places_of(&self, at: &Hyperparameters) -> Vec<usize> {
        at.relevance.iter().filter_map(|row| self.candidate_of.get(*row).copied().flatten()).collect()
    }

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

    /// Whether that many candidates are all rows there are.
    pub fn candidates_are_rows(&self, candidates: usize) -> bool {
        matches!(&self.source, Source::Rows { rows, .. } if rows.len() == candidates)
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
            (Some(factors), Noise::Fixed(beta)) if self.known_noise => {
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
        self.units.len() as f64 * self.factors.as_ref().map_or(0.0, Factors::constant)
    }

    /// The same rows with other factors.
    pub fn with_factors<'b>(&self, rvm: &'b Rvm, factors: Factors) -> Table<'b> {
        let weights = times(&self.sample_weights(), Some(&factors));
        Table { weights, least_factor: factors.least(), factors: Some(factors), ..self.with(rvm, &self.kernel(), None) }
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

    /// The columns of candidates, and the rows that they are made of.
    pub fn columns(&self, places: &[usize]) -> (ArcArray2<f64>, Columns) {
        match &self.source {
            Source::Given if places.len() == self.origin.len() => (self.rows.clone(), Columns::Given),
            Source::Given => (self.rows.select(Axis(1), places).into_shared(), Columns::Given),
            Source::Centres { kernel, centres } => {
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres: centres.select(Axis(0), places) })
            }
            Source::Rows { kernel, rows, .. } => {
                let chosen: Vec<usize> = places.iter().map(|k| rows[*k]).collect();
                let centres = self.rows.select(Axis(0), &chosen);
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres })
            }
        }
    }

    /// The kernel, and the rows behind some candidates; `None` where those are no rows.
    pub fn rows_of(&self, places: &[usize]) -> Option<(&Kernel, Vec<usize>)> {
        match &self.source {
            Source::Rows { kernel, rows, .. } => Some((kernel, places.iter().map(|k| rows[*k]).collect())),
            Source::Centres { .. } | Source::Given => None,
        }
    }

    /// Makes the norms of columns zero that no fit should use: those of given centres with no row near them,
    /// whose weights would be unbounded and whose predictions would explode. A row has at least itself.
    pub fn refuse_far_centres(&self, norms: &mut [f64]) {
        if let Source::Centres { kernel, .. } = &self.source
            && kernel.is_local()
        {
            let least = LEAST_SQUARE * self.least_factor * (self.count / self.n_rows.max(1) as f64).min(1.0);
            norms.iter_mut().filter(|n| **n * **n < least).for_each(|n| *n = 0.0);
        }
    }

    /// G, f and t't of a design of these rows, targets in the inner units.
    pub fn sums(&self, design: &Design) -> Sums {
        let mut sums = Sums::new(design.n_columns(), self.outputs);
        let targets = |rows: &Range<usize>| &self.targets[rows.start * self.outputs..rows.end * self.outputs];
        design.for_each_block(|rows, phi| sums.accumulate(phi, targets(&rows), &self.weights[rows]));
        // The weights may hold factors.
        Sums { count: self.count, ..sums.finish() }
    }

    /// `size` of `among` (places of candidates, ascending), spread as the landmarks of this fit are.
    pub fn choose(&self, among: &[usize], size: usize) -> Vec<usize> {
        let seed = self.rvm.seed;
        match &self.source {
            Source::Rows { kernel, rows, .. } => {
                let rows: Vec<usize> = among.iter().map(|k| rows[*k]).collect();
                let (landmarks, is_late) = (&self.rvm.landmarks, || self.interrupt.is_late());
                let chosen = landmarks.choose(self.rows.view(), &rows, size, kernel, seed, &is_late);
                chosen.into_iter().map(|k| among[k]).collect()
            }
            _ => Landmarks::any(among.len(), size, seed).into_iter().map(|k| among[k]).collect(),
        }
    }

    /// Landmarks instead of all rows, where that is ours to choose.
    pub fn landmarks_instead(&self, all: &[usize]) -> Option<Vec<usize>> {
        let rule = matches!(self.rvm.dictionary, Dictionary::Rule(DictionaryRule::Auto)) && all.len() > AUTO_LANDMARKS;
        matches!(self.source, Source::Rows { .. }).then_some(())?;
        rule.then(|| self.choose(all, AUTO_LANDMARKS))
    }

    /// Candidates that may enter the model, ascending places: all, or the landmarks.
    pub fn dictionary(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.origin.len()).collect();
        match &self.source {
            Source::Rows { chosen, .. } => chosen.get_or_init(|| self.choose(&all, self.dictionary_size())).clone(),
            _ => all,
        }
    }

    /// Their number, at most.
    pub fn dictionary_size(&self) -> usize {
        match self.source {
            Source::Rows { .. } => self.rvm.dictionary.size(self.origin.len()),
            _ => self.origin.len(),
        }
    }
}

impl Units {
    /// For targets of that mean and standard deviation.
    fn new(rvm: &Rvm, mean: f64, spread: f64) -> Result<Units> {
        let scale = [spread, mean.abs()].into_iter().find(|s| *s > 0.0).unwrap_or(1.0);
        let square = scale * scale;
        if !(square.is_normal() && (1.0 / square).is_normal()) {
            return Err(Error::Overflow { what: format!("the square of the targets' spread, {scale:e},") });
        }
        Ok(Units { scale, mean: if rvm.bias { mean / scale } else { 0.0 } })
    }
}

/// The noise at the start; `typical`: the geometric mean of noise variances that are known.
fn first_noise(rvm: &Rvm, units: &Units, constant: bool, typical: Option<f64>) -> Result<Noise> {
    let c = rvm.inference.as_dyn().hyperpriors();
    let square = units.scale * units.scale;
    let noise = match typical.map_or(rvm.likelihood.as_dyn().noise(), NoiseModel::Fixed) {
        NoiseModel::None => Noise::Fixed(1.0),
        NoiseModel::Fixed(variance) => Noise::Fixed(square / variance),
        NoiseModel::Learnt if constant => Noise::Fixed(CONSTANT_NOISE),
        NoiseModel::Learnt => Noise::Learnt { cap: NOISE_CAP, c: c.c, d: c.d / square },
    };
    match noise {
        Noise::Fixed(beta) if !beta.is_normal() => {
            Err(Error::Overflow { what: "the noise precision in units of the targets' variance".into() })
        }
        _ => Ok(noise),
    }
}

/// The candidates that have any of `some` rows (ascending), and the place there of the first that each has; `first`: the
/// first of all rows of each candidate.
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

/// Sample weights times the factors of rows.
fn times(weights: &[f64], factors: Option<&Factors>) -> Vec<f64> {
    factors.map_or_else(|| weights.to_vec(), |f| weights.iter().zip(&f.factor).map(|(c, f)| c * f).collect())
}

/// Sample weights out of what multiplies the log-likelihoods.
fn over<'w>(weights: &'w [f64], factors: Option<&Factors>) -> Cow<'w, [f64]> {
    match factors {
        None => Cow::Borrowed(weights),
        Some(f) => Cow::Owned(weights.iter().zip(&f.factor).map(|(c, f)| c / f).collect()),
    }
}

fn mean(t: &[f64], c: &[f64]) -> f64 {
    let total: f64 = c.iter().sum();
    t.iter().zip(c).map(|(t, c)| t * (c / total)).sum()
}

/// Median, and the standard deviation that the median distance from it has under Gaussian noise: neither the
/// unit of the targets nor the least noise depends on how far outliers are. If more than half of the targets are equal, mean and
/// standard deviation.
fn middle_and_spread(t: &[f64], c: &[f64]) -> (f64, f64) {
    let middle = median(t, c);
    let distance: Vec<f64> = t.iter().map(|t| (t - middle).abs()).collect();
    let spread = DEVIATION * median(&distance, c);
    if spread > 0.0 {
        return (middle, spread);
    }
    let m = mean(t, c);
    (m, deviation(t, m, c))
}

/// The least value that half of the weight is not above.
fn median(values: &[f64], c: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|i, j| values[*i].total_cmp(&values[*j]));
    let half = 0.5 * c.iter().sum::<f64>();
    let mut below = 0.0;
    let reached = order.iter().find(|i| {
        below += c[**i];
        below >= half
    });
    values[*reached.unwrap_or(&order[order.len() - 1])]
}

/// Standard deviation about `m`, relative to the largest entry first, so that squares stay in range.
fn deviation(t: &[f64], m: f64, c: &[f64]) -> f64 {
    let largest = t.iter().map(|t| (t - m).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    let squares: Vec<f64> = t.iter().map(|t| ((t - m) / largest).powi(2)).collect();
    largest * mean(&squares, c).sqrt()
}
