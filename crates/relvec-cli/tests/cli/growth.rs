//! Rows added to a model that keeps its statistics; searches that begin at a model.

use serde_json::json;

use super::support::{Folder, noise};

/// Lines `from` to `to` of a table of two features; the header in another order on request.
fn table(from: usize, to: usize, swapped: bool) -> String {
    let line = |i: usize| {
        let (x, z) = (3.0 * noise(3 * i), 40.0 * noise(3 * i + 1));
        let y = 500.0 + 10.0 * (2.0 * x).sin() + 0.1 * z + noise(3 * i + 2);
        if swapped { format!("{y},{z},{x}\n") } else { format!("{x},{z},{y}\n") }
    };
    let header = if swapped { "y,z,x\n" } else { "x,z,y\n" };
    header.to_string() + &(from..to).map(line).collect::<String>()
}

fn evidence(summary: &serde_json::Value) -> f64 {
    summary["log_evidence"].as_f64().unwrap()
}

#[test]
fn rows_are_added() {
    let folder =
        Folder::with("a.csv", table(0, 300, false)).add("b.csv", table(300, 900, true)).add("all.csv", table(0, 900, false));
    let first = folder.fit("a.csv --target y --dictionary 60 --keep-statistics -o a.json --json");
    assert_eq!(first.json()["kept_statistics"], json!(60));
    assert!(first.stderr.contains("statistics kept     at 60 landmarks"), "{}", first.stderr);
    let grown = folder.ok("fit b.csv --target y --add-to a.json --sparsity 0 -o ab.json --json");
    assert!(grown.stderr.contains("note: 600 rows added to 300"), "{}", grown.stderr);
    let grown = grown.json();
    assert_eq!((&grown["n_rows"], &grown["features"]), (&json!(900), &json!(["x", "z"])));
    assert!(grown["relevance"].as_array().unwrap().iter().all(|row| row.as_u64().unwrap() < 300));
    let all = folder.fit("all.csv --target y --dictionary 60 -o all.json --json").json();
    assert!((evidence(&grown) - evidence(&all)).abs() < 25.0, "{} {}", evidence(&grown), evidence(&all));
    let rmse = |model: &str| {
        let score = folder.ok(&format!("score {model} all.csv --format json")).json();
        score["measures"]["rmse"].as_f64().unwrap()
    };
    assert!(rmse("ab.json") < 1.05 * rmse("all.json"));
    // In place, and again; by the same model as in blocks.
    folder.ok("fit b.csv --target y --add-to a.json --sparsity 0 -o a.json");
    assert_eq!(folder.read("a.json"), folder.read("ab.json"));
    folder.fit("a.csv --target y --dictionary 60 --keep-statistics --stream -o s.json");
    let streamed = folder.ok("fit b.csv --target y --add-to s.json --sparsity 0 -o s2.json --json").json();
    assert_eq!(streamed["n_rows"], json!(900));
    assert!((evidence(&streamed) - evidence(&all)).abs() < 40.0, "{} {}", evidence(&streamed), evidence(&all));
    folder.fit("a.csv --target y --landmarks b.csv --keep-statistics -o l.json");
    folder.ok("fit b.csv --target y --add-to l.json --sparsity 0 -o l2.json");
}

/// Rows of weight 0 are rows of the first table, but not of the sums.
#[test]
fn rows_of_no_weight_are_not_counted_backwards() {
    let weighted = |from: usize, to: usize, weight: &dyn Fn(usize) -> usize| {
        let lines = table(from, to, false);
        let line = |(i, line): (usize, &str)| if i == 0 { format!("{line},c\n") } else { format!("{line},{}\n", weight(i)) };
        lines.lines().enumerate().map(line).collect::<String>()
    };
    let folder = Folder::with("a.csv", weighted(0, 200, &|i| usize::from(i % 4 == 0))).add("b.csv", weighted(200, 230, &|_| 1));
    folder.fit("a.csv --target y --weights c --dictionary 20 --keep-statistics -o a.json");
    let grown = folder.ok("fit b.csv --target y --weights c --add-to a.json --sparsity 0 -o b.json --json");
    assert!(grown.stderr.contains("note: 30 rows added to 200"), "{}", grown.stderr);
    assert_eq!(grown.json()["n_rows"], json!(80));
}

#[test]
fn a_search_begins_at_a_model() {
    let folder = Folder::with("a.csv", table(0, 200, false)).add("all.csv", table(0, 400, false));
    let first = folder.fit("a.csv --target y -o a.json --json").json();
    let again = folder.fit("a.csv --target y --init a.json -o b.json --json").json();
    assert!(evidence(&again) > evidence(&first) - 1e-6);
    folder.fit("all.csv --target y --init a.json -o c.json");
}

#[test]
fn growth_rejects_other_features_and_models_without_sums() {
    let other = table(0, 50, false).replacen("x,z,y", "x,w,y", 1);
    let folder = Folder::with("a.csv", table(0, 50, false)).add("w.csv", other);
    folder.fit("a.csv --target y -o plain.json");
    folder.fit("a.csv --target y --dictionary 20 --keep-statistics -o m.json");
    folder.fails(1, "fit a.csv --target y --add-to plain.json -o n.json", &["plain.json", "--keep-statistics"]);
    folder.fails(1, "fit w.csv --target y --add-to m.json -o n.json", &["missing z", "unknown to it", "w"]);
    folder.fails(2, "fit a.csv --target x --add-to m.json -o n.json --drop y", &["x"]);
    folder.fails(2, "fit a.csv --target y --add-to m.json --kernel matern32 -o n.json", &["--kernel"]);
    folder.fails(2, "fit a.csv --target y --keep-statistics -o n.json", &["keep_statistics"]);
    folder.fails(2, "fit a.csv --target y --keep-statistics --machine svm -o n.json", &["--keep-statistics"]);
    folder.fails(2, "fit a.csv --target y --init plain.json --kernel matern32 -o n.json", &["matern32", "rbf"]);
    folder.fails(2, "fit a.csv --target y --init plain.json --inference em -o n.json", &["search"]);
    folder.fails(1, "fit w.csv --target y --init plain.json -o n.json", &["missing z"]);
    folder.fails(1, "fit a.csv --target y --init nothing.json -o n.json", &["nothing.json"]);
    let short = Folder::with("a.csv", table(0, 10, false)).add("m.json", folder.read("plain.json"));
    short.fails(1, "fit a.csv --target y --init m.json -o n.json", &["relevance"]);
}
