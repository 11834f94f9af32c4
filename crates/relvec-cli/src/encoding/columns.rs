//! Finds out row by row whether the columns of a table hold numbers or categories.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Error, Result, anyhow, bail};
use relvec::{EncodedCell, EncodedColumn, Encoding, Missing};

use super::{NAMES_SHOWN, TextKind, category, kind_of_text, of_categories};
use crate::failure::{quoted, usage};
use crate::table::{Cell, Table};
use crate::text::{count, cut, list};

/// Most categories of a column, and least rows for each category on average. With more categories the cells are names
/// or free text, which identify single rows. Two categories are accepted in any table, since yes and no do not identify
/// a row. `--categories` lifts both limits.
const MOST_CATEGORIES: usize = 50;
const LEAST_ROWS: usize = 10;
/// Most categories of a column that `--categories` names. Each category is a feature, and the time of a fit grows with
/// their number.
const MOST_NAMED: usize = 1000;

/// Properties of the feature columns in the rows so far.
pub(crate) struct Columns {
    columns: Vec<Column>,
    missing: Option<Missing>,
    /// Rows counted by [`Columns::weigh`].
    rows: usize,
}

struct Column {
    place: usize,
    name: String,
    /// True if --categories names the column.
    named: bool,
    kind: Kind,
    /// Missing cells in the counted rows.
    missing: usize,
    /// Total weight of the counted rows without a missing cell, and the weighted mean of their numbers.
    weight: f64,
    mean: f64,
}

enum Kind {
    /// No value has been read.
    Empty,
    Numbers,
    Categories(Categories),
}

/// Texts of a column, numbered in order of appearance.
#[derive(Default)]
struct Categories {
    numbers: HashMap<String, usize>,
    /// Total weight and number of the rows of each text.
    weights: Vec<f64>,
    rows: Vec<usize>,
    /// The first text, with its row.
    first: Option<(String, usize)>,
}

impl Columns {
    /// Creates the state of the columns at `places`. The columns in `named` hold categories, whatever their cells.
    ///
    /// # Errors
    /// A name in `named` is not a feature.
    pub fn new(table: &Table, places: &[usize], named: &[String], missing: Option<Missing>) -> Result<Columns> {
        let column = |place: &usize| {
            let name = table.columns()[*place].clone();
            let named = named.contains(&name);
            Column { place: *place, name, named, kind: Kind::Empty, missing: 0, weight: 0.0, mean: 0.0 }
        };
        let columns: Vec<Column> = places.iter().map(column).collect();
        if let Some(name) = named.iter().find(|name| !columns.iter().any(|column| column.name == **name)) {
            table.find(name, "--categories")?;
            return Err(usage(format!("--categories {name}: this column is no feature")));
        }
        Ok(Columns { columns, missing, rows: 0 })
    }

    /// Appends the cells of the current row to `out`: numbers unchanged, categories by their numbers, missing cells as
    /// NaN. Returns the index of the first column whose cell is missing.
    ///
    /// # Errors
    /// A cell is neither a number nor a category, or of another kind than the cells above it.
    pub fn row(&mut self, table: &Table, out: &mut Vec<f64>) -> Result<Option<usize>> {
        let mut missing = None;
        for column in &mut self.columns {
            let value = column.read(table)?;
            if value.is_nan() {
                missing = missing.or(Some(column.place));
            }
            out.push(value);
        }
        Ok(missing)
    }

    /// Counts a training row, given as the numbers from [`Columns::row`].
    pub fn weigh(&mut self, row: &[f64], weight: f64) {
        self.rows += 1;
        for (column, value) in self.columns.iter_mut().zip(row) {
            if value.is_nan() {
                column.missing += 1;
                continue;
            }
            column.weight += weight;
            match &mut column.kind {
                Kind::Categories(categories) => {
                    categories.weights[*value as usize] += weight;
                    categories.rows[*value as usize] += 1;
                }
                // An updated mean overflows only if the numbers do.
                _ if weight > 0.0 => column.mean += (value - column.mean) * (weight / column.weight),
                _ => {}
            }
        }
    }

    /// True if a column holds categories.
    pub fn has_categories(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.kind, Kind::Categories(_)))
    }

    /// Returns the encoding after all rows have been counted.
    ///
    /// # Errors
    /// A column has too many categories or no value, or two features have the same name.
    pub fn settle(self) -> Result<Settled> {
        let mut ranks = vec![];
        let mut columns = vec![];
        let needed = self.has_categories() || self.missing.is_some();
        for column in &self.columns {
            let (own, order) = column.settle(self.rows, self.missing, needed)?;
            columns.push(own);
            ranks.push(order);
        }
        let encoding = Encoding { columns, missing: self.missing };
        let mut names = BTreeSet::new();
        if let Some(name) = encoding.features().into_iter().find(|name| !names.insert(name.clone())) {
            bail!("two features are called `{name}`; rename a column");
        }
        let mut notes: Vec<String> =
            of_categories(&encoding).map(|columns| format!("read as categories: {columns}")).into_iter().collect();
        if matches!(self.missing, Some(Missing::Mean | Missing::Indicator)) {
            let missing = self.columns.iter().filter(|column| column.missing > 0);
            let each: Vec<String> = missing.map(|column| format!("{} {}", column.name, column.missing)).collect();
            notes.push(match each.as_slice() {
                [] => "no cell is missing; missing cells of other tables are filled with the means".to_string(),
                each => format!("missing cells are filled with the means: {}", list(each, NAMES_SHOWN)),
            });
        }
        Ok(Settled { encoding: needed.then_some(encoding), ranks, notes })
    }
}

impl Column {
    fn read(&mut self, table: &Table) -> Result<f64> {
        if matches!(self.kind, Kind::Numbers) {
            return match table.value(self.place) {
                Ok(value) => Ok(value.unwrap_or(f64::NAN)),
                Err(e) => Err(match table.cell(self.place) {
                    Cell::Text(text) => self.mixed(e, text),
                    _ => e,
                }),
            };
        }
        let cell = table.cell(self.place);
        if cell == Cell::Missing {
            return Ok(f64::NAN);
        }
        if matches!(self.kind, Kind::Empty) {
            self.kind = self.first(table, cell)?;
        }
        match &mut self.kind {
            Kind::Categories(categories) => {
                let text = category(table, self.place, cell, self.named, &categories.first)?;
                let most = if self.named { MOST_NAMED } else { MOST_CATEGORIES };
                if categories.numbers.len() == most && !categories.numbers.contains_key(&text) {
                    return Err(too_many(&self.name, self.named, categories, &format!("more than {most}"), table.row()));
                }
                categories.first.get_or_insert_with(|| (text.clone(), table.row()));
                let next = categories.weights.len();
                let number = *categories.numbers.entry(text).or_insert(next);
                if number == next {
                    categories.weights.push(0.0);
                    categories.rows.push(0);
                }
                Ok(number as f64)
            }
            _ => table.number(self.place),
        }
    }

    /// Returns the kind of the column from its first value.
    fn first(&self, table: &Table, cell: Cell) -> Result<Kind> {
        let name = quoted(&cut(&self.name));
        match cell {
            _ if self.named => Ok(Kind::Categories(Categories::default())),
            Cell::Boolean(_) if !table.is_counted() => Ok(Kind::Categories(Categories::default())),
            Cell::Other("dates" | "times") => Err(table.error(self.place, &dates(None, &name))),
            Cell::Other(what) => Err(table
                .error(self.place, &format!("{what} are neither numbers nor categories; --drop {name} leaves the column out"))),
            Cell::Text(text) => match table.number(self.place) {
                Ok(_) => Ok(Kind::Numbers),
                Err(e) => match kind_of_text(text) {
                    TextKind::Number => Err(e),
                    TextKind::Date => Err(table.error(self.place, &dates(Some(text), &name))),
                    TextKind::Quantity => {
                        Err(anyhow!("{e}. If the column holds names, use --categories {name}; --drop {name} leaves it out"))
                    }
                    TextKind::Name => Ok(Kind::Categories(Categories::default())),
                },
            },
            _ => Ok(Kind::Numbers),
        }
    }

    /// Returns the error for a text among numbers.
    fn mixed(&self, error: Error, text: &str) -> Error {
        let (name, text) = (quoted(&cut(&self.name)), quoted(&cut(text)));
        match self.weight > 0.0 {
            true => anyhow!(
                "{error}. The cells above it are numbers. Correct this cell, or use --na {text} if it means a missing value, or --categories \
                 {name} if the column holds names"
            ),
            false => error,
        }
    }

    /// Returns the encoded column, and the rank of each category, by its number, among the sorted categories.
    fn settle(&self, rows: usize, missing: Option<Missing>, needed: bool) -> Result<(EncodedColumn, Vec<usize>)> {
        let name = self.name.clone();
        if needed && !(self.weight > 0.0) {
            bail!("column `{}` has no value in any row; --drop {} leaves it out", cut(&name), quoted(&cut(&name)));
        }
        let indicator = missing == Some(Missing::Indicator) && self.missing > 0;
        let Kind::Categories(categories) = &self.kind else {
            if needed && !self.mean.is_finite() {
                bail!("column `{}`: its mean is beyond the range of 64-bit numbers; rescale the column", cut(&name));
            }
            return Ok((EncodedColumn { name, categories: vec![], indicator, means: vec![self.mean] }, vec![]));
        };
        // A text that occurs only in rows that were left out is not a category.
        let mut sorted: Vec<(&String, usize)> =
            categories.numbers.iter().map(|(text, number)| (text, *number)).filter(|(_, k)| categories.rows[*k] > 0).collect();
        sorted.sort();
        if !self.named && sorted.len() > (rows / LEAST_ROWS).max(2) {
            return Err(too_many(&name, false, categories, &sorted.len().to_string(), rows));
        }
        let mut ranks = vec![0; categories.weights.len()];
        (0..).zip(&sorted).for_each(|(rank, (_, number))| ranks[*number] = rank);
        let part = |number: usize| categories.weights[number] / self.weight;
        let means = match sorted.as_slice() {
            [_, (_, second)] => vec![part(*second)],
            all => all.iter().map(|(_, number)| part(*number)).collect(),
        };
        let categories = sorted.into_iter().map(|(text, _)| text.clone()).collect();
        Ok((EncodedColumn { name, categories, indicator, means }, ranks))
    }
}

/// Returns the problem and the advice for a column of dates, such as `text`.
fn dates(text: Option<&str>, name: &str) -> String {
    let found = text.map_or("dates and times are".to_string(), |text| format!("`{}` is a date or a time, which is", cut(text)));
    format!(
        "{found} no feature: --drop {name} leaves the column out; or replace it by columns of numbers, such as days since the first \
         date, the month, the hour"
    )
}

/// Returns the error for a column of too many different texts in `rows` rows.
fn too_many(name: &str, named: bool, categories: &Categories, found: &str, rows: usize) -> Error {
    let (name, option) = (cut(name), quoted(&cut(name)));
    let mut texts: Vec<&String> = categories.numbers.keys().collect();
    texts.sort();
    let some = list(&texts.iter().take(3).collect::<Vec<_>>(), 3);
    let rest = match named {
        true => format!("--categories takes at most {MOST_NAMED}: group them, or leave the column out with --drop {option}"),
        false => format!(
            "too many for categories, which are at most {MOST_CATEGORIES}, with {LEAST_ROWS} rows each on average: leave the column out \
             with --drop {option}, group the texts, or accept all with --categories {option}"
        ),
    };
    anyhow!("column `{name}` holds {found} different texts ({some}, ...) in {}: {rest}", count(rows, "row"))
}

/// Result of reading the columns of a table.
pub(crate) struct Settled {
    /// Encoding of the columns; `None` if all are columns of numbers without missing cells and no rule for missing
    /// cells is given.
    pub encoding: Option<Encoding>,
    /// For each column, the rank of each category by its number.
    ranks: Vec<Vec<usize>>,
    /// Notes on how columns were read.
    pub notes: Vec<String>,
}

impl Settled {
    /// Returns the features by `encoding`, [N, D] in row order. `rows` are numbers from [`Columns::row`].
    pub fn encode(&self, encoding: &Encoding, rows: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(rows.len() / encoding.columns.len().max(1) * encoding.width());
        for row in rows.chunks_exact(encoding.columns.len()) {
            for ((column, ranks), value) in encoding.columns.iter().zip(&self.ranks).zip(row) {
                let cell = match ranks.is_empty() {
                    _ if value.is_nan() => EncodedCell::Missing,
                    true => EncodedCell::Number(*value),
                    false => EncodedCell::Category(ranks[*value as usize]),
                };
                column.push(cell, &mut out);
            }
        }
        out
    }
}
