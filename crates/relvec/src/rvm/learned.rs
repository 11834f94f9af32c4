//! The kernel alone: what a dense process learns of it, without a fit.

use std::time::Instant;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::design::Basis;
use crate::error::{Error, Result, require};
use crate::kernel::Kernel;
use crate::report::Interrupt;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice;
use crate::rvm::settings::dictionary::Dictionary;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::Targets;

/// A kernel learned from rows by a dense Gaussian process, a * kernel + constant + noise, (M67) to (M69).
///
/// Inputs are in the user's units. The targets of the process are: real targets, in the user's units; of counts
/// log((count + 1/2) / exposure). Classes are learned by regression on their labels, (M81): the parameters are those of the highest
/// left-out log probability, (M82), and of amplitude and noise there is the ratio alone, at noise 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LearnedKernel {
    /// The kernel of the highest posterior density, (M68); every parameter is a number, in the user's units of the features.
    pub kernel: Kernel,
    /// A copy of `kernel` that a fit searches with: its gamma is raised where the kernel is too wide for a sparse search, (M69).
    pub search_kernel: Kernel,
    /// a of (M67), the prior variance of a function where the kernel is 1, in squared units of the targets, `[R]`: of each
    /// output; of classes one number, over the noise.
    pub amplitude: Vec<f64>,
    /// s2 of (M67), in squared units of the targets, `[R]`. Where the noise variance of each row is known, their geometric mean;
    /// of counts, that of a row is s2 / (count + 1/2).
    pub noise_variance: Vec<f64>,
    /// log p(t) of (M67), in nats, of the rows that were learned from, all outputs together; of classes the left-out log
    /// probability, (M82).
    pub log_evidence: f64,
    /// Nats by which the process exceeds a constant with noise: the log posterior density less the log evidence of the constant,
    /// (M69). Minus infinity where no feature varies.
    pub gain: f64,
    /// Whether a fit goes on from here: the gain is at least 1/2, or there are rows that were not learned from.
    pub has_structure: bool,
    /// Whether gamma is learned for each feature; else one in units of their spread, or gamma was given.
    pub per_feature: bool,
    /// Rows that were learned from, at most 1,000, equal ones counted once for each.
    pub rows: usize,
}

impl Rvm {
    /// Learns the kernel alone, by a dense process on at most 1,000 rows drawn at random; of more than 3,000 rows its
    /// parameters, amplitude and noise are then those of a sparse process on 4,000 rows. No model is fitted.
    ///
    /// `x`: rows, [N, D]; `targets`: `[N]`, or several outputs. Of the parameters those count that describe the kernels, the bias,
    /// the likelihood, the seed, and the limits of time, memory and threads. A gamma that is not to be learned stays as it is.
    /// A fit learns the same kernel. Only under Student-t noise it reweights the rows before it learns; here outliers keep their full
    /// weight.
    ///
    /// ```
    /// use ndarray::{Array1, Array2};
    /// use relvec::{Rvm, Targets};
    ///
    /// let x = Array2::from_shape_fn((60, 1), |(i, _)| -10.0 + i as f64 / 3.0);
    /// let t: Array1<f64> = x.column(0).mapv(f64::sin);
    /// let learned = Rvm::default().learn_kernel(x.view(), &Targets::real(t.view()))?;
    /// assert!(learned.has_structure && learned.gain > 100.0);
    /// # Ok::<(), relvec::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a kernel that is the covariance of no process (sigmoid; a linear spline at negative features) and for [`Basis::Given`]; parameters out
    /// of range, shapes that do not fit, values that are not finite, too few rows, too little memory.
    pub fn learn_kernel(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LearnedKernel> {
        self.learn_kernel_with(x, targets, &Interrupt::default())
    }

    /// Learns the kernel from rows `x`, `[N, D]`, as [`Rvm::learn_kernel`] does; another thread may end it by `interrupt`.
    ///
    /// # Errors
    /// As [`Rvm::learn_kernel`]; and [`Error::Interrupted`].
    pub fn learn_kernel_with(&self, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<LearnedKernel> {
        self.check()?;
        let expected = "kernel: of given columns there is no kernel to learn";
        require(self.basis == Basis::Kernel, || "basis".into(), "given", expected)?;
        if let Some(kernel) = self.to_try().iter().find(|kernel| !kernel.is_covariance()) {
            let expected = "a kernel that is the covariance of a process: not sigmoid, nor poly with coef0 < 0".into();
            return Err(Error::Parameter { name: "kernel".into(), found: kernel.name().into(), expected });
        }
        let own = if self.several(targets)?.is_some() { self.joint() } else { self.clone() };
        // The rows of the table do not depend on candidates, and without any they take the least memory.
        let plain = Rvm { dictionary: Dictionary::Size(1), ..own.without_dictionary().with_stand_in() };
        self.pool()?.install(|| {
            let interrupt = interrupt.for_one_fit(self.deadline(Instant::now()));
            let training = TrainingSet::new(&plain, x, targets, &interrupt)?;
            own.check_covariances(&training)?;
            let (learned, search) = kernel_choice::by_process(&own, &training)?;
            let (trial, process) = (&search.tried[search.chosen], &search.tried[search.chosen].process);
            Ok(LearnedKernel {
                kernel: learned.kernel,
                search_kernel: learned.for_search,
                amplitude: process.amplitude.clone(),
                noise_variance: process.noise_variance.clone(),
                log_evidence: trial.log_evidence,
                gain: process.gain,
                has_structure: learned.has_structure,
                per_feature: learned.per_feature,
                rows: search.rows,
            })
        })
    }
}
