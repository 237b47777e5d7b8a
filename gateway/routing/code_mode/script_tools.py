"""The tools that scripts may call, as functions: their names, their parameters in order, and their signatures."""

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.apps import for_the_model
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import as_list, as_object
from gateway.core.tools.catalogue import OWN, Catalogue, Route

RESERVED = frozenset({"find_tools", "media", "open_media", "read_bytes", "read_text", "show"})
"""The functions that every script has."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class ScriptTool:
    """A tool that scripts may call: the function's name, the name that hosts call it by, and what is declared of it.

    `parameters` are in the order in which a script may give them without their names: required ones first.
    """

    function: str
    name: str
    parameters: tuple[str, ...]
    declared: Mapping[str, Any]


def script_tools(catalogue: Catalogue, settings: CodeModeSettings) -> dict[str, ScriptTool]:
    """Return the tools of a host's catalogue that its scripts may call, by the names of their functions."""
    found: dict[str, ScriptTool] = {}
    for tool in catalogue.tools:
        name = str(tool["name"])
        route = catalogue.routes.get(name)
        if route is None or route.upstream == OWN or not for_the_model(tool) or name in catalogue.listed_for_pages:
            continue
        if may_call(route, as_object(tool.get("annotations")), settings):
            function = function_name(name, found)
            found[function] = ScriptTool(function, name, _parameters(as_object(tool.get("inputSchema"))), tool)
    return found


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
