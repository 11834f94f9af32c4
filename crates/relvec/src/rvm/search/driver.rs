//! The driver of a fit: runs the iterations of a scheme and reports each of them to the observer. It stops on
//! convergence, at a limit, or on an interrupt. [`FitRun`] is what it needs of a scheme.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Interrupt, Observer, Progress, Status, TracePoint};
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Hyperparameters;

/// Start of a search in one working set.
#[derive(Debug, Clone)]
pub(crate) struct SearchStart {
    /// Model for a warm start; `None` for the first working set.
    pub from: Option<WarmStart>,
    /// True if noise restarts follow once no action gains enough.
    pub restarts: bool,
    /// True if the search starts from the dense model, and returns the model of the warm start if that is better.
    pub dense: bool,
}

/// A fit that is under way.
pub(crate) trait FitRun<'p> {
    /// Runs one iteration. Returns the reason why there is no further iteration, or `None` if there may be one.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop, and the errors of
    /// [`EvidenceSolver::solve`].
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>>;

    /// Returns the best model so far.
    fn best(&self) -> &ActivePosterior;

    /// Returns the objective of the scheme in original units: the log evidence plus the log hyperpriors, or a lower
    /// bound.
    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64;

    /// Returns the solver that `best` belongs to, if it is not the solver of the fit.
    fn form(&self) -> Option<&EvidenceSolver<'p>> {
        None
    }

    /// Returns the remaining gain and gradient. If `late` is true, it does not evaluate the candidates.
    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate;

    /// Returns the numbers of actions so far.
    fn actions(&self) -> Actions;
}

/// A model by its candidates, for a warm start in another working set.
#[derive(Debug, Clone)]
pub(crate) struct WarmStart {
    /// Candidates in the training set, `None` for the bias, `[M]`.
    pub candidates: Vec<Option<usize>>,
    /// Relative precisions for columns of unit norm, `[M]`.
    pub a: Vec<f64>,
    /// Noise precisions in internal units, one for each noise.
    pub beta: Vec<f64>,
    /// Posterior at the mode for several classes, which the next search starts from.
    pub mode: Option<Rc<ActivePosterior>>,
}

impl WarmStart {
    /// Returns the warm start at a model in the working set of `solver`.
    pub fn of(solver: &EvidenceSolver, solution: &ActivePosterior) -> WarmStart {
        let first = usize::from(solver.problem.has_bias);
        let candidate = |j: &usize| (*j >= first).then(|| solver.problem.candidates[*j - first]);
        let mode = solution.joint.is_some().then(|| Rc::new(solution.clone().renamed(solution.active.clone())));
        let candidates = solution.active.iter().map(candidate).collect();
        WarmStart { candidates, a: solution.a.clone(), beta: solution.beta.clone(), mode }
    }

    /// Returns the warm start at given precisions in original units.
    ///
    /// # Errors
    /// Returns the errors of [`ScaledProblem::inner`].
    pub fn at(problem: &ScaledProblem, at: &Hyperparameters) -> Result<WarmStart> {
        let (active, alpha, beta) = problem.inner(at)?;
        let first = usize::from(problem.has_bias);
        let mut order: Vec<usize> = (0..active.len()).collect();
        order.sort_by_key(|k| active[*k]);
        let candidate = |k: &usize| (active[*k] >= first).then(|| problem.candidates[active[*k] - first]);
        let unit = typical(&beta);
        let a = order.iter().map(|k| alpha[*k] / unit).collect();
        Ok(WarmStart { candidates: order.iter().map(candidate).collect(), a, beta, mode: None })
    }

    /// Returns the columns of the model in the working set of `solver`, `[M]`.
    pub fn columns(&self, solver: &EvidenceSolver) -> Vec<usize> {
        let find = |p: &Option<usize>| p.map_or(0, |p| solver.problem.column_of(p).expect("a working set contains the model"));
        self.candidates.iter().map(find).collect()
    }

    /// Returns the candidates of the model without the bias.
    pub fn without_bias(&self) -> Vec<usize> {
        self.candidates.iter().flatten().copied().collect()
    }
}

/// The driver of one fit, with its trace and limits.
pub(crate) struct FitDriver<'o, 'f> {
    observer: &'o mut Observer<'f>,
    interrupt: Interrupt,
    start: Instant,
    pub max_iterations: usize,
    time_limit: Option<Duration>,
    pub trace: Vec<TracePoint>,
    /// True if the observer asked to stop after the last iteration.
    stopped: bool,
}

impl<'o, 'f> FitDriver<'o, 'f> {
    /// Returns the driver of a fit of `rvm` that began at `start`. The deadline of `interrupt` comes into force once
    /// there is a model to return.
    pub fn of(rvm: &Rvm, observer: &'o mut Observer<'f>, interrupt: &Interrupt, start: Instant) -> FitDriver<'o, 'f> {
        let time_limit = rvm.deadline(start).map(|end| end - start);
        let (interrupt, max_iterations) = (interrupt.clone(), rvm.max_iterations);
        FitDriver { observer, interrupt, start, max_iterations, time_limit, trace: Vec::new(), stopped: false }
    }

    /// Lowers the limit to `more` further iterations, if it is not lower already. Returns the previous limit on all
    /// iterations.
    pub fn limit(&mut self, more: usize) -> usize {
        let most = self.trace.len().saturating_add(more).min(self.max_iterations);
        std::mem::replace(&mut self.max_iterations, most)
    }

    /// Returns the reason to stop if the observer has asked for it or the iteration limit is reached.
    pub fn spent(&self) -> Option<Status> {
        if self.stopped {
            return Some(Status::Stopped);
        }
        (self.trace.len() >= self.max_iterations).then_some(Status::IterationLimit)
    }

    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time left, or `None` if there is no time limit.
    pub fn left(&self) -> Option<Duration> {
        self.time_limit.map(|limit| limit.saturating_sub(self.start.elapsed()))
    }

    /// Returns true if the time limit of the fit has passed.
    pub fn is_late(&self) -> bool {
        self.time_limit.is_some_and(|limit| self.start.elapsed() >= limit)
    }

    /// Runs the iterations of `run` until it stops, and returns the reason.
    ///
    /// A deadline that passes within an iteration ends the run there. The model is then that of the previous iteration.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit was interrupted by hand, or before there is a model. Returns all other
    /// errors of [`FitRun::step`], except [`Error::Singular`] once there is a model.
    pub fn drive<'p>(&mut self, run: &mut (dyn FitRun<'p> + 'p), solver: &EvidenceSolver<'p>) -> Result<Status> {
        let problem = solver.problem;
        loop {
            let outcome = match run.step(solver) {
                _ if self.interrupt.is_raised_by_hand() => return Err(Error::Interrupted),
                Ok(outcome) => outcome,
                Err(Error::Interrupted) if !self.trace.is_empty() => {
                    // The interrupted iteration may have improved the model before.
                    if self.trace.last().is_some_and(|last| run.objective(solver) > last.log_evidence) {
                        self.report(problem, run.objective(solver), run.best());
                    }
                    return Ok(Status::TimeLimit);
                }
                Err(Error::Singular { .. }) if !self.trace.is_empty() => return Ok(Status::Singular),
                Err(error) => return Err(error),
            };
            self.report(problem, run.objective(solver), run.best());
            if let Some(status) = outcome {
                // After the deadline candidates are skipped, so that an unsuccessful search does not mean convergence.
                return Ok(if self.interrupt.is_raised() { Status::TimeLimit } else { status });
            } else if let Some(status) = self.spent() {
                return Ok(status);
            } else if self.is_late() {
                return Ok(Status::TimeLimit);
            }
        }
    }

    /// Adds a model to the trace and reports it to the observer. `log_evidence` is in original units.
    fn report(&mut self, problem: &ScaledProblem, log_evidence: f64, best: &ActivePosterior) {
        self.tell_model(log_evidence, problem.noise_std(&best.beta), best.active.len());
    }

    /// Adds a model with `active` basis functions, the bias included, to the trace and reports it to the observer.
    /// `log_evidence` and `noise_std` are in original units.
    pub fn tell_model(&mut self, log_evidence: f64, noise_std: Option<f64>, active: usize) {
        let point = TracePoint { log_evidence, noise_std, active, seconds: self.start.elapsed().as_secs_f64() };
        // After a restart the present model may be worse than the best one, which the trace shows.
        let before = self.trace.last().filter(|before| before.log_evidence > log_evidence);
        let point = before.map_or(point, |before| TracePoint { seconds: point.seconds, ..*before });
        let progress = Progress {
            iteration: self.trace.len() + 1,
            log_evidence: point.log_evidence,
            active: point.active,
            noise_std: point.noise_std,
            elapsed: self.start.elapsed(),
        };
        self.trace.push(point);
        self.interrupt.arm();
        self.stopped = (self.observer)(&progress).is_break();
    }
}
