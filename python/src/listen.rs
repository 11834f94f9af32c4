//! Work on a thread of its own, so that the thread that called can listen for Ctrl-C.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use relvec::Interrupt;

use crate::defect;

/// How often the calling thread looks for Ctrl-C.
const LISTEN: Duration = Duration::from_millis(20);
/// How long interrupted work is waited for; a long matrix operation ends by itself after that.
const PATIENCE: Duration = Duration::from_millis(200);

/// What `work` returns; or what a signal raises, after `interrupt` was: then nobody sees what it returns.
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

    // A receiver may not be shared between threads, and a detached closure counts as another.
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
