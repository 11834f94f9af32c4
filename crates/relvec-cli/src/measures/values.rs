//! Measures of predicted values.

use libm::lgamma;

use super::{Measure, measure};
use crate::metrics;
use crate::text::significant;

/// Significant digits of a level in percent.
const LEVEL_DIGITS: usize = 4;
/// A warning of coverage needs both a difference from the level of this many standard errors of a binomial share, which
/// chance does not explain, and a difference of at least this share, which matters in practice.
const COVERAGE_ERRORS: f64 = 4.0;
const COVERAGE_SHARE: f64 = 0.05;

/// True values and predictions of one target. The lists have one entry per row and at least one row.
pub(crate) struct Values<'a> {
    /// Name of the target.
    pub target: &'a str,
    pub truth: &'a [f64],
    pub mean: &'a [f64],
    /// Log density of the true values, in nats; empty if the predictions have none.
    pub log_density: &'a [f64],
    /// Probability of the interval, and share of rows inside.
    pub coverage: Option<(f64, f64)>,
}

impl Values<'_> {
    /// Returns the measures, with those of the mean of these rows and of a normal distribution with their variance.
    pub fn measures(&self) -> Vec<Measure> {
        let centre = vec![self.truth.iter().sum::<f64>() / self.truth.len() as f64; self.truth.len()];
        let spread = metrics::rmse(self.truth, &centre);
        let mut out = self.errors(&centre);
        if !self.log_density.is_empty() {
            let constant = metrics::negative_log_density(self.truth, &centre, &vec![spread * spread; self.truth.len()]);
            let own = self.density();
            // If all values are equal, the normal distribution has no density.
            out.push(if spread > 0.0 { own.beside(constant) } else { own });
        }
        out.extend(self.covers());
        out
    }

    /// Returns the measures of counts, with those of the common rate of all rows. `exposures`, `[N]`, is empty if all
    /// are 1.
    pub fn of_counts(&self, exposures: &[f64]) -> Vec<Measure> {
        let n = self.truth.len() as f64;
        let total = if exposures.is_empty() { n } else { exposures.iter().sum() };
        let rate = self.truth.iter().sum::<f64>() / total;
        let constant: Vec<f64> = (0..self.truth.len()).map(|i| rate * exposures.get(i).unwrap_or(&1.0)).collect();
        let deviance = |mean: &[f64]| {
            let one = |(t, m): (&f64, &f64)| 2.0 * (if *t > 0.0 { t * (t / m).ln() } else { 0.0 } - (t - m));
            self.truth.iter().zip(mean).map(one).sum::<f64>() / n
        };
        let mut out = self.errors(&constant);
        // If all counts are 0, the logarithm of the constant rate is not finite.
        let mut add = |own: Measure, constant: f64| out.push(if rate > 0.0 { own.beside(constant) } else { own });
        add(measure("deviance", "Poisson deviance", "per row", deviance(self.mean)), deviance(&constant));
        let log = |(t, m): (&f64, &f64)| t * m.ln() - m - lgamma(t + 1.0);
        add(self.density(), -self.truth.iter().zip(&constant).map(log).sum::<f64>() / n);
        out.extend(self.covers());
        out
    }

    /// Returns RMSE and MAE, with those of the predictions `constant`, one per row.
    pub fn errors(&self, constant: &[f64]) -> Vec<Measure> {
        let unit = format!("units of `{}`", self.target);
        vec![
            measure("rmse", "RMSE", &unit, metrics::rmse(self.truth, self.mean)).beside(metrics::rmse(self.truth, constant)),
            measure("mae", "MAE", &unit, metrics::mae(self.truth, self.mean)).beside(metrics::mae(self.truth, constant)),
        ]
    }

    /// Returns the mean negative log density.
    pub fn density(&self) -> Measure {
        let mean = self.log_density.iter().sum::<f64>() / self.truth.len() as f64;
        measure("negative_log_density", "NLPD", "nats", -mean)
    }

    /// Returns the share of rows inside the interval.
    pub fn covers(&self) -> Option<Measure> {
        let (level, share) = self.coverage?;
        Some(measure("coverage", &format!("{} % interval covers", significant(100.0 * level, LEVEL_DIGITS)), "%", share))
    }
}

/// True if the coverage of the interval with probability `level` differs from `level` by more than chance and in a way
/// that matters.
pub(crate) fn coverage_is_off(coverage: f64, level: f64, rows: usize) -> bool {
    let error = (level * (1.0 - level) / rows as f64).sqrt();
    (coverage - level).abs() > (COVERAGE_ERRORS * error).max(COVERAGE_SHARE)
}
