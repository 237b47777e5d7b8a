"""The routes of the console: its views, events of calls, and media."""

from functools import partial

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from gateway.errors import MediaError
from gateway.serving.console import media
from gateway.serving.console.access_overview import VIEWS as ACCESS_VIEWS
from gateway.serving.console.admission import Admission, Identify
from gateway.serving.console.app_pages import VIEWS as APP_VIEWS
from gateway.serving.console.app_pages import app_routes
from gateway.serving.console.calibrations import VIEWS as CALIBRATION_VIEWS
from gateway.serving.console.call_events import call_events
from gateway.serving.console.calls import VIEWS as CALL_VIEWS
from gateway.serving.console.calls import kept_call
from gateway.serving.console.config_changes import VIEWS as CHANGE_VIEWS
from gateway.serving.console.console import Console
from gateway.serving.console.drawn_pages import PAGES_PATH, page_routes
from gateway.serving.console.edit_profile import VIEWS as EDIT_VIEWS
from gateway.serving.console.found_servers import VIEWS as FOUND_VIEWS
from gateway.serving.console.home import VIEWS as HOME_VIEWS
from gateway.serving.console.hosts import PROFILE_VIEWS
from gateway.serving.console.hosts import VIEWS as HOST_VIEWS
from gateway.serving.console.registry_servers import VIEWS as REGISTRY_VIEWS
from gateway.serving.console.responses import PAGE_HEADERS, as_json, page
from gateway.serving.console.servers import VIEWS as SERVER_VIEWS
from gateway.serving.console.stored import VIEWS as STORE_VIEWS
from gateway.serving.console.stored import store_routes
from gateway.serving.console.toolsets import VIEWS as TOOLSET_VIEWS
from gateway.serving.console.try_out import VIEWS as TRY_VIEWS
from gateway.serving.console.views import routes_of
from gateway.serving.console.waiting_calls import VIEWS as APPROVAL_VIEWS

VIEWS = (
    *HOME_VIEWS,
    *CALL_VIEWS,
    *APP_VIEWS,
    *TRY_VIEWS,
    *HOST_VIEWS,
    *TOOLSET_VIEWS,
    *CALIBRATION_VIEWS,
    *EDIT_VIEWS,
    *PROFILE_VIEWS,
    *SERVER_VIEWS,
    *FOUND_VIEWS,
    *REGISTRY_VIEWS,
    *CHANGE_VIEWS,
    *APPROVAL_VIEWS,
    *ACCESS_VIEWS,
    *STORE_VIEWS,
)


def console_mounts(path: str, console: Console, identify: Identify | None = None) -> list[BaseRoute]:
    """Return the console at a path of one segment, with the pages of apps beside it, at `/console-pages`."""
    pages = Starlette(routes=page_routes(console), exception_handlers={404: _missing})
    return [Route(path, _with_slash), Mount(PAGES_PATH, pages), Mount(path, console_app(console, identify))]


def console_app(console: Console, identify: Identify | None = None) -> ASGIApp:
    """Return the console as an application, to be mounted. `identify` knows admins by their tokens."""
    routes: list[BaseRoute] = [
        Mount("/static", StaticFiles(packages=[("gateway.serving.console", "static")])),
        Route("/events", partial(call_events, console)),
        Route("/api/calls/{number:number}/result", partial(_result, console)),
        Route("/api/media/{name}", partial(_media, console)),
        Route("/api/media/{name}/drawn", partial(_drawn, console)),
        Route("/api/media/{name}/pages", partial(_pages, console)),
        Route("/api/media/{name}/pages/{page:number}", partial(_drawn, console)),
        *app_routes(console),
        *store_routes(console),
        *routes_of(console, VIEWS),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _missing})
    return Admission(app, console.sessions, identify)


async def _with_slash(request: Request) -> Response:
    """Lead from `/console` to `/console/`, below whatever a reverse proxy has put in front of it."""
    # Relative (RFC 3986, 5.2), so neither the Host header nor a removed path prefix can lead elsewhere.
    query = request.scope["query_string"].decode("latin-1")
    place = request.scope["path"].rpartition("/")[2]
    return RedirectResponse(f"{place}/{'?' if query else ''}{query}", 307, dict(PAGE_HEADERS))


async def _result(console: Console, request: Request) -> Response:
    """The result of a call as its upstream sent it, to be saved."""
    number = request.path_params["number"]
    call = await kept_call(console, request)
    if call is None:
        return as_json({"error": "the result of this call is not kept"}, 404)
    answer = await to_thread.run_sync(as_json, call.result)
    answer.headers["Content-Disposition"] = f'attachment; filename="call-{number}.json"'
    return answer


async def _media(console: Console, request: Request) -> Response:
    found = console.shelf.find(request.path_params["name"])
    if found is None:
        return _gone()
    return media.saved(found) if "save" in request.query_params else media.as_it_is(found)


async def _drawn(console: Console, request: Request) -> Response:
    found, number = console.shelf.find(request.path_params["name"]), request.path_params.get("page")
    if found is None:
        return _gone()
    try:
        if number is None:
            return await media.drawn(found, console.gateway.media)
        return await media.drawn_page(found, number, console.gateway.media)
    except MediaError as error:
        return as_json({"error": error.message}, 422)


async def _pages(console: Console, request: Request) -> Response:
    name = request.path_params["name"]
    found = console.shelf.find(name)
    if found is None:
        return _gone()
    try:
        count = await media.page_count(found, console.gateway.media)
    except MediaError as error:
        return as_json({"error": error.message}, 422)
    if "hx-request" not in request.headers:
        return as_json({"pages": count})
    return page("pages.html", {"base": request.scope.get("root_path", ""), "medium": name, "pages": count})


def _gone() -> Response:
    return as_json({"error": "this is no longer here; open its call again"}, 404)


async def _missing(_: Request, __: Exception) -> Response:
    return as_json({"error": "there is no such page"}, 404)
