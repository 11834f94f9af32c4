//! Dense linear algebra: products, Cholesky factors with reported jitter, triangular solves and QR.
//!
//! No other file uses the linear-algebra crates. Matrices are row-major.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor;
use faer::linalg::{triangular_inverse, triangular_solve};
use faer::{Accum, MatMut, MatRef, Par};
use gemm::Parallelism;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, s};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::memory;

/// Largest jitter, relative to a unit-norm diagonal; a larger one would change the model.
pub(crate) const MAX_JITTER: f64 = 1e-11;
/// Number of multiply-adds below which two threads that wait for each other are slower than one.
const PARALLEL_FLOPS: f64 = 1e7;
/// Number of multiply-adds below which separate tasks are slower than one.
const PARALLEL_TASKS: f64 = 3e6;
/// Largest number of columns of one task.
const MOST_PART: usize = 192;
/// Number of columns below which a task is not divided further to have more tasks.
const LEAST_PART: usize = 64;
/// Divisor of the sides of parts. The registers of a kernel hold this many neighbours, or twice as many.
const STEP: usize = 24;
/// Number of rows of a symmetric product that are summed at a time, so that the data which its parts share stay in the
/// cache of a core.
const FEW_ROWS: usize = 160;
/// Multiply-adds after which the threads wait for each other.
const SHARED_FLOPS: f64 = 3e7;
/// Largest multiple of [`FEW_ROWS`] rows that is processed before the threads wait for each other.
const MOST_ROWS: f64 = 32.0;
/// Length from which on all sides of a product must be for packing of scattered factors to pay.
const LEAST_PACKED: usize = 16;
/// Size up to which squares on the diagonal of a symmetric product are computed whole.
const LEAST_SQUARE: usize = 24;

/// Returns true if scattered factors are packed. faer's kernels for AVX-512 read both factors in place at full speed.
/// Its kernels for AVX2 are a third slower if neighbours in the sum are far apart, as in a'b. The crate that faer uses
/// on other processors copies factors first, and is not slower.
#[cfg(target_arch = "x86_64")]
fn packs() -> bool {
    !std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn packs() -> bool {
    true
}

/// Sides of a product that is large enough for the matrix crate to use its workspace, with a wide margin.
const LARGE_SIDE: usize = 64;

/// Starts threads for fits and predictions; `None` starts as many as there are processors.
///
/// If the system limits the address space of the process (`ulimit -v`), the threads reserve here what matrix products
/// will need. A failed reservation during the work would end the process.
///
/// # Errors
/// [`Error::Parameter`]: more threads than can be started. [`Error::Memory`]: more threads than the address space has
/// room for.
pub fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool> {
    let count = threads.unwrap_or(0);
    let start = || {
        rayon::ThreadPoolBuilder::new().num_threads(count).build().map_err(|e| Error::Parameter {
            name: "threads".into(),
            found: count.to_string(),
            expected: format!("a number of threads that the system can start ({e})"),
        })
    };
    let Some(limit) = memory::address_space() else { return start() };
    // No other caller starts threads in the meantime, so that the requested address space is available.
    let _alone = memory::one_at_a_time();
    let pool = start()?;
    // Each thread has now taken the space that the allocator reserves for a thread.
    on_each(&pool, || drop(std::hint::black_box(vec![0u8])));
    let turn = Mutex::new(());
    let refused = on_each(&pool, move || {
        let _turn = turn.lock().unwrap_or_else(|e| e.into_inner());
        memory::take_workspace(|| {
            let a = Array2::zeros((LARGE_SIDE, LARGE_SIDE));
            let mut out = a.clone();
            matmul(view_mut(&mut out.view_mut()), Accum::Replace, view(&a.view()), view(&a.view()), 1.0, Par::Seq);
        })
    });
    let refused = refused.into_iter().filter(|taken| !taken).count() as u64;
    if refused == 0 {
        return Ok(pool);
    }
    let threads = pool.current_num_threads();
    let what = format!(
        "matrix products of {threads} threads within the address space that the system allows (ulimit -v); use fewer threads \
         (threads = 1)"
    );
    Err(Error::Memory { what, needed: memory::with_workspaces(refused), limit })
}

/// Runs `task` in each thread of a pool. A worker of another pool that waits here does no other work meanwhile.
fn on_each<T: Send + 'static>(pool: &rayon::ThreadPool, task: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    let (sender, receiver) = channel();
    pool.spawn_broadcast(move |_| {
        let _ = sender.send(task());
    });
    receiver.into_iter().collect()
}

fn par(multiply_adds: f64) -> Par {
    if multiply_adds < PARALLEL_FLOPS || rayon::current_num_threads() < 2 { Par::Seq } else { Par::rayon(0) }
}

fn view<'a>(a: &'a ArrayView2<'_, f64>) -> MatRef<'a, f64> {
    let (rows, columns) = a.dim();
    let strides = a.strides();
    // SAFETY: pointer, shape and strides come from one live array view.
    unsafe { MatRef::from_raw_parts(a.as_ptr(), rows, columns, strides[0], strides[1]) }
}

fn view_mut<'a>(a: &'a mut ArrayViewMut2<'_, f64>) -> MatMut<'a, f64> {
    let (rows, columns) = a.dim();
    let (s0, s1) = (a.strides()[0], a.strides()[1]);
    // SAFETY: pointer, shape and strides come from one live, uniquely borrowed array view.
    unsafe { MatMut::from_raw_parts_mut(a.as_mut_ptr(), rows, columns, s0, s1) }
}

/// Calls `f` with the index and the part of each group of `width` columns of `out`, `[M, N]`, in parallel if that pays.
/// Parts depend on sizes alone, so that the bits do not depend on threads. No thread waits for another within a
/// product, which would be slow if other programs use the same cores.
fn by_columns(mut out: ArrayViewMut2<f64>, width: usize, multiply_adds: f64, f: impl Fn(usize, ArrayViewMut2<f64>) + Sync) {
    let parts = out.axis_chunks_iter_mut(Axis(1), width.max(1));
    if multiply_adds < PARALLEL_TASKS || rayon::current_num_threads() < 2 {
        parts.into_iter().enumerate().for_each(|(k, part)| f(k, part));
    } else {
        parts.into_par_iter().enumerate().for_each(|(k, part)| f(k, part));
    }
}

/// Computes `out = keep * out + scale * a b`, where keep is 0 or 1. Shapes: `a` [n, k], `b` [k, m], `out` [n, m].
pub(crate) fn product(keep: bool, scale: f64, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
    let (n, m) = out.dim();
    if n > m {
        return product(keep, scale, b.reversed_axes(), a.reversed_axes(), out.reversed_axes());
    }
    let accum = if keep { Accum::Add } else { Accum::Replace };
    let width = part(m);
    by_columns(out, width, n as f64 * a.ncols() as f64 * m as f64, |k, out| {
        let b = b.slice(s![.., k * width..k * width + out.ncols()]);
        multiply(accum, scale, a, b, out);
    });
}

/// Computes `out = a b`, or adds it if `keep`, in the calling thread alone, for tasks that run in parallel. Shapes: a
/// `[M, K]`, b `[K, N]`, out `[M, N]`.
pub(crate) fn product_alone(keep: bool, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
    multiply(if keep { Accum::Add } else { Accum::Replace }, 1.0, a, b, out);
}

/// Computes `out = scale * a b`, or adds it, in the calling thread. Shapes: a `[M, K]`, b `[K, N]`, out `[M, N]`.
fn multiply(accum: Accum, scale: f64, a: ArrayView2<f64>, b: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    let ((m, n), k) = (out.dim(), a.ncols());
    // Stride of the factor on the side of the rows of `out`, whose neighbours the kernels do not load together.
    let across = if out.strides()[1] == 1 { a.strides()[1] } else { b.strides()[0] };
    if !packs() || across == 1 || m.min(n).min(k) < LEAST_PACKED {
        return matmul(view_mut(&mut out), accum, view(&a), view(&b), scale, Par::Seq);
    }
    packed(matches!(accum, Accum::Add), scale, a, b, out);
}

/// Computes `out = keep * out + scale * a b`, where keep is 0 or 1, in the calling thread. Shapes: a `[M, K]`, b `[K,
/// N]`, out `[M, N]`. Both factors are copied first, piece by piece.
fn packed(keep: bool, scale: f64, a: ArrayView2<f64>, b: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    let ((m, n), k) = (out.dim(), a.ncols());
    assert_eq!((a.nrows(), b.nrows(), b.ncols()), (m, k, n), "factors fit each other and the product");
    let (to, left, right) = (out.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    let [[to_row, to_column], [left_row, left_column], [right_row, right_column]] =
        [out.strides(), a.strides(), b.strides()].map(|s| [s[0], s[1]]);
    // SAFETY: pointers and strides come from live views whose shapes fit, and that of `out` is uniquely borrowed.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            to,
            to_column,
            to_row,
            keep,
            left,
            left_column,
            left_row,
            right,
            right_column,
            right_row,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Computes the lower triangle of `out = a' b`, or adds it, in the calling thread. Entries above the diagonal may be
/// overwritten. `a` and `b` are [n, m], and `a' b` must be symmetric.
fn lower_multiply(accum: Accum, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
    let m = out.nrows();
    if m <= LEAST_SQUARE {
        return multiply(accum, 1.0, a.t(), b, out);
    }
    let half = (m / 2).next_multiple_of(STEP);
    let (first, rest) = (s![.., ..half], s![.., half..]);
    let (top, bottom) = out.split_at(Axis(0), half);
    let (left, right) = bottom.split_at(Axis(1), half);
    lower_multiply(accum, a.slice(first), b.slice(first), top.slice_move(first));
    multiply(accum, 1.0, a.slice(rest).t(), b.slice(first), left);
    lower_multiply(accum, a.slice(rest), b.slice(rest), right);
}

/// Returns `a b`, [n, m], for `a` [n, k] and `b` [k, m].
pub(crate) fn times(a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    product(false, 1.0, a, b, out.view_mut());
    out
}

/// Returns `a' a`, [m, m], for `a` [n, m].
pub(crate) fn gram(a: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.ncols(), a.ncols()));
    lower_gram(false, a, out.view_mut());
    mirror(&mut out);
    out
}

/// Adds `a' a` to the lower triangle of `out`, see [`lower_gram`], for `a` [n, m] and `out` [m, m].
pub(crate) fn add_gram(a: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
    lower_gram(true, a, out);
}

/// Computes the lower triangle of `out = keep * out + a' a`, where keep is 0 or 1, for `a` [n, m] and `out` [m, m].
/// Entries above the diagonal may be overwritten, and are invalid until they are mirrored. Fresh memory should not be
/// kept: reading it before writing takes as long again as writing.
pub(crate) fn lower_gram(keep: bool, a: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    let m = a.ncols();
    let few = (FEW_ROWS * m * m).max(1) as f64;
    let together = FEW_ROWS * (2.0 * SHARED_FLOPS / few).ceil().min(MOST_ROWS) as usize;
    for (accum, rows) in rows_in_turn(keep, a.nrows(), together) {
        lower_gram_of(accum, a.slice(s![rows, ..]), out.view_mut());
    }
}

/// Computes the lower triangle of `out = a' a`, or adds it, for rows that the threads process together. Shapes: a `[N,
/// M]`, out `[M, M]`.
fn lower_gram_of(accum: Accum, a: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    let m = a.ncols();
    let width = part(m);
    let columns = |k: usize, size: usize| a.slice_move(s![.., k * width..k * width + size]);
    let multiply_adds = 0.5 * a.nrows() as f64 * (m * m) as f64;
    let keep = matches!(accum, Accum::Add);
    let row_of_parts = |(i, out): (usize, ArrayViewMut2<f64>)| {
        let left = columns(i, out.nrows());
        let until = i * width + out.nrows();
        by_columns(out.slice_move(s![.., ..until]), width, multiply_adds, |j, mut out| {
            let right = columns(j, out.ncols());
            for (accum, rows) in rows_in_turn(keep, a.nrows(), FEW_ROWS) {
                let (left, right) = (left.slice(s![rows.clone(), ..]), right.slice(s![rows, ..]));
                match i == j {
                    true => lower_multiply(accum, left, right, out.view_mut()),
                    false => multiply(accum, 1.0, left.t(), right, out.view_mut()),
                }
            }
        });
    };
    let rows = out.axis_chunks_iter_mut(Axis(0), width.max(1));
    if multiply_adds < PARALLEL_TASKS || rayon::current_num_threads() < 2 {
        rows.into_iter().enumerate().for_each(row_of_parts);
    } else {
        // The longest tasks start first.
        rows.into_par_iter().enumerate().rev().for_each(row_of_parts);
    }
}

/// Returns equal ranges of `n` rows, at least one, of at most `size` rows each, with the accumulation mode of each
/// product. The first product replaces the values unless `keep` is set; the others are added.
fn rows_in_turn(keep: bool, n: usize, size: usize) -> impl Iterator<Item = (Accum, Range<usize>)> {
    let size = n.div_ceil(n.div_ceil(size).max(1)).max(1);
    (0..n.max(1)).step_by(size).map(move |first| {
        let accum = if keep || first > 0 { Accum::Add } else { Accum::Replace };
        (accum, first..n.min(first + size))
    })
}

/// Returns `w' w`, [m, m], for lower triangular `w`, [m, m], without products with the zeros above its diagonal.
pub(crate) fn gram_of_lower(w: ArrayView2<f64>) -> Array2<f64> {
    let mut out = lower_gram_of_lower(w);
    mirror(&mut out);
    out
}

/// Returns the lower triangle of w' w, `[M, M]`, for lower triangular `w`, `[M, M]`. Entries above the diagonal are
/// invalid until they are mirrored.
fn lower_gram_of_lower(w: ArrayView2<f64>) -> Array2<f64> {
    let m = w.ncols();
    let mut out = Array2::zeros((m, m));
    for (k, rows) in w.axis_chunks_iter(Axis(0), MOST_PART).enumerate() {
        let until = k * MOST_PART + rows.nrows();
        add_gram(rows.slice(s![.., ..until]), out.slice_mut(s![..until, ..until]));
    }
    out
}

/// Adds the lower triangle of a' a to `out`, `[M, M]`, in the calling thread alone, for a, `[N, M]`.
pub(crate) fn add_gram_alone(a: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    for (accum, rows) in rows_in_turn(true, a.nrows(), FEW_ROWS) {
        let rows = a.slice(s![rows, ..]);
        lower_multiply(accum, rows, rows, out.view_mut());
    }
}

/// Returns the width of about equal parts of `columns` columns. Parts are wide enough for fast products, and there are
/// at least four, so that threads share the work.
fn part(columns: usize) -> usize {
    let parts = columns.div_ceil(MOST_PART).max(columns.div_ceil(LEAST_PART).min(4)).max(1);
    columns.div_ceil(parts).next_multiple_of(STEP)
}

/// Copies the lower triangle of `a`, `[M, M]`, onto the upper one, in blocks that fit into the cache.
pub(crate) fn mirror(a: &mut Array2<f64>) {
    const BLOCK: usize = 32;
    let n = a.nrows();
    let entries = a.as_slice_mut().expect("matrices are row-major");
    for top in (0..n).step_by(BLOCK) {
        for left in (0..=top).step_by(BLOCK) {
            for i in top..(top + BLOCK).min(n) {
                for j in left..(left + BLOCK).min(i) {
                    entries[j * n + i] = entries[i * n + j];
                }
            }
        }
    }
}

/// A lower Cholesky factor `R` with `R R' = A`, and its jitter.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    /// The factor, [M, M], zero above the diagonal and column-major.
    pub lower: Array2<f64>,
    /// Jitter that was added to the diagonal, relative to the given scale.
    pub jitter: f64,
}

impl Cholesky {
    /// Factorises symmetric `a`, [M, M]. If a pivot is not positive, jitter from 1e-14 to [`MAX_JITTER`] times `scale`
    /// (the size of a unit-norm diagonal) is added.
    pub fn new(a: Array2<f64>, scale: f64) -> Result<Self> {
        Cholesky::of(a.nrows(), scale, || a.clone())
    }

    /// Solves `A x = b` in place for `b`, [M, K].
    pub fn solve(&self, mut b: ArrayViewMut2<f64>) {
        solve_lower(self.lower.view(), b.view_mut());
        solve_lower_transposed(self.lower.view(), b);
    }

    /// Factorises symmetric `gram` + diag(`a`), [M, M] and `[M]`. Jitter is relative to the largest diagonal entry of
    /// `gram`.
    pub fn of_sum<'a>(gram: &Array2<f64>, a: impl IntoIterator<Item = &'a f64> + Clone) -> Result<Self> {
        let scale = gram.diag().iter().fold(0.0f64, |m, v| m.max(*v));
        Cholesky::of(gram.nrows(), scale, || {
            let mut sum = gram.clone();
            sum.diag_mut().iter_mut().zip(a.clone()).for_each(|(v, a)| *v += a);
            sum
        })
    }

    /// Factorises the symmetric matrix, [n, n], that `matrix` returns. It is called for each try, because a failed
    /// factorisation overwrites both triangles. No jitter is tried if `scale` is 0.
    pub fn of(n: usize, scale: f64, matrix: impl Fn() -> Array2<f64>) -> Result<Self> {
        let mut jitter = 0.0;
        loop {
            let a = matrix();
            // The transpose of a symmetric matrix is the same matrix.
            let mut a = if a.is_standard_layout() { a } else { a.reversed_axes() };
            let finite = a.diag().iter().all(|v| v.is_finite());
            a.diag_mut().mapv_inplace(|v| v + jitter * scale);
            if let Some(lower) = lower_factor(a) {
                return Ok(Cholesky { lower, jitter });
            }
            jitter = if jitter == 0.0 { 1e-14 } else { jitter * 10.0 };
            if jitter > MAX_JITTER * 1.001 || scale == 0.0 || !finite {
                return Err(Error::Singular { columns: n, jitter: MAX_JITTER });
            }
        }
    }

    /// Factorises symmetric `a`, [n, n], of which only the upper triangle is read. No jitter is tried; the result is
    /// `None` if `a` has no factor.
    pub fn of_upper(a: Array2<f64>) -> Option<Self> {
        lower_factor(a).map(|lower| Cholesky { lower, jitter: 0.0 })
    }

    /// Returns log |A|.
    pub fn log_det(&self) -> f64 {
        2.0 * self.lower.diag().iter().map(|v| v.ln()).sum::<f64>()
    }

    /// Returns inv(R), lower triangular, `[M, M]`.
    pub fn inverse(&self) -> Array2<f64> {
        inverse_lower(self.lower.view())
    }

    /// Returns the lower triangle of inv(A), [M, M]. Entries above the diagonal are invalid until they are mirrored.
    pub fn lower_of_inverse(&self) -> Array2<f64> {
        let n = self.lower.nrows();
        // Column-major order, which the factor has, is a third faster than row-major.
        let mut half = Array2::zeros((n, n).f());
        let parallel = par((n * n * n) as f64 / 6.0);
        triangular_inverse::invert_lower_triangular(view_mut(&mut half.view_mut()), view(&self.lower.view()), parallel);
        lower_gram_of_lower(half.view())
    }
}

/// Returns lower triangular R, [n, n], zero above the diagonal, with R R' = `a`, for row-major `a`, [n, n]. Only the
/// upper triangle of `a` is read.
fn lower_factor(mut a: Array2<f64>) -> Option<Array2<f64>> {
    let n = a.nrows();
    let parallel = par((n * n * n) as f64 / 6.0);
    let params = Default::default();
    let mut buffer = MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(n, parallel, params));
    {
        // Column-major order is up to three times faster. The transpose of a symmetric matrix is the same matrix. The
        // factor is written above the diagonal, and the entries below it do not change.
        let mut columns = a.view_mut().reversed_axes();
        let stack = MemStack::new(&mut buffer);
        llt::factor::cholesky_in_place(view_mut(&mut columns), Default::default(), parallel, stack, params).ok()?;
    }
    if !a.diag().iter().all(|v| v.is_finite() && *v > 0.0) {
        return None;
    }
    a.outer_iter_mut().enumerate().for_each(|(i, mut row)| row.slice_mut(s![..i]).fill(0.0));
    Some(a.reversed_axes())
}

/// Returns inv(R), [M, M], of lower triangular `r`, [M, M].
pub(crate) fn inverse_lower(r: ArrayView2<f64>) -> Array2<f64> {
    let n = r.nrows();
    let mut out = Array2::zeros((n, n));
    triangular_inverse::invert_lower_triangular(view_mut(&mut out.view_mut()), view(&r), par((n * n * n) as f64 / 6.0));
    out
}

/// Solves `R x = b` in place, for lower triangular `r`, [M, M], and `b`, [M, K].
pub(crate) fn solve_lower(r: ArrayView2<f64>, b: ArrayViewMut2<f64>) {
    let multiply_adds = 0.5 * (r.nrows() * r.nrows()) as f64 * b.ncols() as f64;
    let width = part(b.ncols());
    by_columns(b, width, multiply_adds, |_, mut b| {
        triangular_solve::solve_lower_triangular_in_place(view(&r), view_mut(&mut b), Par::Seq);
    });
}

/// Solves `R' x = b` in place, for lower triangular `r`, [M, M], and `b`, [M, K].
pub(crate) fn solve_lower_transposed(r: ArrayView2<f64>, b: ArrayViewMut2<f64>) {
    let multiply_adds = 0.5 * (r.nrows() * r.nrows()) as f64 * b.ncols() as f64;
    let width = part(b.ncols());
    by_columns(b, width, multiply_adds, |_, mut b| {
        triangular_solve::solve_upper_triangular_in_place(view(&r.t()), view_mut(&mut b), Par::Seq);
    });
}

/// Solves least squares by QR, for `a`, [n, M], n >= M, and `b`, [n, K]. Returns `x`, [M, K], whose columns minimise |a
/// x - b|, and lower triangular `R`, [M, M], with a positive diagonal and `R R' = a'a`. It runs in the calling thread
/// alone, because parts of a reflection are summed in an order that depends on the number of threads.
pub(crate) fn least_squares(a: ArrayView2<f64>, b: ArrayView2<f64>) -> (Array2<f64>, Array2<f64>) {
    let ((n, m), k) = (a.dim(), b.ncols());
    // b is appended as last columns, in which the triangular factor then contains Q'b.
    let mut work = Array2::zeros((n, m + k).f());
    work.slice_mut(s![.., ..m]).assign(&a);
    work.slice_mut(s![.., m..]).assign(&b);
    let block = factor::recommended_block_size::<f64>(n, m + k);
    let mut coefficients = Array2::zeros((block, n.min(m + k)).f());
    let params = Default::default();
    let mut buffer = MemBuffer::new(factor::qr_in_place_scratch::<f64>(n, m + k, block, Par::Seq, params));
    {
        let (mut w, mut c) = (work.view_mut(), coefficients.view_mut());
        factor::qr_in_place(view_mut(&mut w), view_mut(&mut c), Par::Seq, MemStack::new(&mut buffer), params);
    }
    let lower = Array2::from_shape_fn((m, m), |(i, j)| if j > i { 0.0 } else { work[[j, i]] * work[[j, j]].signum() });
    let mut x = Array2::from_shape_fn((m, k), |(i, j)| work[[i, m + j]] * work[[i, i]].signum());
    solve_lower_transposed(lower.view(), x.view_mut());
    (x, lower)
}

/// Returns the lower triangular factor, [M, M], with a positive diagonal, of L L' with its rows and columns in another
/// order. `lower` is L, [M, M], and `order` is `[M]`. The factor is computed by QR, for any condition number, in the
/// calling thread alone.
pub(crate) fn reordered_factor(lower: ArrayView2<f64>, order: &[usize]) -> Array2<f64> {
    let root = lower.select(Axis(0), order).reversed_axes();
    least_squares(root.view(), Array2::zeros((root.nrows(), 0)).view()).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix that rounding has made indefinite gets the reported jitter, and no other change.
    #[test]
    fn cholesky_changes_a_matrix_by_the_reported_jitter_alone() {
        for n in [5, 61, 200] {
            // All but a few eigenvalues of wide Gaussian kernels are below rounding.
            let phi = Array2::from_shape_fn((n, n), |(i, j)| (-((i as f64 - j as f64) * 4.0 / n as f64).powi(2)).exp());
            let g = gram(phi.view());
            let scale = g.diag().iter().fold(0.0f64, |m, v| m.max(*v));
            let factor = Cholesky::new(g.clone(), scale).unwrap();
            assert!(n == 5 || factor.jitter > 0.0, "{n} rows were no test");
            assert!(factor.jitter <= 1e-13, "{n}: {}", factor.jitter);
            assert_eq!(Cholesky::of_sum(&g.clone().reversed_axes(), &vec![0.0; n]).unwrap().lower, factor.lower);
            let again = factor.lower.dot(&factor.lower.t());
            let jittered = &g + &(Array2::<f64>::eye(n) * (factor.jitter * scale));
            let worst = (&again - &jittered).iter().fold(0.0f64, |m, v| m.max(v.abs()));
            assert!(worst < 1e-13 * scale, "{n}: {worst}");
        }
    }

    /// The products of both crates are tested, for factors and results in any memory layout, and Gram matrices of any
    /// size, in blocks or not.
    #[test]
    fn products_are_sums_of_products() {
        let numbers = |n: usize, m: usize, k: usize| Array2::from_shape_fn((n, m), |(i, j)| ((i * 7 + j * k) % 23) as f64 - 11.0);
        for (m, n, k) in [(1, 5, 3), (16, 16, 16), (17, 40, 130), (61, 33, 300)] {
            let (a, b, before) = (numbers(m, k, 5), numbers(k, n, 3), numbers(m, n, 2));
            let (at, bt) = (a.t().as_standard_layout().into_owned(), b.t().as_standard_layout().into_owned());
            let sum = Array2::from_shape_fn((m, n), |(i, j)| (0..k).map(|l| a[[i, l]] * b[[l, j]]).sum::<f64>());
            for (left, right) in [(a.view(), b.view()), (at.t(), b.view()), (a.view(), bt.t()), (at.t(), bt.t())] {
                for (keep, turned) in [(false, false), (true, false), (false, true), (true, true)] {
                    // Sums of integers are exact in every order.
                    let expected = if keep { &before - &(&sum * 2.0) } else { &sum * -2.0 };
                    let start =
                        if turned { before.t().as_standard_layout().into_owned().reversed_axes() } else { before.clone() };
                    let (mut one, mut other) = (start.clone(), start);
                    packed(keep, -2.0, left, right, one.view_mut());
                    multiply(if keep { Accum::Add } else { Accum::Replace }, -2.0, left, right, other.view_mut());
                    assert_eq!(one, expected, "{m} {n} {k} packed");
                    assert_eq!(other, expected, "{m} {n} {k}");
                }
            }
        }
        for m in [1, 8, 47, 48, 49, 56, 57, 100, 300, 600] {
            let a = numbers(90, m, 5);
            let expected = Array2::from_shape_fn((m, m), |(i, j)| (0..90).map(|l| a[[l, i]] * a[[l, j]]).sum::<f64>());
            assert_eq!(gram(a.view()), expected, "{m}");
            let mut alone = expected.clone();
            add_gram_alone(a.view(), alone.view_mut());
            mirror(&mut alone);
            assert_eq!(alone, &expected * 2.0, "{m}");
            let lower = Array2::from_shape_fn((m, m), |(i, j)| if j <= i { ((i * 7 + j * 5) % 23) as f64 - 11.0 } else { 0.0 });
            assert_eq!(gram_of_lower(lower.view()), gram(lower.view()), "{m}");
        }
    }

    /// The unsafe views stay inside their arrays, for every stride that a view can have. In frames of NaN, results
    /// equal plain sums, so that nothing beside was read. The frames keep their bits, so that nothing beside was
    /// written.
    #[test]
    fn nothing_beside_a_view_is_read_or_written() {
        const FRAME: u64 = 0x7ff8_dead_beef_0001;
        type Slice = fn(&mut Array2<f64>, usize, usize) -> ArrayViewMut2<'_, f64>;
        let layouts: [Slice; 5] = [
            |a, n, m| a.slice_mut(s![1..1 + n, 2..2 + m]),
            |a, n, m| a.slice_mut(s![1..1 + m, 2..2 + n]).reversed_axes(),
            |a, n, m| a.slice_mut(s![1..1 + 2 * n;2, 2..2 + 3 * m;3]),
            |a, n, m| a.slice_mut(s![1..1 + n;-1, 2..2 + m]),
            |a, n, m| a.slice_mut(s![1..1 + 2 * m;-2, 2..2 + n;-1]).reversed_axes(),
        ];
        let frame = |layout: &Slice, n: usize, m: usize| {
            let side = 3 * n.max(m) + 8;
            let mut all = Array2::from_elem((side, side), f64::from_bits(FRAME));
            let mut own = layout(&mut all, n, m);
            own.indexed_iter_mut().for_each(|((i, j), v)| *v = ((i * 7 + j * 5) % 23) as f64 - 11.0);
            all
        };
        let kept = |layout: &Slice, mut all: Array2<f64>, n: usize, m: usize| {
            layout(&mut all, n, m).fill(f64::from_bits(FRAME));
            all.iter().all(|v| v.to_bits() == FRAME)
        };
        for (n, m, k) in [(0, 3, 2), (1, 1, 1), (5, 3, 0), (7, 9, 4), (17, 19, 33), (49, 50, 60)] {
            for (a, b, c) in (0..125).step_by(3).map(|i| (&layouts[i % 5], &layouts[i / 5 % 5], &layouts[i / 25])) {
                let (mut left, mut right) = (frame(a, n, k), frame(b, k, m));
                let (left, right) = (a(&mut left, n, k), b(&mut right, k, m));
                let expected = Array2::from_shape_fn((n, m), |(i, j)| (0..k).map(|l| left[[i, l]] * right[[l, j]]).sum::<f64>());
                type Make = fn(ArrayView2<f64>, ArrayView2<f64>, ArrayViewMut2<f64>);
                let ways: [Make; 3] = [
                    |a, b, out| multiply(Accum::Replace, 1.0, a, b, out),
                    |a, b, out| packed(false, 1.0, a, b, out),
                    |a, b, out| product(false, 1.0, a, b, out),
                ];
                for make in ways {
                    let mut out = frame(c, n, m);
                    make(left.view(), right.view(), c(&mut out, n, m));
                    assert_eq!(c(&mut out, n, m), expected, "{n} {m} {k}");
                    assert!(kept(c, out, n, m), "{n} {m} {k}");
                }
            }
            for layout in &layouts {
                // With ones on the diagonal of a triangle, solutions are integers too.
                let lower =
                    Array2::from_shape_fn(
                        (n, n),
                        |(i, j)| if i == j { 1.0 } else { f64::from(u8::from(j < i && (i + j) % 5 == 0)) },
                    );
                for transposed in [false, true] {
                    let mut out = frame(layout, n, m);
                    let before = layout(&mut out, n, m).to_owned();
                    let solve = if transposed { solve_lower_transposed } else { solve_lower };
                    solve(lower.view(), layout(&mut out, n, m));
                    let found = layout(&mut out, n, m).to_owned();
                    let again = if transposed { lower.t().dot(&found) } else { lower.dot(&found) };
                    assert!(
                        (&again - &before)
                            .iter()
                            .all(|d| d.abs() < 1e-6 * (1.0 + found.iter().fold(0.0f64, |m, v| m.max(v.abs()))))
                    );
                    assert!(kept(layout, out, n, m), "{n} {m}");
                }
            }
        }
    }

    #[test]
    fn cholesky_refuses_an_indefinite_matrix() {
        let mut a = Array2::eye(40);
        a[[3, 7]] = 2.0;
        a[[7, 3]] = 2.0;
        assert!(matches!(Cholesky::new(a, 1.0), Err(Error::Singular { columns: 40, .. })));
    }
}
