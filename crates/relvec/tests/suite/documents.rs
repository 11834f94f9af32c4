//! What the documents quote is what the source says.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Code blocks of a document that are marked `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("\n```{language}\n");
    text.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap_or("").to_string()).collect()
}

#[test]
fn the_rust_example_is_the_doctest_of_rvm() {
    let example = blocks(&read("README.md"), "rust").concat();
    let source = read("crates/relvec/src/rvm/settings/rvm.rs");
    let doctest = source.split("/// ```\n").nth(1).expect("a doctest");
    let lines = doctest.lines().map(|l| l.trim_start_matches("///").strip_prefix(' ').unwrap_or(""));
    let shown: String = lines.filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    assert_eq!(example, shown);
}

#[test]
fn the_kernel_recipe_is_the_kernel() {
    let shown = blocks(&read("CONTRIBUTING.md"), "rust");
    assert_eq!(shown[0], read("crates/relvec-predict/src/kernel/laplacian.rs"));
    assert!(read("crates/relvec-predict/src/kernel/mod.rs").contains(&shown[1]), "the line of registration");
}

#[test]
fn documents_name_what_there_is() {
    let readme = read("README.md");
    let names = relvec::Kernel::NAMES.iter().chain(relvec::Likelihood::NAMES).chain(relvec::Inference::NAMES);
    for name in names {
        assert!(readme.contains(&format!("`{name}`")), "README.md does not name `{name}`");
    }
    for name in relvec::Kernel::NAMES {
        assert!(read("docs/math.md").contains(&format!(" {name} ")), "docs/math.md does not name `{name}`");
    }
    let manifest = read("Cargo.toml");
    let version = manifest.split("rust-version = \"").nth(1).and_then(|t| t.split('"').next()).expect("a rust-version");
    assert!(readme.contains(&format!("Rust {version} or newer")), "README.md names another Rust version than {version}");
}

#[test]
fn cited_equations_exist() {
    let math = read("docs/math.md");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![crates.join("relvec/src"), crates.join("relvec-predict/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the source folder") {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source file");
            for cited in text.split("(M").skip(1).filter_map(|t| t.split_once(')')).map(|(number, _)| number) {
                let number = !cited.is_empty() && cited.chars().all(|c| c.is_ascii_digit());
                assert!(!number || math.contains(&format!("\n    (M{cited}) ")), "{} cites (M{cited})", path.display());
            }
        }
    }
}
