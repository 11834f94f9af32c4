//! Rows of an .npy file: a matrix of numbers, in blocks of the file.
//!
//! Read, not mapped: pages of a mapped file count as memory of the process, and would grow with the table.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use anyhow::{Context, Result, anyhow, bail};
use npyz::{DType, Deserialize, NpyHeader, Order, TypeRead};

use super::{Cell, Rows};

/// Bytes decoded at a time.
const CHUNK: usize = 1 << 20;

/// First bytes of every such file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

pub(super) struct NpyRows {
    file: BufReader<File>,
    decode: Decode,
    /// Bytes of a number.
    width: usize,
    boolean: bool,
    /// N, D, and whether columns (not rows) are written one after the other.
    shape: (usize, usize),
    by_columns: bool,
    /// Where the numbers begin.
    start: u64,
    /// Rows gone by; rows decoded, [B, D]; the place of the present row among them.
    row: usize,
    values: Vec<f64>,
    place: usize,
}

/// The numbers in bytes.
type Decode = Box<dyn Fn(&[u8], &mut dyn FnMut(f64)) -> std::io::Result<()> + Send>;

/// Reads the header. The columns are named by their places, from 0.
pub(super) fn open(file: File) -> Result<(Vec<String>, NpyRows)> {
    let size = file.metadata().context("cannot read the table")?.len();
    let mut file = BufReader::new(file);
    let header = NpyHeader::from_reader(&mut file).map_err(|e| anyhow!("cannot read the header of the .npy file: {e}"))?;
    let start = file.stream_position().context("cannot read the table")?;
    let (n, d) = match header.shape() {
        [n, d] => (usize::try_from(*n)?, usize::try_from(*d)?),
        shape => bail!("the .npy file holds an array of {} dimension(s); rows and columns are needed", shape.len()),
    };
    let dtype = header.dtype();
    let (Some(width), Some(decode)) = (dtype.num_bytes(), decoder(&dtype)) else {
        bail!("the .npy file holds values of type {}; numbers are needed", dtype.descr());
    };
    let expected = (n as u64).checked_mul(d as u64).and_then(|v| v.checked_mul(width as u64)?.checked_add(start));
    match expected {
        Some(expected) if expected <= size => {}
        _ => bail!("the .npy file is cut off: {size} bytes, and {n} rows of {d} numbers were announced"),
    }
    let columns = (0..d).map(|k| k.to_string()).collect();
    let boolean = dtype.descr().contains('b');
    let by_columns = header.order() == Order::Fortran;
    let (values, row, place) = (Vec::new(), 0, 0);
    Ok((columns, NpyRows { file, decode, width, boolean, shape: (n, d), by_columns, start, row, values, place }))
}

fn decoder(dtype: &DType) -> Option<Decode> {
    fn of<T: Deserialize>(dtype: &DType, number: impl Fn(T) -> f64 + Send + 'static) -> Option<Decode>
    where
        T::TypeReader: Send + 'static,
    {
        let reader = T::reader(dtype).ok()?;
        Some(Box::new(move |mut bytes, each| {
            while !bytes.is_empty() {
                each(number(reader.read_one(&mut bytes)?));
            }
            Ok(())
        }))
    }
    of::<f64>(dtype, |v| v)
        .or_else(|| of::<f32>(dtype, f64::from))
        .or_else(|| of::<i64>(dtype, |v| v as f64))
        .or_else(|| of::<i32>(dtype, f64::from))
        .or_else(|| of::<i16>(dtype, f64::from))
        .or_else(|| of::<i8>(dtype, f64::from))
        .or_else(|| of::<u64>(dtype, |v| v as f64))
        .or_else(|| of::<u32>(dtype, f64::from))
        .or_else(|| of::<u16>(dtype, f64::from))
        .or_else(|| of::<u8>(dtype, f64::from))
        .or_else(|| of::<bool>(dtype, |v| f64::from(u8::from(v))))
}

impl NpyRows {
    /// Decodes the next rows.
    fn fill(&mut self) -> Result<()> {
        let (n, d) = self.shape;
        let rows = (CHUNK / (self.width * d.max(1))).max(1).min(n - self.row);
        self.values.resize(rows * d, 0.0);
        // By columns, a part of each lies in a place of its own; by rows, all is one piece.
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
        if self.boolean { Cell::Boolean(value != 0.0) } else { Cell::Number(value) }
    }

    fn line(&self) -> Option<u64> {
        None
    }

    fn count(&self) -> Option<usize> {
        Some(self.shape.0)
    }
}
