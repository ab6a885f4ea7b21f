"""Small whole models of formats whose library is not at hand, for `fuzz_damaged` to damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import coreml_writer
import msgpack
import ncnn_writer
import numpy as np
import openvino_writer
import paddle_writer
import pir_writer
import skops_writer
import spacy_writer
import tensorflow_writer as tf
import tesseract_writer as tesseract
from numpy.typing import NDArray

Make = Callable[[Path], Path]

_RNG = np.random.default_rng(3)
_WEIGHT, _BIAS = _RNG.normal(size=(6, 4)).astype(np.float32), _RNG.normal(size=6).astype(np.float32)


def _written(name: str, data: bytes) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _entities(folder: Path) -> Path:
    moves = {"0": {}, "1": {"Person": 9, "City": 9, "New": -1}, "2": {"Person": 7, "New": -1}, "5": {"": 30}}
    layers = spacy_writer.transitions(_WEIGHT, _BIAS)
    return spacy_writer.save(folder, ner=spacy_writer.Component("ner", layers, moves))


def _tagger(folder: Path) -> Path:
    layers = spacy_writer.tags(_WEIGHT, _BIAS)
    component = spacy_writer.Component("tagger", layers, cfg={"labels": list("ABCDEF")})
    return spacy_writer.save(folder, tagger=component)


def _recogniser(folder: Path) -> Path:
    steps = _RNG.integers(-127, 128, (5, 4), np.int8)
    weights = tesseract.matrix(steps, _RNG.uniform(0.01, 0.3, 8))
    return tesseract.Model(
        tesseract.layer("Softmax", weights, inputs=3, outputs=5),
        characters=tesseract.characters("NULL", "Joined", "|Broken|0|1", "a", "休", "林", "b"),
        codes=tesseract.codes((0,), (4,), (4,), (1,), (2, 3), (2, 2), (1,), (4,)),
        null=4,
    ).save(folder)


def _checkpoint(folder: Path) -> Path:
    tensors = {"output_weights": _WEIGHT, "output_bias": _BIAS, "bert/embeddings/word_embeddings": _WEIGHT}
    return tf.save_checkpoint(folder / "model.ckpt.index", tensors)


def _with_objects(folder: Path) -> Path:
    saved = tf.objects({"layer": 1}, {"kernel": 2, "bias": 3}, {}, {}, bound=(2, 3))
    stored = tf.stored_objects(["", "", tf.KERNEL, tf.BIAS], {"layer": 1}, {"kernel": 2, "bias": 3}, {}, {})
    weight, bias = tf.weights()
    return tf.Saved(saved_objects=saved).save(
        folder, **{tf.KERNEL: weight, tf.BIAS: bias, "_CHECKPOINTABLE_OBJECT_GRAPH": stored}
    )


def _classifier(folder: Path) -> Path:
    archive = skops_writer.Archive()
    return archive.save(folder / "model.skops", skops_writer.pipeline(skops_writer.logistic(archive)))


def _network(folder: Path) -> Path:
    archive = skops_writer.Archive()
    return archive.save(folder / "model.skops", skops_writer.network(archive))


def _flax(folder: Path) -> Path:
    def array(values: NDArray[np.float32]) -> msgpack.ExtType:
        return msgpack.ExtType(1, msgpack.packb((list(values.shape), values.dtype.name, values.tobytes())))

    weights = {"params": {"classifier": {"kernel": array(_WEIGHT), "bias": array(_BIAS[:4])}}}
    return _written("model.msgpack", msgpack.packb(weights))(folder)


MODELS: dict[str, Sequence[Make]] = {
    "coreml": (lambda folder: coreml_writer.classifier().save(folder),),
    "flax": (_flax,),
    "ncnn": (lambda folder: ncnn_writer.classifier().save(folder),),
    "openvino": (lambda folder: openvino_writer.classifier().save(folder),),
    "paddle": (
        lambda folder: paddle_writer.classifier().save(folder),
        lambda folder: pir_writer.classifier().save(folder),
    ),
    "skops": (_classifier, _network),
    "spacy": (_entities, _tagger),
    "tesseract": (_recogniser,),
    "tensorflow": (_written("graph.pb", tf.frozen()), _with_objects, _checkpoint),
}
