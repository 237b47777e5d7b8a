"""`${NAME}` and `${NAME:-default}` in the values of a configuration."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.config.problems import Location, Problem
from gateway.core.model.json_values import is_list, is_object

_REFERENCE = re.compile(
    r"(?P<escaped>\$\$\{)|\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<broken>\$\{)"
)


class _Unset(Exception):
    """A variable without a value, or an invalid reference: a description, and the remedy."""


def expand(document: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Replace every reference in every string value of the document; also return the problems.

    `${NAME}` is the variable; `${NAME:-default}` the default if the variable is unset or empty, up to the first `}`;
    `$${` a literal `${`. `${env:NAME}`, as other programs write it, is the same as `${NAME}`. Keys are not changed, nor
    anything below an upstream that is not enabled.
    """
    problems: list[Problem] = []
    dormant = frozenset(_dormant(document))
    return _expanded(document, (), environ, problems, dormant), tuple(problems)


def references(document: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the variables that the document refers to, each with its default (None: it has to be set).

    As in `expand`, keys do not count, nor does anything below an upstream that is not enabled.
    """
    dormant = frozenset(_dormant(document))
    waiting: list[tuple[Location, Any]] = [((), document)]
    while waiting:
        location, value = waiting.pop(0)
        if location in dormant:
            continue
        if is_object(value):
            waiting[:0] = [((*location, key), item) for key, item in value.items()]
        elif is_list(value):
            waiting[:0] = [((*location, place), item) for place, item in enumerate(value)]
        elif isinstance(value, str):
            found = _REFERENCE.finditer(value)
            yield from ((one["name"], one["default"]) for one in found if one["name"])


def _dormant(document: Mapping[str, Any]) -> Iterator[Location]:
    upstreams = document.get("upstreams")
    if is_object(upstreams):
        for name, upstream in upstreams.items():
            if is_object(upstream) and upstream.get("enabled") is False:
                yield ("upstreams", name)


def _expanded(
    value: Any, location: Location, environ: Mapping[str, str], problems: list[Problem], dormant: frozenset[Location]
) -> Any:
    if location in dormant:
        return value
    if is_object(value):
        return {key: _expanded(item, (*location, key), environ, problems, dormant) for key, item in value.items()}
    if is_list(value):
        items = enumerate(value)
        return [_expanded(item, (*location, place), environ, problems, dormant) for place, item in items]
    if isinstance(value, str):
        try:
            return _REFERENCE.sub(lambda reference: _replacement(reference, environ), value)
        except _Unset as unset:
            problems.append(Problem(location, unset.args[0], unset.args[1]))
    return value


def _replacement(reference: re.Match[str], environ: Mapping[str, str]) -> str:
    if reference["escaped"]:
        return "${"
    if reference["broken"]:
        raise _Unset("${ is not followed by a variable's name and }", "write $${ for a literal ${")
    name, default = reference["name"], reference["default"]
    if default is not None:
        return environ.get(name) or default
    if name not in environ:
        raise _Unset(f"the environment variable {name} is not set", f"set it, or write ${{{name}:-default}}")
    return environ[name]
