//! Rows of a CSV file: separator found in the header, plain or gzip.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Error, Result, anyhow, bail};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::{Cell, MOST_CELL, MOST_COLUMNS, Rows};
use crate::text::count;

/// Bytes in which the end of the header is looked for.
const HEAD: u64 = 1 << 20;
/// Most bytes of a row: 64 for each of a million columns. A row is in memory as a whole, and a small compressed file can
/// hold one without end.
const MOST_RECORD: usize = 1 << 26;
/// Bytes read at a time.
const PIECE: usize = 1 << 16;
/// Cells of a row beyond those of the header that are counted, so that an error can say how many there are.
const CELLS_COUNTED: usize = 1000;

pub(super) struct CsvRows {
    input: BufReader<Box<dyn Read>>,
    parser: Reader,
    record: Record,
    separator: u8,
    /// Columns of the header.
    columns: usize,
    row: usize,
    /// Bytes of the file read, and all of them; rows of the file, estimated.
    read: Arc<AtomicU64>,
    size: Option<u64>,
    about: Option<f64>,
}

/// The cells of a row.
#[derive(Default)]
struct Record {
    /// One after the other, and room for more.
    bytes: Vec<u8>,
    /// Where each ends, and room for more; how many there are.
    ends: Vec<usize>,
    cells: usize,
    /// Where the row begins in the file.
    line: u64,
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
    let input = BufReader::with_capacity(PIECE, stream);
    let parser = ReaderBuilder::new().delimiter(separator).build();
    let record = Record::default();
    let mut rows = CsvRows { input, parser, record, separator, columns: MOST_COLUMNS, row: 0, read, size, about };
    if !rows.record()? {
        bail!("the file is empty");
    }
    rows.columns = rows.record.cells;
    let columns = (0..rows.columns).map(|column| rows.text(column).unwrap_or_default().trim().to_string()).collect();
    Ok((columns, rows))
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

impl CsvRows {
    /// Reads the next row; `false` after the last one.
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

    /// A cell of the present row, if there is such a one and it is text.
    fn text(&self, cell: usize) -> Option<&str> {
        let Record { bytes, ends, cells, .. } = &self.record;
        let start = if cell == 0 { 0 } else { *ends.get(cell - 1)? };
        let end = *ends[..*cells].get(cell)?;
        std::str::from_utf8(&bytes[start..end]).ok()
    }
}

/// Whether one of the last `new` cells is too long.
fn has_long(ends: &[usize], new: usize) -> bool {
    let first = ends.len() - new;
    let start = if first == 0 { 0 } else { ends[first - 1] };
    ends[first..].iter().scan(start, |before, end| Some(end - std::mem::replace(before, *end))).any(|size| size > MOST_CELL)
}

/// Where `row` is (1-based; 0 is the header).
fn place(row: usize, line: u64) -> String {
    if row == 0 { "the header".to_string() } else { format!("row {row} (line {line})") }
}

impl Rows for CsvRows {
    fn advance(&mut self) -> Result<bool> {
        self.row += 1;
        let more = self.record()?;
        let (found, expected) = (self.record.cells, self.columns);
        if more && found != expected {
            bail!("{} has {}, the header has {expected}", place(self.row, self.record.line), count(found, "cell"));
        }
        Ok(more)
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

fn unreadable(error: &io::Error) -> Error {
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
    }

    /// The error of a table, and the bytes that were kept of it.
    fn refused(bytes: impl Read + 'static) -> (String, usize) {
        let (error, kept) = match open(bytes, false, None) {
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
