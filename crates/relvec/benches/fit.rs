//! Fits and predictions: the default search beside MacKay's fixed point on the same data.
//!
//! `cargo bench --bench fit`

use divan::{Bencher, black_box};
use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::{Bernoulli, Inference, Model, Moderation, Rbf, Rvm, Targets};

fn main() {
    divan::main();
}

/// Rows, targets in standard deviations, and the kernel's gamma.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    gamma: f64,
}

/// A surface over two inputs with noise of 0.2, or Friedman's first problem with ten inputs.
fn data(name: &str, rows: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let (features, gamma, noise) = if name == "surface" { (2, 2.0, 0.2) } else { (10, 0.03, 0.2) };
    let x = Array2::from_shape_fn((rows, features), |_| random.random_range(-1.73..1.73));
    let mut t = x.map_axis(Axis(1), |r| {
        if name == "surface" {
            f64::sin(3.0 * r[0]) * f64::cos(2.0 * r[1]) + 0.5 * f64::sin(5.0 * r[1] + r[0] * r[1])
        } else {
            let u = |d: usize| 0.5 + r[d] / 3.46;
            let product = std::f64::consts::PI * u(0) * u(1);
            (10.0 * product.sin() + 20.0 * (u(2) - 0.5).powi(2) + 10.0 * u(3) + 5.0 * u(4) - 14.4) / 5.0
        }
    });
    t.mapv_inplace(|t| t + noise * Distribution::<f64>::sample(&StandardNormal, &mut random));
    Data { x, t, gamma }
}

const SETS: [&str; 2] = ["surface", "friedman"];

fn regression(bencher: Bencher, name: &str, inference: &str) {
    let data = data(name, 1000);
    let inference = Inference::from_name(inference).expect("a known scheme");
    let rvm = Rvm { kernel: Rbf { gamma: data.gamma.into() }.into(), inference, ..Rvm::tipping2001() };
    bencher.bench_local(|| rvm.fit(data.x.view(), &Targets::real(data.t.view())).expect("a model"));
}

#[divan::bench(args = SETS, sample_count = 5)]
fn regression_1000_search(bencher: Bencher, name: &str) {
    regression(bencher, name, "search");
}

#[divan::bench(args = SETS, sample_count = 5)]
fn regression_1000_mackay(bencher: Bencher, name: &str) {
    regression(bencher, name, "mackay");
}

#[divan::bench(args = [250, 1000], sample_count = 5)]
fn classification(bencher: Bencher, rows: usize) {
    let data = data("surface", rows);
    let labels: Vec<usize> = data.t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let rvm =
        Rvm { kernel: Rbf { gamma: data.gamma.into() }.into(), likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
    bencher.bench_local(|| rvm.fit(data.x.view(), &Targets::classes(&labels, 2)).expect("a model"));
}

/// A model of the surface and 100,000 rows to predict.
fn trained() -> (Model, Array2<f64>) {
    let small = data("surface", 300);
    let rvm = Rvm { kernel: Rbf { gamma: small.gamma.into() }.into(), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(small.x.view(), &Targets::real(small.t.view())).expect("a model");
    (model, data("surface", 100_000).x)
}

#[divan::bench(sample_count = 5)]
fn predict_mean_and_std_100_000(bencher: Bencher) {
    let (model, rows) = trained();
    bencher.bench_local(|| black_box(model.predict(rows.view()).expect("predictions").std()));
}

#[divan::bench(sample_count = 5)]
fn predict_probability_100_000(bencher: Bencher) {
    let small = data("surface", 300);
    let labels: Vec<usize> = small.t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let rvm = Rvm { kernel: Rbf { gamma: 2.0.into() }.into(), likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(small.x.view(), &Targets::classes(&labels, 2)).expect("a model");
    let rows = data("surface", 100_000).x;
    bencher.bench_local(|| model.predict_probability(rows.view(), Moderation::Posterior).expect("probabilities"));
}
