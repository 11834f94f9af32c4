//! The first pass: collects what the sums need to know about all rows.

use anyhow::{Result, bail};
use ndarray::{Array1, Array2, ArrayView2};
use relvec::{DataScale, Error, Likelihood, SampledRows, Scaling, Targets};

use super::memory::Sizes;
use super::spill::Spill;
use super::{Clock, Job};
use crate::args::Task;
use crate::progress::Pass;
use crate::training::TrainingRows;

/// Least rows of positive weight for a fit.
const LEAST_ROWS: usize = 2;

/// Results of the first pass.
pub(super) struct Survey {
    pub rows: usize,
    /// True if all rows were read before the time limit.
    pub whole: bool,
    /// Rows of positive weight.
    pub used: usize,
    /// Scaling of the features, if they are standardised.
    pub scaling: Option<Scaling>,
    /// Spread of the features in scaled units, for `gamma = "scale"`.
    pub scale: DataScale,
    /// Features that are constant over all rows of positive weight.
    pub constant: Vec<usize>,
    /// Sample of different rows of positive weight. Targets of classes are numbers in order of first appearance.
    pub sample: SampledRows,
    /// Reason why the target is treated as real values; `None` if the arguments say so.
    pub reason: Option<&'static str>,
}

/// Result of a first pass.
pub(super) enum Found {
    Rows(Box<Survey>),
    /// The target is classes, for this reason, and the classes are not counted yet.
    Classes(&'static str),
}

impl Survey {
    /// Reads the rows in blocks until the time limit. It keeps a sample, and writes all rows of a classification to
    /// `spill`. It stops at the first cell that a fit could not use.
    pub fn take(
        job: &Job,
        mut rows: TrainingRows,
        task: Option<Task>,
        sizes: &Sizes,
        clock: &Clock,
        mut spill: Option<&mut Spill>,
    ) -> Result<Found> {
        let block_rows = sizes.block_rows();
        let d = rows.features().len();
        let mut block = rows.block();
        let (mut survey, mut whole) = (relvec::Survey::new(sizes.sample, job.rvm.seed), true);
        let pass = Pass::new("first pass");
        while rows.read(&mut block, block_rows)? {
            let targets: Array1<f64> = if let Some(spill) = &mut spill {
                spill.add(&block)?.into_iter().map(|class| class as f64).collect()
            } else if block.target.has_text() {
                if task.is_none() {
                    // Texts among numbers are an error, not classes.
                    let (_, reason) = block.target.guess_task()?;
                    return Ok(Found::Classes(reason));
                }
                block.target.learn(Task::Regress)?;
                bail!("the target is not a number");
            } else {
                block.target.numbers().collect()
            };
            let is_count = |t: f64| !t.is_finite() || t >= 0.0 && t.fract() == 0.0;
            if let (Likelihood::Poisson(_), Some(row)) = (&job.rvm.likelihood, targets.iter().position(|t| !is_count(*t))) {
                return Err(Error::Count { row: survey.n_rows() + row, value: targets[row] }.into());
            }
            let x = ArrayView2::from_shape((block.target.len(), d), &block.x)?;
            survey.update_with_targets(x, &block.with_rest(Targets::real(targets.view())))?;
            pass.at(survey.n_rows(), rows.table().share());
            if clock.is_over() {
                whole = !rows.read(&mut block, 1)?;
                break;
            }
        }
        rows.tell(&block);
        let reason = match task {
            Some(_) => None,
            None => match block.target.guess_task()? {
                (Task::Classify, reason) => return Ok(Found::Classes(reason)),
                (Task::Regress, reason) => Some(reason),
            },
        };
        let standardize = job.standardize;
        Ok(Found::Rows(Box::new(Survey {
            rows: survey.n_rows(),
            whole,
            used: survey.n_used(),
            scaling: standardize.then(|| survey.scaling()),
            scale: survey.data_scale(standardize),
            constant: survey.constant_features(),
            sample: survey.sampled_rows(),
            reason,
        })))
    }

    /// There are fewer rows of positive weight than a fit needs.
    pub fn check(&self) -> Result<(), Error> {
        if self.used < LEAST_ROWS { Err(Error::TooFewRows { found: self.used, least: LEAST_ROWS }) } else { Ok(()) }
    }

    /// Returns the features of the sample, [S, D], standardised if requested.
    pub fn scaled(&self) -> Array2<f64> {
        self.scaling.as_ref().map_or_else(|| self.sample.x.clone(), |scaling| scaling.apply(self.sample.x.view()))
    }

    /// Returns the row number in the table of a row of the sample.
    pub fn number(&self, place: usize) -> usize {
        self.sample.positions[place].1 as usize
    }
}
