"""The code of a TorchScript archive: a subset of Python, whose functions and classes are found by name.

It is parsed into syntax trees and never compiled or run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.pytorch.archive import read_member

if TYPE_CHECKING:
    from argmaxable.models.pytorch.archive import Member

# Of all files together that are looked at. A traced model with a thousand layers has 1 MB; a syntax tree
# takes up to a hundred times as much memory as its text.
_LARGEST_CODE = 4 * 2**20


class NotFollowed(Exception):
    """The program does something that is not understood; never leaves this folder."""


@dataclass
class Code:
    """The files of an archive, each parsed when it is first needed."""

    path: Path
    members: Mapping[str, Member]
    _trees: dict[str, dict[str, ast.stmt]] = field(default_factory=dict)
    _size: int = 0

    def function(self, name: str) -> ast.FunctionDef:
        """A function by its qualified name, such as __torch__.torch.nn.functional.dropout."""
        found = self._definition(name)
        if not isinstance(found, ast.FunctionDef):
            raise NotFollowed(f"{name[:80]} is not a function")
        return found

    def method(self, kind: str, name: str) -> ast.FunctionDef:
        """A method of a class."""
        found = self._definition(kind)
        if not isinstance(found, ast.ClassDef):
            raise NotFollowed(f"{kind[:80]} is not a class")
        methods = [each for each in found.body if isinstance(each, ast.FunctionDef) and each.name == name]
        if len(methods) > 1:
            raise ambiguous(f"the class {kind[:80]!r} has two methods called {name[:80]!r}")
        if not methods:
            raise NotFollowed(f"{kind[:80]} has no method {name[:80]!r}")
        return methods[0]

    def _definition(self, name: str) -> ast.stmt | None:
        module, _, own = name.rpartition(".")
        file = f"code/{module.replace('.', '/')}.py"
        if file not in self._trees:
            self._trees[file] = self._parsed(file)
        return self._trees[file].get(own)

    def _parsed(self, file: str) -> dict[str, ast.stmt]:
        if file not in self.members:
            raise NotFollowed(f"{file[:80]} is missing")
        self._size += self.members[file].size
        if self._size > _LARGEST_CODE:
            raise NotFollowed(f"its code has more than {_LARGEST_CODE:,} bytes")
        text = read_member(self.path, self.members[file], _LARGEST_CODE)
        definitions = [each for each in parse(text) if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        repeated = twice(each.name for each in definitions)
        if repeated is not None:
            raise ambiguous(f"{repeated[:80]!r} is defined twice in {file[:80]!r}")
        return {each.name: each for each in definitions}


def parse(text: bytes) -> Sequence[ast.stmt]:
    """The statements of a piece of code; raises LoadError where it is not Python."""
    try:
        return ast.parse(text.decode()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise LoadError(f"its code can't be parsed: {str(error)[:200]}") from error
