"""The tensors of PyTorch's files, .bin, .pt, .pth and .ckpt. This is the only module that imports `torch`.

Such a file is a pickle, a program that builds objects. PyTorch's restricted unpickler runs it: it builds
tensors and plain containers, and refuses everything else. The tensors stay in the file, memory-mapped,
unless it has the format from before 2020, which has to be read whole: that takes as much memory as the file
has bytes, whatever sizes it declares.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.finding import TensorInfo
from argmaxable.models.pytorch.archive import (
    LARGEST_PICKLE,
    archive_members,
    asks_for,
    shown,
    unreadable,
)
from argmaxable.models.pytorch.pickle_imports import end_in, imports_in
from argmaxable.models.source import TensorSource
from argmaxable.models.zip_archive import BROKEN_ZIP

# Before 2.6 the restricted unpickler could be made to run code (CVE-2025-32434), before 2.10 to overwrite
# memory (CVE-2026-24747).
_SAFE_VERSION = "2.10"
_ZIP = b"PK\x03\x04"
# A tensor takes about 40 instructions, so this is far above any model. The worst that an instruction of one
# byte can do is to make an empty dictionary of 64.
_MOST_INSTRUCTIONS = 2**21
# The old format is a row of pickles: magic number, version, system and the objects. Then come the numbers.
_PICKLES_IN_OLD_FORMAT = 4
# What tensors and the dictionaries around them are pickled with.
_OF_TENSORS = re.compile(r"torch\._utils\._rebuild_\w+|torch\.(\w+\.)*\w+Storage|collections\.OrderedDict")
# Under which keys training tools keep the weights beside the optimizer, the epoch and so on: Lightning and
# many others, fairseq, DeepSpeed.
_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "params")
# What DataParallel and torch.compile put in front of every name.
_PREFIXES = ("module.", "_orig_mod.")
# Megatron's dictionaries are six deep.
_DEEPEST = 16
_KEYS_SHOWN = 8


class _Bystander:
    """Built in place of an object that lies beside the weights; does nothing."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


def _empty(*_: object) -> dict[Any, Any]:
    return {}


# What training tools save beside the weights, harmless and of no interest, and what is built instead: the
# classes themselves are never looked up. Anything that is not listed makes a file untrustworthy.
_BYSTANDERS: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "argparse.Namespace",
            *(f"builtins.{kind}" for kind in ("bool", "dict", "float", "int", "list", "str", "tuple")),
            "numpy._core.multiarray._reconstruct",
            "numpy._core.multiarray.scalar",
            "numpy.core.multiarray._reconstruct",
            "numpy.core.multiarray.scalar",
            "numpy.dtype",
            "numpy.ndarray",
            "omegaconf.base.ContainerMetadata",
            "omegaconf.base.Metadata",
            "omegaconf.dictconfig.DictConfig",
            "omegaconf.listconfig.ListConfig",
            *(f"omegaconf.nodes.{kind}Node" for kind in ("Any", "Boolean", "Float", "Integer", "String")),
            "pathlib.PosixPath",
            "pathlib.WindowsPath",
            "typing.Any",
        ),
        _Bystander,
    ),
    "collections.defaultdict": _empty,
    "pytorch_lightning.utilities.parsing.AttributeDict": dict,
}


def tensors_of(path: Path) -> TensorSource:
    """The tensors of a PyTorch file, wherever in it they are; raises LoadError.

    Of names that all begin with "module." or "_orig_mod." that prefix is dropped. Tensors that are not
    plain arrays in the file, such as sparse ones, are `absent`.
    """
    torch = _torch()
    weights = _weights(torch, _load(torch, path))
    named = list(_flattened(torch, weights, {id(weights)}))
    repeated = twice(name for name, _ in named)
    if repeated is not None:
        raise ambiguous(
            f"two tensors are called {repeated!r} once the names of dictionaries are joined by dots"
        )
    found = dict(named)
    if not found:
        keys = ", ".join([key for key in weights if isinstance(key, str)][:_KEYS_SHOWN]) or "none"
        raise LoadError(f"holds no tensors (keys: {keys}). Save the model's state_dict.")
    while prefix := next((each for each in _PREFIXES if all(name.startswith(each) for name in found)), None):
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    size = path.stat().st_size
    absent = {name: reason for name, tensor in found.items() if (reason := _obstacle(torch, tensor, size))}
    infos = {
        name: TensorInfo(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in found.items()
        if name not in absent
    }
    return TensorSource(path.name, infos, lambda name: _array(torch, name, found[name]), absent)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise LoadError(
            f"reading PyTorch files needs the package torch: pip install 'argmaxable[torch]' ({error})."
        ) from error
    if torch.__version__ < _SAFE_VERSION:
        raise LoadError(
            f"is a PyTorch file, which torch {torch.__version__} can't load safely: before {_SAFE_VERSION} a "
            "file could run code or overwrite memory despite that. pip install --upgrade torch."
        )
    return torch


def _load(torch: Any, path: Path) -> object:
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
    if is_zip:
        _require_checkpoint(path)
    else:
        _require_small_pickles(path)
    bystanders = [(stand_in, name) for name, stand_in in _BYSTANDERS.items()]
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(bystanders):
            warnings.simplefilter("ignore")  # about pickle protocols; what can't be read ends in an error
            return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception as error:  # a damaged or hostile pickle can make the unpickler raise anything
        raise LoadError(_refusal(path, is_zip, str(error))) from error


def _require_checkpoint(path: Path) -> None:
    """Refuse what is not a checkpoint, and archives made to expand: PyTorch itself never compresses."""
    members = archive_members(path)
    if "constants.pkl" in members:
        raise LoadError(
            "is a TorchScript archive, a program rather than a checkpoint, and was not run. Pass the file "
            "itself, or save the state_dict of the model it was made from."
        )
    if "data.pkl" not in members:
        raise LoadError(
            "is a zip archive without data.pkl, so not from torch.save. Save the model's state_dict with it."
        )
    if members["data.pkl"].size > LARGEST_PICKLE:
        raise LoadError(
            f"has a pickle of {members['data.pkl'].size} bytes, expected at most {LARGEST_PICKLE}: it "
            "holds more than tensors. Save the model's state_dict alone."
        )


def _require_small_pickles(path: Path) -> None:
    """Refuse what would build more objects than any checkpoint holds, in the format from before 2020."""
    with path.open("rb") as file:
        start = file.read(LARGEST_PICKLE)
        is_all = not file.read(1)  # then that little can do no harm
    if not is_all and not end_in(start, pickles=_PICKLES_IN_OLD_FORMAT, instructions=_MOST_INSTRUCTIONS):
        limits = f"{LARGEST_PICKLE} bytes and {_MOST_INSTRUCTIONS} instructions"
        raise LoadError(unreadable(f"its pickles do not end within {limits}, as those of tensors do"))


def _refusal(path: Path, is_zip: bool, complaint: str) -> str:
    named = re.search(r"GLOBAL (\S*\w)\s", complaint)  # a name with a dot at its end was cut short
    imports = [named[1]] if named else _imports(path, is_zip)
    strange = [each for each in imports if not _OF_TENSORS.fullmatch(each)]
    if strange:
        return asks_for(strange)
    if imports:
        return (
            "is pickled in a newer protocol than PyTorch reads safely. Save it again with torch.save without "
            "pickle_protocol=, or as .safetensors."
        )
    # PyTorch goes on to advise loading the file unsafely.
    reason = complaint.rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0].partition(". ")[0]
    return unreadable(reason[:200] or "it ends too early")


def _imports(path: Path, is_zip: bool) -> list[str]:
    if not is_zip:
        with path.open("rb") as file:
            return imports_in(file.read(LARGEST_PICKLE), pickles=_PICKLES_IN_OLD_FORMAT)
    with zipfile.ZipFile(path) as archive:
        name = next(each for each in archive.namelist() if each.partition("/")[2] == "data.pkl")
        try:
            return imports_in(archive.read(name))
        except BROKEN_ZIP:  # as a checksum shows, which PyTorch does not look at
            return []


def _weights(torch: Any, loaded: object) -> Mapping[Any, Any]:
    """The dictionary that holds the weights, out of those that training tools put around it."""
    if isinstance(loaded, torch.Tensor):
        return {"tensor": loaded}
    if not isinstance(loaded, Mapping):
        raise LoadError(
            f"holds a {type(loaded).__name__}, expected a dictionary of tensors. Save the model's state_dict."
        )
    entered: set[int] = set()  # dictionaries may contain themselves
    while id(loaded) not in entered:
        entered.add(id(loaded))
        inner = [key for key in _WRAPPERS if isinstance(loaded.get(key), Mapping)]
        full = [key for key in inner if any(_flattened(torch, loaded[key], {id(loaded), id(loaded[key])}))]
        if len(full) > 1 and len({id(loaded[key]) for key in full}) > 1:
            raise ambiguous(
                f"it holds tensors under {shown(full)}, each of which may be the model's weights",
                "Save the state_dict that you use alone.",
            )
        loaded = loaded[(full or inner)[0]] if inner else loaded
    return loaded


def _flattened(
    torch: Any, level: Mapping[Any, Any], entered: set[int], prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Tensors with their names, joined by dots to those of the dictionaries around; each is entered once."""
    for key, value in level.items():
        if not isinstance(key, str | int):
            continue
        if isinstance(value, torch.Tensor):
            yield f"{prefix}{key}", value
        elif isinstance(value, Mapping) and id(value) not in entered and depth < _DEEPEST:
            entered.add(id(value))
            yield from _flattened(torch, value, entered, f"{prefix}{key}.", depth + 1)


def _obstacle(torch: Any, tensor: Any, file_size: int) -> str | None:
    """Why a tensor can't be read as an array, or None."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        kind = "quantised" if tensor.is_quantized else f"{tensor.layout} on {tensor.device}"
        return f"it is stored as {kind}, expected a plain array. Convert it and save it again."
    # Strides can repeat elements, so that a small storage poses as an array of any size.
    needed, present = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
    if needed > min(present, file_size):
        return f"its shape {tuple(tensor.shape)} takes {needed} bytes, of which the file stores {present}."
    return None


def _array(torch: Any, name: str, tensor: Any) -> NDArray[Any]:
    try:
        if tensor.dtype == torch.bfloat16:  # NumPy has no bfloat16: the bits travel as integers
            values: NDArray[Any] = tensor.detach().view(torch.int16).numpy()
            return values.view(ml_dtypes.bfloat16)
        if tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:  # all are float16 numbers
            tensor = tensor.detach().to(torch.float16)
        values = tensor.numpy(force=True)
    except (RuntimeError, TypeError) as error:
        raise LoadError(f"tensor {name!r} can't be read as an array: {error}") from error
    return values
