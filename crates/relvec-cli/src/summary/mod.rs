//! Summary of a model for `inspect` and the end of `fit`, as JSON and as text.

mod text;

use ndarray::{Array1, Axis};
use relvec::{
    Encoding, FORMAT_VERSION, Factor, FittedBasis, Gamma, InUse, Kernel, Label, Likelihood, Model, PosteriorRule, Validation,
    Variance, Variational,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::Task;

/// Significant digits of numbers in a sum of kernels, which may be years.
const KERNEL_DIGITS: usize = 4;

pub(crate) use text::Seen;

/// The JSON object of `inspect --json` and `fit --json`, with its keys in the order of the fields.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    format_version: u64,
    machine: &'a str,
    task: &'static str,
    /// `null` for a support vector machine, like all values that belong to a posterior of the weights.
    likelihood: Option<&'static str>,
    inference: Option<&'a str>,
    /// Only for a support vector machine: its formulation, and the number of support vectors inside the margin or
    /// beyond it.
    #[serde(skip_serializing_if = "Option::is_none")]
    formulation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_bounded: Option<usize>,
    /// `null` for a given design matrix.
    kernel: Option<KernelSummary>,
    features: &'a [String],
    /// Only if columns of the table are encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'a Encoding>,
    /// Number of features, also for a model without names.
    #[serde(skip)]
    n_features: usize,
    /// Only for several outputs: their names, and the standard deviations of their noise.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    targets: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    noise_stds: Vec<f64>,
    classes: Vec<String>,
    /// How more than two classes are modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    multi_class: Option<&'static str>,
    /// Only if it is not Laplace's approximation.
    #[serde(skip_serializing_if = "Option::is_none")]
    posterior: Option<&'static str>,
    n_rows: usize,
    n_vectors: usize,
    /// Only if each class has its own precisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    class_weights: Option<ClassWeights>,
    /// Rows of the training table, counted from 0.
    relevance: &'a [usize],
    /// Only if centres were learned: `relevance` then contains indices of the moved centres.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    learned_centres: bool,
    /// Share of each feature in the changes of the kernel; only with one gamma per feature.
    #[serde(skip_serializing_if = "<[f64]>::is_empty")]
    feature_relevance: &'a [f64],
    /// Only for a sum with long lists of gamma.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    widths: Vec<Widths>,
    log_evidence: Option<f64>,
    /// Only if weights without use remain in the model, so that the evidence is a lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_use: Option<InUse>,
    /// Noise standard deviation; for Student-t noise its scale; 0 for known noise variances; `null` for classification
    /// and counts.
    noise_std: Option<f64>,
    /// Degrees of freedom of Student-t noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_degrees: Option<f64>,
    status: &'static str,
    iterations: usize,
    /// The binary models of a multiclass model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberSummary>,
    /// True if the fit found signs that the model interpolates its training rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interpolates: bool,
    /// The process prior of the weights, if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessSummary>,
    /// True if classes are learned by regression on labels. `log_evidence` is then the log probability of left-out
    /// rows.
    #[serde(skip)]
    label_regression: bool,
    /// The variance of predictions if it is not that of the posterior, and the number of rows kept for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_rows: Option<usize>,
    /// Number of landmarks at which the model keeps sums over the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_statistics: Option<usize>,
    /// Factor of the variances, if calibration found one.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_factor: Option<f64>,
    /// Only from `fit`, since a model file contains neither times nor scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<&'a Validation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct MemberSummary {
    n_vectors: usize,
    log_evidence: Option<f64>,
    status: &'static str,
    iterations: usize,
}

#[derive(Debug, Serialize)]
struct ProcessSummary {
    /// Prior variance in squared units of the (first) target.
    amplitude: f64,
    /// Number of centres that the search selected; the others were added to span the process.
    searched: usize,
    /// Mean residual variance of the prior, divided by the noise variance.
    residual: f64,
}

#[derive(Debug, Serialize)]
struct KernelSummary {
    name: &'static str,
    parameters: Value,
    /// Sums and periodic kernels as text with names of features.
    #[serde(skip)]
    text: Option<String>,
}

/// Gamma of each feature of a factor of a sum: a title, and for each feature its name, gamma, and the share of the
/// feature in the changes of the factor between the centres. The most relevant feature comes first.
pub type Widths = (String, Vec<(String, f64, f64)>);

/// Returns the widths of the factors of a sum whose lists of gamma are too long for its text. Each is a title with, for
/// each feature, its name, gamma, and its share in the changes of the factor between the centres.
pub fn widths(model: &Model) -> Vec<Widths> {
    let FittedBasis::Kernel { kernel: Kernel::Sum(sum), centres } = &model.expansion.basis else { return vec![] };
    // Without centres all shares are equal.
    let spread = if centres.nrows() > 1 { centres.var_axis(Axis(0), 0.0) } else { Array1::ones(centres.ncols()) };
    let of_factor = |(t, factor): (usize, &Factor)| {
        let gamma = match factor.kernel.gamma() {
            Some(Gamma::PerFeature(gamma)) if gamma.len() > Kernel::NUMBERS_SHOWN => gamma,
            _ => return None,
        };
        let columns: Vec<usize> = factor.columns.clone().unwrap_or_else(|| (0..model.n_features).collect());
        let name = |d: usize| model.features.get(d).map_or_else(|| d.to_string(), Clone::clone);
        let changes: Vec<f64> = columns.iter().zip(gamma).map(|(d, gamma)| gamma * spread[*d]).collect();
        let total = changes.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let each = columns.iter().zip(gamma).zip(&changes).map(|((d, gamma), change)| (name(*d), *gamma, change / total));
        let mut features: Vec<_> = each.collect();
        features.sort_by(|a, b| b.2.total_cmp(&a.2));
        let of_term = if sum.terms.len() > 1 { format!(", term {}", t + 1) } else { String::new() };
        Some((format!("gamma{of_term}"), features))
    };
    let all = sum.terms.iter().enumerate().flat_map(|(t, term)| term.factors.iter().map(move |factor| (t, factor)));
    all.filter_map(of_factor).collect()
}

/// Returns the task of a model.
pub(crate) fn task(model: &Model) -> Task {
    if model.n_classes().is_none() { Task::Regress } else { Task::Classify }
}

/// Numbers of class weights, including the intercepts.
#[derive(Debug, Clone, Copy, Serialize)]
struct ClassWeights {
    present: usize,
    /// Weights that could be present.
    all: usize,
}

impl<'a> Summary<'a> {
    pub fn of(model: &'a Model, seconds: Option<f64>, validation: Option<&'a Validation>) -> Summary<'a> {
        let several = model.has_several_outputs();
        Summary {
            format_version: FORMAT_VERSION,
            machine: &model.machine,
            task: task(model).name(),
            likelihood: model.likelihood.as_ref().map(Likelihood::name),
            inference: model.inference.as_deref(),
            formulation: model.margins.as_ref().map(|m| m.formulation.as_str()),
            n_bounded: model.margins.as_ref().map(|m| m.bounded),
            kernel: match &model.expansion.basis {
                FittedBasis::Kernel { kernel, .. } | FittedBasis::Sparse { kernel, .. } => Some(KernelSummary {
                    name: kernel.name(),
                    // In JSON a kernel is {name: {parameter: value}}.
                    parameters: serde_json::to_value(kernel).map_or(Value::Null, |mut v| v[kernel.name()].take()),
                    text: kernel.as_sum().map(|_| kernel.to_text(Some(KERNEL_DIGITS), &model.features)),
                }),
                FittedBasis::External { .. } => {
                    let parameters = Value::Object(Map::new());
                    Some(KernelSummary { name: "external", parameters, text: None })
                }
                FittedBasis::Given {} => None,
            },
            features: &model.features,
            encoding: model.encoding.as_ref(),
            n_features: model.n_features,
            targets: &model.targets,
            noise_stds: if several { model.output_noise_variances().iter().map(|v| v.sqrt()).collect() } else { vec![] },
            classes: model.classes.iter().map(Label::to_string).collect(),
            multi_class: model.multi_class().map(|rule| rule.name()),
            posterior: Some(model.posterior_rule()).filter(|rule| *rule != PosteriorRule::Laplace).map(PosteriorRule::name),
            n_rows: model.n_rows,
            n_vectors: model.relevance.len(),
            class_weights: (!model.class_alpha.is_empty()).then(|| {
                let all = model.class_alpha.iter().flatten();
                ClassWeights { present: all.clone().flatten().count(), all: all.count() }
            }),
            relevance: &model.relevance,
            learned_centres: model.learned_centres,
            feature_relevance: &model.feature_relevance,
            widths: widths(model),
            log_evidence: model.log_evidence,
            label_regression: model.labels.is_some(),
            in_use: (model.inference.as_deref() == Some(Variational::NAME)).then(|| model.in_use()),
            noise_std: if several { None } else { model.noise_std() },
            noise_degrees: model.noise_degrees().filter(|_| matches!(model.likelihood, Some(Likelihood::StudentT(_)))),
            status: model.status.name(),
            iterations: model.iterations,
            members: model.committee.iter().flat_map(|c| &c.members).map(MemberSummary::of).collect(),
            interpolates: model.interpolates,
            process: model.process.as_ref().map(|process| ProcessSummary {
                amplitude: process.amplitude,
                searched: process.searched.len(),
                residual: process.residual,
            }),
            variance: (model.variance != Variance::default()).then(|| model.variance.name()),
            kept_rows: model.kept_rows.as_ref().map(|kept| kept.rows.nrows()),
            kept_statistics: model.statistics.as_ref().map(|kept| kept.landmarks.len()),
            variance_factor: model.posterior.as_ref().and_then(|p| p.variance_factor),
            validation,
            seconds,
        }
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl MemberSummary {
    fn of(member: &Model) -> MemberSummary {
        MemberSummary {
            n_vectors: member.relevance.len(),
            log_evidence: member.log_evidence,
            status: member.status.name(),
            iterations: member.iterations,
        }
    }
}
