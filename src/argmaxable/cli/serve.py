"""argmaxable serve: the stored runs as pages in a browser."""

from __future__ import annotations

from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.parameters import Option
from argmaxable.core.errors import InputError
from argmaxable.models import load_head


def serve(
    db: options.Database = None,
    port: Annotated[int, Option(help="Port to listen on; 0 takes any that is free.")] = 8642,
    models: Annotated[
        list[str] | None,
        Option(
            "--model",
            help="A model that was verified: its runs also show the classes with the nearest "
            "weights. Repeatable.",
        ),
    ] = None,
) -> None:
    """Show stored runs and a playground in the browser.

    Shows what was found, why, and the progress of runs; the playground is for trying heads.

    Listens on this machine only (127.0.0.1) and writes nothing. A run that another command is working on
    can be watched. Ctrl-C stops the server.

    \b
    Examples:
      argmaxable serve
      argmaxable serve --db runs.db --port 9000 --model model.onnx

    \b
    Exit codes: 0 ended by Ctrl-C, 2 bad input.
    """
    try:
        from argmaxable.serve.app import make_app
        from argmaxable.serve.server import serve as serve_app
    except ImportError as error:
        raise InputError("serving needs starlette and uvicorn: pip install 'argmaxable[serve]'.") from error
    from argmaxable.serve.views import Site
    from argmaxable.store import open_store

    heads = [load_head(model) for model in models or ()]
    with open_store(db, read_only=True) as store:
        site = Site(store, {head.sha256(): head for head in heads})
        serve_app(make_app(site), port, lambda address: click.echo(f"Serving {store.where} at {address}"))
