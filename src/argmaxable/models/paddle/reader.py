"""Heads in PaddlePaddle's inference models, as `paddle.jit.save` and PaddleOCR's exporter write them.

The program, a .pdmodel or since PaddlePaddle 3 a .json, is translated into the small `Graph` that
`models/graph/` walks. The parameters are in the .pdiparams of the same name beside it; of them only the
head's, and short ones before it, are read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.graph.finding import find_in_graph
from argmaxable.models.labels.vocabulary import search_beside
from argmaxable.models.paddle.parameters import ParameterReader, locate_parameters
from argmaxable.models.paddle.pir import MAGIC, parse_pir
from argmaxable.models.paddle.program import Program, parse_program
from argmaxable.models.paddle.program_graph import translate

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

# A program has no weights in it: the largest seen has 2 MB, most of it the exporter's call stacks.
_LARGEST_PROGRAM = 2**28


def find(path: Path, options: ReadOptions) -> Finding:
    """The head of a PaddlePaddle model, given the path of its .pdmodel or .json.

    Without `options.tensor` it is the linear layer that leads to the output. Raises LoadError.
    """
    program = read_program(path)
    stored = path.with_suffix(".pdiparams")
    if not stored.is_file():
        raise LoadError(f"has its weights in {stored.name}, which is not beside it. Fetch it too.")
    parameters = locate_parameters(stored, program)
    graph = translate(program, parameters)
    values = ParameterReader(parameters, stored)
    return find_in_graph(
        "paddle", graph, options, values, lambda classes: search_beside(path.parent, classes)
    )


def find_folder(folder: Path, options: ReadOptions) -> Finding:
    """The same, given the folder that its inference.json is in."""
    return find(folder / "inference.json", options)


def read_program(path: Path) -> Program:
    """The program in a file; raises LoadError."""
    size = path.stat().st_size
    if size > _LARGEST_PROGRAM:
        raise LoadError(f"has {size:,} bytes, too many for a program without weights. Is it a .pdmodel?")
    try:
        data = path.read_bytes()
        return parse_pir(data) if re.match(MAGIC, data) else parse_program(data)
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"is not a readable PaddlePaddle program: {error}. If it is damaged, or a Git LFS pointer, fetch "
            "it again. Otherwise convert the model to ONNX with paddle2onnx."
        ) from error
