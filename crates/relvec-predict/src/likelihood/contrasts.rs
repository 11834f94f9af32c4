//! Contrasts of classes: the functions that the softmax of several classes depends on.

use core::cmp::Ordering;
use core::ops::AddAssign;

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, Array3, ArrayView2, ArrayViewMut1, Axis, Zip, s};

/// Functions that represent those of K classes: Helmert contrasts, or the functions of the classes themselves. Contrast
/// r is the mean of classes 0..=r minus class r + 1, at unit norm.
#[derive(Debug, Clone)]
pub struct Contrasts {
    /// Factor of each Helmert contrast, `[K - 1]`.
    scale: Vec<f64>,
    classes: usize,
    /// True if these are the functions of the classes themselves.
    each: bool,
}

impl Contrasts {
    /// Returns the Helmert contrasts of this number of classes.
    pub fn new(classes: usize) -> Contrasts {
        let scale = (1..classes).map(|r| 1.0 / ((r * (r + 1)) as f64).sqrt()).collect();
        Contrasts { scale, classes, each: false }
    }

    /// Returns the functions of the classes themselves, [K]. They include the common part, on which the probabilities
    /// do not depend.
    pub fn each(classes: usize) -> Contrasts {
        Contrasts { scale: vec![], classes, each: true }
    }

    /// Returns the number of functions.
    pub fn count(&self) -> usize {
        if self.each { self.classes } else { self.scale.len() }
    }

    /// Returns K, the number of classes.
    pub fn n_classes(&self) -> usize {
        self.classes
    }

    /// Returns the entry of contrast `r` at class `k`.
    pub fn at(&self, k: usize, r: usize) -> f64 {
        match k {
            _ if self.each => f64::from(k == r),
            _ if k <= r => self.scale[r],
            _ if k == r + 1 => -self.scale[r] * k as f64,
            _ => 0.0,
        }
    }

    /// Writes the values of the classes, `[K]`, for the contrasts `v` to `out`. For Helmert contrasts they sum to 0.
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

    /// Returns E a, [K, M], for values `a` of the contrasts E, [R, M]. It is [`Contrasts::classes`] for each column.
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

    /// Returns E'a, [R, M], for values `a` of the classes, [K, M]. It is [`Contrasts::contrasts`] for each column.
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

    /// Returns contrast `r` from the sum `before` of classes 0..=r and the value `next` of class r + 1.
    fn of_sum(&self, r: usize, before: f64, next: f64) -> f64 {
        self.scale[r] * (before - (r + 1) as f64 * next)
    }

    /// Returns E c E', [K, K], for a symmetric matrix c, [R, R], between the contrasts E.
    pub fn between_classes(&self, c: ArrayView2<f64>) -> Array2<f64> {
        self.expand(self.expand(c).t())
    }

    /// Returns the negative Hessian of the log-likelihood in the weights of the contrasts, the lower triangle of [R M,
    /// R M]. `pairs` contains G_kl = Phi'c y_k y_l Phi, [M, M], for each pair of classes k < l. The result is E'C E
    /// with the blocks C_kl = -G_kl and C_kk = sum_l G_kl between classes.
    pub fn curvature(&self, pairs: &[Array2<f64>]) -> Array2<f64> {
        let m = pairs.first().map_or(0, Array2::nrows);
        let (classes, count) = (self.classes, self.count());
        let mut h = Array3::zeros((count, m, count * m));
        // Each of the M rows is computed separately, so that its intermediate sums stay in the cache.
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
            // [K, M] each: the sum over the classes up to r, the values of class r + 1, and contrast r of both.
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

    /// Returns all pairs of classes k < l: (0, 1), (0, 2), (1, 2), (0, 3) and so on.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        (1..self.classes).flat_map(|l| (0..l).map(move |k| (k, l)))
    }

    /// Writes the contrasts of the values `f` of the classes, `[K]`, to `out`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Both maps are isometries and inverse to each other, and `at` gives the entries of their matrix.
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

    /// Maps of matrices apply to each column, and the Hessian equals the sum over pairs of classes.
    #[test]
    fn maps_of_contrasts_agree_with_their_matrices() {
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
}
