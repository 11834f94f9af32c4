//! Reads and writes model files of LIBSVM (Chang and Lin 2011).
//!
//! For a pair of classes i < j LIBSVM's decision value is positive for i, relvec's for j. Weights, offsets and sigmoids
//! therefore change their signs. LIBSVM orders the pairs (0, 1), (0, 2), ..., (1, 2); relvec orders them (0, 1), (0,
//! 2), (1, 2), (0, 3).

mod read;
mod write;

pub use read::from_libsvm;
pub use write::{libsvm_self_test, to_libsvm};

const FORMAT: &str = "LIBSVM";
/// Names of formulations in both programs.
const FORMULATIONS: [&str; 4] = ["c_svc", "nu_svc", "epsilon_svr", "nu_svr"];

/// Returns for each pair in LIBSVM's order its index in relvec's order.
fn places(classes: usize) -> Vec<usize> {
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    pairs.map(|(i, j)| j * (j - 1) / 2 + i).collect()
}
