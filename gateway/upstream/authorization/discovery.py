"""Find the authorization server of an upstream, in every order that a revision of MCP documents.

From 2025-06-18: the upstream's own metadata (RFC 9728; its URL from the challenge, below the path, at the root) names
the server, whose metadata is at one of three URLs (RFC 8414, OpenID Connect Discovery). 2025-03-26 knows neither: there
the server is at the upstream's origin, with its metadata at the root, or else with endpoints of fixed names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.upstream.authorization.challenge import scopes_in
from gateway.upstream.authorization.refusals import Refused
from gateway.upstream.authorization.server_client import ServerClient

_MOST_SCOPES = 200
"""Scopes of those that an upstream lists, which are asked for if nothing says which are needed."""

_MetadataT = TypeVar("_MetadataT", bound=BaseModel)


class ResourceMetadata(BaseModel):
    """What an upstream says about itself (RFC 9728, section 2), as far as it is used."""

    model_config = ConfigDict(frozen=True)

    resource: str
    authorization_servers: tuple[str, ...] = Field(min_length=1)
    scopes_supported: tuple[str, ...] | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None
    dpop_bound_access_tokens_required: bool | None = None


class ServerMetadata(BaseModel):
    """What an authorization server says about itself (RFC 8414, section 2), as far as it is used.

    URLs are text: identifiers of servers are compared character by character.
    """

    model_config = ConfigDict(frozen=True)

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AuthorizationServer:
    """The authorization server of an upstream, and what is asked of it.

    `resource` is the resource indicator; None if the upstream does not describe itself (2025-03-26), since servers of
    that time refuse it. `scopes` are those that the upstream lists. `is_described` says whether there is any metadata.
    """

    metadata: ServerMetadata
    resource: str | None = None
    scopes: tuple[str, ...] | None = None
    is_described: bool = True
    proof_algorithms: tuple[str, ...] | None = None
    """The algorithms of proofs (DPoP) that the upstream takes, if it lists them."""
    needs_proofs: bool = False
    """Whether the upstream takes no tokens but those that are bound to a key (DPoP)."""

    @property
    def issuer(self) -> str:
        """The server's identifier."""
        return self.metadata.issuer


async def discover(client: ServerClient, url: str, metadata_url: str | None, issuer: str | None) -> AuthorizationServer:
    """Return the authorization server of the upstream at `url`.

    `metadata_url` is from its challenge. `issuer` is the server that the configuration names, if it names one: then no
    other is used.

    Raises Refused if there is none, or if what was found contradicts itself.
    """
    described = await _resource_metadata(client, url, metadata_url)
    if described is not None:
        named = _selected(described.authorization_servers, issuer)
        metadata = await _server_metadata(client, named, url)
        if metadata is None:
            raise Refused(f"its authorization server {_host(named)} publishes no metadata")
        listed = described.scopes_supported
        return AuthorizationServer(
            metadata,
            described.resource,
            None if listed is None else scopes_in(" ".join(listed), _MOST_SCOPES),
            proof_algorithms=described.dpop_signing_alg_values_supported,
            needs_proofs=described.dpop_bound_access_tokens_required is True,
        )
    if issuer is not None:
        metadata = await _server_metadata(client, issuer, url)
        if metadata is None:
            raise Refused(f"the authorization server {issuer} (auth.issuer) publishes no metadata")
        return AuthorizationServer(metadata, resource_url_from_server_url(url))
    metadata = await _server_metadata(client, None, url)
    if metadata is not None:
        return AuthorizationServer(metadata)
    return AuthorizationServer(_default_endpoints(url), is_described=False)


async def _resource_metadata(client: ServerClient, url: str, metadata_url: str | None) -> ResourceMetadata | None:
    failed: str | None = None
    for each in build_protected_resource_metadata_discovery_urls(metadata_url, url):
        answer = await client.get(each)
        if answer.status >= 500 or answer.status == 429:
            failed = f"{_host(each)} answered HTTP {answer.status} to the question for its authorization server"
        if answer.status != 200 or answer.json is None:
            continue
        metadata = _valid(ResourceMetadata, answer.json)
        if metadata is None:
            continue
        if not _covers(metadata.resource, url):
            raise Refused("it names an authorization server for another resource than itself, which is refused")
        return metadata
    if failed is not None:  # it does not say that there is no metadata
        raise Refused(failed, is_passing=True)
    return None


def _covers(resource: str, url: str) -> bool:
    try:
        return check_resource_allowed(resource_url_from_server_url(url), resource)
    except ValueError:
        return False


def _selected(servers: tuple[str, ...], issuer: str | None) -> str:
    if issuer is None:
        return servers[0]
    for server in servers:
        if issuers_match(server, issuer):
            return server
    raise Refused(
        f"it names the authorization server {_host(servers[0])}, but the configuration {issuer}",
        remedy="check auth.issuer",
    )


async def _server_metadata(client: ServerClient, issuer: str | None, url: str) -> ServerMetadata | None:
    """Return the metadata of a server; None if there is none. Without an `issuer`, it is at the upstream's origin."""
    expected = issuer or _origin(url)
    if issuer is not None:
        client.checked(issuer)
    for each in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        answer = await client.get(each)
        if answer.status >= 500:
            raise Refused(f"{_host(each)} answered HTTP {answer.status}", is_passing=True)
        if answer.status != 200 or answer.json is None:
            continue
        metadata = _valid(ServerMetadata, answer.json)
        if metadata is None:
            continue
        client.checked(metadata.issuer)
        # RFC 8414, 3.3: otherwise any server could speak for any other.
        if not issuers_match(metadata.issuer, expected):
            raise Refused(f"the metadata of {_host(each)} is that of another authorization server, which is refused")
        for endpoint in (
            metadata.authorization_endpoint,
            metadata.token_endpoint,
            metadata.registration_endpoint,
            metadata.revocation_endpoint,
        ):
            if endpoint is not None:
                client.checked(endpoint)
        return metadata
    return None


def _default_endpoints(url: str) -> ServerMetadata:
    origin = _origin(url)
    return ServerMetadata(
        issuer=origin,
        authorization_endpoint=urljoin(origin, "/authorize"),
        token_endpoint=urljoin(origin, "/token"),
        registration_endpoint=urljoin(origin, "/register"),
    )


def _valid(model: type[_MetadataT], given: Mapping[str, Any]) -> _MetadataT | None:
    # Members that are not known, or null, are as good as absent ones.
    try:
        return model.model_validate({key: value for key, value in given.items() if value is not None})
    except ValidationError:
        return None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _host(url: str) -> str:
    return urlsplit(url).hostname or "its authorization server"
