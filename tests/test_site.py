"""The documentation site: every page and every public name is in it, and scripts fit into pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import argmaxable
from argmaxable import layers
from scripts.draw_benchmarks import DRAWINGS, FOLDER, draw
from scripts.plain_script import one_script
from scripts.site_pages import mended

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TUTORIALS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.py"))


def entries(page: str) -> list[str]:
    """The pages that the tables of contents of a page name."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = entries("index.md")
    listed += [f"tutorials/{name}" for name in entries("tutorials/index.md")]
    listed += [f"api/{name}" for name in entries("api/index.md")]
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    expected = {*pages, *(f"tutorials/{name}" for name in TUTORIALS), "contributing"} - {"index"}
    assert sorted(listed) == sorted(expected)


def test_every_public_name_has_an_entry_in_the_reference() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    named = sorted(re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE))
    public = [f"argmaxable.{name}" for name in argmaxable.__all__ if name != "__version__"]
    public += [f"argmaxable.layers.{name}" for name in layers.__all__]
    assert named == sorted(public)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_stores_nothing_outside_its_own_folder(name: str) -> None:
    text = (DOCS / "tutorials" / f"{name}.py").read_text(encoding="utf-8")
    commands = re.findall(r"^# !argmaxable (\w+) (.*)$", text, re.MULTILINE)
    storing = [
        rest for command, rest in commands if command in ("verify", "sets", "campaign", "runs", "table")
    ]
    assert [rest for rest in storing if "--db runs.db" not in rest and "--no-db" not in rest] == []


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_drawings_of_the_benchmarks_are_those_of_their_results(name: str, tmp_path: Path) -> None:
    assert _numbers(draw(name, tmp_path)) == _numbers(FOLDER / f"{name}.svg"), "stale: run `make figures`"


def _numbers(path: Path) -> list[str]:
    """The texts in a drawing: another matplotlib may place them otherwise."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_modules_become_one_script(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text("export const one = 1;\nexport async function f() {}\n")
    (tmp_path / "b.mjs").write_text('import { one } from "./a.mjs";\nconsole.log(one);\n')
    script = one_script([tmp_path / "a.mjs", tmp_path / "b.mjs"])
    assert script.splitlines()[2:5] == ["const one = 1;", "async function f() {}", ""]
    assert "import" not in script


@pytest.mark.parametrize("text", ["export { one };\n", "const a = '</script>';\n", 'import "./a.js";\n'])
def test_what_cannot_stand_in_a_page_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text(text)
    with pytest.raises(ValueError, match="can't stand inside a page"):
        one_script([tmp_path / "a.mjs"])


def test_the_addresses_of_the_project_are_in_its_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    owner, name = urls["Repository"].split("/")[-2:]
    assert urls["Documentation"] == f"https://{owner}.github.io/{name}/"
    assert all(urls[key].startswith(urls["Repository"]) for key in ("Changelog", "Issues"))


def test_blocks_that_scroll_can_be_reached_by_keyboard() -> None:
    page = '<p class="caption" role="heading">Start</p><div class="highlight"><pre>long</pre></div>'
    assert mended(page).count('tabindex="0"') == 1
    assert 'role="heading" aria-level="2"' in mended(page)
