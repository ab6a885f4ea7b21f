"""The architecture, enforced: who may import whom, who knows which library, and what is public."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import argmaxable

PACKAGE = Path(argmaxable.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

CORE = {"errors", "head", "domain", "verdict"}
CHECKED = CORE | {"check", "compute", "scores"}
# Each row: a module or folder, and which others it may import. A folder may always import itself.
MAY_IMPORT: dict[str, set[str]] = {
    "version": set(),
    "errors": set(),
    "verdict": {"errors"},
    "stored_rows": set(),
    "head": {"errors", "stored_rows"},
    "domain": {"errors"},
    "exact": set(),
    "compute": {"errors"},
    "geometry": {"domain", "exact"},
    "solve_exactly": CORE | {"exact", "geometry", "scores"},
    "check": CORE | {"compute", "exact", "geometry", "scores", "solve_exactly"},
    "scores": CORE | {"compute", "exact", "geometry"},
    "chart": CHECKED,
    "search": CHECKED | {"chart"},
    "prove": CHECKED | {"chart", "exact", "geometry"},
    "result": CORE,
    "ledger": CHECKED | {"prove"},
    "run": CHECKED | {"chart", "search", "prove", "ledger", "result"},
    "verify": CHECKED | {"chart", "search", "prove", "ledger", "result", "run"},
    "bundle": CORE | {"result", "version"},
    "recheck": CHECKED | {"bundle"},
    "supplement": CORE | {"bundle", "result"},
    "ceiling": CHECKED
    | {"bundle", "chart", "exact", "geometry", "labels", "prove", "recheck", "result", "run"}
    | {"solve_exactly", "supplement", "verify"},
    "best_rank": CHECKED
    | {"bundle", "chart", "geometry", "labels", "prove", "recheck", "result", "run", "supplement"},
    "explain": CHECKED | {"best_rank", "chart", "geometry", "labels", "prove", "run", "select", "verify"},
    "arithmetic": CHECKED | {"geometry", "labels", "prove", "result", "search", "verify"},
    "surface": CHECKED | {"arithmetic", "geometry", "result", "search"},
    "doctor": CHECKED | {"arithmetic", "labels", "load", "prove", "result", "select", "verify"},
    "labels": set(),
    "select": {"errors", "labels"},
    "load": {"errors", "head", "domain", "labels", "stored_rows"},
    "write": {"errors", "head", "load"},
    "repair": CHECKED | {"chart", "geometry", "prove", "result", "verify"},
    "prune": CORE | {"result", "write"},
    "layers": CHECKED | {"verify"},
    "language_model": {"errors", "head", "layers"},
    "theory": CHECKED | {"exact", "geometry", "labels", "prove", "select", "verify"},
    "random_heads": {"errors", "head"},
    "qhull": CORE | {"result"},
    "store": CORE | {"result", "run", "version"},
    "published": {"errors", "labels", "store", "verdict"},
    "report": CORE | {"bundle", "labels", "published", "result", "select", "store", "version"},
    "serve": CORE | {"labels", "report", "store", "version"},
    "figures": CORE | {"labels", "published", "random_heads", "result", "run", "store", "verify"},
    "audit": CHECKED | {"arithmetic", "load", "result", "run", "select", "store", "verify"},
    "campaign": CORE | {"audit", "labels", "load", "report", "result", "run", "select", "store", "version"},
}
PUBLIC_FROM = CHECKED | {
    "best_rank",
    "bundle",
    "ceiling",
    "explain",
    "load",
    "recheck",
    "result",
    "run",
    "verify",
    "version",
}


def under(folder: str) -> set[str]:
    return {name for name in MODULES if name.startswith(f"{folder}/")}


# Each row: a library, and the only modules that know it.
MAY_KNOW: dict[str, set[str]] = {
    "filelock": {"store/sqlite.py"},
    "flint": {"ceiling/mixture.py", "solve_exactly.py", "prove/simplex.py", "theory/exact_orders.py"},
    "gguf": {"load/gguf_tensors.py"},
    "google": {"load/onnx.py"},
    "h5py": {"load/hdf5_reader.py"},
    "highspy": {"prove/highs.py"},
    "huggingface_hub": {"load/hub.py"},
    "jinja2": {"report/page/html.py", "serve/html.py"},
    "matplotlib": under("figures"),
    "ml_dtypes": {"head.py"} | under("load"),
    "mpl_toolkits": {"figures/style.py"},
    "onnx": {"load/onnx.py"},
    "pickle": {"run/engines/processes.py", "run/engines/worker.py"},
    "platformdirs": {"load/pypi.py", "store/place.py"},
    "psycopg": {"store/postgresql.py"},
    "pyarrow": {"report/parquet.py"},
    "ray": {"run/engines/ray.py"},
    "rich": under("cli"),
    "sqlalchemy": under("store"),
    "starlette": {"serve/app.py"},
    "threadpoolctl": {"ceiling/compute.py", "run/engines/ray.py", "run/phases.py"},
    "torch": {"compute/torch_backend.py", "language_model.py", "load/pytorch.py"} | under("layers"),
    "transformers": {"language_model.py", "layers/huggingface.py"},
    "typer": under("cli"),
    "uvicorn": {"serve/server.py"},
}
ANYONE_MAY_KNOW = {"numpy", "scipy"} | set(sys.stdlib_module_names) - MAY_KNOW.keys()


@functools.cache
def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"), module)


@functools.cache
def imports_of(module: str) -> frozenset[str]:
    """Dotted names of everything a module imports, anywhere in it."""
    return frozenset(_imports_of(module))


def _imports_of(module: str) -> Iterator[str]:
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module is not None
            if node.module == "argmaxable":  # `from argmaxable import bundle`
                yield from (f"argmaxable.{alias.name}" for alias in node.names)
            else:
                yield node.module


def unit_of(module: str) -> str:
    """The row of the table a module belongs to: its folder, or itself."""
    return module.split("/")[0].removesuffix(".py")


def units_imported_by(module: str) -> set[str]:
    names = [name.split(".") for name in imports_of(module)]
    return {parts[1] for parts in names if parts[0] == "argmaxable" and len(parts) > 1}


def test_every_module_has_a_row_and_every_row_a_module() -> None:
    assert {unit_of(module) for module in MODULES} == MAY_IMPORT.keys() | {"cli", "__init__"}


def test_the_table_goes_in_one_direction() -> None:
    order = list(TopologicalSorter(MAY_IMPORT).static_order())
    assert set(order) == MAY_IMPORT.keys()


def test_search_and_proof_never_meet() -> None:
    assert "search" not in MAY_IMPORT["prove"]
    assert "prove" not in MAY_IMPORT["search"]


@pytest.mark.parametrize("module", [name for name in MODULES if unit_of(name) in MAY_IMPORT])
def test_a_module_imports_only_what_its_row_allows(module: str) -> None:
    unit = unit_of(module)
    assert units_imported_by(module) <= MAY_IMPORT[unit] | {unit}


def test_the_package_exports_from_the_library_only() -> None:
    assert units_imported_by("__init__.py") <= PUBLIC_FROM


def test_nobody_imports_the_command_line() -> None:
    importers = {module for module in MODULES if "cli" in units_imported_by(module)}
    assert all(module.startswith("cli/") for module in importers)


@pytest.mark.parametrize("library", MAY_KNOW)
def test_a_library_is_known_to_its_modules_only(library: str) -> None:
    knowing = {module for module in MODULES if library in {name.split(".")[0] for name in imports_of(module)}}
    assert knowing <= MAY_KNOW[library]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_knows_no_library_without_a_row(module: str) -> None:
    libraries = {name.split(".")[0] for name in imports_of(module)}
    assert libraries <= ANYONE_MAY_KNOW | MAY_KNOW.keys() | {"argmaxable"}


def test_the_base_import_loads_no_optional_library() -> None:
    program = "import sys, argmaxable; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "argmaxable" in loaded
    assert not loaded & {
        "torch",
        "onnx",
        "google",
        "gguf",
        "huggingface_hub",
        "matplotlib",
        "ray",
        "sqlalchemy",
        "starlette",
        "typer",
        "uvicorn",
        "rich",
    }


# ---------------------------------------------------------------------- what is public


def test_all_lists_exactly_the_public_names() -> None:
    public = {
        name
        for name, value in vars(argmaxable).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(argmaxable.__all__) == public | {"__version__"}


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert list(argmaxable.__all__) == sorted(set(argmaxable.__all__))


def test_the_whole_tree_of_errors_is_public() -> None:
    errors = {
        name
        for name, value in vars(argmaxable.core.errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert errors <= set(argmaxable.__all__)


@pytest.mark.parametrize("name", [name for name in argmaxable.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert getattr(argmaxable, name).__doc__


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


def test_there_is_no_utils_module() -> None:
    assert not [module for module in MODULES if "util" in module]
