//! The table of a fit: which column does what, and its rows, some at a time or all.

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

/// Features named in a message.
const NAMES_SHOWN: usize = 10;

/// What the columns are for; the rest are features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roles<'a> {
    pub target: &'a str,
    /// Targets beside that, which are to be predicted together with it.
    pub further: &'a [String],
    pub weights: Option<&'a str>,
    pub known: Option<(Known, &'a str)>,
    pub drop: &'a [String],
    /// Whether something asks for what only regression has, so that numbers are values.
    pub values: bool,
    /// How the table is read.
    pub reading: &'a ReadArgs,
    /// What becomes of missing cells; `None`: they are an error, unless the encoding has a rule.
    pub missing: Option<Missing>,
    /// Features that hold categories, whatever their cells look like.
    pub categories: &'a [String],
    /// How the columns become features, if that is settled.
    pub encoding: Option<&'a Encoding>,
}

impl<'a> Roles<'a> {
    /// All columns but the target are features.
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

/// The error of a column of the table `name`: others may have problems too, which the fit has not come to.
fn pointed(error: anyhow::Error, name: &str) -> anyhow::Error {
    anyhow!("{error:#}. relvec describe {} shows all columns", quoted(name.trim_matches('`')))
}

/// What to do about missing cells.
const ADVICE: &str = "--missing mean and --missing indicator fill them, --missing drop leaves these rows out";

/// What a column says of each row beside its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Noise,
    Exposure,
}

impl Known {
    /// What the columns --exposure and --noise-variance say of the rows of a table for `model`, and the name of the column.
    ///
    /// # Errors
    /// A model that has no use for them.
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

    /// `targets` with the values of such a column, `[N]`.
    pub fn with<'a>(self, targets: Targets<'a>, values: ArrayView1<'a, f64>) -> Targets<'a> {
        match self {
            Known::Noise => targets.with_noise_variance(values),
            Known::Exposure => targets.with_exposure(values),
        }
    }

    /// The value of the table's present row, which has to be positive.
    pub fn read(self, table: &Table, column: usize) -> Result<f64> {
        let value = table.number(column)?;
        if !(value > 0.0) {
            return Err(table.error(column, &format!("the {} {value} is not positive", self.name())));
        }
        Ok(value)
    }
}

/// An open table of which the columns' roles are settled.
pub(crate) struct TrainingRows {
    table: Table,
    name: String,
    /// Names of the features, or of their columns as long as no encoding is settled.
    features: Vec<String>,
    /// The places of their columns.
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
    /// Numbers as they are, categories as they were numbered, missing ones as NaN.
    Learning(Columns),
    /// Features, by an encoding that is settled.
    Known(Encoder),
}

/// Rows between two looks at the memory that they take.
const ROWS_WATCHED: usize = 1 << 12;

/// Some rows of it.
pub(crate) struct Block {
    /// Row after row, [B, D]; before an encoding is settled, cells of the columns instead of features.
    pub x: Vec<f64>,
    /// `[B]`.
    pub target: Target,
    /// Those beside it, `[B]` each.
    pub further: Vec<Target>,
    /// `[B]`, not negative.
    pub weights: Option<Vec<f64>>,
    /// `[B]`, positive.
    pub known: Option<(Known, Vec<f64>)>,
    /// Most bytes that the rows may take.
    limit: u64,
}

impl Block {
    /// `targets` of its rows, with their weights and what is known of them.
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
    /// How the columns become the features; `None` if these are the columns as they are.
    pub encoding: Option<Encoding>,
    /// `[N]`.
    pub target: Target,
    /// Those beside it, `[N]` each.
    pub further: Vec<Target>,
    /// `[N]`, not negative.
    pub weights: Option<Array1<f64>>,
    /// `[N]`, positive.
    pub known: Option<(Known, Array1<f64>)>,
}

impl Block {
    /// Bytes that the rows take.
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
                    bail!("the model does not know the column `{name}`; --drop {name} leaves it out");
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

    /// Names of the features, `[D]`; before an encoding is settled, of their columns.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.table.columns()[self.target]
    }

    /// Names of all targets if there are several; else none.
    pub fn targets(&self) -> Vec<String> {
        let all = [self.target].into_iter().chain(self.further.iter().copied());
        if self.further.is_empty() { vec![] } else { all.map(|column| self.table.columns()[column].clone()).collect() }
    }

    /// The table itself: how many rows there are, how far it has been read.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// A block for these rows, empty yet.
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

    /// Replaces the rows of `block` by the next ones, `most` at most; `false` if there are none.
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

    /// Adds the cells of the present row, or its features, to `out`; `false` if the row is to be left out.
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

    /// Passes over rows, `most` at most, beside those that are left out; how many there were.
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

    /// Says what was done about rows of the table, once it has been read.
    pub fn tell(&self, block: &Block) {
        let targets = std::iter::once(&block.target).chain(&block.further);
        for note in self.table.notes().into_iter().chain(targets.filter_map(Target::note)) {
            say!("note: {}: {note}", self.name);
        }
        if self.dropped > 0 {
            say!("note: {} with missing cells left out", share(self.dropped, self.table.row(), "row"));
        }
    }

    /// How the columns become features, from all rows; `None` if they are columns of numbers and there is no rule for missing cells.
    /// Reads no more than the first row if that settles it. `is_over`: whether there is no time to go on.
    ///
    /// # Errors
    /// A cell that no fit could use; too little time.
    pub fn survey(mut self, is_over: impl Fn() -> bool) -> Result<Option<Encoding>> {
        let name = self.name.clone();
        let mut block = self.block();
        let mut most = 1;
        while self.read(&mut block, most)? {
            if let Cells::Learning(columns) = &self.cells
                && self.missing.is_none()
                && !columns.has_categories()
            {
                // Without a rule there are no missing cells, and the first row says what every column is.
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

    /// All rows; `blank`: with NaN instead of the means that fill missing cells.
    ///
    /// # Errors
    /// A cell that no fit could use; rows that take more than `limit` bytes.
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

/// The table of landmarks at `path`: the columns named as `features`, or of an .npy file all, [L, D], as they are.
pub(crate) fn landmarks(path: &Path, features: &[String], reading: &ReadArgs) -> Result<Array2<f64>> {
    let mut table = Table::open(path, reading)?;
    let limit = Rvm::default().memory_allowed();
    let mut read = || -> Result<Array2<f64>> {
        if table.is_counted() && table.columns().len() != features.len() {
            // Without names, nothing says which of them are the features.
            let (found, expected) = (count(table.columns().len(), "column"), count(features.len(), "feature"));
            bail!("found {found}, expected {expected} as of the table to learn from: {}", list(features, NAMES_SHOWN));
        }
        let columns = positions(&table, features, "the table to learn from")?;
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
