"""Heads in GGUF files: every type bit for bit as the gguf package reads it, every damaged file refused."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import TokenType
from gguf_writer import Stored, write
from hypothesis import given, settings
from hypothesis import strategies as st
from norms import rounded
from numpy.typing import NDArray

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box
from argmaxable.core.domain import Domain
from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.finding import Finding
from argmaxable.models.gguf import architectures as gguf_architectures
from argmaxable.models.gguf.reader import find
from argmaxable.models.registry import ReadOptions

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(6, 32)).astype(np.float32)
BIAS = RNG.normal(size=6).astype(np.float32)
GAIN = RNG.normal(size=32).astype(np.float32)
SHIFT = RNG.normal(size=32).astype(np.float32)
TOKENS = ("<s>", "a", "Ġb", "Ċ", "Ã", "<|x|>")
TIED: dict[str, Stored] = {"token_embd.weight": WEIGHT, "output_norm.weight": GAIN}
OUTPUT: dict[str, Stored] = {"output.weight": WEIGHT}
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


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_bytes_of_any_value_become_what_the_package_makes_of_them(tmp_path: Path, kind: Type) -> None:
    blocks = RNG.integers(0, 256, tame_bytes(9, 512, kind).shape, np.uint8)
    weight, _ = found(write(tmp_path / "model.gguf", {"output.weight": (blocks, kind)})).read()
    with np.errstate(all="ignore"):  # scales that overflow and NaN
        assert same_bits(weight, gguf.quants.dequantize(blocks, kind))


@pytest.mark.parametrize("kind", sorted(set(Type) - {*FLOATS, *QUANTISED}), ids=lambda kind: kind.name)
def test_types_that_the_package_can_not_dequantise_are_refused(tmp_path: Path, kind: Type) -> None:
    values, size = gguf.GGML_QUANT_SIZES[kind]
    data = header(tensors=1, rest=tensor(b"output.weight", (values, 1), kind))
    (tmp_path / "model.gguf").write_bytes(data + bytes(-len(data) % 32 + size))
    with pytest.raises(LoadError, match=rf"output\.weight.*{kind.name}.*can't turn into floats"):
        load_head(tmp_path / "model.gguf")


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


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_one_row_is_read(tmp_path: Path, kind: Type) -> None:
    blocks = tame_bytes(1, 256, kind)
    path = write(tmp_path / "model.gguf", {"output.weight": (blocks, kind)})
    assert same_bits(load_head(path).weight, gguf.quants.dequantize(blocks, kind))


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_a_matrix_of_many_slices_is_dequantised_without_seams(tmp_path: Path, kind: Type) -> None:
    blocks = tame_bytes(3, 2**19, kind)  # the reader's slices hold two such rows
    path = write(tmp_path / "model.gguf", {"output.weight": (blocks, kind)})
    assert same_bits(load_head(path).weight, gguf.quants.dequantize(blocks, kind))


def test_a_transposed_matrix_of_many_slices_is_dequantised_without_seams(tmp_path: Path) -> None:
    rows = 2 * 2**20 // 256 + 3  # a little more than two slices of the reader
    blocks = tame_bytes(rows, 256, Type.Q8_0)
    path = write(tmp_path / "model.gguf", {"output.weight": (blocks, Type.Q8_0)})
    expected = gguf.quants.dequantize(blocks, Type.Q8_0)
    assert same_bits(load_head(path).weight, expected)
    assert same_bits(load_head(path, tensor="output.weight", transpose=True).weight, expected.T.copy())


@pytest.mark.parametrize("kind", [Type.Q8_0, Type.Q4_K, Type.IQ1_M], ids=lambda kind: kind.name)
def test_dequantising_needs_no_more_memory_beside_a_larger_matrix(tmp_path: Path, kind: Type) -> None:
    beside = []
    for slices in (2, 6):
        blocks = tame_bytes(slices, 2**20, kind)
        finding = found(write(tmp_path / f"{slices}.gguf", {"output.weight": (blocks, kind)}))
        tracemalloc.start()
        weight, _ = finding.read()
        beside.append(tracemalloc.get_traced_memory()[1] - weight.nbytes)
        tracemalloc.stop()
    assert beside[1] < beside[0] + 2**20


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
    tensors = {**TIED, "output.bias": BIAS, "blk.0.ffn_up.weight": WEIGHT}
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
        ({"tensor": "vector"}, r"vector \(32, float32\) is not a matrix"),
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
    ("architecture", "metadata", "extra", "words"),
    [
        ("bert", {}, {}, "no output layer.*'bert' end in embeddings"),
        ("gemma-embedding", {}, OUTPUT, "end in embeddings"),
        ("wavtokenizer-dec", {}, OUTPUT, "end in embeddings"),
        ("llama", {"general.type": "adapter"}, {}, "no output layer.*adapter.*'llama'"),
        ("clip", {"general.type": "mmproj"}, {}, "no output layer.*mmproj"),
        ("chameleon", {}, OUTPUT, "image tokens are taken out"),
        ("dflash", {}, OUTPUT, "the token before"),
        ("eagle3", {}, {}, r"no output\.weight: it uses the one of the model that it drafts for"),
        ("qwen3", {"qwen3.pooling_type": 3}, {}, r"no output\.weight: it is a model for embeddings"),
        ("lfm2", {}, {"dense_2.weight": WEIGHT}, r"no output\.weight: it is a model for embeddings"),
        ("unheard-of", {}, {}, r"'unheard-of' use token_embd\.weight for it is unknown"),
        ("t5", {}, {"enc.output_norm.weight": GAIN}, r"neither output\.weight nor a decoder found"),
    ],
)
def test_files_without_output_layer_say_so_and_offer_the_embedding(
    tmp_path: Path, architecture: str, metadata: dict[str, Any], extra: dict[str, Stored], words: str
) -> None:
    path = write(tmp_path / "model.gguf", {**TIED, **extra}, metadata, architecture=architecture)
    with pytest.raises(LoadError, match=rf"{words}.*token_embd\.weight \(6 × 32, float32\)"):
        load_head(path)
    finding = found(path, tensor="token_embd.weight")
    assert same_bits(finding.read()[0], WEIGHT)
    assert finding.inputs is None


def test_an_embedding_that_is_not_the_output_layer_has_neither_its_bias_nor_its_inputs(
    tmp_path: Path,
) -> None:
    tensors = {**TIED, "output.weight": WEIGHT + 1, "output.bias": BIAS}
    finding = found(write(tmp_path / "model.gguf", tensors, tokens=TOKENS), tensor="token_embd.weight")
    assert finding.bias is None
    assert finding.inputs is None
    assert finding.labels is not None


def test_heads_that_predict_further_ahead_are_offered(tmp_path: Path) -> None:
    ahead = "blk.7.nextn.shared_head_head.weight"
    finding = found(write(tmp_path / "model.gguf", {"output.weight": WEIGHT, ahead: WEIGHT}))
    assert [each.name for each in finding.alternatives] == [ahead]


# ---------------------------------------------------------------------- classifiers


def write_classifier(
    path: Path, architecture: str, extra: Mapping[str, Stored], metadata: Mapping[str, Any] | None = None
) -> Path:
    tensors = {"cls.output.weight": WEIGHT, "cls.output.bias": BIAS, **TIED, **extra}
    labels = {f"{architecture}.classifier.output_labels": list("uvwxyz")}
    return write(path, tensors, {**labels, **(metadata or {})}, architecture=architecture, tokens=TOKENS)


@pytest.mark.parametrize(
    ("architecture", "extra", "domain"),
    [
        ("bert", {"cls.weight": WEIGHT}, Box(-1, 1)),
        ("bert", {}, None),
        ("modern-bert", {"cls.weight": WEIGHT, "cls.norm.weight": GAIN}, rounded(LayerNorm, GAIN)),
    ],
    ids=["tanh", "nothing", "norm"],
)
def test_the_head_of_an_encoder_is_that_of_its_classifier(
    tmp_path: Path, architecture: str, extra: dict[str, Stored], domain: Domain | None
) -> None:
    finding = found(write_classifier(tmp_path / "model.gguf", architecture, extra))
    head = finding.head("head")
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)
    assert head.labels == tuple("uvwxyz")
    assert finding.inputs is not None
    assert finding.inputs.domain == domain


def test_the_head_of_a_reranker_is_that_of_its_classifier(tmp_path: Path) -> None:
    finding = found(write_classifier(tmp_path / "model.gguf", "qwen3", {}, {"qwen3.pooling_type": 4}))
    assert finding.weight.name == "cls.output.weight"
    assert finding.inputs is not None
    assert finding.inputs.domain == rounded(RMSNorm, GAIN)


def test_a_model_of_tokens_that_has_a_classifier_keeps_its_output_layer(tmp_path: Path) -> None:
    finding = found(write_classifier(tmp_path / "model.gguf", "qwen3", {}))
    assert finding.weight.name == "token_embd.weight"
    assert "cls.output.weight" in [each.name for each in finding.alternatives]


# ---------------------------------------------------------------------- split models


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


def test_parts_in_each_others_place_are_refused(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    parts[1].rename(tmp_path / "aside")
    parts[2].rename(parts[1])
    (tmp_path / "aside").rename(parts[2])
    with pytest.raises(LoadError, match=rf"{parts[1].name} does not say that it is number 2"):
        load_head(parts[0])


def test_parts_of_different_models_are_refused(tmp_path: Path) -> None:
    parts = {}
    for folder, tensors in (("a", {"output.weight": WEIGHT, "x": GAIN}), ("b", {"y": GAIN, **OUTPUT})):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "model.gguf", tensors, split_max_tensors=1)
        parts[folder] = sorted((tmp_path / folder).iterdir())
    parts["b"][1].replace(parts["a"][1])
    with pytest.raises(LoadError, match="not of one model: 1 tensors in all, expected 2"):
        load_head(parts["a"][0])


def test_a_first_part_may_hold_metadata_only(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", TIED, tokens=TOKENS, split_max_tensors=1, small_first_shard=True)
    parts = sorted(tmp_path.iterdir())
    assert len(parts) == 3
    finding = found(parts[2])
    assert same_bits(finding.read()[0], WEIGHT)
    assert finding.inputs is not None
    assert finding.inputs.domain == rounded(RMSNorm, GAIN)


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


@pytest.mark.parametrize(
    ("tokenizer", "pre", "tokens", "labels"),
    [
        ("gpt2", None, ("Ġb", "▁"), (" b", "▁")),
        ("gpt2", "sarvam-moe", ("▁b", "Ġ"), (" b", "Ġ")),
        ("gemma4", None, ("▁b", "Ġ"), (" b", "Ġ")),
        ("plamo2", None, ("▁b", "Ġ"), ("▁b", "Ġ")),
        ("rwkv", None, (r"\n\n", "it's"), ("\n\n", "it's")),
        ("rwkv", None, (r"\xe4\xb8\xad", r"\xe4\xb8"), ("中", r"\xe4\xb8")),
        ("rwkv", None, (r"\\n", r"\'\t"), (r"\n", "'\t")),
    ],
)
def test_tokens_are_read_in_the_writing_of_their_tokenizer(
    tmp_path: Path, tokenizer: str, pre: str | None, tokens: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    metadata = {} if pre is None else {"tokenizer.ggml.pre": pre}
    tensors = {"output.weight": WEIGHT[:2]}
    path = write(tmp_path / "model.gguf", tensors, metadata, tokens=tokens, tokenizer=tokenizer)
    assert load_head(path).labels == labels


@pytest.mark.parametrize("tokenizer", ["gpt2", "llama", "t5", "bert"])
@pytest.mark.parametrize("kind", [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED])
def test_control_and_added_tokens_are_literal(tmp_path: Path, tokenizer: str, kind: TokenType) -> None:
    tokens, types = ("a", "é", "<｜a▁b｜>"), (TokenType.NORMAL, kind, kind)
    tensors = {"output.weight": WEIGHT[:3]}
    path = write(tmp_path / "model.gguf", tensors, tokens=tokens, types=types, tokenizer=tokenizer)
    assert load_head(path).labels == tokens


def test_rows_that_converters_fill_are_padding(tmp_path: Path) -> None:
    tokens = ("a", "[PAD1]", "[PAD2]", "b", "[PAD4]", "▁[PAD5]")
    types = (1, TokenType.UNUSED, TokenType.NORMAL, 1, TokenType.UNUSED, TokenType.UNUSED)
    finding = found(write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=tokens, types=types))
    assert finding.padding == 2
    assert finding.head("head").labels == ("a", "<unused 1>", "[PAD2]", "b", "<padding 0>", "<padding 1>")


def test_a_vocabulary_of_padding_alone_is_none(tmp_path: Path) -> None:
    tokens, types = tuple(f"[PAD{k}]" for k in range(6)), (TokenType.UNUSED,) * 6
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=tokens, types=types)
    assert load_head(path).labels is None


def test_the_rows_of_qwen3tts_are_its_last_tokens(tmp_path: Path) -> None:
    tensors = {"output.weight": WEIGHT[:2], "token_embd.weight": WEIGHT}
    path = write(tmp_path / "model.gguf", tensors, architecture="qwen3tts", tokens=TOKENS)
    assert load_head(path).labels == ("<0xC3>", "<|x|>")
    assert load_head(path, tensor="token_embd.weight").labels == ("<s>", "a", " b", "\n", "<0xC3>", "<|x|>")


def test_the_rows_of_a_draft_with_a_vocabulary_of_its_own_get_no_labels(tmp_path: Path) -> None:
    tensors = {"output.weight": WEIGHT[:2], "d2t": np.array([3, 5], np.int64)}
    finding = found(write(tmp_path / "model.gguf", tensors, architecture="eagle3", tokens=TOKENS))
    assert finding.labels is None
    assert [note for note in finding.notes if "d2t" in note]


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
    assert inputs.domain == rounded(kind, GAIN, SHIFT)
    assert "output_norm.weight and output_norm.bias" in inputs.description


@pytest.mark.parametrize(
    ("architecture", "name", "epsilon", "domain"),
    [
        ("t5", "dec.output_norm", None, rounded(RMSNorm, GAIN)),
        ("lfm2", "token_embd_norm", None, rounded(RMSNorm, GAIN)),
        ("olmo", None, None, rounded(LayerNorm, np.ones(32))),
        ("talkie", None, None, rounded(RMSNorm, np.ones(32))),
        ("cohere2moe", "output_norm", "layer_norm_epsilon", rounded(LayerNorm, GAIN)),
        ("cohere2moe", "output_norm", "layer_norm_rms_epsilon", rounded(RMSNorm, GAIN)),
    ],
)
def test_architectures_with_a_norm_of_another_form(
    tmp_path: Path, architecture: str, name: str | None, epsilon: str | None, domain: Domain
) -> None:
    tensors = {"token_embd.weight": WEIGHT, **({} if name is None else {f"{name}.weight": GAIN})}
    metadata = {} if epsilon is None else {f"{architecture}.attention.{epsilon}": 1e-5}
    inputs = found(write(tmp_path / "model.gguf", tensors, metadata, architecture=architecture)).inputs
    assert inputs is not None
    assert inputs.domain == domain


@pytest.mark.parametrize(
    ("trunk", "domain"),
    [({}, None), ({"blk.0.attn_norm.weight": GAIN}, rounded(RMSNorm, GAIN))],
    ids=["cut", "whole"],
)
def test_no_domain_is_proposed_for_a_draft_block_cut_off_from_its_model(
    tmp_path: Path, trunk: dict[str, Stored], domain: Domain | None
) -> None:
    tensors = {**TIED, "blk.7.nextn.eh_proj.weight": WEIGHT, **trunk}
    inputs = found(write(tmp_path / "model.gguf", tensors, architecture="glm4moe")).inputs
    assert inputs is not None
    assert inputs.domain == domain


def test_each_architecture_is_in_one_table() -> None:
    tables = [
        set(table)
        for table in (
            gguf_architectures.RMS_NORM,
            gguf_architectures.LAYER_NORM,
            gguf_architectures.EITHER_NORM,
            gguf_architectures.NO_KNOWN_NORM,
            gguf_architectures.WITHOUT_OUTPUT,
            gguf_architectures.CHANGED_LOGITS,
        )
    ]
    assert len(set().union(*tables)) == sum(map(len, tables))


def test_a_norm_without_shift_has_none(tmp_path: Path) -> None:
    tensors = {"output.weight": WEIGHT, "output_norm.weight": GAIN}
    inputs = found(write(tmp_path / "model.gguf", tensors)).inputs
    assert inputs is not None
    assert inputs.domain == rounded(RMSNorm, GAIN)


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


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"tokenizer.ggml.suppress_tokens": [1, 2]}, "2 classes are never sampled"),
        ({"llama.pooling_type": 1}, "meant for embeddings"),
    ],
)
def test_uses_other_than_for_the_argmax_of_all_rows_are_noted(
    tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    finding = found(write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, metadata))
    assert [note for note in finding.notes if words in note]


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
    (tmp_path / "model.gguf").write_text("not a model of any kind\n")
    with pytest.raises(LoadError, match="does not begin with GGUF"):
        load_head(tmp_path / "model.gguf")


@settings(max_examples=200)
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
TYPES = string(b"tokenizer.ggml.token_type") + struct.pack("<I", 9)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (header(version=1), "version 1; versions 2 and 3 can be read"),
        (header(version=4), "version 4; versions 2 and 3 can be read"),
        (header(tensors=2**63), "more than"),
        (header(keys=2**64 - 1), "more than"),
        (header(keys=1, rest=struct.pack("<Q", 2**64 - 1)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<I", 99)), "type 99"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 8, 2**60)), "more than"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 5, 2**60)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQQ", 9, 8, 9, 2**64 - 1)), "bytes are declared"),
        (header(keys=1, rest=string(b"k") + struct.pack("<IIQ", 9, 9, 1)), "type 9 of an array"),
        (header(keys=2, rest=(string(b"k") + struct.pack("<II", 4, 1)) * 2), "key 'k' .*occurs twice"),
        (header(keys=1, rest=string(b"general.alignment") + struct.pack("<II", 4, 0)), "alignment is 0"),
        (header(keys=1, rest=string(b"general.alignment") + struct.pack("<II", 4, 24)), "a power of two"),
        (header(keys=1, rest=TYPES + struct.pack("<IQ", 5, 2**60)), "bytes are declared"),
        (header(keys=1, rest=TYPES + struct.pack("<IQ", 0, 2**23) + bytes(2**23)), "more than"),
        (header(tensors=2, rest=MATRIX * 2), "two tensors are called"),
        (header(tensors=1, rest=tensor(b"output.weight", (1,) * 5, Type.F32)), "5 dimensions"),
        (header(tensors=1, rest=tensor(b"output.weight", (2**62, 2**62), Type.F32)), "should end at byte"),
        (header(tensors=1, rest=tensor(b"output.weight", (1, 1), Type.F32, 2**64 - 32)), "should end at"),
        (header(tensors=1, rest=tensor(b"output.weight", (0, 5), Type.F32)), "is not a matrix"),
        (
            header(tensors=1, rest=tensor(b"output.weight", (33, 1), Type.Q8_0)),
            "not a multiple of its blocks",
        ),
        (header(tensors=1, rest=tensor(b"output.weight", (1, 1), 9999)), r"unknown type 9999.*Update gguf"),
    ],
)
def test_absurd_declarations_are_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path / "model.gguf")


def test_big_endian_files_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, endianess=gguf.GGUFEndian.BIG)
    with pytest.raises(LoadError, match=r"big-endian.*gguf-convert-endian"):
        load_head(path)


def test_version_2_is_read_like_3(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=TOKENS)
    data = path.read_bytes()
    path.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:])
    assert same_bits(load_head(path).weight, WEIGHT)


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_any_alignment_is_read(tmp_path: Path, alignment: int) -> None:
    tensors = {"odd": np.ones(3, np.float32), "output.weight": WEIGHT, "output.bias": BIAS}
    head = load_head(write(tmp_path / "model.gguf", tensors, alignment=alignment))
    assert same_bits(head.weight, WEIGHT)
    assert same_bits(head.bias, BIAS)


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


def test_floats_beside_quantised_weights_are_read_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = gguf.quants.quantize(WEIGHT, Type.Q8_0)
    tensors = {"output.weight": WEIGHT, "token_embd.weight": (stored, Type.Q8_0)}
    path = write(tmp_path / "model.gguf", tensors)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert same_bits(load_head(path).weight, WEIGHT)


def test_floats_are_read_without_the_package(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", {"output.weight": WEIGHT}, tokens=TOKENS)
    program = (
        "import sys; from argmaxable.models import load_head; load_head(sys.argv[1]); "
        "assert 'gguf' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "model.gguf"], check=True, env=environment)
