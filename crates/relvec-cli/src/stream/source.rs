//! Detects whether a file has changed while it was read.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::text::count;

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// Size and time of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    pub bytes: u64,
    modified: Option<SystemTime>,
}

impl Source {
    /// The file is a pipe or a device, which can be read only once.
    pub fn of(path: &Path) -> Result<Source> {
        let found = fs::metadata(path).with_context(|| format!("`{}`: cannot open the table", path.display()))?;
        if !found.is_file() {
            bail!(
                "`{}`: this is not a file, but a table in blocks is read twice: save it as a file, or leave out --stream and --checkpoint",
                path.display()
            );
        }
        Ok(Source { bytes: found.len(), modified: found.modified().ok() })
    }

    /// The file at `path` has changed.
    pub fn check(&self, path: &Path) -> Result<()> {
        let now = Source::of(path)?;
        if now.bytes != self.bytes {
            bail!("`{}` changed while it was read: it had {} bytes and has {} now", path.display(), self.bytes, now.bytes);
        }
        if now.modified != self.modified {
            bail!("`{}` changed while it was read: a program has written to it", path.display());
        }
        Ok(())
    }

    /// Returns a checksum of all bytes of the file.
    ///
    /// All bytes count, since sums over rows that have changed would be wrong without a sign. The time of the file is
    /// no proof: a copy has another time, and a changed file may have the same. Compared with the sums, reading the
    /// file once more takes little time.
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

/// The second pass has read another number of rows than the first.
pub(super) fn check_rows(path: &Path, first: usize, second: usize) -> Result<()> {
    if first != second {
        let (first, more) = (count(first, "row"), if second > first { "more" } else { "fewer" });
        bail!("`{}` changed while it was read: it had {first} and has {more} now", path.display());
    }
    Ok(())
}
