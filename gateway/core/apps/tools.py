"""Tools with pages: which hosts show them, and what a tool declares about its page: URI, and who may call the tool."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from gateway.core.apps.page import PAGE_TYPE
from gateway.core.model.apps_extension import EXTENSION, declares
from gateway.core.model.json_values import as_object, is_list
from gateway.core.profiles.profile import Profile

DECLARED: Mapping[str, Any] = {"extensions": {EXTENSION: {"mimeTypes": [PAGE_TYPE]}}}
"""The capabilities of a host that declares that it shows pages."""

RESOURCE_URI = "ui/resourceUri"
"""The key for the page before the extension was stable; its SDK still writes it, and some hosts read only this one."""
OUTPUT_TEMPLATE = "openai/outputTemplate"
"""The key for the page in OpenAI's Apps SDK."""
PAGE_KEYS = (RESOURCE_URI, OUTPUT_TEMPLATE)
"""The flat keys of `_meta` that name a page; the current one is `ui.resourceUri`."""

_WIDGET_ACCESSIBLE = "openai/widgetAccessible"
_VISIBILITY = "openai/visibility"

Audience: TypeAlias = Literal["model", "both", "app"]
"""The readers of a tool's results: the model, the model and a page, or a page alone."""


def shows_apps(capabilities: Mapping[str, Any], rule: Literal["declared", "always", "never"]) -> bool:
    """Whether a host is assumed to show pages; `rule` is its profile's `apps.host`."""
    return declares(capabilities) if rule == "declared" else rule == "always"


def assumed_to_show(profile: Profile) -> bool:
    """Whether a host of this profile is assumed to show pages, by what is known of such hosts, before it connects."""
    return shows_apps(DECLARED if profile.apps.declares is True else {}, profile.apps.host)


def for_host(profile: Profile, *, shows_apps: bool) -> Profile:
    """Return the profile for a host that does or does not show pages: embedded pages are treated like the others."""
    if profile.apps.embedded != "with-pages":
        return profile
    embedded = "always" if shows_apps else "never"
    return profile.model_copy(update={"apps": profile.apps.model_copy(update={"embedded": embedded})})


def pages(tool: Any) -> tuple[str, ...]:
    """Return the URIs of a tool's page, under every key that names one."""
    meta = as_object(as_object(tool).get("_meta"))
    found = (as_object(meta.get("ui")).get("resourceUri"), *(meta.get(key) for key in PAGE_KEYS))
    return tuple(uri for uri in found if isinstance(uri, str))


def without_pages(meta: Any) -> dict[str, Any]:
    """Return the `_meta` of a tool without the keys that name a page."""
    kept = {key: value for key, value in as_object(meta).items() if key not in PAGE_KEYS}
    if isinstance(interface := kept.get("ui"), Mapping):
        members = cast("Mapping[str, Any]", interface)
        kept["ui"] = {key: value for key, value in members.items() if key != "resourceUri"}
    return kept


def for_the_model(tool: Any) -> bool:
    """Whether the model may call the tool: yes, unless `visibility` omits it."""
    return "model" in _visibility(tool)


def for_apps(tool: Any) -> bool:
    """Whether pages of the tool's own server may call it: yes, unless `visibility` omits them."""
    return "app" in _visibility(tool)


def audience(tool: Any) -> Audience:
    """Return who reads the tool's results on a host that shows pages."""
    if not for_the_model(tool):
        return "app"
    return "both" if pages(tool) or _named_for_apps(tool) else "model"


def _visibility(tool: Any) -> frozenset[str]:
    meta = as_object(as_object(tool).get("_meta"))
    declared = as_object(meta.get("ui")).get("visibility")
    if is_list(declared):
        return frozenset(each for each in declared if isinstance(each, str))
    return frozenset({"app"} if meta.get(_VISIBILITY) == "private" else {"model", "app"})


def _named_for_apps(tool: Any) -> bool:
    """Whether the tool explicitly says that pages call it; a tool that says nothing may be called as well."""
    meta = as_object(as_object(tool).get("_meta"))
    declared = as_object(meta.get("ui")).get("visibility")
    return meta.get(_WIDGET_ACCESSIBLE) is True or (isinstance(declared, list) and "app" in declared)
