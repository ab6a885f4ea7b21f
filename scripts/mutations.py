"""Small errors for a module: a mutant is its syntax tree with one node replaced. docs/mutants.md says which.

What can't matter by construction is counted and not tried: `SKIPPED`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_PAIRS = "min max, minimum maximum, argmin argmax, all any, round_down round_up"
_NAMES = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
# Sizes of roundings: without them floats are taken for exact.
_ROUNDINGS = {"UNIT", "TINY", "_ERROR", "_TINY_LENGTH"}
SKIPPED = {
    "text": "strings, which messages are made of",
    "warning": "arguments of np.errstate, which silence warnings and change no number",
    "typing": "asserts and `strict=True` of zip, which hold by construction, and annotations",
    "wider": "numbers in the size of a rounding, in gamma(…) or beside UNIT: one more makes a bound wider",
}


@dataclass(frozen=True)
class Mutant:
    """One node of a module's tree and what replaces it."""

    place: str
    change: str
    module: ast.Module
    site: _Site
    new: ast.AST

    @property
    def name(self) -> str:
        return f"{self.place}: {self.change}"

    def tree(self) -> ast.Module:
        """The changed module; the tree that its other mutants share is changed with it."""
        self.site.put(self.new)
        return ast.fix_missing_locations(self.module)


@dataclass(frozen=True)
class _Site:
    """A node in a function ('' for the constants of a module), which tests meet that run one of the lines."""

    node: ast.AST
    parent: ast.AST
    function: str
    lines: range
    is_wider: bool

    def put(self, new: ast.AST) -> None:
        for field, value in ast.iter_fields(self.parent):
            if value is self.node:
                setattr(self.parent, field, new)
            elif isinstance(value, list):
                value[:] = [new if one is self.node else one for one in value]


def mutants(source: str, name: str, skipped: Counter[str]) -> Iterator[Mutant]:
    """All mutants of a module."""
    module, seen = ast.parse(source), Counter[tuple[str, str]]()
    for site in _sites(module, "", range(0), False, skipped):
        for new in _replacements(site.node, site.is_wider, skipped):
            place, change = f"{name} {site.function or 'constants'}", f"{_text(site.node)} → {_text(new)}"
            seen[place, change] += 1
            if seen[place, change] > 1:
                change += f" ({seen[place, change]})"
            yield Mutant(place, change, module, site, new)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split()) if not isinstance(node, ast.Pass) else "nothing"
    return text if len(text) < 90 else text[:60] + " … " + text[-25:]


def _sites(
    parent: ast.AST, function: str, lines: range, is_wider: bool, skipped: Counter[str]
) -> Iterator[_Site]:
    for child in ast.iter_child_nodes(parent):
        inside, where = function, lines
        if isinstance(child, ast.Assert) or (isinstance(child, ast.keyword) and child.arg == "strict"):
            skipped["typing"] += 1
            continue
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_docstring or isinstance(child, ast.arguments) or _is_around(parent, child):
            continue
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and not isinstance(parent, ast.FunctionDef):
            inside = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.stmt):
            head: ast.AST = getattr(child, "test", getattr(child, "iter", child))  # of if, while and for
            where = range(child.lineno, (getattr(head, "end_lineno", 0) or 0) + 1)
            if isinstance(child, ast.With):
                where = range(child.lineno, child.body[0].lineno)
        wider = is_wider or (isinstance(parent, ast.Call) and ast.unparse(parent.func) == "gamma")
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult):
            wider |= _is_rounding(parent.right if child is parent.left else parent.left)
        wider &= isinstance(child, ast.BinOp | ast.Constant)
        yield _Site(child, parent, inside, where, wider)
        yield from _sites(child, inside, where, wider, skipped)


def _is_around(parent: ast.AST, child: ast.AST) -> bool:
    """Whether this is an annotation, a decorator or a base class."""
    around = [getattr(parent, name, None) for name in ("annotation", "returns")]
    around += [*getattr(parent, "decorator_list", ()), *getattr(parent, "bases", ())]
    return any(child is one for one in around)


def _is_rounding(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_rounding(node.left) or _is_rounding(node.right)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "gamma"
    return isinstance(node, ast.Name) and node.id in _ROUNDINGS


def _replacements(node: ast.AST, is_wider: bool, skipped: Counter[str]) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for k, op in enumerate(node.ops):
                ops = [*node.ops[:k], _COMPARISONS[type(op)](), *node.ops[k + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
        case ast.AugAssign():
            yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)
            yield ast.Pass()
        case ast.BoolOp():
            for k in range(len(node.values)):
                rest = [*node.values[:k], *node.values[k + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float()) if is_wider:
            skipped["wider"] += 1
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str()):
            skipped["text"] += 1
        case ast.Name(ctx=ast.Load()) if node.id in _ROUNDINGS:
            yield ast.Constant(0.0)
        case ast.Attribute(attr="inf"):
            yield ast.Constant(0.0)
        case ast.Call():
            yield from _calls(node, skipped)
        case ast.If() if not _is_negated_elsewhere(node.test):
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp() if not _is_negated_elsewhere(node.test):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.comprehension():
            for k in range(len(node.ifs)):
                rest = [*node.ifs[:k], *node.ifs[k + 1 :]]
                yield ast.comprehension(node.target, node.iter, rest, node.is_async)
        case ast.Expr(value=ast.Call() | ast.YieldFrom()):
            yield ast.Pass()
        case ast.Assign() if not isinstance(node.targets[0], ast.Name | ast.Tuple | ast.Attribute):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _is_negated_elsewhere(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In)
    return isinstance(test, ast.UnaryOp) or ast.unparse(test) == "TYPE_CHECKING"


def _calls(node: ast.Call, skipped: Counter[str]) -> Iterator[ast.AST]:
    name = ast.unparse(node.func)
    if name == "np.errstate":
        skipped["warning"] += len(node.keywords)
        return
    if name == "gamma":
        yield ast.Constant(0.0)
    if name in ("np.abs", "abs"):
        yield node.args[0]
    for k, keyword in enumerate(node.keywords):
        if keyword.arg == "strict":
            skipped["typing"] += 1
            continue
        yield ast.Call(node.func, node.args, [*node.keywords[:k], *node.keywords[k + 1 :]])
    if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
        yield ast.Call(ast.Name(_NAMES[node.func.id], ast.Load()), node.args, node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _NAMES:
        func = ast.Attribute(node.func.value, _NAMES[node.func.attr], ast.Load())
        yield ast.Call(func, node.args, node.keywords)
