//! Internal items of this crate that the crate `relvec` needs. They are not part of the public API and may change with
//! every version.

pub use crate::registry::{registry, rules};

/// See `error.rs`.
pub mod error {
    pub use crate::error::{Error, MOST_THREADS, Result, require, require_threads};
}

/// See `label.rs`.
pub mod label {
    pub use crate::label::Label;
}

/// See `special.rs`.
pub mod special {
    pub use crate::special::{lgamma_rise, log_rise, log_student_peak};
}

/// See `sparse.rs`.
pub mod sparse {
    pub use crate::sparse::{SparseRow, SparseRows};
}

/// See `vector.rs`.
pub mod vector {
    pub use crate::vector::{
        AddRowSquares, AddSquares, AddSums, Decay, Dot, Largest, Pointwise, RowSums, Scale, Sweep, decay, each_row, exp, log_1p,
        map, map_with, rows, run,
    };
}

/// See `kernel/`.
pub mod kernel {
    pub use crate::kernel::distance::{Absolute, Square, feature_major, squared_distances};
    pub use crate::kernel::inner::Products;
    pub use crate::kernel::sparse::SparseCentres;
    pub use crate::kernel::{
        DataScale, Factor, Fill, Form, Gamma, GammaRule, Kernel, Laplacian, Linear, LinearSpline, Matern32, Matern52, Periodic,
        Poly, RationalQuadratic, Rbf, Sigmoid, Sum, Term, matern32, matern52,
    };
}

/// See `likelihood/`.
pub mod likelihood {
    pub use crate::likelihood::{
        Bernoulli, Contrasts, Gaussian, Likelihood, Poisson, Softmax, StudentT, View, check_counts, difference_variance,
        moderate, normalise, sigmoid,
    };
}

/// See `model/`.
pub mod model {
    pub use crate::model::{
        CLASSIFIERS, NoiseSums, Place, REGRESSORS, Residual, SCHEMES, beyond, check_features, check_finite, check_predicted,
        check_sparse, rows,
    };
}
