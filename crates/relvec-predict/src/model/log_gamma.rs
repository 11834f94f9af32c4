//! Sums over the logarithm of a gamma variable. They mix normal distributions into Student's t, and average over rates
//! of counts.

use crate::prelude::*;

/// Number of nodes per standard deviation of the logarithm, or per unit of it if that is less. The trapezoid rule
/// converges geometrically for smooth functions that fall on both sides. Its error is below rounding with 4 nodes, and
/// 1e-8 with half as many.
pub(super) const PER_DEVIATION: f64 = 4.0;

/// Returns nodes d and probabilities of ln(G / a), where G is a gamma variable of shape `a`. The nodes extend on both
/// sides of the mode until the log density has fallen by `fall`.
pub(super) fn nodes(a: f64, fall: f64) -> Vec<(f64, f64)> {
    let mut nodes: Vec<(f64, f64)> = falls(a, fall).map(|(d, fall)| (d, (-fall).exp())).collect();
    let total: f64 = nodes.iter().map(|(_, p)| p).sum();
    nodes.iter_mut().for_each(|(_, p)| *p /= total);
    nodes
}

/// Returns nodes with the logarithms of their probabilities, which are accurate where the probabilities underflow.
pub(super) fn log_nodes(a: f64, fall: f64) -> Vec<(f64, f64)> {
    let log_total = falls(a, fall).map(|(_, fall)| (-fall).exp()).sum::<f64>().ln();
    falls(a, fall).map(|(d, fall)| (d, -fall - log_total)).collect()
}

/// Returns the nodes in ascending order, and how far the log density is below that of the mode there.
fn falls(a: f64, most: f64) -> impl Iterator<Item = (f64, f64)> {
    let step = 1.0 / (PER_DEVIATION * a.max(1.0).sqrt());
    let side = |sign: f64| {
        let nodes = (1..).map(move |k| sign * step * f64::from(k)).map(move |d| (d, a * excess(d)));
        nodes.take_while(move |(_, fall)| *fall < most)
    };
    side(-1.0).collect::<Vec<_>>().into_iter().rev().chain([(0.0, 0.0)]).chain(side(1.0))
}

/// Returns exp(d) - 1 - d, accurately for small d too.
pub(super) fn excess(d: f64) -> f64 {
    if d.abs() > 0.5 {
        return d.exp_m1() - d;
    }
    // The series has 16 terms of d^k / k!; the rest is below rounding.
    let series = (3..18).rev().fold(1.0, |sum, k| 1.0 + d / f64::from(k) * sum);
    0.5 * d * d * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of a gamma variable divided by its shape: mean 1 and variance 1 / a, on both sides of every change of
    /// method.
    #[test]
    fn nodes_have_the_moments_of_a_gamma_variable() {
        for a in [0.05, 0.5, 0.999, 1.0, 1.5, 30.0, 1e4, 1e9, 1e20] {
            let nodes = nodes(a, 80.0);
            let mean = |f: &dyn Fn(f64) -> f64| nodes.iter().map(|(d, p)| p * f(*d)).sum::<f64>();
            assert!((mean(&|d| d.exp()) - 1.0).abs() < 1e-12, "{a}");
            assert!((mean(&|d| d.exp_m1().powi(2)) * a - 1.0).abs() < 1e-11, "{a}");
        }
    }

    #[test]
    fn excess_agrees_on_both_sides_of_its_change_of_method() {
        for d in [0.5, -0.5] {
            let (inside, outside) = (excess(d), excess(d * (1.0 + 1e-12)));
            assert!((inside / outside - 1.0).abs() < 1e-11, "{d}: {inside} {outside}");
        }
        assert_eq!(excess(1e-150), 0.5e-300);
        assert_eq!(excess(f64::NEG_INFINITY), f64::INFINITY);
    }
}
