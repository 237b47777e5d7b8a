"""Which tools a toolset has, on plain data: what a strange gateway lists is said, and never a crash."""

import pytest

from gateway.agents.source import Offer, Offered
from gateway.agents.tool_selection import choose_tools
from gateway.core.model_apis import gemini, openai_chat
from gateway.errors import ToolNotOffered, ToolOfferedTwice, UnknownTool


def offered(*names: str) -> list[Offered]:
    return [Offered({"name": name}, name.split("__")[0], name.split("__")[-1]) for name in names]


def test_a_gateway_that_lists_a_name_twice_is_refused() -> None:
    offer = Offer(offered("a__x", "b__y", "a__x"), ["a", "b"])
    with pytest.raises(ToolOfferedTwice, match="who: the gateway lists 'a__x' more than once"):
        choose_tools(offer, None, None, openai_chat.NAMES, "who: ")


def test_names_that_become_the_same_are_told_apart_whatever_is_allowed() -> None:
    offer = Offer(offered("a__x.y", "a__x_y"), ["a"])
    every = choose_tools(offer, None, None, openai_chat.NAMES, "")
    first, second = every.tools
    assert (first, every.tools[second].name) == ("a__x_y", "a__x_y")
    assert every.tools[first].name == "a__x.y"
    few = choose_tools(offer, None, ["a__x_y"], openai_chat.NAMES, "")
    assert list(few.tools) == [second]
    assert [tool["name"] for tool in few.described()] == [second]
    assert few.others == {first}


def test_a_name_as_offered_is_meant_before_one_of_an_upstream() -> None:
    offer = Offer([Offered({"name": "x"}, "a", "y"), Offered({"name": "z"}, "b", "x")], ["a", "b"])
    assert list(choose_tools(offer, None, ["x"], openai_chat.NAMES, "").tools) == ["x"]


def test_a_name_begins_as_gemini_wants_it() -> None:
    chosen = choose_tools(Offer(offered("1a__x"), ["1a"]), None, None, gemini.NAMES, "")
    assert chosen.find("_a__x").name == "1a__x"


def test_nothing_allowed_is_nothing_and_nothing_offered_is_said() -> None:
    offer = Offer(offered("a__x"), ["a"], ["b (failed: no such program)"])
    assert not choose_tools(offer, None, [], openai_chat.NAMES, "").tools
    with pytest.raises(ToolNotOffered, match=r"'b__y'; not there now: b \(failed: no such program\)"):
        choose_tools(offer, None, ["b__y"], openai_chat.NAMES, "")
    with pytest.raises(UnknownTool, match="there is no tool named 'a b'"):
        choose_tools(offer, None, None, openai_chat.NAMES, "").find("a\x1b\nb")
