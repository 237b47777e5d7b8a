"""The endpoints that programs call: `/token`, `/register` and `/revoke`. Errors are JSON (RFC 6749, 5.2).

Each form is read here, within bounds, and given to the SDK's handler in a canonical form: no parameter twice, and the
client's secret, however it was sent, as the hash that is stored of it.
"""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientMetadata
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from gateway.core.model.json_values import as_dict
from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedUse
from gateway.serving.authorization.approvals import digest
from gateway.serving.authorization.clients import SECRET_METHODS, RegistrationRate
from gateway.serving.authorization.listeners import Listeners
from gateway.serving.authorization.provider import Provider
from gateway.serving.authorization.state import State

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
GRANT_TYPES = ("authorization_code", "refresh_token")

_LARGEST = 16 * 1024
_MOST_PARAMETERS = 30

Endpoint = Callable[[Request], Awaitable[Response]]


class Malformed(Exception):
    """A request that cannot be read; the message says why."""


class ProgramEndpoints:
    """`/token`, `/register` and `/revoke`.

    `is_resource` says whether a URL is one of the gateway's; `on_revoked` is called when tokens may have ended.
    `listeners` are told of approvals that a host gives up; `shared` returns what counts registrations for several
    replicas together, if there are any.
    """

    def __init__(
        self,
        provider: Provider,
        state: State,
        is_resource: Callable[[str], bool],
        on_revoked: Callable[[], None],
        listeners: Listeners,
        shared: Callable[[], SharedUse | None] = lambda: None,
    ) -> None:
        self._state = state
        self._is_resource = is_resource
        self._on_revoked = on_revoked
        self._listeners = listeners
        self._clients = ClientAuthenticator(provider)
        self._tokens = TokenHandler(provider, self._clients)
        self._registration = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
        self._rate = RegistrationRate(shared=shared)
        self.token = _answering(self._token)
        self.register = _answering(self._register)
        self.revoke = _answering(self._revoke)

    async def _token(self, request: Request) -> Response:
        form = await _form(request)
        if form.get("grant_type") not in GRANT_TYPES:
            return oauth_error("unsupported_grant_type", f"grant_type must be one of {', '.join(GRANT_TYPES)}")
        if any(not self._is_resource(resource) for resource in form.getlist("resource")):
            return oauth_error("invalid_target", "resource is not this gateway")
        answer = await self._tokens.handle(_replayed(request, urlencode(form.single).encode()))
        if answer.status_code != 200:
            self._on_revoked()  # a code or a refresh token that comes again ends what it gave
        return answer

    async def _register(self, request: Request) -> Response:
        body = await bounded_body(request)
        if seconds := await self._rate.wait():
            return oauth_error("temporarily_unavailable", "too many registrations", 429, {"Retry-After": str(seconds)})
        try:
            metadata = as_dict(json.loads(body))
        except (ValueError, RecursionError):
            metadata = None
        if metadata is None:
            return oauth_error("invalid_client_metadata", "the body is not a JSON object")
        if metadata.get("token_endpoint_auth_method", SECRET_METHODS[0]) not in ("none", *SECRET_METHODS):
            # What a client is registered with may differ from what it asked for (RFC 7591, 3.2.1).
            metadata["token_endpoint_auth_method"] = SECRET_METHODS[0]
        if _is_rewritten(metadata):
            return oauth_error("invalid_redirect_uri", "a redirect URI is not in its normal form")
        answer = await self._registration.handle(_replayed(request, json.dumps(metadata).encode()))
        answer.headers.update(NO_STORE)
        return answer

    async def _revoke(self, request: Request) -> Response:
        form = await _form(request)
        try:
            client = await self._clients.authenticate_request(_replayed(request, urlencode(form.single).encode()))
        except AuthenticationError as error:
            return oauth_error("invalid_client", error.message, 401)
        token = form.get("token")
        if not token:
            return oauth_error("invalid_request", "token is missing")
        ended = await self._state.revoke_token(token, client.client_id)
        self._on_revoked()
        if ended is not None:
            self._listeners.tell(ended, "revoked by its host")
        return Response(status_code=200, headers=NO_STORE)


def _is_rewritten(metadata: dict[str, Any]) -> bool:
    """Whether the SDK would keep a redirect URI in another form than the one that is compared later."""
    try:
        read = OAuthClientMetadata.model_validate(metadata).redirect_uris or []
    except ValidationError:
        return False  # its handler says what is wrong
    return [str(uri) for uri in read] != metadata.get("redirect_uris")


class Form:
    """The parameters of a form: each is there once, except for `resource`."""

    def __init__(self, parameters: Sequence[tuple[str, str]]) -> None:
        self._parameters = parameters
        names = [name for name, _ in parameters if name != "resource"]
        if len(names) != len(set(names)):
            raise Malformed("a parameter is there more than once")

    @property
    def single(self) -> Mapping[str, str]:
        """The parameters; of several resources, the first."""
        return dict(reversed(self._parameters))

    def get(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing."""
        return self.single.get(name)

    def getlist(self, name: str) -> Sequence[str]:
        """Return all values of a parameter."""
        return [value for each, value in self._parameters if each == name]


def parameters_of(encoded: str) -> Form:
    """Read a query, or the body of a form.

    Raises:
        Malformed: it is not one, or has a parameter twice.
    """
    try:
        pairs = parse_qsl(encoded, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict")
    except ValueError:
        raise Malformed("the parameters cannot be read") from None
    return Form([(name, value) for name, value in pairs if value])


async def bounded_body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        Malformed: it is too large, or broke off.
    """
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST:
                raise Malformed(f"the body is larger than {_LARGEST:,} bytes")
    except ClientDisconnect:
        raise Malformed("the request broke off") from None
    return bytes(body)


async def form_of(request: Request) -> Form:
    """Return the form in the body of a request. Raises Malformed."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Malformed("the body must be application/x-www-form-urlencoded")
    try:
        return parameters_of((await bounded_body(request)).decode("utf-8"))
    except UnicodeDecodeError:
        raise Malformed("the form is not UTF-8") from None


async def _form(request: Request) -> Form:
    """Return a form of a client, with the hash of its secret in `client_secret`. Raises Malformed."""
    form = await form_of(request)
    sent = dict(form.single)
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        if "client_secret" in sent:
            raise Malformed("the client authenticates in two ways at once")
        client_id, sent["client_secret"] = _basic(credentials)
        if sent.setdefault("client_id", client_id) != client_id:
            raise Malformed("the client_id differs from that in the Authorization header")
    if "client_secret" in sent:
        sent["client_secret"] = digest(sent["client_secret"])
    others = [("resource", value) for value in form.getlist("resource")[1:]]
    return Form([*sent.items(), *others])


def _basic(credentials: str) -> tuple[str, str]:
    """Return id and secret of a client (RFC 6749, 2.3.1). Raises Malformed."""
    try:
        client_id, separator, secret = base64.b64decode(credentials, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise Malformed("the Authorization header cannot be read") from None
    if not separator:
        raise Malformed("the Authorization header cannot be read")
    return unquote_plus(client_id), unquote_plus(secret)


def oauth_error(error: str, words: str, status: int = 400, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error for a program (RFC 6749, 5.2)."""
    return JSONResponse({"error": error, "error_description": words}, status, {**NO_STORE, **(headers or {})})


def _answering(endpoint: Endpoint) -> Endpoint:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Malformed as error:
            return oauth_error("invalid_request", str(error))
        except StateUnavailable as error:
            return oauth_error("temporarily_unavailable", error.message, 503, {"Retry-After": "10"})

    return answered


def _replayed(request: Request, body: bytes) -> Request:
    """Return the request with another body, without what was said of the first one."""
    kept = [
        (name, value) for name, value in request.scope["headers"] if name not in (b"content-length", b"authorization")
    ]

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "headers": kept}, receive)
