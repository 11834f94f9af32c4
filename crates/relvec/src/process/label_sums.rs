//! Regression on labels by sums over rows, (M87), with means at many centres. Some rows are left out one at a time.

use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky};
use crate::process::kernel::log_normal;
use crate::process::label_rows::Labels;
use crate::process::link;
use crate::process::parameters::mean_diagonal;
use crate::process::pivoted_cholesky::{Pivots, Points};
use crate::query::merged_rows::Totals;
use crate::query::pass::AllRows;
use crate::query::sums::{RatioSums, SumsRequest};
use crate::report::Interrupt;

/// Prior mean and standard deviation of log rho, for any number of rows. None of eight other priors is better by more
/// than 0.008 nats per row. Without priors, rare classes lose 0.12 nats.
pub(super) const RATIO: (f64, f64) = (1.0, 1.5);
/// Bounds of log rho, from pure noise to a noise standard deviation of a thousandth of that of the function.
pub(super) const RATIO_BOUNDS: (f64, f64) = (-6.0, 14.0);
/// Limit of the mean residual variance of the prior over the noise variance, for the centres of the means. The value is
/// that for regression.
const RESIDUAL: f64 = 0.01;
/// Step of log rho. On six tables, half of it changes the held-out log loss by 0.003 at most, twice upwards and twice
/// downwards.
const STEP: f64 = 1.0;

/// Sums over all rows at some centres, and the features of these at the rows that are left out.
struct CentreSums<'a> {
    labels: &'a Labels,
    /// The constant and phi at the rows of `labels`, [1 + M, n].
    features: Array2<f64>,
    /// F'diag(c) F, [1 + M, 1 + M], and F'diag(c) T, [1 + M, C], over all rows.
    gram: Array2<f64>,
    right: Array2<f64>,
    /// Prior mean and standard deviation of log rho, and its bounds.
    prior: (f64, f64),
    bounds: (f64, f64),
}

/// The regression at one rho.
pub(crate) struct RatioFit {
    pub log_ratio: f64,
    /// Log probability v plus the log prior of rho.
    pub log_posterior: f64,
    /// v, theta and A, [S, C], of (M82).
    pub value: f64,
    pub theta: f64,
    pub means: Array2<f64>,
    /// The constant and the weights of the features, [1 + M, C].
    pub weights: Array2<f64>,
    /// Sum of the weights of all rows.
    pub count: f64,
}

impl<'a> CentreSums<'a> {
    /// Takes the features of M centres, `[M, n]`, at the n rows of `labels`, to which a row of ones is added; gram: `[1
    /// + M, 1 + M]`, right: `[1 + M, C]`.
    pub fn new(
        labels: &'a Labels,
        kernel: &Kernel,
        features: ArrayView2<f64>,
        gram: Array2<f64>,
        right: Array2<f64>,
    ) -> CentreSums<'a> {
        let size = mean_diagonal(kernel, &labels.rows.x).max(f64::MIN_POSITIVE).ln();
        let features = concatenate![Axis(0), Array2::ones((1, features.ncols())), features];
        let bounds = (RATIO_BOUNDS.0 - size, RATIO_BOUNDS.1 - size);
        CentreSums { labels, features, gram, right, prior: (RATIO.0 - size, RATIO.1), bounds }
    }

    /// Returns the regression at one rho; `None` if the sums have no Cholesky factor in 64-bit numbers, or if a mean is
    /// not finite.
    fn at(&self, log_ratio: f64) -> Result<Option<RatioFit>> {
        let mut a = self.gram.clone();
        a.diag_mut().slice_mut(s![1..]).mapv_inplace(|v| v + (-log_ratio).exp());
        let factor = match Cholesky::new(a, 0.0) {
            Ok(factor) => factor,
            Err(Error::Singular { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut weights = self.right.clone();
        factor.solve(weights.view_mut());
        let fit = linalg::times(self.features.t(), weights.view());
        let mut half = self.features.clone();
        linalg::solve_lower(factor.lower.view(), half.view_mut());
        let h = half.axis_iter(Axis(1)).map(|column| column.dot(&column)).collect::<Vec<f64>>();
        let means = self.labels.left_out(&fit, &h);
        if !means.iter().all(|v| v.is_finite()) {
            return Ok(None);
        }
        let (theta, value, _) = link::temperature(self.labels, means.view());
        let log_posterior = value + log_normal(log_ratio, self.prior).0;
        let count = self.labels.rows.count;
        Ok(Some(RatioFit { log_ratio, log_posterior, value, theta, means, weights, count }))
    }

    /// Returns the regression at the rho of highest posterior. Steps from `start` end when both neighbours are lower.
    fn best(&self, start: f64) -> Result<Option<RatioFit>> {
        let inside = |log: f64| log.clamp(self.bounds.0, self.bounds.1);
        let Some(mut best) = self.at(inside(start))? else { return Ok(None) };
        for step in [STEP, -STEP] {
            let first = best.log_ratio;
            while let Some(next) = Some(inside(best.log_ratio + step)).filter(|next| *next != best.log_ratio) {
                match self.at(next)? {
                    Some(point) if point.log_posterior > best.log_posterior => best = point,
                    _ => break,
                }
            }
            if best.log_ratio != first {
                break;
            }
        }
        Ok(Some(best))
    }
}

/// Chooses the centres of the regression on the labels of `rows`, and the best rho. The first of the `points` are the
/// rows of `labels`; the others may become centres.
///
/// Centres are added until the mean residual variance of the prior, at a given rho, is below its limit. This begins at
/// `log_ratio` and is repeated at the best rho while that is higher. Returns `None` if there is no time or no finite
/// value.
pub(crate) fn regression<'a>(
    labels: &'a Labels,
    rows: &AllRows,
    points: &'a Points,
    kernel: &'a Kernel,
    mut log_ratio: f64,
    interrupt: &Interrupt,
) -> Result<Option<(Pivots<'a>, RatioFit)>> {
    let among: Vec<usize> = (points.first..points.x.nrows()).collect();
    let mut pivots = Pivots::new(kernel, points.x.view())?;
    loop {
        let enough = |pivots: &Pivots| log_ratio.exp() * pivots.mean_residual(&labels.rows.weights) <= RESIDUAL;
        pivots.complete(&[], &among, among.len(), enough, interrupt)?;
        let Some((RatioSums { gram, right, .. }, totals)) = sums_at(&pivots, rows, points, kernel, interrupt)? else {
            return Ok(None);
        };
        let features = pivots.features();
        let many = CentreSums::new(labels, kernel, features.slice(s![.., ..points.first]), gram, right);
        let Some(point) = many.best(log_ratio)? else { return Ok(None) };
        let point = RatioFit { count: totals.count, ..point };
        let open = among.iter().any(|point| !pivots.spans(*point));
        if point.log_ratio <= log_ratio || !open || interrupt.is_late() {
            return Ok(Some((pivots, point)));
        }
        log_ratio = point.log_ratio;
    }
}

/// Returns the sums F'diag(c) F and F'diag(c) T over rows at the centres of `pivots`; `None` if there is no time for
/// all rows.
pub(crate) fn sums_at(
    pivots: &Pivots,
    rows: &AllRows,
    points: &Points,
    kernel: &Kernel,
    interrupt: &Interrupt,
) -> Result<Option<(RatioSums, Totals)>> {
    let (centres, lower) = (points.x.select(Axis(0), pivots.centres()), pivots.factor());
    let at = SumsRequest { kernel: kernel.clone(), centres, lower, bias: true, ratios: vec![0.0], mean: None };
    let Some(sums) = rows.sums(&at, interrupt)? else { return Ok(None) };
    let (mut sums, totals) = sums.single();
    linalg::mirror(&mut sums.gram);
    Ok(Some((sums, totals)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Matern32, Rbf};

    /// Returns the labels of 60 groups of three classes. Every other group has two rows, and rows have different
    /// weights.
    fn labels() -> Labels {
        let x = Array2::from_shape_fn((90, 2), |(i, d)| (0.618_033_988_75 * ((2 * i / 3) * (d + 1) + 5 * d) as f64).fract());
        let class: Vec<usize> = (0..90).map(|i| ((3.0 * x[[i, 0]]) as usize + usize::from(i % 7 == 0)) % 3).collect();
        let weights: Vec<f64> = (0..90).map(|i| 0.5 + (i % 3) as f64).collect();
        Labels::new(x.view(), &class, 3, &weights)
    }

    /// Returns the rows, and then the same rows as candidates.
    fn points(labels: &Labels) -> Points {
        Points { x: concatenate![Axis(0), labels.rows.x, labels.rows.x], first: labels.rows.len() }
    }

    /// Returns the sums with all rows as centres that the others do not span.
    fn many<'a>(
        labels: &'a Labels,
        rows: &AllRows,
        points: &'a Points,
        kernel: &'a Kernel,
        interrupt: &Interrupt,
    ) -> CentreSums<'a> {
        let mut pivots = Pivots::new(kernel, points.x.view()).unwrap();
        pivots.complete(&[], &(60..120).collect::<Vec<_>>(), 60, |_| false, interrupt).unwrap();
        let (RatioSums { gram, right, .. }, _) = sums_at(&pivots, rows, points, kernel, interrupt).unwrap().unwrap();
        let features = pivots.features();
        CentreSums::new(labels, kernel, features.slice(s![.., ..points.first]), gram, right)
    }

    /// The residual limit holds at the rho that is found, even if the initial rho is much lower.
    #[test]
    fn centres_follow_the_ratio() {
        let labels = labels();
        let (points, rows) = (points(&labels), AllRows::Held(&labels.rows));
        let kernel: Kernel = Rbf { gamma: 6.0.into() }.into();
        let (pivots, point) = regression(&labels, &rows, &points, &kernel, -4.0, &Interrupt::default()).unwrap().unwrap();
        assert!(point.log_ratio > -2.0, "{}", point.log_ratio);
        assert!(point.log_ratio.exp() * pivots.mean_residual(&labels.rows.weights) <= RESIDUAL);
    }

    /// If all rows are centres, the regression is that of (M80), with the left-out means of (M81).
    #[test]
    fn all_rows_as_centres_are_the_dense_regression() {
        let labels = labels();
        assert_eq!(labels.rows.len(), 60);
        let kernels: [Kernel; 2] = [Rbf { gamma: 6.0.into() }.into(), Matern32 { gamma: 3.0.into() }.into()];
        for (kernel, log_ratio) in kernels.iter().zip([1.5, 3.0]) {
            let expected = labels.score(kernel, log_ratio).unwrap();
            let points = points(&labels);
            let (rows, interrupt) = (AllRows::Held(&labels.rows), Interrupt::default());
            let found = many(&labels, &rows, &points, kernel, &interrupt).at(log_ratio).unwrap().unwrap();
            assert!((found.value - expected.value).abs() < 1e-6 * expected.value.abs(), "{} {}", found.value, expected.value);
            for (found, expected) in found.means.iter().zip(&expected.means) {
                assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
            }
        }
    }

    #[test]
    fn the_ratio_has_no_better_neighbour() {
        let labels = labels();
        let kernel: Kernel = Rbf { gamma: 6.0.into() }.into();
        let (points, rows) = (points(&labels), AllRows::Held(&labels.rows));
        let many = many(&labels, &rows, &points, &kernel, &Interrupt::default());
        let posterior = |log_ratio: f64| labels.score(&kernel, log_ratio).unwrap().value + log_normal(log_ratio, RATIO).0;
        for start in [-3.0, 1.0, 9.0] {
            let RatioFit { value, log_ratio, .. } = many.best(start).unwrap().unwrap();
            assert!((value - labels.score(&kernel, log_ratio).unwrap().value).abs() < 1e-6, "{start}: {value}");
            let own = posterior(log_ratio);
            assert!(
                own >= posterior(log_ratio + STEP) - 1e-6 && own >= posterior(log_ratio - STEP) - 1e-6,
                "{start}: {log_ratio}"
            );
        }
    }
}
