//! The sequential algorithm of Tipping & Faul (2003), section 4: one action at a time.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, require};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::table::Table;
use crate::rvm::evidence::factor::{Action, Factor};
use crate::rvm::evidence::gain::Noise;
use crate::rvm::evidence::solution::{At, Solution};
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::search::scheme::{Entry, Hyperpriors, Run, Scheme, Start};

/// Sequential sparse Bayesian learning: of all basis functions the one whose addition, re-estimation or deletion raises the evidence
/// most is changed, until none does. The noise is at its best throughout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequential {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// Converged when no action gains more than this many nats.
    pub tolerance: f64,
    /// Where it starts; [`Start::Auto`] is from no basis function.
    pub start: Start,
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential { hyperpriors: Hyperpriors::default(), tolerance: 1e-4, start: Start::Auto }
    }
}

impl Scheme for Sequential {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check_of_search(path)?;
        let positive = self.tolerance.is_finite() && self.tolerance > 0.0;
        require(positive, || format!("{path}.tolerance"), self.tolerance, "a positive number")
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }

    fn adds(&self) -> bool {
        true
    }

    fn first_candidates(&self, table: &Table) -> Vec<usize> {
        self.start.places(table)
    }

    fn start<'p>(&self, work: &Workspace<'p>, entry: &Entry) -> Result<Box<dyn Run<'p> + 'p>> {
        let (problem, noise) = (work.problem, work.problem.table.noise.clone());
        let at_first = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let (active, a, beta): (_, Vec<f64>, Vec<f64>) = match (&entry.from, &self.start) {
            _ if problem.table.bias_only => (vec![0], problem.first_precisions(&[0], 1.0 / problem.table.count), at_first()),
            (Some(warm), _) => (warm.columns(work), warm.a.clone(), warm.beta.clone()),
            (None, Start::Given(given)) => given.inner(problem)?,
            (None, _) => (vec![], vec![], at_first()),
        };
        let unit = if entry.from.is_some() { 1.0 } else { crate::rvm::evidence::solution::typical(&beta) };
        let a: Vec<f64> = a.iter().map(|alpha| alpha / unit).collect();
        let now = work.solve(&active, &a, &noise, At::Best, None)?;
        let barred = vec![false; problem.design.n_columns()];
        let (tolerance, bias_only) = (self.tolerance, problem.table.bias_only);
        Ok(Box::new(OneByOne {
            tolerance,
            bias_only,
            noise,
            now,
            factor: None,
            barred,
            actions: Actions::default(),
            done: false,
        }))
    }
}

/// One run of the algorithm.
struct OneByOne<'p> {
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
        match work.solve_after(&factor, &self.noise, &self.now) {
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
