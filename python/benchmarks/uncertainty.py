"""Whether stated uncertainty is true: sparsity, healed and calibrated variances, beside a Gaussian process.

    cargo xtask bench uncertainty --data FOLDER [--seeds N] [--sets SET ...]

FOLDER holds kin40k.csv.gz, boston_housing.csv, california_housing.csv.gz, protein_casp.csv.gz and elevators.csv.gz,
target last or called `target`; Friedman 1 and noise are generated. Of each set some rows are drawn to learn from, and
up to 2,000 others to predict; features and target are standardised by the former. A whole run writes
docs/uncertainty.md and docs/figures/healed.png.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from computer import ROOT, facts
from numpy.typing import NDArray
from relvec import RVR
from relvec.presets import tipping2001
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

Array = NDArray[np.float64]

# Rows to learn from.
ROWS = {
    "kin40k": 800,
    "friedman1": 400,
    "boston": 400,
    "california": 800,
    "protein": 800,
    "elevators": 800,
    "noise": 400,
}
FILES = {
    "kin40k": "kin40k.csv.gz",
    "boston": "boston_housing.csv",
    "california": "california_housing.csv.gz",
    "protein": "protein_casp.csv.gz",
    "elevators": "elevators.csv.gz",
}
# The generated sets have a width of their own; gamma times the number of features otherwise.
GAMMA = {"noise": 2.0}
TEST = 2000
WITHIN_95 = 1.959964
NOISE_DRAWS = 20
HEAD = """# Reliability of error bars

Made by `cargo xtask bench uncertainty --data FOLDER`. Training rows and test rows are drawn at random. Features and
targets are standardised, so that an RMSE of 1 is that of predicting the mean. NLPD is the mean negative log
predictive density in nats. Coverage is the share of test targets in the central 95 % interval. Figures are means over
{seeds} draws. RVR has an rbf kernel with gamma = "scale" (noise: 2), one precision per weight (`weight_prior =
"ard"`) and all rows as candidates. `sparsity` is in nats per kernel; `cv` chooses it. The Gaussian process is that of
scikit-learn, with all rows, a learned width, amplitude and noise.
"""

TAIL = """
No fit on this page has the default settings. The defaults learn the kernel and give the weights the prior of a
Gaussian process; [defaults.md](defaults.md) measures them. This page is about one precision per weight and a given
width. With the settings of the papers (sparsity 0, the variance of the posterior) error bars are reliable if a small
share of the rows become kernels. If the share is large, use `sparsity = 1, variance = "healed"`, the defaults with
`weight_prior = "ard"`, and `calibrate = true`: the model is smaller and found faster. Without the sparsity, or with
that of cross-validation, the density is a little higher still, after calibration.
"""


def table(name: str, folder: Path | None, seed: int, size: int | None = None) -> tuple[Array, Array, Array, Array]:
    """Rows and targets to learn from, `size` of them, and to predict, standardised."""
    rng = np.random.default_rng(seed)
    rows = ROWS[name] if size is None else size
    if name == "friedman1":
        X, y = make_friedman1(rows + TEST, n_features=10, noise=1.0, random_state=seed)
    elif name == "noise":
        X, y = rng.uniform(-2.0, 2.0, (rows + TEST, 2)), rng.standard_normal(rows + TEST)
    else:
        assert folder is not None
        frame = pd.read_csv(folder / FILES[name])
        target = "target" if "target" in frame.columns else frame.columns[-1]
        X, y = frame.drop(columns=target).to_numpy(float), frame[target].to_numpy(float)
    order = rng.permutation(len(X))[: rows + TEST]
    X, y = X[order], y[order]
    # Columns that are the same everywhere stay as they are.
    spread = X[:rows].std(axis=0)
    X = (X - X[:rows].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    y = (y - y[:rows].mean()) / y[:rows].std()
    return X[:rows], y[:rows], X[rows:], y[rows:]


def scores(mean: Array, std: Array, y: Array) -> dict[str, float]:
    """RMSE, NLPD and coverage."""
    z = (y - mean) / std
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "nlpd": float(np.mean(0.5 * np.log(2.0 * np.pi * std**2) + 0.5 * z**2)),
        "coverage": float(np.mean(np.abs(z) <= WITHIN_95)),
    }


def estimator(name: str, **own: Any) -> RVR:
    """The machine for a set."""
    gamma = GAMMA.get(name, "scale")
    return RVR(**{**tipping2001(gamma), "dictionary": "all", **own})


def rows_of(name: str, folder: Path | None, seed: int) -> list[dict[str, Any]]:
    """All settings on one draw."""
    X, y, X_test, y_test = table(name, folder, seed)
    out = []
    # A factor is that of one variance; without one a fit has both.
    fits = [
        (False, "healed", ("posterior", "healed")),
        (True, "posterior", ("posterior",)),
        (True, "healed", ("healed",)),
    ]
    for sparsity in (0.0, 1.0, "cv"):
        for calibrate, own, variances in fits:
            begin = time.perf_counter()
            model = estimator(name, sparsity=sparsity, calibrate=calibrate, variance=own).fit(X, y)
            seconds = time.perf_counter() - begin
            for variance in variances:
                mean, std = model.predict(X_test, return_std=True, variance=variance)
                out.append(
                    {
                        "set": name,
                        "sparsity": str(sparsity if sparsity == "cv" else int(sparsity)),
                        "variance": variance,
                        "calibrated": "yes" if calibrate else "no",
                        "vectors": len(model.relevance_),
                        **scores(mean, std, y_test),
                        "seconds": seconds,
                    }
                )
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        process = GaussianProcessRegressor(kernel, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begin
    mean, std = process.predict(X_test, return_std=True)
    name_of = {"set": name, "sparsity": "GP", "variance": "", "calibrated": ""}
    out.append({**name_of, "vectors": len(X), **scores(mean, std, y_test), "seconds": seconds})
    return out


def noise_kernels() -> dict[str, float]:
    """Kernels kept where there is nothing to learn, mean over draws."""
    kept: dict[str, list[int]] = {"0": [], "1": [], "cv": []}
    for seed in range(NOISE_DRAWS):
        X, y, _, _ = table("noise", None, 100 + seed)
        for name, vectors in kept.items():
            sparsity = "cv" if name == "cv" else float(name)
            vectors.append(len(estimator("noise", sparsity=sparsity).fit(X, y).relevance_))
    return {name: float(np.mean(vectors)) for name, vectors in kept.items()}


def gap_data(seed: int = 0) -> tuple[Array, Array]:
    """Sinc with noise of 0.1, and no rows between -3 and 3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(3.0, 10.0, 120) * rng.choice([-1.0, 1.0], 120)
    return x[:, np.newaxis], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(120)


def figure(path: Path) -> dict[str, float]:
    """RVM, healed RVM and a Gaussian process beside a gap; what they say of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = gap_data()
    grid = np.linspace(-16.0, 16.0, 400)[:, np.newaxis]
    model = RVR(**{**tipping2001(0.3), "variance": "healed"}).fit(X, y)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, random_state=0).fit(X, y)
    panels = {
        "RVM": model.predict(grid, return_std=True, variance="posterior"),
        "healed RVM": model.predict(grid, return_std=True),
        "Gaussian process": process.predict(grid, return_std=True),
    }
    _, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
    for ax, (name, (mean, std)) in zip(axes, panels.items(), strict=True):
        ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25, lw=0)
        ax.plot(grid[:, 0], mean)
        ax.plot(X[:, 0], y, ".", color="0.4", ms=3)
        if "RVM" in name:
            at = model.relevance_
            ax.plot(X[at, 0], y[at], "o", mfc="none", color="C3")
        ax.set_title(name)
        ax.set_xlabel("x")
    plt.savefig(path, dpi=90)
    plt.close()
    inside = np.random.default_rng(1).uniform(3.0, 10.0, 2000) * np.random.default_rng(2).choice([-1.0, 1.0], 2000)
    target = np.sinc(inside / np.pi) + 0.1 * np.random.default_rng(3).standard_normal(2000)
    mean, std = model.predict(inside[:, np.newaxis], return_std=True)
    middle = model.predict([[0.0]], return_parts=True)[1][0]
    plain = model.predict([[0.0]], return_parts=True, variance="posterior")[1][0]
    signal = float(np.sqrt(max(y.var() - model.noise_variance_, 0.0)))
    return {
        "coverage": scores(mean, std, target)["coverage"],
        "middle": float(middle),
        "plain": float(plain),
        "signal": signal,
    }


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description="Honest uncertainty.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=list(ROWS), default=list(ROWS))
    args = parser.parse_args()
    if args.data is None and any(name in FILES for name in args.sets):
        parser.error("--data FOLDER is needed for the tables; --sets friedman1 noise do without")
    found: list[dict[str, Any]] = []
    for name in args.sets:
        draws = pd.DataFrame([row for seed in range(args.seeds) for row in rows_of(name, args.data, seed)])
        means = draws.groupby(["set", "sparsity", "variance", "calibrated"], sort=False).mean().reset_index()
        print(means.round(3).to_string(index=False), flush=True)
        found += means.to_dict("records")
    if args.sets != list(ROWS):
        return
    frame = pd.DataFrame(found)
    about = "".join(f"- {name}: {value}\n" for name, value in facts(["numpy", "scikit-learn"]).items())
    text = [HEAD.format(seeds=args.seeds), f"\n{about}"]
    text.append("\n| set | sparsity | variance | calibrated | kernels | RMSE | NLPD | coverage | fit, s |\n")
    text.append("|---|---|---|---|---|---|---|---|---|\n")
    for row in found:
        cells = [row["set"], row["sparsity"], row["variance"], row["calibrated"], f"{row['vectors']:.1f}"]
        cells += [f"{row['rmse']:.3f}", f"{row['nlpd']:.3f}", f"{row['coverage']:.3f}", f"{row['seconds']:.2f}"]
        text.append("| " + " | ".join(cells) + " |\n")
    machines = frame[frame.sparsity != "GP"]
    overall = machines.groupby(["sparsity", "variance", "calibrated"], sort=False)[["nlpd", "coverage"]]
    text.append("\n| sparsity | variance | calibrated | mean NLPD | least coverage | largest coverage |\n")
    text.append("|---|---|---|---|---|---|\n")
    for key, group in overall:
        cells = [*key, f"{group.nlpd.mean():.3f}", f"{group.coverage.min():.3f}", f"{group.coverage.max():.3f}"]
        text.append("| " + " | ".join(cells) + " |\n")
    kept = noise_kernels()
    shown = ", ".join(f"{name}: {value:.2f}" for name, value in kept.items())
    text.append(f"\nKernels kept of pure noise, mean over {NOISE_DRAWS} draws, by sparsity: {shown}.\n")
    gap = figure(ROOT / "docs" / "figures" / "healed.png")
    text.append(
        "\n![RVM, healed RVM and a Gaussian process beside a gap](figures/healed.png)\n\n"
        f"In the middle of the gap the standard deviation of the function is {gap['middle']:.3f} healed and "
        f"{gap['plain']:.3f} not, that of the signal at the rows {gap['signal']:.3f}; "
        f"among the rows the healed interval covers {100 * gap['coverage']:.1f} %.\n"
    )
    text.append(TAIL)
    path = ROOT / "docs" / "uncertainty.md"
    path.write_text("".join(text), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
