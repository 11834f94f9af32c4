//! Rows of a CSV file: separator found in the header, plain or gzip.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Error, Result, anyhow, bail};
use csv::{ErrorKind, StringRecord};
use flate2::read::MultiGzDecoder;

use super::{Cell, Rows};

/// Bytes in which the end of the header is looked for.
const HEAD: u64 = 1 << 20;

pub(super) struct CsvRows {
    reader: csv::Reader<Box<dyn Read>>,
    record: StringRecord,
    row: usize,
    /// Bytes of the file read, and all of them; rows of the file, estimated.
    read: Arc<AtomicU64>,
    size: Option<u64>,
    about: Option<f64>,
}

/// Counts the bytes that go through.
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

/// Reads the header of a CSV file; `size`: its bytes, where it is a file.
pub(super) fn open(file: impl Read + 'static, compressed: bool, size: Option<u64>) -> Result<(Vec<String>, CsvRows)> {
    let read = Arc::new(AtomicU64::new(0));
    let file = Counted { inner: file, read: Arc::clone(&read) };
    let mut stream: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut head = Vec::new();
    stream.by_ref().take(HEAD).read_to_end(&mut head).map_err(|e| unreadable(&e))?;
    let lines = head.iter().filter(|b| **b == b'\n').count() as f64;
    let about = size.map(|size| lines * size as f64 / read.load(Ordering::Relaxed).max(1) as f64);
    if head.iter().all(u8::is_ascii_whitespace) {
        bail!("the file is empty");
    }
    let separator = separator(&head);
    let stream: Box<dyn Read> = Box::new(Cursor::new(head).chain(stream));
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_reader(stream);
    let header = reader.headers().map_err(|e| explain(e, 0))?;
    let columns = header.iter().map(|name| name.trim().to_string()).collect();
    Ok((columns, CsvRows { reader, record: StringRecord::new(), row: 0, read, size, about }))
}

/// The most frequent of comma, semicolon and tab in the first line, outside quotes.
fn separator(head: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    let mut started = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            // Blank lines before the header are none, to the reader of the file either.
            b'\n' | b'\r' if !quoted && started => break,
            _ if !quoted => counts.iter_mut().filter(|(b, _)| b == byte).for_each(|(_, n)| *n += 1),
            _ => {}
        }
        started |= !matches!(byte, b'\n' | b'\r');
    }
    // Of equal counts the first: a comma unless something else is there.
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(b, _)| *b)
}

impl Rows for CsvRows {
    fn advance(&mut self) -> Result<bool> {
        let more = self.reader.read_record(&mut self.record).map_err(|e| explain(e, self.row + 1))?;
        self.row += usize::from(more);
        Ok(more)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        self.record.get(column).map_or(Cell::Missing, Cell::Text)
    }

    fn line(&self) -> Option<u64> {
        self.record.position().map(csv::Position::line)
    }

    fn about(&self) -> Option<f64> {
        self.about
    }

    fn share(&self) -> Option<f64> {
        self.size.map(|size| self.read.load(Ordering::Relaxed) as f64 / size.max(1) as f64)
    }
}

/// An error of the reader at `row` (1-based; 0 is the header).
fn explain(error: csv::Error, row: usize) -> Error {
    let line = error.position().map(csv::Position::line);
    let place = match (row, line) {
        (0, _) => "the header".to_string(),
        (row, Some(line)) => format!("row {row} (line {line})"),
        (row, None) => format!("row {row}"),
    };
    match error.into_kind() {
        ErrorKind::Io(e) => unreadable(&e),
        ErrorKind::Utf8 { .. } => anyhow!("{place} is not UTF-8 text; save the table as CSV in UTF-8"),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            anyhow!("{place} has {len} cell(s), the header has {expected_len}")
        }
        other => anyhow!("{place}: {other:?}"),
    }
}

fn unreadable(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => anyhow!("the compressed file is cut off"),
        _ => anyhow!("cannot read the table: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::separator;

    #[test]
    fn the_separator_is_found_in_the_header() {
        assert_eq!(separator(b"a,b\n1;2"), b',');
        assert_eq!(separator(b"a;b;c\n1,5;2;3"), b';');
        assert_eq!(separator(b"a\tb"), b'\t');
        assert_eq!(separator(b"\"a,b,c\";d\n"), b';');
        assert_eq!(separator(b"\n\na;b\n"), b';');
        assert_eq!(separator(b"alone\n1\n"), b',');
    }
}
