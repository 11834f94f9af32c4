//! Formulations of support vector machines. Each defines a quadratic program and converts its solution to a function.

use serde::{Deserialize, Serialize};

use super::smo::{Program, Solution};
use crate::error::{Result, require};
use crate::registry::registry;
use crate::report::Status;

/// Cost of an error of nu-SVC without a margin, relative to the largest k(x, x). It represents an infinite cost. A
/// larger cost changes few predictions and takes more steps; a tenth of it leaves more errors.
const COST_WITHOUT_MARGIN: f64 = 1e4;

registry! {
    /// The problem that a support vector machine minimises; [`Formulation::NAMES`] lists the names.
    pub enum Formulation: FormulationFunction, "formulation" {
        /// Classification in which errors cost c.
        CSvc = "c_svc",
        /// Classification in which a share nu of the rows may lie inside the margin.
        NuSvc = "nu_svc",
        /// Regression in which errors beyond epsilon cost c.
        EpsilonSvr = "epsilon_svr",
        /// Regression in which a share nu of the rows may lie outside the tube. The width of the tube follows from nu.
        NuSvr = "nu_svr",
    }
}

/// C-SVC, (M40): maximises the margin minus c times the errors (Cortes & Vapnik 1995).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CSvc {
    /// Cost of an error, > 0. It is infinite (in settings `null` or `infinity`) for a hard margin.
    #[serde(with = "cost")]
    pub c: f64,
}

/// nu-SVC, (M41): at most a share nu of the rows lies inside the margin, and at least that share are support vectors
/// (Scholkopf et al. 2000).
///
/// If classes overlap, there is no margin for a small nu. The model is then the limit of those with larger nu, which is
/// C-SVC with a large cost. [`SvmFunction::no_margin`](crate::SvmFunction::no_margin) is true in this case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NuSvc {
    /// Share nu, in (0, 1], and at most twice the share of the smaller class.
    pub nu: f64,
}

/// epsilon-SVR, (M42): errors beyond epsilon cost c per unit (Vapnik 1995).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpsilonSvr {
    /// Cost of an error, > 0. It is infinite (in settings `null` or `infinity`) for a tube that no row may leave.
    #[serde(with = "cost")]
    pub c: f64,
    /// Half the width of the tube within which errors cost nothing, >= 0, in units of the target.
    pub epsilon: f64,
}

/// nu-SVR, (M42): at most a share nu of the rows lies outside the tube, whose width is learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NuSvr {
    /// Cost of an error, > 0, finite.
    pub c: f64,
    /// Share nu, in (0, 1].
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

/// Serialisation of costs. JSON has no infinity, so that `null` represents it; the words `inf` and `infinity` can be
/// read.
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
    /// Factor of the cost of an error for each row, > 0.
    pub weight: &'a [f64],
    /// True if these are only some of the rows, and the function predicts the others.
    pub some: bool,
    /// Description of the classes, for errors.
    pub classes: &'a str,
}

/// The function sum_m w_m k(x, x_m) + b that a solution defines.
pub(crate) struct Meaning {
    /// Factor of s_i a_i.
    pub scale: f64,
    /// Intercept b.
    pub intercept: f64,
    /// Value of the dual problem in units of the function.
    pub objective: f64,
}

/// The functions that a formulation implements.
pub(crate) trait FormulationFunction {
    /// Checks the parameters alone.
    fn check(&self) -> Result<()>;

    /// Returns true if the formulation is for classes.
    fn classifies(&self) -> bool;

    /// Returns the quadratic program.
    fn program(&self, rows: &Examples) -> Result<Program>;

    /// Returns the formulation that replaces this one if there is no margin; `largest` is the largest k(x, x). `None`
    /// means that a missing margin is an error.
    fn without_margin(&self, _largest: f64) -> Option<CSvc> {
        None
    }

    /// Returns the function that a solution defines.
    ///
    /// # Errors
    /// Returns an error if the program has no solution.
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

/// Returns the sums of the weights of the rows of either sign.
fn sums(rows: &Examples) -> [f64; 2] {
    let sum = |sign: f64| rows.y.iter().zip(rows.weight).filter(|(y, _)| **y * sign > 0.0).map(|(_, w)| w).sum();
    [sum(1.0), sum(-1.0)]
}

/// Returns initial multipliers whose sum over either sign is `total`. They are filled up in the order of the rows.
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
        let expected = "a number in (0, infinity], where infinity (null) means a hard margin";
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
        // The boundary with the widest margin lies half way between the nearest points of the classes' convex hulls.
        // This problem has a solution even if there is no margin.
        let bound = vec![f64::INFINITY; sign.len()];
        let (linear, start) = (vec![0.0; sign.len()], filled(&sign, &bound, 1.0));
        Ok(Program { point, sign, linear, bound, start, by_sign: true, hulls: true })
    }

    fn meaning(&self, solution: &Solution) -> Result<Meaning> {
        if self.c.is_finite() {
            return Ok(Meaning { scale: 1.0, intercept: solution.level[0], objective: solution.objective });
        }
        let meaning = margin(solution);
        // The objective is half the squared distance d^2 of the hulls. The multipliers of the margin are 2 / d^2 times
        // as large, and the value of the dual problem is -2 / d^2.
        Ok(Meaning { objective: -1.0 / solution.objective, ..meaning })
    }
}

/// Returns the function whose free variables have the values +1 and -1.
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
        // Rounding of the sums must not make a feasible share infeasible.
        let expected = format!("a number in (0, {most}]: twice the share of the smaller of {}", rows.classes);
        let feasible = self.nu <= most * (1.0 + 1e-12);
        require(feasible || rows.some, || "formulation.nu_svc.nu".into(), self.nu, &expected)?;
        // A share that is feasible for all rows may be infeasible for some of them. The nearest feasible share is used
        // then.
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

/// Returns the program of a regression. Each row has two variables, which raise and lower the function.
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
        let expected = "a number in (0, infinity], where infinity (null) means a tube that no row leaves";
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
        // If no function lies inside the tube, the multipliers grow until rounding ends the search.
        let expected = format!(
            "a finite cost, or a larger epsilon than {}: no function of this kernel is that close to the targets of all rows \
             in 64-bit numbers (after {} steps the error of a row exceeds epsilon by {:.2e})",
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
