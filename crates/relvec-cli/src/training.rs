//! The table of a fit: which column does what, and its rows, some at a time or all.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use ndarray::{Array1, Array2, ArrayView1};
use relvec::{Error, Rvm, Targets};

use crate::table::{Table, positions};
use crate::target::Target;
use crate::text::{count, list};

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
}

/// What a column says of each row beside its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Noise,
    Exposure,
}

impl Known {
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
    /// Names of the features, `[D]`.
    features: Vec<String>,
    /// Their places, `[D]`.
    columns: Vec<usize>,
    target: usize,
    further: Vec<usize>,
    weights: Option<usize>,
    known: Option<(Known, usize)>,
    values: bool,
}

/// Rows between two looks at the memory that they take.
const ROWS_WATCHED: usize = 1 << 12;

/// Some rows of it.
pub(crate) struct Block {
    /// Row after row, [B, D].
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

/// A table read for training.
pub(crate) struct TrainingTable {
    /// [N, D].
    pub x: Array2<f64>,
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
        let table = Table::open(path)?;
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
        let features = columns.iter().map(|c| table.columns()[*c].clone()).collect();
        table.only(&columns.iter().copied().chain(all).chain(weights).chain(place).collect::<Vec<_>>());
        Ok(TrainingRows { table, name, features, columns, target, further, weights, known, values: roles.values })
    }

    /// Names of the features, `[D]`.
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
            for column in &self.columns {
                match self.table.number(*column) {
                    Ok(value) => block.x.push(value),
                    Err(e) => return Err(self.table.explain_text(&self.columns, e)),
                }
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
        Ok(!block.target.is_empty())
    }

    /// Passes over rows, `most` at most; how many there were.
    pub fn skip(&mut self, most: usize) -> Result<usize> {
        for passed in 0..most {
            if !self.table.advance().with_context(|| self.name.clone())? {
                return Ok(passed);
            }
        }
        Ok(most)
    }

    /// All rows.
    ///
    /// # Errors
    /// A cell that no fit could use; rows that take more than `limit` bytes.
    pub fn collect(mut self, limit: u64) -> Result<TrainingTable> {
        let mut block = Block { limit, ..self.block() };
        self.read(&mut block, usize::MAX)?;
        let x = Array2::from_shape_vec((block.target.len(), self.columns.len()), block.x)?;
        let known = block.known.map(|(known, values)| (known, Array1::from_vec(values)));
        let (target, further) = (block.target, block.further);
        Ok(TrainingTable { x, target, further, weights: block.weights.map(Array1::from_vec), known })
    }
}

/// The table of landmarks at `path`: the columns named as `features`, or of an .npy file all, [L, D], as they are.
pub(crate) fn landmarks(path: &Path, features: &[String]) -> Result<Array2<f64>> {
    let mut table = Table::open(path)?;
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
