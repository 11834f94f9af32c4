//! Which search is next where each sees a part of the candidates, and when one was the last.

use super::scheme::Aim;

/// Nats that a round must gain, for each 1,000 rows, not to be the last of its kind.
const ROUND: f64 = 0.05;
/// Rounds with excursions at most: each takes as long as a few passes. So many of those in a row that gain no more than that
/// are the last, too.
const MOST_THOROUGH: usize = 5;
const THOROUGH_RISE: f64 = 0.5;
const IN_VAIN: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What helps comes in.
    Grows,
    /// No way is left untried.
    Thorough,
    /// As the first, after the excursions.
    Last,
}

/// The rounds of a fit: what helps is added until that comes to rest, excursions follow, then again what helps.
#[derive(Debug)]
pub(crate) struct Rounds {
    now: Kind,
    /// Thorough ones so far, and those in a row that gained next to nothing.
    thorough: usize,
    in_vain: usize,
}

impl Rounds {
    /// `thorough`: the first round is.
    pub fn new(thorough: bool) -> Rounds {
        Rounds { now: if thorough { Kind::Thorough } else { Kind::Grows }, thorough: 0, in_vain: 0 }
    }

    /// How far the present search goes.
    pub fn aim(&self) -> Aim {
        if self.now == Kind::Thorough { Aim::Thorough } else { Aim::Rest }
    }

    /// What follows a round that has raised the evidence by `rise` and found so many candidates outside its part that would
    /// by more than `least`; `excursions`: whether there are any, one round for those that remain is enough otherwise. False
    /// if it was the last.
    pub fn go_on(&mut self, rise: f64, helpful: usize, least: f64, count: f64, excursions: bool) -> bool {
        let thorough = self.now == Kind::Thorough;
        self.in_vain = if thorough && rise <= THOROUGH_RISE { self.in_vain + 1 } else { 0 };
        self.thorough += usize::from(thorough);
        let most = if excursions { MOST_THOROUGH } else { 1 };
        let at_rest = helpful == 0 || rise < least.max(ROUND * (count / 1000.0).max(1.0));
        let spent = self.now == Kind::Last || self.in_vain >= IN_VAIN || self.thorough >= most;
        if spent && at_rest && (helpful == 0 || self.now == Kind::Last) {
            return false;
        }
        self.now = match spent {
            true => Kind::Last,
            false if at_rest || thorough => Kind::Thorough,
            false => Kind::Grows,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The aims of the rounds to come if each gains what `rise` says and `helpful` candidates are left, 100 at most.
    fn aims(rounds: &mut Rounds, rise: impl Fn(Aim) -> f64, helpful: usize, excursions: bool) -> Vec<Aim> {
        let next = |_| {
            let rise = rise(rounds.aim());
            rounds.go_on(rise, helpful, 1e-3, 4000.0, excursions).then(|| rounds.aim())
        };
        (0..100).map_while(next).collect()
    }

    #[test]
    fn additions_go_on_while_they_pay() {
        assert_eq!(aims(&mut Rounds::new(false), |_| 1.0, 7, true), [Aim::Rest; 100]);
    }

    #[test]
    fn excursions_are_bounded_and_additions_follow() {
        let gaining = |aim| if aim == Aim::Thorough { 100.0 } else { 0.0 };
        // After the last of them one round of additions, which gains nothing.
        let thorough = [Aim::Thorough; MOST_THOROUGH];
        assert_eq!(aims(&mut Rounds::new(false), gaining, 7, true), [&thorough[..], &[Aim::Rest]].concat());
        // With no candidate left that helps, none follows.
        let least = |aim| if aim == Aim::Thorough { 2.0 * THOROUGH_RISE } else { 0.0 };
        assert_eq!(aims(&mut Rounds::new(false), least, 0, true), thorough);
        // Without excursions once is enough.
        assert_eq!(aims(&mut Rounds::new(false), gaining, 7, false), [Aim::Thorough, Aim::Rest]);
    }

    #[test]
    fn excursions_in_vain_are_the_last() {
        let vain = |_| 0.0;
        assert_eq!(aims(&mut Rounds::new(false), vain, 7, true), [Aim::Thorough, Aim::Thorough, Aim::Rest]);
        assert_eq!(aims(&mut Rounds::new(false), vain, 0, true), [Aim::Thorough, Aim::Thorough]);
        assert_eq!(aims(&mut Rounds::new(true), vain, 0, true), [Aim::Thorough]);
    }

    /// What a round must gain grows with the rows, and is never below what an action must.
    #[test]
    fn more_rows_ask_for_more() {
        for (rise, count, least, again) in
            [(0.3, 4e3, 1e-3, true), (0.3, 2e4, 1e-3, false), (0.3, 4e3, 0.5, false), (0.06, 10.0, 1e-3, true)]
        {
            let mut rounds = Rounds::new(false);
            assert!(rounds.go_on(rise, 7, least, count, true));
            assert_eq!(rounds.aim() == Aim::Rest, again, "{rise} {count} {least}");
        }
    }
}
