//! Regression on the labels of classes under a process prior, scored by the classes of left-out rows, (M80) to (M83).
//!
//! Rows of equal inputs form one group g, with weight n_gk of class k, c_g = sum_k n_gk and N = sum_g c_g. The targets
//! are the shares T_gk = n_gk / c_g. Amplitude and noise variance enter by their ratio rho alone. The constant has a
//! flat prior:
//!
//! ```text
//! S = rho K + diag(1 / c)    q = inv(S) 1    P = inv(S) - q q' / (1'q)    alpha = P T
//! fit = T - alpha / c        h_g = 1 / c_g - P_gg / c_g^2
//! ```
//!
//! If one unit of the weight of class k is left out of group g, or all of its weight if that is less, the mean at the
//! group is exactly
//!
//! ```text
//! A_gk = e_k - (e_k - fit_g) / (1 - u_gk h_g)    u_gk = min(n_gk, 1)
//! ```
//!
//! A kernel, rho and a temperature theta >= 0 are scored by the log probability
//!
//! ```text
//! v = sum n_gk Y_k'log softmax(theta A_gk)    Y_k = (1 - e) e_k + e / C    e = 1 / (N + 1)
//! ```
//!
//! of these observations. e represents one further row of unknown class; without it, theta would be infinite if the
//! left-out means separate the classes.

use ndarray::{Array2, Axis};

use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky};
use crate::process::evidence::{kernel_gradient, upper_of};
use crate::process::label_rows::{Labels, Observation};
use crate::process::link;

/// Lower limit of 1 - u h, at which the variance of a left-out observation is 1e12 times its noise variance. The
/// difference has no correct digits below. A larger limit would change the left-out means of groups that determine
/// themselves (rho = 1e6).
const LEAST_LEFT: f64 = 1e-12;

/// Regression on the labels of all groups.
pub(crate) struct DenseRegression {
    /// P, [n, n].
    p: Array2<f64>,
    /// alpha, [n, C].
    pub alpha: Array2<f64>,
    /// Mean of each group, with the constant, [n, C].
    fit: Array2<f64>,
    /// h, `[n]`.
    h: Vec<f64>,
}

/// Score of a kernel and rho: log probability of the classes of left-out observations.
pub(crate) struct Score {
    /// v at the best theta.
    pub value: f64,
    pub theta: f64,
    /// Left-out means A, [S, C].
    pub means: Array2<f64>,
    pub dense: DenseRegression,
    /// softmax(theta A), [S, C].
    probabilities: Array2<f64>,
}

/// Derivatives of [`Score::value`].
pub(crate) struct ScoreGradient {
    /// Derivative in log rho.
    pub by_ratio: f64,
    /// Derivatives in the logs of the kernel's parameters.
    pub by_parameters: Vec<f64>,
}

impl Observation {
    /// Returns u and 1 - u h.
    fn left(&self, h: &[f64]) -> (f64, f64) {
        let u = self.weight.min(1.0);
        (u, (1.0 - u * h[self.group]).max(LEAST_LEFT))
    }
}

impl Labels {
    /// Returns the regression on the labels; `None` if S has no Cholesky factor in 64-bit numbers.
    pub(super) fn dense(&self, kernel: &Kernel, log_ratio: f64) -> Option<DenseRegression> {
        let (ratio, c, t) = (log_ratio.exp(), &self.rows.weights, &self.rows.t);
        let mut s = upper_of(kernel, self.rows.x.view(), |k| ratio * k);
        s.diag_mut().iter_mut().zip(c).for_each(|(v, c)| *v += 1.0 / c);
        let factor = Cholesky::of_upper(s)?;
        let mut p = factor.lower_of_inverse();
        linalg::mirror(&mut p);
        let q = p.sum_axis(Axis(1));
        let total = q.sum();
        if !(total.is_finite() && total > 0.0) {
            return None;
        }
        for (mut row, own) in p.outer_iter_mut().zip(&q) {
            row.scaled_add(-own / total, &q);
        }
        let alpha = linalg::times(p.view(), t.view());
        let mut fit = t.clone();
        fit.outer_iter_mut().zip(alpha.outer_iter()).zip(c).for_each(|((mut fit, alpha), c)| fit.scaled_add(-1.0 / c, &alpha));
        let h = p.diag().iter().zip(c).map(|(p, c)| 1.0 / c - p / (c * c)).collect();
        Some(DenseRegression { p, alpha, fit, h })
    }

    /// Returns the left-out means A, [S, C], for `fit`, [n, C], and `h`, `[n]`.
    pub(super) fn left_out(&self, fit: &Array2<f64>, h: &[f64]) -> Array2<f64> {
        let mut out = Array2::zeros((self.observations.len(), self.classes()));
        for (observation, mut row) in self.observations.iter().zip(out.outer_iter_mut()) {
            let (_, left) = observation.left(h);
            for (k, (out, fit)) in row.iter_mut().zip(fit.row(observation.group)).enumerate() {
                let own = f64::from(u8::from(k == observation.class));
                *out = own - (own - fit) / left;
            }
        }
        out
    }

    /// Returns the score of rho and a kernel whose parameters are all numbers; `None` if it is not finite.
    pub(crate) fn score(&self, kernel: &Kernel, log_ratio: f64) -> Option<Score> {
        let dense = self.dense(kernel, log_ratio)?;
        let means = self.left_out(&dense.fit, &dense.h);
        if !means.iter().all(|v| v.is_finite()) {
            return None;
        }
        let (theta, value, probabilities) = link::temperature(self, means.view());
        Some(Score { value, theta, means, dense, probabilities })
    }

    /// Returns the derivatives of a score in log rho and the kernel's parameters, at fixed theta, which is at its
    /// maximum. The derivatives in the kernel's parameters are empty unless `with_kernel` is true.
    ///
    /// By (M83), dv/dS = P diag(f) P - P eta alpha', made symmetric. f is the derivative of v in h divided by c^2, and
    /// eta is the derivative in fit divided by -c.
    pub(super) fn gradient(&self, score: &Score, kernel: &Kernel, log_ratio: f64, with_kernel: bool) -> ScoreGradient {
        let (c, DenseRegression { p, alpha, fit, .. }) = (&self.rows.weights, &score.dense);
        let mut eta = Array2::zeros(fit.dim());
        let mut f = vec![0.0; c.len()];
        for ((observation, means), probabilities) in
            self.observations.iter().zip(score.means.outer_iter()).zip(score.probabilities.outer_iter())
        {
            let (u, left) = observation.left(&score.dense.h);
            for k in 0..self.classes() {
                let by_mean = score.theta * observation.weight * (self.target(observation.class, k) - probabilities[k]);
                let own = f64::from(u8::from(k == observation.class));
                eta[[observation.group, k]] -= by_mean / (left * c[observation.group]);
                // e - fit = (e - A) left.
                f[observation.group] -= by_mean * (own - means[k]) * u / (left * c[observation.group] * c[observation.group]);
            }
        }
        let p_eta = linalg::times(p.view(), eta.view());
        // P rho K P = P - P diag(1 / c) P.
        let own = |g: usize| p[[g, g]] - p.row(g).iter().zip(c).map(|(p, c)| p * p / c).sum::<f64>();
        let mut by_ratio: f64 = f.iter().enumerate().map(|(g, f)| f * own(g)).sum();
        for (((eta, p_eta), alpha), c) in eta.outer_iter().zip(p_eta.outer_iter()).zip(alpha.outer_iter()).zip(c) {
            by_ratio -= eta.dot(&alpha) - p_eta.dot(&alpha) / c;
        }
        let by_parameters = match with_kernel {
            false => vec![],
            true => {
                let mut scaled = p.clone();
                scaled.columns_mut().into_iter().zip(&f).for_each(|(mut column, f)| column *= *f);
                let mut m = linalg::times(scaled.view(), p.view());
                linalg::product(true, -0.5, p_eta.view(), alpha.t(), m.view_mut());
                linalg::product(true, -0.5, alpha.view(), p_eta.t(), m.view_mut());
                kernel_gradient(kernel, self.rows.x.view(), m, log_ratio.exp())
            }
        };
        ScoreGradient { by_ratio, by_parameters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gamma;
    use crate::process::evidence::kernel_matrix;

    fn wave(i: usize, k: usize) -> f64 {
        (0.618_033_988_75 * (i * (k + 1) + 7 * k) as f64).fract()
    }

    /// Returns `n` rows of two features. The last four repeat the four before them and follow their originals.
    fn rows(n: usize, classes: usize) -> (Array2<f64>, Vec<usize>) {
        let group = |i: usize| if i >= n - 4 { i - 4 } else { i };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|i| group(*i));
        let x = Array2::from_shape_fn((n, 2), |(i, d)| 2.0 * wave(group(order[i]), d) - 1.0);
        let class = order.iter().map(|i| ((wave(*i, 0) * 3.0 + wave(*i, 5)) * classes as f64 / 4.01) as usize).collect();
        (x, class)
    }

    fn kernels() -> Vec<Kernel> {
        // With its initial period, 1, a periodic kernel carries no information about these classes.
        let periodic: Kernel = crate::kernel::Periodic { period: Some(3.0), ..crate::kernel::Periodic::default() }.into();
        let other = |name: &&&str| !["sigmoid", "periodic"].contains(*name);
        let named = Kernel::NAMES.iter().filter(other).map(|name| Kernel::from_name(name).unwrap());
        let all = named.chain([periodic]);
        let each = |k: Kernel| [Gamma::Value(0.4), vec![0.3, 0.8].into()].map(|gamma| k.with_gamma(gamma));
        all.flat_map(each).collect()
    }

    #[test]
    fn gradient_equals_finite_differences() {
        for (classes, scale) in [(2, 1.0), (4, 1.0), (3, 0.3)] {
            let (x, class) = rows(40, classes);
            let weights: Vec<f64> = (0..40).map(|i| scale * (0.2 + 2.0 * wave(i, 3))).collect();
            let labels = Labels::new(x.view(), &class, classes, &weights);
            assert!(labels.rows.len() == 36 && labels.observations.len() > 36);
            for kernel in kernels() {
                let logs: Vec<f64> = kernel.parameters().iter().map(|(_, v)| v.ln()).collect();
                let at = |k: Option<usize>, h: f64, log_ratio: f64| {
                    let values: Vec<f64> =
                        logs.iter().enumerate().map(|(j, v)| (v + if Some(j) == k { h } else { 0.0 }).exp()).collect();
                    labels.score(&kernel.with_parameters(&values), log_ratio).unwrap()
                };
                let exact = at(None, 0.0, 1.5);
                assert!(exact.theta > 0.0, "{kernel:?}");
                let slopes = labels.gradient(&exact, &kernel, 1.5, true);
                let h = 1e-5;
                let close = |got: f64, ends: [Score; 2]| {
                    let expected = (ends[1].value - ends[0].value) / (2.0 * h);
                    assert!((got - expected).abs() < 2e-5 * (1.0 + expected.abs()), "{kernel:?}: {got} instead of {expected}");
                };
                close(slopes.by_ratio, [-h, h].map(|h| at(None, 0.0, 1.5 + h)));
                assert_eq!(slopes.by_parameters.len(), logs.len());
                for (k, got) in slopes.by_parameters.iter().enumerate() {
                    close(*got, [-h, h].map(|h| at(Some(k), h, 1.5)));
                }
                assert!(labels.gradient(&exact, &kernel, 1.5, false).by_parameters.is_empty());
            }
        }
    }

    /// Left-out means equal those of a regression with one unit of weight less, at the input of that unit. The
    /// reference solves the system with the constant as a further unknown.
    #[test]
    fn left_out_means_equal_those_of_refits() {
        let (x, class) = rows(24, 3);
        for (log_ratio, whole) in [(1.0, true), (6.0, true), (2.0, false)] {
            let weights: Vec<f64> = (0..24).map(|i| if whole { (1 + i % 3) as f64 } else { 0.1 + 0.4 * wave(i, 3) }).collect();
            let labels = Labels::new(x.view(), &class, 3, &weights);
            let kernel = Kernel::from_name("rbf").unwrap().with_gamma(0.7.into());
            let dense = labels.dense(&kernel, log_ratio).unwrap();
            let means = labels.left_out(&dense.fit, &dense.h);
            let k = kernel_matrix(&kernel, labels.rows.x.view()) * f64::exp(log_ratio);
            for (s, observation) in labels.observations.iter().enumerate() {
                let share = |g: usize, k: usize| labels.rows.t[[g, k]] * labels.rows.weights[g];
                let mut left = Array2::from_shape_fn(labels.rows.t.dim(), |(g, k)| share(g, k));
                let taken = observation.weight.min(1.0);
                left[[observation.group, observation.class]] -= taken;
                let c = left.sum_axis(Axis(1));
                let kept: Vec<usize> = (0..c.len()).filter(|g| c[*g] > 1e-9).collect();
                let n = kept.len();
                let system = Array2::from_shape_fn((n + 1, n + 1), |(i, j)| match (i == n, j == n) {
                    (true, true) => 0.0,
                    (true, _) | (_, true) => 1.0,
                    _ => k[[kept[i], kept[j]]] + if i == j { 1.0 / c[kept[i]] } else { 0.0 },
                });
                let t = Array2::from_shape_fn((n + 1, 3), |(i, k)| if i == n { 0.0 } else { left[[kept[i], k]] / c[kept[i]] });
                let solved = solve(system, t);
                for class in 0..3 {
                    let of_rows: f64 = (0..n).map(|i| k[[observation.group, kept[i]]] * solved[[i, class]]).sum();
                    let expected = of_rows + solved[[n, class]];
                    let got = means[[s, class]];
                    assert!((got - expected).abs() < 1e-10, "{observation:?}, class {class}: {got} instead of {expected}");
                }
            }
        }
    }

    /// Solves by Gaussian elimination with pivoting.
    fn solve(mut a: Array2<f64>, mut b: Array2<f64>) -> Array2<f64> {
        let n = a.nrows();
        for i in 0..n {
            let pivot = (i..n).max_by(|p, q| a[[*p, i]].abs().total_cmp(&a[[*q, i]].abs())).unwrap();
            (0..n).for_each(|j| a.swap([i, j], [pivot, j]));
            (0..b.ncols()).for_each(|j| b.swap([i, j], [pivot, j]));
            for p in (0..n).filter(|p| *p != i) {
                let share = a[[p, i]] / a[[i, i]];
                let (own, own_b) = (a.row(i).to_owned(), b.row(i).to_owned());
                a.row_mut(p).scaled_add(-share, &own);
                b.row_mut(p).scaled_add(-share, &own_b);
            }
        }
        Array2::from_shape_fn(b.dim(), |(i, k)| b[[i, k]] / a[[i, i]])
    }

    #[test]
    fn weights_are_repetitions() {
        let (x, class) = rows(20, 3);
        let weights: Vec<f64> = (0..20).map(|i| (1 + i % 3) as f64).collect();
        let repeated: Vec<usize> = (0..20).flat_map(|i| vec![i; 1 + i % 3]).collect();
        let one = Labels::new(x.view(), &class, 3, &weights);
        let of_repeated: Vec<usize> = repeated.iter().map(|i| class[*i]).collect();
        let other = Labels::new(x.select(Axis(0), &repeated).view(), &of_repeated, 3, &vec![1.0; repeated.len()]);
        let kernel = Kernel::from_name("matern32").unwrap().with_gamma(0.7.into());
        let score = |labels: &Labels| labels.score(&kernel, 2.0).unwrap().value;
        assert!((score(&one) - score(&other)).abs() < 1e-11 * score(&one).abs());
        assert!((one.null - other.null).abs() < 1e-12 * one.null.abs());
    }
}
