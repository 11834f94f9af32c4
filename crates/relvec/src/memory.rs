//! How much memory there is to use.

use std::hint::black_box;
use std::sync::Once;

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

/// The least limit that what is `needed` under a limit does not exceed. What is kept grows with the limit, but by a part
/// of what it grows.
pub(crate) fn least(needed: impl Fn(u64) -> u64) -> u64 {
    let mut least = needed(0);
    loop {
        match needed(least) {
            more if more > least => least = more,
            _ => return least,
        }
    }
}

/// A block whose release makes glibc keep twice as much at the end of its heap; from 32 MiB on it learns nothing.
const LESSON: usize = 31 << 20;

/// Makes the system's allocator keep what dense matrices leave for the next ones.
///
/// That of glibc gives the end of its heap back to the system whenever 128 KiB of it are free, or twice the largest
/// block that has come and gone; a new matrix is then fresh memory, which takes about as long to touch as its Cholesky
/// factor takes. One block that comes and goes, never touched, spares a tenth of a fit of 2,000 rows; to other allocators it
/// is nothing.
pub(crate) fn keep_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // Where there is not so much, nothing is lost.
        let _ = block.try_reserve_exact(LESSON);
        drop(black_box(block));
    });
}
