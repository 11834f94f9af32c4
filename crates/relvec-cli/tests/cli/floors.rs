//! Dependencies point one way: `lib.rs` lists the files in groups, and a file uses only groups above its own.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_arrow_runs_up() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let mut floors = HashMap::new();
    for (floor, group) in lib.split("\n\n").enumerate() {
        for name in group.lines().filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';')) {
            floors.insert(name.to_string(), floor);
        }
    }
    for (module, floor) in &floors {
        for file in files_of(&source, module) {
            let text = fs::read_to_string(&file).unwrap();
            for rest in text.split("crate::").skip(1) {
                let used: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let below = floors.get(&used).unwrap_or_else(|| panic!("{}: crate::{used} is no file", file.display()));
                assert!(below < floor, "{} uses crate::{used}, which is not on a floor below", file.display());
            }
        }
    }
}

/// A warning says what to do: it names an option, or asks for something.
#[test]
fn every_warning_has_an_action() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let modules = lib.lines().filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';'));
    let mut found = 0;
    for file in modules.flat_map(|module| files_of(&source, module)) {
        let text = fs::read_to_string(&file).unwrap();
        for rest in text.split("say!(").skip(1) {
            let literal = rest.trim_start().split("\",").next().and_then(|call| call.split("\")").next()).unwrap_or_default();
            // What is made elsewhere is tested there.
            if !literal.starts_with("\"warning: ") || literal.starts_with("\"warning: {}") {
                continue;
            }
            found += 1;
            let actions = ["--", "add rows", "give a", "multiply", "leave them out"];
            assert!(actions.iter().any(|action| literal.contains(action)), "{}: {literal}", file.display());
        }
    }
    assert!(found > 10, "only {found} warnings were found");
}

fn files_of(source: &Path, module: &str) -> Vec<PathBuf> {
    let folder = source.join(module);
    if !folder.is_dir() {
        return vec![source.join(format!("{module}.rs"))];
    }
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
