"""The architecture, enforced: who may import whom, and who knows which library."""

from __future__ import annotations

import ast
import functools
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
    """Read once, and not before a test needs it."""
    return House(PACKAGE.parents[1])


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


@pytest.mark.parametrize("module", sorted(NAMES))
def test_imports_go_down_and_rooms_of_a_floor_never_meet(module: str) -> None:
    room = room_of(module)
    others = {room_of(other) for other in house().imports[module]} - {room}
    if room == "__init__":  # the public face shows every room but the command line
        assert "cli" not in others
    else:
        assert all(FLOOR_OF[other] < FLOOR_OF[room] for other in others)


@pytest.mark.parametrize("module", [name for name in sorted(NAMES) if room_of(name) in TRUSTED])
def test_what_is_trusted_reaches_no_solver(module: str) -> None:
    reached, waiting = {module}, [module]
    while waiting:
        new = house().imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    assert not {room_of(name) for name in reached} & SOLVERS
    libraries = {name for one in reached for name in imports_of(one.replace(".", "/") + ".py")}
    assert not {name for name in libraries if name.startswith(SOLVING_LIBRARIES)}


@pytest.mark.parametrize("library", MAY_KNOW)
def test_a_library_is_known_to_its_modules_only(library: str) -> None:
    knowing = {module for module in MODULES if library in {name.split(".")[0] for name in imports_of(module)}}
    assert knowing <= MAY_KNOW[library]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_knows_no_library_without_a_row(module: str) -> None:
    libraries = {name.split(".")[0] for name in imports_of(module)}
    assert libraries <= ANYONE_MAY_KNOW | MAY_KNOW.keys() | {"argmaxable"}


# ---------------------------------------------------------------------- modules


@pytest.mark.parametrize("module", [name for name in MODULES if (PACKAGE / name).stat().st_size])
def test_a_module_opens_with_a_docstring(module: str) -> None:
    assert ast.get_docstring(tree_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_at_most_400_lines_long(module: str) -> None:
    assert len((PACKAGE / module).read_text(encoding="utf-8").splitlines()) <= 400


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_no_class_name_is_defined_twice() -> None:
    assert house().repeated_classes == {}


def test_there_is_no_utils_module() -> None:
    assert not [module for module in MODULES if "util" in module]
