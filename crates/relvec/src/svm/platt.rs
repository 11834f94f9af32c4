//! Probabilities from the values of a function: Platt's sigmoid (Platt 1999), fitted as Lin, Lin & Weng (2007) do.

/// Newton steps, and halvings of one.
const MOST_STEPS: usize = 100;
const MOST_HALVINGS: usize = 40;
/// Added to the Hessian's diagonal.
const RIDGE: f64 = 1e-12;
/// A gradient as small ends it.
const ENOUGH: f64 = 1e-5;

/// A <= 0 and B of p = 1 / (1 + exp(A f + B)), (M43), that make `second` (whether a row is of the second class) most
/// likely; targets are drawn in from 0 and 1 by one row of either class. `weight` multiplies each row's share. A = 0: larger
/// values do not go with the second class, and p is its frequency.
pub(crate) fn fit(f: &[f64], second: &[bool], weight: &[f64]) -> [f64; 2] {
    let sum = |which: bool| second.iter().zip(weight).filter(|(s, _)| **s == which).map(|(_, w)| w).sum::<f64>();
    let (positive, negative) = (sum(true), sum(false));
    let targets = [1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)];
    let [a, b] = minimum(f, second, weight, targets, Some(((negative + 1.0) / (positive + 1.0)).ln()));
    if a <= 0.0 {
        return [a, b];
    }
    let mean = (negative * targets[0] + positive * targets[1]) / (negative + positive);
    [0.0, (1.0 / mean - 1.0).ln()]
}

/// A <= 0 as in [`fit`], B being 0: p is above 1/2 where f is positive. Targets are drawn in by one row of a class of
/// `rows` rows.
pub(crate) fn through_zero(f: &[f64], second: &[bool], weight: &[f64], rows: f64) -> f64 {
    let high = (rows + 1.0) / (rows + 2.0);
    minimum(f, second, weight, [1.0 - high, high], None)[0].min(0.0)
}

/// A and B of the least -log likelihood, `targets` being those of the first and of the second class. `start`: the first
/// B; `None`: B stays 0.
fn minimum(f: &[f64], second: &[bool], weight: &[f64], targets: [f64; 2], start: Option<f64>) -> [f64; 2] {
    // Small values and weights in units of their largest and of their sum, so that a gradient is not small because they are.
    let unit = f.iter().fold(0.0, |largest: f64, f| largest.max(f.abs())).min(1.0);
    let unit = if unit > 0.0 { unit } else { 1.0 };
    let enough = ENOUGH * weight.iter().sum::<f64>().min(1.0);
    let row = |((f, s), w): ((&f64, &bool), &f64)| (*f / unit, targets[usize::from(*s)], *w);
    let rows: Vec<(f64, f64, f64)> = f.iter().zip(second).zip(weight).map(row).collect();
    // -log likelihood; written so that no exponential overflows.
    let loss = |a: f64, b: f64| -> f64 {
        let term = |(f, t, w): &(f64, f64, f64)| {
            let z = a * f + b;
            w * if z >= 0.0 { t * z + (-z).exp().ln_1p() } else { (t - 1.0) * z + z.exp().ln_1p() }
        };
        rows.iter().map(term).sum()
    };
    let (mut a, mut b) = (0.0, start.unwrap_or(0.0));
    let mut value = loss(a, b);
    for _ in 0..MOST_STEPS {
        let (mut haa, mut hbb, mut hab, mut ga, mut gb) = (RIDGE, RIDGE, 0.0, 0.0, 0.0);
        for (f, t, w) in &rows {
            let p = crate::likelihood::sigmoid(-(a * f + b));
            let (curvature, slope) = (w * p * (1.0 - p), w * (t - p));
            haa += f * f * curvature;
            hbb += curvature;
            hab += f * curvature;
            ga += f * slope;
            gb += slope;
        }
        if start.is_none() {
            (hab, gb) = (0.0, 0.0);
        }
        if ga.abs() < enough && gb.abs() < enough {
            break;
        }
        let determinant = haa * hbb - hab * hab;
        let (da, db) = (-(hbb * ga - hab * gb) / determinant, -(haa * gb - hab * ga) / determinant);
        let down = ga * da + gb * db;
        let tries = (0..MOST_HALVINGS).map(|k| 0.5f64.powi(k as i32));
        let mut steps = tries.map(|t| (a + t * da, b + t * db, t)).map(|(a, b, t)| (a, b, t, loss(a, b)));
        let Some((na, nb, _, next)) = steps.find(|(_, _, t, next)| *next < value + 1e-4 * t * down) else { break };
        (a, b, value) = (na, nb, next);
    }
    [a / unit, b]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient vanishes: the found sigmoid has the drawn-in frequencies of both classes, and larger values
    /// mean the second class.
    #[test]
    fn the_sigmoid_is_stationary() {
        let f: Vec<f64> = (0..200).map(|i| ((i * 37) % 200) as f64 / 40.0 - 2.0).collect();
        let second: Vec<bool> = f.iter().enumerate().map(|(i, f)| *f + ((i * 53) % 97) as f64 / 48.0 - 1.0 > 0.5).collect();
        let weight: Vec<f64> = (0..200).map(|i| 1.0 + (i % 3) as f64).collect();
        let [a, b] = fit(&f, &second, &weight);
        let total = |which: bool| second.iter().zip(&weight).filter(|(s, _)| **s == which).map(|(_, w)| w).sum::<f64>();
        let (high, low) = ((total(true) + 1.0) / (total(true) + 2.0), 1.0 / (total(false) + 2.0));
        let (mut ga, mut gb) = (0.0, 0.0);
        for ((f, s), w) in f.iter().zip(&second).zip(&weight) {
            let slope = w * (if *s { high } else { low } - 1.0 / (1.0 + (a * f + b).exp()));
            ga += f * slope;
            gb += slope;
        }
        assert!(ga.abs() < 1e-4 && gb.abs() < 1e-4 && a < 0.0, "{ga} {gb} {a} {b}");
    }

    /// Classes that the function separates, or one that is missing, have finite numbers.
    #[test]
    fn separated_classes_have_a_sigmoid() {
        let f = [-1e6, -1.0, 1.0, 1e6];
        for second in [[false, false, true, true], [false; 4], [true; 4]] {
            let [a, b] = fit(&f, &second, &[1.0; 4]);
            assert!(a.is_finite() && b.is_finite(), "{a} {b}");
        }
    }

    /// Values that fall where the second class is more frequent say nothing of it: its frequency is left.
    #[test]
    fn a_sigmoid_that_would_fall_is_flat() {
        let f = [2.0, 1.0, 0.5, -0.5, -1.0, -2.0, -3.0];
        let second = [false, false, false, true, true, true, true];
        let [a, b] = fit(&f, &second, &[1.0; 7]);
        let mean = (3.0 * (1.0 / 5.0) + 4.0 * (5.0 / 6.0)) / 7.0;
        assert!(a == 0.0 && (1.0 / (1.0 + b.exp()) - mean).abs() < 1e-12, "{a} {b}");
    }

    /// Whatever the units of the values and of the weights.
    #[test]
    fn a_sigmoid_through_zero_is_above_a_half_where_the_value_is_positive() {
        for (unit, weight) in [(1.0, 1.0), (1e-9, 1.0), (1e6, 1.0), (1.0, 1e-9)] {
            let a = through_zero(&[unit, 0.2 * unit, -unit], &[true, true, false], &[weight; 3], 1.0);
            assert!(a < 0.0 && a.is_finite(), "{unit} {weight}: {a}");
            // About its target, 2/3.
            let p = 1.0 / (1.0 + (a * unit).exp());
            assert!((0.6..0.75).contains(&p), "{unit} {weight}: {p}");
        }
    }
}
