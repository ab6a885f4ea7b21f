"""The site in a real browser."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from keeping import CORNERS, LABELS, keep, lossy
from playwright.sync_api import Page, expect
from running import PROGRAM
from serving import Served, serving
from visits import Open, Visit

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.core.verdict import farthest_first
from argmaxable.store import Plan, open_store

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose labels and name would like to be markup."""
    database = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(database, lossy(labels=(HOSTILE, *LABELS[1:5], HOSTILE + "2"), name=HOSTILE))
    keep(database, lossy(), am.Box(0.0, np.inf))
    return database


@pytest.fixture(scope="module")
def site(kept: Path) -> Iterator[Served]:
    with serving(kept) as served:
        yield served
        assert served.stop() == (0, "")


def labels(page: Page) -> list[str]:
    return page.locator("#classes th.label bdi").all_text_contents()


def is_quiet(visit: Visit, site: Served) -> bool:
    """Whether the page said nothing and asked nobody else for anything."""
    return visit.messages == [] and all(each.startswith(site.address + "/") for each in visit.requests)


# ---------------------------------------------------------------------- runs and classes


def test_a_label_stays_text_on_every_page(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/")
    page = opened.page
    page.get_by_role("link", name=HOSTILE).click()
    assert page.locator(".model bdi").inner_text() == HOSTILE
    assert labels(page)[1] == HOSTILE  # in class order behind the one that is blocked: it is tied
    page.locator("#classes").get_by_role("link", name=HOSTILE, exact=True).first.click()
    expect(page.locator(".glyph")).to_have_text(HOSTILE)
    page.goto(f"{site.address}/compare?before=1&after=2")
    page.goto(f"{site.address}/runs/1/report")
    expect(page.get_by_role("heading", level=1)).to_contain_text("can never be predicted")
    assert page.locator("img").count() == 0
    assert is_quiet(opened, site)


def test_the_search_filters_as_one_types_and_goes_back(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/runs/2")
    page = opened.page
    page.locator("select[name=status]").select_option("all")
    expect(page.locator("#classes th.label bdi")).to_have_count(6)
    page.get_by_label("Search").press_sequentially("midd")
    expect(page.locator("#classes th.label bdi")).to_have_text(["middle"])
    assert page.url.endswith("?search=midd&status=all&method=&sort=ahead")
    page.go_back()
    expect(page.locator("#classes th.label bdi")).to_have_count(6)
    assert is_quiet(opened, site)


def test_the_farthest_off_come_first_and_the_address_keeps_the_order(visit: Open, tmp_path: Path) -> None:
    keep(tmp_path / "runs.db", shrunk())
    with open_store(str(tmp_path / "runs.db"), read_only=True) as store:
        never = farthest_first(store.verdicts(1, status=am.Status.UNARGMAXABLE))
    expected = [verdict.label for verdict in never]
    assert len(expected) > 2
    with serving(tmp_path / "runs.db") as site:
        opened = visit(f"{site.address}/runs/1")
        page = opened.page
        rows = page.locator("#classes th.label bdi")
        expect(rows).to_have_text(expected)
        expect(page.locator("#unargmaxable bdi")).to_have_text(expected)
        heading = page.get_by_role("columnheader", name="ahead")
        expect(heading).to_have_attribute("aria-sort", "descending")
        heading.get_by_role("link").click()
        expect(heading).to_have_attribute("aria-sort", "ascending")
        nearest = rows.all_text_contents()
        assert nearest[0] == expected[-1]
        page.goto(page.url)  # as one to whom the link was sent
        expect(rows).to_have_text(nearest)
        assert is_quiet(opened, site)


def test_a_class_page_tells_the_exact_margin_and_leads_to_its_neighbours(visit: Open, tmp_path: Path) -> None:
    head = shrunk()
    keep(tmp_path / "runs.db", head)
    np.savez(tmp_path / "head.npz", W=head.rows(slice(None)), b=head.biases())
    with open_store(str(tmp_path / "runs.db"), read_only=True) as store:
        never = [verdict.class_id for verdict in store.verdicts(1, status=am.Status.UNARGMAXABLE)]
    with serving(tmp_path / "runs.db", "--model", tmp_path / "head.npz") as site:
        opened = visit(f"{site.address}/runs/1/classes/{never[0]}")
        page = opened.page
        expect(page.locator("#margin")).to_contain_text("More closely: its bias must rise")
        blockers = page.locator("#mixture ~ ol.blockers li")
        assert blockers.count() == page.locator("svg.standing g.blocker").count() > 1
        expect(page.locator("svg.standing .own")).to_have_count(1)
        page.get_by_role("link", name="next never predicted").click()
        expect(page.locator(".model")).to_contain_text(f"class {never[1]} of")
        page.get_by_role("link", name="previous never predicted").click()
        expect(page.locator(".model")).to_contain_text(f"class {never[0]} of")
        page.locator("ol.blockers a").first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Can be predicted")
        assert is_quiet(opened, site)


def shrunk() -> am.Head:
    """A circle of classes, and some inside of it."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inside = ring[::3] * np.array([[0.8], [0.6], [0.4], [0.2]]) + 0.01
    bias = np.concatenate([np.zeros(12), np.full(4, -0.5)])
    return am.Head(np.concatenate([ring, inside]), bias, tuple(f"c{k}" for k in range(16)), name="head.npz")


def test_a_heading_sorts_by_keyboard(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/runs/2?status=all")
    page = opened.page
    page.get_by_role("link", name="label", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="label")).to_have_attribute("aria-sort", "ascending")
    assert labels(page) == sorted(LABELS)
    page.keyboard.press("Enter")  # the focus is still there
    expect(page.get_by_role("columnheader", name="label")).to_have_attribute("aria-sort", "descending")
    assert is_quiet(opened, site)


def test_pages_work_without_javascript(visit: Open, site: Served) -> None:
    page = visit(f"{site.address}/runs/2", java_script_enabled=False).page
    page.get_by_label("Search").fill("middle")
    page.get_by_role("button", name="Show").click()
    assert labels(page) == ["middle"]


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/runs/1",
        "/runs/1/classes/0",
        "/runs/1/classes/4",
        "/runs/1/report",
        "/compare",
        "/compare?before=1&after=2",
        "/playground",
    ],
)
def test_nothing_sticks_out_on_a_phone(visit: Open, site: Served, address: str) -> None:
    opened = visit(site.address + address, viewport={"width": 360, "height": 740})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert is_quiet(opened, site)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["/runs/1", "/playground"])
def test_pages_follow_the_systems_theme(visit: Open, site: Served, address: str, scheme: str) -> None:
    page = visit(site.address + address, color_scheme=scheme).page
    colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(int(part) for part in colour.strip("rgb()").split(",")) / 3
    assert (brightness > 128) == (scheme == "light")


def test_the_answer_of_a_large_run_comes_after_its_page(visit: Open, tmp_path: Path) -> None:
    database, classes = tmp_path / "runs.db", 9000
    plan = Plan(
        Facts("large", "5e" * 32, classes, 4, bias=False, dtype="float32"),
        None, am.Box(-1.0, 1.0), am.Algorithm.AUTO, 30, 0,
    )  # fmt: skip
    verdicts = [
        am.Verdict(k, str(k), am.Status.ARGMAXABLE, 1.0, 2.0, am.Method.OWN_DIRECTION, am.Strength.FLOAT32)
        for k in range(classes)
    ]
    with open_store(str(database)) as store, store.begin(plan, centre=np.zeros(4)) as run:
        run.record(verdicts, am.Cost())
        run.finish(am.Cost())
    with serving(database) as served:
        opened = visit(f"{served.address}/runs/1")
        expect(opened.page.get_by_role("heading", level=1)).to_have_text(
            "All 9,000 classes can be predicted for features within ±1."
        )
        expect(opened.page.locator("#pictures figure")).to_have_count(1)
        assert f"{served.address}/runs/1/findings" in opened.requests
        assert is_quiet(opened, served)


# ---------------------------------------------------------------------- a run that is under way


def test_a_verification_is_watched_from_its_start_to_its_end(visit: Open, tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    open_store(str(database)).close()
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "hard.npz", weight=rng.normal(size=(3000, 12)).astype(np.float32))
    with serving(database) as served:
        opened = visit(f"{served.address}/")
        page = opened.page
        expect(page.locator(".hint")).to_contain_text("No runs yet")
        command = [*PROGRAM, "verify", tmp_path / "hard.npz", "--db", database, "--workers", "1"]
        verification = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
        )
        try:
            link = page.get_by_role("link", name="hard.npz")
            expect(link).to_be_visible()
            link.click()
            status = page.locator("#progress [role=status]")
            expect(status).to_contain_text("running, started")
            seen = watch(page)
            assert verification.wait() == 1
        finally:
            verification.kill()
            verification.wait()
        expect(status).to_contain_text("finished")
        expect(page.get_by_role("heading", level=1)).to_have_text(answer(database))
        assert seen == sorted(seen)
        assert seen[0] < 3000  # what was watched was on its way
        assert is_quiet(opened, served)
        assert served.stop() == (0, "")


def watch(page: Page) -> list[int]:
    """How many classes were said to have a verdict, each number once, until the run is not running."""
    seen: list[int] = []
    while "running" in (text := page.locator("#progress").inner_text()):
        number = int(text.split(";")[1].split(" of ")[0].replace(",", ""))
        if number not in seen:
            seen.append(number)
        changed = "text => document.querySelector('#progress')?.innerText !== text"
        page.wait_for_function(changed, arg=text, timeout=0)
    return seen


def answer(database: Path) -> str:
    with open_store(str(database)) as store:
        never = store.run(1).counts.unargmaxable
    return f"{never:,} of 3,000 classes can never be predicted for features within ±100."


def test_a_comparison_is_filtered_as_one_types_and_its_address_says_so(visit: Open, tmp_path: Path) -> None:
    weight = CORNERS.copy()
    weight[1], weight[4] = [0.125, 0.25], [3.0, 0.0]
    keep(tmp_path / "runs.db", lossy())
    keep(tmp_path / "runs.db", am.Head(weight, np.zeros(6), LABELS, name="tuned.npz"))
    with serving(tmp_path / "runs.db") as site:
        opened = visit(f"{site.address}/compare?before=1&after=2")
        page = opened.page
        rows = page.locator("#found th.label bdi")
        expect(rows).to_have_text(["é", "middle"])
        page.get_by_label("Search").press_sequentially("é")
        expect(rows).to_have_text(["é"])
        assert "search=%C3%A9" in page.url
        page.reload()
        expect(rows).to_have_text(["é"])
        page.locator("#found").get_by_role("link", name="never predicted").click()
        expect(page.locator(".glyph")).to_have_text("é")
        assert is_quiet(opened, site)
