//! Counts, outliers, and noise that is known of each row.

use ndarray::Array2;
use relvec::Model;
use serde_json::json;

use super::support::{Folder, noise, numbers, regression_rows, regression_table};

/// Visits over days, with a rate of exp(1 + sin x), about as Poisson counts are.
fn visits(rows: usize) -> String {
    let line = |i: usize| {
        let (x, days) = (3.0 * noise(2 * i), 1 + i % 5);
        let expected = (1.0 + x.sin()).exp() * days as f64;
        let count = (expected + 1.5 * expected.sqrt() * noise(2 * i + 1)).round().max(0.0);
        format!("{x},{days},{count}\n")
    };
    format!("x,days,visits\n{}", (0..rows).map(line).collect::<String>())
}

#[test]
fn counts_with_exposures_are_fitted_and_predicted() {
    let folder = Folder::with("d.csv", visits(120));
    let fit = folder.fit("d.csv --target visits --likelihood poisson --exposure days -o m.json --json");
    assert!(!fit.stderr.contains("note: task"), "the likelihood says it: {}", fit.stderr);
    let summary = fit.json();
    assert_eq!((&summary["task"], &summary["likelihood"]), (&json!("regress"), &json!("poisson")));
    assert_eq!((&summary["features"], &summary["noise_std"]), (&json!(["x"]), &json!(null)));
    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header, ["prediction", "std", "lower", "upper"]);
    let days: Vec<f64> = (0..120).map(|i| (1 + i % 5) as f64).collect();
    let over = folder.ok("predict m.json d.csv --exposure days");
    assert!(!over.stderr.contains("days"), "it is not ignored: {}", over.stderr);
    let (_, over) = over.csv();
    let (rate, expected) = (numbers(&rows, 0), numbers(&over, 0));
    let off: f64 = (0..120).map(|i| (rate[i].ln() - 1.0 - (3.0 * noise(2 * i)).sin()).abs()).sum();
    assert!(off / 120.0 < 0.15, "{off}");
    for i in 0..120 {
        assert!((expected[i] - days[i] * rate[i]).abs() < 1e-9 * expected[i]);
        let (std, lower, upper) = (numbers(&over, 1)[i], numbers(&over, 2)[i], numbers(&over, 3)[i]);
        assert!(std >= expected[i].sqrt() && lower <= expected[i] && expected[i] <= upper);
        assert!(lower.fract() == 0.0 && upper.fract() == 0.0 && (upper - lower) > 2.0 * std, "{lower} {upper} {std}");
    }
    let (header, quantiles) = folder.ok("predict m.json d.csv --exposure days --quantiles 0.025,0.5,0.975").csv();
    assert_eq!(header[4..], ["quantile_0.025", "quantile_0.5", "quantile_0.975"]);
    assert_eq!((numbers(&quantiles, 4), numbers(&quantiles, 6)), (numbers(&over, 2), numbers(&over, 3)));
    let (_, narrow) = folder.ok("predict m.json d.csv --level 0.5").csv();
    assert!(numbers(&narrow, 3).iter().zip(numbers(&rows, 3)).all(|(a, b)| *a <= b));
    assert!(!folder.ok("inspect m.json").stdout.contains("noise"));
}

/// Measures of `relvec score`, recomputed from the predictions of `relvec predict`.
#[test]
fn scores_of_counts_agree_with_their_predictions() {
    let folder = Folder::with("d.csv", visits(120)).add("none.csv", "x,days,visits\n0.5,1,0\n-0.5,2,0\n");
    folder.fit("d.csv --target visits --likelihood poisson --exposure days -o m.json");
    let count =
        |text: &str| -> Vec<f64> { text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect() };
    let truth = count(&visits(120));
    let days: Vec<f64> = (0..120).map(|i| (1 + i % 5) as f64).collect();
    let mean_deviance = |mean: &[f64]| {
        let one = |(t, m): (&f64, &f64)| if *t > 0.0 { t * (t / m).ln() - t + m } else { *m };
        2.0 * truth.iter().zip(mean).map(one).sum::<f64>() / 120.0
    };
    for (exposure, days) in [(" --exposure days", days), ("", vec![1.0; 120])] {
        let (_, rows) = folder.ok(&format!("predict m.json d.csv{exposure}")).csv();
        let (mean, lower, upper) = (numbers(&rows, 0), numbers(&rows, 2), numbers(&rows, 3));
        let found = folder.ok(&format!("score m.json d.csv{exposure} --format json")).json();
        let measured = |key: &str| found["measures"][key].as_f64().unwrap();
        assert!((measured("deviance") - mean_deviance(&mean)).abs() < 1e-9, "{found}");
        let covered = (0..120).filter(|i| lower[*i] <= truth[*i] && truth[*i] <= upper[*i]).count() as f64 / 120.0;
        assert!((measured("coverage") - covered).abs() < 1e-12 && measured("negative_log_density") > 0.0, "{found}");
        let text = folder.ok(&format!("score m.json d.csv{exposure}")).stdout;
        let line = text.lines().find(|line| line.starts_with("Poisson deviance")).unwrap();
        let rate = truth.iter().sum::<f64>() / days.iter().sum::<f64>();
        let constant: f64 = line.split_whitespace().rev().nth(1).unwrap().parse().unwrap();
        let expected = mean_deviance(&days.iter().map(|days| rate * days).collect::<Vec<_>>());
        assert!((constant / expected - 1.0).abs() < 0.01 && text.contains("constant rate"), "{text}");
    }
    // Counts that are all zero have no constant rate.
    let zero = folder.ok("score m.json none.csv --exposure days").stdout;
    assert!(zero.lines().any(|line| line.starts_with("Poisson deviance") && line.ends_with("lower")), "{zero}");
    folder.fails(1, "score m.json d.csv --leave-one-out", &["this model predicts counts"]);
    folder.fails(1, "score m.json d.csv --exposure nights", &["nights"]);
    folder.fit("d.csv --target visits --task classify -o c.json");
    folder.fails(1, "score c.json d.csv --exposure days", &["--exposure is for models of counts"]);
}

#[test]
fn student_t_noise_resists_outliers() {
    let table: String = regression_table(80, ",");
    let mut lines: Vec<String> = table.lines().map(String::from).collect();
    for i in (5..80).step_by(9) {
        let cells: Vec<f64> = lines[i].split(',').map(|v| v.parse().unwrap()).collect();
        lines[i] = format!("{},{},{}", cells[0], cells[1], cells[2] + 40.0);
    }
    let folder = Folder::with("d.csv", lines.join("\n") + "\n").add("clean.csv", &table);
    folder.fit("d.csv --target y --likelihood student_t -o m.json");
    folder.fit("d.csv --target y -o plain.json");
    let truth: Vec<f64> = table.lines().skip(1).map(|l| l.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let error = |model: &str| -> f64 {
        let (_, rows) = folder.ok(&format!("predict {model} clean.csv")).csv();
        numbers(&rows, 0).iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    assert!(error("m.json") < 0.2 * error("plain.json"), "{} {}", error("m.json"), error("plain.json"));
    let summary = folder.ok("inspect m.json --json").json();
    assert!(summary["noise_degrees"].as_f64().unwrap() < 5.0, "{summary}");
    assert!(folder.ok("inspect m.json").stdout.contains("degrees of freedom"));

    // With 4 degrees of freedom: quantile 2.776445, standard deviation sqrt(2), where weights are certain. Over its standard
    // deviation the quantile of the sum of noise and function has a minimum of 1.94041, where their variances are about as 2 to 1.
    folder.fit("d.csv --target y --likelihood student_t --set likelihood.noise_degrees=4 -o four.json");
    assert_eq!(folder.ok("inspect four.json --json").json()["noise_degrees"], json!(4.0));
    let (_, rows) = folder.ok("predict four.json clean.csv").csv();
    let (mean, std, upper) = (numbers(&rows, 0), numbers(&rows, 1), numbers(&rows, 3));
    for i in 0..80 {
        let ratio = (upper[i] - mean[i]) / std[i];
        assert!((1.9404..2.776446 / 2f64.sqrt()).contains(&ratio), "{ratio}");
    }
    folder.fit("d.csv --target y --likelihood student_t --set likelihood.student_t.noise_degrees=1.5 -o wild.json");
    let (_, rows) = folder.ok("predict wild.json clean.csv").csv();
    assert!(numbers(&rows, 1).iter().all(|std| *std == f64::INFINITY) && numbers(&rows, 3).iter().all(|v| v.is_finite()));
}

/// Predictions end for all degrees of freedom that can be given. Intervals are those of the library, (M76): wider than the noise
/// alone is, and narrower than a Student-t distribution with both variances for its squared scale.
#[test]
fn intervals_of_student_t_noise_hold_noise_and_function_for_all_degrees_of_freedom() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let x = Array2::from_shape_fn((40, 2), |(i, d)| regression_rows(40)[i][d]);
    // Half widths of the central 95 % and of the central half, over the scale.
    let half_widths = [
        ("0.3", 6582.0356994, 3.0273369409),
        ("1.5", 6.0166631044, 0.8725946625),
        ("2.5", 3.5746548420, 0.7850136830),
        ("1e5", 1.9599877075, 0.6744922036),
        ("1e8", 1.9599640083, 0.6744897526),
        ("1e300", 1.9599639845, 0.6744897502),
    ];
    for (degrees, outer, inner) in half_widths {
        let settings = format!("--set likelihood.noise_degrees={degrees} --set likelihood.noise_variance=0.04");
        folder.fit(&format!("d.csv --target y --likelihood student_t {settings} -o m.json"));
        let (_, wide) = folder.ok("predict m.json d.csv").csv();
        let (_, middle) = folder.ok("predict m.json d.csv --level 0.5").csv();
        let model = Model::from_json(&std::fs::read_to_string(folder.path("m.json")).unwrap()).unwrap();
        let prediction = model.predict(x.view()).unwrap();
        for (rows, level, alone) in [(&wide, 0.95, outer), (&middle, 0.5, inner)] {
            let (lower, upper) = model.interval(&prediction, level, None).unwrap();
            assert_eq!((numbers(rows, 2), numbers(rows, 3)), (lower.to_vec(), upper.to_vec()), "{degrees} {level}");
            for i in 0..40 {
                let (half, function) = (upper[i] - prediction.mean[i], prediction.model_variance[i]);
                assert!(half > 0.2 * alone, "{degrees} {level}: {half}");
                let both = (0.04 + function).sqrt() * alone;
                assert!(level == 0.5 || half < both * (1.0 + 1e-8), "{degrees} {level}: {half} {both}");
                // Of many degrees of freedom all is normal.
                assert!(degrees != "1e300" || (half / both - 1.0).abs() < 1e-8, "{level}: {half} {both}");
            }
        }
        folder.ok("score m.json d.csv --target y");
    }
}

/// With --student-t the drawn functions have the standard deviation that is written beside them; else that of normal noise.
#[test]
fn samples_have_the_standard_deviation_of_the_prediction() {
    let folder = Folder::with("d.csv", regression_table(8, ","));
    folder.fit("d.csv --target y --inference variational -o m.json");
    for flag in ["", "--student-t"] {
        let (_, rows) = folder.ok(&format!("predict m.json d.csv --samples 4000 {flag}")).csv();
        let ratio: f64 = rows
            .iter()
            .map(|row| {
                let values: Vec<f64> = row.iter().map(|v| v.parse().unwrap()).collect();
                let square: f64 = values[4..].iter().map(|v| (v - values[0]).powi(2)).sum::<f64>() / 4000.0;
                square / (values[1] * values[1]) / 8.0
            })
            .sum();
        // 8 degrees of freedom: the variance would be 8 / 6 of itself otherwise.
        assert!((ratio - 1.0).abs() < 0.1, "{flag}: {ratio}");
    }
}

/// Neither the unit of the exposure nor a lone count among zeros matters to what is predicted.
#[test]
fn exposures_in_any_unit_and_a_lone_count() {
    let scaled = |by: f64| {
        let line = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{},{}\n", cells[0], by * cells[1].parse::<f64>().unwrap(), cells[2])
        };
        format!("x,days,visits\n{}", visits(60).lines().skip(1).map(line).collect::<String>())
    };
    let lone: String = (0..60).map(|i| format!("{i},{}\n", if i == 20 { 100_000 } else { 0 })).collect();
    let folder = Folder::with("d.csv", scaled(1.0)).add("e.csv", scaled(1e12)).add("lone.csv", format!("x,n\n{lone}"));
    let predicted = |table: &str| {
        folder.fit(&format!("{table} --target visits --likelihood poisson --exposure days -o m.json"));
        folder.ok(&format!("predict m.json {table} --exposure days")).csv().1
    };
    let (one, other) = (predicted("d.csv"), predicted("e.csv"));
    for column in 0..4 {
        for (a, b) in numbers(&one, column).iter().zip(numbers(&other, column)) {
            assert!((a - b).abs() <= 1e-8 * a.abs(), "{column}: {a} {b}");
        }
    }
    folder.fit("lone.csv --target n --likelihood poisson -o m.json");
    let (_, rows) = folder.ok("predict m.json lone.csv").csv();
    let mean = numbers(&rows, 0);
    assert!((mean[20] / 1e5 - 1.0).abs() < 0.1 && mean.iter().sum::<f64>() < 1.2e5, "{mean:?}");
}

#[test]
fn known_noise_variances_are_used_in_fits_and_predictions() {
    let line = |i: usize| {
        let (x, v) = (3.0 * noise(2 * i), if i.is_multiple_of(2) { 0.0001 } else { 1.0 });
        format!("{x},{v},{}\n", x.sin() + f64::sqrt(3.0 * v) * noise(2 * i + 1))
    };
    let folder = Folder::with("d.csv", format!("x,v,y\n{}", (0..100).map(line).collect::<String>()));
    folder.fit("d.csv --target y --noise-variance v -o m.json");
    let text = folder.ok("inspect m.json").stdout;
    assert!(text.contains("given for each row"), "{text}");
    let (_, rows) = folder.ok("predict m.json d.csv").csv();
    let (_, new) = folder.ok("predict m.json d.csv --noise-variance v").csv();
    for i in 0..100 {
        let (x, v) = (3.0 * noise(2 * i), if i.is_multiple_of(2) { 0.0001 } else { 1.0 });
        assert!((numbers(&rows, 0)[i] - x.sin()).abs() < 0.05);
        let (std, of_new) = (numbers(&rows, 1)[i], numbers(&new, 1)[i]);
        assert!((of_new * of_new - std * std - v).abs() < 1e-12);
        assert!(((numbers(&new, 3)[i] - numbers(&new, 0)[i]) / of_new - 1.959964).abs() < 1e-6);
    }
    // In blocks it is the same model.
    folder.fit("d.csv --target y --noise-variance v --dictionary 30 --landmarks uniform -o memory.json");
    folder.fit("d.csv --target y --noise-variance v --dictionary 30 --landmarks uniform --stream -o blocks.json");
    let evidence = |model: &str| folder.ok(&format!("inspect {model} --json")).json()["log_evidence"].as_f64().unwrap();
    assert!((evidence("memory.json") - evidence("blocks.json")).abs() < 1.0 + 0.1 * evidence("memory.json").abs());
}

#[test]
fn likelihoods_reject_targets_and_options_of_others() {
    let folder = Folder::with("d.csv", visits(30)).add("bad.csv", "x,days,visits\n1,1,2\n2,0,3\n3,1,1.5\n");
    let usage: &[(&str, &[&str])] = &[
        ("fit d.csv --target visits --likelihood none -o m.json", &["none", "poisson"]),
        ("fit d.csv --target visits --likelihood poisson --task classify -o m.json", &["cannot be combined with"]),
        ("fit d.csv --target visits --exposure days -o m.json", &["--exposure is for --likelihood poisson"]),
        ("fit d.csv --target visits --likelihood poisson --noise-variance days -o m.json", &["--likelihood gaussian"]),
        ("fit d.csv --target visits --task classify --noise-variance days -o m.json", &["--likelihood gaussian"]),
        ("fit d.csv --target visits --likelihood poisson --exposure visits -o m.json", &["another role"]),
        ("fit d.csv --target visits --likelihood poisson --checkpoint c -o m.json", &["--checkpoint", "Use --stream instead"]),
        ("fit d.csv --target visits --likelihood student_t --checkpoint c -o m.json", &["--checkpoint", "--stream"]),
        ("fit d.csv --target visits --likelihood student_t --inference variational -o m.json", &["inference", "student_t"]),
        ("fit d.csv --target visits --likelihood student_t --set likelihood.noise_degrees=0 -o m.json", &["noise_degrees"]),
        ("fit d.csv --target visits --machine svm --likelihood poisson -o m.json", &["--likelihood is for --machine rvm"]),
    ];
    for (line, says) in usage {
        folder.fails(2, line, says);
    }
    folder.fails(1, "fit bad.csv --target visits --likelihood poisson -o m.json", &["row 2 has the target 1.5"]);
    folder.fails(
        1,
        "fit bad.csv --target visits --likelihood poisson --exposure days -o m.json",
        &["the exposure 0 is not positive"],
    );
    folder.fails(1, "fit bad.csv --target visits --noise-variance days -o m.json", &["the noise variance 0 is not positive"]);
    folder.fails(1, "fit d.csv --target visits --noise-variance none -o m.json", &["none"]);
    folder.fit("d.csv --target visits --task regress -o m.json");
    folder.fails(1, "predict m.json d.csv --exposure days", &["--exposure is for models of counts"]);
    folder.fails(1, "predict m.json d.csv --noise-variance days", &["trained with such a column"]);
}

/// In blocks, with more rows than the sample has, counts and targets with outliers have the predictions of a fit in memory,
/// under both priors. A target that is no count is named with its row.
#[test]
fn tables_in_blocks_have_counts_and_outliers() {
    const ROWS: usize = 22_000;
    let outlier = |i: usize| if i.is_multiple_of(9) { 20.0 * ((0.77 * i as f64).fract() - 0.5) } else { 0.0 };
    let noisy = |i: usize| {
        let x = 10.0 * (0.618_033_988_75 * i as f64).fract();
        format!("{x},{}\n", x.sin() + 0.3 * ((0.37 * i as f64).fract() - 0.5) + outlier(i))
    };
    let outliers: String = (0..ROWS).map(noisy).collect();
    let counts = visits(ROWS);
    let folder =
        Folder::with("c.csv", &counts).add("o.csv", format!("x,y\n{outliers}")).add("bad.csv", format!("{counts}9,1,1.5\n"));
    let kinds = [
        ("c.csv", "--target visits --likelihood poisson --exposure days", " --exposure days"),
        ("o.csv", "--target y --likelihood student_t", ""),
    ];
    for (table, line, beside) in kinds {
        for prior in ["auto", "ard"] {
            let line = format!("{table} {line} --weight-prior {prior} --dictionary 30 --gamma 0.5");
            folder.fit(&format!("{line} -o memory.json"));
            folder.fit(&format!("{line} --stream -o blocks.json"));
            let predicted = |model: &str| numbers(&folder.ok(&format!("predict {model} {table}{beside}")).csv().1, 0);
            let (found, expected) = (predicted("blocks.json"), predicted("memory.json"));
            let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
            let off: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
            assert!(square(&off) < 1e-3 * square(&expected), "{line}: {} {}", square(&off), square(&expected));
            let inspected = folder.ok("inspect blocks.json --json").json();
            assert_eq!(inspected["n_rows"], json!(ROWS), "{line}");
        }
    }
    for prior in ["auto", "ard"] {
        let line = format!("fit bad.csv --target visits --likelihood poisson --weight-prior {prior} --stream -o m.json");
        folder.fails(1, &line, &["row 22000 has the target 1.5"]);
    }
}
