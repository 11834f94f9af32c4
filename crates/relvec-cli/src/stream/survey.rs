//! The first pass: what has to be known of all rows before any can be summed.

use anyhow::{Result, bail};
use ndarray::Array2;
use relvec::{Error, Rvm, Scaling};

use super::Clock;
use super::memory::Sizes;
use super::moments::Moments;
use super::sample::{Answer, Sample, SampledRows};
use super::spill::Spill;
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
    pub moments: Moments,
    /// Some rows of positive weight.
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
        mut rows: TrainingRows,
        task: Option<Task>,
        sizes: &Sizes,
        rvm: &Rvm,
        clock: &Clock,
        mut spill: Option<&mut Spill>,
    ) -> Result<Found> {
        let block_rows = sizes.block_rows();
        let d = rows.features().len();
        let mut block = rows.block();
        let (mut moments, mut sample) = (Moments::default(), Sample::new(sizes.sample, rvm.seed));
        let (mut count, mut used, mut whole) = (0, 0, true);
        let pass = Pass::new("first pass");
        while rows.read(&mut block, block_rows)? {
            let targets: Vec<f64> = if let Some(spill) = &mut spill {
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
            let weights = block.weights.as_deref();
            moments.add(&block.x, d, weights);
            let known = block.known.as_ref().map(|(_, values)| values);
            for (i, row) in block.x.chunks_exact(d).enumerate() {
                let weight = weights.map_or(1.0, |w| w[i]);
                if weight > 0.0 {
                    let noise = known.map_or(1.0, |values| values[i]);
                    sample.see(row, Answer { target: targets[i], weight, noise }, count + i);
                    used += 1;
                }
            }
            count += block.target.len();
            pass.at(count, rows.table().share());
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
        Ok(Found::Rows(Box::new(Survey { rows: count, whole, used, moments, sample: sample.finish(d), reason })))
    }

    /// # Errors
    /// Fewer rows of positive weight than a fit needs.
    pub fn check(&self) -> Result<(), Error> {
        if self.used < LEAST_ROWS { Err(Error::TooFewRows { found: self.used, least: LEAST_ROWS }) } else { Ok(()) }
    }

    /// The features of the sample, standardised.
    pub fn scaled(&self, scaling: Option<&Scaling>) -> Array2<f64> {
        scaling.map_or_else(|| self.sample.x.clone(), |s| s.apply(self.sample.x.view()))
    }
}
