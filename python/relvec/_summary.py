"""Summary of a fitted estimator, in the form of ``relvec inspect``."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from typing import Any

import numpy as np

from . import _card, _core
from ._checks import few_rows_of_classes
from ._text import (
    SHOWN,
    WEIGHT_DIGITS,
    count,
    listed,
    nats,
    plain,
    seconds,
    share,
    significant,
)

# Width of the labels, and most characters of a line, since longer lines are hard to read.
LABELS = 20
NARROW = 80
WIDEST = 100
# Most relevance vectors, outputs and names of features that are shown.
ROWS_SHOWN = 20
OUTPUTS_SHOWN = 8
NAMES_SHOWN = 20
# Least share of a feature that is named; features below are only counted.
LEAST_SHARE = 5e-4
# Characters of the bar of the most relevant feature, and most characters of a name.
BAR = 16
# Most widths of a sum that are shown.
WIDTHS_SHOWN = 10
NAME = 24
# Shares of features that differ by less are equal, since they are sums of rounded numbers.
SAME = 1e-9


class ModelSummary:
    """Summary of a fitted estimator, printed as text and displayed as a card in notebooks.

    Created by the method `summary` of a fitted estimator. The text is that of ``relvec inspect``: the result of the
    fit, the parts of the model, warnings with advice, and the relevance vectors with their weights.

    Parameters
    ----------
    estimator : RVR, RVC, SVC, SVR, NuSVC or NuSVR
        A fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR
    >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
    >>> summary = RVR().fit(X, t).summary()
    >>> print(str(summary).splitlines()[2])
    trained on          100 rows, 1 feature
    >>> summary.as_dict()["task"]
    'regress'
    """

    def __init__(self, estimator: Any) -> None:
        # The summary does not change if the estimator is fitted again.
        self._model, self._facts = estimator._model, facts(estimator)
        self._trace = np.array(estimator.report_.get("log_evidence", []), dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Get the summary as a dictionary of plain Python values.

        Returns
        -------
        dict
            The keys of ``relvec inspect --json``, and ``estimator``, ``n_features``, ``warnings`` (a list of texts)
            and, after a fit, ``seconds``. Noise standard deviations are in units of the target, log evidences in nats,
            and rows are counted from 0. Values that a model does not have are None or missing.
        """
        return json.loads(json.dumps(self._facts))  # type: ignore[no-any-return]

    def __str__(self) -> str:
        width = min(shutil.get_terminal_size().columns, WIDEST)
        own = self._facts
        parts = [_wrapped(verdict(own), width, 2), "\n".join(_line(*one, width) for one in lines(own))]
        parts += [_wrapped(f"warning: {text}", width, 2) for text in own["warnings"]]
        parts.append("\n".join(_table(self._model, own, width)))
        if own["features"]:
            parts.append(_wrapped(f"Features: {listed(own['features'], NAMES_SHOWN)}", width, 2))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        own = self._facts
        # Names are cut as in the bars, since a card has little room.
        own = own | {names: [short(name) for name in own[names]] for names in ("features", "targets", "classes")}
        own["named"] = self._facts["features"]
        titles, cells = weights_table(self._model, own)
        outputs = len(self._model.intercept)
        if outputs > OUTPUTS_SHOWN:
            titles = titles[: 1 + OUTPUTS_SHOWN] + titles[1 + outputs :]
            cells = [row[: 1 + OUTPUTS_SHOWN] + row[1 + outputs :] for row in cells]
        return _card.card(own, (task(own), _end(own)), lines(own), relevant_features(own), (titles, cells), self._trace)


def one_line(estimator: Any) -> str:
    """Return the fitted model in one line, for the line below the parameters."""
    own = facts(estimator)
    label = _vectors(own)[0][0]
    parts = [f"{count(own['n_vectors'], label.removesuffix('s'))} of {count(own['n_rows'], 'row')}"]
    several = [f"{n} {noun}" for n, noun in ((len(own["classes"]), "classes"), (own["n_outputs"], "outputs")) if n > 1]
    noise = [f"noise {_noise(own)[0][1].split(' (')[0]}"] if own["noise_std"] else []
    evidence = [f"{name} {value.split(',')[0]}" for name, value in _evidence(own)[-1:]]
    text = ", ".join([*several, *parts, *noise, *evidence, _end(own)])
    return f"{text}; {count(len(own['warnings']), 'warning')}: see summary()" if own["warnings"] else text


def facts(estimator: Any) -> dict[str, Any]:
    """Return the facts of a model as plain Python values, with the keys of ``relvec inspect --json``."""
    model, report = estimator._model, estimator.report_
    machine, several, fitted = model.machine, model.n_outputs > 1, "seconds" in report
    own: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "machine": machine,
        "task": "classify" if model.classifier else "regress",
        "likelihood": model.likelihood,
        "inference": model.inference,
        "kernel": _kernel(model),
        "features": model.features,
        "n_features": model.n_features,
        "n_outputs": model.n_outputs,
        "targets": list(model.targets) or [name for name in [model.target] if name is not None],
        "classes": [str(label) for label in getattr(estimator, "classes_", [])],
        "n_rows": model.n_rows,
        "n_vectors": len(model.relevance),
        "relevance": model.relevance.tolist(),
        "feature_relevance": model.feature_relevance.tolist(),
        "log_evidence": model.log_evidence,
        "noise_std": None,
        "status": model.status,
        "iterations": model.iterations,
    }
    if machine == "svm":
        # For several functions the report counts a vector once for each function.
        functions = report.get("functions", [])
        bounded = functions[0]["bounded"] if len(functions) == 1 else _in_file(model, r'"bounded":(\d+)')
        own |= {"formulation": model.formulation, "n_bounded": int(bounded or 0)}
    variance = model.noise_variance
    if variance is not None:
        own["noise_std"] = None if several else float(np.sqrt(variance))
        if several:
            own["noise_stds"] = np.sqrt(variance * model.variance_ratios).tolist()
    process = None
    if model.process is not None:
        amplitude, searched, residual = model.process
        process = {"amplitude": amplitude, "searched": len(searched), "residual": residual}
    alpha = None
    if model.class_alpha is not None:
        weights, bias = model.class_alpha
        # Without an intercept there is no precision of an intercept.
        alpha = np.column_stack([weights, bias]) if np.isfinite(model.intercept_alpha) else weights
    healed, kept = model.variance, model.kept_rows[0]
    # Values that a model does not have are left out.
    some = {
        "widths": model.widths,
        "standardised": model.scaling is not None,
        "multi_class": model.multi_class,
        "posterior": None if model.posterior == "laplace" else model.posterior,
        "class_weights": None if alpha is None else {"present": int(np.isfinite(alpha).sum()), "all": alpha.size},
        "learned_centres": model.learned_centres,
        "in_use": dict(zip(("by_weight", "by_data"), model.in_use, strict=True)) if _is_bound(model) else None,
        "noise_degrees": model.noise_degrees if model.likelihood == "student_t" else None,
        "members": [_member(member) for member in model.members],
        "interpolates": "interpolation" in report if fitted else _in_file(model, r'"interpolates":(true)') is not None,
        "process": process,
        "label_regression": model.label_regression,
        "variance": None if healed == "posterior" else healed,
        "kept_rows": kept,
        "kept_statistics": model.kept_statistics,
        "variance_factor": None if model.variance_factor == 1.0 else model.variance_factor,
        "noise_share": report.get("noise_share"),
        "validation": report.get("validation"),
        "adjustments": _adjustments(report.get("adjustments", report), model.features),
        "seconds": report.get("seconds"),
    }
    own |= {name: value for name, value in some.items() if value}
    own["warnings"] = _warnings(own, report)
    return own


def _in_file(model: Any, pattern: str) -> str | None:
    """Return a value from the file of a model; quotes in names are escaped there, so that no name matches a key."""
    found = re.search(pattern, model.to_json())
    return found and found[1]


def _kernel(model: Any) -> dict[str, Any] | None:
    """Return the kernel by its name and parameters; None for given columns."""
    if model.basis == "given":
        return None
    if model.kernel is None:
        return {"name": "external", "parameters": {}}
    ((name, parameters),) = json.loads(model.kernel).items()
    return {"name": name, "parameters": parameters}


def _is_bound(model: Any) -> bool:
    """Return whether unused weights remain in the model, so that the evidence is a lower bound."""
    return bool(model.inference == "variational")


def _member(model: Any) -> dict[str, Any]:
    return {
        "n_vectors": len(model.relevance),
        "log_evidence": model.log_evidence,
        "status": model.status,
        "iterations": model.iterations,
    }


def _adjustments(adjustments: dict[str, Any], features: list[str]) -> list[str]:
    """Return the adjustments of rows and numbers for the fit."""
    constant = [features[i] if features else str(i) for i in adjustments.get("constant_features", [])]
    found = {
        f"{count(adjustments.get('merged_rows', 0), 'duplicate row')} merged": adjustments.get("merged_rows"),
        f"{count(adjustments.get('left_out_rows', 0), 'row')} left out": adjustments.get("left_out_rows"),
        f"constant features without effect: {listed(constant)}": constant,
        "the target is constant": adjustments.get("constant_target"),
        f"a jitter of {significant(adjustments.get('jitter', 0.0), 2)} added": adjustments.get("jitter"),
    }
    return [text for text, happened in found.items() if happened]


def _warnings(own: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """Return warnings on the predictions, with advice."""
    found: list[str] = list(report.get("warnings", []))
    if "warnings" not in report:
        # A file contains the status and no reasons.
        if own["status"] not in ("converged", "stopped"):
            status = own["status"].replace("_", " ")
            action = "another kernel" if own["status"] == "singular" else "a higher limit"
            found.append(f"the fit did not converge ({status}): the model is the best so far. Fit again with {action}.")
        if own.get("interpolates"):
            found.append(
                f"the model shows signs of interpolating its training rows: {_consequence(own)}. Check predictions of "
                "rows that the model has not seen."
            )
    few = few_rows_of_classes(len(own["classes"]), own["n_rows"])
    return [*found, few] if few is not None else found


def _consequence(own: dict[str, Any]) -> str:
    return "probabilities may be overconfident" if own["task"] == "classify" else "intervals may be too narrow"


def verdict(own: dict[str, Any]) -> str:
    """Return the task, the data, and how the fit ended."""
    return f"{own['estimator']}: {task(own)}; {_end(own)}"


def task(own: dict[str, Any]) -> str:
    """Return the task and the data."""
    names = listed([f"`{name}`" for name in own["targets"]])
    of = f" of {names}" if names else ""
    by = f"{count(own['n_features'], 'feature')}, {count(own['n_rows'], 'row')}"
    if own["task"] == "classify":
        return f"classification{of} into {len(own['classes'])} classes by {by}"
    what = "regression of counts" if own["likelihood"] == "poisson" else "regression"
    return f"{what}{of} on {by}"


def _end(own: dict[str, Any]) -> str:
    timed = "seconds" in own
    took = seconds(own["seconds"]) if timed else count(own["iterations"], "iteration")
    if own["status"] == "converged":
        return f"converged {'in' if timed else 'after'} {took}"
    return f"not converged, {own['status'].replace('_', ' ')} after {took}"


def lines(own: dict[str, Any]) -> list[tuple[str, str]]:
    """Return labels and values, the most important first; the label of a continued value is empty."""
    scaled = ", standardised by the model" if own.get("standardised") else ""
    rows = f"{count(own['n_rows'], 'row')}, {count(own['n_features'], 'feature')}{scaled}"
    out = [*_classes(own), ("trained on", rows), *_vectors(own), *_noise(own)]
    if "multi_class" in own:
        models = f" ({len(own['members'])} binary models)" if "members" in own else ""
        out.append(("multiclass", own["multi_class"].replace("_", "-") + models))
    if "posterior" in own:
        out.append(("posterior", own["posterior"].replace("_", " ")))
    out.append(("kernel", _kernel_text(own)))
    for widths in own.get("widths", []):
        out += _widths(*widths)
    out += _features(own)
    out += _intervals(own)
    if "validation" in own:
        out.append((f"{own['validation']['folds']}-fold check", _scores(own["validation"])))
    out += _evidence(own)
    if "kept_statistics" in own:
        out.append(("statistics kept", f"at {own['kept_statistics']} landmarks"))
    status = f"{own['status'].replace('_', ' ')} after {count(own['iterations'], 'iteration')}"
    parts = [("{} likelihood", own["likelihood"]), ("scheme {}", own["inference"])]
    parts.append(("formulation {}", own.get("formulation")))
    out.append(("fit", ", ".join([status, *(text.format(name) for text, name in parts if name)])))
    if own.get("interpolates"):
        out.append(("interpolation", f"suspected: {_consequence(own)}"))
    if "adjustments" in own:
        out.append(("adjustments", "; ".join(own["adjustments"])))
    return out


def _classes(own: dict[str, Any]) -> list[tuple[str, str]]:
    if len(own["classes"]) == 2:
        negative, positive = own["classes"]
        return [("classes", f"{negative}, {positive} (positive weights are evidence for {positive})")]
    return [("classes", listed(own["classes"], NAMES_SHOWN))] if own["classes"] else []


def _vectors(own: dict[str, Any]) -> list[tuple[str, str]]:
    n, process = own["n_vectors"], own.get("process")
    text = share(n, own["n_rows"], "row")
    out = []
    if "members" in own:
        total = sum(member["n_vectors"] for member in own["members"])
        text += f"; {total} in total over {len(own['members'])} binary models"
    if own["machine"] == "svm":
        out.append(("support vectors", f"{text}, {own['n_bounded']} at their bound"))
    elif process is not None and n > 0:
        chosen = "" if process["searched"] == n else f", {process['searched']} of them chosen by the search"
        out.append(("centres", text + chosen))
        residual = significant(process["residual"])
        out.append(("process prior", f"mean residual variance {residual} of the noise variance"))
    elif own.get("learned_centres"):
        out.append(("centres", f"{n}, learned; no training rows"))
    else:
        prior = process is not None or own.get("label_regression")
        out.append(("centres" if prior else "relevance vectors", text))
    if "class_weights" in own:
        out.append(("weights of classes", f"{own['class_weights']['present']} of {own['class_weights']['all']}"))
    return out


def _noise(own: dict[str, Any]) -> list[tuple[str, str]]:
    out = []
    if own["noise_std"] is not None:
        what = "scale" if "noise_degrees" in own else "standard deviation"
        std = own["noise_std"]
        share_of_target = (
            f" ({significant(100.0 * own['noise_share'], 2)} % of that of the target)" if "noise_share" in own else ""
        )
        out.append(("noise", f"{what} {significant(std)}{share_of_target}" if std > 0.0 else "given for each row"))
    elif own.get("noise_stds"):
        stds = [significant(std) for std in own["noise_stds"]]
        if len(own["targets"]) == len(stds):
            stds = [f"{std} ({name})" for std, name in zip(stds, own["targets"], strict=True)]
        known = any(own["noise_stds"])
        out.append(("noise", f"standard deviations {listed(stds)}" if known else "given for each row"))
    if "noise_degrees" in own:
        out.append(("degrees of freedom", significant(own["noise_degrees"])))
    return out


def _has_one_width(own: dict[str, Any]) -> bool:
    """Return whether all features share one width."""
    shares = own["feature_relevance"]
    return bool(shares) and max(shares) - min(shares) < SAME


def _kernel_text(own: dict[str, Any]) -> str:
    if own["kernel"] is None:
        return "given columns"
    text = own["kernel"]["name"]
    if text in ("periodic", "sum"):
        text = str(
            _core.kernel_text(
                json.dumps({text: own["kernel"]["parameters"]}), own.get("named", own["features"]), WEIGHT_DIGITS
            )
        )
        # Each term of a long sum has its own line.
        return text if LABELS + len(text) <= NARROW else text.replace(" + ", "\n+ ")
    for name, value in sorted(own["kernel"]["parameters"].items()):
        if not isinstance(value, list):
            text += f", {name} {significant(value)}"
        elif not _has_one_width(own):
            text += ", one width per feature"
        elif max(value) / min(value) - 1.0 < SAME:
            text += f", {name} {significant(value[0])}"
        else:
            text += ", one width in units of the spread of each feature"
    return str(text)


def relevant_features(own: dict[str, Any]) -> list[tuple[str, float]]:
    """Return names and shares of relevant features, the most relevant first; empty if the model uses no features."""
    shares = own["feature_relevance"]
    if own["n_vectors"] == 0 or _has_one_width(own):
        return []
    order = sorted(range(len(shares)), key=lambda d: -shares[d])
    names = [plain(name) for name in own["features"]] or [str(d) for d in range(len(shares))]
    return [(names[d], shares[d]) for d in order if shares[d] >= LEAST_SHARE][:SHOWN]


def short(name: str) -> str:
    """Return a name, cut to leave room for a bar."""
    return name if len(name) <= NAME else f"{name[: NAME - 3]}..."


def _features(own: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the shares of the features as bars."""
    found = [(short(name), own_share) for name, own_share in relevant_features(own)]
    longest = max((len(name) for name, _ in found), default=0)
    out = []
    for i, (name, own_share) in enumerate(found):
        bar = "#" * max(round(BAR * own_share / found[0][1]), 1)
        others = len(own["feature_relevance"]) - len(found)
        more = f"   ({others} lower)" if i + 1 == len(found) and others else ""
        label = "" if i else "feature relevance"
        out.append((label, f"{name:<{longest}}  {bar:<{BAR}}{100.0 * own_share:5.1f} %{more}"))
    return out


def _widths(title: str, features: list[tuple[str, float, float]]) -> list[tuple[str, str]]:
    """Return the widths of the most relevant features, and their shares."""
    shown, others = features[:WIDTHS_SHOWN], features[WIDTHS_SHOWN:]
    names = [short(plain(name)) for name, _, _ in shown]
    longest = max(map(len, names))
    cells = [
        f"{name:<{longest}}  {significant(gamma, WEIGHT_DIGITS):>9}{100.0 * own_share:7.1f} %"
        for name, (_, gamma, own_share) in zip(names, shown, strict=True)
    ]
    if others:
        rest = sum(100.0 * own_share for _, _, own_share in others)
        cells.append(f"and {len(others)} more with {significant(rest, 2)} % together")
    return [("" if i else title, cell) for i, cell in enumerate(cells)]


def _intervals(own: dict[str, Any]) -> list[tuple[str, str]]:
    parts = []
    if "kept_rows" in own:
        parts.append(f"healed, {count(own['kept_rows'], 'row')} stored")
    if "variance_factor" in own:
        parts.append(f"variance x {significant(own['variance_factor'])} by calibration")
    return [("intervals", "; ".join(parts))] if parts else []


def _scores(found: dict[str, Any]) -> str:
    """Return the scores of cross-validation."""
    named = [
        ("RMSE", "rmse", 1.0, ""),
        ("MAE", "mae", 1.0, ""),
        ("NLPD", "nlpd", 1.0, " nats"),
        ("95 % interval covers", "coverage", 100.0, " %"),
        ("errors", "error_rate", 100.0, " %"),
        ("log loss", "log_loss", 1.0, " nats"),
    ]
    parts = [f"{name} {significant(factor * found[key])}{unit}" for name, key, factor, unit in named if key in found]
    text = ", ".join(parts)
    return f"{text}; sparsity {significant(found['sparsity'])} chosen" if found.get("tried") else text


def _evidence(own: dict[str, Any]) -> list[tuple[str, str]]:
    value = own["log_evidence"]
    if value is None:
        return []
    if "in_use" in own:
        used = own["in_use"]
        weights = [("weights above 1e-3", str(used["by_weight"])), ("well determined", str(used["by_data"]))]
        return [*weights, ("lower bound", nats(value))]
    if own.get("label_regression"):
        return [("log probability", f"{nats(value)}, of rows left out one at a time")]
    return [("log evidence", nats(value))]


def weights_table(model: Any, own: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return titles and cells: relevance vectors by row, weights of each output, and precisions if there are any."""
    outputs, with_precision = len(model.intercept), len(model.alpha) > 0
    titles = ["row", *_output_names(model, own)]
    weights, constants, alpha = model.weights, model.intercept, [significant(a, WEIGHT_DIGITS) for a in model.alpha]
    cells = [
        [str(row), *(significant(w, WEIGHT_DIGITS) for w in weights[:outputs, i]), *alpha[i : i + 1]]
        for i, row in enumerate(model.relevance.tolist()[:ROWS_SHOWN])
    ]
    precise = own["machine"] == "rvm" and "members" not in own and not own.get("label_regression")
    if not precise or np.isfinite(model.intercept_alpha):
        bias = [significant(model.intercept_alpha, WEIGHT_DIGITS)] if with_precision else []
        cells.append(["intercept", *(significant(w, WEIGHT_DIGITS) for w in constants), *bias])
    return titles + ["precision"] * with_precision, cells


def _output_names(model: Any, own: dict[str, Any]) -> list[str]:
    classes, outputs = own["classes"], len(model.intercept)
    if outputs == 1:
        return ["weight"]
    if _are_pairs(own):
        # Each function is positive for the second class of its pair.
        pairs = [(first, second) for second in range(len(classes)) for first in range(second)]
        return [plain(f"{classes[second]}/{classes[first]}") for first, second in pairs]
    for names in (classes, own["targets"]):
        if len(names) == outputs:
            return [plain(name) for name in names]
    return [f"output {k}" for k in range(outputs)]


def _are_pairs(own: dict[str, Any]) -> bool:
    """Return whether each function is for a pair of classes."""
    return len(own["classes"]) > 2 and own.get("multi_class") == "one_vs_one"


def _table(model: Any, own: dict[str, Any], width: int) -> list[str]:
    """Return the weights as lines; columns of outputs without room are only counted."""
    titles, cells = weights_table(model, own)
    columns = list(zip(titles, *cells, strict=True))
    precision = [columns.pop()] if titles[-1] == "precision" else []
    widths = [max(map(len, column)) + 3 for column in columns + precision]
    outputs = len(columns) - 1
    room = width + 3 - widths[0] - sum(widths[len(columns) :])
    shown = max(int(np.sum(np.cumsum(widths[1 : len(columns)]) <= room)), 1)
    columns = columns[: 1 + min(shown, OUTPUTS_SHOWN)] + precision
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    texts = ["   ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True)) for row in rows]
    texts.insert(1, "-" * (sum(widths) + 3 * len(widths) - 3))
    if own["n_vectors"] > ROWS_SHOWN:
        where = "support_" if own["machine"] == "svm" else "centres_" if own["task"] == "regress" else "relevance_"
        texts.append(f"{ROWS_SHOWN} of {count(own['n_vectors'], 'row')} shown; {where} has the rows of all")
    if _are_pairs(own):
        texts.append(f"{columns[1][0]}: positive weights are evidence for the first of the two classes")
    left = outputs - (len(columns) - 1 - len(precision))
    if left > 0:
        texts.append(f"weights of {count(left, 'output')} more not shown; dual_coef_ has them")
    return texts


def _line(label: str, value: str, width: int) -> str:
    first, *more = value.split("\n")
    if not more:
        return _wrapped(f"{label:<{LABELS}}{plain(value)}", width, LABELS)
    terms = [_wrapped(plain(part), max(width - LABELS, 1), 4) for part in (first, *more)]
    return f"{label:<{LABELS}}" + "\n".join(terms).replace("\n", "\n" + " " * LABELS)


def _wrapped(text: str, width: int, indent: int) -> str:
    # A line that begins with a space is not wrapped.
    if text.startswith(" ") or len(text) <= width:
        return text
    return textwrap.fill(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
