//! Products with the kernel matrix between all rows, each value of which is made once and serves both of its places.

use std::sync::Mutex;

use ndarray::{Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::kernel::vector::{self, AddRowSquares, AddSquares};
use crate::kernel::{Fill, Kernel};
use crate::linalg;
use crate::report::Interrupt;

/// Rows of a block; a tile of K between two of them (512 KB) is used up in the cache of the thread that made it.
const BLOCK: usize = 256;

/// With K = k(x_i, x_j) of all rows `x`, [N, D]: the squared norms of its columns weighted by `weights`, `[N]`, if they are
/// given; and `left` K, [R, N], for `left`, [R, N].
///
/// Once interrupted, it passes over the rest, and what it returns is incomplete.
pub(crate) fn products(
    kernel: &Kernel,
    x: ArrayView2<f64>,
    weights: Option<&[f64]>,
    left: ArrayView2<f64>,
    interrupt: &Interrupt,
) -> (Vec<f64>, Array2<f64>) {
    let (n, r) = (x.nrows(), left.nrows());
    let size = n.div_ceil(n.div_ceil(BLOCK).max(1)).max(1);
    let block = |start: usize| {
        let rows = start..(start + size).min(n);
        let x = x.slice(s![rows.clone(), ..]);
        let squares = vec![0.0; weights.map_or(0, |_| rows.len())];
        let sums = Mutex::new(Sums { products: Array2::zeros((r, rows.len())), squares });
        let weights = weights.map(|all| &all[rows.clone()]);
        Block { x, fill: kernel.at(x), weights, left: left.slice(s![.., rows]), sums }
    };
    let blocks: Vec<Block> = (0..n).step_by(size).map(block).collect();
    let go_on = |_: &_| !interrupt.is_raised();
    let room = || Array2::zeros((size, size));
    (0..blocks.len()).into_par_iter().filter(go_on).for_each_init(room, |room, i| blocks[i].with_itself(room));
    // Of the pairs that are made side by side none has a block of another: sums are in one order whatever the threads.
    for apart in 1..blocks.len() {
        for half in [0, 1] {
            let firsts: Vec<usize> = (0..blocks.len() - apart).filter(|i| i / apart % 2 == half).collect();
            firsts.into_par_iter().filter(go_on).for_each_init(room, |room, i| blocks[i].with(&blocks[i + apart], room));
        }
    }
    let (mut squares, mut out) = (Vec::with_capacity(n), Array2::zeros((r, n)));
    for (block, mut columns) in blocks.into_iter().zip(out.axis_chunks_iter_mut(Axis(1), size)) {
        let sums = block.sums.into_inner().expect("no thread panicked");
        columns.assign(&sums.products);
        squares.extend(sums.squares);
    }
    (squares, out)
}

/// Consecutive rows, and what is to be known of the columns that are centred on them.
struct Block<'a> {
    /// [B, D].
    x: ArrayView2<'a, f64>,
    /// Makes these columns, of any rows.
    fill: Fill<'a>,
    /// `[B]`.
    weights: Option<&'a [f64]>,
    /// [R, B].
    left: ArrayView2<'a, f64>,
    sums: Mutex<Sums>,
}

struct Sums {
    /// [R, B].
    products: Array2<f64>,
    /// `[B]`, of weighted rows.
    squares: Vec<f64>,
}

impl Block<'_> {
    /// Adds what these rows give to their own columns; `room` is for a tile.
    fn with_itself(&self, room: &mut Array2<f64>) {
        self.add(self, self.tile(self, room));
    }

    /// Adds what these rows give to the columns of another block, and the other way round.
    fn with(&self, other: &Block, room: &mut Array2<f64>) {
        let tile = self.tile(other, room);
        other.add(self, tile);
        let mut sums = self.sums.lock().expect("no thread panicked");
        linalg::product_alone(true, other.left, tile.t(), sums.products.view_mut());
        if let Some(w) = other.weights {
            vector::run(AddRowSquares { w, phi: tile, out: &mut sums.squares });
        }
    }

    /// K between these rows and the columns of `other`.
    fn tile<'t>(&self, other: &Block, room: &'t mut Array2<f64>) -> ArrayView2<'t, f64> {
        let place = s![..self.x.nrows(), ..other.x.nrows()];
        (other.fill)(self.x, room.slice_mut(place));
        room.slice(place)
    }

    /// Adds what `rows` give to these columns, whose values there `tile` has.
    fn add(&self, rows: &Block, tile: ArrayView2<f64>) {
        let mut sums = self.sums.lock().expect("no thread panicked");
        let Sums { products, squares } = &mut *sums;
        linalg::product_alone(true, rows.left, tile, products.view_mut());
        if let Some(w) = rows.weights {
            let ones = vec![1.0; squares.len()];
            vector::run(AddSquares { w, phi: tile, unit: &ones, out: squares });
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;
    use crate::kernel::{Poly, Rbf};

    /// Whatever the number of blocks, for kernels of distances and of products; the same bits with any number of threads.
    #[test]
    fn each_value_counts_twice() {
        let kernels: [Kernel; 2] = [Rbf { gamma: 0.7.into() }.into(), Poly { gamma: 0.3.into(), ..Poly::default() }.into()];
        for n in [1, 7, 256, 257, 700, 1500] {
            let x = Array2::from_shape_fn((n, 3), |(i, d)| ((i * (7 + 4 * d)) % 101) as f64 / 40.0 + 0.1);
            let weights = Array1::from_shape_fn(n, |i| 0.5 * (1 + i % 4) as f64).to_vec();
            let left = Array2::from_shape_fn((5, n), |(k, i)| ((i * (3 + k)) % 17) as f64 / 8.0 - 1.0);
            for kernel in &kernels {
                let mut k = Array2::zeros((n, n));
                kernel.at(x.view())(x.view(), k.view_mut());
                let all = || products(kernel, x.view(), Some(&weights), left.view(), &Interrupt::default());
                let (squares, out) = all();
                let apart = |a: &[f64], b: &[f64]| {
                    let largest = b.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / largest
                };
                let expected: Vec<f64> =
                    k.columns().into_iter().map(|c| c.iter().zip(&weights).map(|(v, w)| w * v * v).sum()).collect();
                assert!(apart(&squares, &expected) < 1e-14, "{n} {kernel:?}");
                let expected = left.dot(&k);
                assert!(apart(out.as_slice().unwrap(), expected.as_slice().unwrap()) < 1e-13, "{n} {kernel:?}");
                let without = products(kernel, x.view(), None, left.view(), &Interrupt::default());
                assert_eq!(without, (Vec::new(), out.clone()));
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    assert_eq!(pool.install(all), (squares.clone(), out.clone()), "{n} {threads}");
                }
            }
        }
    }

    #[test]
    fn an_interrupt_ends_it() {
        let x = Array2::from_shape_fn((600, 2), |(i, d)| (i * (d + 1)) as f64);
        let interrupt = Interrupt::default();
        interrupt.raise();
        let kernel = Rbf { gamma: 0.7.into() }.into();
        let (squares, _) = products(&kernel, x.view(), Some(&[1.0; 600]), Array2::ones((1, 600)).view(), &interrupt);
        assert!(squares.iter().all(|s| *s == 0.0));
    }
}
