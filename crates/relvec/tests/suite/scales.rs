//! Learned kernels: what the evidence finds, what it does not change, and what is rejected.

use std::ops::ControlFlow;

use crate::support::close;
use ndarray::{Array1, Array2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Rows, real targets, classes, and the function behind them.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    labels: Vec<usize>,
    truth: Array1<f64>,
}

/// Returns data in which the first two of `features` matter, the second at half the width of the first.
fn two_matter(seed: u64, rows: usize, features: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, features), |_| random.random_range(-2.0..2.0));
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let truth = x.map_axis(Axis(1), |r| f64::sin(1.5 * r[0]) + f64::cos(3.0 * r[1]));
    let t = truth.mapv(|f| f + 0.2 * normal());
    let labels = truth.iter().map(|f| usize::from(*f + 0.3 * normal() > 0.0)).collect();
    Data { x, t, labels, truth }
}

impl Data {
    fn only(&self, features: &[usize]) -> Data {
        Data { x: self.x.select(Axis(1), features), t: self.t.clone(), labels: self.labels.clone(), truth: self.truth.clone() }
    }

    fn fit(&self, rvm: &Rvm) -> (Model, Report) {
        let targets = match rvm.likelihood {
            Likelihood::Gaussian(_) => Targets::real(self.t.view()),
            _ => Targets::classes(&self.labels, 2),
        };
        rvm.fit(self.x.view(), &targets).unwrap_or_else(|e| panic!("{rvm:?}: {e}"))
    }

    /// Returns the root mean square errors of the targets and of the function behind them.
    fn errors(&self, model: &Model) -> (f64, f64) {
        let mean = model.predict(self.x.view()).unwrap().mean;
        let root = |truth: &Array1<f64>| (&mean - truth).mapv(|e| e * e).mean().unwrap().sqrt();
        (root(&self.t), root(&self.truth))
    }

    /// Returns the mean negative log probability of the labels.
    fn log_loss(&self, model: &Model) -> f64 {
        let p = model.predict_probability(self.x.view(), Moderation::Posterior).unwrap();
        self.labels.iter().enumerate().map(|(n, k)| -p[[n, *k]].ln()).sum::<f64>() / self.labels.len() as f64
    }
}

fn rbf(rule: GammaRule) -> Kernel {
    Rbf { gamma: Gamma::Rule(rule) }.into()
}

fn rvm(kernel: Kernel) -> Rvm {
    Rvm { kernel, ..Rvm::tipping2001() }
}

fn gammas(model: &Model) -> Vec<f64> {
    model.kernel().unwrap().parameters().into_iter().map(|(_, v)| v).collect()
}

fn largest(v: &[f64]) -> f64 {
    v.iter().copied().fold(0.0, f64::max)
}

fn trial(report: &Report) -> &KernelTrial {
    let search = report.kernel_search.as_ref().expect("a kernel was learnt");
    &search.tried[search.chosen]
}

#[test]
fn useless_features_are_found_in_regression() {
    let test = two_matter(2, 2000, 10);
    for seed in [1, 21, 22] {
        let data = two_matter(seed, 250, 10);
        let (model, report) = data.fit(&rvm(rbf(GammaRule::EvidenceArd)));
        let gamma = gammas(&model);
        assert!(largest(&gamma[2..]) < 0.05 * gamma[0].min(gamma[1]), "{seed}: {gamma:?}");
        assert!(gamma[1] > 2.0 * gamma[0], "{seed}: {gamma:?}");
        let (oracle, _) = data.only(&[0, 1]).fit(&rvm(rbf(GammaRule::EvidenceArd)));
        let (all, two) = (test.errors(&model), test.only(&[0, 1]).errors(&oracle));
        assert!(all.0 < 1.05 * two.0, "{seed}: {all:?}, with the two that matter alone {two:?}");
        // Errors are measured against the function itself, because the noise of the targets might hide a difference.
        assert!(all.1 < 1.35 * two.1, "{seed}: {all:?}, with the two that matter alone {two:?}");
        // The process uses all rows, and its noise variance is correct.
        let process = trial(&report).process.clone();
        assert!(process.rows == 250 && process.gain > 20.0, "{seed}: {process:?}");
        // Noise of 0.2 has a variance of 0.04.
        assert!((0.02..0.08).contains(&process.noise_variance[0]), "{seed}: {process:?}");
    }
}

#[test]
fn useless_features_are_found_in_classification() {
    let (data, test) = (two_matter(3, 300, 10), two_matter(4, 2000, 10));
    let classes = |kernel| Rvm { likelihood: Bernoulli::default().into(), ..rvm(kernel) };
    let (model, report) = data.fit(&classes(rbf(GammaRule::EvidenceArd)));
    let gamma = gammas(&model);
    assert!(largest(&gamma[2..]) < 0.1 * gamma[0].min(gamma[1]), "{gamma:?}");
    let (oracle, _) = data.only(&[0, 1]).fit(&classes(rbf(GammaRule::EvidenceArd)));
    let (all, two) = (test.log_loss(&model), test.only(&[0, 1]).log_loss(&oracle));
    assert!(all < 1.05 * two, "{all}, with the two that matter alone {two}");
    assert!(trial(&report).process.gain > 20.0);
}

/// Friedman (1991): 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4, noise of variance 1, and five more features.
/// Tipping (2001) has a mean squared error of 2.80 with 240 rows and one width.
#[test]
fn friedman_function_is_learned_from_few_rows() {
    let draw = |seed: u64, rows: usize| {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let x = Array2::from_shape_fn((rows, 10), |_| random.random_range(0.0..1.0));
        let truth: Array1<f64> = x.map_axis(Axis(1), |r| {
            10.0 * (std::f64::consts::PI * r[0] * r[1]).sin() + 20.0 * (r[2] - 0.5).powi(2) + 10.0 * r[3] + 5.0 * r[4]
        });
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let t = truth.mapv(|f| f + normal());
        Data { x, t, labels: vec![], truth }
    };
    let test = draw(100, 1000);
    let errors: Vec<f64> = (0..3)
        .map(|seed| {
            let (model, _) = draw(seed, 240).fit(&rvm(rbf(GammaRule::EvidenceArd)));
            test.errors(&model).1.powi(2)
        })
        .collect();
    assert!(errors.iter().all(|e| *e < 0.6), "{errors:?}");
}

/// With many rows the kernel is learned from more rows than a dense process takes, under either prior and for any
/// likelihood.
#[test]
fn kernel_of_many_rows_is_learned_by_a_sparse_process() {
    let data = two_matter(14, 3200, 4);
    let settings = |likelihood: Likelihood| Rvm {
        likelihood,
        dictionary: Dictionary::Size(60),
        weight_prior: WeightPrior::Ard,
        ..rvm(rbf(GammaRule::Evidence))
    };
    for likelihood in [Likelihood::from(Gaussian::default()), Bernoulli::default().into()] {
        let (model, report) = data.fit(&settings(likelihood.clone()));
        let search = report.kernel_search.clone().unwrap();
        assert_eq!((search.rows, search.more_rows, search.more_centres), (1000, 3200, 500));
        let gamma = gammas(&model);
        assert!(largest(&gamma[2..]) < 0.1 * gamma[0].min(gamma[1]), "{gamma:?}");
        // Twice the frequency means a quarter of the squared length.
        assert!(gamma[1] > 2.0 * gamma[0], "{gamma:?}");
        if matches!(likelihood, Likelihood::Gaussian(_)) {
            let learned = settings(likelihood).learn_kernel(data.x.view(), &Targets::real(data.t.view())).unwrap();
            assert_eq!(Some(&learned.kernel), model.kernel());
        }
    }
}

#[test]
fn every_kernel_with_parameters_is_learned() {
    let data = two_matter(5, 60, 3);
    for name in Kernel::NAMES {
        let plain = Kernel::from_name(name).unwrap();
        // Periodic kernels are learned as sums, in kernel_sums.rs.
        if plain.gamma().is_none() || !plain.is_covariance() || *name == "periodic" {
            continue;
        }
        for likelihood in [Likelihood::from(Gaussian::default()), Bernoulli::default().into()] {
            let mut reached = f64::NEG_INFINITY;
            for rule in ["evidence-one", "evidence"] {
                let mut json = serde_json::to_value(&plain).unwrap();
                json[*name]["gamma"] = rule.into();
                if let Some(coef0) = json[*name].get_mut("coef0") {
                    *coef0 = 0.5.into();
                }
                let kernel: Kernel = serde_json::from_value(json).unwrap();
                let (model, report) = data.fit(&Rvm { likelihood: likelihood.clone(), ..rvm(kernel) });
                let trial = trial(&report);
                let names: Vec<&str> = trial.parameters.iter().map(|(name, _)| name.as_str()).collect();
                // A single width is in units of each feature's spread.
                assert_eq!(names[0], "gamma[0]");
                assert!(trial.parameters.iter().all(|(_, v)| v.is_finite() && *v > 0.0), "{trial:?}");
                assert!(model.log_evidence.is_some_and(f64::is_finite));
                assert!(trial.evaluations > 5 && trial.evaluations < 250, "{trial:?}");
                let own = trial.process.log_posterior;
                // There are more kernels to choose from than with one width. For classes, held-out rows choose.
                let classes = likelihood.is_for_classes();
                assert!(classes || rule == "evidence-one" || own >= reached - 1e-6, "{name} {rule}: {own} after {reached}");
                reached = own;
            }
        }
    }
}

#[test]
fn the_kernel_of_highest_evidence_is_chosen() {
    // A straight line and a parabola.
    let x = Array2::from_shape_fn((60, 1), |(i, _)| i as f64 / 20.0 - 1.5);
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let t: Array1<f64> = x.column(0).mapv(|x| 1.0 + x - 2.0 * x * x + 0.1 * normal());
    let poly = |degree| Kernel::from(Poly { gamma: 1.0.into(), coef0: 1.0, degree });
    let kernels = vec![Linear {}.into(), poly(2), poly(5), rbf(GammaRule::Evidence)];
    let fit = |kernels: Vec<Kernel>| {
        let rvm = Rvm { kernels, ..rvm(rbf(GammaRule::Scale)) };
        rvm.fit(x.view(), &Targets::real(t.view())).unwrap()
    };
    let (model, report) = fit(kernels.clone());
    let search = report.kernel_search.unwrap();
    let names: Vec<&str> = search.tried.iter().map(|t| t.kernel.as_str()).collect();
    assert_eq!(names, ["linear", "poly", "poly", "rbf"]);
    let degrees: Vec<Option<u32>> = search.tried.iter().map(|t| t.degree).collect();
    assert_eq!(degrees, [None, Some(2), Some(5), None]);
    assert_eq!(search.chosen, 1, "{search:?}");
    assert_eq!(model.kernel(), Some(&poly(2)));
    let reached = |trial: &KernelTrial| trial.process.log_posterior;
    assert!(search.tried.iter().all(|tried| reached(tried) <= reached(&search.tried[1])));
    // A single kernel is not compared, and its evidence is reported.
    let (alone, report) = fit(vec![poly(2)]);
    assert_eq!(alone, model);
    assert_eq!(report.kernel_search.unwrap().tried.len(), 1);
}

#[test]
fn constant_features_have_no_effect_and_equal_ones_share_it() {
    let data = two_matter(6, 120, 3);
    let mut x = Array2::zeros((120, 6));
    x.slice_mut(s![.., ..3]).assign(&data.x);
    x.column_mut(3).fill(7.0);
    x.column_mut(4).assign(&data.x.column(1));
    let twice = Data { x, ..data.only(&[0, 1, 2]) };
    for name in ["rbf", "laplacian", "matern52", "poly"] {
        let kernel = |d: usize| {
            let gamma = Gamma::Rule(GammaRule::EvidenceArd);
            let mut kernel = serde_json::json!({ name: { "gamma": gamma } });
            if name == "poly" {
                kernel[name]["coef0"] = 1.0.into();
            }
            assert!(d > 0);
            serde_json::from_value::<Kernel>(kernel).unwrap()
        };
        let (model, report) = twice.fit(&rvm(kernel(6)));
        let gamma = gammas(&model);
        assert!(gamma.iter().all(|g| g.is_finite() && *g > 0.0), "{name}: {gamma:?}");
        assert!(model.log_evidence.unwrap().is_finite());
        assert!(report.adjustments.constant_features.contains(&3) && report.adjustments.constant_features.contains(&5));
        if name == "poly" {
            continue;
        }
        // A constant feature has almost no effect, and equal features share the effect of one.
        assert!(gamma[3] < 1e-6 * gamma[0] && gamma[5] < 1e-6 * gamma[0], "{name}: {gamma:?}");
        let (once, _) = data.fit(&rvm(kernel(3)));
        if name == "rbf" {
            let (one, both) = (gammas(&once)[1], gamma[1] + gamma[4]);
            assert!((both / one).ln().abs() < 0.4, "{both} shared, {one} alone");
        }
    }
}

#[test]
fn units_and_order_do_not_matter() {
    let data = two_matter(7, 120, 3);
    let fit = |x: &Array2<f64>, t: &Array1<f64>, threads| {
        let rvm = Rvm { threads, ..rvm(rbf(GammaRule::EvidenceArd)) };
        rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0
    };
    let model = fit(&data.x, &data.t, None);
    let order: Vec<usize> = (0..120).map(|i| (i * 77) % 120).collect();
    let turned = fit(&data.x.select(Axis(0), &order), &data.t.select(Axis(0), &order), Some(1));
    assert_eq!(gammas(&turned), gammas(&model));
    assert_eq!(turned.log_evidence.unwrap(), model.log_evidence.unwrap());
    let mut scaled = data.x.clone();
    scaled.column_mut(1).mapv_inplace(|v| 1e6 * v + 3e6);
    let scaled = gammas(&fit(&scaled, &(&data.t * 1e-3), None));
    let own = gammas(&model);
    close("gamma of the others", &[scaled[0].ln(), scaled[1].ln()], &[own[0].ln(), (own[1] * 1e-12).ln()], 1e-3);
}

#[test]
fn weights_equal_repeated_rows() {
    let data = two_matter(8, 60, 2);
    let weights = Array1::from_shape_fn(60, |i| (i % 3) as f64);
    let rows: Vec<usize> = (0..60).flat_map(|i| vec![i; i % 3]).collect();
    let rvm = rvm(rbf(GammaRule::EvidenceArd));
    let weighted = Targets::real(data.t.view()).with_weights(weights.view());
    let (weighted, _) = rvm.fit(data.x.view(), &weighted).unwrap();
    let t = data.t.select(Axis(0), &rows);
    let (repeated, _) = rvm.fit(data.x.select(Axis(0), &rows).view(), &Targets::real(t.view())).unwrap();
    assert_eq!(gammas(&weighted), gammas(&repeated));
    assert_eq!(weighted.log_evidence, repeated.log_evidence);
}

#[test]
fn few_rows_and_constant_targets_are_fitted() {
    for rows in [2, 3, 7] {
        let data = two_matter(9, rows, 3);
        for rule in [GammaRule::Evidence, GammaRule::EvidenceArd] {
            let (model, _) = data.fit(&rvm(rbf(rule)));
            assert!(gammas(&model).iter().all(|g| g.is_finite() && *g > 0.0));
            let constant = Data { t: Array1::from_elem(rows, 3.0), ..data.only(&[0, 1, 2]) };
            let (model, report) = constant.fit(&rvm(rbf(rule)));
            assert!(report.adjustments.constant_target);
            assert!((model.predict(data.x.view()).unwrap().mean[0] - 3.0).abs() < 1e-9);
        }
    }
    // All features are equal on every row, so that nothing can be learned.
    let same = Data { x: Array2::from_elem((20, 2), 5.0), ..two_matter(9, 20, 2) };
    let (model, _) = same.fit(&rvm(rbf(GammaRule::EvidenceArd)));
    assert!(gammas(&model).iter().all(|g| g.is_finite() && *g > 0.0));
}

#[test]
fn limits_and_interrupts_end_the_learning() {
    let data = two_matter(10, 1500, 6);
    let targets = Targets::real(data.t.view());
    let ard = rvm(rbf(GammaRule::EvidenceArd));
    // Without time the fit ends at once with the initial kernel, and reports it.
    let (model, report) = data.fit(&Rvm { time_limit: Some(1e-3), ..ard.clone() });
    assert_eq!(report.status, Status::TimeLimit);
    assert!(model.log_evidence.unwrap().is_finite() && trial(&report).evaluations < 10, "{report:?}");
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = ard.fit_with(data.x.view(), &targets, &mut |_| ControlFlow::Continue(()), &interrupt);
    assert_eq!(error.unwrap_err(), Error::Interrupted);
    // With little memory fewer rows are used. With almost none, the error names what needs it.
    let small = Rvm { memory_limit: Some(8 << 20), dictionary: Dictionary::Size(50), ..ard.clone() };
    let (model, report) = data.fit(&small);
    let search = report.kernel_search.unwrap();
    assert!(search.rows < 1000 && model.log_evidence.unwrap().is_finite(), "{search:?}");
    let error = Rvm { memory_limit: Some(400 << 10), ..small }.fit(data.x.view(), &targets).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}

#[test]
fn kernels_are_learned_from_rows_only() {
    let kernel = rbf(GammaRule::Evidence);
    let error = Statistics::new(&kernel, Array2::zeros((2, 1)).view()).unwrap_err();
    assert!(error.to_string().contains("evidence"), "{error}");
    let error = kernel.resolve(&DataScale { features: 2, variance: 1.0 }).unwrap_err();
    assert!(
        matches!(&error, Error::Parameter { name, found, .. } if name == "kernel.rbf.gamma" && found == "evidence"),
        "{error}"
    );
    let text: Kernel = serde_json::from_str(r#"{"rbf": {"gamma": "evidence-ard"}}"#).unwrap();
    assert_eq!(text, rbf(GammaRule::EvidenceArd));
    assert!(serde_json::from_str::<Kernel>(r#"{"rbf": {"gamma": "evidence_ard"}}"#).is_err());
    // A kernel without continuous parameters cannot be learned.
    for name in ["linear", "linear_spline"] {
        let error = serde_json::from_str::<Kernel>(&format!(r#"{{"{name}": {{"gamma": "evidence"}}}}"#)).unwrap_err();
        assert!(error.to_string().contains("gamma"), "{error}");
    }
}

/// Returns a fit with a dictionary of rows, whose centres may be learned.
fn centres(rule: CentreRule, dictionary: usize) -> Rvm {
    Rvm { centres: rule, dictionary: Dictionary::Size(dictionary), ..rvm(rbf(GammaRule::Evidence)) }
}

#[test]
fn learned_centres_raise_the_evidence_and_are_recorded() {
    let (data, test) = (two_matter(11, 600, 2), two_matter(12, 1000, 2));
    for likelihood in [Likelihood::from(Gaussian::default()), Bernoulli::default().into()] {
        let fit = |rule| data.fit(&Rvm { likelihood: likelihood.clone(), ..centres(rule, 12) });
        let ((fixed, _), (moved, report)) = (fit(CentreRule::Fixed), fit(CentreRule::Learned));
        let search = report.centre_search.expect("centres were moved");
        assert!(search.kept && search.moved == 12 && search.rows == 600, "{search:?}");
        assert_eq!(search.fixed_log_evidence, fixed.log_evidence.unwrap());
        assert_eq!(search.learned_log_evidence, moved.log_evidence.unwrap());
        assert!(moved.log_evidence.unwrap() > fixed.log_evidence.unwrap() + 1.0, "{search:?}");
        assert!(moved.learned_centres && !fixed.learned_centres);
        assert!(moved.relevance.iter().all(|k| *k < 12));
        let FittedBasis::Kernel { centres, .. } = &moved.expansion.basis else { panic!("a kernel") };
        let is_row = |c: ndarray::ArrayView1<f64>| data.x.outer_iter().any(|row| row == c);
        assert!(!centres.outer_iter().any(is_row));
        if fixed.noise_std().is_some() {
            assert!(test.errors(&moved).1 < test.errors(&fixed).1);
        }
        // The file records learned centres, and files of other models do not mention them.
        let text = moved.to_json().unwrap();
        assert!(text.contains("\"learned_centres\"") && Model::from_json(&text).unwrap() == moved);
        assert!(!fixed.to_json().unwrap().contains("learned_centres"));
    }
}

/// Centres are learned from five rows per number that is learned, if there are as many rows.
#[test]
fn centres_are_learned_from_five_rows_per_number() {
    let data = two_matter(15, 8700, 19);
    let (model, report) = data.fit(&centres(CentreRule::Learned, 85));
    let search = report.centre_search.expect("centres were moved");
    assert_eq!((search.moved, search.rows), (85, 5 * 85 * 20));
    // Both optimisations ran.
    assert!(search.evaluations > 25, "{search:?}");
    assert!(search.kept && model.log_evidence.unwrap() > search.fixed_log_evidence, "{search:?}");
}

/// For pure noise, learned centres gain almost nothing or nothing, and the evidence never falls.
#[test]
fn learned_centres_are_used_only_if_the_evidence_rises() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(3);
    let mut kept = vec![];
    for rows in (5..25).chain([200]) {
        let x = Array2::from_shape_fn((rows, 2), |_| random.random_range(-1.0..1.0));
        let t = Array1::from_shape_simple_fn(rows, || StandardNormal.sample(&mut random));
        let data = Data { x, truth: t.clone(), t, labels: vec![] };
        let of = |rule| Rvm { kernel: rbf(GammaRule::Scale), sparsity: 2.0.into(), ..centres(rule, 20) };
        let (fixed, _) = data.fit(&of(CentreRule::Fixed));
        let (model, report) = data.fit(&of(CentreRule::Learned));
        // Each relevance vector costs 2 nats.
        let objective = |model: &Model| model.log_evidence.unwrap() - 2.0 * model.relevance.len() as f64;
        let (own, other) = (objective(&model), objective(&fixed));
        assert!(own >= other - 1e-9, "{rows} rows: {own} below {other}");
        if let Some(search) = report.centre_search {
            assert_eq!(search.kept, model.learned_centres);
            assert_eq!(search.kept, search.learned_log_evidence > search.fixed_log_evidence);
            assert!(search.kept || model.expansion == fixed.expansion);
            kept.push(search.kept);
        }
    }
    assert!(!kept.is_empty(), "no centres were moved");
}

#[test]
fn dictionary_larger_than_the_data_equals_the_data() {
    let data = two_matter(13, 40, 2);
    let (model, report) = data.fit(&centres(CentreRule::Learned, 500));
    let search = report.centre_search.expect("centres were moved");
    assert_eq!((search.moved, search.rows), (40, 40));
    assert!(model.log_evidence.unwrap() >= search.fixed_log_evidence);
    let same = data.fit(&Rvm { dictionary: Dictionary::Rule(DictionaryRule::All), ..centres(CentreRule::Learned, 1) }).0;
    assert_eq!(same, model);
}

#[test]
fn given_kernel_is_fixed_while_centres_are_learned() {
    let data = two_matter(14, 200, 2);
    let kernels: [Kernel; 4] = [
        Matern52 { gamma: vec![0.5, 0.9].into() }.into(),
        Laplacian { gamma: 0.5.into() }.into(),
        Poly { gamma: 0.3.into(), coef0: 1.0, degree: 3 }.into(),
        Linear {}.into(),
    ];
    for kernel in kernels {
        let rvm = Rvm { kernel: kernel.clone(), ..centres(CentreRule::Learned, 8) };
        let (model, report) = data.fit(&rvm);
        assert_eq!(model.kernel(), Some(&kernel));
        assert!(report.kernel_search.is_none());
        let search = report.centre_search.expect("centres were moved");
        assert!(model.log_evidence.unwrap() >= search.fixed_log_evidence, "{kernel:?}: {search:?}");
        // The order of rows and the number of threads do not matter.
        let order: Vec<usize> = (0..200).map(|i| (i * 77) % 200).collect();
        let turned = Data { x: data.x.select(Axis(0), &order), t: data.t.select(Axis(0), &order), ..data.only(&[0, 1]) };
        assert_eq!(turned.fit(&Rvm { threads: Some(1), ..rvm }).0.log_evidence.unwrap(), model.log_evidence.unwrap());
    }
}

#[test]
fn unsupported_learning_is_rejected() {
    let refused = |rvm: Rvm, name: &str, text: &str| {
        let error = rvm.check().unwrap_err();
        assert!(matches!(&error, Error::Parameter { name: found, .. } if found == name), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    let learned = || Rvm { centres: CentreRule::Learned, ..Rvm::tipping2001() };
    refused(Rvm { kernel: LinearSpline {}.into(), ..learned() }, "centres", "linear_spline");
    refused(Rvm { kernels: vec![Rbf::default().into(), LinearSpline {}.into()], ..learned() }, "centres", "linear_spline");
    refused(Rvm { basis: Basis::Given, ..learned() }, "centres", "design matrix");
    refused(Rvm { landmarks: Landmarks::Given(Centres(Array2::zeros((2, 1)))), ..learned() }, "centres", "given");
    refused(Rvm { kernels: vec![Rbf { gamma: 0.0.into() }.into()], ..Rvm::tipping2001() }, "kernel.rbf.gamma", "0");
    for name in CentreRule::NAMES {
        let json = format!("\"{name}\"");
        assert_eq!(serde_json::from_str::<CentreRule>(&json).unwrap(), CentreRule::from_name(name).unwrap());
    }
    assert!(matches!(CentreRule::from_name("free"), Err(Error::UnknownName { .. })));
}

/// The relevance of a feature is gamma times its variance, as a share. For a constant feature it is 0.
#[test]
fn relevance_of_features_does_not_depend_on_units() {
    let data = two_matter(15, 100, 3);
    let relevance =
        |kernel: Kernel, x: &Array2<f64>| rvm(kernel).fit(x.view(), &Targets::real(data.t.view())).unwrap().0.feature_relevance;
    let variance = |d: usize| data.x.column(d).var(0.0);
    let gamma = [0.4, 2.0, 1e-9];
    let expected: Vec<f64> = (0..3).map(|d| gamma[d] * variance(d)).collect();
    let total: f64 = expected.iter().sum();
    let found = relevance(Rbf { gamma: gamma.to_vec().into() }.into(), &data.x);
    close("relevance", &found, &expected.iter().map(|v| v / total).collect::<Vec<_>>(), 1e-12);
    let found = relevance(Laplacian { gamma: gamma.to_vec().into() }.into(), &data.x);
    let expected: Vec<f64> = (0..3).map(|d| gamma[d] * variance(d).sqrt()).collect();
    let total: f64 = expected.iter().sum();
    close("relevance", &found, &expected.iter().map(|v| v / total).collect::<Vec<_>>(), 1e-12);
    let mut constant = data.x.clone();
    constant.column_mut(0).fill(1e9);
    let found = relevance(Rbf { gamma: gamma.to_vec().into() }.into(), &constant);
    assert_eq!(found[0], 0.0);
    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(relevance(Rbf { gamma: 1.0.into() }.into(), &data.x).is_empty());
    assert!(relevance(Linear {}.into(), &data.x).is_empty());
}
