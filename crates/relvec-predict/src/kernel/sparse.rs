//! Kernel values between sparse rows, which are never expanded to dense rows.
//!
//! Every kernel except the linear spline, periodic kernels and sums of kernels is a function of a sum over features. A feature that is 0 in both rows adds
//! nothing to it. For squares and absolute differences, the sum consists of one sum per row and a correction for the
//! features that both rows have. Only these features are compared between pairs of rows.

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array2, Axis};

use super::distance::{TOLERANCE, lost};
use super::form::Form;
use super::{Fill, Gamma, Kernel};
use crate::error::{Error, Result};
use crate::sparse::{SparseRow, SparseRows};
use crate::vector;

/// A kernel at sparse rows, [m, D], prepared once for many other rows.
#[derive(Debug)]
pub struct SparseCentres {
    kernel: Kernel,
    rows: SparseRows,
    term: Term,
    /// Scale of all features if there is one gamma: its square root, or gamma itself for absolute differences.
    scale: f64,
    /// Scale of each feature if there is one gamma per feature, `[D]`.
    scales: Vec<f64>,
    /// Features with entries, ascending, `[F]`. No list is as long as the number of features, because a damaged file
    /// may claim any number.
    features: Vec<u32>,
    /// Index of the first entry of each feature in `places` and `values`, and the end of the last, [F + 1].
    starts: Vec<usize>,
    /// Row of each entry, ascending within a feature.
    places: Vec<u32>,
    /// Scaled value of each entry.
    values: Vec<f64>,
    /// Sum of each row against a row of zeros, for products against itself, `[m]`.
    sums: Vec<f64>,
    /// Largest entry of `sums`.
    largest: f64,
    /// Number of entries of the longest row.
    longest: usize,
}

/// A term of the sum over features that a kernel is a function of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Term {
    /// (a - b)^2.
    Square,
    /// |a - b|.
    Absolute,
    /// a b.
    Product,
}

impl Term {
    fn of(kernel: &Kernel) -> Result<Term> {
        match kernel.form() {
            Form::Squares(_) => Ok(Term::Square),
            Form::Absolutes(_) => Ok(Term::Absolute),
            Form::Products(_) => Ok(Term::Product),
            Form::Other => {
                let expected = "another kernel for sparse rows, a function of a sum over features; or dense rows";
                // A periodic kernel alone is a sum of one term.
                let found = if kernel.as_sum().is_some() { "a sum of kernels, or periodic" } else { kernel.name() };
                Err(Error::Parameter { name: "kernel".into(), found: found.into(), expected: expected.into() })
            }
        }
    }

    /// Returns the correction that a feature of both rows adds to the sums of each row.
    #[inline(always)]
    fn shared(self, a: f64, b: f64) -> f64 {
        match self {
            Term::Square => -2.0 * (a * b),
            Term::Absolute => (a - b).abs() - a.abs() - b.abs(),
            Term::Product => a * b,
        }
    }

    /// Returns the term of a row against a row of zeros, for products against itself.
    fn alone(self, a: f64) -> f64 {
        if self == Term::Absolute { a.abs() } else { a * a }
    }
}

impl Kernel {
    /// Checks that the kernel has values between sparse rows.
    ///
    /// # Errors
    /// Returns an error for the linear spline, periodic kernels and sums of kernels.
    #[doc(hidden)]
    pub fn check_sparse(&self) -> Result<()> {
        Term::of(self).map(|_| ())
    }

    /// Returns the function that computes the resolved kernel between dense rows, [B, D], and the sparse rows `b`,
    /// [m, D]: [B, m]. Rows with few zeros are processed as dense ones.
    ///
    /// # Errors
    /// Returns an error for the linear spline, periodic kernels and sums of kernels.
    #[doc(hidden)]
    pub fn at_sparse(&self, b: &SparseRows) -> Result<Fill<'_>> {
        self.check_sparse()?;
        if b.is_nearly_dense() {
            return Ok(self.at(b.to_dense().view()));
        }
        let centres = SparseCentres::new(self, b.clone())?;
        Ok(Box::new(move |rows, phi| {
            let (rows, mut room) = (SparseRows::from_dense(rows), vec![]);
            vector::each_row(phi, |i, out| centres.fill(rows.row(i), None, &mut room, out));
        }))
    }

    /// Returns k(a_i, b_j) of sparse rows, [n, m], for `a`, [n, D], and `b`, [m, D]. The kernel is resolved.
    ///
    /// # Errors
    /// Returns an error for the linear spline, periodic kernels and sums of kernels.
    ///
    /// # Panics
    /// Panics if the rows have different numbers of columns.
    pub fn sparse_values(&self, a: &SparseRows, b: &SparseRows) -> Result<Array2<f64>> {
        assert_eq!(a.ncols(), b.ncols(), "kernel values: a and b have different numbers of features");
        let centres = SparseCentres::new(self, b.clone())?;
        let mut out = Array2::zeros((a.nrows(), b.nrows()));
        out.axis_iter_mut(Axis(0)).into_par_iter().enumerate().for_each_init(Vec::new, |room, (i, out)| {
            centres.fill(a.row(i), None, room, out.into_slice().expect("fresh arrays are contiguous"));
        });
        Ok(out)
    }
}

impl SparseCentres {
    /// Returns the resolved `kernel` prepared at `rows`.
    ///
    /// # Errors
    /// Returns an error for a kernel that is not a function of a sum over features.
    pub fn new(kernel: &Kernel, rows: SparseRows) -> Result<SparseCentres> {
        let term = Term::of(kernel)?;
        let of_term = |gamma: f64| if term == Term::Absolute { gamma } else { gamma.sqrt() };
        let (scale, scales) = match kernel.gamma() {
            Some(Gamma::PerFeature(each)) => (f64::NAN, each.iter().map(|gamma| of_term(*gamma)).collect()),
            Some(gamma) => (of_term(gamma.at(0)), vec![]),
            None => (1.0, vec![]),
        };
        let centres = SparseCentres {
            kernel: kernel.clone(),
            longest: rows.iter().map(|row| row.columns.len()).max().unwrap_or(0),
            rows,
            term,
            scale,
            scales,
            features: vec![],
            starts: vec![],
            places: vec![],
            values: vec![],
            sums: vec![],
            largest: 0.0,
        };
        Ok(centres.with_entries())
    }

    /// Sorts the entries by features, and computes the sums.
    fn with_entries(mut self) -> SparseCentres {
        self.features = self.rows.columns().to_vec();
        self.features.sort_unstable();
        self.features.dedup();
        let mut starts = vec![0; self.features.len() + 1];
        let at = |column: usize| self.features.binary_search(&(column as u32)).expect("every column is listed");
        let slots: Vec<usize> = self.rows.columns().iter().map(|column| at(*column as usize)).collect();
        slots.iter().for_each(|slot| starts[slot + 1] += 1);
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        let (mut next, mut slots) = (starts.clone(), slots.into_iter());
        self.places = vec![0; self.rows.columns().len()];
        self.values = vec![0.0; self.places.len()];
        for (i, row) in self.rows.iter().enumerate() {
            for ((column, value), slot) in row.iter().zip(&mut slots) {
                self.places[next[slot]] = i as u32;
                self.values[next[slot]] = value * self.scale(column);
                next[slot] += 1;
            }
        }
        self.starts = starts;
        self.sums = self.rows.iter().map(|row| self.alone(row)).collect();
        self.largest = self.sums.iter().fold(0.0f64, |l, v| if *v > l || v.is_nan() { *v } else { l });
        self
    }

    fn scale(&self, column: usize) -> f64 {
        self.scales.get(column).copied().unwrap_or(self.scale)
    }

    /// Returns the kernel at the listed rows.
    pub fn select(&self, some: &[usize]) -> SparseCentres {
        SparseCentres::new(&self.kernel, self.rows.select(some)).expect("the kernel has been checked")
    }

    /// Returns the rows.
    pub fn rows(&self) -> &SparseRows {
        &self.rows
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn alone(&self, row: SparseRow) -> f64 {
        row.iter().map(|(column, value)| self.term.alone(value * self.scale(column))).sum()
    }

    /// Returns k(x, x) of each row, `[m]`.
    pub fn diagonal(&self) -> Vec<f64> {
        let mut values = if self.term == Term::Product { self.sums.clone() } else { vec![0.0; self.sums.len()] };
        self.kernel.as_dyn().of_sums(&mut values);
        values
    }

    /// Fills `out` with k(a, c) at the rows c in `at`, or at all rows, in the calling thread alone. `room` is a buffer
    /// of any length.
    pub fn fill(&self, a: SparseRow, at: Option<&[usize]>, room: &mut Vec<f64>, out: &mut [f64]) {
        room.clear();
        room.resize(self.sums.len(), 0.0);
        for (column, value) in a.iter() {
            let Ok(slot) = self.features.binary_search(&(column as u32)) else { continue };
            let (value, range) = (value * self.scale(column), self.starts[slot]..self.starts[slot + 1]);
            for (place, b) in self.places[range.clone()].iter().zip(&self.values[range]) {
                room[*place as usize] += self.term.shared(value, *b);
            }
        }
        match at {
            None => out.copy_from_slice(room),
            Some(at) => out.iter_mut().zip(at).for_each(|(out, c)| *out = room[*c]),
        }
        if self.term != Term::Product {
            self.add_alone(a, at, out);
        }
        self.kernel.as_dyn().of_sums(out);
    }

    /// Adds the sums of both rows. For near rows the result cancels, and is recomputed from the differences.
    fn add_alone(&self, a: SparseRow, at: Option<&[usize]>, out: &mut [f64]) {
        let own = self.alone(a);
        let suspect = (8.0 + (self.longest.max(a.columns.len()) as f64).sqrt()) * f64::EPSILON / TOLERANCE;
        let near = !(suspect * (own + self.largest) <= 1.0);
        for (k, out) in out.iter_mut().enumerate() {
            let c = at.map_or(k, |at| at[k]);
            let sum = *out + (own + self.sums[c]);
            *out = match near && lost(sum, self.sums[c], own, suspect) {
                true => self.exact(a, self.rows.row(c)),
                false => sum.max(0.0),
            };
        }
    }

    /// Returns the sum over features, computed from the differences.
    fn exact(&self, a: SparseRow, b: SparseRow) -> f64 {
        let mut sum = 0.0;
        a.merge(b, |column, a, b| sum += self.term.alone((a - b) * self.scale(column)));
        sum
    }
}
