//! Runs the command `relvec` as a user does.

mod bad_arguments;
mod bad_data;
mod bad_models;
mod compare;
mod decisions;
mod demo;
mod files;
mod floors;
mod formats;
mod growth;
mod hostile;
mod library;
mod likelihoods;
mod outputs;
mod reproduce;
mod round_trip;
mod scales;
mod settings;
mod shared_data;
mod stream;
mod support;
mod svm;
mod uncertainty;
