//! Differences of logarithms of Gamma functions, without loss of digits.

use libm::lgamma;

use crate::prelude::*;

/// From here on ln Gamma is differenced by its series, where three terms leave out less than rounding does:
/// two values of ln Gamma(x) have no digits in common with their difference once x ln x is large.
const SERIES_FROM: f64 = 64.0;

/// ln Gamma(x + by) - ln Gamma(x), of positive numbers: no digits are lost where x is large.
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

/// ln(x + by) - ln x, of x > 0 and by >= 0.
pub fn log_rise(x: f64, by: f64) -> f64 {
    // Beyond that the quotient may overflow, and the difference is as good.
    if by <= x { (by / x).ln_1p() } else { (x + by).ln() - x.ln() }
}

/// The logarithm of what the density of Student's t distribution has at its middle, times sqrt(2 pi): 0 for infinite
/// `degrees` of freedom.
pub fn log_student_peak(degrees: f64) -> f64 {
    let half = 0.5 * degrees;
    lgamma_rise(half, 0.5) - 0.5 * half.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On both sides of the change to the series, and with large steps.
    #[test]
    fn differences_of_log_gamma_agree_with_products() {
        for x in [0.5, 3.0, 60.0, 63.9, 64.0, 65.5, 500.0] {
            let product: f64 = (0..12).map(|k| (x + f64::from(k)).ln()).sum();
            assert!((lgamma_rise(x, 12.0) - product).abs() < 1e-12 * product.abs(), "{x}");
        }
    }

    /// -1 / (4 degrees) in the first order, (Abramowitz & Stegun 6.1.47).
    #[test]
    fn the_density_of_many_degrees_is_the_normal_one() {
        for degrees in [1e4, 1e7, 1e12, 1e17, 1e300] {
            let found = log_student_peak(degrees);
            assert!((found + 0.25 / degrees).abs() < 1e-15 + 1.0 / (degrees * degrees), "{degrees}: {found}");
        }
        // Cauchy: 1 / pi.
        assert!((log_student_peak(1.0) - (2.0 / core::f64::consts::PI).sqrt().ln()).abs() < 1e-14);
    }
}
