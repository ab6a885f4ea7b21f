"""Small whole models, for `fuzz_damaged` to damage."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import checkpoint_writer
import coreml_writer
import ctranslate2_writer
import flair_writer
import gguf_writer
import msgpack
import ncnn_writer
import numpy as np
import openvino_writer
import paddle_writer
import pir_writer
import quantised_writer
import skops_writer
import spacy_writer
import tensorflow_writer as tf
import tesseract_writer as tesseract
import torch
import torch_programs
import whisper_writer as whisper
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


def _recogniser(folder: Path, *, is_inside: bool = False) -> Path:
    steps = _RNG.integers(-127, 128, (5, 4), np.int8)
    weights = tesseract.matrix(steps, _RNG.uniform(0.01, 0.3, 8))
    return tesseract.Model(
        tesseract.layer("Softmax", weights, inputs=3, outputs=5),
        characters=tesseract.characters("NULL", "Joined", "|Broken|0|1", "a", "休", "林", "b"),
        codes=tesseract.codes((0,), (4,), (4,), (1,), (2, 3), (2, 2), (1,), (4,)),
        null=4,
        is_inside=is_inside,
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


def _translator(folder: Path) -> Path:
    steps = _RNG.integers(-127, 128, (6, 4)).astype(np.int8)
    variables = [
        ("decoder/projection/weight", steps),
        ("decoder/projection/weight_scale", _BIAS + 9),
        ("decoder/projection/bias", _BIAS),
    ]
    return ctranslate2_writer.Model(variables).save(folder, shared_vocabulary=list("abcdef"))


def _llamafile(folder: Path) -> Path:
    tensors = {"output.weight": np.tile(_WEIGHT, (1, 8)), "output_norm.weight": np.ones(32, np.float32)}
    model = gguf_writer.write(folder / "model.gguf", tensors, tokens=tuple("abcdef"))
    path = folder / "model.llamafile"
    path.write_bytes(b"MZqFpD='" + bytes(99))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(".args", "-m\nmodel.gguf")
        archive.writestr("model.gguf", model.read_bytes())
    model.unlink()
    return path


def _whisper(folder: Path) -> Path:
    tensors: dict[str, whisper.Stored] = {
        whisper.HEAD: _WEIGHT,
        whisper.GAIN: np.ones(4, np.float32),
        whisper.SHIFT: np.zeros(4, np.float32),
    }
    data = whisper.model(tensors, [b"a", b"b"], vocabulary=6, features=4, bands=2)
    return _written("ggml-tiny.bin", data)(folder)


def _flair(folder: Path) -> Path:
    _, model = flair_writer.tagger(("O", "S-PER", "B-PER", "E-PER"), decoder=torch.nn.Linear(2, 2))
    return flair_writer.save(folder / "model.pt", model)


def _nemo(folder: Path) -> Path:
    stream = io.BytesIO()
    weight, bias = torch.from_numpy(_WEIGHT), torch.from_numpy(_BIAS)
    torch.save({"joint.joint_net.2.weight": weight, "joint.joint_net.2.bias": bias}, stream)
    config = "joint:\n  jointnet:\n    activation: relu\n  vocabulary:\n" + "".join(
        f"  - {c}\n" for c in "abcde"
    )
    with tarfile.open(folder / "model.nemo", "w:") as archive:
        for name, data in (("model_config.yaml", config.encode()), ("model_weights.ckpt", stream.getvalue())):
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return folder / "model.nemo"


def _quantised(settings: dict[str, object], **layer: NDArray[np.generic]) -> Make:
    def make(folder: Path) -> Path:
        config = {**checkpoint_writer.LLAMA, "quantization_config": settings}
        tensors = {f"lm_head.{name}": value for name, value in layer.items()}
        return checkpoint_writer.write(folder, config, {**checkpoint_writer.norm(32), **tensors})

    return make


def _four_bits(kind: str, *, nested: bool) -> Make:
    return lambda folder: quantised_writer.nf4_model(folder, kind=kind, nested=nested)[0]


def _traced(folder: Path) -> Path:
    return torch_programs.traced(torch_programs.ConvNet(), torch_programs.image(), folder / "model.pt")


def _scripted(folder: Path) -> Path:
    return torch_programs.scripted(torch_programs.Tied(), folder / "model.pt")


def _exported(folder: Path) -> Path:
    return torch_programs.exported(torch_programs.ConvNet(), torch_programs.image(), folder / "model.pt2")


def _words(*shape: int) -> NDArray[np.int32]:
    return _RNG.integers(-(2**31), 2**31, shape).astype(np.int32)


_HALVES = _RNG.uniform(0.01, 0.1, (2, 8)).astype(np.float16)
_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 16, "checkpoint_format": "gptq_v2"}
_AWQ = {"quant_method": "awq", "bits": 4, "group_size": 16, "zero_point": True}
_SCHEME = {"num_bits": 4, "type": "int", "symmetric": False, "group_size": 16}
_COMPRESSED: dict[str, object] = {
    "quant_method": "compressed-tensors",
    "config_groups": {"0": {"targets": ["Linear"], "weights": _SCHEME}},
}
_BLOCKS = {**checkpoint_writer.LLAMA, "quantization_config": {"weight_block_size": [4, 4]}}
_PLACES = (np.arange(32) // 16).astype(np.int32)


MODELS: dict[str, Sequence[Make]] = {
    "awq": (_quantised(_AWQ, qweight=_words(32, 1), qzeros=_words(2, 1), scales=_HALVES),),
    "compressed-tensors": (
        _quantised(
            _COMPRESSED,
            weight_packed=_words(8, 4),
            weight_scale=np.ascontiguousarray(_HALVES.T),
            weight_zero_point=_words(1, 2),
            weight_shape=np.array([8, 32]),
        ),
    ),
    "coreml": (lambda folder: coreml_writer.classifier().save(folder),),
    "coreml.network": (
        lambda folder: coreml_writer.dense_network(labels=list("abcdef"), scores="p").save(folder),
    ),
    "ctranslate2": (_translator,),
    "flair": (_flair,),
    "flax": (_flax,),
    "fp4": (_four_bits("fp4", nested=False), _four_bits("fp4", nested=True)),
    "fp8": (
        lambda folder: quantised_writer.fp8_model(folder),
        lambda folder: quantised_writer.fp8_model(
            folder, config=_BLOCKS, weight_scale=quantised_writer.fp8_scales(2, 3)
        ),
    ),
    "gptq": (_quantised(_GPTQ, qweight=_words(4, 8), qzeros=_words(2, 1), scales=_HALVES, g_idx=_PLACES),),
    "int8": (
        _quantised(
            {},
            weight=_RNG.integers(-127, 128, (8, 32)).astype(np.int8),
            SCB=np.ones(8, np.float32),
            weight_format=np.zeros((), np.uint8),
        ),
    ),
    "llamafile": (_llamafile,),
    "mlx": (lambda folder: quantised_writer.mlx_model(folder),),
    "ncnn": (lambda folder: ncnn_writer.classifier().save(folder),),
    "nemo": (_nemo,),
    "nf4": (_four_bits("nf4", nested=False), _four_bits("nf4", nested=True)),
    "openvino": (lambda folder: openvino_writer.classifier().save(folder),),
    "paddle": (lambda folder: paddle_writer.classifier().save(folder),),
    "paddle.json": (lambda folder: pir_writer.classifier().save(folder),),
    "skops": (_classifier, _network),
    "spacy": (_entities, _tagger),
    "tensorflow": (_with_objects,),
    "tensorflow.checkpoint": (_checkpoint,),
    "tensorflow.frozen": (_written("graph.pb", tf.frozen()),),
    "tesseract": (_recogniser, partial(_recogniser, is_inside=True)),
    "torch.export": (_exported,),
    "torchscript": (_traced, _scripted),
    "whisper.cpp": (_whisper,),
}
