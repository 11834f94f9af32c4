//! The papers' experiments: a table, a report and figures, and what is said where something is not there.

use std::fs;

use super::support::{Folder, Run};

/// The cells of the lines of the report that begin with this machine and quantity.
fn cells(report: &str, machine: &str, quantity: &str) -> Vec<String> {
    let start = format!("| {machine} | {quantity} |");
    let line = report.lines().find(|l| l.starts_with(&start)).unwrap_or_else(|| panic!("no `{start}` in\n{report}"));
    line.split('|').map(|c| c.trim().to_string()).collect()
}

fn report(folder: &Folder, out: &str) -> String {
    folder.read(&format!("{out}/report.md"))
}

/// Every figure that the report shows is there, as SVG and PNG; their number.
fn figures(folder: &Folder, out: &str) -> usize {
    let report = report(folder, out);
    let names: Vec<&str> = report.split("](").skip(1).filter_map(|rest| rest.split(".svg)").next()).collect();
    for name in &names {
        assert!(folder.read(&format!("{out}/{name}.svg")).contains("<svg"), "{name}");
        let png = fs::read(folder.path(&format!("{out}/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{name}");
    }
    names.len()
}

#[test]
fn textbook_examples_are_as_by_hand() {
    let folder = Folder::new();
    let run: Run = folder.ok("reproduce --quick --only textbook --out here");
    assert!(run.stdout.contains("three points") && run.stdout.contains("exclusive or"), "{}", run.stdout);
    let report = report(&folder, "here");
    let exact = [
        ("SVM, three points", "w1", 0.5),
        ("SVM, three points", "w2", 0.5),
        ("SVM, three points", "b", -2.0),
        ("SVM, three points", "margin", 2f64.sqrt()),
        ("SVM, three points", "support vectors", 2.0),
        ("SVM, exclusive or", "multiplier", (1.0 - (-2f64).exp()).powi(-2)),
        ("SVM, exclusive or", "b", 0.0),
        ("SVM, exclusive or", "errors of 4", 0.0),
    ];
    for (machine, quantity, expected) in exact {
        let cells = cells(&report, machine, quantity);
        let ours: f64 = cells[4].parse().unwrap();
        assert!((ours - expected).abs() < 1e-3, "{machine}, {quantity}: {ours}");
        assert_eq!(cells[7], "yes", "{machine}, {quantity}");
    }
    for cost in ["0.1", "1", "100", "infinity"] {
        for gamma in ["0.1", "1", "10"] {
            cells(&report, &format!("SVM, C {cost}, gamma {gamma}"), "error, %");
        }
    }
    assert_eq!(figures(&folder, "here"), 4);
}

#[test]
fn sinc_by_both_kinds_of_inference() {
    let folder = Folder::new();
    folder.ok("reproduce --quick --only sinc,sinc50 --out here");
    let report = report(&folder, "here");
    assert_eq!(cells(&report, "RVM, no noise", "kernels")[7], "yes");
    assert_eq!(cells(&report, "RVM, no noise", "largest error")[7], "yes");
    for machine in ["RVM", "RVM, variational"] {
        let cells = cells(&report, machine, "error (root mean square)");
        assert_eq!((cells[3].as_str(), cells[6].as_str()), ("0.0494", "5"), "{machine}");
        assert!((cells[4].parse::<f64>().unwrap() - 0.0494).abs() < 0.02, "{machine}: {}", cells[4]);
    }
    assert_eq!(figures(&folder, "here"), 4);
    // The same whatever the number of threads.
    folder.ok("reproduce --quick --only sinc,sinc50 --out there --threads 1");
    assert_eq!(self::report(&folder, "there"), report);
}

#[test]
fn tables_that_are_not_there_are_told_missing() {
    let folder = Folder::with("readme.txt", "no table");
    let run = folder.ok("reproduce --quick --data . --only pima,ripley,usps --out here");
    let report = report(&folder, "here");
    assert!(run.stdout.contains("missing: pima_train.csv, pima_test.csv"), "{}", run.stdout);
    assert!(report.contains("Missing: ripley_synth_train.csv, ripley_synth_test.csv"), "{report}");
    assert!(report.contains("Left out by --quick."), "{report}");
    assert!(!report.contains("| RVM"), "{report}");
}

/// A table that cannot be read keeps nothing else from being done.
#[test]
fn one_that_fails_does_not_stop_the_others() {
    let folder = Folder::with("pima_train.csv", "glu,target\n1,\n").add("pima_test.csv", "glu,target\n1,0\n");
    folder.ok("reproduce --quick --data . --only pima,textbook --out here");
    let report = report(&folder, "here");
    assert!(report.contains("Failed: ") && report.contains("column `target`"), "{report}");
    assert_eq!(cells(&report, "SVM, three points", "margin")[7], "yes");
}

#[test]
fn wrong_arguments() {
    let folder = Folder::new();
    folder.fails(2, "reproduce --only sinc,cosc", &["cosc", "sinc50"]);
    folder.fails(1, "reproduce --data nowhere --only pima --out .", &["nowhere"]);
}
