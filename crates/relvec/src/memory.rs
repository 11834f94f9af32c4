//! How much memory there is to use.

use std::fs;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, Once};

use crate::error::{Error, Result};

/// Bytes that may be taken: the limit, or a quarter of the machine's memory, and of the address space if that is limited.
pub(crate) fn allowed(limit: Option<u64>) -> u64 {
    limit.unwrap_or_else(|| {
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        // A system that does not tell is taken for a small one.
        let quarter = if system.total_memory() == 0 { 1 << 30 } else { system.total_memory() / 4 };
        address_space().map_or(quarter, |space| quarter.min(space / 4))
    })
}

/// Bytes of address space that this process may have (`ulimit -v`), if Linux limits them.
pub(crate) fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max address space"))?.split_whitespace().next()?.parse().ok()
}

/// Bytes of address space that it has.
fn in_use() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?.split_whitespace().next()?;
    kilobytes.parse::<u64>().ok().map(|kb| kb << 10)
}

/// Where nothing is known of the caches: those of a large desktop machine.
const UNKNOWN_CACHES: u64 = 64 << 20;

/// Bytes of address space that each thread takes for its first large matrix product.
///
/// The matrix crate (private-gemm-x86, beneath faer) reserves room for two copies of all last-level caches of the machine in
/// each thread, of which it touches what it uses. It has no setting for that, and ends the process where it cannot have it.
fn workspace() -> u64 {
    let number = |text: String| -> Option<u64> {
        let (digits, unit) = text.trim().split_at(text.trim().find(|c: char| !c.is_ascii_digit()).unwrap_or(text.trim().len()));
        let unit = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => 1,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    };
    // Processors in a list such as 0-3,8.
    let sharers = |list: String| -> u64 {
        let count = |range: &str| match range.split_once('-') {
            Some((first, last)) => {
                last.parse::<u64>().ok().zip(first.parse().ok()).map_or(1, |(l, f): (u64, u64)| l.abs_diff(f) + 1)
            }
            None => 1,
        };
        list.trim().split(',').map(count).sum()
    };
    let share = |processor: &fs::DirEntry| -> Option<u64> {
        let cache = |index: u32| processor.path().join(format!("cache/index{index}"));
        let own = |index: u32| Some(number(fs::read_to_string(cache(index).join("size")).ok()?)? as f64);
        let shared = sharers(fs::read_to_string(cache(3).join("shared_cpu_list")).unwrap_or_default()) as f64;
        // The last level counts for no less than four of the level before.
        Some((own(3).unwrap_or(0.0) / shared).max(4.0 * own(2).unwrap_or(0.0)) as u64)
    };
    let processors = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let caches: u64 = processors.filter(|p| p.path().join("cache").is_dir()).filter_map(|p| share(&p)).sum();
    2 * if caches == 0 { UNKNOWN_CACHES } else { caches }
}

/// What a small fit takes beside: a thread that has its workspace should be able to use it.
const BESIDE: u64 = 16 << 20;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Lets one caller at a time go on until it drops what it gets.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

/// Runs `first`, the first product of this thread, if its workspace can be had.
pub(crate) fn take_workspace(first: impl FnOnce()) -> bool {
    let mut room = Vec::<u8>::new();
    let good = room.try_reserve_exact((workspace() + BESIDE) as usize).is_ok();
    drop(black_box(room));
    if good {
        first();
    }
    good
}

/// Bytes of address space that the process would have with the workspaces of so many more threads, at least.
pub(crate) fn with_workspaces(threads: u64) -> u64 {
    in_use().unwrap_or(0) + threads * (workspace() + BESIDE)
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
/// The allocator of glibc returns the end of its heap to the system whenever 128 KiB of it are free, or twice the largest
/// block that has come and gone; a new matrix is then fresh memory, which takes about as long to touch as its Cholesky
/// factor takes. One block that comes and goes, never touched, makes it keep what it has: a fit of 2,000 rows by the scheme
/// mackay then spends 0.19 s in the system and not 0.45 s, of 1.3 s in all. The block takes address space for some microseconds,
/// no memory, and does nothing to other allocators. The other way, `mallopt`, is a call into C: unsafe, and glibc's alone.
pub(crate) fn keep_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // Where there is not so much, nothing is lost.
        let _ = block.try_reserve_exact(LESSON);
        drop(black_box(block));
    });
}
