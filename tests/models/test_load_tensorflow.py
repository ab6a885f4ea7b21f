"""Heads in TensorFlow's files, which `tensorflow_writer` makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow_writer as tf
from tensorflow_writer import (
    CLASSES,
    FEATURES,
    Saved,
    constant,
    frozen,
    graph,
    head,
    node,
    placeholder,
    weights,
)

from argmaxable import AmbiguousError, Box, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere

WEIGHT, BIAS = weights()
OBJECTS = tf.objects({"layer": 1}, {"kernel": 2, "bias": 3}, {}, {}, bound=(2, 3))
STORED = tf.stored_objects(["", "", tf.KERNEL, tf.BIAS], {"layer": 1}, {"kernel": 2, "bias": 3}, {}, {})


def saved_graph(folder: Path, data: bytes) -> Path:
    path = folder / "graph.pb"
    path.write_bytes(data)
    return path


def holds_head(path: Path) -> bool:
    found = load_head(path)
    same_bias = found.bias is not None and found.bias.tobytes() == BIAS.tobytes()
    return found.weight.tobytes() == np.ascontiguousarray(WEIGHT.T).tobytes() and same_bias


# ---------------------------------------------------------------------- frozen graphs


def test_the_head_of_a_frozen_graph(tmp_path: Path) -> None:
    path = saved_graph(tmp_path, frozen())
    finding = find_head(path)
    assert (finding.format, finding.classes, finding.features) == ("tensorflow", CLASSES, FEATURES)
    assert (finding.weight.name, finding.activation) == ("w", "softmax")
    assert holds_head(path)
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)


def test_a_product_with_a_transposed_weight(tmp_path: Path) -> None:
    nodes = [
        placeholder("x", -1, FEATURES), constant("w", np.ascontiguousarray(WEIGHT.T)), constant("b", BIAS),
        node("xw", "MatMul", "x", "w", transpose_b=True), node("logits", "AddV2", "xw", "b"),
    ]  # fmt: skip
    assert holds_head(saved_graph(tmp_path, graph(*nodes)))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 1)])
def test_a_convolution_of_one_position_is_a_head(tmp_path: Path, kernel: tuple[int, int]) -> None:
    stored = np.broadcast_to(WEIGHT, (*kernel, FEATURES, CLASSES)).copy()
    nodes = [
        placeholder("x", -1, 8, 8, FEATURES), node("tanh", "Tanh", "x"), constant("w", stored),
        constant("b", BIAS), node("xw", "Conv2D", "tanh", "w", data_format="NHWC", padding="SAME"),
        node("logits", "BiasAdd", "xw", "b"), node("p", "Softmax", "logits"),
    ]  # fmt: skip
    path = saved_graph(tmp_path, graph(*nodes))
    if kernel == (1, 1):
        assert holds_head(path)
        assert find_head(path).inputs is not None
    else:
        with pytest.raises(LoadError, match="the trace ends at tensorflow:Conv2D"):
            find_head(path)


def test_channels_first_are_not_followed(tmp_path: Path) -> None:
    nodes = [
        placeholder("x", -1, FEATURES, 8, 8), constant("w", WEIGHT.reshape(1, 1, FEATURES, CLASSES)),
        node("xw", "Conv2D", "x", "w", data_format="NCHW", padding="SAME"),
    ]  # fmt: skip
    with pytest.raises(LoadError, match="the trace ends at tensorflow:Conv2D"):
        find_head(saved_graph(tmp_path, graph(*nodes)))


def test_a_product_over_the_last_of_three_axes(tmp_path: Path) -> None:
    """What Keras writes for a Dense layer of sequences: reshape to a matrix, multiply, reshape back."""
    nodes = [
        placeholder("x", -1, 5, FEATURES),
        constant("flat", np.array([-1, FEATURES], np.int32)), node("matrix", "Reshape", "x", "flat"),
        constant("w", WEIGHT), constant("b", BIAS), node("xw", "MatMul", "matrix", "w"),
        node("shape", "Shape", "x", out_type=tf.type_of("int32")),
        constant("free", np.array([0, 1], np.int32)), constant("axis", np.array(0, np.int32)),
        node("kept", "GatherV2", "shape", "free", "axis", batch_dims=0),
        constant("made", np.array([CLASSES], np.int32)), node("target", "ConcatV2", "kept", "made", "axis"),
        node("back", "Reshape", "xw", "target"), node("logits", "BiasAdd", "back", "b"),
        node("p", "Softmax", "logits"),
    ]  # fmt: skip
    assert holds_head(saved_graph(tmp_path, graph(*nodes)))


@pytest.mark.parametrize(
    ("equation", "is_head"), [("abc,cd->abd", True), ("...c,cd->...d", True), ("abc,cd->adb", False)]
)
def test_an_einsum_that_is_a_product(tmp_path: Path, equation: str, is_head: bool) -> None:
    nodes = [
        placeholder("x", -1, 5, FEATURES), constant("w", WEIGHT), constant("b", BIAS),
        node("xw", "Einsum", "x", "w", equation=equation), node("logits", "AddV2", "xw", "b"),
    ]  # fmt: skip
    path = saved_graph(tmp_path, graph(*nodes))
    if is_head:
        assert holds_head(path)
    else:
        with pytest.raises(LoadError, match="tensorflow:Einsum"):
            find_head(path)


def keras_norm(gain: str = "gamma", shift: str = "beta") -> list[bytes]:
    """A LayerNorm as Keras writes it: x · m + (shift − mean · m)."""
    axes = constant("axes", np.array([1], np.int32))
    return [
        axes,
        constant("gamma", np.linspace(0.5, 2, FEATURES).astype(np.float32)),
        constant("beta", np.linspace(-1, 1, FEATURES).astype(np.float32)),
        constant("epsilon", np.array(1e-3, np.float32)),
        node("mean", "Mean", "x", "axes", keep_dims=True),
        node("held", "StopGradient", "mean"),
        node("squares", "SquaredDifference", "x", "held"),
        node("variance", "Mean", "squares", "axes", keep_dims=True),
        node("sum", "AddV2", "variance", "epsilon"),
        node("inverse", "Rsqrt", "sum"),
        node("m", "Mul", "inverse", gain),
        node("negative", "Neg", "mean"),
        node("shifted", "Mul", "negative", "m"),
        node("rest", "AddV2", "shifted", shift),
        node("scaled", "Mul", "x", "m"),
        node("norm", "AddV2", "scaled", "rest"),
    ]


def test_the_solid_of_a_layer_norm(tmp_path: Path) -> None:
    finding = find_head(saved_graph(tmp_path, frozen(*keras_norm(), features="norm")))
    assert finding.inputs is not None
    domain = finding.inputs.domain
    assert isinstance(domain, LayerNorm)
    rows = np.random.default_rng(1).normal(size=(50, FEATURES)) * 100
    centred = rows - rows.mean(1, keepdims=True)
    z = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-3)
    assert domain.contains(z).all()
    assert np.allclose(domain.shifts(FEATURES), np.linspace(-1, 1, FEATURES))
    assert (np.abs(domain.gains(FEATURES)) >= np.linspace(0.5, 2, FEATURES).astype(np.float32)).all()


@pytest.mark.parametrize("factor", [0.70710677, -0.70710677])
def test_a_gelu_as_keras_writes_it(tmp_path: Path, factor: float) -> None:
    """½ x · erfc(−x / √2); with the other sign it has no lower bound."""
    nodes = [
        constant("c", np.array(factor, np.float32)), constant("half", np.array(0.5, np.float32)),
        node("scaled", "Mul", "half", "x"), node("negative", "Neg", "x"), node("u", "Mul", "negative", "c"),
        node("gate", "Erfc", "u"), node("gelu", "Mul", "scaled", "gate"),
    ]  # fmt: skip
    finding = find_head(saved_graph(tmp_path, frozen(*nodes, features="gelu")))
    assert finding.inputs is not None
    domain = finding.inputs.domain
    if factor > 0:
        assert isinstance(domain, Box)
        assert -0.171 < float(np.min(domain.lo)) <= -0.16997
        assert np.all(domain.hi == np.inf)
    else:
        assert domain == Everywhere()


@pytest.mark.parametrize("change", ["another mean", "another m", "a sum instead of a difference"])
def test_what_only_looks_like_a_layer_norm_bounds_nothing(tmp_path: Path, change: str) -> None:
    nodes = keras_norm()
    replaced = {
        "another mean": node("negative", "Neg", "x"),
        "another m": node("scaled", "Mul", "x", "inverse"),
        "a sum instead of a difference": node("negative", "Identity", "mean"),
    }[change]
    name = replaced[2 : 2 + replaced[1]]
    place = next(i for i, each in enumerate(nodes) if each[2 : 2 + each[1]] == name)
    nodes[place] = replaced
    finding = find_head(saved_graph(tmp_path, frozen(*nodes, features="norm")))
    assert finding.inputs is not None
    assert not isinstance(finding.inputs.domain, LayerNorm)
    assert finding.inputs.domain == Everywhere()


def test_one_value_stands_for_all_that_follow(tmp_path: Path) -> None:
    """As TensorFlow stores a bias of equal numbers."""
    value = tf.number(1, 1) + tf.delimited(2, tf.shape([CLASSES]))
    value += tf.delimited(5, np.array([0.25, 0.5], np.float32).tobytes())
    nodes = [
        placeholder("x", -1, FEATURES), constant("w", WEIGHT),
        node("b", "Const", value=tf.Raw(tf.delimited(8, value))), *head("x"),
    ]  # fmt: skip
    found = load_head(saved_graph(tmp_path, graph(*nodes)))
    assert found.bias is not None
    assert found.bias.tolist() == [0.25] + [0.5] * (CLASSES - 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_that_are_written_as_numbers(tmp_path: Path, dtype: str) -> None:
    bits = {"float16": 0x3800, "bfloat16": 0x3F00}[dtype]  # one half
    value = tf.number(1, tf.TYPES[dtype]) + tf.delimited(2, tf.shape([CLASSES])) + tf.number(13, bits)
    nodes = [
        placeholder("x", -1, FEATURES), constant("w", WEIGHT),
        node("h", "Const", value=tf.Raw(tf.delimited(8, value))),
        node("b", "Cast", "h", SrcT=tf.type_of(dtype), DstT=tf.type_of("float32")), *head("x"),
    ]  # fmt: skip
    found = load_head(saved_graph(tmp_path, graph(*nodes)))
    assert found.bias is not None
    assert found.bias.astype(float).tolist() == [0.5] * CLASSES


# ---------------------------------------------------------------------- SavedModels


def test_variables_as_the_restore_operation_reads_them(tmp_path: Path) -> None:
    finding = find_head(Saved().save(tmp_path / "model"))
    assert (finding.weight.name, finding.bias and finding.bias.name) == ("kernel", "bias")
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)
    assert holds_head(tmp_path / "model")
    assert holds_head(tmp_path / "model" / "saved_model.pb")


def test_variables_as_python_finds_them_by_their_objects(tmp_path: Path) -> None:
    """Keras 3's models restore other variables in the graph than the ones that answer."""
    nothing = tf.function("restore", ["prefix", "a", "b"], {"done": "prefix"})
    model = Saved(functions=(tf.serving(), nothing), restored=("other", "other"), saved_objects=OBJECTS)
    path = model.save(
        tmp_path / "model",
        **{tf.KERNEL: WEIGHT, tf.BIAS: BIAS, "_CHECKPOINTABLE_OBJECT_GRAPH": STORED},
        **{"layer/kernel": WEIGHT + 1, "layer/bias": BIAS + 1},
    )
    assert holds_head(path)


@pytest.mark.parametrize("differ", [False, True])
def test_both_ways_to_restore_must_agree(tmp_path: Path, differ: bool) -> None:
    path = Saved(saved_objects=OBJECTS).save(
        tmp_path / "model",
        **{tf.KERNEL: WEIGHT + differ, tf.BIAS: BIAS, "_CHECKPOINTABLE_OBJECT_GRAPH": STORED},
    )
    if differ:
        with pytest.raises(
            AmbiguousError, match=r"the variable 'kernel' is stored as .* with different values"
        ):
            load_head(path)
    else:
        assert holds_head(path)


def test_a_variable_that_the_model_changes_is_not_a_constant(tmp_path: Path) -> None:
    change = node("more", "AssignAddVariableOp", "kernel", "w:value:0")
    model = Saved(functions=(tf.serving(change), tf.restoring(w="layer/kernel", b="layer/bias")))
    with pytest.raises(LoadError, match="no linear layer leads straight to the output 'scores'"):
        find_head(model.save(tmp_path / "model"))


@pytest.mark.parametrize("name", ["kernel", "other"])
def test_a_variable_that_is_set_after_it_was_restored_is_not_the_stored_one(
    tmp_path: Path, name: str
) -> None:
    nodes = [constant("v", WEIGHT + 1), node("init", "AssignVariableOp", name, "v")]
    path = Saved(more=nodes, initialiser="init").save(tmp_path / "model")
    if name == "other":
        assert holds_head(path)
    else:
        with pytest.raises(LoadError, match="no linear layer leads straight to the output 'scores'"):
            find_head(path)


@pytest.mark.parametrize("op", ["Identity", "ApplyGradientDescent"])
def test_a_variable_of_tensorflow_1_that_something_may_change(tmp_path: Path, op: str) -> None:
    lengths = tf.Raw(tf.delimited(7, tf.shape((FEATURES, CLASSES))))
    nodes = [
        placeholder("x", -1, FEATURES), node("w", "VariableV2", shape=lengths), constant("b", BIAS),
        node("seen", op, "w"), node("xw", "MatMul", "x", "w", "^seen"), node("logits", "BiasAdd", "xw", "b"),
        constant("names", ["layer/kernel"]), constant("slices", [""]), node("prefix", "Placeholder"),
        node("read", "RestoreV2", "prefix", "names", "slices"), node("restore", "Assign", "w", "read"),
    ]  # fmt: skip
    outputs = tf.delimited(1, "scores") + tf.delimited(2, tf.delimited(1, "logits:0"))
    signature = tf.delimited(1, "serving_default") + tf.delimited(2, tf.delimited(2, outputs))
    meta = (
        tf.delimited(2, graph(*nodes))
        + tf.delimited(3, tf.delimited(3, "restore"))
        + tf.delimited(5, signature)
    )
    path = Saved().save(tmp_path / "model")
    (path / "saved_model.pb").write_bytes(tf.delimited(2, meta))
    if op == "Identity":
        assert holds_head(path)
    else:
        with pytest.raises(LoadError, match="no linear layer"):
            find_head(path)


def test_two_variables_with_one_shared_name_are_one(tmp_path: Path) -> None:
    shared = tf.variable("again", (FEATURES, CLASSES), shared_name="kernel")
    model = Saved(restored=("again", "bias"), more=[shared])
    assert holds_head(model.save(tmp_path / "model"))


@pytest.mark.parametrize("recursive", [False, True])
def test_functions_that_call_each_other_without_end_are_refused(tmp_path: Path, recursive: bool) -> None:
    if recursive:
        inner = tf.function("serve", ["x", "k", "b"], {"y": "c:output:0"},
                            node("c", "PartitionedCall", "x", "k", "b", f=tf.calling("serve")))  # fmt: skip
        functions = [inner]
    else:  # each calls the next twice
        functions = [
            tf.function(name, ["x", "k", "b"], {"y": "c:output:0"}, *(
                node(each, "PartitionedCall", "x", "k", "b", f=tf.calling(f"f{number + 1}"))
                for each in "cd"))
            for number, name in enumerate(["serve", *(f"f{each}" for each in range(1, 30))])
        ]  # fmt: skip
        # Nodes without inputs: quicker than so many calls.
        idle = (node(f"n{number}", "NoOp") for number in range(1000))
        functions.append(tf.function("f30", ["x", "k", "b"], {"y": "x"}, *idle))
    model = Saved(functions=[*functions, tf.restoring(w="layer/kernel", b="layer/bias")])
    with pytest.raises(LoadError, match="call each other more than"):
        find_head(model.save(tmp_path / "model"))


def test_a_model_without_its_variables_is_refused(tmp_path: Path) -> None:
    path = Saved().save(tmp_path / "model")
    (path / "variables" / "variables.index").unlink()
    with pytest.raises(LoadError, match="no linear layer"):
        find_head(path)


def test_labels_among_the_assets(tmp_path: Path) -> None:
    path = Saved().save(tmp_path / "model")
    (path / "assets").mkdir()
    (path / "assets" / "labels.txt").write_text("\n".join("abcdef"), encoding="utf-8")
    assert load_head(path).label(1) == "b"


def test_a_signature_that_can_not_be_chosen_is_named(tmp_path: Path) -> None:
    assert holds_head(Saved(signatures=("translate",)).save(tmp_path / "one"))
    assert holds_head(Saved(signatures=("translate", "serve")).save(tmp_path / "usual"))
    with pytest.raises(LoadError, match=r"none of its signatures .*it has other, translate"):
        find_head(Saved(signatures=("translate", "other")).save(tmp_path / "two"))


# ---------------------------------------------------------------------- checkpoints


def test_the_head_of_a_checkpoint_of_bert(tmp_path: Path) -> None:
    index = tf.save_checkpoint(
        tmp_path / "model.ckpt-7.index",
        {
            "output_weights": np.ascontiguousarray(WEIGHT.T), "output_bias": BIAS,
            "output_weights/adam_m": WEIGHT, "bert/pooler/dense/kernel": WEIGHT,
        },
    )  # fmt: skip
    finding = find_head(index)
    assert holds_head(index)
    assert finding.inputs is not None
    assert finding.inputs.domain is None


def test_a_kernel_is_features_by_classes(tmp_path: Path) -> None:
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    index = tf.save_checkpoint(
        tmp_path / "ckpt.index",
        {
            f"model/head/_kernel{end}": WEIGHT,
            f"model/head/bias{end}": BIAS,
            f"model/hidden/_kernel{end}": WEIGHT,
        },
    )
    assert holds_head(index)
    assert load_head(index, tensor="model/hidden/_kernel").bias is None


def test_a_checkpoint_without_a_usual_name_asks_for_one(tmp_path: Path) -> None:
    index = tf.save_checkpoint(tmp_path / "ckpt.index", {"a/kernel": WEIGHT, "b/kernel": WEIGHT})
    with pytest.raises(LoadError, match=r"names and no graph.*a/kernel \(4 × 6, float32\).*--tensor"):
        find_head(index)
    assert load_head(index, tensor="b/kernel").classes == CLASSES


def test_a_missing_file_of_values_is_named(tmp_path: Path) -> None:
    index = tf.save_checkpoint(tmp_path / "ckpt.index", {"logits/kernel": WEIGHT})
    (tmp_path / "ckpt.data-00000-of-00001").unlink()
    with pytest.raises(LoadError, match=r"is in ckpt.data-00000-of-00001, which is not beside"):
        load_head(index)


# ---------------------------------------------------------------------- one reading


def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousError, match="two nodes of a graph are called 'w'"):
        find_head(saved_graph(tmp_path, frozen(constant("w", WEIGHT + 1))))


def test_two_values_of_an_attribute_are_refused(tmp_path: Path) -> None:
    both = tf.Raw(tf.delimited(8, tf.tensor(WEIGHT)) + tf.delimited(8, tf.tensor(WEIGHT + 1)))
    with pytest.raises(AmbiguousError, match="an attribute of node 'v' has two values"):
        find_head(saved_graph(tmp_path, frozen(node("v", "Const", value=both))))


def test_a_tensor_with_values_in_two_fields_is_refused(tmp_path: Path) -> None:
    value = tf.tensor(BIAS) + tf.delimited(5, BIAS.tobytes())
    with pytest.raises(AmbiguousError, match="a tensor has values in two fields"):
        find_head(saved_graph(tmp_path, frozen(node("v", "Const", value=tf.Raw(tf.delimited(8, value))))))


def test_keys_out_of_order_are_refused(tmp_path: Path) -> None:
    index = tf.save_checkpoint(tmp_path / "ckpt.index", {"logits/kernel": WEIGHT})
    entry = tf.number(1, 1) + tf.delimited(2, tf.shape(WEIGHT.shape)) + tf.number(5, WEIGHT.nbytes)
    index.write_bytes(
        tf.table([(b"", tf.number(1, 1)), (b"logits/kernel", entry), (b"logits/kernel", entry)])
    )
    with pytest.raises(AmbiguousError, match="the keys of the table are not in order"):
        find_head(index)


def test_a_checkpoint_may_have_no_name_but_its_suffix(tmp_path: Path) -> None:
    index = tf.save_checkpoint(tmp_path / ".index", {"logits/kernel": WEIGHT.T.copy()})
    for path in (index, tmp_path):
        assert load_head(path).weight.tobytes() == np.ascontiguousarray(WEIGHT).tobytes()


@pytest.mark.parametrize("data", [b"not a graph", b"\x0a\xff\xff\xff\xff\x0f"])
def test_something_else_called_pb_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match=r"is not a readable TensorFlow graph.*tf2onnx"):
        find_head(saved_graph(tmp_path, data))
