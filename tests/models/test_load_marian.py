"""Heads in the .npz checkpoints of Marian and Nematus, tied or not, whichever way round they are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.npz.reader import find
from argmaxable.models.registry import ReadOptions

Arrays = dict[str, NDArray[Any]]

CLASSES, FEATURES = 6, 4
RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(CLASSES, FEATURES)).astype(np.float32)
OTHER = RNG.normal(size=(CLASSES, FEATURES)).astype(np.float32)
BIAS = RNG.normal(size=(1, CLASSES)).astype(np.float32)
YAML = np.frombuffer(b"dim-emb: 4\ntied-embeddings: true\n\0", np.int8)

MARIAN: Arrays = {
    "special:model.yml": YAML,
    "encoder_l1_self_Wq": RNG.normal(size=(FEATURES, FEATURES)).astype(np.float32),
    "decoder_l1_ffn_W1": RNG.normal(size=(FEATURES, 9)).astype(np.float32),
}
NEMATUS: Arrays = {
    "zipped_params": np.zeros(0),
    "decoder_W": RNG.normal(size=(FEATURES, 9)).astype(np.float32),
    "ff_logit_lstm_W": RNG.normal(size=(FEATURES, FEATURES)).astype(np.float32),
    "ff_logit_lstm_b": np.zeros(FEATURES, np.float32),
}
OUT: Arrays = {"decoder_ff_logit_out_b": BIAS}
RECURRENT: Arrays = {"decoder_ff_logit_l2_b": BIAS}
TWO_EMBEDDINGS: Arrays = {"encoder_Wemb": OTHER, "decoder_Wemb": OTHER}

# Name of the weight, and the arrays of the checkpoint; every weight below is WEIGHT, stored either way.
CHECKPOINTS: dict[str, tuple[str, Arrays]] = {
    "marian": (
        "decoder_ff_logit_out_W",
        MARIAN | OUT | TWO_EMBEDDINGS | {"decoder_ff_logit_out_W": WEIGHT.T},
    ),
    "marian by class": (
        "decoder_ff_logit_out_Wt",
        MARIAN | OUT | TWO_EMBEDDINGS | {"decoder_ff_logit_out_Wt": WEIGHT},
    ),
    "marian shared embeddings, own output": (
        "decoder_ff_logit_out_W",
        MARIAN | OUT | {"Wemb": OTHER, "decoder_ff_logit_out_W": WEIGHT.T},
    ),
    "marian tied": ("decoder_Wemb", MARIAN | OUT | {"encoder_Wemb": OTHER, "decoder_Wemb": WEIGHT}),
    "marian all tied": ("Wemb", MARIAN | OUT | {"Wemb": WEIGHT}),
    "marian recurrent": (
        "decoder_ff_logit_l2_W",
        MARIAN | RECURRENT | TWO_EMBEDDINGS | {"decoder_ff_logit_l2_W": WEIGHT.T},
    ),
    "marian recurrent by class": (
        "decoder_ff_logit_l2_Wt",
        MARIAN | RECURRENT | TWO_EMBEDDINGS | {"decoder_ff_logit_l2_Wt": WEIGHT},
    ),
    "marian recurrent tied": ("decoder_Wemb", MARIAN | RECURRENT | {"decoder_Wemb": WEIGHT}),
    "marian recurrent all tied": ("Wemb", MARIAN | RECURRENT | {"Wemb": WEIGHT}),
    "nematus": (
        "ff_logit_W",
        NEMATUS | {"Wemb": OTHER, "Wemb_dec": OTHER, "ff_logit_W": WEIGHT.T, "ff_logit_b": BIAS[0]},
    ),
    "nematus tied": ("Wemb_dec", NEMATUS | {"Wemb": OTHER, "Wemb_dec": WEIGHT, "ff_logit_b": BIAS[0]}),
    "nematus all tied": ("Wemb", NEMATUS | {"Wemb": WEIGHT, "ff_logit_b": BIAS[0]}),
}


def saved(folder: Path, arrays: Arrays) -> Path:
    np.savez(folder / "model.npz", **arrays)  # type: ignore[arg-type]  # no array is named allow_pickle
    return folder / "model.npz"


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_weight_and_bias_come_back_bit_for_bit(tmp_path: Path, checkpoint: str) -> None:
    name, arrays = CHECKPOINTS[checkpoint]
    finding = find(saved(tmp_path, arrays), ReadOptions())
    head = finding.head("model")
    assert finding.weight.name == name
    assert (finding.classes, finding.features) == (CLASSES, FEATURES)
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_naming_the_weight_brings_its_bias_and_orientation(tmp_path: Path, checkpoint: str) -> None:
    name, arrays = CHECKPOINTS[checkpoint]
    head = load_head(saved(tmp_path, arrays), tensor=name)
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is not None


@pytest.mark.parametrize("weight", ["decoder_Wemb", "decoder_ff_logit_out_Wt"])
def test_a_model_trained_without_output_bias_has_none(tmp_path: Path, weight: str) -> None:
    head = load_head(saved(tmp_path, MARIAN | {weight: WEIGHT}))
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is None


def test_a_file_of_our_own_wins_over_other_names(tmp_path: Path) -> None:
    finding = find(saved(tmp_path, {"W": WEIGHT, "decoder_Wemb": OTHER}), ReadOptions())
    assert finding.why == "the array named W"
    assert [other.name for other in finding.alternatives] == ["decoder_Wemb"]


def test_embeddings_that_nothing_shows_to_be_tied_are_not_taken(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'W' not found.*like heads: Wemb\..*--tensor"):
        load_head(saved(tmp_path, {"Wemb": WEIGHT}))


def test_another_array_can_be_chosen(tmp_path: Path) -> None:
    _, arrays = CHECKPOINTS["marian"]
    head = load_head(saved(tmp_path, arrays), tensor="encoder_Wemb", bias_tensor="decoder_ff_logit_out_b")
    assert head.weight.tobytes() == OTHER.tobytes()


def test_transpose_flips_what_the_table_says(tmp_path: Path) -> None:
    arrays = MARIAN | {"decoder_ff_logit_out_W": WEIGHT}
    assert load_head(saved(tmp_path, arrays), transpose=True).weight.tobytes() == WEIGHT.tobytes()


def test_why_says_whether_embeddings_are_tied(tmp_path: Path) -> None:
    _, arrays = CHECKPOINTS["marian all tied"]
    assert "Marian's embeddings, tied" in find(saved(tmp_path, arrays), ReadOptions()).why


def test_the_vocabulary_beside_the_model_gives_the_labels(tmp_path: Path) -> None:
    tokens = ["</s>", "<unk>", "▁the", "ing", "a", "b"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: place for place, token in enumerate(tokens)}))
    head = load_head(saved(tmp_path, CHECKPOINTS["marian all tied"][1]))
    assert head.labels is not None
    assert head.labels[0] == "</s>"
    assert head.labels[3] == "ing"


def test_a_vocabulary_beside_a_file_of_our_own_is_not_its_business(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({str(place): place for place in range(CLASSES)}))
    assert load_head(saved(tmp_path, {"W": WEIGHT})).labels is None
