//! Statistics are additive: any partition in any order gives the same sums, and the same evidence as the rows.

use ndarray::{Array1, Array2, Axis, s};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use relvec::{
    Bernoulli, Centres, Dictionary, Error, Gamma, Gaussian, Kernel, Landmarks, Linear, Matern32, Poly, Rbf, Rvm, Statistics,
    Targets,
};

/// Returns rows, targets far from zero, and weights.
fn table(rows: usize) -> (Array2<f64>, Array1<f64>, Array1<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(5);
    let x = Array2::from_shape_simple_fn((rows, 3), || random.random_range(-2.0..2.0));
    let t = x.map_axis(Axis(1), |r| 300.0 + f64::sin(2.0 * r[0]) + r[1] * r[2]);
    let t = t.mapv(|t| t + random.random_range(-0.2..0.2));
    let c = Array1::from_shape_simple_fn(rows, || random.random_range(0..4) as f64 * 0.5);
    (x, t, c)
}

fn kernels() -> Vec<Kernel> {
    let poly = Poly { degree: 2, gamma: 0.5.into(), coef0: 1.0 };
    vec![
        Rbf { gamma: 0.7.into() }.into(),
        Matern32 { gamma: Gamma::PerFeature(vec![0.5, 1.0, 0.2]) }.into(),
        poly.into(),
        Linear::default().into(),
    ]
}

fn difference(a: &Statistics, b: &Statistics) -> f64 {
    let relative = |x: f64, y: f64, size: f64| (x - y).abs() / size;
    let ((f, tt, mean), (f2, tt2, mean2)) = (a.target_sums(), b.target_sums());
    let largest = f.iter().fold(0.0f64, |l, v| l.max(v.abs()));
    let gram = a.gram().into_iter().zip(b.gram()).map(|(x, y)| relative(*x, *y, x.abs().max(1e-3 * a.gram()[[0, 0]])));
    let f = f.iter().zip(&f2).map(|(x, y)| relative(*x, *y, largest));
    gram.chain(f).chain([relative(tt, tt2, tt), relative(mean, mean2, mean)]).fold(0.0, f64::max)
}

/// Any partition, merged in any order or as a tree, gives the sums of the whole to 1e-13.
#[test]
fn sums_do_not_depend_on_the_partition() {
    let (x, t, c) = table(5000);
    let mut random = rand_pcg::Pcg64::seed_from_u64(6);
    for kernel in kernels() {
        let mut whole = Statistics::new(&kernel, x.slice(s![..40, ..])).unwrap();
        let none = whole.clone();
        whole.update(x.view(), &Targets::real(t.view()).with_weights(c.view())).unwrap();
        assert_eq!(whole.n_rows(), c.iter().filter(|c| **c > 0.0).count());
        assert!((whole.weight() - c.sum()).abs() < 1e-9);
        for parts in [2, 7, 100] {
            let mut cuts: Vec<usize> = (1..parts).map(|_| random.random_range(0..5000)).chain([0, 5000]).collect();
            cuts.sort_unstable();
            let mut pieces: Vec<Statistics> = cuts
                .windows(2)
                .map(|w| {
                    let mut piece = none.clone();
                    let rows = s![w[0]..w[1]];
                    let targets = Targets::real(t.slice(rows)).with_weights(c.slice(rows));
                    piece.update(x.slice(s![w[0]..w[1], ..]), &targets).unwrap();
                    piece
                })
                .collect();
            pieces.shuffle(&mut random);
            let mut tree = pieces.clone();
            while tree.len() > 1 {
                tree = tree
                    .chunks(2)
                    .map(|pair| {
                        let mut sum = pair[0].clone();
                        pair[1..].iter().for_each(|p| sum.merge(p).unwrap());
                        sum
                    })
                    .collect();
            }
            let mut chain = none.clone();
            pieces.iter().for_each(|p| chain.merge(p).unwrap());
            for (name, sum) in [("tree", &tree[0]), ("chain", &chain)] {
                let error = difference(&whole, sum);
                assert!(error < 1e-13, "{} {parts} parts, {name}: {error:e}", kernel.name());
                assert_eq!(sum.n_rows(), whole.n_rows());
            }
        }
    }
}

/// The fit to statistics equals the fit to the rows with the same landmarks: evidence at the same active set to 1e-9,
/// and the same predictions.
#[test]
fn fit_to_statistics_equals_the_fit_to_rows() {
    let (x, t, c) = table(2000);
    let centres = x.slice(s![..60, ..]).to_owned();
    for kernel in kernels().into_iter().take(2) {
        for (bias, noise_variance, weighted) in [(true, None, true), (false, None, false), (true, Some(0.02), false)] {
            let likelihood = Gaussian { noise_variance }.into();
            let landmarks = Landmarks::Given(Centres(centres.clone()));
            let rvm = Rvm { kernel: kernel.clone(), landmarks, bias, likelihood, ..Rvm::tipping2001() };
            let targets = Targets::real(t.view());
            let targets = if weighted { targets.with_weights(c.view()) } else { targets };
            let (direct, _) = rvm.fit(x.view(), &targets).unwrap();
            let mut statistics = Statistics::new(&kernel, centres.view()).unwrap();
            statistics.update(x.view(), &targets).unwrap();
            let (summed, report) = rvm.fit_statistics(&statistics).unwrap();
            assert_eq!(report.candidates, 60);
            let name = format!("{} bias {bias} noise {noise_variance:?}", kernel.name());
            let size = direct.log_evidence.unwrap().abs().max(1.0);
            assert!(
                summed.log_evidence.unwrap() > direct.log_evidence.unwrap() - 1e-3,
                "{name}: {} {}",
                summed.log_evidence.unwrap(),
                direct.log_evidence.unwrap()
            );
            if summed.relevance == direct.relevance {
                assert!((summed.log_evidence.unwrap() - direct.log_evidence.unwrap()).abs() < 1e-9 * size, "{name}");
                let (a, b) = (direct.predict(x.view()).unwrap(), summed.predict(x.view()).unwrap());
                for (a, b) in a.mean.iter().zip(&b.mean) {
                    assert!((a - b).abs() < 1e-6, "{name}: {a} {b}");
                }
            } else {
                panic!("{name}: other vectors: {:?} {:?}", summed.relevance, direct.relevance);
            }
        }
    }
}

#[test]
fn statistics_survive_bytes_and_damage_is_detected() {
    let (x, t, c) = table(300);
    let mut statistics = Statistics::new(&kernels()[1], x.slice(s![..9, ..])).unwrap();
    let empty = Statistics::from_bytes(&statistics.to_bytes()).unwrap();
    assert_eq!((empty.n_rows(), empty.to_bytes()), (0, statistics.to_bytes()));
    statistics.update(x.view(), &Targets::real(t.view()).with_weights(c.view())).unwrap();
    let bytes = statistics.to_bytes();
    let again = Statistics::from_bytes(&bytes).unwrap();
    assert_eq!(again.to_bytes(), bytes);
    assert_eq!(difference(&statistics, &again), 0.0);
    for cut in [0, 3, 20, 25, 60, bytes.len() - 1] {
        assert!(matches!(Statistics::from_bytes(&bytes[..cut]), Err(Error::Statistics(_))), "{cut} bytes");
    }
    for place in [0, 21, 40, 200, bytes.len() / 2, bytes.len() - 2] {
        let mut bad = bytes.clone();
        bad[place] ^= 4;
        assert!(matches!(Statistics::from_bytes(&bad), Err(Error::Statistics(_))), "byte {place}");
    }
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    let (x, t, c) = table(50);
    let kernel = kernels().remove(0);
    let mut statistics = Statistics::new(&kernel, x.slice(s![..5, ..])).unwrap();
    statistics.update(x.view(), &Targets::real(t.view())).unwrap();
    let before = statistics.to_bytes();
    let mut nan = x.clone();
    nan[[7, 2]] = f64::NAN;
    let error = statistics.update(nan.view(), &Targets::real(t.view())).unwrap_err();
    assert!(error.to_string().contains("row 7, column 2"), "{error}");
    let short = Targets::real(t.slice(s![..9]));
    assert!(matches!(statistics.update(x.view(), &short), Err(Error::Shape { what: "targets", .. })));
    assert!(statistics.update(x.slice(s![.., ..2]), &Targets::real(t.view())).unwrap_err().to_string().contains("3 columns"));
    let negative = -&c - 1.0;
    assert!(matches!(
        statistics.update(x.view(), &Targets::real(t.view()).with_weights(negative.view())),
        Err(Error::Weight { row: 0, .. })
    ));
    assert!(statistics.update(x.view(), &Targets::classes(&[0; 50], 2)).is_err());
    let other = Statistics::new(&kernel, x.slice(s![5..10, ..])).unwrap();
    assert!(statistics.merge(&other).unwrap_err().to_string().contains("centres"));
    let other = Statistics::new(&Kernel::from(Rbf { gamma: 0.1.into() }), x.slice(s![..5, ..])).unwrap();
    assert!(statistics.merge(&other).unwrap_err().to_string().contains("kernel"));
    assert_eq!(statistics.to_bytes(), before);
    // If squares of targets cannot be summed, the error names the first such row, and not the kernel.
    let mut far = t.clone();
    (far[3], far[8]) = (1e160, -1e160);
    let message = statistics.update(x.view(), &Targets::real(far.view())).unwrap_err().to_string();
    assert!(message.contains("targets, at row 3 (target 1e160)"), "{message}");
    assert_eq!(statistics.to_bytes(), before);
    // A rule for gamma has no data.
    assert!(Statistics::new(&Kernel::from(Rbf::default()), x.view()).unwrap_err().to_string().contains("gamma"));
    assert!(Statistics::new(&kernel, nan.view()).is_err());
    assert!(Statistics::new(&kernel, x.slice(s![..0, ..])).is_err());
    // Fits that statistics do not support.
    let none = Statistics::new(&kernel, x.view()).unwrap();
    assert!(matches!(Rvm::tipping2001().fit_statistics(&none), Err(Error::TooFewRows { .. })));
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
    assert!(classes.fit_statistics(&statistics).unwrap_err().to_string().contains("gaussian"));
    let small = Rvm { memory_limit: Some(100), ..Rvm::tipping2001() };
    assert!(matches!(small.fit_statistics(&statistics), Err(Error::Memory { .. })));
}

#[test]
fn constant_targets_and_far_centres_are_fitted() {
    let (x, t, _) = table(200);
    // A centre far from every row has a column of almost zero, and is no candidate.
    let mut centres = x.slice(s![..5, ..]).to_owned();
    centres.row_mut(2).fill(50.0);
    let mut statistics = Statistics::new(&kernels()[0], centres.view()).unwrap();
    let flat = Array1::from_elem(200, 7.5);
    let mut constant = statistics.clone();
    constant.update(x.view(), &Targets::real(flat.view())).unwrap();
    let (model, report) = Rvm::tipping2001().fit_statistics(&constant).unwrap();
    assert!(report.adjustments.constant_target);
    assert!((model.predict(x.view()).unwrap().mean[3] - 7.5).abs() < 1e-6);
    statistics.update(x.view(), &Targets::real(t.view())).unwrap();
    let (model, _) = Rvm::tipping2001().fit_statistics(&statistics).unwrap();
    assert!(!model.relevance.contains(&2), "{:?}", model.relevance);
    let far = Landmarks::Given(Centres(centres));
    let rvm = Rvm { kernel: kernels().remove(0), landmarks: far, dictionary: Dictionary::from(5), ..Rvm::tipping2001() };
    let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
    assert!(!model.relevance.contains(&2) && report.adjustments.zero_columns == 1, "{:?}", model.relevance);
}
