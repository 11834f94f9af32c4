//! Benchmarks beside other packages, in a virtual environment of their own.

use std::fs;

use crate::venv::Venv;
use crate::{Result, root};

const VENV: Venv = Venv { folder: "target/peers/venv", tools: &["maturin>=1.9.4,<2"] };
/// The packages, one pinned version a line.
const PEERS: &str = "python/benchmarks/peers.txt";

/// Times, memory and errors beside other packages.
pub fn bench(arguments: &[&str]) -> Result {
    run("python/benchmarks/peers.py", arguments)
}

/// Errors and losses of more than two classes.
pub fn bench_classes(arguments: &[&str]) -> Result {
    run("python/benchmarks/several_classes.py", arguments)
}

/// Installs the peers that can be installed and relvec in release, and hands the arguments on.
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
