//! Chooses between one width for all features and one width for each, by the probability of left-out labels, (M88).
//!
//! One width is learned from left-out labels, (M82). Widths of many features are learned by the evidence of a process
//! on the labels. They are so many that they may fit the rows from which they are learned better than other rows, and
//! are therefore compared on other rows.

use ndarray::{Array2, Axis, concatenate};

use crate::canonical::random_subset;
use crate::error::Result;
use crate::kernel::{GammaRule, Kernel};
use crate::process::label_kernel::maximise;
use crate::process::label_rows::Labels;
use crate::process::parameters::{Frame, Moments};
use crate::process::pivoted_cholesky::Points;
use crate::process::{Learned, label_sums, link};
use crate::query::pass::AllRows;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::training_rows::{MOST_ROWS, labels_of};
use crate::rvm::settings::rvm::Rvm;

/// Number of rows, centres and left-out rows by which two kernels are compared on a large training set. If many rows
/// show a fine structure, 4,000 rows with 500 centres prefer the wide kernel of 1,000 rows (10 classes in 8 features: 5
/// of 8 draws).
const JUDGED_ROWS: usize = 20_000;
const JUDGED_CENTRES: usize = 1000;
const LEFT_OUT_ROWS: usize = 2000;
/// Number of different rows below which only one width is learned, because halves of fewer rows may lack a class.
const LEAST_ROWS: usize = 20;

/// Rows that are left out one at a time, and the rows of the sums.
struct Judge {
    left_out: Labels,
    all: Labels,
    points: Points,
}

impl Judge {
    /// Returns a comparison on the rows `some` of a training set, which include the rows `left_out` (both ascending).
    fn new(training: &TrainingSet, some: &[usize], left_out: &[usize], seed: u64) -> Judge {
        let left_out = labels_of(training, left_out);
        let centres: Vec<usize> = random_subset(some.len(), JUDGED_CENTRES, seed).into_iter().map(|k| some[k]).collect();
        let x = concatenate![Axis(0), left_out.rows.x, training.rows.select(Axis(0), &centres)];
        let points = Points { x, first: left_out.rows.len() };
        Judge { left_out, all: labels_of(training, some), points }
    }

    /// Returns the logits of the left-out labels, [S, C], for a kernel with its best ratio; `None` if there is no time
    /// or no finite value.
    fn logits(&self, training: &TrainingSet, learned: &Learned) -> Result<Option<Array2<f64>>> {
        let (rows, log_ratio) = (AllRows::Held(&self.all.rows), learned.hyper.log_amplitude - learned.hyper.log_noise);
        let found = label_sums::regression(&self.left_out, &rows, &self.points, &learned.kernel, log_ratio, &training.interrupt)?;
        Ok(found.map(|(_, point)| point.means * point.theta))
    }

    /// Returns the weight of each left-out label, and its log probability under `other` minus that under `one`. Returns
    /// an empty list if there is no time or no finite value.
    fn gains(&self, training: &TrainingSet, one: &Learned, other: &Learned) -> Result<Vec<(f64, f64)>> {
        let (Some(mut one), Some(mut other)) = (self.logits(training, one)?, self.logits(training, other)?) else {
            return Ok(vec![]);
        };
        let [one, other] = [&mut one, &mut other].map(|logits| link::log_probabilities(&self.left_out, logits));
        let observations = self.left_out.observations.iter();
        Ok(observations
            .zip(one.iter().zip(&other))
            .map(|(observation, (one, other))| (observation.weight, other - one))
            .collect())
    }
}

/// Returns true if a sum of gains is positive and exceeds its standard error. By the one-standard-error rule, the
/// simpler of two models is kept unless the other is better by more than that (Breiman et al. 1984). By the sign of the
/// sum, two in five tables of 100 rows would get the worse kernel.
fn surely_positive(gains: &[(f64, f64)]) -> bool {
    let count: f64 = gains.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = gains.iter().map(|(weight, gain)| weight * gain).sum();
    let square: f64 = gains.iter().map(|(weight, gain)| weight * gain * gain).sum();
    sum > 0.0 && sum * sum > square - sum * sum / count
}

/// Divides the rows of a training set into two random halves, with equal rows in the same half. Returns at most `most`
/// rows of each, ascending.
fn halves(training: &TrainingSet, most: usize, seed: u64) -> [Vec<usize>; 2] {
    let n = training.rows.nrows();
    let mut group = vec![0; n];
    for row in 1..n {
        group[row] = group[row - 1] + usize::from(training.rows.row(row) != training.rows.row(row - 1));
    }
    let groups = group[n - 1] + 1;
    let first = random_subset(groups, groups / 2, seed);
    [true, false].map(|side| {
        let half: Vec<usize> = (0..n).filter(|row| first.binary_search(&group[*row]).is_ok() == side).collect();
        random_subset(half.len(), most, seed).into_iter().map(|k| half[k]).collect()
    })
}

/// Returns the bytes of a comparison: rows and labels; features and kernel values of the centres at the left-out rows
/// and at the centres; sums and a factor.
fn bytes(training: &TrainingSet) -> u64 {
    let n = training.rows.nrows();
    let (left_out, centres) = (LEFT_OUT_ROWS.min(n), JUDGED_CENTRES.min(n));
    let rows = JUDGED_ROWS.min(n) * (training.rows.ncols() + training.outputs + 1);
    8 * (rows + centres * (3 * (left_out + centres) + 3 * centres)) as u64
}

/// Learns the kernel of `labels`, which are those of some rows of a training set, and rho. `process` learns the same
/// kernel by the evidence of a process: from rows that it draws, or with one width for each feature from the given rows
/// (ascending).
///
/// # Errors
/// Returns the errors of [`maximise`] and of `process`.
pub(super) fn learn(
    rvm: &Rvm,
    training: &TrainingSet,
    labels: &Labels,
    kernel: &Kernel,
    moments: &Moments,
    process: impl Fn(Option<&[usize]>) -> Result<Learned>,
) -> Result<Learned> {
    let (n, seed, interrupt) = (training.rows.nrows(), rvm.seed.wrapping_add(1), &training.interrupt);
    let with_ratio = |learned: Learned, evaluations: usize| {
        let frame = Frame::new(&learned.kernel, moments, training.rows.view())?;
        let found = maximise(labels, &learned.kernel, &frame, interrupt)?;
        Ok(Learned { per_feature: learned.per_feature, evaluations: learned.evaluations + evaluations, ..found })
    };
    if kernel.learned_rule() == Some(GammaRule::EvidenceArd) {
        return with_ratio(process(None)?, 0);
    }
    let plain = kernel.with_one_width();
    let frame = Frame::new(&plain, moments, training.rows.view())?;
    let one_width = |labels: &Labels| maximise(labels, &plain, &frame, interrupt);
    let one = one_width(labels)?;
    let judged = kernel.learned_rule() == Some(GammaRule::Evidence) && labels.rows.len() >= LEAST_ROWS;
    if !judged || interrupt.is_late() || training.taken + bytes(training) > training.memory_limit {
        return Ok(one);
    }
    let each = process(None)?;
    if !each.per_feature {
        return Ok(one);
    }
    let some = random_subset(n, JUDGED_ROWS, seed);
    let mut gains = vec![];
    if n > MOST_ROWS {
        let left_out: Vec<usize> = random_subset(some.len(), LEFT_OUT_ROWS, rvm.seed).into_iter().map(|k| some[k]).collect();
        gains = Judge::new(training, &some, &left_out, seed).gains(training, &one, &each)?;
    } else {
        let [first, second] = halves(training, labels.rows.len(), seed);
        for (half, rest) in [(&first, &second), (&second, &first)] {
            let (one, each) = (one_width(&labels_of(training, half))?, process(Some(half))?);
            gains.extend(Judge::new(training, &some, rest, seed).gains(training, &one, &each)?);
        }
    }
    if !surely_positive(&gains) || interrupt.is_late() {
        return Ok(one);
    }
    with_ratio(each, one.evaluations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_within_their_standard_error_are_not_surely_positive() {
        let gains = |values: &[f64]| values.iter().map(|v| (1.0, *v)).collect::<Vec<_>>();
        assert!(!surely_positive(&[]) && !surely_positive(&gains(&[0.0; 5])) && !surely_positive(&gains(&[-1.0; 5])));
        assert!(surely_positive(&gains(&[1.0; 5])));
        // The sum is 1, and the standard error 1.9 or 0.5.
        assert!(!surely_positive(&gains(&[1.0, 1.0, -1.0, -1.0, 1.0])) && surely_positive(&gains(&[0.4, 0.4, 0.0, 0.0, 0.2])));
        // A weight of 8 is the same as eight repetitions.
        let repeated: Vec<f64> = [0.9, -0.5].iter().flat_map(|v| [*v; 8]).collect();
        assert_eq!(surely_positive(&[(8.0, 0.9), (8.0, -0.5)]), surely_positive(&gains(&repeated)));
        assert!(!surely_positive(&gains(&[0.9, -0.5])));
    }
}
