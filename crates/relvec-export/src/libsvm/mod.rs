//! Model files of LIBSVM (Chang & Lin 2011), both ways.
//!
//! LIBSVM's value of the pair of classes i < j is positive for i, relvec's for j: weights, offsets and sigmoids change their
//! signs. Its pairs are in the order (0, 1), (0, 2), ..., (1, 2); relvec's in the order (0, 1), (0, 2), (1, 2), (0, 3).

mod read;
mod write;

pub use read::from_libsvm;
pub use write::to_libsvm;

const FORMAT: &str = "LIBSVM";
/// Names of formulations in both.
const FORMULATIONS: [&str; 4] = ["c_svc", "nu_svc", "epsilon_svr", "nu_svr"];

/// The place among relvec's pairs of LIBSVM's first, second and so on.
fn places(classes: usize) -> Vec<usize> {
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    pairs.map(|(i, j)| j * (j - 1) / 2 + i).collect()
}
