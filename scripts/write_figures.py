"""Write the measured numbers of README.md and docs/ from benchmarks/results; a test rejects stale text.

    python -m scripts.write_figures

A place to fill begins with `<!-- figures: NAME -->` and ends with `<!-- end of figures -->`. Run the
benchmarks, then `make figures`, and no page quotes another run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial

from scripts import cost_figures as cost
from scripts import learning_figures as learning
from scripts.figure_text import RESULTS, ROOT, result

_FILLED = (
    "arithmetic", "benchmarks", "doctor", "domains", "explain", "index", "layers", "method", "runs", "scale",
    "teach", "theory",
)  # fmt: skip
PAGES = ("README.md", *(f"docs/{name}.md" for name in _FILLED))
_PLACE = re.compile(r"(<!-- figures: ([\w-]+) -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its places filled anew."""
    return _PLACE.sub(lambda place: f"{place[1]}{FIGURES[place[2]]()}\n{place[4]}", page)


def transcripts() -> dict[str, dict[str, str]]:
    """What every command of benchmarks/transcripts.py printed, by its name there."""
    pages = [result(path.stem)["printed"] for path in sorted(RESULTS.glob("transcripts_*.json"))]
    return {name: entry for page in pages for name, entry in page.items()}


def printed(*names: str, start: str = "", lines: int | None = None, form: str = "console") -> str:
    """Commands and what they printed, as one block; `form` is `text` for tables, which must not wrap.

    Of a long output, what comes before the line that starts with `start` and what comes after the next
    `lines` is left out, and marked so.
    """
    entries = [transcripts()[name] for name in names]
    shown = (f"$ {entry['command']}\n{_cut(entry['output'], start, lines)}".rstrip("\n") for entry in entries)
    return f"```{form}\n" + "\n".join(shown) + "\n```"


def _cut(output: str, start: str, lines: int | None) -> str:
    every = output.splitlines()
    first = next(number for number, line in enumerate(every) if line.startswith(start)) if start else 0
    end = len(every) if lines is None else min(first + lines, len(every))
    before, after = ["…"] if first else [], ["…"] if end < len(every) else []
    return "\n".join([*before, *every[first:end], *after])


FIGURES: dict[str, Callable[[], str]] = {
    **{name: partial(printed, name) for name in ("first", "verify", "check", "show")},
    **{
        name: partial(printed, name, form="text")
        for name in ("runs", "table", "summary", "latex", "compare-files")
    },
    "compare-domains": partial(printed, "compare-domains", lines=13),
    "compare-half": partial(printed, "compare-half", start="All 6,625", lines=6),
    "import": partial(printed, "import", "compare-published"),
    "check-export": partial(printed, "check-export"),
    **{name: partial(printed, name) for name in ("explain-compass", "explain-ocr", "ranking")},
    "verify-bf16": partial(printed, "verify-bf16", start="In bf16"),
    "compare-int8": partial(printed, "compare-int8", lines=9),
    **{
        name: partial(printed, name)
        for name in ("verify-llama", "doctor", "doctor-step", "verify-larger-step", "rank", "activations")
    },
    "layer-times": learning.layer_times,
    "trainer-memory": learning.trainer_memory,
    "real-heads": cost.real_heads,
    "paper": cost.paper,
    "costs": cost.costs,
    "fit": cost.fit,
    "foretold": cost.foretold,
    "large-heads": cost.large_heads,
    "hard-classes": cost.hard_classes,
    "ray": cost.ray,
    "ten-thousand": cost.ten_thousand,
    "unreadable": learning.unreadable,
    "dictionary": learning.dictionary,
    "grades": learning.grades,
}


if __name__ == "__main__":
    for name in PAGES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        path.write_text(filled(before), encoding="utf-8")
        sys.stdout.write(f"{name}: {len(_PLACE.findall(before))} places\n")
