"""Secrets that stand in hosts' entries as plain text: found, and replaced by `${keyring:NAME}`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from gateway.config.expansion import NoValue
from gateway.config.secret_sources import find_in_keyring
from gateway.config.secrets import SECRET_NAME
from gateway.core.model.json_values import as_object, is_object

_TABLES = ("env", "headers")
_SCHEME = re.compile(r"(?:(?:Bearer|Basic|Token)\s+)?", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{keyring:([^}]*)\}")
_ODD = re.compile(r"[^A-Za-z0-9_.-]")

FindSecret = Callable[[str], str | None]
"""Returns an entry of the keyring; None if there is none. Raises NoValue."""


class PlainSecret(NamedTuple):
    """A secret in the table `env` or `headers` of an upstream, and the entry of the keyring that it would be."""

    upstream: str
    table: str
    key: str
    scheme: str
    """What is before it in a header, such as `Bearer `."""
    value: str

    @property
    def entry(self) -> str:
        """The name in the keyring."""
        return _ODD.sub("_", f"{self.upstream}-{self.key}")

    def __repr__(self) -> str:
        return f"PlainSecret({self.upstream!r}, {self.table!r}, {self.key!r})"


def plain_secrets(name: str, upstream: Mapping[str, Any]) -> Iterator[PlainSecret]:
    """Yield the values of an upstream's environment and headers that are secrets, by their names."""
    for table in _TABLES:
        for key, value in as_object(upstream.get(table)).items():
            if not isinstance(value, str) or "${" in value or not SECRET_NAME.search(key):
                continue
            matched = _SCHEME.match(value) if table == "headers" else None
            scheme = matched[0] if matched is not None else ""
            if secret := value[len(scheme) :].strip():
                yield PlainSecret(name, table, key, scheme, secret)


def with_references(upstream: Mapping[str, Any], secrets: Iterable[PlainSecret]) -> dict[str, Any]:
    """Return the upstream with references to the keyring in place of its secrets."""
    changed = dict(upstream)
    for secret in secrets:
        table = {**changed[secret.table], secret.key: f"{secret.scheme}${{keyring:{secret.entry}}}"}
        changed[secret.table] = table
    return changed


def with_values(upstream: Mapping[str, Any], find: FindSecret = find_in_keyring) -> dict[str, Any]:
    """Return the upstream with what the keyring has in place of references, to compare it with hosts' entries.

    What cannot be read stays as it is.
    """
    changed = dict(upstream)
    for table in _TABLES:
        if is_object(values := upstream.get(table)):
            changed[table] = {key: _value(value, find) for key, value in values.items()}
    return changed


def _value(value: Any, find: FindSecret) -> Any:
    if not isinstance(value, str):
        return value
    found: str | None = None
    with suppress(NoValue):
        if reference := _REFERENCE.search(value):
            found = find(reference[1].strip())
    return _REFERENCE.sub(lambda _: found or "", value, count=1) if found else value
