"""Quantised heads of Hugging Face checkpoints: exactly what their numbers stand for, or an error."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from checkpoint_writer import (
    LLAMA,
    Config,
    file_with,
    found,
    fraction,
    holds_exactly,
    norm,
    write,
)
from quantised_writer import (
    FP8,
    fp8_model,
    fp8_scales,
    fp8_values,
    mlx_config,
    mlx_layer,
    mlx_model,
    nf4_model,
)
from safetensors.numpy import load_file, save_file

from argmaxable.core.balls import RMSNorm
from argmaxable.core.errors import AmbiguousError, InputError, LoadError
from argmaxable.core.head import Head
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models import find_head, load_head, quantised_rows
from argmaxable.models.fetch.hub import _files_with_head
from argmaxable.models.huggingface.quantised.four_bits import _TABLES
from argmaxable.models.safetensors.tensors import tensors_of
from argmaxable.models.write import write_head

# What mlx 0.32.4 makes of these words with a scale of 1 and a bias of 0 (mlx.core.dequantize).
FROM_MLX = {
    2: "e55d34bc dd635fe9: 0 3 3 2 0 1 3 0 1 3 1 1 1 1 2 3 1 2 2 3 3 3 1 1 3 0 2 1 1 3 1 3",
    3: "d1dad3ff daf51b09 11cbccb9: 7 7 7 1 5 5 6 6 1 2 7 4 0 6 6 0 5 6 3 5 5 3 6 5 4 1 7 5 4 3 4 0",
    4: "cf9f3abe f124801a 42ee2613 2b67f4cb: 14 11 10 3 15 9 15 12 10 1 0 8 4 2 1 15 3 1 6 2 14 14 2 4 11 12 "
    "4 15 7 6 11 2",
    5: "13c357fa cc888a13 f24b94d5 9a952cbe 9d2173c7: 26 31 21 6 28 9 12 2 10 4 2 25 28 10 19 18 11 18 28 29 "
    "11 22 20 18 26 28 17 7 23 16 20 19",
    6: "c9ee347c 00ac68b8 d61fc1a8 e91071df 21e80412 fc1c149f: 60 17 35 59 9 35 11 26 44 2 0 42 1 63 33 53 "
    "31 7 7 4 41 11 1 1 40 7 50 39 20 48 1 63",
    8: "d97cbc79 494abbf7 7aa2fd15 d04c1869 e69c4904 1518afdf a853c46f 70331f05: 121 188 124 217 247 187 74 "
    "73 21 253 162 122 105 24 76 208 4 73 156 230 223 175 24 21 111 196 83 168 5 31 51 112",
}


# ---------------------------------------------------------------------- MLX


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("group_size", [32, 64, 128])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx_weights_are_scale_times_step_plus_bias_exactly(
    tmp_path: Path, bits: int, group_size: int, dtype: Any
) -> None:
    tensors, expected = mlx_layer("lm_head", bits=bits, group_size=group_size, dtype=dtype)
    head = load_head(write(tmp_path / "m", mlx_config(bits, group_size), tensors))
    assert head.weight.shape == (6, 128)
    assert holds_exactly(head.weight, expected)


@pytest.mark.parametrize("bits", FROM_MLX)
def test_words_are_unpacked_as_mlx_does_it(tmp_path: Path, bits: int) -> None:
    words, steps = (part.split() for part in FROM_MLX[bits].split(":"))
    layer = {
        "lm_head.weight": np.array([[int(word, 16) for word in words]], np.uint32),
        "lm_head.scales": np.ones((1, 1), np.float32),
        "lm_head.biases": np.zeros((1, 1), np.float32),
    }
    head = load_head(write(tmp_path / "m", mlx_config(bits, 32), layer))
    assert head.weight.tolist() == [[float(step) for step in steps]]


def test_an_mlx_head_has_its_domain_and_says_how_it_is_stored(tmp_path: Path) -> None:
    finding = found(mlx_model(tmp_path / "m"))
    assert str(finding.weight) == "lm_head.weight (6 × 128, MLX 4-bit, groups of 64)"
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, RMSNorm)
    assert finding.alternatives == ()


def test_a_signalling_nan_in_the_norm_proves_no_domain_and_warns_nobody(tmp_path: Path) -> None:
    gain = np.full(128, 0x7F800001, np.uint32).view(np.float32)
    tensors = {**mlx_layer("lm_head")[0], "model.norm.weight": gain}
    inputs = find_head(write(tmp_path / "m", mlx_config(), tensors)).inputs
    assert inputs is not None
    assert inputs.domain is None


def test_tied_mlx_embeddings_are_the_head(tmp_path: Path) -> None:
    tensors, expected = mlx_layer("model.embed_tokens", bits=8)
    config = {**mlx_config(8), "tie_word_embeddings": True}
    folder = write(tmp_path / "m", config, {**tensors, **norm()})
    assert found(folder).weight.name == "model.embed_tokens.weight"
    assert holds_exactly(load_head(folder).weight, expected)


def test_scales_of_other_layers_are_not_offered_as_heads(tmp_path: Path) -> None:
    tensors = {**mlx_layer("lm_head")[0], **mlx_layer("model.embed_tokens")[0], **norm()}
    assert found(write(tmp_path / "m", mlx_config(), tensors)).alternatives == ()


def test_an_mlx_layer_has_settings_of_its_own(tmp_path: Path) -> None:
    tensors, expected = mlx_layer("lm_head", bits=8, group_size=32)
    config = mlx_config(4, 64, lm_head={"bits": 8, "group_size": 32})
    assert holds_exactly(load_head(write(tmp_path / "m", config, tensors)).weight, expected)


def test_a_bias_of_an_mlx_layer_is_the_heads(tmp_path: Path) -> None:
    bias = np.arange(6, dtype=np.float32)
    head = load_head(mlx_model(tmp_path / "m", bias=bias))
    assert head.bias is not None
    assert head.bias.tolist() == bias.tolist()


def in_two_files(folder: Path) -> tuple[Path, Callable[[int, int], Fraction]]:
    """An MLX model with the head's words in one file, and its scales in another."""
    tensors, expected = mlx_layer("lm_head")
    files: Mapping[str, Sequence[str]] = {
        "model-00001-of-00002.safetensors": ("lm_head.weight", "model.norm.weight"),
        "model-00002-of-00002.safetensors": ("lm_head.scales", "lm_head.biases"),
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(mlx_config()))
    for file, names in files.items():
        (folder / file).write_bytes(file_with({name: {**tensors, **norm()}[name] for name in names}))
    weight_map = {name: file for file, names in files.items() for name in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder, expected


def test_words_and_scales_may_be_in_different_files(tmp_path: Path) -> None:
    folder, expected = in_two_files(tmp_path / "m")
    assert holds_exactly(load_head(folder).weight, expected)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(LoadError, match=r"lm_head.scales.*00002-of-00002.safetensors is not in the folder"):
        load_head(folder)


def test_the_file_with_the_scales_is_fetched_too(tmp_path: Path) -> None:
    folder, _ = in_two_files(tmp_path / "m")
    files = _files_with_head(folder / "model.safetensors.index.json", None, None)
    assert files == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.mark.parametrize(("model_type", "has_domain"), [("gemma2", True), ("qwen3_next", False)])
def test_a_gain_to_which_mlx_may_have_added_one_proves_no_domain(
    tmp_path: Path, model_type: str, has_domain: bool
) -> None:
    config = {"model_type": model_type, "architectures": ["XForCausalLM"], "tie_word_embeddings": False}
    inputs = found(mlx_model(tmp_path / "m", {**mlx_config(), **config})).inputs
    assert inputs is not None
    assert (inputs.domain is not None) == has_domain


@pytest.mark.parametrize(("saved_by", "has_domain"), [("pt", True), ("mlx", False)])
def test_a_head_that_mlx_saved_as_floats_has_the_same_doubt(
    tmp_path: Path, saved_by: str, has_domain: bool
) -> None:
    config = {"model_type": "qwen3_next", "architectures": ["XForCausalLM"], "tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps({**mlx_config(), **config, "quantization": None}))
    tensors = {"lm_head.weight": np.ones((6, 128), np.float32), "model.norm.weight": np.ones(128, np.float32)}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": saved_by})
    inputs = found(tmp_path).inputs
    assert inputs is not None
    assert (inputs.domain is not None) == has_domain


def test_a_large_quantised_matrix_stays_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors, _ = mlx_layer("lm_head", rows=50)
    folder = write(tmp_path / "m", mlx_config(), tensors)
    whole = np.asarray(load_head(folder).weight)
    monkeypatch.setattr(quantised_rows, "_LARGEST_HELD", 0)
    monkeypatch.setattr(quantised_rows, "_BLOCK_VALUES", 7 * 128)
    rows: Any = load_head(folder).weight
    assert isinstance(rows, StoredRows)
    assert rows.nbytes == sum(array.nbytes for array in tensors.values())
    assert np.array_equal(np.asarray(rows), whole)
    assert np.array_equal(rows[np.array([41, 3, 3])], whole[[41, 3, 3]])


def test_packed_words_are_mapped_not_read(tmp_path: Path) -> None:
    words: Any = tensors_of(mlx_model(tmp_path / "m") / "model.safetensors").read_array("lm_head.weight")
    assert isinstance(words.base, np.memmap)


def test_a_head_in_a_file_larger_than_memory_is_read(tmp_path: Path) -> None:
    tensors, expected = mlx_layer("lm_head")
    data = file_with(tensors)
    length = int.from_bytes(data[:8], "little")
    header, values = json.loads(data[8 : 8 + length]), data[8 + length :]
    body = 2**36
    places = [len(values), len(values) + body]
    header["model.body.weight"] = {"dtype": "U32", "shape": [2**17, 2**17], "data_offsets": places}
    text = json.dumps(header).encode()
    path = write(tmp_path / "m", mlx_config(), {}) / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + values)
        file.truncate(8 + len(text) + len(values) + body)  # a hole: the file takes no room on the disk
    assert holds_exactly(load_head(path.parent).weight, expected)


def test_a_changed_head_is_not_written_into_packed_words(tmp_path: Path) -> None:
    path = mlx_model(tmp_path / "m") / "model.safetensors"
    finding, head = found(path), load_head(path)
    changed = Head(np.asarray(head.weight) + 1.0)
    with pytest.raises(InputError, match="can't be written back without loss"):
        write_head(str(path), finding, head, changed, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def test_weights_that_float32_would_round_are_float64(tmp_path: Path) -> None:
    tensors, expected = mlx_layer("lm_head", dtype=np.float32)
    tensors["lm_head.biases"][2, 1] = 3.0
    head = load_head(write(tmp_path / "m", mlx_config(), tensors))
    assert head.weight.dtype == np.float64
    assert holds_exactly(head.weight, expected)


def test_weights_that_float64_would_round_are_refused(tmp_path: Path) -> None:
    tensors, _ = mlx_layer("lm_head", dtype=ml_dtypes.bfloat16)
    tensors["lm_head.biases"][2, 1] = 1e30
    with pytest.raises(LoadError, match="float64 would round"):
        load_head(write(tmp_path / "m", mlx_config(), tensors))


def test_any_float16_scales_and_biases_fit_float64(tmp_path: Path) -> None:
    tensors, expected = mlx_layer("lm_head", bits=8, columns=128)
    tensors["lm_head.scales"][:2] = [[5.96e-8, 65504.0], [-65504.0, 6e-8]]
    tensors["lm_head.biases"][:2] = [[65504.0, 5.96e-8], [-65504.0, 0.0]]
    assert holds_exactly(load_head(write(tmp_path / "m", mlx_config(8), tensors)).weight, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["lm_head.scales", "lm_head.biases"])
def test_scales_that_are_not_finite_are_refused(tmp_path: Path, part: str, value: float) -> None:
    tensors, _ = mlx_layer("lm_head")
    tensors[part][3, 0] = value
    with pytest.raises(LoadError, match="every weight must be finite"):
        load_head(write(tmp_path / "m", mlx_config(), tensors))


SCALES = mlx_layer("lm_head")[0]["lm_head.scales"]


@pytest.mark.parametrize(
    ("config", "changes", "complaint"),
    [
        (LLAMA, {}, "config.json should say .* but does not"),
        (mlx_config(7), {}, "'bits': 7.*Expected bits"),
        (mlx_config(4, 48), {}, "Expected bits"),
        (mlx_config("4"), {}, "Expected bits"),
        (mlx_config(lm_head=False), {}, "False. Expected bits"),
        (mlx_config(lm_head={"bits": 4}), {}, "Expected bits"),
        (mlx_config(mode="mxfp4"), {}, "mode 'mxfp4'"),
        (mlx_config(4, 16, mode="nvfp4"), {"biases": None}, "mode 'nvfp4'"),
        (mlx_config(8), {}, "don't fit together as MLX 8-bit"),
        (mlx_config(4, 32), {}, "don't fit together"),
        (mlx_config(), {"biases": None}, r"no lm_head.biases"),
        (mlx_config(), {"scales": None}, "quantised"),
        (mlx_config(), {"biases": SCALES[:5]}, "don't fit together"),
        (mlx_config(), {"biases": SCALES.astype(np.float32)}, "don't fit together"),
        (mlx_config(), {"scales": SCALES.reshape(-1)}, "don't fit together"),
        (mlx_config(), {"scales": np.ones((6, 2), np.uint8)}, "scales of an unknown type"),
        (mlx_config(), {"lora_a": np.ones((6, 2), np.float32)}, "lm_head.lora_a, whose meaning"),
    ],
)
def test_mlx_layers_that_are_not_understood_are_refused(
    tmp_path: Path, config: Config, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(mlx_model(tmp_path / "m", config, **changes))


@pytest.mark.parametrize(
    "config",
    [
        {**mlx_config(), "quantization_config": {"bits": 8, "group_size": 32}},
        {
            **mlx_config(),
            "quantization_config": {"bits": 4, "group_size": 64, "lm_head": {"bits": 8, "group_size": 32}},
        },
        mlx_config(**{"language_model.lm_head": {"bits": 8, "group_size": 32}}),
    ],
    ids=["two settings", "two settings of the layer", "two names"],
)
def test_settings_that_can_be_read_in_two_ways_are_refused(tmp_path: Path, config: Config) -> None:
    with pytest.raises(AmbiguousError):
        load_head(mlx_model(tmp_path / "m", config))


def test_the_same_settings_twice_are_fine(tmp_path: Path) -> None:
    config = mlx_config()
    both = {**config, "quantization_config": config["quantization"]}
    once, again = (load_head(mlx_model(tmp_path / str(len(each)), each)) for each in (config, both))
    assert once.sha256() == again.sha256()


# ---------------------------------------------------------------------- 8-bit floats


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("kind", FP8)
@pytest.mark.parametrize("end", ["_scale", "_scale_inv"])
@pytest.mark.parametrize(
    ("shape", "block"),
    [
        ((), (7, 10)),
        ((1,), (7, 10)),
        ((7,), (1, 10)),
        ((7, 1), (1, 10)),
        ((2, 3), (4, 4)),
        ((1, 3), (128, 4)),
    ],
)
def test_eight_bit_floats_are_multiplied_by_their_scales_exactly(
    tmp_path: Path, kind: str, end: str, dtype: Any, shape: tuple[int, ...], block: tuple[int, int]
) -> None:
    values, scales = fp8_values(kind), fp8_scales(*shape, dtype=dtype)
    config = {**LLAMA, "quantization_config": {"quant_method": "fp8", "weight_block_size": list(block)}}
    tensors = {"lm_head.weight": values, f"lm_head.weight{end}": scales, **norm(10)}
    head = load_head(write(tmp_path / "m", config, tensors))
    by_block = scales.reshape(-(-7 // block[0]), -(-10 // block[1]))

    def expected(row: int, column: int) -> Fraction:
        return fraction(values[row, column]) * fraction(by_block[row // block[0], column // block[1]])

    assert head.weight.dtype == (np.float64 if dtype is np.float32 else np.float32)
    assert holds_exactly(head.weight, expected)


def test_what_feeds_an_eight_bit_head_is_rounded_and_proves_no_domain(tmp_path: Path) -> None:
    finding = found(fp8_model(tmp_path / "m", input_scale=fp8_scales()))
    assert str(finding.weight) == "lm_head.weight (7 × 10, float8_e4m3fn, a scale for each row)"
    assert finding.inputs is not None
    assert finding.inputs.domain is None
    assert "round to 8 bits" in finding.inputs.description


def test_extreme_scales_of_eight_bit_floats_are_exact(tmp_path: Path) -> None:
    scales = np.array([[2.0**-149], [2.0**-126], [2.0**127], [1.0], [0.0], [-1.0], [2.0**20]], np.float32)
    head = load_head(fp8_model(tmp_path / "m", weight_scale=scales))
    values = fp8_values("e4m3")
    assert holds_exactly(
        head.weight, lambda row, column: fraction(values[row, column]) * fraction(scales[row, 0])
    )


@pytest.mark.parametrize(
    ("block", "changes", "complaint"),
    [
        (None, {"weight_scale": fp8_scales(2, 3)}, "neither one scale"),
        ([4, 5], {"weight_scale": fp8_scales(2, 3)}, "neither one scale"),
        ([4, 0], {"weight_scale": fp8_scales(2, 3)}, "neither one scale"),
        ([4, "4"], {"weight_scale": fp8_scales(2, 3)}, "neither one scale"),
        (None, {"weight_scale": fp8_scales(10)}, "neither one scale"),
        (None, {"weight_scale": np.ones((7, 1), np.uint8)}, "scales of an unknown type"),
        (None, {"weight_scale_2": fp8_scales()}, "weight_scale_2, whose meaning"),
        (None, {"weight_zero_point": fp8_scales(7, 1)}, "weight_zero_point, whose meaning"),
        (None, {"weight": np.ones((7, 10), np.uint8)}, "is quantised"),
    ],
)
def test_scales_that_are_not_understood_are_refused(
    tmp_path: Path, block: object, changes: dict[str, Any], complaint: str
) -> None:
    config = {**LLAMA, "quantization_config": {"weight_block_size": block}}
    with pytest.raises(LoadError, match=complaint):
        load_head(fp8_model(tmp_path / "m", config=config, **changes))


def test_two_kinds_of_scales_are_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousError, match=r"weight_scale and with lm_head\.weight_scale_inv"):
        load_head(fp8_model(tmp_path / "m", weight_scale_inv=fp8_scales(7, 1)))


# ---------------------------------------------------------------------- nf4


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
def test_4_bit_weights_are_table_times_largest_exactly(tmp_path: Path, kind: str, nested: bool) -> None:
    folder, expected = nf4_model(tmp_path / "m", kind=kind, nested=nested)
    head = load_head(folder)
    assert head.weight.shape == (10, 128)
    assert holds_exactly(head.weight, expected)
    finding = found(folder)
    assert str(finding.weight) == f"lm_head.weight (10 × 128, {kind}, blocks of 64)"
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, RMSNorm)


def test_nf4_weights_in_a_pytorch_file_are_the_same(tmp_path: Path) -> None:
    folder, expected = nf4_model(tmp_path / "m", nested=True)
    state = {name: torch.from_numpy(value) for name, value in load_file(folder / "model.safetensors").items()}
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert holds_exactly(load_head(folder).weight, expected)


def test_the_table_of_fp4_are_floats_of_two_and_one_bits_over_the_largest() -> None:
    # As bitsandbytes lists them by their bits (functional.get_4bit_type); over 12, rounded to float32.
    positive = [0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0]
    values = [np.float32(value / 12.0) for value in (*positive, *(-value for value in positive))]
    assert np.array_equal(_TABLES["fp4"], values)


def test_the_table_of_nf4_are_quantiles_of_the_normal_distribution() -> None:
    # Eight positive and seven negative ones, from a tail of 1 - 0.9677083 to the middle, scaled to 1.
    above, below = ([NormalDist().inv_cdf(p) for p in np.linspace(0.9677083, 0.5, n)[:-1]] for n in (9, 8))
    values = [*above, 0.0, *(-value for value in below)]
    assert np.allclose(_TABLES["nf4"], np.sort(values) / max(values), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("state", "changes", "complaint"),
    [
        ({"quant_type": "fp4"}, {}, "expected quant_type nf4"),
        ({"blocksize": 48}, {}, "expected quant_type nf4"),
        ({"blocksize": 256}, {}, "rows are whole blocks"),
        ({"blocksize": 32}, {}, r"absmax .* does not fit"),
        ({"shape": [10, 64]}, {}, "does not fit"),
        ({"shape": [-10, -128]}, {}, "expected quant_type nf4"),
        ({"shape": [10**30, 128]}, {}, "does not fit"),
        ({"shape": None}, {}, "expected quant_type nf4"),
        ({"nested_blocksize": 128}, {}, "nested_blocksize of 256"),
        ({"nested_offset": "0"}, {}, "a nested_offset"),
        ({}, {"weight.nested_quant_map": None}, "nested_quant_map' not found"),
        ({}, {"weight.nested_absmax": None}, r"absmax .* does not fit"),
        ({}, {"weight.quant_map": None}, "quant_map' not found"),
        ({}, {"weight.nested_absmax": np.ones(2, np.float32)}, r"nested_absmax .* does not fit"),
        ({}, {"weight.quant_state.bitsandbytes__fp4": np.ones(2, np.uint8)}, "two states of 4-bit weights"),
        ({}, {"weight.quant_state.bitsandbytes__nf4": np.ones(20, np.uint8)}, "is not valid JSON"),
        ({}, {"weight.quant_state.bitsandbytes__nf4": np.ones(2**15, np.uint8)}, "short JSON"),
        ({}, {"lora_a": np.ones(2, np.float32)}, "lm_head.lora_a, whose meaning"),
        (
            {},
            {"weight.quant_state.bitsandbytes__nf4": None},
            r"comes with lm_head\.weight\.absmax is quantised",
        ),
    ],
)
def test_nf4_weights_that_are_not_understood_are_refused(
    tmp_path: Path, state: Config, changes: dict[str, Any], complaint: str
) -> None:
    folder, _ = nf4_model(tmp_path / "m", nested=True, state=state, **changes)
    with pytest.raises(LoadError, match=complaint):
        load_head(folder)


def test_another_table_than_the_librarys_is_ambiguous(tmp_path: Path) -> None:
    folder, _ = nf4_model(tmp_path / "m", **{"weight.quant_map": _TABLES["nf4"][::-1]})
    with pytest.raises(AmbiguousError, match="is not that of nf4"):
        load_head(folder)


# ---------------------------------------------------------------------- damaged files


def disturbed(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, mostly in the header and never the file's length alone."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = (
            rng.randrange(8, min(len(changed), 600)) if rng.random() < 0.7 else rng.randrange(len(changed))
        )
        changed[place] = rng.choice((changed[place] ^ 1 << rng.randrange(8), rng.choice(b'0123456789[]",')))
    return bytes(changed[: rng.choice((len(changed), len(changed), rng.randrange(len(changed))))])


def mutated(rng: random.Random, folder: Path) -> None:
    for name in rng.choice((["model.safetensors"], ["config.json"], ["config.json", "model.safetensors"])):
        (folder / name).write_bytes(disturbed(rng, (folder / name).read_bytes()))


@pytest.mark.parametrize("seed", range(5))
def test_damaged_files_end_in_an_error_of_ours_or_in_a_head(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    outcomes = set()
    block = {**LLAMA, "quantization_config": {"weight_block_size": [4, 4]}}
    for case in range(40):
        folder = tmp_path / str(case)
        kind = rng.choice(("mlx", "fp8", "nf4"))
        if kind == "nf4":
            nf4_model(folder, nested=rng.random() < 0.5)
        elif kind == "mlx":
            mlx_model(folder, mlx_config(lm_head={"bits": 4, "group_size": 64}))
        else:
            fp8_model(folder, config=block, weight_scale=fp8_scales(2, 3))
        mutated(rng, folder)
        try:
            head = load_head(folder)
        except InputError:
            outcomes.add("refused")
        else:
            outcomes.add("read")
            assert math.isfinite(float(np.abs(np.asarray(head.weight)).max()))
    assert "refused" in outcomes
