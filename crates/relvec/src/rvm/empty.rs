//! Searches that end with an empty model though the targets have structure.
//!
//! Of kernels that are nearly constant over the rows (wide ones, linear and polynomial ones far from the origin) no single basis
//! function raises the evidence; only differences of several do. MacKay's fixed point from all columns at once leads to a
//! model to go on from.

use super::batch::{Batch, MAX_HALVINGS, Rule};
use super::gain::LEAST_PRECISION;
use super::mackay::MacKay;
use super::parts::Warm;
use super::problem::keeps_sums;
use super::reestimation;
use super::scheme::{Aim, Entry, Hyperpriors, Run, Scheme};
use super::solution::{At, Solution, typical};
use super::watch::Watch;
use super::workspace::Workspace;
use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};

/// A model whose log evidence is within so many nats of that of the empty one has learned nothing.
const WITHIN: f64 = 0.5;
/// First precisions over those that the scheme `mackay` begins with; the better end goes on. Differences of kernels that agree to three digits need
/// weights a thousand times as large, whose precisions are a millionth.
const FIRST: [f64; 2] = [1.0, 1e-6];
/// Iterations from each: a model that is going to have structure has most of its evidence by then, and the search goes on.
const STEPS: usize = 100;
/// Most weights at first, of all outputs: an iteration costs their cube, here about 10 ms.
const MOST_WEIGHTS: usize = 500;
/// Of several classes in one model, whose mode takes many solves of that size.
const MOST_COUPLED: usize = 160;
/// Multiply-adds of a look at the rows at most, where their curvature moves: of more rows fewer columns are taken.
const LOOK: f64 = 5e8;
/// The bias of the empty model is at its best when its log precision moves by less; that takes a few steps.
const AT_BEST: f64 = 1e-3;
const BIAS_STEPS: usize = 30;

/// The bias of the empty model is re-estimated alone.
const BIAS: Batch = Batch {
    rules: &[Rule::Exact, Rule::MacKay, Rule::Em],
    hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
    clip: 4.0,
    gone: 0.0,
    drops: false,
    halvings: MAX_HALVINGS,
};

/// Whether a model has learned nothing: its log evidence is that of the empty model, or next to it.
///
/// # Errors
/// Returns the errors of [`Workspace::solve`].
pub(super) fn has_nothing(work: &Workspace, model: &Solution) -> Result<bool> {
    let problem = work.problem;
    if problem.table.repairs.constant_target || problem.table.bias_only {
        return Ok(false);
    }
    let kernels = model.active.iter().any(|j| *j > 0 || !problem.has_bias);
    // To look at rows that are read in blocks once more takes longer than it is worth, and a bound is no evidence.
    let known = problem.table.blocks.is_none() && !work.is_stand_in();
    Ok(!kernels || known && is_near_nothing(work, work.log_evidence(model))?)
}

/// Whether a log evidence is next to that of the model without basis functions, with the bias or without.
fn is_near_nothing(work: &Workspace, log_evidence: f64) -> Result<bool> {
    let (problem, noise) = (work.problem, &work.problem.table.noise);
    let near = |empty: &Solution| log_evidence <= work.log_evidence(empty) + WITHIN;
    if near(&work.solve(&[], &[], noise, At::Best, None)?) {
        return Ok(true);
    }
    if !problem.has_bias || problem.design.norms()[0] == 0.0 {
        return Ok(false);
    }
    let unit = typical(&noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect::<Vec<f64>>());
    let first: Vec<f64> = problem.first_precisions(&[0], 1.0 / problem.table.count).iter().map(|alpha| alpha / unit).collect();
    let mut now = work.solve(&[0], &first, noise, At::Best, None)?;
    // Beyond the likelihood at the mode there is no evidence of such a model.
    let occam = now.outputs as f64 * (now.lower[[0, 0]] / now.a[0].sqrt()).ln() + 0.5 * now.a[0] * now.relative_square(0);
    if log_evidence > work.log_evidence(&now) + occam + WITHIN {
        return Ok(false);
    }
    for _ in 0..BIAS_STEPS {
        let Some(step) = BIAS.step(work, noise, &now)? else { break };
        now = step.solution;
        if step.change < AT_BEST {
            break;
        }
    }
    Ok(near(&now))
}

/// A model to go on from where the search has led to `nothing`, if MacKay's fixed point leads to one; and how that ended:
/// unless converged the search does not go on.
///
/// # Errors
/// As [`Watch::drive`].
pub(super) fn other<'p>(work: &Workspace<'p>, nothing: &Solution, watch: &mut Watch) -> Result<(Option<Warm>, Status)> {
    let problem = work.problem;
    let least = work.log_evidence(nothing) + WITHIN;
    let columns = problem.usable().len() as u64;
    if columns == 0 || problem.dense_bytes(columns.min(MOST_WEIGHTS as u64)) > problem.room() {
        return Ok((None, Status::Converged));
    }
    let mut best: Option<(Warm, f64)> = None;
    for factor in FIRST {
        if let Some(status) = watch.spent() {
            return Ok((best.map(|(warm, _)| warm), status));
        }
        let entry = Entry { from: Some(beginning(work, factor)), aim: Aim::Rest };
        let most = watch.limit(STEPS);
        let mut end = || -> Result<(Warm, f64, Status)> {
            let mut run = WithPrior(MacKay::default().start(work, &entry)?);
            let status = watch.drive(&mut run, work)?;
            Ok((Warm::of(work, run.best()), work.log_evidence(run.best()), status))
        };
        let ended = end();
        watch.max_iterations = most;
        let (warm, log_evidence, status) = match ended {
            // Nearly equal columns are not independent at so low precisions.
            Err(Error::Singular { .. }) => continue,
            other => other?,
        };
        if log_evidence > best.as_ref().map_or(least, |(_, value)| *value) {
            best = Some((warm, log_evidence));
        }
        let cut = status == Status::IterationLimit && watch.spent().is_none();
        if !cut && !matches!(status, Status::Converged | Status::Singular) {
            return Ok((best.map(|(warm, _)| warm), status));
        }
    }
    Ok((best.map(|(warm, _)| warm), Status::Converged))
}

/// A run whose trace is that of the search: with the log prior of the kernels, which other schemes leave out.
struct WithPrior<'p>(Box<dyn Run<'p> + 'p>);

impl<'p> Run<'p> for WithPrior<'p> {
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>> {
        self.0.step(work)
    }

    fn best(&self) -> &Solution {
        self.0.best()
    }

    fn objective(&self, work: &Workspace<'p>) -> f64 {
        work.problem.log_evidence_out(self.best().log_evidence)
    }

    fn certificate(&self, work: &Workspace<'p>, late: bool) -> Certificate {
        self.0.certificate(work, late)
    }

    fn actions(&self) -> Actions {
        self.0.actions()
    }
}

/// All columns, or an even choice of them, at `factor` times the first precisions of the scheme `mackay`.
fn beginning(work: &Workspace, factor: f64) -> Warm {
    let problem = work.problem;
    let table = problem.table;
    let outputs = table.outputs.max(1);
    let coupled = outputs > 1 && !problem.constant_curvature();
    let mut most = if coupled { MOST_COUPLED / outputs } else { MOST_WEIGHTS / outputs };
    if !(problem.constant_curvature() && keeps_sums(table, problem.places.len())) {
        most = most.min((LOOK / problem.n_rows().max(1) as f64).sqrt() as usize / outputs);
    }
    let (all, alpha, beta) = reestimation::first_precisions(work, None, None);
    let unit = typical(&beta);
    let is_bias = |j: usize| j == 0 && problem.has_bias;
    let every = all.len().div_ceil(most.max(1));
    let kept = |(k, j): &(usize, &usize)| is_bias(**j) || k % every == 0;
    let relative = |(k, j): (usize, &usize)| match is_bias(*j) {
        true => alpha[k] / unit,
        false => (factor * alpha[k] / unit).max(LEAST_PRECISION),
    };
    let first = usize::from(problem.has_bias);
    let place = |j: &usize| (*j >= first).then(|| problem.places[*j - first]);
    Warm {
        places: all.iter().enumerate().filter(kept).map(|(_, j)| place(j)).collect(),
        a: all.iter().enumerate().filter(kept).map(relative).collect(),
        beta,
        mode: None,
        mean: None,
    }
}
