"""The profiles that ship with the gateway, and a user's own beside them."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.config.schema import Settings
from gateway.core.matching import find
from gateway.core.model.model_profile import ModelProfile, ModelSource
from gateway.core.model.profile import Profile, ProfileSource
from gateway.core.model_profiles import resolve_model_profiles
from gateway.core.profiles import resolve_profiles
from gateway.errors import ConfigError, ProfileError


@cache
def load_builtin() -> Mapping[str, ProfileSource]:
    """The built-in host profiles as they stand in their files, by name."""
    return MappingProxyType({name: ProfileSource.model_validate(document) for name, document in _documents("hosts")})


def _documents(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = resources.files("gateway.profiles") / kind
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            yield file.name.removesuffix(".toml"), tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def builtin_profiles() -> Mapping[str, Profile]:
    """The built-in host profiles with everything resolved, by name."""
    return MappingProxyType(dict(resolve_profiles(load_builtin())))


@cache
def load_builtin_models() -> Mapping[str, ModelSource]:
    """The built-in model profiles as they stand in their files, by name."""
    return MappingProxyType({name: ModelSource.model_validate(document) for name, document in _documents("models")})


@cache
def model_profiles() -> Mapping[str, ModelProfile]:
    """The built-in model profiles with everything resolved, by name."""
    return MappingProxyType(dict(resolve_model_profiles(load_builtin_models())))


def load_profiles(settings: Settings) -> Mapping[str, Profile]:
    """The built-in profiles and, after them, the user's own ones, resolved.

    Raises:
        ConfigError: a user's profile has the name of a built-in one, or gateway.profile names none.
        ProfileError: a user's profile does not hold together.
    """
    if not settings.profiles:
        profiles = builtin_profiles()
    else:
        builtin = load_builtin()
        for name in settings.profiles:
            if name in builtin:
                raise ConfigError(
                    "a built-in profile has this name",
                    where=f"profiles.{name}",
                    remedy=f'give yours another name and extends = "{name}"; with the same match, yours is chosen',
                )
        profiles = resolve_profiles({**builtin, **settings.profiles})
    chosen = settings.gateway.profile
    if chosen is not None:
        try:
            find(profiles, chosen)
        except ProfileError as error:
            raise ConfigError("there is no such profile", where="gateway.profile", remedy=error.remedy) from None
    return profiles
