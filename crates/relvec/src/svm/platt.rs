//! Probabilities from the values of a function: Platt's sigmoid (Platt 1999), fitted by the method of Lin, Lin & Weng
//! (2007).

/// Largest number of Newton steps.
const MOST_STEPS: usize = 100;
/// Largest number of halvings of a Newton step.
const MOST_HALVINGS: usize = 40;
/// Number added to the diagonal of the Hessian.
const RIDGE: f64 = 1e-12;
/// Size of the gradient at which the fit ends.
const ENOUGH: f64 = 1e-5;

/// Returns A <= 0 and B of p = 1 / (1 + exp(A f + B)), (M43), that maximise the likelihood of `second`, which is true
/// for rows of the second class. Targets are moved from 0 and 1 by one row of each class. `weight` multiplies the share
/// of each row. If larger values do not indicate the second class, A is 0, and p is the frequency of that class.
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

/// Returns A <= 0 as [`fit`] does, for B = 0, so that p is above 1/2 where f is positive. Targets are moved by one row
/// of a class of `rows` rows.
pub(crate) fn through_zero(f: &[f64], second: &[bool], weight: &[f64], rows: f64) -> f64 {
    let high = (rows + 1.0) / (rows + 2.0);
    minimum(f, second, weight, [1.0 - high, high], None)[0].min(0.0)
}

/// Returns A and B that minimise the negative log-likelihood. `targets` contains the targets of the first and of the
/// second class. `start` is the initial B; with `None`, B stays 0.
fn minimum(f: &[f64], second: &[bool], weight: &[f64], targets: [f64; 2], start: Option<f64>) -> [f64; 2] {
    // Small values are divided by the largest of them, and the tolerance is scaled by small weights. A gradient is then
    // not small only because these are.
    let unit = f.iter().fold(0.0, |largest: f64, f| largest.max(f.abs())).min(1.0);
    let unit = if unit > 0.0 { unit } else { 1.0 };
    let enough = ENOUGH * weight.iter().sum::<f64>().min(1.0);
    let row = |((f, s), w): ((&f64, &bool), &f64)| (*f / unit, targets[usize::from(*s)], *w);
    let rows: Vec<(f64, f64, f64)> = f.iter().zip(second).zip(weight).map(row).collect();
    // The negative log-likelihood is written so that no exponential overflows.
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

    /// At the solution the gradient is zero for the moved targets, and larger values indicate the second class.
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

    /// If the function separates the classes, or if a class is missing, A and B are finite.
    #[test]
    fn separated_classes_have_a_sigmoid() {
        let f = [-1e6, -1.0, 1.0, 1e6];
        for second in [[false, false, true, true], [false; 4], [true; 4]] {
            let [a, b] = fit(&f, &second, &[1.0; 4]);
            assert!(a.is_finite() && b.is_finite(), "{a} {b}");
        }
    }

    /// If larger values indicate the first class, the probability is the frequency of the second class.
    #[test]
    fn a_sigmoid_that_would_fall_is_flat() {
        let f = [2.0, 1.0, 0.5, -0.5, -1.0, -2.0, -3.0];
        let second = [false, false, false, true, true, true, true];
        let [a, b] = fit(&f, &second, &[1.0; 7]);
        let mean = (3.0 * (1.0 / 5.0) + 4.0 * (5.0 / 6.0)) / 7.0;
        assert!(a == 0.0 && (1.0 / (1.0 + b.exp()) - mean).abs() < 1e-12, "{a} {b}");
    }

    /// The result holds for any units of the values and of the weights.
    #[test]
    fn a_sigmoid_through_zero_is_above_a_half_where_the_value_is_positive() {
        for (unit, weight) in [(1.0, 1.0), (1e-9, 1.0), (1e6, 1.0), (1.0, 1e-9)] {
            let a = through_zero(&[unit, 0.2 * unit, -unit], &[true, true, false], &[weight; 3], 1.0);
            assert!(a < 0.0 && a.is_finite(), "{unit} {weight}: {a}");
            // The probability is near its target, 2/3.
            let p = 1.0 / (1.0 + (a * unit).exp());
            assert!((0.6..0.75).contains(&p), "{unit} {weight}: {p}");
        }
    }
}
