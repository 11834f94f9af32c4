//! Writes models of relvec in the formats of other programs.
//!
//! [`to_onnx`] writes a graph of standard operators that predicts means and standard deviations, or labels and
//! probabilities, in any ONNX runtime. [`to_c`] writes one C header without dependencies, for programs and processors
//! without a runtime. [`to_libsvm`] writes support vector machines in LIBSVM's format, and [`from_libsvm`] reads
//! LIBSVM's model files.
//!
//! ```no_run
//! use relvec_export::{OnnxOptions, to_onnx};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = relvec_predict::Model::from_json(&std::fs::read_to_string("model.json")?)?;
//! std::fs::write("model.onnx", to_onnx(&model, &OnnxOptions::default())?)?;
//! # Ok(())
//! # }
//! ```

mod c;
mod error;
mod examples;
mod libsvm;
mod machine;
mod normal_form;
mod onnx;
mod single;

pub use c::{COptions, CPrecision, to_c};
pub use error::{Error, Result};
pub use libsvm::{from_libsvm, libsvm_self_test, to_libsvm};
pub use onnx::{OnnxOptions, OnnxPrecision, to_onnx};
