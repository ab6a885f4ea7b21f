"""What the commands on the first pages and of docs/runs.md print; scripts/write_figures.py puts it there.

README's command and the two of the first pages get databases of their own, so that their run is number 1.
The runs of docs/runs.md are three of a campaign over the box ±100, one over the domain that the file proves,
and the head in float16.

    python benchmarks/transcripts.py
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _models
import _record
import numpy as np

import argmaxable as am

ROOT = Path(__file__).resolve().parent.parent
OCR = "ch_PP-OCRv4_rec_infer.onnx"
HALF = "PP-OCRv4.fp16.npz"
FILES = {OCR: "ppocrv4_rec_ch", "ppocrv3.onnx": "ppocrv3_rec_ch", "magika.onnx": "magika"}
CAMPAIGN = f"""
[defaults]
domain = "box:100"

[[family]]
name = "PP-OCR"
task = "ocr"
model = [{{ name = "PP-OCRv3", file = "ppocrv3.onnx" }}, {{ name = "{OCR}", file = "{OCR}" }}]

[[family]]
name = "File types"
model = [{{ name = "magika", file = "magika.onnx" }}]
"""
# name: the command as the page shows it.
PACKAGED = f"pypi:rapidocr-onnxruntime==1.4.4!rapidocr_onnxruntime/models/{OCR}"
README = {"first": f"argmaxable verify '{PACKAGED}'"}
FIRST_PAGES = {
    "verify": f"argmaxable verify {OCR} --output proofs",
    "check": f"argmaxable check proofs {OCR}",
}
RUNS = {
    "campaign": "argmaxable campaign campaign.toml",
    "verify-again": f"argmaxable verify {OCR}",
    "verify-half": f"argmaxable verify {HALF} --domain box:100",
    "runs": "argmaxable runs",
    "show": "argmaxable show 4",
    "table": "argmaxable table 1 2 3",
    "summary": "argmaxable table 1 2 3 --summary",
    "latex": "argmaxable table 1 2 --format latex",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, model in FILES.items():
            shutil.copy(_models.onnx_file(model), folder / file)
        head = am.load_head(folder / OCR)
        half = {"W": head.weight.astype(np.float16), "b": head.bias.astype(np.float16)}
        np.savez(folder / HALF, **half, labels=np.array(head.labels))
        (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
        printed = printed_by(README, folder, "readme.db")
        printed |= printed_by(FIRST_PAGES, folder, "pages.db") | printed_by(RUNS, folder, "runs.db")
    _record.write("transcripts", {"printed": printed})


def printed_by(commands: dict[str, str], folder: Path, database: str) -> dict[str, dict[str, str]]:
    """Each command with what it wrote to stdout, run one after another in the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "ARGMAXABLE_DB": database}
    printed = {}
    for name, command in commands.items():
        words = [sys.executable, "-c", "from argmaxable.cli import main; main()", *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: some class is unargmaxable
            raise RuntimeError(f"{command}: {done.stderr}")
        printed[name] = {"command": command, "output": done.stdout.rstrip("\n")}
    return printed


if __name__ == "__main__":
    main()
