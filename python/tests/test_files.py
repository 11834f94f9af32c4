"""Model files and pickles: everything comes back, and what is no model file is named."""

import copy
import datetime
import json
import math
import os
import pickle
import re
import stat
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from relvec import RVC, RVR, SVC, load
from relvec._table import KERNELS
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from support import PARAMETERS, papers, rvc, rvr, sinc, surface, two_classes

S, T = surface()
C, Y = two_classes()
NEW = surface(30, seed=4)[0]

# Not saved: what belongs to the fit and not to the model.
OF_THE_FIT = {"report_"}


def outputs(model, rows):
    if isinstance(model, RVR):
        return np.array(model.predict(rows, return_std=True, return_parts=True))
    return np.array([model.predict_proba(rows), model.predict_log_proba(rows), model.predict_proba(rows, False)])


def check_attributes(again, model, but=frozenset()):
    """Every fitted attribute comes back, bit for bit and of the same kind."""
    names = [name for name in vars(model) if name.endswith("_") and name not in but]
    assert len(names) >= 10
    for name in [*names, "covariance_", "well_determined_", "weight_precision_"]:
        one, other = getattr(again, name), getattr(model, name)
        assert type(one) is type(other), name
        assert_array_equal(one, other, err_msg=name)
        if isinstance(one, np.ndarray):
            assert one.shape == other.shape, name
            assert one.dtype == other.dtype, name
    extra = {name for name in vars(again) if name.endswith("_")} - set(vars(model))
    assert not extra


def round_trip(model, rows, path, kernel=None):
    model.save(path)
    again = load(path, kernel)
    assert type(again) is type(model)
    assert_array_equal(outputs(again, rows), outputs(model, rows))
    assert_array_equal(again.predict(rows), model.predict(rows))
    check_attributes(again, model, OF_THE_FIT)
    assert again.report_ == {"status": model.report_["status"], "iterations": model.n_iter_}
    # Saved again, the file is the same.
    text = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == text
    # What loading knows of the parameters makes the same kernel in a new fit.
    for name in ("kernel", "gamma", *PARAMETERS, "basis", "_scheme"):
        known = getattr(clone(again), name)
        if model.basis == "kernel" and name in KERNELS.get(model.kernel if isinstance(model.kernel, str) else "", []):
            assert np.all(known == getattr(model, f"{name}_", getattr(model, name))), name
        elif name in ("kernel", "basis", "_scheme") and (model.basis, name) != ("given", "kernel"):
            assert known == getattr(model, name), name
    return again


@pytest.mark.parametrize("kernel", KERNELS)
def test_models_of_every_kernel_are_saved_and_loaded(kernel, tmp_path):
    model = rvr(kernel=kernel, gamma=[0.8, 0.3], **PARAMETERS).fit(S, T)
    round_trip(model, NEW, tmp_path / "model.json")


@pytest.mark.parametrize("inference", ["search", "mackay", "em"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_of_every_scheme_are_saved_and_loaded(inference, fit_intercept, tmp_path):
    own = {"search": {"scheme": inference, "tolerance": 0.01}, "fit_intercept": fit_intercept}
    round_trip(rvr(**own).fit(S, T + 3.0), NEW, tmp_path / "model.json")
    round_trip(rvc(**own).fit(C, Y), NEW, tmp_path / "model.json")


def test_a_noise_variance_that_was_given(tmp_path):
    again = round_trip(rvr(noise_variance=0.02).fit(S, T), NEW, tmp_path / "model.json")
    assert again.noise_variance == 0.02
    assert round_trip(rvr().fit(S, T), NEW, tmp_path / "model.json").noise_variance is None


@pytest.mark.parametrize(
    "names",
    [
        np.array([3, 7]),
        np.array([-1, 1]),
        np.array([-1.0, 1.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["1", "2"]),
        np.array(['a "quoted"\n one', "ß, 類"]),
        np.array(["no", "yes"], dtype=object),
        np.array([2**52, 2**52 + 1]),
        # Beyond what 64-bit floats tell apart.
        np.array([2**60, 2**60 + 1]),
        np.array([0, 1], dtype=np.uint8),
        np.array([-1, 1], dtype=np.int16),
        np.array([7, 9], dtype=">i4"),
        np.array([0, 2**62], dtype=np.uint64),
        np.array([1.0, 3.0], dtype=np.float32),
        np.array([-1.0, 1.0], dtype=np.float16),
        np.array(["no", "yes"], dtype="<U9"),
        np.array(["2020-01-01", "2021-06-30"], dtype="M8[D]"),
        np.array(["2020-01-01T00:00:00.000000001", "2021-06-30"], dtype="M8[ns]"),
        np.array(["2020", "2021"], dtype="M8[Y]"),
        np.array([-3, 4], dtype="m8[h]"),
        np.array([1, 10**18], dtype="m8[ns]"),
    ],
    ids=repr,
)
def test_classes_come_back_as_what_they_were(names, tmp_path):
    model = rvc().fit(C, names[Y])
    file = tmp_path / "model.json"
    model.save(file)
    again = load(file)
    assert again.classes_.dtype == names.dtype
    assert again.classes_.tolist() == names.tolist()
    assert again.predict(C).dtype == names.dtype
    again.save(file)
    assert load(file).classes_.dtype == names.dtype
    assert [type(label) for label in again.classes_.tolist()] == [type(label) for label in names.tolist()]
    assert again.predict(C).tolist() == model.predict(C).tolist()
    assert again.score(C, names[Y]) == model.score(C, names[Y])
    assert_array_equal(again.predict_proba(C), model.predict_proba(C))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        # The first two by scikit-learn.
        (np.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], dtype=object), "[Uu]nknown label type"),
        (np.array([b"no", b"yes"]), "bytes"),
        (np.array([0, 1], dtype=np.longdouble), "classes of type float|of type"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), "NaT"),
        (np.array([0, 2**63], dtype=np.uint64), "9223372036854775808"),
    ],
)
@pytest.mark.parametrize("estimator", [RVC, SVC])
def test_classes_that_a_file_cannot_hold_are_refused_by_name(estimator, names, says):
    if names.dtype.itemsize <= 8 and names.dtype.kind == "f":
        pytest.skip("long double is double here")
    with pytest.raises((TypeError, ValueError), match=says):
        estimator().fit(C, names[Y])


def test_a_class_type_that_does_not_fit_the_classes_is_refused(tmp_path):
    file = tmp_path / "model.json"
    rvc().fit(C, np.array(["2020-01-01", "2021-06-30"], dtype="M8[D]")[Y]).save(file)
    text = file.read_text()
    assert "M8[D]" in text
    for other in ("i8", "M8[Y]", "nonsense", "V3"):
        file.write_text(text.replace("<M8[D]", other))
        with pytest.raises(ValueError, match="class_dtype"):
            load(file)


@pytest.mark.parametrize("frames", [pd, pl])
def test_names_of_features(frames, tmp_path):
    frame = frames.DataFrame({"width": S[:, 0], "height, cm": S[:, 1]})
    model = rvr().fit(frame, T)
    again = round_trip(model, frame, tmp_path / "model.json")
    assert again.feature_names_in_.tolist() == ["width", "height, cm"]
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[["height, cm", "width"]])
    # No names, none come back.
    assert not hasattr(round_trip(rvr().fit(S, T), S, tmp_path / "model.json"), "feature_names_in_")


def test_the_name_of_the_target_is_in_the_file(tmp_path):
    for model in (rvr().fit(S, pd.Series(T, name="height")), rvc().fit(C, pl.Series("height", Y))):
        model.save(tmp_path / "model.json")
        assert json.loads((tmp_path / "model.json").read_text())["model"]["target"] == "height"


def test_gamma_of_one_number(tmp_path):
    for gamma in ("scale", "auto", 0.3):
        again = round_trip(rvr(gamma=gamma).fit(S, T), NEW, tmp_path / "model.json")
        assert isinstance(again.gamma, float)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_kernels_from_outside(cls, tmp_path):
    rows, target = (S, T) if cls is RVR else (C, Y)
    file = tmp_path / "model.json"
    K = rbf_kernel(rows, gamma=0.5)
    again = round_trip(papers(cls, kernel="precomputed").fit(K, target), K, file)
    assert again.__sklearn_tags__().input_tags.pairwise
    assert again.n_features_in_ == len(rows)
    round_trip(papers(cls, basis="given").fit(K, target), K, file)
    model = papers(cls, kernel=rbf_kernel).fit(rows, target)
    round_trip(model, NEW, file, kernel=rbf_kernel)
    with pytest.raises(ValueError, match=re.escape(f"{str(file)!r}: the model was fitted with a kernel function")):
        load(file)


def test_a_model_without_relevance_vectors(tmp_path):
    file = tmp_path / "model.json"
    for own in ({}, {"basis": "given"}, {"fit_intercept": False, "noise_variance": 1e6}):
        model = rvr(**own).fit(S, np.full(60, 2.0))
        assert len(model.relevance_) == 0
        round_trip(model, NEW, file)
    round_trip(rvr(kernel=rbf_kernel).fit(S, np.full(60, 2.0)), NEW, file, kernel=rbf_kernel)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_models_in_extreme_units_are_saved_and_loaded(unit, tmp_path):
    round_trip(rvr().fit(S, T * unit), NEW, tmp_path / "model.json")


def test_a_limit_that_was_reached_is_remembered(tmp_path):
    with pytest.warns(Warning, match="max_iterations"):
        model = rvr(search={"scheme": "mackay", "max_iterations": 1}).fit(S, T)
    assert round_trip(model, NEW, tmp_path / "model.json").report_["status"] == "iteration_limit"


@pytest.mark.parametrize(
    "own",
    [{}, {"kernel": "precomputed"}, {"kernel": rbf_kernel}, {"basis": "given"}],
    ids=["rbf", "precomputed", "called", "given"],
)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_pickles_and_copies(cls, copied, own, tmp_path):
    rows, target = (S, T) if cls is RVR else (C, Y)
    if set(own) and own.get("kernel") is not rbf_kernel:
        rows = rbf_kernel(rows)
    model = papers(cls, **own).fit(rows, target)
    again = copied(model)
    check_attributes(again, model, OF_THE_FIT)
    assert again.get_params() == model.get_params()
    assert_array_equal(outputs(again, rows), outputs(model, rows))
    # A pickle holds the text of the file.
    model.save(tmp_path / "one.json")
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    for name in model.report_:
        assert_array_equal(again.report_[name], model.report_[name])
    # The copy can be fitted again, and the original does not see it.
    before = outputs(model, rows)
    again.fit(rows, target[::-1].copy())
    assert_array_equal(outputs(model, rows), before)


def test_a_pickle_of_what_was_loaded(tmp_path):
    rvr().fit(S, T).save(tmp_path / "model.json")
    model = load(tmp_path / "model.json")
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW))
    assert math.isfinite(model.fit(S, T).log_evidence_)


@pytest.fixture
def saved(tmp_path):
    file = tmp_path / "model.json"
    rvr(gamma=0.5).fit(S, T).save(file)
    return file


def test_names_of_files(saved):
    expected = load(saved).predict(NEW)
    assert_array_equal(load(str(saved)).predict(NEW), expected)

    class Named:
        def __fspath__(self):
            return str(saved)

    assert_array_equal(load(Named()).predict(NEW), expected)
    load(saved).save(Named())
    with pytest.raises(TypeError, match="PathLike"):
        load(saved).save(3.5)


def test_a_name_in_the_current_folder(saved, monkeypatch):
    monkeypatch.chdir(saved.parent)
    load("model.json").save("other.json")
    assert (saved.parent / "other.json").read_bytes() == saved.read_bytes()


def test_saving_replaces_a_file(saved):
    rvr(gamma=2.0).fit(S, T).save(saved)
    assert load(saved).gamma_ == 2.0
    assert [file.name for file in saved.parent.iterdir()] == ["model.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_saving_through_a_link_keeps_the_link(saved):
    link = saved.parent / "link.json"
    link.symlink_to(saved)
    rvr(gamma=2.0).fit(S, T).save(link)
    assert link.is_symlink()
    assert load(saved).gamma_ == 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no umask there")
def test_the_umask_decides_who_may_read(tmp_path):
    model = rvr(gamma=0.5).fit(S, T)
    for umask in (0o022, 0o077):
        before = os.umask(umask)
        try:
            model.save(tmp_path / f"{umask}.json")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{umask}.json").stat().st_mode) == 0o666 & ~umask


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files there")
def test_saving_keeps_permissions_links_and_pipes(saved):
    model = load(saved)
    saved.chmod(0o640)
    dangling = saved.parent / "dangling.json"
    dangling.symlink_to("later.json")
    for path in (saved, dangling):
        model.save(path)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640
    assert dangling.is_symlink()
    assert load(dangling).n_features_in_ == model.n_features_in_
    model.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = saved.parent / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(pipe.read_text)
        model.save(pipe)
    assert text.result() == saved.read_text()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_read_only_files_and_long_names_are_errors(saved):
    model, before = load(saved), saved.read_bytes()
    saved.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        model.save(saved)
    with pytest.raises(OSError, match="too long"):
        model.save(saved.parent / ("n" * 300))
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == ["model.json"]


def test_the_umask_is_left_alone(saved, monkeypatch):
    """Threads would see that of another: it is one per process."""
    monkeypatch.setattr(os, "umask", None)
    load(saved).save(saved)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rvr().fit(S, T).save(tmp_path / "nowhere" / "model.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits there")
def test_a_failed_save_leaves_the_old_file_and_no_part(saved):
    import resource

    before, model = saved.read_bytes(), rvr().fit(S, T)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            model.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == ["model.json"]


def test_a_name_that_is_a_folder(saved):
    with pytest.raises(OSError, match=re.escape(str(saved.parent.name))):
        load(saved).save(saved.parent)
    assert [file.name for file in saved.parent.iterdir()] == ["model.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(saved):
    model = load(saved)
    saved.parent.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            model.save(saved)
    finally:
        saved.parent.chmod(0o755)
    assert [file.name for file in saved.parent.iterdir()] == ["model.json"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        load(tmp_path / "missing.json")


def altered(text, *path, value):
    """The file's text with one value changed."""
    tree = json.loads(text)
    place = tree
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ("cut off", lambda text: ""),
        ("cut off", lambda text: text[: len(text) // 2]),
        ("not JSON", lambda text: "hello"),
        ("not JSON", lambda text: text + "}"),
        ("not a model of relvec", lambda text: "{}"),
        ("not a model of relvec", lambda text: "[1, 2]"),
        ("not a model of relvec", lambda text: altered(text, "format", value="other")),
        ("format version 99; this program reads version 1", lambda text: altered(text, "format_version", value=99)),
        ("the file was altered", lambda text: altered(text, "checksum", value="00000000")),
        ("the file was altered", lambda text: altered(text, "model", "expansion", "intercept", value=1.5)),
        ("the file was altered", lambda text: altered(text, "model", "n_rows", value=7)),
        ("model.*surprise", lambda text: altered(text, "model", "surprise", value=1)),
        (r"model\.alpha", lambda text: altered(text, "model", "alpha", value="many")),
    ],
)
def test_files_that_are_no_models_are_named(saved, match, change):
    saved.write_text(change(saved.read_text()))
    with pytest.raises(ValueError, match=match) as caught:
        load(saved)
    assert str(saved) in str(caught.value)


def test_one_digit_that_changed_is_noticed(saved):
    text = saved.read_text()
    place = text.index('"weights":[') + len('"weights":[') + 5
    digit = str((int(text[place]) + 1) % 10)
    saved.write_text(text[:place] + digit + text[place + 1 :])
    with pytest.raises(ValueError, match="altered"):
        load(saved)


def test_bytes_that_are_no_text(saved):
    saved.write_bytes(b"\x80\x04\x95" + bytes(range(256)))
    with pytest.raises(ValueError, match=re.escape(f"{str(saved)!r} is no model file: byte 0")):
        load(saved)


def test_layout_of_the_file_may_change(saved):
    """The checksum is of the contents: an editor may lay them out anew."""
    expected = load(saved).predict(NEW)
    saved.write_text(json.dumps(json.loads(saved.read_text()), indent=2))
    assert_array_equal(load(saved).predict(NEW), expected)


def test_fitting_what_was_loaded_gives_the_same_model(tmp_path):
    X, t = sinc()
    model = rvr(gamma=0.1).fit(X, t)
    model.save(tmp_path / "model.json")
    # The file does not hold the sparsity.
    again = load(tmp_path / "model.json").set_params(sparsity=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.fit(X, t)
    check_attributes(again, model, OF_THE_FIT)
