//! Functions for programs: predictions, probabilities, classes, labels.

use std::f64::consts::PI;

use relvec_predict::{Label, Margins, MultiClass};

use super::basis;
use super::spread;
use super::writer::{Part, Writer, literal};
use crate::machine::{Basis, JointSpread, Machine, Spread, Task};

/// Least probability of a class of a pair, as in the core. In single precision, 1 minus this value must not be rounded
/// to 1.
const LEAST_DOUBLE: f64 = 1e-14;
const LEAST_SINGLE: f64 = 1e-7;
/// Least pivot in the coupling of pairs. Its reciprocal is finite in single precision.
const LEAST_PIVOT: f64 = 1e-30;

/// Writes the functions of a whole model. The task of a model follows from the functions in the header.
pub(super) fn all(w: &mut Writer, machine: &Machine, std: bool) {
    basis::scale(w, machine.model.scaling.as_ref());
    if !matches!(machine.task, Task::Committee { .. }) {
        basis::basis(w, None, machine);
        spread::functions(w, None, machine);
    }
    match &machine.task {
        Task::Values(values) => {
            if std {
                spread::solve(w);
                spread::variance(w, None, machine, &values.spread);
                w.table(None, "ratio", values.ratios.iter().copied());
                w.table_with_infinities(None, "noise", values.noise.iter().copied());
            }
            let each = "    v = name_variance(z, phi);
    for (k = 0; k < NAME_OUTPUTS; k++) std[k] = sqrt$(v * NAME_AT(name_ratio, k) + NAME_AT(name_noise, k));";
            predict(w, machine, if std { Some(("    name_real v;\n    int k;\n", each)) } else { None }, std);
        }
        Task::Counts(own) => counts(w, machine, own, std),
        Task::Two(own) => {
            if own.is_some() {
                spread::solve(w);
            }
            odds(w, None, machine, own.as_ref());
            two(w, machine);
        }
        Task::Joint(own) => joint(w, machine, own.as_ref()),
        Task::Committee { rule, members } => committee(w, machine, *rule, members),
        Task::Margins(margins) if margins.classes.is_some() => votes(w, machine, margins),
        Task::Margins(_) => predict(w, machine, None, false),
    }
    labels(w, &machine.model.classes);
}

/// Returns lines that compute z and phi from x, [D].
fn rows(machine: &Machine) -> &'static str {
    match (&machine.model.scaling, machine.len()) {
        (Some(_), 0) => "    name_real z[NAME_FEATURES], phi[1] = {0};\n    name_scale(x, z);\n",
        (Some(_), _) => "    name_real z[NAME_FEATURES], phi[NAME_VECTORS];\n    name_scale(x, z);\n    name_basis(z, phi);\n",
        (None, 0) => "    const name_real *z = x;\n    name_real phi[1] = {0};\n",
        (None, _) => "    const name_real *z = x;\n    name_real phi[NAME_VECTORS];\n    name_basis(z, phi);\n",
    }
}

/// Returns the declarations, the lines of `rows` and the lines after them, in an order that C++11 and C99 accept.
fn body(machine: &Machine, declared: &str, done: &str) -> String {
    format!("{declared}{}    (void)z;\n{done}", rows(machine))
}

/// Writes `name_predict`. `rest`: declarations, and lines after the mean.
fn predict(w: &mut Writer, machine: &Machine, rest: Option<(&str, &str)>, std: bool) {
    let (declared, done) = rest.unwrap_or_default();
    let end = if done.is_empty() { "" } else { "\n" };
    let doc = if std {
        "mean, and standard deviation of a new observation, NAME_OUTPUTS of each"
    } else {
        "mean, NAME_OUTPUTS numbers"
    };
    let template = format!(
        "/* Predicts a row x of NAME_FEATURES numbers: {doc}. */
static inline void name_predict(const name_real *x, name_real *mean{}) {{
{}{end}}}
",
        if std { ", name_real *std" } else { "" },
        body(machine, declared, &format!("    name_functions(phi, mean);\n{done}"))
    );
    w.code(None, &template, &[]);
}

fn counts(w: &mut Writer, machine: &Machine, own: &Spread, std: bool) {
    spread::solve(w);
    spread::variance(w, None, machine, own);
    // Variance of the rate divided by the square of its mean: exp(v) - 1 = tanh(v / 2) (exp(v) + 1) up to v = 4, and
    // growth with sqrt(v) above.
    let of_std = "    u = v < 4.0$ ? v : 4.0$;
    u = tanh$(u / 2.0$) * (exp$(u) + 1.0$) + sqrt$(v) - sqrt$(u);
    *std = sqrt$(*mean * *mean * u + *mean);";
    let done = format!(
        "    v = name_variance(z, phi);\n    *mean = exp$(*mean + v / 2.0$);{}{}",
        if std { "\n" } else { "" },
        if std { of_std } else { "" }
    );
    let declared = if std { "    name_real v, u;\n" } else { "    name_real v;\n" };
    predict(w, machine, Some((declared, &done)), std);
}

/// Writes `part_odds`, which computes the moderated log odds of the second class from z and phi.
fn odds(w: &mut Writer, part: Part, machine: &Machine, own: Option<&Spread>) {
    if let Some(own) = own {
        spread::variance(w, part, machine, own);
    }
    let moderated = format!("f / sqrt$(1.0$ + {} * part_variance(z, phi))", w.number(PI / 8.0));
    let template = format!(
        "/* Returns the log odds of the second of two classes. */
static inline name_real part_odds(const name_real *z, const name_real *phi) {{
    name_real f;
    (void)z;
    part_functions(phi, &f);
    return {};
}}
",
        if own.is_some() { &moderated } else { "f" }
    );
    w.code(part, &template, &[]);
}

/// Writes `name_probabilities` with the lines that compute p and the class k.
fn probabilities(w: &mut Writer, machine: &Machine, declared: &str, done: &str) {
    let template = format!(
        "/* Computes the probabilities p of the NAME_CLASSES classes for a row x of NAME_FEATURES numbers.
   Returns the number of the most probable class, from 0. */
static inline int name_probabilities(const name_real *x, name_real *p) {{
{}}}
",
        body(machine, declared, done)
    );
    w.code(None, &template, &[]);
}

/// Writes `name_class`, the class with the largest probability.
fn class_of_probabilities(w: &mut Writer) {
    w.code(
        None,
        "/* Returns the number of the most probable class for a row x, from 0. */
static inline int name_class(const name_real *x) {
    name_real p[NAME_CLASSES];
    return name_probabilities(x, p);
}
",
        &[],
    );
}

fn two(w: &mut Writer, machine: &Machine) {
    let done = "    f = name_odds(z, phi);
    p[0] = 1.0$ / (1.0$ + exp$(f));
    p[1] = 1.0$ / (1.0$ + exp$(-f));
    return f > 0;
";
    probabilities(w, machine, "    name_real f;\n", done);
    class_of_probabilities(w);
}

/// Writes `name_normalise`, which converts log probabilities in p, not necessarily normalised, to probabilities.
fn normalise(w: &mut Writer) {
    w.code(
        None,
        "/* Converts logarithms p of numbers proportional to probabilities to the probabilities.
   Returns the number of the largest, from 0. */
static inline int name_normalise(name_real *p) {
    name_real sum = 0;
    int k, most = 0;
    for (k = 1; k < NAME_CLASSES; k++) if (p[k] > p[most]) most = k;
    for (k = NAME_CLASSES - 1; k >= 0; k--) if (k != most) sum += (p[k] = exp$(p[k] - p[most]));
    p[most] = 1;
    for (k = 0; k < NAME_CLASSES; k++) p[k] /= 1.0$ + sum;
    return most;
}
",
        &[],
    );
}

fn joint(w: &mut Writer, machine: &Machine, own: Option<&JointSpread>) {
    normalise(w);
    let Some(own) = own else {
        probabilities(w, machine, "", "    name_functions(phi, p);\n    return name_normalise(p);\n");
        return class_of_probabilities(w);
    };
    spread::solve(w);
    spread::covariances(w, machine, own);
    let contrasts = own.present.len();
    // 1 / p_k = sum_l exp((f_l - f_k) / s_kl), with the largest term as a common factor.
    let done = "    name_functions(phi, f);
    name_covariances(phi, g);
    for (k = 0; k < NAME_CLASSES; k++) {
        top = 0;
        for (l = 0; l < NAME_CLASSES; l++) {
            v = 0;
            for (r = 0; r < {r}; r++) d[r] = NAME_AT(name_contrasts, k * {r} + r) - NAME_AT(name_contrasts, l * {r} + r);
            for (r = 0; r < {r}; r++) for (s = 0; s < {r}; s++) v += d[r] * d[s] * g[r * {r} + s];
            t[l] = (f[l] - f[k]) / sqrt$(1.0$ + {moderation} * (v > 0 ? v : 0));
            if (t[l] > top) top = t[l];
        }
        v = 0;
        for (l = 0; l < NAME_CLASSES; l++) v += exp$(t[l] - top);
        p[k] = -(top + log$(v));
    }
    return name_normalise(p);
";
    let declared = "    name_real f[NAME_CLASSES], t[NAME_CLASSES], g[{rr}], d[{r}], v, top;\n    int k, l, r, s;\n";
    let fill = |text: &str| {
        let text = text.replace("{rr}", &(contrasts * contrasts).to_string()).replace("{r}", &contrasts.to_string());
        text.replace("{moderation}", &w.number(PI / 8.0))
    };
    let (declared, done) = (fill(declared), fill(done));
    probabilities(w, machine, &declared, &done);
    class_of_probabilities(w);
}

fn committee(w: &mut Writer, machine: &Machine, rule: MultiClass, members: &[Machine]) {
    normalise(w);
    couple(w, rule);
    // All binary models with the kernel of the whole model use its basis functions.
    basis::basis(w, None, machine);
    if members.iter().any(|member| matches!(member.task, Task::Two(Some(_)))) {
        spread::solve(w);
    }
    let mut calls = String::new();
    for (k, member) in members.iter().enumerate() {
        let Task::Two(own) = &member.task else { unreachable!("every member is a binary model") };
        member_basis(w, k, machine, member);
        spread::functions(w, Some(k), member);
        odds(w, Some(k), member, own.as_ref());
        if member.len() > 0 {
            calls += &format!("    name_{k}_member(z, phi, own);\n");
        }
        calls += &format!("    f[{k}] = name_{k}_odds(z, own);\n");
    }
    let declared = format!("    name_real f[{}], own[{}] = {{0}};\n", members.len(), machine.len().max(1));
    probabilities(w, machine, &declared, &format!("{calls}    return name_couple(f, p);\n"));
    class_of_probabilities(w);
}

/// Writes `part_member`, which computes the basis functions of a binary model from z and the basis functions of the
/// whole model.
fn member_basis(w: &mut Writer, k: usize, outer: &Machine, member: &Machine) {
    if member.len() == 0 {
        return;
    }
    let place = |row: &usize| outer.model.relevance.iter().position(|r| r == row);
    let places: Option<Vec<usize>> = member.model.relevance.iter().map(place).collect();
    let shares = match (&outer.basis, &member.basis) {
        (Basis::Kernel { kernel, .. }, Basis::Kernel { kernel: own, .. }) => kernel == own,
        _ => false,
    };
    let body = match places.filter(|_| shares) {
        Some(places) => {
            w.places(Some(k), "places", &places);
            "    int m;
    (void)z;
    for (m = 0; m < {m}; m++) own[m] = phi[NAME_PLACE(part_places, m)];
"
        }
        None => {
            basis::basis(w, Some(k), member);
            "    (void)phi;
    part_basis(z, own);
"
        }
    };
    let head = "/* Selects or computes the kernel values of one of the binary models. */
static inline void part_member(const name_real *z, const name_real *phi, name_real *own) {
";
    w.code(Some(k), &format!("{head}{body}}}\n"), &[("m", member.len().to_string())]);
}

/// Writes `name_couple`, which computes probabilities of all classes from the log odds of binary models.
fn couple(w: &mut Writer, rule: MultiClass) {
    if rule != MultiClass::OneVsOne {
        let template = "/* Computes the probabilities p from the log odds f of each class against all others.
   Returns the number of the largest, from 0. */
static inline int name_couple(const name_real *f, name_real *p) {
    int k;
    for (k = 0; k < NAME_CLASSES; k++) p[k] = f[k] < 0 ? f[k] - log$(1.0$ + exp$(f[k])) : -log$(1.0$ + exp$(-f[k]));
    return name_normalise(p);
}
";
        return w.code(None, template, &[]);
    }
    let least = if w.single { LEAST_SINGLE } else { LEAST_DOUBLE };
    let values = [("least", w.number(least)), ("pivot", w.number(LEAST_PIVOT))];
    w.code(
        None,
        "/* Computes the probabilities p from the log odds f of the later class of each pair, by elimination.
   They minimise the sum of (r_lk p_k - r_kl p_l)^2, where r_kl is the probability of class k among the
   classes k and l (Wu, Lin and Weng 2004). Returns the number of the largest, from 0. */
static inline int name_couple(const name_real *f, name_real *p) {
    name_real r[NAME_CLASSES][NAME_CLASSES], q[NAME_CLASSES][NAME_CLASSES], t, sum = 0;
    int i, j, k, most = 0;
    for (j = 0; j < NAME_CLASSES; j++) for (i = 0; i < j; i++) {
        t = 1.0$ / (1.0$ + exp$(-f[j * (j - 1) / 2 + i]));
        t = t < {least} ? {least} : t > 1.0$ - {least} ? 1.0$ - {least} : t;
        r[j][i] = t;
        r[i][j] = 1.0$ - t;
    }
    for (i = 0; i < NAME_CLASSES; i++) {
        q[i][i] = 0;
        p[i] = 1;
        for (j = 0; j < NAME_CLASSES; j++) if (j != i) {
            q[i][i] += r[j][i] * r[j][i];
            q[i][j] = -r[i][j] * r[j][i];
        }
    }
    for (i = 0; i < NAME_CLASSES; i++) {
        if (q[i][i] < {pivot}) q[i][i] = {pivot};
        for (k = 0; k < NAME_CLASSES; k++) if (k != i) {
            t = q[k][i] / q[i][i];
            for (j = i; j < NAME_CLASSES; j++) q[k][j] -= t * q[i][j];
            p[k] -= t * p[i];
        }
    }
    for (k = 0; k < NAME_CLASSES; k++) sum += (p[k] /= q[k][k]);
    for (k = 0; k < NAME_CLASSES; k++) if ((p[k] /= sum) > p[most]) most = k;
    return most;
}
",
        &values,
    );
}

fn votes(w: &mut Writer, machine: &Machine, margins: &Margins) {
    let template = format!(
        "/* Computes the values f of the NAME_FUNCTIONS decision functions for a row x of NAME_FEATURES numbers.
   A value above 0 means the later class. */
static inline void name_decision(const name_real *x, name_real *f) {{
{}}}
",
        body(machine, "", "    name_functions(phi, f);\n")
    );
    w.code(None, &template, &[]);
    let vote = match margins.multi_class {
        None => "    return f[0] > 0;\n",
        Some(MultiClass::OneVsOne) => {
            "    int votes[NAME_CLASSES] = {0}, i, j, most = 0;
    for (j = 1; j < NAME_CLASSES; j++) for (i = 0; i < j; i++) votes[f[j * (j - 1) / 2 + i] > 0 ? j : i]++;
    for (i = 1; i < NAME_CLASSES; i++) if (votes[i] > votes[most]) most = i;
    return most;
"
        }
        Some(_) => {
            "    int i, most = 0;
    for (i = 1; i < NAME_CLASSES; i++) if (f[i] > f[most]) most = i;
    return most;
"
        }
    };
    let template = format!(
        "/* Returns the number, from 0, of the class that the values f of the decision functions choose. */
static inline int name_vote(const name_real *f) {{
{vote}}}

/* Returns the number of the class of a row x, from 0. */
static inline int name_class(const name_real *x) {{
    name_real f[NAME_FUNCTIONS];
    name_decision(x, f);
    return name_vote(f);
}}
"
    );
    w.code(None, &template, &[]);
    if margins.sigmoids.is_empty() {
        return;
    }
    w.table(None, "sigmoids", margins.sigmoids.iter().flatten().copied());
    let couples = match margins.multi_class {
        None => "    p[0] = 1.0$ / (1.0$ + exp$(f[0]));\n    p[1] = 1.0$ / (1.0$ + exp$(-f[0]));\n",
        Some(rule) => {
            normalise(w);
            couple(w, rule);
            "    name_couple(f, p);\n"
        }
    };
    let template = format!(
        "/* Computes the probabilities p of the NAME_CLASSES classes for a row x.
   Returns the number, from 0, of the class that the decision functions choose. */
static inline int name_probabilities(const name_real *x, name_real *p) {{
    name_real f[NAME_FUNCTIONS];
    int c, most;
    name_decision(x, f);
    most = name_vote(f);
    for (c = 0; c < NAME_FUNCTIONS; c++) f[c] = -(NAME_AT(name_sigmoids, 2 * c) * f[c] + NAME_AT(name_sigmoids, 2 * c + 1));
{couples}    return most;
}}
"
    );
    w.code(None, &template, &[]);
}

fn labels(w: &mut Writer, classes: &[Label]) {
    if classes.is_empty() {
        return;
    }
    let names: Vec<String> = classes.iter().map(|label| literal(&label.to_string())).collect();
    let template = "/* Returns the name of the class with number k. */
static inline const char *name_label(int k) {
    static const char *const labels[NAME_CLASSES] = {{names}};
    return labels[k];
}
";
    w.code(None, template, &[("names", names.join(", "))]);
}
