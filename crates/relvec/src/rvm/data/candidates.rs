//! The candidates of a training set: which they are, and their columns.

use ndarray::{ArcArray2, Axis};

use crate::design::Columns;
use crate::kernel::Kernel;
use crate::rvm::data::training_set::{Source, TrainingSet};
use crate::rvm::settings::dictionary::{AUTO_LANDMARKS, Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::scheme::Hyperparameters;

/// Least sum of squares of a column of a kernel that is 1 at its centre.
const LEAST_SQUARE: f64 = 0.5;

impl TrainingSet<'_> {
    /// The candidates that precisions name; what is wrong with them is said where they are used.
    pub fn candidates_of(&self, at: &Hyperparameters) -> Vec<usize> {
        at.relevance.iter().filter_map(|row| self.candidate_of.get(*row).copied().flatten()).collect()
    }

    /// Whether that many candidates are all rows there are.
    pub fn candidates_are_rows(&self, candidates: usize) -> bool {
        matches!(&self.source, Source::Rows { rows, .. } if rows.len() == candidates)
    }

    /// Returns the rows, `[N, D]`, and the columns of the listed candidates that are made of them.
    pub fn columns(&self, candidates: &[usize]) -> (ArcArray2<f64>, Columns) {
        match &self.source {
            Source::Given if candidates.len() == self.origin.len() => (self.rows.clone(), Columns::Given),
            Source::Given => (self.rows.select(Axis(1), candidates).into_shared(), Columns::Given),
            Source::Centres { kernel, centres } => {
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres: centres.select(Axis(0), candidates) })
            }
            Source::Rows { kernel, rows, .. } => {
                let chosen: Vec<usize> = candidates.iter().map(|k| rows[*k]).collect();
                let centres = self.rows.select(Axis(0), &chosen);
                (self.rows.clone(), Columns::Kernel { kernel: kernel.clone(), centres })
            }
        }
    }

    /// The kernel, and the rows behind some candidates; `None` where those are no rows.
    pub fn rows_of(&self, candidates: &[usize]) -> Option<(&Kernel, Vec<usize>)> {
        match &self.source {
            Source::Rows { kernel, rows, .. } => Some((kernel, candidates.iter().map(|k| rows[*k]).collect())),
            Source::Centres { .. } | Source::Given => None,
        }
    }

    /// Makes the norms of columns zero that no fit should use: those of given centres with no row near them,
    /// whose weights would be unbounded and whose predictions would explode. A row has at least itself.
    pub fn refuse_far_centres(&self, norms: &mut [f64]) {
        if let Source::Centres { kernel, .. } = &self.source
            && kernel.is_local()
        {
            let least = LEAST_SQUARE * self.least_factor * (self.count / self.n_rows.max(1) as f64).min(1.0);
            norms.iter_mut().filter(|n| **n * **n < least).for_each(|n| *n = 0.0);
        }
    }

    /// `size` of `among` (places of candidates, ascending), spread as the landmarks of this fit are.
    pub fn choose(&self, among: &[usize], size: usize) -> Vec<usize> {
        let seed = self.rvm.seed;
        match &self.source {
            Source::Rows { kernel, rows, .. } => {
                let rows: Vec<usize> = among.iter().map(|k| rows[*k]).collect();
                let (landmarks, is_late) = (&self.rvm.landmarks, || self.interrupt.is_late());
                let chosen = landmarks.choose(self.rows.view(), &rows, size, kernel, seed, &is_late);
                chosen.into_iter().map(|k| among[k]).collect()
            }
            _ => Landmarks::any(among.len(), size, seed).into_iter().map(|k| among[k]).collect(),
        }
    }

    /// Landmarks instead of all rows, where that is ours to choose.
    pub fn landmarks_instead(&self, all: &[usize]) -> Option<Vec<usize>> {
        let rule = matches!(self.rvm.dictionary, Dictionary::Rule(DictionaryRule::Auto)) && all.len() > AUTO_LANDMARKS;
        matches!(self.source, Source::Rows { .. }).then_some(())?;
        rule.then(|| self.choose(all, AUTO_LANDMARKS))
    }

    /// Candidates that may enter the model, ascending places: all, or the landmarks.
    pub fn dictionary(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.origin.len()).collect();
        match &self.source {
            Source::Rows { chosen, .. } => chosen.get_or_init(|| self.choose(&all, self.dictionary_size())).clone(),
            _ => all,
        }
    }

    /// Their number, at most.
    pub fn dictionary_size(&self) -> usize {
        match self.source {
            Source::Rows { .. } => self.rvm.dictionary.size(self.origin.len()),
            _ => self.origin.len(),
        }
    }
}
