"""Pins of upstreams' tools: pinned when an upstream is first used, and compared whenever its tools are listed."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

from gateway.config.policy_settings import PinMode
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject
from gateway.core.policy.pins import differences, pinned_form, server_difference
from gateway.core.tools.catalogue import WithheldTool
from gateway.errors import GatewayError
from gateway.upstream.pin_files import (
    Change,
    Form,
    PinnedTools,
    PinsDamaged,
    SeenTool,
    approve_pins,
    change_pins,
    newly_pinned,
    pins_path,
    read_pins,
)

logger = logging.getLogger(__name__)

_NAMED = 5
_LONGEST_NAME = 60
_REMEMBERED = 1_000

Look = Callable[[], Sequence[WithheldTool]]


class PinnedUpstream(Protocol):
    """The upstream whose tools are pinned, such as `gateway.upstream.Upstream`."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> UpstreamSettings: ...
    @property
    def server_info(self) -> Mapping[str, Any] | None: ...
    def listed_kind(self, caller: Caller) -> str | None: ...


class _Listing(NamedTuple):
    """Tools as an upstream lists them now. `kind`: the kind of hosts that they are for; None: only remembered."""

    upstream: str
    settings: UpstreamSettings
    hold: bool
    server: Mapping[str, Any] | None
    kind: str | None
    tools: Sequence[WireObject]


class Pins:
    """The pins of all upstreams, in files of a folder; without one, they last as long as this gateway."""

    def __init__(self, folder: Path | None, mode: PinMode = "off") -> None:
        self._folder = folder
        self._mode: PinMode = mode
        self._lock = Lock()
        self._kept: dict[Path, PinnedTools] = {}
        self._told: set[str] = set()

    def reconfigure(self, mode: PinMode) -> None:
        """Apply a changed mode."""
        self._mode = mode

    def mode_of(self, settings: UpstreamSettings) -> PinMode:
        """Return what happens if the tools of an upstream with these settings change."""
        return settings.pins or self._mode

    def look(self, upstream: PinnedUpstream, caller: Caller, tools: Sequence[WireObject]) -> Look:
        """Return a function that pins or compares these tools, and returns those that are withheld.

        It reads and may write a small file, and may be called in a thread.
        """
        mode = self.mode_of(upstream.settings)
        if mode == "off" or not tools:  # a server that lists nothing yet may wait for a login
            return tuple
        kind = upstream.listed_kind(caller)
        listing = _Listing(
            upstream.name,
            upstream.settings,
            mode == "hold",
            upstream.server_info,
            None if kind is None else hashlib.sha256(kind.encode("utf-8", "surrogatepass")).hexdigest()[:16],
            tools,
        )
        return lambda: self._withheld(listing)

    def changes(self, name: str, settings: UpstreamSettings) -> list[Change]:
        """Return what has changed in an upstream since it was pinned.

        Raises:
            PinsDamaged: its pins cannot be read.
        """
        if self.mode_of(settings) == "off":
            return []
        pins = self._read(self._path(name, settings))
        return [] if pins is None else pins.changes()

    def approve(self, name: str, settings: UpstreamSettings, shown: Sequence[Change]) -> None:
        """Pin the tools of an upstream as they are now, if what has changed is still what was `shown`.

        Raises:
            GatewayError: it has changed again, or the pins cannot be written.
        """
        path = self._path(name, settings)
        with self._lock:
            if self._folder is not None:
                approve_pins(path, name, shown)
                return
            pins = self._kept.get(path)
            if pins is None or pins.changes() != list(shown):
                raise GatewayError("the server has changed again meanwhile", remedy=remedy(name))
            self._kept[path] = pins.approved()

    def summary(self, name: str, settings: UpstreamSettings) -> str | None:
        """Say in one sentence what has changed in an upstream since it was pinned; None if nothing that matters has."""
        try:
            words = summary(self.changes(name, settings), hold=self.mode_of(settings) == "hold")
        except PinsDamaged as error:
            return f"{error}; {error.remedy or _repin(name)}"
        return None if words is None else f"{words}; {remedy(name)}"

    def _withheld(self, listing: _Listing) -> Sequence[WithheldTool]:
        forms = _forms(listing.tools)
        with self._lock:
            try:
                pins = self._compared(listing, forms)
            except PinsDamaged as error:
                self._tell(f"upstream {listing.upstream}: {error}")
                why = f"the pins of {listing.upstream} cannot be read; {error.remedy or _repin(listing.upstream)}"
                return _all(listing, forms, why) if listing.hold else ()
        if pins is None:
            return ()
        if (words := summary(pins.changes(), hold=listing.hold)) is not None:
            self._tell(f"upstream {listing.upstream}: {words}; {remedy(listing.upstream)}")
        return _held(listing, forms, pins) if listing.hold else ()

    def _compared(self, listing: _Listing, forms: Mapping[str, Sequence[Form]]) -> PinnedTools | None:
        """Return the pins, with what differs now: written down, if the upstream has just been asked."""
        path = self._path(listing.upstream, listing.settings)
        pins = self._read(path)
        if listing.kind is None:
            return pins
        kind = listing.kind
        if pins is not None and kind in pins.kinds and _seen(pins, listing, kind, forms) == pins:
            return pins

        def change(before: PinnedTools | None) -> PinnedTools:
            if before is None or kind not in before.kinds:
                firsts = {name: same[0] for name, same in forms.items()}
                before = newly_pinned(listing.upstream, listing.server, kind, firsts, before)
            return _seen(before, listing, kind, forms)

        return self._change(path, change)

    def _path(self, name: str, settings: UpstreamSettings) -> Path:
        return pins_path(self._folder or Path(), name, settings)

    def _read(self, path: Path) -> PinnedTools | None:
        pins = None if self._folder is None else read_pins(path)
        return pins or self._kept.get(path)

    def _change(self, path: Path, change: Callable[[PinnedTools | None], PinnedTools]) -> PinnedTools | None:
        try:
            if self._folder is not None:
                return change_pins(path, change)
        except (OSError, ValueError) as error:
            self._tell(f"pins cannot be written: {error}")
        self._kept[path] = change(self._kept.get(path))
        return self._kept[path]

    def _tell(self, words: str) -> None:
        if len(self._told) > _REMEMBERED:
            self._told.clear()
        if words not in self._told:
            self._told.add(words)
            logger.warning(words)


def remedy(upstream: str) -> str:
    """Say how to see what has changed."""
    return f"`mcp-gateway pins diff {upstream}`"


def summary(changes: Iterable[Change], *, hold: bool) -> str | None:
    """Say briefly what has changed in an upstream; None for nothing but other words."""
    found = [change for change in changes if not change.is_wording]
    if not found:
        return None
    if any(change.tool is None for change in found):
        done = "all tools withheld: it is" if hold else "it is"
        return f"{done} another server than the one that was pinned"
    named = [plain(change.tool or "", _LONGEST_NAME) for change in found]
    listed = ", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")
    what = "withheld: changed or new" if hold else "changed or new"
    return f"{counted(len(found), 'tool')} {what} since it was pinned ({listed})"


def _forms(tools: Iterable[WireObject]) -> dict[str, list[Form]]:
    """Return the pinned forms of tools by name. Calls cannot tell two of one name apart, so both have to match."""
    found: dict[str, list[Form]] = {}
    for tool in tools:
        if isinstance(name := as_object(tool).get("name"), str):
            found.setdefault(name, []).append(pinned_form(as_object(tool)))
    return found


def _seen(pins: PinnedTools, listing: _Listing, kind: str, forms: Mapping[str, Sequence[Form]]) -> PinnedTools:
    """Return the pins with the tools that differ from them now, in place of those seen for the same kind before."""
    others = {name: seen for name, seen in pins.seen.items() if seen.kind != kind and name not in forms}
    differing = {
        name: SeenTool(kind, other)
        for name, same in forms.items()
        if (other := next((form for form in same if form != pins.tools.get(name)), None)) is not None
    }
    is_other = server_difference(pins.server, listing.server) is not None
    server = pins.server or listing.server
    return replace(pins, seen={**others, **differing}, server=server, seen_server=listing.server if is_other else None)


def _held(listing: _Listing, forms: Mapping[str, Sequence[Form]], pins: PinnedTools) -> list[WithheldTool]:
    if (other := server_difference(pins.server, listing.server)) is not None:
        return _all(listing, forms, f"{plain(other.words)}{_asking(listing.upstream)}")
    held: list[WithheldTool] = []
    for name, same in forms.items():
        pinned = pins.tools.get(name)
        if pinned is None:
            why = "it is new since the upstream was pinned"
        else:
            words = [each.words for form in same for each in differences(pinned, form) if not each.is_wording]
            if not words:
                continue
            why = f"it has changed since it was pinned: {'; '.join(dict.fromkeys(words))}"
        held.append(WithheldTool(listing.upstream, name, "", why + _asking(listing.upstream)))
    return held


def _all(listing: _Listing, forms: Iterable[str], why: str) -> list[WithheldTool]:
    return [WithheldTool(listing.upstream, name, "", why) for name in forms]


def _asking(upstream: str) -> str:
    return f"; the user can look at it with {remedy(upstream)}"


def _repin(upstream: str) -> str:
    return f"`mcp-gateway pins approve {upstream}` pins its tools as they are"
