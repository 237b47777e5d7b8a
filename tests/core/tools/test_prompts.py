from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.tools.catalogue import PromptCatalogue, PromptRoute, build_prompts


def names(found: PromptCatalogue) -> list[str]:
    return [prompt["name"] for prompt in found.prompts]


def texts(found: PromptCatalogue) -> list[str]:
    return [note.text for note in found.notes]


def test_prompts_come_in_the_order_of_the_configuration_under_their_upstreams_names():
    found = build_prompts({"b": [{"name": "z"}, {"name": "a"}], "a": [{"name": "z"}]}, "always")
    assert names(found) == ["b__z", "b__a", "a__z"]
    assert found.routes["a__z"] == PromptRoute("a", "z")
    assert found.notes == ()


def test_when_needed_prefixes_all_prompts_that_share_a_name_and_no_others():
    found = build_prompts({"a": [{"name": "x"}, {"name": "y"}], "b": [{"name": "x"}]}, "when-needed")
    assert names(found) == ["a__x", "y", "b__x"]
    assert found.problems == ()


def test_without_prefixes_the_first_upstream_keeps_a_name_and_the_collision_is_a_problem():
    found = build_prompts({"a": [{"name": "x"}], "b": [{"name": "x"}]}, "never")
    assert names(found) == ["x", "b__x"]
    assert [note.text for note in found.problems] == [
        "prompt 'x' of b is offered as 'b__x': another prompt has that name"
    ]
    assert set(found.problems) <= set(found.notes)


def test_what_a_prompt_says_stays_down_to_the_same_objects():
    prompt = {
        "name": "x",
        "title": "X",
        "arguments": [{"name": "code", "title": "Code", "required": True, "later": [None]}],
        "icons": [{"src": "data:,"}],
        "_meta": {"a/b": {"c": 1}},
        "later": {"kept": None},
    }
    (offered,) = build_prompts({"a": [prompt]}, "always").prompts
    assert offered == {**prompt, "name": "a__x"}
    assert all(offered[key] is prompt[key] for key in prompt if key != "name")


def test_a_name_may_hold_what_no_tool_could_but_nothing_that_a_terminal_obeys():
    found = build_prompts({"a": [{"name": "naïve ☃/x"}, {"name": "\x1b[2J"}, {"name": "n" * 400}]}, "never")
    assert names(found)[:2] == ["naïve ☃/x", "_[2J"]
    assert len(names(found)[2]) == 256
    assert found.routes["_[2J"].prompt == "\x1b[2J"
    assert "\x1b" not in "".join(texts(found))


def test_malformed_prompts_are_withheld_with_a_note_and_cost_only_themselves():
    listed: list[Any] = [3, {}, {"name": " "}, {"name": "a", "arguments": "x"}, {"name": "b", "arguments": [{}]}]
    found = build_prompts({"u": [*listed, {"name": "good"}, {"name": "good"}]}, "always")
    assert names(found) == ["u__good"]
    assert [note.kind for note in found.problems] == ["dropped"] * 6
    assert texts(found)[3] == "u: prompt 'a' withheld: its arguments are not a list of objects with names"
    assert texts(found)[-1] == "u: a second prompt named 'good' withheld"


def test_malformed_members_are_left_out_and_control_characters_made_visible():
    prompt = {
        "name": "x",
        "title": 3,
        "description": "red \x1b[31m",
        "arguments": [{"name": "n", "required": "yes", "description": "\x07"}, {"name": "sound", "required": False}],
        "_meta": [],
    }
    found = build_prompts({"a": [prompt]}, "never")
    assert found.prompts == (
        {
            "name": "x",
            "description": "red ␛[31m",
            "arguments": [{"name": "n", "description": "␇"}, {"name": "sound", "required": False}],
        },
    )
    assert len(found.notes) == 5
    assert found.problems == ()
    assert build_prompts({"a": [{"name": "x", "arguments": None}]}, "never").prompts == ({"name": "x"},)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.text(max_size=9).map(lambda name: {"name": name}))))
def test_every_offered_name_is_unique_and_leads_to_its_own_prompt(listed: Any):
    for prefix in ("always", "when-needed", "never"):
        found = build_prompts(listed, prefix)
        assert len(set(names(found))) == len(found.prompts) == len(found.routes)
        assert len(set(found.routes.values())) == len(found.routes)
