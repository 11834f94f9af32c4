//! How much memory there is to use.

use crate::error::{Error, Result};

/// Bytes that may be taken: the limit, or a quarter of the machine's memory.
pub(crate) fn allowed(limit: Option<u64>) -> u64 {
    limit.unwrap_or_else(|| {
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        // A system that does not tell is taken for a small one.
        if system.total_memory() == 0 { 1 << 30 } else { system.total_memory() / 4 }
    })
}

/// An error if `needed` bytes are more than may be taken.
pub(crate) fn afford(what: &str, needed: u64, limit: u64) -> Result<()> {
    if needed > limit { Err(Error::Memory { what: what.into(), needed, limit }) } else { Ok(()) }
}
