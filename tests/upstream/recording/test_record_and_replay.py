"""Real servers, recorded and then replayed: what a host gets is the same, byte for byte."""

import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.openapi_settings import OperationSettings
from gateway.config.upstream_settings import Timeouts, UpstreamLimits, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.errors import GatewayError, UpstreamLost, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.upstream import Upstream, UpstreamState
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.recording import recorder
from gateway.upstream.recording.lines import VERSION
from gateway.upstream.recording.read_recording import read_recording
from gateway.upstream.recording.replay import fits
from tests.servers.http_api import running_api
from tests.upstream.conftest import SERVERS, raw_stdio
from tests.upstream.recording.conftest import Open

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=20, idle=20)
SECRET = "s3cret-of-the-operator"


def bridge(*flags: str, **settings: Any) -> UpstreamSettings:
    return UpstreamSettings(command=sys.executable, args=(str(SERVERS / "bridge_server.py"), *flags), **settings)


def replaying(folder: Path, **settings: Any) -> UpstreamSettings:
    return UpstreamSettings(replay=folder, **settings)


class Asked:
    """A host that is asked, and accepts."""

    party = "person"
    connection = None
    bounds_waiting = False

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.methods.append(method)
        return {"action": "accept", "content": {"name": "ann"}}

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Nothing is done about a notification."""

    async def let_go(self) -> None:
        """Nothing of it is held for a stream."""


async def asked(
    upstream: Upstream, method: str, params: dict[str, Any], limits: Timeouts = LIMITS, host: Asked | None = None
) -> Any:
    """The result of a request, or its error with everything that a host is told of it."""
    context = RequestContext(Caller(revision="2025-11-25", capabilities={"elicitation": {}} if host else {}), host=host)
    try:
        return await upstream.request(method, params, context, limits)
    except UpstreamRefused as error:
        return "refused", error.code, error.message, error.data
    except GatewayError as error:
        return type(error).__name__, str(error)


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": tool, "arguments": arguments}


REQUESTS = [
    *(call("content"), call("structured", kind="object"), call("structured", kind="null"), call("failing")),
    *(call("counter"), call("counter"), call("counter"), call("echo", big="x" * 200_000, picture="A" * 400)),
    *(call("echo", reference={"$file": "media/x", "$$file": 1}), call("fail", code=-32050, data={"why": [None]})),
    *(call("steps", count=2), call("nothing of this name")),
    *(("resources/read", {"uri": uri}) for uri in ("bridge://one", "bridge://bytes", "bridge://two", "bridge://none")),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_replay_answers_as_the_server_did(opened: Open, folder: Path, era: Era) -> None:
    async with opened(bridge("--era", era), record=True) as upstream:
        assert upstream.era == era
        before = [await asked(upstream, *request) for request in REQUESTS]
        lists = upstream.lists_for()
        about = upstream.opening
    async with opened(replaying(folder)) as upstream:
        assert upstream.state is UpstreamState.READY, upstream.cause
        assert upstream.pid is None
        assert [await asked(upstream, *request) for request in REQUESTS] == before
        again = upstream.lists_for()
        assert (again.tools, again.resources, again.templates, again.prompts) == (
            *(lists.tools, lists.resources, lists.templates, lists.prompts),
        )
        assert len(again.tools) > 7  # more than a page
        assert upstream.opening == about


async def test_equal_calls_are_answered_in_order_and_then_with_the_last(opened: Open, folder: Path) -> None:
    async with opened(bridge(), record=True) as upstream:
        for _ in range(2):
            await asked(upstream, *call("counter"))
    async with opened(replaying(folder)) as upstream:
        counts = [(await asked(upstream, *call("counter")))["structuredContent"]["count"] for _ in range(4)]
    assert counts == [1, 2, 2, 2]


async def test_a_call_that_was_not_recorded_is_refused_and_the_nearest_is_named(opened: Open, folder: Path) -> None:
    async with opened(bridge(), record=True) as upstream:
        await asked(upstream, *call("structured", kind="array"))
        await asked(upstream, *call("echo", of="cats", size=3))
        await asked(upstream, *call("echo", of="dogs", size=9))
    async with opened(replaying(folder)) as upstream:
        refused = await asked(upstream, *call("echo", of="dogs", size=8))
        assert refused[:2] == ("refused", -32602)
        assert '{"of":"dogs","size":9}' in refused[2]
        assert "--replay-match nearest" in refused[2]
        unknown = await asked(upstream, *call("content"))
        assert "it has structured, echo" in unknown[2]
        assert (await asked(upstream, *call("echo", of="dogs", size=True)))[0] == "refused"
    async with opened(replaying(folder, replay_match="nearest")) as upstream:
        for arguments, of in (({"of": "dogs", "size": 8}, "dogs"), ({"of": "cat"}, "cats"), ({"size": 3}, "cats")):
            result = await asked(upstream, *call("echo", **arguments))
            assert result["structuredContent"]["arguments"]["of"] == of
        assert (await asked(upstream, *call("content")))[0] == "refused"


async def test_media_is_beside_the_lines_as_the_file_that_it_is(opened: Open, folder: Path) -> None:
    async with opened(bridge(), record=True) as upstream:
        await asked(upstream, *call("content", kind="image"))
        await asked(upstream, *call("content", kind="audio"))
        await asked(upstream, *call("content", kind="image"))
    files = sorted(folder.glob("media/*"))
    assert sorted(file.suffix for file in files) == [".png", ".wav"]
    (session,) = folder.glob("session-*.jsonl")
    assert not [line for line in session.read_text("utf-8").splitlines() if "tools/call" in line and "iVBOR" in line]
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in (session, *files)} == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "media")} == {0o700}


async def test_no_secret_is_recorded_and_calls_with_secrets_are_found_again(opened: Open, folder: Path) -> None:
    settings = bridge(env={"API_TOKEN": SECRET})
    private = call("echo", password="hunter2hunter2", note=f"with {SECRET} in it", safe="kept")
    async with opened(settings, record=True) as upstream:
        result = await asked(upstream, *private)
        assert result["structuredContent"]["arguments"]["note"] == f"with {SECRET} in it"
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"kept" in written
    assert SECRET.encode() not in written
    assert b'"password": "***"' in written  # of the arguments: the result is this server's echo
    async with opened(replaying(folder)) as upstream:
        again = await asked(upstream, *call("echo", password="another one", note="with *** in it", safe="kept"))
        assert again["structuredContent"]["arguments"]["note"] == "with *** in it"
        given = call("echo", password="another one", note=f"with {SECRET} in it", safe="kept")
        assert await asked(upstream, *given) == again


@pytest.mark.parametrize(
    ("given", "is_equal"),
    [
        ("key A and key B.", True),
        ("key  and key .", True),
        ("key A and B.", False),
        ("my key A and key B.", False),
        ("key A and key B", False),
        ("key and key .", False),
        ("key .", False),
    ],
)
def test_around_a_secret_the_text_has_to_be_the_recorded_one(given: str, *, is_equal: bool) -> None:
    assert fits({"text": ["key *** and key ***."]}, {"text": [given]}) is is_equal


async def test_failures_are_replayed_in_their_own_words_and_at_once(opened: Open, folder: Path) -> None:
    short = Timeouts(call=4, idle=20)
    async with opened(raw_stdio(), record=True) as upstream:
        late = await asked(upstream, *call("hang"), short)
        lost = await asked(upstream, *call("die"))
    assert (late[0], lost[0]) == (UpstreamTimeout.__name__, UpstreamLost.__name__)
    async with opened(replaying(folder)) as upstream:
        with anyio.fail_after(3.9):
            assert await asked(upstream, *call("hang"), short) == late
        assert await asked(upstream, *call("die")) == lost
        assert upstream.state is UpstreamState.READY  # there is no process that could have ended


async def test_a_call_that_its_host_cancelled_has_no_answer(opened: Open, folder: Path) -> None:
    async with opened(raw_stdio(), record=True) as upstream:
        with anyio.move_on_after(0.5):
            await asked(upstream, *call("hang"))
    async with opened(replaying(folder)) as upstream:
        kind, words = await asked(upstream, *call("hang"))
        assert kind == UpstreamUnavailable.__name__
        assert "cancelled by its host when it was recorded" in words


async def test_a_server_that_never_started_does_not_start_again(opened: Open, folder: Path) -> None:
    async with opened(UpstreamSettings(command="no-such-program-anywhere"), record=True) as upstream:
        assert upstream.failure is not None
        before = upstream.failure.message
    async with opened(replaying(folder)) as upstream:
        assert upstream.state is UpstreamState.FAILED
        assert upstream.failure is not None
        assert upstream.failure.message == before


async def test_what_the_server_asked_its_host_is_noted_and_not_asked_again(opened: Open, folder: Path) -> None:
    first, second = Asked(), Asked()
    async with opened(bridge("--era", "handshake"), record=True) as upstream:
        result = await asked(upstream, *call("elicit"), host=first)
    assert first.methods == ["elicitation/create"]
    (exchange,) = (one for one in read_recording(folder)["it"].exchanges if one.method == "tools/call")
    assert exchange.asked == ["elicitation/create"]
    async with opened(replaying(folder)) as upstream:
        assert await asked(upstream, *call("elicit"), host=second) == result
    assert second.methods == []


async def test_input_that_a_result_requires_is_asked_for_again(opened: Open, folder: Path) -> None:
    context = RequestContext(Caller(revision="2026-07-28", capabilities={"elicitation": {}}))
    method, params = call("elicit")

    async def both(upstream: Upstream, name: str) -> list[dict[str, Any]]:
        first = await upstream.request(method, params, context, LIMITS)
        answers = {key: {"action": "accept", "content": {"name": name}} for key in first["inputRequests"]}
        again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
        return [first, await upstream.request(method, again, context, LIMITS)]

    async with opened(bridge("--era", "modern"), record=True) as upstream:
        before = await both(upstream, "ann")
    assert before[0]["resultType"] == "input_required"
    async with opened(replaying(folder)) as upstream:
        assert await both(upstream, "ann") == before
        with pytest.raises(UpstreamRefused, match="the nearest that it has is"):
            await both(upstream, "bob")


async def test_an_http_api_is_replayed_without_the_api(opened: Open, folder: Path) -> None:
    async with running_api() as api:
        settings = UpstreamSettings(openapi=f"{api.url}/openapi.json", operations=OperationSettings())
        async with opened(settings, record=True) as upstream:
            names = [tool["name"] for tool in upstream.lists_for().tools if tool["name"] != "getSlow"]
            before = {name: await asked(upstream, *call(name)) for name in names}
    assert len(names) > 3
    async with opened(replaying(folder)) as upstream:
        assert {tool["name"] for tool in upstream.lists_for().tools} == {*names, "getSlow"}
        assert {name: await asked(upstream, *call(name)) for name in names} == before


async def test_recording_ends_at_its_limit_and_calls_go_on(opened: Open, folder: Path) -> None:
    async with opened(bridge(), record=True, limit=100_000) as upstream:
        results = [await asked(upstream, *call("echo", text=str(number) * 30_000)) for number in range(5)]
    assert all(len(result["structuredContent"]["arguments"]["text"]) == 30_000 for result in results)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 101_000
    (session,) = folder.glob("session-*.jsonl")
    last = json.loads(session.read_text("utf-8").splitlines()[-1])
    assert "limit of" in last["stopped"]
    assert read_recording(folder)["it"].exchanges


async def test_what_fits_in_no_line_is_a_file_or_left_out(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "LONGEST_LINE", 3_000)
    numbers = list(range(2_000))
    async with opened(bridge(), record=True) as upstream:
        everything = await asked(upstream, *call("content"))
        await asked(upstream, *call("echo", numbers=numbers))
        await asked(upstream, *call("counter"))
    assert "tools/call is left out of the recording: the arguments of tools/call take more than" in caplog.text
    (session,) = folder.glob("session-*.jsonl")
    assert max(map(len, session.read_text("utf-8").splitlines())) < 3_000
    assert [one.name for one in read_recording(folder)["it"].exchanges if one.name] == ["content", "counter"]
    async with opened(replaying(folder)) as upstream:
        assert await asked(upstream, *call("content")) == everything


async def test_several_runs_are_one_recording(opened: Open, folder: Path) -> None:
    for _ in range(2):
        async with opened(bridge(), record=True) as upstream:
            await asked(upstream, *call("counter"))
    assert len(list(folder.glob("session-*.jsonl"))) == 2
    assert len(read_recording(folder)["it"].connections) == 2


async def test_concurrent_calls_are_all_recorded(opened: Open, folder: Path) -> None:
    async with (
        opened(bridge(limits=UpstreamLimits(calls=8)), record=True) as upstream,
        anyio.create_task_group() as tasks,
    ):
        for number in range(40):
            tasks.start_soon(asked, upstream, *call("echo", number=number))
    async with opened(replaying(folder)) as upstream:
        for number in reversed(range(40)):
            result = await asked(upstream, *call("echo", number=number))
            assert result["structuredContent"]["arguments"] == {"number": number}


@pytest.mark.parametrize("version", range(1, VERSION + 1))
async def test_a_recording_of_every_version_answers(opened: Open, version: int, tmp_path: Path) -> None:
    """What each version wrote is kept beside this file, and never edited."""
    written = Path(__file__).parent / f"version_{version}"
    recorded = read_recording(written)
    (tmp_path / "it").mkdir()
    for path in written.glob("session-*.jsonl"):
        (tmp_path / "it" / path.name).write_text(path.read_text("utf-8").replace('"pics"', '"it"'), "utf-8")
    (tmp_path / "it" / "media").mkdir()
    for path in written.glob("media/*"):
        (tmp_path / "it" / "media" / path.name).write_bytes(path.read_bytes())
    assert [one.method for one in recorded["pics"].exchanges][:2] == ["initialize", "tools/list"]
    async with opened(replaying(tmp_path / "it")) as upstream:
        picture = await asked(upstream, *call("picture", token="mine"))
        assert [block["type"] for block in picture["content"]] == ["text", "image"]
        assert picture["content"][1]["data"].startswith("iVBOR")
        assert (await asked(upstream, *call("fail", token="mine")))["isError"] is True
        assert await asked(upstream, *call("refuse", token="mine")) == (
            *("refused", -32000, "upstream 'it': not today", None),
        )
