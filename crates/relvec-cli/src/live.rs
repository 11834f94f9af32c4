//! Live line on the terminal that shows what the program is doing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// Time before a live line appears. Shorter work shows none.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two drawings of the live line, which has a moving clock and sign.
const TICK: Duration = Duration::from_millis(100);
/// Least time between two plain lines, and before the first one.
const PAUSE: Duration = Duration::from_secs(2);
/// Factor of elapsed time between two plain lines, so that a log file grows with the logarithm of time.
const GROWTH: f64 = 1.1;

/// Number of visible progress bars. A live line waits until there is none, since both use one line of the screen.
static BARS: AtomicUsize = AtomicUsize::new(0);

/// Hides live lines while it exists.
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

/// Shows progress. On a terminal this is a live line whose clock runs between messages. Elsewhere it is a plain line
/// now and then, and with `--verbose` a line for every message.
pub(crate) struct Live {
    start: Instant,
    /// Elapsed time at which the next plain line is due.
    next: Duration,
    verbose: bool,
    shown: Option<Shown>,
}

/// The drawing thread, its message, and the channel that ends it.
struct Shown {
    message: Arc<Mutex<String>>,
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Live {
    /// Starts with `message`, which is shown until [`Live::say`] replaces it.
    pub fn new(message: &str) -> Live {
        let shown = if terminal::is_live() { Shown::new(message) } else { None };
        Live { start: Instant::now(), next: PAUSE, verbose: terminal::is_verbose(), shown }
    }

    /// Shows the work that begins now, only on a terminal.
    pub fn now(&self, line: impl Fn() -> String) {
        if let Some(shown) = &self.shown {
            *shown.message.lock().unwrap_or_else(PoisonError::into_inner) = terminal::name(&line()).into_owned();
        }
    }

    /// Reports progress. `line` is called only if it is shown.
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
    /// Clears the line, also after an error, so that the next message starts on an empty line.
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            drop(shown.end);
            let _ = shown.thread.join();
        }
    }
}

impl Shown {
    /// Starts the thread. Returns `None` if that fails; the work then has no live line.
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
