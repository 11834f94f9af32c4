//! Kernels in fits. Their values are those of the crate `relvec-predict`; their gradients, (M20), are here.

mod gradient;
mod slope;
mod weighted;

pub use relvec_predict::internal::kernel::{
    DataScale, Factor, Gamma, GammaRule, Kernel, Laplacian, Linear, LinearSpline, Matern32, Matern52, Periodic, Poly,
    RationalQuadratic, Rbf, Sigmoid, Sum, Term,
};
pub(crate) use relvec_predict::internal::kernel::{Fill, Form, SparseCentres};
pub(crate) use relvec_predict::internal::vector;

pub(crate) use self::gradient::{GradientSums, SymmetricSums};
pub use self::slope::KernelGradient;
