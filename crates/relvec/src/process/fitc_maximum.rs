//! Amplitude and noise variances at the maximum of their posterior under FITC, (M72), for a given kernel.

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::lbfgs::{self, Limits};
use crate::process::Hyper;
use crate::process::fitc::Fitc;
use crate::process::kernel::{EVALUATIONS, Priors, STEP, TOLERANCE, log_normal};
use crate::process::parameters::NOISE;
use crate::report::Interrupt;

/// The prior of a fit before its centres are chosen.
pub(crate) struct Prior {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    pub hyper: Hyper,
    /// True if the features carry information about the targets.
    pub structure: bool,
    /// True if the targets are log rates of counts, in units of their standard deviation.
    pub log_rates: bool,
}

/// The maximum of the posterior of amplitude and noise.
#[derive(Debug)]
pub(crate) struct Maximum {
    pub log_ratio: f64,
    /// Log noise variance of each output, `[R]`.
    pub log_noise: Vec<f64>,
    pub log_evidence: f64,
    /// Bounds of the log ratio.
    pub bounds: (f64, f64),
    pub evaluations: usize,
}

/// Number of sweeps of Newton's method over the noise variances. It converges in a few.
const SWEEPS: usize = 30;

/// Maximises the posterior of amplitude and noise, starting from those of the dense process. `fixed`, `[R]`, contains
/// the log noise variance of each output that does not learn it. `size` is the mean of k(x, x).
///
/// The noise variances that maximise the posterior at one ratio of amplitude to noise are computed without another
/// solution of a system, so that only the ratio remains to be found. As variables, ratio and noise have a posterior with a
/// narrow ridge, on which a maximisation ends too early.
pub(crate) fn maximise_posterior(
    fitc: &Fitc,
    prior: &Prior,
    fixed: &[Option<f64>],
    size: f64,
    interrupt: &Interrupt,
) -> Result<Maximum> {
    let (outputs, rows) = (fixed.len() as f64, fitc.rows);
    let priors = Priors::new(rows.count, 0, prior.log_rates.then_some(1.0));
    let size = size.max(f64::MIN_POSITIVE).ln();
    let first: Vec<f64> = fixed.iter().map(|fixed| fixed.unwrap_or(prior.hyper.log_noise)).collect();
    let (least, largest) = first.iter().zip(fixed).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (log, fixed)| {
        let (own_low, own_high) = if fixed.is_some() { (*log, *log) } else { NOISE };
        (low.min(own_low), high.max(own_high))
    });
    let mean = |log_noise: &[f64]| log_noise.iter().sum::<f64>() / outputs;
    let (low, high) = priors.amplitude.bounds();
    // Without structure the process is absent, and its ratio is fixed.
    let (start, bounds) = match prior.structure {
        true => (prior.hyper.log_amplitude - mean(&first), (low - size - largest, high - size - least)),
        false => (0.0, (0.0, 0.0)),
    };
    let amplitude = priors.amplitude.normal.filter(|_| prior.structure);
    let free = rows.count - if fitc.bias { 1.0 } else { 0.0 };
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * rows.count * outputs, patience: 2, step: STEP };
    let mut best: Option<(f64, Maximum)> = None;
    let evaluations = lbfgs::maximise(&[start], &[bounds], limits, |x| {
        if interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // After the deadline no point has a value, which ends the maximisation.
        if best.is_some() && interrupt.is_late() {
            return Ok(None);
        }
        let log_amplitude = |log_noise: &[f64]| x[0] + mean(log_noise) + size;
        let noise_at = |squares: &[f64]| {
            let mut log_noise = first.clone();
            for _ in 0..SWEEPS {
                for k in (0..fixed.len()).filter(|k| fixed[*k].is_none()) {
                    let share = squares[k] * (-log_noise[k]).exp();
                    let mut slope = 0.5 * (share - free) + log_normal(log_noise[k], priors.noise).1;
                    let mut curvature = 0.5 * share + priors.noise.1.powi(-2);
                    if let Some(prior) = amplitude {
                        slope += log_normal(log_amplitude(&log_noise), prior).1 / outputs;
                        curvature += (outputs * prior.1).powi(-2);
                    }
                    log_noise[k] = (log_noise[k] + (slope / curvature).clamp(-STEP, STEP)).clamp(NOISE.0, NOISE.1);
                }
            }
            log_noise
        };
        let Some(found) = fitc.evidence_with(x[0], noise_at)? else { return Ok(None) };
        let free_noise = found.log_noise.iter().zip(fixed).filter(|(_, fixed)| fixed.is_none());
        let of_noise: f64 = free_noise.map(|(log, _)| log_normal(*log, priors.noise).0).sum();
        let (of_amplitude, slope) = amplitude.map_or((0.0, 0.0), |prior| log_normal(log_amplitude(&found.log_noise), prior));
        let posterior = found.value + of_noise + of_amplitude;
        if best.as_ref().is_none_or(|(value, _)| posterior > *value) {
            let (log_noise, log_evidence) = (found.log_noise, found.value);
            best = Some((posterior, Maximum { log_ratio: x[0], log_noise, log_evidence, bounds, evaluations: 0 }));
        }
        Ok(Some((posterior, vec![found.by_ratio + slope])))
    })?
    .map_or(1, |peak| peak.evaluations);
    let (_, peak) = best.ok_or(Error::Singular { columns: fitc.features.nrows(), jitter: 0.0 })?;
    Ok(Maximum { evaluations, ..peak })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::merged_rows::DistinctRows;
    use ndarray::Array2;

    const COUNT: usize = 200;

    /// Returns a process on as many features as rows, of variances `variances`, and targets of it with noise.
    fn process(outputs: usize, power: f64, noise: f64) -> (DistinctRows, Array2<f64>) {
        let wave = |i: usize, k: usize| (0.618_033_988_75 * (i * (k + 1)) as f64 + 0.37 * (k * k) as f64).fract() - 0.5;
        let variances: Vec<f64> = (0..COUNT).map(|i| (1.0 + i as f64).powf(-power)).collect();
        let mean = variances.iter().sum::<f64>() / COUNT as f64;
        let x = Array2::from_shape_fn((COUNT, 1), |(i, _)| i as f64);
        let target = |(i, k): (usize, usize)| (variances[i] / mean + noise).sqrt() * wave(i + 1, k + 3) * 12f64.sqrt();
        let mut t = Array2::from_shape_fn((COUNT, outputs), target);
        for mut column in t.columns_mut() {
            let scale = column.std(0.0);
            column.mapv_inplace(|v| v / scale);
        }
        let features = Array2::from_shape_fn((COUNT, COUNT), |(i, j)| if i == j { (variances[i] / mean).sqrt() } else { 0.0 });
        (DistinctRows::new(x.view(), t.view(), &[1.0; COUNT], &[1.0; COUNT]), features)
    }

    /// No change of amplitude or noise raises the posterior, from any start and for any spectrum of the kernel.
    #[test]
    fn the_maximum_does_not_depend_on_the_start() {
        for (outputs, power, noise) in [(1, 0.1, 0.1), (1, 0.5, 0.1), (1, 1.0, 0.01), (1, 1.0, 1.0), (2, 0.3, 0.1)] {
            let (rows, features) = process(outputs, power, noise);
            let fitc = Fitc { rows: &rows, features: features.view(), residual: &[0.0; COUNT], bias: false };
            let from = |log_amplitude: f64, log_noise: f64| {
                let hyper = Hyper { log_amplitude, log_noise };
                let kernel = Kernel::from_name("linear").unwrap();
                let prior = Prior { kernel, hyper, structure: true, log_rates: false };
                maximise_posterior(&fitc, &prior, &vec![None; outputs], 1.0, &Interrupt::default()).unwrap()
            };
            let starts = [(-0.6, -1.0), (-0.6, -3.0), (-0.6, -5.0), (0.5, -6.0), (1.0, -2.0)];
            let found: Vec<f64> = starts.iter().map(|(amplitude, noise)| from(*amplitude, *noise).log_evidence).collect();
            let (least, most) = found.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
            assert!(most - least < 0.1, "{outputs} outputs, power {power}, noise {noise}: {found:?}");
        }
    }
}
