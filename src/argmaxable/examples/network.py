"""An ONNX model that is run up to its output layer by onnxruntime, on the CPU.

Before anything else is believed, the tapped features are held against the model's own answer: W x + b must
have the model's argmax at every decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Matrix32
from argmaxable.core.errors import InputError
from argmaxable.exact.rounding import gamma
from argmaxable.models.onnx.cutting import cut_at

if TYPE_CHECKING:
    from pathlib import Path

    import onnxruntime

    from argmaxable.core.head import Head
    from argmaxable.models.finding import Finding, Tap

Input = NDArray[np.float32]  # the axes of one image
_Given = TypeVar("_Given")
WORKERS = 2
_FLOAT32 = 2.0**-24


@dataclass(frozen=True)
class InputShape:
    """The axes of the model's input as its graph declares them; None where any length will do."""

    name: str
    axes: tuple[int | None, ...]


class TappedNetwork:
    """A model without its output layer, held open by onnxruntime."""

    def __init__(self, path: Path, finding: Finding, head: Head) -> None:
        """Raises InputError for a model that can't be run up to its head."""
        self._path, self._head = path, head
        self._tap = _only_tap(finding)
        self._session = _session(cut_at(path, self._tap.tensor))
        self.input = _only_input(self._session)

    def features(self, image: Input) -> Matrix32:
        """What reaches the output layer for an image (decisions × features)."""
        (tapped,) = self._session.run(None, {self.input.name: image[None]})
        return self._decisions(tapped)

    def features_of(self, images: Iterable[tuple[_Given, Input]]) -> Iterator[tuple[_Given, Matrix32]]:
        """The features of many images, in their order; what belongs to an image comes along.

        Two run at a time, each alone on its thread. Batches are slower: the layers of PP-OCRv4 take 29 ms for
        one line and 38 ms a line for eight, which no longer fit into a core's cache.
        """
        given = iter(images)
        with ThreadPoolExecutor(WORKERS) as pool:
            waiting: list[tuple[_Given, Future[Matrix32]]] = []
            while True:
                # A few more than there are workers, so that none waits while the next image is being made.
                for what, image in islice(given, 2 * WORKERS - len(waiting)):
                    waiting.append((what, pool.submit(self.features, image)))
                if not waiting:
                    return
                what, answer = waiting.pop(0)
                yield what, answer.result()

    def require_own_answers(self, image: Input) -> None:
        """Raise InputError unless W x + b at the tapped features has the argmax of the model's output.

        Logits that differ by less than float32's rounding of them count as equal.
        """
        session = _session(cut_at(self._path, self._tap.tensor, keep_outputs=True))
        tapped, *outputs = session.run(None, {self.input.name: image[None]})
        features = self._decisions(tapped)
        answers = _answers(outputs, len(features), self._head.classes)
        wrong = _disagreeing(self._head, features, answers)
        if wrong:
            raise InputError(
                f"{self._head.name}: at {wrong} of {len(features)} decisions the output layer, applied to "
                "the "
                f"features tapped at {self._tap.tensor!r}, gives another answer than the model itself. "
                "Something "
                "else decides after the output layer, so examples can't be taken from this model."
            )

    def _decisions(self, tapped: NDArray[Any]) -> Matrix32:
        last = np.moveaxis(np.asarray(tapped), self._tap.axis, -1)
        if last.shape[-1] != self._head.features:
            raise InputError(
                f"{self._head.name}: tensor {self._tap.tensor!r} has shape {tuple(tapped.shape)} for an "
                f"image; expected {self._head.features} features for each decision."
            )
        return last.reshape(-1, self._head.features).astype(np.float32, copy=False)


def _session(model: bytes) -> onnxruntime.InferenceSession:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise InputError(
            "running a model needs onnxruntime, which is not installed. Install argmaxable[teach], or pass "
            "--features."
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # two images at a time use two cores better than one image does
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except (
        Exception
    ) as error:  # onnxruntime has an error class of its own for each status, without a common base
        raise InputError(f"onnxruntime can't load the model: {error}") from error


def _only_tap(finding: Finding) -> Tap:
    if finding.format != "onnx":
        raise InputError(f"only ONNX models can be run here, not {finding.format}. Pass --features instead.")
    if len(finding.taps) != 1:
        raise InputError(
            f"{len(finding.taps)} tensors feed the output layer {finding.weight.name!r} in floating point; "
            "expected "
            "one to tap. Pass --features instead."
        )
    return finding.taps[0]


def _only_input(session: onnxruntime.InferenceSession) -> InputShape:
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type != "tensor(float)" or len(inputs[0].shape) != 4:
        found = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
        raise InputError(
            f"the model takes {found}; expected one image (4 axes of floats). Pass --features instead."
        )
    axes = tuple(size if isinstance(size, int) and size > 0 else None for size in inputs[0].shape)
    if axes[0] not in (None, 1):
        raise InputError(
            f"the model takes {axes[0]} images at a time; expected one, or any number. Export it again."
        )
    return InputShape(inputs[0].name, axes)


def _answers(outputs: list[NDArray[Any]], decisions: int, classes: int) -> NDArray[np.intp]:
    """The model's own argmax at each decision."""
    for output in outputs:
        if output.ndim and output.shape[-1] == classes and output.size == decisions * classes:
            return np.asarray(output.reshape(decisions, classes).argmax(axis=1))
        if np.issubdtype(output.dtype, np.integer) and output.size == decisions:
            return output.reshape(decisions).astype(np.intp)
    shapes = ", ".join(str(tuple(output.shape)) for output in outputs)
    raise InputError(
        f"none of the model's outputs (shapes {shapes}) has {classes} scores for each of {decisions} "
        "decisions, so "
        "the tapped features can't be compared with its answer. Pass --features instead."
    )


def _disagreeing(head: Head, features: Matrix32, answers: NDArray[np.intp]) -> int:
    """Decisions where the output layer's best class is another one, by more than float32 rounds."""
    weight, bias = head.rows(slice(None)), head.biases()
    logits = features.astype(float) @ weight.T + bias
    best = logits.argmax(axis=1)
    place = np.arange(len(features))
    sizes = [
        (np.abs(weight[ids]) * np.abs(features)).sum(axis=1) + np.abs(bias[ids]) for ids in (best, answers)
    ]
    # A sum of d products and a bias, in any order, and a softmax's subtraction of the largest logit.
    allowed = gamma(head.features + 4, _FLOAT32) * (sizes[0] + sizes[1])
    return int(((logits[place, best] - logits[place, answers]) > allowed).sum())
