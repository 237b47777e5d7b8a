"""What clients call themselves, as profiles match it. Standard library only."""

import re

LOOKED_AT = 256
"""How many characters of a client's name or User-Agent are looked at: both come from outside."""

_BRIDGES = re.compile(r" ?\(via [^()]*\)\Z", re.IGNORECASE)
_SEPARATORS = str.maketrans(" _/", "---")


def normalise_client_name(name: str) -> str:
    """The name as profiles match it: case folded; blanks, `_` and `/` as `-`; without a bridge's ` (via ...)` ending.

    mcp-remote appends ` (via mcp-remote <version>)` to the name of the client behind it
    (https://github.com/geelen/mcp-remote/pull/63).
    """
    plain = name[:LOOKED_AT].strip()
    while (shorter := _BRIDGES.sub("", plain)) != plain:
        plain = shorter.rstrip()
    return separated(plain)


def separated(name: str) -> str:
    """A name, or a glob for names, case folded, with one kind of separator."""
    return name.casefold().translate(_SEPARATORS)
