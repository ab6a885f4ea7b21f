"""Heads in GGUF files: every type bit for bit as the gguf package reads it, every damaged file refused."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf_writer import Stored, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argmaxable.domain import LayerNorm, RMSNorm
from argmaxable.errors import LoadError
from argmaxable.load import load_head
from argmaxable.load.finding import Finding
from argmaxable.load.gguf import find
from argmaxable.load.registry import ReadOptions

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(6, 32)).astype(np.float32)
BIAS = RNG.normal(size=6).astype(np.float32)
GAIN = RNG.normal(size=32).astype(np.float32)
SHIFT = RNG.normal(size=32).astype(np.float32)
TOKENS = ("<s>", "a", "Ġb", "Ċ", "Ã", "<|x|>")
FLOATS = {Type.F32: np.float32, Type.F16: np.float16, Type.BF16: ml_dtypes.bfloat16, Type.F64: np.float64}
QUANTISED = sorted(gguf.quants._type_traits.keys() - FLOATS.keys())
# Types the package can write; the others are made of bytes.
WRITABLE = (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.TQ1_0, Type.TQ2_0)


def found(path: Path, **options: Any) -> Finding:
    return find(path, ReadOptions(**options))


def same_bits(left: NDArray[Any] | None, right: NDArray[Any]) -> bool:
    return (
        left is not None
        and left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


def as_stored(weight: NDArray[Any], kind: Type) -> Stored:
    array = weight.astype(FLOATS[kind])
    return (array.view(np.uint8), kind) if kind == Type.BF16 else array


def tame_bytes(rows: int, columns: int, kind: Type) -> NDArray[np.uint8]:
    """Blocks of a quantised matrix. No byte exceeds 0x3B, so every float16 in them is below 1."""
    values, size = gguf.GGML_QUANT_SIZES[kind]
    return RNG.integers(0, 0x3C, (rows, columns // values * size), np.uint8)


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_floats_come_back_bit_for_bit(tmp_path: Path, kind: Type) -> None:
    tensors = {"output.weight": as_stored(WEIGHT, kind), "output.bias": BIAS}
    head = load_head(write(tmp_path / "model.gguf", tensors))
    assert same_bits(head.weight, WEIGHT.astype(FLOATS[kind]))
    assert same_bits(head.bias, BIAS)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_floats_stay_memory_mapped(tmp_path: Path, kind: Type) -> None:
    array: Any = load_head(write(tmp_path / "model.gguf", {"output.weight": as_stored(WEIGHT, kind)})).weight
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    assert isinstance(array, mmap.mmap)


@pytest.mark.parametrize("kind", WRITABLE, ids=lambda kind: kind.name)
def test_quantised_weights_become_what_the_package_makes_of_them(tmp_path: Path, kind: Type) -> None:
    weight = RNG.normal(size=(6, 256)).astype(np.float32)
    quantised = gguf.quants.quantize(weight, kind)
    head = load_head(write(tmp_path / "model.gguf", {"output.weight": (quantised, kind)}))
    assert same_bits(head.weight, gguf.quants.dequantize(quantised, kind))
    assert np.abs(head.weight - weight).max() < np.abs(weight).max()


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_every_type_the_package_can_dequantise_is_read(tmp_path: Path, kind: Type) -> None:
    blocks = tame_bytes(5, 512, kind)
    finding = found(write(tmp_path / "model.gguf", {"output.weight": (blocks, kind)}))
    assert (finding.classes, finding.features) == (5, 512)
    assert finding.weight.dtype == kind.name
    assert same_bits(finding.head("head").weight, gguf.quants.dequantize(blocks, kind))


def test_q4_k_blocks_made_by_hand_have_the_values_of_the_formula(tmp_path: Path) -> None:
    # d, dmin, eight 6-bit scales and minima (the first four of each stored plainly), 256 4-bit numbers.
    scales, minima = [1, 2, 3, 4, 0, 0, 0, 0], [5, 6, 7, 8, 0, 0, 0, 0]
    numbers = RNG.integers(0, 16, 256)
    packed = numbers.reshape(4, 2, 32)
    block = (
        np.array([0.5, 0.25], np.float16).tobytes()
        + bytes(scales[:4] + minima[:4] + [0] * 4)
        + (packed[:, 0] | packed[:, 1] << 4).astype(np.uint8).tobytes()
    )
    expected = [
        0.5 * scales[each // 32] * number - 0.25 * minima[each // 32] for each, number in enumerate(numbers)
    ]
    blocks = np.frombuffer(block, np.uint8).reshape(1, -1)
    head = load_head(write(tmp_path / "model.gguf", {"output.weight": (blocks, Type.Q4_K)}))
    assert head.weight.tolist() == [expected]


def test_a_matrix_of_many_blocks_is_dequantised_without_seams(tmp_path: Path) -> None:
    rows = 2 * 2**20 // 256 + 3  # a little more than two blocks of the reader
    blocks = tame_bytes(rows, 256, Type.Q8_0)
    path = write(tmp_path / "model.gguf", {"output.weight": (blocks, Type.Q8_0)})
    expected = gguf.quants.dequantize(blocks, Type.Q8_0)
    assert same_bits(load_head(path).weight, expected)
    assert same_bits(load_head(path, tensor="output.weight", transpose=True).weight, expected.T.copy())


def test_weights_that_overflow_are_refused(tmp_path: Path) -> None:
    blocks = np.full((2, 34), 0xFF, np.uint8)  # a scale of NaN
    path = write(tmp_path / "model.gguf", {"output.weight": (blocks, Type.Q8_0)})
    with pytest.raises(LoadError, match="every weight must be finite"):
        load_head(path)


@pytest.mark.parametrize("kind", [Type.F32, Type.Q8_0], ids=lambda kind: kind.name)
def test_transpose_reads_features_by_classes(tmp_path: Path, kind: Type) -> None:
    stored = gguf.quants.quantize(WEIGHT, kind)
    path = write(tmp_path / "model.gguf", {"output.weight": (stored, kind)}, tokens=TOKENS)
    head = load_head(path, transpose=True)
    assert same_bits(head.weight, gguf.quants.dequantize(stored, kind).T.copy())
    assert head.labels is None


# ---------------------------------------------------------------------- which tensor


def test_the_output_layer_comes_before_the_embedding(tmp_path: Path) -> None:
    finding = found(
        write(tmp_path / "model.gguf", {"token_embd.weight": WEIGHT + 1, "output.weight": WEIGHT})
    )
    assert same_bits(finding.read()[0], WEIGHT)
    assert [str(each) for each in finding.alternatives] == ["token_embd.weight (6 × 32, float32)"]


def test_without_an_output_layer_the_embedding_is_tied(tmp_path: Path) -> None:
    tensors = {"token_embd.weight": WEIGHT, "output.bias": BIAS, "blk.0.ffn_up.weight": WEIGHT}
    finding = found(write(tmp_path / "model.gguf", tensors))
    assert finding.weight.name == "token_embd.weight"
    assert "no output.weight" in finding.why
    assert same_bits(finding.head("head").bias, BIAS)
    assert finding.alternatives == ()


def test_tensor_and_bias_tensor_choose_others(tmp_path: Path) -> None:
    tensors = {"output.weight": WEIGHT + 1, "cls.weight": WEIGHT, "cls.bias": BIAS, "other": BIAS + 1}
    path = write(tmp_path / "model.gguf", tensors)
    assert same_bits(load_head(path, tensor="cls.weight").weight, WEIGHT)
    assert same_bits(load_head(path, tensor="cls.weight").bias, BIAS)
    assert same_bits(load_head(path, tensor="cls.weight", bias_tensor="other").bias, BIAS + 1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tensor": "absent"}, r"'absent' not found \(3 tensors\).*output\.weight \(6 × 32, float32\)"),
        ({"tensor": "vector"}, r"vector \(32, float32\) is no matrix"),
        ({"bias_tensor": "absent"}, r"'absent' not found"),
        ({"bias_tensor": "vector"}, r"vector \(32, float32\) does not fit 6 classes"),
    ],
)
def test_a_wrong_name_is_reported(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    tensors = {"output.weight": WEIGHT, "vector": GAIN, "blk.0.x": WEIGHT}
    path = write(tmp_path / "model.gguf", tensors)
    with pytest.raises(LoadError, match=complaint):
        load_head(path, **options)


def test_a_model_without_either_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"cls.weight": WEIGHT})
    with pytest.raises(LoadError, match=r"neither output\.weight nor token_embd\.weight.*cls\.weight"):
        load_head(path)


@pytest.mark.parametrize(
    ("architecture", "kind"), [("bert", "model"), ("llama", "adapter"), ("clip", "mmproj")]
)
def test_files_without_output_layer_say_so_and_offer_the_embedding(
    tmp_path: Path, architecture: str, kind: str
) -> None:
    path = write(
        tmp_path / "model.gguf",
        {"token_embd.weight": WEIGHT},
        {"general.type": kind},
        architecture=architecture,
    )
    with pytest.raises(LoadError, match=rf"no output layer.*{kind}.*'{architecture}'.*token_embd\.weight"):
        load_head(path)
    assert same_bits(load_head(path, tensor="token_embd.weight").weight, WEIGHT)


def write_parts(folder: Path) -> list[Path]:
    tensors = {"token_embd.weight": WEIGHT + 1, "blk.0.x": WEIGHT, "output.weight": WEIGHT}
    write(folder / "model.gguf", tensors, tokens=TOKENS, split_max_tensors=1)
    return sorted(folder.glob("*.gguf"))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_split_model_is_read_from_any_of_its_parts(tmp_path: Path, part: int) -> None:
    parts = write_parts(tmp_path)
    assert len(parts) == 3
    finding = found(parts[part])
    assert same_bits(finding.read()[0], WEIGHT)
    assert finding.labels is not None


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    parts[2].unlink()
    with pytest.raises(LoadError, match=rf"3 parts.*{parts[2].name} is missing"):
        load_head(parts[0])


def test_a_renamed_part_is_refused(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    with pytest.raises(LoadError, match=r"3 parts.*-00001-of-00003\.gguf"):
        load_head(parts[0].rename(tmp_path / "renamed.gguf"))


# ---------------------------------------------------------------------- labels


def test_byte_level_tokens_are_readable(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=TOKENS)
    assert load_head(path).labels == ("<s>", "a", " b", "\n", "<0xC3>", "<|x|>")


@pytest.mark.parametrize("tokenizer", ["llama", "t5", "bert"])
def test_sentencepiece_tokens_are_readable(tmp_path: Path, tokenizer: str) -> None:
    tokens = ("<s>", "<0x0A>", "▁b", "Ġ", "é", "x")
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=tokens, tokenizer=tokenizer)
    assert load_head(path).labels == ("<s>", "<0x0A>", " b", "Ġ", "é", "x")


def test_fewer_tokens_than_rows_are_padding(tmp_path: Path) -> None:
    finding = found(write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=TOKENS[:4]))
    assert finding.padding == 2
    assert finding.head("head").labels == ("<s>", "a", " b", "\n", "<padding 0>", "<padding 1>")


def test_more_tokens_than_rows_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=(*TOKENS, "g"))
    with pytest.raises(LoadError, match="7 labels for 6 classes"):
        load_head(path)


def test_a_file_without_tokenizer_has_no_labels(tmp_path: Path) -> None:
    assert load_head(write(tmp_path / "model.gguf", {"output.weight": WEIGHT})).labels is None


# ---------------------------------------------------------------------- what feeds the head


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        *((name, RMSNorm) for name in ("llama", "qwen2", "qwen3", "gemma", "gemma3", "phi3", "mistral3")),
        *((name, LayerNorm) for name in ("gpt2", "falcon", "bloom", "starcoder2", "gptneox", "phi2")),
    ],
)
def test_the_final_norm_follows_from_the_architecture(
    tmp_path: Path, architecture: str, kind: type[RMSNorm | LayerNorm]
) -> None:
    tensors = {"token_embd.weight": WEIGHT, "output_norm.weight": GAIN, "output_norm.bias": SHIFT}
    inputs = found(write(tmp_path / "model.gguf", tensors, architecture=architecture)).inputs
    assert inputs is not None
    assert inputs.domain == kind(GAIN, SHIFT)
    assert "output_norm.weight and output_norm.bias" in inputs.description


def test_a_norm_without_shift_has_none(tmp_path: Path) -> None:
    tensors = {"output.weight": WEIGHT, "output_norm.weight": GAIN}
    inputs = found(write(tmp_path / "model.gguf", tensors)).inputs
    assert inputs is not None
    assert inputs.domain == RMSNorm(GAIN)


@pytest.mark.parametrize(
    ("norm", "architecture", "words"),
    [
        (GAIN, "unheard-of", "unknown for the architecture 'unheard-of'"),
        (None, "llama", "no output_norm.weight"),
        (GAIN[:5], "llama", "should have 32 finite numbers"),
        (np.full(32, np.inf, np.float32), "llama", "should have 32 finite numbers"),
    ],
    ids=["unknown", "missing", "short", "infinite"],
)
def test_no_domain_is_proposed_where_the_file_proves_none(
    tmp_path: Path, norm: NDArray[Any] | None, architecture: str, words: str
) -> None:
    tensors: dict[str, Stored] = {"output.weight": WEIGHT}
    if norm is not None:
        tensors["output_norm.weight"] = norm
    inputs = found(write(tmp_path / "model.gguf", tensors, architecture=architecture)).inputs
    assert inputs is not None
    assert inputs.domain is None
    assert words in inputs.description


@pytest.mark.parametrize("key", ["final_logit_softcapping", "logit_scale"])
def test_increasing_changes_of_the_logits_are_noted(tmp_path: Path, key: str) -> None:
    finding = found(write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, {f"llama.{key}": 30.0}))
    assert [note for note in finding.notes if key in note and "argmax" in note]


def test_a_negative_scale_of_the_logits_is_refused_unless_the_tensor_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, {"llama.logit_scale": -1.0})
    with pytest.raises(LoadError, match=r"logit_scale is -1\.0"):
        load_head(path)
    assert same_bits(load_head(path, tensor="output.weight").weight, WEIGHT)


def test_a_scale_of_the_product_is_noted_where_there_is_no_bias(tmp_path: Path) -> None:
    scale = np.array([0.5], np.float32)
    finding = found(write(tmp_path / "a.gguf", {"output.weight": WEIGHT, "output.scale": scale}))
    assert [note for note in finding.notes if "output.scale 0.5" in note]
    biased = {"output.weight": WEIGHT, "output.scale": scale, "output.bias": BIAS}
    with pytest.raises(LoadError, match=r"multiplied by output\.scale"):
        load_head(write(tmp_path / "b.gguf", biased))


def test_quantised_weights_are_noted(tmp_path: Path) -> None:
    stored = gguf.quants.quantize(WEIGHT, Type.Q4_0)
    finding = found(write(tmp_path / "model.gguf", {"output.weight": (stored, Type.Q4_0)}))
    assert finding.notes == ("the weights are stored as Q4_0 and dequantised to float32",)


# ---------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    tensors = {"output.weight": WEIGHT[:, :4].copy(), "output_norm.weight": GAIN[:4].copy()}
    write(path, tensors, {"llama.sizes": [1, 2, 3], "llama.logit_scale": 2.0}, tokens=TOKENS)
    return path.read_bytes()


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, small_file: bytes) -> None:
    path = tmp_path / "model.gguf"
    # The writer pads the last tensor, the norm's 16 bytes, to 32.
    for size in range(len(small_file) - 17, -1, -7):
        path.write_bytes(small_file[:size])
        with pytest.raises(LoadError):
            load_head(path)


def test_bytes_that_are_no_gguf_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(LoadError, match="does not begin with GGUF"):
        load_head(tmp_path / "model.gguf")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=8)), max_size=6))
def test_damage_of_any_kind_ends_in_a_head_or_a_load_error(
    tmp_path: Path, small_file: bytes, changes: list[tuple[int, bytes]]
) -> None:
    path = tmp_path / "model.gguf"
    data = bytearray(small_file)
    for place, new in changes:
        start = place % len(data)
        data[start : start + len(new)] = new
    path.write_bytes(data)
    try:
        load_head(path)
    except LoadError as error:
        assert str(error)  # noqa: PT017 - any LoadError is right


def header(*, version: int = 3, tensors: int = 0, keys: int = 0, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def tensor(name: bytes, shape: tuple[int, ...], kind: int, offset: int = 0) -> bytes:
    return (
        string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", kind, offset)
    )


MATRIX = tensor(b"output.weight", (2, 1), Type.F32)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (header(version=1), "version 1 is not 2 or 3"),
        (header(version=3 << 24), "big-endian"),
        (header(tensors=2**63), "more than"),
        (header(keys=2**64 - 1), "more than"),
        (header(keys=1, rest=struct.pack("<Q", 2**64 - 1)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<I", 99)), "type 99"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 8, 2**60)), "more than"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 5, 2**60)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQQ", 9, 8, 9, 2**64 - 1)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 9, 1)), "type 9 of an array"),
        (header(keys=2, rest=(string(b"k") + struct.pack("<II", 4, 1)) * 2), "'k' occurs twice"),
        (header(keys=1, rest=string(b"general.alignment") + struct.pack("<II", 4, 0)), "alignment is 0"),
        (header(tensors=2, rest=MATRIX * 2), "same name"),
        (header(tensors=1, rest=tensor(b"output.weight", (1,) * 5, Type.F32)), "5 dimensions"),
        (header(tensors=1, rest=tensor(b"output.weight", (2**62, 2**62), Type.F32)), "should end at byte"),
        (header(tensors=1, rest=tensor(b"output.weight", (1, 1), Type.F32, 2**64 - 1)), "should end at byte"),
        (header(tensors=1, rest=tensor(b"output.weight", (0, 5), Type.F32)), "is no matrix"),
        (header(tensors=1, rest=tensor(b"output.weight", (33, 1), Type.Q8_0)), "no multiple of its blocks"),
        (header(tensors=1, rest=tensor(b"output.weight", (1, 1), 9999)), r"unknown type 9999.*Update gguf"),
        (header(tensors=1, rest=tensor(b"output.weight", (1, 1), Type.I32)), r"I32.*can't turn into floats"),
    ],
)
def test_absurd_declarations_are_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "model.gguf")


def test_tokens_that_are_no_utf8_stay_recognisable(tmp_path: Path) -> None:
    tokens = string(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1) + string(b"a\xff")
    data = header(tensors=1, keys=1, rest=tokens + MATRIX)
    (tmp_path / "model.gguf").write_bytes(data + bytes(-len(data) % 32 + 8))
    assert load_head(tmp_path / "model.gguf").labels == ("a\\xff",)


# ---------------------------------------------------------------------- the package


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = gguf.quants.quantize(WEIGHT, Type.Q8_0)
    path = write(tmp_path / "model.gguf", {"output.weight": (stored, Type.Q8_0)})
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(LoadError, match=r"needs the package gguf: pip install 'argmaxable\[gguf\]'"):
        load_head(path)


def test_floats_are_read_without_the_package(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=TOKENS)
    program = (
        "import sys; from argmaxable.load import load_head; load_head(sys.argv[1]); "
        "assert 'gguf' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "model.gguf"], check=True, env=environment)
