//! Differences of logarithms of Gamma functions, without cancellation.

use libm::lgamma;

use crate::prelude::*;

/// Argument from which on differences of ln Gamma are computed by its series, whose error after three terms is below
/// rounding. If x ln x is large, the difference of two computed values of ln Gamma has no correct digits.
const SERIES_FROM: f64 = 64.0;

/// Returns ln Gamma(x + by) - ln Gamma(x) for positive numbers, without cancellation for large x.
pub fn lgamma_rise(x: f64, by: f64) -> f64 {
    if x < SERIES_FROM {
        return lgamma(x + by) - lgamma(x);
    }
    // ln Gamma(x) = (x - 1/2) ln x - x + ln(2 pi) / 2 + tail(x).
    let tail = |x: f64| {
        let square = x * x;
        (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x
    };
    by * (x + by).ln() + (x - 0.5) * log_rise(x, by) - by + tail(x + by) - tail(x)
}

/// Returns ln(x + by) - ln x for x > 0 and by >= 0.
pub fn log_rise(x: f64, by: f64) -> f64 {
    // For larger `by` the quotient may overflow, and the difference is as accurate.
    if by <= x { (by / x).ln_1p() } else { (x + by).ln() - x.ln() }
}

/// Returns the log density of Student's t distribution at 0 plus ln(2 pi) / 2. It is 0 for infinite `degrees` of
/// freedom.
pub fn log_student_peak(degrees: f64) -> f64 {
    let half = 0.5 * degrees;
    lgamma_rise(half, 0.5) - 0.5 * half.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments are on both sides of the change to the series, and the steps are large.
    #[test]
    fn differences_of_log_gamma_agree_with_products() {
        for x in [0.5, 3.0, 60.0, 63.9, 64.0, 65.5, 500.0] {
            let product: f64 = (0..12).map(|k| (x + f64::from(k)).ln()).sum();
            assert!((lgamma_rise(x, 12.0) - product).abs() < 1e-12 * product.abs(), "{x}");
        }
    }

    /// The value is -1 / (4 degrees) to first order (Abramowitz & Stegun 6.1.47).
    #[test]
    fn the_density_of_many_degrees_is_the_normal_one() {
        for degrees in [1e4, 1e7, 1e12, 1e17, 1e300] {
            let found = log_student_peak(degrees);
            assert!((found + 0.25 / degrees).abs() < 1e-15 + 1.0 / (degrees * degrees), "{degrees}: {found}");
        }
        // The Cauchy distribution has the density 1 / pi at 0.
        assert!((log_student_peak(1.0) - (2.0 / core::f64::consts::PI).sqrt().ln()).abs() < 1e-14);
    }
}
