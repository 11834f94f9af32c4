//! Classification from a table in blocks. The rows are copied once to a file that the fit can read several times.

use anyhow::Result;
use relvec::{Centres, Interrupt, Landmarks, Model, Progress, Report, Rvm, Status};

use super::source::Source;
use super::spill::{Spill, Spilled};
use super::survey::{Found, Survey};
use super::{Clock, Job, cut_short, given, prepare};
use crate::args::Task;
use crate::progress::Reporter;
use crate::settings;
use crate::target::tell_task;
use crate::text::count;
use crate::training::TrainingRows;

/// Fits the classes. `reason`: why the target is treated as classes, if the arguments do not decide this.
pub(super) fn fit(job: &Job, source: &Source, clock: &Clock, reason: Option<&str>) -> Result<(Model, Report)> {
    let rows = TrainingRows::open(job.path, job.roles)?;
    let (features, target) = (rows.features().to_vec(), rows.target().to_string());
    if let Some(reason) = reason {
        tell_task(Task::Classify, &target, reason);
    }
    let sizes = job.sizes(&rows)?;
    let mut spill = Spill::new(&target, features.len(), job.roles.weights.is_some())?;
    let survey = match Survey::take(job, rows, Some(Task::Classify), &sizes, clock, Some(&mut spill))? {
        Found::Rows(survey) => survey,
        Found::Classes(_) => unreachable!("the task is settled"),
    };
    source.check(job.path)?;
    survey.check()?;
    let spilled = spill.finish(survey.scaling.clone())?;
    let likelihood = if job.task.is_some() { job.rvm.likelihood.clone() } else { settings::likelihood(Task::Classify) };
    let own = Rvm { likelihood, ..job.rvm.clone() };
    if own.has_process_in_blocks() {
        return by_regression(&Job { rvm: &own, ..*job }, &survey, spilled, features, clock);
    }
    let (plan, kernel, centres) = prepare(&Job { rvm: &own, ..*job }, &survey, &sizes, clock, Some(&spilled.class_of))?;

    let landmarks = Landmarks::Given(Centres(centres));
    let rvm = Rvm { kernel, kernels: vec![], landmarks, time_limit: clock.left(), ..own };
    let mut reporter = Reporter::of(&rvm.inference);
    let (mut model, mut report) =
        rvm.fit_blocks_with(&spilled, &mut |progress: &Progress| reporter.observe(progress), &Interrupt::default())?;
    drop(reporter);
    if !survey.whole {
        (model.status, report.status) = (Status::TimeLimit, Status::TimeLimit);
        report.certificate.reason = cut_short(job, survey.rows, None);
    }
    report.seconds = clock.seconds();
    let members = model.committee.iter_mut().flat_map(|committee| &mut committee.members);
    let relevance = members.flat_map(|member| &mut member.relevance).chain(&mut model.relevance);
    relevance.for_each(|k| *k = plan.landmarks[*k]);
    (model.scaling, model.features, model.classes) = (plan.scaling, features, spilled.names);
    Ok((model, report))
}

/// Fits classes under a process prior by regression on labels. `features`: their names.
fn by_regression(job: &Job, survey: &Survey, spilled: Spilled, features: Vec<String>, clock: &Clock) -> Result<(Model, Report)> {
    let landmarks = given(job, survey.scaling.as_ref()).map_or_else(|| job.rvm.landmarks.clone(), Landmarks::Given);
    let rvm = Rvm { landmarks, time_limit: clock.left(), ..job.rvm.clone() };
    let mut reporter = Reporter::of(&rvm.inference);
    let (mut model, mut report) =
        rvm.fit_blocks_with(&spilled, &mut |progress: &Progress| reporter.observe(progress), &Interrupt::default())?;
    drop(reporter);
    if let Some(search) = &report.kernel_search {
        let rows = search.rows.max(search.more_rows);
        say!("note: the kernel is learned from {rows} of {}", count(survey.rows, "row"));
    }
    if !survey.whole && report.adjustments.left_out_rows == 0 {
        (model.status, report.status) = (Status::TimeLimit, Status::TimeLimit);
        report.certificate.reason = cut_short(job, survey.rows, None);
    }
    report.seconds = clock.seconds();
    (model.scaling, model.features, model.classes) = (survey.scaling.clone(), features, spilled.names);
    Ok((model, report))
}
