"""How Sphinx builds the documentation site; scripts/build_site.py calls it on a copy of this folder."""

from __future__ import annotations

import re
from typing import Any

from argmaxable import __version__

project = "argmaxable"
author = copyright = "The argmaxable authors"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["js", "_extra"]
templates_path: list[str] = []

# Markdown as GitHub shows it, so that a page reads the same in the repository and on the site.
myst_enable_extensions = ["attrs_block", "attrs_inline", "deflist"]
myst_heading_anchors = 4
highlight_language = "none"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
# Docstrings are plain text in which `x` is code. What else reStructuredText would see in them is escaped.
default_role = "code"

html_theme = "furo"
html_title = "argmaxable"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_favicon = "_extra/icon.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b6fa8", "color-brand-content": "#0a5f90"},
    "dark_css_variables": {"color-brand-primary": "#6aa9ea", "color-brand-content": "#86bbf0"},
}


def _plain(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*|]|(?<=\w)_(?=\W|$))", r"\\\1", part)
        for part in parts
    )


def _as_text(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [re.sub(r"^(\s*)\\\* ", r"\1* ", _plain(line)) for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _as_text)
