"""Builds the documentation site into .site/, where it can be read without a server: `make docs`.

    python -m scripts.build_site

Sphinx runs on a copy of docs/, to which this adds what is made for the site:

* links that leave docs/ lead to the repository, and pictures outside are copied;
* tutorials come from the notebooks that `make notebooks` executed;
* the playground is the package's own page, with its scripts and styles inside: it opens from a folder;
* the explorer of bundles gets an example and its scripts: modules for Node.js, one plain script for the page.

Every warning is an error, broken links and anchors among them. So is a page that loads anything over the
network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from scripts.notebooks import EXECUTED, as_markdown, tutorials
from scripts.site_pages import SERVE, check_scripts, mended, playground

ROOT = Path(__file__).resolve().parent.parent
DOCS, COPY, SITE = ROOT / "docs", ROOT / ".cache" / "site", ROOT / ".site"
_LINK = re.compile(r"(!?\[[^\]\n]*\])\(((?:\.\./)+[^)\s#]+)(#[^)\s]*)?\)")
_SCRIPT_PLACE = "<!-- the script of this page -->"
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\ssrc=[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon)[^>]*\bhref=[\"']?(?:https?:)?//[^>]+"
)


class SiteError(Exception):
    """The site can't be built as it is."""


def repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def outward(text: str, page: Path) -> str:
    """The text of a page: links that leave docs/ lead to the repository, pictures from there are copied."""

    def lead(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        target = (DOCS / page.parent / path).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        if not target.exists():
            raise SiteError(f"docs/{page} links to {path}, which does not exist")
        if words.startswith("!"):
            shutil.copy(target, COPY / page.parent / target.name)
            return f"{words}({target.name})"
        kind = "tree" if target.is_dir() else "blob"
        return f"{words}({repository()}/{kind}/main/{target.relative_to(ROOT)}{anchor})"

    return _LINK.sub(lead, text)


def _from_root(start: re.Match[str]) -> str:
    """A link of a file beside docs/ as one of a page in it."""
    return "](" if start[0].endswith("docs/") else "](../"


def prepare() -> None:
    """Copy docs/ and add what is made for the site."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(DOCS, COPY, ignore=shutil.ignore_patterns("__pycache__"))
    extra = COPY / "_extra"
    extra.mkdir()
    (extra / "playground.html").write_text(playground(), encoding="utf-8")
    shutil.copy(SERVE / "static/icon.svg", extra / "icon.svg")
    for name in tutorials():
        notebook = EXECUTED / f"{name}.ipynb"
        if not notebook.exists():
            raise SiteError(f"docs/tutorials/{name}.py was not executed yet: make notebooks")
        text, pictures = as_markdown(notebook)
        (COPY / "tutorials" / f"{name}.md").write_text(text, encoding="utf-8")
        shutil.copy(notebook, COPY / "tutorials")
        for picture, data in pictures.items():
            (COPY / "tutorials" / picture).write_bytes(data)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (COPY / "contributing.md").write_text(
        re.sub(r"\]\((?:docs/|(?=\w+\.md))", _from_root, text), encoding="utf-8"
    )
    for path in COPY.rglob("*.md"):
        text = outward(path.read_text(encoding="utf-8"), path.relative_to(COPY))
        path.write_text(text.replace(_SCRIPT_PLACE, check_scripts()), encoding="utf-8")


def refuse_network() -> None:
    """Raise SiteError where a page would load something from elsewhere."""
    for path in sorted(SITE.rglob("*.html")):
        found = _FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise SiteError(f"{path.relative_to(SITE)} loads from the network: {found[0][:120]}")


def main() -> None:
    prepare()
    shutil.rmtree(SITE, ignore_errors=True)
    # One job in a process of its own: what pages share, such as anchors, is then known to all of them.
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-E",
        "-b",
        "html",
        str(COPY),
        str(SITE),
    ]
    subprocess.run([*command, "-d", str(ROOT / ".cache" / "doctrees")], check=True)
    for path in SITE.rglob("*.html"):
        path.write_text(mended(path.read_text(encoding="utf-8")), encoding="utf-8")
    refuse_network()
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages: open {(SITE / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    try:
        main()
    except (SiteError, subprocess.CalledProcessError) as error:
        sys.exit(f"The site was not built: {error}")
