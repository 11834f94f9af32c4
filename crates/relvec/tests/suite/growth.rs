//! Incremental fits: statistics in a model, to which rows are added, and searches that start at a model.

use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

fn data(seed: u64, rows: usize) -> (Array2<f64>, Array1<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x: Array2<f64> = Array2::from_shape_simple_fn((rows, 2), || random.random_range(-3.0..3.0));
    let t = x.map_axis(Axis(1), |r| {
        let e: f64 = StandardNormal.sample(&mut random);
        1e3 + (1.5 * r[0]).sin() + 0.3 * r[1] + 0.1 * e
    });
    (x, t)
}

fn rvm() -> Rvm {
    let kernel = Rbf { gamma: 0.5.into() }.into();
    Rvm { kernel, dictionary: Dictionary::Size(60), keep_statistics: true, ..Rvm::tipping2001() }
}

fn largest_difference(a: impl IntoIterator<Item = f64>, b: impl IntoIterator<Item = f64>) -> f64 {
    let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
    let size = pairs.iter().fold(0.0f64, |m, (_, b)| m.max(b.abs()));
    pairs.iter().fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size
}

/// Statistics to which rows were added twice equal those over all rows at once. The evidence of the model is that of
/// its precisions on all rows, and the search finds the same model as a search over all rows.
#[test]
fn added_rows_give_the_model_of_all_rows() {
    let (x, t) = data(1, 900);
    let c = Array1::from_shape_fn(900, |n| [1.0, 2.0, 0.5, 0.0][n % 4]);
    let v = Array1::from_shape_fn(900, |n| 0.01 * (1 + n % 3) as f64);
    for known in [false, true] {
        let part = |rows: std::ops::Range<usize>, x: &mut Array2<f64>| {
            *x = x.slice(s![rows.clone(), ..]).to_owned();
            (t.slice(s![rows.clone()]).to_owned(), c.slice(s![rows.clone()]).to_owned(), v.slice(s![rows]).to_owned())
        };
        let mut model: Option<Model> = None;
        for rows in [0..300, 300..500, 500..900] {
            let mut own = x.clone();
            let (t, c, v) = part(rows, &mut own);
            let targets = Targets::real(t.view()).with_weights(c.view());
            let targets = if known { targets.with_noise_variance(v.view()) } else { targets };
            let (next, report) = match &model {
                None => rvm().fit(own.view(), &targets),
                Some(model) => rvm().fit_more(model, own.view(), &targets),
            }
            .unwrap();
            assert_eq!(report.status, Status::Converged);
            model = Some(next);
        }
        let grown = model.unwrap();
        let (kept, sums) = (grown.statistics.as_ref().unwrap(), Statistics::of(&grown).unwrap());
        assert!(grown.relevance.iter().all(|row| *row < 300), "the landmarks are rows of the first table");
        assert_eq!(grown.n_rows, 675);
        for (row, centre) in kept.landmarks.iter().zip(kept.centres.outer_iter()) {
            assert_eq!(x.row(*row), centre);
        }

        let targets = Targets::real(t.view()).with_weights(c.view());
        let targets = if known { targets.with_noise_variance(v.view()) } else { targets };
        let mut all = Statistics::new(sums.kernel(), sums.centres()).unwrap();
        all.update(x.view(), &targets).unwrap();
        assert!(largest_difference(sums.gram().iter().copied(), all.gram().iter().copied()) < 1e-13);
        let (found, expected) = (sums.target_sums(), all.target_sums());
        assert!(largest_difference(found.0, expected.0) < 1e-13 && largest_difference([found.1], [expected.1]) < 1e-12);
        assert!(largest_difference([found.2], [expected.2]) < 1e-13);

        let given = Rvm {
            landmarks: Landmarks::Given(Centres(kept.centres.clone())),
            dictionary: Dictionary::default(),
            keep_statistics: false,
            ..rvm()
        };
        let relevance = grown.relevance.iter().map(|row| kept.landmarks.iter().position(|own| own == row).unwrap()).collect();
        let at = Hyperparameters { relevance, ..Hyperparameters::of(&grown) };
        let evidence = given.evaluate(x.view(), &targets, &at).unwrap().log_evidence;
        assert!(largest_difference([grown.log_evidence.unwrap()], [evidence]) < 1e-9);
        let (once, _) = given.fit(x.view(), &targets).unwrap();
        let (found, expected) = (grown.log_evidence.unwrap(), once.log_evidence.unwrap());
        assert!(found > expected - 3.0, "{found} {expected}");
    }
}

/// The model file contains the statistics, a model that scales its features accepts raw rows, and other schemes use a
/// cold restart.
#[test]
fn statistics_survive_files_and_scaling() {
    let (x, t) = data(2, 400);
    let raw = &x * 100.0 + 7.0;
    let scaling = Scaling { mean: vec![7.0, 7.0], scale: vec![100.0, 100.0] };
    let fit =
        |rows: std::ops::Range<usize>| rvm().fit(x.slice(s![rows.clone(), ..]), &Targets::real(t.slice(s![rows]))).unwrap().0;
    let named = Model { scaling: Some(scaling), features: vec!["a".into(), "b".into()], target: Some("t".into()), ..fit(0..200) };
    let again = Model::from_json(&named.to_json().unwrap()).unwrap();
    assert_eq!(again, named);
    let rest = (raw.slice(s![200.., ..]), t.slice(s![200..]));
    for inference in [Search::default().into(), Inference::Em(Em::default()), Inference::Variational(Variational::default())] {
        let own = Rvm { inference, ..rvm() };
        let (grown, _) = own.fit_more(&again, rest.0, &Targets::real(rest.1)).unwrap();
        assert_eq!((&grown.features, &grown.target, &grown.scaling), (&named.features, &named.target, &named.scaling));
        let error = (&grown.predict(raw.view()).unwrap().mean - &t).mapv(|e| e * e).mean().unwrap().sqrt();
        assert!(error < 0.13, "{}: {error}", own.inference.name());
    }
    let text = serde_json::to_string(&named).unwrap();
    for (from, to) in [("\"landmarks\":[", "\"landmarks\":[77777,"), ("\"f\":[", "\"f\":[1.0,")] {
        assert_eq!(text.matches(from).count(), 1);
        let damaged = serde_json::from_str::<Model>(&text.replace(from, to)).unwrap();
        assert!(Model::from_json(&damaged.to_json().unwrap()).unwrap_err().to_string().contains("statistics"));
    }
}

/// A search continues from a model, with the same rows and with further rows behind them.
#[test]
fn search_continues_from_a_model() {
    let (x, t) = data(3, 400);
    let plain = Rvm { dictionary: Dictionary::default(), keep_statistics: false, ..rvm() };
    let half = Targets::real(t.slice(s![..200]));
    let (model, report) = plain.fit(x.slice(s![..200, ..]), &half).unwrap();
    let warm = plain.starting_from(&model).unwrap();
    let (same, again) = warm.fit(x.slice(s![..200, ..]), &half).unwrap();
    assert!(same.log_evidence.unwrap() > model.log_evidence.unwrap() - 1e-6);
    assert!(again.trace[0].active < 50 && report.trace[0].active > 150, "it does not begin from all columns");
    let (more, _) = warm.fit(x.view(), &Targets::real(t.view())).unwrap();
    let (anew, _) = plain.fit(x.view(), &Targets::real(t.view())).unwrap();
    assert!((more.log_evidence.unwrap() - anew.log_evidence.unwrap()).abs() < 10.0);
}

#[test]
fn growth_rejects_unsupported_settings() {
    let (x, t) = data(4, 120);
    let targets = Targets::real(t.view());
    let (model, _) = rvm().fit(x.view(), &targets).unwrap();
    let without = Model { statistics: None, ..model.clone() };
    let more =
        |rvm: &Rvm, model: &Model, x: &Array2<f64>| rvm.fit_more(model, x.view(), &targets).map(|_| ()).unwrap_err().to_string();
    let matern = Rvm { kernel: Matern32::default().into(), ..rvm() };
    assert!(more(&rvm(), &without, &x).contains("keep_statistics"));
    assert!(more(&matern, &model, &x).contains("matern32, and that of the model is rbf"));
    let wide = concatenate![Axis(1), x, x];
    assert!(more(&rvm(), &model, &wide).contains("2 columns"));
    let known = rvm().fit_more(&model, x.view(), &targets.with_noise_variance(t.view()));
    assert!(known.unwrap_err().to_string().contains("noise variance"));
    for (folds, name) in [(Rvm { cv: Some(3), ..rvm() }, "cv"), (Rvm { calibrate: true, ..rvm() }, "calibrate")] {
        assert!(more(&folds, &model, &x).contains(name));
    }
    let fit = |rvm: Rvm| rvm.fit(x.view(), &targets).map(|_| ()).unwrap_err().to_string();
    for bad in [
        Rvm { dictionary: Dictionary::default(), ..rvm() },
        Rvm { basis: Basis::Given, dictionary: Dictionary::default(), ..rvm() },
        Rvm { likelihood: Bernoulli::default().into(), ..rvm() },
        Rvm { likelihood: StudentT::default().into(), ..rvm() },
        Rvm { centres: CentreRule::Learned, ..rvm() },
    ] {
        let found = fit(bad);
        assert!(found.contains("keep_statistics"), "{found}");
    }
    let tight = Rvm { memory_limit: Some(64 << 10), dictionary: Dictionary::Size(100), ..rvm() };
    assert!(fit(tight).contains("memory"));
    let start = |rvm: Rvm, model: &Model| rvm.starting_from(model).unwrap_err().to_string();
    assert!(start(matern, &model).contains("matern32"));
    assert!(start(Rvm { inference: Em::default().into(), ..rvm() }, &model).contains("search"));
    assert!(start(rvm(), &Model { learned_centres: true, ..model.clone() }).contains("centres = learned"));
    assert!(start(Rvm { basis: Basis::Given, ..rvm() }, &model).contains("basis functions"));
    let process = Rvm { weight_prior: WeightPrior::Process, ..Rvm::default() };
    let labels: Vec<usize> = (0..120).map(|i| usize::from(t[i] > t.sum() / 120.0)).collect();
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..process.clone() };
    let real = process.fit(x.view(), &Targets::real(t.view())).unwrap().0;
    let of_labels = classes.fit(x.view(), &Targets::classes(&labels, 2)).unwrap().0;
    for (rvm, model) in [(process, real), (classes, of_labels)] {
        let found = start(rvm, &model);
        assert!(found.contains("weight_prior = process: expected ard in the fit to go on from"), "{found}");
    }
}
