//! Quantiles of predicted counts: Poisson, of a rate that is log-normal.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::{gamma_lr, gamma_ur};

/// Nodes of the sum over log rates on either side of the mean, and so many of them to a standard deviation.
const NODES: i32 = 32;
const PER_DEVIATION: f64 = 4.0;
/// From such a rate on the cube root of a gamma variable is as good as Gaussian (Wilson & Hilferty 1931), to 1e-4.
const LARGE_RATE: f64 = 500.0;

/// Counts whose log rate has that mean and variance, over that exposure.
pub(crate) struct CountDistribution {
    /// Rates and their probabilities.
    rates: Vec<(f64, f64)>,
    normal: Normal,
}

impl CountDistribution {
    pub fn new(mean: f64, variance: f64, exposure: f64) -> CountDistribution {
        let node = |k: i32| {
            let z = f64::from(k) / PER_DEVIATION;
            (exposure * (mean + variance.sqrt() * z).exp(), (-0.5 * z * z).exp())
        };
        let rates: Vec<(f64, f64)> = (-NODES..=NODES).map(node).collect();
        let total: f64 = rates.iter().map(|(_, p)| p).sum();
        CountDistribution { rates: rates.into_iter().map(|(rate, p)| (rate, p / total)).collect(), normal: Normal::standard() }
    }

    /// Probability of at most `count`, a whole number.
    fn below(&self, count: f64) -> f64 {
        self.rates.iter().map(|(rate, p)| p * self.poisson(count, *rate)).sum()
    }

    /// Probability of more than `count`, which has digits where that of at most so many is next to 1.
    fn beyond(&self, count: f64) -> f64 {
        let one = |rate: f64| match rate {
            0.0 => 0.0,
            rate if rate < LARGE_RATE => gamma_lr(count + 1.0, rate),
            rate => self.normal.cdf(-wilson_hilferty(count + 1.0, rate)),
        };
        self.rates.iter().map(|(rate, p)| p * one(*rate)).sum()
    }

    fn poisson(&self, count: f64, rate: f64) -> f64 {
        let shape = count + 1.0;
        if rate == 0.0 {
            return 1.0;
        }
        if rate < LARGE_RATE {
            return gamma_ur(shape, rate);
        }
        self.normal.cdf(wilson_hilferty(shape, rate))
    }

    /// The least count that is not exceeded with probability `level`.
    pub fn quantile(&self, level: f64) -> f64 {
        least(|count| self.below(count) >= level)
    }

    /// The least count that is exceeded with probability `tail` at most.
    pub fn upper_quantile(&self, tail: f64) -> f64 {
        least(|count| self.beyond(count) <= tail)
    }
}

/// The standard normal variable of a gamma variable.
fn wilson_hilferty(shape: f64, rate: f64) -> f64 {
    3.0 * shape.sqrt() * (1.0 - 1.0 / (9.0 * shape) - (rate / shape).cbrt())
}

/// The least count that is `enough`, as all larger ones are.
fn least(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-1.0, 1.0);
    while !enough(high) && high < f64::MAX / 4.0 {
        (low, high) = (high, 2.0 * high + 1.0);
    }
    // Beyond 2^53 not every whole number is there.
    while high - low > 1.0 && high - low > 1e-15 * high {
        let middle = (0.5 * (low + high)).floor();
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a rate that is known, the textbook's: P(T <= 0) = exp(-rate), and so on.
    #[test]
    fn a_known_rate() {
        for rate in [0.1f64, 1.0, 3.7, 20.0, 200.0] {
            let counts = CountDistribution::new(rate.ln(), 0.0, 1.0);
            let (mut p, mut sum) = ((-rate).exp(), 0.0);
            for k in 0..400 {
                sum += p;
                assert!((counts.below(f64::from(k)) - sum).abs() < 1e-10, "{rate} {k}");
                p *= rate / f64::from(k + 1);
            }
        }
    }

    /// The approximation for large rates goes over into the sum at its beginning.
    #[test]
    fn large_rates() {
        let counts = CountDistribution::new(0.0, 0.0, 1.0);
        for z in [-3.0, -1.0, 0.0, 1.0, 3.0] {
            let count = (LARGE_RATE + z * LARGE_RATE.sqrt()).floor();
            let exact = gamma_ur(count + 1.0, LARGE_RATE);
            assert!((counts.poisson(count, LARGE_RATE) - exact).abs() < 1e-4, "{z}");
        }
    }

    /// A quantile is the first count that is enough, and exposures and uncertain rates widen the interval.
    #[test]
    fn quantiles() {
        for (mean, variance, exposure) in [(1.0, 0.0, 1.0), (1.0, 0.3, 1.0), (-2.0, 0.5, 3.0), (8.0, 0.1, 1.0), (20.0, 0.01, 2.0)]
        {
            let counts = CountDistribution::new(mean, variance, exposure);
            for level in [0.025, 0.5, 0.975] {
                let k = counts.quantile(level);
                assert!(
                    k >= 0.0 && counts.below(k) >= level && (k == 0.0 || counts.below(k - 1.0) < level),
                    "{mean} {level} {k}"
                );
            }
        }
        // Of a level of 1 less a rounding, the count that 1e-17 are beyond; by the level itself there is none.
        for (mean, variance) in [(1.0, 0.0), (1.0, 0.1), (8.0, 0.0)] {
            let counts = CountDistribution::new(mean, variance, 1.0);
            for tail in [0.025, 1e-6] {
                assert_eq!(counts.upper_quantile(tail), counts.quantile(1.0 - tail), "{mean} {variance} {tail}");
            }
            let (usual, far) = (counts.quantile(0.999), counts.upper_quantile(6e-17));
            assert!(far > usual && far < 20.0 * usual, "{mean} {variance}: {far}");
        }
        let sure = CountDistribution::new(3.0, 0.0, 1.0);
        let unsure = CountDistribution::new(3.0, 0.5, 1.0);
        assert!(unsure.quantile(0.975) > sure.quantile(0.975) && unsure.quantile(0.025) < sure.quantile(0.025));
        assert_eq!(CountDistribution::new(-1000.0, 1.0, 1.0).quantile(0.975), 0.0);
    }
}
