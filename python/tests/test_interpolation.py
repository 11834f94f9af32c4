"""The warning of models that interpolate their training rows."""

import warnings

import numpy as np
import pytest
import relvec
from relvec import RVC, RVR, InterpolationWarning, Statistics
from support import rvc, rvr, surface, two_classes

X, T = surface(80)
C, Y = two_classes(80)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", [20, 80])
def test_a_kernel_for_each_row_interpolates(seed, rows):
    rng = np.random.default_rng(seed)
    own = rng.uniform(-2.0, 2.0, (rows, 2))
    target = np.sin(own[:, 0]) + 0.3 * rng.standard_normal(rows)
    with pytest.warns(InterpolationWarning, match=f"RVR: more than a third of the rows.* of {rows}\\)") as told:
        model = rvr(gamma=1e4).fit(own, target)
    assert len(told) == 1
    message = str(told[0].message)
    for option in ('gamma="evidence"', 'weight_prior="auto"', 'sparsity="auto"', "folds=5"):
        assert option in message
    found = model.report_["interpolation"]
    assert found["many_vectors"] and found["rows"] == rows and found["vectors"] == len(model.relevance_)
    assert told[0].filename == __file__


def test_classes_are_told_of_their_probabilities():
    with pytest.warns(InterpolationWarning, match="RVC: .*probabilities are") as told:
        model = rvc(gamma=1e4).fit(C, np.arange(80) < 30)
    assert len(told) == 1 and model.report_["interpolation"]["many_vectors"]
    with pytest.warns(InterpolationWarning) as told:
        several = rvc(gamma=1e4, multi_class="one_vs_rest").fit(C, np.repeat([0, 1, 2], [30, 25, 25]))
    assert len(told) == 1 and "interpolation" in several.report_


def test_ordinary_fits_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [
            RVR().fit(X, T),
            RVR(weight_prior="ard").fit(X, T),
            RVR(gamma=1e2, weight_prior="process").fit(X, T),
            RVC().fit(C, Y),
            RVC(weight_prior="ard").fit(C, Y),
        ]
    assert all("interpolation" not in model.report_ for model in models)


def test_sums_over_rows_are_given_no_advice_that_needs_the_rows():
    rng = np.random.default_rng(0)
    own = rng.uniform(-2.0, 2.0, (40, 1))
    sums = Statistics(centres=own, gamma=1e4)
    sums.update(own, rng.standard_normal(40))
    with pytest.warns(InterpolationWarning) as told:
        sums.fit(sparsity=0.0)
    message = str(told[0].message)
    assert 'sparsity="auto"' in message and "folds" not in message and "gamma" not in message
    assert "weight_prior" not in message


def test_interpolation_warnings_can_be_silenced_alone():
    assert issubclass(InterpolationWarning, UserWarning) and relvec.InterpolationWarning is InterpolationWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InterpolationWarning)
        rvr(gamma=1e4).fit(X, T)
