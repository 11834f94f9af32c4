//! The fit to rows of classes that come in blocks.

use std::time::Instant;

use crate::blocks::Blocks;
use crate::error::Result;
use crate::model::Model;
use crate::report::{Interrupt, Observer, Report};
use crate::rvm::compose::interpolation::judged;
use crate::rvm::compose::one;
use crate::rvm::data::row_blocks::Survey;
use crate::rvm::data::table::Table;
use crate::rvm::search::watch::Watch;
use crate::rvm::settings::rvm::Rvm;

impl Rvm {
    /// As [`Rvm::fit`], for classes whose rows are read in blocks, again and again: about as often as Newton's method, and
    /// the search, look at all of them. Memory grows with the blocks and with the landmarks, not with the rows. The
    /// landmarks are given, the kernel's parameters numbers; the relevance of the model counts the landmarks. Equal rows
    /// are not merged, so models are those of [`Rvm::fit`] up to rounding, and to where rounding leads a search.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; another likelihood than Bernoulli or softmax, the scheme `variational`, models of two classes that
    /// vote, weights of classes with precisions of their own, and whatever needs rows beside the sums over them; rows that
    /// change between passes.
    pub fn fit_blocks(&self, blocks: &dyn Blocks, observer: &mut Observer) -> Result<(Model, Report)> {
        self.fit_blocks_interruptible(blocks, observer, &Interrupt::default())
    }

    /// As [`Rvm::fit_blocks`]; another thread may end it by `interrupt`.
    ///
    /// # Errors
    /// As [`Rvm::fit_blocks`]; and [`Error::Interrupted`].
    pub fn fit_blocks_interruptible(
        &self,
        blocks: &dyn Blocks,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        self.check_in_blocks()?;
        let start = Instant::now();
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        self.pool()?.install(|| {
            let survey = Survey::take(blocks, &interrupt)?;
            let class_frequencies = survey.class_frequencies()?;
            let own = match class_frequencies.len() {
                2 => self.clone(),
                _ => self.joint(),
            };
            let table = Table::of_blocks(&own, blocks, &survey, &interrupt)?;
            let (model, report) = one::learn(&own, &table, None, None, &mut Watch::of(&own, observer, &interrupt, start))?;
            Ok(judged((Model { class_frequencies, ..model }, report), survey.n_rows - survey.used))
        })
    }
}
