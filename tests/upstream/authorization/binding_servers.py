"""Servers that bind tokens to a key (DPoP, RFC 9449), and check every proof as the specification says."""

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer


class Unproven(Exception):
    """A request without a valid proof; the message is the error."""


@dataclass
class Proofs:
    """The proofs that one server has seen, and the nonce that it wants in the next one (None for none)."""

    nonce: str | None = None
    is_fickle: bool = False
    """Whether no nonce is ever good enough."""
    seen: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    count: int = 0

    def check(self, request: Request, token: str | None) -> str:
        """Return the thumbprint of the key of a request's proof (RFC 9449, section 4.3). Raises Unproven."""
        given = request.headers.getlist("dpop")
        if len(given) != 1:
            raise Unproven("invalid_dpop_proof")
        header = jwt.get_unverified_header(given[0])
        jwk = header["jwk"]
        assert (header["typ"], header["alg"], sorted(jwk)) == ("dpop+jwt", "ES256", ["crv", "kty", "x", "y"])
        claims = jwt.decode(given[0], jwt.PyJWK(jwk), algorithms=["ES256"])
        url = request.url.replace(query=None)
        assert (claims["htm"], claims["htu"]) == (request.method, str(url))
        assert abs(claims["iat"] - time.time()) < 60
        assert claims["jti"] not in [each["jti"] for each in self.seen]
        expected = None if token is None else _base64(hashlib.sha256(token.encode()).digest())
        assert claims.get("ath") == expected
        self.seen.append(claims)
        if self.is_fickle or (self.nonce is not None and claims.get("nonce") != self.nonce):
            raise Unproven("use_dpop_nonce")
        return _base64(hashlib.sha256(json.dumps(jwk, sort_keys=True, separators=(",", ":")).encode()).digest())

    def told(self, response: Response) -> Response:
        """Give the nonce for the next proof, another one each time."""
        if self.nonce is not None:
            self.count += 1
            self.nonce = f"{self.nonce.partition('-')[0]}-{self.count}"
            response.headers["dpop-nonce"] = self.nonce
        return response


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class BindingServer(AuthorizationServer):
    """Binds the tokens of requests with a proof; a refresh token works with the key of its login alone."""

    proofs: Proofs = field(default_factory=Proofs)
    keys_of: dict[str, str] = field(default_factory=dict[str, str])
    """The thumbprint of the key of each token."""

    def metadata(self) -> dict[str, Any]:
        says = {**super().metadata(), "dpop_signing_alg_values_supported": ["RS256", "ES256"], **self.says}
        return {key: value for key, value in says.items() if value is not None}

    async def _token(self, request: Request) -> Response:
        if "dpop" not in request.headers:
            return await super()._token(request)
        form = dict(parse_qsl((await request.body()).decode()))
        try:
            key = self.proofs.check(request, None)
        except Unproven as error:
            return self.proofs.told(JSONResponse({"error": str(error)}, 400))
        refresh = form.get("refresh_token")
        if refresh is not None and self.keys_of.get(refresh) != key:
            return JSONResponse({"error": "invalid_grant"}, 400)
        response = await super()._token(request)
        answer = json.loads(bytes(response.body))
        if response.status_code == 200:
            bound = {"token_type": "DPoP", **self.issues}
            answer = {key: value for key, value in {**answer, **bound}.items() if value is not None}
            self.keys_of |= {answer[each]: key for each in ("access_token", "refresh_token") if each in answer}
        return self.proofs.told(JSONResponse(answer, response.status_code))


@dataclass
class BoundServer(ProtectedServer):
    """Takes tokens that are bound to a key; others only if `takes_bearer`. Its challenges are of these `schemes`."""

    proofs: Proofs = field(default_factory=Proofs)
    schemes: tuple[str, ...] = ("DPoP",)
    takes_bearer: bool = False
    finds_fault: bool = False
    """Whether it accepts no proof."""

    def _refusal(self, request: Request, method: str) -> Response | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "DPoP":
            refused = super()._refusal(request, method)
            if refused is None and not self.takes_bearer:
                return self._refused(401, "")
            return refused
        self.authorizations.append(f"{scheme} {token}")
        assert isinstance(self.server, BindingServer)
        try:
            key = self.proofs.check(request, token)
            if self.finds_fault:
                raise Unproven("invalid_dpop_proof")
        except Unproven as error:
            return self._refused(401, f'error="{error}"')
        if token not in self.server.tokens or self.server.keys_of.get(token) != key:
            return self._refused(401, 'error="invalid_token"')
        return None

    def _refused(self, status: int, challenge: str) -> Response:
        hint = f'resource_metadata="{self.origin}{self.at}"'
        response = JSONResponse({"error": "no"}, status)
        for scheme in self.schemes:
            words = ", ".join(filter(None, (hint, challenge if scheme == "DPoP" else "")))
            response.headers.append("www-authenticate", f"{scheme} {words}")
        return self.proofs.told(response)
