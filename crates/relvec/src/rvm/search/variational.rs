//! The scheme `variational` (Bishop & Tipping 2000): the mean-field posterior q(w) q(alpha) q(beta), and a lower bound
//! on the log evidence, (M24) to (M27).

use std::f64::consts::PI;

use ndarray::{ArrayView1, Axis};

use crate::error::Result;
use crate::linalg;
use crate::quadratic::Quadratic;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::driver::FitRun;
use crate::rvm::search::fixed_point;
use crate::rvm::settings::scheme::{Hyperpriors, Variational};
use crate::special::{lgamma_rise, log_rise};
use crate::sums::Sums;

/// Largest difference of two equal centres, as a share of the largest value of each feature: a few roundings.
const ROUNDING: f64 = 16.0 * f64::EPSILON;
/// Well-determinedness gamma below which the model is tried without a weight.
const PRUNE_BELOW: f64 = 0.5;

/// A variational fit: q(w), and the means of q(alpha) and q(beta) that follow from it.
pub(crate) struct MeanField<'p> {
    settings: Variational,
    /// Quadratic bound on the likelihood, for two classes.
    logistic: Option<Logistic<'p>>,
    now: ActivePosterior,
    next: Next<'p>,
    started: bool,
    /// Contribution of the pruned weights to the lower bound.
    pruned_bound: f64,
    actions: Actions,
    reason: &'static str,
}

/// Factors and bound that follow from q(w).
struct Next<'p> {
    /// Mean of q(alpha) in internal units, `[M]`.
    alpha: Vec<f64>,
    /// Mean of q(beta) in internal units.
    beta: f64,
    logistic: Option<Logistic<'p>>,
    /// Lower bound on the log evidence with these factors, in internal units.
    bound: f64,
}

/// Returns the slots in `active`, ascending, of columns whose centre equals that of an earlier column up to rounding.
///
/// Each weight that is not pruned has its own prior, so that a duplicate column changes the model. Equal rows share a
/// column. If rows that differ by roundings had two columns, predictions would change by a thousandth of the target.
fn duplicates(problem: &ScaledProblem, active: &[usize]) -> Vec<usize> {
    let Some((_, centres)) = problem.design.kernel() else { return vec![] };
    let first = usize::from(problem.has_bias);
    let largest: Vec<f64> =
        centres.columns().into_iter().map(|column| column.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).collect();
    let same = |i: usize, j: usize| {
        let pairs = centres.row(i).into_iter().zip(centres.row(j)).zip(&largest);
        pairs.into_iter().all(|((a, b), largest)| (a - b).abs() <= ROUNDING * largest)
    };
    let mut kept: Vec<usize> = vec![];
    let mut out = vec![];
    for (i, column) in active.iter().enumerate().filter(|(_, column)| **column >= first) {
        match kept.iter().any(|other| same(*other, column - first)) {
            true => out.push(i),
            false => kept.push(column - first),
        }
    }
    out
}

impl<'p> MeanField<'p> {
    /// Starts from all columns without duplicates, at their initial precisions.
    ///
    /// # Errors
    /// Returns [`Error::Memory`](crate::error::Error::Memory) if the posterior or the sums exceed the memory limit, and
    /// the errors of [`EvidenceSolver::solve`].
    pub(crate) fn start(solver: &EvidenceSolver<'p>, settings: &Variational) -> Result<MeanField<'p>> {
        let (mut active, mut a, beta) = fixed_point::first(solver, settings.initial_alpha, settings.initial_noise_variance)?;
        let duplicates = duplicates(solver.problem, &active);
        let kept = |i: &usize| duplicates.binary_search(i).is_err();
        (active, a) = (0..active.len()).filter(kept).map(|i| (active[i], a[i])).unzip();
        let p = solver.problem.design.n_columns() as u64;
        let logistic = if solver.problem.constant_curvature() {
            None
        } else {
            solver.problem.afford(&format!("sums over {p} basis functions"), 2 * 8 * p * p)?;
            Some(Logistic::new(solver.problem))
        };
        let form = logistic.as_ref().map_or(solver, |l| &l.solver);
        let noise: Vec<NoisePrecision> = beta.iter().map(|beta| NoisePrecision::Fixed(*beta)).collect();
        let now = form.solve(&active, &a, &noise, NoiseChoice::Precision(&beta), None)?;
        let next = update_factors(solver, settings, logistic.as_ref(), &now)?;
        Ok(MeanField {
            settings: settings.clone(),
            logistic,
            now,
            next,
            started: false,
            pruned_bound: 0.0,
            actions: Actions::default(),
            reason: "",
        })
    }

    /// Returns q(w) of the weights in the slots `keep` at the present q(alpha) and q(beta), (M24).
    fn posterior(&self, solver: &EvidenceSolver<'p>, keep: &[usize]) -> Result<ActivePosterior> {
        let beta = self.next.beta;
        let least = |j: usize| if j == 0 && solver.problem.has_bias { 0.0 } else { LEAST_PRECISION };
        let active: Vec<usize> = keep.iter().map(|i| self.now.active[*i]).collect();
        let a: Vec<f64> = keep.iter().map(|i| (self.next.alpha[*i] / beta).max(least(self.now.active[*i]))).collect();
        let (noise, at) = ([NoisePrecision::Fixed(beta)], [beta]);
        match &self.next.logistic {
            Some(logistic) => logistic.solver.solve(&active, &a, &noise, NoiseChoice::Precision(&at), None),
            None => solver.solve(&active, &a, &noise, NoiseChoice::Precision(&at), Some(&self.now)),
        }
    }

    /// Takes q(w) from `now` and updates the other factors. If it is interrupted, nothing changes.
    fn update(&mut self, solver: &EvidenceSolver<'p>, now: ActivePosterior) -> Result<()> {
        let next = update_factors(solver, &self.settings, self.next.logistic.as_ref(), &now)?;
        let before = std::mem::replace(&mut self.next, next);
        (self.logistic, self.now) = (before.logistic, now);
        Ok(())
    }

    /// Prunes the weights that the data determine least, as many at once as the lower bound allows. Returns false if
    /// none can be pruned.
    fn prune(&mut self, solver: &EvidenceSolver<'p>) -> Result<bool> {
        let mut order: Vec<usize> = (0..self.now.a.len()).filter(|i| self.now.determined(*i) < PRUNE_BELOW).collect();
        order.sort_by(|i, j| self.now.determined(*i).total_cmp(&self.now.determined(*j)).then(i.cmp(j)));
        let mut size = order.len();
        while size > 0 {
            let out = &order[..size];
            let keep: Vec<usize> = (0..self.now.a.len()).filter(|i| !out.contains(i)).collect();
            let now = self.posterior(solver, &keep)?;
            let next = update_factors(solver, &self.settings, self.next.logistic.as_ref(), &now)?;
            let fall = self.next.bound - next.bound - size as f64 * unused_weight_bound(self.settings.hyperpriors.a);
            if fall <= self.settings.tolerance {
                self.actions.deleted += size;
                self.pruned_bound += size as f64 * unused_weight_bound(self.settings.hyperpriors.a);
                self.logistic = std::mem::replace(&mut self.next, next).logistic;
                self.now = now;
                return Ok(true);
            }
            size /= 2;
        }
        Ok(false)
    }
}

impl<'p> FitRun<'p> for MeanField<'p> {
    /// Updates q(w), then q(alpha), and then q(beta) or the xi of the bound on the likelihood. The first call reports
    /// the initial factors.
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        if !self.started {
            self.started = true;
            return Ok(None);
        }
        let all: Vec<usize> = (0..self.now.a.len()).collect();
        let (before, now) = (self.next.bound, self.posterior(solver, &all)?);
        self.update(solver, now)?;
        self.actions.joint += 1;
        if self.next.bound - before > self.settings.tolerance {
            return Ok(None);
        }
        if self.settings.prune && self.prune(solver)? {
            return Ok(None);
        }
        self.reason = "the lower bound rose by no more than the tolerance";
        Ok(Some(Status::Converged))
    }

    fn best(&self) -> &ActivePosterior {
        &self.now
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.bound_out(self.next.bound + self.pruned_bound)
    }

    fn form(&self) -> Option<&EvidenceSolver<'p>> {
        self.logistic.as_ref().map(|logistic| &logistic.solver)
    }

    fn certificate(&self, _work: &EvidenceSolver<'p>, _late: bool) -> Certificate {
        let reason = if self.reason.is_empty() { "the fit ended before the lower bound converged" } else { self.reason };
        // d bound / d log <alpha_i> at the q(alpha) that gave q(w) is shape (1 - <alpha_i> / best), with (M25) for the
        // best.
        let shape = self.settings.hyperpriors.a + 0.5;
        let gradient = |(best, a): (&f64, &f64)| shape * (1.0 - a * self.now.beta[0] / best).abs();
        let largest = self.next.alpha.iter().zip(&self.now.a).map(gradient).fold(0.0, f64::max);
        Certificate { largest_gain: None, largest_gradient: largest, reason: reason.into() }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}

/// Returns q(alpha), q(beta) or xi, and the lower bound, from q(w), (M25) to (M27).
///
/// # Errors
/// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
fn update_factors<'p>(
    solver: &EvidenceSolver<'p>,
    settings: &Variational,
    logistic: Option<&Logistic<'p>>,
    q: &ActivePosterior,
) -> Result<Next<'p>> {
    let problem = solver.problem;
    let Hyperpriors { a, b, .. } = settings.hyperpriors;
    let (m, count, beta) = (q.a.len(), problem.training.count, q.beta[0]);
    let shape = a + 0.5;
    let each = lgamma_rise(a, 0.5) + 0.5;
    let log_det: f64 = 2.0 * q.lower.diag().iter().map(|v| v.ln()).sum::<f64>();
    let mut bound = m as f64 * each - 0.5 * (log_det + m as f64 * beta.ln());
    let mut alpha = Vec::with_capacity(m);
    for i in 0..m {
        let b = b / problem.alpha_in(q.active[i]);
        let more = 0.5 * (q.mean[i] * q.mean[i] + q.variance[i] / beta);
        let rate = b + more;
        bound -= a * log_rise(b, more) + 0.5 * rate.ln();
        alpha.push(shape / rate);
    }
    if let Some(logistic) = logistic {
        let (logistic, rows) = logistic.updated(q)?;
        return Ok(Next { alpha, beta: 1.0, logistic: Some(logistic), bound: bound + rows });
    }
    // <|t - Phi w|^2>.
    let error = q.residuals(count)[0] + (0..m).map(|i| q.determined(i)).sum::<f64>() / beta;
    bound -= 0.5 * count * (2.0 * PI).ln();
    let beta = match problem.training.noise[0] {
        NoisePrecision::Fixed(beta) => {
            bound += 0.5 * (count * beta.ln() - beta * error);
            beta
        }
        NoisePrecision::Learned { cap, c, d } => {
            let shape = c + 0.5 * count;
            // The rate is d + `more`, where the cap of the precision may make `more` larger than its optimum.
            let best = 0.5 * error;
            let more = best.max(shape / cap - d);
            let rate = d + more;
            let beta = shape / rate;
            bound += lgamma_rise(c, 0.5 * count) - c * log_rise(d, more) - 0.5 * count * rate.ln() - beta * (best - more);
            beta
        }
    };
    Ok(Next { alpha, beta, logistic: None, bound })
}

/// Returns the contribution to the lower bound of a weight that no row depends on, with q(w) and q(alpha) at their
/// optimum. `a` is the shape of the hyperprior.
fn unused_weight_bound(a: f64) -> f64 {
    lgamma_rise(a, 0.5) - a * log_rise(a, 0.5) - 0.5 * (a + 0.5).ln() + 0.5
}

/// The quadratic lower bound on the log-likelihood of two classes (Jaakkola & Jordan 2000), with one parameter xi for
/// each row.
pub(crate) struct Logistic<'p> {
    /// Solver of the quadratic form of the bound.
    pub solver: EvidenceSolver<'p>,
    /// Parameters of the bound, `[N]`.
    xi: Vec<f64>,
}

impl<'p> Logistic<'p> {
    /// Returns the bound at xi = 1 for every row.
    pub fn new(problem: &'p ScaledProblem<'p>) -> Logistic<'p> {
        Logistic::at(problem, vec![1.0; problem.design.n_rows()])
    }

    fn at(problem: &'p ScaledProblem<'p>, xi: Vec<f64>) -> Logistic<'p> {
        let training = problem.training;
        // B = 2 lambda and B t~ = t - 1/2, so that the sums are those of a weighted regression on t~.
        let curvature: Vec<f64> = xi.iter().map(|x| 2.0 * lambda(*x)).collect();
        let targets: Vec<f64> = training.targets.iter().zip(&curvature).map(|(t, b)| (t - 0.5) / b).collect();
        let weights: Vec<f64> = training.weights.iter().zip(&curvature).map(|(c, b)| c * b).collect();
        let mut sums = Sums::new(problem.design.n_columns(), 1);
        problem.design.for_each_block(|rows, phi| sums.accumulate(phi, &targets[rows.clone()], &weights[rows]));
        let sums = Sums { count: training.count, ..sums.finish() };
        Logistic { solver: EvidenceSolver::of(problem, Quadratic::stored(sums, None)), xi }
    }

    /// Returns the bound at the optimal xi for the posterior `q`, and the contribution of the rows to the lower bound,
    /// (M27).
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
    pub fn updated(&self, q: &ActivePosterior) -> Result<(Logistic<'p>, f64)> {
        let problem = self.solver.problem;
        let training = problem.training;
        let (mut xi, mut rows_bound) = (vec![0.0; self.xi.len()], 0.0);
        problem.design.for_each_block(|rows, phi| {
            let phi = phi.select(Axis(1), &q.active);
            let mean = phi.dot(&ArrayView1::from(&q.mean));
            let mut spread = phi.reversed_axes().as_standard_layout().into_owned();
            linalg::solve_lower(q.lower.view(), spread.view_mut());
            let variance = spread.map_axis(Axis(0), |u| u.dot(&u));
            for (k, n) in rows.enumerate() {
                xi[n] = (variance[k] + mean[k] * mean[k]).sqrt();
                let z = 2.0 * training.targets[n] - 1.0;
                rows_bound += training.weights[n] * (0.5 * (z * mean[k] - xi[n]) - (-xi[n]).exp().ln_1p());
            }
        });
        let next = Logistic::at(problem, xi);
        training.interrupt.check()?;
        Ok((next, rows_bound))
    }
}

/// Returns lambda(xi) = tanh(xi / 2) / (4 xi), which is 1/8 at 0.
fn lambda(xi: f64) -> f64 {
    if xi > 0.0 { (0.5 * xi).tanh() / (4.0 * xi) } else { 0.125 }
}
