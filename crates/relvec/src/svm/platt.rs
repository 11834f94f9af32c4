//! Probabilities from the values of a function: Platt's sigmoid (Platt 1999), fitted as Lin, Lin & Weng (2007) do.

/// Newton steps, and halvings of one.
const MOST_STEPS: usize = 100;
const MOST_HALVINGS: usize = 40;
/// Added to the Hessian's diagonal.
const RIDGE: f64 = 1e-12;
/// A gradient as small ends it.
const ENOUGH: f64 = 1e-5;

/// A and B of p = 1 / (1 + exp(A f + B)), (M43), that make `second` (whether a row is of the second class) most likely;
/// targets are drawn in from 0 and 1 by one row of either class. `weight` multiplies each row's share.
pub(crate) fn fit(f: &[f64], second: &[bool], weight: &[f64]) -> [f64; 2] {
    let sum = |which: bool| second.iter().zip(weight).filter(|(s, _)| **s == which).map(|(_, w)| w).sum::<f64>();
    let (positive, negative) = (sum(true), sum(false));
    let (high, low) = ((positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0));
    let rows: Vec<(f64, f64, f64)> =
        f.iter().zip(second).zip(weight).map(|((f, s), w)| (*f, if *s { high } else { low }, *w)).collect();
    // -log likelihood; written so that no exponential overflows.
    let loss = |a: f64, b: f64| -> f64 {
        let term = |(f, t, w): &(f64, f64, f64)| {
            let z = a * f + b;
            w * if z >= 0.0 { t * z + (-z).exp().ln_1p() } else { (t - 1.0) * z + z.exp().ln_1p() }
        };
        rows.iter().map(term).sum()
    };
    let (mut a, mut b) = (0.0, ((negative + 1.0) / (positive + 1.0)).ln());
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
        if ga.abs() < ENOUGH && gb.abs() < ENOUGH {
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
    [a, b]
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
}
