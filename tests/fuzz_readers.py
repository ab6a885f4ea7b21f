"""Whatever this package and a format's own library both accept must give the same bytes.

    python tests/fuzz_readers.py npz --cases 20000          so many files of a format, or of several
    python tests/fuzz_readers.py npz --cases 1 --first 17   the 18th of them again

Files come from `fuzz_files`, by number, so that each can be made again. They are read in a process of their
own, for damaged files make some libraries crash. The answer is a line of JSON for each format: how many files
were the same in all readers that accept them, refused by us, refused by all the others, or made one of the
readers crash.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import fuzz_files
import fuzz_runtimes
import numpy as np
from numpy.typing import NDArray

from argmaxable import LoadError
from argmaxable.models import find_head
from argmaxable.models.keras import hdf5 as keras_hdf5
from argmaxable.models.keras import hdf5_reader

Array = NDArray[Any]
Case = tuple[str, int]  # a format, and the number of its file
# The letter that stands for each outcome of a case.
OUTCOMES = {"s": "same", "r": "refused by us", "o": "refused by others", "d": "different", "c": "crashed"}
SECONDS_A_CASE = 60  # of CPU time, for a busy machine may take its time
MEMORY = 6 * 2**30


class Stored(dict[str, Array]):
    """Arrays by name, as a library reads them."""


def ours(path: Path) -> tuple[str, Array, str | None, Array | None]:
    """The names and values of the weight and the bias, as this package reads them."""
    finding = find_head(path, tensor="l2" if path.suffix == ".hnsw" else None)
    weight, bias = finding.read()
    if finding.format in ("faiss", "hnswlib"):  # a bias is computed
        bias = None
    if finding.format == "hnswlib" and finding.labels:
        return "\n".join(finding.labels.names), np.asarray(weight), None, None
    return finding.weight.name, np.asarray(weight), finding.bias.name if finding.bias else None, bias


# ---------------------------------------------------------------------- the libraries


def by_onnx(path: Path) -> Stored:
    import onnx

    model = onnx.load(str(path))
    tensors = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            tensors |= {
                name: each.t for name in node.output for each in node.attribute if each.name == "value"
            }
    return Stored(
        (name, onnx.numpy_helper.to_array(each, base_dir=str(path.parent)).T)
        for name, each in tensors.items()
    )


def by_onnxruntime(path: Path) -> Stored:
    """The layer that ONNX Runtime computes: what it makes of no features, and of each alone."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    features = session.get_inputs()[0].shape[1]
    (sums,) = session.run(["y"], {"x": np.eye(features, dtype=np.float32)})
    (bias,) = session.run(["y"], {"x": np.zeros((features, features), np.float32)})
    return Stored({"": sums.T, "bias": bias[0]})


def by_numpy(path: Path) -> Stored:
    with np.load(path, allow_pickle=False) as archive:
        return Stored((name, archive[name]) for name in archive.files)


def by_safetensors(path: Path) -> Stored:
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        return Stored((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118  # it can not be iterated


def by_gguf(path: Path) -> Stored:
    import gguf

    found = Stored()
    for tensor in gguf.GGUFReader(path).tensors:
        columns = int(tensor.shape[0])
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        found[tensor.name] = np.asarray(values).reshape(-1, columns)
    return found


def _datasets(stream: Any) -> Stored:
    import h5py

    found = Stored()
    with h5py.File(stream, "r") as file:

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = item[()].T

        file.visititems(visit)
    return found


def by_h5py(path: Path) -> Stored:
    return _datasets(BytesIO(path.read_bytes()))


def by_zipfile_and_h5py(path: Path) -> Stored:
    with ZipFile(path) as archive:
        return _datasets(BytesIO(archive.read("model.weights.h5")))


def by_torch(path: Path) -> Stored:
    import torch

    loaded = torch.load(path, map_location="cpu", weights_only=True)
    while isinstance(loaded.get("model"), dict) or isinstance(loaded.get("state_dict"), dict):
        loaded = loaded["model" if "model" in loaded else "state_dict"]
    inner = {
        f"{key}.{name}": each
        for key, level in loaded.items()
        if isinstance(level, dict)
        for name, each in level.items()
    }
    named = loaded | inner
    return Stored((name, each.numpy()) for name, each in named.items() if isinstance(each, torch.Tensor))


def by_torch_jit(path: Path) -> Stored:
    import torch

    state = torch.jit.load(path, map_location="cpu").state_dict()
    return Stored((name, each.numpy(force=True)) for name, each in state.items())


def by_pt2_archive(path: Path) -> Stored:
    """The weights alone: building the graph of one file takes longer than all other readers together."""
    from torch.export.pt2_archive._package import PT2ArchiveReader, _load_state_dict

    state = _load_state_dict(PT2ArchiveReader(str(path)), "model")
    return Stored((name, each.numpy(force=True)) for name, each in state.items())


READERS: dict[str, tuple[Callable[[Path], Stored], ...]] = {
    "onnx": (by_onnx, by_onnxruntime),
    "npz": (by_numpy,),
    "safetensors": (by_safetensors,),
    "gguf": (by_gguf,),
    "hdf5": (by_h5py,),
    "keras": (by_zipfile_and_h5py,),
    "pytorch": (by_torch,),
    "torchscript": (by_torch_jit,),
    "torch.export": (by_pt2_archive,),
    **fuzz_runtimes.READERS,
}


# ---------------------------------------------------------------------- one case


def case(format_name: str, number: int, folder: Path) -> str:
    """The letter of the outcome of a file."""
    path = written(format_name, random.Random(f"{format_name} {number}"), folder)
    try:
        read = ours(path)
    except LoadError:
        return "r"
    agreeing = 0
    for reader in READERS[format_name]:
        try:
            stored = reader(path)
        except Exception:  # whatever a library raises is a refusal
            continue
        if not agrees(stored, read):
            return "d"
        agreeing += 1
    return "s" if agreeing else "o"


def written(format_name: str, rng: random.Random, folder: Path) -> Path:
    """The path of the file that is to be read; others may be beside it."""
    if format_name in fuzz_runtimes.MAKERS:
        files = fuzz_runtimes.MAKERS[format_name](rng)
    else:
        suffix, make = fuzz_files.MAKERS[format_name]
        files = {suffix: make(rng)}
    for suffix, data in files.items():
        (folder / f"model{suffix}").write_bytes(data)
    return folder / f"model{next(iter(files))}"


def agrees(stored: Stored, read: tuple[str, Array, str | None, Array | None]) -> bool:
    """Whether a library found the weight and the bias that we have read."""
    name, weight, bias_name, bias = read
    if "" in stored:  # computed: exact where everything is finite
        shift = np.zeros(len(weight), np.float32) if bias is None else bias.reshape(-1)
        if not (np.isfinite(weight).all() and np.isfinite(shift).all()):
            return True
        with np.errstate(over="ignore"):
            return np.array_equal(stored[""], weight + shift[:, np.newaxis]) and np.array_equal(
                stored["bias"], shift
            )
    pairs = [(name, weight)] if bias is None else [(name, weight), (bias_name, bias)]
    if "\n" in name:  # a vector for each of these
        pairs = list(zip(name.split("\n"), weight, strict=True))
    # Which way round a stored matrix is used, the graph decides: that is compared where it is computed.
    return all(
        key in stored and (_same_bytes(stored[key], values) or _same_bytes(stored[key].T, values))
        for key, values in pairs
    )


def _same_bytes(left: Array, right: Array) -> bool:
    if right.dtype.itemsize < left.dtype.itemsize:  # gguf makes float32 of all floats
        right = right.astype(left.dtype)
    left, right = (np.ascontiguousarray(each.astype(each.dtype.newbyteorder("="))) for each in (left, right))
    return left.size == right.size and left.tobytes() == right.tobytes()


# ---------------------------------------------------------------------- many cases


def _ask_here(extent: keras_hdf5.Extent, dataset: str | None, **_: int) -> bytes:
    """What the process that reads HDF5 files would answer; this process may crash as well as that."""
    import h5py

    try:
        with extent.path.open("rb") as file:
            window = hdf5_reader.io.BufferedReader(hdf5_reader._Window(file, extent.start, extent.size))
            with h5py.File(window, "r") as hdf5:
                if dataset is None:
                    return json.dumps(hdf5_reader._outline(h5py, hdf5)).encode()
                return hdf5_reader._values(hdf5, dataset)
    except Exception as error:
        raise LoadError(f"holds no readable HDF5 file: {error}") from error


def work(cases: Sequence[Case]) -> None:
    """Write the letter of each case's outcome, at once, for the next may be the last."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    keras_hdf5._ask = _ask_here
    answers = os.dup(sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # some libraries write there themselves
    for format_name, number in cases:
        reserves = format_name == "onnx"  # address space
        resource.setrlimit(resource.RLIMIT_AS, (most if reserves else MEMORY, most))
        signal.setitimer(signal.ITIMER_PROF, SECONDS_A_CASE)
        with tempfile.TemporaryDirectory() as folder:
            os.write(answers, case(format_name, number, Path(folder)).encode())


def numbered(formats: Sequence[str], first: int, count: int) -> list[Case]:
    """So many cases of each format; ONNX comes last, for what it reserves is not given back."""
    names = sorted(formats, key=lambda each: each == "onnx")
    return [(name, number) for name in names for number in range(first, first + count)]


def letters(formats: Sequence[str], first: int, count: int) -> Iterator[tuple[Case, str]]:
    """The outcomes of so many cases; where the process dies, "c", and another goes on with the next."""
    cases = numbered(formats, first, count)
    command = [sys.executable, __file__, *formats, "--first", str(first), "--cases", str(count)]
    place = 0
    while place < len(cases):
        with subprocess.Popen(
            [*command, "--work", str(place)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as done:
            assert done.stdout is not None
            while letter := done.stdout.read(1).decode():
                yield cases[place], letter
                place += 1
        if place < len(cases):
            if done.returncode >= 0:
                format_name, number = cases[place]
                raise RuntimeError(
                    f"case {number} of {format_name} ended with {done.returncode}; run it with --work 0"
                )
            yield cases[place], "c"
            place += 1


def compare(formats: Sequence[str], first: int, count: int) -> dict[str, dict[str, Any]]:
    """How often each format's cases came out how, and which of them differ."""
    outcomes: dict[str, dict[int, str]] = {name: {} for name in formats}
    for (format_name, number), letter in letters(formats, first, count):
        outcomes[format_name][number] = letter
    return {
        format_name: {
            "cases": len(its),
            **Counter(OUTCOMES[letter] for letter in its.values()),
            "which differ": [number for number, letter in its.items() if letter == "d"],
        }
        for format_name, its in outcomes.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("format", choices=sorted(READERS), nargs="+")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--work", type=int, help="in this process, a letter for each case from this on")
    options = parser.parse_args()
    for format_name in options.format:
        library = fuzz_runtimes.LIBRARIES.get(format_name)
        if library is not None and find_spec(library) is None:
            parser.error(f"{format_name} is compared with {library}, which is not installed")
    if options.work is not None:
        work(numbered(options.format, options.first, options.cases)[options.work :])
        return 0
    found = compare(options.format, options.first, options.cases)
    for format_name, counts in found.items():
        print(json.dumps({"format": format_name, **counts}))
    return 1 if any(counts["which differ"] for counts in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
