//! Functions and variances in C.

use ndarray::Array2;

use super::basis;
use super::rounded::Steps;
use super::writer::{Part, Writer};
use crate::machine::{Basis, JointSpread, Machine, Spread};

/// Writes `part_functions`, which computes f from phi.
pub(super) fn functions(w: &mut Writer, part: Part, machine: &Machine) {
    let expansion = &machine.model.expansion;
    let (m, c) = (machine.len(), expansion.intercept.len());
    w.table(part, "weights", expansion.weights.t().iter().copied());
    w.table(part, "intercept", expansion.intercept.iter().copied());
    let sum = "        for (m = 0; m < {m}; m++) f[c] += NAME_AT(part_weights, c * {m} + m) * phi[m];\n";
    let template = format!(
        "/* Computes the functions f: intercepts plus weights times the values phi. */
static inline void part_functions(const name_real *phi, name_real *f) {{
    int c{};
    for (c = 0; c < {{c}}; c++) {{
        f[c] = NAME_AT(part_intercept, c);
{}    }}
{}}}
",
        if m > 0 { ", m" } else { "" },
        if m > 0 { sum } else { "" },
        if m > 0 { "" } else { "    (void)phi;\n" },
    );
    w.code(part, &template, &[("m", m.to_string()), ("c", c.to_string())]);
}

/// Writes `name_solve` and `name_squares`, which solve with the triangular factors.
pub(super) fn solve(w: &mut Writer) {
    let (kind, step, entry) = match w.whole_triangles {
        true => ("short", "const name_real *steps, ", "NAME_AT(steps, i) * NAME_WHOLE(row, j)"),
        false => ("name_real", "", "NAME_AT(row, j)"),
    };
    let template = format!(
        "/* Solves L h = b in place. b is 0 before row `first`. `lower` has the rows of L below the diagonal{},
   `pivots` the reciprocals of the diagonal. */
static inline void name_solve(const {kind} *lower, {step}const name_real *pivots, int first, int n, name_real *b) {{
    const {kind} *row;
    int i, j;
    for (i = first; i < n; i++) {{
        row = lower + (long)i * (i - 1) / 2;
        for (j = first; j < i; j++) b[i] -= {entry} * b[j];
        b[i] *= NAME_AT(pivots, i);
    }}
}}

/* Returns the sum of the squares of h. */
static inline name_real name_squares(const name_real *h, int n) {{
    name_real sum = 0;
    int i;
    for (i = 0; i < n; i++) sum += h[i] * h[i];
    return sum;
}}
",
        if w.whole_triangles { " in multiples of `steps`" } else { "" },
    );
    w.code(None, &template, &[]);
}

/// Writes tables of inv(L) s as the triangle diag(1 / s) L. Returns the tables as arguments of `name_solve`.
fn triangle(w: &mut Writer, part: Part, name: &str, factor: &Array2<f64>, scale: impl Fn(usize) -> f64) -> String {
    let n = factor.nrows();
    let lower = |i: usize| (0..i).map(move |j| factor[[i, j]]);
    // With one row nothing is below the diagonal, but C does not allow empty tables.
    let none = if n == 1 { Some(0.0) } else { None };
    let mut arguments = format!("part_{name}_lower, ");
    if w.whole_triangles {
        let steps: Vec<Steps> = (0..n).map(|i| Steps::about_zero(lower(i))).collect();
        let wholes = steps.iter().enumerate().flat_map(|(i, steps)| lower(i).map(|v| steps.whole(v)));
        w.wholes(part, &format!("{name}_lower"), none.into_iter().chain(wholes));
        w.table(part, &format!("{name}_steps"), steps.iter().enumerate().map(|(i, steps)| steps.step / scale(i)));
        arguments += &format!("part_{name}_steps, ");
    } else {
        let values = (0..n).flat_map(|i| lower(i).map(|v| v / scale(i)).collect::<Vec<_>>());
        w.table(part, &format!("{name}_lower"), none.into_iter().chain(values));
    }
    w.table(part, &format!("{name}_pivots"), (0..n).map(|i| scale(i) / factor[[i, i]]));
    w.filled(part, &format!("{arguments}part_{name}_pivots"), &[])
}

/// Writes `part_variance`, which computes v from z and phi.
pub(super) fn variance(w: &mut Writer, part: Part, machine: &Machine, spread: &Spread) {
    let (n, m, bias) = (spread.scale.len(), machine.len(), usize::from(spread.bias));
    let mut body = String::new();
    if n > 0 {
        let tables = triangle(w, part, "posterior", &spread.factor, |i| spread.scale[i]);
        if spread.bias {
            body += "    b[0] = 1;\n";
        }
        if m > 0 {
            body += "    for (m = 0; m < {m}; m++) b[m + {bias}] = phi[m];\n";
        }
        body += &format!("    name_solve({tables}, 0, {{n}}, b);\n    v = name_squares(b, {{n}});\n");
    }
    if let (Some(prior), Basis::Kernel { kernel, centres }) = (&spread.prior, &machine.basis) {
        basis::diagonal(w, part, kernel, centres.ncols(), m > 0);
        body += "    r = part_diagonal(z);\n";
        if m > 0 {
            let tables = triangle(w, part, "prior", &prior.factor, |_| 1.0);
            body += &format!("    for (m = 0; m < {{m}}; m++) b[m] = phi[m];\n    name_solve({tables}, 0, {{m}}, b);\n");
            body += "    r -= name_squares(b, {m});\n";
        }
        body += &format!("    if (r > 0) v += {} * r;\n", w.number(prior.amplitude));
    }
    if spread.times != 1.0 {
        body += &format!("    v *= {};\n", w.number(spread.times));
    }
    let declared = |used: &str, text: &'static str| if body.contains(used) { text } else { "" };
    let template = format!(
        "/* Returns the variance of the function, without noise. */
static inline name_real part_variance(const name_real *z, const name_real *phi) {{
    name_real v = 0{}{};
{}    (void)z;
    (void)phi;
{body}    return v;
}}
",
        declared("b[", ", b[{scratch}]"),
        declared("r = ", ", r"),
        declared("m = 0", "    int m;\n"),
    );
    let values = [("scratch", n.max(m).to_string()), ("n", n.to_string()), ("m", m.to_string()), ("bias", bias.to_string())];
    w.code(part, &template, &values);
}

/// Writes `name_covariances`, which computes the covariances of the contrasts of classes, [R, R], from phi.
pub(super) fn covariances(w: &mut Writer, machine: &Machine, joint: &JointSpread) {
    let (n, contrasts, bias) = (joint.factor.nrows(), joint.present.len(), usize::from(joint.bias));
    let active: Vec<usize> = joint.present.concat();
    let tables = triangle(w, None, "posterior", &joint.factor, |i| joint.scale[active[i]]);
    w.places(None, "first", &joint.first().into_iter().chain([n]).collect::<Vec<_>>());
    w.places(None, "active", &active);
    w.table(None, "contrasts", joint.contrasts.iter().copied());
    let value = match (bias, machine.len()) {
        (1, 0) => "1",
        (1, _) => "NAME_PLACE(name_active, i) == 0 ? 1 : phi[NAME_PLACE(name_active, i) - 1]",
        _ => "phi[NAME_PLACE(name_active, i)]",
    };
    let values = [("n", n.to_string()), ("r", contrasts.to_string()), ("all", (contrasts * n).to_string())];
    let template = format!(
        "/* Computes the covariances g of the contrasts of the classes. */
static inline void name_covariances(const name_real *phi, name_real *g) {{
    name_real h[{{all}}];
    int r, s, i, from, to;
    (void)phi;
    for (r = 0; r < {{r}}; r++) {{
        from = NAME_PLACE(name_first, r);
        to = NAME_PLACE(name_first, r + 1);
        for (i = 0; i < {{n}}; i++) h[r * {{n}} + i] = 0;
        for (i = from; i < to; i++) h[r * {{n}} + i] = {value};
        name_solve({tables}, from, {{n}}, h + r * {{n}});
        for (s = 0; s <= r; s++) {{
            g[r * {{r}} + s] = 0;
            for (i = from; i < {{n}}; i++) g[r * {{r}} + s] += h[r * {{n}} + i] * h[s * {{n}} + i];
            g[s * {{r}} + r] = g[r * {{r}} + s];
        }}
    }}
}}
"
    );
    w.code(None, &template, &values);
}
