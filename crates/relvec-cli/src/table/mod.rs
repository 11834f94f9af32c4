//! Tables in: one interface to the rows of a CSV, Parquet or .npy file, with errors that name the cell.

mod csv;
mod npy;
mod parquet;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::text::{count, list};

/// Names shown when a column is not found.
const NAMES_SHOWN: usize = 30;
/// Names shown of two lists.
const FEW_NAMES: usize = 10;
/// Rows looked at to tell a text column from a number column with one bad cell.
const ROWS_LOOKED_AT: usize = 50;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Empty (CSV), null (Parquet).
    Missing,
    Text(&'a str),
    Number(f64),
    Boolean(bool),
    /// A type that is neither number nor text, such as a date.
    Other(&'static str),
}

/// What a file format does: one row after the other.
trait Rows {
    /// Goes to the next row; `false` after the last one.
    fn advance(&mut self) -> Result<bool>;
    /// A cell of the present row.
    fn cell(&self, column: usize) -> Cell<'_>;
    /// Line of the present row in the file, where the format has lines.
    fn line(&self) -> Option<u64>;
    /// No cell of another column will be asked for. Called before the first row.
    fn only(&mut self, _columns: &[usize]) {}
    /// Rows of the file, where it says how many.
    fn count(&self) -> Option<usize> {
        None
    }
    /// Rows of the file, estimated.
    fn about(&self) -> Option<f64> {
        self.count().map(|n| n as f64)
    }
    /// The part of the file that has been read, where that is better known than by the rows.
    fn share(&self) -> Option<f64> {
        None
    }
}

/// An open table.
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Box<dyn Rows>,
    /// The columns have no names of their own, but are counted from 0.
    counted: bool,
    /// Rows read so far: the 1-based number of the present row.
    row: usize,
}

impl Table {
    /// Opens a file. Its first bytes, not its name, tell what it is.
    pub fn open(path: &Path) -> Result<Table> {
        Table::open_unnamed(path).with_context(|| format!("`{}`", path.display()))
    }

    fn open_unnamed(path: &Path) -> Result<Table> {
        if path.is_dir() {
            bail!("this is a folder, not a table");
        }
        let mut file = File::open(path).context("cannot open the table")?;
        let mut magic = Vec::new();
        file.by_ref().take(npy::MAGIC.len() as u64).read_to_end(&mut magic).context("cannot read the table")?;
        // A pipe cannot go back; there, what was read is put in front again.
        let rewound = file.seek(SeekFrom::Start(0)).is_ok();
        let size = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        let counted = magic == npy::MAGIC;
        let (columns, rows): (_, Box<dyn Rows>) = if counted && !rewound {
            bail!("an .npy file cannot be read from a pipe; save it first");
        } else if counted {
            let (columns, rows) = npy::open(file)?;
            (columns, Box::new(rows))
        } else if magic.starts_with(b"PAR1") {
            let (columns, rows) = parquet::open(file)?;
            (columns, Box::new(rows))
        } else {
            let before = if rewound { Vec::new() } else { magic.clone() };
            let (columns, rows) = csv::open(std::io::Cursor::new(before).chain(file), magic.starts_with(&[0x1f, 0x8b]), size)?;
            (columns, Box::new(rows))
        };
        check_header(&columns)?;
        Ok(Table { columns, rows, counted, row: 0 })
    }

    /// The names in the header.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether the columns have no names of their own.
    pub fn is_counted(&self) -> bool {
        self.counted
    }

    /// Rows of the file, as it says.
    pub fn count(&self) -> Option<usize> {
        self.rows.count()
    }

    /// Rows of the file, as it says or estimated; nobody knows of a pipe.
    pub fn about(&self) -> Option<f64> {
        self.rows.about()
    }

    /// Rows read so far.
    pub fn row(&self) -> usize {
        self.row
    }

    /// The part of the file that has been read.
    pub fn share(&self) -> Option<f64> {
        self.rows.share().or_else(|| Some(self.row as f64 / self.rows.count()?.max(1) as f64))
    }

    /// Promises to ask for cells of these columns only; before the first row.
    pub fn only(&mut self, columns: &[usize]) {
        self.rows.only(columns);
    }

    /// The position of the column `name`; `role` says in the error what it was wanted for. Where columns
    /// are counted, -1 is the last.
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

    /// Goes to the next row; `false` after the last one.
    pub fn advance(&mut self) -> Result<bool> {
        let more = self.rows.advance()?;
        self.row += usize::from(more);
        Ok(more)
    }

    /// A cell of the present row, spaces around text removed.
    pub fn cell(&self, column: usize) -> Cell<'_> {
        match self.rows.cell(column) {
            Cell::Text(text) if text.trim().is_empty() => Cell::Missing,
            Cell::Text(text) => Cell::Text(text.trim()),
            cell => cell,
        }
    }

    /// A cell of the present row as a finite number.
    pub fn number(&self, column: usize) -> Result<f64> {
        let value = match self.cell(column) {
            Cell::Number(value) => value,
            Cell::Boolean(value) => f64::from(u8::from(value)),
            Cell::Text(text) => match text.parse() {
                Ok(value) => value,
                Err(_) => return Err(self.error(column, &format!("`{text}` is not a number{}", hint(text)))),
            },
            Cell::Missing => return Err(self.missing(column)),
            Cell::Other(what) => return Err(self.error(column, &format!("{what} are not numbers"))),
        };
        if !value.is_finite() {
            return Err(self.error(column, &format!("{value} is not allowed; every value must be a finite number")));
        }
        Ok(value)
    }

    /// The error for an empty cell of the present row.
    pub fn missing(&self, column: usize) -> anyhow::Error {
        self.error(column, "the cell is empty; fill in missing values or leave such rows out")
    }

    /// An error at a cell of the present row.
    pub fn error(&self, column: usize, problem: &str) -> anyhow::Error {
        let line = self.rows.line().map_or(String::new(), |l| format!(" (line {l})"));
        anyhow!("row {}{line}, column `{}`: {problem}", self.row, self.columns[column])
    }

    /// Explains why the present row has text among `features`: names columns that are text all over.
    ///
    /// `error` is returned where it is only a bad cell. Reads on, so the table is of no use afterwards.
    pub fn explain_text(&mut self, features: &[usize], error: anyhow::Error) -> anyhow::Error {
        let is_text = |table: &Table, column: usize| match table.cell(column) {
            Cell::Text(text) => text.parse::<f64>().is_err(),
            Cell::Other(_) => true,
            _ => false,
        };
        if self.row != 1 {
            return error;
        }
        let mut text: Vec<usize> = features.iter().copied().filter(|c| is_text(self, *c)).collect();
        while self.row < ROWS_LOOKED_AT && matches!(self.advance(), Ok(true)) {
            text.retain(|c| is_text(self, *c) || self.cell(*c) == Cell::Missing);
        }
        let names: Vec<&str> = text.iter().map(|c| self.columns[*c].as_str()).collect();
        match names.as_slice() {
            [] => error,
            [name] => anyhow!(
                "column `{name}` holds text, and features must be numbers: leave it out with --drop {name}, or code it as numbers"
            ),
            names => anyhow!(
                "columns {} hold text, and features must be numbers: leave them out with --drop {}, or code them as numbers",
                list(names, NAMES_SHOWN),
                names.join(",")
            ),
        }
    }
}

/// The columns of `table` that hold `features`, in their order. Where columns are counted and there are as
/// many as features, by position.
///
/// # Errors
/// Features that are not there; `whose` says in the error whose they are.
pub(crate) fn positions(table: &Table, features: &[String], whose: &str) -> Result<Vec<usize>> {
    if table.counted && table.columns.len() == features.len() {
        return Ok((0..features.len()).collect());
    }
    let position = |name: &String| table.columns.iter().position(|c| c == name);
    let missing: Vec<&String> = features.iter().filter(|name| position(name).is_none()).collect();
    if !missing.is_empty() {
        bail!(
            "{} of {whose} {} missing: {}; the columns are: {}",
            count(missing.len(), "feature"),
            if missing.len() == 1 { "is" } else { "are" },
            list(&missing, FEW_NAMES),
            list(&table.columns, FEW_NAMES)
        );
    }
    Ok(features.iter().filter_map(position).collect())
}

/// A word on cells that are nearly numbers.
fn hint(text: &str) -> &'static str {
    let missing = ["na", "n/a", "null", "none", "?", "-", "."];
    if missing.contains(&text.to_lowercase().as_str()) {
        "; fill in missing values or leave such rows out"
    } else if text.replace(',', ".").parse::<f64>().is_ok() {
        " (a decimal point is expected, not a comma)"
    } else {
        ""
    }
}

fn check_header(columns: &[String]) -> Result<()> {
    for (i, name) in columns.iter().enumerate() {
        if name.trim().is_empty() {
            bail!("column {} of the header has no name; if it holds row numbers, leave it out of the file", i + 1);
        }
        if let Some(first) = columns[..i].iter().position(|c| c == name) {
            bail!("the header names `{name}` twice (columns {} and {})", first + 1, i + 1);
        }
    }
    Ok(())
}
