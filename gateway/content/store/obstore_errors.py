"""Translate obstore 0.12's exceptions into ours, by one table.

Their own messages are never repeated: they contain addresses with signatures, and pages of debug output.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from gateway.errors import StoreUnavailable


class _Row(NamedTuple):
    pattern: str
    """A regular expression that the exception's name and text match."""
    words: str
    remedy: str


_CREDENTIALS = "check the credentials in the environment, and their permissions; see docs/stores.md"
_REACH = "check the address in store.url, and that the service is running"

_MISSING = r"NoSuchBucket|ContainerNotFound|bucket does not exist"

_ROWS = tuple(
    (re.compile(row.pattern, re.IGNORECASE | re.DOTALL), row)
    for row in (
        _Row(
            r"No space left|os error 28\b|os error 112\b",
            "has no room left",
            "free some space, or lower store.max_bytes",
        ),
        _Row(r"quota exceeded|os error 122\b|QuotaExceeded", "is over its quota", "raise it, or lower store.max_bytes"),
        _Row(
            r"Read-only file system|os error 30\b",
            "cannot be written to",
            "mount it writable, or choose another folder",
        ),
        _Row(r"PermissionError|os error (13|1)\b", "may not be written to or read", "give the gateway's user access"),
        _Row(r"FileExistsError|NotADirectory|os error (17|20)\b", "is not a folder", "name a folder in store.url"),
        _Row(rf"{_MISSING}|FileNotFoundError", "does not exist", "create it, or correct store.url"),
        _Row(r"incorrectly configured region", "is in another region", "give its region in store.url: ?region=..."),
        _Row(r"PermissionDenied|Unauthenticated|status:? (code: )?40[13]\b", "refuses the gateway", _CREDENTIALS),
        _Row(r"credential|/latest/api/token|computeMetadata|169\.254\.", "got no credentials", _CREDENTIALS),
        _Row(
            r"^TimeoutError|\btimed out\b|\bTimedOut\b", "did not answer in time", f"{_REACH}; or raise store.timeout"
        ),
        _Row(r"UnknownConfigurationKey", "does not know an option in its url", "see docs/stores.md for the options"),
        _Row(r"NotSupported|NotImplemented", "cannot do what is needed", "see docs/stores.md"),
        _Row(r"status:? (code: )?5\d\d\b|SlowDown|Internal ?Error", "has an internal error", "try again later"),
        _Row(r"error sending request|connect|dns|resolve|os error 111\b", "cannot be reached", _REACH),
    )
)
_NO_BUCKET = re.compile(_MISSING, re.IGNORECASE)
_ELSE = _Row("", "failed", "run mcp-gateway doctor, and check that the service is working")


@contextmanager
def failing(where: str, *, absence_is_answer: bool = False) -> Generator[None]:
    """Raise StoreUnavailable for whatever obstore or the file system raises. `where` is the store's masked URL.

    With `absence_is_answer` FileNotFoundError passes through unless the bucket itself is missing.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        if absence_is_answer and not _NO_BUCKET.search(str(error)):
            raise
        raise _unavailable(where, error) from None
    # obstore raises ValueError for settings that it cannot read.
    except (BaseError, OSError, TimeoutError, ValueError) as error:
        raise _unavailable(where, error) from None


def _unavailable(where: str, error: Exception) -> StoreUnavailable:
    text = f"{type(error).__name__}: {error}"
    row = next((row for pattern, row in _ROWS if pattern.search(text)), _ELSE)
    return StoreUnavailable(f"the store {where} {row.words}", remedy=row.remedy)
