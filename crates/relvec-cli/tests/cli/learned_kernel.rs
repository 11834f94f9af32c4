//! Kernels of tables read in blocks, which are learned from a sample of the rows.

use relvec::{Kernel, Model};

use super::stream::{model, needed, text};
use super::support::{Folder, class_table, regression_rows, regression_table, three_classes};

const NAMES: [&str; 3] = ["a", "b", "y"];

fn kernel(model: &Model) -> &Kernel {
    model.kernel().expect("the model has a kernel")
}

fn gammas(model: &Model) -> Vec<f64> {
    kernel(model).parameters().into_iter().map(|(_, value)| value).collect()
}

#[track_caller]
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * b.abs()), "{a:?} and {b:?}");
}

#[test]
fn without_a_gamma_it_is_learned_from_a_sample() {
    let folder = Folder::with("d.csv", text(NAMES, &regression_rows(3000)));
    for options in ["--dictionary 30", "--landmarks z.csv"] {
        let folder = Folder::with("d.csv", folder.read("d.csv")).add("z.csv", text(NAMES, &regression_rows(30)));
        let run = folder.ok(&format!("fit d.csv --target y {options} --stream --weight-prior ard -o m.json"));
        assert!(run.stderr.contains("note: the kernel is learned from 1000 of 3000 rows"), "{options}: {}", run.stderr);
        // The sine of one feature is narrower than the straight line of the other; noise has variance 1 / 300.
        let fitted = model(&folder, "m.json");
        let gammas = gammas(&fitted);
        assert!(gammas.len() == 2 && gammas[0] > 2.0 * gammas[1], "{options}: {gammas:?}");
        assert!(fitted.noise_variance().unwrap() < 2.0 / 300.0, "{options}: {:?}", fitted.noise_variance());
    }
}

#[test]
fn a_table_too_large_for_memory_has_its_kernel_learned() {
    let folder = Folder::with("d.csv", text(NAMES, &regression_rows(30_000)));
    let line = "fit d.csv --target y --task regress --dictionary 20 --weight-prior ard --set memory_limit=15000000 -o m.json";
    let run = folder.ok(line);
    assert!(run.stderr.contains("read in blocks") && run.stderr.contains("the kernel is learned from"), "{}", run.stderr);
}

#[test]
fn rules_and_lists_are_learned_too() {
    let folder = Folder::with("d.csv", text(NAMES, &regression_rows(400)));
    let fit = |options: &str| {
        let run = folder.ok(&format!("fit d.csv --target y --dictionary 30 --stream {options} -o m.json"));
        (model(&folder, "m.json"), run.stderr)
    };
    let (one, _) = fit("--gamma evidence-one");
    // Features are standardised, so that one width is nearly one number.
    close(&gammas(&one)[..1], &gammas(&one)[1..], 1e-9);
    let (each, _) = fit("--gamma evidence-ard");
    assert!(gammas(&each)[0] > 2.0 * gammas(&each)[1]);
    let (chosen, _) = fit("--kernel auto");
    assert!(["rbf", "matern52", "matern32"].contains(&kernel(&chosen).name()));
    let (given, stderr) = fit("--gamma 0.7");
    assert!(gammas(&given) == [0.7] && !stderr.contains("learned from"), "{stderr}");
}

#[test]
fn a_weight_of_two_is_a_row_twice() {
    let rows = regression_rows(150);
    let weight = |i: usize| if i.is_multiple_of(3) { 2 } else { 1 };
    let weighted: String = rows.iter().enumerate().map(|(i, [a, b, y])| format!("{a},{b},{y},{}\n", weight(i))).collect();
    let twice: Vec<[f64; 3]> = rows.iter().enumerate().flat_map(|(i, row)| vec![*row; weight(i)]).collect();
    let folder = Folder::with("w.csv", format!("a,b,y,w\n{weighted}")).add("d.csv", text(NAMES, &twice));
    folder.ok("fit w.csv --target y --weights w --dictionary 20 --stream -o w.json");
    folder.ok("fit d.csv --target y --dictionary 20 --stream -o d.json");
    close(&gammas(&model(&folder, "w.json")), &gammas(&model(&folder, "d.json")), 1e-5);
}

#[test]
fn known_noise_is_taken_into_account() {
    let rows: String = regression_rows(300).iter().map(|[a, b, y]| format!("{a},{b},{y},0.0033\n")).collect();
    let folder = Folder::with("d.csv", format!("a,b,y,s\n{rows}"));
    let run = folder.ok("fit d.csv --target y --noise-variance s --dictionary 20 --stream --weight-prior ard -o m.json");
    assert!(run.stderr.contains("learned from 300 of 300 rows"), "{}", run.stderr);
    // Noise as large as the targets leaves no small structure to be seen.
    let coarse: String = regression_rows(300).iter().map(|[a, b, y]| format!("{a},{b},{y},30\n")).collect();
    let coarse = Folder::with("d.csv", format!("a,b,y,s\n{coarse}"));
    coarse.ok("fit d.csv --target y --noise-variance s --dictionary 20 --stream -o m.json");
    assert!(gammas(&model(&coarse, "m.json")) != gammas(&model(&folder, "m.json")));
}

#[test]
fn classes_have_their_kernel_learned_from_their_labels() {
    let folder = Folder::with("two.csv", class_table(1500)).add("three.csv", three_classes(1500, ["u", "v", "w"]));
    for table in ["two", "three"] {
        let line = format!("{table}.csv --target kind --dictionary 40 --stream -o {table}.json");
        let run = folder.ok(&format!("fit {line}"));
        assert!(run.stderr.contains("note: the kernel is learned from 1000 of 1500 rows"), "{table}: {}", run.stderr);
        assert_eq!(gammas(&model(&folder, &format!("{table}.json"))).len(), 2);
        let learned = model(&folder, &format!("{table}.json")).log_evidence.unwrap();
        folder.ok(&format!("fit {line} --gamma 20"));
        let narrow = model(&folder, &format!("{table}.json")).log_evidence.unwrap();
        assert!(learned > narrow + 3.0, "{table}: {learned} and {narrow}");
    }
}

#[test]
fn a_kernel_that_is_no_covariance_has_the_gamma_of_the_scale() {
    let folder = Folder::with("d.csv", text(NAMES, &regression_rows(200)));
    for options in ["", " --stream"] {
        let line = format!("fit d.csv --target y --kernel sigmoid --dictionary 20 -o m.json{options}");
        let said = folder.ok(&line).stderr;
        for fragment in ["sigmoid is not a covariance function", "1 / (features x variance)", "--gamma"] {
            assert!(said.contains(fragment), "{said}");
        }
        let fallback = gammas(&model(&folder, "m.json"));
        assert!(!folder.ok(&format!("{line} --gamma scale")).stderr.contains("covariance"));
        assert_eq!(gammas(&model(&folder, "m.json")), fallback);
        folder.fails(2, &format!("{line} --gamma evidence-ard"), &["--gamma evidence-ard", "expected scale"]);
    }
}

#[test]
fn a_checkpoint_keeps_the_kernel_that_was_learned() {
    let folder = Folder::with("d.csv", regression_table(400, ","));
    let line = "fit d.csv --target y --dictionary 20 --checkpoint c";
    folder.ok(&format!("{line} -o first.json"));
    let run = folder.ok(&format!("{line} -o second.json"));
    assert!(run.stderr.contains("resuming after row 400 of 400") && !run.stderr.contains("learned from"), "{}", run.stderr);
    assert!(folder.read("first.json") == folder.read("second.json"));
    for (options, fragment) in [("--kernel matern52", "kernel"), ("--gamma scale", "kernel"), ("--set seed=3", "seed")] {
        folder.fails(1, &format!("{line} {options} -o third.json"), &["other parameters", fragment]);
    }
}

#[test]
fn the_least_memory_that_an_error_names_is_enough_to_learn_the_kernel() {
    let folder = Folder::with("d.csv", regression_table(500, ","));
    let line = "fit d.csv --target y --stream --dictionary 20 -o m.json --set memory_limit";
    let run = folder.run(&format!("{line}=100000"));
    assert_eq!(run.code, 1);
    folder.ok(&format!("{line}={}", needed(&run.stderr)));
}

/// A table with a column of each kind: numbers with a missing cell, categories, and a name with a space.
fn mixed() -> Folder {
    let row = |i: usize| {
        let (age, income) = (0.1 * i as f64, (i * i % 17) as f64);
        let cell = if i.is_multiple_of(9) { String::new() } else { age.to_string() };
        format!("{cell},{},{income},{}\n", ["blue", "red", "teal"][i % 3], age.sin() + 0.1 * income)
    };
    let rows: String = (0..60).map(row).collect();
    Folder::with("d.csv", format!("age,colour,net income,y\n{rows}"))
}

#[test]
fn features_of_kernels_have_the_names_of_columns() {
    let folder = mixed();
    let fit = |kernel: &str, options: &str| {
        let line = "fit d.csv --target y --missing indicator -o m.json --kernel";
        let args: Vec<&str> = line.split(' ').chain([kernel]).chain(options.split_whitespace()).collect();
        let run = folder.run_args(&args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        (model(&folder, "m.json"), run.stderr)
    };
    for options in ["--gamma 0.1", "--gamma 0.1 --stream --dictionary 20", "--gamma 0.1 --machine svm"] {
        let (named, stderr) = fit("rbf[age,\"net income\"] + linear[colour]", options);
        let (numbered, _) = fit("rbf[0,1,5] + linear[2,3,4]", options);
        assert_eq!(kernel(&named), kernel(&numbered), "{options}");
        assert!(stderr.contains("[age, \"net income\"]") && stderr.contains("[colour]"), "{stderr}");
    }
    let (one, _) = fit("rbf[colour=red] + linear[age is missing]", "");
    assert!(kernel(&one).to_string().contains("[3] + "), "{}", kernel(&one));
    // The printed kernel can be given again.
    let shown = folder.ok("inspect m.json").stdout;
    assert!(shown.contains("[colour=red]") && shown.contains("[\"age is missing\"]"), "{shown}");
    let text = kernel(&one).to_text(Some(4), &one.features);
    assert_eq!(kernel(&fit(&text, "").0).to_text(Some(4), &one.features), text);
    folder.ok("report m.json -o m.html");
    assert!(folder.read("m.html").contains("[colour=red]"));
}

#[test]
fn unknown_features_of_a_kernel_are_named() {
    let folder = mixed();
    let line = "fit d.csv --target y --missing mean -o m.json --kernel";
    for options in ["", " --stream --dictionary 20", " --machine svm"] {
        let expected = ["d.csv", "with `agee`", "the nearest are age, "];
        folder.fails(1, &format!("{line} rbf[agee]+linear{options}"), &expected);
    }
    folder.fails(2, &format!("{line} rbf[age,age]+linear"), &["with `age`: expected each column once"]);
}

#[test]
fn numbers_in_brackets_are_positions_and_a_note_says_so() {
    let rows: String = regression_rows(40).iter().map(|[a, b, y]| format!("{y} 1:{a} 2:{b}\n")).collect();
    let folder = Folder::with("d.svm", rows);
    let line = "fit d.svm --target label --task regress -o m.json --kernel";
    let run = folder.ok(&format!("{line} rbf[1]+linear"));
    assert!(run.stderr.contains("[1] is the feature at position 1, `2`; [\"1\"] is the feature of that name"), "{}", run.stderr);
    let quoted = folder.ok(&format!("{line} rbf[\"1\"]+linear"));
    assert!(kernel(&model(&folder, "m.json")).to_string().contains("[0]") && !quoted.stderr.contains("position"));
    assert!(quoted.stderr.contains("[\"1\"]"), "{}", quoted.stderr);
}

#[test]
fn widths_of_many_features_are_a_table() {
    let row = |i: usize| {
        let x: Vec<f64> = (0..13).map(|k| ((i * (2 * k + 3) + k) % 29) as f64 / 29.0).collect();
        format!("{},{}\n", x.iter().map(f64::to_string).collect::<Vec<_>>().join(","), (4.0 * x[3]).sin())
    };
    let names: Vec<String> = (0..13).map(|k| format!("x{k}")).collect();
    let rows: String = (0..80).map(row).collect();
    let folder = Folder::with("d.csv", format!("{},y\n{rows}", names.join(",")));
    let line = "fit d.csv --target y -o m.json --kernel rbf(gamma=\"evidence-ard\")+linear";
    let stderr = folder.ok(line).stderr;
    let first = stderr.lines().find(|line| line.starts_with("gamma, term 1")).unwrap_or_else(|| panic!("{stderr}"));
    assert!(first.contains("x3 ") && first.ends_with(" %"), "{first}");
    assert!(stderr.contains("and 3 more with ") && stderr.contains(" values])"), "{stderr}");
    folder.ok("report m.json -o m.html");
    assert!(folder.read("m.html").contains("gamma, term 1 of the kernel"));
}

/// Features stay in the units of the table, so that the period does, and predictions need no scaling.
#[test]
fn sums_of_kernels_on_features_are_learned_and_predicted() {
    let row = |i: usize| {
        let (year, other) = (2000.0 + i as f64 / 12.0, (i * i % 17) as f64);
        [other, year, 0.3 * (year - 2000.0) + (std::f64::consts::TAU * year).sin() + 0.01 * other]
    };
    let rows: Vec<[f64; 3]> = (0..96).map(row).collect();
    let folder = Folder::with("d.csv", text(NAMES, &rows[..72])).add("new.csv", text(NAMES, &rows[72..]));
    let kernel = "rbf[0,1]+periodic(period=1.01)[1]*rbf(gamma=0.001)[1]+linear";
    let run = folder.ok(&format!("fit d.csv --target y --kernel {kernel} -o m.json"));
    assert!(run.stderr.contains(" * periodic(") && !run.stderr.contains("standardise"), "{}", run.stderr);
    let fitted = model(&folder, "m.json");
    assert!(fitted.scaling.is_none());
    let learned = relvec::Kernel::parse(&self::kernel(&fitted).to_string(), &relvec::Gamma::default()).unwrap();
    assert_eq!(learned, *self::kernel(&fitted));
    let scores = folder.ok("score m.json new.csv --format json").json();
    assert!(scores["measures"]["rmse"].as_f64().unwrap() < 0.2, "{scores}");
    folder.fails(1, "fit d.csv --target y --kernel rbf[2]+linear -o m.json", &["columns = 2", "columns from 0 to 1"]);
    folder.fails(2, "fit d.csv --target y --kernel rbf+gauss -o m.json", &["rbf+gauss", "`gauss`", "periodic"]);
    folder.ok("fit d.csv --target y --machine svm --kernel rbf+linear -o s.json");
    for export in ["m.json -o m.h --precision double", "m.json -o m.onnx", "s.json -o s.h --precision double"] {
        folder.ok(&format!("export {export}"));
    }
    folder.fails(1, "export s.json -o s.libsvm", &["the kernel sum cannot be written", "linear, poly, rbf or sigmoid"]);
}
