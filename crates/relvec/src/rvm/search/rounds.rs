//! Which search is next where each sees a part of the candidates, and when one was the last.

use crate::rvm::search::run::Aim;

/// Nats that a round over 1,000 rows of weight 1 must gain not to be the last of its kind; over more it grows with their
/// square, as the time of a pass does, up to so much.
const ROUND: f64 = 0.002;
const MOST_ROUND: f64 = 1.5;
/// After one that gains so many times as much, and at first, the search goes further from the model, in a larger part: from
/// a model of few basis functions to one of many there may be no other way.
const LEAP: f64 = 25.0;
/// A cold restart in the next part pays if it gains so many nats; so often in a row it may not.
const ANEW: f64 = 1.0;
const FAILURES: usize = 3;
/// And so many passes at most, over the square of the rows: that is how long they take, and growing a model gains more by each.
const MOST_ANEW: f64 = 1.2e9;
/// Rounds with all excursions at most: each takes as long as a few passes.
const MOST_THOROUGH: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All candidates, of which there is one part.
    Whole(Aim),
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
    /// Whether parts make excursions.
    excursions: bool,
    /// Whether the last one gained much, or there was none.
    leaps: bool,
    /// Thorough rounds so far.
    thorough: usize,
}

/// The parts in which a search starts cold, from all of their columns, before the best model of any goes on.
#[derive(Debug, Default)]
pub(crate) struct Anew {
    /// Those in a row that did not pay.
    failed: usize,
}

impl Anew {
    /// Whether another follows one that has raised the evidence by `rise`, after so many passes, with so many rows.
    pub fn go_on(&mut self, rise: f64, passes: usize, rows: usize) -> bool {
        self.failed = if rise > ANEW { 0 } else { self.failed + 1 };
        self.failed < FAILURES && (passes as f64) < MOST_ANEW / (rows as f64).powi(2)
    }
}

impl Rounds {
    /// One round of all candidates; `brief`: after one excursion, to a fuller model.
    pub fn whole(brief: bool) -> Rounds {
        let aim = if brief { Aim::Fullest } else { Aim::Thorough };
        Rounds { now: Kind::Whole(aim), excursions: false, leaps: false, thorough: 0 }
    }

    /// Rounds of parts; `excursions`: whether there are any.
    pub fn of_parts(excursions: bool) -> Rounds {
        Rounds { now: Kind::Grows, excursions, leaps: true, thorough: 0 }
    }

    /// How far the present search goes.
    pub fn aim(&self) -> Aim {
        match self.now {
            Kind::Whole(aim) => aim,
            Kind::Grows if self.excursions && self.leaps => Aim::Fullest,
            Kind::Grows if self.excursions => Aim::Fuller,
            Kind::Grows | Kind::Last => Aim::Rest,
            Kind::Thorough => Aim::Thorough,
        }
    }

    /// What follows a round that has raised the evidence by `rise` and found so many candidates outside its part that would
    /// by more than `least`, with so many rows of weight `count` in all. False if it was the last.
    pub fn go_on(&mut self, rise: f64, helpful: usize, least: f64, rows: usize, count: f64) -> bool {
        if matches!(self.now, Kind::Whole(_)) {
            return false;
        }
        self.thorough += usize::from(self.now == Kind::Thorough);
        let rows = rows as f64;
        let of_rows = (ROUND * (rows / 1000.0).max(1.0).powi(2)).min(MOST_ROUND);
        let enough = least.max(of_rows * count / rows);
        let at_rest = helpful == 0 || rise < enough;
        self.leaps = rise >= LEAP * enough;
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
        while aims.len() < 100 && rounds.go_on(rise(rounds.aim()), helpful, 1e-3, 4000, 4e3) {
            aims.push(rounds.aim());
        }
        aims
    }

    #[test]
    fn additions_go_on_while_they_pay() {
        assert_eq!(aims(Rounds::of_parts(true), |_| 0.5, 7)[1..], [Aim::Fuller; 99]);
        assert_eq!(aims(Rounds::of_parts(false), |_| 1.0, 7), [Aim::Rest; 100]);
    }

    /// However much they gain; then what helps is added while that pays.
    #[test]
    fn thorough_rounds_are_bounded() {
        for rise in [0.0, 100.0] {
            let rise = move |aim| if aim == Aim::Thorough { rise } else { 0.0 };
            assert_eq!(aims(Rounds::of_parts(true), rise, 7), [Aim::Fullest, Aim::Thorough, Aim::Thorough, Aim::Rest]);
            assert_eq!(aims(Rounds::of_parts(true), rise, 0), [Aim::Fullest, Aim::Thorough, Aim::Thorough]);
            assert_eq!(aims(Rounds::of_parts(false), rise, 7), [Aim::Rest, Aim::Thorough, Aim::Rest]);
            assert_eq!(aims(Rounds::of_parts(false), rise, 0), [Aim::Rest, Aim::Thorough]);
        }
        let gaining = |aim| if aim == Aim::Fullest { 0.0 } else { 100.0 };
        assert_eq!(aims(Rounds::of_parts(true), gaining, 7)[3..], [Aim::Rest; 97]);
    }

    /// What a round must gain grows with the rows, and with their weights as the evidence does, and is never below what an
    /// action must.
    #[test]
    fn more_rows_ask_for_more() {
        for (rise, rows, count, least, again) in [
            (0.5, 4000, 4e3, 1e-3, true),
            (0.5, 20_000, 2e4, 1e-3, false),
            (1.0, 50_000, 5e4, 1e-3, false),
            (2.0, 50_000, 5e4, 1e-3, true),
            (0.5, 4000, 4e3, 0.6, false),
            (0.003, 10, 10.0, 1e-3, true),
            (5.0, 4000, 4e5, 1e-3, true),
            (0.5, 4000, 4e5, 1e-3, false),
        ] {
            let mut rounds = Rounds::of_parts(true);
            assert!(rounds.go_on(rise, 7, least, rows, count));
            assert_eq!(rounds.aim() != Aim::Thorough, again, "{rise} {rows} {count} {least}");
        }
    }

    /// Where all candidates are one part there is one round, however much it gains and is left to gain.
    #[test]
    fn the_whole_is_one_round() {
        assert_eq!(aims(Rounds::whole(false), |_| 100.0, 7), [Aim::Thorough]);
        assert_eq!(aims(Rounds::whole(true), |_| 100.0, 7), [Aim::Fullest]);
    }

    /// Where much is gained the next part looks further.
    #[test]
    fn large_gains_lead_further() {
        let mut rounds = Rounds::of_parts(true);
        for (rise, aim) in [(1.0, Aim::Fullest), (0.5, Aim::Fuller), (f64::INFINITY, Aim::Fullest), (0.01, Aim::Thorough)] {
            assert!(rounds.go_on(rise, 7, 1e-3, 4000, 4e3));
            assert_eq!(rounds.aim(), aim, "{rise}");
        }
        assert_eq!(aims(Rounds::of_parts(false), |_| 100.0, 7), [Aim::Rest; 100]);
    }

    /// Until three in a row have not paid, or passes have taken long enough.
    #[test]
    fn beginnings_are_bounded() {
        let parts = |rise: &dyn Fn(usize) -> f64, rows| {
            let mut anew = Anew::default();
            1 + (0..1000).take_while(|k| anew.go_on(rise(*k), *k, rows)).count()
        };
        assert_eq!(parts(&|_| 9.0, 20_000), 4);
        assert_eq!(parts(&|_| 9.0, 4000), 76);
        assert_eq!(parts(&|_| 0.5, 4000), 3);
        assert_eq!(parts(&|k| if k == 2 { 9.0 } else { -1.0 }, 4000), 6);
    }
}
