"""llamafiles: the GGUF in the archive behind the program, read where it lies."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import gguf_writer
import numpy as np
import pytest

from argmaxable import AmbiguousError, LoadError, find_head, load_head

WEIGHT = np.random.default_rng(2).normal(size=(9, 16)).astype(np.float32)
PROGRAM = b"MZqFpD='" + bytes(range(256)) * 5 + b"x"  # of an odd length, as nothing aligns it


def model(folder: Path, weight: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = WEIGHT) -> bytes:
    tensors = {"output.weight": weight, "output_norm.weight": np.ones(16, np.float32)}
    path = gguf_writer.write(folder / "inside.gguf", tensors, tokens=tuple("abcdefghi"))
    data = path.read_bytes()
    path.unlink()
    return data


def llamafile(
    folder: Path, members: Mapping[str, bytes] | list[tuple[str, bytes]], *, method: int = zipfile.ZIP_STORED
) -> Path:
    path = folder / "model.llamafile"
    path.write_bytes(PROGRAM)
    with zipfile.ZipFile(path, "a", method) as archive:
        for name, data in members.items() if isinstance(members, Mapping) else members:
            archive.writestr(name, data)
    return path


def test_the_model_inside_is_read_as_it_is_outside(tmp_path: Path) -> None:
    data = model(tmp_path)
    (tmp_path / "plain.gguf").write_bytes(data)
    path = llamafile(
        tmp_path, {".args": b"-m\nmodel.gguf\n", "model.gguf": data, "usr/share/zoneinfo": b"x" * 99}
    )
    inside, outside = find_head(path), find_head(tmp_path / "plain.gguf")
    assert (inside.weight, inside.labels, inside.why) == (outside.weight, outside.labels, outside.why)
    assert inside.inputs is not None
    assert outside.inputs is not None
    assert inside.inputs.domain == outside.inputs.domain
    assert np.array_equal(np.asarray(load_head(path).weight), WEIGHT)


def test_it_is_told_by_its_first_bytes_as_well(tmp_path: Path) -> None:
    path = llamafile(tmp_path, {"model.gguf": model(tmp_path)}).rename(tmp_path / "tiny.exe")
    assert np.array_equal(np.asarray(load_head(path).weight), WEIGHT)


@pytest.mark.parametrize("named", ["second.gguf", "/zip/second.gguf"])
def test_of_two_models_the_arguments_say_which_is_run(tmp_path: Path, named: str) -> None:
    members = {
        ".args": f"--temp\n0\n-m\n{named}\n--mmproj\nfirst.gguf\n...\n".encode(),
        "first.gguf": model(tmp_path, WEIGHT[::-1].copy()),
        "second.gguf": model(tmp_path),
    }
    assert np.array_equal(np.asarray(load_head(llamafile(tmp_path, members)).weight), WEIGHT)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (b"-c\n0", "holds 2 models"),
        (b"-m\na.gguf\n-m\nb.gguf", "holds 2 models"),
        (b"-m\nc.gguf", "holds 2 models"),
    ],
)
def test_of_two_models_none_is_guessed(tmp_path: Path, arguments: bytes, complaint: str) -> None:
    data = model(tmp_path)
    with pytest.raises(LoadError, match=complaint):
        load_head(llamafile(tmp_path, {".args": arguments, "a.gguf": data, "b.gguf": data}))


def test_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="without a model"):
        load_head(llamafile(tmp_path, {"readme": b"x"}))
    with pytest.raises(LoadError, match="compressed"):
        load_head(llamafile(tmp_path, {"model.gguf": model(tmp_path)}, method=zipfile.ZIP_DEFLATED))
    (tmp_path / "bare.llamafile").write_bytes(PROGRAM)
    with pytest.raises(LoadError, match="not a readable llamafile"):
        load_head(tmp_path / "bare.llamafile")
    with pytest.raises(LoadError, match="does not begin with GGUF"):
        load_head(llamafile(tmp_path, {"model.gguf": b"no model"}))


def test_a_member_twice_is_ambiguous(tmp_path: Path) -> None:
    data = model(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = llamafile(tmp_path, [("model.gguf", data), ("model.gguf", data)])
    with pytest.raises(AmbiguousError, match="two members"):
        load_head(path)


def test_what_a_model_declares_must_lie_in_its_member(tmp_path: Path) -> None:
    data = model(tmp_path)
    path = llamafile(tmp_path, {"model.gguf": data[:-64], "more": bytes(4096)})
    with pytest.raises(LoadError, match="cut short"):
        load_head(path)
