//! Truncated, altered and foreign model files: exit code 1 for `predict` and `inspect` alike.

use super::support::{Folder, regression_table};

#[test]
fn every_damaged_file_is_refused() {
    let folder = Folder::with("d.csv", regression_table(30, ","));
    folder.fit("d.csv --target y -o good.json");
    let good = folder.read("good.json");
    let half = &good[..good.len() / 2];
    let newer = good.replace("\"format_version\":1", "\"format_version\":999");
    let altered = good.replacen("\"n_rows\":30", "\"n_rows\":31", 1);
    assert!(newer != good && altered != good);
    let cases: [(&[u8], &str); 9] = [
        (b"", "empty"),
        (half.as_bytes(), "cut off"),
        (newer.as_bytes(), "999"),
        (altered.as_bytes(), "altered"),
        (b"{}", "not a model of relvec"),
        (b"[1, 2, 3]", "not a model of relvec"),
        (b"a,b\n1,2\n", "not JSON"),
        (b"{\"format\":\"relvec-model\",\"format_version\":1}", "\"model\""),
        (b"\x80\x04\x95pickle", "not a model file"),
    ];
    for (bytes, fragment) in cases {
        let folder = Folder::with("m.json", bytes).add("d.csv", "a,b\n1,2\n");
        folder.fails(1, "inspect m.json", &["model `m.json`", fragment]);
        folder.fails(1, "inspect m.json --json", &["model `m.json`", fragment]);
        folder.fails(1, "predict m.json d.csv -o p.csv", &["model `m.json`", fragment]);
    }
}

#[test]
fn a_missing_model_and_a_folder() {
    let folder = Folder::with("d.csv", "a,b\n1,2\n");
    folder.fails(1, "inspect none.json", &["`none.json`", "No such file"]);
    folder.fails(1, "predict none.json d.csv", &["`none.json`", "No such file"]);
    folder.fails(1, "inspect .", &["folder"]);
}
