"""The command line: each command parses, calls the library and prints.

Exit codes: 0 every class is argmaxable (or the command did what it says), 1 some class is
unargmaxable (for `check`: some claim is not proven; with --baseline and --fail-on-new: some class became
unargmaxable), 2 bad input, 3 some class is undecided or the
run was interrupted, 4 an error of ours.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from types import FrameType

from argmaxable.core.errors import ArgmaxableError, EvidenceError
from argmaxable.core.version import VERSION

BAD_INPUT, INTERRUPTED, OUR_ERROR = 2, 3, 4


def main() -> None:
    """Run the command; every error becomes one line on stderr and a documented exit code."""
    if sys.argv[1:] == ["--version"]:  # without the parser, which takes longer to load than to ask
        print(f"argmaxable {VERSION}")
        sys.exit(0)
    _make_streams_lenient()
    _end_like_ctrl_c()
    try:
        from argmaxable.cli.app import app

        app()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone: nothing to say, and nobody to say it to
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except EvidenceError as error:
        _complain(error)
        sys.exit(OUR_ERROR)
    except ArgmaxableError as error:
        _complain(error)
        sys.exit(BAD_INPUT)
    except Exception:
        # Python's own exit code for a crash is 1, which here means "some class is unargmaxable".
        import traceback

        traceback.print_exc()
        print("argmaxable: this is a bug; please report it with the lines above.", file=sys.stderr)
        sys.exit(OUR_ERROR)


def _end_like_ctrl_c() -> None:
    """SIGTERM and SIGHUP end a command as Ctrl-C does, unless whoever started it has them ignored (nohup)."""
    terminals = [number for number in (1, 2) if os.isatty(number)]
    for name, handler in (("SIGTERM", _terminate), ("SIGHUP", partial(_hang_up, terminals))):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handler)


def _terminate(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _hang_up(terminals: list[int], number: int, _: FrameType | None) -> None:
    # A terminal that is closed says so twice, by itself and by its shell; and nothing can be written to it.
    signal.signal(number, signal.SIG_IGN)
    for terminal in terminals:
        os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)
    raise KeyboardInterrupt


def _complain(error: Exception) -> None:
    """One line on stderr; names out of model files in it must not steer the terminal."""
    from argmaxable.core.labels import visible_text

    print(f"argmaxable: {visible_text(str(error))}", file=sys.stderr)


def _make_streams_lenient() -> None:
    """Labels may hold any character; a terminal that can't show one gets its escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
