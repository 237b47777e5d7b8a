"""Profiles: what extends what, which value wins, how it is known, and what a revision cannot carry."""

from datetime import date

import pytest

from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.host_profiles import NARROWINGS, PATHS, narrow, resolve_profiles, set_paths, value_at
from gateway.core.profiles.profile import Fact, Level, Match, Profile, ProfileSource
from gateway.errors import ProfileError

ROOTS = {"passthrough": ProfileSource(), "default": ProfileSource(sets={"rescue": True})}


def source(**fields) -> ProfileSource:
    return ProfileSource.model_validate(fields)


def fact(level: Level = "measured", **sets) -> Fact:
    return Fact(level=level, source=f"a {level} source", host_version="1.0", checked=date(2026, 11, 20), sets=sets)


def resolve(**sources: ProfileSource):
    return resolve_profiles({**ROOTS, **sources})


def failure(**sources: ProfileSource) -> str:
    with pytest.raises(ProfileError) as caught:
        resolve(**sources)
    return str(caught.value)


def test_a_profile_extends_the_default_which_extends_passthrough_which_extends_nothing():
    resolved = resolve(mine=ProfileSource())
    assert [profile.lineage for profile in resolved.values()] == [
        (),
        ("passthrough",),
        ("default", "passthrough"),
    ]


def test_the_order_of_the_sources_is_kept_and_does_not_matter_for_what_extends_what():
    resolved = resolve_profiles({"b": source(extends="a"), "a": source(sets={"rescue": True}), **ROOTS})
    assert list(resolved) == ["b", "a", "passthrough", "default"]
    assert resolved["b"].rescue


def test_values_come_from_the_nearest_that_sets_them():
    resolved = resolve(
        a=source(sets={"image": {"max_edge": 100, "max_count": 3}}),
        b=source(extends="a", sets={"image.max_edge": 50}),
    )
    assert (resolved["b"].image.max_edge, resolved["b"].image.max_count, resolved["b"].rescue) == (50, 3, True)


def test_identity_is_not_inherited():
    resolved = resolve(a=source(title="A", about="all of it", match=[{"client_name": "a"}]), b=source(extends="a"))
    assert (resolved["b"].title, resolved["b"].about, resolved["b"].match) == ("b", "", ())
    assert resolved["a"].match == (Match(client_name="a"),)


def test_dotted_keys_and_nested_tables_are_the_same():
    dotted = source(sets={"image.max_edge": 9, "tools.name_chars": "a"})
    nested = source(sets={"image": {"max_edge": 9}, "tools": {"name_chars": "a"}})
    mixed = source(sets={"image": {"max_edge": 9}, "tools.name_chars": "a"})
    assert set_paths("x", dotted) == set_paths("x", nested) == set_paths("x", mixed)


def test_the_meta_of_tools_is_one_value_whatever_stands_in_it():
    meta = {"anthropic/maxResultSizeChars": 1, "io.example/deep": {"a": {"b": 2}}}
    resolved = resolve(a=source(sets={"tools": {"meta": meta}}), b=source(extends="a", sets={"tools.meta": {"c": 3}}))
    assert resolved["a"].tools.meta == meta
    assert resolved["b"].tools.meta == {"c": 3}


def test_evidence_is_filed_under_the_path_that_it_is_for():
    resolved = resolve(a=source(fact=[fact(image={"max_edge": 5, "show": "line"})]))
    evidence = resolved["a"].evidence
    assert set(evidence) == {"image.max_edge", "image.show"}
    assert evidence["image.show"].model_dump() == {
        "level": "measured",
        "source": "a measured source",
        "host_version": "1.0",
        "checked": date(2026, 11, 20),
    }


def test_evidence_is_inherited_replaced_by_newer_and_dropped_for_a_value_without_any():
    resolved = resolve(
        a=source(fact=[fact(rescue=True, order="kept", shown="next-turn")]),
        b=source(extends="a", fact=[fact("source", order="text-first")], sets={"shown": "unknown"}),
    )
    assert {path: known.level for path, known in resolved["b"].evidence.items()} == {
        "rescue": "measured",
        "order": "source",
    }


def test_every_value_of_a_profile_can_be_set():
    plain = Profile(name="x")
    everything = {path: value_at(plain, path) for path in PATHS}
    assert resolve(x=source(sets=everything))["x"].image == plain.image
    assert {"order", "rescue", "image.max_edge", "tools.meta", "wait.tools_list"} <= set(PATHS)
    assert not {"name", "match", "evidence", "image"} & set(PATHS)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            {"sets": {"image": {"max_egde": 1}}},
            "profile 'x': 'image.max_egde' is not a value that a profile sets (did you mean 'image.max_edge'?)",
        ),
        (
            {"sets": {"max_edge": 1}},
            "profile 'x': 'max_edge' is not a value that a profile sets (did you mean 'image.max_edge'?)",
        ),
        (
            {"sets": {"structured": "never"}},
            "profile 'x': 'structured' is not a value that a profile sets "
            "(did you mean 'structured.send' or 'structured.max_chars' or 'structured.host'?)",
        ),
        (
            {"sets": {"zzz": 1}},
            "profile 'x': 'zzz' is not a value that a profile sets "
            "(`mcp-gateway profiles show default` lists what there is)",
        ),
        ({"sets": {"name": "y"}}, "profile 'x': 'name' is not a value that a profile sets "),
        ({"sets": {"image.max_edge": 0}}, "profile 'x': image.max_edge: input should be greater than 0"),
        (
            {"sets": {"image.show": "never"}},
            "profile 'x': image.show: input should be 'native', 'line' or 'file'",
        ),
        ({"sets": {"rescue": "perhaps"}}, "profile 'x': rescue: input should be a valid boolean"),
        (
            {"sets": {"rescue": True}, "fact": [fact(rescue=True)]},
            "profile 'x': rescue is set twice (remove one of the two)",
        ),
        (
            {"extends": "defaul"},
            "profile 'x' extends 'defaul', which does not exist (did you mean 'default'? there are: ",
        ),
        ({"extends": "x"}, "profile 'x' extends itself: x -> x (change one `extends`)"),
        (
            {"match": [{"client_name": "a"}, {}]},
            "profile 'x': match[1] matches every client "
            "(give client_name or user_agent; for every host, set gateway.profile)",
        ),
        (
            {"match": [{"user_agent": "("}]},
            "profile 'x': match[0].user_agent is not a pattern: missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_a_profile_that_does_not_hold_together_is_one_line_that_names_it(profile, message):
    said = failure(x=source(**profile))
    assert said.startswith(message)
    assert "\n" not in said


def test_a_circle_is_shown_whole():
    said = failure(a=source(extends="b"), b=source(extends="c"), c=source(extends="a"))
    assert said == "profile 'a' extends itself: a -> b -> c -> a (change one `extends`)"


def test_the_profile_that_is_wrong_is_named_not_the_one_that_extends_it():
    said = failure(child=source(extends="parent"), parent=source(sets={"image.max_edge": -1}))
    assert said.startswith("profile 'parent':")


# What came with which revision: https://modelcontextprotocol.io/specification/<revision>/server/tools
CARRIED = {
    #             audio     link      structured  unknown
    "2024-11-05": ("line", "line", "never", "line"),
    "2025-03-26": ("native", "line", "never", "line"),
    "2025-06-18": ("native", "native", "always", "native"),
    "2025-11-25": ("native", "native", "always", "native"),
    "2026-07-28": ("native", "native", "always", "native"),
    "1999-01-01": ("line", "line", "never", "line"),
}
NARROWED = ("audio.show", "link.show", "structured.send", "unknown.show")


@pytest.mark.parametrize("revision", CARRIED)
def test_a_profile_is_narrowed_to_what_the_revision_can_carry(revision):
    narrowed = narrow(Profile(name="passthrough"), revision)
    assert tuple(value_at(narrowed, path) for path in NARROWED) == CARRIED[revision]


def test_every_known_revision_is_in_the_table():
    assert set(REVISIONS) < set(CARRIED)
    assert {rule.path for rule in NARROWINGS} == set(NARROWED)


@pytest.mark.parametrize("revision", REVISIONS)
def test_narrowing_never_widens(revision):
    strict = resolve(
        x=source(sets={"audio.show": "line", "link.show": "line", "structured.send": "never", "unknown.show": "line"})
    )["x"]
    assert narrow(strict, revision) == strict


def test_a_narrowed_value_says_which_specification_narrowed_it():
    narrowed = narrow(resolve(x=source(fact=[fact(audio={"show": "native"})]))["x"], "2024-11-05")
    assert narrowed.evidence["audio.show"].source.startswith(
        "https://modelcontextprotocol.io/specification/2025-03-26/"
    )


def test_everything_else_stays_when_a_profile_is_narrowed():
    profile = resolve(x=source(sets={"audio.types": ["audio/wav"], "image.max_edge": 7}))["x"]
    narrowed = narrow(profile, "2024-11-05")
    assert {path for path in PATHS if value_at(narrowed, path) != value_at(profile, path)} == set(NARROWED)


# -- variants ---------------------------------------------


def test_a_variant_is_a_profile_that_extends_its_host_and_stands_right_after_it():
    resolved = resolve(
        host=source(
            title="Host",
            sets={"rescue": False, "image.max_edge": 9},
            variant=[{"name": "chat", "models": ["gpt-4*"], "fact": [fact(image={"show": "line"})]}, {"name": "raw"}],
        ),
        other=source(extends="host-chat"),
    )
    assert list(resolved) == ["passthrough", "default", "host", "host-chat", "host-raw", "other"]
    chat = resolved["host-chat"]
    assert (chat.image.show, chat.image.max_edge, chat.rescue) == ("line", 9, False)
    assert (chat.title, chat.match, chat.lineage) == ("Host, chat", (), ("host", "default", "passthrough"))
    assert chat.evidence["image.show"].level == "measured"
    assert resolved["host"].variants == {"host-chat": ("gpt-4*",), "host-raw": ()}
    assert (resolved["other"].variants, resolved["other"].image.show) == ({}, "line")


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {"x": source(variant=[{"name": "y"}]), "x-y": source()},
            "profile 'x': its variant 'x-y' has the name of another (give the variant another name)",
        ),
        ({"x": source(variant=[{"name": "y"}, {"name": "y"}])}, "profile 'x': its variant 'x-y' has the name"),
        (
            {"x": source(variant=[{"name": "y", "sets": {"image.max_egde": 1}}])},
            "profile 'x-y': 'image.max_egde' is not a value that a profile sets",
        ),
        ({"x": source(match=[{"model": "gpt*"}])}, "profile 'x': match[0] matches every client"),
        (
            {"x": source(match=[{"user_agent": "x", "header": "x-*"}])},
            "profile 'x': match[0] has a header without a client_name",
        ),
    ],
)
def test_a_variant_that_does_not_hold_together_is_named(sources, message):
    assert failure(**sources).startswith(message)
