//! The summary as lines of text.

use relvec::{Model, Status, Validation};
use serde_json::Value;

use super::{ClassWeights, KernelSummary, ProcessSummary, Summary, Widths};
use crate::args::Task;
use crate::layout::Lines;
use crate::text::{count, list, share, significant, thousands};

/// Most names or numbers of a list that are shown.
const SHOWN: usize = 12;
/// Most classes named in the first line.
const CLASSES_SHOWN: usize = 5;
/// Least share of a feature that is named. Features below are only counted.
const LEAST_SHARE: f64 = 5e-4;
/// Characters of the bar of the most relevant feature, and most characters of a name.
const BAR: f64 = 16.0;
const NAME: usize = 24;
/// Most widths of a sum that are shown, and their significant digits.
const WIDTHS_SHOWN: usize = 10;
const WIDTH_DIGITS: usize = 4;
/// Shares of features that differ by less are equal, since they are sums of rounded numbers.
const SAME: f64 = 1e-9;
/// Significant digits.
const DIGITS: usize = 3;
const EVIDENCE_DIGITS: usize = 4;
/// Significant digits of a large log evidence in nats. A difference of 0.1 nats is negligible.
const NATS_DIGITS: usize = 7;

/// Results on the training rows, which a model file does not contain.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Standard deviation of the target, > 0.
    pub spread: Option<f64>,
    /// Misclassified training rows, and their number if always the most frequent class were predicted.
    pub errors: Option<(usize, usize)>,
}

/// Returns a log evidence with [`EVIDENCE_DIGITS`] digits, or [`NATS_DIGITS`] if it is large.
fn nats(value: f64) -> String {
    let digits = if value.abs() < 1e5 { EVIDENCE_DIGITS } else { NATS_DIGITS };
    format!("{} nats", significant(value, digits))
}

/// Returns a duration as text.
fn seconds(value: f64) -> String {
    match value {
        _ if value < 0.01 => "under 0.01 s".into(),
        _ if value < 10.0 => format!("{value:.2} s"),
        _ => format!("{} s", thousands(value.round() as usize)),
    }
}

impl Summary<'_> {
    /// Returns the first line of `fit`: task, targets, features, and how the fit ended. `target`: names of the targets.
    pub fn verdict(&self, model: &Model, targets: &[String]) -> String {
        let names = list(&targets.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(), SHOWN);
        let features = count(self.n_features, "feature");
        let what = match super::task(model) {
            Task::Regress if model.is_of_counts() => format!("Regression of the counts {names} on {features}"),
            Task::Regress => format!("Regression of {names} on {features}"),
            Task::Classify => {
                let more = if self.classes.len() > CLASSES_SHOWN { ", ..." } else { "" };
                let classes = list(&self.classes[..self.classes.len().min(CLASSES_SHOWN)], CLASSES_SHOWN) + more;
                format!("Classification of {names} into {} classes ({classes}) by {features}", self.classes.len())
            }
        };
        let rows = if self.n_rows == 1 { "1 row".into() } else { format!("{} rows", thousands(self.n_rows)) };
        let time = self.seconds.map_or("an unknown time".into(), seconds);
        let end = match model.status {
            Status::Converged => format!("converged in {time}"),
            status => format!("not converged, {} after {time}", status.name().replace('_', " ")),
        };
        format!("{what}, {rows}: {end}")
    }

    /// Adds the lines on the model, the most important first.
    pub fn describe(&self, seen: &Seen, out: &mut Lines) {
        self.vectors(out);
        self.noise(seen, out);
        if let Some((wrong, constant)) = seen.errors {
            let constant = format!("{} if always the most frequent class", thousands(constant));
            out.line("training errors", &format!("{}; {constant}", share(wrong, self.n_rows, "row")));
        }
        if let Some(rule) = self.multi_class {
            let models = if self.members.is_empty() { String::new() } else { format!(" ({} binary models)", self.members.len()) };
            out.line("multiclass", &format!("{}{models}", rule.replace('_', "-")));
        }
        if let Some(rule) = self.posterior {
            out.line("posterior", &rule.replace('_', " "));
        }
        out.sum("kernel", &self.kernel.as_ref().map_or("given columns".into(), |kernel| kernel.to_text(self.has_one_width())));
        self.widths.iter().for_each(|own| widths(own, out));
        self.relevance_of_features(out);
        self.intervals(out);
        if let Some(validation) = self.validation {
            out.line(&format!("{}-fold check", validation.folds), &scores(validation));
        }
        match (self.in_use, self.log_evidence) {
            (_, None) => {}
            (Some(in_use), Some(bound)) => {
                out.line("weights above 1e-3", &in_use.by_weight.to_string());
                out.line("well determined", &in_use.by_data.to_string());
                out.line("lower bound", &nats(bound));
            }
            (None, Some(held_out)) if self.label_regression => {
                out.line("log probability", &format!("{}, of rows left out one at a time", nats(held_out)));
            }
            (None, Some(evidence)) => out.line("log evidence", &nats(evidence)),
        }
        if let Some(landmarks) = self.kept_statistics {
            out.line("statistics kept", &format!("at {landmarks} landmarks"));
        }
    }

    /// True if all features have the same share, since they share one kernel width.
    fn has_one_width(&self) -> bool {
        let mut shares = self.feature_relevance.iter();
        shares.next().is_some_and(|first| shares.all(|share| (share - first).abs() < SAME))
    }

    fn vectors(&self, out: &mut Lines) {
        let vectors = match self.members.len() {
            // The variational scheme keeps all candidates, and learned centres may be as many as rows.
            0 => share(self.n_vectors, self.n_rows, "row"),
            n => {
                let total = self.members.iter().map(|m| m.n_vectors).sum::<usize>();
                format!("{}; {total} in total over {n} binary models", share(self.n_vectors, self.n_rows, "row"))
            }
        };
        match (self.n_bounded, &self.process) {
            (Some(bounded), _) => out.line("support vectors", &format!("{vectors}, {bounded} at their bound")),
            (None, Some(ProcessSummary { searched, residual, .. })) if self.n_vectors > 0 => {
                // For large tables there is no search.
                let chosen = match searched {
                    n if *n == self.n_vectors => String::new(),
                    n => format!(", {n} of them chosen by the search"),
                };
                out.line("centres", &format!("{vectors}{chosen}"));
                out.line(
                    "process prior",
                    &format!("mean residual variance {} of the noise variance", significant(*residual, DIGITS)),
                );
            }
            _ if self.learned_centres => out.line("centres", &format!("{}, learned; no training rows", self.n_vectors)),
            (None, process) => {
                out.line(if process.is_some() || self.label_regression { "centres" } else { "relevance vectors" }, &vectors);
            }
        }
        if let Some(ClassWeights { present, all }) = self.class_weights {
            out.line("weights of classes", &format!("{present} of {all}"));
        }
    }

    fn noise(&self, seen: &Seen, out: &mut Lines) {
        if let Some(noise) = self.noise_std {
            let of_target = match seen.spread {
                Some(spread) if spread > 0.0 && self.noise_degrees.is_none() => {
                    format!(" ({} % of that of the target)", significant(100.0 * noise / spread, 2))
                }
                _ => String::new(),
            };
            let what = if self.noise_degrees.is_some() { "scale" } else { "standard deviation" };
            let text = match noise > 0.0 {
                true => format!("{what} {}{of_target}", significant(noise, DIGITS)),
                false => "given for each row".into(),
            };
            out.line("noise", &text);
        }
        if !self.noise_stds.is_empty() {
            // A model that was not fitted to a table may have no names.
            let name = |k: usize| self.targets.get(k).map_or(String::new(), |name| format!(" ({name})"));
            let of = |(k, std): (usize, &f64)| format!("{}{}", significant(*std, DIGITS), name(k));
            let each: Vec<String> = self.noise_stds.iter().enumerate().map(of).collect();
            let given = self.noise_stds.iter().all(|std| *std == 0.0);
            let text = if given { "given for each row".into() } else { format!("standard deviations {}", list(&each, SHOWN)) };
            out.line("noise", &text);
        }
        if let Some(degrees) = self.noise_degrees {
            out.line("degrees of freedom", &significant(degrees, DIGITS));
        }
    }

    /// Adds the shares of the features as bars, the most relevant first.
    fn relevance_of_features(&self, out: &mut Lines) {
        let mut order: Vec<usize> = (0..self.feature_relevance.len()).collect();
        order.sort_by(|d, e| self.feature_relevance[*e].total_cmp(&self.feature_relevance[*d]));
        let shown: Vec<usize> = order.iter().copied().filter(|d| self.feature_relevance[*d] >= LEAST_SHARE).take(SHOWN).collect();
        // A model without relevance vectors does not depend on the features.
        let Some(most) =
            shown.first().map(|d| self.feature_relevance[*d]).filter(|_| self.n_vectors > 0 && !self.has_one_width())
        else {
            return;
        };
        let name = |d: usize| self.features.get(d).map_or_else(|| d.to_string(), |name| short(name));
        let longest = shown.iter().map(|d| name(*d).chars().count()).max().unwrap_or(0);
        for (i, d) in shown.iter().enumerate() {
            let share = self.feature_relevance[*d];
            let bar = "#".repeat(((BAR * share / most).round() as usize).max(1));
            let percent = format!("{:>5.1} %", 100.0 * share);
            let label = if i == 0 { "feature relevance" } else { "" };
            let others = order.len() - shown.len();
            let more = if i + 1 == shown.len() && others > 0 { format!("   ({others} lower)") } else { String::new() };
            out.line(label, &format!("{:<longest$}  {bar:<width$}{percent}{more}", name(*d), width = BAR as usize));
        }
    }

    fn intervals(&self, out: &mut Lines) {
        let mut parts = vec![];
        if let Some(rows) = self.kept_rows {
            parts.push(format!("healed, {} rows stored", thousands(rows)));
        }
        if let Some(factor) = self.variance_factor {
            parts.push(format!("variance x {} by calibration", significant(factor, DIGITS)));
        }
        if !parts.is_empty() {
            out.line("intervals", &parts.join("; "));
        }
    }
}

/// Returns a name, cut to leave room for the columns beside it.
fn short(name: &str) -> String {
    if name.chars().count() > NAME { name.chars().take(NAME - 3).chain("...".chars()).collect() } else { name.into() }
}

/// Adds the widths of the most relevant features, and their shares.
fn widths((title, features): &Widths, out: &mut Lines) {
    let (shown, others) = features.split_at(features.len().min(WIDTHS_SHOWN));
    let longest = shown.iter().map(|(name, ..)| short(name).chars().count()).max().unwrap_or(0);
    for (i, (name, gamma, share)) in shown.iter().enumerate() {
        let cells = format!("{:<longest$}  {:>9}{:>7.1} %", short(name), significant(*gamma, WIDTH_DIGITS), 100.0 * share);
        out.line(if i == 0 { title } else { "" }, &cells);
    }
    if !others.is_empty() {
        let rest = others.iter().map(|(.., share)| 100.0 * share).sum::<f64>();
        out.line("", &format!("and {} more with {} % together", others.len(), significant(rest, 2)));
    }
}

/// Returns the scores of cross-validation in a line.
fn scores(validation: &Validation) -> String {
    let own = &validation.scores;
    let percent = |v: f64| 100.0 * v;
    let named = [
        ("RMSE", own.rmse, ""),
        ("MAE", own.mae, ""),
        ("NLPD", own.nlpd, " nats"),
        ("95 % interval covers", own.coverage.map(percent), " %"),
        ("errors", own.error_rate.map(percent), " %"),
        ("log loss", own.log_loss, " nats"),
    ];
    let shown = named.iter().filter_map(|(name, value, unit)| value.map(|v| format!("{name} {}{unit}", significant(v, DIGITS))));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if !validation.tried.is_empty() {
        text += &format!("; sparsity {} chosen", validation.sparsity);
    }
    text
}

impl KernelSummary {
    /// Returns the kernel as text. `one_width`: true if the widths of the features are equal in units of their spread.
    fn to_text(&self, one_width: bool) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        let Value::Object(parameters) = &self.parameters else { return self.name.to_string() };
        let one = |(name, value): (&String, &Value)| match value {
            Value::Number(n) => format!(", {name} {}", n.as_f64().map_or(n.to_string(), |v| significant(v, DIGITS))),
            Value::Array(values) if name == "gamma" && one_width => match values.first().and_then(Value::as_f64) {
                Some(gamma) if values.iter().all(|v| v.as_f64().is_some_and(|v| (v / gamma - 1.0).abs() < SAME)) => {
                    format!(", gamma {}", significant(gamma, DIGITS))
                }
                _ => ", one width in units of the spread of each feature".to_string(),
            },
            Value::Array(_) if name == "gamma" => ", one width per feature".to_string(),
            other => format!(", {name} {}", other.to_string().trim_matches('"')),
        };
        parameters.iter().map(one).fold(self.name.to_string(), |text, one| text + &one)
    }
}
