"""Where the walk back from the output must stop, and what is said then."""

from __future__ import annotations

import pytest

from argmaxable.core.errors import LoadError
from argmaxable.models.graph.linear_layer import last_layer, layer_using, other_weights
from argmaxable.models.graph.nodes import LONGEST_WALK, Graph, Node
from argmaxable.models.graph.products import Features, Stored
from argmaxable.models.graph.trace_layer import LinearLayer

CONSTANTS = {"W": (4, 6), "V": (4, 4), "b": (6,), "c": (6,), "cube": (2, 4, 6), "K": (6, 4, 1, 1)}
CONSTANTS |= {"two": (), "minus": (), "s": (), "each": (6,), "zero": (), "big": (6, 4, 3, 3)}
SCALARS = {"two": 2.0, "minus": -2.0}


def node(op: str, inputs: str, output: str, **attributes: float | str | tuple[int, ...]) -> Node:
    return Node(op, tuple(inputs.split()), (output,), attributes)


def graph(*nodes: Node, outputs: str = "y") -> Graph:
    shapes = {"y": (-1, -1, 6)}
    return Graph(nodes, tuple(outputs.split()), CONSTANTS, SCALARS, {"target": (0, -1)}, shapes=shapes)


LINEAR = (node("MatMul", "x W", "xW"), node("Add", "xW b", "z"))
HEAD = LinearLayer(Stored("W"), stored_by_class=False, biases=(Stored("b"),))


@pytest.mark.parametrize(
    ("nodes", "stopped_at"),
    [
        ([node("Relu", "z", "y")], "Relu"),
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
        ([node("Mul", "z minus", "y")], "Mul"),
        ([node("Mul", "z two", "m"), node("Add", "m c", "y")], "Mul"),
        ([node("Div", "two z", "y")], "Div"),
        ([node("Cast", "z", "y", to=7)], "Cast"),
        ([node("GlobalAveragePool", "z", "y")], "GlobalAveragePool"),
        ([node("QuantizeLinear", "z each zero", "y")], "QuantizeLinear"),
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
        "a negative factor",
        "a factor before another bias",
        "a reciprocal",
        "a cast to integers",
        "a mean over the classes",
        "a scale for each class",
    ],
)
def test_a_step_that_may_reorder_classes_ends_the_walk(nodes: list[Node], stopped_at: str) -> None:
    with pytest.raises(LoadError, match=rf"'y': the trace ends at {stopped_at}\. Weights.*: W \(4, 6\)\."):
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
        node("Conv", "x big", "y"),
        node("Conv", "x K", "y", group=2),
        node("Conv", "x K", "y", pads=(1, 1, 1, 1)),
        node("Conv", "x K h", "y"),
        node("QGemm", "x s zero W s zero b", "y", alpha=-1.0),
        node("MatMulInteger", "x W h zp", "y"),
    ],
    ids=lambda product: f"{product.op} {' '.join(product.inputs)} {product.attributes or ''}",
)
def test_a_product_that_is_no_linear_layer_is_no_head(product: Node) -> None:
    with pytest.raises(LoadError, match=rf"ends at {product.op}\. The graph has no linear layer"):
        last_layer(graph(product))


def test_a_quantised_graph_is_told_so() -> None:
    with pytest.raises(LoadError, match="quantised in an unknown way: use the float model"):
        last_layer(graph(node("MatMulNBits", "x W s", "y")))


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Mul", "z two", "y")],
        [node("Mul", "two z", "y")],
        [node("Div", "z two", "t1"), node("Softmax", "t1", "y")],
        [node("ArgMax", "z", "y")],
        [node("Softmax", "z", "p"), node("ArgMax", "p", "i"), node("Cast", "i", "y", to=7)],
        [node("QuantizeLinear", "z s zero", "q"), node("DequantizeLinear", "q s zero", "y")],
    ],
    ids=["a factor", "a factor first", "a temperature", "argmax", "argmax as int64", "rounding"],
)
def test_a_step_that_keeps_the_order_is_passed(nodes: list[Node]) -> None:
    assert last_layer(graph(*LINEAR, *nodes)) == HEAD


def test_rounded_logits_are_noted() -> None:
    nodes = [node("QuantizeLinear", "z s zero", "q"), node("DequantizeLinear", "q s zero", "y")]
    (note,) = last_layer(graph(*LINEAR, *nodes)).notes
    assert note.startswith("the model rounds its logits to 8 bits")


def test_the_mean_of_a_convolutions_logits_is_the_logit_of_the_mean() -> None:
    layer = last_layer(graph(node("Conv", "x K b", "z"), node("GlobalAveragePool", "z", "y")))
    assert layer == LinearLayer(Stored("K"), biases=(Stored("b"),))


@pytest.mark.parametrize(
    ("product", "features"),
    [
        (node("MatMul", "x W", "y"), Features("x", -1, 3)),
        (node("Gemm", "x W", "y"), Features("x", -1, 2)),
        (node("Gemm", "x W", "y", transA=1), Features("x", -2, 2)),
        (node("MatMul", "W x", "y"), Features("x", -2, 3)),
        (node("Conv", "x K", "y"), Features("x", -3, 4)),
        (node("DynamicQuantizeMatMul", "x W s zero", "y"), Features("x", -1, 3, rounded=True)),
        (
            node("QGemm", "x two zero W s zero b", "y"),
            Features("x", -1, 2, scale="two", zero_point="zero", in_steps=True),
        ),
    ],
    ids=lambda value: value.op if isinstance(value, Node) else "",
)
def test_the_layer_knows_where_its_features_are(product: Node, features: Features) -> None:
    assert last_layer(graph(product)).features == (features,)


# ---------------------------------------------------------------------- If


BRANCHES = [node("MatMul", "x W", "then"), node("MatMul", "h W", "else")]


def test_branches_with_the_same_layer_have_one_head() -> None:
    layer = last_layer(graph(*BRANCHES, node("If", "then else", "i"), node("Add", "i b", "y")))
    assert layer == HEAD
    assert len(layer.features) == 2
    assert layer.notes == ()


def test_the_branch_with_a_layer_is_taken_and_that_is_said() -> None:
    layer = last_layer(graph(BRANCHES[0], node("Relu", "h", "other"), node("If", "then other", "y")))
    assert layer == LinearLayer(Stored("W"), stored_by_class=False)
    assert layer.notes == (
        "the trace back from 'y' branches at an If; only one branch leads to a linear layer",
    )


def test_branches_with_different_layers_are_refused() -> None:
    nodes = [BRANCHES[0], node("MatMul", "x V", "other"), node("If", "then other", "y")]
    with pytest.raises(
        LoadError, match=r"the branches of an If lead the output 'y' to different linear layers"
    ):
        last_layer(graph(*nodes))


def test_a_maze_of_branches_is_left_in_time() -> None:
    nodes = [node("If", f"i{n + 1} i{n + 1}", f"i{n}") for n in range(100)]
    with pytest.raises(LoadError, match="the trace ends at If"):
        last_layer(graph(*nodes, node("Identity", "i0", "y")))


# ---------------------------------------------------------------------- several outputs


def test_outputs_of_different_layers_are_refused() -> None:
    nodes = [*LINEAR, node("MatMul", "x V", "boxes")]
    with pytest.raises(LoadError, match=r"2 outputs \(z, boxes\).*V \(4, 4\), W \(4, 6\)"):
        last_layer(graph(*nodes, outputs="z boxes"))


def test_a_second_output_without_a_layer_is_left_out_and_that_is_said() -> None:
    layer = last_layer(graph(*LINEAR, node("Relu", "x", "state"), outputs="z state"))
    assert layer == HEAD
    assert layer.notes == ("outputs that don't come from this layer: state",)


@pytest.mark.parametrize("name", ["logits", "Logits:0", "model/head.logits", "probabilities"])
def test_a_name_decides_between_outputs_of_different_layers(name: str) -> None:
    nodes = [*LINEAR, node("Identity", "z", name), node("MatMul", "x V", "key")]
    layer = last_layer(graph(*nodes, outputs=f"key {name}"))
    assert layer == HEAD
    assert layer.notes == ("outputs that don't come from this layer: key",)


def test_another_outputs_layer_is_not_taken_for_that_of_the_answer() -> None:
    nodes = [*LINEAR, node("Sigmoid", "h", "logits")]
    with pytest.raises(LoadError, match=r"straight to the output 'logits': the trace ends at Sigmoid"):
        last_layer(graph(*nodes, outputs="z logits"))


def test_no_output_with_a_layer_names_where_the_ways_end() -> None:
    nodes = [node("Relu", "x", "u"), node("Sigmoid", "x", "v")]
    with pytest.raises(
        LoadError, match=r"straight to the 2 outputs \(u, v\): the trace ends at Relu, Sigmoid"
    ):
        last_layer(graph(*nodes, outputs="u v"))


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
    with pytest.raises(LoadError, match="the trace ends at"):
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
    assert layer_using(graph(*nodes), "V") == last_layer(graph(*nodes)) == LinearLayer(Stored("V"))


def test_a_reshape_that_may_cut_the_classes_is_reported() -> None:
    layer = last_layer(graph(*LINEAR, node("Reshape", "z target", "y")))
    assert layer.crossing.startswith("has 6 columns but is reshaped to [0, -1]")


# ---------------------------------------------------------------------- constants and quantisation


@pytest.mark.parametrize(
    ("nodes", "stored"),
    [
        ([node("Cast", "W", "w", to=1)], Stored("W", casts=(1,))),
        ([node("Cast", "W", "u", to=10), node("Cast", "u", "w", to=1)], Stored("W", casts=(10, 1))),
        ([node("DequantizeLinear", "W s zero", "w")], Stored("W", "s", "zero", 1)),
        ([node("DequantizeLinear", "W each", "w", axis=-1)], Stored("W", "each", axis=1)),
        (
            [node("DequantizeLinear", "W each", "u", axis=0), node("Cast", "u", "w", to=1)],
            Stored("W", "each", casts=(1,)),
        ),
    ],
    ids=["cast", "two casts", "one scale", "a scale per column", "scaled, then cast"],
)
def test_what_is_done_to_a_stored_weight_is_remembered(nodes: list[Node], stored: Stored) -> None:
    assert last_layer(graph(*nodes, node("MatMul", "x w", "y"))).weight == stored


@pytest.mark.parametrize(
    "nodes",
    [
        [node("DequantizeLinear", "W h", "w")],
        [node("DequantizeLinear", "W s h", "w")],
        [node("DequantizeLinear", "W s", "w", block_size=2)],
        [node("Relu", "W", "w")],
    ],
    ids=["a varying scale", "a varying zero point", "blocks", "another operation"],
)
def test_a_weight_that_is_not_just_stored_is_none(nodes: list[Node]) -> None:
    with pytest.raises(LoadError, match="the trace ends at MatMul"):
        last_layer(graph(*nodes, node("MatMul", "x w", "y")))


def dynamic(*multiplications: Node) -> list[Node]:
    """A layer as dynamic quantisation writes it, up to its scales."""
    quantise = Node("DynamicQuantizeLinear", ("x",), ("xq", "xs", "xz"), {})
    return [
        quantise,
        node("MatMulInteger", "xq W xz zero", "i"),
        node("Cast", "i", "f", to=1),
        *multiplications,
    ]


@pytest.mark.parametrize(
    "multiplications",
    [
        [node("Mul", "xs s", "scales"), node("Mul", "f scales", "m")],
        [node("Mul", "s xs", "scales"), node("Mul", "scales f", "m")],
        [node("Mul", "f xs", "half"), node("Mul", "half s", "m")],
    ],
    ids=["usual", "swapped", "one after the other"],
)
def test_the_scale_of_an_integer_product_is_found(multiplications: list[Node]) -> None:
    layer = last_layer(graph(*dynamic(*multiplications), node("Add", "m b", "y")))
    assert layer.weight == Stored("W", "s", "zero", axis=1)
    assert layer.biases == (Stored("b"),)
    assert layer.features == (Features("xq", -1, 3),)


@pytest.mark.parametrize(
    "multiplication",
    [
        [node("Mul", "f s", "y")],
        [node("Mul", "f other", "y")],
        [node("Mul", "xs s", "p"), node("Mul", "f p", "q"), node("Mul", "q each", "y")],
        [node("Mul", "f f", "y")],
        [node("Mul", "xs xs", "p"), node("Mul", "f p", "y")],
    ],
    ids=["no scale of the features", "a varying factor", "two constants", "a square", "twice the features'"],
)
def test_an_integer_product_with_other_factors_is_no_layer(multiplication: list[Node]) -> None:
    with pytest.raises(LoadError, match="the trace ends at Mul"):
        last_layer(graph(*dynamic(*multiplication)))


@pytest.mark.parametrize(
    ("product", "weight", "biases"),
    [
        (
            node("MatMulIntegerToFloat", "x W xs each xz zero b", "y"),
            Stored("W", "each", "zero", 1),
            (Stored("b"),),
        ),
        (node("DynamicQuantizeMatMul", "x W s zero b", "y"), Stored("W", "s", "zero", 1), (Stored("b"),)),
        (node("QLinearMatMul", "x two zero W s zero two zero", "y"), Stored("W", "s", "zero", 1), ()),
        (
            node("QGemm", "x two zero W each zero b", "y"),
            Stored("W", "each", "zero", 1),
            (Stored("b", "each"),),
        ),
        (
            node("QGemm", "x two zero W each zero b", "y", transB=1),
            Stored("W", "each", "zero", 0),
            (Stored("b", "each"),),
        ),
        (
            node("QLinearConv", "x two zero K each zero two zero b", "y"),
            Stored("K", "each", "zero"),
            (Stored("b", "each"),),
        ),
        (node("FusedMatMul", "x W", "y", alpha=2.0, transB=1), Stored("W", factor=2.0), ()),
    ],
    ids=lambda value: value.op if isinstance(value, Node) else "",
)
def test_every_operation_keeps_its_constants_in_its_own_places(
    product: Node, weight: Stored, biases: tuple[Stored, ...]
) -> None:
    layer = last_layer(graph(product))
    assert (layer.weight, layer.biases) == (weight, biases)


# ---------------------------------------------------------------------- hostile graphs


def test_an_endless_line_of_operations_is_left_in_time() -> None:
    nodes = [node("Identity", f"t{n + 1}", f"t{n}") for n in range(10_000)]
    nodes += [node("Relu", f"t{n}", f"r{n}") for n in range(0, 10_000, 10)]
    with pytest.raises(LoadError, match="the trace ends at Identity"):
        last_layer(Graph((*nodes, node("Identity", "t0", "y")), ("y",), {}))


def test_a_layer_within_reach_is_found_however_long_the_graph() -> None:
    nodes = [node("Identity", f"t{n + 1}", f"t{n}") for n in range(LONGEST_WALK - 2)]
    long = graph(*nodes, node("MatMul", "x W", f"t{LONGEST_WALK - 2}"), node("Identity", "t0", "y"))
    assert other_weights(long, "") == ["W"]
    assert last_layer(long).weight == Stored("W")
