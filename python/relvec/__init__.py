"""Sparse kernel machines: relevance vector machines and support vector machines."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._core import __version__

if TYPE_CHECKING:
    from . import distributed, presets
    from ._compare import compare
    from ._encoder import TableEncoder
    from ._files import load
    from ._import import from_libsvm, from_sklearn
    from ._interpolation import InterpolationWarning
    from ._learned_kernel import LearnedKernel, learn_kernel
    from ._statistics import Statistics
    from ._summary import ModelSummary
    from ._survey import Survey, landmarks
    from ._svmlight import read_svmlight
    from .rvc import RVC, RelevanceVectorClassifier
    from .rvr import RVR, RelevanceVectorRegressor
    from .svm import SVC, SVR, NuSVC, NuSVR

__all__ = [
    "InterpolationWarning",
    "LearnedKernel",
    "ModelSummary",
    "NuSVC",
    "NuSVR",
    "RVC",
    "RVR",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "SVC",
    "SVR",
    "Statistics",
    "Survey",
    "TableEncoder",
    "__version__",
    "compare",
    "distributed",
    "from_libsvm",
    "from_sklearn",
    "kernels",
    "landmarks",
    "learn_kernel",
    "load",
    "presets",
    "read_svmlight",
]
_MODULES = {
    "InterpolationWarning": "._interpolation",
    "ModelSummary": "._summary",
    "Statistics": "._statistics",
    "TableEncoder": "._encoder",
    "compare": "._compare",
    "load": "._files",
    "read_svmlight": "._svmlight",
    **dict.fromkeys(["from_libsvm", "from_sklearn"], "._import"),
    **dict.fromkeys(["LearnedKernel", "learn_kernel"], "._learned_kernel"),
    **dict.fromkeys(["Survey", "landmarks"], "._survey"),
    **dict.fromkeys(["RVC", "RelevanceVectorClassifier"], ".rvc"),
    **dict.fromkeys(["RVR", "RelevanceVectorRegressor"], ".rvr"),
    **dict.fromkeys(["NuSVC", "NuSVR", "SVC", "SVR"], ".svm"),
}


def __getattr__(name: str) -> Any:
    # The command needs no scikit-learn and starts a second faster without it.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    if name in ("distributed", "kernels", "presets"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
