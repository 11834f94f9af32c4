//! Messages for people: how many, how wide and in which colours. Texts from tables and models are escaped, so that they
//! cannot control the terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::ValueEnum;

/// Most columns of text, also on a wider terminal, since long lines are hard to read.
pub(crate) const WIDEST: usize = 100;
/// Columns of a terminal of unknown width, and of tables that are not printed on a terminal.
const USUAL: usize = 80;
/// Time for which notes and warnings wait for the first line of a result. A longer fit prints them at once, since it
/// may be watched.
const HOLD: Duration = Duration::from_secs(1);

/// When messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How much is printed on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(crate) enum Level {
    /// Warnings and errors.
    Quiet,
    #[default]
    Usual,
    /// Also iterations and reasons.
    Verbose,
}

/// Output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Settings of messages from the arguments.
struct State {
    level: Level,
    colour: Colour,
    held: Option<(Instant, Vec<String>)>,
}

static STATE: Mutex<State> = Mutex::new(State { level: Level::Usual, colour: Colour::Auto, held: None });

/// Runs `change` on the state, also after a panic of another thread.
fn with<T>(change: impl FnOnce(&mut State) -> T) -> T {
    change(&mut STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Applies the settings from the arguments, with no messages waiting.
pub(crate) fn set(level: Level, colour: Colour) {
    with(|state| *state = State { level, colour, held: None });
}

pub(crate) fn is_verbose() -> bool {
    with(|state| state.level == Level::Verbose)
}

pub(crate) fn is_quiet() -> bool {
    with(|state| state.level == Level::Quiet)
}

/// True if a live line can be shown.
pub(crate) fn is_live() -> bool {
    io::stderr().is_terminal() && !is_quiet() && !is_verbose()
}

/// Makes notes and warnings wait for [`release`], at most a second, so that the result comes first. Waiting messages
/// continue to wait.
pub(crate) fn hold() {
    with(|state| {
        let lines = state.held.take().map_or(vec![], |(_, lines)| lines);
        state.held = Some((Instant::now(), lines));
    });
}

/// True if messages are waiting.
pub(crate) fn is_held() -> bool {
    with(|state| state.held.as_ref().is_some_and(|(_, lines)| !lines.is_empty()))
}

/// Prints the waiting messages: warnings, then notes.
pub(crate) fn release() {
    let mut held = with(|state| state.held.take()).map_or(vec![], |(_, lines)| lines);
    held.sort_by_key(|line| line.starts_with("note:"));
    held.iter().for_each(|line| print(line));
}

/// Prints a note only with `--verbose`: a reason for a result.
pub(crate) fn explain(words: &str) {
    if is_verbose() {
        tell(&format!("note: {words}\n"));
    }
}

/// Prints a message on stderr. A closed pipe is ignored. The first word gives its kind: `error:`, `warning:` or
/// `note:`; a message without one is part of a result.
pub(crate) fn tell(words: &str) {
    let urgent = words.starts_with("error:") || words.starts_with("warning:");
    if is_quiet() && !urgent {
        return;
    }
    let mut late = false;
    let waits = with(|state| match &mut state.held {
        Some((since, lines)) if words.starts_with("note:") || words.starts_with("warning:") => {
            late = since.elapsed() > HOLD;
            lines.push(words.to_string());
            !late
        }
        _ => false,
    });
    if waits {
        return;
    }
    if late {
        release();
        return;
    }
    print(words);
}

fn print(words: &str) {
    let words = escaped(words);
    let text = match width(Stream::Stderr) {
        Some(width) => words.split_inclusive('\n').map(|line| wrap(line, width, 2)).collect(),
        None => words.into_owned(),
    };
    let _ = io::stderr().lock().write_all(labelled(&text).as_bytes());
}

/// Returns a message with its first word in colour.
fn labelled(text: &str) -> Cow<'_, str> {
    for (label, code) in [("error:", "1;31"), ("warning:", "1;33"), ("note:", "36")] {
        if let Some(rest) = text.strip_prefix(label) {
            return Cow::Owned(format!("{}{rest}", style(label, code, Stream::Stderr)));
        }
    }
    Cow::Borrowed(text)
}

/// Returns the first line of a result, bold if the stream has colours.
pub(crate) fn headline(text: &str, stream: Stream) -> String {
    style(&paragraph(text, stream), "1", stream) + "\n"
}

/// Returns a paragraph broken into lines, as wide as tables on stdout, and as wide as stderr if that has a width.
pub(crate) fn paragraph(text: &str, stream: Stream) -> String {
    let text = name(text);
    let width = if stream == Stream::Stdout { Some(table_width(stream)) } else { width(stream) };
    width.map_or_else(|| text.to_string(), |width| wrap(&text, width, 2))
}

/// Prints a text on stderr that is already laid out, escaped and coloured.
pub(crate) fn show(text: &str) {
    if !is_quiet() {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn style(text: &str, code: &str, stream: Stream) -> String {
    if has_colours(stream) { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
}

fn is_terminal(stream: Stream) -> bool {
    match stream {
        Stream::Stdout => io::stdout().is_terminal(),
        Stream::Stderr => io::stderr().is_terminal(),
    }
}

fn has_colours(stream: Stream) -> bool {
    match with(|state| state.colour) {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            // An old Windows console prints the codes; the newer one sets this variable.
            let able = if cfg!(windows) { set("WT_SESSION") } else { std::env::var_os("TERM").is_none_or(|term| term != "dumb") };
            able && !set("NO_COLOR") && is_terminal(stream)
        }
    }
}

/// Returns the columns for text: those of the terminal, or COLUMNS. Returns `None` otherwise; a message is then one
/// line that can be searched.
pub(crate) fn width(stream: Stream) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok()).filter(|columns| *columns > 0);
    let measured = || match stream {
        Stream::Stdout => terminal_size::terminal_size_of(io::stdout()),
        Stream::Stderr => terminal_size::terminal_size_of(io::stderr()),
    };
    let shown = || is_terminal(stream).then(|| measured().map_or(USUAL, |(width, _)| usize::from(width.0)));
    Some(said.or_else(shown)?.min(WIDEST))
}

/// Returns the sign before a standard error, with spaces. It is ASCII if the locale has another encoding than UTF-8.
pub(crate) fn plus_minus() -> &'static str {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let utf8 = said.is_none_or(|value| value.to_string_lossy().to_lowercase().replace('-', "").ends_with("utf8"));
    if utf8 { " ± " } else { " +/- " }
}

/// Returns the columns for a table.
pub(crate) fn table_width(stream: Stream) -> usize {
    width(stream).unwrap_or(USUAL)
}

/// Returns a text with control characters, except line breaks and tabs, written as in Rust strings.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() && c != '\n' && c != '\t')
}

/// Returns a name for use inside a line, with all control characters escaped.
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

/// Returns the text with line breaks between words, so that lines have at most `width` characters. All lines but the
/// first begin with `indent` spaces. A longer word is not broken. A line that begins with a space is already laid out
/// and not changed.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let body = text.trim_end_matches('\n');
    if body.starts_with(' ') || body.chars().count() <= width {
        return text.to_string();
    }
    let (mut out, mut column) = (String::new(), 0);
    for word in body.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column > indent && column + length > width {
            out.truncate(out.trim_end().len());
            out += &format!("\n{:indent$}", "");
            column = indent;
        }
        out += word;
        column += word.chars().count();
    }
    out + &text[body.len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("warning: one two three\n", 12, 2), "warning: one\n  two three\n");
        assert_eq!(wrap("short", 12, 2), "short");
        assert_eq!(wrap("a/path/that/is/long and more", 10, 2), "a/path/that/is/long\n  and more");
        assert_eq!(wrap("  laid out already, so it stays", 10, 2), "  laid out already, so it stays");
    }

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(escaped("\x1b[31ma\u{9b}2J\r\x07\x7f\n\tb"), "\\u{1b}[31ma\\u{9b}2J\\r\\u{7}\\u{7f}\n\tb");
        assert_eq!(name("a\nb\tc"), "a\\nb\\tc");
        assert!(matches!(escaped("ä b"), Cow::Borrowed(_)));
    }
}
