"""Fetching from URLs: what may be fetched, from which addresses, and what a hostile server can do about it."""

import gzip
import ssl
import zlib
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.config.content_settings import FetchSettings
from gateway.content.fetch import fetch
from gateway.errors import FetchFailed, FetchRefused
from gateway.system.addresses import is_public

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\2\0\0\0\3\10\2\0\0\0" + b"\0" * 20
LOOPBACK = [["127.0.0.1"]]
CERTIFICATE = Path(__file__).with_name("pictures_test.pem")


def allowing(*ports: int, **settings) -> FetchSettings:
    """Every site of the tests is allowed, and may be on this machine."""
    hosts = [f"pictures.test:{port}" for port in ports]
    allow = tuple(f"http://{host}" for host in hosts)
    return FetchSettings(**{"allow": allow, "allow_private": tuple(hosts), "idle": 5, "timeout": 10, **settings})


async def whole(url, settings, **options) -> tuple[bytes, str, str | None]:
    with anyio.fail_after(20):
        async with fetch(url, settings, **options) as fetched:
            return b"".join([chunk async for chunk in fetched]), fetched.media_type, fetched.name


async def test_content_comes_with_its_type_and_its_name(site, reply, names):
    headers = ("Content-Type: application/octet-stream", 'Content-Disposition: attachment; filename="../a b.png"')
    async with site(reply(PNG, *headers)) as running:
        url = f"http://pictures.test:{running.port}/x/y.bin?key=1"
        got = await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))
        assert got == (PNG, "image/png", "a b.png")
        (request,) = running.requests
    assert f"host: pictures.test:{running.port}".encode() in request.lower()
    assert b"accept-encoding: identity" in request.lower()
    for unwanted in (b"cookie", b"authorization", b"referer", b"proxy"):
        assert unwanted not in request.lower()


async def test_the_declared_type_and_the_urls_name_are_taken_where_nothing_says_more(site, reply, names):
    async with site(reply(b"a,b\n1,2\n", "Content-Type: text/csv; charset=utf-8")) as running:
        url = f"http://pictures.test:{running.port}/t%C3%A4glich/Zahlen%202026.csv"
        got = await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))
    assert got == (b"a,b\n1,2\n", "text/csv", "Zahlen 2026.csv")


async def test_nothing_is_fetched_unless_it_is_allowed():
    with pytest.raises(FetchRefused, match="this gateway does not fetch URLs"):
        await whole("https://images.example.com/a.png", FetchSettings())


@pytest.mark.parametrize(
    "url",
    [
        "https://images.example.com/public/a.png",
        "https://IMAGES.example.com:443/public/a/b.png?size=2",
        "https://cdn.example.org/anything",
        "http://bücher.example:81/",
        "http://xn--bcher-kva.example:81/x",
    ],
)
async def test_what_the_patterns_name_may_be_fetched(url, names):
    allow = ("https://images.example.com/public/*", "https://*.example.org", "http://bücher.example:81")
    with pytest.raises(FetchFailed, match="cannot be resolved"):  # it was asked for
        await whole(url, FetchSettings(allow=allow), resolve=names())


@pytest.mark.parametrize(
    "url",
    [
        "https://images.example.com/private/a.png",
        "https://images.example.com/publicity",
        "https://images.example.com/public/../private/a.png",
        "https://images.example.com/public/%2e%2e/private/a.png",
        "https://images.example.com/public/%2E%2E%2Fprivate",
        "https://images.example.com/public/..%5cprivate",
        "https://images.example.com:8443/public/a.png",
        "http://images.example.com/public/a.png",
        "https://images.example.com.evil.test/public/a.png",
        "https://evilexample.org/",
        "https://example.org/",
        "https://images.example.com@evil.test/public/a.png",
        "https://user:password@images.example.com/public/a.png",
        "file:///etc/passwd",
        "ftp://images.example.com/public/a.png",
        "//images.example.com/public/a.png",
        "images.example.com/public/a.png",
        "https:///public/a.png",
        "https://[::1/public",
        "https://images.example.com/public/" + "a" * 9_000,
        "",
    ],
)
async def test_everything_else_is_refused_without_a_look_up_and_without_its_path_being_told(url, names):
    resolver = names()
    allow = ("https://images.example.com/public/*", "https://*.example.org")
    with pytest.raises(FetchRefused) as refused:
        await whole(url, FetchSettings(allow=allow), resolve=resolver)
    assert resolver.asked == []
    assert "private" not in str(refused.value)
    assert "password" not in str(refused.value).replace("a user or a password", "")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "192.88.99.1",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1",
        "2001::1", "2002:7f00:1::", "2001:db8::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1",
        "ff02::1", "evil.test", "",
    ],
)  # fmt: skip
def test_addresses_that_are_not_on_the_public_internet_are_told(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_public_addresses_are_told(address):
    assert is_public(address)


@pytest.mark.parametrize("found", [["127.0.0.1"], ["169.254.169.254"], ["93.184.216.34", "10.0.0.1"], ["::1"]])
async def test_a_name_that_leads_to_a_private_address_is_refused(found, names):
    settings = FetchSettings(allow=("http://pictures.test",))
    with pytest.raises(FetchRefused, match="not public"):
        await whole("http://pictures.test/a.png", settings, resolve=names(pictures_test=[found]))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost", "127.1"])
async def test_a_private_address_by_any_spelling_is_refused_even_where_it_is_allowed(host):
    with pytest.raises(FetchRefused, match="not public"):
        await whole(f"http://{host}:9/", FetchSettings(allow=(f"http://{host}:9",)))


async def test_a_private_host_is_fetched_from_where_it_is_named_and_at_that_port_only(site, reply):
    async with site(reply(PNG)) as running:
        url = f"http://127.0.0.1:{running.port}/a.png"
        allow = (f"http://127.0.0.1:{running.port}",)
        for named in ("127.0.0.1", f"127.0.0.1:{running.port}"):
            assert (await whole(url, FetchSettings(allow=allow, allow_private=(named,))))[0] == PNG
        with pytest.raises(FetchRefused, match="not public"):
            await whole(url, FetchSettings(allow=allow, allow_private=("127.0.0.1:1",)))


async def test_the_connection_goes_to_the_address_that_was_checked_though_the_name_leads_elsewhere_by_then(
    site, reply, names
):
    resolver = names(pictures_test=[["127.0.0.1"], ["169.254.169.254"]])
    async with site(reply(PNG)) as running:
        settings = allowing(running.port)
        assert (await whole(f"http://pictures.test:{running.port}/", settings, resolve=resolver))[0] == PNG
    assert resolver.asked == ["pictures.test"]


async def test_a_redirect_to_a_name_at_a_private_address_is_refused(site, names):
    resolver = names(pictures_test=[["127.0.0.1"]], other_test=[["169.254.169.254"]])

    async def elsewhere(running, writer):
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: http://other.test:{running.port}/\r\n\r\n".encode())

    async with site(elsewhere) as running:
        host, other = f"pictures.test:{running.port}", f"other.test:{running.port}"
        settings = FetchSettings(allow=(f"http://{host}", f"http://{other}"), allow_private=(host,))
        with pytest.raises(FetchRefused, match=r"other\.test leads to an address that is not public"):
            await whole(f"http://{host}/", settings, resolve=resolver)
        assert len(running.requests) == 1


async def test_a_name_that_leads_to_a_private_address_after_a_redirect_to_itself_is_refused_then(
    site, names, monkeypatch
):
    """Each step is looked up once; what it gives then is checked, whatever it gave before."""
    resolver = names(pictures_test=[["127.0.0.1"], ["169.254.169.254"]])

    async def again(running, writer):
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n")

    def public(address):
        return address == "127.0.0.1"

    async with site(again) as running:
        settings = FetchSettings(allow=(f"http://pictures.test:{running.port}",))
        monkeypatch.setattr("gateway.system.addresses.is_public", public)
        with pytest.raises(FetchRefused, match="not public"):
            await whole(f"http://pictures.test:{running.port}/", settings, resolve=resolver)
        assert running.paths() == ["/"]
    assert resolver.asked == ["pictures.test"] * 2


@pytest.mark.parametrize(
    "to",
    ["http://127.0.0.1:{port}/secret", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "http://["],
)
async def test_a_redirect_is_checked_like_the_first_url(site, names, to):
    async def elsewhere(running, writer):
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {to.format(port=running.port)}\r\n\r\n".encode())

    async with site(elsewhere) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchRefused):
            await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))
        assert running.paths() == ["/"]


async def test_redirects_within_the_rules_are_followed_and_counted(site, names):
    async def onwards(running, writer):
        step = len(running.requests)
        if step < 4:
            writer.write(f"HTTP/1.1 307 Go on\r\nLocation: step{step}\r\nSet-Cookie: a=b\r\n\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with site(onwards) as running:
        url, resolver = f"http://pictures.test:{running.port}/a/", names(pictures_test=LOOPBACK)
        assert (await whole(url, allowing(running.port, redirects=3), resolve=resolver))[0] == b"ok"
        assert running.paths() == ["/a/", "/a/step1", "/a/step2", "/a/step3"]
        assert not any(b"cookie" in request.lower() for request in running.requests)
        running.requests.clear()
        with pytest.raises(FetchFailed, match="more than 2 redirects"):
            await whole(url, allowing(running.port, redirects=2), resolve=resolver)
        assert len(running.requests) == 3


async def test_an_answer_that_is_no_content_is_a_failure(site, reply, names):
    async with site(reply(b"no", status="404 Not Found")) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchFailed, match="answered 404"):
            await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))


async def test_what_is_too_large_is_refused_by_its_length_or_as_soon_as_it_is(site, reply, names):
    resolver = names(pictures_test=LOOPBACK)
    async with site(reply(b"x" * 101)) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchFailed, match="larger than 100 bytes"):
            await whole(url, allowing(running.port), max_bytes=100, resolve=resolver)

    async def endless(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with site(endless) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchFailed, match="larger than 1,000,000 bytes"):
            await whole(url, allowing(running.port, max_bytes=1_000_000), resolve=resolver)


async def test_a_body_that_never_goes_on_is_given_up(site, names):
    async def silent(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 70_000)
        await writer.drain()
        await anyio.sleep_forever()

    async with site(silent) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchFailed, match="took too long"):
            await whole(url, allowing(running.port, idle=0.2), resolve=names(pictures_test=LOOPBACK))


async def test_a_body_that_drips_is_given_up_at_the_limit_of_the_whole(site, names):
    async def dripping(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await anyio.sleep(0.02)

    async with site(dripping) as running:
        url = f"http://pictures.test:{running.port}/"
        with pytest.raises(FetchFailed, match=r"took too long \(5 s of silence, 0\.5 s in all\)"):
            await whole(url, allowing(running.port, timeout=0.5), resolve=names(pictures_test=LOOPBACK))


async def test_a_server_that_says_nothing_or_nonsense_is_a_failure(site, names):
    async def mute(_, writer):
        await anyio.sleep_forever()

    async def babbling(_, writer):
        writer.write(b"SSH-2.0-nonsense\r\n\r\n")

    async def breaking(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    resolver = names(pictures_test=LOOPBACK)
    for answer, words in ((mute, "took too long"), (babbling, "cannot be asked"), (breaking, "broke off")):
        async with site(answer) as running:
            url = f"http://pictures.test:{running.port}/"
            with pytest.raises(FetchFailed, match=words):
                await whole(url, allowing(running.port, idle=0.3), resolve=resolver)


async def test_a_host_that_takes_no_connection_is_named_and_its_next_address_is_tried(site, reply, names):
    async with site(reply(PNG)) as running:
        resolver = names(pictures_test=[["127.0.0.2", "127.0.0.1"]])
        url = f"http://pictures.test:{running.port}/a"
        assert (await whole(url, allowing(running.port), resolve=resolver))[0] == PNG
    with pytest.raises(FetchFailed, match="cannot be reached"):
        await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))


async def test_a_look_up_that_hangs_is_given_up():
    async def hanging(host, port):
        await anyio.sleep_forever()

    with pytest.raises(FetchFailed, match="was not resolved within"):
        await whole("http://a.test/", FetchSettings(allow=("http://a.test",), idle=0.1), resolve=hanging)


async def test_compressed_content_is_unpacked_within_the_limit(site, reply, names):
    resolver = names(pictures_test=LOOPBACK)
    for name, packed in (("gzip", gzip.compress(PNG)), ("deflate", zlib.compress(PNG))):
        async with site(reply(packed, f"Content-Encoding: {name}")) as running:
            url = f"http://pictures.test:{running.port}/a"
            got = await whole(url, allowing(running.port), resolve=resolver)
            assert got[:2] == (PNG, "image/png")
    bomb = gzip.compress(b"\0" * 200_000_000, 1)
    async with site(reply(bomb, "Content-Encoding: gzip")) as running:
        url = f"http://pictures.test:{running.port}/a"
        with pytest.raises(FetchFailed, match="larger than 10,000,000 bytes"):
            await whole(url, allowing(running.port, max_bytes=10_000_000), resolve=resolver)


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("br", b"...", "was not asked for"),
        ("gzip", b"no gzip", "cannot be unpacked"),
        ("gzip", gzip.compress(b"x" * 1000, mtime=0)[:-6], "broke off"),
    ],
)
async def test_what_cannot_be_unpacked_is_a_failure(site, reply, names, coding, body, words):
    async with site(reply(body, f"Content-Encoding: {coding}")) as running:
        url = f"http://pictures.test:{running.port}/a"
        with pytest.raises(FetchFailed, match=words):
            await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK))


async def test_proxies_of_the_environment_are_not_used(site, reply, names, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with site(reply(PNG)) as running:
        url = f"http://pictures.test:{running.port}/a"
        assert (await whole(url, allowing(running.port), resolve=names(pictures_test=LOOPBACK)))[0] == PNG


async def test_over_tls_the_certificate_must_be_the_names(site, reply, names):
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(CERTIFICATE)
    trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
    resolver = names(pictures_test=LOOPBACK, other_test=LOOPBACK)
    async with site(reply(PNG), serving) as running:
        hosts = tuple(f"{name}.test:{running.port}" for name in ("pictures", "other"))
        settings = FetchSettings(allow=tuple(f"https://{host}" for host in hosts), allow_private=hosts)
        assert (await whole(f"https://{hosts[0]}/", settings, resolve=resolver, tls=trusting))[0] == PNG
        with pytest.raises(FetchFailed, match=r"(?i)certificate"):
            await whole(f"https://{hosts[1]}/", settings, resolve=resolver, tls=trusting)
        with pytest.raises(FetchFailed, match=r"(?i)certificate"):
            await whole(f"https://{hosts[0]}/", settings, resolve=resolver)


async def test_a_fetch_that_is_left_early_leaves_nothing_open(site, names):
    left = anyio.Event()

    async def watching(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000)
        await writer.drain()
        try:
            while True:
                writer.write(b"x" * 10_000)
                await writer.drain()
                await anyio.lowlevel.checkpoint()
        finally:
            left.set()

    async with site(watching) as running:
        url = f"http://pictures.test:{running.port}/a"
        settings = allowing(running.port)
        async with fetch(url, settings, resolve=names(pictures_test=LOOPBACK)) as fetched:
            assert await anext(fetched.chunks)
        with anyio.fail_after(10):
            await left.wait()
