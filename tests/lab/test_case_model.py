"""The model of the lab's hosts: what it calls, by what it is offered and what it has called."""

from typing import Any

import pytest

from gateway.testing.model_apis import conversation
from gateway.testing.model_apis.scripts import Reply
from lab.case_model import CaseModel, called_tool, prompt

MODEL = CaseModel({"text": ("text",), "in_text": ("in_text",), "at_once": ("chart", "webp")})
ASKED = {"role": "user", "content": prompt("lab-x-1", ["text", "in_text", "at_once"])}


def reply(messages: list[dict[str, Any]], *tools: dict[str, Any]) -> Reply:
    read = conversation("openai_responses", {"model": "gpt-5.5", "input": messages, "tools": list(tools) or None})
    assert read is not None
    return MODEL(read)


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object"}}


def called(*names: str, number: int = 1) -> list[dict[str, Any]]:
    ids = [(f"c{number}{at}", name) for at, name in enumerate(names)]
    calls = [{"type": "function_call", "call_id": id, "name": name, "arguments": "{}"} for id, name in ids]
    return [*calls, *({"type": "function_call_output", "call_id": id, "output": "words"} for id, _ in ids)]


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("case_text", "text"),
        ("mcp__cases__case_in_text", "in_text"),
        ("mcp__cases__cases__case_chart", "chart"),
        ("cases-case_chart", "chart"),
        ("lowercase_text", None),
        ("read_file", None),
    ],
)
def test_a_tool_of_a_case_is_known_by_its_name_in_any_host(name: str, tool: str | None) -> None:
    assert called_tool(name) == tool


def test_it_calls_the_cases_in_turn_under_the_hosts_names_then_ends() -> None:
    tools = [function(f"mcp__x__case_{name}") for name in ("text", "in_text", "chart", "webp")]
    history = [ASKED]
    made: list[list[str]] = []
    while calls := [call.name for call in reply(history, *tools).calls]:
        made.append(calls)
        history += called(*calls, number=len(made))
    assert made == [["mcp__x__case_text"], ["mcp__x__case_in_text"], ["mcp__x__case_chart", "mcp__x__case_webp"]]


def test_it_says_something_where_no_case_is_asked_for_or_no_tool_offered() -> None:
    assert reply([ASKED]).text
    assert not reply([{"role": "user", "content": "A title, please."}], function("case_text")).calls


def test_it_searches_for_what_is_not_offered_and_calls_what_was_found_in_a_namespace() -> None:
    search = {"type": "tool_search", "execution": "client", "parameters": {}}
    (call,) = reply([ASKED], search).calls
    assert (call.name, "case_text" in call.arguments["query"]) == ("tool_search", True)
    found = {"type": "namespace", "name": "mcp__cases", "tools": [function("case_text")]}
    history = [
        ASKED,
        {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": call.arguments},
        {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": [found]},
    ]
    assert [one.name for one in reply(history, search).calls] == ["mcp__cases/case_text"]


def test_a_tool_that_a_host_names_only_in_its_texts_is_called_by_that_name_after_a_search() -> None:
    deferred = {"role": "user", "content": "Deferred tools: mcp__cases__case_text"}
    tools = [function("tool_search")]
    assert [one.name for one in reply([deferred, ASKED], *tools).calls] == ["tool_search"]
    history = [deferred, ASKED, *called("tool_search")]
    assert [one.name for one in reply(history, *tools).calls] == ["mcp__cases__case_text"]
