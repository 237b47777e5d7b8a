"""What is known of a host's configuration: its files, and the format of a server in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from gateway.hosts.config_files.documents import Syntax
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.variables import Dialect


@dataclass(frozen=True)
class ConfigPlace:
    """A file that a host may read.

    `only_if_there`: it is never created, except that a `packaged` file (in the private folder of an installed package)
    is created if that folder exists.
    """

    path: PurePath
    scope: Literal["user", "project"] = "user"
    only_if_there: bool = False
    packaged: bool = False


@dataclass(frozen=True)
class HostFormat:
    """A host's configuration format.

    `table` is the path of its servers; `variables` the dialect of references in its values; `timeout_seconds` the
    length of one unit of its `timeout` for a call, if it has one. `entry` writes a server of a name, `places` names the
    files, the user's before the project's. `profile` is its built-in profile, if that has another name.

    `nameless`: its client calls itself what others do, so that its entry chooses the profile, if there is one. `hint`
    says in a sentence what its users may have to do besides. `settings` are settings of the host itself that are
    written beside the entry, each where it has none of this name (in YAML only).
    """

    name: str
    title: str
    page: str
    table: tuple[str, ...]
    variables: Dialect
    places: Callable[[Machine], tuple[ConfigPlace, ...]]
    entry: Callable[[str, Launch], dict[str, Any]]
    syntax: Syntax = "json"
    timeout_seconds: float | None = None
    after: str = "restart it"
    profile: str | None = None
    nameless: bool = False
    hint: str | None = None
    settings: Mapping[str, float] = field(default_factory=dict[str, float])
