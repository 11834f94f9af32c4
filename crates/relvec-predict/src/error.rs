//! Errors. Each names what was found, where, and what was expected.

use crate::prelude::*;

/// The result of a fallible operation of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Everything that can stop a fit, a prediction or the reading of a model.
///
/// A fit that does not converge is not an error: see [`Status`](crate::Status).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array has the wrong shape.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// Name of the array.
        what: &'static str,
        /// The required shape.
        expected: String,
        /// The given shape.
        found: String,
    },
    /// An array contains NaN or an infinity.
    #[error("{what}: row {row}, column {column} is {value}; every value must be a finite number")]
    NotFinite {
        /// Name of the array.
        what: &'static str,
        /// 0-based row.
        row: usize,
        /// 0-based column.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// There are too few training rows.
    #[error("training rows of positive weight: found {found}, expected at least {least}")]
    TooFewRows {
        /// Number of rows with a positive weight.
        found: usize,
        /// Smallest number of rows that suffices.
        least: usize,
    },
    /// The targets do not suit the likelihood.
    #[error("{0}")]
    Targets(String),
    /// A sample weight is negative, not a number or too large.
    #[error("sample weight of row {row} is {value:?}: expected a number from 0 to 2^53, since a weight w counts as w equal rows")]
    Weight {
        /// 0-based row.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// A target is no count.
    #[error("row {row} has the target {value}; counts are whole numbers, zero or more")]
    Count {
        /// 0-based row.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// A parameter is out of its range.
    #[error("{name} = {found}: expected {expected}")]
    Parameter {
        /// The name of the parameter, as in the settings.
        name: String,
        /// Its value.
        found: String,
        /// The allowed values.
        expected: String,
    },
    /// A name of a kernel, a likelihood or an inference scheme is not known.
    #[error("unknown {what} `{found}`; known: {}", known.join(", "))]
    UnknownName {
        /// The kind of thing that was named.
        what: &'static str,
        /// The given name.
        found: String,
        /// All known names.
        known: &'static [&'static str],
    },
    /// More memory is needed than the limit allows; nothing was allocated.
    #[error("{} needed for {what}; the memory limit is {}", enough(*needed), size(*limit))]
    Memory {
        /// The purpose of the memory.
        what: String,
        /// Number of bytes needed.
        needed: u64,
        /// Number of bytes allowed.
        limit: u64,
    },
    /// A number left the range of 64-bit floating point.
    #[error("{what} leaves the range of 64-bit numbers; rescale the data")]
    Overflow {
        /// The number that overflows.
        what: String,
    },
    /// A matrix could not be factorised even with the largest allowed jitter.
    #[error("the posterior of {columns} basis functions is singular, even with jitter {jitter:e}")]
    Singular {
        /// Number of active basis functions.
        columns: usize,
        /// The largest jitter that was tried, relative to the unit-norm diagonal.
        jitter: f64,
    },
    /// A variance was requested of a model without a weight posterior.
    #[error(
        "this model has no posterior of its weights (a support vector machine, or classes under weight_prior = process), so that \
         it predicts without a variance"
    )]
    NoPosterior,
    /// A prior was given to a model without the class frequencies of its training rows.
    #[error(
        "a prior needs the class frequencies of the training rows, which this model does not have (files of older versions lack \
         them): train it again"
    )]
    NoClassFrequencies,
    /// The model predicts no probabilities.
    #[error("this support vector machine was trained without probabilities: train it with probability = true")]
    NoProbability,
    /// A hard margin was requested for classes that cannot be separated.
    #[error(
        "hard margin (c = infinity): {classes} cannot be separated: after {iterations} iterations the convex hulls of their rows \
         are at most {distance:.1e} apart, relative to the largest row in the kernel's feature space; set a finite c, or use \
         a narrower kernel"
    )]
    Inseparable {
        /// The classes that cannot be separated.
        classes: String,
        /// Number of iterations.
        iterations: usize,
        /// Distance between the convex hulls of both classes, divided by the largest norm of a row in the kernel's
        /// feature space.
        distance: f64,
    },
    /// The caller stopped the fit with its `Interrupt`; there is no model.
    #[error("interrupted")]
    Interrupted,
    /// The caller computes the kernel of the model, and predictions need its values: see
    /// [`Model::predict_from_basis`](crate::Model::predict_from_basis).
    #[error("the kernel of this model is external: only a program that computes the kernel can predict")]
    ExternalKernel,
    /// Rows that are read in blocks are not available, or differ from those of an earlier pass.
    #[error("{0}")]
    Rows(String),
    /// A row of a table does not match the encoding of a model.
    #[error("{0}")]
    Table(String),
    /// Statistics cannot be merged or read.
    #[error("statistics: {0}")]
    Statistics(String),
    /// A model file cannot be read.
    #[error("model file: {0}")]
    ModelFile(String),
}

/// Returns an error that names a parameter, unless `good` is true.
pub fn require(good: bool, name: impl Fn() -> String, found: impl ToString, expected: &str) -> Result<()> {
    match good {
        true => Ok(()),
        false => Err(Error::Parameter { name: name(), found: found.to_string(), expected: expected.into() }),
    }
}

/// Largest number of threads of a fit. It is more than machines have processors, and starting many more takes minutes.
pub const MOST_THREADS: usize = 1024;

/// Returns an error unless this number of threads can be started.
pub fn require_threads(threads: Option<usize>) -> Result<()> {
    let good = threads.is_none_or(|threads| (1..=MOST_THREADS).contains(&threads));
    let expected = format!("a whole number from 1 to {MOST_THREADS}, or null");
    require(good, || "threads".into(), threads.unwrap_or(0), &expected)
}

/// Formats a number of bytes, rounded up, so that the printed number suffices.
fn enough(bytes: u64) -> String {
    size(if bytes < 1_000_000 { bytes } else { bytes.div_ceil(100_000).saturating_mul(100_000) })
}

/// Formats a number of bytes.
fn size(bytes: u64) -> String {
    if bytes < 1_000_000 { format!("{bytes} bytes") } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}
