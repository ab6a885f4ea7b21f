"""Makes forgeries of the good bundles: each says something that is not so, or is not a bundle any more.

    python conformance/forge.py FOLDER

They are the same every time. Most are sealed again after the change: files and counts agree, so that only the
lie itself gives them away. A checker has to refuse every one of them. Needs NumPy, nothing of argmaxable.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
GOOD = HERE / "good"
FILES = ("verdicts.jsonl", "evidence.npz")
STATUSES = ("argmaxable", "unargmaxable", "undecided")

WITNESSES = ("own", "point32", "point64", "point")
CERTIFICATES = ("rival", "certificate", "weights")
# Digits of another script, which Python reads as digits.
WIDE = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}

Line = dict[str, Any]


@dataclass
class Bundle:
    """The files of a bundle in memory, to be changed and written."""

    manifest: Line
    lines: list[Line]
    arrays: dict[str, Any]

    @staticmethod
    def read(folder: Path) -> Bundle:
        lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").split("\n")
        with np.load(folder / "evidence.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return Bundle(manifest, [json.loads(line) for line in lines if line], arrays)

    def write(self, folder: Path) -> None:
        """Write the bundle, with new counts and new SHA-256."""
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        (folder / "verdicts.jsonl").write_text(text, encoding="utf-8")
        # Not compressed: so small, arrays take longer to unpack than to check.
        np.savez(folder / "evidence.npz", allow_pickle=False, **self.arrays)
        self.count()
        if "files" in self.manifest:
            self.manifest["files"] = {name: sha256(folder / name) for name in FILES}
        write_manifest(folder / "manifest.json", self.manifest)

    def count(self) -> None:
        """Make the manifest's counts those of the lines."""
        for status in STATUSES:
            self.manifest[status] = sum(line.get("status") == status for line in self.lines)
        self.manifest["tied"] = sum(is_tied(line) for line in self.lines)


def is_tied(line: Line) -> bool:
    """Whether nothing but identical classes is said to keep the class from being predicted."""
    lower, kind = line.get("lower"), (line.get("status"), line.get("method"))
    return (
        "tie" in line and kind == ("unargmaxable", "twin") and isinstance(lower, int | float) and lower >= 0
    )


def write_manifest(path: Path, manifest: Line) -> None:
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reseal(folder: Path) -> None:
    """Give verdicts that were changed a manifest whose counts and SHA-256 agree with them."""
    path = folder / "manifest.json"
    lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").split("\n")
    bundle = Bundle(
        json.loads(path.read_text(encoding="utf-8")), [json.loads(line) for line in lines if line], {}
    )
    bundle.count()
    write_manifest(path, bundle.manifest)
    seal_files(path)


def seal_files(header: Path) -> None:
    """Make the SHA-256 in a header those of the files beside it."""
    manifest = json.loads(header.read_text(encoding="utf-8"))
    if "files" in manifest:
        manifest["files"] = {name: sha256(header.parent / name) for name in manifest["files"]}
        write_manifest(header, manifest)


# ---------------------------------------------------------------------- lies in words


def in_the_manifest(bundle: Bundle) -> Iterator[tuple[str, Line]]:
    """Names and manifests that are not true."""
    manifest, head = bundle.manifest, bundle.manifest["head"]
    for status in (*STATUSES, "tied"):
        yield f"{status}-more", manifest | {status: manifest[status] + 1}
        yield f"{status}-none", manifest | {status: None}
    for name in ("classes", "features"):
        yield f"{name}-more", manifest | {"head": head | {name: head[name] + 1}}
        yield f"{name}-less", manifest | {"head": head | {name: head[name] - 1}}
    yield "classes-true", manifest | {"head": head | {"classes": float(head["classes"])}}
    yield "another-head", manifest | {"head": head | {"sha256": "0" * 64}}
    yield "another-format", manifest | {"format": "argmaxable-proofs-9"}
    yield "no-domain", {key: value for key, value in manifest.items() if key != "domain"}
    yield "unknown-domain", manifest | {"domain": {"kind": "torus"}}
    if manifest["domain"]["kind"] == "box":  # 256 to a reader of hexadecimal numbers, 100 to everybody else
        yield "decimal-domain", manifest | {"domain": {"kind": "box", "lo": "-100", "hi": "100"}}
    yield "complete-yes", manifest | {"complete": "yes"}
    yield "complete-none", manifest | {"complete": None}
    if any(line.get("reason") == "interrupted" for line in bundle.lines):
        yield "complete", manifest | {"complete": True}
    if "files" in manifest:
        files = manifest["files"]
        yield "no-files", {key: value for key, value in manifest.items() if key != "files"}
        for name in files:
            yield f"another-{name}", manifest | {"files": files | {name: "0" * 64}}
        swapped = dict(zip(files, reversed(files.values()), strict=True))
        yield "files-swapped", manifest | {"files": swapped}
        yield "files-one-more", manifest | {"files": files | {"other.txt": "0" * 64}}
        if head["labels_sha256"] is not None:
            yield "no-labels", manifest | {"head": head | {"labels_sha256": None}}
            yield "other-labels", manifest | {"head": head | {"labels_sha256": "0" * 64}}


def labels(bundle: Bundle) -> Iterator[tuple[str, list[Line]]]:
    """Lines with labels that are not the model's."""
    first, *rest = bundle.lines
    is_labelled = any(line["label"] != str(line["class"]) for line in bundle.lines)
    if "files" not in bundle.manifest and not is_labelled:
        return  # format 1 does not say that the model has no labels
    yield "label", [first | {"label": "something else"}, *rest]
    yield "no-label", [first | {"label": None}, *rest]
    if rest and first["label"] != rest[0]["label"]:
        second, *rest = rest
        swapped = [first | {"label": second["label"]}, second | {"label": first["label"]}]
        yield "labels-swapped", [*swapped, *rest]


# ---------------------------------------------------------------------- lies in lines


def without(line: Line, *keys: str) -> Line:
    return {key: value for key, value in line.items() if key not in keys}


def about_a_class(line: Line, classes: int) -> Iterator[tuple[str, Line]]:
    """Lines that claim what is not so, or what their evidence does not prove."""
    status, lower, upper = line["status"], line["lower"], line["upper"]
    yield "no-such-class", line | {"class": classes}
    if "own" in line:
        yield "own-true", line | {"own": True}
    if "rival" in line:
        yield "rival-true", line | {"rival": True}
    if lower is None and upper is None:
        return
    for other in STATUSES:
        if other != status:
            yield f"{status}-{other}", line | {"status": other}
    if lower is not None:
        yield "bound-nan", line | {"lower": float("nan")}
        yield "bound-text", line | {"lower": str(lower)}
        yield from about_a_witness(line)
    if upper is not None:
        yield from about_a_certificate(line, classes)
    if status == "argmaxable":
        loses = {"status": "unargmaxable", "upper": -1.0, "lower": None}
        yield "loses", without(line, *CERTIFICATES) | loses
        yield "far-ahead", line | {"lower": 1e9 if upper is None else 2 * upper + 1}
    if status == "unargmaxable":
        wins = {"status": "argmaxable", "lower": 5e-324, "upper": None}
        yield "wins", line | wins
        yield "wins-at-its-row", without(line, *WITNESSES, *CERTIFICATES) | wins | {"own": 0}
        yield "far-behind", line | {"upper": -1e9}
    if "tie" in line:
        yield "no-tie", without(line, "tie")
        yield "no-such-tie", line | {"tie": 10**6}


def about_a_witness(line: Line) -> Iterator[tuple[str, Line]]:
    yield "no-witness", without(line, *WITNESSES)
    if "point" in line:
        yield "fine-point-moved", line | {"point": [hex(int(value, 16) + 2**21) for value in line["point"]]}
        yield "fine-point-wide", line | {"point": [number.translate(WIDE) for number in line["point"]]}
        yield "fine-point-true", line | {"exponent": True}
        yield "fine-point-coarse", line | {"exponent": line["exponent"] + 1}
        yield "fine-point-short", line | {"point": line["point"][1:]}
    else:
        yield "two-witnesses", line | {"own": 0, "point32": 0, "point64": 0}
    for name in ("point32", "point64"):
        if name in line:
            yield f"no-such-{name}", line | {name: 10**6}
    if "own" in line:
        yield "own-too-far", line | {"own": 4000}


def about_a_certificate(line: Line, classes: int) -> Iterator[tuple[str, Line]]:
    yield "no-certificate", without(line, *CERTIFICATES)
    yield "rival-and-certificate", line | {"rival": (line["class"] + 1) % classes, "certificate": 0}
    if "rival" in line:
        yield "own-rival", line | {"rival": line["class"]}
        yield "no-such-rival", line | {"rival": classes}
    if "certificate" in line:
        yield "no-such-certificate", line | {"certificate": 10**6}
    if "weights" in line:
        yield "weights-negative", line | {"weights": ["-" + weight for weight in line["weights"]]}
        yield "weights-short", line | {"weights": line["weights"][1:]}
        yield "weights-wide", line | {"weights": [weight.translate(WIDE) for weight in line["weights"]]}
        yield "weights-zeros", line | {"weights": [weight.replace("0x", "0x0") for weight in line["weights"]]}
        yield "weights-none", line | {"weights": ["0x0" for _ in line["weights"]]}


# ---------------------------------------------------------------------- lies in arrays


def in_arrays(bundle: Bundle) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arrays that prove something else, or nothing."""
    arrays = bundle.arrays
    used = {key for line in bundle.lines for key in line}
    literal = any("certificate" in line and "weights" not in line for line in bundle.lines)
    if literal:
        weights, classes = arrays["certificate_weights"], arrays["certificate_classes"]
        yield "weights-negated", {"certificate_weights": -weights}
        yield "weights-zero", {"certificate_weights": np.zeros_like(weights)}
        yield "weights-nan", {"certificate_weights": np.full_like(weights, np.nan)}
        yield "weights-whole", {"certificate_weights": weights.astype(np.int64)}
        yield "basis-too-large", {"certificate_basis": np.full_like(arrays["certificate_basis"], 10**6)}
        yield "classes-one", {"certificate_classes": np.zeros_like(classes)}
        yield "classes-beyond", {"certificate_classes": classes.astype(np.int64) + 10**6}
    for name in ("32", "64"):
        points = arrays[f"points{name}"]
        if f"point{name}" in used:
            yield f"points{name}-nan", {f"points{name}": np.full_like(points, np.nan)}
            yield f"points{name}-longer", {f"points{name}": np.hstack([points, points[:, :1]])}
            yield f"points{name}-none", {f"points{name}": points[:0]}
    if any("own" in line and line["lower"] is not None for line in bundle.lines):
        yield "centre-nan", {"centre": np.full_like(arrays["centre"], np.nan)}
        yield "centre-short", {"centre": arrays["centre"][1:]}
    if "tie" in used:
        yield "ties-beyond", {"tie_classes": arrays["tie_classes"].astype(np.int64) + 10**6}
        yield "ties-one", {"tie_classes": np.zeros_like(arrays["tie_classes"])}
    for name in ("certificate_start", "coordinate_start", "tie_start"):
        yield f"{name}-long", {name: np.append(arrays[name], arrays[name][-1] + 1)}
        yield f"{name}-shifted", {name: arrays[name] + 1}


# ---------------------------------------------------------------------- all of them


def forgeries(name: str, good: Path, target: Path) -> Iterator[Path]:
    """Write the forgeries of one bundle below the target; yields their folders."""

    def place(*words: str) -> Path:
        return target / f"{name}--{'-'.join(words)}"

    genuine = Bundle.read(good)

    def read() -> Bundle:
        return deepcopy(genuine)

    for what, manifest in in_the_manifest(genuine):
        # Beside files with the SHA-256 that the manifest has: nothing else is wrong.
        shutil.copytree(good, place(what))
        write_manifest(place(what) / "manifest.json", manifest)
        yield place(what)
    for what, lines in labels(read()):
        bundle = read()
        bundle.lines = lines
        bundle.write(place(what))
        yield place(what)
    classes = read().manifest["head"]["classes"]
    seen: set[str] = set()
    for number, line in enumerate(read().lines):
        for what, changed in about_a_class(line, classes):
            if what not in seen:  # one of each kind is enough
                seen.add(what)
                bundle = read()
                bundle.lines[number] = changed
                bundle.write(place("class", str(number), what))
                yield place("class", str(number), what)
    for what, arrays in in_arrays(read()):
        bundle = read()
        bundle.arrays |= arrays
        bundle.write(place("arrays", what))
        yield place("arrays", what)
    yield from as_text(read(), place)


def as_text(bundle: Bundle, place: Callable[..., Path]) -> Iterator[Path]:
    """What only the text of a file can say: a key or a line twice, files that were changed after sealing."""
    folder = place("line-twice")
    bundle.lines.append(bundle.lines[0])
    bundle.write(folder)
    yield folder
    bundle.lines.pop()
    folder = place("key-twice")
    bundle.write(folder)
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", '{\n  "unargmaxable": 0,', 1), encoding="utf-8")
    yield folder
    folder = place("key-twice-in-a-line")
    bundle.write(folder)
    path = folder / "verdicts.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", '{"status": "argmaxable", ', 1), encoding="utf-8")
    seal_files(folder / "manifest.json")
    yield folder
    if "files" in bundle.manifest:
        folder = place("not-sealed")
        bundle.write(folder)
        bundle.lines[0]["method"] = "none" if bundle.lines[0]["method"] != "none" else "reflection"
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in bundle.lines)
        (folder / "verdicts.jsonl").write_text(text, encoding="utf-8")
        yield folder


def forge_all(target: Path) -> dict[Path, Path]:
    """Write all forgeries below the target: their folders, with the heads they are said to be about."""
    expected = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    return {
        folder: HERE / entry["head"]
        for name, entry in expected.items()
        for folder in forgeries(name, GOOD / name, target)
    }


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    print(f"{len(forge_all(Path(sys.argv[1])))} forgeries in {sys.argv[1]}.")
