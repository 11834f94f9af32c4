//! What a search sees of the candidates: where the rows are many, those that may be of use, and all of them before it is at rest.

use super::Search;
use crate::error::Result;
use crate::rvm::factor::Factor;
use crate::rvm::laplace;
use crate::rvm::workspace::Workspace;

/// A candidate gains where Q^2 > S. Q is known before S is, which costs most of what there is to know of a candidate; S is taken
/// for the share of phi'B phi that it was when last looked at, and so much of that is close enough.
const PROMISING: f64 = 0.25;
/// Many searches take no more looks than these, the last at all candidates.
const WHOLE_LOOKS: usize = 2;

impl<'p> Search<'p> {
    /// The factor of the present model.
    pub(super) fn look(&mut self, work: &Workspace<'p>) -> Result<Factor<'p>> {
        // One action at a time is the best of all.
        let several = self.settings.joint && self.settings.batch > 1;
        let screens = self.moving && several && laplace::holds_curvature(work.problem, self.barred.len());
        let promising = |j: usize, square: f64, q: f64| q * q > PROMISING * self.outside[j] * square;
        let form = match screens && self.looks >= WHOLE_LOOKS {
            true => work.quadratic_among(&self.now, Some(&promising))?,
            false => work.quadratic(&self.now)?,
        };
        let factor = Factor::new(form, &self.now, &self.noise, work.prior);
        self.looks += 1;
        if screens {
            self.remember(&factor);
        }
        Ok(factor)
    }

    /// Looks at those candidates, too, that did not seem to be of use; whether there are any.
    pub(super) fn look_at_all(&mut self) -> bool {
        let Some(factor) = self.factor.as_ref().and_then(Factor::complete) else { return false };
        self.remember(&factor);
        self.factor = Some(factor);
        true
    }

    /// Where the last round was a `slow` one of some candidates, the next is one of all. Whether it is.
    pub(super) fn look_further(&mut self, slow: bool) -> bool {
        let further = slow && self.leaves_out();
        if further {
            self.looks = WHOLE_LOOKS - 1;
        }
        further
    }

    /// Whether the last look left candidates out.
    fn leaves_out(&self) -> bool {
        self.factor.as_ref().is_some_and(|factor| factor.quadratic().is_partial())
    }

    /// How much of each candidate is outside the model.
    fn remember(&mut self, factor: &Factor) {
        let form = factor.quadratic();
        for (j, (outside, (s, square))) in self.outside.iter_mut().zip(factor.s().iter().zip(&form.diag)).enumerate() {
            if *square > 0.0 && !factor.active().contains(&j) {
                *outside = s / square;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use crate::kernel::Rbf;
    use crate::likelihood::Bernoulli;
    use crate::report::Interrupt;
    use crate::rvm::problem::Problem;
    use crate::rvm::scheme::{Aim, Entry, Run, Scheme};
    use crate::rvm::search::{Phase, Search};
    use crate::rvm::sequential::Sequential;
    use crate::rvm::table::Table;
    use crate::rvm::workspace::Workspace;
    use crate::rvm::{Dictionary, Rvm};
    use crate::targets::Targets;

    /// A search that leaves candidates out on its way sees all of them before it ends: on thousands of rows where none of all
    /// helps, on more where a round of all has gained little.
    #[test]
    fn all_candidates_are_seen_in_the_end() {
        let fraction = |i: usize, by: f64| (i as f64 * by).fract();
        let one_by_one = Sequential { batch: 1, ..Sequential::default() };
        for (n, noise, settings, screens) in [
            (5000, 0.6, Sequential::default(), true),
            (5000, 0.6, one_by_one, false),
            (12_000, 0.02, Sequential::default(), true),
        ] {
            let x = Array2::from_shape_fn((n, 2), |(i, j)| 4.0 * fraction(i + 1, [0.618_033_988_75, 0.754_877_666_25][j]));
            let f = |i: usize| (2.0 * x[[i, 0]]).sin() + (3.0 * x[[i, 1]]).cos() - 0.2;
            let label = |i: usize| usize::from(f(i) > noise * (fraction(i + 1, 0.569_840_290_998) - 0.5));
            let labels: Vec<usize> = (0..n).map(label).collect();
            let targets = Targets::classes(&labels, 2);
            let kernel = Rbf { gamma: 4.0.into() }.into();
            let likelihood = Bernoulli::default().into();
            let rvm = Rvm { kernel, likelihood, dictionary: Dictionary::Size(300), ..Rvm::tipping2001() };
            let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
            let problem = Problem::new(&table, table.dictionary()).unwrap().0;
            let work = Workspace::new(&problem, None);
            let mut search = Search::start(&work, &settings, &Entry { from: None, aim: Aim::Exhaustive }).unwrap();
            let (mut partial, mut further) = (0, 0);
            for steps in 0.. {
                assert!(steps < 1000, "no end");
                if search.phase == Phase::Climb && search.factor.is_none() {
                    search.factor = Some(search.look(&work).unwrap());
                }
                let (left_out, looks) = (search.leaves_out(), search.looks);
                partial += usize::from(left_out);
                let over = search.step(&work).unwrap().is_some();
                further += usize::from(search.looks < looks);
                if over {
                    assert!(!left_out, "{n} rows: the last look left candidates out");
                    break;
                }
            }
            assert_eq!(partial > 3, screens, "{n} rows: {partial} looks at some, {settings:?}");
            assert_eq!(further > 0, search.many, "{n} rows: {further} slow rounds of some");
            let gain = search.certificate(&work, false).largest_gain.expect("it is over");
            let least = settings.least_gain(table.count, search.best());
            assert!(search.slow || gain <= least, "{n} rows: {gain}, {}", search.reason);
        }
    }
}
