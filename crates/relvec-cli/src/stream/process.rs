//! Regression under a process prior, counts and Student-t noise from a table in blocks. Kernel, centres, amplitude and noise
//! are learned from the sample of the first pass, the weights from all rows in further passes.

use anyhow::Result;
use ndarray::{Array1, ArrayView2};
use relvec::{Blocks, Error, Interrupt, Landmarks, Model, Progress, Report, Rvm, Scaling, Status, Targets};

use super::memory::Sizes;
use super::survey::Survey;
use super::{Clock, Job, cut_short, given, has_given};
use crate::progress::{Pass, Reporter};
use crate::text::count;
use crate::training::TrainingRows;

/// Source that reads the rows of the first pass again.
struct Rows<'a> {
    job: &'a Job<'a>,
    scaling: Option<&'a Scaling>,
    /// Number of rows.
    rows: usize,
    block_rows: usize,
}

/// Fits the model. `features`: names of the features.
pub(super) fn fit(job: &Job, survey: &Survey, sizes: &Sizes, clock: &Clock, features: Vec<String>) -> Result<(Model, Report)> {
    survey.check()?;
    let (scaling, x, targets) = (survey.scaling.as_ref(), survey.scaled(), survey.sample.targets());
    let landmarks = given(job, scaling).map_or_else(|| job.rvm.landmarks.clone(), Landmarks::Given);
    let memory_limit = Some(sizes.limit.saturating_sub(sizes.sampled()).max(1));
    let rvm = Rvm { landmarks, memory_limit, time_limit: clock.left(), ..job.rvm.clone() };
    let by_process = rvm.has_process_in_blocks();
    if !survey.sample.whole {
        let learned = if by_process { "kernel, centres, amplitude and noise" } else { "kernel and centres" };
        say!("note: {learned} are learned from {} of {}", x.nrows(), count(survey.rows, "row"));
    }
    let rows = Rows { job, scaling, rows: survey.rows, block_rows: sizes.block_rows() };
    let mut reporter = Reporter::of(&rvm.inference);
    let observer = &mut |progress: &Progress| reporter.observe(progress);
    let (mut model, mut report) = match by_process {
        true => rvm.fit_blocks_with_sample(x.view(), &targets, &rows, observer)?,
        // The numbers of relevance vectors and of rows that are left out are then those of the table.
        false => rvm.fit_blocks_with(&rows, observer, &Interrupt::default())?,
    };
    drop(reporter);
    let left_out = report.adjustments.left_out_rows;
    if left_out > 0 && by_process {
        // The weights are fitted to some rows of the sample only.
        report.adjustments.left_out_rows = survey.rows - (x.nrows() - left_out);
    } else if !survey.whole && left_out == 0 {
        (model.status, report.status) = (Status::TimeLimit, Status::TimeLimit);
        report.certificate.reason = cut_short(job, survey.rows, None);
    }
    report.seconds = clock.seconds();
    if !has_given(job) && by_process {
        let row = |place: &mut usize| *place = survey.number(*place);
        model.relevance.iter_mut().for_each(row);
        model.process.iter_mut().flat_map(|process| &mut process.searched).for_each(row);
    }
    report.adjustments.constant_features = survey.constant.clone();
    model.n_rows = survey.rows;
    (model.scaling, model.features) = (scaling.cloned(), features);
    Ok((model, report))
}

impl Blocks for Rows<'_> {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> relvec::Result<()>) -> relvec::Result<()> {
        // The first pass could read these cells, so an error means that the file has changed.
        let failed = |e: anyhow::Error| Error::Rows(format!("{e:#}"));
        let mut rows = TrainingRows::open(self.job.path, self.job.roles).map_err(failed)?;
        let d = rows.features().len();
        let pass = Pass::new("next pass");
        let (mut block, mut done) = (rows.block(), 0);
        while done < self.rows && rows.read(&mut block, self.block_rows.min(self.rows - done)).map_err(failed)? {
            let x = ArrayView2::from_shape((block.target.len(), d), &block.x).expect("D numbers a row");
            let scaled = self.scaling.map(|scaling| scaling.apply(x));
            let t: Array1<f64> = block.target.numbers().collect();
            each(scaled.as_ref().map_or(x, |x| x.view()), &block.with_rest(Targets::real(t.view())))?;
            done += block.target.len();
            pass.at(done, rows.table().share());
        }
        if done < self.rows {
            return Err(Error::Rows(format!("`{}` has {done} rows now; there were {}", self.job.path.display(), self.rows)));
        }
        Ok(())
    }
}
