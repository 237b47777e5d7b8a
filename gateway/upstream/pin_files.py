"""Pins on disk: a file for each upstream, changed under a lock, because several gateways and commands may share it.

A file is named by the upstream and a hash of the settings that say which server it is. Other settings mean another
server, which is pinned again. The files are readable by their user only.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.canonical_json import digest_of_json
from gateway.core.model.format_versions import UPDATE_GATEWAY, newer_than
from gateway.core.model.json_values import as_dict, as_list, as_object, as_text, is_dict
from gateway.core.policy.pins import Difference, differences, server_difference
from gateway.errors import GatewayError
from gateway.system.file_lock import locked
from gateway.system.files import write_file

VERSION = 1
LARGEST = 32 * 1024 * 1024
"""The size in bytes above which a file is not read."""

MOST_KINDS = 64
"""Maximum number of kinds of hosts whose first lists are pinned: hosts may declare anything."""

_LOCK_SECONDS = 2.0

Form = Mapping[str, Any]
"""A tool, as far as it is pinned (`gateway.core.policy.pins.pinned_form`)."""


class PinsDamaged(Exception):
    """The file is there, but cannot be read, or is not a file of pins. `remedy`: what helps, if that is known."""

    remedy: str | None = None


class PinsNewer(PinsDamaged):
    """The file was written by a newer version of the gateway."""

    remedy = UPDATE_GATEWAY


class SeenTool(NamedTuple):
    """A tool that differs from its pin, or has none, and the kind of hosts that it was listed for."""

    kind: str
    form: Form


class Change(NamedTuple):
    """How a tool differs from its pin, or `None` for `tool` if it is the server itself that does."""

    tool: str | None
    words: tuple[str, ...]
    is_wording: bool = False
    is_new: bool = False


@dataclass(frozen=True)
class PinnedTools:
    """The pins of one upstream: its server and its tools, the kinds of hosts that they were listed for, and what has
    been seen since that differs.
    """

    upstream: str
    server: Mapping[str, Any] | None = None
    pinned: str = ""
    kinds: frozenset[str] = frozenset()
    tools: Mapping[str, Form] = field(default_factory=dict[str, Form])
    seen: Mapping[str, SeenTool] = field(default_factory=dict[str, SeenTool])
    seen_server: Mapping[str, Any] | None = None

    def changes(self) -> list[Change]:
        """Return what differs from the pins."""
        found: list[Change] = []
        if (other := server_difference(self.server, self.seen_server)) is not None:
            found.append(Change(None, (other.words,)))
        for name, seen in self.seen.items():
            if name not in self.tools:
                found.append(Change(name, ("it is new",), is_new=True))
            elif found_here := differences(self.tools[name], seen.form):
                found.append(_change(name, found_here))
        return found

    def approved(self, names: frozenset[str] | None = None) -> "PinnedTools":
        """Return the pins with what was seen: of these tools, or of all, and of the server."""
        chosen = {name: seen.form for name, seen in self.seen.items() if names is None or name in names}
        return replace(
            self,
            tools={**self.tools, **chosen},
            seen={name: seen for name, seen in self.seen.items() if name not in chosen},
            server=self.server if names is not None else (self.seen_server or self.server),
            seen_server=self.seen_server if names is not None else None,
            pinned=_now(),
        )


def _change(name: str, found: list[Difference]) -> Change:
    binding = [each for each in found if not each.is_wording]
    return Change(name, tuple(each.words for each in (binding or found)), is_wording=not binding)


def pins_path(folder: Path, name: str, settings: UpstreamSettings) -> Path:
    """Return the file for an upstream. Its environment and headers do not count: a changed token is the same server."""
    of_api = {"openapi", "base_url"} if settings.openapi is not None else set[str]()
    deciding = settings.model_dump(mode="json", include={"command", "args", "cwd", "url", *of_api})
    text = json.dumps(deciding, sort_keys=True)
    return folder / f"{name}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.json"


def read_pins(path: Path) -> PinnedTools | None:
    """Return the pins in the file; None if there is no file.

    Raises:
        PinsDamaged: it cannot be used, or only by a newer gateway (`PinsNewer`).
    """
    try:
        if path.stat().st_size > LARGEST:
            raise PinsDamaged(f"{path} is too large")
        value = json.loads(path.read_bytes())
        if is_dict(value) and (words := newer_than(VERSION, value.get("version"))) is not None:
            raise PinsNewer(f"{path} cannot be read: {words}")
        return _parsed(value)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise PinsDamaged(f"{path} cannot be read: {type(error).__name__}") from None


def change_pins(path: Path, change: Callable[[PinnedTools | None], PinnedTools | None]) -> PinnedTools | None:
    """Change the pins in the file while nobody else does, and return them. `change` may return what it was given.

    A damaged file counts as missing, but not one of a newer gateway.

    Raises:
        OSError: the file cannot be written.
        PinsNewer: a newer gateway has written it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), _LOCK_SECONDS):
        try:
            before = read_pins(path)
        except PinsNewer:
            raise
        except PinsDamaged:
            before = None
        after = change(before)
        if after is not None and after != before:
            write_file(path, _written(after))
        return after


def approve_pins(
    path: Path, upstream: str, shown: Sequence[Change], names: frozenset[str] | None = None
) -> PinnedTools | None:
    """Pin the tools in the file as they are now, those of these names or all, if that is still what was `shown`.

    Raises:
        GatewayError: the server has changed again, or the file cannot be written.
    """

    def approved(now: PinnedTools | None) -> PinnedTools | None:
        if now is None or now.changes() != list(shown):
            raise GatewayError("the server has changed again meanwhile", remedy=f"mcp-gateway pins diff {upstream}")
        return now.approved(names)

    try:
        return change_pins(path, approved)
    except OSError as error:
        raise GatewayError(f"{path} cannot be written: {error}") from None
    except PinsNewer as newer:
        raise GatewayError(str(newer), remedy=newer.remedy) from None


def newly_pinned(
    upstream: str, server: Mapping[str, Any] | None, kind: str, tools: Mapping[str, Form], before: PinnedTools | None
) -> PinnedTools:
    """Pin tools as they are listed for a kind of hosts for the first time; what is pinned already stays.

    Tools that another kind was offered later than it was pinned are not pinned by this.
    """
    if before is None:
        return PinnedTools(upstream, server, _now(), frozenset({kind}), tools)
    if len(before.kinds) >= MOST_KINDS:
        return before
    added = {name: form for name, form in tools.items() if name not in before.seen}
    return replace(before, kinds=before.kinds | {kind}, tools={**added, **before.tools})


def _now() -> str:
    return datetime.fromtimestamp(int(time.time()), UTC).isoformat().replace("+00:00", "Z")


def _written(pins: PinnedTools) -> bytes:
    value = {
        "version": VERSION,
        "upstream": pins.upstream,
        "server": pins.server,
        "pinned": pins.pinned,
        "kinds": sorted(pins.kinds),
        "tools": {name: {"sha256": digest_of_json(form), "tool": form} for name, form in pins.tools.items()},
        "seen": {name: {"kind": seen.kind, "tool": seen.form} for name, seen in pins.seen.items()},
        "seen_server": pins.seen_server,
    }
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _parsed(value: object) -> PinnedTools:
    found = value if is_dict(value) else {}
    tools, seen = as_object(found.get("tools")), as_object(found.get("seen"))
    upstream = as_text(found.get("upstream"))
    if found.get("version") != VERSION or upstream is None:
        raise ValueError("not a file of pins")
    pinned = {name: dict(as_object(as_object(entry).get("tool"))) for name, entry in tools.items()}
    if any(digest_of_json(form) != as_object(tools[name]).get("sha256") for name, form in pinned.items()):
        raise ValueError("a pin does not match its digest")
    return PinnedTools(
        upstream=upstream,
        server=as_dict(found.get("server")),
        pinned=as_text(found.get("pinned")) or "",
        kinds=frozenset(map(str, as_list(found.get("kinds")))),
        tools=pinned,
        seen={
            name: SeenTool(str(as_object(entry).get("kind")), dict(as_object(as_object(entry).get("tool"))))
            for name, entry in seen.items()
        },
        seen_server=as_dict(found.get("seen_server")),
    )
