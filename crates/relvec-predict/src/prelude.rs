//! What every file sees without the standard library as well: text, lists, and the functions of a number.

pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::string::{String, ToString};
pub(crate) use alloc::vec::Vec;
/// exp, ln, sqrt and the others of `f64`, from the crate libm: with the standard library they are its own.
#[cfg(not(feature = "std"))]
pub(crate) use num_traits::Float;
