"""Pages of the site that are programs: the playground, and the scripts of the check of bundles."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemLoader

from scripts.plain_script import one_script

ROOT = Path(__file__).resolve().parent.parent
SERVE = ROOT / "src" / "argmaxable" / "serve"
_CHECK = ("exact", "json", "npz", "sha256", "bundle", "explorer", "page")
# The bundle that the page offers to try, and its model.
_EXAMPLE = ("conformance/good/box", "conformance/heads/labelled.npz")
# The page around the playground on the site, in place of the server's own `base.html`.
_AROUND = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{% block title %}{% endblock %} · argmaxable</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<style>{{ styles }}</style>
</head>
<body>
<header class="top"><a class="brand" href="index.html" target="_top">argmaxable</a>
<nav aria-label="Pages"><a href="geometry.html" target="_top">The geometry</a></nav></header>
<main id="main">{% block main %}{% endblock %}</main>
<script>{{ script }}</script>
</body>
</html>
"""


def playground() -> str:
    """The package's playground as one file that needs no server."""
    loader = ChoiceLoader([DictLoader({"base.html": _AROUND}), FileSystemLoader(SERVE / "templates")])
    styles = [SERVE.parent / "report/page/templates/report.css", SERVE / "static/serve.css"]
    # Templates of ours around texts of ours: nothing is to be escaped.
    page = Environment(loader=loader, autoescape=False).get_template("playground.html")
    return page.render(
        styles="\n".join(path.read_text(encoding="utf-8") for path in styles),
        script=one_script([SERVE / "static/regions.js", SERVE / "static/playground.js"]),
    )


def check_script() -> str:
    """What the page `check-a-bundle` runs."""
    return one_script([ROOT / "docs" / "js" / f"{name}.mjs" for name in _CHECK])


def check_scripts() -> str:
    """Both elements of that page: a bundle to try, and the script."""
    folder, model = (ROOT / path for path in _EXAMPLE)
    files = {path.name: b64encode(path.read_bytes()).decode() for path in (*sorted(folder.iterdir()), model)}
    example = f'<script type="application/json" id="check-example">{json.dumps(files)}</script>'
    return f"{example}\n<script>\n{check_script()}\n</script>"


# What Sphinx and furo leave out and screen readers or keyboards need, as axe-core found.
_MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages of the site">',
    '<aside class="toc-drawer': '<aside aria-label="Contents of this page" class="toc-drawer',
    # What scrolls sideways can be reached by keyboard.
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def mended(html: str) -> str:
    """A page as Sphinx wrote it, with what it lacks for readers who do not use a mouse."""
    for found, better in _MENDED.items():
        html = html.replace(found, better)
    return html
