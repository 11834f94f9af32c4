//! The command line of relvec, as a library: the binary and the Python wheel call the same [`main`].

/// Prints a line of words on stderr.
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::tell(&format!("{}\n", format_args!($($words)*))) };
}

// The floors: a file may use the groups above its own, never its own or one below (a test checks).
mod terminal;

mod args;
mod failure;
mod metrics;
mod text;
mod tuning;

mod figures;
mod model_file;
mod output;
mod problems;
mod progress;
mod quantiles;
mod settings;
mod summary;
mod table;

mod blocks;
mod decision;
mod target;

mod training;

mod stream;

mod compare;
mod demo;
mod fit;
mod inspect;
mod predict;
mod reproduce;
mod score;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Parser;

use args::{Args, Command};

/// Runs the command that `args` (the program's name first) ask for and returns the exit code:
/// 0 done, 1 failed (bad data, bad model), 2 for what the arguments alone show wrong.
///
/// Data go to stdout; words, progress and the one error message to stderr.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(e) => {
            // `--help` and `--version` arrive here too, with exit code 0. A closed pipe is no news.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    let done = match &args.command {
        Command::Fit(args) => fit::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Score(args) => score::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Reproduce(args) => reproduce::run(args),
    };
    match done {
        Ok(()) => 0,
        Err(e) => failure::report(&e),
    }
}

/// Writes the file `path` as the command does: whole or not at all, with the permissions of the file that it replaces, through
/// links, into pipes and devices. On Linux nothing stays behind if the program is ended meanwhile.
///
/// # Errors
/// What the system says, by its kind, with the path.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    output::write(path, bytes).map_err(|e| {
        let kind = e.chain().find_map(|e| e.downcast_ref::<io::Error>()).map_or(io::ErrorKind::Other, io::Error::kind);
        io::Error::new(kind, format!("{e:#}"))
    })
}
