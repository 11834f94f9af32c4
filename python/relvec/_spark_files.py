"""Folders of fitted models on Spark: parameters, and a model file that `relvec.load` reads."""

from __future__ import annotations

from typing import Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

from . import _files


class Writer(MLWriter):
    """Writes the parameters as Spark does, and the model as a file of this package."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        """Write the folder."""
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession)
        self.sparkSession.sparkContext.parallelize([self.model._local._text()], 1).saveAsTextFile(f"{path}/model")


class Reader(MLReader):
    """Reads folders written by `Writer`."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        """Read the folder."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        text = "\n".join(self.sparkSession.sparkContext.textFile(f"{path}/model").collect())
        model = self.cls(_files.read(text.encode(), path))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
