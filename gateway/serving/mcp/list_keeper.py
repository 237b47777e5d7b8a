"""Keep the lists that hosts on stdio are given, for their next start, and check those that were given early."""

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from anyio import to_thread
from mcp.server.connection import Connection

from gateway.content.store.handles import URI_SCHEME
from gateway.core.model.json_values import as_list, as_object
from gateway.core.profiles.calibrate_profile import TOOLS as CALIBRATING_TOOLS
from gateway.serving.mcp.kept_lists import LISTS, AskedList, KeptLists, ListKind
from gateway.upstream.transports.messages import write_fields


class ListKeeper:
    """Keeps what each connection was given last. Without `kept`, nothing is kept."""

    def __init__(self, kept: KeptLists | None = None) -> None:
        self._kept = kept
        self._keys: WeakKeyDictionary[Connection, dict[str, str]] = WeakKeyDictionary()
        """The keys of the lists that each connection was given, by their methods."""

    async def is_other(
        self,
        method: str,
        asked: AskedList,
        result: Mapping[str, Any],
        connection: Connection,
        *,
        hears: bool,
        by_key: bool = True,
        is_known: bool = True,
    ) -> bool:
        """Keep a list. Return whether the host was given another one early.

        `hears`: whether the host is notified of changes of this list. If it is not, it is never given one early.
        `by_key`: whether the list depends on nothing but what its key is made of. If it does, no list is kept by this
        key any more, whatever it is the next time. `is_known`: whether something is known of every upstream that it
        is made of. If not, it is not kept.
        """
        kind = LISTS[method]
        digest = await to_thread.run_sync(_digest, kind, result)
        if self._kept is not None and asked.key is not None:
            if by_key:
                await to_thread.run_sync(self._keep, kind, asked, result, hears and is_known)
            else:
                await to_thread.run_sync(self._kept.bar, asked.key)
            self._keys.setdefault(connection, {})[method] = asked.key
        return asked.given is not None and asked.given != digest

    def _keep(self, kind: ListKind, asked: AskedList, result: Mapping[str, Any], lasts: bool) -> None:
        assert self._kept is not None
        assert asked.key is not None
        if not lasts or not _is_lasting(kind, result):
            return self._kept.forget(asked.key)
        result = _without_stored(kind, result)
        digest = _digest(kind, result)
        if asked.given == digest and self._kept.touch(asked.key):
            return None
        return self._kept.keep(asked.key, write_fields(result), digest)

    def changed(self, connection: Connection, notified: str) -> None:
        """Forget the lists that its host is told to ask for again: not every host does."""
        given = self._keys.get(connection, {})
        for method in [one for one in given if LISTS[one].notified == notified]:
            key = given.pop(method)
            if self._kept is not None:
                self._kept.forget(key)


def lasting_list(method: str, result: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """Return a list as it may be kept, as JSON, with its digest; None if it may not."""
    kind = LISTS[method]
    if not _is_lasting(kind, result):
        return None
    result = _without_stored(kind, result)
    return write_fields(result), _digest(kind, result)


def _is_lasting(kind: ListKind, result: Mapping[str, Any]) -> bool:
    """Whether a list is the whole, and not one that is only for the time of calibrating a host."""
    names = {as_object(item).get("name") for item in as_list(result.get(kind.member))}
    return "nextCursor" not in result and names.isdisjoint(CALIBRATING_TOOLS)


def _without_stored(kind: ListKind, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the list without content that the gateway stores for a while."""
    items = as_list(result.get(kind.member))
    if kind.name != "uri":
        return result
    lasting = [item for item in items if not str(as_object(item).get("uri")).startswith(URI_SCHEME)]
    return result if len(lasting) == len(items) else {**result, kind.member: lasting}


def _digest(kind: ListKind, result: Mapping[str, Any]) -> str:
    return hashlib.sha256(write_fields({kind.member: result.get(kind.member)})).hexdigest()
