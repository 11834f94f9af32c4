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

/// Maximises the posterior of amplitude and noise, starting from those of the dense process. `fixed`, `[R]`, contains
/// the log noise variance of each output that does not learn it. `size` is the mean of k(x, x).
pub(crate) fn maximise_posterior(
    fitc: &Fitc,
    prior: &Prior,
    fixed: &[Option<f64>],
    size: f64,
    interrupt: &Interrupt,
) -> Result<Maximum> {
    let (outputs, rows) = (fixed.len(), fitc.rows);
    let priors = Priors::new(rows.count, 0, prior.log_rates.then_some(1.0));
    let size = size.max(f64::MIN_POSITIVE).ln();
    let log_noise_at = |x: &[f64]| -> Vec<f64> {
        let mut free = x[1..].iter();
        fixed
            .iter()
            .map(|fixed| fixed.unwrap_or_else(|| *free.next().expect("one for each output that learns its noise")))
            .collect()
    };
    let first: Vec<f64> = fixed.iter().map(|fixed| fixed.unwrap_or(prior.hyper.log_noise)).collect();
    let (least, largest) = first.iter().zip(fixed).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (log, fixed)| {
        let (own_low, own_high) = if fixed.is_some() { (*log, *log) } else { NOISE };
        (low.min(own_low), high.max(own_high))
    });
    let mean_noise = first.iter().sum::<f64>() / outputs as f64;
    let mut start = vec![prior.hyper.log_amplitude - mean_noise];
    let (low, high) = priors.amplitude.bounds();
    let mut bounds = vec![(low - size - largest, high - size - least)];
    if !prior.structure {
        // Without structure the process is absent, and its ratio is fixed.
        (start[0], bounds[0]) = (0.0, (0.0, 0.0));
    }
    for _ in fixed.iter().filter(|fixed| fixed.is_none()) {
        start.push(prior.hyper.log_noise);
        bounds.push(NOISE);
    }
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * rows.count * outputs as f64, patience: 2, step: STEP };
    let mut best: Option<(f64, Maximum)> = None;
    let evaluations = lbfgs::maximise(&start, &bounds, limits, |x| {
        if interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // After the deadline no point has a value, which ends the maximisation.
        if best.is_some() && interrupt.is_late() {
            return Ok(None);
        }
        let log_noise = log_noise_at(x);
        let Some(found) = fitc.evidence(x[0], &log_noise)? else { return Ok(None) };
        let mut posterior = found.value;
        let free = found.by_noise.iter().zip(fixed).filter(|(_, fixed)| fixed.is_none()).map(|(slope, _)| *slope);
        let mut slope = vec![found.by_ratio];
        slope.extend(free);
        for (x, slope) in x[1..].iter().zip(&mut slope[1..]) {
            let (log, derivative) = log_normal(*x, priors.noise);
            posterior += log;
            *slope += derivative;
        }
        if let Some(amplitude) = priors.amplitude.normal.filter(|_| prior.structure) {
            let (log, derivative) = log_normal(x[0] + log_noise.iter().sum::<f64>() / outputs as f64 + size, amplitude);
            posterior += log;
            slope[0] += derivative;
            slope[1..].iter_mut().for_each(|slope| *slope += derivative / outputs as f64);
        }
        if best.as_ref().is_none_or(|(value, _)| posterior > *value) {
            best = Some((
                posterior,
                Maximum { log_ratio: x[0], log_noise, log_evidence: found.value, bounds: bounds[0], evaluations: 0 },
            ));
        }
        Ok(Some((posterior, slope)))
    })?
    .map_or(1, |peak| peak.evaluations);
    let (_, peak) = best.ok_or(Error::Singular { columns: fitc.features.nrows(), jitter: 0.0 })?;
    Ok(Maximum { evaluations, ..peak })
}
