//! The formulations: each fills a quadratic program and says what its solution means.

use serde::{Deserialize, Serialize};

use super::smo::{Program, Solution};
use crate::error::{Result, require};
use crate::registry::registry;
use crate::report::Status;

/// Cost of an error of nu-SVC where there is no margin, over the largest k(x, x). It stands for an infinite one: a
/// larger cost changes few predictions and takes more steps, a tenth of it leaves more errors.
const COST_WITHOUT_MARGIN: f64 = 1e4;

registry! {
    /// What a support vector machine minimises; [`Formulation::NAMES`] lists them.
    pub enum Formulation: FormulationFunction, "formulation" {
        /// Classification, errors cost c.
        CSvc = "c_svc",
        /// Classification, a share of nu may lie inside the margin.
        NuSvc = "nu_svc",
        /// Regression, errors beyond epsilon cost c.
        EpsilonSvr = "epsilon_svr",
        /// Regression, a share of nu may lie outside the tube, whose width follows.
        NuSvr = "nu_svr",
    }
}

/// C-SVC, (M40): maximise the margin less c times the errors (Cortes & Vapnik 1995).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CSvc {
    /// Cost of an error, > 0; infinite (in settings `null` or `infinity`) for a hard margin.
    #[serde(with = "cost")]
    pub c: f64,
}

/// nu-SVC, (M41): at most a share nu of the rows inside the margin, at least that share support vectors (Scholkopf et
/// al. 2000).
///
/// Classes that overlap have no margin for a small nu. The machine is then the limit of those of larger nu, which is
/// C-SVC with a large cost; [`SvmFunction::no_margin`](crate::SvmFunction::no_margin) tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NuSvc {
    /// In (0, 1], and at most twice the share of the smaller class.
    pub nu: f64,
}

/// epsilon-SVR, (M42): errors beyond epsilon cost c each unit (Vapnik 1995).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpsilonSvr {
    /// Cost of an error, > 0; infinite (in settings `null` or `infinity`) for a tube that no row may leave.
    #[serde(with = "cost")]
    pub c: f64,
    /// Half the width of the tube within which errors cost nothing, >= 0, in units of the target.
    pub epsilon: f64,
}

/// nu-SVR, (M42): at most a share nu of the rows outside the tube, whose width is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NuSvr {
    /// Cost of an error, > 0, finite.
    pub c: f64,
    /// In (0, 1].
    pub nu: f64,
}

impl Default for CSvc {
    fn default() -> Self {
        CSvc { c: 1.0 }
    }
}

impl Default for NuSvc {
    fn default() -> Self {
        NuSvc { nu: 0.5 }
    }
}

impl Default for EpsilonSvr {
    fn default() -> Self {
        EpsilonSvr { c: 1.0, epsilon: 0.1 }
    }
}

impl Default for NuSvr {
    fn default() -> Self {
        NuSvr { c: 1.0, nu: 0.5 }
    }
}

/// JSON has no infinity: `null` stands for it, and the word is read.
mod cost {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Cost {
        Number(Option<f64>),
        Word(String),
    }

    pub fn serialize<S: Serializer>(c: &f64, s: S) -> Result<S::Ok, S::Error> {
        c.is_finite().then_some(*c).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        match Cost::deserialize(d)? {
            Cost::Number(c) => Ok(c.unwrap_or(f64::INFINITY)),
            Cost::Word(word) if ["inf", "infinity"].contains(&word.as_str()) => Ok(f64::INFINITY),
            Cost::Word(word) => Err(D::Error::custom(format!("`{word}`: expected a number, or infinity"))),
        }
    }
}

/// Rows of a problem with one function.
pub(crate) struct Examples<'a> {
    /// The point of each row.
    pub point: &'a [usize],
    /// The target, or +1 for the second class and -1 for the first.
    pub y: &'a [f64],
    /// What the cost of an error is multiplied by, > 0.
    pub weight: &'a [f64],
    /// Whether they are some of the rows only, by which the others are to be predicted.
    pub some: bool,
    /// The classes in words, for errors.
    pub classes: &'a str,
}

/// What the solution says of the function sum_m w_m k(x, x_m) + b.
pub(crate) struct Meaning {
    /// Multiplies s_i a_i.
    pub scale: f64,
    /// b.
    pub intercept: f64,
    /// The dual's value in units of the function.
    pub objective: f64,
}

/// What a formulation can do.
pub(crate) trait FormulationFunction {
    /// Checks the parameters alone.
    fn check(&self) -> Result<()>;

    /// Whether it tells classes apart.
    fn classifies(&self) -> bool;

    /// The quadratic program.
    fn program(&self, rows: &Examples) -> Result<Program>;

    /// The formulation in its place where there is no margin; `largest`: the largest k(x, x). `None`: that is an error.
    fn without_margin(&self, _largest: f64) -> Option<CSvc> {
        None
    }

    /// What its solution means.
    ///
    /// # Errors
    /// The program has no solution.
    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        Ok(Meaning { scale: 1.0, intercept: solution.level[0], objective: solution.objective })
    }
}

fn check_cost(name: &str, c: f64) -> Result<()> {
    require(c > 0.0 && c.is_finite(), || format!("formulation.{name}.c"), c, "a number in (0, infinity)")
}

fn check_share(name: &str, nu: f64) -> Result<()> {
    require(nu > 0.0 && nu <= 1.0, || format!("formulation.{name}.nu"), nu, "a number in (0, 1]")
}

/// Weights of the rows of either sign, summed.
fn sums(rows: &Examples) -> [f64; 2] {
    let sum = |sign: f64| rows.y.iter().zip(rows.weight).filter(|(y, _)| **y * sign > 0.0).map(|(_, w)| w).sum();
    [sum(1.0), sum(-1.0)]
}

/// A start whose multipliers of either sign sum to `total`, filled up in the order of the rows.
fn filled(sign: &[f64], bound: &[f64], total: f64) -> Vec<f64> {
    let mut left = [total; 2];
    sign.iter()
        .zip(bound)
        .map(|(sign, bound)| {
            let left = &mut left[usize::from(*sign < 0.0)];
            let a = bound.min(*left);
            *left -= a;
            a
        })
        .collect()
}

impl FormulationFunction for CSvc {
    fn check(&self) -> Result<()> {
        let expected = "a number in (0, infinity], where infinity (null) asks for a hard margin";
        require(self.c > 0.0, || "formulation.c_svc.c".into(), self.c, expected)
    }

    fn classifies(&self) -> bool {
        true
    }

    fn program(&self, rows: &Examples) -> Result<Program> {
        let (point, sign) = (rows.point.to_vec(), rows.y.to_vec());
        if self.c.is_finite() {
            let bound = rows.weight.iter().map(|w| self.c * w).collect();
            let (linear, start) = (vec![-1.0; sign.len()], vec![0.0; sign.len()]);
            return Ok(Program { point, sign, linear, bound, start, by_sign: false, hulls: false });
        }
        // The widest margin lies half way between the nearest points of the classes' convex hulls: a problem that has a
        // solution also where there is no margin.
        let bound = vec![f64::INFINITY; sign.len()];
        let (linear, start) = (vec![0.0; sign.len()], filled(&sign, &bound, 1.0));
        Ok(Program { point, sign, linear, bound, start, by_sign: true, hulls: true })
    }

    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        if self.c.is_finite() {
            return Ok(Meaning { scale: 1.0, intercept: solution.level[0], objective: solution.objective });
        }
        let meaning = margin(solution);
        // The objective is half the squared distance d^2 of the hulls; of the multipliers 2 / d^2 times as large, the
        // dual's value is -2 / d^2.
        Ok(Meaning { objective: -1.0 / solution.objective, ..meaning })
    }
}

/// The function of which free variables have the values +1 and -1.
fn margin(solution: &Solution) -> Meaning {
    let [positive, negative] = solution.level;
    let r = 0.5 * (negative - positive);
    let scale = 1.0 / r;
    Meaning { scale, intercept: 0.5 * (positive + negative) * scale, objective: solution.objective * scale * scale }
}

impl FormulationFunction for NuSvc {
    fn check(&self) -> Result<()> {
        check_share("nu_svc", self.nu)
    }

    fn classifies(&self) -> bool {
        true
    }

    fn program(&self, rows: &Examples) -> Result<Program> {
        let [positive, negative] = sums(rows);
        let all = positive + negative;
        let most = 2.0 * positive.min(negative) / all;
        // One rounding of the sums may not make a feasible share infeasible.
        let expected = format!("a number in (0, {most}]: twice the share of the smaller of {}", rows.classes);
        let feasible = self.nu <= most * (1.0 + 1e-12);
        require(feasible || rows.some, || "formulation.nu_svc.nu".into(), self.nu, &expected)?;
        // What is feasible for all rows need not be so for some of them: the nearest share that is.
        let total = 0.5 * self.nu.min(most) * all;
        let (sign, bound) = (rows.y.to_vec(), rows.weight.to_vec());
        let start = filled(&sign, &bound, total);
        Ok(Program { point: rows.point.to_vec(), linear: vec![0.0; sign.len()], sign, bound, start, by_sign: true, hulls: true })
    }

    fn without_margin(&self, largest: f64) -> Option<CSvc> {
        Some(CSvc { c: COST_WITHOUT_MARGIN / largest })
    }

    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        Ok(margin(solution))
    }
}

/// Two variables for each row: how far the function is to rise, and to fall.
fn tube(rows: &Examples, c: f64, epsilon: f64) -> Program {
    let twice = |v: &dyn Fn(usize) -> f64, w: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..rows.y.len()).map(v).chain((0..rows.y.len()).map(w)).collect()
    };
    let bound = twice(&|i| c * rows.weight[i], &|i| c * rows.weight[i]);
    Program {
        point: rows.point.iter().chain(rows.point).copied().collect(),
        sign: twice(&|_| 1.0, &|_| -1.0),
        linear: twice(&|i| epsilon - rows.y[i], &|i| epsilon + rows.y[i]),
        start: vec![0.0; bound.len()],
        bound,
        by_sign: false,
        hulls: false,
    }
}

impl FormulationFunction for EpsilonSvr {
    fn check(&self) -> Result<()> {
        let expected = "a number in (0, infinity], where infinity (null) asks for a tube that no row leaves";
        require(self.c > 0.0, || "formulation.epsilon_svr.c".into(), self.c, expected)?;
        let good = self.epsilon >= 0.0 && self.epsilon.is_finite();
        require(good, || "formulation.epsilon_svr.epsilon".into(), self.epsilon, "a number in [0, infinity)")
    }

    fn classifies(&self) -> bool {
        false
    }

    fn program(&self, rows: &Examples) -> Result<Program> {
        Ok(tube(rows, self.c, self.epsilon))
    }

    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        // Without a function inside the tube the multipliers grow until 64-bit numbers end that.
        let expected = format!(
            "a finite cost, or a larger epsilon than {}: in 64-bit numbers no function of this kernel is that near to \
             the targets of all rows (after {} steps a row is off by {:.2e} more)",
            self.epsilon,
            solution.iterations,
            0.5 * solution.gap
        );
        let found = self.c.is_finite() || solution.status != Status::Singular;
        require(found, || "formulation.epsilon_svr.c".into(), self.c, &expected)?;
        Ok(Meaning { scale: 1.0, intercept: solution.level[0], objective: solution.objective })
    }
}

impl FormulationFunction for NuSvr {
    fn check(&self) -> Result<()> {
        check_cost("nu_svr", self.c)?;
        check_share("nu_svr", self.nu)
    }

    fn classifies(&self) -> bool {
        false
    }

    fn program(&self, rows: &Examples) -> Result<Program> {
        let program = tube(rows, self.c, 0.0);
        let total = 0.5 * self.nu * self.c * rows.weight.iter().sum::<f64>();
        let start = filled(&program.sign, &program.bound, total);
        Ok(Program { start, by_sign: true, ..program })
    }

    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        let intercept = 0.5 * (solution.level[0] + solution.level[1]);
        Ok(Meaning { scale: 1.0, intercept, objective: solution.objective })
    }
}
