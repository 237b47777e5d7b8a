"""What is in front of a gateway that hosts in the cloud reach: a reverse proxy that ends TLS. It keeps all answers."""

import base64
import hashlib
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import httpx2
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.servers.certificates import write_certificate

CLOUD = "203.0.113.7"
"""Where all requests come from."""

OF_THE_HOP = frozenset({"accept-encoding", "connection", "keep-alive", "transfer-encoding", "content-length", "host"})
METHODS = ["GET", "POST", "DELETE", "OPTIONS"]


@dataclass
class Edge:
    """The public side of a gateway; `backend` is its own address, which has to be set before the first request."""

    url: str
    certificate: Path
    backend: str = ""
    paths: set[str] = field(default_factory=set[str])
    """What was asked for."""
    answers: dict[str, bytearray] = field(default_factory=dict[str, bytearray])
    """All that was answered, by the Authorization of the requests ("" without one)."""

    @property
    def trust(self) -> ssl.SSLContext:
        """For clients of this edge."""
        return ssl.create_default_context(cafile=str(self.certificate))

    @property
    def key_hash(self) -> str:
        """For browsers, which know a certificate by the hash of its public key."""
        key = x509.load_pem_x509_certificate(self.certificate.read_bytes()).public_key()
        digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
        return base64.b64encode(digest).decode()

    async def pass_on(self, request: Request) -> Response:
        """Ask the gateway, and give its answer as it comes."""
        http: httpx2.AsyncClient = request.app.state.http
        headers = [(name, value) for name, value in request.headers.items() if name not in OF_THE_HOP]
        forwarded = {
            "Host": request.headers["host"],
            "Accept-Encoding": "identity",
            "X-Forwarded-For": CLOUD,
            "X-Forwarded-Proto": "https",
        }
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{self.backend}{request.url.path}{query}"
        headers += forwarded.items()
        asked = http.build_request(request.method, url, headers=headers, content=await request.body())
        self.paths.add(request.url.path)
        answer = await http.send(asked, stream=True)
        kept = self.answers.setdefault(request.headers.get("authorization", ""), bytearray())
        kept += repr(answer.headers.multi_items()).encode()

        async def body() -> AsyncGenerator[bytes]:
            try:
                async for part in answer.aiter_raw():
                    kept.extend(part)
                    yield part
            finally:
                await answer.aclose()

        passed = StreamingResponse(body(), answer.status_code)
        passed.raw_headers = [each for each in answer.headers.raw if each[0].lower().decode() not in OF_THE_HOP]
        return passed


@asynccontextmanager
async def _with_client(app: Starlette) -> AsyncGenerator[None]:
    """Lend the application a client for as long as it runs."""
    async with httpx2.AsyncClient(timeout=None, trust_env=False) as app.state.http:
        yield


@contextmanager
def cloud_edge(folder: Path) -> Generator[Edge]:
    """Serve at https://127.0.0.1:PORT, with a certificate in the folder."""
    certificate, key = write_certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        edge = Edge(f"https://127.0.0.1:{listener.getsockname()[1]}", certificate)
        app = Starlette(routes=[Route("/{path:path}", edge.pass_on, methods=METHODS)], lifespan=_with_client)
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_config=None,  # it would be that of the tests after this one, too
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield edge
        finally:
            server.should_exit = True
            thread.join()
