//! The design matrix Phi by blocks of rows, and the products with Phi that all algorithms use.

use std::ops::Range;

use ndarray::{ArcArray2, Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2, s};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::canonical::{all_variance, sparse_variance};
use crate::error::{Error, Result};
use crate::kernel::vector::{self, AddSquares, AddSums, Largest, Scale};
use crate::kernel::{DataScale, Fill, Kernel, SparseCentres};
use crate::linalg;
use crate::report::Interrupt;
use crate::sparse::SparseRows;

/// Number of bytes of a block of rows that is filled and used while it is in the cache.
const BLOCK_BYTES: u64 = 1 << 22;
/// Number of rows of a block, even if it then exceeds [`BLOCK_BYTES`]. With fewer rows, the sums that it is added to
/// would be read too often.
const BLOCK_ROWS: u64 = 512;
/// Largest number of bytes of a block.
const BLOCK_MOST: u64 = 1 << 25;
/// Inverse of the largest share of the memory limit that a block may take.
const BLOCK_SHARE: u64 = 16;
/// Number of entries that one thread fills at a time (256 KB), so that its second sweep over them finds them in its
/// cache.
pub(crate) const CHUNK_ENTRIES: usize = 1 << 15;
/// Rows of a tile (512 KB), which one thread computes and uses while it is in its cache.
pub(crate) const TILE_ROWS: usize = 256;
/// Columns of a tile.
const TILE_COLUMNS: usize = 256;
/// Number of columns that one thread sums at a time.
const CHUNK_COLUMNS: usize = 128;
/// Number of groups of rows or tiles of a pass, so that every thread has work. Groups are summed in parallel and then in
/// order, and depend on sizes alone, so that results do not depend on the number of threads.
pub(crate) const GROUPS: usize = 16;

/// Returns the kernel for `rows`, [N, D], of weights `[N]`, with a number for every parameter.
///
/// # Errors
/// Returns an error that names the largest feature if parameters or values of the kernel overflow or underflow in the
/// units of the features.
pub(crate) fn resolve(kernel: &Kernel, rows: ArrayView2<f64>, weights: &[f64]) -> Result<Kernel> {
    let scale = DataScale { features: rows.ncols(), variance: all_variance(&rows, weights) };
    let kernel = kernel.resolve(&scale).map_err(|error| name_largest(error, rows))?;
    let Some((row, _, largest)) = largest(rows) else { return Ok(kernel) };
    let mut own = Array2::from_elem((1, 1), f64::NAN);
    let row = rows.slice(s![row..=row, ..]);
    kernel.block(row, row, own.view_mut());
    check_own(&kernel, largest, own[[0, 0]]).map_err(|error| name_largest(error, rows))?;
    Ok(kernel)
}

/// Returns the kernel for sparse rows, with a number for every parameter.
///
/// # Errors
/// See [`resolve`]. Returns an error for a kernel without values between sparse rows too.
pub(crate) fn resolve_sparse(kernel: &Kernel, rows: &SparseRows, weights: &[f64]) -> Result<Kernel> {
    kernel.check_sparse()?;
    let entries = rows.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |(column, value)| (i, column, value)));
    let largest = entries.reduce(|best, one| if one.2.abs() > best.2.abs() { one } else { best });
    let scale = DataScale { features: rows.ncols(), variance: sparse_variance(rows, weights) };
    let kernel = kernel.resolve(&scale).map_err(|error| name_feature(error, largest))?;
    let Some((row, _, value)) = largest else { return Ok(kernel) };
    let own = SparseCentres::new(&kernel, rows.select(&[row]))?.diagonal();
    check_own(&kernel, value, own[0]).map_err(|error| name_feature(error, largest))?;
    Ok(kernel)
}

/// Checks `own`, the kernel value of the row with the `largest` feature and itself. If products of features underflow,
/// every basis function would be zero; if they overflow, infinite.
fn check_own(kernel: &Kernel, largest: f64, own: f64) -> Result<()> {
    match largest != 0.0 && !own.is_normal() {
        true => Err(Error::Overflow { what: format!("the kernel value of a row and itself, {},", kernel.name()) }),
        false => Ok(()),
    }
}

/// Adds the largest feature of `rows`, `[N, D]`, to an overflow error.
pub(crate) fn name_largest(error: Error, rows: ArrayView2<f64>) -> Error {
    let largest = if let Error::Overflow { .. } = error { largest(rows) } else { None };
    name_feature(error, largest)
}

/// Adds row, column and value of the largest feature to an overflow error.
fn name_feature(error: Error, largest: Option<(usize, usize, f64)>) -> Error {
    match (error, largest) {
        (Error::Overflow { what }, Some((_, column, value))) => {
            Error::Overflow { what: format!("{what} (the feature of the largest value is column {column}, {value:e})") }
        }
        (error, _) => error,
    }
}

/// Returns row, column and value of the entry of `rows`, `[N, D]`, that is farthest from 0.
fn largest(rows: ArrayView2<f64>) -> Option<(usize, usize, f64)> {
    let mut entries = rows.indexed_iter();
    let first = entries.next()?;
    let ((row, column), value) = entries.fold(first, |best, one| if one.1.abs() > best.1.abs() { one } else { best });
    Some((row, column, *value))
}

/// The source of the basis functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The kernel, centred on each training row.
    #[default]
    Kernel,
    /// The columns of X themselves. X is then a design matrix, for a support vector machine the kernel values between
    /// all rows.
    Given,
}

/// The columns of Phi before scaling.
#[derive(Debug, Clone)]
pub(crate) enum Columns {
    /// A kernel at centres, [L, D].
    Kernel { kernel: Kernel, centres: Array2<f64> },
    /// The columns of the rows themselves.
    Given,
}

/// Function that fills consecutive rows of some columns, from the given row on.
type Filler<'a> = Box<dyn Fn(usize, ArrayViewMut2<f64>) + 'a>;

/// The design matrix Phi, [N, P]. Column 0 is the bias, if there is one; the basis functions follow. Every column is
/// divided by its weighted norm. The design decides which values are stored and which are recomputed.
#[derive(Debug)]
pub(crate) struct Design {
    rows: ArcArray2<f64>,
    columns: Columns,
    bias: bool,
    /// Norms that columns are divided by, `[P]`; 0 for a column that is zero on every row.
    norms: Vec<f64>,
    /// Inverse norms, `[P]`; `None` while all norms are 1.
    scales: Option<Vec<f64>>,
    stored: Option<Array2<f64>>,
    block_rows: usize,
    interrupt: Interrupt,
}

impl Design {
    /// Returns the design on `rows`, [N, D], with `weights`, `[N]`. All of Phi is stored if it takes at most a quarter
    /// of `memory_limit`. Otherwise its norms need an additional pass.
    pub fn new(
        rows: ArcArray2<f64>,
        columns: Columns,
        bias: bool,
        weights: &[f64],
        memory_limit: u64,
        interrupt: Interrupt,
    ) -> Result<Design> {
        let mut design = Design::unscaled(rows, columns, bias, memory_limit, interrupt);
        if 8 * design.n_rows() as u64 * design.n_columns() as u64 <= memory_limit / 4 {
            let phi = design.make(&design.range(0..design.n_columns()));
            design.stored = Some(phi);
        }
        design.set_norms(design.column_norms(weights)?);
        Ok(design)
    }

    /// Returns a design on `rows`, `[N, D]`, that stores no columns and makes no pass. Every norm counts as 1 until it
    /// is known from elsewhere, such as from the diagonal of G, if no square overflows or underflows.
    pub fn unscaled(rows: ArcArray2<f64>, columns: Columns, bias: bool, memory_limit: u64, interrupt: Interrupt) -> Design {
        let basis = match &columns {
            Columns::Kernel { centres, .. } => centres.nrows(),
            Columns::Given => rows.ncols(),
        };
        let p = basis + usize::from(bias);
        let block_rows = Design::block_rows(p, memory_limit);
        Design { rows, columns, bias, norms: vec![1.0; p], scales: None, stored: None, block_rows, interrupt }
    }

    /// Divides the columns, whose norms were 1 so far, by `norms`, `[P]`; 0 marks a column of zeros.
    pub fn set_norms(&mut self, norms: Vec<f64>) {
        let scales: Vec<f64> = norms.iter().map(|n| if *n > 0.0 { 1.0 / n } else { 0.0 }).collect();
        if let Some(phi) = self.stored.as_mut() {
            phi.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().for_each(|chunk| scale(chunk, &scales));
        }
        (self.norms, self.scales) = (norms, Some(scales));
    }

    /// Sets those columns to zero whose entry of `norms`, `[P]`, is 0.
    pub fn refuse(&mut self, norms: &[f64]) {
        let refused: Vec<usize> = (0..norms.len()).filter(|j| norms[*j] == 0.0 && self.norms[*j] > 0.0).collect();
        for j in refused {
            self.norms[j] = 0.0;
            self.scales.iter_mut().for_each(|scales| scales[j] = 0.0);
            if let Some(phi) = self.stored.as_mut() {
                phi.column_mut(j).fill(0.0);
            }
        }
    }

    /// Returns the number of rows of one block of `columns` columns, for a fit that may use `memory_limit` bytes.
    pub fn block_rows(columns: usize, memory_limit: u64) -> usize {
        let row = 8 * columns.max(1) as u64;
        let most = BLOCK_MOST.min(memory_limit / BLOCK_SHARE) / row;
        ((BLOCK_BYTES / row).max(BLOCK_ROWS).min(most) as usize).clamp(16, 4096)
    }

    /// Returns the number of bytes of the stored Phi; 0 if it is not stored.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, |phi| 8 * phi.len() as u64)
    }

    pub fn n_rows(&self) -> usize {
        self.rows.nrows()
    }

    pub fn n_columns(&self) -> usize {
        self.norms.len()
    }

    /// Returns the norms that columns were divided by, `[P]`; 0 for a column that is zero on every row.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// Returns the rows, [N, D].
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// Returns the kernel and its centres, [L, D]; `None` for given columns.
    pub fn kernel(&self) -> Option<(&Kernel, ArrayView2<'_, f64>)> {
        match &self.columns {
            Columns::Kernel { kernel, centres } => Some((kernel, centres.view())),
            Columns::Given => None,
        }
    }

    /// Returns the listed columns, [N, M].
    pub fn select(&self, columns: &[usize]) -> Array2<f64> {
        if self.stored.is_none() {
            return self.make(&self.list(columns));
        }
        let mut out = Array2::zeros((self.n_rows(), columns.len()));
        let fill = self.filler(columns);
        let chunks = out.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().enumerate();
        chunks.for_each(|(k, out)| fill(k * TILE_ROWS, out));
        out
    }

    /// Returns a function that fills consecutive rows of the listed columns, [B, M], from the given row on, in the
    /// calling thread.
    pub fn filler<'a>(&'a self, columns: &'a [usize]) -> impl Fn(usize, ArrayViewMut2<f64>) + Sync + 'a {
        let maker = self.stored.is_none().then(|| self.list(columns));
        move |start, mut out| match (&self.stored, &maker) {
            (Some(stored), _) => {
                for (mut to, from) in out.outer_iter_mut().zip(stored.slice(s![start.., ..]).outer_iter()) {
                    to.iter_mut().zip(columns).for_each(|(to, j)| *to = from[*j]);
                }
            }
            (None, Some(maker)) => maker.fill(start, out),
            (None, None) => unreachable!("columns that are not stored have a maker"),
        }
    }

    /// Calls `each` with consecutive blocks of rows of Phi, [B, P]. Blocks depend on sizes alone.
    ///
    /// After an interrupt the remaining blocks are skipped. Sums of the caller are then incomplete, but nothing uses
    /// them, because every solve returns an error after an interrupt.
    pub fn for_each_block(&self, mut each: impl FnMut(Range<usize>, ArrayView2<f64>)) {
        let (n, step) = (self.n_rows(), self.block_rows);
        let maker = self.stored.is_none().then(|| self.range(0..self.n_columns()));
        // One buffer serves for all blocks, because fresh memory costs as much as filling it.
        let mut buffer = Array2::zeros((maker.as_ref().map_or(0, |_| step.min(n)), self.n_columns()));
        for start in (0..n).step_by(step) {
            if self.interrupt.is_raised() {
                return;
            }
            let range = start..(start + step).min(n);
            match (&self.stored, &maker) {
                (Some(phi), _) => each(range.clone(), phi.slice(s![range, ..])),
                (None, Some(maker)) => {
                    let mut block = buffer.slice_mut(s![..range.len(), ..]);
                    maker.fill_by_all(range.start, block.view_mut());
                    each(range, block.view());
                }
                (None, None) => unreachable!("columns that are not stored have a maker"),
            }
        }
    }

    /// Returns, in one pass, the squared norms of all columns weighted by `weights`, `[N]`, as `[P]`; r'Phi for each
    /// column of `r`, [N, R]; and Phi_A' B Phi, [M, P], see [`Design::cross`].
    pub fn moments(&self, weights: &[f64], r: ArrayView2<f64>, active: &[usize]) -> (Vec<f64>, Vec<Vec<f64>>, Array2<f64>) {
        let (m, p) = (active.len(), self.n_columns());
        let mut sums = self.weighted_products(weights, Some(r), active).into_raw_vec_and_offset().0;
        let diag = sums.split_off((m + r.ncols()) * p);
        let f = sums.split_off(m * p).chunks(p).map(<[f64]>::to_vec).collect();
        (diag, f, Array2::from_shape_vec((m, p), sums).expect("M rows of P numbers"))
    }

    /// Returns Phi_A' B Phi, [M, P], for the listed columns A and B = diag(`weights`), `[N]`.
    pub fn cross(&self, weights: &[f64], active: &[usize]) -> Array2<f64> {
        self.weighted_products(weights, None, active)
    }

    /// Returns, in one pass, the squared norms of all columns weighted by `weights`, `[N]`, as `[P]`; and `left`' Phi,
    /// [K, P], for any `left`, [N, K].
    pub fn products(&self, weights: &[f64], left: ArrayView2<f64>) -> (Vec<f64>, Array2<f64>) {
        let (k, p) = (left.ncols(), self.n_columns());
        let slice = |rows: Range<usize>| CowArray::from(left.slice_move(s![rows, ..]));
        let mut sums = self.by_tiles(weights, k, true, &slice).into_raw_vec_and_offset().0;
        let diag = sums.split_off(k * p);
        (diag, Array2::from_shape_vec((k, p), sums).expect("K rows of P numbers"))
    }

    /// Returns Phi_A' B Phi, [M, P]. With `r`, [N, R], rows for r'Phi and the weighted squares of the columns follow:
    /// [M + R + 1, P].
    fn weighted_products(&self, weights: &[f64], r: Option<ArrayView2<f64>>, active: &[usize]) -> Array2<f64> {
        let maker = self.list(active);
        let left = |rows: Range<usize>| CowArray::from(self.left_side(rows, &maker, weights, r, active));
        self.by_tiles(weights, active.len() + r.map_or(0, |r| r.ncols()), r.is_some(), &left)
    }

    /// Returns left' Phi, [K, P], and with `with_squares` a last row of the weighted squares of the columns. `left`
    /// returns rows of a matrix with K columns.
    ///
    /// Phi is computed in tiles, each of which is used while it is in the cache of one thread. A task is a group of
    /// columns; if there are few groups, it is a group of rows as well. Sums over groups of rows are added in the order
    /// of the rows.
    fn by_tiles<'l>(
        &self,
        weights: &[f64],
        left_columns: usize,
        with_squares: bool,
        left: &(dyn Fn(Range<usize>) -> CowArray<'l, f64, Ix2> + Sync),
    ) -> Array2<f64> {
        let (n, p) = (self.n_rows(), self.n_columns());
        let width = even_part(p, TILE_COLUMNS);
        let groups = GROUPS.div_ceil(p.div_ceil(width).max(1)).min(n.div_ceil(4 * TILE_ROWS)).max(1);
        let group_rows = n.div_ceil(groups).max(1);
        // The left side is stored for as many rows at a time as a block may take.
        let left_rows = (self.block_rows * p / left_columns.max(1) / groups).clamp(TILE_ROWS, group_rows.max(TILE_ROWS));
        let height = left_columns + usize::from(with_squares);
        let mut parts: Vec<Array2<f64>> = (0..groups).map(|_| Array2::zeros((height, p))).collect();
        parts.par_iter_mut().enumerate().for_each(|(g, part)| {
            let rows = (g * group_rows).min(n)..((g + 1) * group_rows).min(n);
            for start in rows.clone().step_by(left_rows) {
                let rows = start..(start + left_rows).min(rows.end);
                let left = left(rows.clone());
                part.axis_chunks_iter_mut(Axis(1), width).into_par_iter().enumerate().for_each(|(k, out)| {
                    let columns = k * width..k * width + out.ncols();
                    self.tile_products(rows.clone(), columns, left.view(), weights, out);
                });
            }
        });
        let mut parts = parts.into_iter();
        let mut total = parts.next().expect("at least one group");
        parts.for_each(|part| total += &part);
        total
    }

    /// Returns B Phi_A of some rows, [n, M], or with r beside it, [n, M + R].
    fn left_side(
        &self,
        rows: Range<usize>,
        maker: &Maker,
        weights: &[f64],
        r: Option<ArrayView2<f64>>,
        active: &[usize],
    ) -> Array2<f64> {
        let m = active.len();
        let mut left = Array2::zeros((rows.len(), m + r.map_or(0, |r| r.ncols())));
        left.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().enumerate().for_each(|(k, mut left)| {
            let start = rows.start + k * TILE_ROWS;
            let mut phi = left.slice_mut(s![.., ..m]);
            match &self.stored {
                None => maker.fill(start, phi.view_mut()),
                Some(stored) => {
                    for (mut to, from) in phi.outer_iter_mut().zip(stored.slice(s![start.., ..]).outer_iter()) {
                        to.iter_mut().zip(active).for_each(|(to, j)| *to = from[*j]);
                    }
                }
            }
            for (mut row, w) in phi.outer_iter_mut().zip(&weights[start..]) {
                row *= *w;
            }
            if let Some(r) = r {
                let end = start + left.nrows();
                left.slice_mut(s![.., m..]).assign(&r.slice(s![start..end, ..]));
            }
        });
        left
    }

    /// Adds left' Phi to `out`, `[K, C]`, for B rows and C columns of Phi, with `left`, `[B, K]`. If `out` is `[K + 1,
    /// C]`, the weighted squares of Phi are added to its last row.
    fn tile_products(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        left: ArrayView2<f64>,
        weights: &[f64],
        mut out: ArrayViewMut2<f64>,
    ) {
        // Sums are accumulated in an array of their own, because rows of `out` are far apart.
        let mut sums = Array2::zeros((left.ncols(), columns.len()));
        let (mut squares, ones) = (vec![0.0; columns.len()], vec![1.0; columns.len()]);
        let with_squares = out.nrows() > left.ncols();
        self.for_each_tile(rows.clone(), columns, |start, tile| {
            let left = left.slice(s![start - rows.start..start - rows.start + tile.nrows(), ..]);
            linalg::product_alone(true, left.t(), tile, sums.view_mut());
            if with_squares {
                vector::run(AddSquares { w: &weights[start..], phi: tile, unit: &ones, out: &mut squares });
            }
        });
        let mut top = out.slice_mut(s![..left.ncols(), ..]);
        top += &sums;
        if with_squares {
            out.row_mut(left.ncols()).iter_mut().zip(squares).for_each(|(o, v)| *o += v);
        }
    }

    /// Calls `each` with the first row and the entries, `[B, C]`, of consecutive tiles of C columns, in the calling
    /// thread.
    fn for_each_tile(&self, rows: Range<usize>, columns: Range<usize>, mut each: impl FnMut(usize, ArrayView2<f64>)) {
        let fill: Option<Filler> = match &self.stored {
            Some(_) => None,
            None => {
                let maker = self.range(columns.clone());
                Some(Box::new(move |start, out| maker.fill(start, out)))
            }
        };
        let mut buffer = Array2::zeros((fill.as_ref().map_or(0, |_| TILE_ROWS.min(rows.len())), columns.len()));
        for start in rows.clone().step_by(TILE_ROWS) {
            if self.interrupt.is_raised() {
                return;
            }
            let end = (start + TILE_ROWS).min(rows.end);
            match (&fill, &self.stored) {
                (Some(fill), _) => {
                    let mut tile = buffer.slice_mut(s![..end - start, ..]);
                    fill(start, tile.view_mut());
                    each(start, tile.view());
                }
                (None, Some(phi)) => each(start, phi.slice(s![start..end, columns.clone()])),
                (None, None) => unreachable!("columns that are not stored have a maker"),
            }
        }
    }

    /// Returns all rows of the C columns of `maker`, `[N, C]`, computed by all threads.
    fn make(&self, maker: &Maker) -> Array2<f64> {
        let mut out = Array2::zeros((self.n_rows(), maker.width));
        maker.fill_by_all(0, out.view_mut());
        out
    }

    /// Returns the maker of consecutive columns.
    fn range(&self, columns: Range<usize>) -> Maker<'_> {
        let first = usize::from(self.bias);
        let mut maker = Maker::of(self, columns.clone());
        if columns.start < first && !columns.is_empty() {
            maker.push(1, Part::Ones);
        }
        let basis = columns.start.max(first) - first..columns.end.max(first) - first;
        match &self.columns {
            Columns::Given => maker.push(basis.len(), Part::Given(basis.collect())),
            Columns::Kernel { kernel, centres } => {
                maker.push(basis.len(), Part::Kernel(kernel.at(centres.slice(s![basis, ..]))));
            }
        }
        maker
    }

    /// Returns the maker of the listed columns.
    fn list(&self, columns: &[usize]) -> Maker<'_> {
        let first = usize::from(self.bias);
        let mut maker = Maker::of(self, columns.iter().copied());
        // The list is split into runs of basis functions and runs of the bias.
        for run in columns.chunk_by(|a, b| (*a < first) == (*b < first)) {
            let basis = || run.iter().map(|j| j - first).collect::<Vec<_>>();
            let part = match &self.columns {
                _ if run[0] < first => Part::Ones,
                Columns::Given => Part::Given(basis()),
                Columns::Kernel { kernel, centres } => Part::Kernel(kernel.at(centres.select(Axis(0), &basis()).view())),
            };
            maker.push(run.len(), part);
        }
        maker
    }

    /// Returns the weighted norms of the columns, `[P]`. Sums of squares are relative to the largest entry, so that
    /// they neither overflow nor underflow.
    fn column_norms(&self, weights: &[f64]) -> Result<Vec<f64>> {
        let (n, p) = (self.n_rows(), self.n_columns());
        let width = even_part(p, TILE_COLUMNS);
        let groups = GROUPS.div_ceil(p.div_ceil(width).max(1)).min(n.div_ceil(4 * TILE_ROWS)).max(1);
        let group_rows = n.div_ceil(groups).max(1);
        let mut parts = vec![vec![Norm::default(); p]; groups];
        parts.par_iter_mut().enumerate().for_each(|(g, part)| {
            let rows = (g * group_rows).min(n)..((g + 1) * group_rows).min(n);
            part.par_chunks_mut(width).enumerate().for_each(|(k, out)| {
                let columns = k * width..k * width + out.len();
                self.for_each_tile(rows.clone(), columns, |start, tile| Norm::add(out, tile, &weights[start..]));
            });
        });
        let mut parts = parts.into_iter();
        let mut total = parts.next().expect("at least one group");
        parts.for_each(|part| total.iter_mut().zip(part).for_each(|(t, n)| t.merge(n)));
        if total.iter().any(|t| !t.largest.is_finite()) {
            return Err(Error::Overflow { what: "a basis function (the kernel of two training rows)".into() });
        }
        Ok(total.iter().map(Norm::value).collect())
    }
}

/// Adds sum_i w_i phi_ij to `out`, `[P]`, which is w'Phi for a block of rows `phi`, [B, P], of consecutive numbers.
pub(crate) fn add_sums(w: &[f64], phi: ArrayView2<f64>, out: &mut [f64]) {
    out.par_chunks_mut(CHUNK_COLUMNS).enumerate().for_each(|(k, out)| {
        let start = k * CHUNK_COLUMNS;
        vector::run(AddSums { w, phi: phi.slice(s![.., start..start + out.len()]), out });
    });
}

/// Returns the size of the parts, at most `most`, into which `whole` is divided about evenly.
fn even_part(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).max(1)).max(1)
}

/// Multiplies the C columns of `block`, `[B, C]`, by `scales`.
fn scale(block: ArrayViewMut2<f64>, scales: &[f64]) {
    vector::each_row(block, |_, out| vector::run(Scale { times: scales, out }));
}

/// Some columns of Phi, prepared to be computed for any rows.
struct Maker<'a> {
    rows: ArrayView2<'a, f64>,
    parts: Vec<(Range<usize>, Part<'a>)>,
    width: usize,
    scales: Option<Vec<f64>>,
}

enum Part<'a> {
    Ones,
    /// Columns of the rows.
    Given(Vec<usize>),
    Kernel(Fill<'a>),
}

impl<'a> Maker<'a> {
    /// Returns a maker without parts. `columns` are the columns of the design that will be added.
    fn of(design: &'a Design, columns: impl Iterator<Item = usize>) -> Maker<'a> {
        let scales = design.scales.as_ref().map(|s| columns.map(|j| s[j]).collect());
        Maker { rows: design.rows.view(), parts: vec![], width: 0, scales }
    }

    fn push(&mut self, width: usize, part: Part<'a>) {
        self.parts.push((self.width..self.width + width, part));
        self.width += width;
    }

    /// Fills `out`, [n, width], for consecutive rows from `start` on, in the calling thread.
    fn fill(&self, start: usize, mut out: ArrayViewMut2<f64>) {
        let rows = self.rows.slice(s![start..start + out.nrows(), ..]);
        for (columns, part) in &self.parts {
            let mut out = out.slice_mut(s![.., columns.clone()]);
            match part {
                Part::Ones => out.fill(1.0),
                Part::Given(list) => {
                    for (mut to, from) in out.outer_iter_mut().zip(rows.outer_iter()) {
                        to.iter_mut().zip(list).for_each(|(to, j)| *to = from[*j]);
                    }
                }
                Part::Kernel(fill) => fill(rows, out),
            }
        }
        if let Some(scales) = &self.scales {
            scale(out, scales);
        }
    }

    /// Fills `out`, `[B, C]`, with the rows from `start` on, by chunks of rows in all threads.
    fn fill_by_all(&self, start: usize, mut out: ArrayViewMut2<f64>) {
        let chunk = (CHUNK_ENTRIES / self.width.max(1)).clamp(8, 256);
        let chunks = out.axis_chunks_iter_mut(Axis(0), chunk).into_par_iter().enumerate();
        chunks.for_each(|(k, out)| self.fill(start + k * chunk, out));
    }
}

/// A sum of squares in units of the square of a power of 2, which is close to the largest entry.
#[derive(Debug, Clone, Copy, Default)]
struct Norm {
    /// The largest magnitude; infinite if an entry is NaN.
    largest: f64,
    squares: f64,
}

impl Norm {
    /// Adds a tile, `[B, C]`, with a column per norm, weighted by row.
    fn add(norms: &mut [Norm], tile: ArrayView2<f64>, weights: &[f64]) {
        let mut largest = vec![0.0f64; norms.len()];
        vector::run(Largest { phi: tile, out: &mut largest });
        for (norm, largest) in norms.iter_mut().zip(&largest) {
            norm.merge(Norm { largest: *largest, squares: 0.0 });
        }
        let inverse: Vec<f64> = norms.iter().map(|n| 1.0 / n.unit()).collect();
        let mut squares = vec![0.0; norms.len()];
        vector::run(AddSquares { w: weights, phi: tile, unit: &inverse, out: &mut squares });
        norms.iter_mut().zip(squares).for_each(|(n, s)| n.squares += s);
    }

    /// Returns the power of 2 at or just below the largest entry, or the smallest normal number.
    fn unit(&self) -> f64 {
        let exponent = self.largest.min(f64::MAX).to_bits() >> 52;
        f64::from_bits(exponent.max(1) << 52)
    }

    fn merge(&mut self, other: Norm) {
        let mut other = other;
        if other.largest > self.largest {
            std::mem::swap(self, &mut other);
        }
        let ratio = other.unit() / self.unit();
        self.squares += other.squares * ratio * ratio;
    }

    fn value(&self) -> f64 {
        self.unit() * self.squares.sqrt()
    }
}
