//! Support vector machines: their parameters, and the fit of their functions.

mod formulation;
mod pairs;
mod platt;
mod report;
mod rows;
mod smo;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::formulation::Examples;
use self::rows::Points;
use self::smo::{Rules, Step};
use crate::canonical::{Canonical, Copies, all_but};
use crate::design::{self, Basis};
use crate::error::{Error, Result, require, require_threads};
use crate::kernel::{Gamma, Kernel, SparseCentres};
use crate::model::{Expansion, FittedBasis, Margins, Model, check_features, check_finite, check_sparse};
use crate::report::{Interrupt, SmallWeights, Status, silent};
use crate::sparse::SparseRows;
use crate::targets::{MultiClass, Targets, Values, check_present};

pub use self::formulation::{CSvc, EpsilonSvr, Formulation, NuSvc, NuSvr};
pub use self::report::{Probabilities, SvmFunction, SvmObserver, SvmProgress, SvmReport};

/// Number of folds that provide the values to which a sigmoid is fitted.
const FOLDS: usize = 5;
/// Number of steps at which any search ends. Tables with more than a hundredth as many rows may take 100 steps per row.
const MOST_STEPS: usize = 10_000_000;

/// Factors of the cost of errors on the rows of each class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassWeights {
    /// Equal factors.
    #[default]
    Equal,
    /// N / (K N_k), so that all classes have the same sum of costs.
    Balanced,
    /// The given factors, `[K]`.
    #[serde(untagged)]
    Given(Vec<f64>),
}

/// Parameters of a support vector machine.
///
/// ```
/// use ndarray::array;
/// use relvec::{CSvc, Linear, Svm, Targets};
///
/// // Three points in the plane: the widest margin lies half way, at x = 1.
/// let x = array![[0.0, 0.0], [0.0, 1.0], [2.0, 0.5]];
/// let svm = Svm { kernel: Linear::default().into(), formulation: CSvc { c: f64::INFINITY }.into(), ..Svm::default() };
/// let (model, _) = svm.fit(x.view(), &Targets::classes(&[0, 0, 1], 2))?;
/// let f = model.decision_function(array![[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]].view())?;
/// assert!((f[[0, 0]] + 1.0).abs() < 1e-3 && f[[1, 0]].abs() < 1e-3 && (f[[2, 0]] - 1.0).abs() < 1e-3);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Svm {
    /// The kernel; not used with [`Basis::Given`].
    pub kernel: Kernel,
    /// Source of the kernel values. With [`Basis::Given`], X contains those between all rows, [N, N].
    pub basis: Basis,
    /// Problem that is minimised: a classification or a regression.
    pub formulation: Formulation,
    /// How more than two classes are modelled. `auto` is `one_vs_one`; there is no `joint` support vector machine.
    pub multi_class: MultiClass,
    /// Factors of the cost of errors on the rows of each class.
    pub class_weights: ClassWeights,
    /// True if a sigmoid of each function is fitted by cross-validation, so that the model has class probabilities.
    /// [`Probabilities`] describes fits to other values.
    pub probability: bool,
    /// True if variables that will stay at their bounds are excluded until the others have converged. The solution does
    /// not change.
    pub shrinking: bool,
    /// Largest violation of the optimality conditions at which a search ends, > 0, in units of the function.
    pub tolerance: f64,
    /// Largest memory for kernel rows in MB (2^20 bytes), > 0. A few rows are cached even if they exceed it.
    pub cache_size: f64,
    /// Largest number of pairs of multipliers moved for a function, >= 1. `None` means 10 million, or 100 times the
    /// number of rows if that is more.
    pub max_iterations: Option<usize>,
    /// Largest wall-clock time of a fit in seconds, > 0; `None` for no limit.
    pub time_limit: Option<f64>,
    /// Number of threads, from 1 to [`MOST_THREADS`](crate::MOST_THREADS); `None` for as many as there are processors.
    /// Results do not depend on it.
    pub threads: Option<usize>,
    /// Seed of the cross-validation for probabilities.
    pub seed: u64,
}

impl Default for Svm {
    fn default() -> Self {
        Svm {
            kernel: Kernel::Rbf(crate::Rbf::default()),
            basis: Basis::Kernel,
            formulation: Formulation::CSvc(CSvc::default()),
            multi_class: MultiClass::default(),
            class_weights: ClassWeights::default(),
            probability: false,
            shrinking: true,
            tolerance: 1e-3,
            cache_size: 200.0,
            max_iterations: None,
            time_limit: None,
            threads: None,
            seed: 0,
        }
    }
}

/// The problem of one function: two classes, or a regression.
struct Task {
    /// Numbers of its rows, ascending.
    rows: Vec<usize>,
    /// Labels +1 and -1 of these rows, or their targets.
    y: Vec<f64>,
    /// Description of the classes.
    classes: String,
}

/// Rows as the caller gives them, [N, D].
#[derive(Clone, Copy)]
enum Input<'a> {
    Dense(ArrayView2<'a, f64>),
    Sparse(&'a SparseRows),
}

impl Input<'_> {
    /// Returns N and D.
    fn dim(&self) -> (usize, usize) {
        match self {
            Input::Dense(x) => x.dim(),
            Input::Sparse(x) => (x.nrows(), x.ncols()),
        }
    }
}

/// Merged rows.
enum Features {
    Dense(Array2<f64>),
    Sparse(SparseRows),
}

/// The training rows of a fit.
struct Table {
    points: Points,
    /// True if the model will have sparse centres.
    sparse: bool,
    /// Number of the user's row of each point, `[L]`.
    origin: Vec<usize>,
    /// The point of each merged row.
    point: Vec<usize>,
    /// The class of each point's first row, `[L]`; empty in regression.
    classes: Vec<usize>,
    /// The target of each merged row.
    targets: Vec<f64>,
    /// Factor of the cost of an error for each merged row.
    weights: Vec<f64>,
    /// Sample weights of the merged rows, without the class weights.
    sample_weights: Vec<f64>,
    /// The user's rows that each merged row represents.
    copies: Copies,
}

/// Rows of one search, ascending.
struct Part<'a> {
    rows: &'a [usize],
    /// Targets, or +1 for the second class and -1 for the first.
    y: &'a [f64],
    /// Factor of the cost of an error for each row.
    weights: &'a [f64],
    /// True if these are only some of the rows of a function, which predicts the others.
    some: bool,
    /// Description of the classes.
    classes: &'a str,
}

/// Values of functions at rows that they were not fitted to. A row has a value for each fold that contains copies of
/// it.
#[derive(Default)]
struct HeldOut {
    /// Indices of the rows among all rows of the function.
    places: Vec<usize>,
    values: Vec<f64>,
    /// Weights of the copies in the fold.
    weights: Vec<f64>,
}

/// A function over all points.
struct Function {
    /// Coefficients of the points, `[L]`.
    beta: Vec<f64>,
    intercept: f64,
    /// Points whose multiplier is at its upper bound.
    bounded: Vec<usize>,
    report: SvmFunction,
    sigmoid: Option<[f64; 2]>,
}

/// Data that all searches of a fit share.
struct Run<'a> {
    svm: &'a Svm,
    table: &'a Table,
    /// The points, or the kernel values between them.
    points: &'a Points,
    /// Largest number of values in the cached kernel rows of all searches.
    room: usize,
    /// Number of searches that run in parallel.
    together: usize,
    observer: Mutex<&'a mut SvmObserver<'a>>,
    interrupt: Interrupt,
    start: Instant,
    /// Number of searches.
    count: usize,
}

impl Svm {
    /// Checks the parameters alone, without data.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first parameter out of its range.
    pub fn check(&self) -> Result<()> {
        if self.basis == Basis::Kernel {
            self.kernel.check()?;
            let sum = self.kernel.as_sum();
            let factors = sum.iter().flat_map(|sum| &sum.terms).flat_map(|term| &term.factors).map(|factor| &factor.kernel);
            for own in std::iter::once(&self.kernel).chain(factors) {
                if let Some(Gamma::Rule(rule)) = own.gamma()
                    && rule.is_learned()
                {
                    let expected = "a number, \"scale\" or \"auto\": a support vector machine has no evidence to learn it from";
                    return require(false, || format!("kernel.{}.gamma", own.name()), rule.name(), expected);
                }
                let found = !matches!(own, Kernel::Periodic(own) if own.period.is_none());
                let expected = "a number: a support vector machine has no evidence to find it by";
                require(found, || "kernel.periodic.period".into(), "none", expected)?;
            }
        }
        self.formulation.as_dyn().check()?;
        let expected = "auto, one_vs_one or one_vs_rest: there is no joint support vector machine";
        require(self.multi_class != MultiClass::Joint, || "multi_class".into(), self.multi_class.name(), expected)?;
        if let ClassWeights::Given(weights) = &self.class_weights
            && let Some(bad) = weights.iter().find(|w| !(w.is_finite() && **w > 0.0))
        {
            return require(false, || "class_weights".into(), bad, "positive numbers, one for each class");
        }
        let classifies = self.formulation.as_dyn().classifies();
        let expected = "false: only classifiers have probabilities";
        require(classifies || !self.probability, || "probability".into(), true, expected)?;
        let expected = "equal: only classifiers have classes";
        require(classifies || self.class_weights == ClassWeights::Equal, || "class_weights".into(), "others", expected)?;
        let positive = |v: f64| v.is_finite() && v > 0.0;
        require(positive(self.tolerance), || "tolerance".into(), self.tolerance, "a number in (0, infinity)")?;
        require(positive(self.cache_size), || "cache_size".into(), self.cache_size, "a positive number of MB")?;
        let steps = self.max_iterations.unwrap_or(1);
        require(steps >= 1, || "max_iterations".into(), steps, "a whole number of at least 1, or null")?;
        let limit = self.time_limit.unwrap_or(1.0);
        require(positive(limit), || "time_limit".into(), limit, "a positive number of seconds, or null")?;
        require_threads(self.threads)
    }

    /// Fits rows `x`, [N, D], to `targets`. With [`Basis::Given`], `x` contains the kernel values between all rows, [N,
    /// N].
    ///
    /// # Errors
    /// Returns an error for parameters out of range, shapes that do not match, values that are not finite, too few
    /// rows, and targets that do not suit the formulation. [`Error::Inseparable`] means that there is no hard margin. A
    /// fit that does not converge is not an error: see [`SvmReport::status`].
    pub fn fit(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<(Model, SvmReport)> {
        self.fit_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits rows `x`, `[N, D]`, see [`Svm::fit`]. `observer` is called many times and may stop the fit, which then
    /// returns a valid model. Another thread may stop it by `interrupt`, which is an error.
    ///
    /// # Errors
    /// Returns the errors of [`Svm::fit`], and [`Error::Interrupted`].
    pub fn fit_with(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut SvmObserver,
        interrupt: &Interrupt,
    ) -> Result<(Model, SvmReport)> {
        self.fit_input(Input::Dense(x), targets, observer, interrupt)
    }

    /// Fits sparse rows, which are never expanded to dense rows unless many entries are non-zero. The model has sparse
    /// centres.
    ///
    /// ```
    /// use relvec::{SparseRows, Svm, Targets, ndarray::array};
    ///
    /// let x = SparseRows::from_dense(array![[0.0, 2.0, 0.0], [0.0, 1.0, 0.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.5]].view());
    /// let (model, _) = Svm::default().fit_sparse(&x, &Targets::classes(&[0, 0, 1, 1], 2))?;
    /// assert_eq!(model.on_basis().predict_class(model.basis_values(&x)?.view())?, [0, 0, 1, 1]);
    /// # Ok::<(), relvec::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Svm::fit`], and errors for the kernel `linear_spline` and for [`Basis::Given`].
    pub fn fit_sparse(&self, x: &SparseRows, targets: &Targets) -> Result<(Model, SvmReport)> {
        self.fit_sparse_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits sparse rows, see [`Svm::fit_sparse`]. `observer` is called many times and may stop the fit, which then
    /// returns a valid model. Another thread may stop it by `interrupt`, which is an error.
    ///
    /// # Errors
    /// Returns the errors of [`Svm::fit_sparse`], and [`Error::Interrupted`].
    pub fn fit_sparse_with(
        &self,
        x: &SparseRows,
        targets: &Targets,
        observer: &mut SvmObserver,
        interrupt: &Interrupt,
    ) -> Result<(Model, SvmReport)> {
        let expected = "kernel: kernel values between rows are not sparse";
        require(self.basis == Basis::Kernel, || "basis".into(), "given", expected)?;
        self.fit_input(Input::Sparse(x), targets, observer, interrupt)
    }

    fn fit_input(
        &self,
        x: Input,
        targets: &Targets,
        observer: &mut SvmObserver,
        interrupt: &Interrupt,
    ) -> Result<(Model, SvmReport)> {
        self.check()?;
        let start = Instant::now();
        let pool = crate::linalg::thread_pool(self.threads)?;
        let (model, report) = pool.install(|| self.run(x, targets, observer, interrupt, start))?;
        Ok((Model { class_frequencies: targets.class_frequencies(), ..model }, report))
    }

    fn run(
        &self,
        x: Input,
        targets: &Targets,
        observer: &mut SvmObserver,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, SvmReport)> {
        targets.refuse_given("a support vector machine")?;
        let y = self.numbers(x, targets)?;
        let sample_weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.dim().0]);
        let canonical = match x {
            Input::Dense(x) => Canonical::new(x, &y, &sample_weights, None).map_rows(Features::Dense),
            Input::Sparse(x) => Canonical::sparse(x, &y, &sample_weights).map_rows(Features::Sparse),
        };
        let used = sample_weights.iter().filter(|w| **w > 0.0).count();
        if used < 2 {
            return Err(Error::TooFewRows { found: used, least: 2 });
        }
        let classes = match targets.values {
            Values::Classes { labels, count } => {
                check_present(labels, count, Some(&sample_weights))?;
                Some(count)
            }
            Values::Real(_) | Values::Outputs(_) => None,
        };
        let rule = match (classes, self.multi_class) {
            (Some(count), MultiClass::Auto) if count > 2 => Some(MultiClass::OneVsOne),
            (Some(count), rule) if count > 2 => Some(rule),
            _ => None,
        };
        let merged_rows = canonical.merged;
        let small_weights = SmallWeights::of(canonical.weights.iter().sum(), used);
        let table = self.table(x, canonical, classes)?;
        let tasks = tasks(&table.targets, classes, rule);
        let deadline = self.time_limit.and_then(|limit| start.checked_add(Duration::try_from_secs_f64(limit).ok()?));
        let interrupt = interrupt.for_one_fit(deadline);
        interrupt.arm();
        // All kernel values are computed once if that is less work than for each search separately, and if there is
        // room for the largest search as well. This does not depend on the number of threads.
        let mut room = self.numbers_kept();
        let largest = tasks.iter().map(|t| t.rows.len() * t.rows.len()).max().unwrap_or(0);
        let all = table.points.count().saturating_mul(table.points.count());
        let of_searches: usize = tasks.iter().map(|t| t.rows.len() * t.rows.len()).sum();
        let once = of_searches > all && self.basis == Basis::Kernel && all.saturating_add(largest) <= room;
        let made = if once { table.points.values(&interrupt)? } else { None };
        let points = made.as_ref().unwrap_or(&table.points);
        if made.is_some() {
            room -= all;
        }
        // Small problems run in parallel, each with all its kernel values. Large ones run one after the other.
        let threads = rayon::current_num_threads().min(tasks.len()).max(1);
        let together = if largest <= room / threads { threads } else { 1 };
        let count = tasks.len() * if self.probability { FOLDS + 1 } else { 1 };
        let run =
            Run { svm: self, table: &table, points, room, together, observer: Mutex::new(observer), interrupt, start, count };
        let each = |(k, task): (usize, &Task)| run.function(k, task);
        let functions: Vec<Function> = match together {
            1 => tasks.iter().enumerate().map(each).collect::<Result<_>>()?,
            // The first error in the order of the functions is returned, whichever thread finished first.
            _ => tasks.par_iter().enumerate().map(each).collect::<Vec<_>>().into_iter().collect::<Result<_>>()?,
        };
        let report = SvmReport {
            status: functions.iter().map(|f| f.report.status).find(|s| *s != Status::Converged).unwrap_or(Status::Converged),
            iterations: functions.iter().map(|f| f.report.iterations).sum(),
            functions: functions.iter().map(|f| f.report.clone()).collect(),
            merged_rows,
            small_weights,
            seconds: start.elapsed().as_secs_f64(),
        };
        let model = self.assemble(x.dim(), &table, &functions, classes, rule, &report)?;
        Ok((model, report))
    }

    /// Checks rows and targets, and returns the targets as numbers, `[N]`.
    fn numbers(&self, x: Input, targets: &Targets) -> Result<Vec<f64>> {
        let (n, columns) = x.dim();
        targets.check_shape((n, columns))?;
        if self.basis == Basis::Given && columns != n {
            let expected = format!("a value for each pair of rows, [{n}, {n}]");
            return Err(Error::Shape { what: "kernel values", expected, found: format!("[{n}, {columns}]") });
        }
        match (x, self.basis) {
            (Input::Sparse(x), _) => check_sparse("rows to train on", x)?,
            (Input::Dense(x), Basis::Kernel) => check_features("rows to train on", x)?,
            (Input::Dense(x), Basis::Given) => check_finite("rows to train on", x, 0..columns)?,
        }
        let name = self.formulation.name();
        match (targets.values, self.formulation.as_dyn().classifies()) {
            (Values::Real(y), false) => match y.iter().position(|v| !v.is_finite()) {
                Some(row) => Err(Error::NotFinite { what: "targets", row, column: 0, value: y[row] }),
                None => Ok(y.to_vec()),
            },
            (Values::Classes { count, .. }, true) if count < 2 => {
                Err(Error::Targets(format!("the formulation {name} needs at least 2 classes, found {count}")))
            }
            (Values::Classes { labels, .. }, true) => Ok(labels.iter().map(|l| *l as f64).collect()),
            (Values::Outputs(v), false) => {
                let found = v.ncols();
                Err(Error::Targets(format!("the formulation {name} needs one output, found {found}: fit one model for each")))
            }
            (Values::Real(_) | Values::Outputs(_), true) => {
                Err(Error::Targets(format!("the formulation {name} needs classes, found real targets")))
            }
            (Values::Classes { .. }, false) => {
                Err(Error::Targets(format!("the formulation {name} needs real targets, found classes")))
            }
        }
    }

    fn table(&self, x: Input, rows: Canonical<Features>, classes: Option<usize>) -> Result<Table> {
        let class = |k: usize| rows.targets[k] as usize;
        // Points of a class get consecutive numbers, so that kernel values of two classes are near each other in
        // memory.
        let mut order: Vec<usize> = (0..rows.first.len()).collect();
        if classes.is_some() {
            order.sort_by_key(|p| class(rows.first[*p]));
        }
        let origin: Vec<usize> = order.iter().map(|p| rows.origin[*p]).collect();
        let first: Vec<usize> = order.iter().map(|p| rows.first[*p]).collect();
        let points = match (x, &rows.rows) {
            (Input::Dense(x), _) if self.basis == Basis::Given => {
                Points::given(x.select(Axis(0), &origin).select(Axis(1), &origin))
            }
            (_, Features::Dense(own)) => {
                let kernel = design::resolve(&self.kernel, own.view(), &rows.weights)?;
                Points::Kernel { kernel, x: own.select(Axis(0), &first) }
            }
            (_, Features::Sparse(own)) if own.is_nearly_dense() => {
                self.kernel.check_sparse()?;
                let dense = own.to_dense();
                let kernel = design::resolve(&self.kernel, dense.view(), &rows.weights)?;
                Points::Kernel { kernel, x: dense.select(Axis(0), &first) }
            }
            (_, Features::Sparse(own)) => {
                let kernel = design::resolve_sparse(&self.kernel, own, &rows.weights)?;
                Points::Sparse(SparseCentres::new(&kernel, own.select(&first))?)
            }
        };
        // Merged rows with the same inputs are consecutive.
        let of_point = |p: usize| rows.first[p]..rows.first.get(p + 1).copied().unwrap_or(rows.targets.len());
        let merged: Vec<usize> = order.iter().flat_map(|p| of_point(*p)).collect();
        let point = order.iter().enumerate().flat_map(|(place, p)| of_point(*p).map(move |_| place)).collect();
        let sample_weights: Vec<f64> = merged.iter().map(|k| rows.weights[*k]).collect();
        let targets: Vec<f64> = merged.iter().map(|k| rows.targets[*k]).collect();
        let factors = self.class_factors(&rows, classes)?;
        let factor = |t: f64| factors.get(t as usize).copied().unwrap_or(1.0);
        let weights = match classes {
            Some(_) => sample_weights.iter().zip(&targets).map(|(w, t)| w * factor(*t)).collect(),
            None => sample_weights.clone(),
        };
        let classes = if classes.is_some() { order.iter().map(|p| class(rows.first[*p])).collect() } else { vec![] };
        let copies = rows.copies.select(&merged);
        let sparse = matches!(x, Input::Sparse(_));
        Ok(Table { points, sparse, origin, point, classes, targets, weights, sample_weights, copies })
    }

    /// Returns the factors of the cost of errors of each class, `[K]`; an empty list means 1.
    fn class_factors(&self, rows: &Canonical<Features>, classes: Option<usize>) -> Result<Vec<f64>> {
        let Some(count) = classes else { return Ok(vec![]) };
        match &self.class_weights {
            ClassWeights::Equal => Ok(vec![]),
            ClassWeights::Given(weights) => {
                let expected = format!("one for each of the {count} classes");
                require(weights.len() == count, || "class_weights".into(), format!("{} numbers", weights.len()), &expected)?;
                Ok(weights.clone())
            }
            ClassWeights::Balanced => {
                let mut sums = vec![0.0; count];
                rows.targets.iter().zip(&rows.weights).for_each(|(t, w)| sums[*t as usize] += w);
                let mean = sums.iter().sum::<f64>() / count as f64;
                Ok(sums.iter().map(|sum| mean / sum).collect())
            }
        }
    }

    /// Returns the largest number of values in all cached kernel rows.
    fn numbers_kept(&self) -> usize {
        (self.cache_size * f64::from(1 << 20) / 8.0) as usize
    }

    fn assemble(
        &self,
        (n_rows, n_features): (usize, usize),
        table: &Table,
        functions: &[Function],
        classes: Option<usize>,
        rule: Option<MultiClass>,
        report: &SvmReport,
    ) -> Result<Model> {
        let mut vectors: Vec<usize> = (0..table.origin.len()).filter(|p| functions.iter().any(|f| f.beta[*p] != 0.0)).collect();
        vectors.sort_unstable_by_key(|p| table.origin[*p]);
        let weights = Array2::from_shape_fn((vectors.len(), functions.len()), |(m, c)| functions[c].beta[vectors[m]]);
        let intercept: Vec<f64> = functions.iter().map(|f| f.intercept).collect();
        if let Some(bad) = weights.iter().chain(&intercept).find(|v| !v.is_finite()) {
            return Err(Error::Overflow { what: format!("a number of the model ({bad}) in units of the target") });
        }
        let mut bounded: Vec<usize> = functions.iter().flat_map(|f| f.bounded.iter().copied()).collect();
        bounded.sort_unstable();
        bounded.dedup();
        let basis = match &table.points {
            Points::Kernel { kernel, x } if table.sparse => {
                let centres = SparseRows::from_dense(x.select(Axis(0), &vectors).view());
                FittedBasis::Sparse { kernel: kernel.clone(), centres }
            }
            Points::Kernel { kernel, x } => FittedBasis::Kernel { kernel: kernel.clone(), centres: x.select(Axis(0), &vectors) },
            Points::Sparse(points) => {
                FittedBasis::Sparse { kernel: points.kernel().clone(), centres: points.rows().select(&vectors) }
            }
            Points::Given(_) => FittedBasis::Given {},
        };
        let expansion = Expansion { basis, weights, intercept };
        Ok(Model {
            relevance: vectors.iter().map(|p| table.origin[*p]).collect(),
            status: report.status,
            iterations: report.iterations,
            margins: Some(Margins {
                formulation: self.formulation.name().into(),
                classes,
                multi_class: rule,
                vector_classes: vectors.iter().filter_map(|p| table.classes.get(*p)).copied().collect(),
                objective: functions.iter().map(|f| f.report.objective).collect(),
                bounded: bounded.len(),
                sigmoids: functions.iter().filter_map(|f| f.sigmoid).collect(),
            }),
            ..Model::of_expansion("svm", expansion, n_features, n_rows)
        })
    }
}

/// Returns the problems of all functions; `targets` contains the values or class numbers of merged rows.
fn tasks(targets: &[f64], classes: Option<usize>, rule: Option<MultiClass>) -> Vec<Task> {
    let all: Vec<usize> = (0..targets.len()).collect();
    let sign = |second: bool| if second { 1.0 } else { -1.0 };
    let Some(count) = classes else { return vec![Task { rows: all, y: targets.to_vec(), classes: String::new() }] };
    if rule == Some(MultiClass::OneVsRest) {
        let against_all = |k: usize| Task {
            rows: all.clone(),
            y: targets.iter().map(|t| sign(*t as usize == k)).collect(),
            classes: format!("class {k} and the others"),
        };
        return (0..count).map(against_all).collect();
    }
    let pair = |k: usize, l: usize| {
        let is = |n: usize, class: usize| targets[n] as usize == class;
        let rows: Vec<usize> = all.iter().copied().filter(|n| is(*n, k) || is(*n, l)).collect();
        Task { y: rows.iter().map(|n| sign(is(*n, l))).collect(), rows, classes: format!("classes {k} and {l}") }
    };
    (1..count).flat_map(|l| (0..l).map(move |k| (k, l))).map(|(k, l)| pair(k, l)).collect()
}

impl Run<'_> {
    /// Fits a function, and its sigmoid if probabilities are requested.
    fn function(&self, number: usize, task: &Task) -> Result<Function> {
        let searches = self.count / self.tasks();
        let weights: Vec<f64> = task.rows.iter().map(|n| self.table.weights[*n]).collect();
        let part = Part { rows: &task.rows, y: &task.y, weights: &weights, some: false, classes: &task.classes };
        let mut function = self.search(number * searches, &part)?;
        if self.svm.probability {
            let (sigmoid, source) = self.sigmoid(number * searches + 1, &part, &function)?;
            (function.sigmoid, function.report.probabilities) = (Some(sigmoid), Some(source));
        }
        Ok(function)
    }

    fn tasks(&self) -> usize {
        self.count / if self.svm.probability { FOLDS + 1 } else { 1 }
    }

    /// Fits the function of some rows.
    fn search(&self, number: usize, part: &Part) -> Result<Function> {
        let (svm, table) = (self.svm, self.table);
        let Part { rows, y, weights, some: is_some, classes } = *part;
        // The points of these rows only.
        let mut present: Vec<usize> = rows.iter().map(|n| table.point[*n]).collect();
        present.dedup();
        let point: Vec<usize> =
            rows.iter().map(|n| present.binary_search(&table.point[*n]).expect("rows are in the order of points")).collect();
        let some = (present.len() < self.points.count()).then(|| self.points.select(&present));
        let points = some.as_ref().unwrap_or(self.points);
        let mut formulation = svm.formulation.as_dyn();
        let examples = Examples { point: &point, y, weight: weights, some: is_some, classes };
        let mut program = formulation.program(&examples)?;
        let rules = Rules {
            tolerance: svm.tolerance,
            shrinking: svm.shrinking,
            room: self.room / self.together,
            set: smo::set_size(self.room, points.count()),
            max_iterations: svm.max_iterations.unwrap_or(MOST_STEPS.max(rows.len().saturating_mul(100))),
            interrupt: &self.interrupt,
        };
        let mut tell = |step: &Step| {
            let elapsed = self.start.elapsed();
            let progress = SvmProgress { function: (number, self.count), iteration: step.iterations, gap: step.gap, elapsed };
            match self.observer.lock() {
                Ok(mut observer) => observer(&progress),
                // An observer has panicked in another thread.
                Err(_) => ControlFlow::Break(()),
            }
        };
        let mut solution = smo::solve(&program, points, &rules, &mut tell)?;
        // A formulation whose margin vanishes may have a replacement with a cost.
        let limit = match solution.has_no_margin(&program) {
            true => formulation.without_margin(points.largest()),
            false => None,
        };
        if let Some(limit) = &limit {
            formulation = limit;
            program = formulation.program(&examples)?;
            let before = solution.iterations;
            let rules = Rules { max_iterations: rules.max_iterations - before.min(rules.max_iterations), ..rules };
            solution = smo::solve(&program, points, &rules, &mut tell)?;
            solution.iterations += before;
        }
        if let Some(distance) = solution.touching {
            return Err(Error::Inseparable { classes: classes.into(), iterations: solution.iterations, distance });
        }
        let meaning = formulation.meaning(&solution)?;
        let own = smo::beta(&program, points.count(), &solution.alpha);
        let mut beta = vec![0.0; table.points.count()];
        present.iter().zip(&own).for_each(|(p, b)| beta[*p] = meaning.scale * b);
        let at_bound = (0..program.point.len()).filter(|i| solution.alpha[*i] > 0.0 && solution.alpha[*i] >= program.bound[*i]);
        let mut bounded: Vec<usize> = at_bound.map(|i| present[program.point[i]]).filter(|p| beta[*p] != 0.0).collect();
        bounded.sort_unstable();
        bounded.dedup();
        let report = SvmFunction {
            status: solution.status,
            iterations: solution.iterations,
            objective: meaning.objective,
            gap: solution.gap,
            vectors: beta.iter().filter(|b| **b != 0.0).count(),
            bounded: bounded.len(),
            no_margin: limit.is_some(),
            probabilities: None,
        };
        Ok(Function { beta, intercept: meaning.intercept, bounded, report, sigmoid: None })
    }

    /// Returns the sigmoid of a function, and the data that it is fitted to. If each fold has rows of both classes,
    /// these are values at held-out rows.
    fn sigmoid(&self, number: usize, all: &Part, function: &Function) -> Result<([f64; 2], Probabilities)> {
        let table = self.table;
        let copies = |second: bool| -> f64 {
            let own = all.rows.iter().zip(all.y).filter(|(_, y)| (**y > 0.0) == second);
            own.map(|(n, _)| table.copies.count(*n)).sum()
        };
        let held_out = match copies(true).min(copies(false)) >= FOLDS as f64 {
            true => self.held_out(number, all)?,
            false => None,
        };
        let second = |rows: &[usize]| rows.iter().map(|i| all.y[*i] > 0.0).collect::<Vec<bool>>();
        if let Some(HeldOut { places, values, weights }) = held_out {
            let sigmoid = platt::fit(&values, &second(&places), &weights);
            let flat = sigmoid[0] == 0.0;
            return Ok((sigmoid, if flat { Probabilities::ClassFrequencies } else { Probabilities::CrossValidation }));
        }
        let at: Vec<usize> = all.rows.iter().map(|n| table.point[*n]).collect();
        let values: Vec<f64> = self.points.times(&at, &function.beta).into_iter().map(|f| f + function.intercept).collect();
        let rows: Vec<usize> = (0..all.rows.len()).collect();
        let slope = platt::through_zero(&values, &second(&rows), all.weights, copies(true).min(copies(false)));
        Ok(([slope, 0.0], Probabilities::TrainingRows))
    }

    /// Returns values at the rows of a function by functions of the other folds; `None` if a fold has no function.
    fn held_out(&self, number: usize, all: &Part) -> Result<Option<HeldOut>> {
        let table = self.table;
        let folds = table.copies.deal(all.rows, |i| all.y[i], true, FOLDS, self.svm.seed);
        let mut out = HeldOut::default();
        for (k, fold) in folds.iter().enumerate() {
            let kept = all_but(&folds, k);
            let rows: Vec<usize> = kept.iter().map(|(i, _)| all.rows[*i]).collect();
            let y: Vec<f64> = kept.iter().map(|(i, _)| all.y[*i]).collect();
            let share = |i: usize, weight: f64| weight / table.sample_weights[all.rows[i]];
            let costs: Vec<f64> = kept.iter().map(|(i, weight)| all.weights[*i] * share(*i, *weight)).collect();
            let part = Part { rows: &rows, y: &y, weights: &costs, some: true, classes: all.classes };
            let function = match self.search(number + k, &part) {
                // With these rows the share leaves no margin.
                Err(Error::Parameter { .. }) => return Ok(None),
                other => other?,
            };
            let at: Vec<usize> = fold.iter().map(|(i, _)| table.point[all.rows[*i]]).collect();
            let found = self.points.times(&at, &function.beta);
            out.values.extend(found.into_iter().map(|f| f + function.intercept));
            out.places.extend(fold.iter().map(|(i, _)| *i));
            out.weights.extend(fold.iter().map(|(_, weight)| *weight));
        }
        Ok(Some(out))
    }
}
