//! How much memory a fit in blocks takes, and how large its blocks are.

use relvec::Error;

/// Most bytes of a block of rows, and its share of the memory limit; most and least rows.
const BLOCK_BYTES: u64 = 1 << 25;
const BLOCK_SHARE: u64 = 16;
const MOST_ROWS: u64 = 1 << 15;
const LEAST_ROWS: u64 = 256;
/// What a block of basis functions takes (the library's own rule), at least and at most.
const BASIS_BYTES: u64 = 1 << 24;
const BASIS_ROWS: (u64, u64) = (16, 4096);
/// Numbers per row that a fit in memory works with, beside three copies of the row.
const VECTORS: f64 = 28.0;
/// Matrices of the landmarks' size while the sums are made and solved, as measured.
const MATRICES: u64 = 12;
/// Numbers that are held of a row of the sample beside its features: its answer, and its answer as a target of a fit.
const ANSWERS: u64 = 6;
/// Numbers for each row of the sample beside three copies of it while the survey draws it: keys and nodes of its tree, lists and
/// places; 22 as measured.
const TREE: u64 = 24;
/// Numbers for each row of the sample while the kernel is learned (those of the library's training set), and at least beside: four
/// matrices of 125 rows. With more memory more rows are learned from.
const LEARNING_VECTORS: u64 = 32;
const LEARNING: u64 = 4 * 125 * 125;

/// Bytes that a fit with the whole table in memory takes.
pub(super) fn in_memory(rows: f64, columns: usize) -> f64 {
    8.0 * rows * (3.0 * columns as f64 + VECTORS)
}

/// Rows of a block. It depends on sizes alone, and so do the last digits of the sums.
fn block_rows(columns: usize, limit: u64) -> usize {
    let bytes = BLOCK_BYTES.min(limit / BLOCK_SHARE);
    (bytes / (8 * columns as u64)).clamp(LEAST_ROWS, MOST_ROWS) as usize
}

/// What the memory of a fit in blocks depends on, beside its landmarks.
pub(super) struct Sizes {
    pub columns: usize,
    /// Rows that landmarks are chosen from.
    pub sample: usize,
    /// Whether the kernel is learned from them.
    pub learns: bool,
    /// Bytes that may be taken.
    pub limit: u64,
}

impl Sizes {
    /// Rows of a block.
    pub fn block_rows(&self) -> usize {
        block_rows(self.columns, self.limit)
    }

    /// An error if a fit with `landmarks` landmarks takes more than the limit; it names the least that works with as
    /// many, or with `likely` ones if that is more.
    pub fn afford(&self, landmarks: usize, likely: usize) -> Result<(), Error> {
        let limit = self.limit;
        if self.needed(landmarks, limit) <= limit {
            return Ok(());
        }
        let landmarks = landmarks.max(likely);
        // A larger limit has larger blocks, but only by a part of what it grows.
        let mut least = self.needed(landmarks, 0);
        while self.needed(landmarks, least) > least {
            least = self.needed(landmarks, least);
        }
        let Sizes { columns, sample, .. } = *self;
        let what = format!("a fit in blocks of rows ({columns} columns, a sample of {sample} rows, {landmarks} landmarks)");
        Err(Error::Memory { what, needed: least, limit })
    }

    /// Bytes that the sample takes while the kernel is learned from it: the rows as they are and scaled, and their answers.
    pub fn sampled(&self) -> u64 {
        8 * self.sample as u64 * (2 * self.columns as u64 + ANSWERS)
    }

    fn needed(&self, landmarks: usize, limit: u64) -> u64 {
        let (d, s, l) = (self.columns as u64, self.sample as u64, landmarks as u64 + 1);
        // In the tree, as they are listed and as they are; or as they are, scaled, and twice more while landmarks are chosen.
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
