"""The parameters of all estimators: their purpose, their allowed values, and their paths in the settings of the core.

An estimator defines only its signature; everything else about its parameters is here. Constraints are scikit-learn's.
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
# Keys of the parameter `search` that are not settings of a scheme.
AROUND = ["max_iterations"]


@dataclass(frozen=True)
class Parameter:
    """A parameter: its text, `allowed` values, the elements of lists and arrays (`of`), and its `path` in the core."""

    text: str
    allowed: list[Any]
    of: str = ""
    path: str = ""

    def kind(self) -> str:
        """The allowed values as text for a docstring."""
        words = [word for word in (_word(one, self.of) for one in self.allowed) if word]
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Number(Interval):
    """An interval of numbers that excludes True and False."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is a number in the interval."""
        # scikit-learn tests for NaN with numpy, which does not accept fractions.
        number = float(val) if isinstance(val, Fraction) else val
        return not isinstance(val, bool) and bool(super().is_satisfied_by(number))


def names(*words: str) -> StrOptions:
    """Return allowed words in the order in which messages and documentation list them."""
    return StrOptions(dict.fromkeys(words).keys())


def _word(allowed: Any, of: str) -> str:
    """Return one kind of value as text for a docstring; empty for None, which the default shows."""
    if isinstance(allowed, StrOptions):
        return "{" + ", ".join(f'"{word}"' for word in allowed.options) + "}"
    if isinstance(allowed, Interval):
        return "int" if allowed.type is Integral else "float"
    if isinstance(allowed, Options):
        # A single number with a special meaning.
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
    """Names of kernels, and expressions of kernels, which the core reads."""

    def is_satisfied_by(self, val: Any) -> bool:
        written = isinstance(val, str) and (any(mark in val for mark in "+*([") or val.startswith("periodic"))
        return written or bool(super().is_satisfied_by(val))


TABLE: dict[str, Parameter] = {
    "kernel": Parameter(
        """The kernel. It need not be positive definite. With ``"precomputed"``, `X` is the kernel matrix: square in
        `fit`, and of new rows against the training rows in `predict`, where only the columns `relevance_` are read.
        From a list of names the fit selects the kernel with the highest posterior; ``"auto"`` is rbf, matern52 and
        matern32; see ``report_["kernel_search"]``. A callable takes two arrays of rows, (n, D) and (m, D), and returns
        an array (n, m). Sums and products are written with ``+`` and ``*``, columns in brackets, parameters in
        parentheses, as in ``"rbf[age,income] + periodic(period=365.25)[day] + linear"``, or built with
        `relvec.kernels`. Columns are numbers from 0, or names of the columns of a frame. A name that contains a space,
        comma, bracket or quotation mark, or is a number, is written in double quotation marks. Parameters that such an
        expression does not give are learned: `gamma`, the amplitudes of the terms, and the period, which starts from
        its given value or is found. A kernel of `sklearn.gaussian_process.kernels` is translated into a kernel of
        relvec with the given parameters.""",
        [Expressions(names(*KERNELS, "auto", "precomputed").options), list, callable],
        of="str",
    ),
    "gamma": Parameter(
        """Scale of the squared distances (of distances for ``"laplacian"``, of inner products for
        ``"poly"`` and ``"sigmoid"``), as in SVC; one per feature is allowed. ``"evidence"`` learns it, and the
        other continuous parameters of the kernel (`shape`, a positive `coef0`), by a dense Gaussian process on at
        most 1,000 rows. It learns one width for all features in units of their spread, or one width for each feature
        if the evidence supports the additional parameters. Above 3,000 rows it learns one width for each feature by a
        sparse process on 4,000 rows. For classes, left-out rows decide between one width and one for each feature.
        ``"evidence-ard"`` learns one width for each feature, ``"evidence-one"`` one width. ``"evidence-isotropic"``
        learns one number for features that have one unit, and is used for sparse rows that stay sparse. If
        the features carry no information about the targets, the model is a constant. ``"sigmoid"`` is not a covariance
        function, so its gamma is that of ``"scale"`` unless a number is given. ``"scale"`` is 1 / (n_features *
        X.var()), ``"auto"`` is 1 / n_features. Kernels without a scale, precomputed kernels and callables do not use
        `gamma`.""",
        [names(*NAMES["kernel.gamma"]), POSITIVE, "array-like"],
        of=PER_FEATURE,
    ),
    "degree": Parameter(
        "Power of the polynomial kernel; several powers if kernels are selected.", [ONE_OR_MORE, list], of="int"
    ),
    "coef0": Parameter("Constant of the polynomial and sigmoid kernels.", [ANY]),
    "shape": Parameter("Exponent of the rational quadratic kernel.", [POSITIVE]),
    "basis": Parameter(
        """With ``"given"``, `X` is a design matrix: its columns are the basis functions, and `kernel` is not
        used.""",
        [names("kernel", "given")],
    ),
    "dictionary": Parameter(
        """Number of training rows that are candidates for relevance vectors. All rows contribute to the likelihood.
        ``"auto"`` is all rows up to 10,000 different rows, and 1,000 landmarks above. For callable and precomputed
        kernels the candidates are drawn at random; for precomputed kernels ``"auto"`` is all rows.""",
        [names("auto", "all"), ONE_OR_MORE],
        path="dictionary",
    ),
    "landmarks": Parameter(
        """How candidates are chosen if they are not all rows: ``"kmedoids"`` takes rows near the centres of k-means in
        the space scaled by the kernel, ``"uniform"`` takes rows at random. An array contains the candidates, which
        need not be training rows. In this case `dictionary` must not be a number, and `relevance_` contains indices
        of landmarks.""",
        [names(*NAMES["landmarks"]), "array-like"],
        of="shape (n_landmarks, n_features)",
        path="landmarks",
    ),
    "centres": Parameter(
        """Whether the centres stay at the candidates. With ``"learned"``, after a first fit the gradient of the
        evidence moves up to 800 centres (or as many as the model has). The moved model is kept if its evidence on all
        rows is higher. Its centres are then not training rows, and `relevance_` contains indices of moved centres. Use
        it with a `dictionary` of a few hundred, and with one model of all classes.""",
        [names(*NAMES["centres"])],
        path="centres",
    ),
    "fit_intercept": Parameter(
        """Whether there is a constant basis function. Under a process prior it is always in the model. Otherwise it has
        its own precision and may be pruned.""",
        ["boolean"],
        path="bias",
    ),
    "likelihood": Parameter(
        """Distribution of the targets given the function. ``"student_t"`` has heavy tails, so that outliers have little
        effect on the function. With ``"poisson"`` targets are counts, and the function is the log of their rate.""",
        [names("gaussian", "student_t", "poisson")],
    ),
    "noise_variance": Parameter(
        """Noise variance, in squared units of the target; for ``"student_t"`` the squared scale of the noise, which is
        smaller than its variance. None: it is learned. Noise variances of single rows are given to `fit`.""",
        [POSITIVE, None],
    ),
    "noise_degrees": Parameter(
        """Degrees of freedom of ``"student_t"`` noise. None: they are learned.""",
        [POSITIVE, None],
    ),
    "class_weight": Parameter(
        """Factors of the sample weights, by class. Classes missing from a dict have factor 1. ``"balanced"``
        gives each class the same total weight and does not change the sum of all weights.""",
        [dict, names("balanced"), None],
    ),
    "multi_class": Parameter(
        """How more than two classes are modelled. ``"joint"`` is one softmax model, in which each relevance vector has
        a weight for every class. ``"one_vs_rest"`` fits a binary model for each class and normalises their
        probabilities. ``"one_vs_one"`` fits one for each pair of classes and couples their probabilities as in [4]_.
        ``"auto"`` is ``"joint"``, or ``"one_vs_rest"`` for the scheme ``"variational"``.""",
        [names(*NAMES["multi_class"])],
        path="multi_class",
    ),
    "weight_prior": Parameter(
        """Prior of the weights. ``"ard"`` has a precision for each weight, as in [1]_, and keeps few kernels.
        ``"process"`` gives the weights the covariance of a Gaussian process with the kernel [5]_. Its centres are the
        relevance vectors and further rows that are needed to span the process, and the variance of predictions grows
        away from the data to that of the process. It needs a kernel of relvec other than ``"sigmoid"``. ``"auto"`` is
        the process if it has one, otherwise ``"ard"``. Above 3,000 rows the process has no search: its centres are rows
        drawn at random, at most 1,500 unless `dictionary` is a number, and ``"auto"`` is ``"ard"`` if `search` or
        `sparsity` require a search.""",
        [names(*NAMES["weight_prior"])],
        path="weight_prior",
    ),
    "residual": Parameter(
        """Under a process prior, rows become centres until the variance that the centres leave unexplained, averaged
        over the rows, is at most this share of the noise variance. 0.1 takes about a third more centres than 0.3. None
        is 0.3, 0.1 for counts, or 0.01 above 3,000 rows.""",
        [POSITIVE, None],
        path="residual",
    ),
    "search": Parameter(
        """How the precisions of the weights are learned: the name of the inference scheme, or a dict with the
        ``"scheme"`` and its settings, such as ``{"scheme": "mackay", "tolerance": 0.01}``.

        - ``"search"``, the default, maximises the evidence: it starts from all basis functions, prunes most of them,
          and then adds and exchanges some; ``"sequential"`` changes one basis function at a time [2]_; ``"mackay"`` and
          ``"em"`` are the fixed points of [1]_; ``"variational"`` is the scheme of [3]_, which keeps all weights
          unless ``"prune"`` is True.
        - ``"tolerance"``: for ``"search"`` and ``"sequential"`` the nats that an action must gain, for
          ``"variational"`` the nats by which the bound must rise in an iteration, for the others the largest change
          of a log precision.
        - ``"max_iterations"``: most iterations, 10,000 by default.
        - Further settings have the meaning of ``--set inference`` of the command line: ``"hyperpriors"`` for all
          schemes, ``"start"`` for the first two, ``"restarts"`` and ``"policy"`` for ``"search"``, and
          ``"initial_alpha"``, ``"initial_noise_variance"`` and ``"prune"`` for the other three.""",
        [names(*SCHEMES), dict, None],
    ),
    "posterior": Parameter(
        """How the posterior of the weights is approximated for counts. ``"laplace"`` uses the Hessian of the likelihood
        at the mode, ``"averaged"`` its mean under the posterior. ``"auto"`` is ``"laplace"``, unless that predicts more
        than twice the observed counts, as it can for many zeros. Not for ``search="variational"``. For Gaussian noise
        both are exact, and for Student-t noise they are equal.""",
        [names(*NAMES["posterior"])],
        path="posterior",
    ),
    "sparsity": Parameter(
        """Penalty per relevance vector in nats of log evidence: the log prior odds against it. ``"auto"`` is 1, or 0
        for schemes other than ``"search"`` and if hyperparameters have priors. 0 disables the penalty, as in [1]_ [2]_.
        The evidence is then a maximum over many sets of kernels: if more than a tenth of the rows become relevance
        vectors, intervals are too narrow and probabilities overconfident. ``"cv"`` takes the largest penalty of 0 to 8
        nats whose held-out score is within one standard error of the best; it costs `folds` further fits. For the
        scheme ``"search"``.""",
        [names("auto", "cv"), Number(Real, 0, None, closed="left")],
        path="sparsity",
    ),
    "folds": Parameter(
        """Number of folds of a cross-validation that repeats the search. Its scores are in ``report_["validation"]``.
        With None there is no cross-validation, unless a setting is chosen by it: then there are 5 folds, or fewer for
        fewer rows. The kernel is that of the fit to all rows. Equal rows may be in different folds. A row whose weight
        is a whole number w counts as w rows; a row of any other weight is not split.""",
        [Number(Integral, 2, None, closed="left"), None],
        path="cv",
    ),
    "warm_start": Parameter(
        """Whether a further `fit` starts from the last model. The rows must begin with the earlier rows. For the scheme
        ``"search"`` and a single model whose centres are training rows.""",
        ["boolean"],
    ),
    "calibrate": Parameter(
        """Whether predictive variances are multiplied by the mean square of the standardised residuals of held-out rows
        in cross-validation, if that is above 1.""",
        ["boolean"],
        path="calibrate",
    ),
    "variance": Parameter(
        """The variance of predictions. Under a process prior it is the variance of the process. Otherwise ``"auto"`` is
        ``"healed"`` for Gaussian noise and a kernel of relvec, and ``"posterior"`` in other cases. Far from all
        relevance vectors, the variance of the posterior shrinks to the noise variance. ``"healed"`` adds a basis
        function at the predicted row [4]_, so that the variance grows there to about that of the target. The model
        then keeps training rows, and predictions take longer.""",
        [names("auto", *NAMES["variance"])],
        path="variance",
    ),
    "keep_rows": Parameter(
        """Number of training rows that the model keeps for the healed variance. If there are more rows, it keeps a
        random sample, and the means do not change. None is at most 2,000 if the healed variance is used.""",
        [ONE_OR_MORE, None],
        path="keep_rows",
    ),
    "keep_statistics": Parameter(
        """Whether the model keeps sums over its rows, so that `partial_fit` can add rows without the old ones. For a
        `dictionary` given as a number, or given `landmarks`. The sums take memory of the order of that number
        squared.""",
        ["boolean"],
        path="keep_statistics",
    ),
    "time_limit": Parameter(
        """Time limit in seconds, at which the best model so far is returned. If the sums over all rows of a regression
        would take too long, the model is fitted to a random sample of rows, and a warning says so.""",
        [POSITIVE, None],
        path="time_limit",
    ),
    "memory_limit": Parameter(
        "Most bytes that a fit may take in addition to `X`; None: a quarter of the computer's memory.",
        [ONE_OR_MORE, None],
        path="memory_limit",
    ),
    "n_jobs": Parameter(
        """Number of threads. None is the number that joblib leaves to this process: all processors outside of a joblib
        worker. Results do not depend on the number of threads.""",
        [Integral, None],
        path="threads",
    ),
    "random_state": Parameter(
        "Seed of the random choices. None is 0, so that fits are reproducible.", ["random_state"], path="seed"
    ),
    "verbose": Parameter("1: print progress now and then; 2: print each iteration.", ["verbose"]),
    "callback": Parameter(
        """Called after each iteration with a dict (``iteration``, ``log_evidence``, ``active``,
        ``noise_std``, ``seconds``). If it returns True or raises StopIteration, the fit ends with the
        best model so far.""",
        [callable, None],
    ),
    "C": Parameter(
        "Cost of an error; ``inf`` for a hard margin, which fails if the classes cannot be separated.", [COST]
    ),
    "nu": Parameter("The share of errors, in (0, 1].", [Number(Real, 0, 1, closed="right")]),
    "epsilon": Parameter(
        "Half the width of the tube in which errors have no cost, in units of the target.",
        [Number(Real, 0, None, closed="left")],
    ),
    "shrinking": Parameter(
        """Whether rows whose multipliers stay at a bound are skipped until the other rows have converged. The solution
        does not change.""",
        ["boolean"],
        path="shrinking",
    ),
    "probability": Parameter(
        """Whether to fit the sigmoids that `predict_proba` needs, by 5-fold cross-validation inside `fit`. This takes
        six fits instead of one.""",
        ["boolean"],
        path="probability",
    ),
    "tol": Parameter(
        "Largest violation of the optimality conditions at which the fit ends.", [POSITIVE], path="tolerance"
    ),
    "cache_size": Parameter("Most memory that kernel rows take, in MB.", [POSITIVE], path="cache_size"),
    "max_iter": Parameter(
        "Most steps of two multipliers for each function; -1: 10 million, or 100 times the number of rows.",
        [ONE_OR_MORE, Options(Integral, {-1})],
        path="max_iterations",
    ),
    "decision_function_shape": Parameter(
        "Result of `decision_function` for more than two classes.", [names("ovr", "ovo")]
    ),
    "break_ties": Parameter(
        """Whether `predict` decides between classes with equal votes by their margins; not with
        ``decision_function_shape="ovo"``.""",
        ["boolean"],
    ),
}

# Parameters that differ from the table for some estimators, by the name of their class.
OWN: dict[str, dict[str, Parameter]] = {
    "RVC": {
        "weight_prior": Parameter(
            """Prior of the weights. ``"ard"`` has a precision for each weight, as in [1]_. ``"process"`` gives the
            weights the covariance of a Gaussian process with the kernel. A regression on the labels, followed by a
            softmax of linear functions of its values, is chosen by the probabilities of held-out rows, and rows become
            centres until these probabilities hardly change. It needs a kernel of relvec other than ``"sigmoid"`` and
            one model of all classes. ``"auto"`` is the process if these conditions hold and, above 3,000 rows, unless
            `search` or `sparsity` require a search.""",
            TABLE["weight_prior"].allowed,
            path="weight_prior",
        ),
        "residual": Parameter(
            """Under a process prior, rows become centres until the probabilities are within this Kullback-Leibler
            divergence of the probabilities with all rows as centres. The unit is nats for each of the C - 1 functions
            of C classes, averaged over the rows. 0.05 takes about half as many centres. None is 0.005.""",
            [POSITIVE, None],
            path="residual",
        ),
        "posterior": Parameter(
            """How the posterior of the weights is approximated. ``"laplace"`` uses the Hessian of the likelihood at the
            mode [1]_. For well-separated classes the Hessian is almost zero there, and moderated probabilities are too
            close to uniform. ``"averaged"`` uses the mean of the Hessian under the posterior [5]_, which takes a few
            more passes over the rows. Probabilities become more extreme for well-separated classes and hardly change
            for overlapping ones. The mode, the evidence and the relevance vectors do not change. Not for
            ``search="variational"``. ``"auto"`` is ``"averaged"`` for a joint model of three or more classes, unless
            the fit is stopped or out of time, otherwise ``"laplace"``.""",
            TABLE["posterior"].allowed,
            path="posterior",
        ),
    },
    "SupportVectorMachine": {
        "kernel": Parameter(
            """The kernel, which should be positive definite. ``"sigmoid"`` is not, and ``"linear_spline"`` is not if a
            feature is negative: the fit may then find a local optimum, and a warning says so. With
            ``"precomputed"``, `X` is the kernel matrix: square in `fit`, and of new rows against the training rows in
            `predict`. A callable takes two arrays of rows, (n, D) and (m, D), and returns (n, m). Sums and products
            are written as for `RVR`, or built with `relvec.kernels`. Nothing in them is learned: an amplitude that is
            not given is 1, and a period must be given. A kernel of `sklearn.gaussian_process.kernels` is translated
            into one of relvec.""",
            [Expressions(names(*KERNELS, "precomputed").options), callable],
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
            """Factors of the cost of errors, by class. Classes missing from a dict have factor 1. ``"balanced"`` gives
            each class the same total weight.""",
            TABLE["class_weight"].allowed,
        ),
        "multi_class": Parameter(
            """How more than two classes are modelled: by a function for each pair of classes (``"auto"``), or for each
            class against all others.""",
            [names("auto", "one_vs_one", "one_vs_rest")],
            path="multi_class",
        ),
        "time_limit": Parameter(
            "Time limit in seconds, at which the fit ends.", TABLE["time_limit"].allowed, path="time_limit"
        ),
        "random_state": Parameter(
            "Seed of the cross-validation for probabilities. None is 0, so that fits are reproducible.",
            ["random_state"],
            path="seed",
        ),
        "verbose": Parameter("1: print progress now and then; 2: print all progress.", ["verbose"]),
        "callback": Parameter(
            """Called now and then with a dict (``iteration``, ``gap``, ``function``, ``seconds``). If it returns True
            or raises StopIteration, the fit ends with the model as it is.""",
            [callable, None],
        ),
    },
    "NuSVC": {
        "nu": Parameter(
            """The share of errors, in (0, 1], at most twice the share of the smaller class. Weights of classes and rows
            count in it. If the classes overlap and the share is small, the margin is zero: the model is then the limit
            of larger shares, which SVC with a large `C` finds, and a warning says so.""",
            TABLE["nu"].allowed,
        ),
    },
    "SVR": {
        "C": Parameter(
            """Cost of an error beyond `epsilon`, for each unit of the target; ``inf`` for a tube that no row may leave,
            which fails if there is no such tube.""",
            [COST],
        ),
    },
    "NuSVR": {
        "C": Parameter("Cost of an error beyond the tube, for each unit of the target.", [POSITIVE]),
    },
}


def parameters(cls: type) -> dict[str, Parameter]:
    """Return the parameters of a class that are in the table, in the order of its constructor."""
    own = [OWN.get(base.__name__, {}) for base in cls.__mro__] + [TABLE]
    signature = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    return {name: table[name] for name in signature for table in reversed(own) if name in table}


def docstring(cls: type) -> str | None:
    """Return the docstring of a class with the entries of its parameters in place of ``{parameters}``."""
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
    """Return the allowed values of parameters in scikit-learn's form."""
    return {name: one.allowed for name, one in table.items()}


def check(caller: str, **values: Any) -> None:
    """Check arguments of the function `caller` that are parameters of the table."""
    validate_parameter_constraints(constraints({name: TABLE[name] for name in values}), values, caller)
