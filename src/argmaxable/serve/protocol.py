"""HTTP with an eye on the clock: nobody waits for a request that does not arrive."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from argmaxable.serve.headers import HEADERS

# From the first byte to the last: a browser on this machine needs milliseconds.
SECONDS_TO_ASK = 5.0


class ImpatientProtocol(H11Protocol):
    """Closes connections on which a request is not complete in time; its own errors have our headers too."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._be_patient()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "connection": "close"}
            answer = (
                h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
                h11.Data(data=msg.encode("ascii")),
                h11.EndOfMessage(),
            )
            for event in answer:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        """Start the clock when a request begins, stop it when all of it is there; more bytes gain no time."""
        if not self._is_asking():
            self._be_patient()
        elif self._patience is None:
            self._patience = self.loop.call_later(SECONDS_TO_ASK, self.transport.close)

    def _is_asking(self) -> bool:
        """Whether part of a request is missing; between two requests the server has a limit of its own."""
        if self.conn.their_state is h11.IDLE:
            return self.cycle is None or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY

    def _be_patient(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
