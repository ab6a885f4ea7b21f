"""Follows the `forward` of a TorchScript module without running it.

Each call of one of PyTorch's operations goes onto a `Tape`; calls of submodules and functions are followed
into. Where a condition is not known, both branches are followed and the results joined by an If. What a loop
changes is not known afterwards, unless it runs a known number of times.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argmaxable.models.aten.handles import Handle, Items, handles_in, is_known_list
from argmaxable.models.aten.stored import ArchivedTensor
from argmaxable.models.torchscript.code import NotFollowed
from argmaxable.models.torchscript.plain_values import (
    NOT_PLAIN,
    Function,
    Raised,
    Returned,
    computed,
    dotted_name,
    is_plain,
)
from argmaxable.models.torchscript.unpickle import PickledObject

if TYPE_CHECKING:
    from argmaxable.models.aten.tape import Tape
    from argmaxable.models.torchscript.code import Code

Value = Any
Names = dict[str, Value]

# Expressions that are looked at; each takes some microseconds.
_MOST_STEPS = 500_000
_DEEPEST_CALL = 100
_LONGEST_LOOP = 64
_LARGEST = 2**63
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}
_LIST_CHANGES = frozenset(
    {"append", "insert", "pop", "clear", "extend", "reverse", "sort", "remove", "_set_item", "Delete"}
)


class Interpreter:
    """One walk through a program.

    `paths` says where each record is, by its id, for the names of tensors. `assigned` are attributes that
    the program itself assigns, by the ids of their records: they are not known from the start.
    """

    def __init__(
        self,
        code: Code,
        tape: Tape,
        constants: Sequence[Value],
        paths: dict[int, str],
        assigned: frozenset[tuple[int, str]],
    ) -> None:
        self._code, self._tape, self._constants, self._paths = code, tape, constants, paths
        self._known_assigned = {key: tape.given(f"attribute {key}", is_tensor=False) for key in assigned}
        self.assigned = set(assigned)
        self._assigned_names: dict[int, set[str]] = {}
        self._steps = self._depth = 0

    def call(self, function: ast.FunctionDef, positional: Sequence[Value], named: Names) -> Value:
        """What a function returns."""
        if self._depth >= _DEEPEST_CALL:
            raise NotFollowed("calls are nested too deep")
        self._depth += 1
        try:
            done = self._block(function.body, self._bound(function, positional, named))
        finally:
            self._depth -= 1
        return done.value if done is not None else None

    def _bound(self, function: ast.FunctionDef, positional: Sequence[Value], named: Names) -> Names:
        names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        if len(positional) > len(names) or function.args.vararg or function.args.kwarg:
            raise NotFollowed(f"{function.name[:80]} is given too many arguments")
        given = dict(zip(names, positional, strict=False))
        if given.keys() & named.keys() or not named.keys() <= set(names):
            raise NotFollowed(f"{function.name[:80]} is given other arguments than it has")
        given |= named
        if function.args.defaults:
            ends = [each.arg for each in function.args.args[-len(function.args.defaults) :]]
            for name, default in zip(ends, function.args.defaults, strict=True):
                if name not in given:
                    given[name] = self._value(default, {})
        if len(given) < len(names):
            raise NotFollowed(f"{function.name[:80]} is given too few arguments")
        return given

    def _spend(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise NotFollowed(f"it takes more than {_MOST_STEPS:,} steps")

    # ------------------------------------------------------------------ statements

    def _block(self, statements: Sequence[ast.stmt], names: Names) -> Returned | None:
        for statement in statements:
            done = self._statement(statement, names)
            if done is not None:
                return done
        return None

    def _statement(self, statement: ast.stmt, names: Names) -> Returned | None:
        self._spend()
        match statement:
            case ast.Return(value=value):
                return Returned(None if value is None else self._value(value, names))
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self._value(value, names), names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._value(value, names), names)
            case ast.Expr(value=value):
                self._value(value, names)
            case ast.If(test=test, body=body, orelse=other):
                return self._if(self._value(test, names), body, other, names)
            case ast.For(target=ast.Name(id=name), iter=iterated, body=body, orelse=[]):
                return self._for(name, self._value(iterated, names), body, names)
            case ast.While(test=_, body=body, orelse=[]):
                self._loop(body, names)
            case ast.Pass():
                pass
            case _:
                raise NotFollowed(f"it has a {type(statement).__name__} statement")
        return None

    def _assign(self, target: ast.expr, value: Value, names: Names) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple):
            parts = value if is_known_list(value) else [self._part(value) for _ in target.elts]
            if len(parts) != len(target.elts):
                raise NotFollowed("it takes apart a tuple of another length")
            for each, part in zip(target.elts, parts, strict=True):
                self._assign(each, part, names)
        elif isinstance(target, ast.Attribute):
            self._assign_attribute(self._value(target.value, names), target.attr, value)
        else:
            raise NotFollowed(f"it assigns to a {type(target).__name__}")

    def _assign_attribute(self, record: Value, attribute: str, value: Value) -> None:
        if not isinstance(record, PickledObject):
            raise NotFollowed("it assigns an attribute of something not known")
        key = (id(record), attribute)
        self.assigned.add(key)
        if key in self._known_assigned:
            self._tape.share([self._known_assigned[key], *handles_in([value])])

    def _if(self, test: Value, body: list[ast.stmt], other: list[ast.stmt], names: Names) -> Returned | None:
        if isinstance(test, bool):
            return self._block(body if test else other, names)
        branches = []
        self._spend(len(names) // 8)
        for statements in (body, other):
            inner = dict(names)
            with self._tape.trial() as trial:
                try:
                    if self._block(statements, inner) is not None:
                        raise NotFollowed("it returns from within a branch")
                except Raised:
                    continue
            branches.append((inner, trial))
        if not branches:
            raise Raised
        if len(branches) == 1:  # the other raises an exception
            names.update(branches[0][0])
            self._tape.commit(branches[0][1])
            return None
        for handle, _ in (*branches[0][1].changes, *branches[1][1].changes):
            self._tape.forget(handle)
        first, second = branches[0][0], branches[1][0]
        names.update({name: self._merged(first[name], second[name]) for name in first.keys() & second.keys()})
        return None

    def _merged(self, first: Value, second: Value) -> Value:
        """What is one of two values."""
        if first is second or (
            is_plain(first) and is_plain(second) and (first, type(first)) == (second, type(second))
        ):
            return first
        if isinstance(first, Handle) and isinstance(second, Handle):
            return self._tape.chosen(first, second)
        return self._tape.opaque("If", *handles_in([first, second]))

    def _for(self, name: str, iterated: Value, body: list[ast.stmt], names: Names) -> Returned | None:
        if not isinstance(iterated, range) or len(iterated) > _LONGEST_LOOP:
            names[name] = self._tape.opaque("loop")
            self._loop(body, names)
            return None
        for number in iterated:
            names[name] = number
            done = self._block(body, names)
            if done is not None:
                return done
        return None

    def _loop(self, body: list[ast.stmt], names: Names) -> None:
        """A loop that runs nobody knows how often: nothing that it changes is known afterwards."""
        stored = self._stored_in(body)
        self._spend(len(names) // 8 + len(stored))
        inner = dict(names)
        for name in stored & names.keys():
            inner[name] = self._tape.opaque("loop", *handles_in([names[name]]))
        with self._tape.trial() as trial:
            try:
                if self._block(body, inner) is not None:
                    raise NotFollowed("it returns from within a loop")
            except Raised:
                pass
        for handle, _ in trial.changes:
            self._tape.forget(handle)
        for name in sorted(stored):
            names[name] = self._tape.opaque("loop", *handles_in([names.get(name), inner.get(name)]))

    def _stored_in(self, body: list[ast.stmt]) -> set[str]:
        """The names that are assigned in a block, found once."""
        if id(body) not in self._assigned_names:
            nodes = (node for statement in body for node in ast.walk(statement))
            self._assigned_names[id(body)] = {
                node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
        return self._assigned_names[id(body)]

    # ------------------------------------------------------------------ expressions

    def _value(self, node: ast.expr, names: Names) -> Value:
        self._spend()
        match node:
            case ast.Constant(value=value) if is_plain(value):
                if isinstance(value, int) and abs(value) > _LARGEST:
                    raise NotFollowed("it has a number of more than 64 bits")
                return value
            case ast.Name(id=name):
                if name not in names and name not in _NUMBERS:
                    raise NotFollowed(f"{name[:80]!r} is not defined")
                return names[name] if name in names else _NUMBERS[name]
            case ast.Attribute():
                return self._attribute(node, names)
            case ast.Call():
                return self._called(node, names)
            case ast.List(elts=parts):
                return Items(self._value(each, names) for each in parts)
            case ast.Tuple(elts=parts):
                return tuple(self._value(each, names) for each in parts)
            case ast.Dict(keys=keys, values=values):
                return self._dictionary(keys, [self._value(each, names) for each in values])
            case ast.Subscript(value=whole, slice=index):
                return self._item(self._value(whole, names), index, names)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._value(operand, names)
                return -number if isinstance(number, int | float) else self._part(number)
        raise NotFollowed(f"it has a {type(node).__name__} expression")

    def _dictionary(self, keys: Sequence[ast.expr | None], values: list[Value]) -> Value:
        known = [each.value for each in keys if isinstance(each, ast.Constant)]
        if len(known) < len(keys) or not all(isinstance(each, str) for each in known):
            return self._tape.opaque("dictionary", *handles_in(values))
        if len(set(known)) < len(known):
            raise NotFollowed("a dictionary has a key twice")
        return dict(zip(known, values, strict=True))

    def _item(self, value: Value, index: ast.expr, names: Names) -> Value:
        if isinstance(index, ast.Slice):
            ends = [None if each is None else self._value(each, names) for each in (index.lower, index.upper)]
            if is_known_list(value) and index.step is None and all(e is None or type(e) is int for e in ends):
                self._spend(len(value))
                return Items(value[slice(*ends)])
            return self._part(value)
        place = self._value(index, names)
        if is_known_list(value) and type(place) is int and -len(value) <= place < len(value):
            return value[place]
        if isinstance(value, dict) and isinstance(place, str) and place in value:
            return value[place]
        return self._part(value)

    def _part(self, value: Value) -> Handle:
        """Something in, or of, a value that is not known."""
        return self._tape.opaque("part", *handles_in([value]))

    def _attribute(self, node: ast.Attribute, names: Names) -> Value:
        dotted = dotted_name(node)
        root = dotted.partition(".")[0]
        if root == "__torch__" and root not in names:
            return Function(dotted)
        if root == "CONSTANTS" and root not in names:
            number = node.attr.removeprefix("c")
            if not number.isdecimal() or len(number) > 9 or int(number) >= len(self._constants):
                raise NotFollowed(f"it has no constant {node.attr[:80]!r}")
            return self._stored(self._constants[int(number)], dotted)
        return self._get(self._value(node.value, names), node.attr)

    def _get(self, value: Value, attribute: str) -> Value:
        if not isinstance(value, PickledObject):
            return self._part(value)
        key = (id(value), attribute)
        if key in self._known_assigned:
            return self._known_assigned[key]
        if value.state is not None and value.state is not value.attributes:  # packed by a method of its own
            return self._tape.opaque("object")
        if attribute not in value.attributes:
            raise NotFollowed(f"an object has no attribute {attribute[:80]!r}")
        path = self._paths.get(id(value), value.kind)
        found = self._stored(value.attributes[attribute], f"{path}.{attribute}" if path else attribute)
        if isinstance(found, Items):
            found.owner = key
        return found

    def _stored(self, value: Value, name: str, depth: int = 4) -> Value:
        """A value of the archive as the program sees it."""
        if isinstance(value, ArchivedTensor):
            return self._tape.constant(name, value)
        if isinstance(value, PickledObject) or is_plain(value):
            return value
        if isinstance(value, list | tuple) and depth:
            self._spend(len(value))
            return Items(self._stored(each, f"{name}.{n}", depth - 1) for n, each in enumerate(value))
        return self._tape.opaque("object")

    # ------------------------------------------------------------------ calls

    def _called(self, node: ast.Call, names: Names) -> Value:
        dotted = dotted_name(node.func)
        root, _, rest = dotted.partition(".")
        if root == "annotate" or (root in ("unchecked_cast", "uninitialized") and node.args):
            if root == "uninitialized":
                return self._tape.opaque(root)
            return self._value(node.args[-1], names)
        if any(keyword.arg is None for keyword in node.keywords):
            raise NotFollowed("it hands on named arguments")
        named = {keyword.arg or "": self._value(keyword.value, names) for keyword in node.keywords}
        if root in ("torch", "ops") and root not in names and rest:
            return self._operation(root, rest, [self._value(each, names) for each in node.args], named)
        if root == "getattr" and len(node.args) == 2:
            value, attribute = (self._value(each, names) for each in node.args)
            if not isinstance(attribute, str):
                raise NotFollowed("it takes an attribute that is not known")
            return self._get(value, attribute)
        if isinstance(node.func, ast.Name) and root not in names:
            return self._builtin(root, [self._value(each, names) for each in node.args])
        return self._followed(node.func, [self._value(each, names) for each in node.args], named, names)

    def _followed(self, callee: ast.expr, positional: list[Value], named: Names, names: Names) -> Value:
        """What a function, or a method of an object, returns."""
        if isinstance(callee, ast.Attribute) and not dotted_name(callee).startswith("__torch__."):
            value = self._value(callee.value, names)
            if isinstance(value, PickledObject):
                return self.call(self._code.method(value.kind, callee.attr), [value, *positional], named)
            raise NotFollowed(f"it calls a method {callee.attr[:80]!r} of something not known")
        function = self._value(callee, names)
        if not isinstance(function, Function):
            raise NotFollowed("it calls something not known")
        return self.call(self._code.function(function.name), positional, named)

    def _operation(self, root: str, name: str, positional: list[Value], named: Names) -> Value:
        if root == "ops":
            namespace, _, name = name.partition(".")
            name = name if namespace == "aten" else f"{namespace}:{name}"
        if name == "prim:RaiseException":
            raise Raised
        if name == "device":
            return "device"
        changed = positional[0] if positional else None
        if name in _LIST_CHANGES and isinstance(changed, Items) and changed.owner is not None:
            self.assigned.add(changed.owner)
        if name == "append" and isinstance(changed, Items) and not self._tape.in_trial:
            changed.extend(positional[1:2])
            return changed
        if name in _LIST_CHANGES and isinstance(changed, dict):
            raise NotFollowed("it changes a dictionary")
        if name in _LIST_CHANGES and isinstance(changed, Items):
            changed.is_known = False
            changed.extend(handles_in(positional[1:]))
            return self._part(changed)
        found = NOT_PLAIN if named else computed(name, positional)
        if found is not NOT_PLAIN:
            return found
        if len(positional) == 1 and isinstance(positional[0], Handle) and name in ("size", "dim"):
            return self._shape(name, positional[0])
        return self._tape.call(name, positional, named)

    def _shape(self, name: str, tensor: Handle) -> Value:
        rank = self._tape.rank(tensor.name)
        if rank is None:
            return self._tape.opaque(name, tensor)
        return rank if name == "dim" else Items(self._tape.call("size", (tensor, n), {}) for n in range(rank))

    def _builtin(self, name: str, positional: list[Value]) -> Value:
        is_counted = all(type(each) is int and abs(each) < _LARGEST // 4 for each in positional)
        if name == "range" and is_counted and len(positional) in (1, 2):
            return range(*positional)
        found = computed(name, positional)
        return self._part(positional) if found is NOT_PLAIN else found
