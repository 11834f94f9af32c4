//! Decisions of classifiers: priors, costs and rejection.

use ndarray::{Array1, Array2, ArrayView1, array};
use rand::{RngExt, SeedableRng};
use relvec::*;

/// Returns rows around K points on a line, `sizes[k]` of them of class k.
fn clouds(sizes: &[usize], seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let labels: Vec<usize> = sizes.iter().enumerate().flat_map(|(k, size)| vec![k; *size]).collect();
    // The sum of four uniform numbers is approximately Gaussian.
    let mut noise = || (0..4).map(|_| random.random_range(-1.0..1.0)).sum::<f64>();
    let rows: Vec<f64> = labels.iter().flat_map(|k| [1.5 * *k as f64 + noise(), noise()]).collect();
    (Array2::from_shape_vec((labels.len(), 2), rows).unwrap(), labels)
}

fn rvm(multi_class: MultiClass) -> Rvm {
    Rvm { kernel: Rbf { gamma: 0.3.into() }.into(), likelihood: Bernoulli::default().into(), multi_class, ..Rvm::tipping2001() }
}

fn svm() -> Svm {
    Svm { kernel: Rbf { gamma: 0.3.into() }.into(), probability: true, ..Svm::default() }
}

fn two(sizes: [usize; 2], seed: u64) -> (Model, Array2<f64>, Vec<usize>) {
    let (x, labels) = clouds(&sizes, seed);
    let (model, _) = rvm(MultiClass::Auto).fit(x.view(), &Targets::classes(&labels, 2)).unwrap();
    (model, x, labels)
}

/// Returns every kind of classifier with probabilities, and rows to classify.
fn classifiers() -> Vec<(&'static str, Model, Array2<f64>)> {
    let (model, x, _) = two([60, 20], 1);
    let (three, labels) = clouds(&[50, 30, 10], 2);
    let of_three = Targets::classes(&labels, 3);
    let by = |rule| rvm(rule).fit(three.view(), &of_three).unwrap().0;
    let (svc, _) = svm().fit(three.view(), &of_three).unwrap();
    let (svc_two, _) = svm().fit(x.view(), &Targets::classes(&[vec![0; 60], vec![1; 20]].concat(), 2)).unwrap();
    vec![
        ("two classes", model, x.clone()),
        ("joint", by(MultiClass::Joint), three.clone()),
        ("one_vs_rest", by(MultiClass::OneVsRest), three.clone()),
        ("one_vs_one", by(MultiClass::OneVsOne), three.clone()),
        ("svm", svc, three),
        ("svm of two", svc_two, x),
    ]
}

/// The odds of two classes change by the ratio of their prior ratios.
#[test]
fn odds_are_shifted_by_the_ratio_of_the_priors() {
    for (name, model, x) in classifiers() {
        let k = model.n_classes().unwrap();
        let frequencies = if k == 2 { vec![0.75, 0.25] } else { vec![50.0 / 90.0, 30.0 / 90.0, 10.0 / 90.0] };
        assert!(model.class_frequencies.iter().zip(&frequencies).all(|(a, b)| (a - b).abs() < 1e-15), "{name}");
        let prior = if k == 2 { vec![0.1, 0.9] } else { vec![0.2, 0.1, 0.7] };
        let before = model.predict_log_probability(x.view(), Moderation::Posterior).unwrap();
        let after = model.shift_prior(before.clone(), &prior).unwrap();
        for (old, new) in before.outer_iter().zip(after.outer_iter()) {
            assert!((new.mapv(f64::exp).sum() - 1.0).abs() < 1e-12, "{name}: {new}");
            for l in 1..k {
                let ratio = (prior[l] / prior[0]).ln() - (frequencies[l] / frequencies[0]).ln();
                assert!(((new[l] - new[0]) - (old[l] - old[0]) - ratio).abs() < 1e-9, "{name}: {old} to {new}");
            }
        }
        let same = model.shift_prior(before.clone(), &model.class_frequencies).unwrap();
        assert!((&same - &before).iter().all(|d| d.abs() < 1e-9), "{name}");
        let decided = model.decide(x.view(), &Decision { prior: Some(prior), ..Decision::default() }).unwrap();
        assert_eq!(decided.probabilities, after.mapv(f64::exp), "{name}");
    }
}

/// The default decision is the most probable class, which for an RVM equals `predict_class`.
#[test]
fn default_decision_is_the_prediction() {
    for (name, model, x) in classifiers() {
        let decided = model.decide(x.view(), &Decision::default()).unwrap();
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        assert_eq!(decided.probabilities, p, "{name}");
        for (n, row) in p.outer_iter().enumerate() {
            assert!(row.iter().all(|v| *v <= row[decided.label[n]]), "{name}");
            assert_eq!(decided.probability[n], row[decided.label[n]], "{name}");
        }
        assert!(decided.rejected.iter().all(|r| !r) && decided.expected_cost.is_none(), "{name}");
        if model.margins.is_none() {
            assert_eq!(decided.label, model.predict_class(x.view()).unwrap(), "{name}");
        }
    }
}

/// Priors of the population improve a classifier that was trained on equally frequent classes.
#[test]
fn correct_prior_improves_probabilities_and_decisions() {
    let (model, _, _) = two([150, 150], 3);
    let (x, labels) = clouds(&[1800, 200], 4);
    let before = model.predict_log_probability(x.view(), Moderation::Posterior).unwrap();
    let after = model.shift_prior(before.clone(), &[0.9, 0.1]).unwrap();
    let loss = |log: &Array2<f64>| labels.iter().enumerate().map(|(n, k)| -log[[n, *k]]).sum::<f64>() / labels.len() as f64;
    assert!(loss(&after) < 0.8 * loss(&before), "{} and {}", loss(&after), loss(&before));
    let errors = |decision: &Decision| {
        let label = model.decide(x.view(), decision).unwrap().label;
        label.iter().zip(&labels).filter(|(a, b)| a != b).count()
    };
    let (known, unknown) = (Decision { prior: Some(vec![0.9, 0.1]), ..Decision::default() }, Decision::default());
    assert!(errors(&known) < errors(&unknown), "{} and {}", errors(&known), errors(&unknown));
}

#[test]
fn tiny_priors_and_probabilities_give_finite_odds() {
    let (model, _, _) = two([60, 20], 5);
    let shifted = |row: [f64; 2], prior: [f64; 2]| {
        let log = model.shift_prior(Array2::from_shape_vec((1, 2), row.to_vec()).unwrap(), &prior).unwrap();
        [log[[0, 0]], log[[0, 1]]]
    };
    let never = f64::NEG_INFINITY;
    assert_eq!(shifted([-2000.0, 0.0], [1.0, 0.0]), [0.0, never]);
    assert_eq!(shifted([never, 0.0], [1.0, 0.0]), [0.0, never]);
    // The log of 1e-300, less the log of the ratio of the frequencies, 3.
    let [first, second] = shifted([0.0, -1500.0], [1e-300, 1.0 - 1e-300]);
    let odds = -1500.0 + 300.0 * 10f64.ln() + 3f64.ln();
    assert!(first == 0.0 && (second - odds).abs() < 1e-9, "{first} {second} {odds}");
    // Arrays in column-major order.
    let (log, prior) = (array![[-2.0, -0.1, -0.5], [-0.2, -3.0, -1.0]].reversed_axes(), [0.2, 0.8]);
    let rows = Array2::from_shape_fn((3, 2), |place| log[place]);
    assert_eq!(model.shift_prior(log, &prior), model.shift_prior(rows, &prior));
    let far = array![[1e6, -1e6]];
    let decided = model.decide(far.view(), &Decision { prior: Some(vec![1e-200, 1.0 - 1e-200]), ..Decision::default() }).unwrap();
    assert!(decided.probabilities.iter().all(|p| p.is_finite()) && decided.label == [1]);
}

/// Frequencies are sums of weights, for any order of the rows.
#[test]
fn class_frequencies_are_sums_of_weights() {
    let (x, labels) = clouds(&[20, 15, 10], 6);
    let weights: Array1<f64> = (0..45).map(|i| 0.1 + 0.01 * i as f64).collect();
    let shares: Vec<f64> = (0..3)
        .map(|k| labels.iter().zip(&weights).filter(|(l, _)| **l == k).map(|(_, w)| w).sum::<f64>() / weights.sum())
        .collect();
    let backwards: Vec<usize> = (0..45).rev().collect();
    let (turned, own) = (x.select(ndarray::Axis(0), &backwards), weights.select(ndarray::Axis(0), &backwards));
    let turned_labels: Vec<usize> = backwards.iter().map(|n| labels[*n]).collect();
    let targets = Targets::classes(&labels, 3).with_weights(weights.view());
    let turned_targets = Targets::classes(&turned_labels, 3).with_weights(own.view());
    let by = |rule, x: &Array2<f64>, t: &Targets| rvm(rule).fit(x.view(), t).unwrap().0;
    for rule in [MultiClass::Joint, MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let (one, other) = (by(rule, &x, &targets), by(rule, &turned, &turned_targets));
        assert_eq!(one.class_frequencies, other.class_frequencies);
        assert!(one.class_frequencies.iter().zip(&shares).all(|(a, b)| (a - b).abs() < 1e-15), "{:?}", one.class_frequencies);
    }
    // Class weights do not enter the probabilities of an SVM, and so not its priors.
    let heavy = Svm { class_weights: ClassWeights::Given(vec![1.0, 5.0, 1.0]), ..svm() };
    let (model, _) = heavy.fit(x.view(), &targets).unwrap();
    assert!(model.class_frequencies.iter().zip(&shares).all(|(a, b)| (a - b).abs() < 1e-15));
    // Rows of weight 0 do not count, and no share vanishes beside huge weights.
    let mut extreme = Array1::from_elem(45, 2f64.powi(53));
    extreme.iter_mut().take(20).for_each(|w| *w = 0.0);
    extreme[0] = 1e-300;
    let targets = Targets::classes(&labels, 3).with_weights(extreme.view());
    let (model, _) = svm().fit(x.view(), &targets).unwrap();
    assert!(model.class_frequencies[0] > 0.0 && (model.class_frequencies[1] - 0.6).abs() < 1e-12);
}

/// No other decision has a lower expected cost, and errors of higher cost are made less often.
#[test]
fn decisions_minimise_the_expected_cost() {
    for (name, model, x) in classifiers() {
        let k = model.n_classes().unwrap();
        let costs = Array2::from_shape_fn((k, k), |(t, d)| if t == d { 0.1 * t as f64 } else { 1.0 + (2 * t + d) as f64 });
        let decided = model.decide(x.view(), &Decision { costs: Some(costs.clone()), ..Decision::default() }).unwrap();
        let expected = decided.expected_cost.unwrap();
        for (n, p) in decided.probabilities.outer_iter().enumerate() {
            let of = |d: usize| (0..k).map(|t| p[t] * costs[[t, d]]).sum::<f64>();
            assert!((expected[n] - of(decided.label[n])).abs() < 1e-12, "{name}");
            assert!((0..k).all(|d| of(d) >= expected[n] - 1e-12), "{name}");
            assert_eq!(decided.probability[n], p[decided.label[n]], "{name}");
        }
        assert!(decided.rejected.iter().all(|r| !r), "{name}");
        // With equal costs of all errors, the decision is the most probable class, and its expected cost is the
        // probability of the other classes.
        let alike = Array2::from_shape_fn((k, k), |(t, d)| f64::from(u8::from(t != d)));
        let decided = model.decide(x.view(), &Decision { costs: Some(alike), ..Decision::default() }).unwrap();
        assert_eq!(decided.label, model.decide(x.view(), &Decision::default()).unwrap().label, "{name}");
        let sum = &decided.expected_cost.unwrap() + &decided.probability;
        assert!(sum.iter().all(|v| (v - 1.0).abs() < 1e-12), "{name}");
    }
    let (model, x, _) = two([60, 60], 7);
    let seconds: Vec<usize> = [0.1, 1.0, 10.0, 1e12]
        .map(|missed| {
            let decision = Decision { costs: Some(array![[0.0, 1.0], [missed, 0.0]]), ..Decision::default() };
            model.decide(x.view(), &decision).unwrap().label.iter().sum()
        })
        .to_vec();
    assert!(seconds.windows(2).all(|w| w[0] <= w[1]) && seconds[0] < seconds[2] && seconds[3] == 120, "{seconds:?}");
}

#[test]
fn uncertain_rows_are_rejected() {
    let (model, _, _) = two([150, 150], 8);
    let (x, labels) = clouds(&[300, 300], 9);
    let decide = |reject| model.decide(x.view(), &Decision { reject: Some(reject), ..Decision::default() }).unwrap();
    let error_of_kept = |decided: &Decisions| {
        let kept: Vec<usize> = (0..600).filter(|n| !decided.rejected[*n]).collect();
        kept.iter().filter(|n| decided.label[**n] != labels[**n]).count() as f64 / kept.len() as f64
    };
    let (some, more) = (decide(0.6), decide(0.9));
    for (decided, least) in [(&some, 0.6), (&more, 0.9)] {
        assert!(decided.rejected.iter().zip(&decided.probability).all(|(r, p)| *r == (*p < least)));
    }
    assert!(some.rejected.iter().zip(&more.rejected).all(|(a, b)| !a || *b));
    let all = error_of_kept(&decide(1e-9));
    assert!(error_of_kept(&more) < error_of_kept(&some) && error_of_kept(&some) < all, "{all}");
    // Chow's rule: if an error costs 1 and a rejection c, rows whose largest probability is below 1 - c are rejected.
    let costs = Some(array![[0.0, 1.0], [1.0, 0.0]]);
    let chow = |cost| {
        let decision = Decision { costs: costs.clone(), reject_cost: Some(cost), ..Decision::default() };
        model.decide(x.view(), &decision).unwrap()
    };
    let decided = chow(0.25);
    assert_eq!(decided.rejected, decide(0.75).rejected);
    assert_eq!(decided.label, some.label);
    let cost = decided.expected_cost.unwrap();
    for n in 0..600 {
        let paid = if decided.rejected[n] { 0.25 } else { 1.0 - decided.probability[n] };
        assert!((cost[n] - paid).abs() < 1e-12);
    }
    assert!(chow(0.0).rejected.iter().filter(|r| **r).count() > 590 && chow(1.0).rejected.iter().all(|r| !r));
}

#[test]
fn invalid_priors_and_costs_are_rejected() {
    let (model, x, labels) = two([30, 20], 10);
    let refused = |decision: Decision| model.decide(x.view(), &decision).unwrap_err().to_string();
    let prior = |p: &[f64]| refused(Decision { prior: Some(p.to_vec()), ..Decision::default() });
    assert_eq!(prior(&[1.0]), "prior = 1 numbers: expected a probability for each of the 2 classes");
    assert!(prior(&[0.3, 0.3, 0.4]).contains("3 numbers"));
    assert_eq!(prior(&[-0.5, 1.5]), "prior[0] = -0.5: expected a probability, zero or positive");
    assert!(prior(&[0.5, f64::NAN]).starts_with("prior[1] = NaN"));
    assert!(prior(&[0.5, f64::INFINITY]).starts_with("prior[1] = inf"));
    assert_eq!(prior(&[0.5, 0.25]), "prior = probabilities that sum to 0.75: expected a sum of 1 (within 1e-9)");
    assert!(prior(&[0.5, 0.5 + 2e-9]).contains("sum"));
    assert!(prior(&[0.0, 0.0]).contains("sum to 0:"));
    let near = Decision { prior: Some(vec![0.5, 0.5 + 5e-10]), ..Decision::default() };
    assert!(model.decide(x.view(), &near).is_ok());

    let costs = |c: Array2<f64>| refused(Decision { costs: Some(c), ..Decision::default() });
    assert_eq!(
        costs(array![[0.0, 1.0]]),
        "costs: expected [2, 2], a row for each true class and a column for each decision, found [1, 2]"
    );
    assert_eq!(costs(array![[0.0, 1.0], [-1.0, 0.0]]), "costs[1, 0] = -1: expected a finite cost, zero or positive");
    assert!(costs(array![[0.0, f64::INFINITY], [1.0, 0.0]]).starts_with("costs[0, 1] = inf"));
    assert!(costs(array![[f64::NAN, 1.0], [1.0, 0.0]]).starts_with("costs[0, 0] = NaN"));

    for bad in [0.0, 1.0, -0.1, 7.0, f64::NAN] {
        let text = refused(Decision { reject: Some(bad), ..Decision::default() });
        assert!(text.starts_with("reject = ") && text.contains("in (0, 1)"), "{text}");
    }
    let alike = Some(array![[0.0, 1.0], [1.0, 0.0]]);
    for bad in [-0.1, f64::INFINITY, f64::NAN] {
        let text = refused(Decision { costs: alike.clone(), reject_cost: Some(bad), ..Decision::default() });
        assert!(text.starts_with("reject_cost = ") && text.contains("zero or positive"), "{text}");
    }
    assert!(
        refused(Decision { costs: alike, reject: Some(0.5), ..Decision::default() }).contains("cannot be combined with costs")
    );
    assert!(refused(Decision { reject_cost: Some(0.5), ..Decision::default() }).contains("requires costs"));

    let columns = model.decide_by(Array2::zeros((2, 3)), &Decision::default()).unwrap_err();
    assert_eq!(columns.to_string(), "log probabilities: expected 2 columns, one for each class, found 3 columns");
    for bad in [f64::NAN, f64::INFINITY] {
        let log = array![[-1.0, -1.0], [-1.0, bad]];
        assert!(matches!(model.decide_by(log.clone(), &Decision::default()), Err(Error::NotFinite { row: 1, column: 1, .. })));
        assert!(matches!(model.shift_prior(log, &[0.5, 0.5]), Err(Error::NotFinite { .. })));
    }
    let plain = Decision::default();
    assert!(model.decide(array![[1.0]].view(), &plain).unwrap_err().to_string().contains("expected 2 columns"));
    let real: Array1<f64> = labels.iter().map(|k| *k as f64).collect();
    let (values, _) = Rvm::tipping2001().fit(x.view(), &Targets::real(real.view())).unwrap();
    assert!(values.class_frequencies.is_empty() && !values.to_json().unwrap().contains("class_frequencies"));
    assert!(matches!(values.decide(x.view(), &plain), Err(Error::Targets(_))));
    assert!(matches!(values.shift_prior(Array2::zeros((1, 2)), &[0.5, 0.5]), Err(Error::Targets(_))));
    let (machine, _) = Svm { probability: false, ..svm() }.fit(x.view(), &Targets::classes(&labels, 2)).unwrap();
    assert_eq!(machine.decide(x.view(), &plain), Err(Error::NoProbability));
}

/// Old files without frequencies give the same decisions as before, and reject other priors.
#[test]
fn old_files_without_frequencies_decide_as_before() {
    let (model, x, _) = two([30, 20], 11);
    let again = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again, model);
    let old = Model { class_frequencies: vec![], ..model.clone() };
    let text = old.to_json().unwrap();
    assert!(!text.contains("class_frequencies"));
    let old = Model::from_json(&text).unwrap();
    let plain = Decision { reject: Some(0.8), ..Decision::default() };
    assert_eq!(old.decide(x.view(), &plain), model.decide(x.view(), &plain));
    let other = Decision { prior: Some(vec![0.5, 0.5]), ..Decision::default() };
    assert_eq!(old.decide(x.view(), &other), Err(Error::NoClassFrequencies));
    assert_eq!(old.shift_prior(Array2::zeros((1, 2)), &[0.5, 0.5]), Err(Error::NoClassFrequencies));
    for broken in [vec![1.0], vec![0.5, 0.6], vec![0.0, 1.0], vec![-1.0, 2.0]] {
        let text = Model { class_frequencies: broken, ..model.clone() }.to_json().unwrap();
        assert!(Model::from_json(&text).unwrap_err().to_string().contains("model.class_frequencies"));
    }
    let committee = classifiers().swap_remove(2).1;
    assert!(committee.committee.unwrap().members.iter().all(|member| member.class_frequencies.is_empty()));
}

/// A model with an external kernel decides from kernel values that the caller provides.
#[test]
fn external_kernel_values_give_decisions() {
    let (model, x, _) = two([40, 20], 12);
    let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { panic!("a kernel was fitted") };
    let Kernel::Rbf(rbf) = kernel else { panic!("{kernel:?}") };
    let Gamma::Value(gamma) = rbf.gamma else { panic!("{rbf:?}") };
    let distance = |a: ArrayView1<f64>, b: ArrayView1<f64>| a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let phi = Array2::from_shape_fn((x.nrows(), centres.nrows()), |(n, m)| (-gamma * distance(x.row(n), centres.row(m))).exp());
    let decision = Decision { prior: Some(vec![0.5, 0.5]), reject: Some(0.7), ..Decision::default() };
    let own = model.decide(x.view(), &decision).unwrap();
    let outside = model.clone().with_external_kernel(&model.relevance, 2, None);
    assert_eq!(outside.decide(x.view(), &decision), Err(Error::ExternalKernel));
    let log = outside.log_probability_from_basis(phi.view(), Moderation::Posterior).unwrap();
    let by_values = outside.decide_by(log, &decision).unwrap();
    assert_eq!((&by_values.label, &by_values.rejected), (&own.label, &own.rejected));
    assert!((&by_values.probabilities - &own.probabilities).iter().all(|d| d.abs() < 1e-9));
}
