"""The site in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from keeping import BOX, CORNERS, LABELS, keep, lossy, plan_of
from playwright.sync_api import Page, expect
from serving import Served, serving
from visits import Open, Visit

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.core.head import Facts
from argmaxable.core.verdict import farthest_first
from argmaxable.store import Plan, open_store

HOSTILE = "<img src=x onerror=alert(1)>"


# The runs of the database that all tests share: starting a server takes longer than looking at its pages.
MARKUP, POSITIVE, RING, BEFORE, AFTER, LARGE = range(1, 7)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first run's labels and name would like to be markup."""
    database = tmp_path_factory.mktemp("kept") / "runs.db"
    weight = CORNERS.copy()
    weight[1], weight[4] = [0.125, 0.25], [3.0, 0.0]
    runs = [
        keep(database, lossy(labels=(HOSTILE, *LABELS[1:5], HOSTILE + "2"), name=HOSTILE)),
        keep(database, lossy(), am.Box(0.0, np.inf)),
        keep(database, shrunk()),
        keep(database, lossy()),
        keep(database, am.Head(weight, np.zeros(6), LABELS, name="tuned.npz")),
        keep_large(database, classes=9000),
    ]
    assert runs == [MARKUP, POSITIVE, RING, BEFORE, AFTER, LARGE]
    return database


def keep_large(database: Path, *, classes: int) -> int:
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
    return run.run_id


def shrunk() -> am.Head:
    """A circle of classes, and some inside of it."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inside = ring[::3] * np.array([[0.8], [0.6], [0.4], [0.2]]) + 0.01
    bias = np.concatenate([np.zeros(12), np.full(4, -0.5)])
    return am.Head(np.concatenate([ring, inside]), bias, tuple(f"c{k}" for k in range(16)), name="head.npz")


@pytest.fixture(scope="module")
def site(kept: Path) -> Iterator[Served]:
    """It knows the weights of the ring alone."""
    head = shrunk()
    np.savez(kept.with_name("head.npz"), W=head.rows(slice(None)), b=head.biases())
    with serving(kept, "--model", kept.with_name("head.npz")) as served:
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


def test_the_farthest_off_come_first_and_the_address_keeps_the_order(
    visit: Open, site: Served, kept: Path
) -> None:
    with open_store(str(kept), read_only=True) as store:
        never = farthest_first(store.verdicts(RING, status=am.Status.UNARGMAXABLE))
    expected = [verdict.label for verdict in never]
    assert len(expected) > 2
    opened = visit(f"{site.address}/runs/{RING}")
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


def test_a_class_page_tells_the_exact_margin_and_leads_to_its_neighbours(
    visit: Open, site: Served, kept: Path
) -> None:
    with open_store(str(kept), read_only=True) as store:
        never = [verdict.class_id for verdict in store.verdicts(RING, status=am.Status.UNARGMAXABLE)]
    opened = visit(f"{site.address}/runs/{RING}/classes/{never[0]}")
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


def test_the_answer_of_a_large_run_comes_after_its_page(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/runs/{LARGE}")
    expect(opened.page.get_by_role("heading", level=1)).to_have_text(
        "All 9,000 classes can be predicted for features within ±1."
    )
    expect(opened.page.locator("#pictures figure")).to_have_count(1)
    assert f"{site.address}/runs/{LARGE}/findings" in opened.requests
    assert is_quiet(opened, site)


def test_a_comparison_is_filtered_as_one_types_and_its_address_says_so(visit: Open, site: Served) -> None:
    opened = visit(f"{site.address}/compare?before={BEFORE}&after={AFTER}")
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


# ---------------------------------------------------------------------- a run that is under way


def test_a_run_is_watched_from_its_start_to_its_end(visit: Open, tmp_path: Path) -> None:
    """This process works on the run, so that it goes on when its last step was seen."""
    database, head = tmp_path / "runs.db", lossy()
    found = am.verify(head, BOX, engine=am.Engine(workers=1))
    open_store(str(database)).close()
    with serving(database) as served:
        opened = visit(f"{served.address}/")
        page = opened.page
        expect(page.locator(".hint")).to_contain_text("No runs yet")
        with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
            link = page.get_by_role("link", name="lossy.npz")
            expect(link).to_be_visible()
            link.click()
            status = page.locator("#progress [role=status]")
            expect(status).to_contain_text("running, started")
            for known in (2, 4):
                run.record(found.verdicts[known - 2 : known], am.Cost())
                expect(page.locator("#progress")).to_contain_text(
                    f"{known} of 6 classes have a verdict so far"
                )
            run.record(found.verdicts[4:], am.Cost())
            run.finish(am.Cost())
        expect(status).to_contain_text("finished")
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "3 of 6 classes can never be predicted for features within ±100."
        )
        assert is_quiet(opened, served)
        assert served.stop() == (0, "")
