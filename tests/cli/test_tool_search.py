"""Tool search over the command's own stdio, and `tools --search`."""

import json


def test_a_host_finds_a_tool_and_calls_it(start, pictures, ask):
    process = start("serve", "--config", pictures('[tool_search]\nmode = "always"\npinned = ["pics__pid"]\n'))
    process.initialize()
    offered = process.offered()
    assert [name for name in offered if not name.startswith("gateway_")] == ["pics__pid"]
    assert {"gateway_find_tools", "gateway_call_tool"} <= set(offered)
    assert "pics__echo(name?: string)" in ask(process, "gateway_find_tools", {"query": "echo"})
    echoed = ask(process, "gateway_call_tool", {"name": "pics__echo", "arguments": {"name": "x"}})
    assert json.loads(echoed) == {"name": "x"}
    params = {"name": "gateway_call_tool", "arguments": {"name": "pics__picture"}}
    process.send(id=7, method="tools/call", params=params)
    through = process.answer(7)["result"]
    process.send(id=8, method="tools/call", params={"name": "pics__picture", "arguments": {}})
    assert through == process.answer(8)["result"]
    assert [block["type"] for block in through["content"]] == ["text", "image"]


def test_a_host_that_searches_itself_has_the_whole_list(start, pictures):
    process = start("serve", "--config", pictures('[tool_search]\nmode = "always"\n'))
    process.initialize("claude-code")
    assert "pics__echo" in process.offered()


def test_the_command_shows_what_a_model_finds(command, pictures):
    config = pictures()
    found = command("tools", "--config", config, "--search", "give the picture")
    assert found.out.splitlines()[0] == "pics__picture(name?: string)"
    named = command("tools", "--config", config, "--search", "sound", "--json").json()["tools"]
    assert named[0]["name"] == "pics__sound"
    assert command("tools", "--config", config, "--search", "weather").out == "no tool has any of these words\n"
    long = command("tools", "--config", config, "--search", "a " * 50_000)
    assert (long.code, long.out) == (2, "")
    assert "the query has 100,000 characters, and may have 2,000" in long.err


def test_a_pattern_without_a_server_is_refused(command, pictures):
    ended = command("tools", "--config", pictures('[tool_search]\npinned = ["echo"]\n'))
    assert ended.code == 2
    assert "tool_search.pinned: 'echo' has no upstream" in ended.err


def test_a_word_that_was_meant_as_the_option_is_said_to_be(command, pictures):
    assert "did you mean --search?" in command("tools", "search", "map", "--config", pictures()).err
