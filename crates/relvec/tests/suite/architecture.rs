//! Layers of the source files. A file uses its own folder and lower layers, never a higher one, and files do not depend
//! on each other in a cycle. The folders of `rvm` are layers of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders of `src`, lowest layer first. Files of one layer do not use each other. `lib.rs` re-exports the
/// items of the prediction crate at the lowest layer.
const LAYERS: &[&[&str]] = &[
    &["relvec_predict"],
    &["error", "sparse", "special"],
    &["canonical"],
    &["report", "memory"],
    &["registry"],
    &["linalg", "lbfgs"],
    &["kernel", "targets", "newton"],
    &["likelihood", "design", "blocks", "medoids"],
    &["model", "sums", "dictionary_evidence", "isometry"],
    &["statistics"],
    &["quadratic", "query"],
    &["process"],
    &["rvm", "svm", "export"],
    &["lib"],
];

/// Folders of `rvm`, lowest layer first. A file uses files of its own folder, without a cycle, and of lower folders.
const FOLDERS: &[&str] = &["settings", "data", "gram", "evidence", "search", "learn", "compose", "top"];

/// Layers of the prediction crate, lowest first.
const LAYERS_OF_PREDICTIONS: &[&[&str]] = &[
    &["prelude", "parallel"],
    &["error", "label", "special", "status"],
    &["sparse"],
    &["registry"],
    &["multi_class", "vector"],
    &["linalg"],
    &["kernel", "likelihood"],
    &["model"],
    &["internal"],
    &["lib"],
];

/// Names that only the listed files may contain.
const ONLY_IN: &[(&str, &[&str])] = &[("faer::", &["linalg.rs"]), ("gemm::", &["linalg.rs"]), ("pulp::", &[])];
const ONLY_IN_PREDICTIONS: &[(&str, &[&str])] = &[("pulp::", &["vector.rs", "linalg/product.rs", "linalg/solve.rs"])];
/// Modules of the core that may name the prediction crate. The others find its types in these.
const NAME_PREDICTIONS: &[&str] = &["kernel", "likelihood", "model", "report", "targets", "lib"];

/// Largest number of dependencies of the prediction crate, and crates that only fits may depend on.
const MOST_DEPENDENCIES: usize = 10;
const FITS_ONLY: &[&str] =
    &["relvec", "faer", "gemm", "statrs", "sysinfo", "rand", "rand_distr", "rand_pcg", "smallvec", "relvec-cli"];

/// Largest number of lines and of branches of a function.
const MOST_LINES: usize = 80;
const MOST_BRANCHES: usize = 25;

/// Names that the core must not contain, because it does not access files, print, or keep global state.
const NEVER: &[&str] =
    &["std::fs", "std::path", "std::io", "println!", "eprintln!", "print!(", "dbg!", "LazyLock", "thread_local!"];
/// Exceptions: the allocator is configured once for freed memory, memory is taken by one thread at a time, and the
/// system is asked for the amount of memory.
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

/// Returns the text of each file below `src` of a crate of the workspace, without comments, by its path there.
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

/// Returns the file or folder of `src` that a file belongs to.
fn top_module(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn layer(layers: &[&[&str]], part: &str) -> Option<usize> {
    layers.iter().position(|parts| parts.contains(&part))
}

/// Returns the folder of a file of `rvm`. Files outside folders are in the highest layer, `top`.
fn folder_of(file: &str) -> Option<&str> {
    let inner = file.strip_prefix("rvm/")?;
    Some(inner.split_once('/').map_or("top", |(folder, _)| folder))
}

/// Returns the code without the unit tests at its end, which may use higher layers.
fn without_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod tests").next().unwrap_or(code)
}

/// Returns the module path of a file.
fn module(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    path.pop_if(|last| *last == "mod" || *last == "lib");
    path
}

/// Splits a list at commas that are not inside braces.
fn listed(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, vec![]);
    for (i, c) in list.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            items.push(list[start..i].trim());
            start = i + 1;
        }
    }
    items.push(list[start..].trim());
    items.retain(|item| !item.is_empty());
    items
}

/// Returns the paths of a `use` tree: `a::{b, c::D}` has the paths `a::b` and `a::c::D`.
fn paths(tree: &str) -> Vec<String> {
    match tree.split_once('{') {
        None => vec![tree.split(" as ").next().unwrap_or(tree).trim().to_string()],
        Some((before, list)) => {
            let list = list.trim_end().strip_suffix('}').expect("a brace that is closed");
            listed(list).into_iter().flat_map(paths).map(|path| format!("{}{path}", before.trim())).collect()
        }
    }
}

/// Returns the paths that code names, from the root of the crate, and whether they are re-exported there.
fn named(file: &str, code: &str, is_module: impl Fn(&[&str]) -> bool) -> Vec<(Vec<String>, bool)> {
    let (mut found, mut rest) = (vec![], String::new());
    // A path inside a macro is resolved where the macro is called.
    let code = code.replace("(in crate::", "(in ").replace("$crate::", "");
    // Comments and strings contain the word `use` as well.
    let imports = |line: &str| line.trim_start().starts_with("use ") || line.trim_start().starts_with("pub");
    let mark = |line: &str| if imports(line) { line.replacen("use ", "\0", 1) } else { line.to_string() };
    let code = code.lines().map(mark).collect::<Vec<String>>().join("\n");
    for (k, statement) in code.split('\0').enumerate() {
        let (tree, after) = if k == 0 { ("", statement) } else { statement.split_once(';').unwrap_or((statement, "")) };
        let line = rest.rsplit('\n').next().unwrap_or("").trim().to_string();
        found.extend(paths(tree).into_iter().filter(|path| !path.is_empty()).map(|path| (path, line.starts_with("pub"))));
        rest.push_str(after);
    }
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = rest.split(|c| !is_path(c)).filter(|word| word.contains("::"));
    found.extend(words.map(|word| (word.to_string(), false)));
    let from_root = |path: &str| {
        let (mut base, mut names) = (module(file), path.split("::").collect::<Vec<_>>());
        match names[0] {
            "crate" => base.clear(),
            "self" | "super" => {}
            first if is_module(&[&base[..], &[first]].concat()) => {}
            _ => return None,
        }
        let relative = names.iter().take_while(|name| ["crate", "self", "super"].contains(name)).count();
        let up = names.drain(..relative).filter(|name| *name == "super").count();
        base.truncate(base.len().saturating_sub(up));
        base.extend(names);
        Some(base.into_iter().map(String::from).collect())
    };
    found.into_iter().filter_map(|(path, public)| Some((from_root(&path)?, public))).collect()
}

/// Returns the files that each file uses. A name that a `mod.rs` or `lib.rs` re-exports belongs to the file that
/// defines it.
fn dependencies(sources: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let files: BTreeMap<Vec<&str>, &str> = sources.keys().map(|file| (module(file), file.as_str())).collect();
    let is_module = |path: &[&str]| files.contains_key(path);
    let passes_on = |file: &str| file.ends_with("mod.rs") || file == "lib.rs";
    let mut origin: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (file, code) in sources.iter().filter(|(file, _)| passes_on(file)) {
        for (path, _) in named(file, code, is_module).into_iter().filter(|(_, public)| *public) {
            let name = module(file).into_iter().map(String::from).chain(path.last().cloned()).collect();
            origin.insert(name, path);
        }
    }
    let file_of = |path: &[String]| {
        let mut path = path.to_vec();
        // A name is re-exported a few times at most.
        for _ in 0..4 {
            let known = (1..=path.len()).rev().find_map(|n| Some((n, origin.get(&path[..n])?)));
            let Some((n, from)) = known.filter(|(n, from)| path[..*n] != **from) else { break };
            path = [from, &path[n..]].concat();
        }
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        (1..=names.len()).rev().find_map(|n| files.get(&names[..n]).copied())
    };
    let of_file = |(file, code): (&'_ String, &String)| -> BTreeSet<&str> {
        let uses = named(file, code, is_module).into_iter().filter(|(_, public)| !(*public && passes_on(file)));
        uses.filter_map(|(path, _)| file_of(&path)).filter(|used| used != file).collect()
    };
    sources.iter().map(|(file, code)| (file.as_str(), of_file((file, code)))).collect()
}

/// Returns the shortest dependency cycle through the first file that is part of one.
fn cycle<'a>(dependencies: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    dependencies.keys().find_map(|start| {
        let (mut ways, mut seen) = (VecDeque::from([vec![*start]]), BTreeSet::new());
        while let Some(way) = ways.pop_front() {
            for next in &dependencies[way.last().expect("a way has a start")] {
                let longer = [&way[..], &[*next]].concat();
                if next == start {
                    return Some(longer);
                }
                if seen.insert(*next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    })
}

/// Returns sources of invented files.
fn invented(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(file, code)| (file.to_string(), code.to_string())).collect()
}

/// Returns the sources of the core without unit tests.
fn core() -> BTreeMap<String, String> {
    sources("relvec").into_iter().map(|(file, code)| (file, without_tests(&code).to_string())).collect()
}

#[test]
fn no_file_depends_on_a_higher_layer() {
    for (name, layers) in [("relvec", LAYERS), ("relvec-predict", LAYERS_OF_PREDICTIONS)] {
        let sources = sources(name);
        for (file, used) in dependencies(&sources) {
            let part = top_module(file);
            let own = layer(layers, part).unwrap_or_else(|| panic!("{name}: {file} has no layer: give it one"));
            for other in used {
                let used = top_module(other);
                if used == part || used == "lib" {
                    continue;
                }
                let lower = layer(layers, used).unwrap_or_else(|| panic!("{name}: {file} uses {other}, which has no layer"));
                assert!(lower < own, "{name}: {file} uses {other}, which is not in a lower layer");
            }
        }
    }
}

#[test]
fn no_file_of_rvm_depends_on_a_higher_folder() {
    let place = |file: &str| {
        let folder = folder_of(file)?;
        Some(FOLDERS.iter().position(|r| *r == folder).unwrap_or_else(|| panic!("{file} is in no folder of FOLDERS")))
    };
    for (file, used) in dependencies(&core()) {
        for other in used {
            if let (Some(own), Some(lower)) = (place(file), place(other)) {
                assert!(lower <= own, "{file} uses {other}, which is in a higher folder");
            }
        }
    }
}

/// A call of a method of `Rvm` is a dependency that no `use` shows.
#[test]
fn methods_of_rvm_are_called_from_their_folder_or_higher_ones() {
    let (sources, place) = (core(), |file: &str| folder_of(file).and_then(|folder| FOLDERS.iter().position(|r| *r == folder)));
    let mut methods: BTreeMap<&str, &str> = BTreeMap::new();
    for (file, code) in sources.iter().filter(|(file, _)| place(file).is_some()) {
        let blocks = code.split("\nimpl Rvm {\n").skip(1).map(|block| block.split("\n}\n").next().unwrap_or(block));
        let names =
            blocks.flat_map(|block| block.split("    fn ").chain(block.split("    pub fn ")).chain(block.split(") fn ")).skip(1));
        methods.extend(names.filter_map(|rest| Some((rest.split(['(', '<']).next()?, file.as_str()))));
    }
    assert!(methods.len() > 20, "{methods:?}");
    for (file, code) in &sources {
        let Some(own) = place(file) else { continue };
        for (name, home) in methods.iter().filter(|(_, home)| place(home) > Some(own)) {
            for receiver in ["rvm", "own", "plain", "self.rvm"] {
                assert!(
                    !code.contains(&format!("{receiver}.{name}(")),
                    "{file} calls `{receiver}.{name}` of {home}, a higher folder"
                );
            }
        }
    }
}

#[test]
fn files_have_no_dependency_cycle() {
    let sources = core();
    let mut dependencies = dependencies(&sources);
    // A `mod.rs` declares the files of its folder, which may use its items.
    for (file, used) in &mut dependencies {
        used.retain(|other| file.strip_suffix("mod.rs").is_none_or(|folder| !other.starts_with(folder)));
    }
    let cycle = cycle(&dependencies);
    assert!(cycle.is_none(), "files use each other in a cycle: {}", cycle.unwrap_or_default().join(" -> "));
}

#[test]
fn predictions_depend_on_few_crates_and_on_none_of_fits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relvec-predict/Cargo.toml");
    let manifest = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let headings: Vec<&str> = manifest.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(
        headings,
        ["[package]", "[features]", "[dependencies]", "[[example]]", "[lints]"],
        "a table that this test does not read"
    );
    let list = manifest.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next()).expect("dependencies");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|n| !n.is_empty()).collect();
    assert!(!names.is_empty() && names.len() <= MOST_DEPENDENCIES, "{names:?}: at most {MOST_DEPENDENCIES} are wanted");
    assert!(names.iter().all(|name| !FITS_ONLY.contains(name)), "{names:?}: none of {FITS_ONLY:?} is wanted");
}

/// A model file is rejected if it contains a name that fits of this version do not know.
#[test]
fn prediction_crate_knows_all_names_of_fits() {
    use relvec_predict::internal::model::{CLASSIFIERS, REGRESSORS, SCHEMES};
    assert_eq!(SCHEMES, relvec::Inference::NAMES);
    assert_eq!([CLASSIFIERS, REGRESSORS].concat(), relvec::Formulation::NAMES);
}

#[test]
fn dependencies_are_found_in_every_form_of_path() {
    let files = invented(&[
        ("lib.rs", "mod model;\npub use model::{Expansion, Model};\npub use rvm::Rvm;\n"),
        ("error.rs", "pub type Result = ();"),
        ("linalg.rs", "fn f() -> crate::Model {}"),
        ("model.rs", "let a = crate::Rvm::default(); use super::svm;"),
        ("kernel/mod.rs", "use super::model::Model; use self::rbf::Rbf;\npub use self::poly::Poly;"),
        ("kernel/rbf.rs", "use crate::error::Result;\nuse crate::{linalg, model::{A, B}, rvm};"),
        ("kernel/poly.rs", "use super::super::model::Model; pub(in crate::kernel) use super::Gamma;"),
        ("rvm.rs", "use crate::kernel::{Poly, Rbf};"),
        ("svm.rs", ""),
    ]);
    let dependencies = dependencies(&files);
    let used = |file: &str| dependencies[file].iter().copied().collect::<Vec<_>>();
    assert_eq!(used("linalg.rs"), ["model.rs"]);
    assert_eq!(used("model.rs"), ["rvm.rs", "svm.rs"]);
    assert_eq!(used("kernel/mod.rs"), ["kernel/rbf.rs", "model.rs"]);
    assert_eq!(used("kernel/rbf.rs"), ["error.rs", "linalg.rs", "model.rs", "rvm.rs"]);
    assert_eq!(used("kernel/poly.rs"), ["kernel/mod.rs", "model.rs"]);
    assert_eq!(used("rvm.rs"), ["kernel/mod.rs", "kernel/poly.rs"]);
    assert_eq!(used("lib.rs"), [""; 0]);
}

#[test]
fn dependency_cycles_are_found() {
    let straight = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::{c, d::D};"), ("c.rs", "use crate::d::D;"), ("d.rs", "")];
    assert_eq!(cycle(&dependencies(&invented(&straight))), None);
    let around = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "use crate::{d::D};"),
        ("d.rs", "fn f(b: super::b::B) {}"),
    ];
    assert_eq!(cycle(&dependencies(&invented(&around))), Some(vec!["b.rs", "c.rs", "d.rs", "b.rs"]));
}

/// Returns the drawing of the folders of `rvm`: the files of each folder, and the folders that they use.
fn drawing() -> String {
    let sources = core();
    let dependencies = dependencies(&sources);
    let mut out = String::new();
    for (k, name) in FOLDERS.iter().enumerate().rev() {
        let inside: Vec<&str> =
            dependencies.keys().copied().filter(|file| folder_of(file) == Some(*name) && *file != "rvm/mod.rs").collect();
        let names = inside.iter().map(|file| file.trim_start_matches("rvm/").trim_start_matches(&format!("{name}/")));
        let names = names.map(|file| file.trim_end_matches("/mod.rs").trim_end_matches(".rs"));
        let used =
            |lower: &&&str| inside.iter().any(|file| dependencies[file].iter().any(|other| folder_of(other) == Some(**lower)));
        let used: Vec<&str> = FOLDERS[..k].iter().rev().filter(used).copied().collect();
        let mut line = format!("{name:<10}");
        for file in names {
            if line.rsplit('\n').next().map_or(0, str::len) + file.len() > 108 {
                line.push_str(&format!("\n{:<10}", ""));
            }
            line.push_str(&format!("{file}  "));
        }
        out.push_str(&format!("{}\n", line.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")));
        if !used.is_empty() {
            out.push_str(&format!("   uses   {}\n", used.join("  ")));
        }
    }
    out
}

#[test]
fn drawing_in_contributing_agrees_with_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CONTRIBUTING.md");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let shown =
        text.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap_or("")).find(|b| b.starts_with("top "));
    let drawing = drawing();
    assert_eq!(shown, Some(drawing.as_str()), "CONTRIBUTING.md must show the folders as they are:\n{drawing}");
}

#[test]
fn wrapped_libraries_are_named_in_one_file_only() {
    for (owner, rules) in [("relvec", ONLY_IN), ("relvec-predict", ONLY_IN_PREDICTIONS)] {
        for (file, code) in sources(owner) {
            for (name, files) in rules {
                assert!(!code.contains(name) || files.contains(&file.as_str()), "{file} names `{name}`: only {files:?} may");
            }
        }
    }
    for (file, code) in sources("relvec") {
        let may = NAME_PREDICTIONS.contains(&top_module(&file));
        assert!(may || !code.contains("relvec_predict"), "{file} names `relvec_predict`: only {NAME_PREDICTIONS:?} may");
    }
    for (file, code) in sources("relvec-cli") {
        assert!(!code.contains("kuva::") || file == "figures.rs", "{file} names `kuva::`: only figures.rs may");
    }
}

/// Returns name, number of lines and number of branches of each function.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let head = |line: &str| {
        let text = line.trim_start();
        let (before, rest) = text.split_once("fn ")?;
        let words = before
            .split_whitespace()
            .all(|word| word.starts_with("pub") || ["const", "super)", "crate)"].contains(&word) || word.starts_with("crate::"));
        (words && !line.ends_with(['}', ';']))
            .then(|| (line.len() - text.len(), rest.split(['(', '<']).next().unwrap_or(rest).to_string()))
    };
    let branches = |line: &&str| ["if ", "=> ", "for ", "while "].iter().map(|word| line.matches(word).count()).sum::<usize>();
    let of = |(first, line): (usize, &&str)| {
        let (indent, name) = head(line)?;
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[first..].iter().position(|line| *line == end)?;
        let body: Vec<&str> = lines[first..=first + length].to_vec();
        let code = body.iter().filter(|line| !line.trim_start().starts_with("//"));
        Some((name, body.len(), code.map(branches).sum()))
    };
    lines.iter().enumerate().filter_map(of).collect()
}

#[test]
fn functions_stay_below_the_limits_of_lines_and_branches() {
    let long = format!("pub(in crate::rvm) fn long<T>(t: T) {{\n{}}}\n", "    if t {}\n".repeat(3));
    assert_eq!(functions(&long), [("long".to_string(), 5, 3)]);
    for name in ["relvec", "relvec-predict", "relvec-cli", "relvec-export"] {
        let mut seen = 0;
        for (file, code) in sources(name).into_iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
            for (function, lines, branches) in functions(without_tests(&code)) {
                seen += 1;
                assert!(lines <= MOST_LINES, "{name}/{file}: `{function}` has {lines} lines, {MOST_LINES} at most");
                assert!(
                    branches <= MOST_BRANCHES,
                    "{name}/{file}: `{function}` branches {branches} times, {MOST_BRANCHES} at most"
                );
            }
        }
        assert!(seen > 30, "{name}: {seen} functions");
    }
}

#[test]
fn core_accesses_no_files_and_prints_nothing() {
    for (file, code) in sources("relvec").into_iter().chain(sources("relvec-predict")) {
        for name in NEVER {
            let may = (file.as_str(), *name) == MAY_READ;
            assert!(may || !code.contains(name), "{file} names `{name}`: the core takes and gives values");
        }
        let item = |line: &str| line.trim_start().trim_start_matches("pub ").starts_with("static ");
        assert!(file == MAY_HAVE_A_STATIC || !code.lines().any(item), "{file} has a `static`: the core takes and gives values");
    }
}
