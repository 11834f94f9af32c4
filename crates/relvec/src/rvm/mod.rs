//! Relevance vector machines: parameters and the loop.

mod evaluate;

/// What a user asks for: parameters, their defaults and checks.
mod settings {
    pub(crate) mod policy;
    pub(crate) mod presets;
    pub(crate) mod search;
    pub(crate) mod sparsity;
}

/// The training set: rows, targets and candidates of one fit, in units of its own.
mod data {
    pub(crate) mod blocks;
    pub(crate) mod factors;
    pub(crate) mod keep;
    pub(crate) mod landmarks;
    pub(crate) mod table;
}

/// Products over the rows: columns of unit norm, their Gram matrix, sums of the likelihood.
mod gram {
    pub(crate) mod all_sums;
    pub(crate) mod low_rank;
    pub(crate) mod problem;
    pub(crate) mod slopes;
}

/// The posterior of the weights and the evidence at given precisions, and what changing these gains.
mod evidence {
    pub(crate) mod batch;
    pub(crate) mod conjugate;
    pub(crate) mod empty;
    pub(crate) mod factor;
    pub(crate) mod finish;
    pub(crate) mod gain;
    pub(crate) mod laplace;
    pub(crate) mod lbfgs;
    pub(crate) mod logistic;
    pub(crate) mod multinomial;
    pub(crate) mod sensitivity;
    pub(crate) mod solution;
    pub(crate) mod workspace;
}

/// Which basis functions and precisions: the loop, the schemes, and working sets of large dictionaries.
mod search {
    pub(crate) mod by_class;
    pub(crate) mod delete;
    pub(crate) mod em;
    pub(crate) mod grow;
    pub(crate) mod in_time;
    pub(crate) mod mackay;
    pub(crate) mod parts;
    pub(crate) mod pooled;
    pub(crate) mod reestimation;
    pub(crate) mod rounds;
    pub(crate) mod running;
    pub(crate) mod sampled;
    pub(crate) mod scheme;
    pub(crate) mod score;
    pub(crate) mod sequential;
    pub(crate) mod settle;
    pub(crate) mod start;
    pub(crate) mod variational;
    pub(crate) mod watch;
}

/// What a fit learns beside precisions: the kernel, the centres, and the prior of a Gaussian process.
mod learn {
    pub(crate) mod choice;
    pub(crate) mod dense;
    pub(crate) mod fitc;
    pub(crate) mod fitc_kernel;
    pub(crate) mod frame;
    pub(crate) mod kernel;
    pub(crate) mod label_kernel;
    pub(crate) mod label_model;
    pub(crate) mod labels;
    pub(crate) mod learned;
    pub(crate) mod link;
    pub(crate) mod many;
    pub(crate) mod moved;
    pub(crate) mod pivots;
    pub(crate) mod process;
    pub(crate) mod rows;
    pub(crate) mod scales;
    pub(crate) mod shared;
}

/// Fits that are made of fits: functions of a training set.
mod compose {
    pub(crate) mod committee;
    pub(crate) mod growth;
    pub(crate) mod interpolation;
    pub(crate) mod outputs;
    pub(crate) mod robust;
    pub(crate) mod validation;
}

use std::time::{Duration, Instant};

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use self::compose::committee::Classes;
use self::compose::interpolation::judged;
use self::compose::validation::Validated;
use self::compose::{committee, robust};
use self::data::table::Table;
use self::evidence::workspace::Workspace;
use self::evidence::{empty, finish};
use self::gram::problem::Problem;
use self::learn::scales::Settled;
use self::learn::{moved, scales};

use self::search::by_class::ClassSearch;
use self::search::parts::{Parts, Warm};
use self::search::scheme::{Aim, Entry, Run};
use self::search::watch::Watch;
use self::search::{in_time, pooled, sampled};
use crate::design::Basis;
use crate::error::{Error, Result, require, require_threads};
use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::likelihood::{Likelihood, NoiseModel};
use crate::memory;
use crate::model::{Model, PosteriorRule, Variance};
use crate::report::{Actions, CentreSearch, Interrupt, Observer, PrecisionPosterior, Report, Status};
use crate::statistics::Statistics;
use crate::sums::Sums;
use crate::targets::{ClassPrecisions, MultiClass, Targets, Values, check_present};

pub use self::data::landmarks::{Centres, Dictionary, DictionaryRule, Landmarks};
pub use self::evaluate::{ActionKind, ColumnAction, Evaluation, Hyperparameters};
pub use self::learn::learned::LearnedKernel;
pub use self::learn::moved::CentreRule;
pub use self::learn::process::WeightPrior;
pub use self::search::em::Em;
pub use self::search::mackay::MacKay;
pub use self::search::scheme::Start;
pub use self::search::scheme::{Hyperpriors, Inference};
pub use self::search::sequential::Sequential;
pub use self::search::variational::Variational;
pub use self::settings::policy::Policy;
pub use self::settings::search::Search;
pub use self::settings::sparsity::{Sparsity, SparsityRule};

/// A relevance vector machine to be trained.
///
/// The defaults learn the kernel. Regression with Gaussian noise has the prior of a Gaussian process, as have classes on at most
/// 3,000 rows; elsewhere each weight has a precision of its own. [`Rvm::tipping2001`] has the settings of the papers.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use relvec::{Rvm, Targets};
///
/// let x = Array2::from_shape_fn((50, 1), |(i, _)| -10.0 + 0.4 * i as f64);
/// let t: Array1<f64> = x.column(0).mapv(|x| if x == 0.0 { 1.0 } else { x.sin() / x });
/// let (model, report) = Rvm::default().fit(x.view(), &Targets::real(t.view()), &mut relvec::silent)?;
/// let prediction = model.predict(x.view())?;
/// assert!((prediction.mean[25] - t[25]).abs() < 0.05);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rvm {
    /// The kernel; not used with [`Basis::Given`].
    pub kernel: Kernel,
    /// Kernels to choose among by their posterior (above 3,000 rows by their evidence), instead of `kernel`; empty: only that
    /// one.
    pub kernels: Vec<Kernel>,
    /// Where the basis functions come from.
    pub basis: Basis,
    /// With a kernel: how many training rows are candidates for relevance vectors.
    pub dictionary: Dictionary,
    /// How they are chosen where they are not all.
    pub landmarks: Landmarks,
    /// Whether they stay at their rows; if not, up to 800 (or as many as the model has) are moved. Of several classes
    /// in one model of all alone.
    pub centres: CentreRule,
    /// Rounds in which landmarks that the model does not use are replaced by other rows, drawn at random;
    /// needs the scheme `search` and a dictionary of a given size, less than 1,000 (500 for classes).
    pub refresh: usize,
    /// Whether there is a bias (intercept), with its own precision, which may be pruned.
    pub bias: bool,
    /// How targets depend on the function: regression or classification.
    pub likelihood: Likelihood,
    /// How more than two classes are told apart where the likelihood is that of two.
    pub multi_class: MultiClass,
    /// Whether the weights of a basis function share a precision, where all classes have one model. With one for each
    /// class a basis function may be of use to some of them only, (M63); the search goes on from the shared ones. Of
    /// two classes with one function, and of regression, there is nothing to share.
    pub class_precisions: ClassPrecisions,
    /// How precisions are learnt.
    pub inference: Inference,
    /// How the posterior of the weights at these precisions is approximated in the end; of the scheme `variational`, which
    /// has its own, not `averaged`.
    pub posterior: PosteriorRule,
    /// What each kernel must gain, in nats, or how that is chosen; other than 0 needs the scheme `search`.
    pub sparsity: Sparsity,
    /// Folds of a cross-validation whose scores go into the report, >= 2; `None`: none, or 5 where something is
    /// chosen by it (fewer where there are fewer rows, or fewer rows of a class). The kernel is that of the fit to all
    /// rows. Equal rows are spread over the folds as other rows are; a row whose weight is a whole number w counts as w
    /// equal rows, and a row of any other weight stays whole.
    pub cv: Option<usize>,
    /// Whether predictive variances are multiplied by what cross-validation finds them to be too small by; regression.
    pub calibrate: bool,
    /// The prior of the weights, (M4), (M70), or of classes (M80).
    pub weight_prior: WeightPrior,
    /// Under a process prior: rows become centres until what they leave is at most this, > 0; `None`: 0.3 in regression (above 3,000
    /// rows 0.01), 0.005 for classes. In regression it is the mean of the prior's residual variance at the rows over the noise variance, (M71): of 0.3
    /// predictions lose 0.02 nats to those of a process on all rows; 0.1 takes a third more centres for half of that. For classes
    /// it is the mean divergence of the probabilities from those of all rows in nats, (M85).
    pub residual: Option<f64>,
    /// The variance that predictions of the model have; `healed` keeps rows. Regression with a kernel. `None`: under a process
    /// prior its own, else `healed` where that is possible.
    pub variance: Option<Variance>,
    /// Training rows that the model keeps for a healed variance (of more, a sample, which leaves means as they are),
    /// >= 1; `None`: at most 2,000 where that variance is used.
    pub keep_rows: Option<usize>,
    /// Whether the model keeps sums over its rows at the landmarks, to which further rows can be added, see
    /// [`Rvm::fit_more`]; regression, and a dictionary of a given size, or given landmarks.
    pub keep_statistics: bool,
    /// Largest number of iterations, >= 1.
    pub max_iterations: usize,
    /// Largest wall-clock time of a fit in seconds, > 0; `None`: no limit. The best model so far is returned; where the first
    /// look at all rows, which comes before any model, would take too long, one of a sample of the rows, or of some candidates.
    pub time_limit: Option<f64>,
    /// Most memory that a fit may take, in bytes; `None`: a quarter of the machine's.
    pub memory_limit: Option<u64>,
    /// Threads, from 1 to [`MOST_THREADS`](crate::MOST_THREADS); `None`: as many as there are processors. Results do not
    /// depend on it.
    pub threads: Option<usize>,
    /// Seed of the random choices (of the dictionary, and of a starting set when it is large).
    pub seed: u64,
}

/// An observer that does nothing.
pub fn silent<P>(_: &P) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}

impl Default for Rvm {
    fn default() -> Self {
        Rvm {
            kernel: Kernel::Rbf(crate::Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }),
            kernels: vec![],
            basis: Basis::Kernel,
            dictionary: Dictionary::default(),
            landmarks: Landmarks::default(),
            centres: CentreRule::Fixed,
            refresh: 0,
            bias: true,
            likelihood: Likelihood::Gaussian(crate::Gaussian::default()),
            multi_class: MultiClass::default(),
            class_precisions: ClassPrecisions::default(),
            inference: Inference::Search(Search::default()),
            posterior: PosteriorRule::default(),
            sparsity: Sparsity::default(),
            cv: None,
            calibrate: false,
            weight_prior: WeightPrior::default(),
            residual: None,
            variance: None,
            keep_rows: None,
            keep_statistics: false,
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
            self.kernels.iter().try_for_each(Kernel::check)?;
        }
        self.likelihood.check()?;
        self.inference.as_dyn().check(&format!("inference.{}", self.inference.name()))?;
        self.sparsity.check()?;
        let expected = "0: the other schemes weigh no single kernels; or the scheme search";
        let searches = matches!(self.inference, Inference::Search(_));
        let found = || serde_json::to_string(&self.sparsity).unwrap_or_default();
        require(searches || !self.sparsity.is_asked(), || "sparsity".into(), found(), expected)?;
        if matches!(self.likelihood, Likelihood::Softmax(_)) {
            let (rule, scheme) = (self.multi_class, self.inference.name());
            let expected = "auto or joint, or the likelihood bernoulli: under the softmax there is one model of all classes";
            let joint = matches!(rule, MultiClass::Auto | MultiClass::Joint);
            require(joint, || "multi_class".into(), rule.name(), expected)?;
            let expected =
                "search, sequential, mackay or em for several classes at once; or multi_class one_vs_rest or one_vs_one";
            require(scheme != Variational::NAME, || "inference".into(), scheme, expected)?;
        }
        self.check_class_precisions()?;
        let own = self.posterior != PosteriorRule::Averaged || self.inference.name() != Variational::NAME;
        let expected =
            "auto or laplace, or the scheme search, sequential, mackay or em: the scheme variational has a posterior of its own";
        require(own, || "posterior".into(), self.posterior.name(), expected)?;
        require(self.cv.is_none_or(|folds| folds >= 2), || "cv".into(), self.cv.unwrap_or(0), "at least 2 folds, or null")?;
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: it is variances of regression with Gaussian noise that are calibrated";
        require(gaussian || !self.calibrate, || "calibrate".into(), true, expected)?;
        require(self.keep_rows != Some(0), || "keep_rows".into(), 0, "at least 1 row, or null")?;
        let (healed, rows) = (self.variance == Some(Variance::Healed), self.keep_rows.is_some());
        let name = if healed { ("variance", "healed", "posterior") } else { ("keep_rows", "a number", "null") };
        let possible = gaussian && self.basis == Basis::Kernel;
        let expected = format!("{}: a basis function at a new row needs Gaussian noise and a kernel of this crate", name.2);
        require(possible || !(healed || rows), || name.0.into(), name.1, &expected)?;
        self.check_statistics()?;
        self.check_weight_prior()?;
        let likelihood = self.likelihood.as_dyn();
        let suits = likelihood.has_variational_bound() || self.inference.name() != Variational::NAME;
        require(suits || likelihood.classifies(), || "inference".into(), Variational::NAME, &{
            format!("search, sequential, mackay or em: there is no bound for the likelihood {}", self.likelihood.name())
        })?;
        let fixed = self.centres == CentreRule::Fixed || likelihood.scale_mixture().is_none();
        require(fixed, || "centres".into(), "learned", "fixed: under Student-t noise centres stay at their rows")?;
        if let Dictionary::Size(size) = self.dictionary {
            let name = || "dictionary".into();
            require(size >= 1, name, size, "a whole number of at least 1, \"all\" or \"auto\"")?;
            let expected = "all or auto: of a given design matrix, every column is a candidate";
            require(self.basis == Basis::Kernel, name, size, expected)?;
        }
        let most = self.inference.as_dyn().most_columns(self.likelihood.as_dyn().constant_curvature());
        let small = matches!(self.dictionary, Dictionary::Size(size) if most.is_some_and(|most| size < most));
        let expected = "0, or the scheme search and a dictionary of a given size of rows, less than 1000 (500 for classes)";
        let rows = !matches!(self.landmarks, Landmarks::Given(_));
        require(self.refresh == 0 || small && rows, || "refresh".into(), self.refresh, expected)?;
        if self.centres == CentreRule::Learned {
            let name = || "centres".into();
            let expected =
                "fixed, or neither cv, calibrate nor sparsity = cv: centres that have seen all rows tell nothing of new ones";
            require(!self.validates(), name, "learned", expected)?;
            require(self.basis == Basis::Kernel, name, "learned", "fixed: columns of a design matrix have no centres")?;
            require(rows, name, "learned", "fixed: the landmarks are given")?;
            require(self.refresh == 0, name, "learned", "fixed, or refresh = 0: landmarks are moved or replaced, not both")?;
            for kernel in self.to_try() {
                let expected = format!("fixed: the kernel {} has no gradient in its centres", kernel.name());
                require(kernel.moves_centres(), name, "learned", &expected)?;
            }
        }
        require(self.max_iterations >= 1, || "max_iterations".into(), self.max_iterations, "a whole number of at least 1")?;
        let limit = self.time_limit.unwrap_or(1.0);
        require(limit.is_finite() && limit > 0.0, || "time_limit".into(), limit, "a positive number of seconds, or null")?;
        require_threads(self.threads)
    }

    fn check_class_precisions(&self) -> Result<()> {
        let asked = self.class_precisions == ClassPrecisions::PerClass;
        let check = |good: bool, expected: &str| {
            require(good || !asked, || "class_precisions".into(), self.class_precisions.name(), expected)
        };
        let expected = "shared: only classes can have precisions of their own";
        check(self.likelihood.is_for_classes(), expected)?;
        let joint = matches!(self.multi_class_rule(), MultiClass::Auto | MultiClass::Joint);
        check(joint, "shared, or multi_class = joint: models of two classes each have their own already")?;
        let flat = !self.sparsity.is_asked() && self.inference.as_dyn().hyperpriors() == Hyperpriors::default();
        check(flat, "shared, or neither sparsity nor hyperpriors: it is weights that leave a model then, not kernels")
    }

    /// Whether each class of such targets has precisions of its own.
    fn by_class(&self) -> bool {
        self.class_precisions == ClassPrecisions::PerClass && self.likelihood.as_dyn().couples_classes()
    }

    /// Bytes that a fit may take: the limit, or a quarter of the machine's memory.
    pub fn memory_allowed(&self) -> u64 {
        memory::allowed(self.memory_limit)
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
        let Some((labels, count)) = self.several(targets)? else {
            let (model, report) = self.pool()?.install(|| self.run(x, targets, observer, interrupt))?;
            return Ok(judged((Model { class_frequencies: targets.class_frequencies(), ..model }, report), targets.unused()));
        };
        let rule = self.multi_class_rule();
        if rule == MultiClass::Joint {
            return self.joint().fit_interruptible(x, targets, observer, interrupt);
        }
        if self.validates() {
            let reason = "cross-validation is not available where several models vote; multi_class = joint has it";
            return Err(self.no_validation(reason));
        }
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let weights = targets.checked_weights()?;
        check_present(labels, count, weights.as_deref())?;
        let expected = "fixed, or multi_class = joint: where several models vote each would move them elsewhere";
        require(self.centres == CentreRule::Fixed, || "centres".into(), "learned", expected)?;
        let start = Instant::now();
        self.refuse_process(&format!("multi_class = {}: regression on labels has one model of all classes", rule.name()))?;
        let mut own = Rvm { multi_class: rule, weight_prior: WeightPrior::Ard, ..self.clone() };
        let mut kernel_search = None;
        if self.basis == Basis::Kernel {
            // One kernel for all members, by the rows of all classes.
            let interrupt = interrupt.for_one_fit(self.deadline(start));
            let settled = self.pool()?.install(|| {
                let (joint, plain) = (own.joint(), own.joint().with_stand_in());
                joint.settle_kernel(&Table::new(&plain, x, targets, &interrupt)?, start)
            })?;
            (own.kernel, kernel_search) = (settled.kernel, settled.search);
            own.kernels = vec![];
        }
        let classes = Classes { x, labels, count, weights };
        let (model, report) = committee::fit(&own, &classes, start, observer, interrupt)?;
        let class_frequencies = targets.class_frequencies();
        Ok(judged((Model { class_frequencies, ..model }, Report { kernel_search, ..report }), targets.unused()))
    }

    /// The same with any kernel in place of one that is to be learnt: the rows of a table do not depend on it.
    fn with_stand_in(&self) -> Rvm {
        let kernel = if self.learns_kernel() { Kernel::Rbf(crate::Rbf::default()) } else { self.kernel.clone() };
        Rvm { kernel, kernels: vec![], ..self.clone() }
    }

    /// The kernel for the rows of a table, every parameter a number, and how it was found if it was learnt.
    fn settle_kernel(&self, table: &Table, start: Instant) -> Result<Settled> {
        match self.learns_kernel() {
            true => self.check_covariances(table).and_then(|()| scales::choose(self, table, start)),
            false => Ok(Settled { kernel: self.kernel.resolve(&table.data_scale())?, search: None, learnt: None }),
        }
    }

    /// Labels and number of classes where there are more than the likelihood of two can tell apart.
    fn several<'t>(&self, targets: &Targets<'t>) -> Result<Option<(&'t [usize], usize)>> {
        match (&self.likelihood, targets.values) {
            (Likelihood::Bernoulli(_), Values::Classes { labels, count }) if count > 2 => Ok(Some((labels, count))),
            _ => Ok(None),
        }
    }

    fn multi_class_rule(&self) -> MultiClass {
        match (self.multi_class, &self.inference) {
            (MultiClass::Auto, Inference::Variational(_)) => MultiClass::OneVsRest,
            (MultiClass::Auto, _) => MultiClass::Joint,
            (rule, _) => rule,
        }
    }

    /// The same for one model of all classes.
    fn joint(&self) -> Rvm {
        Rvm { likelihood: Likelihood::Softmax(crate::Softmax::default()), ..self.clone() }
    }

    /// What models are compared by: the log evidence, and the log prior of the kernels.
    fn objective(&self, model: &Model) -> f64 {
        model.log_evidence.unwrap_or(f64::NEG_INFINITY) - self.nats() * model.relevance.len() as f64
    }

    /// Whether the relevance of a model counts rows of the training table.
    fn picks_rows(&self) -> bool {
        self.basis == Basis::Kernel && !matches!(self.landmarks, Landmarks::Given(_))
    }

    /// Threads of our own: the caller's global pool is left alone.
    fn pool(&self) -> Result<rayon::ThreadPool> {
        crate::linalg::thread_pool(self.threads)
    }

    /// As [`Rvm::fit`] for rows of which only the sums are known. The kernel, its centres and so the
    /// dictionary are those of the statistics; the relevance of the model counts the centres.
    ///
    /// # Errors
    /// Parameters out of range, another likelihood than Gaussian, fewer than 2 rows, too little memory.
    pub fn fit_statistics(&self, statistics: &Statistics, observer: &mut Observer) -> Result<(Model, Report)> {
        self.fit_statistics_interruptible(statistics, observer, &Interrupt::default())
    }

    /// As [`Rvm::fit_statistics`]; another thread may end it by `interrupt`.
    ///
    /// # Errors
    /// As [`Rvm::fit_statistics`]; and [`Error::Interrupted`].
    pub fn fit_statistics_interruptible(
        &self,
        statistics: &Statistics,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.fit_sums(statistics, None, observer, interrupt)
    }

    /// The same; `from`: a model of such sums to go on from, if there is one.
    fn fit_sums(
        &self,
        statistics: &Statistics,
        from: Option<&Hyperparameters>,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        // What says where columns come from does not apply.
        let own = Rvm { kernel: statistics.kernel().clone(), ..self.without_dictionary() };
        own.check()?;
        if own.validates() {
            return Err(own.no_validation("cross-validation needs the rows, and only sums over them are known"));
        }
        let expected = "posterior, and no rows to keep: of the rows only sums are known";
        require(!own.keeps_rows(), || "variance".into(), Variance::Healed.name(), expected)?;
        own.refuse_process("sums over rows: they do not give the posterior under a process prior")?;
        let plain = own.likelihood.as_dyn().scale_mixture().is_none();
        let expected = "gaussian: what rows count for under Student-t noise needs the rows themselves";
        require(plain, || "likelihood".into(), own.likelihood.name(), expected)?;
        own.pool()?.install(|| {
            let (start, interrupt) = (Instant::now(), interrupt.for_one_fit(own.deadline(Instant::now())));
            let (table, sums) = Table::of_statistics(&own, statistics, &interrupt)?;
            own.learn_from(&table, Some(sums), from, &mut own.watch(observer, &interrupt, start)).map(|fitted| judged(fitted, 0))
        })
    }

    fn without_dictionary(&self) -> Rvm {
        let default = Rvm::default();
        Rvm {
            basis: default.basis,
            dictionary: Dictionary::Rule(DictionaryRule::All),
            landmarks: default.landmarks,
            centres: default.centres,
            kernels: vec![],
            refresh: 0,
            keep_statistics: false,
            ..self.clone()
        }
    }

    fn run(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let start = Instant::now();
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        if !self.learns_basis() {
            let table = Table::new(self, x, targets, &interrupt)?;
            let (model, report) = self.learn_validated(&table, observer, &interrupt, start)?;
            let report = self.with_row_weights(x, targets, &model, report)?;
            let feature_relevance = scales::feature_relevance(&table, &model);
            let model = self.with_kept_rows(&table, Model { feature_relevance, ..model }, None)?;
            return Ok((self.with_kept_statistics(&table, x, targets, model)?, report));
        }
        let plain = self.with_stand_in();
        let table = Table::new(&plain, x, targets, &interrupt)?;
        let Settled { kernel, search: kernel_search, learnt } = match self.likelihood.as_dyn().scale_mixture() {
            // By rows that count for what they do in a fit with the kernel that learning begins from.
            Some(mixture) if self.learns_kernel() && !table.repairs.constant_target => {
                let mut quiet = silent;
                let (model, _) = plain.learn(&table, None, &mut plain.watch(&mut quiet, &interrupt, start))?;
                self.settle_kernel(&robust::weighted(&plain, &table, mixture, &model)?, start)?
            }
            _ => self.settle_kernel(&table, start)?,
        };
        let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
        let table = table.with(&own, &kernel, None).with_learnt(&own, &kernel, learnt.as_ref());
        let (model, report) = own.learn_validated(&table, observer, &interrupt, start)?;
        let nothing_found = report.nothing_found || !self.keep_statistics && learnt.is_some_and(|learnt| !learnt.has_structure);
        let report = Report { nothing_found, ..report };
        let (model, report) = match self.centres {
            _ if nothing_found => (model, report),
            CentreRule::Learned if report.status != Status::Stopped => {
                let with_kernel = kernel_search.as_ref().is_some_and(|search| search.tried[search.chosen].evaluations > 0);
                own.with_moved_centres(&table, (model, report), with_kernel, observer, &interrupt, start)?
            }
            _ => (model, report),
        };
        let report = self.with_row_weights(x, targets, &model, report)?;
        let feature_relevance = scales::feature_relevance(&table, &model);
        let model = self.with_kept_rows(&table, Model { feature_relevance, ..model }, None)?;
        Ok((self.with_kept_statistics(&table, x, targets, model)?, Report { kernel_search, ..report }))
    }

    /// With what each row counts for under Student-t noise.
    fn with_row_weights(&self, x: ArrayView2<f64>, targets: &Targets, model: &Model, report: Report) -> Result<Report> {
        match (self.likelihood.as_dyn().scale_mixture(), targets.values, model.noise_degrees()) {
            (Some(_), Values::Real(t), Some(_)) => {
                let row_weights = robust::row_weights(t, model, x)?;
                Ok(Report { row_weights, ..report })
            }
            _ => Ok(report),
        }
    }

    /// The better of the fit to `table` and one whose centres the gradient has moved.
    fn with_moved_centres(
        &self,
        table: &Table,
        fixed: (Model, Report),
        with_kernel: bool,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let Some(moved) = moved::learn(self, table, &fixed.0, with_kernel, start)? else { return Ok(fixed) };
        let seconds = begin.elapsed().as_secs_f64();
        let search = |learned: f64, kept: bool| {
            Some(CentreSearch {
                moved: moved.centres.nrows(),
                rows: moved.rows,
                evaluations: moved.evaluations,
                fixed_log_evidence: self.objective(&fixed.0),
                learned_log_evidence: learned,
                kept,
                seconds,
            })
        };
        // Learnt centres have precisions.
        let own = Rvm { kernel: moved.kernel.clone(), weight_prior: WeightPrior::Ard, ..self.without_dictionary() };
        let table = table.with_centres(&own, &moved.kernel, moved.centres.clone());
        let (model, report) = own.learn(&table, None, &mut own.watch(observer, interrupt, start))?;
        let learned = self.objective(&model);
        if learned > self.objective(&fixed.0) {
            let model = Model { learned_centres: true, ..model };
            return Ok((model, Report { centre_search: search(learned, true), ..report }));
        }
        let centre_search = search(learned, false);
        Ok((fixed.0, Report { centre_search, ..fixed.1 }))
    }

    fn deadline(&self, start: Instant) -> Option<Instant> {
        // A limit beyond what the clock can tell is none.
        self.time_limit.and_then(|limit| start.checked_add(Duration::try_from_secs_f64(limit).ok()?))
    }

    fn watch<'o, 'f>(&self, observer: &'o mut Observer<'f>, interrupt: &Interrupt, start: Instant) -> Watch<'o, 'f> {
        let limit = self.deadline(start).map(|end| end - start);
        Watch::new(observer, interrupt.clone(), start, self.max_iterations, limit)
    }

    /// Whether there is to be a cross-validation.
    fn validates(&self) -> bool {
        self.cv.is_some() || self.chooses_sparsity() || self.calibrate
    }

    /// The error that cross-validation is not possible, by the parameter that asks for it.
    fn no_validation(&self, reason: &str) -> Error {
        let (name, found, instead) = match self.cv {
            Some(folds) => ("cv", folds.to_string(), "null"),
            None if self.chooses_sparsity() => ("sparsity", "\"cv\"".into(), "a number"),
            None => ("calibrate", "true".into(), "false"),
        };
        Error::Parameter { name: name.into(), found, expected: format!("{instead}: {reason}") }
    }

    fn chooses_sparsity(&self) -> bool {
        self.sparsity == Sparsity::Rule(SparsityRule::Cv)
    }

    /// The fit, with cross-validation if that is asked for.
    fn learn_validated(
        &self,
        table: &Table,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        match self.validates() {
            true => {
                // The folds, which have fewer rows, have the prior of all.
                let weight_prior = if self.has_process(table)? { WeightPrior::Process } else { WeightPrior::Ard };
                let own = Rvm { weight_prior, ..self.clone() };
                Validated { folds: self.cv, observer, interrupt: interrupt.clone(), start }.fit(&own, table)
            }
            false => self.learn(table, None, &mut self.watch(observer, interrupt, start)),
        }
    }

    /// The fit to a table, from `sums` if they are known.
    fn learn(&self, table: &Table, sums: Option<Sums>, watch: &mut Watch) -> Result<(Model, Report)> {
        self.learn_from(table, sums, None, watch)
    }

    /// The same; `from`: a model of that table to go on from, if there is one.
    fn learn_from(
        &self,
        table: &Table,
        sums: Option<Sums>,
        from: Option<&Hyperparameters>,
        watch: &mut Watch,
    ) -> Result<(Model, Report)> {
        if self.regresses_labels(table)? {
            return self.fit_labels(table, watch);
        }
        if self.fits_many(table)? {
            return self.fit_many(table, watch);
        }
        memory::keep_freed();
        let known = sums.is_some() || from.is_some();
        let sample = self.rows_in_time(table, watch.left().filter(|_| !known))?;
        let table = sample.as_ref().unwrap_or(table);
        let fitted = match self.likelihood.as_dyn().scale_mixture() {
            // Where there are factors already, they are held.
            Some(mixture) if table.factors.is_none() => robust::fit(self, table, mixture, watch),
            _ => self.search(table, sums, from, false, watch),
        }?;
        let fitted = self.with_process(table, fitted)?;
        Ok(if sample.is_some() { in_time::of_sample(fitted) } else { fitted })
    }

    /// Part after part of the dictionary (mostly the first is all of it) until none would help any more. `start`: the
    /// model to go on from; `brief`: with one excursion at most where the dictionary is one part.
    fn search(
        &self,
        table: &Table,
        sums: Option<Sums>,
        start: Option<&Hyperparameters>,
        brief: bool,
        watch: &mut Watch,
    ) -> Result<(Model, Report)> {
        if start.is_some() {
            return self.search_from(table, sums, start, None, brief, watch);
        }
        let hasty = sampled::hasty(self, table, watch)?;
        if hasty.is_some() {
            // There is a model to return from now on.
            table.interrupt.arm();
        }
        let found = sampled::start(self, table, watch)
            .and_then(|sampled| self.search_from(table, sums, None, sampled.as_ref(), brief, watch));
        table.interrupt.disarm();
        let hasty = hasty.map(|(model, report)| (model, Report { seconds: watch.elapsed().as_secs_f64(), ..report }));
        match (found, hasty) {
            (Err(Error::Interrupted), Some(hasty)) if !table.interrupt.is_raised_by_hand() => Ok(in_time::of_sample(hasty)),
            // Of all rows there is but the first model, which has no basis function.
            (Ok((model, _)), Some(hasty)) if model.status == Status::TimeLimit && model.relevance.is_empty() => {
                Ok(in_time::of_sample(hasty))
            }
            (found, _) => found,
        }
    }

    /// The same; `sampled`: the model of a sample to begin at, if there is one.
    fn search_from(
        &self,
        table: &Table,
        sums: Option<Sums>,
        start: Option<&Hyperparameters>,
        sampled: Option<&Model>,
        brief: bool,
        watch: &mut Watch,
    ) -> Result<(Model, Report)> {
        let scheme = self.inference.as_dyn();
        let fresh = start.is_none() && sampled.is_none();
        let pooled = if fresh { pooled::start(self, table, watch)? } else { None };
        let keep = match (start, sampled, &pooled) {
            (Some(start), ..) => start.places(table),
            (_, Some(model), _) => Hyperparameters::of(model).places(table),
            (.., Some((pool, _))) => pool.clone(),
            _ => scheme.first_candidates(table),
        };
        let (mut parts, mut places) = Parts::new(table, &keep, fresh, brief);
        let (mut start, mut sampled) = (start, sampled);
        let mut given = sums;
        let mut actions = Actions::default();
        let mut from = pooled.map(|(_, warm)| warm);
        loop {
            // What there is to return if the time is up before this part is under way.
            let last = from.clone().or_else(|| parts.best()).filter(|_| table.height() > 0);
            let made = match given.take() {
                Some(sums) => {
                    let (problem, sums) = Problem::of_sums(table, places, sums);
                    Ok((problem, Some(sums)))
                }
                None => parts.problem(table, places),
            };
            let (problem, sums) = match made {
                Ok(made) => made,
                Err(error) => return self.cut_short(error, last, table, watch, &parts, actions),
            };
            let work = Workspace::new(&problem, sums);
            if let Some(start) = start.take() {
                from = Some(Warm::at(&problem, start)?);
            }
            if let Some(model) = sampled.take() {
                from = Some(Warm::near(&problem, model)?);
            }
            let mut run = match scheme.start(&work, &Entry { from: from.take(), aim: parts.aim() }) {
                Ok(run) => run,
                Err(error) => return self.cut_short(error, last, table, watch, &parts, actions),
            };
            let mut status = watch.drive(&mut *run, &work)?;
            if status == Status::Converged {
                match parts.next(&work, run.best(), scheme.least_gain(table.count, run.best())) {
                    Ok(None) => {}
                    Ok(Some((next, warm))) => {
                        actions.add(&run.actions());
                        (places, from) = (next, warm);
                        continue;
                    }
                    Err(Error::Interrupted) if watch.is_late() => status = Status::TimeLimit,
                    Err(error) => return Err(error),
                }
            }
            table.interrupt.disarm();
            if let Some(best) = parts.better_than(run.best().log_evidence) {
                actions.add(&run.actions());
                return self.end_with(best, status, table, watch, &parts, actions);
            }
            return self.conclude(&work, &*run, status, watch, &parts, actions);
        }
    }

    /// Ends with the `last` model if it is the time that has ended the search between two parts.
    fn cut_short(
        &self,
        error: Error,
        last: Option<Warm>,
        table: &Table,
        watch: &mut Watch,
        parts: &Parts,
        actions: Actions,
    ) -> Result<(Model, Report)> {
        match (error, last) {
            (Error::Interrupted, Some(last)) if watch.is_late() => {
                self.end_with(last, Status::TimeLimit, table, watch, parts, actions)
            }
            (error, _) => Err(error),
        }
    }

    /// Ends with a model that is not that of the last search.
    fn end_with(
        &self,
        model: Warm,
        status: Status,
        table: &Table,
        watch: &mut Watch,
        parts: &Parts,
        actions: Actions,
    ) -> Result<(Model, Report)> {
        table.interrupt.disarm();
        let mut places = model.kept();
        places.sort_unstable();
        let (problem, sums) = Problem::new(table, places)?;
        let work = Workspace::new(&problem, sums);
        let run = self.inference.as_dyn().start(&work, &Entry { from: Some(model), aim: Aim::Rest })?;
        self.conclude(&work, &*run, status, watch, parts, actions)
    }

    /// Shape of q(beta); `None` where the noise precision is a number.
    fn noise_shape(&self, table: &Table) -> Option<f64> {
        match (&self.inference, self.likelihood.as_dyn().noise()) {
            (Inference::Variational(scheme), NoiseModel::Learnt) if !table.known_noise => {
                Some(scheme.hyperpriors.c + 0.5 * table.count)
            }
            _ => None,
        }
    }

    /// The Gamma distributions whose means a variational model holds.
    fn precisions(&self, model: &Model, table: &Table) -> Option<PrecisionPosterior> {
        let Inference::Variational(scheme) = &self.inference else { return None };
        let shape = scheme.hyperpriors.a + 0.5;
        Some(PrecisionPosterior {
            shape,
            mean: model.alpha.clone(),
            rate: model.alpha.iter().map(|mean| shape / mean).collect(),
            intercept: model.intercept_alpha.map(|mean| (mean, shape / mean)),
            noise: self.noise_shape(table).zip(model.noise_variance()).map(|(shape, v)| (shape, shape * v)),
        })
    }

    /// The model and the report of the search that ended.
    fn conclude<'p>(
        &self,
        work: &Workspace<'p>,
        run: &(dyn Run<'p> + 'p),
        status: Status,
        watch: &mut Watch,
        parts: &Parts,
        mut actions: Actions,
    ) -> Result<(Model, Report)> {
        let problem = work.problem;
        actions.add(&run.actions());
        let (mut run, mut status) = (run, status);
        let nothing_found = status == Status::Converged && empty::has_nothing(run.form().unwrap_or(work), run.best())?;
        let mut search = match self.by_class() {
            true => Some(ClassSearch::start(work, run.best())?),
            false => None,
        };
        if let Some(search) = &mut search {
            if status == Status::Converged {
                status = watch.drive(search, work)?;
                problem.table.interrupt.disarm();
            }
            actions.add(&search.actions());
            run = search;
        }
        let log_evidence = run.objective(work);
        let mut certificate = run.certificate(work, matches!(status, Status::TimeLimit | Status::Stopped));
        if !parts.whole {
            parts.certify(&mut certificate, status == Status::Converged);
        }
        let solution = run.best();
        let log_evidence = log_evidence - work.prior.log(&solution.active);
        let mut repairs = problem.table.repairs.clone();
        repairs.zero_columns = problem.design.norms().iter().filter(|n| **n == 0.0).count();
        repairs.jitter = solution.jitter;
        repairs.noise_capped = problem.noise_capped(&solution.beta);
        let trace = std::mem::take(&mut watch.trace);
        let model = finish::model(run.form().unwrap_or(work), solution, log_evidence, status, trace.len())?;
        repairs.residual_over_noise = problem.residual_over_noise(solution, &model)?;
        let report = Report {
            status,
            iterations: trace.len(),
            trace,
            candidates: parts.n_candidates(),
            certificate,
            repairs,
            nothing_found,
            interpolation: None,
            actions,
            kernel_search: None,
            centre_search: None,
            process: None,
            row_weights: vec![],
            precisions: self.precisions(&model, problem.table),
            validation: None,
            seconds: watch.elapsed().as_secs_f64(),
            members: vec![],
        };
        Ok((model, report))
    }
}
