"""Pages on fitted estimators say what scikit-learn's measures say, and are written for every kind of model."""

import re

import numpy as np
import pandas as pd
import pytest
import relvec
from relvec import RVC, RVR, SVC, SVR, TableEncoder
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error
from sklearn.metrics.pairwise import rbf_kernel
from support import Called, sinc, surface, two_classes


def number(page, name, place=0):
    """A number of the table of measures: of the model, or at place 1 of the constant prediction."""
    cells = re.search(f'<th scope="row" class="w">{re.escape(name)}</th>((?:<td[^>]*>[^<]*</td>)*)', page)
    assert cells is not None, name
    return float(re.findall(">([^<]*)</td>", cells[1])[place])


def close(found, expected):
    assert found == pytest.approx(expected, rel=0.006), (found, expected)


def test_values_have_their_measures_and_coverage():
    X, y = surface(200)
    model = RVR().fit(X[::2], y[::2])
    page = model.report_html(X[1::2], y[1::2])
    predicted, (low, high) = model.predict(X[1::2]), model.predict_interval(X[1::2], 0.8)
    close(number(page, "RMSE (units of `target`)"), root_mean_squared_error(y[1::2], predicted))
    close(number(page, "RMSE (units of `target`)", 1), np.std(y[1::2]))
    close(number(page, "MAE (units of `target`)"), mean_absolute_error(y[1::2], predicted))
    inside = np.sum((low <= y[1::2]) & (y[1::2] <= high))
    assert f"<td>{inside} of 100</td>" in page
    assert "Log evidence by iteration" in page and "Settings" not in page
    assert "gamma" in RVR(gamma=0.5).fit(X, y).report_html().split("Settings")[1]


def test_classes_have_their_measures_whatever_their_names():
    X, k = two_classes(200)
    names = np.array(["<b>yes</b>", "no"])[k]
    model = RVC().fit(X[::2], names[::2])
    page = model.report_html(X[1::2], names[1::2])
    p = model.predict_proba(X[1::2])
    close(number(page, "log loss (nats)"), log_loss(names[1::2], p))
    close(number(page, "ROC AUC (0 to 1)"), roc_auc_score(names[1::2] == model.classes_[1], p[:, 1]))
    assert "<b>" not in page and "&lt;b&gt;yes&lt;/b&gt;" in page
    with pytest.raises(ValueError, match=r"y has the class 'maybe'.*expected '<b>yes</b>', 'no'"):
        model.report_html(X[:1], ["maybe"])


def test_outputs_counts_and_known_noise():
    X, y = surface(120)
    both = pd.DataFrame({"first": y, "second": 10.0 * y})
    page = RVR().fit(X, both).report_html(X, both)
    assert "Predictions of `first`" in page and "Predictions of `second`" in page
    with pytest.raises(ValueError, match="y has 1 column: expected 2 columns"):
        RVR().fit(X, both).report_html(X, y)

    rng = np.random.default_rng(0)
    over = rng.uniform(0.5, 3.0, 120)
    counts = rng.poisson(over * np.exp(y / 3.0))
    model = RVR(likelihood="poisson").fit(X, counts, exposure=over)
    page = model.report_html(X, counts, exposure=over)
    close(number(page, "RMSE (units of `target`)"), root_mean_squared_error(counts, model.predict(X, exposure=over)))
    with pytest.raises(ValueError, match="exposure is for models of counts"):
        RVR().fit(X, y).report_html(X, y, exposure=over)

    model = RVR().fit(X, y, noise_variance=np.full(120, 0.01))
    assert "Coverage of intervals" not in model.report_html(X, y)
    assert "Coverage of intervals" in model.report_html(X, y, noise_variance=np.full(120, 0.01))


@pytest.mark.parametrize("kernel", [Called(), "precomputed"])
@pytest.mark.parametrize("estimator", [RVR, RVC, SVC, SVR])
def test_kernels_of_the_caller(estimator, kernel):
    X, k = two_classes(60)
    rows = rbf_kernel(X, X) if kernel == "precomputed" else X
    y = k if estimator in (RVC, SVC) else X[:, 0] + k
    page = estimator(kernel=kernel).fit(rows, y).report_html(rows, y)
    assert "the model was trained on 60 rows too" in page and "NaN" not in page
    name = "error rate (%)" if estimator in (RVC, SVC) else "RMSE (units of `target`)"
    assert number(page, name) < number(page, name, 1)


def test_a_model_from_a_file_takes_raw_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(0, 3, 80), "colour": rng.choice(["red", "blue", "teal"], 80)})
    y = np.sin(frame["x"]) + (frame["colour"] == "red") + 0.1 * rng.standard_normal(80)
    encoder = TableEncoder()
    RVR().fit(encoder.fit_transform(frame), y).save(tmp_path / "m.json", encoder)
    path = tmp_path / "page.html"
    page = relvec.load(tmp_path / "m.json").report_html(frame, y, path)
    assert path.read_text(encoding="utf-8") == page
    assert "colour=teal" in page and "Settings" not in page and "The search" not in page


def test_rows_and_targets_come_together():
    X, y = sinc(30)
    model = RVR().fit(X, y)
    with pytest.raises(ValueError, match="X was given without y"):
        model.report_html(X)
    with pytest.raises(ValueError, match="y was given without X"):
        model.report_html(y=y)
    with pytest.raises(ValueError, match="X has 30 rows, y has 29"):
        model.report_html(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.report_html(X, np.full(30, np.nan))
    alone = model.report_html()
    assert "describes only the model" in alone and "RMSE" not in alone


def test_warnings_of_the_fit_and_of_intervals_are_on_the_page():
    X, y = sinc(100)
    with pytest.warns(UserWarning, match="did not converge"):
        model = RVR(gamma=0.1, weight_prior="ard", search={"max_iterations": 3}).fit(X, y)
    assert "did not converge in 3 iterations" in model.report_html()
    model = RVR().fit(X, y)
    wide = y + np.random.default_rng(1).standard_normal(100)
    page = model.report_html(X, wide)
    assert "the 95 % interval of `target` covers" in page and "calibrate=True" in page and "--calibrate" not in page
