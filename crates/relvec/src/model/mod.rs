//! Functions of a model that need more than its file: draws, held-out training rows, and the averaged posterior that a
//! fit ends with.

mod averaged;
mod draws;
mod fitted;
mod leave_one_out;
mod process_left_out;
mod residual_draws;
mod row_weights;

pub(crate) use relvec_predict::internal::model::{
    NoiseSums, Place, beyond, check_features, check_finite, check_predicted, check_sparse, rows,
};
pub use relvec_predict::{
    ClassFunctions, Committee, Counts, Decision, Decisions, EncodedCell, EncodedColumn, Encoding, Expansion, FORMAT_VERSION,
    FittedBasis, InUse, KeptOutput, KeptRows, KeptStatistics, LabelRegression, Margins, Missing, Model, Moderation, Posterior,
    PosteriorRule, Prediction, ProcessPrior, RawCell, Scaling, StoredRows, Variance,
};

pub(crate) use self::averaged::{Averaging, FittedRows, MOST_EXPECTED};
pub use self::draws::Draws;
pub use self::fitted::FittedModel;
pub use self::leave_one_out::LeaveOneOut;
pub(crate) use self::row_weights::{row_weights, squared_distances};
