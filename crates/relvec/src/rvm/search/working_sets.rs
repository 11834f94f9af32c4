//! Working sets for dictionaries that are too large for one scaled problem (column generation). The search works on
//! some of the candidates. A scan over all candidates then computes their exact gains, and the best ones enter the next
//! working set.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::error::Result;
use crate::report::Certificate;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::candidate_scan;
use crate::rvm::search::fit_run::{SearchEffort, WarmStart};
use crate::rvm::settings::dictionary::{AUTO_LANDMARKS, Landmarks};
use crate::rvm::settings::search::PART;

/// Least number of candidates in a working set for each relevance vector of the model.
const PER_VECTOR: usize = 4;
/// Rise of the log evidence in one working set, in nats for each 1,000 rows, below which growth ends.
const LEAST_RISE: f64 = 0.05;

/// Purpose of the search in a working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Add candidates that raise the evidence.
    Grow,
    /// Make noise restarts in a working set of twice the size, after growth has gained little.
    Restart,
    /// Add the candidates that raise the evidence after a restart, until there are none.
    Last,
}

/// The working sets of one fit.
#[derive(Debug)]
pub(crate) struct WorkingSets {
    /// All candidates, ascending.
    candidates: Vec<usize>,
    /// True if all candidates are one working set.
    whole: bool,
    /// True if a search of all candidates makes one noise restart at most.
    brief: bool,
    round: Round,
    random: Pcg64,
    /// Log evidence of the model of the last working set, in internal units.
    log_evidence: f64,
    /// Number of scans over all candidates.
    scans: usize,
    /// Largest gain that the last scan found outside the working set.
    largest_outside: f64,
}

impl WorkingSets {
    /// Returns the working sets of a training set, and the candidates of the first one, which include those in `keep`.
    /// If `brief` is true, a search of all candidates makes one noise restart at most.
    pub fn new(training: &TrainingSet, keep: &[usize], brief: bool) -> (WorkingSets, Vec<usize>) {
        let candidates = training.dictionary();
        // Without rows, candidates that are not in the sums cannot be evaluated.
        let whole = candidates.len() <= WorkingSets::most(training) || training.rows.nrows() == 0;
        let first = if whole { candidates.clone() } else { some(&candidates, PART, training.rvm.seed) };
        let working_sets = WorkingSets {
            candidates,
            whole,
            brief,
            round: Round::Grow,
            random: Pcg64::seed_from_u64(training.rvm.seed),
            log_evidence: f64::NEG_INFINITY,
            scans: 0,
            largest_outside: 0.0,
        };
        (working_sets, united(first, keep))
    }

    /// Returns the largest number of candidates that are searched as one working set.
    fn most(training: &TrainingSet) -> usize {
        training.rvm.inference.as_dyn().most_columns(training.rvm.likelihood.as_dyn().constant_curvature()).unwrap_or(usize::MAX)
    }

    /// Returns the number of candidates in the first working set.
    pub fn first_size(training: &TrainingSet) -> usize {
        let all = training.dictionary_size();
        if all > WorkingSets::most(training) { PART } else { all }
    }

    /// Returns the size of a working set for a model with `vectors` relevance vectors.
    fn size(vectors: usize) -> usize {
        PART.max(PER_VECTOR * vectors)
    }

    /// Adds the results of the candidate scans to the certificate of the search in the last working set. The largest
    /// gain covers all candidates only if the fit is `complete`.
    pub fn certify(&self, certificate: &mut Certificate, complete: bool) {
        if self.whole {
            return;
        }
        if complete {
            certificate.largest_gain = certificate.largest_gain.map(|gain| gain.max(self.largest_outside));
        }
        certificate.reason += &format!("; {} passes over all {} candidates", self.scans, self.candidates.len());
    }

    /// Returns the effort of the search in the present working set.
    pub fn effort(&self) -> SearchEffort {
        match self.whole {
            true if self.brief => SearchEffort::OneRestart,
            true => SearchEffort::Restarts,
            false if self.round == Round::Restart => SearchEffort::Restarts,
            false => SearchEffort::Converge,
        }
    }

    pub fn n_candidates(&self) -> usize {
        self.candidates.len()
    }

    /// Returns the next working set after the search in one has converged, or `None` if no candidate outside it gains
    /// more than `least` nats.
    ///
    /// # Errors
    /// Returns the errors of [`candidate_scan::gains`].
    pub fn next(&mut self, solver: &EvidenceSolver, solution: &ActivePosterior, least: f64) -> Result<Option<Vec<usize>>> {
        if self.whole {
            return Ok(None);
        }
        let (training, model) = (solver.problem.training, WarmStart::of(solver, solution).without_bias());
        let rise = solution.log_evidence - std::mem::replace(&mut self.log_evidence, solution.log_evidence);
        let size = WorkingSets::size(model.len());
        // If working sets would be that large, landmarks of all candidates are as good.
        if size >= AUTO_LANDMARKS
            && let Some(landmarks) = training.landmarks_instead(&self.candidates)
        {
            (self.candidates, self.whole) = (united(landmarks, &model), true);
            return Ok(Some(self.candidates.clone()));
        }
        if size >= self.candidates.len() {
            self.whole = true;
            return Ok(Some(self.candidates.clone()));
        }
        let gains = candidate_scan::gains(solver, solution, &self.candidates)?;
        self.scans += 1;
        let inside = &solver.problem.candidates;
        let mut outside: Vec<(usize, f64)> = self
            .candidates
            .iter()
            .copied()
            .zip(gains)
            .filter(|(candidate, _)| inside.binary_search(candidate).is_err())
            .collect();
        self.largest_outside = outside.iter().map(|(_, gain)| *gain).fold(0.0, f64::max);
        let enough = least.max(LEAST_RISE * (training.count / 1000.0).max(1.0));
        let (helps, gained) = (self.largest_outside > least, rise >= enough);
        // A restart fixes the noise, which is possible only if it is learned.
        let restarts = solver.problem.constant_curvature() && training.noise.iter().any(NoisePrecision::is_learned);
        self.round = match self.round {
            Round::Grow if helps && gained => Round::Grow,
            Round::Grow if restarts => Round::Restart,
            Round::Restart if gained => Round::Grow,
            _ if helps && rise >= least => Round::Last,
            _ => return Ok(None),
        };
        // Candidates with a gain enter first. Random ones fill the rest, because the best candidates are often
        // neighbours.
        outside.shuffle(&mut self.random);
        outside.sort_by(|x, y| y.1.total_cmp(&x.1));
        let size = if self.round == Round::Restart { (2 * size).min(self.candidates.len()) } else { size };
        let others: Vec<usize> = outside.into_iter().take(size - model.len()).map(|(candidate, _)| candidate).collect();
        Ok(Some(united(others, &model)))
    }
}

/// Returns `size` of the candidates `among`, drawn uniformly at random, ascending.
fn some(among: &[usize], size: usize, seed: u64) -> Vec<usize> {
    Landmarks::any(among.len(), size, seed).into_iter().map(|k| among[k]).collect()
}

/// Returns the union of both lists, ascending.
fn united(mut some: Vec<usize>, others: &[usize]) -> Vec<usize> {
    some.extend(others);
    some.sort_unstable();
    some.dedup();
    some
}
