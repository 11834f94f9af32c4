//! Learns a kernel from a dense Gaussian process: its parameters, amplitude and noise at the maximum of the posterior
//! (MAP), (M67) to (M69).
//!
//! Length scales have the log-normal prior of Hvarfner et al. (2024), whose median grows with the root of the number of
//! features. Kernels are not compared by sparse fits, whose evidence is highest where they interpolate.

use ndarray::{Array2, Axis};

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::kernel::{GammaRule, Kernel};
use crate::lbfgs::{self, Limits, Steps};
use crate::process::evidence::Evidence;
use crate::process::parameters::{AmplitudePrior, Frame, NOISE, Parameters, mean_diagonal};
use crate::process::{Hyper, Learned, evidence, fitc_kernel};
use crate::query::merged_rows::DistinctRows;
use crate::report::Interrupt;

/// Largest number of evidence evaluations. 80 give no better held-out density than 40.
pub(super) const EVALUATIONS: usize = 40;
/// The maximisation ends when two evaluations gain less than this many nats per row and output. 1e-5 gives no better
/// held-out density.
pub(crate) const TOLERANCE: f64 = 1e-4;
/// Largest change of a logarithm in one step. Centres move by at most as many widths of the kernel.
pub(crate) const STEP: f64 = 2.0;
/// Initial noise variance, for targets of unit variance. The initial amplitude is 1.
const FIRST_NOISE: f64 = 0.1;
/// Trial values of gamma. From the maximum that the gradient has reached, each feature in turn is tried at these
/// values, and the best trial is a new start.
const TRIAL_GAMMAS: [f64; 3] = [0.7, 6.0, 50.0];
/// A trial must gain more than this many nats, the prior odds of a parameter.
pub(super) const LEAST_GAIN: f64 = 1.0;
/// Number of rows on which trials are evaluated, and smallest number of rows of a first maximisation.
const FEW_ROWS: usize = 250;
const SEED: u64 = 0;
/// Divisors of the number of rows from which the maximum is first found, with one width and with one for each feature. On
/// 700 random tables of 40 to 700 rows, the first maximisation saves a sixth of the time, and changes no mean of held-out
/// densities or evidences. A quarter of the rows is too few for 32 widths (a robot arm, 1,000 rows: 203 nats lower).
const SHARE: usize = 4;
const SHARE_PER_FEATURE: usize = 2;
/// Largest loss, as a multiple of its expectation, that a start from a share of the rows may have. For k logarithms,
/// the maximum on a share is expected to be k / 2 (rows / share - 1) nats below that on all rows. This is half of a
/// chi-squared variable. For three logarithms the loss exceeds the multiple in one case of 500.
const MOST_LOSS: f64 = 5.0;
/// Gamma of all other features, and noise variance, when features are tried one by one. In 10 draws of 100 to 400 rows
/// of a table with 32 features (a robot arm), the first start ends in pure noise in 2. The trials lead away from it in
/// both.
const FIRST_TRIAL_GAMMA: f64 = 1e-3;
const FIRST_TRIAL_NOISE: f64 = 0.5;
/// Factor of all gammas at a second start, and number of evidence evaluations on a few rows that show where it leads. At
/// the first start the squared distance of a typical pair of rows gives the exponent 1, at the second 8. On 210 random
/// tables of 40 to 400 rows with interactions, the second start lowers the NLPD of five by 0.08 to 1.4, raises none, and
/// takes a quarter more time. In place of the first, it loses 0.14 to 0.26 nats for each row of a robot arm (32 features).
const NARROW: f64 = 8.0;
const NARROW_EVALUATIONS: usize = 12;
/// Nats for each width that the second start must gain. With 1, narrow kernels explain single outliers among 100 rows of
/// delayed flights, at 0.4 nats for each test row. On the random tables 1 to 4 have the same effect.
const NARROW_GAIN: f64 = 3.0;
/// Prior variance of the constant, for targets of unit variance.
pub(super) const CONSTANT: f64 = 1.0;
/// Largest number of evidence evaluations on more rows. With 12, a robot arm (32 features) and elevators lose 0.02
/// nats; 30 gain nothing.
const MORE_EVALUATIONS: usize = 20;
/// Number of evaluations without gain that ends a maximisation. More are allowed if it starts near a maximum, where the
/// first steps are too long.
pub(crate) const PATIENCE: usize = 2;
const MORE_PATIENCE: usize = 5;
/// Smallest gamma of a feature at the start on more rows. Below it, a feature that the first rows do not use has no
/// gradient.
const LEAST_GAMMA: f64 = 1e-4;
/// Factor by which gammas are increased at the start on more rows. From narrow kernels the gradient leads to wide ones,
/// but from wide kernels it does not show fine structure. With 20, three draws of 10,000 house prices gain 0.04 nats on
/// average and five others 0.005. With 4 they gain nothing. With 400, two of three tables do not recover. Six other
/// tables change by less than 0.01 nats.
const NARROWER: f64 = 20.0;
/// Number of rows from which the priors are wide. With fewer rows, wide priors find structure in pure noise.
const WIDE_FROM: f64 = 60.0;
/// Overfitting by one width, in nats: 1 with wide priors (Akaike 1974), and less with narrow ones, which determine most
/// widths. One width for each feature must gain this for every width but the first. On 144 tables of 8 to 100 features
/// and 60 to 200 rows, a third of it lets 17 % end more than 0.1 nats worse than the other choice, and five end more
/// than a nat worse than a constant; 1 lets 4 %, and none. Without it, tables of 20 to 50 rows in 20 and more features
/// end up to 1.1 nats worse than a constant; with 0.3, up to 0.3.
const OPTIMISM: f64 = 1.0;
const NARROW_OPTIMISM: f64 = 0.3;
/// Prior standard deviation of the log noise variance. On 1,500 random tables of 12 to 60 rows, 1.5 gains 0.08 nats for each
/// row over 1, mostly where there is little noise, and finds no more structure in pure noise.
const NOISE_SD: f64 = 1.5;
/// Smallest gain, in nats, of a process over a constant with noise.
pub(crate) const STRUCTURE: f64 = 0.5;

/// Means and standard deviations of the priors of the logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priors {
    length_sd: f64,
    pub noise: (f64, f64),
    pub amplitude: AmplitudePrior,
    /// Gain of one width for each feature over one width that is overfitting, in nats.
    margin: f64,
}

impl Priors {
    /// Returns the priors for `count` rows. `log_rates` is the variance of the log rates of counts. One width for each feature has
    /// `further` more widths than one width.
    pub fn new(count: f64, further: usize, log_rates: Option<f64>) -> Priors {
        let (further, amplitude) = (further as f64, |normal| AmplitudePrior { normal, log_rates });
        if count < WIDE_FROM {
            let margin = NARROW_OPTIMISM * further;
            return Priors { length_sd: 0.75, noise: (-1.0, NOISE_SD), amplitude: amplitude(Some((0.0, 1.0))), margin };
        }
        Priors { length_sd: 3f64.sqrt(), noise: (-2.0, NOISE_SD), amplitude: amplitude(None), margin: OPTIMISM * further }
    }
}

/// Returns the log density of a normal variable, up to a constant, and its derivative.
pub(super) fn log_normal(x: f64, (mean, sd): (f64, f64)) -> (f64, f64) {
    let z = (x - mean) / sd;
    (-0.5 * z * z, -z / sd)
}

/// Learns kernels from the rows of a dense process.
pub(crate) struct KernelLearner<'a> {
    /// Inputs in original units, and targets of mean 0 and unit variance.
    pub rows: &'a DistinctRows,
    /// More rows and the indices of their centres, with which learning continues, (M69).
    pub more: Option<(DistinctRows, Vec<usize>)>,
    /// Log noise variance, if it is known.
    pub known_noise: Option<f64>,
    /// Variance of the log rates, if the targets are those of counts.
    pub log_rates: Option<f64>,
    /// True if there is a constant.
    pub bias: bool,
    pub interrupt: &'a Interrupt,
}

/// Maximum of the log posterior, with the kernel there.
#[derive(Debug, Clone)]
struct Maximum {
    kernel: Kernel,
    hyper: Hyper,
    /// The logarithms of amplitude, parameters and noise, `[1 + parameters + 1]`.
    x: Vec<f64>,
    log_evidence: f64,
    log_posterior: f64,
    per_feature: bool,
    evaluations: usize,
}

impl KernelLearner<'_> {
    /// Returns a learner with other rows, which does not continue with more rows.
    pub fn with_rows<'r>(&'r self, rows: &'r DistinctRows) -> KernelLearner<'r> {
        let KernelLearner { known_noise, log_rates, bias, interrupt, .. } = *self;
        KernelLearner { rows, more: None, known_noise, log_rates, bias, interrupt }
    }

    /// Learns the amplitude, the noise, and the parameters of `kernel` that are to be learned: all continuous ones, or
    /// none if gamma is a number.
    ///
    /// # Errors
    /// Returns an error if a gamma would be out of the range of numbers, or if the fit is stopped before there is a
    /// result.
    pub fn learn(&self, kernel: &Kernel, frame: &Frame) -> Result<Learned> {
        let rows = self.rows.with_inputs(frame.to_internal(self.rows.x.view()));
        let constant = evidence::constant_evidence(&rows);
        let rule = kernel.learned_rule();
        let features = if rule.is_some() { frame.live.len() } else { 0 };
        let widths = |each: bool| Parameters::of(kernel, frame, &rows, 1.0, each, AmplitudePrior::FLAT).gammas();
        let priors = Priors::new(rows.count, widths(true).saturating_sub(widths(false)), self.log_rates);
        let several = if features > 1 && rule.is_some_and(GammaRule::has_widths) {
            let objective = LogPosterior::new(self, &rows, kernel, frame, &priors, true);
            let wide = self.maximise_from_share(&objective, f64::NEG_INFINITY)?;
            Some(self.better_from_narrow(&objective, wide.expect("the least posterior is minus infinity"))?)
        } else {
            None
        };
        let one = if several.is_none() || rule != Some(GammaRule::EvidenceArd) {
            let objective = LogPosterior::new(self, &rows, kernel, frame, &priors, false);
            let least = several.as_ref().map_or(f64::NEG_INFINITY, |several| several.log_posterior - priors.margin);
            self.maximise_from_share(&objective, least)?
        } else {
            None
        };
        let before = one.iter().chain(&several).map(|peak| peak.evaluations).sum();
        let best = match (one, several) {
            (Some(one), Some(several)) if several.log_posterior > one.log_posterior.max(constant) + priors.margin => several,
            (Some(one), _) => one,
            (None, several) => several.expect("one of the two was maximised"),
        };
        let best = Maximum { evaluations: before, ..best };
        let best = if rule.is_some() { self.continue_on_more_rows(kernel, frame, &priors, best)? } else { best };
        let gain = if features == 0 && rule.is_some() { f64::NEG_INFINITY } else { best.log_posterior - constant };
        Ok(Learned {
            kernel: frame.to_original(&best.kernel)?,
            hyper: best.hyper,
            log_evidence: best.log_evidence,
            log_posterior: best.log_posterior,
            gain,
            has_structure: gain >= STRUCTURE,
            log_rates: self.log_rates.is_some(),
            per_feature: best.per_feature,
            evaluations: best.evaluations,
        })
    }

    /// Returns the maximum that narrow kernels lead to, if its posterior is much higher than that of `wide`, the maximum
    /// that wide kernels lead to. Returns `wide` otherwise. From wide kernels the gradient does not lead to interactions of
    /// several features.
    fn better_from_narrow(&self, objective: &LogPosterior, wide: Maximum) -> Result<Maximum> {
        let least = NARROW_GAIN * objective.gammas as f64;
        let few = objective.rows.pick(&random_subset(objective.rows.len(), FEW_ROWS, SEED));
        let small = LogPosterior { rows: &few, evaluations: NARROW_EVALUATIONS, ..objective.clone() };
        let mut start = objective.start.clone();
        start[1..=objective.gammas].iter_mut().for_each(|log| *log += NARROW.ln());
        let narrow = small.ascend(&start, &mut Steps::default())?;
        let Some(narrow) = narrow.filter(|narrow| narrow.log_posterior > small.value(&wide.x)) else { return Ok(wide) };
        let narrow = self.maximise(objective, &narrow.x, Steps::default())?;
        let evaluations = wide.evaluations + narrow.evaluations;
        let best = if narrow.log_posterior > wide.log_posterior + least { narrow } else { wide };
        Ok(Maximum { evaluations, ..best })
    }

    /// Returns the maximum, starting from that on a share of the rows. Returns `None` if it is unlikely to reach
    /// `least`.
    fn maximise_from_share(&self, objective: &LogPosterior, least: f64) -> Result<Option<Maximum>> {
        let (rows, share) = (objective.rows, objective.share());
        let from_start = || self.maximise(objective, &objective.start, Steps::default()).map(Some);
        if share >= rows.len() {
            return from_start();
        }
        let few = rows.pick(&random_subset(rows.len(), share, SEED));
        let mut steps = Steps::default();
        let first = LogPosterior { rows: &few, ..objective.clone() }.ascend(&objective.start, &mut steps)?;
        // All rows may show structure that the share does not.
        let Some(first) = first.filter(|first| first.log_posterior >= evidence::constant_evidence(&few) + STRUCTURE) else {
            return from_start();
        };
        let (ratio, value) = (rows.len() as f64 / share as f64, objective.value(&first.x));
        // The share may lead to a noise variance that is too small for a Cholesky factor on all rows.
        if value == f64::NEG_INFINITY {
            return from_start();
        }
        if value + 0.5 * MOST_LOSS * first.x.len() as f64 * (ratio - 1.0) < least {
            return Ok(None);
        }
        let found = self.maximise(objective, &first.x, steps.times(ratio))?;
        Ok(Some(Maximum { evaluations: first.evaluations + found.evaluations, ..found }))
    }

    /// Continues from `from` on more rows under FITC, (M69). If no width is right, more rows prefer narrower kernels.
    /// Evidence and posterior remain those of `rows`.
    fn continue_on_more_rows(&self, kernel: &Kernel, frame: &Frame, priors: &Priors, from: Maximum) -> Result<Maximum> {
        let Some((rows, centres)) = &self.more else { return Ok(from) };
        let rows = rows.with_inputs(frame.to_internal(rows.x.view()));
        // More rows determine one width for each feature, even if the first rows do not.
        let asked = kernel.learned_rule().is_some_and(GammaRule::has_widths);
        let per_feature = from.per_feature || asked && frame.live.len() > 1;
        let objective = LogPosterior::new(self, &rows, kernel, frame, priors, per_feature);
        let centres = Some(rows.x.select(Axis(0), centres));
        let objective = LogPosterior { centres, evaluations: MORE_EVALUATIONS, patience: MORE_PATIENCE, ..objective };
        let mut start = from.x.clone();
        if per_feature && !from.per_feature {
            let fewer = Parameters::of(kernel, frame, &rows, priors.length_sd, false, priors.amplitude);
            let own = 1..1 + fewer.list.len();
            start.splice(own.clone(), objective.learned.widened(&fewer, &from.x[own]));
        }
        start[1..=objective.gammas].iter_mut().for_each(|log| *log = log.max(LEAST_GAMMA.ln()) + NARROWER.ln());
        let Some(found) = objective.ascend(&start, &mut Steps::default())? else { return Ok(from) };
        // At the deadline the kernel may still be nearly as narrow as at the start.
        if self.interrupt.is_late() {
            return Ok(from);
        }
        let evaluations = from.evaluations + found.evaluations;
        Ok(Maximum { log_evidence: from.log_evidence, log_posterior: from.log_posterior, evaluations, ..found })
    }

    /// Maximises from `start`, with the curvature stored in `steps`, and again from trial points while these lead
    /// higher.
    fn maximise(&self, objective: &LogPosterior, start: &[f64], mut steps: Steps) -> Result<Maximum> {
        let rows = objective.rows;
        let mut best = objective.ascend(start, &mut steps)?.ok_or(Error::Singular { columns: rows.len(), jitter: 0.0 })?;
        let few = rows.pick(&random_subset(rows.len(), FEW_ROWS, SEED));
        let small = LogPosterior { rows: &few, ..objective.clone() };
        // From all features at once the gradient may lead to pure noise, or to so low a maximum that one width for each
        // feature would not be used. A single feature may lead away from it.
        if objective.per_feature
            && best.log_posterior < evidence::constant_evidence(rows) + STRUCTURE.max(objective.margin)
            && let Some(start) = small.best_trial(&objective.without_features())?
            && let Some(found) = objective.ascend(&start, &mut Steps::default())?
        {
            let evaluations = best.evaluations + found.evaluations;
            best = Maximum { evaluations, ..if found.log_posterior > best.log_posterior { found } else { best } };
        }
        while let Some(start) = small.best_trial(&best.x)? {
            let Some(found) = objective.ascend(&start, &mut Steps::default())? else { break };
            let evaluations = best.evaluations + found.evaluations;
            let higher = found.log_posterior > best.log_posterior + LEAST_GAIN;
            best = Maximum { evaluations, ..if higher { found } else { best } };
            if !higher {
                break;
            }
        }
        Ok(best)
    }
}

/// The log posterior as a function of the logs of the amplitude, the kernel's parameters and the noise variance.
#[derive(Clone)]
struct LogPosterior<'a> {
    learner: &'a KernelLearner<'a>,
    /// Rows with inputs in the units of the kernel.
    rows: &'a DistinctRows,
    /// Centres of FITC, [M, D]; `None` for a dense process.
    centres: Option<Array2<f64>>,
    learned: Parameters,
    start: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    priors: Vec<Option<(f64, f64)>>,
    /// See [`Priors`].
    margin: f64,
    /// Number of gammas, and number of all parameters of the kernel.
    gammas: usize,
    parameters: usize,
    per_feature: bool,
    /// Largest number of evidence evaluations, and of evaluations without gain.
    evaluations: usize,
    patience: usize,
}

impl<'a> LogPosterior<'a> {
    fn new(
        learner: &'a KernelLearner<'a>,
        rows: &'a DistinctRows,
        kernel: &Kernel,
        frame: &Frame,
        priors: &Priors,
        per_feature: bool,
    ) -> LogPosterior<'a> {
        let learned = Parameters::of(kernel, frame, rows, priors.length_sd, per_feature, priors.amplitude);
        // The amplitude is relative to a kernel with k(x, x) = 1. If the terms have amplitudes, it is fixed at 1.
        let size = mean_diagonal(&learned.kernel, &rows.x).max(f64::MIN_POSITIVE).ln();
        let (least, most) = priors.amplitude.bounds();
        let (mut start, mut bounds) = (vec![-size], vec![(least - size, most - size)]);
        let mut all_priors = vec![priors.amplitude.normal.map(|(mean, sd)| (mean - size, sd))];
        if learned.with_amplitude {
            (start[0], bounds[0], all_priors[0]) = (0.0, (0.0, 0.0), None);
        }
        for parameter in &learned.list {
            start.push(parameter.start);
            bounds.push(parameter.bounds);
            all_priors.push(parameter.prior);
        }
        if learner.known_noise.is_none() {
            start.push(FIRST_NOISE.ln());
            bounds.push(NOISE);
            all_priors.push(Some(priors.noise));
        }
        LogPosterior {
            learner,
            rows,
            centres: None,
            gammas: learned.gammas(),
            parameters: learned.list.len(),
            learned,
            start,
            bounds,
            priors: all_priors,
            margin: priors.margin,
            per_feature,
            evaluations: EVALUATIONS,
            patience: PATIENCE,
        }
    }

    /// Returns a point where no feature has an effect and the noise variance is half of the targets' variance. From
    /// there, the effect of a single feature shows.
    fn without_features(&self) -> Vec<f64> {
        let mut x = self.start.clone();
        x[1..=self.gammas].fill(FIRST_TRIAL_GAMMA.ln());
        if self.learner.known_noise.is_none() {
            x[self.parameters + 1] = FIRST_TRIAL_NOISE.ln();
        }
        x
    }

    fn at(&self, x: &[f64]) -> (Kernel, Hyper) {
        let kernel = self.learned.at(&x[1..=self.parameters]);
        // Below the least noise that is learned, the covariance might have no Cholesky factor.
        let log_noise = self.learner.known_noise.map_or_else(|| x[self.parameters + 1], |known| known.max(NOISE.0));
        (kernel, Hyper { log_amplitude: x[0], log_noise })
    }

    /// Returns the number of rows of the first maximisation.
    fn share(&self) -> usize {
        match (self.per_feature, self.rows.len()) {
            (false, rows) => (rows / SHARE).max(FEW_ROWS),
            (true, rows) if rows < SHARE_PER_FEATURE * FEW_ROWS => rows,
            (true, rows) => rows / SHARE_PER_FEATURE,
        }
    }

    fn constant(&self) -> f64 {
        if self.learner.bias { CONSTANT } else { 0.0 }
    }

    fn log_prior(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.priors).filter_map(|(x, prior)| prior.map(|prior| log_normal(*x, prior).0)).sum()
    }

    fn evidence(&self, kernel: &Kernel, hyper: Hyper) -> Result<Option<Evidence>> {
        match &self.centres {
            Some(centres) => fitc_kernel::evidence(self.rows, centres.view(), kernel, hyper, self.constant()),
            None => Ok(evidence::evidence(self.rows, kernel, hyper, self.constant(), self.parameters > 0)),
        }
    }

    fn ascend(&self, start: &[f64], steps: &mut Steps) -> Result<Option<Maximum>> {
        let limits = Limits {
            evaluations: self.evaluations,
            tolerance: TOLERANCE * self.rows.count * self.rows.t.ncols() as f64,
            patience: self.patience,
            step: STEP,
        };
        let interrupt = self.learner.interrupt;
        let (mut best, mut evaluations): (Option<Maximum>, usize) = (None, 0);
        lbfgs::maximise_with(start, &self.bounds, limits, steps, |x| {
            if interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            // After the deadline no point has a value, which ends the maximisation.
            if best.is_some() && interrupt.is_late() {
                return Ok(None);
            }
            evaluations += 1;
            let (own, mut hyper) = self.at(x);
            let Some(evidence) = self.evidence(&own, hyper)? else { return Ok(None) };
            let mut slope = vec![evidence.by_amplitude];
            slope.extend(self.learned.gradient(&evidence.by_parameters));
            slope.extend(self.learner.known_noise.is_none().then_some(evidence.by_noise));
            for ((slope, x), prior) in slope.iter_mut().zip(x).zip(&self.priors) {
                *slope += prior.map_or(0.0, |prior| log_normal(*x, prior).1);
            }
            let log_posterior = evidence.value + self.log_prior(x);
            if best.as_ref().is_none_or(|best| log_posterior > best.log_posterior) {
                let log_evidence = evidence.value;
                let (x, per_feature) = (x.to_vec(), self.per_feature);
                let kernel;
                (kernel, hyper.log_amplitude) = self.learned.shares(own, hyper.log_amplitude);
                best = Some(Maximum { kernel, hyper, x, log_evidence, log_posterior, per_feature, evaluations: 0 });
            }
            Ok(Some((log_posterior, slope)))
        })?;
        Ok(best.map(|best| Maximum { evaluations, ..best }))
    }

    /// Returns the log posterior; minus infinity if the covariance has no Cholesky factor.
    fn value(&self, x: &[f64]) -> f64 {
        let (kernel, hyper) = self.at(x);
        let value = evidence::log_evidence(self.rows, &kernel, hyper, self.constant());
        value.map_or(f64::NEG_INFINITY, |value| value + self.log_prior(x))
    }

    /// Returns the best trial point: `x` with another width of one feature, or with another common width. The gradient
    /// does not lead to fine structure, which has no effect at widths in between.
    fn best_trial(&self, x: &[f64]) -> Result<Option<Vec<f64>>> {
        // With more features than rows, one feature always gains by chance.
        if self.gammas > self.rows.len() {
            return Ok(None);
        }
        let mut best = (self.value(x) + LEAST_GAIN, None);
        for k in 1..=self.gammas {
            for gamma in TRIAL_GAMMAS.into_iter().filter(|gamma| gamma.ln() > x[k]) {
                if self.learner.interrupt.is_late() {
                    return Ok(None);
                }
                let mut there = x.to_vec();
                there[k] = gamma.ln();
                let value = self.value(&there);
                if value > best.0 {
                    best = (value, Some(there));
                }
            }
        }
        Ok(best.1)
    }
}
