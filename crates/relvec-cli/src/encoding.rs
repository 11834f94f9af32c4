//! The feature columns of a table: what each holds is learned from the table of a fit, and applied to the tables of predictions.
//!
//! The first value of a column says whether it holds numbers or categories, and every other has to agree: nothing is guessed
//! from the majority.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Error, Result, anyhow, bail};
use relvec::{EncodedCell, EncodedColumn, Encoding, Missing, Model};

use crate::failure::{quoted, usage};
use crate::table::{Cell, Table, is_date, positions, quantity};
use crate::text::{count, cut, list, share};

/// Most categories of a column, and the least rows that there have to be for each on average: more are names or free text, of
/// which a model learns the rows by heart. Two are taken in any table, since yes and no name no row. `--categories` lifts
/// both limits.
pub(crate) const MOST_CATEGORIES: usize = 50;
pub(crate) const LEAST_ROWS: usize = 10;
/// Most categories of a column that `--categories` names: each is a feature, and the time of a fit grows with their number.
pub(crate) const MOST_NAMED: usize = 1000;
/// Most bytes of a category: names are shorter, and longer texts are sentences.
const LONGEST: usize = 1000;
/// Names shown of a list.
const NAMES_SHOWN: usize = 10;
/// Categories shown of a column.
const CATEGORIES_SHOWN: usize = 6;

/// What was learned of the feature columns so far.
pub(crate) struct Columns {
    columns: Vec<Column>,
    missing: Option<Missing>,
    /// Rows weighed.
    rows: usize,
}

struct Column {
    place: usize,
    name: String,
    /// Whether it was said that it holds categories.
    named: bool,
    kind: Kind,
    /// Missing cells of the rows weighed.
    missing: usize,
    /// Total weight of the rows whose cell is there, and the mean of their numbers.
    weight: f64,
    mean: f64,
}

enum Kind {
    /// There was no value yet.
    Empty,
    Numbers,
    Categories(Categories),
}

/// Texts of a column, numbered as they come.
#[derive(Default)]
struct Categories {
    numbers: HashMap<String, usize>,
    /// Total weight and number of the rows of each.
    weights: Vec<f64>,
    rows: Vec<usize>,
    /// The first text and its row.
    first: Option<(String, usize)>,
}

impl Columns {
    /// The columns at `places`; those in `named` hold categories, whatever their cells look like.
    ///
    /// # Errors
    /// A name that is no feature.
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

    /// Adds the cells of the present row to `out`: numbers as they are, categories as they were numbered, missing ones as NaN.
    /// Returns the place of the first column whose cell is missing.
    ///
    /// # Errors
    /// A cell that is neither a number nor a category, or of another kind than those above it.
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

    /// Counts a row that is learned from, as [`Columns::row`] gave it.
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
                // A mean that is moved leaves the range of numbers only where they do.
                _ if weight > 0.0 => column.mean += (value - column.mean) * (weight / column.weight),
                _ => {}
            }
        }
    }

    /// Whether a column holds categories.
    pub fn has_categories(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.kind, Kind::Categories(_)))
    }

    /// What was learned, when all rows have been weighed.
    ///
    /// # Errors
    /// A column of too many categories, or without a value; features of one name.
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

/// The columns that hold categories, in words; `None` if none does.
pub(crate) fn of_categories(encoding: &Encoding) -> Option<String> {
    let with = encoding.columns.iter().filter(|column| !column.categories.is_empty());
    let one = |column: &EncodedColumn| {
        let all = &column.categories;
        let shown = list(&all[..all.len().min(CATEGORIES_SHOWN)], CATEGORIES_SHOWN);
        let more = if all.len() > CATEGORIES_SHOWN { format!(", ..., {} in all", all.len()) } else { String::new() };
        format!("{} ({shown}{more})", column.name)
    };
    let each: Vec<String> = with.map(one).collect();
    (!each.is_empty()).then(|| list(&each, NAMES_SHOWN))
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

    /// What the column holds, by its first value.
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
                Err(_) if is_date(text) => Err(table.error(self.place, &dates(Some(text), &name))),
                // A number of whatever spelling, or a sign of a missing value.
                Err(e) if quantity(text).is_some() || !text.contains(char::is_alphanumeric) => {
                    Err(anyhow!("{e}. If the column holds names, --categories {name} says so; --drop {name} leaves it out"))
                }
                Err(e) if text.parse::<f64>().is_ok() => Err(e),
                Err(_) => Ok(Kind::Categories(Categories::default())),
            },
            _ => Ok(Kind::Numbers),
        }
    }

    /// The error for a text among numbers.
    fn mixed(&self, error: Error, text: &str) -> Error {
        let (name, text) = (quoted(&cut(&self.name)), quoted(&cut(text)));
        match self.weight > 0.0 {
            true => anyhow!(
                "{error}. The cells above it are numbers: correct this one; or --na {text} if it means a missing value; or --categories \
                 {name} if the column holds names"
            ),
            false => error,
        }
    }

    /// The column, and for each number of a category its place among the sorted ones.
    fn settle(&self, rows: usize, missing: Option<Missing>, needed: bool) -> Result<(EncodedColumn, Vec<usize>)> {
        let name = self.name.clone();
        if needed && !(self.weight > 0.0) {
            bail!("column `{}` has no value in any row; --drop {} leaves it out", cut(&name), quoted(&cut(&name)));
        }
        let indicator = missing == Some(Missing::Indicator) && self.missing > 0;
        let Kind::Categories(categories) = &self.kind else {
            if needed && !self.mean.is_finite() {
                bail!("column `{}`: its mean leaves the range of 64-bit numbers; rescale it", cut(&name));
            }
            return Ok((EncodedColumn { name, categories: vec![], indicator, means: vec![self.mean] }, vec![]));
        };
        // A text whose rows were all left out is no category.
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

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Number,
    Date,
    /// A number with a unit or in unusual spelling, or a sign such as a dash.
    Quantity,
    Name,
}

impl TextKind {
    pub fn name(self) -> &'static str {
        match self {
            TextKind::Number => "number",
            TextKind::Date => "date",
            TextKind::Quantity => "quantity",
            TextKind::Name => "name",
        }
    }
}

/// What the text is, with a decimal point for the decimal mark.
pub(crate) fn kind_of_text(text: &str) -> TextKind {
    if text.parse::<f64>().is_ok() {
        TextKind::Number
    } else if is_date(text) {
        TextKind::Date
    } else if quantity(text).is_some() || !text.contains(char::is_alphanumeric) {
        TextKind::Quantity
    } else {
        TextKind::Name
    }
}

/// What to do about a column of dates, of which one is `text`.
fn dates(text: Option<&str>, name: &str) -> String {
    let found = text.map_or("dates and times are".to_string(), |text| format!("`{}` is a date or a time, which is", cut(text)));
    format!(
        "{found} no feature: --drop {name} leaves the column out; or make columns of numbers of it, such as days since the first \
         date, the month, the hour"
    )
}

/// The text of a category; `first`: the first one of the column, if this is another.
fn category(table: &Table, place: usize, cell: Cell, named: bool, first: &Option<(String, usize)>) -> Result<String> {
    let text = match cell {
        Cell::Text(text) => text.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Missing => return Err(table.missing(place)),
        Cell::Other(what) => return Err(table.error(place, &format!("{what} are no categories"))),
    };
    let name = quoted(&cut(&table.columns()[place]));
    if let Some((other, row)) = first
        && !named
        && table.number(place).is_ok()
        && !matches!(cell, Cell::Boolean(_))
    {
        let problem = format!(
            "`{}` is a number, and `{}` (row {row}) is not. --categories {name} takes the column for names; if it holds numbers, \
             correct the text, or --na {} if it means a missing value",
            cut(&text),
            cut(other),
            quoted(&cut(other))
        );
        return Err(table.error(place, &problem));
    }
    if text.len() > LONGEST {
        let problem =
            format!("a text of {} bytes is no category (at most {LONGEST}); --drop {name} leaves the column out", text.len());
        return Err(table.error(place, &problem));
    }
    Ok(text)
}

/// The error for a column of too many different texts in `rows` rows.
fn too_many(name: &str, named: bool, categories: &Categories, found: &str, rows: usize) -> Error {
    let (name, option) = (cut(name), quoted(&cut(name)));
    let mut texts: Vec<&String> = categories.numbers.keys().collect();
    texts.sort();
    let some = list(&texts.iter().take(3).collect::<Vec<_>>(), 3);
    let rest = match named {
        true => format!("--categories takes at most {MOST_NAMED}: group them, or leave the column out with --drop {option}"),
        false => format!(
            "too many for categories, which are at most {MOST_CATEGORIES}, with {LEAST_ROWS} rows each on average: leave the column out \
             with --drop {option}, group the texts, or take all with --categories {option}"
        ),
    };
    anyhow!("column `{name}` holds {found} different texts ({some}, ...) in {}: {rest}", count(rows, "row"))
}

/// What the columns of a table are.
pub(crate) struct Settled {
    /// `None` if they are complete columns of numbers, without a rule for others.
    pub encoding: Option<Encoding>,
    /// Of each column the place of each category by its number.
    ranks: Vec<Vec<usize>>,
    /// What was read as what.
    pub notes: Vec<String>,
}

impl Settled {
    /// The features by `encoding`, [N, D] row after row, of rows as [`Columns::row`] gave them.
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

/// The features of the rows of a table, by an encoding that is known.
pub(crate) struct Encoder {
    columns: Vec<(usize, EncodedColumn)>,
    /// What is done about missing cells.
    pub missing: Option<Missing>,
    /// Whether categories that no training row has are taken for missing; `None` in a fit, which needs to know them.
    ignore_unknown: Option<bool>,
    /// Rows with such categories, and rows with missing cells.
    unknown: usize,
    filled: usize,
}

impl Encoder {
    /// `missing`: the rule, if it is another than that of the encoding.
    ///
    /// # Errors
    /// A table without one of the columns; a rule that the encoding does not serve.
    pub fn new(encoding: &Encoding, table: &Table, missing: Option<Missing>, ignore_unknown: Option<bool>) -> Result<Encoder> {
        let names: Vec<String> = encoding.columns.iter().map(|column| column.name.clone()).collect();
        let places = positions(table, &names, "the model")?;
        if missing == Some(Missing::Indicator) && encoding.missing != Some(Missing::Indicator) {
            return Err(usage("--missing indicator: the model was trained without it; take --missing mean or --missing drop"));
        }
        let columns = places.into_iter().zip(encoding.columns.iter().cloned()).collect();
        Ok(Encoder { columns, missing: missing.or(encoding.missing), ignore_unknown, unknown: 0, filled: 0 })
    }

    /// That of a model: without an encoding its features are the columns at `places`, as they are.
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
            return Err(usage("--missing indicator: the model was trained without it; take --missing mean or --missing drop"));
        }
        let means = match (missing, &model.scaling) {
            // What standardises subtracts the mean of the training rows.
            (Some(Missing::Mean), Some(scaling)) => scaling.mean.clone(),
            (Some(Missing::Mean), None) => {
                return Err(usage(
                    "--missing mean: the model was trained with --no-standardize and has no means; take --missing drop",
                ));
            }
            _ => vec![0.0; model.n_features],
        };
        let column = |(place, mean): (usize, f64)| {
            let name = table.columns()[place].clone();
            (place, EncodedColumn { name, categories: vec![], indicator: false, means: vec![mean] })
        };
        let columns = places()?.into_iter().zip(means).map(column).collect();
        Ok(Encoder { columns, missing, ignore_unknown: Some(ignore_unknown), unknown: 0, filled: 0 })
    }

    /// The columns of the table, in their order.
    pub fn places(&self) -> Vec<usize> {
        self.columns.iter().map(|(place, _)| *place).collect()
    }

    /// Features of a row.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|(_, column)| column.width()).sum()
    }

    /// Adds the features of the present row to `out`. Returns the place of the first column whose cell is missing.
    ///
    /// # Errors
    /// A cell of another kind than its column's; an unknown category.
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
                        Some(_) => "--unknown ignore predicts such rows as if the cell said nothing",
                        None => "Leave such rows out, or train a model on all rows",
                    }
                );
                Err(table.error(place, &problem))
            }
        }
    }

    /// What was done about rows with missing cells and unknown categories, of `rows` rows read in all, of which `dropped` were left
    /// out; `left_out`: what that means to them.
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

/// The error for the missing cell of the present row at `place`, with a count of those below it in the columns at `places`; `advice`:
/// what to do. Reads the table to its end.
pub(crate) fn missing(table: &mut Table, place: usize, places: &[usize], advice: &str) -> Error {
    let cell = table.missing_cell(place);
    let first = table.error(place, &cell);
    let mut counts = vec![0; places.len()];
    let mut rows = 0;
    loop {
        let before = counts.iter().sum::<usize>();
        places.iter().zip(&mut counts).for_each(|(place, count)| *count += usize::from(table.cell(*place) == Cell::Missing));
        rows += usize::from(counts.iter().sum::<usize>() > before);
        // A damaged end is another matter: until there they are counted.
        if !matches!(table.advance(), Ok(true)) {
            break;
        }
    }
    let each = places.iter().zip(counts).filter(|(_, count)| *count > 0);
    let each: Vec<String> = each.map(|(place, count)| format!("{} {count}", cut(&table.columns()[*place]))).collect();
    anyhow!("{first}. Missing cells in {}: {}. {advice}", share(rows, table.row(), "row"), list(&each, NAMES_SHOWN))
}
