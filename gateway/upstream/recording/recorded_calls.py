"""The calls of tools in a recording, numbered, for commands that look at what was recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.core.model.json_values import as_object, objects_in
from gateway.errors import ConfigError
from gateway.upstream.recording.lines import Exchange
from gateway.upstream.recording.read_recording import RecordedUpstream, read_recording

_CALL = "tools/call"
_LIST = "tools/list"


@dataclass(frozen=True)
class RecordedCall:
    """A call of a tool: its number in the recording, from 1, and what became of it."""

    number: int
    upstream: str
    exchange: Exchange
    _source: RecordedUpstream

    @property
    def tool(self) -> str:
        """The tool's own name."""
        return self.exchange.name or ""

    @property
    def outcome(self) -> str:
        """What became of it, in a few words."""
        exchange = self.exchange
        if exchange.error is not None:
            return f"error {exchange.error.code}: {exchange.error.message}"
        if exchange.failure is not None:
            return f"failed: {exchange.failure.message}"
        if exchange.result is None:
            return "cancelled by the host"
        return "reports an error" if exchange.result.get("isError") is True else "answered"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments, in which `***` is in place of secrets. Reads files. Raises ConfigError."""
        return dict(as_object(self._source.params_of(self.exchange).get("arguments")))

    def result(self) -> dict[str, Any] | None:
        """Return the result; None if there is none. Reads files. Raises ConfigError."""
        return self._source.result_of(self.exchange)


def recorded_calls(folder: Path) -> list[RecordedCall]:
    """Return the calls in a recording, by upstream and in order.

    Raises:
        ConfigError: there is no recording, or it cannot be used.
    """
    found = [
        (name, upstream, exchange)
        for name, upstream in read_recording(folder).items()
        for exchange in upstream.exchanges
        if exchange.method == _CALL
    ]
    return [RecordedCall(number, name, one, upstream) for number, (name, upstream, one) in enumerate(found, 1)]


def call_of(folder: Path, number: int) -> RecordedCall:
    """Return one call. Raises ConfigError if there is none of this number, as `recorded_calls` does."""
    calls = recorded_calls(folder)
    if not 1 <= number <= len(calls):
        there = f"it has 1 to {len(calls)}" if calls else None
        raise ConfigError(f"has no call {number}", where=str(folder), remedy=there)
    return calls[number - 1]


def arguments_by_tool(folder: Path, upstream: str) -> Mapping[str, list[dict[str, Any]]]:
    """Return the arguments of an upstream's calls that were not cancelled, in order, by the tools that it listed.

    Raises ConfigError as `recorded_calls` does, and if there is no such upstream.
    """
    recorded = read_recording(folder).get(upstream)
    if recorded is None:
        raise ConfigError(f"has nothing of an upstream {upstream!r}", where=str(folder))
    lists = (recorded.result_of(one) for one in recorded.exchanges if one.method == _LIST)
    listed = {str(tool.get("name")) for one in lists for tool in objects_in(as_object(one).get("tools"))}
    found: dict[str, list[dict[str, Any]]] = {}
    for call in recorded_calls(folder):
        if call.upstream == upstream and call.tool in listed and not call.exchange.cancelled:
            found.setdefault(call.tool, []).append(call.arguments())
    return found
