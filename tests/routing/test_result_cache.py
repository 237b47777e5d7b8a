"""Results of read-only tools are kept for equal calls: for whom, for how long, and what forgets them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.policy_settings import PolicySettings, RuleSettings
from gateway.config.result_cache_settings import ResultCacheSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import ToolsSettings, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import NotAllowed, UpstreamTimeout
from gateway.routing import Router
from gateway.routing.result_cache import META_KEY, ResultCache
from gateway.telemetry.audit.trail import open_audit_trail
from gateway.telemetry.audit.verify import records_of

pytestmark = pytest.mark.anyio

ALICE = Caller(revision="2025-11-25", client_name="codex", principal="alice", session="first")
BOB = replace(ALICE, principal="bob")
READ_ONLY = {"readOnlyHint": True}
TOOLS = [
    {"name": "get_page", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "get_secretly", "inputSchema": {"type": "object"}},
    {"name": "find", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
    {"name": "write", "inputSchema": {"type": "object"}},
]


class Counting:
    """Answers each call with its number, or as it is told."""

    def __init__(self) -> None:
        self.count = 0
        self.more: dict[str, Any] = {}
        self.error: Exception | None = None
        self.go: anyio.Event | None = None

    def __call__(self, method: str, params: Mapping[str, Any]) -> Any:
        return self._answer()

    async def _answer(self) -> dict[str, Any]:
        self.count += 1
        number = self.count
        if self.go is not None:
            await self.go.wait()
        if self.error is not None:
            raise self.error
        return {"content": [{"type": "text", "text": f"{number}"}], **self.more}


@pytest.fixture
def answers() -> Counting:
    return Counting()


@pytest.fixture
def docs(fake_upstream: Any, answers: Counting) -> Any:
    settings = UpstreamSettings(command="fake", tools=ToolsSettings(cache=("get_*",), cache_ttl=60))
    return fake_upstream("docs", TOOLS, answer=answers, settings=settings)


async def call(router: Router, tool: str = "get_page", caller: Caller = ALICE, **arguments: Any) -> dict[str, Any]:
    with anyio.fail_after(30):
        return await router.respond("tools/call", {"name": f"docs__{tool}", "arguments": arguments}, caller)


def text(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


async def numbers(router: Router, *callers: Caller, tool: str = "get_page") -> list[str]:
    return [text(await call(router, tool, caller, page=1)) for caller in callers]


async def test_an_equal_call_is_answered_from_the_cache_which_says_so(router, docs):
    served = router(docs)
    first, second = await call(served, page=1), await call(served, page=1)
    assert META_KEY not in first.get("_meta", {})
    said = second["_meta"][META_KEY]
    assert text(first) == text(second) == "1"
    assert 0 <= said["ageMs"] < 30_000
    assert 30_000 < said["ttlMs"] <= 60_000
    assert text(await call(served, page=2)) == "2"
    numbers = served.telemetry.metrics.exposition().splitlines()
    assert 'mcp_gateway_calls_from_cache_total{upstream="docs"} 1' in numbers
    assert f"mcp_gateway_result_cache_bytes {served.telemetry.metrics.cached_bytes()}" in numbers
    assert served.telemetry.metrics.cached_bytes() > 0


async def test_each_principal_has_results_of_its_own_over_any_session(router, docs):
    served = router(docs)
    assert await numbers(served, ALICE, BOB, replace(ALICE, session="second"), BOB) == ["1", "2", "1", "2"]


@pytest.mark.parametrize(
    ("session", "answered"),
    [
        (None, ["1", "1", "1"]),
        ("shared", ["1", "1", "1"]),
        ("principal", ["1", "1", "1"]),
        ("client", ["1", "1", "2"]),
        ("host-session", ["1", "2", "3"]),
        ("header:X-User", ["1", "1", "2"]),
    ],
)
async def test_results_belong_to_the_owner_of_the_state_where_one_is_said(
    router, fake_upstream, answers, session, answered
):
    settings = UpstreamSettings(command="fake", tools=ToolsSettings(cache=("get_*",), cache_ttl=60), session=session)
    served = router(fake_upstream("docs", TOOLS, answer=answers, settings=settings))
    other = replace(ALICE, session="third", client_name="cursor")
    assert await numbers(served, ALICE, replace(ALICE, session="second"), other) == answered


@pytest.mark.parametrize("tool", ["get_secretly", "find", "write"])
async def test_other_tools_are_asked_each_time(router, docs, tool):
    assert await numbers(router(docs), ALICE, ALICE, tool=tool) == ["1", "2"]


@pytest.mark.parametrize("tool", ["get_secretly", "write"])
async def test_a_call_that_may_change_something_forgets(router, docs, tool):
    served = router(docs)
    await numbers(served, ALICE)
    await call(served, tool)
    assert await numbers(served, ALICE) == ["3"]


@pytest.mark.parametrize("more", [{"isError": True}, {"ttlMs": 0}, {"resultType": "input_required"}])
async def test_what_is_not_kept(router, docs, answers, more):
    answers.more = more
    assert await numbers(router(docs), ALICE, ALICE) == ["1", "2"]


async def test_the_lifetime_that_a_result_names_is_respected(router, docs, answers):
    now = 0.0
    cache = ResultCache(clock=lambda: now)
    await cache.keep("key", {"content": [], "ttlMs": 5_000}, "docs", "alice", 60.0, 0)
    assert cache.find("key") is not None
    now = 5.0
    assert cache.find("key") is None
    await cache.keep("key", {"content": [], "ttlMs": 500_000}, "docs", "alice", 60.0, 0)
    now = 64.0
    assert cache.find("key") is not None
    now = 65.0
    assert cache.find("key") is None
    assert len(cache) == 0


@pytest.mark.parametrize("kind", ["tools", "resources", "state", "updated:docs://a"])
async def test_what_an_upstream_announces_forgets_its_results_and_no_others(router, docs, fake_upstream, answers, kind):
    other = fake_upstream("other", TOOLS, answer=answers, settings=docs.settings)
    served = router(docs, other)
    params = {"name": "other__get_page", "arguments": {}}
    kept = await served.respond("tools/call", params, ALICE)
    await numbers(served, ALICE)
    served.upstream_changed("docs", kind)
    assert await numbers(served, ALICE) == ["3"]
    assert text(await served.respond("tools/call", params, ALICE)) == text(kept)


async def test_what_changes_during_a_call_is_not_kept(router, docs, answers):
    served, answers.go = router(docs), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(numbers, served, ALICE)
        await anyio.wait_all_tasks_blocked()
        served.upstream_changed("docs", "resources")
        answers.go.set()
    assert await numbers(served, ALICE) == ["2"]


async def test_a_reload_forgets(router, docs, shaper, profiles):
    served = router(docs)
    await numbers(served, ALICE)
    served.reconfigure(Settings(), profiles, shaper)
    assert await numbers(served, ALICE) == ["2"]


async def test_a_rule_forbids_what_is_kept(router, docs, shaper, profiles):
    served = router(docs)
    await numbers(served, ALICE)
    rule = RuleSettings(name="none", effect="deny", tools=("docs__get_page",), arguments={"required": ["page"]})
    served.reconfigure(Settings(policy=PolicySettings(rules=(rule,))), profiles, shaper)
    with pytest.raises(NotAllowed):
        await numbers(served, ALICE)


async def test_equal_calls_at_once_ask_once(router, docs, answers):
    served, answers.go = router(docs), anyio.Event()
    found: list[str] = []

    async def ask() -> None:
        found.extend(await numbers(served, ALICE))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        answers.go.set()
    assert found == ["1"] * 5


async def test_a_failure_is_that_of_all_that_waited_and_is_not_kept(router, docs, answers):
    served, answers.go, answers.error = router(docs), anyio.Event(), UpstreamTimeout("docs", "too long")
    failed: list[str] = []

    async def ask() -> None:
        with pytest.raises(UpstreamTimeout) as raised:
            await numbers(served, ALICE)
        failed.append(raised.value.message)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        answers.go.set()
    assert len(failed) == 3
    assert answers.count == 1
    answers.error = None
    assert await numbers(served, ALICE) == ["2"]


async def test_if_the_one_that_asks_is_cancelled_another_asks(router, docs, answers):
    served, answers.go = router(docs), anyio.Event()
    found: list[str] = []

    async def ask() -> None:
        found.extend(await numbers(served, ALICE))

    async with anyio.create_task_group() as tasks:
        first = anyio.CancelScope()

        async def cancelled() -> None:
            with first:
                await ask()

        tasks.start_soon(cancelled)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        answers.go.set()
    assert found == ["2"]


async def test_what_is_too_large_makes_way_first_that_of_whoever_has_most():
    cache = ResultCache(ResultCacheSettings(max_bytes=5_000, max_result_bytes=2_000))

    async def keep(key: str, size: int, principal: str) -> None:
        result = {"content": [{"type": "text", "text": "x" * size}]}
        await cache.keep(key, result, "docs", principal, 60.0, 0)

    await keep("large", 3_000, "alice")
    assert cache.find("large") is None
    await cache.keep("many", {"structuredContent": {"rows": [[]] * 200}}, "docs", "alice", 60.0, 0)
    assert cache.find("many") is None, "small values take more memory than characters"
    await keep("bob", 500, "bob")
    for number in range(4):
        await keep(f"alice {number}", 1_500, "alice")
    assert [cache.find(key) is not None for key in ("bob", "alice 0", "alice 1", "alice 2", "alice 3")] == [
        *(True, False, False, True, True)
    ]


async def test_the_audit_trail_and_the_log_say_so(router, docs, tmp_path: Path, caplog):
    settings = Settings.model_validate({"audit": {"path": tmp_path / "audit.jsonl"}})
    async with open_audit_trail(settings, lambda _: None) as trail:
        served = router(docs, audit=trail)
        with caplog.at_level("INFO"):
            await numbers(served, ALICE, ALICE)
    first, second = [each for each in records_of(tmp_path / "audit.jsonl") if each["event"] == "tools/call"]
    assert "from_cache" not in first
    assert second["from_cache"] is True
    assert first["returned"] == second["returned"]
    lines = [line for line in caplog.messages if line.startswith("call docs__get_page")]
    assert [", from the cache;" in line for line in lines] == [False, True]
