//! Parts of a model that all formats write: basis functions, weights, triangular factors, and how outputs follow from
//! them.

use ndarray::{Array1, Array2};
use relvec_predict::{FittedBasis, Kernel, Likelihood, Margins, Model, MultiClass, Posterior, ProcessPrior, Variance};

use crate::error::{Error, Result};

/// Most features of an exported model, the limit of a table of the command. Rows of a self-test and loops over features
/// have this length.
const MOST_FEATURES: usize = 1_000_000;

/// A model in parts. Its functions are f = W'phi(z) + w_0, with z the row in scaled units.
pub(crate) struct Machine<'a> {
    pub model: &'a Model,
    pub basis: Basis<'a>,
    pub task: Task<'a>,
}

/// Source of phi, `[M]`.
pub(crate) enum Basis<'a> {
    /// A kernel at centres, [M, D].
    Kernel { kernel: &'a Kernel, centres: &'a Array2<f64> },
    /// Columns of the row itself.
    Columns(&'a [usize]),
}

/// Kind of the predictions.
pub(crate) enum Task<'a> {
    /// Values with standard deviations.
    Values(Values<'a>),
    /// Counts, whose log rate is the function.
    Counts(Spread<'a>),
    /// Two classes by one function. Without a spread only its mean is used.
    Two(Option<Spread<'a>>),
    /// Several classes by one function each.
    Joint(Option<JointSpread>),
    /// Several classes by binary models.
    Committee { rule: MultiClass, members: Vec<Machine<'a>> },
    /// A support vector machine.
    Margins(&'a Margins),
}

/// Values of one or several outputs. The variance of output k is ratio_k v + noise_k, with v the variance from the
/// spread.
pub(crate) struct Values<'a> {
    pub spread: Spread<'a>,
    pub ratios: Vec<f64>,
    /// Noise variances. For Student-t noise this is the variance, not the squared scale.
    pub noise: Vec<f64>,
}

/// Variance of the first function, v = times (|inv(L) s (1, phi)|^2 + residual).
pub(crate) struct Spread<'a> {
    /// L, [n, n], with the intercept first.
    pub factor: Array2<f64>,
    /// s, `[n]`.
    pub scale: &'a [f64],
    /// True if the first of the n entries is the intercept.
    pub bias: bool,
    pub times: f64,
    pub prior: Option<Prior>,
}

/// The residual of a process prior, amplitude (k(z, z) - |inv(L) phi|^2).
pub(crate) struct Prior {
    pub amplitude: f64,
    /// L, [M, M].
    pub factor: Array2<f64>,
}

/// Covariances of the functions of several classes, E c E', with c the covariances of their contrasts.
pub(crate) struct JointSpread {
    /// L, [n, n], for all weights of the first contrast, then of the second, and so on.
    pub factor: Array2<f64>,
    /// s, [active].
    pub scale: Vec<f64>,
    pub bias: bool,
    /// For each contrast, the active functions for which it has a weight.
    pub present: Vec<Vec<usize>>,
    /// E, [K, R].
    pub contrasts: Array2<f64>,
}

impl<'a> Machine<'a> {
    /// Splits a model in normal form into its parts. `format` is for messages.
    pub fn new(model: &'a Model, format: &'static str) -> Result<Machine<'a>> {
        if model.encoding.is_some() {
            return Err(Error::Encoding { format });
        }
        if model.variance == Variance::Healed {
            return Err(Error::HealedVariance { format });
        }
        if model.n_features > MOST_FEATURES {
            let found = format!("a model of {} features", model.n_features);
            return Err(Error::Unsupported { format, found, instead: "at most 1,000,000 can be" });
        }
        let basis = match &model.expansion.basis {
            FittedBasis::External { .. } => return Err(Error::ExternalKernel { format }),
            FittedBasis::Kernel { kernel, centres } => Basis::Kernel { kernel, centres },
            FittedBasis::Sparse { .. } => unreachable!("a model in normal form has dense centres"),
            FittedBasis::Given {} => Basis::Columns(&model.relevance),
        };
        Ok(Machine { model, basis, task: Task::new(model, format)? })
    }

    /// Returns M, the number of basis functions.
    pub fn len(&self) -> usize {
        self.model.relevance.len()
    }
}

impl<'a> Task<'a> {
    fn new(model: &'a Model, format: &'static str) -> Result<Task<'a>> {
        if let Some(committee) = &model.committee {
            let members = committee.members.iter().map(|member| Machine::new(member, format)).collect::<Result<_>>()?;
            return Ok(Task::Committee { rule: committee.rule, members });
        }
        if let Some(margins) = &model.margins {
            return Ok(Task::Margins(margins));
        }
        if model.n_classes().is_some() {
            return Ok(match model.outputs() {
                1 => Task::Two(model.posterior.as_ref().map(|posterior| Spread::new(model, posterior))),
                _ => Task::Joint(model.posterior.as_ref().map(|posterior| JointSpread::new(model, posterior))),
            });
        }
        let posterior = model.posterior()?;
        let spread = Spread::new(model, posterior);
        if matches!(model.likelihood, Some(Likelihood::Poisson(_))) {
            return Ok(Task::Counts(spread));
        }
        let ratios = if posterior.variance_ratios.is_empty() { vec![1.0] } else { posterior.variance_ratios.clone() };
        // A variational fit also has degrees of freedom for the noise, but its standard deviation is computed from the
        // mean noise.
        let degrees = posterior.noise_degrees.filter(|_| matches!(model.likelihood, Some(Likelihood::StudentT(_))));
        let variance = student_variance(spread.times * posterior.noise_variance.unwrap_or(0.0), degrees);
        let noise = ratios.iter().map(|ratio| ratio * variance).collect();
        Ok(Task::Values(Values { spread, ratios, noise }))
    }
}

/// Returns the variance of Student-t noise from its squared scale, infinite for 2 degrees of freedom or fewer. For
/// normal noise it is `square`.
fn student_variance(square: f64, degrees: Option<f64>) -> f64 {
    match degrees {
        Some(degrees) if degrees > 2.0 => degrees / (degrees - 2.0) * square,
        Some(_) if square > 0.0 => f64::INFINITY,
        _ => square,
    }
}

impl<'a> Spread<'a> {
    fn new(model: &'a Model, posterior: &'a Posterior) -> Spread<'a> {
        Spread {
            factor: posterior.factor(),
            scale: &posterior.scale,
            bias: model.intercept_alpha.is_some(),
            times: posterior.variance_factor.unwrap_or(1.0),
            // Without an amplitude the prior has no residual.
            prior: model.process.as_ref().filter(|process| process.amplitude > 0.0).map(Prior::new),
        }
    }
}

impl Prior {
    fn new(process: &ProcessPrior) -> Prior {
        let rows = &process.factor;
        let factor = Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| if j <= i { rows[i][j] } else { 0.0 });
        Prior { amplitude: process.amplitude, factor }
    }
}

impl JointSpread {
    fn new(model: &Model, posterior: &Posterior) -> JointSpread {
        let contrasts = model.contrasts();
        JointSpread {
            factor: posterior.factor(),
            scale: posterior.scale.clone(),
            bias: model.intercept_alpha.is_some(),
            present: model.present(),
            contrasts: Array2::from_shape_fn((contrasts.n_classes(), contrasts.count()), |(k, r)| contrasts.at(k, r)),
        }
    }

    /// Returns the first row of the block of each contrast in L, `[R]`.
    pub fn first(&self) -> Vec<usize> {
        (0..self.present.len()).map(|r| self.present[..r].iter().map(Vec::len).sum()).collect()
    }
}

/// Returns gamma of each feature, `[D]`; 1 for a kernel without gamma.
pub(crate) fn gamma(kernel: &Kernel, features: usize) -> Array1<f64> {
    kernel.gamma().map_or_else(|| Array1::ones(features), |gamma| gamma.values(features))
}
