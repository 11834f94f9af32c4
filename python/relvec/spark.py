"""Estimators of pyspark.ml: fits and predictions of Spark data frames.

They need the packages that ``pip install 'relvec[spark]'`` installs, Java, and relvec on the executors.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import RVC, RVR, _partitions, distributed

try:
    import pandas as pd
    from pyspark.ml import Estimator, Model
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.param import Param, Params
    from pyspark.ml.param.shared import HasProbabilityCol
    from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable, MLReadable, MLWritable
    from pyspark.sql import functions as F

    from ._spark_files import Reader, Writer
    from ._spark_rows import Columns
except ImportError as _error:
    raise _partitions.needs("spark", _error) from None

__all__ = [f"RelevanceVector{name}" for name in ("Regressor", "Classifier", "RegressionModel", "ClassificationModel")]

# Parameters without meaning here: a task has one thread, and a callback would have to be sent to it.
LEFT_OUT = {"n_jobs", "callback"}


def _as_json(value: Any) -> Any:
    """Convert arrays to lists, which a file of parameters can contain."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


class _Fitted(Columns, Model, MLWritable, MLReadable):
    """A fitted model as a transformer."""

    def __init__(self, local: Any = None) -> None:
        super().__init__()
        self._setDefault(featuresCol="features")
        self._local = local

    def to_local(self) -> Any:
        """Get the model as a `relvec.RVR` or `relvec.RVC`, which does not depend on Spark."""
        return self._local

    def _transform(self, dataset: Any) -> Any:
        """Add the columns of `_made`, which one Python function computes from batches of rows."""
        method, made = self._made()
        options = {"return_std": True} if method == "predict" and len(made) > 1 else {}
        model = _partitions.for_task(self._local, names=False)

        def run(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                if batch.isna().any():
                    raise ValueError("featuresCol contains a null: every row must have features")
                values: list[Any] = _partitions.predicted(model, np.stack(batch), method, **options)
                if method == "predict_proba":
                    values = [model.classes_[np.argmax(values[0], axis=1)], list(values[0])]
                yield pd.DataFrame({f"v{k}": value for k, value in enumerate(values)})

        schema = ", ".join(f"v{k} {kind}" for k, kind in enumerate(made.values()))
        whole = f"{self.uid}_out"
        table = dataset.withColumn(whole, F.pandas_udf(run, schema)(self._features(dataset)))
        for k, (name, kind) in enumerate(made.items()):
            own = F.col(f"{whole}.v{k}")
            table = table.withColumn(name, array_to_vector(own) if kind == "array<double>" else own)
        return table.drop(whole)

    def write(self) -> Any:
        """Get a writer of a folder: the parameters, and in ``model/part-00000`` the JSON for `relvec.load`."""
        return Writer(self)

    @classmethod
    def read(cls) -> Any:
        """Get a reader of folders written by `write`."""
        return Reader(cls)


class RelevanceVectorRegressionModel(_Fitted):
    """Adds a column of predictions, and one of standard deviations of new observations if `stdCol` is set."""

    stdCol = Param(Params._dummy(), "stdCol", "column for the standard deviation of a new observation")

    def _made(self) -> tuple[str, dict[str, str]]:
        std = [self.getOrDefault("stdCol")] if self.isDefined("stdCol") else []
        return "predict", dict.fromkeys([self.getPredictionCol(), *std], "double")


class RelevanceVectorClassificationModel(_Fitted, HasProbabilityCol):
    """Adds a column of classes (numbers as doubles), and one of vectors of their probabilities."""

    def _made(self) -> tuple[str, dict[str, str]]:
        # Evaluators of Spark expect doubles.
        kinds = {"b": "boolean", **dict.fromkeys("iuf", "double")}
        kind = kinds.get(self._local.classes_.dtype.kind, "string")
        return "predict_proba", {self.getPredictionCol(): kind, self.getProbabilityCol(): "array<double>"}


class _Estimator(Columns, Estimator, DefaultParamsReadable, DefaultParamsWritable):
    """An estimator with a Param for each parameter of an estimator of this package."""

    _plain: Any
    _model: Any
    standardize = Param(Params._dummy(), "standardize", "whether features are standardised, see relvec.distributed.fit")
    sample = Param(Params._dummy(), "sample", "most rows of the sample, see relvec.distributed.fit")

    def __init_subclass__(cls) -> None:
        """Add the Params, by the names that the parameters have in Python."""
        cls._own = [name for name in inspect.signature(cls._plain).parameters if name not in LEFT_OUT]
        for name in cls._own:
            text = " ".join(cls._plain._entries[name].text.split())
            setattr(cls, name, Param(Params._dummy(), name, text, typeConverter=_as_json))

    def __init__(self, **params: Any) -> None:
        super().__init__()
        defaults = inspect.signature(self._plain).parameters
        own = {name: defaults[name].default for name in self._own}
        self._setDefault(featuresCol="features", standardize=False, sample=None, **own)
        self._set(**params)

    def _fit(self, dataset: Any) -> Any:
        plain = self._plain(**{name: self.getOrDefault(name) for name in self._own})
        options = {name: self.getOrDefault(name) for name in ("standardize", "sample")}
        rows = self._rows(dataset, real=self._plain is RVR)
        return self._copyValues(self._model(distributed.fit(plain, rows, **options)))


class RelevanceVectorRegressor(_Estimator):
    """`relvec.RVR` as an estimator of pyspark.ml: its parameters, and the names of columns, are Params."""

    _plain, _model = RVR, RelevanceVectorRegressionModel
    stdCol = RelevanceVectorRegressionModel.stdCol
    noiseVarianceCol = Param(Params._dummy(), "noiseVarianceCol", "column of known variances of the noise")
    exposureCol = Param(Params._dummy(), "exposureCol", "column of exposures of counts")


class RelevanceVectorClassifier(_Estimator, HasProbabilityCol):
    """`relvec.RVC` as an estimator of pyspark.ml: its parameters, and the names of columns, are Params."""

    _plain, _model = RVC, RelevanceVectorClassificationModel
