"""Pages of the site that are programs, opened from a folder in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import open_browser
from playwright.sync_api import Browser, Page, expect

from scripts.site_pages import ROOT, check_scripts, playground

SUITE = ROOT / "conformance"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Fails where a page asks for anything but files, or complains."""
    opened, complaints = browser.new_page(), []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
    yield opened
    opened.close()
    assert complaints == []


def test_the_playground_opens_from_a_folder(page: Page, tmp_path: Path) -> None:
    (tmp_path / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "playground.html").write_text(playground(), encoding="utf-8")
    page.goto((tmp_path / "playground.html").as_uri())
    expect(page.locator("#summary")).to_have_text("1 of 5 classes can never be predicted: E.")
    page.get_by_role("button", name="A bias saves it").click()
    expect(page.locator("#summary")).to_have_text("All 5 classes can be predicted.")


@pytest.fixture
def check(page: Page, tmp_path: Path) -> Page:
    """The page of the check: the block of HTML in its Markdown, and the script."""
    text = (ROOT / "docs" / "check-a-bundle.md").read_text(encoding="utf-8")
    block = re.search(r'^<div class="check".*?^</div>$', text, re.MULTILINE | re.DOTALL)
    assert block is not None
    html = f"<!doctype html><meta charset=utf-8>{block[0]}{check_scripts()}"
    (tmp_path / "check.html").write_text(html, encoding="utf-8")
    page.goto((tmp_path / "check.html").as_uri())
    return page


def give(check: Page, bundle: Path, head: Path) -> None:
    check.locator("#check-pick").set_input_files([*bundle.iterdir(), head])


def head_of(name: str) -> Path:
    expected = json.loads((SUITE / "expected.json").read_text(encoding="utf-8"))
    return SUITE / str(expected[name]["head"])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("box", "Every verdict is proven."),
        ("interrupted", "Nothing is wrong. Some classes are undecided or missing."),
        ("ball", "Not all of it was checked here."),
    ],
)
def test_a_good_bundle_is_checked_in_the_browser(check: Page, name: str, answer: str) -> None:
    give(check, SUITE / "good" / name, head_of(name))
    expect(check.locator("#check-result .answer")).to_have_text(answer)


def test_a_forged_bundle_is_refused_in_the_browser(check: Page, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    forged.mkdir()
    for path in (SUITE / "good" / "box-format-1").iterdir():
        (forged / path.name).write_bytes(path.read_bytes())
    lines = [json.loads(line) for line in (forged / "verdicts.jsonl").read_bytes().splitlines()]
    lie = next(line for line in lines if line["status"] == "argmaxable")
    lie["lower"] = 1e6
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (forged / "verdicts.jsonl").write_text(text, encoding="utf-8")
    give(check, forged, head_of("box-format-1"))
    expect(check.locator("#check-result .answer")).to_have_text("This bundle does not prove what it says.")
    expect(check.locator("#check-result li")).to_contain_text("its witness does not prove it")


def test_the_page_asks_for_what_is_missing(check: Page) -> None:
    check.locator("#check-pick").set_input_files(head_of("box"))
    expect(check.locator("#check-status")).to_contain_text("Now the bundle")
    check.locator("#check-pick").set_input_files([*(SUITE / "good" / "box").iterdir()])
    expect(check.locator("#check-result .answer")).to_have_text("Every verdict is proven.")
    check.get_by_role("button", name="Start again").click()
    expect(check.locator("#check-result")).to_be_empty()


def open_class(check: Page, label: str) -> str:
    check.get_by_role("button", name=label, exact=True).click()
    return check.locator("#explore-class").inner_text()


def test_the_example_can_be_explored(check: Page) -> None:
    check.get_by_role("button", name="Try an example").click()
    expect(check.locator("#check-result .answer")).to_have_text("Every verdict is proven.")
    expect(check.locator("#explore-count")).to_have_text("8 of 14 classes")
    mixture = open_class(check, "word 0")
    assert "can never be predicted" in mixture
    assert "this mixture scores at least 0.9928 more" in mixture
    assert "(class 9)" in mixture
    check.locator("#explore-filter").select_option("argmaxable")
    expect(check.locator("#explore-count")).to_have_text("6 of 14 classes")
    assert "An input at which the class leads by at least 0.1319" in open_class(check, "word 5")
    check.locator("#explore-filter").select_option("")
    check.locator("#explore-search").fill("word 1")
    expect(check.locator("#explore-count")).to_have_text("3 of 14 classes")
    check.locator("#explore-search").fill("U+00E9")
    expect(check.locator("#explore-count")).to_have_text("1 of 14 classes")
    check.locator("#explore-search").fill("3")
    expect(check.locator("#explore-count")).to_have_text("1 of 14 classes")
    assert "word 3 (class 3), word 4 (class 4)" in open_class(check, "word 3")


def test_a_bundle_alone_is_shown_as_unchecked(check: Page) -> None:
    check.locator("#check-pick").set_input_files([*(SUITE / "good" / "box").iterdir()])
    expect(check.locator("#check-status")).to_contain_text("Until then nothing is checked")
    expect(check.locator("#check-explore tbody tr").first).to_contain_text("not checked yet")
    expect(check.locator("#check-result")).to_be_empty()


def test_classes_over_another_domain_are_shown_as_not_checked(check: Page) -> None:
    give(check, SUITE / "good" / "ball", head_of("ball"))
    expect(check.locator("#check-explore tbody tr").first).to_contain_text("not checked here")


def test_labels_that_hold_markup_are_shown_as_text(check: Page, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.mkdir()
    for path in (SUITE / "good" / "box").iterdir():
        (odd / path.name).write_bytes(path.read_bytes())
    text = (odd / "verdicts.jsonl").read_text(encoding="utf-8")
    label = "<img src=x onerror=alert(1)>\u202e"
    (odd / "verdicts.jsonl").write_text(text.replace('"word 0"', json.dumps(label)), encoding="utf-8")
    give(check, odd, head_of("box"))
    expect(check.locator("#check-result .answer")).to_have_text("This bundle does not prove what it says.")
    shown = r"<img src=x onerror=alert(1)>\u{202e}"
    expect(check.locator("#check-explore button.label").first).to_have_text(shown)
