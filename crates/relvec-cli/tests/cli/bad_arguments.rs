//! What the arguments alone show wrong: exit code 2, before any file is opened.

use super::support::{Folder, regression_table};

#[track_caller]
fn refused(line: &str, fragments: &[&str]) {
    // There is no file: code 2 shows that none was looked for.
    Folder::new().fails(2, line, fragments);
}

#[test]
fn unknown_names_list_the_known_ones() {
    refused("fit d.csv --target y -o m --kernel gaussian", &["gaussian", "rbf"]);
    refused("fit d.csv --target y -o m --inference gibbs", &["gibbs", "search", "mackay", "em"]);
    refused("fit d.csv --target y -o m --machine tree", &["tree", "rvm"]);
    refused("fit d.csv --target y -o m --task cluster", &["cluster", "regress", "classify"]);
    refused("fit d.csv --target y -o m --preset bishop", &["bishop", "tipping2001"]);
    refused("fit d.csv --target y -o m --frobnicate", &["--frobnicate"]);
}

#[test]
fn missing_arguments_are_named() {
    refused("fit d.csv -o m", &["--target"]);
    refused("fit d.csv --target y", &["--output"]);
    refused("predict m", &["DATA"]);
}

#[test]
fn negative_values_are_values() {
    refused("fit d.csv --target y -o m --gamma -1", &["--gamma -1: expected a positive"]);
    refused("fit d.csv --target y -o m --machine svm --gamma -1", &["--gamma -1: expected a positive"]);
    refused("fit d.csv --target y -o m --sparsity -2", &["sparsity = -2"]);
    refused("fit d.csv --target y -o m --cv -3", &["'-3' for '--cv", "2 or more"]);
    refused("fit d.csv --target y -o m --keep-rows -1", &["'-1' for '--keep-rows", "1 or more"]);
    refused("fit d.csv --target y -o m --time-limit -1", &["'-1' for '--time-limit", "above 0"]);
    refused("predict m d.csv --level -0.5", &["'-0.5' for '--level", "between 0 and 1"]);
    refused("compare d.csv --target y --cv -3", &["'-3' for '--cv", "2 or more"]);
}

#[test]
fn limits_have_options() {
    for limit in ["lots", "0", "-1", "4XB", "1e300"] {
        refused(&format!("fit d.csv --target y -o m --memory-limit {limit}"), &["--memory-limit", "500MB"]);
    }
    refused("fit d.csv --target y -o m --machine svm --memory-limit 4GB", &["--memory-limit is for --machine rvm"]);
    let folder = Folder::with("d.csv", regression_table(300, ","));
    folder.fails(1, "fit d.csv --target y -o m.json --memory-limit 20kB", &["memory"]);
    let run = folder.ok("fit d.csv --target y --time-limit 1e-9 --memory-limit 1.5GB --json");
    assert!(run.stderr.contains("--time-limit allows more") && run.json()["status"] == "time_limit", "{}", run.stderr);
}

#[test]
fn unknown_settings_list_the_known_ones() {
    refused("fit d.csv --target y -o m --set kernel.rbf.width=1", &["kernel.rbf.width", "known: kernel.rbf.gamma"]);
    refused("fit d.csv --target y -o m --set kernel.linear.gamma=1", &["kernel.rbf.gamma", "--kernel"]);
    refused("fit d.csv --target y -o m --set inference.em.tolerance=1", &["inference.search.tolerance", "--inference"]);
    refused("fit d.csv --target y -o m --set iterations=1", &["max_iterations"]);
    refused("fit d.csv --target y -o m --set gamma", &["PATH=VALUE"]);
    refused("fit d.csv --target y -o m --set kernel=rbf", &["group of settings", "kernel.rbf.gamma"]);
    refused("fit d.csv --target y -o m --task classify --set likelihood.gaussian.noise_variance=1", &["--task"]);
}

#[test]
fn presets_are_for_new_relevance_vector_machines() {
    refused("fit d.csv --target y -o m --preset tipping2001 --machine svm", &["--preset is for --machine rvm"]);
    refused("fit d.csv --target y -o m --preset tipping2001 --add-to m", &["--preset", "--add-to"]);
}

#[test]
fn values_out_of_range_are_refused() {
    for gamma in ["0", "-1", "[1,-1]", "[]", "wide", "true"] {
        refused(&format!("fit d.csv --target y -o m --set kernel.rbf.gamma={gamma}"), &["kernel.rbf.gamma"]);
    }
    refused("fit d.csv --target y -o m --set likelihood.gaussian.noise_variance=-1", &["noise_variance"]);
    refused("fit d.csv --target y -o m --set max_iterations=many", &["max_iterations=many"]);
    for threads in ["0", "-1", "1025", "1000000", "99999999999999999999"] {
        for command in ["fit d.csv --target y -o m", "predict m d.csv", "score m d.csv", "compare d.csv --target y"] {
            refused(&format!("{command} --threads={threads}"), &["--threads", "from 1 to 1024"]);
        }
        refused(&format!("fit d.csv --target y -o m --set threads={threads}"), &["threads"]);
    }
    for level in ["0", "1", "1.5", "-0.1", "nan", "high"] {
        refused(&format!("predict m d.csv --level={level}"), &["--level", "between 0 and 1"]);
    }
}

#[test]
fn a_column_has_one_role() {
    refused("fit d.csv --target y --drop a,y -o m", &["--drop y", "target"]);
    refused("fit d.csv --target y --weights y -o m", &["--weights y", "target"]);
    refused("fit d.csv --target y --weights w --drop w -o m", &["--drop w", "weights"]);
}

#[test]
fn help_and_version_end_well() {
    let folder = Folder::new();
    assert!(folder.ok("--version").stdout.starts_with("relvec "));
    let help = folder.ok("fit --help").stdout;
    for word in ["--target", "--set", "--kernel", "linear_spline", "mackay", "--no-standardize", "--weights", "--drop"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    assert_eq!(folder.run("").code, 2);
}

/// The file to be written is one that is read, by whatever path.
#[test]
fn inputs_are_not_overwritten() {
    let table = regression_table(30, ",");
    let folder = Folder::with("d.csv", &table).add("z.csv", "a,b\n1,2\n");
    folder.ok("fit d.csv --target y -o m.json");
    let model = folder.read("m.json");
    for (line, flag) in [
        ("fit d.csv --target y -o d.csv", "-o d.csv"),
        ("fit d.csv --target y -o ./d.csv", "-o ./d.csv"),
        ("fit ./d.csv --target y -o d.csv", "-o d.csv"),
        ("fit d.csv --target y --machine svm -o d.csv", "-o d.csv"),
        ("fit d.csv --target y -o new.json --checkpoint d.csv", "--checkpoint d.csv"),
        ("fit d.csv --target y -o z.csv --landmarks z.csv", "-o z.csv"),
        ("fit d.csv --target y -o new.json --checkpoint new.json", "-o new.json"),
        ("predict m.json d.csv -o d.csv", "-o d.csv"),
        ("predict m.json d.csv -o m.json", "-o m.json"),
        ("score m.json d.csv -o d.csv", "-o d.csv"),
        ("compare d.csv --target y -o d.csv", "-o d.csv"),
    ] {
        folder.fails(2, line, &[flag, "name another"]);
        assert!(folder.read("d.csv") == table && folder.read("m.json") == model, "{line}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("d.csv"), folder.path("link.csv")).unwrap();
        folder.fails(2, "fit d.csv --target y -o link.csv", &["-o link.csv", "`d.csv`"]);
    }
}
