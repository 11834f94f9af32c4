"""Rows of a Spark data frame: one task for each partition, with the lower branches of the tree in tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.ml.functions import vector_to_array
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import HasLabelCol, HasPredictionCol, HasWeightCol
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, NumericType

from . import _partitions

# Answers that one task merges: a power of 2, so that they form a branch of `_partitions.tree`. After two steps the
# driver receives one answer for 1,024 partitions. Twice as many double the memory of a task and quarter the answers.
GROUP = 32
SCHEMA = "part int, state binary, error string"


class Frame(_partitions.Partitions):
    """Partitions of a data frame, in the order of Spark."""

    def __init__(self, table: Any, names: list[str] | None, label: str) -> None:
        """`table` has the columns x (an array), y, and those of `_partitions.FURTHER` that are given."""
        self.table, self.feature_names, self.target_names = table, names, [label]
        first = (len(names),) if names else table.select(F.size("x")).first()
        self.n_features = 0 if first is None else first[0]

    def each(self, visit: _partitions.Visit, merge: _partitions.Merge) -> bytes:
        """Call `visit` in one task for each partition, and merge the lower branches of the tree in tasks.

        The error of a cell is returned as a value, since Spark would run a task that raises it four times.
        """
        features = self.n_features

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            part = TaskContext.get().partitionId()
            try:
                yield _row(part, visit(part, *_arrays(part, list(batches), features)), None)
            except ValueError as error:
                yield _row(part, None, str(error))

        def join(states: pa.Table) -> pa.Table:
            own = states.sort_by("part").to_pydict()
            wrong = next(filter(None, own["error"]), None)
            merged = _partitions.tree(own["state"], merge) if wrong is None else None
            return pa.Table.from_batches([_row(own["part"][0] // GROUP, merged, wrong)])

        states = self.table.mapInArrow(run, SCHEMA)
        for _ in range(2):
            states = states.groupBy(F.floor(F.col("part") / GROUP)).applyInArrow(join, SCHEMA)
        found = sorted(states.collect())
        for _, _, wrong in found:
            if wrong is not None:
                raise ValueError(wrong)
        return _partitions.tree([bytes(state) for _, state, _ in found], merge)


class Columns(HasLabelCol, HasWeightCol, HasPredictionCol):
    """Params that name the columns."""

    featuresCol = Param(Params._dummy(), "featuresCol", "column of vectors or arrays, or a list of numeric columns")

    def _features(self, frame: Any) -> Any:
        """Return the features as one column of arrays."""
        given = self.getOrDefault(self.featuresCol)
        if isinstance(given, str):
            array = isinstance(frame.schema[given].dataType, ArrayType)
            return column(given).cast("array<double>") if array else vector_to_array(column(given))
        for name in given:
            if not isinstance(kind := frame.schema[name].dataType, (NumericType, BooleanType)):
                raise TypeError(f"the feature {name} is of the type {kind.simpleString()}: expected numbers")
        return F.array(*[column(name).cast("double") for name in given])

    def _rows(self, frame: Any, real: bool) -> Frame:
        """Return the rows of a frame for a fit; `real`: whether the labels are numbers."""
        named = zip(_partitions.FURTHER, ("weightCol", "noiseVarianceCol", "exposureCol"), strict=True)
        given = {own: self.getOrDefault(name) for own, name in named if self.hasParam(name) and self.isDefined(name)}
        further = [column(name).cast("double").alias(own) for own, name in given.items()]
        label = column(self.getLabelCol())
        label = label.cast("double") if real else label
        names = self.getOrDefault("featuresCol")
        table = frame.select(self._features(frame).alias("x"), label.alias("y"), *further)
        return Frame(table, None if isinstance(names, str) else list(names), self.getLabelCol())


def _row(part: int, state: bytes | None, error: str | None) -> pa.RecordBatch:
    columns = [pa.array([part], pa.int32()), pa.array([state], pa.binary()), pa.array([error], pa.string())]
    return pa.RecordBatch.from_arrays(columns, ["part", "state", "error"])


def _arrays(part: int, batches: list[pa.RecordBatch], features: int) -> tuple[Any, ...]:
    """Return features [N, D], labels and further data of a partition; without rows there may be no batch."""
    if not batches:
        return np.empty((0, features)), np.empty(0)
    table = pa.Table.from_batches(batches)
    sizes = table["x"].combine_chunks().value_lengths().fill_null(0).to_numpy()
    for row in np.flatnonzero(sizes != features):
        raise ValueError(f"partition {part}: row {row} has {sizes[row]} features, and the first row has {features}")
    x = table["x"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, features)
    further = {name: table[name].to_numpy() for name in _partitions.FURTHER if name in table.column_names}
    return x, table["y"].to_numpy(), *_partitions.in_order(further)


def column(name: str) -> Any:
    """Return a column by its name, which may contain dots."""
    return F.col("`" + name.replace("`", "``") + "`")
