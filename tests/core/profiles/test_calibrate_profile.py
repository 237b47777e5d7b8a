"""What follows from the codes that a model could read: a profile, each value with its evidence."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.core.model.caller import Caller
from gateway.core.profiles.calibrate_profile import (
    PARTS,
    PLAIN,
    TEXTS,
    Calibrated,
    Sight,
    calibrated_profile,
    conclusions,
    is_answered,
    is_meant,
)
from gateway.core.profiles.host_profiles import resolve_profiles, set_paths
from gateway.core.profiles.match_profile import choose_profile

BUILTIN = builtin_profiles()
DEFAULT = BUILTIN["default"]
ALL = frozenset(block for blocks in PARTS.values() for block in blocks)
DAY = date(2026, 11, 21)


def learned(now, later=(), *, shown=ALL, base=DEFAULT):
    sets = {}
    for _, values in conclusions(Sight(shown, {PLAIN, *now}, later), base):
        assert not sets.keys() & values.keys()
        sets |= values
    return sets


def who(name: str = "Some Host", version: str | None = "1.2", model=None, told=None):
    return Calibrated(name, version, model, told, DAY)


def test_pictures_that_are_read_at_once():
    found = learned({"png", "webp"})
    assert found["image.show"] == "native"
    assert found["image.types"] == ["image/png", "image/webp"]
    assert found["shown"] == "same-turn"


def test_pictures_that_are_read_after_the_next_message():
    assert learned((), {"png"})["shown"] == "next-turn"
    assert learned((), {"png"})["image.types"] == ["image/png"]


def test_no_pictures_become_lines_and_files_stay_files():
    assert {path: value for path, value in learned(()).items() if path.startswith("image")} == {"image.show": "line"}
    to_file = DEFAULT.model_copy(update={"image": DEFAULT.image.model_copy(update={"show": "file"})})
    assert learned((), base=to_file)["image.show"] == "file"


@pytest.mark.parametrize(
    ("read", "before", "expected"),
    [(8, 12, None), (8, None, None), (8, 4, 8), (3, 8, 3), (3, None, 3), (0, 8, 1)],
)
def test_how_many_pictures_one_result_may_have(read, before, expected):
    base = DEFAULT.model_copy(update={"image": DEFAULT.image.model_copy(update={"max_count": before})})
    seen = {"png", *(f"picture {number}" for number in range(1, read + 1))}
    assert learned(seen, base=base).get("image.max_count") == expected


@pytest.mark.parametrize(
    ("read", "before", "expected"),
    [
        ({"large", "fine"}, 2_000, 4_000),
        ({"large", "fine"}, None, None),
        ({"large"}, 2_000, None),
        ({"large"}, None, None),
        ((), 2_000, None),
        ((), None, 2_000),
        ((), 8_000, 2_000),
    ],
)
def test_how_large_a_picture_may_be(read, before, expected):
    base = DEFAULT.model_copy(update={"image": DEFAULT.image.model_copy(update={"max_edge": before})})
    assert learned({"png", *read}, base=base).get("image.max_edge") == expected


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ({"text beside", "picture beside", "structured"}, {"host": "beside"}),
        ({"picture beside", "structured"}, {"host": "replaces-text", "send": "never"}),
        ({"text beside", "structured"}, {"host": "replaces-all", "send": "never"}),
        ({"structured"}, {"host": "replaces-all", "send": "never"}),
        ({"text beside"}, {"host": "ignored", "send": "never"}),
        ((), {}),
    ],
)
def test_what_structured_content_does_to_the_rest(read, expected):
    found = learned({"png", *read})
    assert {path: value for path, value in found.items() if path.startswith("structured")} == {
        f"structured.{key}": value for key, value in expected.items()
    }


def test_where_no_picture_is_seen_structured_content_is_not_blamed_for_it():
    assert learned({"text beside", "structured"})["structured.host"] == "beside"
    assert learned({"structured"})["structured.host"] == "replaces-text"


@pytest.mark.parametrize(("read", "expected"), [({"png", "error picture"}, "keep"), ({"png"}, "unflag"), ((), "line")])
def test_what_becomes_of_pictures_beside_an_error(read, expected):
    assert learned(read)["error.media"] == expected


def test_documents_sound_and_embedded_pictures():
    found = learned({"png", "document", "sound", "embedded"})
    assert (found["document.show"], found["audio.show"], found["blob.image_as_image"]) == ("native", "native", False)
    found = learned({"png"})
    assert (found["document.show"], found["audio.show"], found["blob.image_as_image"]) == ("text", "line", True)


def whole(*lengths):
    return {block for part, length in TEXTS.items() if length in lengths for block in PARTS[part]}


@pytest.mark.parametrize(
    ("read", "before", "expected"),
    [
        (whole(52_000), 40_000, 52_000),
        (whole(52_000), None, None),
        (whole(40_000), 40_000, None),
        (whole(40_000), 45_000, None),  # what is known already lies between what was read and what was not
        (whole(40_000), 60_000, 40_000),
        (whole(7_000), None, 7_000),
        (whole(2_000), 40_000, 2_000),
        (set(), 40_000, None),
        (whole(52_000) - {f"middle of {next(iter(TEXTS))}"} | whole(20_000), 40_000, 20_000),
    ],
)
def test_how_long_a_text_may_be(read, before, expected):
    base = DEFAULT.model_copy(update={"text": DEFAULT.text.model_copy(update={"max_chars": before})})
    assert learned(read, base=base).get("text.max_chars") == expected


def test_a_text_that_is_read_later_was_not_shown_whole():
    assert learned(whole(7_000), whole(52_000))["text.max_chars"] == 7_000


def test_a_text_that_is_shorter_than_one_that_was_read_need_not_be_shown():
    asked = [part for part in TEXTS if not is_answered(part, whole(20_000))]
    assert [TEXTS[part] for part in asked] == [52_000, 40_000, 20_000]
    assert not any(is_answered(part, ()) for part in PARTS)


def test_what_was_not_tried_says_nothing():
    shown = frozenset(PARTS["pictures"])
    assert set(learned({"png", "jpeg"}, shown=shown)) == {"image.show", "image.types", "shown"}


def test_without_the_code_in_plain_text_nothing_follows():
    assert list(conclusions(Sight(ALL, ALL - {PLAIN}), DEFAULT)) == []


@settings(deadline=None, max_examples=60)
@given(
    now=st.sets(st.sampled_from(sorted(ALL))),
    later=st.sets(st.sampled_from(sorted(ALL))),
    parts=st.sets(st.sampled_from(list(PARTS)), min_size=1),
    base=st.sampled_from(sorted(BUILTIN)),
)
def test_whatever_was_seen_the_profile_holds_together_and_says_how_it_is_known(now, later, parts, base):
    shown = frozenset(block for part in parts for block in PARTS[part])
    source = calibrated_profile(who(), Sight(shown, now & shown, later & shown), BUILTIN[base])
    resolved = resolve_profiles({**load_builtin(), "measured": source})["measured"] if base in load_builtin() else None
    assert source.sets == {}
    assert source.extends == base
    for path in set_paths("measured", source):
        evidence = resolved.evidence[path] if resolved else None
        assert evidence is None or (evidence.level, evidence.checked, evidence.host_version) == ("measured", DAY, "1.2")


def test_a_measured_profile_is_for_exactly_this_host_version_and_model():
    source = calibrated_profile(who(model="GPT-5.5"), Sight(ALL, ALL), DEFAULT)
    known = resolve_profiles({**load_builtin(), "mine": source})
    caller = Caller(client_name="some_host", client_version="1.2", model="gpt-5.5")
    assert choose_profile(known, caller, None).profile.name == "mine"
    for other in (
        Caller(client_name="some_host", client_version="1.3", model="gpt-5.5"),
        Caller(client_name="some_host", client_version="1.2", model="gpt-5"),
        Caller(client_name="some_host", client_version="1.2"),
        Caller(client_name="some", client_version="1.2", model="gpt-5.5"),
    ):
        assert choose_profile(known, other, None).profile.name == "default"


def test_a_measured_profile_wins_over_the_built_in_one_of_its_host():
    source = calibrated_profile(who("cursor-vscode", "1.0.0"), Sight(ALL, ALL), BUILTIN["cursor"])
    known = resolve_profiles({"cursor-vscode-1.0.0": source, **load_builtin()})
    caller = Caller(client_name="cursor-vscode", client_version="1.0.0")
    assert choose_profile(known, caller, None).profile.name == "cursor-vscode-1.0.0"
    assert (
        choose_profile(known, Caller(client_name="cursor-vscode", client_version="1.0.1"), None).profile.name
        == "cursor"
    )


@pytest.mark.parametrize("name", ["mcp", "", "MCP"])
def test_a_name_that_many_hosts_have_matches_nobody(name):
    assert who(name).match == ()


def test_a_name_with_wildcards_matches_itself_alone():
    (match,) = who("a*[b]?").match
    known = resolve_profiles({**load_builtin(), "mine": calibrated_profile(who("a*[b]?"), Sight(ALL, ALL), DEFAULT)})
    assert match.client_name == "a[*][[]b][?]"
    assert choose_profile(known, Caller(client_name="a*[b]?", client_version="1.2"), None).profile.name == "mine"
    assert choose_profile(known, Caller(client_name="axbc", client_version="1.2"), None).profile.name == "default"


@pytest.mark.parametrize(
    ("calibrated", "expected"),
    [
        (who("Cursor/VSCode", "1.0.0"), "cursor-vscode-1.0.0"),
        (who("@n8n/n8n-nodes-langchain.mcpClientTool", None), "n8n-n8n-nodes-langchain.mcpclienttool-calibrated"),
        (who("codex", None), "codex-calibrated"),
        (who("x", "1", model="openai/GPT-5.5"), "x-1-openai-gpt-5.5"),
        (who("../../etc/passwd", ".."), "etc-passwd"),
        (who("\x1b[2J", None), "2j-calibrated"),
        (who("", None), "unnamed-calibrated"),
        (who("ß" * 300, None), "s" * 120),
        (who("模型", "1"), "1"),
    ],
)
def test_the_name_of_a_measured_profile_is_fit_for_a_file(calibrated, expected):
    assert calibrated.profile_name == expected


@pytest.mark.parametrize(
    ("host", "client", "profiles", "expected"),
    [
        (None, "anything", ("default",), True),
        ("cursor", "cursor-vscode", ("cursor",), True),
        ("Cursor VSCode", "cursor-vscode", ("default",), True),
        ("cursor*", "cursor-vscode", ("default",), True),
        ("cursor", "cursor-vscode", ("default",), False),
        ("cursor", None, ("default",), False),
    ],
)
def test_which_host_is_meant(host, client, profiles, expected):
    assert is_meant(host, client, profiles) is expected
