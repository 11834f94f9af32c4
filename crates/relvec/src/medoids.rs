//! K-medoids: rows near the centres of k-means on a sample, with features scaled by a kernel.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::kernel::Kernel;
use crate::kernel::vector::{self, Sweep};
use crate::linalg;

/// Largest number of rows among which medoids are sought. If twice the number of landmarks is larger, that many rows
/// are used.
const SAMPLE: usize = 20_000;
/// Iterations of k-means. Later ones barely move the centres.
const ROUNDS: usize = 10;
/// Number of distances that one thread computes at a time (256 KB).
const CHUNK_NUMBERS: usize = 1 << 15;

/// Returns the indices of `size` medoids in `rows` (distinct rows of `x`, `[N, D]`), ascending. There must be more rows.
/// The choice is not refined further once `is_late` returns true.
pub(crate) fn choose(
    x: ArrayView2<f64>,
    rows: &[usize],
    size: usize,
    kernel: &Kernel,
    seed: u64,
    is_late: &dyn Fn() -> bool,
) -> Vec<usize> {
    let mut random = Pcg64::seed_from_u64(seed);
    let sample = index::sample(&mut random, rows.len(), SAMPLE.max(2 * size).min(rows.len())).into_vec();
    let points = scaled(x, sample.iter().map(|k| rows[*k]).collect::<Vec<_>>().as_slice(), kernel);
    let mut chosen: Vec<usize> = medoids(&points, size, &mut random, is_late).into_iter().map(|k| sample[k]).collect();
    chosen.sort_unstable();
    chosen
}

/// Returns the R listed rows of `x`, `[N, D]`, in a scale in which Euclidean distance is the distance of the kernel, up
/// to a factor: `[R, D]`. Values are divided by the largest and centred.
fn scaled(x: ArrayView2<f64>, rows: &[usize], kernel: &Kernel) -> Array2<f64> {
    let mut points = x.select(Axis(0), rows);
    // The division by the largest value comes first, so that means and squares stay in range.
    let largest = points.iter().fold(0.0f64, |l, v| l.max(v.abs()));
    points.mapv_inplace(|v| if largest > 0.0 { v / largest } else { 0.0 });
    if let Some(mean) = points.mean_axis(Axis(0)) {
        points -= &mean;
    }
    let gamma: Vec<f64> =
        kernel.parameters().into_iter().filter(|(name, _)| name.starts_with("gamma[")).map(|(_, v)| v).collect();
    let widest = gamma.iter().copied().fold(0.0, f64::max);
    if gamma.len() == points.ncols() {
        points *= &gamma.iter().map(|g| (g / widest).sqrt()).collect::<Array1<f64>>();
    }
    points
}

/// Returns `size` distinct rows of `points`, `[R, D]`, near the centres of k-means. The rows of `points` must be in
/// random order.
fn medoids(points: &Array2<f64>, size: usize, random: &mut Pcg64, is_late: &dyn Fn() -> bool) -> Vec<usize> {
    let mut centres = points.select(Axis(0), &seeds(points, size, random, is_late));
    for _ in 0..ROUNDS {
        if is_late() {
            break;
        }
        let labels = nearest(points.view(), centres.view());
        let mut sums = Array2::<f64>::zeros(centres.dim());
        let mut counts = vec![0.0; size];
        for (point, label) in points.outer_iter().zip(&labels) {
            let mut sum = sums.row_mut(*label);
            sum += &point;
            counts[*label] += 1.0;
        }
        // A centre that is nearest to no point does not move.
        for ((mut centre, sum), count) in centres.outer_iter_mut().zip(sums.outer_iter()).zip(counts) {
            if count > 0.0 {
                centre.assign(&(&sum / count));
            }
        }
    }
    let mut taken = vec![false; points.nrows()];
    nearest(centres.view(), points.view()).into_iter().for_each(|k| taken[k] = true);
    // One row may be nearest to two centres. The missing landmarks are taken from the other rows.
    let missing = size - taken.iter().filter(|t| **t).count();
    let others: Vec<usize> = (0..taken.len()).filter(|k| !taken[*k]).take(missing).collect();
    others.into_iter().for_each(|k| taken[k] = true);
    (0..taken.len()).filter(|k| taken[*k]).collect()
}

/// Returns the initial centres of k-means, rows of `points`, `[R, D]`. Each is drawn with probability proportional to
/// its squared distance from the nearest centre so far (k-means++), so that each cluster of rows has one.
fn seeds(points: &Array2<f64>, size: usize, random: &mut Pcg64, is_late: &dyn Fn() -> bool) -> Vec<usize> {
    let features = points.t().as_standard_layout().into_owned();
    let mut far = vec![f64::INFINITY; points.nrows()];
    let mut distance = vec![0.0; points.nrows()];
    let mut out = vec![0];
    while out.len() < size {
        if is_late() {
            // The points are in random order, so the first ones are a random sample.
            return (0..size).collect();
        }
        let last = points.row(out[out.len() - 1]);
        vector::run(Nearer { features: &features, last, distance: &mut distance, far: &mut far });
        let total: f64 = far.iter().fold(0.0, |t, d| t + d);
        let mut rest = random.random::<f64>() * total;
        let next = far.iter().position(|d| {
            rest -= d;
            rest < 0.0
        });
        // If all distances are zero, or rounding exhausted the sum, any point serves.
        out.push(next.unwrap_or(out.len()));
    }
    out
}

/// Lowers each value of `far` to the squared distance from `last`, if that is smaller.
struct Nearer<'a> {
    /// Points, one feature per row, [D, n].
    features: &'a Array2<f64>,
    /// Latest centre, `[D]`.
    last: ArrayView1<'a, f64>,
    /// Buffer for distances, `[n]`.
    distance: &'a mut [f64],
    /// Squared distances from the nearest centre, `[n]`.
    far: &'a mut [f64],
}

impl Sweep for Nearer<'_> {
    #[inline(always)]
    fn run(self) {
        self.distance.fill(0.0);
        for (values, at) in self.features.outer_iter().zip(self.last) {
            let values = values.to_slice().expect("rows of a copy in standard layout");
            for (sum, v) in self.distance.iter_mut().zip(values) {
                *sum += (v - at) * (v - at);
            }
        }
        for (far, d) in self.far.iter_mut().zip(self.distance.iter()) {
            *far = if *d < *far { *d } else { *far };
        }
    }
}

/// Returns the index of the row of `b`, [m, D], that is nearest to each row of `a`, [n, D]. Of equal rows it is the
/// first.
fn nearest(a: ArrayView2<f64>, b: ArrayView2<f64>) -> Vec<usize> {
    let half: Vec<f64> = b.outer_iter().map(|r| 0.5 * r.dot(&r)).collect();
    let mut out = vec![0; a.nrows()];
    let chunk = (CHUNK_NUMBERS / b.nrows().max(1)).max(1);
    out.par_chunks_mut(chunk).zip(a.axis_chunks_iter(Axis(0), chunk).into_par_iter()).for_each(|(out, rows)| {
        let mut inner = Array2::zeros((rows.nrows(), b.nrows()));
        linalg::product_alone(false, rows, b.t(), inner.view_mut());
        vector::each_row(inner.view_mut(), |i, row| {
            let mut best = f64::NEG_INFINITY;
            vector::run(Best { half: &half, row, best: &mut best });
            out[i] = row.iter().position(|v| *v == best).unwrap_or(0);
        });
    });
    out
}

/// Subtracts `half` from `row`, and finds the largest value.
struct Best<'a> {
    half: &'a [f64],
    row: &'a mut [f64],
    best: &'a mut f64,
}

impl Sweep for Best<'_> {
    #[inline(always)]
    fn run(self) {
        const LANES: usize = 16;
        for (v, h) in self.row.iter_mut().zip(self.half) {
            *v -= h;
        }
        let mut best = [f64::NEG_INFINITY; LANES];
        let mut chunks = self.row.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (best, v) in best.iter_mut().zip(chunk) {
                *best = if *v > *best { *v } else { *best };
            }
        }
        *self.best = best.iter().chain(chunks.remainder()).fold(f64::NEG_INFINITY, |best, v| if *v > best { *v } else { best });
    }
}
