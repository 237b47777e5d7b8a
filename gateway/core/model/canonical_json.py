"""JSON values in one form, to compare them by their SHA-256."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return a JSON value in one form: keys sorted, no spaces, everything beyond ASCII escaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode("ascii")


def digest_of_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value in its canonical form, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
