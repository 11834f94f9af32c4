//! What an experiment found: its rows of the table, and its figures.

use crate::figures::Figure;
use crate::text::significant;

/// Standard errors that ours may be above the paper's.
const ERRORS_ALLOWED: f64 = 2.0;
/// Times the paper's kernels that ours may be.
const KERNELS_ALLOWED: f64 = 1.3;
/// Relative difference from what is worked out by hand: these searches end at a tolerance of 1e-6 of the margin.
const EXACT: f64 = 1e-5;

/// How ours is to be beside the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// At most two standard errors above.
    Error,
    /// At most 1.3 times as many.
    Kernels,
    /// Equal: the value can be computed by hand.
    Exact,
    /// Only shown beside it.
    Shown,
}

/// One line of the table.
pub(super) struct Row {
    pub machine: String,
    pub quantity: &'static str,
    pub paper: Option<f64>,
    /// One for each repeat; none where there is no such machine here, or no data.
    pub values: Vec<f64>,
    /// Standard error where there is one repeat and yet something to tell it from: the number of test rows.
    pub spread: Option<f64>,
    pub aim: Aim,
    pub note: String,
}

impl Row {
    pub fn new(machine: impl Into<String>, quantity: &'static str, paper: impl Into<Option<f64>>, aim: Aim) -> Row {
        Row { machine: machine.into(), quantity, paper: paper.into(), values: Vec::new(), spread: None, aim, note: String::new() }
    }

    /// A line that says why there is nothing to say.
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

    /// Standard error of the mean: by the repeats, or as given.
    pub fn standard_error(&self) -> Option<f64> {
        let n = self.values.len() as f64;
        if n < 2.0 {
            return self.spread;
        }
        let mean = self.mean()?;
        let squares = self.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        Some((squares / (n - 1.0) / n).sqrt())
    }

    /// Whether ours is what it should be.
    pub fn met(&self) -> Option<bool> {
        let (ours, paper) = (self.mean()?, self.paper?);
        match self.aim {
            Aim::Error => Some(ours <= paper + ERRORS_ALLOWED * self.standard_error().unwrap_or(0.0)),
            Aim::Kernels => Some(ours <= KERNELS_ALLOWED * paper),
            Aim::Exact => Some((ours - paper).abs() <= EXACT * paper.abs().max(1.0)),
            Aim::Shown => None,
        }
    }

    /// Machine, quantity, the paper's, ours, standard error, repeats, whether it is met.
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

/// What an experiment found.
#[derive(Default)]
pub(super) struct Outcome {
    pub rows: Vec<Row>,
    pub figures: Vec<Drawing>,
}

/// A figure, the name of its files, and what it shows.
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
