//! Headers of models of every kind, in one program: each predicts its ten rows as relvec does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use relvec_export::{COptions, CPrecision, Error, to_c};
use relvec_predict::Model;

/// Models that an earlier version wrote, of all kinds, with the names of their files.
fn models() -> Vec<(String, Model)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relvec/tests/pinned");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json") && path.file_stem().unwrap() != "predictions");
    files.sort();
    assert!(files.len() > 40, "{files:?}");
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_string();
    files.iter().map(|path| (stem(path), Model::from_json(&fs::read_to_string(path).unwrap()).unwrap())).collect()
}

/// A program that runs the self-tests of all models in a folder and says which fails.
fn program(folder: &Path, precision: CPrecision) -> usize {
    let (mut includes, mut calls, mut written) = (String::new(), String::new(), 0);
    for (name, model) in models() {
        let options = COptions { name: name.clone(), precision, std: true };
        match to_c(&model, &options) {
            Ok(text) => {
                fs::write(folder.join(format!("{name}.h")), text).unwrap();
                includes += &format!("#define {}_SELF_TEST\n#include \"{name}.h\"\n", name.to_uppercase());
                calls += &format!("    row = {name}_self_test();\n    if (row) printf(\"{name}: row %d\\n\", row);\n");
                written += 1;
            }
            Err(Error::HealedVariance { .. }) => assert!(name.ends_with("healed"), "{name}"),
            Err(Error::ExternalKernel { .. }) => assert_eq!(name, "rvr_precomputed"),
            // Its weights are large and cancel.
            Err(Error::Precision { .. }) => assert!(name == "rvr_sigmoid" && precision == CPrecision::Int16, "{name}"),
            Err(other) => panic!("{name}: {other}"),
        }
    }
    let main = format!("#include <stdio.h>\n{includes}int main(void) {{\n    int row;\n{calls}    return 0;\n}}\n");
    fs::write(folder.join("main.c"), main).unwrap();
    written
}

/// A C compiler is there: Rust links with it.
#[test]
fn headers_of_all_kinds_predict_their_rows() {
    for precision in [CPrecision::Double, CPrecision::Float, CPrecision::Int16] {
        let folder = tempfile::tempdir().unwrap();
        assert!(program(folder.path(), precision) >= 37);
        for (language, standard) in [("c", "c99"), ("c++", "c++11")] {
            let mut compiler = Command::new(if language == "c" { "cc" } else { "c++" });
            compiler.args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]);
            let done =
                compiler.args(["main", "main.c", "-lm"]).current_dir(folder.path()).output().expect("a C and a C++ compiler");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let run = Command::new(folder.path().join("main")).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&run.stdout), "", "{precision:?} {language}");
            assert!(run.status.success());
        }
    }
}

#[test]
fn a_name_that_is_none_in_c_is_refused() {
    let (_, model) = models().into_iter().find(|(name, _)| name == "rvr_rbf").unwrap();
    for name in ["", "1st", "a b", "while", "größe", "_hidden"] {
        let error = to_c(&model, &COptions { name: name.into(), ..COptions::default() }).unwrap_err();
        assert!(matches!(&error, Error::Name { found } if found == name), "{error}");
    }
}

#[test]
fn standard_deviations_are_left_out_where_they_are_not_asked_for() {
    let (_, model) = models().into_iter().find(|(name, _)| name == "rvr_rbf").unwrap();
    let all = to_c(&model, &COptions::default()).unwrap();
    let means = to_c(&model, &COptions { std: false, ..COptions::default() }).unwrap();
    assert!(all.contains("model_real *std") && !means.contains("std") && means.len() < all.len());
}
