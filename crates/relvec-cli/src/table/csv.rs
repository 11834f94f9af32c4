//! Rows of a CSV file, plain or gzip. The separator is given or detected from the header.
//!
//! Spreadsheet programs add lines that are not rows: a line `sep=;` above the header, rows with separators only, and
//! separators after the last cell. These are skipped.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Error, Result, anyhow, bail};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::tidy::Tidy;
use super::{Cell, MOST_CELL, MOST_COLUMNS, Rows};
use crate::args::ReadArgs;
use crate::text::count;

/// Most bytes in which the end of the header is searched.
const HEAD: u64 = 1 << 20;
/// Most bytes of a row: 64 for each of a million columns. A whole row is in memory, and a small compressed file can
/// contain an endless row.
const MOST_RECORD: usize = 1 << 26;
/// Bytes read at a time.
pub(super) const PIECE: usize = 1 << 16;
/// Code of the separator "any number of spaces and tabs".
const SPACE: u8 = b' ';
/// Surplus cells of a row that are counted, so that an error can give their number.
const CELLS_COUNTED: usize = 1000;

pub(super) struct CsvRows {
    input: BufReader<Box<dyn Read>>,
    parser: Reader,
    record: Record,
    separator: u8,
    /// Note on the separator, if it was detected from more than the header.
    guessed: Option<String>,
    /// Number of columns in the header.
    columns: usize,
    row: usize,
    /// Skipped rows without any value.
    blank: usize,
    /// Bytes read, size of the file, and estimated number of rows.
    read: Arc<AtomicU64>,
    size: Option<u64>,
    about: Option<f64>,
}

/// The cells of a row.
#[derive(Default)]
struct Record {
    /// Bytes of all cells in order, with spare room.
    bytes: Vec<u8>,
    /// Ends of the cells in `bytes`, with spare room, and number of cells.
    ends: Vec<usize>,
    cells: usize,
    /// Line of the file in which the row begins.
    line: u64,
}

/// Reader that counts the bytes read.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Reads the header of a CSV file. `size`: bytes of the file, if it is a file.
pub(super) fn open(
    file: impl Read + 'static,
    compressed: bool,
    size: Option<u64>,
    reading: &ReadArgs,
) -> Result<(Vec<String>, CsvRows)> {
    let read = Arc::new(AtomicU64::new(0));
    let file = Counted { inner: file, read: Arc::clone(&read) };
    let mut stream: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    if let Some(mark) = reading.comment {
        stream = Box::new(Tidy::without_comments(stream, mark));
    }
    let mut head = Vec::new();
    stream.by_ref().take(HEAD).read_to_end(&mut head).map_err(|e| unreadable(&e))?;
    let lines = head.iter().filter(|b| **b == b'\n').count() as f64;
    let about = size.map(|size| lines * size as f64 / read.load(Ordering::Relaxed).max(1) as f64);
    if head.iter().all(u8::is_ascii_whitespace) {
        bail!("the file is empty");
    }
    let declared = take_declared(&mut head);
    let given = reading.sep.or(declared);
    let spaces = given.is_none() && has_spaces(&head);
    let separator = given.unwrap_or_else(|| if spaces { SPACE } else { separator(&head) });
    let mut stream: Box<dyn Read> = Box::new(Cursor::new(head).chain(stream));
    if separator == SPACE {
        stream = Box::new(Tidy::with_single_tabs(stream));
    }
    let guessed = spaces.then(|| "cells are separated by spaces (--sep sets another separator)".to_string());
    let input = BufReader::with_capacity(PIECE, stream);
    let parser = ReaderBuilder::new().delimiter(if separator == SPACE { b'\t' } else { separator }).build();
    let record = Record::default();
    let mut rows =
        CsvRows { input, parser, record, separator, guessed, columns: MOST_COLUMNS, row: 0, blank: 0, read, size, about };
    if !rows.record()? {
        bail!("the file is empty");
    }
    let mut columns: Vec<String> =
        (0..rows.record.cells).map(|column| rows.text(column).unwrap_or_default().trim().to_string()).collect();
    // Removes empty names after the last name.
    while columns.len() > 1 && columns.last().is_some_and(String::is_empty) {
        columns.pop();
    }
    if let Some(mark) = columns[0].chars().next().filter(|mark| "#%".contains(*mark) && reading.comment.is_none()) {
        bail!(
            "the first line begins with `{mark}`: if it is a comment, --comment {mark} skips such lines; if not, rename the column"
        );
    }
    rows.columns = columns.len();
    Ok((columns, rows))
}

/// Returns the separator that a first line `sep=;` declares, as spreadsheet programs write it, and removes its text
/// from `head`.
fn take_declared(head: &mut Vec<u8>) -> Option<u8> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let start = head.len() - text.len();
    let rest = text.strip_prefix(b"sep=")?;
    let separator = *rest.first().filter(|mark| mark.is_ascii() && !mark.is_ascii_alphanumeric())?;
    rest.get(1).filter(|end| matches!(end, b'\r' | b'\n'))?;
    // The end of the line is kept, so that line numbers are correct.
    head.drain(start..start + b"sep=;".len());
    Some(separator)
}

/// True if spaces separate the cells: the header contains no other separator, and the first two lines have the same
/// number of words, at least two.
fn has_spaces(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (Some(header), Some(row)) = (lines.next(), lines.next()) else { return false };
    let words = |line: &str| line.split_whitespace().count();
    !header.contains([',', ';', '\t', '"']) && words(header) > 1 && words(header) == words(row)
}

/// Returns the most frequent of comma, semicolon and tab in the first line, outside quotes.
fn separator(head: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    let mut started = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            // The CSV reader also skips blank lines before the header.
            b'\n' | b'\r' if !quoted && started => break,
            _ if !quoted => counts.iter_mut().filter(|(b, _)| b == byte).for_each(|(_, n)| *n += 1),
            _ => {}
        }
        started |= !matches!(byte, b'\n' | b'\r');
    }
    // For equal counts the first is chosen: a comma unless another one occurs.
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(b, _)| *b)
}

impl CsvRows {
    /// Reads the next row. Returns `false` after the last one.
    fn record(&mut self) -> Result<bool> {
        let Record { bytes, ends, cells, line } = &mut self.record;
        let mut length = 0;
        *cells = 0;
        *line = self.parser.line();
        let more = loop {
            let input = match self.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                input => input.map_err(|e| unreadable(&e))?,
            };
            let (result, taken, bytes_more, cells_more) =
                self.parser.read_record(input, &mut bytes[length..], &mut ends[*cells..]);
            self.input.consume(taken);
            length += bytes_more;
            *cells += cells_more;
            let open = length - ends[..*cells].last().copied().unwrap_or(0);
            let most_cells = if self.row == 0 { MOST_COLUMNS } else { self.columns + CELLS_COUNTED };
            if open > MOST_CELL || has_long(&ends[..*cells], cells_more) {
                bail!("{} has a cell of more than {MOST_CELL} bytes; is a quotation mark left open?", place(self.row, *line));
            }
            if length > MOST_RECORD {
                bail!("{} has more than {MOST_RECORD} bytes", place(self.row, *line));
            }
            if *cells > most_cells {
                bail!("{} has more than {}", place(self.row, *line), count(most_cells, "cell"));
            }
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => bytes.resize((2 * bytes.len()).max(PIECE), 0),
                ReadRecordResult::OutputEndsFull => ends.resize((2 * ends.len()).max(PIECE / 8), 0),
                ReadRecordResult::Record => break true,
                ReadRecordResult::End => break false,
            }
        };
        if more && (0..*cells).any(|cell| self.text(cell).is_none()) {
            bail!("{} is not UTF-8 text; save the table as CSV in UTF-8", place(self.row, self.record.line));
        }
        Ok(more)
    }

    /// True if the cells of the current row from `first` on are blank or absent.
    fn is_empty(&self, first: usize) -> bool {
        (first..self.record.cells).all(|cell| self.text(cell).is_some_and(|text| text.trim().is_empty()))
    }

    /// Returns a cell of the current row if it exists and is UTF-8 text.
    fn text(&self, cell: usize) -> Option<&str> {
        let Record { bytes, ends, cells, .. } = &self.record;
        let start = if cell == 0 { 0 } else { *ends.get(cell - 1)? };
        let end = *ends[..*cells].get(cell)?;
        std::str::from_utf8(&bytes[start..end]).ok()
    }
}

/// True if one of the last `new` cells is too long.
fn has_long(ends: &[usize], new: usize) -> bool {
    let first = ends.len() - new;
    let start = if first == 0 { 0 } else { ends[first - 1] };
    ends[first..].iter().scan(start, |before, end| Some(end - std::mem::replace(before, *end))).any(|size| size > MOST_CELL)
}

/// Returns the position of `row` as text. Rows are counted from 1; 0 is the header.
fn place(row: usize, line: u64) -> String {
    if row == 0 { "the header".to_string() } else { format!("row {row} (line {line})") }
}

impl Rows for CsvRows {
    fn advance(&mut self) -> Result<bool> {
        self.row += 1;
        let mut more = self.record()?;
        while more && self.columns > 1 && self.is_empty(0) {
            self.blank += 1;
            more = self.record()?;
        }
        let (found, expected) = (self.record.cells, self.columns);
        if more && (found < expected || !self.is_empty(expected)) {
            bail!("{} has {}, the header has {expected}", place(self.row, self.record.line), count(found, "cell"));
        }
        Ok(more)
    }

    fn format(&self) -> String {
        match self.separator {
            b',' => "separated by commas".to_string(),
            b';' => "separated by semicolons".to_string(),
            b'\t' => "separated by tabs".to_string(),
            SPACE => "separated by spaces".to_string(),
            other => format!("separated by `{}`", char::from(other)),
        }
    }

    fn notes(&self) -> Vec<String> {
        let blank = (self.blank > 0).then(|| format!("{} without any value skipped", count(self.blank, "row")));
        self.guessed.clone().into_iter().chain(blank).collect()
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        self.text(column).map_or(Cell::Missing, Cell::Text)
    }

    fn line(&self) -> Option<u64> {
        Some(self.record.line)
    }

    fn about(&self) -> Option<f64> {
        self.about
    }

    fn share(&self) -> Option<f64> {
        self.size.map(|size| self.read.load(Ordering::Relaxed) as f64 / size.max(1) as f64)
    }

    fn has_decimal_commas(&self) -> bool {
        self.separator != b','
    }
}

pub(super) fn unreadable(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow!("the compressed file is cut off"),
        _ => anyhow!("cannot read the table: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_found_in_the_header() {
        assert_eq!(separator(b"a,b\n1;2"), b',');
        assert_eq!(separator(b"a;b;c\n1,5;2;3"), b';');
        assert_eq!(separator(b"a\tb"), b'\t');
        assert_eq!(separator(b"\"a,b,c\";d\n"), b';');
        assert_eq!(separator(b"\n\na;b\n"), b';');
        assert_eq!(separator(b"alone\n1\n"), b',');
        assert!(has_spaces(b"a  b c\n\n 1 2   3\n") && has_spaces(b"a b\r\n1,5 2,5\r\n"));
        assert!(!has_spaces(b"unit price\n12\n") && !has_spaces(b"a;b c\n1;2\n") && !has_spaces(b"a b\n"));
    }

    #[test]
    fn a_declared_separator_is_taken_out_of_the_text() {
        for (text, separator, left) in [
            (&b"sep=;\r\na;b\n"[..], Some(b';'), &b"\r\na;b\n"[..]),
            (b"\xef\xbb\xbfsep=|\na|b\n", Some(b'|'), b"\xef\xbb\xbf\na|b\n"),
            (b"sep=x\na\n", None, b"sep=x\na\n"),
            (b"sep=;c\n1;2\n", None, b"sep=;c\n1;2\n"),
        ] {
            let mut head = text.to_vec();
            assert_eq!((take_declared(&mut head), &head[..]), (separator, left));
        }
    }

    /// Returns the error of a table, and the bytes that were kept in memory.
    fn refused(bytes: impl Read + 'static) -> (String, usize) {
        let (error, kept) = match open(bytes, false, None, &ReadArgs::default()) {
            Ok((_, mut rows)) => {
                let error = loop {
                    match rows.advance() {
                        Ok(true) => {}
                        Ok(false) => panic!("the table was read"),
                        Err(e) => break e,
                    }
                };
                (error, rows.record.bytes.len() + 8 * rows.record.ends.len())
            }
            Err(e) => (e, 0),
        };
        (error.to_string(), kept)
    }

    #[test]
    fn rows_and_cells_without_end_are_refused_in_bounded_memory() {
        let mib = 1 << 20;
        let endless = |byte: u8| io::repeat(byte);
        let (message, _) = refused(endless(0));
        assert!(message.contains("the header has a cell of more than 1048576 bytes"), "{message}");
        let (message, _) = refused(endless(b','));
        assert!(message.contains("the header has more than 1000000 cells"), "{message}");
        let (message, kept) = refused((&b"a,b\n1,2\n3,4"[..]).chain(endless(b',')));
        assert!(message.contains("row 2 (line 3) has more than 1002 cells") && kept < mib, "{message} {kept}");
        let (message, kept) = refused((&b"a,b\n1,2\n3,\"4"[..]).chain(endless(b'\n')));
        assert!(message.contains("row 2 (line 3) has a cell of more than") && kept < 3 * mib, "{message} {kept}");
        let cells = b"0123456789,".repeat(PIECE / 10);
        struct Cells(Vec<u8>, usize);
        impl Read for Cells {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let n = buffer.len().min(self.0.len() - self.1);
                buffer[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
                self.1 = (self.1 + n) % self.0.len();
                Ok(n)
            }
        }
        let (message, _) = refused(Cells(cells, 0));
        assert!(message.contains("the header has more than 1000000 cells"), "{message}");
        // Cells of half a mebibyte.
        let long = [vec![b'x'; mib / 2], vec![b',']].concat();
        let (message, _) = refused(Cells(long, 0));
        assert!(message.contains("the header has more than 67108864 bytes"), "{message}");
    }
}
