"""The model that real hosts are given: it calls the tools of all cases, one case after the other, then ends.

Which cases is in the prompt, so that one start of a host is enough for many. What it has called is read from each
request: it answers the same request the same way, however often a host sends it.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.testing.model_apis.read_request import Conversation, Message
from gateway.testing.model_apis.scripts import Reply, ToolCall

PREFIX = "case_"
"""Of the tools' names, so that no tool of a host itself is taken for one."""
_ORDER = re.compile(r"run (lab-[a-z0-9-]+) with the cases ([a-z_, ]+);")
_TOOL = re.compile(rf"(?:^|[^a-z]){PREFIX}([a-z_]+)$")
_NAME = re.compile(rf"\b[A-Za-z0-9_-]+__{PREFIX}[a-z_]+\b")
_SEARCH = re.compile(r"tool_?search|search_?tools?|find_?tools?", re.IGNORECASE)
_WAITS = (0.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before each search for the tools of a session's first case: a host may begin before its servers have. After
the last one, and for later cases after the first, a tool that is not offered is called all the same."""

Cases = Mapping[str, Sequence[str]]
"""The tools that each case calls at once, without `PREFIX`."""


def prompt(mark: str, names: Sequence[str]) -> str:
    """What the user of a host says."""
    return f"Please run {mark} with the cases {', '.join(names)}; use the tools of the MCP server, one case at a time."


def called_tool(name: str) -> str | None:
    """The tool of a case that a host's name stands for, such as `chart` for `mcp__cases__case_chart`."""
    found = _TOOL.search(name)
    return found[1] if found else None


def made(read: Conversation) -> int:
    """How many calls of our tools a request has."""
    return sum(called_tool(call.name) is not None for message in read.messages for call in message.calls)


@dataclass(frozen=True)
class CaseModel:
    """The model. It looks for tools that a host offers only to whoever searches for them."""

    cases: Cases

    def __call__(self, conversation: Conversation) -> Reply:
        """Return the calls of the next case, a search for its tools, or the last words."""
        if not (order := _order(conversation.messages)) or not conversation.tools:
            return Reply(text="The lab")
        done = made(conversation)
        for name in order:
            tools = self.cases[name]
            if done < len(tools):
                return self._calls(tools, conversation)
            done -= len(tools)
        return Reply(text="All cases were run.")

    def _calls(self, tools: Sequence[str], conversation: Conversation) -> Reply:
        offered = {tool: name for name in conversation.tools if (tool := called_tool(name))}
        if offered.keys() >= set(tools):
            return Reply(calls=tuple(ToolCall(offered[tool]) for tool in tools))
        searches = [name for name in conversation.tools if _SEARCH.search(name)]
        searched = _searched(conversation.messages, searches)
        mentioned = _mentioned(conversation.messages)
        waits = _WAITS[:1] if mentioned.keys() >= set(tools) or made(conversation) else _WAITS
        if searches and searched < len(waits):
            time.sleep(waits[searched])
            words = " ".join(f"{PREFIX}{tool}: returns the case {tool}" for tool in tools)
            return Reply(calls=(ToolCall(searches[0], {"query": words}),))
        return Reply(calls=tuple(ToolCall(offered.get(tool) or mentioned.get(tool, PREFIX + tool)) for tool in tools))


def _mentioned(messages: Sequence[Message]) -> dict[str, str]:
    """The names of tools that a host gives only in its texts, by our own."""
    words = (word for message in messages for word in _NAME.findall(message.text))
    return {tool: word for word in words if (tool := called_tool(word))}


def _searched(messages: Sequence[Message], searches: Sequence[str]) -> int:
    """How often it has searched since it last called a tool of a case."""
    count = 0
    for call in (call for message in messages for call in message.calls):
        count = 0 if called_tool(call.name) else count + (call.name in searches)
    return count


def _order(messages: Sequence[Message]) -> list[str]:
    """The cases that the user wants, from what was said last."""
    for message in reversed(messages):
        if message.role == "user" and (found := _ORDER.search(message.text)):
            return found[2].split(", ")
    return []
