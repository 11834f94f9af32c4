//! Categories and missing cells: one encoding in memory, in blocks and in the model file, which every command follows.

use parquet::basic::Compression;
use parquet::data_type::{BoolType, Int32Type};
use serde_json::{Value, json};

use super::files::{doubles, write_parquet};
use super::support::{Folder, noise, numbers, parse_csv};

/// Rows of a table with two columns of categories, one of numbers, and a target that depends on all of them.
fn rows(n: usize) -> Vec<[String; 4]> {
    let row = |i: usize| {
        let (age, garden, zone) = (50.0 + 30.0 * noise(3 * i), i % 5 < 2, ["north", "south", "west"][i % 3]);
        let effect = match zone {
            "north" => 2.0,
            "south" => -2.0,
            _ => 0.0,
        };
        let y = 0.05 * age + effect + f64::from(u8::from(garden)) + 0.2 * noise(3 * i + 1);
        [format!("{age:.3}"), if garden { "yes" } else { "no" }.into(), zone.into(), format!("{y:.4}")]
    };
    (0..n).map(row).collect()
}

const HEADER: &str = "age,garden,zone,y\n";

fn text(rows: &[[String; 4]]) -> String {
    HEADER.to_string() + &rows.iter().map(|row| row.join(",") + "\n").collect::<String>()
}

/// The rows with every `step`-th cell of the first and third columns taken out.
fn with_gaps(mut rows: Vec<[String; 4]>, step: usize) -> Vec<[String; 4]> {
    for (i, row) in rows.iter_mut().enumerate() {
        if i % step == 1 {
            row[0] = String::new();
        }
        if i % step == 2 {
            row[2] = "NA".into();
        }
    }
    rows
}

fn encoding(folder: &Folder, file: &str) -> Value {
    serde_json::from_str::<Value>(&folder.read(file)).unwrap()["model"]["encoding"].clone()
}

fn rmse(folder: &Folder, line: &str) -> f64 {
    folder.ok(&format!("score {line} --format json")).json()["measures"]["rmse"].as_f64().unwrap()
}

#[test]
fn texts_become_features_and_every_command_takes_raw_rows() {
    let folder = Folder::with("d.csv", text(&rows(200))).add("new.csv", text(&rows(260)[200..]));
    let run = folder.ok("fit d.csv --target y -o m.json");
    assert!(run.stderr.contains("note: read as categories: garden (no, yes), zone (north, south, west)"), "{}", run.stderr);
    let features = &serde_json::from_str::<Value>(&folder.read("m.json")).unwrap()["model"]["features"];
    assert_eq!(*features, json!(["age", "garden=yes", "zone=north", "zone=south", "zone=west"]));
    // The categories explain the target: without them the error is more than 1.
    assert!(rmse(&folder, "m.json new.csv") < 0.3, "{}", rmse(&folder, "m.json new.csv"));
    let all = folder.ok("predict m.json new.csv").stdout;
    // Columns in another order and beside others are found by their names.
    let other: String = rows(260)[200..].iter().map(|[age, garden, zone, _]| format!("{zone},x,{age},{garden}\n")).collect();
    let folder = folder.add("other.csv", format!("zone,more,age,garden\n{other}"));
    assert_eq!(folder.ok("predict m.json other.csv").stdout, all);
    let text = folder.ok("inspect m.json").stdout;
    assert!(text.contains("garden (no, yes), zone (north, south, west)"), "{text}");
    let columns = &folder.ok("inspect m.json --json").json()["encoding"]["columns"];
    assert_eq!(columns[2]["categories"], json!(["north", "south", "west"]));
    folder.fails(1, "predict m.json gone.csv", &["gone.csv"]);
    let folder = folder.add("short.csv", "age,zone\n1,west\n");
    folder.fails(1, "predict m.json short.csv", &["`short.csv`", "missing: garden", "the columns are: age, zone"]);
}

#[test]
fn the_encoding_does_not_depend_on_the_order_of_rows_or_on_threads() {
    let all = rows(120);
    let mut turned = all.clone();
    turned.reverse();
    let folder = Folder::with("d.csv", text(&all)).add("turned.csv", text(&turned));
    folder.ok("fit d.csv --target y --threads 1 -o one.json");
    folder.ok("fit d.csv --target y --threads 3 -o three.json");
    folder.ok("fit turned.csv --target y -o turned.json");
    assert_eq!(folder.read("one.json"), folder.read("three.json"));
    let categories = |file: &str| {
        let columns = encoding(&folder, file)["columns"].clone();
        columns.as_array().unwrap().iter().map(|column| column["categories"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(categories("one.json"), categories("turned.json"));
}

#[test]
fn a_table_in_blocks_has_the_encoding_of_one_in_memory() {
    let folder = Folder::with("d.csv", text(&with_gaps(rows(700), 23))).add("new.csv", text(&rows(760)[700..]));
    let rows = |file: &str| serde_json::from_str::<Value>(&folder.read(file)).unwrap()["model"]["n_rows"].clone();
    for rule in ["drop", "mean", "indicator"] {
        for target in ["y", "garden"] {
            let line = format!("fit d.csv --target {target} --missing {rule} --preset tipping2001 --dictionary 40");
            folder.ok(&format!("{line} -o memory.json"));
            folder.ok(&format!("{line} --stream --set memory_limit=30000000 -o blocks.json"));
            assert_eq!(encoding(&folder, "memory.json"), encoding(&folder, "blocks.json"), "{rule}, {target}");
            assert_eq!(rows("memory.json"), rows("blocks.json"), "{rule}, {target}");
            folder.ok("score blocks.json new.csv");
        }
        folder.ok(&format!("fit d.csv --target y --missing {rule} --preset tipping2001 --dictionary 40 --stream -o blocks.json"));
        assert!(rmse(&folder, "blocks.json new.csv") < 0.4, "{rule}: {}", rmse(&folder, "blocks.json new.csv"));
    }
}

#[test]
fn sums_in_a_checkpoint_are_of_the_features() {
    let folder = Folder::with("d.csv", text(&with_gaps(rows(400), 19)));
    let line = "fit d.csv --target y --missing mean --preset tipping2001 --dictionary 20 --checkpoint d.sums -o";
    folder.ok(&format!("{line} a.json"));
    let run = folder.ok(&format!("{line} b.json"));
    assert!(run.stderr.contains("resuming after row 400 of 400"), "{}", run.stderr);
    assert_eq!(folder.read("a.json"), folder.read("b.json"));
    let other = line.replace("mean", "indicator");
    folder.fails(1, &format!("{other} c.json"), &["checkpoint `d.sums`"]);
}

#[test]
fn missing_cells_are_an_error_that_counts_them() {
    let folder = Folder::with("d.csv", text(&with_gaps(rows(60), 20))).add("full.csv", text(&rows(60)));
    let counted = [
        "row 2 (line 3), column `age`: the cell is empty",
        "6 of 60 rows (10 %): age 3, zone 3",
        "--missing mean",
        "--missing drop",
    ];
    folder.fails(1, "fit d.csv --target y -o m.json", &counted);
    folder.fails(1, "fit d.csv --target y --stream -o m.json", &counted);
    folder.fails(1, "compare d.csv --target y", &counted);
    folder.ok("fit full.csv --target y -o m.json");
    folder.fails(1, "predict m.json d.csv", &["row 2 (line 3), column `age`", "age 3, zone 3", "--missing drop"]);
    folder.fails(1, "score m.json d.csv", &["row 2 (line 3), column `age`", "age 3, zone 3"]);
    folder.fails(2, "predict m.json d.csv --missing indicator", &["--missing indicator", "trained without it"]);
    folder.fails(2, "fit d.csv --target y --missing median -o n.json", &["median", "indicator"]);
    // Means of the training rows are there in any case, with the categories and with the scaling.
    folder.ok("predict m.json d.csv --missing mean");
    folder.ok("fit full.csv --target y --drop garden,zone -o plain.json");
    folder.ok("predict plain.json d.csv --missing mean");
    folder.ok("fit full.csv --target y --drop garden,zone --no-standardize -o raw.json");
    folder.fails(2, "predict raw.json d.csv --missing mean", &["--no-standardize", "--missing drop"]);
}

#[test]
fn rows_with_missing_cells_are_left_out() {
    let gaps = with_gaps(rows(80), 20);
    let complete: Vec<_> = gaps.iter().filter(|row| !row[0].is_empty() && row[2] != "NA").cloned().collect();
    let folder = Folder::with("d.csv", text(&gaps)).add("complete.csv", text(&complete));
    let run = folder.ok("fit d.csv --target y --missing drop -o m.json");
    assert!(run.stderr.contains("note: 8 of 80 rows (10 %) with missing cells left out"), "{}", run.stderr);
    let run = folder.ok("predict m.json d.csv -o p.csv");
    assert!(run.stderr.contains("8 of 80 rows (10 %) with missing cells have empty predictions"), "{}", run.stderr);
    let (header, predicted) = parse_csv(&folder.read("p.csv"));
    assert_eq!((predicted.len(), &predicted[1]), (80, &vec![String::new(); header.len()]));
    let kept: Vec<_> = predicted.into_iter().filter(|row| !row[0].is_empty()).collect();
    assert_eq!(kept, folder.ok("predict m.json complete.csv").csv().1);
    assert_eq!(rmse(&folder, "m.json d.csv"), rmse(&folder, "m.json complete.csv"));
    // The same model as without these rows, but for the rule.
    folder.ok("fit complete.csv --target y --missing drop -o complete.json");
    assert_eq!(folder.read("m.json"), folder.read("complete.json"));
    // A missing target or weight counts as well.
    let folder = folder.add("target.csv", text(&rows(40)).replacen("north,2", "north,", 1).replacen("\n", "\n3,no,west,\n", 1));
    assert!(folder.ok("fit target.csv --target y --missing drop -o t.json").stderr.contains("with missing cells left out"));
    folder.fails(1, "fit target.csv --target y --missing mean -o u.json", &["row 1 (line 2), column `y`", "--missing drop"]);
    let folder = folder.add("none.csv", "a,y\n1,\n,2\n");
    folder.fails(1, "fit none.csv --target y --missing drop -o n.json", &["every row has a missing cell"]);
    folder.fails(1, "score m.json none.csv --target y", &["missing: age"]);
}

#[test]
fn means_fill_missing_cells() {
    let table = "a,k,w,y\n1,p,1,1\n,p,1,2\n4,,2,3\n4,q,1,2.5\n7,q,0,9\n3,r,1,1.5\n1,r,1,1.2\n";
    let folder = Folder::with("d.csv", table);
    let line = "fit d.csv --target y --weights w --categories k --no-standardize --preset tipping2001 --gamma 1";
    folder.ok(&format!("{line} --missing indicator -o m.json"));
    // By weight: a is (1 + 2 * 4 + 4 + 3 + 1) / 6, and of k there are 2, 1 and 2.
    let expected = json!({"columns": [
        {"name": "a", "indicator": true, "means": [17.0 / 6.0]},
        {"name": "k", "categories": ["p", "q", "r"], "indicator": true, "means": [0.4, 0.2, 0.4]}], "missing": "indicator"});
    let found = encoding(&folder, "m.json");
    let mean = |value: &Value| value["columns"][0]["means"][0].as_f64().unwrap();
    assert!((mean(&found) - mean(&expected)).abs() < 1e-12, "{found}");
    assert_eq!(found["columns"][1], expected["columns"][1]);
    let folder = folder.add("new.csv", format!("a,k\n{},p\n,p\n", mean(&found)));
    let filled = numbers(&folder.ok("predict m.json new.csv").csv().1, 0);
    assert_ne!(filled[0], filled[1], "the indicator tells a missing cell from its mean");
    folder.ok(&format!("{line} --missing mean -o m.json"));
    let filled = numbers(&folder.ok("predict m.json new.csv").csv().1, 0);
    assert_eq!(filled[0], filled[1]);
}

#[test]
fn comparisons_fill_by_the_rows_that_a_machine_sees() {
    let folder = Folder::with("d.csv", text(&with_gaps(rows(60), 20)));
    for rule in ["drop", "mean", "indicator"] {
        let line = format!("compare d.csv --target y --missing {rule} --machines rvm --cv 3 --grid gamma=0.3 --format json");
        let run = folder.ok(&line).json();
        assert_eq!(run["rows"], if rule == "drop" { 54 } else { 60 }, "{rule}");
        assert_eq!(run["features"], if rule == "indicator" { 7 } else { 5 }, "{rule}");
    }
}

#[test]
fn unknown_categories_are_an_error_or_say_nothing() {
    let folder = Folder::with("d.csv", text(&rows(90))).add("new.csv", "age,garden,zone\n50,no,east\n50,no,\n50,perhaps,west\n");
    folder.ok("fit d.csv --target y --missing mean -o m.json");
    let error = ["row 1 (line 2), column `zone`: `east` is none of the categories", "north, south, west", "--unknown ignore"];
    folder.fails(1, "predict m.json new.csv", &error);
    let run = folder.ok("predict m.json new.csv --unknown ignore");
    assert!(run.stderr.contains("2 of 3 rows with categories that the model does not know"), "{}", run.stderr);
    let means = numbers(&run.csv().1, 0);
    assert_eq!(means[0], means[1], "an unknown category is predicted as a missing one");
}

#[test]
fn columns_of_names_are_refused_unless_it_is_said() {
    let named = |n: usize, distinct: usize| {
        let row = |i: usize| format!("{},n{:03},{}\n", noise(i), i % distinct, noise(i + 7));
        "a,name,y\n".to_string() + &(0..n).map(row).collect::<String>()
    };
    let fit = "fit d.csv --target y -o m.json";
    Folder::with("d.csv", named(100, 10)).ok(fit);
    let advice = ["--drop name", "--categories name"];
    Folder::with("d.csv", named(100, 11)).fails(
        1,
        fit,
        &[&["column `name` holds 11 different texts (n000, n001, n002"][..], &advice].concat(),
    );
    Folder::with("d.csv", named(600, 51)).fails(1, fit, &[&["more than 50 different texts"][..], &advice].concat());
    Folder::with("d.csv", named(600, 51)).ok(&format!("{fit} --categories name --drop a --preset tipping2001 --gamma 1"));
    Folder::with("d.csv", named(1100, 1001)).fails(1, &format!("{fit} --categories name"), &["more than 1000", "at most 1000"]);
    // Yes and no name no row of whatever table.
    Folder::with("d.csv", named(6, 2)).ok(fit);
    Folder::with("d.csv", named(6, 3)).fails(1, fit, &["3 different texts", "6 rows"]);
    let long = format!("a,y\nshort,1\n{},2\n", "x".repeat(2000));
    Folder::with("d.csv", long).fails(1, fit, &["row 2", "2000 bytes is no category", "--drop a"]);
}

#[test]
fn a_column_is_of_one_kind() {
    let fit = "fit d.csv --target y -o m.json";
    let refused = |table: &str, fragments: &[&str]| Folder::with("d.csv", table).fails(1, fit, fragments);
    refused("a,y\n1,2\n3,4\nx7,6\n", &["row 3 (line 4), column `a`: `x7` is not a number", "--na x7", "--categories a"]);
    refused("a,y\nx7,2\n3,4\n", &["row 2 (line 3), column `a`: `3` is a number, and `x7` (row 1) is not", "--categories a"]);
    refused("a b,y\n12 kg,2\n3,4\n", &["row 1", "`12 kg` is not a number", "without units", "--drop 'a b'"]);
    refused("a,y\n-,2\n3,4\n", &["row 1", "`-` is not a number", "--na -"]);
    for date in ["2024-03-01", "1.3.2024", "10:15", "March 2024"] {
        let advice = ["row 1 (line 2), column `a`", "is a date or a time", "--drop a", "days since"];
        refused(&format!("a,b,y\n{date},1,2\n{date},2,3\n"), &advice);
    }
    refused("a,y\n1,2024-03-01\n2,2024-03-02\n", &["column `y`", "is a date or a time, which cannot be a target"]);
    let folder = Folder::with("d.csv", "zip,v,y\n01,1,2\n02,2,3\nx,3,4\n01,4,1\n02,5,2\nx,6,4\n");
    folder.ok("fit d.csv --target y --categories zip -o m.json");
    assert_eq!(encoding(&folder, "m.json")["columns"][0]["categories"], json!(["01", "02", "x"]));
    folder.ok("fit d.csv --target y --na x --missing mean -o m.json");
    folder.fails(1, "fit d.csv --target y --categories zap -o n.json", &["no column `zap` (--categories)"]);
    folder.fails(2, "fit d.csv --target y --categories y -o n.json", &["--categories y", "the target"]);
    folder.fails(2, "fit d.csv --target y --drop v --categories v -o n.json", &["--categories v", "no feature"]);
    // Features that would have one name.
    refused("a,a=q,y\np,1,1\nq,2,2\n", &["two features are called `a=q`"]);
}

#[test]
fn models_grow_by_rows_of_the_same_columns() {
    let folder =
        Folder::with("d.csv", text(&rows(120))).add("more.csv", text(&rows(200)[120..])).add("all.csv", text(&rows(200)));
    folder.ok("fit d.csv --target y --preset tipping2001 --gamma 0.3 --dictionary 30 --keep-statistics -o m.json");
    folder.ok("fit more.csv --target y --add-to m.json -o grown.json");
    assert_eq!(encoding(&folder, "grown.json"), encoding(&folder, "m.json"));
    assert!(rmse(&folder, "grown.json all.csv") < 0.5);
    let folder = folder.add("odd.csv", text(&rows(20)).replace("west", "east"));
    folder.fails(2, "fit more.csv --target y --add-to m.json --categories zone -o odd.json", &["--categories", "--add-to"]);
    let folder = folder.add("gaps.csv", text(&with_gaps(rows(20), 9)));
    folder.fails(1, "fit gaps.csv --target y --add-to m.json -o odd.json", &["row 2", "age 3, zone 2", "--missing drop"]);
    let run = folder.ok("fit gaps.csv --target y --add-to m.json --missing mean -o filled.json");
    assert!(run.stderr.contains("5 of 20 rows (25 %) with missing cells, which are filled"), "{}", run.stderr);
    folder.fails(1, "fit odd.csv --target y --add-to m.json -o odd.json", &["column `zone`", "`east` is none of the categories"]);
    folder.ok("fit d.csv --target y --preset tipping2001 --gamma 0.3 -o start.json");
    folder.ok("fit all.csv --target y --preset tipping2001 --gamma 0.3 --init start.json -o went.json");
    assert_eq!(encoding(&folder, "went.json"), encoding(&folder, "start.json"));
    folder.ok("fit d.csv --target y --drop garden,zone --preset tipping2001 --gamma 0.3 --dictionary 30 --keep-statistics -o plain.json");
    folder.fails(
        1,
        "fit more.csv --target y --drop garden,zone --missing mean --add-to plain.json -o x.json",
        &["no means for missing cells"],
    );
    let folder = folder.add("centres.csv", "age,garden,zone\n1,no,west\n2,no,west\n");
    folder.fails(
        1,
        "fit d.csv --target y --landmarks centres.csv -o x.json",
        &["landmarks `centres.csv`", "`no` is not a number"],
    );
}

#[test]
fn points_of_a_file_are_landmarks_beside_columns_that_stay_as_they_are() {
    let gaps: Vec<_> = with_gaps(rows(80), 20);
    let folder = Folder::with("d.csv", text(&gaps)).add("centres.csv", "age,garden,zone\n30,0,0\n50,0,0\n70,0,0\n");
    let fit = "fit d.csv --target y --drop garden,zone --landmarks centres.csv --preset tipping2001 -o m.json";
    for stream in ["", " --stream"] {
        folder.ok(&format!("{fit} --missing mean{stream}"));
        folder.ok(&format!("{fit} --missing drop{stream}"));
        let refused = ["--landmarks FILE cannot be combined with the column `age`", "--drop"];
        folder.fails(2, &format!("{fit} --missing indicator{stream}").replace("-o m.json", "-o n.json"), &refused);
        let refused = ["--landmarks FILE cannot be combined with the column `garden`", "--drop"];
        let all = format!("{fit} --missing mean{stream}").replace("--drop garden,zone", "").replace("-o m.json", "-o n.json");
        folder.fails(2, &all, &refused);
    }
}

#[test]
fn a_damaged_encoding_is_refused_by_its_place() {
    let folder = Folder::with("d.csv", text(&rows(60)));
    folder.ok("fit d.csv --target y --preset tipping2001 -o m.json");
    let good: Value = serde_json::from_str(&folder.read("m.json")).unwrap();
    let refused = |change: &dyn Fn(&mut Value), fragments: &[&str]| {
        let mut file = good.clone();
        change(&mut file["model"]["encoding"]);
        // The checksum is of the contents as they are written.
        let model: Result<relvec::Model, _> = serde_json::from_value(file["model"].clone());
        let body = model.map(|model| serde_json::to_string(&model).unwrap()).unwrap_or_default();
        file["checksum"] = json!(format!("{:08x}", crc32fast::hash(body.as_bytes())));
        let folder = Folder::with("m.json", file.to_string()).add("d.csv", text(&rows(3)));
        folder.fails(1, "predict m.json d.csv", fragments);
    };
    refused(
        &|encoding| encoding["columns"][1]["categories"] = json!(["yes", "no"]),
        &["model.encoding.columns[1].categories", "[yes, no]", "ascending"],
    );
    refused(&|encoding| encoding["columns"][2]["means"] = json!([0.5]), &["model.encoding.columns[2].means", "1 entries"]);
    refused(
        &|encoding| encoding["columns"][0]["name"] = json!("other"),
        &["model.encoding.columns", "features other, garden=yes"],
    );
    refused(&|encoding| encoding["columns"] = json!([]), &["model.encoding.columns", "5, one for each feature"]);
    refused(&|encoding| encoding["missing"] = json!("median"), &["model.encoding.missing", "median"]);
}

#[test]
fn booleans_of_parquet_and_of_texts_are_the_same_categories() {
    let schema = "message table { required boolean flag; required double v; required int32 day (DATE); required double y; }";
    let folder = Folder::new();
    let flag = |i: usize| !i.is_multiple_of(3);
    let y = |i: usize| noise(i) + f64::from(u8::from(flag(i)));
    write_parquet(&folder.path("d.parquet"), schema, Compression::SNAPPY, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<BoolType>().write_batch(&(0..60).map(flag).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        doubles(group, &(0..60).map(noise).collect::<Vec<_>>());
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&(0..60).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        doubles(group, &(0..60).map(y).collect::<Vec<_>>());
    });
    folder.fails(
        1,
        "fit d.parquet --target y -o m.json",
        &["row 1, column `day`", "dates and times are no feature", "--drop day"],
    );
    folder.ok("fit d.parquet --target y --drop day -o m.json");
    assert_eq!(encoding(&folder, "m.json")["columns"][0]["categories"], json!(["false", "true"]));
    let text = |yes: &str, no: &str| {
        let row = |i: usize| format!("{},{},{}\n", if flag(i) { yes } else { no }, noise(i), y(i));
        "flag,v,y\n".to_string() + &(0..60).map(row).collect::<String>()
    };
    let expected = folder.ok("predict m.json d.parquet").stdout;
    let folder = folder.add("lower.csv", text("true", "false")).add("upper.csv", text("TRUE", "FALSE"));
    for file in ["lower.csv", "upper.csv"] {
        assert_eq!(folder.ok(&format!("predict m.json {file}")).stdout, expected, "{file}");
    }
    folder.ok("fit upper.csv --target y -o upper.json");
    assert_eq!(folder.ok("predict upper.json d.parquet").stdout, expected);
}

#[test]
fn too_little_time_for_the_categories_is_an_error() {
    let folder = Folder::with("d.csv", text(&rows(200)));
    let line = "fit d.csv --target y --stream --preset tipping2001 --time-limit 0.000000001 -o m.json";
    folder.fails(1, line, &["`d.csv`", "before the categories and means of all rows were known", "--time-limit"]);
}
