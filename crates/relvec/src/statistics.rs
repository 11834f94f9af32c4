//! Sufficient statistics of a fit to landmarks: sums over the rows, whose size does not depend on the number of rows.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::design::{Columns, Design};
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::model::{KeptStatistics, Model, NoiseSums, Place, check_features};
use crate::report::Interrupt;
use crate::sums::Sums;
use crate::targets::{Given, Targets, Values};

/// Largest number of bytes of a block of basis functions, for any number of rows.
const BLOCK_MEMORY: u64 = 1 << 28;

/// Sufficient statistics of real targets for a kernel at given centres (landmarks): Phi'cPhi, Phi'ct, t'ct and the sum
/// of the sample weights c. Phi has a column of ones and one column per centre.
///
/// Statistics can be added: rows may be read in any blocks, in any order, on any number of machines. The fit
/// ([`Rvm::fit_statistics`](crate::Rvm::fit_statistics)) then costs the same for any number of rows. Targets are summed
/// about the mean of the first block, so that large targets lose no digits.
///
/// ```
/// use ndarray::{Array1, Array2, s};
/// use relvec::{Kernel, Rbf, Rvm, Statistics, Targets};
///
/// let x = Array2::from_shape_fn((1000, 1), |(i, _)| 0.02 * i as f64 - 10.0);
/// let t: Array1<f64> = x.column(0).mapv(f64::sin);
/// let kernel = Kernel::Rbf(Rbf { gamma: 0.5.into() });
/// let mut all = Statistics::new(&kernel, x.slice(s![..;20, ..]))?;
/// let mut rest = all.clone();
/// all.update(x.slice(s![..400, ..]), &Targets::real(t.slice(s![..400])))?;
/// rest.update(x.slice(s![400.., ..]), &Targets::real(t.slice(s![400..])))?;
/// all.merge(&rest)?;
/// let (model, _) = Rvm::default().fit_statistics(&all)?;
/// assert_eq!(model.n_rows, 1000);
/// assert!((model.predict(x.view())?.mean[500] - t[500]).abs() < 0.01);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    kernel: Kernel,
    centres: Array2<f64>,
    /// Sums over unscaled columns, the bias first, and over targets minus `about`.
    sums: Sums,
    about: f64,
    /// Smallest and largest target.
    range: (f64, f64),
    n_rows: usize,
    /// Sums for a known noise variance per row. If they are present, `sums` weights rows by their noise precisions too.
    noise: Option<NoiseSums>,
}

/// First bytes without known noise, with the version.
const MAGIC: &[u8] = b"relvec statistics 1\n";
/// First bytes with known noise, with the version.
const MAGIC_NOISE: &[u8] = b"relvec statistics 2\n";

/// The header of the bytes.
#[derive(Serialize, Deserialize)]
struct Header {
    kernel: Kernel,
    centres: usize,
    features: usize,
    n_rows: usize,
    range: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseSums>,
}

/// Mean and standard deviation of the targets, by weight. The deviation is exactly 0 if all targets are equal.
pub(crate) struct TargetMoments {
    pub mean: f64,
    pub deviation: f64,
}

impl Statistics {
    /// Returns statistics without rows, for a kernel whose parameters are numbers and for `centres`, [L, D], L >= 1.
    ///
    /// # Errors
    /// Returns an error for a kernel whose scale is a rule, because there are no data to compute it from. Returns an
    /// error as well for centres that are not finite.
    pub fn new(kernel: &Kernel, centres: ArrayView2<f64>) -> Result<Statistics> {
        let (l, d) = centres.dim();
        if l == 0 || d == 0 {
            let found = format!("{l} of {d} features");
            return Err(Error::Shape { what: "centres", expected: "at least 1, of at least 1 feature".into(), found });
        }
        check_features("centres", centres)?;
        let resolved = kernel.resolve(&DataScale { features: d, variance: 1.0 })?;
        if resolved != *kernel {
            return Err(Error::Parameter {
                name: format!("kernel.{}.gamma", kernel.name()),
                found: "a rule".into(),
                expected: "a positive number, or one per feature: the rule needs rows, which statistics do not have yet".into(),
            });
        }
        let sums = Sums::new(l + 1, 1);
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        Ok(Statistics { kernel: resolved, centres: centres.to_owned(), sums, about: 0.0, range, n_rows: 0, noise: None })
    }

    /// Adds rows `x`, [N, D], on the threads of the current pool. After an error nothing has changed.
    ///
    /// # Errors
    /// Returns an error for shapes that do not match, values that are not finite, classes instead of real targets,
    /// negative weights, and targets whose squares overflow.
    pub fn update(&mut self, x: ArrayView2<f64>, targets: &Targets) -> Result<()> {
        self.update_with(x, targets, &Interrupt::default())
    }

    /// Adds rows `x`, `[N, D]`, see [`Statistics::update`]. Another thread may stop it by `interrupt`.
    ///
    /// # Errors
    /// Returns the errors of [`Statistics::update`], and [`Error::Interrupted`].
    pub fn update_with(&mut self, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<()> {
        let (n, d) = x.dim();
        if d != self.centres.ncols() {
            let expected = format!("{} columns, as the centres have", self.centres.ncols());
            return Err(Error::Shape { what: "rows to train on", expected, found: d.to_string() });
        }
        if targets.len() != n {
            let found = targets.len().to_string();
            return Err(Error::Shape { what: "targets", expected: format!("{n}, one per row"), found });
        }
        check_features("rows to train on", x)?;
        let Values::Real(t) = targets.values else {
            return Err(Error::Targets("statistics need real targets of one output, found classes or several outputs".into()));
        };
        if let Some(row) = t.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "targets", row, column: 0, value: t[row] });
        }
        if let Some(given) = targets.given.as_ref().filter(|given| !matches!(given, Given::Noise(_))) {
            let expected = "statistics are sums for Gaussian noise and cannot be combined with the";
            return Err(Error::Targets(format!("{expected} {} of each row", given.name())));
        }
        let noise = targets.checked_given()?;
        self.check_noise(noise.is_some())?;
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; n]);
        let used: Vec<usize> = (0..n).filter(|i| weights[*i] > 0.0).collect();
        if used.is_empty() {
            return Ok(());
        }
        let rows = if used.len() == n { x.to_owned() } else { x.select(ndarray::Axis(0), &used) };
        let c: Vec<f64> = used.iter().map(|i| noise.as_ref().map_or(weights[*i], |v| weights[*i] / v[*i])).collect();
        let total: f64 = c.iter().sum();
        let about = match self.n_rows {
            0 => used.iter().zip(&c).map(|(i, c)| t[*i] * (c / total)).sum(),
            _ => self.about,
        };
        let shifted: Vec<f64> = used.iter().map(|i| t[*i] - about).collect();
        self.check_squares(t, &used, &shifted, &c)?;
        let columns = Columns::Kernel { kernel: self.kernel.clone(), centres: self.centres.clone() };
        let design = Design::unscaled(rows.into_shared(), columns, true, BLOCK_MEMORY, interrupt.clone());
        let mut part = Sums::new(self.sums.gram.nrows(), 1);
        design.for_each_block(|range, phi| part.accumulate(phi, &shifted[range.clone()], &c[range]));
        interrupt.check()?;
        let part = part.finish();
        // A column that is not finite makes its diagonal entry of the Gram matrix, or its entry of f, not finite.
        if !(part.tt[0].is_finite() && part.gram.diag().iter().chain(&part.f[0]).all(|v| v.is_finite())) {
            return Err(Error::Overflow { what: "a basis function (the kernel of a row and a centre), or its square,".into() });
        }
        self.about = about;
        self.sums.add(&part);
        if let Some(v) = &noise {
            let own = NoiseSums {
                count: used.iter().map(|i| weights[*i]).sum(),
                log_precision: used.iter().map(|i| -weights[*i] * v[*i].ln()).sum(),
                largest: used.iter().map(|i| v[*i]).fold(0.0, f64::max),
            };
            self.add_noise(&own);
        }
        for i in used {
            self.range = (self.range.0.min(t[i]), self.range.1.max(t[i]));
        }
        self.n_rows = self.n_rows.saturating_add(c.len());
        Ok(())
    }

    /// Adds the rows of `other`. Up to rounding, the result does not depend on how the rows were divided. Merging in
    /// the same order gives the same bits.
    ///
    /// # Errors
    /// Returns an error for another kernel or other centres.
    pub fn merge(&mut self, other: &Statistics) -> Result<()> {
        if self.kernel != other.kernel || self.centres != other.centres {
            let what = if self.kernel != other.kernel { "kernel" } else { "centres" };
            return Err(Error::Statistics(format!("the {what} of the two differ; sums over rows add only for the same")));
        }
        if other.n_rows == 0 {
            return Ok(());
        }
        if self.n_rows == 0 {
            self.about = other.about;
        }
        self.check_noise(other.noise.is_some())?;
        if let Some(noise) = &other.noise {
            self.add_noise(noise);
        }
        let mut sums = other.sums.clone();
        sums.shift(other.about - self.about);
        self.sums.add(&sums);
        self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
        self.n_rows = self.n_rows.saturating_add(other.n_rows);
        Ok(())
    }

    /// Returns an error if the running sum of squared targets overflows. It names the row of `t`, `[N]`, at which it
    /// does.
    fn check_squares(&self, t: ArrayView1<f64>, used: &[usize], shifted: &[f64], c: &[f64]) -> Result<()> {
        let mut sum = self.sums.tt[0];
        for ((row, s), c) in used.iter().zip(shifted).zip(c) {
            sum += c * s * s;
            if !sum.is_finite() {
                let what = format!("the sum of the squared targets, at row {row} (target {:e}),", t[*row]);
                return Err(Error::Overflow { what });
            }
        }
        Ok(())
    }

    /// Checks that the noise variance is known for all rows of a table, or for none.
    fn check_noise(&self, known: bool) -> Result<()> {
        match self.n_rows > 0 && known != self.noise.is_some() {
            true => Err(Error::Statistics("the noise variance is known of some rows and not of others".into())),
            false => Ok(()),
        }
    }

    fn add_noise(&mut self, other: &NoiseSums) {
        let noise = self.noise.get_or_insert_default();
        noise.count += other.count;
        noise.log_precision += other.log_precision;
        noise.largest = noise.largest.max(other.largest);
    }

    /// Returns the weighted geometric mean of the noise variances, if they are known.
    pub(crate) fn typical_noise(&self) -> Option<f64> {
        self.noise.map(|noise| (-noise.log_precision / noise.count).exp())
    }

    /// Returns the typical noise variance divided by the largest one; 1 if they are not known.
    pub(crate) fn least_factor(&self) -> f64 {
        self.typical_noise().zip(self.noise).map_or(1.0, |(typical, noise)| typical / noise.largest)
    }

    /// Returns the number of rows of positive weight so far.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the sum of the sample weights so far.
    pub fn weight(&self) -> f64 {
        self.noise.map_or(self.sums.count, |noise| noise.count)
    }

    /// Returns D, the number of features.
    pub fn n_features(&self) -> usize {
        self.centres.ncols()
    }

    /// Returns the kernel, with a number for every parameter.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the centres, [L, D].
    pub fn centres(&self) -> ArrayView2<'_, f64> {
        self.centres.view()
    }

    /// Returns Phi'cPhi, [L + 1, L + 1], the column of ones first. If the noise is known, c is divided by its variance.
    pub fn gram(&self) -> ArrayView2<'_, f64> {
        self.sums.gram.view()
    }

    /// Returns Phi'c(t - mean), `[L + 1]`, t'c(t - mean), and the mean of the targets.
    pub fn target_sums(&self) -> (Array1<f64>, f64, f64) {
        let mean = self.moments().mean;
        let mut sums = self.sums.clone();
        sums.shift(self.about - mean);
        (Array1::from_vec(sums.f.swap_remove(0)), sums.tt[0], mean)
    }

    /// Returns the sums that a model stores, if it stores any ([`Rvm::keep_statistics`](crate::Rvm::keep_statistics)).
    pub fn of(model: &Model) -> Option<Statistics> {
        let (kept, kernel) = (model.statistics.as_ref()?, model.kernel()?);
        Statistics::from_kept(kernel, kept).ok()
    }

    /// Returns the sums in the form in which a model stores them ([`Model::statistics`]). `landmarks` contains the
    /// number of each centre in the model, `[L]`.
    pub fn kept(&self, landmarks: Vec<usize>) -> KeptStatistics {
        let rows = self.sums.gram.outer_iter().enumerate();
        KeptStatistics {
            landmarks,
            centres: self.centres.clone(),
            n_rows: self.n_rows,
            range: (self.n_rows > 0).then_some(self.range),
            noise: self.noise,
            about: self.about,
            tt: self.sums.tt[0],
            weight: self.sums.count,
            f: self.sums.f[0].clone(),
            gram: rows.map(|(i, row)| row.iter().take(i + 1).copied().collect()).collect(),
        }
    }

    fn from_kept(kernel: &Kernel, kept: &KeptStatistics) -> Result<Statistics> {
        let mut own = Statistics::new(kernel, kept.centres.view())?;
        for (i, row) in kept.gram.iter().enumerate() {
            for (j, v) in row.iter().enumerate() {
                (own.sums.gram[[i, j]], own.sums.gram[[j, i]]) = (*v, *v);
            }
        }
        (own.sums.f, own.sums.tt, own.sums.count) = (vec![kept.f.clone()], vec![kept.tt], kept.weight);
        own.about = kept.about;
        own.range = kept.range.unwrap_or(own.range);
        (own.n_rows, own.noise) = (kept.n_rows, kept.noise);
        Ok(own)
    }

    /// Returns all data as bytes with a checksum, to be stored, or to be sent to another process that merges them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (l, d) = self.centres.dim();
        let header = Header {
            kernel: self.kernel.clone(),
            centres: l,
            features: d,
            n_rows: self.n_rows,
            range: (self.n_rows > 0).then_some(self.range),
            noise: self.noise,
        };
        let header = serde_json::to_vec(&header).expect("a header is plain numbers and names");
        let mut out = if self.noise.is_some() { MAGIC_NOISE } else { MAGIC }.to_vec();
        out.extend((header.len() as u64).to_le_bytes());
        out.extend(header);
        let triangle = (0..=l).flat_map(|i| self.sums.gram.row(i).to_vec().into_iter().take(i + 1));
        let single = [self.about, self.sums.tt[0], self.sums.count];
        let numbers =
            single.into_iter().chain(self.sums.f[0].iter().copied()).chain(self.centres.iter().copied()).chain(triangle);
        out.extend(numbers.flat_map(f64::to_le_bytes));
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Reads the bytes that [`Statistics::to_bytes`] wrote.
    ///
    /// # Errors
    /// Returns [`Error::Statistics`] for other bytes, for bytes of another version, cut short or damaged, and for
    /// numbers that cannot be sums over rows.
    pub fn from_bytes(bytes: &[u8]) -> Result<Statistics> {
        let bad = |why: &str| Error::Statistics(why.into());
        let rest = bytes.strip_prefix(MAGIC).or_else(|| bytes.strip_prefix(MAGIC_NOISE));
        let rest = rest.ok_or_else(|| bad("these bytes are not statistics of relvec, or are of another version"))?;
        let short = || bad("the end is missing");
        let (body, sum) = bytes.split_at_checked(bytes.len() - 4).ok_or_else(short)?;
        let (size, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let size = usize::try_from(u64::from_le_bytes(*size)).map_err(|_| bad("damaged"))?;
        let (header, rest) = rest.split_at_checked(size).ok_or_else(short)?;
        let header: Header = serde_json::from_slice(header).map_err(|e| bad(&format!("damaged: {e}")))?;
        let (l, d) = (header.centres, header.features);
        let columns = l.checked_add(1).ok_or_else(|| bad("damaged"))?;
        let count =
            || columns.checked_mul(columns.checked_add(1)?)?.checked_div(2)?.checked_add(columns)?.checked_add(l.checked_mul(d)?);
        let expected = count().and_then(|n| n.checked_add(3)?.checked_mul(8)?.checked_add(4)).ok_or_else(|| bad("damaged"))?;
        if rest.len() != expected {
            return Err(Error::Statistics(format!("{} bytes of sums, expected {expected}", rest.len())));
        }
        if crc32fast::hash(body).to_le_bytes() != sum {
            return Err(bad("the checksum does not match: damaged"));
        }
        let mut numbers = rest.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes")));
        let mut next = || numbers.next().expect("counted above");
        let (about, tt, weight) = (next(), next(), next());
        let f: Vec<f64> = (0..=l).map(|_| next()).collect();
        let centres = Array2::from_shape_simple_fn((l, d), &mut next);
        let gram = (0..=l).map(|i| (0..=i).map(|_| next()).collect()).collect();
        let Header { kernel, n_rows, range, noise, .. } = header;
        let kept = KeptStatistics { landmarks: vec![], centres, n_rows, range, noise, about, tt, weight, f, gram };
        kept.check(&Place::statistics(), &kernel)?;
        Statistics::from_kept(&kernel, &kept)
    }

    pub(crate) fn moments(&self) -> TargetMoments {
        if self.range.0 >= self.range.1 {
            return TargetMoments { mean: self.range.0, deviation: 0.0 };
        }
        let shift = self.sums.f[0][0] / self.sums.count;
        let variance = self.sums.tt[0] / self.sums.count - shift * shift;
        TargetMoments { mean: self.about + shift, deviation: variance.max(0.0).sqrt() }
    }

    /// Returns the sums with targets in internal units: about their mean if there is a bias, divided by `scale`.
    pub(crate) fn inner(&self, bias: bool, moments: &TargetMoments, scale: f64) -> Sums {
        let mut sums = self.sums.clone();
        sums.shift(self.about - if bias { moments.mean } else { 0.0 });
        sums.f[0].iter_mut().for_each(|f| *f /= scale);
        sums.tt[0] /= scale * scale;
        if let (Some(typical), Some(noise)) = (self.typical_noise(), &self.noise) {
            // Weights are converted from noise precisions to precisions relative to the typical noise.
            sums.gram *= typical;
            sums.f[0].iter_mut().for_each(|f| *f *= typical);
            sums.tt[0] *= typical;
            sums.count = noise.count;
        }
        if bias { sums } else { sums.without_first() }
    }
}
