//! Runs the command `relvec` as a user does.

mod bad_arguments;
mod bad_data;
mod bad_models;
mod compare;
mod decisions;
mod demo;
mod files;
mod floors;
mod folds;
mod formats;
mod growth;
mod hostile;
mod hostile_tables;
mod library;
mod likelihoods;
mod outputs;
mod real_tables;
mod reproduce;
mod round_trip;
mod scales;
mod settings;
mod stream;
mod support;
mod svm;
mod target_forms;
mod uncertainty;
