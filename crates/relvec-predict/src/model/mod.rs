//! The trained machine: predict, save, load.

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
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};
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
pub use self::stored::rows;

/// Version of the model file that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u64 = 1;
const FORMAT: &str = "relvec-model";
/// Entries of a tile of basis functions (512 KB), which one thread makes and uses while it is in its cache;
/// and most rows of a tile.
const TILE_ENTRIES: usize = 1 << 16;
const TILE_ROWS: usize = 512;
/// Differences of two features up to here are half the largest number at most, and so are finite.
const LARGEST_FEATURE: f64 = f64::MAX / 4.0;
/// What is beyond these is in use.
const WEIGHT_IN_USE: f64 = 1e-3;
const DETERMINED_IN_USE: f64 = 0.5;

/// What every sparse kernel machine is: y(x) = sum_m w_m k(x, c_m) + w_0, once or once for each class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expansion {
    /// The basis functions.
    pub basis: FittedBasis,
    /// Weights w_m in units of the target, [M, C]: C = 1 function for regression and two classes; of several
    /// classes one for each (one-versus-one: for each pair of them).
    #[serde(with = "stored::weights")]
    pub weights: Array2<f64>,
    /// w_0 in units of the target, `[C]`; 0 if the bias was pruned or switched off. Of counts over exposures, in a model with
    /// a bias, the log of a rate of one count for the mean exposure is added; if the bias was pruned, it alone is left.
    #[serde(with = "stored::intercept")]
    pub intercept: Vec<f64>,
}

/// The basis functions that a fit kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FittedBasis {
    /// A kernel at centres.
    Kernel {
        /// The kernel, every parameter a number.
        kernel: Kernel,
        /// Centres c_m, [M, D], after scaling.
        #[serde(with = "stored::rows")]
        centres: Array2<f64>,
    },
    /// A kernel at centres that are sparse rows, of a fit to such rows.
    Sparse {
        /// The kernel, every parameter a number.
        kernel: Kernel,
        /// Centres c_m, [M, D].
        centres: SparseRows,
    },
    /// Columns of a design matrix that the caller makes; `relevance` holds their numbers.
    Given {},
    /// A kernel that the caller computes; `relevance` holds training rows.
    External {
        /// Centres c_m, [M, D]; `None` if the caller gave kernel values only.
        #[serde(with = "stored::optional_rows")]
        centres: Option<Array2<f64>>,
    },
}

/// The weight posterior N(mean, Sigma), and the noise.
///
/// Sigma = diag(scale) inv(L L') diag(scale), over the bias first (if it is in the model), then the
/// basis functions in the order of the weights. Kept apart from `scale` so that no unit of the
/// target takes it out of the range of 64-bit numbers.
///
/// Under the softmax of K classes Sigma is that of K - 1 weights for each basis function, all of the first before
/// all of the second: contrasts of the classes, the mean of classes 0..=r less class r + 1 at unit norm (Helmert's).
/// The weights of the classes are these contrasts' combinations; what is left over, their sum, is 0. Where each class
/// has precisions of its own ([`Model::class_alpha`]), Sigma is that of the weights of the classes themselves, as far
/// as they are in the model, all of the first class before all of the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posterior {
    /// L, lower triangular, row by row: row i has i + 1 entries; [(K - 1) M, (K - 1) M] under the softmax, or as many
    /// as there are weights of classes.
    pub factor: Vec<Vec<f64>>,
    /// One per basis function, > 0, in units of its weight.
    pub scale: Vec<f64>,
    /// Noise variance in squared units of the target, of Student-t noise its squared scale; 0 where that of each row
    /// was given; `None` for classification and counts.
    pub noise_variance: Option<f64>,
    /// Degrees of freedom of Student-t noise; or, where the noise precision has a distribution of its own (the
    /// variational scheme, noise learnt), of the Student-t distribution that the noise has when the precision is
    /// integrated out, 2 c + N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_degrees: Option<f64>,
    /// What predictive variances, of the noise too, are multiplied by, since cross-validation found them too small;
    /// `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_factor: Option<f64>,
    /// Whether its curvature is the mean under itself, not that at the mode: see [`PosteriorRule`].
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub averaged: bool,
    /// Of several outputs: the noise variance of each over that of the first, `[K]`, by which the covariances of its
    /// weights (and their prior variances 1 / alpha) differ from those of the first too, (M61). Everything else here,
    /// and [`Model::alpha`], is that of the first. Empty: one output.
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

/// How features were standardised: (x - mean) / scale, `[D]` each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Subtracted.
    pub mean: Vec<f64>,
    /// Divided by, > 0.
    pub scale: Vec<f64>,
}

/// A trained sparse kernel machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The kind of machine: `"rvm"` or `"svm"`.
    pub machine: String,
    /// The likelihood with its settings; a support vector machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<Likelihood>,
    /// Name of the inference scheme; a support vector machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<String>,
    /// Names of the features, `[D]`; empty if the caller gave none.
    pub features: Vec<String>,
    /// How the columns of a table become the features, if they do not stand in it as they are; `predict` takes the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Name of the target, if the caller gave one.
    pub target: Option<String>,
    /// Names of several targets, `[K]`; empty if the caller gave none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Names of the classes in the order of their numbers; empty for regression.
    pub classes: Vec<Label>,
    /// Shares of the classes among the rows learnt from, by their weights, `[K]`: what the probabilities take for priors. Of
    /// a support vector machine without the weights of classes, of which its sigmoids know nothing. Empty for regression,
    /// for members of a committee, and in files from before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_frequencies: Vec<f64>,
    /// Standardisation of the features, undone by nobody: raw rows go into `predict`.
    pub scaling: Option<Scaling>,
    /// D, the number of columns that `predict` expects.
    pub n_features: usize,
    /// Rows of the training table.
    pub n_rows: usize,
    /// Training rows (0-based) that are centres, or columns of the given design matrix, `[M]`; ascending
    /// (with an external kernel in the order of the caller's columns).
    pub relevance: Vec<usize>,
    /// The expansion.
    pub expansion: Expansion,
    /// Weight precisions alpha_m, `[M]`, in the order of the weights, in inverse squared units of them; under the
    /// softmax each that of the weights of all classes, or the least of those in `class_alpha`. Of a committee none:
    /// its members have them; of a support vector machine, and under a process prior, none (classes included).
    pub alpha: Vec<f64>,
    /// Precision of the bias; `None` if it was pruned (infinite precision) or switched off.
    pub intercept_alpha: Option<f64>,
    /// Under the softmax with a precision for each class: those of the bias (if it is in the model), then of the basis
    /// functions, of each class; `None` where the weight is not in the model. Empty: the classes share them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_alpha: Vec<Vec<Option<f64>>>,
    /// What each feature moves in the kernel, (M37): shares of 1, `[D]`; empty unless the kernel has a gamma for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_relevance: Vec<f64>,
    /// Whether the centres are no training rows: the gradient of the evidence has moved them, and `relevance` counts
    /// those it moved.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub learned_centres: bool,
    /// Whether the fit saw signs that the model interpolates its training rows, see
    /// `Report::interpolation` of the crate `relvec`: its intervals are then too narrow. Files from before they were
    /// looked for have `false`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub interpolates: bool,
    /// The posterior; a committee (its members have theirs), a support vector machine and a classifier from regression on labels
    /// have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posterior: Option<Posterior>,
    /// Log evidence (log marginal likelihood) in nats, all constants included, units of the target; of the
    /// variational scheme the lower bound on it, of a committee the sum of its members'; a support vector machine has
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_evidence: Option<f64>,
    /// How the fit ended.
    pub status: Status,
    /// Iterations done.
    pub iterations: usize,
    /// Classifiers of two classes that decide between more of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committee: Option<Committee>,
    /// What a support vector machine has in place of a posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margins: Option<Margins>,
    /// The variance that predictions have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub variance: Variance,
    /// The process prior of the weights, which then have no precisions of their own: `alpha` is empty, and that of the bias,
    /// whose prior is flat, is 0. The log evidence is that of the process with FITC's diagonal, (M72), which is not to be compared
    /// with that of a model with precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessPrior>,
    /// What a classifier from regression on labels has in place of a posterior. Its log evidence is the log probability of the
    /// classes of left-out rows, (M82), which is not to be compared with that of a model with precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelRegression>,
    /// Training rows that a healed variance needs, if they were to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_rows: Option<KeptRows>,
    /// Sums over the training rows, if they were to be kept: rows can then be added without these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<KeptStatistics>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How many basis functions matter, the bias left out, where weights of no use stay in the model as they do in
/// the variational scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InUse {
    /// Mean weights beyond 1e-3, in units of the target: the rule of Bishop & Tipping (2000).
    pub by_weight: usize,
    /// Weights of which the data say more than their prior, gamma_i > 1/2; it does not depend on any units.
    pub by_data: usize,
}

/// Predictions of a regression model, one per row; or of the latent function of a classifier, or of the log rate of counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// phi'mu, `[N]`, in units of the target.
    pub mean: Array1<f64>,
    /// phi'Sigma phi, `[N]`: variance from not knowing the weights, under a process prior with its residual; like that of the
    /// noise times [`Posterior::variance_factor`], if there is one.
    pub model_variance: Array1<f64>,
    /// Variance of the noise, of Student-t noise its squared scale; 0 for classification, for counts, and where the
    /// noise of each training row was given, for that of a new row is the caller's to add.
    pub noise_variance: f64,
    /// See [`Posterior::noise_degrees`]: the target is then about Student-t with these degrees of freedom, the mean
    /// for location, and the square root of [`Prediction::variance`] for scale, (M32).
    pub noise_degrees: Option<f64>,
}

impl Prediction {
    /// Noise and model variance summed, `[N]`.
    pub fn variance(&self) -> Array1<f64> {
        &self.model_variance + self.noise_variance
    }

    /// Log odds of the second class, from the latent function of a classifier, `[N]`.
    pub fn log_odds(&self, moderation: Moderation) -> Array1<f64> {
        match moderation {
            Moderation::PlugIn => self.mean.clone(),
            Moderation::Posterior => &self.mean / &self.model_variance.mapv(|v| (1.0 + core::f64::consts::PI * v / 8.0).sqrt()),
        }
    }

    /// Class probabilities from the latent function of a classifier, [N, 2], columns in the order of
    /// the classes.
    pub fn probability(&self, moderation: Moderation) -> Array2<f64> {
        let f = self.log_odds(moderation);
        Array2::from_shape_fn((f.len(), 2), |(i, k)| sigmoid(if k == 0 { -f[i] } else { f[i] }))
    }

    /// Log predictive density of targets `t`, `[N]`, in nats: normal, or Student-t by [`Prediction::noise_degrees`].
    pub fn log_density(&self, t: ArrayView1<f64>) -> Array1<f64> {
        let variance = self.variance();
        let square = (&t - &self.mean).mapv(|r| r * r) / &variance;
        let shape = |square: f64| match self.noise_degrees {
            Some(d) => log_student_peak(d) - 0.5 * ((2.0 * PI).ln() + (d + 1.0) * (square / d).ln_1p()),
            None => -0.5 * ((2.0 * PI).ln() + square),
        };
        square.mapv_into(shape) - variance.mapv_into(|v| 0.5 * v.ln())
    }

    /// Square root of [`Prediction::variance`], `[N]`; under Student-t noise a scale, not a standard deviation: see
    /// [`Prediction::deviation`].
    pub fn std(&self) -> Array1<f64> {
        self.variance().mapv(f64::sqrt)
    }
}

impl Prediction {
    /// Standard deviation of a new target under Student-t noise, `[N]`: the noise variance is degrees / (degrees - 2)
    /// of its squared scale, and infinite for 2 degrees or fewer.
    pub fn deviation(&self) -> Array1<f64> {
        self.model_variance.mapv(|v| (v + self.student_variance()).sqrt())
    }

    /// The variance of Student-t noise.
    #[doc(hidden)]
    pub fn student_variance(&self) -> f64 {
        match self.noise_degrees {
            Some(degrees) if degrees > 2.0 => degrees / (degrees - 2.0) * self.noise_variance,
            // Without noise its tails are no matter, however wide.
            Some(_) if self.noise_variance > 0.0 => f64::INFINITY,
            Some(_) => 0.0,
            None => self.noise_variance,
        }
    }
}

/// How class probabilities treat the uncertainty of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moderation {
    /// Averaged over the weight posterior by MacKay's approximation,
    /// sigmoid(m / sqrt(1 + pi v / 8)); within 0.018 of the integral. Of several classes, (M31), p_k is
    /// 1 / sum_l exp(-(m_k - m_l) / sqrt(1 + pi v_kl / 8)), normalised, v_kl the variance of f_k - f_l.
    #[default]
    Posterior,
    /// At the posterior mean: sigmoid(m).
    PlugIn,
}

impl Model {
    /// A `machine` ("rvm" or "svm") that is an expansion in `n_features` features, learnt from `n_rows` rows, and nothing else yet: it
    /// has no names, no scaling, no posterior and no relevance vectors.
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

    /// Mean and variance at the rows of `x`, [N, D] (or [N, P] columns of a given design matrix, of
    /// which only those in the model are read).
    ///
    /// # Errors
    /// Another number of columns than the model's; a value that is not finite; an external kernel; a model
    /// of more than two classes, which has more than one function; a support vector machine, or a classifier from regression on
    /// labels, which have no posterior.
    pub fn predict(&self, x: ArrayView2<f64>) -> Result<Prediction> {
        self.predict_with(x, self.variance)
    }

    /// The mean alone, `[N]`, without the variance, which costs far more; that of the posterior, see [`Variance`].
    ///
    /// # Errors
    /// As [`Model::predict`], but a support vector machine has its one function.
    pub fn predict_mean(&self, x: ArrayView2<f64>) -> Result<Array1<f64>> {
        self.check_single()?;
        Ok(self.function_means(x)?.remove_axis(Axis(1)))
    }

    /// Means of all functions, [N, C].
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

    /// The number of functions, C.
    pub fn outputs(&self) -> usize {
        self.expansion.intercept.len()
    }

    #[doc(hidden)]
    pub fn check_single(&self) -> Result<()> {
        match self.outputs() {
            1 => Ok(()),
            _ if self.has_several_outputs() => {
                Err(Error::Targets(format!("one function of a model of {} outputs: ask for one output of it", self.outputs())))
            }
            _ => Err(Error::Targets("one function of a model of several classes, which has more".into())),
        }
    }

    /// Checks rows to predict, `[N, D]`: D features as the model has, finite where it uses them.
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

    /// Mean and variance from the values of the basis functions in the model, [N, M], without the
    /// bias: for a kernel that the caller computes.
    ///
    /// # Errors
    /// Another number of columns than there are weights; a value that is not finite; a process prior, whose variance needs the
    /// kernel.
    pub fn predict_from_basis(&self, phi: ArrayView2<f64>) -> Result<Prediction> {
        self.check_single()?;
        self.check_basis(phi)?;
        self.refuse_process("basis", "values of basis functions", NEEDS_KERNEL)?;
        self.predict_tiles(phi, |rows, mut out| out.assign(&rows))
    }

    /// This model for rows that are the values of its basis functions, [N, M], without the bias: for a kernel that
    /// the caller computes.
    pub fn on_basis(&self) -> Model {
        self.on_columns_of(&self.relevance)
    }

    /// Returns a copy of the model for a table with a column for each of `all` relevance vectors, its own among them.
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

    /// Rows of a tile.
    #[doc(hidden)]
    pub fn tile_rows(&self) -> usize {
        (TILE_ENTRIES / (self.relevance.len() + 1)).clamp(16, TILE_ROWS)
    }

    /// Predictions of the one function; `make` makes the basis functions of a tile of rows, [B, M], without the bias.
    fn predict_tiles(&self, x: ArrayView2<f64>, make: impl Fn(ArrayView2<f64>, ArrayViewMut2<f64>) + Sync) -> Result<Prediction> {
        let (mean, mut model_variance) = self.moments(x, make)?;
        let mean = mean.remove_axis(Axis(1));
        let (factor, posterior) = (self.variance_factor(), self.posterior()?);
        let noise_variance = factor * posterior.noise_variance.unwrap_or(0.0);
        model_variance *= factor;
        check_predicted(mean.view(), Some((model_variance.view(), noise_variance)))?;
        Ok(Prediction { mean, model_variance, noise_variance, noise_degrees: posterior.noise_degrees })
    }

    /// Means of all functions, [N, C], and the variance of the first by the posterior, `[N]`.
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

    /// Means of a tile of rows, [B, C], from its basis functions without the bias.
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

    /// The kernel, every parameter a number; `None` for a given design matrix or an external kernel.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.expansion.basis {
            FittedBasis::Kernel { kernel, .. } | FittedBasis::Sparse { kernel, .. } => Some(kernel),
            FittedBasis::Given {} | FittedBasis::External { .. } => None,
        }
    }

    /// Noise standard deviation in units of the target; `None` for classification and support vector machines.
    pub fn noise_std(&self) -> Option<f64> {
        self.noise_variance().map(f64::sqrt)
    }

    /// Its square.
    pub fn noise_variance(&self) -> Option<f64> {
        self.posterior.as_ref().and_then(|p| p.noise_variance)
    }

    /// What variances are multiplied by.
    #[doc(hidden)]
    pub fn variance_factor(&self) -> f64 {
        self.posterior.as_ref().and_then(|p| p.variance_factor).unwrap_or(1.0)
    }

    /// Degrees of freedom of the noise, see [`Posterior::noise_degrees`].
    pub fn noise_degrees(&self) -> Option<f64> {
        self.posterior.as_ref().and_then(|p| p.noise_degrees)
    }

    #[doc(hidden)]
    pub fn posterior(&self) -> Result<&Posterior> {
        self.posterior.as_ref().ok_or(Error::NoPosterior)
    }

    /// Posterior covariance of the weights, the bias (if it is in the model) first, [M, M]; under the softmax of
    /// the contrasts, or of the weights of the classes, see [`Posterior`]. Empty where there is no posterior.
    pub fn weight_covariance(&self) -> Array2<f64> {
        let Some(posterior) = &self.posterior else { return Array2::zeros((0, 0)) };
        let scale: Array1<f64> = self.present().concat().into_iter().map(|i| posterior.scale[i]).collect();
        let mut half = Array2::from_diag(&scale);
        linalg::solve_lower(posterior.factor().view(), half.view_mut());
        half.t().dot(&half)
    }

    /// gamma_i = 1 - alpha_i Sigma_ii (M4) of the basis functions, `[M]`, the bias left out: how far the data
    /// determine a weight, from 0 (its prior alone does) to 1. Under a process prior 1 / alpha_i is the prior variance of the
    /// weight. Under the softmax the mean of its weights; of a committee and of a support vector machine none.
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

    /// How many basis functions matter; of a committee how many different ones matter to any of its members.
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

    /// What makes the basis functions at raw rows, [B, M], without the bias.
    #[doc(hidden)]
    pub fn maker(&self) -> Fill<'_> {
        match &self.expansion.basis {
            FittedBasis::Given {} => Box::new(|rows, mut phi| {
                for (mut target, column) in phi.axis_iter_mut(Axis(1)).zip(&self.relevance) {
                    target.assign(&rows.column(*column));
                }
            }),
            // An empty list of centres has lost its width, and there is nothing to fill.
            FittedBasis::Kernel { .. } if self.relevance.is_empty() => Box::new(|_, _| {}),
            FittedBasis::Kernel { kernel, centres } => {
                let fill = kernel.at(centres.view());
                Box::new(move |rows, phi| {
                    let scaled = self.scaling.as_ref().map(|s| s.apply(rows));
                    fill(scaled.as_ref().map_or(rows, |r| r.view()), phi);
                })
            }
            FittedBasis::Sparse { kernel, centres } => {
                let centres = SparseCentres::new(kernel, centres.clone()).expect("check_rows refuses any other kernel");
                Box::new(move |rows, phi| {
                    let scaled = self.scaling.as_ref().map(|s| s.apply(rows));
                    let rows = SparseRows::from_dense(scaled.as_ref().map_or(rows, |r| r.view()));
                    let mut room = vec![];
                    vector::each_row(phi, |i, out| centres.fill(rows.row(i), None, &mut room, out));
                })
            }
            FittedBasis::External { .. } => Box::new(|rows, mut phi| phi.assign(&rows)),
        }
    }

    /// Values of the basis functions at sparse rows `x`, [N, D], without the bias: [N, M]. [`Model::on_basis`] predicts from them.
    ///
    /// ```
    /// # use relvec_predict::{Model, Result, SparseRows, ndarray::Array2};
    /// fn decide(model: &Model, x: &SparseRows) -> Result<Array2<f64>> {
    ///     model.on_basis().decision_function(model.basis_values(x)?.view())
    /// }
    /// ```
    ///
    /// # Errors
    /// Another number of columns than the model's; a value that is not finite; an external kernel.
    pub fn basis_values(&self, x: &SparseRows) -> Result<Array2<f64>> {
        self.check_rows(ArrayView2::from_shape((0, x.ncols()), &[]).expect("no numbers are enough for no rows"))?;
        check_sparse("rows to predict", x)?;
        let mut out = Array2::zeros((x.nrows(), self.relevance.len()));
        let height = self.tile_rows();
        let tiles = out.axis_chunks_iter_mut(Axis(0), height).into_par_iter().enumerate();
        match (&self.expansion.basis, &self.scaling) {
            (FittedBasis::Sparse { kernel, centres }, None) => {
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
        Ok(out)
    }

    /// The model file: JSON with the format version and a checksum.
    pub fn to_json(&self) -> Result<String> {
        let (body, checksum) = self.summed()?;
        Ok(format!(
            "{{\"format\":\"{FORMAT}\",\"format_version\":{FORMAT_VERSION},\"checksum\":\"{checksum}\",\"model\":{body}}}\n"
        ))
    }

    /// The checksum of the model file, eight hexadecimal digits: what says that an exported model is this one.
    pub fn checksum(&self) -> Result<String> {
        Ok(self.summed()?.1)
    }

    /// The model as JSON, and its checksum.
    fn summed(&self) -> Result<(String, String)> {
        let body = serde_json::to_string(self).map_err(|e| Error::ModelFile(e.to_string()))?;
        let checksum = format!("{:08x}", crc32fast::hash(body.as_bytes()));
        Ok((body, checksum))
    }

    /// Reads what [`Model::to_json`] wrote; every number comes back bit for bit.
    ///
    /// # Errors
    /// [`Error::ModelFile`] says where and what: not a model file, a newer version, cut off, altered; or contents that no fit
    /// leaves behind, by their place in the JSON, what was found and what was expected. A model that comes back predicts
    /// finite numbers for finite rows, or says that they leave the range of the numbers.
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
            return Err(fail(format!("this is no model of relvec: the key \"format\" is not \"{FORMAT}\"")));
        }
        match file.get("format_version").and_then(|v| v.as_u64()) {
            Some(FORMAT_VERSION) => {}
            Some(v) => return Err(fail(format!("format version {v}; this program reads version {FORMAT_VERSION}"))),
            None => return Err(fail("the key \"format_version\" is missing or no whole number".into())),
        }
        let body = file.get("model").ok_or_else(|| fail("the key \"model\" is missing".into()))?;
        let mut model: Model = serde_path_to_error::deserialize(body).map_err(|e| match e.path().to_string().as_str() {
            "." => fail(format!("model: {}", e.inner())),
            path => fail(format!("model.{path}: {}", e.inner())),
        })?;
        let again = serde_json::to_string(&model).map_err(|e| fail(e.to_string()))?;
        let checksum = format!("{:08x}", crc32fast::hash(again.as_bytes()));
        if file.get("checksum").and_then(|c| c.as_str()) != Some(checksum.as_str()) {
            return Err(fail("the checksum does not fit the contents: the file was altered after it was written".into()));
        }
        model.check()?;
        if let FittedBasis::Kernel { centres, .. } | FittedBasis::External { centres: Some(centres) } = &mut model.expansion.basis
            && centres.nrows() == 0
        {
            // A list of no rows does not say how long they are.
            *centres = Array2::from_shape_vec((0, model.n_features), vec![]).map_err(|e| fail(e.to_string()))?;
        }
        if model.expansion.weights.nrows() == 0 {
            model.expansion.weights = Array2::zeros((0, model.outputs()));
        }
        Ok(model)
    }
}

/// Refuses predictions that have left the range of numbers: `mean`, `[N]`, and the variance of the model, `[N]`, with that of the
/// noise.
pub fn check_predicted(mean: ArrayView1<f64>, variance: Option<(ArrayView1<f64>, f64)>) -> Result<()> {
    let bad = |v: ArrayView1<f64>, more: f64| v.iter().position(|v| !(v + more).is_finite());
    match bad(mean, 0.0).into_iter().chain(variance.and_then(|(v, noise)| bad(v, noise))).min() {
        Some(row) => Err(beyond(row)),
        None => Ok(()),
    }
}

/// Refuses log probabilities, `[N, K]`, that are NaN.
fn check_log_probability(log_probability: &Array2<f64>) -> Result<()> {
    match log_probability.outer_iter().position(|row| row.iter().any(|v| v.is_nan())) {
        Some(row) => Err(beyond(row)),
        None => Ok(()),
    }
}

/// The error that the prediction of a row, counted from 0, is no number.
pub fn beyond(row: usize) -> Error {
    Error::Overflow { what: format!("the prediction of row {row}") }
}

impl Scaling {
    /// Mean and standard deviation (divisor N) of each column of `x`, [N, D], by weight; 1 for a
    /// constant column.
    pub fn of(x: ArrayView2<f64>, weights: Option<&[f64]>) -> Scaling {
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let total: f64 = (0..x.nrows()).map(weight).sum();
        let mut mean = Vec::new();
        let mut scale = Vec::new();
        for column in x.axis_iter(Axis(1)) {
            // Scaled by the largest entry first, so that squares neither overflow nor vanish.
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

    /// (x - mean) / scale for each row of `x`, [N, D].
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

/// Checks features `x`, `[N, D]`, of which a kernel takes differences: the first entry that is not finite, or too large to be
/// subtracted from another, is an error.
pub fn check_features(what: &'static str, x: ArrayView2<f64>) -> Result<()> {
    check_finite(what, x, 0..x.ncols())?;
    match x.indexed_iter().find(|(_, v)| v.abs() > LARGEST_FEATURE) {
        Some(((row, column), value)) => {
            Err(Error::Overflow { what: format!("a distance between {what} (row {row}, column {column} is {value:e})") })
        }
        None => Ok(()),
    }
}

/// Checks the features of sparse rows, of which a kernel takes differences: finite, and small enough to be subtracted.
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

/// Returns the first entry in the listed columns of `x`, `[N, D]`, that is not finite, as an error.
pub fn check_finite(what: &'static str, x: ArrayView2<f64>, columns: impl Iterator<Item = usize> + Clone) -> Result<()> {
    for (row, values) in x.outer_iter().enumerate() {
        if let Some(column) = columns.clone().find(|c| !values[*c].is_finite()) {
            return Err(Error::NotFinite { what, row, column, value: values[column] });
        }
    }
    Ok(())
}
