//! Classification from rows in blocks: the same sums and models as from memory, and errors of the blocks.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use relvec::{
    Bernoulli, Blocks, Centres, Dictionary, Em, Error, Gaussian, Hyperparameters, Inference, Interrupt, Landmarks, MacKay,
    Matern32, Model, Moderation, MultiClass, Poisson, Policy, PosteriorRule, Rbf, Result, Rvm, Search, Sequential, Softmax,
    Sparsity, Start, Status, Targets, Variational, silent,
};

/// Training data cut into blocks.
struct Cut {
    x: Array2<f64>,
    labels: Vec<usize>,
    classes: usize,
    weights: Option<Array1<f64>>,
    /// Number of rows of a block.
    size: usize,
    passes: AtomicUsize,
    /// Pass from which on the last rows are missing.
    shrinks: Option<usize>,
}

impl Blocks for Cut {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        let n = self.labels.len() - if self.shrinks.is_some_and(|from| pass >= from) { 1 } else { 0 };
        for start in (0..n).step_by(self.size) {
            let end = (start + self.size).min(n);
            let targets = Targets::classes(&self.labels[start..end], self.classes);
            let x = self.x.slice(s![start..end, ..]);
            match &self.weights {
                Some(weights) => each(x, &targets.with_weights(weights.slice(s![start..end])))?,
                None => each(x, &targets)?,
            }
        }
        Ok(())
    }
}

impl Cut {
    fn targets(&self) -> Targets<'_> {
        let targets = Targets::classes(&self.labels, self.classes);
        self.weights.as_ref().map_or(targets, |weights| targets.with_weights(weights.view()))
    }
}

/// Returns rows of classes along a wave, a few of them with a wrong label.
fn table(n: usize, classes: usize, size: usize) -> Cut {
    let fraction = |i: usize, by: f64| ((i + 1) as f64 * by).fract();
    let x = Array2::from_shape_fn((n, 2), |(i, j)| 4.0 * fraction(i, [0.618_033_988_75, 0.754_877_666_25][j]));
    let label = |i: usize| {
        let f = (2.0 * x[[i, 0]]).sin() + x[[i, 1]] + 2.0 * fraction(i, 0.569_840_290_998) - 1.0;
        ((f + 2.0) / 8.0 * classes as f64) as usize % classes
    };
    let labels = (0..n).map(label).collect();
    Cut { x, labels, classes, weights: None, size, passes: AtomicUsize::new(0), shrinks: None }
}

fn machine(cut: &Cut, landmarks: usize) -> Rvm {
    let every = cut.labels.len() / landmarks;
    let rows: Vec<usize> = (0..landmarks).map(|k| k * every).collect();
    Rvm {
        kernel: Rbf { gamma: 1.5.into() }.into(),
        likelihood: Bernoulli::default().into(),
        landmarks: Landmarks::Given(Centres(cut.x.select(Axis(0), &rows))),
        dictionary: Dictionary::Size(landmarks),
        ..Rvm::tipping2001()
    }
}

/// Checks weights, posterior and evidence of a model of rows in blocks against a model of all rows in memory at the
/// same precisions.
#[track_caller]
fn same_as_in_memory(rvm: &Rvm, cut: &Cut, model: &Model, tolerance: f64) {
    let own = rvm.evaluate(cut.x.view(), &cut.targets(), &Hyperparameters::of(model)).unwrap();
    let (found, expected) = (model.log_evidence.unwrap(), own.log_evidence);
    assert!((found - expected).abs() <= tolerance * expected.abs(), "log evidence {found}, {expected} in memory");
    let near = |what: &str, a: &Array2<f64>, b: &Array2<f64>| {
        let largest = b.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let worst = (a - b).iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(worst <= 1e3 * tolerance * largest, "{what} differ by {worst:e} of {largest:e}");
    };
    near("weights", &model.expansion.weights, &own.model.expansion.weights);
    near("covariances", &model.weight_covariance(), &own.model.weight_covariance());
    assert_eq!((model.n_rows, &model.relevance), (cut.labels.len(), &own.model.relevance));
    close(model.class_frequencies.iter().sum(), 1.0, 1e-12);
    for (k, frequency) in model.class_frequencies.iter().enumerate() {
        let weight = |n: usize| cut.weights.as_ref().map_or(1.0, |w| w[n]);
        let of = |class: Option<usize>| -> f64 {
            (0..cut.labels.len()).filter(|n| class.is_none_or(|k| cut.labels[*n] == k)).map(weight).sum()
        };
        close(*frequency, of(Some(k)) / of(None), 1e-12);
    }
}

#[track_caller]
fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} and {b}");
}

/// Checks that the evidence is as high as in memory. Searches may end in different optima.
#[track_caller]
fn as_good_as_in_memory(rvm: &Rvm, cut: &Cut, model: &Model) {
    let (memory, _) = rvm.fit(cut.x.view(), &cut.targets()).unwrap();
    let (found, expected) = (model.log_evidence.unwrap(), memory.log_evidence.unwrap());
    assert!(found > expected - 10.0, "{} rows: {found}, in memory {expected}", cut.labels.len());
}

#[test]
fn two_classes_in_blocks_equal_the_model_in_memory() {
    // Few rows; a Hessian that serves for several steps; a frozen Hessian that is bounded first.
    for (n, size, landmarks) in [(400, 1000, 20), (400, 97, 20), (3000, 500, 30), (36_000, 5000, 30)] {
        for weighted in [false, true].into_iter().take(if n > 10_000 { 1 } else { 2 }) {
            let mut cut = table(n, 2, size);
            // Some rows have weight 0, including a whole block.
            let weight = |i: usize| if i < 100 { 0.0 } else { 0.5 * (i % 4) as f64 };
            cut.weights = weighted.then(|| Array1::from_shape_fn(n, weight));
            let rvm = machine(&cut, landmarks);
            let (model, report) = rvm.fit_blocks(&cut).unwrap();
            assert_eq!(report.status, Status::Converged, "{n}");
            assert_eq!(report.candidates, landmarks);
            same_as_in_memory(&rvm, &cut, &model, 1e-9);
            as_good_as_in_memory(&rvm, &cut, &model);
        }
    }
}

#[test]
fn several_classes_in_blocks_equal_the_model_in_memory() {
    for (n, size, landmarks) in [(600, 250, 12), (1500, 400, 12)] {
        let cut = table(n, 3, size);
        let rvm = machine(&cut, landmarks);
        let (model, report) = rvm.fit_blocks(&cut).unwrap();
        assert_eq!((report.status, model.n_classes()), (Status::Converged, Some(3)));
        // A fit of several classes averages its posterior by default; an evaluation must be asked for it.
        let averaged = Rvm { posterior: PosteriorRule::Averaged, ..rvm.clone() };
        same_as_in_memory(&averaged, &cut, &model, 1e-8);
        as_good_as_in_memory(&rvm, &cut, &model);
    }
}

#[test]
fn options_work_in_blocks_as_in_memory() {
    let cut = table(2500, 2, 600);
    let plain = machine(&cut, 15);
    let search = |own: Search| Rvm { inference: Inference::Search(own), ..plain.clone() };
    for rvm in [
        Rvm { inference: Inference::MacKay(MacKay::default()), ..plain.clone() },
        Rvm { inference: Inference::Em(Em::default()), max_iterations: 30, ..plain.clone() },
        Rvm { inference: Sequential::default().into(), ..plain.clone() },
        search(Search { policy: Policy { batch: 1, ..Policy::default() }, ..Search::default() }),
        search(Search { start: Start::Empty, ..Search::default() }),
        Rvm { bias: false, ..plain.clone() },
        Rvm { posterior: PosteriorRule::Averaged, ..plain.clone() },
        Rvm { sparsity: Sparsity::Nats(2.0), ..plain.clone() },
        Rvm { multi_class: MultiClass::Joint, likelihood: Softmax::default().into(), ..plain.clone() },
        Rvm { kernel: Matern32 { gamma: 1.5.into() }.into(), ..plain.clone() },
    ] {
        let (model, _) = rvm.fit_blocks(&cut).unwrap();
        same_as_in_memory(&rvm, &cut, &model, 1e-8);
        let probability = model.predict_probability(cut.x.view(), Moderation::default()).unwrap();
        let right = cut.labels.iter().enumerate().filter(|(n, k)| probability[[*n, **k]] > 0.5).count();
        assert!(right > 2000, "{right} rows right, {:?}", rvm.inference);
    }
}

#[test]
fn all_schemes_fit_several_classes_in_blocks() {
    let cut = table(900, 3, 200);
    let plain = Rvm { posterior: PosteriorRule::Laplace, ..machine(&cut, 8) };
    for inference in [Inference::MacKay(MacKay::default()), Inference::Em(Em::default())] {
        let rvm = Rvm { inference, max_iterations: 15, ..plain.clone() };
        let (model, _) = rvm.fit_blocks(&cut).unwrap();
        same_as_in_memory(&rvm, &cut, &model, 1e-8);
    }
}

#[test]
fn models_of_blocks_do_not_depend_on_threads() {
    for classes in [2, 3] {
        let cut = table(1200, classes, 200);
        let fit = |threads: usize| {
            let rvm = Rvm { threads: Some(threads), ..machine(&cut, 12) };
            rvm.fit_blocks(&cut).unwrap().0.to_json().unwrap()
        };
        assert_eq!(fit(1), fit(3));
    }
}

#[test]
fn equal_landmarks_are_one_candidate() {
    let cut = table(500, 2, 90);
    let mut rvm = machine(&cut, 6);
    let Landmarks::Given(Centres(centres)) = &rvm.landmarks else { panic!("given above") };
    let twice = ndarray::concatenate![Axis(0), *centres, *centres, ndarray::arr2(&[[1e3, 1e3]])];
    rvm.landmarks = Landmarks::Given(Centres(twice));
    let (model, report) = rvm.fit_blocks(&cut).unwrap();
    assert_eq!((report.candidates, report.adjustments.zero_columns), (7, 1));
    assert!(model.relevance.iter().all(|k| *k < 6), "{:?}", model.relevance);
}

#[test]
fn limits_and_interrupts_end_fits_of_blocks() {
    let cut = table(3000, 2, 400);
    let rvm = machine(&cut, 20);
    let (model, report) = rvm.fit_blocks_with(&cut, &mut |_| ControlFlow::Break(()), &Interrupt::default()).unwrap();
    assert_eq!((model.status, report.status), (Status::Stopped, Status::Stopped));
    let limited = Rvm { time_limit: Some(1e-6), ..rvm.clone() };
    let (model, report) = limited.fit_blocks(&cut).unwrap();
    assert_eq!((model.status, report.status), (Status::TimeLimit, Status::TimeLimit));
    assert!(model.log_evidence.unwrap().is_finite());
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = rvm.fit_blocks_with(&cut, &mut silent, &interrupt).unwrap_err();
    assert_eq!(error, Error::Interrupted);
}

#[test]
fn rows_that_change_between_passes_are_rejected() {
    for from in [1, 2, 7] {
        for classes in [2, 3] {
            let cut = Cut { shrinks: Some(from), ..table(700, classes, 150) };
            let error = machine(&cut, 10).fit_blocks(&cut).unwrap_err();
            assert_eq!(error.to_string(), "a pass over the rows found 699; the first pass found 700");
        }
    }
}

/// From the fourth pass on a label is missing.
struct Short(AtomicUsize);

impl Blocks for Short {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        let cut = table(50, 2, 50);
        let labels = 50 - usize::from(self.0.fetch_add(1, Ordering::Relaxed) > 2);
        each(cut.x.view(), &Targets::classes(&cut.labels[..labels], 2))
    }
}

#[test]
fn missing_label_in_a_later_pass_is_rejected() {
    let error = machine(&table(50, 2, 50), 5).fit_blocks(&Short(AtomicUsize::new(0))).unwrap_err();
    assert_eq!(error.to_string(), "targets: expected 50, one per row, found 49");
}

/// Rows that are valid in the first pass, and other rows in all later passes.
struct Later {
    first: Cut,
    then: Cut,
}

impl Blocks for Later {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        let of = if self.first.passes.load(Ordering::Relaxed) == 0 { &self.first } else { &self.then };
        of.pass(each)
    }
}

#[test]
fn bad_blocks_in_a_later_pass_are_rejected() {
    let good = || table(700, 2, 150);
    let with = |change: &dyn Fn(&mut Cut)| {
        let mut then = good();
        change(&mut then);
        let rvm = machine(&good(), 10);
        rvm.fit_blocks(&Later { first: good(), then }).unwrap_err().to_string()
    };
    for (error, part) in [
        (with(&|cut| cut.x[[444, 0]] = f64::NAN), "row 444, column 0 is NaN"),
        (with(&|cut| cut.labels[333] = 5), "row 333 has label 5; labels of 2 classes are 0 to 1"),
        (with(&|cut| cut.classes = 3), "a block of rows has 3 classes; there were 2 in the first pass"),
        (with(&|cut| cut.x = Array2::zeros((700, 3))), "a block of rows has 3 columns; there were 2 in the first pass"),
        (with(&|cut| cut.weights = Some(Array1::from_elem(700, f64::INFINITY))), "sample weight of row 0 is inf"),
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn bad_rows_are_rejected_in_the_first_pass() {
    let says = |cut: &Cut, part: &str| {
        let error = machine(&table(700, 2, 100), 10).fit_blocks(cut).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(cut.passes.load(Ordering::Relaxed), 1);
    };
    let mut cut = table(700, 2, 100);
    cut.x[[450, 1]] = f64::NAN;
    says(&cut, "row 450, column 1 is NaN");
    let mut cut = table(700, 2, 100);
    cut.labels[333] = 2;
    says(&cut, "row 333 has label 2");
    let mut cut = table(700, 2, 100);
    cut.labels.fill(1);
    says(&cut, "class 0 of 2 has no row of positive weight");
    let mut cut = table(700, 2, 100);
    let weights = Array1::from_shape_fn(700, |i| if i == 655 { -1.0 } else { 1.0 });
    cut.weights = Some(weights);
    says(&cut, "sample weight of row 655 is -1");
    let mut cut = table(700, 2, 100);
    cut.weights = Some(Array1::zeros(700));
    says(&cut, "training rows of positive weight: found 0");
    says(&table(0, 2, 100), "training rows of positive weight: found 0");
    says(&table(700, 1, 100), "rows of two classes are needed");
}

/// Blocks that do not fit together.
struct Odd(Vec<(Array2<f64>, usize)>);

impl Blocks for Odd {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        self.0.iter().try_for_each(|(x, classes)| {
            let labels: Vec<usize> = (0..x.nrows()).map(|i| i % 2).collect();
            each(x.view(), &Targets::classes(&labels, *classes))
        })
    }
}

struct Values;

impl Blocks for Values {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        each(Array2::zeros((3, 2)).view(), &Targets::real(Array1::zeros(3).view()))
    }
}

#[test]
fn blocks_of_different_shapes_are_rejected() {
    let rvm = machine(&table(700, 2, 100), 10);
    let x = |columns: usize| Array2::from_shape_fn((20, columns), |(i, j)| (i * (j + 1)) as f64);
    for (blocks, part) in [
        (vec![(x(2), 2), (x(3), 2)], "expected 2 columns, as in the first block, found 3"),
        (vec![(x(2), 2), (x(2), 3)], "a block has 3 classes; the blocks before it have 2"),
        (vec![(x(3), 2)], "landmarks: expected at least 1, of 3 features, found 10 of 2 features"),
    ] {
        let error = rvm.fit_blocks(&Odd(blocks)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // Blocks without rows are skipped.
    let blocks = Odd(vec![(x(2).slice(s![..0, ..]).to_owned(), 2), (x(2), 2), (x(2).slice(s![..0, ..]).to_owned(), 2)]);
    assert_eq!(rvm.fit_blocks(&blocks).unwrap().0.n_rows, 20);
    let error = rvm.fit_blocks(&Values).unwrap_err().to_string();
    assert!(error.contains("found real targets"), "{error}");
}

#[test]
fn settings_that_need_all_rows_are_rejected_in_blocks() {
    let cut = table(700, 2, 100);
    let plain = machine(&cut, 10);
    let size = Rvm { landmarks: Landmarks::default(), ..plain.clone() };
    for (rvm, name) in [
        (Rvm { likelihood: Gaussian::default().into(), ..plain.clone() }, "likelihood"),
        (Rvm { likelihood: Poisson::default().into(), ..plain.clone() }, "likelihood"),
        (Rvm { inference: Inference::Variational(Variational::default()), ..plain.clone() }, "inference"),
        (Rvm { multi_class: MultiClass::OneVsRest, ..plain.clone() }, "multi_class"),
        (Rvm { cv: Some(3), ..plain.clone() }, "cv"),
        (Rvm { kernel: Rbf::default().into(), ..plain.clone() }, "kernel.rbf.gamma"),
        (size, "landmarks"),
    ] {
        let error = rvm.fit_blocks(&cut).unwrap_err();
        let Error::Parameter { name: found, .. } = &error else { panic!("{error}") };
        assert_eq!(found, name, "{error}");
    }
    assert_eq!(cut.passes.load(Ordering::Relaxed), 0);
}

#[test]
fn memory_error_names_a_sufficient_limit() {
    let cut = table(5000, 2, 1000);
    let with = |limit: u64| Rvm { memory_limit: Some(limit), ..machine(&cut, 40) }.fit_blocks(&cut);
    let Err(Error::Memory { needed, limit, .. }) = with(50_000) else { panic!("50 KB") };
    assert_eq!(limit, 50_000);
    assert_eq!(with(needed).unwrap().1.status, Status::Converged);
    assert!(with(needed - 1).is_err());
}
