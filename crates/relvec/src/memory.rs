//! Available memory.

use std::fs;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, Once};

use crate::error::{Error, Result};

/// Returns the number of bytes that may be used: the limit, or a quarter of the machine's memory. If the address space
/// is limited, it is at most a quarter of that.
pub(crate) fn allowed(limit: Option<u64>) -> u64 {
    limit.unwrap_or_else(|| {
        let mut system = sysinfo::System::new();
        system.refresh_memory();
        // A system that does not report its memory is taken for a small one.
        let quarter = if system.total_memory() == 0 { 1 << 30 } else { system.total_memory() / 4 };
        address_space().map_or(quarter, |space| quarter.min(space / 4))
    })
}

/// Returns the number of bytes of address space that this process may have (`ulimit -v`), if Linux limits them.
pub(crate) fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max address space"))?.split_whitespace().next()?.parse().ok()
}

/// Returns the number of bytes of address space that this process has.
fn in_use() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?.split_whitespace().next()?;
    kilobytes.parse::<u64>().ok().map(|kb| kb << 10)
}

/// Size of the caches if it is not known: that of a large desktop machine.
const UNKNOWN_CACHES: u64 = 64 << 20;

/// Returns the number of bytes of address space that each thread needs for its first large matrix product.
///
/// The matrix crate (private-gemm-x86, beneath faer) reserves address space for two copies of all last-level caches in
/// each thread. It touches only what it uses. It has no setting for that, and ends the process if the reservation
/// fails.
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
    // Counts the processors of a list such as 0-3,8.
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
        // The last level counts as at least four times the level before it.
        Some((own(3).unwrap_or(0.0) / shared).max(4.0 * own(2).unwrap_or(0.0)) as u64)
    };
    let processors = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let caches: u64 = processors.filter(|p| p.path().join("cache").is_dir()).filter_map(|p| share(&p)).sum();
    2 * if caches == 0 { UNKNOWN_CACHES } else { caches }
}

/// Bytes that a small fit needs in addition, so that a thread with a workspace can use it.
const BESIDE: u64 = 16 << 20;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Lets one caller at a time continue until it drops the guard.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

/// Runs `first`, the first product of this thread, if its workspace is available. Returns whether it was.
pub(crate) fn take_workspace(first: impl FnOnce()) -> bool {
    let mut room = Vec::<u8>::new();
    let good = room.try_reserve_exact((workspace() + BESIDE) as usize).is_ok();
    drop(black_box(room));
    if good {
        first();
    }
    good
}

/// Returns the least number of bytes of address space of the process with the workspaces of this many more threads.
pub(crate) fn with_workspaces(threads: u64) -> u64 {
    in_use().unwrap_or(0) + threads * (workspace() + BESIDE)
}

/// Returns an error if `needed` bytes are more than `limit`.
pub(crate) fn afford(what: &str, needed: u64, limit: u64) -> Result<()> {
    if needed > limit { Err(Error::Memory { what: what.into(), needed, limit }) } else { Ok(()) }
}

/// Returns the smallest limit under which the `needed` bytes do not exceed the limit. Stored data grow with the limit,
/// but more slowly.
pub(crate) fn least(needed: impl Fn(u64) -> u64) -> u64 {
    let mut least = needed(0);
    loop {
        match needed(least) {
            more if more > least => least = more,
            _ => return least,
        }
    }
}

/// Bytes of a block whose release makes glibc retain twice as much at the end of its heap. From 32 MiB on a release has
/// no such effect.
const LESSON: usize = 31 << 20;

/// Makes the system's allocator reuse the memory of freed matrices.
///
/// The allocator of glibc returns the end of its heap to the system whenever 128 KiB of it are free, or twice the
/// largest block that was freed before. A new matrix is then fresh memory, and touching it takes about as long as its
/// Cholesky factor. Allocating and freeing one block, without touching it, makes the allocator retain its memory. A fit
/// of 2,000 rows by the scheme mackay then spends 0.19 s instead of 0.45 s in the system, out of 1.3 s in all. The
/// block takes address space for a few microseconds and no memory, and has no effect on other allocators. The
/// alternative, `mallopt`, is an unsafe call into C that only glibc has.
pub(crate) fn keep_freed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // If there is not so much address space, nothing changes.
        let _ = block.try_reserve_exact(LESSON);
        drop(black_box(block));
    });
}
