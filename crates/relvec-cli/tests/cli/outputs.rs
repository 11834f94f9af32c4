//! Several targets of one model.

use serde_json::json;

use super::support::{Folder, noise, numbers};

/// East and north over a place; the east in other units.
fn wind(rows: usize) -> String {
    let line = |i: usize| {
        let x = 3.0 * noise(3 * i);
        let (east, north) = (100.0 * (2.0 * x).sin() + 10.0 * noise(3 * i + 1), x.cos() + 0.1 * noise(3 * i + 2) + 7.0);
        format!("{x},{east},{north},{}\n", 1 + i % 2)
    };
    format!("x,east,north,count\n{}", (0..rows).map(line).collect::<String>())
}

#[test]
fn two_targets_are_predicted_together() {
    let folder = Folder::with("d.csv", wind(150));
    let fit = folder.fit("d.csv --target east --target north --weights count -o m.json --json");
    assert!(
        !fit.stderr.contains("note: task") && fit.stderr.contains("Regression of `east`, `north` on 1 feature"),
        "{}",
        fit.stderr
    );
    let summary = fit.json();
    assert_eq!((&summary["targets"], &summary["features"]), (&json!(["east", "north"]), &json!(["x"])));
    assert_eq!(summary["noise_std"], json!(null));
    let noises: Vec<f64> = summary["noise_stds"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!((3.0..12.0).contains(&noises[0]) && (0.03..0.12).contains(&noises[1]), "{noises:?}");
    assert!(
        folder.ok("inspect m.json").stdout.lines().any(|l| l.contains("row ") && l.contains(" east   ") && l.contains(" north"))
    );

    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header[..4], ["prediction_east", "std_east", "lower_east", "upper_east"]);
    assert_eq!(header[4..], ["prediction_north", "std_north", "lower_north", "upper_north"]);
    let text = folder.read("d.csv");
    let truth: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    for (k, (first, noise)) in [0, 4].into_iter().zip(noises).enumerate() {
        let (mean, lower, upper) = (numbers(&rows, first), numbers(&rows, first + 2), numbers(&rows, first + 3));
        let t: Vec<f64> = truth.iter().map(|row| row[1 + k]).collect();
        let error = (0..150).map(|n| (mean[n] - t[n]).powi(2)).sum::<f64>() / 150.0;
        assert!(error.sqrt() < 1.5 * noise, "{error} {noise}");
        let inside = (0..150).filter(|n| lower[*n] < t[*n] && t[*n] < upper[*n]).count();
        assert!(inside > 130, "{inside}");
    }
    let (header, drawn) = folder.ok("predict m.json d.csv --samples 2 --seed 5").csv();
    assert_eq!((header.len(), header[4].as_str(), header[11].as_str()), (12, "sample_1_east", "sample_2_north"));
    assert_ne!(numbers(&drawn, 4), numbers(&drawn, 5));

    // One output is scored at a time.
    let score = folder.ok("score m.json d.csv --target north --format json").json();
    assert!(score["measures"]["rmse"].as_f64().unwrap() < 0.12, "{score}");
    folder.fails(2, "score m.json d.csv", &["east, north"]);
    folder.fails(2, "score m.json d.csv --target count", &["east, north"]);
}

#[test]
fn several_targets_reject_options_for_one_target() {
    let folder = Folder::with("d.csv", wind(40));
    let both = "fit d.csv --preset tipping2001 -o m.json --target east --target north";
    for (flag, expected) in [
        ("--task classify", "--task classify"),
        ("--machine svm", "--machine svm"),
        ("--stream --dictionary 10", "--stream"),
        ("--checkpoint c.sums --dictionary 10", "--checkpoint"),
        ("--drop north", "--drop north"),
        ("--weights north", "--weights north"),
    ] {
        folder.fails(2, &format!("{both} {flag}"), &[expected]);
    }
    for (flag, expected) in [("--inference variational", "inference"), ("--likelihood student_t", "one output")] {
        folder.fails(1, &format!("{both} {flag}"), &[expected]);
    }
    folder.fails(1, "fit d.csv -o m.json --target east --target east", &["named twice"]);
    folder.fails(1, "fit d.csv -o m.json --target east --target west", &["west"]);
    let folder = Folder::with("d.csv", "x,a,b\n1,2,3\n2,3,oops\n3,4,5\n");
    folder.fails(1, "fit d.csv -o m.json --target a --target b", &["oops", "row 2", "all must be numeric"]);
}

#[test]
fn a_constant_target_is_said() {
    let table: String =
        wind(40).lines().enumerate().map(|(i, line)| format!("{line},{}\n", if i == 0 { "same" } else { "4" })).collect();
    let folder = Folder::with("d.csv", table);
    let fit = folder.fit("d.csv --target east --target same -o m.json");
    assert!(fit.stderr.contains("warning: constant targets: same"), "{}", fit.stderr);
    let (_, rows) = folder.ok("predict m.json d.csv").csv();
    assert!(numbers(&rows, 4).iter().all(|v| (v - 4.0).abs() < 1e-4));
    folder.fails(1, "predict m.json d.csv --variance healed", &["keep_rows"]);
    let fit = folder.fit("d.csv --target east --target same --variance healed --calibrate -o h.json");
    assert!(fit.stderr.contains("5-fold check") && fit.stderr.contains("healed, 40 rows stored"), "{}", fit.stderr);
    let (_, healed) = folder.ok("predict h.json d.csv").csv();
    let (_, plain) = folder.ok("predict h.json d.csv --variance posterior").csv();
    assert!(numbers(&healed, 1).iter().zip(numbers(&plain, 1)).all(|(healed, plain)| *healed >= plain));
}
