"""What the results of the benchmark of defaults say: means of tables, and the figures to reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from defaults_tables import BIG, SIZES, TABLES

# Training rows at which figures are to be reached.
MIDDLE = (100, 200, 400)
# RMSE, NLPD and CPU seconds of `RVR(gamma="evidence-ard", dictionary=1000)` of commit 0d1570f at 10,000 rows: medians
# of the same five draws, on the computer of docs/defaults.md.
EARLIER = {
    "kin40k": (0.2348, -0.0328, 8.6),
    "california": (0.4623, 0.6459, 12.8),
    "protein": (0.6746, 1.0262, 9.3),
}
SEVERAL_CLASSES = ("digits", "wine", "iris")
MEASURES = ["rmse", "nlpd", "coverage", "r2", "error", "loss", "centres", "cpu"]
WORDS = ["table", "size", "draw", "method", "skipped", "failed"]
NOTHING = pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], []], names=["table", "size"]))


@dataclass(frozen=True)
class Goal:
    """A figure, what it should be, and whether it is."""

    what: str
    asked: str
    found: str
    reached: bool | None


def frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Records as a table, with NaN for what they have not measured."""
    return pd.DataFrame(records, columns=WORDS + MEASURES).astype(dict.fromkeys(MEASURES, float))


def means(found: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Means over draws: tables and sizes by methods."""
    return found.pivot_table(index=["table", "size"], columns="method", values=measure, sort=False)


def above(found: pd.DataFrame, measure: str, method: str, other: str) -> pd.Series:
    """The mean difference on draws that both have, by table and size."""
    wide = found.pivot_table(index=["table", "size", "draw"], columns="method", values=measure, sort=False)
    if method not in wide or other not in wide:
        return NOTHING
    return (wide[method] - wide[other]).dropna().groupby(level=["table", "size"], sort=False).mean()


def of(values: pd.Series, *sizes: int, general: bool = True, low_noise: bool = True) -> pd.Series:
    """Those of the sizes; `general`: only regressions that come in all sizes."""

    def kept(name: str) -> bool:
        table = TABLES[name]
        return (table.sizes == SIZES or not general) and not table.exact and (low_noise or not table.low_noise)

    tables, own = values.index.get_level_values("table"), values.index.get_level_values("size")
    return values[own.isin(sizes) & tables.map(kept).to_numpy(bool)]


def limit(what: str, value: float, most: float, digits: int = 3, where: str = "", unit: str = "") -> Goal:
    """A figure that should be at most so large."""
    missing = np.isnan(value)
    shown = "not measured" if missing else f"{value:.{digits}f}{unit}{f' ({where})' if where else ''}"
    return Goal(what, f"at most {most:g}{unit}", shown, None if missing else bool(value <= most))


def largest(values: pd.Series) -> tuple[float, str]:
    """The largest value, and its table and size."""
    if values.empty:
        return float("nan"), ""
    where = values.idxmax()
    return float(values.max()), ", ".join(map(str, where)) if isinstance(where, tuple) else str(where)


def goals(found: pd.DataFrame) -> list[Goal]:
    """All figures to reach."""
    regressions = found[~found.table.map(lambda name: TABLES[name].classes)]
    return [
        *of_regression(regressions),
        *of_ard(regressions),
        *of_cost(regressions),
        *of_big(found),
        *of_classes(found),
    ]


def of_regression(found: pd.DataFrame) -> Iterator[Goal]:
    nlpd = above(found, "nlpd", "relvec", "dense")
    for size, most in zip(MIDDLE, (0.03, 0.03, 0.035), strict=True):
        yield limit(f"mean NLPD above the dense process, {size} rows", of(nlpd, size).mean(), most)
    worst, where = largest(of(nlpd, 80, *MIDDLE, general=False))
    yield limit("NLPD above the dense process, worst table, 80 to 400 rows", worst, 0.15, where=where)
    short = of(-100.0 * above(found, "coverage", "relvec", "dense"), 80, *MIDDLE, general=False)
    worst, where = largest(short.groupby(level="table").mean())
    yield limit("coverage of 95 % intervals below the dense process's, worst table", worst, 3.0, 1, where, " points")
    covered = 100.0 * of(column(means(found, "coverage"), "relvec"), *MIDDLE).mean()
    shown = "not measured" if np.isnan(covered) else f"{covered:.1f} %"
    yield Goal(
        "mean coverage, 100 to 400 rows", "92 to 97 %", shown, None if np.isnan(covered) else 92 <= covered <= 97
    )
    for size, most in zip(MIDDLE, (33, 22, 18), strict=True):
        yield limit(f"centres, share of the rows, {size} rows", share(found, "relvec", size), most, 1, unit=" %")
    noise = found[found.table.map(lambda name: TABLES[name].noise)]
    wide = noise.pivot_table(index=["size", "draw"], columns="method", values="centres")
    if {"relvec", "dense"} <= set(wide):
        both = wide[["relvec", "dense"]].dropna()
        # Among many draws of noise a few look like structure by chance.
        found_none = both.dense == 0
        what = "centres of pure noise, most of the draws in which the dense process finds none"
        where = f"{found_none.sum()} of {len(both)} draws"
        yield limit(what, both.relvec[found_none].max(), 0, 0, where)
    r2 = found[(found.method == "relvec") & found.table.map(lambda name: TABLES[name].exact)].r2.min()
    shown = "not measured" if np.isnan(r2) else f"{r2:.5f}"
    yield Goal("R2 of exact lines, least of any draw", "above 0.99", shown, None if np.isnan(r2) else bool(r2 > 0.99))
    own = found[found.method == "relvec"].failed
    yield limit("default fits that failed", float("nan") if own.empty else float(own.count()), 0, 0)


def column(wide: pd.DataFrame, method: str) -> pd.Series:
    return wide[method].dropna() if method in wide else NOTHING


def share(found: pd.DataFrame, method: str, size: int) -> float:
    """Mean share of the rows that are centres, in per cent."""
    return float(100.0 * of(column(means(found, "centres"), method), size).mean() / size)


def of_ard(found: pd.DataFrame) -> Iterator[Goal]:
    yield limit('`weight_prior="ard"`: relevance vectors, share of 200 rows', share(found, "ard", 200), 7, 1, unit=" %")
    value = of(above(found, "nlpd", "ard", "dense"), 200, low_noise=False).mean()
    what = '`weight_prior="ard"`: mean NLPD above the dense process, 200 rows, without low-noise tables'
    yield limit(what, value, 0.10)


def of_cost(found: pd.DataFrame) -> Iterator[Goal]:
    for size, most in ((200, 0.2), (1000, 0.1)):
        wide = found[found["size"] == size].pivot_table(index=["table", "draw"], columns="method", values="cpu")
        both = wide[["relvec", "gp"]].dropna() if {"relvec", "gp"} <= set(wide) else pd.DataFrame()
        ratio = float("nan") if both.empty else both.relvec.sum() / both.gp.sum()
        yield limit(f"CPU seconds beside scikit-learn's process, {size} rows", ratio, most)


def of_big(found: pd.DataFrame) -> Iterator[Goal]:
    for name, (rmse, nlpd, cpu) in EARLIER.items():
        own = found[(found.table == name) & (found["size"] == BIG) & (found.method == "relvec")]
        head = f"{name}, 10,000 rows, beside earlier learned widths:"
        yield limit(f"{head} RMSE, ratio", own.rmse.median() / rmse, 1.05)
        yield limit(f"{head} NLPD above", own.nlpd.median() - nlpd, -0.1 if name == "kin40k" else 0.02)
        yield limit(f"{head} CPU seconds, ratio", own.cpu.median() / cpu, 1.0, 2)
    million = found[found["size"] == 1_000_000].set_index("method").cpu
    ratio = million.get("relvec", np.nan) / million.get("scale", np.nan)
    yield limit('1,000,000 rows: CPU seconds beside gamma="scale"', float(ratio), 2.0, 2)


def of_classes(found: pd.DataFrame) -> Iterator[Goal]:
    own = found[found.table.map(lambda name: TABLES[name].classes)]
    loss, centres = means(own[own["size"] == 300], "loss"), means(own[own["size"] == 300], "centres")
    for words, kept, most in (("two", False, 0.98), ("several", True, 0.88)):
        ratios = [float("nan"), float("nan")]
        for number, wide in enumerate((loss, centres)):
            if {"relvec", "svm"} <= set(wide):
                both = wide[["relvec", "svm"]].dropna()
                both = both[both.index.get_level_values("table").isin(SEVERAL_CLASSES) == kept]
                ratios[number] = both.relvec.mean() / both.svm.mean()
        yield limit(f"{words} classes: mean log loss beside SVC + Platt, ratio", ratios[0], most)
        yield limit(f"{words} classes: centres beside the support vectors, ratio", ratios[1], 0.5, 2)
    digits = own[(own.table == "digits") & (own.method == "relvec")].groupby("size")
    for size, error, loss_most, seconds in ((300, 6.0, 0.2, 0.5), (1200, 3.0, 0.1, 3.0)):
        at = digits.get_group(size) if size in digits.groups else None
        nan = float("nan")
        yield limit(f"digits, {size} rows: error", nan if at is None else 100 * at.error.mean(), error, 1, unit=" %")
        yield limit(f"digits, {size} rows: log loss", nan if at is None else at.loss.mean(), loss_most)
        yield limit(f"digits, {size} rows: CPU seconds of a fit", nan if at is None else at.cpu.mean(), seconds, 2)
