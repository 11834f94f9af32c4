//! Scaling and basis functions in C.

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use relvec_predict::{Factor, Kernel, Scaling, Sum};

use super::rounded::Steps;
use super::writer::{Part, Writer};
use crate::machine::{Basis, Machine, gamma};
use crate::normal_form::depends_on_differences;

/// Where the kernel of the row z and another row is computed.
struct Site<'a> {
    /// The expression of feature d of the other row.
    other: &'a str,
    /// The indentation of the code.
    indent: &'a str,
    /// True if the other row is z itself.
    itself: bool,
    /// True if the tables of the kernel are to be written.
    tables: bool,
}

/// A loop over features.
struct Loop {
    /// The head of the loop.
    head: String,
    /// The code that sets c to the feature of the other row.
    read: String,
    /// The expression of the feature of z.
    z: String,
    /// The expression of gamma of the feature.
    gamma: String,
}

/// Writes `name_scale`, which computes z from x.
pub(super) fn scale(w: &mut Writer, scaling: Option<&Scaling>) {
    let Some(scaling) = scaling else { return };
    w.table(None, "offset", scaling.mean.iter().copied());
    w.table(None, "factor", scaling.scale.iter().map(|s| 1.0 / s));
    w.code(
        None,
        "/* Computes the row z, standardised as the centres are, from the row x. */
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
                "/* Computes phi, the columns of the row z that the model uses. */
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
            let site = Site { other: centre, indent: "        ", itself: false, tables: true };
            let code = kernel_code(w, part, kernel, centres.ncols(), &site);
            let values = [("m", m.to_string()), ("more", more_variables(&code)), ("index", index(&code)), ("kernel", code)];
            w.code(
                part,
                "/* Computes phi, the kernel values of the row z and each centre. */
static inline void part_basis(const name_real *z, name_real *phi) {
    name_real {more}c, s, t;
    int m, d{index};
    for (m = 0; m < {m}; m++) {
        {kernel}
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
    if let Some(value) = constant_diagonal(kernel) {
        let value = if value == 1.0 { "1.0$".into() } else { w.number(value) };
        let template = "/* Returns the kernel value of the row z and itself. */
static inline name_real part_diagonal(const name_real *z) {
    (void)z;
    return {value};
}
";
        return w.code(part, &template.replace("{value}", &value), &[]);
    }
    let site = Site { other: "z[d]", indent: "    ", itself: true, tables: !has_table };
    let code = kernel_code(w, part, kernel, features, &site);
    let values = [("more", more_variables(&code)), ("index", index(&code)), ("kernel", code)];
    w.code(
        part,
        "/* Returns the kernel value of the row z and itself. */
static inline name_real part_diagonal(const name_real *z) {
    name_real {more}c, s, t;
    int d{index};
    {kernel}
    return t;
}
",
        &values,
    );
}

/// Returns k(z, z), if it is the same for all rows z.
fn constant_diagonal(kernel: &Kernel) -> Option<f64> {
    match kernel {
        Kernel::Sum(sum) if sum.terms.iter().flat_map(|term| &term.factors).all(|own| depends_on_differences(&own.kernel)) => {
            sum.terms.iter().map(|term| term.amplitude).sum()
        }
        own => depends_on_differences(own).then_some(1.0),
    }
}

/// Returns the names of the variables that the code of a sum needs in addition.
fn more_variables(code: &str) -> String {
    if code.contains("sum = ") { "sum, p, ".into() } else { String::new() }
}

fn index(code: &str) -> String {
    if code.contains("i = 0;") { ", i".into() } else { String::new() }
}

/// Returns the code that computes the kernel t of the row z and the row of a site, with `features` columns.
fn kernel_code(w: &mut Writer, part: Part, kernel: &Kernel, features: usize, site: &Site) -> String {
    if let Kernel::Sum(sum) = kernel {
        return sum_code(w, part, sum, features, site);
    }
    let features = Loop {
        head: "d = 0; d < NAME_FEATURES; d++".into(),
        read: format!("c = {};", site.other),
        z: "z[d]".into(),
        gamma: gamma_of_feature(w, part, "gamma", "d", &gamma(kernel, features), site.tables),
    };
    loop_code(w, part, kernel, site.indent, &features)
}

/// Returns the code that computes a kernel t by a loop over features.
fn loop_code(w: &Writer, part: Part, kernel: &Kernel, indent: &str, features: &Loop) -> String {
    let (start, term) = feature_sum(w, kernel, features);
    let Loop { head, read, .. } = features;
    let template = format!(
        "s = {start};
{indent}for ({head}) {{
{indent}    {read}
{indent}    {term}
{indent}}}
{indent}{}",
        value(w, kernel)
    );
    w.filled(part, &template, &[])
}

/// Returns the code that computes a sum t of products of kernels.
fn sum_code(w: &mut Writer, part: Part, sum: &Sum, features: usize, site: &Site) -> String {
    let indent = site.indent;
    let mut code = "sum = 0;\n".to_string();
    for (k, term) in sum.terms.iter().enumerate() {
        code += &format!("{indent}p = {};\n", w.number(term.amplitude.expect("the kernel is resolved")));
        for (f, factor) in term.factors.iter().enumerate() {
            if !(site.itself && depends_on_differences(&factor.kernel)) {
                let own = factor_code(w, part, &format!("{k}_{f}"), factor, features, site);
                code += &format!("{indent}{own}\n{indent}p *= t;\n");
            }
        }
        code += &format!("{indent}sum += p;\n");
    }
    code + indent + "t = sum;"
}

/// Returns the code that computes a factor t. `name` ends the names of its tables.
fn factor_code(w: &mut Writer, part: Part, name: &str, factor: &Factor, features: usize, site: &Site) -> String {
    let all: Vec<usize> = (0..features).collect();
    let columns = factor.columns.as_ref().unwrap_or(&all);
    let (first, count) = (columns[0], columns.len());
    // Neighbouring columns need no table.
    let ascend = columns.iter().enumerate().all(|(i, d)| *d == first + i);
    let (index, head) = match (ascend, first) {
        (true, 0) => ("d".to_string(), format!("d = 0; d < {count}; d++")),
        (true, _) => (format!("d - {first}"), format!("d = {first}; d < {}; d++", first + count)),
        (false, _) => ("i".to_string(), format!("i = 0; i < {count}; i++")),
    };
    let mut read = String::new();
    if !ascend {
        if site.tables {
            w.places(part, &format!("columns_{name}"), columns);
        }
        read += &format!("d = NAME_PLACE(part_columns_{name}, i);\n{}    ", site.indent);
    }
    let gamma = gamma_of_feature(w, part, &format!("gamma_{name}"), &index, &gamma(&factor.kernel, count), site.tables);
    let in_units = |x: &str| match factor.units.is_empty() {
        true => x.to_string(),
        false => format!("(({x} - NAME_AT(part_origin_{name}, {index})) * NAME_AT(part_rate_{name}, {index}))"),
    };
    if site.tables {
        w.table(part, &format!("origin_{name}"), factor.units.iter().map(|(origin, _)| *origin));
        w.table(part, &format!("rate_{name}"), factor.units.iter().map(|(_, scale)| 1.0 / scale));
    }
    read += &format!("c = {};", in_units(site.other));
    loop_code(w, part, &factor.kernel, site.indent, &Loop { head, read, z: in_units("z[d]"), gamma })
}

/// Returns the expression of gamma of a feature: a number, or the entry `index` of a table, which is written if `write`
/// is set.
fn gamma_of_feature(w: &mut Writer, part: Part, name: &str, index: &str, gamma: &Array1<f64>, write: bool) -> String {
    if gamma.iter().all(|v| *v == gamma[0]) {
        return w.number(gamma[0]);
    }
    if write {
        w.table(part, name, gamma.iter().copied());
    }
    format!("NAME_AT(part_{name}, {index})")
}

/// Returns the start value of s, and the code for a feature from z and c.
fn feature_sum(w: &Writer, kernel: &Kernel, features: &Loop) -> (&'static str, String) {
    let Loop { z, gamma, .. } = features;
    match kernel {
        Kernel::Rbf(_) | Kernel::Matern32(_) | Kernel::Matern52(_) | Kernel::RationalQuadratic(_) => {
            ("0", format!("t = {z} - c; s += {gamma} * t * t;"))
        }
        Kernel::Laplacian(_) => ("0", format!("t = {z} - c; s += {gamma} * fabs$(t);")),
        Kernel::Periodic(own) => {
            // A rounded period changes the remainder by its error times the number of periods in the difference.
            let period = w.rounded(own.number());
            let error = own.number() / period - 1.0;
            let correction = if error == 0.0 { String::new() } else { format!(" t -= {} * (c - t);", w.number(error)) };
            let (period, turn) = (w.number(period), w.number(PI / own.number()));
            ("0", format!("c = {z} - c; t = fmod$(c, {period});{correction} t = sin$({turn} * t); s += {gamma} * t * t;"))
        }
        Kernel::Linear(_) => ("0", format!("s += {z} * c;")),
        Kernel::Poly(_) | Kernel::Sigmoid(_) => ("0", format!("s += {gamma} * {z} * c;")),
        // m = min(z, c), M = max(z, c): 1 + m (M + m (3 M - m) / 6).
        Kernel::LinearSpline(_) => {
            ("1", format!("t = {z} < c ? {z} : c; c = {z} < c ? c : {z}; s *= 1.0$ + t * (c + t * (3.0$ * c - t) / 6.0$);"))
        }
        Kernel::Sum(_) => unreachable!("a sum is written factor by factor"),
    }
}

/// Returns the code that computes the kernel t from s.
fn value(w: &Writer, kernel: &Kernel) -> String {
    match kernel {
        Kernel::Rbf(_) | Kernel::Laplacian(_) => "t = exp$(-s);".into(),
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
        Kernel::Periodic(_) => "t = exp$(-4.0$ * s);".into(),
        Kernel::Sum(_) => unreachable!("a sum is written factor by factor"),
        Kernel::Linear(_) | Kernel::LinearSpline(_) => "t = s;".into(),
        Kernel::Sigmoid(own) => format!("t = tanh$(s + {});", w.number(own.coef0)),
        Kernel::Poly(own) => {
            // Binary powering from the second highest digit of the degree down.
            let digits = u32::BITS - own.degree.leading_zeros();
            let step = |digit: u32| if own.degree >> digit & 1 == 1 { " t = t * t * s;" } else { " t = t * t;" };
            let steps: String = (0..digits - 1).rev().map(step).collect();
            format!("s += {}; t = s;{steps}", w.number(own.coef0))
        }
    }
}
