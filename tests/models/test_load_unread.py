"""Formats that are not read are named, with the shortest way to a file that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from argmaxable import LoadError, find_head


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("ggml-alpaca-7b.bin", b"tjgg" + bytes(99), r"is a model of GGML's from before GGUF"),
        ("model.ort", b"\x1c\0\0\0ORTM", r"is a model of ONNX Runtime's own format.*\.onnx"),
        ("model.pte", b"\x1c\0\0\0ET12", r"is a program of ExecuTorch.*\.pt2"),
        ("final.mdl", b"\0B<TransitionModel> ", "is a model of Kaldi"),
        ("model.onnx.gz", b"\x1f\x8b\x08\0", r"is a compressed file.*Unpack"),
        (
            "model.whatever",
            b"version https://git-lfs.github.com/spec/v1\n",
            r"is a Git LFS pointer.*git lfs pull",
        ),
    ],
)
def test_a_file_is_named_by_its_first_bytes_or_its_name(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(LoadError, match=message):
        find_head(path)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("manifest.ocdbt", r"is a checkpoint of Orbax.*to_bytes"),
    ],
)
def test_a_folder_is_named_by_what_is_in_it(tmp_path: Path, inside: str, message: str) -> None:
    (tmp_path / inside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / inside).write_bytes(b"\x08\x07")
    with pytest.raises(LoadError, match=message):
        find_head(tmp_path)
