"""URIs that lead out of the place that they seem to be in. Standard library only."""

import re
from urllib.parse import unquote

_ENDS = re.compile(r"[/\\?#]")
_TIMES = 3
"""How often a URI is decoded: a server may do so more than once."""


def has_dot_segments(uri: str) -> bool:
    """Whether a URI has a segment `.` or `..`, written plainly or not: then a pattern of its beginning says nothing."""
    for _ in range(_TIMES):
        if not {".", ".."}.isdisjoint(_ENDS.split(uri)):
            return True
        decoded = unquote(uri)
        if decoded == uri:
            return False
        uri = decoded
    return not {".", ".."}.isdisjoint(_ENDS.split(uri))
