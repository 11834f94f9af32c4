//! The link from left-out means to class probabilities: softmax(theta A), (M82), and then softmax(A W'), (M84).

use ndarray::{Array2, ArrayView2, Axis};

use crate::error::Result;
use crate::lbfgs::{self, Limits};
use crate::likelihood::normalise;
use crate::linalg;
use crate::process::label_rows::Labels;
use crate::report::Interrupt;

/// Initial temperature. The objective is concave, so that the start affects only the number of steps.
const FIRST: f64 = 2.0;
/// Largest number of Newton steps for theta, of which about 6 are taken, and of halvings of a step. The method ends
/// when a step gains less than the share `CONVERGED` of the objective.
const STEPS: usize = 50;
const HALVINGS: usize = 20;
const CONVERGED: f64 = 1e-12;
/// Prior standard deviation of the entries of W about theta I. Held-out log losses change by 0.003 if it is halved or
/// doubled. At 4, the link of three classes on 120 rows overfits.
const SPREAD: f64 = 1.0;
/// Largest number of evaluations for W, of which about 10 to 30 are taken. The maximisation ends when three evaluations
/// gain less than `TOLERANCE` nats.
const EVALUATIONS: usize = 200;
const TOLERANCE: f64 = 1e-8;
/// Largest change of an entry of W in one step. theta is mostly between 1 and 12.
const STEP: f64 = 10.0;

/// Returns Y'log softmax of the logits, [S, C], for each observation, `[S]`. The logits are replaced by probabilities.
pub(crate) fn log_probabilities(labels: &Labels, logits: &mut Array2<f64>) -> Vec<f64> {
    let mut values = Vec::with_capacity(labels.observations.len());
    for (observation, mut row) in labels.observations.iter().zip(logits.outer_iter_mut()) {
        normalise(row.as_slice_mut().expect("rows are contiguous"));
        values.push(row.iter().enumerate().map(|(k, log)| labels.target(observation.class, k) * log).sum());
        row.mapv_inplace(f64::exp);
    }
    values
}

/// Returns sum n Y'log softmax of the logits, [S, C], which are replaced by probabilities.
pub(super) fn log_probability(labels: &Labels, logits: &mut Array2<f64>) -> f64 {
    log_probabilities(labels, logits).iter().zip(&labels.observations).map(|(log, observation)| observation.weight * log).sum()
}

/// Returns the theta >= 0 at which the classes of left-out means `a`, [S, C], are most probable, their log probability,
/// and softmax(theta A). If the means are noise, they are negatively correlated with the classes. A negative theta
/// would then find structure in noise.
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
        for ((observation, a), p) in labels.observations.iter().zip(a.outer_iter()).zip(probabilities.outer_iter()) {
            let mean = a.dot(&p);
            for (k, (a, p)) in a.iter().zip(p).enumerate() {
                slope += observation.weight * (labels.target(observation.class, k) - p) * a;
                curvature += observation.weight * p * (a - mean) * (a - mean);
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

/// Returns the W, [C, C], that maximises v - |W - theta I|^2 / (2 sd^2), and softmax(A W'), [S, C].
pub(crate) fn matrix(
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
        for (observation, mut row) in labels.observations.iter().zip(left.outer_iter_mut()) {
            row.iter_mut().enumerate().for_each(|(k, p)| *p = observation.weight * (labels.target(observation.class, k) - *p));
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

/// Returns the weighted mean Kullback-Leibler divergence of softmax(z - `left`) from softmax(z) = Q, in nats, divided
/// by the C - 1 functions that distinguish C classes. Q, [S, C], belongs to the observations; `left`, [n, C], to the
/// groups.
pub(crate) fn divergence(labels: &Labels, probabilities: ArrayView2<f64>, left: ArrayView2<f64>) -> f64 {
    let mut sum = 0.0;
    for (observation, q) in labels.observations.iter().zip(probabilities.axis_iter(Axis(0))) {
        let left = left.row(observation.group);
        // Differences are taken from the mean under Q, so that the sums do not cancel.
        let mean: f64 = q.iter().zip(left).map(|(q, z)| q * z).sum();
        let largest = left.iter().zip(&q).filter(|(_, q)| **q > 0.0).map(|(z, _)| mean - z).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = q.iter().zip(left).filter(|(q, _)| **q > 0.0).map(|(q, z)| q * (mean - z - largest).exp()).sum();
        sum += observation.weight * (largest + total.ln());
    }
    (sum / (labels.rows.count * (labels.classes() - 1) as f64)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns labels of single rows, and means that are correlated with them.
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
    fn temperature_is_the_best_that_is_not_negative() {
        for classes in [2, 3, 7] {
            let (labels, a) = scores(60, classes, 0.4);
            let (theta, best, probabilities) = temperature(&labels, a.view());
            assert!(theta > 0.1 && probabilities.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-12));
            let at = |theta: f64| log_probability(&labels, &mut (&a * theta));
            assert_eq!(at(theta), best);
            for h in [1e-3, 0.1, 1.0] {
                assert!(at(theta + h) < best && at(theta - h) < best, "{classes} classes: {theta}");
            }
            // The means contradict the classes here, and separate them below.
            let (labels, a) = scores(60, classes, -0.8);
            assert_eq!(temperature(&labels, a.view()).0, 0.0);
            let (labels, a) = scores(60, classes, 5.0);
            let theta = temperature(&labels, a.view()).0;
            assert!(theta > 0.5 && theta < 20.0, "{theta}");
        }
    }

    #[test]
    fn link_maximises_the_penalised_log_probability() {
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
    fn divergence_equals_its_definition() {
        let (labels, mut q) = scores(30, 4, 1.0);
        q *= 3.0;
        let logits = q.clone();
        log_probability(&labels, &mut q);
        let left = Array2::from_shape_fn((30, 4), |(i, k)| 0.3 * ((i * 5 + k * 3) as f64).sin() + 100.0);
        let mut shifted = &logits - &left;
        log_probability(&labels, &mut shifted);
        let of = |s: usize| -> f64 { (0..4).map(|k| q[[s, k]] * (q[[s, k]] / shifted[[s, k]]).ln()).sum() };
        let expected = labels.observations.iter().enumerate().map(|(s, observation)| observation.weight * of(s)).sum::<f64>()
            / (3.0 * labels.rows.count);
        let got = divergence(&labels, q.view(), left.view());
        assert!((got - expected).abs() < 1e-12 && got > 1e-3, "{got} instead of {expected}");
        // What all classes share has no effect, and large values do not overflow.
        assert_eq!(divergence(&labels, q.view(), Array2::from_elem((30, 4), 7.0).view()), 0.0);
        let mut huge = left.clone();
        huge.column_mut(0).fill(-1e5);
        let got = divergence(&labels, q.view(), huge.view());
        assert!(got.is_finite() && got > 1e3, "{got}");
    }

    #[test]
    fn link_fit_stops_at_a_raised_interrupt() {
        let (labels, a) = scores(20, 3, 0.5);
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert_eq!(matrix(&labels, a.view(), 1.0, &interrupt), Err(crate::error::Error::Interrupted));
    }
}
