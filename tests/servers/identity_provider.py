"""A small identity provider on the loopback: metadata, keys, introspection. It issues whatever tokens it is told to."""

import base64
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.serving.http import Listening, serve

PATH = "/realms/house"
AUDIENCE = "https://tools.example.com/mcp"


class IdentityProvider:
    """Issues tokens, and counts what it is asked. Its answers can be changed meanwhile."""

    def __init__(self) -> None:
        self.base = ""
        self.keys: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        """Added to its metadata."""
        self.opaque: dict[str, Mapping[str, Any]] = {}
        """Tokens that say nothing, and what it says of each."""
        self.is_down = False
        self.asked: list[str] = []
        self.credentials: list[str] = []
        self.add_key("first", "ES256")

    @property
    def issuer(self) -> str:
        return self.base + PATH

    def add_key(self, key_id: str, algorithm: str) -> None:
        makers = {
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
            "RS256": lambda: rsa.generate_private_key(65_537, 2_048),
        }
        self.keys[key_id] = (algorithm, makers[algorithm]())

    def key_set(self) -> dict[str, Any]:
        algorithms = get_default_algorithms()
        keys = [
            {**algorithms[algorithm].to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig"}
            for key_id, (algorithm, key) in self.keys.items()
        ]
        return {"keys": keys}

    def token(self, key_id: str = "first", *, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token of Alice's for the gateway; a claim that is None is left out."""
        algorithm, key = self.keys[key_id]
        return jwt.encode(self.claims(**claims), key, algorithm, {"kid": key_id, **(header or {})})

    def claims(self, **claims: Any) -> dict[str, Any]:
        now = int(time.time())
        every = {"iss": self.issuer, "sub": "alice", "aud": AUDIENCE, "iat": now, "exp": now + 300, **claims}
        return {name: value for name, value in every.items() if value is not None}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["IdentityProvider"]:
        routes = [
            Route(f"/.well-known/oauth-authorization-server{PATH}", self._missing),
            Route(f"{PATH}/.well-known/openid-configuration", self._metadata),
            Route(f"{PATH}/keys", self._keys),
            Route(f"{PATH}/introspect", self._introspect, methods=["POST"]),
        ]
        ready = anyio.Event()

        def bound(port: int) -> None:
            self.base = f"http://127.0.0.1:{port}"
            ready.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve(Starlette(routes=routes), Listening("127.0.0.1", 0, "port"), on_bound=bound))
            await ready.wait()
            yield self
            tasks.cancel_scope.cancel()

    async def _missing(self, request: Request) -> Response:
        self.asked.append("oauth")
        return Response(status_code=404)

    async def _metadata(self, request: Request) -> Response:
        self.asked.append("openid")
        return self._answer({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", **self.metadata})

    async def _keys(self, request: Request) -> Response:
        self.asked.append("keys")
        return self._answer(self.key_set())

    async def _introspect(self, request: Request) -> Response:
        self.asked.append("introspection")
        self.credentials.append(base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode())
        form = (await request.body()).decode()
        token = dict(pair.split("=", 1) for pair in form.split("&"))["token"]
        found = self.opaque.get(token)
        return self._answer({"active": False} if found is None else {"active": True, **found})

    def _answer(self, document: Mapping[str, Any]) -> Response:
        return Response(status_code=503) if self.is_down else JSONResponse(dict(document))


def unsigned(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token with this signature."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
