//! The rows of a table that a model is to see, a block at a time.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::ArrayView2;
use relvec::Model;

use crate::table::{Table, positions};
use crate::text::{count, list};

/// Rows held at a time, and numbers.
const BLOCK: usize = 8192;
const BLOCK_NUMBERS: usize = 1 << 22;
/// Columns named in a message.
const NAMES_SHOWN: usize = 10;

/// A table open at its first row, and a block of it.
pub(crate) struct Blocks {
    table: Table,
    name: String,
    /// The columns of the features, in the model's order.
    columns: Vec<usize>,
    /// Most rows of a block.
    most: usize,
    values: Vec<f64>,
    /// Whether the table stands at a row.
    more: bool,
}

impl Blocks {
    /// Opens a table for `model`; `other`: the name of a column that is wanted beside the features, and what it is; `more`:
    /// numbers that are made of each row beside its prediction.
    ///
    /// # Errors
    /// No such table, features or column that it does not have, no row.
    pub fn open(path: &Path, model: &Model, other: Option<(&str, &str)>, more: usize) -> Result<(Blocks, Option<usize>)> {
        let name = format!("`{}`", path.display());
        let mut table = Table::open(path)?;
        let target = other.map(|(name, what)| table.find(name, what)).transpose().with_context(|| name.clone())?;
        let columns = match_columns(model, &table, target).with_context(|| name.clone())?;
        let wanted: Vec<usize> = columns.iter().copied().chain(target).collect();
        table.only(&wanted);
        let most = BLOCK.min(BLOCK_NUMBERS / columns.len().saturating_add(more).max(1)).max(1);
        let more = table.advance().with_context(|| name.clone())?;
        if !more {
            return Err(anyhow!("there are no rows below the header")).with_context(|| name.clone());
        }
        Ok((Blocks { table, values: Vec::with_capacity(most * columns.len()), name, columns, most, more }, target))
    }

    /// The features of the next rows, [B, D]; `None` after the last. `each` sees the table at each of them.
    pub fn next(&mut self, mut each: impl FnMut(&Table) -> Result<()>) -> Result<Option<ArrayView2<'_, f64>>> {
        self.values.clear();
        let mut rows = 0;
        while self.more && rows < self.most {
            self.row(&mut each).with_context(|| self.name.clone())?;
            rows += 1;
        }
        match rows {
            0 => Ok(None),
            _ => Ok(Some(ArrayView2::from_shape((rows, self.columns.len()), &self.values)?)),
        }
    }

    fn row(&mut self, each: &mut impl FnMut(&Table) -> Result<()>) -> Result<()> {
        for column in &self.columns {
            self.values.push(self.table.number(*column)?);
        }
        each(&self.table)?;
        self.more = self.table.advance()?;
        Ok(())
    }

    /// The table, which says how far it has been read.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// The columns of the table that hold the model's features, in the model's order.
fn match_columns(model: &Model, table: &Table, target: Option<usize>) -> Result<Vec<usize>> {
    let columns = table.columns();
    if model.features.is_empty() {
        // Trained by a library that had no names: by position then, and nothing may be left over.
        let places: Vec<usize> = (0..columns.len()).filter(|place| Some(*place) != target).collect();
        if places.len() != model.n_features {
            bail!("the model knows no feature names and expects {}, found {}", count(model.n_features, "column"), places.len());
        }
        return Ok(places);
    }
    let places = positions(table, &model.features, "the model")?;
    let used: HashSet<usize> = places.iter().copied().chain(target).collect();
    let unused = |place: usize| !used.contains(&place);
    let extra: Vec<&String> = columns.iter().enumerate().filter(|(place, _)| unused(*place)).map(|(_, name)| name).collect();
    // That the target is no feature goes without saying.
    let extra: Vec<&String> =
        extra.into_iter().filter(|name| !model.target.iter().chain(&model.targets).any(|t| t == *name)).collect();
    if !extra.is_empty() {
        say!("note: {} not used by the model: {}", count(extra.len(), "column"), list(&extra, NAMES_SHOWN));
    }
    Ok(places)
}
