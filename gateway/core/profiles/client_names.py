"""Normalising the names of clients for matching by profiles. Standard library only."""

import re

LOOKED_AT = 256
"""Maximum characters examined of a client's name or User-Agent, both of which come from outside."""

_BRIDGES = re.compile(r" ?\(via [^()]*\)\Z", re.IGNORECASE)
_SEPARATORS = str.maketrans(" _/", "---")


def normalise_client_name(name: str) -> str:
    """Normalise a name for matching: case folded; blanks, `_` and `/` as `-`; without a bridge's ` (via ...)` suffix.

    mcp-remote appends ` (via mcp-remote <version>)` to the name of the client behind it
    (https://github.com/geelen/mcp-remote/pull/63).
    """
    plain = name[:LOOKED_AT].strip()
    while (shorter := _BRIDGES.sub("", plain)) != plain:
        plain = shorter.rstrip()
    return separated(plain)


def separated(name: str) -> str:
    """Case fold a name, or a glob for names, and use one kind of separator."""
    return name.casefold().translate(_SEPARATORS)
