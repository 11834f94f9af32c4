//! Learns the kernel of classes, and the ratio of amplitude to noise, that maximise the probability of left-out labels,
//! (M82).

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::lbfgs::{self, Limits};
use crate::process::kernel::{STEP, STRUCTURE, log_normal};
use crate::process::label_rows::Labels;
use crate::process::label_sums::{RATIO, RATIO_BOUNDS};
use crate::process::parameters::{AmplitudePrior, Frame, Parameters, mean_diagonal};
use crate::process::{Hyper, Learned};
use crate::report::Interrupt;

/// Largest number of score evaluations, of which about 8 are taken.
const EVALUATIONS: usize = 20;
/// The maximisation ends when two evaluations gain less than this many nats per unit of weight, a thousandth of the
/// uncertainty of a row. A tenth of it gives the same held-out log losses.
const TOLERANCE: f64 = 3e-4;
/// Prior standard deviation of the log of a length scale.
const LENGTH_SD: f64 = 1.0;
/// Initial log rho.
const FIRST_RATIO: f64 = 2.0;

/// Learns rho and the parameters of `kernel`: all continuous ones with one width, or none if gamma is a number. The
/// result contains rho as the amplitude at noise variance 1.
///
/// # Errors
/// Returns an error if a gamma would be out of the range of numbers, or if the fit is stopped before there is a result.
pub(crate) fn maximise(labels: &Labels, kernel: &Kernel, frame: &Frame, interrupt: &Interrupt) -> Result<Learned> {
    let labels = labels.with_inputs(frame.to_internal(labels.rows.x.view()));
    let rule = kernel.learned_rule();
    let features = frame.live.len();
    let learned = Parameters::of(kernel, frame, &labels.rows, LENGTH_SD, false, AmplitudePrior::FLAT);
    let count = learned.list.len();
    let (mut start, mut bounds, mut priors) = (vec![], vec![], vec![]);
    for parameter in &learned.list {
        start.push(parameter.start);
        bounds.push(parameter.bounds);
        priors.push(parameter.prior);
    }
    // The ratio is relative to a kernel with k(x, x) = 1.
    let size = mean_diagonal(&learned.kernel, &labels.rows.x).max(f64::MIN_POSITIVE).ln();
    start.push(FIRST_RATIO - size);
    bounds.push((RATIO_BOUNDS.0 - size, RATIO_BOUNDS.1 - size));
    priors.push(Some((RATIO.0 - size, RATIO.1)));
    if learned.with_amplitude {
        // The ratio is contained in the amplitudes of the terms, each of which has the prior of a ratio.
        (start[count], bounds[count], priors[count]) = (FIRST_RATIO, (FIRST_RATIO, FIRST_RATIO), None);
    }
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * labels.rows.count, patience: 2, step: STEP };
    let (mut best, mut evaluations): (Option<Learned>, usize) = (None, 0);
    lbfgs::maximise(&start, &bounds, limits, |x| {
        if interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // After the deadline no point has a value, which ends the maximisation.
        if best.is_some() && interrupt.is_late() {
            return Ok(None);
        }
        evaluations += 1;
        let (kernel, log_ratio) = (learned.at(&x[..count]), x[count]);
        let Some(score) = labels.score(&kernel, log_ratio) else { return Ok(None) };
        let slopes = labels.gradient(&score, &kernel, log_ratio, count > 0);
        let mut slope = learned.gradient(&slopes.by_parameters);
        slope.push(slopes.by_ratio);
        let mut log_posterior = score.value;
        for ((slope, x), prior) in slope.iter_mut().zip(x).zip(&priors) {
            let (log, derivative) = prior.map_or((0.0, 0.0), |prior| log_normal(*x, prior));
            log_posterior += log;
            *slope += derivative;
        }
        if best.as_ref().is_none_or(|best| log_posterior > best.log_posterior) {
            let gain = if features == 0 && rule.is_some() { f64::NEG_INFINITY } else { log_posterior - labels.null };
            let (kernel, log_amplitude) = learned.shares(kernel, log_ratio);
            best = Some(Learned {
                kernel,
                hyper: Hyper { log_amplitude, log_noise: 0.0 },
                log_evidence: score.value,
                log_posterior,
                gain,
                has_structure: gain >= STRUCTURE,
                log_rates: false,
                per_feature: false,
                evaluations: 0,
            });
        }
        Ok(Some((log_posterior, slope)))
    })?;
    let best = best.ok_or(Error::Singular { columns: labels.rows.len(), jitter: 0.0 })?;
    let kernel = frame.to_original(&best.kernel)?;
    Ok(Learned { kernel, evaluations, ..best })
}
