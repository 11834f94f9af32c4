//! The main job on real tables, which are not in the repository: `fit`, `predict`, `inspect`.
//! `cargo xtask test tables FOLDER` runs these tests.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use flate2::read::MultiGzDecoder;

use super::support::{Folder, numbers, parse_csv, tables};

/// A folder with copies of those tables.
fn folder_with(files: &[&str]) -> Folder {
    let data = tables();
    files.iter().fold(Folder::new(), |folder, file| folder.add(file, fs::read(data.join(file)).unwrap()))
}

/// Share of rows whose `target` differs from the prediction.
fn error_rate(folder: &Folder, model: &str, table: &str, target: &str) -> f64 {
    let predicted = folder.ok(&format!("predict {model} {table}")).csv().1;
    let (header, rows) = parse_csv(&folder.read(table));
    let column = header.iter().position(|c| c == target).unwrap();
    let wrong = predicted.iter().zip(&rows).filter(|(p, row)| p[0] != row[column]).count();
    wrong as f64 / rows.len() as f64
}

/// Root mean squared error of predictions against a column of numbers.
fn rmse(predicted: &[Vec<String>], truth: &[f64]) -> f64 {
    let errors = numbers(predicted, 0).iter().zip(truth).map(|(p, t)| (p - t).powi(2)).sum::<f64>();
    (errors / truth.len() as f64).sqrt()
}

#[test]
#[ignore = "needs tables that are not in the repository: cargo xtask test tables FOLDER"]
fn boston_housing_converges_with_small_errors() {
    let folder = folder_with(&["boston_housing.csv"]);
    folder.fit("boston_housing.csv --target target --drop black -o m.json");
    let summary = folder.ok("inspect m.json --json").json();
    assert_eq!(summary["n_rows"], 506);
    assert_eq!(summary["features"].as_array().unwrap().len(), 12);
    assert_eq!(summary["status"], "converged");
    let predicted = folder.ok("predict m.json boston_housing.csv").csv().1;
    let (header, rows) = parse_csv(&folder.read("boston_housing.csv"));
    let truth = numbers(&rows, header.iter().position(|c| c == "target").unwrap());
    let inside = predicted.iter().zip(&truth).filter(|(p, t)| {
        let (lower, upper): (f64, f64) = (p[2].parse().unwrap(), p[3].parse().unwrap());
        (lower..=upper).contains(*t)
    });
    // On its own rows: well below the target's standard deviation of 9.2, and honest intervals.
    assert!(rmse(&predicted, &truth) < 4.0, "{}", rmse(&predicted, &truth));
    assert!(inside.count() > 455, "fewer than 90 % in the 95 % intervals");
}

#[test]
#[ignore = "needs tables that are not in the repository: cargo xtask test tables FOLDER"]
fn pima_has_few_vectors_and_a_low_error() {
    let folder = folder_with(&["pima_train.csv", "pima_test.csv"]);
    let fit = folder.fit("pima_train.csv --target target --set kernel.rbf.gamma=0.02 -o m.json --json");
    assert!(fit.stderr.contains("Classification of `target`"), "{}", fit.stderr);
    assert!(fit.json()["n_vectors"].as_u64().unwrap() <= 10, "{}", fit.stdout);
    let error = error_rate(&folder, "m.json", "pima_test.csv", "target");
    assert!(error <= 68.0 / 332.0, "{error}");
}

#[test]
#[ignore = "needs tables that are not in the repository: cargo xtask test tables FOLDER"]
fn ripley_has_few_vectors_and_a_low_error() {
    let folder = folder_with(&["ripley_synth_train.csv", "ripley_synth_test.csv"]);
    let fit = folder.fit("ripley_synth_train.csv --target target --no-standardize --set kernel.rbf.gamma=4 -o m.json --json");
    assert!(fit.json()["n_vectors"].as_u64().unwrap() <= 8, "{}", fit.stdout);
    let error = error_rate(&folder, "m.json", "ripley_synth_test.csv", "target");
    assert!(error <= 0.097, "{error}");
}

#[test]
#[ignore = "needs tables that are not in the repository: cargo xtask test tables FOLDER"]
fn kin40k_first_rows() {
    let data = tables();
    let reader = BufReader::new(MultiGzDecoder::new(File::open(data.join("kin40k.csv.gz")).unwrap()));
    let lines: Vec<String> = reader.lines().take(5501).map(|l| l.unwrap() + "\n").collect();
    let folder = Folder::with("train.csv", lines[..5001].concat()).add("test.csv", lines[..1].concat() + &lines[5001..].concat());
    // A short search: how good it can get is no question of the command line.
    let fit = folder.fit("train.csv --target target -o m.json --set max_iterations=40 --json");
    assert_eq!(fit.json()["n_rows"], 5000);
    let predicted = folder.ok("predict m.json test.csv").csv().1;
    let (header, rows) = parse_csv(&folder.read("test.csv"));
    let truth = numbers(&rows, header.iter().position(|c| c == "target").unwrap());
    // The target is standardised: 1 would be no prediction at all.
    assert!(rmse(&predicted, &truth) < 0.6, "{}", rmse(&predicted, &truth));
}
