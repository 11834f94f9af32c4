//! Laws that hold for all kernels, likelihoods and inference schemes.

use crate::support::close;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson, StandardNormal};
use relvec::*;

/// A random problem: rows, real targets, counts, and two or three classes, all from one function.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    counts: Array1<f64>,
    labels: Vec<usize>,
    kinds: Vec<usize>,
}

fn data(seed: u64, rows: usize, features: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, features), |_| random.random_range(-2.0..2.0));
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let f = x.map_axis(Axis(1), |r| f64::sin(1.5 * r[0]) + 0.5 * r[features - 1]);
    let t = f.mapv(|f| 3.0 + f + 0.2 * normal());
    let labels = f.iter().map(|f| usize::from(*f + 0.5 * normal() > 0.0)).collect();
    let kinds = f.iter().map(|f| ((f + 0.2 * normal() + 0.6) / 0.6).clamp(0.0, 2.0) as usize).collect();
    let counts = f.mapv(|f| Poisson::new((1.0 + f).exp()).expect("a rate").sample(&mut random));
    Data { x, t, counts, labels, kinds }
}

fn likelihoods() -> Vec<Likelihood> {
    let fixed = Gaussian { noise_variance: Some(0.04) };
    let all = vec![
        Gaussian::default().into(),
        fixed.into(),
        Bernoulli::default().into(),
        Softmax::default().into(),
        relvec::Poisson::default().into(),
        StudentT { noise_degrees: Some(4.0), noise_variance: None }.into(),
        StudentT { noise_degrees: None, noise_variance: Some(0.03) }.into(),
    ];
    for name in Likelihood::NAMES {
        assert!(all.iter().any(|l: &Likelihood| l.name() == *name), "no test of the likelihood {name}");
    }
    all
}

impl Data {
    fn targets(&self, likelihood: &Likelihood) -> Targets<'_> {
        match likelihood {
            Likelihood::Gaussian(_) | Likelihood::StudentT(_) => Targets::real(self.t.view()),
            Likelihood::Poisson(_) => Targets::real(self.counts.view()),
            Likelihood::Bernoulli(_) => Targets::classes(&self.labels, 2),
            Likelihood::Softmax(_) => Targets::classes(&self.kinds, 3),
        }
    }
}

/// Returns true if a scheme supports a likelihood.
fn suits(scheme: &str, likelihood: &Likelihood) -> bool {
    scheme != "variational" || matches!(likelihood.name(), "gaussian" | "bernoulli")
}

/// Returns the predictions of a model: means and variances, or log probabilities for more than two classes.
fn said(model: &Model, x: ArrayView2<f64>) -> Vec<f64> {
    if model.outputs() > 1 {
        return model.predict_log_probability(x, Moderation::Posterior).unwrap().iter().copied().collect();
    }
    let prediction = model.predict(x).unwrap();
    assert!(prediction.model_variance.iter().all(|v| *v >= 0.0));
    prediction.mean.iter().chain(&prediction.model_variance).copied().collect()
}

fn every_kernel_likelihood_and_scheme(mut check: impl FnMut(&Rvm, &Data, &Targets)) {
    for kernel in Kernel::NAMES {
        for likelihood in likelihoods() {
            for inference in Inference::NAMES.iter().filter(|name| suits(name, &likelihood)) {
                let rvm = Rvm {
                    kernel: Kernel::from_name(kernel).unwrap(),
                    likelihood: likelihood.clone(),
                    inference: Inference::from_name(inference).unwrap(),
                    max_iterations: 60,
                    ..Rvm::tipping2001()
                };
                // The linear spline is positive definite for positive inputs.
                let mut data = data(1, 60, 2);
                data.x += 2.0;
                check(&rvm, &data, &data.targets(&likelihood));
            }
        }
    }
}

fn label(rvm: &Rvm) -> String {
    format!("{} {:?} {}", rvm.kernel.name(), rvm.likelihood, rvm.inference.name())
}

#[test]
fn the_evidence_never_falls_and_models_round_trip() {
    every_kernel_likelihood_and_scheme(|rvm, data, targets| {
        let (model, report) = rvm.fit(data.x.view(), targets).unwrap_or_else(|e| panic!("{}: {e}", label(rvm)));
        for (k, pair) in report.trace.windows(2).enumerate() {
            let (before, after) = (pair[0].log_evidence, pair[1].log_evidence);
            assert!(after >= before - 1e-6 - 1e-9 * before.abs(), "{}: {before} to {after} in step {k}", label(rvm));
        }
        assert!(model.log_evidence.unwrap().is_finite());
        let text = model.to_json().unwrap();
        let again = Model::from_json(&text).unwrap();
        assert_eq!(again, model, "{}", label(rvm));
        assert_eq!(again.to_json().unwrap(), text);
        let (one, other) = (said(&model, data.x.view()), said(&again, data.x.view()));
        assert_eq!(one, other);
        assert!(one.iter().all(|v| v.is_finite() && v.abs() <= 1e9));
    });
}

/// The law also holds for several hundred basis functions, and the search reaches almost the gain of MacKay's fixed
/// point.
#[test]
fn the_evidence_of_large_models_never_falls() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(11);
    let x = Array2::from_shape_fn((600, 2), |_| random.random_range(-3.0..3.0));
    let bump = |r: ArrayView1<f64>, k: f64| (5.0 * (r[0] + f64::sin(k)) * f64::cos(k) + 7.0 * r[1] * f64::sin(2.0 * k)).sin();
    let t: Array1<f64> = x.outer_iter().map(|r| (1..30).map(|k| bump(r, f64::from(k))).sum::<f64>()).collect();
    let fit = |inference: Inference| {
        let rvm = Rvm { kernel: Rbf { gamma: 12.0.into() }.into(), inference, ..Rvm::tipping2001() };
        rvm.fit(x.view(), &Targets::real(t.view())).expect("a fit")
    };
    let (model, report) = fit(Search::default().into());
    let (other, _) = fit(MacKay::default().into());
    assert!(model.relevance.len() > 250, "{} vectors are no large model", model.relevance.len());
    assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence), "the trace falls");
    let (found, fixed) = (model.log_evidence.unwrap(), other.log_evidence.unwrap());
    assert!(found > fixed - 12.0, "{found}, by the fixed point {fixed}");
}

#[test]
fn models_do_not_depend_on_threads() {
    for likelihood in likelihoods() {
        for inference in Inference::NAMES.iter().filter(|name| suits(name, &likelihood)) {
            let data = data(2, if likelihood.name() == "softmax" { 250 } else { 600 }, 3);
            let rvm = |threads| Rvm {
                likelihood: likelihood.clone(),
                inference: Inference::from_name(inference).unwrap(),
                threads: Some(threads),
                max_iterations: 5,
                ..Rvm::tipping2001()
            };
            let fit = |threads| rvm(threads).fit(data.x.view(), &data.targets(&likelihood)).unwrap().0;
            let (one, two) = (fit(1).to_json().unwrap(), fit(2).to_json().unwrap());
            assert!(one == two, "{}", label(&rvm(1)));
        }
    }
}

/// Returns the hyperparameters of a model, which tests then change.
fn hyper(model: &Model) -> Hyperparameters {
    Hyperparameters {
        relevance: model.relevance.clone(),
        alpha: model.alpha.clone(),
        intercept_alpha: model.intercept_alpha,
        noise_variance: model.noise_variance(),
        ..Hyperparameters::default()
    }
}

fn some_hyperparameters() -> Hyperparameters {
    Hyperparameters {
        relevance: vec![3, 11, 17, 25, 38],
        alpha: vec![0.5, 2.0, 0.1, 30.0, 1.0],
        intercept_alpha: Some(0.4),
        noise_variance: Some(0.05),
        ..Hyperparameters::default()
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for name in Kernel::NAMES {
        // For rows far from each other, a period changes the phase more.
        let step: f64 = if *name == "periodic" { 1e-4 } else { 1e-3 };
        for likelihood in likelihoods() {
            let mut data = data(3, 50, 2);
            data.x += 2.0;
            let targets = data.targets(&likelihood);
            let variance = Scaling::of(data.x.view(), None).scale.iter().map(|s| s * s).sum::<f64>() / 2.0;
            let kernel = Kernel::from_name(name).unwrap().resolve(&DataScale { features: 2, variance }).unwrap();
            let rvm = Rvm { kernel: kernel.clone(), likelihood: likelihood.clone(), threads: Some(1), ..Rvm::tipping2001() };
            let at = some_hyperparameters();
            let evidence = |rvm: &Rvm, at: &Hyperparameters| rvm.evaluate(data.x.view(), &targets, at).unwrap().log_evidence;
            let got = rvm.evaluate(data.x.view(), &targets, &at).unwrap();
            let difference = |up: f64, down: f64| (up - down) / (2.0 * step);
            let check = |what: &str, got: f64, expected: f64| {
                assert!((got - expected).abs() < 2e-5 * (1.0 + expected.abs()), "{} {what}: {got} {expected}", label(&rvm));
            };
            for k in 0..at.alpha.len() {
                let moved = |factor: f64| {
                    let mut at = at.clone();
                    at.alpha[k] *= factor;
                    evidence(&rvm, &at)
                };
                check("alpha", got.gradient_log_alpha[k + 1], difference(moved(step.exp()), moved((-step).exp())));
            }
            let bias = |factor: f64| evidence(&rvm, &Hyperparameters { intercept_alpha: Some(0.4 * factor), ..at.clone() });
            check("bias", got.gradient_log_alpha[0], difference(bias(step.exp()), bias((-step).exp())));
            let learns_noise = match &likelihood {
                Likelihood::Gaussian(own) => own.noise_variance.is_none(),
                Likelihood::StudentT(own) => own.noise_variance.is_none(),
                _ => false,
            };
            if learns_noise {
                let noise = |factor: f64| evidence(&rvm, &Hyperparameters { noise_variance: Some(0.05 / factor), ..at.clone() });
                check("noise", got.gradient_log_noise.unwrap(), difference(noise(step.exp()), noise((-step).exp())));
            }
            let values: Vec<f64> = kernel.parameters().iter().map(|p| p.1).collect();
            for k in 0..values.len() {
                let moved = |factor: f64| {
                    let mut values = values.clone();
                    values[k] *= factor;
                    evidence(&Rvm { kernel: kernel.with_parameters(&values), ..rvm.clone() }, &at)
                };
                check("kernel", got.gradient_log_kernel[k], difference(moved(step.exp()), moved((-step).exp())));
            }
        }
    }
}

/// For every column the predicted gain equals the true change of the evidence, if the Hessian is constant. Otherwise
/// the gain is an estimate, which the search verifies.
#[test]
fn predicted_gain_equals_the_true_change() {
    let data = data(4, 50, 2);
    let targets = Targets::real(data.t.view());
    for noise_variance in [None, Some(0.05)] {
        let rvm = Rvm { likelihood: Gaussian { noise_variance }.into(), threads: Some(1), ..Rvm::tipping2001() };
        let at = some_hyperparameters();
        let before = rvm.evaluate(data.x.view(), &targets, &at).unwrap();
        let mut kinds = [0; 3];
        for (j, action) in before.actions.iter().enumerate() {
            let mut moved = at.clone();
            let place = j.checked_sub(1).and_then(|row| at.relevance.iter().position(|r| *r == row));
            match (action.kind, j) {
                (ActionKind::None, _) => continue,
                (ActionKind::Delete, 0) => moved.intercept_alpha = None,
                (_, 0) => moved.intercept_alpha = action.alpha,
                (ActionKind::Delete, _) => {
                    moved.relevance.remove(place.unwrap());
                    moved.alpha.remove(place.unwrap());
                }
                (ActionKind::Reestimate, _) => moved.alpha[place.unwrap()] = action.alpha.unwrap(),
                (ActionKind::Add, _) => {
                    moved.relevance.push(j - 1);
                    moved.alpha.push(action.alpha.unwrap());
                }
            }
            kinds[action.kind as usize] += 1;
            let after = rvm.evaluate(data.x.view(), &targets, &moved).unwrap();
            let change = after.log_evidence - before.log_evidence;
            assert!((change - action.gain).abs() < 1e-10 * before.log_evidence.abs().max(1.0), "{j} {action:?}: {change}");
        }
        assert!(kinds[0] > 0 && kinds[1] > 0, "actions of every kind were tried: {kinds:?}");
    }
}

/// S, Q, the evidence and the posterior do not depend on whether G is stored or its rows are computed on demand.
#[test]
fn stored_and_recomputed_gram_rows_agree() {
    for likelihood in likelihoods() {
        let data = data(5, 300, 2);
        let targets = data.targets(&likelihood);
        let rvm = |memory_limit| Rvm { likelihood: likelihood.clone(), memory_limit, threads: Some(1), ..Rvm::tipping2001() };
        let at = some_hyperparameters();
        let stored = rvm(Some(1 << 30)).evaluate(data.x.view(), &targets, &at).unwrap();
        let made = rvm(Some(2_000_000)).evaluate(data.x.view(), &targets, &at).unwrap();
        close("evidence", &[made.log_evidence], &[stored.log_evidence], 1e-11);
        // The degrees of freedom are at a flat maximum, so that they have fewer correct digits.
        let digits = if likelihood.name() == "student_t" { 1e-7 } else { 1e-9 };
        close("S", &made.sparsity_in_model, &stored.sparsity_in_model, digits);
        close("Q", &made.quality_in_model, &stored.quality_in_model, digits);
        let fit = |memory| rvm(Some(memory)).fit(data.x.view(), &targets).unwrap().0.log_evidence.unwrap();
        let (one, other) = (fit(1 << 30), fit(2_000_000));
        assert!((one - other).abs() < 10.0, "{one} {other}");
    }
}

/// The first memory error names a limit that is sufficient for the whole fit.
#[test]
fn memory_error_names_a_sufficient_limit() {
    let data = data(11, 300, 2);
    let three: Vec<usize> = (0..300).map(|i| data.labels[i] + usize::from(i % 7 == 0)).collect();
    let real = (Targets::real(data.t.view()), Likelihood::from(Gaussian::default()));
    let two = (Targets::classes(&data.labels, 2), Likelihood::from(Bernoulli::default()));
    let joint = (Targets::classes(&three, 3), Likelihood::from(Softmax::default()));
    for name in Inference::NAMES {
        for dictionary in [Dictionary::default(), Dictionary::Size(60)] {
            for (targets, likelihood) in [&real, &two, &joint] {
                if likelihood.name() == "softmax" && *name == "variational" {
                    continue;
                }
                let fit = |memory: u64| {
                    let (inference, likelihood) = (Inference::from_name(name).unwrap(), likelihood.clone());
                    let kernel = Rbf { gamma: 1.0.into() }.into();
                    let own = Rvm { kernel, inference, likelihood, dictionary, max_iterations: 2, ..Rvm::tipping2001() };
                    Rvm { memory_limit: Some(memory), ..own }.fit(data.x.view(), targets).map(|_| ())
                };
                let Err(error @ Error::Memory { needed, .. }) = fit(1) else { panic!("{name}: a byte") };
                let read = error.to_string();
                let (number, unit) = read.split_once(' ').unwrap();
                let number: f64 = number.parse().unwrap();
                let read = if unit.starts_with("MB") { (1e6 * number).round() as u64 } else { number as u64 };
                for enough in [needed, read] {
                    assert_eq!(fit(enough), Ok(()), "{name}, {}, {dictionary:?}: {enough}", likelihood.name());
                }
                let less = fit(needed - needed / 50);
                assert!(matches!(less, Err(Error::Memory { .. })), "{name}, {}, {dictionary:?}: {needed}", likelihood.name());
            }
        }
    }
}

/// A fit that exceeds the memory limit is rejected, or stops adding at the limit.
#[test]
fn fits_respect_the_memory_limit() {
    let data = data(11, 400, 2);
    let targets = Targets::real(data.t.view());
    let fit = |name: &str, memory: u64| {
        let inference = Inference::from_name(name).unwrap();
        Rvm { inference, memory_limit: Some(memory), ..Rvm::tipping2001() }.fit(data.x.view(), &targets)
    };
    assert!(matches!(fit("mackay", 5_000_000), Err(Error::Memory { needed, limit: 5_000_000, .. }) if needed > 5_000_000));
    assert!(matches!(fit("search", 10_000), Err(Error::Memory { .. })));
    let (model, report) = fit("search", 350_000).unwrap();
    assert_eq!(report.status, Status::MemoryLimit);
    assert!(model.predict(data.x.view()).unwrap().mean.iter().all(|v| v.is_finite()));
    assert_eq!(fit("search", 50_000_000).unwrap().1.status, Status::Converged);
}

fn shuffled(x: ArrayView2<f64>, order: &[usize]) -> Array2<f64> {
    x.select(Axis(0), order)
}

/// The model is equal bit for bit for any order of the rows, and relevance refers to the given order.
#[test]
fn order_of_rows_does_not_matter() {
    let data = data(6, 80, 2);
    let order: Vec<usize> = (0..80).map(|i| (i * 37 + 11) % 80).collect();
    let x = shuffled(data.x.view(), &order);
    for likelihood in likelihoods() {
        let [t, counts] = [&data.t, &data.counts].map(|all| all.select(Axis(0), &order));
        let [labels, kinds] = [&data.labels, &data.kinds].map(|all| order.iter().map(|i| all[*i]).collect::<Vec<_>>());
        let rvm = Rvm { likelihood: likelihood.clone(), ..Rvm::tipping2001() };
        let (one, _) = rvm.fit(data.x.view(), &data.targets(&likelihood)).unwrap();
        let other = Data { x: x.clone(), t, counts, labels, kinds };
        let (two, _) = rvm.fit(x.view(), &other.targets(&likelihood)).unwrap();
        assert_eq!(one.log_evidence, two.log_evidence);
        let mut mapped: Vec<usize> = two.relevance.iter().map(|k| order[*k]).collect();
        mapped.sort_unstable();
        assert_eq!(mapped, one.relevance);
        close("predictions", &said(&two, data.x.view()), &said(&one, data.x.view()), 1e-9);
    }
}

/// Repeated rows equal rows of weight 2, to the bit, and a row of weight 0 does not count.
#[test]
fn weights_equal_repeated_rows() {
    let data = data(7, 60, 2);
    for likelihood in likelihoods() {
        let rvm = Rvm { likelihood: likelihood.clone(), ..Rvm::tipping2001() };
        let twice = Data {
            x: ndarray::concatenate![Axis(0), data.x, data.x],
            t: ndarray::concatenate![Axis(0), data.t, data.t],
            counts: ndarray::concatenate![Axis(0), data.counts, data.counts],
            labels: [data.labels.clone(), data.labels.clone()].concat(),
            kinds: [data.kinds.clone(), data.kinds.clone()].concat(),
        };
        let (one, report) = rvm.fit(twice.x.view(), &twice.targets(&likelihood)).unwrap();
        assert_eq!(report.adjustments.merged_rows, 60);
        let two = Array1::from_elem(60, 2.0);
        let (other, _) = rvm.fit(data.x.view(), &data.targets(&likelihood).with_weights(two.view())).unwrap();
        assert_eq!(
            (one.log_evidence.unwrap(), &one.relevance, &one.alpha),
            (other.log_evidence.unwrap(), &other.relevance, &other.alpha)
        );
        assert_eq!(one.expansion, other.expansion);

        let mut weights = Array1::from_elem(120, 1.0);
        weights.slice_mut(s![60..]).fill(0.0);
        let mut spoilt = twice;
        spoilt.t.slice_mut(s![60..]).fill(1e3);
        let weighted = spoilt.targets(&likelihood).with_weights(weights.view());
        let (dropped, _) = rvm.fit(spoilt.x.view(), &weighted).unwrap();
        let (plain, _) = rvm.fit(data.x.view(), &data.targets(&likelihood)).unwrap();
        assert_eq!((plain.log_evidence.unwrap(), &plain.relevance), (dropped.log_evidence.unwrap(), &dropped.relevance));
    }
}

/// The mean alone equals the mean of the full prediction, to the bit.
#[test]
fn mean_alone_equals_the_mean_of_the_full_prediction() {
    let new = data(12, 1500, 2).x + 2.0;
    every_kernel_likelihood_and_scheme(|rvm, data, targets| {
        let model = Rvm { max_iterations: 5, ..rvm.clone() }.fit(data.x.view(), targets).unwrap().0;
        if model.outputs() > 1 {
            assert!(model.predict_mean(new.view()).unwrap_err().to_string().contains("several classes"));
            return;
        }
        assert_eq!(model.predict_mean(new.view()).unwrap(), model.predict(new.view()).unwrap().mean, "{}", label(rvm));
    });
    let data = data(13, 40, 2);
    let (model, _) = Rvm::tipping2001().fit(data.x.view(), &Targets::real(data.t.view())).unwrap();
    assert_eq!(model.predict_mean(Array2::zeros((0, 2)).view()).unwrap().len(), 0);
    for bad in [Array2::zeros((2, 1)), Array2::from_elem((2, 2), f64::NAN)] {
        let (mean, both) = (model.predict_mean(bad.view()).unwrap_err(), model.predict(bad.view()).unwrap_err());
        assert_eq!(mean.to_string(), both.to_string());
    }
}

/// A factor of the target, or of the features with their gamma, changes the model by that factor only.
#[test]
fn units_of_targets_and_features_do_not_matter() {
    let data = data(8, 80, 2);
    let rvm = Rvm { kernel: Rbf { gamma: 0.7.into() }.into(), ..Rvm::tipping2001() };
    let fit = |rvm: &Rvm, x: &Array2<f64>, t: &Array1<f64>| rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0;
    let plain = fit(&rvm, &data.x, &data.t);
    let expected = plain.predict(data.x.view()).unwrap();
    for factor in [1e-150, 1e-6, 1e6, 1e9, 1e150] {
        let model = fit(&rvm, &data.x, &(&data.t * factor));
        assert_eq!(model.relevance, plain.relevance, "target times {factor:e}");
        let got = model.predict(data.x.view()).unwrap();
        close("mean", &(got.mean / factor).to_vec(), &expected.mean.to_vec(), 1e-8);
        close("variance", &(got.model_variance / factor / factor).to_vec(), &expected.model_variance.to_vec(), 1e-8);
        let noise = model.noise_std().unwrap() / factor;
        close("noise", &[noise], &[plain.noise_std().unwrap()], 1e-8);
        let shift = 80.0 * factor.ln();
        close("evidence", &[model.log_evidence.unwrap() + shift], &[plain.log_evidence.unwrap()], 1e-8 * (1.0 + shift.abs()));
    }
    for factor in [1e-6f64, 1e6] {
        let wide = Rvm { kernel: Rbf { gamma: (0.7 / factor / factor).into() }.into(), ..Rvm::tipping2001() };
        let x = &data.x * factor;
        let model = fit(&wide, &x, &data.t);
        assert_eq!(model.relevance, plain.relevance, "features times {factor:e}");
        let got = model.predict(x.view()).unwrap();
        close("mean", &got.mean.to_vec(), &expected.mean.to_vec(), 1e-8);
    }
    // A large mean costs only the digits of the target itself.
    let near = fit(&rvm, &data.x, &(&data.t + 1e3));
    let far = fit(&rvm, &data.x, &(&data.t + 1e6));
    let (one, other) = (near.predict(data.x.view()).unwrap(), far.predict(data.x.view()).unwrap());
    close("mean", &(other.mean - 1e6).to_vec(), &(one.mean - 1e3).to_vec(), 1e-4);
    close("noise", &[far.noise_std().unwrap()], &[near.noise_std().unwrap()], 1e-4);
}

/// The standard deviation follows from alpha, the noise and the basis functions by the textbook formula.
#[test]
fn variance_follows_from_the_precisions() {
    let data = data(9, 70, 2);
    let rvm = Rvm { kernel: Rbf { gamma: 0.5.into() }.into(), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(data.x.view(), &Targets::real(data.t.view())).unwrap();
    let beta = 1.0 / model.noise_variance().unwrap();
    let centres = data.x.select(Axis(0), &model.relevance);
    let mut phi = Array2::ones((70, centres.nrows() + 1));
    rvm.kernel.block(data.x.view(), centres.view(), phi.slice_mut(s![.., 1..]));
    let mut alpha = vec![model.intercept_alpha.unwrap()];
    alpha.extend(&model.alpha);
    let mut h = phi.t().dot(&phi) * beta;
    h.diag_mut().iter_mut().zip(&alpha).for_each(|(h, a)| *h += a);
    let expected: Vec<f64> = phi.outer_iter().map(|row| row.dot(&solve(&h, &row.to_owned()))).collect();
    let mean = phi.dot(&(solve(&h, &phi.t().dot(&data.t)) * beta));
    let got = model.predict(data.x.view()).unwrap();
    close("variance", &got.model_variance.to_vec(), &expected, 1e-8);
    close("mean", &got.mean.to_vec(), &mean.to_vec(), 1e-8);
    assert!((got.variance()[0] - got.model_variance[0] - 1.0 / beta).abs() < 1e-15);
}

/// Solves a linear system by Gaussian elimination with pivoting, independently of the crate.
fn solve(a: &Array2<f64>, b: &Array1<f64>) -> Array1<f64> {
    let n = b.len();
    let (mut a, mut b) = (a.clone(), b.clone());
    for k in 0..n {
        let p = (k..n).max_by(|i, j| a[[*i, k]].abs().total_cmp(&a[[*j, k]].abs())).unwrap();
        for c in 0..n {
            a.swap([k, c], [p, c]);
        }
        b.swap(k, p);
        for i in k + 1..n {
            let f = a[[i, k]] / a[[k, k]];
            for c in k..n {
                a[[i, c]] -= f * a[[k, c]];
            }
            b[i] -= f * b[k];
        }
    }
    for k in (0..n).rev() {
        for c in k + 1..n {
            b[k] -= a[[k, c]] * b[c];
        }
        b[k] /= a[[k, k]];
    }
    b
}

/// After convergence nothing gains more than the tolerance, and a continued search gains nothing.
#[test]
fn converged_searches_gain_nothing_more() {
    let data = data(10, 300, 2);
    for likelihood in likelihoods() {
        let rvm = Rvm { likelihood: likelihood.clone(), ..Rvm::tipping2001() };
        let targets = data.targets(&likelihood);
        let (model, report) = rvm.fit(data.x.view(), &targets).unwrap();
        assert_eq!(report.status, Status::Converged, "{}", report.certificate.reason);
        // For several classes gains are estimates, and the search ends after an action that lowers the evidence.
        assert!(likelihood.name() == "softmax" || report.certificate.largest_gain.unwrap() < 1e-3, "{:?}", report.certificate);
        if likelihood.name() == "gaussian" {
            assert!(report.certificate.largest_gradient < 1e-3, "{:?}", report.certificate);
        }
        if likelihood.name() == "student_t" {
            // The search has more than one start, and continues from the latent row factors.
            continue;
        }
        let again = Rvm {
            inference: Inference::Search(Search {
                start: Start::Given(hyper(&model)),
                tolerance: 1e-6,
                restarts: 0,
                ..Search::default()
            }),
            ..rvm
        };
        let (further, _) = again.fit(data.x.view(), &targets).unwrap();
        let gained = further.log_evidence.unwrap() - model.log_evidence.unwrap();
        assert!((-1e-6..1.0).contains(&gained), "{}: going on gained {gained}", likelihood.name());
    }
}

/// If the Hessian depends on the weights, an action may gain less than predicted, or lose. An action that is undone
/// alone ends the search.
#[test]
fn rejected_action_ends_the_search() {
    let kernel = Rbf { gamma: 0.1.into() }.into();
    let rvm = Rvm { kernel, likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
    let mut ended = 0;
    for seed in 0..8 {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let x = Array2::from_shape_simple_fn((400, 20), || -> f64 { StandardNormal.sample(&mut random) });
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let labels: Vec<usize> = x.outer_iter().map(|r| usize::from(r[0] + r[1] * r[2] + 0.5 * normal() > 0.0)).collect();
        let (_, report) = rvm.fit(x.view(), &Targets::classes(&labels, 2)).expect("a fit");
        assert_eq!(report.status, Status::Converged);
        let trace: Vec<f64> = report.trace.iter().map(|t| t.log_evidence).collect();
        assert!(trace.windows(2).all(|w| w[1] >= w[0]), "seed {seed}: the trace falls");
        let vain = trace.iter().rev().take_while(|value| **value == trace[trace.len() - 1]).count();
        assert!(vain < 20, "seed {seed}: {vain} actions in vain at the end");
        if report.certificate.reason.starts_with("the action of the largest predicted gain does not raise") {
            ended += 1;
            assert!(vain >= 1 && report.actions.undone >= 1, "seed {seed}: {vain}, {:?}", report.actions);
        }
    }
    assert!(ended > 0, "no search ended so");
}
