"""The lists that hosts were last given, kept on disk so that the next start can answer at once. Standard library only.

There is a file for each host, configuration and list, named by a digest of all that decides what is in the list
(`key_of_list`). A host that was never given its lists may have some prepared by a command, which knows the host only by
its name (`key_of_prepared`): all of them are in one file.

A list is read only if no other process has changed what is known of upstreams since it was kept
(`gateway.upstream.catalogues`). A file that cannot be used, or that somebody else could have written, counts as
missing. The files are readable by their user only.
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.find_config import cache_folder
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.system.process_mark import PROCESS_MARK


class ListKind(NamedTuple):
    """A list: its member of the result, the member by which its items are known, and whose notification is its own."""

    member: str
    name: str
    notified: str


LISTS: Mapping[str, ListKind] = {
    "tools/list": ListKind("tools", "name", "tools"),
    "prompts/list": ListKind("prompts", "name", "prompts"),
    "resources/list": ListKind("resources", "uri", "resources"),
    "resources/templates/list": ListKind("resourceTemplates", "uriTemplate", "resources"),
}
"""The lists that are kept. Claude Code counts a server as connected when it has the first three."""

LARGEST = 4 * 1024 * 1024
"""Bytes of a file beyond which it is neither written nor read."""
MOST = 128
"""Maximum number of files: those used last."""
KEPT_SECONDS = 30 * 86_400
"""The age at which a list that was not given again is no longer used."""

_VERSION = 1
_ENDING = ".list"
_BARRED = "barred"
_KEY_LENGTH = 64
_HEAD_OF_CATALOGUE = 160
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class AskedList(NamedTuple):
    """A list that a host has asked for: the key to keep it by, and the digest of the list that it was given early.

    Without a key, it is not kept. `given` is None if the host waits for the answer.
    """

    key: str | None
    given: str | None = None


class KeptList(NamedTuple):
    """A result of a list, and the digest of what it lists."""

    result: dict[str, Any]
    digest: str


def key_of_list(facts: str, method: str, revision: str, client: Mapping[str, Any]) -> str:
    """Return the key of a list for the host with these params of `initialize`."""
    parts = [facts, method, revision, client.get("clientInfo"), client.get("capabilities")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).hexdigest()


def key_of_prepared(facts: str, client_name: str) -> str:
    """Return the key of the lists that are prepared for the hosts of this name."""
    return hashlib.sha256(json.dumps(["prepared", facts, client_name.lower()]).encode("ascii")).hexdigest()


def is_key(value: object) -> bool:
    """Whether a value may be a key."""
    return isinstance(value, str) and len(value) == _KEY_LENGTH and set(value) <= set("0123456789abcdef")


class KeptLists:
    """The files in one folder. Every method blocks while it reads or writes a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._catalogues = folder.parent / "catalogues"

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "KeptLists | None":
        """Return those of the user; None if nothing may be kept."""
        folder = cache_folder(environ)
        return None if folder is None else cls(folder / "lists")

    def read(self, key: str, method: str) -> KeptList | None:
        """Return the list; None if there is none that can be used."""
        try:
            content = _content(self._path(key))
            return _parsed(content, LISTS[method]) if self._is_current(content) else None
        except (OSError, ValueError, RecursionError):
            return None

    def read_prepared(self, key: str, revision: str, method: str) -> KeptList | None:
        """Return a list that was prepared; None if there is none that can be used."""
        try:
            content = _content(self._path(key))
            if not self._is_current(content):
                return None
            index: Mapping[str, tuple[int, str, str]] = as_object(_head(content).get("prepared"))
            number, digest, sealed = index[f"{revision} {method}"]
            head = json.dumps({"version": _VERSION, "digest": digest, "sha256": sealed}).encode("ascii")
            return _parsed(head + b"\n" + content.split(b"\n")[number], LISTS[method])
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            return None

    def keep_prepared(self, key: str, prepared: Mapping[tuple[str, str], tuple[bytes, str]]) -> None:
        """Keep lists for hosts that were never given them: results as JSON, and their digests, by revision and method.

        If that is not possible, or they are too large, nothing is kept.
        """
        lines = {result: number for number, result in enumerate(dict.fromkeys(r for r, _ in prepared.values()), 1)}
        index = {
            f"{revision} {method}": [lines[result], digest, hashlib.sha256(result).hexdigest()]
            for (revision, method), (result, digest) in prepared.items()
        }
        with suppress(OSError):
            head = {"version": _VERSION, "by": PROCESS_MARK, "catalogues": self._known(), "prepared": index}
            content = b"\n".join([json.dumps(head).encode("ascii"), *lines])
            if len(content) <= LARGEST:
                self._write(self._path(key), content)

    def is_barred(self, key: str) -> bool:
        """Whether no list may be kept by this key."""
        return _is_barred(self._path(key))

    def keep(self, key: str, result: bytes, digest: str) -> None:
        """Keep a result, as JSON, unless it is too large. If that is not possible, nothing is kept."""
        path = self._path(key)
        with suppress(OSError):
            if len(result) > LARGEST // 2:
                path.unlink(missing_ok=True)
                return
            if _is_barred(path):
                return
            sealed = hashlib.sha256(result).hexdigest()
            head: dict[str, Any] = {"version": _VERSION, "digest": digest, "sha256": sealed}
            head |= {"by": PROCESS_MARK, "catalogues": self._known()}
            self._write(path, json.dumps(head).encode("ascii") + b"\n" + result)

    def bar(self, key: str) -> None:
        """Keep no list by this key from now on: what is listed depends on more than the key knows."""
        with suppress(OSError):
            self._write(self._path(key), json.dumps({"version": _VERSION, _BARRED: True}).encode("ascii") + b"\n")

    def forget(self, key: str) -> None:
        """Forget a list that is no longer right."""
        with suppress(OSError):
            if not _is_barred(path := self._path(key)):
                path.unlink(missing_ok=True)

    def touch(self, key: str) -> bool:
        """Note that a list is still right. Return False if it has to be kept again to be read the next time."""
        try:
            os.utime(self._path(key))
            return self._is_current(_content(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return False

    def _is_current(self, content: bytes) -> bool:
        """Whether what is known of upstreams is what it was when the file was kept. Raises OSError, ValueError.

        What the process that kept it has learned since does not count: it forgets the list if that changes it.
        """
        head, now = _head(content), self._known()
        then, own = as_object(head.get("catalogues")), f'"by":"{head.get("by")}"'
        return all(
            _listed(now.get(name)) == _listed(then.get(name)) or own in now.get(name, "") for name in {*now, *then}
        )

    def _known(self) -> dict[str, str]:
        """Return the beginnings of the catalogues' files: who wrote each, and a digest of what its upstream lists.

        Raises OSError if a file cannot be read.
        """
        known: dict[str, str] = {}
        for name in sorted(os.listdir(self._catalogues)) if self._catalogues.is_dir() else ():
            if name.endswith(".json"):
                with suppress(FileNotFoundError), os.fdopen(os.open(self._catalogues / name, _FLAGS), "rb") as opened:
                    known[name] = opened.read(_HEAD_OF_CATALOGUE).partition(b',"tools":')[0].decode("ascii", "replace")
        return known

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_ENDING}"

    def _write(self, path: Path, content: bytes) -> None:
        from gateway.system.files import write_file  # here, because nothing is written before the first answer

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, content)
        self._tidy()

    def _tidy(self) -> None:
        found = [(one.stat().st_mtime, one.path) for one in os.scandir(self._folder) if not one.is_dir()]
        for _, path in sorted(found, reverse=True)[MOST:]:
            os.unlink(path)


def _is_barred(path: Path) -> bool:
    try:
        return _head(_content(path)).get(_BARRED) is True
    except (OSError, ValueError, RecursionError):
        return False


def _listed(beginning: str | None) -> str | None:
    """Return the digest of what an upstream lists, whoever wrote it; None without a catalogue."""
    return None if beginning is None else beginning.partition('"lists":')[2]


def _head(content: bytes) -> Mapping[str, Any]:
    """Raises ValueError or RecursionError if there is none."""
    return as_object(json.loads(content.partition(b"\n")[0]))


def _content(path: Path) -> bytes:
    """Return the content of a file of this user alone. Raises OSError, or ValueError if it is anything else."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise ValueError("not a file, or too large")
        if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            raise ValueError("not this user's alone")
        if not -60 < time.time() - found.st_mtime < KEPT_SECONDS:
            raise ValueError("too old")
        return opened.read(LARGEST)


def _parsed(content: bytes, kind: ListKind) -> KeptList:
    """Raises ValueError if the content is not one that was kept whole."""
    head, body = _head(content), content.partition(b"\n")[2]
    digest = head.get("digest")
    if head.get("version") != _VERSION or not isinstance(digest, str):
        raise ValueError("of another version")
    if head.get("sha256") != hashlib.sha256(body).hexdigest():
        raise ValueError("damaged")
    result = json.loads(body)
    if not is_dict(result) or is_deep(result) or "nextCursor" in result:
        raise ValueError("not the whole of a list")
    items = result.get(kind.member)
    if not is_list(items) or not all(isinstance(as_object(item).get(kind.name), str) for item in items):
        raise ValueError("not a list")
    return KeptList(result, digest)
