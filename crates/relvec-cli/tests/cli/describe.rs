//! `relvec describe`: every column as a fit reads it, at 80 columns, and a command that runs as it stands.

use super::support::{Folder, noise, regression_table};

/// The words of the command below a description.
fn command(folder: &Folder, line: &str) -> String {
    let text = folder.ok(line).stdout;
    assert!(text.lines().filter(|line| !line.starts_with("  relvec")).all(|line| line.chars().count() <= 80), "{text}");
    let command = text.lines().find_map(|line| line.strip_prefix("  relvec ")).expect("a command");
    command.to_string()
}

#[test]
fn a_table_of_numbers_needs_no_option() {
    let folder = Folder::with("d.csv", regression_table(50, ","));
    let text = folder.ok("describe d.csv").stdout;
    assert!(text.starts_with("d.csv: 50 rows, 3 columns; separated by commas\n"), "{text}");
    assert_eq!(command(&folder, "describe d.csv"), "fit d.csv --target y -o d.json");
    assert_eq!(command(&folder, "describe d.csv --target a"), "fit d.csv --target a -o d.json");
    folder.ok(&command(&folder, "describe d.csv"));
}

#[test]
fn what_stops_a_fit_or_looks_wrong_is_said_and_left_out() {
    let row = |i: usize| {
        let (a, y) = (noise(i), noise(i) + 0.1 * noise(i + 999));
        let gap = if i % 9 == 4 { String::new() } else { format!("{}", i % 7) };
        format!("{i},{a},{a},7,{:03},2024-01-{:02},{},{gap},person {i},{y}\n", i % 50, 1 + i % 28, ["p", "P", "q"][i % 3])
    };
    let text = (0..90).map(row).collect::<String>();
    let folder = Folder::with("my table.csv", format!("n,a,copy,same,code,date,kind,gap,name,y\n{text}"));
    let run = folder.run_args(&["describe", "my table.csv"]);
    let found = run.stdout.replace("\n  ", " ");
    for expected in [
        "`n` counts the rows",
        "`copy` is a copy of `a`",
        "`same` has one value in all rows",
        "`code` holds codes such as 000, read as numbers; --categories code",
        "column `date`: `2024-01-01` is a date or a time",
        "`kind` has categories that differ by the case of their letters only",
        "column `name` holds more than 50 different texts",
        "3: P, p, q",
        "relvec fit 'my table.csv' --target y --drop n,copy,same,date,name --missing mean -o 'my table.json'",
    ] {
        assert!(found.contains(expected), "without `{expected}`: {found}");
    }
    let fit = ["fit", "my table.csv", "--target", "y", "--drop", "n,copy,same,date,name", "--missing", "mean", "-o", "m.json"];
    assert_eq!(folder.run_args(&fit).code, 0);
}

#[test]
fn json_has_the_columns_and_the_command() {
    let text = (0..60)
        .map(|i| format!("{},{},{}\n", i % 5, ["no", "yes"][i % 2], if i == 7 { "NA".into() } else { noise(i).to_string() }));
    let folder = Folder::with("d.csv", format!("few,flag,v\n{}", text.collect::<String>()));
    let json = folder.ok("describe d.csv --target few --json").json();
    assert_eq!(json["rows"], 60);
    assert_eq!(json["tasks"], serde_json::json!(["classify", "regress"]));
    assert_eq!(json["command"], "relvec fit d.csv --target few --task regress --missing mean -o d.json");
    let columns = json["columns"].as_array().unwrap();
    assert_eq!(columns[1]["kind"], "categories");
    assert_eq!(columns[1]["categories"], serde_json::json!(["no", "yes"]));
    assert_eq!((&columns[0]["minimum"], &columns[0]["maximum"], &columns[2]["missing"]), (&0.0.into(), &4.0.into(), &1.into()));
    // A row without its target can only be left out.
    let json = folder.ok("describe d.csv --json").json();
    assert_eq!(json["command"], "relvec fit d.csv --target v --missing drop -o d.json");
}

#[test]
fn tables_that_cannot_be_read_are_errors() {
    let folder = Folder::with("d.csv", "a,b\n1\n").add("empty.csv", "");
    folder.fails(1, "describe none.csv", &["`none.csv`", "No such file"]);
    folder.fails(1, "describe empty.csv", &["`empty.csv`", "empty"]);
    folder.fails(1, "describe d.csv", &["row 1 (line 2)", "1 cell"]);
    folder.fails(1, "describe d.csv --target c", &["no column `c`"]);
    let run = Folder::with("d.csv", "a,b\n").ok("describe d.csv");
    assert!(run.stdout.contains("d.csv: 0 rows, 2 columns") && run.stdout.contains("`a` has no value"), "{}", run.stdout);
}
