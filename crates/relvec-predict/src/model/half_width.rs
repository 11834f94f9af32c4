//! Half widths of central intervals of normal variables, of Student's t, and of the sum of a Student-t and a normal
//! variable.

use core::f64::consts::{PI, SQRT_2};

use libm::{erf, erfc};

use super::incomplete_beta::incomplete_beta;
use super::inverse_erf::{erf_inverse, erfc_inverse};
use super::log_gamma;
use crate::prelude::*;
use crate::special::lgamma_rise;

/// Degrees of freedom from which on a Student's t quantile is the series in 1 / degrees about the normal one. The error
/// is below 1e-9 of the quantile here, for every level below 1 that a number can represent. It is 32 times as large
/// with half as many degrees. With twice as many, the continued fraction in the incomplete beta function needs more
/// terms.
const MANY_DEGREES: f64 = 1000.0;
/// Share of the degrees in degrees + t^2 below which the tail is a power of t, to the last digit.
const FAR_TAIL: f64 = 1e-17;
/// Number of bisections of an interval of at most 1,500 in ln t. The result is closer than the spacing of numbers near
/// the ends.
const HALVINGS: usize = 70;
/// Degrees of freedom below which the sum is taken for a Student-t variable of both variances, see (M32). Only a caller
/// gives so few, since no fit learns less than 0.1. The mixture has 1,600 nodes here, and their number grows as 1 /
/// degrees.
pub(super) const FEWEST_DEGREES: f64 = 0.1;
/// Variance of the normal variable, relative to the squared scale of the Student-t variable, below which it is ignored.
/// It is below rounding.
pub(super) const NEGLIGIBLE: f64 = 1e-18;
/// Fall of the log density of the mixture's weights at its ends, in addition to the fall of the tail sought. exp(-40)
/// is below rounding.
pub(super) const FALL: f64 = 40.0;
/// Largest number of steps of Newton's method, each at least a halving of the bracket once there is one. About 6 are
/// taken.
const NEWTON_STEPS: usize = 200;
/// Relative change of a half width at which the steps end: a few roundings.
const TOLERANCE: f64 = 1e-14;

/// The probability of a central interval and that of both its sides together. The smaller of the two is accurate to all
/// digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Central {
    /// Probability of the interval, in (0, 1), or 0 for the median.
    pub inside: f64,
    /// Probability of both sides together, in (0, 1].
    pub outside: f64,
}

impl Central {
    /// Returns half the width of the interval of a standard normal variable; infinite if it overflows.
    pub fn normal(self) -> f64 {
        SQRT_2 * if self.inside < 0.5 { erf_inverse(self.inside) } else { erfc_inverse(self.outside) }
    }

    /// Returns half the width of the interval of a Student-t variable with `degrees` > 0 degrees of freedom; infinite
    /// if it overflows.
    pub fn student(self, degrees: f64) -> f64 {
        match degrees {
            _ if self.inside == 0.0 => 0.0,
            degrees if degrees >= MANY_DEGREES => near_normal(self.normal(), degrees),
            degrees => few_degrees(self.inside, self.outside, degrees),
        }
    }
}

/// Returns Student's t quantile at the level of the normal quantile `z`, to the fourth order in 1 / degrees (Abramowitz
/// & Stegun 26.7.5).
fn near_normal(z: f64, degrees: f64) -> f64 {
    let (s, r) = (z * z, 1.0 / degrees);
    let first = (s + 1.0) / 4.0;
    let second = ((5.0 * s + 16.0) * s + 3.0) / 96.0;
    let third = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0;
    let fourth = ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0;
    z * (1.0 + r * (first + r * (second + r * (third + r * fourth))))
}

/// Returns t with P(|T| < t) = level by bisection in ln t, which ends for any degrees.
fn few_degrees(level: f64, outside: f64, degrees: f64) -> f64 {
    // P(|T| > t) = I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t^2). For small x it is a power of x.
    let shape = 0.5 * degrees;
    let constant = -lgamma_rise(shape + 0.5, 0.5) - 0.5 * PI.ln();
    let log_x = (outside.ln() - constant) / shape;
    if log_x < FAR_TAIL.ln() {
        return (0.5 * (degrees.ln() - log_x)).exp();
    }
    let is_inside = |log_t: f64| {
        let ratio = (2.0 * log_t - degrees.ln()).exp();
        // The smaller of the two probabilities is accurate to all digits, and so is the smaller share of degrees + t^2.
        match level < 0.5 && ratio <= 1.0 {
            true => incomplete_beta(0.5, shape, ratio / (1.0 + ratio)) < level,
            false => incomplete_beta(shape, 0.5, 1.0 / (1.0 + ratio)) > outside,
        }
    };
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.5 * (degrees.ln() - FAR_TAIL.ln()) + 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_inside(middle) { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).exp()
}

/// The sum of a Student-t variable and a normal one, at one central interval. It is a new target under Student-t noise
/// with a normally distributed function, (M76).
#[derive(Debug)]
pub(super) struct StudentPlusNormal {
    central: Central,
    degrees: f64,
    /// Half width for the Student-t variable alone.
    student: f64,
    /// Half width for the normal variable alone.
    normal: f64,
    /// Variances and probabilities of the normal distributions whose mixture is Student's t.
    mixture: Vec<(f64, f64)>,
}

impl StudentPlusNormal {
    pub fn new(central: Central, degrees: f64) -> StudentPlusNormal {
        let mixture = match degrees < FEWEST_DEGREES {
            true => vec![],
            false => log_gamma::nodes(0.5 * degrees, FALL - central.outside.ln()),
        };
        let mixture = mixture.into_iter().map(|(d, p)| ((-d).exp(), p)).collect();
        StudentPlusNormal { central, degrees, student: central.student(degrees), normal: central.normal(), mixture }
    }

    /// Returns half the width of the interval of the sum; infinite if it overflows. The Student-t variable has the
    /// squared scale `square`, and the normal one has the variance `variance`.
    pub fn half_width(&self, square: f64, variance: f64) -> f64 {
        let (scale, ratio) = (square.sqrt(), variance / square);
        if self.central.inside == 0.0 {
            return 0.0;
        }
        // There is no noise, or so little that the ratio overflows.
        if !ratio.is_finite() {
            return self.normal * variance.sqrt();
        }
        if ratio < NEGLIGIBLE || !self.student.is_finite() {
            return self.student * scale;
        }
        match self.degrees < FEWEST_DEGREES {
            true => self.student * (square + variance).sqrt(),
            false => self.solve(ratio) * scale,
        }
    }

    /// Returns the half width in units of the scale, by Newton's method in the logarithms of width and probability.
    fn solve(&self, ratio: f64) -> f64 {
        let mut x = self.student.hypot(ratio.sqrt() * self.normal);
        let (mut low, mut high) = (0.0, f64::INFINITY);
        for _ in 0..NEWTON_STEPS {
            let (off, slope) = self.at(x, ratio);
            if off < 0.0 {
                low = x
            } else {
                high = x
            }
            let mut next = x * (-off / slope).exp();
            if !(next > low && next < high) {
                next = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * x };
            }
            if (next - x).abs() <= TOLERANCE * x {
                return next;
            }
            x = next;
        }
        x
    }

    /// Returns the error of the log probability at the half width `x`, negative if `x` is too small, and its derivative
    /// in ln x. The smaller of the two probabilities is used.
    fn at(&self, x: f64, ratio: f64) -> (f64, f64) {
        let from_inside = self.central.inside < 0.5;
        let (mut probability, mut density) = (0.0, 0.0);
        for (variance, p) in &self.mixture {
            let y = x / (2.0 * (ratio + variance)).sqrt();
            probability += p * if from_inside { erf(y) } else { erfc(y) };
            density += p * y * (-y * y).exp();
        }
        let slope = 2.0 / PI.sqrt() * density / probability;
        match from_inside {
            true => ((probability / self.central.inside).ln(), slope),
            false => (-(probability / self.central.outside).ln(), slope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_width(level: f64, degrees: Option<f64>) -> f64 {
        let central = Central { inside: level, outside: 1.0 - level };
        degrees.map_or_else(|| central.normal(), |degrees| central.student(degrees))
    }

    /// The table has numbers with 17 digits, from 0.1 degrees of freedom to infinity.
    #[test]
    fn half_widths_of_student_t_agree_with_the_table() {
        let table = include_str!("../../tests/tables/student_t_quantiles.csv");
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
        assert_eq!(lines.len(), 192);
        for line in lines {
            let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let found = half_width(cells[1], Some(cells[0]));
            assert!((found / cells[2] - 1.0).abs() < 1e-9, "{line}: {found}");
            if cells[0] == f64::INFINITY {
                assert!((half_width(cells[1], None) / cells[2] - 1.0).abs() < 1e-12, "{line}");
            }
        }
    }

    /// Widths grow with fewer degrees and higher levels, through all changes of method. They are never NaN.
    #[test]
    fn half_widths_fall_with_degrees_and_rise_with_the_level() {
        let levels = [1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0 - f64::EPSILON];
        let mut last = [f64::INFINITY; 8];
        for k in -1200..1230 {
            let degrees = 10f64.powf(f64::from(k) / 4.0);
            let found = levels.map(|level| half_width(level, Some(degrees)));
            assert!(found.iter().all(|q| *q >= 0.0), "{degrees}: {found:?}");
            assert!(
                found.windows(2).all(|q| q[0] < q[1] || q[0] == q[1] && (q[0] == 0.0 || q[0].is_infinite())),
                "{degrees}: {found:?}"
            );
            if degrees >= 0.1 {
                let falls = found.iter().zip(&last).all(|(q, last)| *q <= last * (1.0 + 1e-9));
                assert!(falls, "{degrees}: {found:?}, {last:?}");
                last = found;
            }
        }
    }
    /// Returns the probability outside the interval by the other integral: Student's distribution function over the
    /// normal variable, with 400 nodes.
    fn outside(half: f64, degrees: f64, variance: f64) -> f64 {
        let student = |t: f64| {
            let far = 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t));
            if t > 0.0 { far } else { 1.0 - far }
        };
        let nodes = (-200..=200).map(|k| 0.05 * f64::from(k));
        let both = |z: f64| {
            let shift = variance.sqrt() * z;
            (-0.5 * z * z).exp() * (student(half - shift) + student(half + shift))
        };
        nodes.map(both).sum::<f64>() * 0.05 / (2.0 * PI).sqrt()
    }

    #[test]
    fn sums_of_student_t_and_normal_variables_agree_with_the_integral_over_the_normal_one() {
        for degrees in [0.1, 0.7, 1.0, 2.0, 4.5, 30.0, 900.0] {
            for variance in [1e-6, 0.01, 0.3, 1.0] {
                for level in [0.01, 0.5, 0.95, 0.999] {
                    let central = Central { inside: level, outside: 1.0 - level };
                    let half = StudentPlusNormal::new(central, degrees).half_width(1.0, variance);
                    let found = 1.0 - outside(half, degrees, variance);
                    assert!((found - level).abs() < 1e-8, "{degrees} {variance} {level}: {half} {found}");
                    // The sum is wider than either variable alone.
                    assert!(half > central.student(degrees).max(variance.sqrt() * central.normal()));
                    // The result scales with the unit of the target.
                    let other = StudentPlusNormal::new(central, degrees).half_width(1e12, 1e12 * variance);
                    assert!((other / half - 1e6).abs() < 1e-7, "{degrees} {variance} {level}");
                }
            }
        }
    }

    /// If one variable vanishes, the other is left, whatever the degrees. The width is finite and grows with the
    /// variance.
    #[test]
    fn sums_of_student_t_and_normal_variables_have_the_right_limits() {
        for degrees in [1e-300, 0.05, 0.1, 1.0, 3.0, 999.0, 1001.0, 1e6, 1e300] {
            for level in [1e-12, 0.3, 0.95, 1.0 - f64::EPSILON] {
                let central = Central { inside: level, outside: 1.0 - level };
                let sum = StudentPlusNormal::new(central, degrees);
                let (student, normal) = (central.student(degrees), central.normal());
                assert_eq!(sum.half_width(0.0, 4.0), 2.0 * normal);
                assert_eq!(sum.half_width(4.0, 0.0), 2.0 * student);
                if student.is_finite() {
                    let near = sum.half_width(1.0, 1e-15);
                    assert!((near / student - 1.0).abs() < 1e-9 || near > student, "{degrees} {level}: {near} {student}");
                }
                let widths: Vec<f64> = (-20..20).map(|k| sum.half_width(1.0, 10f64.powi(k))).collect();
                assert!(widths.windows(2).all(|w| w[0] <= w[1] * (1.0 + 1e-12)), "{degrees} {level}: {widths:?}");
            }
        }
        // For many degrees both variables are normal.
        let central = Central { inside: 0.95, outside: 0.05 };
        let half = StudentPlusNormal::new(central, 1e12).half_width(9.0, 16.0);
        assert!((half / (5.0 * central.normal()) - 1.0).abs() < 1e-9, "{half}");
    }
}
