//! All tests of the library, as one program: what they share is compiled once, and its tests fill all processors.

mod architecture;
mod averaged_posterior;
mod class_precisions;
mod classes;
mod counts;
mod decisions;
mod degenerate;
mod documents;
mod golden;
mod growth;
mod kernels;
mod known_noise;
mod laws;
mod options;
mod outputs;
mod published;
mod regimes;
mod robust;
mod scales;
mod softmax;
mod statistics;
mod support;
mod svm;
mod uncertainty;
mod validation;
mod variational;
