"""The gateway's own `requestState`: signed, and valid for one caller and one request."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.errors import InvalidRequest

MARK = "gw1."
"""The prefix of a state of ours."""

PARKED = "parked"
"""The member of a state's content that names a suspended call."""
_LONGEST_PARKED = 1_000
_LONGEST = 16 * 1024 * 1024  # the default limit on a request, since an upstream's own state may be large


class Seal:
    """Signs states with a key of this process or of all replicas: no host can change one, or use that of another host.

    A state is bound to the principal, the host's name and chosen profile, and the request (method, name or URI, and
    arguments), and it expires. It is signed, not encrypted: the content is the id of the host's own call, or the state
    that an upstream gave to the host.
    """

    def __init__(self, *, key: bytes | None = None, now: Callable[[], float] = time.time) -> None:
        own = key or secrets.token_bytes(32)
        self.key: Callable[[], bytes] = lambda: own
        """Returns the key; replaced where several gateways have one together."""
        self._now = now

    def close(
        self, content: Mapping[str, Any], caller: Caller, method: str, params: Mapping[str, Any], seconds: float
    ) -> str:
        """Return a state with this content, for a retry of the request by the caller within `seconds`."""
        body = json.dumps({"until": self._now() + seconds, "content": content}, separators=(",", ":")).encode()
        return MARK + base64.urlsafe_b64encode(self._sign(body, caller, method, params) + body).decode()

    def open(self, state: str, caller: Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Verify a state and return its content.

        Raises:
            InvalidRequest: the state was changed, belongs to another caller or request, or has expired.
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
                "requestState was not issued to this caller for this request",
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
        return hmac.digest(self.key(), hashlib.sha256(bound.encode("utf-8", "surrogatepass")).digest() + body, "sha256")


def parked_at(replica: str | None, call: str) -> str:
    """Return the name of a suspended call; that of a replica says where it is suspended."""
    return call if replica is None else f"{replica}.{call}"


def parked_call(name: str) -> str:
    """Return the call that such a name is for."""
    return name.rpartition(".")[2]


def replica_of_state(state: object) -> str | None:
    """Return the replica at which the call of a state is suspended, if it says so. The signature is not verified."""
    if not isinstance(state, str) or not state.startswith(MARK) or len(state) > _LONGEST_PARKED:
        return None
    try:
        raw = base64.b64decode(state.removeprefix(MARK), altchars=b"-_", validate=True)
        name = as_object(as_object(json.loads(raw[32:])).get("content")).get(PARKED)
    except (ValueError, RecursionError):
        return None
    return name.rpartition(".")[0] or None if isinstance(name, str) else None
