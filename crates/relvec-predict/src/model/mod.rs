//! Trained models: prediction, saving and loading.

mod check;
mod class_precisions;
mod classes;
mod count_quantiles;
mod counts;
mod decisions;
mod densities;
mod encoding;
mod half_width;
mod healed;
mod incomplete_beta;
mod intervals;
mod inverse_erf;
mod kept_statistics;
mod labels;
mod log_gamma;
mod margins;
mod outputs;
mod posterior_rule;
mod process;
mod stored;

use alloc::collections::{BTreeMap, BTreeSet};
use core::f64::consts::PI;

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, ShapeError, s};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernel::sparse::SparseCentres;
use crate::kernel::{Fill, Kernel};
use crate::label::Label;
use crate::likelihood::{Likelihood, sigmoid};
use crate::linalg;
use crate::sparse::SparseRows;
use crate::special::log_student_peak;
use crate::status::Status;
use crate::vector::{self, Dot, Scale};

pub use self::check::{CLASSIFIERS, Place, REGRESSORS, SCHEMES};
pub use self::classes::{ClassFunctions, Committee};
pub use self::counts::Counts;
pub use self::decisions::{Decision, Decisions};
pub use self::encoding::{EncodedCell, EncodedColumn, Encoding, Missing, RawCell};
pub use self::healed::{KeptOutput, KeptRows, Variance};
pub use self::kept_statistics::{KeptStatistics, NoiseSums};
pub use self::labels::LabelRegression;
pub use self::margins::Margins;
pub use self::posterior_rule::PosteriorRule;
use self::process::NEEDS_KERNEL;
pub use self::process::{ProcessPrior, Residual};
pub use self::stored::{StoredRows, rows};

/// Version of the model file that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u64 = 1;
const FORMAT: &str = "relvec-model";
/// Largest number of entries of a tile of basis functions (512 KB). One thread computes a tile and uses it while the
/// tile is in its cache.
const TILE_ENTRIES: usize = 1 << 16;
/// Largest number of rows of a tile.
const TILE_ROWS: usize = 512;
/// Largest magnitude of a feature. The difference of two such features is at most half the largest number, and so is
/// finite.
const LARGEST_FEATURE: f64 = f64::MAX / 4.0;
/// Magnitude of a weight above which [`InUse::by_weight`] counts its basis function.
const WEIGHT_IN_USE: f64 = 1e-3;
/// Well-determinedness above which [`InUse::by_data`] counts a basis function.
const DETERMINED_IN_USE: f64 = 0.5;

/// The function of a sparse kernel model: y(x) = sum_m w_m k(x, c_m) + w_0, with C such functions if there are several
/// outputs or classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expansion {
    /// The basis functions.
    pub basis: FittedBasis,
    /// Weights w_m in units of the target, [M, C]. Regression with one output and two classes have C = 1 function.
    /// Several classes have one function each, or one for each pair of classes under one-versus-one.
    #[serde(with = "stored::weights")]
    pub weights: Array2<f64>,
    /// Intercepts w_0 in units of the target, `[C]`; 0 if the bias was pruned or switched off. For counts over
    /// exposures, a model with a bias includes the log of a rate of one count for the mean exposure. If the bias was
    /// pruned, that log alone is left.
    #[serde(with = "stored::intercept")]
    pub intercept: Vec<f64>,
}

/// The basis functions of a fitted model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FittedBasis {
    /// A kernel at centres.
    Kernel {
        /// The kernel, with a number for every parameter.
        kernel: Kernel,
        /// Centres c_m, [M, D], after scaling.
        #[serde(with = "stored::rows")]
        centres: Array2<f64>,
    },
    /// A kernel at centres that are sparse rows. Fits to sparse rows have it, and [`Model::with_sparse_centres`].
    Sparse {
        /// The kernel, with a number for every parameter.
        kernel: Kernel,
        /// Centres c_m, [M, D].
        centres: SparseRows,
    },
    /// Columns of a design matrix that the caller computes; `relevance` contains their numbers.
    Given {},
    /// A kernel that the caller computes; `relevance` contains numbers of training rows.
    External {
        /// Centres c_m, [M, D]; `None` if the caller gave kernel values only.
        #[serde(with = "stored::optional_rows")]
        centres: Option<Array2<f64>>,
    },
}

/// The weight posterior N(mean, Sigma) and the noise.
///
/// Sigma = diag(scale) inv(L L') diag(scale). It covers the bias first (if it is in the model), then the basis
/// functions in the order of the weights. `scale` is stored apart from L, so that no unit of the target makes Sigma
/// overflow or underflow.
///
/// Under the softmax of K classes, each basis function has K - 1 weights in Sigma. All weights of the first contrast
/// come before all of the second. Contrast r is the mean of classes 0..=r minus class r + 1, at unit norm (Helmert
/// contrasts). The weights of the classes are linear combinations of these contrasts and sum to 0. If each class has
/// its own precisions ([`Model::class_alpha`]), Sigma covers the weights of the classes themselves that are in the
/// model. All weights of the first class come before all of the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posterior {
    /// L, lower triangular, row by row: row i has i + 1 entries. Its shape is [M, M], and [(K - 1) M, (K - 1) M] under
    /// the softmax. With precisions for each class, it has a row for each weight that is in the model.
    pub factor: Vec<Vec<f64>>,
    /// Scale of each basis function, `[M]`, > 0, in units of its weight.
    pub scale: Vec<f64>,
    /// Noise variance in squared units of the target. Student-t noise has its squared scale here. The value is 0 if the
    /// noise variance of each row was given, and `None` for classification and counts.
    pub noise_variance: Option<f64>,
    /// Degrees of freedom of Student-t noise. If the variational scheme has learned the noise, the noise precision has
    /// a distribution. Integrating it out gives Student-t noise with 2 c + N degrees of freedom, which are stored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_degrees: Option<f64>,
    /// Factor of all predictive variances, those of the noise included. Cross-validation chooses it if it finds the
    /// variances too small. `None` means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_factor: Option<f64>,
    /// True if the Hessian is averaged over the posterior instead of being evaluated at the mode: see
    /// [`PosteriorRule`].
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub averaged: bool,
    /// Noise variance of each output divided by that of the first, `[K]`; empty for one output. The covariances of the
    /// weights and their prior variances 1 / alpha differ by the same ratios, (M61). All other fields, and
    /// [`Model::alpha`], describe the first output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variance_ratios: Vec<f64>,
}

impl Posterior {
    /// Returns the lower triangular factor L, `[M, M]`.
    #[doc(hidden)]
    pub fn factor(&self) -> Array2<f64> {
        let m = self.factor.len();
        Array2::from_shape_fn((m, m), |(i, j)| if j <= i { self.factor[i][j] } else { 0.0 })
    }

    /// Returns inv(L), `[M, M]`, so that the covariance of the weights is half' half.
    #[doc(hidden)]
    pub fn half(&self) -> Array2<f64> {
        linalg::inverse_lower(self.factor().view())
    }
}

/// Standardisation of the features: (x - mean) / scale, `[D]` each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Numbers that are subtracted.
    pub mean: Vec<f64>,
    /// Numbers that the differences are divided by, > 0.
    pub scale: Vec<f64>,
}

/// A trained sparse kernel model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The kind of model: `"rvm"` or `"svm"`.
    pub machine: String,
    /// The likelihood with its settings; `None` for a support vector machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// Name of the inference scheme; `None` for a support vector machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<String>,
    /// Names of the features, `[D]`; empty if the caller gave none.
    pub features: Vec<String>,
    /// Rule that makes the features from the columns of a table; `None` if the columns are the features. `predict`
    /// takes the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Name of the target; `None` if the caller gave none.
    pub target: Option<String>,
    /// Names of several targets, `[K]`; empty if the caller gave none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Names of the classes in the order of their numbers; empty for regression.
    pub classes: Vec<Label>,
    /// Shares of the classes among the training rows, by their weights, `[K]`: the prior probabilities that the class
    /// probabilities contain. For a support vector machine the class weights are not included, because its sigmoids do
    /// not use them. Empty for regression, for the binary models of a committee, and in files that older versions
    /// wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_frequencies: Vec<f64>,
    /// Standardisation that `predict` applies to raw rows; `None` if the features are used as they are.
    pub scaling: Option<Scaling>,
    /// D, the number of columns that `predict` requires.
    pub n_features: usize,
    /// Number of rows of the training table.
    pub n_rows: usize,
    /// Numbers (0-based) of the training rows that are centres, or of the columns of the given design matrix, `[M]`.
    /// They ascend; with an external kernel they are in the order of the caller's columns.
    pub relevance: Vec<usize>,
    /// The expansion.
    pub expansion: Expansion,
    /// Weight precisions alpha_m, `[M]`, in the order of the weights, in inverse squared units of the weights. Under
    /// the softmax each is the precision of the weights of all classes, or the smallest one in `class_alpha`. Empty for
    /// a committee, whose binary models have their own, for a support vector machine, under a process prior, and for
    /// regression on labels.
    pub alpha: Vec<f64>,
    /// Precision of the bias; `None` if it was pruned (infinite precision) or switched off.
    pub intercept_alpha: Option<f64>,
    /// Precision of each weight under the softmax with per-class precisions. Rows are the bias (if it is in the model)
    /// and the basis functions; columns are the classes. `None` marks a weight that is not in the model. Empty if the
    /// classes share their precisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_alpha: Vec<Vec<Option<f64>>>,
    /// Share of each feature in the variation of the kernel, (M37), `[D]`, summing to 1. Empty unless the kernel has
    /// one gamma per feature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_relevance: Vec<f64>,
    /// True if the gradient of the evidence has moved the centres, so that they are not training rows. `relevance` then
    /// contains indices in the list of the moved centres.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub learned_centres: bool,
    /// True if the fit found signs that the model interpolates its training rows; its intervals are then too narrow.
    /// See `Report::interpolation` of the crate `relvec`. Files written before this check existed have `false`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub interpolates: bool,
    /// The weight posterior. `None` for a committee, whose binary models have their own, for a support vector machine,
    /// and for a classifier from regression on labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posterior: Option<Posterior>,
    /// Log evidence (log marginal likelihood) in nats, with all constants, for targets in their own units. The
    /// variational scheme has its lower bound here, and a committee the sum over its binary models. `None` for a
    /// support vector machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_evidence: Option<f64>,
    /// Reason why the fit ended.
    pub status: Status,
    /// Number of iterations of the fit.
    pub iterations: usize,
    /// Binary models that together decide between more than two classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committee: Option<Committee>,
    /// Margins of a support vector machine, which has no posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// The kind of variance that predictions have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub variance: Variance,
    /// The process prior of the weights, which then have no precisions of their own. `alpha` is empty, and the
    /// precision of the bias, whose prior is flat, is 0. The log evidence is that of the process with FITC's diagonal,
    /// (M72). It cannot be compared with that of a model with precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessPrior>,
    /// Regression on labels, which has no posterior. The log evidence of such a classifier is the log probability of
    /// the classes of held-out rows, (M82). It cannot be compared with that of a model with precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelRegression>,
    /// Training rows that a healed variance needs; `None` if the fit did not retain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_rows: Option<KeptRows>,
    /// Sums over the training rows; `None` if the fit did not retain them. With them, rows can be added to the model
    /// without the training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<KeptStatistics>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Numbers of basis functions that matter, without the bias. Under some schemes, such as the variational one, weights
/// of no use stay in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InUse {
    /// Number of mean weights beyond 1e-3, in units of the target: the rule of Bishop & Tipping (2000).
    pub by_weight: usize,
    /// Number of weights that the data determine more than the prior, gamma_i > 1/2. It does not depend on any units.
    pub by_data: usize,
}

/// Predictions of a regression model, of the latent function of a classifier, or of the log rate of counts. Arrays have
/// one entry per row.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// phi'mu, `[N]`, in units of the target.
    pub mean: Array1<f64>,
    /// Variance from the uncertainty of the weights, phi'Sigma phi, `[N]`. Under a process prior the residual variance
    /// is included. It is multiplied by [`Posterior::variance_factor`], if there is one.
    pub model_variance: Array1<f64>,
    /// Noise variance, multiplied by [`Posterior::variance_factor`] too; for Student-t noise its squared scale. It is 0
    /// for classification, for counts, and if the noise of each training row was given. In the last case, the caller
    /// adds the noise variance of a new row.
    pub noise_variance: f64,
    /// Degrees of freedom, see [`Posterior::noise_degrees`]. The target is then approximately Student-t with these
    /// degrees of freedom, location `mean`, and the square root of [`Prediction::variance`] as scale, (M32).
    pub noise_degrees: Option<f64>,
}

impl Prediction {
    /// Returns the sum of noise and model variance, `[N]`.
    pub fn variance(&self) -> Array1<f64> {
        &self.model_variance + self.noise_variance
    }

    /// Returns the log odds of the second class, `[N]`, from the latent function of a classifier.
    pub fn log_odds(&self, moderation: Moderation) -> Array1<f64> {
        match moderation {
            Moderation::PlugIn => self.mean.clone(),
            Moderation::Posterior => &self.mean / &self.model_variance.mapv(|v| (1.0 + core::f64::consts::PI * v / 8.0).sqrt()),
        }
    }

    /// Returns class probabilities, [N, 2], from the latent function of a classifier. Columns are in the order of the
    /// classes.
    pub fn probability(&self, moderation: Moderation) -> Array2<f64> {
        let f = self.log_odds(moderation);
        Array2::from_shape_fn((f.len(), 2), |(i, k)| sigmoid(if k == 0 { -f[i] } else { f[i] }))
    }

    /// Returns log predictive densities of targets `t`, `[N]`, in nats: normal, or Student-t with
    /// [`Prediction::noise_degrees`].
    pub fn log_density(&self, t: ArrayView1<f64>) -> Array1<f64> {
        let variance = self.variance();
        let square = (&t - &self.mean).mapv(|r| r * r) / &variance;
        let shape = |square: f64| match self.noise_degrees {
            Some(d) => log_student_peak(d) - 0.5 * ((2.0 * PI).ln() + (d + 1.0) * (square / d).ln_1p()),
            None => -0.5 * ((2.0 * PI).ln() + square),
        };
        square.mapv_into(shape) - variance.mapv_into(|v| 0.5 * v.ln())
    }

    /// Returns the square root of [`Prediction::variance`], `[N]`. Under Student-t noise it is a scale, not a standard
    /// deviation: see [`Prediction::deviation`].
    pub fn std(&self) -> Array1<f64> {
        self.variance().mapv(f64::sqrt)
    }
}

impl Prediction {
    /// Returns the standard deviation of a new target under Student-t noise, `[N]`. The noise variance is degrees /
    /// (degrees - 2) times its squared scale, and infinite for 2 degrees or fewer.
    pub fn deviation(&self) -> Array1<f64> {
        self.model_variance.mapv(|v| (v + self.student_variance()).sqrt())
    }

    /// Returns the variance of Student-t noise.
    #[doc(hidden)]
    pub fn student_variance(&self) -> f64 {
        match self.noise_degrees {
            Some(degrees) if degrees > 2.0 => degrees / (degrees - 2.0) * self.noise_variance,
            // Noise of scale 0 has no variance, however few its degrees of freedom.
            Some(_) if self.noise_variance > 0.0 => f64::INFINITY,
            Some(_) => 0.0,
            None => self.noise_variance,
        }
    }
}

/// How class probabilities account for the uncertainty of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moderation {
    /// Averaged over the weight posterior by MacKay's approximation, sigmoid(m / sqrt(1 + pi v / 8)), which is within
    /// 0.018 of the integral. For several classes, p_k is 1 / sum_l exp(-(m_k - m_l) / sqrt(1 + pi v_kl / 8)),
    /// normalised, where v_kl is the variance of f_k - f_l, (M31).
    #[default]
    Posterior,
    /// Evaluated at the posterior mean: sigmoid(m).
    PlugIn,
}

impl Model {
    /// Returns a model of kind `machine` ("rvm" or "svm") with this expansion in `n_features` features, learned from
    /// `n_rows` rows. All else is empty: it has no names, no scaling, no posterior and no relevance vectors.
    pub fn of_expansion(machine: &str, expansion: Expansion, n_features: usize, n_rows: usize) -> Model {
        Model {
            machine: machine.into(),
            likelihood: None,
            inference: None,
            features: vec![],
            encoding: None,
            target: None,
            targets: vec![],
            classes: vec![],
            class_frequencies: vec![],
            scaling: None,
            n_features,
            n_rows,
            relevance: vec![],
            expansion,
            alpha: vec![],
            intercept_alpha: None,
            class_alpha: vec![],
            feature_relevance: vec![],
            learned_centres: false,
            interpolates: false,
            posterior: None,
            log_evidence: None,
            status: Status::Converged,
            iterations: 0,
            committee: None,
            margins: None,
            variance: Variance::default(),
            process: None,
            labels: None,
            kept_rows: None,
            statistics: None,
        }
    }

    /// Predicts mean and variance at the rows of `x`, [N, D]. For a given design matrix `x` is [N, P], and only the
    /// columns in the model are read.
    ///
    /// # Errors
    /// Returns an error if the number of columns differs from the model's, if a value is not finite, or if the kernel
    /// is external. A model of more than two classes has several functions and is refused. Support vector machines and
    /// classifiers from regression on labels are refused as well, because they have no posterior.
    pub fn predict(&self, x: ArrayView2<f64>) -> Result<Prediction> {
        self.predict_with(x, self.variance)
    }

    /// Predicts the mean alone, `[N]`, at rows `x`, `[N, D]`, without the far more expensive variance. It is the mean
    /// of the posterior, see [`Variance`].
    ///
    /// # Errors
    /// See [`Model::predict`]. A support vector machine with one function is allowed here.
    pub fn predict_mean(&self, x: ArrayView2<f64>) -> Result<Array1<f64>> {
        self.check_single()?;
        Ok(self.function_means(x)?.remove_axis(Axis(1)))
    }

    /// Returns the means of all functions, [N, C], at rows `x`, [N, D].
    fn function_means(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.check_rows(x)?;
        let mut mean = Array2::zeros((x.nrows(), self.outputs()));
        let (make, rows) = (self.maker(), self.tile_rows());
        let pairs = mean.axis_chunks_iter_mut(Axis(0), rows).into_par_iter();
        pairs.zip(x.axis_chunks_iter(Axis(0), rows).into_par_iter()).for_each_init(
            || Array2::zeros((rows, self.relevance.len())),
            |tile, (mean, rows)| {
                let mut phi = tile.slice_mut(s![..rows.nrows(), ..]);
                make(rows, phi.view_mut());
                self.tile_means(phi.view_mut(), mean);
            },
        );
        mean.axis_iter(Axis(1)).try_for_each(|mean| check_predicted(mean, None))?;
        Ok(mean)
    }

    /// Returns C, the number of functions.
    pub fn outputs(&self) -> usize {
        self.expansion.intercept.len()
    }

    #[doc(hidden)]
    pub fn check_single(&self) -> Result<()> {
        match self.outputs() {
            1 => Ok(()),
            _ if self.has_several_outputs() => {
                let found = format!("found a model of {} outputs, expected one output: select an output", self.outputs());
                Err(Error::Targets(found))
            }
            _ => Err(Error::Targets("found a model of several classes, expected a model with one function".into())),
        }
    }

    /// Checks rows to predict, `[N, D]`: D is the model's number of features, and the features that it uses are finite.
    #[doc(hidden)]
    pub fn check_rows(&self, x: ArrayView2<f64>) -> Result<()> {
        if x.ncols() != self.n_features {
            let made =
                self.encoding.as_ref().map(|own| format!(", made of the {} of a table by its encoding", own.columns.len()));
            return Err(Error::Shape {
                what: "rows to predict",
                expected: format!("{} columns{}", self.n_features, made.unwrap_or_default()),
                found: format!("{} columns", x.ncols()),
            });
        }
        match &self.expansion.basis {
            FittedBasis::External { .. } => Err(Error::ExternalKernel),
            FittedBasis::Given {} => check_finite("rows to predict", x, self.relevance.iter().copied()),
            FittedBasis::Kernel { .. } => check_features("rows to predict", x),
            FittedBasis::Sparse { kernel, .. } => {
                kernel.check_sparse()?;
                check_features("rows to predict", x)
            }
        }
    }

    /// Predicts mean and variance from the values of the basis functions in the model, [N, M], without the bias. It
    /// serves kernels that the caller computes.
    ///
    /// # Errors
    /// Returns an error if the number of columns differs from the number of weights, or if a value is not finite. A
    /// process prior is refused, because its variance needs the kernel.
    pub fn predict_from_basis(&self, phi: ArrayView2<f64>) -> Result<Prediction> {
        self.check_single()?;
        self.check_basis(phi)?;
        self.refuse_process("basis", "values of basis functions", NEEDS_KERNEL)?;
        self.predict_tiles(phi, |rows, mut out| out.assign(&rows))
    }

    /// Returns a copy of the model for rows that are the values of its basis functions, [N, M], without the bias. It
    /// serves kernels that the caller computes.
    pub fn on_basis(&self) -> Model {
        self.on_columns_of(&self.relevance)
    }

    /// Returns a copy of the model for a table with one column for each of `all` relevance vectors, which include its
    /// own.
    fn on_columns_of(&self, all: &[usize]) -> Model {
        let expansion = Expansion { basis: FittedBasis::Given {}, ..self.expansion.clone() };
        let places: BTreeMap<usize, usize> = all.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let relevance = match all == self.relevance {
            true => (0..all.len()).collect(),
            false => self.relevance.iter().map(|row| places[row]).collect(),
        };
        let of_members = |committee: &Committee| Committee {
            members: committee.members.iter().map(|member| member.on_columns_of(all)).collect(),
            ..committee.clone()
        };
        Model {
            committee: self.committee.as_ref().map(of_members),
            expansion,
            relevance,
            n_features: all.len(),
            features: vec![],
            encoding: None,
            scaling: None,
            kept_rows: None,
            statistics: None,
            ..self.clone()
        }
    }

    fn check_basis(&self, phi: ArrayView2<f64>) -> Result<()> {
        let m = self.relevance.len();
        if phi.ncols() != m {
            return Err(Error::Shape {
                what: "values of the basis functions",
                expected: format!("{m} columns"),
                found: format!("{} columns", phi.ncols()),
            });
        }
        check_finite("values of the basis functions", phi, 0..m)
    }

    /// Returns the number of rows of a tile.
    #[doc(hidden)]
    pub fn tile_rows(&self) -> usize {
        (TILE_ENTRIES / (self.relevance.len() + 1)).clamp(16, TILE_ROWS)
    }

    /// Predicts the one function of the model; `make` computes the basis functions of a tile of rows, [B, M], without
    /// the bias.
    fn predict_tiles(&self, x: ArrayView2<f64>, make: impl Fn(ArrayView2<f64>, ArrayViewMut2<f64>) + Sync) -> Result<Prediction> {
        let (mean, mut model_variance) = self.moments(x, make)?;
        let mean = mean.remove_axis(Axis(1));
        let (factor, posterior) = (self.variance_factor(), self.posterior()?);
        let noise_variance = factor * posterior.noise_variance.unwrap_or(0.0);
        model_variance *= factor;
        check_predicted(mean.view(), Some((model_variance.view(), noise_variance)))?;
        Ok(Prediction { mean, model_variance, noise_variance, noise_degrees: posterior.noise_degrees })
    }

    /// Returns the means of all functions, [N, C], and the posterior variance of the first, `[N]`.
    fn moments(
        &self,
        x: ArrayView2<f64>,
        make: impl Fn(ArrayView2<f64>, ArrayViewMut2<f64>) + Sync,
    ) -> Result<(Array2<f64>, Array1<f64>)> {
        let n = x.nrows();
        let (posterior, residual) = (self.posterior()?, self.residual()?);
        let bias = usize::from(self.intercept_alpha.is_some());
        let mut mean = Array2::zeros((n, self.outputs()));
        let mut variance = Array1::zeros(n);
        let (factor, rows) = (posterior.factor(), self.tile_rows());
        let pairs = mean.axis_chunks_iter_mut(Axis(0), rows).into_par_iter();
        let triples = pairs.zip(variance.axis_chunks_iter_mut(Axis(0), rows).into_par_iter());
        triples.zip(x.axis_chunks_iter(Axis(0), rows).into_par_iter()).for_each_init(
            || Array2::zeros((rows, bias + self.relevance.len())),
            |tile, ((mean, mut variance), rows)| {
                let mut tile = tile.slice_mut(s![..rows.nrows(), ..]);
                let mut phi = tile.slice_mut(s![.., bias..]);
                make(rows, phi.view_mut());
                let left = residual.as_ref().map(|residual| residual.variances(rows, phi.view()));
                self.tile_means(phi, mean);
                tile.slice_mut(s![.., ..bias]).fill(1.0);
                vector::each_row(tile.view_mut(), |_, out| vector::run(Scale { times: &posterior.scale, out }));
                linalg::solve_lower_alone(factor.view(), tile.view_mut().reversed_axes());
                vector::each_row(tile, |i, half| {
                    vector::run(Dot { a: half, b: half, out: &mut variance[i] });
                });
                left.iter().for_each(|left| variance += left);
            },
        );
        Ok((mean, variance))
    }

    /// Computes the means of a tile of rows, [B, C], from its basis functions without the bias, [B, M].
    fn tile_means(&self, phi: ArrayViewMut2<f64>, mut mean: ArrayViewMut2<f64>) {
        match self.outputs() {
            1 => {
                let weights = self.expansion.weights.as_slice().expect("weights are contiguous");
                vector::each_row(phi, |i, row| {
                    vector::run(Dot { a: row, b: weights, out: &mut mean[[i, 0]] });
                });
            }
            _ => linalg::product_alone(false, phi.view(), self.expansion.weights.view(), mean.view_mut()),
        }
        mean += &ArrayView1::from(&self.expansion.intercept);
    }

    /// Returns the kernel, with a number for every parameter; `None` for a given design matrix or an external kernel.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.expansion.basis {
            FittedBasis::Kernel { kernel, .. } | FittedBasis::Sparse { kernel, .. } => Some(kernel),
            FittedBasis::Given {} | FittedBasis::External { .. } => None,
        }
    }

    /// Returns the noise standard deviation in units of the target; `None` for classification and support vector
    /// machines.
    pub fn noise_std(&self) -> Option<f64> {
        self.noise_variance().map(f64::sqrt)
    }

    /// Returns the noise variance in squared units of the target; `None` for classification and support vector
    /// machines.
    pub fn noise_variance(&self) -> Option<f64> {
        self.posterior.as_ref().and_then(|p| p.noise_variance)
    }

    /// Returns the factor of all variances, 1 if there is none.
    #[doc(hidden)]
    pub fn variance_factor(&self) -> f64 {
        self.posterior.as_ref().and_then(|p| p.variance_factor).unwrap_or(1.0)
    }

    /// Returns the degrees of freedom of the noise, see [`Posterior::noise_degrees`].
    pub fn noise_degrees(&self) -> Option<f64> {
        self.posterior.as_ref().and_then(|p| p.noise_degrees)
    }

    #[doc(hidden)]
    pub fn posterior(&self) -> Result<&Posterior> {
        self.posterior.as_ref().ok_or(Error::NoPosterior)
    }

    /// Returns the posterior covariance of the weights, the bias (if it is in the model) first, [M, M]. Under the
    /// softmax it is that of the contrasts, or of the weights of the classes, see [`Posterior`]. It is empty if there
    /// is no posterior.
    pub fn weight_covariance(&self) -> Array2<f64> {
        let Some(posterior) = &self.posterior else { return Array2::zeros((0, 0)) };
        let scale: Array1<f64> = self.present().concat().into_iter().map(|i| posterior.scale[i]).collect();
        let mut half = Array2::from_diag(&scale);
        linalg::solve_lower(posterior.factor().view(), half.view_mut());
        half.t().dot(&half)
    }

    /// Returns gamma_i = 1 - alpha_i Sigma_ii (M4) of the basis functions, `[M]`, without the bias. It says how well
    /// the data determine a weight, from 0 (the prior alone does) to 1. Under a process prior, 1 / alpha_i is the prior
    /// variance of the weight. Under the softmax it is the mean over the weights of a basis function. It is empty for a
    /// committee and for a support vector machine.
    pub fn well_determined(&self) -> Vec<f64> {
        let skip = usize::from(self.intercept_alpha.is_some());
        if self.process.is_some() {
            let variances = self.weight_covariance().diag().to_vec();
            let pairs = variances[skip..].iter().zip(self.process_variances());
            return pairs.map(|(after, before)| (1.0 - after / before).clamp(0.0, 1.0)).collect();
        }
        let (variances, present) = (self.weight_covariance().diag().to_vec(), self.present());
        let (mut sums, mut counts) = (vec![0.0; self.alpha.len() + skip], vec![0; self.alpha.len() + skip]);
        let weights = present.iter().enumerate().flat_map(|(k, of_function)| of_function.iter().map(move |i| (k, *i)));
        for ((k, i), variance) in weights.zip(variances) {
            let own = self.class_alpha.get(i).and_then(|row| row[k]);
            let alpha = own.or_else(|| if i < skip { self.intercept_alpha } else { self.alpha.get(i - skip).copied() });
            sums[i] += (1.0 - alpha.unwrap_or(0.0) * variance).clamp(0.0, 1.0);
            counts[i] += 1;
        }
        sums.iter().zip(&counts).skip(skip).map(|(sum, count)| sum / f64::from((*count).max(1))).collect()
    }

    /// Returns how many basis functions matter. For a committee, a basis function is counted once if it matters to any
    /// binary model.
    pub fn in_use(&self) -> InUse {
        let weighty = |row: ArrayView1<f64>| row.iter().any(|v| v.abs() > WEIGHT_IN_USE);
        let determined = |model: &Model| {
            let all = model.relevance.iter().copied().zip(model.well_determined());
            all.filter(|(_, v)| *v > DETERMINED_IN_USE).map(|(row, _)| row).collect::<Vec<_>>()
        };
        let by_data = match &self.committee {
            None => determined(self).len(),
            Some(committee) => committee.members.iter().flat_map(determined).collect::<BTreeSet<_>>().len(),
        };
        InUse { by_weight: self.expansion.weights.outer_iter().filter(|row| weighty(*row)).count(), by_data }
    }

    /// Returns the function that computes the basis functions at raw rows, [B, D], without the bias: [B, M].
    #[doc(hidden)]
    pub fn maker(&self) -> Fill<'_> {
        match &self.expansion.basis {
            FittedBasis::Given {} => Box::new(|rows, mut phi| {
                for (mut target, column) in phi.axis_iter_mut(Axis(1)).zip(&self.relevance) {
                    target.assign(&rows.column(*column));
                }
            }),
            FittedBasis::External { .. } => Box::new(|rows, mut phi| phi.assign(&rows)),
            FittedBasis::Kernel { .. } | FittedBasis::Sparse { .. } => {
                let fill = self.at_centres();
                Box::new(move |rows, phi| {
                    let scaled = self.scaling.as_ref().map(|s| s.apply(rows));
                    fill(scaled.as_ref().map_or(rows, |r| r.view()), phi);
                })
            }
        }
    }

    /// Returns the function that computes the kernel between scaled rows, [B, D], and the centres: [B, M]. Without a
    /// kernel that is known, it computes nothing.
    fn at_centres(&self) -> Fill<'_> {
        match &self.expansion.basis {
            // An empty list of centres has no number of features, and there is nothing to fill.
            _ if self.relevance.is_empty() => Box::new(|_, _| {}),
            FittedBasis::Kernel { kernel, centres } => kernel.at(centres.view()),
            FittedBasis::Sparse { kernel, centres } => kernel.at_sparse(centres).expect("check_rows refuses any other kernel"),
            FittedBasis::Given {} | FittedBasis::External { .. } => Box::new(|_, _| {}),
        }
    }

    /// Returns the values of the basis functions at sparse rows `x`, [N, D], without the bias: [N, M].
    /// [`Model::on_basis`] predicts from them.
    ///
    /// ```
    /// # use relvec_predict::{Model, Result, SparseRows, ndarray::Array2};
    /// fn decide(model: &Model, x: &SparseRows) -> Result<Array2<f64>> {
    ///     model.on_basis().decision_function(model.basis_values(x)?.view())
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the number of columns differs from the model's, if a value is not finite, or if the kernel
    /// is external.
    pub fn basis_values(&self, x: &SparseRows) -> Result<Array2<f64>> {
        self.check_rows(ArrayView2::from_shape((0, x.ncols()), &[]).expect("no numbers are enough for no rows"))?;
        check_sparse("rows to predict", x)?;
        let mut out = Array2::zeros((x.nrows(), self.relevance.len()));
        self.fill_sparse(x, out.view_mut())?;
        Ok(out)
    }

    /// Fills `out`, [N, M], with the values of the basis functions at sparse rows `x`, [N, D], without the bias. The rows
    /// have been checked.
    fn fill_sparse(&self, x: &SparseRows, mut out: ArrayViewMut2<f64>) -> Result<()> {
        let height = self.tile_rows();
        let tiles = out.axis_chunks_iter_mut(Axis(0), height).into_par_iter().enumerate();
        match (&self.expansion.basis, &self.scaling) {
            (FittedBasis::Sparse { kernel, centres }, None) if !centres.is_nearly_dense() => {
                let centres = SparseCentres::new(kernel, centres.clone())?;
                tiles.for_each_init(Vec::new, |room, (k, phi)| {
                    vector::each_row(phi, |i, out| centres.fill(x.row(k * height + i), None, room, out));
                });
            }
            _ => {
                let make = self.maker();
                tiles.for_each(|(k, phi)| {
                    let start = k * height;
                    make(x.dense_rows(start..start + phi.nrows()).view(), phi);
                });
            }
        }
        Ok(())
    }

    /// Returns the text of the model file: JSON with the format version and a checksum.
    pub fn to_json(&self) -> Result<String> {
        let (body, checksum) = self.summed()?;
        Ok(format!(
            "{{\"format\":\"{FORMAT}\",\"format_version\":{FORMAT_VERSION},\"checksum\":\"{checksum}\",\"model\":{body}}}\n"
        ))
    }

    /// Returns the checksum of the model file, eight hexadecimal digits. An exported model has it, so that it can be
    /// matched with its model file.
    pub fn checksum(&self) -> Result<String> {
        Ok(self.summed()?.1)
    }

    /// Returns the model as JSON, and its checksum.
    fn summed(&self) -> Result<(String, String)> {
        let body = serde_json::to_string(self).map_err(|e| Error::ModelFile(e.to_string()))?;
        let checksum = format!("{:08x}", crc32fast::hash(body.as_bytes()));
        Ok((body, checksum))
    }

    /// Reads a model from the text that [`Model::to_json`] wrote. Every number is restored bit for bit.
    ///
    /// # Errors
    /// [`Error::ModelFile`] names the place in the JSON, the value found and the value expected. The text is refused if
    /// it is not a model file, has a newer version, is cut off or was altered, or if its contents cannot come from a
    /// fit. A model that was read predicts finite numbers for finite rows, or returns an error if they overflow.
    pub fn from_json(text: &str) -> Result<Model> {
        let fail = |problem: String| Error::ModelFile(problem);
        let file: serde_json::Value = serde_json::from_str(text).map_err(|e| {
            fail(match e.classify() {
                serde_json::error::Category::Eof => {
                    format!("the file is cut off: it ends at line {}, column {}", e.line(), e.column())
                }
                _ => format!("this is not JSON: {e}"),
            })
        })?;
        if file.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
            return Err(fail(format!("this is not a model of relvec: the key \"format\" is not \"{FORMAT}\"")));
        }
        match file.get("format_version").and_then(|v| v.as_u64()) {
            Some(FORMAT_VERSION) => {}
            Some(v) => return Err(fail(format!("format version {v}; this program reads version {FORMAT_VERSION}"))),
            None => return Err(fail("the key \"format_version\" is missing or is not a whole number".into())),
        }
        let body = file.get("model").ok_or_else(|| fail("the key \"model\" is missing".into()))?;
        let mut model: Model = serde_path_to_error::deserialize(body).map_err(|e| match e.path().to_string().as_str() {
            "." => fail(format!("model: {}", e.inner())),
            path => fail(format!("model.{path}: {}", e.inner())),
        })?;
        let again = serde_json::to_string(&model).map_err(|e| fail(e.to_string()))?;
        let checksum = format!("{:08x}", crc32fast::hash(again.as_bytes()));
        if file.get("checksum").and_then(|c| c.as_str()) != Some(checksum.as_str()) {
            return Err(fail("the checksum does not match the contents: the file was altered after it was written".into()));
        }
        model.check()?;
        model.restore_empty().map_err(|e| fail(e.to_string()))?;
        Ok(model)
    }

    /// Restores the number of columns of centres and weights without rows: a list of no rows does not state it.
    fn restore_empty(&mut self) -> core::result::Result<(), ShapeError> {
        if let FittedBasis::Kernel { centres, .. } | FittedBasis::External { centres: Some(centres) } = &mut self.expansion.basis
            && centres.nrows() == 0
        {
            *centres = Array2::from_shape_vec((0, self.n_features), vec![])?;
        }
        if self.expansion.weights.nrows() == 0 {
            self.expansion.weights = Array2::zeros((0, self.outputs()));
        }
        self.committee.iter_mut().flat_map(|committee| &mut committee.members).try_for_each(Model::restore_empty)
    }
}

/// Checks that predictions are finite: `mean`, `[N]`, and the sum of the model variance, `[N]`, and the noise variance.
///
/// # Errors
/// [`Error::Overflow`] names the first row whose prediction is not finite.
pub fn check_predicted(mean: ArrayView1<f64>, variance: Option<(ArrayView1<f64>, f64)>) -> Result<()> {
    let bad = |v: ArrayView1<f64>, more: f64| v.iter().position(|v| !(v + more).is_finite());
    match bad(mean, 0.0).into_iter().chain(variance.and_then(|(v, noise)| bad(v, noise))).min() {
        Some(row) => Err(beyond(row)),
        None => Ok(()),
    }
}

/// Checks that no log probability, `[N, K]`, is NaN.
fn check_log_probability(log_probability: &Array2<f64>) -> Result<()> {
    match log_probability.outer_iter().position(|row| row.iter().any(|v| v.is_nan())) {
        Some(row) => Err(beyond(row)),
        None => Ok(()),
    }
}

/// Returns the error for a row (0-based) whose prediction is not a finite number.
pub fn beyond(row: usize) -> Error {
    Error::Overflow { what: format!("the prediction of row {row}") }
}

impl Scaling {
    /// Returns the weighted mean and standard deviation (divisor N) of each column of `x`, [N, D]. A constant column
    /// has scale 1.
    pub fn of(x: ArrayView2<f64>, weights: Option<&[f64]>) -> Scaling {
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let total: f64 = (0..x.nrows()).map(weight).sum();
        let mut mean = Vec::new();
        let mut scale = Vec::new();
        for column in x.axis_iter(Axis(1)) {
            // Entries are first divided by the largest one, so that squares neither overflow nor underflow.
            let largest = column.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            let unit = if largest > 0.0 { largest } else { 1.0 };
            let m = column.iter().enumerate().map(|(i, v)| weight(i) * (v / unit)).sum::<f64>() / total;
            let v = column.iter().enumerate().map(|(i, v)| weight(i) * (v / unit - m).powi(2)).sum::<f64>() / total;
            let constant = column.iter().all(|v| *v == column[0]);
            let sd = v.sqrt() * unit;
            mean.push(if constant { column.first().copied().unwrap_or(0.0) } else { m * unit });
            scale.push(if constant || !(sd > 0.0) { 1.0 } else { sd });
        }
        Scaling { mean, scale }
    }

    /// Returns (x - mean) / scale for each row of `x`, [N, D].
    pub fn apply(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let mut out = x.as_standard_layout().into_owned();
        for mut row in out.outer_iter_mut() {
            for (d, v) in row.iter_mut().enumerate() {
                *v = (*v - self.mean[d]) / self.scale[d];
            }
        }
        out
    }
}

/// Checks features `x`, `[N, D]`, of which a kernel takes differences.
///
/// # Errors
/// Returns an error for the first entry that is not finite, or that is too large to be subtracted from another one.
pub fn check_features(what: &'static str, x: ArrayView2<f64>) -> Result<()> {
    check_finite(what, x, 0..x.ncols())?;
    match x.indexed_iter().find(|(_, v)| v.abs() > LARGEST_FEATURE) {
        Some(((row, column), value)) => {
            Err(Error::Overflow { what: format!("a distance between {what} (row {row}, column {column} is {value:e})") })
        }
        None => Ok(()),
    }
}

/// Checks the features of sparse rows, of which a kernel takes differences. Each must be finite and small enough to be
/// subtracted.
pub fn check_sparse(what: &'static str, x: &SparseRows) -> Result<()> {
    for (row, entries) in x.iter().enumerate() {
        for (column, value) in entries.iter() {
            if !value.is_finite() {
                return Err(Error::NotFinite { what, row, column, value });
            }
            if value.abs() > LARGEST_FEATURE {
                let place = format!("a distance between {what} (row {row}, column {column} is {value:e})");
                return Err(Error::Overflow { what: place });
            }
        }
    }
    Ok(())
}

/// Checks that the entries of `x`, `[N, D]`, in the listed columns are finite. The error names the first that is not.
pub fn check_finite(what: &'static str, x: ArrayView2<f64>, columns: impl Iterator<Item = usize> + Clone) -> Result<()> {
    for (row, values) in x.outer_iter().enumerate() {
        if let Some(column) = columns.clone().find(|c| !values[*c].is_finite()) {
            return Err(Error::NotFinite { what, row, column, value: values[column] });
        }
    }
    Ok(())
}
