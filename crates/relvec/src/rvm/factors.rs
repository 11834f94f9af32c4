//! What multiplies the log-likelihood of each row beside its sample weight, (M48).

use libm::lgamma;

use crate::error::{Error, Result};

/// Factors of the rows' log-likelihoods, up to a constant of each row.
#[derive(Debug, Clone)]
pub(crate) struct Factors {
    /// > 0, `[N]`.
    pub factor: Vec<f64>,
    /// What the log-likelihood of each row has beside that, times the sample weight, `[N]`.
    pub constant: Vec<f64>,
}

impl Factors {
    /// Of known noise variances, over their geometric mean by weight, which comes second: the constants then sum to 0.
    pub fn of_noise(variances: &[f64], weights: &[f64]) -> Result<(Factors, f64)> {
        let total: f64 = weights.iter().sum();
        let middle: f64 = variances.iter().zip(weights).map(|(v, c)| c / total * v.ln()).sum();
        let logs: Vec<f64> = variances.iter().map(|v| middle - v.ln()).collect();
        let factor: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
        if !(middle.exp().is_normal() && factor.iter().zip(weights).all(|(f, c)| (f * c).is_normal())) {
            return Err(Error::Overflow { what: "the ratio of noise variances".into() });
        }
        let constant = logs.iter().zip(weights).map(|(l, c)| 0.5 * c * l).collect();
        Ok((Factors { factor, constant }, middle.exp()))
    }

    /// Of the exposures of counts: a count t over an exposure e is e rows of t / e each.
    pub fn of_exposure(exposures: &[f64], counts: &[f64], weights: &[f64]) -> Result<Factors> {
        let fine = |((e, t), c): ((&f64, &f64), &f64)| (e * c).is_normal() && (t / e).is_finite();
        if !exposures.iter().zip(counts).zip(weights).all(fine) {
            return Err(Error::Overflow { what: "a count over its exposure".into() });
        }
        let constant = exposures.iter().zip(counts).zip(weights).map(|((e, t), c)| {
            let rows = if *t > 0.0 { t * e.ln() - lgamma(t + 1.0) + e * lgamma(t / e + 1.0) } else { 0.0 };
            c * rows
        });
        Ok(Factors { factor: exposures.to_vec(), constant: constant.collect() })
    }

    /// As [`Factors::of_exposure`], of exposures (1 each unless they are given) times the mean rate, so that no result
    /// depends on the unit of the exposures; and the log of that rate: (the sum of the counts + 1/2) over the sum of the
    /// exposures, both by weight. The half, the least that tells of a rate where all counts are 0.
    pub fn of_counts(exposures: Option<&[f64]>, counts: &[f64], weights: &[f64]) -> Result<(Factors, f64)> {
        // Relative to the largest: no unit leaves the range of numbers.
        let largest = exposures.map_or(1.0, |e| e.iter().fold(0.0, |m: f64, e| m.max(*e)));
        let relative = |n: usize| exposures.map_or(1.0, |e| e[n] / largest);
        let total: f64 = (0..counts.len()).map(|n| weights[n] * relative(n)).sum();
        let rate = (counts.iter().zip(weights).map(|(t, c)| c * t).sum::<f64>() + 0.5) / total;
        let scaled: Vec<f64> = (0..counts.len()).map(|n| rate * relative(n)).collect();
        Ok((Factors::of_exposure(&scaled, counts, weights)?, rate.ln() - largest.ln()))
    }

    /// The least factor, and 1.
    pub fn least(&self) -> f64 {
        self.factor.iter().fold(1.0, |least, f| least.min(*f))
    }

    /// Whether all rows count for the same.
    pub fn are_alike(&self) -> bool {
        self.factor.iter().all(|f| *f == self.factor[0])
    }

    /// What all rows have beside the weighted log-likelihood.
    pub fn constant(&self) -> f64 {
        self.constant.iter().sum()
    }

    /// Those of the listed rows.
    pub fn pick(&self, rows: &[usize]) -> Factors {
        let pick = |v: &[f64]| rows.iter().map(|n| v[*n]).collect();
        Factors { factor: pick(&self.factor), constant: pick(&self.constant) }
    }
}
