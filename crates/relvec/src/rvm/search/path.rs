//! The path of a search: a model of a sample to begin at, one working set after another, and the model in the end.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Actions, Report, Status};
use crate::rvm::data::table::Table;
use crate::rvm::evidence::fitted::residual_over_noise;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::evidence::{empty, finish};
use crate::rvm::gram::problem::Problem;
use crate::rvm::search::by_class::ClassSearch;
use crate::rvm::search::in_time;
use crate::rvm::search::parts::Parts;
use crate::rvm::search::reestimation::Reestimation;
use crate::rvm::search::run::{Aim, Entry, Run, Warm};
use crate::rvm::search::running::Running;
use crate::rvm::search::sequential::OneByOne;
use crate::rvm::search::variational::Factors;
use crate::rvm::search::watch::Watch;
use crate::rvm::settings::inference::Inference;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Start};
use crate::sums::Sums;

/// A log evidence of a part that is lower by a larger share has fallen.
const ROUNDING: f64 = 1e-9;

/// Begins a fit, or goes on with it in another part of the dictionary.
fn begin<'p>(inference: &Inference, work: &Workspace<'p>, entry: &Entry) -> Result<Box<dyn Run<'p> + 'p>> {
    Ok(match inference {
        Inference::Search(scheme) => Box::new(Running::start(work, scheme, entry)?),
        Inference::Sequential(scheme) => Box::new(OneByOne::start(work, scheme, entry)?),
        Inference::MacKay(scheme) => Box::new(Reestimation::start(work, scheme.into(), entry)?),
        Inference::Em(scheme) => Box::new(Reestimation::start(work, scheme.into(), entry)?),
        Inference::Variational(scheme) => Box::new(Factors::start(work, scheme)?),
    })
}

/// Part after part of the dictionary (mostly the first is all of it) until none would help any more. `start`: the
/// model to go on from; `brief`: with one excursion at most where the dictionary is one part.
pub(crate) fn search(
    rvm: &Rvm,
    table: &Table,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    brief: bool,
    watch: &mut Watch,
) -> Result<(Model, Report)> {
    if start.is_some() {
        return search_from(rvm, table, sums, start, brief, watch);
    }
    let hasty = in_time::hasty(rvm, table, watch, &in_sample)?;
    if hasty.is_some() {
        // There is a model to return from now on.
        table.interrupt.arm();
    }
    let found = search_from(rvm, table, sums, None, brief, watch);
    table.interrupt.disarm();
    let hasty = hasty.map(|(model, report)| (model, Report { seconds: watch.elapsed().as_secs_f64(), ..report }));
    match (found, hasty) {
        (Err(Error::Interrupted), Some(hasty)) if !table.interrupt.is_raised_by_hand() => Ok(in_time::of_sample(hasty)),
        // Of all rows there is but the first model, which has no basis function.
        (Ok((model, _)), Some(hasty)) if model.status == Status::TimeLimit && model.relevance.is_empty() => {
            Ok(in_time::of_sample(hasty))
        }
        (found, _) => found,
    }
}

/// [`search`] without a sample before it.
fn search_from(
    rvm: &Rvm,
    table: &Table,
    sums: Option<Sums>,
    start: Option<&Hyperparameters>,
    brief: bool,
    watch: &mut Watch,
) -> Result<(Model, Report)> {
    let scheme = rvm.inference.as_dyn();
    let keep = match (start, scheme.start()) {
        (Some(given), _) | (None, Start::Given(given)) => table.places_of(given),
        (None, Start::Auto | Start::Empty) => vec![],
    };
    let (parts, mut places) = Parts::new(table, &keep, brief);
    let mut outer = Outer { rvm, table, parts, actions: Actions::default(), watch };
    let (mut given, mut start, mut from) = (sums, start, None);
    // The best model of the parts before, and its log evidence: sums in another part round otherwise.
    let mut best: Option<(Warm, f64)> = None;
    loop {
        // What there is to return if the time is up before this part is under way.
        let last = from.clone().filter(|_| table.height() > 0);
        let made = match given.take() {
            Some(sums) => {
                let (problem, sums) = Problem::of_sums(table, places, sums);
                Ok((problem, Some(sums)))
            }
            None => Problem::new(table, places),
        };
        let (problem, sums) = match made {
            Ok(made) => made,
            Err(error) => return outer.cut_short(error, last),
        };
        let work = Workspace::new(&problem, sums);
        if let Some(start) = start.take() {
            from = Some(Warm::at(&problem, start)?);
        }
        let mut run = match begin(&rvm.inference, &work, &Entry { from: from.take(), aim: outer.parts.aim() }) {
            Ok(run) => run,
            Err(error) => return outer.cut_short(error, last),
        };
        let mut status = outer.watch.drive(&mut *run, &work)?;
        let reached = run.best().log_evidence;
        let falls = best.as_ref().is_some_and(|(_, before)| before - reached > ROUNDING * before.abs().max(1.0));
        if status == Status::Converged {
            match outer.parts.next(&work, run.best(), scheme.least_gain(table.count, run.best().is_ample())) {
                Ok(None) => {}
                Ok(Some(next)) => match outer.watch.spent() {
                    Some(spent) => status = spent,
                    None => {
                        outer.actions.add(&run.actions());
                        (places, from) = (next, Some(Warm::of(&work, run.best())));
                        if !falls {
                            best = from.clone().map(|warm| (warm, reached));
                        }
                        continue;
                    }
                },
                Err(Error::Interrupted) if outer.watch.is_late() => status = Status::TimeLimit,
                Err(error) => return Err(error),
            }
        }
        table.interrupt.disarm();
        return match best.filter(|_| falls) {
            Some((best, _)) => {
                outer.actions.add(&run.actions());
                outer.end_with(best, status)
            }
            None => outer.conclude(&work, &*run, status),
        };
    }
}

pub(super) fn in_sample(rvm: &Rvm, sample: &Table, watch: &mut Watch) -> Result<(Model, Report)> {
    search_from(rvm, sample, None, None, false, watch)
}

/// The alternation of searches in one working set and scans for the next.
struct Outer<'a, 'w, 'o, 'f> {
    rvm: &'a Rvm,
    table: &'a Table<'a>,
    parts: Parts,
    actions: Actions,
    watch: &'w mut Watch<'o, 'f>,
}

impl Outer<'_, '_, '_, '_> {
    /// Ends with the `last` model if it is the time that has ended the search between two parts.
    fn cut_short(self, error: Error, last: Option<Warm>) -> Result<(Model, Report)> {
        match (error, last) {
            (Error::Interrupted, Some(last)) if self.watch.is_late() => self.end_with(last, Status::TimeLimit),
            (error, _) => Err(error),
        }
    }

    /// Ends with a model that is not that of the last search.
    fn end_with(self, model: Warm, status: Status) -> Result<(Model, Report)> {
        self.table.interrupt.disarm();
        let mut places = model.kept();
        places.sort_unstable();
        let (problem, sums) = Problem::new(self.table, places)?;
        let work = Workspace::new(&problem, sums);
        let run = begin(&self.rvm.inference, &work, &Entry { from: Some(model), aim: Aim::Rest })?;
        self.conclude(&work, &*run, status)
    }

    /// The model and the report of the search that ended.
    fn conclude<'p>(mut self, work: &Workspace<'p>, run: &(dyn Run<'p> + 'p), status: Status) -> Result<(Model, Report)> {
        let problem = work.problem;
        self.actions.add(&run.actions());
        let (mut run, mut status) = (run, status);
        let nothing_found = status == Status::Converged && empty::has_nothing(run.form().unwrap_or(work), run.best())?;
        let mut search = match self.rvm.by_class() {
            true => Some(ClassSearch::start(work, run.best())?),
            false => None,
        };
        if let Some(search) = &mut search {
            if status == Status::Converged {
                status = self.watch.drive(search, work)?;
                problem.table.interrupt.disarm();
            }
            self.actions.add(&search.actions());
            run = search;
        }
        let log_evidence = run.objective(work);
        let mut certificate = run.certificate(work, matches!(status, Status::TimeLimit | Status::Stopped));
        self.parts.certify(&mut certificate, status == Status::Converged);
        let solution = run.best();
        let log_evidence = log_evidence - work.prior.log(&solution.active);
        let mut repairs = problem.table.repairs.clone();
        repairs.zero_columns = problem.design.norms().iter().filter(|n| **n == 0.0).count();
        repairs.jitter = solution.jitter;
        repairs.noise_capped = problem.noise_capped(&solution.beta);
        let trace = std::mem::take(&mut self.watch.trace);
        let model = finish::model(run.form().unwrap_or(work), solution, log_evidence, status, trace.len())?;
        repairs.residual_over_noise = residual_over_noise(problem, solution, &model)?;
        let report = Report {
            candidates: self.parts.n_candidates(),
            repairs,
            nothing_found,
            actions: self.actions,
            precisions: finish::precisions(self.rvm, problem.table, &model),
            ..Report::of_end(status, trace, certificate, self.watch.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }
}
