"""Files of whisper.cpp: the tied head, its tokens, its norm; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import whisper_writer as whisper
from numpy.typing import NDArray

from argmaxable import AmbiguousError, LoadError, find_head, load_head
from argmaxable.core.balls import LayerNorm

RNG = np.random.default_rng(5)
WEIGHT = RNG.normal(size=(12, 32)).astype(np.float16)
TOKENS = [b" a", "é".encode(), "é".encode()[:1], b"", b"long"]
NORM: dict[str, whisper.Stored] = {
    whisper.GAIN: np.full(32, 2, np.float32),
    whisper.SHIFT: np.zeros(32, np.float32),
}


def saved(folder: Path, weight: Any = WEIGHT, **changes: Any) -> Path:
    path = folder / "ggml-tiny.bin"
    settings: dict[str, Any] = {"vocabulary": 12, "features": 32, **changes}
    tensors = settings.pop("tensors", {whisper.HEAD: weight, **NORM})
    path.write_bytes(whisper.model(tensors, settings.pop("tokens", TOKENS), **settings))
    return path


def test_the_embedding_is_the_head_behind_the_last_norm(tmp_path: Path) -> None:
    finding = find_head(saved(tmp_path))
    head = load_head(saved(tmp_path))
    assert finding.format == "whisper.cpp"
    assert np.array_equal(np.asarray(head.weight), WEIGHT)
    assert head.bias is None or not head.bias.any()
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, LayerNorm)


def test_labels_are_the_tokens_in_the_file_and_the_rest_is_special(tmp_path: Path) -> None:
    finding = find_head(saved(tmp_path))
    assert finding.labels is not None
    assert finding.labels.names[:6] == (" a", "é", "<0xC3>", "", "long", "[_extra_token_5]")
    assert finding.special == frozenset(range(5, 12))


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        # By whisper.cpp's whisper_model_load: for English, 99 and 100 languages.
        (
            51864,
            {
                50257: "[_SOT_]",
                50258: "[_LANG_0]",
                50357: "[_TRANSLATE_]",
                50363: "[_BEG_]",
                51863: "[_TT_1500]",
            },
        ),
        (
            51865,
            {50257: "[_EOT_]", 50258: "[_SOT_]", 50359: "[_TRANSCRIBE_]", 50364: "[_BEG_]", 50365: "[_TT_1]"},
        ),
        (
            51866,
            {
                50258: "[_SOT_]",
                50358: "[_LANG_99]",
                50359: "[_TRANSLATE_]",
                50365: "[_BEG_]",
                51865: "[_TT_1500]",
            },
        ),
    ],
)
def test_tokens_behind_the_stored_ones_have_the_names_of_whisper_cpp(
    tmp_path: Path, vocabulary: int, expected: dict[int, str]
) -> None:
    weight = np.zeros((vocabulary, 1), np.float16)
    path = saved(
        tmp_path, tensors={whisper.HEAD: weight}, tokens=[b"x"] * 50257, vocabulary=vocabulary, features=1
    )
    labels = find_head(path).labels
    assert labels is not None
    assert {number: labels.names[number] for number in expected} == expected


@pytest.mark.parametrize("kind", ["Q8_0", "Q5_0", "Q4_0"])
def test_quantised_heads_are_what_the_gguf_package_makes_of_them(tmp_path: Path, kind: str) -> None:
    quantisation = gguf.GGMLQuantizationType[kind]
    data: NDArray[np.uint8] = gguf.quants.quantize(WEIGHT.astype(np.float32), quantisation)
    stored = (int(quantisation), WEIGHT.shape, data.tobytes())
    head = load_head(saved(tmp_path, stored, kind=2008))
    assert np.array_equal(np.asarray(head.weight), gguf.quants.dequantize(data, quantisation))
    with pytest.raises(LoadError, match="version 1 of GGML's formats"):
        load_head(saved(tmp_path, stored, kind=1008))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tensors": {"encoder.weight": WEIGHT}}, "is not there, expected 12 × 32"),
        ({"vocabulary": 13}, "expected 13 × 32"),
        ({"vocabulary": 3}, "has 5 tokens of 3"),
        ({"tokens": [bytes(5000)]}, "a token has 5000 bytes"),
        ({"weight": (77, (12, 32), b"")}, "whose size is unknown"),
        ({"weight": (0, (12, 0), b"")}, "whose size is unknown"),
        ({"weight": (0, (12, 32), bytes(9))}, "are left in the file|axes and a name"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path, **changes))


def test_a_tensor_twice_is_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousError, match="two tensors are called"):
        load_head(saved(tmp_path, tensors=[(whisper.HEAD, WEIGHT), (whisper.HEAD, WEIGHT)]))


def test_a_norm_that_is_missing_proves_no_domain(tmp_path: Path) -> None:
    inputs = find_head(saved(tmp_path, tensors={whisper.HEAD: WEIGHT})).inputs
    assert inputs is not None
    assert inputs.domain is None


def test_there_is_nothing_to_choose(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="leave --tensor"):
        find_head(saved(tmp_path), tensor="decoder.ln.weight")
