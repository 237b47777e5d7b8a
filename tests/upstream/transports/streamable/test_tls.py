"""TLS: the shared context, a certificate that is trusted, and one that is not."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.system import tls
from gateway.upstream.transports.streamable.client import HttpClient, Request
from tests.servers.certificates import write_certificate
from tests.upstream.transports.streamable.scripted import read_request, response

pytestmark = pytest.mark.anyio


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for the loopback, which signs itself, with its key."""
    path, key = write_certificate(tmp_path)
    path.write_bytes(key.read_bytes() + path.read_bytes())
    return path


@asynccontextmanager
async def served(certificate: Path) -> AsyncGenerator[tuple[str, list[Any]]]:
    """An HTTPS server, and its connections' agreed protocols."""
    connections: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        while await read_request(reader) is not None:
            writer.write(response(b"[" + b"1," * 500_000 + b"1]"))
            await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", connections


async def test_a_trusted_server_is_talked_to_over_one_connection(certificate: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tls, "_shared", [])
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with served(certificate) as (url, connections):
        client = HttpClient(UpstreamSettings(url=url))
        for _ in range(3):
            answer = await client.send(Request("POST", {}, b"{}", 20))
            assert len(await answer.read(2_000_000)) == 1_000_003
            answer.close()
        client.close()
        assert connections == ["http/1.1"]


async def test_a_server_that_nobody_vouches_for_is_not(certificate: Path) -> None:
    async with served(certificate) as (url, _):
        client = HttpClient(UpstreamSettings(url=url))
        with pytest.raises(httpx2.ConnectError) as caught:
            await client.send(Request("POST", {}, b"{}", 20))
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        client.close()
