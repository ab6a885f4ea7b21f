"""GGUF files, made with the gguf package's own writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
from gguf import GGMLQuantizationType as Type
from gguf import TokenType
from numpy.typing import NDArray

Stored = NDArray[Any] | tuple[NDArray[Any], Type]


def write(
    path: Path,
    tensors: Mapping[str, Stored],
    metadata: Mapping[str, Any] | None = None,
    *,
    architecture: str = "llama",
    tokens: tuple[str, ...] | None = None,
    types: tuple[int, ...] | None = None,
    tokenizer: str = "gpt2",
    alignment: int | None = None,
    **options: Any,
) -> Path:
    """A GGUF file written by the gguf package."""
    writer = gguf.GGUFWriter(path, architecture, **options)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in (metadata or {}).items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}.get(type(value))
        (add or writer.add_array)(key, value)
    if tokens is not None:
        writer.add_tokenizer_model(tokenizer)
        writer.add_token_list(list(tokens))
        writer.add_token_types(types or [TokenType.NORMAL] * len(tokens))
        writer.add_token_merges(["a b"] * 3)
    for name, stored in tensors.items():
        array, kind = stored if isinstance(stored, tuple) else (stored, None)
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
