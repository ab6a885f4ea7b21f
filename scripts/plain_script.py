"""JavaScript modules as one plain script, since browsers load no modules from the file system."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_IMPORT = re.compile(r"^import [^;]*? from \"\./[\w-]+\.m?js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.MULTILINE)


def one_script(modules: Iterable[Path]) -> str:
    """The modules, each after those it imports from, inside one function that hides their names."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", path.read_text(encoding="utf-8"))) for path in modules]
    text = "\n".join(parts)
    if re.search(r"^(import|export) ", text, re.MULTILINE) or "</script" in text:
        raise ValueError("a script has an import, an export or a tag that can't stand inside a page")
    return f'(() => {{\n"use strict";\n{text}}})();'
