//! Rules for the candidates for relevance vectors: all rows, some of them, or given points.

use std::collections::HashMap;
use std::str::FromStr;

use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use crate::canonical::plain;
use crate::error::Error;
use crate::model::check_features;

/// Largest number of distinct rows at which the rule `auto` takes all rows, and number of landmarks above it.
const AUTO_ALL: usize = 10_000;
const AUTO_LANDMARKS: usize = 1000;

/// Number of training rows that are candidates for relevance vectors, or a rule for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "dictionary must be \"auto\", \"all\" or a whole number of at least 1")]
pub enum Dictionary {
    /// A rule.
    Rule(DictionaryRule),
    /// A largest number, >= 1. [`Landmarks`] chooses the rows.
    Size(usize),
}

/// Rules for [`Dictionary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionaryRule {
    /// All rows if at most 10,000 of them are distinct, else 1,000 landmarks.
    Auto,
    /// All rows.
    All,
}

/// Choice of the landmarks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landmarks {
    /// Rows nearest to the centres of k-means on a sample of the rows, with features scaled by the kernel.
    #[default]
    Kmedoids,
    /// Rows drawn at random with equal probabilities.
    Uniform,
    /// Given points. The size of the dictionary has no effect, and the relevance vectors of a model are indices of
    /// these points.
    Given(Centres),
}

/// Given landmarks, [L, D]. Equal landmarks count once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Centres(#[serde(with = "crate::model::rows")] pub Array2<f64>);

impl Centres {
    /// Returns the distinct centres, `[L, D]` with D = `features`, and for each given centre its index among them.
    ///
    /// # Errors
    /// Returns an error if there is no centre, for another number of columns, and for values that are not finite.
    pub fn distinct(&self, features: usize) -> Result<(Array2<f64>, Vec<usize>), Error> {
        let centres = &self.0;
        if centres.ncols() != features || centres.nrows() == 0 {
            let found = format!("{} of {} features", centres.nrows(), centres.ncols());
            return Err(Error::Shape { what: "landmarks", expected: format!("at least 1, of {features} features"), found });
        }
        check_features("landmarks", centres.view())?;
        let mut firsts: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut kept = Vec::new();
        let mut indices = Vec::new();
        for (i, row) in centres.outer_iter().enumerate() {
            let key = row.iter().map(|v| plain(*v).to_bits()).collect();
            let index = *firsts.entry(key).or_insert(kept.len());
            if index == kept.len() {
                kept.push(i);
            }
            indices.push(index);
        }
        Ok((centres.select(Axis(0), &kept).mapv_into(plain), indices))
    }
}

impl Default for Dictionary {
    fn default() -> Self {
        Dictionary::Rule(DictionaryRule::Auto)
    }
}

impl From<usize> for Dictionary {
    fn from(size: usize) -> Self {
        Dictionary::Size(size)
    }
}

impl FromStr for Dictionary {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Dictionary::Rule(DictionaryRule::Auto)),
            ("all", _) => Ok(Dictionary::Rule(DictionaryRule::All)),
            (_, Ok(size)) if size >= 1 => Ok(Dictionary::Size(size)),
            _ => Err(Error::Parameter {
                name: "dictionary".into(),
                found: text.into(),
                expected: "\"auto\", \"all\" or a whole number of at least 1".into(),
            }),
        }
    }
}

impl Dictionary {
    /// Returns the number of candidates among `rows` distinct rows.
    pub fn size(self, rows: usize) -> usize {
        match self {
            Dictionary::Rule(DictionaryRule::Auto) if rows > AUTO_ALL => AUTO_LANDMARKS,
            Dictionary::Rule(_) => rows,
            Dictionary::Size(size) => size.min(rows),
        }
    }
}

impl Landmarks {
    /// Names of all rules in settings.
    pub const NAMES: &'static [&'static str] = &["kmedoids", "uniform"];

    /// Returns the rule of that name.
    ///
    /// # Errors
    /// Returns [`Error::UnknownName`], which lists the names.
    pub fn from_name(name: &str) -> Result<Landmarks, Error> {
        match name {
            "kmedoids" => Ok(Landmarks::Kmedoids),
            "uniform" => Ok(Landmarks::Uniform),
            _ => Err(Error::UnknownName { what: "choice of landmarks", found: name.into(), known: Landmarks::NAMES }),
        }
    }
}
