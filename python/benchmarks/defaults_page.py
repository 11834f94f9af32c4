"""The page of the benchmark of defaults, and its summary in plain text."""

from __future__ import annotations

import numpy as np
import pandas as pd
from computer import facts
from defaults_figures import above, column, goals, means, of
from defaults_methods import METHODS, version
from defaults_tables import SIZES, TABLES, TEST_ROWS

HEAD = f"""# Fits without settings

This page is written by `cargo xtask bench defaults --data FOLDER`. It compares `RVR()` and `RVC()` without settings,
other learners, and a dense Gaussian process that learns its kernel from the same rows
(python/benchmarks/dense_process.py). Training rows are drawn at random, and up to {TEST_ROWS:,} other rows are test
rows. Features, and targets of a regression, are standardised by the training rows. An RMSE of 1 is therefore that of
predicting the mean.

NLPD is the mean negative log predictive density in nats. Coverage is the share of test targets in the central 95 %
interval. Centres are the rows that a prediction needs: relevance vectors, support vectors, or all rows. CPU seconds
are those of the whole fit on one thread, including cross-validation. Figures are means over the draws. No setting was
chosen on these draws.

"""


# What the tables of regressions and of classes show: title, measure, factor, format.
REGRESSION = [
    ("NLPD", "nlpd", 1.0, ".3f"),
    ("RMSE", "rmse", 1.0, ".3f"),
    ("Coverage of 95 % intervals [%]", "coverage", 100.0, ".1f"),
    ("Centres", "centres", 1.0, ".0f"),
    ("CPU seconds", "cpu", 1.0, ".3g"),
]
CLASSES = [
    ("Log loss", "loss", 1.0, ".3f"),
    ("Error rate [%]", "error", 100.0, ".1f"),
    ("Centres", "centres", 1.0, ".0f"),
    ("CPU seconds", "cpu", 1.0, ".3g"),
]


def split(found: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Regressions and classes."""
    classes = found.table.map(lambda name: TABLES[name].classes).to_numpy(bool)
    return found[~classes], found[classes]


def in_order(wide: pd.DataFrame) -> pd.DataFrame:
    """Tables as they are listed, by size; methods as they are listed."""
    if wide.empty:
        return wide
    names = list(TABLES)
    wide = wide.sort_index(key=lambda level: level.map(names.index) if level.name == "table" else level)
    return wide[[name for name in METHODS if name in wide]]


def summary(found: pd.DataFrame) -> str:
    """Plain text that two versions can be compared by; figures of time are among the last lines alone."""
    parts = [f"relvec {version(METHODS['relvec'])}"]
    regression, classes = split(found)
    for own, other, measures in (
        (regression, "dense", ("nlpd", "rmse", "coverage", "centres")),
        (classes, "svm", ("loss", "error", "centres")),
    ):
        columns = {}
        methods = ("dense", "relvec", "ard") if other == "dense" else ("svm", "dense", "relvec", "ard")
        for measure in measures:
            for method in methods:
                columns[f"{method} {measure}"] = column(means(own, measure), method)
                if method not in (other, "dense") and measure == measures[0]:
                    columns[f"{method} above"] = above(own, measure, method, other)
        columns = {name: values for name, values in columns.items() if not values.empty}
        if columns:
            shown = pd.DataFrame(columns).reset_index()
            shown["table"] = pd.Categorical(shown.table, list(TABLES))
            parts.append(shown.sort_values(["size", "table"]).round(3).to_string(index=False))
    failed = found[found.failed.notna()]
    parts += [" ".join(map(str, line)) for line in failed[["table", "size", "draw", "method", "failed"]].to_numpy()]
    parts.append("\n".join(f"{mark(goal.reached):<4}{goal.what}: {goal.found} ({goal.asked})" for goal in goals(found)))
    return "\n\n".join(parts) + "\n"


def mark(reached: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[reached]


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("|---| ", "|---|")


def by_table(own: pd.DataFrame, measure: str, factor: float, form: str) -> str:
    wide = in_order(means(own, measure))
    rows = [
        [name, f"{size:,}", *("-" if np.isnan(v) else f"{factor * v:{form}}" for v in line)]
        for (name, size), line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return table(["table", "rows", *wide.columns], rows)


def by_size(own: pd.DataFrame, measure: str, factor: float, form: str) -> str:
    """Means over the tables that come in all sizes; of methods that have a result on each."""
    wide = in_order(means(own, measure))
    rows = []
    for size in SIZES:
        at = pd.DataFrame({name: of(wide[name], size) for name in wide})
        if at.notna().to_numpy().any():
            values = [f"{factor * at[name].mean():{form}}" if at[name].notna().all() else "-" for name in at]
            rows.append([f"{size:,}", str(len(at)), *values])
    return table(["rows", "tables", *wide.columns], rows)


def page(found: pd.DataFrame) -> str:
    """The whole page."""
    regression, classes = split(found)
    about = "".join(f"- {name}: {value}\n" for name, value in facts(["numpy", "scipy", "scikit-learn"]).items())
    parts = [HEAD, about, "\n## Goals\n\n"]
    every = goals(found)
    reached, judged = sum(bool(goal.reached) for goal in every), sum(goal.reached is not None for goal in every)
    parts.append(f"{reached} of {judged} goals are reached.\n\n")
    lines = [[goal.what, goal.asked, goal.found, mark(goal.reached)] for goal in every]
    parts.append(table(["figure", "goal", "found", "reached"], lines))
    parts.append("\n## Methods\n\n")
    present = set(found.method)
    parts.append(table(["name", "method"], [[n, m.about] for n, m in METHODS.items() if n in present]))
    parts.append("\n## Tables\n\n")
    present = set(found.table)
    parts.append(table(["name", "contents"], [[n, t.about] for n, t in TABLES.items() if n in present]))
    for words, part, measures in (("regression", regression, REGRESSION), ("classes", classes, CLASSES)):
        if part.empty:
            continue
        if words == "regression":
            parts.append("\n## Means over the tables\n")
            parts += [f"\n{title}\n\n{by_size(part, *own)}" for title, *own in measures]
        parts.append(f"\n## Table by table: {words}\n")
        parts += [f"\n### {title}\n\n{by_table(part, *own)}" for title, *own in measures]
    return "".join(parts)
