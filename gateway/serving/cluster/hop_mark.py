"""The mark of a request that one replica passes on to another: where it came from, signed by the cluster's secret.

A request is passed on a few times at most: a replica that is about to stop passes on what was meant for it. The bearer
token is checked by every replica; of the peer, which is the one that passed it on, the mark says who it was before.
"""

import base64
import hmac
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from starlette.datastructures import Headers
from starlette.types import Scope

from gateway.serving.http.repeated import RepeatedLines
from gateway.serving.mcp.cluster_port import HOP_SCOPE
from gateway.serving.mcp.request_caller import CHOOSES_SCOPE

HEADER = "x-mcp-gateway-hop"

logger = logging.getLogger(__name__)

MOST_HOPS = 3
_SECONDS = 60.0
"""Time that a request may take to the other replica; the clocks of both may differ by twice as much."""
_LONGEST = 4_096


_ASKED = "gateway.asked_path"
"""The key in the scope for the path as the host sent it (`remember_path`)."""


def remember_path(scope: Scope) -> None:
    """Keep the path as the host sent it, before anything rewrites it."""
    scope[_ASKED] = scope["raw_path"].decode("latin-1")


def asked_path(scope: Scope) -> str:
    """Return the path as the host sent it."""
    return scope.get(_ASKED) or scope["raw_path"].decode("latin-1")


class Hop(NamedTuple):
    """What the replica that passed a request on says of it: the address of its peer, and the scheme.

    `chooses`: the host chooses the forms of results, which header and body no longer say (`next_revision`). `number` is
    how often it has been passed on.
    """

    peer: str | None
    scheme: str
    chooses: bool = False
    number: int = 1


class HopMarks:
    """Makes and checks the marks of one replica, `own`."""

    def __init__(self, own: str, key: Callable[[], bytes], now: Callable[[], float] = time.time) -> None:
        self._own = own
        self._key = key
        self._now = now
        self._lines = RepeatedLines(logger)

    def make(self, to: str, scope: Scope) -> str:
        """Return the header's value for passing a request on to another replica."""
        client, before = scope.get("client"), scope.get(HOP_SCOPE)
        said = {
            "to": to,
            "until": self._now() + _SECONDS,
            "peer": str(client[0]) if client else None,
            "scheme": scope.get("scheme", "http"),
            "chooses": CHOOSES_SCOPE in scope,
            "number": 1 if before is None else before.number + 1,
        }
        body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
        return f"{body}.{self._signature(body, scope)}"

    def read(self, scope: Scope) -> Hop | None:
        """Return the mark of a request; None if it has none that another replica made for this request and replica."""
        said = self._said(scope)
        if said is None or said["to"] != self._own:
            return None
        if abs(off := said["until"] - _SECONDS - self._now()) > 2 * _SECONDS:
            words = "what another replica passes on is not recognised: its clock and this one's differ by"
            self._lines.warn("clocks", f"{words} {abs(off):.0f} s")
            return None
        return Hop(said["peer"], said["scheme"], said.get("chooses") is True, said.get("number", 1))

    def is_astray(self, scope: Scope) -> bool:
        """Whether another replica has passed a request on to one that was at this address before."""
        said = self._said(scope)
        return said is not None and said["to"] != self._own

    def _said(self, scope: Scope) -> Mapping[str, Any] | None:
        """Return what the mark of a request says, if a replica has made it for this request."""
        given = Headers(scope=scope).getlist(HEADER)
        if len(given) != 1 or len(given[0]) > _LONGEST:
            return None
        body, _, signature = given[0].partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(body, scope).encode()):
            return None
        return cast("dict[str, Any]", json.loads(base64.urlsafe_b64decode(body)))

    def _signature(self, body: str, scope: Scope) -> str:
        session = Headers(scope=scope).get("mcp-session-id", "")
        signed = "\n".join((body, scope["method"], asked_path(scope), session))
        return hmac.digest(self._key(), signed.encode("utf-8", "surrogatepass"), "sha256").hex()
