"""The page in a real browser, opened from disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from opened_pages import Opener
from playwright.sync_api import Page
from subjects import HOSTILE, can, never, small, subject, vocabulary

import argmaxable as am
from argmaxable.report.page.content import content_of
from argmaxable.report.page.html import page as rendered
from argmaxable.report.page.weights import weights_of

ABC = subject(
    can(0, "b", 3.0, steps=2), can(1, "a", 1.0), never(2, "z"), can(3, "<s>", 2.0), never(4, "Ж", upper=-0.5)
)
ROWS = "#classes tbody tr[data-row]"


def labels(page: Page) -> list[str]:
    return page.locator(f"{ROWS} td.label bdi").all_text_contents()


def choose_all(page: Page) -> None:
    page.locator("#by-status").select_option(label="all")


def test_the_page_opens_without_a_message_and_asks_for_nothing_else(open_page: Opener) -> None:
    page, heard = open_page(rendered(content_of(ABC)))
    choose_all(page)
    page.get_by_role("button", name="margin").click()
    assert heard.messages == []
    assert len(heard.requests) == 1
    assert heard.requests[0].startswith("file://")


def test_the_answer_is_the_heading(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    answer = page.get_by_role("heading", level=1).inner_text()
    assert answer == "2 of 5 classes can never be predicted for features within ±100."


def test_unargmaxable_classes_are_shown_first_and_the_others_on_demand(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    assert labels(page) == ["z", "Ж"]
    choose_all(page)
    assert labels(page) == ["b", "a", "z", "<s>", "Ж"]


def test_the_farthest_off_come_first(open_page: Opener) -> None:
    near, far = replace(never(2, "z"), ahead=3), replace(never(4, "Ж"), ahead=1200)
    page, _ = open_page(rendered(content_of(subject(can(0, "b", 3.0), can(1, "a", 1.0), near, far))))
    assert labels(page) == ["Ж", "z"]
    assert page.locator(".wall bdi").all_text_contents() == ["Ж", "z"]
    assert "Farthest off first: by how many" in page.locator("#unargmaxable ~ p").first.inner_text()
    heading = page.get_by_role("columnheader", name="ahead")
    assert heading.get_attribute("aria-sort") == "descending"
    assert page.locator(ROWS).first.get_by_text("1,200").count() == 1
    choose_all(page)
    assert labels(page) == ["Ж", "z", "b", "a"]
    heading.get_by_role("button").click()
    assert labels(page) == ["b", "a", "z", "Ж"]


def test_a_heading_sorts_both_ways_and_says_so(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    choose_all(page)
    heading = page.get_by_role("columnheader", name="label")
    heading.get_by_role("button").click()
    assert labels(page) == ["<s>", "a", "b", "z", "Ж"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert labels(page) == ["Ж", "z", "b", "a", "<s>"]
    assert heading.get_attribute("aria-sort") == "descending"


def test_margins_sort_by_what_was_proven(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    choose_all(page)
    page.get_by_role("button", name="margin").click()
    assert labels(page) == ["Ж", "z", "a", "<s>", "b"]


def test_the_keyboard_alone_sorts(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    choose_all(page)
    page.get_by_role("button", name="label").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert labels(page) == ["Ж", "z", "b", "a", "<s>"]


@pytest.mark.parametrize(
    ("query", "found"),
    [("Z", ["z"]), ("4", ["Ж"]), ("U+0416", ["Ж"]), ("cyrillic", ["Ж"]), ("nobody", [])],
)
def test_the_search_finds_labels_numbers_code_points_and_names(
    open_page: Opener, query: str, found: list[str]
) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    page.get_by_label("Search").fill(query)
    assert labels(page) == found


def test_a_kind_filters(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    choose_all(page)
    page.locator("#by-kind").select_option(label="special tokens (1)")
    assert labels(page) == ["<s>"]


def test_a_script_in_the_list_of_losses_filters_too(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    page.get_by_role("button", name="cyrillic").click()
    assert labels(page) == ["Ж"]


def test_details_name_the_blockers(open_page: Opener) -> None:
    page, _ = open_page(rendered(content_of(ABC)))
    button = page.get_by_role("button", name="Details of z")
    button.click()
    assert "b 100 %" in page.locator("#classes .detail").inner_text()
    assert button.get_attribute("aria-expanded") == "true"


def test_ties_are_named(open_page: Opener, database: Path) -> None:
    page, _ = open_page(rendered(content_of(small(database))))
    assert "tied with 😀" in page.locator(ROWS, has_text="U+0061").inner_text()


def test_pages_turn(open_page: Opener) -> None:
    many = subject(*(never(k, f"lost {k}") for k in range(1, 61)))
    page, _ = open_page(rendered(content_of(many)))
    assert len(labels(page)) == 25
    page.get_by_role("button", name="Last").click()
    assert labels(page)[-1] == "lost 60"
    assert page.get_by_role("button", name="Next").is_disabled()


def test_every_unargmaxable_class_is_printed(open_page: Opener) -> None:
    many = subject(*(never(k, f"lost {k}") for k in range(1, 61)))
    page, _ = open_page(rendered(content_of(many)))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(labels(page)) == 60
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(labels(page)) == 25


def test_labels_stay_text_wherever_they_appear(open_page: Opener, database: Path) -> None:
    head = am.Head([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 1]], None, HOSTILE, name=HOSTILE[0])
    found = small(database, labels=HOSTILE, name=HOSTILE[0])
    page, heard = open_page(rendered(content_of(found), weights_of(head)))
    choose_all(page)
    for button in page.locator("#classes .more").all():
        button.click()
    page.get_by_label("Search").fill("<img")
    # Two frames: whatever markup would do has been done by then.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert heard.messages == []
    assert len(heard.requests) == 1
    assert page.locator("img, svg[onload]").count() == 0
    assert labels(page) == [HOSTILE[0]]
    assert page.title().startswith(HOSTILE[0])


def test_the_policy_stops_a_script_that_is_not_ours(open_page: Opener) -> None:
    text = rendered(content_of(ABC)).replace("</main>", "<script>document.title = 'run'</script></main>")
    page, heard = open_page(text)
    assert page.title() != "run"
    assert "Content Security Policy" in heard.messages[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_theme(open_page: Opener, scheme: str) -> None:
    page, _ = open_page(rendered(content_of(ABC)), color_scheme=scheme)
    colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(int(part) for part in colour.strip("rgb()").split(",")) / 3
    assert (brightness > 128) == (scheme == "light")


def test_nothing_sticks_out_on_a_phone(open_page: Opener, database: Path) -> None:
    head = am.Head([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 1]], None)
    text = rendered(content_of(small(database, name="a-long-name-" * 20)), weights_of(head))
    page, _ = open_page(text, viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_of_a_vocabulary_of_49152_few_rows_are_laid_out_whatever_the_filter(open_page: Opener) -> None:
    # What makes it fast; benchmarks/report_page.py measures how fast.
    page, heard = open_page(rendered(content_of(vocabulary())))
    rows = page.evaluate(
        """() => {
            const search = document.getElementById('search');
            const filter = (text) => {
                search.value = text;
                search.dispatchEvent(new Event('input'));
                return document.querySelectorAll('tbody tr').length;
            };
            document.getElementById('by-status').value = '';
            return ['', 'the', 'ment', 'Con', 'x', 'ization', 'no such label'].map(filter);
        }"""
    )
    assert heard.messages == []
    assert rows[-1] < rows[0]
    assert max(rows) < 100
