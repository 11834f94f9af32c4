//! Inverses of the error function and of its complement.

use core::f64::consts::{FRAC_2_SQRT_PI, PI};

use crate::prelude::*;

use libm::{erf, erfc};

/// Argument from which on erfc(x) exp(x^2) is computed as a continued fraction. Below it, it is the product of the two
/// functions. From 27 on, erfc alone would underflow.
const FRACTION_FROM: f64 = 5.0;
/// Levels of the continued fraction, with which it is exact to rounding.
const FRACTIONS: u32 = 40;
/// Largest number of steps of Newton's and Halley's method; 4 to 7 are taken.
const STEPS: usize = 50;

/// Returns x with erf(x) = `p`, for `p` from 0 to 1/2. For larger `p` the complement has more digits.
pub(super) fn erf_inverse(p: f64) -> f64 {
    let mut x = p / FRAC_2_SQRT_PI;
    for _ in 0..STEPS {
        let newton = (erf(x) - p) / (FRAC_2_SQRT_PI * (-x * x).exp());
        let step = newton / (1.0 + x * newton);
        x -= step;
        if step.abs() <= f64::EPSILON * x {
            break;
        }
    }
    x
}

/// Returns x with erfc(x) = `q`, for `q` from 0 to 1/2. The result is infinite for 0.
pub(super) fn erfc_inverse(q: f64) -> f64 {
    if q == 0.0 {
        return f64::INFINITY;
    }
    // The start is above the root, and so is every step of Newton's method after it, because ln erfc is concave.
    let mut x = (-q.ln()).sqrt();
    for _ in 0..STEPS {
        let scaled = scaled_erfc(x);
        let step = (scaled.ln() - x * x - q.ln()) * scaled / FRAC_2_SQRT_PI;
        x += step;
        if step.abs() <= f64::EPSILON * x {
            break;
        }
    }
    x
}

/// Returns exp(x^2) erfc(x), for x >= 0 (Abramowitz & Stegun 7.1.14).
fn scaled_erfc(x: f64) -> f64 {
    if x < FRACTION_FROM {
        return (x * x).exp() * erfc(x);
    }
    let below = (1..=FRACTIONS).rev().fold(x, |below, k| x + 0.5 * f64::from(k) / below);
    1.0 / (PI.sqrt() * below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_of_the_error_function_return_the_argument() {
        for k in 0..2000 {
            let x = 0.013 * f64::from(k);
            let (p, q) = (erf(x), erfc(x));
            if p <= 0.5 {
                assert!((erf_inverse(p) - x).abs() <= 4.0 * f64::EPSILON * x, "{x}: {}", erf_inverse(p));
            } else if q >= f64::MIN_POSITIVE {
                // A relative rounding of q changes x by about 1 / (2 x^2) relative roundings, plus rounding of x.
                assert!((erfc_inverse(q) - x).abs() <= 8.0 * f64::EPSILON * x.max(1.0), "{x}: {}", erfc_inverse(q));
            }
        }
        assert_eq!((erf_inverse(0.0), erfc_inverse(0.0)), (0.0, f64::INFINITY));
        // Compares ln erfc(x) with that of the smallest number, 2^-1074, by the first terms of its series.
        let x = erfc_inverse(f64::from_bits(1));
        let log = -x * x - (x * PI.sqrt()).ln() + (-0.5 / (x * x) + 0.75 / x.powi(4)).ln_1p();
        assert!((log / (-1074.0 * core::f64::consts::LN_2) - 1.0).abs() < 1e-10, "{x}");
    }
}
