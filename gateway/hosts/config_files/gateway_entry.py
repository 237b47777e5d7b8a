"""Adding the gateway to the text of a host's configuration, and removing it: nothing is read or written here."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.errors import ConfigError
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.launch_command import Launch, is_own

NAME = "gateway"
"""The gateway's name in a host, unless the user chooses another."""


@dataclass(frozen=True)
class Installation:
    """The text with the gateway in it; the other servers that stay, and those that were removed."""

    text: str
    beside: tuple[str, ...] = ()
    taken_out: tuple[str, ...] = ()


def plan_install(document: Document, host: HostFormat, launch: Launch, *, name: str = NAME, only: bool) -> Installation:
    """Add the gateway to the host's text as server `name`, or replace its former entry.

    With `only`, every other server is removed.

    Raises:
        ConfigError: the text is malformed or cannot be edited exactly, or another server has that name.
    """
    servers = document.table(host.table) or {}
    if name in servers and not is_own(servers[name]):
        where = f"{document.where}: {'.'.join(host.table)}.{name}"
        raise ConfigError("another server has this name", where=where, remedy="give the gateway another with --name")
    others = tuple(other for other in servers if other != name)
    entry = host.entry(name, launch)
    if servers.get(name) != entry:
        document = document.with_server(host.table, name, entry)
    for setting, value in host.settings.items():
        if setting not in document.data:
            document = document.with_setting(setting, value)
    if only and others:
        return Installation(document.without_servers(host.table, others).text, taken_out=others)
    return Installation(document.text, beside=others)


def own_names(document: Document, host: HostFormat, ports: Collection[int] = ()) -> tuple[str, ...]:
    """Return the names under which the gateway is registered in the text. `ports`: where gateways serve hosts now."""
    return tuple(name for name, entry in (document.table(host.table) or {}).items() if is_own(entry, ports))


def plan_uninstall(
    document: Document,
    host: HostFormat,
    *,
    name: str = NAME,
    before: Document | None = None,
    give_back: Sequence[str] = (),
    settings: Sequence[str] = (),
) -> str | None:
    """Return the text without the gateway's entry, or None if it has none of this name.

    `give_back` are the servers that `only` removed: those that are still missing are restored from `before`.
    `settings` are those of the host itself that the gateway wrote.

    Raises:
        ConfigError: one of the texts is malformed or cannot be edited exactly.
    """
    if name not in own_names(document, host):
        return None
    document = document.without_servers(host.table, [name])
    if settings:
        document = document.without_settings(settings)
    had = (before.table(host.table) if before is not None else None) or {}
    for other in give_back:
        if other in had and other not in (document.table(host.table) or {}):
            document = document.with_server(host.table, other, had[other])
    return document.text
