"""Laws of sample weights and class weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR
from support import papers, rvc, rvr, sinc, two_classes

X, T = sinc()
C, Y = two_classes()
SCHEMES = pytest.mark.parametrize("inference", ["search", "mackay", "em"])
CASES = [pytest.param(RVR, X, T, id="RVR"), pytest.param(RVC, C, Y, id="RVC")]
BOTH = pytest.mark.parametrize(("cls", "rows", "target"), CASES)


def fitted(cls, *data, **own):
    # Expectation maximisation need not go to the end for a law that holds at each step.
    if own.get("search") == "em":
        own["search"] = {"scheme": "em", "tolerance": 0.01}
    return papers(cls, gamma=0.2, **own).fit(*data)


def check_equal(one, other):
    """The same model, bit for bit."""
    assert_array_equal(one.relevance_, other.relevance_)
    for name in ("dual_coef_", "intercept_", "alpha_", "intercept_alpha_", "covariance_", "log_evidence_"):
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@SCHEMES
@BOTH
def test_ones_are_no_weights(cls, rows, target, inference):
    plain = fitted(cls, rows, target, search=inference)
    check_equal(fitted(cls, rows, target, np.ones(len(rows)), search=inference), plain)
    check_equal(fitted(cls, rows, target, 1.0, search=inference), plain)
    check_equal(fitted(cls, rows, target, [1] * len(rows), search=inference), plain)


@SCHEMES
@BOTH
def test_whole_weights_are_repetitions(cls, rows, target, inference):
    weight = np.random.default_rng(1).integers(0, 4, len(rows))
    weighted = fitted(cls, rows, target, weight, search=inference)
    repeated = fitted(cls, np.repeat(rows, weight, axis=0), np.repeat(target, weight), search=inference)
    assert_array_equal(weighted.relevance_vectors_, repeated.relevance_vectors_)
    assert_array_equal(weighted.dual_coef_, repeated.dual_coef_)
    assert weighted.log_evidence_ == repeated.log_evidence_
    assert weighted.log_evidence_ != fitted(cls, rows, target, search=inference).log_evidence_


@SCHEMES
@BOTH
def test_a_weight_of_zero_removes_the_row(cls, rows, target, inference):
    weight = np.ones(len(rows))
    weight[3::5] = 0.0
    kept = weight > 0
    # Whatever stands in the row: it is not a centre, it does not enter gamma.
    wild = rows.copy()
    wild[~kept] = 1e5
    one = papers(cls, search={"scheme": inference, "tolerance": 0.01}).fit(wild, target, weight)
    other = papers(cls, search={"scheme": inference, "tolerance": 0.01}).fit(rows[kept], target[kept])
    assert one.gamma_ == other.gamma_
    assert_array_equal(one.relevance_, np.flatnonzero(kept)[other.relevance_])
    assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert one.log_evidence_ == other.log_evidence_


@BOTH
def test_two_weights_of_a_repeated_row_add_up(cls, rows, target):
    twice = np.vstack([rows, rows]), np.append(target, target)
    weight = np.random.default_rng(1).choice([0.25, 0.5, 0.75], len(rows))
    check = fitted(cls, *twice, np.append(weight, 1.0 - weight))
    plain = fitted(cls, rows, target)
    assert_array_equal(check.relevance_, plain.relevance_)
    assert_array_equal(check.dual_coef_, plain.dual_coef_)


@BOTH
def test_order_of_the_rows_does_not_matter(cls, rows, target):
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(rows))
    order = np.random.default_rng(2).permutation(len(rows))
    plain, mixed = fitted(cls, rows, target, weight), fitted(cls, rows[order], target[order], weight[order])
    assert_array_equal(np.sort(order[mixed.relevance_]), plain.relevance_)
    assert_allclose(mixed.log_evidence_, plain.log_evidence_, rtol=1e-9)
    assert_allclose(mixed.predict(rows), plain.predict(rows), atol=1e-7)


def test_a_light_row_has_little_say():
    target = T.copy()
    target[30] += 5.0
    weight = np.ones(60)
    weight[30] = 1e-4
    light, full = rvr(gamma=0.1).fit(X, target, weight), rvr(gamma=0.1).fit(X, target)
    clean = rvr(gamma=0.1).fit(X, T)
    assert np.abs(light.predict(X) - clean.predict(X)).max() < 0.1
    assert np.abs(full.predict(X) - clean.predict(X)).max() > 0.3


def class_weighted(class_weight, sample_weight=None, labels=Y, rows=C):
    return rvc(gamma=0.2, class_weight=class_weight).fit(rows, labels, sample_weight)


def test_class_weight_multiplies_sample_weight():
    own = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    factors = np.where(Y == 1, 3.0, 0.5)
    check_equal(class_weighted({0: 0.5, 1: 3.0}), rvc(gamma=0.2).fit(C, Y, factors))
    check_equal(class_weighted({0: 0.5, 1: 3.0}, own), rvc(gamma=0.2).fit(C, Y, own * factors))
    # A class that is not named has 1.
    check_equal(class_weighted({1: 3.0}), rvc(gamma=0.2).fit(C, Y, np.where(Y == 1, 3.0, 1.0)))
    check_equal(class_weighted({}), rvc(gamma=0.2).fit(C, Y))
    assert class_weighted({1: 3.0}).log_evidence_ != class_weighted(None).log_evidence_


def unequal(n=20):
    """Twenty rows of class 0, forty of class 1."""
    rows = np.vstack([C[:n], C[40:]])
    return rows, np.repeat([0, 1], [n, 40])


def test_balanced_gives_equal_totals_and_keeps_the_sum():
    rows, labels = unequal()
    # 60 rows: 30 for each class.
    factors = np.where(labels == 0, 30.0 / 20.0, 30.0 / 40.0)
    assert factors.sum() == 60.0
    check_equal(class_weighted("balanced", None, labels, rows), rvc(gamma=0.2).fit(rows, labels, factors))


def test_balanced_counts_the_sample_weights():
    rows, labels = unequal()
    own = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    own[::7] = 0.0
    totals = np.array([own[labels == 0].sum(), own[labels == 1].sum()])
    factors = own.sum() / (2.0 * totals)
    balanced = own * factors[labels]
    assert balanced[labels == 0].sum() == pytest.approx(balanced[labels == 1].sum())
    assert balanced.sum() == pytest.approx(own.sum())
    model, expected = class_weighted("balanced", own, labels, rows), rvc(gamma=0.2).fit(rows, labels, balanced)
    # Sums in another order.
    assert_array_equal(model.relevance_, expected.relevance_)
    assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-10)


def test_balanced_changes_nothing_where_classes_are_equal():
    check_equal(class_weighted("balanced"), rvc(gamma=0.2).fit(C, Y))


def test_balanced_helps_the_rare_class():
    rows, labels = unequal(6)
    plain, balanced = rvc(gamma=0.2).fit(rows, labels), class_weighted("balanced", None, labels, rows)
    assert balanced.predict_proba(rows)[:, 0].mean() > plain.predict_proba(rows)[:, 0].mean() + 0.05


@pytest.mark.parametrize(
    ("names", "class_weight"),
    [(["no", "yes"], {"no": 2.0}), ([False, True], {False: 2.0}), ([-1, 1], {-1: 2.0}), ([-1.0, 1.0], {-1.0: 2})],
    ids=str,
)
def test_class_weight_goes_by_the_label(names, class_weight):
    labels = np.array(names)[Y]
    model = class_weighted(class_weight, None, labels)
    assert_array_equal(model.dual_coef_, class_weighted({0: 2.0}).dual_coef_)
    assert_array_equal(model.classes_, names)


def test_labels_of_a_class_weight_must_be_classes():
    with pytest.raises(ValueError, match=r"class_weight names \['maybe'\], but the classes are \['no', 'yes'\]"):
        class_weighted({"no": 1.0, "maybe": 2.0}, None, np.array(["no", "yes"])[Y])
