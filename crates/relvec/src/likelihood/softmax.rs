//! Any number of classes with one linear function each, coupled by the softmax.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::kernel::vector;
use crate::targets::Values;

/// P(class k) = exp(f_k) / sum_l exp(f_l).
///
/// A constant added to all f_k changes nothing, so the K functions have K - 1 degrees of freedom. Inside they are
/// K - 1 orthonormal contrasts of the classes: a ridge prior on the K weights of a basis function is the same prior
/// on its K - 1 contrasts, and what is left over is its prior.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Softmax {}

/// Functions that stand for those of K classes: Helmert's contrasts, contrast r being the mean of classes 0..=r less
/// class r + 1, at unit norm; or those of the classes themselves.
#[derive(Debug, Clone)]
pub(crate) struct Contrasts {
    /// Of each of Helmert's, `[K - 1]`.
    scale: Vec<f64>,
    classes: usize,
    /// Whether they are those of the classes themselves.
    each: bool,
}

impl Contrasts {
    pub fn new(classes: usize) -> Contrasts {
        let scale = (1..classes).map(|r| 1.0 / ((r * (r + 1)) as f64).sqrt()).collect();
        Contrasts { scale, classes, each: false }
    }

    /// The functions of the classes themselves, [K]: what the probabilities do not depend on is left in them.
    pub fn each(classes: usize) -> Contrasts {
        Contrasts { scale: vec![], classes, each: true }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        if self.each { self.classes } else { self.scale.len() }
    }

    pub fn n_classes(&self) -> usize {
        self.classes
    }

    /// Entry of contrast `r` at class `k`.
    pub fn at(&self, k: usize, r: usize) -> f64 {
        match k {
            _ if self.each => f64::from(k == r),
            _ if k <= r => self.scale[r],
            _ if k == r + 1 => -self.scale[r] * k as f64,
            _ => 0.0,
        }
    }

    /// Numbers of the classes, `[K]`, that the contrasts `v` stand for; those of Helmert's sum to 0.
    pub fn classes(&self, v: &[f64], out: &mut [f64]) {
        if self.each {
            return out.copy_from_slice(v);
        }
        let mut after = 0.0;
        for r in (0..v.len()).rev() {
            let u = self.scale[r] * v[r];
            out[r + 1] = after - (r + 1) as f64 * u;
            after += u;
        }
        out[0] = after;
    }

    /// E c E', [K, K], for symmetric c between the contrasts E.
    pub fn between_classes(&self, c: ArrayView2<f64>) -> Array2<f64> {
        if self.each {
            return c.to_owned();
        }
        let classes = self.classes;
        let mut half = Array2::zeros((classes - 1, classes));
        for (row, mut out) in c.outer_iter().zip(half.outer_iter_mut()) {
            self.classes(row.to_slice().expect("rows are contiguous"), out.as_slice_mut().expect("rows are contiguous"));
        }
        // The same map for all columns side by side, since a walk down each would miss the cache.
        let (mut full, mut after) = (Array2::zeros((classes, classes)), Array1::zeros(classes));
        for (r, mut u) in half.outer_iter_mut().enumerate().rev() {
            u *= self.scale[r];
            full.row_mut(r + 1).assign(&(&after - &(&u * (r + 1) as f64)));
            after += &u;
        }
        full.row_mut(0).assign(&after);
        full
    }

    /// The curvature of the contrasts' weights, lower triangle of [R M, R M], out of Phi'c y_k y_l Phi, [M, M], for each
    /// pair of classes k < l: block r, s is the sum of (E_kr - E_lr)(E_ks - E_ls) G_kl, E the contrasts.
    pub fn curvature(&self, pairs: &[Array2<f64>]) -> Array2<f64> {
        let m = pairs.first().map_or(0, Array2::nrows);
        let mut h = Array2::zeros((self.count() * m, self.count() * m));
        let difference = |k: usize, l: usize, r: usize| self.at(k, r) - self.at(l, r);
        h.axis_chunks_iter_mut(Axis(0), m.max(1)).into_par_iter().enumerate().for_each(|(r, mut rows)| {
            for s in 0..=r {
                let mut block = rows.slice_mut(s![.., s * m..(s + 1) * m]);
                for ((k, l), pair) in self.pairs().zip(pairs) {
                    let factor = difference(k, l, r) * difference(k, l, s);
                    if factor != 0.0 {
                        block.scaled_add(factor, pair);
                    }
                }
            }
        });
        h
    }

    /// All pairs of classes k < l: (0, 1), (0, 2), (1, 2), (0, 3) and so on.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        (1..self.classes).flat_map(|l| (0..l).map(move |k| (k, l)))
    }

    /// The contrasts of numbers of the classes, `[K]`.
    pub fn contrasts(&self, f: &[f64], out: &mut [f64]) {
        if self.each {
            return out.copy_from_slice(f);
        }
        let mut before = 0.0;
        for (r, out) in out.iter_mut().enumerate() {
            before += f[r];
            *out = self.scale[r] * (before - (r + 1) as f64 * f[r + 1]);
        }
    }
}

/// Rows of several classes.
pub(crate) struct ClassRows {
    /// Probabilities, [B, K].
    pub y: Array2<f64>,
    /// The class with the largest of each row.
    top: Vec<usize>,
    /// log p of the row's own class.
    pub log_likelihood: Vec<f64>,
    labels: Vec<usize>,
}

impl ClassRows {
    /// Of class numbers `targets`, `[B]`, at contrasts `f`, [B, R] by rows.
    pub fn new(contrasts: &Contrasts, targets: &[f64], f: &[f64]) -> ClassRows {
        let (outputs, n) = (contrasts.count(), targets.len());
        let labels: Vec<usize> = targets.iter().map(|t| *t as usize).collect();
        let mut y = Array2::zeros((n, contrasts.n_classes()));
        let (mut top, mut log_likelihood) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (n, mut row) in y.outer_iter_mut().enumerate() {
            let row = row.as_slice_mut().expect("rows are contiguous");
            contrasts.classes(&f[n * outputs..(n + 1) * outputs], row);
            let best = (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
            let largest = row[best];
            row.iter_mut().for_each(|f| *f -= largest);
            top.push(best);
            log_likelihood.push(row[labels[n]]);
        }
        vector::map(y.view_mut(), vector::exp);
        for ((mut row, top), value) in y.outer_iter_mut().zip(&top).zip(&mut log_likelihood) {
            let others: f64 = row.iter().enumerate().map(|(k, y)| if k == *top { 0.0 } else { *y }).sum();
            *value -= others.ln_1p();
            row /= 1.0 + others;
        }
        ClassRows { y, top, log_likelihood, labels }
    }

    /// Slopes of the log-likelihood, [B, R] by rows.
    pub fn residual(&self, contrasts: &Contrasts) -> Vec<f64> {
        let outputs = contrasts.count();
        let mut out = vec![0.0; self.labels.len() * outputs];
        let mut own = vec![0.0; contrasts.n_classes()];
        for (n, (row, label)) in self.y.outer_iter().zip(&self.labels).enumerate() {
            own.iter_mut().zip(row).for_each(|(r, y)| *r = -y);
            // 1 - y as the sum of the others is not rounded to 0 where y is nearly 1.
            own[*label] = row.iter().enumerate().map(|(k, y)| if k == *label { 0.0 } else { *y }).sum();
            contrasts.contrasts(&own, &mut out[n * outputs..(n + 1) * outputs]);
        }
        out
    }

    /// The mean curvature of the contrasts, (1 - sum y_k^2) / (K - 1), `[B]`.
    fn curvature(&self) -> Vec<f64> {
        let rows = self.y.outer_iter().zip(&self.top);
        let one = |(row, top): (ArrayView1<f64>, &usize)| {
            let others: f64 = row.iter().enumerate().map(|(k, y)| if k == *top { 0.0 } else { *y }).sum();
            let rest = |k: usize| if k == *top { others } else { 1.0 - row[k] };
            (0..row.len()).map(|k| row[k] * rest(k)).sum::<f64>() / (row.len() - 1) as f64
        };
        rows.map(one).collect()
    }
}

impl LikelihoodFunction for Softmax {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn outputs(&self, values: Values<'_>) -> usize {
        match values {
            Values::Classes { count, .. } => count.saturating_sub(1),
            Values::Real(_) | Values::Outputs(_) => 1,
        }
    }

    fn couples_classes(&self) -> bool {
        true
    }

    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        let Values::Classes { labels, count } = values else {
            return Err(Error::Targets("the softmax likelihood needs class labels, found real targets".into()));
        };
        if count < 2 {
            return Err(Error::Targets(format!("the softmax likelihood needs at least 2 classes, found {count}")));
        }
        if let Some((row, label)) = labels.iter().enumerate().find(|(_, l)| **l >= count) {
            return Err(Error::Targets(format!("row {row} has label {label}; labels of {count} classes are 0 to {}", count - 1)));
        }
        Ok(labels.iter().map(|l| *l as f64).collect())
    }

    /// The curvature of a row is the mean one of its contrasts.
    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        let contrasts = Contrasts::new(f.len() / y.len().max(1) + 1);
        let rows = ClassRows::new(&contrasts, y, f);
        let third = |row: ArrayView1<f64>| 8f64.sqrt() * row[0] * row[1] * (row[1] - row[0]);
        Working {
            residual: rows.residual(&contrasts),
            curvature: rows.curvature(),
            third: if rows.y.ncols() == 2 { rows.y.outer_iter().map(third).collect() } else { vec![] },
            log_likelihood: rows.log_likelihood,
        }
    }

    /// With moderated probabilities, (M31), and the factor by which the difference of the two functions is moderated: of
    /// two classes this is Bernoulli's.
    fn mean_curvature(&self, f: &[f64], covariance: &[f64], out: &mut [f64]) {
        let classes = f.len();
        let mut y = f.to_vec();
        moderate(&mut y, covariance);
        for l in 1..classes {
            for k in 0..l {
                let v = difference_variance(covariance, classes, k, l);
                out[l * (l - 1) / 2 + k] = (y[k] + y[l]).exp() / (1.0 + std::f64::consts::PI * v / 8.0).sqrt();
            }
        }
    }

    fn constant_curvature(&self) -> bool {
        false
    }

    fn classifies(&self) -> bool {
        true
    }

    fn noise(&self) -> NoiseModel {
        NoiseModel::None
    }
}

/// Less the logarithm of the sum of the exponentials.
pub(crate) fn normalise(f: &mut [f64]) {
    let top = f.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
    let log_sum = top + f.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
    f.iter_mut().for_each(|v| *v -= log_sum);
}

/// The variance of f_k - f_l, from the covariance of all functions, [K, K].
fn difference_variance(covariance: &[f64], classes: usize, k: usize, l: usize) -> f64 {
    let at = |k: usize, l: usize| covariance[k * classes + l];
    (at(k, k) + at(l, l) - 2.0 * at(k, l)).max(0.0)
}

/// Moderated log probabilities in place of the means, (M31).
pub(crate) fn moderate(mean: &mut [f64], covariance: &[f64]) {
    let k = mean.len();
    let log_p = |i: usize| {
        // At l = i the term is 1.
        let term = |l: usize| {
            let v = difference_variance(covariance, k, i, l);
            -(mean[i] - mean[l]) / (1.0 + std::f64::consts::PI * v / 8.0).sqrt()
        };
        let terms: Vec<f64> = (0..k).map(term).collect();
        let top = terms.iter().fold(0.0f64, |m, t| m.max(*t));
        -(top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln())
    };
    let mut out: Vec<f64> = (0..k).map(log_p).collect();
    normalise(&mut out);
    mean.copy_from_slice(&out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There and back, each an isometry; and the entries are those of the maps.
    #[test]
    fn contrasts_are_orthonormal() {
        for classes in [2, 3, 7] {
            let c = Contrasts::new(classes);
            for r in 0..classes - 1 {
                let mut v = vec![0.0; classes - 1];
                v[r] = 1.0;
                let mut f = vec![0.0; classes];
                c.classes(&v, &mut f);
                assert!(f.iter().sum::<f64>().abs() < 1e-15);
                assert!(f.iter().enumerate().all(|(k, f)| (f - c.at(k, r)).abs() < 1e-15));
                let mut back = vec![0.0; classes - 1];
                c.contrasts(&f, &mut back);
                assert!(back.iter().zip(&v).all(|(b, v)| (b - v).abs() < 1e-15));
            }
        }
    }

    /// The residual is the slope of the log-likelihood, and the curvature the mean of minus its second derivatives.
    #[test]
    fn derivatives_are_those_of_the_log_likelihood() {
        let (classes, label) = (4, 2.0);
        let f = [0.3, -1.1, 0.7];
        let value = |f: &[f64]| Softmax {}.working(&[label], f).log_likelihood[0];
        let here = Softmax {}.working(&[label], &f);
        let (h, mut curvature) = (1e-4, 0.0);
        for r in 0..classes - 1 {
            let moved = |by: f64| {
                let mut f = f;
                f[r] += by;
                value(&f)
            };
            assert!(((moved(h) - moved(-h)) / (2.0 * h) - here.residual[r]).abs() < 1e-8);
            curvature -= (moved(h) - 2.0 * moved(0.0) + moved(-h)) / (h * h) / (classes - 1) as f64;
        }
        assert!((curvature - here.curvature[0]).abs() < 1e-6);
        // Saturated: nothing overflows, and what is left is not rounded to 0.
        let far = Softmax {}.working(&[0.0], &[400.0, 300.0, 200.0]);
        assert!(far.log_likelihood[0] <= 0.0 && far.curvature[0] > 0.0 && far.residual.iter().any(|r| *r != 0.0));
    }
}
