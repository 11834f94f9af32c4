"""Data and predictions that exported models are compared with."""

import numpy as np
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR
from support import surface, two_classes

S, T = surface(80)
NEW = surface(50, seed=4)[0]
C, Y = two_classes()
CLASS_ROWS = two_classes(60, seed=3)[0]


def several_classes(n=120, classes=4, seed=0):
    """Rows of overlapping clouds on a circle."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle = 2.0 * np.pi * y / classes
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.45 * rng.standard_normal((n, 2)), y


M, K = several_classes()
M_NEW = several_classes(60, seed=1)[0]


def expected(model, rows):
    """What relvec predicts, by the names of the outputs."""
    if isinstance(model, RVR):
        mean, std = model.predict(rows, return_std=True)
        return {"mean": mean.reshape(len(rows), -1), "std": std.reshape(len(rows), -1)}
    if isinstance(model, (SVR, NuSVR)):
        return {"mean": model.predict(rows)[:, np.newaxis]}
    out = {"label": model.predict(rows)}
    if isinstance(model, (SVC, NuSVC)):
        out["decision"] = model._functions(rows)
    if isinstance(model, RVC) or model.probability:
        out["probabilities"] = model.predict_proba(rows)
    return out


def off(found, wanted):
    """Largest difference, relative to the largest value."""
    assert found.shape == wanted.shape
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def limits(kernel):
    """Single precision has few digits of products and of tanh; polynomials of them fewer."""
    return (1e-12, 2e-7, {"sigmoid": 5e-4, "poly": 2e-4, "linear_spline": 2e-4}.get(kernel, 1e-4))
