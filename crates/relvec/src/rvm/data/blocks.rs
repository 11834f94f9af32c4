//! Training sets of rows that are read in blocks. Each sum over the rows is one data pass over the blocks, and memory
//! does not grow with the number of rows.
//!
//! Each block becomes a training set in memory, whose sums are computed like those of any other training set.

use std::sync::Arc;

use ndarray::{ArcArray2, ArrayView2};

use crate::blocks::Blocks;
use crate::design::Design;
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::memory::{self, afford};
use crate::report::{Adjustments, Interrupt, SmallWeights};
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::row_blocks::{FirstPass, RowBlocks, from_row};
use crate::rvm::data::training_set::{Source, TrainingSet};
use crate::rvm::data::units::Units;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::Values;

/// Number of copies of a block that exist at the same time.
const COPIES: usize = 3;
/// Numbers per row and class beside the features.
const VECTORS: usize = 12;

impl<'a> TrainingSet<'a> {
    /// Returns the training set of rows in `blocks`, after a first pass over them. The landmarks must be given.
    ///
    /// # Errors
    /// Returns an error for landmarks that do not suit the features, and for too little memory.
    pub fn of_blocks(rvm: &'a Rvm, blocks: &'a dyn Blocks, survey: &FirstPass, interrupt: &Interrupt) -> Result<TrainingSet<'a>> {
        let Landmarks::Given(centres) = &rvm.landmarks else { unreachable!("checked before any row was read") };
        let d = survey.first.len();
        let (centres, kept) = centres.distinct(d)?;
        let (l, classes) = (centres.nrows(), survey.weights.len());
        let p = l + usize::from(rvm.bias);
        let memory_limit = memory::allowed(rvm.memory_limit);
        let taken = |limit: u64| {
            let rows = survey.largest * (COPIES * d + VECTORS * classes);
            8 * (rows + 2 * l * d + 2 * Design::block_rows(p, limit).min(survey.largest) * p) as u64
        };
        let least = memory::least(|limit| taken(limit) + 8 * (p * p) as u64 * (DENSE + 2));
        let what = format!("a block of {} rows, and the sums over the rows for {l} landmarks", survey.largest);
        afford(&what, least, memory_limit)?;
        let kernel = rvm.kernel.resolve(&DataScale { features: d, variance: 1.0 })?;
        Ok(TrainingSet {
            rvm,
            rows: ArcArray2::zeros((0, d)),
            blocks: Some(RowBlocks { blocks, n_rows: survey.n_rows, classes }),
            targets: vec![],
            outputs: rvm.likelihood.as_dyn().outputs(Values::Classes { labels: &[], count: classes }),
            weights: vec![],
            copies: Arc::default(),
            factors: None,
            least_factor: 1.0,
            log_rate: 0.0,
            count: survey.weights.iter().sum(),
            known_noise: false,
            units: vec![Units { scale: 1.0, mean: 0.0 }],
            noise: vec![NoisePrecision::Fixed(1.0)],
            adjustments: Adjustments {
                constant_features: survey.constant.clone(),
                small_weights: SmallWeights::of(survey.weights.iter().sum(), survey.used),
                ..Adjustments::default()
            },
            bias_only: false,
            n_rows: survey.n_rows,
            origin: (0..l).map(|k| kept.iter().position(|c| *c == k).expect("each is kept once")).collect(),
            candidate_of: kept.iter().map(|k| Some(*k)).collect(),
            source: Source::Centres { kernel, centres },
            learned: None,
            memory_limit,
            taken: taken(memory_limit),
            least,
            interrupt: interrupt.clone(),
        })
    }

    /// Calls `each` with training sets of consecutive rows, which together contain all rows. Rows in memory are one
    /// such training set.
    ///
    /// # Errors
    /// Returns the first error of `each` or of the blocks, and an error if the rows differ from those of the first
    /// pass.
    pub fn for_each_part(&self, mut each: impl FnMut(&TrainingSet) -> Result<()>) -> Result<()> {
        let Some(source) = self.blocks else { return each(self) };
        let mut n_rows = 0;
        source.blocks.pass(&mut |x, targets| {
            self.interrupt.check()?;
            let labels = source.same(x, targets, self.rows.ncols(), n_rows).map_err(|error| from_row(error, n_rows))?;
            n_rows += x.nrows();
            let values = Values::Classes { labels, count: source.classes };
            each(&self.part(x, values, targets.checked_weights()?)?)
        })?;
        if n_rows != source.n_rows {
            return Err(Error::Rows(format!("a pass over the rows found {n_rows}; the first pass found {}", source.n_rows)));
        }
        Ok(())
    }

    /// Returns the training set of one block of rows, `[B, D]`.
    fn part(&self, x: ArrayView2<f64>, values: Values, weights: Option<Vec<f64>>) -> Result<TrainingSet<'_>> {
        let weights = weights.unwrap_or_else(|| vec![1.0; x.nrows()]);
        Ok(TrainingSet {
            rows: x.to_owned().into_shared(),
            targets: self.rvm.likelihood.as_dyn().targets(values)?,
            count: weights.iter().sum(),
            n_rows: x.nrows(),
            weights,
            ..self.with(self.rvm, &self.kernel(), None)
        })
    }
}
