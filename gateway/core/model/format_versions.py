"""Versions of what the gateway keeps: each kind of file has a number, which grows when older gateways cannot read it.

An older file is read, and migrated where that is needed. A newer one is refused in these words and left as it is:
taking it for damaged or missing would lose what it holds.
"""


def newer_than(known: int, found: object) -> str | None:
    """Return the words about a file of version `found` if it is newer than what this gateway knows, otherwise None."""
    if not isinstance(found, int) or isinstance(found, bool) or found <= known:
        return None
    return f"it was written by a newer version of the gateway (format {found}; this one knows up to {known})"


UPDATE_GATEWAY = "update the gateway, or move the file away"
"""The remedy."""
