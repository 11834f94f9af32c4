//! Fits to rows in memory.

use std::time::Instant;

use ndarray::ArrayView2;

use crate::design::Basis;
use crate::error::{Result, require};
use crate::model::Model;
use crate::report::{CentreSearch, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::binary_models::{self, Classes};
use crate::rvm::compose::completion::{self, judged};
use crate::rvm::compose::{cross_validation, single_fit, student_t};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice::{self, Choice};
use crate::rvm::learn::learned_centres;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::rvm::{CentreRule, Rvm, WeightPrior};
use crate::targets::{MultiClass, Targets, check_present};

impl Rvm {
    /// Fits a model to rows `x`, [N, D], and `targets`. With [`Basis::Given`], `x` is a design matrix, [N, P].
    ///
    /// # Errors
    /// Returns an error for parameters out of range, shapes that do not match, values that are not finite, too few
    /// rows, targets that do not suit the likelihood, and too little memory. A fit that does not converge is no error,
    /// see [`Report::status`].
    pub fn fit(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits a model to rows `x`, `[N, D]`, as [`Rvm::fit`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and [`Error::Interrupted`](crate::Error::Interrupted).
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
            let reason = "cross-validation requires multi_class = joint";
            return Err(self.no_validation(reason));
        }
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let weights = targets.checked_weights()?;
        check_present(labels, count, weights.as_deref())?;
        let expected = "fixed, or multi_class = joint: separate models of two classes cannot share learned centres";
        require(self.centres == CentreRule::Fixed, || "centres".into(), "learned", expected)?;
        let start = Instant::now();
        self.refuse_process(&format!("multi_class = {}: regression on labels is one model of all classes", rule.name()))?;
        let mut own = Rvm { multi_class: rule, weight_prior: WeightPrior::Ard, ..self.clone() };
        let mut kernel_search = None;
        if self.basis == Basis::Kernel {
            // All binary models share one kernel, which is learned from the rows of all classes.
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
        return completion::complete_fit(rvm, x, targets, observer, &interrupt, start);
    }
    let plain = rvm.with_stand_in();
    let mut training = TrainingSet::new(&plain, x, targets, &for_learning(rvm, &interrupt, start))?;
    let Choice { kernel, search: kernel_search, learned } = match rvm.likelihood.as_dyn().scale_mixture() {
        // A fit with the initial kernel tells the weights of the rows, by which outliers count less.
        Some(mixture) if rvm.learns_kernel() && !training.adjustments.constant_target => {
            let mut quiet = silent;
            let (model, _) =
                single_fit::learn(&plain, &training, None, None, &mut FitDriver::of(&plain, &mut quiet, &interrupt, start))?;
            kernel_choice::choose(rvm, &student_t::weighted(&plain, &training, mixture, &model)?)?
        }
        _ => kernel_choice::choose(rvm, &training)?,
    };
    training.interrupt = interrupt.clone();
    let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
    let training = training.with(&own, &kernel, None).with_learned(&own, &kernel, learned.as_ref());
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
    let (model, report) = completion::complete(rvm, &training, x, targets, (model, report))?;
    Ok((model, Report { kernel_search, ..report }))
}

/// Share of the time limit for learning the kernel. The rest is for centres and weights, without which there is no
/// model.
const LEARNING: f64 = 0.5;

/// Returns the interrupt that is in force while the kernel is learned.
pub(super) fn for_learning(rvm: &Rvm, interrupt: &Interrupt, start: Instant) -> Interrupt {
    let share = Rvm { time_limit: rvm.time_limit.map(|limit| LEARNING * limit), ..rvm.clone() };
    interrupt.for_one_fit(share.deadline(start))
}

/// Returns the objective by which models are compared, in nats: log evidence plus log prior of the kernels.
fn objective(rvm: &Rvm, model: &Model) -> f64 {
    model.log_evidence.unwrap_or(f64::NEG_INFINITY) - rvm.nats() * model.relevance.len() as f64
}

/// Returns the better of the model `fixed` and of a model with learned centres.
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
    // The weights of learned centres have their own precisions.
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
