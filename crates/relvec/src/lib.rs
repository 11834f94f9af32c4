//! Sparse kernel machines: relevance vector machines for regression and classification.
//!
//! A sparse kernel machine is an expansion y(x) = sum_m w_m k(x, c_m) + w_0; fitting decides which
//! few centres c_m stay. [`Rvm`] holds the parameters, [`Rvm::fit`] learns a [`Model`] and says in a
//! [`Report`] how it went.

mod blocks;
mod canonical;
mod design;
mod error;
mod kernel;
mod label;
mod likelihood;
mod linalg;
mod memory;
mod model;
mod mutual;
mod quadratic;
mod registry;
mod report;
mod rvm;
mod special;
mod statistics;
mod sums;
mod svm;
mod targets;

pub use blocks::Blocks;
pub use design::Basis;
pub use error::{Error, MOST_THREADS, Result};
pub use kernel::{
    DataScale, Gamma, GammaRule, Kernel, Laplacian, Linear, LinearSpline, Matern32, Matern52, Poly, RationalQuadratic, Rbf,
    Sigmoid,
};
pub use label::Label;
pub use likelihood::{Bernoulli, Gaussian, Likelihood, Poisson, Softmax, StudentT};
pub use linalg::thread_pool;
pub use model::{
    ClassFunctions, Committee, Counts, Decision, Decisions, Draws, Expansion, FORMAT_VERSION, FittedBasis, InUse, KeptOutput,
    KeptRows, KeptStatistics, LabelRegression, LeaveOneOut, Margins, Model, Moderation, Posterior, PosteriorRule, Prediction,
    ProcessPrior, Scaling, Variance,
};
pub use report::{
    Actions, CentreSearch, Certificate, HeldOutScores, Interpolation, Interrupt, KernelSearch, KernelTrial, Observer,
    PrecisionPosterior, ProcessFit, ProcessTrial, Progress, Repairs, Report, SmallWeights, SparsityTrial, Status, TracePoint,
    Validation, silent,
};
pub use rvm::{
    ActionKind, CentreRule, Centres, ColumnAction, Dictionary, DictionaryRule, Em, Evaluation, Hyperparameters, Hyperpriors,
    Inference, Landmarks, LearnedKernel, MacKay, Policy, Rvm, Search, Sequential, Sparsity, SparsityRule, Start, Variational,
    WeightPrior,
};
pub use statistics::Statistics;
pub use svm::{
    CSvc, ClassWeights, EpsilonSvr, Formulation, NuSvc, NuSvr, Probabilities, Svm, SvmFunction, SvmObserver, SvmProgress,
    SvmReport,
};
pub use targets::{ClassPrecisions, MultiClass, Targets};
