"""Pages from templates, which escape all they are given. The report's drawing of charts is shared."""

from __future__ import annotations

from functools import cache
from typing import Any

from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status
from argmaxable.core.version import VERSION
from argmaxable.report.page.wording import STATUSES
from argmaxable.report.stored_runs import local_time
from argmaxable.serve.addresses import sorted_by, turned
from argmaxable.serve.changes import address_of_kind, name_of
from argmaxable.serve.rows import ROLES


def render(template: str, **values: Any) -> str:
    """The page, or the part of one."""
    text: str = _environment().get_template(template).render(**values)
    return text


@cache
def _environment() -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader("argmaxable.serve"), PackageLoader("argmaxable.report.page")]),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"visible": visible, "local_time": local_time, "count": _count}
    environment.filters |= {"turned": turned, "sorted_by": sorted_by}
    environment.filters |= {"name_of_kind": name_of, "address_of_kind": address_of_kind}
    environment.globals |= {"version": VERSION, "statuses": STATUSES, "roles": ROLES, "Status": Status}
    return environment


def _count(number: int) -> str:
    return f"{number:,}"
