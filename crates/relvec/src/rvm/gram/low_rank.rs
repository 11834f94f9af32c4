//! A factor of the kernel between all rows, where that has low numerical rank: then neither the sums of a part nor
//! passes over many candidates need kernel values, (M64).

use ndarray::{ArcArray2, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::design::{Columns, Design};
use crate::kernel::{Fill, Kernel};
use crate::linalg;
use crate::report::Interrupt;
use crate::rvm::data::table::Table;
use crate::sums::Sums;

/// The largest residual that is left on the diagonal, which is 1: about the rounding of a kernel value.
const RESIDUAL: f64 = 2e-15;
/// Candidates for each column of the factor, at least, and its columns at most: with more a pass by kernel values is as
/// fast.
const CANDIDATES_PER_COLUMN: usize = 32;
const MOST_COLUMNS: usize = 512;
/// Fewer columns than this are not worth a try.
const LEAST_COLUMNS: usize = 16;
/// At a quarter and at half of the columns it may have, it is given up if the residual falls so slowly that it would
/// take more than so many times as many: in one dimension it falls ever faster, in many ever more slowly.
const HOPELESS: [(usize, f64); 2] = [(4, 4.0), (2, 1.5)];
/// Least squared norm of a column, over the sum of the weights: below it the residual, at rows of large weight, could
/// change it by more than 1e-9 of it.
const LEAST_SQUARE: f64 = 1e-10;
/// Rows that one thread works on at a time.
const CHUNK_ROWS: usize = 2048;

/// F, [N, r], with K = F F' up to rounding.
#[derive(Debug)]
pub(crate) struct LowRank {
    /// A bias and F as given columns, for their sums over rows.
    design: Design,
    /// Those sums where the curvature is constant.
    sums: Option<Sums>,
}

/// Some rows of F while it grows.
struct Chunk<'a> {
    kernel: Fill<'a>,
    /// Columns of F one after another.
    columns: Vec<f64>,
    /// 1 - sum of squares of the rows of F.
    residual: Vec<f64>,
}

impl LowRank {
    /// By Cholesky's method, always with the row of largest residual next: since the residual is positive
    /// semidefinite, its diagonal bounds all of it. `rows`: [N, D]; `None` for a kernel that is not known to be
    /// 1 on the diagonal and positive semidefinite, or whose rank is not low beside the number of `candidates`; F and a copy
    /// of it take at most `memory` bytes.
    pub fn new(kernel: &Kernel, rows: ArrayView2<f64>, candidates: usize, memory: u64, interrupt: &Interrupt) -> Option<LowRank> {
        let n = rows.nrows();
        let room = memory / (16 * n.max(1) as u64);
        let most = (candidates / CANDIDATES_PER_COLUMN).min(MOST_COLUMNS).min(room as usize);
        if !kernel.is_local() || most < LEAST_COLUMNS {
            return None;
        }
        let mut chunks: Vec<Chunk> = rows
            .axis_chunks_iter(Axis(0), CHUNK_ROWS)
            .map(|rows| Chunk { kernel: kernel.at(rows), columns: vec![], residual: vec![1.0; rows.nrows()] })
            .collect();
        // The residual before each column.
        let mut residuals: Vec<f64> = vec![];
        loop {
            let (pivot, largest) = chunks.iter().enumerate().fold((0, 0.0), |best, (k, chunk)| {
                chunk
                    .residual
                    .iter()
                    .enumerate()
                    .fold(best, |best, (i, r)| if *r > best.1 { (k * CHUNK_ROWS + i, *r) } else { best })
            });
            if largest <= RESIDUAL {
                break;
            }
            residuals.push(largest);
            let made = residuals.len() - 1;
            let hopeless = HOPELESS.iter().any(|(part, times)| made == most / part && expected(&residuals) > times * most as f64);
            if made == most || hopeless || interrupt.is_raised() {
                return None;
            }
            let own = chunks[pivot / CHUNK_ROWS].row(pivot % CHUNK_ROWS);
            let scale = 1.0 / largest.sqrt();
            chunks.par_iter_mut().for_each(|chunk| chunk.add(rows.slice(s![pivot..=pivot, ..]), &own, scale));
        }
        let r = residuals.len();
        let mut factor = Array2::zeros((n, r));
        for (mut rows, chunk) in factor.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS).zip(chunks) {
            let columns = ArrayView2::from_shape((r, chunk.residual.len()), &chunk.columns).expect("a number for each row");
            rows.assign(&columns.t());
        }
        let design = Design::unscaled(ArcArray2::from(factor), Columns::Given, true, memory, interrupt.clone());
        Some(LowRank { design, sums: None })
    }

    /// Of the rows of a table, if so many of them are its candidates.
    pub fn of(table: &Table, candidates: usize, memory: u64) -> Option<LowRank> {
        let (kernel, _) = table.rows_of(&[])?;
        let mut factor = LowRank::new(kernel, table.rows.view(), candidates, memory, &table.interrupt)?;
        let constant = table.rvm.likelihood.as_dyn().constant_curvature();
        factor.sums = constant.then(|| table.sums(&factor.design));
        Some(factor)
    }

    /// The sums of the columns of some candidates, the bias before them if there is one; `None` where the curvature is not
    /// constant, or F is not exact enough for one of them.
    pub fn sums_of(&self, table: &Table, places: &[usize]) -> Option<Sums> {
        let known = self.sums.as_ref()?;
        let (_, rows) = table.rows_of(places)?;
        let (f, first) = (self.design.rows(), usize::from(table.rvm.bias));
        let mut basis = Array2::zeros((first + rows.len(), 1 + f.ncols()));
        basis.slice_mut(s![..first, 0]).fill(1.0);
        basis.slice_mut(s![first.., 1..]).assign(&f.select(Axis(0), &rows));
        let left = linalg::times(basis.view(), known.gram.view());
        let gram = linalg::times(left.view(), basis.t());
        let least = LEAST_SQUARE * table.weights.iter().sum::<f64>();
        let f = known.f.iter().map(|f| basis.dot(&ArrayView1::from(f)).to_vec()).collect();
        let sums = Sums { gram, f, tt: known.tt.clone(), count: known.count };
        sums.gram.diag().iter().all(|d| *d >= least).then(|| sums.finish())
    }

    /// Bytes that F takes, and its sums.
    pub fn bytes(&self) -> u64 {
        let (n, r) = self.design.rows().dim();
        8 * (n * r + (r + 1) * (r + 1)) as u64
    }

    /// As [`Design::products`] of a design of the kernel at the listed rows: the squared norms of its columns, weighted by
    /// `weights` (`[N]`), and `left`' Phi for `left`, [N, K]. `None` if F is not exact enough for one of them.
    pub fn products(&self, weights: &[f64], left: ArrayView2<f64>, rows: &[usize]) -> Option<(Vec<f64>, Array2<f64>)> {
        let f = self.design.rows();
        let columns: Vec<usize> = (1..=f.ncols()).collect();
        let made;
        // Known sums are for the weights of the table, which are those of every pass then.
        let (gram, by_left) = match &self.sums {
            Some(sums) => (sums.gram.view(), self.design.products(weights, left).1),
            None => {
                let (_, by_left, gram) = self.design.moments(weights, left, &columns);
                made = gram;
                let shape = (left.ncols(), f.ncols() + 1);
                (made.view(), Array2::from_shape_vec(shape, by_left.concat()).expect("K rows of numbers"))
            }
        };
        let (gram, by_left) = (gram.slice(s![gram.nrows() - f.ncols().., 1..]), by_left.slice(s![.., 1..]));
        let centres = f.select(Axis(0), rows);
        let weighted = linalg::times(centres.view(), gram);
        let diag: Vec<f64> = centres.outer_iter().zip(weighted.outer_iter()).map(|(f, g)| f.dot(&g)).collect();
        let least = LEAST_SQUARE * weights.iter().sum::<f64>();
        diag.iter().all(|d| *d >= least).then(|| (diag, linalg::times(by_left, centres.t())))
    }
}

impl Chunk<'_> {
    /// A row of F.
    fn row(&self, i: usize) -> Vec<f64> {
        self.columns.iter().skip(i).step_by(self.residual.len()).copied().collect()
    }

    /// The next column of F: `scale` times what F leaves of the kernel at the pivot, [1, D], whose row of F is `own`.
    fn add(&mut self, pivot: ArrayView2<f64>, own: &[f64], scale: f64) {
        let n = self.residual.len();
        let mut next = Array2::zeros((1, n));
        (self.kernel)(pivot, next.view_mut());
        let mut next = next.into_raw_vec_and_offset().0;
        for (column, f) in self.columns.chunks(n).zip(own) {
            next.iter_mut().zip(column).for_each(|(v, c)| *v -= f * c);
        }
        for (v, r) in next.iter_mut().zip(&mut self.residual) {
            *v *= scale;
            *r -= *v * *v;
        }
        self.columns.extend(next);
    }
}

/// Columns that it will take, from the `residuals` before each, if their logarithms go on falling as in the last half.
fn expected(residuals: &[f64]) -> f64 {
    let made = residuals.len() - 1;
    let half = made / 2;
    let fall = (residuals[half] / residuals[made]).ln() / (made - half) as f64;
    made as f64 + (residuals[made] / RESIDUAL).ln() / fall
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Laplacian, Linear, Matern52, RationalQuadratic, Rbf, Sigmoid};

    const ROOM: u64 = 1 << 30;

    /// Rows that fill a cube of that side.
    fn rows(n: usize, features: usize, side: f64) -> Array2<f64> {
        let step = [0.618_033_988_749_895, 0.754_877_666_246_693, 0.819_172_513_396_164];
        Array2::from_shape_fn((n, features), |(i, d)| side * (step[d % 3] * (1 + d / 3) as f64 * i as f64).fract())
    }

    fn factor(kernel: &Kernel, rows: &Array2<f64>, memory: u64) -> Option<LowRank> {
        LowRank::new(kernel, rows.view(), rows.nrows(), memory, &Interrupt::default())
    }

    fn rbf(gamma: f64) -> Kernel {
        Rbf { gamma: gamma.into() }.into()
    }

    #[test]
    fn every_entry_is_that_of_the_kernel() {
        let wide = RationalQuadratic { gamma: 0.05.into(), shape: 2.0 }.into();
        for (kernel, features, side) in [(rbf(0.1), 1, 20.0), (rbf(0.3), 2, 2.0), (wide, 1, 10.0)] {
            let x = rows(3000, features, side);
            let factor = factor(&kernel, &x, ROOM).unwrap_or_else(|| panic!("{kernel:?}: of low rank"));
            let f = factor.design.rows();
            assert_eq!(factor.bytes(), 8 * (3000 * f.ncols() + (f.ncols() + 1).pow(2)) as u64);
            assert!(f.ncols() < 3000 / CANDIDATES_PER_COLUMN, "{kernel:?}: {}", f.ncols());
            let mut k = Array2::zeros((3000, 3000));
            kernel.block(x.view(), x.view(), k.view_mut());
            let worst = (linalg::times(f, f.t()) - k).iter().fold(0.0f64, |w, v| w.max(v.abs()));
            assert!(worst < 1e-14, "{kernel:?}: {worst:e}");
        }
    }

    #[test]
    fn what_has_no_low_rank_is_given_up() {
        let gamma = || 0.1.into();
        let none = [
            // Given up at a quarter, at half, at the end.
            (rbf(0.03), 10, 3.5),
            (rbf(1.3), 1, 20.0),
            (rbf(0.5), 2, 2.0),
            (Laplacian { gamma: gamma() }.into(), 1, 20.0),
            (Matern52 { gamma: gamma() }.into(), 2, 20.0),
            // Not positive semidefinite; not 1 on the diagonal.
            (Sigmoid { gamma: gamma(), coef0: 0.1 }.into(), 1, 1.0),
            (Linear::default().into(), 1, 1.0),
        ];
        for (kernel, features, side) in none {
            assert!(factor(&kernel, &rows(3000, features, side), ROOM).is_none(), "{kernel:?}");
        }
        let x = rows(3000, 1, 20.0);
        let needed = factor(&rbf(0.1), &x, ROOM).unwrap().design.rows().ncols() as u64;
        assert!(factor(&rbf(0.1), &x, 16 * 3000 * 2 * needed).is_some());
        assert!(factor(&rbf(0.1), &x, 16 * 3000 * needed - 1).is_none(), "too little memory");
        assert!(factor(&rbf(0.1), &rows(400, 1, 20.0), ROOM).is_none(), "too few rows");
        assert!(factor(&rbf(0.1), &rows(0, 1, 20.0), ROOM).is_none(), "no rows");
        let few = LowRank::new(&rbf(0.1), x.view(), 31 * CANDIDATES_PER_COLUMN, ROOM, &Interrupt::default());
        assert!(few.is_none(), "too few candidates");
        let stopped = Interrupt::default();
        stopped.raise();
        assert!(LowRank::new(&rbf(0.1), x.view(), 3000, ROOM, &stopped).is_none(), "interrupted");
    }

    #[test]
    fn threads_change_no_bit() {
        let x = rows(5000, 1, 20.0);
        let b: Vec<f64> = (0..5000).map(|i| 0.1 + (i % 7) as f64).collect();
        let left = x.mapv(f64::sin);
        let by = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let factor = factor(&rbf(0.1), &x, ROOM).unwrap();
                (factor.design.rows().to_owned(), factor.products(&b, left.view(), &[3, 700, 4999]).unwrap())
            })
        };
        assert_eq!(by(1), by(3));
    }

    /// The products are those of the columns, as long as the rows near each centre have some weight.
    #[test]
    fn products_are_those_of_the_columns() {
        let x = rows(3000, 1, 20.0);
        let centres: Vec<usize> = (0..3000).step_by(7).collect();
        let kernel = rbf(1.0);
        let factor = factor(&kernel, &x, ROOM).unwrap();
        let columns = Columns::Kernel { kernel, centres: x.select(Axis(0), &centres) };
        let plain = Design::unscaled(x.clone().into_shared(), columns, false, ROOM, Interrupt::default());
        let left = Array2::from_shape_fn((3000, 3), |(i, k)| (0.3 * (1 + k) as f64 * x[[i, 0]]).cos());
        // Of rows beyond 16 the weight is so many times smaller.
        for share in [1.0, 1e-3, 1e-6, 1e-13] {
            let b: Vec<f64> = x.iter().map(|x| if *x > 16.0 { share } else { 1.0 + x.sin().abs() }).collect();
            let Some((diag, by_left)) = factor.products(&b, left.view(), &centres) else {
                assert!(share < 1e-10, "{share}");
                continue;
            };
            assert!(share > 1e-10, "{share}");
            let (expected, expected_left) = plain.products(&b, left.view());
            for (found, expected) in diag.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-9 * expected, "{share}: {found:e} {expected:e}");
            }
            let largest = expected_left.iter().fold(0.0f64, |l, v| l.max(v.abs()));
            let worst = (by_left - expected_left).iter().fold(0.0f64, |w, v| w.max(v.abs()));
            assert!(worst < 1e-12 * largest, "{share}: {worst:e} of {largest:e}");
        }
    }
}
