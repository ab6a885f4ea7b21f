"""Where the walk back from the output must stop, and what is said then."""

from __future__ import annotations

import pytest

from argmaxable.errors import LoadError
from argmaxable.load.graph import Graph, Layer, Node, last_layer, layer_using

CONSTANTS = {"W": (4, 6), "V": (4, 4), "b": (6,), "c": (6,), "cube": (2, 4, 6)}


def node(op: str, inputs: str, output: str, **attributes: float | tuple[int, ...]) -> Node:
    return Node(op, tuple(inputs.split()), (output,), attributes)


def graph(*nodes: Node, outputs: str = "y") -> Graph:
    return Graph(nodes, tuple(outputs.split()), CONSTANTS)


LINEAR = (node("MatMul", "x W", "xW"), node("Add", "xW b", "z"))
HEAD = Layer("W", stored_by_class=False, biases=("b",))


@pytest.mark.parametrize(
    ("nodes", "stopped_at"),
    [
        ([node("Sigmoid", "z", "y")], "Sigmoid"),
        ([node("Mul", "z temperature", "y")], "Mul"),
        ([node("Add", "z residual", "y")], "Add"),
        ([node("Sub", "z other", "y")], "Sub"),
        ([node("ReduceMean", "z", "m"), node("Sub", "z m", "y")], "Sub"),
        ([node("Softmax", "z", "p"), node("Add", "p c", "y")], "Softmax"),
        ([node("Exp", "z", "e"), node("Div", "e other", "y")], "Div"),
        ([node("ReduceSum", "z", "s"), node("Div", "z s", "y")], "Div"),
        ([node("Exp", "z", "e"), node("ReduceSum", "x", "s"), node("Div", "e s", "y")], "Div"),
        ([node("Exp", "z", "e"), node("ReduceMax", "e", "m"), node("Div", "e m", "y")], "Div"),
        ([node("ReduceMax", "z", "m"), node("Max", "m other", "n"), node("Sub", "z n", "y")], "Sub"),
    ],
    ids=[
        "another activation",
        "a scale",
        "a residual",
        "a varying difference",
        "a mean",
        "a sum after softmax",
        "a varying quotient",
        "a sum that may be negative",
        "another tensor's sum",
        "a maximum instead of a sum",
        "a maximum of two tensors",
    ],
)
def test_a_step_that_may_reorder_classes_ends_the_walk(nodes: list[Node], stopped_at: str) -> None:
    with pytest.raises(LoadError, match=rf"'y': the way back ends at {stopped_at}\. Weights.*: W \(4, 6\)\."):
        last_layer(graph(*LINEAR, *nodes))


@pytest.mark.parametrize(
    "product",
    [
        node("MatMul", "x h", "y"),
        node("MatMul", "x b", "y"),
        node("MatMul", "x cube", "y"),
        node("MatMul", "V W", "y"),
        node("Gemm", "W x", "y"),
        node("Gemm", "x W h", "y"),
        node("Gemm", "x", "y"),
        node("Conv", "x W b", "y"),
    ],
    ids=lambda product: f"{product.op} {' '.join(product.inputs)}",
)
def test_a_product_that_is_no_linear_layer_is_no_head(product: Node) -> None:
    with pytest.raises(LoadError, match=rf"ends at {product.op}\. The graph has no linear layer"):
        last_layer(graph(product))


def test_a_quantised_graph_is_told_so() -> None:
    with pytest.raises(LoadError, match="quantised: use the float model"):
        last_layer(graph(node("MatMulInteger", "x W", "i"), node("Cast", "i", "y")))


def test_outputs_of_different_layers_are_refused() -> None:
    nodes = [*LINEAR, node("MatMul", "x V", "boxes")]
    with pytest.raises(LoadError, match=r"2 outputs \(z, boxes\).*V \(4, 4\), W \(4, 6\)"):
        last_layer(graph(*nodes, outputs="z boxes"))


def test_a_second_output_without_a_layer_is_refused() -> None:
    with pytest.raises(LoadError, match=r"2 outputs \(z, state\).*do not all come from one linear layer"):
        last_layer(graph(*LINEAR, node("Relu", "x", "state"), outputs="z state"))


def test_outputs_before_and_after_the_bias_are_refused() -> None:
    with pytest.raises(LoadError, match="do not all come from one linear layer"):
        last_layer(graph(*LINEAR, outputs="xW z"))


@pytest.mark.parametrize("outputs", ["", "x", "W"], ids=["none", "an input", "a constant"])
def test_a_graph_that_computes_no_output_is_refused(outputs: str) -> None:
    with pytest.raises(LoadError, match="computes no output"):
        last_layer(graph(*LINEAR, outputs=outputs))


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Identity", "y", "y")],
        [node("Identity", "u", "y"), node("Reshape", "y", "u")],
        [node("Identity", "t", "t"), node("Add", "xW t", "y")],
        [node("Expand", "t", "t"), node("Sub", "xW t", "y")],
        [node("Identity", "t", "t"), node("Sub", "xW t", "y")],
    ],
)
def test_a_graph_that_runs_in_circles_is_refused(nodes: list[Node]) -> None:
    with pytest.raises(LoadError, match="the way back ends at"):
        last_layer(graph(LINEAR[0], *nodes))


def test_only_the_candidates_nearest_to_the_output_are_listed() -> None:
    names = [f"w{i}" for i in range(9)]
    nodes = [node("MatMul", f"h{i} {name}", f"g{i}") for i, name in enumerate(names)]
    nodes += [node("Relu", f"g{i}", f"h{i + 1}") for i in range(9)]
    deep = Graph(tuple(nodes), ("h9",), {name: (2, 2) for name in names})
    with pytest.raises(LoadError, match=r"w8 \(2, 2\), w7 .*, w3 \(2, 2\) and 3 more\. Choose"):
        last_layer(deep)


def test_a_weight_shared_by_equal_layers_is_one_layer() -> None:
    twice = graph(*LINEAR, node("MatMul", "h W", "hW"), node("Add", "hW b", "y"), outputs="z y")
    assert layer_using(twice, "W") == HEAD
    assert last_layer(twice) == HEAD


def test_a_weight_shared_by_different_layers_is_refused() -> None:
    nodes = [*LINEAR, node("MatMul", "h W", "hW"), node("Add", "hW c", "y")]
    with pytest.raises(LoadError, match="'W' is used by 2 layers that differ"):
        layer_using(graph(*nodes, outputs="z y"), "W")


def test_a_tied_embedding_is_read_as_the_output_layer_reads_it() -> None:
    nodes = [
        node("Gather", "V x", "h"),
        node("Transpose", "V", "Vt", perm=(1, 0)),
        node("MatMul", "h Vt", "y"),
    ]
    assert layer_using(graph(*nodes), "V") == last_layer(graph(*nodes)) == Layer("V", stored_by_class=True)


def test_the_shapes_a_product_is_reshaped_to_are_reported() -> None:
    assert last_layer(graph(*LINEAR, node("Reshape", "z target", "y"))).targets == ("target",)
