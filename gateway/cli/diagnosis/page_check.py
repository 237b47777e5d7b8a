"""Check the pages of a server (MCP Apps): read each one as the hosts do that show pages."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.cli.pages import page_words
from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import objects_in
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.errors import GatewayError, UnknownResource
from gateway.routing import Router

HOST_PROFILE = "a host that shows pages"
"""The name of the profile under which a check reads the pages."""

_Read: TypeAlias = apps.PageFacts | str | None


@dataclass(frozen=True)
class CheckedPage:
    """One page: the tools that it belongs to, and the result of reading it as each host that shows pages.

    `uri` is the server's own. `read` is keyed by profile: the page, or why it cannot be read; None if the server offers
    that host no tool with this page, as the extension requires for hosts that do not declare it. `losing` are the hosts
    that lose structured content on the way to the page. `data_of` are those of the tools that were called, and returned
    structured content for it.
    """

    uri: str
    tools: tuple[str, ...]
    read: Mapping[str, _Read]
    losing: tuple[str, ...] = ()
    data_of: tuple[str, ...] = ()

    @property
    def loss(self) -> str:
        """What happens to the page's data in the hosts in `losing`."""
        what = f"the structured content of {plain(', '.join(self.data_of), 200)} is lost on the way to the page"
        return f"{what}; whether the page reads the first text as JSON instead is not checked, as pages are not run"

    @property
    def faults(self) -> tuple[str, ...]:
        """The reasons why hosts may not show the page, without repetitions."""
        found = (fault for page in self.read.values() for fault in _faults(page))
        return tuple(dict.fromkeys((*_faults_of_uri(self.uri), *found)))

    @property
    def is_good(self) -> bool:
        """Whether every host that is offered the page can read it."""
        return not any(isinstance(page, str) for page in self.read.values())

    def to_json(self) -> dict[str, Any]:
        """Return the page as JSON."""
        return {
            "uri": self.uri,
            "tools": list(self.tools),
            "faults": list(self.faults),
            "read": {name: _as_json(page) for name, page in self.read.items()},
            "structured_content": {"returned_by": list(self.data_of), "lost_in": list(self.losing)},
        }

    def words(self) -> Mapping[str, str]:
        """Describe in one line, for each profile, what its host gets."""
        return {name: _words(page) for name, page in self.read.items()}


@dataclass
class _Found:
    tools: dict[str, None] = field(default_factory=dict[str, None])
    read: dict[str, _Read] = field(default_factory=dict[str, _Read])


def showing_pages(profiles: Mapping[str, Profile]) -> Mapping[str, Profile]:
    """Return the profiles of the hosts that are known to show pages, one for each host."""
    variants = {variant for profile in profiles.values() for variant in profile.variants}
    return {
        name: profile
        for name, profile in profiles.items()
        if profile.apps.shows and profile.apps.host != "never" and name not in variants
    }


def _declares(profile: Profile) -> bool:
    """Whether the host declares the extension; if that is not known, whether it gets pages only when it does."""
    return profile.apps.host == "declared" if profile.apps.declares is None else profile.apps.declares


def host_profile(seconds: float) -> ProfileSource:
    """Return the source of `HOST_PROFILE`, which waits this long for the list that a server has for such hosts."""
    return ProfileSource(extends="passthrough", sets={"wait.tools_list": seconds, "apps.host": "always"})


def replacing_text(profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Return the hosts that show pages, and whose models read structured content in place of the text beside it."""
    places = ("replaces-text", "replaces-all")
    return tuple(name for name, one in showing_pages(profiles).items() if one.structured.host in places)


def hiding_pictures(profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Return the hosts that show pages, and whose models read structured content in place of the pictures as well."""
    return tuple(name for name, one in showing_pages(profiles).items() if one.structured.host == "replaces-all")


def reading_data(profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Return the hosts that show pages, and whose models read structured content, whatever is beside it."""
    return tuple(
        name for name, one in showing_pages(profiles).items() if one.structured.host in apps.TAKEN_BY_THE_MODEL
    )


async def check_pages(
    router: Router,
    server: str,
    profiles: Mapping[str, Profile],
    is_wanted: Callable[[str], bool],
    with_data: Collection[str],
) -> Sequence[CheckedPage]:
    """Read the pages of the wanted tools as the hosts do that show pages.

    `with_data`: the tools that were called for a model, and returned structured content.

    A server may answer differently to hosts that declare the extension, so it is asked with and without it.
    """
    showing = showing_pages(profiles)
    found: dict[str, _Found] = {}
    for declares in (True, False):
        names = [name for name, profile in showing.items() if _declares(profile) == declares]
        if names:
            able: Mapping[str, Any] = apps.DECLARED if declares else {}
            caller = Caller(revision=NEWEST_HANDSHAKE, profile=HOST_PROFILE, capabilities=able)
            await _read_all(router, server, caller, names, found, is_wanted)
    losing = tuple(name for name, profile in showing.items() if profile.apps.data == "text")
    return [
        CheckedPage(
            uri,
            tuple(one.tools),
            {name: one.read.get(name) for name in showing},
            losing,
            tuple(tool for tool in one.tools if tool in with_data),
        )
        for uri, one in found.items()
    ]


async def _read_all(
    router: Router,
    server: str,
    caller: Caller,
    names: Collection[str],
    found: dict[str, _Found],
    is_wanted: Callable[[str], bool],
) -> None:
    listed = await router.respond("tools/list", {}, caller)
    routes = router.catalogue(caller).routes
    read: dict[str, _Read] = {}
    for tool in objects_in(listed["tools"]):
        route = routes.get(tool["name"])
        if route is None or route.upstream != server or not is_wanted(route.tool):
            continue
        for uri in dict.fromkeys(apps.pages(tool)):
            if uri not in read:
                read[uri] = await _read(router, uri, caller)
            page = found.setdefault(apps.inward(server, uri), _Found())
            page.tools[route.tool] = None
            page.read.update(dict.fromkeys(names, read[uri]))


async def _read(router: Router, uri: str, caller: Caller) -> _Read:
    try:
        result = await router.respond("resources/read", {"uri": uri}, caller)
    except UnknownResource:  # its message has the URI as hosts know it, and nobody here needs to list resources again
        return "the server answers that there is no such resource"
    except GatewayError as error:
        return plain(str(error), 600)
    contents = objects_in(result.get("contents"))
    return apps.page_facts(contents[0]) if contents else "the server returned no contents"


def _faults_of_uri(uri: str) -> tuple[str, ...]:
    return () if uri.startswith(apps.SCHEME) else (f"a page's URI begins with {apps.SCHEME}",)


def _faults(page: _Read) -> tuple[str, ...]:
    if isinstance(page, apps.PageFacts):
        return page.faults
    return () if page is None else ("its tool names a page that cannot be read",)


def _words(page: _Read) -> str:
    if page is None:
        return "not offered: the server offers it only to hosts that declare the extension"
    return f"cannot be read: {page}" if isinstance(page, str) else page_words(page)


def _as_json(page: _Read) -> dict[str, Any] | None:
    if page is None:
        return None
    if isinstance(page, str):
        return {"failure": page}
    return {
        "mime_type": page.media_type,
        "bytes": page.byte_size,
        "domains": {what_for: list(domains) for what_for, domains in page.domains.items()},
        "permissions": list(page.permissions),
    }
