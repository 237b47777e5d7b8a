"""Pages (MCP Apps) on the command line: the option `--app`, and what it makes of a profile and of a caller."""

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
"""The capabilities of a host that declares that it shows pages."""


WithPages = Annotated[
    bool,
    typer.Option("--app", help="Simulate a host that shows pages (MCP Apps)."),
]


def shows_pages(profile: Profile, app: bool) -> bool:
    """Whether a host of this profile is taken to show pages: without `--app`, only one that always does."""
    return apps.shows_apps(_DECLARED if app else {}, profile.apps.host)


def declaring(caller: Caller, app: bool) -> Caller:
    """The caller as a host that shows pages, with `--app`."""
    return replace(caller, capabilities=_DECLARED) if app else caller


def expected(caller: Caller, app: bool) -> Callable[[], Caller | None]:
    """The host that upstreams are opened for: a server may have tools for hosts that show pages alone.

    Without `--app` nobody in particular. The handshake is what nearly every server knows.
    """
    return lambda: replace(caller, revision=NEWEST_HANDSHAKE) if app else None


async def shaped_for_page(
    shaper: Shaper, result: Mapping[str, Any], profile: Profile, owner: str, *, app: bool, has_page: bool
) -> Shaped:
    """The result as a host of this profile is sent it. `has_page`: its tool has a page."""
    shows = shows_pages(profile, app)
    return await shaper.shape(result, apps.for_host(profile, shows_apps=shows), owner=owner, app=has_page and shows)


def as_it_came(result: Mapping[str, Any]) -> Shaped:
    """The result of a call that only a page makes."""
    return Shaped(dict(result), (apps.AS_IT_CAME,), lift(result), (), {})
