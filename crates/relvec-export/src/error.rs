//! Why a model cannot be exported.

use relvec_predict::Model;

/// The result of an export.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a model cannot be exported, and what to do instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel is a function of the caller's, or its values were given.
    #[error(
        "{format}: the kernel of this model is external, and only a program that computes it can predict; fit with a \
         built-in kernel"
    )]
    ExternalKernel {
        /// The format asked for.
        format: &'static str,
    },
    /// The model file says how the columns of a table become features.
    #[error(
        "{format}: this model takes rows of a raw table, with categories or missing cells, which the format cannot hold; fit to \
         features that are numbers, such as those of TableEncoder in Python, and export that model"
    )]
    Encoding {
        /// The format asked for.
        format: &'static str,
    },
    /// The variance of each row needs the kept training rows, and a linear system for each.
    #[error(
        "{format}: variance = healed needs a linear system for each row; fit with weight_prior = process, whose variance grows \
         away from the data as well, or with variance = posterior"
    )]
    HealedVariance {
        /// The format asked for.
        format: &'static str,
    },
    /// Less than double precision would change predictions too much.
    #[error(
        "{format}: {precision} would change {what} by {change:.1e} of {unit} at the model's own {vectors}; at most {limit} is \
         accepted: take {instead}"
    )]
    Precision {
        /// The format asked for.
        format: &'static str,
        /// The precision asked for.
        precision: &'static str,
        /// The prediction that changes most.
        what: &'static str,
        /// By how much, in `unit`.
        change: f64,
        /// What the change is measured in.
        unit: &'static str,
        /// The rows that were tried.
        vectors: &'static str,
        /// The largest change that is accepted.
        limit: f64,
        /// Another precision.
        instead: &'static str,
    },
    /// A number of the model is beyond the range of the precision.
    #[error(
        "{format}: a number of this model is beyond the range of the precision: rescale target and features, or take double \
         precision"
    )]
    Range {
        /// The format asked for.
        format: &'static str,
    },
    /// The format cannot hold such a model.
    #[error("{format}: {found} cannot be written; {instead}")]
    Unsupported {
        /// The format asked for.
        format: &'static str,
        /// What the model has.
        found: String,
        /// What to do.
        instead: &'static str,
    },
    /// A file of another program cannot be read.
    #[error("{format}, line {line}: {problem}")]
    Text {
        /// The format of the file.
        format: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong there, and what was expected.
        problem: String,
    },
    /// A name that no program can have.
    #[error("C: name = {found:?}: expected a letter, then letters, digits and underscores, and no word of the language")]
    Name {
        /// The name found.
        found: String,
    },
    /// The file would be too large for the format.
    #[error("{format}: the model would take {bytes} bytes; the format holds at most {limit}: fit with fewer vectors")]
    Size {
        /// The format asked for.
        format: &'static str,
        /// Bytes needed.
        bytes: usize,
        /// Bytes that the format can hold.
        limit: usize,
    },
    /// The model predicts no finite numbers, or is no valid model.
    #[error(transparent)]
    Model(#[from] relvec_predict::Error),
}

/// What the rows are called that a model is an expansion in.
pub(crate) fn vectors(model: &Model) -> &'static str {
    match (&model.margins, &model.process) {
        (Some(_), _) => "support vectors",
        (_, Some(_)) => "centres",
        _ => "relevance vectors",
    }
}
