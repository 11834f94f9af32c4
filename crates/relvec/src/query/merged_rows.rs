//! Merges rows of equal inputs into one row with their mean target and its precision.
//!
//! The log-likelihood of rows i of weights c_i and factors f_i (the noise of row i is s2 / f_i) at one function value f is
//!
//! ```text
//! sum_i c_i log N(t_i; f, s2 / f_i) = log N(mean; f, s2 / c) - 1/2 (C - 1) log(2 pi s2) - S / (2 s2)
//!                                     + 1/2 (sum_i c_i log f_i - log c)
//! ```
//!
//! with c = sum c_i f_i, C = sum c_i, the mean target by c_i f_i, and the scatter S = sum c_i f_i (t_i - mean)^2.

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2, Axis};

/// Mean number of the user's rows of an input from which unevenly repeated inputs are no copies. Samples that are drawn
/// with replacement have 1.6 of each, and weights in place of rows are rarely larger.
const DISCRETE: f64 = 5.0;

/// Rows of different inputs, with the terms of the log evidence that do not depend on the mean targets.
#[derive(Debug, Clone)]
pub(crate) struct DistinctRows {
    /// Inputs, all different, [n, D].
    pub x: Array2<f64>,
    /// Mean targets, [n, R].
    pub t: Array2<f64>,
    /// c, `[n]`: the noise variance of a mean target is s2 / c.
    pub weights: Vec<f64>,
    /// C, the sum of the sample weights. A weight of 1 counts as one row.
    pub count: f64,
    /// S of each output, `[R]`, summed over the rows.
    pub scatter: Vec<f64>,
    /// 1/2 sum c_i log f_i of each row, `[n]`.
    log_factors: Vec<f64>,
    /// C of each row whose copies all have one target, `None` for other rows, `[n]`.
    copies: Vec<Option<f64>>,
}

impl DistinctRows {
    /// Merges rows `x`, [N, D], with targets, [N, R], sample weights, `[N]`, and factors, `[N]`. Equal rows must be
    /// adjacent; weights and factors must be positive.
    pub fn new(x: ArrayView2<f64>, t: ArrayView2<f64>, sample_weights: &[f64], factors: &[f64]) -> DistinctRows {
        let first: Vec<usize> = (0..x.nrows()).filter(|n| *n == 0 || x.row(*n) != x.row(n - 1)).collect();
        let mut mean = Array2::zeros((first.len(), t.ncols()));
        let mut weights = Vec::with_capacity(first.len());
        let (mut scatter, mut log_factors, mut copies) = (vec![0.0; t.ncols()], vec![], vec![]);
        for (g, begin) in first.iter().enumerate() {
            let rows = *begin..first.get(g + 1).copied().unwrap_or(x.nrows());
            let own: Vec<f64> = rows.clone().map(|n| sample_weights[n] * factors[n]).collect();
            let total: f64 = own.iter().sum();
            for (k, scatter) in scatter.iter_mut().enumerate() {
                // For a single row the mean equals the target to the last digit.
                let first = t[[*begin, k]];
                let middle = first + rows.clone().zip(&own).map(|(n, c)| c / total * (t[[n, k]] - first)).sum::<f64>();
                mean[[g, k]] = middle;
                *scatter += rows.clone().zip(&own).map(|(n, c)| c * (t[[n, k]] - middle).powi(2)).sum::<f64>();
            }
            log_factors.push(rows.clone().map(|n| 0.5 * sample_weights[n] * factors[n].ln()).sum::<f64>());
            let alike = rows.clone().all(|n| t.row(n) == t.row(*begin));
            copies.push(alike.then(|| sample_weights[rows].iter().sum()));
            weights.push(total);
        }
        let count = sample_weights.iter().sum();
        DistinctRows { x: x.select(Axis(0), &first), t: mean, weights, count, scatter, log_factors, copies }
    }

    /// Returns the rows from which kernel, amplitude and noise are learned. `users`, `[n]`, are the numbers of the user's
    /// rows at each input. The list is empty if they are unknown.
    ///
    /// Copies with one target are scaled to the weight of one row on average. Copies have the same noise, so that a
    /// process would take their agreement for the absence of noise. If targets of equal inputs differ, their scatter
    /// determines the noise, and their weights are kept. Inputs that repeat often and unevenly are values of discrete
    /// features and no copies: their agreement shows that there is no noise.
    pub fn without_copies(&self, users: &[usize]) -> DistinctRows {
        let alike = self.copies.iter().flatten();
        let (inputs, weight) = (alike.clone().count() as f64, alike.sum::<f64>());
        let share = self.observations(users).unwrap_or(inputs) / weight;
        let mut out = self.clone();
        for (g, own) in self.copies.iter().enumerate() {
            let Some(own) = own else { continue };
            out.weights[g] *= share;
            out.log_factors[g] *= share;
            out.copies[g] = Some(share * own);
            out.count += (share - 1.0) * own;
        }
        out
    }

    /// Returns the number of the user's rows at inputs of one target each, if they are no copies.
    fn observations(&self, users: &[usize]) -> Option<f64> {
        let alike = users.iter().zip(&self.copies).filter(|(_, alike)| alike.is_some());
        let counts: Vec<usize> = alike.map(|(count, _)| *count).collect();
        let total = counts.iter().sum::<usize>() as f64;
        let uneven = counts.iter().any(|count| *count != counts[0]);
        (uneven && total >= DISCRETE * counts.len() as f64).then_some(total)
    }

    /// Returns these rows with a log-likelihood that is `more` than that of Gaussian targets.
    pub fn with_log_likelihood(mut self, more: f64) -> DistinctRows {
        self.log_factors.iter_mut().take(1).for_each(|log| *log += more);
        self
    }

    /// Returns these rows with other inputs, [n, D'].
    pub fn with_inputs(&self, x: Array2<f64>) -> DistinctRows {
        DistinctRows { x, ..self.clone() }
    }

    /// Returns the rows `some` without the constants of the evidence.
    pub fn pick(&self, some: &[usize]) -> DistinctRows {
        let weights: Vec<f64> = some.iter().map(|n| self.weights[*n]).collect();
        let (count, scatter) = (some.len() as f64, vec![0.0; self.scatter.len()]);
        let (x, t) = (self.x.select(Axis(0), some), self.t.select(Axis(0), some));
        let (log_factors, copies) = (vec![0.0; some.len()], vec![None; some.len()]);
        DistinctRows { x, t, weights, count, scatter, log_factors, copies }
    }

    /// Returns the number n of different inputs.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns the quantities that can be added over parts of the rows.
    pub fn totals(&self) -> Totals {
        let log_constant = self.log_factors.iter().sum::<f64>() - 0.5 * self.weights.iter().map(|c| c.ln()).sum::<f64>();
        Totals { inputs: self.len(), count: self.count, scatter: self.scatter.clone(), log_constant }
    }

    /// Returns [`Totals::rest`] of these rows.
    pub fn rest(&self, k: usize, log_noise: f64) -> (f64, f64) {
        self.totals().rest(k, log_noise)
    }
}

/// Terms of the log evidence that do not depend on the mean targets. They can be added over parts of the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Totals {
    /// Number n of different inputs.
    pub inputs: usize,
    /// C, the sum of the sample weights.
    pub count: f64,
    /// S of each output, `[R]`.
    pub scatter: Vec<f64>,
    /// Terms of the log evidence of one output that depend neither on s2 nor on the targets.
    pub log_constant: f64,
}

impl Totals {
    /// Adds the totals of other rows.
    pub fn add(&mut self, other: &Totals) {
        self.inputs += other.inputs;
        self.count += other.count;
        self.log_constant += other.log_constant;
        self.scatter.resize(other.scatter.len(), 0.0);
        self.scatter.iter_mut().zip(&other.scatter).for_each(|(sum, scatter)| *sum += scatter);
    }

    /// Returns the log evidence of output `k` minus log N of the mean targets, and its derivative in `log_noise`. The
    /// noise variance is s2 = exp(`log_noise`).
    pub fn rest(&self, k: usize, log_noise: f64) -> (f64, f64) {
        let (more, scatter) = (self.count - self.inputs as f64, 0.5 * self.scatter[k] * (-log_noise).exp());
        (self.log_constant - 0.5 * more * ((2.0 * PI).ln() + log_noise) - scatter, scatter - 0.5 * more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn log_normal(t: f64, mean: f64, variance: f64) -> f64 {
        -0.5 * ((2.0 * PI * variance).ln() + (t - mean).powi(2) / variance)
    }

    /// The log-likelihood of all rows equals that of the merged rows plus the remaining terms, at any function values
    /// and noise variance.
    #[test]
    fn merged_rows_have_the_likelihood_of_all_rows() {
        let x = array![[1.0], [1.0], [1.0], [2.0], [5.0], [5.0]];
        let t = array![[0.3], [-0.2], [0.9], [1.5], [2.0], [2.5]];
        let (c, f) = ([1.0, 2.0, 0.5, 1.0, 3.0, 1.0], [1.0, 0.3, 2.0, 4.0, 1.0, 1.5]);
        let rows = DistinctRows::new(x.view(), t.view(), &c, &f);
        assert_eq!(rows.x, array![[1.0], [2.0], [5.0]]);
        for (values, noise) in [([0.1, 1.0, 2.0], 0.7), ([-3.0, 4.0, 0.0], 1e-2)] {
            let of_row = |n: usize| values[[0, 0, 0, 1, 2, 2][n]];
            let direct: f64 = (0..6).map(|n| c[n] * log_normal(t[[n, 0]], of_row(n), noise / f[n])).sum();
            let of_group = |g: usize| log_normal(rows.t[[g, 0]], values[g], noise / rows.weights[g]);
            let (rest, slope) = rows.rest(0, f64::ln(noise));
            let grouped = (0..3).map(of_group).sum::<f64>() + rest;
            assert!((direct - grouped).abs() < 1e-11 * direct.abs(), "{grouped} instead of {direct}");
            let h = 1e-5;
            let difference = (rows.rest(0, noise.ln() + h).0 - rows.rest(0, noise.ln() - h).0) / (2.0 * h);
            assert!((slope - difference).abs() < 1e-8 * (1.0 + slope.abs()), "{slope} instead of {difference}");
        }
    }
}
