//! The Python package: built as a wheel into a virtual environment of its own, and checked there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, output_of, root, run};

/// Oldest Python that the package supports.
const OLDEST: [u32; 2] = [3, 10];
/// Where the wheel is put; only the newest is kept there.
const WHEELS: &str = "target/wheels";

/// Formats the Python files.
pub fn format() -> Result {
    tool("ruff", &["format", "python"])
}

/// Style and types, the package, its tests.
pub fn check() -> Result {
    tool("ruff", &["format", "--check", "python"])?;
    tool("ruff", &["check", "python"])?;
    install()?;
    tool("mypy", &[])?;
    python(&["-m", "pytest"])
}

/// Peak memory of a fit.
pub fn bench() -> Result {
    install()?;
    python(&["python/benchmarks/memory.py"])
}

/// User guide, examples and reference; warnings are errors.
pub fn doc() -> Result {
    install()?;
    // A page made of an example that is gone would stay.
    for made in ["docs/python/gallery", "docs/python/generated"] {
        let folder = root().join(made);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    python(&["-m", "pytest", "--doctest-glob=*.rst", "docs/python"])?;
    python(&["-m", "sphinx", "-q", "-b", "html", "-W", "--keep-going", "docs/python", "target/docs/python"])
}

/// Builds the wheel from what is compiled for the Rust tests, and installs it.
fn install() -> Result {
    environment()?;
    let wheels = root().join(WHEELS);
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?;
    }
    tool("maturin", &["build", "--quiet", "--locked", "--profile", "dev", "--strip", "--out", WHEELS])?;
    let wheel = fs::read_dir(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?.flatten().map(|e| e.path()).next();
    let wheel = wheel.ok_or("maturin has built no wheel")?.to_string_lossy().into_owned();
    python(&["-m", "pip", "install", "--quiet", &format!("{wheel}[test,docs]")])?;
    // The same version is not installed anew by itself.
    python(&["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", &wheel])
}

/// The virtual environment with the tools; made anew when it is missing or another Python is in use.
fn environment() -> Result {
    let base = base_python()?;
    let version = output_of(Command::new(&base).args(["-c", "import sys; print(*sys.version_info[:3])"]))?;
    let numbers: Vec<u32> = version.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    if numbers < OLDEST.to_vec() {
        return Err(format!("{base} is Python {}; {}.{} or later is needed", version.trim(), OLDEST[0], OLDEST[1]));
    }
    let stamp = venv().join("made-by");
    let wanted = format!("{base} {version}");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    run(Command::new(&base).args(["-m", "venv", "--clear"]).arg(venv()))?;
    python(&["-m", "pip", "install", "--quiet", "--upgrade", "pip"])?;
    python(&["-m", "pip", "install", "--quiet", "maturin>=1.9.4,<2", "ruff>=0.8"])?;
    fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// `PYTHON`, or the first of the usual names that starts.
fn base_python() -> Result<String> {
    if let Ok(name) = std::env::var("PYTHON") {
        return Ok(name);
    }
    let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let found = ["python3", "python"].into_iter().find(starts);
    found.map(String::from).ok_or_else(|| "no Python found: install Python 3.10 or later, or set PYTHON".into())
}

fn venv() -> PathBuf {
    root().join("target/venv")
}

/// A program of the virtual environment.
fn program(name: &str) -> PathBuf {
    let folder = if cfg!(windows) { Path::new("Scripts") } else { Path::new("bin") };
    venv().join(folder).join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

fn python(arguments: &[&str]) -> Result {
    tool("python", arguments)
}

fn tool(name: &str, arguments: &[&str]) -> Result {
    if name != "python" {
        environment()?;
    }
    // What the caller's own environment sets must not reach into ours.
    let mut command = Command::new(program(name));
    command.args(arguments).env("VIRTUAL_ENV", venv()).env_remove("PYTHONPATH").env_remove("PYTHONHOME").env("MPLBACKEND", "Agg");
    run(&mut command)
}
