"""The operations that are a linear layer, and the stored constants behind the names they use.

Quantised weights stand for (q − zero point) · scale. Where the product itself is made of integers, its
scale is found in the multiplication that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from argmaxable.models.graph.nodes import LONGEST_WALK, Graph, Node

_LAYOUT_OF_VECTORS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_CARRYING = frozenset({"Identity", "Cast"})
_IDENTITY = frozenset({"Identity"})
_INTEGER_PRODUCTS = frozenset({"MatMulInteger", "ConvInteger"})
CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv"})
# A multiplication of two scales and a product has two factors to look into; more is some other formula.
_MOST_FACTORS = 8


@dataclass(frozen=True)
class Stored:
    """A constant of the file, and what is done to it before use: dequantised, then cast, then multiplied.

    `scale` and `zero_point` name other constants; where they are lists, they run along `axis` of the stored
    array. `casts` are ONNX's numbers of types.
    """

    name: str
    scale: str = ""
    zero_point: str = ""
    axis: int = 0
    casts: tuple[int, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True)
class Features:
    """What a layer is given: a tensor and the axis, counted from the end, that the features lie along.

    `rank` is the number of axes where it is known. Quantised features are whole numbers of steps from a
    zero point: `scale` and `zero_point` name these constants, `in_steps` says that the layer takes the
    whole numbers as they are. `rounded` ones are quantised by the layer itself.
    """

    tensor: str
    axis: int = -1
    rank: int | None = None
    scale: str = ""
    zero_point: str = ""
    in_steps: bool = False
    rounded: bool = False


@dataclass(frozen=True)
class Product:
    """A linear layer as one operation computes it: features · weight, plus a bias of its own."""

    weight: Stored
    stored_by_class: bool
    features: Features
    bias: Stored | None = None


@dataclass(frozen=True)
class _Form:
    """The places of an operation's weight, scale, zero point and bias; 0, the features' place, is none.

    Operations that take quantised features have their scale and zero point at places 1 and 2. Their bias is
    a whole number of steps, each the product of the features' and the weight's scale.
    """

    weight: int
    scale: int = 0
    zero_point: int = 0
    bias: int = 0
    takes_steps: bool = False


_FORMS = {
    "MatMul": _Form(1),
    "FusedMatMul": _Form(1),
    "Gemm": _Form(1, bias=2),
    "Conv": _Form(1, bias=2),
    "MatMulInteger": _Form(1, zero_point=3),
    "ConvInteger": _Form(1, zero_point=3),
    "DynamicQuantizeMatMul": _Form(1, scale=2, zero_point=3, bias=4),
    "MatMulIntegerToFloat": _Form(1, scale=3, zero_point=5, bias=6),
    "QLinearMatMul": _Form(3, scale=4, zero_point=5, takes_steps=True),
    "QGemm": _Form(3, scale=4, zero_point=5, bias=6, takes_steps=True),
    "QLinearConv": _Form(3, scale=4, zero_point=5, bias=8, takes_steps=True),
}


def linear_product(graph: Graph, node: Node, scale: str = "") -> Product | None:
    """The linear layer a node computes, or None; `scale` is what integer products are multiplied with."""
    form = _FORMS.get(node.op)
    if form is None or not (node.input(0) and node.input(form.weight)):
        return None
    if node.op in CONVOLUTIONS:
        return _convolution(graph, node, form, scale)
    left, right = stored_matrix(graph, node.input(0)), stored_matrix(graph, node.input(form.weight))
    if left is not None and len(graph.constants[left[0].name]) != 2:
        return None
    if left is not None and right is None and node.op == "MatMul":  # W x: classes × features
        return Product(left[0], not left[1], Features(node.input(1), axis=-2))
    if left is not None or right is None or len(graph.constants[right[0].name]) != 2:
        return None
    by_class = right[1] != bool(node.number("transB", 0))
    axis = -2 if node.number("transA", 0) else -1
    features = Features(node.input(0), axis, rank=2 if node.op in ("Gemm", "QGemm") else None)
    return _completed(graph, node, form, scale, Product(right[0], by_class, features))


def stored_matrix(graph: Graph, name: str) -> tuple[Stored, bool] | None:
    """The stored constant behind a name, and whether it is transposed on the way."""
    transposed, casts = False, list[int]()
    for _ in range(LONGEST_WALK):
        node = graph.producers.get(name)
        if name in graph.constants or node is None:
            break
        if node.op == "DequantizeLinear":
            found = _dequantised(graph, node)
            return None if found is None else (replace(found[0], casts=tuple(casts)), transposed != found[1])
        if _is_transposition(node):
            transposed = not transposed
        elif node.op == "Cast":
            casts.insert(0, int(node.number("to", 0)))
        elif node.op != "Identity":
            break
        name = node.input(0)
    return (Stored(name, casts=tuple(casts)), transposed) if name in graph.constants else None


def _is_transposition(node: Node) -> bool:
    return node.op == "Transpose" and node.attributes.get("perm", (1, 0)) == (1, 0)


def stored_vector(graph: Graph, name: str) -> Stored | None:
    """The stored constant behind a name, whatever its layout: a list of numbers has just one order."""
    found = stored_matrix(graph, graph.origin(name, _LAYOUT_OF_VECTORS))
    return None if found is None else found[0]


def integer_product(graph: Graph, node: Node) -> tuple[Node, str] | None:
    """For a multiplication that gives an integer product its scales: that product, and the weight's scale.

    The features' scale is one positive number, worked out for each input, that the features themselves
    are measured in.
    """
    products, scales, feature_scales = list[Node](), list[str](), list[Node]()
    names = list(node.inputs)
    for name in names:  # grows while factors are found to be products themselves
        source = graph.origin(name, _CARRYING)
        producer = graph.producers.get(source)
        if source in graph.constants:
            scales.append(source)
        elif producer is None or len(names) > _MOST_FACTORS:
            return None
        elif producer.op == "Mul":
            names += producer.inputs
        elif producer.op in _INTEGER_PRODUCTS:
            products.append(producer)
        elif producer.op == "DynamicQuantizeLinear" and source in producer.outputs[1:2]:
            feature_scales.append(producer)
        else:
            return None
    if len(products) != 1 or len(scales) > 1 or len(feature_scales) != 1:
        return None
    if feature_scales[0].outputs[0] != products[0].input(0):
        return None
    return products[0], scales[0] if scales else ""


def _convolution(graph: Graph, node: Node, form: _Form, scale: str) -> Product | None:
    """A convolution that looks at one position only is a linear layer at each of them."""
    found = stored_matrix(graph, node.input(form.weight))
    shape = () if found is None else graph.constants[found[0].name]
    if found is None or found[1] or len(shape) < 3 or set(shape[2:]) != {1}:
        return None
    if node.number("group", 1) != 1 or any(node.integers("pads") or ()):
        return None
    features = Features(node.input(0), axis=1 - len(shape), rank=len(shape))
    return _completed(graph, node, form, scale, Product(found[0], True, features))


def _completed(graph: Graph, node: Node, form: _Form, scale: str, product: Product) -> Product | None:
    """The product with the scale, zero point, factors and bias that its operation has for it."""
    places = [place for place in (form.scale, form.zero_point, form.bias) if place and node.input(place)]
    constants = {place: stored_vector(graph, node.input(place)) for place in places}
    if None in constants.values() or (form.takes_steps and node.number("alpha", 1.0) <= 0):
        return None
    names = {place: constant.name for place, constant in constants.items() if constant is not None}
    if form.scale or form.zero_point:
        weight = replace(
            product.weight,
            scale=names.get(form.scale, scale),
            zero_point=names.get(form.zero_point, ""),
            axis=0 if product.stored_by_class else 1,
        )
    else:
        weight = replace(product.weight, factor=node.number("alpha", 1.0))
    bias = constants.get(form.bias)
    if bias is not None and form.takes_steps:
        # Measured in steps of the features' scale, which product and bias share, only the weight's is left.
        bias = replace(bias, scale=weight.scale)
    elif bias is not None:
        bias = replace(bias, factor=node.number("beta", 1.0))
    features = _quantised_features(node, form, product.features, in_steps=bias is not None)
    return replace(product, weight=weight, features=features, bias=bias)


def _quantised_features(node: Node, form: _Form, features: Features, *, in_steps: bool) -> Features:
    if form.takes_steps:
        return replace(features, scale=node.input(1), zero_point=node.input(2), in_steps=in_steps)
    return replace(features, rounded=node.op == "DynamicQuantizeMatMul")


def _dequantised(graph: Graph, node: Node) -> tuple[Stored, bool] | None:
    """The constant that a DequantizeLinear is given, and whether it is transposed before that."""
    names = [graph.origin(node.input(place), _IDENTITY) for place in range(3)]
    before = graph.producers.get(names[0])
    transposed = names[0] not in graph.constants and before is not None and _is_transposition(before)
    if before is not None and transposed:
        names[0] = graph.origin(before.input(0), _IDENTITY)
    known = names[0] in graph.constants and names[1] in graph.constants
    if not known or (names[2] and names[2] not in graph.constants) or node.number("block_size", 0):
        return None
    axis = int(node.number("axis", 1))
    rank = len(graph.constants[names[0]])
    if transposed and rank != 2:
        return None
    axis = axis % rank if rank else 0
    return Stored(names[0], names[1], names[2], 1 - axis if transposed else axis), transposed
