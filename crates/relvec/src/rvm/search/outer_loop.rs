//! The path of a search: a model of a sample to begin at, one working set after another, and the model in the end.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Actions, Report, Status};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::function_values::residual_over_noise;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::evidence::{empty, model_assembly};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::class_precisions::ClassSearch;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::fit_run::{Effort, FitRun, SearchStart, WarmStart};
use crate::rvm::search::fixed_point::FixedPointRun;
use crate::rvm::search::local_search::LocalSearch;
use crate::rvm::search::sequential::SequentialRun;
use crate::rvm::search::time_budget;
use crate::rvm::search::variational::MeanField;
use crate::rvm::search::working_sets::WorkingSets;
use crate::rvm::settings::inference::Inference;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Start};
use crate::sums::Sums;

/// A log evidence of a part that is lower by a larger share has fallen.
const ROUNDING: f64 = 1e-9;

/// Begins a fit, or goes on with it in another part of the dictionary.
fn begin<'p>(inference: &Inference, solver: &EvidenceSolver<'p>, entry: &SearchStart) -> Result<Box<dyn FitRun<'p> + 'p>> {
    Ok(match inference {
        Inference::Search(scheme) => Box::new(LocalSearch::start(solver, scheme, entry)?),
        Inference::Sequential(scheme) => Box::new(SequentialRun::start(solver, scheme, entry)?),
        Inference::MacKay(scheme) => Box::new(FixedPointRun::start(solver, scheme.into(), entry)?),
        Inference::Em(scheme) => Box::new(FixedPointRun::start(solver, scheme.into(), entry)?),
        Inference::Variational(scheme) => Box::new(MeanField::start(solver, scheme)?),
    })
}

/// Part after part of the dictionary (mostly the first is all of it) until none would help any more. `start`: the
/// model to go on from; `brief`: with one excursion at most where the dictionary is one part.
pub(crate) fn search(
    rvm: &Rvm,
    training: &TrainingSet,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    brief: bool,
    driver: &mut FitDriver,
) -> Result<(Model, Report)> {
    if start.is_some() {
        return search_from(rvm, training, sums, start, brief, driver);
    }
    let fallback = time_budget::fallback(rvm, training, driver, &in_sample)?;
    if fallback.is_some() {
        // There is a model to return from now on.
        training.interrupt.arm();
    }
    let found = search_from(rvm, training, sums, None, brief, driver);
    training.interrupt.disarm();
    let fallback = fallback.map(|(model, report)| (model, Report { seconds: driver.elapsed().as_secs_f64(), ..report }));
    match (found, fallback) {
        (Err(Error::Interrupted), Some(fallback)) if !training.interrupt.is_raised_by_hand() => {
            Ok(time_budget::of_sample(fallback))
        }
        // Of all rows there is but the first model, which has no basis function.
        (Ok((model, _)), Some(fallback)) if model.status == Status::TimeLimit && model.relevance.is_empty() => {
            Ok(time_budget::of_sample(fallback))
        }
        (found, _) => found,
    }
}

/// [`search`] without a sample before it.
fn search_from(
    rvm: &Rvm,
    training: &TrainingSet,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    brief: bool,
    driver: &mut FitDriver,
) -> Result<(Model, Report)> {
    let scheme = rvm.inference.as_dyn();
    let keep = match (start, scheme.start()) {
        (Some(given), _) | (None, Start::Given(given)) => training.candidates_of(given),
        (None, Start::Auto | Start::Empty) => vec![],
    };
    let (working_sets, mut candidates) = WorkingSets::new(training, &keep, brief);
    let mut outer = OuterLoop { rvm, training, working_sets, actions: Actions::default(), driver };
    let (mut given, mut start, mut from) = (sums, start, None);
    // The best model of the parts before, and its log evidence: sums in another part round otherwise.
    let mut best: Option<(WarmStart, f64)> = None;
    loop {
        // What there is to return if the time is up before this part is under way.
        let last = from.clone().filter(|_| training.height() > 0);
        let made = match given.take() {
            Some(sums) => {
                let (problem, sums) = ScaledProblem::of_sums(training, candidates, sums);
                Ok((problem, Some(sums)))
            }
            None => ScaledProblem::new(training, candidates),
        };
        let (problem, sums) = match made {
            Ok(made) => made,
            Err(error) => return outer.cut_short(error, last),
        };
        let solver = EvidenceSolver::new(&problem, sums);
        if let Some(start) = start.take() {
            from = Some(WarmStart::at(&problem, start)?);
        }
        let mut run = match begin(&rvm.inference, &solver, &SearchStart { from: from.take(), aim: outer.working_sets.aim() }) {
            Ok(run) => run,
            Err(error) => return outer.cut_short(error, last),
        };
        let mut status = outer.driver.drive(&mut *run, &solver)?;
        let reached = run.best().log_evidence;
        let falls = best.as_ref().is_some_and(|(_, before)| before - reached > ROUNDING * before.abs().max(1.0));
        if status == Status::Converged {
            match outer.working_sets.next(&solver, run.best(), scheme.least_gain(training.count, run.best().is_ample())) {
                Ok(None) => {}
                Ok(Some(next)) => match outer.driver.spent() {
                    Some(spent) => status = spent,
                    None => {
                        outer.actions.add(&run.actions());
                        (candidates, from) = (next, Some(WarmStart::of(&solver, run.best())));
                        if !falls {
                            best = from.clone().map(|warm| (warm, reached));
                        }
                        continue;
                    }
                },
                Err(Error::Interrupted) if outer.driver.is_late() => status = Status::TimeLimit,
                Err(error) => return Err(error),
            }
        }
        training.interrupt.disarm();
        return match best.filter(|_| falls) {
            Some((best, _)) => {
                outer.actions.add(&run.actions());
                outer.end_with(best, status)
            }
            None => outer.conclude(&solver, &*run, status),
        };
    }
}

pub(super) fn in_sample(rvm: &Rvm, sample: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
    search_from(rvm, sample, None, None, false, driver)
}

/// The alternation of searches in one working set and scans for the next.
struct OuterLoop<'a, 'w, 'o, 'f> {
    rvm: &'a Rvm,
    training: &'a TrainingSet<'a>,
    working_sets: WorkingSets,
    actions: Actions,
    driver: &'w mut FitDriver<'o, 'f>,
}

impl OuterLoop<'_, '_, '_, '_> {
    /// Ends with the `last` model if it is the time that has ended the search between two parts.
    fn cut_short(self, error: Error, last: Option<WarmStart>) -> Result<(Model, Report)> {
        match (error, last) {
            (Error::Interrupted, Some(last)) if self.driver.is_late() => self.end_with(last, Status::TimeLimit),
            (error, _) => Err(error),
        }
    }

    /// Ends with a model that is not that of the last search.
    fn end_with(self, model: WarmStart, status: Status) -> Result<(Model, Report)> {
        self.training.interrupt.disarm();
        let mut candidates = model.kept();
        candidates.sort_unstable();
        let (problem, sums) = ScaledProblem::new(self.training, candidates)?;
        let solver = EvidenceSolver::new(&problem, sums);
        let run = begin(&self.rvm.inference, &solver, &SearchStart { from: Some(model), aim: Effort::Rest })?;
        self.conclude(&solver, &*run, status)
    }

    /// The model and the report of the search that ended.
    fn conclude<'p>(
        mut self,
        solver: &EvidenceSolver<'p>,
        run: &(dyn FitRun<'p> + 'p),
        status: Status,
    ) -> Result<(Model, Report)> {
        let problem = solver.problem;
        self.actions.add(&run.actions());
        let (mut run, mut status) = (run, status);
        let nothing_found = status == Status::Converged && empty::has_nothing(run.form().unwrap_or(solver), run.best())?;
        let mut search = match self.rvm.by_class() {
            true => Some(ClassSearch::start(solver, run.best())?),
            false => None,
        };
        if let Some(search) = &mut search {
            if status == Status::Converged {
                status = self.driver.drive(search, solver)?;
                problem.training.interrupt.disarm();
            }
            self.actions.add(&search.actions());
            run = search;
        }
        let log_evidence = run.objective(solver);
        let mut certificate = run.certificate(solver, matches!(status, Status::TimeLimit | Status::Stopped));
        self.working_sets.certify(&mut certificate, status == Status::Converged);
        let solution = run.best();
        let log_evidence = log_evidence - solver.prior.log(&solution.active);
        let mut repairs = problem.training.repairs.clone();
        repairs.zero_columns = problem.design.norms().iter().filter(|n| **n == 0.0).count();
        repairs.jitter = solution.jitter;
        repairs.noise_capped = problem.noise_capped(&solution.beta);
        let trace = std::mem::take(&mut self.driver.trace);
        let model = model_assembly::model(run.form().unwrap_or(solver), solution, log_evidence, status, trace.len())?;
        repairs.residual_over_noise = residual_over_noise(problem, solution, &model)?;
        let report = Report {
            candidates: self.working_sets.n_candidates(),
            repairs,
            nothing_found,
            actions: self.actions,
            precisions: model_assembly::precisions(self.rvm, problem.training, &model),
            ..Report::of_end(status, trace, certificate, self.driver.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }
}
