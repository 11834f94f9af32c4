//! Grid of settings for the inner cross-validation.

use anyhow::Result;
use serde::Serialize;

use crate::failure::usage;
use crate::text::significant;

/// Values without `--grid`. The simplest model comes first: a smooth kernel, a low cost of errors, a wide tube.
const GAMMA: [f64; 5] = [0.03, 0.1, 0.3, 1.0, 3.0];
const C: [f64; 4] = [0.1, 1.0, 10.0, 100.0];
const EPSILON: [f64; 2] = [0.2, 0.05];

/// The values of each setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Grid {
    /// In multiples of 1 / (features x variance) of the training rows.
    pub gamma: Vec<f64>,
    /// Cost; in regression in standard deviations of the target.
    pub c: Vec<f64>,
    /// Half width of the tube, in standard deviations of the target.
    pub epsilon: Vec<f64>,
}

/// One point of the grid. Settings that the model does not have are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Point {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
}

impl Grid {
    /// Reads the arguments of `--grid`, each NAME=V,V.
    ///
    /// # Errors
    /// An unknown name, a name that is given twice, or a value that is not a number or out of range. The exit code is
    /// 2.
    pub fn parse(arguments: &[String]) -> Result<Grid> {
        let mut given: [Option<Vec<f64>>; 3] = [None, None, None];
        for argument in arguments {
            let wrong = |problem: String| usage(format!("--grid {argument}: {problem}"));
            let (name, values) =
                argument.split_once('=').ok_or_else(|| wrong("expected NAME=VALUE,VALUE, such as gamma=0.1,1".into()))?;
            let place = ["gamma", "c", "epsilon"]
                .iter()
                .position(|known| *known == name.trim())
                .ok_or_else(|| wrong(format!("unknown setting `{name}`; known: gamma, c, epsilon")))?;
            let least = if name.trim() == "epsilon" { "zero or positive" } else { "positive" };
            let one = |text: &str| match text.trim().parse::<f64>() {
                Ok(v) if v.is_finite() && (v > 0.0 || (v == 0.0 && least != "positive")) => Ok(v),
                _ => Err(wrong(format!("expected {least} numbers, found `{text}`"))),
            };
            let mut values = values.split(',').map(one).collect::<Result<Vec<f64>>>()?;
            values.sort_by(f64::total_cmp);
            values.dedup();
            if given[place].replace(values).is_some() {
                return Err(wrong(format!("`{}` is given twice", name.trim())));
            }
        }
        let [gamma, c, epsilon] = given;
        let mut epsilon = epsilon.unwrap_or_else(|| EPSILON.to_vec());
        epsilon.sort_by(|a, b| b.total_cmp(a));
        Ok(Grid { gamma: gamma.unwrap_or_else(|| GAMMA.to_vec()), c: c.unwrap_or_else(|| C.to_vec()), epsilon })
    }

    /// Returns the points for a relevance vector machine.
    pub fn of_rvm(&self, has_gamma: bool) -> Vec<Point> {
        self.gammas(has_gamma)
    }

    /// Returns the points for a support vector machine.
    pub fn of_svm(&self, has_gamma: bool, has_epsilon: bool) -> Vec<Point> {
        let epsilons: Vec<Option<f64>> = if has_epsilon { self.epsilon.iter().copied().map(Some).collect() } else { vec![None] };
        let with = |point: Point| {
            let epsilons = &epsilons;
            self.c.iter().flat_map(move |c| epsilons.iter().map(move |epsilon| Point { c: Some(*c), epsilon: *epsilon, ..point }))
        };
        self.gammas(has_gamma).into_iter().flat_map(with).collect()
    }

    fn gammas(&self, has_gamma: bool) -> Vec<Point> {
        if !has_gamma {
            return vec![Point::default()];
        }
        self.gamma.iter().map(|gamma| Point { gamma: Some(*gamma), ..Point::default() }).collect()
    }
}

impl Point {
    /// Returns a text such as "gamma 0.3, c 10".
    pub fn to_text(self) -> String {
        let named = [("gamma", self.gamma), ("c", self.c), ("epsilon", self.epsilon)];
        let shown = named.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", significant(value?, 4))));
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_from_the_simplest_model_on() {
        let grid = Grid::parse(&["gamma=1, 0.5,1".into(), "epsilon=0,0.1".into()]).unwrap();
        assert_eq!(grid, Grid { gamma: vec![0.5, 1.0], c: C.to_vec(), epsilon: vec![0.1, 0.0] });
        assert_eq!(grid.of_rvm(true).len(), 2);
        assert_eq!(grid.of_rvm(false), [Point::default()]);
        assert_eq!(grid.of_svm(true, true).len(), 16);
        assert_eq!(grid.of_svm(true, false)[1], Point { gamma: Some(0.5), c: Some(1.0), epsilon: None });
        assert_eq!(grid.of_svm(false, true)[0].to_text(), "c 0.1, epsilon 0.1");
    }

    #[test]
    fn wrong_grids_are_refused() {
        let message = |arguments: &[&str]| {
            Grid::parse(&arguments.iter().map(|a| a.to_string()).collect::<Vec<_>>()).unwrap_err().to_string()
        };
        assert!(message(&["gamma"]).contains("NAME=VALUE"));
        assert!(message(&["nu=0.5"]).contains("known: gamma, c, epsilon"));
        assert!(message(&["c=0"]).contains("positive numbers, found `0`"));
        assert!(message(&["c=1,,2"]).contains("found ``"));
        assert!(message(&["gamma=inf"]).contains("found `inf`"));
        assert!(message(&["epsilon=-0.1"]).contains("zero or positive"));
        assert!(message(&["c=1", "c=2"]).contains("twice"));
    }
}
