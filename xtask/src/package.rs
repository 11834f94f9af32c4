//! Tests the published packages as they are installed: `cargo xtask test package`.

use std::fs;
use std::path::PathBuf;

use crate::venv::Venv;
use crate::{Result, cargo, pages, root};

/// Programs that check packages and files of the repository.
const TOOLS: Venv = Venv { folder: "target/venv-package", tools: &["check-jsonschema>=0.30", "maturin>=1.9.4,<2", "twine>=6.1"] };

/// Empty environments for the wheel and for the source distribution.
const WHEEL: Venv = Venv { folder: "target/venv-wheel", tools: &[] };
const SOURCE: Venv = Venv { folder: "target/venv-source", tools: &[] };

/// Build folder of wheel and source distribution.
const BUILT: &str = "target/package-python";

/// Forms and settings for other services, with their schemas.
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
    // Uncommitted files would also be published; a release is made from a clean checkout (docs/releasing.md).
    cargo("publish --workspace --dry-run --locked --allow-dirty")
}

/// Builds the wheel and the source distribution, installs each into an empty environment and tests it there.
fn python() -> Result {
    let folder = root().join(BUILT);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // With the profile of the tests, so that code is not compiled again.
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

/// Returns the only built file with an ending.
fn built(ending: &str) -> Result<String> {
    let files: Vec<String> = files_of(BUILT)?.into_iter().filter(|name| name.ends_with(ending)).collect();
    match files.as_slice() {
        [file] => Ok(file.clone()),
        _ => Err(format!("{BUILT} holds {} files that end in `{ending}`: expected 1", files.len())),
    }
}

/// Returns a file, or the files of a folder except `config.yml`, which has its own schema.
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
