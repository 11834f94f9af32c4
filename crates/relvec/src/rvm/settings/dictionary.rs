//! Rules for the candidates for relevance vectors: all rows, some of them, or given points.

use std::collections::HashMap;
use std::str::FromStr;

use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use crate::canonical::{Canonical, plain, random_subset};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::medoids;
use crate::model::check_features;

/// Largest number of distinct rows at which the rule `auto` takes all rows, and number of landmarks above it.
const AUTO_ALL: usize = 10_000;
const AUTO_LANDMARKS: usize = 1000;

/// Number of training rows that are candidates for relevance vectors, or a rule for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "dictionary must be \"auto\", \"all\" or a whole number of at least 1")]
pub enum Dictionary {
    /// A rule.
    Rule(DictionaryRule),
    /// A largest number, >= 1. [`Landmarks`] chooses the rows.
    Size(usize),
}

/// Rules for [`Dictionary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionaryRule {
    /// All rows if at most 10,000 of them are distinct, else 1,000 landmarks.
    Auto,
    /// All rows.
    All,
}

/// Choice of the landmarks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landmarks {
    /// Rows nearest to the centres of k-means on a sample of the rows, with features scaled by the kernel.
    #[default]
    Kmedoids,
    /// Rows drawn at random with equal probabilities.
    Uniform,
    /// Given points. The size of the dictionary has no effect, and the relevance vectors of a model are indices of
    /// these points.
    Given(Centres),
    /// Given points, for rows that are coordinates of sparse rows. Distances between two rows are known only if the last
    /// coordinate of one of them is 0, as it is for these points.
    #[doc(hidden)]
    #[serde(skip)]
    OfCoordinates(Centres),
}

/// Given landmarks, [L, D]. Equal landmarks count once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Centres(#[serde(with = "crate::model::rows")] pub Array2<f64>);

impl Centres {
    /// Returns the distinct centres, `[L, D]` with D = `features`, and for each given centre its index among them.
    ///
    /// # Errors
    /// Returns an error if there is no centre, for another number of columns, and for values that are not finite.
    pub fn distinct(&self, features: usize) -> Result<(Array2<f64>, Vec<usize>), Error> {
        let centres = &self.0;
        if centres.ncols() != features || centres.nrows() == 0 {
            let found = format!("{} of {} features", centres.nrows(), centres.ncols());
            return Err(Error::Shape { what: "landmarks", expected: format!("at least 1, of {features} features"), found });
        }
        check_features("landmarks", centres.view())?;
        let mut firsts: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut kept = Vec::new();
        let mut indices = Vec::new();
        for (i, row) in centres.outer_iter().enumerate() {
            let key = row.iter().map(|v| plain(*v).to_bits()).collect();
            let index = *firsts.entry(key).or_insert(kept.len());
            if index == kept.len() {
                kept.push(i);
            }
            indices.push(index);
        }
        Ok((centres.select(Axis(0), &kept).mapv_into(plain), indices))
    }
}

impl Default for Dictionary {
    fn default() -> Self {
        Dictionary::Rule(DictionaryRule::Auto)
    }
}

impl From<usize> for Dictionary {
    fn from(size: usize) -> Self {
        Dictionary::Size(size)
    }
}

impl FromStr for Dictionary {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Dictionary::Rule(DictionaryRule::Auto)),
            ("all", _) => Ok(Dictionary::Rule(DictionaryRule::All)),
            (_, Ok(size)) if size >= 1 => Ok(Dictionary::Size(size)),
            _ => Err(Error::Parameter {
                name: "dictionary".into(),
                found: text.into(),
                expected: "\"auto\", \"all\" or a whole number of at least 1".into(),
            }),
        }
    }
}

impl Dictionary {
    /// Returns the number of candidates among `rows` distinct rows.
    pub fn size(self, rows: usize) -> usize {
        match self {
            Dictionary::Rule(DictionaryRule::Auto) if rows > AUTO_ALL => AUTO_LANDMARKS,
            Dictionary::Rule(_) => rows,
            Dictionary::Size(size) => size.min(rows),
        }
    }
}

impl Landmarks {
    /// Names of all rules in settings.
    pub const NAMES: &'static [&'static str] = &["kmedoids", "uniform"];

    /// Returns the rule of that name.
    ///
    /// # Errors
    /// Returns [`Error::UnknownName`], which lists the names.
    pub fn from_name(name: &str) -> Result<Landmarks, Error> {
        match name {
            "kmedoids" => Ok(Landmarks::Kmedoids),
            "uniform" => Ok(Landmarks::Uniform),
            _ => Err(Error::UnknownName { what: "choice of landmarks", found: name.into(), known: Landmarks::NAMES }),
        }
    }

    /// Returns the given points, if they are given.
    pub(crate) fn given(&self) -> Option<&Centres> {
        match self {
            Landmarks::Given(centres) | Landmarks::OfCoordinates(centres) => Some(centres),
            Landmarks::Kmedoids | Landmarks::Uniform => None,
        }
    }

    /// Returns the rows of `x`, [N, D], that a fit to them would use as its dictionary, ascending. They are distinct,
    /// and the first of equal rows is taken. The parameters of the kernel must be numbers.
    ///
    /// Use it on a sample of a table that is too large for memory, see [`Statistics`](crate::Statistics).
    ///
    /// ```
    /// use ndarray::array;
    /// use relvec::{Dictionary, Kernel, Landmarks, Rbf};
    ///
    /// let kernel = Kernel::Rbf(Rbf { gamma: 1.0.into() });
    /// let x = array![[5.0], [1.0], [5.0], [2.0]];
    /// assert_eq!(Landmarks::Kmedoids.pick(x.view(), Dictionary::Size(9), &kernel, 0), [0, 1, 3]);
    /// ```
    pub fn pick(&self, x: ArrayView2<f64>, dictionary: Dictionary, kernel: &Kernel, seed: u64) -> Vec<usize> {
        let n = x.nrows();
        let canonical = Canonical::new(x, &vec![0.0; n], &vec![1.0; n], None);
        let size = dictionary.size(canonical.origin.len());
        let chosen = self.choose(canonical.rows.view(), &canonical.first, size, kernel, seed, &|| false);
        let mut rows: Vec<usize> = chosen.into_iter().map(|k| canonical.origin[k]).collect();
        rows.sort_unstable();
        rows
    }

    /// Returns the indices of `size` landmarks in `rows` (distinct rows of `x`, `[N, D]`), ascending. The choice is not
    /// refined further once `is_late` returns true.
    pub(crate) fn choose(
        &self,
        x: ArrayView2<f64>,
        rows: &[usize],
        size: usize,
        kernel: &Kernel,
        seed: u64,
        is_late: &dyn Fn() -> bool,
    ) -> Vec<usize> {
        if size >= rows.len() {
            return (0..rows.len()).collect();
        }
        match self {
            Landmarks::Uniform | Landmarks::Given(_) | Landmarks::OfCoordinates(_) => random_subset(rows.len(), size, seed),
            Landmarks::Kmedoids => medoids::choose(x, rows, size, kernel, seed, is_late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Linear, Rbf};

    fn grid(rows: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, 2), |(i, d)| if d == 0 { (i % 100) as f64 } else { (i / 100) as f64 * 1e3 })
    }

    #[test]
    fn landmarks_are_distinct_ascending_and_of_the_requested_number() {
        let x = grid(1000);
        let rows: Vec<usize> = (0..1000).rev().collect();
        for landmarks in [Landmarks::Kmedoids, Landmarks::Uniform] {
            for kernel in [Kernel::from(Linear {}), Kernel::from(Rbf { gamma: vec![1.0, 1e-6].into() })] {
                for size in [1, 7, 999, 1000, 5000] {
                    let chosen = landmarks.choose(x.view(), &rows, size, &kernel, 3, &|| false);
                    assert_eq!(chosen.len(), size.min(1000));
                    assert!(chosen.windows(2).all(|w| w[0] < w[1]));
                    assert_eq!(chosen, landmarks.choose(x.view(), &rows, size, &kernel, 3, &|| false));
                    let fallback = landmarks.choose(x.view(), &rows, size, &kernel, 3, &|| true);
                    assert!(fallback.len() == size.min(1000) && fallback.windows(2).all(|w| w[0] < w[1]));
                }
            }
        }
    }

    /// With ten clusters of rows, k-medoids chooses landmarks in each of them, and a random choice misses some.
    #[test]
    fn medoids_cover_all_clusters() {
        let x = Array2::from_shape_fn((500, 1), |(i, _)| (i % 10) as f64 * 100.0 + (i / 10) as f64 * 0.01);
        let rows: Vec<usize> = (0..500).collect();
        let kernel = Kernel::from(Rbf::default());
        let clumps = |landmarks: Landmarks, seed: u64| {
            let mut clumps: Vec<usize> =
                landmarks.choose(x.view(), &rows, 30, &kernel, seed, &|| false).iter().map(|k| k % 10).collect();
            clumps.sort_unstable();
            clumps.dedup();
            clumps.len()
        };
        assert!((0..10).all(|seed| clumps(Landmarks::Kmedoids, seed) == 10));
        assert!((0..10).any(|seed| clumps(Landmarks::Uniform, seed) < 10));
    }

    #[test]
    fn medoids_are_found_for_tiny_and_huge_inputs() {
        for unit in [1e-300, 1.0, 1e150] {
            let x = grid(600).mapv(|v| v * unit);
            let rows: Vec<usize> = (0..600).collect();
            assert_eq!(Landmarks::Kmedoids.choose(x.view(), &rows, 20, &Kernel::from(Rbf::default()), 0, &|| false).len(), 20);
        }
    }

    #[test]
    fn landmark_names_agree_with_their_json_names() {
        for name in Landmarks::NAMES {
            let json = format!("\"{name}\"");
            assert_eq!(serde_json::from_str::<Landmarks>(&json).unwrap(), Landmarks::from_name(name).unwrap());
        }
        assert!(matches!(Landmarks::from_name("none"), Err(Error::UnknownName { .. })));
    }

    #[test]
    fn dictionary_sizes_follow_the_rule_and_bad_sizes_are_rejected() {
        let size = |text: &str, rows: usize| text.parse::<Dictionary>().map(|d| d.size(rows));
        assert_eq!(size("auto", 10_000), Ok(10_000));
        assert_eq!(size("auto", 10_001), Ok(1000));
        assert_eq!(size("all", 50_000), Ok(50_000));
        assert_eq!(size("7", 5), Ok(5));
        assert_eq!(size("7", 50), Ok(7));
        for bad in ["0", "-1", "1.5", "none", ""] {
            assert!(matches!(size(bad, 5), Err(Error::Parameter { name, .. }) if name == "dictionary"), "{bad}");
        }
    }
}
