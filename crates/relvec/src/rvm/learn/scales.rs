//! Kernels learnt from the data: their parameters by the gradient of the log evidence with one precision shared by
//! all weights, (M36), and which kernel by the evidence of fits.

use std::time::Instant;

use ndarray::{Array1, Array2, Axis, s};

use crate::design::name_largest;
use crate::error::{Error, Result};
use crate::kernel::{Form, Gamma, GammaRule, Kernel};
use crate::linalg;
use crate::memory::afford;
use crate::model::{Model, PosteriorRule};
use crate::report::{KernelSearch, KernelTrial, silent};
use crate::rvm::data::table::{Learnt, Table};
use crate::rvm::evidence::lbfgs::{self, Limits};
use crate::rvm::learn::choice::{self, Choice};
use crate::rvm::learn::frame::Moments;
use crate::rvm::learn::shared::{Columns, Sample};
use crate::rvm::search::watch::{Fit, Watch};
use crate::rvm::settings::dictionary::{Dictionary, Landmarks};
use crate::rvm::settings::inference::Inference;
use crate::rvm::settings::rules::WeightPrior;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Start;

/// Rows that gradients are taken from at first.
const ROWS: usize = 5000;
/// Kernels in the dictionary, first few to come near, then more: few kernels prefer widths that suit few.
const FEW: usize = 300;
const MANY: usize = 800;
/// Calls of the evidence with each dictionary; and it ends when as many calls have gained less, per row, than this.
const EVALUATIONS: usize = 30;
/// A second start with many kernels is given up after so many calls if it is still the lower.
const SECOND_EVALUATIONS: usize = 12;
const PATIENCE: usize = 5;
const TOLERANCE: f64 = 1e-4;
/// Widths tried at first are powers of 2 times one from the spread of the data; the search for the best of them ends
/// after so many worse ones either way, or here.
const WORSE: usize = 3;
const NARROWEST: i32 = 16;
const WIDEST: i32 = -10;
/// How far log gamma may go from there, down and up: next to no effect of a feature, and kernels no narrower than a
/// twentieth. Other parameters either way.
const GAMMA_RANGE: (f64, f64) = (-14.0, 6.0);
const OTHER_RANGE: f64 = 6.0;
/// The precision to start from where the best single width explains so little that its own would hold all weights, and
/// so all gradients, at zero.
const FIRST_PRECISION: f64 = 0.1;
/// A second start, from kernels wider by this in log gamma.
const WIDER: f64 = 1.5;
/// Where the gradient has led, features one by one are given these gammas (of rows of unit variance), if that is so
/// many times their own, and the best that helps is a new start; so often. That is tried on few rows.
const LEAP_GAMMAS: [f64; 2] = [0.7, 6.0];
const LEAST_LEAP: f64 = 4.0;
const LEAPS: usize = 8;
const LEAP_ROWS: usize = 1000;
const LEAP_LANDMARKS: usize = 150;
/// Where a dense process has switched a feature off there is no gradient left: no gamma of it (of features of unit variance) is
/// below this in a start; and the start is the best of these factors on all of its gammas.
const LEAST_PROCESS_GAMMA: f64 = 1e-4;
const PROCESS_FACTORS: [f64; 3] = [1.0, 2.0, 4.0];
/// With many kernels one start has no gamma below this share of the largest.
const LIFTED: f64 = 0.05;
/// Features with less than this share of the largest gamma are tried without, which is this share.
const IDLE: f64 = 0.1;
const NEXT_TO_NONE: f64 = 1e-5;
/// Few kernels on few rows prefer wider ones than all: all gammas times one of these, by the evidence of fits. The last
/// are for tables of which the gradients saw a part: of few rows kernels so narrow may end in a fit without noise.
const FACTORS: [f64; 8] = [1.0 / 3.0, 1.0 / 1.7, 1.0, 1.7, 3.0, 5.0, 9.0, 15.0];
const UNCHANGED: usize = 2;
const OF_A_PART: usize = 2;
/// Where other gammas are better so, those rows were too few to tell: from the best fit the gradient is followed again,
/// on so many rows in all of its targets, a quarter where the curvature is not constant; with so many kernels, and calls.
const MORE_ROWS: usize = 40_000;
const MOVING_SHARE: usize = 4;
const MORE_LANDMARKS: usize = 500;
const MORE_EVALUATIONS: usize = 12;
/// Rows and landmarks of such fits at most.
const TRIAL_ROWS: usize = 1 << 16;
const TRIAL_LANDMARKS: usize = 500;
/// What a feature that is the same everywhere may deviate by, in its own size, without any effect.
const DEAD: f64 = 1e-14;

/// The kernel of a fit, every parameter a number.
pub(crate) struct Settled {
    pub kernel: Kernel,
    /// How it was found, if it was learnt.
    pub search: Option<KernelSearch>,
    /// The dense process that it was learnt from, if it was.
    pub learnt: Option<Learnt>,
}

/// The kernel of highest evidence, and how it was found. `start`: when the fit began; `fit`: a trial.
pub(crate) fn choose(rvm: &Rvm, table: &Table, start: Instant, fit: Fit) -> Result<Settled> {
    let begin = Instant::now();
    let processes = choice::by_process(rvm, table)?;
    if let Some(Choice { mut learnt, search }) = processes.clone()
        && (table.rows.nrows() <= choice::MOST_ROWS || rvm.has_process(table)?)
    {
        let learnt = learnt.swap_remove(search.chosen);
        return Ok(Settled { kernel: learnt.for_search.clone(), search: Some(search), learnt: Some(learnt) });
    }
    let search = Search::of(rvm, table, start, ROWS, MANY, fit)?;
    let (mut tried, mut best): (Vec<KernelTrial>, Option<(Kernel, usize)>) = (vec![], None);
    for (k, kernel) in rvm.to_try().iter().enumerate() {
        let process = processes.as_ref().and_then(|choice| choice.learnt.get(k));
        let (kernel, trial) = search.learn(kernel, process)?;
        let before = best.as_ref().map_or(f64::NEG_INFINITY, |(_, k)| tried[*k].log_evidence);
        if best.is_none() || trial.log_evidence > before {
            best = Some((kernel, tried.len()));
        }
        tried.push(trial);
        if search.is_late() {
            break;
        }
    }
    let (kernel, chosen) = best.expect("there is a kernel to try");
    let trial_rows = search.trial_rows.as_ref().map_or(table.rows.nrows(), Vec::len);
    let (rows, landmarks, seconds) = (search.rows.len(), search.many, begin.elapsed().as_secs_f64());
    let search = KernelSearch { tried, chosen, rows, landmarks, trial_rows, seconds };
    Ok(Settled { kernel, search: Some(search), learnt: None })
}

/// What all kernels are tried on.
struct Search<'a> {
    rvm: &'a Rvm,
    table: &'a Table<'a>,
    start: Instant,
    /// Rows of the table that gradients are taken from, and landmarks among them.
    rows: Vec<usize>,
    few: usize,
    many: usize,
    /// Rows of the table for trial fits; `None`: all.
    trial_rows: Option<Vec<usize>>,
    moments: Moments,
    fit: Fit<'a>,
}

/// The rows and landmarks as one kernel sees them: features in units of about their spread, powers of 2.
struct Scene<'a> {
    sample: Sample<'a>,
    /// All landmarks, [m, D], the few first.
    landmarks: Array2<f64>,
    /// `[D]`.
    units: Array1<f64>,
    /// The power of a unit in gamma.
    power: i32,
    /// Features that are the same on every row and so have no effect: gamma is of no consequence.
    dead: Vec<bool>,
    /// The kernel with a first gamma, in these units.
    first: Kernel,
    moments: &'a Moments,
}

/// A kernel in the units of a scene, and the logs of the shared precision and the evidence.
#[derive(Debug, Clone)]
struct Found {
    kernel: Kernel,
    log_a: f64,
    log_evidence: f64,
}

/// What gradients of so many rows and columns take: columns, their products with the covariance, and some Gram matrices.
fn bytes(table: &Table, rows: usize, columns: usize) -> u64 {
    let grams = 5 + Sample::targets(table);
    8 * (3 * rows * (columns + table.rows.ncols()) + grams * columns * columns) as u64
}

/// A fit by which kernels are compared.
#[derive(Debug, Clone)]
struct Trial {
    kernel: Kernel,
    log_evidence: f64,
    vectors: usize,
}

/// How the gradient is followed: all gammas together or not, with how many landmarks.
#[derive(Debug, Clone, Copy)]
struct Climb {
    together: bool,
    landmarks: usize,
    /// Calls of the evidence at most.
    most: usize,
}

impl<'a> Search<'a> {
    /// With gradients from so many rows and landmarks, if there are and memory allows.
    fn of(rvm: &'a Rvm, table: &'a Table<'a>, start: Instant, rows: usize, landmarks: usize, fit: Fit<'a>) -> Result<Search<'a>> {
        let n = table.rows.nrows();
        // As many rows and landmarks as fit.
        let bytes = |rows: usize, columns: usize| bytes(table, rows, columns);
        let (mut size, mut many) = (rows.min(n), landmarks.min(n));
        while table.taken + bytes(size, many) > table.memory_limit && many > 50 {
            (size, many) = ((size / 2).max(many), many / 2);
        }
        afford("the rows and columns that the kernel is learnt from", table.taken + bytes(size, many), table.memory_limit)?;
        let rows = Landmarks::any(n, size, rvm.seed);
        let trial_rows = (n > TRIAL_ROWS).then(|| Landmarks::any(n, TRIAL_ROWS, rvm.seed));
        Ok(Search { rvm, table, start, rows, few: FEW.min(many), many, trial_rows, moments: Moments::of(table), fit })
    }

    fn is_late(&self) -> bool {
        self.rvm.time_limit.is_some_and(|limit| self.start.elapsed().as_secs_f64() >= limit)
    }

    /// One kernel with its parameters learnt, if it asks for that, and its trial.
    ///
    /// `process`: what a dense process has made of some rows, to begin from as well.
    fn learn(&self, kernel: &Kernel, process: Option<&Learnt>) -> Result<(Kernel, KernelTrial)> {
        let only = |fit: Trial| {
            let (name, degree) = (kernel.name(), kernel.degree());
            let trial = KernelTrial::new(name, degree, fit.kernel.parameters(), fit.log_evidence, Some(fit.vectors));
            (fit.kernel, trial)
        };
        let Some(rule) = kernel.learnt_rule() else {
            return Ok(only(self.trial(kernel.resolve(&self.table.data_scale())?)?));
        };
        let rule = match (rule, process) {
            (GammaRule::Evidence, Some(learnt)) if !learnt.per_feature => GammaRule::EvidenceOne,
            (GammaRule::Evidence, _) => GammaRule::EvidenceArd,
            (rule, _) => rule,
        };
        let scene = self.scene(kernel)?;
        if self.table.repairs.constant_target {
            return Ok(only(self.trial(scene.outside(&scene.first)?)?));
        }
        let mut evaluations = 0;
        let width = self.width(&scene, &mut evaluations)?;
        let (begin, end) = self.climb(&scene, &width, process, rule, &mut evaluations)?;
        let (count, constant) = self.table.count_of(&self.rows);
        let outside = |inner: f64| self.table.log_evidence_out(inner + constant, count);
        let shared_log_evidence = Some([outside(begin), outside(end.log_evidence)]);
        let learnt = scene.outside(&end.kernel)?;
        if self.is_late() {
            // There is no time to compare it.
            let (kernel, trial) = only(self.trial(learnt)?);
            return Ok((kernel, KernelTrial { shared_log_evidence, evaluations, ..trial }));
        }
        // What the gradient finds on some rows, with a shared precision, has to hold in fits: the best single width is kept
        // unless another fit is better.
        let mut best = self.trial(scene.outside(&width.kernel)?)?;
        let start_log_evidence = Some(best.log_evidence);
        let mut factor = self.multiplied(&learnt, &mut best)?.unwrap_or(1.0);
        let mut more_rows = None;
        if rule == GammaRule::EvidenceArd
            && factor != 1.0
            && let Some((rows, learnt)) = self.again(kernel, &best.kernel, end.log_a, &mut evaluations)?
        {
            more_rows = Some(rows);
            factor = self.multiplied(&learnt, &mut best)?.unwrap_or(factor);
        }
        let (kernel, trial) = only(best);
        Ok((kernel, KernelTrial { start_log_evidence, shared_log_evidence, evaluations, more_rows, factor, ..trial }))
    }

    /// Fits by what was `learnt`, all gammas times one factor after the other while that is better: the one of the
    /// best fit, if it is better than `best`, which it then is.
    fn multiplied(&self, learnt: &Kernel, best: &mut Trial) -> Result<Option<f64>> {
        let (mut highest, mut factor) = (f64::NEG_INFINITY, None);
        let beyond = if self.rows.len() < self.table.rows.nrows() { 0 } else { OF_A_PART };
        let mut attempt = |k: usize| -> Result<bool> {
            if k >= FACTORS.len() - beyond || self.is_late() && highest > f64::NEG_INFINITY {
                return Ok(false);
            }
            let fit = self.trial(learnt.times_gamma(FACTORS[k]))?;
            let higher = fit.log_evidence > highest;
            highest = highest.max(fit.log_evidence);
            if best.replace_if_higher(fit) {
                factor = Some(FACTORS[k]);
            }
            Ok(higher)
        };
        attempt(UNCHANGED)?;
        // Other kernels know no width.
        if learnt.is_local() {
            let mut k = UNCHANGED + 1;
            while attempt(k)? {
                k += 1;
            }
            let mut k = if k == UNCHANGED + 1 { UNCHANGED } else { 0 };
            while k > 0 && attempt(k - 1)? {
                k -= 1;
            }
        }
        Ok(factor)
    }

    /// Further up the gradient from `best` on more rows: on how many, and where it led. `None` if there are no more, or no
    /// memory or time for them.
    fn again(&self, kernel: &Kernel, best: &Kernel, log_a: f64, evaluations: &mut usize) -> Result<Option<(usize, Kernel)>> {
        let constant = self.rvm.likelihood.as_dyn().constant_curvature();
        let mut size = MORE_ROWS / Sample::targets(self.table) / if constant { 1 } else { MOVING_SHARE };
        size = size.min(self.table.rows.nrows());
        while self.table.taken + bytes(self.table, size, MORE_LANDMARKS) > self.table.memory_limit && size > self.rows.len() {
            size /= 2;
        }
        if size <= self.rows.len() || self.is_late() {
            return Ok(None);
        }
        let search = Search::of(self.rvm, self.table, self.start, size, MORE_LANDMARKS, self.fit)?;
        let scene = search.scene(kernel)?;
        let Some(begin) = scene.shared(&scene.inside(best), search.many, log_a, evaluations)? else { return Ok(None) };
        let climb = Climb { together: false, landmarks: search.many, most: MORE_EVALUATIONS };
        let end = scene.ascend(&begin, &begin.kernel, climb, evaluations)?;
        Ok(Some((search.rows.len(), scene.outside(&end.kernel)?)))
    }

    /// A fit to all rows, or many, with few landmarks.
    fn trial(&self, kernel: Kernel) -> Result<Trial> {
        let own = match &self.rvm.inference {
            Inference::Search(own) => own.clone(),
            _ => crate::rvm::settings::search::Search::default(),
        };
        // Of many rows, kernels differ by more than excursions find.
        let excursions = if self.table.rows.nrows() > ROWS { 0 } else { own.excursions };
        // Kernels of several classes are told apart by models that grow, which are soon there.
        let start = if self.table.outputs > 1 { Start::Empty } else { Start::Auto };
        let inference = crate::rvm::settings::search::Search { start, excursions, ..own };
        let dictionary = match self.rvm.dictionary {
            Dictionary::Size(size) => size.min(TRIAL_LANDMARKS),
            Dictionary::Rule(_) => TRIAL_LANDMARKS,
        };
        let rvm = Rvm {
            kernel: kernel.clone(),
            kernels: vec![],
            dictionary: Dictionary::Size(dictionary),
            refresh: 0,
            inference: Inference::Search(inference),
            // The evidence is the same.
            posterior: PosteriorRule::Laplace,
            weight_prior: WeightPrior::Ard,
            // Held against kernels it would choose wide ones, of which few are needed.
            sparsity: 0.0.into(),
            ..self.rvm.clone()
        };
        let table = self.table.with(&rvm, &kernel, self.trial_rows.as_deref());
        let (model, _) = (self.fit)(&rvm, &table, &mut Watch::of(&rvm, &mut silent, &table.interrupt, self.start))?;
        Ok(Trial { log_evidence: model.log_evidence.unwrap_or(f64::NEG_INFINITY), vectors: model.relevance.len(), kernel })
    }

    /// The rows as `kernel` sees them, and its first gamma.
    fn scene(&self, kernel: &Kernel) -> Result<Scene<'_>> {
        let (table, moments) = (self.table, &self.moments);
        let products = matches!(kernel.form(), Form::Products(_));
        let spread = if products { &moments.size } else { &moments.deviation };
        let dead: Vec<bool> = spread.iter().map(|s| *s == 0.0).collect();
        let live = dead.iter().filter(|dead| !**dead).count().max(1) as f64;
        let power = if matches!(kernel.form(), Form::Absolutes(_)) { 1 } else { 2 };
        let unit = |s: f64| if s > 0.0 { 2f64.powi(s.log2().round() as i32) } else { 1.0 };
        let units: Array1<f64> = spread.iter().map(|s| unit(*s)).collect();
        let gamma = |s: f64| if s > 0.0 { (unit(s) / s).powi(power) / live } else { 1.0 / live };
        let gamma = match spread[..] {
            [s] => Gamma::Value(gamma(s)),
            _ => Gamma::PerFeature(spread.iter().map(|s| gamma(*s)).collect()),
        };
        if !units.iter().all(|u| u.is_normal() && u.powi(power).is_normal()) {
            let error = Error::Overflow { what: "gamma for features of that spread, or its inverse,".into() };
            return Err(name_largest(error, self.table.rows.view()));
        }
        let inside = |x: Array2<f64>| {
            let mut x = x;
            for (d, mut column) in x.columns_mut().into_iter().enumerate() {
                let middle = if products { 0.0 } else { moments.mean[d] };
                column.mapv_inplace(|v| if dead[d] { 0.0 } else { (v - middle) / units[d] });
            }
            x
        };
        let sample = Sample::of(table, &self.rows, inside(table.rows.select(Axis(0), &self.rows)));
        // Equal rows are neighbours.
        let rows = sample.x.view();
        let distinct: Vec<usize> = (0..rows.nrows()).filter(|n| *n == 0 || rows.row(*n) != rows.row(n - 1)).collect();
        let mut chosen = Landmarks::any(distinct.len(), self.many, self.rvm.seed.wrapping_add(1));
        // The few are spread among the many.
        let few = Landmarks::any(chosen.len(), self.few, self.rvm.seed.wrapping_add(2));
        let rest: Vec<usize> = (0..chosen.len()).filter(|k| few.binary_search(k).is_err()).collect();
        chosen = few.iter().chain(&rest).map(|k| distinct[chosen[*k]]).collect();
        let landmarks = rows.select(Axis(0), &chosen);
        let first = kernel.with_gamma(gamma);
        first.check()?;
        Ok(Scene { sample, landmarks, units, power, dead, first, moments })
    }

    /// The best single width, of powers of 2.
    fn width(&self, scene: &Scene, evaluations: &mut usize) -> Result<Found> {
        let mut best: Option<Found> = None;
        for ways in [(0..=NARROWEST).collect::<Vec<i32>>(), (WIDEST..0).rev().collect()] {
            let (mut worse, mut log_a) = (0, FIRST_PRECISION.ln());
            for k in ways {
                let kernel = scene.first.times_gamma(2f64.powi(k));
                let found = match &best {
                    // There has to be one.
                    None => scene.shared_at_last(&kernel, self.few, log_a, evaluations)?,
                    Some(_) => scene.shared(&kernel, self.few, log_a, evaluations)?,
                };
                worse += 1;
                if let Some(found) = found {
                    log_a = found.log_a;
                    if best.as_ref().is_none_or(|best| found.log_evidence > best.log_evidence) {
                        (best, worse) = (Some(found), 0);
                    }
                }
                if worse >= WORSE || self.is_late() {
                    break;
                }
            }
        }
        let best = best.ok_or(Error::Singular { columns: self.few, jitter: linalg::MAX_JITTER })?;
        let climb = Climb { together: true, landmarks: self.few, most: EVALUATIONS };
        scene.ascend(&best, &best.kernel, climb, evaluations)
    }

    /// From the best single width up the gradient. Returns the log evidence at that width and what was found, both
    /// with all landmarks.
    fn climb(
        &self,
        scene: &Scene,
        width: &Found,
        process: Option<&Learnt>,
        rule: GammaRule,
        evaluations: &mut usize,
    ) -> Result<(f64, Found)> {
        let ard = rule == GammaRule::EvidenceArd;
        let ascend_by = |start: &Found, landmarks: usize, most: usize, evaluations: &mut usize| {
            let climb = Climb { together: !ard, landmarks, most };
            scene.ascend(start, &width.kernel, climb, evaluations)
        };
        let ascend =
            |start: &Found, landmarks: usize, evaluations: &mut usize| ascend_by(start, landmarks, EVALUATIONS, evaluations);
        let mut best = width.clone();
        if ard {
            let low = FIRST_PRECISION.ln();
            let mut starts =
                vec![width.clone(), Found { log_a: low, kernel: width.kernel.times_gamma((-WIDER).exp()), ..*width }];
            starts.extend((width.log_a > low).then(|| Found { log_a: low, ..width.clone() }));
            if let Some(learnt) = process {
                starts.extend(self.of_process(scene, learnt, width.log_a, evaluations)?);
            }
            for start in starts {
                let found = ascend(&start, self.few, evaluations)?;
                if found.log_evidence > best.log_evidence {
                    best = found;
                }
            }
            for _ in 0..LEAPS {
                let Some(leap) = self.leap(scene, &best, evaluations)? else { break };
                let found = ascend(&leap, self.few, evaluations)?;
                if found.log_evidence <= best.log_evidence + TOLERANCE * scene.sample.count {
                    break;
                }
                best = found;
            }
        }
        let idle = |found: Found, evaluations: &mut usize| match ard {
            true => self.without_idle(scene, found, evaluations),
            false => Ok(found),
        };
        if scene.landmarks.nrows() <= self.few || self.is_late() {
            return Ok((width.log_evidence, idle(best, evaluations)?));
        }
        let begin = scene.shared(&width.kernel, self.many, width.log_a, evaluations)?;
        let mut end = ascend(&best, self.many, evaluations)?;
        // A feature that few kernels could not make use of has next to no gradient left.
        if let (true, Some(Gamma::PerFeature(gammas))) = (ard, best.kernel.gamma()) {
            let least = LIFTED * gammas.iter().copied().fold(0.0, f64::max);
            let lifted: Vec<f64> = gammas.iter().map(|gamma| gamma.max(least)).collect();
            if lifted != *gammas {
                let start = Found { kernel: best.kernel.with_gamma(lifted.into()), ..best.clone() };
                let found = ascend_by(&start, self.many, SECOND_EVALUATIONS, evaluations)?;
                if found.log_evidence > end.log_evidence {
                    end = ascend_by(&found, self.many, EVALUATIONS - SECOND_EVALUATIONS, evaluations)?;
                }
            }
        }
        let end = idle(end, evaluations)?;
        match begin {
            Some(begin) if begin.log_evidence > end.log_evidence => Ok((begin.log_evidence, begin)),
            begin => Ok((begin.map_or(f64::NAN, |b| b.log_evidence), end)),
        }
    }

    /// The kernel of a dense process, its features of no use given some of their own, and all gammas times the best of some
    /// factors: a process on few rows wants wider kernels than many rows do.
    fn of_process(&self, scene: &Scene, learnt: &Learnt, log_a: f64, evaluations: &mut usize) -> Result<Option<Found>> {
        let kernel = scene.inside(&learnt.kernel);
        let Some(Gamma::PerFeature(gammas)) = kernel.gamma() else { return Ok(None) };
        let kernel = kernel.with_gamma(gammas.iter().map(|gamma| gamma.max(LEAST_PROCESS_GAMMA)).collect::<Vec<f64>>().into());
        let mut best: Option<Found> = None;
        for factor in PROCESS_FACTORS {
            let Some(found) = scene.shared(&kernel.times_gamma(factor), self.few, log_a, evaluations)? else { break };
            if best.as_ref().is_none_or(|best| found.log_evidence > best.log_evidence) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// The same with next to no gamma for features that gain less than a parameter costs, half a log N nats: the
    /// gradient hardly tells little from nothing.
    fn without_idle(&self, scene: &Scene, found: Found, evaluations: &mut usize) -> Result<Found> {
        let Some(Gamma::PerFeature(gammas)) = found.kernel.gamma() else { return Ok(found) };
        let largest = gammas.iter().copied().fold(0.0, f64::max);
        let mut small: Vec<usize> = (0..gammas.len()).filter(|d| !scene.dead[*d] && gammas[*d] < IDLE * largest).collect();
        small.sort_by(|d, e| gammas[*d].total_cmp(&gammas[*e]));
        // Of all rows, as far as the sample is a part of them.
        let cost = 0.5 * self.table.count.max(2.0).ln() * (scene.sample.count / self.table.count).min(1.0);
        let mut best = found.clone();
        let mut without = |features: &[usize], best: &mut Found| -> Result<bool> {
            let Some(Gamma::PerFeature(mut gammas)) = best.kernel.gamma().cloned() else { return Ok(false) };
            features.iter().for_each(|d| gammas[*d] = gammas[*d].min(NEXT_TO_NONE * largest));
            let there = scene.shared(&best.kernel.with_gamma(gammas.into()), self.many, best.log_a, evaluations)?;
            let there = there.filter(|there| there.log_evidence >= best.log_evidence - cost * features.len() as f64);
            Ok(there.map(|there| *best = there).is_some())
        };
        // Mostly all of them go at once.
        if !small.is_empty() && !without(&small, &mut best)? {
            for d in &small {
                if self.is_late() {
                    break;
                }
                without(&[*d], &mut best)?;
            }
        }
        Ok(best)
    }

    /// A kernel like `found` but for one feature, which is given a width at which it might matter: a feature of fine
    /// structure shows nothing at widths in between, so that no gradient leads there. `None` if none helps.
    fn leap(&self, scene: &Scene, found: &Found, evaluations: &mut usize) -> Result<Option<Found>> {
        let Some(Gamma::PerFeature(gammas)) = found.kernel.gamma() else { return Ok(None) };
        // A few rows will do.
        let rows = Landmarks::any(scene.sample.x.nrows(), LEAP_ROWS, self.rvm.seed.wrapping_add(3));
        let of_table: Vec<usize> = rows.iter().map(|n| self.rows[*n]).collect();
        let small = Scene {
            sample: Sample::of(self.table, &of_table, scene.sample.x.select(Axis(0), &rows)),
            landmarks: scene.landmarks.slice(s![..LEAP_LANDMARKS.min(self.few).min(scene.landmarks.nrows()), ..]).to_owned(),
            units: scene.units.clone(),
            dead: scene.dead.clone(),
            first: scene.first.clone(),
            ..*scene
        };
        let shared = |kernel: &Kernel, evaluations: &mut usize| small.shared(kernel, LEAP_LANDMARKS, found.log_a, evaluations);
        let Some(now) = shared(&found.kernel, evaluations)? else { return Ok(None) };
        let mut best: Option<Found> = None;
        for (d, gamma) in gammas.iter().enumerate().filter(|(d, _)| !scene.dead[*d]) {
            for width in LEAP_GAMMAS.into_iter().filter(|width| *width > LEAST_LEAP * gamma) {
                if self.is_late() {
                    return Ok(None);
                }
                let mut gammas = gammas.clone();
                gammas[d] = width;
                let Some(there) = shared(&found.kernel.with_gamma(gammas.into()), evaluations)? else { continue };
                if there.log_evidence > best.as_ref().map_or(now.log_evidence, |best| best.log_evidence) {
                    best = Some(there);
                }
            }
        }
        Ok(best)
    }
}

impl Trial {
    /// Whether `other` is the better fit, which it then is.
    fn replace_if_higher(&mut self, other: Trial) -> bool {
        let higher = other.log_evidence > self.log_evidence;
        if higher {
            *self = other;
        }
        higher
    }
}

impl Scene<'_> {
    /// The best shared precision of a kernel, near `log_a`; nothing once the time is up.
    fn shared(&self, kernel: &Kernel, landmarks: usize, log_a: f64, evaluations: &mut usize) -> Result<Option<Found>> {
        Ok(self.sample.interrupt.in_time(|| self.shared_at_last(kernel, landmarks, log_a, evaluations))?.flatten())
    }

    /// The same however long it takes.
    fn shared_at_last(&self, kernel: &Kernel, landmarks: usize, log_a: f64, evaluations: &mut usize) -> Result<Option<Found>> {
        let centres = self.landmarks.slice(s![..landmarks.min(self.landmarks.nrows()), ..]);
        let Some(columns) = Columns::new(&self.sample, kernel, centres)? else { return Ok(None) };
        let peak = columns.shared(log_a, 0.1 * TOLERANCE * self.sample.count)?;
        *evaluations += 1;
        Ok(peak.map(|peak| Found { kernel: kernel.clone(), log_a: peak.x[0], log_evidence: peak.value }))
    }

    /// Up the gradient in the logs of the shared precision and of the kernel's parameters, within bounds about those
    /// of `middle`.
    fn ascend(&self, start: &Found, middle: &Kernel, climb: Climb, evaluations: &mut usize) -> Result<Found> {
        let centres = self.landmarks.slice(s![..climb.landmarks.min(self.landmarks.nrows()), ..]);
        let logs = |kernel: &Kernel| kernel.parameters().into_iter().map(|(_, v)| v.ln()).collect::<Vec<f64>>();
        let gammas = start.kernel.gamma().map_or(0, |gamma| gamma.parameters().len());
        // Variables: log a; log of each gamma, or of what all are multiplied by; logs of the others.
        let own = logs(&start.kernel);
        let tied = climb.together && gammas > 1;
        let kernel_at = |x: &[f64]| {
            let logs: Vec<f64> = match tied {
                true => own[..gammas].iter().map(|v| v + x[1]).chain(x[2..].iter().copied()).collect(),
                false => x[1..].to_vec(),
            };
            start.kernel.with_parameters(&logs.into_iter().map(f64::exp).collect::<Vec<_>>())
        };
        let interrupt = &self.sample.interrupt;
        let columns = interrupt.in_time(|| Columns::new(&self.sample, &start.kernel, centres))?.flatten();
        let range = columns.map_or((-20.0, 10.0), |columns| columns.range());
        let mut from = vec![start.log_a];
        let mut bounds = vec![range];
        for (k, (own, v)) in own.iter().zip(logs(middle)).enumerate().skip(if tied { gammas } else { 0 }) {
            from.push(*own);
            bounds.push(match (k < gammas, self.dead.get(k)) {
                (true, Some(true)) if gammas > 1 => (*own, *own),
                (true, _) => (v + GAMMA_RANGE.0, v + GAMMA_RANGE.1),
                (false, _) => (v - OTHER_RANGE, v + OTHER_RANGE),
            });
        }
        if tied {
            from.insert(1, 0.0);
            bounds.insert(1, GAMMA_RANGE);
        }
        let limits = Limits { evaluations: climb.most, tolerance: TOLERANCE * self.sample.count, patience: PATIENCE, step: 2.0 };
        let (first, mut near) = (self.sample.first(), None);
        let peak = lbfgs::maximise(&from, &bounds, limits, |x| {
            // Once the time is up no step succeeds, which ends it.
            let point = interrupt.in_time(|| {
                let kernel = kernel_at(x);
                let Some(columns) = Columns::new(&self.sample, &kernel, centres)? else { return Ok(None) };
                let Some(posterior) = columns.at(&columns.precisions(x[0]), near.as_ref())? else { return Ok(None) };
                let gradient = columns.gradient(&posterior)?;
                let mut slope = vec![gradient.log_a[first..].iter().sum()];
                let (of_gammas, others) = gradient.log_parameters.split_at(gammas);
                if tied {
                    slope.push(of_gammas.iter().sum());
                } else {
                    slope.extend(of_gammas);
                }
                slope.extend(others);
                let value = posterior.log_evidence;
                near = Some(posterior.weights());
                Ok(Some((value, slope)))
            });
            Ok(point?.flatten())
        })?;
        Ok(peak.map_or_else(
            || start.clone(),
            |peak| {
                *evaluations += peak.evaluations;
                Found { kernel: kernel_at(&peak.x), log_a: peak.x[0], log_evidence: peak.value }
            },
        ))
    }

    /// A kernel with a gamma for each feature, in the units of the table, as it is in those of the scene.
    fn inside(&self, kernel: &Kernel) -> Kernel {
        let Some(Gamma::PerFeature(gammas)) = kernel.gamma() else { return kernel.clone() };
        let inside = |(gamma, unit): (&f64, &f64)| gamma * unit.powi(self.power);
        kernel.with_gamma(gammas.iter().zip(&self.units).map(inside).collect::<Vec<_>>().into())
    }

    /// The kernel in the units of the table.
    fn outside(&self, kernel: &Kernel) -> Result<Kernel> {
        let out = |gamma: f64, d: usize| match self.dead[d] {
            // No unit is known but the feature's own size.
            true => DEAD / self.moments.size[d].powi(self.power).max(1.0),
            false => gamma / self.units[d].powi(self.power),
        };
        let gamma = match kernel.gamma() {
            Some(Gamma::PerFeature(gammas)) => gammas.iter().enumerate().map(|(d, g)| out(*g, d)).collect::<Vec<_>>().into(),
            Some(Gamma::Value(gamma)) => (gamma / self.units[0].powi(self.power)).into(),
            _ => return Ok(kernel.clone()),
        };
        let kernel = kernel.with_gamma(gamma);
        kernel.check()?;
        Ok(kernel)
    }
}

/// What each feature moves in the kernel of `model`, as shares of 1, `[D]`, (M37); empty unless gammas are per feature.
pub(crate) fn feature_relevance(table: &Table, model: &Model) -> Vec<f64> {
    let Some((kernel, Gamma::PerFeature(gammas))) = model.kernel().and_then(|kernel| Some((kernel, kernel.gamma()?))) else {
        return vec![];
    };
    let moments = Moments::of(table);
    let power = if matches!(kernel.form(), Form::Absolutes(_)) { 1 } else { 2 };
    let moved: Vec<f64> = gammas.iter().zip(&moments.deviation).map(|(gamma, s)| (gamma * s.powi(power)).min(f64::MAX)).collect();
    let largest = moved.iter().copied().fold(0.0, f64::max);
    let total: f64 = moved.iter().map(|v| v / largest).sum();
    moved.iter().map(|v| if largest > 0.0 { v / largest / total } else { 0.0 }).collect()
}

impl Moments {
    fn of(table: &Table) -> Moments {
        Moments::new(table.rows.view(), &table.sample_weights())
    }
}
