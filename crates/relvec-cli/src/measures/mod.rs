//! Measures of predictions beside those of a constant prediction, for `score` and for reports.

mod classes;
mod values;

pub(crate) use classes::{Classes, Pair, joined};
pub(crate) use values::{Values, coverage_is_off};

use crate::text::significant;

/// Significant digits.
const DIGITS: usize = 3;

/// A number: its key in CSV and JSON, its name and unit for the eye.
pub(crate) struct Measure {
    pub key: &'static str,
    pub name: String,
    /// In percent it is multiplied by 100.
    pub unit: String,
    /// `None` where the rows do not say: of one class only, or none that is kept.
    pub value: Option<f64>,
    /// The score of the constant prediction.
    pub constant: Option<f64>,
    /// Whether a lower number is better, or a higher; `None` where neither is.
    lower: Option<bool>,
}

pub(crate) fn measure(key: &'static str, name: &str, unit: &str, value: impl Into<Option<f64>>) -> Measure {
    let lower = if matches!(key, "coverage" | "rejected" | "expected_cost") { None } else { Some(true) };
    Measure { key, name: name.into(), unit: unit.into(), value: value.into(), constant: None, lower }
}

impl Measure {
    /// With the number of the constant prediction.
    pub fn beside(self, constant: f64) -> Measure {
        Measure { constant: Some(constant), ..self }
    }

    /// A measure of which more is better.
    pub fn higher(self) -> Measure {
        Measure { lower: Some(false), ..self }
    }

    /// The model's number as text.
    pub fn own(&self) -> String {
        self.shown(self.value)
    }

    /// The model's number with its unit behind it, unless that is one of the target.
    pub fn with_unit(&self) -> String {
        if self.unit.contains('`') { self.own() } else { format!("{} {}", self.own(), self.unit) }
    }

    /// The number of the constant prediction as text; empty if it has none.
    pub fn of_constant(&self) -> String {
        self.constant.map_or(String::new(), |value| self.shown(Some(value)))
    }

    /// Which numbers are better.
    pub fn better(&self) -> &'static str {
        match self.lower {
            Some(true) => "lower",
            Some(false) => "higher",
            None => "",
        }
    }

    fn shown(&self, value: Option<f64>) -> String {
        let times = if self.unit == "%" { 100.0 } else { 1.0 };
        value.map_or("-".into(), |value| significant(value * times, DIGITS))
    }
}
