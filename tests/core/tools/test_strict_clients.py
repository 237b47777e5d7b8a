"""Whatever upstreams declare, strict clients take the lists: the Python SDK's models, and `AnyUrl` as in its 1.x."""

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, TypeAdapter

from gateway.core.model.json_shape import NESTED_TOO_DEEPLY
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import build, build_prompts
from gateway.core.tools.catalogue.repair import repaired_resource

DEEP: Any = 1
for _ in range(110):
    DEEP = [DEEP]

ODD = st.sampled_from(
    [None, True, 5, -1, 1.5, 0.5, "x", "", "user", "high", NESTED_TOO_DEEPLY, [], ["user"], ["everybody"], [[]], [None]]
) | st.dictionaries(
    st.sampled_from(
        ["a", "title", "readOnlyHint", "taskSupport", "audience", "priority", "lastModified", "src", "name"]
    ),
    st.sampled_from([None, True, 5, 0.5, "x", "required", "user", ["user"], ["nobody"], {}, NESTED_TOO_DEEPLY]),
    max_size=3,
)
ICON = st.fixed_dictionaries(
    {"src": st.just("data:,")}, optional={"mimeType": ODD, "sizes": ODD, "theme": ODD | st.just("dark")}
)
WORDS = {"title": ODD, "description": ODD, "_meta": ODD, "icons": ODD | st.lists(ICON, max_size=2)}
RESOURCE = {**WORDS, "mimeType": ODD, "size": ODD, "annotations": ODD}
ARGUMENT = st.fixed_dictionaries({"name": ODD}, optional={"title": ODD, "description": ODD, "required": ODD})
TOOL = st.fixed_dictionaries(
    {"name": st.just("sound") | ODD, "inputSchema": st.just({"type": "object"})},
    optional={**WORDS, "annotations": ODD, "execution": ODD, "outputSchema": ODD},
)


@given(st.lists(st.fixed_dictionaries({"name": st.just("n") | ODD, "uri": st.just("x://y") | ODD}, optional=RESOURCE)))
def test_resources(declared: Any):
    kept = [one for each in declared if (one := repaired_resource(each, "uri")) is not None]
    types.ListResourcesResult.model_validate({"resources": kept, "ttlMs": 0, "cacheScope": "private"})
    for one in kept:
        TypeAdapter(AnyUrl).validate_python(one["uri"])
    assert len(kept) >= sum(each["name"] == "n" and each["uri"] == "x://y" for each in declared)


@given(
    st.lists(
        st.fixed_dictionaries({"name": st.just("n") | ODD, "uriTemplate": st.just("x://{y}") | ODD}, optional=RESOURCE)
    )
)
def test_templates(declared: Any):
    kept = [one for each in declared if (one := repaired_resource(each, "uriTemplate")) is not None]
    types.ListResourceTemplatesResult.model_validate({"resourceTemplates": kept, "ttlMs": 0, "cacheScope": "private"})
    assert len(kept) >= sum(each["name"] == "n" and each["uriTemplate"] == "x://{y}" for each in declared)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.just("sound") | ODD}, optional={**WORDS, "arguments": ODD | st.lists(ARGUMENT, max_size=2)}
        )
    )
)
def test_prompts(declared: Any):
    kept = build_prompts({"a": declared}, "always").prompts
    types.ListPromptsResult.model_validate({"prompts": kept, "ttlMs": 0, "cacheScope": "private"})


@given(st.lists(TOOL))
def test_tools(declared: Any):
    kept = build({"a": declared}, {}, "always", Profile(name="host")).tools
    types.ListToolsResult.model_validate({"tools": kept, "ttlMs": 0, "cacheScope": "private"})
    assert any(tool["name"] == "a__sound" for tool in kept) >= any(tool["name"] == "sound" for tool in declared)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("mimeType", 5),
        ("size", "big"),
        ("title", 3),
        ("description", [1]),
        ("icons", [3]),
        ("icons", [{"src": "data:,", "sizes": "48x48"}]),
        ("_meta", 4),
        ("annotations", "x"),
        ("title", NESTED_TOO_DEEPLY),
    ],
)
@pytest.mark.parametrize("key", ["uri", "uriTemplate"])
def test_a_resource_loses_a_member_that_is_not_what_it_must_be_and_is_listed(key: str, member: str, value: Any):
    sound = {key: "x://{y}", "name": "n", "size": 3, "annotations": {"priority": 1}, "later": [None]}
    assert repaired_resource({**sound, member: value}, key) == {each: sound[each] for each in sound if each != member}


def test_of_annotations_only_what_is_wrong_is_left_out():
    odd = {"audience": ["user", "everybody"], "priority": "high", "lastModified": 4, "later": 1}
    sound = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}
    for given_ones, kept in ((odd, {"later": 1}), (sound, sound), ({"priority": True}, {}), ({"priority": 2}, {})):
        found = repaired_resource({"uri": "x://y", "name": "n", "annotations": given_ones}, "uri")
        assert found is not None
        assert found["annotations"] == kept


@pytest.mark.parametrize("uri", ["not a uri", "/path", "", NESTED_TOO_DEEPLY, "http://", 5, None, DEEP])
def test_what_is_no_uri_withholds_its_resource(uri: Any):
    assert repaired_resource({"uri": uri, "name": "n"}, "uri") is None


@pytest.mark.parametrize("uri", ["x:y", "file:///a b", "ui://a/b", "urn:isbn:1", "mailto:a@b.c", "x://ü/?"])
def test_what_is_a_uri_of_any_kind_is_listed(uri: str):
    assert repaired_resource({"uri": uri, "name": "n"}, "uri") == {"uri": uri, "name": "n"}


def test_what_nests_so_deeply_that_its_name_is_lost_is_withheld_with_a_note():
    tools: list[Any] = [{"name": NESTED_TOO_DEEPLY, "inputSchema": {"type": "object"}}]
    found = build({"a": [*tools, {**tools[0], "name": "b"}]}, {}, "always", Profile(name="host"))
    assert [tool["name"] for tool in found.tools] == ["a__b"]
    assert "tool number 1" in " ".join(note.text for note in found.notes)
    assert "nests deeper than 100 levels" in " ".join(note.text for note in found.notes)
    prompts = build_prompts({"a": [{"name": NESTED_TOO_DEEPLY}, {"name": "b"}]}, "always")
    assert [prompt["name"] for prompt in prompts.prompts] == ["a__b"]
    assert [note.text for note in prompts.problems] == ["a: prompt number 1 withheld: it nests deeper than 100 levels"]
    for lost in ({"name": NESTED_TOO_DEEPLY, "uri": "x://y"}, {"name": "n", "uri": NESTED_TOO_DEEPLY}):
        assert repaired_resource(lost, "uri") is None
