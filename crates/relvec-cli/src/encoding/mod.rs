//! Feature columns of a table. The table of a fit determines how each column is encoded; tables of predictions follow.
//!
//! The first value of a column decides whether it holds numbers or categories, and every other value must agree. The
//! kind is not guessed from the majority.

mod columns;
mod encoder;

use anyhow::{Error, Result, anyhow};
use relvec::{EncodedColumn, Encoding};

pub(crate) use self::columns::Columns;
pub(crate) use self::encoder::Encoder;
use crate::failure::quoted;
use crate::table::{Cell, Table, is_date, quantity};
use crate::text::{cut, list, share};

/// Most bytes of a category. Longer texts are sentences rather than names.
const LONGEST: usize = 1000;
/// Most names of a list that are shown.
const NAMES_SHOWN: usize = 10;
/// Most categories of a column that are shown.
const CATEGORIES_SHOWN: usize = 6;

/// Returns the columns that hold categories as text, or `None` if no column does.
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

/// Kinds of texts.
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

/// Returns the kind of a text. Only the decimal point is accepted as decimal mark.
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

/// Returns the text of a category. `first`: the first text of the column with its row, if there is one.
fn category(table: &Table, place: usize, cell: Cell, named: bool, first: &Option<(String, usize)>) -> Result<String> {
    let text = match cell {
        Cell::Text(text) => text.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Missing => return Err(table.missing(place)),
        Cell::Other(what) => return Err(table.error(place, &format!("{what} cannot be categories"))),
    };
    let name = quoted(&cut(&table.columns()[place]));
    if let Some((other, row)) = first
        && !named
        && table.number(place).is_ok()
        && !matches!(cell, Cell::Boolean(_))
    {
        let problem = format!(
            "`{}` is a number, and `{}` (row {row}) is not. --categories {name} reads the column as names; if it holds numbers, \
             correct the text, or use --na {} if it means a missing value",
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

/// Returns the error for the missing cell of the current row in column `place`. It counts the missing cells of the
/// columns `places` below, and reads the table to its end for that. `advice` says what to do.
pub(crate) fn missing(table: &mut Table, place: usize, places: &[usize], advice: &str) -> Error {
    let cell = table.missing_cell(place);
    let first = table.error(place, &cell);
    let mut counts = vec![0; places.len()];
    let mut rows = 0;
    loop {
        let before = counts.iter().sum::<usize>();
        places.iter().zip(&mut counts).for_each(|(place, count)| *count += usize::from(table.cell(*place) == Cell::Missing));
        rows += usize::from(counts.iter().sum::<usize>() > before);
        // An error further below ends the count; it is not reported here.
        if !matches!(table.advance(), Ok(true)) {
            break;
        }
    }
    let each = places.iter().zip(counts).filter(|(_, count)| *count > 0);
    let each: Vec<String> = each.map(|(place, count)| format!("{} {count}", cut(&table.columns()[*place]))).collect();
    anyhow!("{first}. Missing cells in {}: {}. {advice}", share(rows, table.row(), "row"), list(&each, NAMES_SHOWN))
}
