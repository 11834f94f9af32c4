//! Learning the kernel without a fit.

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

/// Kernel that a dense Gaussian process with covariance a * kernel + constant + noise has learned, (M67) to (M69).
///
/// All values are in the user's units. For real targets the process is fitted to the targets, and for counts to
/// log((count + 1/2) / exposure). For classes it is a regression on labels, (M81): the parameters maximise the held-out
/// log probability, (M82), and the amplitude is given for noise 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LearnedKernel {
    /// Kernel of the highest posterior density, (M68). Every parameter is a number.
    pub kernel: Kernel,
    /// Kernel that a sparse search uses: `kernel`, with a larger gamma if `kernel` is too wide for it, (M69).
    pub search_kernel: Kernel,
    /// Amplitude a of (M67): prior variance of the function at a kernel value of 1, in squared units of the targets,
    /// `[R]` for R outputs. For classes it is one number, the ratio to the noise variance.
    pub amplitude: Vec<f64>,
    /// Noise variance s2 of (M67), in squared units of the targets, `[R]`. If the noise variance of each row is known,
    /// it is their geometric mean. For counts, the noise variance of a row is s2 / (count + 1/2).
    pub noise_variance: Vec<f64>,
    /// Log evidence log p(t) of (M67) of the rows that the kernel was learned from, in nats, summed over the outputs.
    /// For classes it is the held-out log probability, (M82).
    pub log_evidence: f64,
    /// Gain over a model that is a constant with noise, in nats: log posterior density of the process minus log
    /// evidence of the constant, (M69). It is minus infinity if no feature varies.
    pub gain: f64,
    /// True if a fit uses the kernel: the gain is at least 1/2 nat, or the kernel was learned from a sample of the
    /// rows.
    pub has_structure: bool,
    /// True if there is a learned gamma for each feature. Else there is one for features in units of their spread, or
    /// gamma was given.
    pub per_feature: bool,
    /// Number of rows, at most 1,000, that the kernel was learned from. Equal rows count separately.
    pub rows: usize,
}

impl Rvm {
    /// Learns the kernel from rows `x`, [N, D], and targets, `[N]` or [N, R], without a fit.
    ///
    /// A dense process learns from at most 1,000 rows drawn at random. Above 3,000 rows, a sparse process on 4,000 rows
    /// then refines the parameters, amplitude and noise. Only the settings of the kernels, the bias, the likelihood,
    /// the seed, and the limits of time, memory and threads have an effect. A given gamma is not changed. A fit learns
    /// the same kernel, except for Student-t noise: a fit gives outliers a lower weight before it learns the kernel.
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
    /// Returns [`Error::Parameter`] for a kernel that is no covariance of a Gaussian process (sigmoid, a linear spline
    /// at negative features), for [`Basis::Given`], and for parameters out of range. Also returns errors for shapes
    /// that do not match, values that are not finite, too few rows, and too little memory.
    pub fn learn_kernel(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LearnedKernel> {
        self.learn_kernel_with(x, targets, &Interrupt::default())
    }

    /// Learns the kernel from rows `x`, `[N, D]`, as [`Rvm::learn_kernel`] does. Another thread may stop it by
    /// `interrupt`.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::learn_kernel`], and [`Error::Interrupted`].
    pub fn learn_kernel_with(&self, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<LearnedKernel> {
        self.check()?;
        let expected = "kernel: a given design matrix has no kernel to learn";
        require(self.basis == Basis::Kernel, || "basis".into(), "given", expected)?;
        if let Some(kernel) = self.to_try().iter().find(|kernel| !kernel.is_covariance()) {
            let expected = "a kernel that is a covariance of a Gaussian process, not sigmoid or poly with coef0 < 0".into();
            return Err(Error::Parameter { name: "kernel".into(), found: kernel.name().into(), expected });
        }
        let own = if self.several(targets)?.is_some() { self.joint() } else { self.clone() };
        // The rows of the training set do not depend on its candidates, and a single candidate takes the least memory.
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
