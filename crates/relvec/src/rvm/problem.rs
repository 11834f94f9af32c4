//! From the user's table to the inner problem, and back to the user's units.
//!
//! Rows are put into one order whatever theirs was, equal ones are merged, targets are scaled to
//! unit variance and columns to unit norm, so that no result depends on units or on the order.

use ndarray::{Array1, Array2, ArrayView2};

use super::canonical::Canonical;
use super::gain::Noise;
use super::solution::Solution;
use super::{Basis, Rvm};
use crate::design::{Columns, Design};
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::likelihood::{NoiseModel, Working};
use crate::model::check_finite;
use crate::quadratic::Quadratic;
use crate::report::{Interrupt, Repairs};
use crate::statistics::Statistics;
use crate::targets::{Targets, Values};

/// The noise precision is at most this over var(t): a perfect fit must not divide by zero.
const NOISE_CAP: f64 = 1e6;
/// Dense matrices of the active columns that a solve and the one before it hold.
pub(crate) const DENSE: u64 = 8;
/// For a constant target, over its square.
const CONSTANT_NOISE: f64 = 1e12;

/// What the inference schemes work on.
#[derive(Debug)]
pub(crate) struct Problem<'a> {
    pub rvm: &'a Rvm,
    pub design: Design,
    /// Targets in the inner units, `[N]`.
    targets: Vec<f64>,
    /// Sample weights, `[N]`.
    pub weights: Vec<f64>,
    pub units: Units,
    /// The noise at the start.
    pub noise: Noise,
    pub repairs: Repairs,
    /// Whether the bias alone is to be fitted: the target is constant.
    pub bias_only: bool,
    pub has_bias: bool,
    /// Bytes that the fit may take.
    memory_limit: u64,
    /// Bytes that the rows, Phi and G take, as far as they are kept.
    taken: u64,
    pub interrupt: Interrupt,
    /// Rows of the user's table.
    pub n_rows: usize,
    /// The user's row (or column of a given design matrix) behind each basis function, the bias left out.
    pub origin: Vec<usize>,
    /// The basis function that each of the user's rows stands for; `None` for rows of weight 0.
    pub column_of: Vec<Option<usize>>,
}

/// How inner and outer units differ.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Divides the targets.
    pub scale: f64,
    /// Subtracted from the scaled targets; 0 without bias.
    pub mean: f64,
}

impl<'a> Problem<'a> {
    pub fn new(rvm: &'a Rvm, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<Problem<'a>> {
        let n = x.nrows();
        if targets.len() != n {
            let found = format!("{}", targets.len());
            return Err(Error::Shape { what: "targets", expected: format!("{n}, one per row"), found });
        }
        if x.ncols() == 0 {
            return Err(Error::Shape { what: "rows to train on", expected: "at least 1 column".into(), found: "0".into() });
        }
        check_finite("rows to train on", x, 0..x.ncols())?;
        let likelihood = rvm.likelihood.as_dyn();
        let y = likelihood.targets(targets.values)?;
        if let Some(row) = y.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "targets", row, column: 0, value: y[row] });
        }
        let weights = sample_weights(targets, n)?;
        let given = rvm.basis == Basis::Given;
        let mut canonical = Canonical::new(x, &y, &weights);
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

        // Targets: about their mean, in standard deviations.
        let real = likelihood.noise() != NoiseModel::None;
        let (mut units, mut inner) = (Units { scale: 1.0, mean: 0.0 }, canonical.targets.clone());
        let mut bias_only = false;
        if real {
            let m = mean(&inner, &canonical.weights);
            let constant = inner.iter().all(|t| *t == inner[0]);
            let m = if constant { inner[0] } else { m };
            let spread = if constant { 0.0 } else { deviation(&inner, m, &canonical.weights) };
            units.scale = if spread > 0.0 {
                spread
            } else if m != 0.0 {
                m.abs()
            } else {
                1.0
            };
            let square = units.scale * units.scale;
            if !(square.is_normal() && (1.0 / square).is_normal()) {
                return Err(Error::Overflow { what: format!("the square of the targets' spread, {:e},", units.scale) });
            }
            repairs.constant_target = spread == 0.0;
            bias_only = spread == 0.0 && rvm.bias && likelihood.noise() == NoiseModel::Learnt;
            let shift = if rvm.bias { m } else { 0.0 };
            inner.iter_mut().for_each(|t| *t = (*t - shift) / units.scale);
            units.mean = shift / units.scale;
        }
        let c = rvm.inference.as_dyn().hyperpriors();
        let square = units.scale * units.scale;
        let noise = match likelihood.noise() {
            NoiseModel::None => Noise::Fixed(1.0),
            NoiseModel::Fixed(variance) => Noise::Fixed(square / variance),
            NoiseModel::Learnt if repairs.constant_target => Noise::Fixed(CONSTANT_NOISE),
            NoiseModel::Learnt => Noise::Learnt { cap: NOISE_CAP, c: c.c, d: c.d / square },
        };
        if let Noise::Fixed(beta) = noise
            && !beta.is_normal()
        {
            return Err(Error::Overflow { what: "the noise precision in units of the targets' variance".into() });
        }

        let limit = memory_limit(rvm);
        let (rows, d) = canonical.rows.dim();
        let p = if given { d } else { rvm.dictionary.size(canonical.origin.len()) };
        let block = Design::block_rows(p + 1, limit).min(rows) * (p + 1);
        let bytes = 8 * (rows * d + p * d + 28 * n + 16 * p + 2 * block) as u64;
        afford("the rows, some vectors and two blocks of basis functions", bytes, limit)?;
        let columns = match given {
            true => Columns::Given,
            false => {
                let variance = all_variance(&canonical.rows, &canonical.weights);
                let kernel = rvm.kernel.resolve(&DataScale { features: x.ncols(), variance })?;
                let kept = rvm.landmarks.choose(x, &canonical.origin, p, &kernel, rvm.seed);
                canonical.thin(&kept);
                Columns::Kernel { kernel, centres: canonical.inputs(x) }
            }
        };
        let design = Design::new(canonical.rows, columns, rvm.bias, &canonical.weights, limit, interrupt.clone())?;
        interrupt.check()?;
        repairs.zero_columns = design.norms().iter().filter(|n| **n == 0.0).count();
        let mut taken = bytes + design.stored_bytes();
        if likelihood.constant_curvature() && gram_is_stored(&design, limit) {
            taken += gram_bytes(&design);
        }
        Ok(Problem {
            rvm,
            design,
            memory_limit: limit,
            taken,
            interrupt: interrupt.clone(),
            targets: inner,
            weights: canonical.weights,
            units,
            noise,
            repairs,
            bias_only,
            has_bias: rvm.bias,
            n_rows: n,
            origin: if given { (0..x.ncols()).collect() } else { canonical.origin },
            column_of: if given { (0..x.ncols()).map(Some).collect() } else { canonical.column_of },
        })
    }

    /// Bytes that are left for the search.
    pub fn room(&self) -> u64 {
        self.memory_limit.saturating_sub(self.taken)
    }

    /// An error, before anything is allocated, if `bytes` are more than the fit may take.
    pub fn afford(&self, what: &str, bytes: u64) -> Result<()> {
        afford(what, self.taken + bytes, self.memory_limit)
    }

    /// N, or the sum of the sample weights.
    pub fn count(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Derivatives of the log-likelihood at `f`, `[N]`.
    pub fn working(&self, f: &Array1<f64>) -> Working {
        self.rvm.likelihood.as_dyn().working(&self.targets, f.as_slice().expect("f is contiguous"))
    }

    /// The one allowed question.
    pub fn constant_curvature(&self) -> bool {
        self.rvm.likelihood.as_dyn().constant_curvature()
    }

    /// Phi mu at the rows, less the mean that was taken off the targets, `[N]`.
    pub fn fitted(&self, solution: &Solution) -> Array1<f64> {
        let mut w = Array1::from_vec(solution.mean.clone());
        let mean = self.mean_bias(&solution.active);
        if let Some((p, mean)) = mean {
            w[p] -= mean;
        }
        let f = match &solution.columns {
            Some(phi) => phi.dot(&w),
            None => self.design.select(&solution.active).dot(&w),
        };
        if mean.is_some() { f } else { f - self.units.mean }
    }

    /// Where the bias stands among the active columns, and the mean of the targets as its weight.
    pub fn mean_bias(&self, active: &[usize]) -> Option<(usize, f64)> {
        active.iter().position(|j| *j == 0).filter(|_| self.has_bias).map(|p| (p, self.bias_mean()))
    }

    /// First precisions of columns: `alpha`, but for the bias one that lets it take up the mean of the
    /// targets at once, however large, so that the others' way does not depend on it.
    pub fn first_precisions(&self, columns: &[usize], alpha: f64) -> Vec<f64> {
        let bias = alpha / self.units.mean.powi(2).max(1.0);
        columns.iter().map(|j| if *j == 0 && self.has_bias { bias } else { alpha }).collect()
    }

    /// The mean of the targets as a weight of the bias column.
    fn bias_mean(&self) -> f64 {
        self.units.mean * self.design.norms()[0]
    }

    /// Log evidence (plus the log hyperprior of the noise) in the user's units.
    pub fn log_evidence_out(&self, inner: f64) -> f64 {
        if self.units.scale == 1.0 {
            return inner;
        }
        let shape = if self.noise.is_learnt() { 2.0 * self.rvm.inference.as_dyn().hyperpriors().c } else { 0.0 };
        inner - (self.count() + shape) * self.units.scale.ln()
    }

    /// Noise standard deviation in the user's units; `None` without noise.
    pub fn noise_std(&self, beta: f64) -> Option<f64> {
        let noisy = self.rvm.likelihood.as_dyn().noise() != NoiseModel::None;
        noisy.then(|| self.units.scale / beta.sqrt())
    }

    /// The quadratic form where the curvature is constant: expanded at f = 0, where the residual
    /// over the curvature is the target itself. G is stored if it fits and is cheaper so.
    pub fn constant_quadratic(&self) -> Quadratic<'_> {
        let work = self.working(&Array1::zeros(self.design.n_rows()));
        let c: Vec<f64> = work.curvature.iter().zip(&self.weights).map(|(b, c)| b * c).collect();
        let t: Vec<f64> = work.residual.iter().zip(&work.curvature).map(|(r, b)| r / b).collect();
        let mean = self.has_bias.then(|| self.bias_mean());
        if gram_is_stored(&self.design, self.memory_limit) {
            let mut statistics = Statistics::new(self.design.n_columns());
            self.design.for_each_block(|range, phi| statistics.accumulate(phi, &t[range.clone()], &c[range]));
            return Quadratic::stored(statistics.finish(), mean);
        }
        let ct: Vec<f64> = c.iter().zip(&t).map(|(c, t)| c * t).collect();
        let tt = ct.iter().zip(&t).map(|(c, t)| c * t).sum();
        Quadratic::on_demand(&self.design, c, &ct, tt, self.count(), mean, &[])
    }

    /// Whether a learnt noise precision has reached its cap.
    pub fn noise_capped(&self, beta: f64) -> bool {
        matches!(self.noise, Noise::Learnt { cap, .. } if beta >= 0.999 * cap)
    }

    /// Columns that are not zero on every row.
    pub fn usable(&self) -> Vec<usize> {
        self.design.norms().iter().enumerate().filter(|(_, n)| **n > 0.0).map(|(j, _)| j).collect()
    }

    /// alpha of a column: inner from outer is this times it, (M16).
    pub fn alpha_in(&self, column: usize) -> f64 {
        let norm = self.design.norms()[column] / self.units.scale;
        1.0 / (norm * norm)
    }
}

/// Bytes of G.
fn gram_bytes(design: &Design) -> u64 {
    8 * (design.n_columns() as u64).pow(2)
}

fn gram_is_stored(design: &Design, memory_limit: u64) -> bool {
    gram_bytes(design) <= memory_limit / 4
}

fn afford(what: &str, needed: u64, limit: u64) -> Result<()> {
    if needed > limit { Err(Error::Memory { what: what.into(), needed, limit }) } else { Ok(()) }
}

/// Bytes that a fit may take.
fn memory_limit(rvm: &Rvm) -> u64 {
    rvm.memory_limit.unwrap_or_else(|| {
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        // A system that does not tell is taken for a small one.
        if system.total_memory() == 0 { 1 << 30 } else { system.total_memory() / 4 }
    })
}

fn sample_weights(targets: &Targets, n: usize) -> Result<Vec<f64>> {
    let Some(weights) = targets.weights else { return Ok(vec![1.0; n]) };
    if weights.len() != n {
        let found = format!("{}", weights.len());
        return Err(Error::Shape { what: "sample weights", expected: format!("{n}, one per row"), found });
    }
    if let Some((row, value)) = weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0)) {
        return Err(Error::Weight { row, value: *value });
    }
    Ok(weights.to_vec())
}

fn mean(t: &[f64], c: &[f64]) -> f64 {
    let total: f64 = c.iter().sum();
    t.iter().zip(c).map(|(t, c)| t * (c / total)).sum()
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

/// Variance of all entries taken together, by weight: what `gamma = "scale"` needs.
fn all_variance(rows: &Array2<f64>, weights: &[f64]) -> f64 {
    let share = 1.0 / (weights.iter().sum::<f64>() * rows.ncols() as f64);
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        rows.outer_iter().zip(weights).map(|(row, w)| w * share * row.iter().map(|v| f(*v)).sum::<f64>()).sum()
    };
    let mean = sum(&|v| v);
    // Relative to the largest entry first, so that squares stay in range.
    let largest = rows.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
    if largest == 0.0 { 0.0 } else { largest * largest * sum(&|v| ((v - mean) / largest).powi(2)) }
}
