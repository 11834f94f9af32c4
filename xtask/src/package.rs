//! What is published, as those who install it get it: `cargo xtask test package`.

use std::fs;
use std::path::PathBuf;

use crate::venv::Venv;
use crate::{Result, cargo, pages, root};

/// Programs that check packages and files of the repository.
const TOOLS: Venv = Venv { folder: "target/venv-package", tools: &["check-jsonschema>=0.30", "maturin>=1.9.4,<2", "twine>=6.1"] };

/// Environments with nothing in them, for the wheel and for the source distribution.
const WHEEL: Venv = Venv { folder: "target/venv-wheel", tools: &[] };
const SOURCE: Venv = Venv { folder: "target/venv-source", tools: &[] };

/// Where wheel and source distribution are built.
const BUILT: &str = "target/package-python";

/// Forms and settings that other services read, and the schemas that they follow.
const FORMS: &[(&str, &str)] = &[
    (".github/workflows", "vendor.github-workflows"),
    (".github/ISSUE_TEMPLATE", "vendor.github-issue-forms"),
    (".github/ISSUE_TEMPLATE/config.yml", "vendor.github-issue-config"),
    ("CITATION.cff", "vendor.citation-file-format"),
];

/// Checks pages, forms, crates and the Python package.
pub fn check() -> Result {
    pages::check()?;
    TOOLS.ready()?;
    for (place, schema) in FORMS {
        let files = files_of(place)?;
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        TOOLS.tool("check-jsonschema", &[&["--builtin-schema", schema], files.as_slice()].concat())?;
    }
    python()?;
    // Files that are not committed would be published as well; a release is made from a clean checkout (docs/releasing.md).
    cargo("publish --workspace --dry-run --locked --allow-dirty")
}

/// Builds the wheel and the source distribution; installs each into an empty environment and tries it there.
fn python() -> Result {
    let folder = root().join(BUILT);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // With the profile of the tests: what is compiled for them is not compiled once more.
    TOOLS.tool("maturin", &["build", "--quiet", "--locked", "--profile", "dev", "--strip", "--out", BUILT])?;
    TOOLS.tool("maturin", &["sdist", "--out", BUILT])?;
    let (wheel, source) = (built(".whl")?, built(".tar.gz")?);
    TOOLS.tool("twine", &["check", "--strict", &wheel, &source])?;

    WHEEL.emptied()?;
    WHEEL.pip(&[&format!("{wheel}[plot]")])?;
    WHEEL.python(&["python/tests/smoke.py", "plot"])?;
    let names = "from importlib.metadata import metadata; print(*metadata('relvec').get_all('Provides-Extra'), sep=',')";
    let extras = WHEEL.python_output(&["-c", names])?;
    WHEEL.pip(&["--dry-run", &format!("{wheel}[{}]", extras.trim())])?;

    SOURCE.emptied()?;
    let target = root().join("target");
    let settings = format!("build-args=--profile dev --target-dir {}", target.display());
    SOURCE.pip(&["--config-settings", &settings, &source])?;
    SOURCE.python(&["python/tests/smoke.py"])
}

/// The only file of a kind that has been built.
fn built(ending: &str) -> Result<String> {
    let files: Vec<String> = files_of(BUILT)?.into_iter().filter(|name| name.ends_with(ending)).collect();
    match files.as_slice() {
        [file] => Ok(file.clone()),
        _ => Err(format!("{BUILT} holds {} files that end in `{ending}`: expected 1", files.len())),
    }
}

/// A file, or the files of a folder but `config.yml`, which has a schema of its own.
fn files_of(place: &str) -> Result<Vec<String>> {
    let path = root().join(place);
    if path.is_file() {
        return Ok(vec![place.into()]);
    }
    let entries = fs::read_dir(&path).map_err(|e| format!("{place}: {e}"))?;
    let paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file() && !p.ends_with("config.yml")).collect();
    if paths.is_empty() {
        return Err(format!("{place} holds no file"));
    }
    Ok(paths.iter().map(|p| p.to_string_lossy().into_owned()).collect())
}
