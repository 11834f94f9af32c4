//! Progress on stderr: a live line on a terminal, a plain line now and then otherwise.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use relvec::Progress;

use crate::text::{count, significant};

/// Least time between two plain lines.
const PAUSE: Duration = Duration::from_secs(2);

/// Shows how a fit goes.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
}

impl Reporter {
    pub fn new() -> Reporter {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed_precise}] {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Reporter { bar, last_line: None }
    }

    /// The observer of a fit; never stops it.
    pub fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        match &self.bar {
            Some(bar) => {
                // The bar limits how often it is drawn.
                bar.set_message(line(progress));
                bar.tick();
            }
            None if self.last_line.is_none_or(|t| t.elapsed() >= PAUSE) => {
                eprintln!("{}", line(progress));
                self.last_line = Some(Instant::now());
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Reporter {
    /// Clears the live line, also when the fit failed, so that what follows starts on a clean one.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(p: &Progress) -> String {
    let noise = p.noise_std.map_or(String::new(), |s| format!(", noise {}", significant(s, 4)));
    format!(
        "iteration {}: log evidence {:.3}, {}{noise}, {:.1} s",
        p.iteration,
        p.log_evidence,
        count(p.active, "basis function"),
        p.elapsed.as_secs_f64()
    )
}
