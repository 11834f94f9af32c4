//! Encoding of the columns of a table as features of a model: texts become features of 0 and 1, and missing cells are
//! filled.

use serde::{Deserialize, Serialize};

use super::check::Place;
use crate::error::{Error, Result};
use crate::prelude::*;

/// Rules for missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// Rows with a missing cell are excluded.
    Drop,
    /// The features of a missing cell are set to their means over the training rows.
    Mean,
    /// A missing cell is set to the mean. A column with missing cells among the training rows has one more feature,
    /// which is 1 where its cell is missing and 0 elsewhere.
    Indicator,
}

impl Missing {
    /// Names of all rules.
    pub const NAMES: [&'static str; 3] = ["drop", "mean", "indicator"];

    /// Returns the name in arguments and files.
    pub fn name(self) -> &'static str {
        match self {
            Missing::Drop => "drop",
            Missing::Mean => "mean",
            Missing::Indicator => "indicator",
        }
    }

    /// Returns the rule with this name; an unknown name is an error.
    pub fn from_name(name: &str) -> Result<Missing> {
        let all = [Missing::Drop, Missing::Mean, Missing::Indicator];
        let unknown = || Error::UnknownName { what: "rule for missing cells", found: name.into(), known: &Missing::NAMES };
        all.into_iter().find(|rule| rule.name() == name).ok_or_else(unknown)
    }
}

/// The rule that makes the features of a model from the columns of a table. A table with complete columns of numbers
/// needs none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoding {
    /// The columns, in the order of their features.
    pub columns: Vec<EncodedColumn>,
    /// The rule for missing cells; `None` if they are an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}

/// A column of a table, with the features that are made from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodedColumn {
    /// The name of the column in the table.
    pub name: String,
    /// The categories, sorted by their bytes; empty for a column of numbers. Two categories become one feature, 0 for
    /// the first and 1 for the second. Three or more have one feature each, 1 in rows of that category and 0 elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// True if an additional feature indicates that the cell is missing.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub indicator: bool,
    /// Weighted means of the features, without the indicator, over the training rows whose cell is present. A missing
    /// cell is set to them.
    pub means: Vec<f64>,
}

/// The value of a cell, by which its features are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EncodedCell {
    /// No value.
    Missing,
    /// A category that no training row has.
    Unknown,
    /// A number, in a column without categories.
    Number(f64),
    /// The index of a category in [`EncodedColumn::categories`].
    Category(usize),
}

/// A cell of a table before encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawCell<'a> {
    /// No value.
    Missing,
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// A boolean.
    Boolean(bool),
}

impl EncodedColumn {
    /// Returns the number of features for `categories` categories, without the indicator; 0 categories mean a column of
    /// numbers.
    fn values_of(categories: usize) -> usize {
        if categories == 2 { 1 } else { categories.max(1) }
    }

    /// Returns the number of features, the indicator included.
    pub fn width(&self) -> usize {
        EncodedColumn::values_of(self.categories.len()) + usize::from(self.indicator)
    }

    /// Returns the names of the features, such as `age`; `smoker=yes`; `colour=blue`, `colour=red`, `colour=teal`; `age
    /// is missing`.
    pub fn features(&self) -> Vec<String> {
        let name = &self.name;
        let named = if self.categories.len() == 2 { &self.categories[1..] } else { &self.categories };
        let mut names: Vec<String> = named.iter().map(|category| format!("{name}={category}")).collect();
        if self.categories.is_empty() {
            names.push(name.clone());
        }
        names.extend(self.indicator.then(|| format!("{name} is missing")));
        names
    }

    /// Returns the index of a category. `true` and `false` are booleans, which programs write as true, True or TRUE.
    pub fn category(&self, text: &str) -> Option<usize> {
        let exact = self.categories.binary_search_by(|category| category.as_str().cmp(text)).ok();
        let value = |value: &bool| text.eq_ignore_ascii_case(if *value { "true" } else { "false" });
        exact.or_else(|| [false, true].into_iter().find(value).and_then(|value| self.boolean(value)))
    }

    /// Returns the index of the category of a boolean.
    pub fn boolean(&self, value: bool) -> Option<usize> {
        self.categories.iter().position(|category| category.eq_ignore_ascii_case(if value { "true" } else { "false" }))
    }

    /// Appends the features of a cell to `out`. A missing cell and an unknown category have the means. The indicator is
    /// 1 for a missing cell only.
    pub fn push(&self, cell: EncodedCell, out: &mut Vec<f64>) {
        match (cell, self.categories.len()) {
            (EncodedCell::Missing | EncodedCell::Unknown, _) => out.extend(&self.means),
            (EncodedCell::Number(value), _) => out.push(value),
            (EncodedCell::Category(place), 2) => out.push(place as f64),
            (EncodedCell::Category(place), count) => out.extend((0..count).map(|k| f64::from(u8::from(k == place)))),
        }
        out.extend(self.indicator.then(|| f64::from(u8::from(cell == EncodedCell::Missing))));
    }

    fn cell(&self, cell: RawCell) -> Result<EncodedCell> {
        let wrong = |found: String, expected: &str| {
            Err(Error::Table(format!("column `{}`: found {found}, expected {expected}", self.name)))
        };
        let listed = |text: &str, place: Option<usize>| match place {
            Some(place) => Ok(EncodedCell::Category(place)),
            None => wrong(format!("`{text}`"), &format!("one of the categories {}", self.categories.join(", "))),
        };
        match (cell, self.categories.is_empty()) {
            (RawCell::Missing, _) => Ok(EncodedCell::Missing),
            (RawCell::Number(value), true) if value.is_finite() => Ok(EncodedCell::Number(value)),
            (RawCell::Number(value), true) => wrong(value.to_string(), "a finite number"),
            (RawCell::Boolean(value), true) => Ok(EncodedCell::Number(f64::from(u8::from(value)))),
            (RawCell::Text(text), true) => wrong(format!("`{text}`"), "a number"),
            (RawCell::Text(text), false) => listed(text, self.category(text)),
            (RawCell::Boolean(value), false) => listed(&value.to_string(), self.boolean(value)),
            (RawCell::Number(value), false) => listed(&value.to_string(), self.category(&value.to_string())),
        }
    }
}

impl Encoding {
    /// Returns the names of all features, `[D]`.
    pub fn features(&self) -> Vec<String> {
        self.columns.iter().flat_map(EncodedColumn::features).collect()
    }

    /// Returns D, the number of features.
    pub fn width(&self) -> usize {
        self.columns.iter().map(EncodedColumn::width).sum()
    }

    /// Returns the features of one row, `[D]`, from its cells, one for each of [`Encoding::columns`] in their order.
    /// Returns `None` for a row with a missing cell that the rule [`Missing::Drop`] excludes.
    ///
    /// # Errors
    /// Returns [`Error::Table`] for another number of cells, a text in a column of numbers, a number that is not
    /// finite, or a category that no training row has. A missing cell is an error if the model was trained without a
    /// rule for missing cells.
    ///
    /// ```
    /// use relvec_predict::{EncodedColumn, Encoding, RawCell};
    ///
    /// let column = |name: &str, categories: &[&str], means: &[f64]| EncodedColumn {
    ///     name: name.into(),
    ///     categories: categories.iter().map(|text| text.to_string()).collect(),
    ///     indicator: false,
    ///     means: means.to_vec(),
    /// };
    /// let columns = vec![column("age", &[], &[31.5]), column("colour", &["blue", "red", "teal"], &[0.5, 0.25, 0.25])];
    /// let encoding = Encoding { columns, missing: None };
    /// assert_eq!(encoding.features(), ["age", "colour=blue", "colour=red", "colour=teal"]);
    /// let row = encoding.encode(&[RawCell::Number(40.0), RawCell::Text("red")])?;
    /// assert_eq!(row, Some(vec![40.0, 0.0, 1.0, 0.0]));
    /// # Ok::<(), relvec_predict::Error>(())
    /// ```
    pub fn encode(&self, cells: &[RawCell]) -> Result<Option<Vec<f64>>> {
        if cells.len() != self.columns.len() {
            let (found, expected) = (cells.len(), self.columns.len());
            return Err(Error::Table(format!("found a row of {found} cells, expected {expected}, one for each column")));
        }
        let mut out = Vec::with_capacity(self.width());
        for (column, cell) in self.columns.iter().zip(cells) {
            let cell = column.cell(*cell)?;
            match (cell, self.missing) {
                (EncodedCell::Missing, Some(Missing::Drop)) => return Ok(None),
                (EncodedCell::Missing, None) => {
                    let why = "found a missing cell, expected a value: the model was trained without a rule for missing cells";
                    return Err(Error::Table(format!("column `{}`: {why}", column.name)));
                }
                _ => column.push(cell, &mut out),
            }
        }
        Ok(Some(out))
    }

    /// Checks what may be wrong in a damaged or hand-made file, for a model with these features.
    pub(super) fn check(&self, at: &Place, features: &[String]) -> Result<()> {
        for (i, column) in self.columns.iter().enumerate() {
            let at = at.inside(format!("columns[{i}]"));
            let sorted = column.categories.windows(2).all(|pair| pair[0] < pair[1]);
            let found = || format!("[{}]", column.categories.join(", "));
            at.require(sorted, "categories", found(), "different texts in ascending order")?;
            at.length(
                "means",
                column.means.len(),
                EncodedColumn::values_of(column.categories.len()),
                "feature, without the indicator",
            )?;
            at.numbers("means", &column.means, f64::is_finite, "a finite number")?;
        }
        let own = self.features();
        let expected = "the features of the model, in their order";
        at.require(own == features, "columns", format!("features {}", own.join(", ")), expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, categories: &[&str], indicator: bool, means: &[f64]) -> EncodedColumn {
        let categories = categories.iter().map(|text| text.to_string()).collect();
        EncodedColumn { name: name.into(), categories, indicator, means: means.to_vec() }
    }

    fn encoding(missing: Option<Missing>) -> Encoding {
        let indicator = missing == Some(Missing::Indicator);
        let columns = vec![
            column("age", &[], indicator, &[30.0]),
            column("paid", &["FALSE", "TRUE"], false, &[0.25]),
            column("kind", &["a", "b", "c"], false, &[0.5, 0.25, 0.25]),
        ];
        Encoding { columns, missing }
    }

    #[test]
    fn rows_become_features_in_the_order_of_their_names() {
        let own = encoding(Some(Missing::Indicator));
        assert_eq!(own.features(), ["age", "age is missing", "paid=TRUE", "kind=a", "kind=b", "kind=c"]);
        assert_eq!(own.width(), 6);
        let row = own.encode(&[RawCell::Missing, RawCell::Boolean(true), RawCell::Text("c")]).unwrap();
        assert_eq!(row, Some(vec![30.0, 1.0, 1.0, 0.0, 0.0, 1.0]));
        let row = own.encode(&[RawCell::Number(7.0), RawCell::Text("False"), RawCell::Missing]).unwrap();
        assert_eq!(row, Some(vec![7.0, 0.0, 0.0, 0.5, 0.25, 0.25]));
    }

    #[test]
    fn missing_cells_follow_the_rule() {
        let row = [RawCell::Missing, RawCell::Text("TRUE"), RawCell::Text("a")];
        assert_eq!(encoding(Some(Missing::Drop)).encode(&row), Ok(None));
        assert_eq!(encoding(Some(Missing::Mean)).encode(&row), Ok(Some(vec![30.0, 1.0, 1.0, 0.0, 0.0])));
        let message = encoding(None).encode(&row).unwrap_err().to_string();
        assert!(message.contains("column `age`: found a missing cell"), "{message}");
    }

    #[test]
    fn cells_of_another_kind_are_refused_by_the_name_of_their_column() {
        let own = encoding(None);
        let cases = [
            ([RawCell::Text("x"), RawCell::Boolean(true), RawCell::Text("a")], "column `age`: found `x`, expected a number"),
            ([RawCell::Number(f64::NAN), RawCell::Boolean(true), RawCell::Text("a")], "column `age`: found NaN"),
            ([RawCell::Number(1.0), RawCell::Text("yes"), RawCell::Text("a")], "column `paid`: found `yes`, expected one of"),
            ([RawCell::Number(1.0), RawCell::Boolean(true), RawCell::Number(3.0)], "column `kind`: found `3`"),
        ];
        for (row, expected) in cases {
            let message = own.encode(&row).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
        assert!(own.encode(&[RawCell::Missing]).unwrap_err().to_string().contains("1 cells, expected 3"));
    }

    #[test]
    fn rules_are_found_by_their_names() {
        assert!(Missing::NAMES.iter().all(|name| Missing::from_name(name).unwrap().name() == *name));
        assert!(Missing::from_name("median").is_err());
    }
}
