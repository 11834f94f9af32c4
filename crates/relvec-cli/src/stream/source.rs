//! Whether a file is still the one that was read.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::text::count;

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// What a file looks like from outside.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    pub bytes: u64,
    modified: Option<SystemTime>,
}

impl Source {
    /// # Errors
    /// A pipe or a device: it can be read only once.
    pub fn of(path: &Path) -> Result<Source> {
        let found = fs::metadata(path).with_context(|| format!("`{}`: cannot open the table", path.display()))?;
        if !found.is_file() {
            bail!(
                "`{}`: this is no file, and a table read in blocks is read twice: save it as a file first, or leave out --stream and --checkpoint",
                path.display()
            );
        }
        Ok(Source { bytes: found.len(), modified: found.modified().ok() })
    }

    /// # Errors
    /// The file at `path` is another one by now.
    pub fn check(&self, path: &Path) -> Result<()> {
        let now = Source::of(path)?;
        if now.bytes != self.bytes {
            bail!("`{}` changed while it was read: it had {} bytes and has {} now", path.display(), self.bytes, now.bytes);
        }
        if now.modified != self.modified {
            bail!("`{}` changed while it was read: it has been written to", path.display());
        }
        Ok(())
    }

    /// A checksum of all bytes of the file.
    ///
    /// All of them: sums over rows that have changed since are wrong without a sign. When it was written says neither
    /// that it is another (a copy is not) nor that it is the same; and beside the sums over its rows, reading it once
    /// more takes little.
    pub fn checksum(&self, path: &Path) -> Result<u32> {
        let read = || -> std::io::Result<u32> {
            let mut file = File::open(path)?;
            let (mut hasher, mut piece) = (crc32fast::Hasher::new(), vec![0; PIECE]);
            loop {
                match file.read(&mut piece)? {
                    0 => return Ok(hasher.finalize()),
                    n => hasher.update(&piece[..n]),
                }
            }
        };
        read().with_context(|| format!("`{}`: cannot read the table", path.display()))
    }
}

/// # Errors
/// The second pass found another number of rows than the first.
pub(super) fn check_rows(path: &Path, first: usize, second: usize) -> Result<()> {
    if first != second {
        let (first, more) = (count(first, "row"), if second > first { "more" } else { "fewer" });
        bail!("`{}` changed while it was read: it had {first} and has {more} now", path.display());
    }
    Ok(())
}
