"""Rows in the blocks of a data set of Ray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import ray

from . import _partitions


class Blocks(_partitions.Partitions):
    """Blocks of a data set, in its order."""

    def __init__(self, dataset: Any, features: list[str], label: str, further: dict[str, str]) -> None:
        """`further` has the columns of further data by their names in `_partitions.FURTHER`."""
        self.n_features, self.feature_names, self.target_names = len(features), features, [label]
        self.further = further
        options = dataset.context.execution_options
        earlier, options.preserve_order = options.preserve_order, True
        try:
            self.blocks = dataset.select_columns([*features, label, *further.values()]).to_pandas_refs()
        finally:
            options.preserve_order = earlier

    def each(self, visit: _partitions.Visit, merge: _partitions.Merge) -> bytes:
        """Call `visit` in one task for each block, and merge in a tree of tasks."""
        run, join = ray.remote(num_cpus=1)(_visit), ray.remote(num_cpus=1)(lambda a, b: merge(a, b))
        question = ray.put(visit)
        names = (self.feature_names, self.target_names[0], self.further)
        parts = [run.remote(question, k, *names, one) for k, one in enumerate(self.blocks)]
        try:
            merged: bytes = ray.get(_partitions.tree(parts, join.remote))
        except ray.exceptions.RayTaskError as error:
            # The error is raised without the stacks of the workers.
            raise error.cause from None
        return merged


def _visit(
    visit: _partitions.Visit, part: int, features: list[str], label: str, further: dict[str, str], block: pd.DataFrame
) -> bytes:
    if len(block) == 0:
        return visit(part, np.empty((0, len(features))), np.empty(0))
    rest = {own: block[name].to_numpy() for own, name in further.items()}
    return visit(part, block[features].to_numpy(), block[label].to_numpy(), *_partitions.in_order(rest))
