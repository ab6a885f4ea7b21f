"""Damaged files are read, or refused with an error of ours: no other error, no hang, little memory.

    python tests/fuzz_damaged.py tesseract --cases 20000          one format, so many files
    python tests/fuzz_damaged.py tesseract --cases 1 --first 17   the 18th of them again

In each case one file of a small model is changed. In an archive, half the time, one member is changed, so
that no checksum reveals it. The answer is JSON: how many models were read and refused, the numbers of those
that raised another error, and the peak of the memory.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import signal
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

from damaged_models import MODELS
from fuzz_files import disturbed, zipped

from argmaxable import AmbiguousError, ArgmaxableError, HeadError
from argmaxable.models import find_head

SECONDS_A_CASE = 60
MEMORY = 2 * 2**30  # of address space, of which the libraries alone take half

Contents = dict[Path, bytes]


def contents(folder: Path) -> Contents:
    """The files of a model, with their bytes."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def changed_inside(rng: random.Random, data: bytes) -> bytes:
    """An archive with one member changed; the bytes changed where it is not an archive."""
    stream = io.BytesIO(data)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
            before = data[: min(each.header_offset for each in archive.infolist())]
        place = rng.randrange(len(members))
        members[place] = (members[place][0], disturbed(rng, members[place][1]))
        return before + zipped(rng, members)
    stream.seek(0)
    if data[257:262] != b"ustar":
        return disturbed(rng, data)
    out = io.BytesIO()
    with tarfile.open(fileobj=stream) as old, tarfile.open(fileobj=out, mode="w:") as new:
        files = old.getmembers()
        place = rng.randrange(len(files))
        for number, info in enumerate(files):
            file = old.extractfile(info)
            content = file.read() if file else b""
            if number == place:
                content = changed_inside(rng, content) if rng.random() < 0.5 else disturbed(rng, content)
            info.size = len(content)
            new.addfile(info, io.BytesIO(content))
    return out.getvalue()


def replace(path: Path, data: bytes) -> None:
    """Write a file anew: one that is overwritten in place goes to disk at once on ext4, which takes long."""
    path.unlink()
    path.write_bytes(data)


def case(rng: random.Random, files: Contents, model: Path) -> str:
    """ "read" or "refused", or the error that should not have been raised."""
    changed = rng.choice([path for path, data in files.items() if data])
    data = rng.choice((disturbed, changed_inside))(rng, files[changed])
    if rng.random() < 0.1:
        data = disturbed(rng, disturbed(rng, data))
    replace(changed, data)
    try:
        find_head(model).read()
    except (HeadError, AmbiguousError, ArgmaxableError):
        return "refused"
    except Exception as error:  # any other error is what the fuzzing looks for
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        replace(changed, files[changed])
    return "read"


def outcomes(format_name: str, first: int, count: int, *, seconds: int = 0) -> list[str]:
    """What becomes of so many models, by number; each may take so many seconds of computing time, or any."""
    with tempfile.TemporaryDirectory() as folder:
        makers: list[Callable[[Path], Path]] = list(MODELS[format_name])
        models = []
        for number, make in enumerate(makers):
            own = Path(folder) / str(number)
            own.mkdir()
            model = make(own)
            models.append((contents(own), model))
        found = []
        for number in range(first, first + count):
            signal.setitimer(signal.ITIMER_PROF, seconds)  # of computing time: others may use the machine
            rng = random.Random(f"{format_name} {number}")
            found.append(case(rng, *rng.choice(models)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("format", choices=sorted(MODELS))
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = outcomes(options.format, options.first, options.cases, seconds=SECONDS_A_CASE)
    wrong = {
        options.first + place: each for place, each in enumerate(found) if each not in ("read", "refused")
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        json.dumps(
            {
                "format": options.format,
                "cases": len(found),
                "read": found.count("read"),
                "refused": found.count("refused"),
                "other errors": wrong,
                "peak in MB": peak,
            }
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
