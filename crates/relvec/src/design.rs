//! The design matrix Phi by blocks of rows, and the products that every algorithm lives on.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::report::Interrupt;

/// Most bytes in one block of rows: large enough for fast products; and its share of the memory limit.
const BLOCK_BYTES: u64 = 1 << 25;
const BLOCK_SHARE: u64 = 16;
/// Rows that one thread fills at a time, and columns that it sums.
const CHUNK_ROWS: usize = 128;
const CHUNK_COLUMNS: usize = 256;

/// The columns before scaling.
#[derive(Debug)]
pub(crate) enum Columns {
    /// A kernel at centres, [L, D].
    Kernel { kernel: Kernel, centres: Array2<f64> },
    /// The columns of the rows themselves.
    Given,
}

/// Phi, [N, P]: column 0 is the bias (if there is one), then the basis functions; every column is
/// divided by its weighted norm. It alone decides what is stored and what is made again.
#[derive(Debug)]
pub(crate) struct Design {
    rows: Array2<f64>,
    columns: Columns,
    bias: bool,
    /// Weighted norms before scaling, `[P]`; 0 for a column that is zero on every row.
    norms: Vec<f64>,
    stored: Option<Array2<f64>>,
    block_rows: usize,
    interrupt: Interrupt,
}

impl Design {
    /// `rows`: [N, D], `weights`: `[N]`. All of Phi is kept if it takes at most a quarter of `memory_limit`.
    pub fn new(
        rows: Array2<f64>,
        columns: Columns,
        bias: bool,
        weights: &[f64],
        memory_limit: u64,
        interrupt: Interrupt,
    ) -> Result<Design> {
        let basis = match &columns {
            Columns::Kernel { centres, .. } => centres.nrows(),
            Columns::Given => rows.ncols(),
        };
        let p = basis + usize::from(bias);
        let block_rows = Design::block_rows(p, memory_limit);
        let mut design = Design { norms: vec![1.0; p], rows, columns, bias, stored: None, block_rows, interrupt };
        if 8 * design.n_rows() as u64 * p as u64 <= memory_limit / 4 {
            design.stored = Some(design.make(0..design.n_rows(), None));
        }
        design.norms = design.column_norms(weights)?;
        if let Some(phi) = design.stored.as_mut() {
            let scale: Array1<f64> = design.norms.iter().map(|n| if *n > 0.0 { 1.0 / n } else { 0.0 }).collect();
            *phi *= &scale;
        }
        Ok(design)
    }

    /// Rows of one block of `columns` columns where a fit may take `memory_limit` bytes.
    pub fn block_rows(columns: usize, memory_limit: u64) -> usize {
        let bytes = BLOCK_BYTES.min(memory_limit / BLOCK_SHARE);
        ((bytes / (8 * columns.max(1) as u64)) as usize).clamp(16, 4096)
    }

    /// Bytes that Phi takes, if it is kept.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, |phi| 8 * phi.len() as u64)
    }

    pub fn n_rows(&self) -> usize {
        self.rows.nrows()
    }

    pub fn n_columns(&self) -> usize {
        self.norms.len()
    }

    /// What each column was divided by, `[P]`; 0 for a column that is zero on every row.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// The rows, [N, D].
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// The kernel and its centres, [L, D]; `None` for given columns.
    pub fn kernel(&self) -> Option<(&Kernel, ArrayView2<'_, f64>)> {
        match &self.columns {
            Columns::Kernel { kernel, centres } => Some((kernel, centres.view())),
            Columns::Given => None,
        }
    }

    /// The listed columns, [N, M].
    pub fn select(&self, columns: &[usize]) -> Array2<f64> {
        match &self.stored {
            Some(phi) => phi.select(Axis(1), columns),
            None => self.make(0..self.n_rows(), Some(columns)),
        }
    }

    /// Calls `each` with consecutive blocks of rows of Phi, [B, P]; blocks depend on sizes alone.
    ///
    /// Once interrupted, it passes over the rest: what the caller sums is incomplete, and is never read,
    /// since every solve refuses then.
    pub fn for_each_block(&self, mut each: impl FnMut(Range<usize>, ArrayView2<f64>)) {
        let step = self.block_rows;
        for start in (0..self.n_rows()).step_by(step) {
            if self.interrupt.is_raised() {
                return;
            }
            let range = start..(start + step).min(self.n_rows());
            match &self.stored {
                Some(phi) => each(range.clone(), phi.slice(s![range, ..])),
                None => each(range.clone(), self.make(range, None).view()),
            }
        }
    }

    /// In one pass: squared norms of all columns weighted by `weights` (`[N]`), `[P]`; Phi'`r`, `[P]`; and
    /// Phi_A' B Phi, [M, P], as [`Design::cross`].
    pub fn moments(&self, weights: &[f64], r: &[f64], active: &[usize]) -> (Vec<f64>, Vec<f64>, Array2<f64>) {
        let p = self.n_columns();
        let mut diag = vec![0.0; p];
        // Phi_A' B and r' beside each other: one product.
        let mut sums = Array2::zeros((active.len() + 1, p));
        self.for_each_block(|range, phi| {
            diag.par_chunks_mut(CHUNK_COLUMNS).enumerate().for_each(|(k, out)| {
                let start = k * CHUNK_COLUMNS;
                for (row, w) in phi.slice(s![.., start..start + out.len()]).outer_iter().zip(&weights[range.clone()]) {
                    out.iter_mut().zip(row).for_each(|(o, v)| *o += w * v * v);
                }
            });
            let mut left = Array2::zeros((range.len(), active.len() + 1));
            left.slice_mut(s![.., ..active.len()]).assign(&self.weighted(&range, phi, weights, active));
            left.column_mut(active.len()).iter_mut().zip(&r[range]).for_each(|(l, r)| *l = *r);
            linalg::product(true, 1.0, left.t(), phi, sums.view_mut());
        });
        let f = sums.row(active.len()).to_vec();
        (diag, f, sums.slice(s![..active.len(), ..]).to_owned())
    }

    /// Phi_A' B Phi, [M, P], for the listed columns A and B = diag(`weights`), `[N]`.
    pub fn cross(&self, weights: &[f64], active: &[usize]) -> Array2<f64> {
        let mut out = Array2::zeros((active.len(), self.n_columns()));
        self.for_each_block(|range, phi| {
            let left = self.weighted(&range, phi, weights, active);
            linalg::product(true, 1.0, left.t(), phi, out.view_mut());
        });
        out
    }

    /// B Phi_A of a block of rows, whose Phi is `phi`.
    fn weighted(&self, range: &Range<usize>, phi: ArrayView2<f64>, weights: &[f64], active: &[usize]) -> Array2<f64> {
        let mut left = phi.select(Axis(1), active);
        for (mut row, w) in left.outer_iter_mut().zip(&weights[range.clone()]) {
            row *= *w;
        }
        left
    }

    /// Rows `range` of the listed columns (all if `None`), divided by the norms.
    fn make(&self, range: Range<usize>, list: Option<&[usize]>) -> Array2<f64> {
        let rows = self.rows.slice(s![range, ..]);
        let bias = usize::from(self.bias);
        let kernels: Option<Vec<usize>> = list.map(|l| l.iter().filter(|j| **j >= bias).map(|j| j - bias).collect());
        let basis: Cow<Array2<f64>> = match (&self.columns, &kernels) {
            (Columns::Kernel { centres, .. }, None) => Cow::Borrowed(centres),
            (Columns::Kernel { centres, .. }, Some(k)) => Cow::Owned(centres.select(Axis(0), k)),
            (Columns::Given, _) => Cow::Owned(Array2::zeros((0, 0))),
        };
        let width = list.map_or(self.n_columns(), <[usize]>::len);
        let mut out = Array2::zeros((rows.nrows(), width));
        let fill = |rows: ArrayView2<f64>, mut out: ArrayViewMut2<f64>| match &self.columns {
            Columns::Given => {
                for (k, mut target) in out.axis_iter_mut(Axis(1)).enumerate() {
                    let j = list.map_or(k, |l| l[k]);
                    if j < bias { target.fill(1.0) } else { target.assign(&rows.column(j - bias)) }
                }
            }
            Columns::Kernel { kernel, .. } => match list {
                None => {
                    out.slice_mut(s![.., ..bias]).fill(1.0);
                    kernel.block(rows, basis.view(), out.slice_mut(s![.., bias..]));
                }
                Some(list) => {
                    let mut block = Array2::zeros((rows.nrows(), basis.nrows()));
                    kernel.block(rows, basis.view(), block.view_mut());
                    let mut next = 0;
                    for (k, j) in list.iter().enumerate() {
                        if *j < bias {
                            out.column_mut(k).fill(1.0);
                        } else {
                            out.column_mut(k).assign(&block.column(next));
                            next += 1;
                        }
                    }
                }
            },
        };
        out.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS)
            .into_par_iter()
            .zip(rows.axis_chunks_iter(Axis(0), CHUNK_ROWS).into_par_iter())
            .for_each(|(mut out, rows)| {
                fill(rows, out.view_mut());
                for mut row in out.outer_iter_mut() {
                    for (k, v) in row.iter_mut().enumerate() {
                        let norm = self.norms[list.map_or(k, |l| l[k])];
                        *v = if norm > 0.0 { *v / norm } else { 0.0 };
                    }
                }
            });
        out
    }

    /// Weighted norms that neither overflow nor vanish: sums of squares relative to the largest entry.
    fn column_norms(&self, weights: &[f64]) -> Result<Vec<f64>> {
        let p = self.n_columns();
        let mut largest = vec![0.0f64; p];
        let mut squares = vec![0.0f64; p];
        let mut bad = None;
        self.for_each_block(|range, phi| {
            let mut block = vec![0.0f64; p];
            for (i, row) in phi.outer_iter().enumerate() {
                for (j, v) in row.iter().enumerate() {
                    if !v.is_finite() {
                        bad.get_or_insert((range.start + i, j));
                    }
                    block[j] = block[j].max(v.abs());
                }
            }
            for j in 0..p {
                if block[j] > largest[j] {
                    let ratio = largest[j] / block[j];
                    squares[j] *= ratio * ratio;
                    largest[j] = block[j];
                }
            }
            for (row, w) in phi.outer_iter().zip(&weights[range]) {
                for (j, v) in row.iter().enumerate() {
                    if largest[j] > 0.0 {
                        let ratio = v / largest[j];
                        squares[j] += w * ratio * ratio;
                    }
                }
            }
        });
        if bad.is_some() {
            return Err(Error::Overflow { what: "a basis function (the kernel of two training rows)".into() });
        }
        Ok(largest.iter().zip(&squares).map(|(l, s)| l * s.sqrt()).collect())
    }
}
