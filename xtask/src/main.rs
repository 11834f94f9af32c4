//! `cargo xtask VERB`: the list of all verbs. CI calls only these.

mod checks;
mod cross;
mod package;
mod pages;
mod peers;
mod python;
mod r;
mod venv;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

type Result<T = ()> = std::result::Result<T, String>;

/// A verb: its name, its description, and its function.
type Verb = (&'static str, &'static str, fn() -> Result);

const VERBS: &[Verb] = &[
    ("fmt", "format all code", format),
    ("lint", "clippy on every target, warnings denied", checks::lint),
    ("test", "everything CI checks: the parts that `cargo xtask test PART ...` runs alone", || checks::test(&[])),
    ("py", "build the Python package into target/venv and check it: style, types, tests", python::check),
    ("doc", "build the site of the documentation, Python, command and Rust (target/site), warnings denied", doc),
    ("vendor", "download onnxruntime-web with npm, for the page of the site that predicts in a browser", python::vendor),
    ("bench", "run the benchmarks: times in Rust, memory in Python", bench),
];

const FUZZ: &str = "fuzz [SECONDS]";
const PEERS: &str = "bench peers [--quick | --again] [--data FOLDER] [--list] [CASE ...]";
const CLASSES: &str = "bench classes [--data FOLDER] [--limit SECONDS] [--sets SET ...]";
const SVM: &str = "bench svm [--data FOLDER] [--rows N] [--sets SET ...]";
const SPARSE: &str = "bench sparse [--rows N] [--rounds N]";
const UNCERTAINTY: &str = "bench uncertainty --data FOLDER [--seeds N] [--sets SET ...]";
const CALIBRATION: &str = "bench calibration --data FOLDER [--splits N] [--sets SET ...]";
const OUTLIERS: &str = "bench outliers --data FOLDER [--draws N]";
const COUNTS: &str = "bench counts --data FOLDER [--draws N]";
const DEFAULTS: &str =
    "bench defaults --data FOLDER [--quick] [--only TABLES] [--sizes NUMBERS] [--draws NUMBER] [--methods METHODS]
        [--big] [--million] [--work FOLDER] [--again] [--summary]";
const ABLATE: &str = "ablate --data FOLDER [--rows N] [--draws N] [--sparsity NATS]";
const EXPORTS: &str = "bench exports";
const ENGINES: &str = "bench engines [--rows N ...] [--engines ENGINE ...]";
const REPRODUCE: &str = "bench reproduce [--data FOLDER] [--quick] [--only EXPERIMENTS] [--out FOLDER]";
const SCALE: &str = "bench scale FOLDER [--seeds N] [--list] [CASE ...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        [name] => VERBS.iter().find(|(verb, ..)| verb == name).map(|(.., run)| run()),
        ["test", rest @ ..] => Some(checks::test(rest)),
        ["fuzz", rest @ ..] => Some(checks::fuzz(rest)),
        ["bench", "peers", rest @ ..] => Some(peers::bench(rest)),
        ["bench", "classes", rest @ ..] => Some(peers::bench_classes(rest)),
        ["bench", "svm", rest @ ..] => Some(python::bench_svm(rest)),
        ["bench", "sparse", rest @ ..] => Some(python::bench_sparse(rest)),
        ["bench", "uncertainty", rest @ ..] => Some(python::bench_uncertainty(rest)),
        ["bench", "calibration", rest @ ..] => Some(python::bench_calibration(rest)),
        ["bench", "outliers", rest @ ..] => Some(python::bench_outliers(rest)),
        ["bench", "counts", rest @ ..] => Some(python::bench_counts(rest)),
        ["bench", "defaults", rest @ ..] => Some(python::bench_defaults(rest)),
        ["ablate", rest @ ..] => Some(python::ablate(rest)),
        ["bench", "exports"] => Some(python::bench_exports()),
        ["bench", "engines", rest @ ..] => Some(python::bench_engines(rest)),
        ["bench", "reproduce", rest @ ..] => Some(python::bench_reproduce(rest)),
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
        println!("    test PART ...");
        checks::PARTS.iter().chain(checks::FURTHER).for_each(|(name, what, _)| println!("           {name:<8} {what}"));
        println!("    {}\n           {}", checks::TABLES, checks::TABLES_HELP);
        println!("    {FUZZ}\n           damaged tables, model files and checkpoints; seconds for each kind (default: 60)");
        println!("    {PEERS}\n           times of fits, also of other packages that are installed; writes docs/benchmarks.md");
        println!("    {CLASSES}\n           more than two classes, compared with fastrvm; writes docs/classes.md");
        println!("    {SVM}\n           support vector machines, compared with LIBSVM; writes docs/svm.md");
        println!(
            "    {SPARSE}\n           support vector machines on sparse rows, compared with scikit-learn; writes docs/sparse.md"
        );
        println!("    {UNCERTAINTY}\n           reliability of error bars; writes docs/uncertainty.md");
        println!("    {CALIBRATION}\n           calibration of class probabilities; writes docs/calibration.md");
        println!("    {OUTLIERS}\n           regression with wrong targets, beside robust learners; writes docs/outliers.md");
        println!("    {COUNTS}\n           regression of counts, beside learners of scikit-learn; writes docs/counts.md");
        println!(
            "    {DEFAULTS}\n           fits without settings, compared with a dense process and other learners; writes docs/defaults.md"
        );
        println!(
            "    {ABLATE}\n           effect of each constant and part of the search on evidence, held-out density and time"
        );
        println!(
            "    {EXPORTS}\n           exported models: agreement, and sizes on processors; prints the tables of docs/export.md"
        );
        println!("    {ENGINES}\n           fits on Dask, Spark and Ray, compared with one process; writes docs/engines.md");
        println!("    {REPRODUCE}\n           experiments of the papers, and their figures beside ours; writes a report");
        println!("    {SCALE}\n           learned kernels and centres on real tables in FOLDER; writes docs/scale.md");
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

fn doc() -> Result {
    rustdoc()?;
    python::doc()
}

fn rustdoc() -> Result {
    run(Command::new("cargo").args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn bench() -> Result {
    cargo("bench --workspace --bench *")?;
    python::bench()
}

fn cargo(arguments: &str) -> Result {
    run(Command::new("cargo").args(arguments.split_whitespace()))
}

/// Runs a command in the root of the workspace, or in the folder set in the command.
fn run(command: &mut Command) -> Result {
    output_of(command.stdout(Stdio::inherit())).map(|_| ())
}

/// Runs a command in the root of the workspace, or in the folder set in the command, and returns its output.
fn output_of(command: &mut Command) -> Result<String> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(|w| w.to_string_lossy()).collect();
    let line = words.join(" ");
    eprintln!("$ {line}");
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| format!("`{line}` did not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("`{line}`: {e}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_have_different_names() {
        for (i, verb) in VERBS.iter().enumerate() {
            assert!(VERBS[..i].iter().all(|other| other.0 != verb.0), "{}", verb.0);
        }
    }
}
