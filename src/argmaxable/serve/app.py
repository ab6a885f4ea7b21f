"""The site as an ASGI application: addresses, and what keeps strangers out.

Everything is read with GET; a request for another host's name is refused, so that no page of the web can
reach the site by letting its own name point here (DNS rebinding); and the browser is told to run, load
and send nothing but what is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from argmaxable.core.errors import ArgmaxableError, NotFoundError
from argmaxable.core.labels import visible_text
from argmaxable.serve import views
from argmaxable.serve.headers import HEADERS
from argmaxable.serve.views import Site

_HOSTS = ["127.0.0.1", "localhost"]
# A report brings its own policy, which names the digests of its script and style and allows nothing else.
_POLICY_OF_REPORT = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Of a run or a class: no database has numbers of more digits.
_MOST_DIGITS = 18
_STATIC = {
    "serve.css": "argmaxable.serve",
    "playground.js": "argmaxable.serve",
    "regions.js": "argmaxable.serve",
    "icon.svg": "argmaxable.serve",
    "htmx.min.js": "argmaxable.serve",
    "report.css": "argmaxable.report.page",
}
_FOLDERS = {"argmaxable.serve": "static", "argmaxable.report.page": "templates"}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

View = Callable[[Site, Request], Response]


def make_app(site: Site) -> ASGIApp:
    """The application, for a server and for tests."""

    def route(path: str, view: View) -> Route:
        # No coroutine, so that the database is read in a thread.
        def answer(request: Request) -> Response:
            return view(site, request)

        return Route(path, answer)

    app = Starlette(
        routes=[
            route("/", _runs),
            route("/runs/{run_id}", _run),
            route("/runs/{run_id}/findings", _findings),
            route("/runs/{run_id}/progress", _progress),
            route("/runs/{run_id}/report", _report),
            route("/runs/{run_id}/classes/{class_id}", _class),
            route("/runs/{run_id}/classes/{class_id}/margin", _margin),
            route("/sets/{run_id}", _sets),
            route("/compare", _compare),
            route("/playground", _playground),
            route("/static/{name}", _static),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)],
        exception_handlers={ArgmaxableError: _our_error, HTTPException: _http_error, Exception: _bug},
    )
    return _Guarded(app)  # around all of it: Starlette's own middleware answers what nobody else could


class _Guarded:
    """Adds the headers to every response that has none of that name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_guarded)


# ---------------------------------------------------------------------- addresses


def _runs(site: Site, request: Request) -> Response:
    return HTMLResponse(views.runs_page(site, request.query_params, is_part=_is_part(request)))


def _run(site: Site, request: Request) -> Response:
    text = views.run_page(site, _run_id(request), request.query_params, is_part=_is_part(request))
    return HTMLResponse(text)


def _findings(site: Site, request: Request) -> Response:
    return HTMLResponse(views.findings_part(site, _run_id(request)))


def _progress(site: Site, request: Request) -> Response:
    text, is_running = views.progress_part(site, _run_id(request))
    # At its end the whole page has news.
    return HTMLResponse(text, headers={} if is_running else {"HX-Refresh": "true"})


def _report(site: Site, request: Request) -> Response:
    text = views.report_page(site, _run_id(request))
    return HTMLResponse(text, headers={"content-security-policy": _POLICY_OF_REPORT})


def _sets(site: Site, request: Request) -> Response:
    text = views.sets_page(site, _run_id(request))
    return HTMLResponse(text, headers={"content-security-policy": _POLICY_OF_REPORT})


def _class(site: Site, request: Request) -> Response:
    return HTMLResponse(views.class_page(site, _run_id(request), _number(request, "class_id")))


def _margin(site: Site, request: Request) -> Response:
    return HTMLResponse(views.margin_part(site, _run_id(request), _number(request, "class_id")))


def _compare(site: Site, request: Request) -> Response:
    return HTMLResponse(views.compare_page(site, request.query_params, is_part=_is_part(request)))


def _playground(_: Site, __: Request) -> Response:
    return HTMLResponse(views.playground_page())


def _static(_: Site, request: Request) -> Response:
    """One of our own files: only the names in the table lead to any."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    package = _STATIC[name]
    content = (files(package) / _FOLDERS[package] / name).read_bytes()
    return Response(content, media_type=_TYPES[PurePosixPath(name).suffix])


def _run_id(request: Request) -> int:
    return _number(request, "run_id")


def _number(request: Request, name: str) -> int:
    text: str = request.path_params[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise HTTPException(404)
    return int(text)


def _is_part(request: Request) -> bool:
    """Whether htmx asks for the part of the page that changes."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


# ---------------------------------------------------------------------- errors


def _our_error(_: Request, error: Exception) -> Response:
    is_missing = isinstance(error, NotFoundError)
    title = "Not there" if is_missing else "The runs can't be read"
    return HTMLResponse(views.error_page(title, visible_text(str(error))), 404 if is_missing else 503)


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code != 404:
        return HTMLResponse(views.error_page(error.detail, "This site is only read."), error.status_code)
    return HTMLResponse(views.error_page("Not there", "There is no page at this address."), 404)


def _bug(_: Request, __: Exception) -> Response:
    message = "This is a bug; please report it with what the server says in its terminal."
    return HTMLResponse(views.error_page("Something went wrong", message), 500)
