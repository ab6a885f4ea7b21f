"""The playground in a real browser: dragging, keys, and verdicts that agree with `verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keeping import keep, lossy
from playwright.sync_api import Locator, Page, expect
from serving import Served, serving
from visits import Open

import argmaxable as am


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database: Path = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(database, lossy())
    with serving(database) as served:
        yield served


@pytest.fixture
def playground(visit: Open, site: Served) -> Iterator[Page]:
    opened = visit(f"{site.address}/playground", viewport={"width": 1100, "height": 1000})
    yield opened.page
    assert opened.messages == []
    assert all(each.startswith(site.address + "/") for each in opened.requests)


def vector(page: Page, label: str) -> Locator:
    return page.get_by_role("slider", name=f"Weights of {label}")


def verdict(page: Page, label: str) -> str:
    line = page.locator("#list tbody tr", has=page.get_by_role("rowheader", name=label, exact=True))
    return line.locator(".verdict").inner_text()


def drag(page: Page, label: str, x: float, y: float) -> None:
    """Take the vector with the mouse to (x, y)."""
    plane, knob = page.locator("#weights").bounding_box(), vector(page, label).locator(".knob").bounding_box()
    assert plane is not None
    assert knob is not None
    page.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    page.mouse.down()
    scale = min(plane["width"], plane["height"]) / 4.4
    page.mouse.move(
        plane["x"] + plane["width"] / 2 + x * scale, plane["y"] + plane["height"] / 2 - y * scale, steps=8
    )
    page.mouse.up()


def choose(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


# ---------------------------------------------------------------------- the address


SHARED = "#5;100,0,0;-100,0,0;0,100,-25"


def test_an_address_shows_the_picture_it_was_copied_from(visit: Open, site: Served, playground: Page) -> None:
    drag(playground, "E", 1.8, 1.0)
    playground.locator("#size").fill("7")
    expect(playground).to_have_url(re.compile("#7;"))
    other = visit(playground.url, viewport={"width": 1100, "height": 1000}).page
    expect(other.locator("#summary")).to_have_text("All 5 classes can be predicted.")
    for part in ("#weights", "#regions", "#list"):
        assert other.locator(part).inner_html() == playground.locator(part).inner_html()


def test_another_address_in_the_same_page_is_followed(playground: Page) -> None:
    playground.evaluate(f"location.hash = {SHARED!r}")
    expect(playground.locator("#list tbody tr")).to_have_count(3)
    assert playground.locator("#size").input_value() == "5"
    assert playground.url.endswith(SHARED)


def test_the_address_of_an_example_is_known_as_one(visit: Open, site: Served, playground: Page) -> None:
    choose(playground, "Twins")
    expect(playground).to_have_url(re.compile(";120,120,0$"))
    page = visit(playground.url).page
    expect(page.get_by_role("button", name="Twins", exact=True)).to_have_attribute("aria-pressed", "true")


NONSENSE = (
    "#",
    "#3",
    "#3;1,2,3",
    "#0;1,2,3;4,5,6",
    "#3;1,2;3,4,5",
    "#3;1,2,3;999,0,0",
    "#3;a,b,c;1,2,3",
    "#3;<b>;1,2,3",
)


def test_an_address_that_makes_no_sense_shows_the_first_example(visit: Open, site: Served) -> None:
    opened = visit("about:blank")
    for address in NONSENSE:
        opened.page.goto("about:blank")  # else the same page would only hear of another fragment
        opened.page.goto(f"{site.address}/playground{address}")
        expect(opened.page.locator("#list tbody tr"), address).to_have_count(5)
        assert opened.messages == [], address


def test_a_phone_has_every_column(visit: Open, site: Served) -> None:
    page = visit(f"{site.address}/playground", viewport={"width": 360, "height": 740}).page
    cells = page.locator("#list tbody tr").last.locator("td")
    expect(cells).to_have_count(5)
    for place in range(5):
        expect(cells.nth(place)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


# ---------------------------------------------------------------------- hands


def test_a_vector_dragged_into_the_hull_is_lost_and_comes_back_when_dragged_out(playground: Page) -> None:
    assert verdict(playground, "E") == "never: at best level"
    drag(playground, "E", 1.8, 1.0)
    assert verdict(playground, "E") == "can be predicted"
    expect(playground.locator("#summary")).to_have_text("All 5 classes can be predicted.")
    drag(playground, "E", 0.2, -0.3)
    assert verdict(playground, "E") == "never: at best level"
    expect(playground.locator("#summary")).to_have_text("1 of 5 classes can never be predicted: E.")
    drag(playground, "A", 0.0, -0.8)
    assert verdict(playground, "A") == "never: at best level"


def test_a_region_vanishes_with_its_class_and_appears_again(playground: Page) -> None:
    def names() -> list[str]:
        return [name for name in playground.locator("#regions .name").all_text_contents() if name]

    assert names() == ["A", "B", "C", "D"]
    drag(playground, "E", 1.8, 1.8)
    assert "E" in names()
    drag(playground, "E", 0.0, 0.0)
    assert "E" not in names()


def test_a_finger_drags_too(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/playground", viewport={"width": 390, "height": 844}, has_touch=True)
    page = opened.page
    knob = vector(page, "E").locator(".knob")
    knob.scroll_into_view_if_needed()
    box = knob.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)
    for kind, point in (
        ("touchStart", (x, y)),
        ("touchMove", (x + 60, y - 20)),
        ("touchMove", (x + 130, y - 40)),
    ):
        touch.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": point[0], "y": point[1]}]}
        )
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(vector(page, "E")).to_have_class("vector k4 can")
    assert opened.messages == []


def test_the_arrow_keys_move_a_focused_vector(playground: Page) -> None:
    vector(playground, "E").focus()
    for _ in range(7):
        playground.keyboard.press("Shift+ArrowRight")
    assert verdict(playground, "E") == "can be predicted"
    expect(vector(playground, "E")).to_have_attribute(
        "aria-valuetext", "1.90, 0.10, bias 0.00, can be predicted"
    )
    playground.keyboard.press("ArrowLeft")
    expect(vector(playground, "E")).to_have_attribute("aria-valuenow", "1.85")


def test_plus_and_minus_change_the_bias(playground: Page) -> None:
    vector(playground, "E").focus()
    for _ in range(4):
        playground.keyboard.press("+")
    assert verdict(playground, "E") == "can be predicted"
    for _ in range(8):
        playground.keyboard.press("-")
    assert verdict(playground, "E") == "never predicted"


def test_every_vector_can_be_reached_by_tab(playground: Page) -> None:
    playground.get_by_role("button", name="On a line").focus()
    reached = []
    for _ in range(5):
        playground.keyboard.press("Tab")
        reached.append(playground.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert reached == [f"Weights of {label}" for label in "ABCDE"]


def test_no_vector_leaves_the_plane(playground: Page) -> None:
    drag(playground, "E", 9.0, -9.0)
    expect(vector(playground, "E")).to_have_attribute(
        "aria-valuetext", "2.00, −2.00, bias 0.00, can be predicted"
    )


def test_classes_are_added_and_removed(playground: Page) -> None:
    for _ in range(3):
        choose(playground, "Add a class")
    expect(playground.get_by_role("button", name="Add a class")).to_be_disabled()
    expect(playground.locator("#list tbody tr")).to_have_count(8)
    for _ in range(6):
        choose(playground, "Remove the last")
    expect(playground.get_by_role("button", name="Remove the last")).to_be_disabled()


# ---------------------------------------------------------------------- examples


EXAMPLES = (
    ("Inside the hull", "E", "never: at best level"),
    ("On the edge", "E", "never: at best level"),
    ("A bias saves it", "E", "can be predicted"),
    ("A bias costs it", "E", "never predicted"),
    ("Twins", "A", "never: at best level"),
    ("Twins", "E", "never: at best level"),
    ("On a line", "A", "can be predicted"),
    ("On a line", "C", "never: at best level"),
)


def test_an_example_shows_what_it_says(playground: Page) -> None:
    for preset, label, expected in EXAMPLES:
        choose(playground, preset)
        assert verdict(playground, label) == expected, preset


def test_a_step_outwards_from_the_edge_wins(playground: Page) -> None:
    choose(playground, "On the edge")
    vector(playground, "E").focus()
    playground.keyboard.press("ArrowRight")
    assert verdict(playground, "E") == "can be predicted"


def test_a_larger_box_lets_a_class_with_a_low_bias_win(playground: Page) -> None:
    choose(playground, "A bias costs it")
    playground.get_by_label("Box: each feature").fill("10")
    assert verdict(playground, "E") == "can be predicted"


# ---------------------------------------------------------------------- truth


def decided(page: Page, heads: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return page.evaluate(
        """async (heads) => {
            const { regionOf, marginOf } = await import('/static/regions.js');
            return heads.map(({ classes, size }) => classes.map((_, k) => ({
                status: regionOf(classes, k, size).status, margin: marginOf(classes, k, size),
                share: regionOf(classes, k, size).share })));
        }""",
        heads,
    )  # type: ignore[no-any-return]


def random_heads(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Coarse numbers, so that classes meet on edges, on lines and on each other."""
    rng = np.random.default_rng(1)
    for k in range(count):
        classes, step = int(rng.integers(2, 9)), (1, 20, 50, 100)[k % 4]
        weight = rng.integers(-200 // step, 200 // step + 1, (classes, 2)) * step
        bias = rng.integers(-500 // step, 500 // step + 1, classes) * step * (k % 3 > 0)
        yield weight, bias, int(rng.integers(1, 11))


def test_verdicts_are_those_of_verify(playground: Page) -> None:
    heads = list(random_heads(48))  # every step with and without bias, four times and eight
    given = [
        {
            "classes": [
                {"x": int(x), "y": int(y), "bias": int(b)} for (x, y), b in zip(weight, bias, strict=True)
            ],
            "size": size,
        }
        for weight, bias, size in heads
    ]
    kinds = set()
    for (weight, bias, size), found in zip(heads, decided(playground, given), strict=True):
        head = am.Head(weight.astype(float), bias.astype(float))
        result = am.verify(head, am.Box(-float(size), float(size)), engine=am.Engine(workers=1))
        can = [verdict.status is am.Status.ARGMAXABLE for verdict in result.verdicts]
        assert not result.undecided
        assert [each["status"] == "can" for each in found] == can
        for verdict, each in zip(result.verdicts, found, strict=True):
            kinds.add(each["status"])
            lead = 100 * each["margin"]["lead"]
            slack = 1e-6 * (1 + abs(lead))
            assert verdict.lower - slack <= lead <= verdict.upper + slack
            assert (each["status"] == "never") == (lead < -slack)
            assert sum(part["share"] for part in each["margin"]["mixture"]) == pytest.approx(1)
        assert sum(each["share"] for each in found if each["status"] == "can") <= 1 + 1e-9
    assert kinds == {"can", "level", "never"}
