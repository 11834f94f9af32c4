//! The scheme `variational` (Bishop & Tipping 2000): q(w) q(alpha) q(beta) and a lower bound on the log
//! evidence, (M24) to (M27).

use std::f64::consts::PI;

use ndarray::{ArrayView1, Axis};

use super::fit_run::FitRun;
use crate::error::Result;
use crate::linalg;
use crate::quadratic::Quadratic;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::fixed_point;
use crate::rvm::settings::scheme::Hyperpriors;
use crate::rvm::settings::schemes::Variational;
use crate::special::{lgamma_rise, log_rise};
use crate::sums::Sums;

/// Rows whose features differ by no more than this share of the largest value of each feature are at one place: a few
/// roundings of the numbers.
const ROUNDING: f64 = 16.0 * f64::EPSILON;
/// A weight that the data determine less than this may be tried without.
const USELESS: f64 = 0.5;

/// One run: q(w), and the means of q(alpha) and q(beta) that follow from it.
pub(crate) struct MeanField<'p> {
    settings: Variational,
    /// The likelihood as a quadratic form, where it is none itself.
    logistic: Option<Logistic<'p>>,
    now: ActivePosterior,
    next: Next<'p>,
    started: bool,
    /// What weights that have left the model add to the bound.
    gone: f64,
    actions: Actions,
    reason: &'static str,
}

/// What follows from q(w).
struct Next<'p> {
    /// Means of q(alpha), absolute, `[M]`, and of q(beta).
    alpha: Vec<f64>,
    beta: f64,
    logistic: Option<Logistic<'p>>,
    /// The lower bound with these, inner units.
    bound: f64,
}

/// Positions of columns, ascending, whose centres differ from the centre of one before by no more than rounding.
///
/// Each weight that stays has a prior of its own, so that two columns for one make another model: without this,
/// predictions from rows at distances of rounding would differ by a thousandth of the target from predictions from
/// equal rows, which share a column.
fn doubles(problem: &ScaledProblem, active: &[usize]) -> Vec<usize> {
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
    pub(crate) fn start(solver: &EvidenceSolver<'p>, settings: &Variational) -> Result<MeanField<'p>> {
        let (mut active, mut a, beta) = fixed_point::first(solver, settings.initial_alpha, settings.initial_noise_variance)?;
        let doubles = doubles(solver.problem, &active);
        let kept = |i: &usize| doubles.binary_search(i).is_err();
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
        let next = follow(solver, settings, logistic.as_ref(), &now)?;
        Ok(MeanField {
            settings: settings.clone(),
            logistic,
            now,
            next,
            started: false,
            gone: 0.0,
            actions: Actions::default(),
            reason: "",
        })
    }

    /// q(w) of `keep`, positions in the model, at the present q(alpha) and q(beta).
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

    /// One iteration; nothing changes if it is interrupted.
    fn update(&mut self, solver: &EvidenceSolver<'p>, now: ActivePosterior) -> Result<()> {
        let next = follow(solver, &self.settings, self.next.logistic.as_ref(), &now)?;
        let before = std::mem::replace(&mut self.next, next);
        (self.logistic, self.now) = (before.logistic, now);
        Ok(())
    }

    /// Leaves out the weights that the data determine least, as many at once as the bound allows; false if none.
    fn prune(&mut self, solver: &EvidenceSolver<'p>) -> Result<bool> {
        let mut order: Vec<usize> = (0..self.now.a.len()).filter(|i| self.now.determined(*i) < USELESS).collect();
        order.sort_by(|i, j| self.now.determined(*i).total_cmp(&self.now.determined(*j)).then(i.cmp(j)));
        let mut size = order.len();
        while size > 0 {
            let out = &order[..size];
            let keep: Vec<usize> = (0..self.now.a.len()).filter(|i| !out.contains(i)).collect();
            let now = self.posterior(solver, &keep)?;
            let next = follow(solver, &self.settings, self.next.logistic.as_ref(), &now)?;
            let fall = self.next.bound - next.bound - size as f64 * spare(self.settings.hyperpriors.a);
            if fall <= self.settings.tolerance {
                self.actions.deleted += size;
                self.gone += size as f64 * spare(self.settings.hyperpriors.a);
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
    /// q(w); then q(alpha), and q(beta) or the xi of the bound on the likelihood.
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
        solver.problem.bound_out(self.next.bound + self.gone)
    }

    fn form(&self) -> Option<&EvidenceSolver<'p>> {
        self.logistic.as_ref().map(|logistic| &logistic.solver)
    }

    fn certificate(&self, _work: &EvidenceSolver<'p>, _late: bool) -> Certificate {
        let reason = if self.reason.is_empty() { "ended before the lower bound was at rest" } else { self.reason };
        // d bound / d log <alpha_i> at the q(alpha) that q(w) was made with: shape (1 - <alpha_i> / its best).
        let shape = self.settings.hyperpriors.a + 0.5;
        let gradient = |(best, a): (&f64, &f64)| shape * (1.0 - a * self.now.beta[0] / best).abs();
        let largest = self.next.alpha.iter().zip(&self.now.a).map(gradient).fold(0.0, f64::max);
        Certificate { largest_gain: None, largest_gradient: largest, reason: reason.into() }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}

/// q(alpha), q(beta) or xi, and the lower bound, from q(w): (M25) to (M27).
fn follow<'p>(
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
            // What the rate is beyond d; at the cap that is not the best.
            let best = 0.5 * error;
            let more = best.max(shape / cap - d);
            let held = d + more;
            let beta = shape / held;
            bound += lgamma_rise(c, 0.5 * count) - c * log_rise(d, more) - 0.5 * count * held.ln() - beta * (best - more);
            beta
        }
    };
    Ok(Next { alpha, beta, logistic: None, bound })
}

/// What a weight adds to the bound that touches no row, q(w) and q(alpha) at their best.
fn spare(a: f64) -> f64 {
    lgamma_rise(a, 0.5) - a * log_rise(a, 0.5) - 0.5 * (a + 0.5).ln() + 0.5
}

/// Below this the quotient tanh(xi / 2) / (4 xi) is taken from its series.
const SMALL: f64 = 1e-3;

/// The bound at one xi per row.
pub(crate) struct Logistic<'p> {
    /// The quadratic form that the bound makes of the likelihood.
    pub solver: EvidenceSolver<'p>,
    /// `[N]`.
    xi: Vec<f64>,
}

impl<'p> Logistic<'p> {
    /// At xi = 1 for every row.
    pub fn new(problem: &'p ScaledProblem<'p>) -> Logistic<'p> {
        Logistic::at(problem, vec![1.0; problem.design.n_rows()])
    }

    fn at(problem: &'p ScaledProblem<'p>, xi: Vec<f64>) -> Logistic<'p> {
        let training = problem.training;
        // B = 2 lambda and B t = z / 2, so that both sums of the form are those of weighted targets.
        let curvature: Vec<f64> = xi.iter().map(|x| 2.0 * lambda(*x)).collect();
        let targets: Vec<f64> = training.targets.iter().zip(&curvature).map(|(t, b)| (t - 0.5) / b).collect();
        let weights: Vec<f64> = training.weights.iter().zip(&curvature).map(|(c, b)| c * b).collect();
        let mut sums = Sums::new(problem.design.n_columns(), 1);
        problem.design.for_each_block(|rows, phi| sums.accumulate(phi, &targets[rows.clone()], &weights[rows]));
        let sums = Sums { count: training.count, ..sums.finish() };
        Logistic { solver: EvidenceSolver::of(problem, Quadratic::stored(sums, None)), xi }
    }

    /// The bound at the xi that suit the posterior `q`, and what the rows add to the lower bound there.
    ///
    /// # Errors
    /// Interrupted: then some rows were passed over.
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

/// lambda(xi) = tanh(xi / 2) / (4 xi).
fn lambda(xi: f64) -> f64 {
    if xi < SMALL { 0.125 - xi * xi / 96.0 } else { (0.5 * xi).tanh() / (4.0 * xi) }
}
