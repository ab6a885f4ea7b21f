"""A changed head, written into a copy of the model that it was found in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.models.write import write_head

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.workflow.find_model import FoundModel


def write_back(found: FoundModel, before: Head, after: Head, target: Path, *, overwrite: bool) -> None:
    """Write the copy, which is read again first; raises InputError, and then leaves nothing behind."""
    ref = found.ref
    write_head(
        str(ref.model), found.finding, before, after, target, tensor=ref.tensor,
        bias_tensor=ref.bias_tensor, transpose=ref.transpose, overwrite=overwrite,
    )  # fmt: skip
