"""Pages (MCP Apps) on the command line: the option `--app`, and its effect on a profile and a caller."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from gateway.cli.terminal import remark
from gateway.content.shaping import Shaped, Shaper
from gateway.core import apps
from gateway.core.model.apps_extension import EXTENSION
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.profile import Profile
from gateway.core.results.lift_result import lift
from gateway.core.wording import join_facts, plain, size_words
from gateway.errors import UnknownTool

DECLARED: Mapping[str, Any] = {"extensions": {EXTENSION: {"mimeTypes": [apps.PAGE_TYPE]}}}
"""The capabilities of a host that declares that it shows pages."""

_WHAT_FOR = {"connect": "connects to", "resource": "loads from", "frame": "frames", "baseUri": "has its base at"}
_LONGEST = 1_000

WithPages = Annotated[
    bool,
    typer.Option("--app", help="Simulate a host that shows pages (MCP Apps)."),
]


def shows_pages(profile: Profile, app: bool) -> bool:
    """Whether a host of this profile is taken to show pages: without `--app`, only one that always does."""
    return apps.shows_apps(DECLARED if app else {}, profile.apps.host)


def declaring(caller: Caller, app: bool) -> Caller:
    """The caller as a host that shows pages, with `--app`."""
    return replace(caller, capabilities=DECLARED) if app else caller


def expected(caller: Caller, app: bool) -> Callable[[], Caller | None]:
    """Return the host to open upstreams for: a server may have tools only for hosts that show pages.

    Without `--app` it is no particular host. It uses a handshake, because nearly every server supports that.
    """
    return lambda: replace(caller, revision=NEWEST_HANDSHAKE) if app else None


def page_words(page: apps.PageFacts) -> str:
    """What a page is and asks for, in a line."""
    asked = [f"{_WHAT_FOR.get(key, key)} {' '.join(domains)}" for key, domains in page.domains.items()]
    needs = f"asks for {', '.join(page.permissions)}" if page.permissions else None
    domains = asked or ["asks for no other domain"]
    return plain(join_facts(page.media_type or "no type", size_words(page.byte_size), *domains, needs), _LONGEST)


async def shaped_for(
    shaper: Shaper, result: Mapping[str, Any], profile: Profile, owner: str, *, app: bool, audience: apps.Audience
) -> Shaped:
    """The result as a host of this profile is sent it; `audience`: who reads it, where pages are shown."""
    shows = shows_pages(profile, app)
    if audience == "app" and shows:  # no model reads it, so there is nobody to shape it for
        return Shaped(dict(result), (apps.AS_IT_CAME,), lift(result), (), {})
    has_page = audience == "both" and shows
    return await shaper.shape(result, apps.for_host(profile, shows_apps=shows), owner=owner, app=has_page)


def callers(profiles: Mapping[str, Profile], tool: str, app: bool) -> Mapping[str, Profile]:
    """The profiles whose hosts show pages, which alone call a tool by this name; who is left out is said on stderr.

    Raises:
        UnknownTool: there are none.
    """
    showing = {name: profile for name, profile in profiles.items() if shows_pages(profile, app)}
    if not showing:
        remedy = "choose a profile whose host shows pages" if app else "add --app, as for a host that shows pages"
        raise UnknownTool(f"no tool is named {plain(tool, 100)!r}: only pages call it by this name", remedy=remedy)
    if left_out := [name for name in profiles if name not in showing]:
        why = "only pages call this tool, and these hosts show none"
        remark(f"left out: {', '.join(left_out)} ({why}{'' if app else ' unless they declare it: add --app'})")
    return showing
