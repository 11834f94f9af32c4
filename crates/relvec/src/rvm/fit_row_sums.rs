//! Regression with a precision for each weight on rows that are not in memory: from their sufficient statistics at
//! landmarks of a sample.

use ndarray::{Array2, Axis};

use crate::error::{Result, require};
use crate::kernel::Kernel;
use crate::model::Model;
use crate::report::{Interrupt, Observer, Report};
use crate::rvm::learn::query::Surveyed;
use crate::rvm::learn::query::pass::Pass;
use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::rvm::{CentreRule, Rvm};

impl Rvm {
    /// Fits the sufficient statistics of all rows. Kernel and landmarks are those of the sample, or the landmarks are
    /// given. The relevance vectors of the model are indices of the sample or of the given landmarks.
    pub(super) fn fit_statistics_of(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let (kernel, centres, candidates) = self.centres_of(surveyed, interrupt)?;
        let statistics = self.pool()?.install(|| pass.statistics(&kernel, centres))?;
        let (mut model, report) = self.fit_statistics_with(&statistics, observer, interrupt)?;
        model.relevance.iter_mut().for_each(|k| *k = candidates[*k]);
        model.statistics = self.keep_statistics.then(|| statistics.kept(candidates));
        Ok((model, report))
    }

    /// Returns the kernel, the candidates' centres, [L, D], and the number of each in the sample or among the given
    /// landmarks. Kernel and landmarks are those of the sample, or the landmarks are given.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`](crate::Error::Parameter) for settings that need all rows, and the errors of
    /// [`Rvm::learn_kernel`].
    pub(super) fn centres_of(&self, surveyed: &Surveyed, interrupt: &Interrupt) -> Result<(Kernel, Array2<f64>, Vec<usize>)> {
        if self.validates() {
            return Err(self.no_validation("cross-validation needs the rows, and they are not held"));
        }
        let all = self.dictionary == Dictionary::Rule(DictionaryRule::All) && self.picks_rows();
        let expected = "auto or a number of landmarks: rows that are not held are not all candidates";
        require(!all, || "dictionary".into(), "all", expected)?;
        let fixed = self.centres == CentreRule::Fixed;
        require(fixed, || "centres".into(), "learned", "fixed: rows that are not held have no gradient by centres")?;
        let kernel = match self.learns_kernel() {
            true => self.learn_kernel_with(surveyed.x.view(), &surveyed.targets(), interrupt)?.search_kernel,
            false => self.kernel.resolve(&surveyed.data_scale())?,
        };
        let (centres, candidates) = match &self.landmarks {
            Landmarks::Given(centres) => {
                let (different, candidates) = centres.distinct(surveyed.x.ncols())?;
                let first = |k: usize| candidates.iter().position(|candidate| *candidate == k).expect("each is there once");
                let firsts: Vec<usize> = (0..different.nrows()).map(first).collect();
                (different, firsts)
            }
            chosen => {
                // The sample has more than 10,000 rows, so that the rule `all` does not apply.
                let size = Dictionary::Size(self.dictionary.size(usize::MAX));
                let candidates = self.pool()?.install(|| chosen.pick(surveyed.x.view(), size, &kernel, self.seed));
                (surveyed.x.select(Axis(0), &candidates), candidates)
            }
        };
        Ok((kernel, centres, candidates))
    }
}
