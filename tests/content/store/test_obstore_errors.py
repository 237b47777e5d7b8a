"""A store that is out of reach, forbidden, full, slow or ill: said in words, without secrets, and nothing is broken."""

import os
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import backend, fetch_bytes, make_store, open_store
from gateway.content.store.backend import Backend
from gateway.content.store.obstore_errors import failing
from gateway.content.store.upload_stream import PART_BYTES
from gateway.errors import StoreUnavailable

pytestmark = pytest.mark.anyio

ANN = {"owner": "ann", "media_type": "image/png"}
HIDDEN = "never-shown-to-anybody"


@contextmanager
def ill(status: int | None, body: str = ""):
    """An S3 that answers everything in one way; None: not at all."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            if status is None:
                released.wait(60)
                self.close_connection = True
                return
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"s3://bucket/prefix?endpoint=http://127.0.0.1:{server.server_port}&region=us-east-1"
    finally:
        released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def attempts(store):
    """Everything that can be asked of a store."""
    return (
        lambda: store.put(b"x", **ANN),
        lambda: store.put(_stream(), **ANN),
        lambda: fetch_bytes(store, "img_000000000000", owner="ann"),
        lambda: store.metadata("img_000000000000", owner="ann"),
        lambda: store.delete("img_000000000000", owner="ann"),
        lambda: store.list(owner="ann"),
        lambda: store.tidy(),
    )


async def _stream(size=PART_BYTES + 1):
    yield b"x" * size


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, "<Error><Code>AccessDenied</Code></Error>", "refuses the gateway"),
        (401, "", "refuses the gateway"),
        (404, "<Error><Code>NoSuchBucket</Code></Error>", "does not exist"),
        (301, "", "is in another region"),
        (500, "<Error><Code>InternalError</Code></Error>", "has an internal error"),
        (503, "<Error><Code>SlowDown</Code></Error>", "has an internal error"),
    ],
)
@pytest.mark.usefixtures("credentials")
async def test_a_bucket_that_refuses_or_fails_says_what_and_where(status, body, words):
    with ill(status, body) as url:
        for attempt in attempts(make_store(StoreSettings(url=url, timeout=30))):
            with pytest.raises(StoreUnavailable) as caught:
                await attempt()
            assert words in caught.value.message
            assert "s3://bucket/prefix" in caught.value.message
            assert caught.value.remedy
            assert HIDDEN not in str(caught.value)


@pytest.mark.usefixtures("credentials")
async def test_a_bucket_that_nobody_serves_cannot_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    store = make_store(StoreSettings(url=f"s3://bucket?endpoint=http://127.0.0.1:{port}&region=r", timeout=30))
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.put(b"x", **ANN)


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("content", [b"x", b"x" * (PART_BYTES + 1), "streamed"])
async def test_a_bucket_that_never_answers_is_given_up_and_left_alone_for_a_moment(content, monkeypatch):
    monkeypatch.setattr(backend, "_REST_SECONDS", 3_600.0)
    with anyio.fail_after(60), ill(None) as url:
        store = make_store(StoreSettings(url=url, timeout=0.2, key="sixteen letters and more"))
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await store.put(_stream() if content == "streamed" else content, **ANN)
        with pytest.raises(StoreUnavailable, match="did not answer"):
            await store.metadata("img_000000000000", owner="ann")
        store.resize(StoreSettings(url=url, timeout=3_600))
        with pytest.raises(StoreUnavailable, match="a moment ago"):
            await store.metadata("img_000000000000", owner="ann")


async def test_a_bucket_without_credentials_says_where_they_come_from(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with ill(403) as url:
        where = url.replace("s3://bucket/prefix?", "s3://bucket?metadata_endpoint=http://127.0.0.1:1&")
        with anyio.fail_after(90), pytest.raises(StoreUnavailable) as caught:
            await make_store(StoreSettings(url=where, timeout=30)).put(b"x", **ANN)
    assert "got no credentials" in caught.value.message
    assert "environment" in (caught.value.remedy or "")


@pytest.mark.usefixtures("credentials")
async def test_an_option_that_the_service_does_not_have_is_named_as_such():
    store = make_store(StoreSettings(url="s3://bucket?nonsense=1"))
    with pytest.raises(StoreUnavailable, match="does not know an option"):
        await store.list(owner="ann")


async def test_a_folder_that_is_a_file_is_no_store(tmp_path):
    (tmp_path / "store").write_bytes(b"a file")
    for attempt in attempts(make_store(StoreSettings(url=(tmp_path / "store").as_uri()))):
        with pytest.raises(StoreUnavailable, match="is not a folder"):
            await attempt()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "has no room left"),
        (OSError(122, "Disk quota exceeded"), "over its quota"),
        (OSError(30, "Read-only file system"), "cannot be written to"),
        (PermissionError(13, "Permission denied"), "may not be written to"),
        (TimeoutError(), "did not answer in time"),
        (ValueError("settings of any kind"), "failed"),
    ],
)
async def test_what_the_system_says_becomes_words_and_a_remedy(error, words):
    with pytest.raises(StoreUnavailable, match=words) as caught, failing("file:///x"):
        raise error
    assert caught.value.remedy


class Failing:
    """Makes one call of the backend fail, by its number."""

    def __init__(self, monkeypatch) -> None:
        self.count = 0
        self.at = -1
        for name in ("get", "size", "put", "put_new", "upload", "delete", "list"):
            monkeypatch.setattr(Backend, name, self.counted(getattr(Backend, name)))

    def counted(self, method):
        async def call(backend, *args, **kwargs):
            self.count += 1
            if self.count == self.at:
                raise StoreUnavailable("the store is down", remedy="wait")
            return await method(backend, *args, **kwargs)

        return call


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("room", [100, PART_BYTES + 10])
async def test_a_store_that_fails_at_any_step_of_a_put_shows_nothing_of_it(tmp_path, monkeypatch, streamed, room):
    fails = Failing(monkeypatch)
    content = b"n" * (100 if room == 100 else PART_BYTES + 1)
    done = False
    for step in range(1, 30):
        store = make_store(StoreSettings(url=(tmp_path / str(step)).as_uri(), max_bytes=room))
        old = await store.put(b"old content", **ANN)
        fails.count, fails.at = 0, step
        try:
            new = await store.put(_stream(len(content)) if streamed else content, **ANN)
            done = fails.count < step
        except StoreUnavailable:
            new = None
        fails.at = -1
        kept = await store.list(owner="ann")
        assert {one.handle for one in kept} <= {old.handle, *([new.handle] if new else [])}
        new = await store.put(b"n" * len(content), **ANN)
        assert await fetch_bytes(store, new.handle, owner="ann") == content
        assert (await store.list(owner="ann"))[-1] == new
        if done:
            break
    assert done


async def test_an_open_store_that_is_down_costs_one_line_in_the_log(tmp_path, caplog):
    (tmp_path / "store").write_bytes(b"a file")
    logged = anyio.Event()
    caplog.handler.addFilter(lambda record: logged.set() is None)
    with anyio.fail_after(30):
        async with open_store(StoreSettings(url=(tmp_path / "store").as_uri())) as store:
            await logged.wait()
            with pytest.raises(StoreUnavailable):
                await store.put(b"x", **ANN)
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("scheme", "environment"),
    [
        (
            "az://container/prefix?account_name=me&endpoint=",
            {"AZURE_STORAGE_ACCOUNT_KEY": "bmV2ZXItc2hvd24tdG8tYW55Ym9keQ=="},
        ),
        (
            "gs://bucket/prefix?base_url=",
            # As for an emulator: no token is asked for anywhere.
            {
                "GOOGLE_SERVICE_ACCOUNT_KEY": '{"disable_oauth": true, "client_email": "", "private_key": "",'
                ' "private_key_id": ""}'
            },
        ),
    ],
)
async def test_other_services_are_asked_in_their_own_way_and_fail_in_the_same_words(monkeypatch, scheme, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with ill(403) as url:
        store = make_store(StoreSettings(url=scheme + url.split("endpoint=")[1].split("&")[0]))
        with anyio.fail_after(60), pytest.raises(StoreUnavailable, match="refuses the gateway") as caught:
            await store.put(b"x", **ANN)
    assert scheme.split("?")[0] in str(caught.value)
