//! The loop: iterations of a scheme, told to the observer, until something ends them.

use std::time::{Duration, Instant};

use super::fit_run::FitRun;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Interrupt, Observer, Progress, Report, Status, TracePoint};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::rvm::Rvm;

/// A fit to a training set, for what begins with fits to others.
pub(crate) type Fit<'f> = &'f dyn Fn(&Rvm, &TrainingSet, &mut FitDriver) -> Result<(Model, Report)>;

/// Watches over all iterations of one fit.
pub(crate) struct FitDriver<'o, 'f> {
    observer: &'o mut Observer<'f>,
    interrupt: Interrupt,
    start: Instant,
    pub max_iterations: usize,
    time_limit: Option<Duration>,
    pub trace: Vec<TracePoint>,
    /// Whether the observer wanted to stop when it was told last.
    stopped: bool,
}

impl<'o, 'f> FitDriver<'o, 'f> {
    /// Over a fit of `rvm` that began at `start`. The deadline of its `interrupt` is armed once there is a model to return.
    pub fn of(rvm: &Rvm, observer: &'o mut Observer<'f>, interrupt: &Interrupt, start: Instant) -> FitDriver<'o, 'f> {
        let time_limit = rvm.deadline(start).map(|end| end - start);
        let (interrupt, max_iterations) = (interrupt.clone(), rvm.max_iterations);
        FitDriver { observer, interrupt, start, max_iterations, time_limit, trace: Vec::new(), stopped: false }
    }

    /// Allows `more` iterations at most from here on; returns how many there might be in all before.
    pub fn limit(&mut self, more: usize) -> usize {
        let most = self.trace.len().saturating_add(more).min(self.max_iterations);
        std::mem::replace(&mut self.max_iterations, most)
    }

    /// Why there is to be no further iteration, if the observer has asked to stop or none is left.
    pub fn spent(&self) -> Option<Status> {
        if self.stopped {
            return Some(Status::Stopped);
        }
        (self.trace.len() >= self.max_iterations).then_some(Status::IterationLimit)
    }

    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time that is left; `None` without a limit.
    pub fn left(&self) -> Option<Duration> {
        self.time_limit.map(|limit| limit.saturating_sub(self.start.elapsed()))
    }

    /// Whether the time of the fit is up.
    pub fn is_late(&self) -> bool {
        self.time_limit.is_some_and(|limit| self.start.elapsed() >= limit)
    }

    /// Steps `run` until it ends, and says why it did.
    ///
    /// A deadline that passes within a step ends it there; the solution is then that of the step before.
    pub fn drive<'p>(&mut self, run: &mut (dyn FitRun<'p> + 'p), solver: &EvidenceSolver<'p>) -> Result<Status> {
        let problem = solver.problem;
        loop {
            let outcome = match run.step(solver) {
                _ if self.interrupt.is_raised_by_hand() => return Err(Error::Interrupted),
                Ok(outcome) => outcome,
                Err(Error::Interrupted) if !self.trace.is_empty() => {
                    // What the last step had done by then counts.
                    if self.trace.last().is_some_and(|last| run.objective(solver) > last.log_evidence) {
                        self.tell(problem, run.objective(solver), run.best());
                    }
                    return Ok(Status::TimeLimit);
                }
                Err(Error::Singular { .. }) if !self.trace.is_empty() => return Ok(Status::Singular),
                Err(error) => return Err(error),
            };
            self.tell(problem, run.objective(solver), run.best());
            if let Some(status) = outcome {
                // Once the time is up candidates are passed over: nothing found is no sign of rest.
                return Ok(if self.interrupt.is_raised() { Status::TimeLimit } else { status });
            } else if let Some(status) = self.spent() {
                return Ok(status);
            } else if self.is_late() {
                return Ok(Status::TimeLimit);
            }
        }
    }

    /// One line of the trace.
    fn tell(&mut self, problem: &ScaledProblem, log_evidence: f64, best: &ActivePosterior) {
        self.tell_model(log_evidence, problem.noise_std(&best.beta), best.active.len());
    }

    /// One line of the trace, of a model of so many basis functions, the bias included.
    pub fn tell_model(&mut self, log_evidence: f64, noise_std: Option<f64>, active: usize) {
        let point = TracePoint { log_evidence, noise_std, active, seconds: self.start.elapsed().as_secs_f64() };
        // A search that has begun anew may still be below the best model.
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
