//! Sparse kernel models: relevance vector machines and support vector machines for regression and classification.
//!
//! A sparse kernel model is a function y(x) = sum_m w_m k(x, c_m) + w_0 with few centres c_m, which the fit selects.
//! [`Rvm`] contains the parameters. [`Rvm::fit`] learns a [`Model`] and returns it with a [`Report`] on the fit.

mod blocks;
mod canonical;
mod design;
mod dictionary_evidence;
mod isometry;
mod kernel;
mod lbfgs;
mod likelihood;
mod linalg;
mod medoids;
mod memory;
mod model;
mod newton;
mod process;
mod quadratic;
mod query;
mod report;
mod rvm;
mod statistics;
mod sums;
mod svm;
mod targets;

// Files of this crate import these modules by these paths.
use relvec_predict::internal as registry;
use relvec_predict::internal::{error, sparse, special};

pub use blocks::Blocks;
pub use design::Basis;
/// Arrays of rows, targets and results.
pub use ndarray;

#[doc(inline)]
pub use error::{Error, MOST_THREADS, Result};
#[doc(inline)]
pub use kernel::{
    DataScale, Factor, Gamma, GammaRule, Kernel, KernelGradient, Laplacian, Linear, LinearSpline, Matern32, Matern52, Periodic,
    Poly, RationalQuadratic, Rbf, Sigmoid, Sum, Term,
};
#[doc(inline)]
pub use likelihood::{Bernoulli, Gaussian, Likelihood, Poisson, Softmax, StudentT};
pub use linalg::thread_pool;
#[doc(inline)]
pub use model::{
    ClassFunctions, Committee, Counts, Decision, Decisions, Draws, EncodedCell, EncodedColumn, Encoding, Expansion,
    FORMAT_VERSION, FittedBasis, FittedModel, InUse, KeptOutput, KeptRows, KeptStatistics, LabelRegression, LeaveOneOut, Margins,
    Missing, Model, Moderation, Posterior, PosteriorRule, Prediction, ProcessPrior, RawCell, Scaling, StoredRows, Variance,
};
pub use query::{Answer, Query, RowSource, SampledRows, Survey};
#[doc(inline)]
pub use relvec_predict::Label;
#[doc(inline)]
pub use report::{
    Actions, Adjustments, CentreSearch, Certificate, HeldOutScores, Interpolation, Interrupt, KernelSearch, KernelTrial,
    Observer, PrecisionPosterior, ProcessFit, ProcessTrial, Progress, Report, SmallWeights, SparsityTrial, Status, TracePoint,
    Validation, silent,
};
pub use rvm::{
    ActionKind, CentreRule, Centres, ColumnAction, Dictionary, DictionaryRule, Em, Evaluation, Hyperparameters, Hyperpriors,
    Inference, Landmarks, LearnedKernel, MacKay, Policy, RowPlan, Rvm, Search, Sequential, Sparsity, SparsityRule, Start,
    Variational, WeightPrior,
};
#[doc(inline)]
pub use sparse::{SparseRow, SparseRows};
pub use statistics::Statistics;
pub use svm::{
    CSvc, ClassWeights, EpsilonSvr, Formulation, NuSvc, NuSvr, Probabilities, Svm, SvmFunction, SvmObserver, SvmProgress,
    SvmReport,
};
#[doc(inline)]
pub use targets::{MultiClass, Targets};

/// The example of README.md compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
