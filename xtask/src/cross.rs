//! Tests on other processors: `cargo xtask test cross`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checks::TESTS_ON_PROCESSORS;
use crate::{Result, cargo, output_of, root, run};

/// Required programs, with the Debian packages that contain them.
const PROGRAMS: &[(&str, &str)] = &[
    ("avr-gcc", "gcc-avr avr-libc"),
    ("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi"),
    ("qemu-system-arm", "qemu-system-arm"),
    ("simavr", "simavr"),
];

/// Rust targets: a Cortex-M4 without an operating system, on which programs run, and browsers, for which they are
/// compiled.
const CORTEX: &str = "thumbv7em-none-eabihf";
const BROWSER: &str = "wasm32-unknown-unknown";

/// The program that predicts with model files, its parts in C, and its build folder.
const EXAMPLE: &str = "crates/relvec-predict/examples/microcontroller";
const BUILT: &str = "target/cross";
const COMPILER_OF_CORTEX: &str = "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 --specs=rdimon.specs \
     -Wl,-u,vectors,--section-start=.vectors=0,--defsym=__stack=0x20400000,--gc-sections";
const BOARD: &str = "qemu-system-arm -M mps2-an386 -nographic -monitor none -serial null -semihosting-config";

/// Models of every kind.
const MODELS: &str = "crates/relvec/tests/pinned";

/// Largest difference of predictions, relative to the largest of a row. Functions of libm and of the system differ in
/// the last digit, and weights of both signs cancel.
const TOLERANCE: f64 = 1e-13;

/// Tests exported headers on emulated processors, and predictions without the standard library there and on this
/// computer. The predictions are compared with those of the usual build.
pub fn check() -> Result {
    installed()?;
    cargo(&format!("test -p relvec-export --test c -- --ignored {TESTS_ON_PROCESSORS}"))?;
    cargo("test -p relvec-predict --no-default-features")?;
    cargo(&format!("build -p relvec-predict --target {BROWSER}"))?;
    cargo(&format!("build -p relvec-predict --target {BROWSER} --no-default-features"))?;
    let models = models()?;
    let [with, without, cortex] = [
        built("with-std", "", "cc", &[])?,
        built("without-std", "--no-default-features", "cc", &[])?,
        built("cortex", &format!("--no-default-features --target {CORTEX}"), COMPILER_OF_CORTEX, &["start.c"])?,
    ];
    run(Command::new("arm-none-eabi-size").arg(&cortex))?;
    let expected = output_of(Command::new(&with).args(&models))?;
    // The C library of the board accepts only few arguments.
    let on_board = |model: &String| {
        let files = format!("enable=on,target=native,arg=cortex,arg={model}");
        output_of(command(BOARD).arg(files).arg("-kernel").arg(&cortex))
    };
    let found = [output_of(Command::new(&without).args(&models))?, models.iter().map(on_board).collect::<Result<String>>()?];
    let worst = difference(&expected, &found[0])?.max(difference(&expected, &found[1])?);
    println!("{} models: predictions without the standard library differ by {worst:.0e} of the largest at most", models.len());
    Ok(())
}

/// Returns an error that lists all missing programs and targets.
fn installed() -> Result {
    let starts = |name: &str| Command::new(name).arg("--help").output().is_ok();
    let mut missing: Vec<String> = PROGRAMS
        .iter()
        .filter(|(program, _)| !starts(program))
        .map(|(program, packages)| format!("{program}: apt-get install {packages}"))
        .collect();
    let targets = output_of(Command::new("rustc").args(["--print", "sysroot"]))?;
    let libraries = Path::new(targets.trim()).join("lib/rustlib");
    let absent = [CORTEX, BROWSER].into_iter().filter(|target| !libraries.join(target).is_dir());
    missing.extend(absent.map(|target| format!("{target}: rustup target add {target}")));
    if missing.is_empty() { Ok(()) } else { Err(format!("not installed:\n    {}", missing.join("\n    "))) }
}

/// Returns a command from words without spaces.
fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("the name of a program"));
    command.args(words);
    command
}

/// Returns the model files in the repository, sorted.
fn models() -> Result<Vec<String>> {
    let entries = fs::read_dir(root().join(MODELS)).map_err(|e| format!("{MODELS}: {e}"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = names.filter(|name| name.ends_with(".json") && name != "predictions.json").collect();
    files.iter_mut().for_each(|name| *name = format!("{MODELS}/{name}"));
    files.sort();
    if files.is_empty() { Err(format!("{MODELS}: no model files")) } else { Ok(files) }
}

/// Builds the program with options of cargo, optimised for size, and links it with a C compiler.
fn built(name: &str, options: &str, compiler: &str, more: &[&str]) -> Result<PathBuf> {
    let build = format!("cargo build --release -p relvec-predict --example microcontroller --target-dir {BUILT} {options}");
    run(command(&build).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"))?;
    let target = options.split_whitespace().find(|word| *word == CORTEX).unwrap_or("");
    let library = root().join(BUILT).join(target).join("release/examples/libmicrocontroller.a");
    let program = root().join(BUILT).join(name);
    let sources = [&["main.c"], more].concat();
    let sources = sources.iter().map(|source| root().join(EXAMPLE).join(source));
    let strict = ["-std=c99", "-Os", "-Wall", "-Wextra", "-Werror"];
    run(command(compiler).args(strict).args(sources).arg(library).args(["-lm", "-o"]).arg(&program))?;
    Ok(program)
}

/// Returns the largest difference of two lists of predictions, relative to the largest number of a row.
fn difference(expected: &str, found: &str) -> Result<f64> {
    let mut worst = 0.0f64;
    let (all, given) = (expected.lines().count(), found.lines().count());
    if all != given {
        return Err(format!("expected predictions for {all} rows, found {given}"));
    }
    for (expected, found) in expected.lines().zip(found.lines()) {
        let differ = || format!("expected to {TOLERANCE:e}\n    {expected}\nfound\n    {found}");
        let numbers =
            |line: &str| line.split(' ').skip(1).map(|v| v.parse::<f64>().map_err(|_| differ())).collect::<Result<Vec<f64>>>();
        let (expected, found) = (numbers(expected)?, numbers(found)?);
        let largest = expected.iter().fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()));
        let far = |(e, f): (&f64, &f64)| (e - f).abs() / largest;
        let off = expected.iter().zip(&found).map(far).fold(0.0, |most, v| if v <= most { most } else { v });
        if expected.len() != found.len() || !(off <= TOLERANCE) {
            return Err(differ());
        }
        worst = worst.max(off);
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_that_differ_are_an_error() {
        let expected = "a 1 2\na 0.5\n";
        assert_eq!(difference(expected, expected), Ok(0.0));
        assert!(difference(expected, "a 1 2.00000000000001\na 0.5\n").is_ok_and(|off| off > 0.0));
        for found in ["a 1 2.001\na 0.5\n", "a 1\na 0.5\n", "a 1 2\n", "a 1 NaN\na 0.5\n", "a 1 x\na 0.5\n"] {
            assert!(difference(expected, found).is_err(), "{found}");
        }
    }
}
