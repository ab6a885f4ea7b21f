"""NeMo's archives: heads of CTC models and transducers, their tokens, and what is refused."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from argmaxable import AmbiguousError, LoadError, find_head, load_head
from argmaxable.core.boxes import Box

torch.manual_seed(3)
WEIGHT, BIAS = torch.randn(6, 4), torch.randn(6)
CTC: dict[str, Any] = {
    "encoder.pre.weight": torch.randn(4, 4),
    "decoder.decoder_layers.0.weight": WEIGHT[:, :, None],
    "decoder.decoder_layers.0.bias": BIAS,
}
JOINT: dict[str, Any] = {
    "joint.enc.weight": torch.randn(4, 9),
    "joint.joint_net.2.weight": WEIGHT,
    "joint.joint_net.2.bias": BIAS,
}
CTC_CONFIG = """target: nemo.collections.asr.models.EncDecCTCModel
labels:
- ' '
- a
decoder:
  feat_in: 4
  num_classes: 5
  vocabulary:
  - ' '
  - a
  - ''''
  - "\\xE9"
  - c
optim:
  name: novograd
"""
JOINT_CONFIG = """joint:
  _target_: nemo.collections.asr.modules.RNNTJoint
  num_classes: 5
  jointnet:
    joint_hidden: 4
    activation: relu
    dropout: 0.2
  vocabulary:
  - <unk>
  - ▁the
  - s
  - ▁a
  - x
decoding:
  strategy: greedy_batch
"""
TDT = """loss:
  loss_name: tdt
  tdt_kwargs:
    sigma: 0.05
"""


def tar(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w:") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def pickled(tensors: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    torch.save(tensors, stream)
    return stream.getvalue()


def nemo(folder: Path, config: str, tensors: dict[str, Any]) -> Path:
    members = [("./model_config.yaml", config.encode()), ("./model_weights.ckpt", pickled(tensors))]
    return tar(folder / "model.nemo", members)


def test_the_decoder_of_a_ctc_model_is_its_head(tmp_path: Path) -> None:
    path = nemo(tmp_path, CTC_CONFIG, CTC)
    finding, head = find_head(path), load_head(path)
    assert np.array_equal(np.asarray(head.weight), WEIGHT.numpy())
    assert head.bias is not None
    assert np.array_equal(head.bias, BIAS.numpy())
    assert finding.labels is not None
    assert finding.labels.names == (" ", "a", "'", "é", "c", "<blank>")
    assert finding.special == {5}
    assert finding.inputs is not None
    assert finding.inputs.domain is None


def test_a_classifier_has_its_labels_and_no_blank(tmp_path: Path) -> None:
    config = "labels:\n- 'yes'\n- 'no'\n- up\n- down\n- left\n- right\n" + "decoder:\n  num_classes: 6\n"
    layer = {"decoder.decoder_layers.0.weight": WEIGHT, "decoder.decoder_layers.0.bias": BIAS}
    finding = find_head(nemo(tmp_path, config, layer))
    assert finding.labels is not None
    assert finding.labels.names == ("yes", "no", "up", "down", "left", "right")
    assert finding.special == frozenset()
    assert "classifier" in finding.why


def test_a_decoder_without_a_blank(tmp_path: Path) -> None:
    config = CTC_CONFIG.replace("  num_classes: 5\n", "  num_classes: 6\n  add_blank: false\n")
    finding = find_head(nemo(tmp_path, config.replace("  - c\n", "  - c\n  - d\n"), CTC))
    assert finding.labels is not None
    assert finding.labels.names == (" ", "a", "'", "é", "c", "d")


def test_a_decoder_of_several_layers_is_not_a_head(tmp_path: Path) -> None:
    more = {"decoder.decoder_layers.2.weight": torch.randn(9, 6, 1)}
    with pytest.raises(LoadError, match=r"its decoder has several layers.*--tensor"):
        find_head(nemo(tmp_path, CTC_CONFIG, {**CTC, **more}))


def test_several_decoders_in_one_layer_are_refused(tmp_path: Path) -> None:
    config = CTC_CONFIG.replace("  feat_in: 4\n", "  feat_in: 4\n  num_decoders: 2\n")
    with pytest.raises(LoadError, match="num_decoders"):
        find_head(nemo(tmp_path, config, CTC))


def test_the_last_layer_of_a_joint_network_is_a_transducers_head(tmp_path: Path) -> None:
    path = nemo(tmp_path, JOINT_CONFIG, JOINT)
    finding, head = find_head(path), load_head(path)
    assert np.array_equal(np.asarray(head.weight), WEIGHT.numpy())
    assert finding.labels is not None
    assert finding.labels.names == ("<unk>", " the", "s", " a", "x", "<blank>")
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(0.0, np.inf)


def test_outputs_that_choose_durations_are_left_out(tmp_path: Path) -> None:
    config = JOINT_CONFIG.replace("num_classes: 5", "num_classes: 3\n  num_extra_outputs: 2").replace(
        "  - x\n", ""
    )
    config = config.replace("  - ▁a\n", "")
    path = nemo(tmp_path, config + TDT, JOINT)
    finding, head = find_head(path), load_head(path)
    assert np.array_equal(np.asarray(head.weight), WEIGHT.numpy()[:4])
    assert head.bias is not None
    assert np.array_equal(head.bias, BIAS.numpy()[:4])
    assert finding.labels is not None
    assert finding.labels.names[-1] == "<blank>"
    assert "the last 2 of 6 outputs choose durations" in " ".join(finding.notes)


def test_of_a_hybrid_model_the_transducer_counts_unless_the_other_is_named(tmp_path: Path) -> None:
    other = {f"ctc_{name}": value for name, value in CTC.items() if name.startswith("decoder")}
    config = JOINT_CONFIG + "aux_ctc:\n" + "".join(f"  {line}\n" for line in CTC_CONFIG.splitlines())
    path = nemo(tmp_path, config, {**JOINT, **other})
    assert find_head(path).weight.name == "joint.joint_net.2.weight"
    named = find_head(path, tensor="ctc_decoder.decoder_layers.0.weight")
    assert named.labels is not None
    assert named.labels.names[3] == "é"


@pytest.mark.parametrize(
    ("config", "note"),
    [
        (CTC_CONFIG.replace("  - c\n", ""), "lists 4 for 6 classes"),
        (CTC_CONFIG.replace("  - c\n", "  - [c]\n"), "more YAML than is read"),
        ("decoder: {vocabulary: [a]}\n", "has no list under 'vocabulary'"),
    ],
)
def test_labels_that_do_not_fit_are_not_taken(tmp_path: Path, config: str, note: str) -> None:
    finding = find_head(nemo(tmp_path, config, CTC))
    assert finding.labels is None
    assert note in " ".join(finding.notes)


@pytest.mark.parametrize("activation", ["gelu", "${model.activation}", "relu\n    activation: tanh"])
def test_an_activation_that_is_not_known_proves_no_domain(tmp_path: Path, activation: str) -> None:
    config = JOINT_CONFIG.replace("activation: relu", f"activation: {activation}")
    inputs = find_head(nemo(tmp_path, config, JOINT)).inputs
    assert inputs is not None
    assert inputs.domain is None


@pytest.mark.parametrize("extra", ["two", "-1", "1\n  num_extra_outputs: 2", "9999999"])
def test_a_number_of_tokens_that_is_not_clear_is_refused(tmp_path: Path, extra: str) -> None:
    config = JOINT_CONFIG.replace("num_classes: 5", f"num_extra_outputs: {extra}")
    with pytest.raises(LoadError, match="does not say"):
        find_head(nemo(tmp_path, config, JOINT))
    config = JOINT_CONFIG.replace("num_classes: 5", "num_extra_outputs: 6")
    with pytest.raises(LoadError, match="no more rows"):
        find_head(nemo(tmp_path, config + TDT, JOINT))


def test_further_outputs_that_are_blanks_are_refused(tmp_path: Path) -> None:
    config = JOINT_CONFIG.replace("num_classes: 5", "num_extra_outputs: 2")
    with pytest.raises(LoadError, match="the loss is not tdt: what"):
        find_head(nemo(tmp_path, config + TDT.replace("tdt", "multiblank_rnnt"), JOINT))


def test_archives_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"has no model_weights\.ckpt"):
        find_head(tar(tmp_path / "a.nemo", [("model_config.yaml", b"")]))
    path = nemo(tmp_path, CTC_CONFIG, CTC)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(LoadError):
        find_head(path)
    path.write_bytes(b"\x1f\x8b" + bytes(600))
    with pytest.raises(LoadError, match="gunzip"):
        find_head(path)


def test_a_member_twice_is_ambiguous(tmp_path: Path) -> None:
    members = [("model_config.yaml", b""), ("./model_config.yaml", b"")]
    with pytest.raises(AmbiguousError, match="two members"):
        find_head(tar(tmp_path / "a.nemo", members))


def test_what_is_pickled_beside_tensors_is_refused_as_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="neither a tensor nor a plain container"):
        find_head(nemo(tmp_path, CTC_CONFIG, {**CTC, "extra": Path}))
