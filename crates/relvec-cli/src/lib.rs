//! The command line of relvec, as a library: the binary and the Python wheel call the same [`main`].

/// Prints a line of words on stderr.
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::tell(&format!("{}\n", format_args!($($words)*))) };
}

// The floors: a file may use the groups above its own, never its own or one below (a test checks).
mod terminal;

mod args;
mod failure;
mod interpolation;
mod layout;
mod metrics;
mod text;
mod tuning;

mod live;

mod figures;
mod model_file;
mod output;
mod problems;
mod progress;
mod settings;
mod sink;
mod summary;
mod table;

mod encoding;

mod blocks;
mod decision;
mod target;

mod contents;
mod measures;

mod training;

mod stream;

mod compare;
mod demo;
mod describe;
mod export;
mod fit;
mod inspect;
mod manual;
mod predict;
mod report;
mod reproduce;
mod score;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::FromArgMatches;

use args::{Args, Command};

#[doc(hidden)]
pub use report::{Context, Evaluation, Truth, report_html};

/// Runs the command that `args` (the program's name first) ask for and returns the exit code:
/// 0 done, 1 failed (bad data, bad model), 2 for what the arguments alone show wrong.
///
/// Data go to stdout; words, progress and the one error message to stderr.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let line: Vec<OsString> = args.into_iter().collect();
    let parsed = args::command().try_get_matches_from(&line).and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(e) => {
            // `--help` and `--version` arrive here too, with exit code 0. A closed pipe is no news.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    terminal::set(args.level(), args.color);
    let done = match &args.command {
        Command::Describe(args) => describe::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Score(args) => score::run(args),
        Command::Report(args) => report::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Export(args) => export::run(args),
        Command::Import(args) => export::import(args),
        Command::Compare(args) => compare::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::pages(args),
    };
    terminal::release();
    match done {
        Ok(()) => 0,
        Err(e) => failure::report(&e, &line),
    }
}

/// Reads a table as a fit does, `most` rows at most, and returns how many rows and columns it has: for tests of what its
/// readers make of damaged files.
///
/// # Errors
/// The message of a file that cannot be read.
#[doc(hidden)]
pub fn read_table(path: &Path, most: usize) -> Result<(usize, usize), String> {
    let read = || -> anyhow::Result<(usize, usize)> {
        let mut table = table::Table::open(path, &args::ReadArgs::default())?;
        let columns = table.columns().len();
        let last = columns - 1;
        let mut target = target::Target::new(&table.columns()[last], false);
        let places: Vec<usize> = (0..last).collect();
        let mut features = encoding::Columns::new(&table, &places, &[], None)?;
        while table.row() < most && table.advance()? {
            // Cells that are no numbers, too, are read to the end.
            (0..last).for_each(|column| drop(table.number(column)));
            let mut row = vec![];
            if features.row(&table, &mut row).is_ok() {
                features.weigh(&row, 1.0);
            }
            drop(target.push(&table, last));
        }
        let rows = table.row();
        // Whether there is something to learn is another question.
        drop(target.guess_task().and_then(|(task, _)| target.learn(task)));
        Ok((rows, columns))
    };
    read().map_err(|e| format!("{e:#}"))
}

/// What a text in a column of features is: `number`, `date`, `quantity` (a number with a unit or in unusual spelling, or a sign) or
/// `name`. The Python package reads tables by the same rules.
#[doc(hidden)]
pub fn kind_of_text(text: &str) -> &'static str {
    encoding::kind_of_text(text).name()
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
