//! A kernel from a dense process: its parameters, amplitude and noise at the maximum of the posterior (MAP), (M67) to (M69).
//!
//! Length scales have the log-normal prior of Hvarfner et al. (2024), whose median grows with the root of the number of
//! features. Nothing is chosen by sparse fits, whose evidence is highest where they interpolate.

use ndarray::{Array2, Axis};

use super::fitc_kernel;
use super::merged_rows::DistinctRows;
use super::parameters::{AMPLITUDE, NOISE, Parameters, mean_diagonal};
use super::process_evidence::{self, Evidence};
use super::scaled_features::Frame;
use crate::error::{Error, Result};
use crate::kernel::{Form, GammaRule, Kernel};
use crate::report::Interrupt;
use crate::rvm::data::training_set::{Hyper, Learned};
use crate::rvm::evidence::lbfgs::{self, Limits, Steps};
use crate::rvm::settings::dictionary::Landmarks;

/// Calls of the evidence with one width, and with one for each feature; 80 are no better than 40 in held-out density.
pub(super) const EVALUATIONS: usize = 30;
const EVALUATIONS_PER_FEATURE: usize = 40;
/// The climb ends when two calls have gained less than this share of the objective: 1e-5 gives no better density.
pub(super) const TOLERANCE: f64 = 1e-4;
/// Or less than this many nats, which say nothing of one kernel against another.
const LEAST_TOLERANCE: f64 = 0.05;
/// Largest change of a logarithm in one step.
pub(super) const STEP: f64 = 2.0;
/// Noise to begin with, of targets of unit variance; the amplitude begins at 1.
const FIRST_NOISE: f64 = 0.1;
/// From where the gradient has led, each feature in turn is tried at these gammas if they are so many times its own, on so many
/// rows, and the best that gains as many nats as a parameter's odds is a new start; so often.
const LEAP_GAMMAS: [f64; 3] = [0.7, 6.0, 50.0];
const LEAST_LEAP: f64 = 4.0;
const LEAST_GAIN: f64 = 1.0;
const LEAP_ROWS: usize = 250;
const LEAP_SEED: u64 = 0;
const LEAPS: usize = 4;
/// One width for all features is learnt from this share of the rows first, at least so many, and one for each, where rows are
/// many, from that share: in 20 draws of 1,000 rows that takes four fifths of the time. Peaks are 1.3 nats higher in the mean,
/// but by one draw alone, which gains 37; without it they are 0.6 lower, 7 at most.
const SHARE: usize = 4;
const LEAST_SHARE: usize = 100;
const SHARE_PER_FEATURE: usize = 2;
const MANY: usize = 500;
/// The k logarithms of a share are expected to be k / 2 (rows / share - 1) nats below the peak on all rows, half of a chi-squared
/// number; so many times that are gained by three logarithms in one case of 500.
const LOST: f64 = 5.0;
/// Where features are tried one by one, gamma of the others, and the noise. Of 10 draws of 100 to 400 rows of a table with 32
/// features (a robot arm) the first start leads to noise in 2; these lead away in both.
const ALONE_GAMMA: f64 = 1e-3;
const ALONE_NOISE: f64 = 0.5;
/// Prior variance of the constant, of targets of unit variance.
const CONSTANT: f64 = 1.0;
/// Calls of the evidence with more rows, from what some rows have led to: of 12 a robot arm (32 features) and elevators lose 0.02 nats,
/// 30 gain none. A feature of no use to some rows begins at no gamma below the second number, since there is no gradient left where it
/// is switched off. All begin at so many times what some rows have led to: from narrow kernels the gradient leads to wide ones, but
/// nothing shows from wide ones what has a fine structure. By 20, three draws of 10,000 house prices gain 0.04 nats in the mean, five
/// others 0.005; by 4 nothing. By 400 two of three tables are lost. Six other tables change by less than 0.01.
const MORE_EVALUATIONS: usize = 20;
/// Calls without gain that end a climb; more where it begins near a maximum, from which the first steps are too long.
const PATIENCE: usize = 2;
const MORE_PATIENCE: usize = 5;
const LEAST_GAMMA: f64 = 1e-4;
const NARROWER: f64 = 20.0;
/// From so many rows on the priors are wide. Of fewer, wide priors find structure in pure noise.
const WIDE_FROM: f64 = 60.0;
/// Log prior odds of one width against one for each of D features: MARGIN + MARGIN_PER_FEATURE D nats, where priors are wide.
const MARGIN: f64 = 1.0;
const MARGIN_PER_FEATURE: f64 = 0.3;
/// Nats by which a process must be above a constant with noise.
pub(super) const STRUCTURE: f64 = 0.5;
/// A kernel is floored here for a sparse search: sum_d gamma_d (x_d - x'_d)^2 of two rows is at least this in the mean.
/// Columns of wider ones are next to constant, and the search would leave out all of them.
const LEAST_DISTANCE: f64 = 0.02;
/// Mean absolute difference of two normal numbers in their standard deviation, 2 / sqrt(pi).
const MEAN_DIFFERENCE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// Means and standard deviations of the logs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priors {
    length_sd: f64,
    pub noise: (f64, f64),
    pub amplitude: Option<(f64, f64)>,
    /// Log prior odds against one width for each feature.
    margin: f64,
}

impl Priors {
    pub fn new(count: f64, features: usize) -> Priors {
        if count < WIDE_FROM {
            return Priors { length_sd: 0.75, noise: (-1.0, 1.0), amplitude: Some((0.0, 1.0)), margin: 0.0 };
        }
        let margin = MARGIN + MARGIN_PER_FEATURE * features as f64;
        Priors { length_sd: 3f64.sqrt(), noise: (-2.0, 1.5), amplitude: None, margin }
    }
}

/// The log density of a normal number, up to a constant, and its derivative.
pub(super) fn log_normal(x: f64, (mean, sd): (f64, f64)) -> (f64, f64) {
    let z = (x - mean) / sd;
    (-0.5 * z * z, -z / sd)
}

/// What a kernel is learnt from.
pub(in crate::rvm) struct Lesson<'a> {
    /// Inputs in the user's units, targets of unit variance about 0.
    pub rows: &'a DistinctRows,
    /// More rows, and which of them are centres, by which the climb goes on, (M69).
    pub more: Option<(DistinctRows, Vec<usize>)>,
    /// Log of the noise variance, if it is known.
    pub known_noise: Option<f64>,
    /// Whether there is a constant.
    pub bias: bool,
    pub interrupt: &'a Interrupt,
}

/// The highest point of a climb.
#[derive(Debug, Clone)]
struct Peak {
    kernel: Kernel,
    hyper: Hyper,
    /// The logs that make up these, `[1 + parameters + 1]`.
    x: Vec<f64>,
    log_evidence: f64,
    log_posterior: f64,
    per_feature: bool,
    evaluations: usize,
}

impl Lesson<'_> {
    /// Of other rows, and no more than these.
    pub fn with_rows<'r>(&'r self, rows: &'r DistinctRows) -> Lesson<'r> {
        Lesson { rows, more: None, known_noise: self.known_noise, bias: self.bias, interrupt: self.interrupt }
    }

    /// The parameters of `kernel` that its gamma asks to be learnt (all continuous ones, or none where gamma is a number), the
    /// amplitude and the noise.
    ///
    /// # Errors
    /// Features whose gamma would be out of the range of numbers; an interrupt before there is anything.
    pub fn learn(&self, kernel: &Kernel, frame: &Frame) -> Result<Learned> {
        let rows = self.rows.with_inputs(frame.inside(self.rows.x.view()));
        let constant = process_evidence::constant_evidence(&rows);
        let rule = kernel.learnt_rule();
        let features = if rule.is_some() { frame.live.len() } else { 0 };
        let priors = Priors::new(rows.count, features);
        let several = if features > 1 && rule != Some(GammaRule::EvidenceOne) {
            let hill = Hill::new(self, &rows, kernel, frame, &priors, true);
            Some(self.climb_from_share(&hill, f64::NEG_INFINITY)?.expect("nothing is out of reach"))
        } else {
            None
        };
        let one = if several.is_none() || rule != Some(GammaRule::EvidenceArd) {
            let hill = Hill::new(self, &rows, kernel, frame, &priors, false);
            let least = several.as_ref().map_or(f64::NEG_INFINITY, |several| several.log_posterior - priors.margin);
            self.climb_from_share(&hill, least)?
        } else {
            None
        };
        let before = one.iter().chain(&several).map(|peak| peak.evaluations).sum();
        let best = match (one, several) {
            (Some(one), Some(several)) if several.log_posterior > one.log_posterior + priors.margin => several,
            (Some(one), _) => one,
            (None, several) => several.expect("there is one climb at least"),
        };
        let best = Peak { evaluations: before, ..best };
        let best = if rule.is_some() { self.go_on(kernel, frame, &priors, best)? } else { best };
        let gain = if features == 0 && rule.is_some() { f64::NEG_INFINITY } else { best.log_posterior - constant };
        Ok(Learned {
            for_search: frame.outside(&floored(&best.kernel, frame))?,
            kernel: frame.outside(&best.kernel)?,
            hyper: best.hyper,
            log_evidence: best.log_evidence,
            log_posterior: best.log_posterior,
            gain,
            has_structure: gain >= STRUCTURE,
            per_feature: best.per_feature,
            evaluations: best.evaluations,
        })
    }

    /// The peak, from where a share of the rows leads; `None` where it is out of reach of `least`.
    fn climb_from_share(&self, hill: &Hill, least: f64) -> Result<Option<Peak>> {
        let (rows, share) = (hill.rows, hill.share());
        let anew = || self.climb(hill, &hill.start, Steps::default()).map(Some);
        if share >= rows.len() {
            return anew();
        }
        let few = rows.pick(&Landmarks::any(rows.len(), share, LEAP_SEED));
        let mut steps = Steps::default();
        let first = Hill { rows: &few, ..hill.clone() }.ascend(&hill.start, &mut steps)?;
        // Where the share shows nothing all rows may.
        let Some(first) = first.filter(|first| first.log_posterior >= process_evidence::constant_evidence(&few) + STRUCTURE)
        else {
            return anew();
        };
        let (ratio, value) = (rows.len() as f64 / share as f64, hill.value(&first.x));
        // Where the share takes the noise for less than all rows need for a Cholesky factor.
        if value == f64::NEG_INFINITY {
            return anew();
        }
        if value + 0.5 * LOST * first.x.len() as f64 * (ratio - 1.0) < least {
            return Ok(None);
        }
        let found = self.climb(hill, &hill.raised(first.x), steps.times(ratio))?;
        Ok(Some(Peak { evaluations: first.evaluations + found.evaluations, ..found }))
    }

    /// From where `rows` have led, up the gradient of the log posterior of more rows under FITC, (M69): the widths are then those of
    /// many rows, which are narrower than those of some rows where no width is right. Evidence and posterior stay those of `rows`.
    fn go_on(&self, kernel: &Kernel, frame: &Frame, priors: &Priors, from: Peak) -> Result<Peak> {
        let Some((rows, centres)) = &self.more else { return Ok(from) };
        let rows = rows.with_inputs(frame.inside(rows.x.view()));
        // So many rows tell one width for each feature, even where some rows do not.
        let asked = kernel.learnt_rule().is_some_and(|rule| rule != GammaRule::EvidenceOne);
        let per_feature = from.per_feature || asked && frame.live.len() > 1;
        let hill = Hill::new(self, &rows, kernel, frame, priors, per_feature);
        let centres = Some(rows.x.select(Axis(0), centres));
        let hill = Hill { centres, evaluations: MORE_EVALUATIONS, patience: MORE_PATIENCE, ..hill };
        let mut start = from.x.clone();
        if per_feature && !from.per_feature {
            start.splice(1..2, vec![from.x[1]; hill.gammas]);
        }
        start[1..=hill.gammas].iter_mut().for_each(|log| *log = log.max(LEAST_GAMMA.ln()) + NARROWER.ln());
        let Some(found) = hill.ascend(&start, &mut Steps::default())? else { return Ok(from) };
        let evaluations = from.evaluations + found.evaluations;
        Ok(Peak { log_evidence: from.log_evidence, log_posterior: from.log_posterior, evaluations, ..found })
    }

    /// Up the gradient from a start, with the curvature that `steps` tell, and from where a leap leads while that is higher.
    fn climb(&self, hill: &Hill, start: &[f64], mut steps: Steps) -> Result<Peak> {
        let rows = hill.rows;
        let mut best = hill.ascend(start, &mut steps)?.ok_or(Error::Singular { columns: rows.len(), jitter: 0.0 })?;
        let few = rows.pick(&Landmarks::any(rows.len(), LEAP_ROWS, LEAP_SEED));
        let small = Hill { rows: &few, ..hill.clone() };
        // From all features at once the gradient may lead to where nothing is left but noise; one of them may lead away.
        if hill.per_feature
            && best.log_posterior < process_evidence::constant_evidence(rows) + STRUCTURE
            && let Some(start) = small.leap(&hill.alone())?
            && let Some(found) = hill.ascend(&start, &mut Steps::default())?
        {
            let evaluations = best.evaluations + found.evaluations;
            best = Peak { evaluations, ..if found.log_posterior > best.log_posterior { found } else { best } };
        }
        for _ in 0..LEAPS {
            let Some(start) = small.leap(&best.x)? else { break };
            let Some(found) = hill.ascend(&start, &mut Steps::default())? else { break };
            let evaluations = best.evaluations + found.evaluations;
            let higher = found.log_posterior > best.log_posterior + LEAST_GAIN;
            best = Peak { evaluations, ..if higher { found } else { best } };
            if !higher {
                break;
            }
        }
        Ok(best)
    }
}

/// The log posterior over the logs of the amplitude, the kernel's parameters and the noise.
#[derive(Clone)]
struct Hill<'a> {
    lesson: &'a Lesson<'a>,
    /// In the units of the frame.
    rows: &'a DistinctRows,
    /// Centres of FITC, [M, D]; `None` for a dense process.
    centres: Option<Array2<f64>>,
    learned: Parameters,
    start: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    priors: Vec<Option<(f64, f64)>>,
    /// Of the parameters, those that are gammas; and all.
    gammas: usize,
    parameters: usize,
    per_feature: bool,
    /// Calls of the evidence, at most, and those without gain that end it.
    evaluations: usize,
    patience: usize,
}

impl<'a> Hill<'a> {
    fn new(
        lesson: &'a Lesson<'a>,
        rows: &'a DistinctRows,
        kernel: &Kernel,
        frame: &Frame,
        priors: &Priors,
        per_feature: bool,
    ) -> Hill<'a> {
        let learned = Parameters::of(kernel, frame, rows, priors.length_sd, per_feature, priors.amplitude);
        // The amplitude is that of a kernel that is 1 where rows are equal; where the terms have theirs, it is 1.
        let size = mean_diagonal(&learned.kernel, &rows.x).max(f64::MIN_POSITIVE).ln();
        let (mut start, mut bounds) = (vec![-size], vec![(AMPLITUDE.0 - size, AMPLITUDE.1 - size)]);
        let mut all_priors = vec![priors.amplitude.map(|(mean, sd)| (mean - size, sd))];
        if learned.with_amplitude {
            (start[0], bounds[0], all_priors[0]) = (0.0, (0.0, 0.0), None);
        }
        for part in &learned.list {
            start.push(part.start);
            bounds.push(part.bounds);
            all_priors.push(part.prior);
        }
        if lesson.known_noise.is_none() {
            start.push(FIRST_NOISE.ln());
            bounds.push(NOISE);
            all_priors.push(Some(priors.noise));
        }
        let evaluations = if per_feature { EVALUATIONS_PER_FEATURE } else { EVALUATIONS };
        Hill {
            lesson,
            rows,
            centres: None,
            gammas: learned.gammas(),
            parameters: learned.list.len(),
            learned,
            start,
            bounds,
            priors: all_priors,
            per_feature,
            evaluations,
            patience: PATIENCE,
        }
    }

    /// No feature of any use, and noise of half of the targets' variance: where one feature shows what it does alone.
    fn alone(&self) -> Vec<f64> {
        let mut x = self.start.clone();
        x[1..=self.gammas].fill(ALONE_GAMMA.ln());
        if self.lesson.known_noise.is_none() {
            x[self.parameters + 1] = ALONE_NOISE.ln();
        }
        x
    }

    fn at(&self, x: &[f64]) -> (Kernel, Hyper) {
        let kernel = self.learned.at(&x[1..=self.parameters]);
        // Of known noise that is smaller than any that is learnt the matrix might have no factor.
        let log_noise = self.lesson.known_noise.map_or_else(|| x[self.parameters + 1], |known| known.max(NOISE.0));
        (kernel, Hyper { log_amplitude: x[0], log_noise })
    }

    /// Rows that are climbed first.
    fn share(&self) -> usize {
        match (self.per_feature, self.rows.len()) {
            (false, rows) => (rows / SHARE).max(LEAST_SHARE),
            (true, rows) if rows < MANY => rows,
            (true, rows) => rows / SHARE_PER_FEATURE,
        }
    }

    /// The point with no feature's gamma further below the prior's mean than a standard deviation: where a share of the rows has
    /// switched off a feature the gradient is almost 0, whatever all rows tell of it.
    fn raised(&self, mut x: Vec<f64>) -> Vec<f64> {
        for (x, prior) in x.iter_mut().zip(&self.priors).skip(1).take(self.gammas).filter(|_| self.per_feature) {
            *x = prior.map_or(*x, |(mean, sd)| x.max(mean - sd));
        }
        x
    }

    fn constant(&self) -> f64 {
        if self.lesson.bias { CONSTANT } else { 0.0 }
    }

    fn log_prior(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.priors).filter_map(|(x, prior)| prior.map(|prior| log_normal(*x, prior).0)).sum()
    }

    fn evidence(&self, kernel: &Kernel, hyper: Hyper) -> Result<Option<Evidence>> {
        match &self.centres {
            Some(centres) => fitc_kernel::evidence(self.rows, centres.view(), kernel, hyper, self.constant()),
            None => Ok(process_evidence::evidence(self.rows, kernel, hyper, self.constant(), self.parameters > 0)),
        }
    }

    fn ascend(&self, start: &[f64], steps: &mut Steps) -> Result<Option<Peak>> {
        let limits = Limits {
            evaluations: self.evaluations,
            tolerance: (TOLERANCE * self.rows.count * self.rows.t.ncols() as f64).max(LEAST_TOLERANCE),
            patience: self.patience,
            step: STEP,
        };
        let interrupt = self.lesson.interrupt;
        let (mut best, mut evaluations): (Option<Peak>, usize) = (None, 0);
        lbfgs::maximise_with(start, &self.bounds, limits, steps, |x| {
            if interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            // Once the time is up no step succeeds, which ends it.
            if best.is_some() && interrupt.is_late() {
                return Ok(None);
            }
            evaluations += 1;
            let (own, mut hyper) = self.at(x);
            let Some(evidence) = self.evidence(&own, hyper)? else { return Ok(None) };
            let mut slope = vec![evidence.by_amplitude];
            slope.extend(self.learned.slopes(&evidence.by_parameters));
            slope.extend(self.lesson.known_noise.is_none().then_some(evidence.by_noise));
            for ((slope, x), prior) in slope.iter_mut().zip(x).zip(&self.priors) {
                *slope += prior.map_or(0.0, |prior| log_normal(*x, prior).1);
            }
            let log_posterior = evidence.value + self.log_prior(x);
            if best.as_ref().is_none_or(|best| log_posterior > best.log_posterior) {
                let log_evidence = evidence.value;
                let (x, per_feature) = (x.to_vec(), self.per_feature);
                let kernel;
                (kernel, hyper.log_amplitude) = self.learned.shares(own, hyper.log_amplitude);
                best = Some(Peak { kernel, hyper, x, log_evidence, log_posterior, per_feature, evaluations: 0 });
            }
            Ok(Some((log_posterior, slope)))
        })?;
        Ok(best.map(|best| Peak { evaluations, ..best }))
    }

    /// The log posterior; minus infinity where the covariance has no Cholesky factor.
    fn value(&self, x: &[f64]) -> f64 {
        let (kernel, hyper) = self.at(x);
        let value = process_evidence::log_evidence(self.rows, &kernel, hyper, self.constant());
        value.map_or(f64::NEG_INFINITY, |value| value + self.log_prior(x))
    }

    /// A start as `x` but for one feature that is given a width at which it might matter, or, where all have one width, but for
    /// that. A function of fine structure shows nothing at widths in between, so that no gradient leads there.
    fn leap(&self, x: &[f64]) -> Result<Option<Vec<f64>>> {
        // Of more features than rows one always gains by chance.
        if self.gammas > self.rows.len() {
            return Ok(None);
        }
        let mut best = (self.value(x) + LEAST_GAIN, None);
        for k in 1..=self.gammas {
            for gamma in LEAP_GAMMAS.into_iter().filter(|gamma| gamma.ln() > x[k] + LEAST_LEAP.ln()) {
                if self.lesson.interrupt.is_late() {
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

/// A kernel in the units of the frame that is no wider than a sparse search can use.
fn floored(kernel: &Kernel, frame: &Frame) -> Kernel {
    let gamma: f64 = kernel.gamma().map_or(0.0, |gamma| (0..frame.live.len()).map(|k| gamma.at(k)).sum());
    let distance = match kernel.form() {
        _ if !kernel.is_local() || gamma == 0.0 || gamma.is_nan() => return kernel.clone(),
        Form::Absolutes(_) => MEAN_DIFFERENCE * gamma,
        _ => 2.0 * gamma,
    };
    kernel.times_gamma((LEAST_DISTANCE / distance).max(1.0))
}
