//! Relevance vector machines: settings and fits.

mod evaluate;
mod fit;
mod fit_rows;

/// Settings of a fit: parameters, their defaults and checks.
mod settings {
    pub(crate) mod dictionary;
    pub(crate) mod rvm;
    pub(crate) mod scheme;
}

/// The training set: rows, targets and candidates of one fit, in internal units.
mod data {
    pub(crate) mod build;
    pub(crate) mod noise;
    pub(crate) mod training_set;
}

/// Products over the rows: columns of unit norm, their Gram matrix, and likelihood sums.
mod gram {
    pub(crate) mod likelihood_sums;
    pub(crate) mod scaled_problem;
}

/// The posterior of the weights and the evidence at given precisions, and the gains of changes.
mod evidence {
    pub(crate) mod active_factor;
    pub(crate) mod active_posterior;
    pub(crate) mod column_gain;
    pub(crate) mod laplace;
    pub(crate) mod model_assembly;
    pub(crate) mod precision_updates;
    pub(crate) mod solver;
}

/// The search for basis functions and precisions: the iterations, the schemes, and working sets of large dictionaries.
mod search {
    pub(crate) mod driver;
    pub(crate) mod fixed_point;
    pub(crate) mod local_search;
    pub(crate) mod outer_loop;
    pub(crate) mod sequential;
    pub(crate) mod variational;
}

/// Learning of kernels, centres, and the prior of a Gaussian process.
mod learn {
    pub(crate) mod count_fit;
    pub(crate) mod kernel_choice;
    pub(crate) mod label_fit;
    pub(crate) mod laplace_ascent;
    pub(crate) mod learned_centres;
    pub(crate) mod process_prior;
}

/// Fits that consist of several fits to a training set.
mod compose {
    pub(crate) mod binary_models;
    pub(crate) mod cross_validation;
    pub(crate) mod single_fit;
    pub(crate) mod student_t;
}

pub use self::evaluate::{ActionKind, ColumnAction, Evaluation};
pub use self::fit_rows::RowPlan;
pub use self::learn::kernel_choice::LearnedKernel;
pub use self::settings::dictionary::{Centres, Dictionary, DictionaryRule, Landmarks};
pub use self::settings::rvm::{CentreRule, Rvm, Sparsity, SparsityRule, WeightPrior};
pub use self::settings::scheme::{
    Em, Hyperparameters, Hyperpriors, Inference, MacKay, Policy, Search, Sequential, Start, Variational,
};
