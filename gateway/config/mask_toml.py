"""Hiding the secrets in the text of a configuration before it is shown: by their values, and by their keys' names."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from gateway.config.secrets import HIDDEN, SECRET_NAME, hide, longest_first, secret_segments
from gateway.core.model.json_values import is_list, is_object

_SHORTEST = 4
_HEADERS = frozenset({"--header", "-H"})
"""Options that have a header."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)[ \t]++", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{(?:[A-Za-z_][A-Za-z0-9_]*+|(?:file|keyring|cmd):[^}]*+)\}")


def masked_configuration(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with `***` in place of secrets: `known` ones, and those that it has itself.

    Those are the headers of upstreams, credentials in their URLs, what looks drawn in the paths of URLs, and what a
    key, a variable or an option has whose name says that it is secret. References such as `${TOKEN}` stay. A text that
    is neither TOML nor JSON has only the known ones hidden.
    """
    found = {*known}
    for value in _secrets_of(_parsed(text)):
        if _REFERENCE.fullmatch(value) is None:
            found |= {value, _escaped(value)}
            text = text.replace(f'"{_escaped(value)}"', f'"{HIDDEN}"').replace(f"'{value}'", f"'{HIDDEN}'")
    return hide(text, longest_first(found, _SHORTEST))


def _parsed(text: str) -> Any:
    plain = text.removeprefix("\ufeff")
    try:
        return tomllib.loads(plain)
    except ValueError:
        pass
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def _escaped(value: str) -> str:
    """Return the value as it stands between the quotes of TOML and JSON."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


def secrets_in_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return what is secret in the arguments of a command line, by their options."""
    return longest_first(_secrets_of(list(words)), _SHORTEST)


def _secrets_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield the strings that are secret below `value`, which has this name."""
    if is_object(value):
        for key, item in value.items():
            yield from _of_entry(str(key), item)
    elif is_list(value):
        before = name
        for item in value:
            if isinstance(item, str):
                yield from _of_word(item, before)
                before = item if item.startswith("-") and "=" not in item else ""
            else:
                yield from _secrets_of(item)


def _of_entry(key: str, item: Any) -> Iterator[str]:
    if key == "headers" and is_object(item):
        yield from (part for header in item.values() if isinstance(header, str) for part in _of_header(header))
    elif isinstance(item, str):
        if SECRET_NAME.search(key):
            yield item
        elif "://" in item:
            yield from _of_url(item)
    else:
        yield from _secrets_of(item)


def _of_header(header: str) -> Iterator[str]:
    scheme = _SCHEME.match(header)
    yield header[scheme.end() :] if scheme else header


def _of_word(word: str, before: str) -> Iterator[str]:
    """Yield what is secret in an argument, by its own option (`--token=x`) or the one before it (`--token x`)."""
    option, equals, value = word.partition("=")
    if equals and SECRET_NAME.search(option):
        yield value
    elif before and SECRET_NAME.search(before) and not word.startswith("-"):
        yield word
    elif before in _HEADERS or SECRET_NAME.search(word.partition(": ")[0] if ": " in word else ""):
        yield from _of_header(word.partition(":")[2].strip() or word)
    elif "://" in word:
        yield from _of_url(word)


def _of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    credentials = parts.netloc.rpartition("@")[0]
    if credentials:
        yield credentials
    yield from secret_segments(parts.path)
    for name, value in parse_qsl(parts.query):
        if SECRET_NAME.search(name):
            yield value
