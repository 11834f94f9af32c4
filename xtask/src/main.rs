//! `cargo xtask VERB`: the one list of verbs.

fn main() {}
