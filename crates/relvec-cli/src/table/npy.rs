//! Rows of an .npy file: a matrix of numbers, read in blocks.
//!
//! The file is not mapped into memory: mapped pages count as memory of the process and would grow with the table.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use anyhow::{Context, Result, anyhow, bail};
use npyz::{DType, Deserialize, NpyHeader, Order, TypeRead};

use super::guard::contain;
use super::{Cell, MOST_COLUMNS, Rows};
use crate::text::count;

/// Bytes decoded at a time. The second limit is for matrices in column order: each column has its own piece of the
/// file, and many short pieces would mean many small reads.
const CHUNK: usize = 1 << 20;
const CHUNK_BY_COLUMNS: usize = 1 << 25;
/// Most bytes of the header, as in the format's first version, and deepest nesting of its content.
const MOST_HEADER: u64 = 1 << 16;
const DEEPEST: usize = 16;

/// First bytes of every .npy file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

pub(super) struct NpyRows {
    file: BufReader<File>,
    decode: Decode,
    /// Bytes of a number.
    width: usize,
    kind: Kind,
    /// N and D; `by_columns` is true if the file is in column order.
    shape: (usize, usize),
    by_columns: bool,
    /// Position of the first number in the file.
    start: u64,
    /// Rows read so far, decoded rows [B, D], and index of the current row among these.
    row: usize,
    values: Vec<u64>,
    place: usize,
}

/// Meaning of the 64 bits of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Boolean,
}

/// Function that decodes bytes to numbers of 64 bits.
type Decode = Box<dyn Fn(&[u8], &mut dyn FnMut(u64)) -> std::io::Result<()> + Send>;

/// Reads the header of a file of `size` bytes. The columns are named by their numbers from 0.
pub(super) fn open(file: File, size: u64) -> Result<(Vec<String>, NpyRows)> {
    let mut file = BufReader::new(file);
    let header = header(&mut file)?;
    let start = file.stream_position().context("cannot read the table")?;
    let (n, d) = match header.shape() {
        [n, d] => (usize::try_from(*n)?, usize::try_from(*d)?),
        shape => bail!("the .npy file holds an array of {}; rows and columns are needed", count(shape.len(), "dimension")),
    };
    let dtype = header.dtype();
    let (Some(width), Some((kind, decode))) = (dtype.num_bytes(), decoder(&dtype)) else {
        bail!("the .npy file holds values of type {}; numbers are needed", dtype.descr());
    };
    if n == 0 || d == 0 {
        bail!("the .npy file is empty: {} of {}", count(n, "row"), count(d, "number"));
    }
    if d > MOST_COLUMNS {
        bail!("the .npy file has {d} columns; at most {MOST_COLUMNS} can be read");
    }
    let expected = (n as u64).checked_mul(d as u64).and_then(|v| v.checked_mul(width as u64)?.checked_add(start));
    match expected {
        Some(expected) if expected <= size => {}
        _ => bail!("the .npy file is cut off: {size} bytes, and {n} rows of {d} numbers were announced"),
    }
    let columns = (0..d).map(|k| k.to_string()).collect();
    let by_columns = header.order() == Order::Fortran;
    let (values, row, place) = (Vec::new(), 0, 0);
    Ok((columns, NpyRows { file, decode, width, kind, shape: (n, d), by_columns, start, row, values, place }))
}

/// Reads the header. Its length and nesting are checked first, since the crate allocates and recurses without limits.
fn header(file: &mut BufReader<File>) -> Result<NpyHeader> {
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_HEADER).read_to_end(&mut bytes).context("cannot read the table")?;
    let version = bytes.get(MAGIC.len()).copied().unwrap_or(0);
    let (prefix, length) = match (version, &bytes.get(8..)) {
        (1, Some([low, high, ..])) => (10, u64::from(u16::from_le_bytes([*low, *high]))),
        (2.., Some([a, b, c, d, ..])) => (12, u64::from(u32::from_le_bytes([*a, *b, *c, *d]))),
        _ => bail!("the header of the .npy file is cut off"),
    };
    if prefix + length > MOST_HEADER {
        bail!("the header of the .npy file has {length} bytes; at most {} can be read", MOST_HEADER - prefix);
    }
    let end = (prefix + length) as usize;
    let Some(own) = bytes.get(..end) else { bail!("the header of the .npy file is cut off") };
    let opened = own.iter().filter(|byte| b"([{".contains(byte)).count();
    if opened > DEEPEST {
        bail!("the header of the .npy file has {opened} opening brackets; at most {DEEPEST} can be read");
    }
    let mut rest = own;
    let header = contain(|| NpyHeader::from_reader(&mut rest)).context("the header of the .npy file is damaged")?;
    let header = header.map_err(|e| anyhow!("cannot read the header of the .npy file: {e}"))?;
    file.seek(SeekFrom::Start(end as u64)).context("cannot read the table")?;
    Ok(header)
}

fn decoder(dtype: &DType) -> Option<(Kind, Decode)> {
    fn of<T: Deserialize>(dtype: &DType, kind: Kind, bits: impl Fn(T) -> u64 + Send + 'static) -> Option<(Kind, Decode)>
    where
        T::TypeReader: Send + 'static,
    {
        let reader = T::reader(dtype).ok()?;
        let decode: Decode = Box::new(move |mut bytes, each| {
            while !bytes.is_empty() {
                each(bits(reader.read_one(&mut bytes)?));
            }
            Ok(())
        });
        Some((kind, decode))
    }
    of::<f64>(dtype, Kind::Float, f64::to_bits)
        .or_else(|| of::<f32>(dtype, Kind::Float, |v| f64::from(v).to_bits()))
        .or_else(|| of::<i64>(dtype, Kind::Signed, |v| v as u64))
        .or_else(|| of::<i32>(dtype, Kind::Signed, |v| i64::from(v) as u64))
        .or_else(|| of::<i16>(dtype, Kind::Signed, |v| i64::from(v) as u64))
        .or_else(|| of::<i8>(dtype, Kind::Signed, |v| i64::from(v) as u64))
        .or_else(|| of::<u64>(dtype, Kind::Unsigned, |v| v))
        .or_else(|| of::<u32>(dtype, Kind::Unsigned, u64::from))
        .or_else(|| of::<u16>(dtype, Kind::Unsigned, u64::from))
        .or_else(|| of::<u8>(dtype, Kind::Unsigned, u64::from))
        .or_else(|| of::<bool>(dtype, Kind::Boolean, u64::from))
}

impl NpyRows {
    /// Decodes the next rows.
    fn fill(&mut self) -> Result<()> {
        let (n, d) = self.shape;
        let chunk = if self.by_columns { CHUNK_BY_COLUMNS } else { CHUNK };
        let rows = (chunk / (self.width * d)).max(1).min(n - self.row);
        self.values.resize(rows * d, 0);
        // In column order each column has its own piece of the file; in row order the rows are one piece.
        let (pieces, length) = if self.by_columns { (d, rows) } else { (1, rows * d) };
        let mut bytes = vec![0; length * self.width];
        for piece in 0..pieces {
            let first = if self.by_columns { piece * n + self.row } else { self.row * d };
            let problem = || format!("cannot read row {} of the .npy file", self.row + 1);
            self.file.seek(SeekFrom::Start(self.start + (first * self.width) as u64)).with_context(problem)?;
            self.file.read_exact(&mut bytes).with_context(problem)?;
            let step = if self.by_columns { d } else { 1 };
            let mut slots = self.values.iter_mut().skip(piece).step_by(step);
            let mut put = |v| {
                if let Some(slot) = slots.next() {
                    *slot = v;
                }
            };
            (self.decode)(&bytes, &mut put).with_context(problem)?;
        }
        self.place = 0;
        Ok(())
    }
}

impl Rows for NpyRows {
    fn advance(&mut self) -> Result<bool> {
        let (n, d) = self.shape;
        if self.row == n {
            return Ok(false);
        }
        self.place += 1;
        if self.row == 0 || (self.place + 1) * d > self.values.len() {
            self.fill()?;
        }
        self.row += 1;
        Ok(true)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        let value = self.values[self.place * self.shape.1 + column];
        match self.kind {
            Kind::Float => Cell::Number(f64::from_bits(value)),
            Kind::Signed => Cell::whole(i128::from(value as i64)),
            Kind::Unsigned => Cell::whole(i128::from(value)),
            Kind::Boolean => Cell::Boolean(value != 0),
        }
    }

    fn format(&self) -> String {
        ".npy matrix".to_string()
    }

    fn line(&self) -> Option<u64> {
        None
    }

    fn count(&self) -> Option<usize> {
        Some(self.shape.0)
    }
}
