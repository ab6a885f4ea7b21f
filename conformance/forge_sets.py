"""Makes forgeries of the good bundles of label sets; the answer to every one of them is "refused".

They are the same every time. SHA-256 and counts are made to fit the lie, unless they are the lie.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

try:
    from conformance.forge import sha256, write_manifest
except ImportError:  # called as a script
    from forge import sha256, write_manifest

HERE = Path(__file__).parent
GOOD_SETS = HERE / "good_sets"
STATUSES = ("feasible", "infeasible", "undecided")
Line = dict[str, Any]


@dataclass
class SetBundle:
    """The files of a bundle of sets in memory, to be changed and written."""

    header: Line
    lines: list[Line]
    arrays: dict[str, Any]

    @staticmethod
    def read(folder: Path) -> SetBundle:
        text = (folder / "sets.jsonl").read_text(encoding="utf-8")
        with np.load(folder / "sets.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads((folder / "sets.json").read_text(encoding="utf-8"))
        return SetBundle(header, [json.loads(line) for line in text.split("\n") if line], arrays)

    def write(self, folder: Path) -> None:
        """Write the bundle, with new counts and new SHA-256."""
        folder.mkdir(parents=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        (folder / "sets.jsonl").write_text(text, encoding="utf-8")
        # Not compressed: so small, arrays take longer to pack and unpack than to check.
        np.savez(folder / "sets.npz", allow_pickle=False, **self.arrays)
        self.header |= {
            status: sum(line.get("status") == status for line in self.lines) for status in STATUSES
        }
        self.header["files"] = {name: sha256(folder / name) for name in ("sets.jsonl", "sets.npz")}
        write_manifest(folder / "sets.json", self.header)


def forgeries(name: str, good: Path, target: Path) -> Iterator[Path]:
    """Folders with forgeries of one good bundle, written into the target."""
    genuine = SetBundle.read(good)
    lies = {**_in_lines(genuine), **_in_arrays(genuine)}
    seen: set[str] = set()
    for title, change in lies.items():
        what = title.lstrip("0123456789-")
        if what in seen:  # one of each kind is enough
            continue
        seen.add(what)
        bundle = copy.deepcopy(genuine)
        change(bundle)
        folder = target / f"{name}-{title}"
        bundle.write(folder)
        yield folder
    for title, header in _in_header(genuine.header):
        folder = target / f"{name}-{title}"
        # Beside files with the SHA-256 that the header has: nothing else is wrong.
        shutil.copytree(good, folder)
        write_manifest(folder / "sets.json", header)
        yield folder


def _in_header(header: Line) -> Iterator[tuple[str, Line]]:
    head = header["head"]
    for status in STATUSES:
        yield f"{status}-more", header | {status: header[status] + 1}
    yield "classes-more", header | {"head": head | {"classes": head["classes"] + 1}}
    yield "another-head", header | {"head": head | {"sha256": "0" * 64}}
    yield "another-format", header | {"format": "argmaxable-sets-9"}
    yield "no-question", {key: value for key, value in header.items() if key != "question"}
    yield "unknown-kind", header | {"question": header["question"] | {"kind": "at-most"}}
    yield "thresholds-for-others", header | {"question": header["question"] | {"thresholds": ["0x0p0"] * 3}}
    yield "another-file", header | {"files": header["files"] | {"sets.jsonl": "0" * 64}}
    yield "unknown-domain", header | {"domain": {"kind": "torus"}}
    yield "complete-in-words", header | {"complete": "yes"}
    yield "complete-missing", {key: value for key, value in header.items() if key != "complete"}
    yield "decimal-thresholds", header | {"question": header["question"] | {"thresholds": "0.5"}}


def _in_lines(bundle: SetBundle) -> dict[str, Callable[[SetBundle], None]]:
    """Changes of one line, each by its name."""

    def edit(number: int, **changes: Any) -> Callable[[SetBundle], None]:
        return lambda one: one.lines[number].update(changes)

    lies: dict[str, Callable[[SetBundle], None]] = {}
    for number, line in enumerate(bundle.lines):
        if line["status"] == "feasible" and line["lower"] is not None:
            lies[f"{number}-margin-too-large"] = edit(number, lower=line["lower"] * 2 + 1)
            lies[f"{number}-never"] = edit(number, status="infeasible", lower=None, upper=-1.0)
            lies[f"{number}-no-point"] = lambda one, number=number: _drop(one, number, "point32", "point64")
        if line["status"] == "infeasible":
            lies[f"{number}-margin-too-small"] = edit(number, upper=line["upper"] * 2 - 1)
            lies[f"{number}-can"] = edit(number, status="feasible", lower=1.0, upper=None)
            lies[f"{number}-undecided"] = edit(number, status="undecided")
            lies[f"{number}-no-certificate"] = lambda one, number=number: _drop(one, number, "certificate")
        if line["set"]:
            lies[f"{number}-another-label"] = edit(number, labels=["?", *line["labels"][1:]])
            lies[f"{number}-label-beyond"] = edit(number, set=[*line["set"][:-1], 10**6])
        lies[f"{number}-twice"] = lambda one, number=number: one.lines.append(
            copy.deepcopy(one.lines[number])
        )
    return lies


def _drop(bundle: SetBundle, number: int, *keys: str) -> None:
    for key in keys:
        bundle.lines[number].pop(key, None)


def _in_arrays(bundle: SetBundle) -> dict[str, Callable[[SetBundle], None]]:
    lies: dict[str, Callable[[SetBundle], None]] = {}
    if len(bundle.arrays["points32"]):
        lies["points-infinite"] = lambda one: one.arrays["points32"].fill(np.inf)
    whole = [k for k, line in enumerate(bundle.lines) if "weights" in line]
    for number in whole:
        lies[f"{number}-weight-below-0"] = lambda one, k=number: one.lines[k]["weights"].__setitem__(
            0, "-0x1"
        )
        lies[f"{number}-weights-missing"] = lambda one, k=number: one.lines[k]["weights"].pop()
        lies[f"{number}-weights-zero"] = lambda one, k=number: one.lines[k].update(
            weights=["0x0" for _ in one.lines[k]["weights"]]
        )
    if len(bundle.arrays["certificate_weights"]) and not whole:
        lies["weights-below-0"] = lambda one: np.negative(
            one.arrays["certificate_weights"], out=one.arrays["certificate_weights"]
        )
    return lies


def forge_all_sets(target: Path) -> dict[Path, Path]:
    """All forgeries with their heads."""
    expected = json.loads((HERE / "expected_sets.json").read_text(encoding="utf-8"))
    return {
        folder: HERE / entry["head"]
        for name, entry in expected.items()
        for folder in forgeries(name, GOOD_SETS / name, target)
    }
