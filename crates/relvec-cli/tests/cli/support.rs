//! A folder of files to run the command in, and small tables.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder that goes away with the test, and the command run inside it.
pub struct Folder(TempDir);

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn with(name: &str, contents: impl AsRef<[u8]>) -> Folder {
        Folder::new().add(name, contents)
    }

    pub fn add(self, name: &str, contents: impl AsRef<[u8]>) -> Folder {
        fs::write(self.path(name), contents).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of the files, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs `relvec` with the words of `line` as arguments.
    pub fn run(&self, line: &str) -> Run {
        self.run_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn run_args(&self, args: &[&str]) -> Run {
        run_in(self.0.path(), args)
    }

    /// A run that must end well.
    #[track_caller]
    pub fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "relvec {line}\n{run:?}");
        run
    }

    /// `relvec fit` with the settings of the papers, which must end well: it does not depend on the defaults.
    #[track_caller]
    pub fn fit(&self, line: &str) -> Run {
        self.ok(&format!("fit {line} --preset tipping2001"))
    }

    /// A run that must fail with that exit code and one message that holds all the fragments, and must
    /// leave no file behind.
    #[track_caller]
    pub fn fails(&self, code: i32, line: &str, fragments: &[&str]) {
        let before = self.names();
        let run = self.run(line);
        assert_eq!(run.code, code, "relvec {line}\n{run:?}");
        assert_eq!(run.stdout, "", "relvec {line}");
        let messages = run.stderr.lines().filter(|l| l.starts_with("error:")).count();
        assert_eq!(messages, 1, "relvec {line}\n{}", run.stderr);
        assert!(!run.stderr.contains("panicked") && !run.stderr.contains("backtrace"), "{}", run.stderr);
        for fragment in fragments {
            assert!(run.stderr.contains(fragment), "relvec {line}\nwithout `{fragment}`: {}", run.stderr);
        }
        assert_eq!(self.names(), before, "relvec {line} left a file behind");
    }
}

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let output = Command::cargo_bin("relvec").unwrap().current_dir(folder).args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The CSV on stdout: header and rows.
    pub fn csv(&self) -> (Vec<String>, Vec<Vec<String>>) {
        parse_csv(&self.stdout)
    }
}

pub fn parse_csv(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().iter().map(String::from).collect();
    let rows = reader.records().map(|r| r.unwrap().iter().map(String::from).collect()).collect();
    (header, rows)
}

/// One column of a parsed CSV as numbers.
pub fn numbers(rows: &[Vec<String>], column: usize) -> Vec<f64> {
    rows.iter().map(|r| r[column].parse().unwrap()).collect()
}

/// Rows of three classes around three points; the last column `kind` is `names[class]`.
pub fn three_classes(rows: usize, names: [&str; 3]) -> String {
    let centres = [(0.0, 0.0), (2.0, 0.5), (0.5, 2.0)];
    let line = |i: usize| {
        let (a, b) = centres[i % 3];
        format!("{},{},{}\n", a + 0.9 * noise(3 * i), b + 0.9 * noise(3 * i + 1), names[i % 3])
    };
    format!("a,b,kind\n{}", (0..rows).map(line).collect::<String>())
}

/// Noise without a random number generator, about uniform in [-1, 1].
pub fn noise(i: usize) -> f64 {
    2.0 * ((i as f64 * 12.9898).sin() * 43758.5453).rem_euclid(1.0) - 1.0
}

/// Rows (a, b, y) of a smooth function of two features with a little noise.
pub fn regression_rows(n: usize) -> Vec<[f64; 3]> {
    (0..n)
        .map(|i| {
            let (a, b) = (noise(3 * i) * 3.0, noise(3 * i + 1) * 50.0);
            [a, b, a.sin() * 2.0 + b / 25.0 + 0.1 * noise(3 * i + 2)]
        })
        .collect()
}

/// Those rows as a table with that separator.
pub fn regression_table(n: usize, separator: &str) -> String {
    let mut text = ["a", "b", "y"].join(separator) + "\n";
    for row in regression_rows(n) {
        text += &(row.map(|v| v.to_string()).join(separator) + "\n");
    }
    text
}

/// Two classes, "yes" right of a wavy line and "no" left of it, with a few errors.
pub fn class_table(n: usize) -> String {
    let mut text = "u,v,kind\n".to_string();
    for i in 0..n {
        let (u, v) = (noise(3 * i), noise(3 * i + 1));
        let kind = if u + 0.5 * (3.0 * v).sin() + 0.3 * noise(3 * i + 2) > 0.0 { "yes" } else { "no" };
        text += &format!("{u},{v},{kind}\n");
    }
    text
}

/// The core crate's folder of golden reference values.
pub fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../relvec/tests/golden")
}

/// The folder `RELVEC_DATA` of tables that are not ours to redistribute, for the tests that are ignored without it.
pub fn tables() -> PathBuf {
    std::env::var_os("RELVEC_DATA").expect("RELVEC_DATA names no folder: run `cargo xtask test tables FOLDER`").into()
}
