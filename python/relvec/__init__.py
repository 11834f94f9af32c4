"""Sparse kernel machines: relevance vector machines for regression and classification."""

from ._core import __version__
from ._files import load
from .rvm import RVC, RVR, RelevanceVectorClassifier, RelevanceVectorRegressor

__all__ = ["RVC", "RVR", "RelevanceVectorClassifier", "RelevanceVectorRegressor", "__version__", "load"]
