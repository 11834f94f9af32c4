//! What is to be learnt: the cells of the target column as real values or as classes.

use std::collections::HashMap;

use anyhow::{Result, anyhow, bail};
use ndarray::{Array1, Array2};
use relvec::Label;

use crate::args::Task;
use crate::table::{Cell, Table};
use crate::text::is_code;

/// The target column.
pub(crate) struct Target {
    name: String,
    cells: Vec<TargetCell>,
    /// The distinct texts, in order of appearance, and their places in this list.
    texts: Vec<String>,
    index: HashMap<String, usize>,
    /// What to say about the first cell that is no number.
    first_text: Option<anyhow::Error>,
    /// Cells that are booleans.
    booleans: usize,
    /// Up to three different numbers, those of cells gone by as well.
    distinct: Vec<f64>,
}

/// Different numbers that are told apart: one more than classes.
const DISTINCT: usize = 3;

#[derive(Debug, Clone, Copy)]
enum TargetCell {
    Number(f64),
    /// Place in `texts`.
    Text(usize),
    /// A number whose spelling tells it from others of the same value, see [`is_code`]: place in `texts`.
    Code(usize),
}

/// The target of a fit.
#[derive(Debug, PartialEq)]
pub(crate) enum Learnt {
    /// Regression, `[N]`.
    Real(Array1<f64>),
    /// Classification: class numbers, `[N]`, and the names of the classes, sorted.
    Classes { labels: Vec<usize>, names: Vec<Label> },
}

impl Learnt {
    /// What is learnt of it.
    pub fn task(&self) -> Task {
        match self {
            Learnt::Real(_) => Task::Regress,
            Learnt::Classes { .. } => Task::Classify,
        }
    }
}

impl Target {
    pub fn new(name: &str) -> Target {
        Target {
            name: name.to_string(),
            cells: Vec::new(),
            texts: Vec::new(),
            index: HashMap::new(),
            first_text: None,
            booleans: 0,
            distinct: Vec::new(),
        }
    }

    /// Takes the cell of the table's present row.
    pub fn push(&mut self, table: &Table, column: usize) -> Result<()> {
        let cell = match table.cell(column) {
            Cell::Missing => return Err(table.missing(column)),
            Cell::Text(text) if text.parse::<f64>().is_err() => {
                if self.first_text.is_none() {
                    self.first_text = table.number(column).err();
                }
                TargetCell::Text(self.text(text))
            }
            Cell::Boolean(value) => {
                self.booleans += 1;
                if self.first_text.is_none() {
                    self.first_text = Some(table.error(column, "booleans are not numbers"));
                }
                TargetCell::Text(self.text(if value { "true" } else { "false" }))
            }
            cell => {
                let value = table.number(column)? + 0.0;
                if self.distinct.len() < DISTINCT && !self.distinct.contains(&value) {
                    self.distinct.push(value);
                }
                match cell {
                    Cell::Text(text) if is_code(text, value) => TargetCell::Code(self.text(text)),
                    _ => TargetCell::Number(value),
                }
            }
        };
        self.cells.push(cell);
        Ok(())
    }

    /// The place of `text` in `texts`, where it is put if it is new.
    fn text(&mut self, text: &str) -> usize {
        *self.index.entry(text.to_string()).or_insert_with(|| {
            self.texts.push(text.to_string());
            self.texts.len() - 1
        })
    }

    /// N.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Forgets the cells, so that others can follow; what they say of the task is kept.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.texts.clear();
        self.index.clear();
        self.booleans = 0;
    }

    /// Whether a cell was no number.
    pub fn has_text(&self) -> bool {
        self.first_text.is_some()
    }

    /// The task if the arguments did not say it, and why.
    ///
    /// # Errors
    /// A column of numbers with a text in it: classes or a slip of the pen, who knows.
    pub fn guess_task(&self) -> Result<(Task, &'static str)> {
        let numbers = !self.distinct.is_empty();
        match &self.first_text {
            Some(problem) if numbers => Err(anyhow!("{problem}; for classes, say --task classify")),
            Some(_) => Ok((Task::Classify, "is not numeric")),
            None if self.distinct.len() == 2 => Ok((Task::Classify, "has exactly two distinct values")),
            None => Ok((Task::Regress, "is numeric")),
        }
    }

    /// The task that was asked for; else the target decides, and it is said.
    ///
    /// # Errors
    /// As [`Target::guess_task`].
    pub fn settle(&self, asked: Option<Task>) -> Result<Task> {
        if let Some(task) = asked {
            return Ok(task);
        }
        let (task, reason) = self.guess_task()?;
        say!("note: task {}, since the target `{}` {reason} (--task decides otherwise)", task.name(), self.name);
        Ok(task)
    }

    /// The target for that task.
    ///
    /// # Errors
    /// Text in regression; one class only.
    pub fn learn(mut self, task: Task) -> Result<Learnt> {
        match (task, self.first_text.take()) {
            (Task::Regress, Some(problem)) => Err(anyhow!("{problem}; for classes, say --task classify")),
            (Task::Regress, None) => Ok(Learnt::Real(self.numbers().collect())),
            (Task::Classify, None) if !self.has_codes() => {
                let mut distinct: Vec<f64> = self.numbers().collect();
                distinct.sort_by(f64::total_cmp);
                distinct.dedup();
                let names: Vec<Label> = distinct.iter().copied().map(number).collect();
                self.check_classes(&names)?;
                let place = |v: f64| distinct.binary_search_by(|d| d.total_cmp(&v)).expect("each is listed");
                let labels = self.numbers().map(place).collect();
                Ok(Learnt::Classes { labels, names })
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
                Ok(Learnt::Classes { labels, names })
            }
        }
    }

    /// The cells that are numbers, minus zero as zero.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().filter_map(|cell| match cell {
            TargetCell::Number(value) => Some(*value),
            TargetCell::Code(place) => self.texts[*place].parse().ok(),
            TargetCell::Text(_) => None,
        })
    }

    /// Whether a spelling tells classes apart that are the same number: then all are texts.
    fn has_codes(&self) -> bool {
        self.cells.iter().any(|cell| matches!(cell, TargetCell::Code(_)))
    }

    /// Places of the cells in `texts`; beside texts, a number is the text of it.
    fn all_as_texts(&mut self) -> Vec<usize> {
        let cells = std::mem::take(&mut self.cells);
        cells
            .into_iter()
            .map(|cell| match cell {
                TargetCell::Text(place) | TargetCell::Code(place) => place,
                TargetCell::Number(v) => self.text(&v.to_string()),
            })
            .collect()
    }

    fn check_classes(&self, names: &[Label]) -> Result<()> {
        match names {
            [only] => bail!("the target `{}` has one class only (`{only}`); there is nothing to tell apart", self.name),
            _ => Ok(()),
        }
    }
}

/// The classes of a target whose cells come and go: each of its different ones is kept, and numbered as it comes.
pub(crate) struct Classes {
    /// One cell of each.
    target: Target,
    places: HashMap<Key, usize>,
}

/// What tells a cell from others.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Text(String),
}

impl Classes {
    pub fn new(name: &str) -> Classes {
        Classes { target: Target::new(name), places: HashMap::new() }
    }

    /// Name of the target.
    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// Different cells so far.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The numbers of the cells of `block`, `[B]`.
    pub fn see(&mut self, block: &Target) -> Vec<usize> {
        // Booleans are so all over, or one text tells that they are not.
        let booleans = block.booleans == block.len();
        let mut number = |cell: &TargetCell| {
            let key = match cell {
                TargetCell::Number(value) => Key::Number(value.to_bits()),
                TargetCell::Text(place) | TargetCell::Code(place) => Key::Text(block.texts[*place].clone()),
            };
            let next = self.places.len();
            *self.places.entry(key).or_insert_with(|| {
                let own = &mut self.target;
                let cell = match cell {
                    TargetCell::Number(value) => TargetCell::Number(*value),
                    TargetCell::Text(place) => TargetCell::Text(own.text(&block.texts[*place])),
                    TargetCell::Code(place) => TargetCell::Code(own.text(&block.texts[*place])),
                };
                own.cells.push(cell);
                own.booleans += usize::from(booleans);
                next
            })
        };
        block.cells.iter().map(&mut number).collect()
    }

    /// The class of each number, and the names of the classes, sorted.
    ///
    /// # Errors
    /// One class only.
    pub fn settle(mut self) -> Result<(Vec<usize>, Vec<Label>)> {
        if self.target.cells.iter().any(|cell| matches!(cell, TargetCell::Text(_))) {
            self.target.first_text = Some(anyhow!("text"));
        }
        match self.target.learn(Task::Classify)? {
            Learnt::Classes { labels, names } => Ok((labels, names)),
            Learnt::Real(_) => unreachable!("classes were asked for"),
        }
    }
}

/// Several targets, each of numbers, [N, K].
///
/// # Errors
/// Text in one of them.
pub(crate) fn outputs(targets: Vec<Target>) -> Result<Array2<f64>> {
    let rows = targets.first().map_or(0, Target::len);
    let mut values = Array2::zeros((rows, targets.len()));
    for (mut column, mut target) in values.columns_mut().into_iter().zip(targets) {
        if let Some(problem) = target.first_text.take() {
            return Err(anyhow!("{problem}; of several targets each has to be numeric"));
        }
        column.iter_mut().zip(target.numbers()).for_each(|(to, value)| *to = value);
    }
    Ok(values)
}

/// A class named by a number: a whole one if 64-bit floating point tells it from its neighbours.
fn number(value: f64) -> Label {
    if value.fract() == 0.0 && value.abs() < 9e15 { Label::Integer(value as i64) } else { Label::Number(value) }
}
