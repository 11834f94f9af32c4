"""How true probabilities of classes are: moderated and plug-in, beside scikit-learn's SVC and Gaussian process.

    cargo xtask bench calibration --data FOLDER [--splits N] [--sets SET ...]

Sets and splits are those of ida_benchmarks.npz in FOLDER; features standardised by the training rows. Every machine
has the same gamma, that of the highest evidence of the RVC on the first split. Writes docs/calibration.md if all sets
are run.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from computer import ROOT, facts
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

Array = NDArray[Any]
Split = tuple[Array, Array, Array, Array]

SETS = ["banana", "titanic", "german", "waveform", "image"]
SPLITS = 5
# Its time grows with the cube of the rows.
MOST_GAUSSIAN = 400
COSTS = [0.1, 1.0, 10.0, 100.0]
BINS = 15
LEARNERS = ["RVC, moderated", "RVC, plug-in", "SVC", "Gaussian process"]
HEAD = """# Calibration of class probabilities

Made by `cargo xtask bench calibration --data FOLDER` from the first {splits} splits of each set. Features are
standardised by the training rows. Figures are means over the splits. All models have an rbf kernel with the same
gamma in all splits of a set: the gamma that `RVC(gamma="evidence")` learns from the training rows of the first split.

The other settings of the RVC are those of the papers (`relvec.presets.tipping2001`), which are not the defaults.
Moderated probabilities are averaged over the posterior of the weights. Plug-in probabilities (`moderated=False`) use
the mean of the weights, in the same fit.

SVC is that of scikit-learn with `probability=True`; 5-fold cross-validation
(accuracy) chooses its C among {costs}. The Gaussian process is the classifier of scikit-learn with an amplitude
learned by its evidence, trained on the first {gaussian} rows at most. The probabilities of SVC are fitted to values
at held-out rows, those of the others to the training rows. The width was chosen for the RVC and may not suit the
Gaussian process.

Expected calibration error (ECE): rows are divided into {bins} bins by the probability of the predicted class. In each
bin the mean probability is compared with the share of rows that are right; the differences are averaged, weighted by
the rows of the bins. Chance alone contributes more in small test sets.

{facts}

{verdict}

"""


def splits(folder: Path, name: str, count: int) -> Iterator[Split]:
    """Training rows and classes, test rows and classes."""
    with np.load(folder / "ida_benchmarks.npz") as file:
        X, y = file[f"{name}__X"], file[f"{name}__y"]
        trains, tests = file[f"{name}__train_idx"], file[f"{name}__test_idx"]
    for train, test in zip(trains[:count], tests[:count], strict=True):
        mean, std = X[train].mean(axis=0), X[train].std(axis=0)
        std[std == 0.0] = 1.0
        yield (X[train] - mean) / std, y[train], (X[test] - mean) / std, y[test]


def calibration_error(truth: Array, probability: Array, classes: Array) -> float:
    """The expected calibration error of the predicted class."""
    top = probability.argmax(axis=1)
    p = probability[np.arange(len(top)), top]
    # A bin holds its upper end.
    bins = np.clip(np.ceil(p * BINS).astype(int), 1, BINS)
    excess = np.bincount(bins, p - (classes[top] == truth), minlength=BINS + 1)
    return float(np.abs(excess).sum() / len(truth))


def measures(truth: Array, probability: Array, classes: Array) -> list[float]:
    """Error rate, log loss and calibration error."""
    error = float(np.mean(classes[probability.argmax(axis=1)] != truth))
    return [error, float(log_loss(truth, probability, labels=classes)), calibration_error(truth, probability, classes)]


def best_gamma(X: Array, y: Array) -> float:
    """The gamma of the highest evidence."""
    from relvec import RVC
    from relvec.presets import tipping2001

    return float(RVC(**tipping2001("evidence", task="classify")).fit(X, y).gamma_)


def run(split: Split, gamma: float) -> tuple[list[list[float]], int]:
    """The measures of each learner, and the vectors of the RVC."""
    from relvec import RVC
    from relvec.presets import tipping2001

    X, y, test, truth = split
    rvc = RVC(**tipping2001(gamma, task="classify")).fit(X, y)
    out = [measures(truth, rvc.predict_proba(test, moderated=moderated), rvc.classes_) for moderated in (True, False)]
    costs = GridSearchCV(SVC(gamma=gamma), {"C": COSTS}, cv=5).fit(X, y).best_params_
    svc = SVC(gamma=gamma, probability=True, random_state=0, **costs).fit(X, y)
    out.append(measures(truth, svc.predict_proba(test), svc.classes_))
    kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(np.sqrt(0.5 / gamma), "fixed")
    process = GaussianProcessClassifier(kernel, random_state=0).fit(X[:MOST_GAUSSIAN], y[:MOST_GAUSSIAN])
    out.append(measures(truth, process.predict_proba(test), process.classes_))
    return out, len(rvc.relevance_)


def table(found: dict[str, Array], place: int, title: str, times: float, digits: int) -> str:
    """A table of one measure: sets by learners, and the means over the sets."""
    rows = {**found, "mean": np.mean(list(found.values()), axis=0)}
    lines = [f"## {title}", "", f"| set | {' | '.join(LEARNERS)} |", "|---" * (len(LEARNERS) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(f'{times * own[place]:.{digits}f}' for own in values)} |"
        for name, values in rows.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the sets, print and write the tables."""
    parser = argparse.ArgumentParser(prog="cargo xtask bench calibration", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with ida_benchmarks.npz")
    parser.add_argument("--splits", type=int, default=SPLITS, help="splits of each set, at most 10")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    arguments = parser.parse_args()
    # Of scikit-learn: limits of its optimisers, and parameters that it is about to rename.
    warnings.filterwarnings("ignore", module="sklearn")
    found: dict[str, Array] = {}
    shapes = [
        "## Sets",
        "",
        "| set | training rows | test rows | features | gamma | vectors of the RVC |",
        "|---" * 6 + "|",
    ]
    for name in arguments.sets:
        runs = []
        every = list(splits(arguments.data, name, arguments.splits))
        gamma = best_gamma(*every[0][:2])
        for split in every:
            runs.append(run(split, gamma))
            print(name, *(f"{own[0]:.4f} {own[1]:.4f} {own[2]:.4f}" for own in runs[-1][0]), sep="  ", flush=True)
        found[name] = np.mean([own for own, _ in runs], axis=0)
        X, _, test, _ = every[0]
        vectors = np.mean([count for _, count in runs])
        shapes.append(f"| {name} | {len(X)} | {len(test)} | {X.shape[1]} | {gamma:.3g} | {vectors:.1f} |")
    moderated, plug_in = np.mean(list(found.values()), axis=0)[:2]
    verdict = (
        f"Mean ECE over the sets: {100.0 * moderated[2]:.2f} % moderated, {100.0 * plug_in[2]:.2f} % plug-in; asked is "
        f"that the first is at most the second: {'it is' if moderated[2] <= plug_in[2] else 'it is not'}."
    )
    tables = [
        table(found, 2, "Expected calibration error [%]", 100.0, 2),
        table(found, 1, "Log loss [nats]", 1.0, 4),
        table(found, 0, "Error rate [%]", 100.0, 2),
        "\n".join(shapes) + "\n",
    ]
    print(verdict, *tables, sep="\n")
    head = HEAD.format(
        splits=arguments.splits,
        costs=", ".join(f"{cost:g}" for cost in COSTS),
        gaussian=MOST_GAUSSIAN,
        bins=BINS,
        facts="\n".join(f"- {name}: {value}" for name, value in facts(["scikit-learn", "numpy"]).items()),
        verdict=verdict,
    )
    whole = set(arguments.sets) == set(SETS)
    page = ROOT / "docs" / "calibration.md" if whole else ROOT / "target" / "calibration.md"
    page.write_text(head + "\n".join(tables), encoding="utf-8")
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
