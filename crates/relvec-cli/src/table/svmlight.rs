//! Rows of an svmlight file (LIBSVM's format): a label, then an index and a value for each entry that is not zero.
//!
//! The file is read twice, since it does not contain the number of features.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use flate2::read::MultiGzDecoder;

use super::{Cell, MOST_COLUMNS, Rows};
use crate::text::{count, cut};

/// Endings of the names of svmlight files, before an optional .gz. The text itself could be mistaken for a CSV file.
const ENDINGS: [&str; 3] = [".svm", ".svmlight", ".libsvm"];
/// Name of the column of labels, the last one.
const LABEL: &str = "label";
/// Most bytes of a line, the limit of rows of a CSV file. A small compressed file can contain an endless line.
const MOST_LINE: u64 = 1 << 26;

/// True if the name of a file has the ending of an svmlight file.
pub(super) fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

pub(super) struct SvmlightRows {
    lines: Lines,
    /// The index of the first feature, 0 or 1.
    first: usize,
    /// Numbers of the current row: features, the label, and a zero for features that the file lacks.
    values: Vec<f64>,
    count: usize,
    has_queries: bool,
}

/// Opens a file. `compressed`: true for gzip. The features are named by their indices.
pub(super) fn open(mut file: File, compressed: bool) -> Result<(Vec<String>, SvmlightRows)> {
    let again = file.try_clone().context("cannot read the table")?;
    let mut lines = Lines::new(again, compressed);
    let (mut range, mut rows, mut has_queries) = (None, 0, false);
    while lines.advance()? {
        rows += 1;
        has_queries |= lines.has_query;
        if let (Some((first, _)), Some((last, _))) = (lines.entries.first(), lines.entries.last()) {
            let (least, most) = range.unwrap_or((*first, *last));
            range = Some((least.min(*first), most.max(*last)));
        }
    }
    if rows == 0 {
        bail!("the file has no rows");
    }
    let Some((least, most)) = range else { bail!("the file has no features: no row has an entry index:value") };
    let first = least.min(1);
    file.seek(SeekFrom::Start(0)).context("cannot read the table")?;
    let columns: Vec<String> = (first..=most).map(|index| index.to_string()).chain([LABEL.to_string()]).collect();
    let values = vec![0.0; columns.len() + 1];
    Ok((columns, SvmlightRows { lines: Lines::new(file, compressed), first, values, count: rows, has_queries }))
}

/// The lines of a file.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    text: Vec<u8>,
    /// Line number, counted from 1.
    line: u64,
    row: usize,
    /// Label of the current row.
    label: f64,
    /// Ascending indices and values of the current row.
    entries: Vec<(usize, f64)>,
    has_query: bool,
}

impl Lines {
    fn new(file: File, compressed: bool) -> Lines {
        let input: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        let (text, entries) = (Vec::new(), Vec::new());
        Lines { input: BufReader::new(input), text, line: 0, row: 0, label: 0.0, entries, has_query: false }
    }

    /// Reads the next line with a row. Returns `false` after the last one.
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.text.clear();
            self.line += 1;
            let read = (&mut self.input).take(MOST_LINE + 1).read_until(b'\n', &mut self.text);
            if read.map_err(|e| super::csv::unreadable(&e))? == 0 {
                return Ok(false);
            }
            if self.text.len() as u64 > MOST_LINE {
                bail!("line {} has more than {MOST_LINE} bytes", self.line);
            }
            let text = self.text.split(|byte| *byte == b'#').next().unwrap_or_default();
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.row += 1;
            let place = format!("row {} (line {})", self.row, self.line);
            let text = std::str::from_utf8(text).map_err(|_| anyhow!("{place} is not UTF-8 text"))?;
            (self.label, self.has_query) = parse(text, &mut self.entries).context(place)?;
            return Ok(true);
        }
    }
}

/// Reads the label and the entries of a row. Returns the label, and true if there is a query number.
fn parse(text: &str, entries: &mut Vec<(usize, f64)>) -> Result<(f64, bool)> {
    entries.clear();
    let mut words = text.split_ascii_whitespace();
    let label = words.next().unwrap_or_default();
    let number = |text: &str| text.parse::<f64>().ok();
    let value = number(label).ok_or_else(|| match label.contains(',') {
        true => anyhow!("the label `{}` names several classes; expected one number", cut(label)),
        false => anyhow!("the label `{}` is not a number", cut(label)),
    })?;
    let mut has_query = false;
    for word in words {
        let (index, entry) = word.split_once(':').ok_or_else(|| anyhow!("found `{}`, expected index:value", cut(word)))?;
        if index == "qid" && entries.is_empty() && !has_query {
            has_query = true;
            continue;
        }
        let index: usize = index.parse().map_err(|_| anyhow!("the index of `{}` is not a whole number from 0", cut(word)))?;
        if index > MOST_COLUMNS {
            bail!("the index {index} is too large: at most {MOST_COLUMNS} features can be read");
        }
        if let Some((before, _)) = entries.last().filter(|(before, _)| *before >= index) {
            bail!("the index {index} follows {before}; expected ascending indices");
        }
        let entry = number(entry).ok_or_else(|| anyhow!("the value of `{}` is not a number", cut(word)))?;
        entries.push((index, entry));
    }
    Ok((value, has_query))
}

impl SvmlightRows {
    fn features(&self) -> usize {
        self.values.len() - 2
    }
}

impl Rows for SvmlightRows {
    fn advance(&mut self) -> Result<bool> {
        let SvmlightRows { lines, first, values, .. } = self;
        // Clears the entries of the previous row.
        lines.entries.iter().for_each(|(index, _)| values[index - *first] = 0.0);
        if !lines.advance()? {
            return Ok(false);
        }
        let features = values.len() - 2;
        for (index, value) in &lines.entries {
            match index.checked_sub(*first).filter(|place| *place < features) {
                Some(place) => values[place] = *value,
                None => bail!("the file has changed while it was read"),
            }
        }
        values[features] = lines.label;
        Ok(true)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        Cell::Number(self.values[column])
    }

    fn line(&self) -> Option<u64> {
        Some(self.lines.line)
    }

    fn count(&self) -> Option<usize> {
        Some(self.count)
    }

    fn format(&self) -> String {
        "svmlight".to_string()
    }

    fn zero_column(&self, name: &str) -> Option<usize> {
        // The name must be spelled as in a file: `1` and not `01`.
        let is_index = name.parse::<usize>().is_ok_and(|index| index.to_string() == name);
        is_index.then_some(self.features() + 1)
    }

    fn notes(&self) -> Vec<String> {
        let zero = (self.first == 0).then(|| "the first feature has the index 0".to_string());
        let queries = self.has_queries.then(|| format!("query numbers (qid) of {} are not used", count(self.count, "row")));
        zero.into_iter().chain(queries).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_the_format() {
        for name in ["a.svm", "b.x.svmlight", "C.LIBSVM", "folder/d.svm.gz"] {
            assert!(is_named(Path::new(name)), "{name}");
        }
        for name in ["a.csv", "svm", "b.svm.csv", "svm/a", "c.gz"] {
            assert!(!is_named(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn damaged_rows_are_refused_with_what_was_expected() {
        let mut entries = vec![];
        assert_eq!(parse(" +1 qid:7 2:0.5  9:-1e3\r", &mut entries).unwrap(), (1.0, true));
        assert_eq!(entries, [(2, 0.5), (9, -1000.0)]);
        assert_eq!(parse("-2.5", &mut entries).unwrap(), (-2.5, false));
        for (text, problem) in [
            ("1,3 1:2", "the label `1,3` names several classes; expected one number"),
            ("spam 1:2", "the label `spam` is not a number"),
            ("1 2", "found `2`, expected index:value"),
            ("1 1:2 qid:3", "the index of `qid:3` is not a whole number from 0"),
            ("1 -1:2", "the index of `-1:2` is not a whole number from 0"),
            ("1 3:1 2:1", "the index 2 follows 3; expected ascending indices"),
            ("1 3:1 3:1", "the index 3 follows 3; expected ascending indices"),
            ("1 3:x", "the value of `3:x` is not a number"),
            ("1 1000001:1", "the index 1000001 is too large: at most 1000000 features can be read"),
        ] {
            assert_eq!(parse(text, &mut entries).unwrap_err().to_string(), problem);
        }
    }
}
