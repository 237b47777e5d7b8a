"""What hosts do in their sessions that another replica would have to know: noted in the session index."""

from collections.abc import Mapping
from typing import Any

from gateway.serving.cluster.session_index import SessionIndex, SessionRecord


class SessionNotes:
    """Notes it (`gateway.serving.mcp.cluster_port.SessionJournal`)."""

    def __init__(self, index: SessionIndex) -> None:
        self._index = index

    def opened(self, session: str, principal: str, token: str | None, initialize: Mapping[str, Any]) -> None:
        """A host has opened a session, unless this replica has just taken it over."""
        if self._index.of(session) is None:
            self._index.add(SessionRecord(session, None, principal, token, initialize))

    def set_level(self, session: str, level: str) -> None:
        """The host has set the level of the log messages that it wants."""
        record = self._index.of(session)
        if record is not None and record.level != level:
            record.level = level
            self._index.changed(session)

    def watched(self, session: str, uri: str, *, ended: bool = False) -> None:
        """The host is notified of changes of a resource from now on, or no longer."""
        record = self._index.of(session)
        if record is None or (uri in record.watched) != ended:
            return
        record.watched.remove(uri) if ended else record.watched.append(uri)
        self._index.changed(session)

    def closed(self, session: str) -> None:
        """The session has ended."""
        self._index.remove(session)
