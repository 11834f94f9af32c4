//! Temporary file with the rows of a classification. A fit reads them several times, and reading numbers is much faster
//! than reading a table.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Context, Result, bail};
use ndarray::{ArrayView1, ArrayView2};
use relvec::{Blocks, Error, Label, Scaling, Targets};

use crate::target::Classes;
use crate::training::Block;

/// Most distinct values of a target that are accepted as classes.
const MOST_CLASSES: usize = 1000;
/// Bytes written or read at a time.
const PIECE: usize = 1 << 20;

/// The temporary file while it is written.
pub(super) struct Spill {
    file: BufWriter<File>,
    classes: Classes,
    /// Number of features, and of numbers per row.
    d: usize,
    width: usize,
    /// Rows of each block.
    blocks: Vec<usize>,
}

/// The temporary file with all rows. Each block contains the features row by row, then the class numbers in order of
/// first appearance, then the weights if there are any.
pub(super) struct Spilled {
    file: Mutex<File>,
    d: usize,
    width: usize,
    blocks: Vec<usize>,
    /// Class of each number in the file, and names of the classes.
    pub class_of: Vec<usize>,
    pub names: Vec<Label>,
    scaling: Option<Scaling>,
}

fn place() -> String {
    format!("a temporary file in `{}` (TMPDIR names another folder)", std::env::temp_dir().display())
}

impl Spill {
    /// Creates a file for rows of `d` features, with weights if they are `weighted`.
    pub fn new(target: &str, d: usize, weighted: bool) -> Result<Spill> {
        let file = tempfile::tempfile().with_context(|| format!("cannot make {}", place()))?;
        let file = BufWriter::with_capacity(PIECE, file);
        Ok(Spill { file, classes: Classes::new(target), d, width: d + 1 + usize::from(weighted), blocks: vec![] })
    }

    /// Adds the rows of a block. Returns the class number of each row.
    pub fn add(&mut self, block: &Block) -> Result<Vec<usize>> {
        let classes = self.classes.see(&block.target);
        if self.classes.len() > MOST_CLASSES {
            bail!(
                "the target `{}` has more than {MOST_CLASSES} different values: too many for classes (--task regress)",
                self.classes.name()
            );
        }
        let numbers = block.x.iter().copied().chain(classes.iter().map(|k| *k as f64));
        for number in numbers.chain(block.weights.iter().flatten().copied()) {
            self.file.write_all(&number.to_le_bytes()).with_context(|| format!("cannot write the rows to {}", place()))?;
        }
        self.blocks.push(block.target.len());
        Ok(classes)
    }

    /// Ends the writing. Rows are read with `scaling` applied.
    pub fn finish(self, scaling: Option<Scaling>) -> Result<Spilled> {
        let file = self.file.into_inner().map_err(|e| e.into_error());
        let file = Mutex::new(file.with_context(|| format!("cannot write the rows to {}", place()))?);
        let (class_of, names) = self.classes.settle()?;
        Ok(Spilled { file, d: self.d, width: self.width, blocks: self.blocks, class_of, names, scaling })
    }
}

impl Blocks for Spilled {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> relvec::Result<()>) -> relvec::Result<()> {
        let failed = |e: std::io::Error| Error::Rows(format!("cannot read the rows again from {}: {e}", place()));
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut reader = BufReader::with_capacity(PIECE, &mut *file);
        // A thread reads the next block while the current one is summed.
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move || {
                for rows in &self.blocks {
                    let mut bytes = vec![0; 8 * rows * self.width];
                    let read = reader.read_exact(&mut bytes).map(|()| bytes);
                    let over = read.is_err();
                    // If a sum has failed, the receiver is closed and the thread ends.
                    if sender.send(read).is_err() || over {
                        return;
                    }
                }
            });
            for (rows, bytes) in self.blocks.iter().zip(receiver) {
                let bytes = bytes.map_err(failed)?;
                let numbers: Vec<f64> = bytes.as_chunks().0.iter().map(|bytes: &[u8; 8]| f64::from_le_bytes(*bytes)).collect();
                let (x, rest) = numbers.split_at(rows * self.d);
                let (labels, weights) = rest.split_at(*rows);
                let x = ArrayView2::from_shape((*rows, self.d), x).expect("D numbers a row");
                let labels: Vec<usize> = labels.iter().map(|k| self.class_of[*k as usize]).collect();
                let targets = Targets::classes(&labels, self.names.len());
                let targets = if weights.is_empty() { targets } else { targets.with_weights(ArrayView1::from(weights)) };
                match &self.scaling {
                    Some(scaling) => each(scaling.apply(x).view(), &targets)?,
                    None => each(x, &targets)?,
                }
            }
            Ok(())
        })
    }
}
