"""Pages (MCP Apps) on the command line: the option `--app`, and its effect on a profile and a caller."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from gateway.content.shaping import Shaped, Shaper
from gateway.core import apps
from gateway.core.model.apps_extension import EXTENSION
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift

_DECLARED: Mapping[str, Any] = {"extensions": {EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
"""Capabilities of a host that declares support for pages."""


WithPages = Annotated[
    bool,
    typer.Option("--app", help="As for a host that shows pages (MCP Apps); see `apps` in its profile."),
]


def shows_pages(profile: Profile, app: bool) -> bool:
    """Whether a host of this profile is assumed to show pages: without `--app`, only one that always does."""
    return apps.shows_apps(_DECLARED if app else {}, profile.apps.host)


def declaring(caller: Caller, app: bool) -> Caller:
    """Return the caller, with `--app` as a host that declares support for pages."""
    return replace(caller, capabilities=_DECLARED) if app else caller


def expected(caller: Caller, app: bool) -> Callable[[], Caller | None]:
    """Return the host to open upstreams for: a server may have tools only for hosts that show pages.

    Without `--app` it is no particular host. It uses a handshake, because nearly every server supports that.
    """
    return lambda: replace(caller, revision=NEWEST_HANDSHAKE) if app else None


async def shaped_for_page(
    shaper: Shaper, result: Mapping[str, Any], profile: Profile, owner: str, *, app: bool, has_page: bool
) -> Shaped:
    """Shape a result as for a host of this profile. `has_page`: its tool has a page."""
    shows = shows_pages(profile, app)
    return await shaper.shape(result, apps.for_host(profile, shows_apps=shows), owner=owner, app=has_page and shows)


def as_it_came(result: Mapping[str, Any]) -> Shaped:
    """Return the unshaped result of a call that only a page makes."""
    return Shaped(dict(result), (apps.AS_IT_CAME,), lift(result), (), {})
