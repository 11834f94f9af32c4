"""The displays: what they draw is what the estimator says, and misuse is named."""

import subprocess
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVR, SVC, SVR, load
from relvec.plotting import (
    AlphaDisplay,
    DecisionDisplay,
    EvidenceDisplay,
    FeatureRelevanceDisplay,
    PredictionIntervalDisplay,
    RegressionDisplay,
    ReliabilityDisplay,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import PredictionErrorDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from support import rvc, rvr, surface

plt.switch_backend("Agg")

DISPLAYS = [
    AlphaDisplay,
    DecisionDisplay,
    EvidenceDisplay,
    FeatureRelevanceDisplay,
    PredictionIntervalDisplay,
    RegressionDisplay,
    ReliabilityDisplay,
]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sinc():
    rng = np.random.default_rng(0)
    x = rng.permutation(np.linspace(-10.0, 10.0, 80))
    return x[:, np.newaxis], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(80)


@pytest.fixture(scope="module")
def regressor(sinc):
    return rvr(gamma=0.1).fit(*sinc)


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    X = rng.permutation(np.vstack([rng.normal(-1.0, 1.0, (60, 2)), rng.normal(1.0, 1.0, (60, 2))]))
    return X, np.where(X.sum(axis=1) + rng.standard_normal(120) > 0, "yes", "no")


@pytest.fixture(scope="module")
def classifier(plane):
    return rvc(gamma=0.5).fit(*plane)


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def half_height(band, at):
    """Half the height of a band at one value of x."""
    vertices = band.get_paths()[0].vertices
    return np.ptp(vertices[vertices[:, 0] == at, 1]) / 2


def test_regression_draws_the_prediction(sinc, regressor):
    X, t = sinc
    display = RegressionDisplay.from_estimator(regressor, X, t)
    x, mean = display.line_.get_data()
    expected, std = regressor.predict(x[:, np.newaxis], return_std=True)
    assert_array_equal(mean, expected)
    assert x[0] < X.min() and x[-1] > X.max() and len(x) == 400
    for i in [0, 100, 399]:
        assert_allclose(half_height(display.band_, x[i]), 2 * std[i])
    assert display.model_band_ is None
    assert_array_equal(display.points_.get_offsets(), np.column_stack([X[:, 0], t]))
    circles = np.column_stack([regressor.relevance_vectors_[:, 0], t[regressor.relevance_]])
    assert_array_equal(display.circles_.get_offsets(), circles)
    assert display.figure_ is display.ax_.figure
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x", "y")
    assert texts(display.ax_.get_legend()) == ["± 2 std", "mean", "data", "relevance vectors"]


def test_regression_displays_follow_their_options(sinc, regressor):
    X, t = sinc
    _, ax = plt.subplots()
    display = RegressionDisplay.from_estimator(
        regressor, X, t, n_std=3, parts=True, mark_relevance=False, grid_resolution=50, ax=ax, c="red", label="fit"
    )
    assert display.ax_ is ax
    x = display.line_.get_xdata()
    assert len(x) == 50
    _, std, model_std, _ = regressor.predict(x[:, np.newaxis], return_std=True, return_parts=True)
    assert_allclose(half_height(display.band_, x[7]), 3 * std[7])
    assert_allclose(half_height(display.model_band_, x[7]), 3 * model_std[7])
    assert display.circles_ is None
    assert display.line_.get_color() == "red"
    assert texts(ax.get_legend()) == ["± 3 std, model and noise", "± 3 std, model", "fit", "data"]


def test_noise_without_a_variance_has_an_interval(sinc):
    X, y = sinc
    model = rvr(gamma=0.1, likelihood="student_t", noise_degrees=1.5).fit(X, y)
    display = RegressionDisplay.from_estimator(model, X, y, n_std=1.0, parts=True)
    lower, upper = model.predict_interval(display.grid[:, np.newaxis], 0.6826894921370859)
    heights = display.band_.get_paths()[0].vertices[:, 1]
    assert np.isfinite(heights).all() and heights.max() == upper.max() and heights.min() == lower.min()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels[:2] == ["68.3 % interval, model and noise", "± 1 std, model"]


def test_regression_again_in_other_axes(sinc, regressor):
    display = RegressionDisplay.from_estimator(regressor, *sinc)
    first, (_, ax) = display.ax_, plt.subplots()
    assert display.plot(ax=ax, n_std=1) is display
    assert display.ax_ is ax is not first
    assert "± 1 std" in texts(ax.get_legend())


def test_regression_pipeline_in_raw_units(sinc):
    X, t = sinc[0] * 100 + 5, sinc[1]
    model = make_pipeline(StandardScaler(), rvr(gamma=3.0)).fit(X, t)
    display = RegressionDisplay.from_estimator(model, X, t)
    x, mean = display.line_.get_data()
    assert_array_equal(mean, model.predict(x[:, np.newaxis]))
    circles = display.circles_.get_offsets()
    assert len(circles) > 0
    assert_array_equal(circles, np.column_stack([X[:, 0], t])[model[-1].relevance_])
    assert_allclose(model[0].transform(circles[:, :1]), model[-1].relevance_vectors_)


def test_a_pipeline_of_one_step(sinc):
    model = make_pipeline(rvr(gamma=0.1)).fit(*sinc)
    assert RegressionDisplay.from_estimator(model, *sinc).circles_ is not None


def test_basis_functions_that_are_no_rows(sinc):
    model = make_pipeline(PolynomialFeatures(8), StandardScaler(), rvr(basis="given")).fit(*sinc)
    display = RegressionDisplay.from_estimator(model, *sinc)
    assert display.circles_ is None
    x, mean = display.line_.get_data()
    assert_array_equal(mean, model.predict(x[:, np.newaxis]))


def test_kernel_computed_in_the_pipeline(sinc):
    X, t = sinc
    gram = FunctionTransformer(lambda rows: np.exp(-0.1 * (rows - X.T) ** 2))
    model = make_pipeline(gram, rvr(kernel="precomputed")).fit(X, t)
    display = RegressionDisplay.from_estimator(model, X, t)
    assert_array_equal(display.circles_.get_offsets()[:, 0], X[model[-1].relevance_, 0])
    with pytest.raises(ValueError, match="X has 79 rows, but the estimator was fitted to 80"):
        RegressionDisplay.from_estimator(model, X[1:], t[1:])


@pytest.mark.parametrize("library", [pd, pl])
def test_names_of_a_table(library, sinc):
    X, t = sinc
    table, target = library.DataFrame({"depth": X[:, 0]}), library.Series(t)
    target = target.rename("heat")
    for model in [rvr(gamma=0.1), make_pipeline(StandardScaler(), rvr())]:
        ax = RegressionDisplay.from_estimator(model.fit(table, target), table, target).ax_
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("depth", "heat")


@pytest.mark.parametrize("library", [pd, pl])
def test_names_of_a_table_with_classes(library, plane):
    X, y = plane
    table = library.DataFrame({"width": X[:, 0], "height": X[:, 1]})
    display = DecisionDisplay.from_estimator(rvc(gamma=0.5).fit(table, y), table, y, grid_resolution=10)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")


def test_decision_draws_the_probability(plane, classifier):
    X, y = plane
    display = DecisionDisplay.from_estimator(classifier, X, y)
    assert display.probability.shape == (200, 200)
    assert_array_equal(np.ravel(display.shading_.get_array()), display.probability.ravel())
    # Rows go along the second feature, columns along the first.
    for i, j in [(0, 0), (3, 150), (199, 10)]:
        row = [[display.x0[j], display.x1[i]]]
        assert_allclose(display.probability[i, j], classifier.predict_proba(row)[0, 1], rtol=1e-12)
    assert display.x0[0] < X[:, 0].min() and display.x1[-1] > X[:, 1].max()

    assert_array_equal(display.contours_.levels, [0.25, 0.5, 0.75])
    on_line = np.vstack(display.contours_.allsegs[1])
    assert_allclose(classifier.predict_proba(on_line)[:, 1], 0.5, atol=0.01)

    for points, label in zip(display.points_, ["no", "yes"], strict=False):
        assert_array_equal(points.get_offsets(), X[y == label])
    assert_array_equal(display.circles_.get_offsets(), classifier.relevance_vectors_)
    assert display.figure_ is display.ax_.figure
    assert display.colorbar_.ax.get_ylabel() == "probability of class yes"
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("$x_0$", "$x_1$")
    assert texts(display.ax_.get_legend()) == ["class no", "class yes", "relevance vectors"]


def test_decision_displays_follow_their_options(plane, classifier):
    _, ax = plt.subplots()
    display = DecisionDisplay.from_estimator(
        classifier, *plane, colorbar=False, mark_relevance=False, grid_resolution=20, ax=ax, cmap="viridis"
    )
    assert display.ax_ is ax
    assert display.colorbar_ is None and display.circles_ is None
    assert display.probability.shape == (20, 20)
    assert display.shading_.get_cmap().name == "viridis"
    assert display.plot().ax_ is not ax


def test_decision_pipeline_in_raw_units(plane):
    X, y = plane[0] * [10.0, 0.1], plane[1]
    model = make_pipeline(StandardScaler(), rvc(gamma=0.5)).fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, grid_resolution=30)
    assert_allclose(display.probability[4, 7], model.predict_proba([[display.x0[7], display.x1[4]]])[0, 1])
    assert_array_equal(display.circles_.get_offsets(), X[model[-1].relevance_])


def test_decision_without_a_boundary(plane, classifier):
    X, y = plane
    corner = X.sum(axis=1) > 3.0
    display = DecisionDisplay.from_estimator(
        classifier, X[corner] * 0.01 + 3.0, y[corner], mark_relevance=False, grid_resolution=20
    )
    assert 0.5 < display.probability.min() < display.probability.max() < 0.75
    assert display.contours_ is None
    display.figure_.canvas.draw()


@pytest.mark.parametrize("labels", [[False, True], [3, 7]])
def test_classes_of_other_types(labels, plane):
    X, y = plane
    y = np.array(labels)[(y == "yes").astype(int)]
    display = DecisionDisplay.from_estimator(rvc(gamma=0.5).fit(X, y), X, y, grid_resolution=10)
    assert [len(points.get_offsets()) for points in display.points_] == [np.sum(y == label) for label in labels]


def test_evidence_displays_draw_the_trace(regressor):
    display = EvidenceDisplay.from_estimator(regressor)
    iteration, evidence = display.line_.get_data()
    assert_array_equal(iteration, np.arange(1, regressor.n_iter_ + 1))
    assert_array_equal(evidence, regressor.report_["log_evidence"])
    assert display.active_ax_ is None and display.active_line_ is None
    assert display.figure_ is display.ax_.figure


def test_evidence_displays_follow_their_options(plane):
    model = make_pipeline(StandardScaler(), rvc()).fit(*plane)
    _, ax = plt.subplots()
    display = EvidenceDisplay.from_estimator(model, active=True, ax=ax, color="green")
    assert display.ax_ is ax
    assert display.line_.get_color() == "green"
    assert_array_equal(display.active_line_.get_ydata(), model[-1].report_["active"])
    assert display.active_line_.axes is display.active_ax_ is not ax
    assert texts(display.active_ax_.get_legend()) == ["log evidence", "basis functions"]
    assert display.plot().active_ax_ is None


def test_alpha_displays_draw_sorted_precisions(sinc):
    regressor = rvr(gamma=0.1, fit_intercept=False).fit(*sinc)
    display = AlphaDisplay.from_estimator(regressor)
    rank, alpha = display.line_.get_data()
    assert_array_equal(alpha, np.log10(np.sort(regressor.alpha_)))
    assert_array_equal(rank, np.arange(1, len(alpha) + 1))
    assert display.intercept_ is None
    assert display.figure_ is display.ax_.figure


def test_alpha_with_intercept(sinc):
    X, t = sinc
    model = make_pipeline(StandardScaler(), rvr()).fit(X, t + 10.0)
    assert np.isfinite(model[-1].intercept_alpha_)
    _, ax = plt.subplots()
    display = AlphaDisplay.from_estimator(model, ax=ax, markersize=3)
    assert display.ax_ is ax
    assert display.line_.get_markersize() == 3
    everything = np.hstack([display.line_.get_data(), display.intercept_.get_data()])
    everything = everything[:, everything[0].argsort()]
    assert_array_equal(everything[0], np.arange(1, everything.shape[1] + 1))
    assert np.all(np.diff(everything[1]) >= 0)
    assert display.intercept_.get_ydata() == np.log10(model[-1].intercept_alpha_)


def test_given_landmarks_are_no_rows_of_the_table(sinc, tmp_path):
    X, t = sinc
    model = rvr(gamma=0.1, landmarks=np.linspace(-10.0, 10.0, 120)[:, np.newaxis]).fit(X, t)
    assert RegressionDisplay.from_estimator(model, X, t).circles_ is None
    # A file does not tell them from rows: some have numbers that no row has.
    assert np.any(model.relevance_ >= len(X))
    model.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"rows of X are not those of training.*mark_relevance=False"):
        RegressionDisplay.from_estimator(load(tmp_path / "model.json"), X, t)


def test_relevance_of_features(plane):
    X, kind = plane
    frame = pd.DataFrame(X, columns=["left", "right"])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), rvc(gamma=[0.1, 0.4])).fit(frame, kind)
    display = FeatureRelevanceDisplay.from_estimator(model, color="black")
    assert_allclose(display.relevance, [0.2, 0.8], rtol=1e-9)
    assert_allclose([bar.get_width() for bar in display.bars_], [0.2, 0.8], rtol=1e-9)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["left", "right"]
    assert display.bars_[0].get_facecolor() == (0.0, 0.0, 0.0, 1.0)
    plain = rvc(gamma=[0.1, 0.4]).fit(X, kind)
    assert FeatureRelevanceDisplay.from_estimator(plain).names == ["0", "1"]
    assert FeatureRelevanceDisplay.from_estimator(plain, names=["a", "b"]).names == ["a", "b"]
    with pytest.raises(ValueError, match="names has 1 entries, but there are 2 features"):
        FeatureRelevanceDisplay.from_estimator(plain, names=["a"])
    with pytest.raises(ValueError, match="FeatureRelevanceDisplay needs one gamma per feature"):
        FeatureRelevanceDisplay.from_estimator(rvc().fit(X, kind))


def test_moved_centres_are_not_marked(sinc):
    X, t = sinc
    model = rvr(gamma=0.1, dictionary=6, centres="learned").fit(X, t)
    assert model.report_["centre_search"]["kept"]
    assert RegressionDisplay.from_estimator(model, X, t).circles_ is None


def test_no_relevance_vectors():
    X = np.arange(10.0)[:, np.newaxis]
    noise = np.random.default_rng(3).standard_normal(10)
    model = rvr(fit_intercept=False, noise_variance=100.0).fit(X, noise)
    assert len(model.relevance_) == 0
    RegressionDisplay.from_estimator(model, X, noise).figure_.canvas.draw()
    AlphaDisplay.from_estimator(model).figure_.canvas.draw()


def test_a_loaded_model(tmp_path, sinc, regressor):
    path = tmp_path / "model.json"
    regressor.save(path)
    model = load(path)
    display = RegressionDisplay.from_estimator(model, *sinc)
    assert_array_equal(display.line_.get_ydata(), regressor.predict(display.grid[:, np.newaxis]))
    assert_array_equal(AlphaDisplay.from_estimator(model).alpha, regressor.alpha_)
    with pytest.raises(ValueError, match="no trace of the log evidence, as in a model that was loaded"):
        EvidenceDisplay.from_estimator(model)


def test_rows_that_are_not_those_of_training(sinc, regressor):
    X, t = sinc
    with pytest.raises(ValueError, match=r"X has 40 rows, but the estimator was fitted to 80.*mark_relevance=False"):
        RegressionDisplay.from_estimator(regressor, X[:40], t[:40])
    with pytest.raises(ValueError, match=r"rows of X are not those of training.*mark_relevance=False"):
        RegressionDisplay.from_estimator(regressor, X[::-1], t[::-1])
    assert RegressionDisplay.from_estimator(regressor, X[:40], t[:40], mark_relevance=False).circles_ is None


def test_number_of_features(sinc, plane, regressor, classifier):
    X = np.ones((80, 3))
    with pytest.raises(
        ValueError, match="RegressionDisplay draws 1 feature, but X has 3: PredictionIntervalDisplay draws"
    ):
        RegressionDisplay.from_estimator(regressor, X, sinc[1])
    with pytest.raises(ValueError, match="DecisionDisplay draws 2 features, but X has 1: ReliabilityDisplay draws"):
        DecisionDisplay.from_estimator(classifier, plane[0][:, :1], plane[1])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        RegressionDisplay.from_estimator(regressor, sinc[0][:, 0], sinc[1])


def test_targets_that_do_not_belong_to_the_rows(sinc, plane, regressor, classifier):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RegressionDisplay.from_estimator(regressor, sinc[0], sinc[1][:5])
    with pytest.raises(ValueError, match=r"y has the class .*'perhaps'.*\['no', 'yes'\]"):
        DecisionDisplay.from_estimator(classifier, plane[0], np.where(plane[1] == "no", "perhaps", "yes"))


def test_displays_reject_other_estimators(sinc, plane, regressor, classifier):
    with pytest.raises(ValueError, match=r"RegressionDisplay shows a fitted RVR, .* got RVC"):
        RegressionDisplay.from_estimator(classifier, *sinc)
    with pytest.raises(ValueError, match=r"DecisionDisplay shows a fitted RVC, .* got RVR"):
        DecisionDisplay.from_estimator(make_pipeline(StandardScaler(), regressor), *plane)
    with pytest.raises(ValueError, match=r"EvidenceDisplay shows a fitted RVR or RVC, .* got LogisticRegression"):
        EvidenceDisplay.from_estimator(LogisticRegression())
    with pytest.raises(ValueError, match=r"AlphaDisplay shows a fitted RVR or RVC, .* got StandardScaler"):
        AlphaDisplay.from_estimator(make_pipeline(rvr(), StandardScaler()))


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_reject_estimators_before_a_fit(display, sinc, plane):
    model, data = (rvc(), plane) if display in (DecisionDisplay, ReliabilityDisplay) else (rvr(), sinc)
    data = () if display in (AlphaDisplay, EvidenceDisplay, FeatureRelevanceDisplay) else data
    for estimator in [model, make_pipeline(StandardScaler(), model)]:
        with pytest.raises(NotFittedError):
            display.from_estimator(estimator, *data)


def test_more_than_two_classes(plane):
    X, y = plane
    kinds = np.where(X[:, 0] > np.median(X[:, 0]), "far", y)
    model = rvc().fit(X, kinds)
    with pytest.raises(ValueError, match="DecisionDisplay shows two classes: the estimator has 3"):
        DecisionDisplay.from_estimator(model, X, kinds)
    # One model of all classes is drawn as any; several are not one.
    assert len(EvidenceDisplay.from_estimator(model).line_.get_xdata()) == model.n_iter_
    assert len(AlphaDisplay.from_estimator(model).line_.get_xdata()) == len(model.relevance_)
    pairs = rvc(multi_class="one_vs_one").fit(X, kinds)
    for display in (EvidenceDisplay, AlphaDisplay):
        with pytest.raises(ValueError, match=f"{display.__name__} shows one model: with multi_class='one_vs_one'"):
            display.from_estimator(pairs)


def test_matplotlib_is_optional(monkeypatch, regressor):
    code = "import sys, relvec.plotting; assert not any(name.startswith('matplotlib') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "relvec\[plot\]"'):
        AlphaDisplay.from_estimator(regressor)


def test_reliability_counts_right_predictions(plane, classifier):
    X, y = plane
    display = ReliabilityDisplay.from_estimator(classifier, X, y, bins=10)
    probability = classifier.predict_proba(X)
    top, right = probability.max(axis=1), classifier.predict(X) == y
    edges = np.linspace(0.0, 1.0, 11)
    inside = [(top > low) & (top <= high) for low, high in pairwise(edges)]
    kept = [rows for rows in inside if rows.any()]
    assert_array_equal(display.rows, [rows.sum() for rows in kept])
    assert_allclose(display.probability, [top[rows].mean() for rows in kept])
    assert_allclose(display.right, [right[rows].mean() for rows in kept])
    gaps = [abs(top[rows].mean() - right[rows].mean()) * rows.sum() for rows in kept]
    assert display.calibration_error == pytest.approx(sum(gaps) / len(y))
    assert_array_equal(display.line_.get_xydata(), np.column_stack([display.probability, display.right]))
    assert texts(display.ax_.get_legend()) == [f"RVC, ECE {100 * display.calibration_error:.1f} %"]
    assert display.figure_ is display.ax_.figure


def test_reliability_displays_follow_their_options(plane, classifier):
    X, y = plane
    moderated = ReliabilityDisplay.from_estimator(classifier, X, y)
    plug_in = ReliabilityDisplay.from_estimator(
        classifier, X, y, moderated=False, name="plug-in", ax=moderated.ax_, color="red", lw=3
    )
    assert plug_in.ax_ is moderated.ax_ and plug_in.line_.get_color() == "red" and plug_in.line_.get_linewidth() == 3
    assert plug_in.probability[-1] > moderated.probability[-1]
    shifted = ReliabilityDisplay.from_estimator(classifier, X, y, prior={"yes": 0.99, "no": 0.01})
    assert shifted.calibration_error > moderated.calibration_error
    # Any number of classes, any classifier, a Pipeline, and predictions made elsewhere.
    three = np.where(X[:, 0] > 1.5, "maybe", y)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, three)
    by_model = ReliabilityDisplay.from_estimator(model, X, three)
    by_hand = ReliabilityDisplay.from_predictions(three, model.predict_proba(X))
    assert by_model.name == "LogisticRegression" and by_hand.name == "predictions"
    assert by_model.calibration_error == by_hand.calibration_error
    sure = ReliabilityDisplay.from_predictions([0, 0, 1], [[1, 0], [1, 0], [1, 0]])
    assert (sure.rows.tolist(), sure.calibration_error) == ([3], pytest.approx(1 / 3))


def test_reliability_displays_reject_wrong_probabilities(plane, classifier):
    X, y = plane
    with pytest.raises(ValueError, match="SVC has no predict_proba"):
        ReliabilityDisplay.from_estimator(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="2 columns, but there are 3 classes"):
        ReliabilityDisplay.from_predictions([0, 1, 2], np.full((3, 2), 0.5))
    with pytest.raises(ValueError, match=r"probability\[0\] = \[0.5, 0.6\]: expected numbers"):
        ReliabilityDisplay.from_predictions([0, 1], [[0.5, 0.6], [0.5, 0.5]])
    with pytest.raises(ValueError, match="bins"):
        ReliabilityDisplay.from_estimator(classifier, X, y, bins=0)
    with pytest.raises(ValueError, match="inconsistent"):
        ReliabilityDisplay.from_estimator(classifier, X, y[:-1])


@pytest.fixture(scope="module")
def held_out():
    X, y = surface(240)
    return make_pipeline(StandardScaler(), RVR()).fit(X[::2], y[::2]), X[1::2], y[1::2]


def bars(display):
    return np.array(display.errors_lines_.get_segments())


def test_intervals_against_observed_values(held_out):
    model, X, y = held_out
    display = PredictionIntervalDisplay.from_estimator(model, X, y, level=0.5)
    assert isinstance(display, PredictionErrorDisplay) and display.figure_ is display.ax_.figure
    mean = model.predict(X)
    lower, upper = model[-1].predict_interval(model[0].transform(X), 0.5)
    assert_array_equal(display.scatter_.get_offsets(), np.column_stack([mean, y]))
    assert_array_equal(bars(display), np.stack([np.column_stack([lower, y]), np.column_stack([upper, y])], axis=1))
    inside = (lower <= y) & (y <= upper)
    assert 0.3 < display.coverage < 0.7 and display.coverage == inside.mean()
    # The bar of a row crosses the line if the row is inside; its colour says so.
    colors = display.scatter_.get_facecolors()
    assert len(np.unique(colors, axis=0)) == 2 and len(np.unique(colors[inside], axis=0)) == 1
    assert texts(display.ax_.get_legend()) == [
        f"inside the 50 % interval: {inside.sum()} of 120 rows ({100 * inside.mean():.0f} %)",
        f"outside: {(~inside).sum()} of 120 rows ({100 * (~inside).mean():.0f} %)",
    ]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Predicted values", "Actual values")
    display.figure_.canvas.draw()


def test_intervals_of_residuals(held_out):
    model, X, y = held_out
    _, ax = plt.subplots()
    display = PredictionIntervalDisplay.from_estimator(model, X, y, kind="residual_vs_predicted", ax=ax)
    assert display.ax_ is ax and "Residuals" in ax.get_ylabel()
    assert_array_equal(display.scatter_.get_offsets()[:, 1], y - display.y_pred)
    low, high = bars(display)[:, :, 1].T
    assert_array_equal((low <= 0.0) & (high >= 0.0), (display.lower <= y) & (y <= display.upper))
    assert_allclose((low + high) / 2, y - display.y_pred, atol=1e-12)
    again = display.plot(kind="actual_vs_predicted", scatter_kwargs={"c": "k"}, errors_kwargs={"linewidths": 3.0})
    assert again is display and display.ax_ is not ax and display.errors_lines_.get_linewidths() == [3.0]
    assert display.scatter_.get_facecolors().tolist() == [[0.0, 0.0, 0.0, 1.0]]


def test_intervals_of_a_sample_of_the_rows(held_out):
    model, X, y = held_out
    display = PredictionIntervalDisplay.from_estimator(model, X, y, subsample=20, random_state=3)
    drawn = display.scatter_.get_offsets()
    assert len(drawn) == len(bars(display)) == 20 and len(np.unique(drawn, axis=0)) == 20
    assert display.coverage == PredictionIntervalDisplay.from_estimator(model, X, y, subsample=None).coverage
    assert_array_equal(display.plot(subsample=20, random_state=3).scatter_.get_offsets(), drawn)
    assert not np.array_equal(display.plot(subsample=20).scatter_.get_offsets(), drawn)


def test_intervals_of_counts_and_of_other_regressors(held_out):
    _, X, y = held_out
    counts = np.random.default_rng(0).poisson(np.exp(y / 2.0))
    display = PredictionIntervalDisplay.from_estimator(rvr(likelihood="poisson", gamma=0.5).fit(X, counts), X, counts)
    assert np.all(display.lower == np.floor(display.lower)) and display.coverage > 0.9
    for model in (GaussianProcessRegressor(alpha=0.01), make_pipeline(StandardScaler(), BayesianRidge())):
        own = PredictionIntervalDisplay.from_estimator(model.fit(X, y), X, y)
        mean, std = model.predict(X, return_std=True)
        assert_allclose(own.upper, mean + 1.959964 * std, atol=1e-6)
        assert_allclose(own.lower, mean - 1.959964 * std, atol=1e-6)


def test_intervals_from_predictions(held_out):
    model, X, y = held_out
    display = PredictionIntervalDisplay.from_predictions(
        [1.0, 2.0, 3.0], [1, 2, 4], [0, 1, 3.5], [2, 3, 4.5], level=0.9
    )
    assert display.coverage == pytest.approx(2 / 3) and display.level == 0.9
    with pytest.raises(ValueError, match=r"lower\[1\] = 4.0 and upper\[1\] = 3.0: expected lower <= upper"):
        PredictionIntervalDisplay.from_predictions([1.0, 2.0], [1, 2], [0, 4], [2, 3])
    with pytest.raises(ValueError, match="inconsistent"):
        PredictionIntervalDisplay.from_predictions([1.0, 2.0], [1, 2], [0], [2, 3])
    with pytest.raises(ValueError, match=r"level = 1.0: expected a probability"):
        PredictionIntervalDisplay.from_estimator(model, X, y, level=1.0)
    with pytest.raises(ValueError, match=r"kind = 'both': expected one of 'actual_vs_predicted'"):
        PredictionIntervalDisplay.from_estimator(model, X, y, kind="both")
    with pytest.raises(ValueError, match="subsample = 0: expected a whole number"):
        PredictionIntervalDisplay.from_estimator(model, X, y, subsample=0)
    with pytest.raises(ValueError, match=r"SVR has neither predict_interval .*PredictionErrorDisplay draws"):
        PredictionIntervalDisplay.from_estimator(SVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"this one has 2: take its output\(k\)"):
        PredictionIntervalDisplay.from_estimator(RVR().fit(X, np.column_stack([y, -y])), X, y)
