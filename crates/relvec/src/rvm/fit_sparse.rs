//! Fits to sparse rows with more features than rows, such as texts.
//!
//! A kernel of distances or inner products depends on the rows by their inner products G = X X' alone, which are computed
//! without zeros. With the Cholesky factor of G = L L', the rows of L, [N, N], have the distances and inner products of the
//! rows of X, [N, D], and are what a fit learns from. Its centres are rows, and become rows of X again.

use ndarray::{Array2, ArrayView1};

use crate::canonical::Canonical;
use crate::design::{Basis, resolve_sparse};
use crate::error::{Result, require};
use crate::kernel::{Form, Gamma, GammaRule, Kernel, Linear};
use crate::linalg::Cholesky;
use crate::memory::{afford, allowed};
use crate::model::{Model, StoredRows, check_sparse};
use crate::report::{Interrupt, Observer, Report, silent};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::{CentreRule, Rvm};
use crate::sparse::SparseRows;
use crate::targets::Targets;

/// Number of square matrices of the rows in memory at a time: the inner products twice, their factor, and its rows.
const MATRICES: u64 = 4;

impl Rvm {
    /// Fits a model to sparse rows `x`, [N, D], and `targets`, without filling in zeros. The time grows with the square of
    /// the rows, and memory for 4 N^2 numbers is needed: the rows should be fewer than the features.
    ///
    /// The kernel must be a function of distances or inner products of rows, with one gamma for all features. A gamma that
    /// is to be learned is that of [`GammaRule::EvidenceIsotropic`]. The model has sparse centres, and predicts from the
    /// values of its basis functions.
    ///
    /// ```
    /// use relvec::{Rvm, SparseRows, Targets, ndarray::array};
    ///
    /// let x = SparseRows::from_dense(array![[0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 2.0]].view());
    /// let (model, _) = Rvm::default().fit_sparse(&x, &Targets::real(array![0.1, 0.4, -1.0].view()))?;
    /// let means = model.on_basis().predict(model.basis_values(&x)?.view())?.mean;
    /// assert_eq!(means.dim(), (3, 1));
    /// # Ok::<(), relvec::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and [`Error::Parameter`](crate::Error::Parameter) for other kernels and rules of gamma, and for settings
    /// that need all features: given basis functions and landmarks, learned centres, and kept statistics.
    pub fn fit_sparse(&self, x: &SparseRows, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_sparse_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits a model to sparse rows `x`, `[N, D]`, as [`Rvm::fit_sparse`] does, with an observer and an interrupt, as
    /// [`Rvm::fit_with`] has them.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_sparse`], and [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn fit_sparse_with(
        &self,
        x: &SparseRows,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        self.check_for_sparse()?;
        targets.check_shape((x.nrows(), x.ncols()))?;
        check_sparse("rows to train on", x)?;
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.nrows()]);
        let different = Canonical::sparse(x, &vec![0.0; x.nrows()], &weights);
        let isotropic = |kernel: &Kernel| isotropic(kernel, &different.rows, &different.weights);
        let own = Rvm {
            kernel: isotropic(&self.kernel)?,
            kernels: self.kernels.iter().map(isotropic).collect::<Result<_>>()?,
            ..self.clone()
        };
        let rows = self.pool()?.install(|| coordinates(&different, allowed(self.memory_limit)))?;
        let (mut model, report) = own.fit_with(rows.view(), targets, observer, interrupt)?;
        let Some(kernel) = model.kernel().cloned() else { return Ok((model, report)) };
        if let Some(kept) = &mut model.kept_rows
            && let StoredRows::Dense(rows) = &kept.rows
        {
            // The last coordinate of row k of L that is not 0 is the k-th.
            let place = |row: ArrayView1<f64>| row.iter().rposition(|v| *v != 0.0).unwrap_or(0);
            let places: Vec<usize> = rows.outer_iter().map(place).collect();
            kept.rows = StoredRows::Sparse(different.rows.select(&places));
        }
        let relevance = model.relevance.clone();
        let model = model.with_external_kernel(&relevance, x.ncols(), None);
        Ok((model.with_sparse_kernel(&kernel, &x.select(&relevance))?, report))
    }

    /// Returns true if these settings suit [`Rvm::fit_sparse`].
    pub fn fits_sparse(&self) -> bool {
        self.check_for_sparse().is_ok() && self.to_try().iter().all(|kernel| check_isotropic(kernel).is_ok())
    }

    /// Checks that no setting needs the rows of the fit in the user's features.
    fn check_for_sparse(&self) -> Result<()> {
        let name = |name: &'static str| move || name.to_string();
        require(self.basis == Basis::Kernel, name("basis"), "given", "kernel: values of basis functions are not sparse")?;
        let all = !matches!(self.landmarks, Landmarks::Given(_));
        require(all, name("landmarks"), "given", "all rows, or rows that a rule chooses, for sparse rows")?;
        let fixed = self.centres == CentreRule::Fixed;
        require(fixed, name("centres"), CentreRule::Learned.name(), "fixed: learned centres are not sparse")?;
        require(!self.keep_statistics, name("keep_statistics"), true, "false for sparse rows")
    }
}

/// Returns a kernel with one gamma for all features of rows `x`, [N, D], of weights `[N]`: a number, or a rule that learns
/// it.
///
/// # Errors
/// Returns the errors of [`check_isotropic`].
fn isotropic(kernel: &Kernel, x: &SparseRows, weights: &[f64]) -> Result<Kernel> {
    check_isotropic(kernel)?;
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
fn check_isotropic(kernel: &Kernel) -> Result<()> {
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

/// Returns rows with the inner products of the user's N rows, [N, L], for L `different` rows of positive weight: each is a
/// row of the Cholesky factor L, [L, L], or 0 for a row of weight 0.
///
/// # Errors
/// Returns [`Error::Memory`](crate::Error::Memory) if there is no memory for the inner products.
fn coordinates(different: &Canonical<SparseRows>, memory_limit: u64) -> Result<Array2<f64>> {
    let (n, l) = (different.column_of.len(), different.rows.nrows());
    afford("the inner products of sparse rows", 8 * MATRICES * (n * l) as u64, memory_limit)?;
    let gram = Kernel::from(Linear {}).sparse_values(&different.rows, &different.rows)?;
    let largest = gram.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    let mut out = Array2::zeros((n, l.max(1)));
    if largest > 0.0 {
        // Jitter, of 1e-14 to 1e-11 of the largest square, adds one number to all squared distances.
        let factor = Cholesky::new(gram, largest)?.lower;
        for (mut row, place) in out.outer_iter_mut().zip(&different.column_of) {
            place.iter().for_each(|place| row.assign(&factor.row(*place)));
        }
    }
    Ok(out)
}
