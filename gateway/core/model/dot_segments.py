"""URIs that lead out of the place that they seem to be in. Standard library only."""

import re

_ENDS = re.compile(r"[/\\?#]")
_ESCAPES = re.compile(r"%(25|2e|2f|5c)", re.IGNORECASE)
_WRITTEN = {"25": "%", "2e": ".", "2f": "/", "5c": "\\"}
_TIMES = 3
"""How often a URI is decoded: a server may do so more than once."""


def has_dot_segments(uri: str) -> bool:
    """Whether a URI has a segment `.` or `..`, written plainly or not: then a pattern of its beginning says nothing."""
    for _ in range(_TIMES):
        if _has_them(uri):
            return True
        uri = _ESCAPES.sub(lambda found: _WRITTEN[found[1].lower()], uri)
    return _has_them(uri)


def _has_them(uri: str) -> bool:
    return not {".", ".."}.isdisjoint(_ENDS.split(uri))
