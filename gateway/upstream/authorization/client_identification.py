"""How the gateway is known to an authorization server: configured, described by a document, or registered."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from mcp.client.auth import OAuthRegistrationError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import OAuthClientInformationFull

from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.system.loopback import is_this_machine
from gateway.upstream.authorization.discovery import AuthorizationServer, ServerMetadata
from gateway.upstream.authorization.ports import (
    CALLBACK_PATH,
    CLIENT_DOCUMENT_PATH,
    ClientAuthentication,
    ClientIdentification,
)
from gateway.upstream.authorization.refusals import Refused
from gateway.upstream.authorization.server_client import ServerClient

_NAME = "mcp-gateway"
_LOGIN = 600.0
"""Seconds for which a secret has to be valid, so that a login can be completed with it."""
_LONGEST = 4_096
"""Characters of an id or a secret that a server gives the gateway: they are kept with every login."""
_METHODS: tuple[ClientAuthentication, ...] = ("none", "client_secret_basic", "client_secret_post")
"""The methods that the gateway registers with, the preferred one first."""


def client_document(public_url: str) -> dict[str, Any]:
    """Return the document that describes the gateway as a client, to be served at `CLIENT_DOCUMENT_PATH`.

    Its URL is then the gateway's client id (draft-ietf-oauth-client-id-metadata-document).
    """
    base = public_url.rstrip("/")
    return {
        "client_id": f"{base}{CLIENT_DOCUMENT_PATH}",
        "client_uri": base,
        **_description(f"{base}{CALLBACK_PATH}", "none"),
    }


async def identify(
    client: ServerClient,
    server: AuthorizationServer,
    settings: UpstreamAuthSettings,
    redirect_uri: str,
    scopes: Sequence[str],
    public_url: str | None,
    known: Sequence[ClientIdentification] = (),
) -> ClientIdentification:
    """Return the gateway's identification for a login: as configured, else by a document, else registered.

    `known` are clients that this server has registered before.

    Raises Refused if the server knows none of these ways.
    """
    if settings.client_id is not None:
        return configured_client(settings, server.metadata)
    if (document := _document_for(server.metadata, settings, redirect_uri, public_url)) is not None:
        return ClientIdentification(client_id=document)
    for each in known:
        if _serves(each, redirect_uri, scopes):
            return each
    return await _register(client, server, redirect_uri, scopes)


def configured_client(settings: UpstreamAuthSettings, metadata: ServerMetadata) -> ClientIdentification:
    """Return the client in the configuration; without one, for a workload, an anonymous one."""
    return ClientIdentification(
        client_id=settings.client_id or "",
        client_secret=settings.client_secret,
        authentication=settings.client_authentication or _authentication(settings, metadata),
    )


def _authentication(settings: UpstreamAuthSettings, metadata: ServerMetadata) -> ClientAuthentication:
    if settings.private_key is not None:
        return "private_key_jwt"
    if settings.client_secret is None:
        return "none"
    supported = metadata.token_endpoint_auth_methods_supported
    # Without a list, Basic is what every server takes (RFC 8414, section 2).
    is_posted = supported is not None and "client_secret_basic" not in supported and "client_secret_post" in supported
    return "client_secret_post" if is_posted else "client_secret_basic"


def _document_for(
    metadata: ServerMetadata, settings: UpstreamAuthSettings, redirect_uri: str, public_url: str | None
) -> str | None:
    """Return the URL of a document that has this redirect URI, if the server fetches such documents."""
    if not metadata.client_id_metadata_document_supported:
        return None
    if settings.client_metadata_url is not None:
        return settings.client_metadata_url
    if public_url is None:
        return None
    document = client_document(public_url)
    is_usable = is_valid_client_metadata_url(document["client_id"]) and redirect_uri in document["redirect_uris"]
    return document["client_id"] if is_usable else None


def _serves(client: ClientIdentification, redirect_uri: str, scopes: Sequence[str]) -> bool:
    is_wide = client.scopes is None or set(scopes) <= set(client.scopes)
    is_valid = client.secret_expires is None or client.secret_expires > time.time() + _LOGIN
    return client.redirect_uri == redirect_uri and is_wide and is_valid


async def _register(
    client: ServerClient, server: AuthorizationServer, redirect_uri: str, scopes: Sequence[str]
) -> ClientIdentification:
    """Register the gateway with the server (RFC 7591)."""
    endpoint = server.metadata.registration_endpoint
    if endpoint is None:
        raise Refused(
            "its authorization server does not let the gateway register itself",
            remedy="register a client there, and set auth.client_id (and auth.client_secret, auth.callback_port)",
        )
    supported = server.metadata.token_endpoint_auth_methods_supported or ("client_secret_basic",)
    method: ClientAuthentication = "none"
    for each in reversed(_METHODS):
        if supported.count(each):  # `in` would widen the type of `each`
            method = each
    wanted = _description(redirect_uri, method)
    if scopes:  # some servers later refuse scopes that were not registered
        wanted["scope"] = " ".join(scopes)
    body = json.dumps(wanted).encode()
    answer = await client.post(endpoint, {"content-type": "application/json"}, body)
    if answer.status not in (200, 201) or answer.json is None:
        raise Refused(
            f"its authorization server did not register the gateway ({answer.cause})",
            error=answer.error,
            remedy="register a client there, and set auth.client_id",
            is_passing=answer.status >= 500,
        )
    return _registered(answer.json, redirect_uri, scopes, method)


def _registered(
    answer: Mapping[str, Any], redirect_uri: str, scopes: Sequence[str], method: ClientAuthentication
) -> ClientIdentification:
    try:
        client = OAuthClientInformationFull.model_validate(answer)
        check_registration_usable(client)
        if max(len(client.client_id), len(client.client_secret or "")) > _LONGEST:
            raise ValueError
        assigned: ClientAuthentication | None = next(
            (each for each in _METHODS if each == client.token_endpoint_auth_method), None
        )
        return ClientIdentification(
            client_id=client.client_id,
            client_secret=client.client_secret,
            authentication=assigned or (method if client.client_secret is not None else "none"),
            redirect_uri=redirect_uri,
            scopes=tuple(scopes) or None,
            secret_expires=client.client_secret_expires_at or None,
        )
    except (ValueError, OAuthRegistrationError):  # pydantic's errors are such, and quote what they are about
        raise Refused("its authorization server registered the gateway in a way that cannot be used") from None


def _description(redirect_uri: str, method: ClientAuthentication) -> dict[str, Any]:
    is_native = is_this_machine(httpx2.URL(redirect_uri).host)
    return {
        "client_name": _NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native" if is_native else "web",
    }
