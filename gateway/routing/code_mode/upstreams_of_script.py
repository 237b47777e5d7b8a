"""Guess which upstreams a script will call, before it runs: it goes to the replica that has their state."""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.json_values import as_object, as_text
from gateway.core.tools.catalogue import OWN, Route
from gateway.routing.code_mode.script_tools import function_name


def upstreams_of_script(params: Mapping[str, Any], routes: Mapping[str, Route]) -> set[str]:
    """Return the upstreams whose tools the script of a call names; all of them if it names none."""
    code = as_text(as_object(params.get("arguments")).get("code")) or ""
    found = {name: route.upstream for name, route in routes.items() if route.upstream != OWN}
    named = {upstream for name, upstream in found.items() if name in code or function_name(name, {}) in code}
    return named or set(found.values())
