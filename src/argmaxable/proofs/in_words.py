"""What a bundle says in words: whether header, labels and files agree with its claims and its head.

No verdict rests on any of it, but people read it. What can't be compared is said to be so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from argmaxable.core.head import labels_sha256
from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.compute.prepared import PreparedHead
    from argmaxable.core.head import Head
    from argmaxable.proofs.kind import Bundle


# Why a claim is undecided where a run was stopped.
_UNFINISHED = ("interrupted", "not reached")


def contradictions(bundle: Bundle[Any, Any], head: PreparedHead) -> Iterator[str]:
    """What the bundle says that is not so, a sentence each."""
    yield from _about_files(bundle)
    yield from _about_the_head(bundle, head.head)
    yield from _about_labels(bundle, head.head)
    yield from bundle.kind.contradictions(bundle, head)


def not_compared(bundle: Bundle[Any, Any], head: Head) -> Iterator[str]:
    """What the bundle says that nothing here can confirm, a sentence each."""
    if not bundle.names_its_files:
        yield (
            f"the files and the labels with {bundle.kind.files.header}, which is of the format "
            f"{bundle.kind.earlier_format} and has no SHA-256 of them"
        )
    if head.labels is None and not _are_numbers(bundle):
        yield f"the labels: {head.name} has none. Pass --labels FILE to compare them"
    if (
        head.labels is not None
        and bundle.claims
        and _are_numbers(bundle)
        and not _has_its_labels(bundle, head)
    ):
        yield "the labels: the bundle calls classes by their numbers"


def differs(name: str, said: object, found: object) -> Iterator[str]:
    """The contradiction, if it is one; 12.0 and true are not whole numbers."""
    if type(said) is not type(found) or said != found:
        yield f"it says {name} {visible(str(said))}, found {found}"


def contradicts_completeness(manifest: Mapping[str, Any], reasons: Iterable[str]) -> Iterator[str]:
    """The contradiction between `complete` and the reasons of claims that are undecided, if there is one."""
    if not isinstance(manifest.get("complete"), bool):
        yield "it does not say whether it is complete"
    elif manifest["complete"] and any(reason.strip().lower() in _UNFINISHED for reason in reasons):
        yield "it says that it is complete, but some of its claims are undecided because of an interruption"


# ---------------------------------------------------------------------- files and head


def _about_files(bundle: Bundle[Any, Any]) -> Iterator[str]:
    if not bundle.names_its_files:
        return
    files = bundle.manifest.get("files")
    for name, found in bundle.digests.items():
        said = files.get(name) if isinstance(files, dict) else None
        if said != found:
            yield f"{name} is not the file that it names: its SHA-256 is {found}, not {visible(str(said))}"
    for name in files if isinstance(files, dict) else ():
        if name not in bundle.digests:
            yield f"it names the file {visible(str(name))}, which is not part of this bundle"


def _about_the_head(bundle: Bundle[Any, Any], head: Head) -> Iterator[str]:
    said = bundle.manifest["head"]
    for name, found in (("classes", head.classes), ("features", head.features)):
        if name in said or bundle.names_its_files:
            yield from differs(name, said.get(name), found)


# ---------------------------------------------------------------------- labels


def _about_labels(bundle: Bundle[Any, Any], head: Head) -> Iterator[str]:
    said = bundle.manifest["head"].get("labels_sha256")
    is_unlabelled = said is None if bundle.names_its_files else _are_numbers(bundle)
    if is_unlabelled:
        if not _are_numbers(bundle):
            yield "it says that the model has no labels, but its lines have"
        yield from _numbers_as_labels(bundle, head)
        return
    if head.labels is not None:
        yield from _wrong_labels(bundle, head)
    found = labels_sha256(head.labels) or _sha256_of_lines(bundle, head)
    if bundle.names_its_files and found:
        yield from differs("labels_sha256", said, found)


def _numbers_as_labels(bundle: Bundle[Any, Any], head: Head) -> Iterator[str]:
    """Numbers instead of labels are no lie, unless they are the labels of other classes."""
    known = set(head.labels or ())
    for number, label in _names(bundle):
        if label in known and number < head.classes and label != head.label(number):
            yield (
                f"it calls class {number} by its number, which is the label of another class; this one is "
                f"{visible(head.label(number))}"
            )
            return


def _wrong_labels(bundle: Bundle[Any, Any], head: Head) -> Iterator[str]:
    names = [*_names(bundle)]
    wrong = [
        (number, label)
        for number, label in names
        if number < head.classes and not _are_equal(label, head.label(number))
    ]
    if wrong:
        number, label = wrong[0]
        yield (
            f"{len(wrong):,} of {len(names):,} labels are not the model's: class {number} is "
            f"{visible(head.label(number))}, not {visible(label)}. If other labels were meant, "
            "pass them with --labels"
        )


def _are_numbers(bundle: Bundle[Any, Any]) -> bool:
    """Whether each class is called by its number, as classes of a model without labels are."""
    return all(label == str(number) for number, label in _names(bundle))


def _has_its_labels(bundle: Bundle[Any, Any], head: Head) -> bool:
    return all(number < head.classes and label == head.label(number) for number, label in _names(bundle))


def _names(bundle: Bundle[Any, Any]) -> Iterator[tuple[int, str]]:
    """The classes that the claims name, with their labels."""
    return (name for claim in bundle.claims for name in bundle.kind.names(claim))


def _are_equal(label: str, other: str) -> bool:
    """As UTF-16, where JSON can't tell two halves of a surrogate pair from the character they make."""
    return label.encode("utf-16", "surrogatepass") == other.encode("utf-16", "surrogatepass")


def _sha256_of_lines(bundle: Bundle[Any, Any], head: Head) -> str:
    """Fingerprint of the labels in the lines where each class has one; else empty."""
    labels = dict(_names(bundle))
    if sorted(labels) != list(range(head.classes)):
        return ""
    return labels_sha256([labels[class_id] for class_id in range(head.classes)])
