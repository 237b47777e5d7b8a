"""Resolving model profiles, and choosing one by target, model name and base url. Pure."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from gateway.core.near_names import which_name
from gateway.core.profiles.inheritance import Resolver
from gateway.core.profiles.model_profile import ImagePlace, ModelMatch, ModelProfile, ModelSource
from gateway.errors import ProfileError


def _parent(_: str, source: ModelSource) -> str | None:
    return source.extends


_RESOLVER = Resolver(ModelProfile, _parent, "docs/models/README.md lists what there is")


def resolve_model_profiles(sources: Mapping[str, ModelSource]) -> Mapping[str, ModelProfile]:
    """Resolve every source by merging all that it extends.

    Raises:
        ProfileError: an unknown parent, a circle, an unknown path, or a value that does not fit.
    """
    return _RESOLVER.resolve(sources)


def choose_model_profile(
    profiles: Mapping[str, ModelProfile], target: str, *, model: str | None = None, base_url: str | None = None
) -> ModelProfile:
    """Return the profile of `target`, or the closest one that extends it and matches the model or the base url.

    If several match, the one with the longest patterns is used; the result is narrowed to this model (`narrowed`).

    Raises:
        ProfileError: there is no such target; the remedy names the most similar one.
    """
    chosen = profiles.get(target)
    if chosen is None:
        raise ProfileError(f"no model API is called {target!r}", remedy=which_name(target, sorted(profiles)))
    best = 0
    for profile in profiles.values():
        if target in profile.lineage:
            closeness = max((_closeness(match, model, base_url) for match in profile.match), default=0)
            if closeness > best:
                chosen, best = profile, closeness
    return narrowed(chosen, model)


def narrowed(profile: ModelProfile, model: str | None) -> ModelProfile:
    """Narrow a profile to one model: without vision, or with tool images in the place that its template requires."""
    if _names(profile.blind_models, model):
        return profile.model_copy(update={"vision": False})
    if _names(profile.image.in_tool_models, model):
        return with_tool_images(profile, "in_tool")
    if _names(profile.image.after_reply_models, model):
        return with_tool_images(profile, "after_reply")
    return profile


def leaves_choice(profile: ModelProfile) -> bool:
    """Whether the place of tool images depends on the model's chat template rather than on the API."""
    return profile.writing in _CHOOSING


def with_tool_images(profile: ModelProfile, place: ImagePlace) -> ModelProfile:
    """Return the profile with tool images in another place.

    Raises:
        ProfileError: the API allows only one place.
    """
    if not leaves_choice(profile):
        raise ProfileError(
            f"{profile.name} does not let you choose where the images of tools go",
            remedy="leave tool_images out: its profile puts them where the API takes them",
        )
    return profile.model_copy(update={"image": profile.image.model_copy(update={"place": place})})


_CHOOSING = frozenset({"openai_chat", "ollama"})
"""The formats whose servers differ from model to model in what their chat templates do with a tool's images."""


def _names(globs: tuple[str, ...], model: str | None) -> bool:
    """Whether a glob matches this model, named with or without its vendor: `openai/gpt-3.5-turbo`."""
    if model is None:
        return False
    whole = model.casefold()
    names = (whole, whole.rsplit("/", 1)[-1])
    return any(fnmatchcase(name, glob) for glob in globs for name in names)


def _closeness(match: ModelMatch, model: str | None, base_url: str | None) -> int:
    """Return the number of pattern characters that match; 0 if a pattern does not match, or there is none."""
    closeness = 0
    for pattern, value in ((match.model, model), (match.base_url, base_url)):
        if pattern is None:
            continue
        if value is None or not fnmatchcase(value.casefold(), pattern):
            return 0
        closeness += len(pattern)
    return closeness
