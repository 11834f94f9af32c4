//! Sparse rows: only the non-zero entries are stored.

use core::ops::Range;

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prelude::*;

/// Name of the rows in errors.
const WHAT: &str = "sparse rows";

/// Share of entries from which on sparse rows are processed as dense ones. In two rows with this share of entries, a
/// sixteenth of the features have entries in both. A product of scattered entries takes about 16 times as long as one
/// in a vectorised product of dense rows. At twice this share sparse products take 4 times as long as dense ones, and
/// at half of it a quarter.
const DENSE_SHARE: f64 = 0.25;

/// Sparse rows, [N, D], compressed by rows (CSR).
///
/// ```
/// use relvec_predict::SparseRows;
///
/// // [[0, 0.5, 0], [2, 0, 1]]; the entries of the second row may be in any order.
/// let rows = SparseRows::new(vec![0, 1, 3], vec![1, 2, 0], vec![0.5, 1.0, 2.0], 3)?;
/// assert_eq!(rows.to_dense().row(1).to_vec(), [2.0, 0.0, 1.0]);
/// # Ok::<(), relvec_predict::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct SparseRows {
    /// Index of the first entry of each row, and the end of the last row, [N + 1].
    starts: Vec<usize>,
    /// The column of each entry, ascending within a row.
    columns: Vec<u32>,
    /// The value of each entry; no value is zero.
    values: Vec<f64>,
    features: usize,
}

/// Sparse rows as a file stores them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    features: usize,
}

impl TryFrom<Parts> for SparseRows {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<SparseRows> {
        SparseRows::new(parts.starts, parts.columns, parts.values, parts.features)
    }
}

impl From<SparseRows> for Parts {
    fn from(rows: SparseRows) -> Parts {
        let SparseRows { starts, columns, values, features } = rows;
        Parts { starts, columns, values, features }
    }
}

/// The entries of one row.
#[derive(Debug, Clone, Copy)]
pub struct SparseRow<'a> {
    /// Columns of the entries, ascending.
    pub columns: &'a [u32],
    /// Values of the entries.
    pub values: &'a [f64],
}

impl<'a> SparseRow<'a> {
    /// Returns an iterator over pairs of column and value.
    pub fn iter(self) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.columns.iter().zip(self.values).map(|(column, value)| (*column as usize, *value))
    }

    /// Calls `each` with the column and the values of both rows, for every column in which one of them has an entry.
    /// Columns ascend.
    pub fn merge(self, other: SparseRow, mut each: impl FnMut(usize, f64, f64)) {
        let (mut i, mut j) = (0, 0);
        while i < self.columns.len() || j < other.columns.len() {
            let (a, b) = (self.columns.get(i), other.columns.get(j));
            let column = a.into_iter().chain(b).copied().min().unwrap_or(u32::MAX);
            let (own, others) = (a == Some(&column), b == Some(&column));
            each(column as usize, if own { self.values[i] } else { 0.0 }, if others { other.values[j] } else { 0.0 });
            (i, j) = (i + usize::from(own), j + usize::from(others));
        }
    }
}

impl SparseRows {
    /// Returns rows from the arrays of a CSR matrix with `features` columns. `starts`, [N + 1], gives the first entry
    /// of each row in `columns` and `values`. The entries of a row may be in any order. Entries of the same column are
    /// summed, and zeros are dropped.
    ///
    /// # Errors
    /// Returns an error for arrays that contradict each other, and for more than 2^32 - 1 columns.
    pub fn new(starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>, features: usize) -> Result<SparseRows> {
        let wrong = |expected: String, found: String| Err(Error::Shape { what: WHAT, expected, found });
        if u32::try_from(features).is_err() {
            return wrong(format!("at most {} columns", u32::MAX), format!("{features} columns"));
        }
        if columns.len() != values.len() {
            let expected = format!("as many columns as values, {}", values.len());
            return wrong(expected, format!("{} columns", columns.len()));
        }
        if starts.first() != Some(&0) || starts.last() != Some(&values.len()) || !starts.is_sorted() {
            return wrong(format!("row starts that ascend from 0 to {}", values.len()), "other row starts".into());
        }
        if let Some(column) = columns.iter().find(|column| **column as usize >= features) {
            return wrong(format!("columns below {features}"), format!("column {column}"));
        }
        let mut rows = SparseRows { starts, columns, values, features };
        let ascends = |range: &[usize]| rows.columns[range[0]..range[1]].is_sorted_by(|a, b| a < b);
        if !rows.starts.windows(2).all(ascends) || rows.values.contains(&0.0) {
            rows = rows.canonical();
        }
        Ok(rows)
    }

    /// Returns the rows with entries in the order of their columns; entries of the same column are summed, zeros are
    /// dropped.
    fn canonical(&self) -> SparseRows {
        let mut out = SparseRows::empty(self.features);
        let mut entries: Vec<(usize, f64)> = vec![];
        for i in 0..self.nrows() {
            entries.clear();
            entries.extend(self.row(i).iter());
            entries.sort_by_key(|(column, _)| *column);
            entries.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
            out.push(entries.iter().copied());
        }
        out
    }

    /// Returns a matrix without rows and with `features` columns.
    pub fn empty(features: usize) -> SparseRows {
        SparseRows { starts: vec![0], columns: vec![], values: vec![], features }
    }

    /// Appends a row without its zeros.
    fn push(&mut self, entries: impl Iterator<Item = (usize, f64)>) {
        for (column, value) in entries.filter(|(_, value)| *value != 0.0) {
            self.columns.push(column as u32);
            self.values.push(value);
        }
        self.starts.push(self.values.len());
    }

    /// Returns sparse rows with the entries of `x`, [N, D].
    pub fn from_dense(x: ArrayView2<f64>) -> SparseRows {
        let mut out = SparseRows::empty(x.ncols());
        x.outer_iter().for_each(|row| out.push(row.iter().copied().enumerate()));
        out
    }

    /// Returns all numbers, [N, D], zeros included.
    pub fn to_dense(&self) -> Array2<f64> {
        self.dense_rows(0..self.nrows())
    }

    /// Returns a range of rows with their zeros, `[N, D]`.
    pub fn dense_rows(&self, rows: Range<usize>) -> Array2<f64> {
        let mut out = Array2::zeros((rows.len(), self.features));
        for (mut to, i) in out.outer_iter_mut().zip(rows) {
            self.row(i).iter().for_each(|(column, value)| to[column] = value);
        }
        out
    }

    /// Returns N, the number of rows.
    pub fn nrows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns D, the number of columns.
    pub fn ncols(&self) -> usize {
        self.features
    }

    /// Returns the entries of a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn row(&self, i: usize) -> SparseRow<'_> {
        let range = self.starts[i]..self.starts[i + 1];
        SparseRow { columns: &self.columns[range.clone()], values: &self.values[range] }
    }

    /// Returns an iterator over the entries of each row.
    pub fn iter(&self) -> impl Iterator<Item = SparseRow<'_>> {
        (0..self.nrows()).map(|i| self.row(i))
    }

    /// Returns the listed rows in the order of the list.
    ///
    /// # Panics
    /// Panics if a row does not exist.
    pub fn select(&self, rows: &[usize]) -> SparseRows {
        let mut out = SparseRows::empty(self.features);
        for i in rows {
            let row = self.row(*i);
            out.columns.extend_from_slice(row.columns);
            out.values.extend_from_slice(row.values);
            out.starts.push(out.values.len());
        }
        out
    }

    /// Returns the share of non-zero numbers, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.values.len() as f64 / (self.nrows() as f64 * self.ncols() as f64).max(1.0)
    }

    /// Returns true if kernel values are computed faster from all numbers, zeros included, than from the entries.
    #[doc(hidden)]
    pub fn is_nearly_dense(&self) -> bool {
        self.share() >= DENSE_SHARE
    }

    /// Returns the index of the first entry of each row, and the end of the last row, [N + 1].
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Returns the column of each entry.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Returns the value of each entry.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn entries_are_sorted_added_up_and_none_is_zero() {
        let rows =
            SparseRows::new(vec![0, 3, 3, 7], vec![2, 0, 2, 1, 3, 0, 3], vec![1.0, 5.0, 0.5, 0.0, 2.0, -1.0, -2.0], 4).unwrap();
        assert_eq!(rows.to_dense(), array![[5.0, 0.0, 1.5, 0.0], [0.0; 4], [-1.0, 0.0, 0.0, 0.0]]);
        assert_eq!((rows.starts(), rows.columns(), rows.values()), (&[0, 2, 2, 3][..], &[0, 2, 0][..], &[5.0, 1.5, -1.0][..]));
        assert_eq!(SparseRows::from_dense(rows.to_dense().view()), rows);
        assert_eq!(rows.select(&[2, 0]).to_dense(), array![[-1.0, 0.0, 0.0, 0.0], [5.0, 0.0, 1.5, 0.0]]);
        let mut merged = vec![];
        rows.row(0).merge(rows.row(2), |column, a, b| merged.push((column, a, b)));
        assert_eq!(merged, [(0, 5.0, -1.0), (2, 1.5, 0.0)]);
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        for (starts, columns, values, features, message) in [
            (vec![0, 1], vec![1], vec![1.0], 1, "sparse rows: expected columns below 1, found column 1"),
            (
                vec![0, 2],
                vec![0],
                vec![1.0],
                1,
                "sparse rows: expected row starts that ascend from 0 to 1, found other row starts",
            ),
            (vec![1], vec![0], vec![1.0], 1, "sparse rows: expected row starts that ascend from 0 to 1, found other row starts"),
            (
                vec![0, 1, 0, 1],
                vec![0],
                vec![1.0],
                1,
                "sparse rows: expected row starts that ascend from 0 to 1, found other row starts",
            ),
            (vec![], vec![], vec![], 1, "sparse rows: expected row starts that ascend from 0 to 0, found other row starts"),
            (vec![0, 1], vec![], vec![1.0], 1, "sparse rows: expected as many columns as values, 1, found 0 columns"),
            (vec![0], vec![], vec![], 1 << 33, "sparse rows: expected at most 4294967295 columns, found 8589934592 columns"),
        ] {
            assert_eq!(SparseRows::new(starts, columns, values, features).unwrap_err().to_string(), message);
        }
    }
}
