//! Items that every file uses and that the standard library would provide: strings, lists, and functions of a number.

pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::string::{String, ToString};
pub(crate) use alloc::vec::Vec;
/// exp, ln, sqrt and other methods of `f64` from the crate libm. With the standard library, `f64` has them itself.
#[cfg(not(feature = "std"))]
pub(crate) use num_traits::Float;
