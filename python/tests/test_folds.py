"""Folds of tables with repeated rows, few rows, and weights that are too small or too large to count."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import relvec
from relvec import RVC, SVC, SVR, NuSVC
from sklearn.base import clone
from sklearn.ensemble import AdaBoostRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from support import rvc, rvr

ROWS = np.arange(1000)
SPREAD = ROWS * 7919 % 1000 / 1000.0
# One-hot features of 12 levels; the probability of the class depends on the level.
LEVELS = np.eye(12)[ROWS % 12]
OF_LEVELS = (SPREAD < (ROWS % 12 + 1) / 13).astype(int)
# Four binary features, of which two decide.
BITS = (ROWS[:, None] >> np.arange(4) & 1).astype(float)
OF_BITS = (np.where((ROWS ^ ROWS >> 1) & 1 == 1, 0.74, 0.26) > SPREAD).astype(int)


def argmax(model: Any, X: Any) -> Any:
    return model.classes_[model.predict_proba(X).argmax(axis=1)]


def test_probabilities_of_repeated_rows_are_as_good_as_those_of_scikit_learn() -> None:
    """scikit-learn's SVC reaches 0.568; folds over merged rows gave 3.33, every class contradicted."""
    model = SVC(probability=True).fit(LEVELS, OF_LEVELS)
    assert log_loss(OF_LEVELS, model.predict_proba(LEVELS)) < 0.58
    assert np.array_equal(argmax(model, LEVELS), model.predict(LEVELS))


@pytest.mark.parametrize("sparsity", [0.0, "cv"])
def test_fold_errors_of_repeated_rows_are_those_of_outer_folds(sparsity: Any) -> None:
    own = rvc(folds=5, sparsity=sparsity).fit(BITS, OF_BITS).report_["validation"]
    outer = 1 - cross_val_score(rvc(), BITS, OF_BITS, cv=StratifiedKFold(5, shuffle=True, random_state=0)).mean()
    assert own["rows"] == 1000
    assert own["error_rate"] == pytest.approx(outer, abs=0.005)


def test_fold_errors_of_repeated_inputs_are_those_of_outer_folds() -> None:
    X = (ROWS[:200] % 10).astype(float)[:, None]
    y = 3 * np.sin(X[:, 0]) + 1.7 * (ROWS[:200] * 7919 % 200 / 200 - 0.5)
    own = rvr(gamma=3.0, folds=5).fit(X, y).report_["validation"]["rmse"]
    folds = KFold(5, shuffle=True, random_state=0)
    outer = -cross_val_score(rvr(gamma=3.0), X, y, cv=folds, scoring="neg_mean_squared_error").mean()
    assert own == pytest.approx(np.sqrt(outer), rel=0.05)


def test_weights_are_copies_in_folds() -> None:
    order = np.random.default_rng(0).permutation(300)
    X, y = BITS[:300, :3], OF_BITS[:300]
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    fits = [
        rvc(folds=4).fit(X, y),
        rvc(folds=4).fit(X[order], y[order]),
        rvc(folds=4).fit(rows[:, :3], rows[:, 3], sample_weight=counts),
    ]
    scores = [{**fit.report_["validation"], "seconds": 0.0} for fit in fits]
    assert scores[0] == scores[1] == scores[2]
    sigmoids = [
        SVC(probability=True).fit(X, y),
        SVC(probability=True).fit(X[order], y[order]),
        SVC(probability=True).fit(rows[:, :3], rows[:, 3], sample_weight=counts),
    ]
    assert sigmoids[0].probA_ == sigmoids[1].probA_ == sigmoids[2].probA_


@pytest.mark.parametrize("model", [rvr(sparsity="cv"), rvr(calibrate=True), rvc(sparsity="cv")])
def test_four_rows_have_as_many_folds_as_they_allow(model: Any) -> None:
    X = np.arange(4.0)[:, None]
    model.fit(X, [0, 0, 1, 1] if isinstance(model, RVC) else [0.0, 1.0, 0.5, 2.0])
    assert model.report_["validation"]["folds"] == (2 if isinstance(model, RVC) else 4)


def test_an_error_names_the_parameter_that_asks_for_cross_validation() -> None:
    X = np.arange(4.0)[:, None]
    with pytest.raises(
        ValueError, match=r'^sparsity = "cv": expected a number: cross-validation needs at least 2 rows of'
    ):
        rvc(sparsity="cv").fit(X, [0, 1, 1, 1])
    with pytest.raises(
        ValueError, match=r"^folds = 5: expected at most as many folds as there are rows \(there are 4\)$"
    ):
        rvr(folds=5, calibrate=True).fit(X, [0.0, 1.0, 0.5, 2.0])


def test_probabilities_of_few_rows_agree_with_predict_and_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    for trial in range(40):
        first, second = 1 + trial % 4, 1 + trial // 4 % 4
        X = np.r_[rng.normal(-3, 1, (first, 2)), rng.normal(3, 1, (second, 2))]
        y = np.repeat(["no", "yes"], [first, second])
        with pytest.warns(UserWarning, match="too few rows for a cross-validation of the probabilities, which needs 5"):
            model = SVC(probability=True).fit(X, y)
        new = rng.uniform(-5, 5, (50, 2))
        for rows in (X, new):
            assert np.array_equal(argmax(model, rows), model.predict(rows))


def test_a_feasible_nu_has_probabilities() -> None:
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(-1, 1, (10, 2)), rng.normal(1, 1, (6, 2))]
    y = np.repeat([0, 1], [10, 6])
    model = NuSVC(nu=0.7, probability=True).fit(X, y)
    assert np.mean(argmax(model, X) == model.predict(X)) > 0.8


def test_weights_that_count_as_one_row_are_warned_of() -> None:
    X = np.linspace(0, 5, 200)[:, None]
    y = np.sin(X[:, 0])
    text = r"the sample weights of 200 rows sum to 1\. .* Multiply the weights by 200\.$"
    for model, target in [(rvr(), y), (SVR(), y), (rvc(), y > 0), (SVC(), y > 0)]:
        with pytest.warns(UserWarning, match=f"{type(model).__name__}: {text}"):
            model.fit(X, target, sample_weight=np.full(200, 1 / 200))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Exact targets of a sine leave no noise.
            warnings.simplefilter("ignore", relvec.InterpolationWarning)
            clone(model).fit(X[:50], target[:50] if target is y else np.arange(50) > 25, sample_weight=np.full(50, 0.5))
    # Boosting draws rows by weights that sum to 1, and does not pass them on.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AdaBoostRegressor(SVR(), n_estimators=2, random_state=0).fit(X, y)


def test_a_weight_of_1e300_is_an_error() -> None:
    X = np.linspace(0, 5, 200)[:, None]
    weights = np.ones(200)
    weights[7] = 1e300
    for model in (rvr(), SVR()):
        with pytest.raises(ValueError, match=r"sample weight of row 7 is 1e300: expected a number from 0 to 2\^53"):
            model.fit(X, np.sin(X[:, 0]), sample_weight=weights)


def test_compare_does_not_depend_on_the_order_of_rows() -> None:
    pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(200)
    X, y = BITS[:200], OF_BITS[:200]
    tables = [
        relvec.compare(X[rows], y[rows], ["rvm", "svm"], cv=3, inner_cv=2, grid={"gamma": [1], "c": [1, 10]})
        for rows in (np.arange(200), order)
    ]
    for measure in ("error_rate", "log_loss", "brier"):
        assert tables[0][measure].to_numpy() == pytest.approx(tables[1][measure].to_numpy(), rel=1e-9)
