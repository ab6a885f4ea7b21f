"""The server: on this machine's own address only, until it is told to stop."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from argmaxable.core.errors import InputError
from argmaxable.serve.protocol import ImpatientProtocol

_ADDRESS = "127.0.0.1"
# A browser that polls must not keep the server from ending.
_PATIENCE_SECONDS = 1


def serve(app: Callable[..., Any], port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `announce` is told the address once it can be opened. Raises InputError."""
    with _bound(port) as listener:
        number = listener.getsockname()[1]
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False,
            timeout_graceful_shutdown=_PATIENCE_SECONDS, http=ImpatientProtocol, ws="none",
        )  # fmt: skip
        server = _Announced(config, lambda: announce(f"http://{_ADDRESS}:{number}/"))
        with suppress(KeyboardInterrupt):  # uvicorn ends in good order and then passes the signal on
            server.run(sockets=[listener])


class _Announced(uvicorn.Server):
    """Tells once it answers: from then on it also hears Ctrl-C, which is lost while it starts."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._announce()


def _bound(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port}: expected a number from 1 to 65535, or 0 for any that is free.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Else the port of a server that was just stopped stays closed for a minute.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_ADDRESS, port))
    except OSError as error:
        listener.close()
        raise InputError(_refused(port, error)) from error
    return listener


def _refused(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is in use: is argmaxable serve running already? Choose another with --port, or "
            "any that is free with --port 0."
        )
    return f"port {port} can't be opened ({error.strerror}). Choose another with --port, 1024 or above."
