"""TLS on a port: by certificate files, which may be replaced while it is served, on both protocols and both loops."""

import asyncio
import logging
import ssl
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import httpx2
import pytest

from gateway.config.http_settings import HttpSettings
from gateway.errors import ConfigError
from gateway.serving.http import Limits, Listening, TlsFiles, serve
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from tests.servers.certificates import write_certificate
from tests.servers.downstream_service import SampleService
from tests.serving.http.conftest import Application

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(run):
    bound = asyncio.Queue[int]()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run, on_bound=bound.put_nowait))
            yield f"https://127.0.0.1:{await bound.get()}"
            tasks.cancel_scope.cancel()


def client(certificate):
    return httpx2.AsyncClient(verify=ssl.create_default_context(cafile=certificate), trust_env=False)


async def test_requests_are_answered_over_tls_and_over_nothing_else(tmp_path, protocol):
    certificate, key = write_certificate(tmp_path)
    listening = Listening("127.0.0.1", 0, "http.port", tls=TlsFiles(certificate, key, "http.tls_certificate"))
    async with served(partial(serve, Application(), listening)) as url, client(certificate) as http:
        for _ in range(3):
            assert (await http.get(url)).status_code == 200
        with pytest.raises(httpx2.HTTPError):
            await http.get(url.replace("https", "http"))
        other = tmp_path / "other"
        other.mkdir()
        async with client(write_certificate(other)[0]) as stranger:
            with pytest.raises(httpx2.ConnectError):
                await stranger.get(url)


async def test_a_replaced_certificate_counts_for_new_connections(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    files = TlsFiles(*write_certificate(tmp_path), "http.tls_certificate")
    before = tmp_path / "before.pem"
    before.write_bytes((tmp_path / "certificate.pem").read_bytes())
    async with served(partial(serve, Application(), Listening("127.0.0.1", 0, "http.port", tls=files))) as url:
        async with client(before) as http:
            await http.get(url)
            new, key = write_certificate(tmp_path)
            files.refresh()
            assert (await http.get(url)).status_code == 200  # over the open connection
        async with client(new) as http:
            assert (await http.get(url)).status_code == 200
        assert "was read again" in caplog.text
        good = new.read_bytes()
        key.write_bytes(b"half written")
        files.refresh()
        files.refresh()
        assert caplog.text.count("the one before stays") == 1
        assert new.read_bytes() == good
        async with client(new) as http:
            assert (await http.get(url)).status_code == 200


async def test_hosts_are_served_over_tls(tmp_path, anyio_backend):
    certificate, key = write_certificate(tmp_path)
    settings = HttpSettings(port=0, tls_certificate=certificate, tls_key=key, token="sesame")
    app = http_app(SampleService(), settings, Identity("sample", "1.0"))
    async with served(partial(serve_http, app, settings)) as url, client(certificate) as http:
        assert (await http.get(f"{url}/mcp")).status_code == 401
        assert (await http.get(url, headers={"Authorization": "Bearer sesame"})).status_code == 200


@asynccontextmanager
async def half_open(url, count, sent=b""):
    """Connections whose handshake is begun by the first bytes of a real one, or by none, and never goes on."""
    streams = []
    try:
        for _ in range(count):
            streams.append(await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])))
            with suppress(anyio.BrokenResourceError):
                await streams[-1].send(sent)
        yield streams
    finally:
        for stream in streams:
            await stream.aclose()


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("part", ["nothing", "half", "whole"])
async def test_a_flood_of_handshakes_does_not_get_past_the_bound(tmp_path, protocol, part):
    certificate, key = write_certificate(tmp_path)
    hello = client_hello()
    sent = {"nothing": b"", "half": hello[:40], "whole": hello}[part]
    listening = Listening(
        "127.0.0.1", 0, "http.port", Limits(connections=8), TlsFiles(certificate, key, "http.tls_certificate")
    )
    async with (
        served(partial(serve, Application(), listening)) as url,
        client(certificate) as early,
        half_open(url, 30, sent) as streams,
        client(certificate) as late,
    ):
        with anyio.fail_after(20):
            assert (await early.get(url)).status_code == 200  # strangers make way, oldest first
            assert (await late.get(url)).status_code == 200
            for stream in streams[:20]:
                with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                    while True:  # what a server says first, and then the end
                        await stream.receive()


@pytest.mark.parametrize("part", ["nothing", "half"])
async def test_a_handshake_has_a_time_limit(tmp_path, caplog, part):
    certificate, key = write_certificate(tmp_path)
    sent = b"" if part == "nothing" else client_hello()[:40]
    tls = TlsFiles(certificate, key, "http.tls_certificate")
    listening = Listening("127.0.0.1", 0, "http.port", Limits(handshake=0.5), tls)
    async with (
        served(partial(serve, Application(), listening)) as url,
        half_open(url, 3, sent) as streams,
        client(certificate) as http,
    ):
        assert (await http.get(url)).status_code == 200
        with anyio.fail_after(10):
            for stream in streams:
                with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
                    await stream.receive()
        assert (await http.get(url)).status_code == 200  # the one that is complete is not concerned
    assert caplog.text.count("its TLS handshake came too slowly") == 1


async def test_garbage_in_place_of_a_handshake_ends_it(tmp_path, caplog):
    certificate, key = write_certificate(tmp_path)
    listening = Listening("127.0.0.1", 0, "http.port", tls=TlsFiles(certificate, key, "http.tls_certificate"))
    async with (
        served(partial(serve, Application(), listening)) as url,
        half_open(url, 2, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as streams,
        client(certificate) as http,
    ):
        with anyio.fail_after(10):
            for stream in streams:
                with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                    while True:
                        assert b"HTTP" not in await stream.receive()
        assert (await http.get(url)).status_code == 200
    assert "Traceback" not in caplog.text


async def test_the_gateway_stops_while_handshakes_are_half_done(tmp_path):
    certificate, key = write_certificate(tmp_path)
    listening = Listening("127.0.0.1", 0, "http.port", tls=TlsFiles(certificate, key, "http.tls_certificate"))
    streams = []
    with anyio.fail_after(5):
        async with served(partial(serve, Application(), listening)) as url:
            port = int(url.rpartition(":")[2])
            streams.extend([await anyio.connect_tcp("127.0.0.1", port) for _ in range(3)])
    for stream in streams:
        await stream.aclose()


def test_files_that_cannot_be_used_are_named(tmp_path):
    certificate, key = write_certificate(tmp_path)
    where = "http.tls_certificate"
    TlsFiles(certificate, key, where)
    for wrong in ((key, certificate), (certificate, tmp_path / "absent.pem"), (certificate, certificate)):
        with pytest.raises(ConfigError, match=r"^http\.tls_certificate: .* cannot be used for TLS"):
            TlsFiles(*wrong, where)
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    with pytest.raises(ConfigError, match="the key without a passphrase"):
        TlsFiles(*write_certificate(sealed, passphrase=b"sesame"), where)
