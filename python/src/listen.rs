//! Runs work on its own thread, so that the calling thread can check for Ctrl-C.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use relvec::Interrupt;

use crate::defect;

/// Time between two checks for Ctrl-C.
const LISTEN: Duration = Duration::from_millis(20);
/// Time to wait for interrupted work. A longer matrix operation ends in the background.
const PATIENCE: Duration = Duration::from_millis(200);

/// Returns the result of `work`, or the exception of a signal after `interrupt` was raised. The result is then
/// discarded.
pub(crate) fn listening<T: Send + 'static>(
    py: Python<'_>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let send = move || {
        // Interrupted work may end after its caller has gone.
        let _ = sender.send(work());
    };
    thread::Builder::new().name("relvec-work".into()).spawn(send)?;

    // A receiver cannot be shared between threads, and a detached closure counts as another thread.
    let receiver = Mutex::new(receiver);
    let wait = |time| receiver.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(time);
    loop {
        match py.detach(|| wait(LISTEN)) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => return Err(defect()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    interrupt.raise();
                    let _ = py.detach(|| wait(PATIENCE));
                    return Err(signal);
                }
            }
        }
    }
}
