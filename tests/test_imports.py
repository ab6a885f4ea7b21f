"""The architecture, enforced: who may import whom, and who knows which library."""

from __future__ import annotations

import ast
import functools
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import argmaxable
from scripts.house import FLOORS, House, room_of, statements

PACKAGE = Path(argmaxable.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

NAMES = [".".join(Path(module).with_suffix("").parts) for module in MODULES]
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}
TRUSTED = {"exact", "core", "compute", "check", "proofs"}
# Whatever finds answers is clever, and not trusted.
SOLVERS = {"search", "prove", "run", "questions"}
SOLVING_LIBRARIES = ("highspy", "scipy.optimize", "scipy.sparse", "clarabel")


def under(folder: str) -> set[str]:
    return {name for name in MODULES if name.startswith(f"{folder}/")}


# Each row: a library, and the only modules that know it.
MAY_KNOW: dict[str, set[str]] = {
    "PIL": under("examples") | {"workflow/run_examples.py"},  # the second names a type
    "filelock": {"core/scratch.py", "store/sqlite.py"},
    "flint": {
        "check/solutions.py",
        "prove/exact_mixtures.py",
        "prove/simplex.py",
        "check/mixtures.py",
        "questions/ranking/exact_orders.py",
        "questions/sets/exact.py",
    },
    "fontTools": {"examples/faces.py"},
    "gguf": {"models/gguf/tensors.py"},
    "google": {"models/onnx/reader.py"},
    "h11": {"serve/protocol.py"},
    "h5py": {"models/keras/hdf5_reader.py"},
    "highspy": {"prove/highs.py"},
    "huggingface_hub": {"models/fetch/hub.py"},
    "jinja2": {"report/page/html.py", "serve/html.py"},
    "matplotlib": under("report/figures"),
    "ml_dtypes": {"core/head.py"} | under("models"),
    "mpl_toolkits": {"report/figures/style.py"},
    "onnx": {"models/onnx/cutting.py", "models/onnx/reader.py", "models/onnx/values.py"},
    "onnxruntime": {"examples/network.py"},
    "pandas": {"core/notebook.py", "core/result.py"},  # the second names a type
    "pickle": {"run/engines/pool.py", "run/engines/children.py", "run/engines/worker.py"},
    "platformdirs": {"models/fetch/pypi.py", "store/location.py"},
    "psycopg": {"store/postgresql.py"},
    "pyarrow": {"models/parquet/columns.py", "report/parquet.py"},
    "ray": {"run/engines/ray.py"},
    "rich": under("cli"),
    "sqlalchemy": under("store"),
    "starlette": {"serve/app.py"},
    "threadpoolctl": {"compute/threads.py"},
    "tokenizers": {"models/labels/tokenizer.py"},
    "torch": {"compute/torch_backend.py", "models/pytorch/tensors.py"} | under("layers"),
    "transformers": under("layers"),
    "lightning": {"layers/lightning_callback.py"},
    "click": under("cli"),
    "uvicorn": {"serve/protocol.py", "serve/server.py"},
}
ANYONE_MAY_KNOW = {"numpy", "scipy"} | set(sys.stdlib_module_names) - MAY_KNOW.keys()


@functools.cache
def house() -> House:
    """Read once, and not before a test needs it; the trees live on, and looking for garbage among them costs
    more than half of the time."""
    gc.disable()
    try:
        return House(PACKAGE.parents[1])
    finally:
        gc.enable()


def tree_of(module: str) -> ast.Module:
    return house().trees[".".join(Path(module).with_suffix("").parts)]


@functools.cache
def imports_of(module: str) -> frozenset[str]:
    """Dotted names of everything a module imports, anywhere in it."""
    return frozenset(_imports_of(module))


def _imports_of(module: str) -> Iterator[str]:
    for node in statements(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module is not None
            if node.module == "argmaxable":  # `from argmaxable import bundle`
                yield from (f"argmaxable.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_every_room_is_on_a_floor_and_every_floor_has_its_rooms() -> None:
    assert house().rooms == FLOOR_OF.keys()


def test_imports_go_down_and_rooms_of_a_floor_never_meet() -> None:
    assert [pair for module in sorted(NAMES) for pair in sideways_or_up(module)] == []


def sideways_or_up(module: str) -> list[tuple[str, str]]:
    """The module with each room that it may not import from, but does."""
    room = room_of(module)
    others = sorted({room_of(other) for other in house().imports[module]} - {room})
    if room == "__init__":  # the public face shows every room but the command line
        return [(module, other) for other in others if other == "cli"]
    return [(module, other) for other in others if FLOOR_OF[other] >= FLOOR_OF[room]]


def test_what_is_trusted_reaches_no_solver() -> None:
    trusted = [name for name in sorted(NAMES) if room_of(name) in TRUSTED]
    assert trusted
    assert {module: found for module in trusted if (found := solvers_reached_by(module))} == {}


def solvers_reached_by(module: str) -> set[str]:
    """Modules and libraries that solve, among all that a module imports and these import in turn."""
    reached, waiting = {module}, [module]
    while waiting:
        new = house().imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    libraries = {name for one in reached for name in imports_of(one.replace(".", "/") + ".py")}
    return {name for name in reached if room_of(name) in SOLVERS} | {
        name for name in libraries if name.startswith(SOLVING_LIBRARIES)
    }


@pytest.mark.parametrize("library", MAY_KNOW)
def test_a_library_is_known_to_its_modules_only(library: str) -> None:
    knowing = {module for module in MODULES if library in libraries_of(module)}
    assert knowing <= MAY_KNOW[library]


def test_a_module_knows_no_library_without_a_row() -> None:
    known = ANYONE_MAY_KNOW | MAY_KNOW.keys() | {"argmaxable"}
    assert {module: more for module in MODULES if (more := libraries_of(module) - known)} == {}


@functools.cache
def libraries_of(module: str) -> frozenset[str]:
    return frozenset(name.split(".")[0] for name in imports_of(module))


# ---------------------------------------------------------------------- modules


def test_a_module_opens_with_a_docstring() -> None:
    written = [name for name in MODULES if (PACKAGE / name).stat().st_size]
    assert [name for name in written if not ast.get_docstring(tree_of(name))] == []


def test_a_module_is_at_most_400_lines_long() -> None:
    lengths = {name: len((PACKAGE / name).read_text(encoding="utf-8").splitlines()) for name in MODULES}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_no_class_name_is_defined_twice() -> None:
    assert house().repeated_classes == {}


def test_there_is_no_utils_module() -> None:
    assert not [module for module in MODULES if "util" in module]
