//! The sequential algorithm of Tipping & Faul (2003), section 4: one action at a time.

use super::run::{Entry, Run};
use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{Noise, typical};
use crate::rvm::evidence::factor::{Action, Factor};
use crate::rvm::evidence::solution::{At, Solution};
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::settings::scheme::Start;
use crate::rvm::settings::schemes::Sequential;

/// One run of the algorithm.
pub(crate) struct OneByOne<'p> {
    tolerance: f64,
    bias_only: bool,
    noise: Vec<Noise>,
    now: Solution,
    factor: Option<Factor<'p>>,
    /// Columns whose last action has not raised the true evidence, which its quadratic form had promised, `[P]`.
    barred: Vec<bool>,
    actions: Actions,
    done: bool,
}

impl<'p> OneByOne<'p> {
    /// Begins a fit, or goes on with it in another part of the dictionary.
    pub(crate) fn start(work: &Workspace<'p>, settings: &Sequential, entry: &Entry) -> Result<OneByOne<'p>> {
        let (problem, noise) = (work.problem, work.problem.table.noise.clone());
        let at_first = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let (active, a, beta): (_, Vec<f64>, Vec<f64>) = match (&entry.from, &settings.start) {
            _ if problem.table.bias_only => (vec![0], problem.first_precisions(&[0], 1.0 / problem.table.count), at_first()),
            (Some(warm), _) => (warm.columns(work), warm.a.clone(), warm.beta.clone()),
            (None, Start::Given(given)) => problem.inner(given)?,
            (None, _) => (vec![], vec![], at_first()),
        };
        let unit = if entry.from.is_some() { 1.0 } else { typical(&beta) };
        let a: Vec<f64> = a.iter().map(|alpha| alpha / unit).collect();
        let now = work.solve(&active, &a, &noise, At::Best, None)?;
        let barred = vec![false; problem.design.n_columns()];
        let (tolerance, bias_only) = (settings.tolerance, problem.table.bias_only);
        Ok(OneByOne { tolerance, bias_only, noise, now, factor: None, barred, actions: Actions::default(), done: false })
    }
}

impl<'p> Run<'p> for OneByOne<'p> {
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>> {
        let mut factor = match self.factor.take() {
            Some(factor) => factor,
            None => Factor::new(work.quadratic(&self.now)?, &self.now, &self.noise, work.prior),
        };
        let best = if self.bias_only { None } else { factor.best_action(self.tolerance, &self.barred, true) };
        let Some((action, _)) = best else {
            self.done = true;
            return Ok(Some(Status::Converged));
        };
        factor.apply(action);
        match work.solve(factor.active(), factor.precisions(), &self.noise, At::Best, Some(&self.now)) {
            Ok(next) if next.log_evidence > self.now.log_evidence => {
                match action {
                    Action::Add { .. } => self.actions.added += 1,
                    Action::Reestimate { .. } => self.actions.reestimated += 1,
                    Action::Delete { .. } => self.actions.deleted += 1,
                }
                self.now = next;
                self.barred.fill(false);
                self.factor = (!work.curvature_moves()).then_some(factor);
            }
            Ok(_) | Err(Error::Singular { .. }) => {
                self.actions.undone += 1;
                self.barred[action.column()] = true;
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    fn best(&self) -> &Solution {
        &self.now
    }

    fn objective(&self, work: &Workspace<'p>) -> f64 {
        work.problem.log_evidence_out(self.now.log_evidence)
    }

    fn certificate(&self, work: &Workspace<'p>, late: bool) -> Certificate {
        let scored = || {
            let factor = Factor::new(work.quadratic(&self.now).ok()?, &self.now, &self.noise, work.prior);
            Some(factor.best_action(0.0, &self.barred, true).map_or(0.0, |(_, gain)| gain))
        };
        let reason = if self.done { "no action gains more than the tolerance" } else { "ended before the search was over" };
        Certificate {
            largest_gain: if late { None } else { scored() },
            largest_gradient: self.now.largest_gradient(),
            reason: reason.into(),
        }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}
