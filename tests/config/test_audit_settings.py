"""`[audit]` and `[access.limits]`: what is refused, and what a running gateway applies."""

from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.settings_diff import compare, live_part
from gateway.core.model.grant import Quota
from gateway.errors import ConfigError

HASH = f"sha256:{'0' * 64}"


def loaded(folder: Path, text: str) -> Settings:
    file = folder / "mcp-gateway.toml"
    file.write_text(text, "utf-8")
    return load_settings(file, environ={"HOME": str(folder / "home")}).settings


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('[audit]\narguments = "all"', "audit.arguments"),
        ('[audit]\ntools = { "a__*" = "all" }', 'audit.tools."a__*"'),
        ("[audit]\nmax_bytes = 10", "audit.max_bytes"),
        ("[audit]\nkeep = -1", "audit.keep"),
        ('[audit]\non_failure = "ignore"', "audit.on_failure"),
        ("[audit]\nfile = 'x'", "audit.file"),
        ("[access.limits]\ncalls_at_once = 0", "access.limits.calls_at_once"),
        ('[access.limits]\nbytes_per_day = "many"', "access.limits.bytes_per_day"),
        ("[access.limits]\npicture_tokens = 1", "access.limits.picture_tokens"),
        (
            f"[access.tokens.a]\nhash = '{HASH}'\ncalls_per_minute = 1\nlimits = {{ calls_per_minute = 2 }}",
            "access.tokens.a: has calls_per_minute and limits.calls_per_minute: give one of them",
        ),
    ],
)
def test_a_wrong_value_is_named_by_its_key(tmp_path, text, where):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert f": {where}" in str(caught.value)


def test_the_path_is_relative_to_the_file(tmp_path):
    assert loaded(tmp_path, "[audit]\npath = 'log/a.jsonl'").audit.path == tmp_path / "log" / "a.jsonl"
    assert loaded(tmp_path, "[audit]\npath = '~/a.jsonl'").audit.path == tmp_path / "home" / "a.jsonl"


def test_limits_are_values_for_the_rooms_above(tmp_path):
    limits = loaded(tmp_path, '[access.limits]\ncalls_per_day = 5\nbytes_per_day = "2MB"').access.limits
    assert limits.quota == Quota(calls_per_day=5, bytes_per_day=2_000_000)


def test_all_but_the_path_applies_at_once(tmp_path):
    old = loaded(tmp_path, "[audit]\npath = 'a.jsonl'")
    new = loaded(
        tmp_path, "[audit]\npath = 'b.jsonl'\non_failure = 'warn'\nkeep = 3\n[access.limits]\ncalls_per_day = 5"
    )
    difference = compare(old, new)
    assert set(difference.applied) == {"audit.on_failure", "audit.keep", "access.limits"}
    assert difference.restart_needed == ("audit.path",)
    live = live_part(old, new)
    assert (live.audit.path, live.audit.keep) == (old.audit.path, 3)
    assert live.access.limits.calls_per_day == 5
