"""The documentation names what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from argmaxable.cli.app import COMMANDS, app, command
from argmaxable.core.version import VERSION
from scripts.house import picture

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented(name: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.partition(f"## argmaxable {name}\n")[2].partition("\n## ")[0]
    options = [option for parameter in command(name).params for option in parameter.opts if "--" in option]
    assert [option for option in options if option not in section] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_a_terminal_of_80_columns(name: str) -> None:
    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})
    lines = runner.invoke(app, [name, "--help"], prog_name="argmaxable").output.splitlines()
    # Names of choices stand in one word, which has no place to break.
    assert [line for line in lines if len(line) > 80 and "|" not in line] == []


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'<img src="([^"]+)"', text)
    links = [link for link in named if "://" not in link]
    assert [link for link in links if not leads_somewhere((ROOT / page).parent / link)] == []


def leads_somewhere(target: Path) -> bool:
    # A page of a tutorial is made from its notebook when the site is built.
    return target.exists() or (target.parent.name == "tutorials" and target.with_suffix(".py").exists())


def test_the_picture_of_the_floors_is_the_table_that_the_imports_obey() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"```text\n{picture()}\n```" in page


def test_the_repository_has_one_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"].removeprefix("https://github.com/")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = re.findall(r"(?:github\.com/|uses: )([\w.-]+/argmaxable)\b", text)
    assert len(names) == 5
    assert set(names) == {repository}


def test_the_version_is_the_same_everywhere() -> None:
    texts = {
        "pyproject.toml": r'^version = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## \[([^\]]+)\]",
        "conda/meta.yaml": r'set version = "([^"]+)"',
        "docs/ci.md": r"argmaxable@v(\S+)",
    }
    found = {}
    for page, pattern in texts.items():
        match = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        found[page] = match and match[1]
    assert found == dict.fromkeys(texts, VERSION)


def test_links_of_the_readme_lead_to_the_repository_on_pypi() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    repository = project["project"]["urls"]["Repository"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"{raw}/main/docs/screenshots/hull.png" in links
    assert f"{repository}/blob/main/docs/index.md" in links
