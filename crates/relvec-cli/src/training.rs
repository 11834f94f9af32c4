//! The table of a fit: the roles of its columns, and its rows, in blocks or all at once.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{Array1, Array2, ArrayView1};
use relvec::{Encoding, Error, Missing, Model, Rvm, Targets};

use crate::args::ReadArgs;
use crate::encoding::{self, Columns, Encoder};
use crate::failure::quoted;
use crate::table::{Cell, Table, positions};
use crate::target::Target;
use crate::text::{count, list, share};

/// Most features named in a message.
const NAMES_SHOWN: usize = 10;

/// Roles of the columns. All other columns are features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roles<'a> {
    pub target: &'a str,
    /// Further targets, which the model predicts together with the first.
    pub further: &'a [String],
    pub weights: Option<&'a str>,
    pub known: Option<(Known, &'a str)>,
    pub drop: &'a [String],
    /// True if an option is for regression only, so that numbers are values.
    pub values: bool,
    /// Options of reading the table.
    pub reading: &'a ReadArgs,
    /// Rule for missing cells. `None`: they are an error, unless the encoding has a rule.
    pub missing: Option<Missing>,
    /// Features that hold categories, whatever their cells.
    pub categories: &'a [String],
    /// Encoding of the columns, if it is known.
    pub encoding: Option<&'a Encoding>,
}

impl<'a> Roles<'a> {
    /// Returns roles in which all columns except the target are features.
    pub fn of_target(target: &'a str, reading: &'a ReadArgs) -> Roles<'a> {
        Roles {
            target,
            further: &[],
            weights: None,
            known: None,
            drop: &[],
            values: false,
            reading,
            missing: None,
            categories: &[],
            encoding: None,
        }
    }
}

/// Adds advice to an error of a column: other columns of the table `name` may have problems that the fit has not
/// reached.
fn pointed(error: anyhow::Error, name: &str) -> anyhow::Error {
    anyhow!("{error:#}. relvec describe {} shows all columns", quoted(name.trim_matches('`')))
}

/// Advice in the error for a missing cell.
const ADVICE: &str = "--missing mean and --missing indicator fill them, --missing drop leaves these rows out";

/// Known quantity of each row, in addition to its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Noise,
    Exposure,
}

impl Known {
    /// Returns which known quantity of the rows a prediction by `model` uses, and the name of its column.
    ///
    /// # Errors
    /// The model does not use this quantity.
    pub fn of<'a>(model: &Model, exposure: Option<&'a str>, noise: Option<&'a str>) -> Result<Option<(Known, &'a str)>> {
        match (exposure, noise) {
            (Some(_), _) if !model.is_of_counts() => bail!("--exposure is for models of counts (--likelihood poisson)"),
            (Some(column), _) => Ok(Some((Known::Exposure, column))),
            (None, Some(_)) if model.noise_variance() != Some(0.0) => {
                bail!("--noise-variance is for models that were trained with such a column")
            }
            (None, Some(column)) => Ok(Some((Known::Noise, column))),
            (None, None) => Ok(None),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Known::Noise => "noise variance",
            Known::Exposure => "exposure",
        }
    }

    /// Returns `targets` with the values of the column, `[N]`.
    pub fn with<'a>(self, targets: Targets<'a>, values: ArrayView1<'a, f64>) -> Targets<'a> {
        match self {
            Known::Noise => targets.with_noise_variance(values),
            Known::Exposure => targets.with_exposure(values),
        }
    }

    /// Returns the value in the current row, which must be positive.
    pub fn read(self, table: &Table, column: usize) -> Result<f64> {
        let value = table.number(column)?;
        if !(value > 0.0) {
            return Err(table.error(column, &format!("the {} {value} is not positive", self.name())));
        }
        Ok(value)
    }
}

/// An open table with the roles of its columns.
pub(crate) struct TrainingRows {
    table: Table,
    name: String,
    /// Names of the features, or of their columns as long as the encoding is not known.
    features: Vec<String>,
    /// Indices of their columns.
    columns: Vec<usize>,
    cells: Cells,
    missing: Option<Missing>,
    /// Rows with missing cells that were left out.
    dropped: usize,
    target: usize,
    further: Vec<usize>,
    weights: Option<usize>,
    known: Option<(Known, usize)>,
    values: bool,
}

/// How the cells of the feature columns are read.
enum Cells {
    /// The encoding is being determined: numbers are unchanged, categories are numbers, missing cells are NaN.
    Learning(Columns),
    /// Features by a known encoding.
    Known(Encoder),
}

/// Rows between two checks of the memory.
const ROWS_WATCHED: usize = 1 << 12;

/// A block of rows.
pub(crate) struct Block {
    /// Features in row order, [B, D]; cells of the columns as long as the encoding is not known.
    pub x: Vec<f64>,
    /// `[B]`.
    pub target: Target,
    /// Targets in addition to `target`, `[B]` each.
    pub further: Vec<Target>,
    /// `[B]`, not negative.
    pub weights: Option<Vec<f64>>,
    /// `[B]`, positive.
    pub known: Option<(Known, Vec<f64>)>,
    /// Memory limit of the rows, in bytes.
    limit: u64,
}

impl Block {
    /// Returns `targets` of these rows with their weights and known quantities.
    pub fn with_rest<'a>(&'a self, targets: Targets<'a>) -> Targets<'a> {
        let targets = self.weights.as_ref().map_or(targets, |w| targets.with_weights(ArrayView1::from(w)));
        self.known.as_ref().map_or(targets, |(known, values)| known.with(targets, ArrayView1::from(values)))
    }
}

/// A table read for training.
pub(crate) struct TrainingTable {
    /// [N, D].
    pub x: Array2<f64>,
    /// Names of the features, `[D]`.
    pub features: Vec<String>,
    /// Encoding of the columns; `None` if the columns are the features.
    pub encoding: Option<Encoding>,
    /// `[N]`.
    pub target: Target,
    /// Targets in addition to `target`, `[N]` each.
    pub further: Vec<Target>,
    /// `[N]`, not negative.
    pub weights: Option<Array1<f64>>,
    /// `[N]`, positive.
    pub known: Option<(Known, Array1<f64>)>,
}

impl Block {
    /// Returns the bytes of the rows.
    fn bytes(&self) -> u64 {
        let known = self.known.as_ref().map_or(0, |(_, values)| values.capacity());
        let numbers = self.x.capacity() + self.weights.as_ref().map_or(0, Vec::capacity) + known;
        let targets = std::iter::once(&self.target).chain(&self.further);
        (size_of::<f64>() * numbers) as u64 + targets.map(Target::bytes).sum::<u64>()
    }
}

impl TrainingRows {
    pub fn open(path: &Path, roles: Roles) -> Result<TrainingRows> {
        let table = Table::open(path, roles.reading)?;
        let name = format!("`{}`", path.display());
        TrainingRows::of(table, name.clone(), roles).context(name)
    }

    fn of(mut table: Table, name: String, roles: Roles) -> Result<TrainingRows> {
        let target = table.find(roles.target, "the target")?;
        let further = roles.further.iter().map(|name| table.find(name, "a target")).collect::<Result<Vec<_>>>()?;
        let weights = roles.weights.map(|name| table.find(name, "the weights")).transpose()?;
        let known = match roles.known {
            Some((known, name)) => Some((known, table.find(name, &format!("the {}", known.name()))?)),
            None => None,
        };
        let dropped = roles.drop.iter().map(|name| table.find(name, "to drop")).collect::<Result<Vec<_>>>()?;
        let place = known.map(|(_, column)| column);
        let all: Vec<usize> = [target].into_iter().chain(further.iter().copied()).collect();
        if let Some(k) = (1..all.len()).find(|k| all[..*k].contains(&all[*k])) {
            bail!("the target `{}` is named twice", table.columns()[all[k]]);
        }
        if place.is_some_and(|column| all.contains(&column) || weights == Some(column) || dropped.contains(&column)) {
            bail!("the column `{}` has more than one role", table.columns()[place.unwrap_or(target)]);
        }
        if let Some(target) = all.iter().find(|target| weights == Some(**target) || dropped.contains(target)) {
            bail!("the target `{}` is also the column of weights, or to be dropped", table.columns()[*target]);
        }
        let others: HashSet<usize> = all.iter().copied().chain(weights).chain(place).chain(dropped).collect();
        let columns: Vec<usize> = (0..table.columns().len()).filter(|c| !others.contains(c)).collect();
        if columns.is_empty() {
            bail!("there is no feature: the target `{}` is the only column left", roles.target);
        }
        let (cells, features, columns) = match roles.encoding {
            Some(encoding) => {
                let encoder = Encoder::new(encoding, &table, roles.missing, None)?;
                let places = encoder.places();
                let known: HashSet<usize> = places.iter().copied().collect();
                if let Some(column) = columns.iter().find(|column| !known.contains(column)) {
                    let name = &table.columns()[*column];
                    bail!("the model has no feature `{name}`; --drop {name} leaves it out");
                }
                (Cells::Known(encoder), encoding.features(), places)
            }
            None => {
                let features = columns.iter().map(|c| table.columns()[*c].clone()).collect();
                (Cells::Learning(Columns::new(&table, &columns, roles.categories, roles.missing)?), features, columns)
            }
        };
        let missing = if let Cells::Known(encoder) = &cells { encoder.missing } else { roles.missing };
        table.only(&columns.iter().copied().chain(all).chain(weights).chain(place).collect::<Vec<_>>());
        let values = roles.values;
        Ok(TrainingRows { table, name, features, columns, cells, missing, dropped: 0, target, further, weights, known, values })
    }

    /// Returns the names of the features, `[D]`, or of their columns as long as the encoding is not known.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.table.columns()[self.target]
    }

    /// Returns the names of all targets if there are several; otherwise none.
    pub fn targets(&self) -> Vec<String> {
        let all = [self.target].into_iter().chain(self.further.iter().copied());
        if self.further.is_empty() { vec![] } else { all.map(|column| self.table.columns()[column].clone()).collect() }
    }

    /// Returns the table, for its number of rows and the share that has been read.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns an empty block for these rows.
    pub fn block(&self) -> Block {
        let target = |column: usize| Target::new(&self.table.columns()[column], self.values);
        Block {
            x: Vec::new(),
            target: target(self.target),
            further: self.further.iter().map(|column| target(*column)).collect(),
            weights: self.weights.map(|_| Vec::new()),
            known: self.known.map(|(known, _)| (known, Vec::new())),
            limit: u64::MAX,
        }
    }

    /// Replaces the rows of `block` by at most `most` next rows. Returns `false` if there are none.
    pub fn read(&mut self, block: &mut Block, most: usize) -> Result<bool> {
        self.read_unnamed(block, most).with_context(|| self.name.clone())
    }

    fn read_unnamed(&mut self, block: &mut Block, most: usize) -> Result<bool> {
        block.x.clear();
        block.target.clear();
        block.further.iter_mut().for_each(Target::clear);
        block.weights.iter_mut().for_each(Vec::clear);
        block.known.iter_mut().for_each(|(_, values)| values.clear());
        while block.target.len() < most && self.table.advance()? {
            let start = block.x.len();
            if !self.cells(&mut block.x)? {
                block.x.truncate(start);
                self.dropped += 1;
                continue;
            }
            block.target.push(&self.table, self.target)?;
            for (target, column) in block.further.iter_mut().zip(&self.further) {
                target.push(&self.table, *column)?;
            }
            if let (Some(column), Some(weights)) = (self.weights, &mut block.weights) {
                let weight = self.table.number(column)?;
                if weight < 0.0 {
                    return Err(self.table.error(column, &format!("the weight {weight} is negative")));
                }
                weights.push(weight);
            }
            if let Cells::Learning(columns) = &mut self.cells {
                let weight = block.weights.as_ref().and_then(|weights| weights.last().copied());
                columns.weigh(&block.x[start..], weight.unwrap_or(1.0));
            }
            if let (Some((known, column)), Some((_, values))) = (self.known, &mut block.known) {
                values.push(known.read(&self.table, column)?);
            }
            if block.target.len().is_multiple_of(ROWS_WATCHED) && block.bytes() > block.limit {
                let what = format!("the table in memory, of which {} are read", count(block.target.len(), "row"));
                return Err(Error::Memory { what, needed: block.bytes(), limit: block.limit }.into());
            }
        }
        if self.table.row() == 0 {
            bail!("there are no rows below the header");
        }
        if block.target.is_empty() && self.dropped == self.table.row() {
            bail!("every row has a missing cell, so that --missing drop leaves none; --missing mean fills them");
        }
        Ok(!block.target.is_empty())
    }

    /// Appends the cells of the current row, or its features, to `out`. Returns `false` if the row is to be left out.
    fn cells(&mut self, out: &mut Vec<f64>) -> Result<bool> {
        let missing = match &mut self.cells {
            Cells::Learning(columns) => columns.row(&self.table, out).map_err(|e| pointed(e, &self.name))?,
            Cells::Known(encoder) => encoder.row(&self.table, out)?,
        };
        match (missing, self.missing) {
            (Some(place), None) => Err(pointed(encoding::missing(&mut self.table, place, &self.columns, ADVICE), &self.name)),
            (None, Some(Missing::Drop)) => {
                let others = [self.target].into_iter().chain(self.further.iter().copied()).chain(self.weights);
                let mut others = others.chain(self.known.map(|(_, column)| column));
                Ok(others.all(|column| self.table.cell(column) != Cell::Missing))
            }
            (Some(_), Some(Missing::Drop)) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Skips at most `most` rows, not counting rows that are left out. Returns the number of skipped rows.
    pub fn skip(&mut self, most: usize) -> Result<usize> {
        let mut out = vec![];
        let mut passed = 0;
        while passed < most && self.table.advance().with_context(|| self.name.clone())? {
            let kept = self.missing != Some(Missing::Drop) || self.cells(&mut out).with_context(|| self.name.clone())?;
            passed += usize::from(kept);
            out.clear();
        }
        Ok(passed)
    }

    /// Prints the notes on the table after the last row.
    pub fn tell(&self, block: &Block) {
        let targets = std::iter::once(&block.target).chain(&block.further);
        for note in self.table.notes().into_iter().chain(targets.filter_map(Target::note)) {
            say!("note: {}: {note}", self.name);
        }
        if self.dropped > 0 {
            say!("note: {} with missing cells left out", share(self.dropped, self.table.row(), "row"));
        }
    }

    /// Determines the encoding from all rows. Returns `None` if all columns are numbers and there is no rule for
    /// missing cells, which the first row decides. `is_over`: true if the time limit has passed.
    ///
    /// # Errors
    /// A fit could not use a cell, or the time limit has passed.
    pub fn survey(mut self, is_over: impl Fn() -> bool) -> Result<Option<Encoding>> {
        let name = self.name.clone();
        let mut block = self.block();
        let mut most = 1;
        while self.read(&mut block, most)? {
            if let Cells::Learning(columns) = &self.cells
                && self.missing.is_none()
                && !columns.has_categories()
            {
                // Without a rule for missing cells the first row decides what every column is.
                return Ok(None);
            }
            if is_over() {
                bail!(
                    "{name}: the time limit has passed before the categories and means of all rows were known; --time-limit allows more"
                );
            }
            most = ROWS_WATCHED;
        }
        match self.cells {
            Cells::Learning(columns) => {
                let settled = columns.settle().map_err(|e| pointed(e, &name)).context(name)?;
                settled.notes.iter().for_each(|note| say!("note: {note}"));
                Ok(settled.encoding)
            }
            Cells::Known(_) => Ok(None),
        }
    }

    /// Reads all rows. `blank`: keep NaN instead of filling missing cells with means.
    ///
    /// # Errors
    /// A fit could not use a cell, or the rows take more than `limit` bytes.
    pub fn collect(mut self, limit: u64, blank: bool) -> Result<TrainingTable> {
        let mut block = Block { limit, ..self.block() };
        self.read(&mut block, usize::MAX)?;
        self.tell(&block);
        let rows = block.target.len();
        let (x, encoding) = match self.cells {
            Cells::Known(encoder) => {
                encoder.notes(self.table.row(), 0, "").iter().for_each(|note| say!("note: {note}"));
                (block.x, None)
            }
            Cells::Learning(columns) => {
                let settled = columns.settle().map_err(|e| pointed(e, &self.name)).with_context(|| self.name.clone())?;
                settled.notes.iter().for_each(|note| say!("note: {note}"));
                match &settled.encoding {
                    None => (block.x, None),
                    Some(encoding) => {
                        let needed = (size_of::<f64>() * (block.x.len() + rows * encoding.width())) as u64;
                        if needed > limit {
                            let what = format!("the table in memory, with {}", count(encoding.width(), "feature"));
                            return Err(Error::Memory { what, needed, limit }.into());
                        }
                        let mut own = encoding.clone();
                        own.columns.iter_mut().filter(|_| blank).for_each(|column| column.means.fill(f64::NAN));
                        self.features = encoding.features();
                        (settled.encode(&own, &block.x), settled.encoding)
                    }
                }
            }
        };
        let x = Array2::from_shape_vec((rows, self.features.len()), x)?;
        let known = block.known.map(|(known, values)| (known, Array1::from_vec(values)));
        let (target, further, features) = (block.target, block.further, self.features);
        Ok(TrainingTable { x, features, encoding, target, further, weights: block.weights.map(Array1::from_vec), known })
    }
}

/// Reads the table of landmarks at `path`: the columns named as `features`, or all columns of an .npy file, [L, D], in
/// original units.
pub(crate) fn landmarks(path: &Path, features: &[String], reading: &ReadArgs) -> Result<Array2<f64>> {
    let mut table = Table::open(path, reading)?;
    let limit = Rvm::default().memory_allowed();
    let mut read = || -> Result<Array2<f64>> {
        if table.is_counted() && table.columns().len() != features.len() {
            // Without names the columns of the features are unknown.
            let (found, expected) = (count(table.columns().len(), "column"), count(features.len(), "feature"));
            bail!("found {found}, expected {expected} as in the training table: {}", list(features, NAMES_SHOWN));
        }
        let columns = positions(&table, features, "the training table")?;
        table.only(&columns);
        let mut values = Vec::new();
        while table.advance()? {
            for column in &columns {
                values.push(table.number(*column)?);
            }
            let needed = (size_of::<f64>() * values.capacity()) as u64;
            if needed > limit {
                return Err(Error::Memory { what: format!("{} landmarks", table.row()), needed, limit }.into());
            }
        }
        if values.is_empty() {
            bail!("there are no rows below the header");
        }
        Ok(Array2::from_shape_vec((table.row(), columns.len()), values)?)
    };
    read().with_context(|| format!("landmarks `{}`", path.display()))
}
