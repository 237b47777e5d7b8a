"""Asking a registry: searching, entries, what is kept of them, and registries that misbehave."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.responses import Response

from gateway.config.registry_settings import RegistrySettings
from gateway.errors import InvalidRequest, RegistryUnavailable
from gateway.registry.cache import MOST_FILES, AnswerCache, CachedAnswer
from gateway.registry.client import MOST_PAGES, RegistryClient
from tests.registry.conftest import Clock, Connect
from tests.servers.registry_server import Registry, endless

pytestmark = pytest.mark.anyio


async def test_a_search_reads_all_pages_and_leaves_out_what_is_not_active(registry: Registry, connect: Connect) -> None:
    registry.most = 2
    for number in range(5):
        registry.add(f"io.github.acme/weather-{number}", description="Weather for maps")
    registry.add("io.github.acme/weather-old", description="Weather for maps", status="deprecated")
    registry.add("io.github.acme/weather-gone", description="Weather for maps", status="deleted")
    registry.add("io.github.acme/maps", description="no such word")
    found = await connect().search(["weather", "MAPS"], 30)
    assert [entry.name[-1] for entry in found.entries] == ["0", "1", "2", "3", "4"]
    assert (found.is_complete, found.age) == (True, None)
    assert "search=weather&version=latest&limit=100" in registry.asked[0]
    assert len(registry.asked) == 4
    few = await connect().search(["weather"], 3)
    assert (len(few.entries), few.is_complete) == (3, False)


async def test_only_the_latest_version_is_found_even_where_the_registry_lists_all(
    registry: Registry, connect: Connect
) -> None:
    registry.add("com.example/a", "1.0.0")
    registry.add("com.example/a", "2.0.0")
    for entry in registry.entries:
        entry["_meta"] = {"io.modelcontextprotocol.registry/official": {**entry["_meta"].popitem()[1]}}
    assert [entry.version for entry in (await connect().search(["example"], 9)).entries] == ["2.0.0"]


async def test_the_pages_of_a_search_are_bounded(registry: Registry, connect: Connect) -> None:
    registry.most = 1
    for number in range(MOST_PAGES + 5):
        registry.add(f"com.example/a{number}")
    found = await connect().search(["example"], 100)
    assert (len(found.entries), found.is_complete) == (MOST_PAGES, False)
    registry.status(200, json.dumps({"servers": [], "metadata": {"nextCursor": "7"}}))
    registry.asked.clear()
    assert (await connect().search(["other"], 100)).entries == []
    assert len(registry.asked) == 2


async def test_an_entry_is_one_version_or_the_latest(registry: Registry, connect: Connect) -> None:
    registry.add("com.example/a.b", "1.0.0+build.5")
    registry.add("com.example/a.b", "2.0.0")
    assert (await connect().entry("com.example/a.b")).entry.version == "2.0.0"
    assert (
        await connect().entry("com.example/a.b", "1.0.0+build.5")
    ).entry.reference == "com.example/a.b@1.0.0+build.5"
    with pytest.raises(InvalidRequest, match=r"no version 3 of the server 'com.example/a.b'"):
        await connect().entry("com.example/a.b", "3")
    with pytest.raises(InvalidRequest, match=r"no server 'com\.example/b'"):
        await connect().entry("com.example/b")


async def test_what_is_fresh_is_not_asked_again_and_what_is_old_is_asked_by_its_tag(
    registry: Registry, connect: Connect, clock: Clock
) -> None:
    registry.add("com.example/a")
    for _ in range(3):
        await connect(cache="1h").search(["example"], 9)
    assert len(registry.asked) == 1
    clock.now += 3_601
    found = await connect(cache="1h").search(["example"], 9)
    assert (len(registry.asked), registry.not_modified, len(found.entries)) == (2, 1, 1)
    await connect(cache="1h").search(["example"], 9)
    assert len(registry.asked) == 2


@pytest.mark.parametrize("status", [429, 500, 503, 302, 404])
async def test_while_it_is_away_its_last_answer_is_used_and_its_age_said(
    registry: Registry, connect: Connect, clock: Clock, status: int
) -> None:
    registry.add("com.example/a")
    await connect().search(["example"], 9)
    clock.now += 7_200
    registry.status(status)
    found = await connect().search(["example"], 9)
    assert (len(found.entries), found.age) == (1, 7_200)
    with pytest.raises(RegistryUnavailable):
        await connect().search(["never asked"], 9)


async def test_an_entry_that_is_gone_is_not_taken_from_the_cache(
    registry: Registry, connect: Connect, clock: Clock
) -> None:
    registry.add("com.example/a")
    await connect().entry("com.example/a")
    clock.now += 7_200
    registry.entries.clear()
    with pytest.raises(InvalidRequest, match="has no server"):
        await connect().entry("com.example/a")


async def test_no_registry_at_all_is_one_clear_error(clock: Clock, tmp_path: Path) -> None:
    settings = RegistrySettings(url="http://127.0.0.1:9/mcp/")
    client = RegistryClient(settings, AnswerCache(tmp_path), clock)
    with pytest.raises(RegistryUnavailable, match=r"http://127.0.0.1:9/mcp cannot be asked: .*\[registry\] url"):
        await client.search(["a"], 9)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response("<html>", 200), "does not answer with JSON"),
        (Response("[" * 100_000, 200), "does not answer with JSON"),
        (Response("", 301, {"location": "https://elsewhere.example/"}), "redirects to https://elsewhere"),
        (Response("", 429, {"retry-after": "17"}), "wait 17 s"),
        (Response("", 418), "answers with HTTP 418"),
    ],
    ids=["html", "deep", "elsewhere", "less", "teapot"],
)
async def test_what_is_no_answer_is_said(registry: Registry, connect: Connect, answer: Response, words: str) -> None:
    registry.answer = answer
    with pytest.raises(RegistryUnavailable, match=words) as raised:
        await connect().search(["a"], 9)
    assert "\x1b" not in str(raised.value)


async def test_an_endless_answer_ends(registry: Registry, connect: Connect) -> None:
    registry.answer = endless()
    with pytest.raises(RegistryUnavailable, match=r"sends more than 8\.4 MB at once"):
        await connect().search(["a"], 9)


async def test_a_slow_registry_is_not_waited_for(registry: Registry, connect: Connect, clock: Clock) -> None:
    registry.add("com.example/a")
    await connect().search(["example"], 9)
    clock.now += 7_200
    registry.seconds = 3.0
    found = await connect(timeout=0.5).search(["example"], 9)
    assert (len(found.entries), found.age) == (1, 7_200)
    with pytest.raises(RegistryUnavailable, match=r"did not answer within 0\.5 s"):
        await connect(timeout=0.5).search(["other"], 9)


@pytest.mark.parametrize(
    "servers",
    [
        None,
        {},
        [None, 1, "x", [], {}, {"server": []}, {"server": {"name": 1, "version": 2}}],
        [{"server": {"name": "../../etc/passwd", "version": "1"}}],
        [{"server": {"name": "com.example/a\x1b[31m", "version": "1"}}],
        [{"server": {"name": "com.example/a", "version": "1/../../2"}}],
        [{"server": {"name": "a" * 100_000 + "/b", "version": "1"}}],
    ],
    ids=["null", "object", "junk", "path", "escape", "version", "long"],
)
async def test_entries_that_are_none_are_left_out(registry: Registry, connect: Connect, servers: object) -> None:
    good = {"server": {"name": "com.example/good", "version": "1", "description": 7, "packages": "no"}}
    listed = [*servers, good] if isinstance(servers, list) else servers
    registry.status(200, json.dumps({"servers": listed, "metadata": 3}))
    found = await connect().search(["example"], 9)
    assert [entry.name for entry in found.entries] == (["com.example/good"] if isinstance(servers, list) else [])


async def test_another_entry_than_the_one_that_was_asked_for_is_refused(registry: Registry, connect: Connect) -> None:
    registry.status(200, json.dumps({"server": {"name": "com.evil/a", "version": "1"}}))
    with pytest.raises(InvalidRequest, match="malformed"):
        await connect().entry("com.example/a")


async def test_what_nests_deeply_is_read_or_refused(registry: Registry, connect: Connect) -> None:
    for depth in (100, 900, 5_000):
        deep = "[" * depth + "]" * depth
        registry.status(200, f'{{"servers": [{{"server": {{"name": "com.example/a", "version": "1", "x": {deep}}}}}]}}')
        if depth < 500:
            assert len((await connect(cache=0).search(["example"], 9)).entries) == 1
        else:  # whether Python's parser takes it depends on its version
            with suppress(RegistryUnavailable):
                await connect(cache=0).search(["example"], 9)


@pytest.mark.parametrize("words", [[], ["  "], ["x" * 300]])
async def test_a_search_has_words(connect: Connect, words: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="give a word"):
        await connect().search(words, 9)


def test_the_cache_is_private_bounded_and_forgets_what_is_damaged(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "registry")
    for number in range(MOST_FILES + 3):
        cache.keep(f"https://a.example/{number}", CachedAnswer({"n": number}, 1.0, "t"))
        os.utime(cache._file(f"https://a.example/{number}"), (number, number))
    files = list((tmp_path / "registry").iterdir())
    assert len(files) == MOST_FILES
    assert all(file.stat().st_mode & 0o077 == 0 for file in [tmp_path / "registry", *files])
    assert cache.find("https://a.example/0") is None
    last = f"https://a.example/{MOST_FILES + 2}"
    assert cache.find(last) == CachedAnswer({"n": MOST_FILES + 2}, 1.0, "t")
    moments = [f'{{"url": "{last}", "at": {at}}}' for at in ('"x"', f"1{'0' * 400}", "NaN", "true")]
    for damage in ("", "{", "[]", '{"url": "https://b.example", "at": 1}', *moments):
        cache._file(last).write_text(damage)
        assert cache.find(last) is None
    AnswerCache(Path(os.devnull)).keep("https://a.example", CachedAnswer(1, 1.0))
