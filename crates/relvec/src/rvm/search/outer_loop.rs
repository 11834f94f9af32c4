//! The outer loop of a fit: searches one working set after another, scans the candidates between them, and assembles
//! the model.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Actions, Report, Status};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::residual_over_noise;
use crate::rvm::evidence::model_assembly;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::driver::{FitDriver, FitRun, SearchStart, WarmStart};
use crate::rvm::search::fixed_point::FixedPointRun;
use crate::rvm::search::initial_model;
use crate::rvm::search::local_search::LocalSearch;
use crate::rvm::search::sequential::{SequentialRun, UNFINISHED};
use crate::rvm::search::variational::MeanField;
use crate::rvm::search::working_sets::WorkingSets;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Inference, Start};
use crate::sums::Sums;

/// Starts the scheme in the working set of `solver`.
fn begin<'p>(inference: &Inference, solver: &EvidenceSolver<'p>, entry: &SearchStart) -> Result<Box<dyn FitRun<'p> + 'p>> {
    Ok(match inference {
        Inference::Search(scheme) => Box::new(LocalSearch::start(solver, scheme, entry)?),
        Inference::Sequential(scheme) => Box::new(SequentialRun::start(solver, scheme, entry)?),
        Inference::MacKay(scheme) => Box::new(FixedPointRun::start(solver, scheme.into(), entry)?),
        Inference::Em(scheme) => Box::new(FixedPointRun::start(solver, scheme.into(), entry)?),
        Inference::Variational(scheme) => Box::new(MeanField::start(solver, scheme)?),
    })
}

/// Fits a model to a training set.
///
/// Searches one working set after another, until no candidate outside the working set would raise the evidence. For
/// most dictionaries the first working set is the whole dictionary. `sums` are those of the first working set, if they
/// are known. `start` is the model for a warm start.
///
/// # Errors
/// Returns [`Error::Interrupted`] if the fit was interrupted before there is a model, and errors of memory and of
/// matrices that cannot be factorised.
pub(crate) fn search(
    rvm: &Rvm,
    training: &TrainingSet,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    driver: &mut FitDriver,
) -> Result<(Model, Report)> {
    let scheme = rvm.inference.as_dyn();
    let required = match (start, scheme.start()) {
        (Some(given), _) | (None, Start::Given(given)) => training.candidates_of(given),
        (None, Start::Auto | Start::Empty) => vec![],
    };
    let (working_sets, mut candidates) = WorkingSets::new(training, &required);
    let mut outer = OuterLoop { rvm, training, working_sets, actions: Actions::default(), driver };
    let (mut given_sums, mut start, mut warm) = (sums, start, None);
    // The best model of the previous working sets and its log evidence.
    let mut best: Option<(WarmStart, f64)> = None;
    loop {
        // The model to return if the time limit passes before the search in this working set has started.
        let previous = best.as_ref().map(|(model, _)| model.clone()).filter(|_| training.rows.nrows() > 0);
        let (problem, sums) = match scaled_problem(training, candidates, given_sums.take()) {
            Ok(made) => made,
            Err(error) => return outer.return_previous(error, previous),
        };
        let solver = EvidenceSolver::new(&problem, sums);
        if let Some(start) = start.take() {
            warm = Some(WarmStart::at(&problem, start)?);
        }

        // Search the working set.
        let entry = SearchStart { from: warm.take(), restarts: outer.working_sets.restarts() };
        let mut run = match begin(&rvm.inference, &solver, &entry) {
            Ok(run) => run,
            Err(error) => return outer.return_previous(error, previous),
        };
        let mut status = outer.driver.drive(&mut *run, &solver)?;
        let log_evidence = run.best().log_evidence;
        // The evidence may fall a little between working sets, because sums over other columns are rounded differently.
        let least = scheme.least_gain(training.count, run.best().is_large());
        let fell = best.as_ref().is_some_and(|(_, before)| before - log_evidence > least);

        // Scan all candidates for the next working set.
        if status == Status::Converged {
            match outer.working_sets.next(&solver, run.best(), least) {
                Ok(None) => {}
                Ok(Some(next)) => match outer.driver.spent() {
                    Some(spent) => status = spent,
                    None => {
                        outer.actions.add(&run.actions());
                        (candidates, warm) = (next, Some(WarmStart::of(&solver, run.best())));
                        if !fell {
                            best = warm.clone().map(|warm| (warm, log_evidence));
                        }
                        continue;
                    }
                },
                Err(Error::Interrupted) if outer.driver.is_late() => status = Status::TimeLimit,
                Err(error) => return Err(error),
            }
        }

        // Return the best model.
        training.interrupt.disarm();
        return match best.filter(|_| fell) {
            Some((best, _)) => {
                outer.actions.add(&run.actions());
                outer.return_model(best, status)
            }
            None => outer.conclude(&solver, &*run, status),
        };
    }
}

/// Returns the scaled problem of the `candidates`, and its sums if they are given or computed.
fn scaled_problem<'t>(
    training: &'t TrainingSet<'t>,
    candidates: Vec<usize>,
    sums: Option<Sums>,
) -> Result<(ScaledProblem<'t>, Option<Sums>)> {
    match sums {
        Some(sums) => {
            let (problem, sums) = ScaledProblem::of_sums(training, candidates, sums);
            Ok((problem, Some(sums)))
        }
        None => ScaledProblem::new(training, candidates),
    }
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
    /// Returns the model of the `previous` working set if `error` means that the time limit has passed.
    fn return_previous(self, error: Error, previous: Option<WarmStart>) -> Result<(Model, Report)> {
        match (error, previous) {
            (Error::Interrupted, Some(previous)) if self.driver.is_late() => self.return_model(previous, Status::TimeLimit),
            (error, _) => Err(error),
        }
    }

    /// Assembles a model of a previous working set, and its report.
    fn return_model(self, model: WarmStart, status: Status) -> Result<(Model, Report)> {
        self.training.interrupt.disarm();
        let mut candidates = model.without_bias();
        candidates.sort_unstable();
        let (problem, sums) = ScaledProblem::new(self.training, candidates)?;
        let solver = EvidenceSolver::new(&problem, sums);
        let run = begin(&self.rvm.inference, &solver, &SearchStart { from: Some(model), restarts: false })?;
        self.conclude(&solver, &*run, status)
    }

    /// Assembles the model and the report of the last search.
    fn conclude<'p>(
        mut self,
        solver: &EvidenceSolver<'p>,
        run: &(dyn FitRun<'p> + 'p),
        status: Status,
    ) -> Result<(Model, Report)> {
        let problem = solver.problem;
        self.actions.add(&run.actions());
        let nothing_found = status == Status::Converged && initial_model::has_nothing(run.form().unwrap_or(solver), run.best())?;
        let log_evidence = run.objective(solver);
        let mut certificate = run.certificate(solver, matches!(status, Status::TimeLimit | Status::Stopped));
        // The model of an earlier working set is no search that is under way.
        if status == Status::Converged && certificate.reason == UNFINISHED {
            certificate.reason = "the last working set led to no better model".into();
        }
        self.working_sets.certify(&mut certificate, status == Status::Converged);
        let solution = run.best();
        let log_evidence = log_evidence - solver.prior.log(&solution.active);
        let mut adjustments = problem.training.adjustments.clone();
        adjustments.zero_columns = problem.design.norms().iter().filter(|n| **n == 0.0).count();
        adjustments.jitter = solution.jitter;
        adjustments.noise_capped = problem.noise_capped(&solution.beta);
        let trace = std::mem::take(&mut self.driver.trace);
        let model = model_assembly::model(run.form().unwrap_or(solver), solution, log_evidence, status, trace.len())?;
        adjustments.residual_over_noise = residual_over_noise(problem, solution, &model)?;
        let report = Report {
            candidates: self.working_sets.n_candidates(),
            adjustments,
            nothing_found,
            actions: self.actions,
            precisions: model_assembly::precisions(self.rvm, problem.training, &model),
            ..Report::of_end(status, trace, certificate, self.driver.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }
}
