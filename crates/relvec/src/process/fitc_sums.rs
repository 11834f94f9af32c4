//! FITC by sums over all rows, (M72): the weights, and the ratio of amplitude to noise, for given centres.
//!
//! The first amplitude and noise variance are those of a sample of the rows. The weights of (M72) need only the sums A
//! and F' inv(Lambda) t over all rows at one ratio of amplitude to noise. These are computed block by block. They also
//! give the log evidence at this ratio, and the noise variance that maximises it. If the residual is large, the ratio
//! decides how much each row counts, and a sample does not determine it. One data pass then computes the sums at
//! several ratios, and a second one at the ratio where these predict the highest evidence.

use ndarray::s;

use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::process::fitc::Weights;
use crate::process::fitc_maximum::Maximum;
use crate::process::parameters::NOISE;
use crate::query::merged_rows::Totals;
use crate::query::pass::AllRows;
use crate::query::sums::{RatioSums, SumsRequest};
use crate::report::Interrupt;

/// If the condition number of A may exceed this, one further data pass corrects the means by their residuals at the
/// rows.
const ILL: f64 = 1e8;
/// Log ratios of the first pass relative to that of the sample, if the residual is large. On nine tables and draws the
/// best ratio was 0.5 to 4.7 above that of the sample. The parabola through three points predicts the evidence to 1e-3
/// nats per row. Held-out densities do not show such a difference.
pub(crate) const LADDER: [f64; 4] = [-1.5, 1.0, 3.5, 6.0];
/// Distance of the log ratios of the first pass. The log ratios of the second pass are half as far apart, about a point
/// at most two steps from the best one.
const STEP: f64 = 2.5;
/// Predicted gain, in nats per row, below which there is no second pass. The parabola underestimates the gain by up to
/// 2e-3.
const GAIN: f64 = 1e-4;

/// Settings of the sums over all rows.
pub(crate) struct RowSums<'a> {
    pub rows: &'a AllRows<'a>,
    /// Kernel, centres and factor. Ratios and means are set for each pass.
    pub at: &'a SumsRequest,
    /// The maximum on the sample: its ratio, and the bounds of the log ratio.
    pub peak: &'a Maximum,
    /// True for each output whose noise variance is learned, `[R]`.
    pub learns: &'a [bool],
    pub interrupt: &'a Interrupt,
}

/// The fit to all rows.
pub(crate) struct FullFit {
    pub peak: Maximum,
    /// Sum of the sample weights.
    pub count: f64,
    pub weights: Weights,
}

impl RowSums<'_> {
    /// Returns the fit at the ratio of highest evidence, after at most two passes; `None` if there is no time for the
    /// first.
    pub fn best(&self) -> Result<Option<FullFit>> {
        let (low, high) = self.peak.bounds;
        let mut ladder = LADDER.map(|step| (self.peak.log_ratio + step).clamp(low, high)).to_vec();
        ladder.dedup();
        let mut seen = vec![];
        let Some(first) = self.highest(&ladder, &mut seen)? else { return Ok(None) };
        let tolerance = GAIN * first.count * self.learns.len() as f64;
        let more = more_ratios(&seen, self.peak.bounds, tolerance);
        if more.is_empty() {
            return Ok(Some(first));
        }
        let found = match self.highest(&more, &mut seen) {
            Err(Error::Singular { .. }) => None,
            found => found?,
        };
        Ok(Some(found.filter(|found| found.peak.log_evidence > first.peak.log_evidence).unwrap_or(first)))
    }

    /// Computes the fits at some log ratios in one pass and returns that of highest evidence. Log ratios and evidences
    /// are appended to `seen`. Returns `None` if there is no time for the pass.
    ///
    /// # Errors
    /// Returns [`Error::Singular`] if A has no Cholesky factor at any ratio.
    pub fn highest(&self, log_ratios: &[f64], seen: &mut Vec<(f64, f64)>) -> Result<Option<FullFit>> {
        let ratios = log_ratios.iter().map(|log| log.exp()).collect();
        let Some(sums) = self.rows.sums(&SumsRequest { ratios, ..self.at.clone() }, self.interrupt)? else { return Ok(None) };
        let mut best: Option<FullFit> = None;
        for (log_ratio, own) in log_ratios.iter().zip(sums.at_ratios) {
            match self.weights(*log_ratio, own, &sums.totals) {
                Ok(found) => {
                    let value = found.peak.log_evidence;
                    seen.push((*log_ratio, value));
                    if best.as_ref().is_none_or(|best| value > best.peak.log_evidence) {
                        best = Some(found);
                    }
                }
                Err(Error::Singular { .. }) => seen.push((*log_ratio, f64::NEG_INFINITY)),
                Err(error) => return Err(error),
            }
        }
        best.map(Some).ok_or(Error::Singular { columns: self.at.centres.nrows(), jitter: 0.0 })
    }

    /// Returns the weights at a ratio, (M72). The noise variance of each output that learns it maximises the evidence.
    fn weights(&self, log_ratio: f64, sums: RatioSums, totals: &Totals) -> Result<FullFit> {
        let (first, m, outputs) = (usize::from(self.at.bias), self.at.centres.nrows(), self.learns.len());
        let RatioSums { gram: mut a, right, squares, log_det: mut logs } = sums;
        linalg::mirror(&mut a);
        a.diag_mut().slice_mut(s![first..]).mapv_inplace(|v| v + (-log_ratio).exp());
        let factor = Cholesky::new(a, 0.0)?;
        let mut mean = right.clone();
        factor.solve(mean.view_mut());
        let free = totals.inputs as f64 - first as f64;
        logs += factor.log_det() + m as f64 * log_ratio;
        let quad = |k: usize| squares[k] - mean.column(k).dot(&right.column(k));
        let noise = |k: usize| {
            let best = (quad(k) + totals.scatter[k]) / (totals.count - first as f64);
            if self.learns[k] && best > 0.0 { best.ln().max(NOISE.0) } else { self.peak.log_noise[k] }
        };
        let log_noise: Vec<f64> = (0..outputs).map(noise).collect();
        let of_output = |k: usize| {
            let constants = free * ((2.0 * std::f64::consts::PI).ln() + log_noise[k]) + logs;
            -0.5 * (constants + quad(k) / log_noise[k].exp()) + totals.rest(k, log_noise[k]).0
        };
        let log_evidence = (0..outputs).map(of_output).sum();
        let peak = Maximum { log_ratio, log_noise, log_evidence, ..*self.peak };
        Ok(FullFit { peak, count: totals.count, weights: Weights { factor: factor.lower, mean } })
    }

    /// Returns the fit with corrected means if A is ill-conditioned and there is time for another pass. One Newton step
    /// from the residuals at the rows restores the digits that the sums have lost.
    pub fn corrected(&self, mut whole: FullFit) -> Result<FullFit> {
        let Weights { factor, mean } = &mut whole.weights;
        let diagonal = factor.diag();
        let (low, high) = diagonal.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
        let ratio = whole.peak.log_ratio.exp();
        let at = SumsRequest { ratios: vec![ratio], mean: Some(mean.clone()), ..self.at.clone() };
        if (high / low).powi(2) > ILL
            && let Some(left) = self.rows.sums(&at, self.interrupt)?
        {
            let (first, mut step) = (usize::from(at.bias), left.single().0.right);
            step.slice_mut(s![first.., ..]).scaled_add(-1.0 / ratio, &mean.slice(s![first.., ..]));
            linalg::solve_lower(factor.view(), step.view_mut());
            linalg::solve_lower_transposed(factor.view(), step.view_mut());
            *mean += &step;
        }
        Ok(whole)
    }
}

/// Returns further log ratios at which the evidence of all rows may be higher than at those in `seen`, which is
/// ascending. If the parabola through three of them peaks between the ends, its peak is returned, unless it gains less
/// than `tolerance`. If it peaks beyond the ends, up to three log ratios about that point are returned.
fn more_ratios(seen: &[(f64, f64)], (low, high): (f64, f64), tolerance: f64) -> Vec<f64> {
    // If A has no Cholesky factor at a ratio, it has none at any higher ratio.
    let (known, singular) = seen.split_at(seen.iter().take_while(|(_, value)| value.is_finite()).count());
    let Some(best) = (0..known.len()).max_by(|i, j| known[*i].1.total_cmp(&known[*j].1)) else { return vec![] };
    let high = singular.first().map_or(high, |(log_ratio, _)| 0.5 * (log_ratio + known[known.len() - 1].0));
    let mut peak = known[best].0;
    if known.len() > 2 {
        let middle = best.clamp(1, known.len() - 2);
        let [(a, lower), (x, value), (b, upper)] = [known[middle - 1], known[middle], known[middle + 1]];
        let (left, right) = ((value - lower) / (x - a), (value - upper) / (b - x));
        // Half of the second derivative, and the first derivative at x.
        let (bend, slope) = ((left + right) / (b - a), (left * (b - x) - right * (x - a)) / (b - a));
        let at = match bend > 0.0 {
            true => x + 0.5 * slope / bend,
            // Infinity times 0 would not be a number.
            false if slope == 0.0 => x,
            false => slope * f64::INFINITY,
        };
        if known[0].0 < at && at < known[known.len() - 1].0 {
            let gain = value + 0.25 * slope * slope / bend - known[best].1;
            return if gain > tolerance { vec![at] } else { vec![] };
        }
        peak = at.clamp(peak - 2.0 * STEP, peak + 2.0 * STEP);
    }
    let mut more = [-0.5, 0.0, 0.5].map(|k| (peak + k * STEP).clamp(low, high)).to_vec();
    more.dedup();
    more.retain(|log_ratio| known.iter().all(|(own, _)| own != log_ratio));
    more
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Axis};

    use super::*;
    use crate::kernel::{Kernel, Linear, Rbf};
    use crate::process::fitc::Fitc;
    use crate::process::pivoted_cholesky::Pivots;
    use crate::query::merged_rows::DistinctRows;
    use crate::query::sums::PartSums;

    fn wave(i: usize, k: usize) -> f64 {
        (0.618_033_988_75 * (i * (k + 1) + 3 * k) as f64).fract()
    }

    /// Sums over blocks of a few rows agree with [`Fitc`] on all rows, for small and large noise. The rows have
    /// different weights, equal inputs and two outputs. In one kernel k(x, x) is not 1, and one model has no constant.
    #[test]
    fn sums_by_blocks_equal_those_of_all_rows() {
        let x = Array2::from_shape_fn((60, 2), |(i, d)| 2.0 * wave(i / 2, d) - 1.0);
        let t = Array2::from_shape_fn((60, 2), |(i, k)| (3.0 * x[[i, 0]] + k as f64).sin() + 0.1 * wave(i, k + 5));
        let weights_of: Vec<f64> = (0..60).map(|i| 0.5 + wave(i, 7)).collect();
        let rows = DistinctRows::new(x.view(), t.view(), &weights_of, &[1.0; 60]);
        assert_eq!(rows.len(), 30);
        let kernels: [Kernel; 2] = [Rbf { gamma: 1.5.into() }.into(), Linear {}.into()];
        for (kernel, bias) in kernels.iter().zip([true, false]) {
            let mut pivots = Pivots::new(kernel, rows.x.view()).unwrap();
            pivots.complete(&[], &(0..30).collect::<Vec<_>>(), 12, |_| false, &Interrupt::default()).unwrap();
            let fitc = Fitc { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias };
            for (log_ratio, log_noise) in [(1.0, vec![-1.0, -2.0]), (14.0, vec![-12.0, -13.0])] {
                let centres = rows.x.select(Axis(0), pivots.centres());
                let (lower, interrupt) = (pivots.factor(), Interrupt::default());
                let ratios = vec![f64::exp(log_ratio - 1.0), f64::exp(log_ratio)];
                let at = SumsRequest { kernel: kernel.clone(), centres, lower, bias, ratios, mean: None };
                let expected = fitc.evidence(log_ratio, &log_noise).unwrap().unwrap().value;
                let bounds = (log_ratio, log_ratio);
                let peak = Maximum { log_ratio, log_noise, log_evidence: 0.0, bounds, evaluations: 0 };
                let weights = |learns: [bool; 2]| {
                    let held = AllRows::Held(&rows);
                    let sums = RowSums { rows: &held, at: &at, peak: &peak, learns: &learns, interrupt: &interrupt };
                    let whole = sums.highest(&[log_ratio], &mut vec![]).unwrap().unwrap();
                    sums.corrected(whole).unwrap()
                };
                // Sums over parts of the rows add up to the sums over all rows.
                let pieces = |at: &SumsRequest| {
                    let of = |range: std::ops::Range<usize>| {
                        let rows = DistinctRows::new(
                            x.slice(s![range.clone(), ..]),
                            t.slice(s![range.clone(), ..]),
                            &weights_of[range.clone()],
                            &vec![1.0; range.len()],
                        );
                        let mut sums = PartSums::new(at, 2);
                        sums.add_rows(at, &rows, &interrupt).unwrap();
                        sums
                    };
                    let mut sums = of(0..14);
                    [14..15 * 2, 30..60].into_iter().for_each(|range| sums.add(&of(range)).unwrap());
                    sums
                };
                let (mut one, many) = (PartSums::new(&at, 2), pieces(&at));
                one.add_rows(&at, &rows, &interrupt).unwrap();
                for (one, many) in one.at_ratios.iter().zip(&many.at_ratios) {
                    let scale = one.right.iter().fold(0.0f64, |scale, v| scale.max(v.abs()));
                    assert!((&one.right - &many.right).iter().all(|d| d.abs() < 1e-12 * scale));
                }
                // Sums at several ratios equal the sums at each ratio alone.
                let of_one = SumsRequest { ratios: at.ratios[1..].to_vec(), ..at.clone() };
                let mut last = PartSums::new(&of_one, 2);
                last.add_rows(&of_one, &rows, &interrupt).unwrap();
                let scale = last.at_ratios[0].gram.diag().iter().fold(0.0f64, |scale, v| scale.max(*v));
                assert!((&last.at_ratios[0].gram - &one.at_ratios[1].gram).iter().all(|d| d.abs() < 1e-13 * scale));
                assert_eq!(one.totals.inputs, many.totals.inputs);
                let FullFit { peak: found_peak, weights: found, .. } = weights([false, false]);
                let value = found_peak.log_evidence;
                assert!((value - expected).abs() < 1e-8 * expected.abs().max(1.0), "{log_ratio}: {value} instead of {expected}");
                let mean = fitc.weights(log_ratio).unwrap().unwrap().mean;
                let size = mean.iter().fold(0.0f64, |size, v| size.max(v.abs()));
                // The noise variance maximises the evidence.
                let best = weights([true, true]).peak;
                for factor in [-0.01, 0.0, 0.01] {
                    let moved: Vec<f64> = best.log_noise.iter().map(|log| log + factor).collect();
                    let other = fitc.evidence(log_ratio, &moved).unwrap().unwrap().value;
                    assert!(other <= best.log_evidence + 1e-8 * expected.abs(), "{factor}: {other} above {}", best.log_evidence);
                }
                assert!((&found.mean - &mean).iter().all(|d| d.abs() < 1e-8 * size), "{log_ratio}: {} {mean}", found.mean);
            }
        }
    }
    /// Further ratios are at most three, ascending and within the bounds for any evidence at the first ones: constant,
    /// convex, or without a Cholesky factor.
    #[test]
    fn further_ratios_are_few_and_within_bounds() {
        let (none, bounds) = (f64::NEG_INFINITY, (-3.0, 9.0));
        for values in [
            [0.0; 4],
            [1.0, 0.0, 1.0, 0.0],
            [1.0, 1.0, 1.0, 2.0],
            [0.0, 1.0, 2.0, 3.0],
            [3.0, 2.0, 1.0, 0.0],
            [0.0, 5.0, 3.0, none],
            [0.0, 5.0, none, none],
            [0.0, none, none, none],
            [none; 4],
        ] {
            let seen: Vec<(f64, f64)> = LADDER.into_iter().zip(values).collect();
            let more = more_ratios(&seen, bounds, 1e-4);
            assert!(more.len() <= 3 && more.is_sorted(), "{values:?}: {more:?}");
            assert!(more.iter().all(|log_ratio| bounds.0 <= *log_ratio && *log_ratio <= bounds.1), "{values:?}: {more:?}");
        }
    }

    /// From any ratio of a sample, two passes come close to the ratio of highest evidence of all rows, or reach the
    /// bound if that ratio is beyond it.
    #[test]
    fn two_passes_find_the_ratio_of_all_rows() {
        let x = Array2::from_shape_fn((200, 1), |(i, _)| 4.0 * wave(i, 0) - 2.0);
        // Ten centres cannot represent this function.
        let t = Array2::from_shape_fn((200, 1), |(i, _)| (9.0 * x[[i, 0]]).sin() * x[[i, 0]].powi(3) + 0.1 * wave(i, 5));
        let rows = DistinctRows::new(x.view(), t.view(), &[1.0; 200], &[1.0; 200]);
        let kernel: Kernel = Rbf { gamma: 9.0.into() }.into();
        let mut pivots = Pivots::new(&kernel, rows.x.view()).unwrap();
        pivots.complete(&[], &(0..200).step_by(20).collect::<Vec<_>>(), 10, |_| false, &Interrupt::default()).unwrap();
        let (centres, lower) = (rows.x.select(Axis(0), pivots.centres()), pivots.factor());
        let at = SumsRequest { kernel: kernel.clone(), centres, lower, bias: true, ratios: vec![], mean: None };
        let (held, interrupt) = (AllRows::Held(&rows), Interrupt::default());
        let find = |log_ratio: f64, bounds: (f64, f64), search: bool| {
            let from = Maximum { log_ratio, log_noise: vec![-1.0], log_evidence: 0.0, bounds, evaluations: 0 };
            let sums = RowSums { rows: &held, at: &at, peak: &from, learns: &[true], interrupt: &interrupt };
            let found = if search { sums.best() } else { sums.highest(&[log_ratio], &mut vec![]) };
            found.unwrap().unwrap().peak
        };
        let bounds = (-10.0, 20.0);
        let of_all = (0..100).map(|k| find(0.1 * f64::from(k), bounds, false));
        let best = of_all.max_by(|a, b| a.log_evidence.total_cmp(&b.log_evidence)).unwrap();
        for k in -8..8 {
            let found = find(best.log_ratio + 0.75 * f64::from(k), bounds, true);
            // The tolerance is larger if the maximum is far below the ratios of the first pass.
            let most = if k <= 2 { 0.01 } else { 0.07 };
            let loss = (best.log_evidence - found.log_evidence) / 200.0;
            assert!(loss < most, "{k}: {loss}, {found:?}");
        }
        assert_eq!(find(best.log_ratio - 3.0, (-10.0, best.log_ratio - 2.0), true).log_ratio, best.log_ratio - 2.0);
    }
}
