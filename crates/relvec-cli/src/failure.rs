//! How a failure ends the program: one message on stderr, and the exit code.

use std::fmt;
use std::io;

use anyhow::Error;

/// Something that the arguments alone show wrong: exit code 2. Everything else is exit code 1.
#[derive(Debug)]
pub(crate) struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of exit code 2.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(Usage(message.into()))
}

/// Prints the message and returns the exit code.
pub(crate) fn report(error: &Error) -> u8 {
    if closed_pipe(error) {
        // `relvec predict ... | head` has what it wanted.
        return 0;
    }
    say!("error: {error:#}");
    if error.is::<Usage>() { 2 } else { 1 }
}

fn closed_pipe(error: &Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
