"""What commands print on the pages of the documentation; scripts/write_figures.py puts it there.

    python benchmarks/transcripts.py [PAGE...] [--llama DIR --text FILE]

Each page has a folder and a database of its own, so that its first run is number 1, and its own file in
results/. Without PAGE all are run but `llama`, which needs a small Llama from elsewhere (we use story-llama
of LearningInfiniTensor/learning-lm-rs) and a text (WikiText-2's validation part).
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import _record
import _transcript_files as files
from _transcript_files import HALF, OCR

ROOT = Path(__file__).resolve().parent.parent
PACKAGED = f"pypi:rapidocr-onnxruntime==1.4.4!rapidocr_onnxruntime/models/{OCR}"


class Page(NamedTuple):
    """How its files are made, and its commands by name, as the page shows them."""

    prepare: Callable[[Path, argparse.Namespace], None]
    commands: dict[str, str]


PAGES = {
    "readme": Page(lambda _folder, _given: None, {"first": f"argmaxable verify '{PACKAGED}'"}),
    "first": Page(
        files.ocr,
        {
            "verify": f"argmaxable verify {OCR} --output proofs",
            "check": f"argmaxable check proofs {OCR}",
        },
    ),
    # Three runs of a campaign over the box ±100, one over the domain that the file proves, one in float16.
    "runs": Page(
        files.runs,
        {
            "campaign": "argmaxable campaign campaign.toml",
            "verify-again": f"argmaxable verify {OCR}",
            "verify-half": f"argmaxable verify {HALF} --domain box:100",
            "runs": "argmaxable runs",
            "show": "argmaxable show 4",
            "compare-domains": "argmaxable compare 2 4",
            "compare-half": "argmaxable compare 2 5",
            "table": "argmaxable table 1 2 3",
            "summary": "argmaxable table 1 2 3 --summary",
            "latex": "argmaxable table 1 2 --format latex",
            "export": "argmaxable export 4 --format bundle -o proofs",
            "check-export": f"argmaxable check proofs {OCR}",
            "import": 'argmaxable import published.csv --origin "a paper"',
            "compare-published": 'argmaxable compare "their PP-OCRv4" 2',
        },
    ),
    "quantised": Page(files.quantised, {"compare-files": "argmaxable compare ppocrv3/ --dtype fp16"}),
    "questions": Page(
        files.small_heads,
        {
            "explain-compass": "argmaxable explain compass.npz here north --domain box:1",
            "explain-ocr": f"argmaxable explain {OCR} 刈 跚 --domain box:100",
            "ranking": 'argmaxable ranking pets.npz "mid > cat" "mid > dog"',
        },
    ),
    "arithmetic": Page(
        files.ocr,
        {
            "verify-bf16": f"argmaxable verify {OCR} --domain box:100 --dtype bf16",
            "verify-int8": f"argmaxable verify {OCR} --domain box:100 --round-to int8-tensor",
            "compare-int8": "argmaxable compare 1 2",
        },
    ),
    "llama": Page(
        files.llama,
        {
            "verify-llama": "argmaxable verify story-llama",
            "doctor": "argmaxable doctor my-llama",
            "doctor-step": "argmaxable doctor my-llama-step",
            "verify-larger-step": "argmaxable verify my-llama-larger-step --only 2048-2052",
            "rank": "argmaxable rank story-llama --text valid.txt --tokens 3000",
            "activations": (
                "argmaxable activations story-llama --text valid.txt --tokens 20000 "
                "--output story.domain.json"
            ),
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", choices=PAGES, metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--llama", type=Path, help="folder of a small Llama")
    parser.add_argument("--text", type=Path, help="text for it")
    given = parser.parse_args()
    for name in given.pages or [name for name in PAGES if name != "llama"]:
        page = PAGES[name]
        with tempfile.TemporaryDirectory() as folder:
            page.prepare(Path(folder), given)
            _record.write(f"transcripts_{name}", {"printed": printed_by(page.commands, Path(folder))})


def printed_by(commands: dict[str, str], folder: Path) -> dict[str, dict[str, str]]:
    """Each command with what it wrote to stdout, run one after another in the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "ARGMAXABLE_DB": "runs.db"}
    printed = {}
    for name, command in commands.items():
        words = [sys.executable, "-c", "from argmaxable.cli import main; main()", *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: some class is unargmaxable, some order infeasible
            raise RuntimeError(f"{command}: {done.stderr}")
        printed[name] = {"command": command, "output": done.stdout.rstrip("\n")}
    return printed


if __name__ == "__main__":
    main()
