//! The candidates of a training set: their selection, and their columns.

use ndarray::{ArcArray2, Axis};

use crate::design::Columns;
use crate::kernel::Kernel;
use crate::rvm::data::training_set::{Source, TrainingSet};
use crate::rvm::settings::dictionary::{AUTO_LANDMARKS, Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::scheme::Hyperparameters;

/// Smallest sum of squares of a column whose kernel is 1 at its centre. A column below it has no row near its centre.
const LEAST_SQUARE: f64 = 0.5;

impl TrainingSet<'_> {
    /// Returns the candidates that `at` refers to. Rows that are no candidates are skipped; the caller reports them.
    pub fn candidates_of(&self, at: &Hyperparameters) -> Vec<usize> {
        at.relevance.iter().filter_map(|row| self.candidate_of.get(*row).copied().flatten()).collect()
    }

    /// Returns true if candidates are rows, and if `candidates` is the number of all distinct rows.
    pub fn candidates_are_rows(&self, candidates: usize) -> bool {
        matches!(&self.source, Source::Rows { rows, .. } if rows.len() == candidates)
    }

    /// Returns the rows, `[N, D]`, and the definition of the columns of the listed candidates.
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

    /// Returns the kernel and the rows of the listed candidates. Returns `None` if candidates are not rows.
    pub fn rows_of(&self, candidates: &[usize]) -> Option<(&Kernel, Vec<usize>)> {
        match &self.source {
            Source::Rows { kernel, rows, .. } => Some((kernel, candidates.iter().map(|k| rows[*k]).collect())),
            Source::Centres { .. } | Source::Given => None,
        }
    }

    /// Sets the norms of columns to zero whose given centre has no row nearby, so that no fit uses them. Their weights
    /// would be unbounded, and predictions near their centres would be huge. A row is always near itself.
    pub fn refuse_far_centres(&self, norms: &mut [f64]) {
        if let Source::Centres { kernel, .. } = &self.source
            && kernel.is_local()
        {
            let least = LEAST_SQUARE * self.least_factor * (self.count / self.n_rows.max(1) as f64).min(1.0);
            norms.iter_mut().filter(|n| **n * **n < least).for_each(|n| *n = 0.0);
        }
    }

    /// Returns `size` of the candidates `among` (ascending), chosen by the rule for the landmarks of this fit.
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

    /// Returns landmarks instead of the candidates `all`, if these are many distinct rows and the dictionary is `auto`.
    pub fn landmarks_instead(&self, all: &[usize]) -> Option<Vec<usize>> {
        let rule = matches!(self.rvm.dictionary, Dictionary::Rule(DictionaryRule::Auto)) && all.len() > AUTO_LANDMARKS;
        matches!(self.source, Source::Rows { .. }).then_some(())?;
        rule.then(|| self.choose(all, AUTO_LANDMARKS))
    }

    /// Returns the candidates that may enter the model, ascending: all, or the landmarks.
    pub fn dictionary(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.origin.len()).collect();
        match &self.source {
            Source::Rows { chosen, .. } => chosen.get_or_init(|| self.choose(&all, self.dictionary_size())).clone(),
            _ => all,
        }
    }

    /// Returns the largest possible number of candidates that may enter the model.
    pub fn dictionary_size(&self) -> usize {
        match self.source {
            Source::Rows { .. } => self.rvm.dictionary.size(self.origin.len()),
            _ => self.origin.len(),
        }
    }
}
