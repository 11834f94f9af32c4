"""The models of this folder, which every later version must read with the same predictions.

They were made once, by commit 0d1570f, and are not made again: a change of the model file adds files to another
folder. Usage: python make.py FOLDER RELVEC, where RELVEC is the command.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import relvec
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR, Statistics

N = 24
rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (N, 2))
T = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(N)
BOTH = np.column_stack([T, X[:, 0] ** 2 + 0.2 * rng.standard_normal(N)])
COUNTS = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0])).astype(float)
TWO = np.where(X[:, 0] + 0.3 * rng.standard_normal(N) > 0.0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.2 * rng.standard_normal(N), [-0.7, 0.7])]
NEW = np.round(rng.uniform(-2.5, 2.5, (5, 2)), 3)
KERNELS = {
    "rbf": {"gamma": [0.8, 0.3]},
    "laplacian": {"gamma": 0.5},
    "matern32": {"gamma": 0.5},
    "matern52": {"gamma": [0.8, 0.3]},
    "rational_quadratic": {"gamma": 0.5, "shape": 1.5},
    "linear": {},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 0.5},
    "sigmoid": {"gamma": 0.2, "coef0": 0.1},
    "linear_spline": {},
}
# Kernel matrices that the caller computes.
KERNEL, NEW_KERNEL = (np.exp(-0.5 * ((rows[:, np.newaxis] - X) ** 2).sum(axis=2)) for rows in (X, NEW))
STATISTICS = Statistics(centres=X[:8], gamma=0.5).update(X, T)


def fitted():
    """Every kind of model by its name."""
    for kernel, own in KERNELS.items():
        yield f"rvr_{kernel}", RVR(kernel=kernel, **own).fit(X, T)
    for scheme in ["mackay", "em", "variational"]:
        yield f"rvr_{scheme}", RVR(gamma=0.5, inference=scheme, tol=0.01).fit(X, T)
    yield "rvr_without_intercept", RVR(gamma=0.5, fit_intercept=False).fit(X, T)
    yield "rvr_fixed_noise", RVR(gamma=0.5, noise_variance=0.02).fit(X, T)
    yield "rvr_known_noise", RVR(gamma=0.5).fit(X, T, noise_variance=np.linspace(0.01, 0.05, N))
    yield "rvr_healed", RVR(gamma=0.5, variance="healed", calibrate=True).fit(X, T)
    yield "rvr_outputs", RVR(gamma=0.5).fit(X, BOTH)
    yield "rvr_outputs_healed", RVR(gamma=0.5, variance="healed").fit(X, BOTH)
    yield "rvr_learnt", RVR(gamma="evidence-ard", centres="learned", dictionary=20).fit(X, T)
    yield "rvr_statistics", STATISTICS.fit()
    yield "rvr_kept_statistics", RVR(gamma=0.5, dictionary=8, keep_statistics=True).fit(X, T)
    yield "rvr_student_t", RVR(gamma=0.5, likelihood="student_t").fit(X, T)
    yield "rvr_poisson", RVR(gamma=0.5, likelihood="poisson").fit(X, COUNTS)
    yield "rvr_empty", RVR(gamma=0.5, sparsity=1000.0).fit(X, T)
    yield "rvr_given", RVR(basis="given").fit(X, T)
    yield "rvr_precomputed", RVR(kernel="precomputed").fit(KERNEL, T)
    yield "rvc_two", RVC(gamma=0.5).fit(X, TWO)
    yield "rvc_averaged", RVC(gamma=0.5, posterior="averaged").fit(X, TWO)
    yield "rvc_variational", RVC(gamma=0.5, inference="variational").fit(X, TWO)
    yield "rvc_numbers", RVC(gamma=0.5).fit(X, np.where(TWO == "yes", 7, -1))
    yield "rvc_joint", RVC(gamma=0.5).fit(X, THREE)
    yield "rvc_laplace", RVC(gamma=0.5, posterior="laplace").fit(X, THREE)
    yield "rvc_class_precisions", RVC(gamma=0.5, class_precisions="per_class").fit(X, THREE)
    for way in ["one_vs_rest", "one_vs_one"]:
        yield f"rvc_{way}", RVC(gamma=0.5, multi_class=way).fit(X, THREE)
        yield f"svc_{way}", SVC(gamma=0.5, multi_class=way, probability=True).fit(X, THREE)
    yield "svc_two", SVC(gamma=0.5, C=10.0).fit(X, TWO)
    yield "nu_svc_probability", NuSVC(gamma=0.5, nu=0.3, probability=True).fit(X, TWO)
    yield "svr", SVR(gamma=0.5, C=10.0).fit(X, T)
    yield "nu_svr", NuSVR(gamma=0.5, C=10.0).fit(X, T)


def predictions(model, rows):
    """What a model says of rows, by the names of the methods."""
    if isinstance(model, RVR):
        mean, std = model.predict(rows, return_std=True)
        return {"mean": mean.tolist(), "std": std.tolist()}
    found = {"prediction": model.predict(rows).tolist()}
    if hasattr(model, "decision_function"):
        found["decision"] = model.decision_function(rows).tolist()
    if isinstance(model, RVC):
        found["plug_in"] = model.predict_proba(rows, moderated=False).tolist()
    if hasattr(model, "predict_proba"):
        found["probability"] = model.predict_proba(rows).tolist()
    return found


def main(folder, command):
    """Write the models and what they predict."""
    folder = Path(folder)
    expected = {"rows": NEW.tolist(), "kernel_rows": NEW_KERNEL.tolist()}
    pickles = {"statistics": STATISTICS}
    for name, model in fitted():
        model.save(folder / f"{name}.json")
        expected[name] = predictions(model, NEW_KERNEL if name == "rvr_precomputed" else NEW)
        pickles[name] = model
    # Standardised by the command, which keeps the scaling in the model.
    table = np.column_stack([X * [1.0, 1e3] + [0.0, 5e4], T])
    np.savetxt("table.csv", table, delimiter=",", header="u,v,y", comments="")
    subprocess.run([command, "fit", "table.csv", "--target", "y", "-o", folder / "command_scaled.json"], check=True)
    scaled = relvec.load(folder / "command_scaled.json")
    expected["command_scaled"] = predictions(scaled, NEW)
    (folder / "statistics.bin").write_bytes(STATISTICS.to_bytes())
    (folder / "models.pickle").write_bytes(pickle.dumps(pickles, protocol=4))
    (folder / "predictions.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
