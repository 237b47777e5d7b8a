"""The length of a request's body, as its headers declare it."""

from starlette.datastructures import Headers


def declared_length(headers: Headers) -> int | None:
    """Return the number of bytes of the body; None if it is not known before they come."""
    length = headers.get("content-length")
    if length is None and "transfer-encoding" not in headers:
        return 0
    return int(length) if length is not None and length.isascii() and length.isdecimal() else None
