"""Heads in NVIDIA NeMo's archives: the decoder of a CTC model or a classifier, or the last layer of a
transducer's joint network.

A .nemo file is a tar archive with model_config.yaml and model_weights.ckpt, a PyTorch checkpoint. PyTorch
maps files, not parts of one, so the checkpoint is copied to a temporary file, which is gone once it is open.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.checkpoint.families import Activation, HeadTask, Obstacle
from argmaxable.models.checkpoint.head import choice_in, finding_of
from argmaxable.models.checkpoint.locate import Architecture, HeadTensors
from argmaxable.models.finding import Finding, Labels
from argmaxable.models.nemo.config import NemoConfig
from argmaxable.models.pytorch.tensors import tensors_of
from argmaxable.models.source import TensorSource

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_CONFIG, _WEIGHTS = "model_config.yaml", "model_weights.ckpt"
_LARGEST_CONFIG = 8 * 2**20
# A transducer's output layer is behind an activation and perhaps dropout. CTC's is a convolution of width 1.
_JOINT = ("joint.joint_net.2.weight", "joint.joint_net.1.weight")
_CTC = ("decoder.decoder_layers.0.weight", "ctc_decoder.decoder_layers.0.weight")
_BLANK = "<blank>"
_UNREADABLE = "It may be cut short or damaged; fetch it again."


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a NeMo model. Raises LoadError."""
    try:
        with tarfile.open(path, "r:") as archive:
            config = NemoConfig(_config(archive))
            source = _weights(archive, path)
    except LoadError:  # is a ValueError
        raise
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise LoadError(
            f"is not a readable .nemo archive: {str(error)[:200]}. {_UNREADABLE} Old ones are compressed: "
            "gunzip them first."
        ) from error
    choice = _choice(source, config, options)
    matrix, notes = _as_matrix(source, choice.weight, config)
    finding = finding_of(matrix, choice, options, format_name="nemo")
    labels, doubts = _labels(source, choice.weight, config, finding.classes)
    return replace(finding, labels=labels, notes=(*finding.notes, *notes, *doubts))


# ---------------------------------------------------------------------- the archive


def _config(archive: tarfile.TarFile) -> str:
    member = _member(archive, _CONFIG)
    if member.size > _LARGEST_CONFIG:
        raise LoadError(f"has a {_CONFIG} of {member.size} bytes, too many for a configuration.")
    with _opened(archive, member) as file:
        return file.read().decode()


def _weights(archive: tarfile.TarFile, path: Path) -> TensorSource:
    member = _member(archive, _WEIGHTS)
    if member.size > path.stat().st_size:
        raise LoadError(f"has a {_WEIGHTS} of {member.size} bytes, more than the file has. {_UNREADABLE}")
    with _opened(archive, member) as stored, tempfile.NamedTemporaryFile(suffix=".ckpt") as copy:
        shutil.copyfileobj(stored, copy)
        copy.flush()
        return replace(tensors_of(Path(copy.name)), name=_WEIGHTS)


def _member(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    found = [each for each in archive.getmembers() if each.name.removeprefix("./") == name]
    if len(found) > 1:
        raise ambiguous(f"two members of the archive are called {name}")
    if not found:
        raise LoadError(f"has no {name}, which every .nemo archive has. {_UNREADABLE}")
    return found[0]


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if file is None:
        raise LoadError(f"has a {member.name[:80]!r} that is not a plain file. {_UNREADABLE}")
    return file


# ---------------------------------------------------------------------- the head


def _choice(source: TensorSource, config: NemoConfig, options: ReadOptions) -> HeadTensors:
    joint = next((name for name in _JOINT if name in source.names), None)
    ctc = next((name for name in _CTC if name in source.names), None)
    named = options.tensor
    if joint is not None and named in (None, joint):
        return _head(source, joint, _feed(config), "the last layer of the transducer's joint network")
    if ctc is not None and named in (None, ctc):
        _require_one_layer(source, ctc, config)
        unknown = Obstacle("the encoder, whose output has no known bounds")
        kind = "classifier" if _is_classifier(source, ctc) else "CTC model"
        return _head(source, ctc, unknown, f"the decoder of the {kind}")
    return choice_in(source, Architecture(), options, lambda _: None)


def _is_classifier(source: TensorSource, weight: str) -> bool:
    """A classifier's decoder is a plain matrix, that of a CTC model a convolution."""
    return weight == _CTC[0] and len(source.info(weight).shape) == 2


def _require_one_layer(source: TensorSource, weight: str, config: NemoConfig) -> None:
    """Raise LoadError for decoders that reconstruct the input, or choose several classes at once."""
    prefix = weight.removesuffix("0.weight")
    if sum(name.startswith(prefix) and name.endswith(".weight") for name in source.names) > 1:
        raise LoadError(
            "its decoder has several layers, as those that reconstruct their input do. Choose a tensor with "
            "tensor= (--tensor)."
        )
    if not config.is_single(weight.partition(".")[0]):
        raise LoadError(
            f"its decoder chooses several classes at once (num_decoders in {_CONFIG}). This is not supported."
        )


def _head(source: TensorSource, weight: str, feed: Activation | Obstacle, why: str) -> HeadTensors:
    bias = f"{weight.removesuffix('weight')}bias"
    return HeadTensors(weight, bias if bias in source.names else None, feed, why, HeadTask.TOKEN)


def _feed(config: NemoConfig) -> Activation | Obstacle:
    name = config.activation()
    return (
        Obstacle("an activation that the configuration does not name") if name is None else Activation(name)
    )


def _as_matrix(source: TensorSource, weight: str, config: NemoConfig) -> tuple[TensorSource, list[str]]:
    """The head as a matrix: a convolution's last axis dropped, and rows left out that choose durations."""
    info = source.info(weight)
    extra = config.extra_outputs() if weight in _JOINT else 0
    if extra is None:
        raise LoadError(
            f"has a {_CONFIG} that does not say (num_extra_outputs of joint) how many rows of {weight} are "
            "tokens. Save the model again with NeMo."
        )
    if extra and not config.chooses_durations():
        raise LoadError(
            f"has {extra} outputs beside its tokens (num_extra_outputs in {_CONFIG}), and the loss is not "
            "tdt: what they choose is unknown."
        )
    is_convolution = weight in _CTC and len(info.shape) == 3 and info.shape[2] == 1
    if not is_convolution and not extra:
        return source, []
    rows = info.shape[0] - extra
    if rows < 1:
        raise LoadError(f"has a num_extra_outputs of {extra} in {_CONFIG}, but {info} has no more rows.")
    matrix = replace(info, shape=(rows, info.shape[1]))
    bias = f"{weight.removesuffix('weight')}bias"
    cut = source.with_dequantised(
        matrix, lambda: source.read(weight).reshape(info.shape[:2])[:rows], frozenset()
    )
    if not extra:
        return cut, []
    if bias in source.names:
        biases = replace(source.info(bias), shape=(rows,))
        cut = replace(
            cut,
            tensors={**cut.tensors, bias: biases},
            read_array=lambda name: (
                source.read_array(name)[:rows] if name == bias else source.read_array(name)
            ),
        )
    return cut, [f"the last {extra} of {info.shape[0]} outputs choose durations and are left out"]


def _labels(
    source: TensorSource, weight: str, config: NemoConfig, classes: int
) -> tuple[Labels | None, list[str]]:
    """The tokens that the configuration lists, and the blank behind them; or a classifier's labels."""
    if weight not in (*_JOINT, *_CTC):
        return None, []
    part = "joint" if weight in _JOINT else weight.partition(".")[0]
    is_classifier = _is_classifier(source, weight)
    has_blank = not is_classifier and config.has_blank(part)
    try:
        names = config.labels() if is_classifier else config.vocabulary(part)
    except LoadError as error:
        return None, [f"no labels: {_CONFIG} {error}"]
    if len(names) + has_blank != classes:
        blank = ", one of which is the blank" if has_blank else ""
        return None, [f"no labels: {_CONFIG} lists {len(names)} for {classes} classes{blank}"]
    special = frozenset({len(names)}) if has_blank else frozenset[int]()
    names = (*names, _BLANK) if has_blank else names
    return Labels(names, f"the archive's {_CONFIG}", special=special, is_inside=True), []
