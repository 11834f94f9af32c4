//! Headers of models of every kind, in one program: each predicts its ten rows as relvec does.

mod models;

use std::fs;
use std::path::Path;
use std::process::Command;

use relvec_export::{COptions, CPrecision, Error, to_c};

/// A program that runs the self-tests of all models in a folder and says which fails.
fn program(folder: &Path, precision: CPrecision) -> usize {
    let (mut includes, mut calls, mut written) = (String::new(), String::new(), 0);
    for (name, model) in models::all() {
        let options = COptions { name: name.clone(), precision, std: true };
        match to_c(&model, &options) {
            Ok(text) => {
                fs::write(folder.join(format!("{name}.h")), text).unwrap();
                includes += &format!("#define {}_SELF_TEST\n#include \"{name}.h\"\n", name.to_uppercase());
                calls += &format!("    row = {name}_self_test();\n    if (row) printf(\"{name}: row %d\\n\", row);\n");
                written += 1;
            }
            Err(Error::HealedVariance { .. }) => assert!(name.contains("healed"), "{name}"),
            Err(Error::ExternalKernel { .. }) => assert_eq!(name, "rvr_precomputed"),
            // Its weights are large and cancel.
            Err(Error::Precision { .. }) => assert!(name == "rvr_sigmoid" && precision == CPrecision::Int16, "{name}"),
            Err(other) => panic!("{name}: {other}"),
        }
    }
    let main = format!("#include <stdio.h>\n{includes}int main(void) {{\n    int row;\n{calls}    return 0;\n}}\n");
    fs::write(folder.join("main.c"), main).unwrap();
    written
}

/// A C compiler is there: Rust links with it.
#[test]
fn headers_of_all_kinds_predict_their_rows() {
    for precision in [CPrecision::Double, CPrecision::Float, CPrecision::Int16] {
        let folder = tempfile::tempdir().unwrap();
        assert!(program(folder.path(), precision) >= 105);
        for (language, standard) in [("c", "c99"), ("c++", "c++11")] {
            let mut compiler = Command::new(if language == "c" { "cc" } else { "c++" });
            compiler.args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]);
            let done =
                compiler.args(["main", "main.c", "-lm"]).current_dir(folder.path()).output().expect("a C and a C++ compiler");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let run = Command::new(folder.path().join("main")).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&run.stdout), "", "{precision:?} {language}");
            assert!(run.status.success());
        }
    }
}

#[test]
fn a_name_that_is_none_in_c_is_refused() {
    let (_, model) = models::pinned().into_iter().find(|(name, _)| name == "rvr_rbf").unwrap();
    for name in ["", "1st", "a b", "while", "größe", "_hidden"] {
        let error = to_c(&model, &COptions { name: name.into(), ..COptions::default() }).unwrap_err();
        assert!(matches!(&error, Error::Name { found } if found == name), "{error}");
    }
}

#[test]
fn standard_deviations_are_left_out_where_they_are_not_asked_for() {
    let (_, model) = models::pinned().into_iter().find(|(name, _)| name == "rvr_rbf").unwrap();
    let all = to_c(&model, &COptions::default()).unwrap();
    let means = to_c(&model, &COptions { std: false, ..COptions::default() }).unwrap();
    assert!(all.contains("model_real *std") && !means.contains("std") && means.len() < all.len());
}

/// Self-tests on emulated processors: `cargo xtask test cross` runs them, and says what to install.
mod on_processors {
    use super::*;

    /// Runs a program, which has to end well, in the folder; what it prints.
    fn output(folder: &Path, program: &str, arguments: &[&str]) -> String {
        let run = Command::new(program).args(arguments).current_dir(folder).output();
        let run = run.unwrap_or_else(|e| panic!("{program} is needed: {e}"));
        let [out, err] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(run.status.success(), "{program} {arguments:?}\n{out}{err}");
        out + &err
    }

    #[test]
    #[ignore = "needs arm-none-eabi-gcc and qemu-system-arm"]
    fn headers_of_all_kinds_predict_their_rows_on_a_cortex_m4() {
        let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relvec-predict/examples/microcontroller/start.c");
        for precision in [CPrecision::Double, CPrecision::Float, CPrecision::Int16] {
            let folder = tempfile::tempdir().unwrap();
            assert!(program(folder.path(), precision) >= 105);
            let processor = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "--specs=rdimon.specs"];
            let strict = ["-std=c99", "-Os", "-Wall", "-Wextra", "-Werror"];
            let places = ["-Wl,-u,vectors,--section-start=.vectors=0,--defsym=__stack=0x20400000"];
            let files = ["main.c", start.to_str().unwrap(), "-lm", "-o", "main"];
            output(folder.path(), "arm-none-eabi-gcc", &[&processor[..], &strict, &places, &files].concat());
            let board = ["-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "null"];
            let told = output(folder.path(), "qemu-system-arm", &[&board[..], &["-semihosting", "-kernel", "main"]].concat());
            assert_eq!(told, "", "{precision:?}");
        }
    }

    /// One program for each header: memory for programs is 32 kB. It writes the number of the row that fails, or 0, in the
    /// alphabet to its serial line.
    const ON_AVR: &str = r#"
        #include <avr/interrupt.h>
        #include <avr/io.h>
        #include <avr/sleep.h>
        #define MODEL_SELF_TEST
        #include "model.h"
        int main(void) {
            UCSR0B = 1 << TXEN0;
            UDR0 = 'a' + model_self_test();
            while (!(UCSR0A & 1 << TXC0)) {}
            UDR0 = '\n';
            while (!(UCSR0A & 1 << UDRE0)) {}
            /* An emulator ends where nothing can wake the processor. */
            cli();
            sleep_mode();
            return 0;
        }
    "#;

    #[test]
    #[ignore = "needs avr-gcc and simavr"]
    fn headers_of_all_kinds_predict_their_rows_on_an_atmega328p() {
        for precision in [CPrecision::Float, CPrecision::Int16] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("main.c"), ON_AVR).unwrap();
            let mut run = 0;
            for (name, model) in models::all() {
                let Ok(text) = to_c(&model, &COptions { precision, ..COptions::default() }) else { continue };
                fs::write(folder.path().join("model.h"), text).unwrap();
                let options = ["-mmcu=atmega328p", "-DF_CPU=16000000UL", "-std=c99", "-Os", "-Wall", "-Wextra", "-Werror"];
                output(folder.path(), "avr-gcc", &[&options[..], &["main.c", "-lm", "-o", "main"]].concat());
                let told = output(folder.path(), "simavr", &["-m", "atmega328p", "-f", "16000000", "main"]);
                // The emulator shows lines of the serial line in green, and other bytes than letters as points.
                assert!(told.lines().any(|line| line == "\u{1b}[32ma."), "{name} {precision:?}: {told}");
                run += 1;
            }
            assert!(run >= 105, "{run}");
        }
    }
}
