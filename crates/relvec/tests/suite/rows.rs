//! Fits to rows that are not in memory: the models do not depend on the partition of the rows or the order of merging.

use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use relvec::{
    Answer, Bernoulli, Blocks, CentreRule, Centres, Dictionary, DictionaryRule, Error, FittedBasis, Gamma, GammaRule, Gaussian,
    Landmarks, Likelihood, Model, Moderation, MultiClass, Poisson, PosteriorRule, Query, Rbf, Result, RowPlan, RowSource, Rvm,
    Scaling, Statistics, StudentT, Survey, Targets, Variance, WeightPrior, silent,
};

/// Rows with one real target, two real targets, or classes.
struct All {
    x: Array2<f64>,
    t: Array2<f64>,
    labels: Vec<usize>,
    classes: usize,
    weights: Option<Array1<f64>>,
    noise: Option<Array1<f64>>,
    exposure: Option<Array1<f64>>,
    /// Likelihood of real targets.
    likelihood: Likelihood,
}

fn wave(i: usize, k: usize) -> f64 {
    (0.618_033_988_75 * (i * (k + 1) + 11 * k) as f64 + 0.37 * (i / 7) as f64).fract()
}

fn rows(n: usize, classes: usize) -> All {
    let x = Array2::from_shape_fn((n, 2), |(i, k)| 4.0 * [wave(i, 0), (0.754_877_666_25 * i as f64).fract()][k] - 2.0);
    let f = |i: usize| (2.0 * x[[i, 0]]).sin() + 0.5 * x[[i, 1]] * x[[i, 1]];
    let t = Array2::from_shape_fn((n, 1), |(i, _)| f(i) + 0.6 * (wave(i, 30) - 0.5));
    let labels = (0..n).map(|i| ((f(i) + 1.0 + 0.8 * (wave(i, 12) - 0.5)).max(0.0) / 4.0 * classes as f64) as usize);
    let labels = labels.map(|k| k.min(classes.max(1) - 1)).collect();
    All { labels, x, t, classes, weights: None, noise: None, exposure: None, likelihood: Gaussian::default().into() }
}

/// Returns rows with counts over exposures.
fn counts(n: usize) -> All {
    let mut all = rows(n, 0);
    let exposure = Array1::from_shape_fn(n, |i| 0.5 + 2.0 * wave(i, 17));
    let mut random = Pcg64::seed_from_u64(5);
    for i in 0..n {
        let rate = exposure[i] * (0.8 * all.t[[i, 0]]).exp();
        all.t[[i, 0]] = rand_distr::Distribution::sample(&rand_distr::Poisson::new(rate).unwrap(), &mut random);
    }
    All { exposure: Some(exposure), likelihood: Poisson::default().into(), ..all }
}

/// Returns rows of which one in eleven is an outlier.
fn outliers(n: usize) -> All {
    let mut all = rows(n, 0);
    (0..n).step_by(11).for_each(|i| all.t[[i, 0]] += 20.0 * (wave(i, 5) - 0.5));
    All { likelihood: StudentT::default().into(), ..all }
}

impl All {
    fn targets(&self, rows: std::ops::Range<usize>) -> Targets<'_> {
        let targets = match self.classes {
            0 if self.t.ncols() == 1 => Targets::real(self.t.slice(s![rows.clone(), 0])),
            0 => Targets::outputs(self.t.slice(s![rows.clone(), ..])),
            classes => Targets::classes(&self.labels[rows.clone()], classes),
        };
        let targets = self.weights.as_ref().map_or(targets, |w| targets.with_weights(w.slice(s![rows.clone()])));
        match (&self.noise, &self.exposure) {
            (Some(noise), _) => targets.with_noise_variance(noise.slice(s![rows])),
            (_, Some(exposure)) => targets.with_exposure(exposure.slice(s![rows])),
            _ => targets,
        }
    }

    /// Returns the parts that end before the given rows, and the part of the remaining rows.
    fn parts(&self, ends: &[usize]) -> Vec<(ArrayView2<'_, f64>, Targets<'_>)> {
        let (starts, n) = (std::iter::once(&0).chain(ends), self.x.nrows());
        let ends = ends.iter().chain([&n]);
        starts.zip(ends).map(|(from, to)| (self.x.slice(s![*from..*to, ..]), self.targets(*from..*to))).collect()
    }

    fn plan(&self, sample: usize) -> RowPlan {
        RowPlan { classes: (self.classes > 0).then_some(self.classes), sample, ..RowPlan::default() }
    }

    /// Returns a fit with few centres and a kernel whose width is learned.
    fn learning(&self) -> Rvm {
        match self.classes {
            0 => Rvm { dictionary: 60.into(), likelihood: self.likelihood.clone(), ..Rvm::default() },
            _ => Rvm { likelihood: Bernoulli::default().into(), dictionary: 60.into(), ..Rvm::default() },
        }
    }

    /// Returns a fit with a given width, which saves time.
    fn rvm(&self) -> Rvm {
        Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..self.learning() }
    }
}

impl Blocks for All {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        self.parts(&[700, 701, 1900]).iter().try_for_each(|(x, targets)| each(*x, targets))
    }
}

/// Merges answers in random order, through bytes, and counts queries.
struct Shuffled<'a> {
    parts: Vec<(ArrayView2<'a, f64>, Targets<'a>)>,
    seed: u64,
    passes: AtomicUsize,
}

impl RowSource for Shuffled<'_> {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed) as u64;
        let query = Query::from_bytes(&query.to_bytes())?;
        let mut answers = vec![];
        for (part, (x, targets)) in self.parts.iter().enumerate() {
            answers.push(query.answer(part, *x, targets)?);
        }
        let mut random = Pcg64::seed_from_u64(self.seed + pass);
        while answers.len() > 1 {
            let one = answers.swap_remove(random.random_range(0..answers.len()));
            let other = answers.swap_remove(random.random_range(0..answers.len()));
            answers.push(Answer::from_bytes(&one.merge(other)?.to_bytes())?);
        }
        answers.pop().ok_or_else(|| Error::Rows("no parts".into()))
    }
}

fn shuffled<'a>(parts: Vec<(ArrayView2<'a, f64>, Targets<'a>)>, seed: u64) -> Shuffled<'a> {
    Shuffled { parts, seed, passes: AtomicUsize::new(0) }
}

#[track_caller]
fn close(a: &Model, b: &Model) {
    let (found, expected) = (a.log_evidence.unwrap(), b.log_evidence.unwrap());
    assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} instead of {expected}");
    assert_eq!((&a.relevance, a.n_rows), (&b.relevance, b.n_rows));
}

/// Returns data sets with real targets, two outputs with weights (0 among them), known noise, two and three classes,
/// and equal rows in several parts.
fn tables() -> Vec<All> {
    let n = 3000;
    let weights = Array1::from_shape_fn(n, |i| if i % 50 == 7 { 0.0 } else { 1.0 + (i % 3) as f64 });
    let mut two = rows(n, 0);
    two.t = Array2::from_shape_fn((n, 2), |(i, k)| if k == 0 { two.t[[i, 0]] } else { two.x[[i, 1]] - 30.0 * two.t[[i, 0]] });
    two.weights = Some(weights.clone());
    let noise = Array1::from_shape_fn(n, |i| 0.02 + 0.05 * wave(i, 41));
    let mut equal = rows(n, 0);
    for i in 0..n / 4 {
        let (row, t) = (equal.x.row(i).to_owned(), equal.t.row(i).to_owned());
        equal.x.row_mut(n - 1 - i).assign(&row);
        equal.t.row_mut(n - 1 - i).assign(&t);
    }
    vec![
        rows(n, 0),
        two,
        All { noise: Some(noise), ..rows(n, 0) },
        rows(n, 2),
        All { weights: Some(weights.clone()), ..rows(n, 3) },
        equal,
        counts(n),
        All { weights: Some(weights), exposure: None, ..counts(n) },
        outliers(n),
    ]
}

/// For any order of merging, the same parts give the same bits. Other parts, including empty ones and single rows, give
/// the same model up to rounding.
#[test]
fn models_do_not_depend_on_the_partition() {
    for (number, all) in tables().iter().enumerate() {
        // One data set of regression and one of classes learns the kernel.
        let rvm = if [0, 3, 6, 8].contains(&number) { all.learning() } else { all.rvm() };
        let plan = all.plan(1200);
        let fit = |source: &dyn RowSource| rvm.fit_rows(source, &plan).unwrap().0;
        let ends = [0, 400, 400, 401, 1700, 2900];
        let first = fit(&shuffled(all.parts(&ends), 1));
        assert_eq!(fit(&all.parts(&ends)).to_json().unwrap(), first.to_json().unwrap(), "table {number}");
        assert_eq!(first.n_rows, 3000);
        close(&fit(&all.parts(&[10, 20, 30, 3000])), &first);
    }
}

/// At the same centres, a fit to parts equals that to all rows of one array, because the sums are equal.
#[test]
fn parts_give_the_fit_to_one_array() {
    for all in tables() {
        let rvm = all.rvm();
        let (one, _) = rvm.fit_rows(&all.parts(&[]), &all.plan(1200)).unwrap();
        let (many, _) = rvm.fit_rows(&all.parts(&[100, 1000, 2500]), &all.plan(1200)).unwrap();
        close(&many, &one);
        let probability = |model: &Model| model.predict_probability(all.x.view(), Moderation::default()).unwrap();
        if all.classes > 0 {
            assert!((probability(&many) - probability(&one)).iter().all(|d| d.abs() < 1e-8));
        }
    }
}

/// Regression with precisions is a fit to statistics at landmarks of the sample.
#[test]
fn precisions_come_from_statistics_of_all_parts() {
    let all = rows(3000, 0);
    let rvm = Rvm { weight_prior: WeightPrior::Ard, keep_statistics: true, dictionary: 40.into(), ..Rvm::default() };
    let source = shuffled(all.parts(&[500, 500, 2000]), 0);
    let (model, _) = rvm.fit_rows(&source, &all.plan(900)).unwrap();
    assert_eq!(source.passes.load(Ordering::Relaxed), 2);
    let kept = model.statistics.as_ref().unwrap();
    assert_eq!(kept.centres, all.x.select(Axis(0), &kept.landmarks));
    let mut statistics = Statistics::new(model.kernel().unwrap(), kept.centres.view()).unwrap();
    statistics.update(all.x.view(), &all.targets(0..3000)).unwrap();
    let own = Rvm { kernel: model.kernel().unwrap().clone(), ..rvm.clone() };
    let (expected, _) = own.fit_statistics(&statistics).unwrap();
    let (found, expected) = (model.log_evidence.unwrap(), expected.log_evidence.unwrap());
    // The sums agree up to rounding, and searches from them end within their tolerance.
    let gram = statistics.gram();
    let near = |(i, row): (usize, &Vec<f64>)| row.iter().enumerate().all(|(j, v)| (v - gram[[i, j]]).abs() < 1e-12 * v.abs());
    assert!(kept.gram.iter().enumerate().all(near));
    assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    let FittedBasis::Kernel { centres, .. } = &model.expansion.basis else { panic!("{:?}", model.expansion.basis) };
    assert_eq!(*centres, all.x.select(Axis(0), &model.relevance));
    // Any order of merging gives the same bits, also with standardised features.
    let again = rvm.fit_rows(&shuffled(all.parts(&[500, 500, 2000]), 5), &all.plan(900)).unwrap().0;
    assert_eq!(again.to_json().unwrap(), model.to_json().unwrap());
    let plan = RowPlan { standardize: true, ..all.plan(900) };
    let given = Landmarks::Given(Centres(all.x.slice(s![..30, ..]).to_owned()));
    let rvm = Rvm { landmarks: given, kernel: Rbf { gamma: Gamma::Rule(GammaRule::Scale) }.into(), ..rvm };
    let (model, _) = rvm.fit_rows(&all.parts(&[10]), &plan).unwrap();
    assert!(model.relevance.iter().all(|k| *k < 30) && model.scaling.is_some());
    let left = (&model.predict(all.x.view()).unwrap().mean - &all.t.column(0)).mapv(|d| d * d).mean().unwrap();
    assert!(left < 0.1, "{left}");
}

/// If the sample contains all rows, they are fitted in memory, for any settings.
#[test]
fn few_rows_are_fitted_in_memory() {
    for classes in [0, 3] {
        let all = rows(400, classes);
        for rvm in [all.rvm(), Rvm { cv: Some(3), ..all.rvm() }, Rvm { weight_prior: WeightPrior::Ard, ..all.rvm() }] {
            let (expected, _) = rvm.fit(all.x.view(), &all.targets(0..400)).unwrap();
            let (found, report) = rvm.fit_rows(&all.parts(&[150]), &all.plan(400)).unwrap();
            assert_eq!(found.to_json().unwrap(), expected.to_json().unwrap());
            assert_eq!(report.adjustments.left_out_rows, 0);
        }
    }
}

#[test]
fn fits_in_parts_take_few_passes() {
    for (all, most) in [(rows(4000, 0), 4), (rows(4000, 2), 10), (rows(4000, 5), 10)] {
        let source = shuffled(all.parts(&[1000, 2000]), 0);
        // The kernel is learned from the sample alone, without a data pass.
        let rvm = if all.classes == 0 { all.learning() } else { all.rvm() };
        rvm.fit_rows(&source, &all.plan(3500)).unwrap();
        let passes = source.passes.load(Ordering::Relaxed);
        assert!(passes <= most, "{passes} passes of {} classes", all.classes);
    }
}

/// The function has fine structure, of which 50 given centres leave a large residual. Amplitude and noise are those of
/// all rows, in memory and in parts, whatever rows they are measured on first.
#[test]
fn regression_in_parts_predicts_as_in_memory() {
    let mut all = rows(9000, 0);
    let bump = |j: usize| (4.0 * wave(j, 3) - 2.0, 4.0 * wave(j, 8) - 2.0, (8.0 * (wave(j, 21) - 0.5)).sinh() / 8.0);
    for i in 0..9000 {
        let (x, y) = (all.x[[i, 0]], all.x[[i, 1]]);
        let value = |(a, b, c): (f64, f64, f64)| c * (-9.0 * ((x - a).powi(2) + (y - b).powi(2))).exp();
        all.t[[i, 0]] = (0..60).map(|j| value(bump(j))).sum::<f64>() + 0.05 * (wave(i, 30) - 0.5);
    }
    let landmarks = Landmarks::Given(Centres(all.x.slice(s![..50, ..]).to_owned()));
    let rvm = Rvm { landmarks, kernel: Rbf { gamma: 9.0.into() }.into(), ..Rvm::default() };
    let (x, t) = (all.x.slice(s![6000.., ..]), all.t.slice(s![6000.., 0]));
    let density = |model: &Model| {
        let p = model.predict(x).unwrap();
        let z = (&t - &p.mean) / p.std();
        (z.mapv(|z| 0.5 * z * z) + p.std().mapv(f64::ln)).mean().unwrap()
    };
    let (memory, _) = rvm.fit(all.x.slice(s![..6000, ..]), &all.targets(0..6000)).unwrap();
    for seed in 0..3 {
        let source = shuffled(all.parts(&[2500, 6000]).into_iter().take(2).collect(), seed);
        let (parts, report) = Rvm { seed, ..rvm.clone() }.fit_rows(&source, &all.plan(3500)).unwrap();
        assert!(!report.process.unwrap().reached && source.passes.load(Ordering::Relaxed) <= 4);
        let (found, expected) = (parts.log_evidence.unwrap(), memory.log_evidence.unwrap());
        assert!((found - expected).abs() < 2e-3 * 6000.0, "seed {seed}: {found} and {expected}");
        assert!((density(&parts) - density(&memory)).abs() < 0.02, "seed {seed}: {} and {}", density(&parts), density(&memory));
    }
}

/// Counts, and rows with outliers, have the model of a fit in memory, in few passes.
#[test]
fn counts_and_outliers_in_parts_predict_as_in_memory() {
    for all in [counts(6000), outliers(6000)] {
        let rvm = Rvm { dictionary: 200.into(), ..all.rvm() };
        let (memory, _) = rvm.fit(all.x.view(), &all.targets(0..6000)).unwrap();
        let source = shuffled(all.parts(&[1000, 2500]), 3);
        let (parts, report) = rvm.fit_rows(&source, &all.plan(3500)).unwrap();
        let passes = source.passes.load(Ordering::Relaxed);
        assert!(report.status == relvec::Status::Converged && passes <= 10, "{:?} {passes}", report.status);
        assert!(parts.process.is_some() && parts.likelihood == memory.likelihood && parts.n_rows == 6000);
        assert_eq!(Model::from_json(&parts.to_json().unwrap()).unwrap(), parts);
        let (found, expected) = (parts.log_evidence.unwrap(), memory.log_evidence.unwrap());
        assert!((found - expected).abs() < 2e-3 * 6000.0, "{found} and {expected}");
        let [found, expected] = [&parts, &memory].map(|model| model.predict(all.x.view()).unwrap());
        let off = ((&found.mean - &expected.mean) / expected.model_variance.mapv(f64::sqrt)).mapv(|z| z * z).mean().unwrap();
        assert!(off < 0.2, "{off}");
        let wider = (&found.model_variance / &expected.model_variance).mean().unwrap();
        assert!((0.7..1.4).contains(&wider), "{wider}");
        if let (Some(found), Some(expected)) = (parts.noise_degrees(), memory.noise_degrees()) {
            assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        }
    }
}

/// With a precision for each weight, counts, outliers and several outputs in parts have the model of a fit in memory at
/// equal candidates. Equal parts give equal bits, and other parts give an equal model up to rounding.
#[test]
fn precisions_for_other_targets_come_from_sums_over_all_parts() {
    let outputs = |n: usize| {
        let all = rows(n, 0);
        let second = (&all.x.column(1) + &all.t.column(0)).insert_axis(Axis(1));
        All { t: ndarray::concatenate![Axis(1), all.t, 30.0 * second], ..all }
    };
    let noisy = |n: usize| All { noise: Some(Array1::from_shape_fn(n, |i| 0.02 + 0.05 * wave(i, 9))), ..outputs(n) };
    for (all, most) in [(counts(6000), 20), (outliers(6000), 20), (outputs(6000), 2), (noisy(6000), 2)] {
        let name = all.likelihood.name();
        let given = Landmarks::Given(Centres(all.x.slice(s![..40, ..]).to_owned()));
        let rvm = Rvm { weight_prior: WeightPrior::Ard, landmarks: given, ..all.rvm() };
        let (memory, _) = rvm.fit(all.x.view(), &all.targets(0..6000)).unwrap();
        let source = shuffled(all.parts(&[1000, 1000, 2500]), 3);
        let (parts, report) = rvm.fit_rows(&source, &all.plan(3500)).unwrap();
        let passes = source.passes.load(Ordering::Relaxed);
        assert!(report.status == relvec::Status::Converged && passes <= most, "{name}: {:?} {passes}", report.status);
        assert!(parts.process.is_none() && parts.likelihood == memory.likelihood && parts.n_rows == 6000);
        assert_eq!(Model::from_json(&parts.to_json().unwrap()).unwrap(), parts);
        let (found, expected) = (parts.log_evidence.unwrap(), memory.log_evidence.unwrap());
        assert!((found - expected).abs() < 2e-4 * 6000.0, "{name}: {found} and {expected}");
        let of = |model: &Model| model.predict_outputs_with(all.x.view(), Variance::Posterior).unwrap();
        for (k, (found, expected)) in of(&parts).into_iter().zip(of(&memory)).enumerate() {
            let off = ((&found.mean - &expected.mean).mapv(|d| d * d) / &expected.model_variance).mean().unwrap();
            let miss = |p: &relvec::Prediction| (&all.t.column(k) - &p.mean).mapv(f64::abs).mean().unwrap();
            // EM ends at a rise of 1e-4 nats per row, before all precisions have settled.
            assert!(off < if name == "student_t" { 6.0 } else { 1e-3 }, "{name}: {off}");
            assert!((miss(&found) / miss(&expected) - 1.0).abs() < 2e-3, "{name}: {} {}", miss(&found), miss(&expected));
        }
        if let (Some(found), Some(expected)) = (parts.noise_degrees(), memory.noise_degrees()) {
            assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        }
        let fit = |source: &dyn RowSource| rvm.fit_rows(source, &all.plan(3500)).unwrap().0;
        assert_eq!(fit(&shuffled(all.parts(&[1000, 1000, 2500]), 8)).to_json().unwrap(), parts.to_json().unwrap());
        close(&fit(&all.parts(&[10, 5000])), &parts);
    }
}

/// Classes in blocks have a process prior, and the probabilities of a fit in memory.
#[test]
fn classes_in_blocks_predict_as_in_memory() {
    let (all, new) = (rows(6000, 3), rows(9000, 3));
    let rvm = Rvm { likelihood: Bernoulli::default().into(), ..Rvm::default() };
    let loss = |model: &Model| {
        let p = model.predict_probability(new.x.slice(s![6000.., ..]), Moderation::default()).unwrap();
        -p.outer_iter().zip(&new.labels[6000..]).map(|(p, k)| p[*k].ln()).sum::<f64>() / 3000.0
    };
    let (expected, _) = rvm.fit(all.x.view(), &all.targets(0..6000)).unwrap();
    let (found, report) = rvm.fit_rows(&all.parts(&[2000]), &all.plan(5000)).unwrap();
    assert!(report.process.unwrap().reached && found.labels.is_some());
    assert!((loss(&found) - loss(&expected)).abs() < 0.005, "{} and {}", loss(&found), loss(&expected));
    // The sample contains all rows of the blocks.
    let rvm = Rvm { kernel: expected.kernel().unwrap().clone(), ..rvm };
    let (known, _) = rvm.fit(all.x.view(), &all.targets(0..6000)).unwrap();
    let (blocks, _) = rvm.fit_blocks(&all).unwrap();
    assert_eq!(blocks.to_json().unwrap(), known.to_json().unwrap());
    let (x, few) = (all.x.slice(s![..4000, ..]), all.targets(0..4000));
    let (with_sample, _) = rvm.fit_blocks_with_sample(x, &few, &all, &mut silent).unwrap();
    assert!((loss(&with_sample) - loss(&expected)).abs() < 0.01, "{} and {}", loss(&with_sample), loss(&expected));
    assert_eq!(with_sample.n_rows, 6000);
}

/// A class that a random sample would miss has rows in the sample, and its share of the probability.
#[test]
fn rare_classes_are_in_the_sample() {
    let mut all = rows(4000, 3);
    all.labels.iter_mut().for_each(|label| *label = (*label).min(1));
    // Four rows in a separate corner, in one part.
    for i in 0..4 {
        all.labels[1000 + i] = 2;
        all.x.row_mut(1000 + i).assign(&(Array1::from_elem(2, 6.0 + 0.01 * i as f64)));
    }
    let (model, _) = all.learning().fit_rows(&all.parts(&[1000, 1004, 2000]), &all.plan(300)).unwrap();
    let corner = Array2::from_elem((1, 2), 6.0);
    let p = model.predict_probability(corner.view(), Moderation::default()).unwrap();
    // The class is a hundred times as probable as elsewhere.
    assert!(p[[0, 2]] > 0.1, "{p}");
    assert!((model.class_frequencies[2] - 0.001).abs() < 1e-12);
}

#[test]
fn features_are_standardised_by_all_rows() {
    let mut all = rows(3000, 0);
    all.x.column_mut(1).mapv_inplace(|v| 1e4 * v + 5e6);
    let given = Landmarks::Given(Centres(all.x.slice(s![..80, ..]).to_owned()));
    let rvm = Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..Rvm::default() };
    let plan = RowPlan { standardize: true, ..all.plan(1000) };
    for rvm in [Rvm { landmarks: given, ..rvm.clone() }, rvm] {
        let (model, _) = rvm.fit_rows(&all.parts(&[100, 900]), &plan).unwrap();
        let (found, expected) = (model.scaling.clone().unwrap(), Scaling::of(all.x.view(), None));
        assert!(
            (found.scale[1] / expected.scale[1] - 1.0).abs() < 1e-10 && (found.mean[1] / expected.mean[1] - 1.0).abs() < 1e-12
        );
        let mean = model.predict(all.x.view()).unwrap().mean;
        let left = (&mean - &all.t.column(0)).mapv(|d| d * d).mean().unwrap();
        assert!(left < 0.05, "{left}");
    }
}

#[test]
fn damaged_and_foreign_bytes_are_rejected() {
    struct Keep(std::sync::Mutex<Vec<(Query, Answer)>>, All);
    impl RowSource for Keep {
        fn map_reduce(&self, query: &Query) -> Result<Answer> {
            let answer = self.1.parts(&[500, 900]).map_reduce(query)?;
            self.0.lock().unwrap().push((query.clone(), answer.clone()));
            Ok(answer)
        }
    }
    let keep = Keep(std::sync::Mutex::default(), rows(1500, 0));
    let rvm = Rvm { dictionary: 5.into(), ..keep.1.rvm() };
    rvm.fit_rows(&keep, &keep.1.plan(40)).unwrap();
    let kept = keep.0.into_inner().unwrap();
    assert!(kept.len() >= 2);
    for (query, answer) in &kept {
        let (q, a) = (query.to_bytes(), answer.to_bytes());
        assert_eq!(Query::from_bytes(&q).unwrap().to_bytes(), q);
        assert_eq!(Answer::from_bytes(&a).unwrap().to_bytes(), a);
        assert!(Query::from_bytes(&a).is_err() && Answer::from_bytes(&q).is_err());
        for bytes in [&q, &a] {
            let refuses = |bytes: &[u8]| {
                assert!(Query::from_bytes(bytes).is_err() && Answer::from_bytes(bytes).is_err());
            };
            (0..bytes.len()).step_by(1 + bytes.len() / 300).for_each(|end| refuses(&bytes[..end]));
            let mut random = Pcg64::seed_from_u64(1);
            for _ in 0..100 {
                let mut other = bytes.clone();
                let at = random.random_range(0..other.len());
                other[at] ^= 1 << random.random_range(0..8);
                refuses(&other);
            }
            refuses(&[bytes.as_slice(), b"x"].concat());
        }
        let version = String::from_utf8_lossy(&a[..16]).replace('2', "1").into_bytes();
        let error = Answer::from_bytes(&[&version, &a[16..]].concat()).unwrap_err().to_string();
        assert!(error.contains("another version"), "{error}");
    }
    // Answers to different queries cannot be merged.
    let error = kept[0].1.clone().merge(kept[1].1.clone()).unwrap_err().to_string();
    assert!(error.contains("different queries"), "{error}");
    let survey = Survey::new(5, 0).to_bytes();
    assert_eq!(Survey::from_bytes(&survey).unwrap(), Survey::new(5, 0));
    assert!((0..survey.len()).all(|end| Survey::from_bytes(&survey[..end]).is_err()));
}

#[test]
fn errors_name_parts_and_rows() {
    let all = rows(900, 0);
    let fails = |all: &All, rvm: &Rvm, plan: &RowPlan, fragment: &str| {
        let error = rvm.fit_rows(&all.parts(&[300, 600]), plan).unwrap_err().to_string();
        assert!(error.contains(fragment), "{error}");
    };
    let (rvm, plan) = (all.rvm(), all.plan(200));
    let mut bad = rows(900, 0);
    bad.x[[603, 1]] = f64::NAN;
    fails(&bad, &rvm, &plan, "partition 2: X[3, 1] = nan: every value must be a finite number");
    let mut bad = rows(900, 0);
    bad.t[[310, 0]] = f64::INFINITY;
    fails(&bad, &rvm, &plan, "partition 1: y[10, 0] = inf");
    let mut bad = rows(900, 0);
    bad.weights = Some(Array1::from_elem(900, 1.0));
    bad.weights.as_mut().unwrap()[5] = -1.0;
    fails(&bad, &rvm, &plan, "partition 0: sample weight of row 5");
    fails(&rows(900, 2), &rvm, &plan, "partition 0: found classes where real targets are expected");
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..Rvm::default() };
    fails(&all, &classes, &RowPlan { classes: Some(2), ..plan.clone() }, "found real targets where classes are expected");
    fails(&rows(900, 2), &classes, &RowPlan { classes: Some(3), ..plan.clone() }, "class 2 of 3");
    fails(&all, &classes, &plan, "classes = none");
    let ard = Rvm { weight_prior: WeightPrior::Ard, multi_class: MultiClass::Joint, ..classes.clone() };
    fails(&rows(900, 3), &ard, &rows(900, 3).plan(200), "multi_class = joint: expected auto or one_vs_rest");
    let ard = Rvm { weight_prior: WeightPrior::Ard, ..rvm.clone() };
    fails(&all, &Rvm { centres: CentreRule::Learned, ..ard.clone() }, &plan, "centres = learned");
    fails(&all, &Rvm { dictionary: Dictionary::Rule(DictionaryRule::All), ..ard }, &plan, "dictionary = all");
    fails(&all, &Rvm { cv: Some(3), ..rvm.clone() }, &plan, "cv");
    fails(&all, &rvm, &RowPlan { sample: 1, ..plan.clone() }, "sample = 1");
    let averaged = Rvm { posterior: PosteriorRule::Averaged, ..counts(900).rvm() };
    fails(&counts(900), &averaged, &plan, "posterior = averaged");
    fails(&All { exposure: None, ..rows(900, 0) }, &counts(900).rvm(), &plan, "counts are whole numbers");
    fails(&All { likelihood: Gaussian::default().into(), ..counts(900) }, &rvm, &plan, "exposure");
    // Parts of different widths are rejected.
    let (left, wide) = (rows(300, 0), Array2::zeros((300, 3)));
    let parts = vec![(left.x.view(), left.targets(0..300)), (wide.view(), left.targets(0..300))];
    let error = rvm.fit_rows(&parts, &plan).unwrap_err().to_string();
    assert!(error.contains("3 features") && error.contains("2"), "{error}");
    let none: Vec<(ArrayView2<f64>, Targets)> = vec![];
    assert!(matches!(rvm.fit_rows(&none, &plan), Err(Error::TooFewRows { .. })));
}

/// Rows of the second pass differ from those of the first.
#[test]
fn rows_that_change_between_passes_are_rejected() {
    struct Changing(All, All, AtomicUsize, &'static [usize]);
    impl RowSource for Changing {
        fn map_reduce(&self, query: &Query) -> Result<Answer> {
            match self.2.fetch_add(1, Ordering::Relaxed) {
                0 => self.0.parts(&[400, 800]).map_reduce(query),
                _ => self.1.parts(self.3).map_reduce(query),
            }
        }
    }
    let fails = |then: All, ends: &'static [usize], fragment: &str| {
        let source = Changing(rows(1200, 0), then, AtomicUsize::new(0), ends);
        let rvm = source.0.rvm();
        let error = rvm.fit_rows(&source, &source.0.plan(200)).unwrap_err().to_string();
        assert!(error.contains(fragment), "{error}");
    };
    let mut other = rows(1200, 0);
    other.t[[900, 0]] += 1e-9;
    fails(other, &[400, 800], "partition 2 changed between passes: it has rows of other values or weights");
    fails(
        All { weights: Some(Array1::from_elem(1200, 2.0)), ..rows(1200, 0) },
        &[400, 800],
        "partition 0 changed between passes",
    );
    fails(rows(1199, 0), &[400, 800], "partition 2 changed between passes: it has 399 rows, and there were 400");
    fails(rows(1200, 0), &[400], "partition 2 is missing: 2 of 3 partitions have answered");
    fails(rows(1200, 0), &[400, 800, 1000], "there are 4 partitions; there were 3");
    // Blocks are checked as well.
    struct Twice(AtomicUsize);
    impl Blocks for Twice {
        fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
            let all = rows(if self.0.fetch_add(1, Ordering::Relaxed) < 2 { 22_000 } else { 21_999 }, 0);
            each(all.x.view(), &all.targets(0..all.x.nrows()))
        }
    }
    let rvm = Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), dictionary: 20.into(), ..Rvm::default() };
    let error = rvm.fit_blocks(&Twice(AtomicUsize::new(0))).unwrap_err().to_string();
    assert!(error.contains("21999 rows, and there were 22000"), "{error}");
}

#[test]
fn surveys_do_not_depend_on_the_partition() {
    let all = rows(2000, 0);
    let mut whole = Survey::new(100, 4);
    whole.update(all.x.view(), None).unwrap();
    let mut parted = Survey::new(100, 4);
    for part in all.x.axis_chunks_iter(Axis(0), 333).rev() {
        let mut own = Survey::new(100, 4);
        own.update(part, None).unwrap();
        parted.merge(&Survey::from_bytes(&own.to_bytes()).unwrap()).unwrap();
    }
    assert_eq!(parted.sample(), whole.sample());
    assert_eq!((parted.n_rows(), parted.n_features(), parted.weight()), (2000, Some(2), 2000.0));
    let (a, b) = (parted.scaling(), whole.scaling());
    assert!(a.mean.iter().chain(&a.scale).zip(b.mean.iter().chain(&b.scale)).all(|(a, b)| (a - b).abs() < 1e-13));
    assert!((parted.data_scale(false).variance / whole.data_scale(false).variance - 1.0).abs() < 1e-12);
    let mut wide = Survey::new(100, 4);
    wide.update(Array2::zeros((2, 3)).view(), None).unwrap();
    assert!(wide.merge(&whole).unwrap_err().to_string().contains("features"));
    assert!(Survey::new(100, 5).merge(&whole).unwrap_err().to_string().contains("seeds"));
    assert!(whole.update(array_with_nan().view(), None).is_err());
    assert_eq!(whole.n_rows(), 2000);
}

/// Sampled rows have their numbers, targets and noise, and equal rows have the total weight of all of them.
#[test]
fn sampled_rows_have_their_targets() {
    let n = 600;
    let noise = Array1::from_shape_fn(n, |i| 0.02 + 0.05 * wave(i % 500, 41));
    let weights = Array1::from_shape_fn(n, |i| (i % 4) as f64);
    let mut all = All { weights: Some(weights.clone()), noise: Some(noise.clone()), ..rows(n, 0) };
    all.x.column_mut(1).fill(3.0);
    let equal = |i: usize, j: usize| i % 500 == j % 500;
    for i in 500..n {
        let (row, t) = (all.x.row(i - 500).to_owned(), all.t.row(i - 500).to_owned());
        all.x.row_mut(i).assign(&row);
        all.t.row_mut(i).assign(&t);
    }
    let mut survey = Survey::new(200, 4);
    for range in [0..250, 250..n] {
        survey.update_with_targets(all.x.slice(s![range.clone(), ..]), &all.targets(range)).unwrap();
    }
    let sampled = survey.sampled_rows();
    assert!(!sampled.whole && sampled.classes == 0 && sampled.positions.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!((survey.n_rows(), survey.n_used(), sampled.positions.len()), (600, 450, 200));
    for (k, (part, row)) in sampled.positions.iter().enumerate() {
        let row = *row as usize;
        let copies: Vec<usize> = (0..n).filter(|i| equal(*i, row) && weights[*i] > 0.0).collect();
        assert_eq!((*part, row), (0, copies[0]));
        assert_eq!((sampled.x.row(k), sampled.t.row(k)), (all.x.row(row), all.t.row(row)));
        assert_eq!(sampled.noise.as_ref().unwrap()[k], noise[row]);
        assert_eq!(sampled.weights[k], copies.iter().map(|i| weights[*i]).sum::<f64>());
    }
    assert!(sampled.targets().len() == 200 && survey.constant_features() == [1]);
    assert_eq!(survey.data_scale(true).variance, 0.5);
    let text = |result: Result<()>| result.unwrap_err().to_string();
    assert!(text(survey.update(all.x.view(), None)).contains("targets"));
    let plain = All { noise: None, ..rows(n, 0) };
    assert!(text(survey.update_with_targets(plain.x.view(), &plain.targets(0..n))).contains("noise"));
    let classes = rows(n, 2);
    assert!(text(survey.update_with_targets(classes.x.view(), &classes.targets(0..n))).contains("found classes"));
    assert_eq!(survey.sampled_rows(), sampled);
}

fn array_with_nan() -> Array2<f64> {
    Array2::from_elem((1, 2), f64::NAN)
}
