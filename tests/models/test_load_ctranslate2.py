"""Heads of CTranslate2 models: every number as CTranslate2 computes with it, every lie in a file refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ctranslate2_writer import Model, text
from hypothesis import given, settings
from hypothesis import strategies as st

from argmaxable.core.errors import AmbiguousError, InputError, LoadError
from argmaxable.models import find_head, load_head
from argmaxable.models.ctranslate2 import head as head_module
from argmaxable.models.ctranslate2.reader import find
from argmaxable.models.registry import ReadOptions, find_format

RNG = np.random.default_rng(0)
WEIGHT, BIAS, SCALE = (
    "decoder/projection/weight",
    "decoder/projection/bias",
    "decoder/projection/weight_scale",
)
EMBEDDINGS = "decoder/embeddings/weight"
CLASSES, FEATURES = 5, 3
TOKENS = ["<unk>", "<s>", "</s>", "▁Haus", "ひ"]
FLOATS = RNG.normal(size=(CLASSES, FEATURES)).astype(np.float32)
STEPS = RNG.integers(-127, 128, (CLASSES, FEATURES), np.int8)
SCALES = RNG.uniform(50, 5000, CLASSES).astype(np.float32)
BLOCK = ("decoder/layer_0/ffn/linear_0/weight", RNG.normal(size=(7, FEATURES)).astype(np.float32))
MODEL = Model([BLOCK, (BIAS, FLOATS[:, 0]), (WEIGHT, FLOATS), ("decoder/pre_norm", np.int8(1)[...])])
TIED = Model(
    [(EMBEDDINGS, STEPS), (f"{EMBEDDINGS}_scale", SCALES), (BIAS, FLOATS[:, 0])],
    [(WEIGHT, EMBEDDINGS), ("encoder/embeddings_0/weight", EMBEDDINGS)],
)


def only(*arrays: tuple[str, Any], **options: Any) -> Model:
    return Model([(name, np.asarray(array)) for name, array in arrays], **options)


# ---------------------------------------------------------------------- the numbers


# With the names of OpenNMT-tf.
FIRST = only(
    ("transformer/decoder/LayerNorm/gamma:0", FLOATS[0]),
    ("transformer/decoder/dense/kernel:0", FLOATS),
    ("transformer/decoder/dense/bias:0", FLOATS[:, 0]),
    version=1,
)


@pytest.mark.parametrize("version", range(1, 7))
def test_floats_come_back_bit_for_bit_from_every_version(tmp_path: Path, version: int) -> None:
    model = replace(MODEL, version=version) if version > 1 else FIRST
    head = load_head(model.save(tmp_path))
    assert head.weight.dtype == np.float32
    assert head.weight.tobytes() == FLOATS.tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == FLOATS[:, 0].tobytes()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_keep_their_dtype(tmp_path: Path, dtype: Any) -> None:
    head = load_head(only((WEIGHT, FLOATS.astype(dtype)), (BIAS, FLOATS[:, 0].astype(dtype))).save(tmp_path))
    assert head.weight.dtype == dtype
    assert head.weight.tobytes() == FLOATS.astype(dtype).tobytes()


def rounded(value: Fraction) -> np.float32:
    """The float32 next to a fraction of normal size, the even one of two: the definition, in rationals."""
    exponent = 0
    while abs(value) * Fraction(2) ** -exponent >= 2**24:
        exponent += 1
    while value and abs(value) * Fraction(2) ** -exponent < 2**23:
        exponent -= 1
    return np.float32(float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent))


def test_int8_is_the_step_times_the_rounded_reciprocal_of_its_row_s_scale(tmp_path: Path) -> None:
    head = load_head(only((WEIGHT, STEPS), (SCALE, SCALES)).save(tmp_path))
    expected = [
        [rounded(int(step) * Fraction(float(rounded(1 / Fraction(float(scale)))))) for step in row]
        for row, scale in zip(STEPS, SCALES, strict=True)
    ]
    assert head.weight.dtype == np.float32
    assert head.weight.tolist() == [list(map(float, row)) for row in expected]
    for row, steps, scale in zip(head.weight, STEPS, SCALES, strict=True):
        for value, step in zip(row, steps, strict=True):
            exact = int(step) / Fraction(float(scale))
            assert abs(Fraction(float(value)) - exact) <= abs(exact) * Fraction(1, 2**23)


@pytest.mark.parametrize(("stored", "scale"), [(True, 123.5), (False, 1000.0)])
def test_int16_has_one_scale_and_an_old_default(tmp_path: Path, *, stored: bool, scale: float) -> None:
    steps = RNG.integers(-1024, 1025, (CLASSES, FEATURES), np.int16)
    model = only((WEIGHT, steps), *([(SCALE, np.float32(scale))] if stored else []))
    factor = Fraction(float(rounded(1 / Fraction(scale))))
    expected = [[float(rounded(int(step) * factor)) for step in row] for row in steps]
    assert load_head(model.save(tmp_path)).weight.tolist() == expected


def test_rows_of_a_large_matrix_are_read_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in (TIED, MODEL):
        path = model.save(tmp_path)
        whole = find(path, ReadOptions()).read()[0]
        with monkeypatch.context() as limited:
            limited.setattr(head_module, "_LARGEST_HELD", 0)
            rows = find(path, ReadOptions()).read()[0]
        assert not isinstance(rows, np.ndarray)
        assert np.asarray(rows).tobytes() == np.asarray(whole).tobytes()
        assert rows[np.array([3, 1])].tolist() == whole[[3, 1]].tolist()
        assert rows[2].flags.aligned


def test_a_tied_projection_is_the_embedding_with_its_scale(tmp_path: Path) -> None:
    finding = find_head(TIED.save(tmp_path))
    apart = replace(TIED, variables=[*TIED.variables, (WEIGHT, STEPS), (SCALE, SCALES)], aliases=())
    (tmp_path / "apart").mkdir()
    assert finding.why == f"the output layer, an alias of {EMBEDDINGS}"
    assert finding.weight.name == WEIGHT
    assert finding.alternatives == ()  # the embedding is the same array
    assert finding.head("tied").weight.tolist() == load_head(apart.save(tmp_path / "apart")).weight.tolist()


def test_an_alias_of_nothing_is_nothing(tmp_path: Path) -> None:
    model = replace(MODEL, aliases=[("decoder/scale", "absent"), (WEIGHT, "absent")])
    assert load_head(model.save(tmp_path)).weight.tobytes() == FLOATS.tobytes()


# ---------------------------------------------------------------------- which one, and its labels


@pytest.mark.parametrize(
    ("specification", "revision", "layer"),
    [
        ("TransformerBase", 2, "decoder/projection"), ("TransformerBig", 2, "decoder/projection"),
        ("TransformerDecoderSpec", 8, "decoder/projection"), ("WhisperSpec", 3, "decoder/projection"),
        ("Wav2Vec2Spec", 3, "encoder/lm_head"), ("Wav2Vec2BertSpec", 1, "encoder/lm_head"),
    ],
)  # fmt: skip
def test_every_kind_has_its_output_layer(
    tmp_path: Path, specification: str, revision: int, layer: str
) -> None:
    model = only((f"{layer}/weight", FLOATS), specification=specification, revision=revision)
    finding = find_head(model.save(tmp_path, vocabulary=TOKENS, target_vocabulary=TOKENS))
    assert (finding.format, finding.weight.name) == ("ctranslate2", f"{layer}/weight")
    assert finding.labels is not None
    assert finding.head("model").labels == ("<unk>", "<s>", "</s>", " Haus", "ひ")


def test_a_directory_is_as_good_as_its_file(tmp_path: Path) -> None:
    MODEL.save(tmp_path, config={"unk_token": "<unk>", "eos_token": "</s>"}, shared_vocabulary=TOKENS)
    finding = find_head(tmp_path)
    assert finding.format == "ctranslate2"
    assert finding.special == {0, 2}
    assert finding.head("model").weight.tobytes() == FLOATS.tobytes()


def test_a_file_of_another_name_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    assert find_format(MODEL.save(tmp_path).rename(tmp_path / "weights")).name == "ctranslate2"


def test_the_shared_vocabulary_comes_before_the_target_s(tmp_path: Path) -> None:
    other = [f"other {number}" for number in range(CLASSES)]
    path = MODEL.save(tmp_path, target_vocabulary=TOKENS, source_vocabulary=other)
    (tmp_path / "target_vocabulary.txt").write_text("\n".join(other), encoding="utf-8")
    assert load_head(path).labels == ("<unk>", "<s>", "</s>", " Haus", "ひ")
    (tmp_path / "shared_vocabulary.txt").write_text("".join(f"{each}\n" for each in other), encoding="utf-8")
    assert load_head(path).labels == tuple(other)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\r\nb\r\nc\r\nd\r\ne\r\n", ("a", "b", "c", "d", "e")),
        (b"a\r\nb\nc\nd\ne\n", ("a\r", "b", "c", "d", "e")),
        (b"a\nb\nc\nd\n", ("a", "b", "c", "d", "<unk>")),
        (b"a\n\xc2\x85\n\xff\n\ne", ("a", "\x85", "\\xff", "", "e")),
    ],
)
def test_lines_are_tokens_as_ctranslate2_counts_them(
    tmp_path: Path, content: bytes, expected: tuple[str, ...]
) -> None:
    (tmp_path / "shared_vocabulary.txt").write_bytes(content)
    assert load_head(MODEL.save(tmp_path)).labels == expected


@pytest.mark.parametrize("vocabulary", [TOKENS[:3], [*TOKENS, "more"], {"a": 1}, [1] * 5])
def test_a_vocabulary_that_does_not_fit_is_named_and_not_used(tmp_path: Path, vocabulary: object) -> None:
    finding = find_head(MODEL.save(tmp_path, shared_vocabulary=vocabulary))
    assert finding.labels is None
    assert any(note.startswith("shared_vocabulary.json was not used") for note in finding.notes)


def test_what_changes_no_order_is_noted(tmp_path: Path) -> None:
    model = only((WEIGHT, STEPS), (SCALE, SCALES), ("decoder/final_logit_softcapping", np.float32(30)))
    finding = find_head(model.save(tmp_path, config={"suppress_ids": [1, 2]}))
    assert [note[:25] for note in finding.notes] == [
        "the weights are stored as", "logits are capped softly,", "2 classes are never gener",
    ]  # fmt: skip
    assert finding.inputs is not None
    assert finding.inputs.domain is None


def test_another_tensor_may_be_chosen_and_transposed(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path, shared_vocabulary=TOKENS)
    head = load_head(path, tensor=BLOCK[0])
    assert head.weight.tobytes() == BLOCK[1].tobytes()
    assert head.labels is None
    assert load_head(path, tensor=BLOCK[0], transpose=True).weight.tolist() == BLOCK[1].T.tolist()
    tied = load_head(TIED.save(tmp_path), tensor=EMBEDDINGS, transpose=True)
    assert tied.weight.tolist() == load_head(tmp_path / "model.bin", tensor=EMBEDDINGS).weight.T.tolist()


def test_only_the_numbers_of_the_head_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, mapped, memmap = TIED.save(tmp_path), [], np.memmap

    def spy(*arguments: Any, **options: Any) -> Any:
        mapped.append(memmap(*arguments, **options))
        return mapped[-1]

    finding = find(path, ReadOptions())
    monkeypatch.setattr(np, "memmap", spy)
    finding.read()
    assert sorted(each.tobytes() for each in mapped) == sorted(array.tobytes() for _, array in TIED.variables)
    mapped.clear()
    find(MODEL.save(tmp_path), ReadOptions()).read()
    assert [each.tobytes() for each in mapped] == [FLOATS.tobytes(), FLOATS[:, 0].tobytes()]  # not the block


# ---------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (replace(MODEL, version=7), r"of version 7; versions 1 to 6"),
        (replace(MODEL, revision=8), r"TransformerSpec of revision 8; revisions up to 7.*Could be meant"),
        (replace(MODEL, specification="TransformerEncoderSpec"), r"'TransformerEncoderSpec', whose output"),
        (only(BLOCK), r"no output layer: decoder/projection/weight not found.*No matrix"),
        (only((EMBEDDINGS, FLOATS)), r"no output layer.*Could be meant: decoder/embeddings/weight"),
        (only((WEIGHT, FLOATS[0])), r"decoder/projection/weight \(3, float32\) is not a matrix"),
        (only((WEIGHT, FLOATS[:0])), r"\(0 × 3, float32\) is not a matrix"),
        (only((WEIGHT, STEPS)), r"needs a float32 scale of shape \(5,\); there is none"),
        (only((WEIGHT, STEPS), (SCALE, SCALES[:4])), r"needs a float32 scale .* found .*\(4, float32\)"),
        (only((WEIGHT, STEPS), (SCALE, SCALES[0])), r"needs a float32 scale .* found .*\(scalar, float32\)"),
        (only((WEIGHT, STEPS.astype(np.int16)), (SCALE, SCALES)), r"scale of shape \(\); found"),
        (only((WEIGHT, STEPS), (SCALE, SCALES.astype(np.float16))), r"needs a float32 scale"),
        (only((WEIGHT, STEPS), (SCALE, np.float32([1, 1, 0, 1, 1]))), r"not a positive number for row 2"),
        (only((WEIGHT, STEPS), (SCALE, np.float32([1, -1, 1, 1, 1]))), r"not a positive number for row 1"),
        (only((WEIGHT, STEPS), (SCALE, np.float32([np.nan] * 5))), r"not a positive number for row 0"),
        (only((WEIGHT, STEPS), (SCALE, np.float32([1, 1, 1, 1, 1e-45]))), r"not a positive number for row 4"),
        (only((WEIGHT, STEPS), (SCALE, np.float32([1, 1, 1, 1, 1e-38]))), "must be finite"),
        (only((WEIGHT, STEPS.astype(np.int32))), r"packed for a GPU \(AWQ\)"),
        (only((WEIGHT, FLOATS), (f"{WEIGHT}_zero", FLOATS)), r"packed for a GPU \(AWQ\)"),
        (only((WEIGHT, FLOATS), (BIAS, FLOATS[0])), r"bias has shape \(3,\)"),
        (only((WEIGHT, FLOATS), (BIAS, STEPS[:, 0])), r"bias .*\(5, int8\) is not a vector of floats"),
    ],
)  # fmt: skip
def test_what_is_not_a_head_is_refused(tmp_path: Path, model: Model, complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(model.save(tmp_path))


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (only((WEIGHT, FLOATS), (WEIGHT, FLOATS + 1)), r"two variables are called"),
        (replace(MODEL, aliases=[(WEIGHT, BLOCK[0])]), r"two variables or aliases are called"),
        (replace(TIED, aliases=[(WEIGHT, EMBEDDINGS), (WEIGHT, BIAS)]), r"two variables or aliases"),
        (
            replace(TIED, variables=[*TIED.variables, (SCALE, SCALES + 1)]),
            r"two variables or aliases are called 'decoder/projection/weight_scale'",
        ),
        (only((WEIGHT, FLOATS), (SCALE, SCALES)), r"holds floats, but also has a scale"),
        (only((WEIGHT, FLOATS), ("a\0b", FLOATS)), r"has a zero byte inside"),
        (
            only(("transformer/decoder/dense/kernel", FLOATS), ("decoder/dense/kernel:0", FLOATS), version=1),
            r"two variables are called 'decoder/projection/weight'",
        ),
    ],
)
def test_what_two_programs_could_read_differently_is_refused(
    tmp_path: Path, model: Model, complaint: str
) -> None:
    with pytest.raises(AmbiguousError, match=complaint):
        load_head(model.save(tmp_path))


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = MODEL.save(tmp_path)
    with pytest.raises(
        LoadError, match=r"tensor 'x' not found \(4 variables\).*Correct tensor= \(--tensor\)"
    ):
        load_head(path, tensor="x")
    with pytest.raises(LoadError, match=r"tensor 'y' not found.*Correct bias_tensor= \(--bias-tensor\)"):
        load_head(path, bias_tensor="y")


@pytest.mark.parametrize("config", [b"[]", b"{", b'{"a": 1, "a": 2}'])
def test_a_configuration_that_ctranslate2_could_not_read_is_refused(tmp_path: Path, config: bytes) -> None:
    (tmp_path / "config.json").write_bytes(config)
    with pytest.raises(LoadError, match=r"config\.json"):
        load_head(MODEL.save(tmp_path))


def patched(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def patch(data: bytes) -> bytes:
        assert data.count(old) == 1
        return data.replace(old, new)

    return patch


SHAPE = text(WEIGHT) + struct.pack("<BII", 2, CLASSES, FEATURES)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: data + b"\0", r"1 bytes after its end"),
        (patched(SHAPE, text(WEIGHT) + struct.pack("<BII", 2, CLASSES, 2**32 - 1)), r"declares 60 bytes"),
        (patched(SHAPE + b"\0", SHAPE + b"\6"), r"unknown type 6"),
        (patched(b"projection/bias\0", b"projection/bias!"), r"no zero at its end"),
        (patched(b"projection/bias\0", b"projection/bia\xff\0"), r"is not UTF-8"),
        (patched(struct.pack("<II", 7, 4), struct.pack("<II", 7, 2**32 - 1)), r"4294967295 variables"),
        (patched(struct.pack("<II", 7, 4), struct.pack("<II", 7, 5)), r"bytes, but|no zero|left in the file"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage: Callable[[bytes], bytes], complaint: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(damage(MODEL.data()))
    with pytest.raises(LoadError, match=complaint):
        load_head(path)


@pytest.mark.parametrize("model", [MODEL, TIED, replace(MODEL, version=2)])
def test_a_file_that_is_cut_short_is_refused_wherever(tmp_path: Path, model: Model) -> None:
    path, data = tmp_path / "model.bin", model.data()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(LoadError):
            find(path, ReadOptions())


SEEDS = (MODEL.data(), TIED.data(), replace(MODEL, version=3).data())


@settings(max_examples=150)
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_files_give_a_head_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(seed) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=8))
        damaged[start : start + len(patch)] = patch
    path = tmp_path_factory.getbasetemp() / "damaged.bin"
    path.write_bytes(damaged)
    with suppress(InputError):
        assert find(path, ReadOptions()).head("damaged").classes > 0
