//! Parallel iterators of rayon. Without the feature `std`, the calling thread processes all items in turn.

#[cfg(feature = "std")]
pub(crate) use rayon::prelude::*;

#[cfg(not(feature = "std"))]
pub(crate) use self::one_thread::{IntoParallelIterator, ParallelIterator};

#[cfg(not(feature = "std"))]
mod one_thread {
    /// The only method of rayon's trait that is called here.
    pub(crate) trait IntoParallelIterator: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}

    /// The only method of rayon's trait that iterators of `core` lack.
    pub(crate) trait ParallelIterator: Iterator + Sized {
        /// Calls `each` with every item and one value that `init` returns.
        fn for_each_init<T>(self, init: impl FnOnce() -> T, mut each: impl FnMut(&mut T, Self::Item)) {
            let mut value = init();
            self.for_each(|item| each(&mut value, item));
        }
    }

    impl<I: Iterator> ParallelIterator for I {}
}
