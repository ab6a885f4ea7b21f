"""Published tables: both forms are read in full, and whatever is wrong is said before anything is kept."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.report.published import UNNUMBERED, PublishedModel, published_models
from argmaxable.store import PublishedVerdict

Read = list[tuple[PublishedModel, list[PublishedVerdict]]]


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, *, name: str | None = None) -> Read:
    return [(model, list(verdicts)) for model, verdicts in published_models(path, name=name)]


# ---------------------------------------------------------------------- our form


def test_the_least_a_table_tells_is_model_class_and_status(tmp_path: Path) -> None:
    path = written(tmp_path, "model,class,status\nm,3,argmaxable\nm,1,unargmaxable\nn,0,undecided\n")
    assert read(path) == [
        (
            PublishedModel("m"),
            [PublishedVerdict(3, "3", Status.ARGMAXABLE), PublishedVerdict(1, "1", Status.UNARGMAXABLE)],
        ),
        (PublishedModel("n"), [PublishedVerdict(0, "0", Status.UNDECIDED)]),
    ]


def test_a_class_may_be_named_by_its_label_alone(tmp_path: Path) -> None:
    path = written(tmp_path, 'model,label,status\nm,"a, b",argmaxable\nm,c,unargmaxable\n')
    assert read(path)[0][1] == [
        PublishedVerdict(UNNUMBERED, "a, b", Status.ARGMAXABLE),
        PublishedVerdict(UNNUMBERED + 1, "c", Status.UNARGMAXABLE),
    ]


def test_a_table_may_tell_more(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "family,task,model,classes,features,bias,class,label,status,steps,seconds,needed_lp,remark\n"
        "opus,translation,m,9,4,yes,0,a,Unargmaxable,12,0.5,true,whatever\n",
    )
    model = PublishedModel("m", family="opus", task="translation", classes=9, features=4, bias=True)
    verdict = PublishedVerdict(0, "a", Status.UNARGMAXABLE, steps=12, seconds=0.5, needed_solve=True)
    assert read(path) == [(model, [verdict])]


def test_a_name_stands_for_the_model_that_the_table_does_not_name(tmp_path: Path) -> None:
    path = written(tmp_path, "class,status\n0,argmaxable\n")
    assert read(path, name="mine")[0][0].name == "mine"
    with pytest.raises(InputError, match="--name"):
        read(path)


@pytest.mark.parametrize(
    "text", ["\ufeffmodel,class,status\r\nm,0,argmaxable\r\n", " Model , CLASS,status\nm,0,argmaxable"]
)
def test_spreadsheets_may_write_it_their_way(tmp_path: Path, text: str) -> None:
    assert read(written(tmp_path, text)) == [
        (PublishedModel("m"), [PublishedVerdict(0, "0", Status.ARGMAXABLE)])
    ]


def test_a_table_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"model,class,status\nm,0,argmaxable\n"))
    assert len(read(path)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected the headings model, class or label, and status"),
        ("a,b\n1,2\n", "found a, b"),
        ("model,class,status\n", "no rows"),
        ("model,class,status\nm,0\n", "row 2: 2 fields under 3 headings"),
        ("model,class,status\nm,-1,argmaxable\n", "row 2: class is -1, expected a whole number"),
        ("model,class,status\nm,1.5,argmaxable\n", "row 2: class is 1.5"),
        ("model,class,status\nm,9999999999999999999,argmaxable\n", "expected a whole number"),
        ("model,class,status\nm,²,argmaxable\n", "expected a whole number"),
        ("model,class,status\nm,0,\x1b[31mbad\n", r"status is \\u\{1b\}\[31mbad, expected argmaxable, unarg"),
        ("model,class,status\nm,,argmaxable\n", "neither a class nor a label"),
        ("model,class,status\nm,0,argmaxable\nm,0,argmaxable\n", "m has class 0 twice"),
        ("model,class,status\nm,0,argmaxable\nn,0,argmaxable\nm,1,argmaxable\n", "in several places"),
        ("model,family,class,status\nm,f,0,argmaxable\nm,g,1,argmaxable\n", "or disagree about it"),
        ("model,class,status,seconds\nm,0,argmaxable,nan\n", "seconds is nan, expected a number of seconds"),
        ("model,class,status,bias\nm,0,argmaxable,maybe\n", "bias is maybe, expected true or false"),
        (f"model,class,status\nm,0,{'x' * 200_000}\n", "is not CSV"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(written(tmp_path, text))


def test_a_fault_at_the_end_is_found_before_the_first_model_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, "model,class,status\nm,0,argmaxable\nn,0,argmaxable\nn,0,argmaxable\n")
    with pytest.raises(InputError, match="n has class 0 twice"):
        next(published_models(path))


# No time of day in it: the workers that share the tests must name them alike.
_CUT_SHORT = gzip.compress(b"model,class,status\nm,0,argmaxable\n", mtime=0)[:-12]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"model,class,status\nm,0,\xff\n", "is not CSV in UTF-8"),
        ("t.csv.gz", b"not compressed", "can't read"),
        ("t.csv.gz", _CUT_SHORT, "can't read"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none.csv")


# ---------------------------------------------------------------------- the original tool's form


EXPERIMENTS = [
    *("id", "hexid", "algorithm", "started", "finished", "patience", "num_bounded", "misc"),
]
MODELS = [
    *("id", "hexid", "name", "task", "vocab_size", "embed_dim", "has_bias", "url", "misc", "experiment_id"),
]
RESULTS = [*("id", "index", "token", "is_bounded", "iterations", "misc", "experiment_id", "time_taken")]
WHEN = "2021-10-01 10:00:00"


def dump(path: Path, headings: list[str], rows: list[list[object]]) -> None:
    """A table as PostgreSQL's \\copy writes it: t and f for truth, nothing for NULL."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([headings, *rows])


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """Experiment 7 by both algorithms, experiment 9 by the approximate one alone."""
    dump(
        tmp_path / "experiments.csv",
        EXPERIMENTS,
        [
            [7, "ab", "braid_swap+lp_chebyshev", WHEN, WHEN, 2500, 1, "{}"],
            [9, "cd", "braid_swap", WHEN, "", 100, 1, "{}"],
        ],
    )
    dump(
        tmp_path / "models.csv",
        MODELS,
        [
            [
                1,
                "ef",
                "Helsinki-NLP/opus-mt-en-ru",
                "translation",
                62518,
                512,
                "t",
                "https://x.test",
                "{}",
                7,
            ],
            [2, "gh", "random", "", 100, 8, "f", "", "{}", 9],
        ],
    )
    solved = '{"status": 2, "radius": 0.1}'
    dump(
        tmp_path / "results.csv",
        RESULTS,
        [
            [1, 0, "</s>", "f", 0, "{}", 7, 0.25],
            [2, 5, 'a "quoted", token', "f", 2499, solved, 7, 3.5],
            [3, 6, "outside", "f", 12, solved, 7, 2.5],
            [4, 8, "erecti", "t", 2499, '{"status": 3}', 7, ""],
            [5, 0, "0", "t", 99, "{}", 9, 0.1],
        ],
    )
    return tmp_path / "results.csv"


def test_the_original_tools_models_are_read(original: Path) -> None:
    assert [model for model, _ in read(original)] == [
        PublishedModel(
            "Helsinki-NLP/opus-mt-en-ru", "7", task="translation", classes=62518, features=512, bias=True
        ),
        PublishedModel("random", "9", classes=100, features=8, bias=False),
    ]


def test_the_original_tools_verdicts_are_read(original: Path) -> None:
    assert read(original)[0][1] == [
        PublishedVerdict(0, "</s>", Status.ARGMAXABLE, steps=0, seconds=0.25, needed_solve=False),
        PublishedVerdict(
            5, 'a "quoted", token', Status.ARGMAXABLE, steps=2499, seconds=3.5, needed_solve=True
        ),
        PublishedVerdict(6, "outside", Status.ARGMAXABLE, steps=12, seconds=2.5, needed_solve=True),
        PublishedVerdict(8, "erecti", Status.UNARGMAXABLE, steps=2499, seconds=0.0, needed_solve=True),
    ]


def test_bounded_by_the_approximate_algorithm_alone_is_undecided(original: Path) -> None:
    assert read(original)[1][1] == [
        PublishedVerdict(0, "0", Status.UNDECIDED, steps=99, seconds=0.1, needed_solve=False)
    ]


def test_the_tables_beside_it_may_be_compressed_too(original: Path) -> None:
    models = original.with_name("models.csv")
    original.with_name("models.csv.gz").write_bytes(gzip.compress(models.read_bytes()))
    models.unlink()
    assert len(read(original)) == 2


@pytest.mark.parametrize("missing", ["models.csv", "experiments.csv"])
def test_the_tables_beside_it_are_asked_for(original: Path, missing: str) -> None:
    original.with_name(missing).unlink()
    with pytest.raises(InputError, match=f"needs {missing} in the same folder"):
        read(original)


def test_a_result_of_no_experiment_is_refused(original: Path) -> None:
    with original.open("a") as file:
        file.write("6,0,x,f,0,{},77,0\n")
    with pytest.raises(InputError, match="row 7: experiment_id is 77"):
        read(original)
