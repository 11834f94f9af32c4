//! Counts with the logarithmic link.

use std::f64::consts::PI;

use libm::lgamma;

use super::{LikelihoodFunction, NoiseModel, Poisson, Working, check_counts, several};
use crate::error::{Error, Result};
use crate::targets::{Given, Values};

/// Largest log rate; for larger ones exp(f) overflows. Such a rate is impossible for every count.
const LARGEST: f64 = 700.0;

/// Smallest count for which log(y!) is computed by Stirling's series, whose next term is below 1e-10.
const LARGE: f64 = 256.0;

/// Returns y f - rate - log(y!), at f = log(rate). For a large count the three terms nearly cancel, and the result is
/// computed from the difference of rate and count.
fn log_probability(y: f64, f: f64, rate: f64) -> f64 {
    if y < LARGE {
        return y * f - rate - lgamma(y + 1.0);
    }
    y * (f - y.ln()) - (rate - y) - 0.5 * (2.0 * PI * y).ln() - 1.0 / (12.0 * y) + 1.0 / (360.0 * y * y * y)
}

impl LikelihoodFunction for Poisson {
    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        let counts = match values {
            Values::Real(counts) => counts,
            Values::Outputs(v) => return Err(several("poisson", v.ncols())),
            Values::Classes { .. } => return Err(Error::Targets("the poisson likelihood needs counts, found classes".into())),
        };
        check_counts(counts)?;
        Ok(counts.to_vec())
    }

    fn uses(&self, given: &Given) -> bool {
        matches!(given, Given::Exposure(_))
    }

    /// Counts per exposure, `y`, need not be integers.
    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        let rate: Vec<f64> = f.iter().map(|f| f.min(LARGEST).exp()).collect();
        let one = |((y, f), rate): ((&f64, &f64), &f64)| match *f <= LARGEST {
            true => log_probability(*y, *f, *rate),
            false => f64::NEG_INFINITY,
        };
        Working {
            log_likelihood: y.iter().zip(f).zip(&rate).map(one).collect(),
            residual: y.iter().zip(&rate).map(|(y, rate)| y - rate).collect(),
            curvature: rate.clone(),
            third: rate,
        }
    }

    /// The mean rate, which is exact.
    fn mean_curvature(&self, f: &[f64], covariance: &[f64], out: &mut [f64]) {
        out[0] = (f[0] + 0.5 * covariance[0]).min(LARGEST).exp();
    }

    fn constant_curvature(&self) -> bool {
        false
    }

    fn counts(&self) -> bool {
        true
    }

    fn noise(&self) -> NoiseModel {
        NoiseModel::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each derivative agrees with finite differences.
    #[test]
    fn derivatives_equal_finite_differences() {
        let h = 1e-5;
        for y in [0.0, 1.0, 2.5, 40.0] {
            for f in [-30.0, -3.0, 0.0, 2.0, 6.0] {
                let at = |f: f64| {
                    let work = Poisson {}.working(&[y], &[f]);
                    [work.log_likelihood[0], work.residual[0], work.curvature[0], work.third[0]]
                };
                let (here, up, down) = (at(f), at(f + h), at(f - h));
                for (k, sign) in [(0, 1.0), (1, -1.0), (2, 1.0)] {
                    let expected = sign * (up[k] - down[k]) / (2.0 * h);
                    assert!((here[k + 1] - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{y} {f} {k}: {expected}");
                }
            }
        }
    }

    /// A rate that no count can come from has the log-likelihood minus infinity, not NaN.
    #[test]
    fn no_rate_overflows() {
        for f in [700.1, 1e4, f64::INFINITY] {
            let work = Poisson {}.working(&[0.0, 3.0], &[f, f]);
            assert!(work.log_likelihood.iter().all(|v| *v == f64::NEG_INFINITY));
            assert!(work.residual.iter().chain(&work.curvature).chain(&work.third).all(|v| v.is_finite()));
        }
        let none = Poisson {}.working(&[0.0], &[-1e4]);
        assert_eq!((none.log_likelihood[0], none.residual[0], none.curvature[0]), (0.0, 0.0, 0.0));
    }
}
