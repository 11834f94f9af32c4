//! Answers of partitions, which are merged in a fixed binary tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bytes::{Reader, Writer, checksum, damaged, unpack};
use super::sums::PartSums;
use super::survey::Survey;
use crate::error::{Error, Result};
use crate::query::sums::LaplaceSums;
use crate::statistics::Statistics;

/// First bytes of an answer, with the version of the format.
const MAGIC: &[u8] = b"relvec answer 2\n";

/// The merged answers of some partitions of the rows to a [`Query`](super::Query).
///
/// Partition p is leaf p of a binary tree. As soon as the answers of both children of a node are there, they are merged
/// into the answer of the node, the left child first. The bits of the result therefore do not depend on the order in
/// which answers arrive. An answer takes least memory if neighbouring partitions are merged first, and is correct in
/// any order.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Checksum of the query that was answered.
    query: u32,
    parts: Vec<PartRecord>,
    /// Contents of the nodes, by level (leaves have level 0) and number within the level.
    nodes: BTreeMap<(u32, u64), Content>,
}

/// A partition that has answered: its number, its number of rows, and the checksum of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartRecord {
    part: u64,
    pub rows: u64,
    checksum: u64,
}

/// Results that are added up over partitions.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// The partition has no rows.
    Nothing,
    Survey(Survey),
    Sums(PartSums),
    Statistics(Statistics),
    Laplace(Vec<LaplaceSums>),
}

#[derive(Serialize, Deserialize)]
struct Header {
    query: u32,
}

impl Content {
    fn with(self, other: Content) -> Result<Content> {
        Ok(match (self, other) {
            (Content::Nothing, content) | (content, Content::Nothing) => content,
            (Content::Survey(mut own), Content::Survey(other)) => {
                own.merge(&other)?;
                Content::Survey(own)
            }
            (Content::Sums(mut own), Content::Sums(other)) => {
                own.add(&other)?;
                Content::Sums(own)
            }
            (Content::Statistics(mut own), Content::Statistics(other)) => {
                own.merge(&other)?;
                Content::Statistics(own)
            }
            (Content::Laplace(mut own), Content::Laplace(other)) => {
                LaplaceSums::add_all(&mut own, &other)?;
                Content::Laplace(own)
            }
            _ => return Err(Error::Rows("answers to different queries cannot be merged".into())),
        })
    }
}

impl Answer {
    /// Returns the answer of one partition, which is given by its number, number of rows and checksum.
    pub(super) fn of_part(query: &[u8], (part, rows, sum): (u64, u64, u64), content: Content) -> Answer {
        let parts = vec![PartRecord { part, rows, checksum: sum }];
        Answer { query: checksum(query), parts, nodes: BTreeMap::from([((0, part), content)]) }
    }

    /// Returns the answer of the partitions of both answers.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the queries differ, if a partition is in both answers, or if their rows have
    /// different shapes.
    pub fn merge(mut self, other: Answer) -> Result<Answer> {
        if self.query != other.query {
            return Err(Error::Rows("answers to different queries cannot be merged".into()));
        }
        let follow = self.parts.last().zip(other.parts.first()).is_none_or(|(last, first)| last.part < first.part);
        self.parts.extend(other.parts);
        if !follow {
            self.parts.sort_unstable();
            if let Some(pair) = self.parts.windows(2).find(|pair| pair[0].part == pair[1].part) {
                return Err(Error::Rows(format!("partition {} is counted twice", pair[0].part)));
            }
        }
        for ((mut level, mut number), mut content) in other.nodes {
            while let Some(sibling) = self.nodes.remove(&(level, number ^ 1)) {
                content = if number % 2 == 1 { sibling.with(content) } else { content.with(sibling) }?;
                (level, number) = (level + 1, number / 2);
            }
            self.nodes.insert((level, number), content);
        }
        Ok(self)
    }

    /// Returns the merged result of all partitions, and the list of these. `before` lists the partitions of an earlier
    /// pass.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if a partition is missing, or if its rows differ from those of the earlier pass.
    pub(super) fn finish(self, query: &[u8], before: Option<&[PartRecord]>) -> Result<(Content, Vec<PartRecord>)> {
        if self.query != checksum(query) {
            return Err(Error::Rows("found the answer to another query".into()));
        }
        let count = before.map_or(self.parts.len(), |before| before.len().max(self.parts.len()));
        if let Some(missing) = (0..count).find(|k| self.parts.get(*k).is_none_or(|record| record.part != *k as u64)) {
            let found = self.parts.len();
            let all = before.map_or_else(String::new, |before| format!(" of {}", before.len()));
            return Err(Error::Rows(format!("partition {missing} is missing: {found}{all} partitions have answered")));
        }
        if let Some(before) = before {
            if self.parts.len() > before.len() {
                let (found, before) = (self.parts.len(), before.len());
                return Err(Error::Rows(format!("there are {found} partitions; there were {before} in the first pass")));
            }
            if let Some((now, then)) = self.parts.iter().zip(before).find(|(now, then)| now != then) {
                let what = match now.rows == then.rows {
                    true => "rows of other values or weights".to_string(),
                    false => format!("{} rows, and there were {}", now.rows, then.rows),
                };
                let part = now.part;
                return Err(Error::Rows(format!("partition {part} changed between passes: it has {what}")));
            }
        }
        // Each remaining node covers consecutive partitions. The nodes are merged from the last one, which has the
        // smallest tree.
        let mut nodes: Vec<_> = self.nodes.into_iter().collect();
        nodes.sort_by_key(|((level, number), _)| number << level);
        let whole = nodes.into_iter().rev().try_fold(Content::Nothing, |sum, (_, content)| content.with(sum))?;
        Ok((whole, self.parts))
    }

    /// Returns the number of rows of all partitions so far.
    pub fn n_rows(&self) -> usize {
        self.parts.iter().map(|record| record.rows).sum::<u64>() as usize
    }

    /// Returns the answer as bytes, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut words = Writer::default();
        words.count(self.parts.len() as u64);
        self.parts.iter().for_each(|record| words.counts([record.part, record.rows, record.checksum]));
        words.count(self.nodes.len() as u64);
        for ((level, number), content) in &self.nodes {
            words.counts([u64::from(*level), *number]);
            match content {
                Content::Nothing => words.count(0),
                Content::Survey(survey) => {
                    words.count(1);
                    survey.write_whole(&mut words);
                }
                Content::Sums(sums) => {
                    words.count(2);
                    sums.write(&mut words);
                }
                Content::Statistics(statistics) => {
                    words.count(3);
                    words.bytes(&statistics.to_bytes());
                }
                Content::Laplace(sums) => {
                    words.counts([4, sums.len() as u64]);
                    sums.iter().for_each(|sums| sums.write(&mut words));
                }
            }
        }
        words.pack(MAGIC, &Header { query: self.query })
    }

    /// Reads an answer from the bytes of [`Answer::to_bytes`].
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the bytes are not an answer, are of another version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Answer> {
        let (Header { query }, mut from) = unpack(MAGIC, "answer", bytes)?;
        let mut parts = vec![];
        for _ in 0..from.size()? {
            parts.push(PartRecord { part: from.count()?, rows: from.count()?, checksum: from.count()? });
        }
        let mut nodes = BTreeMap::new();
        for _ in 0..from.size()? {
            let position = Answer::position(&mut from)?;
            let content = match from.count()? {
                0 => Content::Nothing,
                1 => Content::Survey(Survey::read_whole(&mut from)?),
                2 => Content::Sums(PartSums::read(&mut from)?),
                3 => Content::Statistics(Statistics::from_bytes(&from.bytes()?)?),
                4 => Content::Laplace((0..from.size()?).map(|_| LaplaceSums::read(&mut from)).collect::<Result<_>>()?),
                _ => return Err(damaged("answer")),
            };
            nodes.insert(position, content);
        }
        from.end()?;
        Ok(Answer { query, parts, nodes })
    }

    fn position(from: &mut Reader) -> Result<(u32, u64)> {
        let (level, number) = (from.count()?, from.count()?);
        // A binary tree over partition numbers of 64 bits has at most 64 levels.
        let valid = u32::try_from(level).ok().filter(|level| *level < 64);
        let damaged = || Error::Rows(format!("damaged relvec answer: found a node at level {level}, expected less than 64"));
        Ok((valid.ok_or_else(damaged)?, number))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::query::merged_rows::Totals;
    use crate::query::sums::RatioSums;

    const QUERY: &[u8] = b"of one query";
    const ENTRIES: usize = 20;

    fn answer(part: u64, values: &[f64]) -> Answer {
        let totals = Totals { scatter: vec![0.0; ENTRIES], ..Totals::default() };
        let (gram, right) = (Array2::zeros((0, 0)), Array2::zeros((1, ENTRIES)));
        let sums = RatioSums { gram, right, squares: Array1::from_vec(values.to_vec()), log_det: 0.0 };
        Answer::of_part(QUERY, (part, 1, part), Content::Sums(PartSums { at_ratios: vec![sums], totals }))
    }

    fn squares(answer: Answer) -> Array1<f64> {
        match answer.finish(QUERY, None).unwrap().0 {
            Content::Sums(sums) => sums.single().0.squares,
            other => panic!("{other:?}"),
        }
    }

    /// Merges neighbouring answers until one is left.
    fn tree(mut answers: Vec<Answer>) -> Answer {
        while answers.len() > 1 {
            let mut pairs = answers.into_iter();
            let mut next = vec![];
            while let Some(left) = pairs.next() {
                next.push(match pairs.next() {
                    Some(right) => left.merge(right).unwrap(),
                    None => left,
                });
            }
            answers = next;
        }
        answers.remove(0)
    }

    /// The error of a sum over 100,000 partitions is a few roundings, relative to the sum of magnitudes.
    #[test]
    fn sum_over_many_partitions_keeps_its_digits() {
        let mut random = Pcg64::seed_from_u64(5);
        let parts: Vec<Vec<f64>> =
            (0..100_000).map(|_| (0..ENTRIES).map(|_| 1e3 * random.random::<f64>().powi(3)).collect()).collect();
        let found = squares(tree(parts.iter().enumerate().map(|(part, values)| answer(part as u64, values)).collect()));
        for k in 0..ENTRIES {
            // Neumaier's compensated summation (1974) has an error far below one rounding.
            let (mut sum, mut rest) = (0.0f64, 0.0f64);
            for v in parts.iter().map(|values| values[k]) {
                let next = sum + v;
                rest += if sum.abs() >= v.abs() { (sum - next) + v } else { (v - next) + sum };
                sum = next;
            }
            let error = ((found[k] - sum) - rest) / sum;
            assert!(error.abs() < 2e-16, "entry {k}: {error:e}");
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_order_of_merging() {
        let mut random = Pcg64::seed_from_u64(8);
        for count in [1, 2, 5, 8, 31] {
            let values: Vec<Vec<f64>> = (0..count).map(|_| (0..ENTRIES).map(|_| random.random::<f64>()).collect()).collect();
            let all = || values.iter().enumerate().map(|(part, values)| answer(part as u64, values)).collect::<Vec<_>>();
            let expected = squares(tree(all()));
            for _ in 0..20 {
                let mut answers = all();
                while answers.len() > 1 {
                    let one = answers.swap_remove(random.random_range(0..answers.len()));
                    let k = random.random_range(0..answers.len());
                    let other = answers.swap_remove(k);
                    // Answers travel as bytes.
                    answers.push(Answer::from_bytes(&one.merge(other).unwrap().to_bytes()).unwrap());
                }
                assert_eq!(squares(answers.remove(0)), expected, "{count} parts");
            }
        }
    }

    #[test]
    fn finish_rejects_missing_repeated_and_changed_partitions() {
        let values = [0.0; ENTRIES];
        let text = |result: Result<Answer>| result.unwrap_err().to_string();
        let three = || answer(0, &values).merge(answer(2, &values)).unwrap();
        assert_eq!(text(three().merge(answer(2, &values))), "partition 2 is counted twice");
        assert_eq!(text(three().merge(three())), "partition 0 is counted twice");
        let finish = |answer: Answer, before: Option<&[PartRecord]>| answer.finish(QUERY, before).unwrap_err().to_string();
        assert_eq!(finish(three(), None), "partition 1 is missing: 2 partitions have answered");
        let before: Vec<PartRecord> = (0..3).map(|part| PartRecord { part, rows: 1, checksum: part }).collect();
        assert_eq!(finish(answer(0, &values), Some(&before)), "partition 1 is missing: 1 of 3 partitions have answered");
        let all = three().merge(answer(1, &values)).unwrap();
        assert!(all.clone().finish(QUERY, Some(&before)).is_ok());
        let more = finish(all.clone(), Some(&before[..2]));
        assert_eq!(more, "there are 3 partitions; there were 2 in the first pass");
        let mut other = before.clone();
        other[1].rows = 7;
        assert_eq!(finish(all.clone(), Some(&other)), "partition 1 changed between passes: it has 1 rows, and there were 7");
        other[1] = PartRecord { checksum: 9, ..before[1] };
        let text = finish(all.clone(), Some(&other));
        assert_eq!(text, "partition 1 changed between passes: it has rows of other values or weights");
        assert!(all.clone().finish(b"of another ...", None).is_err());
        assert!(all.merge(Answer::of_part(b"of another ...", (3, 0, 0), Content::Nothing)).is_err());
    }
}
