//! The command `relvec`.

fn main() {}
