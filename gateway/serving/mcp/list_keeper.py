"""Keep the lists that hosts on stdio are given, for their next start, and check those that were given early."""

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from anyio import to_thread
from mcp.server.connection import Connection

from gateway.core.model.json_values import as_list, as_object
from gateway.core.profiles.calibrate_profile import TOOLS as CALIBRATING_TOOLS
from gateway.serving.mcp.kept_lists import LISTS, AskedList, KeptLists
from gateway.upstream.transports.messages import write_fields


class ListKeeper:
    """Keeps what each connection was given last. Without `kept`, nothing is kept."""

    def __init__(self, kept: KeptLists | None = None) -> None:
        self._kept = kept
        self._keys: WeakKeyDictionary[Connection, dict[str, str]] = WeakKeyDictionary()
        """The keys of the lists that each connection was given, by the names of their notifications."""

    async def is_other(
        self, method: str, asked: AskedList, result: Mapping[str, Any], connection: Connection, *, hears: bool
    ) -> bool:
        """Keep a list. Return whether the host was given another one early.

        `hears`: whether the host is notified of changes of this list. If it is not, it is never given one early.
        """
        name = LISTS[method]
        body, digest = await to_thread.run_sync(_written, name, result)
        if self._kept is not None and asked.key is not None:
            await to_thread.run_sync(self._keep, name, asked, result, body, digest, hears)
            self._keys.setdefault(connection, {})[name] = asked.key
        return asked.given is not None and asked.given != digest

    def _keep(
        self, name: str, asked: AskedList, result: Mapping[str, Any], body: bytes, digest: str, hears: bool
    ) -> None:
        assert self._kept is not None
        assert asked.key is not None
        if not hears or not _is_lasting(name, result):
            self._kept.forget(asked.key)
        elif asked.given == digest:
            self._kept.touch(asked.key)
        else:
            self._kept.keep(asked.key, body, digest)

    def changed(self, connection: Connection, name: str) -> None:
        """Forget a list that its host is told to ask for again: not every host does."""
        key = self._keys.get(connection, {}).pop(name, None)
        if self._kept is not None and key is not None:
            self._kept.forget(key)


def _is_lasting(name: str, result: Mapping[str, Any]) -> bool:
    """Whether a list is the whole, and not one that is only for the time of calibrating a host."""
    names = {as_object(item).get("name") for item in as_list(result.get(name))}
    return "nextCursor" not in result and names.isdisjoint(CALIBRATING_TOOLS)


def _written(name: str, result: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return a result as JSON, and the digest of its list."""
    return write_fields(result), hashlib.sha256(write_fields({name: result.get(name)})).hexdigest()
