//! Chooses the centres of a process by a pivoted Cholesky factorisation of its kernel matrix: the next centre is the
//! point with the largest residual variance, (M71).
//!
//! Z are the centres in the order of their choice, K = k(Z, Z) = L L', and phi(x) = inv(L) k(Z, x) are the whitened
//! features. The residual variance of the prior at x is d(x) = k(x, x) - |phi(x)|^2 (Fine & Scheinberg 2001). No jitter
//! is added: a point that the centres already span does not become a centre.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::design;
use crate::error::{Error, Result};
use crate::kernel::{Fill, Kernel};
use crate::report::Interrupt;

/// A point whose residual variance is below this share of k(x, x) is spanned by the centres. The residual is a
/// difference of numbers of size k(x, x), with a rounding error of 1e-16 for each centre. A tenth of the limit would
/// divide rounding errors by their own root. Ten times the limit would exclude centres that matter if the noise
/// variance is 1e-6 of the variance of the targets.
const SPANNED: f64 = 1e-12;
/// Number of centres that are chosen even after the deadline. They take some hundredths of a second, and without centres a
/// model would predict a constant.
pub(crate) const LEAST_CENTRES: usize = 100;

/// Points of a factorisation: the different inputs, followed by given landmarks.
#[derive(Clone)]
pub(crate) struct Points {
    /// Points, [n, D].
    pub x: Array2<f64>,
    /// Index of the first point that can become a centre.
    pub first: usize,
}

/// A pivoted Cholesky factorisation, which grows by one centre at a time.
pub(crate) struct Pivots<'a> {
    /// Points, [n, D].
    points: ArrayView2<'a, f64>,
    at_points: Fill<'a>,
    /// k(x, x), `[n]`.
    diagonal: Array1<f64>,
    /// Residual variance d, `[n]`.
    residual: Vec<f64>,
    /// Features phi of all points, [M, n], row by row.
    features: Vec<f64>,
    centres: Vec<usize>,
}

impl<'a> Pivots<'a> {
    /// Returns a factorisation without centres for `points`, [n, D].
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if a kernel value k(x, x) is not finite.
    pub fn new(kernel: &'a Kernel, points: ArrayView2<'a, f64>) -> Result<Pivots<'a>> {
        let diagonal = kernel.diagonal(points);
        if !diagonal.iter().all(|v| v.is_finite()) {
            return Err(Error::Overflow { what: format!("the kernel value of a row and itself, {},", kernel.name()) });
        }
        let residual = diagonal.to_vec();
        Ok(Pivots { points, at_points: kernel.at(points), diagonal, residual, features: vec![], centres: vec![] })
    }

    /// Returns the points that are centres, in the order of their choice, `[M]`.
    pub fn centres(&self) -> &[usize] {
        &self.centres
    }

    /// Returns the features phi of all points, [M, n].
    pub fn features(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.centres.len(), self.residual.len()), &self.features).expect("M rows of n numbers")
    }

    /// Returns the residual variances d of all points, `[n]`.
    pub fn residual(&self) -> &[f64] {
        &self.residual
    }

    /// Returns the Cholesky factor L, [M, M].
    pub fn factor(&self) -> Array2<f64> {
        self.features().select(Axis(1), &self.centres).reversed_axes()
    }

    /// Returns the mean of k(x, x).
    pub fn mean_diagonal(&self) -> f64 {
        self.diagonal.sum() / self.diagonal.len() as f64
    }

    /// Returns the mean of `weights` times the residual variances, over the first points.
    pub fn mean_residual(&self, weights: &[f64]) -> f64 {
        weights.iter().zip(&self.residual).map(|(c, d)| c * d).sum::<f64>() / weights.len() as f64
    }

    /// Makes all points of `first` centres that are not spanned, in the order of largest residual, and then points of
    /// `among`. Stops if `enough` returns true, if there are `most` centres, or if the deadline has passed
    /// and there are [`LEAST_CENTRES`].
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit was stopped by hand.
    pub fn complete(
        &mut self,
        first: &[usize],
        among: &[usize],
        most: usize,
        enough: impl Fn(&Pivots) -> bool,
        interrupt: &Interrupt,
    ) -> Result<()> {
        while let Some(point) = self.largest(first).filter(|_| self.centres.len() < most) {
            self.add(point);
        }
        while self.centres.len() < most && !enough(self) {
            if interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            let late = self.centres.len() >= LEAST_CENTRES && interrupt.is_late();
            let Some(point) = self.largest(among).filter(|_| !late) else { break };
            self.add(point);
        }
        Ok(())
    }

    /// Returns the point with the largest residual variance that the centres do not span; the first one of equals.
    fn largest(&self, among: &[usize]) -> Option<usize> {
        let open = among.iter().copied().filter(|p| !self.spans(*p));
        open.fold(None, |best: Option<usize>, p| best.filter(|b| self.residual[*b] >= self.residual[p]).or(Some(p)))
    }

    /// Returns true if the centres span a point.
    pub fn spans(&self, point: usize) -> bool {
        !(self.residual[point] > SPANNED * self.diagonal[point])
    }

    /// Makes a point a centre and returns true. Returns false if the recomputed residual shows that the centres span
    /// it.
    pub fn add(&mut self, point: usize) -> bool {
        let n = self.residual.len();
        let mut row = Array2::zeros((1, n));
        (self.at_points)(self.points.select(Axis(0), &[point]).view(), row.view_mut());
        let mut row = row.into_raw_vec_and_offset().0;
        let before = self.features();
        let spanned: Vec<f64> = before.column(point).iter().map(|v| -v).collect();
        design::add_sums(&spanned, before, &mut row);
        let pivot = row[point];
        if !(pivot > SPANNED * self.diagonal[point]) {
            self.residual[point] = 0.0;
            return false;
        }
        let root = pivot.sqrt();
        row.iter_mut().for_each(|v| *v /= root);
        // The centres have no residual, so that their covariance with the new one is exactly 0.
        self.centres.iter().for_each(|centre| row[*centre] = 0.0);
        self.residual.iter_mut().zip(&row).for_each(|(d, v)| *d = (*d - v * v).max(0.0));
        self.residual[point] = 0.0;
        self.features.extend(row);
        self.centres.push(point);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Linear, Rbf};
    use crate::linalg;

    fn points(n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, k)| 3.0 * (0.618_033_988_75 * (i * (k + 1) + 7 * k) as f64).fract() - 1.5)
    }

    fn all(kernel: &Kernel, x: &Array2<f64>) -> Array2<f64> {
        let mut k = Array2::zeros((x.nrows(), x.nrows()));
        kernel.block(x.view(), x.view(), k.view_mut());
        k
    }

    /// The factor reproduces K of the centres. Features and residuals agree with a triangular solve.
    #[test]
    fn features_are_whitened_and_residuals_are_what_they_leave_out() {
        let x = points(60, 2);
        let kernel = Kernel::from(Rbf { gamma: 0.8.into() });
        let mut pivots = Pivots::new(&kernel, x.view()).unwrap();
        let among: Vec<usize> = (0..60).collect();
        pivots.complete(&[5, 9, 30], &among, 12, |_| false, &Interrupt::default()).unwrap();
        assert_eq!(pivots.centres().len(), 12);
        assert!(pivots.centres()[..3].iter().all(|p| [5, 9, 30].contains(p)), "{:?}", pivots.centres());
        let k = all(&kernel, &x);
        let of_centres = k.select(Axis(0), pivots.centres()).select(Axis(1), pivots.centres());
        let factor = pivots.factor();
        assert!((&factor.dot(&factor.t()) - &of_centres).iter().all(|d| d.abs() < 1e-14));
        let mut half = k.select(Axis(0), pivots.centres());
        linalg::solve_lower(factor.view(), half.view_mut());
        assert!((&half - &pivots.features()).iter().all(|d| d.abs() < 1e-11));
        for (n, d) in pivots.residual().iter().enumerate() {
            let column = half.column(n);
            assert!((d - (1.0 - column.dot(&column)).max(0.0)).abs() < 1e-12, "row {n}: {d}");
        }
        let weights = vec![2.0; 50];
        let mean = pivots.residual()[..50].iter().sum::<f64>() / 25.0;
        assert!((pivots.mean_residual(&weights) - mean).abs() < 1e-15);
    }

    /// Equal points and a kernel of rank D give no more centres than the rank, even if more are requested.
    #[test]
    fn spanned_points_do_not_become_centres() {
        let x = points(40, 3);
        let x = ndarray::concatenate![Axis(0), x, x];
        let among: Vec<usize> = (0..80).collect();
        let kernel = Kernel::from(Linear {});
        let mut pivots = Pivots::new(&kernel, x.view()).unwrap();
        pivots.complete(&among, &among, 80, |_| false, &Interrupt::default()).unwrap();
        assert_eq!(pivots.centres().len(), 3);
        assert!(pivots.residual().iter().all(|d| *d < 1e-13));
        // The kernel is so wide that it is nearly constant, and every point occurs twice.
        let kernel = Kernel::from(Rbf { gamma: 1e-7.into() });
        let mut pivots = Pivots::new(&kernel, x.view()).unwrap();
        pivots.complete(&among, &among, 80, |_| false, &Interrupt::default()).unwrap();
        let factor = pivots.factor();
        assert!(pivots.centres().len() < 12, "{:?}", pivots.centres());
        assert!(factor.diag().iter().all(|v| *v > 0.0) && pivots.features().iter().all(|v| v.is_finite()));
    }

    #[test]
    fn completion_stops_at_a_raised_interrupt() {
        let x = points(10, 1);
        let kernel = Kernel::from(Rbf { gamma: 1.0.into() });
        let interrupt = Interrupt::default();
        interrupt.raise();
        let mut pivots = Pivots::new(&kernel, x.view()).unwrap();
        assert_eq!(pivots.complete(&[], &[0, 1], 2, |_| false, &interrupt), Err(Error::Interrupted));
    }
}
