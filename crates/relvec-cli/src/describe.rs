//! `relvec describe`: shows the columns of a table, what stops a fit, and the command to type.
//!
//! Each column is read alone by the rules of a fit, so that the first problem of one column does not hide those of
//! others.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use anyhow::{Context, Result};
use relvec::Missing;
use serde::Serialize;

use crate::args::{DescribeArgs, ReadArgs, Task};
use crate::encoding::Columns;
use crate::failure::{Undecided, quoted};
use crate::layout::{self, Column as Heading};
use crate::live::Live;
use crate::output;
use crate::table::{Cell, Table};
use crate::target::Target;
use crate::terminal::{self, Stream};
use crate::text::{count, cut, is_code, significant, thousands};

/// Significant digits of a range, and most categories shown.
const DIGITS: usize = 5;
const CATEGORIES_SHOWN: usize = 4;
/// Widths in characters of two columns of the printed table. Longer texts are cut.
const WIDEST_NAME: usize = 24;
const WIDEST_VALUES: usize = 34;

/// Least rows for which consecutive whole numbers are reported as row numbers. In fewer rows they may be values.
const LEAST_COUNTED: usize = 10;

/// The description of a table, with JSON keys in the order of the fields.
#[derive(Serialize)]
struct Description {
    table: String,
    /// The format of the file, with the separator of its cells.
    format: String,
    rows: usize,
    columns: Vec<Described>,
    /// The column to predict; `guessed` is true if it is the last column because none was named.
    target: String,
    #[serde(skip)]
    guessed: bool,
    /// Possible tasks: regress, classify, or both if only the user can decide.
    tasks: Vec<&'static str>,
    /// Notes on how the file was read.
    notes: Vec<String>,
    /// The command to type.
    command: String,
}

#[derive(Serialize)]
struct Described {
    name: String,
    /// One of numbers, categories, empty and unusable. A fit stops at an unusable column.
    kind: &'static str,
    missing: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    /// Remarks on what stops a fit or looks wrong, with advice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// True if the suggested command leaves the column out.
    dropped: bool,
}

/// State of a column while the table is read.
struct Look {
    place: usize,
    /// The column as a fit reads it, and the error that ended this reading.
    columns: Option<Columns>,
    problem: Option<String>,
    missing: usize,
    /// Range and last value of its numbers; `counts_up` is true if each number is whole and one more than the number
    /// before.
    range: Option<(f64, f64)>,
    last: Option<f64>,
    counts_up: bool,
    /// Hash of the first value, true if all values so far are equal, and a hash of all values that identifies copies.
    first: Option<u64>,
    constant: bool,
    mark: DefaultHasher,
    /// A number with leading zeros, if there is one.
    code: Option<String>,
}

pub(crate) fn run(args: &DescribeArgs) -> Result<()> {
    let live = Live::new("reading the table");
    let description = best(args)?;
    drop(live);
    match args.json {
        true => output::print(&(serde_json::to_string_pretty(&description)? + "\n")),
        false => output::print(&description.to_text()),
    }
}

/// Describes the table. If no decimal mark is given and exactly one of the two marks turns further columns into
/// numbers, the description uses this mark.
fn best(args: &DescribeArgs) -> Result<Description> {
    let plain = describe(args, &args.reading)?;
    let bad = |one: &Description| one.columns.iter().filter(|column| column.kind == "unusable").count();
    if args.reading.decimal.is_some() || bad(&plain) == 0 || !args.data.is_file() {
        return Ok(plain);
    }
    let mut others = vec![];
    for mark in ['.', ','] {
        let reading = ReadArgs { decimal: Some(mark), ..args.reading.clone() };
        others.push(describe(args, &reading)?);
    }
    others.sort_by_key(bad);
    let better = bad(&others[0]) < bad(&plain) && bad(&others[0]) < bad(&others[1]);
    Ok(if better { others.remove(0) } else { plain })
}

fn describe(args: &DescribeArgs, reading: &ReadArgs) -> Result<Description> {
    let name = || format!("`{}`", args.data.display());
    let mut table = Table::open(&args.data, reading)?;
    let last = table.columns().len() - 1;
    let target = args.target.as_deref().map_or(Ok(last), |name| table.find(name, "the target")).with_context(name)?;
    for category in &args.categories {
        table.find(category, "--categories").with_context(name)?;
    }
    let mut looks = (0..=last).map(|place| Look::new(&table, place, &args.categories)).collect::<Result<Vec<_>>>()?;
    let (mut learned, mut refused) = (Target::new(&table.columns()[target], false), None);
    let mut rows = 0;
    // An error about ambiguous commas at the end of the table belongs to a column.
    let doubt = loop {
        match table.advance() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(e) if table.is_at_end() => break Some(format!("{e:#}")),
            Err(e) => return Err(e).with_context(name),
        }
        rows += 1;
        looks.iter_mut().for_each(|look| look.see(&table));
        if refused.is_none() && table.cell(target) != Cell::Missing {
            refused = learned.push(&table, target).err().map(|e| format!("{e:#}"));
        }
    };
    let tasks = match learned.guess_task() {
        Ok((task, _)) => vec![task.name()],
        Err(e) if e.is::<Undecided>() => vec![Task::Classify.name(), Task::Regress.name()],
        Err(e) => {
            refused = refused.or(Some(format!("{e:#}")));
            vec![]
        }
    };
    let mut copies: HashMap<u64, usize> = HashMap::new();
    let mut columns = vec![];
    for look in looks {
        let (place, mark) = (look.place, look.mark.finish());
        let copy = *copies.entry(mark).or_insert(place);
        let of = (copy != place).then(|| table.columns()[copy].clone());
        columns.push(look.finish(&table.columns()[place], rows, of, place == target));
    }
    if let Some(problem) = refused {
        columns[target].remarks.insert(0, problem);
    }
    if let Some(doubt) = doubt
        && let Some(column) = columns.iter_mut().find(|column| doubt.contains(&format!("column `{}`", column.name)))
    {
        column.kind = "unusable";
        column.remarks.insert(0, doubt);
    }
    let mut description = Description {
        table: args.data.display().to_string(),
        format: table.format(),
        rows,
        columns,
        target: table.columns()[target].clone(),
        guessed: args.target.is_none(),
        tasks,
        notes: table.notes(),
        command: String::new(),
    };
    description.command = description.to_command(args, reading);
    Ok(description)
}

impl Look {
    fn new(table: &Table, place: usize, named: &[String]) -> Result<Look> {
        let named: Vec<String> = named.iter().filter(|name| **name == table.columns()[place]).cloned().collect();
        Ok(Look {
            place,
            columns: Some(Columns::new(table, &[place], &named, Some(Missing::Mean))?),
            problem: None,
            missing: 0,
            range: None,
            last: None,
            counts_up: true,
            first: None,
            constant: true,
            mark: DefaultHasher::new(),
            code: None,
        })
    }

    /// Adds the cell of the current row.
    fn see(&mut self, table: &Table) {
        let cell = table.cell(self.place);
        let mut own = DefaultHasher::new();
        match cell {
            Cell::Missing => self.missing += 1,
            Cell::Text(text) => match text.parse::<f64>() {
                // Numbers are hashed by value, so that the spelling has no effect.
                Ok(value) => value.to_bits().hash(&mut own),
                Err(_) => text.hash(&mut own),
            },
            Cell::Number(value) => value.to_bits().hash(&mut own),
            Cell::Integer(value) => value.hash(&mut own),
            Cell::Boolean(value) => value.hash(&mut own),
            Cell::Other(what) => what.hash(&mut own),
        }
        let value = own.finish();
        (value, cell == Cell::Missing).hash(&mut self.mark);
        if cell != Cell::Missing {
            self.constant &= *self.first.get_or_insert(value) == value;
        }
        let Some(columns) = &mut self.columns else { return };
        let mut row = vec![];
        match columns.row(table, &mut row) {
            Ok(_) => columns.weigh(&row, 1.0),
            Err(e) => {
                self.problem = Some(format!("{e:#}"));
                self.columns = None;
                return;
            }
        }
        let number = row[0];
        if number.is_nan() {
            self.counts_up = false;
            return;
        }
        let (low, high) = self.range.unwrap_or((number, number));
        self.range = Some((low.min(number), high.max(number)));
        self.counts_up &= self.last.is_none_or(|last| number == last + 1.0) && number.fract() == 0.0;
        self.last = Some(number);
        if let Cell::Text(text) = cell
            && is_code(text, number)
            && self.code.is_none()
        {
            self.code = Some(text.to_string());
        }
    }

    /// Returns the description of the column `name`. `copy`: the column with the same values, if there is one.
    fn finish(self, name: &str, rows: usize, copy: Option<String>, target: bool) -> Described {
        let (mut remarks, mut kind, mut categories) = (vec![], "numbers", vec![]);
        let mut usable = true;
        let settled = self.columns.filter(|_| self.first.is_some()).map(Columns::settle);
        match (settled, self.problem) {
            (Some(Ok(settled)), _) => {
                let column = settled.encoding.into_iter().flat_map(|encoding| encoding.columns).next();
                categories = column.map_or(vec![], |column| column.categories);
                if !categories.is_empty() {
                    kind = "categories";
                }
            }
            (Some(Err(e)), _) => (kind, usable, _) = ("unusable", false, remarks.push(format!("{e:#}"))),
            (None, Some(problem)) => (kind, usable, _) = ("unusable", false, remarks.push(problem)),
            (None, None) => (kind, usable, _) = ("empty", false, remarks.push("has no value".to_string())),
        }
        let numbers = kind == "numbers";
        if usable && self.constant && rows > 1 {
            usable = self.missing > 0;
            remarks.push(format!("has one value{}", if usable { " and missing cells" } else { " in all rows, and no effect" }));
        } else if numbers && self.counts_up && rows >= LEAST_COUNTED {
            usable = false;
            remarks.push("counts the rows, which does not help to predict new rows".to_string());
        } else if let Some(other) = copy {
            usable = false;
            remarks.push(format!("is a copy of `{}`", cut(&other)));
        }
        if let Some(code) = self.code.filter(|_| numbers) {
            let text =
                format!("holds codes such as {code}, read as numbers; --categories {} reads them as names", quoted(&cut(name)));
            remarks.push(text);
        }
        let alike: BTreeSet<String> = categories.iter().map(|text| text.to_lowercase()).collect();
        if alike.len() < categories.len() {
            remarks.push("has categories that differ by the case of their letters only; give each one spelling".to_string());
        }
        if self.missing > rows / 2 && kind != "empty" {
            remarks.push("has no value in more than half of its cells".to_string());
        }
        let range = self.range.filter(|_| numbers);
        Described {
            name: name.to_string(),
            kind,
            missing: self.missing,
            minimum: range.map(|(low, _)| low),
            maximum: range.map(|(_, high)| high),
            categories,
            remarks,
            dropped: !usable && !target,
        }
    }
}

impl Described {
    /// Returns the remark with the name of the column in front, unless the remark contains it.
    fn sentence(&self, remark: &str) -> String {
        let name = cut(&self.name);
        let named = remark.contains(&format!("column `{name}`")) || remark.contains(&format!("target `{name}`"));
        if named { remark.to_string() } else { format!("`{name}` {remark}") }
    }

    fn values(&self) -> String {
        match (self.minimum, self.maximum, self.categories.as_slice()) {
            (Some(low), Some(high), _) if low == high => significant(low, DIGITS),
            (Some(low), Some(high), _) => format!("{} to {}", significant(low, DIGITS), significant(high, DIGITS)),
            (.., []) => String::new(),
            (.., all) => {
                let names: Vec<&str> = all.iter().take(CATEGORIES_SHOWN).map(String::as_str).collect();
                let more = if all.len() > names.len() { ", ..." } else { "" };
                format!("{}: {}{more}", all.len(), names.join(", "))
            }
        }
    }
}

impl Description {
    /// Returns the command to type.
    fn to_command(&self, args: &DescribeArgs, reading: &ReadArgs) -> String {
        let mut words = vec!["relvec".to_string(), "fit".into(), quoted(&self.table), "--target".into(), quoted(&self.target)];
        let mut option = |name: &str, values: &[String]| {
            if !values.is_empty() {
                words.extend([name.to_string(), quoted(&values.join(","))]);
            }
        };
        if self.tasks.len() > 1 {
            option("--task", &[Task::Regress.name().to_string()]);
        }
        let dropped: Vec<String> =
            self.columns.iter().filter(|column| column.dropped).map(|column| column.name.clone()).collect();
        option("--drop", &dropped);
        option("--categories", &args.categories.iter().filter(|name| !dropped.contains(name)).cloned().collect::<Vec<_>>());
        let features = self.columns.iter().filter(|column| !column.dropped);
        let (mut missing, mut of_target) = (false, false);
        for column in features.filter(|column| column.missing > 0) {
            *(if column.name == self.target { &mut of_target } else { &mut missing }) = true;
        }
        // A row without its target cannot be used, and a fit has one rule for all rows with missing cells.
        let rule = if of_target { Some(Missing::Drop) } else { missing.then_some(Missing::Mean) };
        option("--missing", &rule.map(|rule| rule.name().to_string()).into_iter().collect::<Vec<_>>());
        let character = |byte: &u8| match byte {
            b'\t' => "tab".to_string(),
            b' ' => "space".into(),
            other => char::from(*other).to_string(),
        };
        option("--sep", &reading.sep.iter().map(character).collect::<Vec<_>>());
        option("--comment", &reading.comment.iter().map(character).collect::<Vec<_>>());
        option("--decimal", &reading.decimal.iter().map(char::to_string).collect::<Vec<_>>());
        option("--na", &reading.na.clone().unwrap_or_default());
        let stem = args.data.file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
        let stem = stem.strip_suffix(".csv").unwrap_or(&stem);
        words.extend(["-o".to_string(), quoted(&format!("{stem}.json"))]);
        words.join(" ")
    }

    fn to_text(&self) -> String {
        let plural = if self.rows == 1 { "" } else { "s" };
        let columns = count(self.columns.len(), "column");
        let headline = format!("{}: {} row{plural}, {columns}; {}", self.table, thousands(self.rows), self.format);
        let headings =
            [Heading::text("column"), Heading::text("kind"), Heading::number("missing", 0), Heading::text("values").ranked(1)];
        let row = |column: &Described| {
            let mark = if column.name == self.target { " (target)" } else { "" };
            vec![
                short(&column.name, WIDEST_NAME - mark.len()) + mark,
                column.kind.to_string(),
                if column.missing > 0 { thousands(column.missing) } else { String::new() },
                short(&column.values(), WIDEST_VALUES),
            ]
        };
        let cells: Vec<Vec<String>> = self.columns.iter().map(row).collect();
        let width = terminal::table_width(Stream::Stdout);
        let (table, _) = layout::table(&headings, &cells, width);
        let of_columns = self.columns.iter().flat_map(|column| column.remarks.iter().map(|remark| column.sentence(remark)));
        let items: String = (self.notes.iter().cloned().chain(of_columns))
            .map(|item| terminal::wrap(&format!("- {}", terminal::escaped(&item)), width, 2) + "\n")
            .collect();
        let items = if items.is_empty() { items } else { format!("\n{items}") };
        let name = terminal::name(&self.target);
        let guessed = if self.guessed { " (the last column; --target names another)" } else { "" };
        let undecided = match self.tasks.len() > 1 {
            true => " It may hold numbers or names of classes; for classes use --task classify.".to_string(),
            false => String::new(),
        };
        let learn = terminal::wrap(&format!("To learn `{name}`{guessed}, type the line below.{undecided}"), width, 0);
        let headline = terminal::headline(&headline, Stream::Stdout);
        format!("{headline}\n{table}{items}\n{learn}\n  {}\n", terminal::name(&self.command))
    }
}

/// Returns the text, cut to `most` characters.
fn short(text: &str, most: usize) -> String {
    let text = terminal::name(text);
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(3)).collect::<String>() + "...",
        None => text.into_owned(),
    }
}
