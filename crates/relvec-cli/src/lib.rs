//! The command line of relvec, as a library: the binary and the Python wheel call the same [`main`].

/// Prints a line of text on stderr.
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::tell(&format!("{}\n", format_args!($($words)*))) };
}

// Layers: a file may use modules of the groups above its own, but no module of its own or a lower group (a test
// checks).
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
mod score;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::FromArgMatches;

use args::{Args, Command};

#[doc(hidden)]
pub use report::{Context, Evaluation, Truth, report_html};
pub use summary::{Widths, widths};

/// Runs the command line `args`, with the program's name first, and returns the exit code: 0 for success, 1 for an
/// error such as bad data or a bad model, 2 for wrong arguments.
///
/// Data go to stdout; messages, progress and errors go to stderr.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let line: Vec<OsString> = args.into_iter().collect();
    let parsed = args::command().try_get_matches_from(&line).and_then(|matches| Args::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(e) => {
            // `--help` and `--version` also end here, with exit code 0. A closed pipe is not an error.
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
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::pages(args),
    };
    terminal::release();
    match done {
        Ok(()) => 0,
        Err(e) => failure::report(&e, &line),
    }
}

/// Reads at most `most` rows of a table as a fit does, and returns the numbers of rows and columns. Tests use it to
/// read damaged files.
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
            // Errors of cells that are not numbers are ignored, so that all cells are read.
            (0..last).for_each(|column| drop(table.number(column)));
            let mut row = vec![];
            if features.row(&table, &mut row).is_ok() {
                features.weigh(&row, 1.0);
            }
            drop(target.push(&table, last));
        }
        let rows = table.row();
        // Whether a target can be learned is not tested here.
        drop(target.guess_task().and_then(|(task, _)| target.learn(task)));
        Ok((rows, columns))
    };
    read().map_err(|e| format!("{e:#}"))
}

/// Returns the kind of a text in a column of features: `number`, `date`, `quantity` (a number with a unit or in unusual
/// spelling, or a sign) or `name`. The Python package reads tables by the same rules.
#[doc(hidden)]
pub fn kind_of_text(text: &str) -> &'static str {
    encoding::kind_of_text(text).name()
}

/// Writes the file `path` completely or not at all. It follows links, writes into pipes and devices, and keeps the
/// permissions of a file that it replaces. On Linux no temporary file remains if the program is ended during this.
///
/// # Errors
/// The error of the system with its kind, and the path.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    output::write(path, bytes).map_err(|e| {
        let kind = e.chain().find_map(|e| e.downcast_ref::<io::Error>()).map_or(io::ErrorKind::Other, io::Error::kind);
        io::Error::new(kind, format!("{e:#}"))
    })
}
