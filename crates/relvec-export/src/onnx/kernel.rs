//! Kernels (M19) between rows and centres, [N, M], and of each row with itself, [N, 1].

use std::f64::consts::{FRAC_PI_2, TAU};

use ndarray::{Array1, Array2, Axis, concatenate, s};
use relvec_predict::{Factor, Kernel, Periodic, Poly, RationalQuadratic, Term};

use super::graph::{Graph, Value};
use crate::machine::gamma;
use crate::normal_form::depends_on_differences;

/// Largest error of a squared distance in the product form, about 8 roundings of the largest squared norm of a centre.
/// It is far below the tolerance of the formats, 1e-12 in double and 1e-4 in single precision. With half of this value
/// narrow kernels take the slower forms.
const PRODUCT_DOUBLE: f64 = 1e-12;
const PRODUCT_SINGLE: f64 = 1e-5;
const ROUNDINGS: f64 = 8.0;
/// Most features for which distances are summed feature by feature, with [N, M] numbers at a time and four operators
/// for each feature. For more features all differences are computed at once, with [N, M, D] numbers.
const FEATURE_BY_FEATURE: usize = 64;
/// Distance above which exp(-s) is 0. Without the limit, s exp(-s) would be infinity times 0 for larger s.
const FARTHEST: f64 = 750.0;
/// Number far below every relevant squared distance, and far above the smallest number of either precision.
const TINY: f64 = 1e-30;

/// Returns k(x_n, c_m), [N, M], for rows `x`, [N, D].
pub(super) fn values<'g>(graph: &'g Graph, x: Value<'g>, kernel: &Kernel, centres: &Array2<f64>, single: bool) -> Value<'g> {
    let gamma = gamma(kernel, centres.ncols());
    let squares = || squared_distances(graph, x, &gamma, centres, single);
    let products = || x.matmul(graph.table(&(centres * &gamma).t()));
    match kernel {
        Kernel::Rbf(_) => (-squares()).exp(),
        Kernel::Laplacian(_) => (-absolute_distances(graph, x, &gamma, centres)).exp(),
        Kernel::Matern32(_) => {
            let s = (squares() * 6.0).sqrt().at_most(FARTHEST);
            (s + 1.0) * (-s).exp()
        }
        Kernel::Matern52(_) => {
            let s = (squares() * 10.0).sqrt().at_most(FARTHEST);
            (s + 1.0 + s * s / 3.0) * (-s).exp()
        }
        Kernel::RationalQuadratic(own) => rational_quadratic(squares(), own),
        Kernel::Linear(_) => x.matmul(graph.table(&centres.t())),
        Kernel::Poly(poly) => power(products() + poly.coef0, poly),
        Kernel::Sigmoid(sigmoid) => (products() + sigmoid.coef0).tanh(),
        Kernel::LinearSpline(_) => linear_spline(graph, x, centres),
        Kernel::Periodic(own) => {
            let angles = centres.mapv(|c| TAU * ((c % own.number()) / own.number()));
            let points = concatenate![Axis(1), angles.mapv(f64::cos), angles.mapv(f64::sin)];
            let gamma = concatenate![Axis(0), gamma, gamma];
            (-squared_distances(graph, circles(graph, x, own, single), &gamma, &points, single)).exp()
        }
        Kernel::Sum(sum) => {
            let factor = |own: &Factor| values(graph, inputs(graph, x, own), &own.kernel, &own.inputs(centres.view()), single);
            let term = |own: &Term| product(graph, own, own.factors.iter().map(factor));
            sum.terms.iter().map(term).reduce(|sum, term| sum + term).expect("a sum has terms")
        }
    }
}

/// Returns the amplitude of a term times its factors.
fn product<'g>(graph: &'g Graph, term: &Term, factors: impl Iterator<Item = Value<'g>>) -> Value<'g> {
    let amplitude = term.amplitude.expect("the kernel is resolved");
    factors.reduce(|product, factor| product * factor).map_or_else(|| graph.scalar(amplitude), |product| product * amplitude)
}

/// Returns the scaled columns of rows `x`, [N, D], that a factor is computed from: [N, C].
fn inputs<'g>(graph: &'g Graph, x: Value<'g>, factor: &Factor) -> Value<'g> {
    let x = factor.columns.as_ref().map_or(x, |columns| x.take(columns, 1));
    let (origins, scales): (Vec<f64>, Vec<f64>) = factor.units.iter().copied().unzip();
    if factor.units.is_empty() { x } else { (x - graph.row(&origins)) / graph.row(&scales) }
}

/// Returns points on circles, [N, 2 D], for rows `x`, [N, D]: the cosines of the angles 2 pi x / period, then the sines.
fn circles<'g>(graph: &'g Graph, x: Value<'g>, own: &Periodic, single: bool) -> Value<'g> {
    let held = if single { f64::from(own.number() as f32) } else { own.number() };
    let rest = x.remainder(held);
    // A rounded period shifts the angle by its error times the number of periods in x.
    let error = own.number() / held - 1.0;
    let rest = if error == 0.0 { rest } else { rest - (x - rest) * error };
    let angles = rest * (TAU / own.number());
    // Older versions of onnxruntime have Sin in double precision, but not Cos.
    graph.concat(&[(angles + FRAC_PI_2).sin(), angles.sin()], 1)
}

/// Returns k(x_n, x_n), [N, 1] or one number, for rows `x`, [N, D]; `None` if it is always 1.
pub(super) fn diagonal<'g>(graph: &'g Graph, x: Value<'g>, kernel: &Kernel, features: usize) -> Option<Value<'g>> {
    match kernel {
        Kernel::Rbf(_) | Kernel::Laplacian(_) | Kernel::Matern32(_) | Kernel::Matern52(_) | Kernel::RationalQuadratic(_) => None,
        Kernel::Periodic(_) => None,
        Kernel::Linear(_) => Some(x.square().sum_kept(1)),
        Kernel::Poly(poly) => {
            let squares = (x.square() * graph.table(&gamma(kernel, features))).sum_kept(1);
            Some(power(squares + poly.coef0, poly))
        }
        Kernel::Sigmoid(sigmoid) => {
            Some(((x.square() * graph.table(&gamma(kernel, features))).sum_kept(1) + sigmoid.coef0).tanh())
        }
        // For x = x' the factor of a feature is 1 + x^2 + x^3 / 3.
        Kernel::LinearSpline(_) => (0..features)
            .map(|d| x.take(&[d], 1))
            .map(|x| x * x * (x / 3.0 + 1.0) + 1.0)
            .reduce(|product, factor| product * factor),
        Kernel::Sum(sum) => {
            let columns = |own: &Factor| own.columns.as_ref().map_or(features, Vec::len);
            let factor = |own: &Factor| diagonal(graph, inputs(graph, x, own), &own.kernel, columns(own));
            let term = |own: &Term| {
                let others = own.factors.iter().filter(|own| !depends_on_differences(&own.kernel));
                product(graph, own, others.filter_map(factor))
            };
            sum.terms.iter().map(term).reduce(|sum, term| sum + term)
        }
    }
}

/// Returns (1 + r)^-shape with r = d^2 / shape. log(1 + r) = r log(u) / (u - 1) with u = 1 + r rounded is accurate for
/// small r (Kahan).
fn rational_quadratic<'g>(squares: Value<'g>, own: &RationalQuadratic) -> Value<'g> {
    let r = squares / own.shape;
    let u = r + 1.0;
    // TINY prevents 0 / 0 if r is below rounding.
    let log = u.log() * (r / (u - 1.0 + TINY));
    (log * -own.shape).exp()
}

/// Returns u^degree, degree >= 1, by repeated squaring. Pow may refuse a negative base, and rounds more.
fn power<'g>(u: Value<'g>, poly: &Poly) -> Value<'g> {
    // Binary powering from the second highest digit of the degree down.
    let digits = u32::BITS - poly.degree.leading_zeros();
    (0..digits - 1).rev().fold(u, |out, digit| {
        let square = out * out;
        if poly.degree >> digit & 1 == 1 { square * u } else { square }
    })
}

/// Returns sum_d gamma_d (x_nd - c_md)^2, [N, M].
fn squared_distances<'g>(graph: &'g Graph, x: Value<'g>, gamma: &Array1<f64>, centres: &Array2<f64>, single: bool) -> Value<'g> {
    let roots = gamma.mapv(f64::sqrt);
    let middle = centres.mean_axis(Axis(0)).expect("there are centres");
    let b = (centres - &middle) * &roots;
    let norms = b.map_axis(Axis(1), |row| row.dot(&row));
    let (eps, limit) = match single {
        true => (f64::from(f32::EPSILON) / 2.0, PRODUCT_SINGLE),
        false => (f64::EPSILON / 2.0, PRODUCT_DOUBLE),
    };
    // For one feature the difference costs no more than a product. A runtime may also round the one root:
    // onnxruntime-web 1.30 turns a factor before a product into an attribute in single precision.
    if centres.ncols() > 1 && norms.iter().all(|norm| ROUNDINGS * eps * norm <= limit) {
        // |a|^2 + |b|^2 - 2 ab about the centres' mean, where the norms are small.
        let a = (x - graph.table(&middle)) * graph.table(&roots);
        return (a.matmul(graph.table(&(b * -2.0).t())) + a.square().sum_kept(1) + graph.table(&norms)).at_least(0.0);
    }
    let differences = |x: Value<'g>, d: usize| (x - graph.table(&centres.column(d))) * roots[d];
    by_feature(x, centres.ncols(), |x, d| differences(x, d).square())
        .unwrap_or_else(|| ((x.unsqueeze(1) - graph.table(centres)) * graph.table(&roots)).square().sum(2))
}

/// Returns sum_d gamma_d |x_nd - c_md|, [N, M].
fn absolute_distances<'g>(graph: &'g Graph, x: Value<'g>, gamma: &Array1<f64>, centres: &Array2<f64>) -> Value<'g> {
    by_feature(x, centres.ncols(), |x, d| (x - graph.table(&centres.column(d))).abs() * gamma[d])
        .unwrap_or_else(|| ((x.unsqueeze(1) - graph.table(centres)).abs() * graph.table(gamma)).sum(2))
}

/// Returns the sum of `term` over the features, or `None` if there are too many features.
fn by_feature<'g>(x: Value<'g>, features: usize, term: impl Fn(Value<'g>, usize) -> Value<'g>) -> Option<Value<'g>> {
    let terms = || (0..features).map(|d| term(x.take(&[d], 1), d));
    if features <= FEATURE_BY_FEATURE { terms().reduce(|sum, term| sum + term) } else { None }
}

/// Returns prod_d [1 + m (M + m (3 M - m) / 6)], with m the smaller and M the larger of x_nd and c_md.
fn linear_spline<'g>(graph: &'g Graph, x: Value<'g>, centres: &Array2<f64>) -> Value<'g> {
    let factor = |d: usize| {
        let (x, c) = (x.take(&[d], 1), graph.table(&centres.slice(s![.., d])));
        let (low, high) = (x.min(c), x.max(c));
        low * (high + low * (high * 3.0 - low) / 6.0) + 1.0
    };
    (0..centres.ncols()).map(factor).reduce(|product, factor| product * factor).expect("there are features")
}
