//! Kernels in fits: their values are those of the crate `relvec-predict`, their gradients, (M20), are here.

mod gradient;
mod slope;
mod weighted;

pub use relvec_predict::internal::kernel::{
    DataScale, Gamma, GammaRule, Kernel, Laplacian, Linear, LinearSpline, Matern32, Matern52, Poly, RationalQuadratic, Rbf,
    Sigmoid,
};
pub(crate) use relvec_predict::internal::kernel::{Fill, Form, SparseCentres};
pub(crate) use relvec_predict::internal::vector;

pub use self::gradient::KernelGradient;
pub(crate) use self::gradient::{GradientSums, SymmetricSums};
