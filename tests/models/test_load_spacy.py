"""Heads of spaCy pipelines: the right layer with the right names of classes, and every doubt refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from drawn import ENCODABLE
from fuzz_files import disturbed
from hypothesis import given
from hypothesis import strategies as st
from spacy_writer import Component, Layer, dense, message, save, stored, tags, transitions

from argmaxable.core.boxes import Everywhere
from argmaxable.core.errors import AmbiguousError, InputError, LoadError
from argmaxable.models import find_head, load_head
from argmaxable.models.message_pack import StoredBytes, read_message

RNG = np.random.default_rng(0)
MOVES = {"0": {}, "1": {"Person": 9, "City": 9, "New": -1}, "2": {"Person": 7, "New": -1}, "5": {"": 30}}
NAMES = ["B-Person", "B-City", "I-Person", "O", "B-New", "I-New"]
WEIGHT, BIAS = RNG.normal(size=(6, 4)).astype(np.float32), RNG.normal(size=6).astype(np.float32)
NER = Component("ner", transitions(WEIGHT, BIAS), MOVES)
TAGGER = Component("tagger", tags(WEIGHT, BIAS), cfg={"labels": list("ABCDEF")})


def test_an_entity_recogniser_has_a_row_for_each_move(tmp_path: Path) -> None:
    head = load_head(save(tmp_path, tok2vec=Component("tok2vec"), ner=NER))
    assert head.weight.tobytes() == WEIGHT.tobytes()
    assert head.bias is not None
    assert head.bias.tobytes() == BIAS.tobytes()
    assert [head.label(number) for number in range(6)] == NAMES


def test_the_mark_of_blocked_tokens_is_special(tmp_path: Path) -> None:
    moves = {"1": {"City": 9, "Person": 9}, "2": {"City": 9}, "4": {"City": 7, "": 1}, "5": {"": 30}}
    finding = find_head(save(tmp_path, ner=replace(NER, moves=moves)))
    assert finding.labels is not None
    assert finding.labels.names == ("B-Person", "B-City", "I-City", "U-City", "U-", "O")
    assert finding.special == {4}


def test_the_moves_of_a_parser_have_names_of_their_own(tmp_path: Path) -> None:
    moves = {"0": {"": 5}, "1": {"": 6}, "2": {"nsubj": 3, "det": 3}, "3": {"obj": 2}, "4": {"ROOT": 1}}
    head = load_head(save(tmp_path, parser=replace(NER, factory="parser", moves=moves)))
    assert [head.label(number) for number in range(6)] == ["S", "D", "L-nsubj", "L-det", "R-obj", "B-ROOT"]


def test_what_masked_moves_mean_is_said(tmp_path: Path) -> None:
    finding = find_head(save(tmp_path, ner=NER))
    assert finding.inputs is not None
    assert finding.inputs.domain == Everywhere()
    assert "not allow" in finding.notes[0]


@pytest.mark.parametrize(
    ("factory", "cfg"),
    [
        ("tagger", {"labels": list("ABCDEF")}),
        ("morphologizer", {"labels_morph": dict.fromkeys("ABCDEF", "")}),
        ("textcat", {"labels": list("ABCDEF")}),
    ],
)
def test_a_softmax_has_the_labels_of_its_cfg(tmp_path: Path, factory: str, cfg: dict[str, Any]) -> None:
    finding = find_head(save(tmp_path, mine=replace(TAGGER, factory=factory, cfg=cfg)))
    assert (finding.weight.name, finding.activation) == ("mine/softmax.W", "softmax")
    assert finding.head("m").weight.tobytes() == WEIGHT.tobytes()
    assert finding.labels is not None
    assert finding.labels.names == tuple("ABCDEF")


def test_a_sentence_recogniser_has_two_classes(tmp_path: Path) -> None:
    head = load_head(save(tmp_path, senter=Component("senter", tags(WEIGHT[:2], BIAS[:2]))))
    assert [head.label(0), head.label(1)] == ["I", "S"]


def test_a_text_classifier_of_several_labels_has_a_sigmoid(tmp_path: Path) -> None:
    # As TextCatEnsemble has it: the reference leads to a part of the model, not to its last layer.
    layers = [Layer("chain", refs={"output_layer": 3}), Layer("x"), dense("linear", WEIGHT, BIAS),
              dense("sparse_linear", BIAS, BIAS), Layer("logistic")]  # fmt: skip
    component = Component("textcat_multilabel", layers, cfg={"labels": list("ABCDEF")})
    finding = find_head(save(tmp_path, textcat=component))
    assert finding.activation == "sigmoid"
    assert finding.head("m").weight.tobytes() == WEIGHT.tobytes()


def test_of_several_heads_one_has_to_be_named(tmp_path: Path) -> None:
    save(tmp_path, ner=NER, tagger=TAGGER)
    with pytest.raises(LoadError, match=r"2 output layers: ner/upper\.W \(6 × 4, float32\), tagger/softmax"):
        find_head(tmp_path)
    assert find_head(tmp_path, tensor="ner").weight.name == "ner/upper.W"
    assert find_head(tmp_path, tensor="tagger/softmax.W").weight.name == "tagger/softmax.W"
    with pytest.raises(LoadError, match="'tok2vec' not found"):
        find_head(tmp_path, tensor="tok2vec")


def test_an_installed_package_leads_to_the_pipeline_in_it(tmp_path: Path) -> None:
    (tmp_path / "ja-1.0").mkdir()
    save(tmp_path / "ja-1.0", ner=NER)
    assert load_head(tmp_path).weight.tobytes() == WEIGHT.tobytes()


@pytest.mark.parametrize(
    ("component", "said"),
    [
        (replace(NER, layers=transitions(WEIGHT, BIAS, has_upper=False)), "use_upper = false"),
        (replace(NER, layers=tags(WEIGHT, BIAS)), "not a TransitionBasedParser"),
        (replace(NER, moves={"1": {"Person": 1}}), "for the 1 classes"),
        (replace(NER, moves={"7": {"Person": 1}}), "not counts of labels"),
        (replace(NER, moves=None), "moves is missing"),
        (replace(NER, layers=()), "model is missing"),
        (replace(NER, factory="attribute_ruler"), "without an output layer"),
        (replace(TAGGER, cfg={"labels": list("ABC")}), "0 of its layers"),
        (replace(TAGGER, layers=[*tags(WEIGHT, BIAS), dense("softmax", WEIGHT, BIAS)]), "2 of its layers"),
        (replace(TAGGER, cfg={}), "no labels"),
        (replace(TAGGER, layers=tags(WEIGHT, BIAS[:3])), "a bias of shape"),
        (replace(TAGGER, layers=tags(WEIGHT.astype(">f4"), BIAS)), "little-endian floats"),
        (replace(TAGGER, layers=tags(WEIGHT, BIAS, softmax_temperature=-1.0)), "temperature"),
    ],
)
def test_what_is_not_a_known_head_is_refused(tmp_path: Path, component: Component, said: str) -> None:
    save(tmp_path, mine=component)
    with pytest.raises(LoadError, match=said):
        load_head(tmp_path)


@pytest.mark.parametrize(
    ("component", "said"),
    [
        (replace(NER, layers=transitions(WEIGHT, BIAS, upper=5)), "upper layer is said to be 5"),
        (replace(TAGGER, cfg={"labels": list("ABCDEE")}), "label 'E' twice"),
    ],
)
def test_two_readings_are_refused(tmp_path: Path, component: Component, said: str) -> None:
    save(tmp_path, mine=component)
    with pytest.raises(AmbiguousError, match=said):
        load_head(tmp_path)


def change_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    return change


def renumber(folder: Path) -> None:
    said = message(NER.layers)
    said["nodes"][3]["index"] = 5
    (folder / "ner" / "model").write_bytes(msgpack.packb(said))


def shorten(folder: Path) -> None:
    said = message(NER.layers)
    said["params"][3]["W"] = stored(WEIGHT) | {b"shape": (7, 4)}
    (folder / "ner" / "model").write_bytes(msgpack.packb(said))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_text("config.cfg", "[paths]", "[nlp]\n[paths]"), "twice"),
        (change_text("config.cfg", 'lang = "ja"', "pipeline = []"), "twice"),
        (change_text("config.cfg", '["ner"]', '["ner", "ner"]'), "twice"),
        (change_text("config.cfg", '["ner"]', "3"), "lists no components"),
        (
            change_text("config.cfg", '["ner"]', '["../x"]\n[components.../x]\nfactory = "ner"'),
            "can't be a folder",
        ),
        (change_text("config.cfg", "[paths]", "paths"), "can't be read"),
        (renumber, "layer 3 says that it is number 5"),
        (shorten, "as many bytes as its shape needs"),
    ],
)
def test_files_that_contradict_themselves_are_refused(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    save(tmp_path, ner=NER)
    change(tmp_path)
    with pytest.raises(LoadError, match=said):
        load_head(tmp_path)


# ---------------------------------------------------------------------- MessagePack

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(ENCODABLE),
    lambda inside: st.lists(inside, max_size=20) | st.dictionaries(st.text(ENCODABLE), inside, max_size=20),
)


@given(VALUES)
def test_every_value_comes_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "value.msgpack"
    path.write_bytes(msgpack.packb(value))
    assert read_message(path, "a value") == value


@pytest.mark.parametrize("size", [3, 300, 70_000])
def test_bytes_stay_in_the_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "value.msgpack"
    path.write_bytes(
        msgpack.packb([1, bytes(size), "x" * size, [7] * size, {f"{k}": k for k in range(size)}])
    )
    read = read_message(path, "a value")
    assert isinstance(read[1], StoredBytes)
    assert read[1].size == size
    assert (read[2], read[3], len(read[4])) == ("x" * size, [7] * size, size)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\xc1", "is unknown"),
        (b"\x01\x01", "bytes after"),
        (b"\xdd\xff\xff\xff\xff", "bytes are left|are left"),
        (b"\xdf\xff\xff\xff\xff\xa1a", "are left"),
        (b"\xa2\xff\xff", "not UTF-8"),
        (b"\x81\x01\x01", "neither a text nor bytes"),
        (b"\x82\xa1a\x01\xa1a\x02", "occurs twice"),
        (b"\x91" * 1000 + b"\x01", "nested"),
        (b"\xdd\x00\x20\x00\x00" + bytes(2**21), "more than 1048576 values"),
    ],
)
def test_damaged_messages_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "value.msgpack"
    path.write_bytes(data)
    with pytest.raises(LoadError, match=said):
        read_message(path, "a value")


@pytest.mark.parametrize("name", ["ner/model", "ner/moves", "tagger/cfg", "tagger/model", "config.cfg"])
def test_changed_files_raise_nothing_but_our_errors(tmp_path: Path, name: str) -> None:
    save(tmp_path, ner=NER, tagger=TAGGER)
    whole = (tmp_path / name).read_bytes()
    rng = random.Random(name)
    for _ in range(40):
        (tmp_path / name).write_bytes(disturbed(rng, whole))
        try:
            head = load_head(tmp_path, tensor=name.partition("/")[0].replace("config.cfg", "ner"))
        except InputError:
            continue
        assert head.weight.shape == WEIGHT.shape


def test_a_folder_with_a_config_but_no_meta_is_not_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "config.cfg").write_text("[nlp]\n")
    with pytest.raises(LoadError, match="is a directory, expected"):
        find_head(tmp_path)
