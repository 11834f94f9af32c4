//! Whether a file is still the one that was read.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::text::count;

/// Bytes at either end of a file that tell it from another of the same size.
const END: u64 = 1 << 16;

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

    /// A checksum of both ends of the file.
    pub fn ends(&self, path: &Path) -> Result<u32> {
        let read = || -> std::io::Result<u32> {
            let mut file = File::open(path)?;
            let mut bytes = Vec::new();
            file.by_ref().take(END).read_to_end(&mut bytes)?;
            file.seek(SeekFrom::Start(self.bytes.saturating_sub(END)))?;
            file.take(END).read_to_end(&mut bytes)?;
            Ok(crc32fast::hash(&bytes))
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
