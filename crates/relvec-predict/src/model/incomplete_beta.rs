//! The regularised incomplete beta function.

use libm::lgamma;

use crate::prelude::*;
use crate::special::lgamma_rise;

/// Replacement for a denominator of 0 in the continued fraction. It is below all terms, and its inverse is finite.
const LEAST: f64 = 1e-300;
/// Largest number of levels of the continued fraction. A few square roots of the larger parameter are needed, which is
/// at most 500 here.
const LEVELS: u32 = 1000;

/// Returns I_x(a, b) for x in [0, 1] and positive a and b: the share below x of the density x^(a - 1) (1 - x)^(b - 1).
pub(super) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    let front = (lgamma_rise(large, small) - lgamma(small) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast on its own side of the mean.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * fraction(a, b, x) / a,
        false => 1.0 - front * fraction(b, a, 1.0 - x) / b,
    }
}

/// Returns the continued fraction (Abramowitz & Stegun 26.5.8), by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let kept = |v: f64| if v.abs() < LEAST { LEAST } else { v };
    let (mut c, mut d) = (1.0, 1.0 / kept(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for m in 1..=LEVELS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / kept(1.0 + term * d);
            c = kept(1.0 + term / c);
            value *= c * d;
        }
        if (value - before).abs() <= f64::EPSILON * value.abs() {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The references are I_x(a, 1) = x^a, I_x(1, b) = 1 - (1 - x)^b, and a sum of binomial probabilities for integers.
    #[test]
    fn incomplete_beta_functions_agree_with_closed_forms() {
        for x in [1e-12f64, 0.01, 0.3, 0.5, 0.77, 0.999] {
            for a in [1e-3f64, 0.5, 3.0, 40.0, 499.0] {
                // The rounding of a power grows with its logarithm; a share computed as 1 minus the other has the
                // rounding of 1.
                let near =
                    |found: f64, expected: f64| (found - expected).abs() <= 1e-15 * (1.0 + (20.0 + a * x.ln().abs()) * expected);
                let (found, expected) = (incomplete_beta(a, 1.0, x), x.powf(a));
                assert!(near(found, expected), "{a} {x}: {found}, {expected}");
                let (found, expected) = (incomplete_beta(1.0, a, x), -(a * (-x).ln_1p()).exp_m1());
                assert!(near(found, expected), "{a} {x}: {found}, {expected}");
            }
            // The probability of at least 3 successes in 7 trials.
            let choose = [35.0, 35.0, 21.0, 7.0, 1.0];
            let sum: f64 = (3..8).zip(choose).map(|(k, ways)| ways * x.powi(k) * (1.0 - x).powi(7 - k)).sum();
            assert!((incomplete_beta(3.0, 5.0, x) / sum - 1.0).abs() < 1e-12, "{x}");
            // For a smaller x the other share has lost its digits.
            if x >= 0.01 {
                let (below, above) = (incomplete_beta(0.5, 200.0, x), incomplete_beta(200.0, 0.5, 1.0 - x));
                assert!((below + above - 1.0).abs() < 1e-12, "{x}: {below} {above}");
            }
        }
        assert_eq!((incomplete_beta(2.0, 0.5, 0.0), incomplete_beta(2.0, 0.5, 1.0)), (0.0, 1.0));
    }
}
