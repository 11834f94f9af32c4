//! Storage of arrays in the model file: matrices as lists of rows or without their zeros, and a dimension of one
//! function left out.

use core::fmt;

use ndarray::Array2;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::prelude::*;
use crate::sparse::SparseRows;

/// Rows of a table, [N, D], with their zeros or without. A file has a list of rows, or the parts of sparse rows.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredRows {
    /// All numbers.
    Dense(Array2<f64>),
    /// The numbers that are not zero.
    Sparse(SparseRows),
}

impl StoredRows {
    /// Returns N, the number of rows.
    pub fn nrows(&self) -> usize {
        match self {
            StoredRows::Dense(rows) => rows.nrows(),
            StoredRows::Sparse(rows) => rows.nrows(),
        }
    }

    /// Returns D, the number of columns.
    pub fn ncols(&self) -> usize {
        match self {
            StoredRows::Dense(rows) => rows.ncols(),
            StoredRows::Sparse(rows) => rows.ncols(),
        }
    }

    /// Returns the same rows without their zeros.
    #[must_use]
    pub fn into_sparse(self) -> StoredRows {
        match self {
            StoredRows::Dense(rows) => StoredRows::Sparse(SparseRows::from_dense(rows.view())),
            sparse => sparse,
        }
    }
}

impl Serialize for StoredRows {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            StoredRows::Dense(dense) => rows::serialize(dense, s),
            StoredRows::Sparse(sparse) => sparse.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for StoredRows {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<StoredRows, D::Error> {
        d.deserialize_any(AnyRows)
    }
}

/// Reads rows in either form.
struct AnyRows;

impl<'de> Visitor<'de> for AnyRows {
    type Value = StoredRows;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of rows, or sparse rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<StoredRows, A::Error> {
        rows::deserialize(SeqAccessDeserializer::new(list)).map(StoredRows::Dense)
    }

    fn visit_map<A: MapAccess<'de>>(self, parts: A) -> Result<StoredRows, A::Error> {
        SparseRows::deserialize(MapAccessDeserializer::new(parts)).map(StoredRows::Sparse)
    }
}

fn matrix<E: Error>(rows: &[Vec<f64>], what: &str) -> Result<Array2<f64>, E> {
    let columns = rows.first().map_or(0, Vec::len);
    if let Some(i) = rows.iter().position(|r| r.len() != columns) {
        return Err(E::custom(format!("row {i} of the {what} has {} numbers, row 0 has {columns}", rows[i].len())));
    }
    Array2::from_shape_vec((rows.len(), columns), rows.concat()).map_err(E::custom)
}

fn list_of_rows(a: &Array2<f64>) -> Vec<Vec<f64>> {
    a.outer_iter().map(|r| r.to_vec()).collect()
}

/// A matrix as a list of rows.
pub mod rows {
    use super::{Array2, Deserialize, Deserializer, Serialize, Serializer, Vec};

    /// Writes `a`, `[N, D]`, as a list of rows.
    pub fn serialize<S: Serializer>(a: &Array2<f64>, s: S) -> Result<S::Ok, S::Error> {
        super::list_of_rows(a).serialize(s)
    }

    /// Reads an array `[N, D]` from a list of rows of equal length.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Array2<f64>, D::Error> {
        super::matrix(&Vec::<Vec<f64>>::deserialize(d)?, "centres")
    }
}

/// A matrix as a list of rows, or nothing.
pub(crate) mod optional_rows {
    use super::{Array2, Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Rows(#[serde(with = "super::rows")] Array2<f64>);

    /// Writes `a`, `[N, D]`, as a list of rows, or nothing.
    pub fn serialize<S: Serializer>(a: &Option<Array2<f64>>, s: S) -> Result<S::Ok, S::Error> {
        a.clone().map(Rows).serialize(s)
    }

    /// Reads an array `[N, D]` from a list of rows of equal length, if there is one.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Array2<f64>>, D::Error> {
        Ok(Option::<Rows>::deserialize(d)?.map(|rows| rows.0))
    }
}

/// One number or several.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a list of numbers")]
enum Numbers {
    One(f64),
    Several(Vec<f64>),
}

/// Weights [M, C], as a list of numbers for one function.
pub(crate) mod weights {
    use super::{Array2, Deserialize, Deserializer, Error, Numbers, Serialize, Serializer, Vec};

    /// Writes weights, `[M, K]`: numbers if K is 1, otherwise a list of rows.
    pub fn serialize<S: Serializer>(a: &Array2<f64>, s: S) -> Result<S::Ok, S::Error> {
        match a.ncols() {
            1 => a.column(0).to_vec().serialize(s),
            _ => super::list_of_rows(a).serialize(s),
        }
    }

    /// Reads weights, `[M, K]`, from numbers (K is 1) or from rows of K > 1 numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Array2<f64>, D::Error> {
        let list = Vec::<Numbers>::deserialize(d)?;
        let rows: Vec<Vec<f64>> = list
            .into_iter()
            .map(|numbers| match numbers {
                Numbers::One(w) => Ok(vec![w]),
                Numbers::Several(row) if row.len() > 1 => Ok(row),
                Numbers::Several(row) => {
                    let found = format!("found a list of {} numbers for a basis function", row.len());
                    Err(D::Error::custom(format!("{found}, expected a number, or a list of at least 2")))
                }
            })
            .collect::<Result<_, _>>()?;
        super::matrix(&rows, "weights")
    }
}

/// Intercepts `[C]`, as a number for one function.
pub(crate) mod intercept {
    use super::{Deserialize, Deserializer, Numbers, Serialize, Serializer, Vec};

    pub fn serialize<S: Serializer>(a: &[f64], s: S) -> Result<S::Ok, S::Error> {
        match a {
            [one] => one.serialize(s),
            several => several.serialize(s),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
        Ok(match Numbers::deserialize(d)? {
            Numbers::One(w) => vec![w],
            Numbers::Several(list) => list,
        })
    }
}
