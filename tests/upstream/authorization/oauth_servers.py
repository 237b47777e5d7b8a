"""An authorization server and an upstream that wants its tokens: real servers on loopback, with faults on demand."""

import base64
import hashlib
import json
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote

import anyio
import httpx2
import jwt
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"


@dataclass
class AuthorizationServer:
    """Grants everything that is asked correctly; `says` replaces members of its metadata (None removes one)."""

    at: str = METADATA
    """The path of its metadata."""
    prefix: str = ""
    """The path of its issuer."""
    says: dict[str, Any] = field(default_factory=dict[str, Any])
    returns: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Parameters with which the browser comes back, in place of the right ones."""
    issues: dict[str, Any] = field(default_factory=dict[str, Any])
    """Members of the answer of the token endpoint, in place of the right ones."""
    token_status: int = 200
    repeats: bool = False
    """Whether an error of the token endpoint repeats the request."""
    accepted: dict[str, str] = field(default_factory=dict[str, str])
    """Secrets by client id; an empty one for a public client."""
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """Public keys by client id."""
    tokens: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The scopes of valid access tokens."""
    refreshes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ends_reused: bool = False
    """Whether a refresh token that was used before ends all logins (RFC 9700, section 4.14.2)."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])
    """Paths and parameters of requests."""
    token_gate: anyio.Event | None = None
    """The token endpoint waits for it, and sets `at_gate` before."""
    at_gate: anyio.Event = field(default_factory=anyio.Event)
    origin: str = ""

    @property
    def issuer(self) -> str:
        return f"{self.origin}{self.prefix}"

    def of(self, path: str) -> list[dict[str, str]]:
        """The parameters of the requests to one path."""
        return [parameters for at, parameters in self.seen if at == path]

    def metadata(self) -> dict[str, Any]:
        says = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }
        return {key: value for key, value in {**says, **self.says}.items() if value is not None}

    def routes(self) -> list[Route]:
        return [
            Route(self.at, self._metadata),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/register", self._register, methods=["POST"]),
            Route("/revoke", self._revoke, methods=["POST"]),
        ]

    async def _metadata(self, request: Request) -> Response:
        self.seen.append((request.url.path, {}))
        return JSONResponse(self.metadata())

    async def _register(self, request: Request) -> Response:
        asked = await request.json()
        self.seen.append(("/register", {key: str(value) for key, value in asked.items()}))
        client_id = f"client-{len(self.accepted) + 1}"
        secret = "" if asked["token_endpoint_auth_method"] == "none" else secrets.token_hex(8)
        self.accepted[client_id] = secret
        return JSONResponse({**asked, "client_id": client_id, **({"client_secret": secret} if secret else {})}, 201)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.seen.append(("/authorize", asked))
        code = secrets.token_hex(8)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer, **self.returns}
        answer = {key: value for key, value in answer.items() if value is not None}
        return RedirectResponse(str(httpx2.URL(asked["redirect_uri"]).copy_merge_params(answer)))

    async def _revoke(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.seen.append(("/revoke", form))
        self.refreshes.pop(form["token"], None)
        return Response()

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.seen.append(("/token", form))
        if self.token_gate is not None:
            self.at_gate.set()
            await self.token_gate.wait()
        if self.token_status != 200:
            repeated = f"{form} {request.headers.get('authorization')}" if self.repeats else None
            said = {"error": "temporarily_unavailable", "error_description": repeated}
            return JSONResponse({key: value for key, value in said.items() if value}, self.token_status)
        if not self._authenticated(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        scopes = self._granted(form)
        if scopes is None:
            return JSONResponse({"error": "invalid_grant", "error_description": "no\x1b[31m good"}, 400)
        access = f"access-{secrets.token_hex(6)}"
        self.tokens[access] = scopes
        answer = {"access_token": access, "token_type": "bearer", "expires_in": 3600, "scope": " ".join(scopes)}
        if form["grant_type"] in ("authorization_code", "refresh_token"):
            refresh = f"refresh-{secrets.token_hex(6)}"
            self.refreshes[refresh] = scopes
            answer["refresh_token"] = refresh
        answer = {key: value for key, value in {**answer, **self.issues}.items() if value is not None}
        return JSONResponse(answer)

    def _authenticated(self, request: Request, form: dict[str, str]) -> bool:
        if "client_assertion" in form:
            claims = jwt.decode(
                form["client_assertion"], self.keys[form["client_id"]], algorithms=["ES256"], audience=self.issuer
            )
            return claims["iss"] == claims["sub"] == form["client_id"]
        basic = request.headers.get("authorization", "").removeprefix("Basic ")
        if basic:
            client_id, _, secret = base64.b64decode(basic).decode().partition(":")
            return self.accepted.get(unquote(client_id)) == unquote(secret)
        client_id = form.get("client_id", "")
        if client_id.startswith("https://") or (not client_id and "assertion" in form):
            return True
        return self.accepted.get(client_id) == form.get("client_secret", "")

    def _granted(self, form: dict[str, str]) -> tuple[str, ...] | None:
        match form["grant_type"]:
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)  # each works once
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if asked is None or asked["code_challenge"] != proof or asked["redirect_uri"] != form["redirect_uri"]:
                    return None
                return tuple(asked.get("scope", "").split())
            case "refresh_token":
                scopes = self.refreshes.pop(form["refresh_token"], None)
                if scopes is None and self.ends_reused:
                    self.refreshes.clear()
                return scopes
            case _:
                return tuple(form.get("scope", "").split())


@dataclass
class ProtectedServer:
    """A minimal MCP server that wants tokens. `needs` are scopes by method; with `refuses`, it refuses everything."""

    server: AuthorizationServer
    at: str | None = f"{RESOURCE}/mcp"
    """The path of its own metadata; None if it has none."""
    hints: bool = True
    """Whether its challenge names that."""
    says: dict[str, Any] = field(default_factory=dict[str, Any])
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    refuses: tuple[int, str] | None = None
    metadata_status: int = 200
    authorizations: list[str | None] = field(default_factory=list[str | None])
    """The Authorization header of every request."""
    origin: str = ""
    _answers: Any = None

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def routes(self) -> list[Route]:
        described = [] if self.at is None else [Route(self.at, self._metadata)]
        return [
            *described,
            Route("/mcp", self._mcp, methods=["POST", "GET", "DELETE"]),
            Route("/sse", self._events),
            Route("/messages", self._message, methods=["POST"]),
        ]

    async def _metadata(self, request: Request) -> Response:
        says = {"resource": self.url, "authorization_servers": [self.server.issuer], **self.says}
        return JSONResponse({key: value for key, value in says.items() if value is not None}, self.metadata_status)

    async def _mcp(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        asked = json.loads(await request.body())
        refused = self._refusal(request, asked.get("method", ""))
        if refused is not None:
            return refused
        if "id" not in asked:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": _answered(asked["method"])})

    async def _events(self, request: Request) -> Response:
        """The stream of the older transport."""
        refused = self._refusal(request, "")
        if refused is not None:
            return refused
        self._answers, answers = anyio.create_memory_object_stream[str](10)

        async def events() -> AsyncIterator[str]:
            with answers, self._answers:
                yield "event: endpoint\ndata: /messages\n\n"
                async for answer in answers:
                    yield f"data: {answer}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _message(self, request: Request) -> Response:
        asked = json.loads(await request.body())
        refused = self._refusal(request, asked.get("method", ""))
        if refused is not None:
            return refused
        if "id" in asked:
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": _answered(asked["method"])}
            await self._answers.send(json.dumps(answer))
        return Response(status_code=202)

    def _refusal(self, request: Request, method: str) -> Response | None:
        authorization = request.headers.get("authorization")
        self.authorizations.append(authorization)
        if self.refuses is not None:
            status, challenge = self.refuses
            return self._refused(status, challenge)
        scopes = self.server.tokens.get((authorization or "").removeprefix("Bearer "))
        needed = self.needs.get(method, ())
        if scopes is None:
            return self._refused(401, f'scope="{" ".join(needed)}"' if needed else "")
        if not set(needed) <= set(scopes):
            return self._refused(403, f'error="insufficient_scope", scope="{" ".join(needed)}"')
        return None

    def _refused(self, status: int, challenge: str) -> Response:
        hint = f'resource_metadata="{self.origin}{self.at}"' if self.hints and self.at else ""
        header = f"Bearer {', '.join(filter(None, (hint, challenge)))}".strip()
        return JSONResponse({"error": "no"}, status, headers={"www-authenticate": header})


def _answered(method: str) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "protected", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
        case _:
            return {"content": [{"type": "text", "text": "seen"}]}


class _Server(uvicorn.Server):
    """Leaves signals alone: several servers would not restore each other's handlers in order."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def served(*parts: AuthorizationServer | ProtectedServer) -> AsyncGenerator[None]:
    """Serve each part at an origin of its own; an upstream without its authorization server serves that as well."""
    servers: list[uvicorn.Server] = []
    with ExitStack() as listeners:
        async with anyio.create_task_group() as tasks:
            for part in parts:
                listener = listeners.enter_context(socket.create_server(("127.0.0.1", 0)))
                part.origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
                routes = part.routes()
                if isinstance(part, ProtectedServer) and part.server not in parts:
                    part.server.origin = part.origin
                    routes += part.server.routes()
                config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False, lifespan="off")
                servers.append(_Server(config))
                tasks.start_soon(partial(servers[-1].serve, sockets=[listener]))
            try:
                yield
            finally:
                for server in servers:
                    server.should_exit = True
