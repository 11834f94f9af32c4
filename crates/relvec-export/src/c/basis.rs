//! Scaling and basis functions in C.

use ndarray::{Array1, Array2};
use relvec_predict::{Kernel, Scaling};

use super::rounded::Steps;
use super::writer::{Part, Writer};
use crate::machine::{Basis, Machine, gamma};

/// Writes `name_scale`, which computes z from x.
pub(super) fn scale(w: &mut Writer, scaling: Option<&Scaling>) {
    let Some(scaling) = scaling else { return };
    w.table(None, "offset", scaling.mean.iter().copied());
    w.table(None, "factor", scaling.scale.iter().map(|s| 1.0 / s));
    w.code(
        None,
        "/* The row in the units of the centres. */
static inline void name_scale(const name_real *x, name_real *z) {
    int d;
    for (d = 0; d < NAME_FEATURES; d++) z[d] = (x[d] - NAME_AT(name_offset, d)) * NAME_AT(name_factor, d);
}
",
        &[],
    );
}

/// Writes `part_basis`, which computes phi from z.
pub(super) fn basis(w: &mut Writer, part: Part, machine: &Machine) {
    let m = machine.len();
    if m == 0 {
        return;
    }
    match &machine.basis {
        Basis::Columns(columns) => {
            w.places(part, "columns", columns);
            let values = [("m", m.to_string())];
            w.code(
                part,
                "/* The columns that the model uses. */
static inline void part_basis(const name_real *z, name_real *phi) {
    int m;
    for (m = 0; m < {m}; m++) phi[m] = z[NAME_PLACE(part_columns, m)];
}
",
                &values,
            );
        }
        Basis::Kernel { kernel, centres } => {
            let centre = centre_tables(w, part, centres);
            let gamma = gamma(kernel, centres.ncols());
            let of_feature = gamma_of_feature(w, part, &gamma, true);
            let (start, term) = sum(kernel);
            let values = [
                ("m", m.to_string()),
                ("centre", w.filled(part, centre, &[])),
                ("start", start.into()),
                ("term", w.filled(part, term, &[("gamma", of_feature)])),
                ("value", value(w, part, kernel)),
            ];
            w.code(
                part,
                "/* The kernel at all centres. */
static inline void part_basis(const name_real *z, name_real *phi) {
    name_real c, s, t;
    int m, d;
    for (m = 0; m < {m}; m++) {
        s = {start};
        for (d = 0; d < NAME_FEATURES; d++) {
            c = {centre};
            {term}
        }
        {value}
        phi[m] = t;
    }
}
",
                &values,
            );
        }
    }
}

/// Writes the tables of the centres. Returns the expression of feature d of centre m.
fn centre_tables(w: &mut Writer, part: Part, centres: &Array2<f64>) -> &'static str {
    if !w.whole_centres {
        w.table(part, "centres", centres.iter().copied());
        return "NAME_AT(part_centres, m * NAME_FEATURES + d)";
    }
    let steps: Vec<Steps> = centres.columns().into_iter().map(Steps::about_middle).collect();
    w.wholes(part, "centres", centres.indexed_iter().map(|((_, d), v)| steps[d].whole(*v)));
    w.table(part, "centre_middle", steps.iter().map(|steps| steps.middle));
    w.table(part, "centre_step", steps.iter().map(|steps| steps.step));
    "NAME_AT(part_centre_middle, d) + NAME_AT(part_centre_step, d) * NAME_WHOLE(part_centres, m * NAME_FEATURES + d)"
}

/// Writes `part_diagonal`, which computes k(z, z). `has_table`: true if `basis` has written the gammas.
pub(super) fn diagonal(w: &mut Writer, part: Part, kernel: &Kernel, features: usize, has_table: bool) {
    let local = matches!(
        kernel,
        Kernel::Rbf(_) | Kernel::Laplacian(_) | Kernel::Matern32(_) | Kernel::Matern52(_) | Kernel::RationalQuadratic(_)
    );
    if local {
        let template = "/* The kernel of a row and itself. */
static inline name_real part_diagonal(const name_real *z) {
    (void)z;
    return 1.0$;
}
";
        return w.code(part, template, &[]);
    }
    let of_feature = gamma_of_feature(w, part, &gamma(kernel, features), !has_table);
    let (start, term) = sum(kernel);
    let values = [
        ("start", w.filled(part, start, &[])),
        ("term", w.filled(part, term, &[("gamma", of_feature)])),
        ("value", value(w, part, kernel)),
    ];
    w.code(
        part,
        "/* The kernel of a row and itself. */
static inline name_real part_diagonal(const name_real *z) {
    name_real c, s, t;
    int d;
    s = {start};
    for (d = 0; d < NAME_FEATURES; d++) {
        c = z[d];
        {term}
    }
    {value}
    return t;
}
",
        &values,
    );
}

/// Returns the expression of gamma of feature d: a number, or an entry of a table, which is written if `write` is set.
fn gamma_of_feature(w: &mut Writer, part: Part, gamma: &Array1<f64>, write: bool) -> String {
    if gamma.iter().all(|v| *v == gamma[0]) {
        return w.number(gamma[0]);
    }
    if write {
        w.table(part, "gamma", gamma.iter().copied());
    }
    w.filled(part, "NAME_AT(part_gamma, d)", &[])
}

/// Returns the start value of s, and the code for feature d from z[d] and c.
fn sum(kernel: &Kernel) -> (&'static str, &'static str) {
    match kernel {
        Kernel::Rbf(_) | Kernel::Matern32(_) | Kernel::Matern52(_) | Kernel::RationalQuadratic(_) => {
            ("0", "t = z[d] - c; s += {gamma} * t * t;")
        }
        Kernel::Laplacian(_) => ("0", "t = z[d] - c; s += {gamma} * fabs$(t);"),
        Kernel::Periodic(_) | Kernel::Sum(_) => unreachable!("no machine has this kernel"),
        Kernel::Linear(_) => ("0", "s += z[d] * c;"),
        Kernel::Poly(_) | Kernel::Sigmoid(_) => ("0", "s += {gamma} * z[d] * c;"),
        // m = min(z, c), M = max(z, c): 1 + m (M + m (3 M - m) / 6).
        Kernel::LinearSpline(_) => {
            ("1", "t = z[d] < c ? z[d] : c; c = z[d] < c ? c : z[d]; s *= 1.0$ + t * (c + t * (3.0$ * c - t) / 6.0$);")
        }
    }
}

/// Returns the code that computes the kernel t from s.
fn value(w: &Writer, part: Part, kernel: &Kernel) -> String {
    let template = match kernel {
        Kernel::Rbf(_) | Kernel::Laplacian(_) => "t = exp$(-s);".to_string(),
        // Above 750, exp(-t) is 0. Without the limit, t exp(-t) would be infinity times 0 for larger t.
        Kernel::Matern32(_) => "t = sqrt$(6.0$ * s);
        if (t > 750.0$) t = 750.0$;
        t = (1.0$ + t) * exp$(-t);"
            .into(),
        Kernel::Matern52(_) => "t = sqrt$(10.0$ * s);
        if (t > 750.0$) t = 750.0$;
        t = (1.0$ + t + t * t / 3.0$) * exp$(-t);"
            .into(),
        // log(1 + s) = s log(t) / (t - 1) with t = 1 + s rounded, which is accurate for small s (Kahan).
        Kernel::RationalQuadratic(own) => format!(
            "s /= {shape};
        t = 1.0$ + s;
        t = t > 1.0$ ? log$(t) * (s / (t - 1.0$)) : s;
        t = exp$(-{shape} * t);",
            shape = w.number(own.shape)
        ),
        Kernel::Periodic(_) | Kernel::Sum(_) => unreachable!("no machine has this kernel"),
        Kernel::Linear(_) | Kernel::LinearSpline(_) => "t = s;".into(),
        Kernel::Sigmoid(own) => format!("t = tanh$(s + {});", w.number(own.coef0)),
        Kernel::Poly(own) => {
            // Binary powering from the second highest digit of the degree down.
            let digits = u32::BITS - own.degree.leading_zeros();
            let step = |digit: u32| if own.degree >> digit & 1 == 1 { " t = t * t * s;" } else { " t = t * t;" };
            let steps: String = (0..digits - 1).rev().map(step).collect();
            format!("s += {}; t = s;{steps}", w.number(own.coef0))
        }
    };
    w.filled(part, &template, &[])
}
