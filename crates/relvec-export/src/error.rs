//! Why a model cannot be exported.

use relvec_predict::Model;

/// The result of an export.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a model cannot be exported, and what to do instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel is a function of the caller, or its values were given.
    #[error(
        "{format}: the kernel of this model is external, and only a program that computes it can predict; fit with a \
         built-in kernel"
    )]
    ExternalKernel {
        /// The requested format.
        format: &'static str,
    },
    /// The model encodes the columns of a table as features.
    #[error(
        "{format}: this model encodes categories or missing cells, which the format cannot contain; fit to features that are \
         numbers, such as those of TableEncoder in Python, and export that model"
    )]
    Encoding {
        /// The requested format.
        format: &'static str,
    },
    /// The healed variance needs the retained training rows, and a linear system for each row.
    #[error(
        "{format}: variance = healed needs a linear system for each row; fit with weight_prior = process, whose variance grows \
         away from the data as well, or with variance = posterior"
    )]
    HealedVariance {
        /// The requested format.
        format: &'static str,
    },
    /// Less than double precision would change predictions too much.
    #[error(
        "{format}: {precision} would change {what} by {change:.1e} of {unit} at the model's own {vectors}; at most {limit} is \
         accepted: use {instead}"
    )]
    Precision {
        /// The requested format.
        format: &'static str,
        /// The requested precision.
        precision: &'static str,
        /// The prediction that changes most.
        what: &'static str,
        /// The change, in `unit`.
        change: f64,
        /// The unit of the change.
        unit: &'static str,
        /// The name of the rows at which predictions were compared.
        vectors: &'static str,
        /// The largest accepted change.
        limit: f64,
        /// The precision to use instead.
        instead: &'static str,
    },
    /// A number of the model is beyond the range of the precision.
    #[error(
        "{format}: a number of this model is beyond the range of the precision: rescale target and features, or use double \
         precision"
    )]
    Range {
        /// The requested format.
        format: &'static str,
    },
    /// The format does not support such a model.
    #[error("{format}: {found} cannot be written; {instead}")]
    Unsupported {
        /// The requested format.
        format: &'static str,
        /// The property of the model that is not supported.
        found: String,
        /// The advice.
        instead: &'static str,
    },
    /// A file of another program cannot be read.
    #[error("{format}, line {line}: {problem}")]
    Text {
        /// The format of the file.
        format: &'static str,
        /// The line, counted from 1.
        line: usize,
        /// The value that was found there, and the expected one.
        problem: String,
    },
    /// The name is not a valid identifier.
    #[error("C: name = {found:?}: expected a letter, then letters, digits and underscores, and no keyword of C or C++")]
    Name {
        /// The name found.
        found: String,
    },
    /// The file would be too large for the format.
    #[error("{format}: the model would take {bytes} bytes; the format holds at most {limit}: fit with fewer vectors")]
    Size {
        /// The requested format.
        format: &'static str,
        /// Bytes needed.
        bytes: usize,
        /// Largest number of bytes that the format supports.
        limit: usize,
    },
    /// The predictions of the model are not finite, or the model is not valid.
    #[error(transparent)]
    Model(#[from] relvec_predict::Error),
}

/// Returns the name of the centres of a model.
pub(crate) fn vectors(model: &Model) -> &'static str {
    match (&model.margins, &model.process) {
        (Some(_), _) => "support vectors",
        (_, Some(_)) => "centres",
        _ => "relevance vectors",
    }
}
