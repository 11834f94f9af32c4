//! Fits to rows in memory, or in blocks.

use std::time::Instant;

use ndarray::ArrayView2;

use crate::blocks::Blocks;
use crate::design::Basis;
use crate::error::{Result, require};
use crate::model::Model;
use crate::report::{CentreSearch, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::binary_models::{self, Classes};
use crate::rvm::compose::interpolation::judged;
use crate::rvm::compose::{cross_validation, fixed_kernel, single_fit, student_t};
use crate::rvm::data::row_blocks::FirstPass;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice::{self, Choice};
use crate::rvm::learn::learned_centres;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::rules::{CentreRule, WeightPrior};
use crate::rvm::settings::rvm::Rvm;
use crate::targets::{MultiClass, Targets, check_present};

impl Rvm {
    /// Learns from rows `x`, [N, D] (with [`Basis::Given`]: a design matrix [N, P]), and `targets`.
    ///
    /// # Errors
    /// Parameters out of range, shapes that do not fit, values that are not finite, too few rows,
    /// targets that do not suit the likelihood, too little memory. Not converging is no error: see
    /// [`Report::status`].
    pub fn fit(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits rows `x`, `[N, D]`, as [`Rvm::fit`] does, under control: `observer` is called after each iteration, on a thread of
    /// the fit's own pool, and may end the fit; a valid model results. Another thread may end it by `interrupt`, which is an
    /// error.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; and [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn fit_with(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        let Some((labels, count)) = self.several(targets)? else {
            let (model, report) = self.pool()?.install(|| run(self, x, targets, observer, interrupt))?;
            return Ok(judged((Model { class_frequencies: targets.class_frequencies(), ..model }, report), targets.unused()));
        };
        let rule = self.multi_class_rule();
        if rule == MultiClass::Joint {
            return self.joint().fit_with(x, targets, observer, interrupt);
        }
        if self.validates() {
            let reason = "cross-validation is not available where several models vote; multi_class = joint has it";
            return Err(self.no_validation(reason));
        }
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let weights = targets.checked_weights()?;
        check_present(labels, count, weights.as_deref())?;
        let expected = "fixed, or multi_class = joint: where several models vote each would move them elsewhere";
        require(self.centres == CentreRule::Fixed, || "centres".into(), "learned", expected)?;
        let start = Instant::now();
        self.refuse_process(&format!("multi_class = {}: regression on labels has one model of all classes", rule.name()))?;
        let mut own = Rvm { multi_class: rule, weight_prior: WeightPrior::Ard, ..self.clone() };
        let mut kernel_search = None;
        if self.basis == Basis::Kernel {
            // One kernel for all members, by the rows of all classes.
            let interrupt = interrupt.for_one_fit(self.deadline(start));
            let settled = self.pool()?.install(|| {
                let (joint, plain) = (own.joint(), own.joint().with_stand_in());
                kernel_choice::choose(&joint, &TrainingSet::new(&plain, x, targets, &interrupt)?)
            })?;
            (own.kernel, kernel_search) = (settled.kernel, settled.search);
            own.kernels = vec![];
        }
        let classes = Classes { x, labels, count, weights };
        let (model, report) = binary_models::fit(&own, &classes, start, observer, interrupt)?;
        let class_frequencies = targets.class_frequencies();
        Ok(judged((Model { class_frequencies, ..model }, Report { kernel_search, ..report }), targets.unused()))
    }
}

fn run(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    targets: &Targets,
    observer: &mut Observer,
    interrupt: &Interrupt,
) -> Result<(Model, Report)> {
    let start = Instant::now();
    let interrupt = interrupt.for_one_fit(rvm.deadline(start));
    if !rvm.learns_basis() {
        return fixed_kernel::fit(rvm, x, targets, observer, &interrupt, start);
    }
    let plain = rvm.with_stand_in();
    let mut training = TrainingSet::new(&plain, x, targets, &for_learning(rvm, &interrupt, start))?;
    let Choice { kernel, search: kernel_search, learned } = match rvm.likelihood.as_dyn().scale_mixture() {
        // By rows that count for what they do in a fit with the kernel that learning begins from.
        Some(mixture) if rvm.learns_kernel() && !training.repairs.constant_target => {
            let mut quiet = silent;
            let (model, _) =
                single_fit::learn(&plain, &training, None, None, &mut FitDriver::of(&plain, &mut quiet, &interrupt, start))?;
            kernel_choice::choose(rvm, &student_t::weighted(&plain, &training, mixture, &model)?)?
        }
        _ => kernel_choice::choose(rvm, &training)?,
    };
    training.interrupt = interrupt.clone();
    let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
    let training = training.with(&own, &kernel, None).with_learnt(&own, &kernel, learned.as_ref());
    let (model, report) = cross_validation::fit(&own, &training, observer, &interrupt, start)?;
    let nothing_found = report.nothing_found || !rvm.keep_statistics && learned.is_some_and(|learned| !learned.has_structure);
    let report = Report { nothing_found, ..report };
    let (model, report) = match rvm.centres {
        _ if nothing_found => (model, report),
        CentreRule::Learned if report.status != Status::Stopped => {
            let with_kernel = kernel_search.as_ref().is_some_and(|search| search.tried[search.chosen].evaluations > 0);
            with_moved_centres(&own, &training, (model, report), with_kernel, observer, &interrupt, start)?
        }
        _ => (model, report),
    };
    let (model, report) = fixed_kernel::complete(rvm, &training, x, targets, (model, report))?;
    Ok((model, Report { kernel_search, ..report }))
}

/// The share of time_limit in which a kernel is learned: without centres and weights a kernel is no model.
const LEARNING: f64 = 0.5;

/// The interrupt of a fit while its kernel is learned.
pub(super) fn for_learning(rvm: &Rvm, interrupt: &Interrupt, start: Instant) -> Interrupt {
    let share = Rvm { time_limit: rvm.time_limit.map(|limit| LEARNING * limit), ..rvm.clone() };
    interrupt.for_one_fit(share.deadline(start))
}

/// What models are compared by: the log evidence, and the log prior of the kernels.
fn objective(rvm: &Rvm, model: &Model) -> f64 {
    model.log_evidence.unwrap_or(f64::NEG_INFINITY) - rvm.nats() * model.relevance.len() as f64
}

/// The better of the fit to `training` and one whose centres the gradient has moved.
fn with_moved_centres(
    rvm: &Rvm,
    training: &TrainingSet,
    fixed: (Model, Report),
    with_kernel: bool,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    let begin = Instant::now();
    let Some(moved) = learned_centres::learn(rvm, training, &fixed.0, with_kernel, start)? else { return Ok(fixed) };
    let seconds = begin.elapsed().as_secs_f64();
    let search = |learned: f64, kept: bool| {
        Some(CentreSearch {
            moved: moved.centres.nrows(),
            rows: moved.rows,
            evaluations: moved.evaluations,
            fixed_log_evidence: objective(rvm, &fixed.0),
            learned_log_evidence: learned,
            kept,
            seconds,
        })
    };
    // Learnt centres have precisions.
    let own = Rvm { kernel: moved.kernel.clone(), weight_prior: WeightPrior::Ard, ..rvm.without_dictionary() };
    let training = training.with_centres(&own, &moved.kernel, moved.centres.clone());
    let (model, report) = single_fit::learn(&own, &training, None, None, &mut FitDriver::of(&own, observer, interrupt, start))?;
    let learned = objective(rvm, &model);
    if learned > objective(rvm, &fixed.0) {
        let model = Model { learned_centres: true, ..model };
        return Ok((model, Report { centre_search: search(learned, true), ..report }));
    }
    let centre_search = search(learned, false);
    Ok((fixed.0, Report { centre_search, ..fixed.1 }))
}

impl Rvm {
    /// Fits rows that are read in blocks. Memory does not grow with the rows.
    ///
    /// Under a process prior this is [`Rvm::fit_rows`], all blocks being one part of the rows: a few passes over them.
    ///
    /// With a precision for each weight ([`WeightPrior::Ard`], or settings of the search) the rows are of classes, and are read about
    /// as often as Newton's method, and the search, look at all of them. Memory grows with the blocks and with the landmarks. The
    /// landmarks are given, the kernel's parameters numbers; the relevance of the model counts the landmarks. Equal rows
    /// are not merged, so models are those of [`Rvm::fit`] up to rounding, and to where rounding leads a search.
    ///
    /// # Errors
    /// As [`Rvm::fit`] and [`Rvm::fit_rows`]; with precisions another likelihood than Bernoulli or softmax, the scheme `variational`,
    /// models of two classes that vote, weights of classes with precisions of their own, and whatever needs rows beside the sums over
    /// them; rows that change between passes.
    pub fn fit_blocks(&self, blocks: &dyn Blocks) -> Result<(Model, Report)> {
        self.fit_blocks_with(blocks, &mut silent, &Interrupt::default())
    }

    /// [`Rvm::fit_blocks`] under control: `observer` is called after each iteration, on a thread of the fit's own pool,
    /// and may end the fit; a valid model results.
    /// Another thread may end it by `interrupt`, which is an error.
    ///
    /// # Errors
    /// As [`Rvm::fit_blocks`]; and [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn fit_blocks_with(
        &self,
        blocks: &dyn Blocks,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        if self.has_process_in_blocks() {
            return self.fit_blocks_by_queries(blocks, observer, interrupt);
        }
        self.check_in_blocks()?;
        let start = Instant::now();
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        self.pool()?.install(|| {
            let survey = FirstPass::take(blocks, &interrupt)?;
            let class_frequencies = survey.class_frequencies()?;
            let own = match class_frequencies.len() {
                2 => self.clone(),
                _ => self.joint(),
            };
            let training = TrainingSet::of_blocks(&own, blocks, &survey, &interrupt)?;
            let (model, report) =
                single_fit::learn(&own, &training, None, None, &mut FitDriver::of(&own, observer, &interrupt, start))?;
            Ok(judged((Model { class_frequencies, ..model }, report), survey.n_rows - survey.used))
        })
    }
}
