//! Relevance vector machines: parameters and the loop.

mod batch;
mod canonical;
mod em;
mod evaluate;
mod factor;
mod finish;
mod gain;
mod landmarks;
mod laplace;
mod mackay;
mod problem;
mod reestimation;
mod scheme;
mod sequential;
mod solution;
mod workspace;

use std::time::{Duration, Instant};

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use self::problem::Problem;
use self::scheme::require;
use self::workspace::Workspace;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::model::Model;
use crate::report::{Interrupt, Observer, Progress, Report, Status, TracePoint};
use crate::targets::Targets;

pub use self::em::Em;
pub use self::evaluate::{ActionKind, ColumnAction, Evaluation, Hyperparameters};
pub use self::landmarks::{Dictionary, DictionaryRule, Landmarks};
pub use self::mackay::MacKay;
pub use self::scheme::{Hyperpriors, Inference};
pub use self::sequential::{Sequential, Start};

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
    /// With a kernel: how many training rows are candidates for relevance vectors.
    pub dictionary: Dictionary,
    /// How they are chosen where they are not all.
    pub landmarks: Landmarks,
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
    /// Seed of the random choices (of the dictionary, and of a starting set when it is large).
    pub seed: u64,
}

/// An observer that does nothing.
pub fn silent(_: &crate::Progress) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

impl Default for Rvm {
    fn default() -> Self {
        Rvm {
            kernel: Kernel::Rbf(crate::Rbf::default()),
            basis: Basis::Kernel,
            dictionary: Dictionary::default(),
            landmarks: Landmarks::default(),
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
        self.inference.as_dyn().check(&format!("inference.{}", self.inference.name()))?;
        if let Dictionary::Size(size) = self.dictionary {
            let name = || "dictionary".into();
            require(size >= 1, name, size, "a whole number of at least 1, \"all\" or \"auto\"")?;
            let expected = "all or auto: of a given design matrix, every column is a candidate";
            require(self.basis == Basis::Kernel, name, size, expected)?;
        }
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
        self.fit_interruptible(x, targets, observer, &Interrupt::default())
    }

    /// As [`Rvm::fit`]; another thread may end it by `interrupt`, also in the middle of an iteration.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; and [`Error::Interrupted`].
    pub fn fit_interruptible(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        self.pool()?.install(|| self.run(x, targets, observer, interrupt))
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
    fn run(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let start = Instant::now();
        let problem = Problem::new(self, x, targets, interrupt)?;
        let work = Workspace::new(&problem);
        let mut run = self.inference.as_dyn().start(&work)?;
        let mut trace: Vec<TracePoint> = Vec::new();
        let time_limit = self.time_limit.map(Duration::from_secs_f64);
        let status = loop {
            let outcome = run.step(&work);
            interrupt.check()?;
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(Error::Singular { .. }) if !trace.is_empty() => break Status::Singular,
                Err(error) => return Err(error),
            };
            let progress = Progress {
                iteration: trace.len() + 1,
                log_evidence: problem.log_evidence_out(run.objective(&work)),
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
            if let Some(status) = outcome {
                break status;
            } else if told.is_break() {
                break Status::Stopped;
            } else if trace.len() >= self.max_iterations {
                break Status::IterationLimit;
            } else if time_limit.is_some_and(|limit| start.elapsed() >= limit) {
                break Status::TimeLimit;
            }
        };
        let log_evidence = problem.log_evidence_out(run.objective(&work));
        let (certificate, actions) = run.certificate(&work);
        let solution = run.best();
        let mut repairs = problem.repairs.clone();
        repairs.jitter = solution.jitter;
        repairs.noise_capped = problem.noise_capped(solution.beta);
        let model = finish::model(&work, solution, log_evidence, status, trace.len())?;
        let report = Report {
            status,
            iterations: trace.len(),
            trace,
            candidates: problem.design.n_columns() - usize::from(problem.has_bias),
            certificate,
            repairs,
            actions,
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((model, report))
    }
}
