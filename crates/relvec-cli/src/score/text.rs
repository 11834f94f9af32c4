//! The measures as people read them, beside those of a constant prediction.

use std::collections::HashMap;

use relvec::Model;

use super::Classes;
use crate::decision::class_name;
use crate::layout::{self, Column};
use crate::terminal::{self, Stream};
use crate::text::{share, significant};

/// Significant digits.
const DIGITS: usize = 3;
/// Pairs of classes that are named, the most frequent mistakes first.
const PAIRS: usize = 3;

/// A number: its key in CSV and JSON, its name and unit for the eye.
pub(super) struct Measure {
    pub key: &'static str,
    name: String,
    /// In percent it is multiplied by 100.
    unit: String,
    /// `None` where the rows do not say: of one class only, or none that is kept.
    pub value: Option<f64>,
    /// The score of the constant prediction.
    constant: Option<f64>,
    /// Whether a lower number is better, or a higher; `None` where neither is.
    lower: Option<bool>,
}

pub(super) fn measure(key: &'static str, name: &str, unit: &str, value: impl Into<Option<f64>>) -> Measure {
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

    fn shown(&self, value: Option<f64>) -> String {
        let times = if self.unit == "%" { 100.0 } else { 1.0 };
        value.map_or("-".into(), |value| significant(value * times, DIGITS))
    }
}

/// Headline, table, sentences below it. `constant`: what the constant prediction is.
pub(super) fn of(headline: &str, constant: &str, measures: &[Measure], sentences: &[String]) -> String {
    let columns = [
        Column::text(""),
        Column::number("model", 0),
        Column::number(&terminal::name(constant), 0),
        Column::text("better is").ranked(1),
    ];
    let row = |own: &Measure| {
        let better = match own.lower {
            Some(true) => "lower",
            Some(false) => "higher",
            None => "",
        };
        let constant = own.constant.map_or(String::new(), |value| own.shown(Some(value)));
        vec![format!("{} ({})", own.name, terminal::name(&own.unit)), own.shown(own.value), constant, better.into()]
    };
    let rows: Vec<Vec<String>> = measures.iter().map(row).collect();
    let (table, _) = layout::table(&columns, &rows, terminal::table_width(Stream::Stdout));
    let mut text = format!("{}\n{table}", terminal::headline(headline, Stream::Stdout));
    for sentence in sentences {
        text += &format!("\n{}\n", terminal::paragraph(sentence, Stream::Stdout));
    }
    text
}

/// How many rows are misclassified, and which classes are taken for which; rows that are rejected are not decided.
pub(super) fn confusions(model: &Model, own: &Classes) -> String {
    let rejected = |i: usize| own.decided.as_ref().is_some_and(|decided| decided.rejected[i]);
    let rows: Vec<usize> = (0..own.truth.len()).filter(|i| !rejected(*i)).collect();
    let mut pairs: HashMap<(usize, usize), usize> = HashMap::new();
    for (k, l) in rows.iter().map(|i| (own.truth[*i], own.predicted[*i])).filter(|(k, l)| k != l) {
        *pairs.entry((k, l)).or_default() += 1;
    }
    let wrong = pairs.values().sum::<usize>();
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|((k, l), rows)| (std::cmp::Reverse(*rows), *k, *l));
    let one = |((k, l), rows): &((usize, usize), usize)| format!("{rows} {} as {}", class_name(model, *k), class_name(model, *l));
    let more = if pairs.len() > PAIRS { ", ..." } else { "" };
    let named = pairs.iter().take(PAIRS).map(one).collect::<Vec<_>>().join(", ");
    let colon = if wrong > 0 { ": " } else { "" };
    let noun = if rows.len() < own.truth.len() { "decided row" } else { "row" };
    format!("{} misclassified{colon}{named}{more}", share(wrong, rows.len(), noun))
}
