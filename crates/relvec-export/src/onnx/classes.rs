//! Probabilities of classes.

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use relvec_predict::{Margins, MultiClass};

use super::graph::{Graph, Value};
use super::spread::Rows;
use crate::machine::{Basis, JointSpread, Machine, Spread, Task};

/// Least probability of a class of a pair, as in the core.
const LEAST: f64 = 1e-14;
/// Least pivot in the coupling of pairs. If the pairs are consistent, the last pivot is 0 apart from rounding. The
/// solution then has one direction, whatever the pivot. 1 / LEAST_PIVOT and its sum over classes are finite in single
/// precision.
const LEAST_PIVOT: f64 = 1e-30;

/// Returns the log odds of the second class, [N, 1]: f / sqrt(1 + pi v / 8), (M18), or f without a spread.
pub(super) fn odds<'g>(rows: Rows<'g>, machine: &Machine, spread: Option<&Spread>) -> Value<'g> {
    let f = rows.functions(machine);
    match spread {
        Some(spread) => f / (rows.variance(machine, spread) * (PI / 8.0) + 1.0).sqrt(),
        None => f,
    }
}

/// Returns the log probabilities of two classes, [N, 2].
pub(super) fn two<'g>(graph: &'g Graph, odds: Value<'g>) -> Value<'g> {
    graph.concat(&[odds * 0.0, odds], 1).log_softmax(1)
}

/// Returns the log probabilities of K classes, [N, K], under the softmax, (M31): 1 / p_k = sum_l exp((f_l - f_k) / s_kl),
/// normalised. s_kl^2 = 1 + pi v_kl / 8, with v_kl the variance of f_k - f_l.
pub(super) fn joint<'g>(rows: Rows<'g>, machine: &Machine, spread: Option<&JointSpread>) -> Value<'g> {
    let f = rows.functions(machine);
    let Some(spread) = spread else { return f.log_softmax(1) };
    let graph = rows.graph;
    let (e, k) = (&spread.contrasts, spread.contrasts.nrows());
    let difference = |k: usize, l: usize| &e.row(k) - &e.row(l);
    let pairs = Array2::from_shape_fn((e.ncols() * e.ncols(), k * k), |(rs, kl)| {
        let d = difference(kl / k, kl % k);
        d[rs / e.ncols()] * d[rs % e.ncols()]
    });
    let v = rows.covariances(spread).matmul(graph.table(&pairs)).at_least(0.0).reshape(&[-1, k as i64, k as i64]);
    let s = (v * (PI / 8.0) + 1.0).sqrt();
    // [n, k, l]: f_l - f_k over s. This is 0 for l = k, so the log of the softmax there is log p_k.
    let t = (f.unsqueeze(1) - f.unsqueeze(2)) / s;
    (t.log_softmax(2) * graph.table(&Array2::<f64>::eye(k))).sum(2).log_softmax(1)
}

/// Returns the log probabilities of K classes, [N, K], from binary models.
pub(super) fn committee<'g>(rows: Rows<'g>, outer: &Machine, rule: MultiClass, members: &[Machine], single: bool) -> Value<'g> {
    let odds = members.iter().map(|member| {
        let Task::Two(spread) = &member.task else { unreachable!("every member is a binary model") };
        odds(member_rows(rows, outer, member, single), member, spread.as_ref())
    });
    let odds = rows.graph.concat(&odds.collect::<Vec<_>>(), 1);
    couple(rows.graph, odds, rule, outer.model.n_classes().unwrap_or(members.len()))
}

/// Returns the basis functions of a binary model. They are those of the whole model if the kernels are equal.
fn member_rows<'g>(rows: Rows<'g>, outer: &Machine, member: &Machine, single: bool) -> Rows<'g> {
    let places: Option<Vec<usize>> =
        member.model.relevance.iter().map(|row| outer.model.relevance.iter().position(|r| r == row)).collect();
    match (&outer.basis, &member.basis, places, rows.phi) {
        (Basis::Kernel { kernel, .. }, Basis::Kernel { kernel: own, .. }, Some(places), Some(phi)) if kernel == own => {
            Rows { phi: (!places.is_empty()).then(|| phi.take(&places, 1)), ..rows }
        }
        _ => Rows::new(rows.graph, rows.z, member, single),
    }
}

/// Returns log probabilities of K classes, [N, K], from the log odds of binary models, [N, C].
fn couple<'g>(graph: &'g Graph, odds: Value<'g>, rule: MultiClass, classes: usize) -> Value<'g> {
    // log sigmoid(f) is that of the second of two classes.
    let pair = graph.concat(&[(odds * 0.0).unsqueeze(2), odds.unsqueeze(2)], 2).log_softmax(2);
    let log_second = pair.take(&[1], 2).reshape(&[-1, odds_count(rule, classes) as i64]);
    match rule {
        MultiClass::OneVsOne => couple_pairs(graph, log_second.exp(), classes).log(),
        _ => log_second.log_softmax(1),
    }
}

fn odds_count(rule: MultiClass, classes: usize) -> usize {
    if rule == MultiClass::OneVsOne { classes * (classes - 1) / 2 } else { classes }
}

/// Returns probabilities of K classes, [N, K], from the probabilities of the second class of each pair. They sum to 1
/// and minimise the sum of (r_lk p_k - r_kl p_l)^2 (Wu, Lin and Weng 2004, their second method), as the solution of Q p
/// = 1 scaled to sum 1.
///
/// Q is positive semidefinite, and its entries off the diagonal are not positive. Elimination without pivoting keeps
/// both properties, and apart from the pivots it sums only positive numbers.
fn couple_pairs<'g>(graph: &'g Graph, second: Value<'g>, classes: usize) -> Value<'g> {
    let k = classes as i64;
    let second = second.at_least(LEAST).at_most(1.0 - LEAST);
    // For i < j, r_ij is 1 minus the probability of j, and r_ji is the probability of j.
    let (mut sign, mut one) = (Array2::zeros((classes * (classes - 1) / 2, classes * classes)), Array1::zeros(classes * classes));
    for j in 1..classes {
        for i in 0..j {
            let pair = j * (j - 1) / 2 + i;
            (sign[[pair, i * classes + j]], one[i * classes + j]) = (-1.0, 1.0);
            sign[[pair, j * classes + i]] = 1.0;
        }
    }
    let r = (second.matmul(graph.table(&sign)) + graph.table(&one)).reshape(&[-1, k, k]);
    let eye = graph.table(&Array2::<f64>::eye(classes));
    // Q_ii = sum_l r_li^2, Q_ij = -r_ij r_ji.
    let q = r.square().sum(1).unsqueeze(1) * eye - r * r.transpose(&[0, 2, 1]);
    let ones = (q.take(&[0], 2) * 0.0) + 1.0;
    let mut system = graph.concat(&[q, ones], 2);
    for i in 0..classes {
        // Subtracts multiples of row i, divided by its pivot, from all other rows (Gauss-Jordan): [N, 1, K + 1] and [N,
        // K, 1].
        let row = system.take(&[i], 1);
        let row = row / row.take(&[i], 2).at_least(LEAST_PIVOT);
        let unit = |at: usize| Array2::from_shape_fn((classes, 1), |(k, _)| f64::from(k == at));
        let others = graph.table(&(1.0 - unit(i)));
        system = system * others - system.take(&[i], 2) * others * row + row * graph.table(&unit(i));
    }
    let p = system.take(&[classes], 2).reshape(&[-1, k]);
    p / p.sum_kept(1)
}

/// Returns the votes of the functions of a support vector machine for each class, [N, K]. The class with most votes
/// wins.
pub(super) fn votes<'g>(graph: &'g Graph, f: Value<'g>, margins: &Margins) -> Value<'g> {
    let classes = margins.classes.unwrap_or(2);
    match margins.multi_class {
        None => graph.concat(&[f * 0.0, f.is_positive()], 1),
        Some(MultiClass::OneVsOne) => {
            let pairs = classes * (classes - 1) / 2;
            let (mut change, mut start) = (Array2::zeros((pairs, classes)), Array1::zeros(classes));
            for j in 1..classes {
                for i in 0..j {
                    let pair = j * (j - 1) / 2 + i;
                    (change[[pair, j]], change[[pair, i]]) = (1.0, -1.0);
                    start[i] += 1.0;
                }
            }
            f.is_positive().matmul(graph.table(&change)) + graph.table(&start)
        }
        Some(_) => f,
    }
}

/// Returns the log class probabilities of a support vector machine, [N, K], by Platt's sigmoids, (M43).
pub(super) fn platt<'g>(graph: &'g Graph, f: Value<'g>, margins: &Margins) -> Value<'g> {
    let part = |i: usize| Array1::from_iter(margins.sigmoids.iter().map(|sigmoid| sigmoid[i]));
    let odds = -(f * graph.table(&part(0)) + graph.table(&part(1)));
    match margins.multi_class {
        None => two(graph, odds),
        Some(rule) => couple(graph, odds, rule, margins.classes.unwrap_or(2)),
    }
}
