//! Binary format of queries, answers and surveys: a line with kind and version, a JSON header, 64-bit numbers, and a
//! checksum.

use ndarray::{Array2, ArrayView2};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Writer of a sequence of 64-bit numbers.
#[derive(Default)]
pub(super) struct Writer(Vec<u64>);

impl Writer {
    pub fn count(&mut self, v: u64) {
        self.0.push(v);
    }

    pub fn counts(&mut self, counts: impl IntoIterator<Item = u64>) {
        self.0.extend(counts);
    }

    pub fn number(&mut self, v: f64) {
        self.0.push(v.to_bits());
    }

    pub fn numbers<'a>(&mut self, values: impl IntoIterator<Item = &'a f64>) {
        self.0.extend(values.into_iter().map(|v| v.to_bits()));
    }

    /// Appends the number of bytes and then the bytes, padded with zeros to a multiple of 8.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.count(u64::from_le_bytes(word));
        }
    }

    /// Appends the lower triangle of a matrix, [M, M], row by row.
    pub fn triangle(&mut self, a: ArrayView2<f64>) {
        for (i, row) in a.outer_iter().enumerate() {
            self.numbers(row.iter().take(i + 1));
        }
    }

    /// Returns all bytes of a value: `magic`, which ends with a line break, the header, the numbers and a checksum.
    pub fn pack(self, magic: &[u8], header: &impl Serialize) -> Vec<u8> {
        let header = serde_json::to_vec(header).expect("a header is plain numbers and names");
        let mut out = Vec::with_capacity(magic.len() + header.len() + 8 * self.0.len() + 20);
        out.extend(magic);
        out.extend((header.len() as u64).to_le_bytes());
        out.extend(header);
        out.extend((self.0.len() as u64).to_le_bytes());
        out.extend(self.0.into_iter().flat_map(u64::to_le_bytes));
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }
}

/// Returns the checksum at the end of bytes that [`Writer::pack`] wrote.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    bytes.last_chunk().map_or(0, |last| u32::from_le_bytes(*last))
}

/// Reader of 64-bit numbers, in the order in which they were written.
pub(super) struct Reader {
    what: &'static str,
    words: std::vec::IntoIter<u64>,
}

/// Returns the error for bytes that cannot be read.
pub(super) fn damaged(what: &'static str) -> Error {
    Error::Rows(format!("these bytes are not a valid relvec {what}: they are of another kind, cut short or damaged"))
}

/// Splits bytes that [`Writer::pack`] wrote into header and numbers. `what` names the kind of value in errors.
///
/// # Errors
/// Returns [`Error::Rows`] if the bytes are of another kind or version, cut short or damaged.
pub(super) fn unpack<H: DeserializeOwned>(magic: &[u8], what: &'static str, bytes: &[u8]) -> Result<(H, Reader)> {
    let bad = || damaged(what);
    let Some(rest) = bytes.strip_prefix(magic) else {
        // The prefix without the version tells a value of another version from other bytes.
        let kind = magic.iter().rposition(|b| *b == b' ').map_or(0, |at| at + 1);
        return Err(match bytes.get(..kind) == Some(&magic[..kind]) {
            true => Error::Rows(format!("this {what} was written by another version of relvec: use the same version everywhere")),
            false => bad(),
        });
    };
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
    if crc32fast::hash(body).to_le_bytes() != *sum {
        return Err(bad());
    }
    let rest = &rest[..rest.len().checked_sub(4).ok_or_else(bad)?];
    let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(bad)?;
    let (header, rest) =
        usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| rest.split_at_checked(length)).ok_or_else(bad)?;
    let header = serde_json::from_slice(header).map_err(|error| Error::Rows(format!("{what}: {error}")))?;
    let (count, rest) = rest.split_first_chunk::<8>().ok_or_else(bad)?;
    let (words, odd) = rest.as_chunks::<8>();
    if !odd.is_empty() || u64::from_le_bytes(*count) != words.len() as u64 {
        return Err(bad());
    }
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    Ok((header, Reader { what, words: words.into_iter() }))
}

impl Reader {
    fn bad(&self) -> Error {
        damaged(self.what)
    }

    pub fn count(&mut self) -> Result<u64> {
        self.words.next().ok_or_else(|| self.bad())
    }

    /// Reads the number of items that follow. Each takes at least one 64-bit number, so a larger number than remain is
    /// an error.
    pub fn size(&mut self) -> Result<usize> {
        let size = self.count()?;
        if size > self.words.len() as u64 { Err(self.bad()) } else { Ok(size as usize) }
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let count = self.count()?;
        let words =
            usize::try_from(count.div_ceil(8)).ok().filter(|words| *words <= self.words.len()).ok_or_else(|| self.bad())?;
        let mut bytes: Vec<u8> = self.words.by_ref().take(words).flat_map(u64::to_le_bytes).collect();
        bytes.truncate(count as usize);
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<f64> {
        self.count().map(f64::from_bits)
    }

    pub fn numbers(&mut self, count: usize) -> Result<Vec<f64>> {
        if count > self.words.len() {
            return Err(self.bad());
        }
        Ok(self.words.by_ref().take(count).map(f64::from_bits).collect())
    }

    /// Reads `count` numbers, which must be finite.
    pub fn finite(&mut self, count: usize) -> Result<Vec<f64>> {
        let numbers = self.numbers(count)?;
        if numbers.iter().all(|v| v.is_finite()) { Ok(numbers) } else { Err(self.bad()) }
    }

    /// Reads a matrix, [rows, columns], of finite numbers.
    pub fn matrix(&mut self, rows: usize, columns: usize) -> Result<Array2<f64>> {
        let numbers = rows.checked_mul(columns).ok_or_else(|| self.bad())?;
        let numbers = self.finite(numbers)?;
        Ok(Array2::from_shape_vec((rows, columns), numbers).expect("as many numbers as the shape has"))
    }

    /// Reads the lower triangle of a matrix, [M, M]. Entries above the diagonal are zero.
    pub fn triangle(&mut self, m: usize) -> Result<Array2<f64>> {
        let count = m.checked_add(1).and_then(|next| m.checked_mul(next)).ok_or_else(|| self.bad())? / 2;
        let mut numbers = self.finite(count)?.into_iter();
        let mut out = Array2::zeros((m, m));
        for i in 0..m {
            out.row_mut(i).iter_mut().take(i + 1).zip(numbers.by_ref()).for_each(|(out, v)| *out = v);
        }
        Ok(out)
    }

    /// Checks that all numbers were read.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if numbers remain.
    pub fn end(self) -> Result<()> {
        if self.words.len() > 0 { Err(self.bad()) } else { Ok(()) }
    }
}
