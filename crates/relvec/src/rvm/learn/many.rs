//! The process prior on large tables: centres drawn at random, without a search, and sums over all rows for the weights.
//!
//! What the centres leave is measured on some rows, and amplitude and noise first. The weights of (M72) need, of all rows, only the sums
//! A and F' inv(Lambda) t at one ratio of amplitude and noise, which are made block by block. They tell the evidence at this ratio and
//! the noise of highest evidence. If the centres leave much of the prior, the ratio decides how much each row counts, and some rows do
//! not tell it: sums are made at several ratios, until none is better.

use std::time::Instant;

use ndarray::{Array2, Axis, concatenate, s};

use super::all_rows::AllRows;
use super::fitc::{Fitc, Weights};
use super::label_model;
use super::parameters::NOISE;
use super::pivots::{Pivots, Points};
use super::process::{Found, Peak, climb};
use super::query::sums::{At, PartSums};
use super::rows::{DistinctRows, MOST_ROWS};
use crate::design::Columns;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::model::Model;
use crate::report::{Actions, Certificate, Interrupt, ProcessFit, Repairs, Report, Status};
use crate::rvm::data::noise::Noise;
use crate::rvm::data::table::Table;
use crate::rvm::search::watch::Watch;
use crate::rvm::settings::dictionary::{Dictionary, Landmarks};
use crate::rvm::settings::rvm::Rvm;

/// Centres at most, unless a number is given: time and the size of a model grow with their square. With 1,500 instead of 1,000 a rough
/// function (kin40k, 10,000 rows) gains 0.16 nats in a third more time, a smooth one nothing.
const MOST_CENTRES: usize = 1500;
/// Rows that amplitude, noise and residual are measured on: the noise variance is then known to 3 %.
const ROWS: usize = 2000;
/// What the prior may leave, over the noise: with so many rows the centres and not the noise limit what is predicted. At 10,000 rows
/// 0.03 costs 0.02 nats, 0.1 costs 0.05.
const RESIDUAL: f64 = 0.01;
/// Where the condition of A may be above this, the means are corrected by what they leave at the rows, one more reading of these.
const ILL: f64 = 1e8;
/// First change of the log ratio, which doubles until the evidence of all rows is lower on either side. Parabolas through points no
/// further apart than `WIDEST` follow until they promise less than `GAIN` nats a row, which no held-out density shows. Diamonds (48,000
/// rows) take five or six readings where the first ratio is e^2 to e^6 too small.
const STEP: f64 = 1.0;
const WIDEST: f64 = 3.0;
const GAIN: f64 = 1e-3;
const READINGS: usize = 10;

/// What all rows tell.
struct Whole {
    peak: Peak,
    /// Rows by weight.
    count: f64,
    weights: Weights,
}

impl Rvm {
    /// Whether a fit to a table has the process prior without a search before it.
    pub(in crate::rvm) fn fits_many(&self, table: &Table) -> Result<bool> {
        Ok(table.rows.nrows() > MOST_ROWS && !self.likelihood.is_for_classes() && self.has_process(table)?)
    }

    /// The model of a large table under a process prior.
    pub(in crate::rvm) fn fit_many(&self, table: &Table, watch: &mut Watch) -> Result<(Model, Report)> {
        let rows = DistinctRows::of(table, &(0..table.rows.nrows()).collect::<Vec<_>>());
        self.fit_by_sums(table, &AllRows::Held(&rows), watch)
    }

    /// The model of `rows`, of which `table` holds all or a sample, under a process prior.
    pub(in crate::rvm) fn fit_by_sums(&self, table: &Table, rows: &AllRows, watch: &mut Watch) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let n = table.rows.nrows();
        let prior = self.process_of(table)?;
        let sample = DistinctRows::of(table, &Landmarks::any(n, ROWS, self.seed.wrapping_add(2))).without_copies();
        let places = self.drawn(table, sample.len());
        let points = Points { x: concatenate![Axis(0), sample.x, at(table, &places)], first: sample.len() };
        let mut pivots = Pivots::new(&prior.kernel, points.x.view())?;
        let ratio = (prior.hyper.log_amplitude - prior.hyper.log_noise).exp();
        let left = |pivots: &Pivots| ratio * pivots.mean_residual(&sample.weights);
        let most_residual = self.residual.unwrap_or(RESIDUAL);
        if prior.structure {
            let among: Vec<usize> = (points.first..points.x.nrows()).collect();
            pivots.complete(&[], &among, places.len(), |pivots| left(pivots) <= most_residual, &table.interrupt)?;
        }
        let (residual, own) = match prior.structure {
            true => (left(&pivots), pivots.residual()[..sample.len()].to_vec()),
            false => (0.0, vec![0.0; sample.len()]),
        };
        let features = pivots.features();
        let fitc = Fitc { rows: &sample, features: features.slice(s![.., ..sample.len()]), residual: &own, bias: self.bias };
        let peak = climb(table, &fitc, &prior, pivots.mean_diagonal())?;
        let centres = points.x.select(Axis(0), pivots.centres());
        let (kernel, lower, ratio) = (&prior.kernel, pivots.factor(), peak.log_ratio.exp());
        let at = At { kernel: kernel.clone(), centres, lower, bias: self.bias, ratio, mean: None };
        let learns: Vec<bool> = table.noise.iter().map(Noise::is_learnt).collect();
        let whole = match residual > RESIDUAL {
            true => Whole::best(rows, &at, &peak, &learns, &table.interrupt)?,
            false => Whole::of(rows, &at, &peak, &learns, &table.interrupt)?,
        };
        let whole = whole.map(|whole| whole.corrected(rows, &at, &table.interrupt)).transpose()?;
        let in_time = whole.is_some();
        let (peak, count, weights) = match whole {
            Some(Whole { peak, count, weights }) => (peak, count, weights),
            None => {
                let singular = || Error::Singular { columns: pivots.centres().len(), jitter: 0.0 };
                let weights = fitc.weights(peak.log_ratio)?.ok_or_else(singular)?;
                (peak, table.count, weights)
            }
        };
        let status = if in_time && !table.interrupt.is_late() { Status::Converged } else { Status::TimeLimit };
        let origin: Vec<usize> = pivots.centres().iter().map(|point| table.origin[places[point - points.first]]).collect();
        let found =
            Found { table, prior: &prior, points: &points, pivots: &pivots, origin, peak: &peak, count, weights, residual };
        let model = found.model(Model { status, iterations: 1, ..label_model::bare(table, kernel) })?;
        // There was no search: all centres are its relevance vectors.
        let searched = model.relevance.clone();
        let process = model.process.map(|process| crate::model::ProcessPrior { searched, ..process });
        let model = Model { process, ..model };
        let noise_std = model.posterior.as_ref().and_then(|posterior| posterior.noise_variance).map(f64::sqrt);
        watch.tell_model(model.log_evidence.unwrap_or(f64::NAN), noise_std, model.relevance.len() + usize::from(self.bias));
        let reached = residual <= most_residual;
        let reason = match status {
            Status::TimeLimit => "time_limit ended the choice of centres, or the weights are those of a sample of the rows",
            _ if model.relevance.is_empty() => "the features tell nothing of the targets: their mean is predicted",
            _ if !reached => "there is no room for more centres (dictionary, memory_limit)",
            _ => "the centres leave as little of the prior as was asked for",
        };
        let capped = peak.log_noise.iter().zip(&table.noise).any(|(log, noise)| noise.is_learnt() && *log <= NOISE.0);
        let left_out_rows = if in_time { table.repairs.left_out_rows } else { n - sample.len() };
        let trace = std::mem::take(&mut watch.trace);
        let report = Report {
            candidates: places.len(),
            repairs: Repairs { left_out_rows, noise_capped: capped, ..table.repairs.clone() },
            // Where time has ended the choice of centres nobody knows.
            nothing_found: model.relevance.is_empty() && !table.repairs.constant_target && status == Status::Converged,
            actions: Actions { added: model.relevance.len(), ..Actions::default() },
            process: Some(ProcessFit {
                centres: model.relevance.len(),
                searched: 0,
                residual,
                reached,
                evaluations: peak.evaluations,
                seconds: begin.elapsed().as_secs_f64(),
            }),
            ..Report::of_end(status, trace, Certificate::of_reason(reason), watch.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }

    /// Candidates that may be centres, ascending, beside so many rows of a sample: given landmarks, or rows drawn at random. Under
    /// FITC's diagonal centres do best where rows are dense; those of k-means or of the largest residual are at the edges.
    pub(super) fn drawn(&self, table: &Table, sample: usize) -> Vec<usize> {
        let all = table.origin.len();
        let size = match self.dictionary {
            _ if table.rows_of(&[]).is_none() => all,
            Dictionary::Rule(_) => self.dictionary.size(all).min(MOST_CENTRES),
            Dictionary::Size(size) => size,
        };
        Landmarks::any(all, size.min(all).min(self.most_centres(table, sample + size.min(all))), self.seed.wrapping_add(3))
    }
}

/// Candidates as points, [M, D].
pub(super) fn at(table: &Table, places: &[usize]) -> Array2<f64> {
    match table.columns(places).1 {
        Columns::Kernel { centres, .. } => centres,
        Columns::Given => unreachable!("given columns have no process prior"),
    }
}

impl Whole {
    /// At the ratio of highest evidence of all rows, from that of `peak` on; `None` where there is no time for a single one.
    fn best(rows: &AllRows, at: &At, peak: &Peak, learns: &[bool], interrupt: &Interrupt) -> Result<Option<Whole>> {
        let Some(mut best) = Whole::of(rows, at, peak, learns, interrupt)? else { return Ok(None) };
        let tolerance = GAIN * best.count * learns.len() as f64;
        let mut seen = vec![(best.peak.log_ratio, best.peak.log_evidence)];
        while seen.len() < READINGS {
            let Some(log_ratio) = next_ratio(&seen, peak.bounds, tolerance) else { break };
            let from = Peak { log_ratio, log_noise: best.peak.log_noise.clone(), ..*peak };
            match Whole::of(rows, at, &from, learns, interrupt) {
                Ok(Some(found)) => {
                    seen.push((log_ratio, found.peak.log_evidence));
                    if found.peak.log_evidence > best.peak.log_evidence {
                        best = found;
                    }
                }
                Ok(None) => break,
                // Beyond the ratios where A has a Cholesky factor.
                Err(Error::Singular { .. }) => seen.push((log_ratio, f64::NEG_INFINITY)),
                Err(error) => return Err(error),
            }
            seen.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        Ok(Some(best))
    }

    /// The weights at the ratio of a peak, (M72), and the noise of highest evidence there of each output that `learns` it; `None`
    /// where there is no time for them.
    fn of(rows: &AllRows, at: &At, peak: &Peak, learns: &[bool], interrupt: &Interrupt) -> Result<Option<Whole>> {
        let (first, m, outputs, ratio) = (usize::from(at.bias), at.centres.nrows(), peak.log_noise.len(), peak.log_ratio.exp());
        let Some(sums) = rows.sums(&At { ratio, ..at.clone() }, interrupt)? else { return Ok(None) };
        let PartSums { gram: mut a, right, squares, log_det: mut logs, totals } = sums;
        linalg::mirror(&mut a);
        a.diag_mut().slice_mut(s![first..]).mapv_inplace(|v| v + 1.0 / ratio);
        let factor = Cholesky::new(a, 0.0)?;
        let mut mean = right.clone();
        factor.solve(mean.view_mut());
        let free = totals.inputs as f64 - first as f64;
        logs += factor.log_det() + m as f64 * peak.log_ratio;
        let quad = |k: usize| squares[k] - mean.column(k).dot(&right.column(k));
        let noise = |k: usize| {
            let best = (quad(k) + totals.scatter[k]) / (totals.count - first as f64);
            if learns[k] && best > 0.0 { best.ln().max(NOISE.0) } else { peak.log_noise[k] }
        };
        let log_noise: Vec<f64> = (0..outputs).map(noise).collect();
        let of_output = |k: usize| {
            let constants = free * ((2.0 * std::f64::consts::PI).ln() + log_noise[k]) + logs;
            -0.5 * (constants + quad(k) / log_noise[k].exp()) + totals.rest(k, log_noise[k]).0
        };
        let log_evidence = (0..outputs).map(of_output).sum();
        let peak = Peak { log_noise, log_evidence, ..*peak };
        Ok(Some(Whole { peak, count: totals.count, weights: Weights { factor: factor.lower, mean } }))
    }

    /// With means that have the digits of the rows where A is ill-conditioned: one step from what they leave, while there is time.
    fn corrected(mut self, rows: &AllRows, at: &At, interrupt: &Interrupt) -> Result<Whole> {
        let Weights { factor, mean } = &mut self.weights;
        let diagonal = factor.diag();
        let (low, high) = diagonal.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
        let ratio = self.peak.log_ratio.exp();
        if (high / low).powi(2) > ILL
            && let Some(left) = rows.sums(&At { ratio, mean: Some(mean.clone()), ..at.clone() }, interrupt)?
        {
            let (first, mut step) = (usize::from(at.bias), left.right);
            step.slice_mut(s![first.., ..]).scaled_add(-1.0 / ratio, &mean.slice(s![first.., ..]));
            linalg::solve_lower(factor.view(), step.view_mut());
            linalg::solve_lower_transposed(factor.view(), step.view_mut());
            *mean += &step;
        }
        Ok(self)
    }
}

/// Where the evidence of all rows may be higher than at the log ratios `seen`, which ascend; `None` where that gains less than
/// `tolerance`.
fn next_ratio(seen: &[(f64, f64)], (low, high): (f64, f64), tolerance: f64) -> Option<f64> {
    let best = (0..seen.len()).max_by(|i, j| seen[*i].1.total_cmp(&seen[*j].1))?;
    let (x, value) = seen[best];
    let (below, above) = (best.checked_sub(1).map(|k| seen[k]), seen.get(best + 1).copied());
    let outwards = |other: Option<(f64, f64)>| other.map_or(STEP, |(other, _)| 2.0 * (x - other).abs());
    match (below, above) {
        (_, None) if x < high => Some((x + outwards(below)).min(high)),
        (None, _) if x > low => Some((x - outwards(above)).max(low)),
        (Some((a, lower)), Some((b, upper))) if lower.is_finite() && upper.is_finite() => {
            let (left, right) = ((value - lower) / (x - a), (value - upper) / (b - x));
            // Half of the second derivative, and the slope at x.
            let (bend, slope) = ((left + right) / (b - a), (left * (b - x) - right * (x - a)) / (b - a));
            match (x - a, b - x) {
                _ if 0.25 * slope * slope / bend > tolerance => Some(x + 0.5 * slope / bend),
                (left, right) if left.max(right) > WIDEST => Some(0.5 * (x + if left > right { a } else { b })),
                _ => None,
            }
        }
        (Some((a, lower)), Some((b, _))) => Some(0.5 * (x + if lower.is_finite() { b } else { a })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Linear, Rbf};
    use crate::report::Interrupt;

    fn wave(i: usize, k: usize) -> f64 {
        (0.618_033_988_75 * (i * (k + 1) + 3 * k) as f64).fract()
    }

    /// Blocks of a few rows give what [`Fitc`] gives from all at once, at noise of any size: rows of several weights, equal inputs, two
    /// outputs, kernels of which k(x, x) is not 1, no constant.
    #[test]
    fn sums_by_blocks_are_those_of_all_rows() {
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
                let at = At { kernel: kernel.clone(), centres, lower, bias, ratio: f64::exp(log_ratio), mean: None };
                let expected = fitc.evidence(log_ratio, &log_noise).unwrap().unwrap().value;
                let bounds = (log_ratio, log_ratio);
                let peak = Peak { log_ratio, log_noise, log_evidence: 0.0, bounds, evaluations: 0 };
                let weights = |learns: [bool; 2]| {
                    let (held, at) = (AllRows::Held(&rows), &at);
                    let whole = Whole::of(&held, at, &peak, &learns, &interrupt).unwrap().unwrap();
                    whole.corrected(&held, at, &interrupt).unwrap()
                };
                // Parts of the rows add up to all of them.
                let pieces = |at: &At| {
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
                let scale = one.right.iter().fold(0.0f64, |scale, v| scale.max(v.abs()));
                assert!((&one.right - &many.right).iter().all(|d| d.abs() < 1e-12 * scale));
                assert_eq!(one.totals.inputs, many.totals.inputs);
                let Whole { peak: found_peak, weights: found, .. } = weights([false, false]);
                let value = found_peak.log_evidence;
                assert!((value - expected).abs() < 1e-8 * expected.abs().max(1.0), "{log_ratio}: {value} instead of {expected}");
                let mean = fitc.weights(log_ratio).unwrap().unwrap().mean;
                let size = mean.iter().fold(0.0f64, |size, v| size.max(v.abs()));
                // The noise of highest evidence.
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
    /// From a ratio far below the best one, far above, and at it, the search ends at the ratio of highest evidence of all rows; and at
    /// the bound where that is beyond it.
    #[test]
    fn the_ratio_of_all_rows_has_no_better_neighbour() {
        let x = Array2::from_shape_fn((200, 1), |(i, _)| 4.0 * wave(i, 0) - 2.0);
        // Finer than ten centres tell.
        let t = Array2::from_shape_fn((200, 1), |(i, _)| (9.0 * x[[i, 0]]).sin() * x[[i, 0]].powi(3) + 0.1 * wave(i, 5));
        let rows = DistinctRows::new(x.view(), t.view(), &[1.0; 200], &[1.0; 200]);
        let kernel: Kernel = Rbf { gamma: 9.0.into() }.into();
        let mut pivots = Pivots::new(&kernel, rows.x.view()).unwrap();
        pivots.complete(&[], &(0..200).step_by(20).collect::<Vec<_>>(), 10, |_| false, &Interrupt::default()).unwrap();
        let fitc = Fitc { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias: true };
        let (centres, lower) = (rows.x.select(Axis(0), pivots.centres()), pivots.factor());
        let at = At { kernel: kernel.clone(), centres, lower, bias: true, ratio: 0.0, mean: None };
        let (held, interrupt) = (AllRows::Held(&rows), Interrupt::default());
        let find = |log_ratio: f64, bounds: (f64, f64)| {
            let from = Peak { log_ratio, log_noise: vec![-1.0], log_evidence: 0.0, bounds, evaluations: 0 };
            Whole::best(&held, &at, &from, &[true], &interrupt).unwrap().unwrap().peak
        };
        let own = find(2.0, (-10.0, 20.0));
        for start in [own.log_ratio - 4.0, own.log_ratio, own.log_ratio + 4.0] {
            let found = find(start, (-10.0, 20.0));
            assert!((found.log_evidence - own.log_evidence).abs() < 2.0 * GAIN * 200.0, "{start}: {found:?} and {own:?}");
            for (ratio, noise) in [(-0.5, 0.0), (0.5, 0.0), (0.0, -0.1), (0.0, 0.1)] {
                let other = fitc.evidence(found.log_ratio + ratio, &[found.log_noise[0] + noise]).unwrap().unwrap().value;
                assert!(other < found.log_evidence + GAIN * 200.0, "{start}: {other} above {found:?}");
            }
        }
        assert_eq!(find(own.log_ratio - 3.0, (-10.0, own.log_ratio - 2.0)).log_ratio, own.log_ratio - 2.0);
    }
}
