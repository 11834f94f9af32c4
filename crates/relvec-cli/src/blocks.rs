//! Reads the rows of a table that a model predicts, in blocks.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::ArrayView2;
use relvec::{Missing, Model};

use crate::args::{ReadArgs, RuleArgs, Unknown};
use crate::encoding::{self, Encoder};
use crate::table::{Cell, Table, positions};
use crate::text::{count, list};

/// Most rows of a block, and most numbers of its features and results.
const BLOCK: usize = 8192;
const BLOCK_NUMBERS: usize = 1 << 22;
/// Advice in the error for a missing cell.
const ADVICE: &str =
    "--missing drop leaves these rows out, --missing mean fills them; a model trained with --missing applies its own rule";
/// Most columns named in a message.
const NAMES_SHOWN: usize = 10;

/// A column that is read in addition to the features.
pub(crate) struct Wanted<'a> {
    pub name: &'a str,
    /// The option that names the column, for the error of a table without it.
    pub what: &'a str,
    /// True if a table without the column is an error.
    pub needed: bool,
}

impl<'a> Wanted<'a> {
    pub fn needed(name: &'a str, what: &'a str) -> Wanted<'a> {
        Wanted { name, what, needed: true }
    }

    fn find(&self, table: &Table) -> Result<Option<usize>> {
        match self.needed || table.columns().iter().any(|column| column == self.name) {
            true => table.find(self.name, self.what).map(Some),
            false => Ok(None),
        }
    }
}

/// An open table and the block of rows that was read last.
pub(crate) struct Blocks {
    table: Table,
    name: String,
    encoder: Encoder,
    /// Indices of the columns of the features, and of the other wanted columns that the table has.
    columns: Vec<usize>,
    others: Vec<usize>,
    most: usize,
    values: Vec<f64>,
    /// For each row of the block: true if it is predicted.
    kept: Vec<bool>,
    dropped: usize,
    /// True if the table is at a row that has not been taken yet.
    more: bool,
}

/// A block of rows of a table.
pub(crate) struct Batch<'a> {
    /// Features of the rows that are predicted, [B, D].
    pub x: ArrayView2<'a, f64>,
    /// For each row of the block: true if it is predicted. Rows with a missing cell are not if such rows are left out.
    pub kept: &'a [bool],
}

impl Blocks {
    /// Opens a table for `model` and returns the positions of the `wanted` columns. `more` is the count of numbers that
    /// are computed for each row in addition to its prediction.
    ///
    /// # Errors
    /// There is no such table, the table lacks features or a needed column, or it has no row.
    pub fn open(
        path: &Path,
        model: &Model,
        wanted: &[Wanted],
        more: usize,
        (rules, reading): (&RuleArgs, &ReadArgs),
    ) -> Result<(Blocks, Vec<Option<usize>>)> {
        let name = format!("`{}`", path.display());
        let mut table = Table::open(path, reading)?;
        let found = wanted.iter().map(|one| one.find(&table)).collect::<Result<Vec<_>>>().with_context(|| name.clone())?;
        let others: Vec<usize> = found.iter().copied().flatten().collect();
        let ignore = rules.unknown == Unknown::Ignore;
        let places = || match_columns(model, &table, &others);
        let encoder = Encoder::of_model(model, &table, places, rules.missing, ignore).with_context(|| name.clone())?;
        let columns = encoder.places();
        tell_unused(model, &table, &columns, &others);
        let wanted: Vec<usize> = columns.iter().chain(&others).copied().collect();
        table.only(&wanted);
        let most = BLOCK.min(BLOCK_NUMBERS / encoder.width().saturating_add(more).max(1)).max(1);
        let more = table.advance().with_context(|| name.clone())?;
        if !more {
            return Err(anyhow!("there are no rows below the header")).with_context(|| name.clone());
        }
        let (values, kept) = (Vec::with_capacity(most * encoder.width()), vec![]);
        Ok((Blocks { table, name, encoder, columns, others, most, values, kept, dropped: 0, more }, found))
    }

    /// Returns the next block of rows, or `None` after the last. `each` is called at each row that is predicted.
    pub fn next(&mut self, mut each: impl FnMut(&Table) -> Result<()>) -> Result<Option<Batch<'_>>> {
        self.values.clear();
        self.kept.clear();
        while self.more && self.kept.len() < self.most {
            self.row(&mut each).with_context(|| self.name.clone())?;
        }
        let rows = self.kept.iter().filter(|kept| **kept).count();
        match self.kept.len() {
            0 => Ok(None),
            _ => Ok(Some(Batch { x: ArrayView2::from_shape((rows, self.encoder.width()), &self.values)?, kept: &self.kept })),
        }
    }

    fn row(&mut self, each: &mut impl FnMut(&Table) -> Result<()>) -> Result<()> {
        let start = self.values.len();
        let missing = self.encoder.row(&self.table, &mut self.values)?;
        let kept = match (missing, self.encoder.missing) {
            (Some(place), None) => return Err(encoding::missing(&mut self.table, place, &self.columns, ADVICE)),
            (Some(_), Some(Missing::Drop)) => false,
            (None, Some(Missing::Drop)) => self.others.iter().all(|column| self.table.cell(*column) != Cell::Missing),
            _ => true,
        };
        if kept {
            each(&self.table)?;
        } else {
            self.values.truncate(start);
            self.dropped += 1;
        }
        self.kept.push(kept);
        self.more = self.table.advance()?;
        Ok(())
    }

    /// Returns the table, for the number of rows and the share of the file that have been read.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Prints the notes on the table after the last row. `left_out` says what happens to rows that are left out.
    pub fn tell(&self, left_out: &str) {
        let of_rows = self.encoder.notes(self.table.row(), self.dropped, left_out);
        for note in self.table.notes().into_iter().chain(of_rows) {
            say!("note: {}: {note}", self.name);
        }
    }
}

/// Returns the true value in the current row.
pub(crate) fn true_value(table: &Table, column: usize) -> Result<f64> {
    if table.cell(column) == Cell::Missing {
        return Err(table.error(column, &format!("{}; --missing drop leaves such rows out", table.missing_cell(column))));
    }
    table.number(column)
}

/// Returns the indices of the columns with the model's features, in the model's order.
fn match_columns(model: &Model, table: &Table, others: &[usize]) -> Result<Vec<usize>> {
    let columns = table.columns();
    if model.features.is_empty() {
        // A model trained through the library may have no feature names. Its features are then all columns, by
        // position.
        let places: Vec<usize> = (0..columns.len()).filter(|place| !others.contains(place)).collect();
        if places.len() != model.n_features {
            bail!("the model has no feature names and expects {}, found {}", count(model.n_features, "column"), places.len());
        }
        return Ok(places);
    }
    positions(table, &model.features, "the model")
}

/// Prints which columns of the table the model does not use.
fn tell_unused(model: &Model, table: &Table, places: &[usize], others: &[usize]) {
    if model.features.is_empty() {
        return;
    }
    let columns = table.columns();
    let used: HashSet<usize> = places.iter().chain(others).copied().collect();
    let unused = |place: usize| !used.contains(&place);
    let extra: Vec<&String> = columns.iter().enumerate().filter(|(place, _)| unused(*place)).map(|(_, name)| name).collect();
    // The target is not a feature, so it needs no note.
    let extra: Vec<&String> =
        extra.into_iter().filter(|name| !model.target.iter().chain(&model.targets).any(|t| t == *name)).collect();
    if !extra.is_empty() {
        say!("note: {} not used by the model: {}", count(extra.len(), "column"), list(&extra, NAMES_SHOWN));
    }
}
