"""A request as the SDK hands it over: who calls, and whether it is well formed."""

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from gateway.bridging.onward import CLIENT_CAPABILITIES, CLIENT_INFO, onward
from gateway.core.model.caller import MODERN_REVISIONS, Caller
from gateway.errors import InvalidRequest

PROFILE_SCOPE = "gateway.profile"
"""Where an HTTP request's ASGI scope keeps the profile that was chosen explicitly (path or header), or None."""

PRINCIPAL_SCOPE = "gateway.principal"
"""Where it keeps who is calling."""


def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
    """Who calls: the identity from the handshake or, since 2026-07-28, from the request itself."""
    name, version, capabilities = _identity(context)
    request = context.request
    if not isinstance(request, Request):
        return Caller(
            revision=context.protocol_version, client_name=name, client_version=version, capabilities=capabilities
        )
    return Caller(
        revision=context.protocol_version,
        client_name=name,
        client_version=version,
        user_agent=request.headers.get("user-agent"),
        profile=request.scope.get(PROFILE_SCOPE),
        principal=request.scope.get(PRINCIPAL_SCOPE, "local"),
        capabilities=capabilities,
    )


def _identity(context: ServerRequestContext[Any, Any]) -> tuple[str | None, str | None, Mapping[str, Any]]:
    if context.protocol_version in MODERN_REVISIONS:
        # As sent, not as the SDK's models read it: those lose a name that comes without a version.
        meta = _object((context.params or {}).get("_meta"))
        info = _object(meta.get(CLIENT_INFO))
        return _string(info.get("name")), _string(info.get("version")), _object(meta.get(CLIENT_CAPABILITIES))
    client = context.session.client_params
    if client is None:
        return None, None, {}
    capabilities = client.capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
    return client.client_info.name, client.client_info.version, capabilities


def checked_params(method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The params as they go on to the service. An optional field that is null counts as absent: some hosts send that.

    Raises `InvalidRequest` naming the field.
    """
    passed = onward(params)
    if method == "tools/call":
        _expect(method, passed, "name", str, "a string")
        _expect(method, passed, "arguments", dict, "an object", optional=True)
    elif method == "resources/read":
        _expect(method, passed, "uri", str, "a string")
    else:
        _expect(method, passed, "cursor", str, "a string", optional=True)
    return passed


def _expect(
    method: str, params: dict[str, Any], field: str, kind: type, in_words: str, *, optional: bool = False
) -> None:
    if optional and params.get(field) is None:
        params.pop(field, None)
    elif not isinstance(params.get(field), kind):
        raise InvalidRequest(f"{method}: params.{field} must be {in_words}")


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
