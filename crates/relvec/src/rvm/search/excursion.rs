//! Ways out of an optimum: the noise is held low (the model grows over-complete) or high (it shrinks), or all begins anew; then it
//! is free again, and the better of both models is kept.

use super::{LOOSE, POLISH, Phase, ROUNDING, Search};
use crate::error::Result;
use crate::rvm::gain::Noise;
use crate::rvm::solution::At;
use crate::rvm::workspace::Workspace;

/// What an excursion must gain to be kept.
const EXCURSION_GAIN: f64 = 0.05;

/// A way out of an optimum, with the noise held.
#[derive(Debug, Clone, Copy)]
pub(super) enum Excursion {
    /// From the model, at so many times its noise precision.
    Noise(f64),
    /// From no basis function at all, at its noise precision.
    Anew,
}

impl<'p> Search<'p> {
    /// Begin an excursion with the noise held, if one is left; else the model, if it is at rest, is what was sought.
    pub(super) fn excursion(&mut self, work: &Workspace<'p>) -> Result<()> {
        if self.full {
            self.phase = Phase::Done;
            self.reason = "the memory limit leaves the model no room to grow";
            return Ok(());
        }
        let possible = work.problem.constant_curvature() && !work.problem.table.bias_only && !self.now.active.is_empty();
        let most = if self.is_heavy() { 0 } else { self.effort.excursions.len() * self.settings.reheats };
        if !possible || self.excursions >= most || self.failed == self.effort.excursions.len() {
            if !self.climbed {
                (self.climbed, self.phase) = (true, Phase::Climb);
                return Ok(());
            }
            self.phase = Phase::Done;
            if self.settings.joint && possible && !self.aim.is_passing() {
                self.joint_tolerance = POLISH;
                let rested = self.joint(work, self.now.clone())?;
                if rested.log_evidence >= self.now.log_evidence - ROUNDING * self.now.log_evidence.abs().max(1.0) {
                    self.now = rested;
                }
            }
            if self.is_futile() {
                self.reason = "several actions in a row, each the most promising, have not raised the evidence by enough";
                return Ok(());
            }
            if self.slow {
                self.reason = match self.many {
                    true => "on so many rows, the last round of actions gained less than 1e-5 nats for each",
                    false => "of so many basis functions, the last round of actions gained less than 1e-5 nats for each row",
                };
                return Ok(());
            }
            self.reason = match (possible && most > 0, self.aim.is_thorough() && self.failed == self.effort.excursions.len()) {
                (false, _) => "no action gains more than the tolerance",
                (true, true) => "no action gains more than the tolerance, and holding the noise low, then high, has not helped",
                (true, false) => "no action gains more than the tolerance, and the last reheat allowed is done",
            };
            return Ok(());
        }
        self.excursions += 1;
        let (factor, active) = match self.effort.excursions[self.failed] {
            Excursion::Noise(factor) => (factor, &self.now.active[..]),
            Excursion::Anew => (1.0, &[][..]),
        };
        let held: Vec<Noise> = self.now.beta.iter().map(|beta| Noise::Fixed(factor * beta)).collect();
        let a: Vec<f64> = self.now.a.iter().take(active.len()).map(|a| a / factor).collect();
        match work.solve(active, &a, &held, At::Best, Some(&self.now)) {
            Ok(other) => {
                self.kept = Some(self.now.clone());
                self.enter(Phase::Held, held, other);
                Ok(())
            }
            Err(_) => {
                self.failed += 1;
                self.excursion(work)
            }
        }
    }

    /// The model of the held noise is at rest: free the noise.
    pub(super) fn free(&mut self, work: &Workspace<'p>) -> Result<()> {
        let noise = work.problem.table.noise.clone();
        let mut free = work.solve(&self.now.active, &self.now.a, &noise, At::Best, Some(&self.now))?;
        self.noise = noise.clone();
        if self.settings.joint {
            self.joint_tolerance = LOOSE;
            free = self.joint(work, free)?;
        }
        self.enter(Phase::Freed, noise, free);
        Ok(())
    }

    /// The excursion is over: keep what it found if that is better, and look for the next one.
    pub(super) fn judge(&mut self, work: &Workspace<'p>) -> Result<()> {
        let kept = self.kept.take().expect("an excursion keeps the model it left");
        self.failed = if self.now.log_evidence - kept.log_evidence > EXCURSION_GAIN { 0 } else { self.failed + 1 };
        match kept.log_evidence >= self.now.log_evidence {
            true => self.now = kept,
            false => self.climbed = true,
        }
        self.factor = None;
        self.phase = Phase::Climb;
        self.excursion(work)
    }
}
