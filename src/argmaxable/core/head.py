"""A head: the last linear layer of a classifier, the thing every verdict is about.

Floating-point weights are exact dyadic rationals, so a head is an exact mathematical object; its
dtype is kept and no value is ever rounded on the way in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.core.errors import HeadError
from argmaxable.core.stored_rows import StoredRows

FLOAT_DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
# Every integer up to here has an exact float64; beyond it conversion would guess.
_LARGEST_EXACT_INTEGER = 2**53
# Rows examined at a time, so that validating a memory-mapped head needs little memory.
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Head:
    """Weights (classes × features), optional bias (classes) and labels of an output layer.

    Raises HeadError when the arrays are no head: wrong shapes, no classes, NaN or infinite values,
    a dtype that is neither a float nor an exactly convertible integer.
    """

    weight: NDArray[Any]
    bias: NDArray[Any] | None
    labels: tuple[str, ...] | None
    name: str

    def __init__(
        self,
        weight: ArrayLike | StoredRows,
        bias: ArrayLike | None = None,
        labels: Sequence[object] | None = None,
        *,
        name: str = "head",
    ) -> None:
        # Rows that stay in their file are asked for as an array's would be.
        matrix: Any = weight if isinstance(weight, StoredRows) else _as_floats(weight, "weight")
        if matrix.ndim != 2:
            raise HeadError(f"weight must be a matrix (classes × features), found shape {matrix.shape}.")
        classes, features = matrix.shape
        if classes == 0 or features == 0:
            raise HeadError(
                f"weight is empty: {classes} classes × {features} features. "
                "A head needs at least one of each."
            )
        _require_finite_weight(matrix)
        object.__setattr__(self, "weight", matrix if isinstance(matrix, StoredRows) else _read_only(matrix))
        object.__setattr__(self, "bias", _validated_bias(bias, classes))
        object.__setattr__(self, "labels", _validated_labels(labels, classes))
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        parts = [f"{self.classes} × {self.features}", self.weight.dtype.name]
        parts += [name for name in ("bias", "labels") if getattr(self, name) is not None]
        return f"Head({', '.join(parts)})"

    @staticmethod
    def from_module(module: Any, labels: Sequence[object] | None = None, *, name: str | None = None) -> Head:
        """The head in an output layer of PyTorch: `torch.nn.Linear`, any of argmaxable.layers with one
        component, or anything else with a `weight` and perhaps a `bias`.

        A transform of the logits increases, so verdicts are those of the linear part. The head shares the
        memory of parameters: train on, and it changes. Raises HeadError, also for mixtures of softmaxes.
        """
        weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
        kind = type(module).__name__
        mixtures = getattr(module, "mixtures", 1)
        if mixtures != 1:
            raise HeadError(
                f"{kind} mixes {mixtures} softmaxes. Linear verdicts do not apply to it: its argmax need not "
                "be that of any component, and each component sees features of its own."
            )
        if weight is None:
            raise HeadError(f"{kind} has no weight. Pass the output layer itself, e.g. model.lm_head.")
        return Head(_as_array(weight), None if bias is None else _as_array(bias), labels, name=name or kind)

    from_linear = from_module

    @staticmethod
    def from_sklearn(classifier: Any, *, name: str | None = None) -> Head:
        """The head of a fitted linear classifier of scikit-learn, or of a pipeline that ends in one.

        A classifier with two classes stores one row w and answers the second class where w·x + b > 0; its
        head has the rows 0 and w. Raises HeadError when the prediction is no argmax of a linear layer.
        """
        while hasattr(classifier, "steps"):
            classifier = classifier.steps[-1][1]
        kind = type(classifier).__name__
        weight, bias = _linear_parts(classifier)
        classes = len(classifier.classes_)
        if classes == 2 and len(weight) == 1:
            weight, bias = (np.concatenate([np.zeros_like(part), part]) for part in (weight, bias))
        if classes != len(weight):
            raise HeadError(
                f"{kind} has {len(weight)} rows of coefficients for {classes} classes, so its "
                "prediction is not an argmax over them. Fit a one-vs-rest or multinomial model."
            )
        return Head(weight, bias, classifier.classes_, name=name or kind)

    @property
    def classes(self) -> int:
        return int(self.weight.shape[0])

    @property
    def features(self) -> int:
        return int(self.weight.shape[1])

    @property
    def has_bias(self) -> bool:
        """Whether the bias can matter: a missing or constant one moves every logit alike."""
        return self.bias is not None and bool((self.bias != self.bias[0]).any())

    def rows(self, ids: NDArray[np.intp] | slice) -> NDArray[np.float64]:
        """The chosen weight rows, exactly, as float64 (n × features)."""
        return np.ascontiguousarray(self.weight[ids], dtype=np.float64)

    def biases(self, ids: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
        """The chosen biases, exactly, as float64 (zeros without a bias)."""
        if self.bias is None:
            return np.zeros(len(range(*ids.indices(self.classes))) if isinstance(ids, slice) else len(ids))
        return self.bias[ids].astype(np.float64)

    def label(self, class_id: int) -> str:
        """The class's label, or its number where the head has no labels."""
        return str(class_id) if self.labels is None else self.labels[class_id]

    def sha256(self) -> str:
        """Fingerprint of shape, dtypes, weights and bias (docs/proofs.md gives the recipe)."""
        bias_dtype = "none" if self.bias is None else self.bias.dtype.name
        header = f"argmaxable-head-1 {self.classes} {self.features} {self.weight.dtype.name} {bias_dtype}\n"
        digest = hashlib.sha256(header.encode())
        for start in range(0, self.classes, _BLOCK_ROWS):
            digest.update(_little_endian_bytes(self.weight[start : start + _BLOCK_ROWS]))
        if self.bias is not None:
            digest.update(_little_endian_bytes(self.bias))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a head without its weights; the fingerprint stands for those."""

    name: str
    sha256: str
    classes: int
    features: int
    bias: bool
    dtype: str
    # Labels are words about the head, not a part of it.
    labels_sha256: str = field(default="", compare=False)

    @staticmethod
    def of(head: Head) -> Facts:
        return Facts(
            name=head.name,
            sha256=head.sha256(),
            classes=head.classes,
            features=head.features,
            bias=head.bias is not None,
            dtype=head.weight.dtype.name,
            labels_sha256=labels_sha256(head.labels),
        )


def labels_sha256(labels: Sequence[str] | None) -> str:
    """Fingerprint of a label list (docs/proofs.md gives the recipe); empty when there is none."""
    if labels is None:
        return ""
    # Not as ASCII: there two halves of a surrogate pair look like the character they would make.
    text = json.dumps([*labels], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _little_endian_bytes(array: NDArray[Any]) -> bytes:
    # Same-width integers carry the bits of every float dtype, bfloat16 included.
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits.astype(bits.dtype.newbyteorder("<"), copy=False).tobytes()


def _as_array(tensor: Any) -> NDArray[Any]:
    """A tensor of PyTorch, which need not be imported for that, or any other array."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":  # NumPy has none; by way of float32 no bit is lost
            return np.asarray(tensor.float().numpy(), ml_dtypes.bfloat16)
        tensor = tensor.numpy()
    return np.asarray(tensor)


def _linear_parts(classifier: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coefficients (rows × features) and intercepts (rows) of a scikit-learn classifier."""
    kind = type(classifier).__name__
    if not hasattr(classifier, "classes_"):
        raise HeadError(f"{kind} has no classes_: it is not a classifier, or not fitted yet. Call fit first.")
    # Where several labels can hold at once, each row is decided by itself.
    binarizer = getattr(classifier, "label_binarizer_", getattr(classifier, "_label_binarizer", None))
    if getattr(binarizer, "y_type_", "").startswith("multilabel"):
        raise HeadError(f"{kind} was fitted to several labels at once: it does not take an argmax.")
    if hasattr(classifier, "label_binarizer_"):  # OneVsRestClassifier
        parts = [_linear_parts(each) for each in classifier.estimators_]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    # SVC compares classes in pairs, which vote; three classes make three pairs.
    votes = hasattr(classifier, "support_vectors_") and len(classifier.classes_) > 2
    if votes or not hasattr(classifier, "coef_"):
        raise HeadError(
            f"{kind} is not a linear classifier with a row of coefficients (coef_) for each class."
        )
    weight = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
    weight = np.atleast_2d(weight)
    return weight, np.broadcast_to(np.asarray(classifier.intercept_, weight.dtype).reshape(-1), len(weight))


def _as_floats(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise HeadError(f"{what} is not a rectangular array: {error}") from error
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype in FLOAT_DTYPES.values():
        return array
    if array.dtype.kind in "iu":
        if array.size and max(abs(int(array.min())), abs(int(array.max()))) > _LARGEST_EXACT_INTEGER:
            raise HeadError(
                f"{what} holds integers beyond ±2^53, which float64 can't represent exactly. "
                "Rescale them or pass floats."
            )
        return array.astype(np.float64)
    raise HeadError(
        f"{what} has dtype {array.dtype}; expected one of {', '.join(FLOAT_DTYPES)}, or integers."
    )


def _require_finite_weight(matrix: NDArray[Any]) -> None:
    for start in range(0, len(matrix), _BLOCK_ROWS):
        with np.errstate(invalid="ignore"):  # a signalling NaN is found all the same
            finite = np.isfinite(matrix[start : start + _BLOCK_ROWS])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = matrix[start + row, column]
            raise HeadError(
                f"weight of class {start + row}, feature {column} is {value}; every weight must be "
                "finite. Check the checkpoint: training may have diverged."
            )


def _validated_bias(bias: ArrayLike | None, classes: int) -> NDArray[Any] | None:
    if bias is None:
        return None
    vector = _as_floats(bias, "bias")
    if vector.size != classes or vector.ndim == 0 or max(vector.shape) != classes:
        raise HeadError(
            f"bias has shape {vector.shape} but the weight has {classes} classes. Was the head "
            "resized without its bias? Pass a bias of the same length, or none."
        )
    vector = vector.reshape(classes)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(vector)
    if not finite.all():
        first = int(np.argmin(finite))
        raise HeadError(f"bias of class {first} is {vector[first]}; every bias must be finite.")
    return _read_only(vector)


def _validated_labels(labels: Sequence[object] | None, classes: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if len(labels) != classes:
        raise HeadError(f"{len(labels)} labels for {classes} classes. Pass one label per class, or none.")
    return tuple(str(label) for label in labels)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
