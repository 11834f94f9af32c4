//! The commands of README.md, docs/command.md and docs/export.md run as written there, and print what is shown below them.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block of a document: its language and its text.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

/// The fenced blocks of a document, in order.
fn blocks(document: &str) -> Vec<Block<'_>> {
    let fences: Vec<&str> = document.split("\n```").collect();
    let inside = fences.iter().skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n')).map(|(language, text)| Block { language, text }).collect()
}

/// Runs the `sh` blocks of a document in one folder, except those that install something, and compares what each prints with the
/// `text` block that follows it. Returns the folder and how many outputs were compared.
fn run(document: &str, name: &str) -> (PathBuf, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{document}: {e}"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder removed");
    }
    fs::create_dir_all(&folder).expect("a folder to work in");

    let blocks = blocks(&text);
    let installs = |block: &Block| block.text.lines().any(|line| line.starts_with("pip ") || line.starts_with("cargo "));
    let mut compared = 0;
    for (i, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "sh" && !installs(block)) {
        let printed = output(block.text, &folder);
        if let Some(shown) = blocks.get(i + 1).filter(|next| next.language == "text") {
            if let Err(line) = agrees(shown.text, &printed) {
                panic!("{document} shows\n    {line}\nwhich the commands above it do not print there:\n{printed}");
            }
            compared += 1;
        }
    }
    (folder, compared)
}

/// What a script prints on both streams.
fn output(script: &str, folder: &Path) -> String {
    let command = Path::new(env!("CARGO_BIN_EXE_relvec")).parent().expect("the folder of the command");
    let path = std::env::join_paths(
        std::iter::once(command.to_path_buf()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("sh")
        .args(["-euc", &format!("exec 2>&1\n{script}")])
        .current_dir(folder)
        .env("PATH", path.expect("a search path"))
        .env_remove("COLUMNS")
        .output()
        .expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{printed}");
    printed
}

/// Whether lines are printed as shown. A shown line `...` stands for any number of lines. Otherwise the first line that is not
/// printed is the error.
fn agrees<'a>(shown: &'a str, printed: &str) -> Result<(), &'a str> {
    let mut rest = printed.lines();
    let mut skip = false;
    for line in shown.lines() {
        if line == "..." {
            skip = true;
            continue;
        }
        let found = if skip { rest.any(|other| same(line, other)) } else { rest.next().is_some_and(|other| same(line, other)) };
        if !found {
            return Err(line);
        }
        skip = false;
    }
    if skip || rest.next().is_none() { Ok(()) } else { Err("(the end)") }
}

/// Whether two lines have the same words, but for times, and for the last digits of numbers that are printed in full.
fn same(a: &str, b: &str) -> bool {
    /// Numbers of more characters than this are printed in full; screens have at most 4 significant digits.
    const IN_FULL: usize = 10;
    /// Relative difference of such numbers between processors, at most. Fits add in the order of the vector unit and end
    /// at a tolerance.
    const ROUNDING: f64 = 1e-5;
    let words = |line: &str| -> Vec<String> {
        let line = match line.rfind(" in ") {
            Some(time) if line.ends_with(" s") => &line[..time],
            _ => line,
        };
        line.split([' ', ',']).filter(|word| !word.is_empty()).map(String::from).collect()
    };
    let close = |a: &String, b: &String| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if a.len() > IN_FULL => (x - y).abs() <= ROUNDING * x.abs(),
        _ => a == b,
    };
    let (a, b) = (words(a), words(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| close(a, b))
}

#[test]
fn the_readme_shows_what_its_commands_print() {
    let (folder, compared) = run("README.md", "readme");
    assert_eq!(compared, 1);
    let predictions = fs::read_to_string(folder.join("predictions.csv")).expect("predictions.csv");
    assert!(predictions.starts_with("prediction,std,lower,upper\n"), "{predictions}");
    assert_eq!(predictions.lines().count(), 101);
}

#[test]
fn the_page_of_the_command_shows_what_its_commands_print() {
    let (_, compared) = run("docs/command.md", "command");
    assert!(compared >= 5, "{compared}");
}

#[test]
fn the_page_on_exports_shows_what_its_commands_print() {
    let (folder, _) = run("docs/export.md", "export");
    assert!(["sinc.onnx", "means.onnx", "kinds.libsvm", "again.json"].iter().all(|name| folder.join(name).exists()));
}

#[test]
fn a_shown_line_that_is_not_printed_is_found() {
    let printed = "fit converged in 0.03 s\nkernel rbf, gamma 2.3000000000001\nnoise 0.1\n";
    assert_eq!(agrees("fit converged in 2 s\nkernel rbf, gamma 2.3000000000002\nnoise 0.1\n", printed), Ok(()));
    assert_eq!(agrees("...\nnoise 0.1\n", printed), Ok(()));
    assert_eq!(agrees("...\nnoise 0.2\n", printed), Err("noise 0.2"));
    assert_eq!(agrees("fit converged in 2 s\nkernel rbf, gamma 2.3\n...\n", printed), Err("kernel rbf, gamma 2.3"));
    assert_eq!(agrees("fit converged in 2 s\n", printed), Err("(the end)"));
}
