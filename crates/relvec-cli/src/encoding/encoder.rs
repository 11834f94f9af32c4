//! Encodes rows of a table as features.

use anyhow::Result;
use relvec::{EncodedCell, EncodedColumn, Encoding, Missing, Model};

use super::{NAMES_SHOWN, category};
use crate::failure::usage;
use crate::table::{Cell, Table, positions};
use crate::text::{cut, list, share};

/// Converts rows of a table to features by a known encoding.
pub(crate) struct Encoder {
    columns: Vec<(usize, EncodedColumn)>,
    /// Rule for missing cells.
    pub missing: Option<Missing>,
    /// True if categories that no training row has count as missing; `None` in a fit, which must know all categories.
    ignore_unknown: Option<bool>,
    /// Rows with unknown categories, and rows with missing cells.
    unknown: usize,
    filled: usize,
}

impl Encoder {
    /// Creates an encoder. `missing` replaces the rule of the encoding if it is given.
    ///
    /// # Errors
    /// The table lacks one of the columns, or the encoding does not support the rule.
    pub fn new(encoding: &Encoding, table: &Table, missing: Option<Missing>, ignore_unknown: Option<bool>) -> Result<Encoder> {
        let names: Vec<String> = encoding.columns.iter().map(|column| column.name.clone()).collect();
        let places = positions(table, &names, "the model")?;
        if missing == Some(Missing::Indicator) && encoding.missing != Some(Missing::Indicator) {
            return Err(usage("--missing indicator: the model was trained without it; use --missing mean or --missing drop"));
        }
        let columns = places.into_iter().zip(encoding.columns.iter().cloned()).collect();
        Ok(Encoder { columns, missing: missing.or(encoding.missing), ignore_unknown, unknown: 0, filled: 0 })
    }

    /// Creates the encoder of a model. If the model has no encoding, its features are the columns at `places`,
    /// unchanged.
    pub fn of_model(
        model: &Model,
        table: &Table,
        places: impl FnOnce() -> Result<Vec<usize>>,
        missing: Option<Missing>,
        ignore_unknown: bool,
    ) -> Result<Encoder> {
        if let Some(encoding) = &model.encoding {
            return Encoder::new(encoding, table, missing, Some(ignore_unknown));
        }
        if missing == Some(Missing::Indicator) {
            return Err(usage("--missing indicator: the model was trained without it; use --missing mean or --missing drop"));
        }
        let means = match (missing, &model.scaling) {
            // The scaling contains the means of the training rows.
            (Some(Missing::Mean), Some(scaling)) => scaling.mean.clone(),
            (Some(Missing::Mean), None) => {
                return Err(usage(
                    "--missing mean: the model was trained with --no-standardize and has no means; use --missing drop",
                ));
            }
            _ => vec![0.0; model.n_features],
        };
        let column = |(place, mean): (usize, f64)| {
            // A column of zeros that stands for a feature missing from the table has no name and needs none.
            let name = table.columns().get(place).cloned().unwrap_or_default();
            (place, EncodedColumn { name, categories: vec![], indicator: false, means: vec![mean] })
        };
        let columns = places()?.into_iter().zip(means).map(column).collect();
        Ok(Encoder { columns, missing, ignore_unknown: Some(ignore_unknown), unknown: 0, filled: 0 })
    }

    /// Returns the indices of the columns in the table, in the order of the encoding.
    pub fn places(&self) -> Vec<usize> {
        self.columns.iter().map(|(place, _)| *place).collect()
    }

    /// Returns the number of features of a row.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|(_, column)| column.width()).sum()
    }

    /// Appends the features of the current row to `out`. Returns the index of the first column whose cell is missing.
    ///
    /// # Errors
    /// A cell is of another kind than its column, or a category is unknown.
    pub fn row(&mut self, table: &Table, out: &mut Vec<f64>) -> Result<Option<usize>> {
        let (mut missing, mut unknown) = (None, false);
        for (place, column) in &self.columns {
            let cell = self.cell(table, *place, column)?;
            unknown |= cell == EncodedCell::Unknown;
            if cell == EncodedCell::Missing {
                missing = missing.or(Some(*place));
            }
            column.push(cell, out);
        }
        self.unknown += usize::from(unknown);
        self.filled += usize::from(missing.is_some());
        Ok(missing)
    }

    fn cell(&self, table: &Table, place: usize, column: &EncodedColumn) -> Result<EncodedCell> {
        if column.categories.is_empty() {
            return Ok(table.value(place)?.map_or(EncodedCell::Missing, EncodedCell::Number));
        }
        let cell = table.cell(place);
        if cell == Cell::Missing {
            return Ok(EncodedCell::Missing);
        }
        let known = match cell {
            Cell::Text(text) => column.category(text),
            Cell::Boolean(value) => column.boolean(value),
            _ => column.category(&category(table, place, cell, true, &None)?),
        };
        match known {
            Some(known) => Ok(EncodedCell::Category(known)),
            None if self.ignore_unknown == Some(true) => Ok(EncodedCell::Unknown),
            None => {
                let text = category(table, place, cell, true, &None).unwrap_or_default();
                let problem = format!(
                    "`{}` is none of the categories that the model knows: {}. {}",
                    cut(&text),
                    list(&column.categories, NAMES_SHOWN),
                    match self.ignore_unknown {
                        Some(_) => "--unknown ignore predicts such rows with the means of the column's features",
                        None => "Leave such rows out, or train a model on all rows",
                    }
                );
                Err(table.error(place, &problem))
            }
        }
    }

    /// Returns notes on rows with missing cells and unknown categories. `rows` were read in total, and `dropped` of
    /// them were left out. `left_out` says what happens to these.
    pub fn notes(&self, rows: usize, dropped: usize, left_out: &str) -> Vec<String> {
        let filled = matches!(self.missing, Some(Missing::Mean | Missing::Indicator)) && self.filled > 0;
        let all = [
            (dropped > 0).then(|| format!("{} with missing cells {left_out}", share(dropped, rows, "row"))),
            filled.then(|| format!("{} with missing cells, which are filled with the means", share(self.filled, rows, "row"))),
            (self.unknown > 0)
                .then(|| format!("{} with categories that the model does not know", share(self.unknown, rows, "row"))),
        ];
        all.into_iter().flatten().collect()
    }
}
