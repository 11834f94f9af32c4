//! The checks of a change, in parts. `cargo xtask test` runs the parts of CI and prints the minutes of each.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::{Result, cargo, cross, doc, output_of, package, python, r, root, run, rustdoc};

/// A part: its name, its description, and its function.
type Part = (&'static str, &'static str, fn() -> Result);

/// The parts that CI checks. Together they take at most 20 minutes from a fresh clone on two cores.
pub const PARTS: &[Part] = &[
    ("style", "formatting, change log, minimum Rust version, clippy", style),
    ("rust", "tests of the crates, doctests, the README's commands; a few seconds of fuzzing", rust),
    ("py", "the Python package: style, types, tests", python::check),
    ("doc", "documentation of both languages, its examples", doc),
];

/// Parts that CI runs as separate jobs.
pub const FURTHER: &[Part] = &[
    ("slow", "tests of half a minute and more", slow),
    ("browser", "the site in Chromium, on a wide screen and on a phone", browser),
    ("recipes", "recipes of the documentation that need large programs: a web service, Spark, MLflow", python::check_recipes),
    ("sklearn-svm", "scikit-learn's own tests of support vector machines, with those of this package", python::check_sklearn_svm),
    ("package", "what is published: crates, wheel and source distribution, their pages, the workflows", package::check),
    ("cross", "exported C headers and predictions without the standard library, on emulated processors", cross::check),
    ("r", "the R package, by R CMD check; needs R 4.2 or later, and is skipped where R is missing", r::check),
    ("engines", "fits on Dask, Spark and Ray, which it installs; Spark needs Java 17 or later", python::check_engines),
];

pub const TABLES: &str = "test tables FOLDER";
pub const TABLES_HELP: &str = "tests on real tables that are not in the repository";

/// Modules of tests that need tables or compilers for other processors, and a test that only writes a corpus. All other
/// ignored tests are slow.
const TESTS_ON_TABLES: &str = "real_tables::";
pub const TESTS_ON_PROCESSORS: &str = "on_processors::";
const WRITES_A_CORPUS: &str = "the_corpus_is_written";

/// Runs the named parts, or all parts of CI, one after the other until one fails.
pub fn test(names: &[&str]) -> Result {
    if let ["tables", folder] = names {
        return tables(folder);
    }
    let known = || PARTS.iter().chain(FURTHER);
    let parts: Vec<&Part> = match names {
        [] => PARTS.iter().collect(),
        _ => names
            .iter()
            .map(|name| {
                known().find(|part| part.0 == *name).ok_or_else(|| {
                    let list: Vec<&str> = known().map(|part| part.0).collect();
                    format!("no part `{name}`: expected {}, or `{TABLES}`", list.join(", "))
                })
            })
            .collect::<Result<_>>()?,
    };
    let mut minutes = vec![];
    let mut result = Ok(());
    for (name, _, check) in parts {
        let began = Instant::now();
        result = check();
        minutes.push(format!(
            "{name:<8} {:5.1}{}",
            began.elapsed().as_secs_f64() / 60.0,
            if result.is_ok() { "" } else { "  failed" }
        ));
        if result.is_err() {
            break;
        }
    }
    println!("\nminutes of each part\n{}", minutes.join("\n"));
    result
}

fn style() -> Result {
    cargo("fmt --all --check")?;
    change_log()?;
    minimum_rust_version()?;
    lint()
}

pub fn lint() -> Result {
    cargo("clippy --workspace --all-targets -- -D warnings")?;
    // Without the standard library, names that exist only there are found.
    cargo("clippy -p relvec-predict --no-default-features --all-targets -- -D warnings")
}

fn rust() -> Result {
    // With the extension module, although it has no tests: its features of dependencies are then those of the build of the
    // package, which would compile the core again.
    cargo("test --workspace --no-fail-fast")
}

fn slow() -> Result {
    let skipped = format!("--skip {TESTS_ON_TABLES} --skip {TESTS_ON_PROCESSORS} --skip {WRITES_A_CORPUS}");
    cargo(&format!("test --workspace -- --ignored {skipped}"))?;
    python::check_slow()
}

fn browser() -> Result {
    rustdoc()?;
    python::check_browser()
}

fn tables(folder: &str) -> Result {
    let folder = fs::canonicalize(folder).map_err(|e| format!("{folder}: {e}"))?;
    let mut command = Command::new("cargo");
    command.args(["test", "-p", "relvec", "-p", "relvec-cli", "--", "--ignored", TESTS_ON_TABLES]);
    run(command.env("RELVEC_DATA", folder))
}

/// Runs each fuzz target for the given seconds.
pub fn fuzz(arguments: &[&str]) -> Result {
    let seconds = match arguments {
        [] => "60",
        [seconds] if seconds.parse::<u32>().is_ok_and(|s| s > 0) => seconds,
        _ => return Err(format!("fuzz {}: expected a number of seconds", arguments.join(" "))),
    };
    let mut command = Command::new("cargo");
    command.args(["test", "-p", "relvec-cli", "--test", "fuzz_tables", "--test", "fuzz_models", "--", "--nocapture"]);
    run(command.env("RELVEC_FUZZ_SECONDS", seconds))
}

/// Checks that CHANGELOG.md has a section for unreleased changes.
fn change_log() -> Result {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).map_err(|e| format!("CHANGELOG.md: {e}"))?;
    if text.lines().any(|l| l.trim() == "## [Unreleased]") {
        return Ok(());
    }
    Err("CHANGELOG.md has no section `## [Unreleased]`".into())
}

/// Checks that `rust-version` of the workspace is at least that of every dependency. Clippy checks our own code
/// (`incompatible_msrv`).
fn minimum_rust_version() -> Result {
    let rustc = output_of(Command::new("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).ok_or("`rustc -vV` names no host")?;
    // Only for this platform, since dependencies of other platforms have not been downloaded.
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

/// Returns the numbers of a version such as `1.89` or `1.89.1`, for comparison.
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
}
