//! The command line of relvec.
