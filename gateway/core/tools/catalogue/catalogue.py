"""The tools offered to a host, the routes of their calls, and the selection from each upstream's tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.core import apps
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.arguments.find_parameters import SchemaPlace


class Selection(Protocol):
    """An upstream's `tools` settings: which are offered, their names, descriptions and budgets, which take content.

    `include` and `exclude` are shell globs, the others are keyed by name: all of them the upstream's own names.
    `max_tokens` has budgets of results, and `content` has settings for arguments by path.
    """

    @property
    def include(self) -> Sequence[str]: ...
    @property
    def exclude(self) -> Sequence[str]: ...
    @property
    def rename(self) -> Mapping[str, str]: ...
    @property
    def describe(self) -> Mapping[str, str]: ...
    @property
    def max_tokens(self) -> Mapping[str, int]: ...
    @property
    def content(self) -> Mapping[str, Mapping[str, SchemaPlace]]: ...


@dataclass(frozen=True)
class Route:
    """The destination of a call: an upstream, the tool's name there, and the arguments that take content.

    `audience`: the reader of the result. `shows_page`: whether the host shows a page of the upstream with it.
    `only_app`: whether the tool is only for pages of its own upstream, regardless of the reader of this result.
    """

    upstream: str
    tool: str
    parameters: tuple[Parameter, ...] = ()
    audience: apps.Audience = "model"
    shows_page: bool = False
    only_app: bool = False


@dataclass(frozen=True)
class WithheldTool:
    """A tool that is withheld from the list by a rule (its name, `""` for pins), and why."""

    upstream: str
    tool: str
    rule: str
    why: str


@dataclass(frozen=True)
class Catalogue:
    """The tools as offered, the routes of their calls, and notes of what was changed or left out.

    `problems` are the `notes` that need attention: tools left out, and name collisions. `originals` are the original
    input schemas, by offered name, of tools whose offered schema accepts more: arguments are checked against these.
    """

    tools: tuple[dict[str, Any], ...] = ()
    routes: Mapping[str, Route] = field(default_factory=dict[str, Route])
    notes: tuple[Note, ...] = ()
    problems: tuple[Note, ...] = ()
    originals: Mapping[str, WireObject] = field(default_factory=dict[str, WireObject])
    takes_content: bool = False
    """Whether any tool has an argument that takes a handle."""
    own_names: Mapping[str, tuple[Route, ...]] = field(default_factory=dict[str, tuple[Route, ...]])
    """For a host that shows pages: the selected tools that pages may call, by their upstreams' own names for them."""
    listed_for_pages: frozenset[str] = frozenset()
    """The tools of `own_names` that are also listed: one entry for each name, even if several upstreams have it."""
    over_limit: Note | None = None
    """The problem that names the tools beyond the host's limit."""
    unmatched: tuple[Note, ...] = ()
    """The problems about configuration keys that name something that does not exist."""
    withheld: Mapping[str, WithheldTool] = field(default_factory=dict[str, WithheldTool])
    """The tools that are withheld from this caller, by the names that they would be offered under."""
    outputs: Mapping[str, WireObject] = field(default_factory=dict[str, WireObject])
    """The original output schemas, by offered name, where scripts may call the tools (code mode)."""
