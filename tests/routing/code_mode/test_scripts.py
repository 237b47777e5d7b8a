"""Scripts: what their calls return, what their hosts are shown, and what stops them."""

import base64
import time
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from gateway.config.policy_settings import PolicySettings
from tests.routing.code_mode.conftest import HOST, texts

pytestmark = pytest.mark.anyio


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - another process writes the file
        await anyio.sleep(0.02)


SHOT = 'browser__screenshot("http://old.example/1")'


async def test_the_tool_tells_the_functions_with_their_types(opened):
    async with opened() as host:
        tool = await host.tool()
    assert "browser__screenshot(url: string, full_page?: boolean)\n  Takes a screenshot" in tool["description"]
    assert "browser__compare(a: Media, b: Media) -> {difference: number}" in tool["description"]
    assert "browser__log_lines(max-lines?: integer)" in tool["description"]
    assert "click" not in tool["description"]
    assert tool["annotations"]["readOnlyHint"] is True


async def test_without_it_nothing_is_offered(opened):
    async with opened(enabled=False) as host:
        tools = (await host.router.respond("tools/list", {}, host.caller))["tools"]
    assert "gateway_run" not in [tool["name"] for tool in tools]


async def test_beyond_the_budget_functions_are_found_by_searching(opened):
    async with opened(signature_tokens=10) as host:
        assert "browser__* (8)" in (await host.tool())["description"]
        found = await host.says('print(find_tools("screenshot of a page"))')
        assert found.startswith("browser__screenshot(url: string, full_page?: boolean)")
        assert "no function" in await host.says('print(find_tools("zzz"))')
        assert "may have 2,000" in await host.says('print(find_tools("x" * 5000))')


async def test_results_are_data_text_and_media(opened):
    async with opened() as host:
        said = await host.says(
            f"shot = {SHOT}\n"
            "print(shot.type, shot.mime_type, shot.width, shot.height, shot.size > 1000, shot.uri[:10])\n"
            "print(browser__compare(shot, shot)['difference'])\n"
            "print(browser__words('hi'))\n"
            "report = browser__report()\n"
            "print(report[0], [type(part).__name__ for part in report], media(report)[0].width)\n"
            "note = browser__note()\n"
            "print(note[0], note[1].mime_type, note[1].name, read_bytes(note[1])[:5])\n"
        )
        assert said.splitlines() == [
            "image image/png 1280 800 True content://",
            "0.0",
            '{"text": "hi"}',
            "{'pages': 3} ['dict', 'Media'] 1280",
            "a note application/pdf note.pdf b'%PDF-'",
        ]
        given = next(call for call in host.calls if call["name"] == "compare")["arguments"]
        assert base64.b64decode(given["a"]).startswith(b"\x89PNG")


async def test_nothing_is_shown_but_what_the_script_shows_in_its_order(opened):
    async with opened() as host:
        result = await host.run(f"print('before')\nshow({SHOT}, 'between')\nprint('after')\n{{'a': 1}}")
        kinds = [block["type"] for block in result["content"]]
        assert kinds.count("image") == 1
        said = texts(result)
        assert said.index("before") < said.index("between") < said.index("after") < said.index('{"a":1}')
        nothing = await host.run(f"shot = {SHOT}")
        assert "without showing anything" in texts(nothing)
        assert len(nothing["content"]) == 1


async def test_a_host_without_pictures_gets_what_is_shown_in_its_own_shape(opened):
    async with opened() as host:
        plain = host.as_(replace(HOST, profile="text-only"))
        result = await plain.run(f"show({SHOT})")
        assert [block["type"] for block in result["content"]] == ["text"]
        assert "image/png" in texts(result)


async def test_a_profiles_budget_in_tokens_holds_for_the_whole_result(opened):
    sections = {"profiles": {"small": {"extends": "default", "sets": {"tokens": {"max_result": 500}}}}}
    async with opened(sections) as host:
        small = host.as_(replace(HOST, profile="small"))
        said = texts(await small.run("for i in range(400): print('line', i, 'of many')"))
        assert "line 0 of many" in said
        assert "line 200 of many" not in said


async def test_a_script_that_awaits_has_its_calls_at_the_same_time(opened):
    async with opened() as host:
        began = time.monotonic()
        said = await host.says(
            "import asyncio\n"
            "waited = await asyncio.gather(*[browser__wait(seconds=1) for _ in range(6)])\n"
            "print(len(waited), (await browser__words(text='x')))"
        )
        assert said == '6 {"text": "x"}'
        assert time.monotonic() - began < 5


async def test_helpers_may_be_awaited_or_not(opened):
    async with opened() as host:
        assert await host.says(f"shot = await {SHOT}\nawait show(len(media(shot)))\nshow('x')") == "1\nx"


async def test_arguments_are_bound_as_python_binds_them(opened):
    async with opened() as host:
        assert await host.says("browser__log_lines(**{'max-lines': 3})") == '{"max-lines": 3}'
        assert "takes 1 argument but 2 were given" in await host.fails("browser__words(1, 2)")
        assert "several values for 'text'" in await host.fails("browser__words('a', text='b')")
        assert "browser__words" in await host.fails("browser__words(txt={1, 2})")
        assert "bytes cannot be an argument" in await host.fails("browser__words(b'x')")
        assert "nest deeper than 100" in await host.fails("x = []\nfor i in range(5000): x = [x]\nbrowser__words(x)")


async def test_a_failed_tool_raises_and_can_be_caught(opened):
    async with opened() as host:
        said = await host.says("try:\n    browser__fail()\nexcept RuntimeError as error:\n    print('caught', error)")
        assert said == "caught browser__fail: the page is gone"


async def test_a_failed_script_returns_what_it_had_shown_and_the_line(opened):
    async with opened() as host:
        host = host.as_(replace(HOST, profile="passthrough"))
        result = await host.run(f"show({SHOT})\nprint('one')\n\nbrowser__fail()\nprint('two')")
        assert result["isError"] is True
        assert "image" in [block["type"] for block in result["content"]]
        assert texts(result).endswith(
            "one\n[the script failed at line 4: RuntimeError: browser__fail: the page is gone]\nbrowser__fail()"
        )


async def test_only_tools_that_read_are_functions_unless_they_are_named(opened):
    async with opened() as host:
        assert "scripts may not call browser__click: call the tool by itself, outside" in await host.fails(
            "browser__click('a')"
        )
        assert not host.calls
        found = await host.says('print(find_tools("click"))')
        assert "[tools that only the model calls, outside of scripts: browser__click]" in found
    async with opened(may_change=("browser__cl*",), tools=("other__*",)) as host:
        assert await host.says("browser__click('a')") == '{"selector": "a"}'
        assert "scripts may not call browser__words" in await host.fails("browser__words('a')")
        assert (await host.tool())["annotations"]["readOnlyHint"] is False


async def test_nothing_is_said_of_a_tool_that_the_caller_may_not_call_itself(opened):
    rule = {"name": "quiet", "effect": "deny", "tools": ["browser__click"]}
    async with opened({"policy": PolicySettings.model_validate({"rules": [rule]})}) as host:
        assert "'browser__click' is not defined" in await host.fails("browser__click('a')")
        assert "browser__click" not in await host.says('print(find_tools("click"))')


async def test_a_handle_that_the_model_knows_can_be_opened_by_its_owner_alone(opened):
    async with opened() as host:
        handle = await host.says(f"print({SHOT}.handle)")
        assert await host.says(f"open_media('{handle}').width") == "1280"
        stranger = host.as_(replace(HOST, principal="eve", session="s2"))
        assert "no content" in (await stranger.fails(f"show(open_media('{handle}'))")).lower()
        assert "image" not in [block["type"] for block in (await stranger.run(f"show('{handle}')"))["content"]]


async def test_a_cancelled_host_cancels_the_calls_of_its_script(opened, tmp_path):
    async with opened() as host:
        async with anyio.create_task_group() as group:
            group.start_soon(host.run, "browser__wait(60)")
            await until(lambda: bool(host.calls))
            group.cancel_scope.cancel()
        await until(lambda: "notifications/cancelled" in (tmp_path / "log").read_text("utf-8"))
        assert await host.says("1 + 1") == "2"
