"""Browsers: each has a cookie, to which its forms and approvals are bound, so that no other page can send them."""

import hashlib
import hmac
import re
import secrets

from starlette.requests import Request
from starlette.responses import Response

_SECONDS = 3_600
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")


class Browsers:
    """Gives cookies to browsers, and makes and checks the hidden field of their forms."""

    def __init__(self, *, is_secure: bool) -> None:
        # With this prefix, a browser takes the cookie from this host alone, over TLS.
        self._name = "__Host-mcp-gateway" if is_secure else "mcp-gateway-browser"
        self._is_secure = is_secure

    def cookie(self, request: Request) -> str | None:
        """Return the browser's cookie, if it has one."""
        found = request.cookies.get(self._name, "")
        return found if _COOKIE.fullmatch(found) else None

    def new_cookie(self) -> str:
        """Return a cookie for a browser that has none."""
        return secrets.token_urlsafe(32)

    def keep(self, response: Response, cookie: str) -> Response:
        """Let the browser keep the cookie, for another hour."""
        response.set_cookie(self._name, cookie, _SECONDS, secure=self._is_secure, httponly=True, samesite="lax")
        return response

    def form_key(self, cookie: str) -> str:
        """Return the hidden field of the forms of this browser.

        Only whoever has the cookie can compute it, so no key is needed, and each gateway that shares the state gets the
        same. The cookie cannot be told from it.
        """
        return hashlib.sha256(f"form {cookie}".encode("ascii")).hexdigest()

    def is_own_form(self, request: Request, key: str | None) -> bool:
        """Whether a form was made for the browser that sends it."""
        cookie = self.cookie(request)
        if cookie is None:
            return False
        return hmac.compare_digest(self.form_key(cookie).encode("ascii"), (key or "").encode("utf-8", "replace"))
