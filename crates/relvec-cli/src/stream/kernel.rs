//! The kernel of a fit in blocks. Parameters that are to be learned are learned from the sample of the first pass.

use anyhow::Result;
use ndarray::ArrayView1;
use relvec::{Gamma, GammaRule, Kernel, Rvm, Targets};

use super::memory::Sizes;
use super::survey::Survey;
use super::{Clock, Job};
use crate::live::Live;
use crate::text::count;

/// Returns the kernel with numbers for all parameters, for features in scaled units. `class_of`: the class of each
/// number of the sample's targets, for classification.
pub(super) fn settle(job: &Job, survey: &Survey, sizes: &Sizes, clock: &Clock, class_of: Option<&[usize]>) -> Result<Kernel> {
    let rvm = job.rvm;
    if !rvm.learns_kernel() {
        return Ok(rvm.kernel.resolve(&survey.scale)?);
    }
    let all = rvm.to_try();
    let by_scale = |kernel: &Kernel, reason: &str| {
        say!(
            "note: {reason}, so the kernel is not learned from a sample of the rows: its gamma is 1 / (features x variance) \
             (--gamma gives another)"
        );
        Ok(kernel.with_gamma(Gamma::Rule(GammaRule::Scale)).resolve(&survey.scale)?)
    };
    let x = survey.scaled();
    let (labels, classes) = class_of.map_or((vec![], 0), |class_of| labels(survey.sample.t.column(0), class_of));
    let targets = match class_of {
        Some(_) if classes < 2 => return by_scale(&all[0], "all rows of the sample belong to one class"),
        Some(_) => Targets::classes(&labels, classes).with_weights(survey.sample.weights.view()),
        None => survey.sample.targets(),
    };
    let memory_limit = Some(sizes.limit.saturating_sub(sizes.sampled()).max(1));
    let own = Rvm { memory_limit, time_limit: clock.for_kernel(), ..rvm.clone() };
    let live = Live::new("learning the kernel");
    let learned = own.learn_kernel(x.view(), &targets)?;
    drop(live);
    say!("note: the kernel is learned from {} of {}", learned.rows, count(survey.rows, "row"));
    Ok(learned.kernel)
}

/// Returns the classes of the sample, renumbered without gaps, and the number of classes.
fn labels(numbers: ArrayView1<f64>, class_of: &[usize]) -> (Vec<usize>, usize) {
    let classes: Vec<usize> = numbers.iter().map(|number| class_of[*number as usize]).collect();
    let mut present = classes.clone();
    present.sort_unstable();
    present.dedup();
    let labels = classes.iter().map(|class| present.binary_search(class).expect("each is present")).collect();
    (labels, present.len())
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn classes_that_the_sample_lacks_leave_no_gap() {
        // The first and the third text are class 2, the second is class 0. Class 1 does not occur.
        assert_eq!(labels(array![0.0, 1.0, 2.0, 1.0].view(), &[2, 0, 2, 1]), (vec![1, 0, 1, 0], 2));
    }
}
