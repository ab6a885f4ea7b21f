"""What `import argmaxable` shows: names that load when used, complete, documented, hiding no module."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import argmaxable
from argmaxable.core import errors

NAMES = [name for name in argmaxable.__all__ if name != "__version__"]
INIT = ast.parse(Path(argmaxable.__file__).read_text(encoding="utf-8"))


def loaded_after(program: str) -> set[str]:
    """The modules that Python has loaded when the program has run."""
    program = f"import sys\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


# ---------------------------------------------------------------------- loading


def test_the_import_alone_loads_no_library_and_no_room() -> None:
    loaded = loaded_after("import argmaxable")
    assert not loaded & {"numpy", "scipy", "flint", "click", "rich"}
    assert {name for name in loaded if name.startswith("argmaxable")} == {
        "argmaxable",
        "argmaxable.core",
        "argmaxable.core.version",
    }


def test_verify_loads_only_what_it_uses() -> None:
    loaded = loaded_after(
        "import argmaxable as am\nam.verify(am.Head([[1.0, 0.0], [0.0, 1.0]]), engine=am.Engine(workers=2))"
    )
    assert "argmaxable.run.phases" in loaded
    assert not loaded & {"scipy.linalg", "highspy", "rich", "click", "onnx", "sqlalchemy", "jinja2", "torch"}
    assert not {name for name in loaded if name.startswith(("argmaxable.models", "argmaxable.store"))}


def imported_for_type_checkers() -> dict[str, str]:
    """Each name imported under TYPE_CHECKING, and its module."""
    (block,) = (
        node
        for node in INIT.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_what_is_loaded() -> None:
    homes = {name: f"argmaxable.{module}" for name, module in argmaxable._HOME.items()}
    assert imported_for_type_checkers() == homes
    assert sorted(homes) == sorted(NAMES)


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert list(argmaxable.__all__) == sorted(set(argmaxable.__all__))


def test_dir_shows_every_name_before_it_is_used() -> None:
    program = "import argmaxable as am; assert set(am.__all__) <= set(dir(am)), dir(am)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'argmaxable' has no attribute 'verifi'"):
        argmaxable.verifi  # noqa: B018


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in NAMES if not getattr(argmaxable, name).__doc__] == []


def test_a_public_name_is_called_what_it_is_defined_as() -> None:
    assert [name for name in NAMES if getattr(argmaxable, name).__name__ != name] == []


def test_no_public_name_hides_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(argmaxable.__path__)}
    assert not modules & set(NAMES)


# ---------------------------------------------------------------------- completeness


def test_the_whole_tree_of_errors_is_public() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert kinds <= set(NAMES)


def test_wrong_input_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="weight must be a matrix"):
        argmaxable.Head([1.0, 2.0])


def signatures() -> Iterator[tuple[str, Any]]:
    """Every public function, class, method and property getter."""
    for name in NAMES:
        value = getattr(argmaxable, name)
        yield name, value
        if inspect.isclass(value):
            for member, found in inspect.getmembers_static(value):
                parts = (getattr(found, part, None) for part in ("fget", "func", "__func__"))
                function = next(filter(None, parts), found)
                if not member.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{member}", function


def named_types(hint: Any) -> set[type]:
    """The classes that an annotation names, however deep inside."""
    parts = [hint, typing.get_origin(hint)]
    inner = [named_types(part) for part in (hint if isinstance(hint, list) else typing.get_args(hint))]
    return {part for part in parts if isinstance(part, type)}.union(*inner)


def annotated_types(value: Any) -> set[type]:
    # What is imported for type checkers alone is looked up among the public names; pandas may be missing.
    known = vars(sys.modules[value.__module__])
    late = {name: getattr(argmaxable, name) for name in NAMES if name not in known}
    hints = typing.get_type_hints(value, localns={"pandas": SimpleNamespace(DataFrame=object), **late})
    return set().union(*(named_types(hint) for name, hint in hints.items() if not name.startswith("_")))


def is_public(kind: type) -> bool:
    if kind.__module__.startswith("argmaxable.store."):  # the store shows its own words: argmaxable.store
        return True
    return getattr(argmaxable, kind.__name__, None) is kind


def hidden_types(value: Any) -> set[str]:
    """Our own classes that a signature names and `import argmaxable` does not show."""
    ours = {kind for kind in annotated_types(value) if kind.__module__.startswith("argmaxable")}
    return {kind.__qualname__ for kind in ours if not is_public(kind)}


def test_whatever_a_public_signature_names_is_public() -> None:
    hidden = {name: hidden_types(value) for name, value in signatures()}
    assert len(hidden) > len(NAMES)  # methods too
    assert {name: types for name, types in hidden.items() if types} == {}
