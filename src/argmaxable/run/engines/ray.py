"""Workers of a Ray cluster: the one module that knows Ray, which comes with the extra `ray`.

The head is put into Ray's object store once; every machine fetches it once and its workers share it.
A worker that dies is replaced, and its classes are handed back.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.threads import one_thread
from argmaxable.core.domains import domain_from_record
from argmaxable.core.errors import InputError
from argmaxable.core.head import FLOAT_DTYPES, Head
from argmaxable.core.scratch import scratch_folder, temporary_home
from argmaxable.core.signals import uninterrupted
from argmaxable.run.engines.engine import Job, Report, settle_each

if TYPE_CHECKING:
    from types import TracebackType

# What is added to a temporary folder for a socket of Ray's, and the longest name that every system takes.
_SOCKET = "/argmaxable-00000000/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store"
_SOCKET_NAME_BYTES = 103
# Ray gives its own processes half a minute to start, too little on a busy machine: so often it may try.
_STARTS = 3
_TOO_LATE = "timed out during startup"
# Workers that die without a single report between them: something is wrong with the cluster.
_DEATHS_IN_A_ROW = 5


@dataclass(frozen=True, eq=False)
class Parcel:
    """A job in a form that Ray shares without copying: plain arrays, no dtypes of other packages."""

    weight: NDArray[Any]
    bias: NDArray[Any] | None
    dtypes: tuple[str, str]
    domain: dict[str, Any]
    centre: NDArray[np.float64]
    ignored: NDArray[np.intp]
    tied: frozenset[int]
    score: NDArray[np.float64]
    seed: int


class Settler:
    """What runs on the cluster: a prover that settles the classes it is given."""

    def __init__(self, parcel: Parcel) -> None:
        self._prover = unpack(parcel).prover()

    def settle(self, classes: list[int]) -> list[Report]:
        with one_thread():
            return list(settle_each(self._prover, classes))


@dataclass(eq=False)
class _Worker:
    actor: Any
    batches: deque[tuple[Any, list[int]]] = field(default_factory=deque)


class RayWorkers:
    """Workers on the cluster at `address`, or on one started here for "local" and stopped again."""

    def __init__(self, address: str, workers: int | None) -> None:
        self._ray = _import_ray()
        with ExitStack() as connection:
            connection.enter_context(_own_stdout())
            if not self._ray.is_initialized():
                connection.enter_context(_connected(self._ray, address, workers))
            self._connection = connection.pop_all()
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self._count = cores if workers is None else workers
        self._workers: dict[int, _Worker] = {}
        self._parcel: Any = None
        self._deaths = 0

    @property
    def size(self) -> int:
        return self._count

    def start(self, job: Job) -> None:
        self._parcel = self._ray.put(pack(job))
        self._workers = {number: _Worker(self._new_actor()) for number in range(self._count)}

    def _new_actor(self) -> Any:
        return self._ray.remote(num_cpus=1)(Settler).remote(self._parcel)

    def idle(self, *, left: int) -> list[int]:
        """Workers with at most one batch to go, however many classes that is: time to send more."""
        return [number for number, worker in self._workers.items() if len(worker.batches) <= 1]

    def submit(self, worker: int, classes: list[int]) -> None:
        chosen = self._workers[worker]
        chosen.batches.append((chosen.actor.settle.remote(classes), classes))

    @property
    def pending(self) -> int:
        return sum(len(classes) for worker in self._workers.values() for _, classes in worker.batches)

    def collect(self, *, wait: float) -> tuple[list[Report], list[int]]:
        reports: list[Report] = []
        orphans: list[int] = []
        waiting = [batch for worker in self._workers.values() for batch, _ in worker.batches]
        if not waiting:
            return reports, orphans
        if wait:
            self._ray.wait(waiting, num_returns=1, timeout=wait)
        ready = set(self._ray.wait(waiting, num_returns=len(waiting), timeout=0)[0])
        for number, worker in list(self._workers.items()):
            try:
                while worker.batches and worker.batches[0][0] in ready:
                    reports += self._ray.get(worker.batches[0][0])
                    worker.batches.popleft()
                    self._deaths = 0
            except self._ray.exceptions.RayTaskError:
                raise  # an error of ours, on the other side
            except self._ray.exceptions.RayError as error:  # killed, out of memory, its machine gone, …
                orphans += [class_id for _, classes in worker.batches for class_id in classes]
                self._replace(number, error)
        return reports, orphans

    def _replace(self, number: int, error: Exception) -> None:
        self._deaths += 1
        if self._deaths >= _DEATHS_IN_A_ROW:
            raise InputError(
                f"the Ray cluster's workers die before they settle a class ({_first_line(error)}). Is this "
                "version of argmaxable installed on its machines, and do they have memory for the head?"
            ) from error
        self._workers[number] = _Worker(self._new_actor())

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._connection:
            for worker in self._workers.values():
                self._ray.kill(worker.actor)


def pack(job: Job) -> Parcel:
    head = job.head
    return Parcel(
        weight=_bits(head.weight),
        bias=None if head.bias is None else _bits(head.bias),
        dtypes=(head.weight.dtype.name, "" if head.bias is None else head.bias.dtype.name),
        domain=job.domain.as_record(),
        centre=job.centre,
        ignored=job.ignored,
        tied=job.tied,
        score=job.score,
        seed=job.seed,
    )


def unpack(parcel: Parcel) -> Job:
    weight = parcel.weight.view(FLOAT_DTYPES[parcel.dtypes[0]])
    bias = None if parcel.bias is None else parcel.bias.view(FLOAT_DTYPES[parcel.dtypes[1]])
    return Job(
        head=Head(weight, bias),
        domain=domain_from_record(parcel.domain),
        centre=parcel.centre,
        ignored=parcel.ignored,
        tied=parcel.tied,
        score=parcel.score.copy(),  # a prover learns, and what Ray shares is read-only
        seed=parcel.seed,
        memory=None,  # each machine by what it has free
    )


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _import_ray() -> Any:
    # Read when Ray is imported: without the first a cluster started here would listen on every address.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Else SIGTERM would end this process with a stack trace while it connects.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("--ray needs Ray: pip install 'argmaxable[ray]'.") from error
    return ray


class _ThisThread(io.TextIOBase):
    """A stream for what this thread writes; what others write goes to stderr."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        is_mine = threading.get_ident() == self._thread
        return (self._stream if is_mine else sys.stderr).write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


@contextmanager
def _own_stdout() -> Iterator[None]:
    """Stdout for this thread alone: one of Ray's prints there which worker has died."""
    with redirect_stdout(_ThisThread(sys.stdout)):
        yield


@contextmanager
def _connected(ray: Any, address: str, workers: int | None) -> Iterator[None]:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as files:
        if address == "local":
            options |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            options |= _own_folder(files)
        _connect(ray, address, options)
        try:
            yield
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect, or start a cluster here; raises InputError."""
    for more in reversed(range(_STARTS)):
        try:
            if _require_listener(address):
                _require_admission(ray, address)
            with without_handlers(ray), uninterrupted() if address == "local" else nullcontext():
                ray.init(address=address, **options)
        except KeyboardInterrupt:
            ray.shutdown()
            raise
        except Exception as error:  # Ray raises plain ones too, such as when its processes take too long
            ray.shutdown()
            if address != "local" or _TOO_LATE not in str(error) or not more:
                raise InputError(_refusal(ray, address, error)) from error
        else:
            return


def _own_folder(files: ExitStack) -> dict[str, str]:
    """Where Ray puts logs and sockets, which it leaves there; its own choice where all names get too long."""
    for home in (temporary_home(), Path("/tmp")):
        if len(os.fsencode(home)) + len(_SOCKET) <= _SOCKET_NAME_BYTES and os.access(home, os.W_OK):
            return {"_temp_dir": str(files.enter_context(scratch_folder(home)))}
    return {}


@contextmanager
def without_handlers(ray: Any) -> Iterator[None]:
    """Let Ray take no signal for itself. While it connects it would leave by `sys.exit` on SIGTERM: the run
    would end without its verdicts, and with Ray's processes still writing where files are being removed."""
    utils = ray._private.utils
    own = utils.set_sigterm_handler
    utils.set_sigterm_handler = lambda _: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = own


def _refusal(ray: Any, address: str, error: Exception) -> str:
    if isinstance(error, getattr(ray.exceptions, "AuthenticationError", ())):
        return (
            f"the Ray cluster at '{address}' refuses the token, or none was given. Set RAY_AUTH_MODE=token "
            "and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH for a file with the token."
        )
    if address == "local":
        return (
            f"Ray did not start on this machine ({_first_line(error)}). Try again when it is less busy, or "
            "leave out --ray and use --workers."
        )
    return (
        f"no Ray cluster at '{address[:60]}' ({_first_line(error)}). Start one with `ray start --head`, or "
        "pass --ray local."
    )


def _require_admission(ray: Any, address: str) -> None:
    """Raise AuthenticationError when the cluster refuses our token: `init` would go on trying for half a
    minute, and then say that there is no cluster."""
    refused = getattr(ray.exceptions, "AuthenticationError", None)
    if refused is None:
        return  # a version that knows no tokens
    try:
        from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled

        ensure_token_if_auth_enabled(create_token_if_missing=False)  # without one the client ends the process
        ray._raylet.GcsClient(address=address)
    except refused:
        raise
    except Exception:  # this only asks about tokens; `init` fails on the same fault and explains it
        return


def _require_listener(address: str) -> bool:
    """Whether a plain host:port is given. Raises OSError when nobody listens there: Ray itself would go on
    trying for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    is_given = bool(host) and port.isdecimal() and len(port) <= len("65535")
    if is_given:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    return is_given and "://" not in address


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__
