//! The pieces that the time of a fit and of a prediction is made of, beside plain matrix products of the same
//! size in the same run: ratios, which divan does not give. Inner parts of the crate are compiled in here.
//!
//! `cargo bench --bench passes [-- --threads 1] [-- --json]`

#![allow(dead_code, unused_imports, missing_docs, unreachable_pub)]

#[path = "../src/canonical.rs"]
mod canonical;
#[path = "../src/design.rs"]
mod design;
#[path = "../src/kernel/mod.rs"]
mod kernel;
#[path = "../src/likelihood/mod.rs"]
mod likelihood;
#[path = "../src/linalg.rs"]
mod linalg;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/quadratic.rs"]
mod quadratic;
#[path = "../src/report.rs"]
mod report;
#[path = "../src/sums.rs"]
mod sums;
#[path = "../src/targets.rs"]
mod targets;

/// The tree that paths of the crate name.
#[path = "../src/rvm"]
mod rvm {
    pub(crate) mod data {
        pub(crate) mod noise;
    }
    pub(crate) mod evidence {
        pub(crate) mod factor;
        pub(crate) mod gain;
        pub(crate) mod solution;
    }
}

pub use error::{Error, Result};
use relvec_predict::internal as registry;
use relvec_predict::internal::{error, sparse, special};

use std::rc::Rc;
use std::time::Instant;

use design::{Columns, Design};
use kernel::vector;
use kernel::{DataScale, Kernel, Rbf};
use ndarray::{Array2, ArrayView2, Axis, s};
use quadratic::Quadratic;
use rayon::prelude::*;
use report::Interrupt;
use rvm::data::noise::Noise;
use rvm::evidence::factor::{Action, Factor};
use rvm::evidence::gain::KernelPrior;
use rvm::evidence::solution::{At, Solution};
use sums::Sums;

/// Repetitions of each measurement; the fastest counts, since others want the same cores now and then.
const TIMES: usize = 9;
const FEATURES: usize = 10;

/// One line of the table.
struct Line {
    name: &'static str,
    size: String,
    seconds: f64,
    /// Floating-point operations, or values where there is one step per value.
    work: f64,
    /// What the same work costs as plain products (and kernel entries), as measured here.
    plain: Option<f64>,
}

/// Rows like standardised features: uniform numbers in [-2, 2].
fn rows(n: usize, features: usize, seed: u64) -> Array2<f64> {
    let mut state = seed;
    Array2::from_shape_simple_fn((n, features), || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        4.0 * ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
    })
}

fn fastest(mut f: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..TIMES {
        let start = Instant::now();
        f();
        least = least.min(start.elapsed().as_secs_f64());
    }
    least
}

/// Gaussian with the width of `gamma = "scale"` on [`rows`].
fn rbf(features: usize) -> Kernel {
    Rbf { gamma: (0.75 / features as f64).into() }.into()
}

/// Seconds per multiply-add and per kernel entry, with all threads.
struct Rates {
    product: f64,
    entry: f64,
}

/// In one thread, as it is in every pass.
fn small_pieces(out: &mut Vec<Line>) {
    let mut values = rows(64, 1000, 1);
    let fill = fastest(|| values.fill(3.0));
    let exp = fastest(|| {
        values.fill(3.0);
        vector::map(values.view_mut(), vector::decay);
    });
    out.push(Line { name: "exp, one thread", size: "64,000".into(), seconds: exp - fill, work: 64e3, plain: None });
    for features in [2, 10, 30, 100] {
        let (n, m) = (2048, 512);
        let (a, b) = (rows(n, features, 1), rows(m, features, 2));
        let mut block = Array2::zeros((n, m));
        let (size, work) = (format!("2,048 x 512 x {features}"), (2 * n * m * features) as f64);
        let product = fastest(|| linalg::product_alone(false, a.view(), b.t(), block.view_mut()));
        out.push(Line { name: "distance product, one thread", size: size.clone(), seconds: product, work, plain: None });
        let kernel = rbf(features);
        let made = kernel.at(b.view());
        let seconds = fastest(|| made(a.view(), block.view_mut()));
        let plain = Some(product + (n * m) as f64 / 64e3 * (exp - fill));
        out.push(Line { name: "rbf block, one thread", size, seconds, work: (n * m) as f64, plain });
    }
}

fn rates() -> Rates {
    let (a, mut b) = (rows(2000, 2000, 1), Array2::zeros((2000, 2000)));
    let product = fastest(|| linalg::product(false, 1.0, a.view(), a.view(), b.view_mut())) / 8e9;
    let (x, z) = (rows(16_384, FEATURES, 1), rows(256, FEATURES, 2));
    let kernel = rbf(FEATURES);
    let made = kernel.at(z.view());
    let seconds = fastest(|| {
        x.axis_chunks_iter(Axis(0), 256).into_par_iter().for_each(|x| made(x, Array2::zeros((x.nrows(), 256)).view_mut()));
    });
    Rates { product, entry: seconds / (16_384.0 * 256.0) }
}

fn passes(rates: &Rates, out: &mut Vec<Line>) {
    out.push(Line {
        name: "matrix product",
        size: "2,000 x 2,000 x 2,000".into(),
        seconds: 8e9 * rates.product,
        work: 16e9,
        plain: None,
    });
    for l in [250, 500, 1000, 2000] {
        let n = 16_384;
        let block = rows(n, l, 1);
        let mut gram = Array2::zeros((l, l));
        let symmetric = fastest(|| {
            block.axis_chunks_iter(Axis(0), 4096).for_each(|block| linalg::add_gram(block, gram.view_mut()));
        });
        let (size, work) = (format!("{n} x {l}"), (n * l * l) as f64);
        let plain = Some(0.5 * work * rates.product);
        out.push(Line { name: "symmetric product", size: size.clone(), seconds: symmetric, work, plain });
        let centres = Columns::Kernel { kernel: rbf(FEATURES), centres: rows(l, FEATURES, 2) };
        let design = Design::unscaled(rows(n, FEATURES, 3).into_shared(), centres, false, 16 << 20, Interrupt::default());
        assert_eq!(design.stored_bytes(), 0);
        let (t, mut f) = (vec![1.0; n], vec![0.0; l]);
        let seconds = fastest(|| {
            design.for_each_block(|range, phi| {
                linalg::add_gram(phi, gram.view_mut());
                design::add_sums(&t[range], phi, &mut f);
            });
        });
        out.push(Line { name: "statistics pass, against the symmetric product", size, seconds, work, plain: Some(symmetric) });
    }
    let (n, m) = (8192, 200);
    let x = rows(n, FEATURES, 4);
    let centres = Columns::Kernel { kernel: rbf(FEATURES), centres: x.clone() };
    let design = Design::unscaled(x.into_shared(), centres, true, 64 << 20, Interrupt::default());
    let (weights, active): (Vec<f64>, Vec<usize>) = (vec![0.2; n], (1..=m).collect());
    let pull = ArrayView2::from_shape((weights.len(), 1), &weights).expect("one output");
    let seconds = fastest(|| drop(design.moments(&weights, pull, &active)));
    let square = (n * n) as f64;
    let plain = Some(square * m as f64 * rates.product + square * rates.entry);
    let work = 2.0 * square * m as f64;
    out.push(Line { name: "candidate pass", size: format!("{n} x {n}, {m} active"), seconds, work, plain });
}

/// Single actions on the factor of M of P columns: what they stream is V, [M, P]. Of a column that is added its products
/// with V are new; one that is re-estimated or deleted is first rotated to the end, past half of the others on average.
fn updates(out: &mut Vec<Line>) {
    let p = 1000;
    let mut x = rows(2 * p, p, 8);
    for mut column in x.columns_mut() {
        let norm = column.dot(&column).sqrt();
        column /= norm;
    }
    let t: Vec<f64> = x.column(0).iter().zip(x.column(1)).map(|(a, b)| a - b + 0.01 * (100.0 * a).sin()).collect();
    let mut sums = Sums::new(p, 1);
    sums.accumulate(x.view(), &t, &vec![1.0; t.len()]);
    let quadratic = Rc::new(Quadratic::stored(sums.finish(), None));
    let noise = [Noise::Fixed(1.0)];
    for m in [100, 200] {
        let active: Vec<usize> = (0..m).map(|k| k * (p / m)).collect();
        let solution = Solution::of(&quadratic, &active, &vec![0.1; m], &noise, At::Precision(&[1.0]), None).expect("a model");
        let factor = Factor::new(quadratic.clone(), &solution, &noise, KernelPrior::FLAT);
        // In an order of its own, so that a column stands anywhere.
        let order: Vec<usize> = (0..m).map(|k| active[(k * 37) % m]).collect();
        let mut least = [f64::INFINITY; 3];
        for _ in 0..TIMES {
            let (mut own, mut spent) = (factor.clone(), [0.0; 3]);
            for (again, gone) in order.iter().zip(&order[m / 2..]) {
                let (again, gone) = (*again, *gone);
                let actions = [
                    Action::Add { column: gone + 1, a: 0.1 },
                    Action::Reestimate { column: again, a: 0.2 },
                    Action::Delete { column: gone },
                ];
                for (action, spent) in actions.into_iter().zip(&mut spent) {
                    let start = Instant::now();
                    own.apply(action);
                    *spent += start.elapsed().as_secs_f64();
                }
            }
            least.iter_mut().zip(spent).for_each(|(least, spent)| *least = least.min(spent / (m / 2) as f64));
        }
        let (v, r, mut row) = (rows(m, p, 9), rows(1, m, 10), Array2::zeros((1, p)));
        let product = fastest(|| linalg::product(false, 1.0, r.view(), v.view(), row.view_mut()));
        let size = format!("{m} of {p}");
        let entries = (m * p) as f64;
        out.push(Line { name: "row times V", size: size.clone(), seconds: product, work: 2.0 * entries, plain: None });
        // A rotation of two rows takes six operations an entry.
        let names = ["column added", "column re-estimated", "column deleted"];
        for ((name, seconds), work) in names.into_iter().zip(least).zip([2.0, 3.0, 3.0]) {
            out.push(Line { name, size: size.clone(), seconds, work: work * entries, plain: Some(product) });
        }
    }
}

fn choice(out: &mut Vec<Line>) {
    let x = rows(20_000, FEATURES, 5);
    let kernel = relvec::Kernel::Rbf(relvec::Rbf { gamma: 0.03.into() });
    let size = relvec::Dictionary::Size(1000);
    let seconds = fastest(|| drop(relvec::Landmarks::Kmedoids.pick(x.view(), size, &kernel, 0)));
    out.push(Line { name: "k-medoids", size: "1,000 of 20,000".into(), seconds, work: 0.0, plain: None });
}

fn predictions(rates: &Rates, out: &mut Vec<Line>) {
    let (n, m) = (65_536, 250);
    let model = model(m);
    let x = rows(n, FEATURES, 6);
    let size = format!("{n} x {m}");
    let entries = (n * m) as f64;
    let mean = fastest(|| drop(model.predict_mean(x.view()).expect("a prediction")));
    let bare = entries * rates.entry;
    out.push(Line {
        name: "mean, against distances and exp",
        size: size.clone(),
        seconds: mean,
        work: entries,
        plain: Some(bare),
    });
    let seconds = fastest(|| drop(model.predict(x.view()).expect("a prediction")));
    let triangular = 0.5 * entries * m as f64 * rates.product;
    let plain = Some(bare + triangular);
    out.push(Line { name: "mean and std, with a triangular product", size, seconds, work: entries, plain });
}

/// A model of `m` kernels; its weights do not matter here.
fn model(m: usize) -> relvec::Model {
    let kernel: relvec::Kernel = relvec::Rbf { gamma: (0.75 / FEATURES as f64).into() }.into();
    let row = |i: usize| (0..=i).map(|j| if i == j { 2.0 } else { 1e-3 * ((i + j) as f64).sin() }).collect();
    relvec::Model {
        machine: "rvm".into(),
        likelihood: Some(relvec::Likelihood::from_name("gaussian").expect("a known name")),
        inference: Some("search".into()),
        features: vec![],
        target: None,
        targets: vec![],
        classes: vec![],
        class_frequencies: vec![],
        scaling: None,
        n_features: FEATURES,
        n_rows: m,
        relevance: (0..m).collect(),
        expansion: relvec::Expansion {
            basis: relvec::FittedBasis::Kernel { kernel, centres: rows(m, FEATURES, 7) },
            weights: ndarray::Array2::from_shape_fn((m, 1), |(i, _)| (i as f64).sin()),
            intercept: vec![0.3],
        },
        alpha: vec![1.0; m],
        intercept_alpha: Some(1.0),
        class_alpha: vec![],
        feature_relevance: vec![],
        learned_centres: false,
        interpolates: false,
        posterior: Some(relvec::Posterior {
            factor: (0..=m).map(row).collect(),
            scale: vec![1.0; m + 1],
            noise_variance: Some(0.1),
            noise_degrees: None,
            variance_factor: None,
            averaged: false,
            variance_ratios: vec![],
        }),
        log_evidence: Some(0.0),
        status: relvec::Status::Converged,
        iterations: 1,
        committee: None,
        margins: None,
        variance: relvec::Variance::Posterior,
        process: None,
        labels: None,
        kept_rows: None,
        statistics: None,
        encoding: None,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)?.parse().ok());
    let threads: usize = value("--threads").unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let lines = pool.install(|| {
        let mut lines = vec![];
        small_pieces(&mut lines);
        let rates = rates();
        passes(&rates, &mut lines);
        updates(&mut lines);
        choice(&mut lines);
        predictions(&rates, &mut lines);
        lines
    });
    if arguments.iter().any(|a| a == "--json") {
        for line in lines {
            let plain = line.plain.map_or("null".into(), |p| format!("{p:e}"));
            let Line { name, size, seconds, work, .. } = line;
            println!(
                "{{\"name\": \"{name}\", \"size\": \"{size}\", \"seconds\": {seconds:e}, \"work\": {work:e}, \"plain\": {plain}}}"
            );
        }
        return;
    }
    println!("{} threads", pool.current_num_threads());
    println!("{:<48} {:<24} {:>10} {:>10} {:>8}", "", "size", "ms", "G/s", "ratio");
    for Line { name, size, seconds, work, plain } in lines {
        let ratio = plain.map_or(String::new(), |p| format!("{:.2}", seconds / p));
        println!("{name:<48} {size:<24} {:>10.3} {:>10.2} {ratio:>8}", 1e3 * seconds, 1e-9 * work / seconds);
    }
}
