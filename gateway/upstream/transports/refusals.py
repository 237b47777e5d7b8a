"""What an HTTP response of 400 and above to a message means."""

import re
from collections.abc import Iterable

from mcp_types import METHOD_NOT_FOUND
from pydantic_core import from_json

from gateway.core.model.json_values import is_dict
from gateway.upstream.transports.causes import HttpStatus, SessionExpired

_UNKNOWN_SESSION = re.compile(
    r"\b(?:no valid|invalid|unknown|expired)\b.{0,20}\bsession"
    r"|\bsession\b.{0,20}\b(?:not found|expired|invalid|unknown)",
    re.IGNORECASE,
)
"""The message for an unknown session of servers based on the official TypeScript example, with 400 instead of 404."""


def refusal(status: int, body: bytes, challenges: Iterable[str], *, in_session: bool) -> Exception | None:
    """Return the failure that a response means; None if it is the JSON-RPC error in its body.

    `in_session` says whether the request named a session.
    """
    code, said = _error_in(body)
    is_unknown = status in (404, 410) or (status == 400 and _UNKNOWN_SESSION.search(said))
    if in_session and is_unknown and code != METHOD_NOT_FOUND:
        return SessionExpired()
    if code is None or status in (401, 403, 407):
        return HttpStatus(status, challenges)
    return None


def _error_in(body: bytes) -> tuple[int | None, str]:
    """Return the code and message of the JSON-RPC error in a body; None and an empty string if there is none."""
    try:
        value = from_json(body)
    except ValueError:
        return None, ""
    error = value.get("error") if is_dict(value) else None
    fields = error if is_dict(error) else {}
    code, message = fields.get("code"), fields.get("message")
    return (code, message[:200] if isinstance(message, str) else "") if isinstance(code, int) else (None, "")
