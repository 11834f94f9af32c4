//! The outer loop of a fit: searches one working set after another, scans the candidates between them, and assembles
//! the model.
//!
//! Working sets serve dictionaries that are too large for one scaled problem (column generation). The search works on
//! some of the candidates. A scan over all candidates, one pass over the rows, then computes their exact gains, and the
//! best ones enter the next working set.

use ndarray::{Array2, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::canonical::random_subset;
use crate::design::Design;
use crate::error::{Error, Result};
use crate::linalg;
use crate::model::Model;
use crate::report::{Actions, Certificate, Report, Status};
use crate::rvm::data::noise::{NoisePrecision, NoiseProfile};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::{ActivePosterior, fitted, residual_over_noise};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality, SPAN_FLOOR, by_noise};
use crate::rvm::evidence::model_assembly;
use crate::rvm::evidence::precision_updates::UpdateRule;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::{ScaledProblem, keeps_sums};
use crate::rvm::search::driver::{FitDriver, FitRun, SearchStart, WarmStart};
use crate::rvm::search::fixed_point::{self, FixedPointRun};
use crate::rvm::search::local_search::LocalSearch;
use crate::rvm::search::sequential::{SequentialRun, UNFINISHED};
use crate::rvm::search::variational::MeanField;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Inference, PART, Start};
use crate::sums::Sums;

/// Least number of candidates in a working set for each relevance vector of the model.
const PER_VECTOR: usize = 4;
/// Largest number of candidates for each relevance vector of the model at which all candidates become one working set.
/// The products of all columns then cost as much as 20 scans, and growth takes 17 to 41. On 1,200 to 3,000 rows with
/// 90 to 140 relevance vectors fits take half the time, and the log evidence is -5 to 14 nats higher.
const ALL_PER_VECTOR: usize = 40;
/// Largest number of candidates at which the search of all of them starts from the dense model too. On 1,500 to 2,600 rows
/// the log evidence of Friedman's first function ends 12 to 39 nats higher, in 1.5 to 3 times the time, which grows with the
/// cube of the candidates.
const MOST_DENSE: usize = 3000;
/// Rise of the log evidence in one working set, in nats for each 1,000 rows, below which growth ends.
const LEAST_RISE: f64 = 0.05;
/// Number of candidates in one block. Only one block and its products with the model are in memory.
const TILE: usize = 4096;

/// Starts the scheme in the working set of `solver`.
fn begin<'p>(inference: &Inference, solver: &EvidenceSolver<'p>, entry: &SearchStart) -> Result<Box<dyn FitRun<'p> + 'p>> {
    Ok(match inference {
        Inference::Search(scheme) => Box::new(LocalSearch::start(solver, scheme, entry)?),
        Inference::Sequential(scheme) => Box::new(SequentialRun::start(solver, scheme, entry)?),
        Inference::MacKay(scheme) => {
            Box::new(FixedPointRun::start(solver, scheme, &[UpdateRule::MacKay, UpdateRule::Em], entry)?)
        }
        Inference::Em(scheme) => Box::new(FixedPointRun::start(solver, &scheme.into(), &[UpdateRule::Em], entry)?),
        Inference::Variational(scheme) => Box::new(MeanField::start(solver, scheme)?),
    })
}

/// Fits a model to a training set.
///
/// Searches one working set after another, until no candidate outside the working set would raise the evidence. For
/// most dictionaries the first working set is the whole dictionary. `sums` are those of the first working set, if they
/// are known. `start` is the model for a warm start.
///
/// # Errors
/// Returns [`Error::Interrupted`] if the fit was interrupted before there is a model, and errors of memory and of
/// matrices that cannot be factorised.
pub(crate) fn search(
    rvm: &Rvm,
    training: &TrainingSet,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    driver: &mut FitDriver,
) -> Result<(Model, Report)> {
    let scheme = rvm.inference.as_dyn();
    let required = match (start, scheme.start()) {
        (Some(given), _) | (None, Start::Given(given)) => training.candidates_of(given),
        (None, Start::Auto | Start::Empty) => vec![],
    };
    let (working_sets, mut candidates) = WorkingSets::new(training, &required);
    let mut outer = OuterLoop { rvm, training, working_sets, actions: Actions::default(), driver };
    let (mut given_sums, mut start, mut warm) = (sums, start, None);
    // The best model of the previous working sets and its log evidence.
    let mut best: Option<(WarmStart, f64)> = None;
    loop {
        // The model to return if the time limit passes before the search in this working set has started.
        let previous = best.as_ref().map(|(model, _)| model.clone()).filter(|_| training.rows.nrows() > 0);
        let made = match given_sums.take() {
            Some(sums) => Ok(ScaledProblem::of_sums(training, candidates, sums)),
            None => ScaledProblem::new(training, candidates),
        };
        let (problem, sums) = match made {
            Ok(made) => made,
            Err(error) => return outer.return_previous(error, previous),
        };
        let solver = EvidenceSolver::new(&problem, sums);
        if let Some(start) = start.take() {
            warm = Some(WarmStart::at(&problem, start)?);
        }

        // Search the working set.
        let entry = outer.working_sets.start(warm.take());
        let mut run = match begin(&rvm.inference, &solver, &entry) {
            Ok(run) => run,
            Err(error) => return outer.return_previous(error, previous),
        };
        let mut status = outer.driver.drive(&mut *run, &solver)?;
        let log_evidence = run.best().log_evidence;
        // The evidence may fall a little between working sets, because sums over other columns are rounded differently.
        let least = scheme.least_gain(training.count);
        let fell = best.as_ref().is_some_and(|(_, before)| before - log_evidence > least);

        // Scan all candidates for the next working set.
        if status == Status::Converged {
            match outer.working_sets.next(&solver, run.best(), least) {
                Ok(None) => {}
                Ok(Some(next)) => match outer.driver.spent() {
                    Some(spent) => status = spent,
                    None => {
                        outer.actions.add(&run.actions());
                        (candidates, warm) = (next, Some(WarmStart::of(&solver, run.best())));
                        if !fell {
                            best = warm.clone().map(|warm| (warm, log_evidence));
                        }
                        continue;
                    }
                },
                Err(Error::Interrupted) if outer.driver.is_late() => status = Status::TimeLimit,
                Err(error) => return Err(error),
            }
        }

        // Return the best model.
        training.interrupt.disarm();
        return match best.filter(|_| fell) {
            Some((best, _)) => {
                outer.actions.add(&run.actions());
                outer.return_model(best, status)
            }
            None => outer.conclude(&solver, &*run, status),
        };
    }
}

/// The alternation of searches in one working set and scans for the next.
struct OuterLoop<'a, 'w, 'o, 'f> {
    rvm: &'a Rvm,
    training: &'a TrainingSet<'a>,
    working_sets: WorkingSets,
    actions: Actions,
    driver: &'w mut FitDriver<'o, 'f>,
}

impl OuterLoop<'_, '_, '_, '_> {
    /// Returns the model of the `previous` working set if `error` means that the time limit has passed.
    fn return_previous(self, error: Error, previous: Option<WarmStart>) -> Result<(Model, Report)> {
        match (error, previous) {
            (Error::Interrupted, Some(previous)) if self.driver.is_late() => self.return_model(previous, Status::TimeLimit),
            (error, _) => Err(error),
        }
    }

    /// Assembles a model of a previous working set, and its report.
    fn return_model(self, model: WarmStart, status: Status) -> Result<(Model, Report)> {
        self.training.interrupt.disarm();
        let mut candidates = model.without_bias();
        candidates.sort_unstable();
        let (problem, sums) = ScaledProblem::new(self.training, candidates)?;
        let solver = EvidenceSolver::new(&problem, sums);
        let run = begin(&self.rvm.inference, &solver, &SearchStart { from: Some(model), restarts: false, dense: false })?;
        self.conclude(&solver, &*run, status)
    }

    /// Assembles the model and the report of the last search.
    fn conclude<'p>(
        mut self,
        solver: &EvidenceSolver<'p>,
        run: &(dyn FitRun<'p> + 'p),
        status: Status,
    ) -> Result<(Model, Report)> {
        let problem = solver.problem;
        self.actions.add(&run.actions());
        let nothing_found = status == Status::Converged && fixed_point::has_nothing(run.form().unwrap_or(solver), run.best())?;
        let log_evidence = run.objective(solver);
        let mut certificate = run.certificate(solver, matches!(status, Status::TimeLimit | Status::Stopped));
        // The model of an earlier working set is no search that is under way.
        if status == Status::Converged && certificate.reason == UNFINISHED {
            certificate.reason = "the last working set led to no better model".into();
        }
        self.working_sets.certify(&mut certificate, status == Status::Converged);
        let solution = run.best();
        let log_evidence = log_evidence - solver.prior.log(&solution.active);
        let mut adjustments = problem.training.adjustments.clone();
        adjustments.zero_columns = problem.design.norms().iter().filter(|n| **n == 0.0).count();
        adjustments.jitter = solution.jitter;
        adjustments.noise_capped = problem.noise_capped(&solution.beta);
        let trace = std::mem::take(&mut self.driver.trace);
        let model = model_assembly::model(run.form().unwrap_or(solver), solution, log_evidence, status, trace.len())?;
        adjustments.residual_over_noise = residual_over_noise(problem, solution, &model)?;
        let report = Report {
            candidates: self.working_sets.candidates.len(),
            adjustments,
            nothing_found,
            actions: self.actions,
            precisions: model_assembly::precisions(self.rvm, problem.training, &model),
            ..Report::of_end(status, trace, certificate, self.driver.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }
}

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
    /// True if growth has led to the working set of all candidates, and these are few enough for the dense model.
    dense: bool,
    round: Round,
    random: Pcg64,
    /// Largest log evidence of the models of the working sets so far, in internal units.
    log_evidence: f64,
    /// Number of scans over all candidates.
    scans: usize,
    /// Largest gain that the last scan found outside the working set.
    largest_outside: f64,
}

impl WorkingSets {
    /// Returns the working sets of a training set, and the candidates of the first one, which include those in `keep`.
    pub fn new(training: &TrainingSet, keep: &[usize]) -> (WorkingSets, Vec<usize>) {
        let candidates = training.dictionary();
        // Without rows, candidates that are not in the sums cannot be evaluated.
        let whole = candidates.len() <= WorkingSets::most(training) || training.rows.nrows() == 0;
        let drawn = || random_subset(candidates.len(), PART, training.rvm.seed).into_iter().map(|k| candidates[k]).collect();
        let first = if whole { candidates.clone() } else { drawn() };
        let working_sets = WorkingSets {
            candidates,
            whole,
            dense: false,
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

    /// Returns the start of the search in the present working set, from the model of the previous one if there is one.
    pub fn start(&self, from: Option<WarmStart>) -> SearchStart {
        let restarts = self.whole || self.round == Round::Restart;
        SearchStart { from, restarts, dense: self.dense }
    }

    /// Returns the next working set after the search in one has converged, or `None` if no candidate outside it gains
    /// more than `least` nats.
    ///
    /// # Errors
    /// Returns the errors of [`gains`].
    pub fn next(&mut self, solver: &EvidenceSolver, solution: &ActivePosterior, least: f64) -> Result<Option<Vec<usize>>> {
        if self.whole {
            return Ok(None);
        }
        let (training, model) = (solver.problem.training, WarmStart::of(solver, solution).without_bias());
        let rise = solution.log_evidence - self.log_evidence;
        self.log_evidence = self.log_evidence.max(solution.log_evidence);
        let size = WorkingSets::size(model.len());
        // Products that do not fit into memory are computed again for each action.
        let kept = solver.hessian_varies() || keeps_sums(training, self.candidates.len());
        if self.candidates.len() <= if kept { ALL_PER_VECTOR * model.len() } else { size } {
            (self.whole, self.dense) = (true, self.candidates.len() <= MOST_DENSE);
            return Ok(Some(self.candidates.clone()));
        }
        let gains = gains(solver, solution, &self.candidates)?;
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
            Round::Restart if helps => Round::Last,
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

/// Returns the union of both lists, ascending.
fn united(mut some: Vec<usize>, others: &[usize]) -> Vec<usize> {
    some.extend(others);
    some.sort_unstable();
    some.dedup();
    some
}

/// Returns the gains of `candidates`, `[C]`, in nats: what adding each of them at its best precision to `solution`
/// would gain, less the penalty per kernel. The gain is 0 if the addition would not raise the evidence. The noise
/// precision is profiled out, (M8).
///
/// # Errors
/// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
pub(crate) fn gains(solver: &EvidenceSolver, solution: &ActivePosterior, candidates: &[usize]) -> Result<Vec<f64>> {
    let training = solver.problem.training;
    let copies = (solution.outputs / training.noise.len()) as f64;
    let energy: Vec<f64> = solution.energy.iter().map(|e| e.max(1e-13 * training.count)).collect();
    let of_noise = |(noise, e): (&NoisePrecision, &f64)| noise.profile(*e, training.count, copies);
    let profiles: Vec<NoiseProfile> = training.noise.iter().zip(&energy).map(of_noise).collect();
    let nats = solver.prior.nats;
    evaluate(solver, solution, candidates, &energy, |square, candidate| {
        let best = candidate.best(&profiles, 0.0).filter(|_| candidate.s > SPAN_FLOOR * square);
        best.map_or(0.0, |a| (candidate.contribution(a, &profiles) - nats).max(0.0))
    })
}

/// Calls `of` with the squared norm and the factors S and Q of each candidate, and returns the results in the order of
/// `candidates`. `energy` is E of (M2) for each noise.
///
/// Let B be the Hessian of the negative log-likelihood of each row at the solution, and r the gradient of the
/// log-likelihood, both times the sample weights. Then S = phi'B phi - |inv(R) Phi_A'B phi|^2 and Q = phi'r, for every
/// likelihood.
///
/// # Errors
/// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
fn evaluate<T: Send>(
    solver: &EvidenceSolver,
    solution: &ActivePosterior,
    candidates: &[usize],
    energy: &[f64],
    of: impl Fn(f64, ColumnFactors) -> T + Sync,
) -> Result<Vec<T>> {
    let (problem, training) = (solver.problem, solver.problem.training);
    let (outputs, noises, m) = (solution.outputs, energy.len(), solution.active.len());
    let derivatives = problem.working(&fitted(problem, solution));
    let b: Vec<f64> = derivatives.curvature.iter().zip(&training.weights).map(|(b, c)| b * c).collect();
    // B Phi_A and r side by side, [N, M + R].
    let mut left = Array2::zeros((b.len(), m + outputs));
    left.slice_mut(s![.., ..m]).assign(&problem.design.select(&solution.active));
    for (n, mut row) in left.outer_iter_mut().enumerate() {
        row.slice_mut(s![..m]).mapv_inplace(|v| v * b[n]);
        let residual = &derivatives.residual[n * outputs..(n + 1) * outputs];
        row.slice_mut(s![m..]).iter_mut().zip(residual).for_each(|(v, r)| *v = r * training.weights[n]);
    }
    let mut out = Vec::with_capacity(candidates.len());
    for tile in candidates.chunks(TILE) {
        let (rows, columns) = training.columns(tile);
        let design = Design::unscaled(rows, columns, false, training.memory_limit, training.interrupt.clone());
        let (square, mut products) = design.products(&b, left.view());
        training.interrupt.check()?;
        let (mut with_model, with_residual) = products.view_mut().split_at(Axis(0), m);
        linalg::solve_lower(solution.lower.view(), with_model.view_mut());
        let inside = squares(with_model.view());
        out.extend(square.iter().zip(inside).enumerate().map(|(j, (square, inside))| {
            let seen = |k: usize, q: f64| Quality { q, energy: energy[k] };
            let seen = by_noise(noises, outputs, |r| with_residual[[r, j]], seen);
            of(*square, ColumnFactors { s: square - inside, seen })
        }));
    }
    Ok(out)
}

/// Returns the sums of squares, `[M]`, of the columns of `a`, `[N, M]`.
fn squares(a: ArrayView2<f64>) -> Vec<f64> {
    let mut out = vec![0.0; a.ncols()];
    for row in a.axis_iter(Axis(0)) {
        out.iter_mut().zip(row).for_each(|(o, v)| *o += v * v);
    }
    out
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Gaussian, Softmax};
    use crate::report::Interrupt;
    use crate::rvm::data::noise::NoisePrecision;
    use crate::rvm::data::training_set::TrainingSet;
    use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
    use crate::rvm::evidence::active_posterior::NoiseChoice;
    use crate::rvm::gram::scaled_problem::ScaledProblem;
    use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule};
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    /// Returns the gains of additions according to the factor of all candidates, `[P]`.
    fn by_factor(factor: &ActiveFactor) -> Vec<f64> {
        let gain = |action| match action {
            Some((Action::Add { .. }, gain)) => f64::max(gain, 0.0),
            _ => 0.0,
        };
        factor.actions().into_iter().map(gain).collect()
    }

    /// Returns |r| for each noise: the weighted norm of the gradient of the log-likelihood by row.
    fn residual_sizes(problem: &ScaledProblem, solution: &ActivePosterior) -> Vec<f64> {
        let (outputs, weights) = (solution.outputs, &problem.training.weights);
        let residual = problem.working(&fitted(problem, solution)).residual;
        let square = |k: usize| residual.iter().skip(k).step_by(outputs).zip(weights).map(|(r, c)| c * r * r).sum::<f64>();
        match problem.training.noise.len() {
            1 => vec![(0..outputs).map(square).sum::<f64>().sqrt()],
            noises => (0..noises).map(|k| square(k).sqrt()).collect(),
        }
    }

    /// Gains of candidates outside a working set, from derivatives by row, equal those from the factor of all
    /// candidates.
    #[test]
    fn gains_outside_a_working_set_equal_those_of_all_candidates() {
        let x = Array2::from_shape_fn((600, 2), |(i, d)| ((i * (7 + 4 * d)) % 600) as f64 / 150.0 + 0.001 * (i + d) as f64);
        let f = x.map_axis(Axis(1), |r| f64::sin(2.0 * r[0]) + f64::cos(3.0 * r[1]) + 0.3 * f64::sin(40.0 * r[0] * r[1]));
        let labels: Vec<usize> = f.iter().map(|f| usize::from(*f > 0.2)).collect();
        let kinds: Vec<usize> = f.iter().map(|f| (f + 1.5).clamp(0.0, 3.0) as usize).collect();
        let c = Array1::from_shape_fn(600, |i| 0.5 * (1 + i % 4) as f64);
        let t = f.mapv(|f| f + 50.0);
        let three = Array2::from_shape_fn((600, 3), |(i, k)| [t[i], 0.1 * f[599 - i], 7.0 * f[i].powi(2) - 900.0][k]);
        let variances = Array1::from_shape_fn(600, |i| 0.02 * (1 + i % 5) as f64);
        let fixed = Gaussian { noise_variance: Some(0.05) };
        for (likelihood, bias, outputs, known) in [
            (Gaussian::default().into(), true, 1, false),
            (Gaussian::default().into(), false, 1, false),
            (Gaussian::default().into(), true, 1, true),
            (fixed.clone().into(), true, 1, false),
            (Bernoulli::default().into(), true, 1, false),
            (Bernoulli::default().into(), false, 1, false),
            (Softmax::default().into(), true, 1, false),
            (Softmax::default().into(), false, 1, false),
            (Gaussian::default().into(), true, 3, false),
            (Gaussian::default().into(), false, 3, false),
            (fixed.into(), true, 3, false),
        ] {
            let kernel = Rbf { gamma: 1.5.into() }.into();
            let dictionary = Dictionary::Rule(DictionaryRule::All);
            let rvm = Rvm { kernel, dictionary, bias, likelihood, ..Rvm::tipping2001() };
            let (classes, several) = (rvm.likelihood.name() != "gaussian", rvm.likelihood.name() == "softmax");
            let targets = match (classes, several) {
                (false, _) if outputs > 1 => Targets::outputs(three.view()),
                (false, _) => Targets::real(t.view()),
                (true, false) => Targets::classes(&labels, 2),
                (true, true) => Targets::classes(&kinds, 4),
            };
            let targets = targets.with_weights(c.view());
            let targets = if known { targets.with_noise_variance(variances.view()) } else { targets };
            let training = TrainingSet::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
            let (inside, outside): (Vec<usize>, Vec<usize>) = training.dictionary().into_iter().partition(|k| k % 3 == 0);

            let (part, sums) = ScaledProblem::new(&training, inside).unwrap();
            let solver = EvidenceSolver::new(&part, sums);
            let active: Vec<usize> = (0..part.design.n_columns()).step_by(17).collect();
            let a: Vec<f64> = (0..active.len()).map(|k| 10f64.powi((k % 4) as i32 - 3)).collect();
            let solution = solver.solve(&active, &a, &training.noise, NoiseChoice::Best, None).unwrap();
            let found = gains(&solver, &solution, &outside).unwrap();

            let (all, sums) = ScaledProblem::new(&training, training.dictionary()).unwrap();
            let whole = EvidenceSolver::new(&all, sums);
            let first = usize::from(bias);
            let column = |j: usize| if j < first { 0 } else { all.column_of(part.candidates[j - first]).unwrap() };
            let active: Vec<usize> = active.into_iter().map(column).collect();
            let same = whole.solve(&active, &a, &training.noise, NoiseChoice::Best, None).unwrap();
            let name = format!("{:?} bias {bias} outputs {outputs} known noise {known}", rvm.likelihood);
            assert!((same.log_evidence - solution.log_evidence).abs() < 1e-9 * solution.log_evidence.abs(), "{name}");
            let factor_of = |noise: &[NoisePrecision]| ActiveFactor::new(whole.quadratic(&same), &same, noise, whole.prior);
            let factor = |noise: &[NoisePrecision]| by_factor(&factor_of(noise));

            // Compare S and Q of every candidate outside the model: S relative to phi'B phi, Q relative to |phi| |r|.
            let model: Vec<usize> = same.active.iter().filter(|j| **j >= first).map(|j| all.candidates[*j - first]).collect();
            let rest: Vec<usize> = training.dictionary().into_iter().filter(|p| !model.contains(p)).collect();
            let expected = factor_of(&training.noise).candidates();
            let sizes = residual_sizes(&part, &solution);
            let see = |square: f64, candidate| (square, candidate);
            let seen = evaluate(&solver, &solution, &rest, &solution.energy, see).unwrap();
            assert_eq!(seen.len(), rest.len());
            for (candidate, (square, seen)) in rest.iter().zip(&seen) {
                let column = all.column_of(*candidate).unwrap();
                let (norm, expected) = (all.design.norms()[column], &expected[column]);
                let off = (seen.s - expected.s * norm * norm).abs();
                assert!(off < 1e-9 * square, "{name}: S of {candidate} is off by {off:e} of {square:e}");
                for ((seen, expected), size) in seen.seen.iter().zip(&expected.seen).zip(&sizes) {
                    let off = (seen.q - expected.q * norm).abs();
                    assert!(off < 1e-9 * norm * size, "{name}: Q of {candidate} is off by {off:e} of {:e}", norm * size);
                }
            }

            let expected = factor(&training.noise);
            let largest = expected.iter().fold(0.0f64, |l, g| l.max(*g));
            assert!(largest > 1.0, "{name}: something is to be gained, {largest}");
            for (candidate, found) in outside.iter().zip(&found) {
                let expected = expected[all.column_of(*candidate).unwrap()];
                assert!((found - expected).abs() < 1e-9 * largest, "{name}: {found} {expected} of {largest}");
            }
        }
    }
}
