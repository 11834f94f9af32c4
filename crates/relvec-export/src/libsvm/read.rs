//! Reads a model file of LIBSVM.

use std::collections::BTreeMap;
use std::str::FromStr;

use ndarray::Array2;
use relvec_predict::{Expansion, FittedBasis, Gamma, Kernel, Label, Linear, Margins, Model, MultiClass, Poly, Rbf, Sigmoid};

use super::{FORMAT, FORMULATIONS, places};
use crate::error::{Error, Result};

/// Most features of a file, since the table of vectors is dense and a damaged index could have any size.
const MOST_FEATURES: usize = 1 << 24;
/// Most numbers in the table of vectors (8 GB).
const MOST_NUMBERS: usize = 1 << 30;

/// Reads a model file of LIBSVM. `features`: the number of features D, if it is known. The file does not contain D if
/// the last features are 0 in all vectors.
///
/// Classes keep their numbers, in the order of the file. Training rows, iterations and objective are unknown, since
/// LIBSVM does not save them.
///
/// # Errors
/// [`Error::Text`] contains the line, what was found and what was expected. Precomputed kernels and one-class models
/// are refused.
pub fn from_libsvm(text: &str, features: Option<usize>) -> Result<Model> {
    let header = Header::read(text)?;
    let formulation = header.word("svm_type")?;
    let classifies = match formulation {
        "c_svc" | "nu_svc" => true,
        "epsilon_svr" | "nu_svr" => false,
        other => return header.fail("svm_type", format!("{other}: expected {}", FORMULATIONS.join(", "))),
    };
    let kernel = header.kernel()?;
    let vectors: usize = header.one("total_sv")?;
    let lines = vector_lines(text, &header, vectors)?;
    let classes = if classifies { header.one("nr_class")? } else { 2 };
    if classes < 2 || classes > vectors.max(2) {
        return header.fail("nr_class", format!("{classes}: expected from 2 to the number of vectors, {vectors}"));
    }
    // There are at most as many classes as lines, so this cannot overflow.
    let pairs = classes * (classes - 1) / 2;
    let rho = header.finite("rho", pairs)?;
    if pairs.checked_mul(vectors).is_none_or(|numbers| numbers > MOST_NUMBERS) {
        return header
            .fail("nr_class", format!("{classes}, of {vectors} vectors: expected at most {MOST_NUMBERS} weights in all"));
    }
    let (coefficients, centres) = read_vectors(&lines, &header, classes - 1, features)?;
    let (weights, intercept, margins) = match classifies {
        true => classifier(&header, &coefficients, &rho, classes)?,
        false => (coefficients, vec![-rho[0]], Parts::default()),
    };
    let functions = intercept.len();
    let margins = Margins {
        formulation: formulation.into(),
        classes: classifies.then_some(classes),
        multi_class: (classes > 2).then_some(MultiClass::OneVsOne),
        vector_classes: margins.vector_classes,
        objective: vec![0.0; functions],
        bounded: 0,
        sigmoids: margins.sigmoids,
    };
    let labels: Vec<i64> = if classifies { header.numbers("label", classes)? } else { vec![] };
    let d = centres.ncols();
    let expansion = Expansion { basis: FittedBasis::Kernel { kernel, centres }, weights, intercept };
    let model = Model {
        classes: labels.into_iter().map(Label::Integer).collect(),
        relevance: (0..vectors).collect(),
        margins: Some(margins),
        ..Model::of_expansion("svm", expansion, d, vectors.max(1))
    };
    // Reading the model as a file runs the checks of model files.
    Ok(Model::from_json(&model.to_json()?)?)
}

/// Parts of a classifier in addition to its functions.
#[derive(Default)]
struct Parts {
    vector_classes: Vec<usize>,
    sigmoids: Vec<[f64; 2]>,
}

/// Returns weights, [M, C], and offsets, `[C]`, in relvec's order and signs, from LIBSVM's coefficients, [M, K - 1].
fn classifier(
    header: &Header,
    coefficients: &Array2<f64>,
    rho: &[f64],
    classes: usize,
) -> Result<(Array2<f64>, Vec<f64>, Parts)> {
    let counts: Vec<usize> = header.numbers("nr_sv", classes)?;
    if counts.iter().sum::<usize>() != coefficients.nrows() {
        return header.fail(
            "nr_sv",
            format!("{} vectors in all: expected total_sv, {}", counts.iter().sum::<usize>(), coefficients.nrows()),
        );
    }
    let own: Vec<usize> = counts.iter().enumerate().flat_map(|(k, count)| vec![k; *count]).collect();
    let places = places(classes);
    let mut weights = Array2::zeros((own.len(), places.len()));
    let mut intercept = vec![0.0; places.len()];
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    for ((i, j), (place, rho)) in pairs.zip(places.iter().zip(rho)) {
        intercept[*place] = *rho;
        for (n, class) in own.iter().enumerate() {
            match *class {
                class if class == i => weights[[n, *place]] = -coefficients[[n, j - 1]],
                class if class == j => weights[[n, *place]] = -coefficients[[n, i]],
                _ => {}
            }
        }
    }
    let mut sigmoids = vec![];
    if header.lines.contains_key("probA") {
        let (a, b) = (header.finite("probA", places.len())?, header.finite("probB", places.len())?);
        sigmoids = vec![[0.0; 2]; places.len()];
        for (place, (a, b)) in places.iter().zip(a.iter().zip(&b)) {
            sigmoids[*place] = [*a, -b];
        }
    }
    Ok((weights, intercept, Parts { vector_classes: own, sigmoids }))
}

/// The lines before the vectors, keyed by their first word.
struct Header<'t> {
    lines: BTreeMap<&'t str, (usize, &'t str)>,
    /// The number of the line SV, counted from 1.
    end: usize,
}

impl<'t> Header<'t> {
    fn read(text: &'t str) -> Result<Header<'t>> {
        let mut lines = BTreeMap::new();
        for (i, line) in text.lines().enumerate() {
            let (key, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            match key {
                "SV" => return Ok(Header { lines, end: i + 1 }),
                "" => {}
                key if lines.insert(key, (i + 1, rest.trim())).is_some() => {
                    return Err(fail(i + 1, format!("{key} a second time")));
                }
                _ => {}
            }
            if i == 0 && key != "svm_type" {
                return Err(fail(1, "expected svm_type: this is not a model file of LIBSVM".into()));
            }
        }
        Err(fail(text.lines().count().max(1), "the file ends before the line SV".into()))
    }

    /// Returns an error at the line of `key`.
    fn fail<T>(&self, key: &str, problem: String) -> Result<T> {
        Err(fail(self.lines.get(key).map_or(self.end, |(line, _)| *line), format!("{key} {problem}")))
    }

    fn word(&self, key: &str) -> Result<&'t str> {
        match self.lines.get(key) {
            Some((_, rest)) => Ok(rest),
            None => Err(fail(self.end, format!("expected a line {key} before SV"))),
        }
    }

    fn numbers<T: FromStr>(&self, key: &str, count: usize) -> Result<Vec<T>> {
        let words: Vec<&str> = self.word(key)?.split_whitespace().collect();
        if words.len() != count {
            return self.fail(key, format!("has {} numbers: expected {count}", words.len()));
        }
        let number = |word: &&str| word.parse().or_else(|_| self.fail(key, format!("{word}: expected a number")));
        words.iter().map(number).collect()
    }

    /// Returns the numbers of a line, which must be finite.
    fn finite(&self, key: &str, count: usize) -> Result<Vec<f64>> {
        let words = self.numbers::<String>(key, count)?;
        let number = |word: &String| match word.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(v),
            _ => self.fail(key, format!("{word}: expected a finite number")),
        };
        words.iter().map(number).collect()
    }

    fn one<T: FromStr + Copy>(&self, key: &str) -> Result<T> {
        Ok(self.numbers(key, 1)?[0])
    }

    fn kernel(&self) -> Result<Kernel> {
        let gamma = || self.finite("gamma", 1).map(|values| Gamma::Value(values[0]));
        let coef0 = || self.finite("coef0", 1).map(|values| values[0]);
        let kernel: Kernel = match self.word("kernel_type")? {
            "linear" => Linear {}.into(),
            "rbf" => Rbf { gamma: gamma()? }.into(),
            "polynomial" => Poly { gamma: gamma()?, coef0: coef0()?, degree: self.one("degree")? }.into(),
            "sigmoid" => Sigmoid { gamma: gamma()?, coef0: coef0()? }.into(),
            other => return self.fail("kernel_type", format!("{other}: expected linear, polynomial, rbf or sigmoid")),
        };
        kernel.check()?;
        Ok(kernel)
    }
}

fn fail(line: usize, problem: String) -> Error {
    Error::Text { format: FORMAT, line, problem }
}

/// Returns the lines of the vectors, with their line numbers.
fn vector_lines<'t>(text: &'t str, header: &Header, vectors: usize) -> Result<Vec<(usize, &'t str)>> {
    let after = text.lines().enumerate().skip(header.end).filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<(usize, &str)> = after.map(|(i, line)| (i + 1, line)).collect();
    match lines.len() {
        found if found == vectors => Ok(lines),
        found => {
            let last = lines.last().map_or(header.end, |(line, _)| *line);
            Err(fail(last, format!("{found} vectors: expected total_sv, {vectors}")))
        }
    }
}

/// Returns coefficients, [M, K - 1], and vectors, [M, D].
fn read_vectors(
    lines: &[(usize, &str)],
    header: &Header,
    columns: usize,
    features: Option<usize>,
) -> Result<(Array2<f64>, Array2<f64>)> {
    let vectors = lines.len();
    let (mut coefficients, mut entries, mut largest) = (vec![], vec![], 0);
    for (row, (line, text)) in lines.iter().enumerate() {
        let mut words = text.split_whitespace();
        for _ in 0..columns {
            let word = words.next().unwrap_or("the end of the line");
            coefficients.push(number(*line, word)?);
        }
        let mut last = 0;
        for word in words {
            let (index, value) = entry(*line, word)?;
            if index <= last {
                return Err(fail(*line, format!("{word}: expected indices from 1 that ascend, after {last}")));
            }
            last = index;
            entries.push((row, index - 1, value));
        }
        largest = largest.max(last);
    }
    let d = features.unwrap_or(largest.max(1));
    if largest > d {
        return Err(fail(header.end, format!("the vectors have {largest} features: expected at most {d}")));
    }
    if d.checked_mul(vectors).is_none_or(|numbers| numbers > MOST_NUMBERS) {
        return Err(fail(
            header.end,
            format!("{vectors} vectors of {d} features: expected at most {MOST_NUMBERS} numbers in all"),
        ));
    }
    let mut centres = Array2::zeros((vectors, d));
    for (row, column, value) in entries {
        centres[[row, column]] = value;
    }
    let coefficients = Array2::from_shape_vec((vectors, columns), coefficients).expect("as many numbers as were read");
    Ok((coefficients, centres))
}

fn number(line: usize, word: &str) -> Result<f64> {
    match word.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        _ => Err(fail(line, format!("{word}: expected a finite number"))),
    }
}

fn entry(line: usize, word: &str) -> Result<(usize, f64)> {
    let expected = || fail(line, format!("{word}: expected index:value, the index from 1 to {MOST_FEATURES}"));
    let (index, value) = word.split_once(':').ok_or_else(expected)?;
    match index.parse() {
        Ok(index) if (1..=MOST_FEATURES).contains(&index) => Ok((index, number(line, value)?)),
        // "0:" precedes the row numbers of a precomputed kernel.
        _ => Err(expected()),
    }
}
