//! Any number of classes with one linear function each, coupled by the softmax.

use std::cmp::Ordering;
use std::ops::AddAssign;

use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut1, Axis, Zip, s};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::kernel::vector;
use crate::targets::{Values, check_labels};

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

    /// E a, [K, M], for numbers `a` of the contrasts E, [R, M]: as [`Contrasts::classes`] of each column.
    pub fn expand(&self, a: ArrayView2<f64>) -> Array2<f64> {
        if self.each {
            return a.as_standard_layout().into_owned();
        }
        let (mut out, mut after) = (Array2::zeros((self.classes, a.ncols())), Array1::zeros(a.ncols()));
        for (r, a) in a.outer_iter().enumerate().rev() {
            let u = &a * self.scale[r];
            out.row_mut(r + 1).assign(&(&after - &(&u * (r + 1) as f64)));
            after += &u;
        }
        out.row_mut(0).assign(&after);
        out
    }

    /// E'a, [R, M], for numbers `a` of the classes, [K, M]: as [`Contrasts::contrasts`] of each column.
    pub fn reduce(&self, a: ArrayView2<f64>) -> Array2<f64> {
        if self.each {
            return a.as_standard_layout().into_owned();
        }
        let (mut out, mut before) = (Array2::zeros((self.count(), a.ncols())), Array1::<f64>::zeros(a.ncols()));
        for (r, mut out) in out.outer_iter_mut().enumerate() {
            before += &a.row(r);
            Zip::from(&mut out).and(&before).and(a.row(r + 1)).for_each(|out, b, a| *out = self.of_sum(r, *b, *a));
        }
        out
    }

    /// Contrast `r` of the sum of what classes 0..=r have and what class r + 1 has.
    fn of_sum(&self, r: usize, before: f64, next: f64) -> f64 {
        self.scale[r] * (before - (r + 1) as f64 * next)
    }

    /// E c E', [K, K], for symmetric c between the contrasts E.
    pub fn between_classes(&self, c: ArrayView2<f64>) -> Array2<f64> {
        self.expand(self.expand(c).t())
    }

    /// The curvature of the contrasts' weights, lower triangle of [R M, R M], out of Phi'c y_k y_l Phi, [M, M], for each
    /// pair of classes k < l: E'C E with the blocks C_kl = -G_kl and C_kk = sum_l G_kl between classes.
    pub fn curvature(&self, pairs: &[Array2<f64>]) -> Array2<f64> {
        let m = pairs.first().map_or(0, Array2::nrows);
        let (classes, count) = (self.classes, self.count());
        let mut h = Array3::zeros((count, m, count * m));
        // Each row of the M by itself: what is summed on the way stays in the cache.
        h.axis_iter_mut(Axis(1)).into_par_iter().enumerate().for_each(|(i, mut h)| {
            let pair = |k: usize, l: usize| pairs[l * (l - 1) / 2 + k].row(i);
            let mut own = Array2::<f64>::zeros((classes, m));
            for (k, l) in self.pairs() {
                let pair = pair(k, l);
                own.row_mut(k).add_assign(&pair);
                own.row_mut(l).add_assign(&pair);
            }
            let block = |k: usize, l: usize, mut out: ArrayViewMut1<f64>| match k.cmp(&l) {
                Ordering::Less => out.zip_mut_with(&pair(k, l), |out, g| *out = -g),
                Ordering::Equal => out.assign(&own.row(k)),
                Ordering::Greater => out.zip_mut_with(&pair(l, k), |out, g| *out = -g),
            };
            if self.each {
                for (k, mut h) in h.outer_iter_mut().enumerate() {
                    (0..=k).for_each(|l| block(k, l, h.slice_mut(s![l * m..(l + 1) * m])));
                }
                return;
            }
            // Of the classes up to r, summed; of class r + 1; and contrast r of them: [K, M] each.
            let [mut before, mut next, mut contrast] = [(); 3].map(|()| Array2::<f64>::zeros((classes, m)));
            (0..classes).for_each(|l| block(0, l, next.row_mut(l)));
            for (r, mut h) in h.outer_iter_mut().enumerate() {
                before += &next;
                (0..classes).for_each(|l| block(r + 1, l, next.row_mut(l)));
                Zip::from(&mut contrast).and(&before).and(&next).for_each(|c, b, n| *c = self.of_sum(r, *b, *n));
                let mut sum = Array1::<f64>::zeros(m);
                for s in 0..=r {
                    sum += &contrast.row(s);
                    let out = h.slice_mut(s![s * m..(s + 1) * m]);
                    Zip::from(out).and(&sum).and(contrast.row(s + 1)).for_each(|out, b, n| *out = self.of_sum(s, *b, *n));
                }
            }
        });
        h.into_shape_with_order((count * m, count * m)).expect("its blocks of rows are consecutive")
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
            *out = self.of_sum(r, before, f[r + 1]);
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
        let mut functions = Array2::zeros((targets.len(), contrasts.n_classes()));
        for (n, mut row) in functions.outer_iter_mut().enumerate() {
            let own = &f[n * contrasts.count()..(n + 1) * contrasts.count()];
            contrasts.classes(own, row.as_slice_mut().expect("rows are contiguous"));
        }
        ClassRows::at(targets, functions)
    }

    /// Of class numbers `targets`, `[B]`, at functions of the classes, [B, K].
    pub fn at(targets: &[f64], functions: Array2<f64>) -> ClassRows {
        let n = targets.len();
        let labels: Vec<usize> = targets.iter().map(|t| *t as usize).collect();
        let mut y = functions;
        let (mut top, mut log_likelihood) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (n, mut row) in y.outer_iter_mut().enumerate() {
            let row = row.as_slice_mut().expect("rows are contiguous");
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
        for (own, out) in self.residual_of_classes().outer_iter().zip(out.chunks_mut(outputs)) {
            contrasts.contrasts(own.to_slice().expect("rows are contiguous"), out);
        }
        out
    }

    /// The same in the functions of the classes, [B, K].
    pub fn residual_of_classes(&self) -> Array2<f64> {
        let mut out = -&self.y;
        for ((row, mut out), label) in self.y.outer_iter().zip(out.outer_iter_mut()).zip(&self.labels) {
            // 1 - y as the sum of the others is not rounded to 0 where y is nearly 1.
            out[*label] = row.iter().enumerate().map(|(k, y)| if k == *label { 0.0 } else { *y }).sum();
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
        check_labels(labels, count, 0)?;
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

    /// Maps of matrices are those of their columns, and the curvature is the sum over pairs of classes that it stands for.
    #[test]
    fn matrices_of_contrasts() {
        let entry = |i: usize| ((i * i + 3) as f64 * 0.7391).sin();
        for (contrasts, m) in [(Contrasts::new(5), 3), (Contrasts::new(2), 1), (Contrasts::each(4), 2)] {
            let (classes, count) = (contrasts.n_classes(), contrasts.count());
            let e = Array2::from_shape_fn((classes, count), |(k, r)| contrasts.at(k, r));
            let of_contrasts = Array2::from_shape_fn((count, 4), |(r, i)| entry(4 * r + i));
            let of_classes = Array2::from_shape_fn((classes, 4), |(k, i)| entry(50 + 4 * k + i));
            let near = |a: &Array2<f64>, b: &Array2<f64>| assert!((a - b).iter().all(|d| d.abs() < 1e-14));
            near(&contrasts.expand(of_contrasts.view()), &e.dot(&of_contrasts));
            near(&contrasts.reduce(of_classes.view()), &e.t().dot(&of_classes));

            let pairs: Vec<Array2<f64>> = (0..classes * (classes - 1) / 2)
                .map(|p| Array2::from_shape_fn((m, m), |(i, j)| entry(90 + 20 * p + i + j)))
                .collect();
            let found = contrasts.curvature(&pairs);
            for ((i, j), found) in found.indexed_iter().filter(|((i, j), _)| i / m >= j / m) {
                let term = |((k, l), pair): ((usize, usize), &Array2<f64>)| {
                    (e[[k, i / m]] - e[[l, i / m]]) * (e[[k, j / m]] - e[[l, j / m]]) * pair[[i % m, j % m]]
                };
                let expected: f64 = contrasts.pairs().zip(&pairs).map(term).sum();
                assert!((found - expected).abs() < 1e-13, "{i}, {j}: {found} instead of {expected}");
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
