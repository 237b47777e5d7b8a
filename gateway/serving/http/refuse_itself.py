"""Refusing what this gateway sends to itself: an upstream with its own address would be offered all that it offers."""

import logging
import os

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.system.gateway_chain import chain_in, comes_from

logger = logging.getLogger(__name__)

LOOP_DETECTED = 508
"""https://www.rfc-editor.org/rfc/rfc5842.html#section-7.2"""


class RefuseItself:
    """Middleware that answers requests which have come through this gateway already with 508."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        chain = chain_in(os.environ)
        self._own = chain[-1].gateway if chain else None
        self._is_told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if self._own is None or scope["type"] != "http":
            return await self._app(scope, receive, send)
        if not comes_from(", ".join(Headers(scope=scope).getlist("via")), self._own):  # each proxy may add one
            return await self._app(scope, receive, send)
        if not self._is_told:
            self._is_told = True
            logger.warning("an upstream of this gateway leads back to it, and is refused")
        refused = JSONResponse({"error": "this gateway is its own upstream"}, LOOP_DETECTED)
        return await refused(scope, receive, send)
