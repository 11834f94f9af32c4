//! Folds of tables with repeated rows, and weights that are too small, on the command line.

use serde_json::Value;

use super::support::Folder;

/// Two binary features that decide the class with an error of 0.26, and a weight that makes all rows count as one.
fn bits(rows: usize) -> Vec<String> {
    let row = |i: usize| {
        let (a, b) = (i & 1, i >> 1 & 1);
        let class = if ((i * 7919) % 1000) < if a == b { 260 } else { 740 } { "yes" } else { "no" };
        format!("{a},{b},{class},{}", 1.0 / rows as f64)
    };
    (0..rows).map(row).collect()
}

fn table(rows: &[String]) -> String {
    format!("a,b,y,w\n{}\n", rows.join("\n"))
}

fn folder() -> Folder {
    let mut rows = bits(300);
    let first = table(&rows);
    rows.sort_by_key(|row| row.chars().rev().collect::<String>());
    rows.rotate_left(70);
    Folder::with("d.csv", first).add("other.csv", table(&rows))
}

/// The folds were refused: "at most as many folds as there are different rows of each class, 4".
#[test]
fn folds_of_few_distinct_rows_are_those_of_all_rows() {
    let folder = folder();
    let fit = |name: &str| {
        let flags = "--target y --drop w --cv 5 --sparsity cv --no-standardize --json";
        folder.fit(&format!("{name} {flags} -o m.json")).json()["validation"].clone()
    };
    let timeless = |mut json: Value| {
        json.as_object_mut().unwrap().remove("seconds").unwrap();
        json
    };
    let found = fit("d.csv");
    assert_eq!((&found["folds"], &found["rows"]), (&5.into(), &300.into()));
    assert!((0.2..0.3).contains(&found["error_rate"].as_f64().unwrap()), "{found}");
    assert_eq!(timeless(found), timeless(fit("other.csv")));
}

#[test]
fn compared_machines_do_not_depend_on_the_order_of_rows() {
    let folder = folder();
    let compare = |name: &str| {
        let flags = "--target y --drop w --cv 3 --inner-cv 2 --grid gamma=1 --grid c=1 --machines rvm,svm --format json";
        let json = folder.ok(&format!("compare {name} {flags}")).json();
        let machines = json["machines"].as_array().unwrap().clone();
        ["error_rate", "log_loss", "brier"].map(|m| machines.iter().map(|own| own["measures"][m].clone()).collect::<Vec<_>>())
    };
    let found = compare("d.csv");
    assert_eq!(found, compare("other.csv"));
    let errors: Vec<f64> = found[0].iter().map(|measure| measure["mean"].as_f64().unwrap()).collect();
    assert!(errors.iter().all(|error| (0.2..0.3).contains(error)), "{errors:?}");
}

#[test]
fn small_weights_and_few_rows_are_warned_of() {
    let few = "a,b,y,w\n0,0,no,1\n0,1,no,1\n5,5,yes,1\n5,6,yes,1\n6,6,yes,1\n";
    let folder = folder().add("few.csv", few);
    for machine in ["rvm", "svm"] {
        let run = folder.ok(&format!("fit d.csv --target y --weights w --machine {machine} -o m.json"));
        let text = "the weights of 300 rows sum to 1. A weight of 1 counts as one row, so that this fit learns almost nothing; \
                    multiply the weights by 300";
        assert!(run.stderr.contains(text), "{}", run.stderr);
        let run = folder.ok(&format!("fit few.csv --target y --weights w --machine {machine} -o m.json"));
        assert!(!run.stderr.contains("weights"), "{}", run.stderr);
    }
    let run = folder.ok("fit few.csv --target y --drop w --machine svm --probability -o m.json");
    assert!(run.stderr.contains("too few rows to cross-validate the probabilities"), "{}", run.stderr);
    let (_, rows) = folder.ok("predict m.json few.csv").csv();
    for row in rows {
        let [no, yes] = [1, 2].map(|k| row[k].parse::<f64>().unwrap());
        assert_eq!(row[0] == "yes", yes > no, "{row:?}");
    }
    // Five folds were refused where there are four rows.
    let four = Folder::with("four.csv", "x,y\n0,0.1\n1,0.9\n2,0.4\n3,2.2\n");
    for flags in ["--calibrate", "--sparsity cv"] {
        let json = four.fit(&format!("four.csv --target y {flags} --json -o m.json")).json();
        assert_eq!(json["validation"]["folds"], 4, "{flags}");
    }
}
