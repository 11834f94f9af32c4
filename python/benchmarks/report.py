"""Tables in Markdown from the figures of the runs."""

from __future__ import annotations

from statistics import mean, median, stdev
from typing import Any

from cases import Case

Record = dict[str, Any]

HEAD = """# Benchmarks

This page is written by `cargo xtask bench peers`. Figures of different runs cannot be compared.

{facts}

Each fit is a process of its own. All learners of a case have the same data, made from fixed seeds. Each process first
makes a tiny fit, which loads the libraries. The learners of a case take turns. Figures are medians, followed by the
lowest and highest time if there were several runs. *CPU* is the time of all threads. On a computer with other work it
is more reliable than the wall time. *Peak* is the largest resident size during the fit minus the size before it, which
includes the data. *Threads* is the number of threads of the matrix library and of relvec. Settings are defaults unless
stated, except for the Gaussian kernel: all learners of a case have the same `gamma`. If a learner could not be
installed, imported or fitted, or exceeded the time limit, its row contains the reason.

*Error* is the root mean square error to the noise-free function in units of the target, or the share of test rows
classified wrongly. For simulated classes it is the expected share under the true densities (the best possible is
{bayes:.2%} on the mixture of Gaussians). *Evidence* is the log marginal likelihood in nats, for classes in Laplace's
approximation.

## Data

- `friedman-N`: Friedman 1 with N rows, 10 features, noise of standard deviation 1; features and target standardised;
  gamma 0.03. 5,000 test rows.
- `sinc-N`: sin(x) / x on [-10, 10], noise 0.1; gamma 0.1. 2,001 test rows.
- `mixture-N`: two classes of two Gaussians each in the plane, after Ripley; gamma 4. 20,000 test rows.
- `digits`: the digits of scikit-learn, 1,200 training rows, 597 test rows; gamma 0.1; ten one-vs-rest models, whose
  times, evidences and kernels are added. Each model has its own evidence to reach.
"""

LEARNERS = """
## Learners

- relvec: the settings of the papers (`relvec.presets.tipping2001`) and `dictionary="auto"`, which is all rows or
  landmarks. The row names all other settings.
- fastrvm: `fit_intercept=True`. sklearn-rvm: defaults.
- SVR: C = 10, epsilon = 0.1. SVC: C = 10. The kernels of both are the support vectors.
- GaussianProcessRegressor: the fixed length scale that corresponds to gamma; amplitude and noise learned.
- ARDRegression: on the columns of the kernel matrix.

Goals are ratios of another learner's time to that of relvec. There are two further goals: a whole fit takes at most
2 s at 1,000 rows, and a small problem may take longer only if the evidence is more than 1 nat higher.
"""

FASTRVM = """
fastrvm's evidence is computed by the benchmark, from fastrvm's basis functions and precisions. The precision of a
weight is `alpha_` times the fourth power of the length of its column. With these precisions fastrvm's weights are
reproduced to {off:.0e} of the largest value of the model function. fastrvm does not penalise the constant, which
therefore has the precision of highest evidence. *To its evidence* is the time from the call of `fit` until the trace of
relvec reaches fastrvm's evidence. *Ratio* is fastrvm's time divided by this time. *Best* is the time until relvec
reaches the evidence of fastrvm's basis functions with the precisions and noise of highest evidence. fastrvm runs with
one thread.
"""


def number(value: float | None, digits: int = 3) -> str:
    """A few digits, without an exponent where that is short."""
    if value is None:
        return "-"
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text and abs(value) < 1e7 else text


def middle(records: list[Record], name: str) -> float | None:
    """Median of a figure, if all have it."""
    values = [record.get(name) for record in records]
    return None if not values or any(v is None for v in values) else median(values)


def reached(record: Record, targets: list[float] | None) -> float | None:
    """Seconds from the call of fit until every trace of a record is at its target."""
    if targets is None or "traces" not in record:
        return None
    total = record["overhead"]
    for (seconds, evidence), target in zip(record["traces"], targets, strict=True):
        first = next((s for s, e in zip(seconds, evidence, strict=True) if e >= target), None)
        if first is None:
            return None
        total += first
    return total


def ratio(peer: float | None, ours: float | None, goal: float | None) -> str:
    """Peer's time to ours, and the goal."""
    if peer is None or ours is None:
        return "-"
    return number(peer / ours) + (f" (goal {number(goal)})" if goal else "")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, words to the left."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def spread(values: list[float]) -> str:
    """Median, lowest and highest."""
    text = number(median(values))
    return f"{text} ({number(min(values))} to {number(max(values))})" if len(values) > 1 else text


def fits(cases: list[Case], records: dict[str, list[list[Record]]]) -> str:
    """One row per case and learner; where fastrvm is there, with ratios."""
    beside = any(entry.learner == "fastrvm" for case in cases for entry in case.entries)
    head = ["case", "learner", "threads", "fit s", "CPU s", "peak MB", "error", "evidence", "kernels"]
    head += ["to its evidence s", "ratio", "best s", "ratio of whole fits"] if beside else ["log loss", "status"]
    rows = []
    for case in cases:
        runs = records[case.name]
        peers = [r for entry, r in zip(case.entries, runs, strict=True) if entry.learner == "fastrvm"]
        peer = peers[0] if peers and "failed" not in peers[0][0] else None
        for entry, own in zip(case.entries, runs, strict=True):
            name = [f"`{case.name}`", entry.label, str(entry.threads)]
            if "failed" in own[0]:
                rows.append([*name, own[0]["failed"], *[""] * (len(head) - 4)])
                continue
            evidence = number(middle(own, "evidence"), 7)
            if "best_evidence" in own[0]:
                evidence += f" (best {number(middle(own, 'best_evidence'), 7)})"
            row = [
                *name,
                spread([r["wall"] for r in own]),
                number(middle(own, "cpu")),
                memory(middle(own, "peak"), peer and entry.learner == "relvec" and middle(peer, "peak"), case.lean),
                error(case.kind, middle(own, "error")),
                evidence,
                number(middle(own, "kernels"), 6),
            ]
            if beside:
                row += against(peer, own, case) if entry.learner == "relvec" else ["", "", "", ""]
            else:
                row += [number(middle(own, "log_loss")), str(own[0].get("status", ""))]
            rows.append(row)
    return table(head, rows)


def memory(value: float | None, theirs: float | None, goal: float | None) -> str:
    """A peak, and where there is a goal how often it goes into the peer's."""
    if goal is None or not value or not theirs:
        return number(value)
    return f"{number(value)} (fastrvm's / {number(theirs / value)}, goal {number(goal)})"


def against(peer: list[Record] | None, own: list[Record], case: Case) -> list[str]:
    """Times to the peer's evidence and best evidence, and the ratios."""
    if peer is None:
        return ["-"] * 4
    wall = middle(peer, "wall")
    times = []
    for targets in ("targets", "best_targets"):
        found = [reached(record, peer[0][targets]) for record in own]
        times.append(None if None in found else median(found))
    words = [number(t) if t is not None else "not reached" for t in times]
    return [words[0], ratio(wall, times[0], case.reach), words[1], ratio(wall, middle(own, "wall"), case.whole)]


def error(kind: str, value: float | None) -> str:
    """An error with its unit."""
    return "-" if value is None else f"{value:.2%}" if kind == "classes" else number(value)


def prediction(record: Record, rows: int, threads: int) -> str:
    """Times of one prediction and what it is compared with."""
    if "failed" in record:
        return record["failed"] + "\n"
    bare, triangle = record["distances and exp"], record["triangular product"]
    mean, both = record["mean"], record["mean and std"]
    ours, theirs = record["vectors"]
    lines = [
        ["distances and exp by numpy", number(bare), ""],
        ["triangular product N M^2 (dtrmm)", number(triangle), ""],
        [f"relvec, mean, {ours} kernels", number(mean), f"{number(mean / bare)} of distances and exp (goal 1.5)"],
        [
            "relvec, mean and std",
            number(both),
            f"mean + {number((both - mean) / triangle)} triangular products (goal 1.3)",
        ],
        [f"SVR, mean, {theirs} vectors", number(record["SVR"]), f"{number(record['SVR'] / mean)} of relvec (goal 10)"],
    ]
    healed, product, exps = record["healed"], record["product of kept rows"], record["distances and exp of kept rows"]
    lines += [
        [f"numpy, 10,000 x 1,000 x {record['kernels of kept rows']} product", number(product), ""],
        ["distances and exp of 10,000 x 1,000 by numpy", number(exps), ""],
        [
            "relvec, healed std of 10,000 rows, 1,000 stored",
            number(healed),
            f"{number(healed / product)} products (goal about 1), {number(healed / (product + exps))} with the kernel",
        ],
    ]
    title = f"{rows:,} rows, 250 kernels, 10 features, threads = {threads} (numpy's exp and SVR use one thread):\n\n"
    return title + table(["what", "s", "ratio"], lines)


def landmarks(record: Record, rows: int, size: int, threads: int) -> str:
    """One fit in units of the symmetric product."""
    if "failed" in record:
        return record["failed"] + "\n"
    product, by_cpu = (sum(figures) / len(figures) for figures in zip(*record["products"], strict=True))
    flops = rows * size**2 / product / 1e9
    both = ", ".join(number(p) for p, _ in record["products"])
    wall = record["wall"]
    lines = [
        [
            "symmetric product K'K, before and after, by the better of one and all threads",
            f"{both} s",
            f"{flops:.0f} GFLOP/s counted as N L^2",
        ],
        ["one Cholesky factor L x L", f"{number(record['cholesky'])} s", ""],
        ["whole fit", f"{number(wall)} s", f"{number(wall / product)} symmetric products (goal 1.5)"],
        [
            "CPU time of the fit",
            f"{number(record['cpu'])} s",
            f"{number(record['cpu'] / by_cpu)} of the CPU time of symmetric products",
        ],
        ["error to the true function", number(record["error"]), "goal 0.035"],
        ["peak beyond the input", f"{number(record['peak'])} MB", "goal 300"],
        ["kernels, iterations, status", f"{record['kernels']}, {record['iterations']}, {record['status']}", ""],
        ["noise standard deviation", number(record["noise"], 5), "true value 1"],
        ["evidence", number(record["evidence"], 9), ""],
    ]
    title = f"Friedman 1, {rows:,} rows, dictionary = {size}, one given scale per feature, threads = {threads}:\n\n"
    return title + table(["what", "figure", "compared"], lines)


# Seconds that a fit to sums may take, by landmarks, on the machine that they were measured on.
SOLVE_GOALS = {("protein_casp", 1000): 1.0, ("kin40k", 1000): 1.5, ("protein_casp", 2000): 4.0, ("kin40k", 2000): 7.0}


def solve(record: Record, size: int, threads: int) -> str:
    """Fits to sums over rows in units of one Cholesky factor."""
    if "failed" in record:
        return record["failed"] + "\n"
    unit = mean(record["cholesky"])
    rows = []
    for name, own in record["tables"].items():
        goal = SOLVE_GOALS.get((name, size))
        actions = own["actions"]
        rows.append(
            [
                f"`{name}`",
                number(own["pass"]),
                number(own["wall"]) + (f" (goal {number(goal)})" if goal else ""),
                number(own["wall"] / unit),
                number(own["cpu"]),
                number(own["kernels"]),
                f"{actions['added']}, {actions['deleted']}",
                number(own["evidence"], 7),
                own["status"],
            ]
        )
    both = ", ".join(number(seconds) for seconds in record["cholesky"])
    title = (
        f"`Statistics(...).fit()`, {size:,} landmarks, given scales of the features, threads = {threads}. Times are "
        f"the fastest of three. One Cholesky factor L x L takes {both} s (before and after the fits).\n\n"
    )
    head = ["table", "pass s", "fit s", "Cholesky factors", "CPU s", "kernels", "added, deleted"]
    return title + table([*head, "evidence", "status"], rows)


def classes(record: Record, rows: int, size: int, threads: int) -> str:
    """The cost of classes beside that of a regression."""
    if "failed" in record:
        return record["failed"] + "\n"
    lines = []
    for name, own in record.items():
        regression, both = own["regression"], own["classes"]
        lines.append(
            [
                f"`{name}`",
                f"{own['rows']:,}",
                str(own["landmarks"]),
                *[number(own["cpu"]) for own in (regression, both)],
                number(both["cpu"] / regression["cpu"]),
                *[number(own["wall"]) for own in (regression, both)],
                f"{regression['kernels']}, {both['kernels']}",
                f"{regression['status']}, {both['status']}",
            ]
        )
    title = (
        f"A classification and a regression with the same rows and landmarks, threads = {threads}. The classes are "
        "Friedman 1 (noise 2) above and below its median, and those of real tables. The targets of the regression are "
        "those of Friedman 1, and the labels 0 and 1 of the real tables.\n\n"
    )
    head = ["table", "rows", "landmarks", "regression CPU s", "classes CPU s", "ratio", "regression s", "classes s"]
    return title + table([*head, "kernels", "status"], lines)


def operations(record: Record, rows: int, size: int, threads: int) -> str:
    """Floating-point operations of classes beside those of a regression."""
    if "failed" in record:
        return record["failed"] + "\n"
    lines = []
    for name, own in record.items():
        counts = [own[kind]["operations"] for kind in ("regression", "classes")]
        kernels = ", ".join(str(own[kind]["kernels"]) for kind in ("regression", "classes"))
        ratio = f"{number(counts[1] / counts[0])} (goal 2)"
        lines.append([f"`{name}`", f"{rows:,}", str(size), *[number(count / 1e9) for count in counts], ratio, kernels])
    title = (
        "Floating-point operations, counted in an emulated processor with AVX2. A multiplication and an addition in "
        f"one instruction count as two. Tables are those above, with their first rows alone, threads = {threads}.\n\n"
    )
    head = ["table", "rows", "landmarks", "regression, 1e9", "classes, 1e9", "ratio", "kernels"]
    return title + table(head, lines)


def draws(record: Record, count: int, threads: int) -> str:
    """Errors and evidence of pairs of fits."""
    if "failed" in record:
        return record["failed"] + "\n"
    lines = []
    for name, runs in record.items():
        kind = runs[0]["kind"]
        theirs, ours = ([run[learner] for run in runs] for learner in ("fastrvm", "relvec"))
        worse = [b[0] - a[0] for a, b in zip(theirs, ours, strict=True)]
        nats = [b[1] - a[1] for a, b in zip(theirs, ours, strict=True)]
        scatter = error(kind, stdev(worse) / len(worse) ** 0.5) if len(worse) > 1 else "-"
        on = ["-", "-"]
        if kind == "regression":
            further = [run["on"] for run in runs]
            on = [
                number(mean(b[1] - a[1] for a, b in zip(theirs, further, strict=True))),
                f"{error(kind, mean(e for e, _ in further))}, "
                f"{sum(b[0] > a[0] for a, b in zip(theirs, further, strict=True))} of {count}",
            ]
        lines.append(
            [
                f"`{name}`",
                *[error(kind, mean(e for e, _ in own)) for own in (theirs, ours)],
                f"{error(kind, mean(worse))} +- {scatter}",
                f"{sum(w > 0 for w in worse)} of {count}",
                number(mean(nats)),
                *on,
                *[spread([run["ratios"][k] or 0.0 for run in runs]) for k in range(2)],
            ]
        )
    title = (
        f"Both learners are fitted to {count} draws of rows and noise, threads = {threads}. *Difference* is the error "
        "of relvec minus that of fastrvm: the mean and its standard error. *Warm start* is relvec started from "
        "fastrvm's model: the rise of the evidence, the error, and the number of draws in which the error is above "
        "fastrvm's. *Ratio to its evidence* is fastrvm's time divided by the time in which relvec reaches fastrvm's "
        "evidence, or 0 if it does not. *Ratio of whole fits* compares the times of whole fits. Both ratios are shown "
        "as the median, the lowest and the highest.\n\n"
    )
    head = ["case", "fastrvm", "relvec", "difference", "relvec is worse in", "evidence of relvec minus fastrvm's"]
    head += ["warm start: evidence", "warm start: error", "ratio to its evidence", "ratio of whole fits"]
    return title + table(head, lines)


def parts(record: Record, rows: int, threads: int) -> str:
    """Two searches over all rows."""
    if "failed" in record:
        return record["failed"] + "\n"
    lines = []
    for name, own in record.items():
        both = own["parts"], own["whole"]
        medians = [median(one["evidence"]) for one in both]
        lines.append(
            [
                f"`{name}`",
                *[f"{number(min(one['evidence']), 7)} to {number(max(one['evidence']), 7)}" for one in both],
                number(medians[0] - medians[1]),
                ", ".join(f"{median(one['kernels']):.0f}" for one in both),
                *[number(median(one["wall"])) for one in both],
                ", ".join(sorted({status for one in both for status in one["status"]})),
            ]
        )
    title = (
        f"{rows:,} rows, each a candidate, threads = {threads}. The search in working sets is compared with the search "
        "of all candidates at once (from sums over the rows). Rounding decides at which model a search ends. Each "
        "search is therefore repeated five times, and after the first time the targets are changed at random by 1e-6 "
        "of their standard deviation. The goal is that the median evidence in working sets is at most 10 nats lower."
        "\n\n"
    )
    head = ["table", "evidence in working sets", "at once", "difference of medians", "kernels"]
    return title + table([*head, "working sets s", "at once s", "status"], lines)


def candidates(record: Record, rows: int, *limit_and_threads: int) -> str:
    """One fit in units of a pass over the candidates."""
    if "failed" in record:
        return record["failed"] + "\n"
    *limit, threads = limit_and_threads
    unit, wall = record["pass"], record["wall"]
    lines = [
        ["a kernel value, in a prediction", f"{number(1e9 * record['entry'])} ns", ""],
        ["a matrix product by numpy", f"{number(1e-9 / record['product'])} GFLOP/s", ""],
        ["one pass: N^2 kernel values and 2 N^2 M operations", f"{number(unit)} s", ""],
        ["whole fit", f"{number(wall)} s", f"{number(wall / unit)} passes" + ("" if limit else " (goal 15)")],
        ["CPU time of the fit", f"{number(record['cpu'])} s", ""],
        ["peak beyond the input", f"{number(record['peak'])} MB", "" if limit else "goal 1,500"],
        ["error to the true function", number(record["error"]), ""],
        ["kernels, iterations, status", f"{record['kernels']}, {record['iterations']}, {record['status']}", ""],
        ["passes made", record["passes"], ""],
        ["evidence", number(record["evidence"], 7), ""],
    ]
    limited = f", time_limit = {limit[0]}" if limit else ""
    title = f"`friedman-{rows}`, dictionary = all{limited}, threads = {threads}:\n\n"
    return title + table(["what", "figure", "compared"], lines)
