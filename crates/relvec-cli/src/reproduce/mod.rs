//! `relvec reproduce`: runs the experiments of the papers and prints their numbers beside ours.

mod boston;
mod classes;
mod friedman;
mod outcome;
mod set;
mod sinc;
mod textbook;
mod work;

use std::fmt::Write;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::outcome::{Outcome, Row};
use self::set::{Machine, Set};
use self::work::side_by_side;
use crate::args::{EXPERIMENTS, ReproduceArgs};
use crate::layout::{self, Column};
use crate::output;
use crate::terminal::{self, Stream};
use crate::text::count;

/// Least time between two lines of progress.
const PAUSE: Duration = Duration::from_secs(5);
const HEADER: [&str; 8] = ["experiment", "machine", "quantity", "paper", "ours", "se", "repeats", "met"];

/// One experiment.
struct Experiment {
    name: &'static str,
    /// Title of the experiment, with its source.
    title: &'static str,
    /// Tables that it needs.
    files: &'static [&'static str],
    /// True if the experiment is too long for `--quick`.
    long: bool,
    run: fn(&Bench) -> Result<Outcome>,
}

const RIPLEY: [&str; 2] = ["ripley_synth_train.csv", "ripley_synth_test.csv"];
const PIMA: [&str; 2] = ["pima_train.csv", "pima_test.csv"];
const USPS: [&str; 2] = ["usps_train.csv.gz", "usps_test.csv.gz"];
const BOSTON: [&str; 1] = ["boston_housing.csv"];

/// All experiments, in the order of [`EXPERIMENTS`].
const ALL: [Experiment; EXPERIMENTS.len()] = [
    experiment("textbook", "Examples in the plane and on a line (Bishop 2006, chapter 7)", &[], textbook::run),
    experiment("sinc", "sinc without and with noise, 100 points, linear spline (Tipping 1999, figure 1)", &[], sinc::hundred),
    experiment("sinc50", "sinc, 50 points, noise 0.1, linear spline (Bishop & Tipping 2000, table 1)", &[], sinc::fifty),
    experiment("friedman1", "Friedman 1, 240 rows (Tipping 2001, table of regression)", &[], friedman::one),
    experiment("friedman2", "Friedman 2, 240 rows (the same table)", &[], friedman::two),
    experiment("friedman3", "Friedman 3, 240 rows (the same table)", &[], friedman::three),
    experiment("boston", "Boston housing, splits of 481/25 (the same table)", &BOSTON, boston::gaussian),
    experiment("boston-cubic", "Boston housing, cubic kernel (Bishop & Tipping 2000, table 2)", &BOSTON, boston::cubic),
    experiment("mixture", "A mixture of Gaussians, 200 points (Tipping 1999, figure 2)", &[], classes::mixture),
    experiment("ripley", "Ripley's synthetic classes (Bishop & Tipping 2000, table 3)", &RIPLEY, classes::ripley),
    experiment("pima", "Pima diabetes (Tipping 1999, table 2; Bishop & Tipping 2000, table 4)", &PIMA, classes::pima),
    Experiment {
        long: true,
        ..experiment("usps", "Handwritten digits, one against the rest (Tipping 1999, table 2)", &USPS, classes::usps)
    },
];

const fn experiment(
    name: &'static str,
    title: &'static str,
    files: &'static [&'static str],
    run: fn(&Bench) -> Result<Outcome>,
) -> Experiment {
    Experiment { name, title, files, long: false, run }
}

/// Arguments and resources of an experiment.
struct Bench<'a> {
    args: &'a ReproduceArgs,
    threads: usize,
    name: &'static str,
}

impl Bench<'_> {
    /// Returns the folder of tables. An experiment that needs tables is not run without it.
    fn folder(&self) -> Result<&Path> {
        self.args.data.as_deref().context("no folder of tables is given (--data)")
    }

    /// Returns the number of repeats: `full`, or `few` with --quick.
    fn repeats(&self, full: usize, few: usize) -> usize {
        if self.args.quick { few } else { full }
    }

    /// Returns a seed for repeat `k`. The seeds of runs with neighbouring seeds differ.
    fn seed(&self, k: usize) -> u64 {
        self.args.seed.wrapping_mul(1_000_003).wrapping_add(k as u64)
    }

    /// Runs `each` for 0..n in parallel and prints its progress.
    fn repeat<T: Send>(&self, what: &str, n: usize, each: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        let done = Mutex::new((0, Instant::now()));
        let one = |k| {
            let result = each(k)?;
            if let Ok(mut done) = done.lock() {
                done.0 += 1;
                if done.1.elapsed() >= PAUSE {
                    done.1 = Instant::now();
                    say!("{}: {what}: repeat {} of {n}", self.name, done.0);
                }
            }
            Ok(result)
        };
        side_by_side(self.threads, n, one).into_iter().collect()
    }

    /// Chooses by cross-validation, see [`set::choose`].
    fn choose<C: Sync + Clone>(&self, sets: &[Set], among: &[C], machine: impl Fn(&C, &Set) -> Machine + Sync) -> Result<C> {
        self.say("widths and costs by cross-validation");
        set::choose(sets, among, self.args.seed, self.threads, machine)
    }

    fn say(&self, what: &str) {
        say!("{}: {what}", self.name);
    }
}

pub(crate) fn run(args: &ReproduceArgs) -> Result<()> {
    // The folder is created before the fits, so that an error costs no time.
    fs::create_dir_all(&args.out).with_context(|| format!("cannot create the folder `{}`", args.out.display()))?;
    let report = args.out.join("report.md");
    output::check(&report)?;
    if let Some(folder) = args.data.as_deref().filter(|folder| !folder.is_dir()) {
        bail!("there is no folder `{}` (--data)", folder.display());
    }
    let chosen = ALL.iter().filter(|e| args.only.is_empty() || args.only.iter().any(|name| name == e.name));
    let mut done = Vec::new();
    for experiment in chosen {
        let outcome = perform(experiment, args);
        for drawing in &outcome.figures {
            for (extension, bytes) in [("svg", drawing.figure.svg.as_bytes()), ("png", &drawing.figure.png)] {
                output::write(&args.out.join(format!("{}.{extension}", drawing.name)), bytes)?;
            }
        }
        done.push((experiment, outcome));
        // The report is written after each experiment, so that nothing is lost if a long one is stopped.
        output::write(&report, text(&done, args).as_bytes())?;
    }
    output::print(&format!("{}\nwrote {}\n", table(&done), report.display()))
}

/// Runs one experiment. Its rows contain the reason if it has no results.
fn perform(experiment: &Experiment, args: &ReproduceArgs) -> Outcome {
    let nothing = |why: String| {
        say!("{}: {why}", experiment.name);
        Outcome { rows: vec![Row::nothing(why)], ..Outcome::default() }
    };
    if args.quick && experiment.long {
        return nothing("left out by --quick".into());
    }
    let there = |file: &str| args.data.as_ref().is_some_and(|folder| folder.join(file).is_file());
    let missing: Vec<&str> = experiment.files.iter().copied().filter(|file| !there(file)).collect();
    if !missing.is_empty() {
        let whose = if args.data.is_some() { "not in the folder of --data" } else { "no --data" };
        return nothing(format!("missing: {} ({whose})", missing.join(", ")));
    }
    say!("{}: {}", experiment.name, experiment.title);
    let start = Instant::now();
    let threads = args.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get));
    let outcome = (experiment.run)(&Bench { args, threads, name: experiment.name });
    say!("{}: {:.1} s", experiment.name, start.elapsed().as_secs_f64());
    outcome.unwrap_or_else(|e| nothing(format!("failed: {e:#}")))
}

type Done<'a> = [(&'a Experiment, Outcome)];

/// Returns the table for the terminal. On a narrow one it drops repeats, standard errors, results of the comparison and
/// names of experiments, in this order.
fn table(done: &Done) -> String {
    let column = |title: &&str| match *title {
        "repeats" => Column::number(title, 4),
        "se" => Column::number(title, 3),
        "met" => Column::text(title).ranked(2),
        "experiment" => Column::text(title).ranked(1),
        "paper" | "ours" => Column::number(title, 0),
        _ => Column::text(title),
    };
    let columns: Vec<Column> = HEADER.iter().map(column).collect();
    let (mut rows, mut notes) = (vec![], String::new());
    for (experiment, outcome) in done {
        for row in &outcome.rows {
            match row.quantity.is_empty() {
                true => {
                    notes += &format!("{}\n", terminal::paragraph(&format!("{}: {}", experiment.name, row.note), Stream::Stdout))
                }
                false => rows.push([experiment.name.to_string()].into_iter().chain(row.cells()).collect()),
            }
        }
    }
    layout::table(&columns, &rows, terminal::table_width(Stream::Stdout)).0 + &notes
}

/// Returns the report in Markdown.
fn text(done: &Done, args: &ReproduceArgs) -> String {
    let mut out = String::from("# The papers' experiments\n\n");
    let kind = if args.quick { "a few repeats of each (`--quick`)" } else { "all repeats" };
    let _ = writeln!(
        out,
        "Made by `relvec reproduce`, seed {}, {kind}. `se` is the standard error of our mean over the repeats; of one \
         repeat, that of its test rows. `met`: our error is at most two standard errors above the paper's, our kernels at \
         most 1.3 times the paper's, a value worked out by hand the same. A row without `met` is only shown beside the \
         paper's.\n",
        args.seed
    );
    for (experiment, outcome) in done {
        let _ = writeln!(out, "## {}\n\n{}.\n", experiment.name, experiment.title);
        let (told, empty): (Vec<&Row>, Vec<&Row>) = outcome.rows.iter().partition(|row| !row.quantity.is_empty());
        for row in empty {
            let _ = writeln!(out, "{}\n", sentence(&row.note));
        }
        if !told.is_empty() {
            let _ = writeln!(out, "| {} | settings |\n|---|---|---:|---:|---:|---:|---|---|", HEADER[1..].join(" | "));
            for row in &told {
                let _ = writeln!(out, "| {} | {} |", row.cells().join(" | "), row.note);
            }
            out.push('\n');
        }
        for drawing in &outcome.figures {
            let _ = writeln!(out, "![{}]({}.svg)\n\n{}\n", drawing.name, drawing.name, drawing.caption);
        }
    }
    let met = done.iter().flat_map(|(_, o)| &o.rows).filter_map(Row::met).collect::<Vec<_>>();
    let kept = met.iter().filter(|met| **met).count();
    let _ = writeln!(out, "{kept} of {} are met.", count(met.len(), "figure"));
    out
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_name_the_experiments() {
        assert_eq!(ALL.map(|e| e.name), EXPERIMENTS);
    }
}
