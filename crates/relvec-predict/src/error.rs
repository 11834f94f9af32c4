//! What can go wrong, with what was found, where, and what was expected.

use crate::prelude::*;

/// The result of a fallible operation of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Everything that can stop a fit, a prediction or the reading of a model.
///
/// Not converging is no error: see [`Status`](crate::Status).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array has the wrong shape.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// Which array.
        what: &'static str,
        /// The shape that was needed.
        expected: String,
        /// The shape that was given.
        found: String,
    },
    /// An array holds NaN or an infinity.
    #[error("{what}: row {row}, column {column} is {value}; every value must be a finite number")]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// 0-based row.
        row: usize,
        /// 0-based column.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// There are too few rows to learn from.
    #[error("training rows of positive weight: found {found}, expected at least {least}")]
    TooFewRows {
        /// Rows of positive weight.
        found: usize,
        /// The least that works.
        least: usize,
    },
    /// The targets do not suit the likelihood.
    #[error("{0}")]
    Targets(String),
    /// A sample weight is negative, no number or too large.
    #[error("sample weight of row {row} is {value:?}; a weight counts as so many equal rows: expected a number from 0 to 2^53")]
    Weight {
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
        /// The values that are allowed.
        expected: String,
    },
    /// A name of a kernel, a likelihood or an inference scheme is not known.
    #[error("unknown {what} `{found}`; known: {}", known.join(", "))]
    UnknownName {
        /// The kind of thing that was named.
        what: &'static str,
        /// The name given.
        found: String,
        /// All names there are.
        known: &'static [&'static str],
    },
    /// More memory would be needed than the limit allows; nothing was allocated.
    #[error("{} needed for {what}; the memory limit is {}", enough(*needed), size(*limit))]
    Memory {
        /// What needs it.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A number left the range of 64-bit floating point.
    #[error("{what} leaves the range of 64-bit numbers; rescale the data")]
    Overflow {
        /// Which number.
        what: String,
    },
    /// A matrix could not be factorised even with the largest jitter allowed.
    #[error("the posterior of {columns} basis functions is singular, even with jitter {jitter:e}")]
    Singular {
        /// Number of active basis functions.
        columns: usize,
        /// The largest jitter tried, relative to the unit-norm diagonal.
        jitter: f64,
    },
    /// A variance was asked of a model without a posterior over its weights.
    #[error(
        "this model has no posterior of its weights (a support vector machine, or classes under weight_prior = process): it predicts \
         without a variance"
    )]
    NoPosterior,
    /// A prior was given to a model that does not know the one it was trained with.
    #[error(
        "a prior needs the class frequencies of the training rows, which this model does not hold (older files do not): train \
         it again"
    )]
    NoClassFrequencies,
    /// The model has no probabilities.
    #[error("this support vector machine was trained without probabilities: train it with probability = true")]
    NoProbability,
    /// A hard margin was asked for where there is none.
    #[error(
        "hard margin (c = infinity): {classes} cannot be separated: a mixture of rows of one is as near as {distance:.1e} to one \
         of the other, in units of the largest row in the kernel's space, after {iterations} iterations; take a finite c, or \
         a narrower kernel"
    )]
    Inseparable {
        /// Which classes cannot be separated.
        classes: String,
        /// Steps that were made.
        iterations: usize,
        /// Distance of the convex hulls of both classes, over the largest norm of a row in the kernel's space.
        distance: f64,
    },
    /// The caller ended the fit by its `Interrupt`; there is no model.
    #[error("interrupted")]
    Interrupted,
    /// The model's kernel is the caller's own: its values are needed, see
    /// [`Model::predict_from_basis`](crate::Model::predict_from_basis).
    #[error("the kernel of this model is external: only a program that computes it can predict")]
    ExternalKernel,
    /// Rows that are read in blocks cannot be had, or are others than before.
    #[error("{0}")]
    Rows(String),
    /// A row of a table does not suit the encoding of a model.
    #[error("{0}")]
    Table(String),
    /// Statistics cannot be merged or read.
    #[error("statistics: {0}")]
    Statistics(String),
    /// A model file cannot be read.
    #[error("model file: {0}")]
    ModelFile(String),
}

/// An error that names a parameter, unless it is `good`.
pub fn require(good: bool, name: impl Fn() -> String, found: impl ToString, expected: &str) -> Result<()> {
    match good {
        true => Ok(()),
        false => Err(Error::Parameter { name: name(), found: found.to_string(), expected: expected.into() }),
    }
}

/// Most threads of a fit: more than machines have processors, and the system takes minutes to start many more.
pub const MOST_THREADS: usize = 1024;

/// An error unless the number of threads is one that can be started.
pub fn require_threads(threads: Option<usize>) -> Result<()> {
    let good = threads.is_none_or(|threads| (1..=MOST_THREADS).contains(&threads));
    let expected = format!("a whole number from 1 to {MOST_THREADS}, or null");
    require(good, || "threads".into(), threads.unwrap_or(0), &expected)
}

/// Bytes as a person reads them, rounded up: the number that is read is enough.
fn enough(bytes: u64) -> String {
    size(if bytes < 1_000_000 { bytes } else { bytes.div_ceil(100_000).saturating_mul(100_000) })
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    if bytes < 1_000_000 { format!("{bytes} bytes") } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}
