//! The Python package: built as a wheel into a virtual environment of its own, and checked there.

use std::fs;
use std::process::Command;

use crate::venv::Venv;
use crate::{Result, cargo, output_of, root};

const VENV: Venv = Venv { folder: "target/venv", tools: &["maturin>=1.9.4,<2", "ruff>=0.8"] };

/// Has Dask, Spark and Ray, which no other test or module may need.
const WITH_ENGINES: Venv = Venv { folder: "target/venv-engines", tools: VENV.tools };

/// Tests that need the engines.
const ENGINES: &str = "python/tests/engines";

/// Formats the Python files.
pub fn format() -> Result {
    VENV.ready()?;
    VENV.tool("ruff", &["format", "python"])
}

/// Checks style and types, and builds and tests the package.
pub fn check() -> Result {
    VENV.ready()?;
    VENV.tool("ruff", &["format", "--check", "python"])?;
    VENV.tool("ruff", &["check", "python"])?;
    install()?;
    VENV.tool("mypy", &[])?;
    pytest("not slow and not browser and not recipes")
}

/// Runs tests that are marked as slow.
pub fn check_slow() -> Result {
    install()?;
    pytest("slow")
}

/// Runs scikit-learn's own tests with the support vector machines of this package.
pub fn check_sklearn_svm() -> Result {
    install()?;
    VENV.python(&["python/tests/sklearn_svm.py"])
}

/// Runs tests by their marks, in a process for each processor, since most have small problems that do not use several.
fn pytest(marks: &str) -> Result {
    let processes = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    VENV.python(&["-m", "pytest", "-n", &processes, "-m", marks, "--ignore", ENGINES])
}

/// Tests fits on engines, in a process for each engine, since an engine starts own processes and keeps its settings.
pub fn check_engines() -> Result {
    WITH_ENGINES.ready()?;
    WITH_ENGINES.install_package("dev", "target/wheels", "[test,dask,spark,ray]")?;
    let java = output_of(Command::new("java").arg("--version"));
    java.map_err(|e| format!("Spark needs Java 17 or later: install it, and put it on the path. {e}"))?;
    ["documentation", "dask", "spark", "ray", "tutorial"].iter().try_for_each(|name| {
        let tests = format!("{ENGINES}/test_{name}.py");
        WITH_ENGINES.python(&["-m", "pytest", &tests])
    })
}

/// Measures the peak memory of fits and of streaming.
pub fn bench() -> Result {
    install()?;
    VENV.python(&["python/benchmarks/memory.py"])?;
    cargo("build --release -p relvec-cli")?;
    let streaming = ["python/benchmarks/streaming.py", "target/release/relvec"];
    VENV.python(&streaming)?;
    VENV.python(&[&streaming[..], &["--classes", "--landmarks", "100", "--formats", "npy"]].concat())
}

/// Measures learned kernels and centres on real tables.
pub fn bench_scale(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/scale.py", arguments)
}

/// Compares support vector machines with LIBSVM.
pub fn bench_svm(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/libsvm.py", arguments)
}

/// Compares support vector machines on sparse rows with scikit-learn.
pub fn bench_sparse(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/sparse_rows.py", arguments)
}

/// Measures exported models: agreement with relvec, and sizes on processors.
pub fn bench_exports() -> Result {
    VENV.ready()?;
    VENV.install_package("release", "target/scale/wheels", "[test]")?;
    VENV.pip(&["m2cgen==0.10.0"])?;
    VENV.python(&["python/benchmarks/exported.py"])
}

/// Measures the reliability of error bars.
pub fn bench_uncertainty(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/uncertainty.py", arguments)
}

/// Compares class probabilities, moderated and not, with those of scikit-learn.
pub fn bench_calibration(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/calibration.py", arguments)
}

/// Compares fits without settings with a dense process and other learners.
pub fn bench_defaults(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/defaults.py", arguments)
}

/// Measures regressions with wrong targets.
pub fn bench_outliers(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/outliers.py", arguments)
}

/// Compares regressions of counts with those of scikit-learn.
pub fn bench_counts(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/counts.py", arguments)
}

/// Repeats the experiments of the papers.
pub fn bench_reproduce(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/reproduce.py", arguments)
}

/// Compares fits on Dask, Spark and Ray with one process.
pub fn bench_engines(arguments: &[&str]) -> Result {
    WITH_ENGINES.ready()?;
    WITH_ENGINES.install_package("release", "target/scale/wheels", "[test,dask,spark,ray]")?;
    WITH_ENGINES.python(&[&["python/benchmarks/engines.py"], arguments].concat())
}

/// Measures the effect of each constant and part of the search.
pub fn ablate(arguments: &[&str]) -> Result {
    bench_released("python/benchmarks/ablate.py", arguments)
}

/// Runs a program with the package in release mode.
fn bench_released(program: &str, arguments: &[&str]) -> Result {
    VENV.ready()?;
    VENV.install_package("release", "target/scale/wheels", "[test]")?;
    VENV.python(&[&[program], arguments].concat())
}

/// Tests the examples of the pages, and builds the site.
pub fn doc() -> Result {
    install()?;
    // The recipes need more packages: `python/tests/test_recipes.py`.
    VENV.python(&["-m", "pytest", "--doctest-glob=*.rst", "--ignore=docs/python/how-to/recipes.rst", "docs/python"])?;
    site()
}

/// Folders that the build of the site writes.
const MADE: &[&str] =
    &["docs/python/documents", "docs/python/examples", "docs/python/generated", "docs/python/tutorials/python", SITE];

/// The site: one folder of static files, with the pages of rustdoc in it.
const SITE: &str = "target/site";

/// The npm package that predicts with ONNX in a browser, its files used by the site, and their folder.
const ONNX_IN_BROWSERS: &str = "onnxruntime-web@1.30.0";
const PARTS_IN_BROWSERS: &[&str] = &["package/dist/ort.wasm.bundle.min.mjs", "package/dist/ort-wasm-simd-threaded.wasm"];
const STATIC_FILES: &str = "target/onnxruntime-web";

/// Downloads onnxruntime-web. The folder of static files exists only if it is complete.
pub fn vendor() -> Result {
    let [packed, folder] = ["target/npm", STATIC_FILES].map(|folder| root().join(folder));
    let fail = |e: std::io::Error| format!("{}: {e}", packed.display());
    let unpacked = packed.join("static/onnxruntime");
    fs::create_dir_all(&unpacked).map_err(fail)?;
    let mut npm = Command::new("npm");
    let archive = output_of(npm.args(["pack", ONNX_IN_BROWSERS, "--silent", "--pack-destination"]).arg(&packed))?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(packed.join(archive.trim())).arg("-C").arg(&unpacked).args(["--strip-components", "2"]);
    output_of(tar.args(PARTS_IN_BROWSERS))?;
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(fail)?;
    }
    fs::rename(packed.join("static"), folder).map_err(fail)
}

/// Builds the site, with warnings as errors. The pages of rustdoc must exist.
fn site() -> Result {
    // Pages of removed examples must not remain.
    for made in MADE {
        let folder = root().join(made);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    VENV.python(&["-m", "sphinx", "-q", "-b", "html", "-W", "--keep-going", "docs/python", SITE])?;
    let copy = "import shutil, sys; shutil.copytree(*sys.argv[1:], dirs_exist_ok=True)";
    VENV.python(&["-c", copy, "target/doc", &format!("{SITE}/rust")])
}

/// Tests the site in a browser.
pub fn check_browser() -> Result {
    VENV.ready()?;
    VENV.install_package("dev", "target/wheels", "[test,docs,browser]")?;
    if !root().join(STATIC_FILES).is_dir()
        && let Err(problem) = vendor()
    {
        eprintln!("the model in the page how-to/browser is left out, and not tested: {problem}");
    }
    site()?;
    VENV.python(&["-m", "pytest", "-m", "browser", "python/tests/browser"])
}

/// Tests recipes of the documentation that need large programs.
pub fn check_recipes() -> Result {
    VENV.ready()?;
    VENV.install_package("dev", "target/wheels", "[test,recipes]")?;
    VENV.python(&["-m", "pytest", "-m", "recipes", "--ignore", ENGINES])
}

/// Installs the package with the profile of the Rust tests.
fn install() -> Result {
    VENV.ready()?;
    VENV.install_package("dev", "target/wheels", "[test,docs]")
}
