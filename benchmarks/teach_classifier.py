"""Teaches Magika, a classifier of file types, a type that it does not know, from files of this machine.

    python benchmarks/teach_classifier.py FOLDER --label pyi --suffix .pyi --files ROOT... [--most 3000]

FOLDER holds model.onnx and config.min.json (package magika). Files below the roots with the suffix are
examples of the new label, those with a few well-known suffixes of other labels, the rest are ordinary. The
network runs once for each file, up to the input of its output layer. Whole folders are held out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import argmaxable as am
from argmaxable.models.write import place_of_new_classes, write_head

_KNOWN = {".py": "python", ".h": "c", ".c": "c", ".json": "json", ".html": "html", ".xml": "xml"}


def session_to_head(model: Path, tensor: str) -> onnxruntime.InferenceSession:
    """The network up to what its output layer multiplies."""
    loaded = onnx.load(model)
    node = next(each for each in loaded.graph.node if tensor in each.input)
    features = next(name for name in node.input if name != tensor)
    loaded.graph.output.append(onnx.helper.make_empty_tensor_value_info(features))
    del loaded.graph.output[:-1]
    return onnxruntime.InferenceSession(loaded.SerializeToString(), providers=["CPUExecutionProvider"])


def tokens(path: Path, settings: dict[str, int]) -> np.ndarray:
    """First and last bytes without surrounding white space, padded, as Magika takes them."""
    data, size = path.read_bytes(), settings["beg_size"]
    begin = data[: settings["block_size"]].lstrip()[:size]
    end = data[-settings["block_size"] :].rstrip()[-settings["end_size"] :]
    row = np.full(size + settings["end_size"], settings["padding_token"], np.int32)
    row[: len(begin)] = np.frombuffer(begin, np.uint8)
    row[len(row) - len(end) :] = np.frombuffer(end, np.uint8)
    return row


def chosen_files(
    roots: list[Path], suffix: str, most: int, rng: np.random.Generator
) -> list[tuple[Path, str]]:
    """Files with the folder they come from: at most `most` with the suffix, and twice as many without."""
    found = [
        (path, path.relative_to(root).parts[0])
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and 64 < path.stat().st_size < 2**22
    ]
    mine = [each for each in found if each[0].suffix == suffix]
    rest = [each for each in found if each[0].suffix != suffix]

    def draw(some: list, count: int) -> list:
        return [some[k] for k in rng.permutation(len(some))[:count]]

    return draw(mine, most) + draw(rest, 2 * most)


def read(session: onnxruntime.InferenceSession, files: list[Path], settings: dict[str, int]) -> np.ndarray:
    rows = []
    for start in range(0, len(files), 64):
        batch = np.array([tokens(path, settings) for path in files[start : start + 64]])
        rows.append(session.run(None, {session.get_inputs()[0].name: batch})[0])
    return np.concatenate(rows).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--label", required=True)
    parser.add_argument("--suffix", required=True)
    parser.add_argument("--files", type=Path, nargs="+", required=True)
    parser.add_argument("--most", type=int, default=3000)
    parser.add_argument("--look-alikes", action="store_true", help="teach it even if it resembles another")
    parser.add_argument("--save", type=Path, help="also write the examples, for argmaxable teach --features")
    options = parser.parse_args()
    model, settings = (
        options.folder / "model.onnx",
        json.loads((options.folder / "config.min.json").read_text()),
    )
    finding = am.find_head(model)
    head = finding.head("magika")
    files = chosen_files(options.files, options.suffix, options.most, np.random.default_rng(0))
    started = time.perf_counter()
    features = read(session_to_head(model, finding.weight.name), [path for path, _ in files], settings)
    print(f"{len(files):,} files read: {time.perf_counter() - started:.0f} s")
    names = [
        options.label if path.suffix == options.suffix else _KNOWN.get(path.suffix, "") for path, _ in files
    ]
    # A third of the folders, by their names, is never learned from.
    source = ["held out" if zlib.crc32(folder.encode()) % 3 == 0 else "training" for _, folder in files]
    rows = np.array([place for place, name in enumerate(names) if name])
    examples = am.Examples(
        features,
        np.arange(len(files) + 1),
        tuple(source),
        tuple(filter(None, names)),
        np.stack([rows, rows + 1], 1),
    )
    if options.save is not None:
        np.savez(options.save, features=features, labels=np.array(names), source=np.array(source))
    assert finding.inputs is not None
    assert finding.inputs.domain is not None
    taught = am.teach(
        head, finding.inputs.domain, examples.from_sources({"training"}), [], add=[options.label],
        held_out=examples.from_sources({"held out"}),
        rules=am.TeachingRules(add_at=place_of_new_classes(finding), allow_look_alikes=options.look_alikes),
    )  # fmt: skip
    print(taught, taught.classes, taught.held_out.changed, taught.held_out.taken, taught.phases, sep="\n")
    print(taught.held_out.readings, taught.held_out.substituted, taught.held_out.taken_by, sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "taught.onnx"
        write_head(str(model), finding, head, taught.after, target)
        session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
        mine = [path for path, held in zip(files, source, strict=True) if held == "held out"]
        mine = [path for path, _ in mine if path.suffix == options.suffix]
        scores = read(session, mine, settings)
        count = int((scores.argmax(axis=1) == head.classes).sum())
        print(f"the written model reads {count:,} of {len(mine):,} held-out files")


if __name__ == "__main__":
    main()
