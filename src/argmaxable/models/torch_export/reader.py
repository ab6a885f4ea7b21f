"""Heads in exported programs (.pt2), as `torch.export.save` of PyTorch 2.13 writes them.

The graph, in JSON, is translated into the small `Graph` that `models/graph/` walks. Each tensor is a member
of the archive; of them only the head's, and short ones before it, are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.pytorch.archive import archive_members, read_member, shown
from argmaxable.models.torch_export.program import parse_payloads, parse_program
from argmaxable.models.torch_export.program_graph import translate
from argmaxable.models.zip_archive import member_names

if TYPE_CHECKING:
    from argmaxable.models.aten.stored import StoredValues
    from argmaxable.models.finding import Finding
    from argmaxable.models.graph.nodes import Graph
    from argmaxable.models.pytorch.archive import Member
    from argmaxable.models.registry import ReadOptions

# A program has no weights in it; most of a large one are the call stacks of its operations.
_LARGEST_PROGRAM = 2**26
# The major version of the layout.
_SCHEMA = 8
_AGAIN = (
    "Save it again with PyTorch 2.13 or later: "
    "torch.export.save(torch.export.load('old.pt2'), 'new.pt2'), where you trust the file."
)


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of the program in a .pt2 file.

    Without `options.tensor` it is the linear layer that leads to the output. Raises LoadError.
    """
    _require_current(member_names(path))
    members = archive_members(path)
    try:
        graph, values = _graph(path, members)
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"is not a readable exported program: {error}. Fetch it again, or export the model once more "
            "with torch.export, or to ONNX."
        ) from error
    return find_in_graph(
        "torch.export", graph, options, values, lambda classes: search_beside(path.parent, classes)
    )


def _require_current(names: list[str]) -> None:
    """Refuse the layouts of earlier versions, and what has no graph to read."""
    if "serialized_exported_program.json" in names:
        raise LoadError(f"is an exported program in PyTorch's first layout, which can't be read. {_AGAIN}")
    inner = [name.partition("/")[2] for name in names]
    if any(name.startswith("data/weights/") and name.endswith(".pt") for name in inner):
        raise LoadError(
            f"is an exported program of an earlier layout, whose pickled weights can't be read. {_AGAIN}"
        )
    programs = [name for name in inner if name.startswith("models/")]
    if not programs:
        compiled = any(name.startswith("data/aotinductor/") for name in inner)
        what = "compiled code without a graph" if compiled else "no program"
        raise LoadError(
            f"is an archive of PyTorch's with {what} in it. Save the model with torch.export.save."
        )
    if len(programs) > 1:
        raise ambiguous(
            f"it holds {len(programs)} programs, each of which may be the model: {shown(programs)}",
            "Save the one that you use alone.",
        )


def _graph(path: Path, members: dict[str, Member]) -> tuple[Graph, StoredValues]:
    order = members.get("byteorder")
    if order is not None and read_member(path, order, 64) != b"little":
        raise LoadError("it was saved on a machine with another order of bytes")
    (file,) = (name for name in members if name.startswith("models/"))
    model = file.removeprefix("models/").removesuffix(".json")
    program = _json(path, members, file)
    version = program.get("schema_version") if isinstance(program, dict) else None
    if not isinstance(version, dict) or version.get("major") != _SCHEMA:
        raise LoadError(f"it has version {str(version)[:80]} of the layout, expected {_SCHEMA}")
    payloads = {
        f"data/{kind}": parse_payloads(_json(path, members, f"data/{kind}/{model}_{kind}_config.json"))
        for kind in ("weights", "constants")
    }
    return translate(parse_program(program), payloads, path, members)


def _json(path: Path, members: dict[str, Member], name: str) -> Any:
    if name not in members:
        raise LoadError(f"the member {name[:80]!r} is missing")
    return parse_json(read_member(path, members[name], _LARGEST_PROGRAM), name[:80])
