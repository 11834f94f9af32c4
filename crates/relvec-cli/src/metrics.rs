//! How good predictions are: of values, of their distribution, of classes and their probabilities. Slices are of one
//! length, that of the rows, >= 1.

use std::f64::consts::PI;

use ndarray::ArrayView2;

/// Standard deviations from the middle of a Gaussian to the ends of its central 95 %.
const HALF_WIDTH: f64 = 1.959963984540054;
/// Bins of the probability of the most probable class, of equal width.
const BINS: usize = 15;

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// Root of the mean squared error.
pub(crate) fn rmse(truth: &[f64], predicted: &[f64]) -> f64 {
    mean(truth.iter().zip(predicted).map(|(t, y)| (t - y).powi(2))).sqrt()
}

/// Mean absolute error.
pub(crate) fn mae(truth: &[f64], predicted: &[f64]) -> f64 {
    mean(truth.iter().zip(predicted).map(|(t, y)| (t - y).abs()))
}

/// Mean of -ln N(t | mean, variance), in nats.
pub(crate) fn negative_log_density(truth: &[f64], predicted: &[f64], variance: &[f64]) -> f64 {
    let one = |((t, m), v): ((&f64, &f64), &f64)| 0.5 * ((2.0 * PI * v).ln() + (t - m).powi(2) / v);
    mean(truth.iter().zip(predicted).zip(variance).map(one))
}

/// Share of rows inside the central 95 % of N(mean, variance).
pub(crate) fn coverage(truth: &[f64], predicted: &[f64], variance: &[f64]) -> f64 {
    let inside = |((t, m), v): ((&f64, &f64), &f64)| f64::from(u8::from((t - m).abs() <= HALF_WIDTH * v.sqrt()));
    mean(truth.iter().zip(predicted).zip(variance).map(inside))
}

/// Share of rows of another class than predicted.
pub(crate) fn error_rate(labels: &[usize], predicted: &[usize]) -> f64 {
    mean(labels.iter().zip(predicted).map(|(k, l)| f64::from(u8::from(k != l))))
}

/// Mean of -ln p of the true class, in nats, from log probabilities [N, K]; infinite if one was held for impossible.
pub(crate) fn log_loss(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    mean(labels.iter().enumerate().map(|(i, k)| -log_probability[[i, *k]]))
}

/// Mean of sum_k (p_k - [k is the class])^2, from 0 to 2 (Brier 1950), from log probabilities [N, K].
pub(crate) fn brier(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    let square = |i: usize, k: usize, class: usize| (log_probability[[i, k]].exp() - f64::from(u8::from(k == class))).powi(2);
    mean(labels.iter().enumerate().map(|(i, class)| (0..log_probability.ncols()).map(|k| square(i, k, *class)).sum()))
}

/// Expected calibration error, from log probabilities [N, K]: how far, over rows whose most probable class has about
/// the same probability (a bin), the mean of these probabilities is from the share of rows that are of that class;
/// the mean over the bins, each by its rows (Guo et al. 2017).
pub(crate) fn calibration_error(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    let mut excess = [0.0; BINS];
    for (row, label) in log_probability.outer_iter().zip(labels) {
        let top = (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        let p = row[top].exp();
        // A bin holds its upper end.
        let bin = ((p * BINS as f64).ceil() as usize).clamp(1, BINS) - 1;
        excess[bin] += p - f64::from(u8::from(top == *label));
    }
    excess.iter().map(|sum| sum.abs()).sum::<f64>() / labels.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn errors_of_values() {
        close(rmse(&[1.0, 2.0], &[4.0, -2.0]), 12.5f64.sqrt());
        close(mae(&[1.0, 2.0], &[4.0, -2.0]), 3.5);
    }

    #[test]
    fn densities_and_intervals() {
        // Standard Gaussian at 0, and at one standard deviation of 2: ln sqrt(2 pi), and that + ln 2 + 1/2.
        let base = 0.9189385332046727;
        close(negative_log_density(&[3.0], &[3.0], &[1.0]), base);
        close(negative_log_density(&[3.0, 0.0], &[3.0, 2.0], &[1.0, 4.0]), base + 0.5 * (2f64.ln() + 0.5));
        // The ends of the interval are at 1.96 standard deviations, here of 2.
        close(coverage(&[3.919, 3.921, -3.919, -3.921], &[0.0; 4], &[4.0; 4]), 0.5);
    }

    #[test]
    fn classes_and_probabilities() {
        close(error_rate(&[0, 1, 2, 1], &[0, 1, 1, 1]), 0.25);
        let p: Array2<f64> = array![[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]];
        let log = p.mapv(f64::ln);
        close(log_loss(&[0, 2], log.view()), 0.5 * (2f64.ln() + 8f64.ln()));
        // 1/4 + 1/16 + 1/16 and 1/64 + 9/16 + 49/64.
        close(brier(&[0, 2], log.view()), 0.5 * (0.375 + 1.34375));
        assert_eq!(log_loss(&[0], array![[f64::NEG_INFINITY, 0.0]].view()), f64::INFINITY);
        close(brier(&[0], array![[f64::NEG_INFINITY, 0.0]].view()), 2.0);
    }

    #[test]
    fn calibration() {
        // Three rows in the bin around 0.9 (0.867 to 0.933], of which two are right, one in that around 0.6, wrong:
        // |2.7 - 2| + |0.6 - 0|, over four rows.
        let log = array![[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.6, 0.4]].mapv_into(f64::ln);
        close(calibration_error(&[0, 1, 1, 1], log.view()), (0.7 + 0.6) / 4.0);
        // Certain and right, certain and wrong.
        let sure: Array2<f64> = array![[0.0, f64::NEG_INFINITY], [0.0, f64::NEG_INFINITY]];
        close(calibration_error(&[0, 0], sure.view()), 0.0);
        close(calibration_error(&[0, 1], sure.view()), 0.5);
    }
}
