//! Support vector machines on the command line.

use ndarray::Array2;
use relvec::{CSvc, Label, Model, Scaling, Svm, Targets};
use serde_json::json;

use super::support::{Folder, regression_table};

/// Three clouds in a row, with noise, and their names.
fn kinds() -> String {
    let mut text = String::from("a,b,kind\n");
    for i in 0..90 {
        let (k, u) = (i % 3, ((i * 7919) % 101) as f64 / 101.0 - 0.5);
        text += &format!("{},{},{}\n", k as f64 + 0.9 * u, ((i * 31) % 17) as f64 / 17.0, ["x", "y", "z"][k]);
    }
    text
}

#[test]
fn regression_and_classification() {
    let folder = Folder::with("d.csv", regression_table(60, ",")).add("k.csv", kinds());
    let summary = folder.ok("fit d.csv --target y --machine svm -o m.json --json").json();
    assert_eq!(summary["machine"], "svm");
    assert_eq!((&summary["task"], &summary["formulation"]), (&json!("regress"), &json!("epsilon_svr")));
    assert_eq!(
        (&summary["likelihood"], &summary["log_evidence"], &summary["noise_std"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert!(summary["n_vectors"].as_u64() >= summary["n_bounded"].as_u64());
    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!((header, rows.len()), (vec!["prediction".to_string()], 60));
    let told = folder.ok("inspect m.json");
    assert!(told.stdout.contains("formulation epsilon_svr") && told.stdout.contains("support vectors"), "{}", told.stdout);
    assert!(folder.ok("predict m.json d.csv --level 0.9").stderr.contains("--level is for regression by a relevance vector"));

    let run = folder.ok("fit k.csv --target kind --machine svm --json -o k.json -v");
    assert!(run.stderr.contains("note: task classify") && run.stderr.contains("at their bound"), "{}", run.stderr);
    assert_eq!((&run.json()["multi_class"], &run.json()["formulation"]), (&json!("one_vs_one"), &json!("c_svc")));
    let (header, rows) = folder.ok("predict k.json k.csv").csv();
    assert_eq!(header, ["prediction"]);
    let truth: Vec<String> = kinds().lines().skip(1).map(|l| l.rsplit_once(',').unwrap().1.to_string()).collect();
    assert!(rows.iter().zip(&truth).filter(|(row, t)| row[0] == **t).count() > 75);

    let rest = folder.ok("fit k.csv --target kind --machine svm --multi-class one_vs_rest --probability --json -o p.json").json();
    assert_eq!(rest["multi_class"], "one_vs_rest");
    let (header, rows) = folder.ok("predict p.json k.csv").csv();
    assert_eq!(header, ["prediction", "probability_x", "probability_y", "probability_z"]);
    for row in rows {
        let sum: f64 = row[1..].iter().map(|p| p.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}

/// The file is that of the library, byte for byte.
#[test]
fn the_command_and_the_library_write_the_same_machine() {
    let folder = Folder::with("k.csv", kinds());
    folder.ok("fit k.csv --target kind --machine svm --set formulation.c=5 --set kernel.gamma=2 --probability -o m.json");
    let text = kinds();
    let cells: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let x = Array2::from_shape_fn((90, 2), |(i, d)| cells[i][d].parse::<f64>().unwrap());
    let labels: Vec<usize> = cells.iter().map(|c| ["x", "y", "z"].iter().position(|n| *n == c[2]).unwrap()).collect();
    let scaling = Scaling::of(x.view(), None);
    let svm = Svm {
        kernel: relvec::Rbf { gamma: 2.0.into() }.into(),
        formulation: CSvc { c: 5.0 }.into(),
        probability: true,
        ..Svm::default()
    };
    let (mut model, _) = svm.fit(scaling.apply(x.view()).view(), &Targets::classes(&labels, 3)).unwrap();
    model.features = vec!["a".into(), "b".into()];
    model.target = Some("kind".into());
    model.classes = ["x", "y", "z"].map(|n| Label::Text(n.into())).to_vec();
    model.scaling = Some(scaling);
    assert!(model.to_json().unwrap() == folder.read("m.json"), "the two files differ");
    assert_eq!(Model::from_json(&folder.read("m.json")).unwrap(), model);
}

/// Weights count, threads and settings of either formulation arrive, and the machine is the same for any number of
/// threads.
#[test]
fn options_of_support_vector_machines_have_their_effects() {
    let folder = Folder::with("d.csv", regression_table(80, ","));
    let fit = |options: &str| folder.ok(&format!("fit d.csv --target y --machine svm --json {options}")).json();
    let narrow = fit("--set formulation.epsilon=0.01 --set formulation.c=10 --formulation epsilon_svr");
    let wide = fit("--set formulation.epsilon_svr.epsilon=0.5");
    assert!(narrow["n_vectors"].as_u64() > wide["n_vectors"].as_u64());
    assert_eq!(fit("--formulation nu_svr --set formulation.nu=0.2")["formulation"], "nu_svr");
    let limited = folder.ok("fit d.csv --target y --machine svm --set max_iterations=3 -o l.json");
    assert!(limited.stderr.contains("warning: not converged; --set max_iterations=30"), "{}", limited.stderr);
    let timed = folder.ok("fit d.csv --target y --machine svm --set time_limit=1e-9 -o l.json");
    assert!(timed.stderr.contains("not converged: time limit"), "{}", timed.stderr);
    let sigmoid = folder.ok("fit d.csv --target y --machine svm --kernel sigmoid --gamma 0.1 -o s.json");
    assert!(sigmoid.stderr.contains("not positive definite"), "{}", sigmoid.stderr);
    folder.ok("fit d.csv --target y --machine svm --threads 1 -o one.json");
    folder.ok("fit d.csv --target y --machine svm --threads 3 --set shrinking=false --set cache_size=1 -o three.json");
    assert_eq!(folder.read("one.json"), folder.read("three.json"));
    let text = kinds();
    let doubled: String = text
        .lines()
        .enumerate()
        .map(|(i, l)| format!("{l},{}\n", if i == 0 { "w".into() } else { (i % 4).to_string() }))
        .collect();
    let repeated: String =
        text.lines().enumerate().map(|(i, l)| format!("{l}\n").repeat(if i == 0 { 1 } else { i % 4 })).collect();
    let both = Folder::with("w.csv", doubled).add("r.csv", repeated);
    let one = both.ok("fit w.csv --target kind --weights w --machine svm --no-standardize --json").json();
    let two = both.ok("fit r.csv --target kind --machine svm --no-standardize --json").json();
    assert_eq!(
        (&one["n_vectors"], &one["n_bounded"], &one["iterations"]),
        (&two["n_vectors"], &two["n_bounded"], &two["iterations"])
    );
}

#[test]
fn support_vector_machines_reject_options_of_other_models() {
    let folder = Folder::with("d.csv", regression_table(40, ",")).add("k.csv", kinds());
    let fails = |options: &str, fragments: &[&str]| {
        folder.fails(2, &format!("fit d.csv --target y -o m.json --machine svm {options}"), fragments);
    };
    for (flag, value) in [
        ("--inference", "mackay"),
        ("--dictionary", "10"),
        ("--landmarks", "uniform"),
        ("--centres", "learned"),
        ("--stream", ""),
        ("--checkpoint", "c"),
    ] {
        fails(&format!("{flag} {value}"), &[flag, "--machine rvm"]);
    }
    fails("--kernel rbf,linear", &["rbf,linear", "no evidence"]);
    fails("--gamma evidence", &["--gamma evidence: ", "no evidence"]);
    fails("--formulation ridge", &["ridge", "c_svc", "nu_svr"]);
    fails("--formulation c_svc --task regress", &["c_svc", "regress"]);
    fails("--task regress --probability", &["probability", "classifiers"]);
    fails("--set formulation.c=0", &["formulation.c_svc.c", "(0, infinity]"]);
    fails("--formulation nu_svr --set formulation.c=null", &["formulation.c=null"]);
    fails("--set formulation.c_svc.c=large", &["formulation.c_svc.c=large", "infinity"]);
    fails("--formulation nu_svr --set formulation.nu=2", &["formulation.nu_svr.nu", "(0, 1]"]);
    fails("--set wide=1", &["--set wide", "formulation.c_svc.c", "formulation.epsilon_svr.epsilon"]);
    fails("--multi-class joint", &["multi_class = joint", "one_vs_one"]);
    folder.fails(2, "fit d.csv --target y -o m.json --formulation c_svc", &["--formulation", "--machine svm"]);
    folder.fails(2, "fit d.csv --target y -o m.json --probability", &["--probability", "--machine svm"]);
    let few: String = kinds().lines().take(41).map(|line| format!("{line}\n")).collect();
    let uneven = Folder::with("u.csv", few);
    let share = "fit u.csv --target kind --machine svm --formulation nu_svc --set formulation.nu=0.99 -o m.json";
    uneven.fails(1, share, &["nu_svc.nu = 0.99", "(0, 0.96", "twice the share of the smaller of classes 0 and 1"]);
    let hard = "fit k.csv --target kind --drop a --machine svm --kernel linear --set formulation.c_svc.c=inf -o m.json";
    folder.fails(1, hard, &["hard margin", "cannot be separated"]);
    // A setting of one formulation settles the task; a target of words cannot be regressed.
    folder.fails(1, "fit k.csv --target kind --machine svm --set formulation.epsilon_svr.epsilon=1 -o m.json", &["kind"]);
}
