"""The hash of a token, as the configuration has it in place of the token."""

from hashlib import sha256

_ALGORITHM = "sha256:"


def hash_of(token: str) -> str:
    """Return a token's hash in the form of the configuration; whitespace around the token does not count."""
    return hash_of_bytes(token.strip().encode("utf-8", "replace"))


def hash_of_bytes(token: bytes) -> str:
    """Return the hash of a token as it was sent.

    A plain hash is enough, because tokens are random, or long: there is no dictionary to try.
    """
    return _ALGORITHM + sha256(token).hexdigest()
