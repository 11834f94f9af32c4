//! Reader that removes comment lines from a text, or replaces runs of spaces by one tab.

use std::io::{self, Read};

use super::csv::PIECE;

/// Stream that changes a text as it is read. Text between quotation marks is not changed.
pub(super) struct Tidy<R> {
    inner: R,
    /// First character of lines that are left out. Their line ends are kept, so that line numbers are correct.
    comment: Option<u8>,
    /// True if spaces and tabs separate cells: a run becomes one tab, or nothing at the ends of a line.
    spaces: bool,
    /// State: at the first character of a line, in a comment, between quotation marks, or after a space.
    first: bool,
    in_comment: bool,
    quoted: bool,
    behind_space: bool,
    /// Result of the last piece, and the bytes of it that have been read.
    piece: Vec<u8>,
    taken: usize,
}

impl<R: Read> Tidy<R> {
    /// Returns a stream of the lines that do not begin with `mark`.
    pub fn without_comments(inner: R, mark: u8) -> Tidy<R> {
        Tidy { comment: Some(mark), spaces: false, ..Tidy::new(inner) }
    }

    /// Returns a stream with one tab between words.
    pub fn with_single_tabs(inner: R) -> Tidy<R> {
        Tidy { spaces: true, ..Tidy::new(inner) }
    }

    fn new(inner: R) -> Tidy<R> {
        Tidy {
            inner,
            comment: None,
            spaces: false,
            first: true,
            in_comment: false,
            quoted: false,
            behind_space: false,
            piece: Vec::new(),
            taken: 0,
        }
    }

    fn take(&mut self, byte: u8) {
        let end = matches!(byte, b'\n' | b'\r');
        if self.in_comment {
            self.in_comment = byte != b'\n';
            if end {
                self.piece.push(byte);
            }
            return;
        }
        if self.first && !self.quoted && self.comment == Some(byte) {
            self.in_comment = true;
            return;
        }
        if self.spaces && !self.quoted && matches!(byte, b' ' | b'\t') {
            self.behind_space = !self.first;
            return;
        }
        if self.behind_space && !end {
            self.piece.push(b'\t');
        }
        self.behind_space = false;
        self.first = end && !self.quoted;
        self.quoted ^= byte == b'"';
        self.piece.push(byte);
    }
}

impl<R: Read> Read for Tidy<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() {
            let mut bytes = vec![0; PIECE];
            let n = self.inner.read(&mut bytes)?;
            if n == 0 {
                return Ok(0);
            }
            self.piece.clear();
            self.taken = 0;
            bytes[..n].iter().for_each(|byte| self.take(*byte));
        }
        let n = buffer.len().min(self.piece.len() - self.taken);
        buffer[..n].copy_from_slice(&self.piece[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the resulting text, which must not depend on the pieces in which the input is read.
    fn through(make: impl Fn(Box<dyn Read>) -> Tidy<Box<dyn Read>>, text: &'static str) -> String {
        let mut whole = String::new();
        make(Box::new(text.as_bytes())).read_to_string(&mut whole).unwrap();
        let single = text
            .bytes()
            .fold(Box::new(io::empty()) as Box<dyn Read>, |before, byte| Box::new(before.chain(io::Cursor::new([byte]))));
        let mut bytes = String::new();
        make(single).read_to_string(&mut bytes).unwrap();
        assert_eq!(whole, bytes);
        whole
    }

    #[test]
    fn comments_go_and_the_ends_of_their_lines_stay() {
        let out = through(|text| Tidy::without_comments(text, b'#'), "# head\r\na,b # c\n#\n1,\"x\n# y\"\n#end");
        assert_eq!(out, "\r\na,b # c\n\n1,\"x\n# y\"\n");
    }

    #[test]
    fn words_are_separated_by_one_tab() {
        let out = through(Tidy::with_single_tabs, "  a \t b  c  \n\n1 2 \"x  y\" \r\n");
        assert_eq!(out, "a\tb\tc\n\n1\t2\t\"x  y\"\r\n");
    }
}
