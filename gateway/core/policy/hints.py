"""What a tool's annotations claim about it, with the defaults of the specification for what they leave out.

They are claims of the server itself, so they may restrict, and never permit: of two claims that contradict each other,
the stricter one counts.
"""

from collections.abc import Iterable

from gateway.core.model.json_values import as_object
from gateway.core.model.tool_facts import Hints


def hints_of(declared: Iterable[object]) -> Hints:
    """Return the hints of all tools that are declared under one name: a call cannot tell them apart."""
    found = [_hints(as_object(as_object(tool).get("annotations"))) for tool in declared]
    if not found:
        return Hints()
    return Hints(
        all(hints.read_only for hints in found),
        any(hints.destructive for hints in found),
        all(hints.idempotent for hints in found),
        any(hints.open_world for hints in found),
    )


def _hints(annotations: object) -> Hints:
    said = as_object(annotations)
    read_only = said.get("readOnlyHint") is True and said.get("destructiveHint") is not True
    return Hints(
        read_only,
        not read_only and said.get("destructiveHint") is not False,
        said.get("idempotentHint") is True,
        said.get("openWorldHint") is not False,
    )
