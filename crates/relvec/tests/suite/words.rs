//! Texts use the words of the literature, and no words that a reader would have to look up.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that no text contains, and what to write.
const WORDS: &[(&str, &str)] = &[
    ("anew", "from the start, cold restart"),
    ("at rest", "converged"),
    ("brisk", "fast"),
    ("by parts", "in working sets"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("die down", "are pruned"),
    ("dies down", "is pruned"),
    ("duel", "binary model"),
    ("duels", "binary models"),
    ("excursion", "restart"),
    ("excursions", "restarts"),
    ("hasty", "fallback"),
    ("hopeful", "optimistic"),
    ("in the place of", "instead of"),
    ("in vain", "without effect"),
    ("newcomer", "entering candidate"),
    ("newcomers", "entering candidates"),
    ("next to nothing", "almost none"),
    ("no say", "no effect"),
    ("reheat", "restart"),
    ("reheats", "restarts"),
    ("row(s)", "1 row, 2 rows"),
    ("sooner", "faster, earlier"),
    ("tell apart", "distinguish"),
    ("tells apart", "distinguishes"),
    ("told apart", "distinguished"),
    ("twin", "duplicate"),
    ("twins", "duplicates"),
    ("want of", "lack of"),
];

/// Words that documents, help texts and Python docstrings do not contain.
const WORDS_OF_DOCUMENTS: &[(&str, &str)] = &[("learnt", "learned"), ("pooled", "of all binary models")];

/// Beginnings of a Rust doc comment that point at a neighbour instead of saying what the item is.
const BEGINNINGS: &[(&str, &str)] = &[
    ("As [", "what it does"),
    ("Of ", "for, or a noun"),
    ("That of", "a noun"),
    ("The same", "what it is"),
    ("Those of", "a noun"),
    ("Those that", "a noun"),
    ("What ", "a noun"),
    ("Whether ", "true if, returns true if"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files of a folder with one of the extensions, by their paths from the root. Subfolders are included if
/// `deep` is true.
fn files(folder: &str, extensions: &[&str], deep: bool) -> Vec<String> {
    let mut found = vec![];
    for entry in fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}")) {
        let entry = entry.expect("a folder entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            if deep {
                found.extend(files(&path, extensions, deep));
            }
        } else if name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension)) {
            found.push(path);
        }
    }
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the lines of a document without fenced blocks and without text between backquotes.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let keep = |line: &str| -> String {
        fenced ^= line.starts_with("```");
        if fenced { String::new() } else { line.split('`').step_by(2).collect() }
    };
    text.lines().map(keep).collect()
}

/// Returns the lines of the docstrings of a Python file. Other lines are empty.
fn docstrings(text: &str) -> Vec<String> {
    let mut inside = false;
    let keep = |line: &str| -> String {
        let parts: Vec<&str> = line.split("\"\"\"").collect();
        let kept = parts.iter().enumerate().filter(|(i, _)| (i % 2 == 1) ^ inside).map(|(_, part)| *part).collect();
        inside ^= parts.len().is_multiple_of(2);
        kept
    };
    text.lines().map(keep).collect()
}

/// Returns the lines of the doc comments of a Rust file, without their marks and text between backquotes. Other lines
/// are empty.
fn doc_comments(text: &str) -> Vec<String> {
    let comment = |line: &str| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).unwrap_or("").trim();
        comment.split('`').step_by(2).collect()
    };
    text.lines().map(comment).collect()
}

/// Returns the strings and doc comments of a Rust file, which the command prints. Other lines are empty.
fn printed(text: &str) -> Vec<String> {
    let mut inside = false;
    let keep = |(line, comment): (&str, String)| -> String {
        if !inside && line.trim_start().starts_with("//") {
            return comment;
        }
        let line = line.trim_end_matches('\\').replace("\\\"", "").replace("'\"'", "");
        let parts: Vec<&str> = line.split('"').collect();
        let kept = parts.iter().enumerate().filter(|(i, _)| (i % 2 == 1) ^ inside).map(|(_, part)| *part).collect();
        inside ^= parts.len().is_multiple_of(2);
        kept
    };
    text.lines().zip(doc_comments(text)).map(keep).collect()
}

/// Returns all lines without the marks of comments.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().trim_start_matches(['/', '!', '#']).trim().to_string()).collect()
}

/// Returns the places of words of a list, also across the end of a line.
fn find(name: &str, lines: &[String], words: &[(&str, &str)]) -> Vec<String> {
    let mut found = vec![];
    for (i, line) in lines.iter().enumerate() {
        let next = lines.get(i + 1).map_or("", String::as_str);
        let both = format!("{} {}", line.trim(), next.trim()).to_lowercase();
        for (word, instead) in words {
            let is_word = |at: usize| {
                let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                let before = both[..at].chars().next_back();
                let after = both[at + word.len()..].chars().next();
                !before.is_some_and(letter) && !after.is_some_and(letter)
            };
            if both.match_indices(word).any(|(at, _)| at < line.trim().len() && is_word(at)) {
                found.push(format!("{name}:{}: `{word}`; write: {instead}", i + 1));
            }
        }
    }
    found
}

/// Returns the doc comments that begin by pointing at a neighbour.
fn find_beginnings(name: &str, lines: &[String]) -> Vec<String> {
    let begins = |i: usize| i == 0 || lines[i - 1].is_empty();
    let mut found = vec![];
    for (i, line) in lines.iter().enumerate().filter(|(i, _)| begins(*i)) {
        for (beginning, instead) in BEGINNINGS.iter().filter(|(b, _)| line.starts_with(b)) {
            found.push(format!("{name}:{}: begins with `{beginning}`; write {instead}", i + 1));
        }
    }
    found
}

/// Returns true if a doc comment states the shape of an array, such as `[N, D]` or `[N]`. Intervals and links are no
/// shapes.
fn states_a_shape(comment: &str) -> bool {
    let is_shape = |rest: &str| {
        let Some((inside, after)) = rest.split_once(']') else { return false };
        let sizes: Vec<&str> = inside.split(',').map(str::trim).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || " '+-*/()_".contains(c);
        let is_size = |size: &&str| size.starts_with(|c: char| c.is_ascii_alphanumeric()) && size.chars().all(plain);
        let is_short = inside.split_whitespace().all(|word| word.len() <= 2);
        let letters = inside.contains(|c: char| c.is_ascii_alphabetic());
        letters && !after.starts_with('(') && sizes.iter().all(is_size) && (sizes.len() > 1 || is_short)
    };
    comment.split('[').skip(1).any(is_shape)
}

/// Returns the number of public or documented functions that take or return arrays, and those of them whose doc comment
/// states no shape or only a link. Methods of implemented traits and tests are not counted.
fn find_shapeless(name: &str, text: &str) -> (usize, Vec<String>) {
    let text = text.split("\n#[cfg(test)]\nmod").next().unwrap_or("");
    let lines: Vec<&str> = text.lines().collect();
    let (mut seen, mut found, mut comment, mut of_trait) = (0, vec![], String::new(), false);
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            of_trait = line.contains(" for ");
        } else if *line == "}" {
            of_trait = false;
        }
        let code = line.trim_start();
        if let Some(words) = code.strip_prefix("///") {
            comment.push_str(words);
            continue;
        }
        if code.starts_with("#[") {
            continue;
        }
        let comment = std::mem::take(&mut comment);
        if comment.starts_with(" As [") {
            found.push(format!("{name}:{}: begins with a link; write what it is", i + 1));
        }
        let Some((before, rest)) = code.split_once("fn ") else { continue };
        let is_head = |word: &str| word.starts_with("pub") || ["const", "unsafe"].contains(&word) || word.ends_with(')');
        let is_public = before.starts_with("pub");
        if !before.split_whitespace().all(is_head) || of_trait || (comment.is_empty() && !is_public) {
            continue;
        }
        let end = lines[i..].iter().position(|line| line.ends_with(['{', ';', '}'])).map_or(lines.len(), |end| i + end + 1);
        let signature = lines[i..end].concat();
        let signature = signature.split('{').next().unwrap_or("");
        if ["Array1<", "Array2<", "Array3<", "ArrayView", "ArcArray"].iter().any(|array| signature.contains(array)) {
            seen += 1;
            let function = rest.split(['(', '<']).next().unwrap_or(rest);
            if !states_a_shape(&comment) {
                found.push(format!("{name}:{}: `{function}` states no shape; write one such as `[N, D]`", i + 1));
            }
        }
    }
    (seen, found)
}

fn none_found(found: &[String]) {
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn documents_use_no_private_words() {
    let words = [WORDS, WORDS_OF_DOCUMENTS].concat();
    let folders = [("", false), ("docs", true), ("crates", true), ("python/examples", true), ("python/tutorials", true)];
    let folders = [&folders[..], &[("r", false), ("r/man", false), ("r/vignettes", false)]].concat();
    let endings = ["md", "rst", "Rd", "Rmd"];
    let documents: Vec<String> = folders.iter().flat_map(|(folder, deep)| files(folder, &endings, *deep)).collect();
    assert!(documents.len() > 15, "{documents:?}");
    let mut found: Vec<String> = documents.iter().flat_map(|name| find(name, &prose(&read(name)), &words)).collect();
    // Generated pages take their words from these sources.
    let generators = [files("xtask/src", &["rs"], true), files("python/benchmarks", &["py"], true)].concat();
    found.extend(generators.iter().flat_map(|name| find(name, &lines(&read(name)), &words)));
    none_found(&found);
}

#[test]
fn command_uses_no_private_words() {
    let words = [WORDS, WORDS_OF_DOCUMENTS].concat();
    let sources = files("crates/relvec-cli/src", &["rs"], true);
    let found: Vec<String> = sources.iter().flat_map(|name| find(name, &printed(&read(name)), &words)).collect();
    none_found(&found);
}

#[test]
fn python_docstrings_use_no_private_words() {
    let words = [WORDS, WORDS_OF_DOCUMENTS].concat();
    let folders = ["python/relvec", "python/examples", "python/tutorials"];
    let sources: Vec<String> = folders.iter().flat_map(|folder| files(folder, &["py", "pyi"], true)).collect();
    let found: Vec<String> = sources.iter().flat_map(|name| find(name, &docstrings(&read(name)), &words)).collect();
    none_found(&found);
}

#[test]
fn doc_comments_say_what_things_are() {
    let folders =
        ["crates/relvec/src", "crates/relvec-predict/src", "crates/relvec-cli/src", "python/src", "r/src/rust/src", "xtask/src"];
    let sources: Vec<String> = folders.iter().flat_map(|folder| files(folder, &["rs"], true)).collect();
    let mut found = vec![];
    for name in &sources {
        let comments = doc_comments(&read(name));
        found.extend(find(name, &comments, WORDS));
        found.extend(find_beginnings(name, &comments));
    }
    none_found(&found);
}

#[test]
fn doc_comments_of_array_functions_state_shapes() {
    let sources = [files("crates/relvec/src", &["rs"], true), files("crates/relvec-predict/src", &["rs"], true)].concat();
    let sources = sources.iter().filter(|name| !name.ends_with("tests.rs"));
    let (seen, found): (Vec<usize>, Vec<Vec<String>>) = sources.map(|name| find_shapeless(name, &read(name))).unzip();
    none_found(&found.concat());
    assert!(seen.iter().sum::<usize>() > 300, "{seen:?}");
}

#[test]
fn functions_without_shapes_are_found() {
    for shape in ["x: `[N, D]`", "of `[N]`", "[1 + M, C]", "[R M, R M]", "`[N']`"] {
        assert!(states_a_shape(shape), "{shape}");
    }
    for none in ["in [0, 1]", "[`Model::predict`]", "[Model]", "[rows, all](of)", "no shape", "[N"] {
        assert!(!states_a_shape(none), "{none}");
    }
    let text = "/// Rows.\nfn a(x: ArrayView2<f64>) {\n}\n/// `[N]`.\n#[inline]\npub fn b(\n    x: &Array1<f64>,\n) {\n}\n\
                impl A for B {\n    /// Rows.\n    fn c() -> Array2<f64> {\n    }\n}\npub fn d() -> Array2<f64> {\n}\n\
                /// As [`a`].\nfn e() {\n}\nfn f(x: &Array1<f64>) {\n}\n#[cfg(test)]\nmod tests {\npub fn g() -> Array2<f64> {\n}\n}\n";
    let (seen, found) = find_shapeless("a.rs", text);
    let found: Vec<&str> = found.iter().filter_map(|f| f.split(';').next()).collect();
    assert_eq!(found, ["a.rs:2: `a` states no shape", "a.rs:15: `d` states no shape", "a.rs:18: begins with a link"]);
    assert_eq!(seen, 3);
}

#[test]
fn private_words_of_a_text_are_found() {
    let places =
        |found: Vec<String>| -> Vec<String> { found.iter().map(|f| f.split(';').next().unwrap_or("").to_string()).collect() };
    let text = "Classes are told\napart ANEW, `twin` and renewed.\n```sh\nduels\n```\n1 row(s)";
    let found = places(find("a.md", &prose(text), WORDS));
    assert_eq!(found, ["a.md:1: `told apart`", "a.md:2: `anew`", "a.md:6: `row(s)`"]);

    let text = "dear = 1\n\"\"\"One line, dear.\"\"\"\ntwin = 2\n\"\"\"Two\nlines sooner\n\"\"\"\nduels = 3";
    assert_eq!(places(find("a.py", &docstrings(text), WORDS)), ["a.py:2: `dear`", "a.py:5: `sooner`"]);

    let text = "let twin = \"a \\\"dear\\\" one\"; let twins = 1; // sooner\n/// Twins.\nlet a = \"told \\\n    apart\";";
    assert_eq!(places(find("a.rs", &printed(text), WORDS)), ["a.rs:1: `dear`", "a.rs:2: `twins`", "a.rs:3: `told apart`"]);

    let text = "/// The same for rows.\nfn a() {}\n/// Rows, and\n/// The same of others.\nfn b() {}\n// anew\n//! Begins anew.";
    let comments = doc_comments(text);
    assert_eq!(places(find_beginnings("a.rs", &comments)), ["a.rs:1: begins with `The same`"]);
    assert_eq!(places(find("a.rs", &comments, WORDS)), ["a.rs:7: `anew`"]);
}
