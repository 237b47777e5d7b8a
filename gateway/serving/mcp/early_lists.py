"""Lists that a host is given before the gateway is loaded: what the same host was given last. Standard library only.

Some hosts wait a few seconds for a list, and loading the gateway takes as long on a busy machine. A list that was given
early is then asked for again, on the host's behalf (`Check`). The gateway compares the two, and notifies the host if
they differ (`gateway.serving.mcp.list_keeper`).

    host      tools/list           early stage    its kept list
                                   early stage    tools/list, with an id of its own, queued for the gateway
                                   gateway        notifications/tools/list_changed, if its list is another one

A host of 2026-07-28 hears only of changes that it has subscribed to. Some wait for the acknowledgement before they ask
for lists (Claude Code 2.1.329), so that is given early as well, and the gateway's own is not passed on. Only lists of
which the host is to hear are given to it early.

A host that was never given a list gets one that a command has prepared for hosts of its name (`prepare_lists`), unless
it declares more than such a list was made for.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.config.list_facts import ListFacts
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SUBSCRIPTION_ID
from gateway.serving.mcp.handshake import Handshake
from gateway.serving.mcp.kept_lists import LISTS, AskedList, KeptList, KeptLists, key_of_list, key_of_prepared

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_KINDS = ("tools", "prompts", "resources")
_ENVELOPE = (PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES)
_LISTEN = {"_meta", "notifications"}
_PLAIN = {"roots", "elicitation", "sampling"}
"""What a host may declare to be given a list that was prepared: extensions may change what it is offered."""


class Acknowledgement(NamedTuple):
    """The notification by which a host of 2026-07-28 learns that it will hear of changes of these kinds of lists."""

    subscription: str | int
    heard: frozenset[str]
    notification: dict[str, Any]


def acknowledgement(request: Mapping[str, Any], handshake: Handshake) -> Acknowledgement | None:
    """Return the acknowledgement of a request to hear of changes of lists; None if it is for anything else."""
    params = as_object(request.get("params"))
    wanted = as_object(params.get("notifications"))
    heard = frozenset(kind for kind in _KINDS if wanted.get(f"{kind}ListChanged") is True)
    if request["method"] != "subscriptions/listen" or handshake.era != "modern" or set(params) - _LISTEN:
        return None
    if not heard or any(value for key, value in wanted.items() if key.removesuffix("ListChanged") not in heard):
        return None
    honored = {f"{kind}ListChanged": True for kind in _KINDS if kind in heard}
    told = {"_meta": {SUBSCRIPTION_ID: request["id"]}, "notifications": honored}
    return Acknowledgement(request["id"], heard, {"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": told})


class Check(NamedTuple):
    """A list given early: the result for the host, and the request by which the gateway checks it, if it is not asked
    already."""

    result: dict[str, Any]
    request: dict[str, Any] | None
    asked: AskedList


class EarlyLists:
    """What one connection is given early, under these facts. All but `is_own` is called in one thread."""

    def __init__(self, kept: KeptLists, facts: ListFacts) -> None:
        self.facts = facts
        self._kept = kept
        self._checked: set[str] = set()
        self._own_ids: frozenset[str] = frozenset()
        self._envelope: Mapping[str, Any] | None = None
        self._host: tuple[str, Mapping[str, Any]] | None = None
        self._heard: frozenset[str] = frozenset()

    def asked(self, method: str, params: Mapping[str, Any] | None, handshake: Handshake) -> AskedList | None:
        """Return the list that a request asks for; None if it is not one that is kept."""
        if method not in LISTS or set(params or {}) - {"_meta"}:  # a page of it
            return None
        if handshake.era == "handshake" and handshake.client is not None:
            self._host = handshake.revision, handshake.client
            return AskedList(key_of_list(self.facts.digest, method, handshake.revision, handshake.client))
        self._envelope = handshake.envelope
        if handshake.era != "modern" or self._envelope is None:
            return None
        client = {"clientInfo": self._envelope.get(CLIENT_INFO), "capabilities": self._envelope[CLIENT_CAPABILITIES]}
        self._host = self._envelope[PROTOCOL_VERSION], client
        return AskedList(key_of_list(self.facts.digest, method, self._envelope[PROTOCOL_VERSION], client))

    def given(self, method: str, asked: AskedList) -> Check | None:
        """Return the answer to a request that arrived before the gateway is ready; None if there is none."""
        if self._envelope is not None and LISTS[method].notified not in self._heard:
            return None
        if asked.key is None:
            return None
        kept = self._kept.read(asked.key, method) or self._prepared(asked.key, method)
        if kept is None:
            return None
        request: dict[str, Any] | None = None
        if asked.key not in self._checked:
            self._checked.add(asked.key)
            own_id = f"mcp-gateway early {os.urandom(8).hex()}"
            self._own_ids |= {own_id}
            request = {"jsonrpc": "2.0", "id": own_id, "method": method}
            if self._envelope is not None:
                request["params"] = {"_meta": {key: self._envelope[key] for key in _ENVELOPE if key in self._envelope}}
        return Check(kept.result, request, asked._replace(given=kept.digest))

    def _prepared(self, key: str, method: str) -> KeptList | None:
        """Return the list that was prepared for this host, if it may have it."""
        revision, client = self._host or ("", {})
        name = as_object(client.get("clientInfo")).get("name")
        declared = {one for one, value in as_object(client.get("capabilities")).items() if value is not None}
        # A project that the host has open may narrow the list, where there are toolsets: then none is prepared.
        if not isinstance(name, str) or not declared <= _PLAIN or self.facts.toolsets or self._kept.is_barred(key):
            return None
        return self._kept.read_prepared(key_of_prepared(self.facts.digest, name), revision, method)

    def acknowledge(self, request: Mapping[str, Any], handshake: Handshake) -> Acknowledgement | None:
        """Return the acknowledgement of a request to hear of changes of lists; None if it is for anything else."""
        if (told := acknowledgement(request, handshake)) is not None:
            self._heard |= told.heard
        return told

    def is_own(self, request_id: object) -> bool:
        """Whether a request is one that checks a list, so that the host is not to see the answer."""
        return isinstance(request_id, str) and request_id in self._own_ids
