//! Any number of classes with one linear function each, coupled by the softmax.

use ndarray::{Array2, ArrayView1};
use relvec_predict::internal::likelihood::difference_variance;

use super::{Contrasts, LikelihoodFunction, NoiseModel, Softmax, Working, moderate};
use crate::error::{Error, Result};
use crate::kernel::vector;
use crate::targets::{Values, check_labels};

/// Probabilities and log-likelihoods of rows of several classes.
pub(crate) struct ClassRows {
    /// Class probabilities, [B, K].
    pub y: Array2<f64>,
    /// Most probable class of each row, `[B]`.
    top: Vec<usize>,
    /// Log probability of the class of each row, `[B]`.
    pub log_likelihood: Vec<f64>,
    labels: Vec<usize>,
}

impl ClassRows {
    /// Returns these values for class numbers `targets`, `[B]`, at contrasts `f`, [B, R], row by row.
    pub fn new(contrasts: &Contrasts, targets: &[f64], f: &[f64]) -> ClassRows {
        let mut functions = Array2::zeros((targets.len(), contrasts.n_classes()));
        for (n, mut row) in functions.outer_iter_mut().enumerate() {
            let own = &f[n * contrasts.count()..(n + 1) * contrasts.count()];
            contrasts.classes(own, row.as_slice_mut().expect("rows are contiguous"));
        }
        ClassRows::at(targets, functions)
    }

    /// Returns these values for class numbers `targets`, `[B]`, at functions of the classes, [B, K].
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

    /// Returns the derivatives of the log-likelihood in the contrasts, [B, R], row by row.
    pub fn residual(&self, contrasts: &Contrasts) -> Vec<f64> {
        let outputs = contrasts.count();
        let mut out = vec![0.0; self.labels.len() * outputs];
        for (own, out) in self.residual_of_classes().outer_iter().zip(out.chunks_mut(outputs)) {
            contrasts.contrasts(own.to_slice().expect("rows are contiguous"), out);
        }
        out
    }

    /// Returns the derivatives of the log-likelihood in the functions of the classes, [B, K].
    pub fn residual_of_classes(&self) -> Array2<f64> {
        let mut out = -&self.y;
        for ((row, mut out), label) in self.y.outer_iter().zip(out.outer_iter_mut()).zip(&self.labels) {
            // The sum of the other probabilities, unlike 1 - y, does not round to 0 if y is nearly 1.
            out[*label] = row.iter().enumerate().map(|(k, y)| if k == *label { 0.0 } else { *y }).sum();
        }
        out
    }

    /// Returns the mean curvature of the contrasts, (1 - sum y_k^2) / (K - 1), `[B]`.
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

    /// The curvature of a row is the mean of those of its contrasts.
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

    /// Uses moderated probabilities, (M31), and the factor by which the difference of the two functions is moderated.
    /// For two classes the result is that of Bernoulli.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The residual is the derivative of the log-likelihood, and the curvature is the mean of minus its second
    /// derivatives.
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
        // At saturated probabilities nothing overflows, and the small numbers do not round to 0.
        let far = Softmax {}.working(&[0.0], &[400.0, 300.0, 200.0]);
        assert!(far.log_likelihood[0] <= 0.0 && far.curvature[0] > 0.0 && far.residual.iter().any(|r| *r != 0.0));
    }
}
