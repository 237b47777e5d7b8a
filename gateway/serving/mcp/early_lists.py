"""Lists that a host is given before the gateway is loaded: what the same host was given last. Standard library only.

Some hosts wait a few seconds for a list, and loading the gateway takes as long on a busy machine. A list that was given
early is then asked for again, on the host's behalf (`Check`). The gateway compares the two, and notifies the host if
they differ (`gateway.serving.mcp.list_keeper`).

    host      tools/list           early stage    its kept list
                                   early stage    tools/list, with an id of its own, queued for the gateway
                                   gateway        notifications/tools/list_changed, if its list is another one

Only hosts of the handshake era are: those of 2026-07-28 hear of changes only if they have subscribed to them.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.config.list_facts import ListFacts
from gateway.serving.mcp.handshake import Handshake
from gateway.serving.mcp.kept_lists import LISTS, AskedList, KeptLists, key_of_list


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

    def asked(self, method: str, params: Mapping[str, Any] | None, handshake: Handshake) -> AskedList | None:
        """Return the list that a request asks for; None if it is not one that is kept."""
        if method not in LISTS or handshake.era != "handshake" or handshake.client is None:
            return None
        if set(params or {}) - {"_meta"}:  # a page of it
            return None
        return AskedList(key_of_list(self.facts.digest, method, handshake.revision, handshake.client))

    def given(self, method: str, asked: AskedList) -> Check | None:
        """Return the answer to a request that arrived before the gateway is ready; None if there is none."""
        if asked.key is None or (kept := self._kept.read(asked.key, method)) is None:
            return None
        request = None
        if asked.key not in self._checked:
            self._checked.add(asked.key)
            own_id = f"mcp-gateway early {os.urandom(8).hex()}"
            self._own_ids |= {own_id}
            request = {"jsonrpc": "2.0", "id": own_id, "method": method}
        return Check(kept.result, request, asked._replace(given=kept.digest))

    def is_own(self, request_id: object) -> bool:
        """Whether a request is one that checks a list, so that the host is not to see the answer."""
        return isinstance(request_id, str) and request_id in self._own_ids
