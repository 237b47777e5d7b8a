"""The toolset of the project that a host on stdio works in, by the folders that it says it has open (roots)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from anyio import Lock, to_thread

from gateway.config.project_file import project_file, project_file_here, toolset_of_project
from gateway.config.toolset_settings import no_toolset
from gateway.core.model.caller import Caller
from gateway.errors import UnknownToolset
from gateway.system.loopback import is_loopback

_MOST = 256
"""Maximum number of sessions whose project is remembered."""


class _Named(NamedTuple):
    """The toolset that a project's file names."""

    toolset: str
    file: Path


class ProjectToolsets:
    """Asks each session once which folders it has open, and again when it says that these have changed."""

    def __init__(self) -> None:
        self._named: dict[str, _Named | None] = {}
        self._asking = Lock()

    async def narrowed(self, caller: Caller, folders: Callable[[], Awaitable[Sequence[str]]]) -> Caller:
        """Return the caller with the toolset that the first of its folders with a project's file names.

        `folders` asks the host for its folders, as URIs.
        """
        if not caller.on_stdio or caller.session is None or "roots" not in caller.capabilities:
            return caller
        await self._learn(caller.session, folders)
        return self.known(caller)

    def known(self, caller: Caller) -> Caller:
        """Return the same for what is known already."""
        named = None if caller.session is None else self._named.get(caller.session)
        if named is None or named.toolset in caller.toolsets:
            return caller
        return replace(caller, toolsets=(*caller.toolsets, named.toolset))

    def problem(self, caller: Caller, error: UnknownToolset) -> str:
        """Return which toolset does not exist, after the file that names it, if a project's does."""
        words = str(error)
        for named in (self._named.get(caller.session or ""), _named_here() if caller.on_stdio else None):
            if named is not None and error.message == no_toolset(named.toolset):
                return words if str(named.file) in words else f"{named.file}: {words}"
        return words

    def forget(self, session: str) -> bool:
        """Forget the project of a session, which has ended or has other folders; return whether it was known."""
        return self._named.pop(session, self) is not self

    async def _learn(self, session: str, folders: Callable[[], Awaitable[Sequence[str]]]) -> None:
        if session not in self._named:
            async with self._asking:
                if session not in self._named:
                    named = await to_thread.run_sync(_toolset_in, await folders())
                    if len(self._named) >= _MOST:
                        self._named.pop(next(iter(self._named)))
                    self._named[session] = named


def _named_here() -> _Named | None:
    """Return what the file of the working folder names: hosts on stdio start the gateway in their project's."""
    return _named_in(project_file_here())


def _toolset_in(uris: Sequence[str]) -> _Named | None:
    files = (project_file(folder) for folder in map(_folder, uris) if folder is not None)
    return _named_in(next((file for file in files if file is not None), None))


def _named_in(file: Path | None) -> _Named | None:
    toolset = None if file is None else toolset_of_project(file)
    return None if file is None or toolset is None else _Named(toolset, file)


def _folder(uri: str) -> Path | None:
    """Return the folder of a `file:` URI on this machine; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or not (parts.netloc == "" or is_loopback(parts.netloc)):
        return None
    path = url2pathname(parts.path)
    return None if "\0" in path or not path else Path(path)
