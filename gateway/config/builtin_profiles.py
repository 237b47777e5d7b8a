"""The profiles that ship with the gateway, combined with those of the user."""

import logging
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.config.local_profiles import load_local
from gateway.config.schema import Settings
from gateway.core.near_names import which_name
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.model_profile import ModelProfile, ModelSource
from gateway.core.profiles.model_profiles import resolve_model_profiles
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.core.tokens.choose_formulas import formulas_for
from gateway.core.tokens.formula import FormulaSource, TokenFormula, resolve_formulas
from gateway.errors import ConfigError, ProfileError

logger = logging.getLogger(__name__)

_FOLDERS = {
    "hosts": ("hosts", "profiles"),
    "models": ("core", "model_apis", "profiles"),
    "formulas": ("core", "tokens", "formulas"),
}


@cache
def load_builtin() -> Mapping[str, ProfileSource]:
    """Return the built-in host profiles as written in their files, by name."""
    return MappingProxyType({name: ProfileSource.model_validate(document) for name, document in _documents("hosts")})


def _documents(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = resources.files("gateway").joinpath(*_FOLDERS[kind])
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            yield file.name.removesuffix(".toml"), tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def builtin_profiles() -> Mapping[str, Profile]:
    """Return the built-in host profiles, fully resolved, by name."""
    return MappingProxyType(dict(resolve_profiles(load_builtin())))


@cache
def load_builtin_models() -> Mapping[str, ModelSource]:
    """Return the built-in model profiles as written in their files, by name."""
    return MappingProxyType({name: ModelSource.model_validate(document) for name, document in _documents("models")})


@cache
def model_profiles() -> Mapping[str, ModelProfile]:
    """Return the built-in model profiles, fully resolved, by name."""
    return MappingProxyType(dict(resolve_model_profiles(load_builtin_models())))


@cache
def token_formulas() -> Mapping[str, TokenFormula]:
    """Return the formulas of token counts, fully resolved, by name."""
    sources = {name: FormulaSource.model_validate(document) for name, document in _documents("formulas")}
    return MappingProxyType(dict(resolve_formulas(sources)))


def counting_formulas(families: Iterable[str], model: str | None = None) -> tuple[TokenFormula, ...]:
    """Return the formulas of the model, or of these families; if neither is known, those for unknown hosts."""
    return formulas_for(token_formulas(), families, model) or formulas_for(
        token_formulas(), builtin_profiles()["default"].tokens.formulas
    )


def load_profiles(settings: Settings) -> Mapping[str, Profile]:
    """Return the built-in profiles, followed by those measured by `calibrate` and the user's own, resolved.

    Raises:
        ConfigError: a user's profile has the name of a built-in one, an unknown `output.model_api` or an unknown name
            in `tokens.formulas`, or the profile of the gateway or of a token does not exist.
        ProfileError: a user's profile is inconsistent.
    """
    local = load_local(os.environ)
    if not settings.profiles and not local:
        profiles = builtin_profiles()
    else:
        builtin = load_builtin()
        for name in settings.profiles:
            if name in builtin_profiles():
                raise ConfigError(
                    "a built-in profile has this name",
                    where=f"profiles.{name}",
                    remedy=f'give yours another name and extends = "{name}"; with the same match, yours is chosen',
                )
        profiles = resolve_profiles({**builtin, **_usable(local, settings.profiles), **settings.profiles})
        _check_names(profiles)
    chosen = {"gateway.profile": settings.gateway.profile}
    chosen |= {f"access.tokens.{name}.profile": token.profile for name, token in settings.access.tokens.items()}
    for where, name in chosen.items():
        try:
            if name is not None:
                find_profile(profiles, name)
        except ProfileError as error:
            raise ConfigError("there is no such profile", where=where, remedy=error.remedy) from None
    return profiles


def local_profiles(settings: Settings) -> Mapping[str, ProfileSource]:
    """Return the consistent profiles of the user's own folder as written in their files, by name."""
    return _usable(load_local(os.environ), settings.profiles)


def measured_names(settings: Settings) -> frozenset[str]:
    """Return the names of the profiles that were measured by `calibrate`: those with facts."""
    return frozenset(name for name, source in local_profiles(settings).items() if source.fact)


def with_source(settings: Settings, name: str, source: ProfileSource) -> Profile:
    """Return the profile that `source` would become under this name, beside all others.

    Raises:
        ProfileError: it is inconsistent.
    """
    others = {**load_builtin(), **local_profiles(settings), **settings.profiles}
    profile = resolve_profiles({**others, name: source})[name]
    _check_names({name: profile})
    return profile


def _usable(local: Mapping[str, ProfileSource], own: Mapping[str, ProfileSource]) -> dict[str, ProfileSource]:
    """Return the consistent measured profiles: a parent may have been removed, and a name may be taken.

    Raises:
        ProfileError: a profile of the user's own is inconsistent.
    """
    others = {**load_builtin(), **own}
    free = {name: source for name, source in local.items() if name not in own and name not in builtin_profiles()}
    try:
        resolve_profiles({**others, **free})
    except ProfileError:
        resolve_profiles(others)
        return {name: source for name, source in free.items() if _holds(name, source, others)}
    return free


def _holds(name: str, source: ProfileSource, others: Mapping[str, ProfileSource]) -> bool:
    try:
        resolve_profiles({**others, name: source})
    except ProfileError as error:
        logger.warning("the measured profile %s is ignored: %s", name, error)
        return False
    return True


def _check_names(profiles: Mapping[str, Profile]) -> None:
    """Check the names of what profiles refer to. Raises ConfigError if there is no such thing."""
    for name, profile in profiles.items():
        target = profile.output.model_api
        if target is not None and target not in model_profiles():
            remedy = which_name(target, sorted(model_profiles()))
            where = f"profiles.{name}: output.model_api"
            raise ConfigError(f"no model API is called {target!r}", where=where, remedy=remedy)
        for formula in profile.tokens.formulas:
            if formula not in token_formulas():
                remedy = which_name(formula, sorted(token_formulas()))
                where = f"profiles.{name}: tokens.formulas"
                raise ConfigError(f"no formula of token counts is called {formula!r}", where=where, remedy=remedy)
