//! Measures of predicted values, distributions, classes and probabilities. All slices have one entry per row and at
//! least one row.

use std::f64::consts::PI;

use ndarray::ArrayView2;

/// Number of bins of equal width for the probability of the most probable class.
const BINS: usize = 15;

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// Returns the root mean squared error.
pub(crate) fn rmse(truth: &[f64], predicted: &[f64]) -> f64 {
    mean(truth.iter().zip(predicted).map(|(t, y)| (t - y).powi(2))).sqrt()
}

/// Returns the mean absolute error.
pub(crate) fn mae(truth: &[f64], predicted: &[f64]) -> f64 {
    mean(truth.iter().zip(predicted).map(|(t, y)| (t - y).abs()))
}

/// Returns the mean of -ln N(t | mean, variance), in nats.
pub(crate) fn negative_log_density(truth: &[f64], predicted: &[f64], variance: &[f64]) -> f64 {
    let one = |((t, m), v): ((&f64, &f64), &f64)| 0.5 * ((2.0 * PI * v).ln() + (t - m).powi(2) / v);
    mean(truth.iter().zip(predicted).zip(variance).map(one))
}

/// Returns the share of rows inside their intervals.
pub(crate) fn coverage(truth: &[f64], lower: &[f64], upper: &[f64]) -> f64 {
    let inside = |((t, lower), upper): ((&f64, &f64), &f64)| f64::from(u8::from(lower <= t && t <= upper));
    mean(truth.iter().zip(lower).zip(upper).map(inside))
}

/// Returns the share of misclassified rows.
pub(crate) fn error_rate(labels: &[usize], predicted: &[usize]) -> f64 {
    mean(labels.iter().zip(predicted).map(|(k, l)| f64::from(u8::from(k != l))))
}

/// Returns the mean of -ln p of the true class, in nats, from log probabilities [N, K]. It is infinite if a true class
/// has probability 0.
pub(crate) fn log_loss(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    mean(labels.iter().enumerate().map(|(i, k)| -log_probability[[i, *k]]))
}

/// Returns the mean of sum_k (p_k - [k is the class])^2, from 0 to 2 (Brier 1950), from log probabilities [N, K].
pub(crate) fn brier(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    let square = |i: usize, k: usize, class: usize| (log_probability[[i, k]].exp() - f64::from(u8::from(k == class))).powi(2);
    mean(labels.iter().enumerate().map(|(i, class)| (0..log_probability.ncols()).map(|k| square(i, k, *class)).sum()))
}

/// Rows whose most probable class has a probability in one bin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bin {
    pub rows: usize,
    /// Sum of the probabilities of the most probable class.
    probability: f64,
    /// Rows whose true class is the most probable one.
    right: usize,
}

impl Bin {
    /// Returns the mean probability and the share of correct rows. The bin must have rows.
    pub fn point(&self) -> (f64, f64) {
        (self.probability / self.rows as f64, self.right as f64 / self.rows as f64)
    }
}

/// Returns the rows in bins of equal width, from log probabilities [N, K].
pub(crate) fn reliability(labels: &[usize], log_probability: ArrayView2<f64>) -> [Bin; BINS] {
    let mut bins = [Bin::default(); BINS];
    for (row, label) in log_probability.outer_iter().zip(labels) {
        let top = (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        let p = row[top].exp();
        // A bin includes its upper end.
        let bin = &mut bins[((p * BINS as f64).ceil() as usize).clamp(1, BINS) - 1];
        bin.rows += 1;
        bin.probability += p;
        bin.right += usize::from(top == *label);
    }
    bins
}

/// Returns the expected calibration error (M47) from log probabilities [N, K]: the difference between mean probability
/// and share of correct rows, averaged over the bins with their numbers of rows as weights (Guo et al. 2017).
pub(crate) fn calibration_error(labels: &[usize], log_probability: ArrayView2<f64>) -> f64 {
    let excess = |bin: &Bin| (bin.probability - bin.right as f64).abs();
    reliability(labels, log_probability).iter().map(excess).sum::<f64>() / labels.len() as f64
}

/// Counts of positive and other rows above a threshold, as the threshold on the score falls. Rows with equal scores
/// enter together.
pub(crate) struct Ranking(Vec<(usize, usize)>);

impl Ranking {
    /// Returns `None` if all rows or no rows are positive. No score may be NaN.
    pub fn new(positive: &[bool], score: &[f64]) -> Option<Ranking> {
        let mut order: Vec<usize> = (0..score.len()).collect();
        order.sort_unstable_by(|i, j| score[*j].total_cmp(&score[*i]));
        let mut counts = vec![(0, 0)];
        let (mut right, mut wrong) = (0, 0);
        for (k, i) in order.iter().enumerate() {
            right += usize::from(positive[*i]);
            wrong += usize::from(!positive[*i]);
            if order.get(k + 1).is_none_or(|next| score[*next] != score[*i]) {
                counts.push((right, wrong));
            }
        }
        (right > 0 && wrong > 0).then_some(Ranking(counts))
    }

    fn all(&self) -> (f64, f64) {
        let (right, wrong) = self.0[self.0.len() - 1];
        (right as f64, wrong as f64)
    }

    /// Returns the area under the ROC curve: the share of pairs of a positive and another row in which the positive row
    /// has the higher score. Equal scores count half.
    pub fn area(&self) -> f64 {
        // Twice the number of pairs, in whole numbers.
        let pairs = |w: &[(usize, usize)]| (w[1].1 - w[0].1) as u128 * (w[0].0 + w[1].0) as u128;
        let (right, wrong) = self.all();
        self.0.windows(2).map(pairs).sum::<u128>() as f64 / (2.0 * right * wrong)
    }

    /// Returns the average precision: for each positive row the share of positives among the rows with at least its
    /// score, averaged over the positive rows.
    pub fn average_precision(&self) -> f64 {
        let step = |w: &[(usize, usize)]| (w[1].0 - w[0].0) as f64 * w[1].0 as f64 / (w[1].0 + w[1].1) as f64;
        self.0.windows(2).map(step).sum::<f64>() / self.all().0
    }

    /// Returns the points (share of other rows, share of positive rows) of the ROC curve, from (0, 0) to (1, 1).
    pub fn roc(&self) -> Vec<(f64, f64)> {
        let (right, wrong) = self.all();
        self.0.iter().map(|(r, w)| (*w as f64 / wrong, *r as f64 / right)).collect()
    }

    /// Returns the points (recall, precision) in the order of rising recall.
    pub fn precision_recall(&self) -> Vec<(f64, f64)> {
        let right = self.all().0;
        self.0[1..].iter().map(|(r, w)| (*r as f64 / right, *r as f64 / (r + w) as f64)).collect()
    }
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
        close(coverage(&[3.919, 3.921, -3.919, -3.921], &[-3.92; 4], &[3.92; 4]), 0.5);
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

    /// Compares with a count over all pairs, with many ties.
    #[test]
    fn the_area_counts_pairs() {
        let n = 200;
        let score: Vec<f64> = (0..n).map(|i| ((i * 7919) % 23) as f64 - 11.0).collect();
        let positive: Vec<bool> = (0..n).map(|i| (i * 31) % 17 + (i * 7919) % 23 > 20).collect();
        let (mut twice, mut pairs) = (0u64, 0u64);
        for i in (0..n).filter(|i| positive[*i]) {
            for j in (0..n).filter(|j| !positive[*j]) {
                pairs += 1;
                twice += 2 * u64::from(score[i] > score[j]) + u64::from(score[i] == score[j]);
            }
        }
        let ranking = Ranking::new(&positive, &score).unwrap();
        assert_eq!(ranking.area(), twice as f64 / (2.0 * pairs as f64));
        assert!(ranking.roc().len() == 24 && ranking.area() > 0.6);
        assert_eq!((ranking.roc()[0], ranking.roc()[23]), ((0.0, 0.0), (1.0, 1.0)));
        let equal = Ranking::new(&positive, &vec![-0.0; n]).unwrap();
        close(equal.area(), 0.5);
        let share = positive.iter().filter(|p| **p).count() as f64 / n as f64;
        assert_eq!(equal.precision_recall(), [(1.0, share)]);
        // Minus zero is zero.
        assert_eq!(Ranking::new(&[true, false], &[-0.0, 0.0]).unwrap().area(), 0.5);
        assert!(Ranking::new(&[true, true], &[1.0, 2.0]).is_none() && Ranking::new(&[], &[]).is_none());
    }

    #[test]
    fn precision_and_recall() {
        // In the order of the scores: +, -, then + and - with equal scores, +.
        let positive = [true, false, true, false, true];
        let ranking = Ranking::new(&positive, &[5.0, 4.0, 3.0, 3.0, 1.0]).unwrap();
        let third = 1.0 / 3.0;
        let expected = [(third, 1.0), (third, 0.5), (2.0 * third, 0.5), (1.0, 0.6)];
        for ((r, p), (recall, precision)) in ranking.precision_recall().into_iter().zip(expected) {
            close(r, recall);
            close(p, precision);
        }
        close(ranking.average_precision(), (1.0 + 0.5 + 0.6) / 3.0);
        close(ranking.area(), (2.0 + 0.5 + 0.0) / 6.0);
        let best = Ranking::new(&[false, true, true], &[0.0, 1.0, f64::INFINITY]).unwrap();
        assert_eq!((best.area(), best.average_precision()), (1.0, 1.0));
    }

    #[test]
    fn calibration_error_is_the_weighted_gap_of_the_bins() {
        // The bin around 0.9 (0.867 to 0.933] has three rows, of which two are correct. The bin around 0.6 has one row,
        // which is wrong.
        // |2.7 - 2| + |0.6 - 0|, over four rows.
        let log = array![[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.6, 0.4]].mapv_into(f64::ln);
        close(calibration_error(&[0, 1, 1, 1], log.view()), (0.7 + 0.6) / 4.0);
        // One row certain and correct, one certain and wrong.
        let sure: Array2<f64> = array![[0.0, f64::NEG_INFINITY], [0.0, f64::NEG_INFINITY]];
        close(calibration_error(&[0, 0], sure.view()), 0.0);
        close(calibration_error(&[0, 1], sure.view()), 0.5);
    }
}
