//! Progress on stderr: a live line on a terminal, otherwise a plain line now and then.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use relvec::{Inference, Progress, SvmProgress};

use crate::live::{Live, Pause};
use crate::terminal;
use crate::text::{count, significant};

/// Shows the progress of a fit.
pub(crate) struct Reporter {
    live: Live,
    /// Name of the objective: log evidence, or lower bound for a variational fit.
    evidence: &'static str,
}

impl Reporter {
    /// Creates a reporter for a support vector machine.
    pub fn new() -> Reporter {
        Reporter { live: Live::new("fitting the support vector machine"), evidence: "log evidence" }
    }

    /// Creates a reporter for a relevance vector machine with this inference scheme.
    pub fn of(inference: &Inference) -> Reporter {
        let evidence = if matches!(inference, Inference::Variational(_)) { "lower bound" } else { "log evidence" };
        Reporter { live: Live::new("fitting: kernel and first model"), evidence }
    }

    /// Observer of a fit, which never stops it.
    pub fn observe(&mut self, progress: &impl Line) -> ControlFlow<()> {
        self.live.say(|| progress.line(self.evidence));
        ControlFlow::Continue(())
    }
}

/// Shows the progress of a pass over a table on a terminal: rows per second and the time left.
pub(crate) struct Pass {
    bar: Option<ProgressBar>,
    _pause: Pause,
    start: Cell<Instant>,
    /// Rows that were skipped at the start.
    first: Cell<usize>,
    /// Share of the file that had been read at the first call of [`Pass::at`].
    share: Cell<Option<f64>>,
}

/// Number of steps of the progress bar.
const STEPS: f64 = 1000.0;

impl Pass {
    pub fn new(name: &'static str) -> Pass {
        let bar = terminal::is_live().then(|| {
            let bar = ProgressBar::new(STEPS as u64);
            if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(name);
            bar
        });
        Pass { bar, _pause: Pause::new(), start: Cell::new(Instant::now()), first: Cell::new(0), share: Cell::new(Some(0.0)) }
    }

    /// Starts the clock after `rows` rows of an earlier run, which took no time of this pass.
    pub fn begin(&self, rows: usize) {
        if rows > 0 {
            self.start.set(Instant::now());
            self.first.set(rows);
            self.share.set(None);
        }
    }

    /// Reports that `rows` rows have been read, which are this share of the file.
    pub fn at(&self, rows: usize, share: Option<f64>) {
        let Some(bar) = &self.bar else { return };
        if self.share.get().is_none() {
            self.share.set(share);
        }
        let elapsed = self.start.get().elapsed().as_secs_f64();
        bar.set_message(pass_line(rows, rows - self.first.get(), self.share.get().unwrap_or(0.0), share, elapsed));
        bar.set_position((STEPS * share.unwrap_or(0.0)) as u64);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns the line for `rows` rows, of which `new` were read in `elapsed` seconds, while the share of the file that
/// has been read grew from `from` to `to`.
fn pass_line(rows: usize, new: usize, from: f64, to: Option<f64>, elapsed: f64) -> String {
    let rate = significant((new as f64 / elapsed.max(1e-9)).round(), 3);
    let left = match to {
        Some(to) if to > from => format!(", {:.0} s left", elapsed * (1.0 - to).max(0.0) / (to - from)),
        _ => String::new(),
    };
    format!("{}, {rate} per second{left}", count(rows, "row"))
}

/// Progress of a fit as a line of text.
pub(crate) trait Line {
    /// Returns the line. `evidence`: name of the objective, if there is one.
    fn line(&self, evidence: &str) -> String;
}

impl Line for Progress {
    fn line(&self, evidence: &str) -> String {
        let noise = self.noise_std.map_or(String::new(), |s| format!(", noise {}", significant(s, 4)));
        format!(
            "iteration {}: {evidence} {:.3}, {}{noise}, {:.1} s",
            self.iteration,
            self.log_evidence,
            count(self.active, "basis function"),
            self.elapsed.as_secs_f64()
        )
    }
}

impl Line for SvmProgress {
    fn line(&self, _evidence: &str) -> String {
        let (function, all) = self.function;
        let which = if all > 1 { format!("function {} of {all}, ", function + 1) } else { String::new() };
        let (gap, seconds) = (significant(self.gap, 3), self.elapsed.as_secs_f64());
        format!("{which}iteration {}: gap {gap}, {seconds:.1} s", self.iteration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_by_the_part_of_the_file() {
        assert_eq!(pass_line(5000, 5000, 0.0, Some(0.25), 2.0), "5000 rows, 2500 per second, 6 s left");
        assert_eq!(pass_line(5000, 1000, 0.5, Some(0.75), 2.0), "5000 rows, 500 per second, 2 s left");
        assert_eq!(pass_line(1, 1, 0.0, None, 1.0), "1 row, 1 per second");
    }
}
