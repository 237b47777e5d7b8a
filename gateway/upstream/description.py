"""The description of an upstream: the state of its default connection, and what the server said when it was opened."""

from typing import Any

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.revisions import Era
from gateway.errors import Failure
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.first_start import longest_start
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.connection.upstream_lists import WireList


class DescribedUpstream:
    """An upstream as its default connection describes it; `gateway.upstream.upstream.Upstream` is asked."""

    def __init__(self, name: str, default: SupervisedConnection) -> None:
        self.name = name
        self.default = default

    @property
    def settings(self) -> UpstreamSettings:
        """The upstream's settings."""
        return self.default.settings

    @property
    def state(self) -> UpstreamState:
        """The state of the default connection."""
        return self.default.state

    @property
    def cause(self) -> str | None:
        """Why it is not ready, in words."""
        return self.default.cause

    @property
    def failure(self) -> Failure | None:
        """Why it is not ready, if something failed."""
        return self.default.failure

    @property
    def longest_start(self) -> float:
        """The maximum seconds until the outcome of a start is known."""
        return longest_start(self.settings)

    @property
    def is_queued(self) -> bool:
        """Whether its start waits for its turn, behind others with the same launcher."""
        return self.default.start.is_queued

    @property
    def waited(self) -> float:
        """Seconds that its last start waited for its turn, behind others with the same launcher."""
        return self.default.start.waited

    @property
    def counts(self) -> Counts:
        """The counters of calls and connections."""
        return self.default.counts

    @property
    def pid(self) -> int | None:
        """The process id of the default connection."""
        return self.default.pid

    @property
    def opening(self) -> Opening:
        """The outcome of the last negotiation; all empty if there was none."""
        return self.default.opening or Opening("handshake", "")

    @property
    def era(self) -> Era | None:
        """The era of the default connection."""
        return self.default.era

    @property
    def revision(self) -> str | None:
        """The protocol revision of the default connection."""
        return self.opening.revision or None

    @property
    def server_info(self) -> dict[str, Any] | None:
        """The server's own name and version."""
        return self.opening.server_info

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's declared capabilities."""
        return self.opening.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models."""
        return self.opening.instructions

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each list that is too large to be offered completely."""
        return tuple(self.default.lists.left_out.values())

    @property
    def nested_too_deeply(self) -> tuple[str, ...]:
        """A sentence for each list that had something withheld because it nests too deeply for hosts."""
        return tuple(self.default.subject.nested.values())

    def tools(self) -> WireList:
        """Return the last known tools, as received."""
        return self.default.lists.tools

    def prompts(self) -> WireList:
        """Return the last known prompts, as received."""
        return self.default.lists.prompts

    def resources(self) -> WireList:
        """Return the last known resources, as received."""
        return self.default.lists.resources

    def templates(self) -> WireList:
        """Return the last known resource templates, as received."""
        return self.default.lists.templates
