"""`${NAME}`, `${NAME:-default}` and secrets such as `${file:...}` in the values of a configuration."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gateway.config.problems import Location, Problem
from gateway.core.model.json_values import is_list, is_object

_REFERENCE = re.compile(
    r"(?P<escaped>\$\$\{)|\$\{(?P<source>file|keyring|cmd):(?P<at>[^}]*)\}"
    r"|\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<broken>\$\{)"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_BESIDES_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

SecretSources = Mapping[str, Callable[[str], str]]
"""What reads a secret, by the word before the colon (`secret_sources`). Each raises NoValue."""


class NoValue(Exception):
    """An invalid reference, or one without a value: a description without any value, and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


class _Values:
    """The values of references."""

    def __init__(self, environ: Mapping[str, str], sources: SecretSources | None) -> None:
        self._environ = environ
        self._sources = sources
        self._read: dict[tuple[str, str], str | NoValue] = {}

    def replacement(self, reference: re.Match[str], *, takes_lines: bool = False) -> str:
        """Return the text in place of a reference; a secret has many lines only if `takes_lines`. Raises NoValue."""
        if reference["escaped"]:
            return "${"
        if reference["broken"]:
            raise NoValue("${ is not followed by a variable's name and }", "write $${ for a literal ${")
        if "${" in (reference["at"] or reference["default"] or ""):
            raise NoValue("a reference is within another one", "write the inner value itself")
        if reference["source"]:
            secret = self._secret(reference["source"], reference["at"].strip(), reference[0])
            if (_CONTROL_BESIDES_LINES if takes_lines else _CONTROL).search(secret):
                what = f"the secret of ${{{reference['source']}:...}} has a second line or another control character"
                raise NoValue(what, "it must be a single line of text: only variables in env may have many lines")
            return secret
        name, default = reference["name"], reference["default"]
        if default is not None:
            return self._environ.get(name) or default
        if name not in self._environ:
            raise NoValue(f"the environment variable {name} is not set", f"set it, or write ${{{name}:-default}}")
        return self._environ[name]

    def _secret(self, source: str, at: str, whole: str) -> str:
        if self._sources is None:
            return whole
        if (source, at) not in self._read:
            try:
                self._read[source, at] = self._sources[source](at)
            except NoValue as missing:
                self._read[source, at] = missing
        found = self._read[source, at]
        if isinstance(found, NoValue):
            raise found
        return found


def expand(
    document: Mapping[str, Any], environ: Mapping[str, str], sources: SecretSources | None = None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Replace every reference in every string value of the document; also return the problems.

    `${NAME}` is the variable; `${NAME:-default}` the default if the variable is unset or empty, up to the first `}`;
    `$${` a literal `${`. `${env:NAME}`, as other programs write it, is the same as `${NAME}`. `${file:PATH}`,
    `${keyring:NAME}` and `${cmd:COMMAND}` are read from `sources`, each once; without these, they stay as they are.
    None may be within another.
    Keys are not changed, nor anything below an upstream that is not enabled.
    """
    problems: list[Problem] = []
    dormant = frozenset(_dormant(document))
    values = _Values(environ, sources)
    return _expanded(document, (), values, problems, dormant), tuple(problems)


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


def variables_named(text: str) -> frozenset[str]:
    """Return every variable that the text of a configuration may refer to, wherever it does, without reading it."""
    return frozenset(one["name"] for one in _REFERENCE.finditer(text) if one["name"])


def _dormant(document: Mapping[str, Any]) -> Iterator[Location]:
    upstreams = document.get("upstreams")
    if is_object(upstreams):
        for name, upstream in upstreams.items():
            if is_object(upstream) and upstream.get("enabled") is False:
                yield ("upstreams", name)


def _expanded(
    value: Any, location: Location, values: _Values, problems: list[Problem], dormant: frozenset[Location]
) -> Any:
    if location in dormant:
        return value
    if is_object(value):
        return {key: _expanded(item, (*location, key), values, problems, dormant) for key, item in value.items()}
    if is_list(value):
        items = enumerate(value)
        return [_expanded(item, (*location, place), values, problems, dormant) for place, item in items]
    if isinstance(value, str):
        try:
            return _REFERENCE.sub(partial(values.replacement, takes_lines=_takes_lines(location)), value)
        except NoValue as missing:
            problems.append(Problem(location, str(missing), missing.remedy))
    return value


def _takes_lines(location: Location) -> bool:
    """Whether a value may have many lines, such as a key in PEM: not in a header, an argument or a URL."""
    return (len(location) == 4 and (location[0], location[2]) == ("upstreams", "env")) or location[-1:] == (
        "private_key",
    )
