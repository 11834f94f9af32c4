//! Construction of a training set from the user's rows, or from sums over rows, and its candidates: their selection, and
//! their columns.
//!
//! Rows are sorted, equal rows are merged, and targets are scaled to unit variance. No result depends on units or on
//! the order of the user's rows.

use std::sync::{Arc, OnceLock};

use ndarray::{ArcArray2, Array2, ArrayView2, Axis};

use crate::canonical::Canonical;
use crate::design::{self, Basis, Columns, Design};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::NoiseModel;
use crate::linalg;
use crate::memory::{self, afford};
use crate::model::{check_features, check_finite};
use crate::query::pass::{AllRows, Pass};
use crate::query::sums::{RatioSums, SumsRequest};
use crate::report::{Adjustments, Interrupt, SmallWeights};
use crate::rvm::data::noise::{RowFactors, Units, deviation, first_noise, mean, middle_and_spread, times};
use crate::rvm::data::training_set::{Source, TrainingSet};
use crate::rvm::settings::dictionary::Centres;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, PART};
use crate::statistics::Statistics;
use crate::sums::Sums;
use crate::targets::{Given, Targets, Values, check_present};

/// Smallest sum of squares of a column whose kernel is 1 at its centre. A column below it has no row near its centre.
const LEAST_SQUARE: f64 = 0.5;

impl TrainingSet<'_> {
    /// Returns the candidates that `at` refers to. Rows that are no candidates are skipped; the caller reports them.
    pub fn candidates_of(&self, at: &Hyperparameters) -> Vec<usize> {
        at.relevance.iter().filter_map(|row| self.candidate_of.get(*row).copied().flatten()).collect()
    }

    /// Returns true if candidates are rows, and if `candidates` is the number of all distinct rows.
    pub fn candidates_are_rows(&self, candidates: usize) -> bool {
        matches!(&self.source, Source::Rows { rows, .. } if rows.len() == candidates)
    }

    /// Returns the rows, `[N, D]`, and the definition of the columns of the listed candidates.
    pub fn columns(&self, candidates: &[usize]) -> (ArcArray2<f64>, Columns) {
        match &self.source {
            Source::Given if candidates.len() == self.origin.len() => (self.rows.clone(), Columns::Given),
            Source::Given => (self.rows.select(Axis(1), candidates).into_shared(), Columns::Given),
            Source::Centres { kernel, centres } => {
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres: centres.select(Axis(0), candidates) })
            }
            Source::Rows { kernel, rows, .. } => {
                let chosen: Vec<usize> = candidates.iter().map(|k| rows[*k]).collect();
                let centres = self.rows.select(Axis(0), &chosen);
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres })
            }
        }
    }

    /// Returns the kernel and the rows of the listed candidates. Returns `None` if candidates are not rows.
    pub fn rows_of(&self, candidates: &[usize]) -> Option<(&Kernel, Vec<usize>)> {
        match &self.source {
            Source::Rows { kernel, rows, .. } => Some((kernel, candidates.iter().map(|k| rows[*k]).collect())),
            Source::Centres { .. } | Source::Given => None,
        }
    }

    /// Sets the norms of columns to zero whose given centre has no row nearby, so that no fit uses them. Their weights
    /// would be unbounded, and predictions near their centres would be huge. A row is always near itself.
    pub fn refuse_far_centres(&self, norms: &mut [f64]) {
        if let Source::Centres { kernel, .. } = &self.source
            && kernel.is_local()
        {
            let least = LEAST_SQUARE * self.least_factor * (self.count / self.n_rows.max(1) as f64).min(1.0);
            norms.iter_mut().filter(|n| **n * **n < least).for_each(|n| *n = 0.0);
        }
    }

    /// Returns the candidates that may enter the model, ascending: all, or the landmarks.
    pub fn dictionary(&self) -> Vec<usize> {
        let Source::Rows { kernel, rows, chosen } = &self.source else { return (0..self.origin.len()).collect() };
        let (rvm, is_late) = (self.rvm, || self.interrupt.is_late());
        let choose = || rvm.landmarks.choose(self.rows.view(), rows, self.dictionary_size(), kernel, rvm.seed, &is_late);
        chosen.get_or_init(choose).clone()
    }

    /// Returns the largest possible number of candidates that may enter the model.
    pub fn dictionary_size(&self) -> usize {
        match self.source {
            Source::Rows { .. } => self.rvm.dictionary.size(self.origin.len()),
            _ => self.origin.len(),
        }
    }
}

/// Number of dense matrices of the active columns that exist during a solve. The matrices of the previous solve are
/// among them.
pub(crate) const DENSE: u64 = 8;
/// Largest size in bytes of a Phi that is stored in any case, because it is small beside everything else.
pub(crate) const LITTLE: u64 = 1 << 24;

/// Returns true if the Gram matrix of `columns` columns is constant and takes at most a quarter of `limit` bytes.
pub(crate) fn sums_fit(rvm: &Rvm, columns: u64, limit: u64) -> bool {
    rvm.likelihood.as_dyn().constant_curvature() && 8 * columns * columns <= limit / 4
}

/// Returns the bytes that updating `columns` columns of `outputs` functions at once needs, in addition to the rows.
/// They are the dense matrices, and Phi and G if the scaled problem stores them under `limit`.
pub(crate) fn at_once(rvm: &Rvm, rows: u64, columns: u64, outputs: u64, limit: u64) -> u64 {
    let (phi, weights) = (8 * rows * columns, columns * outputs);
    let keeps_sums = sums_fit(rvm, columns, limit);
    let keeps_phi = phi <= limit / 4 && (!keeps_sums || phi <= LITTLE);
    8 * DENSE * weights * weights + if keeps_sums { 8 * columns * columns } else { 0 } + if keeps_phi { phi } else { 0 }
}

impl<'a> TrainingSet<'a> {
    /// Validates rows `x`, `[N, D]`, and their targets, and brings them into canonical order and internal units.
    ///
    /// # Errors
    /// Returns an error for values that are not finite, shapes that do not match, targets that do not suit the
    /// likelihood, too few rows, and too little memory.
    pub fn new(rvm: &'a Rvm, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<TrainingSet<'a>> {
        let n = x.nrows();
        let likelihood = rvm.likelihood.as_dyn();
        let Checked { canonical, each, used } = Checked::of(rvm, x, targets)?;
        let mut adjustments = Adjustments { merged_rows: canonical.merged, ..Adjustments::default() };
        adjustments.constant_features =
            (0..x.ncols()).filter(|d| canonical.rows.column(*d).iter().all(|v| *v == canonical.rows[[0, *d]])).collect();
        if rvm.basis == Basis::Kernel {
            adjustments.shared_columns = canonical.shared;
        }

        let count = canonical.weights.iter().sum();
        adjustments.small_weights = SmallWeights::of(count, used);
        let (mut inner, sample_weights) = (canonical.targets, canonical.weights);
        let known = Known::of(rvm, targets, canonical.given.as_deref(), &mut inner, &sample_weights)?;
        let Known { factors, typical, log_rate } = known;
        let weights = times(&sample_weights, factors.as_ref());

        let (units, constant) = centred(rvm, &mut inner, each, &weights)?;
        let all_constant = constant.iter().all(|same| *same);
        let noise_is_known = typical.is_some();
        adjustments.constant_target = all_constant;
        adjustments.constant_outputs = if each > 1 { (0..each).filter(|k| constant[*k]).collect() } else { vec![] };

        let bias_only =
            all_constant && rvm.bias && (likelihood.noise() == NoiseModel::Learned && !noise_is_known || likelihood.counts());
        let outputs = likelihood.outputs(targets.values);
        let memory_limit = memory::allowed(rvm.memory_limit);
        let size = Size { n, dim: canonical.rows.dim(), different: canonical.origin.len(), outputs };
        let (taken, least) = size.afford(rvm, bias_only, memory_limit)?;
        let rows = canonical.rows;
        // If other outputs vary, the noise of a constant output is fixed only if a bias fits its value.
        let held = |same: bool| same && (rvm.bias || all_constant);
        let noise = units.iter().zip(&constant).map(|(units, same)| first_noise(rvm, units, held(*same), typical));
        let noise = noise.collect::<Result<_>>()?;
        let (source, origin, candidate_of) = match rvm.basis {
            Basis::Given => (Source::Given, (0..x.ncols()).collect(), (0..x.ncols()).map(Some).collect()),
            Basis::Kernel => {
                let kernel = design::resolve(&rvm.kernel, rows.view(), &sample_weights)?;
                match rvm.landmarks.given() {
                    Some(centres) => given_centres(kernel, centres, x.ncols())?,
                    None => {
                        let source = Source::Rows { kernel, rows: canonical.first, chosen: OnceLock::new() };
                        (source, canonical.origin, canonical.column_of)
                    }
                }
            }
        };
        Ok(TrainingSet {
            rvm,
            outputs,
            rows: rows.into_shared(),
            targets: inner,
            count,
            weights,
            copies: Arc::new(canonical.copies),
            least_factor: factors.as_ref().map_or(1.0, RowFactors::least),
            factors,
            noise,
            units,
            bias_only,
            log_rate,
            known_noise: noise_is_known,
            adjustments,
            n_rows: n,
            origin,
            candidate_of,
            source,
            learned: None,
            memory_limit,
            taken,
            least,
            interrupt: interrupt.clone(),
        })
    }

    /// Returns a training set of rows of which only sums are known, and these sums in internal units.
    ///
    /// # Errors
    /// Returns an error for a likelihood other than Gaussian, for noise that is given twice, for fewer than 2 rows, and
    /// for too little memory.
    pub fn of_statistics(rvm: &'a Rvm, statistics: &Statistics, interrupt: &Interrupt) -> Result<(TrainingSet<'a>, Sums)> {
        if rvm.likelihood.as_dyn().noise() == NoiseModel::None {
            return Err(Error::Parameter {
                name: "likelihood".into(),
                found: rvm.likelihood.name().into(),
                expected: "gaussian: with other likelihoods, sums over rows are not sufficient for a fit".into(),
            });
        }
        let typical = statistics.typical_noise();
        if typical.is_some() && rvm.likelihood.as_dyn().noise() != NoiseModel::Learned {
            return Err(Error::Statistics(
                "the statistics contain the noise variance of each row; do not set noise_variance of the likelihood as well"
                    .into(),
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
        let training = TrainingSet {
            rvm,
            rows: ArcArray2::zeros((0, statistics.n_features())),
            targets: vec![],
            outputs: 1,
            weights: vec![],
            copies: Arc::default(),
            factors: None,
            least_factor: statistics.least_factor().min(1.0),
            count: sums.count,
            noise: vec![first_noise(rvm, &units, constant, typical)?],
            units: vec![units],
            bias_only: constant && rvm.bias && rvm.likelihood.as_dyn().noise() == NoiseModel::Learned && typical.is_none(),
            log_rate: 0.0,
            known_noise: typical.is_some(),
            adjustments: Adjustments { constant_target: constant, small_weights, ..Adjustments::default() },
            n_rows: statistics.n_rows(),
            origin: (0..l).collect(),
            candidate_of: (0..l).map(Some).collect(),
            source: Source::Centres { kernel, centres },
            learned: None,
            memory_limit,
            taken,
            least,
            interrupt: interrupt.clone(),
        };
        Ok((training, sums))
    }

    /// Returns the sums over all rows, of which this training set is a sample, at its candidates in internal units, and the
    /// training set of these sums; `None` if the deadline has passed.
    ///
    /// # Errors
    /// Returns [`Error::Memory`](crate::Error::Memory) if the sums do not fit into memory, and the errors of the source.
    pub fn with_sums<'b>(&self, rvm: &'b Rvm, pass: &Pass) -> Result<Option<(TrainingSet<'b>, Sums)>> {
        let candidates = self.dictionary();
        self.afford_sums(candidates.len(), 1)?;
        let Columns::Kernel { kernel, centres } = self.columns(&candidates).1 else { unreachable!("the candidates are centres") };
        let lower = Array2::zeros((0, 0));
        let at = SumsRequest { kernel, centres, lower, bias: rvm.bias, ratios: vec![0.0], mean: None };
        let Some(sums) = AllRows::Asked(pass).sums(&at, &self.interrupt)? else { return Ok(None) };
        let (RatioSums { mut gram, right, squares, log_det }, totals) = sums.single();
        linalg::mirror(&mut gram);
        let f = right.columns().into_iter().map(|f| f.to_vec()).collect();
        let tt = squares.iter().zip(&totals.scatter).map(|(squares, scatter)| squares + scatter).collect();
        // The log-determinant is that of the weights of merged rows.
        let factors = RowFactors { factor: vec![], constant: vec![totals.log_constant - 0.5 * log_det] };
        let adjustments = Adjustments { constant_outputs: self.adjustments.constant_outputs.clone(), ..Adjustments::default() };
        let training = self.of_sums(rvm, &candidates, totals.count);
        let sums = Sums { gram, f, tt, count: totals.count };
        Ok(Some((TrainingSet { factors: Some(factors), adjustments, ..training }, sums)))
    }

    /// Checks that the sums over rows for `landmarks` candidates fit into memory, in fits of as many `models`.
    ///
    /// # Errors
    /// Returns [`Error::Memory`](crate::Error::Memory) if they do not.
    pub fn afford_sums(&self, landmarks: usize, models: usize) -> Result<()> {
        let p = landmarks + usize::from(self.rvm.bias);
        let what = format!("the sums over the rows for {landmarks} landmarks");
        let bytes = 8 * (p * p) as u64 * (2 * DENSE + 4 * models as u64);
        if self.taken + bytes > self.memory_limit {
            // The sample of a larger limit may be larger, and takes at most half of it.
            afford(&what, (self.taken + bytes).max(2 * bytes), self.memory_limit)?;
        }
        Ok(())
    }
}

/// Validated rows and targets of a fit, in canonical order.
struct Checked {
    canonical: Canonical,
    /// Number of target values per row: 1, or the number of real outputs.
    each: usize,
    /// Number of rows of positive weight.
    used: usize,
}

impl Checked {
    fn of(rvm: &Rvm, x: ArrayView2<f64>, targets: &Targets) -> Result<Checked> {
        let n = x.nrows();
        let y = checked_targets(rvm, x, targets)?;
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; n]);
        if let Some(given) = targets.given.as_ref().filter(|given| !rvm.likelihood.as_dyn().uses(given)) {
            return Err(Error::Targets(format!("{} per row is given, but it is only for {}", given.name(), given.serves())));
        }
        let known = targets.checked_given()?;
        let canonical = Canonical::new(x, &y, &weights, known.as_deref());
        let used = weights.iter().filter(|w| **w > 0.0).count();
        if used < 2 {
            return Err(Error::TooFewRows { found: used, least: 2 });
        }
        refuse_one_class(targets, &canonical.targets)?;
        Ok(Checked { canonical, each: y.len() / n.max(1), used })
    }
}

/// Returns the validated targets in the form that the likelihood uses, row by row, from rows `x`, `[N, D]`.
fn checked_targets(rvm: &Rvm, x: ArrayView2<f64>, targets: &Targets) -> Result<Vec<f64>> {
    targets.check_rows(x)?;
    match rvm.basis {
        Basis::Kernel => check_features("rows to train on", x)?,
        Basis::Given => check_finite("rows to train on", x, 0..x.ncols())?,
    }
    let y = rvm.likelihood.as_dyn().targets(targets.values)?;
    if let Values::Classes { labels, count } = targets.values
        && count > 2
    {
        check_present(labels, count, targets.checked_weights()?.as_deref())?;
    }
    let each = y.len() / x.nrows().max(1);
    if let Some(at) = y.iter().position(|v| !v.is_finite()) {
        return Err(Error::NotFinite { what: "targets", row: at / each, column: at % each, value: y[at] });
    }
    if each > 1 {
        rvm.check_several_outputs(each)?;
    }
    Ok(y)
}

/// Returns given centres as candidates: the source of their distinct values, the number of the first given centre of
/// each candidate, and the candidate of each given centre.
fn given_centres(kernel: Kernel, centres: &Centres, features: usize) -> Result<(Source, Vec<usize>, Vec<Option<usize>>)> {
    let (centres, kept) = centres.distinct(features)?;
    let first = |k: usize| kept.iter().position(|c| *c == k).expect("each is kept once");
    let origin = (0..centres.nrows()).map(first).collect();
    Ok((Source::Centres { kernel, centres }, origin, kept.into_iter().map(Some).collect()))
}

/// Returns an error if all rows are of one class.
fn refuse_one_class(targets: &Targets, inner: &[f64]) -> Result<()> {
    if let Values::Classes { .. } = targets.values {
        let first = inner[0];
        if inner.iter().all(|t| *t == first) {
            return Err(Error::Targets(format!(
                "every row (of positive weight) is of class {first}; rows of two classes are needed"
            )));
        }
    }
    Ok(())
}

/// Given noise variances or exposures of the rows, in internal form.
#[derive(Default)]
struct Known {
    factors: Option<RowFactors>,
    /// Weighted geometric mean of the given noise variances.
    typical: Option<f64>,
    /// See [`TrainingSet::log_rate`].
    log_rate: f64,
}

impl Known {
    /// Converts `given`, one number per row. For exposures, the counts `inner` are divided by the factors and become
    /// rates.
    fn of(rvm: &Rvm, targets: &Targets, given: Option<&[f64]>, inner: &mut [f64], weights: &[f64]) -> Result<Known> {
        match (given, &targets.given) {
            (Some(variances), Some(Given::Noise(_))) => {
                let (factors, typical) = RowFactors::of_noise(variances, weights)?;
                Ok(Known { factors: Some(factors), typical: Some(typical), log_rate: 0.0 })
            }
            (Some(exposures), Some(Given::Exposure(_))) => {
                let (factors, log_rate) = match rvm.bias {
                    true => RowFactors::of_exposure_in_any_unit(exposures, inner, weights)?,
                    false => (Some(RowFactors::of_exposure(exposures, inner, weights)?), 0.0),
                };
                let own = factors.iter().flat_map(|factors| &factors.factor);
                inner.iter_mut().zip(own).for_each(|(t, e)| *t /= e);
                Ok(Known { factors, typical: None, log_rate })
            }
            _ => Ok(Known::default()),
        }
    }
}

/// Standardises the targets `inner`, [N, R] row by row, in place. Returns the scaling of each output, and whether it is
/// constant.
fn centred(rvm: &Rvm, inner: &mut [f64], each: usize, weights: &[f64]) -> Result<(Vec<Units>, Vec<bool>)> {
    let likelihood = rvm.likelihood.as_dyn();
    let (mut units, mut constant) = (vec![Units { scale: 1.0, mean: 0.0 }], vec![false]);
    if likelihood.noise() != NoiseModel::None {
        (units, constant) = (vec![], vec![]);
        for k in 0..each {
            let t: Vec<f64> = inner.iter().skip(k).step_by(each).copied().collect();
            let same = t.iter().all(|v| *v == t[0]);
            let (m, spread) = match likelihood.scale_mixture() {
                _ if same => (t[0], 0.0),
                Some(_) => middle_and_spread(&t, weights),
                None => {
                    let m = mean(&t, weights);
                    (m, deviation(&t, m, weights))
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
        // If all rates are equal, only the bias is to be learned.
        constant = vec![inner.iter().all(|t| *t == inner[0])];
    }
    Ok((units, constant))
}

/// Sizes of a training set.
struct Size {
    /// Number of the user's rows.
    n: usize,
    /// Number of rows after equal ones have been merged, and number of features.
    dim: (usize, usize),
    /// Number of distinct inputs.
    different: usize,
    outputs: usize,
}

impl Size {
    /// Returns the bytes that the rows and blocks use, and the bytes that suffice for a fit.
    ///
    /// # Errors
    /// Returns an error if the fit needs more than `memory_limit` bytes.
    fn afford(&self, rvm: &Rvm, bias_only: bool, memory_limit: u64) -> Result<(u64, u64)> {
        let Size { n, dim: (rows, d), different, outputs } = *self;
        let likelihood = rvm.likelihood.as_dyn();
        let most = match rvm.landmarks.given() {
            _ if rvm.basis == Basis::Given => d,
            Some(centres) => centres.0.nrows(),
            None => rvm.dictionary.size(different),
        };
        let scheme = rvm.inference.as_dyn();
        let whole = scheme.most_columns(likelihood.constant_curvature()).is_none_or(|columns| most <= columns);
        let p = if whole { most } else { PART };
        // Numbers per row beside its features. Some of the vectors exist once per output.
        let vectors = 16 + 12 * outputs;
        let taken = |limit: u64| {
            let block = Design::block_rows(p + 1, limit).min(rows) * (p + 1);
            8 * (rows * d + p * d + vectors * n + 16 * p + 2 * block) as u64
        };
        // Schemes that add columns stop adding when memory is exhausted. The others use all columns at once.
        let columns = (most + usize::from(rvm.bias)) as u64;
        let at_once = |limit: u64| match scheme.adds() || bias_only {
            true => 0,
            false => at_once(rvm, rows as u64, columns, outputs as u64, limit),
        };
        let least = memory::least(|limit| taken(limit) + at_once(limit));
        let mut what = "the rows, some vectors and two blocks of basis functions".to_string();
        if at_once(0) > 0 {
            what += &format!(", and updating {columns} basis functions at once");
        }
        let taken = taken(memory_limit);
        // Columns that are zero on every row need no further memory, and their number is not known yet. So the error
        // here depends on the rows and blocks only.
        afford(&what, if taken > memory_limit { least } else { taken }, memory_limit)?;
        Ok((taken, least))
    }
}
