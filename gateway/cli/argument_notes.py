"""What `call` and `run` say of the arguments that they were given: what a tool, or a script, cannot do with them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.fact_words import plain
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import as_object
from gateway.core.own_names import RUN_TOOL
from gateway.core.tools.arguments import path_words, unknown_arguments, unmarked_handles
from gateway.core.tools.catalogue import OWN, Catalogue
from gateway.routing.calls import schema_of
from gateway.routing.check_arguments import ArgumentChecks
from gateway.routing.code_mode.script_tools import tools_outside

_MOST = 3
_LONGEST = 400
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def argument_notes(
    catalogue: Catalogue, tool: str, arguments: Mapping[str, Any], code_mode: CodeModeSettings
) -> Iterator[str]:
    """Yield what is noticed about the arguments of a call: at most a few notes of each kind."""
    route = catalogue.routes.get(tool)
    if route is None:
        return
    if route.upstream == OWN:
        if route.tool == RUN_TOOL:
            yield from _uncallable(catalogue, code_mode, str(arguments.get("code")))
        return
    for place, _ in unmarked_handles(arguments, route.parameters)[:_MOST]:
        where, own_name = plain(path_words(place), 200), plain(route.tool, 100)
        marks = f"the schema of {own_name} does not mark it as content"
        yield f"{where} looks like a handle, but {marks} (docs/arguments.md)"
    schema = as_object(schema_of(catalogue, tool))
    unknown = tuple(unknown_arguments(schema, arguments))
    for name, question in unknown:
        yield f"the input schema has no argument {plain(name, 100)!r}{f'; {question}' if question else ''}"
    for mistake in ArgumentChecks().mistakes(tool, dict(schema), arguments) or ():
        place = "/".join(map(str, mistake.place)) or "as a whole"
        if mistake.place or not unknown:
            yield f"the arguments do not fit the input schema: {plain(place, 200)}: {plain(mistake.text, _LONGEST)}"


def _uncallable(catalogue: Catalogue, settings: CodeModeSettings, code: str) -> Iterator[str]:
    """Yield why scripts may not call the tools that a script names, and which setting would let them."""
    outside = tools_outside(catalogue, settings)
    reading = {
        str(tool["name"]) for tool in catalogue.tools if as_object(tool.get("annotations")).get("readOnlyHint") is True
    }
    for function in dict.fromkeys(word for word in _NAME.findall(code) if word in outside):
        name = outside[function]
        route = catalogue.routes[name]
        entry = json.dumps(f"{route.upstream}{SEPARATOR}{route.tool}", ensure_ascii=False)
        if name in reading:
            why = f"scripts may not call {name}, which [code_mode] tools leaves out"
            yield f"{why}: {plain(entry, 200)} there lets them"
        else:
            why = f"scripts may not call {name}, which does not declare that it only reads"
            yield f"{why}: [code_mode] may_change = [{plain(entry, 200)}] lets them"
