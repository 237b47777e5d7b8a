"""What another version of the settings changes, and what of it a running gateway can take over."""

import pytest

from gateway.config.schema import Settings
from gateway.config.settings_diff import LIVE, Difference, compare, live_part

OLD = Settings.model_validate(
    {
        "gateway": {"name": "g", "prefix": "always"},
        "upstreams": {
            "a": {"command": "a", "env": {"KEY": "hidden-value"}},
            "b": {"url": "http://b.example/"},
            "c": {"command": "c"},
        },
        "profiles": {"mine": {"extends": "default"}},
    }
)


def changed(**sections):
    return Settings.model_validate({**OLD.model_dump(), **sections})


def test_equal_settings_differ_in_nothing():
    assert compare(OLD, changed()) == Difference()
    assert not compare(OLD, changed())


def test_upstreams_come_go_and_change():
    upstreams = OLD.model_dump()["upstreams"]
    new = changed(
        upstreams={
            "d": {"command": "d"},
            "a": {**upstreams["a"], "env": {"KEY": "another"}},
            "c": {**upstreams["c"], "timeout": {"call": 5}, "tools": {"exclude": ["x"]}},
        }
    )
    difference = compare(OLD, new)
    assert difference == Difference(added=("d",), removed=("b",), restarted=("a",), adjusted=("c",))
    assert "another" not in repr(difference)


def test_an_upstream_that_is_switched_is_not_restarted():
    off = changed(upstreams={**OLD.model_dump()["upstreams"], "a": {"command": "other", "enabled": False}})
    assert compare(OLD, off) == Difference(disabled=("a",))
    assert compare(off, OLD) == Difference(enabled=("a",))


@pytest.mark.parametrize(
    ("sections", "applied", "restart_needed"),
    [
        ({"gateway": {"name": "g", "prefix": "never", "profile": "codex"}}, ("gateway.prefix", "gateway.profile"), ()),
        ({"gateway": {"name": "h", "instructions": "i"}}, ("gateway.instructions",), ("gateway.name",)),
        ({"limits": {"blocks": 3}, "store": {"expires": 3}}, ("store.expires", "limits.blocks"), ()),
        ({"store": {"max_bytes": 3, "url": "file:///x"}}, ("store.max_bytes",), ("store.url",)),
        (
            {"http": {"port": 1, "token": "t"}, "media": {"workers": 1}},
            (),
            ("http.port", "http.token", "media.workers"),
        ),
        (
            {"profiles": {"new": {"extends": "mine"}, "mine": {"extends": "codex"}}},
            ("profiles.mine", "profiles.new"),
            (),
        ),
    ],
)
def test_what_can_be_taken_over_is_told_from_what_needs_a_restart(sections, applied, restart_needed):
    difference = compare(OLD, changed(**sections))
    assert (difference.applied, difference.restart_needed) == (applied, restart_needed)


def test_what_needs_a_restart_stays_as_it_was_and_is_told_every_time():
    new = changed(gateway={"name": "h", "prefix": "never"}, http={"port": 1}, upstreams={})
    force = live_part(OLD, new)
    assert (force.gateway.name, force.gateway.prefix, force.http.port) == ("g", "never", OLD.http.port)
    assert force.upstreams == {}
    assert compare(force, new) == Difference(restart_needed=("gateway.name", "http.port"))


def test_the_live_keys_exist():
    for key in LIVE:
        section, _, name = key.partition(".")
        assert section in Settings.model_fields
        assert not name or name in type(getattr(OLD, section)).model_fields


def test_secrets_that_were_read_stay_known_while_something_may_still_have_them():
    force = live_part(OLD.with_read_secrets({"before"}), changed().with_read_secrets({"after"}))
    assert force.read_secrets == {"before", "after"}
