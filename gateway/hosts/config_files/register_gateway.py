"""Registering the gateway in a host's file on disk, with a backup, and unregistering it."""

import contextlib
import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.hosts.config_files.backups import BackupRecord, Backups, digest
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.files import decoded_text, read_bytes, remove_file, replace_file
from gateway.hosts.config_files.gateway_entry import NAME, Installation, own_names, plan_install, plan_uninstall
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine


@dataclass(frozen=True)
class Registered:
    """The actual or simulated result of registering: `diff` is the change as a unified diff, empty without a change."""

    file: Path
    diff: str
    installation: Installation
    backup: Path | None


@dataclass(frozen=True)
class Unregistered:
    """The result of unregistering.

    `exact`: the file is again what it was before; `removed`: there was none. `backup`: its former content, if stored.
    Otherwise `put_back` are the servers that were removed for the gateway and are there again; `missing` the folders
    and names of servers for single projects that somebody else has removed since.
    """

    file: Path
    diff: str
    exact: bool
    backup: Path | None
    removed: bool = False
    put_back: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


def projects_in(document: Document, host: HostFormat) -> Mapping[str, Mapping[str, Any]]:
    """Return the projects in the user's file of Claude Code: the servers for each alone, by folder."""
    known = (document.table(("projects",)) or {}) if host.name == "claude-code" else {}
    return {folder: as_object(as_object(settings).get("mcpServers")) for folder, settings in known.items()}


def user_file(host: HostFormat, at: Machine) -> Path:
    """Return the user's file of a host: the first that exists, or else one in a package's folder, or the usual one."""
    places = [place for place in host.places(at) if place.scope == "user"]
    existing = (place for place in places if os.path.exists(place.path))
    packaged = (place for place in places if place.packaged and os.path.isdir(place.path.parent))
    usual = (place for place in places if not place.only_if_there)
    return Path(next(chain(existing, packaged, usual)).path)


def host_document(host: HostFormat, file: Path) -> tuple[Document, bytes | None]:
    """Return a host's file as a document, and its bytes.

    Raises:
        ConfigError: it cannot be read.
    """
    content = read_bytes(file)
    return Document(decoded_text(content, file), host.syntax, str(file)), content


def register(
    host: HostFormat,
    file: Path,
    launch: Launch,
    backups: Backups,
    *,
    name: str = NAME,
    only: bool = False,
    dry_run: bool,
) -> Registered:
    """Add the gateway to the host's file; `dry_run`: only show how. `only` removes the others.

    Raises:
        ConfigError: the file cannot be read, edited exactly, or written; then it is unchanged.
    """
    document, content = host_document(host, file)
    installation = plan_install(document, host, launch, name=name, only=only)
    diff = unified(document.text, installation.text, file)
    if dry_run or installation.text == document.text:
        return Registered(file, diff, installation, None)
    written = installation.text.encode("utf-8")
    record = _record(host, file, document, content, backups)
    # The backup comes first: whatever happens later, the original content is there.
    if record is None:
        backups.keep(host.name, file, content)
        record = BackupRecord(str(file), content is not None, "", ())
    made = replace_file(file, written, expected=content)
    backups.write(
        host.name,
        file,
        replace(
            record,
            written=digest(written),
            names=tuple(dict.fromkeys([*record.names, name])),
            taken_out=tuple(dict.fromkeys([*record.taken_out, *installation.taken_out])),
            made_folders=record.made_folders or tuple(map(str, made)),
        ),
    )
    backup = backups.place(host.name, file)
    return Registered(file, diff, installation, backup if backup.exists() else None)


def unregister(
    host: HostFormat, file: Path, backups: Backups, *, name: str = NAME, dry_run: bool
) -> Unregistered | None:
    """Remove the gateway from the host's file; None if it is not in it.

    If nobody else has changed the file since, it becomes what it was before, byte for byte.

    Raises:
        ConfigError: the file cannot be read, edited exactly, or written; then it is unchanged.
    """
    document, content = host_document(host, file)
    if content is None or name not in own_names(document, host):
        return None
    record = backups.record(host.name, file)
    # Without a record it is not this program that registered it: a backup that is there is of an earlier time.
    before = None if record is None else backups.before(host.name, file)
    untouched = record is not None and record.exact and record.written == digest(content)
    complete = record is not None and (before is not None or not record.existed)
    if record is not None and untouched and complete and record.names == (name,):
        return _give_back(host, file, content, before, record, backups, dry_run=dry_run)
    old = Document(decoded_text(before, file), host.syntax, str(backups.place(host.name, file)))
    last = record is None or set(record.names) <= {name}
    give_back: Sequence[str] = record.taken_out if record is not None and last else ()
    settings = _own_settings(document, host, old) if record is not None and last else ()
    text = plan_uninstall(document, host, name=name, before=old, give_back=give_back, settings=settings)
    assert text is not None  # the entry exists
    new = Document(text, host.syntax, document.where)
    there = document.table(host.table) or {}
    put_back = tuple(one for one in new.table(host.table) or {} if one not in there)
    left = projects_in(new, host)
    missing = tuple(
        (folder, one)
        for folder, servers in projects_in(old, host).items()
        for one in servers
        if one not in left.get(folder, {})
    )
    diff = unified(document.text, text, file)
    if not dry_run:
        written = text.encode("utf-8")
        replace_file(file, written, expected=content)
        if record is not None and not last:
            rest = tuple(other for other in record.names if other != name)
            backups.write(host.name, file, replace(record, names=rest, written=digest(written), exact=untouched))
        elif record is not None:
            backups.forget(host.name, file, drop_content=False)
    backup = backups.place(host.name, file)
    kept = backup if record is not None and backup.exists() else None
    return Unregistered(file, diff, exact=False, backup=kept, put_back=put_back, missing=missing)


def _own_settings(document: Document, host: HostFormat, before: Document) -> Sequence[str]:
    """Return the settings that the gateway wrote. One that was changed since is the user's own."""
    return [
        name for name, value in host.settings.items() if name not in before.data and document.data.get(name) == value
    ]


def unified(old: str, new: str, file: Path) -> str:
    """Return the change as a unified diff; line ends are not shown."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), f"{file} (new)", lineterm="")
    return "\n".join(lines)


def _record(
    host: HostFormat, file: Path, document: Document, content: bytes | None, backups: Backups
) -> BackupRecord | None:
    """Return the record that still applies: the gateway is in the file; `exact` only without changes by others."""
    record = backups.record(host.name, file)
    if record is None or content is None:
        return None
    if not set(record.names) & set(own_names(document, host)):
        return None
    return replace(record, exact=record.exact and record.written == digest(content))


def _give_back(
    host: HostFormat,
    file: Path,
    content: bytes,
    before: bytes | None,
    record: BackupRecord,
    backups: Backups,
    *,
    dry_run: bool,
) -> Unregistered:
    diff = unified(decoded_text(content, file), decoded_text(before, file), file)
    if not dry_run:
        if before is None:
            remove_file(file, expected=content)
            for folder in record.made_folders:
                with contextlib.suppress(OSError):  # the host has put something else into it in the meantime
                    Path(folder).rmdir()
        else:
            replace_file(file, before, expected=content)
        backups.forget(host.name, file, drop_content=True)
    return Unregistered(file, diff, exact=True, backup=None, removed=before is None)
