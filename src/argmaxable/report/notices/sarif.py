"""Notices as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from argmaxable.core.version import VERSION
from argmaxable.report.notices.notice import Level, ModelNotices, Notice

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# Accepted findings keep the level of a note; that they are accepted is said by a suppression.
_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note", Level.ACCEPTED: "note"}


def sarif(models: Sequence[ModelNotices], rules: dict[str, str]) -> str:
    """The whole log; `rules` says in a sentence what each rule is about."""
    names = list(rules)
    results = [_result(model, notice, names) for model in models for notice in model.notices]
    driver = {
        "name": "argmaxable",
        "version": VERSION,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(model: ModelNotices, notice: Notice, rules: list[str]) -> dict[str, Any]:
    place = {"uri": quote(model.file or model.model)}
    result: dict[str, Any] = {
        "ruleId": notice.rule,
        "ruleIndex": rules.index(notice.rule),
        "level": _LEVELS[notice.level],
        "message": {"text": f"{notice.title}. {notice.text}"},
        # A model has no lines, but services that show results want one.
        "locations": [{"physicalLocation": {"artifactLocation": place, "region": {"startLine": 1}}}],
        "partialFingerprints": {"argmaxable/v1": _fingerprint(model, notice)},
    }
    if notice.is_new is not None:
        result["baselineState"] = "new" if notice.is_new else "unchanged"
    if notice.level is Level.ACCEPTED:
        result["suppressions"] = [{"kind": "external", "justification": notice.why_accepted}]
    return result


def _fingerprint(model: ModelNotices, notice: Notice) -> str:
    """The same for the same finding about the same model, whatever its weights."""
    return hashlib.sha256(
        "\0".join([model.model, notice.rule, notice.key]).encode("utf-8", "replace")
    ).hexdigest()
