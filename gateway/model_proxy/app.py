"""The proxy as an ASGI application: it repairs, forwards, and passes the answer on as it comes."""

import hmac
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from gateway.config.builtin_profiles import model_profiles
from gateway.config.schema import ModelProxySettings
from gateway.core.model.model_profile import ModelProfile
from gateway.core.model_profiles import choose_model_profile
from gateway.core.wording import plain
from gateway.errors import ConfigError
from gateway.listening import Allowed, is_loopback
from gateway.model_proxy import problems
from gateway.model_proxy.client import BodyTooLarge, ClientSide
from gateway.model_proxy.headers import PROXY_HEADER, REPAIRS, back, onward, value_of
from gateway.model_proxy.problems import Problem, problem_response
from gateway.model_proxy.routes import (
    REPAIRED,
    WRITINGS,
    Route,
    is_spoken,
    path_behind,
    route_of,
    spoken_words,
    target_of,
)
from gateway.provider_files import ProviderFiles
from gateway.shaping.repairing import RepairedRequest, Repairer
from gateway.tls import HOOKS, ssl_context

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
_KEEPALIVE_SECONDS = 4.0
"""Idle connections are not used again after this: less than the 5 seconds after which common servers close them."""

Explain = Callable[[RepairedRequest], None]


def proxy_app(
    settings: ModelProxySettings, repairer: Repairer, *, owner: str = "local", explain: Explain | None = None
) -> Starlette:
    """The application in front of `settings.to`. Its lifespan has to be run: it holds the client.

    Args:
        settings: [model_proxy]; `to` has to be set.
        repairer: what repairs requests.
        owner: whose handles are opened.
        explain: called with every request that was repaired.

    Raises:
        ConfigError: `to` is missing, or the profile is of no dialect that is proxied.
        ProfileError: there is no such model profile.
    """
    files = ProviderFiles.from_environment(upload_above=settings.upload_above) if settings.upload_above else None
    proxy = _Proxy(settings, repairer if files is None else replace(repairer, files=files), owner, explain)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with proxy.client, files or nullcontext():
            yield

    app = Starlette(routes=[StarletteRoute("/{path:path}", proxy)], lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


class _Refused(Exception):
    """The request is answered by the proxy itself."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message


class _Proxy:
    """The one endpoint."""

    def __init__(self, settings: ModelProxySettings, repairer: Repairer, owner: str, explain: Explain | None) -> None:
        if settings.to is None:
            raise ConfigError("there is no model API to stand before", where="model_proxy.to")
        self._to = settings.to.rstrip("/")
        self._url = httpx2.URL(self._to)
        self._settings = settings
        self._repairer = repairer
        self._owner = owner
        self._explain = explain
        self._allowed = Allowed(settings.bind, settings.allowed_hosts, settings.allowed_origins)
        self._profile_of = lru_cache(maxsize=256)(self._choose)
        self._check_profile()
        self.client = httpx2.AsyncClient(
            verify=ssl_context(),
            event_hooks=HOOKS,
            timeout=httpx2.Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout), pool=None),
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=50, keepalive_expiry=_KEEPALIVE_SECONDS
            ),
            follow_redirects=False,
            trust_env=not is_loopback(self._url.host),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = route_of(scope["path"])
        side = ClientSide(receive, self._settings.max_request_bytes)
        try:
            self._check(Headers(scope=scope), scope["method"])
            if scope["method"] == "POST" and route is not None and not is_spoken(route.dialect, self._to):
                raise _Refused(problems.WRONG_DIALECT, self._no_such_dialect(route.dialect))
            await self._pass_on(scope, side, send, route if scope["method"] == "POST" else None)
        except _Refused as refused:
            logger.info("refused with %d: %s", refused.problem.status, refused.message)
            await side.rest()
            answer = problem_response(refused.problem, refused.message, route.dialect if route else None)
            await answer(scope, receive, send)

    def _check(self, headers: Headers, method: str) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.host(hosts[0]):
            words = "this Host is not one of the proxy's; [model_proxy] allowed_hosts names others"
            raise _Refused(problems.FOREIGN_HOST, words)
        origins = headers.getlist("origin")
        if any(not self._allowed.origin(origin) for origin in origins):
            words = "this Origin may not call the proxy; [model_proxy] allowed_origins names others"
            raise _Refused(problems.FOREIGN_ORIGIN, words)
        token = self._settings.token
        if token is None or (method == "OPTIONS" and origins):  # a browser's preflight cannot carry a token
            return
        if not hmac.compare_digest(headers.get(PROXY_HEADER, "").encode("latin-1"), token.encode()):
            raise _Refused(problems.NO_TOKEN, "the header X-MCP-Gateway-Token is missing or wrong")

    def _no_such_dialect(self, dialect: str) -> str:
        return (
            f"the model API at {self._url.host} does not speak {dialect}. Client and model API have to speak the same "
            f"dialect; there, tool results are repaired in POST {spoken_words(self._to)}"
        )

    async def _pass_on(self, scope: Scope, side: ClientSide, send: Send, route: Route | None) -> None:
        refused: list[_Refused] = []
        async with anyio.create_task_group() as tasks:

            async def leave_with_the_client() -> None:
                await side.gone()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave_with_the_client)
            try:
                await self._exchange(scope, side, send, route)
            except _Refused as error:
                refused.append(error)  # raised below: the task group would wrap it
            except ClientDisconnect:
                pass
            tasks.cancel_scope.cancel()
        for refusal in refused:
            raise refusal

    async def _exchange(self, scope: Scope, side: ClientSide, send: Send, route: Route | None) -> None:
        try:
            request, repairs = await self._request(scope, side, route)
            response = await self.client.send(request, stream=True)
        except BodyTooLarge:
            limit = self._settings.max_request_bytes
            words = f"the request is larger than {limit:,} bytes; see [model_proxy] max_request_bytes"
            raise _Refused(problems.TOO_LARGE, words) from None
        except httpx2.TimeoutException as error:
            unconnected = isinstance(error, httpx2.ConnectTimeout)
            words = f"the model API at {self._url.host} {'cannot be reached' if unconnected else 'does not answer'}"
            raise _Refused(problems.TOO_SLOW, f"{words}; see [model_proxy] timeout") from None
        except httpx2.TransportError as error:
            words = f"the model API at {self._url.host} cannot be reached: {plain(str(error), 200)}"
            raise _Refused(problems.UNREACHABLE, words) from None
        try:
            await _pass_back(response, send, repairs)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        if route is not None and response.status_code in (404, 405):
            logger.warning("the model API answered %d: does it speak %s?", response.status_code, route.dialect)

    async def _request(self, scope: Scope, side: ClientSide, route: Route | None) -> tuple[httpx2.Request, int | None]:
        url, headers = self._url_of(scope), onward(scope["headers"])
        length = value_of(scope["headers"], b"content-length")
        if route is None:
            has_body = bool(length) or bool(value_of(scope["headers"], b"transfer-encoding"))
            if length:
                headers.append((b"content-length", length))
            content: Any = side.chunks() if has_body else await side.whole()
            return httpx2.Request(scope["method"], url, headers=headers, content=content or None), None
        if length.isdigit() and int(length) > self._settings.max_request_bytes:
            raise BodyTooLarge
        body = await side.whole()
        if value_of(scope["headers"], b"content-encoding").lower() not in (b"", b"identity"):
            logger.warning("a compressed request passes as it is: tool results in it are not seen")
            return httpx2.Request("POST", url, headers=headers, content=body), 0
        repaired = await self._repaired(body, route)
        return httpx2.Request("POST", url, headers=headers, content=repaired.body), len(repaired.changes)

    def _url_of(self, scope: Scope) -> httpx2.URL:
        """The url behind: scheme, host and port are those of `to`, whatever the path is."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        path = path_behind(self._to, raw)
        try:
            url = self._url.copy_with(raw_path=path + (b"?" + query if query else b""))
        except httpx2.InvalidURL:
            raise _Refused(problems.BAD_PATH, "the path cannot be read") from None
        return url

    async def _repaired(self, body: bytes, route: Route) -> RepairedRequest:
        choose = partial(self._profile_of, route.dialect)
        repaired = await self._repairer.repair(body, route.dialect, choose, model=route.model, owner=self._owner)
        for change in repaired.changes:
            logger.info("repaired %s (%s)", change.where, route.dialect)
        for note in repaired.notes:
            logger.debug("%s: %s", note.kind, note.text)
        if self._explain is not None and repaired.changes:
            self._explain(repaired)
        return repaired

    def _choose(self, dialect: str, model: str | None) -> ModelProfile:
        profiles, named = model_profiles(), self._settings.profile
        if named is not None and profiles[named].writing in WRITINGS[dialect]:
            return choose_model_profile(profiles, named, model=model, base_url=f"{self._to}/")
        return choose_model_profile(profiles, target_of(dialect, self._to), model=model, base_url=f"{self._to}/")

    def _check_profile(self) -> None:
        named = self._settings.profile
        if named is None:
            return
        profile = choose_model_profile(model_profiles(), named)
        if not any(profile.writing in writings for writings in WRITINGS.values()):
            raise ConfigError(
                f"requests of {profile.writing} are not proxied",
                where="model_proxy.profile",
                remedy=f"the dialects are {', '.join(REPAIRED)}",
            )


async def _pass_back(response: httpx2.Response, send: Send, repairs: int | None) -> None:
    headers = back(response.headers.raw)
    if repairs is not None:
        headers.append((REPAIRS, str(repairs).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    try:
        async for chunk in response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except httpx2.TransportError as error:
        # The answer stays unfinished, and uvicorn breaks the connection: so the client sees that it was cut off.
        logger.warning("the model API's answer broke off: %s", plain(str(error), 200))
        return
    await send({"type": "http.response.body", "body": b"", "more_body": False})
