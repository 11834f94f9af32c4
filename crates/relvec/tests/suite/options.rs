//! Every option has its documented effect, and values out of range are rejected by name.

use std::ops::ControlFlow;

use crate::support::close;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Rows, noisy real targets, and noisy classes from the same function.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    labels: Vec<usize>,
}

fn data(seed: u64, rows: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, 2), |_| random.random_range(-2.0..2.0));
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let f = x.map_axis(Axis(1), |r| f64::sin(1.5 * r[0]) + 0.5 * r[1]);
    let t = f.mapv(|f| 3.0 + f + 0.2 * normal());
    let labels = f.iter().map(|f| usize::from(*f + 0.5 * normal() > 0.0)).collect();
    Data { x, t, labels }
}

impl Data {
    fn targets(&self, likelihood: &Likelihood) -> Targets<'_> {
        match likelihood {
            other if other.is_for_classes() => Targets::classes(&self.labels, 2),
            _ => Targets::real(self.t.view()),
        }
    }

    fn fit(&self, rvm: &Rvm) -> (Model, Report) {
        rvm.fit(self.x.view(), &self.targets(&rvm.likelihood)).unwrap_or_else(|e| panic!("{rvm:?}: {e}"))
    }
}

fn likelihoods() -> [Likelihood; 2] {
    [Gaussian::default().into(), Bernoulli::default().into()]
}

fn rvm(inference: Inference) -> Rvm {
    Rvm { inference, ..Rvm::tipping2001() }
}

fn search(settings: Search) -> Rvm {
    rvm(Inference::Search(settings))
}

/// Returns the two fixed-point schemes with the same settings.
fn reestimation(settings: Em) -> [Rvm; 2] {
    let Em { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune } = settings.clone();
    let mackay = MacKay { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune };
    [rvm(Inference::Em(settings)), rvm(Inference::MacKay(mackay))]
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
fn never_falls(report: &Report) {
    for pair in report.trace.windows(2) {
        let (before, after) = (pair[0].log_evidence, pair[1].log_evidence);
        assert!(after >= before - 1e-6 - 1e-9 * before.abs(), "{before} to {after}");
    }
}

/// Returns the name of the parameter that is rejected.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    }
}

/// Searches with each of their steps changed, and with one action at a time, end near each other.
#[test]
fn searches_with_changed_steps_end_near_each_other() {
    for likelihood in likelihoods() {
        let data = data(1, 80);
        let fit = |inference: Inference| data.fit(&Rvm { likelihood: likelihood.clone(), inference, ..Rvm::tipping2001() });
        let (full, _) = fit(Search::default().into());
        let policy = |policy: Policy| Inference::from(Search { policy, ..Search::default() });
        for inference in [
            Search { start: Start::Empty, ..Search::default() }.into(),
            Search { restarts: 0, ..Search::default() }.into(),
            policy(Policy { batch: 1, ..Policy::default() }),
            policy(Policy { share: 0.5, ..Policy::default() }),
            policy(Policy { clip: 1.0, frozen_steps: 4, ..Policy::default() }),
            policy(Policy { prune_below: 0.0, steps: 20, ..Policy::default() }),
            policy(Policy { restart_noise: 2.0, restart_gain: 1.0, ..Policy::default() }),
            policy(Policy { rise: 0.1, ..Policy::default() }),
            Sequential::default().into(),
        ] {
            let (model, report) = fit(inference.clone());
            assert_eq!(report.status, Status::Converged, "{inference:?}");
            never_falls(&report);
            let (found, expected) = (model.log_evidence.unwrap(), full.log_evidence.unwrap());
            assert!((found - expected).abs() < 10.0, "{} {found} {expected} {inference:?}", likelihood.name());
            if let Inference::Sequential(_) = inference {
                let a = &report.actions;
                assert!(a.added > 0 && a.joint == 0, "{a:?}");
                assert!(a.added + a.reestimated + a.deleted <= report.iterations, "one at a time: {a:?} {}", report.iterations);
            }
        }
        let loose = fit(Sequential { tolerance: 1.0, ..Sequential::default() }.into());
        let tight = fit(Sequential::default().into());
        assert!(loose.1.iterations < tight.1.iterations && loose.0.log_evidence.unwrap() <= tight.0.log_evidence.unwrap() + 1e-9);
        assert!(loose.1.certificate.largest_gain.unwrap() <= 1.0);
    }
}

#[test]
fn search_starts_at_the_given_start() {
    let data = data(2, 60);
    for likelihood in likelihoods() {
        let targets = data.targets(&likelihood);
        let fit = |at| {
            let start = Search { start: Start::Given(at), ..Search::default() };
            Rvm { likelihood: likelihood.clone(), ..search(start) }.fit(data.x.view(), &targets)
        };
        let (first, _) = data.fit(&Rvm { likelihood: likelihood.clone(), max_iterations: 3, ..Rvm::tipping2001() });
        let at = hyper(&first);
        let (further, report) = fit(at.clone()).unwrap();
        assert!(
            further.log_evidence.unwrap() >= first.log_evidence.unwrap() - 1e-9,
            "{} {}",
            further.log_evidence.unwrap(),
            first.log_evidence.unwrap()
        );
        never_falls(&report);
        let changed = |change: &dyn Fn(&mut Hyperparameters)| {
            let mut at = Hyperparameters { relevance: vec![1, 2], alpha: vec![1.0, 2.0], ..at.clone() };
            change(&mut at);
            refused(fit(at))
        };
        assert_eq!(changed(&|at| at.relevance[1] = 60), "relevance");
        assert_eq!(changed(&|at| at.relevance[1] = 1), "relevance");
        assert_eq!(changed(&|at| at.alpha.push(1.0)), "alpha");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(changed(&|at| at.alpha[0] = bad).contains("alpha"));
            assert!(changed(&|at| at.intercept_alpha = Some(bad)).contains("intercept_alpha"));
            assert!(changed(&|at| at.noise_variance = Some(bad)).contains("variance"));
        }
        if likelihood.name() == "gaussian" {
            assert_eq!(changed(&|at| at.noise_variance = None), "noise_variance");
        }
    }
}

/// A strong hyperprior on the noise moves it to d / c, and the objective never falls.
#[test]
fn hyperpriors_move_noise_and_precisions() {
    let data = data(3, 50);
    let free = data.fit(&Rvm::tipping2001()).0.noise_std().unwrap();
    let (c, d) = (1e4, 1e4);
    let noise = Hyperpriors { c, d, ..Hyperpriors::default() };
    let (model, report) = data.fit(&search(Search { hyperpriors: noise, ..Search::default() }));
    never_falls(&report);
    assert!(free < 0.4 && (model.noise_std().unwrap() - 1.0).abs() < 0.05, "{free} {:?}", model.noise_std());
    for (name, h) in [("a", Hyperpriors { a: 1.0, ..noise }), ("b", Hyperpriors { b: 1.0, ..noise })] {
        let error = search(Search { hyperpriors: h, ..Search::default() }).check().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("em") && text.contains("mackay"), "{text}");
        assert_eq!(refused::<()>(Err(error)), format!("inference.search.hyperpriors.{name}"));
    }
    for h in [Hyperpriors { a: 2.0, b: 3.0, c: 1.5, d: 0.5 }, noise, Hyperpriors { a: 1e-3, b: 1e-3, c: 0.0, d: 0.0 }] {
        for likelihood in likelihoods() {
            for rvm in reestimation(Em { hyperpriors: h, ..Em::default() }) {
                let (model, report) = data.fit(&Rvm { likelihood: likelihood.clone(), max_iterations: 150, ..rvm });
                never_falls(&report);
                assert!(model.log_evidence.unwrap().is_finite());
                if h.a == 2.0 {
                    // Every alpha is at most (1 + 2a) / 2b, because gamma is at most 1.
                    assert!(model.alpha.iter().all(|a| *a <= 5.0 / 6.0 + 1e-9), "{:?}", model.alpha);
                }
                if let Some(std) = model.noise_std().filter(|_| h.c == c) {
                    assert!((std - 1.0).abs() < 0.05, "{std}");
                }
            }
        }
    }
}

#[test]
fn fixed_point_options_change_the_iteration() {
    let data = data(4, 40);
    let at_once = |settings: Em| reestimation(settings).map(|rvm| data.fit(&Rvm { max_iterations: 1, ..rvm }).0);
    for (plain, other) in at_once(Em::default()).iter().zip(at_once(Em { initial_alpha: Some(50.0), ..Em::default() })) {
        assert_ne!(plain.alpha, other.alpha, "initial_alpha");
    }
    let loud = Em { initial_noise_variance: Some(0.5), ..Em::default() };
    for (plain, other) in at_once(Em::default()).iter().zip(at_once(loud)) {
        assert!(other.noise_std() > plain.noise_std(), "initial_noise_variance");
    }
    for likelihood in likelihoods() {
        for settings in [Em::default(), Em { prune: false, ..Em::default() }] {
            for rvm in reestimation(settings.clone()) {
                let rvm = Rvm { likelihood: likelihood.clone(), max_iterations: 300, ..rvm };
                let (model, report) = data.fit(&rvm);
                never_falls(&report);
                if !settings.prune {
                    assert_eq!((model.relevance.len(), model.intercept_alpha.is_some()), (40, true), "{rvm:?}");
                } else if rvm.inference.name() == "mackay" {
                    assert!(model.relevance.len() < 40, "{rvm:?}");
                }
            }
        }
        let [loose, tight] = [1.0, 1e-2].map(|tolerance| {
            let fit = |rvm: Rvm| data.fit(&Rvm { likelihood: likelihood.clone(), ..rvm }).1;
            reestimation(Em { tolerance, ..Em::default() }).map(fit)
        });
        for (loose, tight) in loose.iter().zip(&tight) {
            assert_eq!(loose.status, Status::Converged);
            assert!(loose.iterations < tight.iterations, "{} {}", loose.iterations, tight.iterations);
        }
    }
}

#[test]
fn fits_without_a_bias_have_none() {
    let data = data(5, 50);
    for likelihood in likelihoods() {
        for name in Inference::NAMES {
            let inference = Inference::from_name(name).unwrap();
            let rvm = Rvm { bias: false, likelihood: likelihood.clone(), inference, max_iterations: 200, ..Rvm::tipping2001() };
            let (model, report) = data.fit(&rvm);
            assert_eq!((model.intercept_alpha, model.expansion.intercept.as_slice()), (None, &[0.0][..]));
            assert!(!model.relevance.is_empty());
            never_falls(&report);
        }
    }
    let at = Hyperparameters { intercept_alpha: Some(1.0), noise_variance: Some(1.0), ..Hyperparameters::default() };
    let start = Search { start: Start::Given(at), ..Search::default() };
    let no_bias = Rvm { bias: false, ..search(start) };
    assert_eq!(refused(no_bias.fit(data.x.view(), &Targets::real(data.t.view()))), "intercept_alpha");
}

/// The columns of the kernel, given as a design matrix, give the same model.
#[test]
fn given_design_matrix_equals_the_kernel() {
    let mut data = data(6, 60);
    // Rows are in canonical order, so that the columns are in the same order too.
    let mut order: Vec<usize> = (0..60).collect();
    order.sort_by(|i, j| data.x[[*i, 0]].total_cmp(&data.x[[*j, 0]]));
    data.x = data.x.select(Axis(0), &order);
    data.t = data.t.select(Axis(0), &order);
    data.labels = order.iter().map(|i| data.labels[*i]).collect();
    let kernel: Kernel = Rbf { gamma: 0.5.into() }.into();
    let phi = |rows: ArrayView2<f64>| {
        let mut out = Array2::zeros((rows.nrows(), 60));
        kernel.block(rows, data.x.view(), out.view_mut());
        out
    };
    let fresh = self::data(7, 10).x;
    for likelihood in likelihoods() {
        let targets = data.targets(&likelihood);
        let own = Rvm { kernel: kernel.clone(), likelihood: likelihood.clone(), ..Rvm::tipping2001() };
        let given = Rvm { basis: Basis::Given, ..own.clone() };
        let (fitted, _) = own.fit(data.x.view(), &targets).unwrap();
        let at = hyper(&fitted);
        let one = own.evaluate(data.x.view(), &targets, &at).unwrap();
        let two = given.evaluate(phi(data.x.view()).view(), &targets, &at).unwrap();
        close("evidence", &[two.log_evidence], &[one.log_evidence], 1e-9);
        let (p, q) = (one.model.predict(fresh.view()).unwrap(), two.model.predict(phi(fresh.view()).view()).unwrap());
        close("mean", &q.mean.to_vec(), &p.mean.to_vec(), 1e-9);
        close("variance", &q.model_variance.to_vec(), &p.model_variance.to_vec(), 1e-8);
        let (learnt, _) = given.fit(phi(data.x.view()).view(), &targets).unwrap();
        assert_eq!(learnt.relevance, fitted.relevance);
        close("evidence", &[learnt.log_evidence.unwrap()], &[fitted.log_evidence.unwrap()], 1e-9);
        let (p, q) = (fitted.predict(fresh.view()).unwrap(), learnt.predict(phi(fresh.view()).view()).unwrap());
        close("mean", &q.mean.to_vec(), &p.mean.to_vec(), 1e-6);
        assert!(learnt.kernel().is_none() && learnt.to_json().unwrap().contains("\"given\""));
        assert_eq!(Model::from_json(&learnt.to_json().unwrap()).unwrap(), learnt);
    }
}

/// The model of a fit that was stopped is valid and predicts.
#[test]
fn stopped_fits_have_a_valid_model() {
    let data = data(8, 60);
    for likelihood in likelihoods() {
        for name in Inference::NAMES {
            let inference = Inference::from_name(name).unwrap();
            let rvm = Rvm { likelihood: likelihood.clone(), inference, ..Rvm::tipping2001() };
            let targets = data.targets(&likelihood);
            let mut calls = 0;
            let mut stop = |p: &Progress| {
                calls += 1;
                assert_eq!((p.iteration, p.noise_std.is_some()), (calls, likelihood.name() == "gaussian"));
                if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let stopped = rvm.fit_with(data.x.view(), &targets, &mut stop, &Interrupt::default()).unwrap();
            let limited = data.fit(&Rvm { max_iterations: 3, ..rvm.clone() });
            let timed = data.fit(&Rvm { time_limit: Some(1e-9), ..rvm.clone() });
            let ends = [(stopped, Status::Stopped, 2), (limited, Status::IterationLimit, 3), (timed, Status::TimeLimit, 1)];
            for ((model, report), status, iterations) in ends {
                assert_eq!((report.status, model.status), (status, status), "{name}");
                assert_eq!((report.iterations, report.trace.len(), model.iterations), (iterations, iterations, iterations));
                assert!(!report.certificate.reason.is_empty() || status != Status::Converged);
                assert!(model.predict(data.x.view()).unwrap().mean.iter().all(|v| v.is_finite()));
                assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
            }
        }
    }
}

/// Above 2000 columns the start is random, and depends on the seed only.
#[test]
fn random_start_depends_on_the_seed_only() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(9);
    let x = Array2::from_shape_fn((2100, 1), |_| random.random_range(-3.0..3.0));
    let t = x.column(0).mapv(|x: f64| x.sin() + 0.1 * Distribution::<f64>::sample(&StandardNormal, &mut random));
    let fit = |seed, threads| {
        let rvm = Rvm { seed, threads: Some(threads), max_iterations: 2, ..Rvm::tipping2001() };
        rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0
    };
    let one = fit(1, 2);
    assert_eq!(one, fit(1, 1));
    assert_ne!(one.relevance, fit(2, 2).relevance);
}

/// The memory limit decides what is stored and what is computed again. It hardly changes the evidence.
#[test]
fn little_memory_gives_almost_the_same_evidence() {
    let data = data(10, 100);
    for likelihood in likelihoods() {
        let plain = Rvm { likelihood, ..Rvm::tipping2001() };
        let (stored, _) = data.fit(&plain);
        let (made, _) = data.fit(&Rvm { memory_limit: Some(300_000), ..plain.clone() });
        assert!(
            (made.log_evidence.unwrap() - stored.log_evidence.unwrap()).abs() < 5.0,
            "{} {}",
            made.log_evidence.unwrap(),
            stored.log_evidence.unwrap()
        );
    }
}

#[test]
fn fixed_noise_is_not_learned() {
    let data = data(11, 50);
    for noise_variance in [1e-3, 0.04, 2.0] {
        for name in Inference::NAMES {
            let likelihood = Gaussian { noise_variance: Some(noise_variance) }.into();
            let inference = Inference::from_name(name).unwrap();
            let (model, _) = data.fit(&Rvm { likelihood, inference, max_iterations: 100, ..Rvm::tipping2001() });
            close("noise", &[model.noise_variance().unwrap()], &[noise_variance], 1e-14);
        }
    }
}

/// A row of large weight is fitted closely.
#[test]
fn rows_of_large_weight_are_fitted_closely() {
    let mut data = data(12, 40);
    data.t[7] += 2.0;
    let fit = |weights: Array1<f64>| {
        let targets = Targets::real(data.t.view()).with_weights(weights.view());
        Rvm::tipping2001().fit(data.x.view(), &targets).unwrap().0
    };
    let mut heavy = Array1::ones(40);
    heavy[7] = 1e4;
    let off = |m: &Model| (m.predict(data.x.slice(s![7..8, ..])).unwrap().mean[0] - data.t[7]).abs();
    let (plain, pulled) = (off(&fit(Array1::ones(40))), off(&fit(heavy)));
    assert!(pulled < 0.1 * plain, "{pulled} {plain}");
}

#[test]
fn moderation_moves_probabilities_towards_one_half() {
    let data = data(13, 80);
    let (model, _) = data.fit(&Rvm { likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() });
    let plain = model.predict_probability(data.x.view(), Moderation::PlugIn).unwrap();
    let moderated = model.predict_probability(data.x.view(), Moderation::default()).unwrap();
    for (p, m) in plain.outer_iter().zip(moderated.outer_iter()) {
        assert!((p.sum() - 1.0).abs() < 1e-15 && (m.sum() - 1.0).abs() < 1e-15);
        assert!((m[1] - 0.5).abs() < (p[1] - 0.5).abs() && (m[1] > 0.5) == (p[1] > 0.5), "{p} {m}");
    }
    // Far from all centres and without a bias, f = 0 with any variance.
    let rvm = Rvm {
        bias: false,
        kernel: Rbf { gamma: 1.0.into() }.into(),
        likelihood: Bernoulli::default().into(),
        ..Rvm::tipping2001()
    };
    let (model, _) = data.fit(&rvm);
    let far = Array2::from_elem((1, 2), 1e3);
    for how in [Moderation::PlugIn, Moderation::Posterior] {
        assert_eq!(model.predict_probability(far.view(), how).unwrap(), Array2::from_elem((1, 2), 0.5));
    }
    let (regression, _) = data.fit(&Rvm::tipping2001());
    assert!(matches!(regression.predict_probability(data.x.view(), Moderation::PlugIn), Err(Error::Targets(_))));
}

/// A model that contains a scaling takes raw rows.
#[test]
fn models_with_scaling_take_raw_rows() {
    let mut data = data(14, 50);
    data.x.column_mut(0).mapv_inplace(|v| 1e5 + 1e3 * v);
    let scaling = Scaling::of(data.x.view(), None);
    let scaled = scaling.apply(data.x.view());
    for column in scaled.axis_iter(Axis(1)) {
        assert!(column.sum().abs() < 1e-9 && (column.mapv(|v| v * v).sum() / 50.0 - 1.0).abs() < 1e-9);
    }
    let (mut model, _) = Rvm::tipping2001().fit(scaled.view(), &Targets::real(data.t.view())).unwrap();
    let expected = model.predict(scaled.view()).unwrap();
    model.scaling = Some(scaling);
    assert_eq!(model.predict(data.x.view()).unwrap(), expected);
    assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
    let weighted = Scaling::of(data.x.view(), Some(&[0.5; 50]));
    close("mean", &weighted.mean, &Scaling::of(data.x.view(), None).mean, 1e-14);
    let constant = Scaling::of(Array2::from_elem((3, 1), 7.0).view(), None);
    assert_eq!((constant.mean, constant.scale), (vec![7.0], vec![1.0]));
}

/// Each adjustment is reported in the fit that made it, and in no other.
#[test]
fn adjustments_are_reported_where_made() {
    let plain = data(15, 40);
    let adjustments = |d: &Data, rvm: &Rvm| d.fit(rvm).1.adjustments;
    let clean = adjustments(&plain, &Rvm::tipping2001());
    assert_eq!((clean.merged_rows, clean.shared_columns, clean.zero_columns), (0, 0, 0));
    assert!(!clean.noise_capped && !clean.constant_target && clean.constant_features.is_empty());

    let mut doubled = data(15, 40);
    let row = doubled.x.row(3).to_owned();
    doubled.x.row_mut(4).assign(&row);
    doubled.x.row_mut(5).assign(&row);
    doubled.t[4] = doubled.t[3];
    let got = adjustments(&doubled, &Rvm::tipping2001());
    assert_eq!((got.merged_rows, got.shared_columns), (1, 1));

    let mut flat = data(15, 40);
    flat.x.column_mut(1).fill(0.0);
    assert_eq!(adjustments(&flat, &Rvm::tipping2001()).constant_features, [1]);
    let given = adjustments(&flat, &Rvm { basis: Basis::Given, ..Rvm::tipping2001() });
    assert_eq!((given.zero_columns, given.constant_features), (1, vec![1]));

    let mut exact = data(15, 40);
    exact.t = exact.x.column(0).to_owned();
    assert!(adjustments(&exact, &Rvm { kernel: Kernel::from_name("linear").unwrap(), ..Rvm::tipping2001() }).noise_capped);

    let mut constant = data(15, 40);
    constant.t.fill(2.5);
    assert!(adjustments(&constant, &Rvm::tipping2001()).constant_target);
}

#[test]
fn parameters_out_of_range_are_rejected_by_name() {
    let d = Rvm::tipping2001;
    let check = |name: &str, rvm: Rvm| assert_eq!(refused(rvm.check()), name);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        check("time_limit", Rvm { time_limit: Some(bad), ..d() });
        check("kernel.rbf.gamma", Rvm { kernel: Rbf { gamma: bad.into() }.into(), ..d() });
        check("kernel.rbf.gamma", Rvm { kernel: Rbf { gamma: vec![1.0, bad].into() }.into(), ..d() });
        check("likelihood.gaussian.noise_variance", Rvm { likelihood: Gaussian { noise_variance: Some(bad) }.into(), ..d() });
        check("inference.search.tolerance", search(Search { tolerance: bad, ..Search::default() }));
        let both = |name: &str, settings: Em| {
            for (scheme, rvm) in ["em", "mackay"].iter().zip(reestimation(settings)) {
                check(&format!("inference.{scheme}.{name}"), rvm);
            }
        };
        both("tolerance", Em { tolerance: bad, ..Em::default() });
        both("initial_alpha", Em { initial_alpha: Some(bad), ..Em::default() });
        both("initial_noise_variance", Em { initial_noise_variance: Some(bad), ..Em::default() });
        if bad != 0.0 {
            let zero = Hyperpriors::default();
            for (name, hyperpriors) in [
                ("a", Hyperpriors { a: bad, ..zero }),
                ("b", Hyperpriors { b: bad, ..zero }),
                ("c", Hyperpriors { c: bad, ..zero }),
                ("d", Hyperpriors { d: bad, ..zero }),
            ] {
                both(&format!("hyperpriors.{name}"), Em { hyperpriors, ..Em::default() });
                let rvm = search(Search { hyperpriors, ..Search::default() });
                check(&format!("inference.search.hyperpriors.{name}"), rvm);
            }
        }
    }
    check("max_iterations", Rvm { max_iterations: 0, ..d() });
    check("threads", Rvm { threads: Some(0), ..d() });
    check("threads", Rvm { threads: Some(MOST_THREADS + 1), ..d() });
    assert_eq!(Rvm { threads: Some(MOST_THREADS), ..d() }.check(), Ok(()));
    check(
        "inference.search.policy.batch",
        search(Search { policy: Policy { batch: 0, ..Policy::default() }, ..Search::default() }),
    );
    assert!(matches!(Inference::from_name("magic"), Err(Error::UnknownName { known, .. }) if known == Inference::NAMES));
    d().check().unwrap();
}

#[test]
fn dictionary_sizes_restrict_the_candidates() {
    let data = data(21, 120);
    for (likelihood, landmarks) in likelihoods().into_iter().zip([Landmarks::Kmedoids, Landmarks::Uniform]) {
        let all = data.fit(&Rvm { likelihood: likelihood.clone(), ..Rvm::tipping2001() }).0;
        let some = |size: usize, seed: u64| {
            let rvm = Rvm {
                likelihood: likelihood.clone(),
                dictionary: size.into(),
                landmarks: landmarks.clone(),
                seed,
                ..Rvm::tipping2001()
            };
            data.fit(&rvm).0
        };
        // A size equal to the number of rows is no restriction.
        assert_eq!(some(120, 0), all);
        assert_eq!(some(10_000, 0), all);
        let few = some(5, 0);
        assert!(few.relevance.len() <= 5);
        assert_eq!(few, some(5, 0));
        assert!((1..6).any(|seed| some(5, seed).relevance != few.relevance), "the seed draws the rows");
        assert!(
            few.log_evidence.unwrap() < all.log_evidence.unwrap() + 1e-6,
            "{} above {}",
            few.log_evidence.unwrap(),
            all.log_evidence.unwrap()
        );
        let centres = match &few.expansion.basis {
            FittedBasis::Kernel { centres, .. } => centres,
            other => panic!("{other:?}"),
        };
        for (row, centre) in few.relevance.iter().zip(centres.outer_iter()) {
            assert_eq!(data.x.row(*row), centre);
        }
    }
    let x = data.x.view();
    let refuse = |rvm: Rvm| refused(rvm.fit(x, &Targets::real(data.t.view())));
    assert_eq!(refuse(Rvm { dictionary: 0.into(), ..Rvm::tipping2001() }), "dictionary");
    assert_eq!(refuse(Rvm { dictionary: 3.into(), basis: Basis::Given, ..Rvm::tipping2001() }), "dictionary");
}

#[test]
fn interrupt_ends_a_fit_without_a_model() {
    let data = data(22, 150);
    for inference in [Inference::Search(Search::default()), Inference::MacKay(MacKay::default())] {
        for likelihood in likelihoods() {
            let rvm = Rvm { likelihood: likelihood.clone(), inference: inference.clone(), ..Rvm::tipping2001() };
            for at in [0, 1, 3] {
                let interrupt = Interrupt::default();
                if at == 0 {
                    interrupt.raise();
                }
                let mut seen = 0;
                let mut observer = |_: &Progress| {
                    seen += 1;
                    if seen == at {
                        interrupt.raise();
                    }
                    ControlFlow::Continue(())
                };
                let targets = data.targets(&likelihood);
                let ended = rvm.fit_with(data.x.view(), &targets, &mut observer, &interrupt);
                assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
                assert_eq!(seen, at, "nothing is told after the interrupt");
            }
        }
    }
}

/// A fit to kernel values of the caller is distinguished from a design matrix in the file.
#[test]
fn external_kernel_values_are_distinguished_from_a_design_matrix() {
    let data = data(23, 40);
    let kernel = Kernel::Rbf(Rbf { gamma: 0.5.into() });
    let (own, _) = data.fit(&Rvm { kernel: kernel.clone(), ..Rvm::tipping2001() });
    let mut values = Array2::zeros((40, 40));
    kernel.block(data.x.view(), data.x.view(), values.view_mut());
    let (given, _) = Rvm { basis: Basis::Given, ..Rvm::tipping2001() }.fit(values.view(), &Targets::real(data.t.view())).unwrap();
    for centres in [None, Some(data.x.select(Axis(0), &given.relevance))] {
        let mut model = given.clone();
        model.n_features = if centres.is_some() { 2 } else { 40 };
        model.expansion.basis = FittedBasis::External { centres };
        let model = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(model.kernel(), None);
        let x = if model.n_features == 2 { data.x.view() } else { values.view() };
        assert_eq!(model.predict(x), Err(Error::ExternalKernel));
        let phi = values.select(Axis(1), &model.relevance);
        let prediction = model.predict_from_basis(phi.view()).unwrap();
        close("mean", prediction.mean.as_slice().unwrap(), own.predict(data.x.view()).unwrap().mean.as_slice().unwrap(), 1e-6);
        assert!(matches!(model.predict_from_basis(values.view()), Err(Error::Shape { .. })));
    }
    // For a given design matrix only the columns in the model are read.
    let mut holes = Array2::from_elem((40, 40), f64::NAN);
    for j in &given.relevance {
        holes.column_mut(*j).assign(&values.column(*j));
    }
    assert_eq!(given.predict(holes.view()), given.predict(values.view()));
    holes[[7, given.relevance[0]]] = f64::INFINITY;
    let bad = given.predict(holes.view());
    assert!(matches!(bad, Err(Error::NotFinite { row: 7, column, .. }) if column == given.relevance[0]), "{bad:?}");
}

#[test]
fn labels_survive_files_with_their_type() {
    let data = data(24, 30);
    let (mut model, _) = data.fit(&Rvm { likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() });
    let text = |s: &str| Label::Text(s.into());
    for classes in [
        vec![Label::Boolean(false), Label::Boolean(true)],
        vec![Label::Number(1.0), Label::Number(2.5)],
        vec![Label::Integer(i64::MIN), Label::Integer(1 << 60)],
        vec![text("1"), text("true")],
    ] {
        model.classes = classes.clone();
        let again = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(again.classes, classes);
    }
    assert_eq!(Label::Number(9.0).to_string(), "9");
    assert_eq!(Label::Integer(-9).to_string(), "-9");
    assert_eq!(Label::Boolean(true).to_string(), "true");
    assert_eq!(text("a b").to_string(), "a b");
}

#[test]
fn covariance_of_the_weights_gives_the_predictive_variance() {
    let data = data(25, 60);
    let (model, _) = data.fit(&Rvm { kernel: Kernel::Rbf(Rbf { gamma: 0.7.into() }), ..Rvm::tipping2001() });
    let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { panic!("a kernel was fitted") };
    let bias = usize::from(model.intercept_alpha.is_some());
    let mut phi = Array2::ones((60, centres.nrows() + bias));
    kernel.block(data.x.view(), centres.view(), phi.slice_mut(s![.., bias..]));
    let variance: Vec<f64> = (phi.dot(&model.weight_covariance()) * &phi).sum_axis(Axis(1)).to_vec();
    close("variance", &variance, model.predict(data.x.view()).unwrap().model_variance.as_slice().unwrap(), 1e-9);
}
