//! The table of a fit: which column does what, and its rows, some at a time or all.

use std::path::Path;

use anyhow::{Context, Result, bail};
use ndarray::{Array1, Array2};

use crate::table::{Table, positions};
use crate::target::Target;

/// What the columns are for; the rest are features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roles<'a> {
    pub target: &'a str,
    pub weights: Option<&'a str>,
    pub drop: &'a [String],
}

/// An open table of which the columns' roles are settled.
pub(crate) struct TrainingRows {
    table: Table,
    name: String,
    /// Names of the features, `[D]`.
    features: Vec<String>,
    /// Their places, `[D]`.
    columns: Vec<usize>,
    target: usize,
    weights: Option<usize>,
}

/// Some rows of it.
pub(crate) struct Block {
    /// Row after row, [B, D].
    pub x: Vec<f64>,
    /// `[B]`.
    pub target: Target,
    /// `[B]`, not negative.
    pub weights: Option<Vec<f64>>,
}

/// A table read for training.
pub(crate) struct TrainingTable {
    /// [N, D].
    pub x: Array2<f64>,
    /// `[N]`.
    pub target: Target,
    /// `[N]`, not negative.
    pub weights: Option<Array1<f64>>,
}

impl TrainingRows {
    pub fn open(path: &Path, roles: Roles) -> Result<TrainingRows> {
        let table = Table::open(path)?;
        let name = format!("`{}`", path.display());
        TrainingRows::of(table, name.clone(), roles).context(name)
    }

    fn of(mut table: Table, name: String, roles: Roles) -> Result<TrainingRows> {
        let target = table.find(roles.target, "the target")?;
        let weights = roles.weights.map(|name| table.find(name, "the weights")).transpose()?;
        let dropped = roles.drop.iter().map(|name| table.find(name, "to drop")).collect::<Result<Vec<_>>>()?;
        if weights == Some(target) || dropped.contains(&target) {
            bail!("the target `{}` is also the column of weights, or to be dropped", table.columns()[target]);
        }
        let columns: Vec<usize> =
            (0..table.columns().len()).filter(|c| *c != target && Some(*c) != weights && !dropped.contains(c)).collect();
        if columns.is_empty() {
            bail!("there is no feature: the target `{}` is the only column left", roles.target);
        }
        let features = columns.iter().map(|c| table.columns()[*c].clone()).collect();
        table.only(&columns.iter().copied().chain([target]).chain(weights).collect::<Vec<_>>());
        Ok(TrainingRows { table, name, features, columns, target, weights })
    }

    /// Names of the features, `[D]`.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.table.columns()[self.target]
    }

    /// The table itself: how many rows there are, how far it has been read.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// A block for these rows, empty yet.
    pub fn block(&self) -> Block {
        Block { x: Vec::new(), target: Target::new(self.target()), weights: self.weights.map(|_| Vec::new()) }
    }

    /// Replaces the rows of `block` by the next ones, `most` at most; `false` if there are none.
    pub fn read(&mut self, block: &mut Block, most: usize) -> Result<bool> {
        self.read_unnamed(block, most).with_context(|| self.name.clone())
    }

    fn read_unnamed(&mut self, block: &mut Block, most: usize) -> Result<bool> {
        block.x.clear();
        block.target.clear();
        block.weights.iter_mut().for_each(Vec::clear);
        while block.target.len() < most && self.table.advance()? {
            for column in &self.columns {
                match self.table.number(*column) {
                    Ok(value) => block.x.push(value),
                    Err(e) => return Err(self.table.explain_text(&self.columns, e)),
                }
            }
            block.target.push(&self.table, self.target)?;
            if let (Some(column), Some(weights)) = (self.weights, &mut block.weights) {
                let weight = self.table.number(column)?;
                if weight < 0.0 {
                    return Err(self.table.error(column, &format!("the weight {weight} is negative")));
                }
                weights.push(weight);
            }
        }
        if self.table.row() == 0 {
            bail!("there are no rows below the header");
        }
        Ok(!block.target.is_empty())
    }

    /// Passes over rows; `false` if there are fewer.
    pub fn skip(&mut self, rows: usize) -> Result<bool> {
        for _ in 0..rows {
            if !self.table.advance().with_context(|| self.name.clone())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All rows.
    pub fn collect(mut self) -> Result<TrainingTable> {
        let mut block = self.block();
        self.read(&mut block, usize::MAX)?;
        let x = Array2::from_shape_vec((block.target.len(), self.columns.len()), block.x)?;
        Ok(TrainingTable { x, target: block.target, weights: block.weights.map(Array1::from_vec) })
    }
}

/// The table of landmarks at `path`: the columns named as `features`, [L, D], as they are.
pub(crate) fn landmarks(path: &Path, features: &[String]) -> Result<Array2<f64>> {
    let mut table = Table::open(path)?;
    let mut read = || -> Result<Array2<f64>> {
        let columns = positions(&table, features, "the table to learn from")?;
        table.only(&columns);
        let mut values = Vec::new();
        while table.advance()? {
            for column in &columns {
                values.push(table.number(*column)?);
            }
        }
        if values.is_empty() {
            bail!("there are no rows below the header");
        }
        Ok(Array2::from_shape_vec((table.row(), columns.len()), values)?)
    };
    read().with_context(|| format!("landmarks `{}`", path.display()))
}
