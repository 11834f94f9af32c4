//! Saves the sums over the rows read so far in a file. After an interruption the same command resumes from the file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use relvec::{Gamma, Kernel, Rvm, Scaling, Statistics};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::output;

/// Least time between two checkpoints, in multiples of the time that the last one took to write. An interruption then
/// loses at most the current block, unless writing takes more than a tenth of the time of a block.
const PAUSE: u32 = 10;
/// Name of the mark of the table's content.
pub(super) const CONTENTS: &str = "checksum";
/// Most characters of a value in a message.
const SHOWN: usize = 60;

/// First bytes of the file, with the version.
const MAGIC: &[u8] = b"relvec checkpoint 1\n";

/// Marks that identify a table or a set of parameters, by name. The most informative come first.
pub(super) type Marks = Vec<(String, Value)>;

/// Results of the first pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Number of rows N.
    pub rows: usize,
    pub scaling: Option<Scaling>,
    /// Features that are constant over all rows.
    pub constant: Vec<usize>,
    /// Rows that are landmarks, ascending; or indices of given landmarks.
    pub landmarks: Vec<usize>,
}

/// Header of the file, in JSON, before the sums.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Head {
    pub data: Marks,
    pub parameters: Marks,
    pub plan: Plan,
    /// Number of rows in the sums.
    pub done: usize,
}

impl Head {
    /// Checks the header against the sums and against a table with `features` features. `standardize`: true if features
    /// are to be scaled. `given`: true if landmarks are given, so that the landmark indices refer to these and not to
    /// rows.
    pub fn check(&self, sums: &Statistics, rvm: &Rvm, features: usize, standardize: bool, given: bool) -> Result<()> {
        let Plan { rows, scaling, constant, landmarks } = &self.plan;
        let require = |good: bool, key: &str, found: String, expected: String| match good {
            true => Ok(()),
            false => Err(anyhow!("{key}: found {found}, expected {expected}; delete the file to start again")),
        };
        let done = self.done;
        require(*rows > 0 && (1..=*rows).contains(&done), "done", done.to_string(), format!("from 1 to the {rows} rows"))?;
        let held = sums.n_rows();
        require(held <= done, "sums", format!("{held} rows"), format!("at most the {done} rows that are done"))?;
        let found = if scaling.is_some() { "a scaling" } else { "none" };
        require(scaling.is_some() == standardize, "plan.scaling", found.into(), "one where features are standardised".into())?;
        for (key, list) in scaling.iter().flat_map(|s| [("mean", &s.mean), ("scale", &s.scale)]) {
            let path = format!("plan.scaling.{key}");
            require(list.len() == features, &path, format!("{} numbers", list.len()), format!("{features}, one per feature"))?;
            let bad = list.iter().enumerate().find(|(_, v)| !(v.is_finite() && (key == "mean" || **v > 0.0)));
            if let Some((i, v)) = bad {
                let expected = if key == "mean" { "a finite number" } else { "a positive number" };
                require(false, &format!("{path}[{i}]"), v.to_string(), expected.into())?;
            }
        }
        let ascending = constant.windows(2).all(|pair| pair[0] < pair[1]) && constant.iter().all(|d| *d < features);
        require(ascending, "plan.constant", format!("{constant:?}"), format!("some of the {features} features"))?;
        let (l, own) = (sums.centres().nrows(), sums.n_features());
        require(own == features, "sums", format!("{own} features"), format!("the {features} of the table"))?;
        require(landmarks.len() == l, "plan.landmarks", landmarks.len().to_string(), format!("the {l} of the sums"))?;
        let distinct: BTreeSet<usize> = landmarks.iter().copied().collect();
        let good = distinct.len() == l && (given || distinct.last().is_none_or(|row| row < rows));
        require(good, "plan.landmarks", short(&json!(landmarks)), format!("different ones of the {rows} rows"))?;
        let own = sums.kernel();
        let found = format!("the kernel {}", own.name());
        if rvm.learns_kernel() {
            let all = rvm.to_try();
            let names: Vec<&str> = all.iter().map(Kernel::name).collect();
            return require(names.contains(&own.name()), "sums", found, names.join(" or "));
        }
        let asked = match (rvm.kernel.gamma(), own.gamma()) {
            (Some(Gamma::Rule(_)), Some(gamma)) => rvm.kernel.with_gamma(gamma.clone()),
            _ => rvm.kernel.clone(),
        };
        require(asked == *own, "sums", found, format!("{} with the parameters asked for", rvm.kernel.name()))
    }
}

/// A checkpoint file while the sums are computed.
pub(super) struct Checkpoint {
    path: PathBuf,
    head: Head,
    /// Time of the last checkpoint, and how long writing it took.
    written: Option<(Instant, Duration)>,
}

impl Checkpoint {
    pub fn new(path: &Path, head: Head) -> Checkpoint {
        Checkpoint { path: path.to_path_buf(), head, written: None }
    }

    /// Writes the file if a checkpoint is due. The last one (`last`, or of all rows) always is. The old file remains if
    /// writing fails.
    pub fn update(&mut self, done: usize, statistics: &Statistics, last: bool) -> Result<()> {
        let due = self.written.is_none_or(|(at, took)| at.elapsed() >= PAUSE * took);
        if due || last || done == self.head.plan.rows { self.write(done, statistics) } else { Ok(()) }
    }

    /// Writes the file. The old file remains if writing fails.
    fn write(&mut self, done: usize, statistics: &Statistics) -> Result<()> {
        let start = Instant::now();
        self.head.done = done;
        let head = serde_json::to_vec(&self.head)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(crc32fast::hash(&head).to_le_bytes());
        bytes.extend(head);
        bytes.extend(statistics.to_bytes());
        output::write(&self.path, &bytes).context("checkpoint")?;
        self.written = Some((Instant::now(), start.elapsed()));
        Ok(())
    }

    /// Reads the file at `path`, if it exists.
    ///
    /// # Errors
    /// The file is not a checkpoint or is damaged, or it belongs to another table or other parameters than `data` and
    /// `parameters`.
    pub fn read(path: &Path, data: &Marks, parameters: &Marks) -> Result<Option<(Head, Statistics)>> {
        // A device contains no checkpoint.
        if !path.is_file() {
            return Ok(None);
        }
        let read = || -> Result<(Head, Statistics)> {
            let bytes = fs::read(path)?;
            let (head, sums) = split(&bytes).ok_or_else(|| anyhow!("this is not a checkpoint of relvec, or it is damaged"))?;
            let mut head = serde_json::Deserializer::from_slice(head);
            let head: Head = serde_path_to_error::deserialize(&mut head).map_err(|e| anyhow!("{}: {}", e.path(), e.inner()))?;
            compare("data", &head.data, data)?;
            compare("parameters", &head.parameters, parameters)?;
            Ok((head, Statistics::from_bytes(sums)?))
        };
        read().with_context(|| format!("checkpoint `{}`", path.display())).map(Some)
    }
}

/// Splits the bytes of a checkpoint into header and sums. Returns `None` for other files.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (head, sums) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    (crc32fast::hash(head).to_le_bytes() == *sum).then_some((head, sums))
}

fn compare(what: &str, there: &Marks, here: &Marks) -> Result<()> {
    for (name, value) in here {
        let other = there.iter().find(|(n, _)| n == name).map_or(&Value::Null, |(_, v)| v);
        if other != value {
            // A different checksum means that rows were changed, even if the size is the same.
            let hint = if name == CONTENTS { "the table was modified since, " } else { "" };
            bail!(
                "it belongs to other {what}: {hint}{name} is {} there and {} here; delete it to start again, or name another file",
                short(other),
                short(value)
            );
        }
    }
    Ok(())
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > SHOWN { text.chars().take(SHOWN).collect::<String>() + "..." } else { text }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, s};
    use relvec::{Rbf, Targets};

    use super::*;

    fn marks(value: Value) -> Marks {
        let Value::Object(marks) = value else { panic!("an object") };
        marks.into_iter().collect()
    }

    fn statistics(rows: usize) -> Statistics {
        let x = Array2::from_shape_fn((rows, 2), |(i, k)| ((3 * i + k) as f64).sin());
        let t = x.column(0).to_owned();
        let kernel = Kernel::Rbf(Rbf { gamma: 0.5.into() });
        let mut statistics = Statistics::new(&kernel, x.slice(s![..4, ..])).unwrap();
        statistics.update(x.view(), &Targets::real(t.view())).unwrap();
        statistics
    }

    fn head() -> Head {
        let plan = Plan { rows: 60, scaling: None, constant: vec![], landmarks: vec![0, 1, 2, 3] };
        let (data, parameters) = (marks(json!({"bytes": 9, "rows": 60})), marks(json!({"kernel": "rbf", "seed": 0})));
        Head { data, parameters, plan, done: 0 }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let Head { data, parameters, .. } = head();
        assert!(Checkpoint::read(&path, &data, &parameters).unwrap().is_none());
        let mut checkpoint = Checkpoint::new(&path, head());
        for done in [20, 60] {
            checkpoint.update(done, &statistics(done), false).unwrap();
            let (found, sums) = Checkpoint::read(&path, &data, &parameters).unwrap().unwrap();
            assert_eq!((found.done, sums.to_bytes()), (done, statistics(done).to_bytes()));
        }
    }

    #[test]
    fn writing_takes_a_small_share_of_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let Head { data, parameters, .. } = head();
        let mut checkpoint = Checkpoint::new(&path, head());
        let mut after = |took: u64, since: u64, done: usize| {
            let at = Instant::now().checked_sub(Duration::from_secs(since)).unwrap();
            checkpoint.written = Some((at, Duration::from_secs(took)));
            checkpoint.update(done, &statistics(done), false).unwrap();
            Checkpoint::read(&path, &data, &parameters).unwrap().map(|(head, _)| head.done)
        };
        assert_eq!(after(2, 19, 10), None);
        assert_eq!(after(2, 20, 20), Some(20));
        assert_eq!(after(2, 1, 40), Some(20));
        // The last checkpoint is always due.
        assert_eq!(after(2, 1, 60), Some(60));
    }

    #[test]
    fn others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let Head { data, parameters, .. } = head();
        Checkpoint::new(&path, head()).update(60, &statistics(60), false).unwrap();
        let refused = |data: &Marks, parameters: &Marks, fragments: &[&str]| {
            let message = format!("{:#}", Checkpoint::read(&path, data, parameters).unwrap_err());
            assert!(fragments.iter().all(|f| message.contains(f)), "{message}");
        };
        refused(&marks(json!({"bytes": 8, "rows": 60})), &parameters, &["other data", "bytes is 9 there and 8 here"]);
        refused(&data, &marks(json!({"kernel": "rbf", "seed": 1})), &["other parameters", "seed"]);
        let good = fs::read(&path).unwrap();
        for bad in [&b""[..], b"a,b\n1,2\n", &good[..30], &good[..good.len() - 1]] {
            fs::write(&path, bad).unwrap();
            assert!(Checkpoint::read(&path, &data, &parameters).is_err());
        }
        for place in [25, 60, good.len() - 30] {
            let mut bad = good.clone();
            bad[place] ^= 1;
            fs::write(&path, bad).unwrap();
            assert!(Checkpoint::read(&path, &data, &parameters).is_err(), "{place}");
        }
    }
}
