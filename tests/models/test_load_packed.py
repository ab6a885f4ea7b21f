"""Heads that bitsandbytes, GPTQ, AWQ and compressed-tensors quantised: read exactly, or refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoint_writer import LLAMA, Config, Tensors, found, fraction, holds_exactly, norm, write
from numpy.typing import NDArray

from argmaxable.core.balls import RMSNorm
from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models import load_head
from argmaxable.models.fetch.hub import _files_with_head

ROWS, COLUMNS, GROUP = 16, 96, 32
Expected = Callable[[int, int], Fraction]


def words(steps: NDArray[Any], bits: int) -> NDArray[np.int32]:
    """Rows of numbers as one long number each, of which the first is the lowest part, in 32-bit words."""
    size = -(-steps.shape[1] * bits // 32) * 4
    rows = [sum(int(step) << (bits * place) for place, step in enumerate(row)) for row in steps]
    return np.stack([np.frombuffer(row.to_bytes(size, "little"), "<i4") for row in rows])


def saved(folder: Path, config: Config, layer: dict[str, Any]) -> Path:
    """A model whose head is this layer; None leaves a tensor out."""
    kept = {f"lm_head.{name}": value for name, value in layer.items() if value is not None}
    return write(folder, {**LLAMA, "quantization_config": config}, {**norm(COLUMNS), **kept})


# ---------------------------------------------------------------------- bitsandbytes, 8 bits


def int8_layer() -> Tensors:
    rng = np.random.default_rng(0)
    return {
        "weight": rng.integers(-127, 128, (ROWS, COLUMNS)).astype(np.int8),
        "SCB": rng.uniform(0.01, 2.0, ROWS).astype(np.float32),
        "weight_format": np.zeros((), np.uint8),
    }


def test_int8_weights_are_rounded_as_the_library_does_on_a_cpu(tmp_path: Path) -> None:
    layer = int8_layer()
    folder = saved(tmp_path / "m", {"quant_method": "bitsandbytes"}, layer)
    head = load_head(folder)

    def expected(row: int, column: int) -> Fraction:
        factor = np.float32(float(layer["SCB"][row]) * float(np.float32(1 / 127)))
        return fraction(np.float32(float(factor) * float(layer["weight"][row, column])))

    assert head.weight.dtype == np.float32
    assert holds_exactly(head.weight, expected)
    finding = found(folder)
    assert finding.inputs is not None
    assert finding.inputs.domain is None
    assert "round to 8 bits" in finding.inputs.description


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"SCB": np.ones(ROWS + 1, np.float32)}, "does not fit its weight"),
        ({"SCB": np.ones(ROWS, np.float16)}, "does not fit its weight"),
        ({"weight_format": np.ones((), np.uint8)}, "not stored row by row"),
        ({"lora_a": np.ones(2, np.float32)}, "lora_a, whose meaning"),
        ({"SCB": None}, "is quantised"),
    ],
)
def test_int8_weights_that_are_not_understood_are_refused(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path / "m", {}, {**int8_layer(), **changes}))


# ---------------------------------------------------------------------- GPTQ


def gptq_layer(
    bits: int = 4,
    *,
    zero: int | None = None,
    group: int = GROUP,
    dtype: Any = np.float16,
    less: int = 1,
    order: NDArray[Any] | None = None,
) -> tuple[dict[str, Any], Expected]:
    """A layer in which every zero point is `zero`, or any; `less` is what zero points are stored less."""
    rng = np.random.default_rng(bits)
    rows = 32
    groups = -(-COLUMNS // group)
    steps = rng.integers(0, 2**bits, (rows, COLUMNS))
    zeros = rng.integers(1, 2**bits, (groups, rows)) if zero is None else np.full((groups, rows), zero)
    scales = rng.uniform(0.001, 0.1, (groups, rows)).astype(dtype)
    places = np.arange(COLUMNS) // group if order is None else order
    layer = {
        "qweight": np.ascontiguousarray(words(steps, bits).T),
        "qzeros": words(zeros - less, bits),
        "scales": scales,
        "g_idx": places.astype(np.int32),
    }

    def expected(row: int, column: int) -> Fraction:
        at = places[column], row
        return (int(steps[row, column]) - int(zeros[at])) * fraction(scales[at])

    return layer, expected


def gptq(bits: int = 4, group: int = GROUP, **more: Any) -> Config:
    return {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": group,
        "sym": False,
        "desc_act": False,
        **more,
    }


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_gptq_weights_are_scale_times_step_less_zero_exactly(tmp_path: Path, bits: int, dtype: Any) -> None:
    layer, expected = gptq_layer(bits, dtype=dtype)
    folder = saved(tmp_path / "m", gptq(bits), layer)
    head = load_head(folder)
    assert head.weight.shape == (32, COLUMNS)
    assert holds_exactly(head.weight, expected)
    finding = found(folder)
    assert finding.weight.dtype == f"GPTQ {bits}-bit, groups of 32"
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, RMSNorm)


@pytest.mark.parametrize(
    ("config", "settings", "left_out"),
    [
        (gptq(checkpoint_format="gptq_v2"), {"less": 0}, ()),
        (gptq(sym=True), {"zero": 8}, ()),
        (gptq(group=-1), {"group": COLUMNS}, ()),
        (gptq(), {}, ("g_idx",)),
        (
            gptq(desc_act=True),
            {"order": np.random.default_rng(1).permutation(np.arange(COLUMNS) // GROUP)},
            (),
        ),
        (gptq(bits=8, group=48, dynamic={"lm_head": {"bits": 4}}), {}, ()),
    ],
    ids=["v2", "symmetric", "one group", "no g_idx", "act order", "own settings"],
)
def test_gptq_in_its_other_forms(
    tmp_path: Path, config: Config, settings: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    layer, expected = gptq_layer(**settings)
    head = load_head(saved(tmp_path / "m", config, {**layer, **dict.fromkeys(left_out)}))
    assert holds_exactly(head.weight, expected)


@pytest.mark.parametrize(
    ("config", "changes", "complaint"),
    [
        ({}, {}, "should say which of them"),
        (gptq(bits=5), {}, "Expected bits"),
        (gptq(checkpoint_format="marlin"), {}, "Expected bits"),
        (gptq(pack_dtype="int16"), {}, "Expected bits"),
        (gptq(bits=8), {}, "don't fit together"),
        (gptq(group=48), {}, "don't fit together"),
        (gptq(), {"scales": np.ones((3, 31), np.float16)}, "don't fit together"),
        (gptq(), {"scales": np.ones((3, 32), np.float64)}, "scales of an unknown type"),
        (gptq(), {"qzeros": np.ones((3, 5), np.int32)}, "don't fit together"),
        (gptq(), {"qzeros": None}, "qzeros' not found"),
        (gptq(desc_act=True), {"g_idx": np.full(COLUMNS, 3, np.int32)}, "beyond the 3"),
        (gptq(desc_act=True), {"g_idx": np.full(COLUMNS, -1, np.int32)}, "beyond the 3"),
        (gptq(), {"lora_A": np.ones(2, np.float32)}, "lora_A, whose meaning"),
    ],
)
def test_gptq_that_is_not_understood_is_refused(
    tmp_path: Path, config: Config, changes: dict[str, Any], complaint: str
) -> None:
    layer, _ = gptq_layer()
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path / "m", config, {**layer, **changes}))


@pytest.mark.parametrize(
    ("config", "settings", "changes", "complaint"),
    [
        (gptq(), {"zero": 16}, {}, "all ones"),
        (gptq(sym=True), {"zero": 7}, {}, "sym"),
        (gptq(), {"order": np.arange(COLUMNS)[::-1] // GROUP}, {}, "does not say desc_act"),
        (gptq(), {}, {"weight": np.ones((32, COLUMNS), np.float32)}, "each of which may be its weight"),
    ],
)
def test_gptq_that_programs_read_differently_is_ambiguous(
    tmp_path: Path, config: Config, settings: dict[str, Any], changes: dict[str, Any], complaint: str
) -> None:
    layer, _ = gptq_layer(**settings)
    with pytest.raises(AmbiguousError, match=complaint):
        load_head(saved(tmp_path / "m", config, {**layer, **changes}))


# ---------------------------------------------------------------------- AWQ

# The order of AutoAWQ (pack in its WQLinear_GEMM): the lowest four bits are column 0, the next column 2, …
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def awq_words(steps: NDArray[Any]) -> NDArray[np.int32]:
    return words(steps.reshape(len(steps), -1, 8)[:, :, AWQ_ORDER].reshape(steps.shape), 4)


def awq_layer() -> tuple[dict[str, Any], Expected]:
    rng = np.random.default_rng(9)
    steps, zeros = rng.integers(0, 16, (COLUMNS, ROWS)), rng.integers(0, 16, (3, ROWS))
    scales = rng.uniform(0.001, 0.1, (3, ROWS)).astype(np.float16)
    layer = {"qweight": awq_words(steps), "qzeros": awq_words(zeros), "scales": scales}

    def expected(row: int, column: int) -> Fraction:
        at = column // GROUP, row
        return (int(steps[column, row]) - int(zeros[at])) * fraction(scales[at])

    return layer, expected


def awq(**more: Any) -> Config:
    return {
        "quant_method": "awq",
        "bits": 4,
        "group_size": GROUP,
        "zero_point": True,
        "version": "gemm",
        **more,
    }


def test_awq_weights_are_scale_times_step_less_zero_exactly(tmp_path: Path) -> None:
    layer, expected = awq_layer()
    folder = saved(tmp_path / "m", awq(), layer)
    assert holds_exactly(load_head(folder).weight, expected)
    assert found(folder).weight.dtype == "AWQ 4-bit, groups of 32"


@pytest.mark.parametrize(
    ("config", "changes", "complaint"),
    [
        (awq(version="gemv"), {}, "version gemm"),
        (awq(zero_point=False), {}, "zero_point"),
        (awq(bits=8), {}, "Expected 4 bits"),
        (awq(group_size=48), {}, "don't fit together"),
        (awq(), {"g_idx": np.zeros(COLUMNS, np.int32)}, "g_idx, whose meaning"),
    ],
)
def test_awq_that_is_not_understood_is_refused(
    tmp_path: Path, config: Config, changes: dict[str, Any], complaint: str
) -> None:
    layer, _ = awq_layer()
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path / "m", config, {**layer, **changes}))


# ---------------------------------------------------------------------- compressed-tensors


def compressed(**weights: Any) -> Config:
    settings = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}
    group = {"targets": ["Linear"], "weights": {**settings, **weights}, "input_activations": None}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"0": group}}


def compressed_layer(
    bits: int = 4, *, group: int = GROUP, zeros: str = "", order: NDArray[Any] | None = None
) -> tuple[dict[str, Any], Expected]:
    """`zeros` is how zero points are stored: not at all, "packed" or "plain"."""
    rng = np.random.default_rng(bits)
    half, groups = 2 ** (bits - 1), COLUMNS // group
    steps = rng.integers(-half, half, (ROWS, COLUMNS))
    points = rng.integers(-half, half, (ROWS, groups)) if zeros else np.zeros((ROWS, groups), int)
    scales = rng.uniform(0.001, 0.1, (ROWS, groups)).astype(ml_dtypes.bfloat16)
    places = np.arange(COLUMNS) // group if order is None else order
    stored = {
        "": None,
        "packed": np.ascontiguousarray(words((points + half).T, bits).T),
        "plain": points.astype(np.int8),
    }
    layer = {
        "weight_packed": words(steps + half, bits),
        "weight_scale": scales,
        "weight_shape": np.array([ROWS, COLUMNS], np.int64),
        "weight_zero_point": stored[zeros],
        "weight_g_idx": None if order is None else places.astype(np.int32),
    }

    def expected(row: int, column: int) -> Fraction:
        at = row, places[column]
        return (int(steps[row, column]) - int(points[at])) * fraction(scales[at])

    return layer, expected


@pytest.mark.parametrize("zeros", ["", "packed", "plain"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_packed_weights_are_scale_times_step_less_zero_exactly(tmp_path: Path, bits: int, zeros: str) -> None:
    layer, expected = compressed_layer(bits, zeros=zeros)
    folder = saved(tmp_path / "m", compressed(num_bits=bits, symmetric=not zeros), layer)
    assert holds_exactly(load_head(folder).weight, expected)
    finding = found(folder)
    assert finding.weight.dtype == f"compressed-tensors {bits}-bit, groups of 32"
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, RMSNorm)


def test_packed_weights_with_a_scale_for_each_row(tmp_path: Path) -> None:
    layer, expected = compressed_layer(group=COLUMNS)
    folder = saved(tmp_path / "m", compressed(strategy="channel", group_size=None), layer)
    assert holds_exactly(load_head(folder).weight, expected)


def test_packed_weights_whose_columns_were_put_in_another_order(tmp_path: Path) -> None:
    layer, expected = compressed_layer(
        order=np.random.default_rng(1).permutation(np.arange(COLUMNS) // GROUP)
    )
    folder = saved(tmp_path / "m", compressed(actorder="group"), layer)
    assert holds_exactly(load_head(folder).weight, expected)


def test_rounded_inputs_have_no_domain(tmp_path: Path) -> None:
    layer, _ = compressed_layer()
    config = compressed()
    config["config_groups"]["0"]["input_activations"] = {"num_bits": 8}
    finding = found(saved(tmp_path / "m", config, layer))
    assert finding.inputs is not None
    assert finding.inputs.domain is None


@pytest.mark.parametrize(
    ("config", "changes", "complaint"),
    [
        ({}, {}, "How is in config.json"),
        (compressed(num_bits=3), {}, "other bits than 2, 4, 8"),
        (compressed(num_bits=8), {}, "don't fit together"),
        (compressed(group_size=48), {}, "don't fit together"),
        (compressed(symmetric=False), {}, "has no zero points"),
        (compressed(), {"weight_zero_point": np.zeros((ROWS, 3), np.int8)}, "has zero points"),
        (compressed(symmetric=False), {"weight_zero_point": np.zeros((ROWS, 2), np.int8)}, "does not fit"),
        (compressed(), {"weight_shape": np.array([ROWS, 0])}, f"says {ROWS} × 0"),
        (compressed(), {"weight_shape": np.array([ROWS])}, "two whole numbers"),
        (compressed(), {"weight_shape": None}, "weight_shape' not found"),
        (compressed(), {"weight_shape": np.array([2**40, 2**20])}, "don't fit together"),
        (compressed(), {"weight_g_idx": np.zeros(COLUMNS, np.int32)}, "does not divide"),
        (compressed(), {"weight_g_idx": np.zeros(4, np.int32)}, "for each of 96 columns"),
        (compressed(), {"weight_global_scale": np.ones(1, np.float32)}, "global_scale, whose meaning"),
    ],
)
def test_packed_weights_that_are_not_understood_are_refused(
    tmp_path: Path, config: Config, changes: dict[str, Any], complaint: str
) -> None:
    layer, _ = compressed_layer()
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path / "m", config, {**layer, **changes}))


def test_of_two_schemes_the_one_that_names_the_head_counts(tmp_path: Path) -> None:
    layer, expected = compressed_layer()
    config = compressed()
    config["config_groups"]["1"] = compressed(num_bits=8)["config_groups"]["0"]
    with pytest.raises(LoadError, match="says it in two ways"):
        load_head(saved(tmp_path / "twice", config, layer))
    config["config_groups"]["0"] = {**config["config_groups"]["0"], "targets": ["lm_head"]}
    assert holds_exactly(load_head(saved(tmp_path / "named", config, layer)).weight, expected)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
def test_whole_numbers_of_8_bits_with_scales(tmp_path: Path, groups: int, zeros: bool) -> None:
    rng = np.random.default_rng(groups)
    steps = rng.integers(-128, 128, (ROWS, COLUMNS)).astype(np.int8)
    points = rng.integers(-128, 128, (ROWS, groups)).astype(np.int8)
    scales = rng.uniform(0.001, 0.1, (ROWS, groups)).astype(np.float32)
    layer = {"weight": steps, "weight_scale": scales, "weight_zero_point": points if zeros else None}
    folder = saved(tmp_path / "m", compressed(num_bits=8, symmetric=not zeros), layer)

    def expected(row: int, column: int) -> Fraction:
        at = row, column * groups // COLUMNS
        return (int(steps[row, column]) - (int(points[at]) if zeros else 0)) * fraction(scales[at])

    assert holds_exactly(load_head(folder).weight, expected)


def test_zero_points_of_another_shape_are_refused(tmp_path: Path) -> None:
    layer = {
        "weight": np.zeros((ROWS, COLUMNS), np.int8),
        "weight_scale": np.ones((ROWS, 1), np.float32),
        "weight_zero_point": np.zeros((ROWS, 2), np.int8),
    }
    with pytest.raises(LoadError, match="as many 8-bit numbers"):
        load_head(saved(tmp_path / "m", compressed(num_bits=8, symmetric=False), layer))
    with pytest.raises(LoadError, match="contradicts its zero points"):
        load_head(saved(tmp_path / "m", compressed(num_bits=8), layer))
    with pytest.raises(LoadError, match="does not say so"):
        load_head(saved(tmp_path / "m", {"quant_method": "another"}, layer))


# ---------------------------------------------------------------------- heads that were left alone


@pytest.mark.parametrize(
    ("config", "body"),
    [
        (gptq(lm_head=False), ("qweight", "qzeros", "scales", "g_idx")),
        (awq(modules_to_not_convert=["lm_head"]), ("qweight", "qzeros", "scales")),
        ({**compressed(), "ignore": ["lm_head"]}, ("weight_packed", "weight_scale", "weight_shape")),
        ({"quant_method": "bitsandbytes", "llm_int8_skip_modules": ["lm_head"]}, ("weight", "SCB")),
    ],
    ids=["gptq", "awq", "compressed-tensors", "bitsandbytes"],
)
def test_a_head_that_was_not_quantised_is_read_as_it_is(
    tmp_path: Path, config: Config, body: tuple[str, ...]
) -> None:
    weight = np.random.default_rng(3).normal(size=(ROWS, COLUMNS)).astype(ml_dtypes.bfloat16)
    inside = {f"model.layers.0.mlp.up_proj.{name}": np.ones((8, 8), np.int32) for name in body}
    folder = write(
        tmp_path / "m",
        {**LLAMA, "quantization_config": config},
        {**norm(COLUMNS), **inside, "lm_head.weight": weight},
    )
    assert np.array_equal(np.asarray(load_head(folder).weight), weight)
    finding = found(folder)
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, RMSNorm)


def test_of_a_model_in_several_files_those_of_a_packed_head_are_fetched(tmp_path: Path) -> None:
    parts = ("qweight", "qzeros", "scales", "g_idx")
    files = {f"lm_head.{part}": f"{part}.safetensors" for part in parts}
    files |= {"model.norm.weight": "norm.safetensors", "model.layers.0.qweight": "body.safetensors"}
    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": ' + str(files).replace("'", '"') + "}")
    assert _files_with_head(index, None, None) == sorted(
        {*(f"{part}.safetensors" for part in parts), "norm.safetensors"}
    )
