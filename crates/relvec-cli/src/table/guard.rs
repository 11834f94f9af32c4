//! Converts panics of a format's crate to errors of the file.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// True if this thread is inside [`contain`], where panics are expected and the caller reports them.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or `None` if it panicked. Nothing is printed then.
///
/// The caller must drop whatever `work` has changed, since a panic may leave it half done. A panic hook prints before a
/// panic can be caught. The hook installed here is silent on threads inside this function and calls the earlier hook on
/// all others.
pub(super) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                earlier(info);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contain_returns_values_and_catches_panics_on_every_thread() {
        assert_eq!(contain(|| 3), Some(3));
        let panicking = || contain(|| if CONTAINED.get() { panic!("of the test") } else { 0 });
        assert_eq!(panicking(), None);
        assert_eq!(std::thread::spawn(panicking).join().unwrap(), None);
        assert!(!CONTAINED.get());
        // Nested calls stay silent until the outermost has ended.
        assert_eq!(contain(|| (panicking(), CONTAINED.get())), Some((None, true)));
    }
}
