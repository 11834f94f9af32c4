//! A start for likelihoods whose curvature has an upper bound b: with b for the curvature, (M14a), all columns
//! die down to few as with Gaussian noise of precision b, from one G that is made once.
//!
//! What is maximised is a lower bound of the evidence: each refresh of the linear term and each update of the
//! precisions raises it. What it leaves behind is where the search with the true curvature begins; of many rows a
//! sample is enough for that.

use std::rc::Rc;

use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand::seq::index;

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
/// Of more rows than this a sample of so many is taken.
const MANY_ROWS: usize = 50_000;
const SAMPLE: usize = 20_000;
/// Until one column in so many is left.
const LEFT: usize = 5;
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

    /// The model that all columns die down to; nothing where the likelihood has no bound. Which columns are of least use
    /// a sample tells where the rows are many, all of them what becomes of the rest.
    pub fn model(problem: &Problem, batch: &Batch) -> Result<Option<Solution>> {
        let (n, p, d) = (problem.n_rows(), problem.design.n_columns(), problem.table.rows.ncols());
        let bytes = 8 * (p * p) as u64 * (DENSE + 2) + 8 * (SAMPLE * (d + 4) + p * d) as u64;
        if n <= MANY_ROWS || bytes > problem.room() {
            return Bound::run(problem, None, batch, 0);
        }
        let room = problem.room() - bytes;
        let mut random = rand_pcg::Pcg64::seed_from_u64(problem.table.rvm.seed);
        let mut rows = index::sample(&mut random, n, SAMPLE).into_vec();
        rows.sort_unstable();
        let names = with_bias(problem, &problem.usable());
        let table = problem.table.sample(&places(problem, &names), &rows, room)?;
        let (sample, _) = Problem::new(&table, (0..table.origin.len()).collect())?;
        let Some(left) = Bound::run(&sample, None, batch, p / LEFT)? else { return Ok(None) };
        let left = carried(left, &sample, problem, |k| names[k]);
        drop(sample);

        let names = with_bias(problem, &left.active);
        let table = problem.table.beside(room);
        let (few, _) = Problem::new(&table, places(problem, &names))?;
        let left = carried(left, problem, &few, |j| names.binary_search(&j).expect("one of those that are left"));
        let model = Bound::run(&few, Some(left), batch, 0)?;
        Ok(model.map(|model| carried(model, &few, problem, |k| names[k])))
    }

    /// From all columns, or from a model, until at rest or until no more than so many columns are left.
    fn run(problem: &Problem, start: Option<Solution>, batch: &Batch, most: usize) -> Result<Option<Solution>> {
        let Some(mut bound) = Bound::begin(problem, start)? else { return Ok(None) };
        while !bound.step(batch)? && bound.now.active.len() > most {}
        Ok(Some(bound.now))
    }

    /// One pass for G.
    fn begin<'a>(problem: &'a Problem<'a>, start: Option<Solution>) -> Result<Option<Bound<'a>>> {
        let Some(curvature) = problem.table.rvm.likelihood.as_dyn().largest_curvature() else { return Ok(None) };
        let mut sums = problem.sums()?;
        sums.gram *= curvature;
        let work = Workspace::of(problem, Quadratic::stored(sums, None));
        let (active, alpha, mean) = match start {
            Some(start) => (start.active, start.a, start.mean),
            None => {
                let active = problem.usable();
                let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
                let mean = vec![0.0; active.len()];
                (active, alpha, mean)
            }
        };
        // The first refresh puts the target right.
        let mut now = work.solve(&active, &alpha, &[NOISE], At::Precision(&[1.0]), None)?;
        now.mean = mean;
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

/// The columns of a problem that a smaller one has: the bias, if there is one, and `columns`, ascending.
fn with_bias(problem: &Problem, columns: &[usize]) -> Vec<usize> {
    let first = usize::from(problem.has_bias);
    (0..first).chain(columns.iter().copied().filter(|j| *j >= first)).collect()
}

/// The candidates behind them.
fn places(problem: &Problem, columns: &[usize]) -> Vec<usize> {
    let first = usize::from(problem.has_bias);
    columns[first..].iter().map(|j| problem.places[j - first]).collect()
}

/// A model in another problem, in which its columns have other names and lengths.
fn carried(mut model: Solution, from: &Problem, to: &Problem, name: impl Fn(usize) -> usize) -> Solution {
    let active: Vec<usize> = model.active.iter().map(|j| name(*j)).collect();
    for ((a, w), (j, k)) in model.a.iter_mut().zip(&mut model.mean).zip(model.active.iter().zip(&active)) {
        let ratio = from.design.norms()[*j] / to.design.norms()[*k];
        *a *= ratio * ratio;
        *w /= ratio;
    }
    model.renamed(active, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Basis;
    use crate::kernel::Rbf;
    use crate::likelihood::Bernoulli;
    use crate::report::Interrupt;
    use crate::rvm::batch::Rule;
    use crate::rvm::scheme::Hyperpriors;
    use crate::rvm::table::Table;
    use crate::rvm::{Centres, Dictionary, Landmarks, Rvm};
    use crate::targets::Targets;

    const BATCH: Batch = Batch {
        rules: &[Rule::Exact, Rule::MacKay, Rule::Em],
        hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
        clip: 4.0,
        gone: 1e-6,
        drops: false,
        halvings: 1,
    };

    /// Columns that a sample is the first to judge leave as good a model as those that all rows do, wherever they come from.
    #[test]
    fn a_sample_leaves_what_all_rows_do() {
        // A quarter of the rows has no weight.
        let n = MANY_ROWS / 2 * 3;
        let fraction = |i: usize, by: f64| (i as f64 * by).fract();
        let x = Array2::from_shape_fn((n, 2), |(i, j)| 4.0 * fraction(i + 1, [0.618_033_988_75, 0.754_877_666_25][j]));
        let f = |i: usize| (2.0 * x[[i, 0]]).sin() + (1.5 * x[[i, 1]]).cos();
        let labels: Vec<usize> = (0..n).map(|i| usize::from(f(i) > 4.0 * fraction(i + 1, 0.569_840_290_998) - 2.0)).collect();
        let weights = Array1::from_shape_fn(n, |i| 0.5 * (i % 4) as f64);
        let targets = Targets::classes(&labels, 2).with_weights(weights.view());
        // The last centres are far from all rows, and nearly.
        let centre = |(k, j): (usize, usize)| match k {
            0..40 => x[[k * 997, j]],
            _ => 4.0 + 3.0 * (k - 39) as f64,
        };
        let centres = Array2::from_shape_fn((42, 2), centre);
        let columns = Array2::from_shape_fn((n, 30), |(i, k)| (-2.0 * (x[[i, 0]] - 0.15 * k as f64).powi(2)).exp());
        for (bias, given) in [(true, false), (false, false), (true, true)] {
            let basis = if given { Basis::Given } else { Basis::Kernel };
            let landmarks = if given { Landmarks::default() } else { Landmarks::Given(Centres(centres.clone())) };
            let kernel = Rbf { gamma: 2.0.into() }.into();
            let likelihood = Bernoulli::default().into();
            let rvm = Rvm { kernel, bias, basis, landmarks, likelihood, dictionary: Dictionary::Size(42), ..Rvm::default() };
            let rows = if given { columns.view() } else { x.view() };
            let table = Table::new(&rvm, rows, &targets, &Interrupt::default()).unwrap();
            let problem = Problem::new(&table, table.dictionary()).unwrap().0;
            assert!(problem.design.n_rows() > MANY_ROWS && problem.room() > 1 << 28);
            let work = Workspace::new(&problem, None);
            let evidence = |model: Option<Solution>| {
                let model = model.expect("the curvature is bounded");
                assert!(model.active.windows(2).all(|pair| pair[0] < pair[1]));
                work.solve(&model.active, &model.a, &[NOISE], At::Best, Some(&model)).unwrap().log_evidence
            };
            let found = evidence(Bound::model(&problem, &BATCH).unwrap());
            let expected = evidence(Bound::run(&problem, None, &BATCH, 0).unwrap());
            assert!(found > expected - 10.0, "bias {bias}, given {given}: {found} of {expected}");
            assert_eq!(problem.usable().len() < problem.design.n_columns(), !given, "a centre far from all rows");
        }
    }
}
