//! Reads model files of sparse kernel models, checks them and predicts with them.
//!
//! The crate `relvec` and its command fit relevance vector machines and support vector machines, and write each model
//! as one JSON text. [`Model::from_json`] reads that text. This crate has few dependencies and fits no models.
//!
//! ```
//! use ndarray::array;
//! use relvec_predict::Model;
//!
//! # fn main() -> relvec_predict::Result<()> {
//! // y(x) = 2 exp(-0.5 x^2) + 1, with the posterior of its two weights.
//! let text = r#"{"format":"relvec-model","format_version":1,"checksum":"65d23bd7","model":{"machine":"rvm","likelihood":
//!     {"gaussian":{"noise_variance":null}},"inference":"search","features":["x"],"target":"y","classes":[],"scaling":null,
//!     "n_features":1,"n_rows":50,"relevance":[17],"expansion":{"basis":{"kernel":{"kernel":{"rbf":{"gamma":0.5}},"centres":
//!     [[0.0]]}},"weights":[2.0],"intercept":1.0},"alpha":[0.25],"intercept_alpha":1.0,"posterior":{"factor":[[10.0],
//!     [3.0,5.0]],"scale":[1.0,1.0],"noise_variance":0.04},"log_evidence":-12.5,"status":"converged","iterations":9}}"#;
//! let model = Model::from_json(text)?;
//! let prediction = model.predict(array![[0.0], [100.0]].view())?;
//! assert_eq!(prediction.mean.to_vec(), [3.0, 1.0]);
//! assert!(prediction.std().iter().all(|std| *std > 0.2));
//! # Ok(())
//! # }
//! ```
//!
//! Without the default feature `std` the crate needs only `core` and `alloc`. It then reads the same files, predicts in
//! the calling thread, and takes exponentials and logarithms from the crate `libm`. Its predictions agree with those of
//! `std` to 1e-13.
//!
//! Models of several classes have [`Model::predict_probability`], all regression models [`Model::predict_interval`],
//! counts [`Prediction::counts`], and support vector machines [`Model::decision_function`]. Every error is an [`Error`]
//! that names what was found, where, and what was expected.

#![no_std]
// With the standard library, the functions of numbers in `prelude` are unused. The lint for unused imports is on
// without it only.
#![cfg_attr(any(feature = "std", test), allow(unused_imports))]

#[macro_use]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod error;
mod kernel;
mod label;
mod likelihood;
mod linalg;
mod model;
mod multi_class;
mod parallel;
mod prelude;
mod registry;
mod sparse;
mod special;
mod status;
mod vector;

#[doc(hidden)]
pub mod internal;

pub use error::{Error, Result};
pub use kernel::{
    DataScale, Factor, Gamma, GammaRule, Kernel, Laplacian, Linear, LinearSpline, Matern32, Matern52, Periodic, Poly,
    RationalQuadratic, Rbf, Sigmoid, Sum, Term,
};
pub use label::Label;
pub use likelihood::{Bernoulli, Gaussian, Likelihood, Poisson, Softmax, StudentT};
pub use model::{
    ClassFunctions, Committee, Counts, Decision, Decisions, EncodedCell, EncodedColumn, Encoding, Expansion, FORMAT_VERSION,
    FittedBasis, InUse, KeptOutput, KeptRows, KeptStatistics, LabelRegression, Margins, Missing, Model, Moderation, Posterior,
    PosteriorRule, Prediction, ProcessPrior, RawCell, Scaling, StoredRows, Variance,
};
pub use multi_class::MultiClass;
pub use ndarray;
pub use sparse::{SparseRow, SparseRows};
pub use status::Status;
