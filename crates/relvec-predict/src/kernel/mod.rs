//! Kernels k(x, x'), (M19). Each has one file and one line of registration.

pub(crate) mod distance;
mod expression;
mod form;
pub(crate) mod inner;
mod laplacian;
mod linear;
mod linear_spline;
pub mod matern32;
pub mod matern52;
mod periodic;
mod poly;
mod rational_quadratic;
mod rbf;
mod sigmoid;
pub(crate) mod sparse;
mod sum;

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prelude::*;
use crate::registry::{registry, rules};
use crate::vector;

pub use form::Form;

pub use laplacian::Laplacian;
pub use linear::Linear;
pub use linear_spline::LinearSpline;
pub use matern32::Matern32;
pub use matern52::Matern52;
pub use periodic::Periodic;
pub use poly::Poly;
pub use rational_quadratic::RationalQuadratic;
pub use rbf::Rbf;
pub use sigmoid::Sigmoid;
pub use sum::{Factor, Sum, Term};

registry! {
    /// A kernel with its parameters; [`Kernel::NAMES`] lists the names.
    pub enum Kernel: KernelFunction, "kernel" {
        /// exp(-sum_d gamma_d (x_d - x'_d)^2).
        Rbf = "rbf",
        /// exp(-sum_d gamma_d |x_d - x'_d|).
        Laplacian = "laplacian",
        /// (1 + s) exp(-s), s = sqrt(6) d.
        Matern32 = "matern32",
        /// (1 + s + s^2 / 3) exp(-s), s = sqrt(10) d.
        Matern52 = "matern52",
        /// (1 + d^2 / shape)^-shape.
        RationalQuadratic = "rational_quadratic",
        /// x.x'.
        Linear = "linear",
        /// (gamma x.x' + coef0)^degree.
        Poly = "poly",
        /// tanh(gamma x.x' + coef0); not positive definite.
        Sigmoid = "sigmoid",
        /// Piecewise cubic, of unbounded range.
        LinearSpline = "linear_spline",
        /// exp(-4 sum_d gamma_d sin^2(pi (x_d - x'_d) / period)).
        Periodic = "periodic",
        /// Sum of products of kernels on chosen columns, each product with an amplitude.
        Sum = "sum",
    }
}

/// A kernel at rows b, [m, D], prepared once for many blocks of other rows. Called with `a`, [n, D], it fills `out`,
/// [n, m], with k(a_i, b_j), in the calling thread alone.
pub type Fill<'a> = Box<dyn Fn(ArrayView2<f64>, ArrayViewMut2<f64>) + Send + Sync + 'a>;

/// The functions that a kernel implements. Arrays are row-major: `a` is [n, D], `b` is [m, D].
pub(crate) trait KernelFunction: Send + Sync {
    /// Checks the parameters alone (exit code 2 on the command line).
    fn check(&self) -> Result<()>;

    /// Replaces `scale` and `auto` by numbers, and checks the number of scales against D.
    fn resolve(&mut self, data: &DataScale) -> Result<()>;

    /// Fills `out`, [n, m], with k(a_i, b_j), in the calling thread alone. The parameters are resolved.
    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>);

    /// Returns `block` for many blocks `a`, `[N, D]`, at one `b`, `[M, D]`. A kernel may prepare values of b once.
    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let b = b.to_owned();
        Box::new(move |a, out| self.block(a, b.view(), out))
    }

    /// Replaces sums over features, see [`KernelFunction::form`], by the values of the kernel. It is not called for
    /// [`Form::Other`].
    fn of_sums(&self, _sums: &mut [f64]) {
        unreachable!("a kernel that is no function of a sum over features")
    }

    /// Returns names and values of the positive, continuous parameters, gamma first.
    fn parameters(&self) -> Vec<(String, f64)> {
        self.gamma().map_or(vec![], Gamma::parameters)
    }

    /// Replaces the values of `parameters`.
    fn set_parameters(&mut self, values: &[f64]) {
        if let Some(gamma) = self.gamma_mut() {
            gamma.set(values);
        }
    }

    /// Returns the sum over features that the kernel is a function of.
    fn form(&self) -> Form<'_>;

    /// Returns gamma, if there is one.
    fn gamma(&self) -> Option<&Gamma> {
        self.form().gamma()
    }

    /// Returns gamma, if there is one.
    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        None
    }
}

impl Kernel {
    /// Returns the kernels that `"auto"` chooses from, with the given gamma: rbf, Matern 5/2 and Matern 3/2. They
    /// differ in the smoothness of the functions.
    pub fn candidates(gamma: &Gamma) -> Vec<Kernel> {
        let all = [Rbf::default().into(), Matern52::default().into(), Matern32::default().into()];
        all.into_iter().map(|kernel: Kernel| kernel.with_gamma(gamma.clone())).collect()
    }

    /// Checks the parameters alone, without data.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first parameter out of its range.
    pub fn check(&self) -> Result<()> {
        self.as_dyn().check()
    }

    /// Returns the kernel with a number for every parameter. The rules `"scale"` and `"auto"` are computed from `data`.
    /// So is `"evidence"` for a kernel that is not the covariance of a process.
    ///
    /// # Errors
    /// Returns an error for a parameter out of its range, or another number of scales than features.
    pub fn resolve(&self, data: &DataScale) -> Result<Kernel> {
        let mut kernel = self.clone();
        if self.cannot_learn() {
            kernel = kernel.with_gamma(Gamma::Rule(GammaRule::Scale));
        }
        kernel.as_dyn().check()?;
        kernel.as_dyn_mut().resolve(data)?;
        Ok(kernel)
    }

    /// Fills `out`, [n, m], with k(a_i, b_j), for `a`, [n, D], and `b`, [m, D]. The kernel is resolved.
    ///
    /// # Panics
    /// Panics if the shapes do not match.
    pub fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        assert_eq!(a.ncols(), b.ncols(), "kernel block: a and b have different numbers of features");
        assert_eq!(out.dim(), (a.nrows(), b.nrows()), "kernel block: shape of out");
        self.as_dyn().block(a, b, out);
    }

    /// Returns the resolved kernel prepared at `b`, [m, D], for many blocks of rows.
    #[doc(hidden)]
    pub fn at(&self, b: ArrayView2<f64>) -> Fill<'_> {
        self.as_dyn().at(b)
    }

    /// Returns names and values of the positive, continuous parameters of a resolved kernel.
    pub fn parameters(&self) -> Vec<(String, f64)> {
        self.as_dyn().parameters()
    }

    /// Returns a copy with other values of [`Kernel::parameters`].
    pub fn with_parameters(&self, values: &[f64]) -> Kernel {
        let mut kernel = self.clone();
        kernel.as_dyn_mut().set_parameters(values);
        kernel
    }

    /// Returns true if k(x, x') depends on x - x' alone, is 1 at 0, and decreases from there.
    #[doc(hidden)]
    pub fn is_local(&self) -> bool {
        match self {
            Kernel::Rbf(_) | Kernel::Laplacian(_) | Kernel::Matern32(_) | Kernel::Matern52(_) | Kernel::RationalQuadratic(_) => {
                true
            }
            Kernel::Linear(_) | Kernel::Poly(_) | Kernel::Sigmoid(_) | Kernel::LinearSpline(_) => false,
            Kernel::Periodic(_) | Kernel::Sum(_) => false,
        }
    }

    /// Returns true if every matrix of its values at some rows is positive semidefinite. The kernel can then be the
    /// covariance of a Gaussian process.
    pub fn is_covariance(&self) -> bool {
        match self {
            Kernel::Sigmoid(_) => false,
            Kernel::Poly(poly) => poly.coef0 >= 0.0,
            _ => true,
        }
    }

    /// Returns k(x_i, x_i) for each row of `x`, [n, D]: `[n]`. The kernel is resolved.
    #[doc(hidden)]
    pub fn diagonal(&self, x: ArrayView2<f64>) -> Array1<f64> {
        if self.is_local() {
            return Array1::ones(x.nrows());
        }
        let own = |row: ArrayView2<f64>| {
            let mut value = Array2::zeros((1, 1));
            self.as_dyn().block(row, row, value.view_mut());
            value[[0, 0]]
        };
        x.axis_chunks_iter(Axis(0), 1).map(own).collect()
    }

    /// Returns true if gamma has the rule `evidence` and the kernel is not the covariance of a process. Its gamma is
    /// then that of the rule `scale`.
    pub fn cannot_learn(&self) -> bool {
        matches!(self.gamma(), Some(Gamma::Rule(GammaRule::Evidence))) && !self.is_covariance()
    }

    /// Returns the rule of gamma, if it uses the targets.
    #[doc(hidden)]
    pub fn learned_rule(&self) -> Option<GammaRule> {
        match self.gamma() {
            _ if self.as_sum().is_some() => self.as_sum().filter(Sum::learns).map(|sum| match sum.chooses_widths() {
                true => GammaRule::Evidence,
                false => GammaRule::EvidenceOne,
            }),
            Some(Gamma::Rule(GammaRule::Evidence)) if !self.is_covariance() => None,
            Some(Gamma::Rule(rule)) if rule.is_learned() => Some(*rule),
            _ => None,
        }
    }

    /// Returns a copy of the kernel with `rule` in place of each rule that chooses between one width and one for each
    /// feature.
    #[doc(hidden)]
    pub fn with_widths(&self, rule: GammaRule) -> Kernel {
        let with = |kernel: &Kernel| match kernel.gamma() {
            Some(Gamma::Rule(GammaRule::Evidence)) if kernel.is_covariance() => kernel.with_gamma(Gamma::Rule(rule)),
            _ => kernel.clone(),
        };
        let Kernel::Sum(mut sum) = self.clone() else { return with(self) };
        for factor in sum.terms.iter_mut().flat_map(|term| &mut term.factors) {
            factor.kernel = with(&factor.kernel);
        }
        sum.into()
    }

    /// Returns gamma, if there is one.
    pub fn gamma(&self) -> Option<&Gamma> {
        self.as_dyn().gamma()
    }

    /// Returns the power of a polynomial kernel.
    pub fn degree(&self) -> Option<u32> {
        match self {
            Kernel::Poly(poly) => Some(poly.degree),
            _ => None,
        }
    }

    /// Returns a copy with another gamma; a kernel without gamma is returned as it is.
    pub fn with_gamma(&self, gamma: Gamma) -> Kernel {
        let mut kernel = self.clone();
        if let Some(place) = kernel.as_dyn_mut().gamma_mut() {
            *place = gamma;
        }
        kernel
    }

    /// Returns true if the kernel has a gradient in the centres.
    #[doc(hidden)]
    pub fn moves_centres(&self) -> bool {
        !matches!(self.form(), Form::Other)
    }

    /// Returns a copy with every gamma multiplied by `factor`.
    #[doc(hidden)]
    pub fn times_gamma(&self, factor: f64) -> Kernel {
        match self.gamma() {
            Some(Gamma::Value(v)) => self.with_gamma((v * factor).into()),
            Some(Gamma::PerFeature(v)) => self.with_gamma(v.iter().map(|v| v * factor).collect::<Vec<_>>().into()),
            _ => self.clone(),
        }
    }

    /// Returns the sum over features that the kernel is a function of.
    #[doc(hidden)]
    pub fn form(&self) -> Form<'_> {
        self.as_dyn().form()
    }
}

/// Checks that a parameter is a positive, finite number.
fn positive(name: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::Parameter { name: name.into(), found: value.to_string(), expected: "a positive, finite number".into() })
}

/// Checks that a parameter is a finite number.
fn finite(name: &str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::Parameter { name: name.into(), found: value.to_string(), expected: "a finite number".into() })
}

/// Properties of the training rows that `gamma = "scale"` and `"auto"` need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataScale {
    /// D, the number of features.
    pub features: usize,
    /// Variance of all entries of X together, as in scikit-learn's `gamma="scale"`.
    pub variance: f64,
}

/// The scale of a kernel: one number, one per feature, or a rule that computes it from the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "gamma must be a positive number, a list of one per feature, \"scale\", \"auto\", \"evidence\", \"evidence-ard\", \"evidence-one\" or \"evidence-isotropic\""
)]
pub enum Gamma {
    /// One gamma for every feature.
    Value(f64),
    /// One gamma per feature.
    PerFeature(Vec<f64>),
    /// A rule.
    Rule(GammaRule),
}

rules! {
    /// Rules for [`Gamma`]; the first two have scikit-learn's names.
    pub enum GammaRule, "rule for gamma" {
        /// 1 / (D var(X)).
        Scale = "scale",
        /// 1 / D.
        Auto = "auto",
        /// Learned from the targets: one width for all features in units of their spread, or one per feature if the
        /// data support so many parameters.
        Evidence = "evidence",
        /// Learned from the targets: one number per feature, almost 0 for features that say nothing about the target.
        EvidenceArd = "evidence-ard",
        /// Learned from the targets: one width for all features in units of their spread.
        EvidenceOne = "evidence-one",
        /// Learned from the targets: one number for all features, which must have one unit.
        EvidenceIsotropic = "evidence-isotropic",
    }
}

impl GammaRule {
    /// Returns true if the rule uses the targets.
    #[doc(hidden)]
    pub fn is_learned(self) -> bool {
        !matches!(self, GammaRule::Scale | GammaRule::Auto)
    }

    /// Returns true if the rule may learn one number for each feature.
    #[doc(hidden)]
    pub fn has_widths(self) -> bool {
        matches!(self, GammaRule::Evidence | GammaRule::EvidenceArd)
    }
}

impl Default for Gamma {
    fn default() -> Self {
        Gamma::Rule(GammaRule::Scale)
    }
}

impl From<f64> for Gamma {
    fn from(value: f64) -> Self {
        Gamma::Value(value)
    }
}

impl From<Vec<f64>> for Gamma {
    fn from(values: Vec<f64>) -> Self {
        Gamma::PerFeature(values)
    }
}

impl Gamma {
    pub(crate) fn check(&self, kernel: &str) -> Result<()> {
        let bad = |found: String| {
            Err(Error::Parameter {
                name: format!("kernel.{kernel}.gamma"),
                found,
                expected: "a positive, finite number, one such number per feature, \"scale\", \"auto\", \"evidence\", \"evidence-ard\", \"evidence-one\" or \"evidence-isotropic\"".into(),
            })
        };
        let good = |v: &f64| v.is_finite() && *v > 0.0;
        match self {
            Gamma::Value(v) if !good(v) => bad(v.to_string()),
            Gamma::PerFeature(v) if v.is_empty() || !v.iter().all(good) => bad(format!("{v:?}")),
            _ => Ok(()),
        }
    }

    pub(crate) fn resolve(&mut self, kernel: &str, data: &DataScale) -> Result<()> {
        match self {
            Gamma::Rule(rule) => {
                let d = data.features.max(1) as f64;
                if rule.is_learned() {
                    return Err(Error::Parameter {
                        name: format!("kernel.{kernel}.gamma"),
                        found: rule.name().into(),
                        expected: "a number, one per feature, \"scale\" or \"auto\": only a fit to rows in memory can learn it"
                            .into(),
                    });
                }
                let value = match rule {
                    GammaRule::Scale if data.variance > 0.0 => 1.0 / (d * data.variance),
                    GammaRule::Scale => 1.0,
                    _ => 1.0 / d,
                };
                if !(value.is_finite() && value > 0.0) {
                    return Err(Error::Overflow { what: format!("gamma = 1 / (D var(X)) = {value:e}") });
                }
                *self = Gamma::Value(value);
            }
            Gamma::PerFeature(v) if v.len() != data.features => {
                return Err(Error::Parameter {
                    name: format!("kernel.{kernel}.gamma"),
                    found: format!("{} values", v.len()),
                    expected: format!("one number, or one per feature ({})", data.features),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns gamma of feature `d`, once the rule is resolved.
    #[doc(hidden)]
    pub fn at(&self, d: usize) -> f64 {
        match self {
            Gamma::Value(v) => *v,
            Gamma::PerFeature(v) => v[d],
            Gamma::Rule(_) => f64::NAN,
        }
    }

    /// Returns gamma of each feature, `[D]`.
    #[doc(hidden)]
    pub fn values(&self, features: usize) -> Array1<f64> {
        Array1::from_shape_fn(features, |d| self.at(d))
    }

    /// Returns the square roots of gamma, `[D]`. As scales of features they do not overflow unless gamma x^2 does.
    #[doc(hidden)]
    pub fn roots(&self, features: usize) -> Array1<f64> {
        self.values(features).mapv(f64::sqrt)
    }

    #[doc(hidden)]
    pub fn parameters(&self) -> Vec<(String, f64)> {
        match self {
            Gamma::Value(v) => vec![("gamma".into(), *v)],
            Gamma::PerFeature(v) => v.iter().enumerate().map(|(d, v)| (format!("gamma[{d}]"), *v)).collect(),
            Gamma::Rule(_) => vec![],
        }
    }

    /// Sets the parameters from the first of `values`, and returns the rest.
    #[doc(hidden)]
    pub fn set<'a>(&mut self, values: &'a [f64]) -> &'a [f64] {
        match self {
            Gamma::Value(v) => {
                *v = values[0];
                &values[1..]
            }
            Gamma::PerFeature(v) => {
                let n = v.len();
                v.copy_from_slice(&values[..n]);
                &values[n..]
            }
            Gamma::Rule(_) => values,
        }
    }
}
