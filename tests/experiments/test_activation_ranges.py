"""Ranges of an output layer's inputs are measured and told; a translator of fairseq runs up to its head."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from experiments.activation_ranges import SMOL, cells, measure, table
from experiments.harness.cells import Cell, Scale
from experiments.models.translator import SPECIAL, PieceSplitter, Seen, Translator, numbers, run
from experiments.real_models import cells as models

FEATURES, HEADS = 16, 8
MERGES = ["#version: 0.2", "a b", "ab c</w>", "d e</w>"]


def test_every_model_is_one_of_the_campaign() -> None:
    names = {cell["name"] for cell in models(Scale.COMMITTED)}
    assert {cell["name"] for cell in cells(Scale.COMMITTED)} <= names


def test_the_same_cell_gives_the_same_numbers() -> None:
    (settings, _) = cells(Scale.SMOKE)
    assert measure(settings, None) == measure(settings, Path("unused"))


def test_the_table_has_the_papers_ranges_beside_ours() -> None:
    (settings, _) = cells(Scale.SMOKE)
    named = {"name": SMOL, "over": "text", "size": settings["tokens"]}
    written = table([Cell(named, measure(settings, None), 0.1)])
    assert "| within ±100 | within ±50 |" in written
    assert f"| {SMOL} | 8 | the test part of the text | 500 |" in written


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("abc", ["abc"]),
        ("abd", ["ab@@", "d"]),
        ("cde", ["c@@", "de"]),
        ("ababc", ["ab@@", "abc"]),
        ("x", ["x"]),
    ],
)
def test_words_are_split_by_their_merges(word: str, pieces: list[str]) -> None:
    assert PieceSplitter(MERGES).split(f" {word} ") == pieces


def test_merges_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected '#version: 0\.2'"):
        PieceSplitter(["a b"])


def test_a_dictionary_begins_with_the_special_tokens() -> None:
    assert numbers(["ab@@ 12", "c 3"]) == {**{name: n for n, name in enumerate(SPECIAL)}, "ab@@": 4, "c": 5}


def _weights() -> dict[str, torch.Tensor]:
    """A layer of each side, by fairseq's names."""
    draw = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw) / math.sqrt(shape[-1])

    found = {}
    for side, classes, parts in (
        ("encoder", 7, ["self_attn"]),
        ("decoder", 6, ["self_attn", "encoder_attn"]),
    ):
        found[f"{side}.embed_tokens.weight"] = normal(classes, FEATURES)
        linear = {
            f"{part}.{name}_proj": (FEATURES, FEATURES) for part in parts for name in ("q", "k", "v", "out")
        }
        for at, shape in {**linear, "fc1": (32, FEATURES), "fc2": (FEATURES, 32)}.items():
            found[f"{side}.layers.0.{at}.weight"], found[f"{side}.layers.0.{at}.bias"] = (
                normal(*shape),
                normal(shape[0]),
            )
        for at in (*(f"layers.0.{part}_layer_norm" for part in (*parts, "final")), "layer_norm"):
            found[f"{side}.{at}.weight"], found[f"{side}.{at}.bias"] = 1 + normal(FEATURES), normal(FEATURES)
    found["decoder.output_projection.weight"] = found["decoder.embed_tokens.weight"]
    return found


def _built(weights: dict[str, torch.Tensor], side: str) -> torch.nn.Module:
    """PyTorch's own layer with the same weights."""
    kind = torch.nn.TransformerEncoderLayer if side == "encoder" else torch.nn.TransformerDecoderLayer
    layer = kind(FEATURES, HEADS, 32, dropout=0.0, norm_first=True, batch_first=True).eval()
    own = {"self_attn": "self_attn", "multihead_attn": "encoder_attn"}
    norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
    if side == "encoder":
        norms.remove("encoder_attn_layer_norm")
    given = {}
    for end in ("weight", "bias"):
        at = f"{side}.layers.0"
        for theirs, ours in own.items():
            if f"{at}.{ours}.q_proj.{end}" in weights:
                given[f"{theirs}.in_proj_{end}"] = torch.cat(
                    [weights[f"{at}.{ours}.{n}_proj.{end}"] for n in "qkv"]
                )
                given[f"{theirs}.out_proj.{end}"] = weights[f"{at}.{ours}.out_proj.{end}"]
        for number, (linear, norm) in enumerate(zip(("fc1", "fc2", ""), norms, strict=False), start=1):
            given[f"norm{number}.{end}"] = weights[f"{at}.{norm}.{end}"]
            if linear:
                given[f"linear{number}.{end}"] = weights[f"{at}.{linear}.{end}"]
    layer.load_state_dict(given)
    return layer


def test_a_translator_computes_what_pytorchs_own_layers_do() -> None:
    weights = _weights()
    translator = Translator(weights, HEADS)
    found = translator.features([4, 5, 6], [4, 5])

    def embedded(side: str, tokens: list[int]) -> torch.Tensor:
        half = FEATURES // 2
        rates = [10_000 ** (-place / (half - 1)) for place in range(half)]
        # Positions count from 2, as in fairseq: 1 is the number of <pad>.
        waves = [
            [f(at * rate) for f in (math.sin, math.cos) for rate in rates] for at in range(2, 2 + len(tokens))
        ]
        return 4 * weights[f"{side}.embed_tokens.weight"][tokens] + torch.tensor(waves)

    def normed(side: str, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(
            x, [FEATURES], weights[f"{side}.layer_norm.weight"], weights[f"{side}.layer_norm.bias"]
        )

    with torch.inference_mode():
        memory = normed("encoder", _built(weights, "encoder")(embedded("encoder", [4, 5, 6, 2])[None]))
        mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
        given = embedded("decoder", [2, 4, 5])[None]
        wanted = normed("decoder", _built(weights, "decoder")(given, memory, tgt_mask=mask))[0]
    assert torch.allclose(found, wanted, atol=1e-5)
    assert translator.logits(found).shape == (3, 6)


def test_pairs_are_run_and_right_tokens_counted(tmp_path: Path) -> None:
    for folder in ("checkpoints", "data"):
        (tmp_path / folder).mkdir()
    torch.save({"model": _weights()}, tmp_path / "checkpoints" / "checkpoint_best.pt")
    (tmp_path / "data" / "bpe.code").write_text("\n".join(MERGES) + "\n")
    (tmp_path / "data" / "dict.roman.txt").write_text("ab@@ 3\nabc 2\nd 1\n")
    (tmp_path / "data" / "dict.nqo.txt").write_text("abc 2\nx 1\n")
    seen = Seen()
    blocks = list(run(tmp_path, [("ABC abd", "x abc"), ("abc", ""), ("d", "y")], seen))
    assert [block.shape for block in blocks] == [(3, FEATURES), (2, FEATURES)]  # no target, no block
    assert seen.tokens == 5
    assert 0 <= seen.right <= 5
