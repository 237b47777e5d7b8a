"""A request to `/authorize`: its parameters, checked (RFC 6749, 4.1.1; RFC 7636; RFC 8707)."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.serving.authorization.client_documents import UnusableDocument
from gateway.serving.authorization.clients import Client
from gateway.serving.authorization.program_endpoints import Form, Malformed, parameters_of
from gateway.serving.authorization.provider import Provider
from gateway.serving.authorization.redirect_uris import is_registered, with_parameters

SCOPE = "mcp"
"""The scope of every token: what a host reaches depends on the person."""

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_LONGEST_STATE = 4_000
_LONGEST_QUERY = 20_000


@dataclass(frozen=True)
class Place:
    """Where the gateway is: its name, the issuer URL, and what is its own."""

    name: str
    issuer: str
    resource: str
    """The URL of the endpoint that hosts use, unless they say otherwise."""
    is_resource: Callable[[str], bool]
    """Whether a URL is one of the gateway's endpoints."""
    scopes: Callable[[], Collection[str]]
    """The scopes that calls of some tools need at present."""

    @property
    def path(self) -> str:
        """The path below which the gateway is reached."""
        return urlsplit(self.issuer).path.rstrip("/")


@dataclass(frozen=True)
class AuthorizeRequest:
    """A valid request: the host that asks, and where its answer goes."""

    client: Client
    redirect_uri: str
    challenge: str
    resource: str
    state: str | None
    query: str
    scopes: Sequence[str]
    """`SCOPE`, and those that the host asks for by name. Unknown ones are not granted."""

    def answer(self, issuer: str, *parameters: tuple[str, str]) -> str:
        """Return the redirect URI with the answer, `state` and `iss` (RFC 9207)."""
        state = [] if self.state is None else [("state", self.state)]
        return with_parameters(self.redirect_uri, [*parameters, *state, ("iss", issuer)])


class RefusedRequest(Exception):
    """A request that cannot be answered; the message is for the person in front of the browser.

    `back`, if the client and its redirect URI are valid, takes the error to the host. Nobody is sent there unasked:
    anybody can register a client, and would have an open redirect.
    """

    def __init__(self, words: str, request: AuthorizeRequest | None = None, error: str = "") -> None:
        super().__init__(words)
        self.request = request
        self.error = error


async def checked_request(query: str, provider: Provider, place: Place) -> AuthorizeRequest:
    """Return the request in this query.

    Raises:
        RefusedRequest: it is not valid.
        StateUnavailable: clients cannot be looked up at present.
    """
    if len(query) > _LONGEST_QUERY:
        raise RefusedRequest("It is too long.")
    try:
        form = parameters_of(query)
    except Malformed as error:
        raise RefusedRequest(f"{error}.") from None
    client = await _client(form, provider)
    redirect_uri = form.get("redirect_uri")
    if redirect_uri is None or not is_registered(redirect_uri, client.redirect_uris):
        raise RefusedRequest("The address that it wants the answer at (redirect_uri) is not one that it registered.")
    resources = form.getlist("resource")
    request = AuthorizeRequest(
        client,
        redirect_uri,
        form.get("code_challenge") or "",
        next(iter(resources), place.resource),
        form.get("state"),
        query,
        (SCOPE, *sorted({*(form.get("scope") or "").split()}.intersection(place.scopes()))),
    )
    _check(form, request, resources, place.is_resource)
    return request


async def _client(form: Form, provider: Provider) -> Client:
    client_id = form.get("client_id")
    if client_id is None:
        raise RefusedRequest("It does not say who asks (client_id).")
    try:
        client = await provider.client(client_id)
    except UnusableDocument as fault:
        raise RefusedRequest(f"Who asks is not known: {fault}.") from None
    if client is None:
        raise RefusedRequest(
            "The host that asks is not registered here, or not any more. Remove the connection in the host, and add it "
            "again."
        )
    return client


def _check(form: Form, request: AuthorizeRequest, resources: Sequence[str], is_resource: Callable[[str], bool]) -> None:
    if request.state is not None and len(request.state) > _LONGEST_STATE:
        raise RefusedRequest("Its state is too long.")
    if form.get("response_type") != "code":
        raise RefusedRequest("It asks for something else than a code.", request, "unsupported_response_type")
    if form.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(request.challenge):
        raise RefusedRequest("It does not use PKCE with S256, which protects the code.", request, "invalid_request")
    if any(not is_resource(resource) for resource in resources):
        raise RefusedRequest("It asks for a token for another server than this one.", request, "invalid_target")
