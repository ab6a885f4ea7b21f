"""The pages, as a client without a browser gets them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keeping import BOX, CORNERS, LABELS, keep, keep_some, lossy, plan_of
from starlette.testclient import TestClient

import argmaxable as am
from argmaxable.compute.prepared import centre_of, prepared
from argmaxable.core.label_sets import SetTest
from argmaxable.report.comparison import compare
from argmaxable.serve.app import _STATIC
from argmaxable.store import PublishedVerdict, open_store
from argmaxable.workflow.stored_run import Origin
from argmaxable.workflow.stored_sets import SetQuestion, ask_stored

Client = Callable[..., TestClient]

HOSTILE = "<img src=x onerror=alert(1)>"


def text_of(html: str) -> str:
    """What a reader sees, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def shown_labels(html: str) -> list[str]:
    return [
        unescape(label)
        for label in re.findall(r'<th scope="row" class="label"><a [^>]*><bdi>(.*?)</bdi>', html)
    ]


def lost_by_a_mixture() -> am.Head:
    """Class 4 is inside the hull of the others, and its bias keeps it strictly below them."""
    return am.Head(
        CORNERS[:5], np.array([0, 0, 0, 0, -0.5]), ("n", "e", "w", "s", "lost"), name="mixture.npz"
    )


# ---------------------------------------------------------------------- runs


def test_runs_are_listed_newest_first(client: Client, database: Path) -> None:
    first, second = keep(database, lossy(name="old.npz")), keep(database, lost_by_a_mixture())
    page = client().get("/").text
    assert page.index(f'href="/runs/{second}"') < page.index(f'href="/runs/{first}"')
    assert "3 undecided" not in text_of(page)


def test_stored_sets_have_a_page(client: Client, database: Path) -> None:
    head = am.Head(CORNERS, labels=(HOSTILE, *LABELS[1:]), name="tags.npz")
    pairs = {(first, second): 1 for first in range(head.classes) for second in range(first)}
    with open_store(str(database)) as store:
        question = SetQuestion(prepared(head), BOX, SetTest("top"), {(b, a): 1 for a, b in pairs})
        done = ask_stored(question, store, origin=Origin("tags.npz"), engine=am.Engine(workers=1))
    visitor = client()
    listed = visitor.get("/").text
    assert f'href="/sets/{done.run_id}"' in listed
    assert "No runs yet" not in listed
    page = visitor.get(f"/sets/{done.run_id}")
    assert page.status_code == 200
    assert "can never be predicted" in text_of(page.text)
    assert HOSTILE not in page.text
    assert visitor.get("/sets/99").status_code == visitor.get("/sets/x").status_code == 404
    assert "tags.npz" not in visitor.get("/", params={"name": "other"}).text


def test_runs_are_found_by_their_models_name(client: Client, database: Path) -> None:
    keep(database, lossy(name="old.npz"))
    page = client().get("/", params={"name": "OLD"}).text
    assert "old.npz" in page
    assert "No run of a model with" in client().get("/", params={"name": "new"}).text


def test_an_empty_database_says_how_to_fill_it(client: Client, database: Path) -> None:
    open_store(str(database)).close()
    assert "No runs yet. argmaxable verify MODEL stores one" in text_of(client().get("/").text)


def test_htmx_gets_the_table_alone(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    for address in ("/", f"/runs/{run}"):
        part = client().get(address, headers={"HX-Request": "true"}).text
        assert "<table" in part
        assert "<html" not in part
        back = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
        assert "<html" in client().get(address, headers=back).text


def test_older_runs_are_a_link_away(client: Client, database: Path) -> None:
    for k in range(3):
        keep(database, lossy(name=f"{k}.npz"), seed=k)
    page = client().get("/", params={"limit": "2"}).text
    assert "0.npz" not in page
    assert "0.npz" in client().get(unescape(re.findall(r'href="(/\?[^"]*limit=8)"', page)[0])).text


# ---------------------------------------------------------------------- a run


def test_a_runs_answer_is_the_reports(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    assert (
        "<h1>3 of 6 classes can never be predicted for features within ±100.</h1>"
        in client().get(f"/runs/{run}").text
    )


def test_unargmaxable_classes_are_shown_first_and_all_on_demand(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    assert shown_labels(client().get(f"/runs/{run}").text) == ["middle", "a", "😀"]
    assert shown_labels(client().get(f"/runs/{run}?status=all").text) == list(LABELS)


def test_of_a_run_without_losses_all_are_shown(client: Client, database: Path) -> None:
    run = keep(database, am.Head(CORNERS[:4], name="fine.npz"))
    assert len(shown_labels(client().get(f"/runs/{run}").text)) == 4


def test_a_large_run_comes_in_pages(client: Client, database: Path) -> None:
    rng = np.random.default_rng(0)
    run = keep(database, am.Head(rng.normal(size=(120, 40)), name="large.npz"))
    first = client().get(f"/runs/{run}").text
    assert shown_labels(first) == [str(k) for k in range(50)]
    following = unescape(re.findall(r'<a id="turn-next" href="([^"]*)"', first)[0])
    assert shown_labels(client().get(following).text) == [str(k) for k in range(50, 100)]
    assert shown_labels(client().get(f"/runs/{run}?page=77").text) == [str(k) for k in range(50)]


def test_a_filter_without_result_says_so(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    page = client().get(f"/runs/{run}", params={"search": "nobody"}).text
    assert "Nothing matches. Other verdicts are shown" in text_of(page)


def test_a_search_stays_in_its_field(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    assert 'value="&#34;&gt;x"' in client().get(f"/runs/{run}", params={"search": '">x'}).text


def test_verdicts_of_a_large_run_come_after_the_page(
    client: Client, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argmaxable.serve.views._AT_ONCE", 5)
    run, served = keep(database, lossy()), client()
    page = served.get(f"/runs/{run}").text
    assert f'hx-get="/runs/{run}/findings" hx-trigger="load"' in page
    assert "can never be predicted" not in page
    part = served.get(f"/runs/{run}/findings").text
    assert "<h1>3 of 6 classes can never be predicted for features within ±100.</h1>" in part
    assert 'id="pictures" hx-swap-oob="true"' in part
    assert (
        "<h1>3 of 6 classes can never be predicted for features within ±100.</h1>"
        in served.get(f"/runs/{run}").text
    )


def test_a_running_run_is_asked_for_news_until_its_end(client: Client, database: Path) -> None:
    head = lossy()
    with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        found = am.verify(head, BOX, only=(0, 1), engine=am.Engine(workers=1))
        run.record(found.verdicts, found.cost)
        answer = client().get(f"/runs/{run.run_id}/progress")
        assert "2 of 6 classes have a verdict so far" in answer.text
        assert 'hx-trigger="every 1s"' in answer.text
        assert "hx-refresh" not in answer.headers
    answer = client().get(f"/runs/{run.run_id}/progress")
    assert "interrupted" in answer.text
    assert "hx-trigger" not in answer.text
    assert answer.headers["hx-refresh"] == "true"


def test_of_a_running_run_nothing_is_said_that_would_soon_be_old(client: Client, database: Path) -> None:
    head = lossy()
    with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        found = am.verify(head, BOX, only=(0, 1), engine=am.Engine(workers=1))
        run.record(found.verdicts, found.cost)
        page = client().get(f"/runs/{run.run_id}").text
    assert "<h1>Under way</h1>" in page
    assert "can never be predicted" not in page
    assert shown_labels(page) == ["a"]


def test_new_verdicts_replace_what_was_remembered(client: Client, database: Path) -> None:
    run = keep_some(database, lossy(), (0, 1))
    served = client()
    assert "<h1>Not finished: 4 of 6 " in served.get(f"/runs/{run}").text
    assert keep_some(database, lossy(), (4,)) == run
    assert "<h1>Not finished: 3 of 6 " in served.get(f"/runs/{run}").text


def test_the_report_is_the_one_that_report_writes(client: Client, database: Path, command: Any) -> None:
    run = keep(database, lossy())
    answer = client().get(f"/runs/{run}/report")
    assert answer.text == command("report", run).out
    assert "script-src 'sha256-" in unescape(answer.text)


def test_published_verdicts_are_said_to_be_unchecked(client: Client, database: Path) -> None:
    with open_store(str(database)) as store:
        run = store.add_published(
            "theirs", origin="a paper", family="", task="", domain=BOX,
            rows=[PublishedVerdict(0, "x", am.Status.UNARGMAXABLE)],
        )  # fmt: skip
    assert "not checked here" in client().get(f"/runs/{run}").text
    assert "published elsewhere and was not checked here" in client().get(f"/runs/{run}/classes/0").text


# ---------------------------------------------------------------------- a class


def test_an_unargmaxable_class_names_what_blocks_it(client: Client, database: Path) -> None:
    run = keep(database, lost_by_a_mixture())
    page = text_of(client().get(f"/runs/{run}/classes/4").text)
    assert "Never predicted" in page
    assert "No input of the domain gives this class a higher score than all other classes" in page
    with open_store(str(database)) as store:
        (verdict,) = store.verdicts(run, status=am.Status.UNARGMAXABLE)
    assert verdict.certificate is not None
    heaviest = verdict.certificate.classes[np.argmax(verdict.certificate.weights)]
    assert f"{('n', 'e', 'w', 's')[heaviest]} {100 * verdict.certificate.weights.max():.0f} %" in page


def test_the_distance_in_bias_is_true(database: Path) -> None:
    head = lost_by_a_mixture()
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    lost = result.verdicts[4]
    assert -math.inf < lost.lower <= lost.upper < 0
    for rise, status in ((-lost.upper, am.Status.UNARGMAXABLE), (-lost.lower + 1e-6, am.Status.ARGMAXABLE)):
        assert head.bias is not None
        raised = am.Head(head.weight, head.bias + rise * (np.arange(5) == 4))
        assert am.verify(raised, BOX, engine=am.Engine(workers=1)).verdicts[4].status is status
    won = result.verdicts[0]
    lowered = am.Head(head.weight, head.bias - 0.999 * won.lower * (np.arange(5) == 0))
    assert am.verify(lowered, BOX, engine=am.Engine(workers=1)).verdicts[0].status is am.Status.ARGMAXABLE


def test_a_tied_class_names_its_twins(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    page = text_of(client().get(f"/runs/{run}/classes/0").text)
    assert "another class has the very same weights and bias" in page
    assert "Ties with 😀" in page


def test_a_class_that_can_win_tells_where(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    page = text_of(client().get(f"/runs/{run}/classes/1").text)
    assert "Can be predicted" in page
    assert "Where it wins: the witness It wins in its own direction, z = 2" in page


def test_a_witness_that_is_kept_is_shown(client: Client, database: Path) -> None:
    head = lossy()
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    moved = [replace(verdict, witness=am.Point(np.array([2.5, -1.25]))) for verdict in result.verdicts[:2]]
    with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        run.record(moved, result.cost)
    page = text_of(client().get(f"/runs/{run.run_id}/classes/1").text)
    assert "It wins at the following vector of features. 2 numbers, rounded 2.5 -1.25" in page
    lost = text_of(client().get(f"/runs/{run.run_id}/classes/0").text)
    assert "Where it comes closest, as far as known It does not win" in lost


def test_an_undecided_class_says_why(client: Client, database: Path) -> None:
    head = lossy()
    found = am.verify(head, BOX, engine=am.Engine(workers=1)).verdicts[4]
    unknown = replace(
        found, status=am.Status.UNDECIDED, upper=math.inf, certificate=None, reason="no <time> left"
    )
    with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        run.record([unknown], am.Cost())
    page = client().get(f"/runs/{run.run_id}/classes/4").text
    assert "Nothing is proven about this class: no &lt;time&gt; left." in page


def test_nearest_classes_need_the_weights(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    assert "Weights are not stored with a run" in client().get(f"/runs/{run}/classes/1").text
    other = am.Head(CORNERS + 1, np.zeros(6))
    assert "Weights are not stored with a run" in client(other).get(f"/runs/{run}/classes/1").text
    page = text_of(client(lossy()).get(f"/runs/{run}/classes/4").text)
    assert "Nearest classes class distance cosine a 1.414 nan" in page
    page = text_of(client(lossy()).get(f"/runs/{run}/classes/0").text)
    assert "Nearest classes class distance cosine 😀 0 1.000 middle 1.414 nan é 2 0.000" in page


def test_the_same_mixtures_other_victims_are_named(client: Client, database: Path) -> None:
    head = am.Head(
        np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.01, 0], [0, 0.01]]),
        np.array([0, 0, 0, 0, -3, -3]), tuple("abcdef"), name="two.npz",
    )  # fmt: skip
    found = am.verify(head, BOX, engine=am.Engine(workers=1)).verdicts
    shared = am.Certificate(np.array([0, 1, 2, 3]), np.full(4, 0.25))
    verdicts = [*found[:4], *(replace(verdict, certificate=shared) for verdict in found[4:])]
    with open_store(str(database)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        run.record(verdicts, am.Cost())
    page = text_of(client().get(f"/runs/{run.run_id}/classes/4").text)
    assert "The same mixture also beats f" in page


# ---------------------------------------------------------------------- two runs


def around(count: int) -> am.Head:
    """Classes on a circle and two in its middle: the first blocked by all others, the last by them too."""
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weight = np.vstack([[[0.0, 0.0]], ring, [[0.01, 0.0]]])
    bias = np.array([-1.0, *np.zeros(count), -1.0])
    return am.Head(weight, bias, tuple(f"c{k}" for k in range(count + 2)), name="ring.npz")


def test_a_class_is_drawn_between_its_blockers_where_the_weights_are_known(
    client: Client, database: Path
) -> None:
    head = around(30)
    run = keep(database, head)
    page = client(head).get(f"/runs/{run}/classes/0").text
    assert 'id="standing"' in page
    picture = page.partition('<svg class="standing"')[2].partition("</svg>")[0]
    with open_store(str(database)) as store:
        verdict = next(iter(store.verdicts(run)))
    assert verdict.certificate is not None
    blockers = int((verdict.certificate.weights > 0).sum())
    assert picture.count('class="blocker"') == min(10, blockers)
    assert picture.count("<circle") == blockers + 1
    assert 'id="standing"' not in client().get(f"/runs/{run}/classes/0").text
    assert 'id="standing"' not in client(head).get(f"/runs/{run}/classes/3").text


def test_the_exact_margin_is_told_where_the_weights_are_known(client: Client, database: Path) -> None:
    head = around(30)
    run = keep(database, head)
    # The class in the middle has a row of zeros and a bias of −1, and all others tie at x = 0.
    told = text_of(client(head).get(f"/runs/{run}/classes/0/margin").text)
    assert "its bias must rise: up to 0.9999999 more is too little, anything above 1.000001 logits" in told
    assert "logits ahead of all other classes" in client(head).get(f"/runs/{run}/classes/3/margin").text
    assert text_of(client().get(f"/runs/{run}/classes/0/margin").text) == ""
    assert client(head).get(f"/runs/{run}/classes/99/margin").status_code == 404


def test_unargmaxable_classes_lead_to_each_other(client: Client, database: Path) -> None:
    run = keep(database, around(30))
    first, between, last = (client().get(f"/runs/{run}/classes/{k}").text for k in (0, 3, 31))
    assert f'href="/runs/{run}/classes/31">next never predicted' in first
    assert "previous never predicted" not in first
    assert f'href="/runs/{run}/classes/0">← previous never predicted' in last
    assert "never predicted →" not in between


def tuned() -> am.Head:
    """The lossy head after training: the middle went out, é in, and the twin moved away."""
    weight = CORNERS.copy()
    weight[1], weight[4], weight[5] = [0.125, 0.25], [3.0, 0.0], [0.5, 0.5]
    return am.Head(weight, np.zeros(6), LABELS, name="tuned.npz")


def test_a_comparison_says_what_the_command_says(client: Client, database: Path) -> None:
    before, after = keep(database, lossy()), keep(database, lossy(), am.Box(0.0, math.inf))
    page = client().get("/compare", params={"before": before, "after": after}).text
    with open_store(str(database)) as store:
        runs = store.run(before), store.run(after)
        comparison = compare(*(lambda run=run: store.verdicts(run.run_id) for run in runs))  # type: ignore[misc]
    assert comparison.changed
    said = text_of(page)
    lost = comparison.counts[am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE]
    assert f"{lost} classes can no longer be predicted" in said
    assert f"{comparison.matched} classes matched by label." in said
    for run in runs:
        assert f"run {run.run_id} , finished {run.facts.name} 6 × 2 · {run.domain}" in said
    rows = re.findall(
        r"<tr>(.*?)</tr>", page.partition('<div id="found">')[2].partition("</table>")[0], re.DOTALL
    )
    for pair, row in zip(comparison.changed, rows[1:], strict=True):
        assert text_of(row).startswith(pair.before.label)
        assert f'href="/runs/{before}/classes/{pair.before.class_id}"' in row
        assert f'href="/runs/{after}/classes/{pair.after.class_id}"' in row
    for pair in comparison.moved:
        shift = f"{'−' if pair.certain_shift < 0 else '+'}{abs(pair.certain_shift):.3g}"
        assert f"{pair.after.label} {shift} " in said


def test_a_comparison_shows_the_changes_that_its_address_asks_for(client: Client, database: Path) -> None:
    before, after = keep(database, lossy()), keep(database, tuned())
    served, runs = client(), {"before": before, "after": after}

    def labels(**asked: str) -> list[str]:
        page = served.get("/compare", params=runs | asked).text
        return re.findall(r'class="label"><bdi>(.*?)</bdi>', page.partition('<div id="found">')[2])

    assert labels() == ["a", "é", "middle"]
    assert labels(kind="unargmaxable-argmaxable") == ["a", "middle"]
    assert labels(kind="argmaxable-unargmaxable") == ["é"]
    assert labels(search="MID") == ["middle"]
    assert labels(search="1") == ["é"]
    assert labels(kind="nonsense") == ["a", "é", "middle"]
    assert labels(search="nothing") == []
    part = served.get("/compare", params=runs | {"search": "mid"}, headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert "middle" in part


def test_a_comparison_begins_with_the_choice_of_two(client: Client, database: Path) -> None:
    run = keep(database, lossy())
    page = client().get("/compare", params={"before": run}).text
    assert f'<option value="{run}" selected>' in page
    assert "<pre" not in page


def test_runs_that_contradict_each_other_are_reported(client: Client, database: Path) -> None:
    head = lossy()
    first = keep(database, head)
    wrong = [
        replace(verdict, status=am.Status.UNARGMAXABLE, lower=-1.0, upper=-1.0)
        for verdict in am.verify(head, BOX, engine=am.Engine(workers=1)).verdicts
    ]
    plan = plan_of(head, seed=1)
    with open_store(str(database)) as store, store.begin(plan, centre=centre_of(head)) as run:
        run.record(wrong, am.Cost())
    page = client().get("/compare", params={"before": first, "after": run.run_id}).text
    assert "These runs contradict each other" in page


# ---------------------------------------------------------------------- safety


@pytest.fixture
def hostile(client: Client, database: Path) -> tuple[TestClient, int]:
    head = lossy(labels=(HOSTILE, *LABELS[1:4], f'"{HOSTILE}', f"'{HOSTILE}\u202e"), name=HOSTILE)
    run = keep(database, head)
    return client(head), run


def addresses(run: int) -> Iterator[str]:
    yield from ("/", "/playground", f"/?name={HOSTILE}", f"/compare?before={run}&after={run}")
    yield from (f"/runs/{run}", f"/runs/{run}/progress", f"/runs/{run}/findings", f"/runs/{run}/report")
    yield from (f"/runs/{run}?status=all", f"/runs/{run}?search={HOSTILE}", f"/runs/{run}?page={HOSTILE}")
    yield from (f"/runs/{run}/classes/{k}" for k in range(6))
    yield from ("/nowhere", "/runs/999", f"/runs/{run}/classes/999")


def test_labels_and_names_are_escaped_on_every_page(hostile: tuple[TestClient, int]) -> None:
    served, run = hostile
    for address in addresses(run):
        page = served.get(address).text
        assert HOSTILE not in page
        assert "<img" not in page
        assert "\u202e" not in page


def test_every_answer_has_a_policy_without_exceptions(hostile: tuple[TestClient, int]) -> None:
    served, run = hostile
    for address in addresses(run):
        answer = served.get(address)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in policy or "script-src 'sha256-" in unescape(answer.text)


def _inline(page: str) -> list[str]:
    """Scripts, styles and handlers that stand in the page itself."""
    found = []

    class Finder(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            found.extend(name for name in given if name == "style" or name.startswith("on"))
            if tag == "style" or (tag == "script" and not (given.get("src") or "").startswith("/static/")):
                found.append(tag)

    Finder().feed(page)
    return found


def test_no_page_has_a_script_or_style_of_its_own(hostile: tuple[TestClient, int]) -> None:
    served, run = hostile
    for address in addresses(run):
        if not address.endswith("/report"):  # which has both, named by their digests
            page = served.get(address).text
            assert _inline(page) == []


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8642", "", "127.0.0.1@evil"]
)
def test_a_foreign_host_is_refused(client: Client, database: Path, host: str) -> None:
    keep(database, lossy())
    answer = client().get("/", headers={"Host": host})
    assert answer.status_code == 400
    assert "lossy" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost:8642", "LOCALHOST"])
def test_our_own_names_are_served(client: Client, database: Path, host: str) -> None:
    keep(database, lossy())
    assert client().get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_served(client: Client, database: Path, method: str) -> None:
    run = keep(database, lossy())
    for address in ("/", f"/runs/{run}", "/static/serve.css"):
        assert client().request(method, address).status_code == 405


@pytest.mark.parametrize(
    "address",
    [
        "/nowhere",
        "/runs/7",
        f"/runs/{10**30}",
        "/runs/x",
        "/static/htmx.LICENSE.txt",
        "/static/..%2fapp.py",
        "/static/",
    ],
)
def test_what_is_not_there_is_not_found(client: Client, database: Path, address: str) -> None:
    keep(database, lossy())
    answer = client().get(address)
    assert answer.status_code == 404
    assert "All runs" in answer.text


def test_a_database_that_is_gone_is_told(client: Client, database: Path) -> None:
    keep(database, lossy())
    served = client()
    database.rename(database.with_suffix(".away"))
    answer = served.get("/")
    assert answer.status_code == 503
    assert "the file can&#39;t be opened" in answer.text


def test_every_static_file_is_there_and_its_licence_beside_it(client: Client, database: Path) -> None:
    keep(database, lossy())
    for name in _STATIC:
        assert client().get(f"/static/{name}").status_code == 200
    assert "Zero-Clause BSD" in (files("argmaxable.serve") / "static" / "htmx.LICENSE.txt").read_text()


def test_a_run_that_was_stopped_is_shown_as_far_as_it_got(client: Client, database: Path) -> None:
    run = keep_some(database, lossy(), (1, 2))
    page = text_of(client().get(f"/runs/{run}").text)
    assert "interrupted" in page
    assert "4 without a verdict yet" in page
