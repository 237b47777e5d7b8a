"""`requestState` that the gateway hands out: readable by nobody but itself, and good for one caller and one request."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core.model.caller import Caller
from gateway.errors import InvalidRequest

MARK = "gw1."
"""What a state of ours begins with."""

_LONGEST = 16 * 1024 * 1024  # as much as a request may have by default: an upstream may give away a lot to carry


class Seal:
    """Signs states with a key of this process, so that a host can neither change one nor use another's.

    A state is bound to the principal, the host's name and chosen profile, and the request that it is for (method, and
    name or uri and arguments); it expires. It is signed, not encrypted: the content is the host's own call, or what an
    upstream gave away for the host to carry.
    """

    def __init__(self, *, key: bytes | None = None, now: Callable[[], float] = time.time) -> None:
        self._key = key or secrets.token_bytes(32)
        self._now = now

    def close(
        self, content: Mapping[str, Any], caller: Caller, method: str, params: Mapping[str, Any], seconds: float
    ) -> str:
        """A state with this content, for a retry of the request by the caller within so many seconds."""
        body = json.dumps({"until": self._now() + seconds, "content": content}, separators=(",", ":")).encode()
        return MARK + base64.urlsafe_b64encode(self._sign(body, caller, method, params) + body).decode()

    def open(self, state: str, caller: Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a state.

        Raises:
            InvalidRequest: it was tampered with, belongs to another caller or request, or has expired.
        """
        try:
            if len(state) > _LONGEST:
                raise ValueError
            raw = base64.b64decode(state.removeprefix(MARK), altchars=b"-_", validate=True)
            signature, body = raw[:32], raw[32:]
            if not hmac.compare_digest(signature, self._sign(body, caller, method, params)):
                raise ValueError
            value = cast("dict[str, Any]", json.loads(body))
        except (ValueError, RecursionError):
            raise InvalidRequest(
                "requestState is not one that was given to this caller for this request",
                remedy="repeat the request without requestState",
            ) from None
        if value["until"] < self._now():
            raise InvalidRequest("requestState has expired", remedy="repeat the request without requestState")
        return cast("dict[str, Any]", value["content"])

    def _sign(self, body: bytes, caller: Caller, method: str, params: Mapping[str, Any]) -> bytes:
        request = {key: params.get(key) for key in ("name", "uri", "arguments")}
        bound = json.dumps(
            [caller.principal, caller.client_name, caller.profile, method, request], sort_keys=True, default=str
        )
        return hmac.digest(self._key, hashlib.sha256(bound.encode("utf-8", "surrogatepass")).digest() + body, "sha256")
