//! Dictionaries too large for one problem: the search works on a part, a pass over all candidates finds
//! those that would raise the evidence, exactly, and they make up the next part.

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
use crate::rvm::search::fit_run::{Effort, WarmStart};
use crate::rvm::settings::dictionary::{AUTO_LANDMARKS, Landmarks};
use crate::rvm::settings::search::PART;

/// Candidates of a part for each that is in the model, at least.
const PER_VECTOR: usize = 4;
/// Nats that a part must gain, for each 1,000 rows, for growing to go on.
const LEAST_RISE: f64 = 0.05;

/// What the search in a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// What helps comes in.
    Grow,
    /// Excursions, in a part of twice the size, once growing gains little.
    Excursion,
    /// What helps after that comes in, until nothing does.
    Last,
}

/// The parts of one fit.
#[derive(Debug)]
pub(crate) struct WorkingSets {
    /// All candidates, ascending places.
    candidates: Vec<usize>,
    /// Whether they are one part.
    whole: bool,
    /// Whether a search in all of them makes one excursion at most.
    brief: bool,
    round: Round,
    /// Rounds in which unused landmarks are replaced by other rows.
    refresh: usize,
    random: Pcg64,
    /// Log evidence of the model of the last part.
    reached: f64,
    passes: usize,
    /// The largest gain that the last pass found outside its part.
    left: f64,
}

impl WorkingSets {
    /// The parts of a table, and the first of them, with the candidates `keep`. `brief`: one excursion where all is one part.
    pub fn new(training: &TrainingSet, keep: &[usize], brief: bool) -> (WorkingSets, Vec<usize>) {
        let candidates = training.dictionary();
        // Without rows nothing can be said of candidates that are not in the sums.
        let whole = candidates.len() <= WorkingSets::most(training) || training.rows.nrows() == 0;
        let first = if whole { candidates.clone() } else { some(&candidates, PART, training.rvm.seed) };
        let working_sets = WorkingSets {
            candidates,
            whole,
            brief,
            round: Round::Grow,
            refresh: training.rvm.refresh,
            random: Pcg64::seed_from_u64(training.rvm.seed),
            reached: f64::NEG_INFINITY,
            passes: 0,
            left: 0.0,
        };
        (working_sets, united(first, keep))
    }

    /// Most candidates of one problem.
    fn most(training: &TrainingSet) -> usize {
        training.rvm.inference.as_dyn().most_columns(training.rvm.likelihood.as_dyn().constant_curvature()).unwrap_or(usize::MAX)
    }

    /// Candidates of the first part.
    pub fn first_size(training: &TrainingSet) -> usize {
        let all = training.dictionary_size();
        if all > WorkingSets::most(training) { PART } else { all }
    }

    /// Candidates of a part around a model of so many.
    fn size(vectors: usize) -> usize {
        PART.max(PER_VECTOR * vectors)
    }

    /// What a pass over all candidates adds to the certificate of the search in the last part.
    pub fn certify(&self, certificate: &mut Certificate, complete: bool) {
        if self.whole {
            return;
        }
        if complete {
            certificate.largest_gain = certificate.largest_gain.map(|gain| gain.max(self.left));
        }
        certificate.reason += &format!("; {} passes over all {} candidates", self.passes, self.candidates.len());
    }

    /// How far the search in the present part goes.
    pub fn aim(&self) -> Effort {
        match self.whole {
            true if self.brief => Effort::Brief,
            true => Effort::Thorough,
            false if self.round == Round::Excursion => Effort::Thorough,
            false => Effort::Rest,
        }
    }

    pub fn n_candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The part to go on with after the search in one has converged; `None` if no candidate outside it would help.
    pub fn next(&mut self, solver: &EvidenceSolver, solution: &ActivePosterior, least: f64) -> Result<Option<Vec<usize>>> {
        let (training, model) = (solver.problem.training, WarmStart::of(solver, solution).kept());
        if self.whole {
            return Ok(self.refreshed(training, model));
        }
        let rise = solution.log_evidence - std::mem::replace(&mut self.reached, solution.log_evidence);
        let size = WorkingSets::size(model.len());
        // Where parts would be as large landmarks of all candidates do as well.
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
        self.passes += 1;
        let inside = &solver.problem.candidates;
        let mut outside: Vec<(usize, f64)> = self
            .candidates
            .iter()
            .copied()
            .zip(gains)
            .filter(|(candidate, _)| inside.binary_search(candidate).is_err())
            .collect();
        self.left = outside.iter().map(|(_, gain)| *gain).fold(0.0, f64::max);
        let enough = least.max(LEAST_RISE * (training.count / 1000.0).max(1.0));
        let (helps, gained) = (self.left > least, rise >= enough);
        // Excursions hold the noise low: where none is learnt there are none.
        let excursions = solver.problem.constant_curvature() && training.noise.iter().any(NoisePrecision::is_learnt);
        self.round = match self.round {
            Round::Grow if helps && gained => Round::Grow,
            Round::Grow if excursions => Round::Excursion,
            Round::Excursion if gained => Round::Grow,
            _ if helps && rise >= least => Round::Last,
            _ => return Ok(None),
        };
        // What helps comes first; any others fill the room, since the best are often neighbours.
        outside.shuffle(&mut self.random);
        outside.sort_by(|x, y| y.1.total_cmp(&x.1));
        let size = if self.round == Round::Excursion { (2 * size).min(self.candidates.len()) } else { size };
        let others: Vec<usize> = outside.into_iter().take(size - model.len()).map(|(candidate, _)| candidate).collect();
        Ok(Some(united(others, &model)))
    }

    /// The model and other landmarks in place of those that it does not use, if a round is left.
    fn refreshed(&mut self, training: &TrainingSet, model: Vec<usize>) -> Option<Vec<usize>> {
        self.refresh = self.refresh.checked_sub(1)?;
        // Where all rows are landmarks there are no others.
        (self.candidates.len() < training.origin.len()).then_some(())?;
        let mut fresh: Vec<usize> = (0..training.origin.len()).filter(|candidate| !model.contains(candidate)).collect();
        let room = self.candidates.len().saturating_sub(model.len()).min(fresh.len());
        let (drawn, _) = fresh.partial_shuffle(&mut self.random, room);
        (room > 0).then(|| united(drawn.to_vec(), &model))
    }
}

/// `size` of `among`, evenly at random, ascending.
fn some(among: &[usize], size: usize, seed: u64) -> Vec<usize> {
    Landmarks::any(among.len(), size, seed).into_iter().map(|k| among[k]).collect()
}

/// Both, each once, ascending.
fn united(mut some: Vec<usize>, others: &[usize]) -> Vec<usize> {
    some.extend(others);
    some.sort_unstable();
    some.dedup();
    some
}
