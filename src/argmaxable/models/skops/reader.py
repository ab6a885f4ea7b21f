"""Heads of scikit-learn's linear classifiers and networks in .skops files, also at the end of a pipeline."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.errors import LoadError
from argmaxable.models.activations import RANGES
from argmaxable.models.finding import Arrays, Finding, HeadInputs, Labels, TensorInfo
from argmaxable.models.npz.reader import as_labels, opened, read_headers, read_member
from argmaxable.models.skops.schema import SCHEMA, ArrayMember, Described, parse_schema

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.models.registry import ReadOptions

# Classifiers that answer the class with the largest coef_ · x + intercept_.
_LINEAR = frozenset(
    {"LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "LinearSVC", "Perceptron"}
    | {"RidgeClassifier", "RidgeClassifierCV", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis"}
)
_SEARCHES = frozenset({"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"})
_HIDDEN = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}
# A description has about a kilobyte for each attribute.
_LARGEST_SCHEMA = 2**26
_CLASS = re.compile(r"sklearn(\.\w+)*\.(\w+)")
_TWO_NOTE = (
    "of two classes the second is answered where w·x + b > 0, with one stored row w: the rows are 0 and w"
)
_INSTEAD = (
    "Load it where you trust it: head = argmaxable.Head.from_sklearn(model); "
    "numpy.savez('head.npz', W=head.weight, b=head.bias, labels=head.labels)."
)


@dataclass(frozen=True)
class _Layer:
    """Where the head is: its arrays, whether the weight is classes × features, and what feeds it."""

    weight: ArrayMember
    name: str
    bias: ArrayMember | None
    by_class: bool
    inputs: HeadInputs
    activation: str = ""


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a classifier in a .skops file; raises LoadError."""
    if options.tensor is not None or options.bias_tensor is not None or options.transpose:
        raise LoadError(
            "its arrays belong to a classifier of scikit-learn: --tensor, --bias-tensor and --transpose "
            "can't choose among them. Save the wanted arrays as .npz."
        )
    with path.open("rb") as file, opened(file) as archive:
        classifier, before = _classifier(parse_schema(_schema(archive)))
        layer = _layer(classifier, before)
        headers = read_headers(archive)
        for member in filter(None, (layer.weight, layer.bias)):
            if member.name not in headers:
                raise LoadError(f"the member {member.name[:80]!r} is missing. Save the model again.")
        names = _classes(archive, classifier)
    shape = headers[layer.weight.name].shape
    if layer.by_class and len(shape) == 1:  # one row
        shape = (1, *shape)
    if len(shape) != 2:
        raise LoadError(f"{layer.name} has shape {shape[:8]}, expected a matrix. {_INSTEAD}")
    rows, features = shape if layer.by_class else shape[::-1]
    classes = len(names)
    is_binary = classes == 2 and rows == 1
    if rows != classes and not is_binary:
        raise LoadError(
            f"{_kind(classifier)} has {rows} rows of coefficients for {classes} classes, so its prediction "
            "is not an argmax over them. Fit a one-vs-rest or multinomial model."
        )
    if layer.activation == "sigmoid" and not is_binary:
        raise LoadError(f"{_kind(classifier)} was fitted to several labels at once: it takes no argmax.")

    def read() -> Arrays:
        with path.open("rb") as again, opened(again) as archive:
            weight = _floats(read_member(archive, layer.weight.name)).reshape(shape)
            bias = None if layer.bias is None else _floats(read_member(archive, layer.bias.name)).reshape(-1)
        weight = weight if layer.by_class else np.ascontiguousarray(weight.T)
        if bias is not None and len(bias) == 1:
            bias = np.broadcast_to(bias, len(weight))
        return _two_rows(weight, bias) if is_binary else (weight, bias)

    return Finding(
        format="skops",
        weight=TensorInfo(layer.name, shape, str(headers[layer.weight.name].dtype)),
        bias=None if layer.bias is None else TensorInfo(
            "intercept", headers[layer.bias.name].shape, str(headers[layer.bias.name].dtype)
        ),
        classes=classes,
        features=features,
        why=f"the output layer of {_kind(classifier)}",
        read=read,
        labels=Labels(names, "classes_", is_inside=True),
        inputs=layer.inputs,
        activation="" if is_binary else layer.activation,
        notes=(_TWO_NOTE,) if is_binary else (),
    )  # fmt: skip


def _schema(archive: zipfile.ZipFile) -> bytes:
    if SCHEMA not in archive.namelist() or archive.getinfo(SCHEMA).file_size > _LARGEST_SCHEMA:
        raise LoadError(f"has no {SCHEMA}, or one that is too large. Is it a file of skops? Save it again.")
    return archive.read(SCHEMA)


def _classifier(value: Any) -> tuple[Described, str]:
    """The classifier inside pipelines and searches, and what comes before it."""
    before = ""
    for _ in range(20):
        if not isinstance(value, Described):
            break
        kind = _kind(value)
        if kind == "Pipeline":
            steps = value.attributes.get("steps")
            last = steps[-1] if isinstance(steps, list) and steps else None
            if not isinstance(last, list) or len(last) != 2:
                break
            earlier = steps[-2] if isinstance(steps, list) and len(steps) > 1 else None
            is_known = isinstance(earlier, list) and len(earlier) == 2 and isinstance(earlier[1], Described)
            before = _kind(earlier[1]) if is_known and earlier is not None else "another step"
            value = last[1]
        elif kind in _SEARCHES:
            value = value.attributes.get("best_estimator_")
        else:
            return value, before
    raise LoadError(f"holds no fitted classifier of scikit-learn that is known here. {_INSTEAD}")


def _kind(value: Described) -> str:
    found = _CLASS.fullmatch(value.kind)
    return found[2] if found else value.kind


def _layer(classifier: Described, before: str) -> _Layer:
    kind, attributes = _kind(classifier), classifier.attributes
    binarizer = attributes.get("_label_binarizer")
    if isinstance(binarizer, Described) and str(binarizer.attributes.get("y_type_", "")).startswith(
        "multilabel"
    ):
        raise LoadError(f"{kind} was fitted to several labels at once: it takes no argmax.")
    if kind in _LINEAR:
        bias = attributes.get("intercept_")
        return _Layer(
            _array(attributes, "coef_", kind), "coef_", bias if isinstance(bias, ArrayMember) else None, True,
            HeadInputs(
                f"the output of {before}, which has no known bound" if before else "the model's input",
                Everywhere(),
            ),
        )  # fmt: skip
    if kind == "MultinomialNB":
        return _Layer(
            _array(attributes, "feature_log_prob_", kind), "feature_log_prob_",
            _array(attributes, "class_log_prior_", kind), True,
            HeadInputs("counts, which are never negative", Box(0.0, np.inf)),
        )  # fmt: skip
    if kind == "MLPClassifier":
        return _network(attributes, kind)
    raise LoadError(
        f"{kind} does not answer the largest of W x + b over its classes, or is unknown. {_INSTEAD}"
    )


def _network(attributes: Any, kind: str) -> _Layer:
    weights, biases = (attributes.get(name) for name in ("coefs_", "intercepts_"))
    ends = [each[-1] if isinstance(each, list) and each else None for each in (weights, biases)]
    weight, bias = ends
    if not isinstance(weight, ArrayMember) or not isinstance(bias, ArrayMember):
        raise LoadError(f"{kind} is not fitted. {_INSTEAD}")
    activation, output = attributes.get("activation"), attributes.get("out_activation_")
    if output not in ("softmax", "logistic"):
        raise LoadError(f"{kind} ends in {output!r}, expected softmax or logistic. {_INSTEAD}")
    domain: Domain = Everywhere()
    words = "a linear layer, which bounds nothing"
    if isinstance(weights, list) and len(weights) == 1:
        words = "the model's input"
    elif activation in _HIDDEN:
        domain, words = Box(*RANGES[_HIDDEN[activation]]), str(activation)
    return _Layer(
        weight,
        "coefs_[-1]",
        bias,
        False,
        HeadInputs(words, domain),
        "softmax" if output == "softmax" else "sigmoid",
    )


def _array(attributes: Any, name: str, kind: str) -> ArrayMember:
    found = attributes.get(name)
    if not isinstance(found, ArrayMember):
        raise LoadError(
            f"{kind} has no array {name}: it is not fitted, or stores it in a sparse form. {_INSTEAD}"
        )
    return found


def _classes(archive: zipfile.ZipFile, classifier: Described) -> tuple[str, ...]:
    """The names of the classes, which some classifiers leave to what made rows of them."""
    binarizer = classifier.attributes.get("_label_binarizer")
    inner = binarizer.attributes if isinstance(binarizer, Described) else {}
    found = classifier.attributes.get("classes_", inner.get("classes_"))
    if isinstance(found, ArrayMember) and f"{found.name}.npy" in archive.namelist():
        values = read_member(archive, found.name)
        if values.ndim == 1 and values.dtype.kind in "iuUbf":
            return tuple(as_labels(values.astype(str)))
    raise LoadError(
        f"the classes of {_kind(classifier)} are not stored as a list of names or numbers. {_INSTEAD}"
    )


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind != "f":
        raise LoadError(f"its coefficients are of type {values.dtype}, expected floats. {_INSTEAD}")
    return values


def _two_rows(weight: NDArray[Any], bias: NDArray[Any] | None) -> Arrays:
    rows = np.concatenate([np.zeros_like(weight), weight])
    return rows, None if bias is None else np.concatenate([np.zeros_like(bias), bias])
