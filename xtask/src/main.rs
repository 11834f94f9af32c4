//! `cargo xtask VERB`: the one list of verbs. CI calls them and nothing else.

mod peers;
mod python;
mod venv;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

type Result<T = ()> = std::result::Result<T, String>;

/// A verb: its name, what it runs, and the function that does so.
type Verb = (&'static str, &'static str, fn() -> Result);

const VERBS: &[Verb] = &[
    ("fmt", "format all code", format),
    ("lint", "clippy on every target, warnings denied", lint),
    ("test", "everything CI checks: formatting, lint, minimum Rust version, change log, tests, doctests, py, doc", test),
    ("py", "build the Python package into target/venv and check it: style, types, tests", python::check),
    ("doc", "build the documentation, Rust (target/doc) and Python (target/docs/python), warnings denied", doc),
    ("bench", "run the benchmarks: times in Rust, memory in Python", bench),
];

const PEERS: &str = "bench peers [--quick | --again] [--data FOLDER] [--list] [CASE ...]";
const CLASSES: &str = "bench classes [--data FOLDER] [--limit SECONDS] [--sets SET ...]";
const SVM: &str = "bench svm [--data FOLDER] [--rows N] [--sets SET ...]";
const UNCERTAINTY: &str = "bench uncertainty --data FOLDER [--seeds N] [--sets SET ...]";
const CALIBRATION: &str = "bench calibration --data FOLDER [--splits N] [--sets SET ...]";
const SCALE: &str = "bench scale FOLDER [--seeds N] [--list] [CASE ...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [name] => VERBS.iter().find(|(verb, ..)| verb == name).map(|(.., run)| run()),
        ["bench", "peers", rest @ ..] => Some(peers::bench(rest)),
        ["bench", "classes", rest @ ..] => Some(peers::bench_classes(rest)),
        ["bench", "svm", rest @ ..] => Some(python::bench_svm(rest)),
        ["bench", "uncertainty", rest @ ..] => Some(python::bench_uncertainty(rest)),
        ["bench", "calibration", rest @ ..] => Some(python::bench_calibration(rest)),
        ["bench", "scale", rest @ ..] => Some(python::bench_scale(rest)),
        _ => None,
    };
    let Some(result) = result else {
        let help = words.first().is_none_or(|word| ["help", "--help", "-h"].contains(word));
        if !help {
            eprintln!("no such verb: {}\n", arguments.join(" "));
        }
        println!("cargo xtask VERB\n");
        VERBS.iter().for_each(|(name, what, _)| println!("    {name:<6} {what}"));
        println!("    {PEERS}\n           beside other packages, all that are installed; writes docs/benchmarks.md");
        println!("    {CLASSES}\n           more than two classes, beside fastrvm; writes docs/classes.md");
        println!("    {SVM}\n           support vector machines beside LIBSVM; writes docs/svm.md");
        println!("    {UNCERTAINTY}\n           whether error bars are true; writes docs/uncertainty.md");
        println!("    {CALIBRATION}\n           how true class probabilities are; writes docs/calibration.md");
        println!("    {SCALE}\n           learnt kernels and centres on real tables in FOLDER; writes docs/scale.md");
        return ExitCode::from(if help { 0 } else { 2 });
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("\ncargo xtask {}: {problem}", words[0]);
            ExitCode::FAILURE
        }
    }
}

fn format() -> Result {
    cargo("fmt --all")?;
    python::format()
}

fn lint() -> Result {
    cargo("clippy --workspace --all-targets -- -D warnings")
}

fn test() -> Result {
    cargo("fmt --all --check")?;
    change_log()?;
    minimum_rust_version()?;
    lint()?;
    cargo("test --workspace")?;
    python::check()?;
    doc()
}

fn doc() -> Result {
    run(Command::new("cargo").args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    python::doc()
}

fn bench() -> Result {
    cargo("bench --workspace --bench *")?;
    python::bench()
}

fn cargo(arguments: &str) -> Result {
    run(Command::new("cargo").args(arguments.split_whitespace()))
}

/// Runs a command in the root of the workspace.
fn run(command: &mut Command) -> Result {
    output_of(command.stdout(Stdio::inherit())).map(|_| ())
}

/// What a command, run in the root of the workspace, prints.
fn output_of(command: &mut Command) -> Result<String> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(|w| w.to_string_lossy()).collect();
    let line = words.join(" ");
    eprintln!("$ {line}");
    let output = command.current_dir(root()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| format!("`{line}` did not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("`{line}`: {e}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// CHANGELOG.md must have a section for what is not released yet.
fn change_log() -> Result {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).map_err(|e| format!("CHANGELOG.md: {e}"))?;
    if text.lines().any(|l| l.trim() == "## [Unreleased]") {
        return Ok(());
    }
    Err("CHANGELOG.md has no section `## [Unreleased]`".into())
}

/// `rust-version` of the workspace must be at least that of every package it is built from. That
/// our own code asks for no more is clippy's affair (`incompatible_msrv`).
fn minimum_rust_version() -> Result {
    let rustc = output_of(Command::new("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).ok_or("`rustc -vV` names no host")?;
    // For this platform alone: what others need has not been downloaded.
    let metadata = output_of(Command::new("cargo").args(["metadata", "--format-version", "1", "--filter-platform", host]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("`cargo metadata`: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("`cargo metadata` lists no packages")?;
    let needs = |package: &Value| package["rust_version"].as_str().and_then(version);
    let ours = packages.iter().find(|p| p["name"] == "relvec").and_then(needs).ok_or("relvec states no rust-version")?;
    let newer: Vec<String> = packages
        .iter()
        .filter(|p| needs(p).is_some_and(|v| v > ours))
        .map(|p| format!("{} {} needs {}", p["name"], p["version"], p["rust_version"]))
        .collect();
    if newer.is_empty() {
        return Ok(());
    }
    Err(format!("rust-version in Cargo.toml is older than that of\n    {}", newer.join("\n    ")))
}

/// `1.89` or `1.89.1` as numbers that compare.
fn version(text: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(text.split('.')) {
        *number = part.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version("1.89") > version("1.9.3"));
        assert_eq!(version("1.89"), version("1.89.0"));
        assert_eq!(version("nightly"), None);
    }

    #[test]
    fn verbs_have_different_names() {
        for (i, verb) in VERBS.iter().enumerate() {
            assert!(VERBS[..i].iter().all(|other| other.0 != verb.0), "{}", verb.0);
        }
    }
}
