//! Row factors: multipliers of the log-likelihood of each row beside its sample weight, (M48).

use std::borrow::Cow;

use libm::lgamma;

use crate::error::{Error, Result};

/// Factors of the rows' log-likelihoods, up to a constant of each row.
#[derive(Debug, Clone)]
pub(crate) struct RowFactors {
    /// Positive factors, `[N]`.
    pub factor: Vec<f64>,
    /// Constant of the log-likelihood of each row, times the sample weight, `[N]`.
    pub constant: Vec<f64>,
}

impl RowFactors {
    /// Returns the factors of given noise variances, and the weighted geometric mean of these variances. The factors
    /// are that mean divided by the variances, so that the constants sum to 0.
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if a factor or the mean is out of the range of numbers.
    pub fn of_noise(variances: &[f64], weights: &[f64]) -> Result<(RowFactors, f64)> {
        let total: f64 = weights.iter().sum();
        let middle: f64 = variances.iter().zip(weights).map(|(v, c)| c / total * v.ln()).sum();
        let logs: Vec<f64> = variances.iter().map(|v| middle - v.ln()).collect();
        let factor: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
        if !(middle.exp().is_normal() && factor.iter().zip(weights).all(|(f, c)| (f * c).is_normal())) {
            return Err(Error::Overflow { what: "the ratio of noise variances".into() });
        }
        let constant = logs.iter().zip(weights).map(|(l, c)| 0.5 * c * l).collect();
        Ok((RowFactors { factor, constant }, middle.exp()))
    }

    /// Returns the factors of exposures. A count t over an exposure e has the log-likelihood of e rows of count t / e.
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if a rate t / e or a weighted exposure is out of the range of numbers.
    pub fn of_exposure(exposures: &[f64], counts: &[f64], weights: &[f64]) -> Result<RowFactors> {
        let fine = |((e, t), c): ((&f64, &f64), &f64)| (e * c).is_normal() && (t / e).is_finite();
        if !exposures.iter().zip(counts).zip(weights).all(fine) {
            return Err(Error::Overflow { what: "a count over its exposure".into() });
        }
        let constant = exposures.iter().zip(counts).zip(weights).map(|((e, t), c)| {
            let rows = if *t > 0.0 { t * e.ln() - lgamma(t + 1.0) + e * lgamma(t / e + 1.0) } else { 0.0 };
            c * rows
        });
        Ok(RowFactors { factor: exposures.to_vec(), constant: constant.collect() })
    }

    /// Returns the factors of exposures divided by their weighted mean, and the log rate of one count per mean exposure
    /// in the user's unit. No result then depends on that unit. Returns no factors if all exposures are equal.
    ///
    /// # Errors
    /// Returns the errors of [`RowFactors::of_exposure`].
    pub fn of_exposure_in_any_unit(exposures: &[f64], counts: &[f64], weights: &[f64]) -> Result<(Option<RowFactors>, f64)> {
        // Exposures are divided by the largest first, so that no unit leads out of the range of numbers.
        let largest = exposures.iter().fold(0.0, |m: f64, e| m.max(*e));
        let total: f64 = exposures.iter().zip(weights).map(|(e, c)| c * (e / largest)).sum();
        let mean = total / weights.iter().sum::<f64>();
        let scaled: Vec<f64> = exposures.iter().map(|e| e / largest / mean).collect();
        let factors = match scaled.iter().all(|e| *e == 1.0) {
            true => None,
            false => Some(RowFactors::of_exposure(&scaled, counts, weights)?),
        };
        Ok((factors, 0.0 - (largest.ln() + mean.ln())))
    }

    /// Returns the smallest factor, at most 1.
    pub fn least(&self) -> f64 {
        self.factor.iter().fold(1.0, |least, f| least.min(*f))
    }

    /// Returns the sum of the constants of all rows.
    pub fn constant(&self) -> f64 {
        self.constant.iter().sum()
    }

    /// Returns the factors of the listed rows.
    pub fn pick(&self, rows: &[usize]) -> RowFactors {
        let pick = |v: &[f64]| rows.iter().map(|n| v[*n]).collect();
        RowFactors { factor: pick(&self.factor), constant: pick(&self.constant) }
    }
}

/// Returns the sample weights times the row factors.
pub(crate) fn times(weights: &[f64], factors: Option<&RowFactors>) -> Vec<f64> {
    factors.map_or_else(|| weights.to_vec(), |f| weights.iter().zip(&f.factor).map(|(c, f)| c * f).collect())
}

/// Returns the sample weights: the multipliers of the log-likelihoods divided by the row factors.
pub(crate) fn over<'w>(weights: &'w [f64], factors: Option<&RowFactors>) -> Cow<'w, [f64]> {
    match factors {
        None => Cow::Borrowed(weights),
        Some(f) => Cow::Owned(weights.iter().zip(&f.factor).map(|(c, f)| c / f).collect()),
    }
}
