//! Bounded L-BFGS: maximises a smooth function within bounds from its values and gradients.

use std::collections::VecDeque;

use crate::error::Result;

/// Number of previous steps from which the curvature is estimated.
const MEMORY: usize = 20;
/// Least rise of the function as a share of the rise that its gradient predicts (the first Wolfe condition).
const GAIN: f64 = 1e-4;
/// Largest directional derivative after a step as a share of that before it (the second Wolfe condition).
const SLOPE: f64 = 0.9;
/// Largest number of step lengths that are tried in one direction.
const LENGTHS: usize = 12;
/// Largest change of a variable in the first step, for which the curvature is not known.
const FIRST_STEP: f64 = 0.5;

/// Stopping rules and step limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Largest number of calls of the function.
    pub evaluations: usize,
    /// Rise of the function over the last `patience` calls below which the search ends.
    pub tolerance: f64,
    /// Number of calls over which the rise is measured.
    pub patience: usize,
    /// Largest change of a variable in one step.
    pub step: f64,
}

/// The maximum found.
#[derive(Debug, Clone)]
pub(crate) struct Peak {
    pub x: Vec<f64>,
    /// Number of calls of the function.
    pub evaluations: usize,
}

/// Value and gradient, `[n]`.
pub(crate) type Point = (f64, Vec<f64>);

/// Maximises `f` from `start` within `bounds`.
///
/// `f` returns `None` at points where it has no value. If it has no value at `start`, the result is `None`.
///
/// # Errors
/// Returns the first error of `f`.
pub(crate) fn maximise(
    start: &[f64],
    bounds: &[(f64, f64)],
    limits: Limits,
    f: impl FnMut(&[f64]) -> Result<Option<Point>>,
) -> Result<Option<Peak>> {
    maximise_with(start, bounds, limits, &mut Steps::default(), f)
}

/// Maximises `f` like [`maximise`], with the curvature from previous `steps`, to which it adds its own steps.
///
/// # Errors
/// Returns the first error of `f`.
pub(crate) fn maximise_with(
    start: &[f64],
    bounds: &[(f64, f64)],
    limits: Limits,
    steps: &mut Steps,
    mut f: impl FnMut(&[f64]) -> Result<Option<Point>>,
) -> Result<Option<Peak>> {
    let inside = |x: Vec<f64>| -> Vec<f64> { x.iter().zip(bounds).map(|(x, (low, high))| x.clamp(*low, *high)).collect() };
    let mut x = inside(start.to_vec());
    let mut evaluations = 1;
    let Some((mut value, mut g)) = f(&x)? else { return Ok(None) };
    let mut best = vec![value];
    'climb: loop {
        let free = free(&x, &g, bounds);
        let only_free =
            |v: Vec<f64>| -> Vec<f64> { v.into_iter().zip(&free).map(|(v, free)| if *free { v } else { 0.0 }).collect() };
        let slope = only_free(g.clone());
        let mut direction = only_free(steps.newton(&slope, |q| steps.scale(q)));
        let predicted = dot(&direction, &slope);
        if !(predicted.is_finite() && predicted > 0.0) {
            steps.forget();
            direction.clone_from(&slope);
        }
        let largest = direction.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if largest.is_nan() || largest <= 0.0 {
            break;
        }
        let most = limits.step / largest;
        let mut length = if steps.are_none() { FIRST_STEP.min(limits.step) / largest } else { most.min(1.0) };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut found: Option<(Vec<f64>, Point)> = None;
        for _ in 0..LENGTHS {
            if evaluations >= limits.evaluations {
                break;
            }
            let trial = inside(x.iter().zip(&direction).map(|(x, d)| x + length * d).collect());
            let moved: Vec<f64> = trial.iter().zip(&x).map(|(t, x)| t - x).collect();
            evaluations += 1;
            let point = f(&trial)?.filter(|(v, g)| v.is_finite() && g.iter().all(|g| g.is_finite()));
            best.push(point.as_ref().map_or(value, |p| p.0).max(best[best.len() - 1]));
            match point {
                Some(point) if point.0 >= value + GAIN * dot(&slope, &moved) => {
                    let left = dot(&point.1, &moved) > SLOPE * dot(&slope, &moved);
                    low = length;
                    if found.as_ref().is_none_or(|(_, (value, _))| point.0 > *value) {
                        found = Some((trial, point));
                    }
                    if !left || length >= most {
                        break;
                    }
                }
                _ => high = length,
            }
            length = if high.is_finite() { 0.5 * (low + high) } else { (2.0 * length).min(most) };
            // The next longer step was too long: the step found is good enough.
            if found.is_some() && high.is_finite() {
                break;
            }
        }
        match found {
            Some((trial, (higher, slope))) => {
                let s: Vec<f64> = trial.iter().zip(&x).map(|(t, x)| t - x).collect();
                let y: Vec<f64> = g.iter().zip(&slope).map(|(before, after)| before - after).collect();
                steps.remember(s, y);
                (x, value, g) = (trial, higher, slope);
            }
            // The estimated curvature may be wrong: the next direction is the gradient.
            None if !steps.are_none() && evaluations < limits.evaluations => steps.forget(),
            None => break 'climb,
        }
        let before = best.len().checked_sub(limits.patience + 1).map(|k| best[k]);
        if evaluations >= limits.evaluations || before.is_some_and(|before| value - before < limits.tolerance) {
            break;
        }
    }
    Ok(Some(Peak { x, evaluations }))
}

/// Returns true for each variable that may move, `[n]`. A variable at its bound does not move if its derivative points
/// outwards.
fn free(x: &[f64], slope: &[f64], bounds: &[(f64, f64)]) -> Vec<bool> {
    let stays =
        |((x, slope), (low, high)): ((&f64, &f64), &(f64, f64))| *x <= *low && *slope < 0.0 || *x >= *high && *slope > 0.0;
    x.iter().zip(slope).zip(bounds).map(|place| !stays(place)).collect()
}

/// The last steps and the decrease of the gradient along each of them, from which the curvature is estimated.
#[derive(Debug, Default)]
pub(crate) struct Steps(VecDeque<(Vec<f64>, Vec<f64>)>);

impl Steps {
    /// Adds a step and the decrease of the gradient along it, `[n]` each. Steps along which the function is not concave
    /// are ignored.
    pub fn remember(&mut self, step: Vec<f64>, fall: Vec<f64>) {
        if dot(&step, &fall) > 1e-10 * (dot(&step, &step) * dot(&fall, &fall)).sqrt() {
            self.0.push_back((step, fall));
            if self.0.len() > MEMORY {
                self.0.pop_front();
            }
        }
    }

    /// Removes all steps.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns the steps for a function with `factor` times the curvature.
    pub fn times(&self, factor: f64) -> Steps {
        let scaled = |(s, y): &(Vec<f64>, Vec<f64>)| (s.clone(), y.iter().map(|y| factor * y).collect());
        Steps(self.0.iter().map(scaled).collect())
    }

    fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the quasi-Newton direction for the gradient `g`, `[n]`. Its curvature is that of the steps, and that of
    /// `solve` in all other directions.
    pub fn newton(&self, g: &[f64], solve: impl FnOnce(&mut [f64])) -> Vec<f64> {
        let mut q = g.to_vec();
        let mut shares = Vec::new();
        for (s, y) in self.0.iter().rev() {
            let share = dot(s, &q) / dot(s, y);
            q.iter_mut().zip(y).for_each(|(q, y)| *q -= share * y);
            shares.push(share);
        }
        solve(&mut q);
        for ((s, y), share) in self.0.iter().zip(shares.iter().rev()) {
            let back = dot(y, &q) / dot(s, y);
            q.iter_mut().zip(s).for_each(|(q, s)| *q += (share - back) * s);
        }
        q
    }

    /// Divides `q`, `[n]`, by the curvature along the last step.
    fn scale(&self, q: &mut [f64]) {
        if let Some((s, y)) = self.0.back() {
            let scale = dot(s, y) / dot(y, y);
            q.iter_mut().for_each(|q| *q *= scale);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { evaluations: 400, tolerance: 1e-14, patience: 8, step: 1.0 };
    const FREE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn rosenbrock(x: &[f64]) -> Point {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        (-(a * a + 100.0 * b * b), vec![2.0 * a + 400.0 * x[0] * b, -200.0 * b])
    }

    #[test]
    fn maximum_of_rosenbrocks_function_is_found() {
        let peak = maximise(&[-1.2, 1.0], &[FREE; 2], LIMITS, |x| Ok(Some(rosenbrock(x)))).unwrap().unwrap();
        assert!((peak.x[0] - 1.0).abs() < 1e-5 && (peak.x[1] - 1.0).abs() < 1e-5, "{peak:?}");
        assert!(peak.evaluations < 120, "{peak:?}");
    }

    #[test]
    fn bounds_hold_and_the_maximum_at_a_bound_is_found() {
        // For x <= 0.5 the maximum is at the bound, with y = x^2.
        let bounds = [(-2.0, 0.5), FREE];
        let mut outside = 0;
        let peak = maximise(&[-1.2, 1.0], &bounds, LIMITS, |x| {
            outside += usize::from(x[0] > 0.5 || x[0] < -2.0);
            Ok(Some(rosenbrock(x)))
        });
        let peak = peak.unwrap().unwrap();
        assert_eq!(outside, 0);
        assert!((peak.x[0] - 0.5).abs() < 1e-6 && (peak.x[1] - 0.25).abs() < 1e-5, "{peak:?}");
    }

    /// Curvatures of 1 to 1e4 in twenty variables.
    #[test]
    fn maximum_of_an_ill_conditioned_bowl_is_found() {
        let curvature = |i: usize| 10f64.powf(4.0 * i as f64 / 19.0);
        let bowl = |x: &[f64]| {
            let value = -0.5 * x.iter().enumerate().map(|(i, x)| curvature(i) * (x - 1.0).powi(2)).sum::<f64>();
            (value, x.iter().enumerate().map(|(i, x)| -curvature(i) * (x - 1.0)).collect())
        };
        let peak = maximise(&[0.0; 20], &[FREE; 20], LIMITS, |x| Ok(Some(bowl(x)))).unwrap().unwrap();
        assert!(bowl(&peak.x).0 > -1e-6, "{peak:?}");
    }

    /// log x - x has no value at negative x.
    #[test]
    fn points_without_a_value_are_avoided() {
        let log = |x: &[f64]| Ok((x[0] > 0.0).then(|| (x[0].ln() - x[0], vec![1.0 / x[0] - 1.0])));
        let peak = maximise(&[0.01], &[FREE], Limits { step: 100.0, ..LIMITS }, log).unwrap().unwrap();
        assert!((peak.x[0] - 1.0).abs() < 1e-5, "{peak:?}");
        assert!(maximise(&[-1.0], &[FREE], LIMITS, log).unwrap().is_none());
    }

    /// Steps on a function, scaled by ten, save calls on ten times the function.
    #[test]
    fn known_curvature_saves_calls() {
        let bowl = |height: f64| {
            move |x: &[f64]| {
                let parts = x.iter().enumerate().map(|(i, x)| (height * 10f64.powi(i as i32), x - 1.0));
                let value: f64 = parts.clone().map(|(c, x)| -0.5 * c * x * x - 0.25 * c * x.powi(4)).sum();
                Ok(Some((value, parts.map(|(c, x)| -c * x - c * x.powi(3)).collect())))
            }
        };
        let limits = Limits { tolerance: 1e-8, patience: 2, ..LIMITS };
        let mut steps = Steps::default();
        let low = maximise_with(&[0.0; 4], &[FREE; 4], limits, &mut steps, bowl(1.0)).unwrap().unwrap();
        let start: Vec<f64> = low.x.iter().map(|x| x + 0.05).collect();
        let fresh = maximise(&start, &[FREE; 4], limits, bowl(10.0)).unwrap().unwrap();
        let known = maximise_with(&start, &[FREE; 4], limits, &mut steps.times(10.0), bowl(10.0)).unwrap().unwrap();
        let value = bowl(10.0)(&known.x).unwrap().unwrap().0;
        assert!(value > -1e-6 && known.evaluations < fresh.evaluations, "{known:?} {fresh:?}");
    }

    #[test]
    fn search_stops_at_the_evaluation_limit_and_at_a_zero_gradient() {
        let mut calls = 0;
        let rising = |x: &[f64]| {
            calls += 1;
            Ok(Some((x[0], vec![1.0])))
        };
        let peak = maximise(&[0.0], &[FREE], Limits { evaluations: 30, ..LIMITS }, rising).unwrap().unwrap();
        assert_eq!((peak.evaluations, calls), (30, 30));
        assert!(peak.x[0] > 10.0);
        let flat = maximise(&[0.0], &[FREE], LIMITS, |_| Ok(Some((1.0, vec![0.0])))).unwrap().unwrap();
        assert_eq!(flat.evaluations, 1);
    }

    #[test]
    fn errors_of_the_function_are_returned() {
        let error = maximise(&[0.0], &[FREE], LIMITS, |_| Err(crate::Error::Interrupted));
        assert_eq!(error.unwrap_err(), crate::Error::Interrupted);
    }
}
