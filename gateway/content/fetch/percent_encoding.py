"""Decode percent-encoded text, as in `data:` URIs that are not base64."""

from urllib.parse import unquote_to_bytes

_PIECE = 64 * 1024


def percent_decoded(text: str) -> bytes:
    """Decode percent-encoded text.

    This is done in pieces: the standard library creates an object for each `%xx`, a hundred times the decoded size.
    """
    decoded, at = bytearray(), 0
    while at < len(text):
        end = at + _PIECE
        if end < len(text) and (cut := text.rfind("%", max(at + 1, end - 2), end)) > at:
            end = cut  # no `%xx` is cut in two
        decoded += unquote_to_bytes(text[at:end])
        at = end
    return bytes(decoded)
