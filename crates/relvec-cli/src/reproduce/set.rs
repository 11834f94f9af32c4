//! Training and test rows, models for them, and a choice among models by cross-validation.

use std::path::Path;
use std::ptr;

use anyhow::{Result, anyhow};
use ndarray::{Array1, Array2, ArrayView1, Axis, concatenate};
use relvec::{
    Bernoulli, CSvc, EpsilonSvr, Gamma, GammaRule, Inference, Kernel, Model, MultiClass, Rbf, Rvm, Scaling, Svm, Targets,
    Variational,
};

use super::work::side_by_side;
use crate::args::ReadArgs;
use crate::text::significant;
use crate::training::{Roles, TrainingRows};
use crate::tuning::{self, Fold};

/// Folds of a cross-validation, as in the papers.
const FOLDS: usize = 5;

/// Description of what [`vectors`] counts.
pub(super) const COUNTED: &str = "for a variational fit, the weights that the data determine (gamma > 1/2)";

/// Rows with their targets.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// [N, D].
    pub x: Array2<f64>,
    /// Values, or numbers of classes, `[N]`.
    pub t: Array1<f64>,
    /// Number of classes; 0 for values.
    pub classes: usize,
}

impl Set {
    pub fn values(x: Array2<f64>, t: Array1<f64>) -> Set {
        Set { x, t, classes: 0 }
    }

    pub fn classes(x: Array2<f64>, labels: &[usize]) -> Set {
        let t: Array1<f64> = labels.iter().map(|l| *l as f64).collect();
        let classes = labels.iter().max().map_or(0, |l| l + 1);
        Set { x, t, classes }
    }

    /// Reads the table `file`, whose column `target` is the target.
    pub fn read(folder: &Path, file: &str, classes: usize) -> Result<Set> {
        let reading = ReadArgs::default();
        let roles = Roles::of_target("target", &reading);
        let table = TrainingRows::open(&folder.join(file), roles)?.collect(Rvm::default().memory_allowed(), false)?;
        Ok(Set { x: table.x, t: table.target.numbers().collect(), classes })
    }

    pub fn rows(&self, rows: &[usize]) -> Set {
        Set { x: self.x.select(Axis(0), rows), t: self.t.select(Axis(0), rows), classes: self.classes }
    }

    pub fn labels(&self) -> Vec<usize> {
        self.t.iter().map(|t| *t as usize).collect()
    }

    /// Returns the rows of several sets in one set.
    fn joined(sets: &[Set]) -> Result<Set> {
        let x: Vec<_> = sets.iter().map(|s| s.x.view()).collect();
        let t: Vec<_> = sets.iter().map(|s| s.t.view()).collect();
        Ok(Set { x: concatenate(Axis(0), &x)?, t: concatenate(Axis(0), &t)?, classes: sets[0].classes })
    }
}

/// A model to be trained, and whether its features are standardised.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub kind: Kind,
    pub standardise: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Rvm(Box<Rvm>),
    Svm(Box<Svm>),
}

impl Machine {
    /// Returns a relevance vector machine on one thread, since repeats run in parallel.
    pub fn rvm(kernel: Kernel, classes: usize) -> Machine {
        let likelihood = if classes == 0 { Rvm::default().likelihood } else { Bernoulli::default().into() };
        let rvm = Rvm { kernel, likelihood, threads: Some(1), ..Rvm::tipping2001() };
        Machine { kind: Kind::Rvm(Box::new(rvm)), standardise: true }
    }

    /// Returns a support vector machine. In regression, cost and tube of `setting` are multiplied by the standard
    /// deviation of the targets.
    pub fn svm(setting: &Setting, set: &Set) -> Machine {
        let spread = set.t.std(0.0);
        let formulation = match set.classes {
            0 => EpsilonSvr { c: setting.c * spread, epsilon: setting.epsilon * spread }.into(),
            _ => CSvc { c: setting.c }.into(),
        };
        let svm = Svm { kernel: rbf(setting.gamma), formulation, threads: Some(1), ..Svm::default() };
        Machine { kind: Kind::Svm(Box::new(svm)), standardise: true }
    }

    /// Returns this model without standardisation of features.
    pub fn unscaled(self) -> Machine {
        Machine { standardise: false, ..self }
    }

    /// Returns this model with variational inference. With `prune` it prunes weights without use at the end.
    pub fn variational(mut self, prune: bool, tolerance: f64) -> Machine {
        if let Kind::Rvm(rvm) = &mut self.kind {
            rvm.inference = Inference::Variational(Variational { prune, tolerance, ..Variational::default() });
        }
        self
    }

    pub fn one_vs_rest(mut self) -> Machine {
        match &mut self.kind {
            Kind::Rvm(rvm) => rvm.multi_class = MultiClass::OneVsRest,
            Kind::Svm(svm) => svm.multi_class = MultiClass::OneVsRest,
        }
        self
    }

    pub fn fit(&self, set: &Set) -> Result<Model> {
        let scaling = self.standardise.then(|| Scaling::of(set.x.view(), None));
        let scaled = scaling.as_ref().map(|s| s.apply(set.x.view()));
        let x = scaled.as_ref().unwrap_or(&set.x).view();
        let labels = set.labels_of_classes();
        let targets = match &labels {
            Some(labels) => Targets::classes(labels, set.classes),
            None => Targets::real(set.t.view()),
        };
        let mut model = match &self.kind {
            Kind::Rvm(rvm) => rvm.fit(x, &targets)?.0,
            Kind::Svm(svm) => svm.fit(x, &targets)?.0,
        };
        model.scaling = scaling;
        Ok(model)
    }
}

impl Set {
    fn labels_of_classes(&self) -> Option<Vec<usize>> {
        (self.classes > 0).then(|| self.labels())
    }
}

/// Returns the sum of squared errors, or the number of misclassified rows.
pub(super) fn loss(model: &Model, set: &Set) -> Result<f64> {
    if set.classes == 0 {
        return Ok(squares(model, set, set.t.view())?);
    }
    let found = model.predict_class(set.x.view())?;
    Ok(found.iter().zip(&set.t).filter(|(f, t)| **f as f64 != **t).count() as f64)
}

/// Returns the sum of squared differences between predictions and `t`, `[N]`.
pub(super) fn squares(model: &Model, set: &Set, t: ArrayView1<f64>) -> relvec::Result<f64> {
    Ok((model.predict_mean(set.x.view())? - t).mapv(|e| e * e).sum())
}

/// Returns the vectors of a model. A variational fit keeps all candidates; only those whose weights the data determine
/// count (gamma > 1/2).
pub(super) fn vectors(model: &Model) -> Vec<usize> {
    if model.inference.as_deref() != Some(Variational::NAME) {
        return model.relevance.clone();
    }
    model.relevance.iter().zip(model.well_determined()).filter(|(_, gamma)| *gamma > 0.5).map(|(row, _)| *row).collect()
}

pub(super) fn rbf(gamma: impl Into<Gamma>) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

/// Settings that cross-validation chooses for a support vector machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub gamma: f64,
    pub c: f64,
    /// Half width of the tube, for regression.
    pub epsilon: f64,
}

impl Setting {
    pub fn grid(gamma: &[f64], c: &[f64], epsilon: &[f64]) -> Vec<Setting> {
        let mut all = Vec::new();
        for &gamma in gamma {
            for &c in c {
                all.extend(epsilon.iter().map(|&epsilon| Setting { gamma, c, epsilon }));
            }
        }
        all
    }

    pub fn in_words(&self, set: &Set) -> String {
        let (gamma, c) = (significant(self.gamma, 3), significant(self.c, 3));
        match set.classes {
            0 => format!("gamma {gamma}, C {c} sd(t), epsilon {} sd(t)", significant(self.epsilon, 3)),
            _ => format!("gamma {gamma}, C {c}"),
        }
    }
}

/// Returns the widths to choose among, and the rule that learns one by the evidence.
pub(super) fn widths(values: &[f64]) -> Vec<Gamma> {
    values.iter().map(|v| Gamma::from(*v)).chain([Gamma::Rule(GammaRule::Evidence)]).collect()
}

pub(super) fn width_in_words(gamma: &Gamma) -> String {
    match gamma {
        Gamma::Value(v) => format!("gamma {}", significant(*v, 3)),
        Gamma::Rule(rule) => format!("gamma by the rule {}", rule.name()),
        Gamma::PerFeature(_) => "gamma for each input".into(),
    }
}

/// Returns the candidate with the least loss, summed over 5-fold cross-validations of the training sets.
pub(super) fn choose<C: Sync + Clone>(
    sets: &[Set],
    candidates: &[C],
    seed: u64,
    threads: usize,
    machine: impl Fn(&C, &Set) -> Machine + Sync,
) -> Result<C> {
    let all = Set::joined(sets)?;
    let mut folds: Vec<Fold> = Vec::new();
    let mut first = 0;
    for set in sets {
        let shift = |rows: Vec<usize>| rows.into_iter().map(|row| row + first).collect();
        let labels = set.labels_of_classes();
        let own = tuning::folds(set.t.len(), labels.as_deref(), FOLDS, seed);
        folds.extend(own.into_iter().map(|fold| Fold { train: shift(fold.train), test: shift(fold.test) }));
        first += set.t.len();
    }
    // All fits run in parallel first. The choice only looks up their losses.
    let losses: Vec<Result<f64>> = side_by_side(threads, candidates.len() * folds.len(), |k| {
        let (candidate, fold) = (&candidates[k / folds.len()], &folds[k % folds.len()]);
        let train = all.rows(&fold.train);
        loss(&machine(candidate, &train).fit(&train)?, &all.rows(&fold.test))
    });
    let places: Vec<usize> = (0..candidates.len()).collect();
    let (best, _) = tuning::choose(&places, &folds, |place, fold| {
        let f = folds.iter().position(|other| ptr::eq(other, fold)).unwrap_or(0);
        losses[place * folds.len() + f].as_ref().copied().map_err(|e| anyhow!("{e:#}"))
    })?;
    Ok(candidates[best].clone())
}
