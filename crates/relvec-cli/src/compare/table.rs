//! The table of means over the folds, as text, CSV and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Choice;
use super::grid::{Grid, Point};
use super::machines::{Fitted, MOST_VARIATIONAL, Row};
use crate::args::Task;
use crate::layout;
use crate::terminal::{self, Stream};
use crate::text::{count, significant};

/// Significant digits of numbers without a standard error, and of standard errors.
const DIGITS: usize = 4;
const ERROR_DIGITS: usize = 2;
/// Most decimals of a number with a standard error. Smaller errors are written with powers of ten, which are shorter to
/// read.
const MOST_DECIMALS: f64 = 5.0;

/// A column of numbers: its key in CSV and JSON, and its title and factor in the text table.
struct Column {
    key: &'static str,
    title: &'static str,
    times: f64,
    /// True if the standard error is shown.
    error: bool,
    /// On a narrow screen the columns of the highest rank are dropped first. Columns of rank 0 are always shown.
    rank: usize,
}

const fn column(key: &'static str, title: &'static str, times: f64, error: bool, rank: usize) -> Column {
    Column { key, title, times, error, rank }
}

const OF_VALUES: [Column; 4] = [
    column("rmse", "RMSE", 1.0, true, 0),
    column("mae", "MAE", 1.0, true, 4),
    column("negative_log_density", "NLPD, nats", 1.0, true, 0),
    column("coverage_95", "in 95 % int., %", 100.0, true, 2),
];
const OF_CLASSES: [Column; 4] = [
    column("error_rate", "error, %", 100.0, true, 0),
    column("log_loss", "log loss, nats", 1.0, true, 0),
    column("brier", "Brier", 1.0, true, 4),
    column("calibration_error", "ECE, %", 100.0, true, 2),
];
const OF_ALL: [Column; 4] = [
    column("kernels", "vectors", 1.0, false, 0),
    column("choice_seconds", "choice, s", 1.0, false, 3),
    column("fit_seconds", "fit, s", 1.0, false, 1),
    column("predict_seconds_per_row", "predict, us/row", 1e6, false, 5),
];
/// Two models differ if their mean difference is more than this number of its standard errors from 0.
const DIFFERENT: f64 = 2.0;

/// One model on all folds.
pub(super) struct Line {
    pub row: Row,
    /// For each fold, the measures in the order of the columns.
    folds: Vec<Vec<Option<f64>>>,
    chosen: Vec<Point>,
    not_converged: usize,
}

/// The settings and the results of a comparison.
pub(super) struct Comparison<'a> {
    pub data: String,
    pub target: String,
    pub task: Task,
    pub rows: usize,
    pub features: usize,
    pub kernel: &'a str,
    pub cv: usize,
    pub inner_cv: usize,
    pub seed: u64,
    pub standardized: bool,
    pub grid: Grid,
    pub lines: Vec<Line>,
}

/// The JSON object, with its keys in the order of the fields.
#[derive(Serialize)]
struct Json<'a> {
    data: &'a str,
    target: &'a str,
    task: &'static str,
    rows: usize,
    features: usize,
    kernel: &'a str,
    cv: usize,
    inner_cv: usize,
    seed: u64,
    standardized: bool,
    grid: &'a Grid,
    machines: Vec<JsonLine<'a>>,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    machine: &'static str,
    /// Number of folds whose fit did not converge.
    not_converged: usize,
    /// Chosen settings of each fold, in the units of the grid.
    chosen: &'a [Point],
    /// Measures by key; `null` if the model does not have the measure.
    measures: BTreeMap<&'static str, Option<Measure>>,
}

/// Mean and standard error over the folds.
#[derive(Serialize)]
struct Measure {
    mean: f64,
    standard_error: f64,
    folds: Vec<f64>,
}

impl Line {
    pub fn new(row: Row) -> Line {
        Line { row, folds: vec![], chosen: vec![], not_converged: 0 }
    }

    /// Adds the results of a fold. `measures` are in the order of the task's columns.
    pub fn add(&mut self, choice: Choice, mut measures: Vec<Option<f64>>, fitted: &Fitted, predicting: f64) {
        measures.extend([fitted.kernels() as f64, choice.seconds, fitted.seconds, predicting].map(Some));
        self.folds.push(measures);
        self.chosen.push(choice.point);
        self.not_converged += usize::from(!fitted.converged);
    }

    /// Returns mean and standard error of a column, or `None` if the model does not have the measure.
    fn measure(&self, column: usize) -> Option<Measure> {
        let folds: Vec<f64> = self.folds.iter().map(|fold| fold[column]).collect::<Option<_>>()?;
        let n = folds.len() as f64;
        let mean = folds.iter().sum::<f64>() / n;
        let variance = folds.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Measure { mean, standard_error: (variance / n).sqrt(), folds })
    }
}

impl Comparison<'_> {
    fn columns(&self) -> impl Iterator<Item = &'static Column> {
        let own = if self.task == Task::Regress { &OF_VALUES } else { &OF_CLASSES };
        own.iter().chain(&OF_ALL)
    }

    /// Returns the title, the table, the conclusion and the notes as text.
    pub fn to_text(&self) -> String {
        let mut columns = vec![layout::Column::text("model")];
        columns.extend(self.columns().map(|own| layout::Column::number(own.title, own.rank)));
        let cell = |line: &Line, place: usize, column: &Column| {
            let Some(measure) = line.measure(place) else { return "-".to_string() };
            let (mean, error) = (measure.mean * column.times, measure.standard_error * column.times);
            if column.error {
                with_error(mean, error).replace(" ± ", terminal::plus_minus())
            } else {
                significant(mean, ERROR_DIGITS)
            }
        };
        let row = |line: &Line| -> Vec<String> {
            let cells = self.columns().enumerate().map(|(place, column)| cell(line, place, column));
            [line.row.name().to_string()].into_iter().chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = self.lines.iter().map(row).collect();
        let (table, dropped) = layout::table(&columns, &rows, terminal::table_width(Stream::Stdout));
        let notes: String = self.notes(&dropped).lines().map(|line| terminal::paragraph(line, Stream::Stdout) + "\n").collect();
        format!("{}\n{table}\n{}\n{notes}", terminal::headline(&self.title(), Stream::Stdout), self.conclusion())
    }

    /// Returns the line above the table.
    fn title(&self) -> String {
        let (rows, features) = (count(self.rows, "row"), count(self.features, "feature"));
        format!("{}-fold cross-validation: `{}` in {}, {rows}, {features}", self.cv, self.target, self.data)
    }

    /// Returns a sentence that says whether the best model differs from the others, by paired differences over the
    /// folds.
    fn conclusion(&self) -> String {
        let what = if self.task == Task::Regress { "RMSE" } else { "error rate" };
        let folds = |line: &Line| line.measure(0).map(|own| (own.mean, own.folds));
        let mut all: Vec<(&'static str, f64, Vec<f64>)> =
            self.lines.iter().filter_map(|line| folds(line).map(|(mean, folds)| (line.row.name(), mean, folds))).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, others)) = all.split_first().filter(|(_, others)| !others.is_empty()) else { return String::new() };
        let is_worse = |other: &&(&str, f64, Vec<f64>)| {
            let differences: Vec<f64> = other.2.iter().zip(&best.2).map(|(a, b)| a - b).collect();
            let n = differences.len() as f64;
            let mean = differences.iter().sum::<f64>() / n;
            let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
            mean > DIFFERENT * (variance / n).sqrt()
        };
        let worse: Vec<&str> = others.iter().filter(is_worse).map(|other| other.0).collect();
        let text = match worse.len() {
            0 => format!("No difference in {what} exceeds two standard errors: these models are equally good on this table."),
            n if n == others.len() => format!("{} has the lowest {what}, by more than two standard errors.", best.0),
            _ => format!(
                "{} has the lowest {what}. Worse by more than two standard errors: {}. The others are equally good.",
                best.0,
                worse.join(", ")
            ),
        };
        terminal::paragraph(&text, Stream::Stdout) + "\n"
    }

    /// Returns the notes below the table. `dropped`: titles of the columns that are not shown.
    fn notes(&self, dropped: &[String]) -> String {
        let mut text = format!("Mean over folds{}its standard error. ", terminal::plus_minus());
        text += match self.task {
            Task::Regress => "RMSE and MAE are in units of the target; an SVM has no predictive density.",
            Task::Classify => "ECE: expected calibration error.",
        };
        text += " vectors: relevance or support vectors; fit: seconds without the choice of settings.\n";
        let scaled = if self.standardized { "standardised features" } else { "features as they are" };
        let _ = writeln!(
            text,
            "Kernel {}, {scaled}, seed {}; {} inner folds choose settings.",
            self.kernel, self.seed, self.inner_cv
        );
        let has = |row: Row| self.lines.iter().any(|line| line.row == row);
        let error = if self.task == Task::Regress { "squared error" } else { "error rate" };
        let mut chosen = vec![];
        let gamma = self.lines.iter().any(|line| line.chosen.iter().any(|point| point.gamma.is_some()));
        if gamma && (has(Row::Rvm) || has(Row::Vrvm)) {
            chosen.push(if has(Row::Vrvm) { "gamma of rvm and vrvm (the same)" } else { "gamma of rvm" });
        }
        if has(Row::Svm) {
            chosen.push(match (gamma, self.task) {
                (true, Task::Regress) => "c, gamma and epsilon of svm",
                (true, Task::Classify) => "c and gamma of svm",
                (false, Task::Regress) => "c and epsilon of svm",
                (false, Task::Classify) => "c of svm",
            });
        }
        if !chosen.is_empty() {
            let _ = writeln!(text, "Chosen by the least {error} of the inner folds: {}.", chosen.join("; "));
        }
        if has(Row::RvmEvidence) {
            text += "rvm evidence: gamma is learned by the evidence; the seconds of the fit include this.\n";
        }
        let most = self.rows - self.rows / self.cv;
        if has(Row::Vrvm) && most > MOST_VARIATIONAL {
            let _ = writeln!(text, "vrvm: at most {MOST_VARIATIONAL} rows are candidates.");
        }
        for line in self.lines.iter().filter(|line| line.not_converged > 0) {
            let _ = writeln!(text, "{}: {} of {} fits did not converge.", line.row.name(), line.not_converged, self.cv);
        }
        if !dropped.is_empty() {
            let _ = writeln!(text, "Not shown because the screen is too narrow: {} (--format csv has all).", dropped.join("; "));
        }
        text
    }

    /// Returns one CSV line for each model. Measures that the model does not have are empty cells.
    pub fn to_csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(vec![]);
        let names = self.columns().flat_map(|column| [column.key.to_string(), format!("{}_standard_error", column.key)]);
        writer.write_record(["machine".to_string()].into_iter().chain(names))?;
        for line in &self.lines {
            let both = |place: usize| match line.measure(place) {
                Some(measure) => [measure.mean.to_string(), measure.standard_error.to_string()],
                None => [String::new(), String::new()],
            };
            let cells = (0..self.columns().count()).flat_map(both);
            writer.write_record([line.row.name().to_string()].into_iter().chain(cells))?;
        }
        let bytes = writer.into_inner().map_err(|e| e.into_error()).context("cannot write the table")?;
        Ok(String::from_utf8(bytes)?)
    }

    pub fn to_json(&self) -> Result<String> {
        let line = |line: &'_ Line| -> BTreeMap<&'static str, Option<Measure>> {
            self.columns().enumerate().map(|(place, column)| (column.key, line.measure(place))).collect()
        };
        let json = Json {
            data: &self.data,
            target: &self.target,
            task: self.task.name(),
            rows: self.rows,
            features: self.features,
            kernel: self.kernel,
            cv: self.cv,
            inner_cv: self.inner_cv,
            seed: self.seed,
            standardized: self.standardized,
            grid: &self.grid,
            machines: (self.lines.iter())
                .map(|own| JsonLine {
                    machine: own.row.name(),
                    not_converged: own.not_converged,
                    chosen: &own.chosen,
                    measures: line(own),
                })
                .collect(),
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }
}

/// Returns a number and its standard error, with as many decimals as [`ERROR_DIGITS`] of the error need.
fn with_error(mean: f64, error: f64) -> String {
    let decimals = (ERROR_DIGITS - 1) as f64 - error.log10().floor();
    if error.is_finite() && decimals <= MOST_DECIMALS {
        let decimals = decimals.max(0.0) as usize;
        return format!("{mean:.decimals$} ± {error:.decimals$}");
    }
    format!("{} ± {}", significant(mean, DIGITS), significant(error, ERROR_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_decide_how_many_digits_are_shown() {
        let cases = [
            (25.5, 1.82, "25.5 ± 1.8"),
            (0.47771, 0.0096, "0.4777 ± 0.0096"),
            (26.0, 2.0, "26.0 ± 2.0"),
            (204.4, 32.0, "204 ± 32"),
            (1234.5, 321.0, "1234 ± 321"),
            (3.0, 0.0, "3 ± 0"),
            (1.234567e-7, 1.2e-9, "1.235e-7 ± 1.2e-9"),
            (f64::INFINITY, f64::NAN, "inf ± NaN"),
        ];
        for (mean, error, text) in cases {
            assert_eq!(with_error(mean, error), text);
        }
    }
}
