"""A report as one HTML file that needs nothing else: no network, no other file, no library.

The one module that knows jinja2. Everything in the page comes from untrusted files: templates escape all
they are given, the table's data is JSON in which nothing can end its element, and the page's own policy
runs no script and no style but the two whose digests it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from argmaxable.core.feasibility import Feasibility
from argmaxable.core.verdict import Status
from argmaxable.core.version import VERSION
from argmaxable.report.answer import domain_line
from argmaxable.report.page.columns import columns, shown_label
from argmaxable.report.page.pictures import margin_charts, steps_chart, weight_charts
from argmaxable.report.page.wording import CHARACTERS, STATUSES
from argmaxable.report.sets import by_examples, headline, meaning

if TYPE_CHECKING:
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.core.label_sets import LabelSets
    from argmaxable.report.page.content import Content
    from argmaxable.report.page.weights import Weights

# Labels shown on top, before any table; scripts with a row of their own.
_MOST_LABELS, _MOST_GROUPS = 400, 16
# Sets of labels listed on their page; bundles have all of them.
_MOST_SETS = 2000
# In a script element's text only "<" can mean an end or a comment; the others are there for careless readers.
_HARMLESS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
_NO_ESCAPE = "base-uri 'none'; form-action 'none'"


def page(content: Content, weights: Weights | None = None) -> str:
    """The report; with weights it has the two charts that need them, otherwise a hint how to get them."""
    script, style = _text("report.js"), _text("report.css")
    subject = content.subject
    text: str = _template("report.html").render(
        content=content,
        subject=subject,
        noun=content.noun,
        is_characters=content.noun is CHARACTERS,
        policy=_policy(script, style),
        script=script,
        style=style,
        data=_json(columns(subject.verdicts)),
        first_labels=[shown_label(verdict.label) for verdict in content.unargmaxable[:_MOST_LABELS]],
        statuses=STATUSES,
        Status=Status,
        margins=margin_charts(subject.verdicts, content.noun),
        zero_margins=sum(verdict.upper == 0 for verdict in content.unargmaxable),
        steps=steps_chart(subject.verdicts, content.noun),
        weight_charts=None if weights is None else weight_charts(subject.verdicts, weights, content.noun),
        most_groups=_MOST_GROUPS,
        version=VERSION,
    )
    return text.lstrip()


def sets_page(found: LabelSets, source: DomainSource | None, *, home: str = "") -> str:
    """A page about sets of labels: the answer, then those that can never be predicted; with a link to
    `home`, the address of all runs, if there is one."""
    return render(
        "sets.html",
        "report.css",
        answer=headline(found, source),
        meaning=meaning(found),
        home=home,
        domain_line=domain_line(found.domain, source),
        found=found,
        never=by_examples(found.having(Feasibility.INFEASIBLE)),
        undecided=found.having(Feasibility.UNDECIDED),
        most_listed=_MOST_SETS,
    )


def render(template: str, style: str, **values: Any) -> str:
    """A page without a script, of a template and a style sheet of ours; pictures are inside of it."""
    sheet = _text(style)
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(sheet)}'; {_NO_ESCAPE}"
    text: str = _template(template).render(policy=policy, style=sheet, version=VERSION, **values)
    return text.lstrip()


def _policy(script: str, style: str) -> str:
    """Nothing may be loaded or sent, and only these two texts take effect."""
    return f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; {_NO_ESCAPE}"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HARMLESS)


@cache
def _text(name: str) -> str:
    """A file of ours; style sheet and script stand in the page as they are."""
    return (files("argmaxable.report.page") / "templates" / name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: only reports need it

    environment = Environment(
        loader=PackageLoader("argmaxable.report.page"),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(name)
