//! Measures of predicted classes.

use std::collections::HashMap;

use ndarray::Array2;
use relvec::{Decision, Decisions, Model};

use super::{Measure, measure};
use crate::decision::class_name;
use crate::metrics::{self, Ranking};
use crate::text::{cut, share};

/// Most pairs of confused classes that are named, the most frequent first.
const PAIRS: usize = 3;

/// True classes and predictions of rows.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    pub truth: Vec<usize>,
    pub predicted: Vec<usize>,
    /// Log probabilities by the model and by the prior of the decision rule, [N, K]; `None` for a support vector
    /// machine without probabilities.
    pub log: Option<(Array2<f64>, Array2<f64>)>,
    /// Decision values, `[N]`, for two classes without probabilities.
    pub function: Option<Vec<f64>>,
    pub decided: Option<Decisions>,
}

/// Rows of one class that are predicted as another class.
pub(crate) struct Pair {
    pub truth: usize,
    pub predicted: usize,
    pub rows: usize,
}

/// Stacks blocks of rows of equal width, [B, K], to one array, [N, K]; `None` if there are none.
pub(crate) fn joined(blocks: &[Array2<f64>]) -> Option<Array2<f64>> {
    let width = blocks.first()?.ncols();
    let values: Vec<f64> = blocks.iter().flatten().copied().collect();
    Some(Array2::from_shape_vec((values.len() / width, width), values).expect("blocks of one model have one width"))
}

impl Classes {
    pub fn measures(&self, decision: Option<&Decision>) -> Vec<Measure> {
        // The constant prediction: the class shares of the scored rows, and the most frequent class.
        let n = self.truth.len() as f64;
        let mut sizes = vec![0usize; self.truth.iter().chain(&self.predicted).max().map_or(0, |k| k + 1)];
        self.truth.iter().for_each(|k| sizes[*k] += 1);
        let shares: Vec<f64> = sizes.iter().filter(|size| **size > 0).map(|size| *size as f64 / n).collect();
        let largest = shares.iter().copied().fold(0.0, f64::max);
        let error = metrics::error_rate(&self.truth, &self.predicted);
        let name = match decision {
            Some(decision) if decision.rejects() => "error rate incl. rejected rows",
            Some(_) => "error rate of the decisions",
            None => "error rate",
        };
        let mut out = vec![measure("error_rate", name, "%", error).beside(1.0 - largest)];
        if let Some((_, log)) = &self.log {
            let entropy = shares.iter().map(|p| -p * p.ln()).sum::<f64>();
            out.push(measure("log_loss", "log loss", "nats", metrics::log_loss(&self.truth, log.view())).beside(entropy));
            let constant = 1.0 - shares.iter().map(|p| p * p).sum::<f64>();
            out.push(measure("brier", "Brier score", "0 to 2", metrics::brier(&self.truth, log.view())).beside(constant));
        }
        if self.log.is_some() || self.function.is_some() {
            let rankings: Vec<Ranking> = self.rankings().into_iter().map(|(_, ranking)| ranking).collect();
            let mean = |value: fn(&Ranking) -> f64| {
                (!rankings.is_empty()).then(|| rankings.iter().map(value).sum::<f64>() / rankings.len() as f64)
            };
            out.push(measure("auc", "ROC AUC", "0 to 1", mean(Ranking::area)).beside(0.5).higher());
            let precision = mean(Ranking::average_precision);
            out.push(measure("average_precision", "average precision", "0 to 1", precision).higher());
        }
        if let Some((_, log)) = &self.log {
            let error = metrics::calibration_error(&self.truth, log.view());
            out.push(measure("calibration_error", "calibration error", "%", error));
        }
        let (Some(decision), Some(decided)) = (decision, &self.decided) else { return out };
        if let (Some(costs), Some(expected)) = (&decision.costs, &decided.expected_cost) {
            let paid = |i: usize| match (decided.rejected[i], decision.reject_cost) {
                (true, Some(cost)) => cost,
                _ => costs[[self.truth[i], decided.label[i]]],
            };
            out.push(measure("cost", "mean cost", "per row", (0..self.truth.len()).map(paid).sum::<f64>() / n));
            out.push(measure("expected_cost", "expected cost", "per row", expected.sum() / n));
        }
        if decision.rejects() {
            let kept: Vec<usize> = (0..self.truth.len()).filter(|i| !decided.rejected[*i]).collect();
            out.push(measure("rejected", "rejected rows", "%", (self.truth.len() - kept.len()) as f64 / n));
            let of = |labels: &[usize]| kept.iter().map(|i| labels[*i]).collect::<Vec<_>>();
            let error = (!kept.is_empty()).then(|| metrics::error_rate(&of(&self.truth), &of(&decided.label)));
            out.push(measure("error_rate_kept", "error of decided rows", "%", error));
        }
        out
    }

    /// Returns rankings of the rows with the number of their class: one by the second of two classes, or one by each
    /// class. A class with no rows, or with all rows, has no ranking.
    pub fn rankings(&self) -> Vec<(usize, Ranking)> {
        let by = |k: usize, score: &[f64]| {
            let positive: Vec<bool> = self.truth.iter().map(|truth| *truth == k).collect();
            Ranking::new(&positive, score).map(|ranking| (k, ranking))
        };
        match (&self.log, &self.function) {
            // The prior of the decision does not change the order, but would cost digits, so the probabilities of the
            // model are used.
            (Some((log, _)), _) if log.ncols() == 2 => {
                let odds: Vec<f64> = log.outer_iter().map(|row| row[1] - row[0]).collect();
                by(1, &odds).into_iter().collect()
            }
            (Some((_, log)), _) => (0..log.ncols()).filter_map(|k| by(k, &log.column(k).to_vec())).collect(),
            (None, Some(function)) => by(1, function).into_iter().collect(),
            (None, None) => vec![],
        }
    }

    /// Returns the confused pairs of classes, the most frequent first, and the number of rows that are not rejected.
    pub fn confusions(&self) -> (Vec<Pair>, usize) {
        let rejected = |i: usize| self.decided.as_ref().is_some_and(|decided| decided.rejected[i]);
        let rows: Vec<usize> = (0..self.truth.len()).filter(|i| !rejected(*i)).collect();
        let mut pairs: HashMap<(usize, usize), usize> = HashMap::new();
        for (k, l) in rows.iter().map(|i| (self.truth[*i], self.predicted[*i])).filter(|(k, l)| k != l) {
            *pairs.entry((k, l)).or_default() += 1;
        }
        let one = |((truth, predicted), rows): ((usize, usize), usize)| Pair { truth, predicted, rows };
        let mut pairs: Vec<Pair> = pairs.into_iter().map(one).collect();
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.rows), pair.truth, pair.predicted));
        (pairs, rows.len())
    }

    /// Returns a sentence on misclassified rows and confused classes. Rejected rows do not count.
    pub fn mistakes(&self, model: &Model) -> String {
        let (pairs, decided) = self.confusions();
        let wrong = pairs.iter().map(|pair| pair.rows).sum::<usize>();
        let name = |k: usize| cut(&class_name(model, k));
        let one = |pair: &Pair| format!("{} {} as {}", pair.rows, name(pair.truth), name(pair.predicted));
        let more = if pairs.len() > PAIRS { ", ..." } else { "" };
        let named = pairs.iter().take(PAIRS).map(one).collect::<Vec<_>>().join(", ");
        let colon = if wrong > 0 { ": " } else { "" };
        let noun = if decided < self.truth.len() { "decided row" } else { "row" };
        format!("{} misclassified{colon}{named}{more}", share(wrong, decided, noun))
    }
}
