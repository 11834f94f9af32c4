//! Sparsity, cross-validation, calibration, and leave-one-out.

use std::ops::ControlFlow;

use crate::support::close;
use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Returns rows, noisy targets of a curved surface, and classes by their sign.
fn data(seed: u64, rows: usize, signal: f64) -> (Array2<f64>, Array1<f64>, Vec<usize>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 2), || random.random_range(-2.0..2.0));
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let t = x.map_axis(Axis(1), |r| signal * (f64::sin(2.0 * r[0]) + f64::cos(3.0 * r[1])) + 0.3 * normal());
    let labels = t.iter().map(|t| usize::from(*t + 0.5 * normal() > 0.0)).collect();
    (x, t, labels)
}

fn rbf(gamma: f64) -> Rvm {
    Rvm { kernel: Rbf { gamma: gamma.into() }.into(), ..Rvm::tipping2001() }
}

fn classifier(gamma: f64) -> Rvm {
    Rvm { likelihood: Bernoulli::default().into(), ..rbf(gamma) }
}

fn hyper(model: &Model) -> Hyperparameters {
    Hyperparameters {
        relevance: model.relevance.clone(),
        alpha: model.alpha.clone(),
        intercept_alpha: model.intercept_alpha,
        noise_variance: model.noise_variance(),
        ..Hyperparameters::default()
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn each_kernel_gains_at_least_the_sparsity() {
    let (x, t, labels) = data(1, 120, 1.0);
    for (rvm, targets) in [(rbf(2.0), Targets::real(t.view())), (classifier(2.0), Targets::classes(&labels, 2))] {
        let mut vectors = vec![];
        for sparsity in [0.0, 1.0, 4.0, 1e6] {
            let own = Rvm { sparsity: sparsity.into(), ..rvm.clone() };
            let (model, report) = own.fit(x.view(), &targets).unwrap();
            assert_eq!(report.status, Status::Converged);
            report.trace.windows(2).for_each(|p| assert!(p[1].log_evidence >= p[0].log_evidence - 1e-6));
            // The reported value is the evidence itself. The maximised value is the evidence less the penalty.
            let evidence = |at: &Hyperparameters| own.evaluate(x.view(), &targets, at).unwrap().log_evidence;
            let whole = evidence(&hyper(&model));
            close("the evidence", &[model.log_evidence.unwrap()], &[whole], 1e-8);
            let last = report.trace.last().unwrap().log_evidence;
            close("what is maximised", &[last], &[whole - sparsity * model.relevance.len() as f64], 1e-8);
            for i in 0..model.relevance.len() {
                let mut without = hyper(&model);
                without.relevance.remove(i);
                without.alpha.remove(i);
                let loss = whole - evidence(&without);
                assert!(loss > sparsity - 0.01, "kernel {i} of {}: {loss} nats, sparsity {sparsity}", model.relevance.len());
            }
            vectors.push(model.relevance.len());
        }
        assert!(vectors[0] > vectors[1] && vectors[1] > vectors[2], "{vectors:?}");
        assert_eq!(vectors[3], 0, "nothing is worth that");
    }
}

#[test]
fn sparsity_applies_to_large_dictionaries() {
    let (x, t, _) = data(2, 1500, 1.0);
    let fit = |sparsity: f64| {
        let rvm = Rvm { sparsity: sparsity.into(), ..rbf(2.0) };
        rvm.fit(x.view(), &Targets::real(t.view())).unwrap()
    };
    let ((plain, _), (sparse, report)) = (fit(0.0), fit(3.0));
    assert!(report.candidates == 1500 && sparse.relevance.len() < plain.relevance.len());
    assert!(report.certificate.largest_gain.unwrap() < 1e-2, "{:?}", report.certificate);
}

#[test]
fn cross_validation_predicts_the_scores_of_new_rows() {
    let (x, t, labels) = data(3, 300, 1.0);
    let (new, new_t, new_labels) = data(4, 2000, 1.0);
    let (model, report) = Rvm { cv: Some(5), ..rbf(1.0) }.fit(x.view(), &Targets::real(t.view())).unwrap();
    // The fit to all rows equals the fit without cross-validation.
    assert_eq!(model, rbf(1.0).fit(x.view(), &Targets::real(t.view())).unwrap().0);
    let validation = report.validation.unwrap();
    assert_eq!((validation.folds, validation.rows, validation.shared_landmarks), (5, 300, false));
    let found = model.predict(new.view()).unwrap();
    let rmse = (&found.mean - &new_t).mapv(|r| r * r).mean().unwrap().sqrt();
    let nlpd = -found.log_density(new_t.view()).mean().unwrap();
    let scores = &validation.scores;
    assert!((scores.rmse.unwrap() / rmse - 1.0).abs() < 0.2, "{scores:?} {rmse}");
    assert!((scores.nlpd.unwrap() - nlpd).abs() < 0.2, "{scores:?} {nlpd}");
    assert!((0.85..1.0).contains(&scores.coverage.unwrap()) && scores.error_rate.is_none());

    let targets = Targets::classes(&labels, 2);
    let (model, report) = Rvm { cv: Some(10), ..classifier(1.0) }.fit(x.view(), &targets).unwrap();
    let scores = report.validation.unwrap().scores;
    let logs = model.predict_log_probability(new.view(), Moderation::Posterior).unwrap();
    let loss = -new_labels.iter().enumerate().map(|(n, k)| logs[[n, *k]]).sum::<f64>() / 2000.0;
    assert!((scores.log_loss.unwrap() - loss).abs() < 0.15, "{scores:?} {loss}");
    assert!(scores.error_rate.unwrap() < 0.3 && scores.rmse.is_none());
    // Several classes in one model.
    let kinds: Vec<usize> = t.iter().map(|t| if *t > 0.7 { 2 } else { usize::from(*t > -0.4) }).collect();
    let (_, report) = Rvm { cv: Some(3), ..classifier(1.0) }.fit(x.view(), &Targets::classes(&kinds, 3)).unwrap();
    assert!(report.validation.unwrap().scores.error_rate.unwrap() < 0.5);
}

#[test]
fn folds_share_landmarks_and_sums() {
    let (x, t, _) = data(5, 600, 1.0);
    let rvm = Rvm { cv: Some(4), dictionary: 60.into(), ..rbf(1.0) };
    let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
    let validation = report.validation.unwrap();
    assert!(validation.shared_landmarks);
    let (plain, _) = Rvm { cv: None, ..rvm }.fit(x.view(), &Targets::real(t.view())).unwrap();
    close("sums of folds add up", &[model.log_evidence.unwrap()], &[plain.log_evidence.unwrap()], 1e-8);
    assert_eq!(model.relevance, plain.relevance);
    assert!((0.28..0.36).contains(&validation.scores.rmse.unwrap()), "{validation:?}");
}

#[test]
fn chosen_sparsity_leaves_few_kernels_on_noise() {
    let (mut plain, mut chosen) = (0, 0);
    for seed in 0..6 {
        let (x, t, _) = data(10 + seed, 120, 0.0);
        let fit = |sparsity| Rvm { sparsity, ..rbf(5.0) }.fit(x.view(), &Targets::real(t.view())).unwrap();
        plain += fit(0.0.into()).0.relevance.len();
        let (model, report) = fit(Sparsity::Rule(SparsityRule::Cv));
        let validation = report.validation.unwrap();
        assert_eq!(validation.tried.len(), 7);
        assert!(validation.tried.iter().any(|trial| trial.sparsity == validation.sparsity));
        chosen += model.relevance.len();
    }
    assert!(plain >= 12, "the evidence alone keeps some: {plain}");
    assert!(chosen <= 6, "{chosen}");
}

#[test]
fn calibrated_variances_cover_new_targets() {
    // With many narrow kernels on few rows, the evidence alone is overconfident.
    let (x, t, _) = data(6, 200, 1.0);
    let (new, new_t, _) = data(7, 3000, 1.0);
    let fit = |calibrate| Rvm { calibrate, ..rbf(20.0) }.fit(x.view(), &Targets::real(t.view())).unwrap();
    let ((plain, _), (model, report)) = (fit(false), fit(true));
    let validation = report.validation.unwrap();
    let factor = validation.variance_factor.unwrap();
    assert!(factor > 1.2, "{factor}");
    let (a, b) = (plain.predict(new.view()).unwrap(), model.predict(new.view()).unwrap());
    assert_eq!(a.mean, b.mean);
    for (a, b) in a.variance().iter().zip(&b.variance()) {
        close("the variance", &[factor * a], &[*b], 1e-12);
    }
    let covered = |p: &Prediction| {
        let inside = |n: usize| (new_t[n] - p.mean[n]).abs() < 1.96 * p.std()[n];
        (0..3000).filter(|n| inside(*n)).count() as f64 / 3000.0
    };
    assert!(covered(&a) < 0.92, "{}", covered(&a));
    assert!((0.92..0.98).contains(&covered(&b)), "{}", covered(&b));
    assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
}

#[test]
fn left_out_predictions_equal_refits_with_fixed_precisions() {
    let (x, t, labels) = data(8, 80, 1.0);
    let c = Array1::from_shape_fn(80, |n| [1.0, 2.0, 0.5][n % 3]);
    let centres = Centres(x.select(Axis(0), &[3, 17, 40, 55, 60, 71]));
    let landmarks = Landmarks::Given(centres);
    for classes in [false, true] {
        let rvm = if classes { classifier(0.5) } else { rbf(0.5) };
        let rvm = Rvm { landmarks: landmarks.clone(), ..rvm };
        let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
        let targets = targets.with_weights(c.view());
        let (model, _) = rvm.fit(x.view(), &targets).unwrap();
        let found = model.leave_one_out(x.view(), &targets).unwrap();
        let left = found.prediction.as_ref().unwrap();
        let mut worst = 0.0f64;
        for n in 0..80 {
            let rest: Vec<usize> = (0..80).filter(|m| *m != n).collect();
            let (some, c) = (x.select(Axis(0), &rest), c.select(Axis(0), &rest));
            let (t, labels) = (t.select(Axis(0), &rest), rest.iter().map(|m| labels[*m]).collect::<Vec<_>>());
            let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
            let without = rvm.evaluate(some.view(), &targets.with_weights(c.view()), &hyper(&model)).unwrap().model;
            let row = x.select(Axis(0), &[n]);
            let expected = without.predict(row.view()).unwrap();
            if !classes {
                close("mean", &[left.mean[n]], &[expected.mean[0]], 1e-8);
                close("variance", &[left.model_variance[n]], &[expected.model_variance[0]], 1e-8);
            }
            let gap = (left.mean[n] - expected.mean[0]).abs() / (1.0 + expected.mean[0].abs());
            worst = worst.max(gap);
        }
        // The cavity of the Laplace approximation is close to a refit.
        assert!(worst < 0.05, "{worst}");
        let density = found.log_density.mean().unwrap();
        assert!(density < 0.0 && density > -1.5, "{density}");
    }
}

/// For several classes, counts and Student-t noise, the cavity is close to refits. For two classes under the softmax it
/// is that of the single function.
#[test]
fn left_out_predictions_of_other_likelihoods_are_near_refits() {
    let (x, t, _) = data(8, 80, 1.0);
    let c = Array1::from_shape_fn(80, |n| [1.0, 2.0, 0.5][n % 3]);
    let landmarks = Landmarks::Given(Centres(x.select(Axis(0), &[3, 17, 40, 55, 60, 71])));
    let exposure = Array1::from_shape_fn(80, |n| 1.0 + (n % 4) as f64);
    let counts = Array1::from_shape_fn(80, |n| (exposure[n] * (0.7 * t[n]).exp()).round());
    let mut outliers = x.column(0).mapv(|x| 3.0 * x.sin()) + &t * 0.3;
    outliers.iter_mut().step_by(13).for_each(|t| *t += 6.0);
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > -0.4) + usize::from(*t > 0.5)).collect();
    let two: Vec<usize> = labels.iter().map(|k| (*k).min(1)).collect();
    let of = |likelihood: Likelihood| Rvm { likelihood, landmarks: landmarks.clone(), ..rbf(0.5) };

    let pair = Targets::classes(&two, 2).with_weights(c.view());
    let (soft, logistic) = (of(Softmax::default().into()), of(Bernoulli::default().into()));
    let at = hyper(&logistic.fit(x.view(), &pair).unwrap().0);
    let twice = Hyperparameters {
        alpha: at.alpha.iter().map(|a| 2.0 * a).collect(),
        intercept_alpha: at.intercept_alpha.map(|a| 2.0 * a),
        ..at.clone()
    };
    let left = |rvm: &Rvm, at: &Hyperparameters| {
        rvm.evaluate(x.view(), &pair, at).unwrap().model.leave_one_out(x.view(), &pair).unwrap()
    };
    let (own, one) = (left(&soft, &twice), left(&logistic, &at));
    close("two classes", &own.log_density.to_vec(), &one.log_density.to_vec(), 1e-8);
    assert!(own.prediction.is_none() && one.prediction.is_some());

    let averaged = |rvm: &Rvm| Rvm { posterior: PosteriorRule::Averaged, ..rvm.clone() };
    let cases: [(Rvm, Targets); 5] = [
        (soft.clone(), Targets::classes(&labels, 3)),
        (averaged(&soft), Targets::classes(&labels, 3)),
        (averaged(&of(Poisson::default().into())), Targets::real(counts.view()).with_exposure(exposure.view())),
        (of(Poisson::default().into()), Targets::real(counts.view()).with_exposure(exposure.view())),
        (of(StudentT::default().into()), Targets::real(outliers.view())),
    ];
    for (rvm, targets) in cases {
        let name = rvm.likelihood.name();
        let (model, _) = rvm.fit(x.view(), &targets.with_weights(c.view())).unwrap();
        let found = model.leave_one_out(x.view(), &targets.with_weights(c.view())).unwrap();
        let seen = |model: &Model, n: usize| -> f64 {
            let row = x.select(Axis(0), &[n]);
            let (count, e) = (Array1::from_elem(1, counts[n]), Array1::from_elem(1, exposure[n]));
            match name {
                "softmax" => model.predict_log_probability(row.view(), Moderation::Posterior).unwrap()[[0, labels[n]]],
                "poisson" => model.predict(row.view()).unwrap().count_log_probability(count.view(), Some(e.view())).unwrap()[0],
                _ => {
                    let found = model.predict(row.view()).unwrap();
                    model.log_density(&found, Array1::from_elem(1, outliers[n]).view(), None).unwrap()[0]
                }
            }
        };
        let (mut worst, mut off, mut moved) = (0.0f64, 0.0, 0.0);
        for n in 0..80 {
            let rest: Vec<usize> = (0..80).filter(|m| *m != n).collect();
            let (some, c, e) = (x.select(Axis(0), &rest), c.select(Axis(0), &rest), exposure.select(Axis(0), &rest));
            let some_labels: Vec<usize> = rest.iter().map(|m| labels[*m]).collect();
            let (some_counts, some_t) = (counts.select(Axis(0), &rest), outliers.select(Axis(0), &rest));
            let targets = match name {
                "softmax" => Targets::classes(&some_labels, 3),
                "poisson" => Targets::real(some_counts.view()).with_exposure(e.view()),
                _ => Targets::real(some_t.view()),
            };
            // The degrees of freedom are fixed, too.
            let held = match rvm.likelihood {
                Likelihood::StudentT(_) => of(StudentT { noise_degrees: model.noise_degrees(), ..StudentT::default() }.into()),
                _ => rvm.clone(),
            };
            let at = Hyperparameters::of(&model);
            let without = held.evaluate(some.view(), &targets.with_weights(c.view()), &at).unwrap().model;
            let expected = seen(&without, n);
            worst = worst.max((found.log_density[n] - expected).abs() / (1.0 + expected.abs()));
            off += (found.log_density[n] - expected).abs();
            moved += (seen(&model, n) - expected).abs();
        }
        println!("{name}: off by {off}, at most {worst}, in-sample by {moved}");
        // If row weights depend on the residuals, leaving out one row changes the weights of others.
        let (most, share) = if name == "student_t" { (0.5, 0.7) } else { (0.02, 0.05) };
        assert!(worst < most && off < share * moved, "{name}: off by {off}, at most {worst}, in-sample by {moved}");
        if let Some(all) = &found.log_probability {
            assert!(all.outer_iter().all(|row| (row.mapv(f64::exp).sum() - 1.0).abs() < 1e-12));
        }
    }

    // With given noise of each row it is exact.
    let noise = Array1::from_shape_fn(80, |n| 0.02 + 0.1 * (n % 5) as f64);
    let known = Targets::real(t.view()).with_noise_variance(noise.view());
    let rvm = Rvm { landmarks: landmarks.clone(), ..rbf(0.5) };
    let (model, _) = rvm.fit(x.view(), &known).unwrap();
    let found = model.leave_one_out(x.view(), &known).unwrap();
    for n in [0, 7, 33, 79] {
        let rest: Vec<usize> = (0..80).filter(|m| *m != n).collect();
        let (some, t, v) = (x.select(Axis(0), &rest), t.select(Axis(0), &rest), noise.select(Axis(0), &rest));
        let targets = Targets::real(t.view()).with_noise_variance(v.view());
        let without = rvm.evaluate(some.view(), &targets, &Hyperparameters::of(&model)).unwrap().model;
        let expected = without.predict(x.select(Axis(0), &[n]).view()).unwrap();
        let left = found.prediction.as_ref().unwrap();
        close("mean", &[left.mean[n]], &[expected.mean[0]], 1e-7);
        close("variance", &[left.model_variance[n]], &[expected.model_variance[0]], 1e-7);
    }
    let error = model.leave_one_out(x.view(), &Targets::real(t.view())).unwrap_err().to_string();
    assert!(error.contains("noise variance for each row"), "{error}");
}

/// Probabilities of counts sum to one and have the predicted mean and variance. For a certain rate they are those of
/// the Poisson distribution.
#[test]
fn probabilities_of_counts_are_those_of_their_distribution() {
    for (mean, variance, e) in [(0.3, 0.4, 1.0), (-3.0, 2.0, 0.5), (3.0, 0.01, 2.0), (2.0, 0.0, 1.0), (-1.0, 1e-12, 3.0)] {
        const MOST: usize = 4000;
        let own = |rows: usize| Prediction {
            mean: Array1::from_elem(rows, mean),
            model_variance: Array1::from_elem(rows, variance),
            noise_variance: 0.0,
            noise_degrees: None,
        };
        let t = Array1::from_shape_fn(MOST, |t| t as f64);
        let exposure = Array1::from_elem(MOST, e);
        let p = own(MOST).count_log_probability(t.view(), Some(exposure.view())).unwrap().mapv(f64::exp);
        let counts = own(1).counts(Some(Array1::from_elem(1, e).view())).unwrap();
        close("sum", &[p.sum()], &[1.0], 1e-9);
        close("mean", &[(&p * &t).sum()], &[counts.mean[0]], 1e-6);
        let second = (&p * &t * &t).sum() - counts.mean[0].powi(2);
        close("variance", &[second], &[counts.variance()[0]], 1e-3);
    }
    let one = Prediction { mean: Array1::zeros(1), model_variance: Array1::ones(1), noise_variance: 0.0, noise_degrees: None };
    for bad in [-1.0, 0.5] {
        assert!(one.count_log_probability(Array1::from_elem(1, bad).view(), None).is_err());
    }
    assert!(one.count_log_probability(Array1::zeros(2).view(), None).is_err());
}

#[test]
fn stopped_cross_validation_leaves_a_model() {
    let (x, t, _) = data(9, 200, 1.0);
    let targets = Targets::real(t.view());
    let rvm = Rvm { sparsity: Sparsity::Rule(SparsityRule::Cv), calibrate: true, ..rbf(5.0) };
    let (_, whole) = rvm.fit(x.view(), &targets).unwrap();
    let first = rbf(5.0).fit(x.view(), &targets).unwrap().1.iterations;
    // A stop within the folds leaves the model of all rows.
    let mut calls = 0;
    let mut stop = |_: &Progress| {
        calls += 1;
        if calls > first + 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let (model, report) = rvm.fit_with(x.view(), &targets, &mut stop, &Interrupt::default()).unwrap();
    assert_eq!((report.status, model.status, report.validation), (Status::Stopped, Status::Stopped, None));
    assert!(whole.validation.is_some());
    let (model, report) = Rvm { time_limit: Some(1e-6), ..rvm }.fit(x.view(), &targets).unwrap();
    assert_eq!((report.status, report.validation), (Status::TimeLimit, None));
    assert!(model.predict(x.view()).is_ok());
}

#[test]
fn unsupported_validation_is_rejected() {
    let (x, t, labels) = data(12, 40, 1.0);
    let (real, classes) = (Targets::real(t.view()), Targets::classes(&labels, 2));
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(Rvm { sparsity: bad.into(), ..rbf(1.0) }.check()), "sparsity");
    }
    for scheme in ["mackay", "em", "variational"] {
        let inference = Inference::from_name(scheme).unwrap();
        assert_eq!(refused(Rvm { sparsity: 1.0.into(), inference, ..rbf(1.0) }.check()), "sparsity");
    }
    for text in ["-1", "nan", "inf", "many"] {
        assert_eq!(refused(text.parse::<Sparsity>()), "sparsity");
    }
    assert_eq!("cv".parse::<Sparsity>().unwrap(), Sparsity::Rule(SparsityRule::Cv));
    assert_eq!(refused(Rvm { cv: Some(1), ..rbf(1.0) }.check()), "cv");
    assert_eq!(refused(Rvm { cv: Some(41), ..rbf(1.0) }.fit(x.view(), &real)), "cv");
    let fewer = labels.iter().filter(|k| **k == 0).count().min(labels.iter().filter(|k| **k == 1).count());
    assert_eq!(refused(Rvm { cv: Some(fewer + 1), ..classifier(1.0) }.fit(x.view(), &classes)), "cv");
    assert_eq!(refused(Rvm { calibrate: true, ..classifier(1.0) }.check()), "calibrate");
    assert_eq!(refused(Rvm { cv: Some(5), centres: CentreRule::Learned, ..rbf(1.0) }.check()), "centres");
    let kinds: Vec<usize> = (0..40).map(|n| n % 3).collect();
    let committee = Rvm { cv: Some(3), multi_class: MultiClass::OneVsRest, ..classifier(1.0) };
    assert_eq!(refused(committee.fit(x.view(), &Targets::classes(&kinds, 3))), "cv");
    let mut sums = Statistics::new(&rbf(1.0).kernel, x.view()).unwrap();
    sums.update(x.view(), &real).unwrap();
    // The error names the parameter that requires cross-validation.
    assert_eq!(refused(Rvm { calibrate: true, ..rbf(1.0) }.fit_statistics(&sums)), "calibrate");
    assert_eq!(refused(Rvm { calibrate: true, cv: Some(3), ..rbf(1.0) }.fit_statistics(&sums)), "cv");
}

/// Held-out rows are scored with their given noise. If it is equal for all rows, the scores are those of a fixed noise
/// variance, from rows and from sums.
#[test]
fn held_out_rows_are_scored_with_their_known_noise() {
    let (x, t, _) = data(21, 200, 1.0);
    let v = Array1::from_elem(200, 0.09);
    for dictionary in [Dictionary::default(), 60.into()] {
        let own = Rvm { cv: Some(4), dictionary, ..rbf(1.0) };
        let given = Rvm { likelihood: Gaussian { noise_variance: Some(0.09) }.into(), ..own.clone() };
        let (_, expected) = given.fit(x.view(), &Targets::real(t.view())).unwrap();
        let known = Targets::real(t.view()).with_noise_variance(v.view());
        let (_, report) = own.fit(x.view(), &known).unwrap();
        let scores = |report: &Report| {
            let own = report.validation.as_ref().unwrap().scores.clone();
            [own.rmse, own.mae, own.nlpd, own.coverage].map(Option::unwrap)
        };
        close("scores", &scores(&report), &scores(&expected), 1e-7);
        assert_eq!(report.validation.unwrap().shared_landmarks, dictionary == 60.into());
    }
    // With uneven noise, intervals are correct for small and for large noise.
    let mut random = rand_pcg::Pcg64::seed_from_u64(22);
    let v: Array1<f64> = Array1::from_shape_fn(200, |n| if n % 2 == 0 { 0.01 } else { 1.0 });
    let x = x.select(Axis(1), &[0]);
    let t: Array1<f64> = x.column(0).mapv(|x| f64::sin(2.0 * x))
        + v.mapv(|v| v.sqrt() * Distribution::<f64>::sample(&StandardNormal, &mut random));
    let known = Targets::real(t.view()).with_noise_variance(v.view());
    let own = Rvm { sparsity: Sparsity::Rule(SparsityRule::Cv), ..rbf(1.0) };
    let found = own.fit(x.view(), &known).unwrap().1.validation.unwrap().scores;
    let alike = own.fit(x.view(), &Targets::real(t.view())).unwrap().1.validation.unwrap().scores;
    assert!(found.nlpd.unwrap() < alike.nlpd.unwrap() - 0.3, "{found:?} {alike:?}");
    assert!((0.85..0.99).contains(&found.coverage.unwrap()), "{found:?}");
    assert_eq!(refused(Rvm { calibrate: true, ..own }.fit(x.view(), &known)), "calibrate");
}

/// Counts are scored by their probability, given their exposures. The scores agree with those computed by hand from the
/// folds.
#[test]
fn counts_are_scored_by_their_probability() {
    let (x, t, _) = data(31, 30, 1.0);
    let exposure = Array1::from_shape_fn(30, |n| 1.0 + (n % 4) as f64);
    let counts = Array1::from_shape_fn(30, |n| (exposure[n] * (1.0 + t[n]).exp()).round());
    let some = Targets::real(counts.view()).with_exposure(exposure.view());
    let own = Rvm { cv: Some(30), likelihood: Poisson::default().into(), ..rbf(0.7) };
    let scores = own.fit(x.view(), &some).unwrap().1.validation.unwrap().scores;
    // With one fold per row the folds are unique.
    let (mut loss, mut square) = (0.0, 0.0);
    for n in 0..30 {
        let rest: Vec<usize> = (0..30).filter(|m| *m != n).collect();
        let (c, e) = (counts.select(Axis(0), &rest), exposure.select(Axis(0), &rest));
        let plain = Rvm { cv: None, ..own.clone() };
        let targets = Targets::real(c.view()).with_exposure(e.view());
        let (model, _) = plain.fit(x.select(Axis(0), &rest).view(), &targets).unwrap();
        let found = model.predict(x.select(Axis(0), &[n]).view()).unwrap();
        let (t, e) = (counts.select(Axis(0), &[n]), exposure.select(Axis(0), &[n]));
        loss -= found.count_log_probability(t.view(), Some(e.view())).unwrap()[0] / 30.0;
        square += (found.counts(Some(e.view())).unwrap().mean[0] - t[0]).powi(2) / 30.0;
    }
    close("NLPD", &[scores.nlpd.unwrap()], &[loss], 1e-6);
    close("RMSE", &[scores.rmse.unwrap()], &[square.sqrt()], 1e-6);
    assert!(scores.coverage.is_none());
    let whole = Rvm { cv: Some(5), sparsity: Sparsity::Rule(SparsityRule::Cv), ..own };
    let (model, report) = whole.fit(x.view(), &some).unwrap();
    assert!(report.validation.unwrap().tried.len() > 1 && model.relevance.len() < 30);
}

/// Under Student-t noise held-out rows are scored by its density, which outliers do not dominate.
#[test]
fn student_t_noise_is_scored_by_its_density() {
    let (x, mut t, _) = data(23, 150, 1.0);
    (0..150).step_by(11).for_each(|n| t[n] += if n % 2 == 0 { 15.0 } else { -15.0 });
    let targets = Targets::real(t.view());
    for dictionary in [Dictionary::default(), 50.into()] {
        let own = Rvm { cv: Some(3), dictionary, likelihood: StudentT::default().into(), ..rbf(1.0) };
        let robust = own.fit(x.view(), &targets).unwrap().1.validation.unwrap();
        let plain = Rvm { likelihood: Gaussian::default().into(), ..own };
        let plain = plain.fit(x.view(), &targets).unwrap().1.validation.unwrap();
        assert!(!robust.shared_landmarks, "what rows count for differs from fold to fold");
        let (robust, plain) = (robust.scores, plain.scores);
        assert!(robust.nlpd.unwrap() < plain.nlpd.unwrap() - 0.5, "{robust:?} {plain:?}");
        assert!(robust.mae.unwrap() < plain.mae.unwrap());
        assert!((0.9..0.99).contains(&robust.coverage.unwrap()), "{robust:?}");
    }
}
