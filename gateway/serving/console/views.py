"""Views and actions: each is a page and a JSON endpoint, made of the same values.

A view at `/calls` is a page at `/console/calls` and JSON at `/console/api/calls`; an action is a POST at both, whose
page is the part that htmx puts in place of another one.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.core.fact_words import plain
from gateway.errors import GatewayError
from gateway.serving.console.admission import SESSION_SCOPE
from gateway.serving.console.console import Console
from gateway.serving.console.responses import as_json, page
from gateway.serving.console.sessions import form_token

_LONGEST = 500

Values = Callable[[Console, Request], Awaitable[Mapping[str, Any]]]
"""Returns what a view shows, as JSON. Raises GatewayError, which is shown in its place."""


class View(NamedTuple):
    """One view: its path below `/console`, its template, its values, and the `room` of the console that it is in.

    `words`: its name in the navigation, if it is the first view of its room. `method`: POST for an action.
    """

    path: str
    template: str
    values: Values
    room: str
    words: str = ""
    method: str = "GET"


def routes_of(console: Console, views: Sequence[View]) -> list[Route]:
    """Return the routes of all views: as pages, and as JSON."""
    rooms = [(view.room, view.path, view.words) for view in views if view.words]
    return [route for view in views for route in _both(console, view, rooms)]


def _both(console: Console, view: View, rooms: Sequence[tuple[str, str, str]]) -> list[Route]:
    async def as_page(request: Request) -> Response:
        frame = {**_frame(console, request), "room": view.room, "rooms": rooms}
        try:
            return page(view.template, {**frame, "view": await view.values(console, request)})
        except GatewayError as error:
            told = {"problem": plain(error.message, _LONGEST), "remedy": error.remedy}
            # htmx does not put refusals in place, and what it asked for is a part of a page that is there already.
            return page("problem.html", {**frame, **told}, 200 if frame["is_part"] else 404)

    async def as_data(request: Request) -> Response:
        try:
            return as_json(await view.values(console, request))
        except GatewayError as error:
            return as_json({"error": error.message, "remedy": error.remedy}, 404 if view.method == "GET" else 400)

    methods = [view.method]
    return [
        Route(view.path, as_page, methods=methods),
        Route(f"/api{view.path}".rstrip("/"), as_data, methods=methods),
    ]


def _frame(console: Console, request: Request) -> dict[str, Any]:
    """Return what every page shows around its view. A part of a page is asked for by htmx, which says so."""
    return {
        "base": request.scope.get("root_path", ""),
        "name": console.gateway.settings.gateway.name,
        "config_path": None if console.operation.config is None else str(console.operation.config),
        "form_token": form_token(request.scope.get(SESSION_SCOPE, "")),
        "is_part": "hx-request" in request.headers,
        "query": str(request.url.query),
    }


class NumberConvertor(Convertor[int]):
    """A number in a path, as `{name:number}`: with as many digits as any number here, others are no such path.

    Starlette's own `int` hands texts of any length to `int()`, which refuses those of more than 4,300 digits.
    """

    regex = "[0-9]{1,15}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", NumberConvertor())


def number_in(request: Request, name: str) -> int | None:
    """Return a number of the query; None if it is not one."""
    value = request.query_params.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 16 else None
