//! Memory of a fit in blocks, and size of the blocks.

use relvec::Error;

/// Most bytes of a block of rows, the divisor of the memory limit for a block, and most and least rows.
const BLOCK_BYTES: u64 = 1 << 25;
const BLOCK_SHARE: u64 = 16;
const MOST_ROWS: u64 = 1 << 15;
const LEAST_ROWS: u64 = 256;
/// Most bytes of a block of basis functions, the library's rule, and its least and most rows.
const BASIS_BYTES: u64 = 1 << 24;
const BASIS_ROWS: (u64, u64) = (16, 4096);
/// Numbers per row in a fit in memory, in addition to three copies of the row.
const VECTORS: f64 = 28.0;
/// Matrices of the landmarks' size while the sums are computed and solved, as measured.
const MATRICES: u64 = 12;
/// Numbers stored for a row of the sample in addition to its features: its target, and the target for a fit.
const ANSWERS: u64 = 6;
/// Numbers per row of the sample in addition to three copies of it, while the survey draws the sample: keys and nodes
/// of its tree, lists and indices. 22 were measured.
const TREE: u64 = 24;
/// Numbers per row of the sample while the kernel is learned (the size of the library's training set), and least
/// numbers in addition: four matrices of 125 rows. With more memory the kernel is learned from more rows.
const LEARNING_VECTORS: u64 = 32;
const LEARNING: u64 = 4 * 125 * 125;

/// Returns the bytes of a fit with the whole table in memory.
pub(super) fn in_memory(rows: f64, columns: usize) -> f64 {
    8.0 * rows * (3.0 * columns as f64 + VECTORS)
}

/// Returns the rows of a block. They depend only on sizes, so that the sums are reproducible to the last digit.
fn block_rows(columns: usize, limit: u64) -> usize {
    let bytes = BLOCK_BYTES.min(limit / BLOCK_SHARE);
    (bytes / (8 * columns as u64)).clamp(LEAST_ROWS, MOST_ROWS) as usize
}

/// Sizes that determine the memory of a fit in blocks, apart from its landmarks.
pub(super) struct Sizes {
    pub columns: usize,
    /// Rows that landmarks are chosen from.
    pub sample: usize,
    /// True if the kernel is learned from these rows.
    pub learns: bool,
    /// Memory limit in bytes.
    pub limit: u64,
}

impl Sizes {
    /// Rows of a block.
    pub fn block_rows(&self) -> usize {
        block_rows(self.columns, self.limit)
    }

    /// Returns an error if a fit with `landmarks` landmarks takes more than the limit. The error names the least limit
    /// for this number, or for `likely` landmarks if that is more.
    pub fn afford(&self, landmarks: usize, likely: usize) -> Result<(), Error> {
        let limit = self.limit;
        if self.needed(landmarks, limit) <= limit {
            return Ok(());
        }
        let landmarks = landmarks.max(likely);
        // A larger limit allows larger blocks, which take only a part of the increase, so the iteration converges.
        let mut least = self.needed(landmarks, 0);
        while self.needed(landmarks, least) > least {
            least = self.needed(landmarks, least);
        }
        let Sizes { columns, sample, .. } = *self;
        let what = format!("a fit in blocks of rows ({columns} columns, a sample of {sample} rows, {landmarks} landmarks)");
        Err(Error::Memory { what, needed: least, limit })
    }

    /// Returns the bytes of the sample while the kernel is learned: the rows in original and scaled units, and their
    /// targets.
    pub fn sampled(&self) -> u64 {
        8 * self.sample as u64 * (2 * self.columns as u64 + ANSWERS)
    }

    fn needed(&self, landmarks: usize, limit: u64) -> u64 {
        let (d, s, l) = (self.columns as u64, self.sample as u64, landmarks as u64 + 1);
        // The larger of two states: rows in the tree, in lists and as arrays; or original, scaled and two more copies
        // while landmarks are chosen.
        let first = s * (3 * d + TREE).max(4 * (d + 2));
        let learning = if self.learns { self.sampled() / 8 + s * (d + LEARNING_VECTORS) + LEARNING } else { 0 };
        let basis = (BASIS_BYTES / (8 * l)).clamp(BASIS_ROWS.0, BASIS_ROWS.1) * l;
        let second = MATRICES * l * l + 3 * l * d + basis;
        let block = 3 * block_rows(self.columns, limit) as u64 * (d + 2);
        8 * (first.max(second).max(learning) + block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_is_named_works() {
        let cases = [(2, 20_000, 10), (11, 20_000, 1000), (1001, 2, 2), (50, 20_000, 5000)];
        for ((columns, sample, landmarks), learns) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
            let afford = |least: usize, limit: u64| Sizes { columns, sample, learns, limit }.afford(least, landmarks);
            let Err(Error::Memory { needed, .. }) = afford(1, 1000) else { panic!("a kilobyte") };
            assert_eq!(afford(landmarks, needed), Ok(()));
            assert!(afford(landmarks, needed - needed / 50).is_err(), "{columns} {landmarks}");
        }
    }

    #[test]
    fn blocks_are_bounded() {
        assert_eq!(block_rows(11, 1 << 30), MOST_ROWS as usize);
        assert_eq!(block_rows(1 << 20, 1 << 30), LEAST_ROWS as usize);
    }
}
