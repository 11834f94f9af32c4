//! Blocks of 2048 x 512 of each kernel, beside a plain matrix product of that size.

use divan::Bencher;
use ndarray::Array2;
use relvec::{DataScale, Kernel, KernelGradient};

const ROWS: usize = 2048;
const CENTRES: usize = 512;
const FEATURES: [usize; 3] = [2, 10, 30];

/// Rows like standardised features: uniform numbers in [-2, 2].
fn rows(n: usize, features: usize) -> Array2<f64> {
    let mut state = n as u64;
    Array2::from_shape_simple_fn((n, features), || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        4.0 * ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
    })
}

#[divan::bench(args = FEATURES)]
fn matrix_product(bencher: Bencher, features: usize) {
    let (a, b) = (rows(ROWS, features), rows(CENTRES, features));
    let mut out = Array2::zeros((ROWS, CENTRES));
    bencher.bench_local(|| ndarray::linalg::general_mat_mul(1.0, &a, &b.t(), 0.0, &mut out));
}

#[divan::bench(args = cases())]
fn block(bencher: Bencher, (name, features): &(&'static str, usize)) {
    let (a, b) = (rows(ROWS, *features), rows(CENTRES, *features));
    let kernel = resolved(name, *features);
    let mut out = Array2::zeros((ROWS, CENTRES));
    bencher.bench_local(|| kernel.block(a.view(), b.view(), out.view_mut()));
}

#[divan::bench(args = cases())]
fn gradient(bencher: Bencher, (name, features): &(&'static str, usize)) {
    let (a, b) = (rows(ROWS, *features), rows(CENTRES, *features));
    let kernel = resolved(name, *features);
    let w = rows(ROWS, CENTRES);
    bencher.bench_local(|| kernel.gradient(a.view(), b.view(), w.view()));
}

/// Gamma 100 times the usual: most pairs are far apart, and all rows must be looked at for near ones.
/// The rows lie on a curve, so there are some.
#[divan::bench(args = FEATURES)]
fn block_of_narrow_rbf(bencher: Bencher, features: usize) {
    let curve = |n: usize| {
        Array2::from_shape_fn((n, features), |(i, d)| 4.0 * ((i as f64 / n as f64 * (1.0 + 0.3 * d as f64)).fract() - 0.5))
    };
    let (a, b) = (curve(ROWS), curve(CENTRES));
    let kernel = resolved("rbf", features);
    let kernel = kernel.with_parameters(&[100.0 * kernel.parameters()[0].1]);
    let mut out = Array2::zeros((ROWS, CENTRES));
    bencher.bench_local(|| kernel.block(a.view(), b.view(), out.view_mut()));
}

fn resolved(name: &str, features: usize) -> Kernel {
    let kernel = Kernel::from_name(name).and_then(|k| k.resolve(&DataScale { features, variance: 4.0 / 3.0 }));
    kernel.expect("a registered name resolves")
}

fn cases() -> Vec<(&'static str, usize)> {
    Kernel::NAMES.iter().flat_map(|name| FEATURES.map(|features| (*name, features))).collect()
}

fn main() {
    divan::main();
}
