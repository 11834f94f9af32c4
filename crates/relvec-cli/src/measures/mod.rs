//! Measures of predictions and of a constant prediction, for `score` and for reports.

mod classes;
mod values;

pub(crate) use classes::{Classes, Pair, joined};
pub(crate) use values::{Values, coverage_is_off};

use crate::text::significant;

/// Significant digits.
const DIGITS: usize = 3;

/// A measure: its key in CSV and JSON, its name and unit in text, and its values.
pub(crate) struct Measure {
    pub key: &'static str,
    pub name: String,
    /// Unit; a measure in % is multiplied by 100.
    pub unit: String,
    /// Value of the model; `None` if the rows do not determine it, such as rows of one class, or no row that is not
    /// rejected.
    pub value: Option<f64>,
    /// Value of the constant prediction.
    pub constant: Option<f64>,
    /// True if lower values are better, false if higher ones are; `None` if neither is.
    lower: Option<bool>,
}

pub(crate) fn measure(key: &'static str, name: &str, unit: &str, value: impl Into<Option<f64>>) -> Measure {
    let lower = if matches!(key, "coverage" | "rejected" | "expected_cost") { None } else { Some(true) };
    Measure { key, name: name.into(), unit: unit.into(), value: value.into(), constant: None, lower }
}

impl Measure {
    /// Returns the measure with the value of the constant prediction.
    pub fn beside(self, constant: f64) -> Measure {
        Measure { constant: Some(constant), ..self }
    }

    /// Returns the measure marked as better if higher.
    pub fn higher(self) -> Measure {
        Measure { lower: Some(false), ..self }
    }

    /// Returns the value of the model as text.
    pub fn own(&self) -> String {
        self.shown(self.value)
    }

    /// Returns the value of the model with its unit, except if the unit is that of the target.
    pub fn with_unit(&self) -> String {
        if self.unit.contains('`') { self.own() } else { format!("{} {}", self.own(), self.unit) }
    }

    /// Returns the value of the constant prediction as text; empty if there is none.
    pub fn of_constant(&self) -> String {
        self.constant.map_or(String::new(), |value| self.shown(Some(value)))
    }

    /// Returns which values are better, as text.
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
