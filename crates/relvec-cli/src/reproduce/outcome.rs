//! Results of an experiment: rows of the table, and figures.

use crate::figures::Figure;
use crate::text::significant;

/// Standard errors by which our error may exceed the paper's.
const ERRORS_ALLOWED: f64 = 2.0;
/// Factor by which our number of kernels may exceed the paper's.
const KERNELS_ALLOWED: f64 = 1.3;
/// Allowed relative difference from values computed by hand. These searches end at a tolerance of 1e-6 of the margin.
const EXACT: f64 = 1e-5;

/// Comparison of our number with the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// Our error is at most two standard errors above.
    Error,
    /// We have at most 1.3 times as many kernels.
    Kernels,
    /// Both are equal: the value can be computed by hand.
    Exact,
    /// Both are shown without a comparison.
    Shown,
}

/// One line of the table.
pub(super) struct Row {
    pub machine: String,
    pub quantity: &'static str,
    pub paper: Option<f64>,
    /// Our values, one for each repeat; empty if there is no such model here or no data.
    pub values: Vec<f64>,
    /// Standard error for a single repeat, from the number of test rows.
    pub spread: Option<f64>,
    pub aim: Aim,
    pub note: String,
}

impl Row {
    pub fn new(machine: impl Into<String>, quantity: &'static str, paper: impl Into<Option<f64>>, aim: Aim) -> Row {
        Row { machine: machine.into(), quantity, paper: paper.into(), values: Vec::new(), spread: None, aim, note: String::new() }
    }

    /// Returns a row without values that contains the reason.
    pub fn nothing(note: impl Into<String>) -> Row {
        Row::new("", "", None, Aim::Shown).note(note)
    }

    pub fn values(mut self, values: impl IntoIterator<Item = f64>) -> Row {
        self.values = values.into_iter().collect();
        self
    }

    pub fn spread(mut self, spread: f64) -> Row {
        self.spread = Some(spread);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }

    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    /// Returns the standard error of the mean over the repeats, or else the given one.
    pub fn standard_error(&self) -> Option<f64> {
        let n = self.values.len() as f64;
        if n < 2.0 {
            return self.spread;
        }
        let mean = self.mean()?;
        let squares = self.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        Some((squares / (n - 1.0) / n).sqrt())
    }

    /// Returns whether our value meets the comparison; `None` without values or without a comparison.
    pub fn met(&self) -> Option<bool> {
        let (ours, paper) = (self.mean()?, self.paper?);
        match self.aim {
            Aim::Error => Some(ours <= paper + ERRORS_ALLOWED * self.standard_error().unwrap_or(0.0)),
            Aim::Kernels => Some(ours <= KERNELS_ALLOWED * paper),
            Aim::Exact => Some((ours - paper).abs() <= EXACT * paper.abs().max(1.0)),
            Aim::Shown => None,
        }
    }

    /// Returns the cells: model, quantity, paper's value, our value, standard error, repeats, and whether the
    /// comparison is met.
    pub fn cells(&self) -> [String; 7] {
        let number = |v: Option<f64>| v.map_or(String::new(), |v| significant(v, 4));
        let error = self.standard_error().map_or(String::new(), |e| significant(e, 2));
        let repeats = if self.values.is_empty() { String::new() } else { self.values.len().to_string() };
        let met = self.met().map_or("", |met| if met { "yes" } else { "no" });
        [
            self.machine.clone(),
            self.quantity.to_string(),
            number(self.paper),
            number(self.mean()),
            error,
            repeats,
            met.to_string(),
        ]
    }
}

/// Results of an experiment.
#[derive(Default)]
pub(super) struct Outcome {
    pub rows: Vec<Row>,
    pub figures: Vec<Drawing>,
}

/// A figure, the name of its files, and its caption.
pub(super) struct Drawing {
    pub name: &'static str,
    pub caption: String,
    pub figure: Figure,
}

impl Outcome {
    pub fn draw(&mut self, name: &'static str, caption: impl Into<String>, figure: Figure) {
        self.figures.push(Drawing { name, caption: caption.into(), figure });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_errors_and_aims() {
        let row = Row::new("RVM", "error", 1.0, Aim::Error).values([1.0, 1.2, 1.4]);
        assert!((row.mean().unwrap() - 1.2).abs() < 1e-12);
        assert!((row.standard_error().unwrap() - 0.2 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(row.met(), Some(true));
        assert_eq!(Row::new("RVM", "error", 1.0, Aim::Error).values([1.1]).met(), Some(false));
        assert_eq!(Row::new("RVM", "error", 1.0, Aim::Error).values([1.1]).spread(0.05).met(), Some(true));
        assert_eq!(Row::new("RVM", "kernels", 10.0, Aim::Kernels).values([13.1]).met(), Some(false));
        assert_eq!(Row::new("GP", "errors", 68.0, Aim::Error).met(), None);
    }
}
