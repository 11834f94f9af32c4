//! Rows of the kernel matrix, computed in blocks by all threads and cached while there is room.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernel::vector::{self, AddSums};
use crate::kernel::{Fill, Kernel, SparseCentres};
use crate::report::Interrupt;

/// Rows of a tile (128 KB), which one thread computes and copies while it is in its cache.
const TILE_ROWS: usize = 16;
/// Columns of a tile.
const TILE_COLUMNS: usize = 1024;
/// Rows of a tile of a product.
const PRODUCT_ROWS: usize = 128;
/// Marks a column without a cached kernel value.
const NOWHERE: u32 = u32::MAX;

/// Distinct points, and the kernel between them.
#[derive(Debug)]
pub(crate) enum Points {
    /// A kernel with a number for every parameter, at points [L, D].
    Kernel { kernel: Kernel, x: Array2<f64> },
    /// A kernel with a number for every parameter, at sparse points.
    Sparse(SparseCentres),
    /// The kernel values themselves, [L, L], with contiguous rows.
    Given(Array2<f64>),
}

impl Points {
    /// Returns points given by the kernel values between them, `[N, N]`, which are stored in standard layout.
    pub fn given(values: Array2<f64>) -> Points {
        Points::Given(values.as_standard_layout().into_owned())
    }

    pub fn count(&self) -> usize {
        match self {
            Points::Kernel { x, .. } => x.nrows(),
            Points::Sparse(points) => points.rows().nrows(),
            Points::Given(values) => values.nrows(),
        }
    }

    /// Returns the listed points.
    pub fn select(&self, some: &[usize]) -> Points {
        match self {
            Points::Kernel { kernel, x } => Points::Kernel { kernel: kernel.clone(), x: x.select(Axis(0), some) },
            Points::Sparse(points) => Points::Sparse(points.select(some)),
            Points::Given(values) => {
                // Rows are copied in few pieces, because points of a class have consecutive numbers.
                let pieces: Vec<&[usize]> = some.chunk_by(|a, b| a + 1 == *b).collect();
                let mut square = Vec::with_capacity(some.len() * some.len());
                for i in some {
                    let row = values.row(*i);
                    let row = row.as_slice().expect("rows are contiguous");
                    pieces.iter().for_each(|piece| square.extend_from_slice(&row[piece[0]..piece[0] + piece.len()]));
                }
                Points::Given(Array2::from_shape_vec((some.len(), some.len()), square).expect("a row for each"))
            }
        }
    }

    /// Returns points given by all kernel values; `None` after an interrupt.
    ///
    /// # Errors
    /// Returns an error for a kernel value that is not finite.
    pub fn values(&self, interrupt: &Interrupt) -> Result<Option<Points>> {
        let all: Vec<usize> = (0..self.count()).collect();
        let tiles = self.tiles(&all);
        let mut values = Array2::zeros((all.len(), all.len()));
        let blocks = values.axis_chunks_iter_mut(Axis(0), PRODUCT_ROWS).into_par_iter().zip(all.par_chunks(PRODUCT_ROWS));
        let good = blocks.map(|(mut rows, at)| {
            if interrupt.is_raised() {
                return true;
            }
            for (tile, out) in tiles.iter().zip(rows.axis_chunks_iter_mut(Axis(1), self.tile_width(all.len()))) {
                tile.fill(at, out);
            }
            rows.iter().all(|v| v.is_finite())
        });
        if !good.reduce(|| true, |a, b| a & b) {
            return Err(overflow());
        }
        Ok((!interrupt.is_raised()).then_some(Points::Given(values)))
    }

    /// Returns the number of columns of a tile. For sparse points it is all columns, because one sweep over the entries
    /// of a row serves for all.
    fn tile_width(&self, columns: usize) -> usize {
        let most = if let Points::Sparse(_) = self { columns } else { columns.min(TILE_COLUMNS) };
        most.max(1)
    }

    /// Returns the tiles that compute the kernel values of points at these `columns`, of [`Points::tile_width`] columns
    /// each.
    fn tiles<'a>(&'a self, columns: &'a [usize]) -> Vec<Tile<'a>> {
        let tile = |columns: &'a [usize]| match self {
            Points::Kernel { kernel, x } => Tile::Kernel { x: x.view(), fill: kernel.at(x.select(Axis(0), columns).view()) },
            Points::Sparse(points) => Tile::Sparse { points, columns },
            Points::Given(values) => Tile::Given { values: values.view(), columns },
        };
        columns.par_chunks(self.tile_width(columns.len())).map(tile).collect()
    }

    /// Returns k(x, x) of each point, `[L]`.
    pub fn diagonal(&self) -> Vec<f64> {
        match self {
            Points::Given(values) => values.diag().to_vec(),
            Points::Sparse(points) => points.diagonal(),
            Points::Kernel { kernel, x } => {
                let mut square = Array2::zeros((TILE_ROWS, TILE_ROWS));
                let blocks = x.axis_chunks_iter(Axis(0), TILE_ROWS);
                blocks
                    .flat_map(|rows| {
                        let mut square: ArrayViewMut2<f64> = square.slice_mut(s![..rows.nrows(), ..rows.nrows()]);
                        kernel.block(rows, rows, square.view_mut());
                        square.diag().to_vec()
                    })
                    .collect()
            }
        }
    }

    /// Returns the largest |k(x, x)|.
    pub fn largest(&self) -> f64 {
        self.diagonal().into_iter().fold(0.0, |largest: f64, k| largest.max(k.abs()))
    }

    /// Returns sum_c beta_c k(a, c) at the points `at`, over the points c with beta_c not 0; `beta` is `[L]`.
    pub fn times(&self, at: &[usize], beta: &[f64]) -> Vec<f64> {
        let centres: Vec<usize> = (0..beta.len()).filter(|c| beta[*c] != 0.0).collect();
        let weights: Vec<f64> = centres.iter().map(|c| beta[*c]).collect();
        let (tiles, width) = (self.tiles(&centres), self.tile_width(centres.len()));
        let mut out = vec![0.0; at.len()];
        out.par_chunks_mut(PRODUCT_ROWS).zip(at.par_chunks(PRODUCT_ROWS)).for_each_init(
            || Array2::zeros((PRODUCT_ROWS, width)),
            |values, (out, at)| {
                for (tile, weights) in tiles.iter().zip(weights.chunks(width)) {
                    let mut values = values.slice_mut(s![..at.len(), ..weights.len()]);
                    tile.fill(at, values.view_mut());
                    for (out, row) in out.iter_mut().zip(values.outer_iter()) {
                        *out += row.iter().zip(weights).map(|(k, w)| k * w).sum::<f64>();
                    }
                }
            },
        );
        out
    }
}

/// Some columns of the kernel matrix, prepared to be computed for any points.
enum Tile<'a> {
    Kernel { x: ArrayView2<'a, f64>, fill: Fill<'a> },
    Sparse { points: &'a SparseCentres, columns: &'a [usize] },
    Given { values: ArrayView2<'a, f64>, columns: &'a [usize] },
}

impl Tile<'_> {
    fn fill(&self, at: &[usize], mut out: ArrayViewMut2<f64>) {
        match self {
            Tile::Kernel { x, fill } => fill(x.select(Axis(0), at).view(), out),
            Tile::Sparse { points, columns } => {
                let mut room = vec![];
                vector::each_row(out, |i, out| points.fill(points.rows().row(at[i]), Some(columns), &mut room, out));
            }
            Tile::Given { values, columns } => {
                for (mut out, i) in out.outer_iter_mut().zip(at) {
                    let row = values.row(*i);
                    let row = row.as_slice().expect("rows are contiguous");
                    out.iter_mut().zip(*columns).for_each(|(out, j)| *out = row[*j]);
                }
            }
        }
    }
}

/// Cached rows of the kernel matrix at some of the columns. The least recently used rows are removed first.
pub(crate) struct Rows<'a> {
    points: &'a Points,
    /// Numbers of the points that are columns, ascending.
    columns: Vec<usize>,
    /// Largest number of values in all cached rows.
    room: usize,
    /// Cached row of each point, `[L]`.
    kept: Vec<Option<Vec<f64>>>,
    used: Vec<u64>,
    clock: u64,
    /// Buffers of removed rows.
    spare: Vec<Vec<f64>>,
}

impl<'a> Rows<'a> {
    /// Returns an empty cache; `room` is the largest number of values in it.
    pub fn new(points: &'a Points, room: usize) -> Rows<'a> {
        let count = points.count();
        Rows {
            points,
            columns: (0..count).collect(),
            room,
            kept: vec![None; count],
            used: vec![0; count],
            clock: 0,
            spare: vec![],
        }
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns the number of rows that fit into the cache.
    pub fn capacity(&self) -> usize {
        self.room / self.columns.len().max(1)
    }

    /// Returns the row of a point that the last [`Rows::fetch`] requested.
    pub fn row(&self, point: usize) -> &[f64] {
        match self.given() {
            Some(values) => values.row(point).to_slice().expect("rows are contiguous"),
            None => self.kept[point].as_deref().expect("the row was fetched"),
        }
    }

    /// Returns the kernel values, `[N, N]`, if they are given for all columns. Their rows need no cache.
    fn given(&self) -> Option<&'a Array2<f64>> {
        match self.points {
            Points::Given(values) if self.columns.len() == values.nrows() => Some(values),
            _ => None,
        }
    }

    /// Computes the rows of these distinct points that are not cached.
    ///
    /// # Errors
    /// Returns an error for a kernel value that is not finite.
    pub fn fetch(&mut self, wanted: &[usize]) -> Result<()> {
        if self.given().is_some() {
            return Ok(());
        }
        self.clock += 1;
        wanted.iter().for_each(|point| self.used[*point] = self.clock);
        let missing: Vec<usize> = wanted.iter().copied().filter(|point| self.kept[*point].is_none()).collect();
        self.make_room(missing.len());
        let width = self.columns.len();
        let mut fresh: Vec<Vec<f64>> = missing
            .iter()
            .map(|_| {
                let mut row = self.spare.pop().unwrap_or_default();
                row.resize(width, 0.0);
                row
            })
            .collect();
        let parts: Vec<&mut [f64]> = fresh.iter_mut().map(Vec::as_mut_slice).collect();
        fill(self.points, &missing, &self.columns, parts)?;
        for (point, row) in missing.into_iter().zip(fresh) {
            self.kept[point] = Some(row);
        }
        Ok(())
    }

    /// Removes the least recently used rows until there is room for this many more.
    fn make_room(&mut self, more: usize) {
        let mut kept: Vec<usize> = (0..self.kept.len()).filter(|p| self.kept[*p].is_some()).collect();
        let over = (kept.len() + more).saturating_sub(self.capacity());
        if over == 0 {
            return;
        }
        // The rows that are requested now have the present time and come last.
        kept.sort_unstable_by_key(|p| (self.used[*p], *p));
        for point in kept.into_iter().take(over).filter(|p| self.used[*p] < self.clock) {
            self.spare.extend(self.kept[point].take());
        }
        self.spare.truncate(more);
    }

    /// Changes the columns of the rows, which must ascend. Missing values of cached rows are computed.
    ///
    /// # Errors
    /// Returns an error for a kernel value that is not finite.
    pub fn set_columns(&mut self, columns: Vec<usize>) -> Result<()> {
        let mut place = vec![NOWHERE; self.points.count()];
        self.columns.iter().enumerate().for_each(|(k, c)| place[*c] = k as u32);
        let known: Vec<u32> = columns.iter().map(|c| place[*c]).collect();
        let missing: Vec<usize> = columns.iter().copied().filter(|c| place[*c] == NOWHERE).collect();
        self.columns = columns;
        self.spare.clear();
        self.make_room(0);
        let points: Vec<usize> = (0..self.kept.len()).filter(|p| self.kept[*p].is_some()).collect();
        let mut values = Array2::zeros((points.len(), missing.len()));
        if !missing.is_empty() {
            let parts = values.outer_iter_mut().map(|row| row.into_slice().expect("fresh arrays are contiguous")).collect();
            fill(self.points, &points, &missing, parts)?;
        }
        for (point, values) in points.iter().zip(values.outer_iter()) {
            let old = self.kept[*point].take().expect("it is kept");
            let mut values = values.into_iter();
            let merge = |k: &u32| if *k == NOWHERE { values.next().copied().unwrap_or(0.0) } else { old[*k as usize] };
            self.kept[*point] = Some(known.iter().map(merge).collect());
        }
        Ok(())
    }
}

/// Computes the kernel values of `points` at `columns`, with a row of values for each point in `of`.
fn fill(points: &Points, of: &[usize], columns: &[usize], rows: Vec<&mut [f64]>) -> Result<()> {
    if of.is_empty() {
        return Ok(());
    }
    let (tiles, width) = (points.tiles(columns), points.tile_width(columns.len()));
    // Each tile is a task; it consists of pieces of TILE_ROWS rows.
    let mut tasks: Vec<(usize, usize, Vec<&mut [f64]>)> = vec![];
    for (r, rows) in rows.into_iter().enumerate() {
        for (c, piece) in rows.chunks_mut(width).enumerate() {
            let task = (r / TILE_ROWS) * tiles.len() + c;
            match tasks.get_mut(task) {
                Some((.., pieces)) => pieces.push(piece),
                None => tasks.push((r, c, vec![piece])),
            }
        }
    }
    let good = tasks
        .into_par_iter()
        .map_init(
            || Array2::zeros((TILE_ROWS, width)),
            |tile, (row, c, pieces)| {
                let mut tile = tile.slice_mut(s![..pieces.len(), ..pieces[0].len()]);
                tiles[c].fill(&of[row..row + pieces.len()], tile.view_mut());
                for (piece, values) in pieces.into_iter().zip(tile.outer_iter()) {
                    piece.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
                }
                tile.iter().all(|v| v.is_finite())
            },
        )
        .reduce(|| true, |a, b| a & b);
    if good { Ok(()) } else { Err(overflow()) }
}

fn overflow() -> Error {
    Error::Overflow { what: "a kernel value between two rows".into() }
}

/// Adds sum_i w_i row_i to `out`; `rows` have the length of `out`.
pub(crate) fn add_rows(rows: &[&[f64]], w: &[f64], out: &mut [f64]) {
    out.par_chunks_mut(TILE_COLUMNS).enumerate().for_each(|(k, out)| {
        let range = k * TILE_COLUMNS..k * TILE_COLUMNS + out.len();
        for (row, w) in rows.iter().zip(w) {
            let phi = ArrayView2::from_shape((1, out.len()), &row[range.clone()]).expect("one row");
            vector::run(AddSums { w: std::slice::from_ref(w), phi, out });
        }
    });
}
