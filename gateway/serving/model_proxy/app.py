"""The model proxy as an ASGI application: repairs requests, forwards them, and streams the answers back."""

import hmac
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from gateway.config.builtin_profiles import model_profiles
from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.content.provider_files import ProviderFiles
from gateway.content.shaping.repair_request import RepairedRequest, Repairer
from gateway.core.fact_words import plain
from gateway.core.model.notes import Note
from gateway.core.profiles.model_profile import ImagePlace, ModelProfile
from gateway.core.profiles.model_profiles import choose_model_profile, leaves_choice, with_tool_images
from gateway.errors import ConfigError, Overloaded
from gateway.serving.http import KNOWN, STANDING, Allowed, RefusedHosts, WrongTokens
from gateway.serving.http.body_length import declared_length
from gateway.serving.model_proxy import problems
from gateway.serving.model_proxy.answers import UpstreamAnswer
from gateway.serving.model_proxy.client import BodyTooLarge, ClientSide
from gateway.serving.model_proxy.headers import PROXY_HEADER, forwarded_headers, value_of
from gateway.serving.model_proxy.problems import ProxyProblem, problem_response
from gateway.serving.model_proxy.routes import (
    REPAIRED,
    WRITINGS,
    ApiRoute,
    climbs,
    is_spoken,
    path_behind,
    route_of,
    spoken_words,
    target_of,
)
from gateway.serving.model_proxy.tool_images import (
    MOST_BYTES,
    REFUSING,
    KnownPlaces,
    is_refused,
    other_places,
    place_words,
)
from gateway.system.loopback import is_this_machine
from gateway.system.tls import HOOKS, ssl_context

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
_KEEPALIVE_SECONDS = 4.0
"""Idle connections are not reused after this time: less than the 5 seconds after which common servers close them."""

_LONGEST_MODEL = 500
"""Characters of a model's name by which it is remembered: a request can name one of megabytes."""

Explain = Callable[[RepairedRequest], None]
CheckSize = Callable[[int | None], None]
"""Raises Overloaded if a body of so many bytes (None: unknown) cannot be taken in for now."""


def proxy_app(
    settings: ModelProxySettings,
    repairer: Repairer,
    *,
    owner: str = "local",
    explain: Explain | None = None,
    check_size: CheckSize | None = None,
) -> Starlette:
    """Return the application in front of `settings.to`. Its lifespan must be run, because it holds the client.

    Args:
        settings: [model_proxy]; `to` must be set.
        repairer: repairs requests.
        owner: owner of the content whose handles may be opened.
        explain: called in a thread with every request that was looked at, repaired or not.
        check_size: called with the size of every body before it is read.

    Raises:
        ConfigError: `to` is missing, or the profile's dialect is not supported by the proxy.
        ProfileError: there is no such model profile.
    """
    files = ProviderFiles.from_environment(upload_above=settings.upload_above) if settings.upload_above else None
    repairing = repairer if files is None else replace(repairer, files=files)
    proxy = _Proxy(settings, repairing, owner, explain, check_size)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with proxy.client, files or nullcontext():
            yield

    app = Starlette(routes=[StarletteRoute("/{path:path}", proxy)], lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


class _Refused(Exception):
    """Raised for a request that the proxy answers itself."""

    def __init__(self, problem: ProxyProblem, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after = retry_after
        self.message = message


@dataclass(frozen=True)
class _Sent:
    """A request to the model API, and the number of repairs in it, or None if it was not examined."""

    request: httpx2.Request
    repairs: int | None


@dataclass(frozen=True)
class _Repaired(_Sent):
    """A request that was examined: its body as sent by the client, and after repairs."""

    repairs: int
    route: ApiRoute
    body: bytes
    repaired: RepairedRequest


class _Proxy:
    """The proxy's only endpoint."""

    def __init__(
        self,
        settings: ModelProxySettings,
        repairer: Repairer,
        owner: str,
        explain: Explain | None,
        check_size: CheckSize | None,
    ) -> None:
        if settings.to is None:
            raise ConfigError("no model API is given", where="model_proxy.to")
        self._to = settings.to.rstrip("/")
        self._url = httpx2.URL(self._to)
        self._settings = settings
        self._repairer = repairer
        self._owner = owner
        self._explain = explain
        self._check_size = check_size
        self._allowed = Allowed(settings.bind, settings.allowed_hosts, settings.allowed_origins)
        self._wrong_tokens = WrongTokens("the model proxy")
        remedy = "list it in [model_proxy] allowed_hosts if it is the proxy's"
        self._refused_hosts = RefusedHosts("the model proxy", remedy)
        self._profile_of = lru_cache(maxsize=256)(self._choose)
        self._known = KnownPlaces()
        self._check_profile()
        self.client = httpx2.AsyncClient(
            verify=ssl_context(),
            event_hooks=HOOKS,
            timeout=httpx2.Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout), pool=None),
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=50, keepalive_expiry=_KEEPALIVE_SECONDS
            ),
            follow_redirects=False,
            trust_env=not is_this_machine(self._url.host),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = route_of(scope["path"])
        side = ClientSide(receive, self._settings.max_request_bytes)
        try:
            await self._check(Headers(scope=scope), scope)
            self._check_room(Headers(scope=scope))
            if scope["method"] == "POST" and route is not None and not is_spoken(route.dialect, self._to):
                raise _Refused(problems.WRONG_DIALECT, self._no_such_dialect(route.dialect))
            await self._pass_on(scope, side, send, route if scope["method"] == "POST" else None)
        except _Refused as refused:
            if refused.problem is not problems.NO_TOKEN:  # these may be very frequent
                logger.info("refused with %d: %s", refused.problem.status, refused.message)
            await side.rest()
            dialect = route.dialect if route else None
            answer = problem_response(refused.problem, refused.message, dialect, refused.retry_after)
            await answer(scope, receive, send)

    async def _check(self, headers: Headers, scope: Scope) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.host(hosts[0]):
            self._refused_hosts.refused(hosts)
            words = "this Host is not one of the proxy's; [model_proxy] allowed_hosts names others"
            raise _Refused(problems.FOREIGN_HOST, words)
        origins = headers.getlist("origin")
        if any(not self._allowed.origin(origin) for origin in origins):
            words = "this Origin may not call the proxy; [model_proxy] allowed_origins names others"
            raise _Refused(problems.FOREIGN_ORIGIN, words)
        token = self._settings.token
        if token is not None and scope["method"] == "OPTIONS" and origins:
            return  # a browser's preflight request cannot have a token
        given = headers.get(PROXY_HEADER)
        if token is not None and not hmac.compare_digest((given or "").encode("latin-1"), token.encode()):
            if given is not None:  # no token at all is not a wrong guess
                await self._wrong_tokens.refused(scope)
            raise _Refused(problems.NO_TOKEN, "the header X-MCP-Gateway-Token is missing or wrong")
        scope[STANDING] = KNOWN

    def _check_room(self, headers: Headers) -> None:
        """Refuse a body that is too large for the memory that is left."""
        if self._check_size is None:
            return
        try:
            self._check_size(declared_length(headers))
        except Overloaded as full:
            raise _Refused(problems.OVERLOADED, full.message, full.retry_after) from None

    def _no_such_dialect(self, dialect: str) -> str:
        return (
            f"the model API at {self._url.host} does not speak {dialect}. Client and model API have to speak the same "
            f"dialect; there, tool results are repaired in POST {spoken_words(self._to)}"
        )

    async def _pass_on(self, scope: Scope, side: ClientSide, send: Send, route: ApiRoute | None) -> None:
        refused: list[_Refused] = []
        async with anyio.create_task_group() as tasks:

            async def leave_with_the_client() -> None:
                await side.gone()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave_with_the_client)
            try:
                await self._exchange(scope, side, send, route)
            except _Refused as error:
                refused.append(error)  # raised below, because the task group would wrap it
            except ClientDisconnect:
                pass
            tasks.cancel_scope.cancel()
        for refusal in refused:
            raise refusal

    async def _exchange(self, scope: Scope, side: ClientSide, send: Send, route: ApiRoute | None) -> None:
        async with AsyncExitStack() as opened:
            answer, repairs = await self._answered(scope, side, route, opened)
            await answer.pass_back(send, repairs)
        if route is not None and answer.status in (404, 405):
            logger.warning("the model API answered %d: does it speak %s?", answer.status, route.dialect)

    async def _answered(
        self, scope: Scope, side: ClientSide, route: ApiRoute | None, opened: AsyncExitStack
    ) -> tuple[UpstreamAnswer, int | None]:
        """Return the answer to pass on, and the number of repairs. Nothing has been sent to the client yet."""
        try:
            sent = await self._request(scope, side, route)
            answer = await self._send(sent.request, opened)
            if isinstance(sent, _Repaired) and answer.status in REFUSING:
                return await self._tried_elsewhere(sent, answer, opened)
            return answer, sent.repairs
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

    async def _send(self, request: httpx2.Request, opened: AsyncExitStack) -> UpstreamAnswer:
        answer = UpstreamAnswer(await self.client.send(request, stream=True))

        async def close() -> None:
            with anyio.CancelScope(shield=True):
                await answer.close()

        opened.push_async_callback(close)
        return answer

    async def _tried_elsewhere(
        self, sent: "_Repaired", first: UpstreamAnswer, opened: AsyncExitStack
    ) -> tuple[UpstreamAnswer, int]:
        """If the API refused images in tool results because of their place, try other places, and return the answer.

        Each other place is tried once. One that is accepted is remembered; if none is, the first answer is returned.
        """
        dialect, repaired = sent.route.dialect, sent.repaired
        profile = repaired.profile
        if profile is None or not leaves_choice(profile):
            return first, sent.repairs
        refused = profile.image.place
        if not is_refused(first.status, await first.text(MOST_BYTES), refused):
            return first, sent.repairs
        for place in other_places(refused):
            elsewhere = with_tool_images(profile, place)
            again = await self._repairer.repair(
                sent.body, dialect, lambda _, chosen=elsewhere: chosen, model=sent.route.model, owner=self._owner
            )
            if again.body == repaired.body:
                continue  # it has no images in tool results
            try:
                answer = await self._send(_with_body(sent.request, again.body), opened)
            except httpx2.TransportError:
                break
            if answer.status in REFUSING:
                continue
            if answer.status < 400:
                self._found_out(dialect, again, refused, place)
            return answer, len(again.changes)
        return first, sent.repairs

    def _found_out(self, dialect: str, again: RepairedRequest, refused: ImagePlace, place: ImagePlace) -> None:
        self._known.remember(dialect, _beginning(again.model), place)
        words = f"the model API refused images {place_words(refused)}"
        name = plain(again.model, 100) if again.model else "its model"
        logger.info("%s; for %s they go %s from now on", words, name, place_words(place, to=True))
        if self._explain is not None:
            note = Note(kind="moved", text=f"tried again: {words}, and took them {place_words(place)}")
            self._explain(replace(again, notes=(*again.notes, note)))

    async def _request(self, scope: Scope, side: ClientSide, route: ApiRoute | None) -> "_Sent":
        url, headers = self._url_of(scope), forwarded_headers(scope["headers"])
        length = value_of(scope["headers"], b"content-length")
        if route is None:
            has_body = bool(length) or bool(value_of(scope["headers"], b"transfer-encoding"))
            if length:
                headers.append((b"content-length", length))
            content: Any = side.chunks() if has_body else await side.whole()
            return _Sent(httpx2.Request(scope["method"], url, headers=headers, content=content or None), None)
        if length.isdigit() and int(length) > self._settings.max_request_bytes:
            raise BodyTooLarge
        body = await side.whole()
        if value_of(scope["headers"], b"content-encoding").lower() not in (b"", b"identity"):
            logger.warning("a compressed request passes as it is: tool results in it are not seen")
            return _Sent(httpx2.Request("POST", url, headers=headers, content=body), 0)
        repaired = await self._repaired(body, route)
        request = httpx2.Request("POST", url, headers=headers, content=repaired.body)
        return _Repaired(request, len(repaired.changes), route, body, repaired)

    def _url_of(self, scope: Scope) -> httpx2.URL:
        """Return the URL to forward to: scheme, host and port are those of `to`, whatever the path is."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        if climbs(raw):
            raise _Refused(problems.BAD_PATH, "the path has segments of dots, which could lead out of [model_proxy] to")
        path = path_behind(self._to, raw)
        try:
            url = self._url.copy_with(raw_path=path + (b"?" + query if query else b""))
        except httpx2.InvalidURL:
            raise _Refused(problems.BAD_PATH, "the path cannot be read") from None
        return url

    async def _repaired(self, body: bytes, route: ApiRoute) -> RepairedRequest:
        def choose(model: str | None) -> ModelProfile:
            known_as = _beginning(model)
            return self._known.applied(route.dialect, known_as, self._profile_of(route.dialect, known_as))

        repaired = await self._repairer.repair(
            body, route.dialect, choose, model=route.model, owner=self._owner, reinject=self._settings.reinject
        )
        for change in repaired.changes:
            logger.info("repaired %s (%s)", change.where, route.dialect)
        for note in repaired.notes:
            logger.debug("%s: %s", note.kind, note.text)
        if self._explain is not None:
            await anyio.to_thread.run_sync(self._explain, repaired)  # large requests are looked through
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


def _beginning(model: str | None) -> str | None:
    return None if model is None else model[:_LONGEST_MODEL]


def _with_body(request: httpx2.Request, body: bytes) -> httpx2.Request:
    """Return the same request with another body."""
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx2.Request(request.method, request.url, headers=headers, content=body)
