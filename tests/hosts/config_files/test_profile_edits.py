"""Changing a profile of a configuration: in whatever way it is written, everything else stays."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.core.profiles.host_profiles import set_paths
from gateway.core.profiles.profile import ProfileSource
from gateway.errors import ConfigError
from gateway.hosts.config_files.profile_edits import with_profile_values
from gateway.hosts.config_files.upstream_edits import ConfigurationText

FILE = Path("mcp-gateway.toml")
CHANGES: dict[str, Any] = {
    "image.max_edge": 500,
    "text.max_chars": None,
    "rescue": False,
    "image.types": ["image/png", 'a"b'],
}

FACT = '[[profiles.mine.fact]]\nlevel = "measured"\nsource = "s" # s\nchecked = 2026-11-20\n'
WAYS = {
    "inline": '[profiles.mine] # here\ntitle = "c"\nsets = { "image.max_edge" = 1, text = { max_chars = 2 } } # w\n',
    "dotted": "[profiles.mine]\nsets.image.max_edge = 7 # because\nsets.text.max_chars = 9\n",
    "a table": '[profiles.mine]\ntitle = "c"\n[profiles.mine.sets]\n# e\n"image.max_edge" = 3\ntext.max_chars = 5\n',
    "tables": "[profiles.mine.sets.image]\nmax_edge = 3 # m\n[profiles.mine.sets.text]\nmax_chars = 9\n",
    "tables and more": "[profiles.mine]\ntitle = 'x'\n[profiles.mine.sets.image]\nmax_edge = 3\nmax_count = 2 # two\n",
    "all in one": '[profiles]\nmine = { extends = "codex", sets = { image = { max_edge = 3 } } } # one\n',
    "before any table": "profiles.mine.sets.image.max_edge = 4\n",
    "a fact": f'[profiles.mine]\nextends = "codex"\n{FACT}sets.image.max_edge = 3\nsets.image.max_count = 3 # c\n',
    "a table of a fact": f'[profiles.mine]\nextends = "codex"\n{FACT}[profiles.mine.fact.sets]\n"image.max_edge" = 3\n',
    "a variant": '[profiles.mine]\nextends = "codex"\n[[profiles.mine.variant]]\nname = "v"\nsets.rescue = true\n',
    "nothing": '[profiles.mine]\nextends = "codex"',
    "quoted": "[profiles.'mine']\n'sets'.'image.max_edge' = 0x10\n",
}
AROUND = (
    "# head\n",
    '\n# next\n[profiles.other]\nextends = "mine"\n\n# servers\n[upstreams.a] # a\ncommand = "x" # x\n',
)


def sources(text: str) -> dict[str, Any]:
    """What a configuration says, its profile `mine` in one way of writing."""
    document = tomllib.loads(text)
    source = ProfileSource.model_validate(document["profiles"]["mine"])
    facts = [set_paths("mine", ProfileSource(sets=fact.sets)) for fact in source.fact]
    own = set_paths("mine", ProfileSource(sets=source.sets))
    rest = source.model_dump(exclude={"sets", "fact"})
    return {**document, "profiles": {**document["profiles"], "mine": [own, [one for one in facts if one], rest]}}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("way", WAYS)
def test_values_are_changed_where_they_stand_and_everything_else_stays(way: str, newline: str) -> None:
    head, tail = ("", "") if way == "nothing" else AROUND
    before = (head + WAYS[way] + tail).replace("\n", newline)
    after = with_profile_values(ConfigurationText(before, FILE), "mine", CHANGES).text
    assert ("\r\n" in after) is (newline == "\r\n" and "\n" in before)
    own, facts, rest = sources(before)["profiles"]["mine"]
    wanted = {path: value for path, value in {**own, **CHANGES}.items() if value is not None}
    left = [{path: value for path, value in fact.items() if path not in CHANGES} for fact in facts]
    expected = sources(before)
    expected["profiles"]["mine"] = [wanted, [one for one in left if one], rest]
    assert sources(after) == expected
    # Every line that is not about the values is there as it was, comments too, in the same order.
    lines = [line for line in before.splitlines() if not any(word in line for word in ("max_", "sets"))]
    kept = iter(after.splitlines())
    assert all(line in kept for line in lines)
    assert after.count("#") >= before.count("#") - (way in ("dotted", "a fact", "a table of a fact"))


def test_one_value_changes_one_line() -> None:
    before = AROUND[0] + WAYS["dotted"] + AROUND[1]
    after = with_profile_values(ConfigurationText(before, FILE), "mine", {"image.max_edge": 8}).text
    assert after == before.replace("max_edge = 7 # because", "max_edge = 8 # because")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no [profiles.mine]"),
        ("[profiles.mine]\nextends = 3\n", "profiles.mine.extends"),
        ("[profiles\n", "mcp-gateway.toml"),
    ],
)
def test_what_cannot_be_changed_is_said(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        with_profile_values(ConfigurationText(text, FILE), "mine", {"rescue": True})
    assert words in str(raised.value)


def test_a_value_that_a_file_cannot_hold_is_refused() -> None:
    text = ConfigurationText(WAYS["dotted"], FILE)
    with pytest.raises(ConfigError, match="safely"):
        with_profile_values(text, "mine", {"image.types": ["\ud800"]})
