"""The table of parameters: signatures, documentation, constraints and the core's defaults agree with it."""

import inspect
import json
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpydoc.docscrape import NumpyDocString
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR, _core, _settings
from relvec._table import AROUND, OWN, SCHEMES, TABLE, parameters
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.estimator_checks import check_param_validation
from support import put, rvr, sinc, two_classes

X, T = sinc()
ALL = [RVR, RVC, SVC, NuSVC, SVR, NuSVR]
EVERY = pytest.mark.parametrize("cls", ALL)


def signature(cls):
    return {name: p for name, p in inspect.signature(cls.__init__).parameters.items() if name != "self"}


@EVERY
def test_signature_table_constraints_and_documentation_have_the_same_parameters(cls):
    documented = NumpyDocString(inspect.getdoc(cls))["Parameters"]
    for found in (parameters(cls), cls._parameter_constraints, [entry.name for entry in documented], vars(cls())):
        assert list(found) == list(signature(cls))
    for entry in documented:
        assert entry.type.startswith(f"{parameters(cls)[entry.name].kind()}, default=")
        assert entry.desc, entry.name


@EVERY
def test_every_default_is_allowed(cls):
    for name, parameter in signature(cls).items():
        allowed = [make_constraint(one) for one in cls._parameter_constraints[name]]
        assert any(one.is_satisfied_by(parameter.default) for one in allowed), name


def test_every_entry_of_the_table_is_of_an_estimator():
    used = [one for cls in ALL for one in parameters(cls).values()]
    assert all(one in used for entries in (TABLE, *OWN.values()) for one in entries.values())
    bases = {base.__name__ for cls in ALL for base in cls.__mro__}
    assert OWN.keys() <= bases


@EVERY
def test_each_parameter_is_checked_by_itself(cls):
    check_param_validation(cls.__name__, cls())


@pytest.mark.parametrize(("cls", "likelihood"), [(RVR, "gaussian"), (RVC, "bernoulli")])
def test_defaults_are_those_of_the_core(cls, likelihood):
    known = json.loads(_core.default_settings()[0])
    search = known["inference"].pop("search")
    own = {"noise_variance": None} if cls is RVR else {}
    found = json.loads(_settings.rvm(cls(), {likelihood: own}, given=False, n_jobs=None, random_state=0))
    assert found.pop("inference") == {"search": {}} and search.keys() == set(SCHEMES["search"])
    assert found.pop("likelihood") == (known["likelihood"] if cls is RVR else {"bernoulli": {}})
    assert found == {name: known[name] for name in found}
    # What only the other estimator has, or what has no parameter by itself.
    assert known.keys() - found.keys() >= {"kernels", "inference", "likelihood", *AROUND}


@pytest.mark.parametrize("cls", [SVC, NuSVC, SVR, NuSVR])
def test_defaults_of_support_vector_machines_are_those_of_the_core(cls):
    known = json.loads(_core.default_settings()[1])
    seed = {"random_state": 0} if cls in (SVC, NuSVC) else {}
    found = json.loads(_settings.svm(cls(), {"formulation": cls()._formulation()}, n_jobs=None, **seed))
    formulation = found.pop("formulation")
    assert found == {name: known[name] for name in found}
    if cls is SVC:
        assert formulation == known["formulation"]


@pytest.mark.parametrize("name", ["inference", "inference_params", "tol", "max_iter"])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_settings_of_the_search_are_no_parameters(cls, name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        cls(**{name: 1})


def test_a_search_by_name_is_that_of_a_dict_with_the_scheme():
    by_name, by_dict = rvr(gamma=0.1, search="mackay"), rvr(gamma=0.1, search={"scheme": "mackay"})
    assert_array_equal(by_name.fit(X, T).dual_coef_, by_dict.fit(X, T).dual_coef_)
    usual = [rvr(gamma=0.1, search=search).fit(X, T) for search in (None, "search", {}, {"scheme": "search"})]
    for model in usual:
        assert_array_equal(model.dual_coef_, usual[0].dual_coef_)


def test_a_fit_leaves_the_search_as_it_was():
    given = {"scheme": "em", "tolerance": np.float64(0.1), "max_iterations": np.int64(500)}
    model = rvr(gamma=0.1, search=given).fit(X, T)
    assert model.search is given and len(given) == 3
    again = clone(model)
    assert again.search == given and again.search is not given
    assert_array_equal(again.fit(X, T).dual_coef_, model.dual_coef_)
    assert again.set_params(search="mackay").fit(X, T).n_iter_ != model.n_iter_


def test_numbers_of_other_types_are_those_numbers():
    plain = rvr(gamma=0.5, folds=3, memory_limit=10**9, fit_intercept=True).fit(X, T).dual_coef_
    for gamma in (Fraction(1, 2), np.float32(0.5), np.array(0.5), np.float16(0.5)):
        own = {"folds": np.int8(3), "memory_limit": np.int64(10**9), "fit_intercept": np.bool_(True)}
        assert_array_equal(rvr(gamma=gamma, **own).fit(X, T).dual_coef_, plain)
    with pytest.raises(ValueError, match="The 'gamma' parameter"):
        rvr(gamma=Fraction(-1, 2)).fit(X, T)


def test_grid_search_over_the_search():
    grid = {"search": ["mackay", {"restarts": 0}, {"scheme": "em", "tolerance": 0.1}, None]}
    chosen = GridSearchCV(rvr(gamma=0.1), grid, cv=KFold(3, shuffle=True, random_state=0), error_score="raise").fit(
        X, T
    )
    assert chosen.best_params_["search"] in grid["search"]
    assert chosen.best_score_ > 0.8


class Narrow(RVR):
    """A subclass with a parameter of its own, which sets two of the others."""

    def __init__(self, width=1.0):
        super().__init__(gamma=width**-2, weight_prior="ard", search={"tolerance": 0.1})
        self.width = width


def test_a_subclass_with_fewer_parameters_keeps_what_it_sets():
    model = clone(Narrow(3.0)).fit(X, T)
    expected = RVR(gamma=3.0**-2, weight_prior="ard", search={"tolerance": 0.1}).fit(X, T)
    assert model.get_params() == {"width": 3.0}
    assert_array_equal(model.dual_coef_, expected.dual_coef_)
    with pytest.raises(ValueError, match="The 'gamma' parameter of Narrow must be"):
        Narrow(np.inf).fit(X, T)


def test_parameters_are_checked_before_the_data_and_on_every_way_to_a_fit():
    rows = put(X, (0, 0), np.nan)
    for model in (RVR(folds=1), RVC(folds=1), RVR(folds=1, keep_statistics=True)):
        for fit in (getattr(model, name) for name in ("fit", "partial_fit") if hasattr(model, name)):
            with pytest.raises(ValueError, match="The 'folds' parameter"):
                fit(rows, T)
    kept = rvr(gamma=0.1, dictionary=20, keep_statistics=True).fit(X, T)
    with pytest.raises(ValueError, match="The 'folds' parameter"):
        kept.set_params(folds=1).partial_fit(rows, T)
    C, y = two_classes()
    with pytest.raises(ValueError, match="The 'shrinking' parameter of SVC must be"):
        SVC(shrinking="no").fit(C, y)
