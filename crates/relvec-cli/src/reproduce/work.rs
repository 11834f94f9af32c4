//! Runs many fits in parallel.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns each(0), .., each(n - 1) in order, computed by `threads` threads.
///
/// These are plain threads, since a fit waits for its own thread pool. A waiting worker of another pool would start the
/// next fit on top of its stack, and so on.
pub(super) fn side_by_side<T: Send>(threads: usize, n: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads.min(n) {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= n {
                        return;
                    }
                    let result = each(k);
                    done.lock().expect("no thread fails while it holds the lock").push((k, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread fails while it holds the lock");
    done.sort_by_key(|(k, _)| *k);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        assert_eq!(side_by_side(3, 20, |k| k * k), (0..20).map(|k| k * k).collect::<Vec<_>>());
        assert!(side_by_side(2, 0, |k| k).is_empty());
    }
}
