//! The kernel of classes, and the ratio of amplitude and noise: those under which left-out rows have the most probable classes,
//! (M82).

use super::frame::Frame;
use super::kernel::{GAMMA, OTHERS, OTHERS_SD, STEP, STRUCTURE, gamma_prior, log_normal, mean_diagonal};
use super::label_rows::Labels;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::report::Interrupt;
use crate::rvm::data::table::{Hyper, Learnt};
use crate::rvm::evidence::lbfgs::{self, Limits};

/// Calls of the score, of which about 8 are taken.
const EVALUATIONS: usize = 20;
/// The climb ends when two calls have gained less than this many nats per unit of weight, a thousandth of what a row is uncertain
/// by: a tenth of that leads to the same held-out log losses.
const TOLERANCE: f64 = 3e-4;
/// Standard deviation of the log of a length scale, and mean and standard deviation of log rho, for any number of rows: of eight
/// others none is better by more than 0.008 nats per row, and without priors rare classes lose 0.12.
const LENGTH_SD: f64 = 1.0;
pub(super) const RATIO: (f64, f64) = (1.0, 1.5);
/// log rho begins here, and stays between these: from all noise to noise of a thousandth of the deviation of the function.
const FIRST_RATIO: f64 = 2.0;
pub(super) const RATIO_BOUNDS: (f64, f64) = (-6.0, 14.0);

/// Learns the parameters of `kernel` (all continuous ones with one width; none where gamma is a number), and rho. [`Learnt`] holds the
/// ratio as an amplitude at noise 1.
///
/// # Errors
/// Features whose gamma would be out of the range of numbers; an interrupt before there is anything.
pub(super) fn learn(labels: &Labels, kernel: &Kernel, frame: &Frame, interrupt: &Interrupt) -> Result<Learnt> {
    let labels = labels.with_inputs(frame.inside(labels.rows.x.view()));
    let rule = kernel.learnt_rule();
    let features = frame.live.len();
    let (gamma, prior) = gamma_prior(kernel, features.max(1), LENGTH_SD);
    let kernel = frame.kernel(kernel, gamma, false);
    let own: Vec<f64> = if rule.is_some() { kernel.parameters().iter().map(|(_, v)| v.ln()).collect() } else { vec![] };
    let gammas = kernel.gamma().map_or(0, |gamma| gamma.parameters().len()).min(own.len());
    let (mut start, mut bounds, mut priors) = (vec![], vec![], vec![]);
    for (k, own) in own.iter().enumerate() {
        start.push(*own);
        bounds.push(if k < gammas { GAMMA } else { (own - OTHERS, own + OTHERS) });
        priors.push(if k < gammas { prior } else { (*own, OTHERS_SD) });
    }
    // The ratio is that of a kernel that is 1 where rows are equal.
    let size = mean_diagonal(&kernel, &labels.rows.x).max(f64::MIN_POSITIVE).ln();
    start.push(FIRST_RATIO - size);
    bounds.push((RATIO_BOUNDS.0 - size, RATIO_BOUNDS.1 - size));
    priors.push((RATIO.0 - size, RATIO.1));
    let at = |x: &[f64]| -> (Kernel, f64) {
        let values: Vec<f64> = x[..own.len()].iter().map(|v| v.exp()).collect();
        (if values.is_empty() { kernel.clone() } else { kernel.with_parameters(&values) }, x[own.len()])
    };
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * labels.rows.count, patience: 2, step: STEP };
    let (mut best, mut evaluations): (Option<Learnt>, usize) = (None, 0);
    lbfgs::maximise(&start, &bounds, limits, |x| {
        if interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // Once the time is up no step succeeds, which ends it.
        if best.is_some() && interrupt.is_late() {
            return Ok(None);
        }
        evaluations += 1;
        let (kernel, log_ratio) = at(x);
        let Some(score) = labels.score(&kernel, log_ratio) else { return Ok(None) };
        let slopes = labels.slopes(&score, &kernel, log_ratio, !own.is_empty());
        let mut slope = slopes.by_parameters;
        slope.push(slopes.by_ratio);
        let mut log_posterior = score.value;
        for ((slope, x), prior) in slope.iter_mut().zip(x).zip(&priors) {
            let (log, derivative) = log_normal(*x, *prior);
            log_posterior += log;
            *slope += derivative;
        }
        if best.as_ref().is_none_or(|best| log_posterior > best.log_posterior) {
            let gain = if features == 0 && rule.is_some() { f64::NEG_INFINITY } else { log_posterior - labels.null };
            best = Some(Learnt {
                for_search: kernel.clone(),
                kernel,
                hyper: Hyper { log_amplitude: log_ratio, log_noise: 0.0 },
                log_evidence: score.value,
                log_posterior,
                gain,
                has_structure: gain >= STRUCTURE,
                per_feature: false,
                evaluations: 0,
            });
        }
        Ok(Some((log_posterior, slope)))
    })?;
    let best = best.ok_or(Error::Singular { columns: labels.rows.len(), jitter: 0.0 })?;
    let kernel = frame.outside(&best.kernel)?;
    Ok(Learnt { for_search: kernel.clone(), kernel, evaluations, ..best })
}
