//! Which rows or points are candidates for relevance vectors.

use std::collections::HashMap;
use std::str::FromStr;

use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use crate::canonical::plain;
use crate::error::Error;
use crate::model::check_features;

/// `auto` takes all rows up to this many different ones, and beyond that so many landmarks.
const AUTO_ALL: usize = 10_000;
pub(crate) const AUTO_LANDMARKS: usize = 1000;

/// How many training rows are candidates for relevance vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "dictionary must be \"auto\", \"all\" or a whole number of at least 1")]
pub enum Dictionary {
    /// A rule.
    Rule(DictionaryRule),
    /// At most this many, chosen by [`Landmarks`], >= 1.
    Size(usize),
}

/// Rules for [`Dictionary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionaryRule {
    /// All rows while there are at most 10,000 different ones, else 1,000 landmarks; landmarks also where a first
    /// model of more than 5,000 rows takes up so much of its part that the search would be long.
    Auto,
    /// All rows.
    All,
}

/// How landmarks are chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landmarks {
    /// Rows nearest to the centres of k-means in the space that the kernel scales, on a sample of the rows.
    #[default]
    Kmedoids,
    /// Evenly at random.
    Uniform,
    /// These, whatever the size of the dictionary; the relevance of a model counts them instead of rows.
    Given(Centres),
}

/// Given landmarks, [L, D]; equal ones count once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Centres(#[serde(with = "crate::model::rows")] pub Array2<f64>);

impl Centres {
    /// Returns the different centres, `[L, D]`, and for each given one its index among them; they must have D = `features`
    /// columns.
    ///
    /// # Errors
    /// None, another number of columns, values that are not finite.
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
    /// Candidates out of `rows` different rows.
    pub fn size(self, rows: usize) -> usize {
        match self {
            Dictionary::Rule(DictionaryRule::Auto) if rows > AUTO_ALL => AUTO_LANDMARKS,
            Dictionary::Rule(_) => rows,
            Dictionary::Size(size) => size.min(rows),
        }
    }
}

impl Landmarks {
    /// The names of all rules, as used in settings.
    pub const NAMES: &'static [&'static str] = &["kmedoids", "uniform"];

    /// The rule of that name.
    ///
    /// # Errors
    /// [`Error::UnknownName`], which lists the names.
    pub fn from_name(name: &str) -> Result<Landmarks, Error> {
        match name {
            "kmedoids" => Ok(Landmarks::Kmedoids),
            "uniform" => Ok(Landmarks::Uniform),
            _ => Err(Error::UnknownName { what: "choice of landmarks", found: name.into(), known: Landmarks::NAMES }),
        }
    }
}
