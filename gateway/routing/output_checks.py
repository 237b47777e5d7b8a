"""Checks of structured content that was cut against the output schema that the host knows of the tool."""

from collections.abc import Callable
from typing import Any

from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue import Catalogue, Route
from gateway.routing.check_arguments import ArgumentChecks


def accepts_by(
    checks: ArgumentChecks, catalogue: Catalogue, route: Route, name: str | None = None
) -> Callable[[Any], bool]:
    """Return whether a value fits the output schema that a tool is listed with; any does if it is listed with none.

    `name` is the name that the host called, if it is known.
    """

    def accepts(value: Any) -> bool:
        schema = _listed_schema(catalogue, route, name)
        return schema is None or checks.fits(route.tool, schema, value)

    return accepts


def _listed_schema(catalogue: Catalogue, route: Route, name: str | None) -> WireObject | None:
    for tool in catalogue.tools:
        listed = catalogue.routes.get(tool["name"])
        is_same = listed is not None and (listed.upstream, listed.tool) == (route.upstream, route.tool)
        if tool["name"] == name or (name is None and is_same):
            return tool.get("outputSchema")
    return None
