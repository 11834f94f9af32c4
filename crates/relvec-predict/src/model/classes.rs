//! Class probabilities of two-class models, softmax models and committees of two-class models.

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut2, Axis, s};
use serde::{Deserialize, Serialize};

use super::{FittedBasis, KeptRows, Model, Moderation, Posterior, beyond, check_log_probability};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::{Likelihood, moderate, normalise};
use crate::linalg;
use crate::multi_class::MultiClass;
use crate::sparse::SparseRows;

/// Largest number of values in the covariances of a tile of rows.
const TILE_NUMBERS: usize = 1 << 20;
/// Largest number of rows of a tile.
const TILE_ROWS: usize = 64;
/// The coupling of pairs ends when every equation is solved to within this bound divided by the number of classes.
const COUPLED: f64 = 1e-10;
/// Largest number of iterations of the coupling of pairs.
const MAX_COUPLING: usize = 1000;

/// Binary models that together decide between more than two classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committee {
    /// The rule that says which classes each binary model separates.
    pub rule: MultiClass,
    /// The binary models. One-versus-rest has one for each class against all others. One-versus-one has one for each
    /// pair of classes k < l, in the order (0, 1), (0, 2), (1, 2), (0, 3) and so on; its two classes are k and l.
    pub members: Vec<Model>,
}

/// The functions of a classifier of several classes, whose softmax gives the probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFunctions {
    /// Posterior means, [N, K].
    pub mean: Array2<f64>,
    /// Posterior covariances of the K functions at each row, [N, K, K]. The part that all functions share, which
    /// changes no probability, is removed.
    pub covariance: Array3<f64>,
}

impl Committee {
    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        let members = self.members.len();
        match self.rule {
            MultiClass::OneVsOne => (1..=members + 1).find(|k| k * (k - 1) / 2 >= members).unwrap_or(2),
            _ => members,
        }
    }
}

impl Model {
    /// Returns the number of classes; `None` for regression.
    pub fn n_classes(&self) -> Option<usize> {
        match (&self.committee, &self.margins) {
            (Some(committee), _) => Some(committee.classes()),
            (None, Some(margins)) => margins.classes,
            (None, None) => {
                let classifies = self.likelihood.as_ref().is_none_or(Likelihood::is_for_classes);
                (self.noise_variance().is_none() && classifies).then(|| self.outputs().max(2))
            }
        }
    }

    /// Returns how more than two classes are modelled; `None` for two classes and for regression.
    pub fn multi_class(&self) -> Option<MultiClass> {
        let several = self.n_classes().is_some_and(|k| k > 2);
        let by_two = self.committee.as_ref().map(|c| c.rule).or(self.margins.as_ref().and_then(|m| m.multi_class));
        several.then(|| by_two.unwrap_or(MultiClass::Joint))
    }

    /// Returns class probabilities at the rows of `x`, [N, D], as [N, K]. Columns are in the order of the classes.
    ///
    /// # Errors
    /// Returns an error for a model that is not a classifier, another number of columns than the model's, a value that
    /// is not finite, or an external kernel.
    pub fn predict_probability(&self, x: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        Ok(self.predict_log_probability(x, moderation)?.mapv_into(f64::exp))
    }

    /// Returns the natural logarithms of [`Model::predict_probability`], `[N, K]`, at rows `x`, `[N, D]`. They stay
    /// finite if a probability underflows to 0.
    ///
    /// # Errors
    /// See [`Model::predict_probability`].
    pub fn predict_log_probability(&self, x: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        self.check_classifier()?;
        self.check_rows(x)?;
        self.log_probability(x, moderation)
    }

    /// Returns the natural logarithms of the class probabilities, `[N, K]`, from the values of the basis functions in
    /// the model, `[N, M]`, without the bias. It serves kernels that the caller computes.
    ///
    /// # Errors
    /// Returns an error for a model that is not a classifier, another number of columns than relevance vectors, or a
    /// value that is not finite.
    pub fn log_probability_from_basis(&self, phi: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        self.check_classifier()?;
        self.check_basis(phi)?;
        self.as_external().log_probability(phi, moderation)
    }

    /// Returns the means and covariances of the K functions of a softmax model at the rows of `x`, [N, D].
    ///
    /// # Errors
    /// Returns an error for another likelihood, a committee, and a model from regression on labels, which has no
    /// covariance. Returns the errors of [`Model::predict_probability`] as well.
    pub fn predict_functions(&self, x: ArrayView2<f64>) -> Result<ClassFunctions> {
        self.check_rows(x)?;
        let classes = self.outputs();
        let Some(posterior) = self.posterior.as_ref().filter(|_| classes >= 2) else {
            if self.labels.is_some() {
                return Err(Error::NoPosterior);
            }
            let expected =
                "functions of classes: found a model without a joint posterior of all classes, expected a softmax model";
            return Err(Error::Targets(expected.into()));
        };
        let mut covariance = Array3::zeros((x.nrows(), classes, classes));
        let by_row = covariance.as_slice_mut().expect("fresh arrays are contiguous");
        let mut rows: Vec<&mut [f64]> = by_row.chunks_mut(classes * classes).collect();
        let mean = self.finite_means(x)?;
        self.covariances(posterior, &posterior.half(), &self.unit_columns(x), &mut rows, |own, c| own.copy_from_slice(c));
        match covariance.outer_iter().position(|c| !c.iter().all(|v| v.is_finite())) {
            Some(row) => Err(beyond(row)),
            None => Ok(ClassFunctions { mean, covariance }),
        }
    }

    /// Returns the model with an external kernel, which the caller computes at the training rows `relevance`. There is
    /// one such row for each column of the model; `centres` contains the rows themselves, [M, D].
    pub fn with_external_kernel(mut self, relevance: &[usize], n_features: usize, centres: Option<&Array2<f64>>) -> Model {
        if let Some(committee) = &mut self.committee {
            let members = core::mem::take(&mut committee.members);
            committee.members = members
                .into_iter()
                .map(|member| {
                    let place = |row: &usize| self.relevance.iter().position(|r| r == row).expect("the model lists it");
                    let places: Vec<usize> = member.relevance.iter().map(place).collect();
                    let own: Vec<usize> = places.iter().map(|k| relevance[*k]).collect();
                    member.with_external_kernel(&own, n_features, centres.map(|c| c.select(Axis(0), &places)).as_ref())
                })
                .collect();
        }
        self.relevance = relevance.to_vec();
        self.n_features = n_features;
        self.expansion.basis = FittedBasis::External { centres: centres.cloned() };
        self
    }

    /// Returns the model with `kernel` at sparse `centres`, [M, D], in place of columns that the caller computes from
    /// it.
    ///
    /// # Errors
    /// Returns an error if the number of centres differs from the number of relevance vectors, if the number of
    /// features differs from the model's, or for the linear spline.
    pub fn with_sparse_kernel(mut self, kernel: &Kernel, centres: &SparseRows) -> Result<Model> {
        kernel.check_sparse()?;
        if (centres.nrows(), centres.ncols()) != (self.relevance.len(), self.n_features) {
            let expected = format!("[{}, {}]", self.relevance.len(), self.n_features);
            let found = format!("[{}, {}]", centres.nrows(), centres.ncols());
            return Err(Error::Shape { what: "sparse centres", expected, found });
        }
        if let Some(committee) = &mut self.committee {
            for member in &mut committee.members {
                let place = |row: &usize| self.relevance.iter().position(|r| r == row).expect("the model lists it");
                let places: Vec<usize> = member.relevance.iter().map(place).collect();
                *member = member.clone().with_sparse_kernel(kernel, &centres.select(&places))?;
            }
        }
        self.expansion.basis = FittedBasis::Sparse { kernel: kernel.clone(), centres: centres.clone() };
        Ok(self)
    }

    /// Returns the model with centres and retained rows that are sparse, in memory and in its file. Predictions agree to
    /// rounding. Only models whose centres are training rows change, without standardisation and kept statistics, and with a
    /// kernel that is a function of a sum over features.
    ///
    /// ```
    /// use relvec_predict::{FittedBasis, Model, Result};
    ///
    /// fn without_zeros(model: Model) -> Result<String> {
    ///     let small = model.with_sparse_centres();
    ///     assert!(!matches!(small.expansion.basis, FittedBasis::Kernel { .. }));
    ///     small.to_json()
    /// }
    /// ```
    #[must_use]
    pub fn with_sparse_centres(mut self) -> Model {
        let plain = self.scaling.is_none() && self.statistics.is_none() && !self.learned_centres;
        let FittedBasis::Kernel { kernel, centres } = &self.expansion.basis else { return self };
        if !plain || kernel.check_sparse().is_err() {
            return self;
        }
        // A list of no centres does not state the number of features.
        let centres = match self.relevance.is_empty() {
            true => SparseRows::empty(self.n_features),
            false => SparseRows::from_dense(centres.view()),
        };
        self.expansion.basis = FittedBasis::Sparse { kernel: kernel.clone(), centres };
        self.kept_rows = self.kept_rows.map(|kept| KeptRows { rows: kept.rows.into_sparse(), ..kept });
        if let Some(committee) = &mut self.committee {
            let members = core::mem::take(&mut committee.members);
            committee.members = members.into_iter().map(Model::with_sparse_centres).collect();
        }
        self
    }

    pub(super) fn as_external(&self) -> Model {
        self.clone().with_external_kernel(&self.relevance, self.n_features, None)
    }

    pub(super) fn check_classifier(&self) -> Result<()> {
        match self.n_classes() {
            Some(_) => Ok(()),
            None => Err(Error::Targets("class probabilities: found a regression model, expected a classifier".into())),
        }
    }

    /// Returns log probabilities, [N, K], at rows `x`, [N, D], that were checked. They are numbers or minus infinity.
    fn log_probability(&self, x: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        let found = self.any_log_probability(x, moderation)?;
        check_log_probability(&found)?;
        Ok(found)
    }

    fn any_log_probability(&self, x: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        if let Some(committee) = &self.committee {
            let votes = self.votes(committee, x, moderation)?;
            return Ok(couple(committee.rule, committee.classes(), &votes));
        }
        if let Some(margins) = &self.margins {
            return margins.log_probability(&self.finite_means(x)?);
        }
        // Without a posterior there is nothing to moderate with.
        let moderation = if self.posterior.is_some() { moderation } else { Moderation::PlugIn };
        if self.outputs() == 1 {
            let odds = match moderation {
                Moderation::Posterior => self.predict_tiles(x, self.maker())?.log_odds(moderation),
                Moderation::PlugIn => self.finite_means(x)?.column(0).to_owned(),
            };
            return Ok(Array2::from_shape_fn((odds.len(), 2), |(i, k)| log_sigmoid(if k == 0 { -odds[i] } else { odds[i] })));
        }
        let mut out = self.finite_means(x)?;
        match moderation {
            Moderation::PlugIn => out.outer_iter_mut().for_each(|mut row| normalise(row.as_slice_mut().expect("rows"))),
            Moderation::Posterior => {
                let posterior = self.posterior.as_ref().expect("a model of several classes has one");
                let mut rows: Vec<&mut [f64]> =
                    out.as_slice_mut().expect("fresh arrays are contiguous").chunks_mut(self.outputs()).collect();
                self.covariances(posterior, &posterior.half(), &self.unit_columns(x), &mut rows, |mean, c| moderate(mean, c));
            }
        }
        Ok(out)
    }

    /// Returns the means of all functions, [N, C], at rows `x`, [N, D].
    pub(super) fn means(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let (m, c) = (self.relevance.len(), self.outputs());
        let mut out = Array2::zeros((x.nrows(), c));
        let make = self.maker();
        let tiles = out.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter();
        tiles.zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter()).for_each(|(mut out, rows)| {
            let mut phi = Array2::zeros((rows.nrows(), m));
            make(rows, phi.view_mut());
            linalg::product_alone(false, phi.view(), self.expansion.weights.view(), out.view_mut());
            out += &ArrayView1::from(&self.expansion.intercept);
        });
        out
    }

    /// Returns a function that fills rows, from a given one on, with the basis functions at `x`, [N, D]. The bias comes
    /// first if it is in the model. The values are in the units of the posterior's factor.
    fn unit_columns<'a>(&'a self, x: ArrayView2<'a, f64>) -> impl Fn(usize, ArrayViewMut2<f64>) + Sync + 'a {
        let (make, bias) = (self.maker(), usize::from(self.intercept_alpha.is_some()));
        let scale = self.posterior.as_ref().map_or(vec![], |p| p.scale.clone());
        move |start, mut out| {
            out.fill(1.0);
            make(x.slice(s![start..start + out.nrows(), ..]), out.slice_mut(s![.., bias..]));
            out.outer_iter_mut().for_each(|mut row| row *= &ArrayView1::from(&scale));
        }
    }

    /// Calls `each` with the element of `own` for each row and the covariance of the functions there, [1, 1] for one
    /// function and [K, K] for K classes. `fill` computes rows of the basis functions from a given row on, see
    /// [`Model::unit_columns`].
    ///
    /// With W = inv(L), `half`, the half covariance of contrast r is the product of phi and the columns of W for that
    /// contrast. It is one triangular product for all rows of a tile.
    #[doc(hidden)]
    pub fn covariances<T: Send>(
        &self,
        posterior: &Posterior,
        half: &Array2<f64>,
        fill: &(impl Fn(usize, ArrayViewMut2<f64>) + Sync),
        own: &mut [T],
        each: impl Fn(&mut T, &[f64]) + Sync,
    ) {
        let (m, weights) = (posterior.scale.len(), half.nrows());
        let (contrasts, present) = (self.contrasts(), self.present());
        let outputs = present.len();
        let first: Vec<usize> = (0..outputs).map(|r| present[..r].iter().map(Vec::len).sum()).collect();
        let tile = (TILE_NUMBERS / (outputs * weights).max(1)).clamp(1, TILE_ROWS);
        let tiles: Vec<&mut [T]> = own.chunks_mut(tile).collect();
        tiles.into_par_iter().enumerate().for_each(|(k, own)| {
            let mut phi = Array2::zeros((own.len(), m));
            fill(k * tile, phi.view_mut());
            // For contrast r, the rows of W above its own block are zero.
            let half = |r: usize| {
                let mut out = Array2::zeros((phi.nrows(), weights - first[r]));
                let block = half.slice(s![first[r].., first[r]..first[r] + present[r].len()]);
                match present[r].len() == m {
                    true => linalg::product_alone(false, phi.view(), block.t(), out.view_mut()),
                    false => linalg::product_alone(false, phi.select(Axis(1), &present[r]).view(), block.t(), out.view_mut()),
                }
                out
            };
            let halves: Vec<Array2<f64>> = (0..outputs).map(half).collect();
            let mut c = Array2::zeros((outputs, outputs));
            for (b, own) in own.iter_mut().enumerate() {
                let halves: Vec<&[f64]> = halves.iter().map(|h| h.row(b).to_slice().expect("rows are contiguous")).collect();
                for (r, mut row) in c.outer_iter_mut().enumerate() {
                    for (s, c) in row.iter_mut().enumerate().take(r + 1) {
                        *c = ArrayView1::from(&halves[s][first[r] - first[s]..]).dot(&ArrayView1::from(halves[r]));
                    }
                }
                linalg::mirror(&mut c);
                match self.outputs() {
                    1 => each(own, c.as_slice().expect("fresh arrays are contiguous")),
                    _ => each(own, contrasts.between_classes(c.view()).as_slice().expect("fresh arrays are contiguous")),
                }
            }
        });
    }

    /// Returns log probabilities of the second class of each binary model, [N, C], at rows `x`, [N, D].
    fn votes(&self, committee: &Committee, x: ArrayView2<f64>, moderation: Moderation) -> Result<Array2<f64>> {
        let external = matches!(self.expansion.basis, FittedBasis::External { .. });
        // The model scales the rows, because its binary models were trained on standardised rows.
        let scaled = self.scaling.as_ref().filter(|_| !external).map(|scaling| scaling.apply(x));
        let x = scaled.as_ref().map_or(x, |rows| rows.view());
        let by_member: Vec<Array2<f64>> = committee
            .members
            .iter()
            .map(|member| {
                if !external {
                    return member.log_probability(x, moderation);
                }
                let place = |row: &usize| self.relevance.iter().position(|r| r == row).expect("the model lists it");
                let places: Vec<usize> = member.relevance.iter().map(place).collect();
                member.log_probability(x.select(Axis(1), &places).view(), moderation)
            })
            .collect::<Result<_>>()?;
        Ok(Array2::from_shape_fn((x.nrows(), by_member.len()), |(n, k)| by_member[k][[n, 1]]))
    }
}

/// Returns log probabilities of all classes, [N, K], from those of the second class of each binary model, [N, C].
pub(super) fn couple(rule: MultiClass, classes: usize, votes: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((votes.nrows(), classes));
    out.outer_iter_mut().into_par_iter().zip(votes.outer_iter().into_par_iter()).for_each(|(mut out, votes)| match rule {
        MultiClass::OneVsOne => out.assign(&couple_pairs(classes, |pair| votes[pair].exp()).mapv(f64::ln)),
        _ => {
            out.assign(&votes);
            normalise(out.as_slice_mut().expect("rows are contiguous"));
        }
    });
    out
}

/// Returns log sigmoid(f), without overflow and without rounding to 0.
pub(super) fn log_sigmoid(f: f64) -> f64 {
    f.min(0.0) - (-f.abs()).exp().ln_1p()
}

/// Returns probabilities of K classes, `[K]`, that best fit those of the second class of each pair. It is the second
/// method of Wu, Lin and Weng (2004): they minimise the sum of (r_lk p_k - r_kl p_l)^2, where r_kl is the probability
/// of k among k and l.
fn couple_pairs(k: usize, second: impl Fn(usize) -> f64) -> Array1<f64> {
    // Pair (i, j), i < j, has the index j (j - 1) / 2 + i. Probabilities are bounded away from 0.
    let least = 1e-14;
    let r = Array2::from_shape_fn((k, k), |(i, j)| match i.cmp(&j) {
        core::cmp::Ordering::Less => 1.0 - second(j * (j - 1) / 2 + i).clamp(least, 1.0 - least),
        core::cmp::Ordering::Equal => 0.0,
        core::cmp::Ordering::Greater => second(i * (i - 1) / 2 + j).clamp(least, 1.0 - least),
    });
    let q = Array2::from_shape_fn((k, k), |(i, j)| match i == j {
        true => (0..k).filter(|l| *l != i).map(|l| r[[l, i]] * r[[l, i]]).sum(),
        false => -r[[j, i]] * r[[i, j]],
    });
    let mut p = Array1::from_elem(k, 1.0 / k as f64);
    for _ in 0..MAX_COUPLING {
        let qp = q.dot(&p);
        let value = p.dot(&qp);
        if qp.iter().all(|v| (v - value).abs() < COUPLED / k as f64) {
            break;
        }
        for i in 0..k {
            let (own, value) = (q.row(i).dot(&p), p.dot(&q.dot(&p)));
            p[i] += (value - own) / q[[i, i]];
            let total = p.sum();
            p /= total;
        }
    }
    p
}
