//! Checks of a model, or of sums over rows, that was read from a file. A model that passes them predicts without a
//! panic and without NaN.
//!
//! Every error names the place in the JSON, the value found and the value expected. A number may be 0 where the units
//! of the target can make it underflow.

use alloc::collections::BTreeSet;
use core::fmt::Display;

use super::{
    Committee, FittedBasis, KeptRows, KeptStatistics, LabelRegression, Margins, Model, Posterior, ProcessPrior, StoredRows,
    Variance,
};
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::likelihood::Likelihood;
use crate::multi_class::MultiClass;
use crate::prelude::*;

/// The kinds of model.
const MACHINES: [&str; 2] = ["rvm", "svm"];
/// Names of the inference schemes. The crate that fits models defines them and the formulations; a test there compares
/// the lists.
pub const SCHEMES: [&str; 5] = ["search", "sequential", "mackay", "em", "variational"];
/// Formulations of support vector machines for classes.
pub const CLASSIFIERS: [&str; 2] = ["c_svc", "nu_svc"];
/// Formulations of support vector machines for real targets.
pub const REGRESSORS: [&str; 2] = ["epsilon_svr", "nu_svr"];
/// Largest number of rows, features and landmarks. No more numbers fit into memory, and the sum of two such counts does
/// not overflow.
const MOST: usize = isize::MAX as usize / size_of::<f64>();
/// Largest relative contradiction between the sums of one table. It is far above rounding, for sums over 10^9 rows too.
const ROUNDING: f64 = 1e-6;
/// Sums of squares below this may have lost digits to underflow.
const LEAST_SQUARE: f64 = 1e-290;

/// The place of an object in a file, for messages.
#[derive(Debug)]
pub struct Place {
    path: String,
    error: fn(String) -> Error,
}

impl Place {
    fn model(path: impl Into<String>) -> Place {
        Place { path: path.into(), error: Error::ModelFile }
    }

    /// Returns the place of the sums over the rows of a file.
    pub fn statistics() -> Place {
        Place { path: "statistics".into(), error: Error::Statistics }
    }

    pub(super) fn inside(&self, key: impl Display) -> Place {
        Place { path: format!("{}.{key}", self.path), error: self.error }
    }

    pub(super) fn require(&self, good: bool, key: impl Display, found: impl Display, expected: impl Display) -> Result<()> {
        match good {
            true => Ok(()),
            false => Err((self.error)(format!("{}.{key}: found {found}, expected {expected}", self.path))),
        }
    }

    /// Converts the error of a parameter, which contains its name, to an error at this place.
    fn parameter(&self, e: Error) -> Result<()> {
        match e {
            Error::Parameter { name, found, expected } => self.require(false, name, found, expected),
            other => Err((self.error)(format!("{}: {other}", self.path))),
        }
    }

    /// Checks that a list has one entry for each of the `expected` items, which are called `of`.
    pub(super) fn length(&self, key: impl Display, found: usize, expected: usize, of: &str) -> Result<()> {
        self.require(found == expected, key, format!("{found} entries"), format!("{expected}, one for each {of}"))
    }

    fn count(&self, key: &str, found: usize) -> Result<()> {
        self.require(found <= MOST, key, found, format!("at most {MOST}"))
    }

    /// Checks that numbers are finite and fulfil a condition.
    pub(super) fn numbers<'a>(
        &self,
        key: &str,
        values: impl IntoIterator<Item = &'a f64>,
        good: impl Fn(f64) -> bool,
        expected: &str,
    ) -> Result<()> {
        match values.into_iter().enumerate().find(|(_, v)| !(v.is_finite() && good(**v))) {
            Some((i, v)) => self.require(false, format!("{key}[{i}]"), v, expected),
            None => Ok(()),
        }
    }

    fn number(&self, key: &str, value: f64, good: impl Fn(f64) -> bool, expected: &str) -> Result<()> {
        self.require(value.is_finite() && good(value), key, value, expected)
    }
}

fn any(_: f64) -> bool {
    true
}

fn positive(v: f64) -> bool {
    v > 0.0
}

fn not_negative(v: f64) -> bool {
    v >= 0.0
}

const FINITE: &str = "a finite number";
const POSITIVE: &str = "a positive number";
const NOT_NEGATIVE: &str = "a number that is not negative";

impl Model {
    /// Checks everything that may be wrong in a damaged or hand-made file.
    pub(super) fn check(&self) -> Result<()> {
        self.check_at(&Place::model("model"))
    }

    fn check_at(&self, at: &Place) -> Result<()> {
        let (m, functions, d) = (self.expansion.weights.nrows(), self.outputs(), self.n_features);
        at.count("n_features", d)?;
        at.count("n_rows", self.n_rows)?;
        self.check_kind(at)?;
        at.require(functions > 0, "expansion.intercept", "an empty list", "a number for each function")?;
        let width = self.expansion.weights.ncols();
        let expected = format!("rows of {functions}, a number for each function");
        at.require(m == 0 || width == functions, "expansion.weights", format!("rows of {width}"), expected)?;
        at.numbers("expansion.weights", &self.expansion.weights, any, FINITE)?;
        at.numbers("expansion.intercept", &self.expansion.intercept, any, FINITE)?;
        at.length("relevance", self.relevance.len(), m, "weight")?;
        let precisions = if self.posterior.is_some() && self.process.is_none() { m } else { 0 };
        at.length("alpha", self.alpha.len(), precisions, "weight of a posterior without a process prior")?;
        at.numbers("alpha", &self.alpha, not_negative, NOT_NEGATIVE)?;
        at.numbers("intercept_alpha", &self.intercept_alpha, not_negative, NOT_NEGATIVE)?;
        at.numbers("log_evidence", &self.log_evidence, any, FINITE)?;
        self.check_basis_functions(at)?;
        if let Some(scaling) = &self.scaling {
            let at = at.inside("scaling");
            at.length("mean", scaling.mean.len(), d, "feature")?;
            at.length("scale", scaling.scale.len(), d, "feature")?;
            at.numbers("mean", &scaling.mean, any, FINITE)?;
            at.numbers("scale", &scaling.scale, positive, POSITIVE)?;
        }
        self.check_class_precisions(at)?;
        if let Some(posterior) = &self.posterior {
            posterior.check(&at.inside("posterior"), self)?;
        }
        if let Some(process) = &self.process {
            process.check(&at.inside("process"), self)?;
        }
        if let Some(committee) = &self.committee {
            committee.check(&at.inside("committee"), self)?;
        }
        if let Some(margins) = &self.margins {
            margins.check(&at.inside("margins"), m, functions)?;
        }
        if let Some(labels) = &self.labels {
            labels.check(&at.inside("labels"), self)?;
        }
        if let Some(kept) = &self.kept_rows {
            kept.check(&at.inside("kept_rows"), self)?;
        }
        if let Some(kept) = &self.statistics {
            self.check_statistics(&at.inside("statistics"), kept)?;
        }
        self.check_names(at)?;
        let healed = self.variance == Variance::Healed && self.kept_rows.is_none();
        at.require(!healed, "variance", "healed", "posterior, because kept_rows is missing")
    }

    /// Checks the kind of model, its parts and its likelihood.
    fn check_kind(&self, at: &Place) -> Result<()> {
        let quoted = |name: &str| format!("\"{name}\"");
        at.require(MACHINES.contains(&self.machine.as_str()), "machine", quoted(&self.machine), MACHINES.join(" or "))?;
        let parts = [
            ("posterior", self.posterior.is_some()),
            ("committee", self.committee.is_some()),
            ("margins", self.margins.is_some()),
            ("labels", self.labels.is_some()),
        ];
        let given: Vec<&str> = parts.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        let found = if given.is_empty() { "none".into() } else { given.join(" and ") };
        let svm = self.machine == "svm";
        let expected = if svm { "margins alone for a support vector machine" } else { "one of posterior, committee and labels" };
        let fits = given.len() == 1 && (given[0] == "margins") == svm;
        at.require(fits, "posterior, committee, margins, labels", found, expected)?;
        if svm {
            at.require(self.likelihood.is_none(), "likelihood", "one", "none for a support vector machine")?;
            return at.require(self.inference.is_none(), "inference", "one", "none for a support vector machine");
        }
        let scheme = self.inference.as_deref();
        let known = scheme.is_some_and(|name| SCHEMES.contains(&name));
        at.require(known, "inference", scheme.map_or("none".into(), quoted), SCHEMES.join(", "))?;
        let Some(likelihood) = &self.likelihood else {
            return at.require(false, "likelihood", "none", Likelihood::NAMES.join(", "));
        };
        likelihood.check().or_else(|e| at.parameter(e))?;
        let functions = self.outputs();
        let (several, expected) = match likelihood {
            _ if self.committee.is_some() => (likelihood.is_for_classes(), "a likelihood of classes for a committee"),
            Likelihood::Gaussian(_) => (functions == 1 || self.has_several_outputs(), "variance ratios for several outputs"),
            Likelihood::Softmax(_) => {
                (functions > 1 && !self.has_several_outputs(), "a function for each class and no variance ratios")
            }
            Likelihood::Bernoulli(_) | Likelihood::Poisson(_) | Likelihood::StudentT(_) => (functions == 1, "one function"),
        };
        at.require(several, "likelihood", format!("{} of {functions} functions", likelihood.name()), expected)
    }

    fn check_basis_functions(&self, at: &Place) -> Result<()> {
        let (m, d) = (self.relevance.len(), self.n_features);
        let at = at.inside("expansion.basis");
        let centres = match &self.expansion.basis {
            FittedBasis::Kernel { kernel, centres } => {
                check_kernel(&at.inside("kernel"), kernel, d)?;
                Some(("kernel.centres", centres))
            }
            FittedBasis::Sparse { kernel, centres } => {
                check_kernel(&at.inside("kernel"), kernel, d)?;
                kernel.check_sparse().or_else(|e| at.parameter(e))?;
                at.length("sparse.centres", centres.nrows(), m, "weight")?;
                let (found, expected) = (centres.ncols(), format!("{d}, the number of features"));
                at.require(found == d, "sparse.centres.features", found, expected)?;
                return at.numbers("sparse.centres.values", centres.values(), any, FINITE);
            }
            FittedBasis::Given {} => {
                let beyond = self.relevance.iter().enumerate().find(|(_, column)| **column >= d);
                let expected = format!("columns of a design matrix of {d}");
                let Some((i, column)) = beyond else { return Ok(()) };
                return at.require(false, "given", format!("relevance[{i}] = {column}"), expected);
            }
            FittedBasis::External { centres } => centres.as_ref().map(|centres| ("external.centres", centres)),
        };
        let Some((key, centres)) = centres else { return Ok(()) };
        at.length(key, centres.nrows(), m, "weight")?;
        let found = format!("rows of {}", centres.ncols());
        at.require(m == 0 || centres.ncols() == d, key, found, format!("rows of {d}, one number for each feature"))?;
        at.numbers(key, centres, any, FINITE)
    }

    /// Checks the names of features and targets, and the classes.
    fn check_names(&self, at: &Place) -> Result<()> {
        let (d, functions) = (self.n_features, self.outputs());
        if !self.features.is_empty() {
            at.length("features", self.features.len(), d, "feature")?;
        }
        if let Some(encoding) = &self.encoding {
            at.length("encoding.columns", encoding.width(), d, "feature")?;
            encoding.check(&at.inside("encoding"), &self.features)?;
        }
        if !self.feature_relevance.is_empty() {
            at.length("feature_relevance", self.feature_relevance.len(), d, "feature")?;
            at.numbers("feature_relevance", &self.feature_relevance, not_negative, NOT_NEGATIVE)?;
        }
        if !self.targets.is_empty() {
            at.length("targets", self.targets.len(), functions, "output")?;
        }
        let classes = self.n_classes();
        if !self.classes.is_empty() {
            at.length("classes", self.classes.len(), classes.unwrap_or(0), "class")?;
            let distinct: BTreeSet<String> = self.classes.iter().map(|label| format!("{label:?}")).collect();
            at.length("classes", distinct.len(), self.classes.len(), "class, and no label twice")?;
        }
        if !self.class_frequencies.is_empty() {
            let key = "class_frequencies";
            at.length(key, self.class_frequencies.len(), classes.unwrap_or(0), "class")?;
            at.numbers(key, &self.class_frequencies, positive, POSITIVE)?;
            let sum = self.class_frequencies.iter().sum::<f64>();
            let found = format!("class frequencies that sum to {sum}");
            at.require(super::decisions::sums_to_one(&self.class_frequencies), key, found, "a sum of 1 (within 1e-9)")?;
        }
        Ok(())
    }

    fn check_class_precisions(&self, at: &Place) -> Result<()> {
        let rows = &self.class_alpha;
        let Some(posterior) = self.posterior.as_ref().filter(|_| !rows.is_empty()) else {
            return at.require(
                rows.is_empty(),
                "class_alpha",
                format!("{} entries", rows.len()),
                "no entries without a posterior",
            );
        };
        let classes = self.outputs();
        let joint = matches!(self.likelihood, Some(Likelihood::Softmax(_)));
        at.require(joint, "class_alpha", "precisions of classes", "no entries unless the likelihood is softmax")?;
        at.length("class_alpha", rows.len(), posterior.scale.len(), "weight of the posterior")?;
        for (i, row) in rows.iter().enumerate() {
            at.length(format!("class_alpha[{i}]"), row.len(), classes, "class")?;
            at.numbers(&format!("class_alpha[{i}]"), row.iter().flatten(), positive, POSITIVE)?;
        }
        Ok(())
    }

    fn check_statistics(&self, at: &Place, kept: &KeptStatistics) -> Result<()> {
        let FittedBasis::Kernel { kernel, .. } = &self.expansion.basis else {
            return at.require(false, "centres", "statistics of a model without a kernel", "no statistics");
        };
        kept.check(at, kernel)?;
        let found = kept.centres.ncols();
        at.require(found == self.n_features, "centres", format!("rows of {found}"), format!("rows of {}", self.n_features))?;
        at.length("landmarks", kept.landmarks.len(), kept.centres.nrows(), "landmark")?;
        let landmarks: BTreeSet<usize> = kept.landmarks.iter().copied().collect();
        match self.relevance.iter().find(|row| !landmarks.contains(row)) {
            Some(row) => at.require(false, "landmarks", format!("no {row}"), "all relevance vectors of the model"),
            None => Ok(()),
        }
    }
}

/// Checks that every parameter of the kernel is a number. A kernel that resolving would change or refuse cannot come
/// from a fit.
fn check_kernel(at: &Place, kernel: &Kernel, features: usize) -> Result<()> {
    match kernel.resolve(&DataScale { features, variance: 1.0 }) {
        Ok(resolved) => {
            let key = format!("kernel.{}.gamma", kernel.name());
            at.require(resolved == *kernel, key, "a rule", format!("a number, or one for each of {features} features"))
        }
        Err(e) => at.parameter(e),
    }
}

impl Posterior {
    fn check(&self, at: &Place, model: &Model) -> Result<()> {
        let functions = model.outputs();
        let active = model.relevance.len() + usize::from(model.intercept_alpha.is_some());
        if !self.variance_ratios.is_empty() {
            at.require(functions > 1, "variance_ratios", "ratios", "no entries for one output")?;
            at.length("variance_ratios", self.variance_ratios.len(), functions, "output")?;
        }
        at.numbers("variance_ratios", &self.variance_ratios, positive, POSITIVE)?;
        at.numbers("variance_factor", &self.variance_factor, positive, POSITIVE)?;
        at.numbers("noise_variance", &self.noise_variance, not_negative, NOT_NEGATIVE)?;
        at.numbers("noise_degrees", &self.noise_degrees, positive, POSITIVE)?;
        let noisy = matches!(model.likelihood, Some(Likelihood::Gaussian(_) | Likelihood::StudentT(_)));
        let found = if self.noise_variance.is_some() { "a number" } else { "null" };
        let expected = if noisy { "a number for this likelihood" } else { "null for this likelihood" };
        at.require(self.noise_variance.is_some() == noisy, "noise_variance", found, expected)?;
        at.length("scale", self.scale.len(), active, "weight, the bias included")?;
        at.numbers("scale", &self.scale, not_negative, NOT_NEGATIVE)?;
        // K classes have K - 1 contrasts; several outputs share one factor.
        let contrasts = if self.variance_ratios.is_empty() { (functions - 1).max(1) } else { 1 };
        let own = model.class_alpha.iter().flatten().flatten().count();
        let weights = if model.class_alpha.is_empty() { active * contrasts } else { own };
        check_triangle(at, &self.factor, weights, "weight of the posterior")
    }
}

impl ProcessPrior {
    fn check(&self, at: &Place, model: &Model) -> Result<()> {
        let m = model.relevance.len();
        let real = !model.likelihood.as_ref().is_none_or(Likelihood::is_for_classes);
        let expected = "no process prior unless there is a posterior for real targets or counts";
        at.require(real && model.posterior.is_some(), "amplitude", "a process prior", expected)?;
        let covariance = model.kernel().is_some_and(Kernel::is_covariance);
        at.require(covariance, "amplitude", "a process prior", "no process prior unless the kernel is positive semidefinite")?;
        let keeps = model.kept_rows.is_some() || model.statistics.is_some();
        at.require(!keeps, "amplitude", "a process prior with kept rows or statistics", "no such rows or statistics")?;
        let bias = model.intercept_alpha.unwrap_or(0.0);
        at.require(
            bias == 0.0,
            "amplitude",
            format!("a process prior and intercept_alpha {bias}"),
            "intercept_alpha 0, a flat prior",
        )?;
        at.number("amplitude", self.amplitude, not_negative, NOT_NEGATIVE)?;
        at.number("residual", self.residual, not_negative, NOT_NEGATIVE)?;
        let some = m == 0 || self.amplitude > 0.0;
        at.require(some, "amplitude", self.amplitude, "a positive number if there are centres")?;
        check_triangle(at, &self.factor, m, "centre")?;
        let centres: BTreeSet<usize> = model.relevance.iter().copied().collect();
        let ascending = self.searched.windows(2).all(|pair| pair[0] < pair[1]);
        at.require(ascending, "searched", "rows out of order", "ascending rows")?;
        match self.searched.iter().find(|row| !centres.contains(row)) {
            Some(row) => at.require(false, "searched", row, "relevance vectors of the model only"),
            None => Ok(()),
        }
    }
}

impl LabelRegression {
    fn check(&self, at: &Place, model: &Model) -> Result<()> {
        let classifies = model.likelihood.as_ref().is_some_and(Likelihood::is_for_classes);
        at.require(classifies, "ratio", "regression on labels", "no such regression unless the model is a classifier")?;
        let covariance = model.kernel().is_some_and(Kernel::is_covariance);
        at.require(covariance, "ratio", "regression on labels", "no such regression unless the kernel is positive semidefinite")?;
        at.number("ratio", self.ratio, not_negative, NOT_NEGATIVE)?;
        let some = model.relevance.is_empty() || self.ratio > 0.0;
        at.require(some, "ratio", self.ratio, "a positive number if there are centres")?;
        at.number("divergence", self.divergence, not_negative, NOT_NEGATIVE)
    }
}

/// Checks a lower triangle of `size` rows with a positive diagonal; `of` says what has one row each.
fn check_triangle(at: &Place, factor: &[Vec<f64>], size: usize, of: &str) -> Result<()> {
    at.length("factor", factor.len(), size, of)?;
    for (i, row) in factor.iter().enumerate() {
        at.length(format!("factor[{i}]"), row.len(), i + 1, "column of a lower triangle")?;
        at.numbers(&format!("factor[{i}]"), row, any, FINITE)?;
        at.require(row[i] > 0.0, format!("factor[{i}][{i}]"), row[i], "a positive diagonal")?;
    }
    Ok(())
}

impl Committee {
    fn check(&self, at: &Place, model: &Model) -> Result<()> {
        let (members, classes) = (self.members.len(), self.classes());
        at.length("members", members, model.outputs(), "function")?;
        let pairs = matches!(self.rule, MultiClass::OneVsOne);
        let known = pairs || matches!(self.rule, MultiClass::OneVsRest);
        at.require(known, "rule", self.rule.name(), "one_vs_rest or one_vs_one")?;
        let fits = classes > 1 && (!pairs || members == classes * (classes - 1) / 2);
        at.require(fits, "members", format!("{members} entries"), "one for each class, or for each pair of classes")?;
        let listed: BTreeSet<usize> = model.relevance.iter().copied().collect();
        for (i, member) in self.members.iter().enumerate() {
            let at = at.inside(format!("members[{i}]"));
            let two = member.committee.is_none() && member.posterior.is_some() && member.outputs() == 1;
            let two = two && matches!(member.likelihood, Some(Likelihood::Bernoulli(_) | Likelihood::Softmax(_)));
            at.require(two, "posterior", "no classifier of two classes", "a classifier of two classes in a committee")?;
            let expected = format!("{}, as the model has", model.n_features);
            at.require(member.n_features == model.n_features, "n_features", member.n_features, expected)?;
            at.require(
                member.scaling.is_none(),
                "scaling",
                "a scaling",
                "none: the scaling of the model applies to all members",
            )?;
            let same = core::mem::discriminant(&member.expansion.basis) == core::mem::discriminant(&model.expansion.basis);
            let same = same && member.kernel() == model.kernel();
            at.require(same, "expansion.basis", "another kernel", "the kernel of the model")?;
            if let Some(row) = member.relevance.iter().find(|row| !listed.contains(row)) {
                at.require(false, "relevance", row, "relevance vectors that the model lists")?;
            }
            member.check_at(&at)?;
        }
        Ok(())
    }
}

impl Margins {
    /// Checks the margins of a model with this number of support vectors and functions.
    fn check(&self, at: &Place, vectors: usize, functions: usize) -> Result<()> {
        let known = if self.classes.is_some() { CLASSIFIERS } else { REGRESSORS };
        let classes = if self.classes.is_some() { "classes" } else { "regression" };
        let expected = format!("{} for {classes}", known.join(" or "));
        at.require(known.contains(&self.formulation.as_str()), "formulation", format!("\"{}\"", self.formulation), expected)?;
        let of = match (self.classes, self.multi_class) {
            (None | Some(2), None) => Some(1),
            (Some(k), Some(MultiClass::OneVsOne)) if k > 2 => k.checked_mul(k - 1).map(|pairs| pairs / 2),
            (Some(k), Some(MultiClass::OneVsRest)) if k > 2 => Some(k),
            _ => None,
        };
        let found = self.classes.map_or("none".into(), |k| k.to_string());
        let rule = self.multi_class.map_or("no rule for several classes", MultiClass::name);
        let expected = format!("a number of classes that fits {rule} and the number of functions, {functions}");
        at.require(of == Some(functions), "classes", found, expected)?;
        at.length("objective", self.objective.len(), functions, "function")?;
        at.numbers("objective", &self.objective, any, FINITE)?;
        if !self.sigmoids.is_empty() {
            at.length("sigmoids", self.sigmoids.len(), functions, "function")?;
        }
        at.numbers("sigmoids", self.sigmoids.iter().flatten(), any, FINITE)?;
        at.length(
            "vector_classes",
            self.vector_classes.len(),
            self.classes.map_or(0, |_| vectors),
            "support vector of a classifier",
        )?;
        let classes = self.classes.unwrap_or(0);
        if let Some((i, class)) = self.vector_classes.iter().enumerate().find(|(_, class)| **class >= classes) {
            at.require(false, format!("vector_classes[{i}]"), class, format!("a class of the model, 0 to {}", classes - 1))?;
        }
        at.require(self.bounded <= vectors, "bounded", self.bounded, format!("at most {vectors}, the number of support vectors"))
    }
}

impl KeptRows {
    fn check(&self, at: &Place, model: &Model) -> Result<()> {
        let (n, d) = (self.rows.nrows(), model.n_features);
        let noisy = model.kernel().is_some() && model.noise_variance().is_some();
        at.require(noisy, "rows", "rows of a model without kernel or noise", "no kept rows")?;
        at.require(n > 0, "rows", "none", "at least one row")?;
        at.require(self.rows.ncols() == d, "rows", format!("rows of {}", self.rows.ncols()), format!("rows of {d}"))?;
        match &self.rows {
            StoredRows::Dense(rows) => at.numbers("rows", rows, any, FINITE)?,
            StoredRows::Sparse(rows) => {
                let sparse = matches!(model.expansion.basis, FittedBasis::Sparse { .. }) && model.scaling.is_none();
                let expected = "a list of rows unless the centres are sparse, without standardisation";
                at.require(sparse, "rows", "sparse rows", expected)?;
                at.numbers("rows.values", rows.values(), any, FINITE)?;
            }
        }
        at.length("residuals", self.residuals.len(), n, "row")?;
        at.numbers("residuals", &self.residuals, any, FINITE)?;
        at.length("weights", self.weights.len(), n, "row")?;
        at.numbers("weights", &self.weights, positive, POSITIVE)?;
        at.number("prior_variance", self.prior_variance, not_negative, NOT_NEGATIVE)?;
        let outputs = if model.has_several_outputs() { model.outputs() } else { 1 };
        at.length("further", self.further.len(), outputs - 1, "output after the first")?;
        for (k, output) in self.further.iter().enumerate() {
            let at = at.inside(format!("further[{k}]"));
            at.length("residuals", output.residuals.len(), n, "row")?;
            at.numbers("residuals", &output.residuals, any, FINITE)?;
            at.number("prior_variance", output.prior_variance, not_negative, NOT_NEGATIVE)?;
        }
        Ok(())
    }
}

impl KeptStatistics {
    /// Checks that these are possible sums over rows. The numbers of the landmarks are not checked.
    #[doc(hidden)]
    pub fn check(&self, at: &Place, kernel: &Kernel) -> Result<()> {
        let (l, d) = self.centres.dim();
        at.require(l > 0 && d > 0, "centres", format!("{l} rows of {d}"), "at least one, of at least one feature")?;
        at.count("n_rows", self.n_rows)?;
        at.numbers("centres", &self.centres, any, FINITE)?;
        check_kernel(at, kernel, d)?;
        at.length("f", self.f.len(), l + 1, "landmark and for the column of ones")?;
        at.numbers("f", &self.f, any, FINITE)?;
        at.length("gram", self.gram.len(), l + 1, "landmark and for the column of ones")?;
        for (i, row) in self.gram.iter().enumerate() {
            at.length(format!("gram[{i}]"), row.len(), i + 1, "column of a lower triangle")?;
            at.numbers(&format!("gram[{i}]"), row, any, FINITE)?;
            at.require(row[i] >= 0.0, format!("gram[{i}][{i}]"), row[i], "a sum of squares, not negative")?;
        }
        at.number("about", self.about, any, FINITE)?;
        at.number("tt", self.tt, any, FINITE)?;
        at.number("weight", self.weight, not_negative, NOT_NEGATIVE)?;
        if let Some(noise) = &self.noise {
            let at = at.inside("noise");
            at.number("count", noise.count, positive, POSITIVE)?;
            at.number("log_precision", noise.log_precision, any, FINITE)?;
            at.number("largest", noise.largest, positive, POSITIVE)?;
        }
        let some = self.n_rows > 0;
        let (found, expected) = (format!("{} rows", self.n_rows), "a range of targets if and only if there are rows");
        at.require(self.range.is_some() == some, "range", found, expected)?;
        if let Some((least, largest)) = self.range {
            let found = format!("[{least}, {largest}]");
            at.require(least <= largest && largest - least < f64::INFINITY, "range", found, "the least and the largest target")?;
        }
        at.require((self.weight > 0.0) == some, "weight", self.weight, "a positive number if and only if there are rows")?;
        self.check_agreement(at)
    }

    /// Checks the sums against each other. No product of two columns exceeds the product of their norms, and the column
    /// of ones sums to the weight. Targets may have been shifted by at most their range.
    fn check_agreement(&self, at: &Place) -> Result<()> {
        let root = |square: f64| square.max(LEAST_SQUARE).sqrt() * (1.0 + ROUNDING);
        let norms: Vec<f64> = self.gram.iter().enumerate().map(|(i, row)| root(row[i])).collect();
        let shift = self.range.map_or(0.0, |(least, largest)| ROUNDING * self.weight.sqrt() * (largest - least));
        at.require(self.tt >= -shift * shift, "tt", self.tt, "a sum of squares, not negative")?;
        let (of_targets, expected) = (root(self.tt) + shift, "at most the product of the norms of the two columns");
        for (i, row) in self.gram.iter().enumerate() {
            if let Some((j, v)) = row.iter().enumerate().find(|(j, v)| v.abs() > norms[i] * norms[*j]) {
                return at.require(false, format!("gram[{i}][{j}]"), v, expected);
            }
            let expected = "at most the product of the norms of the column and of the targets";
            at.require(self.f[i].abs() <= norms[i] * of_targets, format!("f[{i}]"), self.f[i], expected)?;
        }
        let (ones, weight) = (self.gram[0][0], self.weight);
        at.require((ones - weight).abs() <= ROUNDING * weight, "gram[0][0]", ones, format!("the weight of all rows, {weight}"))
    }
}
