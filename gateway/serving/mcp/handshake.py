"""The opening of a connection: choose its era, and answer without upstreams. Uses the standard library only.

The rules, for each request in order of arrival:

    before an era is chosen     `initialize` chooses the handshake era; a request with the envelope of 2026-07-28
                                (`_meta` naming its protocol version) chooses the modern one, unless it is
                                `server/discover`: that is a probe, and a host that timed out waiting for the answer
                                goes on with `initialize` (the SDK's own loop refuses it, which breaks such hosts)
    in the handshake era        requests with an envelope are refused; `initialize` may come again
    in the modern era           `initialize` is refused, and so is every request without the envelope

Codes and messages are those of the SDK's server (2.3.0), so that hosts see no difference.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_object, is_object
from gateway.core.model.revisions import HANDSHAKE_REVISIONS, MODERN_REVISIONS, NEWEST_HANDSHAKE, Era
from gateway.core.model.wire import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SKILLS_EXTENSION,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from gateway.core.tools.instructions import Introductions

UI_EXTENSION = "io.modelcontextprotocol/ui"
"""MCP Apps: tools' pages are passed on unchanged. A server declares this extension without settings.

Source: https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx, mcp.server.apps
"""


TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
"""Tasks of 2026-07-28: those of upstreams are passed on (https://modelcontextprotocol.io/seps/2663-tasks-extension)."""


class Identity(NamedTuple):
    """The gateway's identity for hosts: the protocol's `serverInfo` and `instructions`.

    `instructions` are the gateway's own, `others` those of its upstreams; `newer` are further revisions,
    `methods` further methods.
    """

    name: str
    version: str
    title: str | None = None
    instructions: str | None = None
    others: Introductions = Introductions()
    newer: tuple[str, ...] = ()
    methods: frozenset[str] = frozenset()

    def server_info(self) -> dict[str, Any]:
        """The protocol's `Implementation` object."""
        info: dict[str, Any] = {"name": self.name, "version": self.version}
        return info if self.title is None else {**info, "title": self.title}

    def towards(self, grant: Grant, principal: str) -> "Identity":
        """Return the identity for a caller that not every upstream exists for, or not as for all others."""
        if grant.reaches_all_upstreams and not self.others.owners:
            return self
        return self._replace(others=self.others.reached_by(grant, principal))

    def introduction(self, client: object) -> dict[str, str]:
        """Return the `instructions` for a client with this clientInfo, cut to what it keeps; empty if none."""
        name = as_object(client).get("name")
        told = self.others.text_for(self.instructions, name if isinstance(name, str) else None)
        return {} if told is None else {"instructions": told}


class Refusal(Exception):
    """Raised for a request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def wire(self) -> dict[str, Any]:
        """The JSON-RPC error object."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def capabilities(*, modern: bool, skills: bool = True) -> dict[str, Any]:
    """Return the gateway's capabilities: the same for all, because the first answer comes before any upstream is known.

    They are the same in every handshake revision: hosts ignore fields that they do not know. `logging` is also a
    capability of 2026-07-28, where each request names its level; tasks are of that revision alone. `skills` is
    false if it is known that no upstream has any. Their directories are always read, from the upstream or from what it
    says of its skills.
    """
    extensions: dict[str, Any] = {UI_EXTENSION: {}}
    if skills:
        extensions[SKILLS_EXTENSION] = {"directoryRead": True}
    if modern:
        extensions[TASKS_EXTENSION] = {}
    return {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
        "extensions": extensions,
    }


def initialize_result(identity: Identity, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the answer to `initialize`, with the requested revision if known, else the newest with a handshake.

    Raises `Refusal` if the params lack a field that every revision requires.
    """
    given = params or {}
    requested = given.get("protocolVersion")
    client = given.get("clientInfo")
    if (
        not isinstance(requested, str)
        or not isinstance(given.get("capabilities"), Mapping)
        or not is_object(client)
        or not all(isinstance(client.get(key), str) for key in ("name", "version"))
    ):
        raise Refusal(
            INVALID_PARAMS,
            "initialize needs protocolVersion (a string), capabilities (an object), clientInfo (name and version)",
        )
    result: dict[str, Any] = {
        "protocolVersion": requested if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE,
        "capabilities": capabilities(modern=False, skills=identity.others.may_have_skills),
        "serverInfo": identity.server_info(),
    }
    return {**result, **identity.introduction(given["clientInfo"])}


def discover_result(
    identity: Identity, params: Mapping[str, Any] | None = None, *, tasks: bool = True
) -> dict[str, Any]:
    """Return the answer to `server/discover`, with the fields that every result of 2026-07-28 has.

    `tasks` is false for a host that is given none.
    """
    meta = (params or {}).get("_meta")
    client = as_object(meta).get(CLIENT_INFO)
    result: dict[str, Any] = {
        "supportedVersions": [*MODERN_REVISIONS, *identity.newer],
        "capabilities": capabilities(modern=tasks, skills=identity.others.may_have_skills),
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {SERVER_INFO: identity.server_info()},
    }
    return {**result, **identity.introduction(client)}


def enveloped(params: Mapping[str, Any] | None) -> bool:
    """Whether `_meta` names a protocol version, as only requests of 2026-07-28 and later do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION in meta


def check_envelope(params: Mapping[str, Any] | None) -> None:
    """Raise `Refusal` unless `_meta` has the two fields that 2026-07-28 requires, with a supported version."""
    meta = (params or {}).get("_meta")
    if not is_object(meta):
        raise Refusal(
            INVALID_PARAMS,
            f"params._meta must be an object carrying the required {PROTOCOL_VERSION!r} and {CLIENT_CAPABILITIES!r} "
            "envelope keys",
        )
    if missing := [key for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES) if key not in meta]:
        raise Refusal(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {', '.join(missing)}")
    version = meta[PROTOCOL_VERSION]
    if not isinstance(version, str):
        raise Refusal(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in MODERN_REVISIONS:
        raise Refusal(
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            {"supported": list(MODERN_REVISIONS), "requested": version},
        )


class Handshake:
    """The era of one connection, and the answers to its first requests, before anything else is ready."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.era: Era | None = None
        """None until the host has chosen."""
        self.client: Mapping[str, Any] | None = None
        """The params of the last accepted `initialize`."""
        self.revision = NEWEST_HANDSHAKE
        """The revision agreed on in the last accepted `initialize`."""
        self.envelope: Mapping[str, Any] | None = None
        """The last accepted `_meta` of the modern era."""

    def introduce(self, identity: Identity) -> None:
        """Tell a host that opens its connection from now on that the gateway is this."""
        self._identity = identity

    def answer(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the result of a request that belongs to the opening, or None if it is to be served later.

        Raises `Refusal` if the request does not belong to the connection's era.
        """
        if method == "initialize":
            return self._initialize(params)
        if enveloped(params) or self.era == "modern":
            return self._modern(method, params)
        if method == "ping":
            return {}
        if method == "server/discover":
            raise Refusal(METHOD_NOT_FOUND, "Method not found", method)
        return None

    def _initialize(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if self.era == "modern":
            supported: dict[str, Any] = {"supported": list(MODERN_REVISIONS)}
            requested = (params or {}).get("protocolVersion")
            raise Refusal(
                UNSUPPORTED_PROTOCOL_VERSION,
                "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
                {**supported, "requested": requested} if isinstance(requested, str) else supported,
            )
        result = initialize_result(self._identity, params)
        self.revision = result["protocolVersion"]
        self.client = params
        self.era = "handshake"
        return result

    def _modern(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if self.era == "handshake":
            raise Refusal(
                INVALID_REQUEST,
                "this connection serves the handshake protocol era; requests carrying the 2026-07-28 envelope are not "
                "accepted on it",
            )
        check_envelope(params)
        self.envelope = (params or {}).get("_meta")
        if method == "server/discover":
            return discover_result(self._identity, params)
        self.era = "modern"
        if method == "ping":
            raise Refusal(METHOD_NOT_FOUND, "Method not found", method)
        return None
