//! Words for people: how much is said, how wide and in which colours. What stands in tables and models does not get to
//! command their terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::ValueEnum;

/// Text is not wider, even on a wider terminal: long lines are hard to read.
pub(crate) const WIDEST: usize = 100;
/// Columns of a terminal whose width is not known, and of tables that no terminal shows.
const USUAL: usize = 80;
/// Notes and warnings wait so long for the first line of a result. Those of a longer fit come at once: it may be watched.
const HOLD: Duration = Duration::from_secs(1);

/// When words are coloured.
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

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub(crate) enum Level {
    /// Warnings and errors.
    Quiet,
    #[default]
    Usual,
    /// Iterations and reasons as well.
    Verbose,
}

/// Where words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// What the arguments say of words.
struct State {
    level: Level,
    colour: Colour,
    held: Option<(Instant, Vec<String>)>,
}

static STATE: Mutex<State> = Mutex::new(State { level: Level::Usual, colour: Colour::Auto, held: None });

/// Runs `change` on the state, which a panic elsewhere leaves as it is.
fn with<T>(change: impl FnOnce(&mut State) -> T) -> T {
    change(&mut STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Sets what the arguments say; nothing is held.
pub(crate) fn set(level: Level, colour: Colour) {
    with(|state| *state = State { level, colour, held: None });
}

pub(crate) fn is_verbose() -> bool {
    with(|state| state.level == Level::Verbose)
}

pub(crate) fn is_quiet() -> bool {
    with(|state| state.level == Level::Quiet)
}

/// Whether a live line can be shown.
pub(crate) fn is_live() -> bool {
    io::stderr().is_terminal() && !is_quiet() && !is_verbose()
}

/// From now on notes and warnings wait for [`release`], a second at most: the result is to come first. Those that wait already
/// go on to.
pub(crate) fn hold() {
    with(|state| {
        let lines = state.held.take().map_or(vec![], |(_, lines)| lines);
        state.held = Some((Instant::now(), lines));
    });
}

/// Whether anything waits.
pub(crate) fn is_held() -> bool {
    with(|state| state.held.as_ref().is_some_and(|(_, lines)| !lines.is_empty()))
}

/// Prints what waits: warnings, then notes.
pub(crate) fn release() {
    let mut held = with(|state| state.held.take()).map_or(vec![], |(_, lines)| lines);
    held.sort_by_key(|line| line.starts_with("note:"));
    held.iter().for_each(|line| print(line));
}

/// Prints a note with `--verbose`: a reason for what the result shows.
pub(crate) fn explain(words: &str) {
    if is_verbose() {
        tell(&format!("note: {words}\n"));
    }
}

/// Prints words on stderr. Nobody need read them: a closed pipe ends no work. The first word of a line says what it is:
/// `error:`, `warning:` or `note:`; without one it is a part of a result.
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

/// The first word of a message in its colour.
fn labelled(text: &str) -> Cow<'_, str> {
    for (label, code) in [("error:", "1;31"), ("warning:", "1;33"), ("note:", "36")] {
        if let Some(rest) = text.strip_prefix(label) {
            return Cow::Owned(format!("{}{rest}", style(label, code, Stream::Stderr)));
        }
    }
    Cow::Borrowed(text)
}

/// The first line of a result: bold, if the stream has colours.
pub(crate) fn headline(text: &str, stream: Stream) -> String {
    style(&paragraph(text, stream), "1", stream) + "\n"
}

/// A paragraph, broken into lines: as wide as tables on stdout, on stderr if it has a width.
pub(crate) fn paragraph(text: &str, stream: Stream) -> String {
    let text = name(text);
    let width = if stream == Stream::Stdout { Some(table_width(stream)) } else { width(stream) };
    width.map_or_else(|| text.to_string(), |width| wrap(&text, width, 2))
}

/// Prints what is laid out, escaped and coloured already on stderr.
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
            // An old console of Windows prints the codes; the newer one sets this.
            let able = if cfg!(windows) { set("WT_SESSION") } else { std::env::var_os("TERM").is_none_or(|term| term != "dumb") };
            able && !set("NO_COLOR") && is_terminal(stream)
        }
    }
}

/// Columns for text: of a terminal, or what COLUMNS says; `None` elsewhere, where a message is one line that can be searched.
pub(crate) fn width(stream: Stream) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok()).filter(|columns| *columns > 0);
    let measured = || match stream {
        Stream::Stdout => terminal_size::terminal_size_of(io::stdout()),
        Stream::Stderr => terminal_size::terminal_size_of(io::stderr()),
    };
    let shown = || is_terminal(stream).then(|| measured().map_or(USUAL, |(width, _)| usize::from(width.0)));
    Some(said.or_else(shown)?.min(WIDEST))
}

/// The sign before an error, with spaces: in ASCII if the locale has another encoding than UTF-8.
pub(crate) fn plus_minus() -> &'static str {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let utf8 = said.is_none_or(|value| value.to_string_lossy().to_lowercase().replace('-', "").ends_with("utf8"));
    if utf8 { " ± " } else { " +/- " }
}

/// Columns for a table.
pub(crate) fn table_width(stream: Stream) -> usize {
    width(stream).unwrap_or(USUAL)
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

/// The text, with line breaks between words so that lines have at most `width` characters; all but the first begin with
/// `indent` spaces. A word that is longer stays whole, and so does a line that begins with a space, which is laid out already.
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
