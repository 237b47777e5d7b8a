"""What references in arguments stand for, on a real store: looked up, judged, and given in the form that is wanted."""

import base64
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.config.content_settings import LimitSettings
from gateway.config.store_settings import StoreSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.arguments import Arguments, TemporaryFiles
from gateway.content.store import MemoryStore, Stored
from gateway.core.tools.arguments import Parameter
from gateway.errors import ArgumentError, FetchRefused, StoreUnavailable

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (40).to_bytes(4, "big") + (30).to_bytes(4, "big")
ANN = {"owner": "ann"}
ONE = UpstreamSettings(command="x")


@dataclass
class FakeFetched:
    media_type: str
    name: str | None
    chunks: AsyncIterator[bytes]


class FakeFetch:
    """The internet, with one picture."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    @asynccontextmanager
    async def __call__(self, url: str, *, max_bytes: int) -> AsyncIterator[FakeFetched]:
        self.asked.append((url, max_bytes))
        if "forbidden" in url:
            raise FetchRefused("https://forbidden is not one that may be fetched", remedy="see [fetch] allow")

        async def chunks() -> AsyncIterator[bytes]:
            yield PNG[:10]
            yield PNG[10:]

        yield FakeFetched("image/png", "far.png", chunks())


class FakeLinks:
    is_served = True

    def link(self, stored: Stored, owner: str) -> str | None:
        return f"https://gateway/{owner}/{stored.handle}"


class CountingStore(MemoryStore):
    """Counts how often content is read."""

    reads = 0

    def open(self, *args: Any, **more: Any) -> Any:
        self.reads += 1
        return super().open(*args, **more)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(StoreSettings(max_bytes=10_000_000))


@pytest.fixture
def given(store: CountingStore, tmp_path: Path) -> Callable[..., Any]:
    """Resolves `x`, or other arguments, for parameters; `limits` and the rest as `Arguments` takes them."""
    files = TemporaryFiles(tmp_path / "files")

    @asynccontextmanager
    async def resolved(arguments: Any, *parameters: Parameter, limits: Any = None, settings: Any = ONE, **more: Any):
        whole = Arguments(store, LimitSettings(**limits or {}), files, **more)
        values = arguments if isinstance(arguments, dict) else {"x": arguments}
        try:
            with anyio.fail_after(30):
                async with whole.resolved(values, parameters, upstream="one", settings=settings, **ANN) as result:
                    yield result
        finally:
            files.close()

    return resolved


def x(form: Any, kind: Any = None, **more: Any) -> Parameter:
    return Parameter(("x",), form, kind, **more)


async def refused(given: Any, *arguments: Any, **more: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        async with given(*arguments, **more):
            pass
    return caught.value


async def test_links_are_given_where_the_gateway_makes_some_and_cost_none_of_the_limits(store: Any, given: Any):
    stored = await store.put(PNG, media_type="image/png", name="a.png", **ANN)
    link = f"https://gateway/ann/{stored.handle}"
    async with given(stored.handle, x("url"), limits={"argument_bytes": 1}, links=FakeLinks()) as arguments:
        assert arguments == {"x": link}
    async with given(stored.handle, x("openai-file"), links=FakeLinks()) as arguments:
        file = {"download_url": link, "file_id": stored.handle, "mime_type": "image/png", "file_name": "a.png"}
        assert arguments == {"x": file}
    assert "x: the tool needs a URL, and this gateway has no HTTP side" in str(
        await refused(given, stored.handle, x("url"))
    )


async def test_a_url_is_fetched_once_kept_and_given_as_the_tool_wants_it(store: Any, given: Any):
    fetch, url = FakeFetch(), "https://example.com/far.png"
    encoded = base64.b64encode(PNG).decode()
    async with given(url, x("base64", "image"), fetch=fetch, limits={"argument_bytes": 5_000}) as arguments:
        assert arguments == {"x": encoded}
    assert fetch.asked == [(url, 5_000)]
    (kept,) = await store.list(**ANN)
    assert (kept.name, kept.media_type, kept.origin) == ("far.png", "image/png", None)
    async with given(url, x("base64", "image")) as arguments:
        assert arguments == {"x": url}
    error = await refused(given, "https://forbidden/x", x("base64"), fetch=fetch)
    assert str(error) == "x: https://forbidden is not one that may be fetched (see [fetch] allow)"
    assert "audio is required" in str(await refused(given, url, x("base64", "audio"), fetch=fetch))


async def test_data_uris_become_whatever_is_wanted(store: Any, given: Any):
    encoded = base64.b64encode(PNG).decode()
    uri = f"data:application/octet-stream;base64,{encoded}"
    async with given(uri, x("base64", "image")) as arguments:
        assert arguments == {"x": encoded}
    async with given(uri, x("data-uri", "image")) as arguments:
        assert arguments == {"x": uri}
    async with given(uri, x("object", "image")) as arguments:
        (kept,) = await store.list(**ANN)
        assert (arguments["x"]["handle_id"], arguments["x"]["mime_type"]) == (kept.handle, "image/png")
    async with given(uri, x("path")) as arguments:
        assert Path(arguments["x"]).read_bytes() == PNG
    async with given("data:,hello%20there", x("base64", "document")) as arguments:
        assert base64.b64decode(arguments["x"]) == b"hello there"


async def test_content_that_is_named_many_times_is_read_and_encoded_once(store: Any, given: Any):
    stored = await store.put(PNG, media_type="image/png", **ANN)
    many = Parameter(("x", None), "base64")
    async with given({"x": [stored.handle] * 20}, many) as arguments:
        first, *others = arguments["x"]
        assert all(other is first for other in others)
    assert store.reads == 1


async def test_large_content_is_given_whole(store: Any, given: Any):
    content = PNG + os.urandom(1_500_000)
    stored = await store.put(content, media_type="image/png", **ANN)
    async with given(stored.handle, x("base64")) as arguments:
        assert base64.b64decode(arguments["x"]) == content
    async with given(stored.handle, x("path")) as arguments:
        assert Path(arguments["x"]).read_bytes() == content


async def test_content_of_a_type_that_says_nothing_is_judged_by_its_bytes(store: Any, given: Any):
    stored = await store.put(PNG, media_type="application/octet-stream", **ANN)
    async with given(stored.handle, x("object", "image")) as arguments:
        assert (arguments["x"]["kind"], arguments["x"]["mime_type"]) == ("image", "image/png")
    assert "an image (image/png, " in str(await refused(given, stored.handle, x("base64", "audio")))


async def test_a_type_that_the_schema_does_not_name_is_refused(store: Any, given: Any):
    stored = await store.put(b"\xff\xd8\xff\xe0", media_type="image/jpeg", **ANN)
    parameter = x("base64", "image", accepts=("image/png",))
    error = await refused(given, stored.handle, parameter)
    assert error.message == (
        f"x: an image of type image/png is required, and {stored.handle} is an image (image/jpeg, 4 bytes)"
    )


async def test_what_is_too_large_for_the_tool_or_for_us_is_refused_before_it_is_read(store: Any, given: Any):
    stored = await store.put(PNG * 100, media_type="image/png", **ANN)
    error = await refused(given, stored.handle, x("base64", max_bytes=1_000))
    assert (error.message, error.remedy) == (
        f"x: {stored.handle} has 2.4 KB, and at most 1.0 KB are allowed",
        "give a smaller one",
    )
    error = await refused(given, stored.handle, x("path"), limits={"argument_bytes": 2_000})
    assert error.remedy == "see limits.argument_bytes"
    assert store.reads == 0


async def test_expired_content_and_a_store_that_is_down_are_told(tmp_path: Path):
    now = [0.0]
    store = MemoryStore(StoreSettings(expires=10), clock=lambda: now[0])
    stored = await store.put(PNG, media_type="image/png", **ANN)
    now[0] = 11

    class Down(MemoryStore):
        async def metadata(self, handle: str, *, owner: str) -> Stored:
            raise StoreUnavailable("the store does not answer", remedy="try again")

    for kept, words in ((store, "is gone: it was kept for 10 s"), (Down(StoreSettings()), "the store does not answer")):
        arguments = Arguments(kept, LimitSettings(), TemporaryFiles(None))
        with pytest.raises(ArgumentError, match=words):
            async with arguments.resolved({"x": stored.handle}, [x("base64")], upstream="one", settings=ONE, **ANN):
                pass


async def test_content_that_came_from_another_upstream_is_kept_from_one_that_takes_only_its_own(store: Any, given: Any):
    own = UpstreamSettings.model_validate({"command": "x", "accept": "own"})
    for origin, content in (("one", b"1"), (None, b"2"), ("two", b"3"), ("gateway", b"4")):
        stored = await store.put(content, media_type="text/plain", origin=origin, **ANN)
        if origin in ("one", None):
            async with given(stored.handle, x("base64"), settings=own) as arguments:
                assert base64.b64decode(arguments["x"]) == content
        else:
            error = await refused(given, stored.handle, x("base64"), settings=own)
            assert f"{stored.handle} came from {origin}, and one accepts no content of other upstreams" in error.message


async def test_too_many_values_are_refused(given: Any):
    error = await refused(given, {"x": ["img_7h3k2m9q4w8x"] * 1_001}, Parameter(("x", None), "base64"))
    assert "1,001 values name content, and a call may have 1,000" in str(error)


# -- files ------------------------------------------------------------------------------------------------------------


async def test_files_are_private_named_by_their_type_and_gone_however_the_call_ends(
    store: Any, given: Any, tmp_path: Path
):
    image = await store.put(PNG, media_type="image/png", name="../evil.exe", **ANN)
    model = await store.put(b"solid", media_type="model/stl", name="part.STL", **ANN)
    parameters = (Parameter(("a",), "path"), Parameter(("b",), "path"), Parameter(("c",), "path"))
    values = {"a": image.handle, "b": model.handle, "c": image.handle}
    async with given(values, *parameters) as arguments:
        paths = {name: Path(value) for name, value in arguments.items()}
        assert paths["a"] == paths["c"]
        assert (paths["a"].name, paths["b"].name) == (f"{image.handle}.png", f"{model.handle}.stl")
        assert paths["a"].is_relative_to(tmp_path)
        if sys.platform != "win32":
            assert stat.S_IMODE(paths["a"].stat().st_mode) == 0o600
            assert [stat.S_IMODE(parent.stat().st_mode) for parent in list(paths["a"].parents)[:2]] == [0o700, 0o700]
    assert not paths["a"].parent.exists()
    with pytest.raises(ZeroDivisionError):
        async with given(values, *parameters) as arguments:
            _ = 1 / 0
    assert not Path(arguments["a"]).parent.exists()
    with anyio.CancelScope() as scope:
        async with given(values, *parameters) as arguments:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert not Path(arguments["a"]).parent.exists()
    assert list((tmp_path / "files").iterdir()) == []


def test_what_a_killed_gateway_left_is_swept_and_what_a_living_one_uses_is_not(tmp_path: Path):
    living, dead = TemporaryFiles(tmp_path), TemporaryFiles(tmp_path)
    with living.folder() as used, dead.folder() as left:
        (left / "x.png").write_bytes(PNG)
        (used / "x.png").write_bytes(PNG)
        assert dead._lock is not None
        os.close(dead._lock)  # as the system does when a process ends
        TemporaryFiles(tmp_path).sweep()
        assert not left.exists()
        assert not left.parent.exists()
        assert (used / "x.png").read_bytes() == PNG
    dead._lock = dead._folder = None
    living.close()
    assert list(tmp_path.iterdir()) == []


def test_sweeping_where_nothing_is_does_nothing(tmp_path: Path):
    TemporaryFiles(tmp_path / "missing").sweep()
    TemporaryFiles(None).sweep()
    assert not (tmp_path / "missing").exists()
