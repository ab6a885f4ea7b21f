"""Pickled objects of gensim, LightFM, scikit-learn and so on: loading one runs code, so none is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

# Names that stand in a pickle for the classes it needs, and what to do instead, in Python.
_ADVICE = (
    (b"gensim", "kv.save_word2vec_format('vectors.bin', binary=True)"),
    (b"lightfm", "numpy.savez('items.npz', W=model.item_embeddings, b=model.item_biases)"),
    (b"implicit", "model.save('model.npz')"),
    (
        b"sklearn",
        "head = argmaxable.Head.from_sklearn(model); "
        "numpy.savez('head.npz', W=head.weight, b=head.bias, labels=head.labels)",
    ),
)
_LOOKED_AT = 1 << 16


def find(path: Path, options: ReadOptions) -> Finding:
    """Always raises LoadError, with advice that fits what the file seems to hold."""
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    known = next((advice for name, advice in _ADVICE if name in start), None)
    instead = known or "numpy.savez('head.npz', W=weight, b=bias)"
    beside = path.with_name(f"{path.name}.vectors.npy")
    more = f" Or pass {beside.name}, which lies beside it and holds the vectors." if beside.is_file() else ""
    raise LoadError(
        "is a pickle, which can run code when it is loaded, so it was not read. Load it where "
        "you trust it, and "
        f"save what is needed: {instead}.{more}"
    )
