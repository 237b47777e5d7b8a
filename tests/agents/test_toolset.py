"""A toolset over a real gateway with real upstreams, in process and over HTTP: a completion in, messages out."""

import base64
import json
import sys

import anyio
import pytest

import gateway
from gateway.core.wording import CALLS_REFUSED
from gateway.errors import (
    ConfigError,
    GatewayUnreachable,
    InvalidRequest,
    ProfileError,
    ToolNotAllowed,
    ToolNotOffered,
    ToolOfferedTwice,
    TurnsSpent,
    UnknownTool,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)

pytestmark = pytest.mark.anyio
LIMIT = 60
TOKEN = "a token that nobody guesses"


@pytest.fixture(autouse=True)
async def bounded():
    with anyio.fail_after(LIMIT):
        yield


def names(schemas):
    return [schema["function"]["name"] for schema in schemas]


async def test_a_picture_of_a_tool_reaches_the_model_as_a_picture(opened, chat) -> None:
    async with opened() as gw:
        tools = gw.toolset(api="openai_chat")
        completion = chat(("one__picture", {}), text="Let me look.")
        responded = await tools.respond(completion)
    assert [message["role"] for message in responded] == ["assistant", "tool", "user"]
    assert responded[0] == completion["choices"][0]["message"]
    assert responded.after == responded[1:]
    url = responded[2]["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    (result,) = responded.results
    assert result.call.name == "one__picture"
    assert [block.type for block in result.envelope.blocks] == ["text", "image"]
    assert result.envelope.meta["seen"] == 1, "results arrive as the upstream gave them"
    assert [note.kind for note in responded.notes] == ["moved"]
    assert (responded.errors, responded.refused, tools.turns) == ((), False, 1)


async def test_structured_content_stands_beside_the_messages(opened, chat) -> None:
    async with opened() as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(("one__numbers", {})))
    assert responded.results[0].structured_content == {"numbers": [1, 2]}


async def test_without_tool_calls_there_is_just_the_message_of_the_assistant(opened, chat) -> None:
    async with opened() as gw:
        tools = gw.toolset(api="openai_chat")
        responded = await tools.respond(chat(text="Done."))
        assert responded == [{"role": "assistant", "content": "Done."}]
        assert tools.refuse(chat(text="Done.")) == responded
        assert tools.turns == 0
        assert not tools.has_tool_calls(chat(text="Done."))
        assert tools.tool_call_count(chat(("a", {}), ("b", {}))) == 2


async def test_parallel_calls_run_at_once_and_keep_their_order(opened, chat) -> None:
    # The server answers none of the two before it has both.
    async with opened() as gw:
        calls = chat(("one__together", {"name": "first"}), ("one__together", {"name": "second"}))
        responded = await gw.toolset(api="openai_chat").respond(calls)
    assert [message["content"] for message in responded[1:]] == ['{"name": "first"}', '{"name": "second"}']
    assert [message["tool_call_id"] for message in responded[1:]] == ["call_0", "call_1"]


async def test_one_failing_call_hurts_no_other(opened, chat) -> None:
    completion = chat(
        ("one__echo", {"name": "a"}),
        ("one__refuse", {}),
        ("one__picture", "{not json"),
        ("one__nothing", {}),
        ("one__fail", {}),
        ("one__echo", '["no object"]'),
        ("one__echo", ""),
    )
    async with opened() as gw:
        responded = await gw.toolset(api="openai_chat").respond(completion)
    texts = [message["content"] for message in responded[1:]]
    assert texts[0] == '{"name": "a"}'
    assert "not today" in texts[1]
    assert "not a JSON object" in texts[2]
    assert "{not json" in texts[2]
    assert "one__together" in texts[3], "the nearest are named"
    assert "It broke." in texts[4]
    assert '["no object"]' in texts[5]
    assert texts[6] in ("{}", "null")
    assert [text.startswith("ERROR: ") for text in texts] == [False, True, True, True, True, True, False]
    kinds = [type(result.error) for result in responded.results]
    assert kinds[2:] == [InvalidRequest, UnknownTool, type(None), InvalidRequest, type(None)]
    assert issubclass(kinds[1], UpstreamRefused)
    assert [result.is_error for result in responded.results] == [False, True, True, True, True, True, False]
    assert len(responded.errors) == 4


async def test_a_call_that_takes_too_long_is_its_own_error(opened, chat) -> None:
    async with opened() as gw:
        tools = gw.toolset(api="openai_chat", timeout=0.5)
        responded = await tools.respond(chat(("one__never", {}), ("one__echo", {"name": "b"})))
    assert isinstance(responded.results[0].error, UpstreamTimeout)
    assert "never took longer than 0.5 s" in responded[1]["content"]
    assert responded[2]["content"] == '{"name": "b"}'


async def test_calls_beyond_the_budget_are_refused_and_nothing_is_called(opened, chat) -> None:
    async with opened() as gw:
        tools = gw.toolset(api="openai_chat", max_tool_call_turns=1, alias="eyes")
        call = chat(("one__echo", {}), ("one__echo", {}))
        assert not (await tools.respond(call)).refused
        responded = await tools.respond(call)
        assert responded.refused
        assert [message["content"] for message in responded[1:]] == [CALLS_REFUSED] * 2
        with pytest.raises(TurnsSpent, match=r"toolset 'eyes': .* after 1 turns"):
            await tools.respond(call)
        assert (await tools.respond(chat(text="Well."))) == [{"role": "assistant", "content": "Well."}]
        assert not (await tools.fresh().respond(call)).refused
        assert tools.refuse(call, "No more.")[1]["content"] == "No more."


async def test_schemas_hold_what_the_providers_offer(opened) -> None:
    async with opened("one", "two") as gw:
        both = names(await gw.toolset(api="openai_chat").schemas())
        assert len(both) == 16
        assert {"one__picture", "two__picture"} <= set(both)
        assert all(len(name) <= 64 for name in both)
        one = names(await gw.toolset(api="openai_chat", providers=["one"]).schemas())
        assert one == [name for name in both if name.startswith("one__")]
        few = gw.toolset(api="openai_chat", allow_tools=["two__echo", "one__fail"])
        assert names(await few.schemas()) == ["one__fail", "two__echo"]
        bare = gw.toolset(api="openai_chat", providers=["two"], allow_tools=["echo"])
        assert names(await bare.schemas()) == ["two__echo"]


async def test_a_tool_that_is_not_allowed_is_not_called(opened, chat) -> None:
    async with opened("one", "two") as gw:
        await gw.toolset(api="openai_chat").schemas()  # waits for both
        tools = gw.toolset(api="openai_chat", providers=["one"], allow_tools=["echo"])
        responded = await tools.respond(chat(("one__picture", {}), ("two__echo", {}), ("one__echo", {"name": "c"})))
    assert [type(error) for error in responded.errors] == [ToolNotAllowed, ToolNotAllowed]
    assert "not allowed" in responded[1]["content"]
    assert responded[3]["content"] == '{"name": "c"}'


async def test_a_long_name_is_fitted_to_the_api_and_called_all_the_same(opened, chat) -> None:
    async with opened() as gw:
        tools = gw.toolset(api="openai_chat")
        (long,) = [name for name in names(await tools.schemas()) if "long_name" in name]
        assert len(long) == 64
        assert "." not in long
        responded = await tools.respond(chat((long, {"name": "d"})))
    assert responded[1]["content"] == '{"name": "d"}'


async def test_mistakes_in_the_options_are_said_with_what_there_is(opened) -> None:
    async with opened("one", "two") as gw:
        with pytest.raises(ConfigError, match=r"toolset 'x': no provider is called 'three' \(there are: one, two\)"):
            await gw.toolset(api="openai_chat", alias="x", providers=["three"]).schemas()
        with pytest.raises(ToolNotOffered, match="'one__pictures'; the nearest: 'one__picture'"):
            await gw.toolset(api="openai_chat", allow_tools=["one__pictures"]).schemas()
        with pytest.raises(ToolNotOffered, match="'two__echo'"):
            await gw.toolset(api="openai_chat", providers=["one"], allow_tools=["two__echo"]).schemas()
        with pytest.raises(ToolOfferedTwice, match=r"'echo' is offered by one, two \(allow one of one__echo"):
            await gw.toolset(api="openai_chat", allow_tools=["echo"]).schemas()


async def test_options_that_make_no_sense_are_refused_at_once(in_process) -> None:
    async with in_process() as gw:
        with pytest.raises(ProfileError, match="did you mean 'openai_chat'"):
            gw.toolset(api="openai-chat")
        with pytest.raises(ConfigError, match="max_tool_call_turns"):
            gw.toolset(api="gemini", max_tool_call_turns=-1)
        with pytest.raises(ConfigError, match="timeout"):
            gw.toolset(api="gemini", timeout=0)
        with pytest.raises(ConfigError, match=r"allow_tools is a list of names, as \['echo'\]"):
            gw.toolset(api="gemini", allow_tools="echo")
        assert gw.toolset(api="deepseek").turns == 0, "every API of one of the four forms"


async def test_something_that_is_no_completion_is_said(in_process) -> None:
    async with in_process() as gw:
        tools = gw.toolset(api="openai_chat")
        with pytest.raises(InvalidRequest, match="not str"):
            tools.has_tool_calls("hello")
        with pytest.raises(InvalidRequest, match="not str"):
            await tools.respond("hello")


async def test_an_allowed_tool_whose_provider_does_not_start_names_the_cause(in_process) -> None:
    broken = {"upstreams": {"gone": {"command": "no-such-program-anywhere"}}}
    async with in_process(**broken) as gw:
        with pytest.raises(ToolNotOffered, match=r"'echo'; not there now: gone \(failed: .*no-such-program-anywhere"):
            await gw.toolset(api="openai_chat", allow_tools=["echo"]).schemas()


async def test_a_gateway_is_opened_from_its_file_with_its_secrets(tmp_path, monkeypatch, chat) -> None:
    monkeypatch.setenv("NAME_OF_A_SECRET", "do-not-show-me")
    file = tmp_path / "mcp-gateway.toml"
    file.write_text('[upstreams.x]\nurl = "http://127.0.0.1:9/mcp?key=${NAME_OF_A_SECRET}"\n', "utf-8")
    async with gateway.open(str(file)) as gw:
        tools = gw.toolset(api="openai_chat", allow_tools=["echo"])
        with pytest.raises(ToolNotOffered) as raised:
            await tools.schemas()
        responded = await tools.fresh().respond(chat(text="x"))
    assert "x (" in str(raised.value)
    assert "do-not-show-me" not in str(raised.value) + repr(responded)


async def test_a_configuration_that_cannot_be_used_is_said(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        async with gateway.open(tmp_path / "nowhere.toml"):
            pass
    monkey = tmp_path / "mcp-gateway.toml"
    monkey.write_text("[upstreams.x]\nport = 5\n", "utf-8")
    with pytest.raises(ConfigError, match=r"upstreams\.x\.port"):
        async with gateway.open(monkey):
            pass


async def test_what_a_program_raises_inside_arrives_as_it_was_raised(in_process, serve) -> None:
    with pytest.raises(ZeroDivisionError):
        async with in_process():
            raise ZeroDivisionError
    async with serve() as url:
        with pytest.raises(ZeroDivisionError):
            async with gateway.connect(url, token=TOKEN):
                raise ZeroDivisionError


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "words"),
    [(None, r"wants a token: connect\(url, token=\.\.\.\)"), ("some-wrong-secret", "does not take this token")],
)
async def test_a_gateway_that_does_not_take_the_token_is_said_without_it(serve, token, words) -> None:
    async with serve() as url:
        with pytest.raises(GatewayUnreachable, match=rf"^the gateway at http://127\.0\.0\.1:\d+ {words} \(") as raised:
            async with gateway.connect(url, token=token):
                pass
    assert "some-wrong-secret" not in str(raised.value)


async def test_a_url_where_nothing_listens_is_said() -> None:
    with pytest.raises(GatewayUnreachable, match=r"connection refused by http://127\.0\.0\.1:9"):
        async with gateway.connect("http://127.0.0.1:9"):
            pass
    with pytest.raises(ConfigError, match="url"):
        async with gateway.connect("ftp://nowhere"):
            pass


async def test_a_program_is_told_by_the_error_alone_and_nothing_is_printed() -> None:
    program = """
import asyncio, gateway
from gateway.errors import GatewayUnreachable
async def main():
    try:
        async with gateway.connect("http://127.0.0.1:9/mcp"):
            pass
    except GatewayUnreachable as error:
        print(error)
asyncio.run(main())
"""
    ended = await anyio.run_process([sys.executable, "-c", program])
    assert ended.stderr == b""
    assert ended.stdout.count(b"(") == 1


async def test_results_over_http_are_those_in_process(serve, in_process, chat) -> None:
    completion = chat(("one__picture", {}), ("one__numbers", {}), ("one__fail", {}))
    async with in_process() as gw:
        here = await gw.toolset(api="anthropic_messages").schemas()
        expected = await gw.toolset(api="openai_chat").respond(completion)
    async with serve() as url, gateway.connect(f"{url}/mcp", token=TOKEN) as gw:
        assert await gw.toolset(api="anthropic_messages").schemas() == here
        responded = await gw.toolset(api="openai_chat").respond(completion)
    assert json.dumps(responded) == json.dumps(expected)
    for there, known in zip(responded.results, expected.results, strict=True):
        assert there.envelope.blocks == known.envelope.blocks
        assert there.structured_content == known.structured_content


async def test_a_gateway_that_went_away_costs_the_calls_and_not_the_program(serve, chat) -> None:
    urls, leave, gone = [], anyio.Event(), anyio.Event()

    async def run(*, task_status) -> None:
        async with serve() as url:
            urls.append(url)
            task_status.started()
            await leave.wait()
        gone.set()

    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        async with gateway.connect(urls[0], token=TOKEN) as gw:
            tools = gw.toolset(api="openai_chat")
            await tools.schemas()
            leave.set()
            await gone.wait()
            responded = await tools.respond(chat(("one__echo", {})))
            assert isinstance(responded.errors[0], UpstreamError)
            assert "connection refused" in responded[1]["content"]
            with pytest.raises(GatewayUnreachable):
                await tools.schemas()
