//! A start for likelihoods whose curvature has an upper bound b: with b for the curvature, (M14a), all columns
//! die down to few as with Gaussian noise of precision b, from one G that is made once.
//!
//! What is maximised is a lower bound of the evidence: each refresh of the linear term and each update of the
//! precisions raises it. What it leaves behind is where the search with the true curvature begins.

use std::rc::Rc;

use ndarray::{Array1, Array2};

use super::batch::Batch;
use super::gain::Noise;
use super::problem::{DENSE, Problem};
use super::slopes::{Phi, Slopes, Want};
use super::solution::{At, Solution};
use super::workspace::Workspace;
use crate::error::Result;
use crate::quadratic::Quadratic;

/// It pays from so many rows, and so many entries of Phi.
const LEAST_ROWS: usize = 10_000;
const LEAST_ENTRIES: usize = 1_000_000;
/// Updates of the precisions for each refresh of the linear term, and refreshes at most.
const UPDATES: usize = 3;
const MAX_REFRESHES: usize = 60;
/// At rest when no log precision moves by more, and a refresh gains no more than this for each 1000 rows.
const TOLERANCE: f64 = 1e-2;
const LEAST_RISE: f64 = 1e-3;
/// Columns of the model are kept if they take at most this part of the memory left.
const KEPT_SHARE: u64 = 4;

/// The bounded problem under way.
pub(crate) struct Bound<'p> {
    /// The Gaussian problem that stands for the likelihood.
    work: Workspace<'p>,
    curvature: f64,
    now: Solution,
    /// Phi of these columns, some of them gone from the model since.
    kept: Option<(Vec<usize>, Rc<Array2<f64>>)>,
    value: f64,
    refreshes: usize,
}

impl Bound<'_> {
    /// Whether a search in this problem had better begin so.
    pub fn pays(problem: &Problem) -> bool {
        let (n, p) = (problem.n_rows(), problem.design.n_columns());
        n >= LEAST_ROWS && n * p >= LEAST_ENTRIES && Bound::fits(problem)
    }

    /// Whether one can: the curvature moves, and has a bound; and there is room for G.
    pub fn fits(problem: &Problem) -> bool {
        let p = problem.design.n_columns() as u64;
        let bounded = problem.table.rvm.likelihood.as_dyn().largest_curvature().is_some();
        bounded && !problem.constant_curvature() && 8 * p * p * (DENSE + 2) <= problem.room()
    }

    /// The model that all columns die down to; nothing where the likelihood has no bound.
    pub fn model(problem: &Problem, batch: &Batch) -> Result<Option<Solution>> {
        let Some(mut bound) = Bound::begin(problem)? else { return Ok(None) };
        while !bound.step(batch)? {}
        Ok(Some(bound.now))
    }

    /// One pass for G.
    fn begin<'a>(problem: &'a Problem<'a>) -> Result<Option<Bound<'a>>> {
        let Some(curvature) = problem.table.rvm.likelihood.as_dyn().largest_curvature() else { return Ok(None) };
        let mut sums = problem.sums()?;
        sums.gram *= curvature;
        let work = Workspace::of(problem, Quadratic::stored(sums, None));
        let active = problem.usable();
        let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
        // The first refresh puts the target right.
        let mut now = work.solve(&active, &alpha, &[NOISE], At::Precision(&[1.0]), None)?;
        now.mean = vec![0.0; active.len()];
        Ok(Some(Bound { work, curvature, now, kept: None, value: f64::NEG_INFINITY, refreshes: 0 }))
    }

    /// One refresh of the linear term, a few updates of the precisions; whether it is at rest.
    fn step(&mut self, batch: &Batch) -> Result<bool> {
        let constant = self.refresh()?;
        self.refreshes += 1;
        let before = std::mem::replace(&mut self.value, self.now.log_evidence + constant);
        let rise = self.value - before;
        let mut largest = 0.0f64;
        for _ in 0..UPDATES {
            let Some(step) = batch.step(&self.work, &[NOISE], &self.now)? else { break };
            self.now = step.solution;
            largest = largest.max(step.change);
            if step.change < TOLERANCE {
                break;
            }
        }
        self.value = self.now.log_evidence + constant;
        let least = LEAST_RISE * (self.work.problem.table.count / 1000.0).max(1.0);
        Ok((largest < TOLERANCE && rise < least) || self.refreshes >= MAX_REFRESHES)
    }

    /// The linear term at the present mean, and the posterior with it. Returns what the log evidence of the
    /// Gaussian problem lacks to be a lower bound of that of the likelihood.
    fn refresh(&mut self) -> Result<f64> {
        let problem = self.work.problem;
        let (active, b) = (self.now.active.clone(), self.curvature);
        let slopes = self.slopes()?;
        let mut f = vec![0.0; problem.design.n_columns()];
        let mu = Array1::from_vec(self.now.mean.clone());
        let pulled = self.work.quadratic(&self.now)?.dense(&active).dot(&mu);
        active.iter().zip(pulled.iter().zip(&slopes.slope)).for_each(|(j, (p, s))| f[*j] = p + s);
        // The targets f + r / b with precisions b.
        let tt = mu.dot(&pulled) + 2.0 * mu.dot(&slopes.slope) + slopes.squares / b;
        self.work.set_target(f, tt);
        let (a, before) = (self.now.a.clone(), &self.now);
        self.now = self.work.solve(&active, &a, &[NOISE], At::Precision(&[1.0]), Some(before))?;
        let normal = 0.5 * problem.table.count * (2.0 * std::f64::consts::PI).ln();
        Ok(normal + slopes.log_likelihood + 0.5 * slopes.squares / b)
    }

    /// The sums over the rows at the present mean, for the active columns.
    fn slopes(&mut self) -> Result<Slopes> {
        let problem = self.work.problem;
        let active = &self.now.active;
        let crowd = self.kept.as_ref().map_or(problem.design.n_columns(), |(columns, _)| columns.len());
        let bytes = 8 * (problem.design.n_rows() * active.len()) as u64;
        let keeps = problem.table.blocks.is_none() && bytes <= problem.room() / KEPT_SHARE;
        if keeps && 2 * active.len() <= crowd {
            // What is kept goes first.
            self.kept = None;
            self.kept = Some((active.clone(), Rc::new(problem.design.select(active))));
        }
        let Some((columns, phi)) = &self.kept else {
            let phi = Phi::Made { problem, columns: active.into() };
            return phi.slopes(problem, (&self.now.mean[..]).into(), Want::Slope);
        };
        let mut w = Array1::zeros(columns.len());
        // Both lists are ascending, and columns only go.
        let places: Vec<usize> = active.iter().map(|j| columns.binary_search(j).expect("a column does not come back")).collect();
        places.iter().zip(&self.now.mean).for_each(|(k, v)| w[*k] = *v);
        let mut slopes = Phi::Kept(phi.clone()).slopes(problem, w.view(), Want::Slope)?;
        slopes.slope = places.iter().map(|k| slopes.slope[*k]).collect();
        Ok(slopes)
    }
}

const NOISE: Noise = Noise::Fixed(1.0);
