//! Some of the rows of a table whose length nobody knows yet, each with the same chance.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// What a row is learned by, beside its features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// Its target; of classes the number of its class in the order in which they were first seen.
    pub target: f64,
    /// Its sample weight.
    pub weight: f64,
    /// The variance of its noise; 1 if it is not known.
    pub noise: f64,
}

/// The rows that were drawn.
pub(super) struct SampledRows {
    /// Their numbers in the table, ascending, `[S]`.
    pub numbers: Vec<usize>,
    /// Their features as they are, [S, D].
    pub x: Array2<f64>,
    /// `[S]`.
    pub answers: Vec<Answer>,
}

/// Up to a number of rows of those seen so far (reservoir sampling, Vitter 1985, algorithm R).
#[derive(Debug)]
pub(super) struct Sample {
    most: usize,
    /// Their numbers in the table, their features one after the other, and their answers.
    numbers: Vec<usize>,
    rows: Vec<f64>,
    answers: Vec<Answer>,
    seen: usize,
    random: Pcg64,
}

impl Sample {
    pub fn new(most: usize, seed: u64) -> Sample {
        let random = Pcg64::seed_from_u64(seed);
        Sample { most, numbers: Vec::new(), rows: Vec::new(), answers: Vec::new(), seen: 0, random }
    }

    /// Shows it the row `number` of the table.
    pub fn see(&mut self, row: &[f64], answer: Answer, number: usize) {
        if self.seen < self.most {
            self.numbers.push(number);
            self.answers.push(answer);
            self.rows.extend(row);
        } else {
            let place = self.random.random_range(0..=self.seen);
            if place < self.most {
                self.numbers[place] = number;
                self.answers[place] = answer;
                self.rows[place * row.len()..(place + 1) * row.len()].copy_from_slice(row);
            }
        }
        self.seen += 1;
    }

    /// The rows, of `d` features.
    pub fn finish(self, d: usize) -> SampledRows {
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_unstable_by_key(|k| self.numbers[*k]);
        let numbers = order.iter().map(|k| self.numbers[*k]).collect();
        let x = Array2::from_shape_fn((order.len(), d), |(i, k)| self.rows[order[i] * d + k]);
        let answers = order.iter().map(|k| self.answers[*k]).collect();
        SampledRows { numbers, x, answers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(rows: usize, most: usize, seed: u64) -> Vec<usize> {
        let mut sample = Sample::new(most, seed);
        let answer = |i: usize| Answer { target: -(i as f64), weight: 1.0, noise: 1.0 };
        (0..rows).for_each(|i| sample.see(&[i as f64, 2.0], answer(i), i));
        let SampledRows { numbers, x, answers } = sample.finish(2);
        assert!(numbers.iter().zip(x.outer_iter()).all(|(n, row)| row[0] == *n as f64 && row[1] == 2.0));
        assert!(numbers.iter().zip(&answers).all(|(n, own)| *own == answer(*n)));
        numbers
    }

    #[test]
    fn a_short_table_is_taken_whole() {
        assert_eq!(draw(5, 9, 0), [0, 1, 2, 3, 4]);
        assert_eq!(draw(0, 9, 0), [0usize; 0]);
    }

    #[test]
    fn every_row_has_the_same_chance() {
        assert_eq!(draw(100, 10, 3), draw(100, 10, 3));
        let mut counts = [0; 100];
        (0..2000).for_each(|seed| draw(100, 10, seed).iter().for_each(|i| counts[*i] += 1));
        // 200 each, with a standard deviation of 13.4.
        assert!(counts.iter().all(|n| (140..260).contains(n)), "{counts:?}");
    }
}
