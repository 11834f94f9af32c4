//! The ways to a first model: given, empty, or all columns at once, which die down to few.

use rand::SeedableRng;
use rand::seq::index;

use super::{BRISK, Effort, FULLER, FULLEST, LOOSE, Phase, ROUGH_STEP, Search, THOROUGH, THOROUGH_COLUMNS, TOP_DOWN};
use crate::error::{Error, Result};
use crate::report::Actions;
use crate::rvm::batch::Batch;
use crate::rvm::bound::Bound;
use crate::rvm::gain::Noise;
use crate::rvm::problem::DENSE;
use crate::rvm::scheme::{Aim, Entry};
use crate::rvm::sequential::{Sequential, Start};
use crate::rvm::solution::{At, Solution, typical};
use crate::rvm::workspace::Workspace;

/// Noise of the first model, in standard deviations of the target.
const FIRST_NOISE: f64 = 0.1;
/// To begin anew where the model has so few columns takes next to no time, and so small a model may be a poor one.
const FEW: usize = 50;
/// The top-down start ends when no log precision moves by more than this.
const TOP_DOWN_TOLERANCE: f64 = 1e-2;
/// It goes on while more than one column in so many leaves.
const SHRINKS: usize = 50;

impl<'p> Search<'p> {
    pub fn start(work: &Workspace<'p>, settings: &Sequential, entry: &Entry) -> Result<Search<'p>> {
        let problem = work.problem;
        let noise = problem.table.noise.clone();
        let at_first = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let (active, alpha, beta, phase): (_, Vec<f64>, Vec<f64>, _) = match &settings.start {
            _ if problem.table.bias_only => {
                let alpha = problem.first_precisions(&[0], 1.0 / problem.table.count);
                (vec![0], alpha, at_first(), Phase::Climb)
            }
            _ if entry.from.is_some() => {
                let warm = entry.from.as_ref().expect("just asked");
                let unit = typical(&warm.beta);
                // Where a mode is dear to seek, what there is already is the first line of the trace.
                let phase = if warm.mean.is_some() || warm.mode.is_some() { Phase::Found } else { Phase::Climb };
                (warm.columns(work), warm.a.iter().map(|a| a * unit).collect(), warm.beta.clone(), phase)
            }
            Start::Given(hyperparameters) => {
                let (active, alpha, beta) = hyperparameters.inner(problem)?;
                (active, alpha, beta, Phase::Climb)
            }
            Start::Auto if problem.constant_curvature() => {
                let mut active = problem.usable();
                let affordable = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize;
                if active.len() > affordable {
                    let mut random = rand_pcg::Pcg64::seed_from_u64(problem.table.rvm.seed);
                    let mut sample = index::sample(&mut random, active.len(), affordable).into_vec();
                    sample.sort_unstable();
                    active = sample.into_iter().map(|k| active[k]).collect();
                }
                let first = |noise: &Noise| match *noise {
                    Noise::Fixed(beta) => beta,
                    Noise::Learnt { cap, .. } => (1.0 / (FIRST_NOISE * FIRST_NOISE)).min(cap),
                };
                let beta = noise.iter().map(first).collect();
                let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
                (active, alpha, beta, Phase::TopDown)
            }
            Start::Auto if Bound::pays(problem) || problem.table.rvm.likelihood.as_dyn().counts() => {
                let active = if problem.has_bias { vec![0] } else { vec![] };
                let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
                let phase = if Bound::pays(problem) { Phase::First } else { Phase::Climb };
                (active, alpha, at_first(), phase)
            }
            Start::Auto | Start::Empty => (vec![], vec![], at_first(), Phase::Climb),
        };
        let unit = typical(&beta);
        let a: Vec<f64> = alpha.iter().map(|x| x / unit).collect();
        let at = if phase == Phase::TopDown { At::Precision(&beta) } else { At::Best };
        // The mode of several classes is far to seek, but for who has been there.
        let there = entry.from.as_ref().and_then(|warm| warm.mode.clone());
        let there = there.map(|mode| Solution::clone(&mode).renamed(active.clone(), None));
        let now = match (there, entry.from.as_ref().and_then(|warm| warm.mean.as_ref())) {
            (Some(there), _) if there.a == a => there,
            (_, Some(mean)) => work.solve_near(&active, &a, mean)?,
            (there, None) => work.solve(&active, &a, &noise, at, there.as_ref())?,
        };
        let most = match entry.aim {
            Aim::Thorough | Aim::Exhaustive => settings.reheats,
            Aim::Fuller | Aim::Fullest => 1,
            Aim::Rough | Aim::Rest => 0,
        };
        let effort = if problem.design.n_columns() <= THOROUGH_COLUMNS { THOROUGH } else { BRISK };
        Ok(Search {
            settings: Sequential { reheats: settings.reheats.min(most), ..settings.clone() },
            effort: match entry.aim {
                Aim::Rough => Effort { top_down_step: ROUGH_STEP, ..BRISK },
                Aim::Fuller => FULLER,
                Aim::Fullest => FULLEST,
                Aim::Thorough if active.len() > FEW => effort.of_model(),
                Aim::Rest | Aim::Thorough | Aim::Exhaustive => effort,
            },
            aim: entry.aim,
            phase,
            noise,
            now,
            factor: None,
            barred: vec![false; problem.design.n_columns()],
            retry: vec![0.0; problem.design.n_columns()],
            single: false,
            joint_tolerance: LOOSE,
            rest: f64::NEG_INFINITY,
            needed: vec![],
            refused: 0,
            moving: !problem.constant_curvature(),
            futile: 0,
            slow: false,
            many: Bound::pays(problem),
            holds: Bound::pays(problem) && settings.joint && settings.batch > 1,
            tried_all: phase == Phase::First,
            promised: 0.0,
            outside: vec![1.0; problem.design.n_columns()],
            looks: 0,
            kept: None,
            climbed: entry.from.is_none() || !entry.aim.is_passing(),
            best_rise: 0.0,
            excursions: 0,
            failed: 0,
            full: false,
            actions: Actions::default(),
            reason: "",
        })
    }

    /// One re-estimation of all precisions of the start; dies down to a sparse model by itself.
    pub(super) fn top_down(&mut self, work: &Workspace<'p>) -> Result<()> {
        let batch = Batch { clip: self.effort.top_down_step, ..TOP_DOWN };
        match batch.step(work, &self.noise, &self.now)? {
            Some(step) => {
                let rise = step.solution.log_evidence - self.now.log_evidence;
                // As long as columns leave, each step takes less time than the last.
                let shrinks = self.now.active.len() - step.solution.active.len() > self.now.active.len() / SHRINKS;
                self.now = step.solution;
                if step.change < TOP_DOWN_TOLERANCE || self.is_slow(work, rise) && !shrinks {
                    self.begin_climb(work)?;
                }
            }
            None => self.begin_climb(work)?,
        }
        Ok(())
    }

    /// Where no basis function alone is of use, all of them together may be: of wide kernels, or with an offset, each is
    /// nearly constant, and only differences of several tell classes apart. Then the start with bounded curvature is
    /// tried as well, once.
    pub(super) fn try_all(&mut self, work: &Workspace<'p>) -> bool {
        let problem = work.problem;
        let bare = self.now.active.iter().all(|j| *j < usize::from(problem.has_bias));
        let again = bare && !self.tried_all && !problem.table.bias_only && self.settings.start == Start::Auto;
        self.tried_all |= bare;
        if again && problem.table.outputs == 1 && Bound::fits(problem) {
            self.enter(Phase::Bound, self.noise.clone(), self.now.clone());
            return true;
        }
        false
    }

    /// The start with bounded curvature.
    pub(super) fn bounded(&mut self, work: &Workspace<'p>) -> Result<()> {
        let batch = Batch { clip: self.effort.top_down_step, ..TOP_DOWN };
        self.phase = Phase::Settle;
        let Some(left) = Bound::model(work.problem, &batch)? else { return Ok(()) };
        match work.solve(&left.active, &left.a, &self.noise, At::Best, Some(&left)) {
            Ok(next) if next.log_evidence > self.now.log_evidence => self.now = next,
            // Nothing gained: on from the first model.
            Ok(_) | Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn begin_climb(&mut self, work: &Workspace<'p>) -> Result<()> {
        let (active, a) = (self.now.active.clone(), self.now.a.clone());
        let best = work.solve(&active, &a, &self.noise, At::Best, Some(&self.now))?;
        if best.log_evidence >= self.now.log_evidence {
            self.now = best;
        }
        self.phase = Phase::Climb;
        // Of a large model actions gain more in the same time.
        if self.settings.joint && !self.is_heavy() {
            self.now = self.joint(work, self.now.clone())?;
        }
        Ok(())
    }
}
