//! Dictionaries too large for one problem: the search works on a part, a pass over all candidates finds
//! those that would raise the evidence, exactly, and they make up the next part.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::error::Result;
use crate::report::Certificate;
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::table::Table;
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::all_sums::AllSums;
use crate::rvm::gram::problem::{Problem, keeps_sums};
use crate::rvm::search::rounds::{Anew, Rounds};
use crate::rvm::search::run::{Aim, Warm};
use crate::rvm::search::score::Passes;
use crate::rvm::settings::dictionary::Landmarks;
use crate::sums::Sums;

/// Noise precisions at which entering candidates are ranked, over the present one: that of most excursions.
const HELD: f64 = 3.0;
/// The share of entering candidates that come by rank.
const BEST: f64 = 0.5;
/// Candidates of a part in which no way is to be left untried, at least.
const THOROUGH: usize = 400;
/// A part of which more than this share is in the model is crowded. Up to so many candidates are then better
/// searched all at once.
const CROWDED: f64 = 0.3;
/// Share of a first part, which is small, above which it is crowded: a model may also be poor for lack of columns.
const CROWDED_FIRST: f64 = 0.1;
const MOST_WHOLE: u64 = 5000;
/// Candidates of a part at most where its sums are a copy of those of all candidates: then the search in it is all that
/// it costs, and that grows with the cube.
const COPIED: usize = 700;
/// Candidates in a part for each that is in the model, at least; and where the search is to go far, up to so many in all.
const PER_VECTOR: usize = 4;
const MORE_PER_VECTOR: usize = 8;
const MOST_MORE: usize = 2000;

/// The candidates of the next part, ascending, and the model to go on from.
pub(crate) type Next = (Vec<usize>, Option<Warm>);

/// The parts of one fit.
#[derive(Debug)]
pub(crate) struct Parts {
    /// All candidates, ascending places.
    candidates: Vec<usize>,
    /// Candidates of one part, what may follow, and when all are one part.
    size: usize,
    larger: &'static [usize],
    pub whole: bool,
    /// Rounds in which unused landmarks are replaced by other rows.
    refresh: usize,
    random: Pcg64,
    rounds: Rounds,
    /// Whether a search begins with all columns of its part.
    begins_anew: bool,
    /// Whether the search in this part is a cold restart, from all of its columns.
    anew: bool,
    beginnings: Anew,
    /// The best model of any part, and its log evidence.
    best: Option<(Warm, f64)>,
    passes: usize,
    /// Whether the sums of all candidates are worth making, or were.
    pays_all: bool,
    scores: Passes,
    /// The largest gain that the last pass found outside its part.
    left: f64,
}

impl Parts {
    /// The parts of a table, and the first of them. `fresh`: no model to go on from; `brief`: one excursion where all
    /// is one part.
    pub fn new(table: &Table, keep: &[usize], fresh: bool, brief: bool) -> (Parts, Vec<usize>) {
        let candidates = table.dictionary();
        let scheme = table.rvm.inference.as_dyn();
        let constant = table.rvm.likelihood.as_dyn().constant_curvature();
        let most = scheme.most_columns(constant).unwrap_or(usize::MAX);
        // Without rows nothing can be said of candidates that are not in the sums.
        let whole = candidates.len() <= most || table.rows.nrows() == 0;
        let sizes = scheme.parts(constant);
        let size = if whole { candidates.len() } else { sizes[0] };
        let mut first = if whole { candidates.clone() } else { any(&candidates, size, table.rvm.seed) };
        first.extend(keep);
        first.sort_unstable();
        first.dedup();
        let begins_anew = fresh && scheme.begins_anew(constant);
        let scores = if whole { Passes::default() } else { Passes::of(table, candidates.len()) };
        let parts = Parts {
            candidates,
            size,
            larger: sizes.get(1..).unwrap_or(&[]),
            whole,
            refresh: table.rvm.refresh,
            random: Pcg64::seed_from_u64(table.rvm.seed),
            rounds: if whole { Rounds::whole(brief) } else { Rounds::of_parts(constant) },
            begins_anew,
            anew: !whole && begins_anew,
            beginnings: Anew::default(),
            best: None,
            passes: 0,
            pays_all: false,
            scores,
            left: 0.0,
        };
        (parts, first)
    }

    /// Candidates of the first part.
    pub fn first_size(table: &Table) -> usize {
        let scheme = table.rvm.inference.as_dyn();
        let constant = table.rvm.likelihood.as_dyn().constant_curvature();
        match (table.dictionary_size(), scheme.most_columns(constant)) {
            (all, Some(most)) if all > most => scheme.parts(constant)[0],
            (all, _) => all,
        }
    }

    /// The problem of a part, and its sums if they are kept.
    pub fn problem<'t>(&mut self, table: &'t Table<'t>, places: Vec<usize>) -> Result<(Problem<'t>, Option<Sums>)> {
        let known = if keeps_sums(table, places.len()) { self.sums(table, &places)? } else { None };
        let Some(sums) = known else { return Problem::new(table, places) };
        let (problem, sums) = Problem::beside_rows(table, places, sums);
        table.interrupt.check()?;
        Ok((problem, Some(sums)))
    }

    /// The sums of a part, if they are to be had without a whole pass over the rows.
    fn sums(&mut self, table: &Table, places: &[usize]) -> Result<Option<Sums>> {
        if self.pays_all && self.scores.all.is_none() {
            self.scores.all = AllSums::of(table, &self.candidates)?;
            self.pays_all = self.scores.all.is_some();
        }
        let of_all = self.scores.all.as_ref().and_then(|all| all.sums_of(places));
        match of_all.or_else(|| self.scores.factor.as_ref()?.sums_of(table, places)) {
            None => self.scores.sums_of(table, &self.candidates, places),
            known => Ok(known),
        }
    }

    /// What a pass over all candidates adds to the certificate of the search in the last part.
    pub fn certify(&self, certificate: &mut Certificate, complete: bool) {
        if complete {
            certificate.largest_gain = certificate.largest_gain.map(|gain| gain.max(self.left));
            certificate.reason += &format!("; {} passes over all {} candidates", self.passes, self.candidates.len());
        } else {
            certificate.reason += &format!("; among {} of {} candidates", self.size, self.candidates.len());
        }
    }

    /// The best model of all parts, if it is not that of the last search, which ended at that log evidence.
    pub fn better_than(&self, log_evidence: f64) -> Option<Warm> {
        let above = |value: f64| value - log_evidence > 1e-9 * value.abs().max(1.0);
        self.best.as_ref().filter(|(_, value)| above(*value)).map(|(warm, _)| warm.clone())
    }

    /// The best model of the parts so far.
    pub fn best(&self) -> Option<Warm> {
        self.best.as_ref().map(|(warm, _)| warm.clone())
    }

    /// A larger part, if the model takes up so much of the present one that it needs more room: the next
    /// size; or all candidates, if G of them, and what a search needs beside it, fit into memory; or, where
    /// the choice is ours, landmarks instead of them all.
    fn enlarged(&mut self, table: &Table, warm: &Warm) -> Option<Vec<usize>> {
        let mut kept = warm.kept();
        let crowded = if self.larger.is_empty() { CROWDED } else { CROWDED_FIRST };
        if kept.len() as f64 <= crowded * self.size as f64 || self.passes > 0 {
            return None;
        }
        let p = self.candidates.len() as u64;
        let fits = 8 * p * p * (1 + DENSE) <= table.memory_limit.saturating_sub(table.taken);
        if let Some((size, larger)) = self.larger.split_first() {
            // Small parts are mostly all that it takes, and a search that goes on from a model takes few.
            let many_parts = self.begins_anew && self.scores.factor.is_none();
            self.pays_all = many_parts && AllSums::pay(table, self.candidates.len());
            (self.size, self.larger) = (if self.pays_all { COPIED.min(*size) } else { *size }, larger);
            kept.extend(any(&self.candidates, self.size, table.rvm.seed));
        } else if p <= MOST_WHOLE && fits && self.begins_anew {
            (self.whole, self.rounds) = (true, Rounds::whole(false));
            kept.clone_from(&self.candidates);
        } else {
            // Beside what is in the model: the search may go on from it.
            kept.extend(table.landmarks_instead(&self.candidates)?);
            (self.whole, self.rounds) = (true, Rounds::whole(false));
        }
        kept.sort_unstable();
        kept.dedup();
        if self.whole {
            self.candidates.clone_from(&kept);
        }
        Some(kept)
    }

    /// How far the search in the present part goes.
    pub fn aim(&self) -> Aim {
        if self.anew { Aim::Rough } else { self.rounds.aim() }
    }

    pub fn n_candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The part to go on with after the search in one has converged, and the model to go on from (`None`: a cold
    /// restart); nothing if no candidate outside it would help.
    pub fn next(&mut self, work: &Workspace, solution: &Solution, least: f64) -> Result<Option<Next>> {
        let warm = Warm::of(work, solution);
        if self.whole {
            // A part may have led further than all candidates at once: then that is where to go on.
            if let Some(best) = self.better_than(solution.log_evidence) {
                self.best = None;
                return Ok(Some((self.candidates.clone(), Some(best))));
            }
            return Ok(self.refreshed(work.problem.table, &warm).map(|places| (places, Some(warm))));
        }
        let (rows, count) = (work.problem.table.rows.nrows(), work.problem.table.count);
        let anew = std::mem::replace(&mut self.anew, false);
        let rise = solution.log_evidence - self.best.as_ref().map_or(f64::NEG_INFINITY, |(_, value)| *value);
        if let Some((best, _)) = self.best.as_ref().filter(|_| anew && rise <= 0.0) {
            // Beginning anew did not pay. Another try, or from here on the best model grows, first by what
            // this one had.
            let (best, both) = (best.clone(), [best.kept(), warm.kept()].concat());
            self.anew = self.beginnings.go_on(rise, self.passes, rows);
            let size = if self.anew { self.size } else { self.size_around(best.places.len()) };
            return Ok(Some((self.drawn(both, size), (!self.anew).then_some(best))));
        }
        self.best = Some((warm.clone(), solution.log_evidence));
        // What helps by its promise has been tried, and has not kept it.
        if rise < least && solution.is_ample() {
            return Ok(None);
        }
        if let Some(places) = self.enlarged(work.problem.table, &warm) {
            self.anew = self.begins_anew && !self.whole;
            return Ok(Some((places, (!self.begins_anew).then_some(warm))));
        }
        self.anew = self.beginnings.go_on(rise, self.passes, rows) && anew;
        let gains = self.scores.gains(work, solution, &self.candidates, HELD)?;
        self.passes += 1;
        let inside = &work.problem.places;
        let mut ranked: Vec<(usize, f64, f64)> = self.candidates.iter().zip(&gains).map(|(p, g)| (*p, g.0, g.1)).collect();
        ranked.retain(|(p, ..)| inside.binary_search(p).is_err());
        self.left = ranked.iter().map(|g| g.1).fold(0.0, f64::max);
        let helpful = ranked.iter().filter(|g| g.1 > least).count();
        // After those begun anew the first that does not looks as far as it can.
        let gained = if anew { f64::INFINITY } else { rise };
        if !self.anew && !self.rounds.go_on(gained, helpful, least, rows, count) {
            return Ok(None);
        }
        let mut places = warm.kept();
        let room = self.size_around(places.len()) - places.len();
        // First what helps now; then a share of the room for what would help most a model of less noise, and the
        // rest for any, since the best are often neighbours.
        ranked.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0)));
        let (now, rest) = ranked.split_at_mut(helpful.min(room));
        rest.sort_by(|x, y| y.2.total_cmp(&x.2).then(x.0.cmp(&y.0)));
        let spare = room - now.len();
        let (best, rest) = rest.split_at_mut(rest.len().min((BEST * spare as f64) as usize));
        rest.shuffle(&mut self.random);
        places.extend(now.iter().chain(best.iter()).chain(rest.iter()).take(room).map(|r| r.0));
        places.sort_unstable();
        places.dedup();
        Ok(Some((places, (!self.anew).then_some(warm))))
    }

    /// Candidates of the next part if a model of so many is among them.
    fn size_around(&self, vectors: usize) -> usize {
        let least = match self.aim() {
            Aim::Thorough => THOROUGH,
            Aim::Fullest => MOST_MORE.min(MORE_PER_VECTOR * vectors),
            _ => 0,
        };
        self.size.max(least).max(PER_VECTOR * vectors)
    }

    /// A part of `kept` and, up to that size, any others; ascending.
    fn drawn(&mut self, mut kept: Vec<usize>, size: usize) -> Vec<usize> {
        let room = size.saturating_sub(kept.len()).min(self.candidates.len());
        kept.extend(self.candidates.partial_shuffle(&mut self.random, room).0.iter().copied());
        self.candidates.sort_unstable();
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    /// Landmarks that the model does not use replaced by others, if a round is left.
    fn refreshed(&mut self, table: &Table, warm: &Warm) -> Option<Vec<usize>> {
        self.refresh = self.refresh.checked_sub(1)?;
        // Where all rows are landmarks there are no others.
        (self.candidates.len() < table.origin.len()).then_some(())?;
        let mut places = warm.kept();
        places.sort_unstable();
        let mut fresh: Vec<usize> = (0..table.origin.len()).filter(|p| places.binary_search(p).is_err()).collect();
        let room = self.size.saturating_sub(places.len()).min(fresh.len());
        if room == 0 {
            return None;
        }
        let (drawn, _) = fresh.partial_shuffle(&mut self.random, room);
        places.extend_from_slice(drawn);
        places.sort_unstable();
        Some(places)
    }
}

/// `size` of `among`, evenly at random, ascending.
fn any(among: &[usize], size: usize, seed: u64) -> Vec<usize> {
    Landmarks::any(among.len(), size, seed).into_iter().map(|k| among[k]).collect()
}
