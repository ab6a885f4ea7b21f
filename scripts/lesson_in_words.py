"""What `argmaxable teach --json` says, summed up and put into the words of docs/stories/ocr.md."""

from __future__ import annotations

from typing import Any

_SHOWN = 12


def summary(said: dict[str, Any], added: str) -> dict[str, Any]:
    """The figures of a lesson, from the command's JSON; `added` are the labels of new classes."""
    measured = said["measured"]
    readings = measured["readings"]
    return {
        "taught": sum(each["before"] is not None for each in said["classes"]),
        "read": _read([each for each in readings if each["label"] not in added]),
        "added": "".join(each["label"] for each in said["classes"] if each["before"] is None),
        "added_read": _read([each for each in readings if each["label"] in added]),
        "by_source": {
            source: _read([each for each in readings if each["source"] == source])
            for source in sorted({each["source"] for each in readings})
        },
        "left_out": said["left_out"],
        "ordinary_changed": measured["ordinary_changed"],
        "others_taken": measured["others_taken"],
        "taken_by": measured["taken_by"],
        "proven": said["proven"],
        "domain": said["domain"],
        "notes": said["notes"],
        "phases": said["seconds"],
    }


def _read(readings: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(each[name] for each in readings) for name in ("occurrences", "before", "after")}


def words(lesson: dict[str, Any]) -> list[str]:
    """Lines of Markdown."""
    return [*_measured(lesson), *_proven(lesson), "", *_by_font(lesson["by_source"])]


def _measured(lesson: dict[str, Any]) -> list[str]:
    read, changed, taken = lesson["read"], lesson["ordinary_changed"], lesson["others_taken"]
    fonts = sorted({source.rpartition(", ")[0] for source in lesson["by_source"]})
    lines = [
        f"{lesson['taught']:,} characters that could never be read, taught together, are read in "
        f"{read['after']:,} of {read['occurrences']:,} images ({_percent(read)}; before: {read['before']:,}) "
        f"of fonts that the fit never saw: {', '.join(fonts)}."
    ]
    if lesson["added"]:
        new = lesson["added_read"]
        lines.append(
            f"Characters that the dictionary lacks and people ask for, {' '.join(lesson['added'])}, "
            "were added as classes of their own. "
            f"They are read in {new['after']:,} of {new['occurrences']:,} images."
        )
    differently = (
        f"{changed['count']:,} read{'s' * (changed['count'] == 1)}" if changed["count"] else "none reads"
    )
    lines.append(
        f"Of {changed['total']:,} ordinary lines {differently} differently (at most "
        f"{100 * changed['bound']:.2g} % of all, 95 % bound)."
    )
    pairs = ", ".join(f"{each['label']} → {each['taught']}" for each in lesson["taken_by"][:_SHOWN])
    are = "is" if taken["count"] == 1 else "are"
    still = f"{taken['count']:,} no longer {are} ({pairs})" if taken["count"] else "all still are"
    return [*lines, f"Of {taken['total']:,} other characters that were read, {still}."]


def _proven(lesson: dict[str, Any]) -> list[str]:
    proven = lesson["proven"]
    left_out = [f"{each['label']} {each['reason']}" for each in lesson["left_out"][:_SHOWN]]
    missing = [note for note in lesson["notes"] if note.startswith("no font has")]
    return [
        f"{proven['unargmaxable_before']:,} classes could never be predicted, now "
        f"{proven['unargmaxable']:,}.",
        *([f"Left out: {'; '.join([*left_out, *missing])}."] if left_out or missing else []),
    ]


def _by_font(sources: dict[str, dict[str, int]]) -> list[str]:
    return [
        "| font, and what happened to the line | images | read before | read after |",
        "|---|---|---|---|",
        *(
            f"| {source} | {each['occurrences']:,} | {each['before']:,} | {each['after']:,} |"
            for source, each in sources.items()
        ),
    ]


def _percent(read: dict[str, int]) -> str:
    return f"{100 * read['after'] / max(read['occurrences'], 1):.1f} %"
