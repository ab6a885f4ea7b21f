"""Notices as JUnit XML: a test suite for each model, a test case for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from argmaxable.report.notices.notice import Level, ModelNotices, Notice


def junit(models: Sequence[ModelNotices]) -> str:
    """The whole file. Accepted findings are skipped test cases, warnings and notes passed ones with their
    text as output; what was in order is one test case, since a head may have 262,144 classes."""
    root = ElementTree.Element("testsuites", name="argmaxable")
    for model in models:
        _suite(root, model)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ElementTree.Element, model: ModelNotices) -> None:
    levels = [notice.level for notice in model.notices]
    suite = ElementTree.SubElement(
        root, "testsuite", name=model.model, tests=str(len(levels) + 1), errors="0",
        failures=str(levels.count(Level.ERROR)), skipped=str(levels.count(Level.ACCEPTED)),
        time=f"{model.seconds:.3f}",
    )  # fmt: skip
    ElementTree.SubElement(suite, "testcase", classname=model.model, name=model.passed)
    for notice in model.notices:
        _case(suite, model, notice)


def _case(suite: ElementTree.Element, model: ModelNotices, notice: Notice) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"{model.model}.{notice.rule}", name=notice.title
    )
    if notice.level is Level.ERROR:
        failure = ElementTree.SubElement(case, "failure", message=notice.title, type=notice.rule)
        failure.text = notice.text
    elif notice.level is Level.ACCEPTED:
        ElementTree.SubElement(case, "skipped", message=notice.why_accepted)
    else:
        ElementTree.SubElement(case, "system-out").text = notice.text
