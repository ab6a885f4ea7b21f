"""Heads among Flax's weights, packed here as `flax.serialization.to_bytes` packs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import msgpack
import numpy as np
import pytest

from argmaxable import AmbiguousError, LayerNorm, LoadError, find_head, load_head

RNG = np.random.default_rng(2)
KERNEL, BIAS = RNG.normal(size=(4, 6)).astype(np.float32), RNG.normal(size=6).astype(np.float32)


def packed(value: Any) -> Any:
    """Arrays as Flax stores them: an extension of kind 1."""
    if isinstance(value, dict):
        return {key: packed(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(1, msgpack.packb((list(value.shape), value.dtype.name, value.tobytes())))
    return value


def saved(folder: Path, weights: dict[str, Any], name: str = "model.msgpack") -> Path:
    path = folder / name
    path.write_bytes(msgpack.packb(packed(weights)))
    return path


CLASSIFIER = {"hidden": {"kernel": KERNEL, "bias": BIAS}, "classifier": {"kernel": KERNEL, "bias": BIAS}}


@pytest.mark.parametrize("wrap", [False, True])
def test_a_kernel_is_turned_round(tmp_path: Path, wrap: bool) -> None:
    state = {"step": 7, "params": CLASSIFIER, "opt_state": {"0": {"classifier": {"kernel": KERNEL}}}}
    path = saved(tmp_path, state if wrap else CLASSIFIER)
    finding, head = find_head(path), load_head(path)
    assert (finding.format, finding.weight.name, finding.classes) == ("flax", "classifier.weight", 6)
    assert head.weight.tobytes() == np.ascontiguousarray(KERNEL.T).tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()


def test_bfloat16_is_read_as_it_is(tmp_path: Path) -> None:
    kernel = KERNEL.astype(ml_dtypes.bfloat16)
    head = load_head(saved(tmp_path, {"classifier": {"kernel": kernel}}))
    assert head.weight.tobytes() == np.ascontiguousarray(kernel.T).tobytes()


def test_tied_embeddings_and_the_norm_before_them(tmp_path: Path) -> None:
    """GPT-2 as transformers saves it from Flax; config.json says what it is."""
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": True}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    embeddings = np.ascontiguousarray(KERNEL.T)
    gain, shift = np.linspace(1, 2, 4).astype(np.float32), np.zeros(4, np.float32)
    weights = {
        "transformer": {
            "wte": {"embedding": embeddings}, "wpe": {"embedding": embeddings},
            "ln_f": {"scale": gain, "bias": shift},
        }
    }  # fmt: skip
    path = saved(tmp_path, weights, "flax_model.msgpack")
    for model in (path, tmp_path):
        finding = find_head(model)
        assert finding.weight.name == "transformer.wte.weight"
        assert finding.read()[0].tobytes() == embeddings.tobytes()
        assert finding.inputs is not None
        assert isinstance(finding.inputs.domain, LayerNorm)


def test_two_arrays_that_would_have_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousError, match=r"two arrays of a layer would be called 'classifier.weight'"):
        find_head(saved(tmp_path, {"classifier": {"kernel": KERNEL, "embedding": KERNEL}}))


def test_an_array_in_chunks_is_named(tmp_path: Path) -> None:
    chunks = {"__msgpack_chunked_array__": True, "shape": {"0": 24}, "chunks": {"0": KERNEL}}
    with pytest.raises(LoadError, match="stored in chunks"):
        find_head(saved(tmp_path, {"classifier": {"kernel": chunks}}), tensor="classifier.kernel")


@pytest.mark.parametrize("array", [([4, 7], "float32"), ([-4, -6], "float32"), ([4, 6], "float16")])
def test_bytes_that_do_not_fit_the_shape_are_refused(tmp_path: Path, array: tuple[Any, str]) -> None:
    damaged = msgpack.ExtType(1, msgpack.packb((*array, KERNEL.tobytes())))
    with pytest.raises(LoadError, match=r"the array 'classifier.kernel'"):
        find_head(saved(tmp_path, {"classifier": {"kernel": damaged}}))


def test_an_array_that_ends_elsewhere_is_refused(tmp_path: Path) -> None:
    damaged = msgpack.ExtType(1, msgpack.packb([[4, 6], "float32", KERNEL.tobytes()]) + b"\0")
    with pytest.raises(LoadError, match="does not end where it says"):
        find_head(saved(tmp_path, {"classifier": {"kernel": damaged}}))
