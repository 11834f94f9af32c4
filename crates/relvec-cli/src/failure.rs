//! How an error ends the program: one message on stderr and an exit code.

use std::ffi::OsString;
use std::fmt;
use std::io;

use anyhow::Error;

/// An error that the arguments show without any file: exit code 2. All other errors have exit code 1.
#[derive(Debug)]
pub(crate) struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A target for which only the user can decide between classes and values.
#[derive(Debug)]
pub(crate) struct Undecided(pub String);

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Undecided {}

/// Returns an error with exit code 2.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(Usage(message.into()))
}

/// Prints the message and returns the exit code. `line`: the words of the command line, with the program's name first.
pub(crate) fn report(error: &Error, line: &[OsString]) -> u8 {
    if closed_pipe(error) {
        // The reader of a pipe may stop early, as in `relvec predict ... | head`. That is not an error.
        return 0;
    }
    say!("error: {error:#}");
    if error.is::<Undecided>() {
        say!("To learn classes, type:");
        say!("  {}", with_task(line, "classify"));
        say!("To learn values, type:");
        say!("  {}", with_task(line, "regress"));
    }
    if error.is::<Usage>() { 2 } else { 1 }
}

/// Returns the command line with the option `--task`, quoted for a shell.
fn with_task(line: &[OsString], task: &str) -> String {
    let mut words: Vec<String> = line.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    // No options may follow `--`.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(end..end, ["--task".to_string(), task.to_string()]);
    words.join(" ")
}

/// Returns the word, in quotation marks if a shell would change it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn closed_pipe(error: &Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_completed_as_it_is_typed() {
        let line = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let plain = line(&["relvec", "fit", "d.csv", "--target", "y"]);
        assert_eq!(with_task(&plain, "classify"), "relvec fit d.csv --target y --task classify");
        let odd = line(&["relvec", "fit", "--target", "it's a $", "--", "my d.csv"]);
        assert_eq!(with_task(&odd, "regress"), r"relvec fit --target 'it'\''s a $' --task regress -- 'my d.csv'");
        assert_eq!(quoted(""), "''");
    }
}
