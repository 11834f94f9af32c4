//! Relevance vector machines: parameters and the loop.

mod batch;
mod evaluate;
mod factor;
mod finish;
mod gain;
mod laplace;
mod problem;
mod reestimation;
mod sequential;
mod solution;

use std::time::{Duration, Instant};

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use self::batch::Rule;
use self::problem::{Problem, Workspace};
use self::reestimation::Reestimation;
use self::sequential::Search;
use self::solution::Solution;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::model::Model;
use crate::report::{Actions, Certificate, Observer, Progress, Report, Status, TracePoint};
use crate::targets::Targets;

pub use self::evaluate::{ActionKind, ColumnAction, Evaluation, Hyperparameters};

/// Gamma hyperpriors: Gamma(a, b) on each weight precision, Gamma(c, d) on the noise precision,
/// density proportional to x^(a-1) exp(-b x). Zero, the default, is the papers' uniform hyperprior
/// over log precisions. b and d are in the user's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperpriors {
    /// Shape for the weight precisions, >= 0.
    pub a: f64,
    /// Rate for the weight precisions, >= 0, in squared units of a weight.
    pub b: f64,
    /// Shape for the noise precision, >= 0.
    pub c: f64,
    /// Rate for the noise precision, >= 0, in squared units of the target.
    pub d: f64,
}

/// Where the basis functions come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The kernel, centred on each training row.
    #[default]
    Kernel,
    /// The columns of X themselves: X is a design matrix.
    Given,
}

/// A relevance vector machine to be trained.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use relvec::{Kernel, Rbf, Rvm, Targets};
///
/// let x = Array2::from_shape_fn((50, 1), |(i, _)| -10.0 + 0.4 * i as f64);
/// let t: Array1<f64> = x.column(0).mapv(|x| if x == 0.0 { 1.0 } else { x.sin() / x });
/// let rvm = Rvm { kernel: Kernel::Rbf(Rbf { gamma: 0.1.into() }), ..Rvm::default() };
/// let (model, report) = rvm.fit(x.view(), &Targets::real(t.view()), &mut relvec::silent)?;
/// let prediction = model.predict(x.view())?;
/// assert!((prediction.mean[25] - t[25]).abs() < 0.05);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rvm {
    /// The kernel; not used with [`Basis::Given`].
    pub kernel: Kernel,
    /// Where the basis functions come from.
    pub basis: Basis,
    /// Whether there is a bias (intercept), with its own precision, which may be pruned.
    pub bias: bool,
    /// How targets depend on the function: regression or classification.
    pub likelihood: Likelihood,
    /// How precisions are learnt.
    pub inference: Inference,
    /// Largest number of iterations, >= 1.
    pub max_iterations: usize,
    /// Largest wall-clock time of a fit in seconds, > 0; `None`: no limit.
    pub time_limit: Option<f64>,
    /// Most memory that a fit may take, in bytes; `None`: a quarter of the machine's.
    pub memory_limit: Option<u64>,
    /// Threads; `None`: as many as there are processors. Results do not depend on it.
    pub threads: Option<usize>,
    /// Seed of the random choices (a starting set when the dictionary is large).
    pub seed: u64,
}

/// EM: alpha_i = 1 / (mu_i^2 + Sigma_ii). Never lowers the evidence; slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Em {
    /// Gamma hyperpriors.
    pub hyperpriors: Hyperpriors,
    /// Converged when no log precision moves by more than this in one iteration.
    pub tolerance: f64,
    /// First value of every weight precision, in the user's units; `None`: 1/N^2 on unit columns.
    pub initial_alpha: Option<f64>,
    /// First noise variance, in the user's units; `None`: 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// Whether weights that the data no longer determine (gamma < 1e-12) leave the model.
    pub prune: bool,
}

/// MacKay's fixed point (Tipping 1999, eq. 8 and 9): alpha_i = gamma_i / mu_i^2. Fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MacKay {
    /// Gamma hyperpriors.
    pub hyperpriors: Hyperpriors,
    /// Converged when no log precision moves by more than this in one iteration.
    pub tolerance: f64,
    /// First value of every weight precision, in the user's units; `None`: 1/N^2 on unit columns.
    pub initial_alpha: Option<f64>,
    /// First noise variance, in the user's units; `None`: 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// Whether weights that the data no longer determine (gamma < 1e-12) leave the model.
    pub prune: bool,
}

/// Sequential search for the highest evidence (Tipping & Faul 2003, with batches and joint steps).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequential {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// Converged when no action gains more than this many nats (times N/1000 above 1000 rows).
    pub tolerance: f64,
    /// Most actions between two joint steps; 1 takes them one at a time.
    pub batch: usize,
    /// Whether all precisions are re-estimated jointly after each batch.
    pub joint: bool,
    /// Whether a basis function may be replaced by another in one move.
    pub swaps: bool,
    /// Most reheats: excursions with the noise held low, then high, kept only if the evidence rises.
    pub reheats: usize,
    /// Where the search starts.
    pub start: Start,
}

/// Where the sequential search starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// From all columns where the dictionary is small and the curvature constant, else from few.
    #[default]
    Auto,
    /// From no basis function at all.
    Empty,
    /// From a model at given precisions.
    Given(Hyperparameters),
}

/// The inference schemes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inference {
    /// Sequential search; the default.
    Sequential(Sequential),
    /// MacKay's fixed point.
    Mackay(MacKay),
    /// Expectation maximisation.
    Em(Em),
}

impl Inference {
    /// The names of all schemes.
    pub const NAMES: &'static [&'static str] = &["sequential", "mackay", "em"];

    /// The name of this scheme.
    pub fn name(&self) -> &'static str {
        match self {
            Inference::Sequential(_) => "sequential",
            Inference::Mackay(_) => "mackay",
            Inference::Em(_) => "em",
        }
    }

    /// The scheme of that name with its default parameters.
    ///
    /// # Errors
    /// [`Error::UnknownName`], which lists the names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "sequential" => Ok(Inference::Sequential(Sequential::default())),
            "mackay" => Ok(Inference::Mackay(MacKay::default())),
            "em" => Ok(Inference::Em(Em::default())),
            _ => Err(Error::UnknownName { what: "inference scheme", found: name.into(), known: Self::NAMES }),
        }
    }
}

/// An observer that does nothing.
pub fn silent(_: &crate::Progress) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

impl Default for Em {
    fn default() -> Self {
        Em {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            initial_alpha: None,
            initial_noise_variance: None,
            prune: true,
        }
    }
}
impl Default for MacKay {
    fn default() -> Self {
        MacKay {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            initial_alpha: None,
            initial_noise_variance: None,
            prune: true,
        }
    }
}
impl Default for Sequential {
    fn default() -> Self {
        Sequential {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-4,
            batch: 20,
            joint: true,
            swaps: true,
            reheats: 3,
            start: Start::Auto,
        }
    }
}
impl Default for Rvm {
    fn default() -> Self {
        Rvm {
            kernel: Kernel::Rbf(crate::Rbf::default()),
            basis: Basis::Kernel,
            bias: true,
            likelihood: Likelihood::Gaussian(crate::Gaussian::default()),
            inference: Inference::Sequential(Sequential::default()),
            max_iterations: 10_000,
            time_limit: None,
            memory_limit: None,
            threads: None,
            seed: 0,
        }
    }
}

/// What a step of an inference scheme says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepOutcome {
    Continue,
    Converged,
}

/// One run of an inference scheme.
enum Run<'p> {
    Search(Box<Search<'p>>),
    Reestimation(Box<Reestimation>),
}

impl Inference {
    fn start<'p>(&self, work: &Workspace<'p>) -> Result<Run<'p>> {
        let settings = match self {
            Inference::Sequential(settings) => return Ok(Run::Search(Box::new(Search::start(work, settings)?))),
            Inference::Mackay(s) => reestimation::Settings {
                // Where MacKay's update would lower the evidence, EM's takes its place.
                rules: &[Rule::MacKay, Rule::Em],
                hyperpriors: s.hyperpriors,
                tolerance: s.tolerance,
                initial_alpha: s.initial_alpha,
                initial_noise_variance: s.initial_noise_variance,
                prune: s.prune,
            },
            Inference::Em(s) => reestimation::Settings {
                rules: &[Rule::Em],
                hyperpriors: s.hyperpriors,
                tolerance: s.tolerance,
                initial_alpha: s.initial_alpha,
                initial_noise_variance: s.initial_noise_variance,
                prune: s.prune,
            },
        };
        Ok(Run::Reestimation(Box::new(Reestimation::start(work, settings)?)))
    }

    fn check(&self) -> Result<()> {
        let (h, tolerance, starts) = match self {
            Inference::Sequential(s) => (&s.hyperpriors, s.tolerance, [None, None]),
            Inference::Mackay(s) => (&s.hyperpriors, s.tolerance, [s.initial_alpha, s.initial_noise_variance]),
            Inference::Em(s) => (&s.hyperpriors, s.tolerance, [s.initial_alpha, s.initial_noise_variance]),
        };
        let path = format!("inference.{}", self.name());
        for (name, value) in [("a", h.a), ("b", h.b), ("c", h.c), ("d", h.d)] {
            require(
                value.is_finite() && value >= 0.0,
                || format!("{path}.hyperpriors.{name}"),
                value,
                "zero or a positive number",
            )?;
        }
        if let Inference::Sequential(s) = self {
            let value = if s.hyperpriors.a > 0.0 { s.hyperpriors.a } else { s.hyperpriors.b };
            require(
                value == 0.0,
                || format!("{path}.hyperpriors.{}", if s.hyperpriors.a > 0.0 { "a" } else { "b" }),
                value,
                "0: with a hyperprior on the weight precisions an absent basis function has no finite objective; \
                 use the scheme em or mackay",
            )?;
            require(s.batch >= 1, || format!("{path}.batch"), s.batch, "a whole number of at least 1")?;
        }
        require(tolerance.is_finite() && tolerance > 0.0, || format!("{path}.tolerance"), tolerance, "a positive number")?;
        for (name, value) in ["initial_alpha", "initial_noise_variance"].into_iter().zip(starts) {
            let good = value.is_none_or(|v| v.is_finite() && v > 0.0);
            require(good, || format!("{path}.{name}"), value.unwrap_or(0.0), "a positive number, or null")?;
        }
        Ok(())
    }
}

fn require(good: bool, name: impl Fn() -> String, found: impl ToString, expected: &str) -> Result<()> {
    match good {
        true => Ok(()),
        false => Err(Error::Parameter { name: name(), found: found.to_string(), expected: expected.into() }),
    }
}

impl<'p> Run<'p> {
    fn step(&mut self, work: &Workspace<'p>) -> Result<StepOutcome> {
        match self {
            Run::Search(run) => run.step(work),
            Run::Reestimation(run) => run.step(work),
        }
    }

    /// The best solution so far.
    fn best(&self) -> &Solution {
        match self {
            Run::Search(run) => run.best(),
            Run::Reestimation(run) => run.best(),
        }
    }

    /// What must not fall: its log evidence, plus log hyperpriors where there are any.
    fn objective(&self, work: &Workspace) -> f64 {
        work.problem.log_evidence_out(match self {
            Run::Search(run) => run.best().log_evidence,
            Run::Reestimation(run) => run.objective(work),
        })
    }

    fn finish(mut self, work: &Workspace<'p>) -> (Solution, Certificate, Actions) {
        let certificate = match &mut self {
            Run::Search(run) => run.certificate(work),
            Run::Reestimation(run) => run.certificate(),
        };
        match self {
            Run::Search(run) => (run.best().clone(), certificate, run.actions),
            Run::Reestimation(run) => (run.best().clone(), certificate, run.actions),
        }
    }
}

impl Rvm {
    /// Checks the parameters alone, without data.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first parameter out of its range.
    pub fn check(&self) -> Result<()> {
        if self.basis == Basis::Kernel {
            self.kernel.check()?;
        }
        self.likelihood.check()?;
        self.inference.check()?;
        require(self.max_iterations >= 1, || "max_iterations".into(), self.max_iterations, "a whole number of at least 1")?;
        let limit = self.time_limit.unwrap_or(1.0);
        require(limit.is_finite() && limit > 0.0, || "time_limit".into(), limit, "a positive number of seconds, or null")?;
        require(self.threads != Some(0), || "threads".into(), 0, "a whole number of at least 1, or null")
    }

    /// Learns from rows `x`, [N, D] (with [`Basis::Given`]: a design matrix [N, P]), and `targets`.
    ///
    /// The observer is called after each iteration, on a thread of the fit's own pool, and may
    /// end the fit; a valid model results.
    ///
    /// # Errors
    /// Parameters out of range, shapes that do not fit, values that are not finite, too few rows,
    /// targets that do not suit the likelihood, too little memory. Not converging is no error: see
    /// [`Report::status`].
    pub fn fit(&self, x: ArrayView2<f64>, targets: &Targets, observer: &mut Observer) -> Result<(Model, Report)> {
        self.check()?;
        self.pool()?.install(|| self.run(x, targets, observer))
    }

    /// Threads of our own: the caller's global pool is left alone.
    fn pool(&self) -> Result<rayon::ThreadPool> {
        let threads = self.threads.unwrap_or(0);
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| Error::Parameter {
            name: "threads".into(),
            found: threads.to_string(),
            expected: format!("a number of threads that the system can start ({e})"),
        })
    }

    /// The loop.
    fn run(&self, x: ArrayView2<f64>, targets: &Targets, observer: &mut Observer) -> Result<(Model, Report)> {
        let start = Instant::now();
        let problem = Problem::new(self, x, targets)?;
        let work = Workspace::new(&problem);
        let mut run = self.inference.start(&work)?;
        let mut trace: Vec<TracePoint> = Vec::new();
        let time_limit = self.time_limit.map(Duration::from_secs_f64);
        let status = loop {
            let outcome = match run.step(&work) {
                Ok(outcome) => outcome,
                Err(Error::Singular { .. }) if !trace.is_empty() => break Status::Singular,
                Err(error) => return Err(error),
            };
            let progress = Progress {
                iteration: trace.len() + 1,
                log_evidence: run.objective(&work),
                active: run.best().active.len(),
                noise_std: problem.noise_std(run.best().beta),
                elapsed: start.elapsed(),
            };
            trace.push(TracePoint {
                log_evidence: progress.log_evidence,
                noise_std: progress.noise_std,
                active: progress.active,
                seconds: progress.elapsed.as_secs_f64(),
            });
            let told = observer(&progress);
            if outcome == StepOutcome::Converged {
                break Status::Converged;
            } else if told.is_break() {
                break Status::Stopped;
            } else if trace.len() >= self.max_iterations {
                break Status::IterationLimit;
            } else if time_limit.is_some_and(|limit| start.elapsed() >= limit) {
                break Status::TimeLimit;
            }
        };
        let log_evidence = run.objective(&work);
        let (solution, certificate, actions) = run.finish(&work);
        let mut repairs = problem.repairs.clone();
        repairs.jitter = solution.jitter;
        repairs.noise_capped = problem.noise_capped(solution.beta);
        let model = finish::model(&work, &solution, log_evidence, status, trace.len())?;
        let report = Report {
            status,
            iterations: trace.len(),
            trace,
            certificate,
            repairs,
            actions,
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((model, report))
    }
}
