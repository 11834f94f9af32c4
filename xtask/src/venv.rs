//! A Python virtual environment, created if missing, and its programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, output_of, root, run};

/// Oldest Python that the package supports.
const OLDEST: [u32; 2] = [3, 10];

/// A virtual environment in a folder of the workspace, with its initial tools.
pub struct Venv {
    pub folder: &'static str,
    pub tools: &'static [&'static str],
}

impl Venv {
    /// Creates the environment if it is missing or another Python is in use.
    pub fn ready(&self) -> Result {
        let base = base_python()?;
        let version = output_of(Command::new(&base).args(["-c", "import sys; print(*sys.version_info[:3])"]))?;
        let numbers: Vec<u32> = version.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        if numbers < OLDEST.to_vec() {
            return Err(format!("{base} is Python {}; {}.{} or later is needed", version.trim(), OLDEST[0], OLDEST[1]));
        }
        let stamp = self.path().join("made-by");
        let wanted = format!("{base} {version}");
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        self.emptied()?;
        fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))
    }

    /// Creates the environment with only its tools.
    pub fn emptied(&self) -> Result {
        run(Command::new(base_python()?).args(["-m", "venv", "--clear"]).arg(self.path()))?;
        self.pip(&["--upgrade", "pip"])?;
        if self.tools.is_empty() { Ok(()) } else { self.pip(self.tools) }
    }

    /// Installs packages.
    pub fn pip(&self, arguments: &[&str]) -> Result {
        self.python(&[&["-m", "pip", "install", "--quiet"], arguments].concat())
    }

    /// Builds the wheel with a profile of cargo into a folder that keeps only the newest wheel, and installs it with
    /// some of its extras.
    pub fn install_package(&self, profile: &str, wheels: &str, extras: &str) -> Result {
        let folder = root().join(wheels);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        self.tool("maturin", &["build", "--quiet", "--locked", "--profile", profile, "--strip", "--out", wheels])?;
        let wheel = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten().map(|e| e.path()).next();
        let wheel = wheel.ok_or("maturin has built no wheel")?.to_string_lossy().into_owned();
        self.pip(&[&format!("{wheel}{extras}")])?;
        // pip would not reinstall an equal version.
        self.pip(&["--no-deps", "--force-reinstall", &wheel])
    }

    /// Runs Python.
    pub fn python(&self, arguments: &[&str]) -> Result {
        self.tool("python", arguments)
    }

    /// Runs a program of the environment.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> Result {
        run(&mut self.command(name, arguments))
    }

    /// Runs Python and returns what it prints.
    pub fn python_output(&self, arguments: &[&str]) -> Result<String> {
        output_of(&mut self.command("python", arguments))
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        // Settings of the caller's environment must not affect ours.
        let mut command = Command::new(self.program(name));
        command
            .args(arguments)
            .env("VIRTUAL_ENV", self.path())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .env("MPLBACKEND", "Agg");
        command
    }

    fn path(&self) -> PathBuf {
        root().join(self.folder)
    }

    fn program(&self, name: &str) -> PathBuf {
        let folder = if cfg!(windows) { Path::new("Scripts") } else { Path::new("bin") };
        self.path().join(folder).join(name).with_extension(std::env::consts::EXE_EXTENSION)
    }
}

/// Returns `PYTHON`, or the first usual name of Python that starts.
fn base_python() -> Result<String> {
    if let Ok(name) = std::env::var("PYTHON") {
        return Ok(name);
    }
    let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let found = ["python3", "python"].into_iter().find(starts);
    found.map(String::from).ok_or_else(|| "no Python found: install Python 3.10 or later, or set PYTHON".into())
}
