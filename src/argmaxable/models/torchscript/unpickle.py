"""The pickles of PyTorch's archives, read by a small machine that knows PyTorch's instructions only.

Nothing is imported or called. An object becomes a `PickledObject`: the name of its class, and the attributes,
which are plain values, tensors or such objects again. What is not understood becomes an `Unread`.
TorchScript's pickles are written by PyTorch itself, in protocol 2. Python's, in protocol 4, hold objects of
other packages as well; which of those are accepted is up to the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.aten.stored import ArchivedTensor, stored_tensor
from argmaxable.models.pytorch.archive import asks_for
from argmaxable.models.pytorch.pickle_imports import instructions_in

if TYPE_CHECKING:
    from argmaxable.models.pytorch.archive import Member

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"})
# Functions of Python's pickles whose results are of no interest.
_HARMLESS = frozenset({"torch device", "builtins set"})
# Instructions of Python's that TorchScript does not have.
_PYTHON_VALUES = frozenset({"SHORT_BINUNICODE", "SHORT_BINBYTES", "BINBYTES"})
_PYTHON = frozenset({"FRAME", "MEMOIZE", "STACK_GLOBAL", "EMPTY_SET", "ADDITEMS", *_PYTHON_VALUES})
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STORAGES = {
    **{"FloatStorage": ("float32", 4), "DoubleStorage": ("float64", 8), "HalfStorage": ("float16", 2)},
    **{"BFloat16Storage": ("bfloat16", 2), "LongStorage": ("int64", 8), "IntStorage": ("int32", 4)},
    **{"ShortStorage": ("int16", 2), "CharStorage": ("int8", 1), "ByteStorage": ("uint8", 1)},
    **{"BoolStorage": ("bool", 1)},
}
# Functions that give back their first argument, a list or a dictionary.
_SAME = frozenset({f"torch.jit._pickle build_{kind}list" for kind in ("int", "double", "bool", "tensor")}) | {
    "torch.jit._pickle restore_type_tag"
}


@dataclass(eq=False)
class PickledObject:
    """An object: the name of its class, and its attributes or whatever else its state is."""

    kind: str
    attributes: dict[str, Any] = field(default_factory=dict)
    state: Any = None


@dataclass(frozen=True, eq=False)
class Unread:
    """Something that is not understood."""

    what: str


@dataclass(frozen=True)
class _Global:
    """The name of a class or function, which is never looked up."""

    name: str


_MARK = object()


class Unpickler:
    """Reads the pickles of an archive, which share their storages."""

    def __init__(self, members: Mapping[str, Member], foreign: re.Pattern[str] | None = None) -> None:
        """`foreign` matches the classes of other packages whose objects become records in Python's pickles;
        None for TorchScript's."""
        self._members, self._foreign = members, foreign
        self._storages: dict[str, tuple[str, int]] = {}

    def load(self, data: bytes, folder: str) -> Any:
        """The object in a pickle whose tensors are in this folder of the archive; raises LoadError."""
        machine = _Machine(lambda place: self._storage(place, folder), self._tensor, self._foreign)
        for opcode, argument in instructions_in(data):
            try:
                if opcode == "STOP":
                    return machine.pop()
                machine.step(opcode, argument)
            except LoadError:  # which is a ValueError
                raise
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise LoadError(f"its pickle is damaged, at an instruction {opcode}") from error
        raise LoadError("its pickle ends too early")

    def _storage(self, place: Any, folder: str) -> Any:
        """A storage: its member, type, and size in bytes, all of which must agree wherever it is used."""
        kind, type_, key, _, count = place
        name = type_.name.removeprefix("torch ") if isinstance(type_, _Global) else ""
        if kind != "storage" or not isinstance(key, str) or not isinstance(count, int):
            raise TypeError("storage")
        if name not in _STORAGES:
            return Unread(name)
        dtype, width = _STORAGES[name]
        member = f"{folder}/{key}"
        if self._storages.setdefault(member, (dtype, count)) != (dtype, count):
            raise ambiguous(f"the numbers of {member[:80]!r} are declared twice, of different types or sizes")
        if member in self._members and self._members[member].size != count * width:
            raise LoadError(
                f"{member[:80]!r} has {self._members[member].size:,} bytes, expected {count * width:,}"
            )
        return member, dtype, count * width

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any) -> ArchivedTensor | Unread:
        numbers = (*shape, *strides, offset)
        if not isinstance(storage, tuple) or any(type(each) is not int for each in numbers):
            return Unread("tensor")
        member, dtype, nbytes = storage
        return stored_tensor(member, dtype, tuple(shape), tuple(strides), offset, nbytes)

    @property
    def absent(self) -> list[str]:
        """Storages that the pickles name but the archive does not have."""
        return [member for member in self._storages if member not in self._members]


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(
        self,
        storage: Callable[[Any], Any],
        tensor: Callable[[Any, Any, Any, Any], Any],
        foreign: re.Pattern[str] | None,
    ) -> None:
        self._stack: list[Any] = []
        self._memory: dict[int, Any] = {}
        self._storage, self._tensor, self._foreign = storage, tensor, foreign

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise LoadError("its pickle is damaged")
        return value

    def step(self, opcode: str, argument: Any) -> None:
        """Carry out one instruction; raises an error for those that PyTorch does not write."""
        if opcode in _NUMBERS:
            self._stack.append(argument)
        elif opcode in _CONSTANTS:
            self._stack.append(_CONSTANTS[opcode])
        elif opcode in ("BINPUT", "LONG_BINPUT"):
            self._memory[argument] = self._stack[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            self._stack.append(self._memory[argument])
        elif opcode == "GLOBAL":
            self._stack.append(_Global(argument))
        elif opcode == "MARK":
            self._stack.append(_MARK)
        elif opcode in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            self._stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[opcode]())
        elif opcode == "TUPLE":
            self._stack.append(tuple(self._marked()))
        elif opcode in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[opcode])]
            self._stack.append(tuple(reversed(values)))
        elif opcode in _PYTHON and self._foreign is not None:
            self._python(opcode, argument)
        elif opcode != "PROTO":
            self._build(opcode)

    def _python(self, opcode: str, argument: Any) -> None:
        if opcode in _PYTHON_VALUES:
            self._stack.append(argument)
        elif opcode == "MEMOIZE":
            self._memory[len(self._memory)] = self._stack[-1]
        elif opcode == "STACK_GLOBAL":
            name, module = self.pop(), self.pop()
            self._stack.append(_Global(f"{module} {name}"))
        elif opcode == "EMPTY_SET":
            self._stack.append([])  # nobody asks whether something is in it
        elif opcode == "ADDITEMS":
            self._extend(self._marked())

    def _build(self, opcode: str) -> None:
        if opcode == "BINPERSID":
            self._stack.append(self._storage(self.pop()))
        elif opcode == "REDUCE":
            arguments, function = self.pop(), self.pop()
            self._stack.append(self._called(function, arguments))
        elif opcode == "NEWOBJ":
            _, kind = self.pop(), self.pop()
            self._stack.append(self._record(kind.name.replace(" ", ".")))
        elif opcode == "BUILD":
            state, record = self.pop(), self._stack[-1]
            if self._foreign is not None and type(record) is dict:
                return  # attributes of an OrderedDict, such as the versions of a state_dict's modules
            if not isinstance(record, PickledObject) or record.attributes or record.state is not None:
                raise TypeError("BUILD")
            record.state = state
            if isinstance(state, dict) and all(isinstance(name, str) for name in state):
                record.attributes = state
        elif opcode in ("APPENDS", "APPEND"):
            self._extend(self._marked() if opcode == "APPENDS" else [self.pop()])
        elif opcode in ("SETITEMS", "SETITEM"):
            values = self._marked() if opcode == "SETITEMS" else [self.pop(), self.pop()][::-1]
            self._set_items(values)
        else:
            raise ValueError(opcode)

    def _record(self, kind: str) -> PickledObject:
        if self._foreign is not None and not self._foreign.fullmatch(kind):
            raise LoadError(asks_for([kind[:80]]))
        return PickledObject(kind)

    def _extend(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise TypeError("APPENDS")
        self._stack[-1].extend(values)

    def _set_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError("SETITEMS")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | bytes | int | float):  # the hash of nested tuples may take forever
                raise TypeError("key")
            if key in target:
                raise ambiguous(f"an object has two attributes called {str(key)[:80]!r}")
            target[key] = value

    def _called(self, function: Any, arguments: Any) -> Any:
        name = function.name if isinstance(function, _Global) else ""
        if name == "torch._utils _rebuild_tensor_v2":
            storage, offset, shape, strides, *_ = arguments
            return self._tensor(storage, offset, shape, strides)
        if name in _SAME:
            return arguments[0]
        if name == "collections OrderedDict" and not arguments:
            return {}
        if self._foreign is None:
            return Unread(name)
        if name == "torch._utils _rebuild_parameter":
            return arguments[0]
        if name not in _HARMLESS:  # others could change the weights that they are called with
            raise LoadError(asks_for([name.replace(" ", ".")[:80]]))
        return PickledObject(name.replace(" ", "."))

    def _marked(self) -> list[Any]:
        """What lies above the last mark, which is taken off as well."""
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError("MARK")
        values = self._stack[place + 1 :]
        del self._stack[place:]
        return values
