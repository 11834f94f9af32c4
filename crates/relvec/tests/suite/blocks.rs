//! Classification from rows in parts and in blocks: models as from memory, few passes, and errors of the blocks.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use relvec::{
    Answer, Bernoulli, Blocks, CentreRule, Centres, Dictionary, DictionaryRule, Em, Error, FittedBasis, Hyperparameters,
    Inference, Interrupt, Landmarks, MacKay, Matern32, Model, Moderation, MultiClass, Poisson, Policy, PosteriorRule, Query, Rbf,
    Report, Result, RowPlan, RowSource, Rvm, Search, Sequential, Softmax, Sparsity, Start, Status, Targets, Variational,
    WeightPrior, silent,
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

/// The blocks as parts, each with its own answer.
impl RowSource for Cut {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let (mut answers, part) = (None, AtomicUsize::new(0));
        self.pass(&mut |x, targets| {
            let own = query.answer(part.fetch_add(1, Ordering::Relaxed), x, targets)?;
            answers = Some(match answers.take() {
                Some(sum) => Answer::merge(sum, own)?,
                None => own,
            });
            Ok(())
        })?;
        answers.ok_or_else(|| Error::Rows("no parts".into()))
    }
}

impl Cut {
    /// Fits the rows in parts, with a sample of `sample` of them.
    fn fit(&self, rvm: &Rvm, sample: usize) -> Result<(Model, Report)> {
        rvm.fit_rows(self, &RowPlan { classes: Some(self.classes), sample, ..RowPlan::default() })
    }

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
fn two_classes_in_parts_equal_the_model_in_memory_after_few_passes() {
    for (n, size, landmarks, most) in [(400, 97, 20, 60), (3000, 500, 30, 60), (36_000, 5000, 30, 30)] {
        for weighted in [false, true].into_iter().take(if n > 10_000 { 1 } else { 2 }) {
            let mut cut = table(n, 2, size);
            // Some rows have weight 0, including a whole part.
            let weight = |i: usize| if i < 100 { 0.0 } else { 0.5 * (i % 4) as f64 };
            cut.weights = weighted.then(|| Array1::from_shape_fn(n, weight));
            let rvm = machine(&cut, landmarks);
            let (model, report) = cut.fit(&rvm, n / 4).unwrap();
            assert_eq!((report.status, report.candidates), (Status::Converged, landmarks), "{n}");
            assert!(report.trace.windows(2).all(|pair| pair[0].log_evidence <= pair[1].log_evidence));
            let passes = cut.passes.load(Ordering::Relaxed);
            assert!(passes <= most, "{n} rows: {passes} passes");
            same_as_in_memory(&rvm, &cut, &model, 1e-9);
            as_good_as_in_memory(&rvm, &cut, &model);
        }
    }
}

/// Each class has a model against the others, all of them in the same passes. A part may lack a class.
#[test]
fn several_classes_in_parts_have_a_model_each() {
    let mut cut = table(1500, 3, 100);
    let mut by_class: Vec<usize> = (0..1500).collect();
    by_class.sort_by_key(|n| cut.labels[*n]);
    (cut.x, cut.labels) = (cut.x.select(Axis(0), &by_class), by_class.iter().map(|n| cut.labels[*n]).collect());
    assert!(cut.labels[..100].iter().all(|label| *label == 0), "the first part has one class");
    let rvm = machine(&cut, 12);
    let (model, report) = cut.fit(&rvm, 500).unwrap();
    let passes = cut.passes.load(Ordering::Relaxed);
    assert_eq!((report.status, model.n_classes()), (Status::Converged, Some(3)));
    assert!(passes <= 60, "{passes} passes");
    let committee = model.committee.as_ref().unwrap();
    assert_eq!((committee.rule, committee.members.len()), (MultiClass::OneVsRest, 3));
    for (k, member) in committee.members.iter().enumerate() {
        let labels = cut.labels.iter().map(|label| usize::from(*label == k)).collect();
        let own = Cut { x: cut.x.clone(), labels, classes: 2, weights: None, ..table(0, 2, 1) };
        let frequency = own.labels.iter().sum::<usize>() as f64 / 1500.0;
        let member = Model { class_frequencies: vec![1.0 - frequency, frequency], ..member.clone() };
        same_as_in_memory(&rvm, &own, &member, 1e-9);
        as_good_as_in_memory(&rvm, &own, &member);
    }
    let probability = model.predict_probability(cut.x.view(), Moderation::default()).unwrap();
    let loss = |p: &Array2<f64>| -cut.labels.iter().enumerate().map(|(n, k)| p[[n, *k]].ln()).sum::<f64>() / 1500.0;
    let in_memory = Rvm { multi_class: MultiClass::OneVsRest, ..rvm }.fit(cut.x.view(), &cut.targets()).unwrap().0;
    let expected = in_memory.predict_probability(cut.x.view(), Moderation::default()).unwrap();
    assert!((loss(&probability) - loss(&expected)).abs() < 0.005, "{} and {}", loss(&probability), loss(&expected));
}

#[test]
fn options_work_in_parts_as_in_memory() {
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
        Rvm { sparsity: Sparsity::Nats(2.0), ..plain.clone() },
        Rvm { posterior: PosteriorRule::Laplace, ..plain.clone() },
        Rvm { kernel: Matern32 { gamma: 1.5.into() }.into(), ..plain.clone() },
    ] {
        let (model, _) = cut.fit(&rvm, 400).unwrap();
        same_as_in_memory(&rvm, &cut, &model, 1e-8);
        let probability = model.predict_probability(cut.x.view(), Moderation::default()).unwrap();
        let right = cut.labels.iter().enumerate().filter(|(n, k)| probability[[*n, **k]] > 0.5).count();
        assert!(right > 2000, "{right} rows right, {:?}", rvm.inference);
    }
}

/// Steep classes, whose Hessian is almost zero for most rows, and whose sample is separable.
#[test]
fn well_separated_classes_need_few_passes() {
    let mut cut = table(6000, 2, 1000);
    let f = |n: usize| (2.0 * cut.x[[n, 0]]).sin() + 1.5 - cut.x[[n, 1]];
    cut.labels = (0..6000).map(|n| usize::from(f(n) + 0.02 * ((7 * n) as f64).sin() > 0.0)).collect();
    let rvm = machine(&cut, 40);
    let (model, report) = cut.fit(&rvm, 300).unwrap();
    let passes = cut.passes.load(Ordering::Relaxed);
    assert!(report.status == Status::Converged && passes <= 60, "{:?} after {passes} passes", report.status);
    same_as_in_memory(&rvm, &cut, &model, 1e-7);
    as_good_as_in_memory(&rvm, &cut, &model);
}

/// Landmarks and the width of the kernel are learned from the sample. The model is that of an evaluation in memory.
#[test]
fn landmarks_and_kernel_are_those_of_the_sample() {
    let cut = table(3000, 2, 800);
    let rvm = Rvm {
        likelihood: Bernoulli::default().into(),
        dictionary: Dictionary::Size(40),
        weight_prior: WeightPrior::Ard,
        ..Rvm::default()
    };
    let (model, _) = cut.fit(&rvm, 600).unwrap();
    let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { panic!("{:?}", model.expansion.basis) };
    for (row, centre) in model.relevance.iter().zip(centres.outer_iter()) {
        assert_eq!(cut.x.row(*row), centre);
    }
    let given = Landmarks::Given(Centres(centres.clone()));
    let rvm = Rvm { kernel: kernel.clone(), landmarks: given, weight_prior: WeightPrior::Ard, ..machine(&cut, 5) };
    let model = Model { relevance: (0..centres.nrows()).collect(), ..model.clone() };
    same_as_in_memory(&rvm, &cut, &model, 1e-9);
}

#[test]
fn models_of_parts_do_not_depend_on_threads() {
    for classes in [2, 3] {
        let cut = table(1200, classes, 200);
        let fit = |threads: usize| {
            let rvm = Rvm { threads: Some(threads), ..machine(&cut, 12) };
            cut.fit(&rvm, 300).unwrap().0.to_json().unwrap()
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
    let (model, report) = cut.fit(&rvm, 100).unwrap();
    assert_eq!((report.candidates, report.adjustments.zero_columns), (7, 1));
    assert!(model.relevance.iter().all(|k| *k < 6), "{:?}", model.relevance);
}

/// Returns a fit whose memory limit leaves room for a sample of 260 rows.
fn with_little_memory(cut: &Cut, landmarks: usize) -> Rvm {
    Rvm { memory_limit: Some(250_000), ..machine(cut, landmarks) }
}

#[test]
fn blocks_are_one_part() {
    let cut = table(3000, 2, 400);
    let rvm = with_little_memory(&cut, 20);
    let (model, report) = rvm.fit_blocks(&cut).unwrap();
    assert_eq!((report.status, model.n_rows), (Status::Converged, 3000));
    assert!(cut.passes.load(Ordering::Relaxed) > 3);
    same_as_in_memory(&machine(&cut, 20), &cut, &model, 1e-9);
    // The sample of a fit with more memory contains all rows.
    let rvm = machine(&cut, 20);
    let (whole, _) = rvm.fit_blocks(&cut).unwrap();
    let (memory, _) = rvm.fit(cut.x.view(), &cut.targets()).unwrap();
    assert!((whole.log_evidence.unwrap() - memory.log_evidence.unwrap()).abs() < 1e-6);
}

#[test]
fn limits_and_interrupts_end_fits_of_blocks() {
    let cut = table(3000, 2, 400);
    let rvm = with_little_memory(&cut, 20);
    let (model, report) = rvm.fit_blocks_with(&cut, &mut |_| ControlFlow::Break(()), &Interrupt::default()).unwrap();
    assert_eq!((model.status, report.status, report.trace.len()), (Status::Stopped, Status::Stopped, 1));
    same_as_in_memory(&machine(&cut, 20), &cut, &model, 1e-2);
    let limited = Rvm { time_limit: Some(1e-6), ..rvm.clone() };
    let (model, report) = limited.fit_blocks(&cut).unwrap();
    assert_eq!((model.status, report.status), (Status::TimeLimit, Status::TimeLimit));
    assert!(model.log_evidence.unwrap().is_finite() && report.adjustments.left_out_rows > 2000);
    let few = Rvm { max_iterations: 2, ..rvm.clone() };
    let (model, report) = few.fit_blocks(&cut).unwrap();
    assert_eq!((model.status, report.iterations), (Status::IterationLimit, 2));
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = rvm.fit_blocks_with(&cut, &mut silent, &interrupt).unwrap_err();
    assert_eq!(error, Error::Interrupted);
}

#[test]
fn rows_that_change_between_passes_are_rejected() {
    // The first pass reads a block, and the second one is the survey.
    for from in [2, 3, 5] {
        for classes in [2, 3] {
            let cut = Cut { shrinks: Some(from), ..table(700, classes, 150) };
            let error = with_little_memory(&cut, 10).fit_blocks(&cut).unwrap_err();
            assert_eq!(error.to_string(), "partition 0 changed between passes: it has 699 rows, and there were 700");
        }
    }
}

/// Rows that are valid in the survey, and other rows in all later passes.
struct Later {
    first: Cut,
    then: Cut,
}

impl Blocks for Later {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        // The first pass reads a block, and the second one is the survey.
        let of = if self.first.passes.load(Ordering::Relaxed) < 2 { &self.first } else { &self.then };
        of.pass(each)
    }
}

#[test]
fn bad_blocks_in_a_later_pass_are_rejected() {
    let good = || table(700, 2, 150);
    let with = |change: &dyn Fn(&mut Cut)| {
        let mut then = good();
        change(&mut then);
        let rvm = with_little_memory(&good(), 10);
        rvm.fit_blocks(&Later { first: good(), then }).unwrap_err().to_string()
    };
    for (error, part) in [
        (with(&|cut| cut.x[[444, 0]] = f64::NAN), "row 444, column 0 is NaN"),
        (with(&|cut| cut.labels[333] = 5), "row 333 has label 5; labels of 2 classes are 0 to 1"),
        (with(&|cut| cut.labels.swap(5, 6)), "it has rows of other values or weights"),
        (with(&|cut| cut.x = Array2::zeros((700, 3))), "expected 2 columns, found 3"),
        (with(&|cut| cut.weights = Some(Array1::from_elem(700, f64::INFINITY))), "sample weight of row 0 is inf"),
        (with(&|cut| cut.labels.truncate(699)), "it has 699 rows, and there were 700"),
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn bad_rows_are_rejected_in_the_first_pass() {
    let says = |cut: &Cut, part: &str| {
        let error = machine(&table(700, 2, 100), 10).fit_blocks(cut).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        // A pass that reads the first block, and the survey.
        assert!(cut.passes.load(Ordering::Relaxed) <= 2);
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
    says(&table(700, 1, 100), "needs exactly 2 classes, found 1");
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
        (vec![(x(2), 2), (x(3), 2)], "rows have 3 features, and other rows have 2"),
        (vec![(x(3), 2)], "landmarks: expected at least 1, of 3 features, found 10 of 2 features"),
    ] {
        let error = rvm.fit_blocks(&Odd(blocks)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // Blocks without rows are skipped.
    let blocks = Odd(vec![(x(2).slice(s![..0, ..]).to_owned(), 2), (x(2), 2), (x(2).slice(s![..0, ..]).to_owned(), 2)]);
    assert_eq!(rvm.fit_blocks(&blocks).unwrap().0.n_rows, 20);
    let error = rvm.fit_blocks(&Values).unwrap_err().to_string();
    assert!(error.contains("classes = none"), "{error}");
}

#[test]
fn settings_that_need_all_rows_are_rejected_in_parts() {
    let (two, three) = (table(700, 2, 100), table(700, 3, 100));
    let plain = machine(&two, 10);
    let all = Dictionary::Rule(DictionaryRule::All);
    for (cut, rvm, name) in [
        (&two, Rvm { likelihood: Softmax::default().into(), ..plain.clone() }, "likelihood"),
        (&two, Rvm { inference: Inference::Variational(Variational::default()), ..plain.clone() }, "inference"),
        (&two, Rvm { posterior: PosteriorRule::Averaged, ..plain.clone() }, "posterior"),
        (&two, Rvm { cv: Some(3), ..plain.clone() }, "cv"),
        (&two, Rvm { landmarks: Landmarks::default(), dictionary: all, ..plain.clone() }, "dictionary"),
        (&two, Rvm { landmarks: Landmarks::default(), centres: CentreRule::Learned, ..plain.clone() }, "centres"),
        (&three, Rvm { multi_class: MultiClass::Joint, ..plain.clone() }, "multi_class"),
        (&three, Rvm { multi_class: MultiClass::OneVsOne, ..plain.clone() }, "multi_class"),
    ] {
        let error = cut.fit(&rvm, 200).unwrap_err();
        let Error::Parameter { name: found, .. } = &error else { panic!("{error}") };
        assert_eq!(found, name, "{error}");
    }
    let counts = Rvm { likelihood: Poisson::default().into(), ..plain };
    assert!(counts.fit_blocks(&two).is_err());
}

#[test]
fn memory_error_names_a_sufficient_limit() {
    let cut = table(5000, 2, 1000);
    let with = |limit: u64| Rvm { memory_limit: Some(limit), ..machine(&cut, 40) }.fit_blocks(&cut);
    let Err(Error::Memory { needed, limit, .. }) = with(50_000) else { panic!("50 KB") };
    assert_eq!(limit, 50_000);
    assert_eq!(with(needed).unwrap().1.status, Status::Converged);
}
