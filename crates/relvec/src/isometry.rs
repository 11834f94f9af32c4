//! Dense coordinates of sparse rows, such as texts.
//!
//! A kernel of distances or inner products depends on the rows by their inner products alone, which are computed without
//! zeros. Let R be the Cholesky factor of the inner products of L landmarks Z, Z Z' = R R'. A row x of X, [N, D], has the
//! coordinates c = inv(R) Z x, and one more, sqrt(|x|^2 - |c|^2): its distance from the space that Z spans. A landmark has
//! the coordinates of its row of R, and a 0.
//!
//! These rows, [N, L + 1], are what a fit learns from. Inner products and distances of a row and a landmark are those of the
//! rows of X. Inner products of two rows that are no landmarks are other numbers, so that landmarks alone may be centres, and
//! the kernel is learned from landmarks. If all rows are landmarks, everything is exact.

use std::collections::HashMap;

use ndarray::{Array2, ArrayView1, s};

use crate::canonical::{Canonical, plain, random_subset};
use crate::design::resolve_sparse;
use crate::error::{Error, Result, require};
use crate::kernel::{Form, Gamma, GammaRule, Kernel, Linear};
use crate::linalg::{Cholesky, solve_lower};
use crate::memory::afford;
use crate::sparse::SparseRows;

/// Number of matrices of rows by landmarks in memory at a time. Fits to 20,000 texts with 1,000 and 2,000 landmarks have 6.
const MATRICES: u64 = 6;
/// Least number of landmarks, if there are as many different rows and memory is short: of 12,000 texts, 172 landmarks give an
/// R2 of 0.53, 346 one of 0.68, and 1,000 one of 0.81.
const LEAST: usize = 100;

/// Returns a kernel with one gamma for all features of rows `x`, [N, D], of weights `[N]`: a number, or a rule that learns
/// it.
///
/// # Errors
/// Returns the errors of [`check`].
pub(crate) fn isotropic(kernel: &Kernel, x: &SparseRows, weights: &[f64]) -> Result<Kernel> {
    check(kernel)?;
    match kernel.gamma() {
        Some(Gamma::Rule(GammaRule::Evidence)) if kernel.is_covariance() => {
            Ok(kernel.with_gamma(Gamma::Rule(GammaRule::EvidenceIsotropic)))
        }
        Some(Gamma::Rule(GammaRule::EvidenceIsotropic)) => Ok(kernel.clone()),
        _ => resolve_sparse(kernel, x, weights),
    }
}

/// Checks that a kernel is a function of distances or inner products, with one gamma for all features.
///
/// # Errors
/// Returns [`Error::Parameter`](crate::Error::Parameter) for another kernel or gamma.
pub(crate) fn check(kernel: &Kernel) -> Result<()> {
    let form = kernel.form();
    let (name, gamma) = (kernel.name(), || format!("kernel.{}.gamma", kernel.name()));
    let expected = "a function of distances or inner products of rows, such as rbf, linear and poly, for sparse rows";
    require(matches!(form, Form::Squares(_) | Form::Products(_)), || "kernel".into(), name, expected)?;
    let expected = "evidence-isotropic, scale, auto or a number for sparse rows";
    match form.gamma() {
        Some(Gamma::Rule(rule @ (GammaRule::EvidenceOne | GammaRule::EvidenceArd))) => {
            require(false, gamma, rule.name(), expected)
        }
        Some(Gamma::PerFeature(each)) => require(false, gamma, format!("a list of {}", each.len()), expected),
        _ => Ok(()),
    }
}

/// Dense coordinates of sparse rows.
pub(crate) struct Coordinates {
    /// Coordinates of the user's N rows, [N, K]. Rows of weight 0 are 0.
    pub rows: Array2<f64>,
    /// Landmarks, as the user's rows, ascending. `None` if all inner products are those of the sparse rows.
    pub landmarks: Option<Vec<usize>>,
}

/// Returns coordinates of the user's N rows, of which `different` has the different rows of positive weight.
///
/// If the different rows are at most `most`, they are all landmarks. Otherwise `most` of them are drawn at random, or as many
/// as memory allows. Rows of fewer features than landmarks are their own coordinates.
///
/// # Errors
/// Returns [`Error::Memory`](crate::Error::Memory) if there is no memory for [`LEAST`] landmarks.
pub(crate) fn coordinates(different: &Canonical<SparseRows>, most: usize, seed: u64, limit: u64) -> Result<Coordinates> {
    let (n, all) = (different.column_of.len(), different.rows.nrows());
    let bytes = |landmarks: usize| 8 * MATRICES * (n as u64) * (landmarks as u64 + 1);
    let room = limit / (8 * MATRICES * n.max(1) as u64);
    let most = most.min(all);
    afford("the inner products of sparse rows", bytes(most.min(LEAST)), limit)?;
    let l = most.min(usize::try_from(room.saturating_sub(1)).unwrap_or(usize::MAX));
    let d = different.rows.ncols();
    let chosen = random_subset(all, l, seed);
    let (own, landmarks) = match (d <= l, l < all) {
        (true, _) => (different.rows.to_dense(), None),
        (false, false) => (factor(&different.rows)?, None),
        (false, true) => (of_landmarks(&different.rows, &chosen)?, Some(chosen)),
    };
    if !own.iter().all(|v| v.is_finite()) {
        return Err(Error::Overflow { what: "an inner product of two sparse rows".into() });
    }
    let mut rows = Array2::zeros((n, own.ncols()));
    for (mut row, place) in rows.outer_iter_mut().zip(&different.column_of) {
        place.iter().for_each(|place| row.assign(&own.row(*place)));
    }
    let landmarks = landmarks.map(|chosen| {
        let mut rows: Vec<usize> = chosen.iter().map(|k| different.origin[*k]).collect();
        rows.sort_unstable();
        rows
    });
    Ok(Coordinates { rows, landmarks })
}

/// Returns the Cholesky factor of the inner products of `rows`, [L, D]: [L, L]. It is 0 if all rows are.
fn factor(rows: &SparseRows) -> Result<Array2<f64>> {
    let gram = Kernel::from(Linear {}).sparse_values(rows, rows)?;
    let largest = gram.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    // Jitter, of 1e-14 to 1e-11 of the largest square, adds one number to all squared distances.
    Ok(if largest > 0.0 { Cholesky::new(gram, largest)?.lower } else { Array2::zeros((rows.nrows(), rows.nrows().max(1))) })
}

/// Returns the coordinates of `rows`, [M, D], by the inner products with the landmarks `chosen`, `[L]`: [M, L + 1]. The last
/// one is the distance from the space that the landmarks span, and 0 for them.
fn of_landmarks(rows: &SparseRows, chosen: &[usize]) -> Result<Array2<f64>> {
    let (l, landmarks) = (chosen.len(), rows.select(chosen));
    let lower = factor(&landmarks)?;
    let mut out = Array2::zeros((rows.nrows(), l + 1));
    if lower.diag().iter().all(|v| *v > 0.0) {
        let mut inner = Kernel::from(Linear {}).sparse_values(&landmarks, rows)?;
        solve_lower(lower.view(), inner.view_mut());
        out.slice_mut(s![.., ..l]).assign(&inner.t());
    }
    for (mut own, row) in out.outer_iter_mut().zip(rows.iter()) {
        let square = row.values.iter().map(|v| v * v).sum::<f64>() - own.dot(&own);
        own[l] = square.max(0.0).sqrt();
    }
    for (place, row) in chosen.iter().zip(lower.outer_iter()) {
        let mut own = out.row_mut(*place);
        own.slice_mut(s![..l]).assign(&row);
        own[l] = 0.0;
    }
    Ok(out)
}

/// Returns the user's row of each of `some` coordinates, [M, K], of rows of positive weight: the first with these coordinates.
pub(crate) fn places(some: &Array2<f64>, rows: &Array2<f64>, different: &Canonical<SparseRows>) -> Vec<usize> {
    let bits = |row: ArrayView1<f64>| row.iter().map(|v| plain(*v).to_bits()).collect::<Vec<u64>>();
    let mut first: HashMap<Vec<u64>, Option<usize>> = some.outer_iter().map(|row| (bits(row), None)).collect();
    for (n, row) in rows.outer_iter().enumerate().filter(|(n, _)| different.column_of[*n].is_some()) {
        first.entry(bits(row)).and_modify(|place| *place = place.or(Some(n)));
    }
    some.outer_iter().map(|row| first[&bits(row)].expect("coordinates of a row")).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Axis};

    use super::*;
    use crate::kernel::Rbf;

    /// Returns rows of few entries, with equal rows, rows of zeros, and a row of weight 0, and the weights.
    fn rows(n: usize, features: usize) -> (Array2<f64>, Vec<f64>) {
        let entry = |i: usize, d: usize| (0.618_033_988_75 * (i * features + 3 * d + 1) as f64).fract();
        let mut x = Array2::from_shape_fn((n, features), |(i, d)| if (i + 7 * d) % 11 < 2 { entry(i, d) } else { 0.0 });
        let copy = x.row(5).to_owned();
        x.row_mut(17).assign(&copy);
        [2, 21].iter().for_each(|zero| x.row_mut(*zero).fill(0.0));
        (x, (0..n).map(|i| if i == 9 { 0.0 } else { 1.0 + (i % 3) as f64 }).collect())
    }

    fn canonical(x: &Array2<f64>, weights: &[f64]) -> Canonical<SparseRows> {
        Canonical::sparse(&SparseRows::from_dense(x.view()), &vec![0.0; x.nrows()], weights)
    }

    /// All kernel values of rows and landmarks are those of the sparse rows, for landmarks that span the rows and for others.
    #[test]
    fn coordinates_have_the_distances_from_landmarks() {
        for (features, most) in [(40, 30), (40, 4), (40, 1), (90, 60), (35, 34), (40, 500), (300, 500), (20, 30)] {
            let (x, weights) = rows(80, features);
            let different = canonical(&x, &weights);
            assert_eq!(different.rows.nrows(), 77);
            let found = coordinates(&different, most, 1, u64::MAX).unwrap();
            let used: Vec<usize> = (0..80).filter(|i| weights[*i] > 0.0).collect();
            let landmarks = found.landmarks.clone().unwrap_or(used.clone());
            assert_eq!(found.landmarks.is_none(), most > 77 || most >= features, "{features} {most}");
            let kernels: [Kernel; 2] = [Linear {}.into(), Rbf { gamma: 0.3.into() }.into()];
            for kernel in kernels {
                let [own, expected] = [&found.rows, &x].map(|x| {
                    let mut values = Array2::zeros((used.len(), landmarks.len()));
                    let [rows, centres] = [&used, &landmarks].map(|some| x.select(Axis(0), some));
                    kernel.block(rows.view(), centres.view(), values.view_mut());
                    values
                });
                let apart = (&own - &expected).iter().fold(0.0f64, |most, v| most.max(v.abs()));
                assert!(apart < 1e-12, "{features} features, {most} landmarks: {apart}");
            }
            let some = found.rows.select(Axis(0), &[17, 2, 30]);
            assert_eq!(places(&some, &found.rows, &different), [5, 2, 30], "{features} {most}");
        }
    }

    #[test]
    fn landmarks_of_zeros_and_overflows_are_handled() {
        let mut x = Array2::zeros((40, 50));
        x.diag_mut().fill(2.0);
        (0..20).for_each(|i| x[[i, i]] = 1e-170);
        let one = coordinates(&canonical(&x, &[1.0; 40]), 1, 5, u64::MAX).unwrap();
        assert!(one.rows.iter().all(|v| v.is_finite()));
        x[[39, 39]] = 1e200;
        for most in [10, 40] {
            let found = coordinates(&canonical(&x, &[1.0; 40]), most, 0, u64::MAX).map(|found| found.landmarks);
            assert!(matches!(found, Err(Error::Overflow { .. } | Error::Singular { .. })), "{found:?}");
        }
        let memory = coordinates(&canonical(&x, &[1.0; 40]), 40, 0, 5000).map(|found| found.landmarks);
        assert!(matches!(memory, Err(Error::Memory { .. })), "{memory:?}");
    }
}
