//! The search for basis functions and precisions of two classes or of counts by sums over the rows, one pass at a time.
//!
//! Laplace's approximation (Tipping 2001, section 3) replaces the log-likelihood by its expansion to second order at
//! weights w. One pass over the rows gives the expansion for all candidates:
//!
//! ```text
//! G = Phi'B Phi        f = G w + Phi'(t - y)
//! ```
//!
//! This is a regression with known noise, so that a whole search needs G and f alone. Newton's method, one pass per
//! step, then leads to the mode of the weights at the new precisions, where the log-likelihood is expanded again. The
//! searches end when Laplace's evidence (M14) no longer rises.

use std::f64::consts::PI;
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, ArrayView1, Axis};

use crate::error::Result;
use crate::linalg;
use crate::linalg::Cholesky;
use crate::model::Model;
use crate::newton::{DECREMENT, ROUNDING};
use crate::quadratic::Quadratic;
use crate::query::sums::{LaplaceSums, Trial};
use crate::report::{Actions, Certificate, Report, Status, silent};
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::model_assembly;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::local_search::LEAST_RISE;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::{Rvm, Sparsity};
use crate::rvm::settings::scheme::{Hyperparameters, Inference, Search, Start};
use crate::sums::Sums;

/// Gain of a Newton step in nats below which the mode between two searches is near enough. The evidence includes the
/// gain of the next step, and lacks only the change of the curvature.
const NEAR_MODE: f64 = 0.1;
/// Number of lengths of a step that one pass tries, each half the one before. The Hessian is computed for the first.
const LENGTHS: i32 = 4;

/// The expansion of the log-likelihood to second order at weights w.
struct Expansion {
    /// w for columns of unit norm, `[P]`.
    w: Array1<f64>,
    /// G, [P, P], and f, `[P]`, of columns without scaling; zero for columns that may not be used.
    sums: Sums,
    /// Log-likelihood minus that of the regression with unit noise, which is the same at all weights.
    constant: f64,
}

impl Expansion {
    fn new(problem: &ScaledProblem, w: Array1<f64>, of_rows: &LaplaceSums) -> Result<Expansion> {
        let norms = problem.design.norms();
        let mut gram = of_rows.hessian.clone();
        linalg::mirror(&mut gram);
        let count = problem.training.count;
        let mut sums = Sums { gram, f: vec![of_rows.gradient.to_vec()], tt: vec![0.0], count };
        // Columns that are zero, or have no row near their centre, become zero.
        sums.divide(&norms.iter().map(|norm| if *norm > 0.0 { 1.0 } else { 0.0 }).collect::<Vec<_>>());
        let mut unit = sums.clone();
        unit.divide(norms);
        let gradient = Array1::from_vec(unit.f[0].clone());
        let curved = unit.gram.dot(&w);
        let f = &curved + &gradient;
        // Only differences of t't matter. It is so large that E stays positive for all models: no precision is smaller
        // than the least one, but that of the bias.
        let mut solved = f.clone().insert_axis(Axis(1));
        Cholesky::of_sum(&unit.gram, &vec![LEAST_PRECISION; f.len()])?.solve(solved.view_mut());
        let tt = count + 2.0 * f.dot(&solved.column(0));
        let constant = of_rows.log_likelihood[0] - gradient.dot(&w) - 0.5 * w.dot(&curved) + 0.5 * (tt + count * (2.0 * PI).ln());
        let scale = |(f, norm): (&f64, &f64)| f * norm;
        sums.f = vec![f.iter().zip(norms).map(scale).collect()];
        sums.tt = vec![tt];
        Ok(Expansion { w, sums, constant })
    }

    /// Returns the posterior at given precisions.
    fn posterior(&self, problem: &ScaledProblem, at: &Hyperparameters) -> Result<ActivePosterior> {
        let (active, alpha, _) = problem.inner(at)?;
        let mut sums = self.sums.clone();
        sums.divide(problem.design.norms());
        let solver = EvidenceSolver::of(problem, Quadratic::stored(sums, None));
        solver.solve(&active, &alpha, &[NoisePrecision::Fixed(1.0)], NoiseChoice::Best, None)
    }
}

/// Precisions at the mode of their weights.
struct Found {
    at: Hyperparameters,
    expansion: Expansion,
    posterior: ActivePosterior,
    /// Log evidence, without the log prior of the kernels.
    log_evidence: f64,
    /// Log evidence plus the logs of the priors of kernels and precisions.
    objective: f64,
}

/// Precisions and weights at which a search starts, both for columns without scaling.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct AscentStart {
    pub at: Hyperparameters,
    /// `[P]`.
    pub weights: Array1<f64>,
}

/// A step towards the mode that a pass has to confirm.
struct Step {
    /// Weights before the step, `[P]`.
    from: Array1<f64>,
    /// The step, `[P]`.
    by: Array1<f64>,
    /// True for Newton's method, whose step raises the log posterior if it is short enough.
    newton: bool,
}

impl Step {
    /// Returns the weights after steps of all lengths and before the step, [S, P].
    fn tried(&self) -> Array2<f64> {
        let lengths: Vec<f64> = (0..LENGTHS).map(|k| 0.5f64.powi(k)).chain([0.0]).collect();
        let mut tried = Array2::zeros((lengths.len(), self.from.len()));
        for (mut row, length) in tried.outer_iter_mut().zip(lengths) {
            row.assign(&(&self.from + &(&self.by * length)));
        }
        tried
    }
}

/// The search for the model of one class against the others, or of counts. It says at which weights it needs sums over the rows, and
/// continues with these sums.
pub(in crate::rvm) struct LaplaceAscent<'a> {
    /// Columns of unit norm, without rows.
    problem: &'a ScaledProblem<'a>,
    /// Settings of the search in an expansion: those of the fit, for Gaussian noise of variance 1.
    search: &'a Rvm,
    /// `None` for counts.
    class: Option<usize>,
    /// Weights of columns of unit norm that the next pass tries, [S, P].
    tried: Array2<f64>,
    /// Precisions whose mode is looked for. `None` before the first search.
    sought: Option<Hyperparameters>,
    step: Option<Step>,
    best: Option<Found>,
    /// Precisions to try next if those found by a search from another start do not raise the evidence: the result of the
    /// search that started from the best model.
    nearer: Option<Hyperparameters>,
    /// Gain of the last Newton step to the final mode, after the last search.
    last_gain: Option<f64>,
    done: bool,
    /// End of the last search, and actions of all searches.
    status: Status,
    certificate: Certificate,
    actions: Actions,
}

impl<'a> LaplaceAscent<'a> {
    /// Returns the search for the model of `class`, or of counts if it is `None`. It starts at the constant weight `bias`, of a column without scaling,
    /// or between that and the model `start`.
    pub fn new(
        problem: &'a ScaledProblem<'a>,
        search: &'a Rvm,
        class: Option<usize>,
        bias: f64,
        start: Option<&AscentStart>,
    ) -> LaplaceAscent<'a> {
        let (norms, first) = (ArrayView1::from(problem.design.norms()), usize::from(problem.has_bias));
        let mut constant = Array1::zeros(norms.len());
        if problem.has_bias {
            constant[0] = bias * norms[0];
        }
        let certificate = Certificate { largest_gain: None, largest_gradient: 0.0, reason: String::new() };
        let mut ascent = LaplaceAscent {
            problem,
            search,
            class,
            tried: constant.clone().insert_axis(Axis(0)),
            sought: None,
            step: None,
            best: None,
            nearer: None,
            last_gain: None,
            done: false,
            status: Status::Converged,
            certificate,
            actions: Actions::default(),
        };
        if let Some(start) = start.filter(|start| start.at.relevance.iter().all(|k| norms[k + first] > 0.0)) {
            ascent.sought = Some(start.at.clone());
            ascent.take(Step { by: &start.weights * &norms - &constant, from: constant, newton: false });
        }
        ascent
    }

    /// Returns the weights, of columns without scaling, for which the next pass has to compute sums; `None` at the end.
    pub fn trial(&self) -> Option<Trial> {
        (!self.done).then(|| Trial { class: self.class, weights: &self.tried * &self.scales() })
    }

    /// Returns the inverse norms of the columns, `[P]`; 0 for columns that may not be used.
    fn scales(&self) -> Array1<f64> {
        self.problem.design.norms().iter().map(|norm| if *norm > 0.0 { 1.0 / norm } else { 0.0 }).collect()
    }

    /// Returns log evidence and number of basis functions of the best model so far.
    pub fn best(&self) -> Option<(f64, usize)> {
        self.best.as_ref().map(|best| (best.log_evidence, best.posterior.active.len()))
    }

    /// Continues with the sums at the weights of [`LaplaceAscent::trial`]. A search takes at most the time `left`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::Error::Interrupted) if the fit must stop, and errors of memory and of
    /// matrices that cannot be factorised.
    pub fn advance(&mut self, sums: &LaplaceSums, left: Option<Duration>) -> Result<()> {
        let tried = std::mem::take(&mut self.tried);
        let Some(at) = self.sought.clone() else {
            let expansion = Expansion::new(self.problem, tried.row(0).to_owned(), sums)?;
            let next = self.search_in(&expansion, None, left)?;
            return self.seek(&expansion, next);
        };
        let (active, alpha, _) = self.problem.inner(&at)?;
        let value = |k: usize| {
            let prior = active.iter().zip(&alpha).map(|(j, a)| a * tried[[k, *j]].powi(2)).sum::<f64>();
            let value = sums.log_likelihood[k] - 0.5 * prior;
            if value.is_nan() { f64::NEG_INFINITY } else { value }
        };
        let before = tried.nrows() - 1;
        if let Some(step) = &mut self.step
            && value(0) < value(before) - ROUNDING * value(before).abs()
        {
            let best = (0..=before).max_by(|a, b| value(*a).total_cmp(&value(*b))).unwrap_or(before);
            if step.newton && best == before {
                step.by *= 0.5f64.powi(LENGTHS);
                self.tried = step.tried();
            } else {
                self.step = None;
                self.tried = tried.row(best).to_owned().insert_axis(Axis(0));
            }
            return Ok(());
        }
        let expansion = Expansion::new(self.problem, tried.row(0).to_owned(), sums)?;
        let posterior = expansion.posterior(self.problem, &at)?;
        let mean = self.weights(&posterior);
        let step = &mean - &expansion.w;
        let own: Array1<f64> = posterior.active.iter().map(|j| step[*j]).collect();
        let gain = 0.5 * posterior.lower.t().dot(&own).mapv(|v| v * v).sum();
        if let Some(before) = self.last_gain {
            // Newton's method squares the distance: one step follows a gain below `DECREMENT`, and a gain that does not
            // fall is rounding.
            if before > DECREMENT * (1.0 + value(0).abs()) && gain < before {
                self.last_gain = Some(gain);
                self.take(Step { from: expansion.w, by: step, newton: true });
                return Ok(());
            }
            self.best = Some(self.found(at, expansion, posterior));
            self.done = true;
            return Ok(());
        }
        if gain > NEAR_MODE {
            self.take(Step { from: expansion.w, by: step, newton: true });
            return Ok(());
        }
        let found = self.found(at, expansion, posterior);
        self.judge(found, left)
    }

    /// Compares a model at its mode with the best one, and searches on from the better one.
    fn judge(&mut self, found: Found, left: Option<Duration>) -> Result<()> {
        let least = self.search.inference.as_dyn().least_gain(self.problem.training.count).max(LEAST_RISE);
        let rise = self.best.as_ref().map_or(f64::INFINITY, |best| found.objective - best.objective);
        match (self.best.take(), self.nearer.take()) {
            (Some(best), Some(nearer)) if rise <= -least => {
                let sought = self.seek(&best.expansion, nearer);
                self.best = Some(best);
                sought?;
            }
            (Some(best), _) if rise < 0.0 => {
                if rise <= -least {
                    self.certificate.reason = "no search in an expansion raises Laplace's evidence".into();
                }
                self.best = Some(best);
                self.finish();
            }
            _ => {
                self.best = Some(found);
                if rise < least {
                    self.finish();
                } else {
                    self.search_on(least, left)?;
                }
            }
        }
        Ok(())
    }

    /// Searches in the expansion at the best model. Finishes if the model found is not predicted to be better.
    fn search_on(&mut self, least: f64, left: Option<Duration>) -> Result<()> {
        let Some(best) = self.best.take() else { unreachable!("a model was found") };
        let next = self.search_in(&best.expansion, Some(&best.at), left);
        let sought = next.and_then(|next| {
            let posterior = best.expansion.posterior(self.problem, &next)?;
            let rise = self.evidence(&best.expansion, &posterior, &next).1 - best.objective;
            if rise < least { Ok(false) } else { self.seek(&best.expansion, next).map(|()| true) }
        });
        self.best = Some(best);
        if !sought? {
            self.finish();
        }
        Ok(())
    }

    /// Returns the precisions of the best model that searches in an expansion find. They start from the precisions
    /// `from`, and without a model, since searches from different starts may end in different optima.
    fn search_in(
        &mut self,
        expansion: &Expansion,
        from: Option<&Hyperparameters>,
        left: Option<Duration>,
    ) -> Result<Hyperparameters> {
        let problem = self.problem;
        let own = Rvm { time_limit: left.map(|left| left.as_secs_f64()), ..self.search.clone() };
        let start = Instant::now();
        let interrupt = problem.training.interrupt.for_one_fit(own.deadline(start));
        let run = |rvm: &Rvm, from: Option<&Hyperparameters>| {
            let training = TrainingSet {
                interrupt: interrupt.clone(),
                // Centres without a row nearby have been excluded, by columns that are not weighted by the curvature.
                least_factor: 0.0,
                ..problem.training.of_sums(rvm, &problem.candidates, problem.training.count)
            };
            let (mut quiet, sums) = (silent, Some(expansion.sums.clone()));
            let driver = &mut FitDriver::of(rvm, &mut quiet, &interrupt, start);
            outer_loop::search(rvm, &training, sums, from, driver)
        };
        let mut found = vec![];
        // Schemes that add no basis functions start with all columns.
        if let Some(from) = from.filter(|_| own.inference.as_dyn().adds()) {
            found.push(run(&own, Some(from))?);
        }
        if let Inference::Search(scheme) = &own.inference
            && scheme.start == Start::Auto
        {
            found.push(run(&own, None)?);
            // Single kernels may gain little if only several of them separate the classes, so that a model grows from
            // nothing without a penalty per kernel first.
            let grow = Inference::Search(Search { start: Start::Empty, ..scheme.clone() });
            let free = Rvm { inference: grow, sparsity: Sparsity::Nats(0.0), ..own.clone() };
            let grown = Hyperparameters::of(&run(&free, None)?.0);
            found.push(run(&own, Some(&grown))?);
        } else if found.is_empty() {
            found.push(run(&own, None)?);
        }
        let objective = |(model, _): &(Model, Report)| {
            model.log_evidence.unwrap_or(f64::NEG_INFINITY) - own.nats() * model.relevance.len() as f64
        };
        let better = |a, b| if objective(&b) > objective(&a) { b } else { a };
        let nearer = from.and(found.first()).map(|(model, _)| Hyperparameters::of(model));
        let (model, report) = found.into_iter().reduce(better).expect("one search at least");
        (self.status, self.certificate) = (report.status, report.certificate);
        self.actions.add(&report.actions);
        let next = Hyperparameters::of(&model);
        self.nearer = nearer.filter(|nearer| *nearer != next);
        Ok(next)
    }

    /// Begins to look for the mode at the precisions `next`: at their mean in the expansion, or nearer to the weights
    /// whose function is nearest to that of the expansion.
    fn seek(&mut self, expansion: &Expansion, next: Hyperparameters) -> Result<()> {
        let posterior = expansion.posterior(self.problem, &next)?;
        let mut unit = expansion.sums.clone();
        unit.divide(self.problem.design.norms());
        let pulled = unit.gram.dot(&expansion.w);
        let mut near: Array2<f64> = posterior.active.iter().map(|j| pulled[*j]).collect::<Array1<f64>>().insert_axis(Axis(1));
        linalg::solve_lower(posterior.lower.view(), near.view_mut());
        linalg::solve_lower_transposed(posterior.lower.view(), near.view_mut());
        let mut from = Array1::zeros(expansion.w.len());
        posterior.active.iter().zip(&near).for_each(|(j, v)| from[*j] = *v);
        self.sought = Some(next);
        self.take(Step { by: self.weights(&posterior) - &from, from, newton: false });
        Ok(())
    }

    /// Has the next pass try a step.
    fn take(&mut self, step: Step) {
        self.tried = step.tried();
        self.step = Some(step);
    }

    /// Begins the last steps to the mode of the best model.
    fn finish(&mut self) {
        let Some(best) = &self.best else { unreachable!("a model was found") };
        let (at, from) = (best.at.clone(), best.expansion.w.clone());
        let by = self.weights(&best.posterior) - &from;
        (self.sought, self.last_gain) = (Some(at), Some(f64::INFINITY));
        self.take(Step { from, by, newton: true });
    }

    fn found(&self, at: Hyperparameters, expansion: Expansion, posterior: ActivePosterior) -> Found {
        let (log_evidence, objective) = self.evidence(&expansion, &posterior, &at);
        Found { at, expansion, posterior, log_evidence, objective }
    }

    /// Returns the log evidence, and its sum with the logs of the priors of kernels and precisions.
    fn evidence(&self, expansion: &Expansion, posterior: &ActivePosterior, at: &Hyperparameters) -> (f64, f64) {
        let log_evidence = posterior.log_evidence + expansion.constant;
        let hyperpriors = self.search.inference.as_dyn().hyperpriors();
        let prior = |alpha: &f64| hyperpriors.a * alpha.ln() - hyperpriors.b * alpha;
        let of_precisions: f64 = at.alpha.iter().chain(&at.intercept_alpha).map(prior).sum();
        let of_kernels = EvidenceSolver::new(self.problem, None).prior.log(&posterior.active);
        (log_evidence, log_evidence + of_kernels + of_precisions)
    }

    /// Returns the weights of columns of unit norm at the mean of a posterior, `[P]`.
    fn weights(&self, posterior: &ActivePosterior) -> Array1<f64> {
        let mut w = Array1::zeros(self.problem.design.n_columns());
        posterior.active.iter().zip(&posterior.mean).for_each(|(j, mean)| w[*j] = *mean);
        w
    }

    /// Returns the precisions and weights of the best model, for a search on other rows.
    pub fn end(&self) -> Option<AscentStart> {
        let best = self.best.as_ref()?;
        Some(AscentStart { at: best.at.clone(), weights: self.weights(&best.posterior) * &self.scales() })
    }

    /// Returns the best model and its report; `None` if there is no model yet. `status` is the end of the fit.
    ///
    /// # Errors
    /// Returns the errors of [`model_assembly::model`].
    pub fn into_model(self, status: Status, iterations: usize, seconds: f64) -> Result<Option<(Model, Report)>> {
        let Some(best) = self.best else { return Ok(None) };
        let (active, a) = (&best.posterior.active, &best.posterior.a);
        let gram = best.posterior.gram_of(active).expect("a posterior of a quadratic form has its Gram matrix");
        let (mean, factor) = (best.posterior.mean.clone(), Cholesky::of_sum(&gram, a)?);
        let solution = ActivePosterior::at_mode(active, a, mean, factor, best.log_evidence, Some(gram), None);
        // The last search may have ended at a limit of its own.
        let status = if status == Status::Converged { self.status } else { status };
        let solver = EvidenceSolver::new(self.problem, None);
        let model = model_assembly::model(&solver, &solution, best.log_evidence, status, iterations)?;
        let certificate = Certificate { largest_gradient: solution.largest_gradient(), ..self.certificate };
        let mut report = Report {
            iterations,
            candidates: self.problem.candidates.len(),
            nothing_found: model.relevance.is_empty(),
            actions: self.actions,
            ..Report::of_end(status, vec![], certificate, seconds)
        };
        report.adjustments.zero_columns = self.problem.design.norms().iter().filter(|norm| **norm == 0.0).count();
        report.adjustments.jitter = solution.jitter;
        Ok(Some((model, report)))
    }
}
