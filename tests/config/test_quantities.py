"""Seconds and bytes, as people write them, wherever a setting is one or the other."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.config.builtin_profiles import load_profiles
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.core.model.quantities import Duration, Size, parse_bytes, seconds_of, size_text
from gateway.core.profiles.profile import Profile
from gateway.errors import ProfileError


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("5 min", 300),
        ("1h30m", 5_400),
        ("1h 30m 5s", 5_405),
        ("2d", 172_800),
        ("1.5h", 5_400),
        ("500ms", 0.5),
        ("0s", 0),
        (" 30S ", 30),
        ("0.5", 0.5),
        (30, 30),
        (1.5, 1.5),
    ],
)
def test_seconds(written, seconds):
    assert TypeAdapter(Duration).validate_python(written) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4GB", 4_000_000_000),
        ("512MiB", 512 * 1024 * 1024),
        ("1.5 GiB", 1_610_612_736),
        ("10kb", 10_000),
        ("10KiB", 10_240),
        ("1TB", 10**12),
        ("7B", 7),
        ("1_000", 1_000),
        (4_000, 4_000),
    ],
)
def test_bytes(written, size):
    assert TypeAdapter(Size).validate_python(written) == size


@pytest.mark.parametrize("written", ["", "s", "soon", "5 weeks", "-5s", "5s!", "s5", "5m-", "1h 30", "²s"])
def test_what_is_no_time(written):
    with pytest.raises(ValidationError, match="must be seconds: a number"):
        TypeAdapter(Duration).validate_python(written)


@pytest.mark.parametrize("written", ["", "GB", "4 gigs", "4G", "-4GB", "4GB2MB", "many"])
def test_what_is_no_size(written):
    with pytest.raises(ValidationError, match="must be bytes: a number"):
        TypeAdapter(Size).validate_python(written)


def test_long_texts_are_read_in_no_time():
    for text in ("1" * 100_000 + "x", "1h" * 50_000 + "!", "1 " * 50_000, "1" * 100_000 + "mb"):
        with pytest.raises(ValueError, match="must be"):
            seconds_of(text)
        with pytest.raises(ValueError, match="must be"):
            parse_bytes(text)


@pytest.mark.parametrize("size", [0, 5, 20_000, 1024 * 1024, 1536 * 1024 * 1024])
def test_a_size_as_text_is_read_back(size):
    assert TypeAdapter(Size).validate_python(size_text(size).strip('"')) == size


def leaves(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every key with its meaning and its whole type."""
    for name, field in model.model_fields.items():
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        models = [one for one in (field.annotation, *get_args(field.annotation)) if isinstance(one, type)]
        inner = [one for one in models if issubclass(one, BaseModel)]
        for one in inner:
            yield from leaves(one, f"{path}{name}.")
        if not inner:
            yield f"{path}{name}", name, kind


def reads(kind: Any, text: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        return False
    return True


def test_every_setting_that_is_a_size_or_a_time_is_read_so():
    """A new key is found by its name or, where that says nothing, by being a number with a fraction."""
    bytes_, seconds = set[str](), set[str]()
    for path, name, kind in leaves(Settings):
        if path.startswith("profiles."):
            continue
        if re.search(r"bytes|(?:^|_)memory$|upload_above", name):
            bytes_.add(path)
            assert reads(kind, "64MiB"), path
        elif "float" in str(kind):
            seconds.add(path)
            assert reads(kind, "30s"), path
    assert {"store.max_bytes", "upstreams.limits.memory", "model_proxy.history.bytes"} <= bytes_
    assert {"store.expires", "upstreams.timeout.call", "upstreams.idle_stop", "content.link_lifetime"} <= seconds


def test_every_value_of_a_profile_that_is_a_size_or_a_time_is_read_so():
    read = set[str]()
    for path, name, kind in leaves(Profile):
        text = "64MiB" if "bytes" in name else "30s" if "seconds" in name or "float" in str(kind) else None
        if text is not None:
            read.add(path)
            assert reads(kind, text), path
    assert {"image.max_bytes", "audio.max_seconds", "tools.schema_max_bytes", "wait.tools_list", "wait.call"} <= read


def test_in_a_profile(tmp_path):
    path = tmp_path / "mcp-gateway.toml"
    sets = 'image.max_bytes = "2MiB"\nwait = { tools_list = "1.5s", call = "1h" }\naudio.max_seconds = "5m"\n'
    path.write_text(
        f"[profiles.mine.sets]\n{sets}[[profiles.own.variant]]\nname = 'v'\nmodels = ['*']\nsets.wait.call = '2m'\n"
    )
    profiles = load_profiles(load_settings(path, environ={}).settings)
    mine = profiles["mine"]
    assert (mine.image.max_bytes, mine.wait.tools_list, mine.wait.call) == (2 * 1024**2, 1.5, 3_600)
    assert (mine.audio.max_seconds, profiles["own-v"].wait.call) == (300, 120)
    path.write_text('[profiles.mine.sets]\nimage.max_bytes = "4 bananas"\n')
    with pytest.raises(ProfileError, match=r"^profile 'mine': image\.max_bytes: must be bytes: a number, or text"):
        load_profiles(load_settings(path, environ={}).settings)


def test_in_a_file(tmp_path):
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        '[store]\nmax_bytes = "4GB"\nexpires = "2d"\n'
        '[upstreams.a]\ncommand = "x"\nidle_stop = "10m"\ntimeout = { start = "${START:-90s}", call = "5m" }\n'
        'limits.memory = "2GiB"\ntools.timeout.slow = { call = "1h" }\n'
    )
    settings = load_settings(path, environ={}).settings
    assert (settings.store.max_bytes, settings.store.expires) == (4_000_000_000, 172_800)
    one = settings.upstreams["a"]
    assert (one.idle_stop, one.timeout.start, one.timeout.call) == (600, 90, 300)
    assert (one.limits.memory, one.tools.timeout["slow"].call) == (2 * 1024**3, 3_600)
