//! Relevance vector machines: parameters and the loop.

mod evaluate;
mod fit;
mod fit_row_sums;
mod fit_rows;
mod fit_sums;
mod learned;

/// What a user asks for: parameters, their defaults and checks.
mod settings {
    pub(crate) mod check;
    pub(crate) mod dictionary;
    pub(crate) mod inference;
    pub(crate) mod policy;
    pub(crate) mod presets;
    pub(crate) mod rules;
    pub(crate) mod rvm;
    pub(crate) mod scheme;
    pub(crate) mod schemes;
    pub(crate) mod search;
    pub(crate) mod sparsity;
}

/// The training set: rows, targets and candidates of one fit, in units of its own.
mod data {
    pub(crate) mod blocks;
    pub(crate) mod budget;
    pub(crate) mod build;
    pub(crate) mod candidates;
    pub(crate) mod factors;
    pub(crate) mod keep;
    pub(crate) mod landmarks;
    pub(crate) mod noise;
    pub(crate) mod row_blocks;
    pub(crate) mod table;
    pub(crate) mod units;
    pub(crate) mod variants;
}

/// Products over the rows: columns of unit norm, their Gram matrix, sums of the likelihood.
mod gram {
    pub(crate) mod problem;
    pub(crate) mod slopes;
}

/// The posterior of the weights and the evidence at given precisions, and what changing these gains.
mod evidence {
    pub(crate) mod batch;
    pub(crate) mod empty;
    pub(crate) mod evaluation;
    pub(crate) mod factor;
    pub(crate) mod finish;
    pub(crate) mod fitted;
    pub(crate) mod gain;
    pub(crate) mod laplace;
    pub(crate) mod lbfgs;
    pub(crate) mod multinomial;
    pub(crate) mod newton;
    pub(crate) mod sensitivity;
    pub(crate) mod solution;
    pub(crate) mod workspace;
}

/// Which basis functions and precisions: the loop, the schemes, and working sets of large dictionaries.
mod search {
    pub(crate) mod by_class;
    pub(crate) mod delete;
    pub(crate) mod grow;
    pub(crate) mod in_time;
    pub(crate) mod parts;
    pub(crate) mod path;
    pub(crate) mod reestimation;
    pub(crate) mod run;
    pub(crate) mod running;
    pub(crate) mod score;
    pub(crate) mod sequential;
    pub(crate) mod settle;
    pub(crate) mod start;
    pub(crate) mod variational;
    pub(crate) mod watch;
}

/// What a fit learns beside precisions: the kernel, the centres, and the prior of a Gaussian process.
mod learn {
    pub(crate) mod all_rows;
    pub(crate) mod choice;
    pub(crate) mod dense;
    pub(crate) mod fitc;
    pub(crate) mod fitc_kernel;
    pub(crate) mod frame;
    pub(crate) mod kernel;
    pub(crate) mod label_choice;
    pub(crate) mod label_fit;
    pub(crate) mod label_kernel;
    pub(crate) mod label_model;
    pub(crate) mod label_rows;
    pub(crate) mod label_sums;
    pub(crate) mod labels;
    pub(crate) mod link;
    pub(crate) mod many;
    pub(crate) mod many_labels;
    pub(crate) mod moved;
    pub(crate) mod parameters;
    pub(crate) mod pivots;
    pub(crate) mod process;
    pub(crate) mod query;
    pub(crate) mod rows;
    pub(crate) mod shared;
}

/// Fits that are made of fits: functions of a training set.
mod compose {
    pub(crate) mod committee;
    pub(crate) mod interpolation;
    pub(crate) mod one;
    pub(crate) mod robust;
    pub(crate) mod rows;
    pub(crate) mod validation;
}

pub use self::evidence::evaluation::{ActionKind, ColumnAction, Evaluation};
pub use self::fit_rows::RowPlan;
pub use self::learn::query::{Answer, Query, RowSource, SampledRows, Survey};
pub use self::learned::LearnedKernel;
pub use self::settings::dictionary::{Centres, Dictionary, DictionaryRule, Landmarks};
pub use self::settings::inference::Inference;
pub use self::settings::policy::Policy;
pub use self::settings::rules::CentreRule;
pub use self::settings::rules::WeightPrior;
pub use self::settings::rvm::Rvm;
pub use self::settings::scheme::Hyperparameters;
pub use self::settings::scheme::{Hyperpriors, Start};
pub use self::settings::schemes::Sequential;
pub use self::settings::schemes::Variational;
pub use self::settings::schemes::{Em, MacKay};
pub use self::settings::search::Search;
pub use self::settings::sparsity::{Sparsity, SparsityRule};
