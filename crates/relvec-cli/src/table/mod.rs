//! Input of tables: one interface to the rows of CSV, Parquet, .npy and svmlight files, with errors that name the cell.
//!
//! Reading ends with the rows or with an error for any bytes. It does not panic, and it takes no more memory than the
//! bytes of the file justify (see [`MOST_COLUMNS`], [`MOST_CELL`], and the limits of each format).

mod csv;
mod guard;
mod npy;
mod parquet;
mod spelling;
mod svmlight;
mod thrift;
mod tidy;

use std::cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

pub(crate) use self::spelling::{Marks, is_date, quantity};
use self::spelling::{decimal_comma, hint, with_decimal};
use crate::args::ReadArgs;
use crate::text::{count, cut, list};

/// Most columns of a table, since a header of a few bytes can claim any number. Tables of genomes have as many.
pub(crate) const MOST_COLUMNS: usize = 1_000_000;
/// Most bytes of a text cell. Names of classes are shorter, and a whole cell is in memory.
pub(crate) const MOST_CELL: usize = 1 << 20;
/// Most names shown if a column is not found.
const NAMES_SHOWN: usize = 30;
/// Most names shown of two lists.
const FEW_NAMES: usize = 10;
/// Texts of missing cells in R, Python, databases and spreadsheet programs. Upper and lower case count as equal.
const MISSING: [&str; 6] = ["NA", "N/A", "#N/A", "NaN", "null", "?"];

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Empty or a text of a missing cell (CSV), null (Parquet), or NaN.
    Missing,
    Text(&'a str),
    Number(f64),
    /// A whole number above 2^53, which 64-bit floating point cannot distinguish from its neighbours.
    Integer(i128),
    Boolean(bool),
    /// A type that is neither number nor text, such as a date.
    Other(&'static str),
}

impl Cell<'_> {
    fn whole(value: i128) -> Cell<'static> {
        if value.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS { Cell::Number(value as f64) } else { Cell::Integer(value) }
    }
}

/// Reader of a file format, row by row.
trait Rows {
    /// Goes to the next row. Returns `false` after the last one.
    fn advance(&mut self) -> Result<bool>;
    /// Returns a cell of the current row.
    fn cell(&self, column: usize) -> Cell<'_>;
    /// Returns the line of the current row in the file, if the format has lines.
    fn line(&self) -> Option<u64>;
    /// True if a comma in a cell may be a decimal mark.
    fn has_decimal_commas(&self) -> bool {
        false
    }
    /// Announces that only cells of these columns will be read. Called before the first row.
    fn only(&mut self, _columns: &[usize]) {}
    /// Returns the number of rows if the file contains it.
    fn count(&self) -> Option<usize> {
        None
    }
    /// Returns the estimated number of rows.
    fn about(&self) -> Option<f64> {
        self.count().map(|n| n as f64)
    }
    /// Returns the share of the file that has been read, if this is better known than from the rows.
    fn share(&self) -> Option<f64> {
        None
    }
    /// Returns the kind of the file.
    fn format(&self) -> String;
    /// Returns a column of zeros for the feature `name` if the format leaves out zeros and the file lacks this feature.
    fn zero_column(&self, _name: &str) -> Option<usize> {
        None
    }
    /// Returns notes on how the file was read, after the last row.
    fn notes(&self) -> Vec<String> {
        vec![]
    }
}

/// An open table.
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Box<dyn Rows>,
    /// True if the columns have no names and are counted from 0.
    counted: bool,
    /// Decimal marks of the columns so far, if commas can be decimal marks; otherwise empty.
    marks: Vec<cell::Cell<Marks>>,
    /// Decimal mark of all columns, if it was given.
    decimal: Option<char>,
    /// Texts of missing cells; `missing_numbers` is true if one of them begins like a number.
    missing: Vec<String>,
    missing_numbers: bool,
    /// Number of rows read so far, which is the number of the current row, counted from 1.
    row: usize,
    /// True if all rows have been read.
    ended: bool,
}

impl Table {
    /// Opens a file. Its first bytes identify the format; only the svmlight format is identified by the name of the
    /// file.
    pub fn open(path: &Path, reading: &ReadArgs) -> Result<Table> {
        Table::open_unnamed(path, reading).with_context(|| format!("`{}`", path.display()))
    }

    fn open_unnamed(path: &Path, reading: &ReadArgs) -> Result<Table> {
        if path.is_dir() {
            bail!("this is a folder, not a table");
        }
        let mut file = File::open(path).context("cannot open the table")?;
        let mut magic = Vec::new();
        file.by_ref().take(npy::MAGIC.len() as u64).read_to_end(&mut magic).context("cannot read the table")?;
        // A pipe cannot be rewound, so the bytes read are put in front again.
        let rewound = file.seek(SeekFrom::Start(0)).is_ok();
        let size = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let counted = magic == npy::MAGIC;
        let compressed = magic.starts_with(&[0x1f, 0x8b]);
        let (columns, rows): (_, Box<dyn Rows>) = match (counted, magic.starts_with(parquet::MAGIC), size) {
            (true, _, Some(size)) => {
                let (columns, rows) = npy::open(file, size)?;
                (columns, Box::new(rows))
            }
            (_, true, Some(size)) => {
                let (columns, rows) = parquet::open(file, size)?;
                (columns, Box::new(rows))
            }
            (true, ..) => bail!("an .npy file cannot be read from a pipe or a device; save it first"),
            (_, true, _) => bail!("a Parquet file cannot be read from a pipe or a device; save it first"),
            (.., Some(_)) if svmlight::is_named(path) => {
                let (columns, rows) = svmlight::open(file, compressed)?;
                (columns, Box::new(rows))
            }
            _ if svmlight::is_named(path) => bail!("an svmlight file cannot be read from a pipe or a device; save it first"),
            _ => {
                let before = if rewound { Vec::new() } else { magic.clone() };
                let stream = std::io::Cursor::new(before).chain(file);
                let (columns, rows) = csv::open(stream, compressed, size, reading)?;
                (columns, Box::new(rows))
            }
        };
        check_header(&columns)?;
        let marked = if rows.has_decimal_commas() { columns.len() } else { 0 };
        let missing = match &reading.na {
            Some(texts) => texts.clone(),
            None => MISSING.map(String::from).to_vec(),
        };
        let missing_numbers = missing.iter().any(|text| text.bytes().next().is_some_and(begins_number));
        let decimal = reading.decimal;
        Ok(Table {
            marks: vec![cell::Cell::default(); marked],
            columns,
            rows,
            counted,
            decimal,
            missing,
            missing_numbers,
            row: 0,
            ended: false,
        })
    }

    /// Returns the names in the header.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// True if the columns have no names.
    pub fn is_counted(&self) -> bool {
        self.counted
    }

    /// Returns the number of rows if the file contains it.
    pub fn count(&self) -> Option<usize> {
        self.rows.count()
    }

    /// Returns the number of rows, exact or estimated; `None` for a pipe.
    pub fn about(&self) -> Option<f64> {
        self.rows.about()
    }

    /// Returns the number of rows read so far.
    pub fn row(&self) -> usize {
        self.row
    }

    /// True if all rows have been read.
    pub fn is_at_end(&self) -> bool {
        self.ended
    }

    /// Returns the share of the file that has been read.
    pub fn share(&self) -> Option<f64> {
        self.rows.share().or_else(|| Some(self.row as f64 / self.rows.count()?.max(1) as f64))
    }

    /// Announces that only cells of these columns will be read. Call it before the first row.
    pub fn only(&mut self, columns: &[usize]) {
        self.rows.only(columns);
    }

    /// Returns the index of the column `name`. `role` names its purpose in the error. If columns are counted, -1 is the
    /// last.
    pub fn find(&self, name: &str, role: &str) -> Result<usize> {
        let from_the_end = || {
            let back = name.strip_prefix('-').filter(|_| self.counted)?.parse().ok()?;
            self.columns.len().checked_sub(back).filter(|place| *place < self.columns.len())
        };
        self.columns
            .iter()
            .position(|c| c == name)
            .or_else(from_the_end)
            .ok_or_else(|| anyhow!("there is no column `{name}` ({role}); the columns are: {}", list(&self.columns, NAMES_SHOWN)))
    }

    /// True if commas can be decimal marks and the cells decide.
    pub fn has_decimal_commas(&self) -> bool {
        self.decimal.is_none() && self.rows.has_decimal_commas()
    }

    /// Returns the decimal mark, if it was given.
    pub fn decimal(&self) -> Option<char> {
        self.decimal
    }

    /// Returns the value of a text with the given decimal mark.
    pub fn with_decimal(&self, text: &str) -> Option<f64> {
        self.decimal.and_then(|mark| with_decimal(text, mark))
    }

    /// Returns the kind of the file, with the separator of its cells.
    pub fn format(&self) -> String {
        self.rows.format()
    }

    /// Returns notes on how the table was read, after the last row.
    pub fn notes(&self) -> Vec<String> {
        let commas = self.columns.iter().zip(&self.marks).filter(|(_, marks)| marks.get().has_comma());
        let commas: Vec<&String> = commas.map(|(name, _)| name).collect();
        let commas = (!commas.is_empty()).then(|| format!("decimal commas are read in {}", list(&commas, FEW_NAMES)));
        self.rows.notes().into_iter().chain(commas).collect()
    }

    /// Returns the value of a text with the given decimal mark, or with a decimal comma if commas can be decimal marks.
    pub fn decimal_comma(&self, text: &str) -> Option<f64> {
        if self.has_decimal_commas() { decimal_comma(text) } else { self.with_decimal(text) }
    }

    /// Goes to the next row. Returns `false` after the last one.
    ///
    /// # Errors
    /// The file cannot be read. Or it has ended, and the commas of a column of numbers could be decimal marks or thousands
    /// separators.
    pub fn advance(&mut self) -> Result<bool> {
        let more = self.rows.advance()?;
        self.row += usize::from(more);
        self.ended |= !more;
        if !more && let Some((column, doubt)) = (0..).zip(&self.marks).find_map(|(k, marks)| Some((k, marks.get().doubt()?))) {
            bail!("column `{}`: {doubt}; say what the commas are (--decimal . or --decimal ,)", cut(&self.columns[column]));
        }
        Ok(more)
    }

    /// Returns a cell of the current row, without spaces around a text.
    pub fn cell(&self, column: usize) -> Cell<'_> {
        match self.rows.cell(column) {
            Cell::Text(text) => match text.trim() {
                text if self.is_missing(text) => Cell::Missing,
                text => Cell::Text(text),
            },
            Cell::Number(value) if value.is_nan() => Cell::Missing,
            cell => cell,
        }
    }

    fn is_missing(&self, text: &str) -> bool {
        // Fast path: most cells are numbers, and no text of a missing cell begins like one unless it was given.
        let number = text.as_bytes().first().map(|byte| begins_number(*byte));
        match number {
            None => true,
            Some(true) if !self.missing_numbers => false,
            Some(_) => self.missing.iter().any(|missing| missing.eq_ignore_ascii_case(text)),
        }
    }

    /// Returns a cell of the current row as a finite number.
    pub fn number(&self, column: usize) -> Result<f64> {
        self.value(column)?.ok_or_else(|| self.missing(column))
    }

    /// Returns a cell of the current row as a finite number, or `None` if it is missing.
    pub fn value(&self, column: usize) -> Result<Option<f64>> {
        let value = match self.cell(column) {
            Cell::Number(value) => value,
            Cell::Integer(value) => value as f64,
            Cell::Boolean(value) => f64::from(u8::from(value)),
            Cell::Text(text) => match (self.decimal, self.marks.get(column)) {
                (Some(mark), _) => with_decimal(text, mark)
                    .ok_or_else(|| self.error(column, &format!("`{}` is not a number{}", cut(text), hint(text))))?,
                (None, None) => {
                    text.parse().map_err(|_| self.error(column, &format!("`{}` is not a number{}", cut(text), hint(text))))?
                }
                (None, Some(marks)) => {
                    let mut seen = marks.get();
                    let value = seen.read(text, self.row);
                    marks.set(seen);
                    value.map_err(|problem| self.error(column, &format!("`{}` {problem}", cut(text))))?
                }
            },
            Cell::Missing => return Ok(None),
            Cell::Other(what) => return Err(self.error(column, &format!("{what} are not numbers"))),
        };
        if !value.is_finite() {
            return Err(self.error(column, &format!("{value} is not allowed; every value must be a finite number")));
        }
        Ok(Some(value))
    }

    /// Returns advice on a cell that is not a number.
    pub fn hint(&self, text: &str) -> String {
        hint(text)
    }

    /// Returns the error for a missing cell of the current row.
    pub fn missing(&self, column: usize) -> anyhow::Error {
        self.error(column, &format!("{}; fill in missing values or leave such rows out", self.missing_cell(column)))
    }

    /// Returns a description of a missing cell of the current row.
    pub fn missing_cell(&self, column: usize) -> String {
        match self.rows.cell(column) {
            Cell::Text(text) if !text.trim().is_empty() => format!("the cell is `{}`, a missing value", cut(text.trim())),
            Cell::Number(_) => "the cell is NaN, a missing value".to_string(),
            _ => "the cell is empty".to_string(),
        }
    }

    /// Returns an error at a cell of the current row.
    pub fn error(&self, column: usize, problem: &str) -> anyhow::Error {
        let line = self.rows.line().map_or(String::new(), |l| format!(" (line {l})"));
        // Only a column of zeros has no name, and zeros never cause an error.
        let name = self.columns.get(column).map_or("", String::as_str);
        anyhow!("row {}{line}, column `{}`: {problem}", self.row, cut(name))
    }
}

/// Returns the columns of `table` with the `features`, in their order. If columns are counted and there are as many
/// columns as features, the columns are taken in order.
///
/// # Errors
/// Features are missing. `whose` names their owner in the error.
pub(crate) fn positions(table: &Table, features: &[String], whose: &str) -> Result<Vec<usize>> {
    if table.counted && table.columns.len() == features.len() {
        return Ok((0..features.len()).collect());
    }
    let places: HashMap<&String, usize> = table.columns.iter().zip(0..).collect();
    let place = |name: &String| places.get(name).copied().or_else(|| table.rows.zero_column(name));
    let missing: Vec<&String> = features.iter().filter(|name| place(name).is_none()).collect();
    if !missing.is_empty() {
        bail!(
            "{} of {whose} {} missing: {}; the columns are: {}",
            count(missing.len(), "feature"),
            if missing.len() == 1 { "is" } else { "are" },
            list(&missing, FEW_NAMES),
            list(&table.columns, FEW_NAMES)
        );
    }
    Ok(features.iter().filter_map(place).collect())
}

/// True if a number may begin with this byte.
fn begins_number(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.".contains(&byte)
}

fn check_header(columns: &[String]) -> Result<()> {
    if columns.len() > MOST_COLUMNS {
        bail!("the table has {} columns; at most {MOST_COLUMNS} can be read", columns.len());
    }
    let mut places = HashMap::with_capacity(columns.len());
    for (i, name) in columns.iter().enumerate() {
        if name.trim().is_empty() {
            bail!("column {} of the header has no name; if it holds row numbers, leave it out of the file", i + 1);
        }
        if let Some(first) = places.insert(name, i) {
            bail!("the header names `{}` twice (columns {} and {})", cut(name), first + 1, i + 1);
        }
    }
    Ok(())
}
