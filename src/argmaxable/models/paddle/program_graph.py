"""A PaddlePaddle program as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

An operation that is not understood becomes `paddle:…`, which ends every walk: a head is then refused, or its
inputs are taken as unbounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from argmaxable.models.graph.nodes import Graph, Node
from argmaxable.models.paddle.operations import TRANSLATIONS, Operands
from argmaxable.models.paddle.parameters import Parameter
from argmaxable.models.paddle.program import NotUnderstood, Operation, Program

# Slots of the inputs that are translated, in ONNX's order; X alone unless told here.
_INPUTS = {
    **{"matmul": ("X", "Y"), "matmul_v2": ("X", "Y"), "mul": ("X", "Y")},
    **{"conv2d": ("Input", "Filter", "Bias"), "layer_norm": ("X", "Scale", "Bias")},
    **{f"elementwise_{each}": ("X", "Y") for each in ("add", "mul", "max", "min")},
}
_OUTPUT = {"conv2d": "Output", "layer_norm": "Y"}
# A new shape, which bounds don't depend on.
_SHAPES = frozenset({"Shape", "ShapeTensor"})
_OPTIONAL = frozenset({"Bias"})
_PRODUCTS = frozenset({"FusedMatMul", "Conv"})
# What may lie between a product and the output.
_TRACED = frozenset(
    {"Add", "Softmax", "LogSoftmax", "Exp", "Log", "ArgMax"}
    | {"Identity", "Cast", "Dropout", "Transpose", "Squeeze", "Unsqueeze"}
)


@dataclass
class _Parts:
    """The graph under construction.

    A program may write a variable again, a parameter too. Each time it gets a new name here, so that what
    was read before and after are told apart.
    """

    parameters: Mapping[str, Parameter]
    nodes: list[Node] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    producers: dict[str, str] = field(default_factory=dict)
    logits: set[str] = field(default_factory=set)


def translate(program: Program, parameters: Mapping[str, Parameter]) -> Graph:
    """The program's graph. Its outputs are what the fetch operations take."""
    writes = Counter(
        name for operation in program.operations for names in operation.outputs.values() for name in names
    )
    parts = _Parts(parameters)
    for name, variable in program.variables.items():
        # What is declared of a variable that is written twice holds for one of its values only.
        if variable.tensor is not None and writes[name] + (name in parameters) == 1:
            parts.shapes[name] = variable.tensor.shape
    for operation in program.operations:
        _add(parts, operation)
    return Graph(
        nodes=tuple(parts.nodes),
        outputs=tuple(dict.fromkeys(parts.outputs)),
        constants={name: parameter.shape for name, parameter in parameters.items()},
        types={name: parameter.dtype for name, parameter in parameters.items()},
        shapes=parts.shapes,
    )


def _add(parts: _Parts, operation: Operation) -> None:
    inputs = {slot: tuple(_read(parts, name) for name in names) for slot, names in operation.inputs.items()}
    if operation.kind == "fetch":
        parts.outputs.extend(inputs.get("X", ()))
        return
    outputs = {
        slot: tuple(_written(parts, name) for name in names) for slot, names in operation.outputs.items()
    }
    if operation.kind == "feed":  # what nothing computes is the model's input
        return
    result = outputs.get(_OUTPUT.get(operation.kind, "Out"), ())
    try:
        nodes = _translated(parts, operation, inputs, result)
    except NotUnderstood:
        nodes = [Node(_foreign(operation), _all(inputs), result, {})]
    others = tuple(name for name in _all(outputs) if name not in result)
    parts.nodes += [*nodes, Node(_foreign(operation), _all(inputs), others, {})] if others else nodes
    last = nodes[-1]
    parts.producers |= {name: last.op for name in result}
    if last.op in _PRODUCTS or (last.op in _TRACED and last.input(0) in parts.logits):
        parts.logits.update(result)


def _read(parts: _Parts, name: str) -> str:
    """The name here of a variable that is read now, which must not be that of a value written later."""
    unset = name if name in parts.parameters or not name else f"{name}\0unset"
    return parts.names.get(name, unset)


def _written(parts: _Parts, name: str) -> str:
    """The name here of a variable that is written now."""
    parts.writes[name] += 1
    number = parts.writes[name] - (name not in parts.parameters)
    # A zero byte keeps the new name apart from those of the program's variables.
    parts.names[name] = f"{name}\0{number}" if number else name
    return parts.names[name]


def _foreign(operation: Operation) -> str:
    return f"paddle:{operation.kind}"


def _all(slots: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for names in slots.values() for name in names)


def _translated(
    parts: _Parts, operation: Operation, inputs: Mapping[str, tuple[str, ...]], result: tuple[str, ...]
) -> list[Node]:
    """The nodes that do the same; raises NotUnderstood."""
    if len(result) != 1 or _is_fused(operation):
        raise NotUnderstood(operation.kind)
    if operation.kind in ("concat", "sum"):  # bounds need no axis
        return [Node({"concat": "Concat", "sum": "Sum"}[operation.kind], inputs.get("X", ()), result, {})]
    slots = _INPUTS.get(operation.kind, ("X",))
    # A tensor in another slot, such as AxisTensor, would take the place of an attribute.
    if any(names for slot, names in inputs.items() if slot not in slots and slot not in _SHAPES):
        raise NotUnderstood(operation.kind)
    given = [_only(inputs, slot) for slot in slots]
    while given and not given[-1]:
        given.pop()
    known = Operands(
        tuple(parts.shapes.get(name) for name in given),
        tuple(name in parts.parameters for name in given),
        parts.producers.get(given[0], ""),
        given[0] in parts.logits,
    )
    if operation.kind == "mul":
        return _flattening_product(operation, given, known, result)
    translation = TRANSLATIONS.get(operation.kind)
    if translation is None:
        raise NotUnderstood(operation.kind)
    op, attributes = translation(operation, known)
    return [Node(op, tuple(given), result, attributes)]


def _is_fused(operation: Operation) -> bool:
    """Whether something else is done on the way, as in programs that were optimised for one processor."""
    return any(
        value not in (False, "", (), 0) for name, value in operation.attributes.items() if name[:4] == "fuse"
    )


def _only(inputs: Mapping[str, tuple[str, ...]], slot: str) -> str:
    names = inputs.get(slot, ())
    if len(names) > 1 or (not names and slot not in _OPTIONAL) or "" in names:
        raise NotUnderstood(slot)
    return names[0] if names else ""


def _flattening_product(
    operation: Operation, given: list[str], known: Operands, result: tuple[str, ...]
) -> list[Node]:
    """`mul` takes its input as a matrix: the first x_num_col_dims axes are its rows, the rest its columns."""
    rows = operation.attribute("x_num_col_dims", 1)
    if operation.attribute("y_num_col_dims", 1) != 1:
        raise NotUnderstood("y_num_col_dims")
    if known.rank is not None and known.rank == rows + 1:
        return [Node("FusedMatMul", tuple(given), result, {})]
    if rows != 1:  # its result would have to be given its axes back
        raise NotUnderstood("x_num_col_dims")
    flat = f"{result[0]}\0flat"
    return [
        Node("Flatten", (given[0],), (flat,), {"axis": 1}),  # of a matrix it is the same matrix
        Node("FusedMatMul", (flat, given[1]), result, {}),
    ]
