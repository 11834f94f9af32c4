//! The table of a fit: which column does what, and all rows in memory.

use std::path::Path;

use anyhow::{Context, Result, bail};
use ndarray::{Array1, Array2};

use crate::table::Table;
use crate::target::Target;

/// What the columns are for; the rest are features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roles<'a> {
    pub target: &'a str,
    pub weights: Option<&'a str>,
    pub drop: &'a [String],
}

/// A table read for training.
pub(crate) struct TrainingTable {
    /// Names of the features, `[D]`.
    pub features: Vec<String>,
    /// [N, D].
    pub x: Array2<f64>,
    /// `[N]`.
    pub target: Target,
    /// `[N]`, not negative.
    pub weights: Option<Array1<f64>>,
}

impl TrainingTable {
    /// Reads all rows of the file `path`.
    pub fn read(path: &Path, roles: Roles) -> Result<TrainingTable> {
        let table = Table::open(path)?;
        TrainingTable::read_open(table, roles).with_context(|| format!("`{}`", path.display()))
    }

    fn read_open(mut table: Table, roles: Roles) -> Result<TrainingTable> {
        let target_column = table.find(roles.target, "the target")?;
        let weights_column = roles.weights.map(|name| table.find(name, "the weights")).transpose()?;
        let dropped = roles.drop.iter().map(|name| table.find(name, "to drop")).collect::<Result<Vec<_>>>()?;
        let columns: Vec<usize> = (0..table.columns().len())
            .filter(|c| *c != target_column && Some(*c) != weights_column && !dropped.contains(c))
            .collect();
        if columns.is_empty() {
            bail!("there is no feature: the target `{}` is the only column left", roles.target);
        }
        let features = columns.iter().map(|c| table.columns()[*c].clone()).collect();
        let mut target = Target::new(roles.target);
        let mut weights = weights_column.map(|_| Vec::new());
        let mut values = Vec::new();
        while table.advance()? {
            for column in &columns {
                match table.number(*column) {
                    Ok(value) => values.push(value),
                    Err(e) => return Err(table.explain_text(&columns, e)),
                }
            }
            target.push(&table, target_column)?;
            if let (Some(column), Some(weights)) = (weights_column, &mut weights) {
                let weight = table.number(column)?;
                if weight < 0.0 {
                    return Err(table.error(column, &format!("the weight {weight} is negative")));
                }
                weights.push(weight);
            }
        }
        if target.is_empty() {
            bail!("there are no rows below the header");
        }
        let x = Array2::from_shape_vec((target.len(), columns.len()), values)?;
        Ok(TrainingTable { features, x, target, weights: weights.map(Array1::from_vec) })
    }
}
