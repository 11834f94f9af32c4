"""The parameters of all estimators: what each is for, which values it may have, where the core has it.

An estimator has its signature; everything else about its parameters is here. Constraints are those of scikit-learn.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from textwrap import indent
from typing import Any

from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_parameter_constraints

from . import _core

KERNELS: dict[str, list[str]] = dict(_core.kernels())
SCHEMES: dict[str, list[str]] = dict(_core.inference_schemes())
NAMES: dict[str, list[str]] = _core.names()
REGRESSION_PARAMETERS: dict[str, list[str]] = {
    "gaussian": ["noise_variance"],
    "poisson": [],
    "student_t": ["noise_degrees", "noise_variance"],
}
# What the parameter `search` holds beside the settings of the scheme, whichever that is.
AROUND = ["max_iterations", "refresh"]


@dataclass(frozen=True)
class Parameter:
    """One parameter; `allowed`: values, `of`: what lists and arrays hold, `path`: where the core has the value."""

    text: str
    allowed: list[Any]
    of: str = ""
    path: str = ""

    def kind(self) -> str:
        """The values as a docstring says them."""
        words = [word for word in (_word(one, self.of) for one in self.allowed) if word]
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Number(Interval):
    """An interval of numbers, which True and False are not."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a value is a number in the interval."""
        # scikit-learn asks numpy whether a number is NaN, which knows no fractions.
        number = float(val) if isinstance(val, Fraction) else val
        return not isinstance(val, bool) and bool(super().is_satisfied_by(number))


def names(*words: str) -> StrOptions:
    """Words in an order that messages and documentation keep."""
    return StrOptions(dict.fromkeys(words).keys())


def _word(allowed: Any, of: str) -> str:
    """One kind of value in a docstring; none for None, which the default says."""
    if isinstance(allowed, StrOptions):
        return "{" + ", ".join(f'"{word}"' for word in allowed.options) + "}"
    if isinstance(allowed, Interval):
        return "int" if allowed.type is Integral else "float"
    if isinstance(allowed, Options):
        # A single number with a meaning of its own.
        return ""
    return {
        None: "",
        Integral: "int",
        "boolean": "bool",
        "verbose": "int",
        "random_state": "int or RandomState",
        "array-like": f"array-like of {of}",
        list: f"list of {of}",
        dict: "dict",
        callable: "callable",
    }[allowed]


ANY = Number(Real, None, None, closed="neither")
POSITIVE = Number(Real, 0, None, closed="neither")
ONE_OR_MORE = Number(Integral, 1, None, closed="left")
COST = Number(Real, 0, None, closed="right")
PER_FEATURE = "shape (n_features,)"


class Expressions(StrOptions):
    """Names, and kernels that are written with marks or are periodic, which the core reads."""

    def is_satisfied_by(self, val: Any) -> bool:
        written = isinstance(val, str) and (any(mark in val for mark in "+*([") or val.startswith("periodic"))
        return written or bool(super().is_satisfied_by(val))


TABLE: dict[str, Parameter] = {
    "kernel": Parameter(
        """The kernel. It need not be positive definite. ``"precomputed"``: `X` is the kernel matrix,
        square in `fit`, rows against the training rows in `predict`, where only the columns
        `relevance_` are read. Of a list of names the kernel of the highest posterior is taken; ``"auto"``
        is rbf, matern52 and matern32; see ``report_["kernel_search"]``. A callable takes two arrays of rows,
        (n, D) and (m, D), and returns (n, m). Sums and products are written with ``+`` and ``*``, columns in brackets,
        parameters in parentheses, as in ``"rbf[0] + periodic(period=12)[1] + linear"``, or made of `relvec.kernels`.
        What they do not say is learned: `gamma`, the amplitudes of the terms, and the period from where it begins.
        A kernel of `sklearn.gaussian_process.kernels` is translated into one of relvec, its parameters as given.""",
        [Expressions(names(*KERNELS, "auto", "precomputed").options), list, callable],
        of="str",
    ),
    "gamma": Parameter(
        """Scale of the squared distances (of distances for ``"laplacian"``, of inner products for
        ``"poly"`` and ``"sigmoid"``), as in SVC; one per feature is allowed. ``"evidence"`` learns it, and what
        other continuous parameters the kernel has (`shape`, a positive `coef0`), from a dense Gaussian process on at
        most 1,000 rows: one width for all features in units of their spread, or one for each where that is worth its
        parameters. Beyond 3,000 rows there is one for each, from a sparse process on 4,000 rows. Of classes, left-out
        rows decide between one width and one for each feature. ``"sigmoid"`` is the covariance of no process: its
        gamma is that of ``"scale"`` unless a number is given.
        ``"evidence-ard"`` learns one for each feature, ``"evidence-one"`` one width. Where the features tell nothing of
        the targets the model is a constant. ``"scale"`` is 1 / (n_features * X.var()), ``"auto"`` 1 / n_features.
        Kernels without a scale, precomputed ones and callables take none.""",
        [names(*NAMES["kernel.gamma"]), POSITIVE, "array-like"],
        of=PER_FEATURE,
    ),
    "degree": Parameter(
        "Power of the polynomial kernel; several where kernels are chosen from a list.", [ONE_OR_MORE, list], of="int"
    ),
    "coef0": Parameter("Constant of the polynomial and sigmoid kernels.", [ANY]),
    "shape": Parameter("Exponent of the rational quadratic kernel.", [POSITIVE]),
    "basis": Parameter(
        """``"given"``: `X` is a design matrix, its columns are the basis functions, and `kernel` is not
        used.""",
        [names("kernel", "given")],
    ),
    "dictionary": Parameter(
        """How many training rows are candidates for relevance vectors; all rows are learned from. ``"auto"``
        is all of up to 10,000 different rows, and 1,000 landmarks of more, or where a model of more than
        5,000 rows needs more than some 240 of them (150 for classes). Of a callable kernel they are drawn at random;
        of a precomputed one too, but there ``"auto"`` is all.""",
        [names("auto", "all"), ONE_OR_MORE],
        path="dictionary",
    ),
    "landmarks": Parameter(
        """How candidates are chosen where they are not all: rows near the centres of k-means, in the space
        that the kernel scales, or evenly at random. An array holds the candidates themselves, which need
        not be training rows; then `dictionary` gives no number, and `relevance_` counts landmarks.""",
        [names(*NAMES["landmarks"]), "array-like"],
        of="shape (n_landmarks, n_features)",
        path="landmarks",
    ),
    "centres": Parameter(
        """Whether the candidates stay where they are. ``"learned"``: once there is a model, the gradient of
        the evidence moves up to 800 centres (or as many as the model has); the model is kept if its
        evidence, on all rows, is higher. Then its centres are no training rows, and `relevance_` counts
        those that were moved. For a `dictionary` of some hundred, and one model of all classes.""",
        [names(*NAMES["centres"])],
        path="centres",
    ),
    "fit_intercept": Parameter(
        """Whether there is a constant basis function. Under a process prior it stays; else it has a precision of its
        own and may be pruned.""",
        ["boolean"],
        path="bias",
    ),
    "likelihood": Parameter(
        """How targets depend on the function. ``"student_t"``: outliers are no surprise, and do not bend the
        function. ``"poisson"``: targets are counts, and the function is the log of their rate.""",
        [names("gaussian", "student_t", "poisson")],
    ),
    "noise_variance": Parameter(
        """Variance of the noise, in squared units of the target; of ``"student_t"`` its squared scale, which
        is less; None: learned. That of each row is a parameter of `fit`.""",
        [POSITIVE, None],
    ),
    "noise_degrees": Parameter(
        """Degrees of freedom of the noise of ``"student_t"``; None: learned.""",
        [POSITIVE, None],
    ),
    "class_weight": Parameter(
        """Factors of the sample weights, by class; classes missing from a dict have 1. ``"balanced"``
        gives each class the same total weight and leaves the sum of all weights as it is.""",
        [dict, names("balanced"), None],
    ),
    "multi_class": Parameter(
        """How more than two classes are modelled. ``"joint"``: one softmax model, in which each relevance vector has a
        weight for every class. ``"one_vs_rest"``, ``"one_vs_one"``: binary models, one for each class or for each pair,
        whose probabilities are normalised, or coupled as in [4]_. ``"auto"`` is ``"joint"``, or ``"one_vs_rest"`` for
        the scheme ``"variational"``.""",
        [names(*NAMES["multi_class"])],
        path="multi_class",
    ),
    "class_precisions": Parameter(
        """Precisions of the weights in a joint model. ``"shared"``: one precision for each relevance vector, so that
        all classes use it or none. ``"per_class"`` starts from that model: each weight has a precision of its own and
        may be pruned. The evidence is higher, and the fit takes longer.""",
        [names(*NAMES["class_precisions"])],
        path="class_precisions",
    ),
    "weight_prior": Parameter(
        """The prior of the weights. ``"ard"``: a precision for each weight, as in [1]_; few kernels stay.
        ``"process"``: the covariance of a Gaussian process with the kernel [5]_. Its centres are the relevance vectors
        and further rows that complete them, and the variance of predictions grows away from the data to that of the
        process. It needs ``likelihood="gaussian"`` and a kernel of relvec other than ``"sigmoid"``. ``"auto"`` is the
        process where these are given. Above 3,000 rows, the process has no search: its centres are rows drawn at
        random, 1,500 at most unless `dictionary` is a number, and ``"auto"`` is ``"ard"`` if `search` or `sparsity` ask
        for a search.""",
        [names(*NAMES["weight_prior"])],
        path="weight_prior",
    ),
    "residual": Parameter(
        """Under a process prior, rows become centres until the variance that the centres leave unexplained, averaged
        over the rows, is at most this share of the noise variance. 0.1 takes about a third more centres than 0.3. None:
        0.3, and 0.01 above 3,000 rows.""",
        [POSITIVE, None],
        path="residual",
    ),
    "search": Parameter(
        """How the precisions of the weights are learned: the name of the inference scheme, or a dict with the
        ``"scheme"`` and its settings, such as ``{"scheme": "mackay", "tolerance": 0.01}``.

        - ``"search"``, the default, maximises the evidence: it starts from all basis functions, prunes most of them,
          and then adds and exchanges some; ``"sequential"`` changes one basis function at a time [2]_; ``"mackay"`` and
          ``"em"`` are the fixed points of [1]_; ``"variational"`` is that of [3]_, which keeps all weights unless
          ``"prune"`` is True.
        - ``"tolerance"``: for ``"search"`` and ``"sequential"`` the nats that an action must gain, for
          ``"variational"`` those that the bound must rise by in an iteration, for the others the largest change of a
          log precision.
        - ``"max_iterations"``: most iterations, 10,000 by default.
        - ``"refresh"``: rounds in which landmarks that the model does not use are replaced by other rows, drawn at
          random, once the search among the present ones has converged; 0 by default. For the scheme ``"search"`` and a
          `dictionary` that is a number below 1,000 (500 for classes).
        - ``"hyperpriors"`` of all schemes, ``"start"`` of the first two, ``"excursions"`` and ``"policy"`` of
          ``"search"``, ``"initial_alpha"``, ``"initial_noise_variance"`` and ``"prune"`` of the other three are those
          of the command line's ``--set inference``.""",
        [names(*SCHEMES), dict, None],
    ),
    "posterior": Parameter(
        """How the posterior of the weights is approximated for counts; with normal noise both are exact, and under
        Student-t noise there is no difference. ``"laplace"``: by the curvature of the likelihood at the mode.
        ``"averaged"``: by its mean under the posterior itself. Not for ``search="variational"``. ``"auto"`` is
        ``"laplace"`` here, unless that expects more than twice the counts that there are, as among many zeros.""",
        [names(*NAMES["posterior"])],
        path="posterior",
    ),
    "sparsity": Parameter(
        """Penalty per kernel in nats of log evidence: the log prior odds against it. ``"auto"``: 1, or 0 for other
        schemes than ``"search"`` and where hyperparameters have priors. With 0 the evidence alone decides, as in [1]_
        [2]_. It is a maximum over many sets of kernels: if more than a tenth of the rows become relevance vectors,
        intervals are too narrow and probabilities overconfident. ``"cv"`` takes the largest penalty of 0 to 8 nats that
        predicts held-out rows as well as the best, up to chance; it costs `folds` more fits. For the scheme
        ``"search"``.""",
        [names("auto", "cv"), Number(Real, 0, None, closed="left")],
        path="sparsity",
    ),
    "folds": Parameter(
        """Folds of a cross-validation in which the search is repeated; its scores are in ``report_["validation"]``.
        None: none, or 5 where something is chosen by it, fewer for fewer rows. The kernel is that of the fit to all
        rows. Equal rows are spread over the folds as other rows are. A row whose weight is a whole number w counts as
        w rows; a row of any other weight stays whole.""",
        [Number(Integral, 2, None, closed="left"), None],
        path="cv",
    ),
    "warm_start": Parameter(
        """Whether a further `fit` starts from the last model: with the same rows first, more may follow. For
        the scheme ``"search"`` and one model whose centres are training rows.""",
        ["boolean"],
    ),
    "calibrate": Parameter(
        """Whether predictive variances are multiplied by the mean square of the standardised residuals of held-out rows
        in cross-validation, if that is above 1.""",
        ["boolean"],
        path="calibrate",
    ),
    "variance": Parameter(
        """The variance of predictions. Under a process prior it is that of the process. Otherwise ``"auto"`` is
        ``"healed"`` for Gaussian noise and a kernel of relvec, and ``"posterior"`` for the rest. Far from all relevance
        vectors, the variance of the posterior shrinks to that of the noise. ``"healed"`` adds a basis function at the
        predicted row [4]_, so that the variance grows there to about that of the target. The model then keeps training
        rows, and predictions cost more.""",
        [names("auto", *NAMES["variance"])],
        path="variance",
    ),
    "keep_rows": Parameter(
        """Training rows that the model keeps for the healed variance, of more rows a random sample; with a sample,
        means do not change. None: at most 2,000 where that variance is used.""",
        [ONE_OR_MORE, None],
        path="keep_rows",
    ),
    "keep_statistics": Parameter(
        """Whether the model keeps sums over its rows, to which `partial_fit` adds further rows without these. For a
        `dictionary` given as a number, or given `landmarks`; the sums are as many as the square of that.""",
        ["boolean"],
        path="keep_statistics",
    ),
    "time_limit": Parameter(
        """Most seconds; the best model until then is kept. If the sums over all rows of a regression would take too
        long, the model is that of a random sample of rows, and a warning says so.""",
        [POSITIVE, None],
        path="time_limit",
    ),
    "memory_limit": Parameter(
        "Most bytes that a fit may take beside `X`; None: a quarter of the memory of the computer.",
        [ONE_OR_MORE, None],
        path="memory_limit",
    ),
    "n_jobs": Parameter(
        """Threads. None: as many as joblib leaves to this process, which are all processors outside of a
        joblib worker. Results do not depend on it.""",
        [Integral, None],
        path="threads",
    ),
    "random_state": Parameter(
        "Seed of the random choices; None is 0: the same fit every time.", ["random_state"], path="seed"
    ),
    "verbose": Parameter("1: print progress now and then; 2: at each iteration.", ["verbose"]),
    "callback": Parameter(
        """Called after each iteration with a dict (``iteration``, ``log_evidence``, ``active``,
        ``noise_std``, ``seconds``). If it returns True or raises StopIteration, the fit ends with the
        best model so far.""",
        [callable, None],
    ),
    "C": Parameter(
        "Cost of an error; ``inf`` for a hard margin, which is an error where the classes cannot be separated.", [COST]
    ),
    "nu": Parameter("The share, in (0, 1].", [Number(Real, 0, 1, closed="right")]),
    "epsilon": Parameter(
        "Half the width of the tube within which errors cost nothing, in units of the target.",
        [Number(Real, 0, None, closed="left")],
    ),
    "shrinking": Parameter(
        """Whether rows whose multipliers stay at a bound are skipped until the rest has converged; the solution does
        not change.""",
        ["boolean"],
        path="shrinking",
    ),
    "probability": Parameter(
        """Whether to fit what `predict_proba` needs, by 5-fold cross-validation inside `fit`: six fits instead of
        one.""",
        ["boolean"],
        path="probability",
    ),
    "tol": Parameter(
        "Largest violation of the optimality conditions at which the fit ends.", [POSITIVE], path="tolerance"
    ),
    "cache_size": Parameter("Most memory that kernel rows take, in MB.", [POSITIVE], path="cache_size"),
    "max_iter": Parameter(
        "Most steps of two multipliers for a function; -1: 10 million, or 100 times as many as rows.",
        [ONE_OR_MORE, Options(Integral, {-1})],
        path="max_iterations",
    ),
    "decision_function_shape": Parameter(
        "What `decision_function` returns of more than two classes.", [names("ovr", "ovo")]
    ),
    "break_ties": Parameter(
        """Whether `predict` decides between classes with as many votes by how clearly they win; not with
        ``decision_function_shape="ovo"``.""",
        ["boolean"],
    ),
}

# Where a parameter is another for some estimators than in the table, by the name of their class.
OWN: dict[str, dict[str, Parameter]] = {
    "RVC": {
        "weight_prior": Parameter(
            """The prior of the weights. ``"ard"``: a precision for each, as in [1]_. ``"process"``: the covariance of a
            Gaussian process with the kernel. Its regression on the labels, and a softmax of linear functions of that,
            are chosen by the probabilities of held-out rows, and rows become centres until these hardly change. It
            needs a kernel of relvec other than ``"sigmoid"`` and one model of all classes. ``"auto"`` is the process
            where these are given, and above 3,000 rows unless `search` or `sparsity` ask for a search.""",
            TABLE["weight_prior"].allowed,
            path="weight_prior",
        ),
        "residual": Parameter(
            """Under a process prior rows become centres until the probabilities are within this Kullback-Leibler
            divergence, in nats for each of the C - 1 functions of C classes and in the mean over the rows, of those
            with all rows for centres. 0.05 takes about half as many. None: 0.005.""",
            [POSITIVE, None],
            path="residual",
        ),
        "posterior": Parameter(
            """How the posterior of the weights is approximated. ``"laplace"``: by the curvature of the likelihood at
            the mode [1]_. For well-separated classes the curvature is almost zero there, and moderated probabilities
            are too close to uniform. ``"averaged"``: by its mean under the posterior itself [5]_, in a few more passes
            over the rows; probabilities become more extreme for well-separated classes, and hardly change for
            overlapping ones. The mode, the evidence and the relevance vectors do not change. Not for
            ``search="variational"``. ``"auto"``: ``"averaged"`` where three classes or more have one model, unless the
            fit is stopped or out of time, else ``"laplace"``.""",
            TABLE["posterior"].allowed,
            path="posterior",
        ),
    },
    "SupportVectorMachine": {
        "kernel": Parameter(
            """The kernel, positive definite (``"sigmoid"`` is not, nor ``"linear_spline"`` where a feature is negative:
            a local optimum may be found, and a warning says so).
            ``"precomputed"``: `X` is the kernel matrix, square in `fit`, rows against the training rows in
            `predict`. A callable takes two arrays of rows, (n, D) and (m, D), and returns (n, m). A kernel of
            `sklearn.gaussian_process.kernels` is translated into one of relvec.""",
            [names(*KERNELS, "precomputed"), callable],
        ),
        "degree": Parameter("Power of the polynomial kernel.", [ONE_OR_MORE]),
        "gamma": Parameter(
            """Scale of the squared distances (of distances for ``"laplacian"``, of inner products for
            ``"poly"`` and ``"sigmoid"``); one per feature is allowed. ``"scale"`` is
            1 / (n_features * X.var()), ``"auto"`` 1 / n_features.""",
            [names("scale", "auto"), POSITIVE, "array-like"],
            of=PER_FEATURE,
        ),
        "class_weight": Parameter(
            """Factors of the cost of errors, by class; classes missing from a dict have 1. ``"balanced"`` gives each
            class the same total weight.""",
            TABLE["class_weight"].allowed,
        ),
        "multi_class": Parameter(
            """How more than two classes are modelled: by a function for each pair (``"auto"``), or for each class
            against all others.""",
            [names("auto", "one_vs_one", "one_vs_rest")],
            path="multi_class",
        ),
        "time_limit": Parameter(
            "Most seconds; the model as it is then is kept.", TABLE["time_limit"].allowed, path="time_limit"
        ),
        "random_state": Parameter(
            "Seed of the cross-validation for probabilities; None is 0: the same fit every time.",
            ["random_state"],
            path="seed",
        ),
        "verbose": Parameter("1: print progress now and then; 2: each time there is some.", ["verbose"]),
        "callback": Parameter(
            """Called now and then with a dict (``iteration``, ``gap``, ``function``, ``seconds``). If it returns True
            or raises StopIteration, the fit ends with the model as it is.""",
            [callable, None],
        ),
    },
    "NuSVC": {
        "nu": Parameter(
            """The share; at most twice that of the smaller class, in (0, 1]. Weights of classes and of rows count in
            it. If the classes overlap, a small share leaves no margin: the model is then the limit of larger shares,
            which SVC with a large `C` finds, and a warning says so.""",
            TABLE["nu"].allowed,
        ),
    },
    "SVR": {
        "C": Parameter(
            """Cost of an error beyond `epsilon`, for each unit of the target; ``inf`` for a tube that no row leaves,
            which is an error where there is none.""",
            [COST],
        ),
    },
    "NuSVR": {
        "C": Parameter("Cost of an error beyond the tube, for each unit of the target.", [POSITIVE]),
    },
}


def parameters(cls: type) -> dict[str, Parameter]:
    """The parameters of a class that are in the table, in the order of its constructor."""
    own = [OWN.get(base.__name__, {}) for base in cls.__mro__] + [TABLE]
    signature = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    return {name: table[name] for name in signature for table in reversed(own) if name in table}


def docstring(cls: type) -> str | None:
    """The docstring of a class with the entries of its parameters where it says ``{parameters}``."""
    signature = inspect.signature(cls.__init__).parameters  # type: ignore[misc]

    def entries(margin: re.Match[str]) -> str:
        out = []
        for name, one in parameters(cls).items():
            default = signature[name].default
            shown = f'"{default}"' if isinstance(default, str) else repr(default)
            out += [f"{name} : {one.kind()}, default={shown}", indent(inspect.cleandoc(one.text), "    ")]
        return indent("\n".join(out), margin[1])

    return None if cls.__doc__ is None else re.sub(r"^( *)\{parameters\}$", entries, cls.__doc__, flags=re.MULTILINE)


def constraints(table: dict[str, Parameter]) -> dict[str, list[Any]]:
    """The values that parameters may have, as scikit-learn checks them."""
    return {name: one.allowed for name, one in table.items()}


def check(caller: str, **values: Any) -> None:
    """Check arguments of the function `caller` that are parameters of the table."""
    validate_parameter_constraints(constraints({name: TABLE[name] for name in values}), values, caller)
