"""Measured profiles: written, read again, used, and passed over where they cannot be."""

import logging
from datetime import date

import pytest

from gateway.config.builtin_profiles import builtin_profiles, load_profiles, measured_names
from gateway.config.local_profiles import as_toml, load_local, write_local
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.profiles.calibrate_profile import PARTS, Calibrated, Sight, calibrated_profile
from gateway.core.profiles.host_profiles import set_paths
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.profiles.profile import Fact, Match, ProfileSource
from gateway.errors import ConfigError

ALL = frozenset(block for blocks in PARTS.values() for block in blocks)
DAY = date(2026, 11, 21)


def measured(name="Cursor/VSCode", version="1.0.0", extends="cursor"):
    who = Calibrated(name, version, None, "some model", DAY)
    return calibrated_profile(who, Sight(ALL, ALL), builtin_profiles()[extends])


@pytest.fixture
def environ(tmp_path, monkeypatch):
    folder = tmp_path / "measured" / "profiles"
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(folder))
    return {"MCP_GATEWAY_PROFILES": str(folder)}


def test_what_is_written_is_read_again(environ):
    source = measured()
    path = write_local(environ, "cursor-vscode-1.0.0", source)
    ((name, found),) = load_local(environ).items()
    assert (name, found.match, found.about) == ("cursor-vscode-1.0.0", source.match, source.about)
    assert dict(set_paths(name, found)) == dict(set_paths(name, source))
    assert [fact.source for fact in found.fact] == [fact.source for fact in source.fact]
    assert path.read_text("utf-8").startswith("# Written by `mcp-gateway calibrate`.")
    assert [each.name for each in path.parent.iterdir()] == ["cursor-vscode-1.0.0.toml"]


def test_an_older_one_of_the_same_name_is_replaced(environ):
    write_local(environ, "one", measured())
    write_local(environ, "one", measured(version="2"))
    assert load_local(environ)["one"].match[0].client_version == "2"


@pytest.mark.parametrize(
    "hostile", ['a "quoted" name', "back\\slash", "line\nbreak", "\x7f\x00\x1b", "]] #", "模型 😀"]
)
def test_no_name_breaks_the_file(environ, hostile):
    fact = Fact(level="measured", source=hostile, host_version=hostile, checked=DAY, sets={"shown": "same-turn"})
    source = ProfileSource(
        title=hostile, about=hostile, extends="default", match=(Match(client_name=hostile),), fact=(fact,)
    )
    write_local(environ, "hostile", source)
    assert load_local(environ) == {"hostile": source}
    assert as_toml(source).count("[[fact]]") == 1


def test_measured_profiles_are_used_for_their_host_and_version(environ):
    write_local(environ, "cursor-vscode-1.0.0", measured())
    profiles = load_profiles(Settings())
    caller = Caller(client_name="cursor-vscode", client_version="1.0.0")
    assert choose_profile(profiles, caller, None).profile.name == "cursor-vscode-1.0.0"
    assert profiles["cursor-vscode-1.0.0"].lineage == ("cursor", "default", "passthrough")
    assert measured_names(Settings()) == {"cursor-vscode-1.0.0"}


def test_one_may_extend_a_profile_of_the_users_own(environ):
    settings = Settings.model_validate({"profiles": {"mine": {"sets": {"image.max_edge": 99}}}})
    source = measured().model_copy(update={"extends": "mine"})
    write_local(environ, "measured", source)
    assert load_profiles(settings)["measured"].lineage == ("mine", "default", "passthrough")
    assert "measured" not in load_profiles(Settings())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken", "title = "),
        ("unknown", 'extends = "nobody"\n'),
        ("newer", '[[fact]]\nlevel = "measured"\nsource = "x"\nchecked = 2026-11-21\nsets.image.glow = 1\n'),
        ("strange", "brightness = 1\n"),
        ("codex", 'extends = "default"\n'),
        ("bytes", "\udcff"),
    ],
)
def test_a_file_that_cannot_be_used_costs_only_itself(environ, name, text, caplog):
    path = write_local(environ, "good", measured())
    path.with_name(f"{name}.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with caplog.at_level(logging.WARNING):
        profiles = load_profiles(Settings())
    assert set(profiles) == {*builtin_profiles(), "good"}
    assert name == "codex" or f"{name}" in caplog.text


def test_without_a_folder_nothing_is_kept_and_nothing_read():
    assert load_local({"MCP_GATEWAY_PROFILES": ""}) == {}
    with pytest.raises(ConfigError, match="MCP_GATEWAY_PROFILES is empty"):
        write_local({"MCP_GATEWAY_PROFILES": ""}, "one", measured())


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_local({"MCP_GATEWAY_PROFILES": str(tmp_path / "file" / "below")}, "one", measured())


def test_measured_profiles_stand_beside_the_configuration(monkeypatch, tmp_path):
    from gateway.config.find_config import profiles_folder

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = profiles_folder({})
    assert found is not None
    assert found.parts[-2:] == ("mcp-gateway", "profiles")
