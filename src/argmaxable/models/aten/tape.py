"""A program of PyTorch's operations, recorded one call after the other, becomes a `Graph`.

PyTorch changes tensors in place, and views share their numbers. So what a program holds is a `Handle`, and
the name of the tensor behind it may change. When an operation changes one handle, all others that may share
its numbers no longer stand for anything known; a stored tensor that is changed is no longer a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.aten.arguments import CallArguments, NoCounterpart
from argmaxable.models.aten.handles import Handle, handles_in
from argmaxable.models.aten.operations import is_fresh, translated
from argmaxable.models.aten.stored import ArchivedTensor, StoredValues
from argmaxable.models.graph.nodes import Attribute, Graph, Node

if TYPE_CHECKING:
    from pathlib import Path

    from argmaxable.models.pytorch.archive import Member

# A handle, None, a number, a text, a list of values, or what only the program's reader knows.
Value = Any
# Far above the operations of any model; each costs some 2 kB.
_MOST_NODES = 100_000
_MOST_INPUTS = 1_000_000
_MOST_AXES = 64
# Changes its first argument without the "_" at the end of its name that PyTorch's operations have then.
_IN_PLACE = frozenset({"__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "set_data"})
# Namespaces in which operations are known to keep to that.
_TAME = (
    "prim",
    "python",
    "quantized",
    "quantized_decomposed",
    "torchvision",
    "higher_order",
    "math",
    "static",
)
# In training, which the argument at place 5 says, these change the statistics that they are given.
_STATISTICS = frozenset({"batch_norm", "native_batch_norm", "_native_batch_norm_legit", "instance_norm"})


@dataclass
class Trial:
    """Handles that were changed in place, with their names afterwards."""

    changes: list[tuple[Handle, str]] = field(default_factory=list)


@dataclass
class Tape:
    """The graph under construction."""

    nodes: list[Node] = field(default_factory=list)
    shapes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    integers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    stored: dict[str, ArchivedTensor] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    _handles: dict[str, Handle] = field(default_factory=dict)
    _members: dict[str, Handle] = field(default_factory=dict)
    _journal: list[tuple[Handle, str]] | None = None
    _inputs: int = 0

    # ------------------------------------------------------------------ what programs start from

    def given(self, name: str, *, rank: int | None = None, is_tensor: bool = True) -> Handle:
        """An input of the model, or something else that nothing here computes."""
        self._taken.add(name)
        if rank is not None:
            self.shapes.setdefault(name, (-1,) * rank)
        return self._handle(name, is_tensor=is_tensor)

    def constant(self, name: str, tensor: ArchivedTensor) -> Handle:
        """A stored tensor; always the same handle for one name."""
        if name not in self._handles:
            self._taken.add(name)
            self.stored[name] = tensor
            self.shapes[name] = tensor.shape
            handle = self._handles[name] = self._handle(name)
            handle.member = tensor.member
            self.share([handle, self._members.setdefault(tensor.member, handle)])
        if self.stored[name] != tensor:
            raise ambiguous(f"two tensors are called {name[:80]!r}")
        return self._handles[name]

    def number(self, value: float) -> str:
        """The name of a number that stands in the program."""
        name = f"number {value!r}"
        self.numbers[name] = float(value)
        self.shapes[name] = ()
        if isinstance(value, int):
            self.integers[name] = (value,)
        return name

    # ------------------------------------------------------------------ operations

    def add(self, op: str, inputs: Sequence[str], rank: int | None = None, /, **attributes: Attribute) -> str:
        """The name of the only output of a new node."""
        self._inputs += len(inputs)
        if len(self.nodes) >= _MOST_NODES or self._inputs > _MOST_INPUTS:
            raise LoadError(f"its program has more than {_MOST_NODES:,} operations")
        name = f"{op}#{len(self.nodes)}"
        self.nodes.append(Node(op, tuple(inputs), (name,), attributes))
        if rank is not None and rank <= _MOST_AXES:
            self.shapes[name] = (-1,) * rank
        return name

    def call(
        self, op: str, positional: Sequence[Value], named: Mapping[str, Value], wanted: str = ""
    ) -> Value:
        """What an operation gives: a handle, or a tuple of them.

        `op` is a name without its overload, "relu" for aten's own and "quantized:linear" for others.
        `wanted` is what the result should be called.
        """
        handles, start = list(handles_in([*positional, *named.values()])), len(self.nodes)
        self._inputs += len(handles)
        arguments = CallArguments(op, positional, named)
        in_place = (op.endswith("_") and not op.endswith("__")) or op in _IN_PLACE
        if in_place:
            arguments = CallArguments(op.removesuffix("_"), positional, named)
        try:
            found = translated(self, arguments)
        except NoCounterpart:
            found = self.add(op if ":" in op else f"aten:{op}", [each.name for each in handles])
        result = self._result(op, found, handles, wanted if len(self.nodes) > start else "")
        first = positional[0] if positional else next(iter(named.values()), None)
        for target in handles_in([first] if in_place else [named.get("out")]):
            self._change(target, found if isinstance(found, str) else self.opaque("changed").name)
            result = target
        if _may_change_all(op, [*positional, *named.values()]):
            for each in handles:
                self.forget(each)
        return result

    def output(self, name: str, handle: Handle) -> str:
        """The name of an output that is called so, if nothing else is."""
        if name in self._taken:
            return handle.name
        self._taken.add(name)
        self.nodes.append(Node("Identity", (handle.name,), (name,), {}))
        return name

    def opaque(self, why: str, *handles: Handle) -> Handle:
        """Something not known, made of these."""
        name = self.add(f"aten:{why}", [each.name for each in handles])
        return self._handle(name, handles, is_tensor=False)

    def chosen(self, first: Handle, second: Handle) -> Handle:
        """One of two, depending on what is not known."""
        if first.name == second.name:
            return first
        both = self._handle(self.add("If", (first.name, second.name)), (first, second))
        both.is_tensor = first.is_tensor and second.is_tensor
        return both

    def rank(self, name: str) -> int | None:
        shape = self.shapes.get(name)
        return None if shape is None else len(shape)

    def _result(self, op: str, found: str | tuple[str, ...], handles: Sequence[Handle], wanted: str) -> Value:
        if isinstance(found, tuple):
            return tuple(self._result(op, each, handles, "") for each in found)
        last = self.nodes[-1] if self.nodes else None
        is_opaque = last is not None and last.outputs == (found,) and ":" in last.op
        if wanted and last is not None and last.outputs == (found,) and wanted not in self._taken:
            self._taken.add(wanted)
            self.nodes[-1] = Node(last.op, last.inputs, (wanted,), last.attributes)
            if found in self.shapes:
                self.shapes[wanted] = self.shapes.pop(found)
            found = wanted
        return self._handle(found, () if is_fresh(op) else handles, is_tensor=not is_opaque)

    def _handle(self, name: str, sharing: Sequence[Handle] = (), *, is_tensor: bool = True) -> Handle:
        """A new handle, which may be a view of others."""
        handle = Handle(name, [], is_tensor=is_tensor)
        handle.group.append(handle)
        self.share([handle, *sharing])
        return handle

    def share(self, handles: Sequence[Handle]) -> None:
        """From here on these may be views of each other; the smaller groups join the largest."""
        groups = {id(each.group): each.group for each in handles}
        largest = max(groups.values(), key=len, default=[])
        for group in groups.values():
            if group is not largest:
                largest.extend(group)
                for each in group:
                    each.group = largest

    # ------------------------------------------------------------------ changes in place

    def _change(self, target: Handle, name: str) -> None:
        for handle in target.group:
            if handle.member:
                self.changed.add(handle.member)
            if self._journal is not None:
                self._journal.append((handle, handle.name))
            handle.name = name if handle is target else self.add("aten:changed", ())

    def forget(self, target: Handle) -> None:
        """From here on a handle, and what may share its numbers, stand for nothing known."""
        self._change(target, self.add("aten:changed", ()))

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Changes in place within it are undone at its end, and told."""
        outer, self._journal = self._journal, []
        trial = Trial()
        try:
            yield trial
        finally:
            trial.changes += [(handle, handle.name) for handle, _ in self._journal]
            for handle, name in reversed(self._journal):
                handle.name = name
            self._journal = outer

    def commit(self, trial: Trial) -> None:
        """What was tried is what happens."""
        for handle, after in trial.changes:
            if self._journal is not None:
                self._journal.append((handle, handle.name))
            handle.name = after

    @property
    def in_trial(self) -> bool:
        return self._journal is not None

    # ------------------------------------------------------------------ the end

    def graph(
        self, outputs: Sequence[str], path: Path, members: Mapping[str, Member]
    ) -> tuple[Graph, StoredValues]:
        """The graph with these outputs, and what reads its constants."""
        stored = {name: each for name, each in self.stored.items() if each.member not in self.changed}
        values = StoredValues(path, members, stored, self.numbers)
        graph = Graph(
            nodes=tuple(self.nodes),
            outputs=tuple(dict.fromkeys(outputs)),
            constants={name: each.shape for name, each in stored.items()} | dict.fromkeys(self.numbers, ()),
            scalars=values.single_numbers() | self.numbers,
            integers=self.integers,
            types={name: each.dtype for name, each in stored.items()}
            | {name: "int64" if name in self.integers else "float64" for name in self.numbers},
            shapes=self.shapes,
            declared=self.declared,
            promotes=True,
        )
        return graph, values


def _may_change_all(op: str, values: Sequence[Value]) -> bool:
    """Whether an operation may change any of its arguments in place."""
    namespace = op.partition(":")[0] if ":" in op else "prim"
    return namespace not in _TAME or (op in _STATISTICS and values[5:6] != [False])
