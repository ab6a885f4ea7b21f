"""Which format a path is read with, and what is said about paths that fit none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.registry import BUILT_IN, SUFFIXES, FileFormat, ModelFormat, ReadOptions, find_format

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)

PLUGIN = """
import numpy as np
from argmaxable.models.finding import Finding, TensorInfo

class Text:
    name = "text"
    suffixes = (".weights",)

    def recognises(self, path):
        return path.suffix == ".weights"

    def find(self, path, options):
        rows = [[float(x) for x in line.split()] for line in path.read_text().splitlines()]
        weight = np.array(rows)
        info = TensorInfo("text", weight.shape, "float64")
        return Finding("text", info, None, *weight.shape, "all of it", lambda: (weight, None))

class Greedy(Text):
    def recognises(self, path):
        return True

FORMAT = Text()
GREEDY = Greedy()
NOT_A_FORMAT = "text"
"""


def install_plugin(site: Path, module: str, value: str) -> None:
    """Put a distribution with one entry point into a directory, as pip would."""
    (site / f"{module}.py").write_text(PLUGIN)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[argmaxable.formats]\ntext = {value}\n")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_is_called_empty(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"model{suffix}").touch()
    with pytest.raises(LoadError, match="the file is empty"):
        load_head(str(tmp_path / f"model{suffix}"))


def test_the_head_is_named_after_the_file(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    np.savez(tmp_path / "deep" / "model.npz", W=WEIGHT)
    assert load_head(str(tmp_path / "deep" / "model.npz")).name == "model.npz"


def test_every_built_in_format_satisfies_the_protocol() -> None:
    assert all(isinstance(each, ModelFormat) for each in BUILT_IN)


def test_suffixes_are_recognised_in_either_case(tmp_path: Path) -> None:
    path = tmp_path / "HEAD.NPZ"
    with path.open("wb") as file:
        np.savez(file, W=WEIGHT)
    assert find_format(path).name == "npz"


def test_magic_bytes_are_recognised_without_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "matrix.dat"
    with path.open("wb") as file:
        np.save(file, WEIGHT)
    assert np.array_equal(load_head(path).weight, WEIGHT)


def test_a_missing_file_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"absent\.npz: no such file"):
        load_head(tmp_path / "absent.npz")


def test_a_directory_is_reported_as_one_even_with_a_known_suffix(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(LoadError, match=r"is a directory.*npz \(\.npz, \.npy\).*Pass the file inside it"):
        load_head(tmp_path / "folder.npz")


def test_a_directory_with_one_model_file_stands_for_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=np.eye(3))
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    (tmp_path / "config.json").write_text("{}")
    assert load_head(tmp_path).classes == 3


def test_a_directory_with_several_model_files_names_them(tmp_path: Path) -> None:
    for name in ("b.npz", "a.npz"):
        np.savez(tmp_path / name, W=np.eye(3))
    with pytest.raises(LoadError, match=r"2 model files: a\.npz, b\.npz\. Pass one of them"):
        load_head(tmp_path)


def test_an_unknown_suffix_is_reported_with_the_known_formats(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a model")
    with pytest.raises(LoadError, match=r"'\.txt'.*b'not a mo'.*npz.*onnx.*numpy\.savez"):
        load_head(tmp_path / "notes.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_refused_without_opening_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(LoadError, match="neither a file nor a directory"):
        load_head(tmp_path / "pipe.npz")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_reported(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    (tmp_path / "head.npz").chmod(0)
    with pytest.raises(LoadError, match="Permission denied"):
        load_head(tmp_path / "head.npz")


def test_a_path_the_system_refuses_is_a_load_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError):
        load_head(tmp_path / ("x" * 5000 + ".npz"))


def test_arrays_that_are_no_head_are_reported_with_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "flat.npz", W=np.ones(3))
    with pytest.raises(LoadError, match=r"flat\.npz: weight must be a matrix"):
        load_head(tmp_path / "flat.npz")


def test_a_missing_library_is_named() -> None:
    exotic = FileFormat("exotic", (".exotic",), "argmaxable_has_no_such_module:read")
    with pytest.raises(LoadError, match="exotic files needs the Python module argmaxable_has_no_such_module"):
        exotic.find(Path("model.exotic"), ReadOptions())


def test_an_npz_is_read_without_importing_onnx(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    program = (
        "import sys; from argmaxable.models import load_head; load_head(sys.argv[1]); "
        "assert not [name for name in ('onnx', 'google.protobuf') if name in sys.modules]"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "head.npz"], check=True, env=environment)


def test_a_built_in_format_does_not_wait_for_a_search_through_installed_packages(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    program = (
        "import sys, importlib.metadata\n"
        "from argmaxable.models import load_head\n"
        "def watch(event, args):\n"
        "    if event == 'os.listdir' and args[0] in sys.path:\n"  # not so for our own sub-packages
        "        exit(f'looked through {args}')\n"
        "sys.addaudithook(watch)\n"
        "load_head(sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "head.npz"], check=True, env=environment)


def test_a_plugin_is_not_asked_about_a_built_in_formats_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "greedy_plugin", "greedy_plugin:GREEDY")
    monkeypatch.syspath_prepend(tmp_path)
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    assert find_format(tmp_path / "head.npz").name == "npz"
    (tmp_path / "head.else").write_text("")
    assert find_format(tmp_path / "head.else").name == "text"


def test_a_plugin_reads_its_own_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, "good_plugin", "good_plugin:FORMAT")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "head.weights").write_text("1 2\n3 4\n")
    assert load_head(tmp_path / "head.weights").weight.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_plugin_is_among_the_known_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, "listed_plugin", "listed_plugin:FORMAT")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "notes.txt").write_text("not a model")
    with pytest.raises(LoadError, match=r"text \(\.weights\)"):
        load_head(tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("module", "value", "complaint"),
    [
        ("absent_plugin", "absent_plugin_module:FORMAT", "can't be loaded"),
        ("renamed_plugin", "renamed_plugin:OLD_NAME", "can't be loaded"),
        ("string_plugin", "string_plugin:NOT_A_FORMAT", "expected an object with name, suffixes"),
        ("class_plugin", "class_plugin:Text", "expected an object with name, suffixes"),
    ],
)
def test_a_broken_plugin_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, value: str, complaint: str
) -> None:
    install_plugin(tmp_path, module, value)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "head.weights").write_text("1 2\n")
    with pytest.raises(LoadError, match=f"plugin 'text'.*{value}.*{complaint}"):
        load_head(tmp_path / "head.weights")


def test_a_broken_plugin_does_not_disturb_built_in_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "harmless_plugin", "harmless_plugin_absent:FORMAT")
    monkeypatch.syspath_prepend(tmp_path)
    np.savez(tmp_path / "head.npz", W=WEIGHT)
    assert load_head(tmp_path / "head.npz").classes == 3
