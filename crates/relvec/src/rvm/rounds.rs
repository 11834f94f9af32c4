//! Which search is next where each sees a part of the candidates, and when one was the last.

use super::scheme::Aim;

/// Nats that a round over 1,000 rows must gain not to be the last of its kind; over more it grows with their square, as the
/// time of a pass does.
const ROUND: f64 = 0.002;
/// Rounds with all excursions at most: each takes as long as a few passes.
const MOST_THOROUGH: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What helps comes in.
    Grows,
    /// No way is left untried.
    Thorough,
    /// What helps after that comes in.
    Last,
}

/// The rounds of a fit: what helps is added until that comes to rest, all excursions follow, then again what helps.
#[derive(Debug)]
pub(crate) struct Rounds {
    now: Kind,
    /// Whether there are excursions.
    excursions: bool,
    /// Thorough rounds so far.
    thorough: usize,
}

impl Rounds {
    /// One round of all candidates.
    pub fn whole() -> Rounds {
        Rounds { now: Kind::Thorough, excursions: true, thorough: 0 }
    }

    /// Rounds of parts; `excursions`: whether there are any.
    pub fn of_parts(excursions: bool) -> Rounds {
        Rounds { now: Kind::Grows, excursions, thorough: 0 }
    }

    /// How far the present search goes.
    pub fn aim(&self) -> Aim {
        match self.now {
            Kind::Grows if self.excursions => Aim::Fuller,
            Kind::Grows | Kind::Last => Aim::Rest,
            Kind::Thorough => Aim::Thorough,
        }
    }

    /// What follows a round that has raised the evidence by `rise` and found so many candidates outside its part that would
    /// by more than `least`, with so many rows. False if it was the last.
    pub fn go_on(&mut self, rise: f64, helpful: usize, least: f64, count: f64) -> bool {
        self.thorough += usize::from(self.now == Kind::Thorough);
        let at_rest = helpful == 0 || rise < least.max(ROUND * (count / 1000.0).max(1.0).powi(2));
        // Where there are no excursions a second one would be the first again.
        let spent = self.thorough >= if self.excursions { MOST_THOROUGH } else { 1 };
        if spent && at_rest && (helpful == 0 || self.now == Kind::Last) {
            return false;
        }
        self.now = match spent {
            true => Kind::Last,
            false if at_rest || self.now == Kind::Thorough => Kind::Thorough,
            false => Kind::Grows,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The aims of the rounds if each gains what `rise` says and `helpful` candidates are left, 100 at most.
    fn aims(mut rounds: Rounds, rise: impl Fn(Aim) -> f64, helpful: usize) -> Vec<Aim> {
        let mut aims = vec![rounds.aim()];
        while aims.len() < 100 && rounds.go_on(rise(rounds.aim()), helpful, 1e-3, 4000.0) {
            aims.push(rounds.aim());
        }
        aims
    }

    #[test]
    fn additions_go_on_while_they_pay() {
        assert_eq!(aims(Rounds::of_parts(true), |_| 1.0, 7), [Aim::Fuller; 100]);
        assert_eq!(aims(Rounds::of_parts(false), |_| 1.0, 7), [Aim::Rest; 100]);
    }

    /// However much they gain; then what helps is added while that pays.
    #[test]
    fn thorough_rounds_are_bounded() {
        for rise in [0.0, 100.0] {
            let rise = move |aim| if aim == Aim::Thorough { rise } else { 0.0 };
            assert_eq!(aims(Rounds::of_parts(true), rise, 7), [Aim::Fuller, Aim::Thorough, Aim::Thorough, Aim::Rest]);
            assert_eq!(aims(Rounds::of_parts(true), rise, 0), [Aim::Fuller, Aim::Thorough, Aim::Thorough]);
            assert_eq!(aims(Rounds::of_parts(false), rise, 7), [Aim::Rest, Aim::Thorough, Aim::Rest]);
            assert_eq!(aims(Rounds::of_parts(false), rise, 0), [Aim::Rest, Aim::Thorough]);
        }
        let gaining = |aim| if aim == Aim::Fuller { 0.0 } else { 100.0 };
        assert_eq!(aims(Rounds::of_parts(true), gaining, 7)[3..], [Aim::Rest; 97]);
    }

    /// What a round must gain grows with the rows, and is never below what an action must.
    #[test]
    fn more_rows_ask_for_more() {
        let cases = [(0.5, 4e3, 1e-3, true), (0.5, 2e4, 1e-3, false), (0.5, 4e3, 0.6, false), (0.003, 10.0, 1e-3, true)];
        for (rise, count, least, again) in cases {
            let mut rounds = Rounds::of_parts(true);
            assert!(rounds.go_on(rise, 7, least, count));
            assert_eq!(rounds.aim() == Aim::Fuller, again, "{rise} {count} {least}");
        }
    }
}
