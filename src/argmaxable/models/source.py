"""Named arrays in model files, without their values: what is stored where, and how to read one of them.

Every checkpoint format that is a dictionary of arrays is opened as a `TensorSource`; a model that is
spread over several files becomes one source again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous

if TYPE_CHECKING:
    from argmaxable.core.stored_rows import StoredRows
    from argmaxable.models.finding import TensorInfo

# dtypes whose values are the weights themselves; all others are quantised, or no weights at all.
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})


@dataclass(frozen=True, eq=False)
class TensorSource:
    """Arrays by name: what the file says about each, and a function that reads one.

    `name` is what errors call the source. `absent` holds arrays that an index lists but that can't be
    read, each with the reason: as long as the head is not among them, they don't matter. `dequantised` reads
    matrices whose weights are made from several arrays. `saved_by` is the library that the file says it was
    saved by ("pt", "mlx"), where it does.
    """

    name: str
    tensors: Mapping[str, TensorInfo]
    read_array: Callable[[str], NDArray[Any]]
    absent: Mapping[str, str] = field(default_factory=dict)
    dequantised: Mapping[str, Callable[[], NDArray[Any] | StoredRows]] = field(default_factory=dict)
    saved_by: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of all arrays, those that can't be read included."""
        return frozenset(self.tensors) | frozenset(self.absent)

    def info(self, name: str) -> TensorInfo:
        """Shape and dtype of an array; raises LoadError when it is not there or can't be read."""
        if name in self.absent:
            raise LoadError(f"tensor {name!r} can't be read: {self.absent[name]}")
        if name not in self.tensors:
            raise LoadError(f"tensor {name!r} not found in {self.name} ({len(self.tensors)} tensors).")
        return self.tensors[name]

    def read(self, name: str) -> NDArray[Any]:
        """The values of a float array, exactly; raises LoadError."""
        info = self.info(name)
        if info.dtype not in FLOATS:
            raise LoadError(
                f"tensor {info} does not hold floats. Quantised weights mean nothing without their scales: "
                "use the model they were made from."
            )
        return self.read_array(name)

    def read_matrix(self, name: str) -> NDArray[Any] | StoredRows:
        """The values of a matrix of weights, exactly; raises LoadError."""
        return self.dequantised[name]() if name in self.dequantised else self.read(name)

    def has_weights(self, info: TensorInfo) -> bool:
        """Whether an array holds floats, or numbers that stand for floats in a way that is known."""
        return info.dtype in FLOATS or info.name in self.dequantised

    def with_dequantised(
        self, matrix: TensorInfo, read: Callable[[], NDArray[Any] | StoredRows], parts: Collection[str]
    ) -> TensorSource:
        """The same arrays, but one that stands for this matrix, and without the other parts it is made of."""
        others = {name: info for name, info in self.tensors.items() if name not in parts}
        return replace(self, tensors={**others, matrix.name: matrix}, dequantised={matrix.name: read})

    def matrices(self) -> list[TensorInfo]:
        """The matrices of weights, among which a head must be, largest first."""
        found = [info for info in self.tensors.values() if len(info.shape) == 2 and self.has_weights(info)]
        return sorted(found, key=lambda info: -info.shape[0] * info.shape[1])


def join(
    name: str, folder: Path, file_of: Mapping[str, str], open_file: Callable[[Path], TensorSource]
) -> TensorSource:
    """One source for a model in several files of a folder; `file_of` says which array is in which.

    A file that is missing or damaged makes its arrays `absent`. Raises AmbiguousError where an array is in
    two files: programs that load one file after the other take the last.
    """
    parts: dict[str, TensorSource] = {}
    problems: dict[str, str] = {}
    for file in sorted(set(file_of.values())):
        if not (folder / file).is_file():  # also for a named pipe, on which opening would wait forever
            problems[file] = f"its file {file} is not in the folder. Fetch it too."
            continue
        try:
            parts[file] = open_file(folder / file)
        except OSError as error:
            problems[file] = f"its file {file} can't be opened ({error.strerror or error}). Check it."
        except AmbiguousError as error:
            raise AmbiguousError(f"its file {file} {error}") from error
        except LoadError as error:
            problems[file] = f"its file {file} {error}"
    _require_in_one_file(parts)
    tensors: dict[str, TensorInfo] = {}
    absent: dict[str, str] = {}
    for tensor, file in file_of.items():
        if file in problems:
            absent[tensor] = problems[file]
        elif tensor in parts[file].tensors:
            tensors[tensor] = parts[file].tensors[tensor]
        else:
            missing = f"{name} says it is in {file}, but it is not. Fetch the model again."
            absent[tensor] = parts[file].absent.get(tensor, missing)
    return TensorSource(
        name,
        tensors,
        lambda tensor: parts[file_of[tensor]].read_array(tensor),
        absent,
        saved_by=max((part.saved_by for part in parts.values()), key="mlx".__eq__, default=""),
    )


def _require_in_one_file(parts: Mapping[str, TensorSource]) -> None:
    found: dict[str, str] = {}
    for file, part in parts.items():
        for tensor in part.names:
            other = found.setdefault(tensor, file)
            if other != file:
                raise ambiguous(f"tensor {tensor!r} is in {other} and in {file}")
