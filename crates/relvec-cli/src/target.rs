//! The target of a fit: the cells of the target column as real values or as classes.

use std::collections::HashMap;

use anyhow::{Result, anyhow, bail};
use ndarray::{Array1, Array2};
use relvec::Label;

use crate::args::Task;
use crate::failure::Undecided;
use crate::table::{Cell, Marks, Table, is_date, quantity};
use crate::terminal;
use crate::text::{cut, is_code};

/// Most distinct values of a numeric target that may be classes, such as digits, grades or cultivars, and least rows of
/// each. More values are counts or measurements. With fewer rows a class could not be learned.
const MOST_CLASSES: usize = 20;
const LEAST_ROWS: usize = 3;
/// Distinct values shown in a message.
const VALUES_SHOWN: usize = 5;
/// Most bytes of the distinct texts of a target, which are all in memory: a thousand classes with names of 64 KiB.
const MOST_TEXT: usize = 1 << 26;

/// The target column.
pub(crate) struct Target {
    name: String,
    cells: Vec<TargetCell>,
    /// Distinct texts in order of appearance, their indices in this list, and their total bytes.
    texts: Vec<String>,
    index: HashMap<String, usize>,
    text_bytes: usize,
    /// Error for the first cell that is not a number.
    first_text: Option<anyhow::Error>,
    /// Decimal marks of the cells read so far, if commas can be decimal marks.
    marks: Marks,
    /// State of the cells that are not numbers: all are quantities in one unit or not, with the message about the first one.
    quantities: Quantities,
    /// Number of cells that are booleans.
    booleans: usize,
    /// Distinct numbers of the cells read so far.
    distinct: Distinct,
    /// True if an option implies that numbers are values and not names of classes.
    values: bool,
}

/// Kind of the cells that are not numbers.
#[derive(Debug, Default)]
enum Quantities {
    #[default]
    None,
    /// All are quantities, such as 5% or 12 kg, in this unit; `first` is the message on the first one.
    All { unit: String, first: String },
    /// Some are names.
    Names,
}

/// Distinct numbers with the rows of each, up to one number more than there can be classes.
#[derive(Debug, Default)]
struct Distinct {
    counts: Vec<(Key, usize)>,
    /// True if a number is not whole.
    fractions: bool,
}

impl Distinct {
    fn see(&mut self, key: Key, value: f64) {
        self.fractions |= value.fract() != 0.0;
        match self.counts.iter().position(|(known, _)| *known == key) {
            Some(place) => self.counts[place].1 += 1,
            None if self.counts.len() <= MOST_CLASSES => self.counts.push((key, 1)),
            None => {}
        }
    }

    /// True if the numbers are few enough, and each has enough rows, to be classes.
    fn may_be_classes(&self) -> bool {
        (3..=MOST_CLASSES).contains(&self.counts.len())
            && !self.fractions
            && self.counts.iter().all(|(_, rows)| *rows >= LEAST_ROWS)
    }

    /// Returns the numbers in ascending order, as text.
    fn shown(&self) -> String {
        let number = |key: &Key| match key {
            Key::Number(bits) => (f64::from_bits(*bits), f64::from_bits(*bits).to_string()),
            Key::Text(text) => (text.replace(',', ".").parse().unwrap_or(f64::NAN), text.clone()),
        };
        let mut numbers: Vec<(f64, String)> = self.counts.iter().map(|(key, _)| number(key)).collect();
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let shown: Vec<String> = numbers.iter().take(VALUES_SHOWN).map(|(_, text)| text.clone()).collect();
        if shown.len() < numbers.len() { format!("{}, ...", shown.join(", ")) } else { shown.join(", ") }
    }
}

#[derive(Debug, Clone, Copy)]
enum TargetCell {
    Number(f64),
    /// Index in `texts`.
    Text(usize),
    /// A number whose spelling distinguishes it from others of equal value, see [`is_code`]: index in `texts`.
    Code(usize),
    /// A number with a decimal comma, and its index in `texts`.
    Comma(f64, usize),
}

/// Prints the task that the target decides. For texts the reason is shown only with --verbose; two numbers may be
/// quantities, so their note is always shown.
pub(crate) fn tell_task(task: Task, target: &str, reason: &str) {
    let words = format!("task {}, since the target `{target}` {reason} (--task decides otherwise)", task.name());
    if reason == TWO_VALUES {
        say!("note: {words}");
    } else {
        terminal::explain(&words);
    }
}

/// Reason for treating numbers as classes.
const TWO_VALUES: &str = "has exactly two distinct values";

/// The target of a fit.
#[derive(Debug, PartialEq)]
pub(crate) enum Learned {
    /// Regression, `[N]`.
    Real(Array1<f64>),
    /// Classification: class numbers, `[N]`, and the names of the classes, sorted.
    Classes { labels: Vec<usize>, names: Vec<Label> },
}

impl Learned {
    /// Returns the task.
    pub fn task(&self) -> Task {
        match self {
            Learned::Real(_) => Task::Regress,
            Learned::Classes { .. } => Task::Classify,
        }
    }
}

impl Target {
    /// Creates an empty column. `values`: true if an option implies that numbers are values and not names of classes.
    pub fn new(name: &str, values: bool) -> Target {
        Target {
            name: name.to_string(),
            cells: Vec::new(),
            texts: Vec::new(),
            index: HashMap::new(),
            text_bytes: 0,
            first_text: None,
            marks: Marks::default(),
            quantities: Quantities::None,
            booleans: 0,
            distinct: Distinct::default(),
            values,
        }
    }

    /// Adds the cell of the current row.
    pub fn push(&mut self, table: &Table, column: usize) -> Result<()> {
        let cell = match table.cell(column) {
            Cell::Missing => {
                let problem = format!(
                    "{}: a row without its target cannot be used; --missing drop leaves it out",
                    table.missing_cell(column)
                );
                return Err(table.error(column, &problem));
            }
            Cell::Text(text) if self.is_empty() && is_date(text) && table.number(column).is_err() => {
                let problem =
                    format!("`{}` is a date or a time, which cannot be a target; convert it to numbers, such as days", cut(text));
                return Err(table.error(column, &problem));
            }
            Cell::Boolean(value) => {
                self.booleans += 1;
                if self.first_text.is_none() {
                    self.first_text = Some(table.error(column, "booleans are not numbers"));
                }
                self.quantities = Quantities::Names;
                TargetCell::Text(self.text(if value { "true" } else { "false" }))
            }
            Cell::Text(text) => match self.read(table, text) {
                Ok(value) => {
                    check_finite(table, column, value)?;
                    match text.parse::<f64>() {
                        Ok(_) if is_code(text, value) => self.code(text, value),
                        Ok(_) => self.number(value),
                        Err(_) => {
                            self.distinct.see(Key::Number((value + 0.0).to_bits()), value);
                            TargetCell::Comma(value + 0.0, self.text(text))
                        }
                    }
                }
                Err(problem) => {
                    self.note_quantity(text, table);
                    if self.first_text.is_none() {
                        let problem = problem.unwrap_or_else(|| format!("is not a number{}", table.hint(text)));
                        self.first_text = Some(table.error(column, &format!("`{}` {problem}", cut(text))));
                    }
                    TargetCell::Text(self.text(text))
                }
            },
            Cell::Integer(value) => match (value.to_string(), value as f64) {
                (text, value) if is_code(&text, value) => self.code(&text, value),
                (_, value) => self.number(value),
            },
            _ => {
                let value = table.number(column)?;
                self.number(value)
            }
        };
        self.cells.push(cell);
        if self.text_bytes > MOST_TEXT {
            bail!("the different texts of the target `{}` have more than {MOST_TEXT} bytes: too many for classes", self.name);
        }
        Ok(())
    }

    /// Returns the number in a text.
    ///
    /// # Errors
    /// The text is not a number. The error contains the reason if there is more to say.
    fn read(&mut self, table: &Table, text: &str) -> Result<f64, Option<String>> {
        match table.decimal() {
            Some(_) => table.with_decimal(text).ok_or(None),
            None if table.has_decimal_commas() => self.marks.read(text, table.row()).map_err(Some),
            None => text.parse().map_err(|_| None),
        }
    }

    fn number(&mut self, value: f64) -> TargetCell {
        // Adding 0.0 turns minus zero into zero.
        let value = value + 0.0;
        self.distinct.see(Key::Number(value.to_bits()), value);
        TargetCell::Number(value)
    }

    fn code(&mut self, text: &str, value: f64) -> TargetCell {
        self.distinct.see(Key::Text(text.to_string()), value);
        TargetCell::Code(self.text(text))
    }

    /// Records the kind of a cell that is not a number: a quantity in some unit, or a name.
    fn note_quantity(&mut self, text: &str, table: &Table) {
        if matches!(self.quantities, Quantities::Names) {
            return;
        }
        self.quantities = match (quantity(text), std::mem::take(&mut self.quantities)) {
            (Some(one), Quantities::None) => {
                let first = format!("{} (row {})", one.readings, table.row());
                Quantities::All { unit: one.unit, first }
            }
            (Some(one), Quantities::All { unit, first }) if one.unit == unit => Quantities::All { unit, first },
            _ => Quantities::Names,
        };
    }

    /// Returns the index of `text` in `texts`, and adds it if it is new.
    fn text(&mut self, text: &str) -> usize {
        if let Some(place) = self.index.get(text) {
            return *place;
        }
        let place = self.texts.len();
        self.texts.push(text.to_string());
        self.index.insert(text.to_string(), place);
        self.text_bytes += text.len();
        place
    }

    /// Returns the number of rows N.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Removes the cells, so that others can follow. Their information on the task is kept.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.texts.clear();
        self.index.clear();
        self.text_bytes = 0;
        self.booleans = 0;
    }

    /// Returns the bytes of the cells in memory.
    pub fn bytes(&self) -> u64 {
        (size_of::<TargetCell>() * self.cells.capacity() + 2 * self.text_bytes) as u64
    }

    /// Returns a note on the decimal marks of the numbers.
    pub fn note(&self) -> Option<String> {
        self.marks.has_comma().then(|| format!("decimal commas are read in {}", self.name))
    }

    /// True if a cell was not a number.
    pub fn has_text(&self) -> bool {
        self.first_text.is_some()
    }

    /// Returns the task that the cells decide, with the reason.
    ///
    /// # Errors
    /// The column contains numbers and texts, or quantities such as 5%: these may be classes or typing errors. Or it
    /// contains few distinct whole numbers, each in several rows: these may be classes or counts ([`Undecided`]).
    pub fn guess_task(&self) -> Result<(Task, &'static str)> {
        let numbers = &self.distinct.counts;
        match (&self.first_text, &self.quantities) {
            (Some(problem), _) if !numbers.is_empty() => Err(anyhow!("{problem}; for classes, use --task classify")),
            (Some(_), Quantities::All { first, .. }) => Err(anyhow!(
                "the target `{}`: {first}; write only numbers, without units; --decimal . or --decimal , reads grouped thousands; if the \
                 cells are names of classes, use --task classify",
                self.name
            )),
            (Some(_), _) => Ok((Task::Classify, "is not numeric")),
            (None, _) if self.marks.doubt().is_some() => Err(self.doubt()),
            (None, _) if numbers.len() == 2 => Ok((Task::Classify, TWO_VALUES)),
            (None, _) if self.distinct.may_be_classes() && !self.values => {
                let (name, values) = (&self.name, self.distinct.shown());
                Err(Undecided(format!(
                    "the target `{name}` has {} distinct whole values ({values}): they may be names of classes or numbers",
                    numbers.len()
                ))
                .into())
            }
            (None, _) => Ok((Task::Regress, "is numeric")),
        }
    }

    /// Returns the error for commas that can be decimal marks or thousands separators.
    fn doubt(&self) -> anyhow::Error {
        let doubt = self.marks.doubt().unwrap_or_default();
        anyhow!(
            "the target `{}`: {doubt}; say what the commas are (--decimal . or --decimal ,); if the cells are names of classes, say \
             --task classify",
            self.name
        )
    }

    /// Returns the requested task. Otherwise the target decides, and a note says so.
    ///
    /// # Errors
    /// The errors of [`Target::guess_task`].
    pub fn settle(&self, asked: Option<Task>) -> Result<Task> {
        if let Some(task) = asked {
            return Ok(task);
        }
        let (task, reason) = self.guess_task()?;
        tell_task(task, &self.name, reason);
        Ok(task)
    }

    /// Returns the target for a task.
    ///
    /// # Errors
    /// There is text in regression, or only one class.
    pub fn learn(mut self, task: Task) -> Result<Learned> {
        match (task, self.first_text.take()) {
            (Task::Regress, Some(problem)) => Err(anyhow!("{problem}; for classes, use --task classify")),
            (Task::Regress, None) if self.marks.doubt().is_some() => Err(self.doubt()),
            (Task::Regress, None) => Ok(Learned::Real(self.numbers().collect())),
            (Task::Classify, None) if !self.has_codes() && self.marks.doubt().is_none() => {
                let mut distinct: Vec<f64> = self.numbers().collect();
                distinct.sort_by(f64::total_cmp);
                distinct.dedup();
                let names: Vec<Label> = distinct.iter().copied().map(number).collect();
                self.check_classes(&names)?;
                let place = |v: f64| distinct.binary_search_by(|d| d.total_cmp(&v)).expect("each is listed");
                let labels = self.numbers().map(place).collect();
                Ok(Learned::Classes { labels, names })
            }
            (Task::Classify, _) => {
                let boolean = self.booleans == self.cells.len();
                let places = self.all_as_texts();
                let mut texts = self.texts.clone();
                texts.sort();
                let ranks: Vec<usize> =
                    self.texts.iter().map(|text| texts.binary_search(text).expect("each is listed")).collect();
                let labels = places.iter().map(|place| ranks[*place]).collect();
                let name = |text: String| if boolean { Label::Boolean(text == "true") } else { Label::Text(text) };
                let names: Vec<Label> = texts.into_iter().map(name).collect();
                self.check_classes(&names)?;
                Ok(Learned::Classes { labels, names })
            }
        }
    }

    /// Returns the cells that are numbers, with minus zero as zero.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().filter_map(|cell| match cell {
            TargetCell::Number(value) | TargetCell::Comma(value, _) => Some(*value),
            TargetCell::Code(place) => self.texts[*place].parse().ok(),
            TargetCell::Text(_) => None,
        })
    }

    /// True if classes of equal value differ by their spelling. Then all names are texts.
    fn has_codes(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell, TargetCell::Code(_)))
    }

    /// Returns the index of each cell in `texts`. Numbers become texts.
    fn all_as_texts(&mut self) -> Vec<usize> {
        let cells = std::mem::take(&mut self.cells);
        cells
            .into_iter()
            .map(|cell| match cell {
                TargetCell::Text(place) | TargetCell::Code(place) | TargetCell::Comma(_, place) => place,
                TargetCell::Number(v) => self.text(&v.to_string()),
            })
            .collect()
    }

    fn check_classes(&self, names: &[Label]) -> Result<()> {
        match names {
            [only] => bail!("the target `{}` has one class only (`{only}`); a classifier needs two", self.name),
            _ => Ok(()),
        }
    }
}

/// Collects the classes of a target that is read in blocks. Each distinct cell is kept and numbered in order of
/// appearance.
pub(crate) struct Classes {
    /// One cell of each distinct value.
    target: Target,
    places: HashMap<Key, usize>,
}

/// Value by which cells are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Text(String),
}

impl Classes {
    pub fn new(name: &str) -> Classes {
        Classes { target: Target::new(name, false), places: HashMap::new() }
    }

    /// Returns the name of the target.
    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// Returns the number of distinct cells so far.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the numbers of the cells of `block`, `[B]`.
    pub fn see(&mut self, block: &Target) -> Vec<usize> {
        self.target.marks = block.marks;
        // Booleans are classes only if all cells are booleans; otherwise their texts are.
        let booleans = block.booleans == block.len();
        let mut number = |cell: &TargetCell| {
            let key = match cell {
                TargetCell::Number(value) => Key::Number(value.to_bits()),
                TargetCell::Text(place) | TargetCell::Code(place) | TargetCell::Comma(_, place) => {
                    Key::Text(block.texts[*place].clone())
                }
            };
            let next = self.places.len();
            *self.places.entry(key).or_insert_with(|| {
                let own = &mut self.target;
                let cell = match cell {
                    TargetCell::Number(value) => TargetCell::Number(*value),
                    TargetCell::Text(place) => TargetCell::Text(own.text(&block.texts[*place])),
                    TargetCell::Code(place) => TargetCell::Code(own.text(&block.texts[*place])),
                    TargetCell::Comma(value, place) => TargetCell::Comma(*value, own.text(&block.texts[*place])),
                };
                own.cells.push(cell);
                own.booleans += usize::from(booleans);
                next
            })
        };
        block.cells.iter().map(&mut number).collect()
    }

    /// Returns the class of each number, and the sorted names of the classes.
    ///
    /// # Errors
    /// There is only one class.
    pub fn settle(mut self) -> Result<(Vec<usize>, Vec<Label>)> {
        if self.target.cells.iter().any(|cell| matches!(cell, TargetCell::Text(_))) {
            self.target.first_text = Some(anyhow!("text"));
        }
        match self.target.learn(Task::Classify)? {
            Learned::Classes { labels, names } => Ok((labels, names)),
            Learned::Real(_) => unreachable!("classes were asked for"),
        }
    }
}

/// Returns several numeric targets, [N, K].
///
/// # Errors
/// A target contains text.
pub(crate) fn outputs(targets: Vec<Target>) -> Result<Array2<f64>> {
    let rows = targets.first().map_or(0, Target::len);
    let mut values = Array2::zeros((rows, targets.len()));
    for (mut column, mut target) in values.columns_mut().into_iter().zip(targets) {
        if let Some(problem) = target.first_text.take() {
            return Err(anyhow!("{problem}; if there are several targets, all must be numeric"));
        }
        column.iter_mut().zip(target.numbers()).for_each(|(to, value)| *to = value);
    }
    Ok(values)
}

fn check_finite(table: &Table, column: usize, value: f64) -> Result<()> {
    match value.is_finite() {
        true => Ok(()),
        false => table.number(column).map(|_| ()),
    }
}

/// Returns the label of a class named by a number. It is a whole number if 64-bit floating point distinguishes it from
/// its neighbours.
fn number(value: f64) -> Label {
    if value.fract() == 0.0 && value.abs() < 9e15 { Label::Integer(value as i64) } else { Label::Number(value) }
}
