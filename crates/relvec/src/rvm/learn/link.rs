//! From left-out means to probabilities: softmax(theta A), then softmax(A W'), (M82) and (M84).

use ndarray::{Array2, ArrayView2, Axis};

use super::label_rows::Labels;
use crate::error::Result;
use crate::likelihood::normalise;
use crate::linalg;
use crate::report::Interrupt;
use crate::rvm::evidence::lbfgs::{self, Limits};

/// Temperature to begin with. The objective is concave, so that it decides nothing but the number of steps.
const FIRST: f64 = 2.0;
/// Newton's steps for theta, of which about 6 are taken, and halvings of one. They end when one gains less than this share.
const STEPS: usize = 50;
const HALVINGS: usize = 20;
const CONVERGED: f64 = 1e-12;
/// Standard deviation of the entries of W about theta I. Held-out log losses change by 0.003 if it is halved or doubled; at 4,
/// the link of three classes on 120 rows overfits.
const SPREAD: f64 = 1.0;
/// Evaluations for W, of which about 10 to 30 are taken; they end when three have gained less than this in nats.
const EVALUATIONS: usize = 200;
const TOLERANCE: f64 = 1e-8;
/// Largest change of an entry of W in one step; theta is mostly between 1 and 12.
const STEP: f64 = 10.0;

/// Y'log softmax at logits, [S, C], which become probabilities, of each observation, `[S]`.
pub(super) fn log_probabilities(labels: &Labels, logits: &mut Array2<f64>) -> Vec<f64> {
    let mut values = Vec::with_capacity(labels.seen.len());
    for (seen, mut row) in labels.seen.iter().zip(logits.outer_iter_mut()) {
        normalise(row.as_slice_mut().expect("rows are contiguous"));
        values.push(row.iter().enumerate().map(|(k, log)| labels.target(seen.class, k) * log).sum());
        row.mapv_inplace(f64::exp);
    }
    values
}

/// sum n Y'log softmax at logits, [S, C], which become probabilities.
pub(super) fn log_probability(labels: &Labels, logits: &mut Array2<f64>) -> f64 {
    log_probabilities(labels, logits).iter().zip(&labels.seen).map(|(log, seen)| seen.weight * log).sum()
}

/// The theta >= 0 at which the classes of left-out means `a`, [S, C], are most probable; their log probability; and softmax(theta
/// A). Left-out means of noise are negatively correlated with the classes: a negative theta would find structure there.
pub(super) fn temperature(labels: &Labels, a: ArrayView2<f64>) -> (f64, f64, Array2<f64>) {
    let at = |theta: f64| {
        let mut logits = &a * theta;
        let value = log_probability(labels, &mut logits);
        (theta, value, logits)
    };
    let mut best = at(FIRST);
    for _ in 0..STEPS {
        let (theta, value, probabilities) = &best;
        let (mut slope, mut curvature) = (0.0, f64::MIN_POSITIVE);
        for ((seen, a), p) in labels.seen.iter().zip(a.outer_iter()).zip(probabilities.outer_iter()) {
            let mean = a.dot(&p);
            for (k, (a, p)) in a.iter().zip(p).enumerate() {
                slope += seen.weight * (labels.target(seen.class, k) - p) * a;
                curvature += seen.weight * p * (a - mean) * (a - mean);
            }
        }
        let step = slope / curvature;
        let tries = (0..HALVINGS).map(|k| at((theta + step * 0.5f64.powi(k as i32)).max(0.0)));
        let Some(next) = tries.into_iter().find(|next| next.1 > *value) else { break };
        let gained = next.1 - value;
        best = next;
        if gained < CONVERGED * best.1.abs() {
            break;
        }
    }
    best
}

/// The W, [C, C], at which v less |W - theta I|^2 / (2 sd^2) is highest, and softmax(A W'), [S, C].
pub(super) fn matrix(
    labels: &Labels,
    a: ArrayView2<f64>,
    theta: f64,
    interrupt: &Interrupt,
) -> Result<(Array2<f64>, Array2<f64>)> {
    let classes = labels.classes();
    let middle = Array2::from_diag_elem(classes, theta);
    let start = middle.iter().copied().collect::<Vec<_>>();
    let square = |x: &[f64]| Array2::from_shape_vec((classes, classes), x.to_vec()).expect("C x C numbers");
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE, patience: 3, step: STEP };
    let bounds = vec![(f64::NEG_INFINITY, f64::INFINITY); classes * classes];
    let peak = lbfgs::maximise(&start, &bounds, limits, |x| {
        interrupt.check()?;
        let w = square(x);
        let mut left = linalg::times(a, w.t());
        let value = log_probability(labels, &mut left);
        for (seen, mut row) in labels.seen.iter().zip(left.outer_iter_mut()) {
            row.iter_mut().enumerate().for_each(|(k, p)| *p = seen.weight * (labels.target(seen.class, k) - *p));
        }
        let off = (&w - &middle) / SPREAD;
        let slope = linalg::times(left.t(), a) - &off / SPREAD;
        Ok(Some((value - 0.5 * off.iter().map(|v| v * v).sum::<f64>(), slope.into_iter().collect())))
    })?;
    let w = peak.map_or(middle.clone(), |peak| square(&peak.x));
    let mut probabilities = linalg::times(a, w.t());
    log_probability(labels, &mut probabilities);
    Ok((w, probabilities))
}

/// Mean Kullback-Leibler divergence, in nats by weight, of softmax(z - `left`) from softmax(z) = Q, for each of the C - 1 functions that
/// tell C classes apart; Q, [S, C], of the observations, `left`, [n, C], of the groups.
pub(super) fn divergence(labels: &Labels, probabilities: ArrayView2<f64>, left: ArrayView2<f64>) -> f64 {
    let mut sum = 0.0;
    for (seen, q) in labels.seen.iter().zip(probabilities.axis_iter(Axis(0))) {
        let left = left.row(seen.group);
        // About the mean under Q, so that neither sum cancels.
        let mean: f64 = q.iter().zip(left).map(|(q, z)| q * z).sum();
        let largest = left.iter().zip(&q).filter(|(_, q)| **q > 0.0).map(|(z, _)| mean - z).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = q.iter().zip(left).filter(|(q, _)| **q > 0.0).map(|(q, z)| q * (mean - z - largest).exp()).sum();
        sum += seen.weight * (largest + total.ln());
    }
    (sum / (labels.rows.count * (labels.classes() - 1) as f64)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels of single rows, and means that tell something of them.
    fn scores(n: usize, classes: usize, signal: f64) -> (Labels, Array2<f64>) {
        let wave = |i: usize, k: usize| (0.618_033_988_75 * (i * (k + 1) + 7 * k) as f64).fract();
        let x = Array2::from_shape_fn((n, 1), |(i, _)| i as f64);
        let class: Vec<usize> = (0..n).map(|i| (wave(i, 2) * classes as f64) as usize).collect();
        let weights: Vec<f64> = (0..n).map(|i| 0.5 + wave(i, 3)).collect();
        let of = |(i, k): (usize, usize)| signal * f64::from(u8::from(class[i] == k)) + wave(i, 4 + k);
        let a = Array2::from_shape_fn((n, classes), of);
        (Labels::new(x.view(), &class, classes, &weights), a)
    }

    fn value(labels: &Labels, a: &Array2<f64>, w: &Array2<f64>, theta: f64) -> f64 {
        let off = (w - &Array2::from_diag_elem(w.nrows(), theta)) / SPREAD;
        log_probability(labels, &mut a.dot(&w.t())) - 0.5 * off.iter().map(|v| v * v).sum::<f64>()
    }

    #[test]
    fn the_temperature_is_the_best_that_is_not_negative() {
        for classes in [2, 3, 7] {
            let (labels, a) = scores(60, classes, 0.4);
            let (theta, best, probabilities) = temperature(&labels, a.view());
            assert!(theta > 0.1 && probabilities.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-12));
            let at = |theta: f64| log_probability(&labels, &mut (&a * theta));
            assert_eq!(at(theta), best);
            for h in [1e-3, 0.1, 1.0] {
                assert!(at(theta + h) < best && at(theta - h) < best, "{classes} classes: {theta}");
            }
            // Means that speak against the classes, and means that separate them.
            let (labels, a) = scores(60, classes, -0.8);
            assert_eq!(temperature(&labels, a.view()).0, 0.0);
            let (labels, a) = scores(60, classes, 5.0);
            let theta = temperature(&labels, a.view()).0;
            assert!(theta > 0.5 && theta < 20.0, "{theta}");
        }
    }

    #[test]
    fn the_link_is_the_highest_point() {
        for classes in [2, 3, 6] {
            let (labels, a) = scores(80, classes, 0.5);
            let (theta, alone, _) = temperature(&labels, a.view());
            let (w, probabilities) = matrix(&labels, a.view(), theta, &Interrupt::default()).unwrap();
            let best = value(&labels, &a, &w, theta);
            assert!(best > alone + 1e-3, "{best} is not above {alone}");
            for k in 0..classes * classes {
                for h in [-0.05, 0.05] {
                    let mut other = w.clone();
                    other[[k / classes, k % classes]] += h;
                    assert!(value(&labels, &a, &other, theta) < best, "{classes} classes, entry {k}");
                }
            }
            let mut logits = a.dot(&w.t());
            log_probability(&labels, &mut logits);
            assert!((&logits - &probabilities).iter().all(|d| d.abs() < 1e-12));
        }
    }

    #[test]
    fn the_divergence_is_that_of_its_definition() {
        let (labels, mut q) = scores(30, 4, 1.0);
        q *= 3.0;
        let logits = q.clone();
        log_probability(&labels, &mut q);
        let left = Array2::from_shape_fn((30, 4), |(i, k)| 0.3 * ((i * 5 + k * 3) as f64).sin() + 100.0);
        let mut shifted = &logits - &left;
        log_probability(&labels, &mut shifted);
        let of = |s: usize| -> f64 { (0..4).map(|k| q[[s, k]] * (q[[s, k]] / shifted[[s, k]]).ln()).sum() };
        let expected =
            labels.seen.iter().enumerate().map(|(s, seen)| seen.weight * of(s)).sum::<f64>() / (3.0 * labels.rows.count);
        let got = divergence(&labels, q.view(), left.view());
        assert!((got - expected).abs() < 1e-12 && got > 1e-3, "{got} instead of {expected}");
        // What all classes share changes nothing; what is huge is no overflow.
        assert_eq!(divergence(&labels, q.view(), Array2::from_elem((30, 4), 7.0).view()), 0.0);
        let mut huge = left.clone();
        huge.column_mut(0).fill(-1e5);
        let got = divergence(&labels, q.view(), huge.view());
        assert!(got.is_finite() && got > 1e3, "{got}");
    }

    #[test]
    fn a_raised_interrupt_ends_it() {
        let (labels, a) = scores(20, 3, 0.5);
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert_eq!(matrix(&labels, a.view(), 1.0, &interrupt), Err(crate::error::Error::Interrupted));
    }
}
