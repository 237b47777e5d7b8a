"""The tools that scripts may call, as functions: their names, their parameters in order, and their signatures."""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.apps import for_the_model
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import as_list, as_object, is_object
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue import OWN, Catalogue, Route
from gateway.core.tools.signatures import call_signature

RESERVED = frozenset({"find_tools", "media", "open_media", "read_bytes", "read_text", "show"})
"""The functions that every script has."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class ScriptTool:
    """A tool that scripts may call: the function's name, the name that hosts call it by, and what is declared of it.

    `parameters` are in the order in which a script may give them without their names: required ones first. `output` is
    the schema of its data; `takes_media` has the parameters that take content.
    """

    function: str
    name: str
    parameters: tuple[str, ...]
    declared: Mapping[str, Any]
    output: WireObject | None
    takes_media: frozenset[str]

    @property
    def signature(self) -> str:
        """The function with the types of its parameters, and of what it returns if that is known."""
        schema = as_object(self.declared.get("inputSchema"))
        return call_signature(self.function, schema, self.output, self.takes_media)

    @property
    def only_reads(self) -> bool:
        """Whether the tool says that it changes nothing."""
        return as_object(self.declared.get("annotations")).get("readOnlyHint") is True


def script_tools(catalogue: Catalogue, settings: CodeModeSettings) -> dict[str, ScriptTool]:
    """Return the tools of a host's catalogue that its scripts may call, by the names of their functions."""
    found: dict[str, ScriptTool] = {}
    for name, tool, route in _for_models(catalogue):
        if may_call(route, as_object(tool.get("annotations")), settings):
            function = function_name(name, found)
            parameters = _parameters(as_object(tool.get("inputSchema")))
            takes = frozenset(str(each.path[0]) for each in route.parameters if len(each.path) == 1)
            found[function] = ScriptTool(function, name, parameters, tool, catalogue.outputs.get(name), takes)
    return found


def tools_outside(catalogue: Catalogue, settings: CodeModeSettings) -> dict[str, str]:
    """Return the tools that the host's model may call, but its scripts may not: function names, and the tools' own.

    A tool that the catalogue does not have, because a rule or a token hides it, is not among them.
    """
    found: dict[str, str] = {}
    taken: dict[str, object] = dict(script_tools(catalogue, settings))
    for name, tool, route in _for_models(catalogue):
        if not may_call(route, as_object(tool.get("annotations")), settings):
            function = function_name(name, taken)
            taken[function] = found[function] = name
    return found


def _for_models(catalogue: Catalogue) -> Iterator[tuple[str, dict[str, Any], Route]]:
    """Yield the upstreams' tools that the host's model may call: the name, what is declared, and the route."""
    for tool in catalogue.tools:
        name = str(tool["name"])
        route = catalogue.routes.get(name)
        if route is None or route.upstream == OWN or not for_the_model(tool) or name in catalogue.listed_for_pages:
            continue
        yield name, tool, route


def with_outputs(catalogue: Catalogue, lists: Mapping[str, Sequence[WireObject]]) -> Catalogue:
    """Return the catalogue with the output schemas that the upstreams' lists have: hosts may be offered none."""
    declared = {
        (upstream, tool.get("name")): schema
        for upstream, tools in lists.items()
        for tool in tools
        if is_object(schema := tool.get("outputSchema"))
    }
    routes = catalogue.routes.items()
    outputs = {name: declared[key] for name, route in routes if (key := (route.upstream, route.tool)) in declared}
    return replace(catalogue, outputs=outputs)


def may_call(route: Route, annotations: Mapping[str, Any], settings: CodeModeSettings) -> bool:
    """Whether scripts may call a tool: it says that it only reads, or the configuration names it."""
    own_name = f"{route.upstream}{SEPARATOR}{route.tool}"
    patterns: Sequence[str] = settings.may_change
    if annotations.get("readOnlyHint") is True:
        patterns = (*patterns, *settings.tools)
    return any(fnmatchcase(own_name, pattern) for pattern in patterns)


def function_name(name: str, taken: Mapping[str, object]) -> str:
    """Return a name for a tool's function that Python accepts, and that no other has."""
    plain = _NOT_IN_NAMES.sub("_", name)
    if not plain or plain[0].isdigit() or keyword.iskeyword(plain) or plain in RESERVED:
        plain = f"tool_{plain}"
    unique, number = plain, 2
    while unique in taken:
        unique, number = f"{plain}_{number}", number + 1
    return unique


def _parameters(schema: Mapping[str, Any]) -> tuple[str, ...]:
    required = as_list(schema.get("required"))
    return tuple(sorted(as_object(schema.get("properties")), key=lambda name: name not in required))
