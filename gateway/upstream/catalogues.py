"""The last known lists of upstreams, kept on disk so that a restarted gateway can offer them at once.

There is a file for each upstream's settings, named by a hash of them: other settings mean another upstream. A file that
cannot be used counts as missing. The files are readable by their user only, and contain lists, never results.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_values import as_dict, as_list, as_text, is_dict
from gateway.core.tools.catalogue.hints import NO_HINT
from gateway.system.files import DRAFT, write_file
from gateway.system.process_mark import PROCESS_MARK

logger = logging.getLogger(__name__)

VERSION = 2
"""The version of the format. Files of another version are not read."""

LARGEST = 16 * 1024 * 1024
"""The size in bytes above which a file is neither written nor read."""

KEPT_SECONDS = 30 * 86_400
"""The age at which files of upstreams are removed that were not connected to."""

_LISTS = ("tools", "resources", "templates", "prompts")
_ENDING = ".json"


@dataclass(frozen=True)
class RememberedLists:
    """The last known state of an upstream: its raw lists, and the outcome of the last negotiation.

    `hints` are the cache hints of each list (`gateway.upstream.connection.upstream_lists.Lists`). `eras` are the eras
    that it is known to speak, and `silent` those that it is known not to speak, so neither has to be tried again.
    """

    tools: tuple[dict[str, Any], ...] = ()
    resources: tuple[dict[str, Any], ...] = ()
    templates: tuple[dict[str, Any], ...] = ()
    prompts: tuple[dict[str, Any], ...] = ()
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    era: str | None = None
    revision: str | None = None
    server_info: dict[str, Any] | None = None
    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])
    instructions: str | None = None
    eras: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    is_personal: bool = False
    """Whether the lists are one principal's, with a login."""
    of: tuple[str, str] | None = None
    """The principal, and the upstream's name, that such lists are for; nobody else may see them."""


class Catalogues:
    """The files in one folder. Every method blocks while it reads or writes a small file."""

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    def recall(self, settings: UpstreamSettings) -> RememberedLists | None:
        """Return what is known of the upstream with these settings; None if there is no file or it cannot be read."""
        path = self.path(settings)
        try:
            if path.stat().st_size > LARGEST:
                return None
            return _read(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            logger.debug("the kept catalogue %s is not used: %s", path.name, type(error).__name__)
            return None

    def keep(self, settings: UpstreamSettings, catalogue: RememberedLists, unchanged: bool = False) -> None:
        """Write the file atomically, or only update its time if the catalogue is `unchanged`.

        Failures to write are logged.
        """
        path = self.path(settings)
        try:
            if unchanged and path.exists():
                os.utime(path)
                return
            # These come first: `gateway.serving.mcp.kept_lists` reads no more of a file.
            kept = {"version": VERSION, "by": PROCESS_MARK, "lists": _digest(catalogue), **asdict(catalogue)}
            content = json.dumps(kept, separators=(",", ":")).encode("ascii")
            if len(content) > LARGEST:
                path.unlink(missing_ok=True)
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(path, content)
            self._tidy()
        except (OSError, ValueError, RecursionError) as error:
            logger.debug("the catalogue %s could not be kept: %s", path.name, error)

    def path(self, settings: UpstreamSettings) -> Path:
        """Return the path for these settings: a hash of those that determine the server and the credentials."""
        of_api = {"openapi", "base_url", "operations"} if settings.openapi is not None else set[str]()
        deciding = settings.model_dump(
            mode="json", include={"command", "args", "env", "cwd", "url", "transport", "headers", *of_api}
        )
        text = json.dumps(deciding, sort_keys=True)
        return self._folder / (hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40] + _ENDING)

    def _tidy(self) -> None:
        oldest = self._now() - KEPT_SECONDS
        for path in self._folder.iterdir():
            if path.suffix in (_ENDING, DRAFT):
                with suppress(OSError):
                    if path.stat().st_mtime < oldest:
                        path.unlink()


def _digest(catalogue: RememberedLists) -> str:
    """Return a digest of what is listed, whatever the era in which it was."""
    listed = {name: getattr(catalogue, name) for name in _LISTS}
    return hashlib.sha256(json.dumps(listed, sort_keys=True).encode("ascii")).hexdigest()


def _read(value: object) -> RememberedLists | None:
    kept = value if is_dict(value) else {}
    if kept.pop("version", None) != VERSION:
        return None
    lists = {name: _objects(kept.get(name)) for name in _LISTS}
    if any(not isinstance(tool.get("name"), str) for tool in lists["tools"]):
        return None
    hints = as_dict(kept.get("hints")) or {}
    return RememberedLists(
        **lists,
        hints={name: {**NO_HINT, **hint} for name in _LISTS if (hint := as_dict(hints.get(name))) is not None},
        era=as_text(kept.get("era")),
        revision=as_text(kept.get("revision")),
        server_info=as_dict(kept.get("server_info")),
        capabilities=as_dict(kept.get("capabilities")) or {},
        instructions=as_text(kept.get("instructions")),
        eras=_texts(kept.get("eras")),
        silent=_texts(kept.get("silent")),
        is_personal=kept.get("is_personal") is True,
        of=_owner(kept.get("of")),
    )


def _objects(value: object) -> tuple[dict[str, Any], ...]:
    items = as_list(value)
    return tuple(item for item in items if is_dict(item))


def _owner(value: object) -> tuple[str, str] | None:
    texts = _texts(value)
    return (texts[0], texts[1]) if len(texts) == 2 else None


def _texts(value: object) -> tuple[str, ...]:
    items = as_list(value)
    return tuple(item for item in items if isinstance(item, str))
