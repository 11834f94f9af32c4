//! Predictions of each training row by the model without that row, at fixed precisions.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::process_left_out::{MOST_OWN, process_left_out};
use super::{Model, Moderation, Prediction, Variance};
use crate::error::{Error, Result, require};
use crate::likelihood::{Contrasts, Likelihood, LikelihoodFunction, Softmax, Working, moderate, normalise};
use crate::linalg::{self, Cholesky};
use crate::targets::{Given, Targets, Values, check_labels};

/// Predictions of rows that are left out one at a time, (M60). They are exact for Gaussian noise, also under a process
/// prior. Other likelihoods use the cavity of Laplace's approximation, and Student-t noise uses the row weights.
///
/// The precisions are fixed, and were learned from all rows. If a large share of the rows are relevance vectors, the
/// predictions are far too optimistic. Cross-validation repeats the search and has no such bias: see
/// [`Rvm::cv`](crate::Rvm::cv).
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Predictions of the target of each row without that row. For a classifier of two classes they are those of the
    /// latent function, for counts those of the log rate. `None` under the softmax.
    pub prediction: Option<Prediction>,
    /// Moderated log probabilities of all classes without the row, [N, K]; `None` unless the model is a classifier.
    pub log_probability: Option<Array2<f64>>,
    /// Log density of the target of each row without that row, `[N]`, in nats. For classes and counts it is a log
    /// probability.
    pub log_density: Array1<f64>,
}

/// Predicts each training row of `x`, `[N, D]`, from the posterior without that row.
pub(super) fn leave_one_out(model: &Model, x: ArrayView2<f64>, targets: &Targets) -> Result<LeaveOneOut> {
    targets.check_rows(x)?;
    let own = model.likelihood.as_ref().ok_or(Error::NoPosterior)?;
    let expected = "ard, because rows of this classifier cannot be left out one at a time; use cross-validation (cv)";
    require(model.labels.is_none(), || "weight_prior".into(), "process", expected)?;
    let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.nrows()]);
    if model.outputs() > 1 && own.is_for_classes() {
        return classes_left_out(model, x, targets, &weights);
    }
    model.check_single()?;
    let given = targets.checked_given()?;
    let likelihood = own.as_dyn();
    if let Some(kind) = targets.given.filter(|kind| !likelihood.uses(kind)) {
        let (name, serves) = (kind.name(), kind.serves());
        return Err(Error::Targets(format!("{name} per row is for {serves}")));
    }
    let noise = noise_of(model, targets, &given)?;
    let exposure = given.filter(|_| matches!(targets.given, Some(Given::Exposure(_))));
    let targets = likelihood.targets(targets.values)?;
    let found = model.predict_with(x, Variance::Posterior)?;
    let factor = model.variance_factor();
    // For counts the function is the log of the rate times the exposure of the row.
    let log_exposure = |n: usize| exposure.as_ref().map_or(0.0, |e| e[n].ln());
    let f: Vec<f64> = found.mean.iter().enumerate().map(|(n, f)| f + log_exposure(n)).collect();
    let y = targets.clone();
    let Working { residual, mut curvature, .. } = likelihood.working(&y, &f);
    let (mut mean, mut variance) = (found.mean.clone(), found.model_variance.clone() / factor);
    if model.is_averaged() {
        for (n, own) in curvature.iter_mut().enumerate() {
            likelihood.mean_curvature(&[f[n]], &[variance[n]], std::slice::from_mut(own));
        }
    }
    let heavy = found.noise_degrees.filter(|_| matches!(own, Likelihood::StudentT(_)));
    // The factor of the precision of a row among rows with Gaussian noise.
    let row_factor = |n: usize, variance: f64, noise: f64| {
        heavy.map_or(1.0, |degrees| (degrees + 1.0) / (degrees + ((y[n] - f[n]).powi(2) + variance) / noise))
    };
    if model.process.is_some() {
        // Counts have the Gaussian targets of the expansion at the mode, (M96).
        let of_count = |n: usize| (mean[n] + residual[n] / curvature[n], weights[n] * curvature[n]);
        let of_noise = |n: usize, noise: f64| (y[n], weights[n] / noise * row_factor(n, variance[n], noise));
        let of_row = |n: usize| noise.as_ref().map_or_else(|| of_count(n), |noise| of_noise(n, noise[n]));
        let (t, precisions): (Vec<f64>, Vec<f64>) = (0..y.len()).map(of_row).unzip();
        (mean, variance) = process_left_out(model, x, &found, &t, &precisions)?;
    }
    let precisions = if model.process.is_some() { 0..0 } else { 0..y.len() };
    for n in precisions {
        // Values are in units of the noise deviation, if there is noise.
        let beta = noise.as_ref().map_or(1.0, |noise| 1.0 / noise[n]);
        let (mut slope, mut own) = (beta * weights[n] * residual[n], beta * weights[n] * curvature[n]);
        if heavy.is_some() {
            own = beta * weights[n] * row_factor(n, variance[n], 1.0 / beta);
            slope = own * (y[n] - f[n]);
        }
        variance[n] /= 1.0 - (own * variance[n]).min(MOST_OWN);
        mean[n] -= variance[n] * slope;
    }
    let prediction = Prediction { mean, model_variance: variance * factor, ..found };
    if own.is_for_classes() {
        let log = |f: f64| f.min(0.0) - (-f.abs()).exp().ln_1p();
        let odds = prediction.log_odds(Moderation::Posterior);
        let all = Array2::from_shape_fn((odds.len(), 2), |(n, k)| log(if k == 0 { -odds[n] } else { odds[n] }));
        let log_density = y.iter().enumerate().map(|(n, y)| all[[n, usize::from(*y > 0.5)]]).collect();
        return Ok(LeaveOneOut { prediction: Some(prediction), log_probability: Some(all), log_density });
    }
    let targets = Array1::from_vec(targets);
    let log_density = match noise {
        None => prediction.count_log_probability(targets.view(), exposure.map(Array1::from_vec).as_ref().map(|e| e.view()))?,
        Some(noise) if model.noise_variance() == Some(0.0) => {
            model.log_density(&prediction, targets.view(), Some(Array1::from_vec(noise).view()))?
        }
        Some(_) => model.log_density(&prediction, targets.view(), None)?,
    };
    Ok(LeaveOneOut { prediction: Some(prediction), log_probability: None, log_density })
}

/// Returns the noise variance of each row, `[N]`; `None` if the model has no noise. `given` are the further data of the rows.
fn noise_of(model: &Model, targets: &Targets, given: &Option<Vec<f64>>) -> Result<Option<Vec<f64>>> {
    Ok(match (model.noise_variance(), &targets.given, given) {
        (Some(0.0), Some(Given::Noise(_)), Some(each)) => Some(each.clone()),
        (Some(0.0), ..) => {
            let problem = "the model was fitted with a noise variance for each row: leaving rows out requires these variances";
            return Err(Error::Targets(problem.into()));
        }
        (noise, ..) => noise.map(|v| vec![v; targets.len()]),
    })
}

/// Predicts the class of each row of `x`, `[N, D]`, from the posterior without that row. Let C, `[K, K]`, be the
/// covariance of the functions at a row, and B = S S' its curvature. For diag(y) - y y', S is diag(sqrt y) - y /
/// sqrt(y)'. The covariance of the cavity is inv(inv(C) - c B) = C + c C S inv(I - c S'C S) S'C.
fn classes_left_out(model: &Model, x: ArrayView2<f64>, targets: &Targets, weights: &[f64]) -> Result<LeaveOneOut> {
    let functions = model.predict_functions(x)?;
    let classes = functions.mean.ncols();
    let labels = match targets.values {
        Values::Classes { labels, count } if count <= classes => labels,
        Values::Classes { count, .. } => {
            let expected = format!("class labels: found {count} classes, expected {classes}, as the model has");
            return Err(Error::Targets(expected));
        }
        _ => return Err(Error::Targets("the softmax likelihood needs class labels, found real targets".into())),
    };
    check_labels(labels, classes, 0)?;
    let mut all = functions.mean.clone();
    for (n, ((mut f, c), label)) in all.outer_iter_mut().zip(functions.covariance.outer_iter()).zip(labels).enumerate() {
        let mut y = f.to_vec();
        normalise(&mut y);
        y.iter_mut().for_each(|y| *y = y.exp());
        let root: Vec<f64> = y.iter().map(|y| y.sqrt()).collect();
        let s = match model.is_averaged() {
            true => root_of_mean(f.as_slice().expect("rows are contiguous"), c)?,
            false => Array2::from_shape_fn((classes, classes), |(k, l)| f64::from(k == l) * root[k] - y[k] * root[l]),
        };
        let cs = c.dot(&s);
        let own = s.t().dot(&cs) * weights[n];
        // The remaining precision must be positive in every direction. If it is not, less than the full curvature is
        // removed.
        let without = |share: f64| Cholesky::new(Array2::eye(own.nrows()) - &own * share, 1.0);
        let factor = without(1.0).or_else(|_| without(MOST_OWN / own.diag().sum()))?;
        let half = factor.inverse().dot(&cs.t());
        let covariance = &c + &(half.t().dot(&half) * weights[n]);
        let slope: Array1<f64> = y.iter().enumerate().map(|(k, y)| weights[n] * (f64::from(k == *label) - y)).collect();
        f -= &covariance.dot(&slope);
        let covariance = covariance.as_standard_layout();
        moderate(f.as_slice_mut().expect("rows are contiguous"), covariance.as_slice().expect("it is in standard layout"));
    }
    let log_density = all.axis_iter(Axis(0)).zip(labels).map(|(row, label)| row[*label]).collect();
    Ok(LeaveOneOut { prediction: None, log_probability: Some(all), log_density })
}

/// Returns S, [K, K - 1], of the mean curvature of a row with class functions `f`, `[K]`, and covariance `c`, [K, K].
fn root_of_mean(f: &[f64], c: ArrayView2<f64>) -> Result<Array2<f64>> {
    let contrasts = Contrasts::new(f.len());
    let mut pairs = vec![0.0; f.len() * (f.len() - 1) / 2];
    let covariance = c.as_standard_layout();
    Softmax {}.mean_curvature(f, covariance.as_slice().expect("it is in standard layout"), &mut pairs);
    let pairs: Vec<Array2<f64>> = pairs.into_iter().map(|w| Array2::from_elem((1, 1), w)).collect();
    let mut curvature = contrasts.curvature(&pairs);
    linalg::mirror(&mut curvature);
    let scale = curvature.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    if scale < f64::MIN_POSITIVE {
        return Ok(Array2::zeros((f.len(), contrasts.count())));
    }
    let lower = Cholesky::new(curvature / scale, 1.0)?.lower * scale.sqrt();
    let between = Array2::from_shape_fn((f.len(), contrasts.count()), |(k, r)| contrasts.at(k, r));
    Ok(between.dot(&lower))
}
