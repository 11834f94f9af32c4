//! Rows of a classifier that are read in blocks: their source, the first pass over them, and the checks of later
//! passes.

use std::fmt;

use ndarray::ArrayView2;

use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::model::check_features;
use crate::report::Interrupt;
use crate::targets::{Targets, Values, absent, check_labels};

/// Source of the rows of a training set, with the numbers of rows and classes that the first pass found.
#[derive(Clone, Copy)]
pub(crate) struct RowBlocks<'a> {
    pub blocks: &'a dyn Blocks,
    pub n_rows: usize,
    pub classes: usize,
}

impl RowBlocks<'_> {
    /// Returns the labels of a block of rows, `[B, D]`, in a later pass. The block begins at row `from`.
    ///
    /// # Errors
    /// Returns an error if the block has real targets, or other numbers of columns or classes than in the first pass.
    pub fn same<'t>(&self, x: ArrayView2<f64>, targets: &Targets<'t>, features: usize, from: usize) -> Result<&'t [usize]> {
        let changed = |what: &str, found: usize, before: usize| {
            Err(Error::Rows(format!("a block of rows has {found} {what}; there were {before} in the first pass")))
        };
        targets.check_rows(x)?;
        let Values::Classes { labels, count } = targets.values else {
            return Err(Error::Rows("a block of rows has real targets; there were classes in the first pass".into()));
        };
        if x.ncols() != features {
            return changed("columns", x.ncols(), features);
        }
        if count != self.classes {
            return changed("classes", count, self.classes);
        }
        check_features("rows to train on", x)?;
        check_labels(labels, count, from)?;
        Ok(labels)
    }
}

impl fmt::Debug for RowBlocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} rows in blocks", self.n_rows)
    }
}

/// Facts about the rows that a fit needs before it starts, collected in one data pass.
#[derive(Default)]
pub(crate) struct FirstPass {
    pub n_rows: usize,
    /// Number of rows of positive weight.
    pub used: usize,
    /// Sum of the weights of each class, `[K]`.
    pub weights: Vec<f64>,
    /// Number of rows of the largest block.
    pub largest: usize,
    /// First row, `[D]`.
    pub first: Vec<f64>,
    /// Features that have the same value in all rows so far.
    pub constant: Vec<usize>,
}

impl FirstPass {
    /// Reads all blocks once.
    ///
    /// # Errors
    /// Returns an error for real targets, labels out of range, values that are not finite, blocks of different numbers
    /// of columns or classes, fewer than 2 rows of positive weight, and an interrupt.
    pub fn take(blocks: &dyn Blocks, interrupt: &Interrupt) -> Result<FirstPass> {
        let mut survey = FirstPass::default();
        blocks.pass(&mut |x, targets| {
            interrupt.check()?;
            let before = survey.n_rows;
            survey.see(x, targets).map_err(|error| from_row(error, before))
        })?;
        if survey.used < 2 {
            return Err(Error::TooFewRows { found: survey.used, least: 2 });
        }
        Ok(survey)
    }

    fn see(&mut self, x: ArrayView2<f64>, targets: &Targets) -> Result<()> {
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let Values::Classes { labels, count } = targets.values else {
            return Err(Error::Targets("rows in blocks need class labels, found real targets".into()));
        };
        if self.n_rows == 0 {
            self.weights = vec![0.0; count];
            self.constant = (0..x.ncols()).collect();
        }
        if count != self.weights.len() {
            let before = self.weights.len();
            return Err(Error::Targets(format!("a block has {count} classes; the blocks before it have {before}")));
        }
        check_features("rows to train on", x)?;
        if self.first.is_empty() {
            self.first = x.outer_iter().next().map_or(vec![], |row| row.to_vec());
        }
        if x.ncols() != self.first.len() && x.nrows() > 0 {
            let expected = format!("{} columns, as in the first block", self.first.len());
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        check_labels(labels, count, self.n_rows)?;
        let weights = targets.checked_weights()?;
        for (row, label) in labels.iter().enumerate() {
            let weight = weights.as_ref().map_or(1.0, |w| w[row]);
            self.weights[*label] += weight;
            self.used += usize::from(weight > 0.0);
        }
        let first = &self.first;
        self.constant.retain(|k| x.column(*k).iter().all(|v| *v == first[*k]));
        self.n_rows += x.nrows();
        self.largest = self.largest.max(x.nrows());
        Ok(())
    }

    /// Returns the shares of the classes by sample weight, `[K]`.
    ///
    /// # Errors
    /// Returns an error for a class without rows of positive weight, and for fewer than two classes.
    pub fn class_frequencies(&self) -> Result<Vec<f64>> {
        if let Some(k) = self.weights.iter().position(|w| *w == 0.0) {
            return Err(absent(k, self.weights.len()));
        }
        if self.weights.len() < 2 {
            return Err(Error::Targets("all rows are of one class; rows of two classes are needed".into()));
        }
        let total: f64 = self.weights.iter().sum();
        Ok(self.weights.iter().map(|w| (w / total).max(f64::MIN_POSITIVE)).collect())
    }
}

/// Converts the row number in an error of a block that begins at row `before` into a row number among all rows.
pub(crate) fn from_row(error: Error, before: usize) -> Error {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + before, column, value },
        Error::Weight { row, value } => Error::Weight { row: row + before, value },
        other => other,
    }
}
