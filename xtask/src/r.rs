//! Tests the R package as R publishes packages: `cargo xtask test r`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Result, output_of, root, run};

/// Folder in which the package is assembled and checked.
const FOLDER: &str = "target/r-package";

/// Folders and files of the repository in the package, with their places there.
const PARTS: &[(&str, &str)] = &[
    ("r/", ""),
    ("Cargo.toml", "src/core/Cargo.toml"),
    ("crates/relvec/Cargo.toml", "src/core/crates/relvec/Cargo.toml"),
    ("crates/relvec/README.md", "src/core/crates/relvec/README.md"),
    ("crates/relvec/benches/", "src/core/crates/relvec/benches/"),
    ("crates/relvec/src/", "src/core/crates/relvec/src/"),
    ("crates/relvec-predict/Cargo.toml", "src/core/crates/relvec-predict/Cargo.toml"),
    ("crates/relvec-predict/README.md", "src/core/crates/relvec-predict/README.md"),
    ("crates/relvec-predict/src/", "src/core/crates/relvec-predict/src/"),
    // The models that every version reads, with the predictions of Python.
    ("crates/relvec/tests/pinned/", "tests/testthat/pinned/"),
];

/// Builds the source package and runs `R CMD check`, with errors and warnings as failures. Without R nothing is
/// checked.
pub fn check() -> Result {
    if Command::new("R").arg("--version").output().is_err() {
        println!(
            "R is missing: skipped (Debian: apt-get install r-base-dev r-cran-jsonlite r-cran-testthat r-cran-rmarkdown r-cran-kernlab)"
        );
        return Ok(());
    }
    let package = put_together()?;
    r_cmd(&["build", "relvec"])?;
    r_cmd(&["check", "--no-manual", &package])?;
    let log = root().join(FOLDER).join("relvec.Rcheck/00check.log");
    let log = fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let status = log.lines().find(|line| line.starts_with("Status: ")).ok_or("R CMD check states no status")?;
    match status.contains("WARNING") || status.contains("ERROR") {
        true => Err(format!("R CMD check: {status}")),
        false => Ok(()),
    }
}

/// Copies the package and its crates into one folder. Returns the name of the built package.
fn put_together() -> Result<String> {
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // Files left by builds are not copied.
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).args(PARTS.iter().map(|(from, _)| from));
    for name in output_of(&mut list)?.lines() {
        let (from, to) = PARTS.iter().find(|(from, _)| name.starts_with(from)).expect("git lists what it was asked for");
        let copy = folder.join("relvec").join(name.replacen(from, to, 1));
        let copied =
            fs::create_dir_all(copy.parent().expect("a file is in a folder")).and_then(|()| fs::copy(root().join(name), &copy));
        copied.map_err(|e| format!("{name}: {e}"))?;
    }
    // In the package the crates are in a folder beside the Rust part.
    change("src/rust/Cargo.toml", "../../../crates/relvec", "../core/crates/relvec")?;
    let version = env!("CARGO_PKG_VERSION");
    change("DESCRIPTION", &format!("\nVersion: {version}\n"), &format!("\nVersion: {version}\n"))?;
    Ok(format!("relvec_{version}.tar.gz"))
}

/// Changes a text that a file of the package must contain.
fn change(file: &str, from: &str, to: &str) -> Result {
    let path: PathBuf = root().join(FOLDER).join("relvec").join(file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
    if !text.contains(from) {
        return Err(format!("r/{file}: expected `{}`", from.trim()));
    }
    fs::write(&path, text.replacen(from, to, 1)).map_err(|e| format!("{file}: {e}"))
}

/// Runs a command of R in the folder of the package.
fn r_cmd(arguments: &[&str]) -> Result {
    let mut command = Command::new("R");
    command.arg("CMD").args(arguments).current_dir(root().join(FOLDER));
    // Dependencies are compiled once, in a common target folder. Suggested packages may be missing.
    run(command.env("CARGO_TARGET_DIR", root().join("target/r")).env("_R_CHECK_FORCE_SUGGESTS_", "false"))
}
