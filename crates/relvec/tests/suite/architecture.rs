//! The floors of the house: a file uses its own folder and lower floors, never a higher one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders of `src`, from the ground up; those of one floor do not know each other.
const FLOORS: &[&[&str]] = &[
    &["error", "label", "canonical", "special"],
    &["report", "memory"],
    &["registry"],
    &["linalg"],
    &["kernel", "targets"],
    &["likelihood", "design", "mutual", "blocks"],
    &["model", "sums"],
    &["statistics"],
    &["quadratic"],
    &["rvm", "svm", "export"],
    &["lib"],
];

/// Names that only these files may write.
const ONLY_IN: &[(&str, &[&str])] = &[("faer::", &["linalg.rs"]), ("gemm::", &["linalg.rs"]), ("pulp::", &["kernel/vector.rs"])];

/// What the core does not do: touch files, print, keep global state.
const NEVER: &[&str] =
    &["std::fs", "std::path", "std::io", "println!", "eprintln!", "print!(", "dbg!", "LazyLock", "thread_local!"];
/// But for telling the allocator once how to treat freed memory, for taking memory one thread at a time, and for asking the system
/// how much of it there is.
const MAY_HAVE_A_STATIC: &str = "memory.rs";
const MAY_READ: (&str, &str) = ("memory.rs", "std::fs");

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a folder entry").path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Each file below `src` of a crate of the workspace, by its path there, without comments.
fn sources(name: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let without_comments =
        |text: String| text.lines().map(|l| l.split_once("//").map_or(l, |(code, _)| code)).collect::<Vec<_>>().join("\n");
    source_files(&folder)
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let inner = path.strip_prefix(&folder).expect("a path below the folder");
            (inner.to_string_lossy().replace('\\', "/"), without_comments(text))
        })
        .collect()
}

/// The file or folder of `src` that a file belongs to.
fn house_part(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn floor(part: &str) -> Option<usize> {
    FLOORS.iter().position(|parts| parts.contains(&part))
}

/// Names after `prefix` in the code: for `crate::{a::B, c}` both a and c.
fn names_after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    fn word(text: &str) -> &str {
        text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
    }
    let mut names = vec![];
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push(word(rest));
            continue;
        };
        let mut depth = 1;
        let mut start = 0;
        for (i, c) in list.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if (c == ',' && depth == 1) || depth == 0 {
                names.push(word(list[start..i].trim()));
                start = i + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    names.retain(|n| !n.is_empty());
    names
}

/// Which part each public name of `lib.rs` comes from.
fn public_names(lib: &str) -> BTreeMap<&str, &str> {
    let mut origin = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let (part, names) = statement.split_once("::").expect("pub use part::names");
        let names = names.split(';').next().unwrap_or("");
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| !n.is_empty()) {
            origin.insert(name, part.trim());
        }
    }
    origin
}

/// Parts of the house that the code of one file uses.
fn used_parts<'a>(file: &str, code: &'a str, public: &BTreeMap<&str, &'a str>) -> Vec<&'a str> {
    let mut parts: Vec<&str> =
        names_after(code, "crate::").into_iter().map(|name| public.get(name).copied().unwrap_or(name)).collect();
    // The root, seen from a/b.rs, is super::super; seen from a.rs or a/mod.rs, super.
    let depth = file.matches('/').count() + usize::from(!file.ends_with("/mod.rs"));
    parts.extend(names_after(code, &"super::".repeat(depth)));
    parts
}

#[test]
fn no_arrow_runs_up() {
    let sources = sources("relvec");
    let public = public_names(&sources["lib.rs"]);
    for (file, code) in &sources {
        let part = house_part(file);
        let own = floor(part).unwrap_or_else(|| panic!("{file} has no floor: give it one in FLOORS"));
        for used in used_parts(file, code, &public) {
            if used == part || part == "lib" {
                continue;
            }
            let lower = floor(used).unwrap_or_else(|| panic!("{file} uses crate::{used}, which has no floor"));
            assert!(lower < own, "{file} uses `{used}`, which is not on a lower floor");
        }
    }
}

#[test]
fn the_test_sees_arrows() {
    let public = public_names("pub use model::{Expansion, Model};\npub use rvm::Rvm;\n");
    let used = |file: &str, code: &'static str| used_parts(file, code, &public);
    assert_eq!(
        used("kernel/rbf.rs", "use crate::error::Result;\nuse crate::{linalg, model::{A, B}, rvm};"),
        ["error", "linalg", "model", "rvm"]
    );
    assert_eq!(used("model.rs", "let a = crate::Rvm::default(); use super::svm;"), ["rvm", "svm"]);
    assert_eq!(used("kernel/rbf.rs", "use super::super::model::Model; use super::Gamma;"), ["model"]);
    assert_eq!(used("kernel/mod.rs", "use super::model::Model; use self::rbf::Rbf;"), ["model"]);
    assert_eq!(used("linalg.rs", "fn f() -> crate::Model {}"), ["model"]);
}

#[test]
fn libraries_stay_behind_one_file() {
    for (file, code) in sources("relvec") {
        for (name, files) in ONLY_IN {
            assert!(!code.contains(name) || files.contains(&file.as_str()), "{file} names `{name}`: only {files:?} may");
        }
    }
    for (file, code) in sources("relvec-cli") {
        assert!(!code.contains("kuva::") || file == "figures.rs", "{file} names `kuva::`: only figures.rs may");
    }
}

#[test]
fn the_core_touches_no_files_and_prints_nothing() {
    for (file, code) in sources("relvec") {
        for name in NEVER {
            let may = (file.as_str(), *name) == MAY_READ;
            assert!(may || !code.contains(name), "{file} names `{name}`: the core takes and gives values");
        }
        let item = |line: &str| line.trim_start().trim_start_matches("pub ").starts_with("static ");
        assert!(file == MAY_HAVE_A_STATIC || !code.lines().any(item), "{file} has a `static`: the core takes and gives values");
    }
}
