//! Quotations in documents agree with the sources.

use std::fs;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the code blocks of a document that are marked `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("\n```{language}\n");
    text.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap_or("").to_string()).collect()
}

mod first_fit {
    include!("../../examples/first_fit/readme.rs");

    pub fn run() -> relvec::Result<()> {
        main()
    }
}

const FIRST_FIT: &str = "crates/relvec/examples/first_fit/readme.rs";

#[test]
fn the_rust_block_of_the_readme_is_the_example() {
    assert_eq!(blocks(&read("README.md"), "rust").concat(), read(FIRST_FIT));
}

#[test]
fn the_rust_example_runs() {
    first_fit::run().expect("a model");
}

/// The output of each `println!` of the example stands below it as a comment.
#[test]
fn the_rust_example_prints_what_its_comments_show() {
    let test = "documents::the_rust_example_runs";
    let program = std::env::current_exe().expect("the program of the tests");
    let output = Command::new(program).args([test, "--exact", "--nocapture"]).output().expect("its run");
    let printed = String::from_utf8(output.stdout).expect("text");
    let source = read(FIRST_FIT);
    let mut lines = source.lines().map(str::trim).peekable();
    let mut compared = 0;
    while let Some(line) = lines.next() {
        if line.starts_with("println!(") {
            let shown = lines.peek().and_then(|next| next.strip_prefix("// ")).expect("a comment with the output");
            assert!(printed.lines().any(|line| line == shown), "{FIRST_FIT} shows `{shown}`, but prints\n{printed}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

#[test]
fn kernel_recipe_equals_the_source() {
    let shown = blocks(&read("CONTRIBUTING.md"), "rust");
    assert_eq!(shown[0], read("crates/relvec-predict/src/kernel/laplacian.rs"));
    assert!(read("crates/relvec-predict/src/kernel/mod.rs").contains(&shown[1]), "the line of registration");
}

#[test]
fn documents_name_all_kernels_likelihoods_and_schemes() {
    let command = read("docs/command.md");
    let names = relvec::Kernel::NAMES.iter().chain(relvec::Likelihood::NAMES).chain(relvec::Inference::NAMES);
    for name in names {
        assert!(command.contains(&format!("`{name}`")), "docs/command.md does not name `{name}`");
    }
    for name in relvec::Kernel::NAMES {
        assert!(read("docs/math.md").contains(&format!(" {name} ")), "docs/math.md does not name `{name}`");
    }
    let manifest = read("Cargo.toml");
    let version = manifest.split("rust-version = \"").nth(1).and_then(|t| t.split('"').next()).expect("a rust-version");
    let readme = read("README.md");
    assert!(readme.contains(&format!("Rust {version} or newer")), "README.md names another Rust version than {version}");
}

/// Returns the cells of a row of a Markdown table.
fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmark() {
    let (readme, defaults) = (read("README.md"), read("docs/defaults.md"));
    let means = defaults.split("## Means over the tables").nth(1).and_then(|t| t.split("\n## ").next()).expect("the means");
    // Mean of a quantity at 1,000 rows, for a method by its name in docs/defaults.md.
    let mean = |quantity: &str, method: &str| {
        let table = means.split(&format!("\n{quantity}\n")).nth(1).unwrap_or_else(|| panic!("no means of {quantity}"));
        let header = table.lines().find(|line| line.starts_with("| rows")).map(cells).expect("a header");
        let row = table.lines().find(|line| line.starts_with("| 1,000 |")).map(cells).expect("a row");
        header.iter().position(|name| *name == method).map_or("", |column| row[column]).to_string()
    };
    let rows = [
        ("`RVR()`", "relvec"),
        ("`RVR(weight_prior=\"ard\")`", "ard"),
        ("GaussianProcessRegressor, one width per feature", "gp"),
        ("SVR, settings by cross-validation", "svm"),
        ("HistGradientBoostingRegressor", "trees"),
    ];
    for (learner, method) in rows {
        let row = readme.lines().find(|line| line.starts_with(&format!("| {learner} |"))).map(cells).expect(learner);
        let coverage = format!("{} %", mean("Coverage of 95 % intervals [%]", method));
        let seconds = format!("{} s", mean("CPU seconds", method));
        let found = [mean("RMSE", method), mean("NLPD", method), coverage, mean("Centres", method), seconds];
        assert_eq!(row[1..], found, "README.md, {learner}, beside docs/defaults.md");
    }
    assert!(defaults.contains("| 1,000 | 12 |"), "README.md says 12 tables");
    // Percentage by which the log loss is below that of the other estimator.
    let lower = |classes: &str| {
        let line = defaults.lines().find(|line| line.starts_with(&format!("| {classes} classes: mean log loss"))).expect(classes);
        100.0 * (1.0 - cells(line)[2].parse::<f64>().expect("a ratio"))
    };
    let losses = [format!("{:.1} % lower", lower("two")), format!("{:.0} % lower", lower("several"))];
    assert!(losses.iter().all(|text| readme.contains(text)), "README.md says something else than {losses:?}");
}

/// Returns the files of the repository, without build outputs, by their paths from the root.
fn files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.clone()];
    let mut files = vec![];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("a folder entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match path.is_dir() {
                true if ["target", ".git", "__pycache__"].contains(&name) => {}
                true => folders.push(path),
                false => {
                    let path = path.strip_prefix(&root).expect("a path below the root");
                    files.push(path.to_str().expect("a name in UTF-8").replace('\\', "/"));
                }
            }
        }
    }
    files
}

/// Returns the files that a document names and that do not exist: targets of links, and names of source files between
/// backquotes.
fn missing_files(document: &str, text: &str, files: &[String]) -> Vec<String> {
    let folder = Path::new(document).parent().and_then(Path::to_str).unwrap_or("");
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()).map(str::trim);
    let linked = linked.filter(|target| !target.is_empty() && !target.contains("://"));
    let is_there = |path: &str| files.iter().any(|f| f == path || f.starts_with(&format!("{path}/")));
    let dead = linked.filter(|target| !is_there(&folder_path(folder, target)));
    // A name may omit its leading folders.
    let ends = |name: &str| files.iter().any(|f| f == name || f.ends_with(&format!("/{name}")));
    let outside_blocks: String = text.split("\n```").step_by(2).collect();
    let quoted: Vec<&str> = outside_blocks.split('`').skip(1).step_by(2).collect();
    let source = |name: &&&str| {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|e| ["rs", "py", "rst", "toml"].contains(&e))
            && name.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
    };
    let unknown = quoted.iter().filter(source).filter(|name| !ends(name.trim_start_matches("./"))).map(|name| name.to_string());
    dead.map(String::from).chain(unknown).collect()
}

/// Returns the path of `target`, as seen from `folder`, from the root.
fn folder_path(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn files_that_the_documents_name_exist() {
    let files = files();
    let documents = files.iter().filter(|f| f.ends_with(".md"));
    let missing: Vec<String> = documents
        .flat_map(|name| missing_files(name, &read(name), &files).into_iter().map(move |what| format!("{name} names {what}")))
        .collect();
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

#[test]
fn name_of_a_missing_file_is_found() {
    let files = ["docs/math.md", "docs/a.md", "crates/relvec/src/rvm/mod.rs"].map(String::from);
    let text = "see [a](math.md#x), [b](none.md), [c](../docs/a.md), `rvm/mod.rs`, `rvm.rs`, `vm/mod.rs`\n```rust\n`x.rs`\n```\n`mod.rs`";
    assert_eq!(missing_files("docs/a.md", text, &files), ["none.md", "rvm.rs", "vm/mod.rs"]);
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
