//! Finds periods that are not given: the spectrum of the targets under a process without the term proposes starts, and
//! the posterior of the process with the term chooses among them, (M95).

use std::f64::consts::TAU;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};

use crate::canonical::random_subset;
use crate::error::Result;
use crate::kernel::{Factor, GammaRule, Kernel, Rbf, Sum, Term};
use crate::linalg::{Cholesky, solve_lower};
use crate::process::Learned;
use crate::process::evidence::{constant_evidence, upper_of};
use crate::process::kernel::{CONSTANT, KernelLearner, LEAST_GAIN};
use crate::process::parameters::{Frame, Moments};
use crate::query::merged_rows::DistinctRows;

/// Number of rows from which periods are found.
const ROWS: usize = 500;
const SEED: u64 = 0;
/// Number of frequencies for each cycle over the extent of a column. Between two of them the phase at the ends changes
/// by an eighth of a turn.
const STEPS: usize = 4;
/// Largest number of cycles. With it, 500 rows take a second.
const MOST_CYCLES: usize = 5000;
/// Number of frequencies whose sines are computed at a time.
const BLOCK: usize = 256;
/// Prior variances of the first harmonics relative to the first one: those of a periodic kernel with gamma = 2.
const HARMONICS: [f64; 4] = [1.0, 0.66, 0.34, 0.15];
/// Prior variances of the first harmonic that are tried, for targets of unit variance.
const VARIANCES: [f64; 5] = [1e-3, 1e-2, 0.1, 1.0, 10.0];
/// A period must gain the log of the number of independent frequencies and this many nats: one nat for each of amplitude,
/// gamma and period. Without them, a period is found in two of five series of pure noise.
const LEAST: f64 = 3.0 * LEAST_GAIN;
/// Number of periods of each spectrum from which the kernel is learned.
const STARTS: usize = 2;
/// Gamma, for a column whose extent is a quarter, amplitude and noise variance of a smooth trend, for targets of unit
/// variance. Its length scale is half of the extent.
const TREND_GAMMA: f64 = 32.0;
const TREND_AMPLITUDE: f64 = 10.0;
const TREND_NOISE: f64 = 0.5;

impl KernelLearner<'_> {
    /// Returns a kernel with numbers for the periods that are to be found. A factor without a period that is likely
    /// enough has the extent of its column. `all`, [N, D], contains all rows, of which those of the learner are a sample.
    ///
    /// # Errors
    /// Returns the errors of [`KernelLearner::learn`].
    pub fn with_periods(&self, kernel: &Kernel, moments: &Moments, all: ArrayView2<f64>) -> Result<Kernel> {
        let Some(mut sum) = kernel.as_sum().filter(|_| kernel.learned_rule().is_some()) else { return Ok(kernel.clone()) };
        let places = sum.terms.iter().enumerate().flat_map(|(t, term)| (0..term.factors.len()).map(move |f| (t, f)));
        let unknown: Vec<(usize, usize)> = places.filter(|(t, f)| !is_known(&sum.terms[*t].factors[*f])).collect();
        if unknown.is_empty() {
            return Ok(kernel.clone());
        }
        let few = self.rows.pick(&random_subset(self.rows.len(), ROWS, SEED));
        let learner = self.with_rows(&few);
        let learn = |sum: Sum| {
            let kernel = Kernel::from(sum).with_widths(GammaRule::EvidenceOne);
            learner.learn(&kernel, &Frame::new(&kernel, moments, all)?)
        };
        let base = known(&sum, None);
        let mut base = if base.terms.is_empty() { None } else { Some(learn(base)?) };
        for (t, f) in unknown {
            let factor = sum.terms[t].factors[f].clone();
            let Starts { periods, cycles, extent } = Starts::new(&factor, &few, all, base.as_ref(), self.bias);
            let least = base.as_ref().map_or_else(|| constant_evidence(&few), |base| base.log_posterior) + cycles.ln() + LEAST;
            let mut best: Option<Learned> = None;
            set(&mut sum.terms[t].factors[f], extent);
            for period in periods.into_iter().filter(|_| !self.interrupt.is_late()) {
                let mut trial = sum.clone();
                set(&mut trial.terms[t].factors[f], period);
                let found = learn(known(&trial, Some(t)))?;
                if found.log_posterior > best.as_ref().map_or(least, |best| best.log_posterior) {
                    (best, sum) = (Some(found), trial);
                }
            }
            base = best.or(base);
        }
        Ok(if matches!(kernel, Kernel::Sum(_)) { sum.into() } else { sum.terms.remove(0).factors.remove(0).kernel })
    }
}

/// Returns true unless the factor has a period that is to be found.
fn is_known(factor: &Factor) -> bool {
    !matches!(&factor.kernel, Kernel::Periodic(own) if own.period.is_none())
}

fn set(factor: &mut Factor, period: f64) {
    if let Kernel::Periodic(own) = &mut factor.kernel {
        own.period = Some(period);
    }
}

/// Returns the terms whose periods are all known, and the known factors of the term `with`.
fn known(sum: &Sum, with: Option<usize>) -> Sum {
    let terms = sum.terms.iter().enumerate().filter(|(t, term)| Some(*t) == with || term.factors.iter().all(is_known));
    let factors = |term: &Term| term.factors.iter().filter(|factor| is_known(factor)).cloned().collect();
    Sum { terms: terms.map(|(_, term)| Term { factors: factors(term), ..term.clone() }).collect() }
}

/// Starts for a period.
struct Starts {
    /// Periods to try, of all columns of the factor.
    periods: Vec<f64>,
    /// Number of independent frequencies, at least 1.
    cycles: f64,
    /// Longest period.
    extent: f64,
}

impl Starts {
    /// Returns the highest peaks of two spectra, of the rows `few` of which `all`, [N, D], are more. One is relative to
    /// the process `base`, which may describe a season by a narrow width. The other is relative to a smooth trend.
    fn new(factor: &Factor, few: &DistinctRows, all: ArrayView2<f64>, base: Option<&Learned>, bias: bool) -> Starts {
        let constant = if bias { CONSTANT } else { 0.0 };
        let base = base
            .map(|own| (upper_of(&own.kernel, few.x.view(), |k| own.hyper.log_amplitude.exp() * k), own.hyper.log_noise.exp()));
        let (mut found, mut cycles, mut extent) = ([vec![], vec![]], 0.0, None);
        for (x, all) in factor.inputs(few.x.view()).columns().into_iter().zip(factor.inputs(all).columns()) {
            let Some((longest, count)) = range(all) else { continue };
            extent = extent.or(Some(longest));
            cycles += count as f64;
            let turns = x.mapv(|x| (x - all[0]) / longest / STEPS as f64);
            let trend = Rbf { gamma: TREND_GAMMA.into() }.into();
            let smooth = upper_of(&trend, turns.view().insert_axis(Axis(1)), |k| TREND_AMPLITUDE * k);
            for (found, (covariance, noise)) in
                found.iter_mut().zip([Some((smooth, TREND_NOISE)), base.clone()].into_iter().flatten())
            {
                let mut covariance = covariance + constant;
                covariance.diag_mut().iter_mut().zip(&few.weights).for_each(|(v, c)| *v += noise / c);
                let Some(own) = Cholesky::of_upper(covariance) else { continue };
                let gains = gains(turns.view(), few.t.view(), &own, STEPS * count);
                found.extend(peaks(&gains).into_iter().map(|j| (gains[j], longest * STEPS as f64 / j as f64)));
            }
        }
        let highest = |mut found: Vec<(f64, f64)>| {
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
            found.into_iter().map(|(_, period)| period).take(STARTS)
        };
        let mut periods: Vec<f64> = found.into_iter().flat_map(highest).collect();
        periods.sort_by(f64::total_cmp);
        periods.dedup();
        Starts { periods, cycles: f64::max(cycles, 1.0), extent: extent.unwrap_or(1.0) }
    }
}

/// Returns the longest period of a column, `[N]`, and the number of its cycles in the shortest one; `None` for fewer than
/// three values. A column of evenly spaced values can be one cycle. The shortest period has two values.
fn range(x: ArrayView1<f64>) -> Option<(f64, usize)> {
    let mut values = x.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    let gap = gaps.get(gaps.len() / 2).filter(|_| gaps.len() > 1)?;
    let longest = values[values.len() - 1] - values[0] + gap;
    Some((longest, ((longest / (2.0 * gap)) as usize).clamp(1, MOST_CYCLES)))
}

/// Returns the gain in log evidence, in nats, by a function of each frequency and its harmonics, `[count + 1]`.
/// Frequency j turns row i by j `turns`_i; `turns`: `[n]`. `factor` is that of the covariance without the function, and
/// `t`, [n, R], contains the targets.
///
/// Cosine and sine of harmonic k have the prior variance v_k. They are taken as orthogonal under the covariance C, with
/// the mean s_k of their phi'inv(C) phi:
///
/// ```text
/// gain = max over v_1 of sum_k [1/2 v_k |phi_k' inv(C) t|^2 / (1 + v_k s_k) - R log(1 + v_k s_k)]
/// ```
fn gains(turns: ArrayView1<f64>, t: ArrayView2<f64>, factor: &Cholesky, count: usize) -> Vec<f64> {
    let mut t = t.to_owned();
    solve_lower(factor.lower.view(), t.view_mut());
    let (mut power, mut size) = (vec![0.0], vec![1.0]);
    for first in (1..=count).step_by(BLOCK) {
        let block = BLOCK.min(count + 1 - first);
        let mut phi = Array2::zeros((turns.len(), 2 * block));
        for (mut row, turn) in phi.outer_iter_mut().zip(&turns) {
            for j in 0..block {
                let angle = TAU * ((first + j) as f64 * turn).fract();
                (row[2 * j], row[2 * j + 1]) = angle.sin_cos();
            }
        }
        solve_lower(factor.lower.view(), phi.view_mut());
        let products = phi.t().dot(&t);
        for j in 0..block {
            power.push(products.slice(s![2 * j..2 * j + 2, ..]).iter().map(|v| v * v).sum());
            size.push(0.5 * phi.slice(s![.., 2 * j..2 * j + 2]).iter().map(|v| v * v).sum::<f64>());
        }
    }
    let outputs = t.ncols() as f64;
    let gain = |j: usize, variance: f64| {
        let harmonics = HARMONICS.iter().zip((j..=count).step_by(j.max(1)));
        let of = |(share, k): (&f64, usize)| {
            let (v, rest) = (variance * share, 1.0 + variance * share * size[k]);
            0.5 * v * power[k] / rest - outputs * rest.ln()
        };
        harmonics.map(of).sum::<f64>()
    };
    let best = |j: usize| VARIANCES.iter().map(|variance| gain(j, *variance)).fold(f64::NEG_INFINITY, f64::max);
    (0..=count).map(best).collect()
}

/// Returns the frequencies of highest gain, a cycle apart at least, from one cycle on.
fn peaks(gains: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (STEPS..gains.len()).collect();
    order.sort_by(|j, k| gains[*k].total_cmp(&gains[*j]));
    let mut found: Vec<usize> = vec![];
    for j in order {
        if found.iter().all(|k| j.abs_diff(*k) >= STEPS) {
            found.push(j);
        }
        if found.len() == STARTS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;
    use crate::linalg::times;

    /// Whole turns of evenly spaced rows are orthogonal. The gain then equals the difference of two log evidences, here
    /// with all four harmonics of frequency 12.
    #[test]
    fn gain_of_orthogonal_frequencies_equals_the_difference_of_evidences() {
        let (n, noise, variance) = (40, 0.3, 0.1);
        let turns = Array1::from_shape_fn(n, |i| i as f64 / n as f64 / STEPS as f64);
        let t = Array2::from_shape_fn((n, 2), |(i, k)| {
            (TAU * 3.0 * i as f64 / n as f64 + k as f64).sin() + 0.1 * ((7 * i % 5) as f64 - 2.0)
        });
        let evidence = |covariance: Array2<f64>| {
            let factor = Cholesky::of_upper(covariance).unwrap();
            let mut alpha = t.clone();
            factor.solve(alpha.view_mut());
            -0.5 * ((&t * &alpha).sum() + 2.0 * factor.log_det())
        };
        let white = Array2::eye(n) * noise;
        let factor = Cholesky::of_upper(white.clone()).unwrap();
        let all = gains(turns.view(), t.view(), &factor, 50);
        let covariance = |variance: f64| {
            let wave = |i: usize, c: usize| {
                let angle = TAU * 3.0 * (c / 2 + 1) as f64 * i as f64 / n as f64;
                (variance * HARMONICS[c / 2]).sqrt() * if c.is_multiple_of(2) { angle.cos() } else { angle.sin() }
            };
            let phi = Array2::from_shape_fn((n, 2 * HARMONICS.len()), |(i, c)| wave(i, c));
            &white + &times(phi.view(), phi.t())
        };
        let gain = |variance: f64| evidence(covariance(variance)) - evidence(white.clone());
        let expected = VARIANCES.map(gain).into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(expected > gain(variance) - 1e-9 && expected > 1.0);
        assert!((all[12] - expected).abs() < 1e-9 * expected, "{} instead of {expected}", all[12]);
        assert!(peaks(&all)[..2].contains(&12), "{:?}", peaks(&all));
    }

    #[test]
    fn ranges_reach_from_one_cycle_to_two_values() {
        let range = |values: &[f64]| range(ArrayView1::from(values));
        let months: Vec<f64> = (0..60).map(|i| f64::from(i % 12 + 1)).collect();
        assert_eq!(range(&months), Some((12.0, 6)));
        assert_eq!(range(&[5.0, 1.0, 5.0]), None);
        let many: Vec<f64> = (0..20_000).map(f64::from).collect();
        assert_eq!(range(&many), Some((20_000.0, MOST_CYCLES)));
    }
}
