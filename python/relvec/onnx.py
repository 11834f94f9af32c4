"""Converters for skl2onnx, which convert pipelines with estimators of this package to one ONNX graph.

They need the packages onnx and skl2onnx, which this package does not install. After `register` the functions
``to_onnx`` and ``convert_sklearn`` of skl2onnx accept the estimators. For a single estimator use its method `to_onnx`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rvc import RVC
from .rvr import RVR
from .svm import SVC, SVR, NuSVC, NuSVR, _pairs

_REGRESSORS = (RVR, SVR, NuSVR)
_CLASSIFIERS = (RVC, SVC, NuSVC)


def register() -> None:
    """Register the converters of the estimators with skl2onnx.

    Computations on rows in single precision are in double precision, as with ``to_onnx(precision="mixed")``. `RVR` has
    the option ``return_std`` of skl2onnx for the standard deviations. Classifiers have ``zipmap``, ``nocl``,
    ``output_class_labels`` and ``raw_scores``. The raw scores are the values of `decision_function`; for two classes
    there are two columns, the first negated, so that `sklearn.calibration.CalibratedClassifierCV` can be converted.

    Raises
    ------
    ImportError
        Without the packages onnx and skl2onnx.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise ImportError("relvec.onnx needs the packages onnx and skl2onnx: pip install skl2onnx") from None
    for regressor in _REGRESSORS:
        std = {"return_std": [True, False]} if regressor is RVR else None
        name = f"Relvec{regressor.__name__}"
        update_registered_converter(
            regressor, name, _shape_of_regressor, _convert, options=std, parser=_parse_regressor
        )
    yes_or_no = [True, False]
    options = {
        "zipmap": [*yes_or_no, "columns"],
        "nocl": yes_or_no,
        "output_class_labels": yes_or_no,
        "raw_scores": yes_or_no,
    }
    for classifier in _CLASSIFIERS:
        name = f"Relvec{classifier.__name__}"
        update_registered_converter(classifier, name, _shape_of_classifier, _convert, options=options)


def _real(operator: Any) -> Any:
    """Return the type of the outputs: double precision for rows in double precision, otherwise single."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return DoubleTensorType if isinstance(operator.inputs[0].type, DoubleTensorType) else FloatTensorType


def _parse_regressor(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Return the outputs of a regressor: the mean, and the standard deviation if requested."""
    operator = scope.declare_local_operator(f"Relvec{type(model).__name__}", model)
    operator.inputs = inputs
    real = _real(operator)
    operator.outputs.append(scope.declare_local_variable("variable", real()))
    if isinstance(model, RVR) and scope.get_options(model, {"return_std": False}, fail=False).get("return_std"):
        operator.outputs.append(scope.declare_local_variable("std", real()))
    return operator.outputs


def _shape_of_regressor(operator: Any) -> None:
    rows, columns = operator.inputs[0].get_first_dimension(), operator.raw_operator._model.n_outputs
    for output in operator.outputs:
        output.type = _real(operator)([rows, columns])


def _shape_of_classifier(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    rows, classes = operator.inputs[0].get_first_dimension(), operator.raw_operator.classes_
    if classes.dtype.kind not in "biuUO":
        raise ValueError(f"classes of type {classes.dtype}: expected whole numbers or words, which skl2onnx knows")
    label = StringTensorType if classes.dtype.kind in "UO" else Int64TensorType
    operator.outputs[0].type = label([rows])
    operator.outputs[1].type = _real(operator)([rows, len(classes)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of the estimator, with the names of the outputs."""
    import onnx

    estimator = operator.raw_operator
    classifies = isinstance(estimator, _CLASSIFIERS)
    graph = onnx.load_from_string(estimator.to_onnx(std=len(operator.outputs) > 1)).graph
    double, single = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
    nodes = _Nodes(scope, container)
    names = {"X": nodes.cast(operator.inputs[0].full_name, double)}
    for tensor in graph.initializer:
        names[tensor.name] = nodes.constant(onnx.numpy_helper.to_array(tensor))
    for node in graph.node:
        own = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        names[node.output[0]] = nodes.add(node.op_type, [names[name] for name in node.input], **own)
    outputs = [names[output.name] for output in graph.output]
    kind = double if _real(operator).__name__ == "DoubleTensorType" else single
    if classifies:
        by_name = dict(zip((output.name for output in graph.output), outputs, strict=True))
        raw = container.get_options(estimator, {"raw_scores": False}).get("raw_scores")
        if not raw and "probabilities" not in by_name:
            raise ValueError(
                f"{type(estimator).__name__} without probabilities: fit with probability=True, or use raw_scores"
            )
        scores = _scores(nodes, estimator, by_name) if raw else by_name["probabilities"]
        label = by_name["label"]
        if estimator.classes_.dtype.kind in "biu":
            label = nodes.cast(label, onnx.TensorProto.INT64)
        nodes.add("Identity", [label], output=operator.outputs[0].full_name)
        nodes.cast(scores, kind, output=operator.outputs[1].full_name)
        return
    for name, output in zip(outputs, operator.outputs, strict=True):
        nodes.cast(name, kind, output=output.full_name)


def _scores(nodes: _Nodes, estimator: Any, names: dict[str, str]) -> str:
    """Add the values of `decision_function`; two columns for two classes."""
    classes = len(estimator.classes_)
    if isinstance(estimator, RVC):
        logs = nodes.add("Log", [names["probabilities"]])
        # Two classes: the difference to the other class; more classes: the difference to the mean.
        change = np.array([[1.0, -1.0], [-1.0, 1.0]]) if classes == 2 else np.eye(classes) - 1.0 / classes
        return nodes.add("MatMul", [logs, nodes.constant(change)])
    if classes == 2:
        return nodes.add("MatMul", [names["decision"], nodes.constant(np.array([[-1.0, 1.0]]))])
    if estimator.multi_class == "one_vs_rest":
        return names["decision"]
    duels = nodes.add("Gather", [names["decision"], nodes.constant(np.array(_pairs(classes)))], axis=1)
    duels = nodes.add("Neg", [duels])
    if estimator.decision_function_shape == "ovo":
        return duels
    # Number of wins of each class, plus less than a third for their margins.
    pairs = [(first, second) for first in range(classes) for second in range(first + 1, classes)]
    of_first, of_second = np.zeros((len(pairs), classes)), np.zeros((len(pairs), classes))
    for pair, (first, second) in enumerate(pairs):
        of_first[pair, first] = of_second[pair, second] = 1.0
    first_wins = nodes.cast(nodes.add("Less", [duels, nodes.constant(np.array(0.0))]), 11)
    wins = nodes.add("MatMul", [first_wins, nodes.constant(of_second - of_first)])
    wins = nodes.add("Add", [wins, nodes.constant(of_first.sum(axis=0))])
    sums = nodes.add("MatMul", [duels, nodes.constant(of_first - of_second)])
    size = nodes.add("Add", [nodes.add("Abs", [sums]), nodes.constant(np.array(1.0))])
    third = nodes.add("Div", [nodes.add("Div", [sums, size]), nodes.constant(np.array(3.0))])
    return nodes.add("Add", [wins, third])


class _Nodes:
    """Adds nodes with fresh names to a graph of skl2onnx."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def add(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add an operator, and return the name of its result."""
        name = output or self.scope.get_unique_variable_name(f"relvec_{kind.lower()}")
        own = self.scope.get_unique_operator_name(f"relvec_{kind}")
        version = self.container.target_opset_any_domain("")
        self.container.add_node(kind, inputs, name, op_version=version, name=own, **attributes)
        return name

    def cast(self, value: str, to: int, output: str | None = None) -> str:
        """Add a conversion of a value to another type, and return the name of the result."""
        return self.add("Cast", [value], output, to=to)

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant, and return its name."""
        import onnx

        name: str = self.scope.get_unique_variable_name("relvec_constant")
        proto = onnx.numpy_helper.from_array(np.asarray(array), name)
        values = [text.decode() for text in proto.string_data] if proto.string_data else np.ravel(array).tolist()
        self.container.add_initializer(name, proto.data_type, list(np.shape(array)), values)
        return name
