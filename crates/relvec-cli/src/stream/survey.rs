//! The first pass: what has to be known of all rows before any can be summed.

use anyhow::{Result, bail};
use ndarray::{Array1, Array2, ArrayView2};
use relvec::{DataScale, Error, SampledRows, Scaling, Targets};

use super::memory::Sizes;
use super::spill::Spill;
use super::{Clock, Job};
use crate::args::Task;
use crate::progress::Pass;
use crate::training::TrainingRows;

/// Rows of positive weight that a fit needs.
const LEAST_ROWS: usize = 2;

/// What a first pass found.
pub(super) struct Survey {
    pub rows: usize,
    /// Whether these are all rows, and time was not too short.
    pub whole: bool,
    /// Rows of positive weight.
    pub used: usize,
    /// What standardises the features, if that was asked for.
    pub scaling: Option<Scaling>,
    /// What `gamma = "scale"` asks for, of the features as the fit sees them.
    pub scale: DataScale,
    /// Features that are the same on every row of positive weight.
    pub constant: Vec<usize>,
    /// Some different rows of positive weight; targets of classes are their numbers in the order in which they were first seen.
    pub sample: SampledRows,
    /// Why the target is taken for real values; `None` if the arguments say so.
    pub reason: Option<&'static str>,
}

/// How a first pass ends.
pub(super) enum Found {
    Rows(Box<Survey>),
    /// The target is classes, for that reason, and they are not counted yet.
    Classes(&'static str),
}

impl Survey {
    /// Reads all rows, or blocks of them while there is time; a sample of them is kept, and of classes all go to `spill`.
    /// Stops at the first cell that no fit could use.
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
                    // Numbers with a text among them are an error, not classes.
                    let (_, reason) = block.target.guess_task()?;
                    return Ok(Found::Classes(reason));
                }
                block.target.learn(Task::Regress)?;
                bail!("the target is no number");
            } else {
                block.target.numbers().collect()
            };
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

    /// # Errors
    /// Fewer rows of positive weight than a fit needs.
    pub fn check(&self) -> Result<(), Error> {
        if self.used < LEAST_ROWS { Err(Error::TooFewRows { found: self.used, least: LEAST_ROWS }) } else { Ok(()) }
    }

    /// The features of the sample, standardised if that was asked for.
    pub fn scaled(&self) -> Array2<f64> {
        self.scaling.as_ref().map_or_else(|| self.sample.x.clone(), |scaling| scaling.apply(self.sample.x.view()))
    }

    /// Number in the table of a row of the sample.
    pub fn number(&self, place: usize) -> usize {
        self.sample.positions[place].1 as usize
    }
}
