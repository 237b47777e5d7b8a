"""The built-in profiles: every value with its evidence, no client claimed by two, and the values themselves."""

from datetime import UTC, datetime
from functools import cache
from itertools import combinations

import pytest

from gateway.config.builtin_profiles import builtin_profiles, load_builtin, load_profiles
from gateway.config.schema import Settings
from gateway.core.instructions import LONGEST
from gateway.core.matching import glob_of, specificity
from gateway.core.profiles import PATHS, set_paths, value_at
from gateway.errors import ConfigError, ProfileError

SOURCES = load_builtin()
PROFILES = builtin_profiles()
FACTS = [(name, fact) for name, source in SOURCES.items() for fact in source.fact]


def test_the_hosts_that_ship():
    assert set(SOURCES) == {
        "passthrough",
        "default",
        "claude-code",
        "claude-desktop",
        "codex",
        "gemini-cli",
        "cline",
        "data-designer",
        "inspector",
    }


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_set_without_evidence(name):
    source, profile = SOURCES[name], PROFILES[name]
    assert source.sets == {}
    stated = set(set_paths(name, source))
    parent = PROFILES[profile.lineage[0]] if profile.lineage else None
    differing = {path for path in PATHS if parent and value_at(profile, path) != value_at(parent, path)}
    assert differing <= stated
    assert stated <= set(profile.evidence)


@pytest.mark.parametrize(("name", "fact"), FACTS)
def test_evidence_can_be_read_again(name, fact):
    assert len(fact.source.split()) >= 4 or "#" in fact.source, f"{name}: {fact.source!r} leads nowhere"
    assert fact.checked <= datetime.now(tz=UTC).date()
    if fact.level == "measured":
        assert fact.host_version, f"{name}: measured on which version?"
    assert fact.sets, f"{name}: a fact that sets nothing"


@pytest.mark.parametrize("name", SOURCES)
def test_every_profile_says_what_it_is(name):
    assert SOURCES[name].title
    assert len(SOURCES[name].about or "") > 40


@cache
def overlap(one: str, other: str) -> bool:
    """Whether some text matches both globs (of `*` and plain characters)."""
    if not one or not other:
        return set(one + other) <= {"*"}
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    if other[0] == "*":
        return overlap(other, one)
    return one[0] == other[0] and overlap(one[1:], other[1:])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a*", "ab", True),
        ("a*", "b*", False),
        ("*b", "a*", True),
        ("a*c", "ab", False),
        ("", "*", True),
        ("a", "a", True),
    ],
)
def test_the_overlap_of_globs_is_found(one, other, expected):
    assert overlap(one, other) is expected


def test_no_client_is_claimed_equally_by_two_profiles():
    claims = [(name, match) for name, source in SOURCES.items() for match in source.match]
    assert all(match.client_name and not set(match.client_name) & set("?[") for _, match in claims)
    for (one, left), (other, right) in combinations(claims, 2):
        if one != other and overlap(glob_of(left), glob_of(right)):
            assert specificity(left) != specificity(right), f"{one} and {other}"


# The default for unknown clients, as the design says it.
def test_the_default_is_what_the_design_says():
    default = PROFILES["default"]
    assert {path: value_at(default, path) for path in PATHS} == {
        "order": "text-first",
        "rescue": True,
        "audience": "ignore",
        "shown": "unknown",
        "text.max_chars": 40_000,
        "text.merge": True,
        "text.empty": "named",
        "image.show": "native",
        "image.types": ("image/png", "image/jpeg"),
        "image.max_edge": 2_000,
        "image.max_bytes": None,
        "image.max_count": 8,
        "image.caption": "always",
        "audio.show": "line",
        "audio.types": (),
        "blob.show": "line",
        "blob.types": (),
        "blob.image_as_image": True,
        "embedded_text.show": "text",
        "link.show": "line",
        "unknown.show": "line",
        "structured.send": "never",
        "error.media": "unflag",
        "error.prefix": True,
        "limits.result_chars": 1_000_000,
        "tools.name_max": 64,
        "tools.host_prefix": "mcp__{server}__",
        "tools.name_chars": "A-Za-z0-9_-",
        "tools.description_max": None,
        "tools.max_tools": None,
        "tools.helpers": True,
        "tools.meta": {},
        "instructions.max_chars": LONGEST,
        "wait.tools_list": 5.0,
        "wait.progress_every": 10.0,
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "claude-code",
            {
                "order": "kept",
                "text.merge": False,
                "text.max_chars": 45_000,
                "image.types": ("image/png", "image/jpeg", "image/gif", "image/webp"),
                "image.max_edge": 2_000,
                "structured.send": "never",
                "error.media": "unflag",
                "tools.name_max": 128,
                "tools.meta": {"anthropic/maxResultSizeChars": 500_000},
            },
        ),
        ("claude-desktop", {"shown": "next-turn", "limits.result_chars": 1_000_000, "structured.send": "never"}),
        (
            "codex",
            {"order": "kept", "error.media": "keep", "error.prefix": True, "structured.send": "never"},
        ),
        (
            "gemini-cli",
            {"order": "text-first", "blob.show": "native", "blob.types": ("application/pdf",), "audio.show": "line"},
        ),
        (
            "cline",
            {
                "image.show": "line",
                "limits.result_chars": 7_500,
                "text.max_chars": 6_500,
                "tools.host_prefix": "{server}__",
            },
        ),
        (
            "data-designer",
            {"order": "kept", "blob.show": "line", "error.media": "keep", "error.prefix": True, "match": ()},
        ),
    ],
)
def test_what_is_known_of_a_host_is_in_its_profile(name, values):
    assert {path: value_at(PROFILES[name], path) for path in values} == values


def test_the_inspector_is_shown_everything():
    plain, inspector = PROFILES["passthrough"], PROFILES["inspector"]
    assert [path for path in PATHS if value_at(plain, path) != value_at(inspector, path)] == []


@pytest.mark.parametrize("name", SOURCES)
def test_what_becomes_a_line_can_be_opened(name):
    profile = PROFILES[name]
    lined = [path for path in PATHS if value_at(profile, path) == "line"]
    assert profile.tools.helpers or not lined


def test_users_profiles_stand_beside_the_built_in_ones():
    settings = Settings.model_validate({"profiles": {"mine": {"extends": "codex", "sets": {"image.max_edge": 99}}}})
    profiles = load_profiles(settings)
    assert list(profiles) == [*SOURCES, "mine"]
    assert profiles["mine"].image.max_edge == 99
    assert profiles["mine"].lineage == ("codex", "default", "passthrough")


def failure(document) -> str:
    with pytest.raises((ConfigError, ProfileError)) as caught:
        load_profiles(Settings.model_validate(document))
    return str(caught.value)


def test_a_users_profile_cannot_take_a_built_in_name():
    assert failure({"profiles": {"codex": {}}}) == (
        "profiles.codex: a built-in profile has this name "
        '(give yours another name and extends = "codex"; with the same match, yours is chosen)'
    )


def test_a_configured_profile_must_exist():
    assert failure({"gateway": {"profile": "codx"}}) == (
        "gateway.profile: there is no such profile (did you mean 'codex'?)"
    )


def test_a_users_profile_that_does_not_hold_together_is_named():
    assert failure({"profiles": {"mine": {"sets": {"image": {"max": 3}}}}}).startswith("profile 'mine': 'image.max' ")
