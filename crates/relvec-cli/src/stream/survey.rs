//! The first pass: what has to be known of all rows before any can be summed.

use anyhow::{Result, bail};
use ndarray::Array2;
use relvec::{Rvm, Scaling};

use super::Clock;
use super::memory::Sizes;
use super::moments::Moments;
use super::sample::Sample;
use super::spill::Spill;
use crate::args::Task;
use crate::progress::Pass;
use crate::training::TrainingRows;

/// What a first pass found.
pub(super) struct Survey {
    pub rows: usize,
    /// Whether these are all rows, and time was not too short.
    pub whole: bool,
    /// Rows of positive weight.
    pub used: usize,
    pub moments: Moments,
    /// Some rows of positive weight: their numbers, ascending, and their features as they are, [S, D].
    pub sample: (Vec<usize>, Array2<f64>),
    /// Why the target is taken for real values; `None` if the arguments say so.
    pub reason: Option<&'static str>,
}

/// How a first pass ends.
pub(super) enum Found {
    Rows(Box<Survey>),
    /// The target is classes, for that reason, and not told apart yet.
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
            if let Some(spill) = &mut spill {
                spill.add(&block)?;
            } else if block.target.has_text() {
                if task.is_none() {
                    // Numbers with a text among them are an error, not classes.
                    let (_, reason) = block.target.guess_task()?;
                    return Ok(Found::Classes(reason));
                }
                block.target.learn(Task::Regress)?;
                bail!("the target is no number");
            }
            let weights = block.weights.as_deref();
            moments.add(&block.x, d, weights);
            for (i, row) in block.x.chunks_exact(d).enumerate() {
                if weights.is_none_or(|w| w[i] > 0.0) {
                    sample.see(row, count + i);
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
        let reason = match task {
            Some(_) => None,
            None => match block.target.guess_task()? {
                (Task::Classify, reason) => return Ok(Found::Classes(reason)),
                (Task::Regress, reason) => Some(reason),
            },
        };
        Ok(Found::Rows(Box::new(Survey { rows: count, whole, used, moments, sample: sample.finish(d), reason })))
    }

    /// The features of the sample, standardised.
    pub fn scaled(&self, scaling: Option<&Scaling>) -> Array2<f64> {
        scaling.map_or_else(|| self.sample.1.clone(), |s| s.apply(self.sample.1.view()))
    }
}
