"""Heads in TorchScript archives, as `torch.jit.save` writes them.

The program is followed from the `forward` of the module, without running anything, into the small `Graph`
that `models/graph/` walks. Of the tensors only the head's, and short ones before it, are read. Where the
program can't be followed, the head is looked for by the names of tensors, as in a checkpoint.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.aten.handles import Handle, handles_in
from argmaxable.models.aten.stored import ArchivedTensor, StoredValues
from argmaxable.models.aten.tape import Tape
from argmaxable.models.finding import Finding, TensorInfo
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.huggingface.reader import find_in
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.pytorch.archive import LARGEST_PICKLE, archive_members, read_member
from argmaxable.models.source import TensorSource
from argmaxable.models.torchscript.code import Code, NotFollowed
from argmaxable.models.torchscript.interpret import Interpreter
from argmaxable.models.torchscript.plain_values import Raised
from argmaxable.models.torchscript.unpickle import PickledObject, Unpickler

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph
    from argmaxable.models.pytorch.archive import Member
    from argmaxable.models.registry import ReadOptions

_FORMAT = "torchscript"
# An attribute that one walk finds to be assigned is not known in the next.
_MOST_WALKS = 4
_INSTEAD = "save the state_dict of the model it was made from, or export that to ONNX"


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of the module in a TorchScript archive.

    Without `options.tensor` it is the linear layer that leads to what `forward` returns. Raises LoadError.
    """
    members = archive_members(path, compressed="code/")
    _require_readable(path, members)
    try:
        module = _Module(path, members)
        graph, values = module.graph()
    except NotFollowed as error:
        return _by_name(path, module, options, str(error))
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"is not a readable TorchScript archive: {error}. Fetch it again, or {_INSTEAD}."
        ) from error
    try:
        return find_in_graph(
            _FORMAT, graph, options, values, lambda classes: search_beside(path.parent, classes)
        )
    except LoadError as error:
        if any(node.op.startswith("quantized:") for node in graph.nodes):
            raise LoadError(
                f"{error} Layers that PyTorch has quantised can't be read: {_INSTEAD}."
            ) from error
        raise


def _require_readable(path: Path, members: dict[str, Member]) -> None:
    if "data.pkl" not in members:
        raise LoadError(
            f"is a TorchScript archive from before PyTorch 1.4, which can't be read. Instead {_INSTEAD}."
        )
    if "bytecode.pkl" in members:
        raise LoadError(
            "is a model for PyTorch's lite interpreter, whose bytecode can't be read. Save the module with "
            f"torch.jit.save, or {_INSTEAD}."
        )
    order = members.get("byteorder")
    if order is not None and read_member(path, order, 64) != b"little":
        raise LoadError(f"was saved on a machine with another order of bytes. Instead {_INSTEAD}.")


class _Module:
    """The module of an archive: its record, the constants of its code, and the names of its tensors."""

    def __init__(self, path: Path, members: dict[str, Member]) -> None:
        self.path, self.members = path, members
        unpickler = Unpickler(members)
        self.root = unpickler.load(self._member("data.pkl"), "data")
        if not isinstance(self.root, PickledObject):
            raise LoadError("its data.pkl does not hold a module")
        self.constants = unpickler.load(self._member("constants.pkl"), "constants")
        if not isinstance(self.constants, tuple):
            raise LoadError("its constants.pkl does not hold a list of constants")
        if unpickler.absent:
            raise LoadError(f"the member {unpickler.absent[0][:80]!r} is missing")
        self.paths, self.tensors = _names(self.root)
        self.ranks = self._traced_ranks()

    def _member(self, name: str) -> bytes:
        return read_member(self.path, self.members[name], LARGEST_PICKLE)

    def _traced_ranks(self) -> list[int | None]:
        """How many axes the inputs had with which the module was traced."""
        if "traced_inputs.pkl" not in self.members:
            return []
        traced = Unpickler({}).load(self._member("traced_inputs.pkl"), "traced_inputs")
        inputs = traced.get("forward") if isinstance(traced, dict) else None
        found = inputs if isinstance(inputs, list | tuple) else []
        return [len(each.shape) if isinstance(each, ArchivedTensor) else None for each in found]

    def graph(self) -> tuple[Graph, StoredValues]:
        """The graph of `forward`; raises NotFollowed where that can't be followed."""
        code = Code(self.path, self.members)
        assigned: frozenset[tuple[int, str]] = frozenset()
        for _ in range(_MOST_WALKS):
            tape = Tape()
            walk = Interpreter(code, tape, self.constants, self.paths, assigned)
            try:
                outputs = self._outputs(tape, walk, code)
            except RecursionError as error:
                raise NotFollowed("it is nested too deep") from error
            except Raised as error:
                raise NotFollowed("it raises an exception whatever it is given") from error
            if walk.assigned == assigned:
                return tape.graph(outputs, self.path, self.members)
            assigned = frozenset(walk.assigned)
        raise NotFollowed("it changes its own attributes")

    def _outputs(self, tape: Tape, walk: Interpreter, code: Code) -> list[str]:
        forward = code.method(self.root.kind, "forward")
        names = [each.arg for each in forward.args.args[1:]]
        kinds = [getattr(each.annotation, "id", "") for each in forward.args.args[1:]]
        ranks = dict(enumerate(self.ranks if len(self.ranks) == len(names) else []))
        inputs: list[Any] = [
            tape.given(f"input {name}", rank=ranks.get(place), is_tensor=kind == "Tensor")
            for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
        ]
        result = walk.call(forward, [self.root, *inputs], {})
        if isinstance(result, dict):
            named = {key: each for key, each in result.items() if isinstance(each, Handle)}
            return [tape.output(key, each) for key, each in named.items()]
        return [each.name for each in handles_in([result])]


def _names(root: PickledObject) -> tuple[dict[int, str], dict[str, ArchivedTensor]]:
    """Where each record is, by its id, and the tensors by their names, as in a state_dict."""
    paths = {id(root): ""}
    tensors: dict[str, ArchivedTensor] = {}
    pending = [root]
    for record in pending:  # grows while records are found
        prefix = f"{paths[id(record)]}." if paths[id(record)] else ""
        for name, value in record.attributes.items():
            if isinstance(value, PickledObject) and id(value) not in paths:
                paths[id(value)] = f"{prefix}{name}"
                pending.append(value)
            elif isinstance(value, ArchivedTensor):
                if f"{prefix}{name}" in tensors:
                    raise ambiguous(f"two tensors are called {f'{prefix}{name}'[:80]!r}")
                tensors[f"{prefix}{name}"] = value
    repeated = twice(paths.values())
    if repeated is not None:
        raise ambiguous(f"two modules are called {repeated[:80]!r}")
    return paths, tensors


def _by_name(path: Path, module: _Module, options: ReadOptions, reason: str) -> Finding:
    """The head by the names of tensors, with a note that says why."""
    values = StoredValues(path, module.members, module.tensors, {})
    infos = {name: TensorInfo(name, each.shape, each.dtype) for name, each in module.tensors.items()}
    source = TensorSource(path.name, infos, values.array)
    note = f"the program can't be followed to its head, because {reason}; the head was found by name"
    try:
        finding = find_in(source, path.parent, options, format_name=_FORMAT)
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"can't be followed to its head, because {reason}, nor is the head found by name: {error}"
        ) from error
    return replace(finding, notes=(*finding.notes, note))
