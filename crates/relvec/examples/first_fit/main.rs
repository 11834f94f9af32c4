//! The Rust example of README.md: a fit without settings, and a prediction with its standard deviation.

include!("readme.rs");
