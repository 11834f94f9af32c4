//! Words for people. What stands in tables and models does not get to command their terminal.

use std::borrow::Cow;
use std::io::{self, Write};

/// Prints words on stderr. Nobody need read them: a closed pipe ends no work.
pub(crate) fn tell(words: &str) {
    let _ = io::stderr().lock().write_all(escaped(words).as_bytes());
}

/// A text whose control characters, but for line breaks and tabs, are written as in Rust's strings.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() && c != '\n' && c != '\t')
}

/// A name within a line, which no control character may end.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    escape(text, char::is_control)
}

fn escape(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let one = |c: char| if bad(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(escaped("\x1b[31ma\u{9b}2J\r\x07\x7f\n\tb"), "\\u{1b}[31ma\\u{9b}2J\\r\\u{7}\\u{7f}\n\tb");
        assert_eq!(name("a\nb\tc"), "a\\nb\\tc");
        assert!(matches!(escaped("ä b"), Cow::Borrowed(_)));
    }
}
