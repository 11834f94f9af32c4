//! Benchmarks with other packages, in a separate virtual environment.

use std::fs;

use crate::venv::Venv;
use crate::{Result, root};

const VENV: Venv = Venv { folder: "target/peers/venv", tools: &["maturin>=1.9.4,<2"] };
/// List of the packages, one pinned version per line.
const PEERS: &str = "python/benchmarks/peers.txt";

/// Measures times, memory and errors in comparison with other packages.
pub fn bench(arguments: &[&str]) -> Result {
    run("python/benchmarks/peers.py", arguments)
}

/// Measures errors and losses for more than two classes.
pub fn bench_classes(arguments: &[&str]) -> Result {
    run("python/benchmarks/several_classes.py", arguments)
}

/// Installs the other packages if possible, and relvec in release mode, and passes the arguments on.
fn run(program: &str, arguments: &[&str]) -> Result {
    VENV.ready()?;
    let peers = fs::read_to_string(root().join(PEERS)).map_err(|e| format!("{PEERS}: {e}"))?;
    for peer in peers.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        // Every one is optional: the tables say which is missing.
        if let Err(problem) = VENV.pip(&[peer]) {
            eprintln!("left out: {problem}");
        }
    }
    VENV.install_package("release", "target/peers/wheels", "")?;
    VENV.python(&[&[program], arguments].concat())
}
