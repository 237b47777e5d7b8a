"""Read the caller of a request from the SDK's context, and validate the request's params."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mcp.server.context import ServerRequestContext
from starlette.requests import HTTPConnection, Request

from gateway.content.links.base_url import PRINCIPAL_SCOPE
from gateway.core.model.caller import Caller
from gateway.core.model.grant import EVERYTHING, Grant
from gateway.core.model.json_values import as_object, as_text
from gateway.core.model.revisions import MODERN_REVISIONS, NEWEST_HANDSHAKE
from gateway.core.model.toolset_scope import ToolsetScope
from gateway.core.model.wire import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, LOG_LEVELS
from gateway.errors import InvalidRequest
from gateway.serving.access import Identified
from gateway.serving.mcp.early_stdio import Arrival
from gateway.serving.mcp.hosts import introduced, level_of

_CODEX_TURN = "x-codex-turn-metadata"
_LONGEST_TURN = 20_000
_PROGRAM = "openapi"
ROOT_PROFILE = "passthrough"
"""The profile of programs without MCP: results as they come."""

PROFILE_SCOPE = "gateway.profile"
"""Key of an HTTP request's ASGI scope for the explicitly chosen profile (path or header), or None."""


TOOLSETS_SCOPE = "gateway.toolsets"
"""Key of an HTTP request's ASGI scope for the toolsets that it is narrowed to, by name (`ToolsetScope`)."""

CHOOSES_SCOPE = "gateway.chooses_outputs"
"""Key of an HTTP request's ASGI scope that is there if its host chooses the forms of results (`next_revision`)."""

IDENTIFIED_SCOPE = "gateway.identified"
"""Key of an HTTP request's ASGI scope for whoever sent its token (`Identified`)."""

ADMITTED_SCOPE = "gateway.admitted"
"""Key of an HTTP request's ASGI scope for the place that it has been given among the running ones."""

ENDED_SCOPE = "gateway.ended"
"""Key of an HTTP request's ASGI scope for a function that waits until its token is no longer valid."""


def grant_of(request: Any) -> Grant:
    """Return what the sender of an HTTP request may reach; everything if the request came over another transport."""
    if not isinstance(request, HTTPConnection):
        return EVERYTHING
    found = request.scope.get(IDENTIFIED_SCOPE)
    grant = found.grant if isinstance(found, Identified) else EVERYTHING
    toolsets: Mapping[str, ToolsetScope] = request.scope.get(TOOLSETS_SCOPE) or {}
    return grant._replace(within=tuple(toolsets.values())) if toolsets else grant


def principal_of(request: Any) -> str:
    """Return whom an HTTP request comes from; the principal on this machine if it came over another transport."""
    found = request.scope.get(IDENTIFIED_SCOPE) if isinstance(request, HTTPConnection) else None
    return found.principal if isinstance(found, Identified) else Caller().principal


def token_of(request: Any) -> str | None:
    """Return the name of the token of an HTTP request, if it has one."""
    found = request.scope.get(IDENTIFIED_SCOPE) if isinstance(request, HTTPConnection) else None
    return found.token if isinstance(found, Identified) else None


def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
    """Return the caller: its identity is from the handshake or, since 2026-07-28, from the request itself."""
    connection = context.session._connection  # pyright: ignore[reportPrivateUsage]  # the SDK has no public handle
    if context.protocol_version in MODERN_REVISIONS:
        return modern_caller(context.protocol_version, context.params, context.request, connection.session_id)
    said = introduced(connection)
    return Caller(
        model=declared_model(context.params) or _started_with(context.request),
        revision=context.protocol_version,
        session=connection.session_id,
        log_level=level_of(connection),
        **_identity(said.get("clientInfo"), said.get("capabilities")),
        **_sender(context.request),
    )


def modern_caller(
    revision: str, params: Mapping[str, Any] | None, request: object, session: str | None = None
) -> Caller:
    """Return the caller of a request of 2026-07-28, by its params and by the HTTP request that brought it, if any."""
    # The raw value, because the SDK's models lose a name without a version.
    meta = as_object((params or {}).get("_meta"))
    return Caller(
        model=declared_model(params) or _started_with(request),
        revision=revision,
        session=session,
        log_level=as_text(meta.get(LOG_LEVEL)),
        **_identity(meta.get(CLIENT_INFO), meta.get(CLIENT_CAPABILITIES)),
        **_sender(request),
    )


def program_caller(request: Request) -> Caller:
    """Return the caller of an HTTP request of a program without MCP: it gets everything unless it chose a profile."""
    caller = Caller(revision=NEWEST_HANDSHAKE, client_name=_PROGRAM, **_sender(request))
    return replace(caller, profile=caller.profile or ROOT_PROFILE)


def _started_with(request: object) -> str | None:
    return request.model if isinstance(request, Arrival) else None


def declared_model(params: Mapping[str, Any] | None) -> str | None:
    """Return the model that a call is made for, if the host names it.

    Measured: Codex 0.169.0 puts `x-codex-turn-metadata` into the `_meta` of every tools/call, with `model` in it.
    """
    told = as_object((params or {}).get("_meta")).get(_CODEX_TURN)
    if isinstance(told, str) and len(told) <= _LONGEST_TURN:
        with suppress(ValueError, RecursionError):
            told = json.loads(told)
    return as_text(as_object(told).get("model")) or None


def _identity(client: object, capabilities: object) -> dict[str, Any]:
    info = as_object(client)
    return {
        "client_name": as_text(info.get("name")),
        "client_version": as_text(info.get("version")),
        "client_info": info or None,
        "capabilities": as_object(capabilities),
    }


def _sender(request: object) -> dict[str, Any]:
    """Return what an HTTP request says of its sender, or what a host on stdio was started with."""
    if isinstance(request, Arrival):
        return {"profile": request.profile, "toolsets": request.toolsets, "on_stdio": True}
    if not isinstance(request, Request):
        return {}
    return {
        "user_agent": request.headers.get("user-agent"),
        "profile": request.scope.get(PROFILE_SCOPE),
        "principal": request.scope.get(PRINCIPAL_SCOPE, "local"),
        "headers": request.headers,
        "grant": grant_of(request),
        "token": token_of(request),
        "toolsets": _toolsets_of(request.scope),
        "chooses_outputs": CHOOSES_SCOPE in request.scope,
    }


def _toolsets_of(scope: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the toolsets of an HTTP request: that of its token holds wherever the request was sent."""
    found = scope.get(IDENTIFIED_SCOPE)
    own = (found.toolset,) if isinstance(found, Identified) and found.toolset is not None else ()
    return tuple(dict.fromkeys((*own, *(scope.get(TOOLSETS_SCOPE) or ()))))


def checked_params(method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the params for the service. An optional field that is null counts as absent: some hosts send that.

    Raises `InvalidRequest` naming the field.
    """
    passed = dict(params or {})
    if method == "tools/call":
        _expect(method, passed, "name", str, "a string")
        _expect(method, passed, "arguments", dict, "an object", optional=True)
    elif method in ("resources/read", "resources/subscribe", "resources/unsubscribe", "skills/get"):
        _expect(method, passed, "uri", str, "a string")
    elif method == "resources/directory/read":
        _expect(method, passed, "uri", str, "a string")
        _expect(method, passed, "cursor", str, "a string", optional=True)
    elif method == "logging/setLevel":
        if passed.get("level") not in LOG_LEVELS:
            raise InvalidRequest(f"{method}: params.level must be one of {', '.join(LOG_LEVELS)}")
    elif method == "prompts/get":
        _expect(method, passed, "name", str, "a string")
        _expect(method, passed, "arguments", dict, "an object", optional=True)
    elif method.startswith("tasks/"):
        _expect(method, passed, "taskId", str, "a string")
    elif method == "completion/complete":
        _expect(method, passed, "ref", dict, "an object")
        _expect(method, passed, "argument", dict, "an object")
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
