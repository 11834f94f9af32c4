//! The line that says what a program is at, while it is at it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// Work of less time shows no line.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two drawings of the live line: its clock and its sign move although nothing is told.
const TICK: Duration = Duration::from_millis(100);
/// Least time between two plain lines, and before the first.
const PAUSE: Duration = Duration::from_secs(2);
/// Later, they come when the work has gone on for this much longer: a log file grows by the logarithm of time.
const GROWTH: f64 = 1.1;

/// Bars that are shown: a live line waits until there is none, since both are drawn in one line of the screen.
static BARS: AtomicUsize = AtomicUsize::new(0);

/// Keeps live lines back while it lives.
pub(crate) struct Pause(());

impl Pause {
    pub fn new() -> Pause {
        BARS.fetch_add(1, Ordering::Relaxed);
        Pause(())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        BARS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// On a terminal a live line, with a clock that does not wait for what is told; elsewhere a plain line now and then, and with
/// `--verbose` all that is told.
pub(crate) struct Live {
    start: Instant,
    /// Time at which the next plain line is due.
    next: Duration,
    verbose: bool,
    shown: Option<Shown>,
}

/// The thread that draws, what it draws, and what ends it.
struct Shown {
    message: Arc<Mutex<String>>,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Live {
    /// `message`: what is done until something is told.
    pub fn new(message: &str) -> Live {
        let shown = if terminal::is_live() { Shown::new(message) } else { None };
        Live { start: Instant::now(), next: PAUSE, verbose: terminal::is_verbose(), shown }
    }

    /// Shows, on a terminal alone, what begins now.
    pub fn now(&self, line: impl Fn() -> String) {
        if let Some(shown) = &self.shown {
            *shown.message.lock().unwrap_or_else(PoisonError::into_inner) = terminal::name(&line()).into_owned();
        }
    }

    /// Tells what is done; `line` is called only if it is shown.
    pub fn say(&mut self, line: impl Fn() -> String) {
        self.now(&line);
        let elapsed = self.start.elapsed();
        if self.shown.is_none() && (self.verbose || elapsed >= self.next) {
            say!("{}", line());
            self.next = (elapsed + PAUSE).max(elapsed.mul_f64(GROWTH));
        }
    }
}

impl Drop for Live {
    /// Clears the line, also when the work failed, so that what follows starts on a clean one.
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            drop(shown.end);
            let _ = shown.thread.join();
        }
    }
}

impl Shown {
    /// `None` if there is no thread to be had: the work goes on without a line.
    fn new(message: &str) -> Option<Shown> {
        let message = Arc::new(Mutex::new(message.to_string()));
        let (end, ended) = channel();
        let told = Arc::clone(&message);
        let draw = move || {
            let waits = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !waits(DELAY) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_elapsed(DELAY);
            if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed_precise}] {wide_msg}") {
                bar.set_style(style);
            }
            while {
                if BARS.load(Ordering::Relaxed) == 0 {
                    bar.set_message(told.lock().unwrap_or_else(PoisonError::into_inner).clone());
                    bar.tick();
                }
                waits(TICK)
            } {}
            bar.finish_and_clear();
        };
        let thread = std::thread::Builder::new().name("relvec-live".into()).spawn(draw).ok()?;
        Some(Shown { message, end, thread })
    }
}
